//! Scan without the motion of its blades, and the motion that was found.

#[cfg(doc)]
use super::options::BladePhase;
use crate::base::real::Real;
use num_complex::Complex;

/// Position of the object during a blade, relative to its mean position over all blades.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BladeMotion {
    /// Rotation of the object in degrees about voxel floor(n/2), from x to y.
    pub rotation: f64,
    /// Translation of the object in voxels along x and y, after the rotation.
    pub translation: [f64; 2],
    /// Phase in radians that was removed from the blade; for [`BladePhase::Smooth`], its mean over the image.
    pub phase: f64,
    /// Correlation, from 0 to 1, of the corrected blade with all others near the centre of k-space.
    pub correlation: f64,
    /// Weight of the blade in the image, from 0 to 1, relative to blades that overlap with it.
    pub weight: f64,
}

/// Scan without the motion of its blades.
#[derive(Debug, Clone, PartialEq)]
pub struct Corrected<T: Real> {
    /// Number of blades.
    pub blades: usize,
    /// Number of lines per blade.
    pub lines: usize,
    /// Number of samples per line.
    pub readout: usize,
    /// Motion of each blade: [blades, frames].
    pub motion: Vec<BladeMotion>,
    /// Coordinates of the samples relative to the object, along x and y: [samples, frames]. A sample that a rotation
    /// moves out of [-0.5, 0.5) is at the edge, with weight 0.
    pub coordinates: [Vec<T>; 2],
    /// Density weights for `coordinates` (Pipe and Menon 1999), times the weights of blades in overlaps: [samples,
    /// frames].
    pub weights: Vec<T>,
    /// Corrected data, [samples, coils, frames].
    pub kspace: Vec<Complex<T>>,
}
