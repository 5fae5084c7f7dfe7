// Sorts the samples of a plan by bins of the grid, and lists for each tile of spreading the samples whose windows touch
// it.
//
// Macros: DIM is 2 or 3. ROUNDS is the maximum number of samples per thread of a pass. If WIDE is 1, counts may exceed
// 30 bits.
//
// A bin is a part of one plane of a tile of interpolation, small enough that all windows which start in it touch the
// same tiles of spreading. The samples are sorted by bins with a stable radix sort from the lowest digit to the highest
// (Adinets and Merrill, "Onesweep", 2022). A block ranks its samples and publishes its counts. It adds the counts of
// the blocks before it, and moves the coordinates. The list of a tile then consists of runs of consecutive samples,
// whose ends are known from the starts of the bins. Equal keys keep their order and all sums are of integers, so the
// result depends only on the input.
//
// Coordinates move together with the keys, so that no pass reads them at random.
//
// In 2D, interpolation may take the samples of a tile in the order of the input instead, see `write_tile_samples`.

#define SORT_WARPS 8
#define SORT_THREADS (32 * SORT_WARPS)
// Digits of a pass.
#define DIGIT_BITS 8
#define DIGITS 256
#define MAX_PASSES 4
// Blocks before its own whose counts a thread reads at once.
#define WINDOW 8

#if WIDE
typedef u64 state;
#define FLAG_SHIFT 62
#else
typedef u32 state;
#define FLAG_SHIFT 30
#endif
#define PARTIAL ((state)1 << FLAG_SHIFT)
#define INCLUSIVE ((state)2 << FLAG_SHIFT)
#define COUNT_OF(s) ((s) & (PARTIAL - 1))

// The grid, and the bins of a tile of interpolation: planes, and the classes of each plane along y and x.
struct bin_layout {
    u32 size[3], width;
    u32 tiles_x, tiles_y, planes, classes_y, classes_x;
};

// A sample on its way: coordinates and index.
struct __align__(4 * sizeof(real)) record {
    real k[DIM];
    u32 index;
};

// As in gridding.cu. Unused bytes are written too: memory that is written in part must be read first.
struct __align__(4 * sizeof(real)) point {
    real t[3];
    u32 xy;
#if DOUBLE
    u32 unused;
#endif
};

// The lanes of the warp with the same digit, which has up to 9 bits. Faster than __match_any_sync for many digits.
__device__ __forceinline__ u32 peers_of(u32 digit)
{
    u32 peers = 0xffffffffu;
    #pragma unroll
    for (u32 bit = 0; bit <= DIGIT_BITS; bit++) {
        const u32 set = __ballot_sync(0xffffffffu, digit >> bit & 1);
        peers &= digit >> bit & 1 ? set : ~set;
    }
    return peers;
}

// Computes the first cell of a sample's window on one axis, and the sample's offset in it as the polynomials' variable.
__device__ __forceinline__ void locate(real k, u32 size, u32 width, u32 *cell, real *t)
{
    // In double precision: a grid position in single precision would cost two digits of the offset.
    const double position = (double)k * size - 0.5 * width;
    const double first = ceil(position);
    const int start = (int)first;
    *t = (real)(2.0 * (first - position) - 1.0);
    // A grid is at least two windows long, so adding one period is enough.
    *cell = start < 0 ? start + size : start;
}

struct located {
    point p;
    u32 plane;
};

__device__ __forceinline__ located locate_sample(const bin_layout &b, const real k[DIM])
{
    located at;
    u32 x, y = 0;
    at.p.t[1] = 0;
    locate(k[0], b.size[0], b.width, &x, &at.p.t[0]);
    if (DIM == 3) locate(k[1], b.size[1], b.width, &y, &at.p.t[1]);
    locate(k[DIM - 1], b.size[2], b.width, &at.plane, &at.p.t[2]);
    at.p.xy = x | y << 16;
#if DOUBLE
    at.p.unused = 0;
#endif
    return at;
}

// `cells` has, for each cell of x, then y, then z: the tile times 2^16, and the class (for z the plane) in the tile.
__device__ __forceinline__ u32 key_of(const bin_layout &b, const u32 *cells, const located &at)
{
    const u32 x = cells[at.p.xy & 0xffff], y = cells[b.size[0] + (at.p.xy >> 16)];
    const u32 z = cells[b.size[0] + b.size[1] + at.plane];
    const u32 tile = ((z >> 16) * b.tiles_y + (y >> 16)) * b.tiles_x + (x >> 16);
    return ((tile * b.planes + (z & 0xffff)) * b.classes_y + (y & 0xffff)) * b.classes_x + (x & 0xffff);
}

#if DIM == 2

// The tile of interpolation of a sample.
__device__ __forceinline__ u32 tile_of(const bin_layout &b, const u32 *cells, const located &at)
{
    const u32 x = cells[at.p.xy], z = cells[b.size[0] + b.size[1] + at.plane];
    return (z >> 16) * b.tiles_x + (x >> 16);
}

// The lanes that start a run: samples of one tile that follow one another in a warp.
__device__ __forceinline__ u32 run_starts(u32 tile)
{
    const u32 before = __shfl_up_sync(0xffffffffu, tile, 1);
    return __ballot_sync(0xffffffffu, (threadIdx.x & 31) == 0 || tile != before);
}

#endif

__device__ __forceinline__ u32 warp_inclusive(u32 x)
{
    const u32 lane = threadIdx.x & 31;
    #pragma unroll
    for (u32 step = 1; step < 32; step *= 2) {
        const u32 other = __shfl_up_sync(0xffffffffu, x, step);
        if (lane >= step) x += other;
    }
    return x;
}

// Counts the digits of all passes, [pass][digit]. The last block replaces the counts by their exclusive prefix sums. In
// 2D it counts the runs of samples, too.
extern "C" __global__ void __launch_bounds__(SORT_THREADS)
count_digits(const real *kx, const real *ky, const real *kz, u64 n, bin_layout b, const u32 *cells, u32 passes,
             u32 *digits, u32 *done, u64 *runs)
{
    begin_kernel();
    __shared__ u32 bins[MAX_PASSES * DIGITS];
    __shared__ bool last;
    for (u32 i = threadIdx.x; i < passes * DIGITS; i += SORT_THREADS) bins[i] = 0;
    __syncthreads();
    u32 seen_runs = 0;
    #pragma unroll 4
    for (u64 first = (u64)blockIdx.x * SORT_THREADS; first < n; first += (u64)gridDim.x * SORT_THREADS) {
        const bool exists = first + threadIdx.x < n;
        const u64 m = exists ? first + threadIdx.x : n - 1;
        real k[DIM];
        k[0] = kx[m];
        if (DIM == 3) k[1] = ky[m];
        k[DIM - 1] = kz[m];
        const located at = locate_sample(b, k);
        const u32 key = key_of(b, cells, at);
        for (u32 p = 0; exists && p < passes; p++)
            atomicAdd(&bins[p * DIGITS + (key >> DIGIT_BITS * p & (DIGITS - 1))], 1u);
#if DIM == 2
        seen_runs += __popc(run_starts(tile_of(b, cells, at)));
#endif
    }
    if (seen_runs && (threadIdx.x & 31) == 0) atomicAdd(runs, (u64)seen_runs);
    __syncthreads();
    for (u32 i = threadIdx.x; i < passes * DIGITS; i += SORT_THREADS)
        if (bins[i]) atomicAdd(&digits[i], bins[i]);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(done, 1u) == gridDim.x - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    __shared__ u32 sums[SORT_WARPS];
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (u32 p = 0; p < passes; p++) {
        volatile u32 *of = digits + p * DIGITS + threadIdx.x;
        const u32 count = *of, inclusive = warp_inclusive(count);
        if (lane == 31) sums[warp] = inclusive;
        __syncthreads();
        u32 before = inclusive - count;
        for (u32 w = 0; w < warp; w++) before += sums[w];
        *of = before;
        __syncthreads();
    }
}

// Input and output of a pass; arrays that it does not use are null.
struct sort_arrays {
    const real *k[3];
    const record *from;
    record *to;
};

// Copies a record as units of 16 bytes.
struct __align__(16) sixteen_bytes {
    u32 of[4];
};
union whole_record {
    record fields;
    sixteen_bytes units[sizeof(record) / 16];
    __device__ __forceinline__ whole_record() {}
};

__device__ __forceinline__ void copy_record(record *to, const whole_record &from)
{
    #pragma unroll
    for (u32 i = 0; i < sizeof(record) / 16; i++) ((sixteen_bytes *)to)[i] = from.units[i];
}

template <bool FIRST>
__device__ __forceinline__ void load_record(const sort_arrays &a, u64 m, whole_record &r)
{
    if (FIRST) {
        r.fields.k[0] = a.k[0][m];
        if (DIM == 3) r.fields.k[1] = a.k[1][m];
        r.fields.k[DIM - 1] = a.k[2][m];
        r.fields.index = (u32)m;
    } else {
        #pragma unroll
        for (u32 i = 0; i < sizeof(record) / 16; i++) r.units[i] = ((const sixteen_bytes *)(a.from + m))[i];
    }
}

// Publishes the block's counts of each digit and adds those of the blocks before it. A thread has one digit: `local` is
// its first place in the block's sorted samples, and `base` the distance from there to its place in the output.
__device__ __forceinline__ void place_digits(u32 counts[SORT_WARPS][DIGITS], u32 block, const u32 *digits,
                                             volatile state *states, u32 *local, u32 *base)
{
    __shared__ u32 sums[SORT_WARPS];
    const u32 d = threadIdx.x, lane = d & 31, warp = d >> 5;
    u32 count = 0, before = 0;
    #pragma unroll
    for (u32 w = 0; w < SORT_WARPS; w++) {
        const u32 c = counts[w][d];
        counts[w][d] = count;
        count += c;
    }
    states[(u64)block * DIGITS + d] = (block ? PARTIAL : INCLUSIVE) | count;
    const u32 inclusive = warp_inclusive(count);
    if (lane == 31) sums[warp] = inclusive;
    __syncthreads();
    u32 first = inclusive - count;
    for (u32 w = 0; w < warp; w++) first += sums[w];
    for (u32 at = block; at > 0;) {
        state seen[WINDOW];
        #pragma unroll
        for (u32 i = 0; i < WINDOW; i++) seen[i] = at > i ? states[(u64)(at - 1 - i) * DIGITS + d] : INCLUSIVE;
        u32 taken = 0;
        bool done = false, waits = false;
        #pragma unroll
        for (u32 i = 0; i < WINDOW; i++) {
            waits = waits || seen[i] < PARTIAL;
            if (done || waits) continue;
            before += (u32)COUNT_OF(seen[i]);
            done = seen[i] >= INCLUSIVE;
            taken++;
        }
        if (done) break;
        at -= taken;
    }
    if (block) states[(u64)block * DIGITS + d] = INCLUSIVE | (state)before + count;
    local[d] = first;
    base[d] = digits[d] + before - first;
}

// Ranks the samples of a block, sorts them in shared memory, and moves them to their places. Each warp has samples
// that follow one another, up to ROUNDS per lane.
template <bool FIRST>
__device__ __forceinline__ void sort_pass(const sort_arrays &a, u64 n, const bin_layout &b, const u32 *cells, u32 shift,
                                          u32 rounds, const u32 *digits, volatile state *states, u32 *ticket)
{
    extern __shared__ __align__(16) unsigned char shared[];
    record *sorted = (record *)shared;
    unsigned char *digit_of = shared + sizeof(record) * SORT_THREADS * ROUNDS;
    __shared__ u32 counts[SORT_WARPS][DIGITS], local[DIGITS], base[DIGITS], number;
    const u32 warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    // Blocks take their numbers when they start, so that a block waits only for blocks that run.
    if (threadIdx.x == 0) number = atomicAdd(ticket, 1u);
    for (u32 w = 0; w < SORT_WARPS; w++) counts[w][threadIdx.x] = 0;
    __syncthreads();
    const u32 block = number;
    const u64 block_first = (u64)block * SORT_THREADS * rounds;
    const u64 first = block_first + warp * 32 * rounds + lane;
    whole_record mine[ROUNDS];
    u32 place[ROUNDS];
    // All loads are in flight together. Past the end they repeat the last sample: with a condition, the thread would
    // wait for each before the next.
    #pragma unroll
    for (u32 r = 0; r < ROUNDS; r++) load_record<FIRST>(a, min(first + 32 * r, n - 1), mine[r]);
    #pragma unroll
    for (u32 r = 0; r < ROUNDS; r++) {
        if (r >= rounds) break;
        // Lanes past the end have a digit that no sample has.
        const bool exists = first + 32 * r < n;
        u32 digit = DIGITS;
        if (exists) digit = key_of(b, cells, locate_sample(b, mine[r].fields.k)) >> shift & (DIGITS - 1);
        const u32 peers = peers_of(digit);
        const u32 before = __popc(peers & ((1u << lane) - 1));
        u32 seen = 0;
        if (exists) seen = counts[warp][digit];
        __syncwarp();
        if (exists && before == 0) counts[warp][digit] = seen + __popc(peers);
        __syncwarp();
        place[r] = digit << 16 | (seen + before);
    }
    __syncthreads();
    place_digits(counts, block, digits, states, local, base);
    __syncthreads();
    #pragma unroll
    for (u32 r = 0; r < ROUNDS; r++) {
        if (r >= rounds) break;
        if (first + 32 * r >= n) continue;
        const u32 digit = place[r] >> 16, to = local[digit] + counts[warp][digit] + (place[r] & 0xffff);
        copy_record(sorted + to, mine[r]);
        digit_of[to] = (unsigned char)digit;
    }
    __syncthreads();
    const u32 count = (u32)min((u64)SORT_THREADS * rounds, n - block_first);
    for (u32 i = threadIdx.x; i < count; i += SORT_THREADS)
        copy_record(a.to + (u32)(base[digit_of[i]] + i), *(const whole_record *)(sorted + i));
}

#define SORT_PASS(NAME, FIRST)                                                                                         \
    extern "C" __global__ void __launch_bounds__(SORT_THREADS)                                                         \
    NAME(sort_arrays a, u64 n, bin_layout b, const u32 *cells, u32 shift, u32 rounds, const u32 *digits,               \
         state *states, u32 *ticket)                                                                                   \
    {                                                                                                                  \
        begin_kernel();                                                                                                \
        sort_pass<FIRST>(a, n, b, cells, shift, rounds, digits, states, ticket);                                       \
    }
SORT_PASS(sort_first, true)
SORT_PASS(sort_next, false)

// Writes the points of sorted samples and their order, and marks the first sample of each bin. Bins without samples
// keep 0xffffffff: the starts of bins are the minima of all following bins, see `fill_starts`.
extern "C" __global__ void __launch_bounds__(256)
settle(const record *sorted, u64 n, bin_layout b, const u32 *cells, point *points, unsigned short *planes, u32 *order,
       u32 *starts)
{
    begin_kernel();
    __shared__ u32 keys[256];
    const u64 i = (u64)blockIdx.x * 256 + threadIdx.x;
    u32 key = 0;
    if (i < n) {
        const record r = sorted[i];
        const located at = locate_sample(b, r.k);
        key = key_of(b, cells, at);
        points[i] = at.p;
        planes[i] = (unsigned short)at.plane;
        order[i] = r.index;
    }
    keys[threadIdx.x] = key;
    __syncthreads();
    if (i >= n) return;
    bool first = i == 0;
    if (threadIdx.x > 0) first = keys[threadIdx.x - 1] != key;
    else if (i > 0) first = key_of(b, cells, locate_sample(b, sorted[i - 1].k)) != key;
    if (first) starts[key] = (u32)i;
}

#if DIM == 2

// Writes the samples of each tile of interpolation, a run after the other, so that neighbours in the input stay
// neighbours. The order of runs may differ from time to time, since the sums of a sample do not depend on it. `starts`
// has the first place of each bin; that of a tile's first bin of `span` counts the samples that have been written.
extern "C" __global__ void __launch_bounds__(256)
write_tile_samples(const real *kx, const real *kz, u64 n, bin_layout b, const u32 *cells, u32 span, u32 *starts,
                   tile_sample *samples)
{
    begin_kernel();
    const u64 m = (u64)blockIdx.x * 256 + threadIdx.x;
    const u32 lane = threadIdx.x & 31;
    located at;
    u32 tile = 0xffffffff;
    if (m < n) {
        const real k[DIM] = {kx[m], kz[m]};
        at = locate_sample(b, k);
        tile = tile_of(b, cells, at);
    }
    const u32 heads = run_starts(tile), up_to_lane = 0xffffffff >> (31 - lane);
    const u32 head = 31 - __clz(heads & up_to_lane), later = heads & ~up_to_lane;
    u32 place = 0;
    if (m < n && lane == head) place = atomicAdd(&starts[tile * span], (later ? __ffs(later) - 1 : 32) - lane);
    place = __shfl_sync(0xffffffffu, place, head) + lane - head;
    if (m < n) samples[place] = {{at.p.t[0], at.p.t[2]}, at.p.xy | at.plane << 16, (u32)m};
}

#endif

// Spreading: tiles, the number of start planes of a tile, and the runs of samples of each of these planes.
struct run_layout {
    u32 size_z, depth, width;
    u32 tiles[3];
    u32 runs_y, runs_x;
};

// A run of samples that touch a tile.
struct run {
    u32 first, count;
};

// The `nth` run of a tile; its plane is nth / (runs_y runs_x). `rows` has the tile and class of interpolation of each
// run along y, [tile][runs_y]; `columns` the tile, the first class and the number of classes along x, [tile][runs_x].
// Runs that a tile does not have are 0xffffffff.
__device__ __forceinline__ run run_of(const run_layout &l, const bin_layout &b, const u32 *cells, const u32 *rows,
                                      const u32 *columns, const u32 *starts, u32 tile, u32 nth)
{
    const u32 plane = nth / (l.runs_y * l.runs_x), j = nth / l.runs_x % l.runs_y, i = nth % l.runs_x;
    const u32 tile_x = tile % l.tiles[0], yz = tile / l.tiles[0];
    const u32 tile_y = yz % l.tiles[1], first_plane = yz / l.tiles[1] * l.depth;
    const u32 row = rows[tile_y * l.runs_y + j], column = columns[tile_x * l.runs_x + i];
    const u32 planes = min(l.depth, l.size_z - first_plane) + l.width - 1;
    if (plane >= planes || row == 0xffffffffu || column == 0xffffffffu) return {0, 0};
    int z = (int)(first_plane + plane) - (int)(l.width - 1);
    if (z < 0) z += l.size_z;
    const u32 of_z = cells[b.size[0] + b.size[1] + z];
    const u32 at = ((of_z >> 16) * b.tiles_y + (row >> 16)) * b.tiles_x + (column >> 16);
    const u32 bin = ((at * b.planes + (of_z & 0xffff)) * b.classes_y + (row & 0xffff)) * b.classes_x
        + (column >> 8 & 0xff);
    const u32 first = starts[bin];
    return {first, starts[bin + (column & 0xff)] - first};
}

// Counts the samples that touch each tile of spreading; a warp counts one tile.
extern "C" __global__ void __launch_bounds__(256)
count_touching(run_layout l, bin_layout b, const u32 *cells, const u32 *rows, const u32 *columns, const u32 *starts,
               u32 *counts)
{
    begin_kernel();
    const u32 tile = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x & 31;
    if (tile >= l.tiles[0] * l.tiles[1] * l.tiles[2]) return;
    const u32 runs = (l.depth + l.width - 1) * l.runs_y * l.runs_x;
    u32 sum = 0;
    #pragma unroll 4
    for (u32 r = lane; r < runs; r += 32) sum += run_of(l, b, cells, rows, columns, starts, tile, r).count;
    #pragma unroll
    for (u32 step = 16; step; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0) counts[tile] = sum;
}

// Returns the last tile whose first segment is at most s.
__device__ __forceinline__ u32 tile_of_segment(const u64 *firsts, u32 tiles, u64 s)
{
    u32 low = 0, high = tiles - 1;
    while (low < high) {
        const u32 middle = low + (high - low + 1) / 2;
        if (firsts[middle] <= s) low = middle;
        else high = middle - 1;
    }
    return low;
}

// The lane of the run that contains element `i` of the runs of a warp's lanes, whose inclusive sums are `sums`.
__device__ __forceinline__ u32 lane_of(u32 sums, u32 i)
{
    u32 low = 0;
    #pragma unroll
    for (u32 step = 16; step; step /= 2)
        if (__shfl_sync(0xffffffffu, sums, low + step - 1) <= i) low += step;
    return low;
}

// Writes the list of each segment of a tile of spreading, sorted by the windows' first planes, and the segment; a warp
// writes one. Segments past the last one are empty. Segments of tiles with several segments have planes. Tiles of 2 to
// `few` segments go to the front of `cut`, tiles of more to its end, in any order: tiles share no cells. `cuts` has the
// numbers of both, and the most segments of a tile.
extern "C" __global__ void __launch_bounds__(256)
list_touching(run_layout l, bin_layout b, const u32 *cells, const u32 *rows, const u32 *columns, const u32 *starts,
              const u64 *tile_starts, const u64 *firsts, u64 room, u32 few, u32 *list, segment *segments, u32 *planes,
              cut_tile *cut, u64 *cuts)
{
    begin_kernel();
    const u64 s = (u64)blockIdx.x * 8 + threadIdx.x / 32;
    const u32 lane = threadIdx.x & 31, tiles = l.tiles[0] * l.tiles[1] * l.tiles[2];
    if (s >= room) return;
    segment out = {0, 0, 0, 0, 0};
    if (s < firsts[tiles]) {
        const u32 tile = tile_of_segment(firsts, tiles, s);
        const u64 begin = tile_starts[tile];
        const u32 nth = (u32)(s - firsts[tile]), pieces = (u32)(firsts[tile + 1] - firsts[tile]);
        const u32 all = (u32)(tile_starts[tile + 1] - begin);
        // Pieces of equal length: all / pieces or one more.
        const u32 part = all / pieces, more = all % pieces;
        const u32 from = nth * part + (nth < more ? nth : more), end = from + part + (nth < more);
        const u32 per_plane = l.runs_y * l.runs_x, runs = (l.depth + l.width - 1) * per_plane;
        u32 done = 0, lowest = 0, highest = 0;
        for (u32 r = 0; r < runs && done < end; r += 32) {
            run mine = {0, 0};
            if (r + lane < runs) mine = run_of(l, b, cells, rows, columns, starts, tile, r + lane);
            const u32 sums = warp_inclusive(mine.count), total = __shfl_sync(0xffffffffu, sums, 31);
            const u32 low = from > done ? from - done : 0, high = min(total, end - done);
            if (low < high) {
                if (done + low == from) lowest = (r + lane_of(sums, low)) / per_plane;
                if (done + high == end) highest = (r + lane_of(sums, high - 1)) / per_plane;
            }
            for (u32 base = low; base < high; base += 32) {
                const u32 i = min(base + lane, high - 1), at = lane_of(sums, i);
                const u32 first = __shfl_sync(0xffffffffu, mine.first, at);
                const u32 before = __shfl_sync(0xffffffffu, sums - mine.count, at);
                if (base + lane < high) list[begin + done + i] = first + (i - before);
            }
            done += total;
        }
        out.first = begin + from;
        out.count = end - from;
        out.tile = tile;
        if (pieces > 1) {
            // The first window's first plane, and the plane after the last window.
            out.plane = lowest > l.width - 1 ? lowest - (l.width - 1) : 0;
            out.planes = min(highest + 1, l.depth) - out.plane;
            if (nth == 0 && lane == 0) {
                const bool dense = pieces > few;
                atomicMax(cuts + 2, (u64)pieces);
                const u64 number = atomicAdd(cuts + dense, 1ull), i = dense ? tiles - 1 - number : number;
                cut[i].segment = s;
                cut[i].segments = pieces;
                cut[i].tile = tile;
            }
        }
    }
    if (lane == 0) {
        segments[s] = out;
        planes[s] = out.planes;
    }
}
