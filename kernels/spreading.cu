// Spreads samples onto the oversampled grid.
//
// The samples are sorted by samples.cu. Each tile of the grid has a list of the samples whose windows touch it. The
// samples are in the order of their windows' first planes along z. One warp works through a list. A lane sums columns
// of cells along z, and keeps in registers as many planes as the window is long. When a window starts at a higher plane
// than the previous one, the lane writes the planes below it, which no later sample reaches. Long lists are cut into
// segments. Each segment writes its own planes, and `sum_segments` adds them. No sum is atomic, so that results are
// repeatable.
//
// Macros from the plan, and those of gridding.cuh:
//   ROWS            cells of y that a lane holds (1 in 2D)
//   ARRAYS          arrays that a warp spreads together
//   WARPS           warps per block
//   RESIDENT        blocks per multiprocessor that registers must allow
//   WARP_BYTES      shared memory of a warp in bytes, which the host allocates for `spread_tiles`
// TENSOR compiles it for tensor cores; ROWS is then 1.
// TOGETHER compiles `spread_tiles` instead of `spread`.

// Lanes of a warp along x; the others go along y.
#define LANES_X (DIM == 3 ? 8 : 32)
#define CELLS_Y (DIM == 3 ? 4 * ROWS : 1)

// Returns the start of a window relative to a tile that it touches: negative if it starts before the tile.
__device__ __forceinline__ int relative_start(u32 start, u32 tile_start, const layout &grid, int axis)
{
    int from = (int)start - (int)tile_start;
    if (from >= (int)grid.tile[axis]) from -= grid.size[axis];
    return from;
}

// Values in the order of the points; blockIdx.y is an array. The check is of the values.
extern "C" __global__ void __launch_bounds__(256)
sort_values(const cplx *values, const u32 *order, u64 n, cplx *sorted, input_check check)
{
    begin_kernel();
    const u64 i = (u64)blockIdx.x * 256 + threadIdx.x;
    if (i < n) {
        const cplx value = values[blockIdx.y * n + order[i]];
        check_number(check, value);
        sorted[blockIdx.y * n + i] = value;
    }
    __syncthreads();
    if (threadIdx.x == 0) end_check(check, gridDim.x * gridDim.y);
}

#define PLANE_CELLS (32 * ROWS)
// Segments whose planes are read before any is added, and warps that share the segments of one plane.
#define SUM_AHEAD 8
#define SUM_WARPS 16

// A lane's cells of plane z, summed over segments first to end in their order.
__device__ __forceinline__ void add_planes(const segment *segments, const u64 *slots, u64 first, u64 end, u32 z,
                                           const cplx *partial, u64 partial_planes, double re[ROWS], double im[ROWS])
{
    const u32 lane = threadIdx.x & 31;
    #pragma unroll
    for (int r = 0; r < ROWS; r++) re[r] = im[r] = 0;
    for (u64 s = first; s < end; s += SUM_AHEAD) {
        const cplx *from[SUM_AHEAD];
        bool exists[SUM_AHEAD];
        #pragma unroll
        for (int i = 0; i < SUM_AHEAD; i++) {
            const u64 number = s + i < end ? s + i : s;
            const segment part = segments[number];
            const u32 above = z - part.plane;
            exists[i] = s + i < end && above < part.planes;
            from[i] = partial + (blockIdx.y * partial_planes + slots[number] + above) * PLANE_CELLS + lane;
        }
        cplx value[SUM_AHEAD][ROWS];
        #pragma unroll
        for (int i = 0; i < SUM_AHEAD; i++)
            #pragma unroll
            for (int r = 0; r < ROWS; r++) {
                value[i][r].x = value[i][r].y = 0;
                if (exists[i]) value[i][r] = from[i][32 * r];
            }
        #pragma unroll
        for (int i = 0; i < SUM_AHEAD; i++)
            #pragma unroll
            for (int r = 0; r < ROWS; r++) {
                re[r] += value[i][r].x;
                im[r] += value[i][r].y;
            }
    }
}

// Sums over the warps of a block, for the first warp.
__device__ __forceinline__ void add_warps(double re[ROWS], double im[ROWS])
{
    __shared__ double sums[SUM_WARPS][PLANE_CELLS][2];
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    #pragma unroll
    for (int r = 0; r < ROWS; r++) {
        sums[warp][32 * r + lane][0] = re[r];
        sums[warp][32 * r + lane][1] = im[r];
        re[r] = im[r] = 0;
    }
    __syncthreads();
    if (warp != 0) return;
    for (int w = 0; w < SUM_WARPS; w++) {
        #pragma unroll
        for (int r = 0; r < ROWS; r++) {
            re[r] += sums[w][32 * r + lane][0];
            im[r] += sums[w][32 * r + lane][1];
        }
    }
}

// Writes a lane's cells of plane z of a tile to the grid.
__device__ __forceinline__ void write_plane(const layout &grid, const corner &tile, u32 z, const double re[ROWS],
                                            const double im[ROWS], cplx *cells)
{
    const u32 lane = threadIdx.x & 31, x = lane % LANES_X, y = lane / LANES_X;
    const u64 plane = (u64)grid.size[0] * grid.size[1];
    #pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const u32 row = y + 4 * r;
        if (x >= grid.tile[0] || tile.x + x >= grid.size[0] || row >= grid.tile[1] || tile.y + row >= grid.size[1])
            continue;
        cplx value;
        value.x = (real)re[r];
        value.y = (real)im[r];
        cells[blockIdx.y * plane * grid.size[2] + (tile.z + z) * plane + (u64)(tile.y + row) * grid.size[0]
              + tile.x + x] = value;
    }
}

// Sums the segments' planes of cut tiles, in the order of the segments, in double precision; blockIdx.y is an array.
// The first `few` tiles of `cuts` have few segments: a warp sums a plane. The last tiles of `cuts` have many: the warps
// of a block share a plane.
extern "C" __global__ void __launch_bounds__(32 * SUM_WARPS)
sum_segments(layout grid, const segment *segments, const u64 *slots, const cut_tile *cuts, u32 few, const cplx *partial,
             u64 partial_planes, cplx *cells)
{
    begin_kernel();
    const u32 warp = threadIdx.x / 32;
    const u32 blocks_few = (grid.tile[2] + SUM_WARPS - 1) / SUM_WARPS, all_few = few * blocks_few;
    const bool shared = blockIdx.x >= all_few;
    const u32 nth = shared ? (blockIdx.x - all_few) / grid.tile[2] : blockIdx.x / blocks_few;
    const u32 z = shared ? (blockIdx.x - all_few) % grid.tile[2] : blockIdx.x % blocks_few * SUM_WARPS + warp;
    const cut_tile cut = cuts[shared ? (u64)grid.tiles[0] * grid.tiles[1] * grid.tiles[2] - 1 - nth : nth];
    const corner tile = corner_of(grid, cut.tile);
    if (z >= min(grid.tile[2], grid.size[2] - tile.z)) return;
    const u64 first = cut.segment + (shared ? (u64)cut.segments * warp / SUM_WARPS : 0);
    const u64 end = cut.segment + (shared ? (u64)cut.segments * (warp + 1) / SUM_WARPS : cut.segments);

    double re[ROWS], im[ROWS];
    add_planes(segments, slots, first, end, z, partial, partial_planes, re, im);
    if (shared) {
        add_warps(re, im);
        if (warp != 0) return;
    }
    write_plane(grid, tile, z, re, im, cells);
}

// Source and destination of spreading. The sums of a segment go to the grid or, if its tile is cut, to the planes of
// `partial` from its number in `slots` on. `values` are in the order of the points if `order` is null. The `arrays`
// arrays of n values follow each other, and so do their grids and their partial planes; blockIdx.y is ARRAYS of them.
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
    u32 count, arrays;
    input_check check;
};

#ifndef TENSOR

// A sample's record in shared memory: its taps along x and y at the tile's cells, the arrays' values, the taps along z.
#define AT_Y LANES_X
#define AT_VALUES (LANES_X + (DIM == 3 ? CELLS_Y : 0))
#define AT_Z (AT_VALUES + 2 * ARRAYS)
#define RECORD_REALS (AT_Z + W)
// An odd number of 16 bytes, so that lanes that write their records together use different banks.
#define PER_16 (16 / (int)sizeof(real))
#define RECORD (((RECORD_REALS + PER_16 - 1) / PER_16 | 1) * PER_16)
// The values and the taps along z, which all lanes read, in whole 16 bytes.
#define BROADCAST ((2 * ARRAYS + W + PER_16 - 1) / PER_16 * PER_16)

struct __align__(16) sixteen_bytes {
    real of[PER_16];
};

// Destination of a lane's cells, plane after plane.
struct destination {
    cplx *next[ARRAYS];
    int row_step;
    u64 plane_step;
    int first_plane, end_plane;
    bool inside[ROWS];
};

// Returns the destination: the grid or, for a segment of a cut tile, the planes of that segment.
__device__ __forceinline__ destination destination_of(const spreading &all, const corner &tile, const segment &part,
                                                      u64 slot)
{
    const layout &grid = all.grid;
    const u32 lane = threadIdx.x & 31, x = lane % LANES_X, y = lane / LANES_X, array0 = blockIdx.y * ARRAYS;
    destination to;
    if (part.planes) {
        to.first_plane = part.plane;
        to.end_plane = part.plane + (int)part.planes;
        to.row_step = 32;
        to.plane_step = PLANE_CELLS;
        #pragma unroll
        for (int a = 0; a < ARRAYS; a++)
            to.next[a] = all.partial + ((array0 + a) * all.partial_planes + slot) * PLANE_CELLS + lane;
        #pragma unroll
        for (int r = 0; r < ROWS; r++) to.inside[r] = true;
    } else {
        const u64 plane = (u64)grid.size[0] * grid.size[1], grid_cells = plane * grid.size[2];
        to.first_plane = 0;
        to.end_plane = min(grid.tile[2], grid.size[2] - tile.z);
        to.row_step = 4 * grid.size[0];
        to.plane_step = plane;
        const u64 at = tile.z * plane + (u64)(tile.y + y) * grid.size[0] + tile.x + x;
        #pragma unroll
        for (int a = 0; a < ARRAYS; a++) to.next[a] = all.cells + (array0 + a) * grid_cells + at;
        #pragma unroll
        for (int r = 0; r < ROWS; r++)
            to.inside[r] = x < grid.tile[0] && tile.x + x < grid.size[0] && y + 4 * r < grid.tile[1]
                && tile.y + y + 4 * r < grid.size[1];
    }
    return to;
}

// Writes the lowest planes of those in `sums`, until `plane` is the lowest; `now` is the previous lowest plane. (A
// structure of `sums` and `now` would keep the compiler from unrolling the loop.)
__device__ __forceinline__ void advance(cplx sums[ARRAYS][ROWS][W], int &now, int plane, destination &to, u32 array0,
                                        u32 arrays)
{
    while (now < plane) {
        if (now >= to.first_plane && now < to.end_plane) {
            #pragma unroll
            for (int a = 0; a < ARRAYS; a++) {
                if (ARRAYS > 1 && array0 + a >= arrays) break;
                #pragma unroll
                for (int r = 0; r < ROWS; r++)
                    if (to.inside[r]) to.next[a][r * to.row_step] = sums[a][r][0];
                to.next[a] += to.plane_step;
            }
        }
        #pragma unroll
        for (int a = 0; a < ARRAYS; a++)
            #pragma unroll
            for (int r = 0; r < ROWS; r++) {
                #pragma unroll
                for (int j = 0; j + 1 < W; j++) sums[a][r][j] = sums[a][r][j + 1];
                sums[a][r][W - 1].x = sums[a][r][W - 1].y = 0;
            }
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
    const u32 array0 = blockIdx.y * ARRAYS;
    #pragma unroll
    for (int i = 0; i < AT_VALUES / PER_16; i++) {
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
        const u32 place = all.order ? all.order[i] : i;
        const point p = all.points[i];
        z = relative_start(all.planes[i], tile.z, grid, 2);
        #pragma unroll
        for (int a = 0; a < ARRAYS; a++)
            if (ARRAYS == 1 || array0 + a < all.arrays) {
                const cplx value = all.values[(array0 + a) * all.n + place];
                check_number(all.check, value);
                broadcast[2 * a] = value.x;
                broadcast[2 * a + 1] = value.y;
            }
        taps_at(polynomials, variable_of(p.t[2]), broadcast + 2 * ARRAYS);
        const int x = relative_start(p.xy & 0xffff, tile.x, grid, 0), y = relative_start(p.xy >> 16, tile.y, grid, 1);
        write_taps<LANES_X>(polynomials, variable_of(p.t[0]), x, record);
        if (DIM == 3) write_taps<CELLS_Y>(polynomials, variable_of(p.t[1]), y, record + AT_Y);
    }
    #pragma unroll
    for (int i = 0; i < BROADCAST / PER_16; i++) {
        sixteen_bytes b;
        #pragma unroll
        for (int j = 0; j < PER_16; j++) b.of[j] = broadcast[i * PER_16 + j];
        *(sixteen_bytes *)(record + AT_VALUES + i * PER_16) = b;
    }
    return z;
}

// Adds a sample to the planes that a lane holds.
__device__ __forceinline__ void add_sample(const real *record, cplx sums[ARRAYS][ROWS][W])
{
    const u32 lane = threadIdx.x & 31, x = lane % LANES_X, y = lane / LANES_X;
    real broadcast[BROADCAST];
    #pragma unroll
    for (int i = 0; i < BROADCAST / PER_16; i++) {
        const sixteen_bytes b = *(const sixteen_bytes *)(record + AT_VALUES + i * PER_16);
        #pragma unroll
        for (int j = 0; j < PER_16; j++) broadcast[i * PER_16 + j] = b.of[j];
    }
    const real *taps = broadcast + 2 * ARRAYS;
    const real wx = record[x];
    #pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const real w = DIM == 3 ? wx * record[AT_Y + y + 4 * r] : wx;
        #pragma unroll
        for (int a = 0; a < ARRAYS; a++) {
            const real re = w * broadcast[2 * a], im = w * broadcast[2 * a + 1];
            #pragma unroll
            for (int j = 0; j < W; j++) {
                sums[a][r][j].x = fma(re, taps[j], sums[a][r][j].x);
                sums[a][r][j].y = fma(im, taps[j], sums[a][r][j].y);
            }
        }
    }
}

// Adds up to 32 samples, four at a time if they start at the same plane. z is where the lane's own sample starts.
__device__ __forceinline__ void add_batch(const real *records, u32 count, int z, cplx sums[ARRAYS][ROWS][W], int &now,
                                          destination &to, u32 array0, u32 arrays)
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
                if (moves >> i & 1) advance(sums, now, __shfl_sync(ALL, z, i), to, array0, arrays);
                add_sample(record, sums);
            }
        }
    }
    __syncwarp();
}

// Memory of a warp in shared memory.
#define WARP_REALS (32 * RECORD)

// Sums the samples of a segment.
__device__ __forceinline__ void spread_segment(const window_polynomials &polynomials, const spreading &all, u32 number,
                                               real *records)
{
    const u32 lane = threadIdx.x & 31, array0 = blockIdx.y * ARRAYS;
    const segment part = all.segments[number];
    const corner tile = corner_of(all.grid, part.tile);
    destination to = destination_of(all, tile, part, all.slots[number]);

    cplx sums[ARRAYS][ROWS][W];
    #pragma unroll
    for (int a = 0; a < ARRAYS; a++)
        #pragma unroll
        for (int r = 0; r < ROWS; r++)
            #pragma unroll
            for (int j = 0; j < W; j++) sums[a][r][j].x = sums[a][r][j].y = 0;
    int now = part.planes ? relative_start(all.planes[all.list[part.first]], tile.z, all.grid, 2) : 1 - W;
    for (u32 batch = 0; batch < part.count; batch += 32) {
        const u32 left = part.count - batch;
        const int z = write_record(polynomials, all, tile, part.first + batch + lane, lane < left,
                                   records + lane * RECORD);
        add_batch(records, left, z, sums, now, to, array0, all.arrays);
    }
    if (lane == 0) end_check(all.check, all.count * gridDim.y);
    advance(sums, now, to.end_plane, to, array0, all.arrays);
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
#define WARP_REALS (32 * ALL_ROWS + 8)

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

// Destination of the sums of a segment, in shared memory.
struct __align__(16) destination {
    cplx *first;
    u64 plane_step;
    u32 row_step;
    // Planes of the tile; `first` is in the first of them.
    int first_plane, end_plane;
    // Cells of the tile along x and y.
    u16 end_x, end_y;
};

// Returns the destination: the grid or, for a segment of a cut tile, the planes of that segment.
__device__ __forceinline__ destination destination_of(const spreading &all, const corner &tile, const segment &part,
                                                      u64 slot)
{
    const layout &grid = all.grid;
    if (part.planes)
        return {all.partial + (blockIdx.y * all.partial_planes + slot) * 32, 32, 8, (int)part.plane,
                (int)(part.plane + part.planes), 32, 4};
    const u64 plane = (u64)grid.size[0] * grid.size[1];
    return {all.cells + (blockIdx.y * grid.size[2] + tile.z) * plane + (u64)tile.y * grid.size[0] + tile.x, plane,
            grid.size[0], 0, (int)min(grid.tile[2], grid.size[2] - tile.z),
            (u16)min(grid.tile[0], grid.size[0] - tile.x), (u16)min(grid.tile[1], grid.size[1] - tile.y)};
}

// Writes the first group of planes. The group after the last becomes the last.
__device__ __forceinline__ void advance(const destination *shared, held_planes &held)
{
    const destination to = *shared;
    const u32 quad = (threadIdx.x & 31) / 4, x = DIM == 3 ? quad % 4 : quad, y = DIM == 3 ? quad / 4 : 0;
    const int z = held.first + threadIdx.x % 4;
    if (z >= to.first_plane && z < to.end_plane) {
        cplx *cells = to.first + (z - to.first_plane) * to.plane_step + y * to.row_step + x;
        #pragma unroll
        for (int q = 0; q < 4; q++) {
            const u32 over_x = DIM == 3 ? q % 2 * 4 : q * 8, over_y = DIM == 3 ? q / 2 * 2 : 0;
            cplx value;
            value.x = held.of[0][q / 2][q % 2 * 2];
            value.y = held.of[0][q / 2][q % 2 * 2 + 1];
            if (x + over_x < to.end_x && y + over_y < to.end_y) cells[over_y * to.row_step + over_x] = value;
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
    if (lane == 0) *to = destination_of(all, tile, part, all.slots[number]);
    __syncwarp();

    // While 32 samples are multiplied, the next 32 are loaded, the places of the values of the 32 after those, and the
    // list of the 32 after those.
    const u32 *next = list + part.first + lane;
    u32 left = part.count;
    u32 i = lane < left ? *next : 0;
    u32 later = lane + 32 < left ? next[32] : 0;
    sample s = load_sample(all.points, all.planes, values, i, order ? order[i] : i);
    i = later;
    u32 place = order ? order[i] : i;
    later = lane + 64 < left ? next[64] : 0;
    for (; left > 0; left = left > 32 ? left - 32 : 0) {
        const int z = lane < left ? relative_start(s.plane, tile.z, grid, 2) : 0x10000;
        u32 remaining = __ballot_sync(ALL, lane < left);
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
                if (lane + 32 < left) s = load_sample(all.points, all.planes, values, i, place);
                next += 32;
                i = later;
                place = order ? order[i] : i;
                later = lane + 96 < left ? next[64] : 0;
            }
            __syncwarp();
            add_batch(to, planes, taps, fitting, start, first_row, __uint_as_float((exponent - 21) << 23), held);
            __syncwarp();
        }
    }
    if (lane == 0) end_check(all.check, all.count * gridDim.y);
    while (held.first < to->end_plane) advance(to, held);
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
    __syncthreads();
    const corner tile = corner_of(all.grid, blockIdx.x);
    const u32 planes = min(all.grid.tile[2], all.grid.size[2] - tile.z);
    for (u32 z = warp; z < planes; z += warps) {
        double re[ROWS], im[ROWS];
        add_planes(all.segments, all.slots, first, end, z, all.partial, all.partial_planes, re, im);
        write_plane(all.grid, tile, z, re, im, all.cells);
    }
}

#endif
#endif
