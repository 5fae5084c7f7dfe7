// Structures that samples.cu and sort.cu write, and spreading.cu and interpolation.cu read; the host puts this file in
// front of all four.

// A sample: its offset in the first cell of its window, as the variable of the taps' polynomials, and the x and y of
// that cell. Unused bytes are written too: memory that is written in part must be read first.
struct __align__(4 * sizeof(real)) point {
    real t[3];
    u32 xy;
#if DOUBLE
    u32 unused;
#endif
};

// A part of a tile's list. One of several segments of a tile writes its own planes: `planes` from `plane` on.
struct segment {
    u64 first;
    u32 count, tile;
    int plane;
    u32 planes;
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
