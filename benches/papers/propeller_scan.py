"""The scan of Yang et al. 2013, its gridding in double precision by numpy, and the loops on a CPU in C."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np

# The scan: samples of a readout, echo train, blades, scan matrix; and the cells of the grid along each axis.
SAMPLES, ECHOES, BLADES, MATRIX, GRID = 960, 24, 17, 256, 512
# The paper's window reaches `cwidth` cells in each direction (equations 15 to 18), but it does not state the value.
RADIUS = 2.0


def shape_parameter(radius):
    """Returns beta of the Kaiser-Bessel window of Beatty et al. 2005 for this grid."""
    oversampling = GRID / MATRIX
    return np.pi * np.sqrt((2 * radius / oversampling) ** 2 * (oversampling - 0.5) ** 2 - 0.8)


def window_series(radius):
    """Returns coefficients a_k of the window I0(beta sqrt(t)) / I0(beta) = sum_k a_k t^k, to 1e-9.

    t is 1 - d^2 / radius^2 for a distance of d cells.
    """
    beta = shape_parameter(radius)
    terms = [1.0]
    # All terms are positive, and they fall once k exceeds beta / 2.
    while terms[-1] > 1e-9 * sum(terms) or len(terms) < beta:
        terms.append(terms[-1] * beta**2 / 4 / len(terms) ** 2)
    return np.array(terms) / np.i0(beta)


def macros(radius, corners):
    """Returns the compiler's options for propeller.cu and propeller_loop.c."""
    series = ",".join(f"{value:.9e}f" for value in window_series(radius))
    return (f"-DRADIUS={radius:.6f}f", f"-DSERIES={series}", f"-DCORNERS={int(corners)}")


def positions(angles=np.zeros(BLADES)):
    """Returns x and y of all samples in units of the whole width of k-space, blade by blade, in double precision.

    `angles`: turn of each blade in addition to its place in the scan.
    """
    u, v = np.arange(SAMPLES), np.arange(ECHOES)
    x = np.broadcast_to(-0.5 + u / SAMPLES, (ECHOES, SAMPLES))
    y = np.broadcast_to((-0.5 + ((MATRIX - ECHOES) / 2 + v) / MATRIX)[:, None], (ECHOES, SAMPLES))
    turn = (np.pi * np.arange(BLADES) / BLADES + angles)[:, None, None]
    return [(np.cos(turn) * x - np.sin(turn) * y).ravel(), (np.sin(turn) * x + np.cos(turn) * y).ravel()]


def turns():
    """Returns cosine and sine of each blade's angle, float32 [blades, 2]."""
    angles = np.pi * np.arange(BLADES) / BLADES
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def moved_data(library, dims, k, angles, shifts):
    """Returns k-space of the phantom that is turned and shifted by a different motion in each blade.

    `angles` in radians, `shifts` in voxels, [blades, 2]. S(R(-angle) k) exp(-i 2 pi k.shift) is k-space of the object
    turned by the angle, then shifted.
    """
    turned = [axis.astype(np.float32) for axis in positions(-angles)]
    data = library.phantom(dims, turned, 1)[0][0].reshape(BLADES, -1)
    kx, ky = (axis.reshape(BLADES, -1) for axis in k)
    phase = kx * shifts[:, :1] + ky * shifts[:, 1:]
    return (data * np.exp(-2j * np.pi * phase)).ravel().astype(np.complex64)


class Convolution:
    """Gridding with the window in double precision: the list of all pairs of sample and cell, by numpy.

    The list also has the cells of a margin around the grid, which only the density weights use. If the density were
    that of cut windows, the few samples beyond the grid would get weights of thousands.
    """

    MARGIN = 8
    WIDE = GRID + 2 * MARGIN

    def __init__(self, k, radius):
        self.samples, self.radius, self.beta = k[0].size, radius, shape_parameter(radius)
        px, py = (axis.astype(np.float64) * GRID for axis in k)
        left, top = np.ceil(px - radius), np.ceil(py - radius)
        pairs = []
        for j in range(int(2 * radius) + 1):
            for i in range(int(2 * radius) + 1):
                cx, cy = left + i, top + j
                square = (cx - px) ** 2 + (cy - py) ** 2
                m = np.flatnonzero(square < radius**2)
                cells = ((cy[m] + self.WIDE // 2) * self.WIDE + cx[m] + self.WIDE // 2).astype(np.int64)
                pairs.append((m, cells, self.value(square[m])))
        self.m, self.cells, self.weights = (np.concatenate(parts) for parts in zip(*pairs))

    def value(self, square):
        return np.i0(self.beta * np.sqrt(np.maximum(1 - square / self.radius**2, 0))) / np.i0(self.beta)

    def grid(self, values):
        """Returns the grid [y, x] of complex values of the samples."""
        terms = self.weights * values[self.m].astype(np.complex128)
        parts = [np.bincount(self.cells, part, self.WIDE**2) for part in (terms.real, terms.imag)]
        inner = slice(self.MARGIN, self.MARGIN + GRID)
        return np.ascontiguousarray((parts[0] + 1j * parts[1]).reshape(self.WIDE, self.WIDE)[inner, inner])

    def density_weights(self):
        """Returns weights 1 / (S * C) as in equation (4): the inverse of the convolved sampling density."""
        cells = np.bincount(self.cells, self.weights, self.WIDE**2)
        return 1 / np.bincount(self.m, self.weights * cells[self.cells], self.samples)

    def image(self, grid, voxels):
        """Returns the central `voxels`^2 part of the image of a grid, divided by the transform of the window.

        The transform is a sum over points 16 a cell, because a window of the distance does not separate into two axes.
        """
        fine = np.arange(-int(16 * self.radius), int(16 * self.radius) + 1) / 16
        squares = fine[:, None] ** 2 + fine**2
        window = np.where(squares < self.radius**2, self.value(squares), 0)
        wave = np.exp(2j * np.pi * np.outer(np.arange(voxels) - voxels // 2, fine) / GRID)
        part = slice((GRID - voxels) // 2, (GRID + voxels) // 2)
        image = np.fft.fftshift(np.fft.ifft2(np.fft.ifftshift(grid)))[part, part]
        return image / (wave @ window @ wave.T).real


class Loops:
    """propeller_loop.c, compiled by GCC. All arrays are in single precision."""

    def __init__(self, folder, radius, corners):
        stem = Path(folder) / f"propeller_{radius}_{int(corners)}"
        source = Path(__file__).parent / "propeller_loop.c"
        subprocess.run(
            ["gcc", "-O3", "-march=native", "-ffast-math", "-fopenmp", "-fPIC", *macros(radius, corners), "-c", source]
            + ["-o", f"{stem}.o"],
            check=True,
        )
        # The link is without -ffast-math. With it, the whole process would flush subnormals to 0.
        subprocess.run(["gcc", "-shared", "-fopenmp", f"{stem}.o", "-o", f"{stem}.so", "-lm"], check=True)
        self.functions = ctypes.CDLL(f"{stem}.so")

    def work(self, name, k, data, grid, threads):
        """Returns a function that fills `grid` by the function propeller_`name`."""
        function = getattr(self.functions, f"propeller_{name}")
        table = turns()
        pointer = lambda array: ctypes.c_void_p(array.ctypes.data)
        if name == "scatter":
            sizes = [ctypes.c_long(data.size)]
        else:
            sizes = [*map(ctypes.c_int, (SAMPLES, ECHOES, BLADES, MATRIX)), pointer(table)]
        last = [ctypes.c_int(GRID), ctypes.c_int(threads)]
        inputs = [np.ascontiguousarray(axis, np.float32) for axis in k] + [np.ascontiguousarray(data, np.complex64)]
        assert grid.flags.c_contiguous and grid.dtype == np.complex64

        def run():
            function(*map(pointer, inputs), *sizes, pointer(grid), *last)

        # C has only the addresses of the arrays, so they must live as long as the function.
        run.arrays = (*inputs, grid, table)
        return run
