//! Transforms of the lines of an array along one axis: the kernels of kernels/fft.cu, and what they are compiled with.

use crate::backend::cuda::compile::Kernels;
use crate::backend::cuda::gpu::{launch, Gpu};
use crate::backend::cuda::memory::DeviceArray;
use crate::backend::cuda::runtime::Function;
use crate::base::error::{bail, Result};
use crate::base::real::Real;
use num_complex::Complex;
use std::f64::consts::TAU;
use std::sync::Mutex;

/// Bytes of lines that the passes through global memory work on at once.
const SCRATCH: usize = 32 << 20;
/// Blocks that fill a GPU; fewer are made smaller. A constant, so that kernels are the same for all GPUs of an
/// architecture.
const MANY_BLOCKS: usize = 128;
/// Threads of a block, at most.
const MANY_THREADS: usize = 512;

/// Lines to transform: line q is line (q mod n0, q / n0 mod n1, q / (n0 n1)) of three axes. As in the kernels.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Lines {
    count: u32,
    n0: u32,
    n1: u32,
}

impl Lines {
    /// The lines of these axes: [`check`] has seen that they can be counted.
    pub fn new(n: [usize; 3]) -> Self {
        Lines { count: n.iter().product::<usize>() as u32, n0: n[0] as u32, n1: n[1] as u32 }
    }
}

/// One side of a transform. As in the kernels.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Side {
    /// Elements from a line to the next along those axes.
    across: [i64; 3],
    /// Elements from a point to the next.
    along: u32,
    /// Points that there are, and which of them is point 0.
    n: i32,
    origin: i32,
}

impl Side {
    /// Lines that lie so, of `n` points of which number `origin` is point 0.
    pub fn new(across: [usize; 3], along: usize, n: usize, origin: usize) -> Self {
        Side { across: across.map(|a| a as i64), along: along as u32, n: n as i32, origin: origin as i32 }
    }
}

/// Refuses what the kernels' numbers cannot hold: more than 2^31 lines of an array, or points so far from the next.
pub fn check(lines: &[usize]) -> Result<()> {
    match lines.iter().try_fold(1usize, |p, &n| p.checked_mul(n)) {
        Some(count) if count <= i32::MAX as usize => Ok(()),
        _ => bail!(
            SizeOverflow,
            "a plane of {lines:?} points is more than a transform on a GPU takes: use a smaller image, or device cpu"
        ),
    }
}

/// How many arrays of `lines` lines are transformed at once, at most.
pub fn arrays_at_once(lines: usize) -> usize {
    (i32::MAX as usize / lines).max(1)
}

/// Whether lines lie along memory, or neighbouring lines do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Lie {
    /// Points of a line are neighbours.
    Rows,
    /// Lines are neighbours.
    Columns,
}

/// What the kernels for lines in shared memory are compiled with.
#[derive(Debug, Clone, PartialEq)]
struct Layout {
    /// Radices of the passes.
    radices: Vec<usize>,
    /// Lines of a block.
    lines: usize,
    threads: usize,
    /// Blocks on a multiprocessor.
    blocks: usize,
}

/// The fewest radices of at most `most` whose product is n, and of those the ones whose largest is smallest:
/// descending.
fn radices(n: usize, most: usize) -> Option<Vec<usize>> {
    let with = |radix: usize| match n / radix {
        1 => Some(vec![radix]),
        rest => radices(rest, radix).map(|rest| [&[radix], &rest[..]].concat()),
    };
    (1 + usize::from(n > 1)..=most.min(n))
        .filter(|r| n.is_multiple_of(*r))
        .filter_map(with)
        .min_by_key(|r| (r.len(), r[0]))
}

/// Radices for any n, though only those of few small primes are fast.
fn any_radices(n: usize) -> Vec<usize> {
    let mut most = 16;
    loop {
        if let Some(radices) = radices(n, most) {
            return radices;
        }
        most += 1;
    }
}

impl Layout {
    /// A fast one for `count` lines of n points of reals of `bytes` bytes, where a block has `shared` bytes of shared
    /// memory: none where not one line fits. The numbers are from measurements on an H200.
    fn new(n: usize, lie: Lie, bytes: usize, count: usize, shared: usize) -> Option<Layout> {
        let few = count < 8 * MANY_BLOCKS;
        let single = bytes == 4;
        // Two passes where registers hold such radices, and enough threads remain to hide what memory takes.
        let most = match lie {
            _ if !single || (few && lie == Lie::Columns) => 16,
            Lie::Rows if n == 24 * 16 => 24,
            Lie::Columns if n.is_multiple_of(16) && n <= 32 * 16 => 32,
            _ => 20,
        };
        let two = radices(n, most).filter(|r| matches!(r[..], [_] | [..=20, _] | [_, 16]));
        let radices = two.unwrap_or_else(|| any_radices(n));
        // Butterflies of a line in the pass that threads are counted for.
        let across = match radices[..] {
            [radix] => n / radix,
            [radix, _] if radix > 20 => n / radix,
            [_, radix, ..] => n / radix,
            [] => n,
        };
        let mut lines = match lie {
            Lie::Columns => {
                // 128 bytes of neighbours.
                let mut lines = 64 / bytes;
                while lines * across < 64 && lines < 64 {
                    lines *= 2;
                }
                while lines * across > MANY_THREADS && lines > 1 {
                    lines /= 2;
                }
                lines
            }
            Lie::Rows => 1 << (160 / across.min(160)).min(64).ilog2(),
        };
        // Fewer lines a block before few blocks, but not less than 32 bytes of neighbours or 64 threads.
        let least = if lie == Lie::Columns { 16 / bytes } else { 1 };
        while count.div_ceil(lines) < MANY_BLOCKS && lines > least && lines * across >= 128 {
            lines /= 2;
        }
        let layout = |lines: usize| {
            let threads = (lines * across).min(MANY_THREADS);
            // Registers of a multiprocessor for so many threads.
            let resident = match radices[0] {
                ..=10 => [1024, 640],
                11..=16 => [768, 512],
                17..=20 => [640, 384],
                _ => [512, 256],
            }[usize::from(!single)];
            Layout { radices: radices.clone(), lines, threads, blocks: (resident / threads).clamp(1, 16) }
        };
        while lines > 1 && layout(lines).shared(n, lie, bytes) > shared {
            lines /= 2;
        }
        // More points a thread would not be in registers.
        Some(layout(lines)).filter(|l| l.shared(n, lie, bytes) <= shared && lines * n <= 64 * l.threads)
    }

    /// Bytes of shared memory, as the kernels use them in either order of the passes.
    fn shared(&self, n: usize, lie: Lie, bytes: usize) -> usize {
        let [first, .., last] = self.radices[..] else { return 0 };
        let pitch = |first: usize| {
            let padded = first % 2 == 0 && (lie == Lie::Rows || self.lines * 2 * bytes < 128);
            if padded {
                n + n / first
            } else {
                n
            }
        };
        self.lines * pitch(first).max(pitch(last)) * 2 * bytes
    }

    fn kernels(&self, lie: Lie, bytes: usize, fused: bool) -> Kernels {
        let numbers = [
            ("LINES", self.lines),
            ("THREADS", self.threads),
            ("BLOCKS", self.blocks),
            ("ROWS", usize::from(lie == Lie::Rows)),
            ("FUSED", usize::from(fused)),
        ];
        let radices: Vec<String> = self.radices.iter().map(|r| r.to_string()).collect();
        Kernels::new("fft", SOURCE, bytes, &numbers).with("RADICES", radices.join(","))
    }
}

const SOURCE: &str = include_str!("../../../../kernels/fft.cu");

/// The kernels for lines of n points, where these fit 64 KiB of shared memory.
pub fn usual_kernels(n: usize, lie: Lie, bytes: usize, count: usize, fused: bool) -> Option<Kernels> {
    Layout::new(n, lie, bytes, count, 64 << 10).map(|layout| layout.kernels(lie, bytes, fused))
}

/// The kernels for one pass through global memory.
fn pass_kernels(radix: usize, bytes: usize) -> Kernels {
    Kernels::new("fft_pass", SOURCE, bytes, &[("RADIX", radix)])
}

/// The kernels for a kernel's place on the doubled grid.
pub fn place_kernels(bytes: usize) -> Kernels {
    Kernels::new("fft_place", SOURCE, bytes, &[])
}

/// exp(-i 2 pi k / n).
fn root<T: Real>(k: usize, n: usize) -> Complex<T> {
    // Within an eighth of a turn from a multiple of a quarter, where sine and cosine lose nothing to the angle's
    // rounding.
    let quarter = (8 * k + n) / (2 * n);
    let angle = TAU * (4.0 * k as f64 - (quarter * n) as f64) / (4.0 * n as f64);
    let (sin, cos) = angle.sin_cos();
    let (cos, sin) = [(cos, sin), (-sin, cos), (-cos, -sin), (sin, -cos)][quarter % 4];
    Complex::new(T::of(cos), T::of(-sin))
}

/// The roots that each pass but the first multiplies its inputs 1 to radix - 1 with, as the kernels take them.
fn twiddles<T: Real>(radices: impl Iterator<Item = usize>) -> impl Iterator<Item = Complex<T>> {
    let mut done = 1;
    radices.flat_map(move |radix| {
        let before = done;
        done *= radix;
        // The first pass has none.
        let inputs = if before == 1 { 1..1 } else { 1..radix };
        inputs.flat_map(move |k| (0..before).map(move |j| root(k * j, before * radix)))
    })
}

/// The transform of lines of one length, lying one way.
pub struct LineFft<T: Real>(Way<T>);

enum Way<T: Real> {
    /// Lines in shared memory.
    Shared {
        layout: Layout,
        shared: usize,
        up: Function,
        down: Function,
        /// To real parts, or there and back: what a convolution needs besides.
        fused: Option<Function>,
        roots: DeviceArray<Complex<T>>,
    },
    /// Lines that do not fit, one pass after the other.
    Global {
        n: usize,
        passes: Vec<(usize, Function)>,
        roots: DeviceArray<Complex<T>>,
        /// Lines before and after a pass. Whoever queues passes has both.
        scratch: Mutex<[DeviceArray<Complex<T>>; 2]>,
    },
}

/// One way through all passes: where its lines come from and go to, scratch where not given.
struct Leg {
    inverse: bool,
    from: Option<(u64, Side, u64)>,
    to: Option<(u64, Side, u64)>,
    /// The spectrum that the result is multiplied by, instead of its factors.
    spectrum: Option<(u64, Side)>,
    /// Takes real parts times the scale, instead of where the lines go to.
    reals: Option<f64>,
}

impl<T: Real> LineFft<T> {
    /// For lines of n points, `count` of them in an array; `fused` for those of a convolution.
    pub fn new(gpu: &Gpu, n: usize, lie: Lie, count: usize, fused: bool) -> Result<Self> {
        let bytes = size_of::<T>();
        let what = "the roots of an FFT";
        let Some(layout) = Layout::new(n, lie, bytes, count, gpu.properties().shared) else {
            let passes = any_radices(n).into_iter().map(|radix| {
                let kernels = pass_kernels(radix, bytes);
                Ok((radix, gpu.function(&kernels, "fft_pass", 0)?))
            });
            let roots: Vec<_> = (0..n).map(|k| root(k, n)).collect();
            let lines = || gpu.array(n * Self::scratch_lines(n), "lines of an FFT");
            return Ok(LineFft(Way::Global {
                n,
                passes: passes.collect::<Result<_>>()?,
                roots: gpu.upload(&roots, what)?,
                scratch: Mutex::new([lines()?, lines()?]),
            }));
        };
        let kernels = layout.kernels(lie, bytes, fused);
        let shared = layout.shared(n, lie, bytes);
        let function = |name| gpu.function(&kernels, name, shared);
        let radices = &layout.radices;
        let mut roots: Vec<_> =
            twiddles(radices.iter().copied()).chain(twiddles(radices.iter().rev().copied())).collect();
        // Not empty where there is but one pass.
        roots.push(Complex::new(T::ONE, T::ZERO));
        Ok(LineFft(Way::Shared {
            up: function("fft_up")?,
            down: function("fft_down")?,
            fused: match (fused, lie) {
                (false, _) => None,
                (true, Lie::Rows) => Some(function("fft_kernel")?),
                (true, Lie::Columns) => Some(function("fft_convolve")?),
            },
            roots: gpu.upload(&roots, what)?,
            layout,
            shared,
        }))
    }

    fn scratch_lines(n: usize) -> usize {
        (SCRATCH / (n * size_of::<Complex<T>>())).max(1)
    }

    /// Bytes that it holds, at most.
    pub fn bytes(n: usize, lie: Lie) -> usize {
        let fits = Layout::new(n, lie, size_of::<T>(), 1 << 20, 48 << 10).is_some();
        let scratch = if fits { 0 } else { 2 * Self::scratch_lines(n) };
        (2 + scratch).saturating_mul(n).saturating_mul(size_of::<Complex<T>>())
    }

    // In all of these: the addresses are those of arrays on this GPU with all the lines, which the plan vouches for;
    // the parameters are those of the kernels of these names.

    /// From lines of the image, each point times its factor, to whole lines, with exp(-i). `factor` is 0 for ones.
    #[allow(clippy::too_many_arguments)]
    pub fn up(&self, gpu: &Gpu, lines: Lines, input: u64, from: Side, output: u64, to: Side, factor: u64) {
        let leg = Leg {
            inverse: false,
            from: Some((input, from, factor)),
            to: Some((output, to, 0)),
            spectrum: None,
            reals: None,
        };
        match &self.0 {
            Way::Shared { layout, shared, up, roots, .. } => {
                let (grid, block) = layout.launch(lines);
                let roots = roots.address();
                // SAFETY: see above.
                unsafe { launch!(gpu, up, grid, block, *shared; input, output, lines, from, to, factor, roots) };
            }
            Way::Global { .. } => self.by_passes(gpu, lines, &[leg]),
        }
    }

    /// From whole lines to lines of the image, each point times its factor, with exp(+i). `factor` is 0 for ones.
    #[allow(clippy::too_many_arguments)]
    pub fn down(&self, gpu: &Gpu, lines: Lines, input: u64, from: Side, output: u64, to: Side, factor: u64) {
        let leg = Leg {
            inverse: true,
            from: Some((input, from, 0)),
            to: Some((output, to, factor)),
            spectrum: None,
            reals: None,
        };
        match &self.0 {
            Way::Shared { layout, shared, down, roots, .. } => {
                let (grid, block) = layout.launch(lines);
                let roots = roots.address();
                // SAFETY: see above.
                unsafe { launch!(gpu, down, grid, block, *shared; input, output, lines, from, to, factor, roots) };
            }
            Way::Global { .. } => self.by_passes(gpu, lines, &[leg]),
        }
    }

    /// From rows of the image to the real parts of whole rows times `scale`, with exp(-i).
    #[allow(clippy::too_many_arguments)]
    pub fn real_parts(&self, gpu: &Gpu, lines: Lines, input: u64, from: Side, output: u64, to: Side, scale: f64) {
        let leg = Leg {
            inverse: false,
            from: Some((input, from, 0)),
            to: Some((output, to, 0)),
            spectrum: None,
            reals: Some(scale),
        };
        match &self.0 {
            Way::Shared { layout, shared, fused, roots, .. } => {
                let (grid, block) = layout.launch(lines);
                let fused = fused.as_ref().expect("planned for a convolution");
                let (scale, roots) = (T::of(scale), roots.address());
                // SAFETY: see above.
                unsafe { launch!(gpu, fused, grid, block, *shared; input, output, lines, from, to, scale, roots) };
            }
            Way::Global { .. } => self.by_passes(gpu, lines, &[leg]),
        }
    }

    /// Columns of the image, in place: to whole ones, times a real spectrum that lies as `whole` says, and back.
    pub fn convolve(&self, gpu: &Gpu, lines: Lines, columns: u64, image: Side, spectrum: u64, whole: Side) {
        match &self.0 {
            Way::Shared { layout, shared, fused, roots, .. } => {
                let (grid, block) = layout.launch(lines);
                let fused = fused.as_ref().expect("planned for a convolution");
                let roots = roots.address();
                // SAFETY: see above.
                unsafe {
                    launch!(gpu, fused, grid, block, *shared; columns, columns, lines, image, spectrum, whole, roots)
                };
            }
            Way::Global { .. } => {
                let (there, back) = (Some((columns, image, 0)), Some((columns, image, 0)));
                let there =
                    Leg { inverse: false, from: there, to: None, spectrum: Some((spectrum, whole)), reals: None };
                let back = Leg { inverse: true, from: None, to: back, spectrum: None, reals: None };
                self.by_passes(gpu, lines, &[there, back]);
            }
        }
    }

    /// Pass by pass, so many lines at a time as scratch has room for.
    fn by_passes(&self, gpu: &Gpu, lines: Lines, legs: &[Leg]) {
        const IN_SCRATCH: i32 = 1;
        const OUT_SCRATCH: i32 = 2;
        const INVERSE: i32 = 4;
        let Way::Global { n, passes, roots, scratch } = &self.0 else { return };
        let scratch = scratch.lock().unwrap_or_else(|e| e.into_inner());
        let (points, roots) = (*n as i32, roots.address());
        // What lies in scratch: line after line of those worked on, next to each other.
        let room = Self::scratch_lines(*n);
        let aside = Side::new([0; 3], room, *n, 0);
        // 32 neighbouring lines, 8 butterflies of each.
        let block = [32, 8, 1];
        for first in (0..lines.count).step_by(room) {
            let mut turn = 0;
            for leg in legs {
                let mut done = 1i32;
                for (i, (radix, function)) in passes.iter().enumerate() {
                    let from = leg.from.filter(|_| i == 0);
                    let end = i + 1 == passes.len();
                    let to = leg.to.filter(|_| end);
                    let flags = if from.is_none() { IN_SCRATCH } else { 0 }
                        + if to.is_none() { OUT_SCRATCH } else { 0 }
                        + if leg.inverse { INVERSE } else { 0 };
                    let (input, from, from_factor) = from.unwrap_or((scratch[1 - turn].address(), aside, 0));
                    let (mut output, to, to_factor) = to.unwrap_or((scratch[turn].address(), aside, 0));
                    let (spectrum, whole) = leg.spectrum.filter(|_| end).unwrap_or((0, aside));
                    let (mut reals, mut scale) = (0, T::ONE);
                    if let Some(of_reals) = leg.reals.filter(|_| end) {
                        (reals, output, scale) = (output, 0, T::of(of_reals));
                    }
                    let grid = [
                        room.min(lines.count as usize).div_ceil(32) as u32,
                        (n / radix).div_ceil(8).min(65535) as u32,
                        1,
                    ];
                    // SAFETY: see above; scratch has room for these lines, and is ours until all is queued.
                    unsafe {
                        launch!(
                            gpu, function, grid, block, 0;
                            input, output, lines, first, from, to, whole, from_factor, to_factor, spectrum, reals, scale,
                            points, done, flags, roots
                        )
                    };
                    done *= *radix as i32;
                    turn = 1 - turn;
                }
            }
        }
    }
}

impl Layout {
    /// Grid and block of a launch for these lines.
    fn launch(&self, lines: Lines) -> ([u32; 3], [u32; 3]) {
        ([lines.count.div_ceil(self.lines as u32).max(1), 1, 1], [self.threads as u32, 1, 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_fit_every_gpu() {
        let mut slow = 0;
        for n in (1..=700).map(|n| 2 * n).chain([2048, 4096, 8192]) {
            for bytes in [4, 8] {
                for lie in [Lie::Rows, Lie::Columns] {
                    for count in [1, 5, 300, 5000, 1 << 20] {
                        for shared in [48 << 10, 64 << 10, 99 << 10, 227 << 10] {
                            let Some(l) = Layout::new(n, lie, bytes, count, shared) else {
                                slow += 1;
                                assert!(n > 1000 || any_radices(n)[0] > 16, "{n} {lie:?} {bytes} {shared}");
                                continue;
                            };
                            let context = format!("{n} {lie:?} {bytes} {count} {l:?}");
                            assert_eq!(l.radices.iter().product::<usize>(), n, "{context}");
                            assert!(l.shared(n, lie, bytes) <= shared, "{context}");
                            assert!((1..=1024).contains(&l.threads) && (1..=16).contains(&l.blocks), "{context}");
                            // Multiprocessors take 1024 threads at least.
                            assert!(l.threads * l.blocks <= 1024, "{context}");
                            assert!(lie == Lie::Rows || l.threads.is_multiple_of(l.lines), "{context}");
                        }
                    }
                }
            }
        }
        assert!(slow > 0);
        let layout = |n, lie, count| Layout::new(n, lie, 4, count, 227 << 10).unwrap();
        let columns = |n| layout(n, Lie::Columns, 1 << 16);
        let is =
            |radices: &[usize], lines, threads, blocks| Layout { radices: radices.to_vec(), lines, threads, blocks };
        // Those that were measured to be fast.
        assert_eq!(columns(160), is(&[16, 10], 16, 256, 3));
        assert_eq!(columns(256), is(&[16, 16], 16, 256, 3));
        assert_eq!(columns(320), is(&[20, 16], 16, 320, 2));
        assert_eq!(columns(512), is(&[32, 16], 16, 256, 2));
        assert_eq!(columns(480), is(&[10, 8, 6], 8, 480, 2));
        assert_eq!(layout(160, Lie::Rows, 1 << 16), is(&[16, 10], 8, 128, 6));
        assert_eq!(layout(320, Lie::Rows, 1 << 16), is(&[20, 16], 8, 160, 4));
        assert_eq!(layout(512, Lie::Rows, 1 << 16), is(&[8, 8, 8], 2, 128, 8));
        assert_eq!(layout(320, Lie::Columns, 320), is(&[8, 8, 5], 4, 160, 6));
    }

    #[test]
    fn roots_are_exact_at_the_quarters_and_close_elsewhere() {
        for n in [1usize, 2, 3, 8, 12, 40, 97, 1000] {
            for k in 0..3 * n {
                let z = root::<f64>(k, n);
                let angle = -TAU * k as f64 / n as f64;
                assert!((z - Complex::new(angle.cos(), angle.sin())).norm() < 1e-14, "{k} / {n}");
                assert!((4 * k % n != 0) || z.re.abs() + z.im.abs() == 1.0, "{k} / {n}: {z}");
                assert!((z.norm() - 1.0).abs() < 3e-16);
            }
        }
    }

    #[test]
    fn twiddles_are_as_many_as_the_kernels_look_up() {
        for radices in [vec![16, 10], vec![8, 8, 5], vec![6], vec![5, 4, 3, 2]] {
            let n: usize = radices.iter().product();
            assert_eq!(twiddles::<f64>(radices.iter().copied()).count(), n - radices[0]);
        }
    }
}
