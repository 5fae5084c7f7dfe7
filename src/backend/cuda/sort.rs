//! Sorting on a GPU, and cutting what was sorted by tiles into segments of work: the kernels of kernels/sort.cu.

use super::compile::Kernels;
use super::gpu::{launch, Gpu};
use super::memory::DeviceArray;
use super::runtime::Function;
use crate::backend::{DevicePointer, DeviceSlice, Span};
use crate::base::error::Result;

/// Threads of a block, and keys of a block that sorts.
const THREADS: usize = 256;
const SORTED_TOGETHER: usize = 4096;
/// The segments of a tile that one warp sums, at most.
const FEW_SEGMENTS: u32 = 8;

/// For the message when there is no memory.
pub const WHAT: &str = "the sorted samples";

/// Blocks of threads, as launches take them.
pub const BLOCK: [u32; 3] = [THREADS as u32, 1, 1];

/// As many such blocks as n elements need.
pub fn blocks(n: usize) -> [u32; 3] {
    [n.div_ceil(THREADS) as u32, 1, 1]
}

/// The source with its usual options.
pub fn kernels() -> Kernels {
    // No number in it has the precision of the plan.
    Kernels::new("sort", include_str!("../../../kernels/sort.cu"), 4, &[])
}

/// How long segments are, at most: `usual`, and `brief` in tiles of more than `dense` samples.
#[derive(Clone, Copy)]
pub struct Length {
    pub usual: usize,
    pub dense: usize,
    pub brief: usize,
}

/// The kernels on one GPU.
pub struct Sort<'a> {
    gpu: &'a Gpu,
    count: Function,
    scatter: Function,
    sums: Function,
    top: Function,
    apply: Function,
    ranges: Function,
    cut: Function,
    total: DeviceArray<u64>,
}

/// Runs of the tiles' lists, and the order in which they are worked on, the longest first. There is room for more than
/// there are.
pub struct Segments {
    pub segments: DeviceArray<u64>,
    pub schedule: DeviceArray<u32>,
    /// Before which segment each tile's begin; how many there are comes last.
    firsts: DeviceArray<u64>,
}

impl Segments {
    /// How many there are.
    pub fn count(&self) -> DeviceSlice<'_, u64> {
        let tiles = self.firsts.len() - 1;
        self.firsts.view().part(tiles..tiles + 1)
    }
}

/// What is known only of segments that spread.
pub struct Cuts {
    /// Where the planes of each segment begin, and after them all how many there are.
    pub slots: DeviceArray<u64>,
    /// Tiles that have several segments: few of them from the front, many from the end.
    pub tiles: DeviceArray<u64>,
    /// How many tiles have few and many.
    pub counts: DeviceArray<u64>,
}

impl Cuts {
    /// How many planes there are.
    pub fn planes(&self) -> DeviceSlice<'_, u64> {
        let last = self.slots.len() - 1;
        self.slots.view().part(last..last + 1)
    }
}

impl<'a> Sort<'a> {
    /// Loads them.
    pub fn new(gpu: &'a Gpu) -> Result<Self> {
        let kernels = kernels();
        let function = |name| gpu.function(&kernels, name, 0);
        Ok(Sort {
            gpu,
            count: function("sort_count")?,
            scatter: function("sort_scatter")?,
            sums: function("scan_sums")?,
            top: function("scan_top")?,
            apply: function("scan_apply")?,
            ranges: function("tile_ranges")?,
            cut: function("cut_tiles")?,
            total: gpu.array(1, WHAT)?,
        })
    }

    /// The sums of all counts before each, and of all of them.
    pub fn scan(&self, counts: DeviceSlice<'_, u32>) -> Result<DeviceArray<u64>> {
        let blocks = (counts.len() + 1).div_ceil(SORTED_TOGETHER);
        let (sums, prefix) = (self.gpu.array::<u64>(blocks, WHAT)?, self.gpu.array::<u64>(counts.len() + 1, WHAT)?);
        let (counts, n, at, total) = (counts.pointer(), counts.len() as u64, sums.pointer(), self.total.pointer());
        let grid = [blocks as u32, 1, 1];
        // SAFETY: the kernels' parameters are these; there is a sum for each block, and a prefix more than counts.
        unsafe {
            launch!(self.gpu, &self.sums, grid, BLOCK, 0; counts, n, at);
            launch!(self.gpu, &self.top, [1; 3], BLOCK, 0; at, blocks as u32, total);
            launch!(self.gpu, &self.apply, grid, BLOCK, 0; counts, n, at, prefix.pointer());
        }
        Ok(prefix)
    }

    /// Sorts pairs by keys of at most `most`, stably; without values a pair's value is its place.
    pub fn sort(
        &self,
        mut keys: DeviceArray<u32>,
        mut values: Option<DeviceArray<u32>>,
        most: usize,
    ) -> Result<(DeviceArray<u32>, DeviceArray<u32>)> {
        let n = keys.len();
        assert!(values.as_ref().is_none_or(|v| v.len() == n));
        let blocks = n.div_ceil(SORTED_TOGETHER);
        let counts = self.gpu.array::<u32>(256 * blocks, WHAT)?;
        let grid = [blocks as u32, 1, 1];
        let mut shift = 0u32;
        loop {
            let (keys_out, values_out) = (self.gpu.array::<u32>(n, WHAT)?, self.gpu.array::<u32>(n, WHAT)?);
            let (from, count) = (keys.pointer(), n as u64);
            // SAFETY: the kernel's parameters are these; it reads n keys and writes 256 counts a block.
            unsafe { launch!(self.gpu, &self.count, grid, BLOCK, 0; from, count, shift, counts.pointer()) };
            let at = self.scan(counts.view())?;
            let from_values = values.as_ref().map_or(DevicePointer::NULL, DeviceArray::pointer);
            let (to, to_values) = (keys_out.pointer(), values_out.pointer());
            // SAFETY: the kernel's parameters are these; it reads and writes n pairs.
            unsafe {
                launch!(self.gpu, &self.scatter, grid, BLOCK, 0;
                    from, from_values, count, shift, at.pointer(), to, to_values)
            };
            shift += 8;
            if shift >= 32 || most >> shift == 0 {
                return Ok((keys_out, values_out));
            }
            (keys, values) = (keys_out, Some(values_out));
        }
    }

    /// Cuts the lists of tiles, of `span` keys each, into segments of at most this length; a tile without samples has
    /// `least` segments. `planes` are those of a tile and of the window where segments of a tile that has several get
    /// planes.
    pub fn cut(
        &self,
        keys: DeviceSlice<'_, u32>,
        tiles: usize,
        span: usize,
        length: Length,
        least: usize,
        planes: Option<(usize, usize)>,
    ) -> Result<(Segments, Cuts)> {
        let (gpu, n) = (self.gpu, keys.len());
        let starts = gpu.array::<u64>(tiles + 1, WHAT)?;
        let pieces = gpu.array::<u32>(tiles, WHAT)?;
        let (tiles_arg, span_arg, length_arg) = (tiles as u32, span as u32, length.usual as u32);
        let (dense, brief) = (length.dense as u64, length.brief as u32);
        let (keys, starts_at) = (keys.pointer(), starts.pointer());
        // SAFETY: the kernel's parameters are these; it reads n keys and writes a start and a number a tile.
        unsafe {
            launch!(gpu, &self.ranges, blocks(tiles), BLOCK, 0;
                keys, n as u64, tiles_arg, span_arg, length_arg, dense, brief, least as u32, starts_at,
                pieces.pointer())
        };
        let firsts = self.scan(pieces.view())?;
        let room = if least > 0 { tiles } else { tiles.min(n) } + n / length.brief;
        let with_planes = |n: usize| if planes.is_some() { n } else { 0 };
        let segments = gpu.array::<u64>(4 * room, WHAT)?;
        let lightness = gpu.array::<u32>(room, WHAT)?;
        let segment_planes = gpu.array::<u32>(with_planes(room), WHAT)?;
        let cut_tiles = gpu.array::<u64>(with_planes(2 * tiles), WHAT)?;
        let counts = gpu.zeros::<u64>(2, WHAT)?;
        let (depth, width) = planes.unwrap_or((0, 0));
        // SAFETY: the kernel's parameters are these; there is room for as many segments as n keys can be cut into.
        unsafe {
            launch!(gpu, &self.cut, blocks(room), BLOCK, 0;
                keys, starts_at, firsts.pointer(), tiles_arg, room as u64, span_arg, depth as u32, width as u32,
                length_arg, FEW_SEGMENTS, segments.pointer(), lightness.pointer(), segment_planes.pointer(),
                cut_tiles.pointer(), counts.pointer())
        };
        let slots = self.scan(segment_planes.view())?;
        // The kernel tells eleven classes apart.
        let (_, schedule) = self.sort(lightness, None, 10)?;
        Ok((Segments { segments, schedule, firsts }, Cuts { slots, tiles: cut_tiles, counts }))
    }
}
