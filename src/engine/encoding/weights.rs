//! Sample weights of the gridding reconstruction and of filtered backprojection.

use super::state::basis_factor;
use super::Encoding;
use crate::backend::{Backend, ChebyshevSeries};
use crate::base::error::{bail, Result};
use crate::base::geometry::VoxelBasis;
use crate::base::real::Real;
use crate::base::workers::collect;
use crate::reconstruction::density::{self, Density};
use crate::reconstruction::fbp::{self, FilteredBackprojection};
use crate::reconstruction::gridding_scale::{gridding_scale, gridding_scale_on};
use crate::reconstruction::spokes::Spokes;
use std::sync::Arc;

impl<T: Real, B: Backend<T>> Encoding<T, B> {
    /// Returns a function that computes phi(k_m), the Fourier transform of the voxel shape, at sample m.
    pub(super) fn phi(&self) -> Result<impl Fn(usize) -> f64 + Sync + '_> {
        let k = match self.basis {
            VoxelBasis::Point => Vec::new(),
            VoxelBasis::Box => self.trajectory.axes(self.b())?,
        };
        Ok(move |m: usize| basis_factor(self.basis, k.iter().map(|k| k[m].wide())))
    }

    /// Returns a function that computes phi^2 w of sample m, its factor in E^H W E.
    pub fn normal_weight(&self) -> Result<impl Fn(usize) -> f64 + Sync + '_> {
        let (phi, weights) = (self.phi()?, self.host_weights()?);
        Ok(move |m: usize| {
            let phi = phi(m);
            phi * phi * weights.map_or(1.0, |w| w[m].wide())
        })
    }

    /// Returns the caller's density weights on the host; `None` if all are 1.
    pub fn host_weights(&self) -> Result<Option<&[T]>> {
        self.weighting.weights.as_ref().map(|w| w.host(self.b())).transpose()
    }

    /// Returns `Unsupported` if the plan has a field or decay map.
    pub fn check_no_field(&self, what: &str) -> Result<()> {
        match self.field {
            None => Ok(()),
            Some(_) => bail!(
                Unsupported,
                "{what} with a field map or decay map: create a plan without them, or use another operation"
            ),
        }
    }

    /// Returns the filtered backprojection of 2D spokes. It is created on first use.
    pub(super) fn backprojection(&self) -> Result<Arc<FilteredBackprojection<T, B>>> {
        self.check_no_field("there is no filtered backprojection")?;
        if self.is_voxel_list {
            bail!(
                Unsupported,
                "filtered backprojection computes whole images: create the plan without a list of voxels"
            );
        }
        let mut slot = self.trajectory.backprojection.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(backprojection) = &*slot {
            return Ok(backprojection.clone());
        }
        let k = self.trajectory.axes(self.b())?;
        let spokes = Spokes::of(&k, &self.dims)?;
        let batch_size = self.execution.batch_size;
        let bytes = fbp::bytes(self.b(), self.samples, spokes.readout, &self.dims, batch_size);
        self.limit().check(bytes, "filtered backprojection")?;
        let backprojection = Arc::new(FilteredBackprojection::new(self.b(), spokes, &self.dims, batch_size)?);
        *slot = Some(backprojection.clone());
        Ok(backprojection)
    }

    /// Returns phi times the density weights, scaled so that gridding preserves the scale of an object. Without the
    /// caller's weights, uses those of Pipe and Menon. They are computed on first use.
    pub fn gridding_weights(&self) -> Result<Arc<B::Array<T>>> {
        let mut slot = self.weighting.gridding_weights.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(weights) = &*slot {
            return Ok(weights.clone());
        }
        let weights = Arc::new(match self.scaled_on_device()? {
            Some(weights) => weights,
            None => self.scaled_on_host()?,
        });
        *slot = Some(weights.clone());
        Ok(weights)
    }

    /// Scales the caller's weights in the memory of a GPU; returns `None` if weights and coordinates are not both
    /// there.
    fn scaled_on_device(&self) -> Result<Option<B::Array<T>>> {
        let (b, coordinates) = (self.b(), &self.trajectory.coordinates);
        let (Some(weights), VoxelBasis::Point) = (&self.weighting.weights, self.basis) else { return Ok(None) };
        let Some(weights) = weights.device_and_largest(b)? else { return Ok(None) };
        let k = coordinates.iter().map(|k| k.device_and_largest(b)).collect::<Result<Option<Vec<_>>>>()?;
        let Some(k) = k else { return Ok(None) };
        let Some(scale) = gridding_scale_on(b, &k, weights, &self.dims)? else { return Ok(None) };
        // A constant function of time, times the weights.
        let (values, series) =
            (weights.0, ChebyshevSeries { interval: [0.0, 1.0], functions: 1, coefficients: &[scale] });
        b.series_values(values, series, 0, Some(values)).map(Some)
    }

    /// Scales the caller's weights, or computes weights.
    fn scaled_on_host(&self) -> Result<B::Array<T>> {
        let workers = self.b().workers();
        let k = self.trajectory.axes(self.b())?;
        let phi = self.phi()?;
        let weights = match self.host_weights()? {
            Some(w) => {
                let scale = gridding_scale(workers, &k, &self.dims, |m| w[m].wide())?;
                collect(workers, w.len(), "the density weights", |m| T::of(w[m].wide() * scale))?
            }
            None => {
                log::info!("no density weights given: computing them by the method of Pipe and Menon");
                density::weights(self.b(), &k, &self.dims, Density::default(), None)?
            }
        };
        let values = match self.basis {
            VoxelBasis::Point => weights,
            VoxelBasis::Box => {
                let value = |m: usize| T::of(weights[m].wide() * phi(m));
                collect(workers, self.samples, "the density weights", value)?
            }
        };
        self.b().upload(&values, "the density weights")
    }
}
