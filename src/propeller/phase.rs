//! Removal of the phase of each blade (Pipe 1999). The image of the blade's centre, weighted by a pyramid, has almost
//! no detail; its phase is subtracted from the image of the whole blade.
//!
//! The object's phase must be smooth, as in spin echoes, of coils, and of motion during diffusion weighting. It is
//! removed with that of the blade: the resulting image lacks its smooth phase.

use super::blades::{Blade, Blades};
use crate::backend::cpu::fft::any_length::LineFft;
use crate::backend::cpu::simd::Level;
use crate::base::error::{try_vec, Result};
use crate::base::fft_size::next_fast_size;
use crate::base::real::{narrow, wide, Real};
use crate::base::sizes::product;
use num_complex::Complex;
use std::f64::consts::TAU;

/// Name of the arrays in the message when memory runs out.
const WHAT: &str = "the images of blades";

/// Phase correction of blades, with its buffers.
pub(super) struct PhaseCorrection {
    lines: usize,
    readout: usize,
    /// Number of pixels across and along the lines: twice the lines, and enough samples that nothing wraps around.
    size: [usize; 2],
    across: LineFft,
    along: LineFft,
    /// Image of the blade; rows are lines.
    image: Vec<Complex<f64>>,
    /// Image of the blade's centre, weighted by the pyramid.
    smooth: Vec<Complex<f64>>,
    columns: Vec<Complex<f64>>,
    /// Phase ramp along the lines, due to the position of k = 0.
    ramp: Vec<Complex<f64>>,
}

impl PhaseCorrection {
    /// Prepares the correction of blades.
    pub fn new(level: Level, blades: &Blades) -> Result<Self> {
        let (lines, readout) = (blades.lines, blades.readout);
        let size = Self::image_size(blades);
        let (across, along) = (LineFft::new(level, size[0])?, LineFft::new(level, size[1])?);
        let (image, smooth) = (
            try_vec(size[0] * size[1], Complex::default(), WHAT)?,
            try_vec(size[0] * size[1], Complex::default(), WHAT)?,
        );
        let columns = try_vec(across.most_lines() * size[0], Complex::default(), WHAT)?;
        let ramp = try_vec(size[1], Complex::default(), WHAT)?;
        Ok(PhaseCorrection { lines, readout, size, across, along, image, smooth, columns, ramp })
    }

    /// Returns the size of the images, across and along the lines.
    fn image_size(blades: &Blades) -> [usize; 2] {
        let reach = blades.all.iter().map(|b| blades.radius / b.steps()[1]).fold(1.0, f64::max);
        [next_fast_size(2 * blades.lines), next_fast_size(blades.readout + 2 * reach.ceil() as usize)]
    }

    /// Returns the bytes of the images, and of columns and tables, which take no more than a third image.
    pub fn bytes(blades: &Blades) -> usize {
        let [rows, columns] = Self::image_size(blades);
        product(&[3, rows, columns, size_of::<Complex<f64>>()])
    }

    /// Removes the phase of its centre's image from a blade. Returns the sum of that image's m |m|, whose angle is the
    /// mean phase.
    pub fn remove<T: Real>(&mut self, blade: &Blade, radius: f64, data: &mut [Complex<T>]) -> Complex<f64> {
        let ([u, v], steps) = (blade.centre(), blade.steps());
        let side = |centre: f64, step: f64, i: usize| (1.0 - (i as f64 - centre).abs() * step / radius).max(0.0);
        self.image.fill(Complex::default());
        self.smooth.fill(Complex::default());
        for line in 0..self.lines {
            let height = side(u, steps[0], line);
            for j in 0..self.readout {
                let value = wide(data[blade.index(line, j, self.readout)]);
                self.image[line * self.size[1] + j] = value;
                self.smooth[line * self.size[1] + j] = value * (height * side(v, steps[1], j));
            }
        }
        let (mut image, mut smooth) = (std::mem::take(&mut self.image), std::mem::take(&mut self.smooth));
        self.transform(true, &mut image);
        self.transform(true, &mut smooth);
        // k = 0 is at line u and sample v, which causes a phase ramp.
        let [rows, columns] = self.size;
        let ramp = |i: usize, size: usize, centre: f64| {
            let position = if 2 * i > size { i as f64 - size as f64 } else { i as f64 };
            Complex::from_polar(1.0, -TAU * centre * position / size as f64)
        };
        self.ramp.iter_mut().enumerate().for_each(|(x, to)| *to = ramp(x, columns, v));
        let mut sum = Complex::default();
        for y in 0..rows {
            let of_row = ramp(y, rows, u);
            let row = y * columns..(y + 1) * columns;
            for ((z, m), along) in image[row.clone()].iter_mut().zip(&smooth[row]).zip(&self.ramp) {
                let m = m * (of_row * along);
                // hypot would be slow. Numbers whose squares overflow have been rejected.
                let size = m.norm_sqr().sqrt();
                if size > 0.0 {
                    *z *= m.conj() / size;
                    sum += m * size;
                }
            }
        }
        self.transform(false, &mut image);
        let scale = 1.0 / (rows * columns) as f64;
        for line in 0..self.lines {
            for j in 0..self.readout {
                data[blade.index(line, j, self.readout)] = narrow(image[line * columns + j] * scale);
            }
        }
        (self.image, self.smooth) = (image, smooth);
        sum
    }

    /// Transforms an array of `size`, unscaled: rows, then columns for the inverse, and in the opposite order
    /// otherwise. Only the rows of the blade's lines are nonzero before the inverse transform, and needed after the
    /// other.
    fn transform(&mut self, inverse: bool, array: &mut [Complex<f64>]) {
        let [rows, columns] = self.size;
        let mut along = |array: &mut [Complex<f64>]| {
            for part in array[..self.lines * columns].chunks_mut(self.along.most_lines() * columns) {
                self.along.run(inverse, part);
            }
        };
        if inverse {
            along(array);
        }
        for first in (0..columns).step_by(self.across.most_lines()) {
            let count = self.across.most_lines().min(columns - first);
            let part = &mut self.columns[..count * rows];
            for y in 0..rows {
                (0..count).for_each(|x| part[x * rows + y] = array[y * columns + first + x]);
            }
            self.across.run(inverse, part);
            for y in 0..rows {
                (0..count).for_each(|x| array[y * columns + first + x] = part[x * rows + y]);
            }
        }
        if !inverse {
            along(array);
        }
    }
}
