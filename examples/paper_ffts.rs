//! The FFTs of table 2 of Schiwietz et al. 2006 (Proc. SPIE 6142:61423T): complex 2D signals of 256^2, 512^2 and 1024^2
//! points in single precision, by this library on CPU and GPU, by rustfft and by cuFFT.
//!
//! cargo run --release --example paper_ffts -- [THREADS, default 0: all processors] [--quick] [--no-gpu]
//!
//! benches/papers/schiwietz.py reads the output: one JSON object per line, for one size and one number of signals.
//! Times are medians in milliseconds per signal, from one array to a different one; `null` if a side is missing. The
//! reason is in `no_gpu` or `no_cufft`. Signals are in the memory of the device, and plans exist.
//!
//! A signal begins at index floor(n/2), as the images of this library do: the first step of the transform reads it from
//! there. rustfft and cuFFT transform the same signal in their own order. All results are compared with rustfft's in
//! double precision before they are timed.

#[path = "common/cufft.rs"]
mod cufft;

use cufft::{median_microseconds, CuFft};
use recon::backend::cpu::fft::GridFft as CpuFft;
use recon::backend::cpu::simd::Level;
use recon::backend::cuda::fft::GridFft as GpuFft;
use recon::backend::cuda::gpu::Gpu;
use recon::backend::cuda::kernel_check::CheckArguments;
use recon::backend::cuda::runtime::{Context, Stream};
use recon::backend::threads::Threads;
use recon::{Complex, Error, ErrorKind, Result, Simd};
use rustfft::{Fft, FftNum, FftPlanner};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Instant;

const SIZES: [usize; 3] = [256, 512, 1024];
/// The paper transforms one signal, or two in the four channels of one texture.
const SIGNALS: [usize; 2] = [1, 2];
/// Maximum relative l2 error. Rounding errors of an FFT grow with the logarithm of its size: about 3e-7 is usual.
const ERROR: f64 = 2e-6;

fn main() -> Result<()> {
    let (mut threads, mut runs, mut use_gpu) = (0, 31, true);
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--quick" => runs = 5,
            "--no-gpu" => use_gpu = false,
            text => {
                threads = text.parse().map_err(|_| {
                    Error::new(
                        ErrorKind::InvalidArgument,
                        format!("'{text}' is not an argument: give a number of threads, --quick or --no-gpu"),
                    )
                })?
            }
        }
    }
    let gpu = if use_gpu { Device::open().map_err(|e| e.to_string()) } else { Err("--no-gpu was given".to_owned()) };
    for n in SIZES {
        for signals in SIGNALS {
            let case = Case::new(n, signals);
            let ([one, all], rustfft, threads) = on_cpu(&case, threads, runs)?;
            let (own, cufft, [no_gpu, no_cufft]) = match &gpu {
                Ok(device) => {
                    let own = device.recon(&case, runs)?;
                    match device.cufft(&case, runs) {
                        Ok(cufft) => (Some(own), Some(cufft), [String::new(), String::new()]),
                        Err(e) => (Some(own), None, [String::new(), e.to_string()]),
                    }
                }
                Err(why) => (None, None, [why.clone(), why.clone()]),
            };
            // `Debug` of text escapes it as JSON does.
            println!(
                "{{\"size\": {n}, \"signals\": {signals}, \"threads\": {threads}, \"recon_one_ms\": {one}, \
                 \"recon_all_ms\": {all}, \"rustfft_ms\": {rustfft}, \"recon_gpu_ms\": {}, \"cufft_ms\": {}, \
                 \"no_gpu\": {no_gpu:?}, \"no_cufft\": {no_cufft:?}}}",
                or_null(own),
                or_null(cufft)
            );
        }
    }
    Ok(())
}

fn or_null(value: Option<f64>) -> String {
    value.map_or("null".to_owned(), |value| value.to_string())
}

/// Random signals of n x n points and their exact transform.
struct Case {
    n: usize,
    signals: usize,
    /// In the order of this library: the origin is at index floor(n/2) of each axis.
    centred: Vec<Complex<f32>>,
    /// In the order of other libraries: the origin is at index 0.
    plain: Vec<Complex<f32>>,
    exact: Vec<Complex<f64>>,
}

impl Case {
    fn new(n: usize, signals: usize) -> Self {
        // The standard library's only source of random numbers.
        let mut state = RandomState::new().build_hasher().finish();
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((state >> 40) as f32 / (1u32 << 24) as f32) - 0.5
        };
        let plain: Vec<_> = (0..n * n * signals).map(|_| Complex::new(random(), random())).collect();
        let centred = (0..plain.len())
            .map(|i| {
                let (signal, y, x) = (i / (n * n), i / n % n, i % n);
                let from = |i: usize| (i + n - n / 2) % n;
                plain[(signal * n + from(y)) * n + from(x)]
            })
            .collect();
        let mut exact: Vec<_> = plain.iter().map(|z| Complex::new(z.re.into(), z.im.into())).collect();
        let mut fft = RustFft::new(n);
        exact.chunks_exact_mut(n * n).for_each(|signal| fft.run(signal));
        Case { n, signals, centred, plain, exact }
    }

    /// Returns an error unless `found` is the transform, so that no wrong result is timed.
    fn check(&self, found: &[Complex<f32>], name: &str) -> Result<()> {
        let wide = |z: &Complex<f32>| Complex::new(f64::from(z.re), f64::from(z.im));
        let difference: f64 = found.iter().zip(&self.exact).map(|(a, b)| (wide(a) - b).norm_sqr()).sum();
        let error = (difference / self.exact.iter().map(|z| z.norm_sqr()).sum::<f64>()).sqrt();
        // NaN must fail as well.
        if error <= ERROR {
            return Ok(());
        }
        let message = format!("{name}, {n} x {n}: the error is {error:.1e}, above {ERROR:.0e}", n = self.n);
        Err(Error::new(ErrorKind::Internal, message))
    }

    fn correction(&self) -> Vec<Vec<f64>> {
        vec![vec![1.0; self.n]; 2]
    }
}

fn poisoned(len: usize) -> Vec<Complex<f32>> {
    vec![Complex::new(f32::NAN, f32::NAN); len]
}

/// A transform of one 2D signal in place, by rustfft.
struct RustFft<T: FftNum> {
    n: usize,
    line: Arc<dyn Fft<T>>,
    scratch: Vec<Complex<T>>,
}

impl<T: FftNum> RustFft<T> {
    fn new(n: usize) -> Self {
        let line = FftPlanner::new().plan_fft_forward(n);
        RustFft { n, scratch: vec![Complex::new(T::zero(), T::zero()); line.get_inplace_scratch_len()], line }
    }

    /// Transforms rows, and columns as rows of the transposed signal: rustfft transforms contiguous lines only.
    fn run(&mut self, signal: &mut [Complex<T>]) {
        for _ in 0..2 {
            self.line.process_with_scratch(signal, &mut self.scratch);
            transpose(signal, self.n);
        }
    }
}

/// Transposes a square matrix in place, by blocks that fit into the first-level cache.
fn transpose<T: Copy>(matrix: &mut [T], n: usize) {
    const BLOCK: usize = 16;
    for block_y in (0..n).step_by(BLOCK) {
        for block_x in (block_y..n).step_by(BLOCK) {
            for y in block_y..(block_y + BLOCK).min(n) {
                for x in block_x.max(y + 1)..(block_x + BLOCK).min(n) {
                    matrix.swap(y * n + x, x * n + y);
                }
            }
        }
    }
}

/// Returns the milliseconds per signal of this library on one thread and on `threads` threads, those of rustfft on one
/// thread, and the number of threads.
fn on_cpu(case: &Case, threads: usize, runs: usize) -> Result<([f64; 2], f64, usize)> {
    let (n, level) = (case.n, Level::choose(Simd::Auto)?);
    let teams = [Threads::new(1)?, Threads::new(threads)?];
    let dims = [n, n];
    let ours = [0, 1].map(|i| CpuFft::<f32>::new(&teams[i], level, &dims, &dims, &case.correction()));
    let [one, all] = ours;
    let ours = [one?, all?];
    let mut theirs = RustFft::<f32>::new(n);
    let mut out = poisoned(case.plain.len());
    let mut run_rustfft = |out: &mut [Complex<f32>]| {
        out.copy_from_slice(&case.plain);
        let started = Instant::now();
        out.chunks_exact_mut(n * n).for_each(|signal| theirs.run(signal));
        started.elapsed().as_secs_f64()
    };
    run_rustfft(&mut out);
    case.check(&out, "rustfft")?;
    for (fft, team) in ours.iter().zip(&teams) {
        out = poisoned(out.len());
        fft.image_to_grid(team, &case.centred, &mut out, None);
        case.check(&out, "recon on the CPU")?;
    }
    // Alternating, so that other load on the machine affects all.
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..runs {
        for (i, (fft, team)) in ours.iter().zip(&teams).enumerate() {
            let started = Instant::now();
            fft.image_to_grid(team, &case.centred, &mut out, None);
            times[i].push(started.elapsed().as_secs_f64());
        }
        times[2].push(run_rustfft(&mut out));
    }
    let [one, all, rustfft] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        1e3 * times[times.len() / 2] / case.signals as f64
    });
    Ok(([one, all], rustfft, teams[1].running()))
}

/// The first GPU.
struct Device {
    // Dropped before its stream.
    gpu: Gpu,
    stream: Stream,
    context: Arc<Context>,
}

impl Device {
    fn open() -> Result<Self> {
        let context = Context::of(0)?;
        let stream = Stream::new(&context)?;
        // SAFETY: the stream is one of this GPU's primary context. `gpu` is dropped before it.
        let gpu = unsafe { Gpu::new(0, Some(stream.handle().cast()), 0) }?;
        Ok(Device { gpu, stream, context })
    }

    /// Returns the milliseconds per signal of this library.
    fn recon(&self, case: &Case, runs: usize) -> Result<f64> {
        let gpu = &self.gpu;
        let dims = [case.n, case.n];
        let fft = GpuFft::<f32>::new(gpu, &dims, &dims, &case.correction())?;
        let mut found = poisoned(case.plain.len());
        let from = gpu.upload(&case.centred, "signals")?;
        let mut to = gpu.upload(&found, "transforms")?;
        fft.image_to_grid(gpu, from.view(), to.view_mut(), CheckArguments::NONE);
        gpu.download(to.view(), &mut found)?;
        case.check(&found, "recon on the GPU")?;
        let microseconds = median_microseconds(&self.stream, runs, case.signals, || {
            fft.image_to_grid(gpu, from.view(), to.view_mut(), CheckArguments::NONE);
            Ok(())
        })?;
        Ok(1e-3 * microseconds)
    }

    /// Returns the milliseconds per signal of cuFFT.
    fn cufft(&self, case: &Case, runs: usize) -> Result<f64> {
        let gpu = &self.gpu;
        let mut found = poisoned(case.plain.len());
        let from = gpu.upload(&case.plain, "signals")?;
        let to = gpu.upload(&found, "transforms")?;
        let addresses = [from.pointer().address(), to.pointer().address()];
        let microseconds = {
            let _current = self.context.enter();
            let cufft = CuFft::new(&[case.n, case.n], case.signals, self.stream.handle().cast())?;
            cufft.run(addresses[0], addresses[1], false)?;
            gpu.download(to.view(), &mut found)?;
            case.check(&found, "cuFFT")?;
            median_microseconds(&self.stream, runs, case.signals, || cufft.run(addresses[0], addresses[1], false))?
        };
        Ok(1e-3 * microseconds)
    }
}
