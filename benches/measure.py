"""Measuring: alternating runs and their medians, errors against direct sums in double precision, whole processes."""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

# The number of exponentials computed at once, of 16 bytes each.
CHUNK = 1 << 21
# A measurement counts as disturbed if other processes use more than this number of cores.
DISTURBED = 0.1
# At most this number of measurements is added to replace disturbed ones.
MORE = 3


def progress(text):
    print(text, file=sys.stderr, flush=True)


def busy_seconds():
    """Returns the CPU seconds of all processes since the machine started, and of this process and its children."""
    user, nice, system, _, _, *interrupts = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    ticks = sum(map(int, (user, nice, system, *interrupts)))
    return ticks / os.sysconf("SC_CLK_TCK"), sum(os.times()[:4])


def watched(attempt):
    """Returns the result of `attempt`, and the average number of cores that other processes used meanwhile."""
    started, (everybody, own) = time.perf_counter(), busy_seconds()
    result = attempt()
    (everybody_then, own_then), seconds = busy_seconds(), time.perf_counter() - started
    return result, max(0.0, (everybody_then - everybody) - (own_then - own)) / seconds


def quietest(runs, attempt):
    """Returns the results of `runs` attempts, and the number of cores that other processes used meanwhile, on average.

    If other processes disturb some attempts, a few more attempts are made, and the least disturbed attempts are kept.
    The choice depends on the other processes only, never on the results.
    """
    done = []
    most = runs + min(runs, MORE)
    while len(done) < runs or (len(done) < most and sum(others <= DISTURBED for _, others in done) < runs):
        done.append(watched(attempt))
    kept = sorted(done, key=lambda pair: pair[1])[:runs]
    return [result for result, _ in kept], sum(others for _, others in kept) / runs


def alternate(runs, functions, again=False):
    """Returns the seconds of each function in every round, and the number of cores that other processes used meanwhile.

    Each function has one turn in a round. The first round is not counted. With `again` a function runs twice in its
    turn, and the second run counts: it reuses the memory that the first has freed. Otherwise the creation of a plan
    depends on the function before it. Large plans return their memory to the system, and the next must first touch it
    again. On 2 threads of an AMD EPYC (Zen 4), a plan of DUCC0 for the case propeller took 4.0 ms after a plan of
    recon, and 1.5 ms after one of its own.
    """

    def turn(function):
        started = time.perf_counter()
        made = function()
        seconds = time.perf_counter() - started
        # A plan that was made is freed here, where the clock has stopped.
        del made
        return seconds

    def one_round():
        return [[turn(function) for _ in range(1 + again)][-1] for function in functions]

    one_round()
    rounds, others = quietest(runs, one_round)
    return list(zip(*rounds)), others


def milliseconds(times):
    return 1e3 * statistics.median(times)


def random_complex(random, shape):
    return (random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(np.complex64)


def voxel_positions(dims, indices):
    """Returns integer positions of voxels whose indices count x fastest. The origin is at index floor(n / 2)."""
    positions, rest = [], indices
    for size in dims:
        positions.append((rest % size - size // 2).astype(np.float64))
        rest = rest // size
    return positions


def direct_adjoint(k, positions, data):
    """Returns sum_m data_m exp(i 2 pi k_m.r) at each position r."""
    k = [axis.astype(np.float64) for axis in k]
    data = data.astype(np.complex128)
    out = np.zeros(positions[0].size, np.complex128)
    step = max(1, CHUNK // k[0].size)
    for first in range(0, out.size, step):
        phase = sum(np.outer(r[first : first + step], axis) for r, axis in zip(positions, k))
        out[first : first + step] = np.exp(2j * np.pi * phase) @ data
    return out


def direct_forward(dims, k, image):
    """Returns sum_r image_r exp(-i 2 pi k_m.r) at each sample m.

    It is computed axis by axis, because the exponential is a product of one factor for each axis.
    """
    waves = [
        np.exp(-2j * np.pi * np.outer(np.arange(size) - size // 2, axis.astype(np.float64)))
        for size, axis in zip(dims, k)
    ]
    sums = image.astype(np.complex128) @ waves[0]
    for wave in waves[1:]:
        sums = np.einsum("...rm,rm->...m", sums, wave)
    return sums


class Reference:
    """Reference values of some outputs of a transform, which are drawn at random."""

    def __init__(self, transform, checked, random):
        k, data = transform.k, transform.data[0]
        if transform.operation == "adjoint":
            self.indices = random.integers(0, int(np.prod(transform.dims)), checked)
            self.exact = direct_adjoint(k, voxel_positions(transform.dims, self.indices), data)
        else:
            self.indices = random.integers(0, k[0].size, checked)
            self.exact = direct_forward(transform.dims, [axis[self.indices] for axis in k], data)

    def error(self, output):
        """Returns the relative l2 error of the first coil."""
        return relative(output[0].ravel()[self.indices], self.exact)


def relative(found, exact):
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


def process(command, environment=None):
    """Returns wall time and peak memory of a command that runs in its own process."""
    child = [sys.executable, "-S", Path(__file__).parent / "child.py", *map(str, command)]
    done = subprocess.run(child, check=False, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def process_environment(threads):
    """Returns the environment of a process that runs alone, without run.py's settings for OpenMP threads."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_", "OPENBLAS_"))}
    return {**own, "OMP_NUM_THREADS": str(threads)}


def write_cfl(stem, dims, values):
    """Writes BART's pair of files, .hdr and .cfl. `values` are in C order, so their shape is `dims` reversed."""
    padded = list(dims) + [1] * (16 - len(dims))
    Path(f"{stem}.hdr").write_text("# Dimensions\n" + " ".join(map(str, padded)) + "\n")
    np.ascontiguousarray(values, np.complex64).tofile(f"{stem}.cfl")


def scaled_error(found, exact):
    """Returns the relative l2 error after multiplication by the best complex factor."""
    factor = np.vdot(found, exact) / np.vdot(found, found)
    return relative(factor * found, exact)
