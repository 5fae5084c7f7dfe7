// Gridding of PROPELLER data by scatter and by gather, after Yang et al. 2013 (Magn. Reson. Imaging 31). The kernels
// are for the tables of docs/papers only; the library's own gridding is kernels/spreading.cu.
//
// - Samples: [lines, samples]. The scan has blades * echoes lines. Positions are in units of the width of k-space.
// - Grid: [size, size] cells, with k = 0 in cell size / 2. Distances are in cells.
//
// Windows are cut off at the edges of the grid.
//
// Macros from the host:
//   RADIUS   radius of the window in cells
//   SERIES   coefficients of the window, the constant first
//   CORNERS  1 if the gather rotates the square around the disc of the window, as the paper does, 0 if it takes the
//            square around the rotated disc, which is the same disc

// Kaiser-Bessel window at the square of the Euclidean distance, which must be less than RADIUS^2. I0(beta sqrt(t)) /
// I0(beta) is a power series in t, so the window needs no square root.
__device__ __forceinline__ float window_value(float square)
{
    // After unrolling, the coefficients are constants in the instructions.
    const float series[] = {SERIES};
    const int terms = sizeof series / sizeof *series;
    float t = fmaf(square, -1.0f / (RADIUS * RADIUS), 1.0f), sum = series[terms - 1];
#pragma unroll
    for (int i = terms - 2; i >= 0; i--)
        sum = fmaf(sum, t, series[i]);
    return sum;
}

// Calls add(cell, weight) for all cells within RADIUS of a position.
template <class Add> __device__ __forceinline__ void spread(float x, float y, int size, Add add)
{
    // The centre is subtracted from the cells, because adding it to the position would round the position.
    int half = size / 2;
    float px = x * size, py = y * size;
    int left = max((int)ceilf(px - RADIUS) + half, 0), right = min((int)floorf(px + RADIUS) + half, size - 1);
    int top = max((int)ceilf(py - RADIUS) + half, 0), bottom = min((int)floorf(py + RADIUS) + half, size - 1);
    for (int q = top; q <= bottom; q++) {
        float dy = (float)(q - half) - py;
        for (int p = left; p <= right; p++) {
            float dx = (float)(p - half) - px, square = dx * dx + dy * dy;
            if (square < RADIUS * RADIUS)
                add(q * size + p, window_value(square));
        }
    }
}

// One thread per sample. Loads, additions and stores of several threads conflict: sums are lost. This is the paper's
// first method, whose results are wrong.
extern "C" __global__ void scatter_conflicting(const float *x, const float *y, const cplx *data, int samples, int lines,
                                               cplx *grid, int size)
{
    int u = blockIdx.x * blockDim.x + threadIdx.x, line = blockIdx.y * blockDim.y + threadIdx.y;
    if (u >= samples || line >= lines)
        return;
    int m = line * samples + u;
    cplx d = data[m];
    spread(x[m], y[m], size, [&](int cell, float weight) {
        cplx old = grid[cell];
        grid[cell] = {fmaf(weight, d.x, old.x), fmaf(weight, d.y, old.y)};
    });
}

// One thread per sample, with atomic additions. No sum is lost, but their order changes from run to run.
extern "C" __global__ void scatter_atomic(const float *x, const float *y, const cplx *data, int samples, int lines,
                                          cplx *grid, int size)
{
    int u = blockIdx.x * blockDim.x + threadIdx.x, line = blockIdx.y * blockDim.y + threadIdx.y;
    if (u >= samples || line >= lines)
        return;
    int m = line * samples + u;
    cplx d = data[m];
    spread(x[m], y[m], size, [&](int cell, float weight) {
        atomicAdd(&grid[cell].x, weight * d.x);
        atomicAdd(&grid[cell].y, weight * d.y);
    });
}

// One thread per cell: the reverse gridding algorithm. For each blade the window is rotated back, and the cell collects
// the samples of the blade in this window, always in the same order. turns: cosine and sine of the angle of each blade.
// A blade has `echoes` lines, 1 / matrix apart. All blades have their middle at k = 0.
extern "C" __global__ void gather(const float *x, const float *y, const cplx *data, int samples, int echoes, int blades,
                                  int matrix, const float2 *turns, cplx *grid, int size)
{
    int p = blockIdx.x * blockDim.x + threadIdx.x, q = blockIdx.y * blockDim.y + threadIdx.y;
    if (p >= size || q >= size)
        return;
    float cx = (float)(p - size / 2), cy = (float)(q - size / 2);
    // Samples and rows per cell.
    float across = (float)samples / size, down = (float)matrix / size;
    float half_width = 0.5f * size, half_blade = 0.5f * echoes / down;
    cplx sum = {0.0f, 0.0f};
    for (int b = 0; b < blades; b++) {
        float2 turn = turns[b];
        float bx = cx * turn.x + cy * turn.y, by = cy * turn.x - cx * turn.y;
#if CORNERS
        // The largest of the four corners' coordinates, relative to the centre.
        float reach = RADIUS * (fabsf(turn.x) + fabsf(turn.y));
#else
        float reach = RADIUS;
#endif
        // Rounding down includes the sample below the window. So the window may be moved by a rounding error.
        int first = max((int)floorf((bx - reach + half_width) * across), 0);
        int last = min((int)floorf((bx + reach + half_width) * across) + 1, samples - 1);
        int upper = max((int)floorf((by - reach + half_blade) * down), 0);
        int lower = min((int)floorf((by + reach + half_blade) * down) + 1, echoes - 1);
        for (int v = upper; v <= lower; v++) {
            int line = (b * echoes + v) * samples;
            for (int u = first; u <= last; u++) {
                float dx = cx - x[line + u] * size, dy = cy - y[line + u] * size, square = dx * dx + dy * dy;
                if (square < RADIUS * RADIUS) {
                    float weight = window_value(square);
                    cplx d = data[line + u];
                    sum.x = fmaf(weight, d.x, sum.x);
                    sum.y = fmaf(weight, d.y, sum.y);
                }
            }
        }
    }
    grid[q * size + p] = sum;
}
