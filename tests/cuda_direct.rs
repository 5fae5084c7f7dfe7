//! Direct sums on a GPU, compared with sums in double precision. Without a GPU each test prints one line that begins
//! with `skipped:`.

mod common;

use common::*;
use num_complex::Complex;
use recon::backend::cuda::direct::DirectSum;
use recon::backend::cuda::gpu::Gpu;
use recon::backend::cuda::runtime;
use recon::backend::OffResonance;
use recon::Real;

fn gpu(what: &str) -> Option<Gpu> {
    if runtime::first_usable().is_none() {
        say(&format!("skipped: {what} (no GPU)"));
        return None;
    }
    // SAFETY: no stream is given.
    Some(unsafe { Gpu::new(0, None, 0) }.unwrap())
}

fn points<T: Real>(random: &mut Random, ndim: usize, count: usize, scale: f64) -> Vec<Vec<T>> {
    (0..ndim).map(|_| random.reals::<T>(count).iter().map(|x| T::of(x.wide() * scale)).collect()).collect()
}

/// Maps of off-resonance in Hz and of decay in 1/s, and times in seconds.
struct Maps<T> {
    field: Option<Vec<T>>,
    decay: Option<Vec<T>>,
    times: Vec<T>,
}

impl<T: Real> Maps<T> {
    /// Returns times within +-0.05 s, f up to 400 Hz, and R whose product with these times is at most `reach`.
    fn random(random: &mut Random, [field, decay]: [bool; 2], reach: f64, samples: usize, voxels: usize) -> Self {
        let mut some = |count: usize, of: &dyn Fn(f64) -> f64| -> Vec<T> {
            random.reals::<T>(count).iter().map(|x| T::of(of(x.wide()))).collect()
        };
        Maps {
            times: some(samples, &|x| 0.1 * x),
            field: field.then(|| some(voxels, &|x| 400.0 * x)),
            decay: decay.then(|| some(voxels, &|x| 2.0 * x.abs() * reach / 0.05)),
        }
    }

    fn given(&self) -> OffResonance<'_, T> {
        OffResonance { field_map: self.field.as_deref(), decay_map: self.decay.as_deref(), times: &self.times }
    }
}

/// Returns the error of out(a) = sum_b values(b) exp(sign i 2 pi a.b - d_a d_b) for some a, relative to the mean norm
/// of these sums for random values. `decay` contains d_b and d_a.
fn distance<T: Real>(
    out: &[Complex<T>],
    sign: f64,
    from: &[Vec<T>],
    values: &[Complex<T>],
    to: &[Vec<T>],
    decay: Option<[&[T]; 2]>,
) -> f64 {
    let (mut error, mut norm) = (0.0, 0.0);
    for a in (0..out.len()).step_by(out.len() / 1000 + 1) {
        let mut sum = Complex::new(0.0, 0.0);
        for (b, value) in values.iter().enumerate() {
            let turns: f64 = from
                .iter()
                .zip(to)
                .map(|(from, to)| {
                    let (q, p) = (from[b].wide(), to[a].wide());
                    (q * p - (q * p).round()) + q.mul_add(p, -(q * p))
                })
                .sum();
            let factor = decay.map_or(1.0, |[from, to]| (-from[b].wide() * to[a].wide()).exp());
            let wave = Complex::from_polar(factor, sign * std::f64::consts::TAU * (turns - turns.round()));
            let value = Complex::new(value.re.wide(), value.im.wide());
            sum += wave * value;
            norm += value.norm_sqr() * factor * factor;
        }
        error += (Complex::new(out[a].re.wide(), out[a].im.wide()) - sum).norm_sqr();
    }
    (error / norm).sqrt()
}

/// Returns the voxels of a grid as a list.
fn grid<T: Real>(dims: &[usize]) -> Vec<Vec<T>> {
    let total: usize = dims.iter().product();
    let strides = dims.iter().scan(1, |s, n| Some(std::mem::replace(s, *s * n)));
    strides.zip(dims).map(|(s, n)| (0..total).map(|i| T::of((i / s % n) as f64 - (n / 2) as f64)).collect()).collect()
}

/// Calls [`check_with_maps`] without maps.
fn check<T: Real>(gpu: &Gpu, dims: &[usize], k: &[Vec<T>], list: Option<&[Vec<T>]>, bound: f64) {
    check_with_maps(gpu, dims, k, list, None, 0.0, bound);
}

/// Computes both directions twice. Checks their errors, that the whole output is written, and that the bits are the
/// same both times.
fn check_with_maps<T: Real>(
    gpu: &Gpu,
    dims: &[usize],
    k: &[Vec<T>],
    list: Option<&[Vec<T>]>,
    maps: Option<&Maps<T>>,
    tolerance: f64,
    bound: f64,
) {
    let mut random = Random::fresh();
    let on_grid = if list.is_none() { grid(dims) } else { Vec::new() };
    let (mut q, mut p) = (k.to_vec(), list.unwrap_or(&on_grid).to_vec());
    let (d, x) = (random.complexes::<T>(q[0].len()), random.complexes::<T>(p[0].len()));
    let given = list.map(slices);
    let off_resonance = maps.map(|maps| maps.given());
    let sum = DirectSum::new(gpu, &slices(k), dims, given.as_deref(), off_resonance, tolerance).unwrap();
    // Off-resonance is one more axis of the reference.
    if let Some(Maps { field: Some(f), times, .. }) = maps {
        q.push(times.clone());
        p.push(f.clone());
    }
    let decay = maps.and_then(|maps| Some((&maps.times[..], maps.decay.as_deref()?)));
    let nan = Complex::new(T::of(f64::NAN), T::of(f64::NAN));
    let mut before: Option<[Vec<Complex<T>>; 2]> = None;
    for _ in 0..2 {
        let (mut image, mut values) = (vec![nan; x.len()], vec![nan; d.len()]);
        let (gd, gx) = (gpu.upload(&d, "d").unwrap(), gpu.upload(&x, "x").unwrap());
        let (mut gi, mut gv) = (gpu.upload(&image, "i").unwrap(), gpu.upload(&values, "v").unwrap());
        sum.to_image(gpu, gd.view(), gi.view_mut());
        sum.to_samples(gpu, gx.view(), gv.view_mut());
        gpu.download(gi.view(), &mut image).unwrap();
        gpu.download(gv.view(), &mut values).unwrap();
        match &before {
            None => {
                let errors = [
                    distance(&image, 1.0, &q, &d, &p, decay.map(|(t, r)| [t, r])),
                    distance(&values, -1.0, &p, &x, &q, decay.map(|(t, r)| [r, t])),
                ];
                let what = format!(
                    "{} {dims:?}, {} samples, list {}, field {}, decay {}, tolerance {tolerance}",
                    T::NAME,
                    d.len(),
                    list.is_some(),
                    maps.is_some_and(|maps| maps.field.is_some()),
                    decay.is_some()
                );
                assert!(errors.iter().all(|e| *e < bound), "{errors:?}, bound {bound:.1e}: {what}");
                before = Some([image, values]);
            }
            Some(before) => assert!(before[0] == image && before[1] == values, "{} {dims:?}", T::NAME),
        }
    }
}

#[test]
fn sums_on_grids_of_all_shapes() {
    let Some(gpu) = gpu("direct sums on grids") else { return };
    let mut random = Random::fresh();
    for dims in [
        &[1, 1][..],
        &[1, 9],
        &[40, 1],
        &[33, 1, 1],
        &[1, 1, 70],
        &[2, 2],
        &[3, 2, 1],
        &[31, 17],
        &[129, 33],
        &[24, 1, 10],
        &[7, 15, 10],
        &[40, 20, 12],
        &[64, 48, 2],
    ] {
        for samples in [1, 3, 300, 1100] {
            let k = points::<f32>(&mut random, dims.len(), samples, 0.999);
            check(&gpu, dims, &k, None, 1e-6);
            let k = points::<f64>(&mut random, dims.len(), samples, 0.999);
            check(&gpu, dims, &k, None, 1e-14);
        }
    }
}

/// Sums over voxels so far from the origin that the rounding of phases determines the error: about one unit of rounding
/// per turn of the largest random phase. That phase matters if there are few samples or voxels.
fn far_apart<T: Real>(gpu: &Gpu, random: &mut Random, ndim: usize, samples: usize, voxels: usize) {
    let (k, r) = (points::<T>(random, ndim, samples, 0.999), points::<T>(random, ndim, voxels, 200.0));
    let largest = |x: &[T]| x.iter().map(|x| x.wide().abs()).fold(0.0, f64::max);
    let turns: f64 = k.iter().zip(&r).map(|(k, r)| largest(k) * largest(r)).sum();
    let bound = T::EPSILON * (std::f64::consts::TAU * turns + 10.0);
    check(gpu, &vec![200; ndim], &k, Some(&r), bound);
}

#[test]
fn sums_over_lists() {
    let Some(gpu) = gpu("direct sums over lists") else { return };
    let mut random = Random::fresh();
    for ndim in 1..=4 {
        for (samples, voxels) in [(1, 1), (1, 50), (700, 1), (333, 411)] {
            far_apart::<f32>(&gpu, &mut random, ndim, samples, voxels);
            far_apart::<f64>(&gpu, &mut random, ndim, samples, voxels);
        }
    }
    // Voxels so close to each other that the fast kernel is used in both directions.
    let dims = [20, 20, 20];
    check::<f32>(&gpu, &dims, &points(&mut random, 3, 5000, 0.999), Some(&grid(&dims)), 5e-6);
    // Off-resonance: times in seconds, frequencies in Hz.
    let mut k = points::<f32>(&mut random, 3, 3000, 0.999);
    let mut r = grid::<f32>(&dims);
    k[2] = random.reals::<f32>(3000).iter().map(|t| 0.02 * (t + 0.5)).collect();
    r[2] = random.reals::<f32>(8000).iter().map(|f| 200.0 * f).collect();
    check(&gpu, &dims, &k, Some(&r), 5e-6);
}

/// Checks in f32 first the fast kernel, then the accurate one, which a small tolerance selects. Exponents are rounded
/// twice, which causes an error of R t roundings, at most 60 in a plan.
#[test]
fn sums_with_off_resonance_and_decay() {
    let Some(gpu) = gpu("direct sums with off-resonance and decay") else { return };
    let mut random = Random::fresh();
    let kinds =
        [([true, false], 0.0), ([false, true], 3.0), ([false, true], 60.0), ([true, true], 3.0), ([true, true], 60.0)];
    let shapes = [
        (&[1, 1][..], None),
        (&[31, 17], None),
        (&[64, 48], Some(411)),
        (&[7, 15, 10], None),
        (&[40, 40, 40], Some(1500)),
    ];
    for (dims, list) in shapes {
        for samples in [1, 3, 300, 1100] {
            for (maps, reach) in kinds {
                let ndim = dims.len();
                let scale = if reach > 10.0 { 4.0 } else { 1.0 };
                let voxels = list.unwrap_or(dims.iter().product());
                let k = points::<f32>(&mut random, ndim, samples, 0.999);
                let r = list.map(|_| points::<f32>(&mut random, ndim, voxels, 40.0));
                let given = Maps::random(&mut random, maps, reach, samples, voxels);
                check_with_maps(&gpu, dims, &k, r.as_deref(), Some(&given), 0.0, 1e-5 * scale);
                check_with_maps(&gpu, dims, &k, r.as_deref(), Some(&given), 1e-7, 5e-6 * scale);
                let k = points::<f64>(&mut random, ndim, samples, 0.999);
                let r = list.map(|_| points::<f64>(&mut random, ndim, voxels, 40.0));
                let given = Maps::random(&mut random, maps, reach, samples, voxels);
                check_with_maps(&gpu, dims, &k, r.as_deref(), Some(&given), 0.0, 2e-14 * scale);
            }
        }
    }
}

/// Checks voxels that no coil sees: their decay may have any value, and no factor is NaN or infinite.
#[test]
fn decay_beyond_all_bounds_stays_finite() {
    let Some(gpu) = gpu("direct sums with absurd decay") else { return };
    let (rates, times) = ([0.0, 20.0, 1e9, f32::MAX], [0.0, -0.3, 0.3, 1e-30]);
    let maps = OffResonance { field_map: None, decay_map: Some(&rates[..]), times: &times[..] };
    for tolerance in [0.0, 1e-7] {
        let k = [&[0.0f32; 4][..], &[0.0; 4]];
        let sum = DirectSum::new(&gpu, &k, &[2, 2], None, Some(maps), tolerance).unwrap();
        let image = gpu.upload(&[Complex::new(1.0f32, -1.0); 4], "image").unwrap();
        let mut values = gpu.upload(&[Complex::new(f32::NAN, f32::NAN); 4], "values").unwrap();
        sum.to_samples(&gpu, image.view(), values.view_mut());
        let mut host = [Complex::default(); 4];
        gpu.download(values.view(), &mut host).unwrap();
        assert!(host.iter().all(|z| z.re.is_finite() && z.im.is_finite()), "{host:?}");
        // At time 0 nothing has decayed. After 0.3 s only the first two voxels have signal.
        for (got, want) in [(host[0], 4.0), (host[2], 1.0 + (-6.0f32).exp())] {
            assert!((got - Complex::new(want, -want)).norm() < 1e-5, "{host:?}");
        }
    }
}

#[test]
fn magnitudes_from_tiny_to_huge() {
    let Some(gpu) = gpu("direct sums of tiny and huge data") else { return };
    let mut random = Random::fresh();
    let dims = [32, 10];
    let k = points::<f32>(&mut random, 2, 500, 0.999);
    let sum = DirectSum::new(&gpu, &slices(&k), &dims, None, None, 0.0).unwrap();
    let d = random.complexes::<f32>(500);
    let image = |scale: f32| {
        let scaled: Vec<_> = d.iter().map(|d| d * scale).collect();
        let data = gpu.upload(&scaled, "d").unwrap();
        let mut image = gpu.zeros::<Complex<f32>>(320, "image").unwrap();
        sum.to_image(&gpu, data.view(), image.view_mut());
        let mut host = vec![Complex::default(); 320];
        gpu.download(image.view(), &mut host).unwrap();
        host
    };
    let unit = image(1.0);
    for exponent in [-100, -30, 30, 100] {
        let scale = (exponent as f32).exp2();
        // A power of two changes only the scale of the image.
        assert!(image(scale).iter().zip(&unit).all(|(a, b)| *a == b * scale), "2^{exponent}");
    }
    assert!(image(0.0).iter().all(|z| *z == Complex::default()));
}

#[test]
fn no_samples_make_an_empty_image() {
    let Some(gpu) = gpu("direct sums of nothing") else { return };
    let map = [1.0f32, 2.0, 3.0, 4.0];
    let maps = OffResonance { field_map: Some(&map[..]), decay_map: Some(&map[..]), times: &[] };
    for (list, maps) in [(None, None), (Some(vec![&map[..]; 2]), None), (None, Some(maps))] {
        let sum = DirectSum::<f32>::new(&gpu, &[&[], &[]], &[2, 2], list.as_deref(), maps, 0.0).unwrap();
        let nan = Complex::new(f32::NAN, f32::NAN);
        let mut image = gpu.upload(&[nan; 4], "image").unwrap();
        let mut nothing = gpu.zeros::<Complex<f32>>(0, "no samples").unwrap();
        sum.to_image(&gpu, nothing.view(), image.view_mut());
        sum.to_samples(&gpu, image.view(), nothing.view_mut());
        let mut host = [nan; 4];
        gpu.download(image.view(), &mut host).unwrap();
        assert!(host.iter().all(|z| *z == Complex::default()));
    }
}

/// Returns the scan of docs/benchmarks: 284,592 samples, 128^3 voxels.
#[test]
#[ignore = "a measurement"]
fn times_of_a_whole_scan() {
    let Some(gpu) = gpu("times of direct sums") else { return };
    let mut random = Random::fresh();
    let dims = [128, 128, 128];
    let k = points::<f32>(&mut random, 3, 284_592, 0.999);
    let voxels = grid::<f32>(&dims);
    let (d, x) = (random.complexes::<f32>(284_592), random.complexes::<f32>(1 << 21));
    let (d, x) = (gpu.upload(&d, "d").unwrap(), gpu.upload(&x, "x").unwrap());
    let maps = [[true, false], [false, true], [true, true]]
        .map(|kinds| Maps::<f32>::random(&mut random, kinds, 3.0, 284_592, 1 << 21));
    let [field, decay, both] = &maps;
    let cases = [
        ("grid", None, None),
        ("list", Some(slices(&voxels)), None),
        ("off-resonance", None, Some(field)),
        ("decay", None, Some(decay)),
        ("off-resonance and decay", None, Some(both)),
    ];
    for (name, list, maps) in cases {
        let started = std::time::Instant::now();
        let maps = maps.map(|maps| maps.given());
        let sum = DirectSum::new(&gpu, &slices(&k), &dims, list.as_deref(), maps, 0.0).unwrap();
        let plan = 1e3 * started.elapsed().as_secs_f64();
        let mut ms = [f64::INFINITY; 2];
        for _ in 0..4 {
            for (direction, ms) in ms.iter_mut().enumerate() {
                let mut image = gpu.array::<Complex<f32>>(1 << 21, "image").unwrap();
                let mut values = gpu.array::<Complex<f32>>(284_592, "values").unwrap();
                gpu.synchronize().unwrap();
                let started = std::time::Instant::now();
                match direction {
                    0 => sum.to_image(&gpu, d.view(), image.view_mut()),
                    _ => sum.to_samples(&gpu, x.view(), values.view_mut()),
                }
                gpu.synchronize().unwrap();
                *ms = ms.min(1e3 * started.elapsed().as_secs_f64());
            }
        }
        say(&format!("{name}: plan {plan:.0} ms, to image {:.2} ms, to samples {:.2} ms", ms[0], ms[1]));
    }
}
