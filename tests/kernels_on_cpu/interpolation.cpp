// Interpolates random samples by a kernel of interpolation.cu, and compares them with sums in double precision.
#include "device.hpp"
#include "kernels.h"
#include "windows.hpp"

static const u32 TILE[3] = {16, DIM == 3 ? TILE_Y : 1, DIM == 3 ? TILE_Z : TILE_Y};

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
    const window_polynomials polynomials = random_polynomials();
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
        double re = 0, im = 0, scale = 0;
        for_window(polynomials, grid, points[i], planes[i], [&](size_t cell, double weight) {
            re += weight * cells[cell].x;
            im += weight * cells[cell].y;
            scale += std::fabs(weight);
        });
        const cplx &found = values[has_order ? order[i] : i];
        const double error = std::max(std::fabs(found.x - re), std::fabs(found.y - im));
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
