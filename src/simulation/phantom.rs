//! Analytic phantoms: sums of ellipses or ellipsoids whose k-space is known in closed form. Data can be simulated on
//! any trajectory without a discrete transform, so that a reconstruction is not tested against its own model (the
//! inverse crime: Guerquin-Kern et al. 2012, IEEE TMI 31:626).
//!
//! ```
//! use recon::phantom::{add_noise, CoilModel, Phantom};
//! use recon::trajectory::{SpokeOrder, Trajectory};
//! let (phantom, coils) = (Phantom::shepp_logan_2d(), CoilModel::ring(4, 2)?);
//! let trajectory = Trajectory::radial2d(32, 64, SpokeOrder::GoldenAngle)?;
//! let mut kspace = phantom.kspace(&[64, 64], &trajectory.axes(), Some(&coils), 0)?; // [samples, coils]
//! add_noise(&mut kspace, 20.0, 1)?;
//! let (truth, maps) = (phantom.image(&[64, 64], 4)?, coils.maps(&[64, 64])?); // [x, y], [x, y, coils]
//! # assert_eq!((kspace.len(), truth.len(), maps.len()), (32 * 64 * 4, 64 * 64, 64 * 64 * 4));
//! # Ok::<(), recon::Error>(())
//! ```
//!
//! Phantom coordinates span the field of view: [-1, 1] on each axis of n voxels is [-n/2, n/2] in voxels, and the
//! centre of voxel r (an integer; index - floor(n / 2)) is at 2 r / n. k is in cycles per voxel.

use crate::base::error::{bail, checked_product, try_collect, try_reserve, try_vec, Result};
use crate::base::results::{check_result, check_results};
use crate::base::rigid_motion::RigidMotion;
use num_complex::Complex;
use std::f64::consts::{PI, TAU};
use std::sync::{Mutex, PoisonError};

/// An ellipsoid of uniform density, in phantom coordinates; in 2D, an ellipse.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ellipsoid {
    /// The value that it adds to the image inside its surface.
    pub density: f64,
    /// The centre, x, y and z; z is 0 in 2D.
    pub centre: [f64; 3],
    /// The semi-axes along its own x, y and z, all positive; the third has no effect in 2D.
    pub semi_axes: [f64; 3],
    /// Euler angles (phi, theta, psi) in radians: its own axes are turned by Rz(phi) Ry(theta) Rz(psi), as by Koay et
    /// al. 2007. In 2D theta and psi are 0, and phi turns from x towards y.
    pub angles: [f64; 3],
}

/// A sum of ellipses (2D) or ellipsoids (3D).
#[derive(Debug, Clone, PartialEq)]
pub struct Phantom {
    ndim: usize,
    shapes: Vec<Ellipsoid>,
}

impl Phantom {
    /// A phantom of `ndim` 2 or 3 from its shapes. They may overlap and may reach out of the field of view.
    ///
    /// Errors: `InvalidSize` for another `ndim` or no shapes; `NotFinite`; `InvalidArgument` for a semi-axis that is
    /// not positive, or for an ellipse that is moved or turned out of the plane.
    pub fn new(ndim: usize, shapes: Vec<Ellipsoid>) -> Result<Self> {
        if ndim != 2 && ndim != 3 {
            bail!(InvalidSize, "a phantom of {ndim} dimensions was asked for: there are 2 and 3");
        }
        if shapes.is_empty() {
            bail!(InvalidSize, "the phantom has no shapes: give at least one");
        }
        for (i, s) in shapes.iter().enumerate() {
            let numbers = [s.centre, s.semi_axes, s.angles].concat();
            if let Some(bad) = numbers.iter().chain([&s.density]).find(|v| !v.is_finite()) {
                bail!(NotFinite, "shape {i} has a parameter of {bad}: give finite numbers");
            }
            if let Some(bad) = s.semi_axes[..ndim].iter().find(|&&a| a <= 0.0) {
                bail!(InvalidArgument, "shape {i} has a semi-axis of {bad}: give positive lengths");
            }
            if ndim == 2 && [s.centre[2], s.angles[1], s.angles[2]] != [0.0; 3] {
                bail!(InvalidArgument, "ellipse {i} leaves the plane: set its centre z, theta and psi to 0");
            }
        }
        Ok(Phantom { ndim, shapes })
    }

    /// The head of Shepp and Logan (1974, IEEE Trans. Nucl. Sci. 21:21), ten ellipses, with the densities of Toft
    /// (1996, PhD thesis, Technical University of Denmark), which raise the contrast within the brain: the phantom that
    /// MATLAB calls "Modified Shepp-Logan". Densities from 0 to 1; y grows with the index, where MATLAB's falls.
    pub fn shepp_logan_2d() -> Self {
        // Density, semi-axes, centre, phi in degrees.
        const TABLE: [[f64; 6]; 10] = [
            [1.0, 0.69, 0.92, 0.0, 0.0, 0.0],
            [-0.8, 0.6624, 0.874, 0.0, -0.0184, 0.0],
            [-0.2, 0.11, 0.31, 0.22, 0.0, -18.0],
            [-0.2, 0.16, 0.41, -0.22, 0.0, 18.0],
            [0.1, 0.21, 0.25, 0.0, 0.35, 0.0],
            [0.1, 0.046, 0.046, 0.0, 0.1, 0.0],
            [0.1, 0.046, 0.046, 0.0, -0.1, 0.0],
            [0.1, 0.046, 0.023, -0.08, -0.605, 0.0],
            [0.1, 0.023, 0.023, 0.0, -0.606, 0.0],
            [0.1, 0.023, 0.046, 0.06, -0.605, 0.0],
        ];
        let shape = |[density, a, b, x, y, phi]: [f64; 6]| Ellipsoid {
            density,
            centre: [x, y, 0.0],
            semi_axes: [a, b, 1.0],
            angles: [phi.to_radians(), 0.0, 0.0],
        };
        Phantom { ndim: 2, shapes: TABLE.map(shape).to_vec() }
    }

    /// The 3D head of Koay, Sarlls and Ozarslan (2007, MRM 58:430), ten ellipsoids turned about z, with the parameters
    /// of the authors' program. Densities from 0 to 2.
    pub fn shepp_logan_3d() -> Self {
        // Density, semi-axes, centre, phi in degrees.
        const TABLE: [[f64; 8]; 10] = [
            [2.0, 0.69, 0.92, 0.9, 0.0, 0.0, 0.0, 0.0],
            [-0.8, 0.6624, 0.874, 0.88, 0.0, 0.0, 0.0, 0.0],
            [-0.2, 0.41, 0.16, 0.21, -0.22, 0.0, -0.25, 108.0],
            [-0.2, 0.31, 0.11, 0.22, 0.22, 0.0, -0.25, 72.0],
            [0.2, 0.21, 0.25, 0.5, 0.0, 0.35, -0.25, 0.0],
            [0.2, 0.046, 0.046, 0.046, 0.0, 0.1, -0.25, 0.0],
            [0.1, 0.046, 0.023, 0.02, -0.08, -0.65, -0.25, 0.0],
            [0.1, 0.046, 0.023, 0.02, 0.06, -0.65, -0.25, 0.0],
            [0.2, 0.056, 0.04, 0.1, 0.06, -0.105, 0.625, 90.0],
            [-0.2, 0.056, 0.056, 0.1, 0.0, 0.1, 0.625, 90.0],
        ];
        let shape = |[density, a, b, c, x, y, z, phi]: [f64; 8]| Ellipsoid {
            density,
            centre: [x, y, z],
            semi_axes: [a, b, c],
            angles: [phi.to_radians(), 0.0, 0.0],
        };
        Phantom { ndim: 3, shapes: TABLE.map(shape).to_vec() }
    }

    /// 2 or 3.
    pub fn ndim(&self) -> usize {
        self.ndim
    }

    /// The shapes, in the order of the sum.
    pub fn shapes(&self) -> &[Ellipsoid] {
        &self.shapes
    }

    /// The phantom after a motion, in an image of n x n voxels.
    ///
    /// Errors: `Unsupported` in 3D; `InvalidSize` for an image of 0 voxels; `NotFinite`.
    pub fn moved(&self, n: usize, motion: &RigidMotion) -> Result<Self> {
        if self.ndim != 2 {
            bail!(Unsupported, "a phantom of {} dimensions cannot be moved in the plane: take one of 2", self.ndim);
        }
        self.check_dims(&[n, n])?;
        let mut shapes = try_reserve(self.shapes.len(), "the phantom")?;
        for shape in &self.shapes {
            let [x, y] = motion.turned([shape.centre[0], shape.centre[1]]);
            let [dx, dy] = motion.translation.map(|voxels| 2.0 * voxels / n as f64);
            let angles = [shape.angles[0] + motion.angle, 0.0, 0.0];
            shapes.push(Ellipsoid { centre: [x + dx, y + dy, 0.0], angles, ..*shape });
        }
        Phantom::new(2, shapes)
    }

    /// k-space at the coordinates in `axes` (one slice an axis, in cycles per voxel, any finite values): the continuous
    /// Fourier transform of the phantom in a field of view of `dims` voxels, in units of density times voxels. It is
    /// the limit of sum_r image(r) exp(-i 2 pi k . r) for fine voxels, so at k = 0 it is the sum of densities times
    /// areas (volumes).
    ///
    /// With `coils`, the phantom is multiplied by each coil's sensitivity; without, there is one uniform coil. The
    /// result is [samples, coils]. `threads` is the most threads to use, 0 for one a processor; the result does not
    /// depend on it.
    ///
    /// An ellipse contributes density pi a b 2 J1(u) / u, an ellipsoid density 4/3 pi a b c 3 (sin u - u cos u) / u^3,
    /// each times exp(-i 2 pi k . centre), where u is 2 pi times the length of k in the ellipsoid's own axes, scaled by
    /// its semi-axes (Koay et al. 2007). A coil whose sensitivity is sum_j a_j exp(i 2 pi q_j . r) sees
    /// sum_j a_j s(k - q_j).
    ///
    /// Errors: `InvalidSize` for a zero size or no samples; `SizeMismatch` when the dimensions of phantom, `dims`,
    /// `axes` and `coils` or the lengths of `axes` differ; `NotFinite` with the index; `SizeOverflow`;
    /// `OutOfHostMemory`.
    pub fn kspace(
        &self,
        dims: &[usize],
        axes: &[&[f64]],
        coils: Option<&CoilModel>,
        threads: usize,
    ) -> Result<Vec<Complex<f64>>> {
        /// Samples that a thread takes at a time: few enough to share evenly, enough to make the lock cheap.
        const CHUNK: usize = 4096;

        self.check_dims(dims)?;
        let samples = self.check_axes(axes)?;
        let uniform = Series { frequencies: vec![[0.0; 3]], amplitudes: vec![vec![Complex::new(1.0, 0.0)]] };
        let series = match coils {
            Some(coils) if coils.ndim != self.ndim => {
                bail!(SizeMismatch, "the coils are {}D and the phantom {}D: make them equal", coils.ndim, self.ndim)
            }
            Some(coils) => coils.series(dims)?,
            None => uniform,
        };
        let mut shapes = try_reserve(self.shapes.len(), "the phantom")?;
        for shape in &self.shapes {
            shapes.push(Spectrum::new(shape, self.ndim, dims, &series)?);
        }
        let profile = if self.ndim == 2 { disc } else { ball };

        let total = checked_product(&[samples, series.amplitudes.len()], "the k-space of a phantom")?;
        let mut kspace = try_vec(total, Complex::new(0.0, 0.0), "the k-space of a phantom")?;
        // A chunk of samples of all coils is one job: no two threads write to the same place.
        let mut jobs = try_reserve(samples.div_ceil(CHUNK), "the k-space of a phantom")?;
        for first in (0..samples).step_by(CHUNK) {
            let parts: Vec<&mut [Complex<f64>]> = try_reserve(series.amplitudes.len(), "the k-space of a phantom")?;
            jobs.push((first, parts));
        }
        for coil in kspace.chunks_exact_mut(samples) {
            for (job, part) in jobs.iter_mut().zip(coil.chunks_mut(CHUNK)) {
                job.1.push(part);
            }
        }
        let helpers = match threads {
            0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
            n => n,
        }
        .min(jobs.len())
            - 1;
        let jobs = Mutex::new(jobs.into_iter());
        let next = || jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work = || {
            let mut sums = [Complex::new(0.0, 0.0); MOST_TERMS];
            let sums = &mut sums[..series.frequencies.len()];
            while let Some((first, mut parts)) = next() {
                for m in 0..parts[0].len() {
                    let mut k = [0.0; 3];
                    for (k, axis) in k.iter_mut().zip(axes) {
                        *k = axis[first + m];
                    }
                    sums.fill(Complex::new(0.0, 0.0));
                    for shape in &shapes {
                        shape.add(&k, profile, sums);
                    }
                    for (part, amplitudes) in parts.iter_mut().zip(&series.amplitudes) {
                        part[m] = sums.iter().zip(amplitudes).map(|(s, a)| s * a).sum();
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..helpers {
                // Where no more threads can be started, fewer do the work.
                if std::thread::Builder::new().name("recon phantom".into()).spawn_scoped(scope, work).is_err() {
                    break;
                }
            }
            work();
        });
        check_results("k-space sample of the phantom", &kspace)?;
        Ok(kspace)
    }

    /// The image of `dims` voxels, x fastest: each voxel is the mean density of supersample^ndim points spread evenly
    /// over it; with 1, the density at its centre.
    ///
    /// Errors: `InvalidSize` for a zero size; `SizeMismatch` when `dims` has not one size a dimension; `SizeOverflow`;
    /// `OutOfHostMemory`.
    pub fn image(&self, dims: &[usize], supersample: usize) -> Result<Vec<f64>> {
        self.check_dims(dims)?;
        if supersample == 0 {
            bail!(InvalidSize, "the number of points a voxel and axis is 0: give 1 or more");
        }
        let fine: Vec<usize> = std::iter::once(supersample).chain(dims.iter().copied()).collect();
        checked_product(&[&fine[..], &vec![supersample; self.ndim - 1]].concat(), "a supersampled image")?;
        let (nx, ny) = (dims[0], dims[1]);
        let nz = dims.get(2).copied().unwrap_or(1);
        let points_z = if self.ndim == 3 { supersample } else { 1 };
        let share = 1.0 / (supersample * supersample * points_z) as f64;
        // The phantom coordinate of point i on an axis of n voxels, and back.
        let step = |n: usize| 2.0 / (n as f64 * supersample as f64);
        let origin = |n: usize| (n / 2) as f64 * supersample as f64 + 0.5 * (supersample as f64 - 1.0);
        let coordinate = |i: usize, n: usize| step(n) * (i as f64 - origin(n));
        let index = |x: f64| x / step(nx) + origin(nx);

        let mut image = try_vec(checked_product(dims, "an image")?, 0.0, "the image of a phantom")?;
        let inverses = self.shapes.iter().map(|s| to_unit_sphere(s, self.ndim));
        let inverses = try_collect(self.shapes.len(), "the phantom", inverses)?;
        for (row, voxels) in image.chunks_exact_mut(nx).enumerate() {
            let (iy, iz) = (row % ny, row / ny);
            for point in 0..supersample * points_z {
                let y = coordinate(iy * supersample + point % supersample, ny);
                let z = if self.ndim == 3 { coordinate(iz * supersample + point / supersample, nz) } else { 0.0 };
                for (shape, m) in self.shapes.iter().zip(&inverses) {
                    let Some([from, to]) = interval(shape, m, y, z) else { continue };
                    let first = index(from).ceil().max(0.0) as usize;
                    let past = index(to).floor().min((nx * supersample) as f64 - 1.0) + 1.0;
                    let past = past.max(0.0) as usize;
                    if first >= past {
                        continue;
                    }
                    for (voxel, ix) in voxels[first / supersample..].iter_mut().zip(first / supersample..) {
                        let points = past.min((ix + 1) * supersample).saturating_sub(first.max(ix * supersample));
                        if points == 0 {
                            break;
                        }
                        *voxel += shape.density * (points as f64 * share);
                    }
                }
            }
        }
        check_results("voxel of the phantom", &image)?;
        Ok(image)
    }

    /// The phantom as small boxes: each voxel of `dims` is cut into `subdivision` boxes an axis, and those that are not
    /// empty are listed, x fastest.
    ///
    /// Integrals over a box are exact along x, and sums over eight lines an axis otherwise.
    ///
    /// Errors: as [`Phantom::image`]; `InvalidArgument` for a phantom that reaches out of the field of view.
    pub(crate) fn boxes(&self, dims: &[usize], subdivision: usize) -> Result<Boxes> {
        /// Lines along y and z in a box.
        const LINES: usize = 8;

        self.check_dims(dims)?;
        if subdivision == 0 {
            bail!(InvalidSize, "the number of boxes a voxel and axis is 0: give 1 or more");
        }
        let mut fine = [1; 3];
        for (fine, &n) in fine.iter_mut().zip(dims) {
            *fine = checked_product(&[n, subdivision], "the boxes of a phantom")?;
        }
        checked_product(&fine, "the boxes of a phantom")?;
        self.check_inside(dims)?;
        // Positions in boxes; a phantom coordinate is 2 / n of it.
        let step = fine.map(|n| 2.0 / n as f64);
        let first = fine.map(|n| -((n / 2) as f64));
        let inverses = self.shapes.iter().map(|s| to_unit_sphere(s, self.ndim));
        let inverses = try_collect(self.shapes.len(), "the phantom", inverses)?;
        let lines_z = if self.ndim == 3 { LINES } else { 1 };
        let share = 1.0 / (LINES * lines_z) as f64;
        let offset = |line: usize| (line as f64 + 0.5) / LINES as f64 - 0.5;
        // Of each box of a row, the integral of density, and those of density times place about its centre.
        let mut row = try_vec(fine[0], [0.0; 4], "the boxes of a phantom")?;
        let mut boxes = Boxes { positions: vec![Vec::new(); self.ndim], amounts: Vec::new() };
        for (iz, iy) in (0..fine[2]).flat_map(|iz| (0..fine[1]).map(move |iy| (iz, iy))) {
            row.fill([0.0; 4]);
            for line in 0..LINES * lines_z {
                let dy = offset(line % LINES);
                let dz = if self.ndim == 3 { offset(line / LINES) } else { 0.0 };
                let y = step[1] * (first[1] + iy as f64 + dy);
                let z = if self.ndim == 3 { step[2] * (first[2] + iz as f64 + dz) } else { 0.0 };
                for (shape, m) in self.shapes.iter().zip(&inverses) {
                    let Some(ends) = interval(shape, m, y, z) else { continue };
                    // In boxes from the left side of the first one.
                    let [from, to] = ends.map(|x| (x / step[0] - first[0] + 0.5).clamp(0.0, fine[0] as f64));
                    let past = (to.ceil() as usize).min(fine[0]);
                    for (ix, sums) in row.iter_mut().enumerate().take(past).skip(from as usize) {
                        let (left, right) = (from.max(ix as f64), to.min((ix + 1) as f64));
                        let amount = shape.density * share * (right - left);
                        let dx = 0.5 * (left + right) - (ix as f64 + 0.5);
                        for (sum, place) in sums.iter_mut().zip([1.0, dx, dy, dz]) {
                            *sum += amount * place;
                        }
                    }
                }
            }
            for (ix, [amount, moments @ ..]) in row.iter().enumerate() {
                // Densities that cancel leave what rounding does.
                if amount.abs() < 1e-9 {
                    continue;
                }
                let place = [ix, iy, iz];
                for (axis, positions) in boxes.positions.iter_mut().enumerate() {
                    // Densities of both signs may have their centre outside.
                    let centre = (moments[axis] / amount).clamp(-0.5, 0.5);
                    try_push(positions, (first[axis] + place[axis] as f64 + centre) / subdivision as f64)?;
                }
                try_push(&mut boxes.amounts, amount / (subdivision as f64).powi(self.ndim as i32))?;
            }
        }
        Ok(boxes)
    }

    /// Refuses a phantom that reaches out of the voxels.
    fn check_inside(&self, dims: &[usize]) -> Result<()> {
        for (i, shape) in self.shapes.iter().enumerate() {
            let r = rotation(shape.angles);
            for (axis, &n) in dims.iter().enumerate() {
                let reach = (0..self.ndim).map(|j| (shape.semi_axes[j] * r[axis][j]).powi(2)).sum::<f64>().sqrt();
                let ends = [shape.centre[axis] - reach, shape.centre[axis] + reach].map(|x| 0.5 * x * n as f64);
                let sides = [-((n / 2) as f64) - 0.5, n.div_ceil(2) as f64 - 0.5];
                if ends[0] < sides[0] || ends[1] > sides[1] {
                    bail!(
                        InvalidArgument,
                        "shape {i} reaches from {:.3} to {:.3} voxels on axis {axis}, but the voxels with maps from \
                         {} to {}: give a phantom within the field of view",
                        ends[0],
                        ends[1],
                        sides[0],
                        sides[1]
                    );
                }
            }
        }
        Ok(())
    }

    /// The number of samples at the coordinates in `axes`, which are checked.
    fn check_axes(&self, axes: &[&[f64]]) -> Result<usize> {
        if axes.len() != self.ndim {
            bail!(
                SizeMismatch,
                "there are {} axes of coordinates for {} dimensions: give one each",
                axes.len(),
                self.ndim
            );
        }
        let samples = axes[0].len();
        if samples == 0 {
            bail!(InvalidSize, "there are no k-space coordinates: give at least one");
        }
        for (axis, k) in axes.iter().enumerate() {
            if k.len() != samples {
                bail!(SizeMismatch, "axis {axis} has {} coordinates, axis 0 {samples}: give equal numbers", k.len());
            }
            if let Some(m) = k.iter().position(|k| !k.is_finite()) {
                bail!(NotFinite, "the coordinate of sample {m} on axis {axis} is {}: give finite coordinates", k[m]);
            }
        }
        Ok(samples)
    }

    fn check_dims(&self, dims: &[usize]) -> Result<()> {
        check_dims("phantom", self.ndim, dims)
    }
}

/// What is in the boxes that a phantom was cut into.
pub(crate) struct Boxes {
    /// The centre of mass of each box in voxels from the origin, a list an axis.
    pub positions: Vec<Vec<f64>>,
    /// Density times volume in voxels.
    pub amounts: Vec<f64>,
}

fn try_push(list: &mut Vec<f64>, value: f64) -> Result<()> {
    if list.len() == list.capacity() {
        let more = list.len().max(1 << 12);
        if list.try_reserve(more).is_err() {
            bail!(OutOfHostMemory, "the boxes of a phantom: no memory for {more} more: give fewer voxels");
        }
    }
    list.push(value);
    Ok(())
}

/// Coil sensitivities that are short Fourier series over the field of view, so that what a coil receives from a
/// [`Phantom`] is a sum of a few shifted copies of its k-space (Guerquin-Kern et al. 2012, "sinusoidal model").
///
/// The sensitivity is a product over the axes of
///
/// ```text
/// 1/2 (1 + cos p + i b sin p),   p = 2 pi (x - c) / 5,
/// ```
///
/// with x in phantom coordinates: a raised cosine with a period of 2.5 fields of view about the coil's centre c, and a
/// phase atan(b tan(p / 2)), b = c / 2, that grows smoothly away from it. Its magnitude is 1 at the centre of the coil
/// and falls off everywhere else. Nothing is normalised: the sum of squares over the coils varies in space.
#[derive(Debug, Clone, PartialEq)]
pub struct CoilModel {
    ndim: usize,
    /// For each coil and axis, the amplitudes at the frequencies -1, 0 and 1 / 2.5 cycles per field of view.
    factors: Vec<[[Complex<f64>; 3]; 3]>,
}

/// The period of the sensitivities, in fields of view: opposite coils still differ, and no coil repeats within one.
const PERIOD: f64 = 2.5;
/// Terms of the series of a coil's sensitivity, at most: three for each axis.
const MOST_TERMS: usize = 27;
const ONE: Complex<f64> = Complex::new(1.0, 0.0);

/// Fourier series with common frequencies: (cycles per voxel), and for each coil an amplitude a frequency.
struct Series {
    frequencies: Vec<[f64; 3]>,
    amplitudes: Vec<Vec<Complex<f64>>>,
}

impl CoilModel {
    /// Coils evenly spaced around the field of view, for `ndim` 2 or 3: coil c is centred at the angle 2 pi c / coils
    /// on the unit circle (phantom coordinates), and has that angle as its phase there. In 3D the
    /// coils stand alternately on two rings, at z = 1/2 and z = -1/2; a single coil at z = 0.
    ///
    /// Errors: `InvalidSize` for no coils or another `ndim`.
    pub fn ring(coils: usize, ndim: usize) -> Result<Self> {
        if coils == 0 {
            bail!(InvalidSize, "the number of coils is 0: give 1 or more");
        }
        if ndim != 2 && ndim != 3 {
            bail!(InvalidSize, "coils of {ndim} dimensions were asked for: there are 2 and 3");
        }
        let mut factors = try_vec(coils, [[Complex::new(0.0, 0.0); 3]; 3], "coil sensitivities")?;
        for (c, factor) in factors.iter_mut().enumerate() {
            let angle = TAU * (c as f64 / coils as f64);
            let z = match (coils, c % 2) {
                (1, _) => 0.0,
                (_, 0) => 0.5,
                _ => -0.5,
            };
            for (axis, centre) in [angle.cos(), angle.sin(), z].into_iter().enumerate().take(ndim) {
                let turn = Complex::cis(TAU * centre / (2.0 * PERIOD));
                let lean = centre / 2.0;
                factor[axis] =
                    [turn * (0.25 * (1.0 - lean)), Complex::new(0.5, 0.0), turn.conj() * (0.25 * (1.0 + lean))];
            }
            for amplitude in &mut factor[0] {
                *amplitude *= Complex::cis(angle);
            }
        }
        Ok(CoilModel { ndim, factors })
    }

    /// The number of coils.
    pub fn coils(&self) -> usize {
        self.factors.len()
    }

    /// 2 or 3.
    pub fn ndim(&self) -> usize {
        self.ndim
    }

    /// The sensitivities at the voxel centres of a field of view of `dims` voxels: [voxels, coils], x fastest.
    ///
    /// Errors: `InvalidSize` for a zero size; `SizeMismatch` when `dims` has not one size a dimension; `SizeOverflow`;
    /// `OutOfHostMemory`.
    pub fn maps(&self, dims: &[usize]) -> Result<Vec<Complex<f64>>> {
        check_dims("coil model", self.ndim, dims)?;
        let voxels = checked_product(dims, "coil maps")?;
        let total = checked_product(&[voxels, self.coils()], "coil maps")?;
        let mut maps = try_vec(total, Complex::new(0.0, 0.0), "coil maps")?;
        for (map, factor) in maps.chunks_exact_mut(voxels).zip(&self.factors) {
            let along = |axis: usize| -> Result<Vec<Complex<f64>>> {
                let Some(&n) = dims.get(axis) else { return try_vec(1, Complex::new(1.0, 0.0), "coil maps") };
                let value = |i: usize| {
                    let wave = Complex::cis(TAU / PERIOD * (i as f64 - (n / 2) as f64) / n as f64);
                    let [minus, zero, plus] = factor[axis];
                    minus * wave.conj() + zero + plus * wave
                };
                try_collect(n, "coil maps", (0..n).map(value))
            };
            let (x, y, z) = (along(0)?, along(1)?, along(2)?);
            for (row, line) in map.chunks_exact_mut(x.len()).enumerate() {
                let yz = y[row % y.len()] * z[row / y.len()];
                for (voxel, x) in line.iter_mut().zip(&x) {
                    *voxel = x * yz;
                }
            }
        }
        Ok(maps)
    }

    /// The sensitivities at positions in voxels from the origin, a list an axis: [positions, coils].
    pub(crate) fn at(&self, dims: &[usize], positions: &[Vec<f64>]) -> Result<Vec<Complex<f64>>> {
        let count = positions[0].len();
        let mut maps = try_vec(checked_product(&[count, self.coils()], "coil maps")?, ONE, "coil maps")?;
        for (axis, (places, &n)) in positions.iter().zip(dims).enumerate() {
            for (i, place) in places.iter().enumerate() {
                let wave = Complex::cis(TAU / PERIOD * place / n as f64);
                for (map, factor) in maps.chunks_exact_mut(count).zip(&self.factors) {
                    let [minus, zero, plus] = factor[axis];
                    map[i] *= minus * wave.conj() + zero + plus * wave;
                }
            }
        }
        Ok(maps)
    }

    /// The products over the axes, multiplied out: 3^ndim terms.
    fn series(&self, dims: &[usize]) -> Result<Series> {
        let terms = 3usize.pow(self.ndim as u32);
        let digit = |term: usize, axis: usize| term / 3usize.pow(axis as u32) % 3;
        let frequency = |term: usize| {
            let mut q = [0.0; 3];
            for (axis, &n) in dims.iter().enumerate() {
                q[axis] = (digit(term, axis) as f64 - 1.0) / (PERIOD * n as f64);
            }
            q
        };
        let amplitudes = |factor: &[[Complex<f64>; 3]; 3]| {
            let amplitude = |term: usize| (0..self.ndim).map(|axis| factor[axis][digit(term, axis)]).product();
            try_collect(terms, "coil maps", (0..terms).map(amplitude))
        };
        let mut all = try_reserve(self.factors.len(), "coil maps")?;
        for factor in &self.factors {
            all.push(amplitudes(factor)?);
        }
        Ok(Series { frequencies: try_collect(terms, "coil maps", (0..terms).map(frequency))?, amplitudes: all })
    }
}

/// The Fourier transform of one ellipsoid, prepared for a field of view and a set of shifts.
struct Spectrum {
    /// k in cycles per voxel to the vector whose length is u.
    to_u: [[f64; 3]; 3],
    /// 2 pi times the centre, in voxels.
    centre: [f64; 3],
    /// For each shift q, `to_u` q, and density times volume times exp(i 2 pi q . centre).
    shifts: Vec<([f64; 3], Complex<f64>)>,
}

impl Spectrum {
    fn new(shape: &Ellipsoid, ndim: usize, dims: &[usize], series: &Series) -> Result<Self> {
        let mut half = [0.0; 3];
        for (half, &n) in half.iter_mut().zip(dims) {
            *half = n as f64 / 2.0;
        }
        let r = rotation(shape.angles);
        let to_u = std::array::from_fn(|i| std::array::from_fn(|j| TAU * shape.semi_axes[i] * r[j][i] * half[j]));
        let centre = std::array::from_fn(|j| TAU * shape.centre[j] * half[j]);
        let unit = if ndim == 2 { PI } else { 4.0 / 3.0 * PI };
        let volume: f64 = (0..ndim).map(|i| shape.semi_axes[i] * half[i]).product();
        let weight = shape.density * unit * volume;
        let shift = |q: &[f64; 3]| (apply(&to_u, q), Complex::cis(dot(&centre, q)) * weight);
        let shifts = try_collect(series.frequencies.len(), "the phantom", series.frequencies.iter().map(shift))?;
        Ok(Spectrum { to_u, centre, shifts })
    }

    /// Adds its transform at k - q, for every shift q, to `sums`.
    fn add(&self, k: &[f64; 3], profile: fn(f64) -> f64, sums: &mut [Complex<f64>]) {
        let w = apply(&self.to_u, k);
        let phase = Complex::cis(-dot(&self.centre, k));
        for (sum, (shift, weight)) in sums.iter_mut().zip(&self.shifts) {
            let d = [w[0] - shift[0], w[1] - shift[1], w[2] - shift[2]];
            *sum += phase * weight * profile(dot(&d, &d).sqrt());
        }
    }
}

/// The transform of the unit disc over its area: 2 J1(u) / u.
fn disc(u: f64) -> f64 {
    if u == 0.0 {
        1.0
    } else {
        2.0 * libm::j1(u) / u
    }
}

/// The transform of the unit ball over its volume: 3 (sin u - u cos u) / u^3.
fn ball(u: f64) -> f64 {
    if u > 1.0 {
        let (sin, cos) = u.sin_cos();
        return 3.0 * (sin - u * cos) / (u * u * u);
    }
    // The two terms cancel near 0; nine terms of the power series leave less than 1e-18 up to u = 1.
    let (mut sum, mut term) = (0.0, 1.0);
    for m in 0..9 {
        sum += term;
        term *= -u * u / ((2 * m + 2) * (2 * m + 5)) as f64;
    }
    sum
}

/// Rz(phi) Ry(theta) Rz(psi).
fn rotation([phi, theta, psi]: [f64; 3]) -> [[f64; 3]; 3] {
    let ((s1, c1), (s2, c2), (s3, c3)) = (phi.sin_cos(), theta.sin_cos(), psi.sin_cos());
    [
        [c1 * c2 * c3 - s1 * s3, -c1 * c2 * s3 - s1 * c3, c1 * s2],
        [s1 * c2 * c3 + c1 * s3, -s1 * c2 * s3 + c1 * c3, s1 * s2],
        [-s2 * c3, s2 * s3, c2],
    ]
}

/// The matrix that maps a shape, relative to its centre, to the unit sphere (in 2D, circle).
fn to_unit_sphere(shape: &Ellipsoid, ndim: usize) -> [[f64; 3]; 3] {
    let r = rotation(shape.angles);
    std::array::from_fn(|i| std::array::from_fn(|j| if i < ndim { r[j][i] / shape.semi_axes[i] } else { 0.0 }))
}

/// Where the line along x at y and z enters and leaves a shape whose [`to_unit_sphere`] is `m`.
fn interval(shape: &Ellipsoid, m: &[[f64; 3]; 3], y: f64, z: f64) -> Option<[f64; 2]> {
    // The ends solve |v + x d|^2 = 1 on the unit sphere.
    let v = apply(m, &[-shape.centre[0], y - shape.centre[1], z - shape.centre[2]]);
    let d = [m[0][0], m[1][0], m[2][0]];
    let (dd, dv) = (dot(&d, &d), dot(&d, &v));
    let discriminant = dv * dv - dd * (dot(&v, &v) - 1.0);
    let half = discriminant.max(0.0).sqrt() / dd;
    (discriminant >= 0.0).then_some([-dv / dd - half, -dv / dd + half])
}

fn dot(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn apply(m: &[[f64; 3]; 3], v: &[f64; 3]) -> [f64; 3] {
    [dot(&m[0], v), dot(&m[1], v), dot(&m[2], v)]
}

fn check_dims(what: &str, ndim: usize, dims: &[usize]) -> Result<()> {
    if dims.len() != ndim {
        bail!(SizeMismatch, "{} sizes were given for a {what} of {ndim} dimensions: give one each", dims.len());
    }
    if let Some(axis) = dims.iter().position(|&n| n == 0) {
        bail!(InvalidSize, "the size of axis {axis} is 0: give 1 or more");
    }
    Ok(())
}

/// Adds complex white Gaussian noise to `data`, independent in the real and imaginary parts, and returns its standard
/// deviation, the expected RMS magnitude. That is RMS(data) / `snr`: the SNR is the ratio, not in dB, of the root mean
/// square magnitudes of the noiseless samples, all coils together, and of the noise. One seed always gives the same
/// noise, on every platform.
///
/// Errors: `InvalidSize` for no data; `InvalidArgument` for an SNR that is not positive and finite, or for data that
/// are all zero; `NotFinite`, with the index. The data are then unchanged.
pub fn add_noise(data: &mut [Complex<f64>], snr: f64, seed: u64) -> Result<f64> {
    let deviation = noise_deviation(data, snr)?;
    let noisy = data.iter().zip(white_noise(deviation, seed)).map(|(z, noise)| z + noise);
    let noisy = try_collect(data.len(), "noisy data", noisy)?;
    check_results("noisy sample", &noisy)?;
    data.copy_from_slice(&noisy);
    Ok(deviation)
}

/// The standard deviation of the noise that [`add_noise`] adds. Errors: as there.
pub fn noise_deviation(data: &[Complex<f64>], snr: f64) -> Result<f64> {
    if data.is_empty() {
        bail!(InvalidSize, "there are no samples to add noise to: give at least one");
    }
    if !(snr > 0.0 && snr.is_finite()) {
        bail!(InvalidArgument, "the signal to noise ratio is {snr}: give a positive, finite number");
    }
    if let Some(m) = data.iter().position(|z| !z.is_finite()) {
        bail!(NotFinite, "sample {m} is {}: remove NaN and infinities before adding noise", data[m]);
    }
    let deviation = (data.iter().map(|z| z.norm_sqr()).sum::<f64>() / data.len() as f64).sqrt() / snr;
    if deviation == 0.0 {
        bail!(
            InvalidArgument,
            "the samples are all zero, or so small that their squares are: noise relative to them is undefined"
        );
    }
    check_result("standard deviation of the noise", deviation)?;
    Ok(deviation)
}

/// White noise without end, as [`add_noise`] adds it.
pub fn white_noise(deviation: f64, seed: u64) -> impl Iterator<Item = Complex<f64>> {
    let mut random = SplitMix64(seed);
    std::iter::repeat_with(move || deviation * random.complex_normal())
}

/// Random numbers without end, uniform in (0, 1].
pub fn uniform(seed: u64) -> impl FnMut() -> f64 {
    let mut random = SplitMix64(seed);
    move || random.uniform()
}

/// The generator of Steele, Lea and Flood (2014, OOPSLA 453). Not from a crate: rand_distr does not promise the same
/// numbers in every version.
pub(crate) struct SplitMix64(pub u64);

impl SplitMix64 {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in (0, 1].
    pub fn uniform(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Complex Gaussian with E|z|^2 = 1 (Box and Muller 1958), through libm because the logarithm and sine of the
    /// standard library differ in their last bit from platform to platform.
    pub fn complex_normal(&mut self) -> Complex<f64> {
        let radius = libm::sqrt(-libm::log(self.uniform()));
        let (sin, cos) = libm::sincos(TAU * self.uniform());
        Complex::new(radius * cos, radius * sin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;
    use std::hash::{BuildHasher, RandomState};

    /// A generator with a seed that no earlier run has seen, and the seed, for the message of a failure.
    fn fresh() -> (SplitMix64, u64) {
        let seed = RandomState::new().hash_one(0);
        (SplitMix64(seed), seed)
    }

    fn uniform(random: &mut SplitMix64, low: f64, high: f64) -> f64 {
        low + (high - low) * random.uniform()
    }

    fn random_k(random: &mut SplitMix64, ndim: usize, samples: usize, reach: f64) -> Vec<Vec<f64>> {
        (0..ndim).map(|_| (0..samples).map(|_| uniform(random, -reach, reach)).collect()).collect()
    }

    fn slices(k: &[Vec<f64>]) -> Vec<&[f64]> {
        k.iter().map(Vec::as_slice).collect()
    }

    /// A single shape, anywhere in the inner field of view and turned at random.
    fn random_shape(random: &mut SplitMix64, ndim: usize) -> Phantom {
        let mut shape = Ellipsoid {
            density: uniform(random, 0.5, 2.0),
            centre: std::array::from_fn(|_| uniform(random, -0.3, 0.3)),
            semi_axes: std::array::from_fn(|_| uniform(random, 0.15, 0.6)),
            angles: std::array::from_fn(|_| uniform(random, -PI, PI)),
        };
        if ndim == 2 {
            (shape.centre[2], shape.angles[1], shape.angles[2]) = (0.0, 0.0, 0.0);
        }
        Phantom::new(ndim, vec![shape]).unwrap()
    }

    /// The midpoint rule on a grid `fine` times denser than `dims`, for each column of the integrand.
    fn midpoint_sum(integrand: &[Complex<f64>], dims: &[usize], fine: usize, k: &[Vec<f64>]) -> Vec<Complex<f64>> {
        let fine_dims: Vec<usize> = dims.iter().map(|n| n * fine).collect();
        let volume = (fine as f64).powi(dims.len() as i32);
        (0..k[0].len())
            .map(|m| {
                let wave = |axis: usize| -> Vec<Complex<f64>> {
                    let Some(&n) = fine_dims.get(axis) else { return vec![Complex::new(1.0, 0.0)] };
                    let r = |i: usize| (i as f64 - (n / 2) as f64) / fine as f64;
                    (0..n).map(|i| Complex::cis(-TAU * k[axis][m] * r(i))).collect()
                };
                let (x, y, z) = (wave(0), wave(1), wave(2));
                let line = |(row, line): (usize, &[Complex<f64>])| {
                    let sum: Complex<f64> = line.iter().zip(&x).map(|(v, x)| v * x).sum();
                    sum * y[row % y.len()] * z[row / y.len()]
                };
                integrand.chunks_exact(x.len()).enumerate().map(line).sum::<Complex<f64>>() / volume
            })
            .collect()
    }

    fn relative_error(a: &[Complex<f64>], b: &[Complex<f64>]) -> f64 {
        let error: f64 = a.iter().zip(b).map(|(a, b)| (a - b).norm_sqr()).sum();
        (error / b.iter().map(|b| b.norm_sqr()).sum::<f64>()).sqrt()
    }

    #[test]
    fn disc_matches_the_integral_of_bessel() {
        // J1(u) = 1 / pi * integral from 0 to pi of cos(t - u sin t): the midpoint rule converges geometrically.
        let (mut random, seed) = fresh();
        for _ in 0..200 {
            let u = uniform(&mut random, 0.0, 20.0).exp2().min(2000.0);
            let n = 2000 + u as usize;
            let t = |i: usize| PI * (i as f64 + 0.5) / n as f64;
            let j1 = (0..n).map(|i| (t(i) - u * t(i).sin()).cos()).sum::<f64>() / n as f64;
            assert!((disc(u) - 2.0 * j1 / u).abs() < 1e-13, "u {u} seed {seed}");
        }
        assert_eq!((disc(0.0), disc(1e-300)), (1.0, 1.0));
        assert!((disc(1e-3) - (1.0 - 1e-6 / 8.0 + 1e-12 / 192.0)).abs() < 1e-15);
        // The first zero of J1, and Abramowitz and Stegun's J1(1).
        assert!(disc(3.831_705_970_207_512).abs() < 1e-15);
        assert!((disc(1.0) - 2.0 * 0.440_050_585_744_933_5).abs() < 1e-15);
    }

    #[test]
    fn ball_is_smooth_across_its_two_formulas() {
        assert_eq!(ball(0.0), 1.0);
        assert!((ball(1e-3) - (1.0 - 1e-7 + 1e-12 / 280.0)).abs() < 1e-15);
        for u in [0.9, 1.0, 1.0 + 1e-12, 1.1, 4.0] {
            let (sin, cos) = f64::sin_cos(u);
            assert!((ball(u) - 3.0 * (sin - u * cos) / (u * u * u)).abs() < 2e-15, "{u}");
        }
        // tan u = u.
        assert!(ball(4.493_409_457_909_064).abs() < 1e-15);
    }

    #[test]
    fn the_centre_of_kspace_is_the_sum_of_density() {
        for (phantom, dims) in
            [(Phantom::shepp_logan_2d(), vec![40, 30]), (Phantom::shepp_logan_3d(), vec![24, 20, 31])]
        {
            let ndim = phantom.ndim();
            let zero = vec![vec![0.0]; ndim];
            let measured = phantom.kspace(&dims, &slices(&zero), None, 1).unwrap()[0];
            let voxels: f64 = dims.iter().map(|&n| n as f64 / 2.0).product();
            let unit = if ndim == 2 { PI } else { 4.0 / 3.0 * PI };
            let sum: f64 = phantom
                .shapes()
                .iter()
                .map(|s| s.density * unit * voxels * s.semi_axes[..ndim].iter().product::<f64>())
                .sum();
            assert!((measured.re - sum).abs() < 1e-11 * sum && measured.im.abs() < 1e-11 * sum);
            let image: f64 = phantom.image(&dims, 4).unwrap().iter().sum();
            assert!((image / sum - 1.0).abs() < 2e-3, "{ndim}D: {image} {sum}");
        }
    }

    #[test]
    fn kspace_is_the_integral_of_the_image() {
        let (mut random, seed) = fresh();
        for (ndim, dims, grids, bound) in [(2, vec![20, 16], [3, 32], 3e-3), (3, vec![12, 10, 9], [2, 12], 1e-2)] {
            for trial in 0..3 {
                let phantom = random_shape(&mut random, ndim);
                let k = random_k(&mut random, ndim, 20, 0.15);
                let exact = phantom.kspace(&dims, &slices(&k), None, 1).unwrap();
                let errors = grids.map(|fine| {
                    let fine_dims: Vec<usize> = dims.iter().map(|n| n * fine).collect();
                    let image = phantom.image(&fine_dims, 1).unwrap();
                    let image: Vec<_> = image.into_iter().map(|v| Complex::new(v, 0.0)).collect();
                    relative_error(&midpoint_sum(&image, &dims, fine, &k), &exact)
                });
                let place = format!("{ndim}D trial {trial} seed {seed}: {errors:?} {phantom:?}");
                assert!(errors[1] < bound && errors[1] < 0.5 * errors[0], "{place}");
            }
        }
    }

    #[test]
    fn coil_kspace_is_the_integral_of_image_times_map() {
        let (mut random, seed) = fresh();
        for (ndim, dims, grids, bound) in [(2, vec![20, 16], [3, 32], 3e-3), (3, vec![10, 8, 9], [2, 10], 1.5e-2)] {
            let phantom = random_shape(&mut random, ndim);
            let coils = CoilModel::ring(3, ndim).unwrap();
            let k = random_k(&mut random, ndim, 20, 0.1);
            let exact = phantom.kspace(&dims, &slices(&k), Some(&coils), 2).unwrap();
            let errors = grids.map(|fine| {
                let fine_dims: Vec<usize> = dims.iter().map(|n| n * fine).collect();
                let image = phantom.image(&fine_dims, 1).unwrap();
                let maps = coils.maps(&fine_dims).unwrap();
                let sums: Vec<_> = maps
                    .chunks_exact(image.len())
                    .flat_map(|map| {
                        let product: Vec<_> = map.iter().zip(&image).map(|(s, x)| s * x).collect();
                        midpoint_sum(&product, &dims, fine, &k)
                    })
                    .collect();
                relative_error(&sums, &exact)
            });
            assert!(errors[1] < bound && errors[1] < 0.5 * errors[0], "{ndim}D seed {seed}: {errors:?} {phantom:?}");
        }
    }

    #[test]
    fn real_objects_have_conjugate_symmetric_kspace() {
        let (mut random, seed) = fresh();
        for (phantom, dims) in [(Phantom::shepp_logan_2d(), vec![64, 48]), (Phantom::shepp_logan_3d(), vec![32; 3])] {
            let k = random_k(&mut random, phantom.ndim(), 100, 0.5);
            let minus: Vec<Vec<f64>> = k.iter().map(|k| k.iter().map(|k| -k).collect()).collect();
            let s = phantom.kspace(&dims, &slices(&k), None, 1).unwrap();
            let t = phantom.kspace(&dims, &slices(&minus), None, 1).unwrap();
            let t: Vec<_> = t.iter().map(Complex::conj).collect();
            assert!(relative_error(&s, &t) < 1e-14, "seed {seed}");
        }
    }

    #[test]
    fn threads_do_not_change_a_bit() {
        let (mut random, seed) = fresh();
        let k = random_k(&mut random, 2, 9000, 0.5);
        let (phantom, coils) = (Phantom::shepp_logan_2d(), CoilModel::ring(3, 2).unwrap());
        let one = phantom.kspace(&[32, 32], &slices(&k), Some(&coils), 1).unwrap();
        for threads in [0, 2, 3, 100] {
            let many = phantom.kspace(&[32, 32], &slices(&k), Some(&coils), threads).unwrap();
            assert!(one == many, "{threads} threads, seed {seed}");
        }
    }

    #[test]
    fn images_are_densities_at_points_or_their_means() {
        let (mut random, seed) = fresh();
        // Against the definition, point by point.
        let inside = |phantom: &Phantom, p: [f64; 3]| -> f64 {
            let term = |s: &Ellipsoid| {
                let v = apply(
                    &to_unit_sphere(s, phantom.ndim),
                    &[p[0] - s.centre[0], p[1] - s.centre[1], p[2] - s.centre[2]],
                );
                if dot(&v, &v) <= 1.0 {
                    s.density
                } else {
                    0.0
                }
            };
            phantom.shapes.iter().map(term).sum()
        };
        let mut phantoms = vec![(Phantom::shepp_logan_2d(), [37, 30, 1]), (Phantom::shepp_logan_3d(), [15, 16, 13])];
        phantoms.extend((0..5).map(|_| (random_shape(&mut random, 3), [11, 12, 9])));
        for (phantom, n) in phantoms {
            let dims = &n[..phantom.ndim];
            for fine in [1, 3] {
                let image = phantom.image(dims, fine).unwrap();
                let mut wrong = 0;
                for (i, &value) in image.iter().enumerate() {
                    let index = [i % n[0], i / n[0] % n[1], i / n[0] / n[1]];
                    let point = |axis: usize, sub: usize| {
                        if axis >= phantom.ndim {
                            return 0.0;
                        }
                        let offset = (sub as f64 + 0.5) / fine as f64 - 0.5;
                        2.0 / n[axis] as f64 * (index[axis] as f64 - (n[axis] / 2) as f64 + offset)
                    };
                    let subs = fine.pow(phantom.ndim as u32);
                    let at = |s: usize| [point(0, s % fine), point(1, s / fine % fine), point(2, s / fine / fine)];
                    let mean = (0..subs).map(|s| inside(&phantom, at(s))).sum::<f64>() / subs as f64;
                    // A point on a surface may fall on either side of it by rounding.
                    wrong += usize::from((mean - value).abs() > 1e-12);
                }
                assert!(wrong * 500 <= image.len(), "{wrong} of {} voxels, fine {fine}, seed {seed}", image.len());
            }
        }
        let image = Phantom::shepp_logan_2d().image(&[64, 64], 1).unwrap();
        assert_eq!((image[0], image[32 * 64 + 32]), (0.0, 1.0 - 0.8));
        let (low, high) = image.iter().fold((f64::MAX, f64::MIN), |(l, h), &v| (l.min(v), h.max(v)));
        assert!(low > -1e-12 && (high - 1.0).abs() < 1e-12, "{low} {high}");
    }

    #[test]
    fn coils_peak_at_their_centres() {
        // On this grid x = 1 lies outside by one voxel, so coil 0 is largest at the last one.
        let (n, coils) = (40, 4);
        let model = CoilModel::ring(coils, 2).unwrap();
        let maps = model.maps(&[n, n]).unwrap();
        assert_eq!((model.coils(), model.ndim(), maps.len()), (coils, 2, n * n * coils));
        assert!(maps.iter().all(|s| s.norm() <= 1.0 + 1e-12));
        for (coil, peak) in [(0, [39, 20]), (1, [20, 39]), (2, [0, 20]), (3, [20, 0])] {
            let map = &maps[coil * n * n..][..n * n];
            let largest = (0..n * n).max_by(|&a, &b| map[a].norm().total_cmp(&map[b].norm())).unwrap();
            assert_eq!([largest % n, largest / n], peak, "coil {coil}");
            let s = map[largest];
            assert!(s.norm() > 0.99 && (s / Complex::cis(TAU * coil as f64 / 4.0)).arg().abs() < 0.1, "{s}");
        }
        // The opposite edge: p = 4 pi / 5 along x, 0 along y.
        let p = 4.0 * PI / 5.0;
        let far = Complex::new(0.5 * (1.0 + p.cos()), -0.25 * p.sin());
        assert!((maps[20 * n] - far).norm() < 1e-12);
        // 3D: coil 0 at z = 1/2, coil 1 at z = -1/2.
        let maps = CoilModel::ring(2, 3).unwrap().maps(&[8, 8, 8]).unwrap();
        assert!(
            (maps[4 + 8 * (4 + 8 * 6)] / Complex::new(0.5 * (1.0 + (TAU / 5.0).cos()), -0.25 * (TAU / 5.0).sin())
                - 1.0)
                .norm()
                < 1e-12
        );
        assert!(maps[512 + 8 * (4 + 8 * 2)].norm() > maps[512 + 8 * (4 + 8 * 6)].norm());
    }

    #[test]
    fn noise_has_the_power_asked_for() {
        let clean: Vec<_> = (0..200_000).map(|m| Complex::cis(m as f64) * (m % 7) as f64).collect();
        let (mut random, seed) = fresh();
        let snr = uniform(&mut random, 0.5, 50.0);
        let mut noisy = clean.clone();
        let deviation = add_noise(&mut noisy, snr, seed).unwrap();
        let noise: Vec<_> = noisy.iter().zip(&clean).map(|(a, b)| (a - b) / deviation).collect();
        let mean = |f: &dyn Fn(&Complex<f64>) -> f64| noise.iter().map(f).sum::<f64>() / noise.len() as f64;
        // Six standard errors: sqrt(1 / 200000) = 0.0022.
        assert!((relative_error(&noisy, &clean) * snr - 1.0).abs() < 0.014, "seed {seed}");
        assert!((mean(&|z| z.re * z.re) - 0.5).abs() < 0.01 && (mean(&|z| z.im * z.im) - 0.5).abs() < 0.01);
        assert!(mean(&|z| z.re).abs() < 0.01 && mean(&|z| z.im).abs() < 0.01 && mean(&|z| z.re * z.im).abs() < 0.01);
        // Gaussian: the fourth moment of each part is 3 / 4.
        assert!((mean(&|z| z.re.powi(4)) - 0.75).abs() < 0.04 && (mean(&|z| z.im.powi(4)) - 0.75).abs() < 0.04);

        let mut again = clean.clone();
        add_noise(&mut again, snr, seed).unwrap();
        assert!(again == noisy);
        add_noise(&mut again, snr, seed.wrapping_add(1)).unwrap();
        assert!(again != noisy);
    }

    #[test]
    fn noise_is_the_same_for_ever() {
        // The first outputs of the published generator for seed 1234567.
        let mut random = SplitMix64(1_234_567);
        let published = [6457827717110365317, 3203168211198807973, 9817491932198370423];
        assert_eq!([random.next(), random.next(), random.next()], published);
        // Exact, and checked against the formula evaluated independently.
        let mut random = SplitMix64(1);
        assert_eq!(random.complex_normal(), Complex::new(-0.01997558703117705, -0.7535054653458322));
        assert_eq!(random.complex_normal(), Complex::new(-0.16116344018450693, 0.05875645000325556));
    }

    #[test]
    fn bad_sizes_and_arguments_are_named() {
        use ErrorKind::{InvalidArgument, InvalidSize, NotFinite, SizeMismatch, SizeOverflow};
        let phantom = Phantom::shepp_logan_2d();
        let k = [0.1, 0.2];
        let nan = [0.1, f64::NAN];
        let coils = CoilModel::ring(2, 3).unwrap();
        for (result, expected) in [
            (phantom.kspace(&[8], &[&k, &k], None, 0), SizeMismatch),
            (phantom.kspace(&[8, 0], &[&k, &k], None, 0), InvalidSize),
            (phantom.kspace(&[8, 8], &[&k], None, 0), SizeMismatch),
            (phantom.kspace(&[8, 8], &[&k, &k[1..]], None, 0), SizeMismatch),
            (phantom.kspace(&[8, 8], &[&[], &[]], None, 0), InvalidSize),
            (phantom.kspace(&[8, 8], &[&k, &nan], None, 0), NotFinite),
            (phantom.kspace(&[8, 8], &[&k, &k], Some(&coils), 0), SizeMismatch),
            (coils.maps(&[8, 8]), SizeMismatch),
            (coils.maps(&[8, 0, 8]), InvalidSize),
            (coils.maps(&[1 << 30, 1 << 30, 1 << 30]), SizeOverflow),
        ] {
            assert_eq!(result.unwrap_err().kind(), expected);
        }
        assert_eq!(phantom.image(&[8, 8, 8], 1).unwrap_err().kind(), SizeMismatch);
        assert_eq!(phantom.image(&[8, 8], 0).unwrap_err().kind(), InvalidSize);
        assert_eq!(phantom.image(&[8, 8], usize::MAX).unwrap_err().kind(), SizeOverflow);
        assert_eq!(CoilModel::ring(0, 2).unwrap_err().kind(), InvalidSize);
        assert_eq!(CoilModel::ring(8, 1).unwrap_err().kind(), InvalidSize);

        let shape = phantom.shapes()[0];
        let tilted = Ellipsoid { angles: [0.0, 0.1, 0.0], ..shape };
        for (ndim, shapes, expected) in [
            (1, vec![shape], InvalidSize),
            (2, vec![], InvalidSize),
            (2, vec![tilted], InvalidArgument),
            (3, vec![Ellipsoid { semi_axes: [0.1, 0.0, 0.1], ..shape }], InvalidArgument),
            (3, vec![Ellipsoid { density: f64::NAN, ..shape }], NotFinite),
        ] {
            assert_eq!(Phantom::new(ndim, shapes).unwrap_err().kind(), expected);
        }
        assert!(Phantom::new(3, vec![tilted]).is_ok());

        for (mut data, snr, expected) in [
            (vec![], 1.0, InvalidSize),
            (vec![Complex::new(1.0, 0.0)], 0.0, InvalidArgument),
            (vec![Complex::new(1.0, 0.0)], f64::NAN, InvalidArgument),
            (vec![Complex::new(0.0, 0.0)], 1.0, InvalidArgument),
            (vec![Complex::new(0.0, f64::NAN)], 1.0, NotFinite),
        ] {
            assert_eq!(add_noise(&mut data, snr, 0).unwrap_err().kind(), expected);
        }
    }
}
