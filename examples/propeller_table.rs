//! Gridding of PROPELLER data by gather and by scatter: times, and whether the bits are the same in each run. In Yang
//! et al. 2013 (Magn. Reson. Imaging 31), each cell of the grid collects its samples on a GPU. If many threads scatter
//! sums to the same cells, the sums are wrong or, with atomic additions, in an order that changes.
//!
//! cargo run --release --example propeller_table -- [RUNS, default 50] [DEVICE, cpu or cuda, default cpu]
//!
//! 17 blades x 24 lines x 960 samples with the scan matrix 256 are gridded for 512 x 512 voxels, as in that paper. The
//! data are random, so that all sums are rounded. All methods have the same window and single precision:
//! - "gather" is this library's gridding
//! - "atomic scatter" adds each sample to its cells by atomic additions
//! - "private scatter" gives each thread its own grid, and adds the grids

use recon::phantom::uniform;
use recon::window::Shape;
use recon::{Complex, Device, Error, ErrorKind, Geometry, Options, Plan, Result, Trajectory, Window};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Instant;

const N: usize = 512;
const TOLERANCE: f64 = 1e-3;

/// Cells and window values of each sample along both axes.
struct Taps {
    grid: usize,
    width: usize,
    first: Vec<[usize; 2]>,
    values: Vec<f32>,
}

impl Taps {
    fn new(axes: &[&[f64]], grid: usize, shape: &Shape) -> Taps {
        let width = shape.width();
        let samples = axes[0].len();
        let (mut first, mut values) = (Vec::with_capacity(samples), Vec::with_capacity(2 * width * samples));
        for (&x, &y) in axes[0].iter().zip(axes[1]) {
            let place = [x, y].map(|k| (k * grid as f64 + (grid / 2) as f64).rem_euclid(grid as f64));
            let begin = place.map(|p| (p - 0.5 * width as f64).ceil());
            for (p, b) in place.iter().zip(begin) {
                values.extend((0..width).map(|i| shape.value(b + i as f64 - p) as f32));
            }
            first.push(begin.map(|b| b.rem_euclid(grid as f64) as usize % grid));
        }
        Taps { grid, width, first, values }
    }

    /// Calls `add(cell, weight)` for all cells of a sample.
    #[inline]
    fn each(&self, m: usize, mut add: impl FnMut(usize, f32)) {
        let w = self.width;
        let (x, y) = self.values[2 * w * m..2 * w * (m + 1)].split_at(w);
        let [x0, y0] = self.first[m];
        for (j, wy) in y.iter().enumerate() {
            let row = (y0 + j) % self.grid * self.grid;
            for (i, wx) in x.iter().enumerate() {
                add(row + (x0 + i) % self.grid, wx * wy);
            }
        }
    }
}

/// Returns the samples of each thread.
fn parts(samples: usize, threads: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    (0..threads).map(move |t| samples * t / threads..samples * (t + 1) / threads)
}

fn add_atomically(cell: &AtomicU32, value: f32) {
    let mut old = cell.load(Relaxed);
    while let Err(now) = cell.compare_exchange_weak(old, (f32::from_bits(old) + value).to_bits(), Relaxed, Relaxed) {
        old = now;
    }
}

fn atomic_scatter(taps: &Taps, data: &[Complex<f32>], threads: usize, grid: &mut [Complex<f32>]) {
    let cells: Vec<[AtomicU32; 2]> = grid.iter().map(|_| [AtomicU32::new(0), AtomicU32::new(0)]).collect();
    std::thread::scope(|scope| {
        for part in parts(data.len(), threads) {
            let cells = &cells;
            scope.spawn(move || {
                for m in part {
                    taps.each(m, |cell, weight| {
                        add_atomically(&cells[cell][0], weight * data[m].re);
                        add_atomically(&cells[cell][1], weight * data[m].im);
                    });
                }
            });
        }
    });
    for (to, from) in grid.iter_mut().zip(&cells) {
        *to = Complex::new(f32::from_bits(from[0].load(Relaxed)), f32::from_bits(from[1].load(Relaxed)));
    }
}

fn private_scatter(taps: &Taps, data: &[Complex<f32>], threads: usize, grid: &mut [Complex<f32>]) {
    let cells = grid.len();
    let one = |part: std::ops::Range<usize>| {
        let mut own = vec![Complex::new(0.0_f32, 0.0); cells];
        part.for_each(|m| taps.each(m, |cell, weight| own[cell] += data[m] * weight));
        own
    };
    let grids: Vec<Vec<Complex<f32>>> = std::thread::scope(|scope| {
        let started: Vec<_> = parts(data.len(), threads).map(|part| scope.spawn(move || one(part))).collect();
        started.into_iter().map(|thread| thread.join().expect("a thread of the scatter")).collect()
    });
    grid.fill(Complex::default());
    for own in &grids {
        grid.iter_mut().zip(own).for_each(|(to, from)| *to += from);
    }
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let runs: usize = match arguments.next() {
        None => 50,
        Some(text) => text.parse().ok().filter(|&runs| runs > 1).ok_or_else(|| {
            Error::new(ErrorKind::InvalidArgument, format!("'{text}' is no number of runs: say 2 or more"))
        })?,
    };
    let device = match arguments.next().as_deref() {
        None | Some("cpu") => Device::Cpu,
        Some("cuda") => Device::Cuda(vec![0]),
        Some(text) => {
            return Err(Error::new(ErrorKind::InvalidArgument, format!("'{text}' is no device: say cpu or cuda")))
        }
    };
    let trajectory = Trajectory::propeller_scan(17, 24, 960, 256)?;
    let k: Vec<Vec<f32>> = (0..2).map(|axis| trajectory.axis_as(axis)).collect();
    let exact_k: Vec<Vec<f64>> = k.iter().map(|k| k.iter().map(|&k| k as f64).collect()).collect();
    let mut random = uniform(1);
    let mut number = || random() as f32 - 0.5;
    let data: Vec<Complex<f32>> = (0..k[0].len()).map(|_| Complex::new(number(), number())).collect();

    // Without given weights, gridding would compute weights.
    let ones = vec![1.0_f32; k[0].len()];
    let plan_of = |threads: usize| {
        let options = Options {
            device: device.clone(),
            tolerance: TOLERANCE,
            window: Window::KaiserBessel,
            threads,
            ..Options::default()
        };
        Plan::new(&Geometry::new(&[N, N], &[&k[0], &k[1]]).weights(&ones), &options)
    };
    let info = plan_of(1)?.info();
    let grid = info.grid[0];
    let shape = Shape::best(Window::KaiserBessel, info.width, grid as f64 / N as f64);
    let taps = Taps::new(&[&exact_k[0], &exact_k[1]], grid, &shape);
    let mut reference = vec![Complex::new(0.0_f64, 0.0); grid * grid];
    for (m, z) in data.iter().enumerate() {
        taps.each(m, |cell, w| reference[cell] += Complex::new(z.re as f64, z.im as f64) * w as f64);
    }

    println!("{} samples to a grid of {grid} x {grid} cells, {} cells wide, {runs} runs", data.len(), info.width);
    println!(
        "{:<32} {:>7} {:>9} {:>9} {:>12} {:>22}",
        "", "threads", "ms", "error", "other bits", "largest difference"
    );
    let processors = std::thread::available_parallelism().map_or(1, |n| n.get());
    let mut counts = vec![1, 2, processors];
    counts.dedup();
    counts.sort_unstable();
    counts.dedup();
    // All thread counts of a method are compared with its first run.
    for name in ["gather (this library)", "atomic scatter", "private scatter"] {
        let mut first: Option<Vec<Complex<f32>>> = None;
        for &threads in &counts {
            let plan = plan_of(threads)?;
            let (mut times, mut others, mut largest) = (Vec::new(), 0, 0.0_f32);
            let mut out = vec![Complex::new(f32::NAN, f32::NAN); grid * grid];
            for _ in 0..runs {
                let started = Instant::now();
                match name {
                    "atomic scatter" => atomic_scatter(&taps, &data, threads, &mut out),
                    "private scatter" => private_scatter(&taps, &data, threads, &mut out),
                    _ => plan.grid_kspace(&data, &mut out)?,
                }
                times.push(1e3 * started.elapsed().as_secs_f64());
                let first = first.get_or_insert_with(|| out.clone());
                others += usize::from(*first != out);
                let difference = |(a, b): (&Complex<f32>, &Complex<f32>)| (a - b).norm();
                largest = first.iter().zip(&out).map(difference).fold(largest, f32::max);
            }
            times.sort_by(f64::total_cmp);
            let error = error(&out, &reference);
            let most = reference.iter().map(|z| z.norm()).fold(0.0, f64::max);
            println!(
                "{name:<32} {threads:>7} {:>9.2} {error:>9.1e} {:>12} {:>22.1e}",
                times[runs / 2],
                format!("{others} of {runs}"),
                largest as f64 / most
            );
        }
    }
    Ok(())
}

/// Returns the relative l2 error at the best scale, because gridding scales its weights.
fn error(out: &[Complex<f32>], reference: &[Complex<f64>]) -> f64 {
    let wide = |z: &Complex<f32>| Complex::new(z.re as f64, z.im as f64);
    let pairs = || out.iter().map(wide).zip(reference);
    let scale =
        pairs().map(|(a, b)| a.conj() * b).sum::<Complex<f64>>() / pairs().map(|(a, _)| a.norm_sqr()).sum::<f64>();
    let (error, norm) = pairs().fold((0.0, 0.0), |s, (a, b)| (s.0 + (a * scale - b).norm_sqr(), s.1 + b.norm_sqr()));
    (error / norm).sqrt()
}
