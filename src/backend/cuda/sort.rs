//! Sorting on a GPU, and cutting the sorted lists of tiles into segments: the kernels of kernels/sort.cu.

use super::compile::Kernels;
use super::gpu::{launch, Gpu};
use super::memory::DeviceArray;
use super::runtime::Function;
use crate::backend::{DevicePointer, DeviceSlice, Span};
use crate::base::error::Result;

/// Threads per block, and keys per block in a sort.
const THREADS: usize = 256;
const SORTED_TOGETHER: usize = 4096;
/// Maximum number of segments of a tile that one warp sums. With more, the warps of a block share a plane; for fewer
/// segments a block of many warps takes longer to start than to sum.
const FEW_SEGMENTS: u32 = 32;

/// Name of the arrays in the message for lack of memory.
pub const WHAT: &str = "the sorted samples";

/// Block size of launches.
pub const BLOCK: [u32; 3] = [THREADS as u32, 1, 1];

/// Returns the number of blocks for n elements.
pub fn blocks(n: usize) -> [u32; 3] {
    [n.div_ceil(THREADS) as u32, 1, 1]
}

const SORT: &str = concat!(include_str!("../../../kernels/segments.cuh"), include_str!("../../../kernels/sort.cu"));

/// Returns the source with its usual options.
pub fn kernels() -> Kernels {
    // The kernels do not depend on the precision of the plan.
    Kernels::new("sort", SORT, 4, &[])
}

/// Maximum length of segments: `usual`, and `brief` in tiles with more than `dense` samples.
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

/// Segments of the tiles' lists, and the order of work, longest first. The arrays may be longer than the number of
/// segments.
pub struct TileSegments {
    pub segments: DeviceArray<u64>,
    pub schedule: DeviceArray<u32>,
    /// First segment of each tile; the last entry is the number of segments.
    firsts: DeviceArray<u64>,
}

impl TileSegments {
    /// Returns the number of segments.
    pub fn count(&self) -> DeviceSlice<'_, u64> {
        let tiles = self.firsts.len() - 1;
        self.firsts.view().part(tiles..tiles + 1)
    }
}

/// Additional data of segments for spreading.
pub struct SegmentedTiles {
    /// First plane of each segment; the last entry is the number of planes.
    pub slots: DeviceArray<u64>,
    /// Tiles with several segments: those with few from the front, those with many from the end.
    pub tiles: DeviceArray<u64>,
    /// Numbers of tiles with few and with many segments.
    pub counts: DeviceArray<u64>,
}

impl SegmentedTiles {
    /// Returns the number of planes.
    pub fn planes(&self) -> DeviceSlice<'_, u64> {
        let last = self.slots.len() - 1;
        self.slots.view().part(last..last + 1)
    }
}

impl<'a> Sort<'a> {
    /// Loads the kernels.
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

    /// Returns the prefix sums of the counts. The last entry is their total.
    pub fn scan(&self, counts: DeviceSlice<'_, u32>) -> Result<DeviceArray<u64>> {
        let blocks = (counts.len() + 1).div_ceil(SORTED_TOGETHER);
        let (sums, prefix) = (self.gpu.array::<u64>(blocks, WHAT)?, self.gpu.array::<u64>(counts.len() + 1, WHAT)?);
        let (counts, n, at, total) = (counts.pointer(), counts.len() as u64, sums.pointer(), self.total.pointer());
        let grid = [blocks as u32, 1, 1];
        // SAFETY: the kernels' parameters are these. There is one sum per block, and one more prefix sum than counts.
        unsafe {
            launch!(self.gpu, &self.sums, grid, BLOCK, 0; counts, n, at);
            launch!(self.gpu, &self.top, [1; 3], BLOCK, 0; at, blocks as u32, total);
            launch!(self.gpu, &self.apply, grid, BLOCK, 0; counts, n, at, prefix.pointer());
        }
        Ok(prefix)
    }

    /// Sorts pairs stably by keys of at most `most`. Without values, the value of a pair is its index.
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
            // SAFETY: the kernel's parameters are these. It reads n keys and writes 256 counts per block.
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

    /// Cuts the lists of tiles, each with `span` keys, into segments of at most this length. A tile without samples has
    /// `least` segments. `planes` are those of a tile and of the window, if the segments of tiles with several segments
    /// have planes.
    pub fn cut(
        &self,
        keys: DeviceSlice<'_, u32>,
        tiles: usize,
        span: usize,
        length: Length,
        least: usize,
        planes: Option<(usize, usize)>,
    ) -> Result<(TileSegments, SegmentedTiles)> {
        let (gpu, n) = (self.gpu, keys.len());
        let starts = gpu.array::<u64>(tiles + 1, WHAT)?;
        let pieces = gpu.array::<u32>(tiles, WHAT)?;
        let (tiles_arg, span_arg, length_arg) = (tiles as u32, span as u32, length.usual as u32);
        let (dense, brief) = (length.dense as u64, length.brief as u32);
        let (keys, starts_at) = (keys.pointer(), starts.pointer());
        // SAFETY: the kernel's parameters are these. It reads n keys and writes one start and one number per tile.
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
        // SAFETY: the kernel's parameters are these. There is space for the maximum number of segments of n keys.
        unsafe {
            launch!(gpu, &self.cut, blocks(room), BLOCK, 0;
                keys, starts_at, firsts.pointer(), tiles_arg, room as u64, span_arg, depth as u32, width as u32,
                length_arg, FEW_SEGMENTS, segments.pointer(), lightness.pointer(), segment_planes.pointer(),
                cut_tiles.pointer(), counts.pointer())
        };
        let slots = self.scan(segment_planes.view())?;
        // The kernel distinguishes eleven classes.
        let (_, schedule) = self.sort(lightness, None, 10)?;
        Ok((TileSegments { segments, schedule, firsts }, SegmentedTiles { slots, tiles: cut_tiles, counts }))
    }
}
