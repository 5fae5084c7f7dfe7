//! Parameters of a plan's transforms: window, grid and off-resonance terms. They are chosen before anything is created.

use crate::backend::Backend;
use crate::base::defaults;
use crate::base::error::{bail, ErrorKind, Result};
use crate::base::off_resonance::OffResonanceRange;
use crate::base::options::{Method, Normal, Options};
use crate::base::real::Real;
use crate::base::scan_size::ScanSize;
use crate::base::sizes::product;
use crate::nufft::gridding_params::{GriddingParams, WindowRequest};
use crate::nufft::time_segments::TimeSegments;
use crate::nufft::Nufft;
use num_complex::Complex;
use std::sync::Arc;
use std::time::Instant;

/// Parameters of the transforms of a scan.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct TransformParams {
    /// Window and grid; `None` for exact sums.
    pub gridding: Option<GriddingParams>,
    /// Off-resonance terms; `None` without off-resonance and decay.
    pub terms: Option<Arc<OffResonanceTerms>>,
}

/// Terms by which off-resonance and decay are computed.
#[derive(Debug, PartialEq)]
pub(crate) struct OffResonanceTerms {
    /// Segments of a transform; `None` for exact sums, which include off-resonance and decay directly.
    pub segments: Option<TimeSegments>,
    /// Maximum number of segments transformed at once.
    pub segment_batch_size: usize,
    /// Nodes of E^H W E as a sum of convolutions; `None` if E^H W E is computed by transforms.
    pub nodes: Option<TimeSegments>,
}

/// Share of the tolerance that gridding may use if segments also have an error. The squares of both errors add.
const GRIDDING_SHARE: f64 = 0.8;

/// Share of gridding with strong decay. The result then depends on few samples, so that gridding errors are not
/// averaged over many positions in a grid cell.
const GRIDDING_SHARE_WITH_STRONG_DECAY: f64 = 0.25;

/// Product of rate and duration above which decay is strong in this sense.
const STRONG_DECAY: f64 = 15.0;

impl TransformParams {
    /// Chooses the parameters for exact sums or the NUFFT.
    pub fn new<T: Real, B: Backend<T>>(b: &B, size: &ScanSize, options: &Options, exact: bool) -> Result<Self> {
        let started = Instant::now();
        let request = WindowRequest::from(options);
        // Impossible values are an error for exact sums as well.
        request.check()?;
        if exact && request.names_window() {
            let name = if options.width != 0 { "width" } else { "oversampling" };
            let (cause, remedy) = match options.method {
                Method::Exact => ("method exact has", ", or use method nufft"),
                _ => ("a list of voxels is computed with", ""),
            };
            bail!(InvalidArgument, "a window's {name} was set, but {cause} no window: leave it out{remedy}");
        }
        let choose = |request: WindowRequest| Nufft::<T, B>::choose(b, request, &size.dims, size.samples);
        let tolerance = if options.tolerance == 0.0 { defaults::TOLERANCE } else { options.tolerance };
        let gridding = match (exact, &size.band) {
            (true, _) => None,
            (false, None) => Some(choose(request)?),
            (false, Some(band)) => {
                Some(match choose(WindowRequest { tolerance: gridding_share(band) * tolerance, ..request }) {
                    Err(e) if e.kind() == ErrorKind::ToleranceOutOfRange => choose(request)?,
                    result => result?,
                })
            }
        };
        let new_terms = |band| OffResonanceTerms::new::<T, B>(b, size, options, gridding.as_ref(), band, tolerance);
        let terms = size.band.as_ref().map(new_terms).transpose()?.map(Arc::new);
        log::debug!("window and segments chosen in {:.2} ms", 1e3 * started.elapsed().as_secs_f64());
        Ok(TransformParams { gridding, terms })
    }

    /// Returns the segments of a transform; `None` for exact sums and without off-resonance.
    pub fn segments(&self) -> Option<&TimeSegments> {
        self.terms.as_ref().and_then(|terms| terms.segments.as_ref())
    }

    /// Returns the nodes of E^H W E; `None` if it is computed by transforms, or without off-resonance.
    pub fn nodes(&self) -> Option<&TimeSegments> {
        self.terms.as_ref().and_then(|terms| terms.nodes.as_ref())
    }

    /// Returns the maximum number of arrays that the NUFFT transforms at once, for batches of `batch_size` coils or
    /// frames.
    pub fn gridding_batch_size(&self, batch_size: usize) -> usize {
        match &self.terms {
            Some(terms) if terms.segments.is_some() => terms.segment_batch_size,
            _ => batch_size,
        }
    }

    /// Returns how many nodes of E^H W E are convolved at once, each with `batch_size` coils, so that their images stay
    /// in cache.
    pub fn node_batch_size<T: Real, B: Backend<T>>(
        &self,
        b: &B,
        size: &ScanSize,
        options: &Options,
        batch_size: usize,
    ) -> usize {
        let Some(nodes) = self.nodes() else { return 1 };
        let images = if size.coil_maps { batch_size } else { 1 };
        let bytes = product(&[images, size.voxels(), 2 * size_of::<Complex<T>>()]);
        even_batch_size(options, nodes.len(), b.batch_bytes() / bytes.max(1))
    }

    /// Returns the bytes of Q once it has been computed. With off-resonance, they include a spectrum and the voxel
    /// factors for each node.
    pub fn bytes_of_q<T: Real, B: Backend<T>>(&self, b: &B, size: &ScanSize) -> usize {
        let nodes = self.nodes().map_or(0, TimeSegments::len);
        let voxel_factors = product(&[nodes, size.voxels(), size_of::<Complex<T>>()]);
        b.convolver_bytes(&size.dims, nodes.max(1)).saturating_add(voxel_factors)
    }

    /// Returns the expected relative l2 error of a transform. It is at most the tolerance if the tolerance determined
    /// the window. For a window of a given width and oversampling it is the error for evenly spread samples. If all
    /// samples are at the edge of k-space, the error is up to 3.3 times as large.
    pub fn error<T: Real>(&self) -> f64 {
        let gridding = self.gridding.as_ref().map_or(T::EPSILON, |gridding| gridding.error);
        gridding.hypot(self.segments().map_or(0.0, |segments| segments.error))
    }
}

impl OffResonanceTerms {
    /// Computes the segments of transforms and the nodes of E^H W E for the off-resonance range `band`.
    fn new<T: Real, B: Backend<T>>(
        b: &B,
        size: &ScanSize,
        options: &Options,
        gridding: Option<&GriddingParams>,
        band: &OffResonanceRange,
        tolerance: f64,
    ) -> Result<Self> {
        // If the error of a requested window exceeds the tolerance, the error of segments may do so as well.
        let total = gridding.map_or(options.tolerance, |gridding| tolerance.max(gridding.error));
        let rest = gridding.map_or(total, |gridding| (total * total - gridding.error.powi(2)).max(0.0).sqrt());
        let rounding = T::EPSILON.max(2e-13);
        let tolerance = rest.max((1.0 - GRIDDING_SHARE) * total).max(8.0 * rounding);
        let segments = gridding.map(|_| TimeSegments::of_voxels::<T>(band, tolerance)).transpose()?;
        let nodes = match options.normal {
            _ if size.listed.is_some() => None,
            Normal::Transforms => None,
            Normal::Toeplitz => Some(TimeSegments::of_pairs::<T>(band, tolerance)?),
            Normal::Auto => match TimeSegments::of_pairs::<T>(band, tolerance) {
                Err(e) if e.kind() == ErrorKind::Unsupported => {
                    log::info!("E^H W E is computed by transforms: {e}");
                    None
                }
                result => Some(result?),
            },
        };
        let segment_batch_size = match (&segments, gridding) {
            (Some(segments), Some(gridding)) => {
                even_batch_size(options, segments.len(), b.transform_batch(&gridding.grid, size.samples))
            }
            _ => 1,
        };
        Ok(OffResonanceTerms { segments, segment_batch_size, nodes })
    }
}

/// Returns how many of `count` arrays are processed at once: groups of nearly equal size, of at most `max` arrays.
/// Under a memory limit the size is 1, so that a group never uses memory that a later operation needs.
pub(crate) fn even_batch_size(options: &Options, count: usize, max: usize) -> usize {
    let max = if options.memory_limit.is_some() { 1 } else { max.clamp(1, count) };
    count.div_ceil(count.div_ceil(max))
}

/// Returns the share of the tolerance that gridding may use, see [`GRIDDING_SHARE`].
fn gridding_share(band: &OffResonanceRange) -> f64 {
    match band.decay {
        Some([_, fastest]) if fastest * (band.time[1] - band.time[0]) > STRONG_DECAY => {
            GRIDDING_SHARE_WITH_STRONG_DECAY
        }
        _ => GRIDDING_SHARE,
    }
}
