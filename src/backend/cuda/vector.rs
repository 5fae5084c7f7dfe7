//! Vector operations: the kernels of kernels/vector.cu.

use super::compile::Kernels;
use super::gpu::{launch, Gpu};
use super::kernel_check::{CheckArguments, CheckSlots};
use super::memory::{ComplexSlice, ComplexSliceMut, DeviceArray};
use super::pending_word::PendingWord;
use super::runtime::Function;
use crate::backend::spectral_sums::{SpectralSums, SpectralWindow, SCALE};
use crate::backend::MAX_PROJECTIONS;
use crate::backend::{DevicePointer, DeviceSlice, DeviceSliceMut, Span, ValueCheck};
use crate::base::error::{try_collect, Result};
use crate::base::geometry::CheckedValues;
use crate::base::input_check::PendingCheck;
use crate::base::real::Real;
use crate::base::sizes::three_axes;
use num_complex::Complex;

/// Threads per block, as in the kernels.
const THREADS: usize = 256;

/// The kernels of one precision on one GPU.
pub struct Vectors {
    multiply: Function,
    add_conj_products: Function,
    apply_weights: Function,
    axpy: Function,
    dot: Function,
    cg_step: Function,
    projections: Function,
    subtract_projections: Function,
    cg_direction: Function,
    add_differences: Function,
    csr_multiply: Function,
    ramp: Function,
    first_beyond: Function,
    check_input: Function,
    fill_spectra: Function,
    spectral_sum: Function,
    publish: Function,
    check_values: Function,
    /// Maximum number of blocks per kernel: enough to fill the GPU.
    blocks: usize,
    /// Sums of blocks, and the number of finished blocks; used by one kernel after the other.
    partial: DeviceArray<f64>,
    /// Real and imaginary parts of products with at most [`MAX_PROJECTIONS`] arrays.
    products: DeviceArray<f64>,
    /// For kernels whose last block completes the work: the number of finished blocks, and their largest number.
    ticket: DeviceArray<u64>,
    checks: CheckSlots,
}

/// Returns the source with its usual options.
pub fn kernels(bytes: usize) -> Kernels {
    Kernels::new("vector", include_str!("../../../kernels/vector.cu"), bytes, &[("CHECKED", CHECKED)])
}

/// The spectrum of a window, as the kernels see it.
#[derive(Clone, Copy)]
#[repr(C)]
struct SpectrumArguments {
    h: DevicePointer<f64>,
    table: DevicePointer<f64>,
    middle: f64,
    steps: f64,
    energy: f64,
    len: u32,
    points: u32,
}

impl SpectrumArguments {
    /// The spectrum of an axis that does not exist.
    const NONE: SpectrumArguments = SpectrumArguments {
        h: DevicePointer::NULL,
        table: DevicePointer::NULL,
        middle: 0.0,
        steps: 0.0,
        energy: 0.0,
        len: 0,
        points: 0,
    };
}

/// The windows of all axes and the tables of their spectra on a GPU.
struct DeviceSpectra {
    /// One entry per axis.
    arguments: [SpectrumArguments; 3],
    _windows: DeviceArray<f64>,
    _tables: DeviceArray<f64>,
}

impl DeviceSpectra {
    /// Copies the windows, whose values follow each other in `values`, and allocates the tables.
    fn new(gpu: &Gpu, windows: &[SpectralWindow], values: &[f64]) -> Result<Self> {
        let on_gpu = gpu.send(values, SCALE)?;
        let tables = gpu.array(windows.iter().map(|window| window.points).sum(), SCALE)?;
        let mut arguments = [SpectrumArguments::NONE; 3];
        let (mut value, mut point) = (0, 0);
        for (window, arguments) in windows.iter().zip(&mut arguments) {
            let (len, points) = (window.h.len(), window.points);
            *arguments = SpectrumArguments {
                h: on_gpu.view().part(value..value + len).pointer(),
                table: tables.view().part(point..point + points).pointer(),
                middle: window.middle(),
                steps: window.steps,
                energy: window.energy,
                len: len as u32,
                points: points as u32,
            };
            (value, point) = (value + len, point + points);
        }
        Ok(DeviceSpectra { arguments, _windows: on_gpu, _tables: tables })
    }
}

impl Vectors {
    /// Loads the kernels.
    pub fn new<T: Real>(gpu: &Gpu) -> Result<Self> {
        let kernels = kernels(size_of::<T>());
        let function = |name| gpu.function(&kernels, name, 0);
        let blocks = 8 * gpu.properties().multiprocessors as usize;
        Ok(Vectors {
            multiply: function("multiply")?,
            add_conj_products: function("add_conj_products")?,
            apply_weights: function("apply_weights")?,
            axpy: function("axpy")?,
            dot: function("dot")?,
            cg_step: function("cg_step")?,
            projections: function("projections")?,
            subtract_projections: function("subtract_projections")?,
            cg_direction: function("cg_direction")?,
            add_differences: function("add_differences")?,
            csr_multiply: function("csr_multiply")?,
            ramp: function("ramp")?,
            first_beyond: function("first_beyond")?,
            check_input: function("check_input")?,
            fill_spectra: function("fill_spectra")?,
            spectral_sum: function("spectral_sum")?,
            publish: function("publish")?,
            check_values: function("check_values")?,
            blocks,
            partial: gpu.array(2 * MAX_PROJECTIONS * blocks, "sums of vectors")?,
            products: gpu.array(2 * MAX_PROJECTIONS, "sums of vectors")?,
            ticket: gpu.zeros(2, "sums of vectors")?,
            checks: CheckSlots::new(gpu)?,
        })
    }

    fn grid(&self, n: u64) -> [u32; 3] {
        [(n as usize).div_ceil(THREADS).clamp(1, self.blocks) as u32, 1, 1]
    }
}

/// Result of `first_beyond` if all numbers are below the limit.
const ALL_BELOW: u64 = u64::MAX;

/// Numbers that a block of `check_values` checks at once. With fewer, it waits for memory.
const CHECKED: usize = 8 * THREADS;
/// Maximum number of blocks of `check_values`, as a multiple of that of other kernels. On an H200, 168 million numbers
/// in double precision take 0.76 ms with 8, and 0.82 with 1.
const CHECK_BLOCKS: usize = 8;

/// Block size of launches.
const BLOCK: [u32; 3] = [THREADS as u32, 1, 1];

/// Returns the number of arrays of `len` elements in `all` elements.
fn arrays(all: usize, len: usize) -> u64 {
    assert!(len > 0 && all.is_multiple_of(len), "{all} elements in arrays of {len}");
    (all / len) as u64
}

// Views refer to arrays on this GPU and have the lengths that each function asserts.
impl Vectors {
    /// Implements [`crate::backend::Backend::check_values`].
    pub fn check_values<T: Real>(
        &self,
        gpu: &Gpu,
        checks: &mut [ValueCheck<DeviceSlice<'_, T>, DeviceSliceMut<'_, T>>],
    ) -> Result<Vec<CheckedValues<T>>> {
        let found = gpu.zeros::<u64>(3 * checks.len(), "checks of arrays")?;
        for (i, check) in checks.iter_mut().enumerate() {
            let (from, n, stride) = (check.from.pointer(), check.samples as u64, check.stride as u64);
            assert!(check.from.len() > (check.samples - 1) * check.stride);
            let to = check.to.as_ref().map_or(DevicePointer::NULL, |to| {
                assert_eq!(to.len(), check.samples);
                to.pointer()
            });
            let ([low, high], wraps) = (check.valid, u32::from(check.top.is_some()));
            let (top, found) = (check.top.unwrap_or(0.0), found.pointer().offset(3 * i));
            let blocks = check.samples.div_ceil(CHECKED).clamp(1, CHECK_BLOCKS * self.blocks);
            // SAFETY: the kernel's parameters are these; it reads and writes as many numbers as the views have.
            unsafe {
                launch!(gpu, &self.check_values, [blocks as u32, 1, 1], BLOCK, 0;
                    from, n, stride, low, high, to, wraps, top, found)
            };
        }
        let mut bits = vec![0u64; 3 * checks.len()];
        gpu.download(found.view(), &mut bits)?;
        let mut results = Vec::with_capacity(checks.len());
        for (check, bits) in checks.iter().zip(bits.chunks_exact(3)) {
            let number = |bits: u64| f64::from_bits(if bits >> 63 == 1 { bits & !(1 << 63) } else { !bits });
            let invalid = match !bits[2] {
                u64::MAX => None,
                index => {
                    let (index, mut value) = (index as usize, [T::ZERO]);
                    let at = index * check.stride;
                    gpu.download(check.from.part(at..at + 1), &mut value)?;
                    Some((index, value[0]))
                }
            };
            // The range includes 0, as on the host.
            results.push(CheckedValues { range: [number(!bits[0]).min(0.0), number(bits[1]).max(0.0)], invalid });
        }
        Ok(results)
    }

    /// Computes z = x y. y is repeated for each array of its length in x and z.
    pub fn multiply<T: Real>(&self, gpu: &Gpu, x: ComplexSlice<T>, y: ComplexSlice<T>, z: ComplexSliceMut<T>) {
        let (n, count) = (y.len() as u64, arrays(x.len(), y.len()));
        assert_eq!(x.len(), z.len());
        // SAFETY: the kernel's parameters are these; it reads and writes `count` arrays of n elements.
        unsafe {
            launch!(gpu, &self.multiply, self.grid(n), BLOCK, 0; x.pointer(), y.pointer(), z.pointer(), n, count)
        };
    }

    /// Computes z = z + sum of conj(x) y over the arrays of z's length in x and y.
    pub fn add_conj_products<T: Real>(&self, gpu: &Gpu, x: ComplexSlice<T>, y: ComplexSlice<T>, z: ComplexSliceMut<T>) {
        let (n, count) = (z.len() as u64, arrays(x.len(), z.len()));
        assert_eq!(x.len(), y.len());
        // SAFETY: the kernel's parameters are these; it reads `count` arrays of n elements and writes one.
        unsafe {
            launch!(gpu, &self.add_conj_products, self.grid(n), BLOCK, 0;
                x.pointer(), y.pointer(), z.pointer(), n, count)
        };
    }

    /// Computes z = w x. w is repeated for each array of its length in x and z. If this thread's check has failed,
    /// nothing is written.
    pub fn apply_weights<T: Real>(&self, gpu: &Gpu, w: DeviceSlice<'_, T>, x: ComplexSlice<T>, z: ComplexSliceMut<T>) {
        let (n, count) = (w.len() as u64, arrays(x.len(), w.len()));
        assert_eq!(x.len(), z.len());
        // SAFETY: the kernel's parameters are these; it reads and writes `count` arrays of n elements.
        unsafe {
            let check = CheckArguments::<T>::of_output();
            launch!(gpu, &self.apply_weights, self.grid(n), BLOCK, 0;
                w.pointer(), x.pointer(), z.pointer(), n, count, check)
        };
    }

    /// Computes y = y + a x.
    pub fn axpy<T: Real>(&self, gpu: &Gpu, a: f64, x: ComplexSlice<T>, y: ComplexSliceMut<T>) {
        let n = y.len() as u64;
        assert_eq!(x.len(), y.len());
        // SAFETY: the kernel's parameters are these; it reads and writes n elements.
        unsafe { launch!(gpu, &self.axpy, self.grid(n), BLOCK, 0; a, x.pointer(), y.pointer(), n) };
    }

    /// Computes out(0) = Re <x, y>.
    pub fn dot<T: Real>(&self, gpu: &Gpu, x: ComplexSlice<T>, y: ComplexSlice<T>, out: DeviceSliceMut<'_, f64>) {
        let n = x.len() as u64;
        assert!(x.len() == y.len() && out.len() >= 1);
        let (partial, ticket) = (self.partial.pointer(), self.ticket.pointer());
        // SAFETY: the kernel's parameters are these. It reads n elements and writes one result, and one sum per block.
        unsafe {
            launch!(gpu, &self.dot, self.grid(n), BLOCK, 0; x.pointer(), y.pointer(), n, partial, ticket, out.pointer())
        };
    }

    /// Computes a step of conjugate gradients, see [`crate::backend::Backend::cg_step`].
    pub fn cg_step<T: Real>(
        &self,
        gpu: &Gpu,
        [rr, pq]: [DeviceSlice<'_, f64>; 2],
        [p, q]: [ComplexSlice<T>; 2],
        [x, r]: [ComplexSliceMut<T>; 2],
        rr_new: DeviceSliceMut<'_, f64>,
    ) {
        let n = x.len() as u64;
        assert!(
            [p.len(), q.len(), r.len()] == [x.len(); 3] && [rr.len(), pq.len(), rr_new.len()].iter().all(|&n| n > 0)
        );
        let (partial, ticket) = (self.partial.pointer(), self.ticket.pointer());
        // SAFETY: the kernel's parameters are these. It reads and writes n elements, scalars, and one sum per block.
        unsafe {
            launch!(gpu, &self.cg_step, self.grid(n), BLOCK, 0;
                rr.pointer(), pq.pointer(), p.pointer(), q.pointer(), x.pointer(), r.pointer(), n, partial, ticket,
                rr_new.pointer())
        };
    }

    /// Computes x = x - sum_k v_k <v_k, x> / norms[k], see [`crate::backend::Backend::subtract_projections`].
    pub fn subtract_projections<T: Real>(
        &self,
        gpu: &Gpu,
        v: ComplexSlice<T>,
        norms: &[f64],
        x: ComplexSliceMut<T>,
        xx: DeviceSliceMut<'_, f64>,
    ) {
        let n = x.len() as u64;
        assert!(norms.len() <= MAX_PROJECTIONS && v.len() == x.len() * norms.len() && xx.len() >= 1);
        let inverse = |k: usize| norms.get(k).filter(|&&norm| norm > 0.0).map_or(0.0, |norm| 1.0 / norm);
        let [a, b, c, d]: [f64; MAX_PROJECTIONS] = std::array::from_fn(inverse);
        let count = norms.len() as u32;
        let (partial, ticket, products) = (self.partial.pointer(), self.ticket.pointer(), self.products.pointer());
        // SAFETY: the kernels' parameters are these; they read `count` arrays of n elements, write n elements, the
        // products, a scalar, and the sums of each block.
        unsafe {
            launch!(gpu, &self.projections, self.grid(n), BLOCK, 0;
                v.pointer(), x.pointer(), n, count, partial, ticket, products);
            launch!(gpu, &self.subtract_projections, self.grid(n), BLOCK, 0;
                v.pointer(), x.pointer(), n, count, products, a, b, c, d, partial, ticket, xx.pointer())
        };
    }

    /// Computes p = r + (rr_new(0) / rr(0)) p.
    pub fn cg_direction<T: Real>(
        &self,
        gpu: &Gpu,
        rr_new: DeviceSlice<'_, f64>,
        rr: DeviceSlice<'_, f64>,
        r: ComplexSlice<T>,
        p: ComplexSliceMut<T>,
    ) {
        let n = r.len() as u64;
        assert!(r.len() == p.len() && rr_new.len() >= 1 && rr.len() >= 1);
        // SAFETY: the kernel's parameters are these; it reads and writes n elements and two scalars.
        unsafe {
            launch!(gpu, &self.cg_direction, self.grid(n), BLOCK, 0;
                rr_new.pointer(), rr.pointer(), r.pointer(), p.pointer(), n)
        };
    }

    /// Computes y = y + lambda D^H W D x, see [`crate::backend::Backend::add_differences`].
    pub fn add_differences<T: Real>(
        &self,
        gpu: &Gpu,
        dims: &[usize],
        weights: Option<DeviceSlice<'_, T>>,
        lambda: f64,
        x: ComplexSlice<T>,
        y: ComplexSliceMut<T>,
    ) {
        let n = three_axes(dims).map(|n| n as u64);
        let (axes, voxels) = (dims.len() as u32, n.iter().product());
        assert!(x.len() as u64 == voxels && y.len() == x.len());
        assert!(weights.is_none_or(|w| w.len() == x.len() * dims.len()));
        let weights = weights.map_or(DevicePointer::NULL, |w| w.pointer());
        // SAFETY: the kernel's parameters are these; it reads and writes images of these dims and weights of each axis.
        unsafe {
            launch!(gpu, &self.add_differences, self.grid(voxels), BLOCK, 0;
                n[0], n[1], n[2], axes, weights, lambda, x.pointer(), y.pointer())
        };
    }

    /// Computes y = a A x + b y for a sparse matrix A in compressed rows.
    pub fn csr_multiply<T: Real>(
        &self,
        gpu: &Gpu,
        a: f64,
        ([rows, columns], values): ([DeviceSlice<'_, u32>; 2], ComplexSlice<T>),
        x: ComplexSlice<T>,
        b: f64,
        y: ComplexSliceMut<T>,
    ) {
        let n = y.len() as u64;
        assert!(rows.len() == y.len() + 1 && columns.len() == values.len());
        let (rows, columns, values) = (rows.pointer(), columns.pointer(), values.pointer());
        // SAFETY: the kernel's parameters are these. The constructor of the matrix has checked rows and columns.
        unsafe {
            launch!(gpu, &self.csr_multiply, self.grid(n), BLOCK, 0;
                a, rows, columns, values, x.pointer(), b, y.pointer(), n)
        };
    }

    /// Computes out(m) = w(m) exp(i 2 pi k(m).shift), with w = 1 if it is `None`.
    pub fn ramp<T: Real>(
        &self,
        gpu: &Gpu,
        k: &[DeviceSlice<'_, T>],
        shift: &[f64],
        w: Option<DeviceSlice<'_, T>>,
        out: ComplexSliceMut<T>,
    ) {
        let n = out.len() as u64;
        assert!(k.iter().chain(&w).all(|k| k.len() == out.len()));
        let k = [0, 1, 2].map(|a| k.get(a).map_or(DevicePointer::NULL, |k| k.pointer()));
        let shift = [0, 1, 2].map(|a| *shift.get(a).unwrap_or(&0.0));
        let w = w.map_or(DevicePointer::NULL, |w| w.pointer());
        // SAFETY: the kernel's parameters are these; it reads and writes n elements.
        unsafe {
            launch!(gpu, &self.ramp, self.grid(n), BLOCK, 0;
                k[0], k[1], k[2], shift[0], shift[1], shift[2], w, out.pointer(), n)
        };
    }

    /// Implements [`crate::backend::Backend::begin_check`].
    pub fn begin_check<T: Real>(
        &self,
        gpu: &Gpu,
        x: ComplexSlice<T>,
        limit: T,
        at_once: bool,
    ) -> Result<Option<Box<dyn PendingCheck>>> {
        let Some(check) = self.checks.begin(gpu, limit.wide(), at_once)? else { return Ok(None) };
        if !at_once {
            self.check_input(gpu, x, CheckArguments::of(check.in_kernels()));
            gpu.check_queued()?;
        }
        Ok(Some(Box::new(check)))
    }

    /// Makes a check of x.
    pub fn check_input<T: Real>(&self, gpu: &Gpu, x: ComplexSlice<T>, check: CheckArguments<T>) {
        let n = x.len() as u64;
        // SAFETY: the kernel's parameters are these; it reads n elements.
        unsafe { launch!(gpu, &self.check_input, self.grid(n), BLOCK, 0; x.pointer(), n, check) };
    }

    /// Computes the sums of [`crate::backend::Backend::spectral_sums`].
    pub fn spectral_sums<T: Real>(
        &self,
        gpu: &Gpu,
        k: &[DeviceSlice<'_, T>],
        weights: DeviceSlice<'_, T>,
        largest: f64,
        windows: &[SpectralWindow],
    ) -> Result<SpectralSums> {
        let n = weights.len() as u64;
        assert!(k.iter().all(|k| k.len() == weights.len()) && k.len() == windows.len());
        let count = windows.iter().map(|window| window.h.len()).sum();
        let values = try_collect(count, SCALE, windows.iter().flat_map(|window| window.h.iter().copied()))?;
        // The copy of the windows is waited for before `values` ends, also after an error.
        let computed = (|| {
            let spectra = DeviceSpectra::new(gpu, windows, &values)?;
            let [x, y, z] = spectra.arguments;
            let points = windows.iter().map(|window| window.points).max().unwrap_or(0);
            // Eight lanes compute a value.
            let [blocks, ..] = self.grid(8 * points as u64);
            let grid = [blocks, windows.len() as u32, 1];
            // SAFETY: the kernel's parameters are these; it reads the windows and writes the tables.
            unsafe { launch!(gpu, &self.fill_spectra, grid, BLOCK, 0; x, y, z) };
            let mut out = gpu.array::<u64>(2, SCALE)?;
            gpu.fill(out.view_mut(), 0xff);
            let axis = |a: usize| k.get(a).map_or(DevicePointer::NULL, DeviceSlice::pointer);
            let scale = |a: usize| windows.get(a).map_or(0.0, |window| window.distance_scale);
            let (partial, ticket) = (self.partial.pointer(), self.ticket.pointer());
            // SAFETY: the kernel's parameters are these. It reads n coordinates per axis, n weights and the tables, and
            // writes two results and one sum per block.
            unsafe {
                launch!(gpu, &self.spectral_sum, self.grid(n), BLOCK, 0;
                    axis(0), axis(1), axis(2), weights.pointer(), n, largest, x, y, z,
                    scale(0), scale(1), scale(2), partial, ticket, out.pointer())
            };
            let mut found = [0u64; 2];
            gpu.download(out.view(), &mut found)?;
            let nearest = if found[1] == u64::MAX { f64::INFINITY } else { f64::from_bits(found[1]) };
            Ok(SpectralSums { sum: f64::from_bits(found[0]), nearest })
        })();
        if computed.is_err() {
            // The queued copy still reads `values`.
            let _ = gpu.synchronize();
        }
        computed
    }

    /// Queues a copy of x(0) to the host's memory.
    pub fn begin_read(&self, gpu: &Gpu, x: DeviceSlice<'_, f64>) -> Result<PendingWord> {
        assert!(x.len() >= 1);
        let word = PendingWord::new(gpu.stream())?;
        let to = word.device_address();
        // SAFETY: the kernel's parameters are these; it reads and writes one number. `word` keeps the memory until it is
        // written.
        unsafe { launch!(gpu, &self.publish, [1; 3], [1; 3], 0; x.pointer(), to) };
        gpu.check_queued()?;
        Ok(word)
    }

    /// Returns the first complex number that is not below `limit` (including NaN), and its index.
    pub fn first_exceeding<T: Real>(
        &self,
        gpu: &Gpu,
        x: ComplexSlice<T>,
        limit: T,
    ) -> Result<Option<(usize, Complex<T>)>> {
        let mut word = PendingWord::new(gpu.stream())?;
        let (n, first) = (x.len() as u64, word.device_address());
        let (latest, ticket) = (self.ticket.view().part(1..2).pointer(), self.ticket.pointer());
        // SAFETY: the kernel's parameters are these. It reads n elements, writes one index, and leaves the other two
        // words unchanged.
        unsafe {
            launch!(gpu, &self.first_beyond, self.grid(n), BLOCK, 0; x.pointer(), n, limit, latest, ticket, first)
        };
        gpu.check_queued()?;
        let index = match word.read()? {
            ALL_BELOW => return Ok(None),
            index => index as usize,
        };
        let mut value = [Complex::new(T::ZERO, T::ZERO)];
        gpu.download(x.part(index..index + 1), &mut value)?;
        Ok(Some((index, value[0])))
    }
}
