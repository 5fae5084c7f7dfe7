// Prefix sums, the starts of bins, and the cutting of the lists of tiles into segments, for samples that samples.cu
// sorts. Sums and positions have 64 bits wherever they can exceed 2^32. No macros.
//
// A scan is one kernel: a block sums its elements, publishes the sum, and adds those of the blocks before it, which
// publish theirs meanwhile (Merrill and Garland, "Decoupled look-back", 2016). Sums of integers do not depend on the
// order, so results are the same in each run.

#define SORT_ROUNDS 16
#define SORT_BLOCK (SORT_THREADS * SORT_ROUNDS)

// States of a block in `states`: a flag in the upper bits, and its sum, or the sum up to its end.
#define PARTIAL (1ull << 62)
#define INCLUSIVE (2ull << 62)
#define VALUE_OF(s) ((s) & (PARTIAL - 1))
#define NO_SAMPLE 0xffffffffu

// Reads the states of 32 blocks that end before `block`, a lane each, when all have been published.
__device__ __forceinline__ u64 states_before(const volatile u64 *states, u32 block)
{
    const u32 lane = threadIdx.x & 31;
    u64 seen = INCLUSIVE;
    bool missing = lane < block;
    while (__any_sync(0xffffffffu, missing)) {
        if (missing) seen = states[block - 1 - lane];
        missing = lane < block && seen < PARTIAL;
    }
    return seen;
}

// A prefix sum of n values, whose sum is written as element n and to `total`. Value i is from[i] or, if `stride` is not
// 0, from[(i + 1) stride] - from[i stride]. If `usual` is not 0, it is the number of segments for this length: at most
// `usual` elements each, or `brief` if the length exceeds `dense`, and at least `least` segments (0 or 1).
struct scan_task {
    const u32 *from;
    u64 n, dense;
    u32 stride, usual, brief, least;
    u64 *prefix, *states, *ticket, *total;
};
struct scan_tasks {
    scan_task of[3];
};

__device__ __forceinline__ u64 scanned_value(const scan_task &t, u64 i)
{
    if (i >= t.n) return 0;
    const u32 length = t.stride ? t.from[(i + 1) * t.stride] - t.from[i * t.stride] : t.from[i];
    if (t.usual == 0) return length;
    const u32 most = length > t.dense ? t.brief : t.usual;
    return max((u32)(((u64)length + most - 1) / most), t.least);
}

// Computes up to three prefix sums; blockIdx.y is the task.
extern "C" __global__ void __launch_bounds__(SORT_THREADS)
scan_counts(scan_tasks tasks)
{
    begin_kernel();
    __shared__ u64 before_block;
    __shared__ u32 number;
    const scan_task t = tasks.of[blockIdx.y];
    if ((u64)blockIdx.x * SORT_BLOCK > t.n) return;
    // Blocks take their numbers when they start, so that a block waits only for blocks that run.
    if (threadIdx.x == 0) number = (u32)atomicAdd(t.ticket, 1ull);
    __syncthreads();
    const u32 block = number;
    const u64 first = (u64)block * SORT_BLOCK + (u64)threadIdx.x * SORT_ROUNDS;
    u64 sum = 0, total;
    #pragma unroll
    for (u32 r = 0; r < SORT_ROUNDS; r++) sum += scanned_value(t, first + r);
    u64 before = block_exclusive(sum, &total);
    volatile u64 *states = t.states;
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0) states[block] = (block ? PARTIAL : INCLUSIVE) | total;
        u64 all = 0;
        for (u32 at = block; at > 0;) {
            const u64 seen = states_before(states, at);
            const u32 inclusive = __ballot_sync(0xffffffffu, seen >= INCLUSIVE);
            const u32 stop = inclusive ? __ffs(inclusive) - 1 : 31;
            u64 part = (threadIdx.x & 31) <= stop ? VALUE_OF(seen) : 0;
            #pragma unroll
            for (u32 step = 16; step; step /= 2) part += __shfl_xor_sync(0xffffffffu, part, step);
            all += part;
            if (inclusive) break;
            at -= 32;
        }
        if (threadIdx.x == 0) {
            if (block) states[block] = INCLUSIVE | (all + total);
            before_block = all;
        }
    }
    __syncthreads();
    before += before_block;
    #pragma unroll
    for (u32 r = 0; r < SORT_ROUNDS; r++) {
        if (first + r <= t.n) t.prefix[first + r] = before;
        if (first + r == t.n && t.total) *t.total = before;
        before += scanned_value(t, first + r);
    }
}

// Gives each bin without samples the start of the next bin that has some, and n at the end: starts[bins] = n. Blocks
// work from the end, as a start is the minimum over all following bins.
extern "C" __global__ void __launch_bounds__(SORT_THREADS)
fill_starts(u32 *starts, u64 bins, u64 n, u64 *all_states, u64 *ticket)
{
    begin_kernel();
    __shared__ u32 after_block, number, of_warp[8];
    if (threadIdx.x == 0) number = (u32)atomicAdd(ticket, 1ull);
    __syncthreads();
    const u32 block = number, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    // Element i counts from the end, which is bin `bins`. A thread has bins that follow one another.
    const u64 first = (u64)block * SORT_BLOCK + (u64)threadIdx.x * SORT_ROUNDS;
    u32 start[SORT_ROUNDS], least = NO_SAMPLE;
    #pragma unroll
    for (u32 r = 0; r < SORT_ROUNDS; r++) {
        const u64 i = first + r;
        start[r] = i == 0 ? (u32)n : i <= bins ? starts[bins - i] : NO_SAMPLE;
        least = min(least, start[r]);
    }
    // The minimum over the threads before this one.
    u32 inclusive = least;
    #pragma unroll
    for (u32 step = 1; step < 32; step *= 2) {
        const u32 other = __shfl_up_sync(0xffffffffu, inclusive, step);
        if (lane >= step) inclusive = min(inclusive, other);
    }
    u32 before = __shfl_up_sync(0xffffffffu, inclusive, 1);
    if (lane == 0) before = NO_SAMPLE;
    if (lane == 31) of_warp[warp] = inclusive;
    __syncthreads();
    u32 block_least = NO_SAMPLE;
    for (u32 w = 0; w < 8; w++) {
        if (w < warp) before = min(before, of_warp[w]);
        block_least = min(block_least, of_warp[w]);
    }
    volatile u64 *states = all_states;
    if (threadIdx.x < 32) {
        if (lane == 0) states[block] = (block ? PARTIAL : INCLUSIVE) | block_least;
        u32 all = NO_SAMPLE;
        for (u32 at = block; at > 0;) {
            const u64 seen = states_before(states, at);
            const u32 done = __ballot_sync(0xffffffffu, seen >= INCLUSIVE);
            const u32 stop = done ? __ffs(done) - 1 : 31;
            u32 part = lane <= stop && lane < at ? (u32)VALUE_OF(seen) : NO_SAMPLE;
            #pragma unroll
            for (u32 step = 16; step; step /= 2) part = min(part, __shfl_xor_sync(0xffffffffu, part, step));
            all = min(all, part);
            if (done) break;
            at -= 32;
        }
        if (lane == 0) {
            if (block) states[block] = INCLUSIVE | min(all, block_least);
            after_block = all;
        }
    }
    __syncthreads();
    before = min(before, after_block);
    #pragma unroll
    for (u32 r = 0; r < SORT_ROUNDS; r++) {
        const u64 i = first + r;
        before = min(before, start[r]);
        if (i <= bins) starts[bins - i] = before;
    }
}

// Fills the segments of tiles of interpolation, whose samples follow one another: tile t has those from
// starts[t span] to starts[(t + 1) span]. Segments past the last one are empty.
extern "C" __global__ void __launch_bounds__(SORT_THREADS)
cut_tiles(const u32 *starts, u32 span, const u64 *firsts, u32 tiles, u64 room, segment *segments)
{
    begin_kernel();
    const u64 s = (u64)blockIdx.x * SORT_THREADS + threadIdx.x;
    if (s >= room) return;
    segment out = {};
    if (s < firsts[tiles]) {
        const u32 tile = tile_of_segment(firsts, tiles, s);
        const u32 nth = (u32)(s - firsts[tile]), pieces = (u32)(firsts[tile + 1] - firsts[tile]);
        const u32 begin = starts[(u64)tile * span], all = starts[(u64)(tile + 1) * span] - begin;
        // Pieces of equal length: all / pieces or one more.
        const u32 part = all / pieces, more = all % pieces;
        out.first = begin + nth * part + (nth < more ? nth : more);
        out.count = part + (nth < more);
        out.tile = tile;
    }
    segments[s] = out;
}

// The order of work of a list of segments: the longest first, by classes.
#define CLASSES 11
struct schedule_task {
    const segment *segments;
    const u64 *count;
    u32 *schedule, *classes;
    u32 length;
};
struct schedule_tasks {
    schedule_task of[2];
};

// One class per halving of the length. Within a class, neighbouring tiles, which share samples, mostly stay together.
__device__ __forceinline__ u32 length_class(u32 count, u32 length)
{
    u32 halvings = 0;
    while (halvings < CLASSES - 1 && (u64)count << halvings < length) halvings++;
    return halvings;
}

// Counts the segments of each class; blockIdx.y is the task.
extern "C" __global__ void __launch_bounds__(SORT_THREADS)
count_classes(schedule_tasks tasks)
{
    begin_kernel();
    __shared__ u32 counts[CLASSES];
    const schedule_task t = tasks.of[blockIdx.y];
    const u64 s = (u64)blockIdx.x * SORT_THREADS + threadIdx.x;
    if ((u64)blockIdx.x * SORT_THREADS >= *t.count) return;
    if (threadIdx.x < CLASSES) counts[threadIdx.x] = 0;
    __syncthreads();
    if (s < *t.count) atomicAdd(&counts[length_class(t.segments[s].count, t.length)], 1u);
    __syncthreads();
    if (threadIdx.x < CLASSES && counts[threadIdx.x]) atomicAdd(&t.classes[threadIdx.x], counts[threadIdx.x]);
}

// Fills the schedule. `classes` has the counts of classes, then the numbers of segments placed so far. The order of
// blocks within a class may differ from run to run; it changes the order of work only.
extern "C" __global__ void __launch_bounds__(SORT_THREADS)
fill_schedule(schedule_tasks tasks)
{
    begin_kernel();
    __shared__ u32 of_warp[8][CLASSES], first[CLASSES];
    const schedule_task t = tasks.of[blockIdx.y];
    const u64 s = (u64)blockIdx.x * SORT_THREADS + threadIdx.x;
    if ((u64)blockIdx.x * SORT_THREADS >= *t.count) return;
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (u32 i = threadIdx.x; i < 8 * CLASSES; i += SORT_THREADS) of_warp[i / CLASSES][i % CLASSES] = 0;
    __syncthreads();
    const bool exists = s < *t.count;
    const u32 c = exists ? length_class(t.segments[s].count, t.length) : CLASSES;
    const u32 peers = __match_any_sync(0xffffffffu, c), rank = __popc(peers & ((1u << lane) - 1));
    if (exists && rank == 0) of_warp[warp][c] = __popc(peers);
    __syncthreads();
    if (threadIdx.x < CLASSES) {
        u32 sum = 0, before = 0;
        for (u32 w = 0; w < 8; w++) {
            const u32 count = of_warp[w][threadIdx.x];
            of_warp[w][threadIdx.x] = sum;
            sum += count;
        }
        for (u32 other = 0; other < threadIdx.x; other++) before += t.classes[other];
        first[threadIdx.x] = before + (sum ? atomicAdd(&t.classes[CLASSES + threadIdx.x], sum) : 0);
    }
    __syncthreads();
    if (exists) t.schedule[first[c] + of_warp[warp][c] + rank] = (u32)s;
}
