//! The rule for results: a call that succeeds returns finite numbers only.
//!
//! Functions compute into their own arrays, check these with [`check_results`], and then write the caller's arrays. The
//! C API writes through `ResultArray` of src/ffi/arrays.rs, which checks every number that Rust has not checked.

use crate::base::error::{bail, Result};
use crate::base::real::{Real, ResultNumber};

/// Returns an error if a result is not finite. The message contains the index of the first.
///
/// # Errors
/// `NotFinite`.
pub fn check_results<N: ResultNumber>(what: &str, values: &[N]) -> Result<()> {
    /// A block is read without branches, so that the compiler vectorises the loop.
    const BLOCK: usize = 1024;
    let is_bad = |block: &[N]| !block.iter().fold(true, |all, value| all & value.is_finite_number());
    let Some(block) = values.chunks(BLOCK).position(is_bad) else { return Ok(()) };
    let first = block * BLOCK;
    let at = first + values[first..].iter().position(|value| !value.is_finite_number()).unwrap_or(0);
    let remedy = match N::PRECISION_NAME {
        <f64 as Real>::NAME => "scale the input",
        _ => "scale the input, or use double precision",
    };
    bail!(NotFinite, "{what} {at} overflows {} (it is {}): {remedy}", N::PRECISION_NAME, values[at].text())
}

/// Returns an error if a single result is not finite.
///
/// # Errors
/// `NotFinite`.
pub fn check_result(what: &str, value: f64) -> Result<()> {
    if !value.is_finite() {
        bail!(NotFinite, "{what} overflows f64 (it is {value}): scale the input");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;
    use num_complex::Complex;

    #[test]
    fn errors_name_the_first_number_that_is_not_finite() {
        let mut values = vec![Complex::new(1.0f32, f32::MAX); 5000];
        check_results("voxel", &values).unwrap();
        check_results::<f64>("voxel", &[]).unwrap();
        values[4321].im = f32::INFINITY;
        values[4400].re = f32::NAN;
        let e = check_results("voxel", &values).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::NotFinite);
        assert_eq!(e.message(), "voxel 4321 overflows f32 (it is 1 + infi): scale the input, or use double precision");
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for at in [0, 1, 1023, 1024, 2047] {
                let mut values = vec![0.0; 2048];
                values[at] = bad;
                let e = check_results("weight", &values).unwrap_err();
                assert!(e.message().starts_with(&format!("weight {at} overflows f64 ")), "{e}");
            }
            assert_eq!(check_result("lambda", bad).unwrap_err().kind(), ErrorKind::NotFinite);
        }
        check_result("lambda", f64::MIN_POSITIVE / 2.0).unwrap();
    }
}
