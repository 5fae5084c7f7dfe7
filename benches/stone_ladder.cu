// The ladder of Stone et al. 2008 for F^H d, rung by rung, after the paper's description: what each step gains on a GPU of
// today. For the benchmark's table only; the library's own kernel is exact_list.cu. The output is added to: clear it first.
//
// Macros: TILE, samples of constant memory (20 bytes each, at most 64 KB); V, voxels a thread of fhd_tune. Threads: 256 a block.

struct Voxel { real x, y, z; };
struct Sample { real kx, ky, kz, re, im; };

__device__ __forceinline__ real phase(real kx, real ky, real kz, real x, real y, real z)
{
    return (real)6.283185307179586 * (kx * x + ky * y + kz * z);
}

// Base: a thread a voxel, everything in global memory, accurate trigonometry.
extern "C" __global__ void __launch_bounds__(256)
fhd_base(const Voxel *voxels, const Sample *samples, int count, cplx *out, long long len)
{
    long long i = blockIdx.x * 256LL + threadIdx.x;
    if (i >= len)
        return;
    for (int m = 0; m < count; m++) {
        // Volatile, as a compiler of today would keep them in registers.
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

// Coalesce: an array a coordinate, so that a warp reads neighbours.
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

// ConstMem: samples in tiles of constant memory, which the host fills before each launch. Compilers of today make one load
// after the other of it, which on a GPU of 2022 cost more than the first-level cache in RegAlloc.
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

// FastTrig: sines and cosines of the special function units.
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

// Tune: several voxels a thread, samples unrolled. Blocks own 256 V voxels.
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
