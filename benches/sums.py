"""Direct sums in double precision at some outputs of a transform, against which errors are measured.

`xp` is numpy or CuPy. The outputs of an adjoint lie on a lattice: equidistant positions along each axis, and all their
combinations. The exponential of an output is a product of one factor for each axis. The factors of an axis follow from
the first and their ratio, so that millions of samples take a second or less. The outputs of a forward transform are
random samples.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

import machine

# Positions along an axis in 2D and in 3D: 225 and 343 outputs of an adjoint.
POSITIONS = {2: 15, 3: 7}
SAMPLES = 200
# The number of samples that are summed at once.
CHUNK = {"numpy": 1 << 14, "cupy": 1 << 21}


def turn(xp, cycles):
    """Returns exp(i 2 pi cycles). Sine and cosine of real numbers are several times as fast as complex exponentials."""
    cycles = 2 * np.pi * (cycles - xp.rint(cycles))
    return xp.cos(cycles) + 1j * xp.sin(cycles)


def equidistant(size, most, random):
    """Returns at most `most` equidistant indices over all of [0, size): errors are larger towards the edges."""
    count = min(size, most)
    step = size // count
    first = int(random.integers(0, size - (count - 1) * step))
    return first + step * np.arange(count)


def waves(xp, k, positions):
    """Returns exp(i 2 pi k r) of equidistant positions, [positions, k]."""
    k = k.astype(xp.float64)
    out = xp.empty((len(positions), k.size), xp.complex128)
    out[0] = turn(xp, k * float(positions[0]))
    if len(positions) > 1:
        ratio = turn(xp, k * float(positions[1] - positions[0]))
        for index in range(1, len(positions)):
            xp.multiply(out[index - 1], ratio, out=out[index])
    return out


class Reference:
    """Exact values of some outputs of one coil of a transform."""

    def __init__(self, xp, shape, k, operation, data, random):
        """`data` are the values of the coil: [samples], or an image with x last. They and `k` are arrays of `xp`."""
        self.xp = xp
        if operation == "adjoint":
            chosen = [equidistant(size, POSITIONS[shape.ndim], random) for size in shape.dims]
            self.exact = adjoint(xp, shape, k, data, chosen)
            # Indices of voxels, x fastest, in the order of `adjoint`.
            indices, stride = chosen[0], shape.dims[0]
            for positions, size in zip(chosen[1:], shape.dims[1:]):
                indices = np.add.outer(stride * positions, indices)
                stride *= size
            self.indices = xp.asarray(indices.ravel())
        else:
            count = min(shape.samples, SAMPLES)
            self.indices = xp.asarray(random.choice(shape.samples, count, replace=False))
            self.exact = forward(xp, shape, [axis[self.indices] for axis in k], data)

    def error(self, output):
        """Returns the relative l2 error of the values of the coil."""
        found = output.ravel()[self.indices].astype(self.xp.complex128)
        return float(self.xp.linalg.norm(found - self.exact) / self.xp.linalg.norm(self.exact))


def adjoint(xp, shape, k, data, chosen):
    """Returns the sums at all combinations of the positions, those of x fastest."""
    places = [positions - size // 2 for positions, size in zip(chosen, shape.dims)]
    across = int(np.prod([len(some) for some in places[1:]]))
    step = CHUNK[xp.__name__]

    def part_sum(first):
        part = slice(first, first + step)
        weighted = waves(xp, k[0][part], places[0]) * data[part].astype(xp.complex128)
        rest = waves(xp, k[1][part], places[1])
        if shape.ndim == 3:
            rest = (waves(xp, k[2][part], places[2])[:, None] * rest[None]).reshape(across, -1)
        return rest @ weighted.T

    parts = range(0, shape.samples, step)
    if xp is np:
        with ThreadPoolExecutor(min(8, machine.cores())) as threads:
            return sum(threads.map(part_sum, parts)).ravel()
    return sum(map(part_sum, parts)).ravel()


def forward(xp, shape, k, image):
    """Returns the sums at a few samples, axis by axis."""
    conjugated = [waves(xp, axis, np.arange(size) - size // 2).conj() for axis, size in zip(k, shape.dims)]
    sums = image.astype(xp.complex128) @ conjugated[0]
    for wave in conjugated[1:]:
        sums = (sums * wave).sum(axis=-2)
    return sums
