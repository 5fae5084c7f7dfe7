// Backprojection of spokes: projections at their knots, then the image by linear interpolation.
//
// A knot is a sum over the samples of its spoke, by Horner's rule in exp(i 2 pi b), where b is the phase step in turns
// from one sample to the next. A new sum begins after PART samples, which limits the growth of rounding errors.
//
// `spokes` has four numbers per spoke. Two are phases in turns, of its first sample and of a step, at the knot next to
// the middle. Two are the knots from a voxel to the next, along x and along y.

#define PART 256
#define WIDE 32
#define HIGH 8

// Returns exp(i 2 pi turns).
static __device__ cplx unit(double turns) {
    double s, c;
    sincospi(2.0 * (turns - rint(turns)), &s, &c);
    cplx z = {(real)c, (real)s};
    return z;
}

static __device__ cplx multiply_add(cplx a, cplx b, cplx c) {
    cplx z = {c.x + a.x * b.x - a.y * b.y, c.y + a.x * b.y + a.y * b.x};
    return z;
}

// Computes knots(i) of spokes first, first + 1 and so on. A block has some knots of one spoke of one array.
extern "C" __global__ void __launch_bounds__(PART)
project(const cplx *values, const double *spokes, cplx *knots, u32 first, u32 all, u32 readout, u32 count, u32 middle) {
    begin_kernel();
    __shared__ cplx samples[PART];
    u32 spoke = first + blockIdx.y, t = threadIdx.x, i = blockIdx.x * PART + t;
    const cplx *from = values + ((u64)blockIdx.z * all + spoke) * readout;
    double place = (double)i - (double)middle;
    double start = spokes[4 * spoke] * place, turns = spokes[4 * spoke + 1] * place;
    cplx step = unit(turns), sum = {0, 0};
    for (u32 part = 0; part < readout; part += PART) {
        u32 n = min((u32)PART, readout - part);
        __syncthreads();
        if (t < n) samples[t] = from[part + t];
        __syncthreads();
        cplx inner = {0, 0};
        for (u32 j = n; j > 0; j--) inner = multiply_add(inner, step, samples[j - 1]);
        sum = multiply_add(inner, unit(start + turns * part), sum);
    }
    if (i < count) knots[((u64)blockIdx.z * gridDim.y + blockIdx.y) * count + i] = sum;
}

// Sets image(x, y) to the sum of the spokes' projections there, or adds it. `spokes` and `knots` begin with the first
// of `n` spokes.
extern "C" __global__ void __launch_bounds__(WIDE *HIGH)
backproject(const cplx *knots, const double *spokes, cplx *image, u32 n, u32 count, u32 middle, u32 nx, u32 ny,
            u32 add) {
    begin_kernel();
    u32 x = blockIdx.x * WIDE + threadIdx.x, y = blockIdx.y * HIGH + threadIdx.y;
    if (x >= nx || y >= ny) return;
    real right = (real)((int)x - (int)(nx / 2)), up = (real)((int)y - (int)(ny / 2));
    const cplx *from = knots + (u64)blockIdx.z * n * count;
    cplx *to = image + ((u64)blockIdx.z * ny + y) * nx + x;
    cplx none = {0, 0}, sum = add ? *to : none;
    for (u32 s = 0; s < n; s++, from += count) {
        real place = (real)middle + (real)spokes[4 * s + 2] * right + (real)spokes[4 * s + 3] * up;
        int knot = min(max((int)floor(place), 0), (int)count - 2);
        real near = place - (real)knot;
        cplx a = from[knot], b = from[knot + 1];
        sum.x += a.x + near * (b.x - a.x);
        sum.y += a.y + near * (b.y - a.y);
    }
    *to = sum;
}
