"""Measuring: alternating runs and their medians, errors against direct sums in double precision, whole processes."""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

# Exponentials computed at once: 16 bytes each.
CHUNK = 1 << 21
# Cores that others may take before a measurement counts as disturbed, and how many more are made at most to replace such.
DISTURBED = 0.1
MORE = 3


def progress(text):
    print(text, file=sys.stderr, flush=True)


def busy_seconds():
    """CPU time that anybody has used since the machine started, and that this process and its children have."""
    user, nice, system, _, _, *interrupts = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    ticks = sum(map(int, (user, nice, system, *interrupts)))
    return ticks / os.sysconf("SC_CLK_TCK"), sum(os.times()[:4])


def watched(attempt):
    """What `attempt` returns, and the cores that other processes took from the machine meanwhile, on average."""
    started, (everybody, own) = time.perf_counter(), busy_seconds()
    result = attempt()
    (everybody_then, own_then), seconds = busy_seconds(), time.perf_counter() - started
    return result, max(0.0, (everybody_then - everybody) - (own_then - own)) / seconds


def quietest(runs, attempt):
    """Results of `runs` attempts, and the cores that others took. While others disturb them a few more are made, and those
    least disturbed are kept: chosen by what others did, never by the result."""
    done = []
    most = runs + min(runs, MORE)
    while len(done) < runs or (len(done) < most and sum(others <= DISTURBED for _, others in done) < runs):
        done.append(watched(attempt))
    kept = sorted(done, key=lambda pair: pair[1])[:runs]
    return [result for result, _ in kept], sum(others for _, others in kept) / runs


def alternate(runs, functions):
    """Seconds of each function in rounds in which each has its turn, after a round that is not counted; and the cores that
    others took."""

    def turn(function):
        started = time.perf_counter()
        function()
        return time.perf_counter() - started

    def one_round():
        return [turn(function) for function in functions]

    one_round()
    rounds, others = quietest(runs, one_round)
    return list(zip(*rounds)), others


def milliseconds(times):
    return 1e3 * statistics.median(times)


def random_complex(random, shape):
    return (random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(np.complex64)


def voxel_positions(dims, indices):
    """Integer positions, the origin at floor(n / 2) of each axis, of voxels counted with x fastest."""
    positions, rest = [], indices
    for size in dims:
        positions.append((rest % size - size // 2).astype(np.float64))
        rest = rest // size
    return positions


def direct_adjoint(k, positions, data):
    """sum_m data_m exp(i 2 pi k_m.r) at each position r."""
    k = [axis.astype(np.float64) for axis in k]
    data = data.astype(np.complex128)
    out = np.zeros(positions[0].size, np.complex128)
    step = max(1, CHUNK // k[0].size)
    for first in range(0, out.size, step):
        phase = sum(np.outer(r[first : first + step], axis) for r, axis in zip(positions, k))
        out[first : first + step] = np.exp(2j * np.pi * phase) @ data
    return out


def direct_forward(dims, k, image):
    """sum_r image_r exp(-i 2 pi k_m.r) at each sample; summed axis by axis, over which the exponential factors."""
    waves = [
        np.exp(-2j * np.pi * np.outer(np.arange(size) - size // 2, axis.astype(np.float64)))
        for size, axis in zip(dims, k)
    ]
    sums = image.astype(np.complex128) @ waves[0]
    for wave in waves[1:]:
        sums = np.einsum("...rm,rm->...m", sums, wave)
    return sums


class Reference:
    """Some outputs of a transform, drawn at random, as they should be."""

    def __init__(self, transform, checked, random):
        k, data = transform.k, transform.data[0]
        if transform.operation == "adjoint":
            self.indices = random.integers(0, int(np.prod(transform.dims)), checked)
            self.exact = direct_adjoint(k, voxel_positions(transform.dims, self.indices), data)
        else:
            self.indices = random.integers(0, k[0].size, checked)
            self.exact = direct_forward(transform.dims, [axis[self.indices] for axis in k], data)

    def error(self, output):
        """Relative l2 error of the first coil."""
        return relative(output[0].ravel()[self.indices], self.exact)


def relative(found, exact):
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


def process(command, environment=None):
    """Wall time and peak memory of a command as a process of its own."""
    child = [sys.executable, "-S", Path(__file__).parent / "child.py", *map(str, command)]
    done = subprocess.run(child, check=False, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def process_environment(threads):
    """A process that has the machine to itself: OpenMP waits as it likes, not as run.py has it here."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_", "OPENBLAS_"))}
    return {**own, "OMP_NUM_THREADS": str(threads)}


def write_cfl(stem, dims, values):
    """A pair of BART's; `values` in C order, the reverse of `dims`."""
    padded = list(dims) + [1] * (16 - len(dims))
    Path(f"{stem}.hdr").write_text("# Dimensions\n" + " ".join(map(str, padded)) + "\n")
    np.ascontiguousarray(values, np.complex64).tofile(f"{stem}.cfl")


def scaled_error(found, exact):
    """Relative l2 error after the one complex factor that makes it least."""
    factor = np.vdot(found, exact) / np.vdot(found, found)
    return relative(factor * found, exact)
