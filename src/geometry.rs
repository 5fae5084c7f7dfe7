//! What a plan is made for: the trajectory, the image, the coils, and how samples relate to voxels.

use crate::error::{bail, checked_product, Result};
use crate::real::Real;
use num_complex::Complex;

/// The shape of a voxel, whose Fourier transform phi(k) multiplies the samples of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum VoxelBasis {
    /// A point: phi = 1.
    #[default]
    Point,
    /// A box of one voxel: phi = product over axes of sin(pi k)/(pi k).
    Box,
}

/// A scan, in the caller's arrays, which are only read while a plan is made.
///
/// The model of coil c is s_c(m) = sum_r phi(k_m) S_c(r) x(r) exp(-i 2 pi k_m.r), with r = index - floor(n/2) on each
/// axis. Arrays have x fastest.
#[derive(Debug, Clone)]
pub struct Geometry<'a, T: Real> {
    /// Image size, [nx, ny] or [nx, ny, nz].
    pub dims: Vec<usize>,
    /// k-space coordinates in cycles per voxel, within [-0.5, 0.5): one slice of [samples] an axis.
    pub coordinates: Vec<&'a [T]>,
    /// Density weights, none negative, of [samples].
    pub weights: Option<&'a [T]>,
    /// Receive coils.
    pub coils: usize,
    /// Coil sensitivities, [nx, ny, nz, coils]. With them coils are combined into one image, without each has its own.
    pub coil_maps: Option<&'a [Complex<T>]>,
    /// Frames measured on this trajectory, reconstructed independently.
    pub frames: usize,
    /// Voxel positions in voxels, one slice an axis, in place of the grid that `dims` describes. Method exact only.
    pub voxels: Option<Vec<&'a [T]>>,
    /// The shape of a voxel.
    pub basis: VoxelBasis,
    /// Off-resonance in Hz, [nx, ny, nz]: not supported by this version.
    pub field_map: Option<&'a [T]>,
    /// Time of each sample in seconds, [samples], for the field map.
    pub times: Option<&'a [T]>,
}

impl<'a, T: Real> Geometry<'a, T> {
    /// One coil, one frame, no weights, point voxels.
    pub fn new(dims: &[usize], coordinates: &[&'a [T]]) -> Self {
        Geometry {
            dims: dims.to_vec(),
            coordinates: coordinates.to_vec(),
            weights: None,
            coils: 1,
            coil_maps: None,
            frames: 1,
            voxels: None,
            basis: VoxelBasis::Point,
            field_map: None,
            times: None,
        }
    }

    /// With density weights.
    #[must_use]
    pub fn weights(mut self, weights: &'a [T]) -> Self {
        self.weights = Some(weights);
        self
    }

    /// With several coils.
    #[must_use]
    pub fn coils(mut self, coils: usize) -> Self {
        self.coils = coils;
        self
    }

    /// With coil sensitivities.
    #[must_use]
    pub fn coil_maps(mut self, maps: &'a [Complex<T>]) -> Self {
        self.coil_maps = Some(maps);
        self
    }

    /// Samples of one coil and frame.
    pub fn samples(&self) -> usize {
        self.coordinates.first().map_or(0, |k| k.len())
    }

    /// Voxels of one image.
    pub fn voxel_count(&self) -> usize {
        match &self.voxels {
            Some(lists) => lists.first().map_or(0, |r| r.len()),
            None => self.dims.iter().product(),
        }
    }

    /// Checks sizes, and every number.
    pub fn check(&self) -> Result<()> {
        let ndim = self.dims.len();
        if ndim != 2 && ndim != 3 {
            bail!(InvalidSize, "the image has {ndim} dimensions: 2 or 3 are supported");
        }
        if let Some(axis) = self.dims.iter().position(|&n| n == 0) {
            bail!(InvalidSize, "the image's size on axis {axis} is 0: every axis needs at least one voxel");
        }
        if let Some(axis) = self.dims.iter().position(|&n| n > 1 << 24) {
            bail!(
                SizeOverflow,
                "the image's size on axis {axis} is {}: at most {} voxels an axis are supported",
                self.dims[axis],
                1 << 24
            );
        }
        checked_product(&self.dims, "the image")?;
        if self.coordinates.len() != ndim {
            bail!(SizeMismatch, "{} coordinate arrays for {ndim} dimensions: give one an axis", self.coordinates.len());
        }
        let samples = self.samples();
        if samples == 0 {
            bail!(InvalidSize, "there are no samples: a plan needs at least one");
        }
        if self.coils == 0 || self.frames == 0 {
            bail!(InvalidSize, "{} coils and {} frames: at least one of each is needed", self.coils, self.frames);
        }
        for (axis, k) in self.coordinates.iter().enumerate() {
            if k.len() != samples {
                bail!(
                    SizeMismatch,
                    "{} coordinates on axis {axis}, but {samples} on axis 0: every sample needs one on each axis",
                    k.len()
                );
            }
            if let Some(m) = k.iter().position(|k| !(*k >= T::of(-0.5) && *k < T::of(0.5))) {
                if !k[m].finite() {
                    bail!(NotFinite, "coordinate of sample {m} on axis {axis} is {}: it must be a number", k[m]);
                }
                bail!(
                    CoordinateOutOfRange,
                    "coordinate of sample {m} on axis {axis} is {}, outside [-0.5, 0.5) cycles per voxel: divide \
                     coordinates in cycles per field of view by the image's size, radians by 2 pi",
                    k[m]
                );
            }
        }
        if let Some(w) = self.weights {
            check_len("density weights", w.len(), samples, "one a sample")?;
            if let Some(m) = w.iter().position(|w| !(w.finite() && *w >= T::ZERO)) {
                if !w[m].finite() {
                    bail!(NotFinite, "density weight {m} is {}: it must be a number", w[m]);
                }
                bail!(InvalidArgument, "density weight {m} is {}: weights must not be negative", w[m]);
            }
        }
        if let Some(lists) = &self.voxels {
            if lists.len() != ndim {
                bail!(SizeMismatch, "{} lists of voxel positions for {ndim} dimensions: give one an axis", lists.len());
            }
            if lists[0].is_empty() {
                bail!(InvalidSize, "the voxel list is empty: give at least one position, or none for the whole grid");
            }
            for (axis, r) in lists.iter().enumerate() {
                check_len("voxel positions on an axis", r.len(), lists[0].len(), "as many as on axis 0")?;
                if let Some(i) = r.iter().position(|r| !r.finite()) {
                    bail!(NotFinite, "position of voxel {i} on axis {axis} is {}: it must be a number", r[i]);
                }
            }
        }
        let voxels = self.voxel_count();
        checked_product(&[voxels, self.coils, self.frames], "the images")?;
        checked_product(&[samples, self.coils, self.frames], "the k-space data")?;
        if let Some(maps) = self.coil_maps {
            check_len("coil sensitivities", maps.len(), voxels * self.coils, "voxels times coils")?;
            check_finite("coil sensitivity", maps)?;
        }
        if self.field_map.is_some() || self.times.is_some() {
            bail!(Unsupported, "a field map is not supported by this version: leave field_map and times unset");
        }
        Ok(())
    }
}

/// Compares a length with what it must be.
pub(crate) fn check_len(what: &str, len: usize, expected: usize, why: &str) -> Result<()> {
    if len != expected {
        bail!(SizeMismatch, "{len} {what} were given, {expected} are needed ({why})");
    }
    Ok(())
}

/// Refuses NaN and infinity, and names the first by index.
pub(crate) fn check_finite<T: Real>(what: &str, values: &[Complex<T>]) -> Result<()> {
    // Without an early way out inside a block the compiler makes vector code of it, at the speed of memory.
    const BLOCK: usize = 4096;
    for (b, block) in values.chunks(BLOCK).enumerate() {
        let bad = block.iter().fold(false, |bad, z| bad | !z.re.finite() | !z.im.finite());
        if bad {
            let at = block.iter().position(|z| !(z.re.finite() && z.im.finite())).unwrap_or(0);
            let (i, z) = (b * BLOCK + at, block[at]);
            bail!(NotFinite, "{what} {i} is {} + {}i: it must be a number", z.re, z.im);
        }
    }
    Ok(())
}
