//! Scans of a phantom by a ring of coils.

use super::slices;
use recon::phantom::{CoilModel, Phantom};
use recon::trajectory::SpokeOrder;
use recon::{Complex, Device, Geometry, Options, Plan, Trajectory};

/// Creates a scan with golden-angle spokes, without noise.
pub struct RingScan {
    pub n: usize,
    pub coils: usize,
    pub k: Vec<Vec<f32>>,
    pub data: Vec<Complex<f64>>,
    pub maps: Vec<Complex<f64>>,
    pub truth: Vec<Complex<f64>>,
}

impl RingScan {
    pub fn new(phantom: &Phantom, n: usize, spokes: usize, coils: usize) -> Self {
        let trajectory = Trajectory::radial2d(spokes, 2 * n, SpokeOrder::GoldenAngle).unwrap();
        let ring = CoilModel::ring(coils, 2).unwrap();
        let data = phantom.kspace(&[n, n], &trajectory.axes(), Some(&ring), 2).unwrap();
        let truth = phantom.image(&[n, n], 4).unwrap().into_iter().map(|x| Complex::new(x, 0.0)).collect();
        let k = (0..2).map(|axis| trajectory.axis_as(axis)).collect();
        RingScan { n, coils, k, data, maps: ring.maps(&[n, n]).unwrap(), truth }
    }

    /// Divides the maps by their root sum of squares. The truth is then the image for these maps.
    pub fn normalise(&mut self) {
        let voxels = self.n * self.n;
        for (i, x) in self.truth.iter_mut().enumerate() {
            let root = (0..self.coils).map(|c| self.maps[c * voxels + i].norm_sqr()).sum::<f64>().sqrt();
            *x *= root;
            (0..self.coils).for_each(|c| self.maps[c * voxels + i] /= root);
        }
    }

    pub fn samples(&self) -> usize {
        self.k[0].len()
    }

    /// Creates a plan for this trajectory and the number of coils of the maps.
    pub fn plan(&self, maps: &[Complex<f32>], device: Device) -> Plan<f32> {
        let k = slices(&self.k);
        let coils = maps.len() / (self.n * self.n);
        let geometry = Geometry::new(&[self.n, self.n], &k).coils(coils).coil_maps(maps);
        Plan::new(&geometry, &Options { device, threads: 2, ..Options::default() }).unwrap()
    }
}
