//! The engine of a scan that is divided among several backends of one kind (GPUs).
//!
//! Each part is an [`Encoding`]. Parts that write different arrays of the caller run concurrently in separate threads.
//! If the results of the parts add up to one image or to the same samples, the backend of the first part adds them in
//! the order of the parts. So results have the same bits on every call, but not for different numbers of GPUs.
//!
//! Conjugate gradients with coil maps keep their vectors on the backend of the first part. The other parts get the
//! direction and return the result of E^H W E for their coils.
//!
//! The caller's interrupt callback is polled between these steps, but not by the threads of the parts.

use super::coil_maps;
use super::encoding::normal::mean_energy;
use super::encoding::Encoding;
use super::interface::{changed_trajectory, Change, Engine, PlanInfo};
use super::one_backend::normal_of_images;
use super::partition::{partition, split_evenly, LayerPhases, ScanDivision};
use super::transform_params::TransformParams;
use crate::backend::{Backend, Complexes, ComplexesMut, Sink, Source, Span};
use crate::base::atomic_file::AtomicFiles;
use crate::base::error::{bail, try_box, try_vec, Result};
use crate::base::geometry::{check_coil_maps, check_weights, first_exceeding, Geometry, InputRanges};
use crate::base::interrupt;
use crate::base::off_resonance::OffResonanceRange;
use crate::base::options::Options;
use crate::base::real::Real;
use crate::base::scan_size::ScanSize;
use crate::base::warning::Warning;
use crate::base::workers::Workers;
use crate::reconstruction::cg::{CgOptions, CgReport, Equations, Progress};
use crate::reconstruction::density::{Density, Weighting};
use num_complex::Complex;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// The part of a scan that one backend computes.
struct ScanPart<T: Real, B: Backend<T>> {
    encoding: Encoding<T, B>,
    /// Coils or voxels of the part.
    range: Range<usize>,
    /// Phases that move the layers of the part to their place in the grid; `None` unless the parts are layers.
    layer_phases: Option<LayerPhases<T, B>>,
}

/// Buffers of one part for E^H W E: the direction and the result on the backend of the part, and the result on that of
/// the first part.
type ExchangeBuffers<T, B> = [<B as Backend<T>>::Array<Complex<T>>; 3];

/// An engine that divides a scan among several backends.
pub(crate) struct MultiGpuEngine<T: Real, B: Backend<T>> {
    division: ScanDivision,
    parts: Vec<ScanPart<T, B>>,
    /// The whole scan on the first backend, for operations that use Q; `None` if the scan is divided by coils.
    whole_scan: Option<Encoding<T, B>>,
    dims: Vec<usize>,
    is_voxel_list: bool,
    combines_coils: bool,
    voxels: usize,
    samples: usize,
    coils: usize,
    /// Buffers of each part except the first; empty before the first use.
    exchange: Arc<Mutex<Vec<ExchangeBuffers<T, B>>>>,
}

impl<T: Real, B: Backend<T>> MultiGpuEngine<T, B> {
    /// Divides a scan among backends; returns `None` if it cannot be divided. `create` creates the encoding of a part.
    pub fn new(
        backends: &[Arc<B>],
        geometry: &Geometry<'_, T>,
        options: &Options,
        create: impl Fn(Arc<B>, &Geometry<'_, T>) -> Result<Encoding<T, B>> + Sync,
        exact: bool,
    ) -> Result<Option<Self>> {
        let division = if exact { ScanDivision::Voxels } else { ScanDivision::Coils };
        let voxels = geometry.voxel_count();
        let (parts, count, layer) = partition(backends.len(), &ScanSize::lengths(geometry), options, exact);
        if parts < 2 {
            return Ok(None);
        }
        let create_part = |items: Range<usize>, backend: Arc<B>| -> Result<ScanPart<T, B>> {
            let range = if exact { items.start * layer..items.end * layer } else { items };
            let maps = geometry.coil_maps.map(|maps| division.part_maps(maps, voxels, &range)).transpose()?;
            let part = division.part_geometry(geometry, &range, maps.as_deref());
            let layer_phases = division.layer_phases(&*backend, geometry, &range)?;
            Ok(ScanPart { encoding: create(backend, &part)?, range, layer_phases })
        };
        let parts: Vec<ScanPart<T, B>> = std::thread::scope(|scope| {
            let create_part = &create_part;
            let threads: Vec<_> = split_evenly(count, parts)
                .zip(backends)
                .map(|(items, backend)| scope.spawn(move || create_part(items, backend.clone())))
                .collect();
            threads.into_iter().map(join).collect::<Result<_>>()
        })?;
        let whole_scan = if exact { Some(create(backends[0].clone(), geometry)?) } else { None };
        Ok(Some(MultiGpuEngine {
            division,
            parts,
            whole_scan,
            dims: geometry.dims.clone(),
            is_voxel_list: geometry.voxels.is_some(),
            combines_coils: geometry.coil_maps.is_some(),
            voxels,
            samples: geometry.samples(),
            coils: geometry.coils,
            exchange: Arc::default(),
        }))
    }

    /// Creates a part after a change of the scan.
    fn changed_part(
        &self,
        part: &ScanPart<T, B>,
        change: Change<'_, T>,
        options: &Options,
        params: (Option<OffResonanceRange>, TransformParams),
    ) -> Result<ScanPart<T, B>> {
        let part_maps = |maps| self.division.part_maps(maps, self.voxels, &part.range);
        let maps = match change {
            Change::Trajectory(geometry) => geometry.coil_maps.map(part_maps).transpose()?,
            Change::CoilMaps(Source::Host(maps)) => Some(part_maps(maps)?),
            Change::CoilMaps(Source::Device(_)) | Change::Weights(Some(Source::Device(_))) => {
                return device_arrays_error()
            }
            Change::Weights(_) => None,
        };
        let mut layer_phases = part.layer_phases.clone();
        let part_geometry;
        let change = match change {
            Change::Trajectory(geometry) => {
                part_geometry = self.division.part_geometry(geometry, &part.range, maps.as_deref());
                layer_phases = self.division.layer_phases(part.encoding.b(), geometry, &part.range)?;
                Change::Trajectory(&part_geometry)
            }
            Change::CoilMaps(all) => Change::CoilMaps(maps.as_deref().map_or(all, Source::Host)),
            Change::Weights(weights) => Change::Weights(weights),
        };
        let encoding = part.encoding.with_change(change, None, options, params)?;
        Ok(ScanPart { encoding, range: part.range.clone(), layer_phases })
    }

    /// Returns the encoding of the first part.
    fn first(&self) -> &Encoding<T, B> {
        &self.parts[0].encoding
    }

    /// Returns the encoding for operations that are not divided, such as Q and density weights.
    fn undivided(&self) -> &Encoding<T, B> {
        self.whole_scan.as_ref().unwrap_or_else(|| self.first())
    }

    /// Returns the number of images per frame.
    fn images(&self) -> usize {
        if self.combines_coils {
            1
        } else {
            self.coils
        }
    }

    /// Runs `f(part, job)` for all parts concurrently.
    fn run_on_parts<J: Send, R: Send>(
        &self,
        jobs: Vec<J>,
        f: impl Fn(&ScanPart<T, B>, J) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        std::thread::scope(|scope| {
            let f = &f;
            let threads: Vec<_> =
                self.parts.iter().zip(jobs).map(|(part, job)| scope.spawn(move || f(part, job))).collect();
            threads.into_iter().map(join).collect()
        })
    }

    /// Adds the arrays of all parts on the first backend, in the order of the parts.
    fn sum_on_first(&self, mut arrays: Vec<B::Array<Complex<T>>>) -> Result<B::Array<Complex<T>>> {
        let b = self.first().b();
        let rest = arrays.split_off(1);
        let mut sum = arrays.pop().expect("there is a part");
        for (part, array) in self.parts[1..].iter().zip(&rest) {
            let from = part.encoding.b();
            let view = from.view(array);
            let mut copy = b.zeros::<Complex<T>>(view.len(), "a part's result")?;
            from.order_after(b);
            from.send(view, b, b.view_mut(&mut copy));
            b.order_after(from);
            b.axpy(1.0, b.view(&copy), b.view_mut(&mut sum));
        }
        // The arrays of the parts may be freed only after they have been sent.
        for part in &self.parts[1..] {
            part.encoding.b().wait()?;
        }
        Ok(sum)
    }

    /// Copies a result to the caller's array.
    fn copy_to_caller(&self, from: &B::Array<Complex<T>>, to: Sink<'_, Complex<T>>) -> Result<()> {
        let b = self.first().b();
        match to {
            Sink::Host(host) => b.download(b.view(from), host),
            Sink::Device(_) => device_arrays_error(),
        }
    }

    /// Splits the caller's arrays into the jobs of the parts. Each of the `count` frames (or coils) of `from` has
    /// `from_len.1` elements, of which a part gets `from_len.0` per coil (or voxel), or all if `from_len.0` is 0. The
    /// same holds for `to` and `to_len`.
    fn split_jobs<'a>(
        &self,
        from: Source<'a, Complex<T>>,
        from_len: (usize, usize),
        mut to: Sink<'a, Complex<T>>,
        to_len: (usize, usize),
        count: usize,
    ) -> Vec<Vec<(Source<'a, Complex<T>>, Sink<'a, Complex<T>>)>> {
        let mut jobs: Vec<Vec<_>> = self.parts.iter().map(|_| Vec::new()).collect();
        for i in 0..count {
            for (part, jobs) in self.parts.iter().zip(&mut jobs) {
                let elements = |(each, all): (usize, usize)| match each {
                    0 => i * all..(i + 1) * all,
                    _ => i * all + part.range.start * each..i * all + part.range.end * each,
                };
                jobs.push((from.part(elements(from_len)), to.split_off(elements(to_len).len())));
            }
        }
        jobs
    }

    /// Computes the adjoint of one frame in the memory of the first backend.
    fn adjoint_of_coils(
        &self,
        weighting: Weighting,
        kspace: Source<'_, Complex<T>>,
        image: ComplexesMut<B, T>,
    ) -> Result<()> {
        let mut host = try_vec(image.len(), Complex::default(), "an adjoint")?;
        self.adjoint(weighting, kspace, (&mut host).into())?;
        let b = self.undivided().b();
        let device = b.input((&host).into())?;
        b.copy(b.read(&device), image);
        b.wait()
    }

    /// Computes y = E^H W E x for one image in the memory of the first backend.
    fn apply_normal(&self, x: Complexes<B, T>, mut y: ComplexesMut<B, T>) -> Result<()> {
        if self.division == ScanDivision::Voxels || !self.combines_coils {
            // Without coil maps, E^H W E of one image involves no other coil, so it is not divided.
            return self.undivided().apply_normal(x, y);
        }
        let b = self.undivided().b();
        let mut exchange = self.exchange.lock().unwrap_or_else(|e| e.into_inner());
        if exchange.is_empty() {
            for part in &self.parts[1..] {
                let image = || part.encoding.b().zeros(self.voxels, "a direction");
                exchange.push([image()?, image()?, b.zeros(self.voxels, "a part's result")?]);
            }
        }
        for (part, [direction, ..]) in self.parts[1..].iter().zip(exchange.iter_mut()) {
            let backend = part.encoding.b();
            // Waits for all previous work of the first backend, including the previous sums.
            backend.fetch(b, B::shorten(x), backend.view_mut(direction));
        }
        // Queuing work takes time, so each part is queued by its own thread.
        std::thread::scope(|scope| {
            let run = |(part, [direction, result, copy]): (&ScanPart<T, B>, &mut ExchangeBuffers<T, B>)| {
                let backend = part.encoding.b();
                part.encoding.apply_normal(backend.view(direction), backend.view_mut(result))?;
                backend.send(backend.view(result), b, b.view_mut(copy));
                Ok(())
            };
            let threads: Vec<_> =
                self.parts[1..].iter().zip(exchange.iter_mut()).map(|p| scope.spawn(move || run(p))).collect();
            let first = self.first().apply_normal(B::shorten(x), B::reborrow(&mut y));
            threads.into_iter().map(join).chain([first]).collect::<Result<()>>()
        })?;
        for (part, [_, _, copy]) in self.parts[1..].iter().zip(exchange.iter()) {
            b.order_after(part.encoding.b());
            b.axpy(1.0, b.view(copy), B::reborrow(&mut y));
        }
        Ok(())
    }
}

/// Returns the result of a thread, or continues its panic.
fn join<R>(thread: std::thread::ScopedJoinHandle<'_, R>) -> R {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Returns the error for arrays of the caller on a GPU.
fn device_arrays_error<A>() -> Result<A> {
    bail!(Unsupported, "a plan on several GPUs cannot use arrays on a GPU: use one GPU, or arrays in host memory")
}

impl<T: Real, B: Backend<T>> Engine<T> for MultiGpuEngine<T, B> {
    fn info(&self) -> PlanInfo {
        let infos: Vec<PlanInfo> = self.parts.iter().map(|part| part.encoding.info()).collect();
        PlanInfo {
            device: infos.iter().map(|i| i.device.as_str()).collect::<Vec<_>>().join(", "),
            host_bytes: infos.iter().map(|i| i.host_bytes).sum(),
            device_bytes: infos.iter().map(|i| i.device_bytes).sum(),
            ..self.undivided().info()
        }
    }
    fn running_threads(&self) -> usize {
        self.undivided().running_threads()
    }
    fn warning(&self) -> Option<Warning> {
        self.undivided().warning()
    }
    fn new_warning(&self) -> Option<Warning> {
        self.undivided().new_warning()
    }
    fn changed(&self, change: Change<'_, T>, options: &Options) -> Result<Box<dyn Engine<T>>> {
        let params = self.undivided().params_after(change, options)?;
        let jobs = vec![params.clone(); self.parts.len()];
        let parts = self.run_on_parts(jobs, |part, params| self.changed_part(part, change, options, params))?;
        let change_whole = |whole: &Encoding<T, B>| whole.with_change(change, None, options, params);
        let whole_scan = self.whole_scan.as_ref().map(change_whole).transpose()?;
        let samples = parts[0].encoding.samples;
        let (dims, exchange) = (self.dims.clone(), self.exchange.clone());
        Ok(try_box(MultiGpuEngine { parts, whole_scan, dims, samples, exchange, ..*self }, "the plan")?)
    }
    fn first_exceeding(&self, values: Source<'_, Complex<T>>, limit: T) -> Result<Option<(usize, Complex<T>)>> {
        match values {
            Source::Host(values) => Ok(first_exceeding(self.workers(), values, limit)),
            Source::Device(_) => device_arrays_error(),
        }
    }
    fn with_trajectory(
        &self,
        geometry: &Geometry<'_, T>,
        options: &Options,
    ) -> Result<(Box<dyn Engine<T>>, InputRanges)> {
        changed_trajectory(self, geometry, options)
    }
    fn check_weights(&self, weights: Source<'_, T>) -> Result<f64> {
        match weights {
            Source::Host(weights) => check_weights(self.workers(), weights),
            Source::Device(_) => device_arrays_error(),
        }
    }
    fn check_coil_maps(&self, maps: Source<'_, Complex<T>>) -> Result<f64> {
        match maps {
            Source::Host(maps) => check_coil_maps(self.workers(), maps),
            Source::Device(_) => device_arrays_error(),
        }
    }
    fn workers(&self) -> &dyn Workers {
        self.undivided().b().workers()
    }
    fn check_memory(&self, bytes: usize, what: &str) -> Result<()> {
        self.undivided().check_memory(bytes, what)
    }
    fn wait(&self) -> Result<()> {
        self.parts.iter().map(|part| &part.encoding).chain(&self.whole_scan).try_for_each(|all| all.b().wait())
    }
    fn forward(&self, image: Source<'_, Complex<T>>, kspace: Sink<'_, Complex<T>>) -> Result<()> {
        interrupt::check("a forward transform")?;
        let frame = self.samples * self.coils;
        let frames = kspace.len() / frame;
        if self.division == ScanDivision::Coils {
            let (each, all) =
                if self.combines_coils { (0, self.voxels) } else { (self.voxels, self.voxels * self.coils) };
            let jobs = self.split_jobs(image, (each, all), kspace, (self.samples, frame), frames);
            self.run_on_parts(jobs, |part, jobs| jobs.into_iter().try_for_each(|(x, s)| part.encoding.forward(x, s)))?;
            return Ok(());
        }
        // Every part contributes to every sample.
        let images = frames * self.images();
        let each = kspace.len() / images;
        let partial = self.run_on_parts(vec![(); self.parts.len()], |part, ()| {
            let b = part.encoding.b();
            let mut s = b.zeros::<Complex<T>>(kspace.len(), "a part's samples")?;
            for i in 0..images {
                let x = image.part(i * self.voxels + part.range.start..i * self.voxels + part.range.end);
                let samples = b.view_mut(&mut s).part(i * each..(i + 1) * each);
                part.encoding.forward(x, b.sink(samples))?;
            }
            let Some([_, phases]) = part.layer_phases.as_deref() else { return Ok(s) };
            let mut modulated = b.zeros::<Complex<T>>(kspace.len(), "modulated samples")?;
            b.multiply(b.view(&s), b.view(phases), b.view_mut(&mut modulated));
            Ok(modulated)
        })?;
        self.copy_to_caller(&self.sum_on_first(partial)?, kspace)
    }
    fn adjoint(&self, weighting: Weighting, kspace: Source<'_, Complex<T>>, image: Sink<'_, Complex<T>>) -> Result<()> {
        if let (Weighting::Gridding | Weighting::Backprojection(_), Some(whole)) = (weighting, &self.whole_scan) {
            // Density weights are computed for the whole image.
            return whole.adjoint(weighting, kspace, image);
        }
        interrupt::check("an adjoint transform")?;
        let frame = self.samples * self.coils;
        let frames = kspace.len() / frame;
        match self.division {
            ScanDivision::Coils if !self.combines_coils => {
                let jobs = self.split_jobs(
                    kspace,
                    (self.samples, frame),
                    image,
                    (self.voxels, self.voxels * self.coils),
                    frames,
                );
                self.run_on_parts(jobs, |part, jobs| {
                    jobs.into_iter().try_for_each(|(d, x)| part.encoding.adjoint(weighting, d, x))
                })?;
                Ok(())
            }
            ScanDivision::Coils => {
                let partial = self.run_on_parts(vec![(); self.parts.len()], |part, ()| {
                    let b = part.encoding.b();
                    let mut x = b.zeros::<Complex<T>>(self.voxels * frames, "a part's images")?;
                    for f in 0..frames {
                        let samples =
                            f * frame + part.range.start * self.samples..f * frame + part.range.end * self.samples;
                        let image = b.view_mut(&mut x).part(f * self.voxels..(f + 1) * self.voxels);
                        part.encoding.adjoint(weighting, kspace.part(samples), b.sink(image))?;
                    }
                    Ok(x)
                })?;
                self.copy_to_caller(&self.sum_on_first(partial)?, image)
            }
            ScanDivision::Voxels => {
                let images = frames * self.images();
                let each = kspace.len() / images;
                let jobs = self.split_jobs(kspace, (0, each), image, (1, self.voxels), images);
                self.run_on_parts(jobs, |part, jobs| {
                    jobs.into_iter().try_for_each(|(d, x)| match part.layer_phases.as_deref() {
                        None => part.encoding.adjoint(weighting, d, x),
                        Some([phases, _]) => {
                            let b = part.encoding.b();
                            let d = b.input(d)?;
                            let mut modulated = b.zeros::<Complex<T>>(each, "modulated samples")?;
                            b.multiply(b.read(&d), b.view(phases), b.view_mut(&mut modulated));
                            part.encoding.adjoint(weighting, b.source(b.view(&modulated)), x)
                        }
                    })
                })?;
                Ok(())
            }
        }
    }
    fn grid_kspace(&self, values: &[Complex<T>], grid: &mut [Complex<T>]) -> Result<()> {
        self.undivided().grid_kspace(values, grid)
    }
    fn window_correction(&self, axis: usize) -> Result<Vec<f64>> {
        self.undivided().window_correction(axis)
    }
    fn prepare_adjoint(&self, weighting: Weighting) -> Result<()> {
        // Parts are not interrupted, so that nothing is gained by computing their weights earlier.
        self.whole_scan.as_ref().map_or(Ok(()), |whole| whole.prepare_adjoint(weighting))
    }
    fn prepare_normal(&self) -> Result<()> {
        match &self.whole_scan {
            Some(whole) => whole.prepare_normal(),
            None => {
                self.run_on_parts(vec![(); self.parts.len()], |part, ()| part.encoding.prepare_normal()).map(|_| ())
            }
        }
    }
    fn normal(&self, x: Source<'_, Complex<T>>, y: Sink<'_, Complex<T>>) -> Result<()> {
        normal_of_images(self.undivided().b(), self.voxels, x, y, |x, y| self.apply_normal(x, y))
    }
    fn mean_diagonal(&self) -> Result<f64> {
        match &self.whole_scan {
            Some(whole) => whole.mean_diagonal(),
            None => {
                let parts = self.parts.iter().map(|part| part.encoding.map_energies());
                Ok(self.first().weight_sum()?
                    * mean_energy(self.first().b().workers(), &parts.collect::<Result<Vec<_>>>()?))
            }
        }
    }
    fn q(&self, q: &mut [Complex<T>]) -> Result<()> {
        self.undivided().q(q)
    }
    fn save_q(&self, files: &mut AtomicFiles, path: &Path) -> Result<()> {
        self.undivided().save_q(files, path)
    }
    fn load_q(&self, path: &Path) -> Result<()> {
        match &self.whole_scan {
            Some(whole) => whole.load_q(path),
            None => self.parts.iter().try_for_each(|part| part.encoding.load_q(path)),
        }
    }
    fn density(&self, method: Density, start: Option<&[T]>) -> Result<Vec<T>> {
        self.undivided().density(method, start)
    }
    fn coil_maps(&self, kspace: &[Complex<T>], frames: usize, calibration: usize) -> Result<Vec<Complex<T>>> {
        coil_maps::estimate(self.undivided(), self.coils, kspace, frames, calibration)
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
            backend: self.undivided().b(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cpu::Cpu;
    use crate::base::options::Simd;
    use crate::base::real::wide;

    fn random(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed;
        move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        }
    }

    /// Compares every operation of a scan divided among three backends with the same operation on one.
    fn check(dims: &[usize], coils: usize, has_maps: bool, is_voxel_list: bool, exact: bool, has_field: bool) {
        let mut next = random(dims.iter().sum::<usize>() as u64 + coils as u64);
        let mut complexes = |n: usize| -> Vec<Complex<f64>> { (0..n).map(|_| Complex::new(next(), next())).collect() };
        let (samples, frames) = (150, 2);
        let voxels = if is_voxel_list { 70 } else { dims.iter().product() };
        let all_maps = complexes(voxels * coils);
        let images = if has_maps { 1 } else { coils };
        let (data, image) = (complexes(samples * coils * frames), complexes(voxels * images * frames));
        let k: Vec<Vec<f64>> = (0..dims.len()).map(|_| complexes(samples).iter().map(|z| z.re).collect()).collect();
        let r: Vec<Vec<f64>> =
            (0..dims.len()).map(|_| complexes(voxels).iter().map(|z| 20.0 * z.re).collect()).collect();
        let weights: Vec<f64> = complexes(samples).iter().map(|z| z.re + 0.7).collect();
        let k: Vec<&[f64]> = k.iter().map(|k| &k[..]).collect();
        let mut geometry = Geometry::new(dims, &k).coils(coils).weights(&weights);
        geometry.frames = frames;
        geometry.coil_maps = has_maps.then_some(&all_maps);
        geometry.voxels = is_voxel_list.then(|| r.iter().map(|r| &r[..]).collect());
        let frequencies: Vec<f64> = complexes(voxels).iter().map(|z| 100.0 * z.re).collect();
        let rates: Vec<f64> = complexes(voxels).iter().map(|z| 20.0 * (z.re + 0.5)).collect();
        let times: Vec<f64> = complexes(samples).iter().map(|z| 0.02 * (z.re + 0.5)).collect();
        if has_field {
            geometry = geometry.field_map(&frequencies, &times);
            geometry.decay_map = Some(&rates);
        }
        let options = Options { tolerance: if exact { 0.0 } else { 1e-9 }, ..Options::default() };
        let backends = [1, 1, 2].map(|threads| Arc::new(Cpu::new(threads, Simd::Auto).unwrap()));
        let size = ScanSize::with_band(&*backends[0], &geometry).unwrap();
        let params = TransformParams::new::<f64, Cpu>(&backends[0], &size, &options, exact).unwrap();
        let create = |b, g: &Geometry<'_, f64>| Encoding::new(b, g, None, size.band, &options, params.clone());
        let one = create(backends[0].clone(), &geometry).unwrap();
        let divided = MultiGpuEngine::new(&backends, &geometry, &options, create, exact).unwrap().expect("three parts");
        assert_eq!(divided.parts.len(), 3);
        let mut engines: [Box<dyn Engine<f64>>; 2] = [Box::new(one), Box::new(divided)];
        // As created, and after each kind of change.
        let other = complexes(samples);
        let k: [Vec<f64>; 3] = [0.9, -0.7, 0.5].map(|scale| other.iter().map(|z| scale * z.re).collect());
        let k: Vec<&[f64]> = k.iter().take(dims.len()).map(|k| &k[..]).collect();
        let other_maps = complexes(voxels * coils);
        let changed = Geometry { coordinates: k, coil_maps: has_maps.then_some(&other_maps[..]), ..geometry.clone() };
        let mut changes = vec![Change::Trajectory(&changed), Change::Weights(None)];
        if has_maps {
            changes.push(Change::CoilMaps((&all_maps).into()));
        }
        compare(&engines, &data, &image, images * frames, is_voxel_list, dims);
        for change in changes {
            engines = engines.map(|engine| engine.changed(change, &options).unwrap());
            compare(&engines, &data, &image, images * frames, is_voxel_list, dims);
        }
    }

    /// Compares every operation of two engines.
    fn compare(
        engines: &[Box<dyn Engine<f64>>; 2],
        data: &[Complex<f64>],
        image: &[Complex<f64>],
        images: usize,
        is_voxel_list: bool,
        dims: &[usize],
    ) {
        let results = engines.each_ref().map(|e| {
            let poison = Complex::new(f64::NAN, f64::NAN);
            let mut out = vec![vec![poison; image.len()]; 5];
            let mut forward = vec![poison; data.len()];
            e.adjoint(Weighting::None, data.into(), (&mut out[0]).into()).unwrap();
            e.adjoint(Weighting::Given, data.into(), (&mut out[1]).into()).unwrap();
            e.adjoint(Weighting::Gridding, data.into(), (&mut out[2]).into()).unwrap();
            if !is_voxel_list {
                e.prepare_normal().unwrap();
            }
            e.normal(image.into(), (&mut out[3]).into()).unwrap();
            let cg = CgOptions { iterations: 3, lambda: 5.0, ..CgOptions::default() };
            let mut report = CgReport::default();
            let mut progress = |_: &Progress| ControlFlow::Continue(());
            e.cg(data.into(), (&mut out[4]).into(), &cg, &mut report, &mut progress).unwrap();
            assert_eq!(report.runs.len(), images);
            e.forward(image.into(), (&mut forward).into()).unwrap();
            out.push(forward);
            out
        });
        for (i, name) in ["fhd", "weighted", "grid", "normal", "cg", "forward"].iter().enumerate() {
            let [a, b] = [&results[0][i], &results[1][i]];
            let difference: f64 = a.iter().zip(b).map(|(a, b)| (wide(*a) - wide(*b)).norm_sqr()).sum();
            let size: f64 = a.iter().map(|a| a.norm_sqr()).sum();
            assert!(difference <= 1e-16 * size, "{name} {dims:?}: {}", (difference / size).sqrt());
        }
    }

    #[test]
    fn divided_operations_match_undivided_ones() {
        check(&[14, 11], 5, true, false, false, false);
        check(&[14, 11], 4, false, false, false, false);
        check(&[9, 8, 7], 3, true, false, false, false);
        check(&[13, 10], 2, true, false, true, false);
        check(&[6, 7, 8], 1, false, false, true, false);
        check(&[6, 5, 11], 2, false, false, true, false);
        check(&[20, 20], 2, true, true, true, false);
        check(&[14, 11], 5, true, false, false, true);
        check(&[14, 11], 4, false, false, false, true);
        check(&[6, 5, 11], 2, true, false, true, true);
        check(&[20, 20], 2, true, true, true, true);
    }
}
