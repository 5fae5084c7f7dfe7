// Spreads random samples by the kernels of spreading.cu, and compares the grid with sums in double precision.
#include "device.hpp"
#include "kernels.h"
#include "windows.hpp"

static layout random_grid() {
    layout grid;
    const u32 planes = 16 + random_below(2) * random_below(60);
    const u32 tile[3] = {DIM == 3 ? 8u : 32u, DIM == 3 ? 4u : 1u, planes};
    for (int axis = 0; axis < 3; axis++) {
        grid.size[axis] = DIM == 2 && axis == 1 ? 1 : 2 * W + random_below(axis < 2 && DIM == 3 ? 12 : 3 * planes);
        grid.tile[axis] = std::min(tile[axis], (grid.size[axis] + 1) / 2);
        grid.tiles[axis] = (grid.size[axis] + grid.tile[axis] - 1) / grid.tile[axis];
    }
    return grid;
}

// Added to the weights that a bound is relative to: numbers of half precision have few exponents, which matters for the
// smallest products of taps.
#ifdef TENSOR
#define LEAST_WEIGHT 1e-6
#else
#define LEAST_WEIGHT 0
#endif

// Samples on a grid; `kind`: their windows start anywhere, or most of them in one cell. Their values are at most
// `magnitude`.
struct samples {
    std::vector<point> points;
    std::vector<u16> planes;
    std::vector<u32> order;
    std::vector<cplx> values;

    samples(const layout &grid, u32 n, int kind, double magnitude) : points(n), planes(n), order(n), values(n) {
        const u32 place[3] = {random_below(grid.size[0]), random_below(grid.size[1]), random_below(grid.size[2])};
        for (u32 i = 0; i < n; i++) {
            u32 start[3];
            const bool is_there = kind == 1 && i % 8 != 0;
            for (int axis = 0; axis < 3; axis++) {
                start[axis] = is_there ? place[axis] : random_below(grid.size[axis]);
                points[i].t[axis] = random_offset();
            }
            points[i].xy = start[0] | start[1] << 16;
            planes[i] = (u16)start[2];
            order[i] = n - 1 - i;
            values[i] = {(real)(magnitude * random_between(-1, 1)), (real)(magnitude * random_between(-1, 1))};
        }
    }

    u32 start(u32 i, int axis) const {
        return axis == 0 ? points[i].xy & 0xffff : axis == 1 ? points[i].xy >> 16 : planes[i];
    }
};

// The first plane of a window relative to a tile, or a large number if the window does not touch the tile.
static int plane_in_tile(const layout &grid, const samples &all, u32 i, const corner &tile) {
    const u32 first[3] = {tile.x, tile.y, tile.z};
    int from[3];
    for (int axis = 0; axis < 3; axis++) {
        const int taps = axis == 1 ? TAPS_Y : W, cells = std::min(grid.tile[axis], grid.size[axis] - first[axis]);
        from[axis] = (int)all.start(i, axis) - (int)first[axis];
        if (from[axis] >= cells) from[axis] -= grid.size[axis];
        if (from[axis] <= -taps) return 1 << 30;
    }
    return from[2];
}

// The lists of all tiles, cut into pieces at random.
struct lists {
    std::vector<u32> list, schedule;
    std::vector<segment> segments;
    std::vector<u64> slots;
    std::vector<cut_tile> cuts;
    // Tiles of several segments, whose planes are each summed by a warp, and by a block.
    u32 few = 0, many = 0;
    u64 partial_planes = 0;

    lists(const layout &grid, const samples &all) {
        const u32 tiles = grid.tiles[0] * grid.tiles[1] * grid.tiles[2];
        cuts.resize(tiles);
        for (u32 tile = 0; tile < tiles; tile++) {
            const corner corner = corner_of(grid, tile);
            std::vector<std::pair<int, u32>> touching;
            for (u32 i = 0; i < all.points.size(); i++) {
                const int plane = plane_in_tile(grid, all, i, corner);
                if (plane < 1 << 30) touching.push_back({plane, i});
            }
            std::sort(touching.begin(), touching.end());
            const u32 count = (u32)touching.size();
            const u32 pieces = count < 8 ? 1 : 1 + random_below(random_below(4) ? 4 : count);
            if (pieces > 1) {
                const bool is_shared = pieces > 32 || random_below(2);
                cuts[is_shared ? tiles - 1 - many++ : few++] = {segments.size(), pieces, tile};
            }
            for (u32 piece = 0; piece < pieces; piece++) {
                const u32 from = count * piece / pieces, end = count * (piece + 1) / pieces;
                segment part = {list.size() + from, end - from, tile, 0, 0, 0, 0};
                if (pieces > 1) {
                    const int depth = (int)grid.tile[2];
                    const auto first_of = [&](u32 i) { return std::max(touching[i].first, 0); };
                    const auto end_of = [&](u32 i) { return std::min(touching[i].first + W, depth); };
                    part.plane = (u16)first_of(from);
                    part.end = (u16)end_of(end - 1);
                    const int own = piece > 0 ? end_of(from - 1) : 0;
                    const int own_end = piece + 1 < pieces ? first_of(end) : depth;
                    part.own = (u16)std::max<int>(own, part.plane);
                    part.own_end = (u16)std::min<int>(own_end, part.end);
                    if (part.own >= part.own_end) part.own = part.own_end = part.end;
                }
                schedule.push_back((u32)segments.size());
                segments.push_back(part);
                slots.push_back(partial_planes);
                partial_planes += (u64)(part.end - part.plane - (part.own_end - part.own));
            }
            for (const auto &entry : touching) list.push_back(entry.second);
        }
    }
};

static bool spreads(u32 n, int kind) {
    const layout grid = random_grid();
    const double magnitude = std::ldexp(1, (int)random_below(201) - 100);
    const samples input(grid, n, kind, magnitude);
    const lists parts(grid, input);
    const size_t cells = (size_t)grid.size[0] * grid.size[1] * grid.size[2];
    const window_polynomials polynomials = random_polynomials();
    std::vector<cplx> found(cells, cplx{NAN, NAN}), partial(parts.partial_planes * 32, cplx{NAN, NAN});
    spreading all = {};
    all.grid = grid;
    all.points = input.points.data();
    all.planes = input.planes.data();
    all.list = parts.list.data();
    all.order = input.order.data();
    all.segments = parts.segments.data();
    all.schedule = parts.schedule.data();
    all.slots = parts.slots.data();
    all.values = input.values.data();
    all.cells = found.data();
    all.partial = partial.data();
    all.n = n;
    all.partial_planes = parts.partial_planes;
    all.count = (u32)parts.segments.size();
    device::launch((all.count + WARPS - 1) / WARPS, 32 * WARPS, [&] { spread(polynomials, all); });
    const u32 each = 1 + random_below(4), warps = parts.few * ((grid.tile[2] + each - 1) / each);
    const u32 blocks = (warps + SUM_WARPS - 1) / SUM_WARPS + parts.many * grid.tile[2];
    device::launch(blocks, 32 * SUM_WARPS, [&] {
        sum_segments(grid, all.segments, all.slots, parts.cuts.data(), parts.few, each, partial.data(),
                     all.partial_planes, found.data());
    });

    std::vector<double> expected(2 * cells), scale(cells);
    for (u32 i = 0; i < n; i++) {
        const cplx value = input.values[input.order[i]];
        for_window(polynomials, grid, input.points[i], input.planes[i], [&](size_t cell, double weight) {
            expected[2 * cell] += weight * value.x;
            expected[2 * cell + 1] += weight * value.y;
            scale[cell] += std::fabs(weight) + LEAST_WEIGHT;
        });
    }
    for (size_t cell = 0; cell < cells; cell++) {
        const double re = found[cell].x - expected[2 * cell], im = found[cell].y - expected[2 * cell + 1];
        if (!(std::max(std::fabs(re), std::fabs(im)) <= (DOUBLE ? 1e-13 : 1e-5) * magnitude * scale[cell])) return false;
    }
    return true;
}

int main(int, char **arguments) {
    generator.seed(std::strtoull(arguments[1], nullptr, 10));
    for (u32 n : {1, 3, 16, 17, 33, 40, 700})
        for (int kind = 0; kind < 2; kind++)
            if (!spreads(n, kind)) {
                std::printf("%u samples of kind %d\n", n, kind);
                return 1;
            }
    return 0;
}
