//! From the encoded matrix, on which images are reconstructed, to the matrix wanted in the end.
//!
//! Samples are in cycles per voxel of the encoded matrix. Where the voxels of the wanted matrix have another size, the
//! image is interpolated to that size by Fourier (zeros are appended to its spectrum, or the ends cut off), over the whole
//! encoded field of view; then its middle is cut out, or surrounded by zeros. Oversampling, an encoded field of view that
//! is larger at equal voxels, is thus cut away, and nothing else is done. The voxel with index floor(n/2) stays where it is.

use crate::io::Scan;
use crate::options::{checked_sizes, Matrix};
use recon::bail;
use recon::{Complex, Real, Result};
use rustfft::FftPlanner;

/// How an image gets from the encoded matrix to the one wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resize {
    /// The encoded matrix.
    pub encoded: [usize; 3],
    /// The encoded field of view in voxels of the size wanted.
    pub scaled: [usize; 3],
    /// The matrix wanted.
    pub wanted: [usize; 3],
    /// Its field of view in mm; 0 where not known.
    pub fov_mm: [f32; 3],
}

impl Resize {
    /// What a scan asks for, or the user in its place.
    pub fn of(scan: &Scan, matrix: Option<&Matrix>) -> Result<Resize> {
        let encoded = scan.encoded_matrix;
        let mut own = scan.recon_matrix;
        if scan.ndim == 2 {
            own[2] = 1;
        }
        let wanted = match matrix {
            Some(Matrix::Encoded) => {
                return Ok(Resize { encoded, scaled: encoded, wanted: encoded, fov_mm: scan.encoded_fov_mm })
            }
            None => own,
            Some(Matrix::Sizes(sizes)) => {
                let wanted = checked_sizes(sizes)?;
                if scan.ndim == 2 && wanted[2] != 1 {
                    bail!(InvalidSize, "--matrix: {sizes:?} has three sizes, but the scan is 2D: give two");
                }
                if scan.ndim == 3 && sizes.len() == 2 {
                    bail!(InvalidSize, "--matrix: {sizes:?} has two sizes, but the scan is 3D: give three");
                }
                wanted
            }
        };
        let mut resize = Resize { encoded, scaled: encoded, wanted, fov_mm: scan.recon_fov_mm };
        for axis in 0..scan.ndim {
            let (fov, part) = (scan.encoded_fov_mm[axis] as f64, scan.recon_fov_mm[axis] as f64);
            let ratio = match fov > 0.0 && part > 0.0 {
                true => fov / part,
                false => encoded[axis] as f64 / own[axis] as f64,
            };
            let exact = ratio * wanted[axis] as f64;
            if exact.is_nan() || exact >= (1 << 24) as f64 {
                bail!(
                    InvalidSize,
                    "a field of view of {fov} mm encoded and {part} mm wanted needs {exact:.0} voxels: correct the \
                     header, or give --matrix encoded"
                );
            }
            resize.scaled[axis] = (exact.round() as usize).max(1);
            let name = ["x", "y", "z"][axis];
            if matrix.is_none() && part > 1.01 * fov && fov > 0.0 {
                log::warn!(
                    "the reconstructed field of view along {name}, {part} mm, is larger than the encoded one, {fov} mm: \
                     zeros surround the image; if the header is wrong, use --matrix encoded"
                );
            }
            if matrix.is_none() && 2 * resize.scaled[axis] <= encoded[axis] {
                log::warn!(
                    "the reconstructed voxels are {:.3} times as long along {name} as the encoded ones: details are \
                     averaged; if the header is wrong, use --matrix encoded",
                    encoded[axis] as f64 / exact
                );
            }
            let rounding = (resize.scaled[axis] as f64 / exact - 1.0).abs();
            if rounding > 2e-3 {
                log::info!("axis {axis}: voxels come out {:.1} % off the size asked for", 100.0 * rounding);
            }
        }
        Ok(resize)
    }

    fn is_nothing(&self) -> bool {
        self.encoded == self.scaled && self.scaled == self.wanted
    }

    /// An image of the encoded matrix, on the one wanted.
    pub fn apply<T: Real>(&self, image: Vec<Complex<T>>) -> Result<Vec<Complex<T>>> {
        if self.is_nothing() {
            return Ok(image);
        }
        let (mut image, mut dims) = (widen(&image)?, self.encoded);
        for axis in 0..3 {
            image = resample(&image, &mut dims, axis, self.scaled[axis])?;
            image = recentre(&image, &mut dims, axis, self.wanted[axis])?;
        }
        Ok(narrow(&image))
    }

    /// The other way: an image of the wanted matrix, on the encoded one.
    pub fn undo<T: Real>(&self, image: Vec<Complex<T>>) -> Result<Vec<Complex<T>>> {
        if self.is_nothing() {
            return Ok(image);
        }
        let (mut image, mut dims) = (widen(&image)?, self.wanted);
        for axis in 0..3 {
            image = recentre(&image, &mut dims, axis, self.scaled[axis])?;
            image = resample(&image, &mut dims, axis, self.encoded[axis])?;
        }
        Ok(narrow(&image))
    }
}

fn widen<T: Real>(image: &[Complex<T>]) -> Result<Vec<Complex<f64>>> {
    let mut out = zeros(image.len())?;
    for (o, z) in out.iter_mut().zip(image) {
        *o = Complex::new(z.re.wide(), z.im.wide());
    }
    Ok(out)
}

fn narrow<T: Real>(image: &[Complex<f64>]) -> Vec<Complex<T>> {
    image.iter().map(|z| Complex::new(T::of(z.re), T::of(z.im))).collect()
}

/// As many zeros, or an error that says how much memory they need.
pub fn zeros<T: Real>(count: usize) -> Result<Vec<Complex<T>>> {
    let mut v = Vec::new();
    if v.try_reserve_exact(count).is_err() {
        let bytes = count as u128 * std::mem::size_of::<Complex<T>>() as u128;
        bail!(OutOfHostMemory, "could not allocate {bytes} bytes for images: free memory, or use a smaller matrix");
    }
    v.resize(count, Complex::new(T::ZERO, T::ZERO));
    Ok(v)
}

fn count(dims: &[usize; 3]) -> Result<usize> {
    match dims.iter().try_fold(1usize, |p, &n| p.checked_mul(n)) {
        Some(n) if n < 1 << 48 => Ok(n),
        _ => bail!(SizeOverflow, "an image of {dims:?} voxels is too large: use a smaller matrix"),
    }
}

/// Moves lines along an axis from an array to another, through `f(line, new line)`.
fn along(
    image: &[Complex<f64>],
    dims: &mut [usize; 3],
    axis: usize,
    size: usize,
    mut f: impl FnMut(&mut [Complex<f64>], &mut [Complex<f64>]),
) -> Result<Vec<Complex<f64>>> {
    let mut new = *dims;
    new[axis] = size;
    let mut out = zeros(count(&new)?)?;
    let stride: usize = dims[..axis].iter().product();
    let outer: usize = dims[axis + 1..].iter().product();
    let n = dims[axis];
    let (mut from, mut to) = (zeros::<f64>(n)?, zeros::<f64>(size)?);
    for o in 0..outer {
        for s in 0..stride {
            for (i, z) in from.iter_mut().enumerate() {
                *z = image[(o * n + i) * stride + s];
            }
            f(&mut from, &mut to);
            for (i, z) in to.iter().enumerate() {
                out[(o * size + i) * stride + s] = *z;
            }
        }
    }
    *dims = new;
    Ok(out)
}

/// Cuts out the middle along an axis, or puts zeros around it.
pub fn recentre(image: &[Complex<f64>], dims: &mut [usize; 3], axis: usize, size: usize) -> Result<Vec<Complex<f64>>> {
    let n = dims[axis];
    let shared = n.min(size);
    let (at, to) = (n / 2 - shared / 2, size / 2 - shared / 2);
    along(image, dims, axis, size, |line, new| {
        new.fill(Complex::default());
        new[to..to + shared].copy_from_slice(&line[at..at + shared]);
    })
}

/// Interpolates along an axis to another number of voxels over the same length.
fn resample(image: &[Complex<f64>], dims: &mut [usize; 3], axis: usize, size: usize) -> Result<Vec<Complex<f64>>> {
    let n = dims[axis];
    let mut planner = FftPlanner::new();
    let (down, up) = (planner.plan_fft_forward(n), planner.plan_fft_inverse(size));
    let shared = n.min(size);
    let scale = 1.0 / n as f64;
    along(image, dims, axis, size, |line, new| {
        if n == size {
            new.copy_from_slice(line);
            return;
        }
        line.rotate_left(n / 2);
        down.process(line);
        new.fill(Complex::default());
        // Frequencies -shared/2 .. (shared - 1)/2; with an even number, the lowest stands for the highest as well.
        let positive = shared.div_ceil(2);
        new[..positive].copy_from_slice(&line[..positive]);
        for f in 1..=shared / 2 {
            new[size - f] = line[n - f];
        }
        if shared.is_multiple_of(2) {
            let f = shared / 2;
            if size > n {
                new[size - f] = line[n - f] * 0.5;
                new[f] = line[n - f] * 0.5;
            } else {
                new[size - f] = (line[n - f] + line[f]) * 0.5;
            }
        }
        up.process(new);
        new.iter_mut().for_each(|z| *z *= scale);
        new.rotate_right(size / 2);
    })
}
