//! The CUDA backend: arrays are in GPU memory, and primitives are kernels queued on a stream.
//!
//! The kernel sources are in kernels/. `compile` compiles them, `runtime` loads and launches them, `memory` and `gpu`
//! are a plan's arrays and queue. Each kernel file has a module with its launches: `vector`, `sort`, `gridding`, `fft`,
//! `direct`, `backprojection`, `off_resonance`. `gridding_config` chooses the parameters of the kernels for gridding.
//! `graph` queues repeated sequences of kernels at once. `cost` is the cost model for the selection of a grid.

mod backprojection;
mod bins;
pub mod compile;
mod contexts;
mod copies;
mod cost;
pub mod direct;
pub mod fft;
pub mod gpu;
mod graph;
pub mod gridding;
mod gridding_config;
mod host_word;
pub mod kernel_check;
mod launch;
pub mod library;
pub mod memory;
mod memory_cache;
pub mod nvrtc;
mod off_resonance;
mod pending_word;
#[cfg(all(target_os = "linux", target_env = "gnu", not(test)))]
mod process_end;
pub mod runtime;
mod sample_sort;
mod sample_sort_config;
mod sort;
mod staging;
mod transfer;
mod vector;

use super::spectral_sums::{SpectralSums, SpectralWindow};
use super::{
    convolve_coil_images, Backend, ChebyshevSeries, Complexes, ComplexesMut, Csr, DeviceSlice, DeviceSliceMut, Element,
    MapPresence, Reals, Sink, Source, Span, Spoke, ValueCheck,
};
use crate::base::error::Result;
use crate::base::geometry::CheckedValues;
use crate::base::input_check::PendingCheck;
use crate::base::interrupt;
use crate::base::off_resonance::OffResonance;
use crate::base::real::Real;
use crate::base::workers::Workers;
use backprojection::Backprojector;
use direct::DirectSum;
use fft::{Convolver, GridFft};
use gpu::Gpu;
use graph::{Sequence, SequenceKind};
use gridding::Gridder;
use kernel_check::CheckArguments;
use memory::DeviceArray;
use num_complex::Complex;
use pending_word::PendingWord;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::Range;
use transfer::{Input, Output};
use vector::Vectors;

/// Returns the kernels that plans usually need, for precompiled folders. Other sizes are compiled on first use.
pub fn usual_kernels() -> Vec<compile::Kernels> {
    let mut all = vec![vector::kernels(4), vector::kernels(8)];
    all.extend([4, 8].map(backprojection::kernels));
    all.extend([4, 8].map(off_resonance::kernels));
    all.extend(gridding_config::usual_kernels());
    all.extend(fft::usual_kernels());
    all.extend(direct::usual_kernels());
    all
}

pub use contexts::{free_memory, release_unused};
pub use cost::call as call_cost;
pub use gridding_config::kernels_of_width;

/// One GPU, in one precision.
pub struct Cuda<T: Real> {
    gpu: Gpu,
    vectors: Vectors,
    precision: PhantomData<T>,
}

impl<T: Real> Cuda<T> {
    /// Opens GPU `index`, with a new stream or the caller's. At most `threads` threads of the CPU copy and check arrays
    /// of the host; 0 means as many as the machine runs at once.
    ///
    /// # Errors
    /// `NoDevice` without a driver or this GPU; `DriverIncomplete` if kernels are neither cached nor can be compiled.
    ///
    /// # Safety
    /// The caller's stream belongs to the GPU's primary context and outlives this.
    pub unsafe fn new(index: u32, stream: Option<*mut c_void>, threads: usize) -> Result<Self> {
        // SAFETY: the caller's promise.
        let gpu = unsafe { Gpu::new(index, stream, threads) }?;
        let vectors = Vectors::new::<T>(&gpu)?;
        Ok(Cuda { gpu, vectors, precision: PhantomData })
    }
}

/// Enables direct copies between GPUs that share work.
pub fn link<T: Real>(all: &[Cuda<T>]) -> Result<()> {
    for (i, one) in all.iter().enumerate() {
        for other in all[i + 1..].iter().filter(|other| other.gpu.index() != one.gpu.index()) {
            one.gpu.link(&other.gpu)?;
        }
    }
    Ok(())
}

/// Prints that there is no GPU for a test, bypassing the test harness, which hides the output of passed tests.
#[cfg(test)]
fn skipped(what: &str) {
    use std::io::Write;
    writeln!(std::io::stderr(), "skipped: {what} (no GPU)").expect("a line on the standard error stream");
}

impl<T: Real> Backend<T> for Cuda<T> {
    type Array<E: Element> = DeviceArray<E>;
    type View<'a, E: Element> = DeviceSlice<'a, E>;
    type ViewMut<'a, E: Element> = DeviceSliceMut<'a, E>;
    type Input<'a, E: Element> = Input<'a, E>;
    type Output<'a, E: Element> = Output<'a, E>;
    type Gridder = Gridder<T>;
    type GridFft = GridFft<T>;
    type Convolver = Convolver<T>;
    type DirectSum = DirectSum<T>;
    type Backprojector = Backprojector<T>;
    type PendingScalar = PendingWord;

    fn zeros<E: Element>(&self, len: usize, what: &str) -> Result<DeviceArray<E>> {
        self.gpu.zeros(len, what)
    }
    fn unwritten<E: Element>(&self, len: usize, what: &str) -> Result<DeviceArray<E>> {
        self.gpu.array(len, what)
    }
    fn upload<E: Element>(&self, host: &[E], what: &str) -> Result<DeviceArray<E>> {
        self.gpu.send(host, what)
    }
    fn view<'a, E: Element>(&self, array: &'a DeviceArray<E>) -> DeviceSlice<'a, E> {
        array.view()
    }
    fn view_mut<'a, E: Element>(&self, array: &'a mut DeviceArray<E>) -> DeviceSliceMut<'a, E> {
        array.view_mut()
    }
    fn shorten<'s, 'a: 's, E: Element>(view: DeviceSlice<'a, E>) -> DeviceSlice<'s, E> {
        view
    }
    fn as_view<'s, E: Element>(view: &'s DeviceSliceMut<'_, E>) -> DeviceSlice<'s, E> {
        view.as_slice()
    }
    fn reborrow<'s, E: Element>(view: &'s mut DeviceSliceMut<'_, E>) -> DeviceSliceMut<'s, E> {
        view.reborrow()
    }
    fn download<E: Element>(&self, from: DeviceSlice<'_, E>, host: &mut [E]) -> Result<()> {
        self.gpu.download(from, host)
    }
    fn input<'a, E: Element>(&self, source: Source<'a, E>) -> Result<Input<'a, E>> {
        Ok(match source {
            // SAFETY: each operation of a plan waits before it returns the caller's arrays, in `deliver` or after a
            // failure (see `PlanCall` in src/plan/state.rs).
            Source::Host(host) => Input::Copied(unsafe { self.gpu.copy_in(host, "the caller's array") }?),
            Source::Device(slice) => Input::InPlace(slice),
        })
    }
    fn read<'s, E: Element>(&self, input: &'s Input<'_, E>) -> DeviceSlice<'s, E> {
        input.view()
    }
    fn output<'a, E: Element>(&self, sink: Sink<'a, E>) -> Result<Output<'a, E>> {
        Ok(match sink {
            Sink::Host(host) => {
                Output::Copied { array: self.gpu.array(host.len(), "the caller's array")?, host, ready: None }
            }
            Sink::Device(slice) => Output::InPlace(slice),
        })
    }
    fn write<'s, E: Element>(&self, output: &'s mut Output<'_, E>) -> DeviceSliceMut<'s, E> {
        output.view_mut()
    }
    fn mark_ready<E: Element>(&self, output: &mut Output<'_, E>) -> Result<()> {
        if let Output::Copied { ready, .. } = output {
            *ready = Some(self.gpu.mark()?);
        }
        Ok(())
    }
    fn deliver<E: Element>(&self, output: Output<'_, E>) -> Result<()> {
        match output {
            Output::Copied { array, host, ready } => self.gpu.copy_out(array.view(), host, ready),
            Output::InPlace(_) => self.gpu.finish(),
        }
    }
    fn source<'a, E: Element + 'a>(&self, view: DeviceSlice<'a, E>) -> Source<'a, E> {
        Source::Device(view)
    }
    fn sink<'a, E: Element + 'a>(&self, view: DeviceSliceMut<'a, E>) -> Sink<'a, E> {
        Sink::Device(view)
    }
    fn fetch<E: Element>(&self, from: &Self, x: DeviceSlice<'_, E>, y: DeviceSliceMut<'_, E>) {
        self.gpu.order_after(&from.gpu);
        self.gpu.copy_between(&from.gpu, x, &self.gpu, y);
    }
    fn send<E: Element>(&self, x: DeviceSlice<'_, E>, to: &Self, y: DeviceSliceMut<'_, E>) {
        self.gpu.copy_between(&self.gpu, x, &to.gpu, y);
    }
    fn order_after(&self, other: &Self) {
        self.gpu.order_after(&other.gpu);
    }
    fn wait(&self) -> Result<()> {
        self.gpu.synchronize()
    }
    fn spectral_sums(
        &self,
        k: &[Reals<Self, T>],
        weights: DeviceSlice<'_, T>,
        largest: f64,
        windows: &[SpectralWindow],
    ) -> Option<Result<SpectralSums>> {
        Some(self.vectors.spectral_sums(&self.gpu, k, weights, largest, windows))
    }
    fn first_exceeding(&self, values: Complexes<Self, T>, limit: T) -> Result<Option<(usize, Complex<T>)>> {
        self.vectors.first_exceeding(&self.gpu, values, limit)
    }
    fn begin_check(
        &self,
        values: Complexes<Self, T>,
        limit: T,
        at_once: bool,
    ) -> Result<Option<Box<dyn PendingCheck>>> {
        self.vectors.begin_check(&self.gpu, values, limit, at_once)
    }
    fn check_address(&self, address: usize) -> Result<()> {
        self.gpu.check_address(address)
    }
    fn check_values(
        &self,
        checks: &mut [ValueCheck<Reals<'_, Self, T>, DeviceSliceMut<'_, T>>],
    ) -> Result<Vec<CheckedValues<T>>> {
        self.vectors.check_values(&self.gpu, checks)
    }
    fn is_gpu(&self) -> bool {
        true
    }
    fn workers(&self) -> &dyn Workers {
        self.gpu.threads()
    }
    fn threads(&self) -> usize {
        1
    }
    fn device_name(&self) -> String {
        format!("cuda {}: {}", self.gpu.index(), self.gpu.properties().name)
    }
    fn simd_name(&self) -> &'static str {
        "none"
    }
    fn device_bytes(&self) -> usize {
        self.gpu.held()
    }
    fn batch_bytes(&self) -> usize {
        self.gpu.properties().cache
    }
    fn transform_cost(&self, grid: &[usize], dims: &[usize], samples: usize, width: usize) -> f64 {
        cost::transform(grid, dims, samples, width, size_of::<T>())
    }
    fn largest_oversampling(&self) -> f64 {
        cost::LARGEST_OVERSAMPLING
    }
    fn convolution_cost(&self, dims: &[usize]) -> f64 {
        cost::convolution(dims, size_of::<T>())
    }

    fn prepare(&self, dims: &[usize], grid: &[usize], taps: &[Vec<f64>], samples: usize) {
        let properties = self.gpu.properties();
        let mut kernels = gridding_config::plan_kernels::<T>(properties, grid, taps, samples);
        kernels.extend(fft::plan_kernels::<T>(properties, dims, grid));
        self.gpu.load(&kernels);
    }
    fn gridder(
        &self,
        k: &[Reals<Self, T>],
        grid: &[usize],
        taps: &[Vec<f64>],
        arrays: usize,
        previous: Option<&Gridder<T>>,
        meanwhile: impl FnOnce() -> Result<()>,
    ) -> Result<Gridder<T>> {
        Gridder::new(&self.gpu, k, grid, taps, arrays, previous, meanwhile)
    }
    fn gridder_bytes(&self, samples: usize, grid: &[usize], width: usize, arrays: usize) -> usize {
        Gridder::<T>::bytes(self.gpu.properties(), samples, grid, width, arrays)
    }
    fn spread(&self, g: &Gridder<T>, values: Complexes<Self, T>, grid: ComplexesMut<Self, T>) {
        g.spread(&self.gpu, values, grid, CheckArguments::NONE);
    }
    fn interpolate(&self, g: &Gridder<T>, grid: Complexes<Self, T>, values: ComplexesMut<Self, T>) {
        g.interpolate(&self.gpu, grid, values, CheckArguments::NONE);
    }
    fn samples_to_image(
        &self,
        g: &Gridder<T>,
        f: &GridFft<T>,
        values: Complexes<Self, T>,
        mut grid: ComplexesMut<Self, T>,
        mut image: ComplexesMut<Self, T>,
    ) -> Result<()> {
        interrupt::check("an adjoint transform")?;
        let sequence = Sequence::new(SequenceKind::Adjoint).with(f.id()).reads(&values).writes(&grid).writes(&image);
        g.graphs().queue(&self.gpu, sequence, |gpu| {
            g.spread(gpu, values, grid.reborrow(), CheckArguments::of_input());
            f.grid_to_image(gpu, grid.reborrow(), image.reborrow(), CheckArguments::of_output());
        });
        Ok(())
    }
    fn image_to_samples(
        &self,
        g: &Gridder<T>,
        f: &GridFft<T>,
        image: Complexes<Self, T>,
        mut grid: ComplexesMut<Self, T>,
        mut values: ComplexesMut<Self, T>,
    ) -> Result<()> {
        interrupt::check("a forward transform")?;
        let sequence = Sequence::new(SequenceKind::Forward).with(f.id()).reads(&image).writes(&grid).writes(&values);
        g.graphs().queue(&self.gpu, sequence, |gpu| {
            let mut check = CheckArguments::of_input();
            if check.exists() && !f.can_check(image) {
                self.vectors.check_input(gpu, image, std::mem::replace(&mut check, CheckArguments::NONE));
            }
            f.image_to_grid(gpu, image, grid.reborrow(), check);
            g.interpolate(gpu, grid.as_slice(), values.reborrow(), CheckArguments::of_output());
        });
        Ok(())
    }

    fn grid_fft(&self, dims: &[usize], grid: &[usize], correction: &[Vec<f64>]) -> Result<GridFft<T>> {
        GridFft::new(&self.gpu, dims, grid, correction)
    }
    fn grid_fft_bytes(&self, grid: &[usize]) -> usize {
        // Roots of unity and corrections per axis.
        grid.iter().fold(0, |sum, n| n.saturating_mul(3 * size_of::<Complex<T>>()).saturating_add(sum))
    }
    fn grid_to_image(&self, f: &GridFft<T>, grid: ComplexesMut<Self, T>, image: ComplexesMut<Self, T>) {
        f.grid_to_image(&self.gpu, grid, image, CheckArguments::NONE);
    }
    fn image_to_grid(&self, f: &GridFft<T>, image: Complexes<Self, T>, grid: ComplexesMut<Self, T>) {
        f.image_to_grid(&self.gpu, image, grid, CheckArguments::NONE);
    }

    fn convolver(&self, dims: &[usize], kernels: usize) -> Result<Convolver<T>> {
        Convolver::new(&self.gpu, dims, kernels)
    }
    fn kernel_grid(&self, c: &Convolver<T>) -> Result<DeviceArray<Complex<T>>> {
        self.gpu.zeros(c.kernel_len(), "the doubled grid of Q")
    }
    fn place_kernel(&self, c: &Convolver<T>, half: [bool; 3], q: Complexes<Self, T>, grid: ComplexesMut<Self, T>) {
        c.place_kernel(&self.gpu, half, q, grid);
    }
    fn set_kernel(&self, c: &mut Convolver<T>, kernel: usize, grid: ComplexesMut<Self, T>) {
        c.set_kernel(&self.gpu, kernel, grid);
    }
    fn spectrum(&self, c: &Convolver<T>, kernel: usize) -> Result<Vec<T>> {
        c.spectrum(&self.gpu, kernel)
    }
    fn set_spectrum(&self, c: &mut Convolver<T>, kernel: usize, spectrum: &[T]) -> Result<()> {
        c.set_spectrum(&self.gpu, kernel, spectrum)
    }
    fn convolver_bytes(&self, dims: &[usize], kernels: usize) -> usize {
        Convolver::<T>::bytes(dims, kernels)
    }
    fn convolve(&self, c: &Convolver<T>, kernels: Range<usize>, x: Complexes<Self, T>, mut y: ComplexesMut<Self, T>) {
        let [start, end] = [kernels.start, kernels.end].map(|kernel| kernel as u64);
        let sequence = Sequence::new(SequenceKind::Convolution).with(start).with(end).reads(&x).writes(&y);
        c.graphs().queue(&self.gpu, sequence, |gpu| c.convolve(gpu, kernels.clone(), x, y.reborrow()));
    }
    fn convolve_coils(
        &self,
        c: &Convolver<T>,
        maps: Complexes<Self, T>,
        x: Complexes<Self, T>,
        [images, mut products]: [ComplexesMut<Self, T>; 2],
        mut y: ComplexesMut<Self, T>,
    ) {
        if !c.has_coils() {
            return convolve_coil_images(self, c, maps, x, [images, products], y);
        }
        let arrays = Sequence::new(SequenceKind::CoilConvolution).reads(&maps).reads(&x);
        c.graphs().queue(&self.gpu, arrays.writes(&products).writes(&y), |gpu| {
            let is_added = c.convolve_coils(gpu, maps, x, products.reborrow(), y.reborrow());
            if !is_added {
                self.vectors.add_conj_products(gpu, maps, products.as_slice(), y.reborrow());
            }
        });
    }

    fn direct_sum(
        &self,
        k: &[&[T]],
        dims: &[usize],
        voxels: Option<&[&[T]]>,
        off_resonance: Option<OffResonance<'_, T>>,
        tolerance: f64,
    ) -> Result<DirectSum<T>> {
        DirectSum::new(&self.gpu, k, dims, voxels, off_resonance, tolerance)
    }
    fn direct_sum_bytes(&self, samples: usize, dims: &[usize], listed: Option<usize>, maps: MapPresence) -> usize {
        // A size that is too large is an error of plan creation.
        DirectSum::<T>::bytes(&self.gpu, samples, dims, listed, maps).unwrap_or(usize::MAX)
    }
    fn sum_to_image(&self, d: &DirectSum<T>, values: Complexes<Self, T>, image: ComplexesMut<Self, T>) -> Result<()> {
        d.to_image(&self.gpu, values, image);
        Ok(())
    }
    fn sum_to_samples(&self, d: &DirectSum<T>, image: Complexes<Self, T>, values: ComplexesMut<Self, T>) -> Result<()> {
        d.to_samples(&self.gpu, image, values);
        Ok(())
    }

    fn backprojector(
        &self,
        spokes: &[Spoke],
        readout: usize,
        dims: &[usize],
        arrays: usize,
    ) -> Result<Backprojector<T>> {
        Backprojector::new(&self.gpu, spokes, readout, dims, arrays)
    }
    fn backprojector_bytes(&self, _readout: usize, dims: &[usize], arrays: usize) -> usize {
        Backprojector::<T>::bytes(dims, arrays)
    }
    fn backprojection_buffer_len(&self, p: &Backprojector<T>) -> usize {
        p.room()
    }
    fn backproject(
        &self,
        p: &Backprojector<T>,
        values: Complexes<Self, T>,
        room: ComplexesMut<Self, T>,
        image: ComplexesMut<Self, T>,
    ) {
        p.backproject(&self.gpu, values, room, image);
    }

    fn copy<E: Element>(&self, x: DeviceSlice<'_, E>, y: DeviceSliceMut<'_, E>) {
        self.gpu.copy(x, y);
    }
    fn clear<E: Element>(&self, y: DeviceSliceMut<'_, E>) {
        self.gpu.clear(y);
    }
    fn multiply(&self, x: Complexes<Self, T>, y: Complexes<Self, T>, z: ComplexesMut<Self, T>) {
        self.vectors.multiply(&self.gpu, x, y, z);
    }
    fn add_conj_products(&self, x: Complexes<Self, T>, y: Complexes<Self, T>, z: ComplexesMut<Self, T>) {
        self.vectors.add_conj_products(&self.gpu, x, y, z);
    }
    fn apply_weights(&self, w: Reals<Self, T>, x: Complexes<Self, T>, z: ComplexesMut<Self, T>) {
        self.vectors.apply_weights(&self.gpu, w, x, z);
    }
    fn ramp(&self, k: &[Reals<Self, T>], shift: &[f64], w: Option<Reals<Self, T>>, out: ComplexesMut<Self, T>) {
        self.vectors.ramp(&self.gpu, k, shift, w, out);
    }
    fn voxel_waves(
        &self,
        frequencies: Reals<Self, T>,
        decay: Option<Reals<Self, T>>,
        max_rate: f64,
        origin: f64,
        nodes: &[f64],
    ) -> Result<DeviceArray<Complex<T>>> {
        off_resonance::voxel_waves(&self.gpu, frequencies, decay, max_rate, origin, nodes)
    }
    fn sample_waves(
        &self,
        times: Reals<Self, T>,
        series: ChebyshevSeries<'_>,
        frequency: f64,
    ) -> Result<DeviceArray<Complex<T>>> {
        off_resonance::sample_waves(&self.gpu, times, series, frequency)
    }
    fn series_values(
        &self,
        times: Reals<Self, T>,
        series: ChebyshevSeries<'_>,
        function: usize,
        w: Option<Reals<Self, T>>,
    ) -> Result<DeviceArray<T>> {
        off_resonance::series_values(&self.gpu, times, series, function, w)
    }
    fn axpy(&self, a: f64, x: Complexes<Self, T>, y: ComplexesMut<Self, T>) {
        self.vectors.axpy(&self.gpu, a, x, y);
    }
    fn dot(&self, x: Complexes<Self, T>, y: Complexes<Self, T>, out: DeviceSliceMut<'_, f64>) {
        self.vectors.dot(&self.gpu, x, y, out);
    }
    fn begin_read(&self, x: DeviceSlice<'_, f64>) -> Result<PendingWord> {
        self.vectors.begin_read(&self.gpu, x)
    }
    fn finish_read(&self, mut scalar: PendingWord) -> Result<f64> {
        let value = f64::from_bits(scalar.read()?);
        self.gpu.check_queued()?;
        Ok(value)
    }
    fn cg_step(
        &self,
        rr: DeviceSlice<'_, f64>,
        pq: DeviceSlice<'_, f64>,
        p: Complexes<Self, T>,
        q: Complexes<Self, T>,
        x: ComplexesMut<Self, T>,
        r: ComplexesMut<Self, T>,
        rr_new: DeviceSliceMut<'_, f64>,
    ) {
        self.vectors.cg_step(&self.gpu, [rr, pq], [p, q], [x, r], rr_new);
    }
    fn subtract_projections(
        &self,
        v: Complexes<Self, T>,
        norms: &[f64],
        x: ComplexesMut<Self, T>,
        xx: DeviceSliceMut<'_, f64>,
    ) {
        self.vectors.subtract_projections(&self.gpu, v, norms, x, xx);
    }
    fn cg_direction(
        &self,
        rr_new: DeviceSlice<'_, f64>,
        rr: DeviceSlice<'_, f64>,
        r: Complexes<Self, T>,
        p: ComplexesMut<Self, T>,
    ) {
        self.vectors.cg_direction(&self.gpu, rr_new, rr, r, p);
    }
    fn add_differences(
        &self,
        dims: &[usize],
        weights: Option<Reals<Self, T>>,
        lambda: f64,
        x: Complexes<Self, T>,
        y: ComplexesMut<Self, T>,
    ) {
        self.vectors.add_differences(&self.gpu, dims, weights, lambda, x, y);
    }
    fn csr_multiply(&self, a: f64, matrix: Csr<Self, T>, x: Complexes<Self, T>, b: f64, y: ComplexesMut<Self, T>) {
        self.vectors.csr_multiply(&self.gpu, a, ([matrix.rows, matrix.columns], matrix.values), x, b, y);
    }
}
