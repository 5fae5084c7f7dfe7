//! Images from a sliding window: the data of each image are those of the newest images of its slice.

use super::position::SliceKey;
use super::scan_data::Scan;
use super::warnings::warn;
use crate::base::error::{checked_product, try_reserve, Result};
use std::collections::{BTreeMap, VecDeque};

/// The newest images of each slice.
#[derive(Default)]
pub(super) struct SlidingWindow {
    /// The number of images whose data are joined; 0 and 1 mean no window.
    size: usize,
    images: BTreeMap<SliceKey, VecDeque<Scan>>,
}

impl SlidingWindow {
    /// Creates an empty window of `size` images.
    pub fn new(size: usize) -> SlidingWindow {
        SlidingWindow { size, ..SlidingWindow::default() }
    }

    /// Adds an image. Returns the data of the window, with the index and the position of this image. If the number of
    /// coils, the dimensions or the presence of weights changes, the window starts again.
    ///
    /// # Errors
    /// `OutOfHostMemory`. The image is then not in the window.
    pub fn add(&mut self, scan: Scan) -> Result<Scan> {
        if self.size <= 1 {
            return Ok(scan);
        }
        let images = self.images.entry(scan.index.slice_key()).or_default();
        if let Some(previous) = images.back().filter(|previous| shape(previous) != shape(&scan)) {
            warn(format!(
                "the sliding window starts again: slice {}, repetition {} has {}, the previous image of the slice {}. \
                 Until the window of {} images is full again, images are made from fewer: check whether a coil is \
                 missing",
                scan.index.slice,
                scan.index.repetition,
                shape_text(&scan),
                shape_text(previous),
                self.size
            ));
            images.clear();
        }
        images.push_back(scan);
        while images.len() > self.size {
            images.pop_front();
        }
        let joined = join(images);
        if joined.is_err() {
            images.pop_back();
        }
        joined
    }
}

/// Returns the numbers that are equal in all images of a window.
fn shape(scan: &Scan) -> (usize, usize, bool) {
    (scan.coils, scan.ndim, scan.weights.is_some())
}

fn shape_text(scan: &Scan) -> String {
    let (coils, ndim, has_weights) = shape(scan);
    format!("{coils} coils and {ndim} dimensions {} density weights", if has_weights { "with" } else { "without" })
}

/// Returns the samples of all images, with the properties of the last one.
fn join(images: &VecDeque<Scan>) -> Result<Scan> {
    let newest = &images[images.len() - 1];
    let samples = images.iter().map(Scan::samples).sum();
    let gather = |values: &dyn Fn(&Scan) -> &[f32]| -> Result<Vec<f32>> {
        let mut all = try_reserve(samples, "the sliding window")?;
        images.iter().for_each(|image| all.extend_from_slice(values(image)));
        Ok(all)
    };
    let shots = |values: fn(&Scan) -> &[usize]| -> Result<Vec<usize>> {
        let count = images.iter().map(|image| values(image).len()).sum();
        let mut all = try_reserve(count, "the sliding window")?;
        images.iter().for_each(|image| all.extend_from_slice(values(image)));
        Ok(all)
    };
    let mut data = try_reserve(checked_product(&[samples, newest.coils], "the data")?, "the sliding window")?;
    for coil in 0..newest.coils {
        for image in images {
            let count = image.samples();
            data.extend_from_slice(&image.data[coil * count..][..count]);
        }
    }
    let weights = newest.weights.as_ref();
    Ok(Scan {
        coordinates: (0..newest.ndim).map(|axis| gather(&|image| &image.coordinates[axis])).collect::<Result<_>>()?,
        weights: weights.map(|_| gather(&|image| image.weights.as_deref().unwrap_or_default())).transpose()?,
        samples_per_shot: shots(|image| &image.samples_per_shot)?,
        skipped_per_shot: shots(|image| &image.skipped_per_shot)?,
        data,
        times: gather(&|image| &image.times)?,
        coil_matrix: newest.coil_matrix.clone(),
        ..*newest
    })
}
