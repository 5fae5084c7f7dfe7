//! The engine on one backend: an encoding.

use super::coil_maps;
use super::encoding::Encoding;
use super::interface::{Engine, PlanInfo, Weighting};
use crate::backend::{Backend, Sink, Source};
use crate::base::atomic_file::AtomicFiles;
use crate::base::error::Result;
use crate::base::options::Method;
use crate::base::real::Real;
use crate::reconstruction::cg::{self, CgOptions, CgReport, Progress};
use crate::reconstruction::density::Density;
use num_complex::Complex;
use std::ops::ControlFlow;
use std::path::Path;

impl<T: Real, B: Backend<T>> Engine<T> for Encoding<T, B> {
    fn info(&self) -> PlanInfo {
        let choice = self.choice();
        PlanInfo {
            method: if choice.is_some() { Method::Nufft } else { Method::Exact },
            on_gpu: self.backend.is_apart(),
            device: self.backend.device_name(),
            simd: self.backend.simd_name(),
            threads: self.backend.threads(),
            window: choice.map(|c| c.shape.window()),
            width: choice.map_or(0, |c| c.shape.width()),
            grid: choice.map_or(Vec::new(), |c| c.grid.clone()),
            oversampling: choice.map_or(1.0, |c| {
                c.grid.iter().zip(&self.dims).map(|(&g, &n)| g as f64 / n as f64).fold(f64::INFINITY, f64::min)
            }),
            error: choice.map_or(T::EPSILON, |c| c.error),
            toeplitz: self.uses_toeplitz(),
            host_bytes: self.host_bytes(),
            device_bytes: self.b().device_bytes(),
            seconds: 0.0,
        }
    }
    fn samples(&self) -> usize {
        self.samples
    }
    fn image_len(&self) -> usize {
        self.voxels * self.images()
    }
    fn kspace_len(&self) -> usize {
        self.samples * self.coils
    }
    fn q_len(&self) -> usize {
        self.voxels << if self.listed { 0 } else { self.dims.len() }
    }
    fn first_beyond(&self, values: Source<'_, Complex<T>>, limit: T) -> Result<Option<(usize, Complex<T>)>> {
        let values = self.b().input(values)?;
        self.b().first_beyond(self.b().read(&values), limit)
    }
    fn check_room(&self, bytes: usize, what: &str) -> Result<()> {
        cg::System::check_memory(self, bytes, what)
    }
    fn wait(&self) -> Result<()> {
        self.b().wait()
    }
    fn forward(&self, image: Source<'_, Complex<T>>, kspace: Sink<'_, Complex<T>>) -> Result<()> {
        Encoding::forward(self, image, kspace)
    }
    fn adjoint(&self, weighting: Weighting, kspace: Source<'_, Complex<T>>, image: Sink<'_, Complex<T>>) -> Result<()> {
        Encoding::adjoint(self, weighting, kspace, image)
    }
    fn grid(&self, kspace: Source<'_, Complex<T>>, image: Sink<'_, Complex<T>>) -> Result<()> {
        Encoding::grid(self, kspace, image)
    }
    fn grid_kspace(&self, values: &[Complex<T>], grid: &mut [Complex<T>]) -> Result<()> {
        let d = self.b().input(values.into())?;
        Encoding::grid_kspace(self, self.b().read(&d), grid)
    }
    fn window_correction(&self, axis: usize) -> Result<Vec<f64>> {
        match self.choice() {
            Some(c) if axis < self.dims.len() => c.shape.correction(self.dims[axis], c.grid[axis]),
            _ => Ok(Vec::new()),
        }
    }
    fn prepare_normal(&self) -> Result<()> {
        self.toeplitz().map(|_| ())
    }
    fn normal(&self, x: Source<'_, Complex<T>>, y: Sink<'_, Complex<T>>) -> Result<()> {
        cg::normal_of_images(self, x, y)
    }
    fn q(&self, q: &mut [Complex<T>]) -> Result<()> {
        Encoding::q(self, q)
    }
    fn save_q(&self, files: &mut AtomicFiles, path: &Path) -> Result<()> {
        Encoding::save_q(self, files, path)
    }
    fn load_q(&self, path: &Path) -> Result<()> {
        Encoding::load_q(self, path)
    }
    fn density(&self, method: Density) -> Result<Vec<T>> {
        Encoding::density(self, method)
    }
    fn coil_maps(&self, kspace: &[Complex<T>], frames: usize, calibration: usize) -> Result<Vec<Complex<T>>> {
        coil_maps::estimate(self, self.coils, kspace, frames, calibration)
    }
    fn cg(
        &self,
        kspace: Source<'_, Complex<T>>,
        image: Sink<'_, Complex<T>>,
        options: &CgOptions<'_, T>,
        report: &mut CgReport,
        progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<()> {
        cg::solve(self, kspace, image, options, report, progress)
    }
}
