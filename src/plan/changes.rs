//! Changes of a plan's trajectory, weights and coil maps.

use super::state::{InputMaxima, OverflowLimits, PlanCall, PlanState};
use super::warnings::{time_warning, tolerance_warning};
use super::Plan;
use crate::backend::Source;
use crate::base::error::{bail, Result};
use crate::base::geometry::{check_map_len, check_weight_count, Geometry, InputRanges};
use crate::base::real::Real;
use crate::base::warning::Warning;
use crate::engine::interface::{Change, Engine};
use num_complex::Complex;
use std::sync::Arc;
use std::time::Instant;

/// A changed engine, its number of samples, its warnings, and the largest magnitudes of its input.
type ChangedState<T> = (Box<dyn Engine<T>>, usize, Vec<Warning>, InputMaxima);

impl<T: Real> Plan<T> {
    /// Replaces the plan's trajectory and, if the geometry has them, its weights and coil maps. Without coil maps in
    /// the geometry, those of the plan stay.
    ///
    /// The cost is little more than that of sorting the samples. Threads, window and its correction, tables, grids and
    /// buffers stay, unless a different number of samples makes a different window or grid the better choice. Results
    /// that depend on the previous trajectory are discarded: Q, also if it was loaded, and the weights that
    /// [`Plan::grid`] computes.
    ///
    /// Results have the same bits as those of a new plan of this geometry and these options.
    ///
    /// ```
    /// use recon::trajectory::SpokeOrder;
    /// use recon::{Complex, Geometry, Options, Plan, Trajectory};
    ///
    /// // Real-time imaging: every frame has its own spokes.
    /// let all = Trajectory::radial2d(3 * 34, 128, SpokeOrder::GoldenAngle)?;
    /// let (kx, ky) = (all.axis_as::<f32>(0), all.axis_as::<f32>(1));
    /// let frames: Vec<_> = kx.chunks_exact(34 * 128).zip(ky.chunks_exact(34 * 128)).collect();
    /// let geometry = |i: usize| Geometry::new(&[64, 64], &[frames[i].0, frames[i].1]);
    ///
    /// let plan = Plan::new(&geometry(0), &Options::default())?;
    /// let kspace = vec![Complex::new(1.0, 0.0); plan.kspace_len()];
    /// let mut image = vec![Complex::default(); plan.image_len()];
    /// for i in 0..frames.len() {
    ///     plan.set_trajectory(&geometry(i))?;
    ///     plan.adjoint(&kspace, &mut image)?;
    /// }
    /// # Ok::<(), recon::Error>(())
    /// ```
    ///
    /// # Errors
    /// After an error the plan is unchanged. In addition to the errors of [`Plan::new`] for numbers and memory:
    /// - `MemoryLimit`: until the change is complete, the previous and the new samples are in memory together. The
    ///   limit includes both, but not the states that calls in progress still use.
    /// - `SizeMismatch` or `InvalidArgument`: the geometry differs from the plan in image size, list of voxels, voxel
    ///   basis, or number of coils or frames.
    /// - `InvalidArgument`: the geometry has coil maps and the plan has none, or the geometry has no weights and the
    ///   plan has some. [`Plan::set_weights`] removes weights.
    /// - `InvalidArgument`: the plan has a field map or decay map and the geometry has none. The geometry must contain
    ///   the map, whose values may be new, and the times of the new samples.
    pub fn set_trajectory(&self, geometry: &Geometry<'_, T>) -> Result<()> {
        let started = Instant::now();
        let call = self.begin();
        geometry.check_sizes()?;
        call.params.check_same(geometry)?;
        self.change(call, started, |current| {
            let options = &current.params.options;
            let (engine, InputRanges { coordinates: ranges, weight, map }) =
                current.engine.with_trajectory(geometry, options)?;
            // Invalid values are reported first.
            if current.limits.maxima.weight.is_some() && weight.is_none() {
                bail!(
                    InvalidArgument,
                    "the plan has density weights, the new trajectory has none: set its weights in the geometry, or \
                     first remove the plan's weights"
                );
            }
            let tolerance = tolerance_warning(&engine.info(), options);
            let warnings = geometry.extent_warning(&ranges).into_iter().chain(tolerance).chain(time_warning(geometry));
            let warnings = warnings.collect();
            let map = map.unwrap_or(current.limits.maxima.map);
            Ok((engine, geometry.samples(), warnings, InputMaxima { weight, map }))
        })
    }

    /// Replaces the plan's density weights, [samples], or removes them. Results that depend on the previous weights are
    /// discarded. The samples stay sorted.
    ///
    /// # Errors
    /// As [`Plan::set_trajectory`]; `SizeMismatch` if the number of weights is not the number of samples.
    pub fn set_weights(&self, weights: Option<&[T]>) -> Result<()> {
        self.set_weights_from(weights.map(Source::Host))
    }

    /// Replaces the plan's density weights as [`Plan::set_weights`] does, by weights in host memory or in the memory of
    /// the plan's GPU ([`Source::device`]).
    ///
    /// # Errors
    /// As [`Plan::set_weights`]; `InvalidArgument` if the address is not in the memory of the plan's GPU.
    pub fn set_weights_from(&self, weights: Option<Source<'_, T>>) -> Result<()> {
        let started = Instant::now();
        let call = self.begin();
        weights.map_or(Ok(()), |w| check_weight_count(w.len(), call.samples))?;
        let weight = weights.map(|w| call.engine.check_weights(w)).transpose()?;
        self.change(call, started, |current| {
            // Another thread may have changed the trajectory meanwhile.
            weights.map_or(Ok(()), |w| check_weight_count(w.len(), current.samples))?;
            let engine = current.engine.changed(Change::Weights(weights), &current.params.options)?;
            let maxima = InputMaxima { weight, ..current.limits.maxima };
            Ok((engine, current.samples, current.warnings.clone(), maxima))
        })
    }

    /// Replaces the plan's coil maps, [nx, ny, nz, coils], in host memory or in the memory of the plan's GPU
    /// ([`Source::device`]). Everything else stays, including Q.
    ///
    /// # Errors
    /// As [`Plan::set_trajectory`]; `SizeMismatch` for maps of a wrong length; `InvalidArgument` if the plan was made
    /// without maps, or if the new maps see voxels whose off-resonance or decay exceeds the range of the previous maps.
    pub fn set_coil_maps<'a>(&self, maps: impl Into<Source<'a, Complex<T>>>) -> Result<()> {
        let maps = maps.into();
        let started = Instant::now();
        let call = self.begin();
        call.params.check_combines_coils()?;
        check_map_len(maps.len(), call.params.voxels * call.params.coils)?;
        let map = call.engine.check_coil_maps(maps)?;
        self.change(call, started, |current| {
            let engine = current.engine.changed(Change::CoilMaps(maps), &current.params.options)?;
            let maxima = InputMaxima { map, ..current.limits.maxima };
            Ok((engine, current.samples, current.warnings.clone(), maxima))
        })
    }

    /// Replaces the plan's state by the one that `create` derives from it. If another change completes first, the state
    /// is created again from the result of that change. So no change is lost, and no change waits for another one,
    /// which may be in a callback further up the call stack.
    fn change(
        &self,
        mut call: PlanCall<T>,
        started: Instant,
        create: impl Fn(&PlanState<T>) -> Result<ChangedState<T>>,
    ) -> Result<()> {
        loop {
            let current = &call.state;
            let (engine, samples, warnings, maxima) = create(current)?;
            let seconds = started.elapsed().as_secs_f64();
            let params = current.params.clone();
            let limits = OverflowLimits::new(&params, samples, maxima);
            let interruption = params.interruption(samples, size_of::<T>());
            let changed = Arc::new(PlanState { engine, params, samples, seconds, warnings, limits, interruption });
            let mut slot = self.lock();
            if Arc::ptr_eq(&slot, current) {
                // The previous state is freed with `call`, after the lock has been released.
                *slot = changed.clone();
                drop(slot);
                let is_new = |warning: &&Warning| call.warnings.iter().all(|previous| previous.kind != warning.kind);
                changed.warnings.iter().filter(is_new).for_each(|warning| log::warn!("{warning}"));
                log::debug!("plan changed in {:.2} ms", 1e3 * seconds);
                return call.finish(());
            }
            let newer = slot.clone();
            drop(slot);
            call.state = newer;
        }
    }
}
