//! The non-uniform fast Fourier transform: gridding with a window chosen from the tolerance.
//!
//! Adjoint: spread the samples onto an oversampled grid, transform, crop, divide by the window's transform. Forward:
//! the transpose of each step in reverse (Jackson et al., IEEE Trans. Med. Imaging 10:473, 1991; Beatty et al., ibid.
//! 24:799, 2005).

pub(crate) mod corrections;
pub mod gridding_params;
mod minimax;
// The numbers have the decimal digits that matter; some are close to mathematical constants by chance.
#[allow(clippy::excessive_precision, clippy::approx_constant)]
mod minimax_table;
pub(crate) mod segmented;
pub(crate) mod time_segments;
pub(crate) mod toeplitz;
pub mod window;

/// Previous names of the items of [`gridding_params`].
pub mod choice {
    pub use crate::nufft::gridding_params::{choices, choose, GriddingParams as Choice, WindowRequest as Wanted};
}

use crate::backend::{Backend, Complexes, ComplexesMut, Reals, Span};
use crate::base::buffer_pool::{Lease, Pool};
use crate::base::error::{checked_product, try_box, Result};
use crate::base::interrupt;
use crate::base::real::Real;
use gridding_params::{choose, GriddingParams, WindowRequest};
use num_complex::Complex;
use std::sync::Arc;

/// A transform between given samples and an image.
pub struct Nufft<T: Real, B: Backend<T>> {
    samples: usize,
    gridder: B::Gridder,
    grid_state: Arc<GridState<T, B>>,
}

/// State that does not depend on the samples.
struct GridState<T: Real, B: Backend<T>> {
    params: GriddingParams,
    /// Polynomials of the window's taps.
    taps: Vec<Vec<f64>>,
    voxels: usize,
    grid_len: usize,
    /// Maximum number of arrays transformed at once.
    batch_size: usize,
    // Boxed by a fallible allocation.
    fft: Box<B::GridFft>,
    grids: Pool<B::Array<Complex<T>>>,
}

impl<T: Real, B: Backend<T>> Nufft<T, B> {
    /// Chooses window and grid for `samples` samples.
    pub fn choose(backend: &B, request: WindowRequest, dims: &[usize], samples: usize) -> Result<GriddingParams> {
        let cost = |grid: &[usize], width: usize| backend.transform_cost(grid, dims, samples, width);
        let (sizes, largest_oversampling) = (backend.grid_sizes(), backend.largest_oversampling());
        choose(WindowRequest { sizes, largest_oversampling, ..request }, dims, T::EPSILON, cost)
    }

    /// Returns the bytes that [`Nufft::new`] allocates: `batch_size` oversampled grids, the sorted samples, and
    /// scratch.
    pub fn bytes(backend: &B, params: &GriddingParams, samples: usize, batch_size: usize) -> Result<usize> {
        let complex = std::mem::size_of::<Complex<T>>();
        let grids = [&params.grid[..], &[batch_size, complex]].concat();
        let points = Self::bytes_of_samples(backend, params, samples, batch_size);
        let points = points.saturating_add(backend.grid_fft_bytes(&params.grid));
        Ok(checked_product(&grids, "the oversampled grid")?.saturating_add(points))
    }

    /// Returns the bytes that depend on the samples: those that [`Nufft::with_samples`] allocates.
    pub fn bytes_of_samples(backend: &B, params: &GriddingParams, samples: usize, batch_size: usize) -> usize {
        backend.gridder_bytes(samples, &params.grid, params.shape.width(), batch_size)
    }

    /// Prepares transforms between samples at `k` (one view per axis) and images of `dims` voxels, at most
    /// `batch_size` at once.
    pub fn new(
        backend: &B,
        k: &[Reals<B, T>],
        dims: &[usize],
        params: GriddingParams,
        batch_size: usize,
    ) -> Result<Self> {
        let grid_len = checked_product(&params.grid, "the oversampled grid")?;
        let all = checked_product(&[grid_len, batch_size], "the oversampled grids")?;
        let started = std::time::Instant::now();
        let grids = Pool::new();
        let correction = params.correction(dims)?;
        let taps = params.taps(dims);
        let mut fft = None;
        let rest = || {
            grids.try_take(|| backend.unwritten::<Complex<T>>(all, "the oversampled grid")).map(drop)?;
            fft = Some(try_box(backend.grid_fft(dims, &params.grid, &correction)?, "the transforms of the grid")?);
            Ok(())
        };
        backend.prepare(dims, &params.grid, &taps, k[0].len());
        let gridder = backend.gridder(k, &params.grid, &taps, batch_size, None, rest)?;
        let fft = fft.expect("the backend has called `rest`");
        log::debug!("gridding and transforms of the grid planned in {:.2} ms", 1e3 * started.elapsed().as_secs_f64());
        interrupt::check("the sorting of samples")?;
        let voxels = dims.iter().product();
        let grid_state = Arc::new(GridState { params, taps, voxels, grid_len, batch_size, fft, grids });
        Ok(Nufft { samples: k[0].len(), gridder, grid_state })
    }

    /// Prepares transforms between new samples and the same images. Both share all state that does not depend on the
    /// samples, including the grids.
    pub fn with_samples(&self, backend: &B, k: &[Reals<B, T>]) -> Result<Self> {
        let GridState { params, taps, batch_size, .. } = &*self.grid_state;
        let started = std::time::Instant::now();
        let gridder = backend.gridder(k, &params.grid, taps, *batch_size, Some(&self.gridder), || Ok(()))?;
        log::debug!("gridding planned again in {:.2} ms", 1e3 * started.elapsed().as_secs_f64());
        interrupt::check("the sorting of samples")?;
        Ok(Nufft { samples: k[0].len(), gridder, grid_state: self.grid_state.clone() })
    }

    /// Returns window and grid.
    pub fn choice(&self) -> &GriddingParams {
        &self.grid_state.params
    }

    /// Borrows a buffer for the grids of one batch.
    fn grid(&self, backend: &B) -> Result<Lease<'_, B::Array<Complex<T>>>> {
        let GridState { grids, grid_len, batch_size, .. } = &*self.grid_state;
        grids.try_take(|| backend.unwritten(grid_len * batch_size, "the oversampled grid"))
    }

    /// Returns the range of grid cells for arrays with `values` samples and `voxels` voxels in total, whose numbers of
    /// arrays must be equal.
    fn cells(&self, values: usize, voxels: usize) -> std::ops::Range<usize> {
        let (grid_state, arrays) = (&self.grid_state, values / self.samples);
        assert!(
            arrays <= grid_state.batch_size && values == arrays * self.samples && voxels == arrays * grid_state.voxels
        );
        0..arrays * grid_state.grid_len
    }

    /// Computes image(r) = sum_m values(m) exp(+i 2 pi k_m.r) for one or several consecutive arrays.
    pub fn adjoint(&self, backend: &B, values: Complexes<B, T>, image: ComplexesMut<B, T>) -> Result<()> {
        let cells = self.cells(values.len(), image.len());
        let mut grid = self.grid(backend)?;
        let grid = backend.view_mut(&mut grid).part(cells);
        backend.samples_to_image(&self.gridder, &self.grid_state.fft, values, grid, image)
    }

    /// Computes values(m) = sum_r image(r) exp(-i 2 pi k_m.r) for one or several consecutive arrays.
    pub fn forward(&self, backend: &B, image: Complexes<B, T>, values: ComplexesMut<B, T>) -> Result<()> {
        let cells = self.cells(values.len(), image.len());
        let mut grid = self.grid(backend)?;
        let grid = backend.view_mut(&mut grid).part(cells);
        backend.image_to_samples(&self.gridder, &self.grid_state.fft, image, grid, values)
    }

    /// Computes the adjoint as far as the oversampled grid, with k = 0 in the first cell.
    pub fn spread(&self, backend: &B, values: Complexes<B, T>, grid: ComplexesMut<B, T>) {
        backend.spread(&self.gridder, values, grid);
    }

    /// Computes window-weighted sums of a grid at the samples: the transpose of [`Nufft::spread`].
    pub fn interpolate(&self, backend: &B, grid: Complexes<B, T>, values: ComplexesMut<B, T>) {
        backend.interpolate(&self.gridder, grid, values);
    }

    /// Returns the number of cells of the oversampled grid.
    pub fn grid_len(&self) -> usize {
        self.grid_state.grid_len
    }
}
