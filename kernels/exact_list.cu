// Direct sums over lists: out(t) = sum over sources s of value(s) exp(+-i 2 pi p(s).q(t)), the kernel of Stone et al.
// 2008. The sources are samples and the targets voxels, or the reverse with the other sign. Off-resonance is one more
// axis: the voxel's frequency in Hz and the sample's time in seconds. Decay multiplies each pair by 2^(e(s) e(t)): the
// voxel's exponent and the sample's time.
//
// Targets stay in registers, V per thread. Sources go through shared memory, RUN at a time. The sums of these are
// added at the end, so rounding errors are those of short sums. Sources are in polar form, |value| and phase: p.q
// is added to the phase, which saves two multiplications for each pair of source and target.
//
// The targets of a block are close together, since the host sorts them. Phases are relative to one of them, so they are
// small. For a few turns, f32 and the special functions are accurate enough for any size of the image. The
// phase at that target is reduced axis by axis, without loss, once for each source and block.
//
// Macros, which may be changed together with the host's values:
//   AXES        1 to 4
//   DECAY       1: with decay
//   V           targets per thread
//   POLY        number of the V targets that use polynomials on the FMA units; the others use the special function
//               units, which alone would limit the speed
//   UNROLL      unrolled iterations of the loop over sources
//   ACCURATE    1: all phases are reduced without loss, and all waves and powers are accurate polynomials, for any POLY
//               and order of the targets; required for f64

#define RUN 256     // sources in shared memory at a time
#ifndef THREADS
#define THREADS 128 // per block
#endif
#if ACCURATE
#define UNIT ((real)1) // phases in turns
#else
#define UNIT 6.28318548f // phases in 1 / UNIT turns, about radians: UNIT is twice the float nearest pi
#endif

struct __align__(16) Source {
    real position[4];
    real phase, size;
    real decay;
    real none;
};

// Prepares the sources, and pads them with zeros to a multiple of RUN. `sign` is that of the exponent. The value of
// position i is value order[i] or, if `order` is null, value i.
extern "C" __global__ void __launch_bounds__(256)
ready_sources(const real *p0, const real *p1, const real *p2, const real *p3, const real *decay, const cplx *values,
              const unsigned *order, long long count, long long padded, real sign, Source *out)
{
    begin_kernel();
    long long i = blockIdx.x * 256LL + threadIdx.x;
    if (i >= padded)
        return;
    Source s = {{0, 0, 0, 0}, 0, 0, 0, 0};
    if (i < count) {
        const real *p[4] = {p0, p1, p2, p3};
#pragma unroll
        for (int a = 0; a < AXES; a++)
            s.position[a] = sign * p[a][i];
#if DECAY
        s.decay = decay[i];
#endif
        cplx v = values[order ? order[i] : i];
        s.size = hypot(v.x, v.y);
        s.phase = atan2(v.y, v.x) * (real)0.15915494309189535;
        // The sines have a mean error of 3e-8, which would add up over millions of sources of positive size. Every
        // second source, by the parity of its index, is turned by half a turn and negated.
        if (__popcll(i) & 1) {
            s.size = -s.size;
            s.phase -= copysign((real)0.5, s.phase);
        }
    }
    out[i] = s;
}

// |value| of a source at a target, after decay.
__device__ __forceinline__ real decayed(Source const &s, real decay)
{
#if !DECAY
    return s.size;
#elif ACCURATE
    return s.size * power_of_two(s.decay * decay);
#else
    // On the special function units: an error of 2^-22. Too small a power is 0, and of large ones sums stay finite.
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(fminf(s.decay * decay, 100.0f)));
    return s.size * power;
#endif
}

#if ACCURATE
__device__ __forceinline__ void add_pair(Source const &s, real const (&at)[AXES], real decay, bool, cplx &sum)
{
    real turns = s.phase;
#pragma unroll
    for (int a = 0; a < AXES; a++)
        turns += fraction(s.position[a], at[a]);
    real halves = turns + HALF;
    cplx w = quarter_wave(turns - (halves - HALF));
    real size = negate_if(decayed(s, decay), low_word(halves) << 31);
    sum.x = fma(size, w.x, sum.x);
    sum.y = fma(size, w.y, sum.y);
}
#else
__device__ __forceinline__ void add_pair(Source const &s, real const (&at)[AXES], real decay, bool polynomial,
                                         cplx &sum)
{
    float phase = s.phase, size = decayed(s, decay);
#pragma unroll
    for (int a = 0; a < AXES; a++)
        phase = fma(s.position[a], at[a], phase);
    if (polynomial) {
        float halves = fma(phase, 2.0f / UNIT, WHOLE);
        float rest = fma(halves - WHOLE, UNIT / -2.0f, phase);
        // An odd number of half turns flips the sign bit.
        size = __uint_as_float(__float_as_uint(halves) * 0x80000000u + __float_as_uint(size));
        // Minimax polynomials between -1/4 and 1/4 of a turn; errors 6e-8 and 6e-7.
        float q = rest * rest;
        float c = fma(q, 2.30664481932763e-05f, -0.0013849835377186537f);
        c = fma(q, c, 0.04166305810213089f);
        c = fma(q, c, -0.4999988079071045f);
        c = fma(q, c, 0.9999999403953552f);
        float d = fma(q, -0.0001836397423176095f, 0.008306341245770454f);
        d = fma(q, d, -0.16664829850196838f);
        d = fma(q, d, 0.9999966025352478f);
        sum.x = fma(size, c, sum.x);
        sum.y = fma(size * rest, d, sum.y);
    } else {
        sum.x = fma(size, __cosf(phase), sum.x);
        sum.y = fma(size, __sinf(phase), sum.y);
    }
}
#endif

// Blocks: (targets / (THREADS V), parts of the sources); part p writes to out + p part_stride. Target t goes to
// order[t] or, if `order` is null, to t.
extern "C" __global__ void __launch_bounds__(THREADS)
list_sum(const Source *sources, long long runs, const real *q0, const real *q1, const real *q2, const real *q3,
         const real *decay, const unsigned *order, long long count, cplx *out, long long part_stride)
{
    begin_kernel();
    __shared__ Source tile[RUN];
    const real *q[4] = {q0, q1, q2, q3};
    long long block = (long long)blockIdx.x * (THREADS * V), first = block + threadIdx.x;
    long long run = runs * blockIdx.y / gridDim.y, to = runs * (blockIdx.y + 1) / gridDim.y;
    real at[V][AXES], at_decay[V];
    cplx total[V];
#if !ACCURATE
    real origin[AXES];
#pragma unroll
    for (int a = 0; a < AXES; a++)
        origin[a] = q[a][min(block + THREADS * V / 2, count - 1)];
#endif
#pragma unroll
    for (int v = 0; v < V; v++) {
        long long t = min(first + v * THREADS, count - 1);
#pragma unroll
        for (int a = 0; a < AXES; a++)
#if ACCURATE
            at[v][a] = q[a][t];
#else
            at[v][a] = q[a][t] - origin[a];
#endif
        at_decay[v] = DECAY ? decay[t] : 0;
        total[v].x = total[v].y = 0;
    }
    for (; run < to; run++) {
        __syncthreads();
        for (int i = threadIdx.x; i < RUN; i += THREADS) {
            Source s = sources[run * RUN + i];
#if !ACCURATE
#pragma unroll
            for (int a = 0; a < AXES; a++) {
                s.phase += fraction(s.position[a], origin[a]);
                s.position[a] *= UNIT;
            }
            s.phase = (s.phase - ((s.phase + WHOLE) - WHOLE)) * UNIT;
#endif
            tile[i] = s;
        }
        __syncthreads();
        cplx sum[V];
#pragma unroll
        for (int v = 0; v < V; v++)
            sum[v].x = sum[v].y = 0;
#pragma unroll UNROLL
        for (int m = 0; m < RUN; m++) {
            Source s = tile[m];
#pragma unroll
            for (int v = 0; v < V; v++)
                add_pair(s, at[v], at_decay[v], v * POLY % V < POLY, sum[v]);
        }
#pragma unroll
        for (int v = 0; v < V; v++) {
            total[v].x += sum[v].x;
            total[v].y += sum[v].y;
        }
    }
    out += blockIdx.y * part_stride;
#pragma unroll
    for (int v = 0; v < V; v++)
        if (first + v * THREADS < count)
            out[order ? order[first + v * THREADS] : first + v * THREADS] = total[v];
}
