//! Scans with strong decay, and their direct sums in double precision.

use super::*;
use recon::{Device, Normal, Trajectory};

/// A spiral of [`Scan::SHOTS`] interleaves over an image, with maps of off-resonance and decay.
pub struct Scan {
    pub dims: [usize; 2],
    pub k: Vec<Vec<f64>>,
    pub times: Vec<f64>,
    pub field: Option<Vec<f64>>,
    pub decay: Vec<f64>,
}

/// The distribution of decay rates over the voxels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rates {
    /// From 0 to the largest rate, smooth in space.
    Smooth,
    /// From 20 to 60 1/s, and the largest rate in one voxel.
    Outlier,
    /// From half of the largest rate to the largest rate, smooth in space.
    Fast,
}

impl Scan {
    pub const SHOTS: usize = 2;
    pub const FIRST: f64 = 0.002;
    pub const SECONDS: f64 = 0.02;

    /// Creates a scan. `decay_time` is the largest rate times [`Scan::SECONDS`].
    pub fn new(dims: [usize; 2], rates: Rates, decay_time: f64, field: bool, random: &mut Random) -> Self {
        let per_shot = 240;
        let turns = dims[0] as f64 / (2 * Self::SHOTS) as f64;
        let trajectory = Trajectory::spiral(Self::SHOTS, per_shot, turns, 1.0).unwrap();
        let k: Vec<Vec<f64>> = (0..2).map(|a| trajectory.axis_as::<f64>(a)).collect();
        let time = |m: usize| Self::FIRST + Self::SECONDS * (m % per_shot) as f64 / (per_shot - 1) as f64;
        let times = (0..k[0].len()).map(time).collect();
        let r = voxels(&dims);
        let smooth = |random: &mut Random| -> Vec<f64> {
            let [a, b, phase] = [0.0; 3].map(|_| random.uniform());
            let wave = |i: usize| (TAU * (a * r[0][i] / dims[0] as f64 + b * r[1][i] / dims[1] as f64 + phase)).sin();
            let all: Vec<f64> = (0..r[0].len()).map(wave).collect();
            let (low, high) = all.iter().fold((f64::MAX, f64::MIN), |(l, h), x| (l.min(*x), h.max(*x)));
            all.iter().map(|x| (x - low) / (high - low).max(1e-9)).collect()
        };
        let field = field.then(|| smooth(random).iter().map(|x| -40.6 + 169.0 * x).collect());
        let most = decay_time / Self::SECONDS;
        let mut decay = smooth(random);
        match rates {
            Rates::Smooth => decay.iter_mut().for_each(|x| *x *= most),
            Rates::Fast => decay.iter_mut().for_each(|x| *x = most * (0.5 + 0.5 * *x)),
            Rates::Outlier => {
                decay.iter_mut().for_each(|x| *x = 20.0 + 40.0 * *x);
                let at = random.below(decay.len());
                decay[at] = most;
            }
        }
        Scan { dims, k, times, field, decay }
    }

    /// Returns the values of the scan in precision `T`.
    pub fn rounded<T: Real>(&self) -> Self {
        let round = |x: &[f64]| x.iter().map(|x| T::of(*x).wide()).collect::<Vec<f64>>();
        Scan {
            dims: self.dims,
            k: self.k.iter().map(|k| round(k)).collect(),
            times: round(&self.times),
            field: self.field.as_deref().map(round),
            decay: round(&self.decay),
        }
    }

    /// Returns E by rows of samples.
    pub fn matrix(&self) -> Vec<Complex<f64>> {
        let r = voxels(&self.dims);
        let entry = |m: usize, i: usize| {
            let turns = self.k[0][m] * r[0][i] + self.k[1][m] * r[1][i];
            let turns = turns + self.field.as_ref().map_or(0.0, |f| f[i] * self.times[m]);
            Complex::from_polar((-self.decay[i] * self.times[m]).exp(), -TAU * (turns - turns.round()))
        };
        let voxels = self.decay.len();
        (0..self.times.len() * voxels).map(|at| entry(at / voxels, at % voxels)).collect()
    }

    /// Calls `f` with the geometry in precision `T`.
    pub fn with_geometry<T: Real, R>(&self, f: impl FnOnce(&Geometry<'_, T>) -> R) -> R {
        let of = |x: &[f64]| x.iter().map(|x| T::of(*x)).collect::<Vec<T>>();
        let (k, times) = (self.k.iter().map(|k| of(k)).collect::<Vec<_>>(), of(&self.times));
        let (field, decay) = (self.field.as_deref().map(of), of(&self.decay));
        let axes = slices(&k);
        let mut geometry = Geometry::new(&self.dims, &axes);
        (geometry.field_map, geometry.decay_map) = (field.as_deref(), Some(&decay[..]));
        geometry.times = Some(&times);
        f(&geometry)
    }
}

/// Computes E x from the matrix of E.
pub fn forward(matrix: &[Complex<f64>], x: &[Complex<f64>]) -> Vec<Complex<f64>> {
    matrix.chunks_exact(x.len()).map(|row| row.iter().zip(x).map(|(e, x)| e * x).sum()).collect()
}

/// Computes E^H d from the matrix of E.
pub fn adjoint(matrix: &[Complex<f64>], d: &[Complex<f64>]) -> Vec<Complex<f64>> {
    let mut image = vec![Complex::default(); matrix.len() / d.len()];
    for (row, d) in matrix.chunks_exact(image.len()).zip(d) {
        image.iter_mut().zip(row).for_each(|(image, e)| *image += e.conj() * d);
    }
    image
}

/// Compares transforms and E^H W E of a scan with its matrix. Returns the largest error over the tolerance, or `None`
/// if plan creation failed. The error must contain a voxel and its rate.
pub fn compare<T: Real>(scan: &Scan, options: &Options, random: &mut Random) -> Option<f64> {
    let scan = scan.rounded::<T>();
    let plan = match scan.with_geometry::<T, _>(|geometry| Plan::new(geometry, options)) {
        Ok(plan) => plan,
        Err(e) => {
            let told = e.to_string();
            assert!(told.contains("voxel ") && told.contains("1/s"), "{told}");
            let voxel: usize =
                told.split("voxel ").nth(1).and_then(|s| s.split([' ', ':', ',']).next()?.parse().ok()).unwrap();
            assert!(told.contains(&format!("{}", T::of(scan.decay[voxel]))), "voxel {voxel}: {told}");
            return None;
        }
    };
    let (matrix, voxels) = (scan.matrix(), scan.decay.len());
    let fastest = (0..voxels).max_by(|a, b| scan.decay[*a].total_cmp(&scan.decay[*b])).unwrap();
    let d = random.complexes::<T>(scan.times.len());
    // Images: equal voxels, the fastest voxel bright, and the fastest voxel alone. The first two have a mean, as real
    // objects do. If all signals have decayed after a few samples near the centre of k-space, an image without a mean
    // gives a result that is far smaller than the terms of its sums.
    let mut alike = random.complexes::<T>(voxels);
    alike.iter_mut().for_each(|z| z.re += T::of(0.6));
    let (mut bright, mut alone) = (alike.clone(), vec![Complex::new(T::ZERO, T::ZERO); voxels]);
    bright[fastest] = Complex::new(T::of(100.0), T::of(-30.0));
    alone[fastest] = Complex::new(T::of(1.0), T::of(0.5));
    let mut found = Vec::new();
    let mut image = poisoned(voxels);
    plan.adjoint(&d, &mut image).unwrap();
    // For the same reason, the adjoint's error is relative to the mean norm for random samples, if the result is
    // smaller.
    let exact = adjoint(&matrix, &wide(&d));
    let average = norm(&matrix) * norm(&wide(&d)) / (d.len() as f64).sqrt();
    found.push(distance(&image, &exact) * norm(&exact) / norm(&exact).max(average));
    for x in [&alike, &bright, &alone] {
        let (mut values, mut y) = (poisoned(d.len()), poisoned(voxels));
        plan.forward(x, &mut values).unwrap();
        plan.normal(x, &mut y).unwrap();
        let exact = forward(&matrix, &wide(x));
        found.push(distance(&values, &exact));
        found.push(distance(&y, &adjoint(&matrix, &exact)));
    }
    let info = plan.info();
    let largest = found.iter().fold(0.0, |m: f64, e| if e.is_nan() { f64::NAN } else { m.max(*e) });
    println!(
        "{} {:.0e} {:?}: {} segments, {} nodes, plan's error {:.1e}; adjoint, forward, E^H E: {}",
        T::NAME,
        options.tolerance,
        options.normal,
        info.segments,
        info.nodes,
        info.error,
        found.iter().map(|e| format!("{e:.1e} ")).collect::<String>()
    );
    Some(largest / options.tolerance)
}

/// Products of rate and time of the sweep.
pub const DECAY_TIMES: [f64; 12] = [0.0, 1.0, 3.0, 10.0, 18.0, 20.0, 25.0, 30.0, 50.0, 70.0, 120.0, 200.0];

/// Checks all [`DECAY_TIMES`] for one precision on one device. Returns a line for each case beyond the tolerance, and
/// the number of rejected plans.
pub fn sweep<T: Real>(device: &Device, tolerances: &[f64], random: &mut Random) -> (Vec<String>, usize) {
    let (mut beyond, mut refused) = (Vec::new(), 0);
    for decay_time in DECAY_TIMES {
        for (rates, field) in
            [(Rates::Outlier, true), (Rates::Outlier, false), (Rates::Smooth, true), (Rates::Fast, false)]
        {
            let scan = Scan::new([22, 20], rates, decay_time, field, random);
            for (i, tolerance) in tolerances.iter().enumerate() {
                let all = [Normal::Toeplitz, Normal::Transforms, Normal::Auto];
                for normal in all.into_iter().skip(i % 2).step_by(2) {
                    let options = Options {
                        tolerance: *tolerance,
                        normal,
                        device: device.clone(),
                        threads: if i == 0 { 1 } else { 2 },
                        ..Options::default()
                    };
                    let case = format!("R t {decay_time} {rates:?} field {field}");
                    println!("{case}");
                    match compare::<T>(&scan, &options, random) {
                        None => refused += 1,
                        Some(ratio) if ratio <= 1.0 => {}
                        Some(ratio) => beyond.push(format!(
                            "{case} {} {tolerance} {normal:?}: {ratio:.2} tolerances, seed {}",
                            T::NAME,
                            random.seed
                        )),
                    }
                }
            }
        }
    }
    (beyond, refused)
}
