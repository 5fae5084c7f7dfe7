//! The possible gain from samples in pairs k and -k, and voxels in pairs r and -r. Some implementations of exact sums
//! use these pairs. This library does not, for the reasons below.
//!
//! cargo run --release --example symmetric -- [matrix, default 33] [threads, default 1]
//!
//! With s = exp(i 2 pi k.r), two samples d at k and e at -k add d s + e conj(s) to a voxel. That is
//! (d + e) cos + i (d - e) sin: one sine and cosine for both, and half of the multiplications. The voxels r and -r
//! share theirs in the same way.
//!
//! The errors of pairs are measured on sums of the library. The sum over pairs is A d + conj(A conj(e)), where A sums
//! over one sample of each pair, so both terms have the same sines and cosines. Of two voxels, one is A d, the other
//! conj(A conj(d)). Errors are relative l2 errors of single precision against exact sums in double precision.
//!
//! A sum over pairs cannot take less time than a sum over half of the samples, or voxels. This limit is measured. The
//! NUFFT cannot reach it: the windows of k and -k have the same values, which could be shared, but they touch different
//! cells.

use recon::metrics::{compare, Scale};
use recon::phantom::Phantom;
use recon::{Complex, Device, Error, ErrorKind, Geometry, Method, Options, Plan, Real, Result, Trajectory};
use std::time::Instant;

/// Number of timed transforms, of which the fastest counts.
const RUNS: usize = 5;

fn main() -> Result<()> {
    let mut numbers = std::env::args().skip(1).map(|text| {
        let wrong = || Error::new(ErrorKind::InvalidArgument, format!("'{text}' is no number of voxels or threads"));
        text.parse::<usize>().ok().filter(|&n| n > 0).ok_or_else(wrong)
    });
    let n = numbers.next().transpose()?.unwrap_or(33);
    if n % 2 == 0 {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("a matrix of {n}: it must be odd for voxels in pairs"),
        ));
    }
    let threads = numbers.next().transpose()?.unwrap_or(1);
    let options = Options { device: Device::Cpu, threads, ..Options::default() };
    let dims = [n; 3];

    // One half of each spoke of a kooshball, without the centre, followed by the mirrored other half.
    let readout = 2 * n;
    let trajectory = Trajectory::radial3d(n * n / 2, readout)?;
    let kept: Vec<usize> = (0..trajectory.samples()).filter(|m| m % readout > n).collect();
    let half: Vec<Vec<f32>> = trajectory.axes().iter().map(|k| kept.iter().map(|&m| k[m] as f32).collect()).collect();
    let pairs = kept.len();
    let all: Vec<Vec<f32>> = half.iter().map(|k| k.iter().copied().chain(k.iter().map(|k| -k)).collect()).collect();
    let wide = |k: &[Vec<f32>]| -> Vec<Vec<f64>> { k.iter().map(|k| k.iter().map(|&k| k.into()).collect()).collect() };
    let k = wide(&all);
    let axes: Vec<&[f64]> = k.iter().map(|k| &k[..]).collect();
    // Weighted by density, as in reconstructions, and by a phase, so that the two samples of a pair differ.
    let data: Vec<Complex<f64>> = Phantom::shepp_logan_3d().kspace(&dims, &axes, None, 0)?;
    let weighted = |(m, z): (usize, &Complex<f64>)| {
        let radius: f64 = axes.iter().map(|k| k[m] * k[m]).sum();
        z * Complex::from_polar(radius, 0.7 * axes[0][m] * n as f64 + 0.3)
    };
    let data: Vec<Complex<f32>> = data.iter().enumerate().map(weighted).map(narrow).collect();
    let (d, e) = data.split_at(pairs);
    println!("{} samples in pairs k and -k, to {n}^3 voxels, on {threads} threads\n", 2 * pairs);

    let voxels: Vec<Vec<f32>> =
        (0..3).map(|axis| (0..n.pow(3)).map(|i| (i / n.pow(axis) % n) as f32 - (n / 2) as f32).collect()).collect();
    // The last voxels mirror the first ones, and the centre is alone.
    let first: Vec<Vec<f32>> = voxels.iter().map(|r| r[..n.pow(3) / 2 + 1].to_vec()).collect();
    let exact = {
        let (r, d) = (wide(&voxels), data.iter().map(|z| Complex::new(z.re.into(), z.im.into())).collect::<Vec<_>>());
        sum(&k, &d, &dims, Some(&r), &options)?.0
    };
    let error = |image: &[Complex<f32>]| -> Result<f64> {
        let image: Vec<Complex<f64>> = image.iter().map(|z| Complex::new(z.re.into(), z.im.into())).collect();
        Ok(compare(&image, &exact, Scale::None, None)?.percent_error / 100.0)
    };

    println!("{:<34} {:>9} {:>9} {:>10} {:>12}", "", "error", "in pairs", "ms", "limit ms");
    let row = |name: &str, error: f64, in_pairs: f64, seconds: f64, limit: f64| {
        let (now, limit) = (1e3 * seconds, 1e3 * limit);
        println!("{name:<34} {error:>9.2e} {in_pairs:>9.2e} {now:>10.2} {limit:>12.2}");
    };
    let mut ratios = Vec::new();
    for (name, list, tolerance) in [
        ("exact sums, list of voxels", true, 0.0),
        ("NUFFT, tolerance 1e-6", false, 1e-6),
        ("NUFFT, tolerance 1e-4", false, 1e-4),
    ] {
        let options = Options { tolerance, ..options.clone() };
        let list = list.then_some(&voxels);
        let (image, seconds) = sum(&all, &data, &dims, list.map(|r| &r[..]), &options)?;
        let (plain, limit) = sum(&half, d, &dims, list.map(|r| &r[..]), &options)?;
        let (mirrored, _) = sum(&half, &conjugate(e), &dims, list.map(|r| &r[..]), &options)?;
        let paired: Vec<_> = plain.iter().zip(&mirrored).map(|(a, b)| a + b.conj()).collect();
        let (before, after) = (error(&image)?, error(&paired)?);
        ratios.push(after / before);
        row(name, before, after, seconds, limit);
        if list.is_some() {
            let (one, seconds_of_half) = sum(&all, &data, &dims, Some(&first), &options)?;
            let (other, _) = sum(&all, &conjugate(&data), &dims, Some(&first), &options)?;
            let both: Vec<_> = one.iter().copied().chain(other.iter().rev().skip(1).map(|z| z.conj())).collect();
            let after = error(&both)?;
            ratios.push(after / before);
            row("  voxels in pairs", before, after, seconds, seconds_of_half);
            let (_, least) = sum(&half, d, &dims, Some(&first), &options)?;
            println!("{:<34} {:>30} {:>12.2}", "  samples and voxels in pairs", "", 1e3 * least);
        }
    }
    let (least, most) = ratios.iter().fold((f64::MAX, 0f64), |(a, b), &r| (a.min(r), b.max(r)));
    println!("\nPairs change the error by factors of {least:.2} to {most:.2}.");
    if !(least > 0.5 && most < 1.5) {
        return Err(Error::new(ErrorKind::InvalidArgument, "this is not what docs/method.md says: please report it"));
    }
    Ok(())
}

/// Returns the adjoint of these samples, and the seconds of the fastest of some runs.
fn sum<T: Real>(
    k: &[Vec<T>],
    data: &[Complex<T>],
    dims: &[usize],
    voxels: Option<&[Vec<T>]>,
    options: &Options,
) -> Result<(Vec<Complex<T>>, f64)> {
    let k: Vec<&[T]> = k.iter().map(|k| &k[..]).collect();
    let mut geometry = Geometry::new(dims, &k);
    geometry.voxels = voxels.map(|r| r.iter().map(|r| &r[..]).collect());
    let method = if voxels.is_some() { Method::Exact } else { Method::Nufft };
    let plan = Plan::new(&geometry, &Options { method, ..options.clone() })?;
    let mut image = vec![Complex::new(T::ZERO, T::ZERO); plan.image_len()];
    let mut seconds = f64::MAX;
    for _ in 0..RUNS {
        let started = Instant::now();
        plan.adjoint(data, &mut image)?;
        seconds = seconds.min(started.elapsed().as_secs_f64());
    }
    Ok((image, seconds))
}

fn conjugate(values: &[Complex<f32>]) -> Vec<Complex<f32>> {
    values.iter().map(|z| z.conj()).collect()
}

fn narrow(z: Complex<f64>) -> Complex<f32> {
    Complex::new(z.re as f32, z.im as f32)
}
