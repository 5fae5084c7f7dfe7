//! A changed encoding: new trajectory, density weights or coil maps, and shared parts where nothing changes.

use super::super::field::Field;
use super::super::interface::{Change, CHANGING_PLAN};
use super::super::memory::{MemoryLimit, MemoryRequirements};
use super::super::transform_params::TransformParams;
use super::samples::{host_copy, with_coordinates, SampleArrays};
use super::state::{EncodingTransform, TrajectoryState, WeightingState};
use super::{Encoding, ExecutionParams};
use crate::backend::{Backend, Source};
use crate::base::error::Result;
use crate::base::geometry::Geometry;
use crate::base::interrupt;
use crate::base::off_resonance::OffResonanceRange;
use crate::base::options::Options;
use crate::base::real::Real;
use crate::base::scan_size::ScanSize;
use crate::nufft::Nufft;
use num_complex::Complex;
use std::borrow::Cow;
use std::sync::Arc;

/// Parts of a changed encoding, which may be shared with the previous one.
type EncodingState<T, B> = (Arc<TrajectoryState<T, B>>, Arc<WeightingState<T, B>>, Option<Arc<Field<T, B>>>);

impl<T: Real, B: Backend<T>> Encoding<T, B> {
    /// Returns the off-resonance range and the transform parameters after a change. The parameters are chosen again if
    /// the number of samples or the range changes.
    pub fn params_after(
        &self,
        change: Change<'_, T>,
        options: &Options,
    ) -> Result<(Option<OffResonanceRange>, TransformParams)> {
        let params = self.transform_params();
        match (change, &self.field) {
            (Change::Trajectory(geometry), _) => {
                let ScanSize { samples, band, .. } = ScanSize::with_band(self.b().workers(), geometry)?;
                let band = self.band_seen_by_maps(geometry, band);
                let size = ScanSize { samples, band, ..self.size() };
                let is_exact = params.gridding.is_none();
                if (samples != self.samples && !is_exact) || band != self.band() {
                    return Ok((band, TransformParams::new::<T, B>(self.b(), &size, options, is_exact)?));
                }
            }
            (Change::CoilMaps(maps), Some(field)) => {
                // The range is computed on the host.
                let host = match maps {
                    Source::Host(maps) => Cow::Borrowed(maps),
                    Source::Device(_) => Cow::Owned(host_copy(self.b(), maps, "the coil sensitivities")?),
                };
                field.check_visible_range(self.b(), &host, self.voxels)?;
            }
            _ => {}
        }
        Ok((self.band(), params.clone()))
    }

    /// Returns the off-resonance range for a new trajectory. If the plan's coil maps and field map stay, so does the
    /// range of the voxels that the coil maps see.
    fn band_seen_by_maps(
        &self,
        geometry: &Geometry<'_, T>,
        band: Option<OffResonanceRange>,
    ) -> Option<OffResonanceRange> {
        let keeps_coil_maps = self.combines_coils() && geometry.coil_maps.is_none();
        match (geometry.off_resonance(), &self.field) {
            (Some(maps), Some(field)) if keeps_coil_maps && field.has_maps(self.b(), &maps) => {
                band.map(|band| OffResonanceRange { time: band.time, ..field.band })
            }
            _ => band,
        }
    }

    /// Creates the encoding after a change. It shares all unchanged parts with this one. `samples` are those of a new
    /// trajectory, if they have already been copied. `options` are those of this encoding; `band` and
    /// `params` come from [`Encoding::params_after`].
    pub fn with_change(
        &self,
        change: Change<'_, T>,
        samples: Option<SampleArrays<T, B>>,
        options: &Options,
        (band, params): (Option<OffResonanceRange>, TransformParams),
    ) -> Result<Self> {
        let b = self.b();
        let size = self.size_after(&change, band);
        let same_params = params == self.execution.transform;
        let batch_size = Self::batch_size(b, &size, options, &params)?;
        let same_batch_size = batch_size == self.execution.batch_size;
        let same_sample_count = size.samples == self.samples;
        let requirements = MemoryRequirements::new(b, &size, options, &params, batch_size)?;
        let resident_maps = Self::bytes_of_maps(b, self.coil_maps.as_deref());
        let held = Self::bytes(&requirements).saturating_add(resident_maps);
        let mut limit = MemoryLimit { bytes: options.memory_limit, held };
        limit.check(0, "the plan")?;
        // Until the change is complete, the replaced parts exist as well.
        let new_bytes = match change {
            Change::Trajectory(_) => {
                let gridding = params.gridding.as_ref().filter(|_| same_params);
                let arrays = params.gridding_batch_size(batch_size);
                let points = gridding.map(|g| Nufft::<T, B>::bytes_of_samples(b, g, size.samples, arrays));
                requirements.trajectory_change(points, same_sample_count && same_batch_size)
            }
            Change::Weights(_) => requirements.weight_change(),
            Change::CoilMaps(_) => 0,
        };
        let new_maps = match change {
            Change::Trajectory(geometry) => Self::coil_maps_of(b, geometry)?,
            Change::Weights(_) => None,
            Change::CoilMaps(maps) => Some(maps),
        };
        let bytes_of = |maps: Source<'_, Complex<T>>| maps.len() * size_of::<Complex<T>>();
        let host_maps = if b.is_gpu() { 0 } else { new_maps.map_or(0, bytes_of) };
        self.limit().check(new_bytes.saturating_add(host_maps), "the plan together with its replaced parts")?;
        let coil_maps = match new_maps {
            Some(maps) => {
                let limit = MemoryLimit { held: self.bytes_held().saturating_add(new_bytes), ..limit };
                Some(Self::new_coil_maps(b, maps, &size, &limit, &params)?)
            }
            None => self.coil_maps.clone(),
        };
        limit.held = limit.held - resident_maps + Self::bytes_of_maps(b, coil_maps.as_deref());
        interrupt::check(CHANGING_PLAN)?;
        let use_toeplitz = Self::selects_toeplitz(b, options.normal, &size, &limit, &params);
        let shares_grid = same_params && same_batch_size;
        let (trajectory, weighting, field) =
            self.state_after((change, samples), options, (band, &params), (batch_size, shares_grid))?;
        Ok(Encoding {
            backend: self.backend.clone(),
            dims: self.dims.clone(),
            samples: size.samples,
            trajectory,
            weighting,
            coil_maps,
            field,
            execution: ExecutionParams {
                node_batch_size: params.node_batch_size::<T, B>(b, &size, options, batch_size),
                transform: params,
                use_toeplitz,
                batch_size,
                limit,
            },
            buffers: self.buffers.after_change(same_batch_size, same_sample_count),
            ..*self
        })
    }

    /// Returns the sizes of the scan after a change.
    fn size_after(&self, change: &Change<'_, T>, band: Option<OffResonanceRange>) -> ScanSize {
        let mut size = ScanSize { band, ..self.size() };
        match change {
            Change::Trajectory(geometry) => {
                (size.samples, size.weights) = (geometry.samples(), geometry.has_weights());
            }
            Change::Weights(weights) => size.weights = weights.is_some(),
            Change::CoilMaps(_) => {}
        }
        size
    }

    /// Creates the parts of the encoding that a change affects, and shares the others. If `shares_grid` is set, a new
    /// trajectory uses the FFT and the grids of the previous one.
    fn state_after(
        &self,
        (change, samples): (Change<'_, T>, Option<SampleArrays<T, B>>),
        options: &Options,
        (band, params): (Option<OffResonanceRange>, &TransformParams),
        (batch_size, shares_grid): (usize, bool),
    ) -> Result<EncodingState<T, B>> {
        let b = self.b();
        match change {
            Change::Trajectory(geometry) => {
                let field = self.field_after(geometry, band, params)?;
                let SampleArrays { coordinates, weights } =
                    samples.map_or_else(|| SampleArrays::copied(b, geometry), Ok)?;
                let nufft = with_coordinates(b, &coordinates, |k| match (&params.gridding, self.nufft()) {
                    (Some(_), Some(nufft)) if shares_grid => nufft.with_samples(b, k).map(Some),
                    (Some(gridding), _) => {
                        let arrays = params.gridding_batch_size(batch_size);
                        Nufft::new(b, k, &self.dims, gridding.clone(), arrays).map(Some)
                    }
                    (None, _) => Ok(None),
                })?;
                let keeps_field = shares_grid
                    && field.as_ref().zip(self.field.as_ref()).is_some_and(|(new, present)| Arc::ptr_eq(new, present));
                let transform = match (nufft, &self.trajectory.transform, params.segments(), geometry.times) {
                    (Some(nufft), EncodingTransform::Segmented(segmented), Some(segments), Some(times))
                        if keeps_field =>
                    {
                        // Trajectories of one readout have the same times.
                        let times = Some(times).filter(|&times| self.trajectory.times.as_deref() != Some(times));
                        EncodingTransform::Segmented(segmented.with_samples(b, nufft, segments, times)?)
                    }
                    (Some(nufft), ..) => Self::gridding_transform(b, nufft, geometry, field.as_deref(), params)?,
                    (None, ..) => Self::exact_transform(b, geometry, &coordinates, options)?,
                };
                let times = field.as_ref().and(geometry.times);
                let count = geometry.samples();
                let trajectory = TrajectoryState::new(b, count, coordinates, times, self.basis, transform)?;
                let weighting = WeightingState::new(b, count, &trajectory.coordinates, self.basis, weights)?;
                Ok((Arc::new(trajectory), Arc::new(weighting), field))
            }
            Change::Weights(weights) => {
                let weights = weights.map(|w| SampleArrays::new_weights(b, w)).transpose()?;
                let coordinates = &self.trajectory.coordinates;
                let weighting = WeightingState::new(b, self.samples, coordinates, self.basis, weights)?;
                Ok((self.trajectory.clone(), Arc::new(weighting), self.field.clone()))
            }
            Change::CoilMaps(_) => Ok((self.trajectory.clone(), self.weighting.clone(), self.field.clone())),
        }
    }

    /// Returns the field for a new trajectory. The present one is shared if maps, range and terms are the same.
    fn field_after(
        &self,
        geometry: &Geometry<'_, T>,
        band: Option<OffResonanceRange>,
        params: &TransformParams,
    ) -> Result<Option<Arc<Field<T, B>>>> {
        if let (Some(maps), Some(field)) = (geometry.off_resonance(), &self.field) {
            let same_terms = params.terms == self.transform_params().terms;
            if same_terms && band == Some(field.band) && field.has_maps(self.b(), &maps) {
                return Ok(Some(field.clone()));
            }
        }
        Ok(Self::new_field(self.b(), geometry, band, params)?.map(Arc::new))
    }
}
