//! The CUDA backend: arrays lie on a GPU, primitives are kernels queued on a stream.
//!
//! The kernels are in kernels/, as text: `compile` makes machine code of it, `runtime` loads and launches that,
//! `memory` and `gpu` are a plan's arrays and queue. Each file of kernels has one here with its launches: `vector`,
//! `gridding`, `fft`, `direct`. `cost` is what the choice of a grid goes by.

pub mod compile;
mod cost;
pub mod direct;
pub mod fft;
pub mod gpu;
pub mod gridding;
mod idle;
pub mod library;
pub mod memory;
pub mod runtime;
mod vector;

use super::{Backend, Complexes, ComplexesMut, Csr, Element, Reals, Sink, Source, View, ViewMut};
use crate::base::error::Result;
use crate::base::real::Real;
use direct::DirectSum;
use fft::{Convolver, GridFft};
use gpu::Gpu;
use gridding::Gridder;
use memory::DeviceArray;
use num_complex::Complex;
use runtime::Event;
use std::ffi::c_void;
use std::marker::PhantomData;
use vector::Vectors;

/// The kernels that plans usually need, for a folder that is made beforehand; other sizes are compiled when they are
/// wanted.
pub fn usual_kernels() -> Vec<compile::Kernels> {
    let mut all = vec![vector::kernels(4), vector::kernels(8)];
    all.extend(gridding::usual_kernels());
    all.extend(fft::usual_kernels());
    all.extend(direct::usual_kernels());
    all
}

/// One GPU, in one precision.
pub struct Cuda<T: Real> {
    gpu: Gpu,
    vectors: Vectors,
    precision: PhantomData<T>,
}

impl<T: Real> Cuda<T> {
    /// Computes on GPU `index`, on a stream of its own or the caller's.
    ///
    /// # Errors
    /// `NoDevice` without a driver or such a GPU, `DriverIncomplete` where kernels are neither kept nor can be
    /// compiled.
    ///
    /// # Safety
    /// The caller's stream belongs to the GPU's primary context and outlives this.
    pub unsafe fn new(index: u32, stream: Option<*mut c_void>) -> Result<Self> {
        // SAFETY: the caller's promise.
        let gpu = unsafe { Gpu::new(index, stream) }?;
        let vectors = Vectors::new::<T>(&gpu)?;
        Ok(Cuda { gpu, vectors, precision: PhantomData })
    }
}

/// Links GPUs that are to share work with one another.
pub fn link<T: Real>(all: &[Cuda<T>]) -> Result<()> {
    for (i, one) in all.iter().enumerate() {
        for other in all[i + 1..].iter().filter(|other| other.gpu.index() != one.gpu.index()) {
            one.gpu.link(&other.gpu)?;
        }
    }
    Ok(())
}

/// Says past the test harness, which would keep it to itself, that there is no GPU for a test.
#[cfg(test)]
fn skipped(what: &str) {
    use std::io::Write;
    writeln!(std::io::stderr(), "skipped: {what} (no GPU)").expect("a line on the standard error stream");
}

/// The address of a view, as kernels take it.
fn at<B: ?Sized, E>(view: View<'_, B, E>) -> u64 {
    view.address() as u64
}

fn at_mut<B: ?Sized, E>(view: &ViewMut<'_, B, E>) -> u64 {
    view.address() as u64
}

/// The caller's memory, made readable or writable.
pub enum Lent<'a, E> {
    /// A copy of what is read.
    In(DeviceArray<E>),
    /// What is written, where it goes, and when it is ready.
    Out(DeviceArray<E>, &'a mut [E], Option<Event>),
    /// The caller's own array on this GPU.
    Own(super::DeviceSlice<'a, E>),
}

impl<E> Lent<'_, E> {
    fn address(&self) -> u64 {
        match self {
            Lent::In(array) | Lent::Out(array, ..) => array.address(),
            Lent::Own(slice) => slice.address() as u64,
        }
    }

    fn len(&self) -> usize {
        match self {
            Lent::In(array) | Lent::Out(array, ..) => array.len(),
            Lent::Own(slice) => slice.len(),
        }
    }
}

impl<T: Real> Backend<T> for Cuda<T> {
    type Array<E: Element> = DeviceArray<E>;
    type Input<'a, E: Element> = Lent<'a, E>;
    type Output<'a, E: Element> = Lent<'a, E>;
    type Gridder = Gridder<T>;
    type GridFft = GridFft<T>;
    type Convolver = Convolver<T>;
    type DirectSum = DirectSum<T>;

    fn zeros<E: Element>(&self, len: usize, what: &str) -> Result<DeviceArray<E>> {
        self.gpu.zeros(len, what)
    }
    fn upload<E: Element>(&self, host: &[E], what: &str) -> Result<DeviceArray<E>> {
        self.gpu.upload(host, what)
    }
    fn view<'a, E: Element>(&self, array: &'a DeviceArray<E>) -> View<'a, Self, E> {
        // SAFETY: the array has so many elements, and is borrowed for the life of the view.
        unsafe { View::new(array.address() as *const E, array.len()) }
    }
    fn view_mut<'a, E: Element>(&self, array: &'a mut DeviceArray<E>) -> ViewMut<'a, Self, E> {
        // SAFETY: likewise, mutably.
        unsafe { ViewMut::new(array.address() as *mut E, array.len()) }
    }
    fn download<E: Element>(&self, from: View<'_, Self, E>, host: &mut [E]) -> Result<()> {
        assert_eq!(from.len(), host.len());
        self.gpu.download(at(from), host)
    }
    fn input<'a, E: Element>(&self, source: Source<'a, E>) -> Result<Lent<'a, E>> {
        Ok(match source {
            Source::Host(host) => Lent::In(self.gpu.copy_in(host, "the caller's array")?),
            Source::Device(slice) => Lent::Own(slice),
        })
    }
    fn read<'s, E: Element>(&self, input: &'s Lent<'_, E>) -> View<'s, Self, E> {
        // SAFETY: so many elements are there, and stay while the input is borrowed.
        unsafe { View::new(input.address() as *const E, input.len()) }
    }
    fn output<'a, E: Element>(&self, sink: Sink<'a, E>) -> Result<Lent<'a, E>> {
        Ok(match sink {
            Sink::Host(host) => Lent::Out(self.gpu.array(host.len(), "the caller's array")?, host, None),
            Sink::Device(slice) => Lent::Own(slice),
        })
    }
    fn write<'s, E: Element>(&self, output: &'s mut Lent<'_, E>) -> ViewMut<'s, Self, E> {
        // SAFETY: so many elements are there, and stay while the output is borrowed.
        unsafe { ViewMut::new(output.address() as *mut E, output.len()) }
    }
    fn mark_ready<E: Element>(&self, output: &mut Lent<'_, E>) -> Result<()> {
        if let Lent::Out(_, _, ready) = output {
            *ready = Some(self.gpu.mark()?);
        }
        Ok(())
    }
    fn deliver<E: Element>(&self, output: Lent<'_, E>) -> Result<()> {
        match output {
            Lent::Out(array, host, ready) => self.gpu.copy_out(array.address(), host, ready),
            _ => self.gpu.finish(),
        }
    }
    fn own_source<'a, E: Element>(&self, view: View<'a, Self, E>) -> Source<'a, E> {
        // SAFETY: the view's elements are on this GPU and borrowed for 'a.
        unsafe { Source::device(view.address(), view.len()) }
    }
    fn own<'a, E: Element>(&self, view: ViewMut<'a, Self, E>) -> Sink<'a, E> {
        // SAFETY: likewise, mutably.
        unsafe { Sink::device(view.address(), view.len()) }
    }
    fn fetch<E: Element>(&self, from: &Self, x: View<'_, Self, E>, y: ViewMut<'_, Self, E>) {
        assert_eq!(x.len(), y.len());
        self.gpu.follow(&from.gpu);
        self.gpu.copy_between(&from.gpu, at(x), &self.gpu, at_mut(&y), x.len() * size_of::<E>());
    }
    fn send<E: Element>(&self, x: View<'_, Self, E>, to: &Self, y: ViewMut<'_, Self, E>) {
        assert_eq!(x.len(), y.len());
        self.gpu.copy_between(&self.gpu, at(x), &to.gpu, at_mut(&y), x.len() * size_of::<E>());
    }
    fn follow(&self, other: &Self) {
        self.gpu.follow(&other.gpu);
    }
    fn wait(&self) -> Result<()> {
        self.gpu.synchronize()
    }
    fn first_beyond(&self, values: Complexes<Self, T>, limit: T) -> Result<Option<(usize, Complex<T>)>> {
        self.vectors.first_beyond(&self.gpu, at(values), values.len() as u64, limit)
    }
    fn is_apart(&self) -> bool {
        true
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
    fn convolution_cost(&self, dims: &[usize]) -> f64 {
        cost::convolution(dims, size_of::<T>())
    }

    fn gridder(&self, k: &[&[T]], grid: &[usize], taps: &[Vec<f64>], arrays: usize) -> Result<Gridder<T>> {
        Gridder::new(&self.gpu, k, grid, taps, arrays)
    }
    fn gridder_bytes(&self, samples: usize, grid: &[usize], width: usize, arrays: usize) -> usize {
        Gridder::<T>::bytes(self.gpu.properties(), samples, grid, width, arrays)
    }
    fn spread(&self, g: &Gridder<T>, values: Complexes<Self, T>, grid: ComplexesMut<Self, T>) {
        g.spread(&self.gpu, at(values), values.len(), at_mut(&grid), grid.len());
    }
    fn interpolate(&self, g: &Gridder<T>, grid: Complexes<Self, T>, values: ComplexesMut<Self, T>) {
        g.interpolate(&self.gpu, at(grid), grid.len(), at_mut(&values), values.len());
    }

    fn grid_fft(&self, dims: &[usize], grid: &[usize], correction: &[Vec<f64>]) -> Result<GridFft<T>> {
        GridFft::new(&self.gpu, dims, grid, correction)
    }
    fn grid_fft_bytes(&self, grid: &[usize]) -> usize {
        // Roots of unity and corrections of each axis.
        grid.iter().fold(0, |sum, n| n.saturating_mul(3 * size_of::<Complex<T>>()).saturating_add(sum))
    }
    fn grid_to_image(&self, f: &GridFft<T>, grid: ComplexesMut<Self, T>, image: ComplexesMut<Self, T>) {
        f.grid_to_image(&self.gpu, at_mut(&grid), grid.len(), at_mut(&image), image.len());
    }
    fn image_to_grid(&self, f: &GridFft<T>, image: Complexes<Self, T>, grid: ComplexesMut<Self, T>) {
        f.image_to_grid(&self.gpu, at(image), image.len(), at_mut(&grid), grid.len());
    }

    fn convolver(&self, dims: &[usize]) -> Result<Convolver<T>> {
        Convolver::new(&self.gpu, dims)
    }
    fn kernel_grid(&self, c: &Convolver<T>) -> Result<DeviceArray<Complex<T>>> {
        self.gpu.zeros(c.kernel_len(), "the doubled grid of Q")
    }
    fn place_kernel(&self, c: &Convolver<T>, half: [bool; 3], q: Complexes<Self, T>, grid: ComplexesMut<Self, T>) {
        c.place_kernel(&self.gpu, half, at(q), at_mut(&grid));
    }
    fn set_kernel(&self, c: &mut Convolver<T>, grid: ComplexesMut<Self, T>) {
        c.set_kernel(&self.gpu, at_mut(&grid));
    }
    fn spectrum(&self, c: &Convolver<T>) -> Result<Vec<T>> {
        c.spectrum(&self.gpu)
    }
    fn set_spectrum(&self, c: &mut Convolver<T>, spectrum: &[T]) -> Result<()> {
        c.set_spectrum(&self.gpu, spectrum)
    }
    fn convolver_bytes(&self, dims: &[usize]) -> usize {
        Convolver::<T>::bytes(dims)
    }
    fn convolve(&self, c: &Convolver<T>, x: Complexes<Self, T>, y: ComplexesMut<Self, T>) {
        c.convolve(&self.gpu, at(x), at_mut(&y), y.len());
    }

    fn direct_sum(&self, k: &[&[T]], dims: &[usize], voxels: Option<&[&[T]]>, tolerance: f64) -> Result<DirectSum<T>> {
        DirectSum::new(&self.gpu, k, dims, voxels, tolerance)
    }
    fn direct_sum_bytes(&self, samples: usize, dims: &[usize], listed: Option<usize>) -> usize {
        // What is too large will be refused by the plan.
        DirectSum::<T>::bytes(&self.gpu, samples, dims, listed).unwrap_or(usize::MAX)
    }
    fn sum_to_image(&self, d: &DirectSum<T>, values: Complexes<Self, T>, image: ComplexesMut<Self, T>) -> Result<()> {
        d.to_image(&self.gpu, at(values), at_mut(&image));
        Ok(())
    }
    fn sum_to_samples(&self, d: &DirectSum<T>, image: Complexes<Self, T>, values: ComplexesMut<Self, T>) -> Result<()> {
        d.to_samples(&self.gpu, at(image), at_mut(&values));
        Ok(())
    }

    fn copy<E: Element>(&self, x: View<'_, Self, E>, y: ViewMut<'_, Self, E>) {
        assert_eq!(x.len(), y.len());
        self.gpu.copy(at(x), at_mut(&y), x.len() * size_of::<E>());
    }
    fn clear<E: Element>(&self, y: ViewMut<'_, Self, E>) {
        self.gpu.clear(at_mut(&y), y.len() * size_of::<E>());
    }
    fn multiply(&self, x: Complexes<Self, T>, y: Complexes<Self, T>, z: ComplexesMut<Self, T>) {
        let count = arrays(x.len(), y.len());
        assert_eq!(x.len(), z.len());
        self.vectors.multiply(&self.gpu, at(x), at(y), at_mut(&z), y.len() as u64, count);
    }
    fn add_conj_products(&self, x: Complexes<Self, T>, y: Complexes<Self, T>, z: ComplexesMut<Self, T>) {
        let count = arrays(x.len(), z.len());
        assert_eq!(x.len(), y.len());
        self.vectors.add_conj_products(&self.gpu, at(x), at(y), at_mut(&z), z.len() as u64, count);
    }
    fn apply_weights(&self, w: Reals<Self, T>, x: Complexes<Self, T>, z: ComplexesMut<Self, T>) {
        let count = arrays(x.len(), w.len());
        assert_eq!(x.len(), z.len());
        self.vectors.apply_weights(&self.gpu, at(w), at(x), at_mut(&z), w.len() as u64, count);
    }
    fn ramp(&self, k: &[Reals<Self, T>], shift: &[f64], w: Option<Reals<Self, T>>, out: ComplexesMut<Self, T>) {
        let address = |a: usize| k.get(a).map_or(0, |k| at(*k));
        let shift = [0, 1, 2].map(|a| *shift.get(a).unwrap_or(&0.0));
        assert!(k.iter().chain(&w).all(|k| k.len() == out.len()));
        let k = [0, 1, 2].map(address);
        self.vectors.ramp(&self.gpu, k, shift, w.map_or(0, at), at_mut(&out), out.len() as u64);
    }
    fn axpy(&self, a: f64, x: Complexes<Self, T>, y: ComplexesMut<Self, T>) {
        assert_eq!(x.len(), y.len());
        self.vectors.axpy(&self.gpu, a, at(x), at_mut(&y), y.len() as u64);
    }
    fn dot(&self, x: Complexes<Self, T>, y: Complexes<Self, T>, out: ViewMut<'_, Self, f64>) {
        assert_eq!(x.len(), y.len());
        self.vectors.dot(&self.gpu, at(x), at(y), x.len() as u64, at_mut(&out));
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
        let n = x.len();
        assert!([p.len(), q.len(), r.len()].iter().all(|&l| l == n));
        let (x, r) = (at_mut(&x), at_mut(&r));
        self.vectors.cg_step(&self.gpu, at(rr), at(pq), at(p), at(q), x, r, n as u64, at_mut(&rr_new));
    }
    fn cg_direction(
        &self,
        rr_new: View<'_, Self, f64>,
        rr: View<'_, Self, f64>,
        r: Complexes<Self, T>,
        p: ComplexesMut<Self, T>,
    ) {
        assert_eq!(r.len(), p.len());
        self.vectors.cg_direction(&self.gpu, at(rr_new), at(rr), at(r), at_mut(&p), r.len() as u64);
    }
    fn add_differences(
        &self,
        dims: &[usize],
        weights: Option<Reals<Self, T>>,
        lambda: f64,
        x: Complexes<Self, T>,
        y: ComplexesMut<Self, T>,
    ) {
        assert!(x.len() == y.len() && weights.is_none_or(|w| w.len() == x.len() * dims.len()));
        self.vectors.add_differences(&self.gpu, dims, weights.map_or(0, at), lambda, at(x), at_mut(&y));
    }
    fn csr_multiply(&self, a: f64, matrix: Csr<Self, T>, x: Complexes<Self, T>, b: f64, y: ComplexesMut<Self, T>) {
        assert_eq!(matrix.rows.len(), y.len() + 1);
        let (rows, columns, values) = (at(matrix.rows), at(matrix.columns), at(matrix.values));
        self.vectors.csr_multiply(&self.gpu, a, rows, columns, values, at(x), b, at_mut(&y), y.len() as u64);
    }
}

/// How many arrays of `len` elements there are.
fn arrays(all: usize, len: usize) -> u64 {
    assert!(len > 0 && all.is_multiple_of(len), "{all} elements in arrays of {len}");
    (all / len) as u64
}
