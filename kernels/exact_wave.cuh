// Waves exp(i 2 pi k.r) for the direct sums; put in front of the exact_*.cu files, after common.cuh.

#if DOUBLE
#define WHOLE 6755399441055744.0 // added to a number below 2^51, leaves no room for less than one
#define HALF 3377699720527872.0  // the same, for less than one half
#else
#define WHOLE 12582912.0f
#define HALF 6291456.0f
#endif

// k r less whole turns, with one rounding: the error of the product, which grows with its turns, is kept.
__device__ __forceinline__ real fraction(real k, real r)
{
    real whole = fma(k, r, WHOLE) - WHOLE;
    return fma(k, r, -whole);
}

__device__ __forceinline__ unsigned low_word(float x) { return __float_as_uint(x); }
__device__ __forceinline__ unsigned low_word(double x) { return (unsigned)__double2loint(x); }
__device__ __forceinline__ float negate_if(float x, unsigned sign) { return __uint_as_float(__float_as_uint(x) ^ sign); }
__device__ __forceinline__ double negate_if(double x, unsigned sign)
{
    return __hiloint2double((int)((unsigned)__double2hiint(x) ^ sign), __double2loint(x));
}

// cos and sin of 2 pi rest for |rest| <= 1/4: the CPU's minimax polynomials, errors below the arithmetic's.
__device__ __forceinline__ cplx quarter_wave(real rest)
{
    real q = rest * rest;
    cplx w;
#if DOUBLE
    w.x = fma(q, 0.2717932798932563, -1.7131849036114384);
    w.x = fma(q, w.x, 7.903459594980004);
    w.x = fma(q, w.x, -26.42625394341738);
    w.x = fma(q, w.x, 60.24464131059596);
    w.x = fma(q, w.x, -85.45681720596168);
    w.x = fma(q, w.x, 64.93939402266406);
    w.x = fma(q, w.x, -19.73920880217871);
    w.y = fma(q, -0.6907436597401394, 3.8169549162429077);
    w.y = fma(q, w.y, -15.094467871789496);
    w.y = fma(q, w.y, 42.05868813827448);
    w.y = fma(q, w.y, -76.70585964350285);
    w.y = fma(q, w.y, 81.6052492749784);
    w.y = fma(q, w.y, -41.34170224039483);
    w.y = fma(q, w.y, 6.28318530717958);
#else
    w.x = fma(q, -24.53900718688965f, 60.079044342041016f);
    w.x = fma(q, w.x, -85.4503402709961f);
    w.x = fma(q, w.x, 64.93928527832031f);
    w.x = fma(q, w.x, -19.739208221435547f);
    w.y = fma(q, 39.13410949707031f, -76.49604797363281f);
    w.y = fma(q, w.y, 81.59864807128906f);
    w.y = fma(q, w.y, -41.341617584228516f);
    w.y = fma(q, w.y, 6.283185005187988f);
#endif
    w.x = fma(q, w.x, (real)1);
    w.y *= rest;
    return w;
}

// exp(i 2 pi turns), for a few turns at most: what is lost of larger ones is the caller's.
__device__ __forceinline__ cplx wave(real turns)
{
    real halves = turns + HALF;
    cplx w = quarter_wave(turns - (halves - HALF));
    unsigned odd = low_word(halves) << 31;
    w.x = negate_if(w.x, odd);
    w.y = negate_if(w.y, odd);
    return w;
}

__device__ __forceinline__ cplx times(cplx a, cplx b)
{
    cplx c;
    c.x = fma(a.x, b.x, -(a.y * b.y));
    c.y = fma(a.x, b.y, a.y * b.x);
    return c;
}

// A Cartesian grid of voxels. Its axis 0, which axis of the image that ever is, is folded: voxels at c and -c are a pair.
struct Shape {
    long long stride[3]; // of the image's axes, in voxels
    int n[3];
    int even; // whether n[0] is
};

__device__ __forceinline__ int pairs(Shape const &shape) { return (shape.n[0] + 1) / 2; }
// Where pair h lies: an even number of voxels is taken half a voxel on, to have no middle.
__device__ __forceinline__ real position(Shape const &shape, int h) { return shape.even ? h + (real)0.5 : (real)h; }

// Sums of parts, in their order: out(i) = sum over p of parts(p stride + i).
extern "C" __global__ void __launch_bounds__(256)
add_parts(const cplx *parts, long long stride, int count, cplx *out, long long len)
{
    long long i = blockIdx.x * 256LL + threadIdx.x;
    if (i >= len)
        return;
    cplx sum = parts[i];
    for (int p = 1; p < count; p++) {
        cplx part = parts[p * stride + i];
        sum.x += part.x;
        sum.y += part.y;
    }
    out[i] = sum;
}
