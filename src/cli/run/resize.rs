//! The matrix of the finished images: from the scan's header, or from --matrix.

use crate::io::Scan;
use crate::options::{checked_sizes, Matrix};
use recon::bail;
use recon::{Complex, Real, Result};

/// The way of an image from the encoded matrix to the matrix of the result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resize {
    resize: recon::Resize,
    /// The field of view of the result in mm; 0 where not known.
    pub fov_mm: [f32; 3],
}

impl Resize {
    /// From the scan's header, or from --matrix.
    pub fn of(scan: &Scan, matrix: Option<&Matrix>) -> Result<Resize> {
        let encoded = &scan.encoded_matrix[..scan.ndim];
        let own = &scan.recon_matrix[..scan.ndim];
        let fov = &scan.encoded_fov_mm.map(f64::from)[..scan.ndim];
        let wanted = match matrix {
            Some(Matrix::Encoded) => {
                let resize = recon::Resize::new(encoded, fov, encoded, fov)?;
                return Ok(Resize { resize, fov_mm: scan.encoded_fov_mm });
            }
            None => own.to_vec(),
            Some(Matrix::Sizes(sizes)) => {
                let wanted = checked_sizes(sizes)?;
                if scan.ndim == 2 && wanted[2] != 1 {
                    bail!(InvalidSize, "--matrix: {sizes:?} has three sizes, but the scan is 2D: give two");
                }
                if scan.ndim == 3 && sizes.len() == 2 {
                    bail!(InvalidSize, "--matrix: {sizes:?} has two sizes, but the scan is 3D: give three");
                }
                wanted[..scan.ndim].to_vec()
            }
        };
        let own_fov = &scan.recon_fov_mm.map(f64::from)[..scan.ndim];
        let known = |axis: usize| fov[axis] > 0.0 && own_fov[axis] > 0.0;
        // Where the file has no fields of view, its matrices are taken to have voxels of one size.
        let pick = |mm: &[f64], sizes: &[usize]| -> Vec<f64> {
            (0..scan.ndim).map(|a| if known(a) { mm[a] } else { sizes[a] as f64 }).collect()
        };
        let resize = recon::Resize::new(encoded, &pick(fov, encoded), &wanted, &pick(own_fov, own)).map_err(|e| {
            e.within(
                "from the encoded to the reconstructed matrix (correct the header, or --matrix: encoded leaves it)",
            )
        })?;
        for axis in (0..scan.ndim).filter(|_| matrix.is_none()) {
            let name = ["x", "y", "z"][axis];
            if fov[axis] > 0.0 && own_fov[axis] > 1.01 * fov[axis] {
                log::warn!(
                    "the reconstructed field of view along {name}, {} mm, is larger than the encoded one, {} mm: zeros \
                     surround the image; if the header is wrong, use --matrix encoded",
                    own_fov[axis],
                    fov[axis]
                );
            }
            if 2.0 * resize.scaled()[axis] <= encoded[axis] as f64 {
                log::warn!(
                    "the reconstructed voxels are {:.3} times as long along {name} as the encoded ones: details are \
                     averaged; if the header is wrong, use --matrix encoded",
                    encoded[axis] as f64 / resize.scaled()[axis]
                );
            }
        }
        Ok(Resize { resize, fov_mm: scan.recon_fov_mm })
    }

    /// The encoded matrix.
    pub fn encoded(&self) -> [usize; 3] {
        self.resize.from()
    }

    /// The matrix of the result.
    pub fn wanted(&self) -> [usize; 3] {
        self.resize.to()
    }

    /// Returns whether the voxels of the result are as large as the encoded ones, to half a voxel over the field of
    /// view: enough for a smooth map.
    pub fn keeps_voxels(&self) -> bool {
        let rounded = self.resize.scaled().map(|n| n.round() as usize);
        rounded == self.resize.from()
    }

    /// Brings an image of the encoded matrix to the matrix of the result.
    pub fn apply<T: Real>(&self, image: Vec<Complex<T>>) -> Result<Vec<Complex<T>>> {
        if self.resize.is_nothing() {
            return Ok(image);
        }
        let mut out = zeros(self.wanted().iter().product())?;
        self.resize.apply(&image, &mut out)?;
        Ok(out)
    }

    /// The reverse: brings an image of the matrix of the result to the encoded matrix.
    pub fn undo<T: Real>(&self, image: Vec<Complex<T>>) -> Result<Vec<Complex<T>>> {
        if self.resize.is_nothing() {
            return Ok(image);
        }
        let mut out = zeros(self.encoded().iter().product())?;
        self.resize.undo(&image, &mut out)?;
        Ok(out)
    }
}

/// As many zeros, or an error that says how much memory they need.
pub fn zeros<T: Real>(count: usize) -> Result<Vec<Complex<T>>> {
    recon::error::try_vec(count, Complex::default(), "images")
}

/// A remedy where sizes are the expected ones in another order, else empty.
pub fn order_hint(found: [usize; 3], wanted: [usize; 3]) -> &'static str {
    let sorted = |mut sizes: [usize; 3]| {
        sizes.sort_unstable();
        sizes
    };
    match found != wanted && sorted(found) == sorted(wanted) {
        true => ": its axes are in another order; x comes first (in a NumPy array, last)",
        false => "",
    }
}
