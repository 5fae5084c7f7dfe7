//! Transform lengths for which FFTs are fast.

/// Returns the smallest even number of at least `n` whose prime factors are 2, 3, 5 and at most one 7. Above 64 it is a
/// multiple of 8, so that lines of a grid nearly fill vectors.
pub fn next_fast_size(n: usize) -> usize {
    let step = if n > 64 { 8 } else { 2 };
    let mut size = n.next_multiple_of(step);
    while !matches!(without_factors(size, &[2, 3, 5]), 1 | 7) {
        size += step;
    }
    size
}

/// Returns whether a nonzero `n` has only the prime factors 2, 3, 5 and 7.
pub fn is_product_of_small_primes(n: usize) -> bool {
    without_factors(n, &[2, 3, 5, 7]) == 1
}

/// Divides a nonzero `n` by these primes as often as possible.
fn without_factors(mut n: usize, primes: &[usize]) -> usize {
    for &p in primes {
        while n.is_multiple_of(p) {
            n /= p;
        }
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
}
