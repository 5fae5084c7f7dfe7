//! Compile-time parameters of the kernels that sort the samples of a plan on a GPU (kernels/samples.cu).

use super::compile::Kernels;

/// Threads per block of a pass.
pub const THREADS: usize = 256;
/// Bits and number of digits of a pass; maximum number of passes.
pub const DIGIT_BITS: u32 = 8;
pub const DIGITS: usize = 1 << DIGIT_BITS;
pub const MAX_PASSES: usize = 4;
/// Maximum number of samples per thread of a pass.
pub const ROUNDS: usize = 8;
/// Blocks before its own whose counts a thread of a pass reads at once.
pub const LOOK_BACK: usize = 8;
/// Static shared memory of a block of a pass, rounded up.
const STATIC_SHARED: usize = 12 << 10;
/// Maximum number of cells of all axes whose table is copied to shared memory.
const MAX_TABLE: usize = 4096;
/// Number of samples from which buckets are sorted in place of a pass. With fewer, the estimate of the longest bucket
/// takes most of the time that is saved.
pub const BUCKET_SORT: usize = 1 << 24;
/// Samples of a bucket per thread and per block that sorts them at once, and mean number up to which most buckets have
/// less.
const BUCKET_ROUNDS: usize = 14;
const BUCKET_SAMPLES: usize = BUCKET_ROUNDS * THREADS;
const BUCKET_MEAN: usize = BUCKET_SAMPLES * 9 / 10;
/// Static shared memory of a block that sorts a bucket, rounded up.
const STATIC_OF_BUCKET: usize = 3 * BUCKET_SAMPLES + (12 << 10);
/// Bits of the cell on each axis of a record in fixed point.
const CELL_BITS: usize = 10;
/// Maximum number of samples for which the kernels count with 30 bits.
const MAX_NARROW: usize = 1 << 30;

const SAMPLES: &str = concat!(
    include_str!("../../../kernels/segments.cuh"),
    include_str!("../../../kernels/sums.cuh"),
    include_str!("../../../kernels/samples.cu")
);

/// Returns whether points in double precision are in fixed point, see kernels/segments.cuh. They then take half of the
/// memory. Units of 2^-32 of a cell cause an error of 1.5e-10 of the result, in the root mean square. Windows of up to
/// eight taps have errors of more than 5e-9.
pub fn has_fixed_points(axes: usize, bytes: usize, width: usize, size: [usize; 3]) -> bool {
    axes == 3 && bytes == 8 && width <= 8 && size.iter().all(|&n| n <= 1 << CELL_BITS)
}

/// The two programs of the kernels. Compilers take them in parallel.
#[derive(Clone, Copy)]
pub enum SortProgram {
    /// The passes of the sort.
    Passes = 1,
    /// All other kernels.
    Others = 2,
}

/// Sorting on one kind of GPU, in real numbers of `bytes` bytes.
#[derive(Clone, Copy)]
pub struct SortConfig {
    axes: usize,
    pub bytes: usize,
    /// Maximum number of samples per thread.
    rounds: usize,
    pub wide: bool,
    /// Whether there are enough samples for sorting buckets.
    pub many: bool,
    /// Whether shared memory has room for the records of a bucket.
    staged: bool,
    /// Whether points are in fixed point.
    pub fixed: bool,
}

impl SortConfig {
    /// Chooses the number of samples of a block by its shared memory, of which a GPU has `shared` bytes. The grid has
    /// `size` cells, and windows have `width` taps.
    pub fn new(axes: usize, bytes: usize, width: usize, size: [usize; 3], samples: usize, shared: usize) -> Self {
        let fixed = has_fixed_points(axes, bytes, width, size);
        let (wide, many) = (samples >= MAX_NARROW, samples >= BUCKET_SORT);
        let staged = SortConfig { axes, bytes, rounds: ROUNDS, wide, many, staged: true, fixed };
        let has_room = staged.shared_of_bucket() + STATIC_OF_BUCKET + 4 * MAX_TABLE <= shared / 2;
        let most = SortConfig { staged: has_room, ..staged };
        if most.shared() + STATIC_SHARED <= shared {
            most
        } else {
            SortConfig { rounds: ROUNDS / 2, ..most }
        }
    }

    /// Returns all kernels.
    pub fn all_kernels(&self) -> [Kernels; 2] {
        [SortProgram::Passes, SortProgram::Others].map(|program| self.kernels(program))
    }

    /// Returns the kernels of a program.
    pub fn kernels(&self, program: SortProgram) -> Kernels {
        let [wide, many, fixed] = [self.wide, self.many, self.fixed].map(usize::from);
        let macros = [
            ("DIM", self.axes),
            ("ROUNDS", self.rounds),
            ("WIDE", wide),
            ("LOOK_BACK", LOOK_BACK),
            ("BUCKETS", many),
            ("BUCKET_ROUNDS", BUCKET_ROUNDS),
            ("STAGED_BUCKETS", usize::from(self.staged)),
            ("FIXED_POINT", fixed),
            ("CELL_BITS", CELL_BITS),
            ("PROGRAM", program as usize),
        ];
        Kernels::new("samples", SAMPLES, self.bytes, &macros)
    }

    /// Returns the number of real numbers that have the size of a point, and of a record.
    pub fn point_reals(&self) -> usize {
        if self.fixed {
            2
        } else {
            4
        }
    }

    /// Returns the dynamic shared memory of a block without the table of keys: its records, or three coordinates for
    /// those in fixed point, and for each place the record that comes there and its digit.
    pub fn shared(&self) -> usize {
        let sample = if self.fixed { 3 } else { 4 } * self.bytes;
        THREADS * self.rounds * (sample + 2 + 1)
    }

    /// Returns the dynamic shared memory of a block that sorts a bucket, without the table of keys.
    pub fn shared_of_bucket(&self) -> usize {
        let record = self.point_reals() * self.bytes + if self.fixed { 4 } else { 0 };
        usize::from(self.staged) * BUCKET_SAMPLES * record
    }

    /// Returns the number of cells whose table is copied to the shared memory of a block: all `cells`, or 0 without
    /// room.
    pub fn table(&self, cells: usize, shared: usize) -> usize {
        let has_room = cells <= MAX_TABLE && self.shared() + STATIC_SHARED + 4 * cells <= shared;
        if has_room {
            cells
        } else {
            0
        }
    }

    /// Returns the number of samples per thread. A few samples are divided over several blocks.
    pub fn rounds(&self, samples: usize) -> usize {
        samples.div_ceil(32 * THREADS).clamp(1, self.rounds)
    }
}

/// Returns the number of bits of the keys of `bins` bins.
fn key_bits(bins: usize) -> u32 {
    usize::BITS - (bins - 1).leading_zeros()
}

/// Returns the number of digits of the keys of `bins` bins.
pub fn passes(bins: usize) -> usize {
    key_bits(bins).div_ceil(DIGIT_BITS).max(1) as usize
}

/// A number by which the kernels divide, in their form.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Divisor {
    pub value: u32,
    /// 2^32 divided by the number, rounded down, or 2^32 - 1 for the number 1.
    reciprocal: u32,
}

impl Divisor {
    pub fn new(value: usize) -> Self {
        Divisor { value: value as u32, reciprocal: u32::try_from((1u64 << 32) / value as u64).unwrap_or(u32::MAX) }
    }
}

/// Returns the number of bins of a bucket, or `None` if a pass is faster than sorting buckets. Most buckets of evenly
/// distributed samples have at most [`BUCKET_SAMPLES`] of them, and their numbers have one digit less than the keys.
pub fn bucket_bins(samples: usize, bins: usize) -> Option<usize> {
    let passes = passes(bins);
    let least = bins.div_ceil(DIGITS.pow(passes as u32 - 1));
    let most = (bins as f64 * BUCKET_MEAN as f64 / samples as f64) as usize;
    (passes > 1 && least <= most).then_some(most.min(DIGITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_of_a_length_that_a_block_sorts() {
        // 168 million samples to 256^3 on several grids in both precisions, and other numbers of samples.
        for (samples, bins, expected) in [
            (168_000_000, 2_048_000, Some(39)),
            (168_000_000, 2_980_800, Some(57)),
            (168_000_000, 11_239_424, Some(215)),
            (168_000_000, 13_824_000, Some(256)),
            (20_000_000, 2_048_000, Some(256)),
            (2_000_000_000, 13_824_000, None),
            (168_000_000, 256, None),
            (17_000_003, 256_000, Some(48)),
        ] {
            let found = bucket_bins(samples, bins);
            assert_eq!(found, expected, "{samples} samples, {bins} bins");
            let Some(found) = found else { continue };
            assert!(passes(bins.div_ceil(found)) == passes(bins) - 1, "{bins} bins: {found} per bucket save no pass");
        }
    }

    /// Divides as `quotient_of` in kernels/samples.cu.
    #[test]
    fn reciprocals_divide_all_numbers() {
        for value in (1..=DIGITS).chain([576, 1000, 1024, 4097]) {
            let Divisor { value, reciprocal } = Divisor::new(value);
            let quotients = [0, 1, 1000, (1 << 24) / value, u32::MAX / value - 1];
            let near = |q: &u32| [(q * value).saturating_sub(1), q * value, q * value + value / 2];
            for x in quotients.iter().flat_map(near).chain([u32::MAX - 1, u32::MAX]) {
                let quotient = ((u64::from(x) * u64::from(reciprocal)) >> 32) as u32;
                assert_eq!(quotient + u32::from(x - quotient * value >= value), x / value, "{x} / {value}");
            }
        }
    }

    /// Checks that blocks of all kernels have the shared memory that they reserve.
    #[test]
    fn blocks_fit_every_gpu() {
        for (axes, bytes, width) in [(2, 4, 8), (2, 8, 8), (3, 4, 8), (3, 8, 8), (3, 8, 9)] {
            for kilobytes in [48, 64, 96, 99, 163, 227] {
                let shared = kilobytes << 10;
                let config = SortConfig::new(axes, bytes, width, [1; 3], BUCKET_SORT, shared);
                let what = format!("{axes} axes, {bytes} bytes, {width} taps, {kilobytes} KiB");
                assert_eq!(config.fixed, (axes, bytes, width) == (3, 8, 8), "{what}");
                assert!(config.shared() + STATIC_SHARED <= shared, "{what}");
                assert!(config.shared_of_bucket() + 4 * MAX_TABLE + STATIC_OF_BUCKET <= shared, "{what}");
                assert_eq!(config.staged, kilobytes == 227 && (bytes == 4 || config.fixed), "{what}");
            }
        }
    }

    #[test]
    fn digits_cover_all_keys() {
        for bins in [1, 2, 255, 256, 257, 1 << 20, (1 << 24) + 1, u32::MAX as usize] {
            let passes = passes(bins);
            assert!((1..=MAX_PASSES).contains(&passes), "{bins}");
            assert!((DIGIT_BITS as usize * passes) as f64 >= (bins as f64).log2(), "{bins}");
        }
    }
}
