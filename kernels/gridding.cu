// Spreading samples onto the oversampled grid, and interpolating from it. Nothing is added atomically.
//
// Axes are x, y, z with x fastest; a 2D grid has x and z, its y is one cell with a window of one tap of value 1.
// Spread: each tile of the grid has a list of the samples whose windows touch it, ordered by where these start along z.
// One warp goes through a list: its lanes hold columns of cells, in registers as many planes as the window is long, and
// where a sample starts further along z than the one before, the planes that no later sample reaches are written. Long
// lists are cut into segments that write planes of their own, summed by `sum_segments`.
// Interpolate: samples are sorted by the tile where their windows start; a block copies the tile and the windows'
// overhang to shared memory, and groups of lanes sum one sample each.
//
// Macros: REAL, DOUBLE; DIM 2 or 3; W taps of the window (2 to 16); DEGREE of its polynomials, at least that of their
// coefficients. With ROWS the kernels that plan and spread: ROWS cells of y that a lane holds (1 in 2D), ARRAYS arrays that
// go through a list together, WARPS of a block, RESIDENT blocks that registers must allow on a multiprocessor; with TENSOR
// `spread_tensor` instead of `spread`, for tiles of EIGHTS times 8 planes (1 or 2), ROWS being 1. With STAGED `interpolate`:
// 1 where tiles go through shared memory; TILE_Y, TILE_Z of a tile, whose x is 16 cells (in 2D TILE_Y is along z);
// GATHER_WARPS of a block; UNROLL_ROUNDS. All but DIM, W, DEGREE and precision may be changed for speed.

typedef unsigned short u16;

#define ALL 0xffffffffu
#define WY (DIM == 3 ? W : 1)
// Lanes of a warp along x; the others go along y.
#define LANES_X (DIM == 3 ? 8 : 32)
#define CELLS_Y (DIM == 3 ? 4 * ROWS : 1)
#define HALF ((W + 1) / 2)

// A grid cut into tiles; the last of an axis may be cut short.
struct layout {
    u32 size[3], tile[3], tiles[3];
};

// Coefficients of the first half of the taps' polynomials, lowest power first; the others mirror them.
struct window_polynomials {
    real of[DEGREE + 1][HALF];
};

// The offset of a sample in the first cell of its window as the polynomials' variable, and that cell's x and y.
struct __align__(4 * sizeof(real)) point {
    real t[3];
    u32 xy;
};

struct segment {
    u64 first;
    u32 count, tile;
    int plane;
    u32 planes;
};
struct cut_tile {
    u64 segment;
    u32 segments, tile;
};

#ifdef ROWS

__device__ __forceinline__ void locate(const real *k, u64 m, u32 size, u32 *cell, real *t)
{
    // In double precision: a grid position in single precision would cost two digits of the offset.
    const double position = (double)k[m] * size - 0.5 * W;
    const double first = ceil(position);
    const int start = (int)first;
    *t = (real)(2.0 * (first - position) - 1.0);
    // A grid has at least two windows, so that one period brings any start inside.
    *cell = start < 0 ? start + size : start;
}

// The place of each sample in memory: the tile in which its window starts, the plane of the tile, the quarter of the plane.
// Neighbours in a tile's list are then mostly neighbours in memory. A tile has 4 tile[2] keys.
extern "C" __global__ void __launch_bounds__(256)
sample_tiles(const real *kx, const real *ky, const real *kz, u64 n, layout grid, u32 *keys)
{
    const u64 m = (u64)blockIdx.x * 256 + threadIdx.x;
    if (m >= n) return;
    u32 x, y = 0, z;
    real t;
    locate(kx, m, grid.size[0], &x, &t);
    if (DIM == 3) locate(ky, m, grid.size[1], &y, &t);
    locate(kz, m, grid.size[2], &z, &t);
    const u32 tile = (z / grid.tile[2] * grid.tiles[1] + y / grid.tile[1]) * grid.tiles[0] + x / grid.tile[0];
    const u32 right = x % grid.tile[0] * 2 >= grid.tile[0], back = y % grid.tile[1] * 2 >= grid.tile[1] && DIM == 3;
    keys[m] = ((tile * grid.tile[2] + z % grid.tile[2]) * 2 + back) * 2 + right;
}

// How many tiles of an axis a window of `taps` cells from `start` on touches. Tiles are at most half the grid, so that
// it touches none twice.
__device__ __forceinline__ u32 tiles_touched(u32 start, u32 taps, u32 size, u32 tile)
{
    const u32 last = start + taps - 1;
    if (last < size) return last / tile - start / tile + 1;
    return (size - 1) / tile - start / tile + 1 + (last - size) / tile + 1;
}

// Points in sorted order, and in how many tiles' lists each comes.
extern "C" __global__ void __launch_bounds__(256)
settle(const real *kx, const real *ky, const real *kz, u64 n, const u32 *order, layout grid, point *points, u16 *planes,
       u32 *touched)
{
    const u64 i = (u64)blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    const u32 m = order[i];
    point p;
    u32 x, y = 0, z;
    p.t[1] = 0;
    locate(kx, m, grid.size[0], &x, &p.t[0]);
    if (DIM == 3) locate(ky, m, grid.size[1], &y, &p.t[1]);
    locate(kz, m, grid.size[2], &z, &p.t[2]);
    p.xy = x | y << 16;
    points[i] = p;
    planes[i] = (u16)z;
    touched[i] = tiles_touched(x, W, grid.size[0], grid.tile[0]) * tiles_touched(y, WY, grid.size[1], grid.tile[1])
        * tiles_touched(z, W, grid.size[2], grid.tile[2]);
}

// The pairs of tiles and samples: their keys are tile (tile[2] + W - 1) + where the window starts along z from W - 1
// cells before the tile.
extern "C" __global__ void __launch_bounds__(256)
list_pairs(const point *points, const u16 *planes, u64 n, const u64 *at, layout grid, u32 *keys, u32 *samples)
{
    const u64 i = (u64)blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    const u32 xy = points[i].xy;
    const u32 start[3] = {xy & 0xffff, xy >> 16, planes[i]};
    const u32 taps[3] = {W, WY, W};
    u32 first[3], count[3];
    for (u32 a = 0; a < 3; a++) {
        first[a] = start[a] / grid.tile[a];
        count[a] = tiles_touched(start[a], taps[a], grid.size[a], grid.tile[a]);
    }
    u64 to = at[i];
    for (u32 iz = 0; iz < count[2]; iz++) {
        u32 z = first[2] + iz;
        if (z >= grid.tiles[2]) z -= grid.tiles[2];
        int from = (int)start[2] - (int)(z * grid.tile[2]);
        if (from >= (int)grid.tile[2]) from -= grid.size[2];
        for (u32 iy = 0; iy < count[1]; iy++) {
            u32 y = first[1] + iy;
            if (y >= grid.tiles[1]) y -= grid.tiles[1];
            for (u32 ix = 0; ix < count[0]; ix++) {
                u32 x = first[0] + ix;
                if (x >= grid.tiles[0]) x -= grid.tiles[0];
                const u32 tile = (z * grid.tiles[1] + y) * grid.tiles[0] + x;
                keys[to] = tile * (grid.tile[2] + W - 1) + (u32)(from + W - 1);
                samples[to] = (u32)i;
                to++;
            }
        }
    }
}

// Values in the order of the points; blockIdx.y is an array.
extern "C" __global__ void __launch_bounds__(256)
sort_values(const cplx *values, const u32 *order, u64 n, cplx *sorted)
{
    const u64 i = (u64)blockIdx.x * 256 + threadIdx.x;
    if (i < n) sorted[blockIdx.y * n + i] = values[blockIdx.y * n + order[i]];
}

#endif

// The taps at t. The window is even: tap W - 1 - j at t is tap j at -t.
__device__ __forceinline__ void taps_at(const window_polynomials &p, real t, real *taps)
{
    const real s = t * t;
    #pragma unroll
    for (int j = 0; j < HALF; j++) {
        real even = p.of[DEGREE & ~1][j];
        #pragma unroll
        for (int k = (DEGREE & ~1) - 2; k >= 0; k -= 2) even = fma(even, s, p.of[k][j]);
        if (2 * j + 1 == W) {
            taps[j] = even;
            continue;
        }
        real odd = p.of[(DEGREE - 1) | 1][j];
        #pragma unroll
        for (int k = ((DEGREE - 1) | 1) - 2; k >= 1; k -= 2) odd = fma(odd, s, p.of[k][j]);
        taps[j] = fma(odd, t, even);
        taps[W - 1 - j] = fma(-odd, t, even);
    }
}

#ifdef ROWS

#define PLANE_CELLS (32 * ROWS)
// Segments whose planes are read before any is added, and warps that share the segments of one plane.
#define SUM_AHEAD 8
#define SUM_WARPS 16

// Sums the segments' planes of tiles that are cut, in their order, in double precision; blockIdx.y is an array. Of `few` tiles,
// the first of `cuts`, a warp sums each plane; of the others, the last of `cuts`, the warps of a block share a plane.
extern "C" __global__ void __launch_bounds__(32 * SUM_WARPS)
sum_segments(layout grid, const segment *segments, const u64 *slots, const cut_tile *cuts, u32 few, const cplx *partial,
             u64 partial_planes, cplx *cells)
{
    __shared__ double sums[SUM_WARPS][PLANE_CELLS][2];
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x / 32, x = lane % LANES_X, y = lane / LANES_X;
    const u32 blocks_few = (grid.tile[2] + SUM_WARPS - 1) / SUM_WARPS, all_few = few * blocks_few;
    const bool shared = blockIdx.x >= all_few;
    const u32 nth = shared ? (blockIdx.x - all_few) / grid.tile[2] : blockIdx.x / blocks_few;
    const u32 z = shared ? (blockIdx.x - all_few) % grid.tile[2] : blockIdx.x % blocks_few * SUM_WARPS + warp;
    const cut_tile cut = cuts[shared ? (u64)grid.tiles[0] * grid.tiles[1] * grid.tiles[2] - 1 - nth : nth];
    const u32 tile_x = cut.tile % grid.tiles[0], tile_yz = cut.tile / grid.tiles[0];
    const u32 origin_x = tile_x * grid.tile[0], origin_y = tile_yz % grid.tiles[1] * grid.tile[1];
    const u32 origin_z = tile_yz / grid.tiles[1] * grid.tile[2];
    const u32 planes = min(grid.tile[2], grid.size[2] - origin_z);
    const u64 plane = (u64)grid.size[0] * grid.size[1];
    if (z >= planes) return;
    const u64 first = cut.segment + (shared ? (u64)cut.segments * warp / SUM_WARPS : 0);
    const u64 end = cut.segment + (shared ? (u64)cut.segments * (warp + 1) / SUM_WARPS : cut.segments);

    double re[ROWS], im[ROWS];
    #pragma unroll
    for (int r = 0; r < ROWS; r++) re[r] = im[r] = 0;
    for (u64 s = first; s < end; s += SUM_AHEAD) {
        const cplx *from[SUM_AHEAD];
        bool there[SUM_AHEAD];
        #pragma unroll
        for (int i = 0; i < SUM_AHEAD; i++) {
            const u64 number = s + i < end ? s + i : s;
            const segment run = segments[number];
            const u32 above = z - run.plane;
            there[i] = s + i < end && above < run.planes;
            from[i] = partial + (blockIdx.y * partial_planes + slots[number] + above) * PLANE_CELLS + lane;
        }
        cplx value[SUM_AHEAD][ROWS];
        #pragma unroll
        for (int i = 0; i < SUM_AHEAD; i++)
            #pragma unroll
            for (int r = 0; r < ROWS; r++) {
                value[i][r].x = value[i][r].y = 0;
                if (there[i]) value[i][r] = from[i][32 * r];
            }
        #pragma unroll
        for (int i = 0; i < SUM_AHEAD; i++)
            #pragma unroll
            for (int r = 0; r < ROWS; r++) {
                re[r] += value[i][r].x;
                im[r] += value[i][r].y;
            }
    }
    if (shared) {
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
    #pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const u32 row = y + 4 * r;
        if (x >= grid.tile[0] || origin_x + x >= grid.size[0] || row >= grid.tile[1] || origin_y + row >= grid.size[1])
            continue;
        cplx value;
        value.x = (real)re[r];
        value.y = (real)im[r];
        cells[blockIdx.y * plane * grid.size[2] + (origin_z + z) * plane + (u64)(origin_y + row) * grid.size[0]
              + origin_x + x] = value;
    }
}

#ifndef TENSOR

// A sample's record in shared memory: its taps along x and y at the tile's cells, the arrays' values, the taps along z.
#define AT_Y LANES_X
#define AT_VALUES (LANES_X + (DIM == 3 ? CELLS_Y : 0))
#define AT_Z (AT_VALUES + 2 * ARRAYS)
#define RECORD_REALS (AT_Z + W)
// An odd number of 16 bytes, so that lanes writing theirs at once meet in no bank.
#define PER_16 (16 / (int)sizeof(real))
#define RECORD (((RECORD_REALS + PER_16 - 1) / PER_16 | 1) * PER_16)

struct __align__(16) sixteen_bytes {
    real of[PER_16];
};

// Adds a sample to the planes that a lane holds.
__device__ __forceinline__ void add_sample(const real *record, u32 x, u32 y, cplx sums[ARRAYS][ROWS][W])
{
    real broadcast[(2 * ARRAYS + W + PER_16 - 1) / PER_16 * PER_16];
    #pragma unroll
    for (int i = 0; i < (int)(sizeof(broadcast) / 16); i++) {
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

// `values` are those of the sorted points. grid = sums over samples or, where a segment has planes of its own, those planes,
// from plane `slots` of `partial` on. `arrays` arrays of n values follow one another, and as many grids and partial planes,
// blockIdx.y being ARRAYS of them.
extern "C" __global__ void __launch_bounds__(32 * WARPS, RESIDENT)
spread(window_polynomials polynomials, layout grid, const point *points, const u16 *plane_of, u64 n, const u32 *list,
       const segment *segments, const u32 *schedule, const u64 *slots, u32 count, u32 arrays, const cplx *values, cplx *cells,
       cplx *partial, u64 partial_planes)
{
    __shared__ __align__(16) real records[WARPS][32 * RECORD];
    const u32 lane = threadIdx.x & 31, x = lane % LANES_X, y = lane / LANES_X;
    const u64 turn = (u64)blockIdx.x * WARPS + threadIdx.x / 32;
    if (turn >= count) return;
    const u32 number = schedule[turn];
    const segment run = segments[number];
    const u32 array0 = blockIdx.y * ARRAYS;

    const u32 tile_x = run.tile % grid.tiles[0], tile_yz = run.tile / grid.tiles[0];
    const int origin_x = tile_x * grid.tile[0], origin_y = tile_yz % grid.tiles[1] * grid.tile[1];
    const int origin_z = tile_yz / grid.tiles[1] * grid.tile[2];
    const int depth = min(grid.tile[2], grid.size[2] - origin_z);
    const u64 plane = (u64)grid.size[0] * grid.size[1], grid_cells = plane * grid.size[2];

    // Planes go to the grid or, of a tile that is cut, to planes of the segment's own.
    cplx *out[ARRAYS];
    int row_step;
    u64 plane_step;
    int first_plane = 0, end_plane = depth;
    bool mine[ROWS];
    if (run.planes) {
        first_plane = run.plane;
        end_plane = run.plane + (int)run.planes;
        row_step = 32;
        plane_step = PLANE_CELLS;
        #pragma unroll
        for (int a = 0; a < ARRAYS; a++)
            out[a] = partial + ((array0 + a) * partial_planes + slots[number]) * PLANE_CELLS + lane;
        #pragma unroll
        for (int r = 0; r < ROWS; r++) mine[r] = true;
    } else {
        row_step = 4 * grid.size[0];
        plane_step = plane;
        const u64 at = origin_z * plane + (u64)(origin_y + y) * grid.size[0] + origin_x + x;
        #pragma unroll
        for (int a = 0; a < ARRAYS; a++) out[a] = cells + (array0 + a) * grid_cells + at;
        #pragma unroll
        for (int r = 0; r < ROWS; r++)
            mine[r] = x < grid.tile[0] && origin_x + x < grid.size[0] && y + 4 * r < grid.tile[1]
                && origin_y + y + 4 * r < grid.size[1];
    }

    cplx sums[ARRAYS][ROWS][W];
    #pragma unroll
    for (int a = 0; a < ARRAYS; a++)
        #pragma unroll
        for (int r = 0; r < ROWS; r++)
            #pragma unroll
            for (int j = 0; j < W; j++) sums[a][r][j].x = sums[a][r][j].y = 0;

    // The plane of sums[..][0].
    int now = 1 - W;
    if (run.planes) {
        const int z = plane_of[list[run.first]];
        now = z - origin_z;
        if (now >= (int)grid.tile[2]) now -= grid.size[2];
    }
    // Writes planes until `now` is plane `to`.
    auto advance = [&](int to) {
        while (now < to) {
            if (now >= first_plane && now < end_plane) {
                #pragma unroll
                for (int a = 0; a < ARRAYS; a++) {
                    if (ARRAYS > 1 && array0 + a >= arrays) break;
                    #pragma unroll
                    for (int r = 0; r < ROWS; r++)
                        if (mine[r]) out[a][r * row_step] = sums[a][r][0];
                    out[a] += plane_step;
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
    };

    real *mine_record = records[threadIdx.x / 32] + lane * RECORD;
    const real *first_record = records[threadIdx.x / 32];
    for (u32 batch = 0; batch < run.count; batch += 32) {
        const u32 left = run.count - batch;
        int z = 0x7fffffff;
        {
            #pragma unroll
            for (int i = 0; i < AT_VALUES / PER_16; i++) {
                sixteen_bytes zeros;
                #pragma unroll
                for (int j = 0; j < PER_16; j++) zeros.of[j] = 0;
                *(sixteen_bytes *)(mine_record + i * PER_16) = zeros;
            }
            real broadcast[(2 * ARRAYS + W + PER_16 - 1) / PER_16 * PER_16];
            #pragma unroll
            for (int i = 0; i < (int)(sizeof(broadcast) / sizeof(real)); i++) broadcast[i] = 0;
            // What lacks for a whole batch are zeros.
            if (lane < left) {
                const u32 i = list[run.first + batch + lane];
                const point p = points[i];
                z = (int)plane_of[i] - origin_z;
                if (z >= (int)grid.tile[2]) z -= grid.size[2];
                #pragma unroll
                for (int a = 0; a < ARRAYS; a++)
                    if (ARRAYS == 1 || array0 + a < arrays) {
                        const cplx value = values[(array0 + a) * n + i];
                        broadcast[2 * a] = value.x;
                        broadcast[2 * a + 1] = value.y;
                    }
                taps_at(polynomials, p.t[2], broadcast + 2 * ARRAYS);
                real taps[W];
                taps_at(polynomials, p.t[0], taps);
                int from = (int)(p.xy & 0xffff) - origin_x;
                if (from >= (int)grid.tile[0]) from -= grid.size[0];
                #pragma unroll
                for (int j = 0; j < W; j++)
                    if ((u32)(from + j) < LANES_X) mine_record[from + j] = taps[j];
                if (DIM == 3) {
                    taps_at(polynomials, p.t[1], taps);
                    from = (int)(p.xy >> 16) - origin_y;
                    if (from >= (int)grid.tile[1]) from -= grid.size[1];
                    #pragma unroll
                    for (int j = 0; j < W; j++)
                        if ((u32)(from + j) < CELLS_Y) mine_record[AT_Y + from + j] = taps[j];
                }
            }
            #pragma unroll
            for (int i = 0; i < (int)(sizeof(broadcast) / 16); i++) {
                sixteen_bytes b;
                #pragma unroll
                for (int j = 0; j < PER_16; j++) b.of[j] = broadcast[i * PER_16 + j];
                *(sixteen_bytes *)(mine_record + AT_VALUES + i * PER_16) = b;
            }
        }
        const int before = __shfl_up_sync(ALL, z, 1);
        const u32 moves = __ballot_sync(ALL, lane < left && z > (lane ? before : now));
        __syncwarp();
        const u32 end = left < 32 ? left : 32;
        for (u32 s = 0; s < end; s += 4) {
            const real *record = first_record + s * RECORD;
            if ((moves >> s & 15) == 0) {
                #pragma unroll
                for (int i = 0; i < 4; i++) add_sample(record + i * RECORD, x, y, sums);
            } else {
                #pragma unroll 1
                for (u32 i = s; i < s + 4 && i < end; i++, record += RECORD) {
                    if (moves >> i & 1) advance(__shfl_sync(ALL, z, i));
                    add_sample(record, x, y, sums);
                }
            }
        }
        __syncwarp();
    }
    advance(end_plane);
}

// Older tensor cores have no such numbers.
#elif __CUDA_ARCH__ >= 800

// Spreading is a product of matrices for each tile: [cells of x and y][samples] times [samples][cells of z, re and im].
// Tensor cores take it with each factor split in two numbers of 11 bits, three products of which keep what single
// precision has. Batches of 32 samples have their taps in shared memory at the tile's cells, [cell][sample].
#define TILE_CELLS_X (DIM == 3 ? 8 : 32)
#define TILE_CELLS_Y (DIM == 3 ? 4 : 0)
#define TILE_CELLS_Z (8 * EIGHTS)
// Rows in which lanes meet in no bank. Between the axes are rows for the taps outside the tile, which nobody reads.
#define TAP_ROW 48
#define TAPS_X (W - 1)
#define TAPS_Z (TAPS_X + TILE_CELLS_X + W - 1)
#define TAPS_Y (TAPS_Z + TILE_CELLS_Z + W - 1)
#define TAPS_VALUES (DIM == 3 ? TAPS_Y + TILE_CELLS_Y + W - 1 : TAPS_Y)
#define TAPS_LEN ((TAPS_VALUES + 2) * TAP_ROW)

struct __align__(16) four {
    float of[4];
};

// x y = high + low, rounded to 11 bits each, which is what a tensor core takes of a number.
__device__ __forceinline__ void split(float x, float y, u32 &high, u32 &low)
{
    high = (__float_as_uint(x * y) + 0x1000) & 0xffffe000;
    low = __float_as_uint(fmaf(x, y, -__uint_as_float(high)));
}

__device__ __forceinline__ void multiply_add(float d[4], const u32 a[4], const u32 b[2])
{
    // Volatile, to keep the order in which neighbours do not depend on one another.
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <int FIRST, int COUNT>
__device__ __forceinline__ void clear_rows(float *taps)
{
    const int lane = threadIdx.x & 31;
    const four zeros = {{0, 0, 0, 0}};
    #pragma unroll
    for (int row = 0; row < COUNT; row += 4) *(four *)(taps + (FIRST + row + lane / 8) * TAP_ROW + 4 * (lane % 8)) = zeros;
}

// The taps of one sample, a pair of each axis at a time, in rows from its window's first cell on.
__device__ __forceinline__ void write_taps(const window_polynomials &polynomials, const point &p, float *taps, int x, int y,
                                           int z)
{
    float *to[3] = {taps + (TAPS_X + x) * TAP_ROW, taps + (TAPS_Z + z) * TAP_ROW, taps + (TAPS_Y + y) * TAP_ROW};
    const float t[3] = {p.t[0], p.t[2], p.t[1]};
    #pragma unroll
    for (int j = 0; j < HALF; j++)
        #pragma unroll
        for (int axis = 0; axis < DIM; axis++) {
            const float s = t[axis] * t[axis];
            float even = polynomials.of[DEGREE & ~1][j];
            #pragma unroll
            for (int k = (DEGREE & ~1) - 2; k >= 0; k -= 2) even = fmaf(even, s, polynomials.of[k][j]);
            if (2 * j + 1 == W) {
                to[axis][j * TAP_ROW] = even;
                continue;
            }
            float odd = polynomials.of[(DEGREE - 1) | 1][j];
            #pragma unroll
            for (int k = ((DEGREE - 1) | 1) - 2; k >= 1; k -= 2) odd = fmaf(odd, s, polynomials.of[k][j]);
            to[axis][j * TAP_ROW] = fmaf(odd, t[axis], even);
            to[axis][(W - 1 - j) * TAP_ROW] = fmaf(-odd, t[axis], even);
        }
}

// As `spread`, in single precision, for tiles of up to 8 EIGHTS planes; blockIdx.y is an array.
extern "C" __global__ void __launch_bounds__(32 * WARPS, RESIDENT)
spread_tensor(window_polynomials polynomials, layout grid, const point *points, const u16 *plane_of, u64 n,
              const u32 *list, const segment *segments, const u32 *schedule, const u64 *slots, u32 count, const cplx *values,
              cplx *cells, cplx *partial, u64 partial_planes)
{
    __shared__ __align__(16) float all_taps[WARPS][TAPS_LEN];
    const u32 lane = threadIdx.x & 31, fast = lane % 4, slow = lane / 4;
    const u64 turn = (u64)blockIdx.x * WARPS + threadIdx.x / 32;
    if (turn >= count) return;
    const u32 number = schedule[turn];
    const segment run = segments[number];
    float *taps = all_taps[threadIdx.x / 32];
    values += blockIdx.y * n;

    const u32 tile_x = run.tile % grid.tiles[0], tile_yz = run.tile / grid.tiles[0];
    const int origin_x = tile_x * grid.tile[0], origin_y = tile_yz % grid.tiles[1] * grid.tile[1];
    const int origin_z = tile_yz / grid.tiles[1] * grid.tile[2];

    // Eight planes of z, sixteen cells of x and y, re or im, a lane's part of these.
    float sums[EIGHTS][2][2][4];
    #pragma unroll
    for (int h = 0; h < EIGHTS; h++)
        #pragma unroll
        for (int i = 0; i < 16; i++) sums[h][i / 8][i / 4 % 2][i % 4] = 0;

    // What the next batch needs is fetched while this one is multiplied, and the list a batch further.
    const u32 *next = list + run.first + lane;
    u32 left = run.count;
    u32 i = lane < left ? *next : 0;
    point p = points[i];
    u32 plane_number = plane_of[i];
    cplx value = values[i];
    i = lane + 32 < left ? next[32] : 0;
    for (; left > 0; left = left > 32 ? left - 32 : 0) {
        clear_rows<TAPS_X, TILE_CELLS_X>(taps);
        clear_rows<TAPS_Z, TILE_CELLS_Z>(taps);
        clear_rows<TAPS_Y, TILE_CELLS_Y>(taps);
        if (lane >= left) taps[TAPS_VALUES * TAP_ROW + lane] = taps[(TAPS_VALUES + 1) * TAP_ROW + lane] = 0;
        __syncwarp();
        bool in_eighth[EIGHTS];
        #pragma unroll
        for (int h = 0; h < EIGHTS; h++) in_eighth[h] = false;
        if (lane < left) {
            int z = (int)plane_number - origin_z;
            if (z >= (int)grid.tile[2]) z -= grid.size[2];
            #pragma unroll
            for (int h = 0; h < EIGHTS; h++) in_eighth[h] = z < 8 * h + 8 && z + W > 8 * h;
            int x = (int)(p.xy & 0xffff) - origin_x;
            if (x >= (int)grid.tile[0]) x -= grid.size[0];
            int y = (int)(p.xy >> 16) - origin_y;
            if (y >= (int)grid.tile[1]) y -= grid.size[1];
            write_taps(polynomials, p, taps + lane, x, y, z);
            taps[TAPS_VALUES * TAP_ROW + lane] = value.x;
            taps[(TAPS_VALUES + 1) * TAP_ROW + lane] = value.y;
        }
        if (lane + 32 < left) {
            p = points[i];
            plane_number = plane_of[i];
            value = values[i];
        }
        next += 32;
        i = lane + 64 < left ? next[32] : 0;
        u32 touching[EIGHTS];
        #pragma unroll
        for (int h = 0; h < EIGHTS; h++) touching[h] = __ballot_sync(ALL, in_eighth[h]);
        __syncwarp();
        // Sixteen samples at a time, four in a row a lane: the sum over samples may take them in any order.
        #pragma unroll 1
        for (u32 part = 0; part < 32 && part < left; part += 16) {
            const float *at = taps + part + 4 * fast;
            u32 high[2][2][4], low[2][2][4];
            const four wx = *(const four *)(at + (TAPS_X + slow) * TAP_ROW);
            #pragma unroll
            for (int q = 0; q < 4; q++) {
                four wy;
                if (DIM == 3) wy = *(const four *)(at + (TAPS_Y + q) * TAP_ROW);
                else wy = *(const four *)(at + (TAPS_X + 8 * q + slow) * TAP_ROW);
                // Two steps of eight samples.
                #pragma unroll
                for (int i = 0; i < 4; i++)
                    split(DIM == 3 ? wx.of[i] : 1.0f, wy.of[i], high[i / 2][q / 2][q % 2 + 2 * (i % 2)],
                          low[i / 2][q / 2][q % 2 + 2 * (i % 2)]);
            }
            const four re = *(const four *)(at + TAPS_VALUES * TAP_ROW), im = *(const four *)(at + (TAPS_VALUES + 1) * TAP_ROW);
            #pragma unroll
            for (int h = 0; h < EIGHTS; h++) {
                if (EIGHTS > 1 && (touching[h] >> part & 0xffff) == 0) continue;
                const four wz = *(const four *)(at + (TAPS_Z + 8 * h + slow) * TAP_ROW);
                // Sums of these samples alone: the tensor core truncates, which long sums must not do.
                float d[2][2][4];
                #pragma unroll
                for (int i = 0; i < 16; i++) d[i / 8][i / 4 % 2][i % 4] = 0;
                #pragma unroll
                for (int step = 0; step < 2; step++) {
                    u32 b_high[2][2], b_low[2][2];
                    #pragma unroll
                    for (int c = 0; c < 2; c++)
                        #pragma unroll
                        for (int i = 0; i < 2; i++)
                            split(wz.of[2 * step + i], (c ? im : re).of[2 * step + i], b_high[c][i], b_low[c][i]);
                    #pragma unroll
                    for (int i = 0; i < 4; i++) multiply_add(d[i % 2][i / 2], low[step][i % 2], b_high[i / 2]);
                    #pragma unroll
                    for (int i = 0; i < 4; i++) multiply_add(d[i % 2][i / 2], high[step][i % 2], b_low[i / 2]);
                    #pragma unroll
                    for (int i = 0; i < 4; i++) multiply_add(d[i % 2][i / 2], high[step][i % 2], b_high[i / 2]);
                }
                #pragma unroll
                for (int i = 0; i < 16; i++) sums[h][i / 8][i / 4 % 2][i % 4] += d[i / 8][i / 4 % 2][i % 4];
            }
        }
        __syncwarp();
    }

    // A lane has cells x = slow, y = 0 to 3 (in 2D x = slow + 8 y), of planes 2 fast and the next. They go to the grid or, of
    // a tile that is cut, to planes of the segment's own.
    int first_plane = 0, end_plane = min(grid.tile[2], grid.size[2] - origin_z), end_row = 4;
    u64 plane_step = 32;
    u32 row_step = 8;
    cplx *out;
    if (run.planes) {
        first_plane = run.plane;
        end_plane = run.plane + (int)run.planes;
        out = partial + (blockIdx.y * partial_planes + slots[number]) * 32 + slow;
    } else {
        plane_step = (u64)grid.size[0] * grid.size[1];
        out = cells + (blockIdx.y * grid.size[2] + origin_z) * plane_step + (u64)origin_y * grid.size[0] + origin_x + slow;
        const int end_x = min(grid.tile[0], grid.size[0] - origin_x);
        if (DIM == 3) {
            row_step = grid.size[0];
            end_row = slow < end_x ? min(grid.tile[1], grid.size[1] - origin_y) : 0;
        } else {
            end_row = (end_x - (int)slow + 7) / 8;
        }
    }
    #pragma unroll
    for (int h = 0; h < EIGHTS; h++)
        #pragma unroll
        for (int i = 0; i < 2; i++) {
            const int z = 8 * h + 2 * fast + i;
            if (z < first_plane || z >= end_plane) continue;
            cplx *to = out + (z - first_plane) * plane_step;
            #pragma unroll
            for (int q = 0; q < 4; q++) {
                cplx value;
                value.x = sums[h][q / 2][0][q % 2 * 2 + i];
                value.y = sums[h][q / 2][1][q % 2 * 2 + i];
                if (q < end_row) to[q * row_step] = value;
            }
        }
}

#endif
#endif

#ifdef STAGED

// Lanes that sum one sample: a half warp where the window fits, a row of taps along x beside another.
#define GROUP (W <= 8 ? 16 : 32)
#define GROUPS (32 / GROUP)
// Samples of which a warp has records at once.
#define BATCH (GROUP == 32 ? 16 : 32)
#define GROUP_ROWS (GROUP / W)
// Rows of the window: along y in 3D, along z in 2D, where there is but one plane.
#define STEPS ((W + GROUP_ROWS - 1) / GROUP_ROWS)
#define DEPTH (DIM == 3 ? W : 1)
#define TILE_X 16
// As long as the window modulo 16 cells, so that rows side by side meet in no bank.
#define STRIDE (TILE_X + W)
#define STAGED_Y (TILE_Y + W - 1)
#define STAGED_Z (DIM == 3 ? TILE_Z + W - 1 : 1)
// A sample's record: where its window starts, and the taps.
#define REALS_16 (16 / (int)sizeof(real))
#define GATHER_Z 0
#define GATHER_X ((DEPTH + REALS_16 - 1) / REALS_16 * REALS_16)
#define GATHER_Y (GATHER_X + W)
#define GATHER_RECORD (((GATHER_Y + W + REALS_16 - 1) / REALS_16 | 1) * REALS_16)

// Copies a cell to shared memory; where the device can, without waiting.
__device__ __forceinline__ void copy_ahead(cplx *to, const cplx *from)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
        :: "r"((u32)__cvta_generic_to_shared(to)), "l"(from), "n"(sizeof(cplx)) : "memory");
#else
    *to = *from;
#endif
}
__device__ __forceinline__ void wait_for_copies()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// values = window-weighted sums of the grid; blockIdx.y is the array. In 2D the grid's z takes the part of y, TILE_Y
// included. Shared memory: the tile, where staged, then the warps' records.
extern "C" __global__ void __launch_bounds__(32 * GATHER_WARPS)
interpolate(window_polynomials polynomials, layout grid, const point *points, const u16 *plane_of, const u32 *order, u64 n,
            const segment *segments, const u32 *schedule, const cplx *cells, cplx *values)
{
    extern __shared__ __align__(16) unsigned char shared[];
    const segment run = segments[schedule[blockIdx.x]];
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const u32 tile_x = run.tile % grid.tiles[0], tile_yz = run.tile / grid.tiles[0];
    const u32 origin_x = tile_x * grid.tile[0], origin_y = tile_yz % grid.tiles[1] * grid.tile[1];
    const u32 origin_z = tile_yz / grid.tiles[1] * grid.tile[2];
    const u64 plane = (u64)grid.size[0] * grid.size[1];
    const cplx *field = cells + blockIdx.y * plane * grid.size[2];
    // The axis of the rows.
    const u32 rows_size = DIM == 3 ? grid.size[1] : grid.size[2], rows_origin = DIM == 3 ? origin_y : origin_z;
    cplx *staged = (cplx *)shared;
    real *records = (real *)(shared + (STAGED ? sizeof(cplx) * STRIDE * STAGED_Y * STAGED_Z : 0))
        + warp * BATCH * GATHER_RECORD;

    if (STAGED) {
        u32 x = origin_x + lane;
        if (x >= grid.size[0]) x -= grid.size[0];
        // A warp takes whole planes, in 2D rows.
        for (u32 j = DIM == 3 ? warp : 0; j < STAGED_Z; j += GATHER_WARPS) {
            u32 z = origin_z + j;
            if (z >= grid.size[2]) z -= grid.size[2];
            const cplx *from = field + (DIM == 3 ? z * plane : 0) + x;
            #pragma unroll
            for (u32 i = 0; i < STAGED_Y; i += DIM == 3 ? 1 : GATHER_WARPS) {
                const u32 row = i + (DIM == 3 ? 0 : warp);
                u32 y = rows_origin + row;
                if (y >= rows_size) y -= rows_size;
                if (lane < TILE_X + W - 1 && (DIM == 3 || row < STAGED_Y))
                    copy_ahead(&staged[(j * STAGED_Y + row) * STRIDE + lane], from + (u64)y * grid.size[0]);
            }
        }
    }

    // The lane's place in its group: a tap along x, and a row of the first step. Lanes without read
    // what the last one with a place reads, and have no weight.
    const u32 place = lane % GROUP, group = lane / GROUP;
    const bool idle = place >= GROUP_ROWS * W;
    const u32 at_x = idle ? W - 1 : place % W, at_row = idle ? GROUP_ROWS - 1 : place / W;
    real *record = records + lane * GATHER_RECORD;
    // Samples are shared out evenly, BATCH a warp at most.
    const u32 share = min((run.count + GATHER_WARPS - 1) / GATHER_WARPS, (u32)BATCH);
    bool staging = STAGED;
    for (u32 batch = 0; batch < run.count; batch += share * GATHER_WARPS) {
        const u32 mine = batch + warp * share;
        const u32 count_here = mine < run.count ? min(share, run.count - mine) : 0;
        u32 m = 0, start_x = 0, start_y = 0, start_z = 0, start = 0;
        if (lane < count_here) {
            const u64 i = run.first + mine + lane;
            const point p = points[i];
            m = order[i];
            start_x = p.xy & 0xffff;
            start_y = DIM == 3 ? p.xy >> 16 : plane_of[i];
            start_z = DIM == 3 ? plane_of[i] : 0;
            real taps[GATHER_X > W ? GATHER_X : W];
            if (DIM == 3) {
                taps_at(polynomials, p.t[2], taps);
                #pragma unroll
                for (int j = W; j < GATHER_X; j++) taps[j] = 0;
                #pragma unroll
                for (int j = 0; j < GATHER_X; j++) record[GATHER_Z + j] = taps[j];
            }
            taps_at(polynomials, p.t[0], taps);
            #pragma unroll
            for (int j = 0; j < W; j++) record[GATHER_X + j] = taps[j];
            taps_at(polynomials, p.t[DIM == 3 ? 1 : 2], taps);
            #pragma unroll
            for (int j = 0; j < W; j++) record[GATHER_Y + j] = taps[j];
            if (STAGED)
                start = ((DIM == 3 ? start_z - origin_z : 0) * STAGED_Y + start_y - rows_origin) * STRIDE + start_x - origin_x;
        }
        if (staging) {
            wait_for_copies();
            __syncthreads();
            staging = false;
        }
        __syncwarp();
        real even = 0, odd = 0;
        #pragma unroll UNROLL_ROUNDS
        for (u32 round = 0; round < (count_here + GROUPS - 1) / GROUPS; round++) {
            // Groups beyond the last sample take it once more.
            const u32 s = min(round * GROUPS + group, count_here - 1);
            const real *taps = records + s * GATHER_RECORD;
            real re = 0, im = 0;
            const u32 base = __shfl_sync(ALL, start, s);
            u32 cell_x, cell_y, cell_z;
            if (!STAGED) {
                cell_x = __shfl_sync(ALL, start_x, s) + at_x;
                if (cell_x >= grid.size[0]) cell_x -= grid.size[0];
                cell_y = __shfl_sync(ALL, start_y, s);
                cell_z = __shfl_sync(ALL, start_z, s);
            }
            real wz[DEPTH];
            #pragma unroll
            for (int j = 0; j < DEPTH; j++) wz[j] = DIM == 3 ? taps[GATHER_Z + j] : 1;
            #pragma unroll
            for (int step = 0; step < STEPS; step++) {
                const u32 row = step * GROUP_ROWS + at_row;
                // Rows beyond the window: those of the last one, without weight.
                const bool beyond = STEPS * GROUP_ROWS > W && step == STEPS - 1 && row >= W;
                const u32 y = beyond ? W - 1 : row;
                real sum_re = 0, sum_im = 0;
                #pragma unroll
                for (int j = 0; j < DEPTH; j++) {
                    cplx value;
                    if (STAGED) {
                        value = staged[base + (j * STAGED_Y + y) * STRIDE + at_x];
                    } else {
                        u32 uy = cell_y + y, uz = cell_z + j;
                        if (uy >= rows_size) uy -= rows_size;
                        if (DIM == 3 && uz >= grid.size[2]) uz -= grid.size[2];
                        value = field[(DIM == 3 ? uz * plane : 0) + (u64)uy * grid.size[0] + cell_x];
                    }
                    sum_re = fma(value.x, wz[j], sum_re);
                    sum_im = fma(value.y, wz[j], sum_im);
                }
                real wy = taps[GATHER_Y + y];
                if (idle || beyond) wy = 0;
                re = fma(sum_re, wy, re);
                im = fma(sum_im, wy, im);
            }
            const real wx = taps[GATHER_X + at_x];
            re *= wx;
            im *= wx;
            // Even lanes go on with real parts, odd ones with imaginary parts.
            const real other = __shfl_xor_sync(ALL, lane & 1 ? re : im, 1);
            real sum = (lane & 1 ? im : re) + other;
            #pragma unroll
            for (int step = 2; step < GROUP; step *= 2) sum += __shfl_xor_sync(ALL, sum, step);
            // A pair of lanes keeps the two samples of its places.
            if ((place ^ round) < 2) {
                if (round & 1) odd = sum;
                else even = sum;
            }
        }
        // A lane has the sample of its place and group.
        const u32 s = place * GROUPS + group;
        const u32 to = __shfl_sync(ALL, m, s & 31);
        const real other = __shfl_xor_sync(ALL, lane & 1 ? even : odd, 1);
        cplx value;
        value.x = lane & 1 ? other : even;
        value.y = lane & 1 ? odd : other;
        if (s < count_here) values[blockIdx.y * n + to] = value;
        __syncwarp();
    }
}

#endif
