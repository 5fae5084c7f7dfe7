// Sorts random samples by the kernels of samples.cu, and compares all that they write with a stable sort. Lists the
// samples of tiles by them, and compares with a list from the same tables of runs.
#include "device.hpp"
#include "kernels.h"

#ifndef STAGED_BUCKETS
#define STAGED_BUCKETS 0
#endif

// Tiles of 16 x 8 x 8 cells (16 x 8 in 2D), and classes of cells in them.
struct plan {
    bin_layout layout;
    std::vector<u32> keys;
    u32 bins;
};

static divisor divisor_of(u32 value) { return {value, value == 1 ? 0xffffffffu : (u32)((1ull << 32) / value)}; }

static plan random_plan() {
    plan p = {};
    bin_layout &b = p.layout;
    const u32 size[3] = {20 + random_below(40), DIM == 3 ? 18 + random_below(30) : 1, 17 + random_below(40)};
    const u32 tile[3] = {16, DIM == 3 ? 8u : 1u, 8};
    std::copy(size, size + 3, b.size);
    b.width = 2 + random_below(7);
    const u32 classes[3] = {1 + random_below(4), DIM == 3 ? 1 + random_below(5) : 1, 8};
    // The distances between the keys of neighbouring classes and tiles.
    const u32 of_class[3] = {1, classes[0], classes[0] * classes[1]};
    b.tile = divisor_of(classes[0] * classes[1] * classes[2]);
    p.bins = b.tile.value;
    for (int axis = 0; axis < 3; axis++) {
        for (u32 cell = 0; cell < size[axis]; cell++)
            p.keys.push_back(cell / tile[axis] * p.bins
                             + cell % tile[axis] * classes[axis] / tile[axis] * of_class[axis]);
        p.bins *= (size[axis] + tile[axis] - 1) / tile[axis];
    }
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
    e.key = p.keys[cell[0]] + p.keys[b.size[0] + cell[1]] + p.keys[b.size[0] + b.size[1] + cell[2]];
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

// `kind`: samples anywhere, two thirds of them at one place, or some at the edge of k-space. Buckets are long, or so
// many that their numbers have two digits.
static bool sorts(u64 n, bool has_long_buckets, int kind) {
    const plan p = random_plan();
    const u32 bins_of_bucket = !BUCKETS ? 1 : has_long_buckets ? 215 : std::max(1u, p.bins / 300);
    const bin_layout &b = p.layout;
    const u32 *keys = p.keys.data();
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

    // Blocks of a few samples make many parts.
    const bool has_many_parts = kind == 0;
    const u32 rounds = has_many_parts ? 1 : 1 + random_below(ROUNDS), table = random_below(2) ? (u32)p.keys.size() : 0;
    const divisor size = divisor_of(bins_of_bucket);
    const u32 buckets = (p.bins + bins_of_bucket - 1) / bins_of_bucket;
    u32 passes = 1;
    while ((u64)1 << DIGIT_BITS * passes < buckets) passes++;
    const u32 blocks = (u32)((n + SORT_THREADS * rounds - 1) / (SORT_THREADS * rounds));
    const u32 length = has_many_parts ? 1 : 1 + random_below(std::min(blocks, 3u));
    const u32 parts = (blocks + length - 1) / length;
    std::vector<u32> digits(MAX_PASSES * DIGITS), of_parts(parts * DIGITS, ~0u), in_part((size_t)blocks * DIGITS, ~0u);
    const first_counts of_first = {of_parts.data(), in_part.data(), length};
    u32 done = 0;
    u64 runs = 0;
    device::launch(parts, SORT_THREADS, [&] {
        count_digits(k[0].data(), k[1].data(), k[2].data(), n, b, keys, table, size, passes, rounds, of_first,
                     digits.data(), &done, &runs);
    });
#if DIM == 2
    // Runs end with every 32 samples.
    u64 expected_runs = 0;
    const auto tile_of = [&](u64 m) { return expected[m].key / b.tile.value; };
    for (u64 m = 0; m < n; m++) expected_runs += m % 32 == 0 || tile_of(m) != tile_of(m - 1);
    if (runs != expected_runs) return false;
#endif
    std::vector<record> records[2] = {std::vector<record>(n), std::vector<record>(n)};
    std::vector<u32> indices[2] = {std::vector<u32>(n, ~0u), std::vector<u32>(n, ~0u)};
    const auto arrays = [&](u32 i) { return record_arrays{records[i % 2].data(), indices[i % 2].data()}; };
    for (u32 pass = 0; pass < passes; pass++) {
        std::vector<state> states((size_t)(blocks + LOOK_BACK) * DIGITS);
        u32 ticket = 0;
        const sort_arrays a = {{k[0].data(), k[1].data(), k[2].data()}, arrays(pass), arrays(pass + 1)};
        device::launch(blocks, SORT_THREADS, [&] {
            (pass == 0 ? sort_first : sort_next)(a, n, b, keys, table, size, DIGIT_BITS * pass, rounds,
                                                 digits.data() + pass * DIGITS, of_first, states.data(), &ticket);
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
        find_buckets(sorted.records, n, b, keys, size, buckets, begins.data());
    });
    device::launch(buckets, SORT_THREADS, [&] {
        sort_buckets(sorted, n, b, keys, table, begins.data(), size, p.bins, to, starts.data());
    });
#else
    device::launch((u32)((n + SORT_THREADS - 1) / SORT_THREADS), SORT_THREADS, [&] {
        settle(sorted, n, b, keys, to, starts.data());
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

// A number of samples of a bin: none, a few, or many.
static u32 random_count() { return random_below(3) ? random_below(3) : random_below(2) ? 0 : random_below(400); }

static u32 random_key(u32 bins) { return random_below(4) ? random_below(bins) : 0xffffffffu; }

// Lists the samples of tiles whose runs are any bins, in segments of a few samples.
static bool lists() {
    const u32 bins = 40 + random_below(100), third = bins / 3;
    std::vector<u32> starts(1, 0);
    for (u32 bin = 0; bin < bins; bin++) starts.push_back(starts.back() + random_count());
    run_layout l = {};
    l.width = 1 + random_below(8);
    l.depth = 1 + random_below(16);
    l.size_z = l.width + random_below(40);
    const u32 runs_x = 1 + random_below(3);
    l.runs_y = 1 + random_below(3);
    l.runs_x = divisor_of(runs_x);
    l.runs_of_plane = divisor_of(runs_x * l.runs_y);
    const u32 tiles_x = 1 + random_below(3), tiles_y = 1 + random_below(3);
    const u32 tiles_z = (l.size_z + l.depth - 1) / l.depth, tiles = tiles_x * tiles_y * tiles_z;
    std::copy_n(std::vector<u32>{tiles_x, tiles_y, tiles_z}.begin(), 3, l.tiles);
    std::vector<u32> keys, rows, columns;
    for (u32 z = 0; z < l.size_z; z++) keys.push_back(random_below(third));
    for (u32 i = 0; i < tiles_y * l.runs_y; i++) rows.push_back(random_key(third));
    for (u32 i = 0; i < tiles_x * runs_x; i++) {
        const u32 key = random_key(third - 3);
        columns.push_back(key == 0xffffffffu ? key : key << 8 | (1 + random_below(3)));
    }

    // The samples of each tile, with the plane of each.
    std::vector<std::vector<std::pair<u32, u32>>> expected(tiles);
    for (u32 tile = 0; tile < tiles; tile++) {
        const u32 first_plane = tile / (tiles_x * tiles_y) * l.depth;
        const u32 row = tile / tiles_x % tiles_y * l.runs_y, column = tile % tiles_x * runs_x;
        for (u32 plane = 0; plane < std::min(l.depth, l.size_z - first_plane) + l.width - 1; plane++)
            for (u32 j = row; j < row + l.runs_y; j++)
                for (u32 i = column; i < column + runs_x; i++) {
                    if (rows[j] == 0xffffffffu || columns[i] == 0xffffffffu) continue;
                    const u32 z = (first_plane + plane + l.size_z - (l.width - 1)) % l.size_z;
                    const u32 bin = keys[z] + rows[j] + (columns[i] >> 8);
                    for (u32 s = starts[bin]; s < starts[bin + (columns[i] & 0xff)]; s++)
                        expected[tile].push_back({s, plane});
                }
    }

    std::vector<u32> counts(tiles, ~0u);
    device::launch((tiles + 7) / 8, 256, [&] {
        count_touching(l, keys.data(), rows.data(), columns.data(), starts.data(), counts.data());
    });
    const u32 longest = 20 + random_below(300), few = 2 + random_below(3);
    std::vector<u64> tile_starts(1, 0), firsts(1, 0);
    for (u32 tile = 0; tile < tiles; tile++) {
        if (counts[tile] != expected[tile].size()) return false;
        tile_starts.push_back(tile_starts.back() + counts[tile]);
        firsts.push_back(firsts.back() + (counts[tile] + longest - 1) / longest);
    }
    const u64 room = firsts.back() + random_below(20), unwritten = ~0u;
    // Four entries more, which nothing may write.
    std::vector<u32> list(tile_starts.back() + 4, unwritten), planes(room, unwritten);
    std::vector<segment> segments(room);
    std::vector<cut_tile> cut(tiles);
    u64 cuts[3] = {0, 0, 0};
    device::launch((u32)((room + 7) / 8), 256, [&] {
        list_touching(l, keys.data(), rows.data(), columns.data(), starts.data(), tile_starts.data(), firsts.data(),
                      room, few, list.data(), segments.data(), planes.data(), cut.data(), cuts);
    });

    u64 most = 0, numbers[2] = {0, 0};
    for (u32 tile = 0; tile < tiles; tile++) {
        const u64 pieces = firsts[tile + 1] - firsts[tile];
        for (u32 i = 0; i < counts[tile]; i++)
            if (list[tile_starts[tile] + i] != expected[tile][i].first) return false;
        u64 next = tile_starts[tile];
        for (u64 s = firsts[tile]; s < firsts[tile + 1]; s++) {
            const segment &of = segments[s];
            if (of.first != next || of.count == 0 || of.count > longest || of.tile != tile) return false;
            next += of.count;
            if ((pieces == 1) != (of.end == 0)) return false;
            if (pieces == 1 && (of.plane || of.own || of.own_end || planes[s])) return false;
            if (pieces == 1) continue;
            // The windows of the segment touch these planes of the tile, from the first window to the last.
            const u64 from = of.first - tile_starts[tile];
            const auto touches = [&](u64 sample, int z) {
                const int start = (int)expected[tile][sample].second;
                return z > start - (int)l.width && z <= start;
            };
            u32 shared = 0;
            for (int z = 0; z < (int)l.depth; z++) {
                bool is_its = false, is_others = false;
                for (u64 i = 0; i < counts[tile]; i++) {
                    const bool is_of = i >= from && i < from + of.count;
                    (is_of ? is_its : is_others) |= touches(i, z);
                }
                const bool is_within = z >= of.plane && z < of.end, is_own = z >= of.own && z < of.own_end;
                if (is_its && !is_within) return false;
                if (is_own && (!is_within || is_others)) return false;
                shared += is_within && !is_own;
            }
            const int low = std::max((int)expected[tile][from].second - (int)l.width + 1, 0);
            const int high = std::min(expected[tile][from + of.count - 1].second + 1, l.depth);
            if (of.plane != low || of.end != high || planes[s] != shared) return false;
        }
        if (next != tile_starts[tile + 1]) return false;
        if (pieces > 1) {
            numbers[pieces > few]++;
            most = std::max(most, pieces);
        }
    }
    for (u64 s = firsts.back(); s < room; s++)
        if (segments[s].count || planes[s]) return false;
    for (u32 i = 0; i < 4; i++)
        if (list[tile_starts.back() + i] != (u32)unwritten) return false;
    if (cuts[0] != numbers[0] || cuts[1] != numbers[1] || cuts[2] != most) return false;
    for (u64 i = 0; i < cuts[0] + cuts[1]; i++) {
        const cut_tile &of = cut[i < cuts[0] ? i : tiles - 1 - (i - cuts[0])];
        const u64 pieces = firsts[of.tile + 1] - firsts[of.tile];
        if (of.segment != firsts[of.tile] || of.segments != pieces || (pieces > few) != (i >= cuts[0])) return false;
    }
    return true;
}

int main(int, char **arguments) {
    generator.seed(std::strtoull(arguments[1], nullptr, 10));
    for (int i = 0; i < 20; i++)
        if (!lists()) {
            std::printf("lists of tiles, number %d\n", i);
            return 1;
        }
    for (u64 n : {1, 300, 12000})
        for (bool has_long_buckets : {false, true})
            for (int kind = 0; kind < 3; kind++)
                if (!sorts(n, has_long_buckets, kind)) {
                    std::printf("%llu samples of kind %d, long buckets: %d\n", n, kind, has_long_buckets);
                    return 1;
                }
    return 0;
}
