//! Samples of a plan on a GPU, sorted by bins of the grid, and the lists of tiles that they touch: the kernels of
//! kernels/samples.cu, which describes the method.

use super::bins::{tiles_touched, BinLayout, Bins, GatherSegments};
use super::gpu::{launch, Gpu};
use super::memory::DeviceArray;
use super::runtime::Function;
use super::sample_sort_config::{
    bucket_bins, passes, Divisor, SortConfig, SortProgram, DIGITS, DIGIT_BITS, LOOK_BACK, MAX_PASSES, ROUNDS, THREADS,
};
use super::sort::{blocks, scan_states, Length, ScanTask, Sort, TileLayout, TileSegments, BLOCK, SCHEDULE_ZEROS, WHAT};
use crate::backend::{DevicePointer, DeviceSlice, Span};
use crate::base::error::{checked_product, Result};
use crate::base::real::Real;
use std::ops::Range;

/// Number of samples that are drawn to estimate the longest bucket, and how many of these it may have. A block sorts a
/// bucket with 1 of 2048 samples in half of the time that all blocks need together.
const DRAWN: usize = 1 << 18;
const MOST_DRAWN: u32 = (DRAWN / 2048) as u32;
/// Maximum number of blocks of `count_digits` for each multiprocessor. The last block adds the counts of all of them.
const COUNTING_BLOCKS: usize = 3;
/// Bytes of a list that may be allocated for the largest possible number of pairs, so that the host need not wait.
const MAX_BOUND_BYTES: usize = 16 << 20;
/// Maximum number of segments of a tile that one warp sums, in kernels/spreading.cu: at most 32, since each lane of the
/// warp has one. With more, the warps of a block share a plane. For fewer segments a block of many warps takes longer
/// to start than to sum.
const FEW_SEGMENTS: u32 = 32;

/// Records of samples, and their indices if points are in fixed point.
struct Records<T> {
    records: DeviceArray<T>,
    indices: Option<DeviceArray<u32>>,
}

impl<T: Real> Records<T> {
    /// Allocates records of `n` samples, with at least `room` bytes without their indices.
    fn new(gpu: &Gpu, config: &SortConfig, n: usize, room: usize) -> Result<Self> {
        let reals = (config.point_reals() * n).max(room / size_of::<T>());
        let indices = config.fixed.then(|| gpu.array::<u32>(n, WHAT)).transpose()?;
        Ok(Records { records: gpu.array::<T>(reals, WHAT)?, indices })
    }

    fn pointers(&self) -> RecordArrays<T> {
        let indices = self.indices.as_ref().map_or(DevicePointer::NULL, DeviceArray::pointer);
        RecordArrays { records: self.records.pointer(), indices }
    }
}

/// Records in the form of the kernels.
#[derive(Clone, Copy)]
#[repr(C)]
struct RecordArrays<T> {
    records: DevicePointer<T>,
    indices: DevicePointer<u32>,
}

impl<T> RecordArrays<T> {
    const NONE: Self = RecordArrays { records: DevicePointer::NULL, indices: DevicePointer::NULL };
}

/// Arrays of a pass, in the form of the kernels.
#[derive(Clone, Copy)]
#[repr(C)]
struct SortArrays<T> {
    k: [DevicePointer<T>; 3],
    from: RecordArrays<T>,
    to: RecordArrays<T>,
}

/// Returns the largest possible number of pairs of a tile and a sample if a list for all of them is small, otherwise
/// `None`. With a small list the host need not wait for the true number.
fn pairs_bound(samples: usize, touched: usize) -> Option<usize> {
    samples.checked_mul(touched).filter(|&pairs| pairs <= MAX_BOUND_BYTES / 4)
}

/// Returns the bytes of the lists of evenly distributed samples, and a tenth more. Samples on spokes touch up to 9 %
/// more tiles, since k = 0 may be near a corner of four or eight of them. `pairs` is the number of pairs of a tile and
/// a sample.
fn list_room(pairs: f64) -> usize {
    4 * (pairs * 1.1) as usize
}

/// Samples in the order of the tiles that interpolate them.
pub struct SortedPoints<T> {
    /// The `point` of each sample, in the form of the kernels.
    pub records: DeviceArray<T>,
    /// Start of the window along z, 16 bits.
    pub planes: DeviceArray<u32>,
    /// Index of each point's sample.
    pub order: DeviceArray<u32>,
}

/// Counts that only the kernels know.
pub struct Counts {
    pub spread_segments: usize,
    pub gather_segments: usize,
    /// Planes of segments that share a tile.
    pub planes: usize,
    /// Tiles with few segments and with many.
    pub few: usize,
    pub many: usize,
    /// Runs of samples that follow one another in a tile of interpolation, of up to 32 samples; counted in 2D.
    pub runs: usize,
    /// Maximum number of segments of a tile that has several.
    pub most_segments: usize,
}

impl Counts {
    /// Returns the counts in the order of [`CountAt`].
    fn of(found: [u64; CountAt::End as usize]) -> Self {
        let [_, spread_segments, gather_segments, planes, runs, few, many, most_segments] = found.map(|n| n as usize);
        Counts { spread_segments, gather_segments, planes, few, many, runs, most_segments }
    }
}

/// Parts of an array, one after the other.
#[derive(Default)]
struct Parts(usize);

impl Parts {
    fn add(&mut self, len: usize) -> Range<usize> {
        self.0 += len;
        self.0 - len..self.0
    }
}

/// Positions of counts in memory that is 0 at first.
#[repr(usize)]
enum CountAt {
    Pairs,
    SpreadSegments,
    GatherSegments,
    Planes,
    Runs,
    /// Tiles with few segments, then those with many, then the most segments of a tile.
    CutTiles,
    End = 8,
}

/// Memory of the lists that is 0 at first: counts, and the states of scans and schedules.
struct ListZeros {
    array: DeviceArray<u64>,
    counts: Range<usize>,
    starts: Range<usize>,
    spread: Range<usize>,
    gather: Range<usize>,
    classes: Range<usize>,
}

impl ListZeros {
    fn new(gpu: &Gpu, tiles: usize, gather_tiles: usize) -> Result<Self> {
        let mut parts = Parts::default();
        let counts = parts.add(CountAt::End as usize);
        let [starts, spread, gather] = [tiles, tiles, gather_tiles].map(|n| parts.add(scan_states(n) + 1));
        let classes = parts.add(SCHEDULE_ZEROS);
        Ok(ListZeros { array: gpu.zeros::<u64>(parts.0, WHAT)?, counts, starts, spread, gather, classes })
    }

    fn part(&self, range: &Range<usize>) -> DeviceSlice<'_, u64> {
        self.array.view().part(range.clone())
    }

    /// Waits for the GPU and returns its counts.
    fn wait_for_counts(&self, gpu: &Gpu) -> Result<Counts> {
        let mut found = [0u64; CountAt::End as usize];
        gpu.download(self.part(&self.counts), &mut found)?;
        Ok(Counts::of(found))
    }

    fn count_at(&self, which: CountAt) -> DevicePointer<u64> {
        self.array.pointer().offset(self.counts.start + which as usize)
    }
}

/// Lists for spreading and interpolation.
pub struct SampleLists<T> {
    pub points: SortedPoints<T>,
    /// The samples of each tile of interpolation in the order of the input, if requested: four values each.
    pub tile_samples: Option<DeviceArray<T>>,
    /// Points of each tile of spreading, one list after the other.
    pub list: DeviceArray<u32>,
    /// First segment of each tile of spreading; the last entry is the number of segments.
    pub firsts: DeviceArray<u64>,
    pub spread_segments: TileSegments,
    pub gather_segments: TileSegments,
    /// First plane of each segment of spreading; the last entry is the number of planes.
    pub slots: DeviceArray<u64>,
    /// Tiles with several segments: those with few from the front, those with many from the end.
    pub cut_tiles: DeviceArray<u64>,
    pub counts: Counts,
}

/// Returns the approximate bytes of sorted samples, including scratch that is kept for later arrays. `expected` is the
/// approximate number of pairs of a tile and a sample, `longest` gives the length of segments for spreading.
pub fn bytes(
    samples: usize,
    config: &SortConfig,
    [spread, gather]: [&TileLayout; 2],
    taps: [usize; 3],
    expected: f64,
    longest: impl Fn(usize) -> usize,
    gathering: GatherSegments,
) -> f64 {
    let tiles = [spread, gather].map(TileLayout::estimated_tiles);
    let cells = spread.size.iter().map(|&n| f64::from(n)).product::<f64>();
    let pairs = pairs_bound(samples, tiles_touched(spread, taps)).map_or(expected, |bound| bound as f64);
    let lengths = [longest(pairs as usize), gathering.samples];
    let gather_tiles = if gathering.by_tile { tiles[1] } else { 1.0 };
    let n = samples as f64;
    // About one bin per 8 cells.
    let bins = cells / 8.0;
    let passes = passes((bins as usize).max(2)) as f64;
    // Counts of the first pass and states of the others.
    let states = 4.0 * DIGITS as f64 * passes * (n / (THREADS * ROUNDS / 2) as f64 + 64.0);
    // Planes, the order, and indices of the records that do not become the points.
    let order = (2 + if config.fixed { 2 * 4 } else { 4 }) as f64 * n;
    // Records of two passes. Some become the points, and the others usually the lists.
    let points = (config.point_reals() * config.bytes) as f64 * n;
    let (others, lists) = (points.max(list_room(expected) as f64), 4.0 * pairs);
    let reused = if (others / 2.0..=others).contains(&lists) { lists } else { 0.0 };
    let records = points + others + lists - reused;
    let room = |tiles: f64, most: f64, longest: usize| tiles.min(most) + most / longest as f64;
    let segments = 40.0 * room(tiles[0], pairs, lengths[0]) + 28.0 * room(gather_tiles, n, lengths[1]);
    records + order + states + 4.0 * bins + segments + 36.0 * tiles[0] + 8.0 * tiles[1]
}

/// The kernels of kernels/samples.cu on one GPU.
struct SortFunctions {
    config: SortConfig,
    /// Number of keys of the table in shared memory.
    table: usize,
    count_digits: Function,
    sort_first: Function,
    sort_next: Function,
    settle: Function,
    /// For many samples.
    buckets: Option<BucketFunctions>,
    count_touching: Function,
    list_touching: Function,
}

/// The kernels that sort buckets of samples.
struct BucketFunctions {
    draw_samples: Function,
    find_buckets: Function,
    sort_buckets: Function,
}

impl SortFunctions {
    fn new(gpu: &Gpu, config: SortConfig, layout: &BinLayout) -> Result<Self> {
        let available = gpu.properties().shared;
        let table = config.table(layout.cells(), available);
        let [passes, others] = config.all_kernels();
        let pass = |name| gpu.function(&passes, name, config.shared() + 4 * table);
        let function = |name, shared| gpu.function(&others, name, shared);
        let buckets = || -> Result<_> {
            Ok(BucketFunctions {
                draw_samples: function("draw_samples", 0)?,
                find_buckets: function("find_buckets", 0)?,
                sort_buckets: function("sort_buckets", config.shared_of_bucket() + 4 * table)?,
            })
        };
        Ok(SortFunctions {
            config,
            table,
            count_digits: function("count_digits", 4 * table)?,
            sort_first: pass("sort_first")?,
            sort_next: pass("sort_next")?,
            settle: function("settle", 0)?,
            buckets: config.many.then(buckets).transpose()?,
            count_touching: function("count_touching", 0)?,
            list_touching: function("list_touching", 0)?,
        })
    }
}

/// Work that the host does once, before it waits for sorted samples.
struct HostWork<F, R> {
    work: Option<F>,
    made: Option<R>,
}

impl<F: FnOnce() -> Result<R>, R> HostWork<F, R> {
    fn finish(&mut self) -> Result<()> {
        if let Some(work) = self.work.take() {
            self.made = Some(work()?);
        }
        Ok(())
    }
}

/// Sorts samples at `k`, one slice per axis, within [-0.5, 0.5). `length` gives the lengths of segments for
/// spreading from the number of pairs of a tile and a sample; `gathering` are those for interpolation.
/// `follows_input`: whether interpolation takes the samples of a tile in the order of the input, which has this number
/// of runs. `meanwhile` is called before the host waits for sorted samples; its result is returned too.
pub fn sort_samples<T: Real, R>(
    gpu: &Gpu,
    k: &[DeviceSlice<'_, T>],
    bins: &Bins,
    length: impl Fn(usize) -> Length,
    gathering: GatherSegments,
    follows_input: impl Fn(usize) -> bool,
    meanwhile: impl FnOnce() -> Result<R>,
) -> Result<(SampleLists<T>, R)> {
    let (n, gathered) = (k[0].len(), gathering.samples);
    let layout = &bins.tables.layout;
    let (width, size) = (layout.width as usize, layout.size.map(|n| n as usize));
    let config = SortConfig::new(k.len(), size_of::<T>(), width, size, n, gpu.properties().shared);
    let (functions, sort) = (SortFunctions::new(gpu, config, layout)?, Sort::new(gpu)?);
    let (tiles, (gather_tiles, gather_span)) = (bins.spread_tiles, bins.gather_runs(gathering));
    let zeros = ListZeros::new(gpu, tiles, gather_tiles)?;
    let (points, starts, spare) = sort_points(gpu, &functions, &sort, k, bins, zeros.count_at(CountAt::Runs))?;
    let counts = count_touching(gpu, &functions, bins, &starts)?;
    let ([keys_z, rows, columns], runs) = (bins.run_tables(), bins.tables.runs);
    let mut host_work = HostWork { work: Some(meanwhile), made: None };
    let prefix = |n: usize| gpu.array::<u64>(n + 1, WHAT);
    let (tile_starts, firsts, gather_firsts) = (prefix(tiles)?, prefix(tiles)?, prefix(gather_tiles)?);
    let of_starts =
        ScanTask::new(&counts, tiles, &tile_starts, zeros.part(&zeros.starts), zeros.count_at(CountAt::Pairs));
    let of_gather = {
        let length = Length { usual: gathered, dense: n, brief: gathered };
        let total = zeros.count_at(CountAt::GatherSegments);
        ScanTask::new(&starts, gather_tiles, &gather_firsts, zeros.part(&zeros.gather), total)
            .of_differences(gather_span, gather_tiles)
            .of_segments(length, 0)
    };
    let of_spread = |length| {
        let total = zeros.count_at(CountAt::SpreadSegments);
        ScanTask::new(&counts, tiles, &firsts, zeros.part(&zeros.spread), total).of_segments(length, 1)
    };
    // For a few samples, a bound on the number of pairs is used instead of waiting for the number.
    let (pairs, length) = if let Some(bound) = pairs_bound(n, bins.tables.touched) {
        sort.scan(&[of_starts, of_gather, of_spread(length(bound))]);
        (bound, length(bound))
    } else {
        sort.scan(&[of_starts, of_gather]);
        host_work.finish()?;
        let mut pairs = [0u64];
        gpu.download(zeros.part(&(zeros.counts.start..zeros.counts.start + 1)), &mut pairs)?;
        let length = length(pairs[0] as usize);
        sort.scan(&[of_spread(length)]);
        (pairs[0] as usize, length)
    };

    let list = spare.reused(pairs).map_or_else(|| gpu.array::<u32>(pairs, WHAT), Ok)?;
    let room = tiles + pairs / length.brief.min(length.usual);
    let spread_segments = TileSegments::unwritten(gpu, room)?;
    let planes = gpu.array::<u32>(room, WHAT)?;
    let cut_tiles = gpu.array::<u64>(2 * tiles, WHAT)?;
    // SAFETY: the kernel's parameters are these. There is space for the counted pairs, for the maximum number of
    // segments, and for all tiles.
    unsafe {
        launch!(gpu, &functions.list_touching, blocks_of_warps(room), BLOCK, 0;
            runs, keys_z, rows, columns, starts.pointer(), tile_starts.pointer(), firsts.pointer(), room as u64,
            FEW_SEGMENTS, list.pointer(), spread_segments.segments.pointer(), planes.pointer(), cut_tiles.pointer(),
            zeros.count_at(CountAt::CutTiles))
    };
    let gather_room = gather_tiles.min(n) + n / gathered;
    let gather_segments = TileSegments::unwritten(gpu, gather_room)?;
    sort.cut(&starts, gather_span, &gather_firsts, gather_room, &gather_segments);
    let slots = prefix(room)?;
    let slot_zeros = gpu.zeros::<u64>(scan_states(room) + 1, WHAT)?;
    sort.scan(&[ScanTask::new(&planes, room, &slots, slot_zeros.view(), zeros.count_at(CountAt::Planes))]);
    let segment_counts = [CountAt::SpreadSegments, CountAt::GatherSegments].map(|which| zeros.count_at(which));
    let lists = [&spread_segments, &gather_segments];
    sort.schedule(lists, segment_counts, [length.usual, gathered], zeros.part(&zeros.classes));

    host_work.finish()?;
    let counts = zeros.wait_for_counts(gpu)?;
    let tile_samples =
        follows_input(counts.runs).then(|| tile_samples(gpu, &functions, k, bins, &starts)).transpose()?;
    let lists =
        SampleLists { points, tile_samples, list, firsts, spread_segments, gather_segments, slots, cut_tiles, counts };
    Ok((lists, host_work.made.expect("the work is finished")))
}

/// Returns the number of blocks for `n` warps.
fn blocks_of_warps(n: usize) -> [u32; 3] {
    [n.div_ceil(THREADS / 32) as u32, 1, 1]
}

/// Counts the samples that touch each tile of spreading. `starts` are the first points of bins.
fn count_touching(
    gpu: &Gpu,
    functions: &SortFunctions,
    bins: &Bins,
    starts: &DeviceArray<u32>,
) -> Result<DeviceArray<u32>> {
    let (tiles, runs, [keys_z, rows, columns]) = (bins.spread_tiles, bins.tables.runs, bins.run_tables());
    let counts = gpu.array::<u32>(tiles, WHAT)?;
    // SAFETY: the kernel's parameters are these; it reads the starts of bins and writes one count per tile.
    unsafe {
        launch!(gpu, &functions.count_touching, blocks_of_warps(tiles), BLOCK, 0;
            runs, keys_z, rows, columns, starts.pointer(), counts.pointer())
    };
    Ok(counts)
}

/// Lists the samples of each tile of interpolation in the order of the input, in 2D and single precision. `starts` are
/// the first points of bins.
fn tile_samples<T: Real>(
    gpu: &Gpu,
    functions: &SortFunctions,
    k: &[DeviceSlice<'_, T>],
    bins: &Bins,
    starts: &DeviceArray<u32>,
) -> Result<DeviceArray<T>> {
    assert!(k.len() == 2 && size_of::<T>() == 4);
    let write = gpu.function(&functions.config.kernels(SortProgram::Others), "write_tile_samples", 0)?;
    let samples = gpu.array::<T>(4 * k[0].len(), WHAT)?;
    let (layout, keys) = (bins.tables.layout, bins.keys());
    // SAFETY: the kernel's parameters are these; it reads both coordinates of all samples. It writes as many samples of
    // a tile as there are points of it, from the first of these on, and may change `starts`, which nothing reads later.
    unsafe {
        launch!(gpu, &write, blocks(k[0].len()), BLOCK, 0;
            k[0].pointer(), k[1].pointer(), k[0].len() as u64, layout, keys, starts.pointer(),
            samples.pointer())
    };
    Ok(samples)
}

/// Counts for the first pass, in the form of the kernels.
#[derive(Clone, Copy)]
#[repr(C)]
struct FirstCounts {
    of_parts: DevicePointer<u32>,
    in_part: DevicePointer<u32>,
    /// Blocks of a part of the input.
    length: u32,
}

/// Samples on their way to their places.
struct Sorter<'a, T> {
    gpu: &'a Gpu,
    functions: &'a SortFunctions,
    bins: &'a Bins,
    samples: usize,
    /// Coordinates of x, y and z. In 2D, that of y is one of the others.
    k: [DevicePointer<T>; 3],
}

impl<T: Real> Sorter<'_, T> {
    /// Returns the kernels that sort buckets and the number of bins of each, or `None` if a pass is faster, also
    /// because one bucket has too many samples.
    fn buckets(&self) -> Result<Option<(&BucketFunctions, usize)>> {
        let (gpu, layout, keys) = (self.gpu, self.bins.tables.layout, self.bins.keys());
        let Some(functions) = &self.functions.buckets else { return Ok(None) };
        let Some(size) = bucket_bins(self.samples, self.bins.count()) else { return Ok(None) };
        let buckets = self.bins.count().div_ceil(size);
        let (counts, [kx, ky, kz]) = (gpu.zeros::<u32>(buckets + 1, WHAT)?, self.k);
        let most = counts.pointer().offset(buckets);
        // SAFETY: the kernel's parameters are these. It reads DRAWN of the samples, which are more, and changes a count
        // of each one's bucket and the number after the counts.
        unsafe {
            launch!(gpu, &functions.draw_samples, blocks(DRAWN), BLOCK, 0;
                kx, ky, kz, self.samples as u64, layout, keys, Divisor::new(size), DRAWN as u32, counts.pointer(),
                most)
        };
        let mut longest = [0];
        gpu.download(counts.view().part(buckets..buckets + 1), &mut longest)?;
        Ok((longest[0] <= MOST_DRAWN).then_some((functions, size)))
    }

    /// Sorts by `passes` digits of the keys' buckets, of `size` bins each. Returns the records, whose memory has room
    /// for the lists of tiles too, and others of the same number if there are any. Adds the number of runs to `runs`.
    fn sort(&self, passes: usize, size: Divisor, runs: DevicePointer<u64>) -> Result<(Records<T>, Option<Records<T>>)> {
        let SortFunctions { config, table, .. } = self.functions;
        let (gpu, n, table_keys) = (self.gpu, self.samples, *table as u32);
        assert!(passes <= MAX_PASSES);
        let rounds = config.rounds(n);
        let pass_blocks = n.div_ceil(THREADS * rounds);
        let part = pass_blocks.div_ceil(COUNTING_BLOCKS * gpu.properties().multiprocessors as usize);
        let parts_of_input = pass_blocks.div_ceil(part);
        let counts = gpu.array::<u32>(checked_product(&[parts_of_input + pass_blocks, DIGITS], WHAT)?, WHAT)?;
        let in_part = counts.pointer().offset(parts_of_input * DIGITS);
        let of_first = FirstCounts { of_parts: counts.pointer(), in_part, length: part as u32 };
        // Numbers of 32 bits, in words of 64: counts of digits, a counter of finished blocks, and for each pass but the
        // first a counter of started blocks and the states of blocks.
        let states = checked_product(&[LOOK_BACK + pass_blocks, if config.wide { DIGITS } else { DIGITS / 2 }], WHAT)?;
        let mut parts = Parts::default();
        let at_digits = parts.add(MAX_PASSES * DIGITS / 2);
        let at_done = parts.add(1);
        let at_passes = parts.add((1 + states) * (passes - 1));
        let zeros = gpu.zeros::<u64>(parts.0, WHAT)?;
        let word = |at: usize| zeros.pointer().offset(at);

        let (layout, keys, [kx, ky, kz]) = (self.bins.tables.layout, self.bins.keys(), self.k);
        let samples = n as u64;
        // SAFETY: the kernel's parameters are these; it reads n samples and counts in memory for all digits, for the
        // parts of the input and for the blocks of the first pass. Its shared memory has room for the table.
        unsafe {
            launch!(gpu, &self.functions.count_digits, [parts_of_input as u32, 1, 1], BLOCK, 4 * table;
                kx, ky, kz, samples, layout, keys, table_keys, size, passes as u32, rounds as u32, of_first,
                word(at_digits.start), word(at_done.start), runs)
        };
        let lists = list_room(self.bins.tables.mean_touched * n as f64);
        let [others, sorted] = if passes % 2 == 0 { [0, lists] } else { [lists, 0] };
        let mut to = Records::new(gpu, config, n, others)?;
        let mut from = (passes > 1).then(|| Records::new(gpu, config, n, sorted)).transpose()?;
        for pass in 0..passes {
            let source = from.as_ref().map_or(RecordArrays::NONE, Records::pointers);
            let arrays = SortArrays { k: self.k, from: source, to: to.pointers() };
            let function = if pass == 0 { &self.functions.sort_first } else { &self.functions.sort_next };
            let (shift, digits) = (DIGIT_BITS * pass as u32, word(at_digits.start + pass * DIGITS / 2));
            // The states follow the ticket. The first pass uses neither.
            let ticket = word(at_passes.start + (1 + states) * pass.saturating_sub(1));
            // SAFETY: the kernels' parameters are these. Each pass reads and writes n samples, and has shared memory
            // for its records and the table. There are counts for all blocks of the first pass, and zeroed states for
            // those of the others.
            unsafe {
                launch!(gpu, function, [pass_blocks as u32, 1, 1], BLOCK, config.shared() + 4 * table;
                    arrays, samples, layout, keys, table_keys, size, shift, rounds as u32, digits, of_first,
                    ticket.offset(1), ticket)
            };
            if let Some(from) = from.as_mut().filter(|_| pass + 1 < passes) {
                std::mem::swap(from, &mut to);
            }
        }
        Ok((to, from))
    }
}

/// Points of sorted samples, in the form of the kernels.
#[derive(Clone, Copy)]
#[repr(C)]
struct PointArrays<T> {
    points: DevicePointer<T>,
    planes: DevicePointer<u32>,
    order: DevicePointer<u32>,
}

/// Sorts the samples by bins. Returns the points, the first point of each bin and their number, and an array that is
/// not used any more. Adds the number of runs to `runs`.
fn sort_points<T: Real>(
    gpu: &Gpu,
    functions: &SortFunctions,
    sort: &Sort<'_>,
    k: &[DeviceSlice<'_, T>],
    bins: &Bins,
    runs: DevicePointer<u64>,
) -> Result<(SortedPoints<T>, DeviceArray<u32>, DeviceArray<T>)> {
    let (n, count) = (k[0].len(), bins.count());
    let axes = [0, k.len() - 2, k.len() - 1].map(|a| k[a].pointer());
    let sorter = Sorter { gpu, functions, bins, samples: n, k: axes };
    let buckets = sorter.buckets()?;
    let passes = passes(count) - usize::from(buckets.is_some());
    let (sorted, free) = sorter.sort(passes, Divisor::new(buckets.map_or(1, |(_, size)| size)), runs)?;
    // The points take the place of the records before the last pass.
    let free = free.map_or_else(|| Records::new(gpu, &functions.config, n, 0), Ok)?;
    let points = SortedPoints {
        records: free.records,
        planes: gpu.array::<u32>(n.div_ceil(2), WHAT)?,
        order: free.indices.map_or_else(|| gpu.array::<u32>(n, WHAT), Ok)?,
    };
    let to = PointArrays {
        points: points.records.pointer(),
        planes: points.planes.pointer(),
        order: points.order.pointer(),
    };
    let mut starts = gpu.array::<u32>(count + 1, WHAT)?;
    let (layout, keys, samples) = (bins.tables.layout, bins.keys(), n as u64);
    if let Some((bucket_functions, size)) = buckets {
        let (buckets, size) = (count.div_ceil(size), Divisor::new(size));
        let (begins, table) = (gpu.array::<u32>(buckets + 1, WHAT)?, functions.table);
        let shared = functions.config.shared_of_bucket() + 4 * table;
        // SAFETY: the kernels' parameters are these. They read n records, and write the beginnings of buckets, their
        // end, n points and the starts of bins. The shared memory has room for the table, and for the records of a
        // bucket if they are copied there.
        unsafe {
            launch!(gpu, &bucket_functions.find_buckets, blocks(buckets + 1), BLOCK, 0;
                sorted.records.pointer(), samples, layout, keys, size, buckets as u32, begins.pointer());
            launch!(gpu, &bucket_functions.sort_buckets, [buckets as u32, 1, 1], BLOCK, shared;
                sorted.pointers(), samples, layout, keys, table as u32, begins.pointer(), size, count as u64, to,
                starts.pointer())
        };
    } else {
        let zeros = gpu.zeros::<u64>(scan_states(count) + 1, WHAT)?;
        gpu.fill(starts.view_mut(), 0xff);
        // SAFETY: the kernel's parameters are these; it reads n records, and writes n points and the starts of bins.
        unsafe {
            launch!(gpu, &functions.settle, blocks(n), BLOCK, 0;
                sorted.pointers(), samples, layout, keys, to, starts.pointer())
        };
        sort.fill_starts(&starts, n, zeros.view());
    }
    Ok((points, starts, sorted.records))
}
