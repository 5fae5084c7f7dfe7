//! Layouts of the kernels that transform lines (kernels/fft.cu): their compile-time parameters.

use crate::backend::cuda::compile::Kernels;

/// Number of blocks that fill a GPU; if there are fewer, blocks are made smaller. A constant, so that kernels are the
/// same for all GPUs of an architecture.
const MANY_BLOCKS: usize = 128;
/// Maximum number of threads per block.
const MANY_THREADS: usize = 512;
/// Maximum number of points of long columns of which a block has 64 bytes of neighbours. Of longer ones it has 32.
const LONG_COLUMN: usize = 2100;
/// Registers of a multiprocessor, for numbers of 32 bits.
const REGISTERS: usize = 1 << 16;

/// Arrangement of the lines of an array in memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arrangement {
    /// Points of a line are neighbours.
    Rows,
    /// Lines are neighbours.
    Columns,
}

/// The points of the image on a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ImagePoints {
    pub count: usize,
    /// Index of the image's point that is point 0 of the line.
    pub origin: usize,
}

/// A step of a transform or a convolution. The kernels of each are a program of their own, so that a plan compiles
/// those that it needs in parallel. The numbers are those of kernels/fft.cu.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// Lines of the image to whole lines, and back.
    Transforms = 1,
    /// Whole columns in place.
    WholeColumns = 2,
    /// Rows of the image to the real parts of whole rows.
    RealParts = 3,
    /// Columns of the image to whole columns, times a spectrum, and back.
    Convolution = 4,
    /// Lines of the image, times coil maps, to whole lines.
    Maps = 5,
    /// Whole columns to columns of the image, times conjugate coil maps.
    ConjugateMaps = 6,
}

/// Lines of n points that are transformed along one axis.
#[derive(Clone, Copy)]
pub struct AxisLines {
    pub n: usize,
    /// The points of a side that is not whole.
    pub image: ImagePoints,
    pub arrangement: Arrangement,
    /// Number of lines of an array.
    pub count: usize,
    /// The steps that are done with them.
    pub steps: &'static [Step],
}

impl AxisLines {
    /// Returns the layout of the kernels for real numbers of `bytes` bytes, if lines fit in a block's `shared` bytes of
    /// shared memory.
    pub fn layout(&self, bytes: usize, shared: usize) -> Option<LineLayout> {
        LineLayout::new(self.n, self.arrangement, bytes, self.count, shared)
    }

    /// Returns the kernels that [`super::lines::LineFft::new`] uses.
    pub fn kernels(&self, bytes: usize, shared: usize) -> Vec<Kernels> {
        match self.layout(bytes, shared) {
            Some(layout) => self.steps.iter().map(|&step| layout.kernels(self, bytes, step)).collect(),
            None => any_radices(self.n).into_iter().map(|radix| pass_kernels(radix, bytes)).collect(),
        }
    }
}

/// Compile-time parameters of the kernels for lines in shared memory.
#[derive(Debug, Clone, PartialEq)]
pub struct LineLayout {
    /// Radices of the passes.
    pub radices: Vec<usize>,
    /// Lines per block.
    lines: usize,
    threads: usize,
    /// Blocks per multiprocessor.
    blocks: usize,
}

/// Returns the smallest number of radices of at most `most` with the product n, and of those the ones with the smallest
/// maximum, in descending order.
fn radices(n: usize, most: usize) -> Option<Vec<usize>> {
    (1..=n.ilog2().max(1)).find_map(|count| radices_of_count(n, count, most))
}

/// Returns `count` radices as [`radices`], if fewer do not suffice.
fn radices_of_count(n: usize, count: u32, most: usize) -> Option<Vec<usize>> {
    if count == 1 {
        return (n <= most).then(|| vec![n]);
    }
    // The largest radix is at least the root of n.
    let is_largest = |radix: &usize| radix.checked_pow(count).is_none_or(|power| power >= n);
    let mut divisors = (2..=most.min(n)).filter(|radix| n.is_multiple_of(*radix)).filter(is_largest);
    divisors.find_map(|radix| Some([&[radix], &radices_of_count(n / radix, count - 1, radix)?[..]].concat()))
}

/// Returns radices for any n. Only products of few small primes are fast.
pub fn any_radices(n: usize) -> Vec<usize> {
    // A larger radix requires more registers, which is worth one pass of four.
    if let Some(found) = radices(n, 16).filter(|found| found.len() < 4) {
        return found;
    }
    let mut most = 20;
    loop {
        if let Some(found) = radices(n, most) {
            return found;
        }
        most += 1;
    }
}

/// Returns the number of points of one of a block's threads in the pass in which it has the most.
fn points_of_thread(radices: &[usize], n: usize, lines: usize, threads: usize) -> usize {
    radices.iter().map(|radix| (n / radix * lines).div_ceil(threads) * radix).max().unwrap_or(1)
}

/// Returns the number of threads with which each has the fewest points. All of them have the same number of butterflies
/// in one pass.
fn threads_of_few_points(radices: &[usize], n: usize, lines: usize) -> usize {
    let parts = |radix: &usize| {
        let across = n / radix;
        (1..=4).filter(move |&part| across.is_multiple_of(part)).map(move |part| across / part * lines)
    };
    let all = radices.iter().flat_map(parts).filter(|&threads| threads <= MANY_THREADS);
    all.min_by_key(|&threads| (points_of_thread(radices, n, lines, threads), threads)).unwrap_or(MANY_THREADS)
}

impl LineLayout {
    /// Returns a fast layout for `count` lines of n points of real numbers of `bytes` bytes, if a block has `shared`
    /// bytes of shared memory. Returns `None` if not one line fits. The numbers are from measurements on an H200.
    pub fn new(n: usize, arrangement: Arrangement, bytes: usize, count: usize, shared: usize) -> Option<LineLayout> {
        let few = count < 8 * MANY_BLOCKS;
        let single = bytes == 4;
        // Two passes if registers hold such radices, and enough threads remain to hide memory latency.
        let most = match arrangement {
            _ if !single || few => 16,
            Arrangement::Rows if n == 24 * 16 => 24,
            Arrangement::Columns if n.is_multiple_of(16) && n <= 32 * 16 => 32,
            _ => 20,
        };
        let two = radices(n, most).filter(|r| matches!(r[..], [_] | [..=20, _] | [_, 16]));
        let radices = two.unwrap_or_else(|| any_radices(n));
        // Butterflies per line in the pass that determines the number of threads.
        let across = match radices[..] {
            [radix] => n / radix,
            [radix, _] if radix > 20 => n / radix,
            [_, radix, ..] => n / radix,
            [] => n,
        };
        let mut lines = match arrangement {
            Arrangement::Columns => {
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
            Arrangement::Rows => 1 << (160 / across.min(160)).min(64).ilog2(),
        };
        // Long lines: columns of which fewer than four would fit, and rows of three or more passes with radices above
        // 16. A thread may have several butterflies per pass, and has as few points as possible.
        let is_long = radices.len() > 2
            && match arrangement {
                Arrangement::Columns => lines < 4,
                Arrangement::Rows => radices[0] > 16,
            };
        if is_long && arrangement == Arrangement::Columns {
            lines = if n <= LONG_COLUMN { 32 } else { 16 } / bytes;
        }
        let threads = |lines: usize| match is_long {
            true => threads_of_few_points(&radices, n, lines),
            false => (lines * across).min(MANY_THREADS),
        };
        // Fewer lines per block rather than few blocks, but at least 32 bytes of neighbours or 64 threads.
        let least = if arrangement == Arrangement::Columns { 16 / bytes } else { 1 };
        while count.div_ceil(lines) < MANY_BLOCKS && lines > least && threads(lines) >= 128 {
            lines /= 2;
        }
        let layout = |lines: usize| {
            let threads = threads(lines);
            // Blocks for whose threads a multiprocessor has registers.
            let blocks = if is_long {
                let registers = (2 * points_of_thread(&radices, n, lines, threads) + 40) * bytes / 4;
                (REGISTERS / (threads * registers)).min(1024 / threads)
            } else {
                let resident = match radices[0] {
                    ..=10 => [1024, 640],
                    11..=16 => [768, 512],
                    17..=20 => [640, 384],
                    _ => [512, 256],
                };
                resident[usize::from(!single)] / threads
            };
            LineLayout { radices: radices.clone(), lines, threads, blocks: blocks.clamp(1, 16) }
        };
        while lines > 1 && layout(lines).shared(n, arrangement, bytes) > shared {
            lines /= 2;
        }
        // More points per thread would not fit in registers.
        Some(layout(lines)).filter(|l| l.shared(n, arrangement, bytes) <= shared && lines * n <= 64 * l.threads)
    }

    /// Returns the shared memory in bytes, as the kernels use it in either order of the passes.
    pub fn shared(&self, n: usize, arrangement: Arrangement, bytes: usize) -> usize {
        let [first, .., last] = self.radices[..] else { return 0 };
        let pitch = |first: usize| {
            let padded = first % 2 == 0 && (arrangement == Arrangement::Rows || self.lines * 2 * bytes < 128);
            if padded {
                n + n / first
            } else {
                n
            }
        };
        self.lines * pitch(first).max(pitch(last)) * 2 * bytes
    }

    /// Returns the kernels of a step.
    pub fn kernels(&self, of: &AxisLines, bytes: usize, step: Step) -> Kernels {
        let numbers = [
            ("LINES", self.lines),
            ("THREADS", self.threads),
            ("BLOCKS", self.blocks),
            ("ROWS", usize::from(of.arrangement == Arrangement::Rows)),
            ("IMAGE", of.image.count),
            ("ORIGIN", of.image.origin),
            ("PROGRAM", step as usize),
        ];
        let radices: Vec<String> = self.radices.iter().map(|r| r.to_string()).collect();
        Kernels::new("fft", SOURCE, bytes, &numbers).with("RADICES", radices.join(","))
    }
}

const SOURCE: &str = include_str!("../../../../kernels/fft.cu");

/// Returns the kernels for one pass through global memory.
pub fn pass_kernels(radix: usize, bytes: usize) -> Kernels {
    Kernels::new("fft_pass", SOURCE, bytes, &[("RADIX", radix)])
}

/// Returns the kernels that place a convolution kernel on the doubled grid.
pub fn place_kernels(bytes: usize) -> Kernels {
    Kernels::new("fft_place", SOURCE, bytes, &[])
}

impl LineLayout {
    /// Returns grid and block of a launch for `count` lines.
    pub fn launch(&self, count: u32) -> ([u32; 3], [u32; 3]) {
        ([count.div_ceil(self.lines as u32).max(1), 1, 1], [self.threads as u32, 1, 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_fit_every_gpu() {
        let mut slow = 0;
        for n in (1..=700).map(|n| 2 * n).chain([1600, 1944, 2016, 2048, 2160, 2800, 3000, 3600, 4050, 4096, 8192]) {
            for bytes in [4, 8] {
                for arrangement in [Arrangement::Rows, Arrangement::Columns] {
                    for count in [1, 5, 300, 5000, 1 << 20] {
                        for shared in [48 << 10, 64 << 10, 99 << 10, 227 << 10] {
                            let Some(l) = LineLayout::new(n, arrangement, bytes, count, shared) else {
                                slow += 1;
                                assert!(n > 1000 || any_radices(n)[0] > 16, "{n} {arrangement:?} {bytes} {shared}");
                                continue;
                            };
                            let context = format!("{n} {arrangement:?} {bytes} {count} {l:?}");
                            assert_eq!(l.radices.iter().product::<usize>(), n, "{context}");
                            assert!(l.shared(n, arrangement, bytes) <= shared, "{context}");
                            assert!((1..=1024).contains(&l.threads) && (1..=16).contains(&l.blocks), "{context}");
                            // Multiprocessors support at least 1024 threads.
                            assert!(l.threads * l.blocks <= 1024, "{context}");
                            assert!(arrangement == Arrangement::Rows || l.threads.is_multiple_of(l.lines), "{context}");
                        }
                    }
                }
            }
        }
        assert!(slow > 0);
        let layout = |n, arrangement, count| LineLayout::new(n, arrangement, 4, count, 227 << 10).unwrap();
        let columns = |n| layout(n, Arrangement::Columns, 1 << 16);
        let is = |radices: &[usize], lines, threads, blocks| LineLayout {
            radices: radices.to_vec(),
            lines,
            threads,
            blocks,
        };
        // Layouts that measured fast.
        assert_eq!(columns(160), is(&[16, 10], 16, 256, 3));
        assert_eq!(columns(256), is(&[16, 16], 16, 256, 3));
        assert_eq!(columns(320), is(&[20, 16], 16, 320, 2));
        assert_eq!(columns(512), is(&[32, 16], 16, 256, 2));
        assert_eq!(columns(480), is(&[10, 8, 6], 8, 480, 2));
        assert_eq!(layout(160, Arrangement::Rows, 1 << 16), is(&[16, 10], 8, 128, 6));
        assert_eq!(layout(320, Arrangement::Rows, 1 << 16), is(&[20, 16], 8, 160, 4));
        assert_eq!(layout(512, Arrangement::Rows, 1 << 16), is(&[8, 8, 8], 2, 128, 8));
        assert_eq!(columns(1400), is(&[14, 10, 10], 8, 400, 1));
        assert_eq!(columns(1944), is(&[18, 12, 9], 8, 432, 1));
        assert_eq!(columns(3000), is(&[20, 15, 10], 4, 400, 1));
        assert_eq!(layout(3000, Arrangement::Rows, 1 << 16), is(&[20, 15, 10], 1, 200, 4));
        assert_eq!(layout(320, Arrangement::Columns, 320), is(&[8, 8, 5], 4, 160, 6));
    }
}
