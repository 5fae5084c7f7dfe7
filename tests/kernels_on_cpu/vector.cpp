// Checks random arrays by `check_values` of vector.cu, and compares with a loop.
#include "device.hpp"
#include "kernels.h"

// `broken` numbers are NaN or beyond the limits.
static bool checks(u64 n, u64 stride, int broken, bool wraps, bool copies) {
    const double low = -0.50001, high = 0.50001;
    const real top = std::nextafter((real)0.5, (real)0);
    // Memory between the numbers is never valid, and nothing may be written after the copies.
    const real other = 7;
    std::vector<real> from((n - 1) * stride + 1, 1e30), to(n + 1, other), expected(n);
    double least = 1.0 / 0.0, largest = -1.0 / 0.0;
    for (u64 i = 0; i < n; i++)
        from[i * stride] = random_below(9) ? (real)random_between(-0.5, 0.5) : random_below(2) ? -0.500005 : 0.500005;
    for (int i = 0; i < broken; i++)
        from[random_below(n) * stride] = random_below(2) ? (real)NAN : (real)random_between(0.51, 9) * (i % 2 ? 1 : -1);
    u64 first = ~0ull;
    for (u64 i = n; i-- > 0;) {
        const real x = from[i * stride];
        if (!(x >= low && x <= high)) first = i;
        if (x < least) least = x;
        if (x > largest) largest = x;
        expected[i] = wraps && x < (real)-0.5 ? (real)-0.5 : wraps && x >= (real)0.5 ? top : x;
    }
    u64 found[3] = {0, 0, 0};
    device::launch(1 + random_below(4), THREADS, [&] {
        check_values(from.data(), n, stride, low, high, copies ? to.data() : nullptr, wraps, top, found);
    });
    if (found[0] != ~ordered_bits(least) || found[1] != ordered_bits(largest) || found[2] != ~first) return false;
    for (u64 i = 0; i < n; i++) {
        const real is = to[i], should_be = copies ? expected[i] : other;
        if (is != should_be && !(std::isnan(is) && std::isnan(should_be))) return false;
    }
    return to[n] == other;
}

int main(int, char **arguments) {
    generator.seed(std::strtoull(arguments[1], nullptr, 10));
    for (u64 n : {1, 31, 256, 2048, 2049, 20000})
        for (u64 stride : {1, 3})
            for (int broken : {0, 1, 20})
                for (int options = 0; options < 4; options++)
                    if (!checks(n, stride, broken, options & 1, options & 2)) {
                        std::printf("%llu numbers, stride %llu, %d not valid, options %d\n", n, stride, broken, options);
                        return 1;
                    }
    return 0;
}
