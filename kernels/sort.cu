// Stable radix sort of (key, value) pairs of 32 bits, prefix sums, and the cutting of sorted keys into segments.
//
// The sort goes from the lowest digit (8 bits) to the highest. `sort_count` counts the digits in each block of keys. A
// prefix sum over [digit][block] gives the first place for each digit of each block. `sort_scatter` moves the pairs
// there. Equal keys keep their order, so the result depends only on the input. Counts and positions have 64 bits
// wherever they can exceed 2^32. Blocks have 256 threads and 4096 keys, as on the host. No macros.

#define SORT_THREADS 256
#define SORT_ROUNDS 16
#define SORT_BLOCK (SORT_THREADS * SORT_ROUNDS)

// counts[digit][block] = number of a block's keys with the digit.
extern "C" __global__ void __launch_bounds__(SORT_THREADS)
sort_count(const u32 *keys, u64 n, u32 shift, u32 *counts)
{
    __shared__ u32 bins[8][256];
    const u32 warp = threadIdx.x >> 5;
    for (u32 i = threadIdx.x; i < 8 * 256; i += SORT_THREADS) bins[i >> 8][i & 255] = 0;
    __syncthreads();
    const u64 first = (u64)blockIdx.x * SORT_BLOCK;
    #pragma unroll 4
    for (u32 r = 0; r < SORT_ROUNDS; r++) {
        const u64 i = first + r * SORT_THREADS + threadIdx.x;
        if (i < n) atomicAdd(&bins[warp][keys[i] >> shift & 255], 1u);
    }
    __syncthreads();
    u32 sum = 0;
    for (u32 w = 0; w < 8; w++) sum += bins[w][threadIdx.x];
    counts[(u64)threadIdx.x * gridDim.x + blockIdx.x] = sum;
}

// Moves pairs to their places: `at` are the prefix sums of the counts. Without `values`, a pair's value is its index.
extern "C" __global__ void __launch_bounds__(SORT_THREADS)
sort_scatter(const u32 *keys, const u32 *values, u64 n, u32 shift, const u64 *at, u32 *keys_out, u32 *values_out)
{
    __shared__ u32 bins[8][256];
    __shared__ u64 begin[256];
    const u32 warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    for (u32 i = threadIdx.x; i < 8 * 256; i += SORT_THREADS) bins[i >> 8][i & 255] = 0;
    begin[threadIdx.x] = at[(u64)threadIdx.x * gridDim.x + blockIdx.x];
    __syncthreads();
    // Each warp ranks keys that follow one another: the order in a block is that of warps, rounds and lanes.
    const u64 first = (u64)blockIdx.x * SORT_BLOCK + warp * (32 * SORT_ROUNDS) + lane;
    u32 key[SORT_ROUNDS], rank[SORT_ROUNDS];
    #pragma unroll
    for (u32 r = 0; r < SORT_ROUNDS; r++) key[r] = first + 32 * r < n ? keys[first + 32 * r] : 0;
    #pragma unroll
    for (u32 r = 0; r < SORT_ROUNDS; r++) {
        const bool real_key = first + 32 * r < n;
        // Lanes past the end have a digit that no key has.
        const u32 digit = real_key ? key[r] >> shift & 255 : 256;
        const u32 peers = __match_any_sync(0xffffffffu, digit);
        const u32 before = __popc(peers & ((1u << lane) - 1));
        u32 seen = 0;
        if (real_key) seen = bins[warp][digit];
        __syncwarp();
        if (real_key && before == 0) bins[warp][digit] = seen + __popc(peers);
        __syncwarp();
        rank[r] = seen + before;
    }
    __syncthreads();
    u32 sum = 0;
    for (u32 w = 0; w < 8; w++) {
        const u32 count = bins[w][threadIdx.x];
        bins[w][threadIdx.x] = sum;
        sum += count;
    }
    __syncthreads();
    #pragma unroll
    for (u32 r = 0; r < SORT_ROUNDS; r++) {
        const u64 i = first + 32 * r;
        if (i >= n) continue;
        const u32 digit = key[r] >> shift & 255;
        const u64 to = begin[digit] + bins[warp][digit] + rank[r];
        keys_out[to] = key[r];
        values_out[to] = values ? values[i] : (u32)i;
    }
}

__device__ __forceinline__ u64 warp_inclusive(u64 x)
{
    const u32 lane = threadIdx.x & 31;
    #pragma unroll
    for (u32 step = 1; step < 32; step *= 2) {
        const u64 other = __shfl_up_sync(0xffffffffu, x, step);
        if (lane >= step) x += other;
    }
    return x;
}

// The exclusive prefix of x over the threads of a block of 256, and the sum of all.
__device__ __forceinline__ u64 block_exclusive(u64 x, u64 *total)
{
    __shared__ u64 sums[8];
    const u32 warp = threadIdx.x >> 5;
    const u64 inclusive = warp_inclusive(x);
    __syncthreads();
    if ((threadIdx.x & 31) == 31) sums[warp] = inclusive;
    __syncthreads();
    u64 before = 0, all = 0;
    for (u32 w = 0; w < 8; w++) {
        if (w < warp) before += sums[w];
        all += sums[w];
    }
    *total = all;
    return before + inclusive - x;
}

// Sums of blocks of 4096 counts.
extern "C" __global__ void __launch_bounds__(SORT_THREADS)
scan_sums(const u32 *counts, u64 n, u64 *sums)
{
    const u64 first = (u64)blockIdx.x * SORT_BLOCK + threadIdx.x;
    u64 sum = 0, total;
    #pragma unroll
    for (u32 r = 0; r < SORT_ROUNDS; r++) {
        const u64 i = first + r * SORT_THREADS;
        if (i < n) sum += counts[i];
    }
    block_exclusive(sum, &total);
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

// The exclusive prefix sums of `blocks` sums, in place, by one block; the sum of all to total[0].
extern "C" __global__ void __launch_bounds__(SORT_THREADS)
scan_top(u64 *sums, u32 blocks, u64 *total)
{
    u64 before = 0;
    for (u32 first = 0; first < blocks; first += SORT_THREADS) {
        const u32 i = first + threadIdx.x;
        u64 all;
        const u64 prefix = block_exclusive(i < blocks ? sums[i] : 0, &all);
        if (i < blocks) sums[i] = before + prefix;
        before += all;
    }
    if (threadIdx.x == 0) total[0] = before;
}

// The exclusive prefix sums of n counts, and their sum as element n.
extern "C" __global__ void __launch_bounds__(SORT_THREADS)
scan_apply(const u32 *counts, u64 n, const u64 *sums, u64 *prefix)
{
    const u64 first = (u64)blockIdx.x * SORT_BLOCK + (u64)threadIdx.x * SORT_ROUNDS;
    u32 count[SORT_ROUNDS];
    u64 sum = 0, total;
    #pragma unroll
    for (u32 r = 0; r < SORT_ROUNDS; r++) {
        count[r] = first + r < n ? counts[first + r] : 0;
        sum += count[r];
    }
    u64 before = sums[blockIdx.x] + block_exclusive(sum, &total);
    #pragma unroll
    for (u32 r = 0; r < SORT_ROUNDS; r++) {
        if (first + r <= n) prefix[first + r] = before;
        before += count[r];
    }
}

// The first of n sorted keys that is at least `key`.
__device__ __forceinline__ u64 lower_bound(const u32 *keys, u64 n, u64 key)
{
    u64 low = 0, high = n;
    while (low < high) {
        const u64 middle = (low + high) / 2;
        if (keys[middle] < key) low = middle + 1;
        else high = middle;
    }
    return low;
}

// Finds the first pair of each tile (a tile has `span` keys), and its number of segments. A segment has at most
// `length` pairs, or at most `brief` if the tile has more than `dense`. A tile has at least `least` segments (0 or 1).
extern "C" __global__ void __launch_bounds__(SORT_THREADS)
tile_ranges(const u32 *keys, u64 n, u32 tiles, u32 span, u32 length, u64 dense, u32 brief, u32 least, u64 *starts,
            u32 *segments)
{
    const u64 tile = (u64)blockIdx.x * SORT_THREADS + threadIdx.x;
    if (tile >= tiles) return;
    const u64 begin = lower_bound(keys, n, tile * span), end = lower_bound(keys, n, (tile + 1) * span);
    starts[tile] = begin;
    if (tile == tiles - 1) starts[tiles] = n;
    const u32 most = end - begin > dense ? brief : length;
    const u32 cuts = (u32)((end - begin + most - 1) / most);
    segments[tile] = cuts > least ? cuts : least;
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

// Fills the segments; those past the last one are empty. A tile has `depth` planes and a window `width`. The key within
// the tile is the window's first plane plus width - 1. Segments get planes unless depth is 0. Sorted by `length_class`
// (0 to 10), the longest segments come first. Tiles of 2 to `few` segments go to the front of `cut`, tiles of more
// to its end, in any order: tiles share no cells.
extern "C" __global__ void __launch_bounds__(SORT_THREADS)
cut_tiles(const u32 *keys, const u64 *starts, const u64 *firsts, u32 tiles, u64 room, u32 span, u32 depth, u32 width,
          u32 length, u32 few, segment *segments, u32 *length_class, u32 *planes, cut_tile *cut, u64 *cuts)
{
    const u64 s = (u64)blockIdx.x * SORT_THREADS + threadIdx.x;
    if (s >= room) return;
    segment out = {0, 0, 0, 0, 0};
    if (s < firsts[tiles]) {
        const u32 tile = tile_of_segment(firsts, tiles, s);
        const u64 segment_of_tile = s - firsts[tile], pieces = firsts[tile + 1] - firsts[tile];
        const u64 begin = starts[tile], all = starts[tile + 1] - begin;
        // Pieces of equal length: all / pieces or one more.
        const u64 part = all / pieces, more = all % pieces;
        out.first = begin + segment_of_tile * part + (segment_of_tile < more ? segment_of_tile : more);
        out.count = (u32)(part + (segment_of_tile < more));
        out.tile = tile;
        if (depth && pieces > 1) {
            const u64 base = (u64)tile * span;
            const int from = (int)(keys[out.first] - base) - (int)(width - 1);
            const int to = (int)(keys[out.first + out.count - 1] - base) + 1;
            out.plane = from > 0 ? from : 0;
            out.planes = (u32)((to < (int)depth ? to : (int)depth) - out.plane);
            if (segment_of_tile == 0) {
                const bool dense = pieces > few;
                const u64 nth = atomicAdd(cuts + dense, 1ull), i = dense ? tiles - 1 - nth : nth;
                cut[i].segment = s;
                cut[i].segments = (u32)pieces;
                cut[i].tile = tile;
            }
        }
    }
    segments[s] = out;
    // One class per halving of the length. Within a class, neighbouring tiles, which share samples, stay together.
    u32 halvings = 0;
    while (halvings < 10 && (u64)out.count << halvings < length) halvings++;
    length_class[s] = halvings;
    if (depth) planes[s] = out.planes;
}
