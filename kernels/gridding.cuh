// Windows, samples and tiles of spreading.cu and interpolation.cu; the host puts this file in front of both.
//
// Axes are x, y, z with x fastest. A 2D grid has x and z; its y is one cell, where the window is one tap of value 1.
//
// Macros from the plan:
//   REAL, DOUBLE    precision, as in common.cuh
//   DIM             2 or 3
//   W, DEGREE       number of taps of the window, 2 to 16, and degree of their polynomials
// The other macros of both files may be changed for speed, together with the host's values.

#define ALL 0xffffffffu
#define HALF ((W + 1) / 2)

// A grid cut into tiles; the last tile of an axis may be smaller.
struct layout {
    u32 size[3], tile[3], tiles[3];
};

// Coefficients of the first half of the taps' polynomials, lowest power first. The second half mirrors them.
struct window_polynomials {
    real of[DEGREE + 1][HALF];
};

// The first cell of a tile.
struct corner {
    u32 x, y, z;
};

__device__ __forceinline__ corner corner_of(const layout &grid, u32 tile)
{
    const u32 x = tile % grid.tiles[0], yz = tile / grid.tiles[0];
    return {x * grid.tile[0], yz % grid.tiles[1] * grid.tile[1], yz / grid.tiles[1] * grid.tile[2]};
}

// The taps at t. The window is even: tap W - 1 - j at t is tap j at -t.
__device__ __forceinline__ void taps_at(const window_polynomials &p, real t, real *taps)
{
    const real s = t * t;
    #pragma unroll
    for (int j = 0; j < HALF; j++) {
        real even = p.of[DEGREE & ~1][j];
        #pragma unroll
        for (int k = (DEGREE & ~1) - 2; k >= 0; k -= 2) even = fma(even, s, p.of[k][j]);
        if (2 * j + 1 == W) {
            taps[j] = even;
            continue;
        }
        real odd = p.of[(DEGREE - 1) | 1][j];
        #pragma unroll
        for (int k = ((DEGREE - 1) | 1) - 2; k >= 1; k -= 2) odd = fma(odd, s, p.of[k][j]);
        taps[j] = fma(odd, t, even);
        taps[W - 1 - j] = fma(-odd, t, even);
    }
}
