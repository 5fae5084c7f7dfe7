//! Transforms of the lines of an array along one axis, by the kernels of kernels/fft.cu.

use super::line_layout::{any_radices, pass_kernels, Arrangement, AxisLines, ImagePoints, LineLayout, Step};
use crate::backend::cuda::compile::Kernels;
use crate::backend::cuda::gpu::{launch, Gpu};
use crate::backend::cuda::kernel_check::CheckArguments;
use crate::backend::cuda::memory::{ComplexSlice, ComplexSliceMut, DeviceArray};
use crate::backend::cuda::runtime::Function;
use crate::backend::{DevicePointer, DeviceSlice, DeviceSliceMut, Span};
use crate::base::error::{bail, Result};
use crate::base::real::{narrow, Real};
use crate::base::roots_of_unity::roots_of_unity;
use num_complex::Complex;
use std::sync::Mutex;

/// Bytes of lines that passes through global memory process at once.
const SCRATCH: usize = 32 << 20;
/// Lines to transform. Line q is line (q mod n0, q / n0 mod n1, q / (n0 n1)) of three axes. Same layout as in the
/// kernels.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Lines {
    count: u32,
    n0: u32,
    n1: u32,
}

impl Lines {
    /// Returns the lines of these axes. [`check`] has verified that their number fits.
    pub fn new(n: [usize; 3]) -> Self {
        Lines { count: n.iter().product::<usize>() as u32, n0: n[0] as u32, n1: n[1] as u32 }
    }
}

/// One side of a transform. Same layout as in the kernels.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Side {
    /// Elements from a line to the next along these axes.
    across: [i64; 3],
    /// Elements from a point to the next.
    along: u32,
    /// Number of existing points, and the index of point 0.
    n: i32,
    origin: i32,
}

impl Side {
    /// Returns lines with these steps and `n` points, of which number `origin` is point 0.
    pub fn new(across: [usize; 3], along: usize, n: usize, origin: usize) -> Self {
        Side { across: across.map(|a| a as i64), along: along as u32, n: n as i32, origin: origin as i32 }
    }

    /// Returns this side for one image that all coils share. Coils are the second axis of the lines.
    pub fn of_all_coils(self) -> Side {
        Side { across: [self.across[0], 0, self.across[2]], ..self }
    }

    /// Returns the number of elements from the first of these lines to the last, the minimum length of an array.
    fn extent(&self, lines: Lines) -> usize {
        let (n0, n1) = (u64::from(lines.n0), u64::from(lines.n1));
        let counts = [n0, n1, u64::from(lines.count) / (n0 * n1)];
        let steps = counts.iter().zip(self.across).map(|(n, across)| (n - 1) * across as u64).sum::<u64>();
        (steps + (self.n - 1) as u64 * u64::from(self.along) + 1) as usize
    }

    /// Returns the address of these lines in an array.
    fn of<E: Send + Sync>(&self, lines: Lines, array: DeviceSlice<'_, E>) -> DevicePointer<E> {
        assert!(array.len() >= self.extent(lines), "{lines:?} {self:?} of {} elements", array.len());
        array.pointer()
    }
}

/// Maps of coils, `step` elements apart. Same layout as in the kernels.
#[repr(C)]
#[derive(Clone, Copy)]
struct Maps<T> {
    of: DevicePointer<Complex<T>>,
    step: i64,
}

/// Source and destination of the lines of a transform.
pub enum Buffers<'a, T> {
    /// Two arrays.
    Two(ComplexSlice<'a, T>, ComplexSliceMut<'a, T>),
    /// One array.
    InPlace(ComplexSliceMut<'a, T>),
}

impl<T: Real> Buffers<'_, T> {
    /// Returns the source.
    pub fn input(&self) -> ComplexSlice<'_, T> {
        match self {
            Buffers::Two(input, _) => *input,
            Buffers::InPlace(data) => data.as_slice(),
        }
    }

    /// Returns the destination.
    pub fn output(&mut self) -> ComplexSliceMut<'_, T> {
        match self {
            Buffers::Two(_, output) | Buffers::InPlace(output) => output.reborrow(),
        }
    }

    /// Returns the addresses of the lines on both sides.
    fn of(&self, lines: Lines, from: Side, to: Side) -> [DevicePointer<Complex<T>>; 2] {
        let output = match self {
            Buffers::Two(_, output) | Buffers::InPlace(output) => output.as_slice(),
        };
        [from.of(lines, self.input()), to.of(lines, output)]
    }
}

/// Returns an error for sizes beyond the kernels' integers: more than 2^31 lines of an array, or points further apart
/// than that.
pub fn check(lines: &[usize]) -> Result<()> {
    match lines.iter().try_fold(1usize, |p, &n| p.checked_mul(n)) {
        Some(count) if count <= i32::MAX as usize => Ok(()),
        _ => bail!(
            SizeOverflow,
            "a plane of {lines:?} points exceeds the limit of a transform on a GPU: use a smaller image, or device cpu"
        ),
    }
}

/// Returns the maximum number of arrays of `lines` lines that are transformed at once.
pub fn arrays_at_once(lines: usize) -> usize {
    (i32::MAX as usize / lines).max(1)
}

/// Returns the numbers by which each pass except the first multiplies its inputs 1 to radix - 1, in the order of the
/// kernels. `roots` are those of the lines' length.
fn twiddles<'a, T: Real>(
    roots: &'a [Complex<f64>],
    radices: impl Iterator<Item = usize> + 'a,
) -> impl Iterator<Item = Complex<T>> + 'a {
    let mut done = 1;
    radices.flat_map(move |radix| {
        let before = done;
        done *= radix;
        let step = roots.len() / done;
        // The first pass has no roots.
        let inputs = if before == 1 { 1..1 } else { 1..radix };
        inputs.flat_map(move |k| (0..before).map(move |j| narrow(roots[k * j * step])))
    })
}

/// Transform of lines of one length and arrangement.
pub struct LineFft<T: Real>(Strategy<T>);

enum Strategy<T: Real> {
    /// Lines in shared memory.
    Shared(SharedLines<T>),
    /// Lines that do not fit in shared memory, one pass after the other.
    Global {
        n: usize,
        passes: Vec<(usize, Function)>,
        roots: DeviceArray<Complex<T>>,
        /// Lines before and after a pass. The thread that queues passes holds both.
        scratch: Mutex<[DeviceArray<Complex<T>>; 2]>,
    },
}

/// The kernels for lines in shared memory, and what they were compiled for.
struct SharedLines<T: Real> {
    layout: LineLayout,
    arrangement: Arrangement,
    image: ImagePoints,
    shared: usize,
    functions: Box<StepFunctions>,
    roots: DeviceArray<Complex<T>>,
}

/// The kernels of the steps that were requested.
struct StepFunctions {
    transforms: Option<[Function; 2]>,
    whole: Option<Function>,
    real_parts: Option<Function>,
    convolution: Option<Function>,
    maps: Option<Function>,
    conjugate_maps: Option<Function>,
}

impl StepFunctions {
    /// Loads those of the steps for which `kernels` returns some. Launches have `shared` bytes of shared memory.
    fn new(gpu: &Gpu, shared: usize, kernels: impl Fn(Step) -> Option<Kernels>) -> Result<Self> {
        let function = |step, name| kernels(step).map(|of| gpu.function(&of, name, shared)).transpose();
        let transforms = match kernels(Step::Transforms) {
            Some(of) => Some([gpu.function(&of, "fft_up", shared)?, gpu.function(&of, "fft_down", shared)?]),
            None => None,
        };
        Ok(StepFunctions {
            transforms,
            whole: function(Step::WholeColumns, "fft_whole")?,
            real_parts: function(Step::RealParts, "fft_kernel")?,
            convolution: function(Step::Convolution, "fft_convolve")?,
            maps: function(Step::Maps, "fft_up_maps")?,
            conjugate_maps: function(Step::ConjugateMaps, "fft_down_maps")?,
        })
    }
}

impl<T: Real> SharedLines<T> {
    /// Checks that the kernels were compiled for these sides. `image` has the image's points.
    fn check(&self, image: Side, other: Side) {
        assert_eq!((image.n as usize, image.origin as usize), (self.image.count, self.image.origin));
        assert!(self.arrangement == Arrangement::Columns || (image.along, other.along) == (1, 1));
    }
}

/// One side of a transform by passes: the address of its lines, and the factor of each point (null: no factor).
#[derive(Clone, Copy)]
struct PassEnd<T> {
    pointer: DevicePointer<Complex<T>>,
    side: Side,
    factor: DevicePointer<T>,
}

impl<T> PassEnd<T> {
    fn new(pointer: DevicePointer<Complex<T>>, side: Side, factor: DevicePointer<T>) -> Self {
        PassEnd { pointer, side, factor }
    }
}

/// A transform by passes. An end that is `None` is in scratch.
struct PassTransform<T> {
    inverse: bool,
    from: Option<PassEnd<T>>,
    to: Option<PassEnd<T>>,
    /// Spectrum that multiplies the result.
    spectrum: Option<(DevicePointer<T>, Side)>,
    /// Destination of real parts instead of the complex result, and their factor.
    reals: Option<(DevicePointer<T>, f64)>,
    /// If it has failed, nothing is written.
    check: CheckArguments<T>,
}

impl<T: Real> PassTransform<T> {
    fn new(inverse: bool, from: Option<PassEnd<T>>, to: Option<PassEnd<T>>) -> Self {
        PassTransform { inverse, from, to, spectrum: None, reals: None, check: CheckArguments::NONE }
    }
}

/// The image's end of a transform.
#[derive(Clone, Copy)]
pub struct ImageEnd<'a, T> {
    /// Factor of each point, before the transform of an image and after the transform to an image.
    pub factor: Option<DeviceSlice<'a, T>>,
    /// Check of the image that is transformed. A transform to an image writes nothing if it has failed.
    pub check: CheckArguments<T>,
}

impl<T: Real> ImageEnd<'_, T> {
    /// No factors and no check.
    pub const PLAIN: Self = ImageEnd { factor: None, check: CheckArguments::NONE };
}

impl<T: Real> LineFft<T> {
    /// Creates the transform of these lines. Other steps than theirs must not be called.
    pub fn new(gpu: &Gpu, of: AxisLines) -> Result<Self> {
        let AxisLines { n, image, arrangement, steps, .. } = of;
        let bytes = size_of::<T>();
        let what = "the roots of an FFT";
        let Some(layout) = of.layout(bytes, gpu.properties().shared) else {
            let passes = any_radices(n).into_iter().map(|radix| {
                let kernels = pass_kernels(radix, bytes);
                Ok((radix, gpu.function(&kernels, "fft_pass", 0)?))
            });
            let roots: Vec<_> = roots_of_unity(n, what)?.into_iter().map(narrow).collect();
            let lines = || gpu.array(n * Self::scratch_lines(n), "lines of an FFT");
            return Ok(LineFft(Strategy::Global {
                n,
                passes: passes.collect::<Result<_>>()?,
                roots: gpu.send(&roots, what)?,
                scratch: Mutex::new([lines()?, lines()?]),
            }));
        };
        let shared = layout.shared(n, arrangement, bytes);
        let kernels = |step: Step| steps.contains(&step).then(|| layout.kernels(&of, bytes, step));
        let functions = Box::new(StepFunctions::new(gpu, shared, kernels)?);
        let radices = &layout.radices;
        let of_order_n = roots_of_unity(n, what)?;
        let mut roots: Vec<_> = twiddles(&of_order_n, radices.iter().copied()).collect();
        if steps.contains(&Step::Convolution) {
            roots.extend(twiddles::<T>(&of_order_n, radices.iter().rev().copied()));
        }
        // Not empty even if there is only one pass.
        roots.push(Complex::new(T::ONE, T::ZERO));
        Ok(LineFft(Strategy::Shared(SharedLines {
            functions,
            roots: gpu.send(&roots, what)?,
            layout,
            arrangement,
            image,
            shared,
        })))
    }

    /// Returns whether [`LineFft::up`] can check the image.
    pub fn can_check(&self) -> bool {
        matches!(self.0, Strategy::Shared(_))
    }

    fn scratch_lines(n: usize) -> usize {
        (SCRATCH / (n * size_of::<Complex<T>>())).max(1)
    }

    /// Returns its maximum bytes.
    pub fn bytes(n: usize, arrangement: Arrangement) -> usize {
        let fits = LineLayout::new(n, arrangement, size_of::<T>(), 1 << 20, 48 << 10).is_some();
        let scratch = if fits { 0 } else { 2 * Self::scratch_lines(n) };
        (2 + scratch).saturating_mul(n).saturating_mul(size_of::<Complex<T>>())
    }

    /// Transforms lines of the image to whole lines, with exp(-i).
    pub fn up(&self, gpu: &Gpu, lines: Lines, buffers: &Buffers<'_, T>, sides: [Side; 2], image: ImageEnd<'_, T>) {
        self.transform(gpu, false, lines, buffers, sides, image);
    }

    /// Transforms whole lines to lines of the image, with exp(+i).
    pub fn down(&self, gpu: &Gpu, lines: Lines, buffers: &Buffers<'_, T>, sides: [Side; 2], image: ImageEnd<'_, T>) {
        self.transform(gpu, true, lines, buffers, sides, image);
    }

    /// Returns whether [`LineFft::up_maps`] exists for these lines.
    pub fn has_maps(&self) -> bool {
        matches!(&self.0, Strategy::Shared(shared) if shared.functions.maps.is_some())
    }

    /// Transforms lines of one image times the maps of several coils to whole lines, with exp(-i). Coils are the second
    /// axis of the lines.
    pub fn up_maps(
        &self,
        gpu: &Gpu,
        lines: Lines,
        image: ComplexSlice<'_, T>,
        maps: ComplexSlice<'_, T>,
        output: &ComplexSliceMut<'_, T>,
        [from, to]: [Side; 2],
    ) {
        let Strategy::Shared(with @ SharedLines { layout, shared, functions, roots, .. }) = &self.0 else {
            unreachable!("has_maps is false")
        };
        let up = functions.maps.as_ref().expect("planned for maps");
        with.check(from, to);
        assert!(
            from.across[1] == 0 && lines.count == lines.n0 * lines.n1 && maps.len() == lines.n1 as usize * image.len()
        );
        let maps = Maps { of: maps.pointer(), step: image.len() as i64 };
        let (input, output) = (from.of(lines, image), to.of(lines, output.as_slice()));
        let ((grid, block), roots) = (layout.launch(lines.count), roots.pointer());
        // SAFETY: the kernel's parameters are these; the lines are inside of the arrays, and each coil has a map as
        // long as the image.
        unsafe { launch!(gpu, up, grid, block, *shared; input, maps, output, lines, from, to, roots) };
    }

    /// Transforms whole lines of several coils with exp(+i), and adds them, times the conjugate maps, to lines of one
    /// image. `lines` are those of one coil.
    pub fn down_maps(
        &self,
        gpu: &Gpu,
        lines: Lines,
        input: ComplexSlice<'_, T>,
        maps: ComplexSlice<'_, T>,
        image: &ComplexSliceMut<'_, T>,
        [from, to]: [Side; 2],
    ) {
        let Strategy::Shared(with @ SharedLines { layout, shared, functions, roots, .. }) = &self.0 else {
            unreachable!("has_maps is false")
        };
        let down = functions.conjugate_maps.as_ref().expect("planned for conjugate maps");
        with.check(to, from);
        let coils = maps.len() / image.len();
        let each = input.len() / coils;
        assert!(maps.len() == coils * image.len() && input.len() == coils * each && each >= from.extent(lines));
        let maps = Maps { of: maps.pointer(), step: image.len() as i64 };
        let (input, image) = (input.pointer(), to.of(lines, image.as_slice()));
        let ((grid, block), roots, coils, step) =
            (layout.launch(lines.count), roots.pointer(), coils as i32, each as i64);
        // SAFETY: the kernel's parameters are these; the lines are inside of the arrays of each coil.
        unsafe { launch!(gpu, down, grid, block, *shared; input, maps, image, lines, from, to, coils, step, roots) };
    }

    /// Transforms in one direction.
    fn transform(
        &self,
        gpu: &Gpu,
        inverse: bool,
        lines: Lines,
        buffers: &Buffers<'_, T>,
        [from, to]: [Side; 2],
        ImageEnd { factor, check }: ImageEnd<'_, T>,
    ) {
        let [input, output] = buffers.of(lines, from, to);
        let factor = factor_of(factor, if inverse { to } else { from });
        match &self.0 {
            Strategy::Shared(with @ SharedLines { layout, shared, functions, roots, .. }) => {
                let (image, whole) = if inverse { (to, from) } else { (from, to) };
                with.check(image, whole);
                let ((grid, block), roots) = (layout.launch(lines.count), roots.pointer());
                let [up, down] = functions.transforms.as_ref().expect("planned for transforms");
                let function = if inverse { down } else { up };
                // SAFETY: the kernel's parameters are these; the lines are inside of both arrays.
                unsafe {
                    launch!(gpu, function, grid, block, *shared;
                        input, output, lines, from, to, factor, roots, check)
                };
            }
            Strategy::Global { .. } => {
                assert!(inverse || !check.exists(), "only `down` can check by passes");
                let [before, after] =
                    if inverse { [DevicePointer::NULL, factor] } else { [factor, DevicePointer::NULL] };
                let (from, to) = (PassEnd::new(input, from, before), PassEnd::new(output, to, after));
                let transform = PassTransform::new(inverse, Some(from), Some(to));
                self.by_passes(gpu, lines, &[PassTransform { check, ..transform }]);
            }
        }
    }

    /// Transforms whole columns in place, with exp(-i).
    pub fn whole(&self, gpu: &Gpu, lines: Lines, columns: &ComplexSliceMut<'_, T>, side: Side) {
        let data = side.of(lines, columns.as_slice());
        match &self.0 {
            Strategy::Shared(SharedLines { layout, shared, functions, roots, .. }) => {
                let ((grid, block), roots) = (layout.launch(lines.count), roots.pointer());
                let whole = functions.whole.as_ref().expect("planned for whole columns");
                // SAFETY: the kernel's parameters are these; the lines are inside of the array.
                unsafe { launch!(gpu, whole, grid, block, *shared; data, lines, side, roots) };
            }
            Strategy::Global { .. } => {
                let end = Some(PassEnd::new(data, side, DevicePointer::NULL));
                self.by_passes(gpu, lines, &[PassTransform::new(false, end, end)]);
            }
        }
    }

    /// Transforms rows of the image to the real parts of whole rows times `scale`, with exp(-i).
    pub fn real_parts(
        &self,
        gpu: &Gpu,
        lines: Lines,
        input: ComplexSlice<'_, T>,
        output: &DeviceSliceMut<'_, T>,
        [from, to]: [Side; 2],
        scale: f64,
    ) {
        let (input, output) = (from.of(lines, input), to.of(lines, output.as_slice()));
        match &self.0 {
            Strategy::Shared(with @ SharedLines { layout, shared, functions, roots, .. }) => {
                with.check(from, to);
                let ((grid, block), roots) = (layout.launch(lines.count), roots.pointer());
                let (real_parts, scale) =
                    (functions.real_parts.as_ref().expect("planned for real parts"), T::of(scale));
                // SAFETY: the kernel's parameters are these; the lines are inside of both arrays.
                unsafe { launch!(gpu, real_parts, grid, block, *shared; input, output, lines, from, to, scale, roots) };
            }
            Strategy::Global { .. } => {
                let from = PassEnd::new(input, from, DevicePointer::NULL);
                let to = PassEnd::new(DevicePointer::NULL, to, DevicePointer::NULL);
                let transform = PassTransform::new(false, Some(from), Some(to));
                self.by_passes(gpu, lines, &[PassTransform { reals: Some((output, scale)), ..transform }]);
            }
        }
    }

    /// Convolves columns of the image in place: to whole columns, times a real spectrum at the points of `whole`, and
    /// back.
    pub fn convolve(
        &self,
        gpu: &Gpu,
        lines: Lines,
        columns: &ComplexSliceMut<'_, T>,
        image: Side,
        spectrum: DeviceSlice<'_, T>,
        whole: Side,
    ) {
        let (columns, spectrum) = (image.of(lines, columns.as_slice()), whole.of(lines, spectrum));
        match &self.0 {
            Strategy::Shared(with @ SharedLines { layout, shared, functions, roots, .. }) => {
                with.check(image, whole);
                let ((grid, block), roots) = (layout.launch(lines.count), roots.pointer());
                let convolution = functions.convolution.as_ref().expect("planned for a convolution");
                // SAFETY: the kernel's parameters are these; the lines are inside of the arrays.
                unsafe {
                    launch!(gpu, convolution, grid, block, *shared; columns, columns, lines, image, spectrum, whole, roots)
                };
            }
            Strategy::Global { .. } => {
                let end = Some(PassEnd::new(columns, image, DevicePointer::NULL));
                let there = PassTransform { spectrum: Some((spectrum, whole)), ..PassTransform::new(false, end, None) };
                self.by_passes(gpu, lines, &[there, PassTransform::new(true, None, end)]);
            }
        }
    }

    /// Transforms pass by pass, with the number of lines that fits in scratch. The lines are inside all arrays.
    fn by_passes(&self, gpu: &Gpu, lines: Lines, transforms: &[PassTransform<T>]) {
        const IN_SCRATCH: i32 = 1;
        const OUT_SCRATCH: i32 = 2;
        const INVERSE: i32 = 4;
        let Strategy::Global { n, passes, roots, scratch } = &self.0 else { return };
        let scratch = scratch.lock().unwrap_or_else(|e| e.into_inner());
        let (points, roots) = (*n as i32, roots.pointer());
        // Lines in scratch, one after the other.
        let room = Self::scratch_lines(*n);
        let aside = Side::new([0; 3], room, *n, 0);
        // 32 neighbouring lines, 8 butterflies of each.
        let block = [32, 8, 1];
        for first in (0..lines.count).step_by(room) {
            let mut turn = 0;
            for transform in transforms {
                let mut done = 1i32;
                for (i, (radix, function)) in passes.iter().enumerate() {
                    let last = i + 1 == passes.len();
                    let from = transform.from.filter(|_| i == 0);
                    let to = transform.to.filter(|_| last);
                    let flags = if from.is_none() { IN_SCRATCH } else { 0 }
                        + if to.is_none() { OUT_SCRATCH } else { 0 }
                        + if transform.inverse { INVERSE } else { 0 };
                    let in_scratch = |i: usize| PassEnd::new(scratch[i].pointer(), aside, DevicePointer::NULL);
                    let from = from.unwrap_or_else(|| in_scratch(1 - turn));
                    let to = to.unwrap_or_else(|| in_scratch(turn));
                    let (spectrum, whole) = transform.spectrum.filter(|_| last).unwrap_or((DevicePointer::NULL, aside));
                    let (reals, scale) = transform.reals.filter(|_| last).unwrap_or((DevicePointer::NULL, 1.0));
                    let grid = [
                        room.min(lines.count as usize).div_ceil(32) as u32,
                        (n / radix).div_ceil(8).min(65535) as u32,
                        1,
                    ];
                    // SAFETY: the kernel's parameters are these. The caller's arrays contain the lines; scratch has
                    // space for the processed lines and is locked until all is queued.
                    unsafe {
                        launch!(
                            gpu, function, grid, block, 0;
                            from.pointer, to.pointer, lines, first, from.side, to.side, whole, from.factor, to.factor,
                            spectrum, reals, T::of(scale), points, done, flags, roots, transform.check
                        )
                    };
                    done *= *radix as i32;
                    turn = 1 - turn;
                }
            }
        }
    }
}

/// Returns the factors of an image's points, or null without factors.
fn factor_of<T: Real>(factor: Option<DeviceSlice<'_, T>>, image: Side) -> DevicePointer<T> {
    assert!(factor.is_none_or(|f| f.len() == image.n as usize));
    factor.map_or(DevicePointer::NULL, |f| f.pointer())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twiddles_are_as_many_as_the_kernels_look_up() {
        for radices in [vec![16, 10], vec![8, 8, 5], vec![6], vec![5, 4, 3, 2]] {
            let n: usize = radices.iter().product();
            assert_eq!(
                twiddles::<f64>(&roots_of_unity(n, "a test").unwrap(), radices.iter().copied()).count(),
                n - radices[0]
            );
        }
    }
}
