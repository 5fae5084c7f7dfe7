// Structures that samples.cu and sort.cu write, and spreading.cu and interpolation.cu read; the host puts this file in
// front of all four.

// The offset of a sample in the first cell of its window. If FIXED_POINT is 1, double precision has it in units of
// 2^-32 of a cell, otherwise it is the variable of the taps' polynomials.
#ifndef FIXED_POINT
#define FIXED_POINT 0
#endif
#if FIXED_POINT
typedef u32 fraction;
#else
typedef real fraction;
#endif

// The offset from its value in units of 2^-32 of a cell.
__device__ __forceinline__ fraction fraction_of(u32 offset)
{
#if FIXED_POINT
    return offset;
#else
    return (int)(offset - 0x80000000u) * (real)(1.0 / 2147483648.0);
#endif
}

// The variable of the taps' polynomials, -1 to 1.
__device__ __forceinline__ real variable_of(fraction t)
{
#if FIXED_POINT
    return fma((real)t, 1.0 / 2147483648.0, -1.0);
#else
    return t;
#endif
}

// A sample: its offset on each axis, and the x and y of the first cell of its window. Unused bytes are written too:
// memory that is written in part must be read first.
struct __align__(4 * sizeof(fraction)) point {
    fraction t[3];
    u32 xy;
#if DOUBLE && !FIXED_POINT
    u32 unused;
#endif
};

// A part of a tile's list. If the tile has several, the windows of this one touch planes of the tile from `plane` to
// before `end`, and no other part touches those from `own` to before `own_end`. Otherwise all four are 0.
struct segment {
    u64 first;
    u32 count, tile;
    u16 plane, end, own, own_end;
};
// A tile with several segments, and the first of them.
struct cut_tile {
    u64 segment;
    u32 segments, tile;
};
// A sample of a tile of interpolation in 2D: its offset in the first cell of its window, as in `point`, and the x and z
// of that cell (z in the upper 16 bits). `place` is that of its value.
struct __align__(4 * sizeof(real)) tile_sample {
    real t[2];
    u32 xz, place;
};
