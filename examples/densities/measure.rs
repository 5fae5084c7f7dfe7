//! Quality of density compensation weights: the error of the phantom gridded with them, and of the point spread
//! function.

use recon::phantom::Phantom;
use recon::{Complex, Density, Geometry, Options, Plan, Result, Trajectory};

/// The part of k-space that a trajectory covers, up to |k| = 0.5. Outside it nothing can be compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Support {
    /// A disc or ball.
    Disc,
    /// The whole square or cube.
    Box,
    /// A disc along x and y, the whole range along z.
    Cylinder,
}

impl Support {
    /// Returns 1 inside, decreasing smoothly to 0 before the edge, because the area of a sample at the edge is a matter
    /// of convention.
    fn taper(self, k: &[f64]) -> f64 {
        let radius = |k: &[f64]| k.iter().map(|k| k * k).sum::<f64>().sqrt();
        let fall = |r: f64| match (r / 0.5 - 0.85) / 0.12 {
            t if t <= 0.0 => 1.0,
            t if t >= 1.0 => 0.0,
            t => 0.5 + 0.5 * (std::f64::consts::PI * t).cos(),
        };
        match self {
            Support::Disc => fall(radius(k)),
            Support::Box => k.iter().map(|k| fall(k.abs())).product(),
            Support::Cylinder => fall(radius(&k[..2])) * fall(k[2].abs()),
        }
    }
}

/// A trajectory for images of `n` voxels along each axis.
pub struct Case {
    pub name: &'static str,
    pub k: Vec<Vec<f64>>,
    pub n: usize,
    pub support: Support,
}

impl Case {
    pub fn new(name: &'static str, trajectory: &Trajectory, n: usize, support: Support) -> Self {
        Case { name, k: trajectory.axes().into_iter().map(<[f64]>::to_vec).collect(), n, support }
    }

    /// Returns the weights in single precision, as reconstructions use them.
    pub fn weights(&self, method: Density) -> Result<Vec<f32>> {
        self.with_plan(self.n, None, |plan| plan.density(method))
    }

    /// Returns the percent error of the phantom gridded with these weights, at its own scale. The reference is the
    /// phantom at the same resolution. The error is computed in the circle or ball that fits in the image.
    pub fn image_error(&self, weights: &[f32]) -> Result<f64> {
        let phantom = if self.k.len() == 2 { Phantom::shepp_logan_2d() } else { Phantom::shepp_logan_3d() };
        let dims = vec![self.n; self.k.len()];
        let data = |k: &[Vec<f64>]| -> Result<Vec<Complex<f64>>> {
            let axes: Vec<&[f64]> = k.iter().map(Vec::as_slice).collect();
            phantom.kspace(&dims, &axes, None, 0)
        };
        let image = self.with_plan(self.n, Some(weights), |plan| {
            let data = self.tapered(&self.k, |m, z| to_f32(z[m]), &data(&self.k)?);
            let mut image = vec![Complex::default(); self.n.pow(self.k.len() as u32)];
            plan.grid(&data, &mut image)?;
            Ok(image)
        })?;
        self.compare(&image, self.n, data)
    }

    /// Returns the percent error of the point spread function, up to a distance of the image's size. For points all
    /// over the image, it is the root of the energy that these weights produce in addition to the points themselves.
    pub fn psf_error(&self, weights: &[f32]) -> Result<f64> {
        let n = 2 * self.n;
        let image = self.with_plan(n, None, |plan| {
            let data = self.tapered(&self.k, |m, w| Complex::new(w[m], 0.0), weights);
            let mut image = vec![Complex::default(); n.pow(self.k.len() as u32)];
            plan.adjoint(&data, &mut image)?;
            Ok(image)
        })?;
        self.compare(&image, n, |k| Ok(vec![Complex::new(1.0, 0.0); k[0].len()]))
    }

    fn with_plan<R>(&self, n: usize, weights: Option<&[f32]>, work: impl FnOnce(&Plan<f32>) -> Result<R>) -> Result<R> {
        let k: Vec<Vec<f32>> = self.k.iter().map(|k| k.iter().map(|&k| (k as f32).min(0.49999997)).collect()).collect();
        let k: Vec<&[f32]> = k.iter().map(Vec::as_slice).collect();
        let dims = vec![n; k.len()];
        let geometry = Geometry::new(&dims, &k);
        let geometry = if let Some(w) = weights { geometry.weights(w) } else { geometry };
        work(&Plan::new(&geometry, &Options::default())?)
    }

    fn tapered<V>(&self, k: &[Vec<f64>], value: impl Fn(usize, &V) -> Complex<f32>, of: &V) -> Vec<Complex<f32>>
    where
        V: ?Sized,
    {
        let at = |m: usize| k.iter().map(|k| k[m]).collect::<Vec<_>>();
        (0..k[0].len()).map(|m| value(m, of) * self.support.taper(&at(m)) as f32).collect()
    }

    /// Returns the percent error of an image. The reference is the sum over a Cartesian grid in k-space that is twice
    /// as fine as the image needs.
    fn compare(
        &self,
        image: &[Complex<f32>],
        n: usize,
        data: impl Fn(&[Vec<f64>]) -> Result<Vec<Complex<f64>>>,
    ) -> Result<f64> {
        let d = self.k.len();
        let fine = Case::new("", &Trajectory::cartesian(&vec![2 * self.n; d])?, self.n, self.support);
        let volume = ((2 * self.n) as f64).powi(-(d as i32));
        let data = self.tapered(&fine.k, |m, z| to_f32(z[m] * volume), &data(&fine.k)?);
        let mut truth = vec![Complex::default(); image.len()];
        fine.with_plan(n, None, |plan| plan.adjoint(&data, &mut truth))?;
        let (mut off, mut all) = (0.0, 0.0);
        for (i, (x, t)) in image.iter().zip(&truth).enumerate() {
            let r = |axis: u32| (i / n.pow(axis) % n) as f64 - (n / 2) as f64;
            if (0..d as u32).map(|axis| r(axis).powi(2)).sum::<f64>().sqrt() <= 0.5 * n as f64 {
                off += (x - t).norm_sqr() as f64;
                all += t.norm_sqr() as f64;
            }
        }
        Ok(100.0 * (off / all).sqrt())
    }
}

fn to_f32(z: Complex<f64>) -> Complex<f32> {
    Complex::new(z.re as f32, z.im as f32)
}

/// Returns a 2D trajectory, repeated in partitions at these kz. Partition q is rotated by q times `turn` radians.
pub fn stacked(plane: &Trajectory, kz: &[f64], turn: f64) -> Trajectory {
    let mut k = vec![Vec::new(); 3];
    for (q, &kz) in kz.iter().enumerate() {
        let (sin, cos) = (turn * q as f64).sin_cos();
        for (x, y) in plane.axis(0).iter().zip(plane.axis(1)) {
            k[0].push((x * cos - y * sin).clamp(-0.5, 0.4999999));
            k[1].push((x * sin + y * cos).clamp(-0.5, 0.4999999));
            k[2].push(kz);
        }
    }
    Trajectory::new(k, plane.samples_per_shot()).expect("a stack of a valid trajectory")
}

/// Returns spokes from the centre of k-space outwards, over the full circle.
pub fn half_spokes(spokes: usize, samples: usize, n: usize) -> Case {
    let polar = |i: usize| {
        let (sin, cos) = (std::f64::consts::TAU * (i / samples) as f64 / spokes as f64).sin_cos();
        let radius = 0.5 * (i % samples) as f64 / samples as f64;
        [radius * cos, radius * sin]
    };
    let k = (0..2).map(|axis| (0..spokes * samples).map(|i| polar(i)[axis]).collect()).collect();
    Case { name: "half spokes, centre out", k, n, support: Support::Disc }
}
