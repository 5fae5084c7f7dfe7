//! Selected windows and grids for some tolerances, and the time of the selection, the taps and the correction.
//!
//! Run with `cargo run --release --example choices [window]`, where the window is minimax, kaiser-bessel or gaussian.
//!
//! The last columns are, on one thread:
//! - the cells that a sample is spread to on a grid of the image's size: width times oversampling, to the power of the
//!   dimensions
//! - the milliseconds of an adjoint in the cost model of the CPU
//! - the median microseconds of selection, taps and correction

use recon::backend::cpu::cost;
use recon::nufft::gridding_params::{choose, WindowRequest};
use recon::{Result, Window};
use std::time::Instant;

const RUNS: usize = 101;

fn main() -> Result<()> {
    let window = match std::env::args().nth(1).as_deref() {
        None | Some("minimax") => Window::Minimax,
        Some("kaiser-bessel") => Window::KaiserBessel,
        Some("gaussian") => Window::Gaussian,
        Some(other) => panic!("there is no window {other}: use minimax, kaiser-bessel or gaussian"),
    };
    println!(
        "{} window\n  image  tolerance   W degree grid    error   cells   model  choice    taps  correction",
        window.name()
    );
    for (dims, samples) in [(vec![128; 3], 284_160), (vec![256; 2], 258_048)] {
        for tolerance in [1e-2, 1e-3, 1e-4, 1e-5] {
            let price = |grid: &[usize], width: usize| cost::transform(grid, &dims, samples, width, 4);
            let mut times = [const { Vec::new() }; 3];
            let mut of_last = None;
            for _ in 0..RUNS {
                let started = Instant::now();
                let choice = choose(WindowRequest::new(window, tolerance), &dims, f32::EPSILON as f64, price)?;
                times[0].push(started.elapsed());
                let started = Instant::now();
                let taps = choice.taps(&dims);
                times[1].push(started.elapsed());
                let started = Instant::now();
                std::hint::black_box(choice.correction(&dims)?);
                times[2].push(started.elapsed());
                of_last = Some((choice, taps.len() - 1));
            }
            let (choice, degree) = of_last.expect("at least one run");
            let [chosen, taps, correction] = times.map(|mut times| {
                times.sort();
                1e6 * times[RUNS / 2].as_secs_f64()
            });
            let (width, grid) = (choice.shape.width(), choice.grid[0]);
            let cells = (width as f64 * grid as f64 / dims[0] as f64).powi(dims.len() as i32);
            println!(
                "{:>5}^{}  {tolerance:>9.0e} {width:>3} {degree:>6} {grid:>4} {:>8.1e} {cells:>7.0} {:>7.2} \
                 {chosen:>7.1} {taps:>7.1} {correction:>11.1}",
                dims[0],
                dims.len(),
                choice.error,
                1e-6 * price(&choice.grid, width)
            );
        }
    }
    Ok(())
}
