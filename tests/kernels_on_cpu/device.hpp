// The functions of CUDA that kernels use, on a CPU. Blocks run one after the other. The threads of a block are
// coroutines: one runs until it waits for others, in a warp or in the block. The order in which they run changes at
// random.
#pragma once
#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __shared__ static
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)

struct dim { unsigned x = 0, y = 0, z = 0; };
struct uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };

dim threadIdx, blockIdx, gridDim, blockDim;
// Dynamic shared memory; the kernels declare it.
alignas(128) unsigned char shared[1 << 18];
std::mt19937_64 generator;

namespace device {

constexpr size_t STACK = 1 << 16;
struct thread { ucontext_t start; jmp_buf state; bool has_started, has_ended; };
struct barrier { unsigned arrived = 0, round = 0; };

jmp_buf scheduler;
std::vector<thread> threads;
std::vector<char> stacks;
std::function<void()> kernel;
barrier of_block, of_warp[32];
unsigned long long exchanged[32][32];

// Continues with another thread. (A context starts a thread. Jumps, which need no call of the system, do the rest.)
inline void leave() {
    if (_setjmp(threads[threadIdx.x].state) == 0) _longjmp(scheduler, 1);
}

inline void enter() {
    thread &to = threads[threadIdx.x];
    if (_setjmp(scheduler) != 0) return;
    if (to.has_started) _longjmp(to.state, 1);
    to.has_started = true;
    setcontext(&to.start);
}

inline void run_kernel() {
    kernel();
    threads[threadIdx.x].has_ended = true;
    leave();
}

inline void wait(barrier &b, unsigned count) {
    const unsigned round = b.round;
    if (++b.arrived == count) {
        b.arrived = 0;
        b.round++;
    }
    while (b.round == round) leave();
}

inline unsigned lane() { return threadIdx.x % 32; }

template <class T>
T exchange(T value, unsigned from) {
    static_assert(sizeof(T) <= 8, "an exchanged value has up to 8 bytes");
    auto *of = exchanged[threadIdx.x / 32];
    std::memcpy(&of[lane()], &value, sizeof value);
    wait(of_warp[threadIdx.x / 32], 32);
    std::memcpy(&value, &of[from], sizeof value);
    wait(of_warp[threadIdx.x / 32], 32);
    return value;
}

// Rounds a number below 65520 in magnitude to half precision.
inline unsigned half_of(float number) {
    const int exponent = std::max(number == 0 ? -14 : std::ilogb(number), -14);
    // Units of the last place; those of an exponent start at 1024.
    unsigned units = (unsigned)std::nearbyint(std::ldexp(std::fabs(number), 10 - exponent));
    if (units > 2048 || !std::isfinite(number)) std::abort();
    return (std::signbit(number) ? 0x8000 : 0) + ((unsigned)(exponent + 14) << 10) + units;
}

inline float float_of(unsigned half) {
    const int exponent = half >> 10 & 31, fraction = half & 0x3ff;
    const float magnitude = std::ldexp(exponent ? 1024 + fraction : fraction, std::max(exponent, 1) - 25);
    return half & 0x8000 ? -magnitude : magnitude;
}

inline unsigned pack(float low, float high) { return half_of(low) | half_of(high) << 16; }

inline void unpack(unsigned halves, float &low, float &high) {
    low = float_of(halves & 0xffff);
    high = float_of(halves >> 16);
}

// d += a b for matrices of 16 x 16 and 16 x 8 numbers. The lanes of a warp share them as for `mma.sync.m16n8k16`.
inline void multiply_add(float d[4], const uint4 &a, const uint2 &b) {
    static float left[32][16][16], right[32][16][8];
    const unsigned of_a[4] = {a.x, a.y, a.z, a.w}, of_b[2] = {b.x, b.y};
    const unsigned warp = threadIdx.x / 32, row = lane() / 4, column = lane() % 4;
    for (unsigned i = 0; i < 4; i++) {
        float *to = &left[warp][row + 8 * (i % 2)][2 * column + 8 * (i / 2)];
        unpack(of_a[i], to[0], to[1]);
    }
    for (unsigned i = 0; i < 2; i++)
        unpack(of_b[i], right[warp][2 * column + 8 * i][row], right[warp][2 * column + 8 * i + 1][row]);
    wait(of_warp[warp], 32);
    for (unsigned i = 0; i < 4; i++) {
        double sum = d[i];
        for (unsigned k = 0; k < 16; k++)
            sum += (double)left[warp][row + 8 * (i / 2)][k] * right[warp][k][2 * column + i % 2];
        d[i] = (float)sum;
    }
    wait(of_warp[warp], 32);
}

// Runs `blocks` blocks of `count` threads. Shared memory is poisoned before each.
inline void launch(unsigned blocks, unsigned count, std::function<void()> work) {
    gridDim.x = blocks;
    blockDim.x = count;
    kernel = work;
    stacks.resize(STACK * count);
    for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) {
        std::memset(shared, 0xa5, sizeof shared);
        threads.assign(count, {});
        for (unsigned t = 0; t < count; t++) {
            ucontext_t &context = threads[t].start;
            getcontext(&context);
            context.uc_stack.ss_sp = &stacks[t * STACK];
            context.uc_stack.ss_size = STACK;
            makecontext(&context, run_kernel, 0);
        }
        for (bool any = true; any;) {
            any = false;
            const unsigned first = generator() % count;
            for (unsigned i = 0; i < count; i++) {
                threadIdx.x = (first + i) % count;
                if (threads[threadIdx.x].has_ended) continue;
                any = true;
                enter();
            }
        }
    }
}

}  // namespace device

inline void __syncthreads() { device::wait(device::of_block, blockDim.x); }
inline void __syncwarp() { device::wait(device::of_warp[threadIdx.x / 32], 32); }
template <class T>
T __shfl_sync(unsigned, T value, int from, int width = 32) {
    return device::exchange(value, device::lane() / width * width + from % width);
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) { return device::exchange(value, device::lane() ^ mask); }
template <class T>
T __shfl_up_sync(unsigned, T value, unsigned step, int width = 32) {
    const unsigned lane = device::lane();
    return device::exchange(value, lane % width >= step ? lane - step : lane);
}
inline unsigned __reduce_max_sync(unsigned, unsigned value) {
    for (int mask = 16; mask; mask /= 2) value = std::max(value, __shfl_xor_sync(~0u, value, mask));
    return value;
}
inline unsigned __ballot_sync(unsigned, bool is_set) {
    static unsigned set[32];
    unsigned &of_warp = set[threadIdx.x / 32], bit = 1u << device::lane();
    of_warp = is_set ? of_warp | bit : of_warp & ~bit;
    __syncwarp();
    const unsigned all = of_warp;
    __syncwarp();
    return all;
}
inline int __syncthreads_count(int is_set) {
    static int count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    count += is_set != 0;
    __syncthreads();
    return count;
}
inline void __threadfence() {}
inline unsigned __float_as_uint(float x) {
    unsigned bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}
inline float __uint_as_float(unsigned bits) {
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}
inline void __nanosleep(unsigned) { device::leave(); }
// A coroutine runs alone, so that these are atomic.
template <class T>
T atomicAdd(T *at, T value) { return std::exchange(*at, *at + value); }
template <class T>
T atomicMax(T *at, T value) { return std::exchange(*at, std::max(*at, value)); }
template <class T>
T atomicMin(T *at, T value) { return std::exchange(*at, std::min(*at, value)); }
template <class T>
T atomicExch(T *at, T value) { return std::exchange(*at, value); }
template <class T>
void __stcs(T *at, T value) { *at = value; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
inline int __ffs(unsigned x) { return __builtin_ffs(x); }
inline unsigned __umulhi(unsigned x, unsigned y) { return (unsigned long long)x * y >> 32; }
inline long long __double_as_longlong(double x) {
    long long bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}
inline double __longlong_as_double(long long bits) {
    double x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}
inline double cospi(double x) { return std::cos(M_PI * x); }
inline void sincospi(double x, double *sine, double *cosine) { *sine = std::sin(M_PI * x), *cosine = cospi(x); }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
template <class A, class B>
auto min(A a, B b) { return a < b ? a : b; }
template <class A, class B>
auto max(A a, B b) { return a > b ? a : b; }
using std::ceil;
using std::fma;

inline unsigned random_below(unsigned n) { return generator() % n; }
inline double random_between(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(generator);
}
