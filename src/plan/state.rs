//! The state of a plan between two changes, a call in progress, and the protection of the caller's outputs.

use super::params::PlanParams;
use crate::backend::{Sink, Source};
use crate::base::error::Result;
use crate::base::float_mode::FloatMode;
use crate::base::geometry::{check_below, check_len};
use crate::base::input_check;
use crate::base::interrupt::{self, ActiveInterrupt};
use crate::base::memory::Aligned;
use crate::base::real::Real;
use crate::base::results::check_results;
use crate::base::warning::Warning;
use crate::base::workers::copy;
use crate::engine::interface::Engine;
use crate::engine::interruption::Interruption;
use crate::reconstruction::gridding_scale::LARGEST_WEIGHT;
use num_complex::Complex;
use std::sync::Arc;

/// Name of an element of a k-space array in messages.
pub(super) const SAMPLE: &str = "k-space sample";
/// Name of an element of an image array in messages.
pub(super) const VOXEL: &str = "image voxel";

/// The state of a plan until its next change. An operation keeps the state with which it began.
pub(super) struct PlanState<T: Real> {
    pub engine: Box<dyn Engine<T>>,
    pub params: Arc<PlanParams>,
    pub samples: usize,
    /// Duration of creating this state, in seconds.
    pub seconds: f64,
    pub warnings: Vec<Warning>,
    pub limits: OverflowLimits<T>,
    pub interruption: Interruption,
}

impl<T: Real> PlanState<T> {
    /// Logs that the system refused threads, if that is known and was not logged yet. Neither the creation of a plan
    /// nor its calls wait for threads, which may take longer to start than a small image takes to reconstruct.
    pub fn log_new_warning(&self) {
        self.engine.new_warning().into_iter().for_each(|warning| log::warn!("{warning}"));
    }
}

/// A call in progress. It uses the standard floating-point mode and polls the caller's interrupt callback.
pub(super) struct PlanCall<T: Real> {
    pub state: Arc<PlanState<T>>,
    is_finished: bool,
    _interrupt: ActiveInterrupt,
    _mode: FloatMode,
}

impl<T: Real> PlanCall<T> {
    /// Begins a call with this state.
    pub fn new(state: Arc<PlanState<T>>) -> Self {
        PlanCall {
            is_finished: false,
            _interrupt: ActiveInterrupt::new(state.params.options.interrupt.clone()),
            _mode: FloatMode::standard(),
            state,
        }
    }

    /// Ends the call successfully and returns its result.
    pub fn finish<R>(mut self, result: R) -> Result<R> {
        self.is_finished = true;
        self.state.log_new_warning();
        Ok(result)
    }
}

impl<T: Real> std::ops::Deref for PlanCall<T> {
    type Target = PlanState<T>;
    fn deref(&self) -> &PlanState<T> {
        &self.state
    }
}

impl<T: Real> Drop for PlanCall<T> {
    fn drop(&mut self) {
        if !self.is_finished {
            // A GPU may still be reading the caller's arrays. An error of that work is ignored: the call has already
            // failed.
            let _ = self.state.engine.wait();
        }
    }
}

/// Bounds of the input of each operation. Input below the bound cannot make the result overflow. With larger input, the
/// result is computed in a temporary and checked before the caller gets it.
pub(super) struct OverflowLimits<T> {
    pub maxima: InputMaxima,
    pub forward: T,
    pub adjoint: T,
    pub grid: T,
    pub normal: T,
    /// Whether Q cannot overflow. Q depends on the weights only.
    pub q: bool,
}

/// Largest magnitudes in the geometry.
#[derive(Clone, Copy)]
pub(super) struct InputMaxima {
    /// The largest density weight; `None` without weights.
    pub weight: Option<f64>,
    /// An upper bound of the real and imaginary parts of the coil maps; 1 without coil maps.
    pub map: f64,
}

impl<T: Real> OverflowLimits<T> {
    /// Computes the bounds of a plan with `samples` samples.
    pub fn new(params: &PlanParams, samples: usize, maxima: InputMaxima) -> Self {
        // Growth of intermediate values by window, FFT and correction. The lengths of sums are counted separately.
        const INTERNAL_GROWTH: f64 = 1e10;
        let InputMaxima { weight, map } = maxima;
        let weight = weight.unwrap_or(1.0).max(1.0);
        let samples = (samples * params.coils) as f64;
        let voxels = params.voxels as f64;
        let bound = |gain: f64| T::of(T::LARGEST / INTERNAL_GROWTH / gain);
        OverflowLimits {
            maxima,
            forward: bound(voxels * map),
            adjoint: bound(samples * map * weight),
            grid: bound(samples * map * LARGEST_WEIGHT),
            normal: bound(voxels * samples * map * map * weight),
            q: samples * weight < T::LARGEST / INTERNAL_GROWTH,
        }
    }
}

impl<T: Real> PlanState<T> {
    /// Calls `compute` so that the caller's output is written completely or not at all, even if the call is
    /// interrupted.
    fn write_all_or_nothing(
        &self,
        out: Sink<'_, Complex<T>>,
        compute: impl FnOnce(Sink<'_, Complex<T>>) -> Result<()>,
    ) -> Result<()> {
        match (self.interruption, out) {
            (Interruption::BeforeOutput, out) => compute(out),
            (Interruption::WithTemporary, Sink::Host(host)) => {
                self.via_temporary(host, |temporary| compute(temporary.into()))
            }
            (_, out) => {
                interrupt::check("a transform")?;
                let _uninterruptible = ActiveInterrupt::new(None);
                compute(out)
            }
        }
    }

    /// Checks the caller's input and calls `compute` to write the caller's output. If the input reaches `limit`, the
    /// result may overflow: the caller then gets it only after it has been checked.
    pub fn with_overflow_check(
        &self,
        (input_name, input, limit): (&str, Source<'_, Complex<T>>, T),
        (output_name, out): (&str, Sink<'_, Complex<T>>),
        compute: impl Fn(Sink<'_, Complex<T>>) -> Result<()>,
    ) -> Result<()> {
        if check_below(input_name, limit, |limit| self.engine.first_exceeding(input, limit))? {
            return self.write_all_or_nothing(out, compute);
        }
        match out {
            Sink::Host(host) => self.via_temporary(host, |temporary| {
                compute(temporary.into())?;
                check_results(output_name, temporary)
            }),
            // Computed twice: once on the host for the check, then in the caller's array.
            Sink::Device(_) => {
                let mut trial = Aligned::zeros(out.len(), "a result that may overflow")?;
                compute((&mut trial[..]).into())?;
                check_results(output_name, &trial)?;
                self.write_all_or_nothing(out, compute)
            }
        }
    }

    /// The same for [`Engine::forward`] and [`Engine::adjoint`]. The kernels of the transform check input in the memory
    /// of a GPU.
    pub fn with_deferred_check(
        &self,
        (input_name, input, limit): (&str, Source<'_, Complex<T>>, T),
        (output_name, mut out): (&str, Sink<'_, Complex<T>>),
        compute: impl Fn(Sink<'_, Complex<T>>) -> Result<()>,
    ) -> Result<()> {
        if let (Sink::Device(out), None) = (&mut out, &self.params.options.interrupt) {
            if let Some(check) = self.engine.begin_check(input, limit)? {
                if input_check::run_during(check, || compute(Sink::Device(out.reborrow())))? {
                    return Ok(());
                }
            }
        }
        self.with_overflow_check((input_name, input, limit), (output_name, out), compute)
    }

    /// Calls `compute` with a temporary array, and copies it to the caller's array if `compute` succeeds.
    pub fn via_temporary(
        &self,
        out: &mut [Complex<T>],
        compute: impl FnOnce(&mut [Complex<T>]) -> Result<()>,
    ) -> Result<()> {
        let what = "the output of a call that can be interrupted";
        self.engine.check_memory(size_of_val(out), what)?;
        // As the caller's array: `compute` writes all elements and reads none.
        let mut temporary = Aligned::unwritten(out.len(), what)?;
        compute(&mut temporary)?;
        copy(self.engine.workers(), &temporary, out);
        Ok(())
    }

    /// Returns the number of elements of a k-space array.
    pub fn kspace_len(&self) -> usize {
        self.samples * self.params.coils * self.params.frames
    }

    /// Checks the length of a k-space array.
    pub fn check_kspace_len(&self, len: usize) -> Result<()> {
        check_len("k-space samples", len, self.kspace_len(), "samples times coils times frames")
    }

    /// Checks the length of a k-space array, and that its values are finite.
    pub fn check_kspace(&self, kspace: Source<'_, Complex<T>>) -> Result<()> {
        self.check_kspace_len(kspace.len())?;
        check_below(SAMPLE, T::of(f64::INFINITY), |limit| self.engine.first_exceeding(kspace, limit)).map(|_| ())
    }

    /// Checks the length of an image array.
    pub fn check_image_len(&self, len: usize) -> Result<()> {
        check_len("image voxels", len, self.params.image_len(), "voxels times images times frames")
    }
}
