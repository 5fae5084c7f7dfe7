//! k-space trajectories: a container, and generators for common sampling patterns.
//!
//! ```
//! use recon::trajectory::{SpokeOrder, Trajectory};
//! let trajectory = Trajectory::radial2d(96, 256, SpokeOrder::GoldenAngle)?;
//! assert_eq!((trajectory.ndim(), trajectory.samples()), (2, 96 * 256));
//! assert_eq!(trajectory.axis(0)[128], 0.0); // the middle of the first spoke
//! # Ok::<(), recon::Error>(())
//! ```
//!
//! Coordinates are in cycles per voxel, in [-0.5, 0.5) on each axis. The generators produce shapes, not gradient
//! waveforms: they have no limits of amplitude and slew rate, and samples are equally spaced in the parameter of each
//! generator.

use crate::base::error::{bail, checked_product, try_vec, Result};
use crate::base::geometry::in_range;
use crate::base::real::Real;
use crate::base::results::check_results;
use std::f64::consts::{PI, TAU};

/// Golden ratio conjugate, (sqrt(5) - 1) / 2.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// Order of the spokes of [`Trajectory::radial2d`] and [`Trajectory::stack_of_stars`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SpokeOrder {
    /// Spoke p has the angle p pi / spokes.
    Linear,
    /// Spoke p has the angle p times 111.246117975 degrees, pi times the golden ratio conjugate, modulo a full turn.
    /// Any series of successive spokes covers the circle almost evenly (Winkelmann et al. 2007, IEEE TMI 26:68).
    GoldenAngle,
}

/// Positions of a scan's samples in k-space: one coordinate per axis and sample, in cycles per voxel in [-0.5, 0.5).
///
/// Samples are ordered by shot, in the order of acquisition. A shot is one readout: a line, spoke or interleaf.
#[derive(Debug, Clone, PartialEq)]
pub struct Trajectory {
    k: Vec<Vec<f64>>,
    samples_per_shot: usize,
    shots: usize,
}

impl Trajectory {
    /// Creates a trajectory from its coordinates: one vector per axis (x, y, z), each with `samples_per_shot`
    /// coordinates per shot. Coordinates that exceed an end of [-0.5, 0.5) only by rounding are set to that end.
    ///
    /// # Errors
    /// - `InvalidSize` for no or more than three axes, no samples, or a length that `samples_per_shot` does not divide.
    /// - `SizeMismatch` for axes of different lengths.
    /// - `NotFinite` and `CoordinateOutOfRange` with the index.
    pub fn new(mut axes: Vec<Vec<f64>>, samples_per_shot: usize) -> Result<Self> {
        if axes.is_empty() || axes.len() > 3 {
            bail!(InvalidSize, "a trajectory has {} axes: give one to three", axes.len());
        }
        let samples = axes[0].len();
        if samples == 0 || samples_per_shot == 0 || !samples.is_multiple_of(samples_per_shot) {
            bail!(
                InvalidSize,
                "{samples} samples are not a whole number of shots of {samples_per_shot} samples: give a positive \
                 divisor of the number of samples"
            );
        }
        for (axis, k) in axes.iter_mut().enumerate() {
            if k.len() != samples {
                bail!(
                    SizeMismatch,
                    "axis {axis} has {} coordinates and axis 0 has {samples}: give one for each sample",
                    k.len()
                );
            }
            for (m, k) in k.iter_mut().enumerate() {
                if !k.is_finite() {
                    bail!(NotFinite, "the coordinate of sample {m} on axis {axis} is {k}: give finite coordinates");
                }
                if !in_range(*k) {
                    bail!(
                        CoordinateOutOfRange,
                        "the coordinate of sample {m} on axis {axis} is {k}: scale to cycles per voxel in [-0.5, 0.5)"
                    );
                }
                *k = k.clamp(-0.5, f64::below_half());
            }
        }
        Ok(Trajectory { k: axes, samples_per_shot, shots: samples / samples_per_shot })
    }

    /// Returns the number of axes: 1, 2 or 3.
    pub fn ndim(&self) -> usize {
        self.k.len()
    }

    /// Returns the number of samples of all shots.
    pub fn samples(&self) -> usize {
        self.k[0].len()
    }

    /// Returns the number of shots.
    pub fn shots(&self) -> usize {
        self.shots
    }

    /// Returns the number of samples per shot.
    pub fn samples_per_shot(&self) -> usize {
        self.samples_per_shot
    }

    /// Returns the coordinates on axis `i` (0 is x), one per sample, in cycles per voxel. Panics if the axis does not
    /// exist.
    pub fn axis(&self, i: usize) -> &[f64] {
        &self.k[i]
    }

    /// Returns the coordinates on every axis, x first.
    pub fn axes(&self) -> Vec<&[f64]> {
        self.k.iter().map(Vec::as_slice).collect()
    }

    /// Returns the coordinates on axis `i`, rounded to `T` without reaching 0.5. Panics if the axis does not exist.
    pub fn axis_as<T: Real>(&self, i: usize) -> Vec<T> {
        self.k[i].iter().map(|&k| T::coordinate(k)).collect()
    }

    /// Returns the shots `first`, `first + stride`, `first + 2 stride`, ..., as an undersampled scan.
    ///
    /// # Errors
    /// `InvalidArgument` if the shot `first` does not exist, or for a stride of zero.
    pub fn select_shots(&self, first: usize, stride: usize) -> Result<Self> {
        if first >= self.shots {
            bail!(
                InvalidArgument,
                "the first shot is {first}, but the trajectory has {}: give a smaller index",
                self.shots
            );
        }
        if stride == 0 {
            bail!(InvalidArgument, "the stride between shots is 0: give 1 or more");
        }
        let pick = |k: &Vec<f64>| -> Vec<f64> {
            k.chunks_exact(self.samples_per_shot).skip(first).step_by(stride).flatten().copied().collect()
        };
        let k: Vec<_> = self.k.iter().map(pick).collect();
        let shots = k[0].len() / self.samples_per_shot;
        Ok(Trajectory { k, samples_per_shot: self.samples_per_shot, shots })
    }

    /// Returns the time of each sample in seconds from the start of its shot, for off-resonance. Sample j of a shot has
    /// the time j `readout_seconds` / `samples_per_shot`.
    ///
    /// # Errors
    /// `InvalidArgument` unless the readout is positive and finite; `OutOfHostMemory`.
    pub fn times(&self, readout_seconds: f64) -> Result<Vec<f64>> {
        if !(readout_seconds > 0.0 && readout_seconds.is_finite()) {
            bail!(InvalidArgument, "the readout lasts {readout_seconds} s: give a positive, finite time");
        }
        let mut times = try_vec(self.samples(), 0.0, "sample times")?;
        for shot in times.chunks_exact_mut(self.samples_per_shot) {
            for (j, t) in shot.iter_mut().enumerate() {
                *t = readout_seconds * (j as f64 / self.samples_per_shot as f64);
            }
        }
        Ok(times)
    }

    /// Creates a fully sampled Cartesian grid of one to three axes.
    ///
    /// On each axis, k = (index - floor(n / 2)) / n. x is fastest, and a shot is a line along x. The model of this
    /// trajectory is the discrete Fourier transform with the origin in the middle.
    ///
    /// # Errors
    /// `InvalidSize` for no or more than three axes or a zero size; `SizeOverflow`; `OutOfHostMemory`.
    pub fn cartesian(dims: &[usize]) -> Result<Self> {
        if dims.is_empty() || dims.len() > 3 {
            bail!(InvalidSize, "a Cartesian grid has {} axes: give one to three", dims.len());
        }
        if let Some(axis) = dims.iter().position(|&n| n == 0) {
            bail!(InvalidSize, "the size of axis {axis} is 0: give 1 or more");
        }
        let size = |axis: usize| dims.get(axis).copied().unwrap_or(1);
        let (nx, ny, nz) = (size(0), size(1), size(2));
        let lines = checked_product(&dims[1..], "a Cartesian grid")?;
        build(dims.len(), ("lines", lines), ("samples", nx), |line| {
            let (ky, kz) = (centred(line % ny, ny), centred(line / ny, nz));
            move |j| [centred(j, nx), ky, kz]
        })
    }

    /// Creates 2D radial spokes through the centre (Lauterbur 1973, Nature 242:190), one per shot.
    ///
    /// Sample j of spoke p has the signed radius (j - floor(samples / 2)) / samples in [-0.5, 0.5) at the angle that
    /// `order` defines. Sample floor(samples / 2) of every spoke is the centre.
    ///
    /// # Errors
    /// `InvalidSize` for a zero count; `SizeOverflow`; `OutOfHostMemory`.
    pub fn radial2d(spokes: usize, samples: usize, order: SpokeOrder) -> Result<Self> {
        build(2, ("spokes", spokes), ("samples", samples), |p| spoke(p, spokes, samples, order, 0.0))
    }

    /// Creates a stack of stars (Peters et al. 2000, MRM 43:91): the same spokes as [`Trajectory::radial2d`] in planes
    /// of constant kz, one spoke per shot.
    ///
    /// Partition q has kz = (q - floor(partitions / 2)) / partitions. The order is partition, spoke, sample, so that
    /// every n-th shot is a stack of fewer spokes.
    ///
    /// # Errors
    /// `InvalidSize` for a zero count; `SizeOverflow`; `OutOfHostMemory`.
    pub fn stack_of_stars(spokes: usize, samples: usize, partitions: usize, order: SpokeOrder) -> Result<Self> {
        if spokes == 0 || partitions == 0 {
            bail!(InvalidSize, "there are {partitions} partitions of {spokes} spokes: give at least one of each");
        }
        let shots = checked_product(&[spokes, partitions], "a stack of stars")?;
        build(3, ("shots", shots), ("samples", samples), |shot| {
            spoke(shot % spokes, spokes, samples, order, centred(shot / spokes, partitions))
        })
    }

    /// Creates 3D radial spokes through the centre, the "kooshball", one spoke per shot.
    ///
    /// Radii are those of [`Trajectory::radial2d`]. Directions are spread evenly on the half sphere z > 0 by spiral
    /// phyllotaxis (Piccini et al. 2011, MRM 66:1049), from the pole to the equator with the golden angle 2.39996 rad
    /// between spokes.
    ///
    /// The height is that of the equal-area spiral (Swinbank and Purser 2006, QJRMS 132:1769), z = 1 - (p + 1/2) /
    /// spokes. Every spoke thus represents the same solid angle. The square root in the polar angle of Piccini et al.
    /// is valid only near the pole.
    ///
    /// # Errors
    /// `InvalidSize` for a zero count; `SizeOverflow`; `OutOfHostMemory`.
    pub fn radial3d(spokes: usize, samples: usize) -> Result<Self> {
        build(3, ("spokes", spokes), ("samples", samples), |p| {
            let z = 1.0 - (p as f64 + 0.5) / spokes as f64;
            let across = (1.0 - z * z).sqrt();
            let (sin, cos) = (TAU * (p as f64 * (1.0 - GOLDEN)).fract()).sin_cos();
            move |j| {
                let radius = centred(j, samples);
                [radius * across * cos, radius * across * sin, radius * z]
            }
        })
    }

    /// Creates 2D spirals from the centre outwards (Ahn, Kim and Cho 1986, IEEE TMI 5:2), one interleaf per shot.
    ///
    /// With u = j / samples, sample j of interleaf p has the radius 0.5 u^`density` and the angle 2 pi (`turns` u + p /
    /// `interleaves`). A density of 1 is the Archimedean spiral. With a density above 1, the centre is sampled more
    /// densely (Spielman, Pauly and Meyer 1995, MRM 34:388). The last sample is strictly inside 0.5.
    ///
    /// # Errors
    /// - `InvalidSize` for a zero count.
    /// - `InvalidArgument` unless turns and density are positive and finite.
    /// - `SizeOverflow`, `OutOfHostMemory`.
    pub fn spiral(interleaves: usize, samples: usize, turns: f64, density: f64) -> Result<Self> {
        positive("number of turns", turns)?;
        positive("density exponent", density)?;
        build(2, ("interleaves", interleaves), ("samples", samples), |p| {
            let start = p as f64 / interleaves as f64;
            move |j| {
                let u = j as f64 / samples as f64;
                polar(0.5 * u.powf(density), TAU * (turns * u + start))
            }
        })
    }

    /// Creates 2D rosettes (Noll 1997, IEEE TMI 16:372): k = 0.5 sin(2 pi `radial` u) exp(i 2 pi `angular` u), u = j /
    /// samples.
    ///
    /// `radial` and `angular` are the numbers of oscillations and of turns per shot. Shot p is turned by p golden
    /// angles (see [`SpokeOrder::GoldenAngle`]), because turns that divide the circle can map a rosette onto itself.
    ///
    /// # Errors
    /// - `InvalidSize` for a zero count.
    /// - `InvalidArgument` unless both frequencies are positive and finite.
    /// - `SizeOverflow`, `OutOfHostMemory`.
    pub fn rosette(shots: usize, samples: usize, radial: f64, angular: f64) -> Result<Self> {
        positive("radial frequency", radial)?;
        positive("angular frequency", angular)?;
        build(2, ("shots", shots), ("samples", samples), |p| {
            let start = golden_angle(p);
            move |j| {
                let u = j as f64 / samples as f64;
                polar(0.5 * (TAU * radial * u).sin(), TAU * angular * u + start)
            }
        })
    }

    /// Creates a 2D Lissajous curve (Moriguchi, Wendt and Duerk 2000, MRM 44:766), cut into shots of equal duration.
    /// Positions are k = 0.5 (sin(2 pi `x_frequency` u), sin(2 pi `y_frequency` u)).
    ///
    /// Sample j of shot p has u = (p samples + j) / (shots samples), so that all shots together are the closed curve.
    /// It covers the square of k-space by two families of crossing lines. In the middle, the lines of a family are pi /
    /// (2 hypot(`x_frequency`, `y_frequency`)) apart, and closer elsewhere.
    ///
    /// An image of n x n voxels needs frequencies of at least 1.12 n, where that distance is 1 / n. Gridding needs 1.25
    /// n: its errors for a phantom of 128 x 128 voxels are 19 % at 1.125 n and 8.3 % at 1.25 n. Conjugate gradients
    /// have errors of 8.6 and 8.3 %.
    ///
    /// # Errors
    /// - `InvalidSize` for a zero count.
    /// - `InvalidArgument` for a frequency of 0, and for fewer than four samples per oscillation.
    /// - `InvalidArgument` for frequencies that repeat the curve (with a common factor) or trace it back (both odd).
    ///   Such a scan would measure the same positions several times, and leave wider gaps.
    /// - `SizeOverflow`, `OutOfHostMemory`.
    pub fn lissajous(shots: usize, samples: usize, x_frequency: usize, y_frequency: usize) -> Result<Self> {
        let (total, frequencies) = (shots.checked_mul(samples), [x_frequency, y_frequency]);
        if total != Some(0) {
            check_frequencies(frequencies, total)?;
        }
        // Multiples of the frequency are reduced as integers, so that the curve is closed without rounding errors.
        let phase = |frequency: usize, m: usize| {
            let total = (shots as u128) * samples as u128;
            TAU * ((frequency as u128 * m as u128 % total) as f64 / total as f64)
        };
        build(2, ("shots", shots), ("samples", samples), |p| {
            move |j| {
                let [x, y] = frequencies.map(|frequency| 0.5 * phase(frequency, p * samples + j).sin());
                [x, y, 0.0]
            }
        })
    }

    /// Creates PROPELLER blades (Pipe 1999, MRM 42:963) of a scan whose readout is not oversampled: the lines of a
    /// blade are 1 / samples apart. This is [`Trajectory::propeller_scan`] with `samples` as the scan matrix.
    ///
    /// # Errors
    /// The errors of [`Trajectory::propeller_scan`].
    pub fn propeller(blades: usize, lines: usize, samples: usize) -> Result<Self> {
        Self::propeller_scan(blades, lines, samples, samples)
    }

    /// Creates PROPELLER blades as a scanner measures them, one line per shot, in the order blade, line, sample.
    ///
    /// Blade p is a strip of `lines` parallel lines at distances 1 / `scan_matrix`, turned by p pi / blades about the
    /// centre. Line l is at (l - floor(lines / 2)) / `scan_matrix` across the strip, so that each blade samples the
    /// centre. A readout has `samples` samples over the same width of k-space: it is oversampled if `samples` is above
    /// `scan_matrix`.
    ///
    /// The strip has the length 2 h, where h = sqrt(0.25 - (floor(lines / 2) / `scan_matrix`)^2), so that its corners
    /// stay in the disc of radius 0.5 at every angle. The distance of samples along a line is therefore 2 h / samples.
    ///
    /// The blades cover the circle of radius 0.5 if blades times lines is at least pi / 2 times `scan_matrix`. The scan
    /// of Yang et al. 2013 (Magn. Reson. Imaging 31:313) does so by 1 %:
    ///
    /// ```
    /// # use recon::Trajectory;
    /// let scan = Trajectory::propeller_scan(17, 24, 960, 256)?;
    /// assert_eq!((scan.shots(), scan.samples_per_shot()), (17 * 24, 960));
    /// # Ok::<(), recon::Error>(())
    /// ```
    ///
    /// # Errors
    /// - `InvalidSize` for a zero count.
    /// - `InvalidArgument` if `samples` < `scan_matrix`, or if 2 lines > `scan_matrix` (a blade wider than half of
    ///   k-space).
    /// - `SizeOverflow`, `OutOfHostMemory`.
    pub fn propeller_scan(blades: usize, lines: usize, samples: usize, scan_matrix: usize) -> Result<Self> {
        if blades == 0 || lines == 0 {
            bail!(InvalidSize, "there are {blades} blades of {lines} lines: give at least one of each");
        }
        if samples == 0 || scan_matrix == 0 {
            bail!(
                InvalidSize,
                "a line has {samples} samples and the scan matrix is {scan_matrix}: give 1 or more of each"
            );
        }
        if samples < scan_matrix {
            bail!(
                InvalidArgument,
                "{samples} samples of a line are fewer than the scan matrix {scan_matrix}, so that the field of view \
                 along lines would be smaller than across them: give at least {scan_matrix} samples, or a smaller scan \
                 matrix"
            );
        }
        if lines > scan_matrix / 2 {
            bail!(
                InvalidArgument,
                "a blade of {lines} lines, 1 / {scan_matrix} apart, is wider than half of k-space: give at most {} \
                 lines",
                scan_matrix / 2
            );
        }
        let shots = checked_product(&[blades, lines], "a PROPELLER trajectory")?;
        let widest = (lines / 2) as f64 / scan_matrix as f64;
        let length = 2.0 * (0.25 - widest * widest).sqrt();
        build(2, ("lines", shots), ("samples", samples), |shot| {
            let (sin, cos) = (PI * ((shot / lines) as f64 / blades as f64)).sin_cos();
            let across = ((shot % lines) as f64 - (lines / 2) as f64) / scan_matrix as f64;
            move |j| {
                let along = length * centred(j, samples);
                [along * cos - across * sin, along * sin + across * cos, 0.0]
            }
        })
    }
}

/// Creates a trajectory by calling `shot(p)(j)` for the coordinates of sample j of shot p.
fn build<S, J>(ndim: usize, shots: (&str, usize), samples: (&str, usize), shot: S) -> Result<Trajectory>
where
    S: Fn(usize) -> J,
    J: Fn(usize) -> [f64; 3],
{
    for (name, count) in [shots, samples] {
        if count == 0 {
            bail!(InvalidSize, "the number of {name} is 0: give 1 or more");
        }
    }
    let (shots, samples_per_shot) = (shots.1, samples.1);
    let total = checked_product(&[shots, samples_per_shot], "a trajectory")?;
    let mut k = Vec::with_capacity(ndim);
    for _ in 0..ndim {
        k.push(try_vec(total, 0.0, "trajectory coordinates")?);
    }
    for p in 0..shots {
        let sample = shot(p);
        for j in 0..samples_per_shot {
            for (axis, k_j) in k.iter_mut().zip(sample(j)) {
                // Rounding of a sine or a product can exceed either end by one unit in the last place.
                axis[p * samples_per_shot + j] = k_j.clamp(-0.5, f64::below_half());
            }
        }
    }
    for axis in &k {
        check_results("coordinate of sample", axis)?;
    }
    Ok(Trajectory { k, samples_per_shot, shots })
}

/// Returns the coordinate of an index on an axis of n samples: (index - floor(n / 2)) / n.
fn centred(index: usize, n: usize) -> f64 {
    (index as f64 - (n / 2) as f64) / n as f64
}

/// Returns a function for the samples of spoke `p` in the plane at `kz`.
fn spoke(p: usize, spokes: usize, samples: usize, order: SpokeOrder, kz: f64) -> impl Fn(usize) -> [f64; 3] {
    let (sin, cos) = match order {
        SpokeOrder::Linear => PI * (p as f64 / spokes as f64),
        SpokeOrder::GoldenAngle => golden_angle(p),
    }
    .sin_cos();
    move |j| {
        let radius = centred(j, samples);
        [radius * cos, radius * sin, kz]
    }
}

/// Returns p golden angles, modulo a full turn.
fn golden_angle(p: usize) -> f64 {
    TAU * (0.5 * GOLDEN * p as f64).fract()
}

/// Checks the frequencies of a Lissajous curve of `total` samples; `None` for more than can be counted.
fn check_frequencies([x, y]: [usize; 2], total: Option<usize>) -> Result<()> {
    if x == 0 || y == 0 {
        bail!(InvalidArgument, "the frequencies of the Lissajous curve are {x} and {y}: give 1 or more of each");
    }
    let factor = greatest_common_divisor(x, y);
    if factor > 1 {
        bail!(
            InvalidArgument,
            "the frequencies {x} and {y} have the common factor {factor}, so that the Lissajous curve is traced \
             {factor} times: give frequencies without a common factor, for example {x} and {}",
            x.saturating_add(1)
        );
    }
    if x % 2 == 1 && y % 2 == 1 {
        bail!(
            InvalidArgument,
            "the frequencies {x} and {y} are both odd, so that the Lissajous curve is traced forth and back: give an \
             even and an odd one, for example {x} and {}",
            x.saturating_add(1)
        );
    }
    let fastest = x.max(y);
    if let Some(total) = total.filter(|&total| total / 4 < fastest) {
        bail!(
            InvalidArgument,
            "{total} samples of all shots are fewer than four per oscillation of the frequency {fastest}: give more \
             samples, or lower frequencies"
        );
    }
    Ok(())
}

/// Returns the greatest common divisor of two positive numbers.
fn greatest_common_divisor(mut a: usize, mut b: usize) -> usize {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Returns a point in the plane from its polar coordinates.
fn polar(radius: f64, angle: f64) -> [f64; 3] {
    let (sin, cos) = angle.sin_cos();
    [radius * cos, radius * sin, 0.0]
}

/// Returns an error unless a number is positive and finite.
fn positive(name: &str, value: f64) -> Result<()> {
    if !(value > 0.0 && value.is_finite()) {
        bail!(InvalidArgument, "the {name} is {value}: give a positive, finite number");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
