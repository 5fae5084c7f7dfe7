//! The CPU backend: arrays are vectors, views are slices, work is shared among the plan's threads.

pub mod cost;
pub mod direct;
pub mod fft;
pub mod gridding;
pub mod memory;
pub mod simd;
pub mod thread_pool;
mod vector;

use super::{Backend, Complexes, ComplexesMut, Csr, Element, Reals, Sink, Source, View, ViewMut};
use crate::base::error::{bail, Result};
use crate::base::geometry::first_beyond;
use crate::base::options::Simd;
use crate::base::real::narrow;
use direct::DirectSum;
use fft::convolver::Convolver;
use fft::GridFft;
use gridding::Gridder;
use memory::Aligned;
use num_complex::Complex;
use simd::{Level, SimdReal};
use thread_pool::Threads;
use vector::each_chunk;

/// The CPU, with a plan's own threads.
pub struct Cpu {
    threads: Threads,
    level: Level,
}

impl Cpu {
    /// Computes with `threads` threads, the caller's among them; 0 means as many as the machine runs at once.
    ///
    /// # Errors
    /// `Unsupported` for a vector unit that this processor lacks, `UnknownValue` for an environment variable
    /// `RECON_SIMD` that names none; `InvalidArgument` for more threads than can be started.
    pub fn new(threads: usize, simd: Simd) -> Result<Self> {
        let level = Level::choose(simd)?;
        Ok(Cpu { threads: Threads::new(threads)?, level })
    }

    /// The vector unit in use.
    pub fn level(&self) -> Level {
        self.level
    }
}

fn slice<'a, E>(view: View<'a, Cpu, E>) -> &'a [E] {
    // SAFETY: a view of the CPU's memory was made from a slice that lives for 'a.
    unsafe { std::slice::from_raw_parts(view.address(), view.len()) }
}

fn slice_mut<'a, E>(view: ViewMut<'a, Cpu, E>) -> &'a mut [E] {
    // SAFETY: a view of the CPU's memory was made from a mutable slice that lives for 'a, and is consumed here.
    unsafe { std::slice::from_raw_parts_mut(view.address(), view.len()) }
}

fn view_of<E>(slice: &[E]) -> View<'_, Cpu, E> {
    // SAFETY: the slice is borrowed for the life of the view.
    unsafe { View::new(slice.as_ptr(), slice.len()) }
}

fn view_of_mut<E>(slice: &mut [E]) -> ViewMut<'_, Cpu, E> {
    // SAFETY: the slice is mutably borrowed for the life of the view.
    unsafe { ViewMut::new(slice.as_mut_ptr(), slice.len()) }
}

fn on_device<A>() -> Result<A> {
    bail!(
        Unsupported,
        "arrays on a GPU were given to a plan on the CPU: create it with device cuda, or give arrays in the host's memory"
    )
}

impl<T: SimdReal> Backend<T> for Cpu {
    type Array<E: Element> = Aligned<E>;
    type Input<'a, E: Element> = &'a [E];
    type Output<'a, E: Element> = &'a mut [E];
    type Gridder = Gridder<T>;
    type GridFft = GridFft<T>;
    type Convolver = Convolver<T>;
    type DirectSum = DirectSum<T>;

    fn zeros<E: Element>(&self, len: usize, what: &str) -> Result<Aligned<E>> {
        Aligned::zeros(len, what)
    }
    fn upload<E: Element>(&self, host: &[E], what: &str) -> Result<Aligned<E>> {
        let mut own = Aligned::zeros(host.len(), what)?;
        own.copy_from_slice(host);
        Ok(own)
    }
    fn view<'a, E: Element>(&self, array: &'a Aligned<E>) -> View<'a, Self, E> {
        view_of(array)
    }
    fn view_mut<'a, E: Element>(&self, array: &'a mut Aligned<E>) -> ViewMut<'a, Self, E> {
        view_of_mut(array)
    }
    fn download<E: Element>(&self, from: View<'_, Self, E>, host: &mut [E]) -> Result<()> {
        host.copy_from_slice(slice(from));
        Ok(())
    }
    fn input<'a, E: Element>(&self, source: Source<'a, E>) -> Result<&'a [E]> {
        match source {
            Source::Host(host) => Ok(host),
            Source::Device(_) => on_device(),
        }
    }
    fn read<'s, E: Element>(&self, input: &'s &[E]) -> View<'s, Self, E> {
        view_of(input)
    }
    fn output<'a, E: Element>(&self, sink: Sink<'a, E>) -> Result<&'a mut [E]> {
        match sink {
            Sink::Host(host) => Ok(host),
            Sink::Device(_) => on_device(),
        }
    }
    fn write<'s, E: Element>(&self, output: &'s mut &mut [E]) -> ViewMut<'s, Self, E> {
        view_of_mut(output)
    }
    fn mark_ready<E: Element>(&self, _output: &mut &mut [E]) -> Result<()> {
        Ok(())
    }
    fn deliver<E: Element>(&self, _output: &mut [E]) -> Result<()> {
        Ok(())
    }
    fn own_source<'a, E: Element>(&self, view: View<'a, Self, E>) -> Source<'a, E> {
        Source::Host(slice(view))
    }
    fn own<'a, E: Element>(&self, view: ViewMut<'a, Self, E>) -> Sink<'a, E> {
        Sink::Host(slice_mut(view))
    }
    fn fetch<E: Element>(&self, _from: &Self, x: View<'_, Self, E>, y: ViewMut<'_, Self, E>) {
        slice_mut(y).copy_from_slice(slice(x));
    }
    fn send<E: Element>(&self, x: View<'_, Self, E>, _to: &Self, y: ViewMut<'_, Self, E>) {
        slice_mut(y).copy_from_slice(slice(x));
    }
    fn follow(&self, _other: &Self) {}
    fn wait(&self) -> Result<()> {
        Ok(())
    }
    fn first_beyond(&self, values: Complexes<Self, T>, limit: T) -> Result<Option<(usize, Complex<T>)>> {
        Ok(first_beyond(slice(values), limit))
    }
    fn is_apart(&self) -> bool {
        false
    }
    fn threads(&self) -> usize {
        self.threads.count()
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
        // The larger caches of today's cores, less what else goes through them.
        6 << 20
    }
    fn transform_cost(&self, grid: &[usize], dims: &[usize], samples: usize, width: usize) -> f64 {
        cost::transform(grid, dims, samples, width, size_of::<T>())
    }
    fn convolution_cost(&self, dims: &[usize]) -> f64 {
        cost::convolution(dims, size_of::<T>())
    }

    fn gridder(&self, k: &[&[T]], grid: &[usize], taps: &[Vec<f64>], arrays: usize) -> Result<Gridder<T>> {
        Gridder::new(&self.threads, self.level, k, grid, taps, arrays)
    }
    fn gridder_bytes(&self, samples: usize, grid: &[usize], width: usize, arrays: usize) -> usize {
        Gridder::<T>::bytes(self.threads.count(), self.level, samples, grid, width, arrays)
    }
    fn spread(&self, g: &Gridder<T>, values: Complexes<Self, T>, grid: ComplexesMut<Self, T>) {
        g.spread(&self.threads, slice(values), slice_mut(grid));
    }
    fn interpolate(&self, g: &Gridder<T>, grid: Complexes<Self, T>, values: ComplexesMut<Self, T>) {
        g.interpolate(&self.threads, slice(grid), slice_mut(values));
    }

    fn grid_fft(&self, dims: &[usize], grid: &[usize], correction: &[Vec<f64>]) -> Result<GridFft<T>> {
        GridFft::new(&self.threads, self.level, dims, grid, correction)
    }
    fn grid_fft_bytes(&self, grid: &[usize]) -> usize {
        GridFft::<T>::bytes(self.threads.count(), self.level, grid)
    }
    fn grid_to_image(&self, f: &GridFft<T>, grid: ComplexesMut<Self, T>, image: ComplexesMut<Self, T>) {
        f.grid_to_image(&self.threads, slice_mut(grid), slice_mut(image));
    }
    fn image_to_grid(&self, f: &GridFft<T>, image: Complexes<Self, T>, grid: ComplexesMut<Self, T>) {
        f.image_to_grid(&self.threads, slice(image), slice_mut(grid));
    }

    fn convolver(&self, dims: &[usize]) -> Result<Convolver<T>> {
        Convolver::new(&self.threads, self.level, dims)
    }
    fn kernel_grid(&self, c: &Convolver<T>) -> Result<Aligned<Complex<T>>> {
        Backend::<T>::zeros(self, c.kernel_len(), "the doubled grid of Q")
    }
    fn place_kernel(&self, c: &Convolver<T>, half: [bool; 3], q: Complexes<Self, T>, grid: ComplexesMut<Self, T>) {
        c.place_kernel(half, slice(q), slice_mut(grid));
    }
    fn set_kernel(&self, c: &mut Convolver<T>, grid: ComplexesMut<Self, T>) {
        c.set_kernel(&self.threads, slice_mut(grid));
    }
    fn spectrum(&self, c: &Convolver<T>) -> Result<Vec<T>> {
        c.spectrum()
    }
    fn set_spectrum(&self, c: &mut Convolver<T>, spectrum: &[T]) -> Result<()> {
        c.set_spectrum(spectrum);
        Ok(())
    }
    fn convolver_bytes(&self, dims: &[usize]) -> usize {
        Convolver::<T>::bytes(dims, self.threads.count(), self.level)
    }
    fn convolve(&self, c: &Convolver<T>, x: Complexes<Self, T>, y: ComplexesMut<Self, T>) {
        let (x, y) = (slice(x), slice_mut(y));
        let voxels = c.voxels();
        assert!(x.len() == y.len() && x.len().is_multiple_of(voxels));
        for (x, y) in x.chunks_exact(voxels).zip(y.chunks_exact_mut(voxels)) {
            c.convolve(&self.threads, x, y);
        }
    }

    fn direct_sum(&self, k: &[&[T]], dims: &[usize], voxels: Option<&[&[T]]>, _tolerance: f64) -> Result<DirectSum<T>> {
        DirectSum::new(&self.threads, self.level, k, dims, voxels)
    }
    fn direct_sum_bytes(&self, samples: usize, dims: &[usize], listed: Option<usize>) -> usize {
        DirectSum::<T>::bytes(self.threads.count(), self.level, samples, dims, listed)
    }
    fn sum_to_image(&self, d: &DirectSum<T>, values: Complexes<Self, T>, image: ComplexesMut<Self, T>) -> Result<()> {
        d.to_image(&self.threads, slice(values), slice_mut(image))
    }
    fn sum_to_samples(&self, d: &DirectSum<T>, image: Complexes<Self, T>, values: ComplexesMut<Self, T>) -> Result<()> {
        d.to_samples(&self.threads, slice(image), slice_mut(values))
    }

    fn copy<E: Element>(&self, x: View<'_, Self, E>, y: ViewMut<'_, Self, E>) {
        slice_mut(y).copy_from_slice(slice(x));
    }
    fn clear<E: Element>(&self, y: ViewMut<'_, Self, E>) {
        slice_mut(y).fill(E::default());
    }
    fn multiply(&self, x: Complexes<Self, T>, y: Complexes<Self, T>, z: ComplexesMut<Self, T>) {
        let (x, y, z) = (slice(x), slice(y), slice_mut(z));
        assert!(x.len() == z.len() && x.len().is_multiple_of(y.len()));
        for (x, z) in x.chunks_exact(y.len()).zip(z.chunks_exact_mut(y.len())) {
            vector::multiply(self, x, y, z);
        }
    }
    fn add_conj_products(&self, x: Complexes<Self, T>, y: Complexes<Self, T>, z: ComplexesMut<Self, T>) {
        let (x, y, z) = (slice(x), slice(y), slice_mut(z));
        assert!(x.len() == y.len() && x.len().is_multiple_of(z.len()));
        for (x, y) in x.chunks_exact(z.len()).zip(y.chunks_exact(z.len())) {
            vector::add_conj_product(self, x, y, z);
        }
    }
    fn apply_weights(&self, w: Reals<Self, T>, x: Complexes<Self, T>, z: ComplexesMut<Self, T>) {
        let (w, x, z) = (slice(w), slice(x), slice_mut(z));
        assert!(x.len() == z.len() && x.len().is_multiple_of(w.len()));
        for (x, z) in x.chunks_exact(w.len()).zip(z.chunks_exact_mut(w.len())) {
            vector::weigh(self, w, x, z);
        }
    }
    fn ramp(&self, k: &[Reals<Self, T>], shift: &[f64], w: Option<Reals<Self, T>>, out: ComplexesMut<Self, T>) {
        let (out, w) = (slice_mut(out), w.map(slice));
        assert!(k.iter().chain(&w.map(view_of)).all(|k| k.len() == out.len()));
        each_chunk(&self.threads, out, |out, start| {
            for (i, out) in out.iter_mut().enumerate() {
                let m = start + i;
                let turns: f64 = k.iter().zip(shift).map(|(k, s)| slice(*k)[m].wide() * s).sum();
                let weight = w.map_or(1.0, |w| w[m].wide());
                *out = narrow(Complex::from_polar(weight, std::f64::consts::TAU * (turns - turns.round())));
            }
        });
    }
    fn axpy(&self, a: f64, x: Complexes<Self, T>, y: ComplexesMut<Self, T>) {
        vector::axpy(self, a, slice(x), slice_mut(y));
    }
    fn dot(&self, x: Complexes<Self, T>, y: Complexes<Self, T>, out: ViewMut<'_, Self, f64>) {
        slice_mut(out)[0] = vector::dot(self, slice(x), slice(y));
    }
    fn cg_step(
        &self,
        rr: View<'_, Self, f64>,
        pq: View<'_, Self, f64>,
        p: Complexes<Self, T>,
        q: Complexes<Self, T>,
        x: ComplexesMut<Self, T>,
        r: ComplexesMut<Self, T>,
        rr_new: ViewMut<'_, Self, f64>,
    ) {
        let (rr, pq) = (slice(rr)[0], slice(pq)[0]);
        let step = if pq > 0.0 { rr / pq } else { 0.0 };
        slice_mut(rr_new)[0] = vector::cg_step(self, step, slice(p), slice(q), slice_mut(x), slice_mut(r));
    }
    fn cg_direction(
        &self,
        rr_new: View<'_, Self, f64>,
        rr: View<'_, Self, f64>,
        r: Complexes<Self, T>,
        p: ComplexesMut<Self, T>,
    ) {
        let (new, old) = (slice(rr_new)[0], slice(rr)[0]);
        let beta = if old > 0.0 { new / old } else { 0.0 };
        vector::cg_direction(self, beta, slice(r), slice_mut(p));
    }
    fn add_differences(
        &self,
        dims: &[usize],
        weights: Option<Reals<Self, T>>,
        lambda: f64,
        x: Complexes<Self, T>,
        y: ComplexesMut<Self, T>,
    ) {
        vector::add_differences(self, dims, weights.map(slice), lambda, slice(x), slice_mut(y));
    }
    fn csr_multiply(&self, a: f64, matrix: Csr<Self, T>, x: Complexes<Self, T>, b: f64, y: ComplexesMut<Self, T>) {
        let (rows, columns, values) = (slice(matrix.rows), slice(matrix.columns), slice(matrix.values));
        let (x, y) = (slice(x), slice_mut(y));
        assert_eq!(rows.len(), y.len() + 1);
        let (a, b) = (T::of(a), T::of(b));
        each_chunk(&self.threads, y, |y, start| {
            for (i, y) in y.iter_mut().enumerate() {
                let entries = rows[start + i] as usize..rows[start + i + 1] as usize;
                let sum: Complex<T> =
                    columns[entries.clone()].iter().zip(&values[entries]).map(|(c, v)| *v * x[*c as usize]).sum();
                // What y held before does not matter when b is 0, not even a NaN.
                *y = sum * a + if b == T::ZERO { Complex::default() } else { *y * b };
            }
        });
    }
}
