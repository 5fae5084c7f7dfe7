// F^H d of Stone et al. 2008 and of the book chapter, one kernel for each step of their optimisation, written after
// their descriptions. The kernels show what each step gains on a GPU of today. They are for the tables of docs/papers
// only; the library's own kernel is kernels/exact_list.cu. Every kernel adds to the output, because a launch has one
// tile of the samples.
//
// Macros from the host:
//   LAYOUT    where the samples are read from, see below
//   TRIG      SOFTWARE, HARDWARE (special function units) or MIXED: hardware, and polynomials for one voxel in four.
//             Samples of MIXED are in polar form: re is the magnitude, im the phase in radians.
//   V         voxels per thread
//   UNROLL    unrolled iterations of the loop over samples
//   CAPACITY  maximum number of samples in constant memory
#define GLOBAL_STRUCTURES 0   // structures {kx, ky, kz, re, im} in global memory
#define GLOBAL_ARRAYS 1       // one array for each member, read by a warp as 32 neighbours
#define CONSTANT_STRUCTURES 2 // structures in constant memory
#define CONSTANT_K 3          // structures {kx, ky, kz} in constant memory, re and im in global memory
#define CONSTANT_K_ARRAYS 4   // arrays kx, ky, kz in constant memory, re and im in global memory
#define SHARED_STRUCTURES 5   // structures in global memory, copied to shared memory by the block
#define SOFTWARE 0
#define HARDWARE 1
#define MIXED 2
#define TURN 6.28318531f

struct Sample { float kx, ky, kz, re, im; };
struct Position { float kx, ky, kz; };

#if LAYOUT == CONSTANT_STRUCTURES
__constant__ Sample tile[CAPACITY];
#elif LAYOUT == CONSTANT_K
__constant__ Position tile[CAPACITY];
#elif LAYOUT == CONSTANT_K_ARRAYS
__constant__ float tile[3 * CAPACITY];
#endif

// The samples of a tile. Only the pointers that LAYOUT names are read.
struct Tile {
    const Sample *structures;
    const float *kx, *ky, *kz, *re, *im;
};
#define SAMPLES                                                                                                        \
    const Sample *structures, const float *kx, const float *ky, const float *kz, const float *re, const float *im,    \
        int count

__device__ __forceinline__ Sample sample_at(Tile const &t, int m)
{
#if LAYOUT == CONSTANT_STRUCTURES
    return tile[m];
#elif LAYOUT == CONSTANT_K
    return {tile[m].kx, tile[m].ky, tile[m].kz, t.re[m], t.im[m]};
#elif LAYOUT == CONSTANT_K_ARRAYS
    return {tile[m], tile[CAPACITY + m], tile[2 * CAPACITY + m], t.re[m], t.im[m]};
#elif LAYOUT == GLOBAL_ARRAYS
    return {t.kx[m], t.ky[m], t.kz[m], t.re[m], t.im[m]};
#else
    return t.structures[m];
#endif
}

// Adds size exp(i angle) by the multiply-add units, where the special function units are the limit: Taylor polynomials
// up to a quarter of a turn, after taking off half turns. Adding 3 * 2^22 rounds to an integer, whose lowest bit is the
// sign. Conversions would use the special function units.
__device__ __forceinline__ void add_polynomial_wave(float size, float angle, cplx &sum)
{
    float halves = fmaf(angle, 0.318309886f, 12582912.0f);
    float rest = fmaf(halves - 12582912.0f, -3.14159274f, angle), q = rest * rest;
    size = __uint_as_float(__float_as_uint(size) ^ __float_as_uint(halves) << 31);
    float c = fmaf(q, -2.75573192e-7f, 2.48015873e-5f);
    c = fmaf(q, c, -1.38888889e-3f);
    c = fmaf(q, c, 4.16666667e-2f);
    c = fmaf(q, c, -0.5f);
    c = fmaf(q, c, 1.0f);
    float s = fmaf(q, 2.75573192e-6f, -1.98412698e-4f);
    s = fmaf(q, s, 8.33333333e-3f);
    s = fmaf(q, s, -0.166666667f);
    s = fmaf(q, s, 1.0f);
    sum.x = fmaf(size, c, sum.x);
    sum.y = fmaf(size * rest, s, sum.y);
}

__device__ __forceinline__ void waves(float angle, float &sine, float &cosine)
{
#if TRIG == SOFTWARE
    sincosf(angle, &sine, &cosine);
#else
    sine = __sinf(angle);
    cosine = __cosf(angle);
#endif
}

// Base: one thread per voxel; voxels, samples and sums in global memory. "Volatile" keeps a compiler of today from
// moving them to registers, which is the next step.
extern "C" __global__ void fhd_base(const float *x, const float *y, const float *z, SAMPLES, cplx *out, long long len)
{
    long long n = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (n >= len)
        return;
    const volatile float *vx = x, *vy = y, *vz = z;
    volatile cplx *o = out + n;
    for (int m = 0; m < count; m++) {
        const volatile Sample *d = structures + m;
        float s, c;
        waves(TURN * (d->kx * vx[n] + d->ky * vy[n] + d->kz * vz[n]), s, c);
        o->x = o->x + d->re * c - d->im * s;
        o->y = o->y + d->im * c + d->re * s;
    }
}

// Scatter: one thread per sample, which adds to all voxels by atomic additions.
extern "C" __global__ void fhd_scatter(const float *x, const float *y, const float *z, SAMPLES, cplx *out,
                                       long long len)
{
    int m = blockIdx.x * blockDim.x + threadIdx.x;
    if (m >= count)
        return;
    Sample d = sample_at({structures, kx, ky, kz, re, im}, m);
    for (long long n = 0; n < len; n++) {
        float s, c;
        waves(TURN * (d.kx * x[n] + d.ky * y[n] + d.kz * z[n]), s, c);
        atomicAdd(&out[n].x, d.re * c - d.im * s);
        atomicAdd(&out[n].y, d.im * c + d.re * s);
    }
}

// The first loop after fission: mu = conj(phi) d for each sample.
extern "C" __global__ void compute_mu(const cplx *phi, const cplx *d, cplx *mu, int count)
{
    int m = blockIdx.x * blockDim.x + threadIdx.x;
    if (m >= count)
        return;
    mu[m] = {phi[m].x * d[m].x + phi[m].y * d[m].y, phi[m].x * d[m].y - phi[m].y * d[m].x};
}

// All later steps: the voxels and sums of a thread in registers, samples by LAYOUT, waves by TRIG.
extern "C" __global__ void fhd(const float *x, const float *y, const float *z, SAMPLES, cplx *out, long long len)
{
    long long first = blockIdx.x * ((long long)blockDim.x * V) + threadIdx.x;
    float rx[V], ry[V], rz[V];
    cplx o[V];
#pragma unroll
    for (int v = 0; v < V; v++) {
        long long n = min(first + v * (long long)blockDim.x, len - 1);
        // Once for each voxel and tile, so that the loop over samples has no multiplication by 2 pi.
        rx[v] = TURN * x[n];
        ry[v] = TURN * y[n];
        rz[v] = TURN * z[n];
        o[v] = out[n];
    }
#if LAYOUT == SHARED_STRUCTURES
    extern __shared__ Sample staged[];
    for (int m = threadIdx.x; m < count; m += blockDim.x)
        staged[m] = structures[m];
    __syncthreads();
#endif
#pragma unroll UNROLL
    for (int m = 0; m < count; m++) {
#if LAYOUT == GLOBAL_ARRAYS
        // Each lane begins at its own sample of 32, so a warp reads neighbours. The tile is a multiple of 32.
        Sample d = sample_at({structures, kx, ky, kz, re, im}, (m & ~31) + ((m + threadIdx.x) & 31));
#elif LAYOUT == SHARED_STRUCTURES
        Sample d = staged[m];
#else
        Sample d = sample_at({structures, kx, ky, kz, re, im}, m);
#endif
#pragma unroll
        for (int v = 0; v < V; v++) {
#if TRIG == MIXED
            // In polar form a pair has two multiplications less.
            float angle = fmaf(d.kx, rx[v], fmaf(d.ky, ry[v], fmaf(d.kz, rz[v], d.im)));
            if (v % 4 == 0) {
                add_polynomial_wave(d.re, angle, o[v]);
            } else {
                o[v].x = fmaf(d.re, __cosf(angle), o[v].x);
                o[v].y = fmaf(d.re, __sinf(angle), o[v].y);
            }
#else
            float s, c;
            waves(d.kx * rx[v] + d.ky * ry[v] + d.kz * rz[v], s, c);
            o[v].x += d.re * c - d.im * s;
            o[v].y += d.im * c + d.re * s;
#endif
        }
    }
#pragma unroll
    for (int v = 0; v < V; v++)
        if (first + v * (long long)blockDim.x < len)
            out[first + v * (long long)blockDim.x] = o[v];
}
