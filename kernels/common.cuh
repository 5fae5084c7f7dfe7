// The host puts this file in front of every kernel file.
// Macros from the host: REAL (float or double), DOUBLE (0 or 1).

typedef REAL real;
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned long long u64;

struct __align__(2 * sizeof(real)) cplx {
    real x, y;
};

// Begins every kernel. Its blocks may start while earlier kernels of the stream end, which saves small kernels a
// microsecond or two. When this returns, all earlier work is complete. Results of earlier kernels must not be loaded
// with __ldg or through __restrict__ pointers to constants, because the compiler may move such loads before this.
__device__ __forceinline__ void begin_kernel()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// A check of the caller's input: whether parts of its numbers are below `limit`, and not NaN. Kernels that read the
// input make it, and later kernels that write the caller's output write nothing if it has failed. There is no check if
// `state` is null. `state`: whether it has failed, and the number of members that have ended. *on_host is in the host's
// memory.
struct input_check {
    real limit;
    u32 *state;
    volatile u64 *on_host;
};

__device__ __forceinline__ void check_number(const input_check &check, cplx z)
{
    if (check.state && !(z.x < check.limit && z.x > -check.limit && z.y < check.limit && z.y > -check.limit))
        check.state[0] = 1;
}

// Called by one thread of each of the check's members, which are warps or blocks, after the others of it have checked
// their numbers. The last one reports to the host.
__device__ __forceinline__ void end_check(const input_check &check, u32 members)
{
    if (!check.state) return;
    __threadfence();
    if (atomicAdd(&check.state[1], 1u) != members - 1) return;
    __threadfence();
    check.state[1] = 0;
    *check.on_host = ((volatile u32 *)check.state)[0];
}

__device__ __forceinline__ bool has_failed(const input_check &check)
{
    if (!check.state) return false;
    u32 failed;
    asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(failed) : "l"(check.state));
    return failed;
}

// The prefix sum of x over LANES lanes of a warp, up to and with this one.
template <u32 LANES = 32, typename T>
__device__ __forceinline__ T warp_inclusive(T x)
{
    const u32 lane = threadIdx.x % LANES;
    #pragma unroll
    for (u32 step = 1; step < LANES; step *= 2) {
        const T other = __shfl_up_sync(0xffffffffu, x, step, LANES);
        if (lane >= step) x += other;
    }
    return x;
}
