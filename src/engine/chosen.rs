//! How a plan computes: window and grid, and the terms of off-resonance. Chosen before anything is made.

use crate::backend::Backend;
use crate::base::defaults;
use crate::base::error::{bail, checked_product, ErrorKind, Result};
use crate::base::off_resonance::OffResonanceRange;
use crate::base::options::{Method, Normal, Options};
use crate::base::real::Real;
use crate::base::scan_size::ScanSize;
use crate::base::sizes::product;
use crate::nufft::choice::{Choice, Wanted};
use crate::nufft::segments::Segments;
use crate::nufft::Nufft;
use num_complex::Complex;
use std::sync::Arc;
use std::time::Instant;

/// What serves a scan and its options.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Chosen {
    /// Window and grid; none for exact sums.
    pub window: Option<Choice>,
    /// With off-resonance or decay.
    pub terms: Option<Arc<Terms>>,
}

/// The terms by which off-resonance and decay are computed.
#[derive(Debug, PartialEq)]
pub(crate) struct Terms {
    /// Those of transforms; none for exact sums, which take both as they are.
    pub segments: Option<Segments>,
    /// How many of these are transformed at once, at most.
    pub at_once: usize,
    /// Those of E^H W E as a sum of convolutions; none where they would be too many, or are not wanted.
    pub nodes: Option<Segments>,
}

/// Of a tolerance, what gridding may take where segments take some as well. Both errors add as squares.
const SHARE: f64 = 0.8;

/// The share of gridding with strong decay. Few samples then make the result, and the error of gridding is not averaged
/// over many positions in a cell.
const SHARE_WITH_STRONG_DECAY: f64 = 0.25;

/// Rate times duration from which decay is strong in that sense.
const STRONG_DECAY: f64 = 15.0;

impl Chosen {
    /// Chooses for exact sums or the non-uniform FFT.
    pub fn new<T: Real, B: Backend<T>>(b: &B, size: &ScanSize, options: &Options, exact: bool) -> Result<Self> {
        let started = Instant::now();
        let wanted = Wanted::from(options);
        // Checked for exact sums as well: what is impossible is a mistake in any case.
        wanted.check()?;
        if exact && wanted.names_window() {
            let name = if options.width != 0 { "width" } else { "oversampling" };
            let cause =
                if options.method == Method::Exact { "method exact has" } else { "a list of voxels is summed with" };
            bail!(
                InvalidArgument,
                "a window's {name} was named, but {cause} no window: leave it out{}",
                if options.method == Method::Exact { ", or use method nufft" } else { "" }
            );
        }
        let choose = |wanted: Wanted| Nufft::<T, B>::choose(b, wanted, &size.dims, size.samples);
        let named = if options.tolerance == 0.0 { defaults::TOLERANCE } else { options.tolerance };
        let window = match (exact, &size.band) {
            (true, _) => None,
            (false, None) => Some(choose(wanted)?),
            (false, Some(band)) => Some(match choose(Wanted { tolerance: share(band) * named, ..wanted }) {
                Err(e) if e.kind() == ErrorKind::ToleranceOutOfRange => choose(wanted)?,
                result => result?,
            }),
        };
        let terms = match &size.band {
            None => None,
            Some(band) => {
                // Where a named window errs by more than the tolerance, segments may as well.
                let all = window.as_ref().map_or(options.tolerance, |window| named.max(window.error));
                let left = window.as_ref().map_or(all, |window| (all * all - window.error.powi(2)).max(0.0).sqrt());
                let rounding = T::EPSILON.max(2e-13);
                let tolerance = left.max((1.0 - SHARE) * all).max(8.0 * rounding);
                let segments = window.as_ref().map(|_| Segments::of_voxels::<T>(band, tolerance)).transpose()?;
                let nodes = match options.normal {
                    _ if size.listed.is_some() => None,
                    Normal::Transforms => None,
                    Normal::Toeplitz => Some(Segments::of_pairs::<T>(band, tolerance)?),
                    Normal::Auto => match Segments::of_pairs::<T>(band, tolerance) {
                        Err(e) if e.kind() == ErrorKind::Unsupported => {
                            log::info!("E^H W E goes through transforms: {e}");
                            None
                        }
                        result => Some(result?),
                    },
                };
                let at_once = match (&segments, &window) {
                    (Some(segments), Some(window)) => {
                        at_once::<T, B>(b, options, segments.len(), grid_bytes::<T>(window)?)
                    }
                    _ => 1,
                };
                Some(Arc::new(Terms { segments, at_once, nodes }))
            }
        };
        log::debug!("window and segments chosen in {:.2} ms", 1e3 * started.elapsed().as_secs_f64());
        Ok(Chosen { window, terms })
    }

    /// The segments of transforms.
    pub fn segments(&self) -> Option<&Segments> {
        self.terms.as_ref().and_then(|terms| terms.segments.as_ref())
    }

    /// The nodes of E^H W E.
    pub fn nodes(&self) -> Option<&Segments> {
        self.terms.as_ref().and_then(|terms| terms.nodes.as_ref())
    }

    /// Arrays that the non-uniform FFT transforms at once, where `batch` coils or frames are.
    pub fn arrays(&self, batch: usize) -> usize {
        match &self.terms {
            Some(terms) if terms.segments.is_some() => terms.at_once,
            _ => batch,
        }
    }

    /// How many nodes of E^H W E are convolved at once, with `batch` coils each: as many as stay in cache.
    pub fn nodes_at_once<T: Real, B: Backend<T>>(
        &self,
        b: &B,
        size: &ScanSize,
        options: &Options,
        batch: usize,
    ) -> usize {
        let Some(nodes) = self.nodes() else { return 1 };
        let images = if size.coil_maps { batch } else { 1 };
        let one = product(&[images, size.voxels(), 2 * size_of::<Complex<T>>()]);
        at_once::<T, B>(b, options, nodes.len(), one)
    }

    /// Bytes of Q once it is made: with off-resonance a spectrum and the factors of voxels for each node.
    pub fn bytes_of_q<T: Real, B: Backend<T>>(&self, b: &B, size: &ScanSize) -> usize {
        let nodes = self.nodes().map_or(0, Segments::len);
        let waves = product(&[nodes, size.voxels(), size_of::<Complex<T>>()]);
        b.convolver_bytes(&size.dims, nodes.max(1)).saturating_add(waves)
    }

    /// The relative l2 error expected of a transform. It is at most the tolerance if that chose the window. For a
    /// window of a given width and oversampling it is the error for evenly spread samples. If all samples are at the
    /// edge of k-space, the error is up to 3.3 times as large.
    pub fn error<T: Real>(&self) -> f64 {
        let window = self.window.as_ref().map_or(T::EPSILON, |window| window.error);
        window.hypot(self.segments().map_or(0.0, |segments| segments.error))
    }
}

/// How many of `count` arrays, `bytes` each, are worked on at once: groups of nearly equal size that stay in cache.
/// Under a memory limit one at a time: a group must not take what a later operation will need.
pub(crate) fn at_once<T: Real, B: Backend<T>>(b: &B, options: &Options, count: usize, bytes: usize) -> usize {
    let most = if options.memory_limit.is_some() { 1 } else { (b.batch_bytes() / bytes.max(1)).clamp(1, count) };
    count.div_ceil(count.div_ceil(most))
}

/// Returns what gridding may take of a tolerance, see [`SHARE`].
fn share(band: &OffResonanceRange) -> f64 {
    match band.decay {
        Some([_, fastest]) if fastest * (band.time[1] - band.time[0]) > STRONG_DECAY => SHARE_WITH_STRONG_DECAY,
        _ => SHARE,
    }
}

/// Bytes of an oversampled grid.
pub(crate) fn grid_bytes<T: Real>(window: &Choice) -> Result<usize> {
    checked_product(&[&window.grid[..], &[size_of::<Complex<T>>()]].concat(), "the oversampled grid")
}
