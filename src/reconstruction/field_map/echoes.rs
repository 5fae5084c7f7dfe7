//! Images of several echoes, and the checks of their sizes and times.

use crate::base::error::{bail, checked_product, Result};
use crate::base::geometry::{check_dims, check_len};
use crate::base::real::Real;
use num_complex::Complex;

/// Largest echo time in seconds. Larger numbers are taken to be milliseconds.
const LATEST: f64 = 1.0;
/// Smallest time between two echoes in seconds. Scanners need longer for a single sample.
const LEAST_SPACING: f64 = 1e-8;

/// Images of several echoes.
#[derive(Debug, Clone, Copy)]
pub struct Echoes<'a, T: Real> {
    /// Images of the single coils, [dims, coils, echoes].
    pub images: &'a [Complex<T>],
    /// Number of voxels along x, y and, in 3D, z.
    pub dims: &'a [usize],
    /// Number of receive coils.
    pub coils: usize,
    /// Echo times in seconds, increasing. Only their differences matter.
    pub times: &'a [f64],
}

impl<T: Real> Echoes<'_, T> {
    /// Checks sizes and times and returns the number of voxels.
    pub(super) fn check(&self) -> Result<usize> {
        check_dims(self.dims)?;
        if self.coils == 0 {
            bail!(InvalidSize, "the number of coils is 0: give at least one");
        }
        let echoes = self.times.len();
        if echoes < 2 {
            bail!(InvalidSize, "{echoes} echo times: a field map needs images of at least two echoes");
        }
        for (k, &t) in self.times.iter().enumerate() {
            if !t.is_finite() {
                bail!(NotFinite, "echo time {k} is {t}: it must be a number of seconds");
            }
            if t.abs() > LATEST {
                bail!(
                    InvalidArgument,
                    "echo time {k} is {t} s: give seconds (these look like milliseconds, which must be divided by 1000)"
                );
            }
        }
        if let Some(k) = self.times.windows(2).position(|t| t[1] > t[0] && t[1] - t[0] < LEAST_SPACING) {
            bail!(
                InvalidArgument,
                "echo time {} is {:e} s after the previous one: give seconds, at least {LEAST_SPACING:e} s apart",
                k + 1,
                self.times[k + 1] - self.times[k]
            );
        }
        if let Some(k) = self.times.windows(2).position(|t| t[0] >= t[1]) {
            bail!(
                InvalidArgument,
                "echo time {} is {} s and follows {} s: give images and times in the order of increasing times, each time \
                 once",
                k + 1,
                self.times[k + 1],
                self.times[k]
            );
        }
        let voxels = checked_product(self.dims, "the image")?;
        let needed = checked_product(&[voxels, self.coils, echoes], "the images of echoes")?;
        check_len("voxels of images", self.images.len(), needed, "voxels times coils times echoes")?;
        Ok(voxels)
    }
}
