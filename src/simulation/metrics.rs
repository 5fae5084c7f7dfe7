//! Error measures of an image against the truth: those that papers report, as defined by Stone et al. 2008 (J. Parallel
//! Distrib. Comput. 68:1307).
//!
//! ```
//! use recon::metrics::{compare, Scale};
//! use recon::Complex;
//! let truth = [Complex::new(3.0, 0.0), Complex::new(0.0, 4.0)];
//! let image = truth.map(|x| x * 2.0);
//! assert_eq!(compare(&image, &truth, Scale::None, None)?.percent_error, 100.0);
//! assert_eq!(compare(&image, &truth, Scale::Best, None)?.percent_error, 0.0);
//! # Ok::<(), recon::Error>(())
//! ```

use crate::base::error::{bail, Result};
use crate::base::real::{wide, Real};
use num_complex::Complex;

/// Scaling of the image before the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scale {
    /// No scaling.
    None,
    /// The image is multiplied by the number that minimises the squared error (0 for an image of zeros).
    Best,
}

/// Error of an image x, multiplied by `scale`, against the truth t, over the n voxels compared.
///
/// RMS is the square root of the mean of squared magnitudes, and e = scale x - t.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metrics {
    /// 100 RMS(e) / RMS(t), in percent.
    pub percent_error: f64,
    /// Mean squared error, RMS(e)^2, in squared units of the truth.
    pub mse: f64,
    /// Peak signal to noise ratio, 20 log10(max |t| / RMS(e)), in dB; infinite without error.
    pub psnr_db: f64,
    /// Signal to noise ratio, 20 log10(RMS(t) / RMS(e)), in dB; infinite without error.
    pub snr_db: f64,
    /// Factor of the image: 1 with [`Scale::None`].
    pub scale: Complex<f64>,
}

/// Compares complex images of any shape, voxel by voxel. With [`Scale::Best`] the scale is complex. Voxels for which
/// `mask` is false are omitted. The computation is in double precision for both precisions.
///
/// # Errors
/// - `SizeMismatch` if the lengths of image, truth and mask differ.
/// - `InvalidSize` if there is no voxel to compare.
/// - `NotFinite`, with the index, for a NaN or infinity in any voxel, masked or not, and for squares that overflow.
/// - `InvalidArgument` if the truth is zero everywhere.
pub fn compare<T: Real>(
    image: &[Complex<T>],
    truth: &[Complex<T>],
    scale: Scale,
    mask: Option<&[bool]>,
) -> Result<Metrics> {
    measure(image, truth, scale, mask, |z| z)
}

/// Compares the magnitudes of both images as [`compare`] does, with a real scale.
pub fn compare_magnitude<T: Real>(
    image: &[Complex<T>],
    truth: &[Complex<T>],
    scale: Scale,
    mask: Option<&[bool]>,
) -> Result<Metrics> {
    // The least-squares scale of real, non-negative numbers is real.
    measure(image, truth, scale, mask, |z| Complex::new(z.norm(), 0.0))
}

/// Compares the images after applying `convert` to each voxel.
fn measure<T: Real>(
    image: &[Complex<T>],
    truth: &[Complex<T>],
    scale: Scale,
    mask: Option<&[bool]>,
    convert: impl Fn(Complex<f64>) -> Complex<f64>,
) -> Result<Metrics> {
    if image.len() != truth.len() {
        bail!(SizeMismatch, "the image has {} voxels and the truth {}: give equal sizes", image.len(), truth.len());
    }
    if let Some(mask) = mask {
        if mask.len() != truth.len() {
            bail!(SizeMismatch, "the mask has {} voxels and the image {}: give equal sizes", mask.len(), image.len());
        }
    }
    for (name, voxels) in [("image", image), ("truth", truth)] {
        if let Some(i) = voxels.iter().position(|z| !(z.re.finite() && z.im.finite())) {
            bail!(NotFinite, "voxel {i} of the {name} is {}: remove NaN and infinities before comparing", voxels[i]);
        }
    }
    let pairs = || {
        let is_selected = |i: &usize| mask.is_none_or(|mask| mask[*i]);
        (0..truth.len()).filter(is_selected).map(|i| (convert(wide(image[i])), convert(wide(truth[i]))))
    };

    let (mut count, mut peak, mut truth_energy, mut image_energy) = (0usize, 0.0_f64, 0.0, 0.0);
    let mut product = Complex::new(0.0, 0.0);
    for (x, t) in pairs() {
        count += 1;
        peak = peak.max(t.norm());
        truth_energy += t.norm_sqr();
        image_energy += x.norm_sqr();
        product += x.conj() * t;
    }
    if count == 0 {
        bail!(InvalidSize, "there are no voxels to compare: give an image, and a mask that selects some of its voxels");
    }
    if peak == 0.0 {
        bail!(InvalidArgument, "the truth is zero in all {count} voxels: errors relative to it are undefined");
    }
    let scale = match scale {
        Scale::None => Complex::new(1.0, 0.0),
        Scale::Best if image_energy == 0.0 => Complex::new(0.0, 0.0),
        Scale::Best => product / image_energy,
    };
    let error_energy: f64 = pairs().map(|(x, t)| (scale * x - t).norm_sqr()).sum();
    if truth_energy == 0.0 || !(truth_energy + image_energy + error_energy).is_finite() {
        bail!(NotFinite, "squares of voxels overflow or vanish in f64 (the peak of the truth is {peak}): rescale both");
    }

    let mse = error_energy / count as f64;
    Ok(Metrics {
        // Roots and logarithms come first, because quotients of squares may overflow.
        percent_error: 100.0 * (error_energy.sqrt() / truth_energy.sqrt()),
        mse,
        psnr_db: 20.0 * peak.log10() - 10.0 * mse.log10(),
        snr_db: 10.0 * (truth_energy.log10() - error_energy.log10()),
        scale,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;

    fn c(re: f64, im: f64) -> Complex<f64> {
        Complex::new(re, im)
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-12 * b.abs().max(1.0)
    }

    #[test]
    fn measures_match_values_computed_by_hand() {
        // Errors 1, i, 0, -1: energy 3 of 4 voxels. Truth 3, 4i, 0, 12: energy 169.
        let truth = [c(3.0, 0.0), c(0.0, 4.0), c(0.0, 0.0), c(12.0, 0.0)];
        let image = [c(4.0, 0.0), c(0.0, 5.0), c(0.0, 0.0), c(11.0, 0.0)];
        let m = compare(&image, &truth, Scale::None, None).unwrap();
        assert!(close(m.mse, 0.75));
        assert!(close(m.percent_error, 100.0 * 3f64.sqrt() / 13.0));
        assert!(close(m.psnr_db, 10.0 * (144.0 / 0.75_f64).log10()));
        assert!(close(m.snr_db, 10.0 * (169.0 / 3.0_f64).log10()));
        assert_eq!(m.scale, c(1.0, 0.0));

        // Without the last voxel: energy 2 of 3 voxels, truth 25, peak 4.
        let m = compare(&image, &truth, Scale::None, Some(&[true, true, true, false])).unwrap();
        assert!(close(m.mse, 2.0 / 3.0));
        assert!(close(m.percent_error, 100.0 * 2f64.sqrt() / 5.0));
        assert!(close(m.psnr_db, 10.0 * (16.0 / (2.0 / 3.0_f64)).log10()));
    }

    #[test]
    fn best_scale_undoes_any_complex_factor() {
        let truth: Vec<_> = (0..50).map(|i| c((i as f64).sin(), (2.0 * i as f64).cos())).collect();
        let factor = c(-0.3, 1.7);
        let image: Vec<_> = truth.iter().map(|t| t / factor).collect();
        let m = compare(&image, &truth, Scale::Best, None).unwrap();
        assert!((m.scale - factor).norm() < 1e-13 && m.percent_error < 1e-12 && m.psnr_db > 280.0);
        // Magnitudes need only the magnitude of the factor.
        let m = compare_magnitude(&image, &truth, Scale::Best, None).unwrap();
        assert!((m.scale - factor.norm()).norm() < 1e-13 && m.percent_error < 1e-12);
        assert!(compare(&image, &truth, Scale::None, None).unwrap().percent_error > 50.0);
    }

    #[test]
    fn best_scale_is_a_minimum() {
        let truth = [c(1.0, 2.0), c(-3.0, 0.5), c(0.25, -1.0)];
        let image = [c(0.5, 1.0), c(2.0, 0.0), c(1.0, 1.0)];
        let best = compare(&image, &truth, Scale::Best, None).unwrap();
        for step in [c(1e-3, 0.0), c(-1e-3, 0.0), c(0.0, 1e-3), c(0.0, -1e-3)] {
            let other = image.map(|x| x * (best.scale + step));
            assert!(compare(&other, &truth, Scale::None, None).unwrap().mse > best.mse);
        }
    }

    #[test]
    fn magnitudes_ignore_the_phase() {
        let truth = [c(3.0, 4.0), c(0.0, -2.0)];
        let image = [c(0.0, 5.0), c(2.0, 0.0)];
        let m = compare_magnitude(&image, &truth, Scale::None, None).unwrap();
        assert_eq!((m.mse, m.percent_error), (0.0, 0.0));
        assert_eq!((m.psnr_db, m.snr_db), (f64::INFINITY, f64::INFINITY));
        assert!(compare(&image, &truth, Scale::None, None).unwrap().mse > 1.0);
    }

    #[test]
    fn f32_is_compared_in_f64() {
        let truth = vec![Complex::new(1.0_f32, 0.0); 1000];
        let image = vec![Complex::new(1.0_f32 + 1e-4, 0.0); 1000];
        let m = compare(&image, &truth, Scale::None, None).unwrap();
        let expected = 100.0 * (image[0].re as f64 - 1.0);
        assert!((m.percent_error - expected).abs() < 1e-12);
    }

    #[test]
    fn a_zero_image_has_an_error_of_100_percent() {
        let truth = [c(1.0, 0.0), c(0.0, 1.0)];
        let m = compare(&[c(0.0, 0.0); 2], &truth, Scale::Best, None).unwrap();
        assert_eq!((m.percent_error, m.scale), (100.0, c(0.0, 0.0)));
    }

    #[test]
    fn invalid_comparisons_are_errors() {
        let one = [c(1.0, 0.0); 3];
        let fails = |image: &[Complex<f64>], truth: &[Complex<f64>], mask: Option<&[bool]>| {
            let e = compare(image, truth, Scale::Best, mask).unwrap_err();
            assert_eq!(compare_magnitude(image, truth, Scale::None, mask).unwrap_err().kind(), e.kind());
            (e.kind(), e.message().to_owned())
        };
        let mut bad = one;
        bad[1].im = f64::NAN;
        for (kind, message) in
            [fails(&bad, &one, None), fails(&one, &bad, None), fails(&bad, &one, Some(&[true, false, true]))]
        {
            assert_eq!(kind, ErrorKind::NotFinite);
            assert!(message.contains("voxel 1 "), "{message}");
        }
        bad[1].im = f64::INFINITY;
        assert_eq!(fails(&bad, &one, None).0, ErrorKind::NotFinite);
        assert_eq!(fails(&[c(1e200, 0.0); 3], &one, None).0, ErrorKind::NotFinite);
        assert_eq!(fails(&one, &one[..2], None).0, ErrorKind::SizeMismatch);
        assert_eq!(fails(&one, &one, Some(&[true])).0, ErrorKind::SizeMismatch);
        assert_eq!(fails(&one, &one, Some(&[false; 3])).0, ErrorKind::InvalidSize);
        assert_eq!(fails(&[], &[], None).0, ErrorKind::InvalidSize);
        assert_eq!(fails(&one, &[c(0.0, 0.0); 3], None).0, ErrorKind::InvalidArgument);
    }
}
