//! PROPELLER blades of an object that moves between them, against the exact k-space of a phantom that is moved.

mod common;

use common::{narrow, Random};
use recon::metrics::{compare, Scale};
use recon::phantom::{add_noise, CoilModel, Ellipsoid, Phantom};
use recon::{BladeMotion, BladePhase, Complex, Corrected, Device, Geometry, Options, Plan, PropellerOptions, Trajectory};
use std::f64::consts::TAU;

fn options() -> Options {
    Options { device: Device::Cpu, tolerance: 1e-4, ..Options::default() }
}

/// A head that is like none of its mirror images.
fn head() -> Phantom {
    let mut shapes = Phantom::shepp_logan_2d().shapes().to_vec();
    shapes.push(Ellipsoid {
        density: 0.3,
        centre: [0.3, -0.25, 0.0],
        semi_axes: [0.2, 0.08, 1.0],
        angles: [0.6, 0.0, 0.0],
    });
    Phantom::new(2, shapes).unwrap()
}

/// Blades of a phantom, each of which sees it moved.
struct Blades {
    n: usize,
    trajectory: Trajectory,
    blades: usize,
    /// Radians, and voxels.
    motion: Vec<(f64, [f64; 2])>,
}

impl Blades {
    fn new(n: usize, [blades, lines, readout]: [usize; 3], motion: Vec<(f64, [f64; 2])>) -> Self {
        Blades { n, trajectory: Trajectory::propeller(blades, lines, readout).unwrap(), blades, motion }
    }

    fn at_rest(&self) -> Self {
        Blades { motion: vec![(0.0, [0.0; 2]); self.blades], trajectory: self.trajectory.clone(), ..*self }
    }

    fn part(&self, b: usize) -> std::ops::Range<usize> {
        let of_blade = self.trajectory.samples() / self.blades;
        b * of_blade..(b + 1) * of_blade
    }

    /// [samples, coils].
    fn data(&self, phantom: &Phantom, coils: Option<&CoilModel>) -> Vec<Complex<f64>> {
        let count = coils.map_or(1, |c| c.coils());
        let samples = self.trajectory.samples();
        let mut data = vec![Complex::default(); samples * count];
        for (b, &(angle, voxels)) in self.motion.iter().enumerate() {
            let part = self.part(b);
            let axes: Vec<&[f64]> = self.trajectory.axes().iter().map(|k| &k[part.clone()]).collect();
            let moved = phantom.moved(self.n, angle, voxels).unwrap();
            let blade = moved.kspace(&[self.n, self.n], &axes, coils, 2).unwrap();
            for (c, values) in blade.chunks_exact(part.len()).enumerate() {
                data[c * samples..][part.clone()].copy_from_slice(values);
            }
        }
        data
    }

    fn k(&self) -> Vec<Vec<f32>> {
        (0..2).map(|axis| self.trajectory.axis_as(axis)).collect()
    }

    fn corrected(&self, data: &[Complex<f64>], propeller: &PropellerOptions) -> Corrected<f32> {
        let k = self.k();
        let k = [&k[0][..], &k[1][..]];
        let coils = data.len() / self.trajectory.samples();
        let geometry = Geometry::new(&[self.n, self.n], &k).coils(coils);
        Corrected::new(&geometry, &options(), propeller, &narrow::<f32>(data)).unwrap()
    }

    /// The largest error of rotations in degrees, and of translations in voxels, but for a motion that all have.
    fn errors(&self, found: &[BladeMotion]) -> [f64; 2] {
        let count = found.len() as f64;
        let mean = self.motion.iter().zip(found).map(|(t, f)| t.0.to_degrees() - f.rotation).sum::<f64>() / count;
        // What is missing, seen from the object.
        let rest = |(t, f): (&(f64, [f64; 2]), &BladeMotion)| {
            let (sin, cos) = f.rotation.to_radians().sin_cos();
            let [x, y] = [t.1[0] - f.translation[0], t.1[1] - f.translation[1]];
            [cos * x + sin * y, cos * y - sin * x]
        };
        let rests: Vec<[f64; 2]> = self.motion.iter().zip(found).map(rest).collect();
        let all = rests.iter().fold([0.0; 2], |sum, r| [sum[0] + r[0] / count, sum[1] + r[1] / count]);
        let turns = self.motion.iter().zip(found).map(|(t, f)| (t.0.to_degrees() - f.rotation - mean).abs());
        let moves = rests.iter().map(|r| (r[0] - all[0]).hypot(r[1] - all[1]));
        [turns.fold(0.0, f64::max), moves.fold(0.0, f64::max)]
    }
}

fn random_motion(random: &mut Random, blades: usize, degrees: f64, voxels: f64) -> Vec<(f64, [f64; 2])> {
    let mut uniform = |most: f64| 2.0 * most * random.uniform();
    (0..blades).map(|_| (uniform(degrees).to_radians(), [uniform(voxels), uniform(voxels)])).collect()
}

#[test]
fn motion_of_the_papers_blades_is_found() {
    let mut random = Random::fresh();
    for (n, snr) in [(512, None), (512, Some(5.0)), (256, None), (256, Some(5.0))] {
        let scan = Blades::new(n, [17, 24, 960], random_motion(&mut random, 17, 10.0, 5.0));
        let mut data = scan.data(&head(), None);
        if let Some(snr) = snr {
            add_noise(&mut data, snr, random.seed).unwrap();
        }
        let started = std::time::Instant::now();
        let corrected = scan.corrected(&data, &PropellerOptions::default());
        let errors = scan.errors(&corrected.motion);
        println!("{n} {snr:?}: {errors:?} {:?}", started.elapsed());
        assert!(errors[0] < 0.3 && errors[1] < 0.2, "seed {}, {n}, {snr:?}: {errors:?}", random.seed);
    }
}
