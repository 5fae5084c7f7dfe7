// Direct sums over lists: out(t) = sum over sources s of value(s) exp(+-i 2 pi p(s).q(t)), the kernel of Stone et al. 2008.
// Sources are samples and targets voxels, or the reverse, with the other sign. An off-resonance term is one more axis:
// the voxel's frequency in Hz and the sample's time in seconds.
//
// Targets stay in registers, V a thread; sources pass through shared memory in runs whose sums are added up in turn, so that
// rounding errors stay those of short sums. Sources are made ready in polar form, |value| and its phase: the phase starts the
// sum of p.q, and two multiplications a pair are saved.
//
// A block's targets are close together (the host sorts them), and phases are taken from one of them: what is left is a few
// turns, for which f32 and the special functions suffice whatever the size of the image. The phase at that target is reduced
// axis by axis, without loss, once a source and block.
//
// Macros: AXES 1 to 4; V targets a thread; POLY of them whose waves are polynomials on the FMA units, while the special
// function units, which bound the kernel otherwise, work on the others; UNROLL: of the loop over sources; ACCURATE=1: all
// phases reduced as the first one, and accurate polynomials (POLY does not matter; the order of targets neither). In f64,
// always ACCURATE. They may be changed together with the host's geometry.

#define RUN 256     // sources in shared memory at a time
#ifndef THREADS
#define THREADS 128 // a block
#endif
#if ACCURATE
#define UNIT ((real)1) // phases in turns
#else
#define UNIT 6.28318548f // phases in units of 1 / UNIT turns: twice the float nearest pi, about radians
#endif

struct __align__(16) Source {
    real position[4];
    real phase, size;
    real none[2];
};

// Sources as the sums want them, padded with zeros to a whole number of runs; sign is that of the exponent. order, where
// given, says which value belongs to each position.
extern "C" __global__ void __launch_bounds__(256)
ready_sources(const real *p0, const real *p1, const real *p2, const real *p3, const cplx *values, const unsigned *order,
              long long count, long long padded, real sign, Source *out)
{
    long long i = blockIdx.x * 256LL + threadIdx.x;
    if (i >= padded)
        return;
    Source s = {{0, 0, 0, 0}, 0, 0, {0, 0}};
    if (i < count) {
        const real *p[4] = {p0, p1, p2, p3};
#pragma unroll
        for (int a = 0; a < AXES; a++)
            s.position[a] = sign * p[a][i];
        cplx v = values[order ? order[i] : i];
        s.size = hypot(v.x, v.y);
        s.phase = atan2(v.y, v.x) * (real)0.15915494309189535;
        // Sizes are positive, so that the mean error of the sines, 3e-8, would add up over millions of sources: half of the
        // sources, those of odd parity, are taken half a turn on and negated.
        if (__popcll(i) & 1) {
            s.size = -s.size;
            s.phase -= copysign((real)0.5, s.phase);
        }
    }
    out[i] = s;
}

#if ACCURATE
__device__ __forceinline__ void add_pair(Source const &s, real const (&at)[AXES], bool, cplx &sum)
{
    real turns = s.phase;
#pragma unroll
    for (int a = 0; a < AXES; a++)
        turns += fraction(s.position[a], at[a]);
    real halves = turns + HALF;
    cplx w = quarter_wave(turns - (halves - HALF));
    real size = negate_if(s.size, low_word(halves) << 31);
    sum.x = fma(size, w.x, sum.x);
    sum.y = fma(size, w.y, sum.y);
}
#else
__device__ __forceinline__ void add_pair(Source const &s, real const (&at)[AXES], bool polynomial, cplx &sum)
{
    float phase = s.phase;
#pragma unroll
    for (int a = 0; a < AXES; a++)
        phase = fma(s.position[a], at[a], phase);
    if (polynomial) {
        float halves = fma(phase, 2.0f / UNIT, WHOLE);
        float rest = fma(halves - WHOLE, UNIT / -2.0f, phase);
        // An odd count of half turns flips the sign bit.
        float size = __uint_as_float(__float_as_uint(halves) * 0x80000000u + __float_as_uint(s.size));
        // Minimax polynomials for a quarter turn either way; errors 6e-8 and 6e-7.
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
        sum.x = fma(s.size, __cosf(phase), sum.x);
        sum.y = fma(s.size, __sinf(phase), sum.y);
    }
}
#endif

// Blocks: (targets / (THREADS V), parts of the sources); part p writes to out + p part_stride. Target t is written to order[t]
// where given.
extern "C" __global__ void __launch_bounds__(THREADS)
list_sum(const Source *sources, long long runs, const real *q0, const real *q1, const real *q2, const real *q3,
         const unsigned *order, long long count, cplx *out, long long part_stride)
{
    __shared__ Source tile[RUN];
    const real *q[4] = {q0, q1, q2, q3};
    long long block = (long long)blockIdx.x * (THREADS * V), first = block + threadIdx.x;
    long long run = runs * blockIdx.y / gridDim.y, to = runs * (blockIdx.y + 1) / gridDim.y;
    real at[V][AXES];
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
                add_pair(s, at[v], v * POLY % V < POLY, sum[v]);
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
