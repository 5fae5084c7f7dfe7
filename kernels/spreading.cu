// Spreads samples onto the oversampled grid.
//
// The samples are sorted by samples.cu. Each tile of the grid has a list of the samples whose windows touch it. The
// samples are in the order of their windows' first planes along z. One warp works through a list. A lane sums columns
// of cells along z, and keeps in registers as many planes as the window is long. When a window starts at a higher plane
// than the previous one, the lane writes the planes below it, which no later sample reaches. Long lists are cut into
// segments, and `sum_segments` adds the planes that several of them touch. No sum is atomic, so that results are
// repeatable.
//
// Macros from the plan, and those of gridding.cuh:
//   WARPS           warps per block
//   RESIDENT        blocks per multiprocessor that registers must allow
//   WARP_BYTES      shared memory of a warp in bytes, which the host allocates for `spread_tiles`
// TENSOR compiles it for tensor cores.
// TOGETHER compiles `spread_tiles` instead of `spread`.

// Lanes of a warp along x; the others go along y.
#define LANES_X (DIM == 3 ? 8 : 32)
#define CELLS_Y (DIM == 3 ? 4 : 1)

// Returns the start of a window relative to a tile that it touches: negative if it starts before the tile.
__device__ __forceinline__ int relative_start(u32 start, u32 tile_start, const layout &grid, int axis)
{
    int from = (int)start - (int)tile_start;
    if (from >= (int)grid.tile[axis]) from -= grid.size[axis];
    return from;
}

// Segments whose planes are read before any is added, and warps that share the segments of one plane.
#define SUM_AHEAD 8
#define SUM_WARPS 16

// The number of planes that a segment shares with others below plane z.
__device__ __forceinline__ u32 shared_below(const segment &part, int z)
{
    return z - part.plane - (z < part.own_end ? 0 : part.own_end - part.own);
}

// A lane's segment of up to 32 of a tile, and the place of its planes in `partial`.
struct lane_segment {
    segment part;
    u64 slot;
};

// The segment of those from `first` on; those from `end` on have no planes.
__device__ __forceinline__ lane_segment segment_of_lane(const segment *segments, const u64 *slots, u64 first, u64 end)
{
    const u64 s = first + (threadIdx.x & 31);
    lane_segment mine = {};
    if (s < end) mine = {segments[s], slots[s]};
    return mine;
}

// Whether plane z belongs to one of these segments, which writes it to the grid.
__device__ __forceinline__ bool is_owned(const lane_segment &mine, int z)
{
    return __ballot_sync(ALL, z >= mine.part.own && z < mine.part.own_end) != 0;
}

// Whether a lane has a cell of the tile.
__device__ __forceinline__ bool has_cell(const layout &grid, const corner &tile)
{
    const u32 lane = threadIdx.x & 31, x = lane % LANES_X, y = lane / LANES_X;
    return x < grid.tile[0] && tile.x + x < grid.size[0] && y < grid.tile[1] && tile.y + y < grid.size[1];
}

// Adds a lane's cells of plane z of those segments that share it, in their order.
__device__ __forceinline__ void add_planes(const lane_segment &mine, bool has_cell, int z, const cplx *partial,
                                           double &re, double &im)
{
    // They follow each other, since the samples of a tile are sorted by their windows' first planes.
    const u32 bits = __ballot_sync(ALL, z >= mine.part.plane && z < mine.part.end);
    const u32 lane = threadIdx.x & 31, end = 32 - __clz(bits);
    const u64 place = mine.slot + shared_below(mine.part, z);
    for (u32 s = __ffs(bits) - 1; s < end; s += SUM_AHEAD) {
        cplx value[SUM_AHEAD];
        #pragma unroll
        for (u32 i = 0; i < SUM_AHEAD; i++) {
            const u64 plane = __shfl_sync(ALL, place, s + i);
            value[i].x = value[i].y = 0;
            if (has_cell && s + i < end) value[i] = partial[plane * 32 + lane];
        }
        #pragma unroll
        for (u32 i = 0; i < SUM_AHEAD; i++) {
            re += value[i].x;
            im += value[i].y;
        }
    }
}

// Writes a lane's cell of plane z of a tile to the grid.
__device__ __forceinline__ void write_plane(const layout &grid, const corner &tile, u32 z, double re, double im,
                                            cplx *cells)
{
    const u32 lane = threadIdx.x & 31, x = lane % LANES_X, y = lane / LANES_X;
    const u64 plane = (u64)grid.size[0] * grid.size[1];
    if (!has_cell(grid, tile)) return;
    cplx value;
    value.x = (real)re;
    value.y = (real)im;
    cells += (blockIdx.y * (u64)grid.size[2] + tile.z + z) * plane;
    cells[(u64)(tile.y + y) * grid.size[0] + tile.x + x] = value;
}

// Sums planes of a tile of up to 32 segments and writes them to the grid: `first`, and those `step` planes apart before
// `end`. A segment has written those that belong to it.
__device__ __forceinline__ void sum_planes(const layout &grid, const corner &tile, const lane_segment &mine,
                                           u32 first, u32 end, u32 step, const cplx *partial, cplx *cells)
{
    end = min(end, min(grid.tile[2], grid.size[2] - tile.z));
    for (u32 z = first; z < end; z += step) {
        if (is_owned(mine, z)) continue;
        double re = 0, im = 0;
        add_planes(mine, has_cell(grid, tile), z, partial, re, im);
        write_plane(grid, tile, z, re, im, cells);
    }
}

// The same for one plane of a tile of any number of segments, by a block.
__device__ __forceinline__ void sum_plane(const layout &grid, const corner &tile, const segment *segments,
                                          const u64 *slots, const cut_tile &cut, u32 z, const cplx *partial,
                                          cplx *cells)
{
    __shared__ double sums[SUM_WARPS][32][2];
    __shared__ bool owned[SUM_WARPS];
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    bool has_owner = false;
    double re = 0, im = 0;
    for (u32 s = 32 * warp; s < cut.segments; s += 32 * SUM_WARPS) {
        const lane_segment mine = segment_of_lane(segments, slots, cut.segment + s, cut.segment + cut.segments);
        if (is_owned(mine, z)) {
            has_owner = true;
        } else {
            add_planes(mine, has_cell(grid, tile), z, partial, re, im);
        }
    }
    sums[warp][lane][0] = re;
    sums[warp][lane][1] = im;
    owned[warp] = has_owner;
    __syncthreads();
    if (warp != 0) return;
    re = im = 0;
    for (int w = 0; w < SUM_WARPS; w++) {
        if (owned[w]) return;
        re += sums[w][lane][0];
        im += sums[w][lane][1];
    }
    write_plane(grid, tile, z, re, im, cells);
}

// Sums the planes that the segments of cut tiles share, in double precision; blockIdx.y is an array. The first `few`
// tiles of `cuts` have at most 32 segments: a warp sums `each` planes. The last tiles of `cuts` have more: the warps of
// a block share a plane.
extern "C" __global__ void __launch_bounds__(32 * SUM_WARPS)
sum_segments(layout grid, const segment *segments, const u64 *slots, const cut_tile *cuts, u32 few, u32 each,
             const cplx *partial, u64 partial_planes, cplx *cells)
{
    begin_kernel();
    const u32 per_tile = (grid.tile[2] + each - 1) / each, blocks_few = (few * per_tile + SUM_WARPS - 1) / SUM_WARPS;
    partial += blockIdx.y * partial_planes * 32;
    if (blockIdx.x < blocks_few) {
        const u32 nth = blockIdx.x * SUM_WARPS + threadIdx.x / 32, first = nth % per_tile * each;
        if (nth >= few * per_tile) return;
        const cut_tile cut = cuts[nth / per_tile];
        const lane_segment mine = segment_of_lane(segments, slots, cut.segment, cut.segment + cut.segments);
        sum_planes(grid, corner_of(grid, cut.tile), mine, first, first + each, 1, partial, cells);
    } else {
        const u32 nth = (blockIdx.x - blocks_few) / grid.tile[2], z = (blockIdx.x - blocks_few) % grid.tile[2];
        const cut_tile cut = cuts[(u64)grid.tiles[0] * grid.tiles[1] * grid.tiles[2] - 1 - nth];
        const corner tile = corner_of(grid, cut.tile);
        if (tile.z + z < grid.size[2]) sum_plane(grid, tile, segments, slots, cut, z, partial, cells);
    }
}

// Source and destination of spreading. The value of point i is at `order[i]`. The sums of a segment go to the grid,
// those of planes that it shares to `partial`, from the plane of its number in `slots` on.
// The arrays of n values follow each other, and so do their grids and their partial planes; blockIdx.y is an array.
// `schedule` has the order of work of the `count` segments.
struct spreading {
    layout grid;
    const point *points;
    const u16 *planes;
    const u32 *list, *order;
    const segment *segments;
    const u32 *schedule;
    const u64 *slots;
    const cplx *values;
    cplx *cells, *partial;
    u64 n, partial_planes;
    u32 count;
    input_check check;
};

// Destination of the sums of a segment, in shared memory.
struct __align__(16) destination {
    // The first cell of the tile in the grid, and the first of the segment in `partial`.
    cplx *cells, *partial;
    u64 plane_step;
    u32 row_step;
    // Planes of the tile: those of the segment, and those that no other segment touches.
    int first, end, own, own_end;
    // Cells of the tile along x and y.
    u16 end_x, end_y;
};

__device__ __forceinline__ destination destination_of(const spreading &all, const corner &tile, u32 number)
{
    const layout &grid = all.grid;
    const segment part = all.segments[number];
    const u64 plane = (u64)grid.size[0] * grid.size[1];
    const int planes = min(grid.tile[2], grid.size[2] - tile.z);
    destination to;
    to.cells = all.cells + (blockIdx.y * (u64)grid.size[2] + tile.z) * plane + (u64)tile.y * grid.size[0] + tile.x;
    to.partial = all.partial + (blockIdx.y * all.partial_planes + all.slots[number]) * 32;
    to.plane_step = plane;
    to.row_step = grid.size[0];
    to.end_x = min(grid.tile[0], grid.size[0] - tile.x);
    to.end_y = min(grid.tile[1], grid.size[1] - tile.y);
    const bool is_cut = part.end > 0;
    to.first = part.plane;
    to.end = is_cut ? min((int)part.end, planes) : planes;
    to.own = part.own;
    to.own_end = is_cut ? part.own_end : planes;
    return to;
}

// The first cell of a plane, and the cells from a row to the next one.
struct plane_cells {
    cplx *first;
    u32 row_step;
};

__device__ __forceinline__ plane_cells plane_of(const destination &to, int z)
{
    if (z >= to.own && z < to.own_end) return {to.cells + z * to.plane_step, to.row_step};
    return {to.partial + (z - to.first - (z < to.own ? 0 : to.own_end - to.own)) * 32, LANES_X};
}

#ifndef TENSOR

// A sample's record in shared memory: its taps along x and y at the tile's cells, its value, the taps along z.
#define AT_Y LANES_X
#define AT_VALUE (LANES_X + (DIM == 3 ? CELLS_Y : 0))
#define AT_Z (AT_VALUE + 2)
#define RECORD_REALS (AT_Z + W)
// An odd number of 16 bytes, so that lanes that write their records together use different banks.
#define PER_16 (16 / (int)sizeof(real))
#define RECORD (((RECORD_REALS + PER_16 - 1) / PER_16 | 1) * PER_16)
// The value and the taps along z, which all lanes read, in whole 16 bytes.
#define BROADCAST ((2 + W + PER_16 - 1) / PER_16 * PER_16)

struct __align__(16) sixteen_bytes {
    real of[PER_16];
};

// Writes the lowest planes of those in `sums`, until `plane` is the lowest; `now` is the previous lowest plane. (A
// structure of `sums` and `now` would keep the compiler from unrolling the loop.)
__device__ __forceinline__ void advance(cplx sums[W], int &now, int plane, const destination *shared)
{
    const destination to = *shared;
    const u32 lane = threadIdx.x & 31, x = lane % LANES_X, y = lane / LANES_X;
    while (now < plane) {
        if (now >= to.first && now < to.end) {
            const plane_cells cells = plane_of(to, now);
            if (x < to.end_x && y < to.end_y) cells.first[y * cells.row_step + x] = sums[0];
        }
        #pragma unroll
        for (int j = 0; j + 1 < W; j++) sums[j] = sums[j + 1];
        sums[W - 1].x = sums[W - 1].y = 0;
        now++;
    }
}

// Writes the taps of one axis that fall on the tile.
template <int CELLS>
__device__ __forceinline__ void write_taps(const window_polynomials &polynomials, real t, int from, real *record)
{
    real taps[W];
    taps_at(polynomials, t, taps);
    #pragma unroll
    for (int j = 0; j < W; j++)
        if ((u32)(from + j) < CELLS) record[from + j] = taps[j];
}

// Writes the record of sample `at` of the list, or zeros past its end. Returns the window's first plane in the tile.
__device__ __forceinline__ int write_record(const window_polynomials &polynomials, const spreading &all,
                                            const corner &tile, u64 at, bool exists, real *record)
{
    const layout &grid = all.grid;
    #pragma unroll
    for (int i = 0; i < AT_VALUE / PER_16; i++) {
        sixteen_bytes zeros;
        #pragma unroll
        for (int j = 0; j < PER_16; j++) zeros.of[j] = 0;
        *(sixteen_bytes *)(record + i * PER_16) = zeros;
    }
    real broadcast[BROADCAST];
    #pragma unroll
    for (int i = 0; i < BROADCAST; i++) broadcast[i] = 0;
    int z = 0x7fffffff;
    if (exists) {
        const u32 i = all.list[at];
        const point p = all.points[i];
        z = relative_start(all.planes[i], tile.z, grid, 2);
        const cplx value = all.values[blockIdx.y * all.n + all.order[i]];
        check_number(all.check, value);
        broadcast[0] = value.x;
        broadcast[1] = value.y;
        taps_at(polynomials, variable_of(p.t[2]), broadcast + 2);
        const int x = relative_start(p.xy & 0xffff, tile.x, grid, 0), y = relative_start(p.xy >> 16, tile.y, grid, 1);
        write_taps<LANES_X>(polynomials, variable_of(p.t[0]), x, record);
        if (DIM == 3) write_taps<CELLS_Y>(polynomials, variable_of(p.t[1]), y, record + AT_Y);
    }
    #pragma unroll
    for (int i = 0; i < BROADCAST / PER_16; i++) {
        sixteen_bytes b;
        #pragma unroll
        for (int j = 0; j < PER_16; j++) b.of[j] = broadcast[i * PER_16 + j];
        *(sixteen_bytes *)(record + AT_VALUE + i * PER_16) = b;
    }
    return z;
}

// Adds a sample to the planes that a lane holds.
__device__ __forceinline__ void add_sample(const real *record, cplx sums[W])
{
    const u32 lane = threadIdx.x & 31, x = lane % LANES_X, y = lane / LANES_X;
    real broadcast[BROADCAST];
    #pragma unroll
    for (int i = 0; i < BROADCAST / PER_16; i++) {
        const sixteen_bytes b = *(const sixteen_bytes *)(record + AT_VALUE + i * PER_16);
        #pragma unroll
        for (int j = 0; j < PER_16; j++) broadcast[i * PER_16 + j] = b.of[j];
    }
    const real *taps = broadcast + 2;
    const real w = DIM == 3 ? record[x] * record[AT_Y + y] : record[x];
    const real re = w * broadcast[0], im = w * broadcast[1];
    #pragma unroll
    for (int j = 0; j < W; j++) {
        sums[j].x = fma(re, taps[j], sums[j].x);
        sums[j].y = fma(im, taps[j], sums[j].y);
    }
}

// Adds up to 32 samples, four at a time if they start at the same plane. z is where the lane's own sample starts.
__device__ __forceinline__ void add_batch(const real *records, u32 count, int z, cplx sums[W], int &now,
                                          const destination *to)
{
    const u32 lane = threadIdx.x & 31;
    const int before = __shfl_up_sync(ALL, z, 1);
    const u32 moves = __ballot_sync(ALL, lane < count && z > (lane ? before : now));
    __syncwarp();
    const u32 end = count < 32 ? count : 32;
    for (u32 s = 0; s < end; s += 4) {
        const real *record = records + s * RECORD;
        if ((moves >> s & 15) == 0) {
            #pragma unroll
            for (int i = 0; i < 4; i++) add_sample(record + i * RECORD, sums);
        } else {
            #pragma unroll 1
            for (u32 i = s; i < s + 4 && i < end; i++, record += RECORD) {
                if (moves >> i & 1) advance(sums, now, __shfl_sync(ALL, z, i), to);
                add_sample(record, sums);
            }
        }
    }
    __syncwarp();
}

// Memory of a warp in shared memory: the records and a `destination`.
#define WARP_REALS (32 * RECORD + sizeof(destination) / sizeof(real))

// Sums the samples of a segment.
__device__ __forceinline__ void spread_segment(const window_polynomials &polynomials, const spreading &all, u32 number,
                                               real *records)
{
    const u32 lane = threadIdx.x & 31;
    const segment part = all.segments[number];
    const corner tile = corner_of(all.grid, part.tile);
    destination *to = (destination *)(records + 32 * RECORD);
    if (lane == 0) *to = destination_of(all, tile, number);
    __syncwarp();

    cplx sums[W];
    #pragma unroll
    for (int j = 0; j < W; j++) sums[j].x = sums[j].y = 0;
    int now = part.end ? relative_start(all.planes[all.list[part.first]], tile.z, all.grid, 2) : 1 - W;
    for (u32 batch = 0; batch < part.count; batch += 32) {
        const u32 left = part.count - batch;
        const int z = write_record(polynomials, all, tile, part.first + batch + lane, lane < left,
                                   records + lane * RECORD);
        add_batch(records, left, z, sums, now, to);
    }
    if (lane == 0) end_check(all.check, all.count * gridDim.y);
    advance(sums, now, to->end, to);
}

// Tensor cores sum 16 samples at a time from capability 8.0 on.
#elif __CUDA_ARCH__ >= 800

// For each tile, spreading is a product of matrices: [cells of x, y][samples] times [samples][cells of z, re and im].
// The taps of 32 samples at a time are in shared memory at the tile's cells, [half of the samples][cell][sample].
#define TILE_CELLS_X (DIM == 3 ? 8 : 32)
#define TILE_CELLS_Y (DIM == 3 ? 4 : 0)
// Maximum number of groups of four planes that a window touches. A warp holds their sums.
#define GROUPS ((W + 2) / 4 + 1)
// The windows of a batch start in this many planes. In a tile of 16 planes all windows do.
#define STARTS (16 + 4 * (GROUPS - 1))
// Rows of 16 samples. Around those of x and y are rows for taps outside the tile, never read. As the number of all is
// odd, the halves of the samples are in different banks.
#define TAPS_X (W - 1)
#define TAPS_Y (TAPS_X + TILE_CELLS_X + W - 1)
#define TAPS_Z (DIM == 3 ? TAPS_Y + TILE_CELLS_Y + W - 1 : TAPS_Y)
#define ROWS_Z ((STARTS + W + 2) / 4 * 4)
#define TAPS_VALUES (TAPS_Z + ROWS_Z)
#define ALL_ROWS ((TAPS_VALUES + 2) | 1)
// Memory of a warp in shared memory: the rows and a `destination`.
#define WARP_REALS (32 * ALL_ROWS + sizeof(destination) / sizeof(real))

struct __align__(16) four_floats {
    float of[4];
};

// The place of a lane's sample in row 0.
__device__ __forceinline__ float *column_of(float *taps, u32 lane)
{
    return taps + lane / 16 * (16 * ALL_ROWS) + lane % 16;
}

// Clears four rows.
__device__ __forceinline__ void clear_rows(float *taps, int first)
{
    const u32 lane = threadIdx.x & 31;
    const four_floats zeros = {{0, 0, 0, 0}};
    *(four_floats *)(taps + lane / 16 * (16 * ALL_ROWS) + first * 16 + 4 * (lane % 16)) = zeros;
}

// Writes the taps of one sample, a pair of each axis at a time, to the rows of its window; those along x times 2^11.
__device__ __forceinline__ void write_taps(const window_polynomials &polynomials, const point &p, float *taps, int x,
                                           int y, int z)
{
    float *to[3] = {taps + (TAPS_X + x) * 16, taps + (TAPS_Z + z) * 16, taps + (TAPS_Y + y) * 16};
    const float t[3] = {p.t[0], p.t[2], p.t[1]};
    #pragma unroll
    for (int j = 0; j < HALF; j++)
        #pragma unroll
        for (int axis = 0; axis < DIM; axis++) {
            const float s = t[axis] * t[axis], scale = axis ? 1 : 1 << 11;
            float even = polynomials.of[DEGREE & ~1][j];
            #pragma unroll
            for (int k = (DEGREE & ~1) - 2; k >= 0; k -= 2) even = fmaf(even, s, polynomials.of[k][j]);
            if (2 * j + 1 == W) {
                to[axis][j * 16] = even * scale;
                continue;
            }
            float odd = polynomials.of[(DEGREE - 1) | 1][j];
            #pragma unroll
            for (int k = ((DEGREE - 1) | 1) - 2; k >= 1; k -= 2) odd = fmaf(odd, s, polynomials.of[k][j]);
            to[axis][j * 16] = fmaf(odd, t[axis], even) * scale;
            to[axis][(W - 1 - j) * 16] = fmaf(-odd, t[axis], even) * scale;
        }
}

struct sample {
    point p;
    u32 plane;
    cplx value;
};

// `place` is the place of the value of point i.
__device__ __forceinline__ sample load_sample(const point *points, const u16 *plane_of, const cplx *values, u32 i,
                                              u32 place)
{
    return {points[i], plane_of[i], values[place]};
}

// Writes the taps and `scale` times the values of up to 32 samples, one per lane, and zeros for the other lanes. z is
// the row of the first tap of the lane's sample along z, and `end` the end of the rows of z that are read.
__device__ __forceinline__ void write_batch(const window_polynomials &polynomials, const layout &grid,
                                            const corner &tile, const sample &s, bool exists, int z, int end,
                                            float scale, float *taps, const input_check &check)
{
    float *column = column_of(taps, threadIdx.x & 31);
    #pragma unroll
    for (int row = 0; row < TILE_CELLS_X; row += 4) clear_rows(taps, TAPS_X + row);
    #pragma unroll
    for (int row = 0; row < TILE_CELLS_Y; row += 4) clear_rows(taps, TAPS_Y + row);
    #pragma unroll
    for (int row = 0; row < ROWS_Z; row += 4)
        if (row < end) clear_rows(taps, TAPS_Z + row);
    if (!exists) column[TAPS_VALUES * 16] = column[(TAPS_VALUES + 1) * 16] = 0;
    __syncwarp();
    if (exists) {
        check_number(check, s.value);
        const int x = relative_start(s.p.xy & 0xffff, tile.x, grid, 0);
        const int y = relative_start(s.p.xy >> 16, tile.y, grid, 1);
        write_taps(polynomials, s.p, column, x, y, z);
        column[TAPS_VALUES * 16] = s.value.x * scale;
        column[(TAPS_VALUES + 1) * 16] = s.value.y * scale;
    }
}

// The left matrix for 16 samples, [half of the cells]: products of taps along x and y. A lane has four cells: in 3D two
// along x, 4 apart, in two rows, 2 apart; in 2D four along x, 8 apart.
__device__ __forceinline__ void multiply_taps(const float *at, u32 quad, uint4 high[2], uint4 low[2])
{
    four_floats wx[2], wy[2];
    #pragma unroll
    for (int i = 0; i < 2 && DIM == 3; i++) {
        wx[i] = *(const four_floats *)(at + (TAPS_X + quad % 4 + 4 * i) * 16);
        wy[i] = *(const four_floats *)(at + (TAPS_Y + quad / 4 + 2 * i) * 16);
    }
    #pragma unroll
    for (int half = 0; half < 2; half++) {
        // Of two cells, the first two and the last two samples.
        uint2 parts[2][2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
            four_floats w;
            if (DIM == 3) {
                #pragma unroll
                for (int k = 0; k < 4; k++) w.of[k] = wx[i].of[k] * wy[half].of[k];
            } else {
                w = *(const four_floats *)(at + (TAPS_X + 8 * (2 * half + i) + quad) * 16);
            }
            parts[i][0] = split(w.of[0], w.of[1]);
            parts[i][1] = split(w.of[2], w.of[3]);
        }
        high[half] = {parts[0][0].x, parts[1][0].x, parts[0][1].x, parts[1][1].x};
        low[half] = {parts[0][0].y, parts[1][0].y, parts[0][1].y, parts[1][1].y};
    }
}

// Sums 16 samples in a group of planes: the left matrix times the products of taps along z and values.
__device__ __forceinline__ void multiply(const uint4 high[2], const uint4 low[2], const four_floats &wz,
                                         const four_floats &values, float sums[2][4])
{
    #pragma unroll
    for (int i = 0; i < 8; i++) sums[i / 4][i % 4] = 0;
    const uint2 first = split(wz.of[0] * values.of[0], wz.of[1] * values.of[1]);
    const uint2 last = split(wz.of[2] * values.of[2], wz.of[3] * values.of[3]);
    #pragma unroll
    for (int half = 0; half < 2; half++) product(sums[half], low[half], first.x, last.x);
    #pragma unroll
    for (int half = 0; half < 2; half++) product(sums[half], high[half], first.y, last.y);
    #pragma unroll
    for (int half = 0; half < 2; half++) product(sums[half], high[half], first.x, last.x);
}

// A lane's sums: of each group of four planes plane `lane % 4`, and there the cells of `multiply_taps`,
// [half of the cells][re, im of two cells].
struct held_planes {
    float of[GROUPS][2][4];
    // The first plane of the first group.
    int first;
};

// Writes the first group of planes. The group after the last becomes the last.
__device__ __forceinline__ void advance(const destination *shared, held_planes &held)
{
    const destination to = *shared;
    const u32 quad = (threadIdx.x & 31) / 4, x = DIM == 3 ? quad % 4 : quad, y = DIM == 3 ? quad / 4 : 0;
    const int z = held.first + threadIdx.x % 4;
    if (z >= to.first && z < to.end) {
        const plane_cells cells = plane_of(to, z);
        cplx *at = cells.first + y * cells.row_step + x;
        #pragma unroll
        for (int q = 0; q < 4; q++) {
            const u32 over_x = DIM == 3 ? q % 2 * 4 : q * 8, over_y = DIM == 3 ? q / 2 * 2 : 0;
            cplx value;
            value.x = held.of[0][q / 2][q % 2 * 2];
            value.y = held.of[0][q / 2][q % 2 * 2 + 1];
            if (x + over_x < to.end_x && y + over_y < to.end_y) at[over_y * cells.row_step + over_x] = value;
        }
    }
    #pragma unroll
    for (int g = 0; g < GROUPS; g++)
        #pragma unroll
        for (int i = 0; i < 8; i++) held.of[g][i / 4][i % 4] = g + 1 < GROUPS ? held.of[g + 1][i / 4][i % 4] : 0;
    held.first += 4;
}

// The planes where the windows of a batch start, in ascending order: the first, those of lanes 15 and 16, the last.
struct starts {
    int first, lane_15, lane_16, last;
};

// Adds up to 32 samples times `unscale`, 16 at a time. `fitting`: the lanes that have one. `first_row` is the plane of
// the first row of taps along z. The order of 16 samples does not matter: each lane of a quad takes four in a row.
__device__ __forceinline__ void add_batch(const destination *to, int planes, const float *taps, u32 fitting,
                                          const starts &z, int first_row, float unscale, held_planes &held)
{
    const u32 lane = threadIdx.x & 31, in_quad = lane % 4, quad = lane / 4;
    #pragma unroll 1
    for (u32 part = 0; part < 32; part += 16) {
        if ((fitting >> part & 0xffff) == 0) continue;
        const int first = part ? max(z.lane_16, z.first) : z.first;
        const int end = min((part ? z.last : min(z.lane_15, z.last)) + W, planes);
        const float *at = taps + part * ALL_ROWS + 4 * in_quad;
        uint4 high[2], low[2];
        multiply_taps(at, quad, high, low);
        const four_floats values = *(const four_floats *)(at + (TAPS_VALUES + quad % 2) * 16);
        // No later window starts before these, so that the groups below theirs are complete.
        int from = max(first, 0) & ~3, lowest = from;
        #pragma unroll 1
        while (true) {
            while (held.first < lowest) advance(to, held);
            const float *row = at + (TAPS_Z + held.first - first_row + quad / 2) * 16;
            #pragma unroll
            for (int g = 0; g < GROUPS; g++) {
                const int plane = held.first + 4 * g;
                if (plane >= end) break;
                if (plane < from) continue;
                const four_floats wz = *(const four_floats *)(row + 4 * 16 * g);
                // Sums of these samples alone, added in f32: tensor cores truncate, which is too inaccurate for long
                // sums.
                float sums[2][4];
                multiply(high, low, wz, values, sums);
                #pragma unroll
                for (int i = 0; i < 8; i++) {
                    float &of_cell = held.of[g][i / 4][i % 4];
                    of_cell = fmaf(sums[i / 4][i % 4], unscale, of_cell);
                }
            }
            from = held.first + 4 * GROUPS;
            lowest = held.first + 4;
            if (from >= end) break;
        }
    }
}

// Sums the samples of a segment, in single precision.
__device__ __forceinline__ void spread_segment(const window_polynomials &polynomials, const spreading &all, u32 number,
                                               float *taps)
{
    const u32 lane = threadIdx.x & 31;
    const layout &grid = all.grid;
    const u32 *list = all.list, *order = all.order;
    const cplx *values = all.values + blockIdx.y * all.n;
    const segment part = all.segments[number];
    const corner tile = corner_of(grid, part.tile);
    const int planes = min(grid.tile[2], grid.size[2] - tile.z);

    held_planes held;
    #pragma unroll
    for (int g = 0; g < GROUPS; g++)
        #pragma unroll
        for (int i = 0; i < 8; i++) held.of[g][i / 4][i % 4] = 0;
    held.first = part.plane & ~3u;
    destination *to = (destination *)(taps + 32 * ALL_ROWS);
    if (lane == 0) *to = destination_of(all, tile, number);
    __syncwarp();

    // While 32 samples are multiplied, the next 32 are loaded, the places of the values of the 32 after those, and the
    // list of the 32 after those.
    const u64 first = part.first + lane;
    u32 i = lane < part.count ? list[first] : 0;
    u32 later = lane + 32 < part.count ? list[first + 32] : 0;
    sample s = load_sample(all.points, all.planes, values, i, order[i]);
    i = later;
    u32 place = order[i];
    later = lane + 64 < part.count ? list[first + 64] : 0;
    for (u32 done = 0; done < part.count; done += 32) {
        const bool exists = done + lane < part.count;
        const int z = exists ? relative_start(s.plane, tile.z, grid, 2) : 0x10000;
        u32 remaining = __ballot_sync(ALL, exists);
        // In a tile of few samples and many planes, the windows may start too far apart for one batch.
        #pragma unroll 1
        while (remaining) {
            starts start;
            start.first = __shfl_sync(ALL, z, __ffs(remaining) - 1);
            start.lane_15 = __shfl_sync(ALL, z, 15);
            start.lane_16 = __shfl_sync(ALL, z, 16);
            const int first_row = start.first & ~3;
            const bool fits = (remaining >> lane & 1) && z < first_row + STARTS;
            const u32 fitting = __ballot_sync(ALL, fits);
            remaining &= ~fitting;
            start.last = __shfl_sync(ALL, z, 31 - __clz(fitting));
            // f16 has few exponents. Therefore the values are scaled by a power of two to less than 2^11, and so are
            // the taps along x, which are at most 1.
            const u32 magnitude = fits ? max(__float_as_uint(fabsf(s.value.x)), __float_as_uint(fabsf(s.value.y))) : 0;
            const u32 exponent = max(__reduce_max_sync(ALL, magnitude) >> 23, 22u);
            write_batch(polynomials, grid, tile, s, fits, z - first_row, start.last + W - first_row,
                        __uint_as_float((264 - exponent) << 23), taps, all.check);
            if (!remaining) {
                const u32 next = done + lane + 32;
                if (next < part.count) s = load_sample(all.points, all.planes, values, i, place);
                i = later;
                place = order[i];
                later = next + 64 < part.count ? list[first + done + 96] : 0;
            }
            __syncwarp();
            add_batch(to, planes, taps, fitting, start, first_row, __uint_as_float((exponent - 21) << 23), held);
            __syncwarp();
        }
    }
    if (lane == 0) end_check(all.check, all.count * gridDim.y);
    while (held.first < to->end) advance(to, held);
}

#endif

#if !defined(TENSOR) || __CUDA_ARCH__ >= 800

static_assert(WARP_REALS * sizeof(real) == WARP_BYTES, "the host allocates as much shared memory as the kernels use");

#ifndef TOGETHER

// Spreads segments, a warp each.
extern "C" __global__ void __launch_bounds__(32 * WARPS, RESIDENT)
spread(window_polynomials polynomials, spreading all)
{
    begin_kernel();
    __shared__ __align__(16) real shared[WARPS][WARP_REALS];
    const u32 warp = threadIdx.x / 32;
    const u64 nth = (u64)blockIdx.x * WARPS + warp;
    if (nth < all.count) spread_segment(polynomials, all, all.schedule[nth], shared[warp]);
}

#else

// Spreads tiles of a few segments, a block each, and adds their segments as `sum_segments` does. A block has at least
// as many warps as its tile has segments. `firsts` has the first segments of all tiles.
extern "C" __global__ void __launch_bounds__(32 * WARPS, RESIDENT)
spread_tiles(window_polynomials polynomials, spreading all, const u64 *firsts)
{
    begin_kernel();
    extern __shared__ __align__(16) real shared[];
    const u32 warp = threadIdx.x / 32, warps = blockDim.x / 32;
    const u64 first = firsts[blockIdx.x], end = firsts[blockIdx.x + 1];
    if (first + warp < end) spread_segment(polynomials, all, (u32)first + warp, shared + warp * WARP_REALS);
    if (end - first == 1) return;
    const lane_segment mine = segment_of_lane(all.segments, all.slots, first, end);
    __syncthreads();
    sum_planes(all.grid, corner_of(all.grid, blockIdx.x), mine, warp, all.grid.tile[2], warps,
               all.partial + blockIdx.y * all.partial_planes * 32, all.cells);
}

#endif
#endif
