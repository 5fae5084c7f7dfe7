//! Compares methods of density compensation: the percent error of the gridded phantom, and of the point spread
//! function, for each method on many trajectories.
//!
//! cargo run --release --example densities
//!
//! Images have 128 x 128 voxels, or 32 x 32 x 32. Both errors are measured against a reference of the same resolution,
//! at the object's own scale (see measure.rs). With the best weights only the errors of the sampling itself remain:
//! aliasing, where the sampling is too sparse.

mod measure;

use measure::{half_spokes, stacked, Case, Support};
use recon::trajectory::SpokeOrder::{GoldenAngle, Linear};
use recon::{Density, Result, Trajectory};
use std::f64::consts::PI;

fn main() -> Result<()> {
    println!("{:<34} {:>8}  {:>24}  {:>24}", "", "", "error of the image", "error of the PSF");
    let names = ["ramp", "jackson", "p.-menon"].map(|name| format!("{name:>8}")).concat();
    println!("{:<34} {:>8}  {names}  {names}", "percent", "samples");
    for case in cases()? {
        let (mut images, mut spreads) = (String::new(), String::new());
        for method in [Density::Ramp, Density::Jackson, Density::default()] {
            match case.weights(method) {
                Ok(w) => {
                    images += &format!("{:8.2}", case.image_error(&w)?);
                    spreads += &format!("{:8.2}", case.psf_error(&w)?);
                }
                Err(_) => {
                    images += "       -";
                    spreads += "       -";
                }
            }
        }
        println!("{:<34} {:>8}  {images}  {spreads}", case.name, case.k[0].len());
    }
    println!("-: refused");
    Ok(())
}

fn cases() -> Result<Vec<Case>> {
    use Support::{Box, Cylinder, Disc};
    const N: usize = 128;
    const N3: usize = 32;
    let nyquist = |n: usize| (0.5 * PI * n as f64).ceil() as usize;
    let spiral = |interleaves, longer: f64, density| {
        let turns = longer * N as f64 / 32.0;
        Trajectory::spiral(interleaves, (PI * N as f64 * turns) as usize, turns, density)
    };
    let ball = |share: f64| Trajectory::radial3d((share * 0.5 * PI * (N3 * N3) as f64) as usize, 2 * N3);
    let star = Trajectory::radial2d(nyquist(N3), 2 * N3, Linear)?;
    let kz: Vec<f64> = (0..N3).map(|q| q as f64 / N3 as f64 - 0.5).collect();
    let cartesian = Trajectory::cartesian(&[N, N])?;
    let mut partial = Case::new("Cartesian, 6/10 of the lines", &cartesian, N, Box);
    let kept: Vec<bool> = partial.k[1].iter().map(|&ky| ky > -0.1).collect();
    for k in &mut partial.k {
        let mut kept = kept.iter();
        k.retain(|_| *kept.next().expect("one a sample"));
    }
    let mut random = uniform(1);
    let points = (0..2).map(|_| (0..4 * N * N).map(|_| random() - 0.5).collect()).collect();
    let mut denser = vec![Vec::new(); 2];
    for _ in 0..4 * N * N {
        let (radius, (sin, cos)) = (0.5 * random().powf(0.8), (2.0 * PI * random()).sin_cos());
        denser[0].push(radius * cos);
        denser[1].push(radius * sin);
    }
    let late = late(&Trajectory::radial2d(nyquist(N), 2 * N, Linear)?, [0.3, 0.5]);

    let disc = |name, t: Result<Trajectory>| Ok::<_, recon::Error>(Case::new(name, &t?, N, Disc));
    let cylinder = |name, t: &Trajectory| Case::new(name, t, N3, Cylinder);
    Ok(vec![
        disc("radial, Nyquist", Trajectory::radial2d(nyquist(N), 2 * N, Linear))?,
        disc("radial, Nyquist, golden angle", Trajectory::radial2d(nyquist(N), 2 * N, GoldenAngle))?,
        disc("radial, half of Nyquist", Trajectory::radial2d(nyquist(N) / 2, 2 * N, Linear))?,
        disc("radial, quarter of Nyquist", Trajectory::radial2d(nyquist(N) / 4, 2 * N, Linear))?,
        disc("radial, quarter, golden angle", Trajectory::radial2d(nyquist(N) / 4, 2 * N, GoldenAngle))?,
        disc("radial, no readout oversampling", Trajectory::radial2d(nyquist(N), N, Linear))?,
        Case { name: "radial, gradients 0.3, 0.5 late", k: late, n: N, support: Disc },
        half_spokes(2 * nyquist(N), N, N),
        disc("spiral", spiral(16, 1.0, 1.0))?,
        disc("spiral, twice Nyquist", spiral(16, 2.0, 1.0))?,
        disc("spiral, density 1.5", spiral(16, 2.0, 1.5))?,
        disc("spiral, density 2", spiral(16, 2.0, 2.0))?,
        disc("rosette", Trajectory::rosette(N / 2, (4.0 * PI * N as f64) as usize, 5.0, 3.0))?,
        disc("rosette, denser", Trajectory::rosette(N, (4.0 * PI * N as f64) as usize, 5.0, 3.0))?,
        disc("rosette of one lobe", Trajectory::rosette(N, 1000, 1.0, 0.7))?,
        disc("PROPELLER, 16 lines", Trajectory::propeller(nyquist(N).div_ceil(16), 16, N))?,
        disc("PROPELLER, 12 lines", Trajectory::propeller(17, 12, N))?,
        disc("PROPELLER, 8 wide blades", Trajectory::propeller(8, 40, N))?,
        Case::new("Cartesian", &cartesian, N, Box),
        partial,
        Case { name: "random, uniform", k: points, n: N, support: Box },
        Case { name: "random, denser centre", k: denser, n: N, support: Disc },
        Case::new("kooshball, Nyquist", &ball(1.0)?, N3, Disc),
        Case::new("kooshball, quarter of Nyquist", &ball(0.25)?, N3, Disc),
        cylinder("stack of stars", &stacked(&star, &kz, 0.0)),
        cylinder("stack of stars, turned", &stacked(&star, &kz, 1.0)),
        cylinder("stack of stars, 6/10 in kz", &stacked(&star, &kz[12..], 0.0)),
        cylinder("stack of spirals", &stacked(&Trajectory::spiral(8, 700, 2.0, 1.0)?, &kz, 0.0)),
    ])
}

/// Returns the coordinates of spokes whose gradients along x and y are delayed by a fraction of a sample.
fn late(spokes: &Trajectory, samples: [f64; 2]) -> Vec<Vec<f64>> {
    let per_shot = spokes.samples_per_shot();
    let axis = |axis: usize| {
        let moved = |shot: &[f64]| {
            let by = samples[axis] * (shot[1] - shot[0]);
            shot.iter().map(move |k| (k - by).clamp(-0.5, 0.4999999)).collect::<Vec<_>>()
        };
        spokes.axis(axis).chunks_exact(per_shot).flat_map(moved).collect()
    };
    vec![axis(0), axis(1)]
}

/// Returns uniform random numbers from 0 to 1 (splitmix64).
fn uniform(mut state: u64) -> impl FnMut() -> f64 {
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}
