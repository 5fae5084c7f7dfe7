//! Transform lengths for which FFTs are fast.

/// Returns the smallest even number of at least `n` whose prime factors are 2, 3, 5 and at most one 7. Above 64 it is a
/// multiple of 8, so that lines of a grid nearly fill vectors.
pub fn next_fast_size(n: usize) -> usize {
    next_fast_multiple(n, if n > 64 { 8 } else { 2 })
}

/// The sizes of oversampled grids that a backend transforms fast.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum GridSizes {
    /// The sizes of [`next_fast_size`].
    #[default]
    Usual,
    /// In 3D also other even numbers of planes, and of rows of a plane, if they are much smaller.
    EvenPlanes,
}

impl GridSizes {
    /// Returns the smallest size of at least `n` for this axis of a grid with `ndim` axes.
    pub fn next(self, ndim: usize, axis: usize, n: usize) -> usize {
        let usual = next_fast_size(n);
        if self == GridSizes::Usual || ndim < 3 || axis == 0 {
            return usual;
        }
        let even = next_fast_multiple(n, 2);
        if 20 * even <= 19 * usual {
            even
        } else {
            usual
        }
    }
}

/// Returns the smallest multiple of `step` of at least `n` whose prime factors are 2, 3, 5 and at most one 7. `step`
/// has only such factors.
fn next_fast_multiple(n: usize, step: usize) -> usize {
    let mut size = n.next_multiple_of(step);
    while !matches!(without_small_factors(size), 1 | 7) {
        size += step;
    }
    size
}

/// Returns whether a nonzero `n` has only the prime factors 2, 3, 5 and 7.
pub fn is_product_of_small_primes(n: usize) -> bool {
    without_factor::<7>(without_small_factors(n)) == 1
}

/// Divides a nonzero `n` by 2, 3 and 5 as often as possible.
fn without_small_factors(n: usize) -> usize {
    without_factor::<5>(without_factor::<3>(n >> n.trailing_zeros()))
}

/// Divides a nonzero `n` by P as often as possible. Plans test hundreds of sizes, and a division by a constant is a
/// multiplication.
fn without_factor<const P: usize>(mut n: usize) -> usize {
    while n.is_multiple_of(P) {
        n /= P;
    }
    n
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_sizes() {
        for n in 1..3000 {
            let size = next_fast_size(n);
            assert!(size >= n && size.is_multiple_of(2) && size < 2 * n + 2);
        }
        assert_eq!(next_fast_size(161), 168);
        assert_eq!(next_fast_size(33), 36);
    }

    #[test]
    fn grids_of_a_cpu_have_fewer_rows_and_planes() {
        let sizes = |n| [0, 1, 2].map(|axis| GridSizes::EvenPlanes.next(3, axis, n));
        assert_eq!([50, 82, 85, 97].map(sizes), [[50; 3], [96, 84, 84], [96, 90, 90], [112, 100, 100]]);
        // Slightly smaller ones are not faster.
        assert_eq!([108, 122].map(sizes), [[112; 3], [128; 3]]);
        for n in 1..1000 {
            let usual = next_fast_size(n);
            assert!(sizes(n).iter().all(|size| (n..=usual).contains(size) && size.is_multiple_of(2)), "{n}");
            assert_eq!([0, 1].map(|axis| GridSizes::EvenPlanes.next(2, axis, n)), [usual; 2]);
            assert_eq!([0, 1, 2].map(|axis| GridSizes::Usual.next(3, axis, n)), [usual; 3]);
        }
    }
}
