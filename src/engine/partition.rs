//! The division of a scan among several backends: by coils, or by voxels with exact sums.

use super::memory::Memory;
use crate::backend::Backend;
use crate::base::error::{try_reserve, Result};
use crate::base::geometry::Geometry;
use crate::base::options::Options;
use crate::base::real::Real;
use crate::base::scan_size::ScanSize;
use num_complex::Complex;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// Phases exp(+i 2 pi k.shift) and exp(-i 2 pi k.shift) of each sample. `shift` is the distance from the centre of some
/// layers of a grid to the centre of the grid.
pub(super) type LayerPhases<T, B> = Arc<[<B as Backend<T>>::Array<Complex<T>>; 2]>;

/// The quantity by which a scan is divided.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ScanDivision {
    Coils,
    /// Voxels of a list, or layers along the last axis of a grid.
    Voxels,
}

impl ScanDivision {
    /// Returns the coil maps of one part. `range` contains its coils or voxels.
    pub fn part_maps<'m, T: Real>(
        self,
        maps: &'m [Complex<T>],
        voxels: usize,
        range: &Range<usize>,
    ) -> Result<Cow<'m, [Complex<T>]>> {
        if self == ScanDivision::Coils {
            return Ok(Cow::Borrowed(&maps[range.start * voxels..range.end * voxels]));
        }
        let coils = maps.len() / voxels;
        let mut part = try_reserve(range.len() * coils, "the coil sensitivities")?;
        maps.chunks_exact(voxels).for_each(|map| part.extend_from_slice(&map[range.clone()]));
        Ok(Cow::Owned(part))
    }

    /// Returns the geometry of one part, with `maps` as its coil maps.
    pub fn part_geometry<'a, T: Real>(
        self,
        geometry: &Geometry<'a, T>,
        range: &Range<usize>,
        maps: Option<&'a [Complex<T>]>,
    ) -> Geometry<'a, T> {
        let mut part = Geometry { coil_maps: maps, ..geometry.clone() };
        if self == ScanDivision::Coils {
            part.coils = range.len();
            return part;
        }
        part.voxels = geometry.voxels.as_ref().map(|axes| axes.iter().map(|r| &r[range.clone()]).collect());
        part.field_map = geometry.field_map.map(|map| &map[range.clone()]);
        part.decay_map = geometry.decay_map.map(|map| &map[range.clone()]);
        if geometry.voxels.is_none() {
            let last = geometry.dims.len() - 1;
            part.dims[last] = range.len() / layer_len(&geometry.dims);
        }
        part
    }

    /// Computes the sample phases of one part; `None` unless the parts are layers of a grid.
    pub fn layer_phases<T: Real, B: Backend<T>>(
        self,
        backend: &B,
        geometry: &Geometry<'_, T>,
        range: &Range<usize>,
    ) -> Result<Option<LayerPhases<T, B>>> {
        if self == ScanDivision::Coils || geometry.voxels.is_some() {
            return Ok(None);
        }
        let last = geometry.dims.len() - 1;
        let layer = layer_len(&geometry.dims);
        let layers = range.start / layer..range.end / layer;
        let shift = (layers.start + layers.len() / 2) as f64 - (geometry.dims[last] / 2) as f64;
        let samples = geometry.samples();
        let k = backend.upload(geometry.coordinates[last], "the coordinates")?;
        let phases = |shift: f64| -> Result<B::Array<Complex<T>>> {
            let mut phases = backend.zeros(samples, "the phases of layers")?;
            backend.ramp(&[backend.view(&k)], &[shift], None, backend.view_mut(&mut phases));
            Ok(phases)
        };
        Ok(Some(Arc::new([phases(shift)?, phases(-shift)?])))
    }
}

/// Returns the number of voxels in one layer along the last axis.
fn layer_len(dims: &[usize]) -> usize {
    dims[..dims.len() - 1].iter().product()
}

/// Splits `count` items into `parts` ranges of nearly equal size.
pub(super) fn split_evenly(count: usize, parts: usize) -> impl Iterator<Item = Range<usize>> {
    (0..parts).map(move |i| count * i / parts..count * (i + 1) / parts)
}

/// Returns the number of parts of a scan (1 if it is not divided), the number of items to divide, and the number of
/// voxels per item. Items are coils, voxels of a list, or layers of a grid.
pub(super) fn partition(backends: usize, size: &ScanSize, options: &Options, exact: bool) -> (usize, usize, usize) {
    let layer = if size.listed.is_some() { 1 } else { layer_len(&size.dims) };
    let count = if exact { size.voxels() / layer } else { size.coils };
    let parts = backends.min(count);
    (if parts < 2 || options.memory_limit.is_some() { 1 } else { parts }, count, layer)
}

/// Returns the bytes of a scan on `backends` backends together. `memory` returns the bytes of one encoding.
pub(crate) fn memory(
    backends: usize,
    size: &ScanSize,
    options: &Options,
    memory: impl Fn(&ScanSize) -> Result<Memory>,
    exact: bool,
) -> Result<Memory> {
    let (parts, count, _) = partition(backends, size, options, exact);
    if parts == 1 {
        return memory(size);
    }
    // If the scan is divided by voxels, the first backend also has the whole scan.
    let mut total = if exact { memory(size)? } else { Memory::default() };
    for range in split_evenly(count, parts) {
        let mut part = size.clone();
        match (exact, part.listed) {
            (false, _) => part.coils = range.len(),
            (true, Some(_)) => part.listed = Some(range.len()),
            (true, None) => *part.dims.last_mut().expect("an image has axes") = range.len(),
        }
        total = total.plus(memory(&part)?);
    }
    Ok(total)
}
