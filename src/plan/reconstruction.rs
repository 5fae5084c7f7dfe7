//! Iterative reconstruction, density weights, and coil maps.

use super::state::PlanState;
use super::Plan;
use crate::backend::{Sink, Source};
use crate::base::error::{bail, try_collect, try_vec, Result};
use crate::base::geometry::{check_finite, check_len};
use crate::base::options::LambdaUnit;
use crate::base::real::{narrow, wide, Real};
use crate::base::results::{check_result, check_results};
use crate::reconstruction::cg::{self, CgOptions, CgReport, Progress};
use crate::reconstruction::density::Density;
use crate::reconstruction::discrepancy;
use crate::simulation::phantom::white_noise;
use num_complex::Complex;
use std::ops::ControlFlow;
use std::time::Instant;

impl<T: Real> Plan<T> {
    /// Solves (E^H W E + lambda R^H R) x = E^H W d by conjugate gradients, separately for each image.
    ///
    /// Many iterations without a prior amplify errors of E^H d at spatial frequencies that were not sampled. Use the
    /// default tolerance or a smaller one for them.
    ///
    /// # Errors
    /// As [`Plan::adjoint`]; `InvalidArgument`, `ToleranceOutOfRange` and `SizeMismatch` for invalid options;
    /// `NotFinite` on overflow. After an error the image is unchanged.
    pub fn cg<'a>(
        &self,
        kspace: impl Into<Source<'a, Complex<T>>>,
        image: impl Into<Sink<'a, Complex<T>>>,
        options: &CgOptions<'_, T>,
    ) -> Result<CgReport> {
        self.cg_with_progress(kspace, image, options, |_| ControlFlow::Continue(()))
    }

    /// Solves as [`Plan::cg`] does, and calls `progress` before the first and after each iteration.
    ///
    /// # Errors
    /// Also `Cancelled` if `progress` returns `Break`; the image is then unchanged. If [`crate::Options::interrupt`]
    /// ends the call, `progress` is not called again.
    pub fn cg_with_progress<'a>(
        &self,
        kspace: impl Into<Source<'a, Complex<T>>>,
        image: impl Into<Sink<'a, Complex<T>>>,
        options: &CgOptions<'_, T>,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<CgReport> {
        let (kspace, image) = (kspace.into(), image.into());
        let call = self.begin();
        call.check_image_len(image.len())?;
        call.check_kspace(kspace)?;
        cg::check(options)?;
        if let Some(initial) = options.initial {
            let name = "voxels of the initial image";
            check_len(name, initial.len(), call.params.image_len(), "the size of the result")?;
            check_finite("voxel of the initial image", initial)?;
        }
        let started = Instant::now();
        call.engine.prepare_normal()?;
        let mut report = CgReport { q_seconds: started.elapsed().as_secs_f64(), ..CgReport::default() };
        report.lambda = match options.lambda_unit {
            _ if options.noise_level > 0.0 => call.lambda_of_noise(kspace, options, &mut progress)?,
            LambdaUnit::Relative if options.lambda > 0.0 => options.lambda * call.engine.mean_diagonal()?,
            _ => options.lambda,
        };
        check_result("lambda", report.lambda)?;
        let options = CgOptions { lambda: report.lambda, lambda_unit: LambdaUnit::Absolute, ..*options };
        call.engine.cg(kspace, image, &options, &mut report, &mut progress)?;
        call.finish(report)
    }

    /// Computes density weights for this trajectory, [samples].
    ///
    /// # Errors
    /// `InvalidArgument` for invalid parameters.
    pub fn density(&self, method: Density) -> Result<Vec<T>> {
        let call = self.begin();
        let weights = call.engine.density(method, None)?;
        check_results("density weight", &weights)?;
        call.finish(weights)
    }

    /// Computes density weights as [`Plan::density`] does; the iteration of Pipe and Menon begins with the positive
    /// weights `initial`, [samples]. Samples at the same position keep the ratio of their initial weights.
    pub(crate) fn density_from(&self, method: Density, initial: &[T]) -> Result<Vec<T>> {
        let call = self.begin();
        check_len("initial weights", initial.len(), call.samples, "one per sample")?;
        let weights = call.engine.density(method, Some(initial))?;
        check_results("density weight", &weights)?;
        call.finish(weights)
    }

    /// Estimates coil sensitivities from the centre of k-space of the data, [nx, ny, nz, coils]. [`crate::coils`]
    /// describes the method and its limits. `calibration` is the width of that centre in samples of a Cartesian scan; 0
    /// means the default.
    ///
    /// # Errors
    /// As [`Plan::adjoint`]; `Unsupported` for a list of voxels; `InvalidArgument` if the centre contains no samples.
    pub fn coil_maps(&self, kspace: &[Complex<T>], calibration: usize) -> Result<Vec<Complex<T>>> {
        let call = self.begin();
        call.check_kspace(kspace.into())?;
        let maps = call.engine.coil_maps(kspace, call.params.frames, calibration)?;
        check_results("coil sensitivity", &maps)?;
        call.finish(maps)
    }
}

impl<T: Real> PlanState<T> {
    /// Finds the absolute lambda for all images together from the noise level, by the discrepancy principle.
    fn lambda_of_noise(
        &self,
        kspace: Source<'_, Complex<T>>,
        options: &CgOptions<'_, T>,
        progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<f64> {
        let Source::Host(data) = kspace else {
            bail!(
                Unsupported,
                "lambda cannot be found from the noise level for data on a GPU: find it once for data in host memory, \
                 and then set lambda"
            );
        };
        if self.limits.maxima.weight.is_some() {
            bail!(
                Unsupported,
                "lambda cannot be found from the noise level in a plan with density weights, as the noise is the same \
                 in all samples: create the plan without density weights, or set lambda"
            );
        }
        let what = "the search for lambda";
        let image_len = self.params.image_len();
        self.engine.check_memory((image_len + 2 * data.len()) * size_of::<Complex<T>>(), what)?;
        let mut image = try_vec(image_len, Complex::default(), what)?;
        let mut model = try_vec(data.len(), Complex::default(), what)?;
        let noise = try_collect(data.len(), what, white_noise(1.0, 0).take(data.len()).map(narrow))?;
        let mean = self.engine.mean_diagonal()?;
        let mut squared_misfit = |data: &[Complex<T>], lambda: f64| -> Result<f64> {
            let options = CgOptions { lambda: lambda * mean, lambda_unit: LambdaUnit::Absolute, ..*options };
            let mut report = CgReport::default();
            self.engine.cg(data.into(), (&mut image[..]).into(), &options, &mut report, progress)?;
            self.engine.forward((&image[..]).into(), (&mut model[..]).into())?;
            let square = |(m, d): (&Complex<T>, &Complex<T>)| (wide(*m) - wide(*d)).norm_sqr();
            Ok(model.iter().zip(data).map(square).sum())
        };
        let floor = discrepancy::MisfitFloor {
            data: squared_misfit(data, discrepancy::MisfitFloor::LAMBDA)?,
            noise: squared_misfit(&noise, discrepancy::MisfitFloor::LAMBDA)?,
            samples: data.len(),
        };
        let sought = floor.target(options.noise_level)?;
        let level = options.noise_level;
        let (relative, reached) = discrepancy::lambda(level, |lambda| Ok(squared_misfit(data, lambda)? / sought))?;
        floor.warn(level, reached, options.iterations)?;
        log::info!("lambda {relative:.4} by a noise level of {}", options.noise_level);
        Ok(relative * mean)
    }
}
