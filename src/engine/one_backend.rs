//! The engine of a plan on one backend: operations on the caller's arrays.

use super::coil_maps;
use super::device_selection::DeviceSelection;
use super::encoding::normal::mean_energy;
use super::encoding::samples::{check_maps_on_device, check_weights_on_device, SampleArrays};
use super::encoding::Encoding;
use super::interface::{Change, Engine, PlanInfo, CHANGING_PLAN};
use crate::backend::{Backend, Complexes, ComplexesMut, DeliveryQueue, Sink, Source, Span};
use crate::base::atomic_file::AtomicFiles;
use crate::base::error::{bail, try_box, try_collect, try_vec, Result};
use crate::base::geometry::{check_coil_maps, check_weights, first_exceeding, Geometry, InputRanges};
use crate::base::input_check::PendingCheck;
use crate::base::interrupt;
use crate::base::options::{Method, Options};
use crate::base::real::Real;
use crate::base::sizes::three_axes;
use crate::base::warning::Warning;
use crate::base::workers::Workers;
use crate::nufft::time_segments::TimeSegments;
use crate::nufft::toeplitz::{octants, Toeplitz};
use crate::reconstruction::cg::{CgOptions, CgReport, Equations, Progress};
use crate::reconstruction::density::{self, Density, Weighting};
use num_complex::Complex;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

impl<T: Real, B: Backend<T>> Engine<T> for Encoding<T, B> {
    fn info(&self) -> PlanInfo {
        let gridding = self.gridding_params();
        PlanInfo {
            method: if gridding.is_some() { Method::Nufft } else { Method::Exact },
            on_gpu: self.b().is_gpu(),
            device: self.b().device_name(),
            // Known to the plan.
            device_selection: DeviceSelection::default(),
            simd: self.b().simd_name(),
            threads: self.b().threads(),
            window: gridding.map(|g| g.shape.window()),
            width: gridding.map_or(0, |g| g.shape.width()),
            grid: gridding.map_or(Vec::new(), |g| g.grid.clone()),
            oversampling: gridding.map_or(1.0, |g| g.oversampling(&self.dims)),
            error: self.transform_params().error::<T>(),
            segments: self.transform_params().segments().map_or(0, TimeSegments::len),
            nodes: if self.uses_toeplitz() { self.transform_params().nodes().map_or(0, TimeSegments::len) } else { 0 },
            toeplitz: self.uses_toeplitz(),
            host_bytes: self.host_bytes(),
            device_bytes: self.b().device_bytes(),
            seconds: 0.0,
        }
    }

    fn running_threads(&self) -> usize {
        self.b().running_threads()
    }

    fn warning(&self) -> Option<Warning> {
        self.b().warning()
    }

    fn new_warning(&self) -> Option<Warning> {
        self.b().new_warning()
    }

    fn changed(&self, change: Change<'_, T>, options: &Options) -> Result<Box<dyn Engine<T>>> {
        let params = self.params_after(change, options)?;
        Ok(try_box(self.with_change(change, None, options, params)?, "the plan")?)
    }

    fn with_trajectory(
        &self,
        geometry: &Geometry<'_, T>,
        options: &Options,
    ) -> Result<(Box<dyn Engine<T>>, InputRanges)> {
        let (samples, ranges) = SampleArrays::checked(self.b(), geometry)?;
        interrupt::check(CHANGING_PLAN)?;
        let change = Change::Trajectory(geometry);
        let params = self.params_after(change, options)?;
        Ok((try_box(self.with_change(change, Some(samples), options, params)?, "the plan")?, ranges))
    }

    fn check_weights(&self, weights: Source<'_, T>) -> Result<f64> {
        match weights {
            Source::Host(weights) => check_weights(self.workers(), weights),
            Source::Device(_) => check_weights_on_device(self.b(), weights),
        }
    }

    fn check_coil_maps(&self, maps: Source<'_, Complex<T>>) -> Result<f64> {
        match maps {
            Source::Host(maps) => check_coil_maps(self.workers(), maps),
            Source::Device(_) => check_maps_on_device(self.b(), maps),
        }
    }

    fn workers(&self) -> &dyn Workers {
        self.b().workers()
    }

    fn check_memory(&self, bytes: usize, what: &str) -> Result<()> {
        self.limit().check(bytes, what)
    }

    fn wait(&self) -> Result<()> {
        self.b().wait()
    }

    fn first_exceeding(&self, values: Source<'_, Complex<T>>, limit: T) -> Result<Option<(usize, Complex<T>)>> {
        match values {
            // Scan host arrays on the CPU, without uploading them.
            Source::Host(values) if self.b().is_gpu() => Ok(first_exceeding(self.workers(), values, limit)),
            _ => self.b().first_exceeding(self.b().read(&self.b().input(values)?), limit),
        }
    }

    fn begin_check(&self, input: Source<'_, Complex<T>>, limit: T) -> Result<Option<Box<dyn PendingCheck>>> {
        match input {
            // With coil maps, an adjoint clears the image first.
            Source::Device(_) if self.is_plain_nufft() && !self.combines_coils() => {
                self.b().begin_check(self.b().read(&self.b().input(input)?), limit, self.is_one_batch())
            }
            _ => Ok(None),
        }
    }

    // Results of one batch are copied to the caller while the next batch is computed.
    fn forward(&self, image: Source<'_, Complex<T>>, mut kspace: Sink<'_, Complex<T>>) -> Result<()> {
        let b = self.b();
        // Allocate all buffers before writing, so that an allocation error never leaves a half-written output.
        let mut images = self.combines_coils().then(|| self.image_batch()).transpose()?;
        let mut values = self.trajectory.phi.as_ref().map(|_| self.sample_batch()).transpose()?;
        let mut deliveries = DeliveryQueue::new(b);
        for (arrays, voxels) in self.groups(kspace.len() / self.samples) {
            let x = b.input(image.part(voxels))?;
            for coils in self.batches(arrays.len()) {
                interrupt::check("a forward transform")?;
                let mut out = b.output(kspace.split_off(coils.len() * self.samples))?;
                let x = match &mut images {
                    Some(images) => {
                        let voxels = 0..coils.len() * self.voxels;
                        self.multiply_maps(coils.clone(), b.read(&x), b.view_mut(images).part(voxels.clone()))?;
                        b.view(images).part(voxels)
                    }
                    None => b.read(&x),
                };
                match (&self.trajectory.phi, &mut values) {
                    (Some(phi), Some(values)) => {
                        let range = 0..coils.len() * self.samples;
                        self.to_samples(x, b.view_mut(values).part(range.clone()))?;
                        b.apply_weights(b.view(phi), b.view(values).part(range), b.write(&mut out));
                    }
                    _ => self.to_samples(x, b.write(&mut out))?,
                }
                deliveries.push(out)?;
            }
        }
        deliveries.finish()
    }

    fn adjoint(
        &self,
        weighting: Weighting,
        kspace: Source<'_, Complex<T>>,
        mut image: Sink<'_, Complex<T>>,
    ) -> Result<()> {
        let b = self.b();
        let mut deliveries = DeliveryQueue::new(b);
        for (arrays, voxels) in self.groups(kspace.len() / self.samples) {
            let mut out = b.output(image.split_off(voxels.len()))?;
            let values = kspace.part(arrays.start * self.samples..arrays.end * self.samples);
            self.adjoint_of_coils(weighting, values, b.write(&mut out))?;
            deliveries.push(out)?;
        }
        deliveries.finish()
    }

    fn grid_kspace(&self, values: &[Complex<T>], out: &mut [Complex<T>]) -> Result<()> {
        let Some(nufft) = self.nufft() else {
            bail!(Unsupported, "there is no grid with method exact: create the plan with method nufft");
        };
        self.check_no_field("there is no gridded k-space")?;
        let b = self.b();
        let weights = self.gridding_weights()?;
        let values = b.input(values.into())?;
        let mut weighted = self.sample_batch()?;
        let all = 0..self.samples;
        b.apply_weights(b.view(&*weights), b.read(&values), b.view_mut(&mut weighted).part(all.clone()));
        let mut grid = b.zeros::<Complex<T>>(nufft.grid_len(), "the gridded k-space")?;
        nufft.spread(b, b.view(&weighted).part(all), b.view_mut(&mut grid));
        let mut host = try_vec(nufft.grid_len(), Complex::default(), "the gridded k-space")?;
        b.download(b.view(&grid), &mut host)?;
        let g = &nufft.choice().grid;
        let row = g[0];
        for (line, from) in host.chunks_exact(row).enumerate() {
            let (mut rest, mut at, mut stride) = (line, 0, 1);
            for &n in &g[1..] {
                at += (rest % n + n / 2) % n * stride;
                rest /= n;
                stride *= n;
            }
            let to = &mut out[at * row..][..row];
            to[row / 2..].copy_from_slice(&from[..row - row / 2]);
            to[..row / 2].copy_from_slice(&from[row - row / 2..]);
        }
        Ok(())
    }

    fn window_correction(&self, axis: usize) -> Result<Vec<f64>> {
        match self.gridding_params() {
            Some(g) if axis < self.dims.len() => g.shape.correction(self.dims[axis], g.grid[axis]),
            _ => Ok(Vec::new()),
        }
    }

    fn prepare_adjoint(&self, weighting: Weighting) -> Result<()> {
        match weighting {
            Weighting::Gridding => self.gridding_weights().map(|_| ()),
            _ => Ok(()),
        }
    }

    fn prepare_normal(&self) -> Result<()> {
        self.toeplitz().map(|_| ())
    }

    fn normal(&self, x: Source<'_, Complex<T>>, y: Sink<'_, Complex<T>>) -> Result<()> {
        normal_of_images(self.b(), self.voxels, x, y, |x, y| self.apply_normal(x, y))
    }

    fn mean_diagonal(&self) -> Result<f64> {
        Ok(self.weight_sum()? * mean_energy(self.workers(), &[self.map_energies()?]))
    }

    fn q(&self, q: &mut [Complex<T>]) -> Result<()> {
        self.check_no_field("E^H W E is not a convolution with one Q")?;
        let b = self.b();
        if self.is_voxel_list {
            let normal_weight = self.normal_weight()?;
            let weight = |m| Complex::new(T::of(normal_weight(m)), T::ZERO);
            let values = try_collect(self.samples, "the weights of Q", (0..self.samples).map(weight))?;
            let values = b.upload(&values, "the weights of Q")?;
            let mut image = self.image()?;
            self.to_image(b.view(&values), b.view_mut(&mut image))?;
            return b.download(b.view(&image), q);
        }
        let n = three_axes(&self.dims);
        let twice = [0, 1, 2].map(|a| if a < self.dims.len() { 2 * n[a] } else { 1 });
        let mut image = self.image()?;
        let mut part = try_vec(self.voxels, Complex::default(), "a part of Q")?;
        let mut octant = self.q_octants()?;
        for half in octants(self.dims.len()) {
            octant(0, half, b.view_mut(&mut image))?;
            b.download(b.view(&image), &mut part)?;
            let first = [0, 1, 2].map(|a| if half[a] || a >= self.dims.len() { 0 } else { n[a] });
            for (row, from) in part.chunks_exact(n[0]).enumerate() {
                let (y, z) = (first[1] + row % n[1], first[2] + row / n[1]);
                q[(z * twice[1] + y) * twice[0] + first[0]..][..n[0]].copy_from_slice(from);
            }
        }
        Ok(())
    }

    fn save_q(&self, files: &mut AtomicFiles, path: &Path) -> Result<()> {
        match self.toeplitz()? {
            Some(toeplitz) => toeplitz.save(self.b(), files, path, &self.q_key()?),
            None => bail!(
                Unsupported,
                "this plan does not use Q: create it for a grid of voxels and with the Toeplitz normal operator"
            ),
        }
    }

    fn load_q(&self, path: &Path) -> Result<()> {
        if !self.uses_toeplitz() {
            bail!(
                Unsupported,
                "this plan does not use Q: create it for a grid of voxels and with the Toeplitz normal operator"
            );
        }
        let count = self.node_count();
        let loaded = Toeplitz::load(self.b(), &self.dims, count, path, &self.q_key()?, self.node_factors()?)?;
        *self.weighting.toeplitz.lock().unwrap_or_else(|e| e.into_inner()) = Some(Arc::new(loaded));
        Ok(())
    }

    fn density(&self, method: Density, start: Option<&[T]>) -> Result<Vec<T>> {
        let k: Vec<&[T]> = self.trajectory.axes(self.b())?;
        density::weights(self.b(), &k, &self.dims, method, start)
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
        let equations = Equations {
            engine: self,
            normal: Self::apply_normal,
            adjoint_of_coils: Self::adjoint_of_coils,
            backend: self.b(),
            dims: &self.dims,
            listed: self.is_voxel_list,
            voxels: self.voxels,
            images: self.images(),
            kspace_len: self.samples * self.coils,
        };
        self.check_memory(equations.bytes(kspace.len()), "the conjugate gradient solution")?;
        equations.solve(kspace, image, options, report, progress)
    }
}

/// Computes y = E^H W E x for any number of images of `voxels` elements each. `apply` computes it for one image.
pub(super) fn normal_of_images<T: Real, B: Backend<T>>(
    b: &B,
    voxels: usize,
    x: Source<'_, Complex<T>>,
    mut y: Sink<'_, Complex<T>>,
    apply: impl Fn(Complexes<B, T>, ComplexesMut<B, T>) -> Result<()>,
) -> Result<()> {
    let mut deliveries = DeliveryQueue::new(b);
    for first in (0..x.len()).step_by(voxels) {
        interrupt::check("E^H W E")?;
        let (x, mut out) = (b.input(x.part(first..first + voxels))?, b.output(y.split_off(voxels))?);
        apply(b.read(&x), b.write(&mut out))?;
        deliveries.push(out)?;
    }
    deliveries.finish()
}
