//! Backprojection of spokes on the CPU.
//!
//! There are two knots per voxel along the axis that is nearest to a spoke. Along that axis all voxels of a row have
//! the same position between their knots, and a row is the weighted sum of two runs of knots: no voxel computes its
//! position. Projections at such knots are computed by the chirp z-transform (Rabiner, Schafer, Rader 1969), with FFTs
//! of at least `readout` + `knots` points, for many spokes at once.
//!
//! Spokes near the y axis are summed into an image whose axes are exchanged. Every voxel adds the spokes near x in
//! their order and then those near y, on any thread, so that the bits do not depend on the number of threads.

use super::fft::lanes::{LaneFft, LaneTransform, LineMapping, Lines};
use super::simd::{Arith, Kernel, Level, SimdReal, Vector};
use crate::backend::threads::Threads;
use crate::backend::Spoke;
use crate::base::buffer_pool::Pool;
use crate::base::error::{checked_product, try_collect, try_vec, Result};
use crate::base::fft_size::next_fast_size;
use crate::base::memory::Aligned;
use crate::base::sizes::{product, sum};
use crate::base::workers::SharedSlice;
use num_complex::Complex;
use std::f64::consts::TAU;

const PROJECTIONS: &str = "the projections";
/// Minimum number of spokes whose projections are computed at once.
const MIN_BATCH: usize = 64;
/// Number of spokes that are added to a block of voxels before the next block: their knots stay in the first-level
/// cache.
const SPOKES_PER_PASS: usize = 16;
/// Addresses that differ by a multiple of `PAGE` bytes share sets of the first-level cache, so that consecutive
/// projections are offset by `STAGGER` bytes.
const PAGE: usize = 4096;
const STAGGER: usize = 704;
/// Number of rows of a task.
const ROWS: usize = 16;
/// Number of voxels of a row that are processed together.
const COLUMNS: usize = 64;
/// Number of vectors of sums in registers.
const ACCUMULATORS: usize = 8;
/// Number of values of a recurrence before it is restarted.
const RESTART: usize = 64;
/// Number of recurrences that are computed in parallel.
const RECURRENCES: usize = 8;

/// The lengths of projections and transforms.
#[derive(Clone, Copy)]
struct Lengths {
    readout: usize,
    /// Number of knots of a projection, which is even.
    knots: usize,
    /// Index of the knot in the middle of the image.
    middle: usize,
    /// Number of points of the FFT.
    points: usize,
    /// Distance between projections in memory, in elements.
    distance: usize,
}

impl Lengths {
    fn new<T>(readout: usize, dims: [usize; 2]) -> Self {
        let middle = 2 * (dims[0] / 2) + 2 * (dims[1] / 2);
        let knots = 2 * middle + 2 * (dims.iter().any(|n| n % 2 == 1)) as usize;
        let size = size_of::<Complex<T>>();
        let distance = (knots * size + PAGE - STAGGER).next_multiple_of(PAGE) - PAGE + STAGGER;
        Lengths { readout, knots, middle, points: next_fast_size(readout + knots - 1), distance: distance / size }
    }

    /// Returns the sample from which the phases of a chirp are counted.
    fn origin(&self) -> usize {
        self.readout / 2
    }

    /// Returns one more than the largest difference between a knot and a sample.
    fn chirp(&self) -> usize {
        self.middle.max(self.knots - self.middle) + self.readout - self.origin() + 1
    }
}

/// Spokes that are backprojected, see [`crate::backend::Backend::backprojector`].
pub struct Backprojector<T> {
    level: Level,
    dims: [usize; 2],
    lengths: Lengths,
    spokes: Vec<Spoke>,
    /// Indices of the spokes that are nearer to x, and to y.
    by_axis: [Vec<u32>; 2],
    /// Maximum number of arrays per call.
    arrays: usize,
    /// Number of spokes whose projections are computed at once.
    batch_size: usize,
    fft: LaneFft<T>,
    samples: LineMapping<T>,
    full: LineMapping<T>,
    /// The order of knots in memory: the even ones, then the odd ones.
    projection: LineMapping<T>,
    work: Pool<ProjectionBuffers<T>>,
}

/// The buffers of a thread, for the projections of a block of spokes or for some rows of voxels.
struct ProjectionBuffers<T> {
    /// exp(i pi b m^2) of one spoke, where b is the phase in turns between adjacent knots for adjacent samples.
    chirp: Aligned<Complex<T>>,
    /// Spectrum of the conjugate chirp, for each spoke.
    spectra: Aligned<Complex<T>>,
    /// Factors of the samples, for each spoke.
    before: Aligned<Complex<T>>,
    /// Factors of the knots, for each spoke.
    after: Aligned<Complex<T>>,
    /// Lines during their transforms.
    lines: Aligned<Complex<T>>,
    buffer: Aligned<T>,
    /// Positions of a task's rows between knots.
    taps: Aligned<u64>,
    weights: Aligned<T>,
}

impl<T: SimdReal> ProjectionBuffers<T> {
    fn new(lengths: &Lengths, lanes: usize) -> Result<Self> {
        let complex = |len: usize| Aligned::unwritten(checked_product(&[lanes, len], PROJECTIONS)?, PROJECTIONS);
        Ok(ProjectionBuffers {
            chirp: Aligned::unwritten(lengths.chirp(), PROJECTIONS)?,
            spectra: complex(lengths.points)?,
            before: complex(lengths.readout)?,
            after: complex(lengths.knots)?,
            lines: complex(lengths.points)?,
            buffer: Aligned::zeros(checked_product(&[2 * lanes, lengths.points], PROJECTIONS)?, PROJECTIONS)?,
            taps: Aligned::unwritten(2 * ROWS * SPOKES_PER_PASS, PROJECTIONS)?,
            weights: Aligned::unwritten(2 * ROWS * SPOKES_PER_PASS, PROJECTIONS)?,
        })
    }

    /// Estimates the bytes of the buffers of a thread.
    fn bytes(lengths: &Lengths, lanes: usize) -> usize {
        let Lengths { readout, knots, points, .. } = *lengths;
        product(&[sum(&[points, points, points, readout, knots]), lanes, size_of::<Complex<T>>()])
    }
}

/// Returns the number of spokes whose projections are computed at once: at least one block for each thread.
fn batch_size(threads: usize, lanes: usize) -> usize {
    MIN_BATCH.max(threads * lanes)
}

impl<T: SimdReal> Backprojector<T> {
    /// Implements [`crate::backend::Backend::backprojector`].
    pub fn new(
        threads: &Threads,
        level: Level,
        spokes: &[Spoke],
        readout: usize,
        dims: &[usize],
        arrays: usize,
    ) -> Result<Self> {
        let dims = [dims[0], dims[1]];
        let lengths = Lengths::new::<T>(readout, dims);
        let lanes = level.lanes::<T>();
        let fft = LaneFft::new(lengths.points)?;
        let points = lengths.points;
        let wrap = move |from: usize, origin: usize| (from + points - origin) % points;
        let ones = |len: usize| try_vec(len, T::ONE, PROJECTIONS);
        let samples = fft.mapping((0..readout).map(|j| wrap(j, lengths.origin())), ones(readout)?)?;
        let half = lengths.knots / 2;
        let knots = (0..lengths.knots).map(|i| if i < half { 2 * i } else { 2 * (i - half) + 1 });
        let scale = try_vec(lengths.knots, T::of(1.0 / points as f64), PROJECTIONS)?;
        let projection = fft.mapping(knots.map(|i| wrap(i, lengths.middle)), scale)?;
        let mut by_axis = [const { Vec::new() }; 2];
        for (axis, indices) in by_axis.iter_mut().enumerate() {
            let count = spokes.iter().filter(|s| s.axis() == axis).count();
            let numbers = (0..spokes.len()).filter(|&s| spokes[s].axis() == axis).map(|s| s as u32);
            *indices = try_collect(count, PROJECTIONS, numbers)?;
        }
        let work = Pool::filled(threads.count(), || ProjectionBuffers::new(&lengths, lanes))?;
        Ok(Backprojector {
            level,
            dims,
            lengths,
            spokes: try_collect(spokes.len(), PROJECTIONS, spokes.iter().copied())?,
            by_axis,
            arrays,
            batch_size: batch_size(threads.count(), lanes).min(spokes.len()),
            full: fft.full_mapping()?,
            fft,
            samples,
            projection,
            work,
        })
    }

    /// Estimates the bytes of the backprojector and its buffer.
    pub fn bytes(threads: usize, level: Level, readout: usize, dims: &[usize], arrays: usize) -> usize {
        let (dims, lanes) = ([dims[0], dims[1]], level.lanes::<T>());
        let lengths = Lengths::new::<T>(readout, dims);
        let complex = size_of::<Complex<T>>();
        let projections = product(&[batch_size(threads, lanes), lengths.distance, arrays, complex]);
        let transposed = product(&[dims[0], dims[1], arrays, complex]);
        sum(&[projections, transposed, product(&[threads, ProjectionBuffers::<T>::bytes(&lengths, lanes)])])
    }

    /// Returns the length of the buffer in complex numbers: the projections of a batch, and the images with exchanged
    /// axes.
    pub fn buffer_len(&self) -> usize {
        self.arrays * (self.batch_size * self.lengths.distance + self.dims[0] * self.dims[1])
    }

    /// Implements [`crate::backend::Backend::backproject`].
    pub fn backproject(
        &self,
        threads: &Threads,
        values: &[Complex<T>],
        buffer: &mut [Complex<T>],
        image: &mut [Complex<T>],
    ) {
        let voxels = self.dims[0] * self.dims[1];
        let arrays = image.len() / voxels;
        let samples = self.spokes.len() * self.lengths.readout;
        assert!(arrays <= self.arrays && image.len() == arrays * voxels && values.len() == arrays * samples);
        assert!(buffer.len() >= self.buffer_len());
        let (transposed, projections) = buffer.split_at_mut(arrays * voxels);
        for (axis, indices) in self.by_axis.iter().enumerate() {
            let sums = if axis == 0 { &mut *image } else { &mut *transposed };
            // Without spokes, the sums are set to zero.
            let empty_batch = indices.is_empty().then_some(&indices[..]);
            for (i, spokes) in indices.chunks(self.batch_size).chain(empty_batch).enumerate() {
                self.project(threads, spokes, arrays, values, projections);
                self.smear(threads, axis, (spokes, i == 0), arrays, projections, sums);
            }
        }
        self.add_transposed(threads, arrays, transposed, image);
    }

    /// Computes the projections of some spokes at their knots: [distance, spokes, arrays].
    fn project(
        &self,
        threads: &Threads,
        spokes: &[u32],
        arrays: usize,
        values: &[Complex<T>],
        projections: &mut [Complex<T>],
    ) {
        let (lanes, Lengths { distance, .. }) = (self.level.lanes::<T>(), self.lengths);
        let projections = SharedSlice::new(projections);
        threads.run_with(
            spokes.len().div_ceil(lanes),
            || self.scratch(),
            |buffers, block| {
                let block_spokes = &spokes[block * lanes..spokes.len().min((block + 1) * lanes)];
                self.compute_chirps(block_spokes, buffers);
                for array in 0..arrays {
                    let first = array * spokes.len() + block * lanes;
                    // SAFETY: each task has its own spokes, to which these elements belong.
                    let lines = unsafe { projections.part(first * distance, block_spokes.len() * distance) };
                    self.project_lines(block_spokes, array, values, buffers, lines);
                }
            },
        );
    }

    fn scratch(&self) -> crate::base::buffer_pool::Lease<'_, ProjectionBuffers<T>> {
        self.work.take_or_wait(|| ProjectionBuffers::new(&self.lengths, self.level.lanes::<T>()))
    }

    /// Computes the factors of samples and knots of some spokes, and the spectra of their chirps.
    fn compute_chirps(&self, spokes: &[u32], buffers: &mut ProjectionBuffers<T>) {
        let Lengths { readout, knots, middle, points, .. } = self.lengths;
        let origin = self.lengths.origin();
        for (line, &spoke) in spokes.iter().enumerate() {
            let Spoke { first, step, .. } = self.spokes[spoke as usize];
            let distance = self.spokes[spoke as usize].knot_spacing();
            let turns = step * distance;
            self.level.run(ChirpKernel { start: 0.0, turns: 0.0, curve: 0.5 * turns, to: &mut buffers.chirp });
            let before = &mut buffers.before[line * readout..][..readout];
            for (j, to) in before.iter_mut().enumerate() {
                *to = buffers.chirp[j.abs_diff(origin)];
            }
            // The conjugate chirp for all differences between a knot and a sample, periodic over the FFT.
            let spectrum = &mut buffers.spectra[line * points..][..points];
            spectrum.fill(Complex::default());
            for (m, c) in buffers.chirp[..knots - middle + origin].iter().enumerate() {
                spectrum[m] = c.conj();
            }
            for (m, c) in buffers.chirp[..middle + readout - origin].iter().enumerate().skip(1) {
                spectrum[points - m] = c.conj();
            }
            let after = &mut buffers.after[line * knots..][..knots];
            let shift = (first + step * origin as f64) * distance;
            let half = knots / 2;
            for (odd, after) in after.chunks_exact_mut(half).enumerate() {
                // The phases of the shift and of the chirp, both at knot 2 i + odd - middle.
                let first = odd as f64 - middle as f64;
                self.level.run(ChirpKernel {
                    start: (shift + 0.5 * turns * first) * first,
                    turns: 2.0 * (shift + turns * first),
                    curve: 2.0 * turns,
                    to: after,
                });
            }
        }
        let rows = Lines { address: buffers.spectra.as_mut_ptr(), along: 1, across: points, count: spokes.len() };
        let (from, to) = ((rows, &self.full), (rows, &self.full));
        let transform = LaneTransform { fft: &self.fft, inverse: false, from, to, buffer: &mut buffers.buffer };
        // SAFETY: the spectra are `lanes` lines of `points` elements, used by this thread only; all are read before any
        // is written.
        unsafe { self.level.run(transform.kernel()) };
    }

    /// Computes the projections of some spokes of one array.
    fn project_lines(
        &self,
        spokes: &[u32],
        array: usize,
        values: &[Complex<T>],
        buffers: &mut ProjectionBuffers<T>,
        projections: &mut [Complex<T>],
    ) {
        let Lengths { readout, knots, points, distance, .. } = self.lengths;
        for (line, &spoke) in spokes.iter().enumerate() {
            let from = (array * self.spokes.len() + spoke as usize) * readout;
            let samples = &values[from..from + readout];
            let to = &mut buffers.lines[line * readout..][..readout];
            self.level.run(ProductKernel { x: samples, y: &buffers.before[line * readout..][..readout], z: to });
        }
        let count = spokes.len();
        let rows = |address: *mut Complex<T>, across: usize| Lines { address, along: 1, across, count };
        let address = buffers.lines.as_mut_ptr();
        let (from, to) = ((rows(address, readout), &self.samples), (rows(address, points), &self.full));
        let transform = LaneTransform { fft: &self.fft, inverse: false, from, to, buffer: &mut buffers.buffer };
        // SAFETY: `lines` are `lanes` lines of `points` elements, of which the samples use fewer, and only this thread
        // uses them; all are read before any is written.
        unsafe { self.level.run(transform.kernel()) };
        let all = count * points;
        self.level.run(InPlaceProductKernel { x: &mut buffers.lines[..all], y: &buffers.spectra[..all] });
        assert!(projections.len() >= (count - 1) * distance + knots);
        let to = (rows(projections.as_mut_ptr(), distance), &self.projection);
        let from = (rows(address, points), &self.full);
        let transform = LaneTransform { fft: &self.fft, inverse: true, from, to, buffer: &mut buffers.buffer };
        // SAFETY: as above; the projections have `count` lines of `knots` elements, as asserted.
        unsafe { self.level.run(transform.kernel()) };
        for (line, to) in projections.chunks_mut(distance).take(count).enumerate() {
            self.level.run(InPlaceProductKernel { x: &mut to[..knots], y: &buffers.after[line * knots..][..knots] });
        }
    }

    /// Adds the projections of some spokes to every row of voxels along their axis. If `first` is set, replaces the
    /// previous sums.
    fn smear(
        &self,
        threads: &Threads,
        axis: usize,
        (spokes, first): (&[u32], bool),
        arrays: usize,
        projections: &[Complex<T>],
        sums: &mut [Complex<T>],
    ) {
        let [along, across] = if axis == 0 { self.dims } else { [self.dims[1], self.dims[0]] };
        let tasks = across.div_ceil(ROWS);
        let sums = SharedSlice::new(sums);
        threads.run_with(
            arrays * tasks,
            || self.scratch(),
            |buffers, task| {
                let (array, start) = (task / tasks, task % tasks * ROWS);
                let rows = ROWS.min(across - start);
                // SAFETY: each task has its own rows.
                let sums = unsafe { sums.part((array * across + start) * along, rows * along) };
                if first {
                    sums.fill(Complex::default());
                }
                for (i, block_spokes) in spokes.chunks(SPOKES_PER_PASS).enumerate() {
                    for row in 0..rows {
                        let row_position = (start + row) as f64 - (across / 2) as f64;
                        for (j, &spoke) in block_spokes.iter().enumerate() {
                            let line = (array * spokes.len() + i * SPOKES_PER_PASS + j) * self.lengths.distance;
                            let at = row * SPOKES_PER_PASS + j;
                            let (taps, weight) =
                                self.bracketing_knots(axis, &self.spokes[spoke as usize], row_position, along);
                            (buffers.taps[2 * at], buffers.taps[2 * at + 1]) =
                                ((line + taps[0]) as u64, (line + taps[1]) as u64);
                            (buffers.weights[2 * at], buffers.weights[2 * at + 1]) =
                                (T::of(1.0 - weight), T::of(weight));
                        }
                    }
                    let (taps, weights) = (&buffers.taps[..], &buffers.weights[..]);
                    self.level.run(SmearKernel {
                        taps,
                        weights,
                        spokes: block_spokes.len(),
                        along,
                        projections,
                        sums: &mut *sums,
                    });
                }
            },
        );
    }

    /// Returns the memory offsets of the two knots around the first voxel of a row, and the weight of the second knot.
    /// `row_position` is the row's position along the other axis.
    fn bracketing_knots(&self, axis: usize, spoke: &Spoke, row_position: f64, along: usize) -> ([usize; 2], f64) {
        let slope = spoke.direction[1 - axis] / spoke.direction[axis];
        let position = self.lengths.middle as f64 - (2 * (along / 2)) as f64 + 2.0 * slope * row_position;
        let base = position.floor().max(0.0);
        let half = self.lengths.knots / 2;
        let (knot, odd) = (base as usize / 2, base as usize % 2 == 1);
        let taps = if odd { [half + knot, knot + 1] } else { [knot, half + knot] };
        (taps, (position - base).clamp(0.0, 1.0))
    }

    /// Adds image(x, y) += transposed(y, x).
    fn add_transposed(&self, threads: &Threads, arrays: usize, transposed: &[Complex<T>], image: &mut [Complex<T>]) {
        let [nx, ny] = self.dims;
        let tasks = ny.div_ceil(ROWS);
        let image = SharedSlice::new(image);
        threads.run(arrays * tasks, |task| {
            let (array, start) = (task / tasks, task % tasks * ROWS);
            let rows = ROWS.min(ny - start);
            // SAFETY: each task has its own rows.
            let image = unsafe { image.part((array * ny + start) * nx, rows * nx) };
            for (x, column) in transposed[array * nx * ny..][..nx * ny].chunks_exact(ny).enumerate() {
                for (y, value) in column[start..start + rows].iter().enumerate() {
                    image[y * nx + x] += *value;
                }
            }
        });
    }
}

/// Returns exp(i 2 pi turns).
fn unit(turns: f64) -> Complex<f64> {
    Complex::from_polar(1.0, TAU * (turns - turns.round()))
}

/// The chirp exp(i 2 pi (start + turns m + curve m^2)) for each m. Each value is the previous one times a factor, which
/// follows the same kind of recurrence.
struct ChirpKernel<'a, T> {
    start: f64,
    turns: f64,
    curve: f64,
    to: &'a mut [Complex<T>],
}

impl<T: SimdReal> Kernel for ChirpKernel<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<A: Arith>(self) {
        let ChirpKernel { start, turns, curve, to } = self;
        let faster = unit(2.0 * curve);
        for (group, to) in to.chunks_mut(RESTART * RECURRENCES).enumerate() {
            // Parallel recurrences, which are restarted every `RESTART` values.
            let starts = |of: &dyn Fn(f64) -> Complex<f64>| -> [[f64; RECURRENCES]; 2] {
                let all: [Complex<f64>; RECURRENCES] =
                    std::array::from_fn(|c| of(((group * RECURRENCES + c) * RESTART) as f64));
                [all.map(|z| z.re), all.map(|z| z.im)]
            };
            let [mut re, mut im] = starts(&|m| unit(start + (turns + curve * m) * m));
            let [mut factor_re, mut factor_im] = starts(&|m| unit(turns + curve * (2.0 * m + 1.0)));
            for i in 0..RESTART.min(to.len()) {
                for (c, (re, im)) in re.iter().zip(&im).enumerate() {
                    if let Some(to) = to.get_mut(c * RESTART + i) {
                        *to = Complex::new(T::of(*re), T::of(*im));
                    }
                }
                let factors = factor_re.iter_mut().zip(&mut factor_im);
                for ((re, im), (f_re, f_im)) in re.iter_mut().zip(&mut im).zip(factors) {
                    (*re, *im) = (*re * *f_re - *im * *f_im, *re * *f_im + *im * *f_re);
                    (*f_re, *f_im) = (*f_re * faster.re - *f_im * faster.im, *f_re * faster.im + *f_im * faster.re);
                }
            }
        }
    }
}

/// The product z = x y.
struct ProductKernel<'a, T> {
    x: &'a [Complex<T>],
    y: &'a [Complex<T>],
    z: &'a mut [Complex<T>],
}

impl<T: SimdReal> Kernel for ProductKernel<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<A: Arith>(self) {
        for ((z, x), y) in self.z.iter_mut().zip(self.x).zip(self.y) {
            *z = complex_product::<T, A>(*x, *y);
        }
    }
}

/// The product x = x y.
struct InPlaceProductKernel<'a, T> {
    x: &'a mut [Complex<T>],
    y: &'a [Complex<T>],
}

impl<T: SimdReal> Kernel for InPlaceProductKernel<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<A: Arith>(self) {
        for (x, y) in self.x.iter_mut().zip(self.y) {
            *x = complex_product::<T, A>(*x, *y);
        }
    }
}

/// Returns x y with the level's rounding.
#[inline(always)]
fn complex_product<T: SimdReal, A: Arith>(x: Complex<T>, y: Complex<T>) -> Complex<T> {
    Complex::new(A::fma(x.re, y.re, -(x.im * y.im)), A::fma(x.re, y.im, x.im * y.re))
}

/// The addition of weighted runs of knots to rows of voxels.
struct SmearKernel<'a, T> {
    /// Start of the two runs, for each row and spoke.
    taps: &'a [u64],
    /// Weights of the two runs, for each row and spoke.
    weights: &'a [T],
    spokes: usize,
    /// Number of voxels of a row.
    along: usize,
    projections: &'a [Complex<T>],
    sums: &'a mut [Complex<T>],
}

impl<T: SimdReal> Kernel for SmearKernel<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<A: Arith>(self) {
        let rows = self.sums.len() / self.along;
        let used = |row: usize| 2 * row * SPOKES_PER_PASS..2 * (row * SPOKES_PER_PASS + self.spokes);
        for row in 0..rows {
            let fits = |&tap: &u64| tap as usize + self.along <= self.projections.len();
            assert!(self.taps[used(row)].iter().all(fits) && self.weights.len() >= used(row).end);
        }
        let (from, to) = (self.projections.as_ptr().cast::<T>(), self.sums.as_mut_ptr().cast::<T>());
        let lanes = T::V::<A>::LANES;
        let reals = 2 * self.along;
        for first in (0..reals).step_by(2 * COLUMNS) {
            let last = reals.min(first + 2 * COLUMNS);
            for row in 0..rows {
                let range = used(row);
                let (taps, weights) = (&self.taps[range.clone()], &self.weights[range]);
                // SAFETY: a complex number is two reals. Rows of `sums` have 2 `along` reals, and `projections` has the
                // same number from every tap on, as asserted.
                unsafe {
                    let sums = to.add(row * reals);
                    let mut at = first;
                    while at + ACCUMULATORS * lanes <= last {
                        add_runs::<T, A, ACCUMULATORS>(from.add(at), taps, weights, sums.add(at));
                        at += ACCUMULATORS * lanes;
                    }
                    while at + lanes <= last {
                        add_runs::<T, A, 1>(from.add(at), taps, weights, sums.add(at));
                        at += lanes;
                    }
                    for at in at..last {
                        let mut value = *sums.add(at);
                        for (taps, weights) in taps.chunks_exact(2).zip(weights.chunks_exact(2)) {
                            for (tap, weight) in taps.iter().zip(weights) {
                                value = A::fma(*from.add(2 * *tap as usize + at), *weight, value);
                            }
                        }
                        *sums.add(at) = value;
                    }
                }
            }
        }
    }
}

/// Adds weighted knots to `N` vectors of sums.
///
/// # Safety
/// `N` vectors must exist at `sums`, and at `from` plus twice every tap.
#[inline(always)]
unsafe fn add_runs<T: SimdReal, A: Arith, const N: usize>(from: *const T, taps: &[u64], weights: &[T], sums: *mut T) {
    let lanes = T::V::<A>::LANES;
    // SAFETY: as the caller promises.
    unsafe {
        let mut sum = [T::V::<A>::splat(T::ZERO); N];
        for (i, sum) in sum.iter_mut().enumerate() {
            *sum = T::V::<A>::load(sums.add(i * lanes));
        }
        for (taps, weights) in taps.chunks_exact(2).zip(weights.chunks_exact(2)) {
            for (tap, weight) in taps.iter().zip(weights) {
                let (knots, weight) = (from.add(2 * *tap as usize), T::V::<A>::splat(*weight));
                for (i, sum) in sum.iter_mut().enumerate() {
                    *sum = T::V::<A>::load(knots.add(i * lanes)).fma(weight, *sum);
                }
            }
        }
        for (i, sum) in sum.into_iter().enumerate() {
            sum.store(sums.add(i * lanes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::PI;

    /// Returns a number that is uniform in [-0.5, 0.5).
    fn random(state: &mut u64) -> f64 {
        *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*state >> 40) as f64 / (1u64 << 24) as f64 - 0.5
    }

    /// Returns spokes at random angles, along the axes and between them, in both directions and with offsets from the
    /// centre.
    fn spokes(count: usize, readout: usize, state: &mut u64) -> Vec<Spoke> {
        (0..count)
            .map(|s| {
                let angle = match s {
                    0..4 => PI / 4.0 * s as f64,
                    _ => PI * random(state),
                };
                let step = (0.8 + 0.2 * random(state)) / readout as f64 * if s % 3 == 0 { -1.0 } else { 1.0 };
                Spoke::new([angle.cos(), angle.sin()], -step * readout as f64 * (0.5 + 0.5 * random(state)), step)
            })
            .collect()
    }

    /// Computes [`crate::backend::Backend::backproject`] term by term.
    fn expected(spokes: &[Spoke], readout: usize, dims: [usize; 2], values: &[Complex<f64>]) -> Vec<Complex<f64>> {
        let mut image = vec![Complex::default(); dims[0] * dims[1]];
        for (spoke, values) in spokes.iter().zip(values.chunks_exact(readout)) {
            let at = |knot: f64| -> Complex<f64> {
                let turns = |j: usize| (spoke.first + spoke.step * j as f64) * knot * spoke.knot_spacing();
                values.iter().enumerate().map(|(j, v)| v * unit(turns(j))).sum()
            };
            for (i, voxel) in image.iter_mut().enumerate() {
                let [x, y] = [i % dims[0], i / dims[0]];
                let r = [x as f64 - (dims[0] / 2) as f64, y as f64 - (dims[1] / 2) as f64];
                let position = (r[0] * spoke.direction[0] + r[1] * spoke.direction[1]) / spoke.knot_spacing();
                let weight = position - position.floor();
                *voxel += at(position.floor()) * (1.0 - weight) + at(position.floor() + 1.0) * weight;
            }
        }
        image
    }

    fn check<T: SimdReal>(accuracy: f64) {
        let mut state = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
        println!("state: {state}");
        for (count, readout, dims, arrays) in
            [(9, 16, [12, 8], 2), (40, 33, [7, 20], 1), (5, 1, [1, 1], 3), (130, 24, [19, 19], 2), (4, 70, [80, 3], 1)]
        {
            let spokes = spokes(count, readout, &mut state);
            let len = count * readout;
            let values: Vec<Complex<f64>> =
                (0..arrays * len).map(|_| Complex::new(random(&mut state), random(&mut state))).collect();
            let narrowed: Vec<Complex<T>> = values.iter().map(|v| Complex::new(T::of(v.re), T::of(v.im))).collect();
            let exact: Vec<_> = values.chunks_exact(len).flat_map(|v| expected(&spokes, readout, dims, v)).collect();
            let norm = exact.iter().map(|e| e.norm_sqr()).sum::<f64>().sqrt();
            for level in Level::all() {
                let mut bits = None;
                for threads in [1, 2, 5] {
                    let threads = Threads::new(threads).unwrap();
                    let plan = Backprojector::<T>::new(&threads, level, &spokes, readout, &dims, arrays + 1).unwrap();
                    let poison = Complex::new(T::of(f64::NAN), T::ZERO);
                    let (mut image, mut buffer) = (vec![poison; exact.len()], vec![poison; plan.buffer_len()]);
                    // The second call uses memory with old contents.
                    for _ in 0..2 {
                        image.fill(poison);
                        plan.backproject(&threads, &narrowed, &mut buffer, &mut image);
                    }
                    let wide = |z: Complex<T>| Complex::new(z.re.wide(), z.im.wide());
                    let error = image.iter().zip(&exact).map(|(z, e)| (wide(*z) - e).norm_sqr()).sum::<f64>().sqrt();
                    assert!(error <= accuracy * norm, "{count} spokes, {}: {}", level.name(), error / norm);
                    assert!(*bits.get_or_insert(image.clone()) == image, "bits of {} threads", threads.count());
                }
            }
        }
    }

    #[test]
    fn images_are_sums_of_interpolated_projections() {
        check::<f32>(2e-6);
        check::<f64>(1e-12);
    }
}
