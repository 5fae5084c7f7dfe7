// The convolution of docs/papers/cuda_gridding.md on a CPU, in single precision.
//
// Macros from the script: SIZE, WIDTH, FALLOFF and PER_CELL as in cuda_gridding.cu; SEPARABLE 1: one exponential for
// each cell along each axis; 0: linear interpolation in a table indexed by the distance.
//
// A thread owns a band of rows and looks at all samples, so no two threads write to the same cell.
#include <math.h>
#include <string.h>

static int greater(int a, int b) { return a > b ? a : b; }
static int smaller(int a, int b) { return a < b ? a : b; }

static void grid_rows(long n, const float *x, const float *y, const float *re, const float *im, const float *table,
                      int from, int to, float *grid)
{
    memset(grid + 2L * SIZE * from, 0, sizeof(float) * 2 * SIZE * (to - from));
    for (long m = 0; m < n; m++) {
        const int top = (int)ceilf(y[m] - WIDTH / 2), left = (int)ceilf(x[m] - WIDTH / 2);
        const int first = greater(top, from), last = smaller(top + WIDTH, to);
        if (first >= last) continue;
        const int start = greater(left, 0), end = smaller(left + WIDTH, SIZE);
        float along_x[WIDTH];
#if SEPARABLE
        for (int j = 0; j < WIDTH; j++) {
            const float dx = left + j - x[m];
            along_x[j] = expf(-(float)(FALLOFF) * dx * dx);
        }
#endif
        for (int row = first; row < last; row++) {
            const float dy = row - y[m];
            float *cells = grid + 2L * SIZE * row;
#if SEPARABLE
            const float along_y = expf(-(float)(FALLOFF) * dy * dy);
            const float row_re = along_y * re[m], row_im = along_y * im[m];
            for (int column = start; column < end; column++) {
                cells[2 * column] += along_x[column - left] * row_re;
                cells[2 * column + 1] += along_x[column - left] * row_im;
            }
#else
            for (int j = 0; j < WIDTH; j++) {
                const float dx = left + j - x[m], place = sqrtf(dx * dx + dy * dy) * (float)(PER_CELL);
                const int entry = (int)place;
                along_x[j] = table[entry] + (place - entry) * (table[entry + 1] - table[entry]);
            }
            for (int column = start; column < end; column++) {
                cells[2 * column] += along_x[column - left] * re[m];
                cells[2 * column + 1] += along_x[column - left] * im[m];
            }
#endif
        }
    }
}

// Convolves n samples to `grid`, complex [SIZE][SIZE].
void grid_samples(long n, int threads, const float *x, const float *y, const float *re, const float *im,
                  const float *table, float *grid)
{
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int part = 0; part < threads; part++)
        grid_rows(n, x, y, re, im, table, (int)((long)SIZE * part / threads), (int)((long)SIZE * (part + 1) / threads),
                  grid);
}
