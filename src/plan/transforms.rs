//! Transforms between images and k-space, gridding, and Q.

use super::state::{SAMPLE, VOXEL};
use super::Plan;
use crate::backend::{Sink, Source};
use crate::base::atomic_file::{write_atomically, AtomicFiles};
use crate::base::error::{bail, checked_product, try_vec, Result};
use crate::base::geometry::check_len;
use crate::base::interrupt;
use crate::base::options::Filter;
use crate::base::real::Real;
use crate::base::results::check_results;
use crate::reconstruction::density::Weighting;
use num_complex::Complex;
use std::path::Path;

impl<T: Real> Plan<T> {
    /// Computes kspace = E image, the samples that the scanner would measure.
    ///
    /// # Errors
    /// `SizeMismatch` for a wrong length; `NotFinite` if the image contains a NaN or infinity, with its index, or if
    /// the result overflows.
    pub fn forward<'a>(
        &self,
        image: impl Into<Source<'a, Complex<T>>>,
        kspace: impl Into<Sink<'a, Complex<T>>>,
    ) -> Result<()> {
        let (image, kspace) = (image.into(), kspace.into());
        let call = self.begin();
        call.check_image_len(image.len())?;
        call.check_kspace_len(kspace.len())?;
        let forward = |kspace: Sink<'_, Complex<T>>| call.engine.forward(image, kspace);
        call.with_deferred_check((VOXEL, image, call.limits.forward), (SAMPLE, kspace), forward)?;
        call.finish(())
    }

    /// Computes image = E^H kspace, unscaled and without weights: F^H d of Stone et al. 2008.
    ///
    /// # Errors
    /// `SizeMismatch` for a wrong length; `NotFinite` if the data contain a NaN or infinity, with its index, or if the
    /// result overflows.
    pub fn adjoint<'a>(
        &self,
        kspace: impl Into<Source<'a, Complex<T>>>,
        image: impl Into<Sink<'a, Complex<T>>>,
    ) -> Result<()> {
        self.to_images(Weighting::None, kspace.into(), image.into())
    }

    /// Computes image = E^H W kspace with the density weights W, which are 1 if the geometry has none.
    ///
    /// # Errors
    /// As [`Plan::adjoint`].
    pub fn weighted_adjoint<'a>(
        &self,
        kspace: impl Into<Source<'a, Complex<T>>>,
        image: impl Into<Sink<'a, Complex<T>>>,
    ) -> Result<()> {
        self.to_images(Weighting::Given, kspace.into(), image.into())
    }

    /// Computes the gridding reconstruction: the adjoint of density-compensated data, scaled so that a fully sampled
    /// object keeps its scale. If the geometry has no weights, those of Pipe and Menon are computed once.
    ///
    /// # Errors
    /// As [`Plan::adjoint`]. `InvalidArgument` if no sample with a positive weight lies near the centre of k-space (as
    /// in an annulus), which determines the scale of the image. `InvalidArgument` if one weight exceeds all others by
    /// far.
    pub fn grid<'a>(
        &self,
        kspace: impl Into<Source<'a, Complex<T>>>,
        image: impl Into<Sink<'a, Complex<T>>>,
    ) -> Result<()> {
        self.to_images(Weighting::Gridding, kspace.into(), image.into())
    }

    /// Computes the filtered backprojection of 2D radial data, for spokes at any angles.
    ///
    /// Each spoke is multiplied by the ramp |k| and the filter's window, and transformed to positions along its line.
    /// It is then added to every voxel by linear interpolation (Schiwietz et al. 2006). Spokes are recognised from the
    /// trajectory, whose samples must be in the order of acquisition.
    ///
    /// Each sample is weighted by its area of k-space, so that an object keeps its scale for any angles, as with
    /// [`Plan::grid`]. The geometry's weights are not used. The method is gridding with a simpler interpolation, which
    /// is less accurate near the edge of k-space; [`Plan::grid`] is faster.
    ///
    /// # Errors
    /// As [`Plan::adjoint`]; `Unsupported` in 3D and for a list of voxels. `InvalidArgument` if the samples are not
    /// evenly spaced spokes of one length through the centre of k-space, or if the spokes do not cover a sector of
    /// k-space.
    pub fn fbp<'a>(
        &self,
        filter: Filter,
        kspace: impl Into<Source<'a, Complex<T>>>,
        image: impl Into<Sink<'a, Complex<T>>>,
    ) -> Result<()> {
        self.to_images(Weighting::Backprojection(filter), kspace.into(), image.into())
    }

    /// Computes the gridding reconstruction as far as the gridded k-space: [gx, gy, gz, coils, frames] on the
    /// oversampled grid ([`crate::PlanInfo::grid`]), with k = 0 in cell floor(g/2). The image is the sum over cells u
    /// of grid(u) exp(+i 2 pi u.r / g), multiplied by [`Plan::window_correction`] of each axis.
    ///
    /// # Errors
    /// As [`Plan::grid`]; `Unsupported` with method exact, which has no grid.
    pub fn grid_kspace(&self, kspace: &[Complex<T>], grid: &mut [Complex<T>]) -> Result<()> {
        let call = self.begin();
        call.check_kspace(kspace.into())?;
        let info = call.engine.info();
        if info.grid.is_empty() {
            bail!(Unsupported, "there is no grid with method exact: create the plan with method nufft");
        }
        let cells: usize = info.grid.iter().product();
        let arrays = kspace.len() / call.samples;
        let needed = checked_product(&[cells, arrays], "the gridded k-space")?;
        check_len("cells of gridded k-space", grid.len(), needed, "the plan's grid times coils and frames")?;
        let mut result = try_vec(grid.len(), Complex::default(), "the gridded k-space")?;
        for (i, values) in kspace.chunks_exact(call.samples).enumerate() {
            interrupt::check("gridding")?;
            call.engine.grid_kspace(values, &mut result[i * cells..(i + 1) * cells])?;
        }
        check_results("cell of gridded k-space", &result)?;
        grid.copy_from_slice(&result);
        call.finish(())
    }

    /// Returns the factors along an axis by which an image is multiplied after the FFT of gridded k-space: [n], empty
    /// with exact sums.
    ///
    /// # Errors
    /// `OutOfHostMemory`.
    pub fn window_correction(&self, axis: usize) -> Result<Vec<f64>> {
        self.snapshot().engine.window_correction(axis)
    }

    /// Computes an adjoint with this weighting of the samples.
    fn to_images(
        &self,
        weighting: Weighting,
        kspace: Source<'_, Complex<T>>,
        image: Sink<'_, Complex<T>>,
    ) -> Result<()> {
        let call = self.begin();
        call.check_image_len(image.len())?;
        call.check_kspace_len(kspace.len())?;
        // Weights take many transforms, between which the call can be interrupted.
        call.engine.prepare_adjoint(weighting)?;
        let limit = match weighting {
            Weighting::None | Weighting::Given => call.limits.adjoint,
            Weighting::Gridding | Weighting::Backprojection(_) => call.limits.grid,
        };
        let adjoint = |image: Sink<'_, Complex<T>>| call.engine.adjoint(weighting, kspace, image);
        match weighting {
            Weighting::Backprojection(_) => {
                call.with_overflow_check((SAMPLE, kspace, limit), (VOXEL, image), adjoint)?;
            }
            _ => call.with_deferred_check((SAMPLE, kspace, limit), (VOXEL, image), adjoint)?,
        }
        call.finish(())
    }

    /// Computes y = E^H W E x for images in the layout of [`Plan::adjoint`].
    ///
    /// # Errors
    /// `SizeMismatch` for a wrong length; `NotFinite` if x contains a NaN or infinity, with its index, or if the result
    /// overflows.
    pub fn normal<'a>(&self, x: impl Into<Source<'a, Complex<T>>>, y: impl Into<Sink<'a, Complex<T>>>) -> Result<()> {
        let (x, y) = (x.into(), y.into());
        let call = self.begin();
        call.check_image_len(x.len())?;
        call.check_image_len(y.len())?;
        call.engine.prepare_normal()?;
        call.with_overflow_check((VOXEL, x, call.limits.normal), (VOXEL, y), |y| call.engine.normal(x, y))?;
        call.finish(())
    }

    /// Returns the number of elements of Q: 2 nx 2 ny 2 nz, or the number of voxels in a list.
    pub fn q_len(&self) -> usize {
        self.snapshot().params.q_len()
    }

    /// Computes Q(delta) = sum_m w_m |phi(k_m)|^2 exp(+i 2 pi k_m.delta), [2 nx, 2 ny, 2 nz], with displacement delta
    /// at index delta + n. For a list of voxels, Q is computed at the positions in the list.
    ///
    /// # Errors
    /// `SizeMismatch` for a wrong length.
    pub fn q(&self, q: &mut [Complex<T>]) -> Result<()> {
        let call = self.begin();
        let sizes = "2 nx times 2 ny times 2 nz, or the number of voxels in the list";
        check_len("elements of Q", q.len(), call.params.q_len(), sizes)?;
        if call.params.options.interrupt.is_none() && call.limits.q {
            call.engine.q(q)?;
        } else {
            call.via_temporary(q, |q| {
                call.engine.q(q)?;
                check_results("element of Q", q)
            })?;
        }
        call.finish(())
    }

    /// Saves Q, in the form that [`Plan::normal`] and [`Plan::cg`] use, for plans of the same geometry in other
    /// sessions. Follows a link, and writes into a device or a fifo.
    ///
    /// # Errors
    /// `IO` if the file cannot be written: a previous file of this name is then unchanged. `Unsupported` if the plan
    /// does not use Q.
    pub fn save_q(&self, path: impl AsRef<Path>) -> Result<()> {
        write_atomically(|files| self.save_q_among(files, path.as_ref()))
    }

    /// Saves Q as [`Plan::save_q`] does; the file appears together with the others of `files`.
    #[doc(hidden)]
    pub fn save_q_among(&self, files: &mut AtomicFiles, path: &Path) -> Result<()> {
        let call = self.begin();
        call.engine.save_q(files, path).map_err(|e| e.within("could not save Q"))?;
        call.finish(())
    }

    /// Loads Q from a file instead of computing it.
    ///
    /// # Errors
    /// `IO` if the file cannot be read; `BadFile` if it is cut short, damaged, too long, or belongs to a different
    /// geometry.
    pub fn load_q(&self, path: impl AsRef<Path>) -> Result<()> {
        let call = self.begin();
        call.engine.load_q(path.as_ref())?;
        call.finish(())
    }
}
