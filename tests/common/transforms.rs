//! Helpers of the tests of transforms: errors against direct sums, trajectories, and a scan that uses all features.

use super::*;
use recon::trajectory::SpokeOrder;
use recon::{Method, Trajectory, VoxelBasis, Window};

/// Image sizes, even and odd, in two and three dimensions.
pub const SIZES: [&[usize]; 6] = [&[24, 24], &[31, 17], &[9, 40], &[12, 12, 12], &[7, 15, 10], &[16, 5, 9]];

/// Returns the options of a NUFFT with this window and tolerance.
pub fn nufft(window: Window, tolerance: f64) -> Options {
    Options { method: Method::Nufft, window, tolerance, threads: 2, ..Options::default() }
}

/// Returns the errors of adjoint and forward against direct sums, relative to the norms of those sums.
pub fn errors<T: Real>(
    k: &[Vec<T>],
    dims: &[usize],
    options: &Options,
    random: &mut Random,
) -> recon::Result<[f64; 2]> {
    errors_by(|result, exact, _| distance(result, exact), k, dims, options, random)
}

/// Returns the errors of adjoint and forward against direct sums, by a measure of a result, the exact result and the
/// input.
pub fn errors_by<T: Real>(
    measure: impl Fn(&[Complex<T>], &[Complex<f64>], &[Complex<T>]) -> f64,
    k: &[Vec<T>],
    dims: &[usize],
    options: &Options,
    random: &mut Random,
) -> recon::Result<[f64; 2]> {
    let (samples, voxel_count) = (k[0].len(), dims.iter().product());
    let plan = Plan::new(&Geometry::new(dims, &slices(k)), options)?;
    let (d, x) = (random.complexes::<T>(samples), random.complexes::<T>(voxel_count));
    let (mut image, mut values) = (poisoned(voxel_count), poisoned(samples));
    plan.adjoint(&d, &mut image)?;
    plan.forward(&x, &mut values)?;
    let (k, r) = (wide_lists(k), voxels(dims));
    let (exact_image, exact_values) = (direct(1.0, &k, &wide(&d), &r), direct(-1.0, &r, &wide(&x), &k));
    Ok([measure(&image, &exact_image, &d), measure(&values, &exact_values, &x)])
}

/// Returns all combinations of coordinates at and near the edges of k-space.
pub fn corners<T: Real>(ndim: usize) -> Vec<Vec<T>> {
    let edge = [T::of(-0.5), T::below_half(), T::ZERO, T::of(-0.5 + 1e-5), T::of(f64::MIN_POSITIVE)];
    let count = edge.len().pow(ndim as u32);
    (0..ndim).map(|axis| (0..count).map(|i| edge[i / edge.len().pow(axis as u32) % edge.len()]).collect()).collect()
}

/// Returns the factor by which an error may exceed the tolerance if all samples are at few positions between the grid's
/// cells. A Kaiser-Bessel window of four cells or more has one relevant alias, and its error is nearly the same at all
/// positions. The minimax window includes the edges of cells, where errors are largest, in its mean. Narrower windows,
/// and other windows, have several aliases. Their error depends on the position, and only its mean is within the
/// tolerance.
pub fn excess(window: Window, width: usize) -> f64 {
    match width {
        4.. if matches!(window, Window::Minimax | Window::KaiserBessel) => 1.5,
        _ => 3.0,
    }
}

/// Returns the distance of a result from the exact result, relative to the norm of the exact result. That norm may be
/// small by chance, for few values or values at one position. Then the distance is relative to the mean norm for random
/// data.
pub fn fair_distance<T: Real>(result: &[Complex<T>], exact: &[Complex<f64>], input: &[Complex<T>]) -> f64 {
    let error = norm(&wide(result).iter().zip(exact).map(|(r, e)| r - e).collect::<Vec<_>>());
    let average = norm(input) * (result.len() as f64).sqrt();
    error / norm(exact).max(average)
}

/// A scan that uses all features: coils, maps, weights, box voxels, frames.
pub struct Scan<T> {
    pub dims: Vec<usize>,
    pub k: Vec<Vec<T>>,
    pub weights: Vec<T>,
    pub maps: Vec<Complex<T>>,
    pub coils: usize,
}

impl<T: Real> Scan<T> {
    pub fn random(dims: &[usize], samples: usize, coils: usize, random: &mut Random) -> Self {
        let voxels: usize = dims.iter().product();
        Scan {
            dims: dims.to_vec(),
            k: random.trajectory(dims.len(), samples),
            weights: (0..samples).map(|_| T::of(random.uniform() + 0.6)).collect(),
            maps: random.complexes(voxels * coils),
            coils,
        }
    }

    pub fn plan(&self, with_maps: bool, options: &Options) -> Plan<T> {
        let k = slices(&self.k);
        let mut geometry = Geometry::new(&self.dims, &k).weights(&self.weights).coils(self.coils);
        geometry.frames = 2;
        geometry.basis = VoxelBasis::Box;
        if with_maps {
            geometry = geometry.coil_maps(&self.maps);
        }
        Plan::new(&geometry, options).unwrap()
    }

    /// Computes E^H W E x with coil maps by direct sums, frame by frame.
    pub fn direct_normal(&self, x: &[Complex<T>]) -> Vec<Complex<f64>> {
        let (k, r, phi) = (wide_lists(&self.k), voxels(&self.dims), self.phi());
        let maps = wide(&self.maps);
        let mut y = Vec::new();
        for image in wide(x).chunks_exact(r[0].len()) {
            let mut sum = vec![Complex::default(); image.len()];
            for map in maps.chunks_exact(image.len()) {
                let coil: Vec<_> = map.iter().zip(image).map(|(s, x)| s * x).collect();
                let mut values = direct(-1.0, &r, &coil, &k);
                values.iter_mut().enumerate().for_each(|(m, z)| *z *= phi[m].powi(2) * self.weights[m].wide());
                let back = direct(1.0, &k, &values, &r);
                sum.iter_mut().zip(map.iter().zip(back)).for_each(|(y, (s, z))| *y += s.conj() * z);
            }
            y.extend(sum);
        }
        y
    }

    /// Returns phi, the Fourier transform of a voxel, at each sample.
    pub fn phi(&self) -> Vec<f64> {
        let sinc = |k: f64| if k == 0.0 { 1.0 } else { (std::f64::consts::PI * k).sin() / (std::f64::consts::PI * k) };
        (0..self.k[0].len()).map(|m| self.k.iter().map(|k| sinc(k[m].wide())).product()).collect()
    }
}

/// Returns the axes of a radial trajectory in two dimensions.
pub fn radial(spokes: usize, samples: usize) -> Vec<Vec<f64>> {
    let t = Trajectory::radial2d(spokes, samples, SpokeOrder::Linear).unwrap();
    (0..2).map(|a| t.axis_as(a)).collect()
}
