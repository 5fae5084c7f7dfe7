//! Compile-time parameters of the kernels that spread and interpolate on a GPU (kernels/spreading.cu and
//! interpolation.cu). They depend on the grid, the window and the number of samples.

use super::bins::GatherSegments;
use super::compile::Kernels;
use super::runtime::Properties;
use super::sample_sort_config::{has_fixed_points, SortConfig, BUCKET_SORT};
use super::sort::{self, Length, TileLayout};
use crate::base::real::Real;

/// Shared memory per block that every GPU has.
const STATIC_SHARED: usize = 48 << 10;

/// Returns the sizes of a grid as three axes.
pub fn three(grid: &[usize]) -> [usize; 3] {
    match *grid {
        [x, y, z] => [x, y, z],
        _ => [grid[0], 1, grid[1]],
    }
}

/// Number of tiles of more planes from which these are faster.
const DEEP_TILES: f64 = 4500.0;
/// Number of tiles from which those of evenly distributed samples need not be cut into segments: half of the warps that
/// a data-centre GPU runs at once.
const ENOUGH_TILES: f64 = 1300.0;

/// Spreading with windows of one width on one kind of GPU.
#[derive(Clone, Copy)]
pub struct SpreadingConfig {
    axes: usize,
    width: usize,
    bytes: usize,
    /// Whether points are in fixed point.
    fixed: bool,
    tensor: bool,
    /// Maximum number of planes of a tile.
    planes: usize,
    /// Samples in the list of a tile if they are evenly distributed and [`ENOUGH_TILES`] share them, otherwise 0.
    even: usize,
    pub warps: usize,
    resident: usize,
    /// Whether a block spreads a whole tile, and adds its segments. It then has up to `warps` warps, one per segment.
    together: bool,
}

impl SpreadingConfig {
    /// Planes of the tiles of a small grid, and of a large one.
    const PLANES: usize = 16;
    const DEEP: usize = 64;

    /// Chooses the configuration for this number of samples on a grid of this size.
    pub fn new(
        axes: usize,
        width: usize,
        bytes: usize,
        size: [usize; 3],
        samples: usize,
        capability: (u32, u32),
    ) -> Self {
        let layout = Self::with(axes, width, bytes, false).layout(size);
        // Except on data-centre GPUs, tensor cores are not faster than other cores in single precision. They multiply
        // 16 samples at once, which are mostly zeros if tiles have a few.
        let tensor = bytes == 4
            && matches!(capability, (8, 0) | (9 | 10, _))
            && layout.expected_pairs(width, samples) >= 8.0 * layout.estimated_tiles();
        let fixed = has_fixed_points(axes, bytes, width, size);
        let config = SpreadingConfig { fixed, ..Self::with(axes, width, bytes, tensor) };
        // Windows touch fewer tiles if these have more planes, but tiles should be enough to keep a GPU busy. Wide
        // windows touch most tiles, so that more planes are faster even if tiles must then be cut into segments.
        let with_planes = |planes| SpreadingConfig { planes, ..config };
        let has_tiles = |planes, least| with_planes(planes).layout(size).estimated_tiles() >= least;
        let config = if has_tiles(Self::DEEP, DEEP_TILES) {
            with_planes(Self::DEEP)
        } else if has_tiles(32, if bytes == 8 && width >= 10 { 100.0 } else { DEEP_TILES }) {
            with_planes(32)
        } else {
            config
        };
        let layout = config.layout(size);
        let (pairs, tiles) = (layout.expected_pairs(width, samples), layout.estimated_tiles());
        SpreadingConfig { even: if tiles >= ENOUGH_TILES { (pairs / tiles) as usize } else { 0 }, ..config }
    }

    fn with(axes: usize, width: usize, bytes: usize, tensor: bool) -> Self {
        let config = SpreadingConfig {
            axes,
            width,
            bytes,
            fixed: false,
            tensor,
            planes: Self::PLANES,
            even: 0,
            warps: 0,
            resident: 0,
            together: false,
        };
        let warps = (STATIC_SHARED / config.shared_of_warp()).clamp(1, 4);
        SpreadingConfig { warps, resident: (config.all_warps() / warps).max(1), ..config }
    }

    /// Returns the configuration for tiles of a few segments, for which a block of a multiprocessor has enough shared
    /// memory and registers.
    fn of_tiles(&self, shared: usize) -> Self {
        let warps = (shared / self.shared_of_warp()).min(self.all_warps()).min(16);
        SpreadingConfig { warps, resident: 1, together: true, ..*self }
    }

    /// Returns whether the blocks of [`Self::of_tiles`] run at the same time, if each has `warps` warps.
    pub fn has_room(&self, properties: &Properties, warps: usize, blocks: usize) -> bool {
        warps <= self.warps && blocks <= self.warps / warps * properties.multiprocessors as usize
    }

    /// Returns the shared memory of a warp, as in the kernels: rows of taps, or one record per sample, and the
    /// destination of the sums.
    pub fn shared_of_warp(&self) -> usize {
        let destination = 48;
        let samples = if self.tensor {
            let starts = Self::PLANES + (self.width + 2) / 4 * 4;
            let rows_z = (starts + self.width + 2) / 4 * 4;
            let rows = (self.width - 1) * self.axes + if self.axes == 3 { 12 } else { 32 } + rows_z + 2;
            32 * (rows | 1) * self.bytes
        } else {
            let record = if self.axes == 3 { 12 } else { 32 } + 2 + self.width;
            32 * (((record * self.bytes).div_ceil(16) | 1) * 16)
        };
        samples + destination
    }

    /// Returns the number of warps whose registers should fit, next to the sums of wide windows.
    fn all_warps(&self) -> usize {
        match (self.tensor, self.bytes) {
            (true, _) if self.width <= 9 => 20,
            (true, _) => 16,
            (_, 4) if self.width <= 9 => 24,
            (_, 4) => 16,
            _ if self.width <= 8 => 12,
            _ => 8,
        }
    }

    /// Returns the configuration of blocks that spread a whole tile, if they may save the kernel that adds segments.
    /// The GPU must have room for all tiles, and evenly distributed samples must be few in each.
    pub fn for_few_samples(&self, properties: &Properties, layout: &TileLayout, samples: usize) -> Option<Self> {
        let tiles = layout.estimated_tiles();
        let of_tiles = self.of_tiles(properties.shared);
        let segments = layout.expected_pairs(self.width, samples) / (tiles * self.length(0).usual as f64);
        of_tiles.has_room(properties, 2.max(segments.ceil() as usize), tiles as usize).then_some(of_tiles)
    }

    pub fn kernels(&self, degree: usize) -> Kernels {
        let mut macros = vec![
            ("DIM", self.axes),
            ("W", self.width),
            ("DEGREE", degree),
            ("WARPS", self.warps),
            ("RESIDENT", self.resident),
            ("WARP_BYTES", self.shared_of_warp()),
        ];
        if self.fixed {
            macros.push(("FIXED_POINT", 1));
        }
        if self.tensor {
            macros.push(("TENSOR", 1));
        }
        if self.together {
            macros.push(("TOGETHER", 1));
        }
        Kernels::new("spreading", SPREADING, self.bytes, &macros)
    }

    /// Returns the kernels for segments, and those for tiles of a few segments.
    fn both_kernels(&self, degree: usize) -> [Kernels; 2] {
        [self.kernels(degree), self.of_tiles(DATA_CENTRE_SHARED).kernels(degree)]
    }

    /// Returns tiles of at most half the grid, so that no window touches one twice.
    pub fn layout(&self, size: [usize; 3]) -> TileLayout {
        let tile = if self.axes == 3 { [8, 4, self.planes] } else { [32, 1, self.planes] };
        TileLayout::new(size, [0, 1, 2].map(|a| tile[a].min(size[a].div_ceil(2))))
    }

    /// Returns the maximum number of samples of a segment, small enough to keep the whole GPU busy, but large compared
    /// with the planes that each segment of a cut tile writes. It does not depend on the number of arrays, so that
    /// batches of any size give the same bits. If tens of thousands of samples meet, all roundings of a sum may have
    /// the same sign. Therefore segments are shorter there in single precision, since their sums are added in double
    /// precision.
    pub fn length(&self, pairs: usize) -> Length {
        let least = if self.tensor && self.width >= 8 { 768 } else { 512 };
        // Segments are longer in proportion to the planes, so that most deep tiles are not cut. In single precision
        // only those of short windows are, because long sums add to the error.
        let is_longer = self.planes == Self::DEEP && (self.bytes == 8 || self.width <= 7);
        let depth = if is_longer { Self::DEEP / Self::PLANES } else { 1 };
        let most = match (self.bytes, self.tensor) {
            (8, _) => 16384 * depth,
            (_, true) if self.width <= 5 => 4096 * depth,
            (_, true) => 4096,
            _ => 1024,
        };
        // In 2D all warps that data-centre GPUs run at once. In 3D, where segments write more planes, the sums of more
        // segments would take longer than is saved.
        let warps = if self.axes == 2 { 128 * self.warps * self.resident } else { 1024 };
        let few = (pairs / warps).next_multiple_of(32).clamp(32, least);
        // Lists that are about as long as all others are not cut either.
        let usual = ((pairs >> 15).max(few) * depth).max(self.even + self.even / 4).min(most);
        let brief = match (self.bytes, self.tensor) {
            (4, true) => 256,
            // Samples are added one by one here, not in groups of sixteen.
            (4, false) => 128,
            _ => usual,
        };
        Length { usual, dense: 32 * least * depth, brief: brief.min(usual) }
    }
}

/// Parameters of the interpolation kernel.
#[derive(Clone, Copy)]
pub struct InterpolationConfig {
    axes: usize,
    width: usize,
    bytes: usize,
    /// Whether points are in fixed point.
    fixed: bool,
    staged: bool,
    /// Whether each lane sums a different sample in 3D, not each group of lanes.
    by_lane: bool,
    /// Cells of a tile along the second existing axis, and along the third.
    tile: [usize; 2],
    pub warps: usize,
}

impl InterpolationConfig {
    const TILE_X: usize = 16;
    /// Maximum number of samples of a block in 3D.
    const SAMPLES_3D: usize = 512;

    /// Chooses the largest tile that fits into the shared memory of a block, so that each lane sums a different sample,
    /// or of which a GPU holds two, or one. If samples are too few to need most cells of a tile, they are read from the
    /// grid.
    pub fn new(axes: usize, width: usize, bytes: usize, size: [usize; 3], samples: usize, shared: usize) -> Self {
        let all: &[[usize; 2]] =
            if axes == 3 { &[[8, 8], [8, 4], [4, 4], [4, 2], [2, 2]] } else { &[[32, 1], [16, 1], [8, 1], [4, 1]] };
        let by_group = |tile| Self::by_group(axes, width, bytes, tile);
        let by_lane = all.iter().filter(|_| axes == 3).map(|&tile| (shared, Self::by_lane(width, bytes, tile)));
        let by_groups = [shared / 2, shared].into_iter().flat_map(|room| {
            all.iter()
                .flat_map(move |&tile| [8, 4].map(|warps| (room, InterpolationConfig { warps, ..by_group(tile) })))
        });
        let fits = |(room, g): &(usize, InterpolationConfig)| {
            let extent = g.extent();
            let cells = g.layout(size).estimated_tiles() * extent.iter().product::<usize>() as f64;
            g.shared() <= *room
                && (0..3).all(|a| size[a] == 1 || extent[a] <= 2 * size[a])
                && cells <= samples as f64 * (width as f64).powi(axes as i32)
                && (!g.by_lane || g.has_enough(size, samples))
        };
        let chosen = match by_lane.chain(by_groups).find(fits) {
            Some((_, gathering)) => gathering,
            None => {
                let from_grid = InterpolationConfig { staged: false, ..by_group(all[0]) };
                // GPUs before compute capability 7.0 have no more than 48 KiB.
                InterpolationConfig { warps: if from_grid.shared() <= shared { 8 } else { 4 }, ..from_grid }
            }
        };
        InterpolationConfig { fixed: has_fixed_points(axes, bytes, width, size), ..chosen }
    }

    /// Returns the configuration in which each group of lanes sums one sample at a time in 3D, and each lane a
    /// different sample in 2D.
    fn by_group(axes: usize, width: usize, bytes: usize, tile: [usize; 2]) -> Self {
        InterpolationConfig { axes, width, bytes, fixed: false, staged: true, by_lane: false, tile, warps: 8 }
    }

    /// Returns the configuration in which each lane sums a different sample, in 3D.
    fn by_lane(width: usize, bytes: usize, tile: [usize; 2]) -> Self {
        // Short windows in single precision take less shared memory, so that more blocks run at once.
        let warps = if bytes == 4 && width <= 7 { 4 } else { 8 };
        InterpolationConfig { axes: 3, width, bytes, fixed: false, staged: true, by_lane: true, tile, warps }
    }

    /// Returns whether tiles have enough samples for [`Self::by_lane`] to be faster. In double precision few blocks run
    /// at once, so that all of their lanes should have samples.
    fn has_enough(&self, size: [usize; 3], samples: usize) -> bool {
        self.bytes == 4 || samples as f64 >= 128.0 * self.layout(size).estimated_tiles()
    }

    /// Returns the cells of the tile and the overlap of its windows on each axis.
    fn extent(&self) -> [usize; 3] {
        let over = self.width - 1;
        match self.axes {
            3 => [Self::TILE_X + over, self.tile[0] + over, self.tile[1] + over],
            _ => [Self::TILE_X + over, 1, self.tile[0] + over],
        }
    }

    pub fn layout(&self, size: [usize; 3]) -> TileLayout {
        let [y, z] = self.tile;
        TileLayout::new(size, if self.axes == 3 { [Self::TILE_X, y, z] } else { [Self::TILE_X, 1, y] })
    }

    /// Returns how samples are divided into segments, one for each block.
    pub fn segments(&self, samples: usize) -> GatherSegments {
        // Few samples should still fill the GPU. A block has at least one per group of lanes, and more if it copies
        // a tile.
        let most = match (self.axes, self.staged) {
            (3, true) => (samples >> if self.by_lane { 10 } else { 9 }).clamp(32, Self::SAMPLES_3D),
            (3, false) => (samples >> 9).clamp(if self.width <= 8 { 16 } else { 8 }, 512),
            (_, true) => (samples >> 11).clamp(256, 1024),
            (_, false) => (samples >> 11).clamp(16, 1024),
        };
        GatherSegments { samples: most, by_tile: self.staged }
    }

    /// Returns whether the values of `arrays` arrays are interpolated in the order of the points, and then sorted by
    /// another kernel. In 2D this is faster than writing them in any order if they do not fit in a cache of this size,
    /// because memory is written in larger units. Smaller arrays must also share taps to be faster. In 3D a plan would
    /// take longer to invert the order than a few transforms save.
    pub fn restores(&self, samples: usize, arrays: usize, cache: usize) -> bool {
        let (array, all) = (self.array_bytes(samples), self.array_bytes(samples).saturating_mul(arrays));
        let share_taps = self.shares_taps() && arrays > 1;
        self.axes == 2
            && (array > cache / 4 && all > cache / 2 || share_taps && array > cache / 8 && all > cache / 8 * 3)
    }

    fn array_bytes(&self, samples: usize) -> usize {
        samples.saturating_mul(2 * self.bytes)
    }

    /// Returns whether samples may be interpolated in the order of the input. With windows of more than five taps,
    /// shared memory is then slower: neighbours on a spoke read cells of a few banks. Fewer values are cached until
    /// memory is written in whole units.
    pub fn may_follow_input(&self, samples: usize, cache: usize) -> bool {
        self.shares_taps() && self.width <= 5 && self.array_bytes(samples) > cache / 8
    }

    /// Returns whether samples in the order of the input, which has this number of runs, are interpolated faster. Runs
    /// should be as long as a unit of memory, 4 values.
    pub fn follows_input(&self, samples: usize, runs: usize, cache: usize) -> bool {
        self.may_follow_input(samples, cache) && runs.saturating_mul(4) <= samples
    }

    /// Returns whether values in any order are faster all the same, since `near` of `samples` points are at most 32
    /// places from the point of the previous value. In double precision two values fill a sector of memory, so that a
    /// few neighbours are enough. They are also enough if an array takes at most a quarter of the cache.
    pub fn is_local(&self, near: u64, samples: usize, cache: usize) -> bool {
        let is_large = self.bytes == 4 && self.array_bytes(samples) > cache / 4;
        near as f64 >= samples as f64 * if is_large { 2.0 / 3.0 } else { 1.0 / 8.0 }
    }

    /// Returns how many cells shared memory returns at once if they are in different banks.
    fn banks(&self) -> usize {
        128 / (2 * self.bytes)
    }

    /// Returns the cells from a row of the tile in shared memory to the next row, and from a plane to the next plane.
    fn strides(&self) -> [usize; 2] {
        let [x, y, z] = self.extent();
        let rows = if self.axes == 3 { y } else { z };
        if !self.by_lane {
            // In 3D rows are as long as the window modulo 16 cells, so that rows side by side use different banks. In
            // 2D odd, so that lanes in one column do.
            let row = if self.axes == 3 { Self::TILE_X + self.width } else { x | 1 };
            return [row, rows * row];
        }
        // Odd, or even because single precision is copied in pairs of cells. So multiples of a row reach all banks, or
        // every other one. Planes are as far apart as the window's rows, modulo the banks: see the kernel.
        let row = if self.bytes == 4 { (x + 1) / 4 * 4 + 2 } else { x | 1 };
        let banks = self.banks();
        [row, rows * row + (self.width + banks * rows - rows) * row % banks]
    }

    /// Returns the number of places for samples of a block in 3D, a quarter more than samples.
    fn places(&self) -> usize {
        (Self::SAMPLES_3D / self.banks() * 5 / 4 + 1) * self.banks()
    }

    /// Returns the shared memory of a block, as in the kernels: the tile, and in 3D the places of samples and the table
    /// of banks, or a record per sample.
    pub fn shared(&self) -> usize {
        let (of_16, [_, plane]) = (16 / self.bytes, self.strides());
        let planes = if self.axes == 3 { self.extent()[2] } else { 1 };
        let staged = if self.staged { 2 * self.bytes * plane * planes } else { 0 };
        let rest = match (self.axes, self.by_lane) {
            (3, true) => self.places() * 4 * self.bytes + 4 * (4 * self.banks() + 2),
            (3, false) => {
                let record = ((self.width.next_multiple_of(of_16) + 2 * self.width).div_ceil(of_16) | 1) * of_16;
                self.warps * if self.width <= 8 { 32 } else { 16 } * record * self.bytes
            }
            _ => 0,
        };
        staged + rest
    }

    /// Returns the number of blocks of several arrays that registers should allow.
    fn resident_of_several(&self) -> usize {
        (if self.width <= 6 { 48 } else { 32 }) / self.warps
    }

    /// Returns whether several arrays may share the taps of their samples. In double precision there are too few
    /// registers.
    fn shares_taps(&self) -> bool {
        self.axes == 2 && self.staged && self.bytes == 4
    }

    /// Returns how many arrays are interpolated together; 1 if they do not share taps.
    pub fn together(&self, shared: usize) -> usize {
        if self.shares_taps() {
            (shared / (self.resident_of_several() * self.shared())).clamp(1, 4)
        } else {
            1
        }
    }

    pub fn kernels(&self, degree: usize) -> Kernels {
        let [row, plane] = self.strides();
        let mut macros = vec![
            ("DIM", self.axes),
            ("W", self.width),
            ("DEGREE", degree),
            ("STAGED", usize::from(self.staged)),
            ("STRIDE", row),
            ("PLANE", plane),
            ("TILE_Y", self.tile[0]),
            ("TILE_Z", self.tile[1]),
            ("GATHER_WARPS", self.warps),
        ];
        if self.fixed {
            macros.push(("FIXED_POINT", 1));
        }
        match (self.axes, self.by_lane) {
            (3, true) => macros.extend([("SAMPLES", Self::SAMPLES_3D), ("PLACES", self.places())]),
            // Processes one sample per group at once if two need too many registers.
            (3, false) => macros.push(("UNROLL_ROUNDS", if matches!(self.width, 7 | 8) { 1 } else { 2 })),
            _ => {}
        }
        if self.shares_taps() {
            macros.push(("SEVERAL_RESIDENT", self.resident_of_several()));
        }
        Kernels::new("interpolation", INTERPOLATION, self.bytes, &macros)
    }
}

/// Shared memory per block of the GPUs for which kernels are compiled in advance.
const DATA_CENTRE_SHARED: usize = 227 << 10;

const SPREADING: &str = concat!(
    include_str!("../../../kernels/segments.cuh"),
    include_str!("../../../kernels/gridding.cuh"),
    include_str!("../../../kernels/half_pairs.cuh"),
    include_str!("../../../kernels/spreading.cu")
);
const INTERPOLATION: &str = concat!(
    include_str!("../../../kernels/segments.cuh"),
    include_str!("../../../kernels/gridding.cuh"),
    include_str!("../../../kernels/interpolation.cu")
);

/// Returns the polynomial degree of the kernels: even, to limit their number.
pub fn padded_degree(degree: usize) -> usize {
    degree.next_multiple_of(2).max(4)
}

/// Returns the usual specialisations: windows for tolerances between 1e-2 and 1e-6.
pub fn usual_kernels() -> Vec<Kernels> {
    let mut all = vec![sort::kernels()];
    // Points are in fixed point for up to eight taps.
    let usual = [(2, 4, 8), (2, 8, 8), (3, 4, 8), (3, 8, 8), (3, 8, 9)];
    for samples in [0, BUCKET_SORT] {
        let sorting = |(axes, bytes, width)| SortConfig::new(axes, bytes, width, [1; 3], samples, DATA_CENTRE_SHARED);
        all.extend(usual.into_iter().flat_map(|sizes| sorting(sizes).all_kernels()));
    }
    for axes in [2, 3] {
        for width in 3..=9 {
            for degree in if width < 5 { [4, 6] } else { [6, 8] } {
                for tensor in [true, false] {
                    all.extend(SpreadingConfig::with(axes, width, 4, tensor).both_kernels(degree));
                }
                let gathering = match axes {
                    3 => InterpolationConfig::by_lane(width, 4, [8, 8]),
                    _ => InterpolationConfig::by_group(2, width, 4, [32, 1]),
                };
                all.push(gathering.kernels(degree));
            }
        }
    }
    all
}

/// Returns the kernels that [`Gridder::new`] uses.
pub fn plan_kernels<T: Real>(
    properties: &Properties,
    grid: &[usize],
    taps: &[Vec<f64>],
    samples: usize,
) -> Vec<Kernels> {
    let (axes, width, bytes) = (grid.len(), taps[0].len(), size_of::<T>());
    let degree = padded_degree(taps.len() - 1);
    let size = three(grid);
    let spreading = SpreadingConfig::new(axes, width, bytes, size, samples, properties.capability);
    let gathering = InterpolationConfig::new(axes, width, bytes, size, samples, properties.shared);
    let sorting = SortConfig::new(axes, bytes, width, size, samples, properties.shared);
    let mut all = vec![sort::kernels(), spreading.kernels(degree), gathering.kernels(degree)];
    all.extend(sorting.all_kernels());
    let of_tiles = spreading.for_few_samples(properties, &spreading.layout(size), samples);
    all.extend(of_tiles.map(|of_tiles| of_tiles.kernels(degree)));
    all
}

/// Returns all kernels for windows of this width, in real numbers of `bytes` bytes. `degree` is that of their taps.
pub fn kernels_of_width(width: usize, degree: usize, bytes: usize) -> Vec<Kernels> {
    let mut all = Vec::new();
    for axes in [2, 3] {
        let tensor: &[bool] = if bytes == 4 { &[true, false] } else { &[false] };
        let mut spreading: Vec<_> =
            tensor.iter().map(|&tensor| SpreadingConfig::with(axes, width, bytes, tensor)).collect();
        let tile = if axes == 3 { [4, 4] } else { [16, 1] };
        let gathering = InterpolationConfig { warps: 4, ..InterpolationConfig::by_group(axes, width, bytes, tile) };
        let mut kinds = vec![gathering, InterpolationConfig { staged: false, ..gathering }];
        if axes == 3 {
            kinds.push(InterpolationConfig::by_lane(width, bytes, tile));
        }
        if has_fixed_points(axes, bytes, width, [1; 3]) {
            spreading.extend_from_within(..);
            spreading[1].fixed = true;
            kinds.extend_from_within(..);
            kinds[3..].iter_mut().for_each(|gathering| gathering.fixed = true);
        }
        let degree = padded_degree(degree);
        all.extend(spreading.iter().flat_map(|spreading| spreading.both_kernels(degree)));
        all.extend(kinds.iter().map(|gathering| gathering.kernels(degree)));
    }
    all
}

#[cfg(test)]
mod tests {
    //! Spreading and interpolation without a GPU.

    use super::*;

    /// Tiles of more planes are for large grids, and for wide windows in double precision. If samples are even, tiles
    /// are not cut into segments where they keep a GPU busy and sums remain accurate.
    #[test]
    fn large_grids_have_tiles_of_more_planes() {
        for (axes, bytes, width, n, planes) in [
            (3, 4, 5, 360, 64),
            (3, 8, 7, 320, 64),
            (2, 4, 5, 5120, 64),
            (3, 4, 5, 192, 32),
            (3, 4, 5, 160, 16),
            (3, 4, 7, 96, 16),
            (2, 4, 5, 384, 16),
            (3, 8, 11, 216, 64),
            (3, 8, 11, 128, 32),
            (2, 8, 11, 448, 32),
            (2, 8, 11, 96, 16),
        ] {
            let size = if axes == 3 { [n; 3] } else { [n, 1, n] };
            for samples in [100_000, 8_400_000, 100_000_000] {
                let chosen = SpreadingConfig::new(axes, width, bytes, size, samples, (9, 0));
                let layout = chosen.layout(size);
                let what = format!("{axes} axes, {bytes} bytes, width {width}, {n} cells, {samples} samples");
                assert_eq!(layout.tile[2], planes, "{what}");
                let (pairs, tiles) = (layout.expected_pairs(width, samples), layout.estimated_tiles());
                let most = chosen.length(pairs as usize).usual as f64;
                assert!(tiles < ENOUGH_TILES || most >= (pairs / tiles).min(4096.0), "{what}: {most}");
            }
        }
    }

    #[test]
    fn interpolation_fits_every_gpu() {
        for (axes, bytes) in [(2, 4), (2, 8), (3, 4), (3, 8)] {
            for (width, shared) in
                (2..=16).flat_map(|width| [48, 99, 163, 227].map(|kilobytes| (width, kilobytes << 10)))
            {
                for samples in [1, 1000, 300_000, 10_000_000] {
                    let size = if axes == 3 { [130, 140, 150] } else { [600, 1, 700] };
                    let chosen = InterpolationConfig::new(axes, width, bytes, size, samples, shared);
                    let what =
                        format!("{axes} axes, {bytes} bytes, width {width}, {shared} of memory, {samples} samples");
                    assert!(chosen.shared() <= shared, "{what}: {}", chosen.shared());
                    let most = if chosen.by_lane { InterpolationConfig::SAMPLES_3D } else { 1024 };
                    assert!(chosen.segments(samples).samples <= most, "{what}");
                    // Cells of the tile are numbers of 16 bits.
                    assert!(!chosen.by_lane || chosen.strides()[1] * chosen.extent()[2] <= 1 << 16, "{what}");
                }
            }
        }
    }

    /// Values are sorted afterwards in 2D only, in single precision also if the cache holds each of several arrays.
    #[test]
    fn values_that_a_cache_does_not_hold_are_sorted_afterwards() {
        // A cache of 6.4 million values in single precision; of each case, whether values are sorted if neighbours in
        // the input are never near each other, and if half of them are.
        let cache = 8 * 6_400_000;
        for (bytes, samples, arrays, sorted) in [
            (4, 3_000_000, 1, [false, false]),
            (4, 3_300_000, 1, [true, true]),
            (4, 1_000_000, 2, [false, false]),
            (4, 1_300_000, 2, [true, false]),
            (4, 1_700_000, 2, [true, true]),
            (4, 900_000, 3, [true, false]),
            (4, 700_000, 32, [false, false]),
            (8, 700_000, 3, [false, false]),
            (8, 900_000, 2, [true, false]),
        ] {
            let config = InterpolationConfig::new(2, 6, bytes, [480, 1, 480], samples, DATA_CENTRE_SHARED);
            let [random, spokes] = [0, samples as u64 / 2]
                .map(|near| config.restores(samples, arrays, cache) && !config.is_local(near, samples, cache));
            assert_eq!([random, spokes], sorted, "{bytes} bytes, {samples} samples, {arrays} arrays");
        }
        let spatial = InterpolationConfig::new(3, 6, 4, [480; 3], 10_000_000, DATA_CENTRE_SHARED);
        assert!(!spatial.restores(10_000_000, 4, cache));
    }

    /// In double precision a lane sums a whole sample only if tiles have many.
    #[test]
    fn lanes_sum_samples_if_tiles_have_enough() {
        let by_lane = |bytes, samples| {
            let chosen = InterpolationConfig::new(3, 7, bytes, [320; 3], samples, DATA_CENTRE_SHARED);
            (chosen.staged, chosen.by_lane)
        };
        assert_eq!([1000, 1_000_000, 8_000_000].map(|n| by_lane(4, n)), [(false, false), (true, true), (true, true)]);
        assert_eq!([1000, 1_000_000, 8_000_000].map(|n| by_lane(8, n)), [(false, false), (true, false), (true, true)]);
    }
}
