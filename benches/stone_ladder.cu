// The steps of Stone et al. 2008 for F^H d, one after the other, following the paper's description. They show what each
// step gains on a GPU of today. They are for the benchmark's table only; the library's own kernel is exact_list.cu.
// Every kernel adds to the output: clear it first.
//
// Macros: TILE is the number of samples in constant memory (20 bytes each, at most 64 KB in all). V is the number of
// voxels of each thread of fhd_tune. Each block has 256 threads.

struct Voxel { real x, y, z; };
struct Sample { real kx, ky, kz, re, im; };

__device__ __forceinline__ real phase(real kx, real ky, real kz, real x, real y, real z)
{
    return (real)6.283185307179586 * (kx * x + ky * y + kz * z);
}

// Base: one thread for each voxel, everything in global memory, accurate trigonometry.
extern "C" __global__ void __launch_bounds__(256)
fhd_base(const Voxel *voxels, const Sample *samples, int count, cplx *out, long long len)
{
    long long i = blockIdx.x * 256LL + threadIdx.x;
    if (i >= len)
        return;
    for (int m = 0; m < count; m++) {
        // Volatile, because a compiler of today would otherwise keep the values in registers.
        const volatile Voxel *r = voxels + i;
        volatile cplx *o = out + i;
        const volatile Sample *d = samples + m;
        real s, c;
        sincos(phase(d->kx, d->ky, d->kz, r->x, r->y, r->z), &s, &c);
        o->x = o->x + d->re * c - d->im * s;
        o->y = o->y + d->im * c + d->re * s;
    }
}

// RegAlloc: the voxel and its sum in registers.
extern "C" __global__ void __launch_bounds__(256)
fhd_registers(const Voxel *voxels, const Sample *samples, int count, cplx *out, long long len)
{
    long long i = blockIdx.x * 256LL + threadIdx.x;
    if (i >= len)
        return;
    Voxel r = voxels[i];
    cplx o = out[i];
    for (int m = 0; m < count; m++) {
        Sample d = samples[m];
        real s, c;
        sincos(phase(d.kx, d.ky, d.kz, r.x, r.y, r.z), &s, &c);
        o.x += d.re * c - d.im * s;
        o.y += d.im * c + d.re * s;
    }
    out[i] = o;
}

// Coalesce: one array for each coordinate, so that a warp reads neighbouring values.
extern "C" __global__ void __launch_bounds__(256)
fhd_coalesced(const real *x, const real *y, const real *z, const Sample *samples, int count, cplx *out, long long len)
{
    long long i = blockIdx.x * 256LL + threadIdx.x;
    if (i >= len)
        return;
    real rx = x[i], ry = y[i], rz = z[i];
    cplx o = out[i];
    for (int m = 0; m < count; m++) {
        Sample d = samples[m];
        real s, c;
        sincos(phase(d.kx, d.ky, d.kz, rx, ry, rz), &s, &c);
        o.x += d.re * c - d.im * s;
        o.y += d.im * c + d.re * s;
    }
    out[i] = o;
}

// ConstMem: samples in tiles of constant memory, which the host fills before each launch. A compiler of today turns the
// reads into one load after the other. On a GPU of 2022 these cost more than the reads through the first-level cache in
// RegAlloc.
__constant__ Sample tile[TILE];

extern "C" __global__ void __launch_bounds__(256)
fhd_constant(const real *x, const real *y, const real *z, int count, cplx *out, long long len)
{
    long long i = blockIdx.x * 256LL + threadIdx.x;
    if (i >= len)
        return;
    real rx = x[i], ry = y[i], rz = z[i];
    cplx o = out[i];
    for (int m = 0; m < count; m++) {
        real s, c;
        sincos(phase(tile[m].kx, tile[m].ky, tile[m].kz, rx, ry, rz), &s, &c);
        o.x += tile[m].re * c - tile[m].im * s;
        o.y += tile[m].im * c + tile[m].re * s;
    }
    out[i] = o;
}

__device__ __forceinline__ void fast(float angle, float &s, float &c)
{
    s = __sinf(angle);
    c = __cosf(angle);
}
__device__ __forceinline__ void fast(double angle, double &s, double &c) { sincos(angle, &s, &c); }

// FastTrig: sines and cosines by the special function units.
extern "C" __global__ void __launch_bounds__(256)
fhd_fast(const real *x, const real *y, const real *z, int count, cplx *out, long long len)
{
    long long i = blockIdx.x * 256LL + threadIdx.x;
    if (i >= len)
        return;
    real rx = x[i], ry = y[i], rz = z[i];
    cplx o = out[i];
    for (int m = 0; m < count; m++) {
        real s, c;
        fast(phase(tile[m].kx, tile[m].ky, tile[m].kz, rx, ry, rz), s, c);
        o.x += tile[m].re * c - tile[m].im * s;
        o.y += tile[m].im * c + tile[m].re * s;
    }
    out[i] = o;
}

// Tune: several voxels for each thread, and the loop over samples unrolled. Each block computes 256 V voxels.
extern "C" __global__ void __launch_bounds__(256)
fhd_tune(const real *x, const real *y, const real *z, int count, cplx *out, long long len)
{
    long long first = blockIdx.x * (256LL * V) + threadIdx.x;
    real rx[V], ry[V], rz[V];
    cplx o[V];
#pragma unroll
    for (int v = 0; v < V; v++) {
        long long i = min(first + v * 256, len - 1);
        rx[v] = x[i];
        ry[v] = y[i];
        rz[v] = z[i];
        o[v] = out[i];
    }
#pragma unroll 4
    for (int m = 0; m < count; m++) {
#pragma unroll
        for (int v = 0; v < V; v++) {
            real s, c;
            fast(phase(tile[m].kx, tile[m].ky, tile[m].kz, rx[v], ry[v], rz[v]), s, c);
            o[v].x += tile[m].re * c - tile[m].im * s;
            o[v].y += tile[m].im * c + tile[m].re * s;
        }
    }
#pragma unroll
    for (int v = 0; v < V; v++)
        if (first + v * 256 < len)
            out[first + v * 256] = o[v];
}
