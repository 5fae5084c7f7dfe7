//! The non-uniform fast Fourier transform: gridding with a window chosen from the tolerance.
//!
//! Adjoint: spread the samples onto an oversampled grid, transform, crop, divide by the window's transform. Forward: the
//! transpose of each step in reverse (Jackson et al., IEEE Trans. Med. Imaging 10:473, 1991; Beatty et al., ibid. 24:799,
//! 2005).

use crate::backend::cpu::threads::Pool;
use crate::backend::{Backend, Complexes, ComplexesMut};
use crate::error::{checked_product, Result};
use crate::real::Real;
use crate::window::{choose, Choice, Window};
use num_complex::Complex;

/// A planned transform between samples and an image.
pub struct Nufft<T: Real, B: Backend<T>> {
    choice: Choice,
    grid_len: usize,
    gridder: B::Gridder,
    fft: B::GridFft,
    grids: Pool<B::Array<Complex<T>>>,
}

impl<T: Real, B: Backend<T>> Nufft<T, B> {
    /// Chooses window and grid, without sorting anything yet.
    pub fn choose(window: Window, dims: &[usize], samples: usize, tolerance: f64) -> Result<Choice> {
        choose(window, dims, samples, tolerance, T::EPSILON)
    }

    /// Bytes of an oversampled grid and the sorted samples: what a plan will hold, before it is made.
    pub fn bytes(choice: &Choice, samples: usize) -> Result<usize> {
        let grid = checked_product(&choice.grid, "the oversampled grid")?;
        Ok(grid * 2 * std::mem::size_of::<T>() + samples * (3 * std::mem::size_of::<T>() + 12))
    }

    /// Plans transforms between samples at `k` (one slice an axis) and images of `dims` voxels.
    pub fn new(backend: &B, k: &[&[T]], dims: &[usize], choice: Choice) -> Result<Self> {
        let grid_len = checked_product(&choice.grid, "the oversampled grid")?;
        let correction: Vec<Vec<f64>> =
            dims.iter().zip(&choice.grid).map(|(&n, &g)| choice.shape.correction(n, g)).collect();
        // The window's values may err by less than aliasing does, but are never wanted beyond the precision.
        let accuracy = (0.02 * choice.error).max(0.5 * T::EPSILON);
        let gridder = backend.gridder(k, &choice.grid, &choice.shape, accuracy)?;
        let fft = backend.grid_fft(dims, &choice.grid, &correction)?;
        let nufft = Nufft { choice, grid_len, gridder, fft, grids: Pool::new() };
        // Taken once, so that the first transform cannot fail for want of memory.
        drop(nufft.grid(backend)?);
        Ok(nufft)
    }

    /// Window and grid.
    pub fn choice(&self) -> &Choice {
        &self.choice
    }

    fn grid(&self, backend: &B) -> Result<crate::backend::cpu::threads::Lease<'_, B::Array<Complex<T>>>> {
        self.grids.try_take(|| backend.zeros(self.grid_len, "the oversampled grid"))
    }

    /// image(r) = sum_m values(m) exp(+i 2 pi k_m.r).
    pub fn adjoint(&self, backend: &B, values: Complexes<B, T>, image: ComplexesMut<B, T>) -> Result<()> {
        let mut grid = self.grid(backend)?;
        backend.spread(&self.gridder, values, backend.view_mut(&mut grid));
        backend.grid_to_image(&self.fft, backend.view_mut(&mut grid), image);
        Ok(())
    }

    /// values(m) = sum_r image(r) exp(-i 2 pi k_m.r).
    pub fn forward(&self, backend: &B, image: Complexes<B, T>, values: ComplexesMut<B, T>) -> Result<()> {
        let mut grid = self.grid(backend)?;
        backend.image_to_grid(&self.fft, image, backend.view_mut(&mut grid));
        backend.interpolate(&self.gridder, backend.view(&grid), values);
        Ok(())
    }

    /// The adjoint stopped at the oversampled grid, k = 0 in its first cell.
    pub fn spread(&self, backend: &B, values: Complexes<B, T>, grid: ComplexesMut<B, T>) {
        backend.spread(&self.gridder, values, grid);
    }

    /// Window-weighted sums of a grid at the samples: the transpose of [`Nufft::spread`].
    pub fn interpolate(&self, backend: &B, grid: Complexes<B, T>, values: ComplexesMut<B, T>) {
        backend.interpolate(&self.gridder, grid, values);
    }

    /// Points of the oversampled grid.
    pub fn grid_len(&self) -> usize {
        self.grid_len
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cpu::Cpu;

    /// A small generator of numbers in [-0.5, 0.5), seeded by the clock and printed on failure.
    struct Random(u64);
    impl Random {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        }
    }

    fn errors<T: Real>(dims: &[usize], samples: usize, tolerance: f64, window: Window, seed: u64) -> [f64; 2] {
        let mut random = Random(seed);
        let cpu = Cpu::new(2).unwrap();
        let k: Vec<Vec<T>> =
            dims.iter().map(|_| (0..samples).map(|_| T::coordinate(random.next())).collect()).collect();
        let k: Vec<&[T]> = k.iter().map(|k| &k[..]).collect();
        let voxels: usize = dims.iter().product();
        let mut complex = |n: usize| -> Vec<Complex<T>> {
            (0..n).map(|_| Complex::new(T::of(random.next()), T::of(random.next()))).collect()
        };
        let (d, x) = (complex(samples), complex(voxels));
        let choice = Nufft::<T, Cpu>::choose(window, dims, samples, tolerance).unwrap();
        let nufft = Nufft::<T, Cpu>::new(&cpu, &k, dims, choice).unwrap();
        let nan = Complex::new(T::of(f64::NAN), T::of(f64::NAN));
        let (mut image, mut values) = (vec![nan; voxels], vec![nan; samples]);
        nufft.adjoint(&cpu, cpu_view(&d), cpu_view_mut(&mut image)).unwrap();
        nufft.forward(&cpu, cpu_view(&x), cpu_view_mut(&mut values)).unwrap();
        let wide_k: Vec<Vec<f64>> = k.iter().map(|k| k.iter().map(|k| k.wide()).collect()).collect();
        let (exact_image, exact_values) = direct(&wide_k, dims, &d, &x);
        [distance(&image, &exact_image), distance(&values, &exact_values)]
    }

    fn cpu_view<T>(z: &[T]) -> crate::backend::View<'_, Cpu, T> {
        // SAFETY: borrowed for the life of the view.
        unsafe { crate::backend::View::new(z.as_ptr(), z.len()) }
    }
    fn cpu_view_mut<T>(z: &mut [T]) -> crate::backend::ViewMut<'_, Cpu, T> {
        // SAFETY: mutably borrowed for the life of the view.
        unsafe { crate::backend::ViewMut::new(z.as_mut_ptr(), z.len()) }
    }

    fn direct<T: Real>(
        k: &[Vec<f64>],
        dims: &[usize],
        d: &[Complex<T>],
        x: &[Complex<T>],
    ) -> (Vec<Complex<f64>>, Vec<Complex<f64>>) {
        let (mut image, mut values) = (vec![Complex::default(); x.len()], vec![Complex::default(); d.len()]);
        for (i, x) in x.iter().enumerate() {
            let (mut rest, mut r) = (i, Vec::new());
            for &n in dims {
                r.push((rest % n) as f64 - (n / 2) as f64);
                rest /= n;
            }
            for m in 0..d.len() {
                let phase: f64 = r.iter().zip(k).map(|(r, k)| r * k[m]).sum::<f64>() * std::f64::consts::TAU;
                let e = Complex::from_polar(1.0, phase);
                image[i] += crate::real::wide(d[m]) * e;
                values[m] += crate::real::wide(*x) * e.conj();
            }
        }
        (image, values)
    }

    fn distance<T: Real>(a: &[Complex<T>], exact: &[Complex<f64>]) -> f64 {
        let error: f64 = a.iter().zip(exact).map(|(a, e)| (crate::real::wide(*a) - e).norm_sqr()).sum();
        (error / exact.iter().map(|e| e.norm_sqr()).sum::<f64>()).sqrt()
    }

    #[test]
    fn survey() {
        for (dims, samples) in [(&[24usize, 31][..], 700), (&[12, 9, 15], 900)] {
            for window in [Window::KaiserBessel, Window::Gaussian] {
                for e in 1..=6 {
                    let tolerance = 10f64.powi(-e);
                    let [a, f] = errors::<f32>(dims, samples, tolerance, window, 1);
                    println!("f32 {window:?} {dims:?} {tolerance:e}: {:.2} {:.2}", a / tolerance, f / tolerance);
                }
                for e in 1..=if window == Window::Gaussian { 6 } else { 12 } {
                    let tolerance = 10f64.powi(-e);
                    let [a, f] = errors::<f64>(dims, samples, tolerance, window, 1);
                    println!("f64 {window:?} {dims:?} {tolerance:e}: {:.2} {:.2}", a / tolerance, f / tolerance);
                }
            }
        }
    }
}
