//! The order of samples within a batch of a tile: keys, and their sort by the vectors in which windows start.

/// Maximum number of samples of a part that are sorted together. Their values are copied to one buffer, which stays in
/// cache.
pub const BATCH: usize = 8192;

/// Number of counts of a counting sort for each sample, above which comparing a few samples is faster.
const COUNTS_PER_KEY: usize = 8;

/// Number of parts of a batch that a counting sort processes side by side. Two parts take a tenth more time.
const SORTED_PARTS: usize = 4;

/// Number of bits of a sample's index in its batch, the lower bits of its key.
const INDEX_BITS: u32 = BATCH.trailing_zeros();
/// Counts of a batch have 16 bits.
const _: () = assert!(BATCH <= u16::MAX as usize);

/// Returns the sort key of a sample: the cell in which its window starts, and its index in the batch.
#[inline(always)]
pub fn pack_key(cell: u32, index: usize) -> u32 {
    cell << INDEX_BITS | index as u32
}

/// Returns the cell of a key, and the sample's index in its batch before the sort.
#[inline(always)]
pub fn unpack_key(key: u32) -> (u32, usize) {
    (key >> INDEX_BITS, key as usize & (BATCH - 1))
}

/// The vectors of a tile's buffer as digits of keys: one digit, or two if there are many vectors for the samples.
#[derive(Clone, Copy)]
pub struct VectorDigits {
    /// Lowest bit of the vector in a key.
    lowest: u32,
    /// Number of bits of a vector.
    bits: u32,
}

/// The highest number of bits of one of two digits, and of a single digit for any number of samples.
const FEW_BITS: u32 = 10;
/// The highest number of bits of a single digit.
const MOST_BITS: u32 = 12;

impl VectorDigits {
    /// Describes the vectors of `cells` cells each in a buffer of `buffer` cells.
    pub fn new(buffer: usize, cells: usize) -> VectorDigits {
        let bits = |count: usize| usize::BITS - (count - 1).leading_zeros();
        let vectors = VectorDigits { lowest: INDEX_BITS + cells.trailing_zeros(), bits: bits(buffer / cells) };
        assert!(vectors.bits <= 2 * FEW_BITS && bits(buffer) + INDEX_BITS <= u32::BITS);
        vectors
    }

    /// Sorts the first of `keys` by vectors, preserving the order within a vector, and returns the sorted array. The
    /// second is scratch of the same length. Both should be in cache: the sort writes in no order.
    pub fn sort(self, [keys, scratch]: [&mut [u32]; 2]) -> &[u32] {
        // A digit of many bits should not have more values than there are samples: each value takes time too.
        let has_one_digit = self.bits <= FEW_BITS || self.bits <= MOST_BITS && keys.len() >= 1 << self.bits;
        let (digits, bits) = if has_one_digit { (1, self.bits) } else { (2, self.bits.div_ceil(2)) };
        if keys.len() <= (digits << bits) / COUNTS_PER_KEY {
            // The index of a sample makes its order unique. Cells within a vector are left out.
            let order = !0 << self.lowest | (BATCH as u32 - 1);
            keys.sort_unstable_by_key(|&key| key & order);
            return keys;
        }
        let sort_by_digit = match bits {
            ..=FEW_BITS => sort_by_digit::<{ 1 << FEW_BITS }>,
            _ => sort_by_digit::<{ 1 << MOST_BITS }>,
        };
        sort_by_digit(self.lowest, bits, keys, scratch);
        if digits == 1 {
            return scratch;
        }
        sort_by_digit(self.lowest + bits, bits, scratch, keys);
        keys
    }
}

/// Sorts by the digit of `bits` bits from `shift` on, which has at most VALUES values, with a stable counting sort.
fn sort_by_digit<const VALUES: usize>(shift: u32, bits: u32, keys: &[u32], sorted: &mut [u32]) {
    // The mask shows the compiler that this is an index of the counts.
    let digit = |key: u32| (key >> shift) as usize & ((1 << bits) - 1) & (VALUES - 1);
    // Parts are processed in parallel: adjacent samples mostly share a vector, and each would wait for the count that
    // the previous one has written.
    let mut counts = [PartCounts::<VALUES>::ZEROS; SORTED_PARTS];
    let len = keys.len() / SORTED_PARTS;
    let (parts, last) = keys.split_at(SORTED_PARTS * len);
    let parts: [&[u32]; SORTED_PARTS] = std::array::from_fn(|part| &parts[part * len..][..len]);
    for i in 0..len {
        for (counts, part) in counts.iter_mut().zip(parts) {
            counts.of[digit(part[i])] += 1;
        }
    }
    last.iter().for_each(|&key| counts[SORTED_PARTS - 1].of[digit(key)] += 1);
    make_positions(&mut counts, bits);
    let mut put = |part: usize, key: u32| {
        let next = &mut counts[part].of[digit(key)];
        sorted[*next as usize] = key;
        *next += 1;
    };
    for i in 0..len {
        for (which, part) in parts.iter().enumerate() {
            put(which, part[i]);
        }
    }
    last.iter().for_each(|&key| put(SORTED_PARTS - 1, key));
}

/// The counts of one part. The counts of several parts are not a power of two apart, since a processor treats such
/// addresses as equal.
#[derive(Clone, Copy)]
struct PartCounts<const VALUES: usize> {
    of: [u16; VALUES],
    _unused: [u16; 32],
}

impl<const VALUES: usize> PartCounts<VALUES> {
    const ZEROS: Self = PartCounts { of: [0; VALUES], _unused: [0; 32] };
}

/// Converts counts to positions: digit by digit, and part by part within a digit. Only the sums over digits are
/// computed one after another; the compiler vectorises the other loops. A small batch spends most time here.
fn make_positions<const VALUES: usize>(counts: &mut [PartCounts<VALUES>; SORTED_PARTS], bits: u32) {
    let values = (1 << bits).min(VALUES);
    let parts = counts.each_mut().map(|counts| &mut counts.of[..values]);
    let mut positions = [0u16; VALUES];
    let positions = &mut positions[..values];
    for counts in &parts {
        positions.iter_mut().zip(&**counts).for_each(|(total, count)| *total += count);
    }
    let mut sum = 0;
    positions.iter_mut().for_each(|position| sum += std::mem::replace(position, sum));
    for counts in parts {
        for (position, count) in positions.iter_mut().zip(counts) {
            let next = *position + *count;
            *count = std::mem::replace(position, next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cpu::gridding::tiling::Tiling;
    use crate::backend::cpu::simd::Level;

    /// Keys have 32 bits. Tiles of axes that are slightly too short for a second pair of tiles are the largest.
    #[test]
    fn keys_hold_the_cells_of_every_tile() {
        for level in Level::all() {
            for width in 2..=16 {
                for grid in [[255, 127, 1], [255, 63, 63]] {
                    let tiling = Tiling::new::<f32>(level, &grid, width);
                    VectorDigits::new(tiling.buffer_len(), tiling.layout.cells);
                }
            }
        }
    }

    /// Blocks of samples require that the samples of one vector are adjacent.
    #[test]
    fn samples_of_a_batch_are_in_the_order_of_their_vectors() {
        let mut state = 1u32;
        for (vectors, cells) in
            [(1, 8), (7, 1), (350, 8), (512, 4), (513, 2), (1152, 4), (4096, 2), (5000, 8), (1 << 18, 1), (318_000, 1)]
        {
            for len in [1, 60, 1000, BATCH] {
                let mut keys = Vec::new();
                for place in 0..len {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    keys.push(pack_key((state >> 4) % (vectors * cells) as u32, place));
                }
                let (unsorted, mut scratch) = (keys.clone(), vec![u32::MAX; len]);
                let sorted = VectorDigits::new(vectors * cells, cells).sort([&mut keys, &mut scratch]);
                let order: Vec<(u32, usize)> = sorted
                    .iter()
                    .map(|&key| (unpack_key(key).0 / cells as u32, unpack_key(key).1))
                    .inspect(|&(_, place)| assert!(sorted.contains(&unsorted[place])))
                    .collect();
                assert!(order.is_sorted(), "{vectors} vectors of {cells} cells, {len} samples");
                assert!(order.windows(2).all(|pair| pair[0].1 != pair[1].1));
            }
        }
    }
}
