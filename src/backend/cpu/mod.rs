//! The CPU backend: arrays are vectors, views are slices, and the plan's threads share the work.

mod array_tasks;
mod backprojection;
pub mod cost;
mod device;
pub mod direct;
pub mod fft;
pub mod gridding;
mod off_resonance;
mod reached_columns;
pub mod simd;
mod vector;

use super::{Backend, ChebyshevSeries, Csr, Element, MapPresence, Sink, Source, Spoke, ValueCheck};
use crate::base::error::{bail, Result};
use crate::base::fft_size::GridSizes;
use crate::base::geometry::{first_exceeding, CheckedValues};
use crate::base::interrupt;
use crate::base::memory::{Aligned, ALWAYS_FRESH};
use crate::base::off_resonance::OffResonance;
use crate::base::real::narrow;
use crate::base::sizes::product;
use crate::base::warning::Warning;
use crate::base::workers::{SharedSlice, Workers};
use array_tasks::{each_array, is_task_per_array};
use backprojection::Backprojector;
pub use device::Cpu;
use direct::DirectSum;
use fft::convolver::Convolver;
use fft::GridFft;
use gridding::Gridder;
use num_complex::Complex;
use simd::SimdReal;
use std::ops::Range;
use vector::each_chunk;

/// Returns the error for an array on a GPU.
fn device_array_error<A>() -> Result<A> {
    bail!(
        Unsupported,
        "arrays on a GPU were given to a plan on the CPU: create the plan with device cuda, or give arrays in host \
         memory"
    )
}

impl<T: SimdReal> Backend<T> for Cpu {
    type Array<E: Element> = Aligned<E>;
    type View<'a, E: Element> = &'a [E];
    type ViewMut<'a, E: Element> = &'a mut [E];
    type Input<'a, E: Element> = &'a [E];
    type Output<'a, E: Element> = &'a mut [E];
    type Gridder = Gridder<T>;
    type GridFft = GridFft<T>;
    type Convolver = Convolver<T>;
    type DirectSum = DirectSum<T>;
    type Backprojector = Backprojector<T>;
    type PendingScalar = f64;

    fn zeros<E: Element>(&self, len: usize, what: &str) -> Result<Aligned<E>> {
        // Several threads clear memory faster than one. A single thread need not clear fresh pages.
        if self.threads.count() == 1 || len.saturating_mul(size_of::<E>()) >= ALWAYS_FRESH {
            return Aligned::zeros(len, what);
        }
        let mut array = Aligned::unwritten(len, what)?;
        vector::clear(self, &mut array);
        Ok(array)
    }
    fn unwritten<E: Element>(&self, len: usize, what: &str) -> Result<Aligned<E>> {
        Aligned::unwritten(len, what)
    }
    fn upload<E: Element>(&self, host: &[E], what: &str) -> Result<Aligned<E>> {
        let mut array = Aligned::unwritten(host.len(), what)?;
        vector::copy(self, host, &mut array);
        Ok(array)
    }
    fn view<'a, E: Element>(&self, array: &'a Aligned<E>) -> &'a [E] {
        array
    }
    fn view_mut<'a, E: Element>(&self, array: &'a mut Aligned<E>) -> &'a mut [E] {
        array
    }
    fn shorten<'s, 'a: 's, E: Element>(view: &'a [E]) -> &'s [E] {
        view
    }
    fn as_view<'s, E: Element>(view: &'s &mut [E]) -> &'s [E] {
        view
    }
    fn reborrow<'s, E: Element>(view: &'s mut &mut [E]) -> &'s mut [E] {
        view
    }
    fn download<E: Element>(&self, from: &[E], host: &mut [E]) -> Result<()> {
        vector::copy(self, from, host);
        Ok(())
    }
    fn input<'a, E: Element>(&self, source: Source<'a, E>) -> Result<&'a [E]> {
        match source {
            Source::Host(host) => Ok(host),
            Source::Device(_) => device_array_error(),
        }
    }
    fn read<'s, E: Element>(&self, input: &'s &[E]) -> &'s [E] {
        input
    }
    fn output<'a, E: Element>(&self, sink: Sink<'a, E>) -> Result<&'a mut [E]> {
        match sink {
            Sink::Host(host) => Ok(host),
            Sink::Device(_) => device_array_error(),
        }
    }
    fn write<'s, E: Element>(&self, output: &'s mut &mut [E]) -> &'s mut [E] {
        output
    }
    fn mark_ready<E: Element>(&self, _output: &mut &mut [E]) -> Result<()> {
        Ok(())
    }
    fn deliver<E: Element>(&self, _output: &mut [E]) -> Result<()> {
        Ok(())
    }
    fn source<'a, E: Element + 'a>(&self, view: &'a [E]) -> Source<'a, E> {
        Source::Host(view)
    }
    fn sink<'a, E: Element + 'a>(&self, view: &'a mut [E]) -> Sink<'a, E> {
        Sink::Host(view)
    }
    fn fetch<E: Element>(&self, _from: &Self, x: &[E], y: &mut [E]) {
        vector::copy(self, x, y);
    }
    fn send<E: Element>(&self, x: &[E], _to: &Self, y: &mut [E]) {
        vector::copy(self, x, y);
    }
    fn order_after(&self, _other: &Self) {}
    fn wait(&self) -> Result<()> {
        Ok(())
    }
    fn first_exceeding(&self, values: &[Complex<T>], limit: T) -> Result<Option<(usize, Complex<T>)>> {
        Ok(first_exceeding(self, values, limit))
    }
    fn check_address(&self, _address: usize) -> Result<()> {
        device_array_error()
    }
    fn check_values(&self, checks: &mut [ValueCheck<&[T], &mut [T]>]) -> Result<Vec<CheckedValues<T>>> {
        let mut results = Vec::with_capacity(checks.len());
        for ValueCheck { from, stride, samples, valid, to, top } in checks {
            let numbers = || from.iter().step_by(*stride).take(*samples);
            if let Some(to) = to {
                for (to, &k) in to.iter_mut().zip(numbers()) {
                    *to = match *top {
                        Some(_) if k.wide() < -0.5 => T::of(-0.5),
                        Some(top) if k.wide() >= 0.5 => T::of(top),
                        _ => k,
                    };
                }
            }
            let is_valid = |k: T| k.wide() >= valid[0] && k.wide() <= valid[1];
            let invalid = numbers().position(|&k| !is_valid(k)).map(|m| (m, from[m * *stride]));
            let wide = || numbers().map(|k| k.wide());
            results.push(CheckedValues { range: [wide().fold(0.0, f64::min), wide().fold(0.0, f64::max)], invalid });
        }
        Ok(results)
    }
    fn is_gpu(&self) -> bool {
        false
    }
    fn workers(&self) -> &dyn Workers {
        self
    }
    fn threads(&self) -> usize {
        self.threads.count()
    }
    fn running_threads(&self) -> usize {
        self.threads.running()
    }
    fn warning(&self) -> Option<Warning> {
        Cpu::warning(self)
    }
    fn new_warning(&self) -> Option<Warning> {
        Cpu::new_warning(self)
    }
    fn device_name(&self) -> String {
        "cpu".into()
    }
    fn simd_name(&self) -> &'static str {
        self.level.name()
    }
    fn device_bytes(&self) -> usize {
        0
    }
    fn batch_bytes(&self) -> usize {
        // About the last-level cache per core of current processors, less other data that passes through it.
        6 << 20
    }
    fn transform_cost(&self, grid: &[usize], dims: &[usize], samples: usize, width: usize) -> f64 {
        cost::transform(grid, dims, samples, width, size_of::<T>())
    }
    fn grid_sizes(&self) -> GridSizes {
        GridSizes::EvenPlanes
    }
    fn convolution_cost(&self, dims: &[usize]) -> f64 {
        cost::convolution(dims, size_of::<T>())
    }

    fn gridder(
        &self,
        k: &[&[T]],
        grid: &[usize],
        taps: &[Vec<f64>],
        arrays: usize,
        previous: Option<&Gridder<T>>,
        meanwhile: impl FnOnce() -> Result<()>,
    ) -> Result<Gridder<T>> {
        meanwhile()?;
        Gridder::new(self, k, grid, taps, arrays, previous)
    }
    fn gridder_bytes(&self, samples: usize, grid: &[usize], width: usize, arrays: usize) -> usize {
        Gridder::<T>::bytes(self, samples, grid, width, arrays)
    }
    fn spread(&self, g: &Gridder<T>, values: &[Complex<T>], grid: &mut [Complex<T>]) {
        if !g.has_task_per_array(&self.threads, g.arrays(values.len(), grid.len())) {
            return g.spread(&self.threads, values, grid);
        }
        let arrays = g.arrays(values.len(), grid.len());
        let grid = SharedSlice::new(grid);
        each_array(&self.threads, arrays, |threads, array| {
            // SAFETY: each task has its own array.
            g.spread(threads, array.part(values), unsafe { array.part_mut(&grid) });
        });
    }
    fn interpolate(&self, g: &Gridder<T>, grid: &[Complex<T>], values: &mut [Complex<T>]) {
        if !g.has_task_per_array(&self.threads, g.arrays(values.len(), grid.len())) {
            return g.interpolate(&self.threads, grid, values);
        }
        let arrays = g.arrays(values.len(), grid.len());
        let values = SharedSlice::new(values);
        each_array(&self.threads, arrays, |threads, array| {
            // SAFETY: each task has its own array.
            g.interpolate(threads, array.part(grid), unsafe { array.part_mut(&values) });
        });
    }

    fn grid_fft(&self, dims: &[usize], grid: &[usize], correction: &[Vec<f64>]) -> Result<GridFft<T>> {
        GridFft::new(&self.threads, self.level, dims, grid, correction)
    }
    fn grid_fft_bytes(&self, grid: &[usize]) -> usize {
        GridFft::<T>::bytes(self.threads.count(), self.level, grid)
    }
    fn grid_to_image(&self, f: &GridFft<T>, grid: &mut [Complex<T>], image: &mut [Complex<T>]) {
        f.grid_to_image(&self.threads, grid, image, None);
    }
    fn image_to_grid(&self, f: &GridFft<T>, image: &[Complex<T>], grid: &mut [Complex<T>]) {
        f.image_to_grid(&self.threads, image, grid, None);
    }

    fn samples_to_image(
        &self,
        g: &Gridder<T>,
        f: &GridFft<T>,
        values: &[Complex<T>],
        grid: &mut [Complex<T>],
        image: &mut [Complex<T>],
    ) -> Result<()> {
        let arrays = g.arrays(values.len(), grid.len());
        if !g.has_task_per_array(&self.threads, arrays) {
            g.spread(&self.threads, values, grid);
            interrupt::check("an adjoint transform")?;
            f.grid_to_image(&self.threads, grid, image, Some(g.reached()));
            return Ok(());
        }
        let (grid, image) = (SharedSlice::new(grid), SharedSlice::new(image));
        each_array(&self.threads, arrays, |threads, array| {
            // SAFETY: each task has its own array.
            let (grid, image) = unsafe { (array.part_mut(&grid), array.part_mut(&image)) };
            g.spread(threads, array.part(values), grid);
            f.grid_to_image(threads, grid, image, Some(g.reached()));
        });
        Ok(())
    }
    fn image_to_samples(
        &self,
        g: &Gridder<T>,
        f: &GridFft<T>,
        image: &[Complex<T>],
        grid: &mut [Complex<T>],
        values: &mut [Complex<T>],
    ) -> Result<()> {
        let arrays = g.arrays(values.len(), grid.len());
        if !g.has_task_per_array(&self.threads, arrays) {
            f.image_to_grid(&self.threads, image, grid, Some(g.reached()));
            interrupt::check("a forward transform")?;
            g.interpolate(&self.threads, grid, values);
            return Ok(());
        }
        let (grid, values) = (SharedSlice::new(grid), SharedSlice::new(values));
        each_array(&self.threads, arrays, |threads, array| {
            // SAFETY: each task has its own array.
            let (grid, values) = unsafe { (array.part_mut(&grid), array.part_mut(&values)) };
            f.image_to_grid(threads, array.part(image), grid, Some(g.reached()));
            g.interpolate(threads, grid, values);
        });
        Ok(())
    }
    fn transform_batch(&self, grid: &[usize], samples: usize) -> usize {
        let cell = size_of::<Complex<T>>();
        let cached = Backend::<T>::batch_bytes(self) / product(&[product(grid), cell]).max(1);
        let threads = self.threads.count();
        if is_task_per_array(threads, samples, grid, cell) {
            cached.max(threads)
        } else {
            cached
        }
    }

    fn convolver(&self, dims: &[usize], kernels: usize) -> Result<Convolver<T>> {
        Convolver::new(&self.threads, self.level, dims, kernels)
    }
    fn kernel_grid(&self, c: &Convolver<T>) -> Result<Aligned<Complex<T>>> {
        Backend::<T>::zeros(self, c.kernel_len(), "the doubled grid of Q")
    }
    fn place_kernel(&self, c: &Convolver<T>, half: [bool; 3], q: &[Complex<T>], grid: &mut [Complex<T>]) {
        c.place_kernel(&self.threads, half, q, grid);
    }
    fn set_kernel(&self, c: &mut Convolver<T>, kernel: usize, grid: &mut [Complex<T>]) {
        c.set_kernel(&self.threads, kernel, grid);
    }
    fn spectrum(&self, c: &Convolver<T>, kernel: usize) -> Result<Vec<T>> {
        c.spectrum(kernel)
    }
    fn set_spectrum(&self, c: &mut Convolver<T>, kernel: usize, spectrum: &[T]) -> Result<()> {
        c.set_spectrum(kernel, spectrum);
        Ok(())
    }
    fn convolver_bytes(&self, dims: &[usize], kernels: usize) -> usize {
        Convolver::<T>::bytes(dims, kernels, self.threads.count(), self.level)
    }
    fn convolve(&self, c: &Convolver<T>, kernels: Range<usize>, x: &[Complex<T>], y: &mut [Complex<T>]) {
        c.convolve(&self.threads, kernels, x, y);
    }

    fn direct_sum(
        &self,
        k: &[&[T]],
        dims: &[usize],
        voxels: Option<&[&[T]]>,
        off_resonance: Option<OffResonance<'_, T>>,
        _tolerance: f64,
    ) -> Result<DirectSum<T>> {
        DirectSum::new(&self.threads, self.level, k, dims, voxels, off_resonance)
    }
    fn direct_sum_bytes(&self, samples: usize, dims: &[usize], listed: Option<usize>, maps: MapPresence) -> usize {
        DirectSum::<T>::bytes(self.threads.count(), self.level, samples, dims, listed, maps)
    }
    fn sum_to_image(&self, d: &DirectSum<T>, values: &[Complex<T>], image: &mut [Complex<T>]) -> Result<()> {
        d.to_image(&self.threads, values, image)
    }
    fn sum_to_samples(&self, d: &DirectSum<T>, image: &[Complex<T>], values: &mut [Complex<T>]) -> Result<()> {
        d.to_samples(&self.threads, image, values)
    }

    fn backprojector(
        &self,
        spokes: &[Spoke],
        readout: usize,
        dims: &[usize],
        arrays: usize,
    ) -> Result<Backprojector<T>> {
        Backprojector::new(&self.threads, self.level, spokes, readout, dims, arrays)
    }
    fn backprojector_bytes(&self, readout: usize, dims: &[usize], arrays: usize) -> usize {
        Backprojector::<T>::bytes(self.threads.count(), self.level, readout, dims, arrays)
    }
    fn backprojection_buffer_len(&self, p: &Backprojector<T>) -> usize {
        p.buffer_len()
    }
    fn backproject(
        &self,
        p: &Backprojector<T>,
        values: &[Complex<T>],
        buffer: &mut [Complex<T>],
        image: &mut [Complex<T>],
    ) {
        p.backproject(&self.threads, values, buffer, image);
    }

    fn copy<E: Element>(&self, x: &[E], y: &mut [E]) {
        vector::copy(self, x, y);
    }
    fn clear<E: Element>(&self, y: &mut [E]) {
        vector::clear(self, y);
    }
    fn multiply(&self, x: &[Complex<T>], y: &[Complex<T>], z: &mut [Complex<T>]) {
        vector::multiply(self, x, y, z);
    }
    fn add_conj_products(&self, x: &[Complex<T>], y: &[Complex<T>], z: &mut [Complex<T>]) {
        vector::add_conj_products(self, x, y, z);
    }
    fn apply_weights(&self, w: &[T], x: &[Complex<T>], z: &mut [Complex<T>]) {
        vector::apply_weights(self, w, x, z);
    }
    fn ramp(&self, k: &[&[T]], shift: &[f64], w: Option<&[T]>, out: &mut [Complex<T>]) {
        assert!(k.iter().chain(&w).all(|k| k.len() == out.len()));
        each_chunk(&self.threads, out, |out, start| {
            for (i, out) in out.iter_mut().enumerate() {
                let m = start + i;
                let turns: f64 = k.iter().zip(shift).map(|(k, s)| k[m].wide() * s).sum();
                let weight = w.map_or(1.0, |w| w[m].wide());
                *out = narrow(Complex::from_polar(weight, std::f64::consts::TAU * (turns - turns.round())));
            }
        });
    }
    fn voxel_waves(
        &self,
        frequencies: &[T],
        decay: Option<&[T]>,
        max_rate: f64,
        origin: f64,
        nodes: &[f64],
    ) -> Result<Aligned<Complex<T>>> {
        off_resonance::voxel_waves(self, frequencies, decay, max_rate, origin, nodes)
    }
    fn sample_waves(&self, times: &[T], series: ChebyshevSeries<'_>, frequency: f64) -> Result<Aligned<Complex<T>>> {
        off_resonance::sample_waves(self, times, series, frequency)
    }
    fn series_values(
        &self,
        times: &[T],
        series: ChebyshevSeries<'_>,
        function: usize,
        w: Option<&[T]>,
    ) -> Result<Aligned<T>> {
        off_resonance::series_values(self, times, series, function, w)
    }
    fn axpy(&self, a: f64, x: &[Complex<T>], y: &mut [Complex<T>]) {
        vector::axpy(self, a, x, y);
    }
    fn dot(&self, x: &[Complex<T>], y: &[Complex<T>], out: &mut [f64]) {
        out[0] = vector::dot(self, x, y);
    }
    fn begin_read(&self, x: &[f64]) -> Result<f64> {
        Ok(x[0])
    }
    fn finish_read(&self, scalar: f64) -> Result<f64> {
        Ok(scalar)
    }
    fn cg_step(
        &self,
        rr: &[f64],
        pq: &[f64],
        p: &[Complex<T>],
        q: &[Complex<T>],
        x: &mut [Complex<T>],
        r: &mut [Complex<T>],
        rr_new: &mut [f64],
    ) {
        let (rr, pq) = (rr[0], pq[0]);
        let step = if pq > 0.0 { rr / pq } else { 0.0 };
        rr_new[0] = vector::cg_step(self, step, p, q, x, r);
    }
    fn subtract_projections(&self, v: &[Complex<T>], norms: &[f64], x: &mut [Complex<T>], xx: &mut [f64]) {
        xx[0] = vector::subtract_projections(self, v, norms, x);
    }
    fn cg_direction(&self, rr_new: &[f64], rr: &[f64], r: &[Complex<T>], p: &mut [Complex<T>]) {
        let (new, old) = (rr_new[0], rr[0]);
        let beta = if old > 0.0 { new / old } else { 0.0 };
        vector::cg_direction(self, beta, r, p);
    }
    fn add_differences(
        &self,
        dims: &[usize],
        weights: Option<&[T]>,
        lambda: f64,
        x: &[Complex<T>],
        y: &mut [Complex<T>],
    ) {
        vector::add_differences(self, dims, weights, lambda, x, y);
    }
    fn csr_multiply(&self, a: f64, matrix: Csr<Self, T>, x: &[Complex<T>], b: f64, y: &mut [Complex<T>]) {
        let (rows, columns, values) = (matrix.rows, matrix.columns, matrix.values);
        assert_eq!(rows.len(), y.len() + 1);
        let (a, b) = (T::of(a), T::of(b));
        each_chunk(&self.threads, y, |y, start| {
            for (i, y) in y.iter_mut().enumerate() {
                let entries = rows[start + i] as usize..rows[start + i + 1] as usize;
                let sum: Complex<T> =
                    columns[entries.clone()].iter().zip(&values[entries]).map(|(c, v)| *v * x[*c as usize]).sum();
                // The previous value of y does not matter if b is 0, not even a NaN.
                *y = sum * a + if b == T::ZERO { Complex::default() } else { *y * b };
            }
        });
    }
}
