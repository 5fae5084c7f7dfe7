// Sorts random samples by the kernels of samples.cu, and compares all that they write with a stable sort.
#include "device.hpp"
#include "kernels.h"

#ifndef STAGED_BUCKETS
#define STAGED_BUCKETS 0
#endif

// Tiles of 16 x 8 x 8 cells (16 x 8 in 2D), and classes of cells in them.
struct plan {
    bin_layout layout;
    std::vector<u32> cells;
    u32 bins;
};

static plan random_plan() {
    plan p = {};
    bin_layout &b = p.layout;
    const u32 size[3] = {20 + random_below(40), DIM == 3 ? 18 + random_below(30) : 1, 17 + random_below(40)};
    const u32 tile[3] = {16, DIM == 3 ? 8u : 1u, 8};
    std::copy(size, size + 3, b.size);
    b.width = 2 + random_below(7);
    b.planes = 8;
    b.classes_x = 1 + random_below(4);
    b.classes_y = DIM == 3 ? 1 + random_below(5) : 1;
    b.tiles_x = (size[0] + 15) / 16;
    b.tiles_y = (size[1] + tile[1] - 1) / tile[1];
    p.bins = b.tiles_x * b.tiles_y * ((size[2] + 7) / 8) * b.planes * b.classes_y * b.classes_x;
    const u32 classes[3] = {b.classes_x, b.classes_y, b.planes};
    for (int axis = 0; axis < 3; axis++)
        for (u32 cell = 0; cell < size[axis]; cell++)
            p.cells.push_back(cell / tile[axis] << 16 | cell % tile[axis] * classes[axis] / tile[axis]);
    return p;
}

struct expected_sample {
    u32 key, xy, plane;
    double offset[3];
};

static expected_sample locate_expected(const plan &p, const real k[3]) {
    const bin_layout &b = p.layout;
    u32 cell[3] = {0, 0, 0};
    expected_sample e = {};
    for (int axis = 0; axis < 3; axis += DIM == 3 ? 1 : 2) {
        const double position = (double)k[axis] * b.size[axis] - 0.5 * b.width, first = std::ceil(position);
        cell[axis] = (u32)((int)first < 0 ? (int)first + (int)b.size[axis] : (int)first);
        e.offset[axis] = first - position;
    }
    const u32 x = p.cells[cell[0]], y = p.cells[b.size[0] + cell[1]], z = p.cells[b.size[0] + b.size[1] + cell[2]];
    const u32 tile = ((z >> 16) * b.tiles_y + (y >> 16)) * b.tiles_x + (x >> 16);
    e.key = ((tile * b.planes + (z & 0xffff)) * b.classes_y + (y & 0xffff)) * b.classes_x + (x & 0xffff);
    e.xy = cell[0] | cell[1] << 16;
    e.plane = cell[2];
    return e;
}

static bool is_offset(const point &p, const expected_sample &e) {
    for (int axis = 0; axis < 3; axis += DIM == 3 ? 1 : 2) {
        const double variable = 2 * e.offset[axis] - 1;
        if (!(std::fabs(variable_of(p.t[axis]) - variable) <= (FIXED_POINT ? 5e-10 : DOUBLE ? 0 : 1e-7))) return false;
    }
    return true;
}

// `kind`: samples anywhere, two thirds of them at one place, or some at the edge of k-space.
static bool sorts(u64 n, u32 bins_of_bucket, int kind) {
    const plan p = random_plan();
    const bin_layout &b = p.layout;
    const u32 *cells = p.cells.data();
    std::vector<real> k[3];
    for (auto &axis : k) {
        const double place = random_between(-0.5, 0.499);
        for (u64 m = 0; m < n; m++) {
            const bool is_there = kind == 1 && m % 3 != 0, is_at_edge = kind == 2 && m % 5 == 0;
            axis.push_back((real)(is_there ? place : is_at_edge ? -0.5 : random_between(-0.5, 0.4999)));
        }
    }
    std::vector<expected_sample> expected(n);
    std::vector<u32> order(n);
    for (u64 m = 0; m < n; m++) {
        const real at[3] = {k[0][m], k[1][m], k[2][m]};
        expected[m] = locate_expected(p, at);
        order[m] = (u32)m;
    }
    std::stable_sort(order.begin(), order.end(), [&](u32 i, u32 j) { return expected[i].key < expected[j].key; });

    const u32 rounds = 1 + random_below(ROUNDS), table = random_below(2) ? (u32)p.cells.size() : 0;
    const bucket_size size = {bins_of_bucket, bins_of_bucket == 1 ? 0xffffffffu : (u32)((1ull << 32) / bins_of_bucket)};
    const u32 buckets = (p.bins + bins_of_bucket - 1) / bins_of_bucket;
    u32 passes = 1;
    while ((u64)1 << DIGIT_BITS * passes < buckets) passes++;
    std::vector<u32> digits(MAX_PASSES * DIGITS);
    u32 done = 0;
    u64 runs = 0;
    device::launch(3, SORT_THREADS, [&] {
        count_digits(k[0].data(), k[1].data(), k[2].data(), n, b, cells, table, size, passes, digits.data(), &done,
                     &runs);
    });
    std::vector<record> records[2] = {std::vector<record>(n), std::vector<record>(n)};
    std::vector<u32> indices[2] = {std::vector<u32>(n, ~0u), std::vector<u32>(n, ~0u)};
    const auto arrays = [&](u32 i) { return record_arrays{records[i % 2].data(), indices[i % 2].data()}; };
    const u32 blocks = (u32)((n + SORT_THREADS * rounds - 1) / (SORT_THREADS * rounds));
    for (u32 pass = 0; pass < passes; pass++) {
        std::vector<state> states((size_t)blocks * DIGITS);
        u32 ticket = 0;
        const sort_arrays a = {{k[0].data(), k[1].data(), k[2].data()}, arrays(pass), arrays(pass + 1)};
        device::launch(blocks, SORT_THREADS, [&] {
            (pass == 0 ? sort_first : sort_next)(a, n, b, cells, table, size, DIGIT_BITS * pass, rounds,
                                                 digits.data() + pass * DIGITS, states.data(), &ticket);
        });
    }

    const record_arrays sorted = arrays(passes);
    std::vector<point> points(n);
    std::vector<unsigned short> planes(n, 0xffff);
    std::vector<u32> found_order(n, ~0u), starts(p.bins + 1, ~0u);
    const sorted_points to = {points.data(), planes.data(), found_order.data()};
#if BUCKETS
    std::vector<u32> begins(buckets + 1, ~0u);
    device::launch((buckets + SORT_THREADS) / SORT_THREADS, SORT_THREADS, [&] {
        find_buckets(sorted.records, n, b, cells, size, buckets, begins.data());
    });
    device::launch(buckets, SORT_THREADS, [&] {
        sort_buckets(sorted, n, b, cells, table, begins.data(), size, p.bins, to, starts.data());
    });
#else
    device::launch((u32)((n + SORT_THREADS - 1) / SORT_THREADS), SORT_THREADS, [&] {
        settle(sorted, n, b, cells, to, starts.data());
    });
    // As `fill_starts` of sort.cu.
    starts[p.bins] = (u32)n;
    for (u32 bin = p.bins; bin-- > 0;) starts[bin] = std::min(starts[bin], starts[bin + 1]);
#endif

    u64 next = 0;
    for (u32 bin = 0; bin <= p.bins; bin++) {
        while (next < n && expected[order[next]].key < bin) next++;
        if (starts[bin] != next) return false;
    }
    for (u64 i = 0; i < n; i++) {
        const expected_sample &e = expected[order[i]];
        if (found_order[i] != order[i] || planes[i] != e.plane || points[i].xy != e.xy || !is_offset(points[i], e))
            return false;
    }
    return true;
}

int main(int, char **arguments) {
    generator.seed(std::strtoull(arguments[1], nullptr, 10));
    for (u64 n : {1, 300, 12000})
        for (u32 bins_of_bucket : BUCKETS ? std::vector<u32>{48, 215} : std::vector<u32>{1})
            for (int kind = 0; kind < 3; kind++)
                if (!sorts(n, bins_of_bucket, kind)) {
                    std::printf("%llu samples of kind %d, %u bins per bucket\n", n, kind, bins_of_bucket);
                    return 1;
                }
    return 0;
}
