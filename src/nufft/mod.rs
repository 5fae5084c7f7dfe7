//! The non-uniform fast Fourier transform: gridding with a window chosen from the tolerance.
//!
//! Adjoint: spread the samples onto an oversampled grid, transform, crop, divide by the window's transform. Forward:
//! the transpose of each step in reverse (Jackson et al., IEEE Trans. Med. Imaging 10:473, 1991; Beatty et al., ibid.
//! 24:799, 2005).

pub mod choice;
mod minimax;
// The digits are those that count, in decimal; some numbers are by chance near those of mathematics.
#[allow(clippy::excessive_precision, clippy::approx_constant)]
mod minimax_table;
pub(crate) mod segmented;
pub(crate) mod segments;
pub(crate) mod toeplitz;
pub mod window;

use crate::backend::{Backend, Complexes, ComplexesMut, Span};
use crate::base::buffer_pool::Pool;
use crate::base::error::{checked_product, try_box, Result};
use crate::base::interrupt;
use crate::base::real::Real;
use choice::{choose, Choice, Wanted};
use num_complex::Complex;
use std::sync::Arc;

/// A planned transform between samples and an image.
pub struct Nufft<T: Real, B: Backend<T>> {
    samples: usize,
    gridder: B::Gridder,
    on_grid: Arc<OnGrid<T, B>>,
}

/// What does not depend on the samples.
struct OnGrid<T: Real, B: Backend<T>> {
    choice: Choice,
    /// The polynomials of the window's taps.
    taps: Vec<Vec<f64>>,
    voxels: usize,
    grid_len: usize,
    /// Arrays that are transformed at once, at most.
    arrays: usize,
    // In memory of its own, whose lack is an error.
    fft: Box<B::GridFft>,
    grids: Pool<B::Array<Complex<T>>>,
}

impl<T: Real, B: Backend<T>> Nufft<T, B> {
    /// Chooses window and grid, without sorting anything yet.
    pub fn choose(backend: &B, wanted: Wanted, dims: &[usize], samples: usize) -> Result<Choice> {
        let cost = |grid: &[usize], width: usize| backend.transform_cost(grid, dims, samples, width);
        choose(wanted, dims, T::EPSILON, cost)
    }

    /// Bytes that [`Nufft::new`] will allocate: `arrays` oversampled grids, the sorted samples, and scratch.
    pub fn bytes(backend: &B, choice: &Choice, samples: usize, arrays: usize) -> Result<usize> {
        let complex = std::mem::size_of::<Complex<T>>();
        let grids = [&choice.grid[..], &[arrays, complex]].concat();
        let points = Self::bytes_of_samples(backend, choice, samples, arrays);
        let points = points.saturating_add(backend.grid_fft_bytes(&choice.grid));
        Ok(checked_product(&grids, "the oversampled grid")?.saturating_add(points))
    }

    /// Bytes among these that depend on the samples: what [`Nufft::with_samples`] will allocate.
    pub fn bytes_of_samples(backend: &B, choice: &Choice, samples: usize, arrays: usize) -> usize {
        backend.gridder_bytes(samples, &choice.grid, choice.shape.width(), arrays)
    }

    /// Plans transforms between samples at `k` (one slice an axis) and images of `dims` voxels, `arrays` of them at
    /// once at most.
    pub fn new(backend: &B, k: &[&[T]], dims: &[usize], choice: Choice, arrays: usize) -> Result<Self> {
        let grid_len = checked_product(&choice.grid, "the oversampled grid")?;
        let all = checked_product(&[grid_len, arrays], "the oversampled grids")?;
        let started = std::time::Instant::now();
        // The largest array first: where it does not fit, no time is spent on the rest.
        let grids = Pool::new();
        drop(grids.try_take(|| backend.unwritten::<Complex<T>>(all, "the oversampled grid"))?);
        let correction = choice.correction(dims)?;
        let taps = choice.taps(dims);
        let gridder = backend.gridder(k, &choice.grid, &taps, arrays, None)?;
        let sorted = started.elapsed();
        interrupt::check("the sorting of samples")?;
        let fft = try_box(backend.grid_fft(dims, &choice.grid, &correction)?, "the transforms of the grid")?;
        let milliseconds = |t: std::time::Duration| 1e3 * t.as_secs_f64();
        log::debug!(
            "gridding planned in {:.2} ms, its transforms in {:.2}",
            milliseconds(sorted),
            milliseconds(started.elapsed() - sorted)
        );
        let voxels = dims.iter().product();
        let on_grid = Arc::new(OnGrid { choice, taps, voxels, grid_len, arrays, fft, grids });
        Ok(Nufft { samples: k[0].len(), gridder, on_grid })
    }

    /// The same transforms between the same images and other samples. Both share all that the samples do not decide,
    /// their grids among it.
    pub fn with_samples(&self, backend: &B, k: &[&[T]]) -> Result<Self> {
        let OnGrid { choice, taps, arrays, .. } = &*self.on_grid;
        let started = std::time::Instant::now();
        let gridder = backend.gridder(k, &choice.grid, taps, *arrays, Some(&self.gridder))?;
        log::debug!("gridding planned anew in {:.2} ms", 1e3 * started.elapsed().as_secs_f64());
        interrupt::check("the sorting of samples")?;
        Ok(Nufft { samples: k[0].len(), gridder, on_grid: self.on_grid.clone() })
    }

    /// Window and grid.
    pub fn choice(&self) -> &Choice {
        &self.on_grid.choice
    }

    fn grid(&self, backend: &B) -> Result<crate::base::buffer_pool::Lease<'_, B::Array<Complex<T>>>> {
        let OnGrid { grids, grid_len, arrays, .. } = &*self.on_grid;
        grids.try_take(|| backend.unwritten(grid_len * arrays, "the oversampled grid"))
    }

    /// The cells of the grids for these arrays of samples and of voxels, whose numbers must agree.
    fn cells(&self, values: usize, voxels: usize) -> std::ops::Range<usize> {
        let (on_grid, arrays) = (&self.on_grid, values / self.samples);
        assert!(arrays <= on_grid.arrays && values == arrays * self.samples && voxels == arrays * on_grid.voxels);
        0..arrays * on_grid.grid_len
    }

    /// image(r) = sum_m values(m) exp(+i 2 pi k_m.r), for one or several arrays one after the other.
    pub fn adjoint(&self, backend: &B, values: Complexes<B, T>, image: ComplexesMut<B, T>) -> Result<()> {
        let cells = self.cells(values.len(), image.len());
        let mut grid = self.grid(backend)?;
        backend.spread(&self.gridder, values, backend.view_mut(&mut grid).part(cells.clone()));
        interrupt::check("an adjoint transform")?;
        backend.grid_to_image(&self.on_grid.fft, backend.view_mut(&mut grid).part(cells), image);
        Ok(())
    }

    /// values(m) = sum_r image(r) exp(-i 2 pi k_m.r), for one or several arrays one after the other.
    pub fn forward(&self, backend: &B, image: Complexes<B, T>, values: ComplexesMut<B, T>) -> Result<()> {
        let cells = self.cells(values.len(), image.len());
        let mut grid = self.grid(backend)?;
        backend.image_to_grid(&self.on_grid.fft, image, backend.view_mut(&mut grid).part(cells.clone()));
        interrupt::check("a forward transform")?;
        backend.interpolate(&self.gridder, backend.view(&grid).part(cells), values);
        Ok(())
    }

    /// The adjoint as far as the oversampled grid, k = 0 in its first cell.
    pub fn spread(&self, backend: &B, values: Complexes<B, T>, grid: ComplexesMut<B, T>) {
        backend.spread(&self.gridder, values, grid);
    }

    /// Window-weighted sums of a grid at the samples: the transpose of [`Nufft::spread`].
    pub fn interpolate(&self, backend: &B, grid: Complexes<B, T>, values: ComplexesMut<B, T>) {
        backend.interpolate(&self.gridder, grid, values);
    }

    /// Points of the oversampled grid.
    pub fn grid_len(&self) -> usize {
        self.on_grid.grid_len
    }
}
