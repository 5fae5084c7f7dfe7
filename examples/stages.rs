//! The time of each stage of a transform on the CPU, and the time that the cost model `backend::cpu::cost` predicts.
//!
//! Run with `cargo run --release --example stages [threads [case]]`. For each case and several tolerances, all
//! oversampling factors are tried with the narrowest window that meets the tolerance. A star marks the selection of the
//! model. The constants of `cost::transform` were taken from this table: measure again before you change them.

use recon::backend::cpu::{cost, Cpu};
use recon::backend::Backend;
use recon::nufft::gridding_params::{choices, GriddingParams};
use recon::trajectory::SpokeOrder;
use recon::{Complex, Result, Simd, Trajectory, Window};
use std::time::Instant;

const RUNS: usize = 15;

fn main() -> Result<()> {
    let threads = std::env::args().nth(1).map_or(1, |n| n.parse().expect("a number of threads"));
    let cases = [
        ("stone", vec![128; 3], Trajectory::radial3d(555, 512)?),
        ("radial2d", vec![256; 2], Trajectory::radial2d(504, 512, SpokeOrder::Linear)?),
        ("dense 2D", vec![256; 2], Trajectory::radial2d(4032, 512, SpokeOrder::Linear)?),
        ("propeller", vec![512; 2], Trajectory::propeller_scan(17, 24, 960, 256)?),
    ];
    let only = std::env::args().nth(2);
    println!("milliseconds, medians of {RUNS}, {threads} thread(s), f32; plan is sorting and tables");
    for (name, dims, trajectory) in cases {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let k: Vec<Vec<f32>> = (0..dims.len()).map(|axis| trajectory.axis_as(axis)).collect();
        let k: Vec<&[f32]> = k.iter().map(|k| &k[..]).collect();
        for tolerance in [1e-3, 1e-4, 1e-5] {
            println!(
                "\n{name}, tolerance {tolerance:.0e}\n  W  grid   plan  spread   down     up  interp  adjoint   \
                 model  of it"
            );
            let all = choices(Window::default(), &dims, tolerance, f32::EPSILON as f64);
            let model = |c: &GriddingParams| cost::transform(&c.grid, &dims, k[0].len(), c.shape.width(), 4) * 1e-6;
            let cheapest = all.iter().map(model).fold(f64::INFINITY, f64::min);
            for choice in &all {
                let [plan, spread, down, up, interpolate] = stages(threads, &k, &dims, choice)?;
                let (adjoint, model) = (spread + down, model(choice));
                println!(
                    "{}{:>2} {:>5} {plan:>6.1} {spread:>7.2} {down:>6.2} {up:>6.2} {interpolate:>7.2} {adjoint:>8.2} \
                     {model:>7.2} {:>6.2}",
                    if model == cheapest { '*' } else { ' ' },
                    choice.shape.width(),
                    choice.grid[0],
                    adjoint / model
                );
            }
        }
    }
    Ok(())
}

/// Returns the median milliseconds of planning, spreading, grid to image, image to grid, and interpolating.
fn stages(threads: usize, k: &[&[f32]], dims: &[usize], choice: &GriddingParams) -> Result<[f64; 5]> {
    let cpu = Cpu::new(threads, Simd::Auto)?;
    let b: &dyn Fn(Instant) -> f64 = &|started| 1e3 * started.elapsed().as_secs_f64();
    let correction = choice.correction(dims)?;
    let started = Instant::now();
    let gridder = Backend::<f32>::gridder(&cpu, k, &choice.grid, &choice.taps(dims), 1, None, || Ok(()))?;
    let fft = Backend::<f32>::grid_fft(&cpu, dims, &choice.grid, &correction)?;
    let plan = b(started);
    let data = vec![Complex::new(1.0, 0.5); k[0].len()];
    let mut samples = Backend::<f32>::upload(&cpu, &data, "samples")?;
    let mut grid = Backend::<f32>::zeros::<Complex<f32>>(&cpu, choice.grid.iter().product(), "the grid")?;
    let mut image = Backend::<f32>::zeros::<Complex<f32>>(&cpu, dims.iter().product(), "the image")?;
    let mut times = [const { Vec::new() }; 4];
    for _ in 0..RUNS {
        let started = Instant::now();
        cpu.spread(&gridder, Backend::<f32>::view(&cpu, &samples), Backend::<f32>::view_mut(&cpu, &mut grid));
        times[0].push(b(started));
        let started = Instant::now();
        cpu.grid_to_image(&fft, Backend::<f32>::view_mut(&cpu, &mut grid), Backend::<f32>::view_mut(&cpu, &mut image));
        times[1].push(b(started));
        let started = Instant::now();
        cpu.image_to_grid(&fft, Backend::<f32>::view(&cpu, &image), Backend::<f32>::view_mut(&cpu, &mut grid));
        times[2].push(b(started));
        let started = Instant::now();
        cpu.interpolate(&gridder, Backend::<f32>::view(&cpu, &grid), Backend::<f32>::view_mut(&cpu, &mut samples));
        times[3].push(b(started));
    }
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[RUNS / 2]
    };
    let [spread, down, up, interpolate] = times.map(median);
    Ok([plan, spread, down, up, interpolate])
}
