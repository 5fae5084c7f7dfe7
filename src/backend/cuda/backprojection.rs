//! Backprojection of spokes on a GPU: the kernels of kernels/backprojection.cu.
//!
//! Knots are sums over the samples of their spokes, without an FFT, in one kernel without tables.

use super::compile::Kernels;
use super::gpu::{launch, Gpu};
use super::memory::DeviceArray;
use super::runtime::Function;
use crate::backend::{DeviceSlice, DeviceSliceMut, Span, Spoke};
use crate::base::error::{try_collect, Result};
use crate::base::real::Real;
use crate::base::sizes::{product, sum};
use num_complex::Complex;
use std::marker::PhantomData;

const WHAT: &str = "the projections";
/// Threads per block, as in the kernels.
const PART: usize = 256;
const WIDE: usize = 32;
const HIGH: usize = 8;
/// Number of values per spoke in the kernels.
const NUMBERS: usize = 4;
/// Maximum number of spokes whose projections are in memory at once.
const SPOKES: usize = 1024;
/// Maximum number of arrays per launch.
const ARRAYS: usize = 1 << 15;

/// See [`crate::backend::Backend::backprojector`].
pub struct Backprojector<T> {
    dims: [usize; 2],
    readout: usize,
    count: usize,
    /// Maximum number of arrays at once.
    arrays: usize,
    spokes: DeviceArray<f64>,
    project: Function,
    backproject: Function,
    precision: PhantomData<T>,
}

/// Returns the source with its options.
pub fn kernels(bytes: usize) -> Kernels {
    Kernels::new("backprojection", include_str!("../../../kernels/backprojection.cu"), bytes, &[])
}

/// Returns the knot in the middle of the image, and the number of knots.
fn knots([nx, ny]: [usize; 2]) -> [usize; 2] {
    let middle = 2 * (nx / 2) + 2 * (ny / 2);
    [middle, 2 * middle + 2]
}

impl<T: Real> Backprojector<T> {
    /// See [`crate::backend::Backend::backprojector`].
    pub fn new(gpu: &Gpu, spokes: &[Spoke], readout: usize, dims: &[usize], arrays: usize) -> Result<Self> {
        let numbers = spokes.iter().flat_map(|s| {
            let knots = s.knot_spacing();
            [s.first * knots, s.step * knots, s.direction[0] / knots, s.direction[1] / knots]
        });
        let numbers = try_collect(NUMBERS * spokes.len(), WHAT, numbers)?;
        let kernels = kernels(size_of::<T>());
        Ok(Backprojector {
            dims: [dims[0], dims[1]],
            readout,
            count: spokes.len(),
            arrays,
            spokes: gpu.upload(&numbers, WHAT)?,
            project: gpu.function(&kernels, "project", 0)?,
            backproject: gpu.function(&kernels, "backproject", 0)?,
            precision: PhantomData,
        })
    }

    /// Returns the bytes of its arrays and its work memory.
    pub fn bytes(dims: &[usize], arrays: usize) -> usize {
        let [_, knots] = knots([dims[0], dims[1]]);
        let projections = product(&[knots, SPOKES, arrays, size_of::<Complex<T>>()]);
        sum(&[projections, NUMBERS * SPOKES * size_of::<f64>()])
    }

    /// Returns the number of complex values of the projections that are in memory at once.
    pub fn room(&self) -> usize {
        let [_, knots] = knots(self.dims);
        product(&[knots, self.count.min(SPOKES), self.arrays.min(ARRAYS)])
    }

    /// Implements [`crate::backend::Backend::backproject`].
    pub fn backproject(
        &self,
        gpu: &Gpu,
        values: DeviceSlice<'_, Complex<T>>,
        projections: DeviceSliceMut<'_, Complex<T>>,
        mut image: DeviceSliceMut<'_, Complex<T>>,
    ) {
        let [nx, ny] = self.dims;
        let (voxels, samples) = (nx * ny, self.count * self.readout);
        let arrays = image.len() / voxels;
        assert!(image.len() == arrays * voxels && values.len() == arrays * samples);
        let [middle, knots] = knots(self.dims);
        let at_once = self.count.min(SPOKES);
        assert!(projections.len() >= knots * at_once * arrays.min(ARRAYS));
        for start in (0..arrays).step_by(ARRAYS) {
            let some = ARRAYS.min(arrays - start);
            let values = values.part(start * samples..(start + some) * samples);
            let image = image.reborrow().part(start * voxels..(start + some) * voxels);
            for first in (0..self.count).step_by(at_once) {
                let spokes = at_once.min(self.count - first);
                let grid = [knots.div_ceil(PART) as u32, spokes as u32, some as u32];
                let place = self.spokes.pointer();
                // SAFETY: the kernel's parameters are these. It reads `some` arrays of samples and the values of all
                // spokes, and writes `some` times `spokes` projections.
                unsafe {
                    launch!(gpu, &self.project, grid, [PART as u32, 1, 1], 0;
                        values.pointer(), place, projections.pointer(), first as u32, self.count as u32,
                        self.readout as u32, knots as u32, middle as u32)
                };
                let grid = [nx.div_ceil(WIDE) as u32, ny.div_ceil(HIGH) as u32, some as u32];
                let numbers = self.spokes.view().part(NUMBERS * first..NUMBERS * (first + spokes));
                // SAFETY: the kernel's parameters are these. It reads the same projections and values, and writes
                // `some` images of nx times ny voxels.
                unsafe {
                    launch!(gpu, &self.backproject, grid, [WIDE as u32, HIGH as u32, 1], 0;
                        projections.pointer(), numbers.pointer(), image.pointer(), spokes as u32, knots as u32,
                        middle as u32, nx as u32, ny as u32, (first > 0) as u32)
                };
            }
        }
    }
}
