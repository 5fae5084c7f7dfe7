//! Roots of unity, the factors of FFTs.

use super::error::{try_reserve, Result};
use num_complex::Complex;
use std::f64::consts::TAU;

/// Returns exp(-i 2 pi k / n) for all k below n. The roots of the second half are conjugates of the first half. `what`
/// appears in an error.
pub fn roots_of_unity(n: usize, what: &str) -> Result<Vec<Complex<f64>>> {
    let (half, mut roots) = (n / 2, try_reserve(n, what)?);
    // If n is a multiple of 4, all angles are multiples of 2 pi / n, and there are sines and cosines of an eighth of a
    // turn in the table. They take most of the time.
    let table_len = if n.is_multiple_of(4) { n / 8 + 1 } else { 0 };
    let mut table = try_reserve(table_len, what)?;
    table.extend((0..table_len).map(|j| sin_cos(4 * j, n)));
    for quarter in 0..=2 {
        let first = |quarter: usize| (2 * quarter * n).saturating_sub(n).div_ceil(8);
        for k in first(quarter)..first(quarter + 1).min(half + 1) {
            // The angle is reduced to an eighth of a turn from a multiple of a quarter, where rounding of the angle
            // does not affect sine and cosine. This is a multiple of 2 pi / (4 n).
            let (angle, origin) = (4 * k, quarter * n);
            let distance = angle.abs_diff(origin);
            let (sin, cos) = table.get(distance / 4).copied().unwrap_or_else(|| sin_cos(distance, n));
            let sin = if angle < origin { -sin } else { sin };
            let (cos, sin) = [(cos, sin), (-sin, cos), (-cos, -sin)][quarter];
            roots.push(Complex::new(cos, -sin));
        }
    }
    roots.truncate(n);
    for k in half + 1..n {
        let root: Complex<f64> = roots[n - k];
        roots.push(root.conj());
    }
    Ok(roots)
}

/// Returns sine and cosine of 2 pi `fourth` / (4 n).
fn sin_cos(fourth: usize, n: usize) -> (f64, f64) {
    (TAU * fourth as f64 / (4.0 * n as f64)).sin_cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_exact_at_the_quarters_and_close_elsewhere() {
        for n in (1usize..=100).chain([640, 1000, 1024, 1543]) {
            let roots = roots_of_unity(n, "a test").unwrap();
            assert_eq!(roots.len(), n);
            for (k, z) in roots.into_iter().enumerate() {
                let angle = -TAU * k as f64 / n as f64;
                assert!((z - Complex::new(angle.cos(), angle.sin())).norm() < 1e-14, "{k} / {n}");
                assert!((4 * k % n != 0) || z.re.abs() + z.im.abs() == 1.0, "{k} / {n}: {z}");
                assert!((z.norm() - 1.0).abs() < 3e-16);
            }
        }
    }
}
