//! E^H W E as a convolution with Q(delta) = sum_m w_m |phi(k_m)|^2 exp(+i 2 pi k_m.delta), by the spectrum of Q.
//!
//! E^H W E is a Toeplitz matrix in the voxels, so it is a convolution with Q, computed by FFT on the doubled grid
//! (Fessler et al., IEEE Trans. Signal Process. 53:3393, 2005; Stone et al. 2008 call the kernel Q). Q consists of
//! 2^(d-1) adjoints of the weights on the grid of the image, each shifted by half the doubled grid. So it does not need
//! a larger plan.

use crate::backend::{Backend, Complexes, ComplexesMut};
use crate::base::atomic_file::AtomicFiles;
use crate::base::checksum::Checksum;
use crate::base::error::{bail, Error, ErrorKind, Result};
use crate::base::fft_size::next_fast_size;
use crate::base::interrupt;
use crate::base::real::Real;
use crate::base::sizes::product;
use num_complex::Complex;
use std::io::{Read, Write};
use std::ops::Range;
use std::path::Path;

/// Returns the octants of the doubled grid. `true` for an axis means displacements -n to -1, `false` 0 to n - 1.
pub(crate) fn octants(ndim: usize) -> impl Iterator<Item = [bool; 3]> {
    (0..1usize << ndim).map(|o| [o & 1 != 0, o & 2 != 0, o & 4 != 0])
}

/// Returns the shift in voxels for which the adjoint of the weights, on the grid of the image, is an octant of Q.
pub(crate) fn octant_shift(dims: &[usize], half: [bool; 3]) -> Vec<f64> {
    // Image index i is voxel i - floor(n/2); octants begin with displacement 0 or -n.
    dims.iter().zip(half).map(|(&n, half)| (n / 2) as f64 - if half { n as f64 } else { 0.0 }).collect()
}

/// Bytes of a file that are read or written at once.
const BLOCK: usize = 1 << 14;

/// The convolution with Q on a backend. With off-resonance, the convolutions T_l of E^H W E = sum_l D_l* T_l D_l.
pub(crate) struct Toeplitz<T: Real, B: Backend<T>> {
    convolver: B::Convolver,
    kernel_count: usize,
    /// The diagonals D_l, [voxels, l]; `None` without off-resonance and decay.
    pub voxel_factors: Option<B::Array<Complex<T>>>,
}

/// Returns the bytes that computing Q needs in addition to its convolution: half of the doubled grid, and one octant.
pub(crate) fn construction_bytes<T: Real>(dims: &[usize]) -> usize {
    let half = dims[1..].iter().fold(dims[0], |p, &n| p.saturating_mul(next_fast_size(2 * n)));
    product(&[half.saturating_add(product(dims)), size_of::<Complex<T>>()])
}

impl<T: Real, B: Backend<T>> Toeplitz<T, B> {
    /// Computes `count` kernels from their octants. `octant(l, half, image)` computes one octant of kernel `l`.
    pub fn new(
        backend: &B,
        dims: &[usize],
        count: usize,
        mut octant: impl FnMut(usize, [bool; 3], ComplexesMut<B, T>) -> Result<()>,
        voxel_factors: Option<B::Array<Complex<T>>>,
    ) -> Result<Self> {
        let mut convolver = backend.convolver(dims, count)?;
        let mut grid = backend.kernel_grid(&convolver)?;
        let mut part = backend.unwritten::<Complex<T>>(dims.iter().product(), "a part of Q")?;
        for l in 0..count {
            if l > 0 {
                // The previous kernel used the grid as scratch memory.
                backend.clear(backend.view_mut(&mut grid));
            }
            // Q(-delta) is the conjugate of Q(delta).
            for half in octants(dims.len()).filter(|half| !half[0]) {
                octant(l, half, backend.view_mut(&mut part))?;
                backend.place_kernel(&convolver, half, backend.view(&part), backend.view_mut(&mut grid));
            }
            interrupt::check("Q")?;
            backend.set_kernel(&mut convolver, l, backend.view_mut(&mut grid));
        }
        Ok(Toeplitz { convolver, kernel_count: count, voxel_factors })
    }

    /// Returns the number of kernels.
    pub fn len(&self) -> usize {
        self.kernel_count
    }

    /// Computes y = T_l x for one or several images per kernel of the range.
    pub fn apply(&self, backend: &B, kernels: Range<usize>, x: Complexes<B, T>, y: ComplexesMut<B, T>) {
        backend.convolve(&self.convolver, kernels, x, y);
    }

    /// Adds sum_c S_c^H T_0 S_c x to y, for the coil maps S. `scratch` is two arrays of the maps' length.
    pub fn add_coils(
        &self,
        backend: &B,
        maps: Complexes<B, T>,
        x: Complexes<B, T>,
        scratch: [ComplexesMut<B, T>; 2],
        y: ComplexesMut<B, T>,
    ) {
        backend.convolve_coils(&self.convolver, maps, x, scratch, y);
    }

    /// Writes the spectra to a file that becomes one of `files`. `key` identifies the input of Q.
    pub fn save(&self, backend: &B, files: &mut AtomicFiles, path: &Path, key: &QKey) -> Result<()> {
        let temporary = files.add(path)?;
        let io_error = |e: std::io::Error| Error::new(ErrorKind::IO, format!("{}: {e}", path.display()));
        let mut file = std::fs::File::create(temporary).map_err(io_error)?;
        let (mut sum, mut block, size) = (Checksum::new(), [0; BLOCK], size_of::<T>());
        for l in 0..self.kernel_count {
            let spectrum = backend.spectrum(&self.convolver, l)?;
            if l == 0 {
                file.write_all(&key.header(self.kernel_count * spectrum.len())).map_err(io_error)?;
            }
            for values in spectrum.chunks(BLOCK / size) {
                for (bytes, value) in block.chunks_exact_mut(size).zip(values) {
                    match size {
                        4 => bytes.copy_from_slice(&(value.wide() as f32).to_le_bytes()),
                        _ => bytes.copy_from_slice(&value.wide().to_le_bytes()),
                    }
                }
                let bytes = &block[..size_of_val(values)];
                sum.add(bytes);
                file.write_all(bytes).map_err(io_error)?;
            }
        }
        file.write_all(&sum.0.to_le_bytes()).map_err(io_error)
    }

    /// Reads a file of `count` kernels that [`Toeplitz::save`] wrote for the same `key`. `voxel_factors` are those of
    /// [`Toeplitz::new`].
    pub fn load(
        backend: &B,
        dims: &[usize],
        count: usize,
        path: &Path,
        key: &QKey,
        voxel_factors: Option<B::Array<Complex<T>>>,
    ) -> Result<Self> {
        let name = path.display();
        let io_error = |e: std::io::Error| match e.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                Error::new(ErrorKind::BadFile, format!("{name}: the file is cut short: save Q again"))
            }
            _ => Error::new(ErrorKind::IO, format!("{name}: could not load Q: {e}")),
        };
        let mut file = std::fs::File::open(path).map_err(io_error)?;
        let mut convolver = backend.convolver(dims, count)?;
        let (mut sum, mut block, size) = (Checksum::new(), [0; BLOCK], size_of::<T>());
        for l in 0..count {
            let mut spectrum = backend.spectrum(&convolver, l)?;
            if l == 0 {
                key.check(&mut file, count * spectrum.len(), path, io_error)?;
            }
            for values in spectrum.chunks_mut(BLOCK / size) {
                let bytes = &mut block[..size_of_val(values)];
                file.read_exact(bytes).map_err(io_error)?;
                sum.add(bytes);
                for (bytes, value) in bytes.chunks_exact(size).zip(values) {
                    *value = match *bytes {
                        [a, b, c, d] => T::of(f32::from_le_bytes([a, b, c, d]) as f64),
                        _ => T::of(f64::from_le_bytes(bytes.try_into().expect("eight bytes"))),
                    };
                }
            }
            backend.set_spectrum(&mut convolver, l, &spectrum)?;
        }
        let mut stored_sum = [0; 8];
        file.read_exact(&mut stored_sum).map_err(io_error)?;
        if u64::from_le_bytes(stored_sum) != sum.0 {
            bail!(BadFile, "{name}: the file is damaged (its checksum is wrong): save Q again");
        }
        if file.read(&mut [0]).map_err(io_error)? > 0 {
            bail!(
                BadFile,
                "{name}: the file goes on after the end of Q: save Q again, or remove the data after the end"
            );
        }
        Ok(Toeplitz { convolver, kernel_count: count, voxel_factors })
    }
}

/// Identification of the input of Q, stored in the head of a file.
pub(crate) struct QKey {
    dims: Vec<usize>,
    /// Bytes of a real number.
    real_bytes: usize,
    /// Checksum of the input.
    fingerprint: u64,
}

impl QKey {
    /// Computes the key of a trajectory with weights w |phi|^2. `field` contains the checksum of the off-resonance
    /// maps, the sample times and the nodes.
    pub fn new<T: Real>(
        k: &[&[T]],
        dims: &[usize],
        weight: impl Fn(usize) -> f64,
        field: Option<(u64, &[T], &[f64])>,
    ) -> QKey {
        let mut sum = Checksum::new();
        for axis in k {
            axis.iter().for_each(|k| sum.add(&k.wide().to_le_bytes()));
        }
        (0..k[0].len()).for_each(|m| sum.add(&weight(m).to_le_bytes()));
        if let Some((maps, times, nodes)) = field {
            sum.add(&maps.to_le_bytes());
            times.iter().for_each(|t| sum.add(&t.wide().to_le_bytes()));
            nodes.iter().for_each(|t| sum.add(&t.to_le_bytes()));
        }
        QKey { dims: dims.to_vec(), real_bytes: size_of::<T>(), fingerprint: sum.0 }
    }

    /// Reads the header of a file of `len` numbers, and checks that it has this key.
    fn check(
        &self,
        file: &mut std::fs::File,
        len: usize,
        path: &Path,
        io_error: impl Fn(std::io::Error) -> Error,
    ) -> Result<()> {
        let name = path.display();
        let expected = self.header(len);
        let mut header = vec![0; expected.len()];
        file.read_exact(&mut header).map_err(io_error)?;
        if header[..8] != expected[..8] {
            bail!(BadFile, "{name}: this is no file of a saved Q: save Q again");
        }
        if header != expected {
            bail!(
                BadFile,
                "{name}: Q was saved for another image size, precision, trajectory, set of weights, voxel basis, \
                 field map, decay map, tolerance (with such a map), or version: compute and save it for this plan"
            );
        }
        Ok(())
    }

    /// Returns the header of a file of `len` numbers.
    fn header(&self, len: usize) -> Vec<u8> {
        let mut header = b"reconQ02".to_vec();
        let mut dims = [1usize; 3];
        dims[..self.dims.len()].copy_from_slice(&self.dims);
        for v in [self.dims.len(), dims[0], dims[1], dims[2], self.real_bytes, len] {
            header.extend((v as u64).to_le_bytes());
        }
        header.extend(self.fingerprint.to_le_bytes());
        header
    }
}
