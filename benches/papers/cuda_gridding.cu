// The kernels of docs/papers/cuda_gridding.md: convolution of samples onto a grid of SIZE x SIZE cells.
//
// Macros from the script:
//   SIZE      cells of the grid along each axis, a multiple of SECTOR and of 16
//   SECTOR    cells of a sector along each axis
//   WIDTH     cells of the window along each axis: 8 or 16
//   FALLOFF   1 / (2 s^2) of the Gaussian exp(-d^2 / (2 s^2)), d in cells
//   LOOKUP    computation of the window:
//             0  by expf of the distance
//             1  by the nearest entry of a table indexed by the distance
//             2  by linear interpolation in that table
//             3  by polynomials along each axis (`coarse_output` only)
//   PER_CELL  entries of the table per cell of distance, a power of two
//   TABLE     number of entries of the table
//   DEGREE    degree of the polynomials
//
// x is fastest in memory. The window of a sample at x covers the cells from ceil(x - WIDTH / 2) on. Cells beyond the
// edge of the grid are left out, as in the listing of the paper. All kernels but `fine_output` add to a grid of zeros.
// Positions are multiples of 2^-15, so differences between them and cells are exact in single precision.

#define CELLS (WIDTH * WIDTH)
#define HALF (WIDTH / 2)
#define PADDED (SECTOR + WIDTH)
#define BATCH 32
#define SECTORS (SIZE / SECTOR)

// A sample without alignment: four loads of 4 bytes.
struct packed_sample {
    float x, y, re, im;
};

// An aligned sample: one load of 16 bytes.
struct __align__(16) aligned_sample {
    float x, y, re, im;
};

extern "C" {
__constant__ float window_table[TABLE];
// Coefficients of each tap in t in [-1, 1], lowest power first.
__constant__ float window_polynomials[(DEGREE + 1) * WIDTH];
}

// Returns the first cell of a window.
__device__ __forceinline__ int first_cell(float position)
{
    return (int)ceilf(position - HALF);
}

// Returns the window at (dx, dy) cells from the sample. Roundings are explicit, so that the script can repeat them and
// find the same entry of the table.
__device__ __forceinline__ float window(float dx, float dy)
{
#if LOOKUP == 0
    const float d = sqrtf(dx * dx + dy * dy);
    return expf(-(float)(FALLOFF) * d * d);
#else
    const float d = __fsqrt_rn(__fadd_rn(__fmul_rn(dx, dx), __fmul_rn(dy, dy)));
    const float place = __fmul_rn(d, (float)(PER_CELL));
#if LOOKUP == 1
    return window_table[(int)__fadd_rn(place, 0.5f)];
#else
    const int entry = (int)place;
    const float lower = window_table[entry];
    return lower + (place - (float)entry) * (window_table[entry + 1] - lower);
#endif
#endif
}

__device__ __forceinline__ bool in_grid(int x, int y)
{
    return (u32)x < SIZE && (u32)y < SIZE;
}

// Adds one cell of a sample's window to the two arrays of the grid.
__device__ __forceinline__ void add_cell(const aligned_sample &s, float *re, float *im)
{
    const int x = first_cell(s.x) + (int)threadIdx.x % WIDTH, y = first_cell(s.y) + (int)threadIdx.x / WIDTH;
    if (!in_grid(x, y)) return;
    const float w = window((float)x - s.x, (float)y - s.y);
    atomicAdd(re + y * SIZE + x, w * s.re);
    atomicAdd(im + y * SIZE + x, w * s.im);
}

// Fine by input, naive: a block for each sample and a thread for each cell of its window. Each thread reads the sample
// from global memory. The grid has real and imaginary parts in turn.
extern "C" __global__ void __launch_bounds__(CELLS)
fine_input_naive(const packed_sample *samples, float *grid)
{
    const packed_sample *s = samples + blockIdx.x;
    const int x = first_cell(s->x) + (int)threadIdx.x % WIDTH, y = first_cell(s->y) + (int)threadIdx.x / WIDTH;
    if (!in_grid(x, y)) return;
    const float w = window((float)x - s->x, (float)y - s->y);
    atomicAdd(grid + 2 * (y * SIZE + x), w * s->re);
    atomicAdd(grid + 2 * (y * SIZE + x) + 1, w * s->im);
}

// The same with the sample in shared memory: it is read once from global memory.
extern "C" __global__ void __launch_bounds__(CELLS)
fine_input_cached(const float *samples, float *grid)
{
    __shared__ float s[4];
    if (threadIdx.x < 4) s[threadIdx.x] = samples[4 * blockIdx.x + threadIdx.x];
    __syncthreads();
    const int x = first_cell(s[0]) + (int)threadIdx.x % WIDTH, y = first_cell(s[1]) + (int)threadIdx.x / WIDTH;
    if (!in_grid(x, y)) return;
    const float w = window((float)x - s[0], (float)y - s[1]);
    atomicAdd(grid + 2 * (y * SIZE + x), w * s[2]);
    atomicAdd(grid + 2 * (y * SIZE + x) + 1, w * s[3]);
}

// The same with aligned samples, and the real and imaginary parts of the grid in two arrays.
extern "C" __global__ void __launch_bounds__(CELLS)
fine_input_aligned(const aligned_sample *samples, float *re, float *im)
{
    __shared__ aligned_sample s;
    if (threadIdx.x == 0) s = samples[blockIdx.x];
    __syncthreads();
    add_cell(s, re, im);
}

// Coarse by input: a block for `chunk` consecutive samples, at most BATCH. Its windows may lie anywhere in the grid, so
// sums go to global memory.
extern "C" __global__ void __launch_bounds__(CELLS)
coarse_input(const aligned_sample *samples, int n, int chunk, float *re, float *im)
{
    __shared__ aligned_sample s[BATCH];
    const int first = (int)blockIdx.x * chunk, count = min(chunk, n - first);
    if ((int)threadIdx.x < count) s[threadIdx.x] = samples[first + (int)threadIdx.x];
    __syncthreads();
    for (int i = 0; i < count; i++) add_cell(s[i], re, im);
}

// Fine by output: a thread for each cell, which searches all samples. A block has 16 x 16 cells.
extern "C" __global__ void __launch_bounds__(256)
fine_output(const aligned_sample *samples, int n, float *re, float *im)
{
    __shared__ aligned_sample s[256];
    const int x = (int)blockIdx.x % (SIZE / 16) * 16 + (int)threadIdx.x % 16;
    const int y = (int)blockIdx.x / (SIZE / 16) * 16 + (int)threadIdx.x / 16;
    float sum_re = 0, sum_im = 0;
    for (int first = 0; first < n; first += 256) {
        __syncthreads();
        if (first + (int)threadIdx.x < n) s[threadIdx.x] = samples[first + (int)threadIdx.x];
        __syncthreads();
        const int count = min(256, n - first);
        for (int i = 0; i < count; i++) {
            const float dx = (float)x - s[i].x, dy = (float)y - s[i].y;
            if (dx >= -HALF && dx < HALF && dy >= -HALF && dy < HALF) {
                const float w = window(dx, dy);
                sum_re += w * s[i].re;
                sum_im += w * s[i].im;
            }
        }
    }
    re[y * SIZE + x] = sum_re;
    im[y * SIZE + x] = sum_im;
}

// Coarse by output: a block for each sector, whose samples are starts[sector] to starts[sector + 1]. The sector and a
// margin of half a window are in shared memory, real and imaginary parts apart. The block takes one sample after the
// other, with a thread for each cell of the window. Sectors with margins overlap, so they are added to the grid
// atomically.
//
// A row of the sector is WIDTH floats longer than a multiple of 32, so that the cells of a warp are in 32 banks.
extern "C" __global__ void __launch_bounds__(CELLS)
coarse_output(const aligned_sample *samples, const int *starts, float *re, float *im)
{
    extern __shared__ float sums[];
    __shared__ aligned_sample s[BATCH];
    float *sums_im = sums + PADDED * PADDED;
    const int thread = (int)threadIdx.x, column = thread % WIDTH, row = thread / WIDTH;
    const int left = (int)blockIdx.x % SECTORS * SECTOR - HALF, top = (int)blockIdx.x / SECTORS * SECTOR - HALF;
#if LOOKUP == 3
    __shared__ float taps[BATCH][2][WIDTH];
    // A thread computes the same tap of different samples, and keeps its coefficients in registers.
    float coefficients[DEGREE + 1];
#pragma unroll
    for (int i = 0; i <= DEGREE; i++) coefficients[i] = window_polynomials[i * WIDTH + column];
#endif
    for (int cell = thread; cell < 2 * PADDED * PADDED; cell += CELLS) sums[cell] = 0;
    const int end = starts[blockIdx.x + 1];
    for (int first = starts[blockIdx.x]; first < end; first += BATCH) {
        const int count = min(BATCH, end - first);
        if (thread < count) s[thread] = samples[first + thread];
        __syncthreads();
#if LOOKUP == 3
        // Rows 2 i and 2 i + 1 of the block compute the taps of sample i along x and y.
        for (int i = row / 2; i < count; i += WIDTH / 2) {
            const float position = row % 2 ? s[i].y : s[i].x;
            const float t = 2.0f * (ceilf(position - HALF) - (position - HALF)) - 1.0f;
            float tap = coefficients[DEGREE];
#pragma unroll
            for (int power = DEGREE - 1; power >= 0; power--) tap = fmaf(tap, t, coefficients[power]);
            taps[i][row % 2][column] = tap;
        }
        __syncthreads();
#endif
        for (int i = 0; i < count; i++) {
            const int x = first_cell(s[i].x) + column, y = first_cell(s[i].y) + row;
            const int cell = (y - top) * PADDED + x - left;
#if LOOKUP == 3
            const float w = taps[i][0][column] * taps[i][1][row];
#else
            const float w = window((float)x - s[i].x, (float)y - s[i].y);
#endif
            sums[cell] += w * s[i].re;
            sums_im[cell] += w * s[i].im;
            // The windows of the next sample and of this one may overlap.
            __syncthreads();
        }
    }
    __syncthreads();
    for (int cell = thread; cell < PADDED * PADDED; cell += CELLS) {
        const int x = left + cell % PADDED, y = top + cell / PADDED;
        if (!in_grid(x, y)) continue;
        if (sums[cell] != 0) atomicAdd(re + y * SIZE + x, sums[cell]);
        if (sums_im[cell] != 0) atomicAdd(im + y * SIZE + x, sums_im[cell]);
    }
}
