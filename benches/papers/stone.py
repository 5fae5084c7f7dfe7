"""The experiments of Stone et al. 2008: F^H d, Q and conjugate gradients by each step of their optimisation.

    stone.py [--quick] [--no-gpu] [--build DIR] [--output DIR]

The page has the tables of figures 6 to 9 and the search over the settings of a kernel. It also has curves of the errors
against noise, and the error of hardware trigonometry against the size of an image.
"""

import shutil
import tempfile
import time
from dataclasses import replace

import numpy as np

import fhd
import recon_library
from harness import Page, Session, percent_and_psnr, progress, relative, require
from measure import random_complex, voxel_positions
from stone_loop import StoneLoop

N, SPOKES, READOUT = 128, 1176, 242
ITERATIONS = 60
# A part of the voxels, over which the loop on a CPU is timed.
CPU_VOXELS = 1 << 15
# Samples with which every setting of a search is timed.
SEARCH_SAMPLES = 2048
# Bound for the error of a kernel in single precision, relative to the library's exact sums in double precision.
KERNEL_ERROR = 1e-4
# The paper's noise takes the regularised solution from 12 to 16 %.
PAPER_LOSS = 16 / 12
SNRS = (np.inf, 1200, 600, 300, 200, 150, 100, 75, 50, 35, 25)
LAMBDAS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
# Figures 8 and 9 and section 5: seconds and GFLOPS of F^H d.
PAPER = {
    "CPU, single precision": (1350, 16.8), "Base": (3234, 7.0), "RegAlloc": (2046, 11.1), "Coalesce": (1705, None),
    "ConstMem": (264, 85.8), "FastTrig": (70, 127.5), "Tune": (59, 152.5), "Multi": (18, 500),
}  # fmt: skip


class Problem:
    """A scan of the phantom: trajectory, data, the true image and the coordinates of the voxels."""

    def __init__(self, session, n, spokes, readout):
        self.session, self.n, self.dims = session, n, (n, n, n)
        self.k = session.library.trajectory("radial3d", 3, spokes, readout)
        self.samples, self.size = self.k[0].size, n**3
        self.clean = session.library.phantom(self.dims, self.k, 1)[0][0]
        self.truth = session.library.phantom_image(self.dims)

    @classmethod
    def of_paper(cls, session):
        """Returns the scan of the paper, or a small one for --quick."""
        n = 32 if session.quick else N
        return cls(session, n, round(SPOKES * (n / N) ** 2), 2 * round(READOUT / 2 * n / N))

    def noisy(self, snr):
        """Returns data with fresh complex Gaussian noise. `snr`: RMS of the data over RMS of the noise."""
        if np.isinf(snr):
            return self.clean
        noise = random_complex(self.session.random, (self.samples,))
        scale = np.linalg.norm(self.clean) / np.linalg.norm(noise) / snr
        return (self.clean + scale * noise).astype(np.complex64)

    def plan(self, **arguments):
        gpus = [0] if self.session.cupy else None
        return recon_library.Plan(self.session.library, self.dims, self.k, gpus=gpus, **arguments)

    def exact_plan(self, oversampling=1):
        """Returns a plan of exact sums in double precision on the GPU, for Q with an oversampling of 2."""
        k = [axis.astype(np.float64) for axis in self.k]
        dims = [oversampling * n for n in self.dims]
        return recon_library.Plan(self.session.library, dims, k, exact=True, gpus=[0])

    def gridded(self, data):
        """Returns the gridded image, with weights proportional to the volume of a sample, k^2."""
        weights = sum(axis.astype(np.float64) ** 2 for axis in self.k)
        weights = np.maximum(weights, weights[weights > 0].min() / 4).astype(np.float32)
        image = np.full(self.dims[::-1], np.nan, np.complex64)
        self.plan(tolerance=1e-5, weights=weights).grid(data, image)
        return image


class Sums:
    """F^H d and Q of a problem on the GPUs, by any step."""

    def __init__(self, problem, runners):
        self.problem, self.runners, cupy = problem, runners, problem.session.cupy
        self.cupy, self.n = cupy, problem.n
        ones = np.ones(problem.samples, np.complex64)
        self.voxels, self.doubled, self.points_of_q = [], [], []
        shares = len(runners)
        for share, runner in enumerate(runners):
            with cupy.cuda.Device(runner.device):
                for lists, n in ((self.voxels, self.n), (self.doubled, 2 * self.n)):
                    part = np.arange(n**3 * share // shares, n**3 * (share + 1) // shares)
                    lists.append([cupy.asarray(p, cupy.float32) for p in voxel_positions((n, n, n), part)])
                self.points_of_q.append(fhd.Points(cupy, problem.k, ones))

    def seconds_and_sums(self, step, data=None, runs=1):
        """Returns the median seconds of a step by the wall clock, and its sums: F^H d, or Q if there are no data.

        A run of more than a second is the only one. Each GPU computes its share of the voxels. Samples and voxels are
        on the GPUs before.
        """
        cupy, voxels = self.cupy, self.voxels
        if data is None:
            points, voxels = self.points_of_q, self.doubled
        else:
            points = []
            for runner in self.runners:
                with cupy.cuda.Device(runner.device):
                    points.append(fhd.Points(cupy, self.problem.k, data))
        outs, works = [], []
        for runner, own, samples in zip(self.runners, voxels, points):
            with cupy.cuda.Device(runner.device):
                outs.append(cupy.zeros(own[0].size, cupy.complex64))
                works.append(runner.work(step, samples, own, outs[-1]))
        times = []
        for _ in range(runs):
            for runner, out in zip(self.runners, outs):
                with cupy.cuda.Device(runner.device):
                    out.fill(0)
                    cupy.cuda.Device().synchronize()
            started = time.perf_counter()
            for runner, work in zip(self.runners, works):
                with cupy.cuda.Device(runner.device):
                    work()
            for runner in self.runners:
                runner.stream.synchronize()
            times.append(time.perf_counter() - started)
            if times[0] > 1:
                break
        n = round(sum(out.size for out in outs) ** (1 / 3))
        return float(np.median(times)), np.concatenate([cupy.asnumpy(out) for out in outs]).reshape(n, n, n)


def solve(cupy, q, right_hand_side, samples, iterations=ITERATIONS, lambda_=0.0):
    """Returns the image of conjugate gradients, and the seconds of the iterations.

    It solves (F^H F + lambda M D^H D) x = F^H d, where M is the number of samples and D has the finite differences
    along each axis. F^H F is the convolution with Q, by cuFFT on the doubled grid, as in the paper.
    """
    n = right_hand_side.shape[0]
    spectrum = cupy.fft.fftn(cupy.fft.ifftshift(cupy.asarray(q)))
    b = cupy.asarray(right_hand_side, spectrum.dtype)
    padded = cupy.zeros(q.shape, spectrum.dtype)

    def normal(x):
        padded[...] = 0
        padded[:n, :n, :n] = x
        y = cupy.fft.ifftn(spectrum * cupy.fft.fftn(padded))[:n, :n, :n]
        if lambda_:
            for axis in range(3):
                difference = cupy.diff(x, axis=axis)
                edges = [cupy.s_[:]] * 3
                edges[axis] = cupy.s_[:1]
                zero = cupy.zeros_like(x[tuple(edges)])
                y -= lambda_ * samples * cupy.diff(cupy.concatenate([zero, difference, zero], axis), axis=axis)
        return y

    def iterate(count):
        x, residual = cupy.zeros_like(b), b.copy()
        direction, energy = residual.copy(), cupy.vdot(residual, residual).real
        for _ in range(count):
            image = normal(direction)
            alpha = energy / cupy.vdot(direction, image).real
            x += alpha * direction
            residual -= alpha * image
            previous, energy = energy, cupy.vdot(residual, residual).real
            direction = residual + (energy / previous) * direction
        cupy.cuda.Device().synchronize()
        return x

    iterate(1)  # It makes the plans of cuFFT and compiles the kernels of CuPy.
    started = time.perf_counter()
    x = iterate(iterations)
    return cupy.asnumpy(x), time.perf_counter() - started


def seconds_text(seconds):
    if seconds is None:
        return "-"
    if seconds >= 120:
        return f"{seconds / 60:.3g} min"
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"


def quality_text(image, truth):
    percent, psnr = percent_and_psnr(image, truth)
    return f"{percent:.1f} %, {psnr:.1f} dB"


def gflops(problem, seconds, step_trig):
    return problem.samples * problem.size * fhd.OPERATIONS[step_trig] / seconds * 1e-9


def cpu_seconds(session, problem, precision):
    """Returns the seconds of F^H d by the loop on all cores, scaled from a part of the voxels; None without GCC."""
    if not shutil.which("gcc"):
        session.leave_out(f"the loop of Stone et al. on the CPU, {precision}", "there is no gcc to compile it")
        return None
    indices = session.random.choice(problem.size, min(CPU_VOXELS, problem.size), replace=False)
    voxels = voxel_positions(problem.dims, indices)
    data = random_complex(session.random, (problem.samples,))
    with tempfile.TemporaryDirectory() as folder:
        run, output = StoneLoop(folder, "native", precision).sums(problem.k, data, voxels, session.threads)
        seconds = 1e-3 * session.wall_ms(run, 3)
    # Some sums in double precision by numpy.
    few = slice(0, 200)
    phases = sum(np.outer(v[few], axis.astype(np.float64)) for v, axis in zip(voxels, problem.k))
    exact = np.exp(2j * np.pi * phases) @ data.astype(np.complex128)
    require(relative(output[few], exact), KERNEL_ERROR, f"the loop on the CPU, {precision}")
    return seconds * problem.size / indices.size


def check_and_time(session, problem, sums, steps, data):
    """Returns (seconds, error, sums) of F^H d for each step, for data with fresh noise at the full size."""
    exact = np.full(problem.dims[::-1], np.nan, np.complex128)
    problem.exact_plan().adjoint(data.astype(np.complex128), exact)
    k = [axis.astype(np.float64) for axis in problem.k]
    # The library's sums are checked as well, at some voxels.
    chosen = session.random.choice(problem.size, 50, replace=False)
    phases = sum(np.outer(v, axis) for v, axis in zip(voxel_positions(problem.dims, chosen), k))
    require(relative(exact.ravel()[chosen], np.exp(2j * np.pi * phases) @ data), 1e-10, "exact sums of the library")
    found = {}
    for step in steps:
        progress(f"F^H d, {step.name}")
        seconds, found_sums = sums.seconds_and_sums(step, data, runs=5)
        error = relative(found_sums, exact)
        require(error, KERNEL_ERROR, f"F^H d, {step.name}")
        found[step.name] = (seconds, error, found_sums)
    for name, arguments in library_plans(problem).items():
        plan = problem.plan(stream=session.stream.ptr, **arguments)
        on_gpu, out = session.cupy.asarray(data), session.poisoned(problem.size)
        milliseconds = session.gpu_ms(lambda: plan.adjoint(on_gpu, out), before=lambda: out.fill(np.nan))
        found[name] = (1e-3 * milliseconds, relative(out.get().reshape(exact.shape), exact), None)
    return found


def library_plans(problem):
    voxels = [p.astype(np.float32) for p in voxel_positions(problem.dims, np.arange(problem.size))]
    return {
        "recon, exact sums, voxel list": {"exact": True, "voxels": voxels},
        "recon, exact sums, grid": {"exact": True},
        "recon, NUFFT, tolerance 1e-5": {"tolerance": 1e-5},
    }


def figure_9(page, problem, found, cpu, steps):
    page.section(
        "F^H d (figure 9)",
        f"{problem.samples:,} samples to {problem.n}^3 voxels, a phantom with noise. GFLOPS are counted as in the paper: 38 "
        "operations for a pair of sample and voxel with sines in software, 15 with sines in hardware. The error is "
        "that of all voxels, relative to exact sums in double precision. CPU rows are timed on a part of the voxels "
        "and scaled (marked ~). Speed-ups are over the CPU in single precision.",
    )
    trigs = {step.name: step.trig for step in steps}
    single = cpu.get("CPU, single precision")
    rows = []
    for name, seconds in cpu.items():
        paper_seconds, paper_gflops = PAPER.get(name.split(" (")[0], (None, None))
        rows.append(
            (name, seconds_text(paper_seconds), paper_gflops or "-", f"~{seconds_text(seconds)}",
             f"{gflops(problem, seconds, fhd.SOFTWARE):.0f}", f"{problem.samples * problem.size / seconds * 1e-12:.3f}",
             speed_ups(1350, paper_seconds, single, seconds), "at most 1e-4")
        )  # fmt: skip
    for name, (seconds, error, _) in found.items():
        paper_seconds, paper_gflops = PAPER.get(name.split(" (")[0], (None, None))
        rate = f"{gflops(problem, seconds, trigs[name]):.0f}" if name in trigs else "-"
        rows.append(
            (name, seconds_text(paper_seconds), paper_gflops or "-", seconds_text(seconds), rate,
             f"{problem.samples * problem.size / seconds * 1e-12:.3f}",
             speed_ups(1350, paper_seconds, single, seconds), f"{error:.1e}")
        )  # fmt: skip
    page.table(
        ("version", "paper", "GFLOPS, paper", "here", "GFLOPS here", "10^12 pairs/s", "speed-up, paper and here", "error"),
        rows,
    )  # fmt: skip
    page.text(
        "Differences from the paper: its GPU was a Quadro FX 5600 without a cache for global memory, and its CPU had "
        "four cores. Base needs volatile accesses, because a compiler of today keeps values in registers by itself. "
        "The paper does not print its layout of Coalesce; here each member of the samples has its own array, and the 32 "
        "threads of a warp begin at different samples, so that they read neighbours. The step after Tune is "
        "not the paper's. Its samples are in polar form and in shared memory. One voxel in four takes its sines from "
        "polynomials, because the special function units are the limit of Tune."
    )
    page.text(
        "Why ConstMem is slower than RegAlloc today: in the disassembly (nvdisasm, sm_90) the loop reads each member of "
        "a sample by a load from constant memory to a uniform register, with an index (ULDC c[3][UR]). Hardware counters "
        "(ncu, H100) show that warps wait for the cache of constants: for each "
        "instruction issued, 36 warps stall with the reason imc_miss, with tiles of 64 and of 1,024 samples. In RegAlloc "
        "none does. There, the same members are loads through the first-level cache (LDG), of "
        "which the compiler issues all before the first is needed. FastTrig has the same loads in a shorter loop, so "
        "it gains nothing by its sines: the loads are the limit of both. The table of tiles shows the remedies. "
        "Several voxels per thread share a load (Tune), and they leave fewer warps to compete for the cache, so a small "
        "tile stays in it. Shared memory has no such limit."
    )


def speed_ups(paper_cpu, paper, cpu, here):
    first = f"{paper_cpu / paper:.2g}" if paper else "-"
    return f"{first}, {cpu / here:.3g}" if cpu else f"{first}, -"


def constant_memory(session, page, problem, runner):
    """Measures steps against the samples of a tile, on an eighth of the samples."""
    points = fhd.Points(session.cupy, problem.k, problem.clean).part(problem.samples // 8)
    voxels = [session.cupy.asarray(p, session.cupy.float32) for p in voxel_positions(problem.dims, np.arange(problem.size))]
    out = session.cupy.zeros(problem.size, session.cupy.complex64)
    tiles = (32, 64, 96, 128, 256, 512, 1024, 2048)
    rows = []
    for name, step in (
        ("RegAlloc", fhd.REGISTERS),
        ("ConstMem", fhd.CONSTANT),
        ("FastTrig", fhd.FAST),
        ("FastTrig, samples in shared memory", replace(fhd.FAST, layout=fhd.SHARED_STRUCTURES)),
        ("FastTrig, 4 voxels a thread", replace(fhd.FAST, voxels=4)),
    ):
        progress(f"tiles, {name}")
        times = [session.gpu_ms(runner.work(replace(step, tile=tile), points, voxels, out), runs=1) for tile in tiles]
        rows.append((name, *(f"{ms:.1f}" for ms in times)))
    page.text("Milliseconds for an eighth of the samples against the samples of a tile (20 bytes each):")
    page.table(("version", *tiles), rows)


def search(session, page, problem, runner):
    """Searches the settings of Tune and of the mixed step. Returns both with their best settings."""
    cupy = session.cupy
    points = fhd.Points(cupy, problem.k, problem.clean)
    few = points.part(min(SEARCH_SAMPLES, problem.samples))
    some = points.part(problem.samples // 16)
    voxels = [cupy.asarray(p, cupy.float32) for p in voxel_positions(problem.dims, np.arange(problem.size))]
    quarter = [axis[: problem.size // 4] for axis in voxels]
    out = cupy.zeros(problem.size, cupy.complex64)
    threads = (64, 256, 512) if session.quick else tuple(range(32, 513, 32))
    tiles = (256, 2048) if session.quick else (32, 64, 128, 256, 512, 1024, 2048)
    unrolls, voxel_counts = ((1, 4), (1, 4)) if session.quick else (range(1, 9), (2, 4, 8))
    best_steps, rows = [], []
    for step in (fhd.TUNE, fhd.MIXED_TUNE):
        # A quarter of the voxels of a thread takes polynomials.
        own = voxel_counts if step.trig == fhd.HARDWARE else [v for v in voxel_counts if v >= 4]
        settings = fhd.configurations(step, threads, tiles, unrolls, own)
        progress(f"search, {step.name}: {len(settings)} settings")
        times = {setting: session.gpu_ms(runner.work(setting, few, quarter, out), runs=1) for setting in settings}
        # The fastest ones are measured again, on more samples and all voxels.
        final = lambda setting: session.gpu_ms(runner.work(setting, some, voxels, out), runs=7)
        again = {setting: final(setting) for setting in sorted(times, key=times.get)[:20]}
        order = sorted(again, key=again.get)
        for place, setting in enumerate(order[:3]):
            rows.append((step.name, f"{place + 1} of {len(settings)}", setting.settings(), f"{again[setting]:.2f} ms"))
        default = replace(step, threads=256, tile=256, unroll=1, voxels=1 if step.trig == fhd.HARDWARE else own[0])
        for name, setting in (("not tuned", default), ("slowest", max(times, key=times.get))):
            ms = final(setting)
            gain = ms / again[order[0]]
            rows.append((step.name, name, setting.settings(), f"{ms:.2f} ms ({gain:.2f} times the best)"))
        best_steps.append(order[0])
    rows += production_search(session, problem, some.values.size)
    page.section(
        "Search over the settings (section 5.6)",
        "The paper searched threads per block (32 to 512), samples per launch (the tile, 32 to 2048) and unrolling (1 to "
        "8). 320, 2048 and 5 were best, 20 % faster than 256, 256 and 1. Here 2 to 8 voxels per thread are searched too. "
        f"Every setting is timed with {few.count:,} samples and {problem.size // 4:,} voxels. The fastest ones are timed "
        f"again with {some.count:,} samples and all voxels; the table has these times. The last rows are the library's "
        "kernel (kernels/exact_list.cu) with its own and with other settings.",
    )
    page.table(("kernel", "place", "setting", "time"), rows)
    return best_steps


def production_search(session, problem, samples):
    """Returns rows of the library's kernel for lists: its own setting, and the best of all settings."""
    k = [axis[:samples] for axis in problem.k]
    kernels = fhd.ListKernel(session, k, problem.clean[:samples], problem.dims, problem.size)
    own = fhd.ListSetting()
    settings = [
        fhd.ListSetting(threads, voxels, polynomials, unroll)
        for threads in ((64, 128, 256) if session.quick else (128, 192, 256))
        for voxels in ((4,) if session.quick else (4, 8))
        for polynomials in (0, 1, 2)
        for unroll in ((2,) if session.quick else (1, 2))
    ]
    times = {setting: session.gpu_ms(kernels.work(setting), runs=1) for setting in settings}
    finalists = sorted(times, key=times.get)[:10]
    if own not in finalists:
        finalists.append(own)
    again = {setting: session.gpu_ms(kernels.work(setting), runs=7) for setting in finalists}
    best = min(again, key=again.get)
    require(kernels.error(best), KERNEL_ERROR, "the library's kernel with other settings")
    ratio = again[own] / again[best]
    return [
        ("recon, list", f"best of {len(settings)}", best.settings(), f"{again[best]:.3f} ms"),
        ("recon, list", "its own setting", own.settings(), f"{again[own]:.3f} ms ({ratio:.2f} times the best)"),
    ]


def figures_6_to_8(session, page, problem, sums, steps, cpu, noise, found):
    """Measures the whole reconstruction by each version: times, and errors without and with noise.

    `noise` is (data, SNR, lambda), and `found` the sums of these data by each step.
    """
    cupy, truth = session.cupy, problem.truth
    noisy, snr, lambda_ = noise
    rows = []

    def qualities(q, clean_sums, noisy_sums):
        image, seconds = solve(cupy, q, clean_sums, problem.samples)
        regularised, _ = solve(cupy, q, noisy_sums, problem.samples, lambda_=lambda_)
        return quality_text(image, truth), quality_text(regularised, truth), seconds

    def add(name, q_seconds, fhd_seconds, solver, qualities, marks=("", "")):
        total = fhd_seconds + solver
        rows.append(
            (name, marks[0] + seconds_text(q_seconds), marks[1] + seconds_text(fhd_seconds), seconds_text(solver),
             marks[1] + seconds_text(total), speed_up(total), *qualities)
        )  # fmt: skip

    def speed_up(total):
        return f"{(cpu['CPU, single precision'] + solver) / total:.3g}" if cpu else "-"

    gridded = [quality_text(problem.gridded(data), truth) for data in (problem.clean, noisy)]
    # Sums of the CPU rows: the library's exact sums of the same precision, since the loop itself would take an hour.
    for precision, (name, real, complex_) in {
        "f64": ("CPU, double precision", np.float64, np.complex128),
        "f32": ("CPU, single precision", np.float32, np.complex64),
    }.items():
        k = [axis.astype(real) for axis in problem.k]
        made = []
        for dims, data in ((problem.dims, problem.clean), (problem.dims, noisy), ([2 * n for n in problem.dims], None)):
            values = np.ones(problem.samples, complex_) if data is None else data.astype(complex_)
            out = np.full(dims[::-1], np.nan, complex_)
            recon_library.Plan(session.library, dims, k, exact=True, gpus=[0]).adjoint(values, out)
            made.append(out)
        clean_text, noisy_text, solver = qualities(made[2], made[0], made[1])
        if name in cpu:
            add(name, 8 * cpu[name], cpu[name], solver, (clean_text, noisy_text), ("~", "~"))
    for step in steps:
        progress(f"the whole reconstruction, {step.name}")
        q_seconds, q = sums.seconds_and_sums(step)
        fhd_seconds, clean_sums = sums.seconds_and_sums(step, problem.clean)
        clean_text, noisy_text, solver = qualities(q, clean_sums, found[step.name][2])
        add(step.name, q_seconds, fhd_seconds, solver, (clean_text, noisy_text))
    for name, arguments in {"recon, exact sums, grid": {"exact": True}, "recon, NUFFT, tolerance 1e-5": {"tolerance": 1e-5}}.items():
        images = [np.full(problem.dims[::-1], np.nan, np.complex64) for _ in range(2)]
        plan = problem.plan(**arguments)
        plan.cg(problem.clean, images[0], ITERATIONS)
        plan.cg(noisy, images[1], ITERATIONS, prior=recon_library.PRIOR_DIFFERENCES, lambda_=lambda_)
        # A new plan, because Q was kept.
        stages = problem.plan(**arguments).cg(problem.clean, images[0], ITERATIONS)
        texts = [quality_text(image, truth) for image in images]
        add(name, stages["q"], stages["adjoint"], stages["iteration"], texts)
    page.section(
        "The whole reconstruction (figures 6 to 8)",
        f"{ITERATIONS} iterations. Total is F^H d and the solver, as in the paper, because Q is computed before the "
        f"scan. Images: errors in percent and PSNR after scaling. Noise: SNR {snr:.0f} (RMS of the data over RMS of the "
        f"noise), see below; the solution has finite differences with lambda {lambda_:g} relative to the number of "
        "samples. Rows marked ~ are scaled from a part; their images are those of the library's exact sums of the same "
        "precision. All rows but the library's use one solver, with cuFFT.",
    )
    page.table(
        ("version", "Q", "F^H d", "solver", "total", "speed-up", "without noise", "with noise"), rows
    )
    page.text(
        f"Gridding of the same data: {gridded[0]} without noise and {gridded[1]} with noise. The paper's total is 23 "
        "minutes on the CPU in single precision, and 99 s with Tune, 13 times as fast. Its errors are 12 to 13 % and 27 to "
        "28 dB without noise, and 16 % and 25 dB with noise. Its gridding has 42 % and 17 dB, and 47 % and 16 dB. On its GPU, Q took five to "
        "six times as long as F^H d. The book chapter: 6.5 minutes for Q on the GPU and 65 hours on the CPU in double "
        "precision. The paper's trajectory and phantom are not published, so errors are those of another scan."
    )


def noise_curves(session, page, problem):
    """Measures gridding and conjugate gradients at several noise levels.

    Returns the SNR at which a regularised solution loses as much as the paper's, and its lambda.
    """
    plan = problem.plan(tolerance=1e-5)
    # The same anatomy in another contrast: dark where the image is bright.
    reference = (1 / (0.3 + np.abs(problem.truth))).astype(np.float32)
    snrs = SNRS[::3] if session.quick else SNRS
    methods = ("gridding", "CG, no prior", "CG, finite differences", "CG, anatomical prior")
    curves, rows, best_lambdas = {name: [] for name in methods}, [], []
    for snr in snrs:
        progress(f"noise, SNR {snr}")
        data = problem.noisy(snr)
        image = np.full(problem.dims[::-1], np.nan, np.complex64)

        def percent(**options):
            image.fill(np.nan)
            plan.cg(data, image, ITERATIONS, **options)
            return percent_and_psnr(image, problem.truth)

        differences = {l: percent(prior=recon_library.PRIOR_DIFFERENCES, lambda_=l) for l in LAMBDAS}
        anatomical = {
            l: percent(prior=recon_library.PRIOR_ANATOMICAL, lambda_=l, reference=reference, edge=0.05) for l in LAMBDAS
        }
        best = [min(tried, key=lambda l: tried[l][0]) for tried in (differences, anatomical)]
        best_lambdas.append(best[0])
        found = (
            percent_and_psnr(problem.gridded(data), problem.truth), percent(), differences[best[0]], anatomical[best[1]]
        )  # fmt: skip
        for name, quality in zip(methods, found):
            curves[name].append(quality[0])
        lambdas = (None, None, *best)
        cells = [f"{p:.1f} %, {d:.1f} dB" + (f" ({l:g})" if l else "") for (p, d), l in zip(found, lambdas)]
        rows.append(("none" if np.isinf(snr) else snr, *cells))
    page.section(
        "Noise (figures 6 and 7)",
        "Errors and PSNR against the noise. SNR is the RMS of the data over the RMS of the noise. The centre of k-space "
        "dominates the data, so the noise of the image is much larger than this ratio suggests. lambda (in brackets) "
        "is the best of several for each level, as the paper balanced it by hand. The anatomical prior knows the "
        "borders of the object from an image of another contrast without noise.",
    )
    page.table(("SNR", *methods), rows)
    snr, lambda_ = paper_noise(page, snrs, curves, best_lambdas)
    session.draw_curves(page, "stone_noise", snrs[1:], {name: errors[1:] for name, errors in curves.items()},
                        "SNR (RMS of the data over RMS of the noise)", "error in percent")  # fmt: skip
    return snr, lambda_


def paper_noise(page, snrs, curves, lambdas):
    """States the noise at which a regularised solution loses as much as the paper's. Returns it with its lambda."""
    lines = []
    chosen = None
    for name in ("CG, finite differences", "CG, anatomical prior"):
        errors = curves[name]
        reached = next((i for i, error in enumerate(errors) if error >= PAPER_LOSS * errors[0]), None)
        if reached is None:
            lines.append(f"{name}: the largest noise raises {errors[0]:.1f} % to {errors[-1]:.1f} % only")
            continue
        low, high = errors[reached - 1], errors[reached]
        share = (PAPER_LOSS * errors[0] - low) / (high - low)
        inverse = [0 if np.isinf(s) else 1 / s for s in snrs[reached - 1 : reached + 1]]
        snr = 1 / (inverse[0] + share * (inverse[1] - inverse[0]))
        gridding = np.interp(1 / snr, [0 if np.isinf(s) else 1 / s for s in snrs], curves["gridding"])
        lines.append(
            f"{name}: {errors[0]:.1f} % becomes {PAPER_LOSS * errors[0]:.1f} % at SNR {snr:.0f}, where gridding goes from "
            f"{curves['gridding'][0]:.1f} to {gridding:.1f} %"
        )
        if chosen is None or name == "CG, finite differences":
            chosen = (snr, lambdas[reached])
    page.text(
        "The noise that raises the error of a regularised solution by the paper's factor of 16/12:\n- "
        + "\n- ".join(line + "." for line in lines)
    )
    return chosen or (float(snrs[-1]), lambdas[-1])


def fast_trigonometry(session, page, runner):
    """Measures the errors of sums and images by hardware sines against the size of the image."""
    sizes = (32, 64) if session.quick else (32, 64, 128, 192)
    rows = []
    for n in sizes:
        progress(f"hardware sines, {n}^3")
        # Beyond 128^3 there are fewer samples, or Q would take minutes.
        scale = min(n / N, 1)
        spokes = SPOKES // 2 if n > N else round(SPOKES * scale**2)
        problem = Problem(session, n, spokes, 2 * round(READOUT / 2 * scale))
        sums = Sums(problem, [runner])
        exact_q, exact_sums = exact_values(problem)
        cells = []
        for step in (replace(fhd.TUNE, trig=fhd.SOFTWARE), fhd.TUNE):
            _, found = sums.seconds_and_sums(step, problem.clean)
            _, q = sums.seconds_and_sums(step)
            image, _ = solve(session.cupy, q, found, problem.samples)
            cells.append((relative(found, exact_sums), relative(q, exact_q), image))
        best, _ = solve(session.cupy, exact_q, exact_sums, problem.samples)
        norm = lambda image: relative(image, best)
        rows.append(
            (f"{n}^3", f"{problem.samples:,}", f"{3**0.5 * np.pi * n / 2:.0f}",
             *(f"{cell[0]:.1e}, {cell[1]:.1e}" for cell in cells), *(f"{norm(cell[2]):.1e}" for cell in cells),
             *(f"{percent_and_psnr(image, problem.truth)[0]:.2f} %" for image in (best, cells[0][2], cells[1][2])))
        )  # fmt: skip
    page.section(
        "When hardware trigonometry harms an image (section 5.5)",
        "The special function units take the angle in single precision after a multiplication, so their absolute error "
        "grows with the angle, and the largest angle with the size of the image. Software sines reduce the angle "
        "exactly, but the angle itself is rounded. Relative errors of F^H d and Q, the difference of the image of "
        f"{ITERATIONS} iterations from that of double precision, and its error from the truth:",
    )
    page.table(
        ("image", "samples", "largest angle", "F^H d, Q: software", "F^H d, Q: hardware", "image: software",
         "image: hardware", "from the truth: double", "software", "hardware"), rows,
    )  # fmt: skip
    page.text(
        "At these sizes hardware sines add little: the errors of F^H d are the same, and those of Q, whose angles are "
        "twice as large, grow by a tenth to a half. The images lose by single precision itself, by the rounded angles "
        "and the long sums of both kinds of kernel, since iterations without a prior amplify small errors. Hardware "
        "sines harm an image as soon as their part of the error is the larger one, which grows with the angle. The "
        "library's kernels avoid both: they subtract a point of their own block from the voxels, so that angles are a few "
        "turns at any size, and they add short partial sums. Their images are those of double precision (see the whole "
        "reconstruction above)."
    )


def exact_values(problem):
    """Returns Q and F^H d in double precision, by the library's exact sums."""
    found = []
    for oversampling, data in ((2, np.ones(problem.samples)), (1, problem.clean)):
        out = np.full([oversampling * problem.n] * 3, np.nan, np.complex128)
        problem.exact_plan(oversampling).adjoint(data.astype(np.complex128), out)
        found.append(out)
    return found


def main():
    session = Session(__doc__)
    page = Page(
        session, "stone", "Stone et al. 2008: advanced reconstructions on GPUs",
        "Stone, Haldar, Tsao, Hwu, Liang and Sutton, \"Accelerating advanced MRI reconstructions on GPUs\", ACM Computing "
        "Frontiers 2008 (J. Parallel Distrib. Comput. 68:1307, 2008). An image of a phantom is reconstructed by "
        "conjugate gradients from a scan along any trajectory. The paper optimises F^H d, the sum over all samples at "
        "each voxel, in steps. The book chapter has its own page, [book_chapter.md](book_chapter.md).",
    )  # fmt: skip
    problem = Problem.of_paper(session)
    names = {"f64": "CPU, double precision", "f32": "CPU, single precision"}
    cpu = {name: cpu_seconds(session, problem, precision) for precision, name in names.items()}
    cpu = {name: seconds for name, seconds in cpu.items() if seconds}
    if session.cupy:
        runner = fhd.Runner(session)
        # The search comes first, because it finds the settings of the last steps.
        tuning = Page(session, "tuning", "", "")
        tune, mixed = search(session, tuning, problem, runner)
        steps = [*fhd.STEPS, tune, mixed]
        sums = Sums(problem, [runner])
        curves = Page(session, "curves", "", "")
        snr, lambda_ = noise_curves(session, curves, problem)
        noisy = problem.noisy(snr)
        found = check_and_time(session, problem, sums, steps, noisy)
        several(session, problem, tune, found)
        figure_9(page, problem, found, cpu, steps)
        constant_memory(session, page, problem, runner)
        page.body += tuning.body
        figures_6_to_8(session, page, problem, sums, steps, cpu, (noisy, snr, lambda_), found)
        page.body += curves.body
        fast_trigonometry(session, page, runner)
    else:
        for part in ("F^H d by the steps of figure 9", "the search", "whole reconstructions", "hardware trigonometry"):
            session.leave_out(part)
        figure_9(page, problem, {}, cpu, [])
        noise_curves(session, page, problem)
    page.write()


def several(session, problem, tune, found):
    """Adds the row of several GPUs, if there are several."""
    count = session.cupy.cuda.runtime.getDeviceCount()
    if count < 2:
        session.leave_out("GPU.Multi (one GPU)", "it needs two or more GPUs")
        return
    runners = [fhd.Runner(session, device) for device in range(count)]
    data = random_complex(session.random, (problem.samples,))
    several_sums = Sums(problem, runners)
    several_sums.seconds_and_sums(tune, data)
    seconds, sums = several_sums.seconds_and_sums(tune, data, runs=3)
    _, alone = Sums(problem, runners[:1]).seconds_and_sums(tune, data)
    require(relative(sums, alone), 1e-6, f"F^H d on {count} GPUs")
    found[f"Multi ({count} GPUs, paper: 4)"] = (seconds, found[tune.name][1], None)


if __name__ == "__main__":
    main()
