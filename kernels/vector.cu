// Vectors: products, sums, steps of conjugate gradients, differences between neighbours, sparse matrices, checks.
// Every kernel runs on any number of blocks of THREADS threads, as on the host. Sums are in double precision and
// in an order that never changes: first each thread's elements, then a tree within the block, then the blocks' sums,
// added by the block that ends last.

#define THREADS 256

// A stride loop over n elements.
#define EACH(i, n) (u64 i = blockIdx.x * (u64)THREADS + threadIdx.x; i < (n); i += gridDim.x * (u64)THREADS)

static __device__ cplx multiply_add(real a, cplx x, cplx y) {
    y.x += a * x.x;
    y.y += a * x.y;
    return y;
}

// Returns the sum over the block, in thread 0.
static __device__ double block_sum(double value) {
    __shared__ double sums[THREADS];
    u32 t = threadIdx.x;
    sums[t] = value;
    __syncthreads();
    for (u32 half = THREADS / 2; half > 0; half /= 2) {
        if (t < half) sums[t] += sums[t + half];
        __syncthreads();
    }
    return sums[0];
}

// Computes the sum over all blocks. `partial` has one element per block; `ticket` is 0 before and after.
static __device__ void grid_sum(double value, double *partial, u32 *ticket, double *out) {
    __shared__ bool last;
    value = block_sum(value);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = value;
        __threadfence();
        last = atomicAdd(ticket, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    double sum = 0;
    for (u32 b = threadIdx.x; b < gridDim.x; b += THREADS) sum += ((volatile double *)partial)[b];
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        *out = sum;
        *ticket = 0;
    }
}

// z = x y for each of `count` arrays x of n; y is one array.
extern "C" __global__ void __launch_bounds__(THREADS)
multiply(const cplx *x, const cplx *y, cplx *z, u64 n, u64 count) {
    begin_kernel();
    for EACH(i, n) {
        cplx b = y[i];
        for (u64 c = 0; c < count; c++) {
            cplx a = x[c * n + i];
            cplx p = {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};
            z[c * n + i] = p;
        }
    }
}

// z = z + sum over `count` arrays of conj(x) y.
extern "C" __global__ void __launch_bounds__(THREADS)
add_conj_products(const cplx *x, const cplx *y, cplx *z, u64 n, u64 count) {
    begin_kernel();
    for EACH(i, n) {
        cplx sum = z[i];
        for (u64 c = 0; c < count; c++) {
            cplx a = x[c * n + i], b = y[c * n + i];
            sum.x += a.x * b.x + a.y * b.y;
            sum.y += a.x * b.y - a.y * b.x;
        }
        z[i] = sum;
    }
}

// z = w x for each of `count` arrays x of n; w is one array. Writes nothing if the check has failed.
extern "C" __global__ void __launch_bounds__(THREADS)
apply_weights(const real *w, const cplx *x, cplx *z, u64 n, u64 count, input_check check) {
    begin_kernel();
    if (has_failed(check)) return;
    for EACH(i, n) {
        real a = w[i];
        for (u64 c = 0; c < count; c++) {
            cplx b = x[c * n + i];
            cplx p = {a * b.x, a * b.y};
            z[c * n + i] = p;
        }
    }
}

// y = y + a x.
extern "C" __global__ void __launch_bounds__(THREADS)
axpy(double a, const cplx *x, cplx *y, u64 n) {
    begin_kernel();
    for EACH(i, n) y[i] = multiply_add((real)a, x[i], y[i]);
}

// out = Re <x, y>.
extern "C" __global__ void __launch_bounds__(THREADS)
dot(const cplx *x, const cplx *y, u64 n, double *partial, u32 *ticket, double *out) {
    begin_kernel();
    double sum = 0;
    for EACH(i, n) {
        cplx a = x[i], b = y[i];
        sum += (double)a.x * b.x + (double)a.y * b.y;
    }
    grid_sum(sum, partial, ticket, out);
}

// a = rr / pq, x = x + a p, r = r - a q, out = <r, r>; a = 0 if pq is not positive.
extern "C" __global__ void __launch_bounds__(THREADS)
cg_step(const double *rr, const double *pq, const cplx *p, const cplx *q, cplx *x, cplx *r, u64 n, double *partial,
        u32 *ticket, double *out) {
    begin_kernel();
    real a = *pq > 0 ? (real)(*rr / *pq) : 0;
    double sum = 0;
    for EACH(i, n) {
        x[i] = multiply_add(a, p[i], x[i]);
        cplx rest = multiply_add(-a, q[i], r[i]);
        r[i] = rest;
        sum += (double)rest.x * rest.x + (double)rest.y * rest.y;
    }
    grid_sum(sum, partial, ticket, out);
}

// At most this many arrays are projected on at once, as on the host.
#define MOST_PROJECTIONS 4

// out[2 k], out[2 k + 1] = <v_k, x> for each of `count` arrays v_k of n. `partial` has 2 MOST_PROJECTIONS elements per
// block.
extern "C" __global__ void __launch_bounds__(THREADS)
projections(const cplx *v, const cplx *x, u64 n, u32 count, double *partial, u32 *ticket, double *out) {
    begin_kernel();
    __shared__ bool last;
    double sums[2 * MOST_PROJECTIONS] = {};
    for EACH(i, n) {
        cplx b = x[i];
#pragma unroll
        for (u32 k = 0; k < MOST_PROJECTIONS; k++) {
            if (k >= count) break;
            cplx a = v[k * n + i];
            sums[2 * k] += (double)a.x * b.x + (double)a.y * b.y;
            sums[2 * k + 1] += (double)a.x * b.y - (double)a.y * b.x;
        }
    }
#pragma unroll
    for (u32 j = 0; j < 2 * MOST_PROJECTIONS; j++) {
        if (j >= 2 * count) break;
        double sum = block_sum(sums[j]);
        if (threadIdx.x == 0) partial[j * gridDim.x + blockIdx.x] = sum;
        // Wait before the next sum overwrites this one.
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicAdd(ticket, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    for (u32 j = 0; j < 2 * count; j++) {
        double sum = 0;
        for (u32 b = threadIdx.x; b < gridDim.x; b += THREADS) sum += ((volatile double *)partial)[j * gridDim.x + b];
        sum = block_sum(sum);
        if (threadIdx.x == 0) out[j] = sum;
        __syncthreads();
    }
    if (threadIdx.x == 0) *ticket = 0;
}

// x = x - sum_k v_k products_k inverse_k, out = <x, x>. inverse_k is 1 / <v_k, v_k>, in a, b, c and d.
extern "C" __global__ void __launch_bounds__(THREADS)
subtract_projections(const cplx *v, cplx *x, u64 n, u32 count, const double *products, double a, double b, double c,
                     double d, double *partial, u32 *ticket, double *out) {
    begin_kernel();
    const double inverse[MOST_PROJECTIONS] = {a, b, c, d};
    cplx factor[MOST_PROJECTIONS];
#pragma unroll
    for (u32 k = 0; k < MOST_PROJECTIONS; k++) {
        factor[k].x = k < count ? (real)(products[2 * k] * inverse[k]) : 0;
        factor[k].y = k < count ? (real)(products[2 * k + 1] * inverse[k]) : 0;
    }
    double sum = 0;
    for EACH(i, n) {
        cplx rest = x[i];
#pragma unroll
        for (u32 k = 0; k < MOST_PROJECTIONS; k++) {
            if (k >= count) break;
            cplx w = v[k * n + i];
            rest.x -= factor[k].x * w.x - factor[k].y * w.y;
            rest.y -= factor[k].x * w.y + factor[k].y * w.x;
        }
        x[i] = rest;
        sum += (double)rest.x * rest.x + (double)rest.y * rest.y;
    }
    grid_sum(sum, partial, ticket, out);
}

// p = r + (rr_new / rr) p.
extern "C" __global__ void __launch_bounds__(THREADS)
cg_direction(const double *rr_new, const double *rr, const cplx *r, cplx *p, u64 n) {
    begin_kernel();
    real b = *rr > 0 ? (real)(*rr_new / *rr) : 0;
    for EACH(i, n) p[i] = multiply_add(b, p[i], r[i]);
}

// y = y + lambda D^H W D x: D takes differences along each axis of an image [nz][ny][nx], W weights them:
// [axes][voxels], or null for 1.
extern "C" __global__ void __launch_bounds__(THREADS)
add_differences(u64 nx, u64 ny, u64 nz, u32 axes, const real *weights, double lambda, const cplx *x, cplx *y) {
    begin_kernel();
    u64 voxels = nx * ny * nz;
    for EACH(i, voxels) {
        u64 n[3] = {nx, ny, nz}, stride = 1;
        cplx here = x[i], sum = {0, 0};
        #pragma unroll
        for (u32 axis = 0; axis < 3; axis++) {
            if (axis >= axes) break;
            u64 at = i / stride % n[axis];
            const real *w = weights ? weights + axis * voxels : 0;
            if (at > 0) {
                real a = w ? w[i - stride] : (real)1;
                cplx before = x[i - stride];
                sum.x += a * (here.x - before.x);
                sum.y += a * (here.y - before.y);
            }
            if (at + 1 < n[axis]) {
                real a = w ? w[i] : (real)1;
                cplx next = x[i + stride];
                sum.x += a * (here.x - next.x);
                sum.y += a * (here.y - next.y);
            }
            stride *= n[axis];
        }
        y[i] = multiply_add((real)lambda, sum, y[i]);
    }
}

// y = a A x + b y. When b is 0, y is not read: it may hold NaN.
extern "C" __global__ void __launch_bounds__(THREADS)
csr_multiply(double a, const u32 *rows, const u32 *columns, const cplx *values, const cplx *x, double b, cplx *y,
             u64 n) {
    begin_kernel();
    for EACH(i, n) {
        cplx sum = {0, 0};
        for (u64 e = rows[i]; e < rows[i + 1]; e++) {
            cplx v = values[e], u = x[columns[e]];
            sum.x += v.x * u.x - v.y * u.y;
            sum.y += v.x * u.y + v.y * u.x;
        }
        cplx old = {0, 0};
        if (b != 0) old = y[i];
        cplx result = {(real)a * sum.x + (real)b * old.x, (real)a * sum.y + (real)b * old.y};
        y[i] = result;
    }
}

// out(m) = w(m) exp(i 2 pi k(m).shift). A null w is 1. ky and kz may be null.
extern "C" __global__ void __launch_bounds__(THREADS)
ramp(const real *kx, const real *ky, const real *kz, double sx, double sy, double sz, const real *w, cplx *out, u64 n) {
    begin_kernel();
    for EACH(i, n) {
        double turns = sx * kx[i];
        if (ky) turns += sy * ky[i];
        if (kz) turns += sz * kz[i];
        double s, c;
        sincospi(2 * (turns - rint(turns)), &s, &c);
        double a = w ? (double)w[i] : 1;
        cplx value = {(real)(a * c), (real)(a * s)};
        out[i] = value;
    }
}

// A window of `len` points, symmetric about `middle`, and the table of its spectrum: |H(k)|^2 over the sum of h^2 at
// k = (i - 1) / steps for i below `points`. A null table stands for 1.
struct Spectrum {
    const double *h;
    double *table;
    double middle, steps, energy;
    u32 len, points;
};

// Fills the tables of the spectra of all axes; blockIdx.y is the axis. Eight lanes sum a value, a part of the window
// each.
extern "C" __global__ void __launch_bounds__(THREADS)
fill_spectra(Spectrum x, Spectrum y, Spectrum z) {
    begin_kernel();
    const Spectrum s = blockIdx.y == 0 ? x : blockIdx.y == 1 ? y : z;
    // Whole warps, since lanes exchange their sums.
    const u64 lanes = (8ull * s.points + 31) / 32 * 32;
    for EACH(i, lanes) {
        const double k = ((double)(i / 8) - 1) / s.steps;
        double sum = 0;
        for (u32 j = i % 8; j < s.len; j += 8) sum += s.h[j] * cospi(2 * k * (j - s.middle));
        for (int step = 4; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
        if (i % 8 == 0 && i / 8 < s.points) s.table[i / 8] = sum * sum / s.energy;
    }
}

// The spectrum at k, by a cubic through four neighbours.
static __device__ double spectrum_at(const Spectrum &s, double k) {
    double x = fabs(k) * s.steps;
    u32 i = min((u32)x, s.points - 4);
    double t = x - i;
    double a = s.table[i], b = s.table[i + 1], c = s.table[i + 2], d = s.table[i + 3];
    double to_a = t + 1, to_c = t - 1, to_d = t - 2;
    return t * to_c * (d * to_a - a * to_d) * (1.0 / 6.0) + to_a * to_d * (b * to_c - c * t) * 0.5;
}

// out[0] = sum of w / largest times the spectra at the coordinates, over samples with w > 0. out[1], all bits set
// before, receives the bits of the smallest squared length of (kx nx, ky ny, kz nz) of these samples.
extern "C" __global__ void __launch_bounds__(THREADS)
spectral_sum(const real *kx, const real *ky, const real *kz, const real *w, u64 n, double largest, Spectrum x, Spectrum y,
             Spectrum z, double nx, double ny, double nz, double *partial, u32 *ticket, double *out) {
    begin_kernel();
    const double far = __longlong_as_double(0x7ff0000000000000ll);
    double sum = 0, nearest = far;
    for EACH(i, n) {
        double weight = w[i] / largest;
        if (!(weight > 0)) continue;
        double a = kx[i], b = ky[i], c = kz ? (double)kz[i] : 0;
        weight *= spectrum_at(x, a);
        weight *= spectrum_at(y, b);
        if (kz) weight *= spectrum_at(z, c);
        sum += weight;
        nearest = fmin(nearest, a * nx * (a * nx) + b * ny * (b * ny) + c * nz * (c * nz));
    }
    // Bits of numbers that are not negative have the order of the numbers.
    if (nearest < far) atomicMin((u64 *)out + 1, (u64)__double_as_longlong(nearest));
    grid_sum(sum, partial, ticket, out);
}

// Writes to *first, which is in the host's memory, the index of the first number with a part that is NaN or too large;
// ~0 if all are smaller. `latest`, the complement of the index, and `ticket` are 0 before and after.
extern "C" __global__ void __launch_bounds__(THREADS)
first_beyond(const cplx *x, u64 n, real limit, u64 *latest, u32 *ticket, volatile u64 *first) {
    begin_kernel();
    u64 mine = 0;
    for EACH(i, n) {
        cplx a = x[i];
        if (!(a.x < limit && a.x > -limit && a.y < limit && a.y > -limit) && mine == 0) mine = ~i;
    }
    if (mine != 0) atomicMax(latest, mine);
    __threadfence();
    __syncthreads();
    if (threadIdx.x != 0 || atomicAdd(ticket, 1u) != gridDim.x - 1) return;
    __threadfence();
    const u64 found = atomicExch(latest, 0ull);
    *ticket = 0;
    *first = ~found;
}

// Makes the check of n numbers.
extern "C" __global__ void __launch_bounds__(THREADS)
check_input(const cplx *x, u64 n, input_check check) {
    begin_kernel();
    for EACH(i, n) check_number(check, x[i]);
    __syncthreads();
    if (threadIdx.x == 0) end_check(check, gridDim.x);
}

// Copies a number to the host's memory.
extern "C" __global__ void publish(const double *x, volatile double *to) {
    begin_kernel();
    *to = *x;
}

// Maps a number to bits with the same order.
static __device__ u64 ordered_bits(double x) {
    long long bits = __double_as_longlong(x);
    return bits < 0 ? ~(u64)bits : (u64)bits | 1ull << 63;
}

// Finds the smallest and the largest of n numbers from[i stride], and the first that is not within [low, high], such
// as NaN. The results are maxima of integers, and 0 at first: found[0] = ~ordered bits of the smallest, found[1] =
// ordered bits of the largest, found[2] = ~index. Unless `to` is null, to[i] = from[i stride]. If `wraps` is set,
// numbers below -0.5 become -0.5 there, and numbers from 0.5 on `top`. A block checks CHECKED numbers at once, a
// multiple of THREADS. Each thread reads all of its numbers before it writes any: the compiler cannot know that the
// arrays do not overlap.
extern "C" __global__ void __launch_bounds__(THREADS)
check_values(const real *from, u64 n, u64 stride, double low, double high, real *to, u32 wraps, double top,
             u64 *found) {
    begin_kernel();
    __shared__ u64 of_warp[3][THREADS / 32];
    real least = 1.0 / 0.0, largest = -1.0 / 0.0;
    u64 first = ~0ull;
    for (u64 start = (u64)blockIdx.x * CHECKED; start < n; start += (u64)gridDim.x * CHECKED) {
        real numbers[CHECKED / THREADS];
        #pragma unroll
        for (int j = 0; j < CHECKED / THREADS; j++) {
            u64 i = start + j * THREADS + threadIdx.x;
            numbers[j] = from[(i < n ? i : n - 1) * stride];
        }
        #pragma unroll
        for (int j = 0; j < CHECKED / THREADS; j++) {
            u64 i = start + j * THREADS + threadIdx.x;
            real x = numbers[j];
            if (x < least) least = x;
            if (x > largest) largest = x;
            if (i >= n) continue;
            if (!(x >= low && x <= high) && i < first) first = i;
            if (wraps && x < (real)-0.5) x = (real)-0.5;
            if (wraps && x >= (real)0.5) x = (real)top;
            if (to) to[i] = x;
        }
    }
    u64 best[3] = {~ordered_bits(least), ordered_bits(largest), ~first};
    #pragma unroll
    for (int j = 0; j < 3; j++) {
        for (int step = 16; step > 0; step /= 2) {
            u64 other = __shfl_xor_sync(0xffffffffu, best[j], step);
            if (other > best[j]) best[j] = other;
        }
        if (threadIdx.x % 32 == 0) of_warp[j][threadIdx.x / 32] = best[j];
    }
    __syncthreads();
    if (threadIdx.x >= 3) return;
    u64 most = 0;
    for (int w = 0; w < THREADS / 32; w++)
        if (of_warp[threadIdx.x][w] > most) most = of_warp[threadIdx.x][w];
    atomicMax(found + threadIdx.x, most);
}
