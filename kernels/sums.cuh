// Common parts of samples.cu and sort.cu, after segments.cuh: blocks of 256 threads, prefix sums, segments of tiles.

#define SORT_WARPS 8
#define SORT_THREADS (32 * SORT_WARPS)

// Shares the sums of x over each warp with the block, and returns the prefix sum over this warp.
template <typename T>
__device__ __forceinline__ T share_warp_sums(T x, T sums[SORT_WARPS])
{
    const u32 warp = threadIdx.x >> 5;
    const T inclusive = warp_inclusive(x);
    __syncthreads();
    if ((threadIdx.x & 31) == 31) sums[warp] = inclusive;
    __syncthreads();
    return inclusive;
}

// The prefix sum of x over the threads of a block before this one.
template <typename T>
__device__ __forceinline__ T block_exclusive(T x)
{
    __shared__ T sums[SORT_WARPS];
    const u32 warp = threadIdx.x >> 5;
    T before = share_warp_sums(x, sums) - x;
    for (u32 w = 0; w < warp; w++) before += sums[w];
    return before;
}

// The same, and `total` over all threads of the block.
template <typename T>
__device__ __forceinline__ T block_exclusive(T x, T *total)
{
    __shared__ T sums[SORT_WARPS];
    const u32 warp = threadIdx.x >> 5;
    const T inclusive = share_warp_sums(x, sums);
    T before = 0, all = 0;
    for (u32 w = 0; w < SORT_WARPS; w++) {
        if (w < warp) before += sums[w];
        all += sums[w];
    }
    *total = all;
    return before + inclusive - x;
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
