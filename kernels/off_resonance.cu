// Factors of voxels and samples in sums for off-resonance and decay. They are computed in double precision and rounded
// once, as on the CPU.

#define THREADS 256

// Functions of a series that a thread evaluates at once.
#define GROUP 8

// A stride loop over n elements.
#define EACH(i, n) (u64 i = blockIdx.x * (u64)THREADS + threadIdx.x; i < (n); i += gridDim.x * (u64)THREADS)

// Position of a time in the interval of a series, from -1 to 1. An interval without length has the position 0.
static __device__ double position(double t, double middle, double half) {
    return half > 0 ? fmin(fmax((t - middle) / half, -1.0), 1.0) : 0;
}

// out[l][r] = exp(-(R(r) + i 2 pi (f(r) - origin)) tau_l) for the nodes tau_l = nodes[blockIdx.y]. R is limited to
// max_rate; a null map of R is 0.
extern "C" __global__ void __launch_bounds__(THREADS)
voxel_waves(const real *frequencies, const real *decay, double max_rate, double origin, const double *nodes, cplx *out,
            u64 n) {
    begin_kernel();
    double tau = nodes[blockIdx.y];
    out += blockIdx.y * n;
    for EACH(i, n) {
        double turns = -tau * (frequencies[i] - origin);
        double s, c;
        sincospi(2 * (turns - rint(turns)), &s, &c);
        double size = decay ? exp(-tau * fmin((double)decay[i], max_rate)) : 1;
        cplx value = {(real)(size * c), (real)(size * s)};
        out[i] = value;
    }
}

// out[l][m] = b_l(t_m) exp(i 2 pi f t_m) for GROUP functions b_l, from l = GROUP blockIdx.y. `series` is
// [terms][functions].
extern "C" __global__ void __launch_bounds__(THREADS)
sample_waves(const real *times, double middle, double half, double frequency, const double *series, u32 terms,
             u32 functions, cplx *out, u64 n) {
    begin_kernel();
    u32 first = GROUP * blockIdx.y, columns[GROUP];
#pragma unroll
    for (u32 g = 0; g < GROUP; g++) columns[g] = min(first + g, functions - 1);
    for EACH(m, n) {
        double t = times[m], x = position(t, middle, half), term = 1, next = x, sums[GROUP] = {};
        for (u32 j = 0; j < terms; j++) {
            const double *row = series + (u64)j * functions;
#pragma unroll
            for (u32 g = 0; g < GROUP; g++) sums[g] += term * row[columns[g]];
            double after = 2 * x * next - term;
            term = next;
            next = after;
        }
        double turns = frequency * t, s, c;
        sincospi(2 * (turns - rint(turns)), &s, &c);
#pragma unroll
        for (u32 g = 0; g < GROUP; g++) {
            if (first + g >= functions) break;
            cplx value = {(real)(sums[g] * c), (real)(sums[g] * s)};
            out[(first + g) * n + m] = value;
        }
    }
}

// out[m] = w(m) b(t_m) for one function of a series. A null w is 1.
extern "C" __global__ void __launch_bounds__(THREADS)
series_values(const real *times, double middle, double half, const double *series, u32 terms, u32 functions,
              u32 function, const real *w, real *out, u64 n) {
    begin_kernel();
    for EACH(m, n) {
        double x = position(times[m], middle, half), term = 1, next = x, sum = 0;
        for (u32 j = 0; j < terms; j++) {
            sum += term * series[(u64)j * functions + function];
            double after = 2 * x * next - term;
            term = next;
            next = after;
        }
        out[m] = (real)(w ? w[m] * sum : sum);
    }
}
