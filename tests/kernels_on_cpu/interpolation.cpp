// Interpolates random samples by a kernel of interpolation.cu, and compares them with sums in double precision.
#include "device.hpp"
#include "kernels.h"

static const u32 TILE[3] = {16, DIM == 3 ? TILE_Y : 1, DIM == 3 ? TILE_Z : TILE_Y};
#define TAPS_Y (DIM == 3 ? W : 1)

#if FIXED_POINT
static fraction random_offset() { return (fraction)generator(); }
#else
static fraction random_offset() { return (fraction)random_between(-1, 1); }
#endif

// The sum over the window of a point, and in `scale` that of the absolute weights.
static void sum_expected(const window_polynomials &polynomials, const layout &grid, const cplx *cells, const point &p,
                         u32 plane, double sum[2], double &scale) {
    real x[W], y[W], z[W];
    taps_at(polynomials, variable_of(p.t[0]), x);
    taps_at(polynomials, variable_of(p.t[1]), y);
    taps_at(polynomials, variable_of(p.t[2]), z);
    if (DIM == 2) y[0] = 1;
    sum[0] = sum[1] = scale = 0;
    for (u32 k = 0; k < W; k++)
        for (u32 j = 0; j < TAPS_Y; j++)
            for (u32 i = 0; i < W; i++) {
                const u32 at[3] = {((p.xy & 0xffff) + i) % grid.size[0], ((p.xy >> 16) + j) % grid.size[1],
                                   (plane + k) % grid.size[2]};
                const cplx &cell = cells[((u64)at[2] * grid.size[1] + at[1]) * grid.size[0] + at[0]];
                const double weight = (double)x[i] * y[j] * z[k];
                sum[0] += weight * cell.x;
                sum[1] += weight * cell.y;
                scale += std::fabs(weight);
            }
}

// The samples of a block are in one tile if it is copied, otherwise anywhere. `kind`: windows start anywhere there, in
// one cell, or in one cell and its neighbours along x, or along z.
static bool interpolates(u32 count, int kind) {
    layout grid;
    for (int axis = 0; axis < 3; axis++) {
        const u32 least = DIM == 2 && axis == 1 ? 1 : 2 * W;
        grid.size[axis] = DIM == 2 && axis == 1 ? 1 : least + random_below(DIM == 2 ? 60 : 30);
        grid.tile[axis] = TILE[axis];
        grid.tiles[axis] = (grid.size[axis] + TILE[axis] - 1) / TILE[axis];
    }
    const u32 tile = random_below(grid.tiles[0] * grid.tiles[1] * grid.tiles[2]);
    const corner corner = corner_of(grid, tile);
    u32 first[3] = {corner.x, corner.y, corner.z}, extent[3], fixed[3];
    for (int axis = 0; axis < 3; axis++) {
        if (!STAGED) first[axis] = 0;
        extent[axis] = STAGED ? std::min(TILE[axis], grid.size[axis] - first[axis]) : grid.size[axis];
        fixed[axis] = random_below(extent[axis]);
    }
    window_polynomials polynomials;
    for (auto &row : polynomials.of)
        for (real &coefficient : row) coefficient = (real)random_between(-0.3, 0.3);
    std::vector<cplx> cells((size_t)grid.size[0] * grid.size[1] * grid.size[2]), values(count);
    for (cplx &cell : cells) cell = {(real)random_between(-1, 1), (real)random_between(-1, 1)};
    for (cplx &value : values) value.x = value.y = NAN;

    std::vector<point> points(count);
    std::vector<u16> planes(count);
    std::vector<u32> order(count);
    for (u32 i = 0; i < count; i++) {
        u32 start[3];
        for (int axis = 0; axis < 3; axis++) {
            const bool varies = kind == 0 || (kind == 2 && axis == 0) || (kind == 3 && axis == 2);
            start[axis] = first[axis] + (varies ? random_below(extent[axis]) : fixed[axis]);
            points[i].t[axis] = random_offset();
        }
        points[i].xy = start[0] | start[1] << 16;
        planes[i] = (u16)start[2];
        order[i] = count - 1 - i;
    }
    const bool has_order = random_below(2);
    const segment part = {0, count, tile, 0, 0};
    const u32 schedule = 0;
    interpolation all = {};
    all.grid = grid;
    all.points = points.data();
    all.planes = planes.data();
    all.order = has_order ? order.data() : nullptr;
    all.segments = &part;
    all.schedule = &schedule;
    all.cells = cells.data();
    all.values = values.data();
    all.n = count;
    all.arrays = 1;
    device::launch(1, 32 * GATHER_WARPS, [&] { interpolate(polynomials, all); });

    for (u32 i = 0; i < count; i++) {
        double sum[2], scale;
        sum_expected(polynomials, grid, cells.data(), points[i], planes[i], sum, scale);
        const cplx &found = values[has_order ? order[i] : i];
        const double error = std::max(std::fabs(found.x - sum[0]), std::fabs(found.y - sum[1]));
        if (!(error <= (DOUBLE ? 1e-13 : 1e-5) * scale)) return false;
    }
    return true;
}

int main(int, char **arguments) {
    generator.seed(std::strtoull(arguments[1], nullptr, 10));
    for (u32 count : {1, 7, 31, 33, 129, 300, 511, 512})
        for (int kind = 0; kind < 4; kind++)
            if (!interpolates(count, kind)) {
                std::printf("%u samples of kind %d\n", count, kind);
                return 1;
            }
    return 0;
}
