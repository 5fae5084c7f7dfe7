"""The experiments of Yang et al. 2013: gridding of PROPELLER data by scatter and by gather, on GPU and CPU.

    propeller.py [--quick] [--no-gpu] [--build DIR] [--output DIR]

The page has the grid values of tables 1 and 2, the times and ratios of figures 10 and 11, and errors of images.
"""

import shutil
import tempfile

import numpy as np

import propeller_scan as scan
from harness import Page, Session, percent_and_psnr, progress, recon_library, relative, require, scaled
from measure import direct_adjoint, random_complex, voxel_positions

# The paper's block of threads.
BLOCK = 16
# Bound for the error of gridding in single precision, relative to the convolution in double precision.
KERNEL_ERROR = 1e-4
# Tolerance of the library: its error must meet the same bound.
TOLERANCE = 5e-5
RADII = (1.0, 1.5, 2.0, 3.0)
# The moved head: the largest turn of a blade in degrees, and the largest shift in voxels.
TURN, SHIFT = 10, 5
# Voxels at which the library is compared with direct sums.
CHECKED_VOXELS = 50
# Values of a cell in tables 1 and 2. Gridding: on the CPU, and two runs on the GPU. Reverse gridding: on the CPU, and
# on the GPU, whose two runs are equal.
PAPER_VALUES = {
    (13, 327): (0.697381 + 14.125287j, 5.245859 + 9.457215j, -4.595843 + 9.958951j,
                0.697381 + 14.125287j, 0.696859 + 14.124587j),
    (14, 202): (-9.497768 - 0.931772j, -9.499759 - 0.933009j, -3.301559 - 0.078084j,
                -9.497768 - 0.931772j, -9.499758 - 0.933008j),
    (14, 329): (-6.330377 - 5.144327j, -3.912250 - 2.354891j, -5.089190 - 5.805894j,
                -6.330377 - 5.144327j, -6.329720 - 5.144278j),
    (154, 209): (-34.936935 + 104.920227j, -33.445343 + 101.700485j, -28.070139 + 74.780998j,
                 -34.936935 + 104.920235j, -34.936508 + 104.916725j),
    (234, 228): (-119.441650 + 131.354736j, -111.075531 + 120.896126j, -88.876022 + 92.113686j,
                 -119.441658 + 131.354721j, -119.434479 + 131.350266j),
    (276, 236): (-440.715088 - 81.186028j, -400.623810 - 74.810127j, -379.718231 - 73.184990j,
                 -440.715088 - 81.186020j, -440.728760 - 81.185410j),
    (340, 106): (4.932378 - 5.873862j, 4.933623 - 5.874030j, 4.933623 - 5.874030j,
                 4.932378 - 5.873862j, 4.933624 - 5.874030j),
    (438, 207): (-52.370735 - 59.816231j, -52.370815 - 59.816929j, -47.514206 - 51.860348j,
                 -52.370735 - 59.816235j, -52.370815 - 59.816929j),
    (478, 233): (40.921024 - 1.009181j, 38.144135 - 2.000100j, 40.920715 - 1.008464j,
                 40.921021 - 1.009181j, 40.920719 - 1.008464j),
    (501, 321): (-16.783524 - 1.733128j, -13.417697 - 1.943803j, -16.784693 - 1.733366j,
                 -16.783524 - 1.733128j, -16.784689 - 1.733366j),
}  # fmt: skip
# Figures 10 and 11: seconds, and ratios of times.
PAPER_MS = {"CPU gridding": 500, "GPU gridding": 30, "CPU reverse gridding": 1300, "GPU reverse gridding": 67}
DIFFERENCES = {
    "CPU gridding": "window by a power series; several threads add by atomic additions; the paper has one thread",
    "CPU reverse gridding": "threads share the rows of the grid; the paper has one thread",
    "CPU reverse gridding, disc rotated": "a disc remains the same when it is rotated, so fewer samples are visited",
    "recon, CPU": "product of two windows; sorted samples; multiplies by the density weights",
    "GPU gridding": "conflicts of writing; one kernel for window, distance and sum",
    "GPU gridding with atomics": "not in the paper",
    "GPU reverse gridding": "one kernel for window, distance and sum",
    "GPU reverse gridding, disc rotated": "fewer samples are visited",
    "recon, GPU": "without copies: gridding, FFT and image; with copies: gridding only",
}
CONFLICTING, ATOMIC = "scatter with conflicts", "scatter with atomics"
CORNERS, DISC = "gather (RGA), square rotated", "gather (RGA), disc rotated"
LIBRARY = "recon"


class Problem:
    """The scan of the phantom, without and with motion, and its gridding in double precision."""

    def __init__(self, session):
        self.session, self.dims = session, (scan.MATRIX, scan.MATRIX)
        self.k = [axis.astype(np.float32) for axis in scan.positions()]
        # The library refuses positions beyond half of the width.
        self.inside = np.maximum(np.abs(self.k[0]), np.abs(self.k[1])) <= 0.5
        self.truth = session.library.phantom_image(self.dims)
        self.convolution = scan.Convolution(self.k, scan.RADIUS)
        self.weights = self.convolution.density_weights()
        angles = np.radians(session.random.uniform(-TURN, TURN, scan.BLADES))
        shifts = session.random.uniform(-SHIFT, SHIFT, (scan.BLADES, 2))
        self.data = {
            "without motion": session.library.phantom(self.dims, self.k, 1)[0][0],
            "with motion": scan.moved_data(session.library, self.dims, self.k, angles, shifts),
        }

    def weighted(self, name):
        """Returns the data times their density weights, complex64."""
        return (self.data[name] * self.weights).astype(np.complex64)

    def plan(self, **arguments):
        k = [np.ascontiguousarray(axis[self.inside]) for axis in self.k]
        weights = self.weights[self.inside].astype(np.float32)
        plan = recon_library.Plan(
            self.session.library, self.dims, k, tolerance=TOLERANCE, weights=weights, oversampling=2.0, **arguments
        )
        grid = tuple(plan.info().grid)[:2]
        if grid != (scan.GRID, scan.GRID):
            raise RuntimeError(f"the library's grid is {grid}, not {scan.GRID} x {scan.GRID}: set its oversampling")
        return plan


class LibraryGridding:
    """The library's gridding of the same scan, with host arrays."""

    def __init__(self, problem, **arguments):
        self.problem, self.plan = problem, problem.plan(**arguments)

    def grid(self, data):
        """Returns gridded k-space of data without density weights."""
        grid = np.full((scan.GRID, scan.GRID), np.nan, np.complex64)
        self.plan.grid_kspace(np.ascontiguousarray(data[self.problem.inside]), grid)
        return grid

    def image(self, grid):
        voxels = scan.MATRIX
        part = slice((scan.GRID - voxels) // 2, (scan.GRID + voxels) // 2)
        image = np.fft.fftshift(np.fft.ifft2(np.fft.ifftshift(grid)))[part, part]
        x, y = (self.plan.window_correction(axis, voxels) for axis in range(2))
        return image * np.outer(y, x)

    def check(self, what):
        """Compares the image of fresh random data with direct sums at some voxels, at the best scale."""
        problem, random = self.problem, self.problem.session.random
        data = random_complex(random, problem.weights.shape)
        chosen = random.choice(scan.MATRIX**2, CHECKED_VOXELS, replace=False)
        weights = problem.weights[problem.inside].astype(np.float32)
        k = [axis[problem.inside] for axis in problem.k]
        exact = direct_adjoint(k, voxel_positions(problem.dims, chosen), weights * data[problem.inside])
        found = self.image(self.grid(data)).ravel()[chosen]
        error = relative(scaled(found, exact), exact)
        require(error, KERNEL_ERROR, what)
        return error

    def work(self, data):
        """Returns a function that grids `data` to the same array each time."""
        inside = np.ascontiguousarray(data[self.problem.inside])
        grid = np.full((scan.GRID, scan.GRID), np.nan, np.complex64)
        return lambda: self.plan.grid_kspace(inside, grid)


class Kernels:
    """The kernels of propeller.cu for one radius of the window."""

    def __init__(self, session, k, radius):
        self.session, self.cupy, self.host_k = session, session.cupy, k
        self.modules = {corners: session.module("propeller.cu", scan.macros(radius, corners)) for corners in (0, 1)}
        self.k = [self.cupy.asarray(axis, self.cupy.float32) for axis in k]
        self.data = self.cupy.zeros(k[0].size, self.cupy.complex64)
        self.turns = self.cupy.asarray(scan.turns())
        self.grid = session.poisoned((scan.GRID, scan.GRID))
        self.cupy.cuda.Device().synchronize()

    def work(self, name):
        """Returns a function that grids the data on the GPU to `grid`, on the session's stream."""
        stream, grid = self.session.stream, self.grid
        module = self.modules[int(name == CORNERS)]
        size, block = np.int32(scan.GRID), (BLOCK, BLOCK)
        if name in (CORNERS, DISC):
            kernel = module.get_function("gather")
            blocks = (-(-scan.GRID // BLOCK),) * 2
            sizes = tuple(map(np.int32, (scan.SAMPLES, scan.ECHOES, scan.BLADES, scan.MATRIX)))
            arguments = (*self.k, self.data, *sizes, self.turns, grid, size)
            return lambda: kernel(blocks, block, arguments, stream=stream)
        kernel = module.get_function({CONFLICTING: "scatter_conflicting", ATOMIC: "scatter_atomic"}[name])
        lines = scan.BLADES * scan.ECHOES
        blocks = (-(-scan.SAMPLES // BLOCK), -(-lines // BLOCK))
        arguments = (*self.k, self.data, np.int32(scan.SAMPLES), np.int32(lines), grid, size)

        def run():
            # A scatter adds to zeros. A gather writes each cell once.
            grid.data.memset_async(0, grid.nbytes, stream)
            kernel(blocks, block, arguments, stream=stream)

        return run

    def poison(self):
        self.grid.fill(np.nan)

    def result(self, name, data):
        """Returns the grid of `data` on the host. The grid has NaN before."""
        self.data.set(np.ascontiguousarray(data, np.complex64))
        self.poison()
        self.cupy.cuda.Device().synchronize()
        self.work(name)()
        self.session.stream.synchronize()
        return self.grid.get()

    def copied(self, name, data):
        """Returns a function that copies positions and data to the GPU, grids them, and copies the grid back."""
        stream, work = self.session.stream, self.work(name)
        host = np.full((scan.GRID, scan.GRID), np.nan, np.complex64)
        inputs = [np.ascontiguousarray(a) for a in (*self.host_k, data)]

        def run():
            for array, values in zip((*self.k, self.data), inputs):
                array.set(values, stream=stream)
            work()
            self.grid.get(stream=stream, out=host)
            stream.synchronize()

        return run


def thread_text(threads):
    return "one thread" if threads == 1 else f"{threads} threads"


def value_text(value):
    return f"{value.real:.6g}{value.imag:+.6g}i"


def ms_text(ms):
    return "-" if ms is None else f"{ms:.3g}"


def ratio_text(slow, fast):
    return "-" if slow is None or fast is None else f"{slow / fast:.3g}"


class Methods:
    """All ways of gridding that exist on this machine: names and functions that return the grid of weighted data."""

    def __init__(self, session, problem, folder):
        self.session, self.problem = session, problem
        self.loops = {}
        if shutil.which("gcc"):
            self.loops = {corners: scan.Loops(folder, scan.RADIUS, corners) for corners in (0, 1)}
        else:
            session.leave_out("the loops on a CPU", "there is no gcc to compile them")
        self.kernels = None
        if session.cupy:
            self.kernels = Kernels(session, problem.k, scan.RADIUS)
        else:
            session.leave_out("the kernels of propeller.cu, and the library on a GPU")
        self.libraries = {"CPU": LibraryGridding(problem, threads=session.threads)}
        if session.cupy:
            self.libraries["GPU"] = LibraryGridding(problem, gpus=[0])

    def loop(self, name, data, threads, corners=1):
        """Returns the grid of weighted data by a loop in C. `name`: scatter or gather."""
        grid = np.full((scan.GRID, scan.GRID), np.nan, np.complex64)
        self.loops[corners].work(name, self.problem.k, data, grid, threads)()
        return grid

    def check(self):
        """Checks every method with fresh random data, before any is timed. Returns the errors."""
        session, problem = self.session, self.problem
        data = random_complex(session.random, problem.weights.shape)
        exact = problem.convolution.grid(data)
        errors = {}
        for corners in self.loops:
            for name in ("scatter", "gather"):
                for threads in (1, session.threads):
                    form = "" if name == "scatter" else ", square rotated" if corners else ", disc rotated"
                    what = f"CPU, {name}{form}, {thread_text(threads)}"
                    errors[what] = relative(self.loop(name, data, threads, corners), exact)
                    require(errors[what], KERNEL_ERROR, what)
        if self.kernels:
            for name in (CONFLICTING, ATOMIC, CORNERS, DISC):
                error = errors[f"GPU, {name}"] = relative(self.kernels.result(name, data), exact)
                # The scatter with conflicts is wrong by design. Its error is reported, without a bound.
                if name != CONFLICTING:
                    require(error, KERNEL_ERROR, f"GPU, {name}")
        for device, library in self.libraries.items():
            errors[f"{LIBRARY}, {device}"] = library.check(f"the library on the {device}")
        return errors


def tables_of_values(session, page, methods):
    """Adds tables 1 and 2: values of ten cells."""
    data = methods.problem.weighted("without motion")
    serial, reverse = (methods.loop(name, data, 1) if methods.loops else None for name in ("scatter", "gather"))
    runs = {}
    for name in (CONFLICTING, ATOMIC, CORNERS):
        runs[name] = [methods.kernels.result(name, data) if methods.kernels else None for _ in range(2)]

    def at(grid, cell):
        return "-" if grid is None else value_text(complex(grid[cell[1], cell[0]]))

    page.section(
        "Values of ten cells (tables 1 and 2)",
        "The cells are those of the paper, as (x, y). Its values are of a water phantom and a scanner's units, ours of "
        "the phantom without motion, so only the agreement between columns can be compared. The paper's reverse "
        "gridding gives the same value in both runs on the GPU.",
    )
    page.text("Table 1: gridding. Two runs on the GPU, with conflicts of writing.")
    page.table(
        ("cell", "paper: CPU", "GPU, run 1", "GPU, run 2", "here: CPU", "GPU, run 1", "GPU, run 2"),
        [(cell, *map(value_text, values[:3]), at(serial, cell), *(at(grid, cell) for grid in runs[CONFLICTING]))
         for cell, values in PAPER_VALUES.items()],
    )  # fmt: skip
    page.text("Table 2: reverse gridding (gather).")
    page.table(
        ("cell", "paper: CPU gridding", "CPU reverse", "GPU reverse, both runs",
         "here: CPU gridding", "CPU reverse", "GPU reverse, run 1", "run 2"),
        [(cell, *map(value_text, (values[0], *values[3:])), at(serial, cell), at(reverse, cell),
          *(at(grid, cell) for grid in runs[CORNERS]))
         for cell, values in PAPER_VALUES.items()],
    )  # fmt: skip
    if methods.kernels:
        page.text("Gridding by atomic additions on the GPU, which is not in the paper:")
        page.table(
            ("cell", "here: CPU", "GPU atomic, run 1", "run 2"),
            [(cell, at(serial, cell), *(at(grid, cell) for grid in runs[ATOMIC])) for cell in PAPER_VALUES],
        )


def paper_deviation(first, last):
    """Returns the largest deviation of the paper's GPU values from those of its CPU, as text."""
    largest = max(
        abs(value - values[0]) / abs(values[0]) for values in PAPER_VALUES.values() for value in values[first:last]
    )
    return f"{100 * largest:.2g} %"


def run_to_run(session, page, methods):
    """Adds the table of differences from run to run, over the whole grid."""
    problem, runs = methods.problem, 5 if session.quick else 20
    data, plain = problem.weighted("without motion"), problem.data["without motion"]
    exact = problem.convolution.grid(data)
    cells = scan.GRID**2
    # Cells without any sample are 0 for every method.
    filled = exact != 0
    grids = {}
    if methods.loops:
        grids["CPU, scatter, one thread"] = lambda: methods.loop("scatter", data, 1)
        grids[f"CPU, scatter with atomics, {session.threads} threads"] = lambda: methods.loop(
            "scatter", data, session.threads
        )
        grids[f"CPU, gather (RGA), {session.threads} threads"] = lambda: methods.loop("gather", data, session.threads)
    for name in (CONFLICTING, ATOMIC, CORNERS, DISC) if methods.kernels else ():
        grids[f"GPU, {name}"] = lambda name=name: methods.kernels.result(name, data)
    for device, library in methods.libraries.items():
        grids[f"{LIBRARY}, {device}"] = lambda library=library: library.grid(plain)
    paper = {
        f"GPU, {CONFLICTING}": ("9 of 10", paper_deviation(1, 3)),
        f"GPU, {CORNERS}": ("0 of 10", paper_deviation(4, 5)),
    }
    rows = []
    for name, compute in grids.items():
        first, changed, largest = compute(), np.zeros((scan.GRID, scan.GRID), bool), 0.0
        for _ in range(runs - 1):
            again = compute()
            # Numbers are compared by their bits.
            bits = [a.view(np.uint64) for a in (first, again)]
            changed |= bits[0] != bits[1]
            largest = max(largest, float(np.abs(again.astype(np.complex128) - first).max()))
        if name.startswith(LIBRARY):
            own = ("-", "-")
        else:
            wrong = np.abs(first - exact) > 0.01 * np.abs(exact)
            own = (f"{relative(first, exact):.1e}", f"{100 * wrong[filled].mean():.2g} %")
        rows.append(
            (name, *paper.get(name, ("-", "-")), f"{np.count_nonzero(changed):,} of {cells:,}",
             f"{largest / np.abs(first).max():.1e}", *own)
        )  # fmt: skip
    page.section(
        "The whole grid, from run to run",
        f"{runs} runs with the same data. The table has the number of values whose bits differ from the first run in "
        "any later run, and the largest difference from the first run, relative to the largest value of the grid. "
        "The error (l2 norm) is that of the first run relative to the convolution in double precision. The last "
        "column is the part of the values that are wrong by more than 1 % of themselves. The library has a "
        "different window, so its grid has different values; its error is in the first table. The columns of the "
        "paper are of its ten cells: how many differ between its two runs, and the largest deviation from its CPU, "
        "relative to the value.",
    )
    page.table(
        ("method", "paper: cells that differ", "paper: deviation", "values that differ", "largest difference", "error",
         "wrong by more than 1 %"),
        rows,
    )  # fmt: skip
    page.text(
        "The scatter with conflicts loses sums. Samples of a line are about half a cell apart, so the threads of a "
        "warp add to the same cells in the same instruction, and only one of the sums is stored. Atomic additions "
        "lose nothing, but rounding depends on their order. A gather has one order. In the paper's table 1, single "
        "values agree with its CPU: there the threads happened to run one after the other."
    )


def table_of_errors(page, errors):
    page.section(
        "Errors before the times",
        "Relative l2 error for fresh random data. Loops and kernels are compared with the convolution in double "
        "precision by numpy, the library's image with direct sums at some voxels. Except for the scatter with "
        f"conflicts all must be at most {KERNEL_ERROR:.0e}, or the page is not written. Outputs contain NaN before a "
        "run.",
    )
    page.table(("method", "error"), [(name, f"{error:.1e}") for name, error in errors.items()])


def times(session, page, methods):
    """Adds figures 10 and 11: times and their ratios."""
    problem, threads = methods.problem, session.threads
    data, plain = problem.weighted("without motion"), problem.data["without motion"]
    grid = np.full((scan.GRID, scan.GRID), np.nan, np.complex64)
    ms, copies = {}, {}
    cpu_loops = {
        "CPU gridding": ("scatter", 1),
        "CPU reverse gridding": ("gather", 1),
        "CPU reverse gridding, disc rotated": ("gather", 0),
    }
    for name, (loop, corners) in cpu_loops.items() if methods.loops else ():
        for count in dict.fromkeys((1, threads)):
            progress(f"{name}, {thread_text(count)}")
            work = methods.loops[corners].work(loop, problem.k, data, grid, count)
            ms[name, count] = session.wall_ms(work)
    plan_ms = {}
    for count in dict.fromkeys((1, threads)):
        library = LibraryGridding(problem, threads=count)
        ms[f"{LIBRARY}, CPU", count] = session.wall_ms(library.work(plain))
        plan_ms[count] = 1e3 * library.plan.seconds
    kernels = {"GPU gridding": CONFLICTING, "GPU gridding with atomics": ATOMIC, "GPU reverse gridding": CORNERS,
               "GPU reverse gridding, disc rotated": DISC}  # fmt: skip
    if methods.kernels:
        methods.kernels.data.set(data)
        for name, kernel in kernels.items():
            progress(name)
            ms[name, 0] = session.gpu_ms(methods.kernels.work(kernel), before=methods.kernels.poison)
            copies[name] = session.wall_ms(methods.kernels.copied(kernel, data))
        on_gpu = problem.plan(gpus=[0], stream=session.stream.ptr)
        samples = session.cupy.asarray(plain[problem.inside])
        image = session.poisoned(problem.dims)
        ms[f"{LIBRARY}, GPU", 0] = session.gpu_ms(lambda: on_gpu.grid(samples, image))
        copies[f"{LIBRARY}, GPU"] = session.wall_ms(methods.libraries["GPU"].work(plain))
        plan_ms[0] = 1e3 * methods.libraries["GPU"].plan.seconds
    page.section(
        "Times (figure 10)",
        "Milliseconds for one coil. GPU: between events, without copies. This includes setting the grid to zeros "
        "before a scatter. GPU with copies: by the wall clock, with positions and data from the host, and the grid "
        "back. The paper copies these too, but does not state whether its times include it. The library sorts the "
        "samples once, when a plan is created, so it copies the data and the grid only.",
    )
    rows = [
        (name, PAPER_MS.get(name, "-"), *(ms_text(ms.get((name, count))) for count in (1, threads, 0)),
         ms_text(copies.get(name)), DIFFERENCES[name])
        for name in DIFFERENCES
        if name in copies or (name, 1) in ms
    ]  # fmt: skip
    page.table(
        ("method", "paper", "CPU, one thread", f"CPU, {thread_text(threads)}", "GPU", "GPU with copies",
         "what is different from the paper"),
        rows,
    )  # fmt: skip
    plans = [
        f"{ms_text(value)} ms ({f'CPU, {thread_text(count)}' if count else 'GPU'})" for count, value in plan_ms.items()
    ]
    info = methods.libraries["CPU"].plan.info()
    page.text(
        f"The library's window is {info.width} cells wide along each axis, for a tolerance of {TOLERANCE:.0e}; the "
        f"window of the paper's methods is a disc {2 * scan.RADIUS:g} cells across. Creating a plan takes "
        f"{', '.join(plans)}."
    )
    ratios(session, page, ms, copies, threads)


def ratios(session, page, ms, copies, threads):
    """Adds figure 11."""
    page.section(
        "Ratios of times (figure 11)",
        "The paper compares one thread of a 3 GHz Core 2 Duo with its GPU. The GPU with conflicts is wrong, so its "
        "ratio is not the gain of a usable method. The ratio of the library without copies counts the FFT on the "
        "GPU only.",
    )
    rows = []
    for name, paper, slow, fast in (
        ("CPU gridding / GPU gridding", 16.87, "CPU gridding", "GPU gridding"),
        ("CPU gridding / GPU gridding with atomics", "-", "CPU gridding", "GPU gridding with atomics"),
        ("CPU reverse / GPU reverse gridding", 19.55, "CPU reverse gridding", "GPU reverse gridding"),
        ("CPU gridding / GPU reverse gridding", 7.5, "CPU gridding", "GPU reverse gridding"),
        ("CPU gridding / GPU reverse, disc rotated", "-", "CPU gridding", "GPU reverse gridding, disc rotated"),
        (f"{LIBRARY}, CPU / GPU", "-", f"{LIBRARY}, CPU", f"{LIBRARY}, GPU"),
    ):
        one, all_threads = ms.get((slow, 1)), ms.get((slow, threads))
        kernel, whole = ms.get((fast, 0)), copies.get(fast)
        rows.append((name, paper, *(ratio_text(a, b) for a in (one, all_threads) for b in (whole, kernel))))
    on_cpu = [ratio_text(ms.get(("CPU reverse gridding", n)), ms.get(("CPU gridding", n))) for n in (1, threads)]
    rows.append(("CPU reverse / CPU gridding", 2.6, "-", on_cpu[0], "-", on_cpu[1]))
    page.table(
        ("ratio", "paper", "one thread, GPU with copies", "one thread, GPU without copies",
         f"{thread_text(threads)}, GPU with copies", f"{thread_text(threads)}, GPU without copies"),
        rows,
    )  # fmt: skip


def images(session, page, methods):
    """Adds the errors of the images of each method, without and with motion."""
    problem, convolution = methods.problem, methods.problem.convolution
    rows, found = [], {}
    for motion, plain in problem.data.items():
        data = problem.weighted(motion)
        grids = {"convolution in double precision": convolution.grid(data)}
        if methods.loops:
            grids["CPU gridding"] = methods.loop("scatter", data, 1)
            grids["CPU reverse gridding"] = methods.loop("gather", data, session.threads)
        for name in (CONFLICTING, ATOMIC, CORNERS, DISC) if methods.kernels else ():
            grids[f"GPU, {name}"] = methods.kernels.result(name, data)
        pictures = {name: convolution.image(grid, scan.MATRIX) for name, grid in grids.items()}
        for device, library in methods.libraries.items():
            pictures[f"{LIBRARY}, {device}"] = library.image(library.grid(plain))
        right = pictures["convolution in double precision"]
        found[motion] = {
            name: (percent_and_psnr(picture, problem.truth), relative(scaled(picture, right), right))
            for name, picture in pictures.items()
        }
    for name in found["without motion"]:
        row = [name]
        for motion in problem.data:
            (percent, psnr), difference = found[motion][name]
            row += [f"{percent:.2f} %, {psnr:.1f} dB", f"{difference:.1e}"]
        rows.append(row)
    page.section(
        "Images (figures 4 and 9)",
        f"Images of {scan.MATRIX} x {scan.MATRIX} voxels after an FFT by numpy, divided by the transform of the "
        "window. The errors are those of the phantom at rest (percent and PSNR), then the difference from the image "
        "of the convolution in double precision, both at the best scale. With motion, each blade measures the "
        f"phantom turned by up to {TURN} degrees and shifted by up to {SHIFT} voxels along each axis, at random. It is "
        "gridded where it was measured, without correction; `recon_propeller` corrects the motion (docs/method.md). "
        "The paper shows pictures only. In those of a water phantom, conflicts blur edges and the "
        "axes (figure 4). In those of a resting and of a moved head, reverse gridding looks the same as gridding on "
        "the CPU (figure 9).",
    )
    page.table(("method", "without motion: error", "difference", "with motion: error", "difference"), rows)
    page.text(
        "The differences of the library are mostly those of the paper's window, whose aliasing is larger, and of "
        "the few samples beyond half of the width."
    )


def widths(session, page, methods):
    """Adds times and errors against the radius of the window."""
    problem, rows = methods.problem, []
    grid = np.full((scan.GRID, scan.GRID), np.nan, np.complex64)
    for radius in RADII[1::2] if session.quick else RADII:
        progress(f"radius {radius}")
        convolution = scan.Convolution(problem.k, radius)
        data = (convolution.density_weights() * problem.data["without motion"]).astype(np.complex64)
        exact = convolution.grid(data)
        percent, _ = percent_and_psnr(convolution.image(exact, scan.MATRIX), problem.truth)
        row = [f"{radius:g}", f"{convolution.m.size / problem.weights.size:.1f}", f"{percent:.2f} %"]
        if methods.loops:
            with tempfile.TemporaryDirectory() as folder:
                loops, cpu_ms = scan.Loops(folder, radius, 1), []
                for name in ("scatter", "gather"):
                    work = loops.work(name, problem.k, data, grid, 1)
                    cpu_ms.append(session.wall_ms(work, 3))
                    require(relative(grid, exact), KERNEL_ERROR, f"CPU, {name}, radius {radius}")
                row += [*map(ms_text, cpu_ms), ratio_text(cpu_ms[1], cpu_ms[0])]
        else:
            row += ["-"] * 3
        if methods.kernels:
            kernels = Kernels(session, problem.k, radius)
            for name in (ATOMIC, CORNERS, DISC):
                require(relative(kernels.result(name, data), exact), KERNEL_ERROR, f"GPU, {name}, radius {radius}")
                row.append(ms_text(session.gpu_ms(kernels.work(name))))
        else:
            row += ["-"] * 3
        rows.append(row)
    page.section(
        "Width of the window",
        "The paper does not state the radius of its window (`cwidth`, in cells), nor its shape parameter. Its "
        "figures 5 and 7 sketch a window of four cells, which is a radius of 1. Its reverse gridding takes 2.6 "
        "times as long as gridding on the CPU. This ratio depends on the radius, because reverse gridding visits all "
        "samples of the rotated square, of which a small window fills little. The tables above are for a radius of "
        f"{scan.RADIUS:g} cells, the width of four cells that is usual for a grid of twice the matrix. Beta is that "
        "of Beatty et al. 2005. Milliseconds without copies, CPU by one thread.",
    )
    page.table(
        ("radius, cells", "cells per sample", "error of the image", "CPU gridding", "CPU reverse",
         "ratio (paper: 2.6)", "GPU atomics", "GPU reverse", "GPU reverse, disc rotated"),
        rows,
    )  # fmt: skip


def main():
    session = Session(__doc__)
    problem = Problem(session)
    outside = int(np.count_nonzero(~problem.inside))
    page = Page(
        session,
        "propeller",
        "Yang et al. 2013: reverse gridding of PROPELLER data",
        f"The scan of the paper: matrix {scan.MATRIX}, {scan.SAMPLES} samples a readout, echo train {scan.ECHOES}, "
        f"{scan.BLADES} blades, {problem.weights.size:,} samples on {scan.GRID} x {scan.GRID} cells (equations 1 to "
        f"3). Each blade is turned by pi / 17 from the previous one. {outside} samples are beyond half of the width "
        "of k-space. As in the paper, windows are cut off at the edge of the grid; the library refuses these "
        "samples, so they are left out for it. The window is a Kaiser-Bessel window of the Euclidean distance "
        "(equations 11 to 13). Density weights are those of equation (4). Data are k-space of the Shepp-Logan "
        f"phantom. Blocks have {BLOCK} x {BLOCK} threads, as in the paper: a scatter has a thread for each sample "
        "(1,560 blocks), a gather one for each cell (1,024 blocks).\n\n"
        "The paper has data of a scanner, a 3 GHz Core 2 Duo, and a GPU that it does not name. Here are kernels and "
        "loops of our own in single precision, with the paper's window and assignment of threads, and the library's "
        "gridding.",
    )
    with tempfile.TemporaryDirectory() as folder:
        methods = Methods(session, problem, folder)
        table_of_errors(page, methods.check())
        tables_of_values(session, page, methods)
        run_to_run(session, page, methods)
        times(session, page, methods)
        images(session, page, methods)
        widths(session, page, methods)
    page.write()


if __name__ == "__main__":
    main()
