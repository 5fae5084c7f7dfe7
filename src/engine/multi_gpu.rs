//! A scan divided among several backends of one kind (GPUs): coils with NUFFT, voxels with exact sums.
//!
//! Each part is an [`Encoding`]. Parts that write different arrays of the caller run side by side in
//! threads; where they add up to one image or to the same samples, the first part's backend collects and adds them,
//! always in the order of the parts, so that results have the same bits on every call (but not for another number of
//! GPUs). Conjugate gradients with coil maps keep their vectors on the first part's backend: the others get the
//! direction and return their coils' share of E^H W E of it.
//!
//! The caller's function that interrupts a call is asked between such steps; the parts' threads have none to ask.

use super::chosen::Chosen;
use super::coil_maps;
use super::encoding::{mean_energy, Encoding};
use super::interface::{Change, Engine, PlanInfo};
use super::memory::Memory;
use super::one_backend::normal_of_images;
use crate::backend::{Backend, Complexes, ComplexesMut, Sink, Source, Span};
use crate::base::atomic_file::AtomicFiles;
use crate::base::error::{bail, try_box, try_reserve, try_vec, Result};
use crate::base::geometry::{first_exceeding, Geometry};
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

/// What is divided.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Share {
    /// Coils.
    Coils,
    /// Voxels: of a list, or layers along the last axis of a grid.
    Voxels,
}

struct Part<T: Real, B: Backend<T>> {
    encoding: Encoding<T, B>,
    /// Its coils or voxels.
    range: Range<usize>,
    /// With layers of a grid: exp(+-i 2 pi k.shift) of each sample, shift being from the layers' middle to the grid's.
    ramps: Option<Arc<[B::Array<Complex<T>>; 2]>>,
}

/// A scan divided among backends.
pub(crate) struct Divided<T: Real, B: Backend<T>> {
    share: Share,
    parts: Vec<Part<T, B>>,
    /// With voxels divided: all of the scan on the first backend, for what goes through Q.
    whole: Option<Encoding<T, B>>,
    dims: Vec<usize>,
    listed: bool,
    combined: bool,
    voxels: usize,
    samples: usize,
    coils: usize,
    /// The direction and its share of E^H W E, on each backend but the first, and the shares on the first.
    exchange: Arc<Mutex<Vec<[B::Array<Complex<T>>; 3]>>>,
}

/// Ranges of `count` things in `parts` parts of nearly equal size.
fn shares(count: usize, parts: usize) -> impl Iterator<Item = Range<usize>> {
    (0..parts).map(move |i| count * i / parts..count * (i + 1) / parts)
}

/// In how many parts a scan is divided, one being all of it, and a part's voxels along the axis that is divided.
fn parts_of(backends: usize, size: &ScanSize, options: &Options, exact: bool) -> (usize, usize) {
    let layer = if size.listed.is_some() { 1 } else { size.dims[..size.dims.len() - 1].iter().product() };
    let count = if exact { size.voxels() / layer } else { size.coils };
    let parts = backends.min(count);
    (if parts < 2 || options.memory_limit.is_some() { 1 } else { parts }, layer)
}

/// Bytes that a scan takes on so many backends, in all; `memory` tells those of one of these sizes.
pub(crate) fn memory(
    backends: usize,
    size: &ScanSize,
    options: &Options,
    memory: impl Fn(&ScanSize) -> Result<Memory>,
    exact: bool,
) -> Result<Memory> {
    let (parts, layer) = parts_of(backends, size, options, exact);
    if parts == 1 {
        return memory(size);
    }
    // With voxels divided the first has all of the scan besides.
    let mut all = if exact { memory(size)? } else { Memory::default() };
    for range in shares(if exact { size.voxels() / layer } else { size.coils }, parts) {
        let mut own = size.clone();
        match (exact, own.listed) {
            (false, _) => own.coils = range.len(),
            (true, Some(_)) => own.listed = Some(range.len()),
            (true, None) => *own.dims.last_mut().expect("an image has axes") = range.len(),
        }
        all = all.plus(memory(&own)?);
    }
    Ok(all)
}

/// The positions of some voxels of a list.
fn lists_of<'a, T: Real>(geometry: &Geometry<'a, T>, range: &Range<usize>) -> Option<Vec<&'a [T]>> {
    geometry.voxels.as_ref().map(|lists| lists.iter().map(|r| &r[range.clone()]).collect())
}

/// The sensitivities of all coils in some voxels.
fn maps_of<T: Real>(maps: &[Complex<T>], voxels: usize, range: &Range<usize>) -> Result<Vec<Complex<T>>> {
    let coils = maps.len() / voxels;
    let mut part = try_reserve(range.len() * coils, "the coil sensitivities")?;
    maps.chunks_exact(voxels).for_each(|map| part.extend_from_slice(&map[range.clone()]));
    Ok(part)
}

/// The phases of samples at `k` along the last axis, of `n` voxels, for some of its layers.
fn ramps_of<T: Real, B: Backend<T>>(
    backend: &B,
    k: &[T],
    n: usize,
    layers: Range<usize>,
) -> Result<Arc<[B::Array<Complex<T>>; 2]>> {
    let shift = (layers.start + layers.len() / 2) as f64 - (n / 2) as f64;
    let samples = k.len();
    let k = backend.upload(k, "the coordinates")?;
    let ramp = |shift: f64| -> Result<B::Array<Complex<T>>> {
        let mut ramp = backend.zeros(samples, "the phases of layers")?;
        backend.ramp(&[backend.view(&k)], &[shift], None, backend.view_mut(&mut ramp));
        Ok(ramp)
    };
    Ok(Arc::new([ramp(shift)?, ramp(-shift)?]))
}

impl<T: Real, B: Backend<T>> Divided<T, B> {
    /// Divides a scan among backends, or says None where there is nothing to divide.
    pub fn new(
        backends: &[Arc<B>],
        geometry: &Geometry<'_, T>,
        options: &Options,
        make: impl Fn(Arc<B>, &Geometry<'_, T>) -> Result<Encoding<T, B>> + Sync,
        exact: bool,
    ) -> Result<Option<Self>>
    where
        B: Backend<T>,
    {
        let share = if exact { Share::Voxels } else { Share::Coils };
        let listed = geometry.voxels.is_some();
        let voxels = geometry.voxel_count();
        let (parts, layer) = parts_of(backends.len(), &ScanSize::lengths(geometry), options, exact);
        let count = if exact { voxels / layer } else { geometry.coils };
        if parts < 2 {
            return Ok(None);
        }
        let make_part = |range: Range<usize>, backend: Arc<B>| -> Result<Part<T, B>> {
            if share == Share::Coils {
                let maps = geometry.coil_maps.map(|m| &m[range.start * voxels..range.end * voxels]);
                let own = Geometry { coils: range.len(), coil_maps: maps, ..geometry.clone() };
                return Ok(Part { encoding: make(backend, &own)?, range, ramps: None });
            }
            let layers = range.clone();
            let range = range.start * layer..range.end * layer;
            let mut own = geometry.clone();
            own.voxels = lists_of(geometry, &range);
            own.field_map = geometry.field_map.map(|map| &map[range.clone()]);
            own.decay_map = geometry.decay_map.map(|map| &map[range.clone()]);
            let maps = geometry.coil_maps.map(|maps| maps_of(maps, voxels, &range)).transpose()?;
            own.coil_maps = maps.as_deref();
            let mut ramps = None;
            if !listed {
                let last = geometry.dims.len() - 1;
                own.dims[last] = layers.len();
                ramps = Some(ramps_of(&*backend, geometry.coordinates[last], geometry.dims[last], layers)?);
            }
            Ok(Part { encoding: make(backend, &own)?, range, ramps })
        };
        let parts: Vec<Part<T, B>> = std::thread::scope(|scope| {
            let make_part = &make_part;
            let made: Vec<_> = shares(count, parts)
                .zip(backends)
                .map(|(range, backend)| scope.spawn(move || make_part(range, backend.clone())))
                .collect();
            made.into_iter().map(join).collect::<Result<_>>()
        })?;
        let whole = if exact { Some(make(backends[0].clone(), geometry)?) } else { None };
        Ok(Some(Divided {
            share,
            parts,
            whole,
            dims: geometry.dims.clone(),
            listed,
            combined: geometry.coil_maps.is_some(),
            voxels,
            samples: geometry.samples(),
            coils: geometry.coils,
            exchange: Arc::default(),
        }))
    }

    /// A part after a change of the scan.
    fn changed_part(
        &self,
        part: &Part<T, B>,
        change: Change<'_, T>,
        options: &Options,
        chosen: (Option<OffResonanceRange>, Chosen),
    ) -> Result<Part<T, B>> {
        let gathered;
        let maps = match (change.coil_maps(), self.share) {
            (None, _) => None,
            (Some(maps), Share::Coils) => Some(&maps[part.range.start * self.voxels..part.range.end * self.voxels]),
            (Some(maps), Share::Voxels) => {
                gathered = maps_of(maps, self.voxels, &part.range)?;
                Some(&gathered[..])
            }
        };
        let mut ramps = part.ramps.clone();
        let own;
        let change = match (change, maps) {
            (Change::Trajectory(geometry), maps) => {
                let mut of_part = Geometry { coil_maps: maps, ..geometry.clone() };
                if self.share == Share::Voxels {
                    of_part.dims = part.encoding.dims.clone();
                    of_part.voxels = lists_of(geometry, &part.range);
                    of_part.field_map = geometry.field_map.map(|map| &map[part.range.clone()]);
                    of_part.decay_map = geometry.decay_map.map(|map| &map[part.range.clone()]);
                }
                if ramps.is_some() {
                    let last = self.dims.len() - 1;
                    let layer = self.voxels / self.dims[last];
                    let layers = part.range.start / layer..part.range.end / layer;
                    let k = geometry.coordinates[last];
                    ramps = Some(ramps_of(part.encoding.b(), k, self.dims[last], layers)?);
                }
                own = of_part;
                Change::Trajectory(&own)
            }
            (Change::CoilMaps(_), Some(maps)) => Change::CoilMaps(maps),
            (change, _) => change,
        };
        let encoding = part.encoding.with_change(change, options, chosen)?;
        Ok(Part { encoding, range: part.range.clone(), ramps })
    }

    fn first(&self) -> &Encoding<T, B> {
        &self.parts[0].encoding
    }

    /// What goes through Q, density weights, and all else that is not divided.
    fn undivided(&self) -> &Encoding<T, B> {
        self.whole.as_ref().unwrap_or_else(|| self.first())
    }

    fn images(&self) -> usize {
        if self.combined {
            1
        } else {
            self.coils
        }
    }

    /// Runs `f(part, its jobs)` side by side.
    fn each<J: Send, R: Send>(&self, jobs: Vec<J>, f: impl Fn(&Part<T, B>, J) -> Result<R> + Sync) -> Result<Vec<R>> {
        std::thread::scope(|scope| {
            let f = &f;
            let running: Vec<_> =
                self.parts.iter().zip(jobs).map(|(part, job)| scope.spawn(move || f(part, job))).collect();
            running.into_iter().map(join).collect()
        })
    }

    /// Adds the arrays of all parts on the first backend, in order.
    fn collect(&self, mut arrays: Vec<B::Array<Complex<T>>>) -> Result<B::Array<Complex<T>>> {
        let b = self.first().b();
        let rest = arrays.split_off(1);
        let mut sum = arrays.pop().expect("there is a part");
        for (part, array) in self.parts[1..].iter().zip(&rest) {
            let from = part.encoding.b();
            let view = from.view(array);
            let mut here = b.zeros::<Complex<T>>(view.len(), "a part's result")?;
            from.order_after(b);
            from.send(view, b, b.view_mut(&mut here));
            b.order_after(from);
            b.axpy(1.0, b.view(&here), b.view_mut(&mut sum));
        }
        // The parts' arrays may go when they have been sent.
        for part in &self.parts[1..] {
            part.encoding.b().wait()?;
        }
        Ok(sum)
    }

    fn deliver(&self, from: &B::Array<Complex<T>>, to: Sink<'_, Complex<T>>) -> Result<()> {
        let b = self.first().b();
        match to {
            Sink::Host(host) => b.download(b.view(from), host),
            Sink::Device(_) => on_device(),
        }
    }

    /// The parts' jobs where each part has its own range of the caller's arrays: `len` elements for each of its coils
    /// (or voxels) in `from`, all of it where None, and so in `to`; for each frame (or coil).
    fn jobs<'a>(
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
                let of = |(each, all): (usize, usize)| match each {
                    0 => i * all..(i + 1) * all,
                    _ => i * all + part.range.start * each..i * all + part.range.end * each,
                };
                jobs.push((from.part(of(from_len)), to.split_off(of(to_len).len())));
            }
        }
        jobs
    }

    /// The adjoint of one frame, in the memory of the first backend.
    fn adjoint_of_coils(
        &self,
        weighting: Weighting,
        kspace: Source<'_, Complex<T>>,
        image: ComplexesMut<B, T>,
    ) -> Result<()> {
        let mut host = try_vec(image.len(), Complex::default(), "an adjoint")?;
        self.adjoint(weighting, kspace, (&mut host).into())?;
        let b = self.undivided().b();
        let there = b.input((&host).into())?;
        b.copy(b.read(&there), image);
        b.wait()
    }

    /// y = E^H W E x for one image, in the memory of the first backend.
    fn apply_normal(&self, x: Complexes<B, T>, mut y: ComplexesMut<B, T>) -> Result<()> {
        if self.share == Share::Voxels || !self.combined {
            // Without maps every coil's image has the same operator: there is nothing to divide within one.
            return self.undivided().apply_normal(x, y);
        }
        let b = self.undivided().b();
        let mut exchange = self.exchange.lock().unwrap_or_else(|e| e.into_inner());
        if exchange.is_empty() {
            for part in &self.parts[1..] {
                let own = || part.encoding.b().zeros(self.voxels, "a direction");
                exchange.push([own()?, own()?, b.zeros(self.voxels, "a part's share")?]);
            }
        }
        for (part, [direction, ..]) in self.parts[1..].iter().zip(exchange.iter_mut()) {
            let own = part.encoding.b();
            // After all that was asked of the first before, the sums of the shares before among it.
            own.fetch(b, B::shorten(x), own.view_mut(direction));
        }
        // Asking takes time too, so that each part has a thread that does.
        std::thread::scope(|scope| {
            let ask = |(part, [direction, share, here]): (&'_ Part<T, B>, &'_ mut [B::Array<Complex<T>>; 3])| {
                let own = part.encoding.b();
                part.encoding.apply_normal(own.view(direction), own.view_mut(share))?;
                own.send(own.view(share), b, b.view_mut(here));
                Ok(())
            };
            let asking: Vec<_> =
                self.parts[1..].iter().zip(exchange.iter_mut()).map(|p| scope.spawn(move || ask(p))).collect();
            let mine = self.first().apply_normal(B::shorten(x), B::reborrow(&mut y));
            asking.into_iter().map(join).chain([mine]).collect::<Result<()>>()
        })?;
        for (part, [_, _, here]) in self.parts[1..].iter().zip(exchange.iter()) {
            b.order_after(part.encoding.b());
            b.axpy(1.0, b.view(here), B::reborrow(&mut y));
        }
        Ok(())
    }
}

fn join<R>(thread: std::thread::ScopedJoinHandle<'_, R>) -> R {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn on_device<A>() -> Result<A> {
    bail!(
        Unsupported,
        "arrays on a GPU were given to a plan on several: name one GPU, or give arrays in the host's memory"
    )
}

impl<T: Real, B: Backend<T>> Engine<T> for Divided<T, B> {
    fn info(&self) -> PlanInfo {
        let infos: Vec<PlanInfo> = self.parts.iter().map(|part| part.encoding.info()).collect();
        PlanInfo {
            device: infos.iter().map(|i| i.device.as_str()).collect::<Vec<_>>().join(", "),
            host_bytes: infos.iter().map(|i| i.host_bytes).sum(),
            device_bytes: infos.iter().map(|i| i.device_bytes).sum(),
            ..self.undivided().info()
        }
    }
    fn warning(&self) -> Option<Warning> {
        self.undivided().warning()
    }
    fn changed(&self, change: Change<'_, T>, options: &Options) -> Result<Box<dyn Engine<T>>> {
        let chosen = self.undivided().chosen_after(change, options)?;
        let jobs = vec![chosen.clone(); self.parts.len()];
        let parts = self.each(jobs, |part, chosen| self.changed_part(part, change, options, chosen))?;
        let whole = self.whole.as_ref().map(|whole| whole.with_change(change, options, chosen)).transpose()?;
        let samples = parts[0].encoding.samples;
        let (dims, exchange) = (self.dims.clone(), self.exchange.clone());
        Ok(try_box(Divided { parts, whole, dims, samples, exchange, ..*self }, "the plan")?)
    }
    fn first_exceeding(&self, values: Source<'_, Complex<T>>, limit: T) -> Result<Option<(usize, Complex<T>)>> {
        match values {
            Source::Host(values) => Ok(first_exceeding(self.workers(), values, limit)),
            Source::Device(_) => on_device(),
        }
    }
    fn workers(&self) -> &dyn Workers {
        self.undivided().b().workers()
    }
    fn check_memory(&self, bytes: usize, what: &str) -> Result<()> {
        self.undivided().check_memory(bytes, what)
    }
    fn wait(&self) -> Result<()> {
        self.parts.iter().map(|part| &part.encoding).chain(&self.whole).try_for_each(|all| all.b().wait())
    }
    fn forward(&self, image: Source<'_, Complex<T>>, kspace: Sink<'_, Complex<T>>) -> Result<()> {
        interrupt::check("a forward transform")?;
        let frame = self.samples * self.coils;
        let frames = kspace.len() / frame;
        if self.share == Share::Coils {
            let (each, all) = if self.combined { (0, self.voxels) } else { (self.voxels, self.voxels * self.coils) };
            let jobs = self.jobs(image, (each, all), kspace, (self.samples, frame), frames);
            self.each(jobs, |part, jobs| jobs.into_iter().try_for_each(|(x, s)| part.encoding.forward(x, s)))?;
            return Ok(());
        }
        // Every part's voxels make some of every sample.
        let images = frames * self.images();
        let each = kspace.len() / images;
        let partial = self.each(vec![(); self.parts.len()], |part, ()| {
            let b = part.encoding.b();
            let mut s = b.zeros::<Complex<T>>(kspace.len(), "a part's samples")?;
            for i in 0..images {
                let x = image.part(i * self.voxels + part.range.start..i * self.voxels + part.range.end);
                let samples = b.view_mut(&mut s).part(i * each..(i + 1) * each);
                part.encoding.forward(x, b.sink(samples))?;
            }
            let Some([_, ramp]) = part.ramps.as_deref() else { return Ok(s) };
            let mut moved = b.zeros::<Complex<T>>(kspace.len(), "modulated samples")?;
            b.multiply(b.view(&s), b.view(ramp), b.view_mut(&mut moved));
            Ok(moved)
        })?;
        self.deliver(&self.collect(partial)?, kspace)
    }
    fn adjoint(&self, weighting: Weighting, kspace: Source<'_, Complex<T>>, image: Sink<'_, Complex<T>>) -> Result<()> {
        if let (Weighting::Gridding | Weighting::Backprojection(_), Some(whole)) = (weighting, &self.whole) {
            // Density weights belong to the whole image.
            return whole.adjoint(weighting, kspace, image);
        }
        interrupt::check("an adjoint transform")?;
        let frame = self.samples * self.coils;
        let frames = kspace.len() / frame;
        match self.share {
            Share::Coils if !self.combined => {
                let jobs =
                    self.jobs(kspace, (self.samples, frame), image, (self.voxels, self.voxels * self.coils), frames);
                self.each(jobs, |part, jobs| {
                    jobs.into_iter().try_for_each(|(d, x)| part.encoding.adjoint(weighting, d, x))
                })?;
                Ok(())
            }
            Share::Coils => {
                let partial = self.each(vec![(); self.parts.len()], |part, ()| {
                    let b = part.encoding.b();
                    let mut x = b.zeros::<Complex<T>>(self.voxels * frames, "a part's images")?;
                    for f in 0..frames {
                        let own =
                            f * frame + part.range.start * self.samples..f * frame + part.range.end * self.samples;
                        let image = b.view_mut(&mut x).part(f * self.voxels..(f + 1) * self.voxels);
                        part.encoding.adjoint(weighting, kspace.part(own), b.sink(image))?;
                    }
                    Ok(x)
                })?;
                self.deliver(&self.collect(partial)?, image)
            }
            Share::Voxels => {
                let images = frames * self.images();
                let each = kspace.len() / images;
                let jobs = self.jobs(kspace, (0, each), image, (1, self.voxels), images);
                self.each(jobs, |part, jobs| {
                    jobs.into_iter().try_for_each(|(d, x)| match part.ramps.as_deref() {
                        None => part.encoding.adjoint(weighting, d, x),
                        Some([ramp, _]) => {
                            let b = part.encoding.b();
                            let d = b.input(d)?;
                            let mut moved = b.zeros::<Complex<T>>(each, "modulated samples")?;
                            b.multiply(b.read(&d), b.view(ramp), b.view_mut(&mut moved));
                            part.encoding.adjoint(weighting, b.source(b.view(&moved)), x)
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
    fn prepare_normal(&self) -> Result<()> {
        match &self.whole {
            Some(whole) => whole.prepare_normal(),
            None => self.each(vec![(); self.parts.len()], |part, ()| part.encoding.prepare_normal()).map(|_| ()),
        }
    }
    fn normal(&self, x: Source<'_, Complex<T>>, y: Sink<'_, Complex<T>>) -> Result<()> {
        normal_of_images(self.undivided().b(), self.voxels, x, y, |x, y| self.apply_normal(x, y))
    }
    fn mean_diagonal(&self) -> Result<f64> {
        match &self.whole {
            Some(whole) => whole.mean_diagonal(),
            None => {
                let parts = self.parts.iter().map(|part| part.encoding.map_energies());
                Ok(self.first().weight_sum()
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
        match &self.whole {
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
            listed: self.listed,
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

    /// Every operation of a scan divided among three backends, beside the same on one.
    fn check(dims: &[usize], coils: usize, maps: bool, listed: bool, exact: bool, field: bool) {
        let mut next = random(dims.iter().sum::<usize>() as u64 + coils as u64);
        let mut complexes = |n: usize| -> Vec<Complex<f64>> { (0..n).map(|_| Complex::new(next(), next())).collect() };
        let (samples, frames) = (150, 2);
        let voxels = if listed { 70 } else { dims.iter().product() };
        let all_maps = complexes(voxels * coils);
        let images = if maps { 1 } else { coils };
        let (data, image) = (complexes(samples * coils * frames), complexes(voxels * images * frames));
        let k: Vec<Vec<f64>> = (0..dims.len()).map(|_| complexes(samples).iter().map(|z| z.re).collect()).collect();
        let r: Vec<Vec<f64>> =
            (0..dims.len()).map(|_| complexes(voxels).iter().map(|z| 20.0 * z.re).collect()).collect();
        let weights: Vec<f64> = complexes(samples).iter().map(|z| z.re + 0.7).collect();
        let k: Vec<&[f64]> = k.iter().map(|k| &k[..]).collect();
        let mut geometry = Geometry::new(dims, &k).coils(coils).weights(&weights);
        geometry.frames = frames;
        geometry.coil_maps = maps.then_some(&all_maps);
        geometry.voxels = listed.then(|| r.iter().map(|r| &r[..]).collect());
        let frequencies: Vec<f64> = complexes(voxels).iter().map(|z| 100.0 * z.re).collect();
        let rates: Vec<f64> = complexes(voxels).iter().map(|z| 20.0 * (z.re + 0.5)).collect();
        let times: Vec<f64> = complexes(samples).iter().map(|z| 0.02 * (z.re + 0.5)).collect();
        if field {
            geometry = geometry.field_map(&frequencies, &times);
            geometry.decay_map = Some(&rates);
        }
        let options = Options { tolerance: if exact { 0.0 } else { 1e-9 }, ..Options::default() };
        let backends = [1, 1, 2].map(|threads| Arc::new(Cpu::new(threads, Simd::Auto).unwrap()));
        let size = ScanSize::with_band(&*backends[0], &geometry).unwrap();
        let chosen = Chosen::new::<f64, Cpu>(&backends[0], &size, &options, exact).unwrap();
        let make = |b, g: &Geometry<'_, f64>| Encoding::new(b, g, size.band, &options, chosen.clone());
        let one = make(backends[0].clone(), &geometry).unwrap();
        let divided = Divided::new(&backends, &geometry, &options, make, exact).unwrap().expect("three parts");
        assert_eq!(divided.parts.len(), 3);
        let mut engines: [Box<dyn Engine<f64>>; 2] = [Box::new(one), Box::new(divided)];
        // As they are made, and after every kind of change.
        let other = complexes(samples);
        let k: [Vec<f64>; 3] = [0.9, -0.7, 0.5].map(|scale| other.iter().map(|z| scale * z.re).collect());
        let k: Vec<&[f64]> = k.iter().take(dims.len()).map(|k| &k[..]).collect();
        let other_maps = complexes(voxels * coils);
        let along = Geometry { coordinates: k, coil_maps: maps.then_some(&other_maps[..]), ..geometry.clone() };
        let mut changes = vec![Change::Trajectory(&along), Change::Weights(None)];
        if maps {
            changes.push(Change::CoilMaps(&all_maps));
        }
        compare(&engines, &data, &image, images * frames, listed, dims);
        for change in changes {
            engines = engines.map(|engine| engine.changed(change, &options).unwrap());
            compare(&engines, &data, &image, images * frames, listed, dims);
        }
    }

    /// Every operation of one engine, beside the same of another.
    fn compare(
        engines: &[Box<dyn Engine<f64>>; 2],
        data: &[Complex<f64>],
        image: &[Complex<f64>],
        images: usize,
        listed: bool,
        dims: &[usize],
    ) {
        let results = engines.each_ref().map(|e| {
            let poison = Complex::new(f64::NAN, f64::NAN);
            let mut out = vec![vec![poison; image.len()]; 5];
            let mut forward = vec![poison; data.len()];
            e.adjoint(Weighting::None, data.into(), (&mut out[0]).into()).unwrap();
            e.adjoint(Weighting::Given, data.into(), (&mut out[1]).into()).unwrap();
            e.adjoint(Weighting::Gridding, data.into(), (&mut out[2]).into()).unwrap();
            if !listed {
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
    fn parts_make_the_whole() {
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
