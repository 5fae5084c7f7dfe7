//! Factors for off-resonance and decay: the kernels of kernels/off_resonance.cu. They are compiled for the first plan
//! that has a field map or decay map.

use super::compile::Kernels;
use super::gpu::{launch, Gpu};
use super::memory::DeviceArray;
use crate::backend::{ChebyshevSeries, DevicePointer, DeviceSlice, Span};
use crate::base::error::Result;
use crate::base::real::Real;
use num_complex::Complex;

/// Threads per block, as in the kernels.
const THREADS: usize = 256;
/// Functions of a series that a thread evaluates at once, as in the kernels.
const GROUP: usize = 8;
/// Maximum number of blocks along the elements of an array.
const BLOCKS: usize = 1 << 12;

const VOXELS: &str = "off-resonance of voxels";
const SAMPLES: &str = "off-resonance of samples";

/// Returns the source with its options.
pub fn kernels(bytes: usize) -> Kernels {
    Kernels::new("off_resonance", include_str!("../../../kernels/off_resonance.cu"), bytes, &[])
}

/// Returns the grid of blocks for `len` elements of each of `arrays` arrays.
fn grid(len: usize, arrays: usize) -> [u32; 3] {
    [len.div_ceil(THREADS).clamp(1, BLOCKS) as u32, arrays as u32, 1]
}

/// Implements [`crate::backend::Backend::voxel_waves`].
pub fn voxel_waves<T: Real>(
    gpu: &Gpu,
    frequencies: DeviceSlice<'_, T>,
    decay: Option<DeviceSlice<'_, T>>,
    max_rate: f64,
    origin: f64,
    nodes: &[f64],
) -> Result<DeviceArray<Complex<T>>> {
    let n = frequencies.len();
    assert!(decay.is_none_or(|decay| decay.len() == n) && nodes.len() <= u16::MAX as usize);
    let function = gpu.function(&kernels(size_of::<T>()), "voxel_waves", 0)?;
    let out = gpu.array::<Complex<T>>(n * nodes.len(), VOXELS)?;
    let taus = gpu.upload(nodes, VOXELS)?;
    let decay = decay.map_or(DevicePointer::NULL, |decay| decay.pointer());
    // SAFETY: the kernel's parameters are these; it reads maps of n voxels and a node per row of the grid, and writes n
    // voxels per node.
    unsafe {
        launch!(gpu, &function, grid(n, nodes.len()), [THREADS as u32, 1, 1], 0;
            frequencies.pointer(), decay, max_rate, origin, taus.pointer(), out.pointer(), n as u64)
    };
    Ok(out)
}

/// Implements [`crate::backend::Backend::sample_waves`].
pub fn sample_waves<T: Real>(
    gpu: &Gpu,
    times: DeviceSlice<'_, T>,
    series: ChebyshevSeries<'_>,
    frequency: f64,
) -> Result<DeviceArray<Complex<T>>> {
    let (n, functions) = (times.len(), series.functions);
    let function = gpu.function(&kernels(size_of::<T>()), "sample_waves", 0)?;
    let out = gpu.array::<Complex<T>>(n * functions, SAMPLES)?;
    let coefficients = gpu.upload(series.coefficients, SAMPLES)?;
    let [middle, half] = series.interval;
    // SAFETY: the kernel's parameters are these; it reads n times and the coefficients, and writes n samples of each
    // function.
    unsafe {
        launch!(gpu, &function, grid(n, functions.div_ceil(GROUP)), [THREADS as u32, 1, 1], 0;
            times.pointer(), middle, half, frequency, coefficients.pointer(), series.terms() as u32, functions as u32,
            out.pointer(), n as u64)
    };
    Ok(out)
}

/// Implements [`crate::backend::Backend::series_values`].
pub fn series_values<T: Real>(
    gpu: &Gpu,
    times: DeviceSlice<'_, T>,
    series: ChebyshevSeries<'_>,
    index: usize,
    w: Option<DeviceSlice<'_, T>>,
) -> Result<DeviceArray<T>> {
    let n = times.len();
    assert!(index < series.functions && w.is_none_or(|w| w.len() == n));
    let function = gpu.function(&kernels(size_of::<T>()), "series_values", 0)?;
    let out = gpu.array::<T>(n, SAMPLES)?;
    let coefficients = gpu.upload(series.coefficients, SAMPLES)?;
    let w = w.map_or(DevicePointer::NULL, |w| w.pointer());
    let [middle, half] = series.interval;
    // SAFETY: the kernel's parameters are these; it reads n times, n weights and the coefficients, and writes n samples.
    unsafe {
        launch!(gpu, &function, grid(n, 1), [THREADS as u32, 1, 1], 0;
            times.pointer(), middle, half, coefficients.pointer(), series.terms() as u32, series.functions as u32,
            index as u32, w, out.pointer(), n as u64)
    };
    Ok(out)
}
