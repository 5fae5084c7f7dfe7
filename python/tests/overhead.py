#!/usr/bin/env python3
"""Measures the time that the package adds to a C call, in the same process, alternating.

    overhead.py [--calls N]

The C call is made by cffi with addresses that are known already, and memory that is used again. Times are the first
decile of all calls: other programs on the machine make the slower calls slower.
"""

import argparse
import statistics
import time

import librecon
import numpy as np

lib, ffi = librecon.capi.lib, librecon.capi.ffi

CASES = [
    # name, spokes, samples, image, coils
    ("64 x 64, 100 samples", 2, 50, (64, 64), None),
    ("64 x 64, 4,096 samples", 32, 128, (64, 64), None),
    ("256 x 256, 258,048 samples", 504, 512, (256, 256), None),
    ("192 x 192, 8 coils, 18,432 samples each", 48, 384, (192, 192), 8),
]


def seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=400)
    calls = parser.parse_args().calls
    print("| case | transform | C call, ms | package, ms | added, us | ratio | with out=, ratio | with interrupt, ratio |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, spokes, samples, shape, coils in CASES:
        k = librecon.trajectory.radial2d(spokes, samples, "golden", np.float32)
        rng = np.random.default_rng(1)
        plain, polled = (librecon.Encoding(k, shape, coils=coils, interrupt=interrupt) for interrupt in (False, True))
        x, y = (rng.standard_normal(size).astype(np.complex64) for size in (plain.full_image_shape, plain.kspace_shape))
        for which, function, a, b in (("forward", lib.recon_forward, x, y.copy()), ("adjoint", lib.recon_fhd, y, x.copy())):
            source, target, plan = ffi.from_buffer(a), ffi.from_buffer(b), plain._plan
            ways = [lambda: function(plan, source, target), lambda: getattr(plain, which)(a),
                    lambda: getattr(plain, which)(a, out=b), lambda: getattr(polled, which)(a)]
            count = max(20, min(calls, int(20 / max(seconds(ways[0]), 1e-4))))
            times = [[] for _ in ways]
            for turn in range(count):
                for way in range(len(ways)) if turn % 2 else reversed(range(len(ways))):
                    times[way].append(seconds(ways[way]))
            c, package, out, interrupt = (statistics.quantiles(t, n=10)[0] for t in times)
            print(f"| {name} | {which} | {1e3 * c:.4f} | {1e3 * package:.4f} | {1e6 * (package - c):.1f} | {package / c:.3f} | "
                  f"{out / c:.3f} | {interrupt / c:.3f} |", flush=True)


main()
