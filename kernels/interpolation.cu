// Interpolates samples from the oversampled grid.
//
// The samples are sorted by samples.cu, by the tile in which their windows start. A block copies the tile, and the
// cells beyond it that windows reach, to shared memory. Each lane sums a different sample. In 2D neighbouring lanes
// have samples of the same rows, so that they rarely read different cells of the same bank. In 3D samples are assigned
// to lanes so that these read different banks; if tiles have too few samples for that, each group of lanes sums one
// sample at a time. Very few samples of a large grid are read from the grid: a block takes samples of any tiles.
//
// Macros from the plan, and those of gridding.cuh:
//   STAGED          1 if tiles go through shared memory, otherwise 0
//   TILE_Y, TILE_Z  cells of a tile along y and z; it has 16 along x (in 2D TILE_Y is along z)
//   STRIDE, PLANE   cells from a row of the tile in shared memory to the next row, and from a plane to the next plane
//   GATHER_WARPS    warps per block
//   SAMPLES         maximum number of samples of a block, in 3D, if each lane sums a different sample
//   PLACES          places for these samples
//   UNROLL_ROUNDS   in 3D otherwise: unrolled iterations of the loop over samples
// SEVERAL_RESIDENT compiles `interpolate_several` too: blocks per multiprocessor that registers must allow.

// The caller's values from those in the order of the points; blockIdx.y is an array. Writes nothing if the check has
// failed.
extern "C" __global__ void __launch_bounds__(256)
restore_values(const cplx *sorted, const u32 *places, u64 n, cplx *values, input_check check)
{
    begin_kernel();
    const u64 i = (u64)blockIdx.x * 256 + threadIdx.x;
    if (i < n && !has_failed(check)) values[blockIdx.y * n + i] = sorted[blockIdx.y * n + places[i]];
}

// places = the inverse permutation of order.
extern "C" __global__ void __launch_bounds__(256)
invert_order(const u32 *order, u64 n, u32 *places)
{
    begin_kernel();
    const u64 i = (u64)blockIdx.x * 256 + threadIdx.x;
    if (i < n) places[order[i]] = (u32)i;
}

// near += the number of values whose point is at most 32 places from that of the previous value.
extern "C" __global__ void __launch_bounds__(256)
count_near(const u32 *places, u64 n, unsigned long long *near)
{
    begin_kernel();
    const u64 i = (u64)blockIdx.x * 256 + threadIdx.x + 1;
    const int distance = i < n ? (int)(places[i] - places[i - 1]) : 33;
    const int count = __syncthreads_count(abs(distance) <= 32);
    if (threadIdx.x == 0) atomicAdd(near, (unsigned long long)count);
}

#define TILE_X 16
#define STAGED_X (TILE_X + W - 1)
#define STAGED_Y (TILE_Y + W - 1)
#define STAGED_Z (DIM == 3 ? TILE_Z + W - 1 : 1)

// Source and destination of interpolation: the `arrays` grids and their arrays of n values follow each other. The
// values are in the order of the points if `order` is null. A block works on the segment of its number in `schedule`.
// In 2D and single precision, `tile_samples` take the place of points, planes and order if they are not null.
struct interpolation {
    layout grid;
    const point *points;
    const u16 *planes;
    const u32 *order;
    const tile_sample *tile_samples;
    const segment *segments;
    const u32 *schedule;
    const cplx *cells;
    cplx *values;
    u64 n;
    u32 arrays;
    input_check check;
};

// The first cell of a sample's window on a 3D grid, and its place in a tile in shared memory.
__device__ __forceinline__ corner start_of(const point &p, u32 plane)
{
    return {p.xy & 0xffff, p.xy >> 16, plane};
}
__device__ __forceinline__ u32 place_in_tile(const corner &tile, const corner &cell)
{
    return (cell.z - tile.z) * PLANE + (cell.y - tile.y) * STRIDE + cell.x - tile.x;
}

// Copies cells to shared memory, asynchronously if the device supports it. Two cells of 8 bytes must be at addresses
// that are multiples of 16.
template <int CELLS>
__device__ __forceinline__ void copy_ahead(cplx *to, const cplx *from)
{
#if __CUDA_ARCH__ >= 800
    const u32 address = (u32)__cvta_generic_to_shared(to);
    if (CELLS * sizeof(cplx) == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(address), "l"(from) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" :: "r"(address), "l"(from) : "memory");
#else
    #pragma unroll
    for (int c = 0; c < CELLS; c++) to[c] = from[c];
#endif
}
__device__ __forceinline__ void wait_for_copies()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// The axis along which a window's rows follow one another: y, in 2D z.
#define ROW_AXIS (DIM == 3 ? 1 : 2)

// Copies the rows of a tile, CELLS cells per lane. Lanes that share a row take it in all planes.
template <int CELLS>
__device__ __forceinline__ void stage_rows(const layout &grid, const corner &tile, const cplx *field, cplx *staged)
{
    const u32 lanes = 32 / CELLS, at = threadIdx.x % lanes * CELLS;
    if (at >= STAGED_X) return;
    u32 x = tile.x + at;
    if (x >= grid.size[0]) x -= grid.size[0];
    const u64 plane = DIM == 3 ? (u64)grid.size[0] * grid.size[1] : 0;
    for (u32 i = threadIdx.x / lanes; i < STAGED_Y; i += GATHER_WARPS * CELLS) {
        u32 y = (DIM == 3 ? tile.y : tile.z) + i, z = tile.z;
        if (y >= grid.size[ROW_AXIS]) y -= grid.size[ROW_AXIS];
        const cplx *from = field + z * plane + (u64)y * grid.size[0] + x;
        cplx *to = staged + i * STRIDE + at;
        #pragma unroll 4
        for (u32 j = 0; j < STAGED_Z; j++) {
            copy_ahead<CELLS>(to + j * PLANE, from);
            from += plane;
            if (++z == grid.size[2]) {
                z = 0;
                from -= plane * grid.size[2];
            }
        }
    }
}

// Copies a tile, and the cells beyond it that windows reach, to shared memory. A tile may be longer than the grid, of
// which it then has cells twice.
__device__ __forceinline__ void stage_tile(const layout &grid, const corner &tile, const cplx *field, cplx *staged)
{
    constexpr int pair = !DOUBLE && STRIDE % 2 == 0 && PLANE % 2 == 0 ? 2 : 1;
    if (pair == 1 || grid.size[0] % 2 == 0) stage_rows<pair>(grid, tile, field, staged);
    else stage_rows<1>(grid, tile, field, staged);
}

#ifdef SAMPLES

// All lanes of a warp read the cell at the same place of their windows. Shared memory returns BANKS of these cells at
// once if they are in different banks, so samples are assigned to places: rows of BANKS lanes, a place per bank. A
// sample gets a place of the bank of its window's first cell. A sample of a bank with more samples than others may be
// late by one row. When the other lanes read a row, it reads the row before, and its cells are in banks that are STRIDE
// lower. So it gets a place of that bank. The samples of a bank that are late make room for late ones of another bank,
// and so on around the cycle of banks. Which samples are late does not change their sums.
#define BANKS (128 / (int)sizeof(cplx))
// Banks that lateness connects: all, or every other one.
#define CYCLE (BANKS / (STRIDE % 2 ? 1 : 2))
static_assert(STRIDE % 2 || STRIDE % 4 == 2, "a row leads to all banks of a cycle");
// So a late lane is STRIDE banks away in all rows of all planes.
static_assert(PLANE % BANKS == W * STRIDE % BANKS, "a plane is W rows of banks");

// A sample in shared memory. `start` is its window's first cell in the tile, `number` that in the segment.
struct __align__(16) placed_sample {
    real t[3];
    u16 start, number;
};
#define LATE 0x8000
static_assert(PLANE * STAGED_Z <= 0x10000 && SAMPLES <= LATE, "cells and samples are numbers of 16 bits");
// Maximum number of rows of places. It is higher than the samples of a bank on average, because lateness cannot always
// balance banks.
#define MOST_ROWS(samples) (((samples) + BANKS - 1) / BANKS * 5 / 4 + 1)
static_assert(MOST_ROWS(SAMPLES) * BANKS <= PLACES, "all samples have places");

// For each bank: samples that start there, those of them that are not late, places that are used, and places that are
// not used of banks before it.
struct bank_table {
    u32 starting[BANKS], in_time[BANKS], used[BANKS], unused_before[BANKS];
    // Number of rows, and of samples for which their bank has no place.
    u32 rows, others;
};
// The host reserves this much shared memory for them.
static_assert(sizeof(placed_sample) == 4 * sizeof(real) && sizeof(bank_table) == (4 * BANKS + 2) * sizeof(u32), "");

// Decides for all banks how many of their samples are late. Called by one warp: a cycle of banks has 2 CYCLE lanes,
// twice around the cycle.
__device__ __forceinline__ void balance_banks(bank_table &banks, u32 samples)
{
    const u32 lane = threadIdx.x & 31, at = lane % (2 * CYCLE), nth = lane / (2 * CYCLE);
    const u32 bank = (nth + (BANKS - at % BANKS) * (STRIDE % BANKS)) % BANKS;
    const bool exists = nth * CYCLE < BANKS, counts = exists && at >= CYCLE;
    const int starting = exists ? banks.starting[bank] : 0;
    int sum = warp_inclusive<2 * CYCLE>(starting);
    // Samples above the average of the cycle are late: the largest sum of such over consecutive banks that end here.
    const int average = (__shfl_sync(ALL, sum, CYCLE - 1, 2 * CYCLE) + CYCLE - 1) / CYCLE;
    sum -= average * (int)(at + 1);
    int least = min(sum, 0);
    #pragma unroll
    for (int step = 1; step < 2 * CYCLE; step *= 2) {
        const int before = __shfl_up_sync(ALL, least, step, 2 * CYCLE);
        if (at >= step) least = min(least, before);
    }
    const int late = min(sum - least, starting), from_previous = __shfl_up_sync(ALL, late, 1, 2 * CYCLE);
    const u32 needed = counts ? starting - late + from_previous : 0;
    u32 rows = needed;
    #pragma unroll
    for (int step = 1; step < 32; step *= 2) rows = max(rows, __shfl_xor_sync(ALL, rows, step));
    rows = min(rows, MOST_ROWS(samples));
    const u32 unused = counts ? rows - min(needed, rows) : 0;
    const u32 unused_before = warp_inclusive(unused) - unused;
    if (counts) {
        banks.in_time[bank] = starting - late;
        banks.used[bank] = needed;
        banks.unused_before[bank] = unused_before;
    }
    if (lane == 0) banks.rows = rows;
}

// Returns the place of the nth sample that starts in a bank, and whether it is late.
__device__ __forceinline__ u32 place_of(bank_table &banks, u32 bank, u32 nth, bool &late)
{
    late = nth >= banks.in_time[bank];
    if (late) {
        nth -= banks.in_time[bank];
        bank = (bank + BANKS - STRIDE % BANKS) % BANKS;
        nth += banks.in_time[bank];
    }
    if (nth < banks.rows) return nth * BANKS + bank;
    // Takes a place of another bank, with a conflict unless both windows start at the same cell.
    const u32 other = atomicAdd(&banks.others, 1u);
    bank = 0;
    while (other - banks.unused_before[bank] >= banks.rows - min(banks.used[bank], banks.rows)) bank++;
    return (banks.used[bank] + other - banks.unused_before[bank]) * BANKS + bank;
}

// Returns whether a place has a sample.
__device__ __forceinline__ bool is_used(const bank_table &banks, u32 place)
{
    const u32 bank = place % BANKS, row = place / BANKS;
    return row < banks.used[bank] || banks.unused_before[bank] + row - banks.used[bank] < banks.others;
}

// Adds a row of a window times a weight.
__device__ __forceinline__ void add_row(const cplx *cells, const real *wx, real weight, cplx &sum)
{
    real re = 0, im = 0;
    #pragma unroll
    for (int i = 0; i < W; i++) {
        const cplx value = cells[i];
        re = fma(value.x, wx[i], re);
        im = fma(value.y, wx[i], im);
    }
    sum.x = fma(re, weight, sum.x);
    sum.y = fma(im, weight, sum.y);
}

// The sum over the window of a sample that starts at `cells` in the tile.
__device__ __forceinline__ cplx sum_window(const window_polynomials &polynomials, const real t[3], bool late,
                                           const cplx *cells)
{
    real wx[W], wy[W], wz[W];
    taps_at(polynomials, t[0], wx);
    taps_at(polynomials, t[1], wy);
    taps_at(polynomials, t[2], wz);
    // Where and with which weight the lane reads when the others read the first row of a plane, and another one.
    const cplx *first_rows = late ? cells - PLANE + (W - 1) * STRIDE : cells, *rows = late ? cells - STRIDE : cells;
    real weights[W];
    weights[0] = late ? wy[W - 1] : wy[0];
    #pragma unroll
    for (int j = 1; j < W; j++) weights[j] = late ? wy[j - 1] : wy[j];
    cplx sum;
    sum.x = sum.y = 0;
    real previous = 0;
    // Whole large windows would take the compiler seconds.
    constexpr int unrolled = W <= 8 ? W : 1;
    #pragma unroll unrolled
    for (int k = 0; k < W; k++) {
        const real weight = wz[k];
        if (k > 0 || !late) add_row(first_rows + k * PLANE, wx, weights[0] * (late ? previous : weight), sum);
        #pragma unroll
        for (int j = 1; j < W; j++) add_row(rows + k * PLANE + j * STRIDE, wx, weights[j] * weight, sum);
        previous = weight;
    }
    if (late) add_row(first_rows + W * PLANE, wx, weights[0] * previous, sum);
    return sum;
}

// values = window-weighted sums of the grid; blockIdx.y is an array. If the check has failed, nothing is written.
// Shared memory: the tile, the places and the table of banks.
extern "C" __global__ void __launch_bounds__(32 * GATHER_WARPS)
interpolate(window_polynomials polynomials, interpolation all)
{
    begin_kernel();
    extern __shared__ __align__(16) unsigned char shared[];
    constexpr u32 threads = 32 * GATHER_WARPS, each = (SAMPLES + threads - 1) / threads;
    const layout &grid = all.grid;
    const segment part = all.segments[all.schedule[blockIdx.x]];
    const corner tile = corner_of(grid, part.tile);
    cplx *staged = (cplx *)shared;
    placed_sample *places = (placed_sample *)(staged + PLANE * STAGED_Z);
    bank_table &banks = *(bank_table *)(places + PLACES);

    point points[each];
    u32 planes[each], nth[each];
    #pragma unroll
    for (u32 e = 0; e < each; e++) {
        const u32 i = e * threads + threadIdx.x;
        if (i >= part.count) continue;
        points[e] = all.points[part.first + i];
        planes[e] = all.planes[part.first + i];
    }
    stage_tile(grid, tile, all.cells + blockIdx.y * ((u64)grid.size[0] * grid.size[1]) * grid.size[2], staged);
    if (threadIdx.x < BANKS) banks.starting[threadIdx.x] = 0;
    if (threadIdx.x == 0) banks.others = 0;
    __syncthreads();
    const auto start = [&](u32 e) { return place_in_tile(tile, start_of(points[e], planes[e])); };
    #pragma unroll
    for (u32 e = 0; e < each; e++)
        if (e * threads + threadIdx.x < part.count) nth[e] = atomicAdd(&banks.starting[start(e) % BANKS], 1u);
    __syncthreads();
    if (threadIdx.x < 32) balance_banks(banks, part.count);
    __syncthreads();
    #pragma unroll
    for (u32 e = 0; e < each; e++) {
        const u32 i = e * threads + threadIdx.x;
        if (i >= part.count) continue;
        bool late;
        const u32 place = place_of(banks, start(e) % BANKS, nth[e], late);
        const fraction *t = points[e].t;
        places[place] = {{variable_of(t[0]), variable_of(t[1]), variable_of(t[2])}, (u16)start(e),
                         (u16)(late ? i | LATE : i)};
    }
    wait_for_copies();
    __syncthreads();
    for (u32 place = threadIdx.x; place < banks.rows * BANKS; place += threads) {
        if (!is_used(banks, place)) continue;
        const placed_sample s = places[place];
        const u64 i = part.first + (s.number & ~LATE);
        const u32 to = all.order ? all.order[i] : (u32)i;
        const cplx sum = sum_window(polynomials, s.t, s.number & LATE, staged + s.start);
        if (!has_failed(all.check)) all.values[blockIdx.y * all.n + to] = sum;
    }
}

#elif DIM == 3

// Lanes that sum one sample: rows of taps along x side by side, in half a warp if they fit.
#define GROUP (W <= 8 ? 16 : 32)
#define GROUPS (32 / GROUP)
// Samples of which a warp has records at once.
#define BATCH (GROUP == 32 ? 16 : 32)
#define GROUP_ROWS (GROUP / W)
#define STEPS ((W + GROUP_ROWS - 1) / GROUP_ROWS)
// A sample's record in shared memory: its taps along z, x and y.
#define REALS_16 (16 / (int)sizeof(real))
#define GATHER_Z 0
#define GATHER_X ((W + REALS_16 - 1) / REALS_16 * REALS_16)
#define GATHER_Y (GATHER_X + W)
#define GATHER_RECORD (((GATHER_Y + W + REALS_16 - 1) / REALS_16 | 1) * REALS_16)

__device__ __forceinline__ void write_gather_record(const window_polynomials &polynomials, const point &p, real *record)
{
    real taps[GATHER_X];
    taps_at(polynomials, variable_of(p.t[2]), taps);
    #pragma unroll
    for (int j = W; j < GATHER_X; j++) taps[j] = 0;
    #pragma unroll
    for (int j = 0; j < GATHER_X; j++) record[GATHER_Z + j] = taps[j];
    taps_at(polynomials, variable_of(p.t[0]), taps);
    #pragma unroll
    for (int j = 0; j < W; j++) record[GATHER_X + j] = taps[j];
    taps_at(polynomials, variable_of(p.t[1]), taps);
    #pragma unroll
    for (int j = 0; j < W; j++) record[GATHER_Y + j] = taps[j];
}

// Start of a window on the grid, and in the tile in shared memory.
struct window_start {
    corner on_grid;
    u32 in_tile;
};

// A lane's place in its group: a tap along x, and a row of each step. Idle lanes read the last position with weight 0.
struct group_lane {
    u32 x, row;
    bool idle;
};

// The lane's part of the sum over the window of the warp's sample s. `start` is where the window of the lane's own
// sample starts.
__device__ __forceinline__ cplx sum_window(const layout &grid, const group_lane &at, const window_start &start, u32 s,
                                           const real *taps, const cplx *field, const cplx *staged)
{
    real re = 0, im = 0;
    u32 in_tile, x, first_y, first_z;
    if (STAGED) {
        in_tile = __shfl_sync(ALL, start.in_tile, s) + at.x;
    } else {
        x = __shfl_sync(ALL, start.on_grid.x, s) + at.x;
        if (x >= grid.size[0]) x -= grid.size[0];
        first_y = __shfl_sync(ALL, start.on_grid.y, s);
        first_z = __shfl_sync(ALL, start.on_grid.z, s);
    }
    real wz[W];
    #pragma unroll
    for (int j = 0; j < W; j++) wz[j] = taps[GATHER_Z + j];
    #pragma unroll
    for (int step = 0; step < STEPS; step++) {
        const u32 row = step * GROUP_ROWS + at.row;
        // Rows beyond the window read its last one with weight 0.
        const bool beyond = STEPS * GROUP_ROWS > W && step == STEPS - 1 && row >= W;
        const u32 in_window = beyond ? W - 1 : row;
        real sum_re = 0, sum_im = 0;
        #pragma unroll
        for (int j = 0; j < W; j++) {
            cplx value;
            if (STAGED) {
                value = staged[in_tile + j * PLANE + in_window * STRIDE];
            } else {
                u32 y = first_y + in_window, z = first_z + j;
                if (y >= grid.size[1]) y -= grid.size[1];
                if (z >= grid.size[2]) z -= grid.size[2];
                value = field[((u64)z * grid.size[1] + y) * grid.size[0] + x];
            }
            sum_re = fma(value.x, wz[j], sum_re);
            sum_im = fma(value.y, wz[j], sum_im);
        }
        const real wy = at.idle || beyond ? 0 : taps[GATHER_Y + in_window];
        re = fma(sum_re, wy, re);
        im = fma(sum_im, wy, im);
    }
    const real wx = taps[GATHER_X + at.x];
    cplx sum;
    sum.x = re * wx;
    sum.y = im * wx;
    return sum;
}

// Sums over the lanes of a group: the real part in even lanes, the imaginary part in odd ones.
__device__ __forceinline__ real sum_over_group(cplx part)
{
    const u32 odd_lane = threadIdx.x & 1;
    const real other = __shfl_xor_sync(ALL, odd_lane ? part.x : part.y, 1);
    real sum = (odd_lane ? part.y : part.x) + other;
    #pragma unroll
    for (int step = 2; step < GROUP; step *= 2) sum += __shfl_xor_sync(ALL, sum, step);
    return sum;
}

// The same for few samples. Shared memory: the tile if STAGED, and the warps' records.
extern "C" __global__ void __launch_bounds__(32 * GATHER_WARPS)
interpolate(window_polynomials polynomials, interpolation all)
{
    begin_kernel();
    extern __shared__ __align__(16) unsigned char shared[];
    const layout &grid = all.grid;
    const segment part = all.segments[all.schedule[blockIdx.x]];
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const cplx *field = all.cells + blockIdx.y * ((u64)grid.size[0] * grid.size[1]) * grid.size[2];
    cplx *staged = (cplx *)shared;
    real *records = (real *)(staged + (STAGED ? PLANE * STAGED_Z : 0)) + warp * BATCH * GATHER_RECORD;
    const corner tile = corner_of(grid, part.tile);
    if (STAGED) stage_tile(grid, tile, field, staged);

    const u32 place = lane % GROUP, group = lane / GROUP;
    const bool idle = place >= GROUP_ROWS * W;
    const group_lane at = {idle ? W - 1 : place % W, idle ? GROUP_ROWS - 1 : place / W, idle};
    // Samples are divided evenly, at most BATCH per warp.
    const u32 share = min((part.count + GATHER_WARPS - 1) / GATHER_WARPS, (u32)BATCH);
    bool staging = STAGED;
    for (u32 batch = 0; batch < part.count; batch += share * GATHER_WARPS) {
        const u32 first = batch + warp * share;
        const u32 count = first < part.count ? min(share, part.count - first) : 0;
        u32 m = 0;
        window_start start = {{0, 0, 0}, 0};
        if (lane < count) {
            const u64 i = part.first + first + lane;
            const point p = all.points[i];
            m = all.order ? all.order[i] : (u32)i;
            start.on_grid = start_of(p, all.planes[i]);
            if (STAGED) start.in_tile = place_in_tile(tile, start.on_grid);
            write_gather_record(polynomials, p, records + lane * GATHER_RECORD);
        }
        if (staging) {
            wait_for_copies();
            __syncthreads();
            staging = false;
        }
        __syncwarp();
        real even = 0, odd = 0;
        #pragma unroll UNROLL_ROUNDS
        for (u32 round = 0; round < (count + GROUPS - 1) / GROUPS; round++) {
            // Groups without a sample take the last one once more.
            const u32 s = min(round * GROUPS + group, count - 1);
            const real sum = sum_over_group(sum_window(grid, at, start, s, records + s * GATHER_RECORD, field, staged));
            // Each pair of lanes keeps two samples, those whose numbers are its places.
            if ((place ^ round) < 2) {
                if (round & 1) odd = sum;
                else even = sum;
            }
        }
        // A lane writes the sample of its place and group.
        const u32 s = place * GROUPS + group;
        const u32 to = __shfl_sync(ALL, m, s & 31);
        const real other = __shfl_xor_sync(ALL, lane & 1 ? even : odd, 1);
        cplx value;
        value.x = lane & 1 ? other : even;
        value.y = lane & 1 ? odd : other;
        if (s < count && !has_failed(all.check)) all.values[blockIdx.y * all.n + to] = value;
        __syncwarp();
    }
}

#else

// Loads a sample of the segment; the first one in place of those past its end.
__device__ __forceinline__ tile_sample load_tile_sample(const interpolation &all, const segment &part, u32 nth)
{
    const u64 i = part.first + (nth < part.count ? nth : 0);
    if (!DOUBLE && all.tile_samples) return all.tile_samples[i];
    const point p = all.points[i];
    return {{p.t[0], p.t[2]}, p.xy | (u32)all.planes[i] << 16, all.order ? all.order[i] : (u32)i};
}

#if STAGED

// The sum over the window of a sample that starts at `cells` in the tile.
__device__ __forceinline__ cplx sum_window(const real *wx, const real *wy, const cplx *cells)
{
    cplx sum;
    sum.x = sum.y = 0;
    #pragma unroll
    for (int i = 0; i < W; i++) {
        real re = 0, im = 0;
        #pragma unroll
        for (int j = 0; j < W; j++) {
            const cplx value = cells[i * STRIDE + j];
            re = fma(value.x, wx[j], re);
            im = fma(value.y, wx[j], im);
        }
        sum.x = fma(re, wy[i], sum.x);
        sum.y = fma(im, wy[i], sum.y);
    }
    return sum;
}

// Interpolates `together` arrays, from array blockIdx.y times `together` on, which share their samples' taps. Without
// SEVERAL it is one.
template <bool SEVERAL>
__device__ __forceinline__ void interpolate_arrays(const window_polynomials &polynomials, const interpolation &all,
                                                   u32 together)
{
    extern __shared__ __align__(16) unsigned char shared[];
    const layout &grid = all.grid;
    const segment part = all.segments[all.schedule[blockIdx.x]];
    const corner tile = corner_of(grid, part.tile);
    const u32 array0 = SEVERAL ? blockIdx.y * together : blockIdx.y;
    const u32 arrays = SEVERAL ? min(together, all.arrays - array0) : 1;
    cplx *staged = (cplx *)shared;
    #pragma unroll 1
    for (u32 a = 0; a < arrays; a++)
        stage_tile(grid, tile, all.cells + (array0 + a) * ((u64)grid.size[0] * grid.size[2]),
                   staged + a * PLANE);
    bool staging = true;
    // While a sample is summed, the lane's next one is loaded.
    tile_sample next = load_tile_sample(all, part, threadIdx.x);
    for (u32 first = 0; first < part.count; first += 32 * GATHER_WARPS) {
        const bool exists = first + threadIdx.x < part.count;
        const auto [t, xz, place] = next;
        next = load_tile_sample(all, part, first + 32 * GATHER_WARPS + threadIdx.x);
        real wx[W], wy[W];
        taps_at(polynomials, t[0], wx);
        taps_at(polynomials, t[1], wy);
        if (staging) {
            wait_for_copies();
            __syncthreads();
            staging = false;
        }
        const bool writes = exists && !has_failed(all.check);
        const cplx *start = staged + ((xz >> 16) - tile.z) * STRIDE + (xz & 0xffff) - tile.x;
        #pragma unroll 1
        for (u32 a = 0; a < arrays; a++) {
            const cplx sum = sum_window(wx, wy, start + a * PLANE);
            if (writes) all.values[(array0 + a) * all.n + place] = sum;
        }
    }
}

// The same in 2D. The grid's z takes the place of y, also in TILE_Y. Shared memory: the tile.
extern "C" __global__ void __launch_bounds__(32 * GATHER_WARPS)
interpolate(window_polynomials polynomials, interpolation all)
{
    begin_kernel();
    interpolate_arrays<false>(polynomials, all, 1);
}

#ifdef SEVERAL_RESIDENT

// The same for several arrays. Shared memory: their tiles.
extern "C" __global__ void __launch_bounds__(32 * GATHER_WARPS, SEVERAL_RESIDENT)
interpolate_several(window_polynomials polynomials, interpolation all, u32 together)
{
    begin_kernel();
    interpolate_arrays<true>(polynomials, all, together);
}

#endif

#else

// Lanes that sum one sample, of which there are few: each lane has one row of the window.
#define ROW_LANES 16

// The same in 2D without tiles.
extern "C" __global__ void __launch_bounds__(32 * GATHER_WARPS)
interpolate(window_polynomials polynomials, interpolation all)
{
    begin_kernel();
    const layout &grid = all.grid;
    const segment part = all.segments[all.schedule[blockIdx.x]];
    const cplx *field = all.cells + blockIdx.y * ((u64)grid.size[0] * grid.size[2]);
    const u32 lane = threadIdx.x % ROW_LANES, group = threadIdx.x / ROW_LANES;
    for (u32 first = 0; first < part.count; first += 32 * GATHER_WARPS / ROW_LANES) {
        const auto [t, xz, place] = load_tile_sample(all, part, first + group);
        u32 row = (xz >> 16) + lane;
        if (row >= grid.size[2]) row -= grid.size[2];
        const cplx *in_row = field + (u64)row * grid.size[0];
        real wx[W], wy[W], of_row = 0;
        taps_at(polynomials, t[0], wx);
        taps_at(polynomials, t[1], wy);
        #pragma unroll
        for (int i = 0; i < W; i++)
            if (i == lane) of_row = wy[i];
        cplx sum;
        sum.x = sum.y = 0;
        if (lane < W) {
            #pragma unroll
            for (int j = 0; j < W; j++) {
                u32 x = (xz & 0xffff) + j;
                if (x >= grid.size[0]) x -= grid.size[0];
                const cplx value = in_row[x];
                sum.x = fma(value.x, wx[j], sum.x);
                sum.y = fma(value.y, wx[j], sum.y);
            }
        }
        sum.x *= of_row;
        sum.y *= of_row;
        #pragma unroll
        for (int step = 1; step < ROW_LANES; step *= 2) {
            sum.x += __shfl_xor_sync(ALL, sum.x, step);
            sum.y += __shfl_xor_sync(ALL, sum.y, step);
        }
        if (first + group < part.count && lane == 0 && !has_failed(all.check))
            all.values[blockIdx.y * all.n + place] = sum;
    }
}

#endif
#endif
