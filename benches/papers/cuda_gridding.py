"""`make papers PAPER=cuda_gridding`: the experiments of the paper "CUDA gridding", written to docs/papers.

Samples at random positions are convolved onto 512 x 512 cells: by four assignments of the work to threads, by the
paper's ladder of five optimisations, on the CPU, and by the library. Each is checked against a convolution in double
precision before it is timed.
"""

import ctypes
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from harness import FOLDER, Page, Session, progress, relative, require, scaled

import recon_library

SIZE, SECTOR, WIDTH = 512, 32, 8
SAMPLES = (5_000, 100_000, 1_000_000)
# Entries of the ladder's table per cell of distance. Linear interpolation then meets the bound.
PER_CELL, DEGREE, BOUND = 256, 8, 1e-4
# Launches that take less than this are repeated in one CUDA graph.
SHORT_MS, REPEATS = 1.0, 50
CHUNK = 16
# Samples of the adjoint whose time is nearly that of the FFT and the correction.
FEW = 16

INTRO = """
The paper "CUDA gridding" moves the convolution step of gridding to a GeForce 8800 GTX: 5,000 samples at random
positions, 512 x 512 cells, a Gaussian window "of size 8". It compares four ways to assign the work, five optimisations,
and the CPU. This page repeats all of it, adds larger sets, since 5,000 samples do not fill a GPU of today, and ends
with the library's own kernel.
"""

WINDOW_TEXT = """
The paper leaves the window open. Its text calls 8 the window size, pads sectors by half the window size, and counts 256
cells for a size of 16, so a size is the full width along an axis. Its listing has a radius of 8, thus up to 17 cells
along an axis, and the Gaussian exp(-(d/8)^2 / 2), which is still 0.61 at the distance of the radius. Here the window
has 8 x 8 cells, a square as in the listing, and the width of the text; a second table has 16 x 16 cells, about the
listing's. The Gaussian is exp(-d^2 / (2 s^2)) with s an eighth of the width, which is 3e-4 at half the width, because a
window that ends at 0.61 cannot grid. The times do not depend on s. The paper's "10X oversampling" does not enter the
convolution and is left out.

Cells beyond the edge of the grid are left out, as in the listing. Samples and grid are complex, in single precision.
The positions are uniformly random here and in the paper's text. The listing has 8,192 samples, with the same number in
each sector, on multiples of half a cell.
"""


def random_samples(random, count):
    """Returns positions and data in single precision. Positions are multiples of 2^-15, so that f32 holds k exactly."""
    x, y = ((random.integers(0, SIZE << 15, count) / 2.0**15).astype(np.float32) for _ in range(2))
    data = (random.standard_normal(count) + 1j * random.standard_normal(count)).astype(np.complex64)
    return x, y, data


def gaussian(width, spread=None):
    """Returns the window as a function of (dx, dy), and 1 / (2 s^2). `spread` is s; the default is width / 8."""
    falloff = 0.5 / (spread or width / 8) ** 2
    return (lambda dx, dy: np.exp(-falloff * (dx * dx + dy * dy))), falloff


def table_of(falloff, per_cell, width):
    """Returns the window at multiples of 1 / per_cell cells, up to the corner of the window and one entry more."""
    last = int(np.ceil(np.sqrt(0.5) * width * per_cell)) + 1
    return np.exp(-falloff * (np.arange(last + 1) / per_cell) ** 2).astype(np.float32)


def nearest(table, per_cell):
    """Returns the window by the nearest entry. The index is rounded in single precision as on the GPU."""

    def window(dx, dy):
        dx, dy = dx.astype(np.float32), dy.astype(np.float32)
        place = np.sqrt(dx * dx + dy * dy) * np.float32(per_cell)
        return table[(place + np.float32(0.5)).astype(np.int64)].astype(np.float64)

    return window


def linear(table, per_cell):
    """Returns the window by linear interpolation in the table, in double precision."""

    def window(dx, dy):
        place = np.sqrt(dx * dx + dy * dy) * per_cell
        entry = place.astype(np.int64)
        lower = table[entry].astype(np.float64)
        return lower + (place - entry) * (table[entry + 1] - lower)

    return window


def tap_polynomials(falloff, width):
    """Returns coefficients [DEGREE + 1][width] in t = 2 f - 1 of the taps at distances j + f - width / 2."""

    def fitted(j):
        series = np.polynomial.Chebyshev.interpolate(
            lambda t: np.exp(-falloff * (j + 0.5 * (t + 1) - width / 2) ** 2), DEGREE
        )
        return np.resize(np.polynomial.chebyshev.cheb2poly(series.coef), DEGREE + 1)

    return np.stack([fitted(j) for j in range(width)], axis=1).astype(np.float32)


def polynomial(coefficients, width):
    """Returns the window by the taps' polynomials, in double precision."""

    def along(d):
        place = d + width / 2
        j = np.clip(np.floor(place).astype(np.int64), 0, width - 1)
        t, value = 2 * (place - j) - 1, 0
        for row in coefficients[::-1]:
            value = value * t + row[j].astype(np.float64)
        return value

    return lambda dx, dy: along(dx) * along(dy)


def convolve(x, y, data, width, window, periodic=False):
    """Returns the convolution by a loop over the taps, in double precision: the reference of all kernels."""
    x, y, data = x.astype(np.float64), y.astype(np.float64), data.astype(np.complex128)
    left, top = (np.ceil(axis - width / 2).astype(np.int64) for axis in (x, y))
    out = np.zeros(SIZE * SIZE, np.complex128)
    for row in range(width):
        for column in range(width):
            u, v = left + column, top + row
            values = window(u - x, v - y) * data
            if periodic:
                u, v, inside = u % SIZE, v % SIZE, slice(None)
            else:
                inside = (u >= 0) & (u < SIZE) & (v >= 0) & (v < SIZE)
            cells, values = (v * SIZE + u)[inside], values[inside]
            out.real += np.bincount(cells, values.real, SIZE * SIZE)
            out.imag += np.bincount(cells, values.imag, SIZE * SIZE)
    return out.reshape(SIZE, SIZE)


def check_references(random):
    """Checks the references with a loop over single samples and cells."""
    x, y, data = random_samples(random, 40)
    # Corners, and a sample on a cell.
    x[:4], y[:4] = (0, SIZE - 2.0**-15, 0.25, 200), (0, SIZE - 2.0**-15, SIZE - 0.25, 300)
    window, falloff = gaussian(WIDTH)
    for periodic in (False, True):
        expected = np.zeros((SIZE, SIZE), np.complex128)
        for m in range(x.size):
            for v in range(int(y[m]) - WIDTH, int(y[m]) + WIDTH + 1):
                for u in range(int(x[m]) - WIDTH, int(x[m]) + WIDTH + 1):
                    dx, dy = u - float(x[m]), v - float(y[m])
                    covered = -WIDTH / 2 <= min(dx, dy) and max(dx, dy) < WIDTH / 2
                    if covered and (periodic or (0 <= u < SIZE and 0 <= v < SIZE)):
                        expected[v % SIZE, u % SIZE] += complex(data[m]) * np.exp(-falloff * (dx * dx + dy * dy))
        found = convolve(x, y, data, WIDTH, window, periodic)
        require(relative(found, expected), 1e-13, "the convolution in double precision")
    table = table_of(falloff, PER_CELL, WIDTH)
    for name, own in (
        ("table", linear(table, PER_CELL)),
        ("polynomials", polynomial(tap_polynomials(falloff, WIDTH), WIDTH)),
    ):
        require(relative(convolve(x, y, data, WIDTH, own), convolve(x, y, data, WIDTH, window)), 1e-5, name)


def sectors(x, y):
    """Returns the order of samples by sector, the first sample of each sector, and the milliseconds of this sort."""
    started = time.perf_counter()
    sector = (y.astype(np.int32) // SECTOR) * (SIZE // SECTOR) + x.astype(np.int32) // SECTOR
    order = np.argsort(sector, kind="stable")
    counts = np.bincount(sector, minlength=(SIZE // SECTOR) ** 2)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return order, starts, 1e3 * (time.perf_counter() - started)


def rates(count, width, milliseconds):
    """Returns cell updates per second and arithmetic: a complex multiply-add with a real factor is 4 operations."""
    updates = count * width * width / (1e-3 * milliseconds)
    return f"{1e-9 * updates:.3g}", f"{4e-9 * updates:.3g}"


def in_ms(milliseconds):
    return f"{milliseconds:.3g} ms" if milliseconds >= 0.1 else f"{1e3 * milliseconds:.3g} us"


class CpuLoop:
    """cuda_gridding.c, compiled for this processor."""

    def __init__(self, folder, separable, falloff):
        path = Path(folder) / f"cuda_gridding_{separable}.so"
        macros = [f"-DSIZE={SIZE}", f"-DWIDTH={WIDTH}", f"-DFALLOFF={falloff}", f"-DPER_CELL={PER_CELL}"]
        # -fno-math-errno lets the compiler vectorise square roots. It does not change results.
        flags = ["-O3", "-march=native", "-fno-math-errno", "-fopenmp", "-fPIC", "-shared", f"-DSEPARABLE={separable}"]
        subprocess.run(["gcc", *flags, *macros, FOLDER / "cuda_gridding.c", "-o", path, "-lm"], check=True)
        self.function = ctypes.CDLL(str(path)).grid_samples
        self.function.restype = None
        self.table = table_of(falloff, PER_CELL, WIDTH)

    def work(self, x, y, data, threads, out):
        parts = [x, y, np.ascontiguousarray(data.real), np.ascontiguousarray(data.imag), self.table, out]
        assert all(part.flags.c_contiguous for part in parts)
        pointers = [ctypes.c_void_p(part.ctypes.data) for part in parts]
        # The closure holds the arrays, so that the addresses remain valid.
        return lambda parts=parts: self.function(ctypes.c_long(x.size), ctypes.c_int(threads), *pointers)


def library_k(x, y):
    """Returns positions in the library's cycles per voxel of an image of half the grid: k = 0 is in cell SIZE / 2."""
    return [(axis - SIZE // 2) / axis.dtype.type(SIZE) for axis in (x, y)]


def library_plan(session, k, window, **arguments):
    dims = (SIZE // 2, SIZE // 2)
    plan = recon_library.Plan(
        session.library, dims, k, weights=np.ones(k[0].size, k[0].dtype), window=window, width=WIDTH, oversampling=2.0,
        **arguments,
    )  # fmt: skip
    info = plan.info()
    assert (info.width, list(info.grid)) == (WIDTH, [SIZE, SIZE, 1])
    return plan


def library_window(session, window):
    """Returns the library's window as a function of (dx, dy), up to a factor.

    Samples whose windows do not overlap are gridded in double precision on the CPU. They have equal y, and x at
    Chebyshev nodes between two cells. The values of each tap then determine its polynomial.
    """
    per_axis, spacing, degree = 20, 24, 19
    nodes = np.polynomial.chebyshev.chebpts1(per_axis * per_axis)
    row, column = (20 + spacing * index for index in np.divmod(np.arange(nodes.size), per_axis))
    x, y = column - 0.5 * (nodes + 1), row - 0.5
    out = session.poisoned((SIZE, SIZE), np.complex128, gpu=False)
    library_plan(session, library_k(x, y), window).grid_kspace(np.ones(x.size, np.complex128), out)
    left, top = (np.ceil(axis - WIDTH / 2).astype(np.int64) for axis in (x, y))
    t = 2 * (left - (x - WIDTH / 2)) - 1
    cells = np.arange(WIDTH)
    taps = np.stack([out.real[t0 + cells][:, l0 + cells].sum(axis=0) for t0, l0 in zip(top, left)])
    # The residual is of the order of rounding only if each tap is a polynomial of the offset.
    fits = [np.polynomial.chebyshev.chebfit(t, taps[:, j], degree) for j in cells]
    fitted = np.stack([np.polynomial.chebyshev.chebval(t, fit) for fit in fits], axis=1)
    require(relative(fitted, taps), 1e-12, "the library's window from its gridded samples")

    def along(d):
        place = d + WIDTH / 2
        j = np.clip(np.floor(place).astype(np.int64), 0, WIDTH - 1)
        value = np.zeros(d.shape)
        for tap, fit in enumerate(fits):
            value[j == tap] = np.polynomial.chebyshev.chebval(2 * (place[j == tap] - tap) - 1, fit)
        return value

    return lambda dx, dy: along(dx) * along(dy)


def check_kaiser_bessel(window):
    """Checks that a window is a Kaiser-Bessel window of some beta, found by its value at a quarter of the width."""
    d = np.linspace(-WIDTH / 2, WIDTH / 2 - 1e-9, 4001)
    zero = np.zeros(d.size)
    found = window(d, zero) / window(np.zeros(1), np.zeros(1))

    def formula(beta, distance):
        return np.i0(beta * np.sqrt(np.maximum(0, 1 - (2 * distance / WIDTH) ** 2))) / np.i0(beta)

    low, high = 1.0, 60.0
    target = np.interp(WIDTH / 4, d, found)
    for _ in range(60):
        beta = 0.5 * (low + high)
        low, high = (beta, high) if formula(beta, WIDTH / 4) > target else (low, beta)
    require(float(np.abs(found - formula(beta, d)).max()), 1e-5, "the library's Kaiser-Bessel window")
    return beta


class References:
    """The samples of one size, and the results in double precision."""

    def __init__(self, random, count, library_windows):
        self.count = count
        self.x, self.y, self.data = random_samples(random, count)
        self.exact = convolve(self.x, self.y, self.data, WIDTH, gaussian(WIDTH)[0])
        self.library = {
            name: convolve(self.x, self.y, self.data, WIDTH, window, periodic=True)
            for name, window in library_windows.items()
        }
        self.order, self.starts, self.sort_ms = sectors(self.x, self.y)


def checked(found, exact, what, scale=False):
    error = relative(scaled(found.astype(np.complex128).ravel(), exact.ravel()) if scale else found.ravel(),
                     exact.ravel())  # fmt: skip
    require(error, BOUND, what)
    return f"{error:.0e}"


def cpu_rows(session, references, names):
    """Returns rows of the CPU table, and the milliseconds of the serial loop with the table for each size."""
    rows, serial = [], {}
    counts = sorted({1, session.threads})
    with tempfile.TemporaryDirectory() as folder:
        loops = []
        try:
            for separable, name in ((0, "C, table by distance"), (1, "C, one exponential per cell of each axis")):
                loops.append((name, CpuLoop(folder, separable, gaussian(WIDTH)[1])))
        except FileNotFoundError as error:
            session.leave_out("the serial loop in C", f"no gcc: {error}")
        for sets in references:
            for name, loop in loops:
                for threads in counts:
                    out = session.poisoned((SIZE, SIZE), gpu=False)
                    work = loop.work(sets.x, sets.y, sets.data, threads, out)
                    work()
                    error = checked(out, sets.exact, f"{name}, {sets.count} samples")
                    milliseconds = session.wall_ms(work)
                    if loop is loops[0][1] and threads == 1:
                        serial[sets.count] = milliseconds
                    rows.append((sets.count, name, threads, milliseconds, "-", error))
            for window, name in names.items():
                for threads in counts:
                    plan = library_plan(session, library_k(sets.x, sets.y), window, threads=threads)
                    out = session.poisoned((SIZE, SIZE), gpu=False)
                    work = lambda p=plan, o=out, d=sets.data: p.grid_kspace(d, o)  # noqa: E731
                    work()
                    error = checked(out, sets.library[window], f"the library, {name}", scale=True)
                    plan_ms = in_ms(1e3 * plan.seconds)
                    rows.append((sets.count, f"recon, {name}", threads, session.wall_ms(work), plan_ms, error))
    return rows, serial


def cpu_table(page, rows, serial):
    def ratio(count, milliseconds):
        return f"{serial[count] / milliseconds:.3g}" if count in serial else "-"

    page.table(
        ("samples", "CPU", "threads", "time", "plan", "10^9 cells/s", "GFLOPS", "speed-up", "error"),
        [
            (f"{c:,}", name, threads, in_ms(ms), plan, *rates(c, WIDTH, ms), ratio(c, ms), error)
            for c, name, threads, ms, plan, error in rows
        ],
    )


class Kernels:
    """The kernels for one width of the window and one way to compute it."""

    def __init__(self, session, width, lookup, falloff, per_cell=PER_CELL):
        table = table_of(falloff, per_cell, width)
        options = {
            "SIZE": SIZE, "SECTOR": SECTOR, "WIDTH": width, "FALLOFF": f"{falloff:.9e}", "LOOKUP": lookup,
            "PER_CELL": per_cell, "TABLE": table.size, "DEGREE": DEGREE,
        }  # fmt: skip
        self.session, self.width = session, width
        self.module = session.module("cuda_gridding.cu", tuple(f"-D{name}={value}" for name, value in options.items()))
        cupy = session.cupy
        for name, values in (("table", table), ("polynomials", tap_polynomials(falloff, width))):
            place = self.module.get_global(f"window_{name}")
            cupy.ndarray(values.shape, cupy.float32, place).set(values)
        cupy.cuda.runtime.deviceSynchronize()

    def get(self, name):
        return self.module.get_function(name)

    def sector_kernel(self, blocks=0):
        """Returns `coarse_output` and its bytes of shared memory, which allow `blocks` per multiprocessor; 0: any."""
        runtime = self.session.cupy.cuda.runtime
        properties = runtime.getDeviceProperties(0)
        needed = 2 * 4 * (SECTOR + self.width) ** 2
        # With 1 / (blocks + 1) of the memory and a little more, one block more does not fit.
        allowed = properties["sharedMemPerMultiprocessor"] // (blocks + 1) + 1024 if blocks else needed
        size = max(needed, allowed // 16 * 16)
        kernel = self.get("coarse_output")
        kernel.max_dynamic_shared_size_bytes = size
        kernel.preferred_shared_memory_carveout = 100
        return kernel, size


class GpuSet:
    """The samples of one size on the GPU, in the order of the scan and sorted by sector, and the outputs."""

    def __init__(self, session, sets):
        self.session, self.sets, cupy = session, sets, session.cupy
        packed = np.stack([sets.x, sets.y, sets.data.real, sets.data.imag], axis=1).astype(np.float32)
        self.samples = cupy.asarray(packed)
        self.sorted = cupy.asarray(np.ascontiguousarray(packed[sets.order]))
        self.starts = cupy.asarray(sets.starts)
        self.interleaved = session.poisoned((SIZE, SIZE, 2), np.float32)
        self.parts = session.poisoned((2, SIZE, SIZE), np.float32)
        cupy.cuda.runtime.deviceSynchronize()

    def clear(self, array):
        array.data.memset_async(0, array.nbytes, self.session.stream)

    def naive(self, kernels, name):
        kernel = kernels.get(name)

        def work():
            self.clear(self.interleaved)
            kernel((self.sets.count,), (kernels.width**2,), (self.samples, self.interleaved))

        return work, self.interleaved

    def aligned(self, kernels, sort=False):
        kernel, samples = kernels.get("fine_input_aligned"), self.sorted if sort else self.samples

        def work():
            self.clear(self.parts)
            kernel((self.sets.count,), (kernels.width**2,), (samples, self.parts[0], self.parts[1]))

        return work, self.parts

    def coarse_input(self, kernels, sort=False):
        kernel, samples = kernels.get("coarse_input"), self.sorted if sort else self.samples
        blocks = -(-self.sets.count // CHUNK)

        def work():
            self.clear(self.parts)
            arguments = (samples, np.int32(self.sets.count), np.int32(CHUNK), self.parts[0], self.parts[1])
            kernel((blocks,), (kernels.width**2,), arguments)

        return work, self.parts

    def fine_output(self, kernels):
        kernel = kernels.get("fine_output")

        def work():
            arguments = (self.samples, np.int32(self.sets.count), self.parts[0], self.parts[1])
            kernel(((SIZE // 16) ** 2,), (256,), arguments)

        return work, self.parts

    def coarse_output(self, kernels, blocks=0):
        kernel, size = kernels.sector_kernel(blocks)

        def work():
            self.clear(self.parts)
            arguments = (self.sorted, self.starts, self.parts[0], self.parts[1])
            kernel(((SIZE // SECTOR) ** 2,), (kernels.width**2,), arguments, shared_mem=size)

        return work, self.parts

    def measure(self, side, exact, what):
        """Checks an assignment of the work in a poisoned output, and returns its milliseconds and its error."""
        work, output = side
        cupy, session = self.session.cupy, self.session
        with session.stream:
            output.fill(np.nan)
            work()
        session.stream.synchronize()
        found = cupy.asnumpy(output)
        found = found[..., 0] + 1j * found[..., 1] if output is self.interleaved else found[0] + 1j * found[1]
        error = checked(found, exact, f"{what}, {self.sets.count} samples")
        return repeated_ms(session, work), error


def repeated_ms(session, work):
    """Returns the milliseconds of one run. Short runs are repeated in one CUDA graph, and the time divided."""
    once = session.gpu_ms(work, runs=3)
    if once >= SHORT_MS:
        return session.gpu_ms(work, runs=3 if once > 20 else None)
    with session.stream:
        session.stream.begin_capture()
        for _ in range(REPEATS):
            work()
        graph = session.stream.end_capture()
    return session.gpu_ms(lambda: graph.launch(session.stream)) / REPEATS


def image_of(session, plan, grid):
    """Returns the image of gridded k-space in double precision: FFT, and the correction of the plan's window."""
    factors = []
    for axis in range(2):
        factors.append(np.full(SIZE // 2, np.nan))
        address = session.library.ffi.cast("double *", factors[-1].ctypes.data)
        session.library.call("recon_window_correction", plan.handle, axis, address)
    centred = np.fft.fftshift(np.fft.ifft2(np.fft.ifftshift(grid)))
    middle = slice(SIZE // 4, SIZE // 4 + SIZE // 2)
    return centred[middle, middle] * factors[1][:, None] * factors[0][None, :]


def library_on_gpu(session, sets, window, name):
    """Returns milliseconds of the library on the GPU, and the error of its gridded k-space.

    There are four times, in this order. The first is of gridded k-space from and to the host's memory. The second is of
    the adjoint (gridding, FFT and correction) in the GPU's memory, the third of the same for a few samples. The last is
    of the plan.
    """
    cupy, k = session.cupy, library_k(sets.x, sets.y)
    grid = session.poisoned((SIZE, SIZE), gpu=False)
    on_host = library_plan(session, k, window, gpus=[0])
    on_host.grid_kspace(sets.data, grid)
    what = f"the library on the GPU, {name}"
    error = checked(grid, sets.library[window], what, scale=True)
    host_ms = session.wall_ms(lambda: on_host.grid_kspace(sets.data, grid))
    times = []
    for count in (sets.count, FEW):
        plan = library_plan(session, [axis[:count] for axis in k], window, gpus=[0], stream=session.stream.ptr)
        data, image = cupy.asarray(sets.data[:count]), session.poisoned((SIZE // 2, SIZE // 2))
        cupy.cuda.runtime.deviceSynchronize()
        plan.adjoint(data, image)
        session.stream.synchronize()
        if count == sets.count:
            plan_ms = 1e3 * plan.seconds
            expected = image_of(session, plan, sets.library[window])
            checked(cupy.asnumpy(image), expected, f"{what}, adjoint", scale=True)

        def calls(plan=plan, data=data, image=image):
            for _ in range(REPEATS):
                plan.adjoint(data, image)

        times.append(session.gpu_ms(calls) / REPEATS)
    return host_ms, *times, plan_ms, error


ASSIGNMENTS_TEXT = f"""
- **Fine by input**: a block for each sample, a thread for each cell of its window, atomic additions to the grid.
- **Coarse by input**: a block for {CHUNK} consecutive samples. The paper proposes sums in shared memory. Random
  samples that follow each other have no cells in common, so the sums are atomic additions to the grid too. The rows
  "sorted" have the same kernels on samples sorted by sector, which is the locality that the paper expects of a
  trajectory.
- **Fine by output**: a thread for each cell, which looks at all samples for those in reach (the paper: a block for each
  cell). It needs no sort, no atomic additions and no zeroed grid.
- **Coarse by output** (the paper's sectors): a block for each sector of {SECTOR} x {SECTOR} cells, with a margin of
  half a window in shared memory. Samples are sorted by sector on the CPU (NumPy, one thread), which is not part of the
  time. Sectors with their margins are added to the grid by atomic additions; the paper added the margins on the host.

All take the window from a table in constant memory with linear interpolation. Times include setting the grid to 0 if
the kernel needs that.
"""

LADDER_TEXT = f"""
Each row adds one optimisation to the row above, in the order of the paper's table 1. "Gain" is relative to the row
above. The paper gives one percentage per optimisation. The gains of the library's rows are relative to the last rung.

- The first four rows are fine by input with atomic additions. The GeForce 8800 GTX had none, so the paper's kernel
  either lost additions or avoided shared cells; it does not say which.
- One or two blocks per multiprocessor are enforced by the shared memory that a block asks for.
- The library's window is different, Kaiser-Bessel or its default, with 8 cells along each axis as well. Its gridded
  k-space is checked against a convolution with its own window, up to the scale that gridding applies to its weights.
  Windows wrap around the edge of the grid. The samples are sorted in the plan.
- The C API returns gridded k-space to the host's memory only. Therefore three times are given. "Gridding, FFT and
  correction" is the adjoint in the GPU's memory, an upper bound of the time for gridding. "Gridding alone" is that time
  minus the time of the adjoint of {FEW} samples. The row is left out if the two times differ by less than a quarter, as
  for few samples. "From and to the host" includes the transfers.
- The library's calls are issued one by one, so a short time includes the call.

Three of the five optimisations gain nothing today. The time of the naive kernel is probably that of its
atomic additions, which a copy of the sample and the layout of the arrays do not change. The table in constant memory is
a loss: the threads of a warp need different entries, and the hardware reads different addresses one after the other
(the paper's section 4.5 found this too). Special function units compute the exponential faster. The
kernel with sectors takes one sample at a time, with a barrier, and the table limits it as well. With the exponential or
with polynomials it is as fast as the naive kernel or faster, see the look-ups below. The library's kernel has sectors
too. It keeps the cells in registers, has no barriers, and adds many samples at once as a matrix product.
"""

LOOKUP_TEXT = """
The paper looks up its window in a table, indexed by the Euclidean distance between sample and cell. Its granularity is
half a cell, and the index is truncated; here the nearest entry is taken, which has half the error. The library has no
distance: its window is a product of one factor per axis, and each factor is a polynomial of the offset in the cell. A
sample with a window of W x W cells then needs 2 W polynomials in place of W^2 square roots and look-ups. The Fourier
transform of the window is a product too, so the correction of the image is exact for the window that was used. Only a
Gaussian is a function of the distance and a product, so all rows below have the same Gaussian.

The errors are relative l2 errors of the window's values over random distances, against the exact window in double
precision. "Listing" is the flat Gaussian of the paper's listing, s half the width. The time is that of the sector
kernel with this look-up, which is checked against a convolution in double precision with the same look-up.
"""


def assignments(session, page, gpu_sets, kernels, slow_limit):
    page.section("The four assignments of work", ASSIGNMENTS_TEXT)
    rows = []
    for gpu in gpu_sets:
        sides = [
            ("fine by input", lambda g=gpu: g.aligned(kernels), "-"),
            ("fine by input, sorted", lambda g=gpu: g.aligned(kernels, True), in_ms(gpu.sets.sort_ms)),
            ("coarse by input", lambda g=gpu: g.coarse_input(kernels), "-"),
            ("coarse by input, sorted", lambda g=gpu: g.coarse_input(kernels, True), in_ms(gpu.sets.sort_ms)),
            ("coarse by output", lambda g=gpu: g.coarse_output(kernels), in_ms(gpu.sets.sort_ms)),
        ]
        if gpu.sets.count <= slow_limit:
            sides.insert(4, ("fine by output", lambda g=gpu: g.fine_output(kernels), "-"))
        for name, side, sort in sides:
            milliseconds, error = gpu.measure(side(), gpu.sets.exact, name)
            count = gpu.sets.count
            rows.append((f"{count:,}", name, in_ms(milliseconds), sort, *rates(count, WIDTH, milliseconds), error))
    page.table(("samples", "assignment", "time", "sort (CPU)", "10^9 cells/s", "GFLOPS", "error"), rows)


def ladder_rows(session, gpu, width, exact, computed, table, serial, names):
    """Returns the rows of the ladder for one set of samples and one width."""
    rungs = [
        ("naive, fine by input", "", lambda: gpu.naive(computed, "fine_input_naive")),
        ("samples cached in shared memory", "+40 %", lambda: gpu.naive(computed, "fine_input_cached")),
        ("aligned structures, two arrays", "+70 %", lambda: gpu.aligned(computed)),
        ("window table in constant memory", "+20 %", lambda: gpu.aligned(table)),
        ("sectors in shared memory, 1 block per multiprocessor", "+310 %", lambda: gpu.coarse_output(table, 1)),
        ("2 blocks per multiprocessor", "+35 %", lambda: gpu.coarse_output(table, 2)),
        ("as many blocks as fit (not in the paper)", "", lambda: gpu.coarse_output(table)),
    ]
    rows, previous, naive, count = [], None, None, gpu.sets.count

    def row(name, paper, milliseconds, error, compare=True):
        gain = f"{100 * (previous / milliseconds - 1):+.0f} %" if previous and compare else ""
        cpu = f"{serial[count] / milliseconds:.3g}" if width == WIDTH and count in serial else "-"
        over_naive = f"{naive / milliseconds:.3g}"
        rates_of = rates(count, width, milliseconds)
        rows.append((f"{count:,}", name, in_ms(milliseconds), gain, paper, over_naive, cpu, *rates_of, error))

    for name, paper, side in rungs:
        milliseconds, error = gpu.measure(side(), exact, name)
        naive = naive or milliseconds
        row(name, paper, milliseconds, error)
        previous = milliseconds
    for window, name in names.items() if width == WIDTH else ():
        host_ms, adjoint_ms, few_ms, plan_ms, error = library_on_gpu(session, gpu.sets, window, name)
        row(f"recon, {name}: gridding, FFT and correction (plan {in_ms(plan_ms)})", "", adjoint_ms, error)
        # A smaller difference would be mostly the noise of the two times.
        if adjoint_ms > 1.25 * few_ms:
            row(f"recon, {name}: gridding alone, by the difference", "", adjoint_ms - few_ms, error)
        row(f"recon, {name}: gridded k-space from and to the host", "", host_ms, error)
    return rows


LADDER = (
    "samples", "rung", "time", "gain", "paper's gain", "over naive", "over one CPU thread", "10^9 cells/s", "GFLOPS",
    "error",
)  # fmt: skip


def lookups(session, page, gpu):
    """Compares the ways to compute a window: errors on the CPU, and times of one kernel on the GPU."""
    page.section("Window: table by distance, or separable polynomials", LOOKUP_TEXT)
    falloffs = [gaussian(WIDTH)[1], gaussian(WIDTH, WIDTH / 2)[1]]
    dx, dy = (session.random.uniform(-WIDTH / 2, WIDTH / 2, 200_000) for _ in range(2))
    ways = [("exponential of the distance", 0, PER_CELL)]
    ways += [(f"nearest entry, 1/{p} cell", 1, p) for p in (2, 16, 256, 2048)]
    ways += [(f"linear interpolation, 1/{p} cell", 2, p) for p in (2, 16, 64, 256)]
    ways += [(f"separable, polynomials of degree {DEGREE}", 3, PER_CELL)]
    rows = []
    for name, lookup, per_cell in ways:
        made = []
        for falloff in falloffs:
            table = table_of(falloff, per_cell, WIDTH)
            made.append(
                [
                    lambda dx, dy, f=falloff: np.exp(-np.float32(f) * (dx * dx + dy * dy).astype(np.float32)),
                    nearest(table, per_cell), linear(table, per_cell),
                    polynomial(tap_polynomials(falloff, WIDTH), WIDTH),
                ][lookup]
            )  # fmt: skip
        errors = [
            f"{relative(window(dx, dy), np.exp(-falloff * (dx * dx + dy * dy))):.0e}"
            for window, falloff in zip(made, falloffs)
        ]
        entries = table_of(falloffs[0], per_cell, WIDTH).size if lookup in (1, 2) else "-"
        times = ("-", "-")
        if gpu:
            kernels = Kernels(session, WIDTH, lookup, falloffs[0], per_cell)
            sets = gpu.sets
            exact = sets.exact if lookup == 0 else convolve(sets.x, sets.y, sets.data, WIDTH, made[0])
            milliseconds, error = gpu.measure(gpu.coarse_output(kernels), exact, name)
            times = (in_ms(milliseconds), error)
        rows.append((name, entries, *errors, *times))
    page.table(("look-up", "entries", "error", "error, listing", "time", "kernel's error"), rows)


def main():
    session = Session(__doc__)
    page = Page(session, "cuda_gridding", "CUDA gridding: assignments of work, and a ladder of optimisations", INTRO)
    page.section("The window", WINDOW_TEXT)
    check_references(session.random)
    names = {recon_library.KAISER_BESSEL: "Kaiser-Bessel", recon_library.MINIMAX: "its default window"}
    windows = {window: library_window(session, window) for window in names}
    beta = check_kaiser_bessel(windows[recon_library.KAISER_BESSEL])
    progress(f"the library's Kaiser-Bessel window has beta {beta:.3f}")
    counts = SAMPLES[:2] if session.quick else SAMPLES
    references = [References(session.random, count, windows) for count in counts]
    rows, serial = cpu_rows(session, references, names)
    gpu_sets = [GpuSet(session, sets) for sets in references] if session.cupy else []
    if gpu_sets:
        falloff = gaussian(WIDTH)[1]
        computed, table = (Kernels(session, WIDTH, lookup, falloff) for lookup in (0, 2))
        assignments(session, page, gpu_sets, table, SAMPLES[1] if session.quick else SAMPLES[2])
        page.section("The ladder of optimisations", LADDER_TEXT)
        ladder = []
        for gpu in gpu_sets:
            ladder += ladder_rows(session, gpu, WIDTH, gpu.sets.exact, computed, table, serial, names)
        page.table(LADDER, ladder)
        page.text("The same with the width of the listing, 16 x 16 cells:")
        window, falloff = gaussian(16)
        computed, table = (Kernels(session, 16, lookup, falloff) for lookup in (0, 2))
        sets = references[0]
        exact = convolve(sets.x, sets.y, sets.data, 16, window)
        page.table(LADDER, ladder_rows(session, gpu_sets[0], 16, exact, computed, table, serial, names))
    else:
        session.leave_out("the four assignments of work")
        session.leave_out("the ladder of optimisations")
        session.leave_out("the times of the window's look-ups")
    page.section("On the CPU", CPU_TEXT)
    cpu_table(page, rows, serial)
    lookups(session, page, gpu_sets[1] if gpu_sets else None)
    page.section("How it is timed", TIMED_TEXT)
    page.write()


CPU_TEXT = """
The paper's baseline is one thread of an optimised library on a Core 2 Duo at 2 GHz. Its GeForce 8800 GTX is 114 times
as fast (about 20 GFLOPS), and its GeForce 8400M GS 17.5 times. Here the baseline is a loop in C (gcc -O3 -march=native)
in single precision, with the table of the GPU or with one exponential for each cell of an axis. With several threads,
each owns a band of rows and looks at all samples. The speed-up is relative to one thread with the table. "Plan" is the
library's preparation, which sorts the samples and is not part of the time.
"""

TIMED_TEXT = f"""
GPU times are medians between CUDA events, with data in the GPU's memory. Runs of less than {SHORT_MS:.0f} ms are
repeated {REPEATS} times in a CUDA graph, so that the time of a launch does not count. Their data are in the cache. The
library is called {REPEATS} times in a row. CPU times are medians by the wall clock. One update of a cell counts as 4
operations, without the computation of the window. Every row was checked before it was timed: "error" is the relative
l2 error against a convolution in double precision, at most {BOUND:.0e}, from an output that was filled with NaN.
"""


if __name__ == "__main__":
    main()
