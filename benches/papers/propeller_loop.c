// Gridding of PROPELLER data on a CPU, after Yang et al. 2013: the loops of propeller.cu in C. Its head describes
// the arrays and the macros RADIUS, SERIES and CORNERS. Complex numbers are pairs of float.
#include <math.h>
#include <string.h>

static inline float window_value(float square)
{
    static const float series[] = {SERIES};
    const int terms = sizeof series / sizeof *series;
    float t = 1.0f - square * (1.0f / (RADIUS * RADIUS)), sum = series[terms - 1];
    for (int i = terms - 2; i >= 0; i--)
        sum = sum * t + series[i];
    return sum;
}

static inline int least(int a, int b) { return a < b ? a : b; }
static inline int most(int a, int b) { return a > b ? a : b; }
static inline int below(float a) { return (int)floorf(a); }

// Adds a sample to its cells. `atomic` is a constant after inlining.
static inline __attribute__((always_inline)) void spread(float x, float y, const float *d, float *grid, int size,
                                                         int atomic)
{
    const int half = size / 2;
    const float px = x * size, py = y * size;
    const int left = most((int)ceilf(px - RADIUS) + half, 0), right = least(below(px + RADIUS) + half, size - 1);
    const int top = most((int)ceilf(py - RADIUS) + half, 0), bottom = least(below(py + RADIUS) + half, size - 1);
    for (int q = top; q <= bottom; q++) {
        const float dy = (float)(q - half) - py;
        for (int p = left; p <= right; p++) {
            const float dx = (float)(p - half) - px, square = dx * dx + dy * dy;
            if (square < RADIUS * RADIUS) {
                const float weight = window_value(square);
                float *cell = grid + 2 * ((long)q * size + p);
                if (atomic) {
#pragma omp atomic
                    cell[0] += weight * d[0];
#pragma omp atomic
                    cell[1] += weight * d[1];
                } else {
                    cell[0] += weight * d[0];
                    cell[1] += weight * d[1];
                }
            }
        }
    }
}

// Scatter. Several threads add by atomic additions.
void propeller_scatter(const float *x, const float *y, const float *data, long count, float *grid, int size,
                       int threads)
{
    memset(grid, 0, 2 * sizeof(float) * size * size);
    if (threads == 1) {
        for (long m = 0; m < count; m++)
            spread(x[m], y[m], data + 2 * m, grid, size, 0);
        return;
    }
#pragma omp parallel for schedule(static) num_threads(threads)
    for (long m = 0; m < count; m++)
        spread(x[m], y[m], data + 2 * m, grid, size, 1);
}

// Gather: the reverse gridding algorithm. Threads share the rows of the grid.
void propeller_gather(const float *x, const float *y, const float *data, int samples, int echoes, int blades,
                      int matrix, const float *turns, float *grid, int size, int threads)
{
    const float across = (float)samples / size, down = (float)matrix / size;
    const float half_width = 0.5f * size, half_blade = 0.5f * echoes / down;
#pragma omp parallel for schedule(dynamic, 8) num_threads(threads)
    for (int q = 0; q < size; q++) {
        for (int p = 0; p < size; p++) {
            const float cx = (float)(p - size / 2), cy = (float)(q - size / 2);
            float re = 0.0f, im = 0.0f;
            for (int b = 0; b < blades; b++) {
                const float c = turns[2 * b], s = turns[2 * b + 1];
                const float bx = cx * c + cy * s, by = cy * c - cx * s;
                const float reach = CORNERS ? RADIUS * (fabsf(c) + fabsf(s)) : RADIUS;
                const int first = most(below((bx - reach + half_width) * across), 0);
                const int last = least(below((bx + reach + half_width) * across) + 1, samples - 1);
                const int upper = most(below((by - reach + half_blade) * down), 0);
                const int lower = least(below((by + reach + half_blade) * down) + 1, echoes - 1);
                for (int v = upper; v <= lower; v++) {
                    const long line = ((long)b * echoes + v) * samples;
                    for (long m = line + first; m <= line + last; m++) {
                        const float dx = cx - x[m] * size, dy = cy - y[m] * size, square = dx * dx + dy * dy;
                        if (square < RADIUS * RADIUS) {
                            const float weight = window_value(square);
                            re += weight * data[2 * m];
                            im += weight * data[2 * m + 1];
                        }
                    }
                }
            }
            grid[2 * ((long)q * size + p)] = re;
            grid[2 * ((long)q * size + p) + 1] = im;
        }
    }
}
