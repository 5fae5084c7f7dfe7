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

    /// Creates PROPELLER blades (Pipe 1999, MRM 42:963), one line per shot, in the order blade, line, sample.
    ///
    /// Blade p is a strip of `lines` parallel lines at distances 1 / samples, turned by p pi / blades about the centre.
    /// Line l is at (l - floor(lines / 2)) / samples across the strip, so that each blade samples the centre.
    ///
    /// The strip has the length 2 h, where h = sqrt(0.25 - (floor(lines / 2) / samples)^2), so that its corners stay in
    /// the disc of radius 0.5 at every angle. The distance of samples along a line is therefore 2 h / samples.
    ///
    /// # Errors
    /// - `InvalidSize` for a zero count.
    /// - `InvalidArgument` if 2 lines > samples (a blade wider than half of k-space).
    /// - `SizeOverflow`, `OutOfHostMemory`.
    pub fn propeller(blades: usize, lines: usize, samples: usize) -> Result<Self> {
        if blades == 0 || lines == 0 {
            bail!(InvalidSize, "there are {blades} blades of {lines} lines: give at least one of each");
        }
        if samples != 0 && lines > samples / 2 {
            bail!(
                InvalidArgument,
                "a blade of {lines} lines of {samples} samples is wider than half of k-space: give at most {} lines",
                samples / 2
            );
        }
        let shots = checked_product(&[blades, lines], "a PROPELLER trajectory")?;
        let widest = (lines / 2) as f64 / samples as f64;
        let length = 2.0 * (0.25 - widest * widest).sqrt();
        build(2, ("lines", shots), ("samples", samples), |shot| {
            let (sin, cos) = (PI * ((shot / lines) as f64 / blades as f64)).sin_cos();
            let across = ((shot % lines) as f64 - (lines / 2) as f64) / samples as f64;
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
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;

    /// Returns the kind of an error.
    fn kind(result: Result<Trajectory>) -> ErrorKind {
        result.unwrap_err().kind()
    }

    /// Returns trajectories of all kinds: name, trajectory, axes, shots, samples per shot.
    fn all() -> Vec<(&'static str, Trajectory, usize, usize, usize)> {
        use SpokeOrder::{GoldenAngle, Linear};
        vec![
            ("cartesian 1D", Trajectory::cartesian(&[7]).unwrap(), 1, 1, 7),
            ("cartesian 2D", Trajectory::cartesian(&[6, 5]).unwrap(), 2, 5, 6),
            ("cartesian 3D", Trajectory::cartesian(&[4, 3, 2]).unwrap(), 3, 6, 4),
            ("radial2d linear", Trajectory::radial2d(31, 64, Linear).unwrap(), 2, 31, 64),
            ("radial2d golden", Trajectory::radial2d(500, 33, GoldenAngle).unwrap(), 2, 500, 33),
            ("radial3d", Trajectory::radial3d(555, 32).unwrap(), 3, 555, 32),
            ("stack of stars", Trajectory::stack_of_stars(5, 32, 7, GoldenAngle).unwrap(), 3, 35, 32),
            ("spiral", Trajectory::spiral(16, 500, 8.5, 1.0).unwrap(), 2, 16, 500),
            ("variable spiral", Trajectory::spiral(3, 500, 20.0, 1.7).unwrap(), 2, 3, 500),
            ("step spiral", Trajectory::spiral(4, 9, 1.0, 1e-300).unwrap(), 2, 4, 9),
            ("rosette", Trajectory::rosette(7, 4000, 20.0, 13.0).unwrap(), 2, 7, 4000),
            ("propeller", Trajectory::propeller(17, 24, 96).unwrap(), 2, 17 * 24, 96),
            ("wide propeller", Trajectory::propeller(4, 32, 64).unwrap(), 2, 4 * 32, 64),
        ]
    }

    #[test]
    fn counts_and_ranges_hold_in_both_precisions() {
        for (name, t, ndim, shots, per_shot) in all() {
            assert_eq!((t.ndim(), t.shots(), t.samples_per_shot()), (ndim, shots, per_shot), "{name}");
            assert_eq!(t.samples(), shots * per_shot, "{name}");
            for axis in 0..ndim {
                assert_eq!(t.axis(axis).len(), t.samples(), "{name}");
                assert!(t.axis(axis).iter().all(|k| (-0.5..0.5).contains(k)), "{name}");
                assert!(t.axis_as::<f32>(axis).iter().all(|k| (-0.5..0.5).contains(k)), "{name} in f32");
                assert_eq!(t.axis_as::<f64>(axis), t.axis(axis), "{name}");
            }
            // The checking constructor accepts the results of generators.
            let axes = t.axes().iter().map(|k| k.to_vec()).collect();
            assert_eq!(Trajectory::new(axes, per_shot).unwrap(), t, "{name}");
        }
    }

    #[test]
    fn cartesian_is_the_centred_grid_with_x_fastest() {
        let t = Trajectory::cartesian(&[4, 3, 2]).unwrap();
        assert_eq!(t.axis(0)[..5], [-0.5, -0.25, 0.0, 0.25, -0.5]);
        assert_eq!(t.axis(1)[3..9], [-1.0 / 3.0, 0.0, 0.0, 0.0, 0.0, 1.0 / 3.0]);
        assert_eq!(t.axis(2)[11..13], [-0.5, 0.0]);
    }

    #[test]
    fn spokes_pass_the_centre_and_have_the_angles_of_their_order() {
        for samples in [8, 9] {
            for order in [SpokeOrder::Linear, SpokeOrder::GoldenAngle] {
                let t = Trajectory::radial2d(20, samples, order).unwrap();
                let step = match order {
                    SpokeOrder::Linear => PI / 20.0,
                    SpokeOrder::GoldenAngle => 111.246_117_975_f64.to_radians(),
                };
                for p in 0..20 {
                    let centre = p * samples + samples / 2;
                    assert_eq!((t.axis(0)[centre], t.axis(1)[centre]), (0.0, 0.0));
                    let (kx, ky) = (t.axis(0)[centre + 1], t.axis(1)[centre + 1]);
                    let (sin, cos) = (step * p as f64).sin_cos();
                    assert!((kx - cos / samples as f64).abs() < 1e-10, "{order:?} {p}");
                    assert!((ky - sin / samples as f64).abs() < 1e-10, "{order:?} {p}");
                }
            }
        }
        let t = Trajectory::radial2d(1, 8, SpokeOrder::Linear).unwrap();
        assert_eq!(t.axis(0), [-0.5, -0.375, -0.25, -0.125, 0.0, 0.125, 0.25, 0.375]);
    }

    #[test]
    fn a_stack_has_the_same_star_in_each_partition() {
        let (spokes, samples) = (6, 10);
        for order in [SpokeOrder::Linear, SpokeOrder::GoldenAngle] {
            for partitions in [1, 4, 5] {
                let star = Trajectory::radial2d(spokes, samples, order).unwrap();
                let stack = Trajectory::stack_of_stars(spokes, samples, partitions, order).unwrap();
                assert_eq!((stack.ndim(), stack.shots()), (3, spokes * partitions));
                for q in 0..partitions {
                    let shots = q * spokes * samples..(q + 1) * spokes * samples;
                    for axis in 0..2 {
                        assert_eq!(stack.axis(axis)[shots.clone()], *star.axis(axis), "{order:?} {partitions}");
                    }
                    let kz = (q as f64 - (partitions / 2) as f64) / partitions as f64;
                    assert!(stack.axis(2)[shots].iter().all(|&k| k == kz), "{order:?} {partitions}");
                }
            }
        }
    }

    #[test]
    fn kooshball_is_even() {
        for spokes in [50, 555, 2000] {
            let t = Trajectory::radial3d(spokes, 2).unwrap();
            // Sample 0 of each spoke is at radius -0.5.
            let directions: Vec<[f64; 3]> =
                (0..spokes).map(|p| std::array::from_fn(|axis| -2.0 * t.axis(axis)[2 * p])).collect();
            for a in 0..3 {
                for b in 0..3 {
                    let moment = directions.iter().map(|d| d[a] * d[b]).sum::<f64>() / spokes as f64;
                    let isotropic = if a == b { 1.0 / 3.0 } else { 0.0 };
                    assert!((moment - isotropic).abs() < 1.0 / spokes as f64, "{spokes}: {a} {b} {moment}");
                }
            }
            // No two spokes, as lines, are closer than a fraction of the even spacing.
            let mut nearest = f64::INFINITY;
            for (p, d) in directions.iter().enumerate() {
                assert!((d.iter().map(|x| x * x).sum::<f64>() - 1.0).abs() < 1e-12);
                for e in &directions[..p] {
                    let cos = (d[0] * e[0] + d[1] * e[1] + d[2] * e[2]).abs().min(1.0);
                    nearest = nearest.min(cos.acos());
                }
            }
            assert!(nearest > 0.4 * (TAU / spokes as f64).sqrt(), "{spokes}: {nearest}");
        }
    }

    #[test]
    fn spirals_follow_their_formula() {
        let (interleaves, samples, turns, density) = (5, 200, 6.25, 1.4);
        let t = Trajectory::spiral(interleaves, samples, turns, density).unwrap();
        for m in 0..t.samples() {
            let (p, u) = (m / samples, (m % samples) as f64 / samples as f64);
            let (kx, ky) = (t.axis(0)[m], t.axis(1)[m]);
            assert!((kx.hypot(ky) - 0.5 * u.powf(density)).abs() < 1e-12);
            let turn = (ky.atan2(kx) / TAU - turns * u - p as f64 / interleaves as f64).rem_euclid(1.0);
            assert!(u == 0.0 || turn.min(1.0 - turn) < 1e-9, "{m}");
        }
        let last = t.axis(0)[samples - 1].hypot(t.axis(1)[samples - 1]);
        assert!(last < 0.5 && last > 0.49);
    }

    #[test]
    fn rosette_shots_are_turned_copies_that_reach_the_edge() {
        let t = Trajectory::rosette(3, 1000, 5.0, 3.0).unwrap();
        let radius = |m: usize| t.axis(0)[m].hypot(t.axis(1)[m]);
        for j in 0..1000 {
            assert!((radius(j) - radius(j + 1000)).abs() < 1e-12);
            assert!((radius(j) - 0.5 * (TAU * 5.0 * j as f64 / 1000.0).sin().abs()).abs() < 1e-12);
        }
        // Sample 50 is the first lobe's tip: sin(2 pi 5 / 20) = 1.
        assert!((radius(50) - 0.5).abs() < 1e-12);
        let tip = |p: usize| t.axis(1)[p * 1000 + 50].atan2(t.axis(0)[p * 1000 + 50]);
        let turned = (tip(1) - tip(0) - PI * GOLDEN).rem_euclid(TAU);
        assert!(turned.min(TAU - turned) < 1e-9);
    }

    #[test]
    fn blades_are_strips_within_the_disc() {
        let (blades, lines, samples) = (6, 10, 64);
        let t = Trajectory::propeller(blades, lines, samples).unwrap();
        let mut widest = 0.0_f64;
        for m in 0..t.samples() {
            let (kx, ky) = (t.axis(0)[m], t.axis(1)[m]);
            widest = widest.max(kx.hypot(ky));
            let (sin, cos) = (PI * (m / (lines * samples)) as f64 / blades as f64).sin_cos();
            let across = (ky * cos - kx * sin) * samples as f64;
            assert!((across - ((m / samples % lines) as f64 - 5.0)).abs() < 1e-9, "{m}");
        }
        assert!((widest - 0.5).abs() < 1e-12);
        for p in 0..blades {
            let centre = (p * lines + lines / 2) * samples + samples / 2;
            assert_eq!((t.axis(0)[centre], t.axis(1)[centre]), (0.0, 0.0));
        }
    }

    #[test]
    fn selected_shots_equal_shots_of_the_whole() {
        let t = Trajectory::radial3d(11, 6).unwrap();
        let part = t.select_shots(1, 4).unwrap();
        assert_eq!((part.shots(), part.samples(), part.ndim()), (3, 18, 3));
        for axis in 0..3 {
            for (i, shot) in [1, 5, 9].into_iter().enumerate() {
                assert_eq!(part.axis(axis)[i * 6..][..6], t.axis(axis)[shot * 6..][..6]);
            }
        }
        assert_eq!(t.select_shots(0, 1).unwrap(), t);
        assert_eq!(t.select_shots(10, usize::MAX).unwrap().shots(), 1);
        assert_eq!(kind(t.select_shots(11, 1)), ErrorKind::InvalidArgument);
        assert_eq!(kind(t.select_shots(0, 0)), ErrorKind::InvalidArgument);
    }

    #[test]
    fn times_restart_with_each_shot() {
        let t = Trajectory::radial2d(3, 4, SpokeOrder::Linear).unwrap();
        let times = t.times(8e-3).unwrap();
        for (m, time) in times.iter().enumerate() {
            assert!((time - 2e-3 * (m % 4) as f64).abs() < 1e-15);
        }
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(t.times(bad).unwrap_err().kind(), ErrorKind::InvalidArgument);
        }
    }

    #[test]
    fn bad_sizes_and_arguments_are_named() {
        use ErrorKind::{CoordinateOutOfRange, InvalidArgument, InvalidSize, NotFinite, SizeMismatch, SizeOverflow};
        let big = usize::MAX;
        let linear = SpokeOrder::Linear;
        for (result, expected) in [
            (Trajectory::cartesian(&[]), InvalidSize),
            (Trajectory::cartesian(&[2, 2, 2, 2]), InvalidSize),
            (Trajectory::cartesian(&[4, 0]), InvalidSize),
            (Trajectory::cartesian(&[2, big]), SizeOverflow),
            (Trajectory::radial2d(0, 8, linear), InvalidSize),
            (Trajectory::radial2d(8, 0, linear), InvalidSize),
            (Trajectory::radial2d(big, 8, linear), SizeOverflow),
            (Trajectory::radial3d(0, 8), InvalidSize),
            (Trajectory::radial3d(8, big), SizeOverflow),
            (Trajectory::stack_of_stars(0, 8, 4, linear), InvalidSize),
            (Trajectory::stack_of_stars(8, 0, 4, linear), InvalidSize),
            (Trajectory::stack_of_stars(8, 8, 0, linear), InvalidSize),
            (Trajectory::stack_of_stars(big, 8, 2, linear), SizeOverflow),
            (Trajectory::stack_of_stars(2, big, 2, linear), SizeOverflow),
            (Trajectory::spiral(0, 8, 1.0, 1.0), InvalidSize),
            (Trajectory::spiral(big, big, 1.0, 1.0), SizeOverflow),
            (Trajectory::spiral(1, 8, 0.0, 1.0), InvalidArgument),
            (Trajectory::spiral(1, 8, 1.0, f64::NAN), InvalidArgument),
            (Trajectory::rosette(1, 0, 1.0, 1.0), InvalidSize),
            (Trajectory::rosette(1, big, 1.0, 1.0), SizeOverflow),
            (Trajectory::rosette(1, 8, f64::INFINITY, 1.0), InvalidArgument),
            (Trajectory::rosette(1, 8, 1.0, -2.0), InvalidArgument),
            (Trajectory::propeller(0, 4, 16), InvalidSize),
            (Trajectory::propeller(4, 0, 16), InvalidSize),
            (Trajectory::propeller(4, 4, 0), InvalidSize),
            (Trajectory::propeller(4, 9, 16), InvalidArgument),
            (Trajectory::propeller(big, 4, 16), SizeOverflow),
            (Trajectory::new(vec![], 1), InvalidSize),
            (Trajectory::new(vec![vec![]], 1), InvalidSize),
            (Trajectory::new(vec![vec![0.0; 5]], 2), InvalidSize),
            (Trajectory::new(vec![vec![0.0; 5], vec![0.0; 4]], 5), SizeMismatch),
            (Trajectory::new(vec![vec![0.0, 0.500002]], 1), CoordinateOutOfRange),
            (Trajectory::new(vec![vec![0.0, f64::NAN]], 1), NotFinite),
        ] {
            assert_eq!(kind(result), expected);
        }
        let message = Trajectory::propeller(4, 9, 16).unwrap_err().message().to_owned();
        assert!(message.contains('9') && message.contains("at most 8 lines"), "{message}");
    }
}
