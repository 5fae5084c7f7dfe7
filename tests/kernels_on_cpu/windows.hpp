// Random windows of samples on a grid, after the kernels of spreading.cu or interpolation.cu.
#pragma once

// The taps of a window along y.
#define TAPS_Y (DIM == 3 ? W : 1)

inline fraction random_offset() {
    return FIXED_POINT ? (fraction)generator() : (fraction)random_between(-1, 1);
}

inline window_polynomials random_polynomials() {
    window_polynomials polynomials;
    for (auto &row : polynomials.of)
        for (real &coefficient : row) coefficient = (real)random_between(-0.3, 0.3);
    return polynomials;
}

// Calls `visit` with the number of each cell of a point's window, and the window's value there.
template <class F>
void for_window(const window_polynomials &polynomials, const layout &grid, const point &p, u32 plane, F visit) {
    real x[W], y[W], z[W];
    taps_at(polynomials, variable_of(p.t[0]), x);
    taps_at(polynomials, variable_of(p.t[1]), y);
    taps_at(polynomials, variable_of(p.t[2]), z);
    if (DIM == 2) y[0] = 1;
    for (u32 k = 0; k < W; k++)
        for (u32 j = 0; j < TAPS_Y; j++)
            for (u32 i = 0; i < W; i++) {
                const u32 at[3] = {((p.xy & 0xffff) + i) % grid.size[0], ((p.xy >> 16) + j) % grid.size[1],
                                   (plane + k) % grid.size[2]};
                visit(((size_t)at[2] * grid.size[1] + at[1]) * grid.size[0] + at[0], (double)x[i] * y[j] * z[k]);
            }
}
