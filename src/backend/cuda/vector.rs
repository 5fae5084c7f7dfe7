//! The kernels of kernels/vector.cu.

use super::compile::Kernels;
use super::gpu::{launch, Gpu};
use super::memory::DeviceArray;
use super::runtime::Function;
use crate::base::error::Result;
use crate::base::real::Real;
use crate::base::sizes::three_axes;
use num_complex::Complex;

/// Threads of a block, as in the kernels.
const THREADS: usize = 256;

/// The kernels of one precision on one GPU.
pub struct Vectors {
    multiply: Function,
    add_conj_products: Function,
    apply_weights: Function,
    axpy: Function,
    dot: Function,
    cg_step: Function,
    cg_direction: Function,
    add_differences: Function,
    csr_multiply: Function,
    ramp: Function,
    first_beyond: Function,
    /// Blocks that a kernel has, at most: enough to fill the GPU.
    blocks: usize,
    /// Sums of blocks, and how many are done; used by one kernel after the other.
    partial: DeviceArray<f64>,
    ticket: DeviceArray<u32>,
}

/// The source with its usual options.
pub fn kernels(bytes: usize) -> Kernels {
    Kernels::new("vector", include_str!("../../../kernels/vector.cu"), bytes, &[])
}

impl Vectors {
    /// Loads them.
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
            cg_direction: function("cg_direction")?,
            add_differences: function("add_differences")?,
            csr_multiply: function("csr_multiply")?,
            ramp: function("ramp")?,
            first_beyond: function("first_beyond")?,
            blocks,
            partial: gpu.zeros(blocks, "sums of vectors")?,
            ticket: gpu.zeros(1, "sums of vectors")?,
        })
    }

    fn grid(&self, n: u64) -> [u32; 3] {
        [(n as usize).div_ceil(THREADS).clamp(1, self.blocks) as u32, 1, 1]
    }
}

/// Blocks of threads, as launches take them.
const BLOCK: [u32; 3] = [THREADS as u32, 1, 1];

// In all of these: addresses are those of arrays on this GPU, of as many elements as the doc says, which the views that
// they come from vouch for; parameters are those of the kernel of the same name.
impl Vectors {
    /// z = x y: `count` arrays of n in x and z, one in y.
    pub fn multiply(&self, gpu: &Gpu, x: u64, y: u64, z: u64, n: u64, count: u64) {
        // SAFETY: see above.
        unsafe { launch!(gpu, &self.multiply, self.grid(n), BLOCK, 0; x, y, z, n, count) };
    }

    /// z = z + sum of conj(x) y: `count` arrays of n in x and y.
    pub fn add_conj_products(&self, gpu: &Gpu, x: u64, y: u64, z: u64, n: u64, count: u64) {
        // SAFETY: see above.
        unsafe { launch!(gpu, &self.add_conj_products, self.grid(n), BLOCK, 0; x, y, z, n, count) };
    }

    /// z = w x: `count` arrays of n in x and z.
    pub fn apply_weights(&self, gpu: &Gpu, w: u64, x: u64, z: u64, n: u64, count: u64) {
        // SAFETY: see above.
        unsafe { launch!(gpu, &self.apply_weights, self.grid(n), BLOCK, 0; w, x, z, n, count) };
    }

    /// y = y + a x.
    pub fn axpy(&self, gpu: &Gpu, a: f64, x: u64, y: u64, n: u64) {
        // SAFETY: see above.
        unsafe { launch!(gpu, &self.axpy, self.grid(n), BLOCK, 0; a, x, y, n) };
    }

    /// out = Re <x, y>.
    pub fn dot(&self, gpu: &Gpu, x: u64, y: u64, n: u64, out: u64) {
        let (partial, ticket) = (self.partial.address(), self.ticket.address());
        // SAFETY: see above.
        unsafe { launch!(gpu, &self.dot, self.grid(n), BLOCK, 0; x, y, n, partial, ticket, out) };
    }

    /// A step of conjugate gradients: x and r change, out = <r, r>.
    #[allow(clippy::too_many_arguments)]
    pub fn cg_step(&self, gpu: &Gpu, rr: u64, pq: u64, p: u64, q: u64, x: u64, r: u64, n: u64, out: u64) {
        let (partial, ticket) = (self.partial.address(), self.ticket.address());
        // SAFETY: see above.
        unsafe { launch!(gpu, &self.cg_step, self.grid(n), BLOCK, 0; rr, pq, p, q, x, r, n, partial, ticket, out) };
    }

    /// p = r + (rr_new / rr) p.
    pub fn cg_direction(&self, gpu: &Gpu, rr_new: u64, rr: u64, r: u64, p: u64, n: u64) {
        // SAFETY: see above.
        unsafe { launch!(gpu, &self.cg_direction, self.grid(n), BLOCK, 0; rr_new, rr, r, p, n) };
    }

    /// y = y + lambda D^H W D x; `weights` is 0 for none.
    pub fn add_differences(&self, gpu: &Gpu, dims: &[usize], weights: u64, lambda: f64, x: u64, y: u64) {
        let n = three_axes(dims).map(|n| n as u64);
        let (axes, voxels) = (dims.len() as u32, n.iter().product());
        // SAFETY: see above.
        unsafe {
            launch!(gpu, &self.add_differences, self.grid(voxels), BLOCK, 0; n[0], n[1], n[2], axes, weights, lambda, x, y)
        };
    }

    /// y = a A x + b y, A having n rows.
    #[allow(clippy::too_many_arguments)]
    pub fn csr_multiply(
        &self,
        gpu: &Gpu,
        a: f64,
        rows: u64,
        columns: u64,
        values: u64,
        x: u64,
        b: f64,
        y: u64,
        n: u64,
    ) {
        // SAFETY: see above.
        unsafe { launch!(gpu, &self.csr_multiply, self.grid(n), BLOCK, 0; a, rows, columns, values, x, b, y, n) };
    }

    /// out(m) = w(m) exp(i 2 pi k(m).shift); `w` is 0 for ones.
    pub fn ramp(&self, gpu: &Gpu, k: [u64; 3], shift: [f64; 3], w: u64, out: u64, n: u64) {
        // SAFETY: see above.
        unsafe {
            launch!(gpu, &self.ramp, self.grid(n), BLOCK, 0; k[0], k[1], k[2], shift[0], shift[1], shift[2], w, out, n)
        };
    }

    /// Refuses NaN and infinity among n complex numbers, and names the first by index.
    pub fn first_beyond<T: Real>(&self, gpu: &Gpu, x: u64, n: u64, limit: T) -> Result<Option<(usize, Complex<T>)>> {
        let first = gpu.array::<u64>(1, "a check")?;
        let at = first.address();
        gpu.fill(at, 0xff, size_of::<u64>());
        // SAFETY: see above.
        unsafe { launch!(gpu, &self.first_beyond, self.grid(n), BLOCK, 0; x, n, limit, at) };
        let mut found = [0u64];
        gpu.download(at, &mut found)?;
        if found[0] >= n {
            return Ok(None);
        }
        let mut value = [Complex::new(T::ZERO, T::ZERO)];
        gpu.download(x + found[0] * size_of::<Complex<T>>() as u64, &mut value)?;
        Ok(Some((found[0] as usize, value[0])))
    }
}
