//! Scans on a GPU, and the segments of the lists of tiles: the kernels of kernels/sort.cu.

use super::compile::Kernels;
use super::gpu::{launch, Gpu};
use super::memory::DeviceArray;
use super::runtime::Function;
use crate::backend::{DevicePointer, DeviceSlice, Span};
use crate::base::error::{bail, checked_product, Result};

/// Threads per block, and elements per block of a scan.
const THREADS: usize = 256;
const SCANNED_TOGETHER: usize = 4096;
/// Classes of lengths of segments.
const CLASSES: usize = 11;

/// Name of the arrays in the message for lack of memory.
pub const WHAT: &str = "the sorted samples";

/// Block size of launches.
pub const BLOCK: [u32; 3] = [THREADS as u32, 1, 1];

/// Returns the number of blocks for n elements.
pub fn blocks(n: usize) -> [u32; 3] {
    [n.div_ceil(THREADS) as u32, 1, 1]
}

/// Returns the number of states for the scan of n elements, which must be 0 when it begins.
pub fn scan_states(n: usize) -> usize {
    n / SCANNED_TOGETHER + 1
}

const SORT: &str = concat!(
    include_str!("../../../kernels/segments.cuh"),
    include_str!("../../../kernels/sums.cuh"),
    include_str!("../../../kernels/sort.cu")
);

/// Returns the source with its usual options.
pub fn kernels() -> Kernels {
    // The kernels do not depend on the precision of the plan.
    Kernels::new("sort", SORT, 4, &[])
}

/// A grid cut into tiles, in the form of the kernels. In 2D the axes are x, an unused one, and y.
#[derive(Clone, Copy, PartialEq)]
#[repr(C)]
pub struct TileLayout {
    pub size: [u32; 3],
    pub tile: [u32; 3],
    pub tiles: [u32; 3],
}

impl TileLayout {
    /// Cuts a grid into tiles.
    pub fn new(size: [usize; 3], tile: [usize; 3]) -> Self {
        let tiles = [0, 1, 2].map(|a| size[a].div_ceil(tile[a]));
        let short = |of: [usize; 3]| of.map(|n| n as u32);
        TileLayout { size: short(size), tile: short(tile), tiles: short(tiles) }
    }

    /// Returns the number of tiles, for estimates: it cannot overflow.
    pub fn estimated_tiles(&self) -> f64 {
        self.tiles.iter().map(|&n| f64::from(n)).product()
    }

    /// Returns the number of tiles that the windows of evenly distributed samples touch in total.
    pub fn expected_pairs(&self, width: usize, samples: usize) -> f64 {
        let over = |a: usize| if self.size[a] == 1 { 0 } else { width - 1 };
        (0..3).map(|a| 1.0 + over(a) as f64 / f64::from(self.tile[a])).product::<f64>() * samples as f64
    }

    /// Returns the number of tiles; an error if tiles times `keys` exceeds the kernels' range.
    pub fn count(&self, keys: usize) -> Result<usize> {
        let tiles = checked_product(&self.tiles.map(|n| n as usize), "the tiles of the grid")?;
        if checked_product(&[tiles, keys], "the tiles of the grid")? >= u32::MAX as usize {
            bail!(SizeOverflow, "a grid of {:?} cells exceeds the limit of a GPU: use a smaller image", self.size);
        }
        Ok(tiles)
    }
}

/// Maximum length of segments: `usual`, and `brief` in tiles with more than `dense` samples.
#[derive(Clone, Copy)]
pub struct Length {
    pub usual: usize,
    pub dense: usize,
    pub brief: usize,
}

/// Segments of the tiles' lists, and the order of work, longest first. The arrays may be longer than the number of
/// segments.
pub struct TileSegments {
    pub segments: DeviceArray<u64>,
    pub schedule: DeviceArray<u32>,
}

impl TileSegments {
    /// Allocates segments with undefined contents.
    pub fn unwritten(gpu: &Gpu, room: usize) -> Result<Self> {
        Ok(TileSegments { segments: gpu.array::<u64>(3 * room, WHAT)?, schedule: gpu.array::<u32>(room, WHAT)? })
    }
}

/// A prefix sum, see `scan_task` in kernels/sort.cu.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ScanTask {
    from: DevicePointer<u32>,
    n: u64,
    dense: u64,
    stride: u32,
    usual: u32,
    brief: u32,
    least: u32,
    prefix: DevicePointer<u64>,
    states: DevicePointer<u64>,
    ticket: DevicePointer<u64>,
    total: DevicePointer<u64>,
}

impl ScanTask {
    const NONE: ScanTask = ScanTask {
        from: DevicePointer::NULL,
        n: 0,
        dense: 0,
        stride: 0,
        usual: 0,
        brief: 0,
        least: 0,
        prefix: DevicePointer::NULL,
        states: DevicePointer::NULL,
        ticket: DevicePointer::NULL,
        total: DevicePointer::NULL,
    };

    /// Creates the prefix sum of `n` counts: `n + 1` numbers in `prefix`, the last of which is also written to `total`.
    /// `zeros` is memory for [`scan_states`] and one more number, all 0.
    pub fn new(
        counts: &DeviceArray<u32>,
        n: usize,
        prefix: &DeviceArray<u64>,
        zeros: DeviceSlice<'_, u64>,
        total: DevicePointer<u64>,
    ) -> Self {
        let states = scan_states(n);
        assert!(counts.len() >= n && prefix.len() > n && zeros.len() > states);
        ScanTask {
            from: counts.pointer(),
            n: n as u64,
            prefix: prefix.pointer(),
            states: zeros.pointer(),
            ticket: zeros.pointer().offset(states),
            total,
            ..Self::NONE
        }
    }

    /// Scans the numbers of segments of lists whose lengths are the counts, instead of the counts.
    pub fn of_segments(self, length: Length, least: usize) -> Self {
        let Length { usual, dense, brief } = length;
        ScanTask { usual: usual as u32, brief: brief as u32, dense: dense as u64, least: least as u32, ..self }
    }

    /// Scans differences of numbers that are `stride` elements apart, instead of the numbers. There are `n` of them.
    pub fn of_differences(self, stride: usize, n: usize) -> Self {
        ScanTask { stride: stride as u32, n: n as u64, ..self }
    }
}

/// The order of work of a list of segments, see `schedule_task` in kernels/sort.cu.
#[derive(Clone, Copy)]
#[repr(C)]
struct ScheduleTask {
    segments: DevicePointer<u64>,
    count: DevicePointer<u64>,
    schedule: DevicePointer<u32>,
    classes: DevicePointer<u64>,
    length: u32,
}

/// Number of zeros that [`Sort::schedule`] needs.
pub const SCHEDULE_ZEROS: usize = 2 * CLASSES;

/// The kernels on one GPU.
pub struct Sort<'a> {
    gpu: &'a Gpu,
    scan: Function,
    fill_starts: Function,
    cut: Function,
    count_classes: Function,
    fill_schedule: Function,
}

impl<'a> Sort<'a> {
    /// Loads the kernels.
    pub fn new(gpu: &'a Gpu) -> Result<Self> {
        let kernels = kernels();
        let function = |name| gpu.function(&kernels, name, 0);
        Ok(Sort {
            gpu,
            scan: function("scan_counts")?,
            fill_starts: function("fill_starts")?,
            cut: function("cut_tiles")?,
            count_classes: function("count_classes")?,
            fill_schedule: function("fill_schedule")?,
        })
    }

    /// Computes up to three prefix sums.
    pub fn scan(&self, tasks: &[ScanTask]) {
        let mut all = [ScanTask::NONE; 3];
        all[..tasks.len()].copy_from_slice(tasks);
        let blocks = tasks.iter().map(|task| scan_states(task.n as usize)).max().unwrap_or(1);
        let grid = [blocks as u32, tasks.len() as u32, 1];
        // SAFETY: the kernel's parameter is this; `ScanTask::new` checks the lengths of the arrays.
        unsafe { launch!(self.gpu, &self.scan, grid, BLOCK, 0; all) };
    }

    /// Gives bins without samples the starts of the next ones; the last element is the number of samples `n`. `zeros`
    /// as for a scan of the bins.
    pub fn fill_starts(&self, starts: &DeviceArray<u32>, n: usize, zeros: DeviceSlice<'_, u64>) {
        let (bins, states) = (starts.len() - 1, scan_states(starts.len() - 1));
        assert!(zeros.len() > states);
        let (at, ticket) = (zeros.pointer(), zeros.pointer().offset(states));
        // SAFETY: the kernel's parameters are these. It reads and writes bins + 1 elements.
        unsafe {
            launch!(self.gpu, &self.fill_starts, [states as u32, 1, 1], BLOCK, 0;
                starts.pointer(), bins as u64, n as u64, at, ticket)
        };
    }

    /// Fills the segments of tiles with `span` bins each. `firsts` are the first segments of tiles.
    pub fn cut(
        &self,
        starts: &DeviceArray<u32>,
        span: usize,
        firsts: &DeviceArray<u64>,
        room: usize,
        segments: &TileSegments,
    ) {
        let tiles = firsts.len() - 1;
        assert!(starts.len() == tiles * span + 1 && segments.segments.len() == 3 * room);
        let (span, count) = (span as u32, tiles as u32);
        // SAFETY: the kernel's parameters are these; the starts of all tiles exist, and there is space for the segments.
        unsafe {
            launch!(self.gpu, &self.cut, blocks(room), BLOCK, 0;
                starts.pointer(), span, firsts.pointer(), count, room as u64, segments.segments.pointer())
        };
    }

    /// Fills the schedules of two lists of segments, whose numbers are in `counts`. Segments have this usual length.
    /// `zeros` are [`SCHEDULE_ZEROS`] zeros.
    pub fn schedule(
        &self,
        lists: [&TileSegments; 2],
        counts: [DevicePointer<u64>; 2],
        lengths: [usize; 2],
        zeros: DeviceSlice<'_, u64>,
    ) {
        assert!(zeros.len() >= SCHEDULE_ZEROS);
        let tasks = [0, 1].map(|i| ScheduleTask {
            segments: lists[i].segments.pointer(),
            count: counts[i],
            schedule: lists[i].schedule.pointer(),
            // Counts and numbers of 32 bits for each class.
            classes: zeros.pointer().offset(i * CLASSES),
            length: lengths[i] as u32,
        });
        let room = lists.iter().map(|list| list.schedule.len()).max().unwrap_or(0);
        let [over_segments, ..] = blocks(room);
        let grid = [over_segments, 2, 1];
        // SAFETY: the kernels' parameter is this; there are at most as many segments as elements of the schedule.
        unsafe {
            launch!(self.gpu, &self.count_classes, grid, BLOCK, 0; tasks);
            launch!(self.gpu, &self.fill_schedule, grid, BLOCK, 0; tasks);
        }
    }
}
