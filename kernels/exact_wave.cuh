// Waves exp(i 2 pi k.r) and voxel pairs, for the direct sums. The host puts this file between common.cuh and the
// exact_*.cu files.
//
// A phase is in turns: 1 is 2 pi. The polynomials may be changed together with the CPU's.

#if DOUBLE
#define WHOLE 6755399441055744.0 // adding it to a number below 2^51 rounds to whole numbers
#define HALF 3377699720527872.0  // the same, to halves
#else
#define WHOLE 12582912.0f
#define HALF 6291456.0f
#endif

// k r minus its whole turns, rounded once: fma computes the product without an error that would grow with its turns.
__device__ __forceinline__ real fraction(real k, real r)
{
    real whole = fma(k, r, WHOLE) - WHOLE;
    return fma(k, r, -whole);
}

__device__ __forceinline__ unsigned low_word(float x) { return __float_as_uint(x); }
__device__ __forceinline__ unsigned low_word(double x) { return (unsigned)__double2loint(x); }
__device__ __forceinline__ float negate_if(float x, unsigned sign)
{
    return __uint_as_float(__float_as_uint(x) ^ sign);
}
__device__ __forceinline__ double negate_if(double x, unsigned sign)
{
    return __hiloint2double((int)((unsigned)__double2hiint(x) ^ sign), __double2loint(x));
}

// cos and sin of 2 pi rest for |rest| <= 1/4: the CPU's minimax polynomials, with errors below those of rounding.
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

// exp(i 2 pi turns), for a few turns at most: rounding of `turns` is an error that grows with it.
__device__ __forceinline__ cplx wave(real turns)
{
    real halves = turns + HALF;
    cplx w = quarter_wave(turns - (halves - HALF));
    unsigned odd = low_word(halves) << 31;
    w.x = negate_if(w.x, odd);
    w.y = negate_if(w.y, odd);
    return w;
}

// 2^x, in the CPU's range and with its polynomial, whose error is below that of rounding.
__device__ __forceinline__ real power_of_two(real x)
{
#if DOUBLE
    x = fmin(fmax(x, -1021.0), 900.0);
    double shifted = x + WHOLE, rest = x - (shifted - WHOLE);
    double p = fma(rest, 4.4352809446103363e-10, 7.074105626245659e-09);
    p = fma(rest, p, 1.0178198033328528e-07);
    p = fma(rest, p, 1.321543308959463e-06);
    p = fma(rest, p, 1.5252733489960805e-05);
    p = fma(rest, p, 0.00015403530462514614);
    p = fma(rest, p, 0.001333355814678995);
    p = fma(rest, p, 0.009618129107588335);
    p = fma(rest, p, 0.055504108664819925);
    p = fma(rest, p, 0.24022650695910155);
    p = fma(rest, p, 0.6931471805599453);
    p = fma(rest, p, 1.0);
    // The low word of `shifted` is the whole number, which is added to p's exponent.
    return __hiloint2double((int)((unsigned)__double2hiint(p) + (low_word(shifted) << 20)), __double2loint(p));
#else
    x = fminf(fmaxf(x, -125.0f), 100.0f);
    float shifted = x + WHOLE, rest = x - (shifted - WHOLE);
    float p = fma(rest, 0.0001534581242594868f, 0.0013399930903688073f);
    p = fma(rest, p, 0.009618489071726799f);
    p = fma(rest, p, 0.05550328642129898f);
    p = fma(rest, p, 0.24022646248340607f);
    p = fma(rest, p, 0.6931471824645996f);
    p = fma(rest, p, 1.0f);
    return __uint_as_float(__float_as_uint(p) + (low_word(shifted) << 23));
#endif
}

__device__ __forceinline__ cplx times(cplx a, cplx b)
{
    cplx c;
    c.x = fma(a.x, b.x, -(a.y * b.y));
    c.y = fma(a.x, b.y, a.y * b.x);
    return c;
}

// A Cartesian grid of voxels. Its axis 0, which may be any axis of the image, is folded: voxels at c and -c are a pair.
struct Shape {
    long long stride[3]; // of the image's axes, in voxels
    int n[3];
    int even; // 1 if n[0] is even
};

__device__ __forceinline__ int pairs(Shape const &shape) { return (shape.n[0] + 1) / 2; }
// Where pair h is: an even number of voxels is shifted by half a voxel, so that it has no middle one.
__device__ __forceinline__ real position(Shape const &shape, int h) { return shape.even ? h + (real)0.5 : (real)h; }

// The voxels of pair h, at c and -c, on a line of axis 0. A middle voxel has no partner: `down` is unchanged.
__device__ __forceinline__ void load_pair(Shape const &shape, const cplx *line, int h, cplx &up, cplx &down)
{
    up = line[(shape.n[0] / 2 + h) * shape.stride[0]];
    if (shape.even || h > 0)
        down = line[(shape.n[0] / 2 - h - shape.even) * shape.stride[0]];
}

// Writes the voxels a and b of pair h, or adds them to the image.
__device__ __forceinline__ void write_pair(Shape const &shape, cplx *line, int h, cplx a, cplx b, int add)
{
    cplx *up = line + (shape.n[0] / 2 + h) * shape.stride[0];
    cplx *down = line + (shape.n[0] / 2 - h - shape.even) * shape.stride[0];
    if (add) {
        cplx before = *up;
        a.x += before.x;
        a.y += before.y;
        if (up != down) {
            before = *down;
            b.x += before.x;
            b.y += before.y;
        }
    }
    *up = a;
    if (up != down)
        *down = b;
}

// out(i) = sum over p of parts(p stride + i), in the order of p.
extern "C" __global__ void __launch_bounds__(256)
add_parts(const cplx *parts, long long stride, int count, cplx *out, long long len)
{
    begin_kernel();
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
