//! Filtered backprojection of 2D radial data (Schiwietz et al., Proc. SPIE 6142:61423T, 2006).
//!
//! The Fourier transform of a spoke is a projection of the object (the slice theorem). Each spoke is multiplied by the
//! ramp |k| and a window, and transformed to positions along its line. The image is the sum over all spokes of the
//! filtered projection at each voxel's position, by linear interpolation between knots at most half a voxel apart.
//!
//! The interpolation limits the accuracy: it attenuates high frequencies. The filter corrects this; the remaining error
//! is about as small as that of the bilinear window near the edge of k-space.

use crate::backend::{Backend, Complexes, ComplexesMut};
use crate::base::buffer_pool::{Lease, Pool};
use crate::base::error::Result;
use crate::base::options::Filter;
use crate::base::real::Real;
use crate::base::sizes::{product, sum};
use crate::base::workers::collect;
use crate::reconstruction::spokes::Spokes;
use num_complex::Complex;
use std::f64::consts::PI;
use std::sync::{Arc, Mutex};

/// Backprojection of the samples of one trajectory, with the factors of the most recent filter.
pub(crate) struct FilteredBackprojection<T: Real, B: Backend<T>> {
    spokes: Spokes,
    /// Largest measured |k|.
    reach: f64,
    backprojector: B::Backprojector,
    /// Most recent filter and its factors.
    filtered: Mutex<Option<(Filter, Arc<B::Array<T>>)>>,
    buffer_pool: Pool<B::Array<Complex<T>>>,
}

/// Length of the longest spokes in memory estimates, in voxels along the longest axis of the image.
const LONGEST: usize = 8;

/// Returns the number of samples per spoke for memory estimates, if only the total number of samples is known.
pub(crate) fn usual_readout(samples: usize, dims: &[usize]) -> usize {
    samples.min(LONGEST.saturating_mul(dims.iter().copied().fold(1, usize::max)))
}

/// Returns the bytes that filtered backprojection allocates, for `arrays` images at once.
pub(crate) fn bytes<T: Real, B: Backend<T>>(
    backend: &B,
    samples: usize,
    readout: usize,
    dims: &[usize],
    arrays: usize,
) -> usize {
    let factors = product(&[samples, size_of::<T>()]);
    sum(&[factors, backend.backprojector_bytes(readout, dims, arrays)])
}

impl Filter {
    /// Returns the window at a fraction of the largest |k|. The ramp is multiplied by it.
    fn window(self, fraction: f64) -> f64 {
        let half = 0.5 * PI * fraction.min(1.0);
        match self {
            Filter::RamLak => 1.0,
            Filter::SheppLogan => sinc(half),
            Filter::Cosine => half.cos(),
            Filter::Hann => 0.5 + 0.5 * (2.0 * half).cos(),
            Filter::Hamming => 0.54 + 0.46 * (2.0 * half).cos(),
        }
    }
}

/// Returns sin(a) / a.
fn sinc(a: f64) -> f64 {
    if a == 0.0 {
        1.0
    } else {
        a.sin() / a
    }
}

impl<T: Real, B: Backend<T>> FilteredBackprojection<T, B> {
    /// Prepares the backprojection of spokes. `arrays` is the maximum number of arrays of samples in one call.
    pub fn new(backend: &B, spokes: Spokes, dims: &[usize], arrays: usize) -> Result<Self> {
        let backprojector = backend.backprojector(&spokes.all, spokes.readout, dims, arrays)?;
        let (filtered, buffer_pool) = (Mutex::default(), Pool::new());
        Ok(FilteredBackprojection { reach: spokes.reach(), spokes, backprojector, filtered, buffer_pool })
    }

    /// Returns the factors of samples: area, window, the voxel basis `phi(sample)`, and the correction of the
    /// interpolation.
    pub fn factors(&self, backend: &B, filter: Filter, phi: impl Fn(usize) -> f64 + Sync) -> Result<Arc<B::Array<T>>> {
        let mut slot = self.filtered.lock().unwrap_or_else(|e| e.into_inner());
        if let Some((_, factors)) = slot.as_ref().filter(|(made_filter, _)| *made_filter == filter) {
            return Ok(factors.clone());
        }
        let readout = self.spokes.readout;
        let factor = |m: usize| {
            let (spoke, sample) = (m / readout, m % readout);
            let line = &self.spokes.all[spoke];
            let k = line.first + line.step * sample as f64;
            // Linear interpolation between knots multiplies by sinc^2, on average over the positions between them.
            let interpolation = sinc(PI * k * line.knot_spacing()).powi(2);
            T::of(self.spokes.area(spoke, sample) * filter.window(k.abs() / self.reach) * phi(m) / interpolation)
        };
        let all = readout * self.spokes.all.len();
        let values = collect(backend.workers(), all, "the filter of backprojection", factor)?;
        let factors = Arc::new(backend.upload(&values, "the filter of backprojection")?);
        *slot = Some((filter, factors.clone()));
        Ok(factors)
    }

    /// Returns the buffer for [`FilteredBackprojection::backproject`], allocated before anything is written.
    pub fn buffer(&self, backend: &B) -> Result<Lease<'_, B::Array<Complex<T>>>> {
        let len = backend.backprojection_buffer_len(&self.backprojector);
        self.buffer_pool.try_take(|| backend.unwritten(len, "the backprojection"))
    }

    /// Computes the image from samples that are multiplied by their factors.
    pub fn backproject(
        &self,
        backend: &B,
        values: Complexes<B, T>,
        buffer: &mut B::Array<Complex<T>>,
        image: ComplexesMut<B, T>,
    ) {
        backend.backproject(&self.backprojector, values, backend.view_mut(buffer), image);
    }
}
