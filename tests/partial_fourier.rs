//! Partial Fourier: homodyne detection and POCS, compared with plain Fourier sums in double precision and with complete
//! k-space.

mod common;

use common::*;
use recon::phantom::Phantom;
use recon::trajectory::SpokeOrder;
use recon::{
    Complex, Device, ErrorKind, Geometry, Interrupt, Method, Options, PartialFourier, PartialFourierMethod,
    PartialFourierOptions, PartialFourierReport, Plan, Real, Result, Trajectory, VoxelBasis,
};

use PartialFourierMethod::{Homodyne, Pocs};

/// Computes sum_r x(r) exp(sign i 2 pi k r) by plain sums, one axis after the other. k r = u v / n, where u and v are
/// counted from floor(n/2).
fn fourier(dims: &[usize], sign: f64, x: &[Complex<f64>]) -> Vec<Complex<f64>> {
    let mut array = x.to_vec();
    let mut stride = 1;
    for &n in dims {
        let centre = (n / 2) as f64;
        let turn = |u: usize, v: usize| (u as f64 - centre) * (v as f64 - centre) / n as f64;
        let factors: Vec<Complex<f64>> =
            (0..n * n).map(|i| Complex::from_polar(1.0, sign * std::f64::consts::TAU * turn(i / n, i % n))).collect();
        let mut next = vec![Complex::default(); array.len()];
        for (i, to) in next.iter_mut().enumerate() {
            let (first, u) = (i - (i / stride % n) * stride, i / stride % n);
            *to = (0..n).map(|v| array[first + v * stride] * factors[u * n + v]).sum();
        }
        array = next;
        stride *= n;
    }
    array
}

/// A Cartesian scan with some of the lines along one axis: u from `first` to `last`, with k = u / n.
#[derive(Clone, Debug)]
struct Lines {
    dims: Vec<usize>,
    axis: usize,
    first: isize,
    last: isize,
}

impl Lines {
    /// A scan with the first `eighths` / 8 of all lines, or with the last ones.
    fn eighths(dims: &[usize], axis: usize, eighths: usize, is_from_start: bool) -> Self {
        let (n, half) = (dims[axis] as isize, dims[axis] as isize / 2);
        let count = n * eighths as isize / 8;
        let (first, last) = if is_from_start { (-half, count - half - 1) } else { (n - half - count, n - half - 1) };
        Lines { dims: dims.to_vec(), axis, first, last }
    }

    /// Returns u of a voxel or grid point along the partial axis.
    fn u(&self, i: usize) -> isize {
        let stride: usize = self.dims[..self.axis].iter().product();
        let n = self.dims[self.axis];
        (i / stride % n) as isize - (n / 2) as isize
    }

    fn points(&self) -> usize {
        self.dims.iter().product()
    }

    /// Returns the grid points that were measured.
    fn measured(&self) -> Vec<usize> {
        (0..self.points()).filter(|&i| (self.first..=self.last).contains(&self.u(i))).collect()
    }

    fn k<T: Real>(&self) -> Vec<Vec<T>> {
        let along = |axis: usize| {
            let stride: usize = self.dims[..axis].iter().product();
            let n = self.dims[axis];
            let k = |i: usize| ((i / stride % n) as f64 - (n / 2) as f64) / n as f64;
            self.measured().into_iter().map(|i| T::coordinate(k(i))).collect()
        };
        (0..self.dims.len()).map(along).collect()
    }

    /// Returns E x of an image for a coil.
    fn data(&self, x: &[Complex<f64>]) -> Vec<Complex<f64>> {
        let all = fourier(&self.dims, -1.0, x);
        self.measured().iter().map(|&i| all[i]).collect()
    }

    /// Returns the inverse transform of measured data, each multiplied by a function of u.
    fn inverse(&self, data: &[Complex<f64>], factor: impl Fn(isize) -> f64) -> Vec<Complex<f64>> {
        let mut all = vec![Complex::default(); self.points()];
        self.measured().iter().zip(data).for_each(|(&i, z)| all[i] = z * factor(self.u(i)));
        let scale = 1.0 / self.points() as f64;
        fourier(&self.dims, 1.0, &all).into_iter().map(|z| z * scale).collect()
    }
}

/// A plain implementation of both methods, for one image of several coils.
struct Reference<'a> {
    lines: &'a Lines,
    /// Coil maps, one per coil.
    maps: &'a [Vec<Complex<f64>>],
}

impl Reference<'_> {
    fn combined(&self, data: &[Vec<Complex<f64>>], factor: impl Fn(isize) -> f64) -> Vec<Complex<f64>> {
        let mut sum = vec![Complex::default(); self.lines.points()];
        for (map, data) in self.maps.iter().zip(data) {
            let image = self.lines.inverse(data, &factor);
            sum.iter_mut().zip(&image).zip(map).for_each(|((sum, x), s)| *sum += s.conj() * x);
        }
        sum
    }

    fn forward(&self, x: &[Complex<f64>]) -> Vec<Vec<Complex<f64>>> {
        let seen = |map: &Vec<Complex<f64>>| -> Vec<_> { x.iter().zip(map).map(|(x, s)| x * s).collect() };
        self.maps.iter().map(|map| self.lines.data(&seen(map))).collect()
    }

    /// Returns the distance from the centre of k-space to the first line that was not measured.
    fn short_side(&self) -> f64 {
        (-self.lines.first).min(self.lines.last) as f64 + 1.0
    }

    /// Returns the image of the symmetric lines, whose phase both methods take.
    fn low_resolution(&self, data: &[Vec<Complex<f64>>]) -> Vec<Complex<f64>> {
        let short = self.short_side();
        let hann = |u: isize| match u.unsigned_abs() as f64 / short {
            r if r < 1.0 => (0.5 * std::f64::consts::PI * r).cos().powi(2),
            _ => 0.0,
        };
        self.combined(data, hann)
    }

    fn image(&self, data: &[Vec<Complex<f64>>], how: &PartialFourierOptions) -> Vec<Complex<f64>> {
        let is_below = -self.lines.first > self.lines.last;
        let short = self.short_side();
        let n = self.lines.dims[self.lines.axis];
        let ramp = |u: isize| match u {
            u if 2 * u.unsigned_abs() == n => 1.0,
            u if is_below => (1.0 - u as f64 / short).clamp(0.0, 2.0),
            u => (1.0 + u as f64 / short).clamp(0.0, 2.0),
        };
        let phase: Vec<Complex<f64>> = self.low_resolution(data).iter().map(|z| z / z.norm()).collect();
        if how.method == Homodyne {
            let x = self.combined(data, ramp);
            return x.iter().zip(&phase).map(|(x, p)| p * (x * p.conj()).re).collect();
        }
        let energy: Vec<f64> =
            (0..self.lines.points()).map(|i| self.maps.iter().map(|s| s[i].norm_sqr()).sum()).collect();
        let mut x: Vec<_> = self.combined(data, |_| 1.0).iter().zip(&energy).map(|(x, e)| x / e).collect();
        for _ in 0..how.iterations {
            let p: Vec<_> = x.iter().zip(&phase).map(|(x, p)| p * x.norm()).collect();
            let difference: Vec<Vec<_>> = data
                .iter()
                .zip(self.forward(&p))
                .map(|(data, e)| data.iter().zip(&e).map(|(d, e)| d - e).collect())
                .collect();
            let correction = self.combined(&difference, |_| 1.0);
            x = p.iter().zip(&correction).zip(&energy).map(|((p, c), e)| p + c / e).collect();
        }
        x.iter().zip(&energy).map(|(x, e)| x * e).collect()
    }
}

/// Returns the phantom of Shepp and Logan with a smooth phase, which changes by about 4 radians.
fn object(dims: &[usize]) -> Vec<Complex<f64>> {
    let phantom = if dims.len() == 2 { Phantom::shepp_logan_2d() } else { Phantom::shepp_logan_3d() };
    let image = phantom.image(dims, 2).unwrap();
    let r = voxels(dims);
    let at = |a: usize, i: usize| r.get(a).map_or(0.0, |r| 2.0 * r[i] / dims[a] as f64);
    let phase = |i: usize| {
        let (x, y, z) = (at(0, i), at(1, i), at(2, i));
        0.8 * x - 0.5 * y + 0.9 * x * y + 0.7 * y * y + 0.6 * z - 0.5 * z * z + 0.4 * (2.2 * y + x).cos()
    };
    image.iter().enumerate().map(|(i, &m)| Complex::from_polar(m, phase(i))).collect()
}

/// Returns smooth coil maps.
fn coil_maps(dims: &[usize], coils: usize) -> Vec<Vec<Complex<f64>>> {
    let r = voxels(dims);
    let map = |coil: usize| {
        let voxel = |i: usize| {
            let (x, y) = (r[0][i] / dims[0] as f64, r[1][i] / dims[1] as f64);
            Complex::from_polar(0.6 + 0.5 * (x + coil as f64).cos(), y * (coil as f64 + 1.0))
        };
        (0..r[0].len()).map(voxel).collect()
    };
    (0..coils).map(map).collect()
}

/// Returns the image and the report of a scan.
fn reconstruct<T: Real>(
    geometry: &Geometry<'_, T>,
    options: &Options,
    how: &PartialFourierOptions,
    kspace: &[Complex<T>],
) -> Result<(Vec<Complex<T>>, PartialFourierReport)> {
    let images = geometry.frames * if geometry.coil_maps.is_some() { 1 } else { geometry.coils };
    let mut image = poisoned(geometry.voxel_count() * images);
    let report = PartialFourier::new(geometry, options, how)?.reconstruct(kspace, &mut image)?;
    Ok((image, report))
}

fn cpu() -> Options {
    Options { device: Device::Cpu, ..Options::default() }
}

fn exact() -> Options {
    Options { method: Method::Exact, ..cpu() }
}

fn method(method: PartialFourierMethod) -> PartialFourierOptions {
    PartialFourierOptions { method, ..PartialFourierOptions::default() }
}

#[test]
fn cartesian_images_are_those_of_plain_sums() {
    let cases = [
        Lines::eighths(&[14, 40], 1, 5, true),
        Lines::eighths(&[14, 24], 1, 6, false),
        Lines::eighths(&[33, 12], 0, 6, true),
        Lines::eighths(&[24, 13], 0, 6, false),
        Lines::eighths(&[6, 5, 24], 2, 6, true),
        Lines::eighths(&[7, 32, 4], 1, 6, false),
        // Neither end of k-space is measured.
        Lines { dims: vec![40, 12], axis: 0, first: -14, last: 5 },
    ];
    for (number, lines) in cases.iter().enumerate() {
        let x = object(&lines.dims);
        let uniform = vec![vec![Complex::new(1.0, 0.0); x.len()]];
        let maps = if number % 2 == 0 { uniform.clone() } else { coil_maps(&lines.dims, 3) };
        let reference = Reference { lines, maps: &maps };
        let data = reference.forward(&x);
        for how in [method(Homodyne), PartialFourierOptions { iterations: 7, tolerance: 0.0, ..method(Pocs) }] {
            let expected = reference.image(&data, &how);
            fn check<T: Real>(
                lines: &Lines,
                maps: Option<&[Complex<f64>]>,
                data: &[Vec<Complex<f64>>],
                how: &PartialFourierOptions,
                options: &Options,
            ) -> (Vec<Complex<T>>, PartialFourierReport) {
                let (k, maps) = (lines.k::<T>(), maps.map(narrow::<T>));
                let axes = slices(&k);
                let mut geometry = Geometry::new(&lines.dims, &axes).coils(data.len());
                geometry.coil_maps = maps.as_deref();
                reconstruct(&geometry, options, how, &narrow::<T>(&data.concat())).unwrap()
            }
            let all_maps = maps.concat();
            let given = (maps.len() > 1).then_some(&all_maps[..]);
            let (image, report) = check::<f64>(lines, given, &data, &how, &exact());
            let error = distance(&image, &expected);
            assert!(error < 1e-9, "{lines:?} {how:?}: {error}");
            let extent = [-lines.first as f64, lines.last as f64];
            assert_eq!((report.axis, report.iterations), (lines.axis, if how.method == Pocs { 7 } else { 0 }));
            assert!(report.extent.iter().zip(extent).all(|(a, b)| (a - b).abs() < 1e-9), "{report:?}");
            let (image, _) = check::<f32>(lines, given, &data, &how, &exact());
            let error = distance(&image, &expected);
            assert!(error < 1e-5, "{lines:?} {how:?} in f32: {error}");
            // An error e of the low resolution image l turns a voxel x by e / |l|, and so moves it by e |x| / |l|. The
            // NUFFT's error is about as large in each voxel, so that dark voxels beside bright ones would decide.
            let (image, _) = check::<f32>(lines, given, &data, &how, &cpu());
            let low = reference.low_resolution(&data);
            let scaled: Vec<_> = (0..x.len())
                .map(|i| (wide(&image)[i] - expected[i]) / (1.0 + expected[i].norm() / low[i].norm()))
                .collect();
            let error = norm(&scaled) / norm(&expected);
            assert!(error < 2e-5, "{lines:?} {how:?}, NUFFT in f32: {error}");
        }
    }
}

/// Returns the error of magnitudes in percent.
fn percent(image: &[Complex<f64>], truth: &[Complex<f64>]) -> f64 {
    let difference: f64 = image.iter().zip(truth).map(|(x, t)| (x.norm() - t.norm()).powi(2)).sum();
    100.0 * difference.sqrt() / norm(truth)
}

#[test]
fn errors_are_far_below_those_of_zeros() {
    // The largest errors of POCS and homodyne detection, relative to zeros. Measured: at most 0.21 and 0.5.
    for (lines, pocs_ratio, homodyne_ratio) in [
        (Lines::eighths(&[128, 128], 1, 5, true), 0.1, 0.25),
        (Lines::eighths(&[128, 128], 1, 6, true), 0.1, 0.25),
        (Lines::eighths(&[128, 96], 0, 5, false), 0.1, 0.25),
        (Lines::eighths(&[24, 40, 24], 1, 6, true), 0.1, 0.4),
        (Lines::eighths(&[20, 24, 48], 2, 5, false), 0.25, 0.55),
        (Lines::eighths(&[48, 20, 20], 0, 6, false), 0.25, 0.6),
    ] {
        let x = object(&lines.dims);
        let data = lines.data(&x);
        let k = lines.k::<f64>();
        let axes = slices(&k);
        let geometry = Geometry::new(&lines.dims, &axes);
        let zeros = percent(&lines.inverse(&data, |_| 1.0), &x);
        let errors = [Pocs, Homodyne].map(|how| {
            let (image, report) = reconstruct(&geometry, &cpu(), &method(how), &data).unwrap();
            assert!(report.residual < 0.1 && report.iterations <= 15 && report.change <= 5e-4, "{report:?}");
            // The phase stays in the image.
            let error = distance(&image, &x);
            assert!(error < 0.02 + 0.5 * zeros / 100.0, "{lines:?} {how:?}: {error}");
            (percent(&image, &x), report)
        });
        let [(pocs, report), (homodyne, _)] = errors;
        say(&format!(
            "{lines:?}: zeros {zeros:.2} %, homodyne {homodyne:.2} %, POCS {pocs:.2} % after {} iterations",
            report.iterations
        ));
        assert!(pocs < pocs_ratio * zeros && homodyne < homodyne_ratio * zeros, "{lines:?}: {zeros} {errors:?}");
    }
}

#[test]
fn measured_data_stay_in_the_images_of_pocs() {
    let lines = Lines::eighths(&[20, 40], 1, 5, true);
    let mut random = Random::fresh();
    let data: Vec<Complex<f64>> =
        lines.data(&object(&lines.dims)).iter().map(|z| z + Complex::new(random.uniform(), random.uniform())).collect();
    let k = lines.k::<f64>();
    let axes = slices(&k);
    let (image, _) = reconstruct(&Geometry::new(&lines.dims, &axes), &exact(), &method(Pocs), &data).unwrap();
    let error = distance(&lines.data(&image), &data);
    assert!(error < 1e-9, "{error}, seed {}", random.seed);
}

#[test]
fn other_trajectories_are_filled() {
    // Lines whose samples are between grid points, and a stack of spokes with missing partitions.
    let dims = [24usize, 40];
    let lines = |rows: std::ops::Range<isize>| -> Vec<Vec<f64>> {
        let at = |i: usize| (i as f64 - 16.5) / 33.0 * 0.99;
        let k = |axis: usize| -> Vec<f64> {
            let row = |u: isize| (0..33).map(move |i| if axis == 0 { at(i) } else { u as f64 / 40.0 });
            rows.clone().flat_map(row).collect()
        };
        vec![k(0), k(1)]
    };
    let star = Trajectory::radial2d(32, 24, SpokeOrder::Linear).unwrap();
    let stack = |rows: std::ops::Range<isize>| -> Vec<Vec<f64>> {
        let plane = |axis: usize| rows.clone().flat_map(|_| star.axis(axis).to_vec()).collect::<Vec<f64>>();
        let z = rows.clone().flat_map(|u| vec![u as f64 / 24.0; star.samples()]).collect();
        vec![plane(0), plane(1), z]
    };
    let cases =
        [(dims.to_vec(), lines(-20..20), lines(-20..6), 1), (vec![16, 16, 24], stack(-12..12), stack(-5..12), 2)];
    for (dims, complete, partial, axis) in cases {
        let x = object(&dims);
        let r = voxels(&dims);
        let image_of = |k: &[Vec<f64>], how: Option<PartialFourierMethod>| {
            let data = direct(-1.0, &r, &x, k);
            let axes = slices(k);
            let geometry = Geometry::new(&dims, &axes);
            match how {
                Some(how) => {
                    let (image, report) = reconstruct(&geometry, &cpu(), &method(how), &data).unwrap();
                    assert_eq!(report.axis, axis);
                    image
                }
                None => {
                    let mut image = poisoned(x.len());
                    Plan::new(&geometry, &cpu()).unwrap().grid(&data, &mut image).unwrap();
                    image
                }
            }
        };
        // POCS is least squares on the measured samples, and so has a smaller error than gridding in the plane, too.
        let full = percent(&image_of(&complete, None), &x);
        let zeros = percent(&image_of(&partial, None), &x);
        let [pocs, homodyne] = [Pocs, Homodyne].map(|how| percent(&image_of(&partial, Some(how)), &x));
        say(&format!("{dims:?}: complete {full:.2} %, zeros {zeros:.2} %, homodyne {homodyne:.2} %, POCS {pocs:.2} %"));
        // Measured: 2.4, 25, 10 and 2.9 %, then 8.5, 10.6, 9.9 and 4.4 %.
        assert!(pocs < 1.3 * full && homodyne - full < 0.8 * (zeros - full), "{dims:?}: {zeros} {pocs} {homodyne}");
    }
}

#[test]
fn results_do_not_depend_on_threads_or_on_other_images() {
    let lines = Lines::eighths(&[48, 64], 1, 5, true);
    let maps = coil_maps(&lines.dims, 3);
    let x = object(&lines.dims);
    let seen = |map: &Vec<Complex<f64>>| -> Vec<_> { x.iter().zip(map).map(|(x, s)| x * s).collect() };
    let mut kspace: Vec<Complex<f32>> = maps.iter().flat_map(|map| narrow::<f32>(&lines.data(&seen(map)))).collect();
    // A second frame that converges at a different speed.
    let mut random = Random::of(5);
    let noise: Vec<Complex<f32>> =
        kspace.iter().zip(random.complexes::<f32>(kspace.len())).map(|(z, noise)| z + noise * 60.0).collect();
    kspace.extend(noise);
    let k = lines.k::<f32>();
    let axes = slices(&k);
    let mut geometry = Geometry::new(&lines.dims, &axes).coils(3);
    geometry.frames = 2;
    for how in [method(Pocs), method(Homodyne)] {
        let of = |threads: usize| {
            let options = Options { threads, ..cpu() };
            reconstruct(&geometry, &options, &how, &kspace).unwrap()
        };
        let (one, four) = (of(1), of(4));
        assert!(one == four, "{how:?}");
        // Each image alone.
        let single = Geometry { coils: 1, frames: 1, ..geometry.clone() };
        let mut iterations = Vec::new();
        for (data, image) in kspace.chunks_exact(k[0].len()).zip(one.0.chunks_exact(x.len())) {
            let (alone, report) = reconstruct(&single, &cpu(), &how, data).unwrap();
            assert!(alone == image, "{how:?}");
            iterations.push(report.iterations);
        }
        assert_eq!(iterations.iter().max(), Some(&one.1.iterations));
        if how.method == Pocs {
            assert!(iterations.iter().min() < iterations.iter().max(), "{iterations:?}");
        }
    }
}

#[test]
fn a_phase_that_is_not_smooth_is_reported() {
    let lines = Lines::eighths(&[64, 64], 1, 5, true);
    let k = lines.k::<f64>();
    let axes = slices(&k);
    let geometry = Geometry::new(&lines.dims, &axes);
    let smooth = object(&lines.dims);
    // A phase that turns by 1.5 cycles within a voxel of the symmetric centre's resolution (8 voxels).
    let rough: Vec<Complex<f64>> = smooth
        .iter()
        .enumerate()
        .map(|(i, z)| z * Complex::from_polar(1.0, 2.5 * (1.2 * (i / 64) as f64).sin() * (0.2 * (i % 64) as f64).cos()))
        .collect();
    for how in [Pocs, Homodyne] {
        let residual = |x: &[Complex<f64>]| {
            let (image, report) = reconstruct(&geometry, &cpu(), &method(how), &lines.data(x)).unwrap();
            (report.residual, percent(&image, x))
        };
        let (good, bad) = (residual(&smooth), residual(&rough));
        say(&format!("{how:?}: residual and error {good:.3?} with a smooth phase, {bad:.3?} with a rough one"));
        assert!(good.0 < 0.06 && bad.0 > 0.2 && bad.1 > 5.0 * good.1, "{how:?}: {good:?} {bad:?}");
    }
}

#[test]
fn noise_is_about_that_of_complete_data() {
    let (lines, complete) = (Lines::eighths(&[128, 128], 1, 6, true), Lines::eighths(&[128, 128], 1, 8, true));
    let x = object(&lines.dims);
    let mut random = Random::fresh();
    // Standard deviation of a voxel in images of complete data: a twentieth of the largest voxel.
    let deviation = 0.05 * x.iter().fold(0.0, |most: f64, x| most.max(x.norm())) * (x.len() as f64).sqrt();
    let mut noisy = complete.data(&x);
    noisy.iter_mut().for_each(|z| *z += Complex::new(random.uniform(), random.uniform()) * deviation * 6f64.sqrt());
    let full = percent(&complete.inverse(&noisy, |_| 1.0), &x);
    // Rows are along y, from the first.
    let k = lines.k::<f64>();
    let axes = slices(&k);
    let geometry = Geometry::new(&lines.dims, &axes);
    let [pocs, homodyne] = [Pocs, Homodyne].map(|how| {
        let (image, report) = reconstruct(&geometry, &cpu(), &method(how), &noisy[..k[0].len()]).unwrap();
        // Noise alone causes no warning.
        assert!(report.residual > 0.05 && report.residual < 0.15, "{report:?}, seed {}", random.seed);
        (percent(&image, &x), report.residual)
    });
    say(&format!("noise: complete {full:.1} %; error and residual: POCS {pocs:.3?}, homodyne {homodyne:.3?}"));
    assert!(pocs.0 < 1.05 * full && homodyne.0 < 1.15 * full, "{full} {pocs:?} {homodyne:?}, seed {}", random.seed);
}

#[test]
fn data_of_zeros_are_an_image_of_zeros() {
    let lines = Lines::eighths(&[12, 40], 1, 5, true);
    let k = lines.k::<f32>();
    let axes = slices(&k);
    for how in [Pocs, Homodyne] {
        let zeros = vec![Complex::default(); k[0].len()];
        let (image, report) = reconstruct(&Geometry::new(&lines.dims, &axes), &cpu(), &method(how), &zeros).unwrap();
        assert!(image.iter().all(|z| *z == Complex::default()) && report.residual == 0.0 && report.change == 0.0);
    }
}

#[test]
fn unsuitable_scans_and_options_are_errors() {
    let lines = Lines::eighths(&[12, 40], 1, 6, true);
    let k = lines.k::<f64>();
    let axes = slices(&k);
    let geometry = Geometry::new(&lines.dims, &axes);
    let data = lines.data(&object(&lines.dims));
    let fails = |geometry: &Geometry<'_, f64>, how: &PartialFourierOptions, kind: ErrorKind, words: &str| {
        let error = PartialFourier::new(geometry, &cpu(), how).err().expect(words);
        assert!(error.kind() == kind && error.message().contains(words), "{words}: {:?} {error}", error.kind());
    };
    use ErrorKind::{InvalidArgument, Unsupported};
    let pocs = method(Pocs);
    fails(&geometry, &PartialFourierOptions { iterations: 0, ..pocs }, InvalidArgument, "iterations of partial");
    for tolerance in [-0.1, 1.0, f64::NAN] {
        fails(&geometry, &PartialFourierOptions { tolerance, ..pocs }, InvalidArgument, "tolerance of partial");
    }
    let values = vec![0.0; 480];
    let times = vec![0.0; k[0].len()];
    fails(&geometry.clone().field_map(&values, &times), &pocs, Unsupported, "field map");
    fails(&Geometry { basis: VoxelBasis::Box, ..geometry.clone() }, &pocs, Unsupported, "boxes");
    let list = vec![&values[..], &values[..]];
    fails(&Geometry { voxels: Some(list), ..geometry.clone() }, &pocs, Unsupported, "list");
    let of = |lines: Lines, kind, words: &str| {
        let k = lines.k::<f64>();
        let axes = slices(&k);
        fails(&Geometry::new(&lines.dims, &axes), &pocs, kind, words);
    };
    of(Lines::eighths(&[12, 40], 1, 8, true), InvalidArgument, "no side of k-space is missing");
    of(Lines::eighths(&[12, 32], 1, 5, true), InvalidArgument, "too narrow");
    let keep = |parity: fn(f64) -> bool| -> Vec<Vec<f64>> {
        let kept: Vec<usize> = (0..k[0].len()).filter(|&m| parity((k[1][m] * 40.0).round())).collect();
        k.iter().map(|k| kept.iter().map(|&m| k[m]).collect()).collect()
    };
    let every_second = keep(|u| u % 2.0 == 0.0);
    let axes = slices(&every_second);
    let undersampled = Geometry::new(&lines.dims, &axes);
    fails(&undersampled, &pocs, InvalidArgument, "parallel imaging");
    let quarter: Vec<Vec<f64>> = {
        let lines = Lines::eighths(&[40, 40], 0, 6, true);
        let k = lines.k::<f64>();
        let kept: Vec<usize> = (0..k[0].len()).filter(|&m| k[1][m] > -0.2).collect();
        k.iter().map(|k| kept.iter().map(|&m| k[m]).collect()).collect()
    };
    let axes = slices(&quarter);
    fails(&Geometry::new(&[40, 40], &axes), &pocs, Unsupported, "along 2 axes");

    // Data: the image is unchanged after an error.
    let plan = PartialFourier::new(&geometry, &cpu(), &pocs).unwrap();
    let mut image = vec![Complex::new(7.0, 7.0); 480];
    let mut bad = data.clone();
    bad[5].re = f64::NAN;
    let error = plan.reconstruct(&bad, &mut image).unwrap_err();
    assert!(error.kind() == ErrorKind::NotFinite && error.message().contains("sample 5"), "{error}");
    assert_eq!(plan.reconstruct(&data[1..], &mut image).unwrap_err().kind(), ErrorKind::SizeMismatch);
    assert_eq!(plan.reconstruct(&data, &mut image[1..]).unwrap_err().kind(), ErrorKind::SizeMismatch);
    let stopping = Options { interrupt: Some(Interrupt::new(|| true)), ..cpu() };
    let cancelled = PartialFourier::new(&geometry, &stopping, &pocs).and_then(|p| p.reconstruct(&data, &mut image));
    assert_eq!(cancelled.unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(image.iter().all(|z| *z == Complex::new(7.0, 7.0)));
}

#[test]
fn given_weights_of_any_scale_are_used() {
    let lines = Lines::eighths(&[32, 64], 1, 6, true);
    let x = object(&lines.dims);
    let data = lines.data(&x);
    let k = lines.k::<f64>();
    let axes = slices(&k);
    let geometry = Geometry::new(&lines.dims, &axes);
    let weights = vec![3.7e3; k[0].len()];
    for how in [Pocs, Homodyne] {
        let (expected, _) = reconstruct(&geometry, &cpu(), &method(how), &data).unwrap();
        let (image, _) = reconstruct(&geometry.clone().weights(&weights), &cpu(), &method(how), &data).unwrap();
        // The line at k = -0.5 has different weights, and the scale is that of gridding.
        let error = distance(&image, &expected);
        assert!(error < 0.02, "{how:?}: {error}");
    }
}
