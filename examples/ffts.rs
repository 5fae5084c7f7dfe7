//! Transforms of lines by this library and by rustfft, on one thread and in cache: `cargo run --release --example
//! ffts`.
//!
//! This library transforms one line per lane of a vector; rustfft transforms one line after the other. Both work in
//! double precision and in place. Times are medians, in nanoseconds per line. If the last column is below 1, this
//! library is faster. Grids have lengths that are products of 2, 3, 5 and 7; other lengths occur only for images of
//! arbitrary size.

use recon::backend::cpu::fft::any_length::LineFft;
use recon::backend::cpu::simd::Level;
use recon::{Complex, Result, Simd};
use rustfft::FftPlanner;
use std::time::Instant;

const RUNS: usize = 31;

fn main() -> Result<()> {
    let level = Level::choose(Simd::Auto)?;
    println!("double precision, {}, medians of {RUNS}", level.name());
    println!("{:>6} {:>12} {:>12} {:>12}", "points", "ours, ns", "rustfft, ns", "ours / its");
    for n in [64, 80, 128, 160, 192, 256, 320, 360, 400, 512, 640, 768, 1024, 127, 251, 509] {
        let mut ours = LineFft::new(level, n)?;
        let lines = ours.most_lines();
        let reference = FftPlanner::<f64>::new().plan_fft_forward(n);
        let data: Vec<Complex<f64>> = (0..n * lines).map(|i| Complex::new((i as f64 * 0.7).sin(), 0.5)).collect();
        let mut scratch = vec![Complex::default(); reference.get_inplace_scratch_len()];
        let (mut a, mut b) = (data.clone(), data.clone());
        // Alternating, so that other load on the machine affects both.
        let (mut own, mut its) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            own.push(per_line(lines, &mut a, &data, |a| ours.run(false, a)));
            its.push(per_line(lines, &mut b, &data, |b| reference.process_with_scratch(b, &mut scratch)));
        }
        let [own, its] = [own, its].map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        });
        println!("{n:>6} {own:>12.1} {its:>12.1} {:>12.2}", own / its);
    }
    Ok(())
}

/// Returns nanoseconds per line, over enough repetitions for a measurement.
fn per_line(
    lines: usize,
    to: &mut [Complex<f64>],
    from: &[Complex<f64>],
    mut transform: impl FnMut(&mut [Complex<f64>]),
) -> f64 {
    const TIMES: usize = 200;
    let mut taken = 0.0;
    for _ in 0..TIMES {
        // Each transform starts from the same data: repeated transforms of one array would overflow.
        to.copy_from_slice(from);
        let started = Instant::now();
        transform(to);
        taken += started.elapsed().as_secs_f64();
    }
    1e9 * taken / (TIMES * lines) as f64
}
