"""The steps of the book chapter on Stone et al.'s reconstruction: from one thread per sample to a tuned kernel.

    book_chapter.py [--quick] [--no-gpu] [--build DIR] [--output DIR]
"""

from dataclasses import replace

import numpy as np

import fhd
from fhd import Step
from harness import Page, Session, progress, relative, require
from measure import random_complex, voxel_positions
from stone import KERNEL_ERROR, Problem, cpu_seconds, seconds_text

# A part of the voxels for the steps with atomic additions, which would take minutes.
SCATTER_PART = 512

STEPS = (
    (Step("one thread per sample, atomic additions", "fhd_scatter"), "7.5", "all threads add to the same voxel at once"),
    (Step("loop fission: mu first, then the same", "fhd_scatter"), "7.6 to 7.8", "mu takes a launch of its own"),
    (Step("loop interchange: one thread per voxel", "fhd_base"), "7.10", "14 accesses to global memory a pair"),
    (Step("voxel and sum in registers"), "7.11", "7 accesses a pair in the chapter's count"),
    (Step("k-space in constant memory, three arrays", layout=fhd.CONSTANT_K_ARRAYS, tile=1024), "7.12, 7.13", ""),
    (Step("the same, an array of structures", layout=fhd.CONSTANT_K, tile=1024), "7.15, 7.16", ""),
    (Step("hardware sines", layout=fhd.CONSTANT_K, trig=fhd.HARDWARE, tile=1024), "7.17", ""),
)  # fmt: skip


def mu_kernel_ms(session, runner, count):
    """Checks compute_mu against numpy, and returns its milliseconds."""
    cupy = session.cupy
    phi, data = (random_complex(session.random, (count,)) for _ in range(2))
    on_gpu, mu = [cupy.asarray(a) for a in (phi, data)], session.poisoned(count)
    kernel = runner.kernel(fhd.BASE)[0].get_function("compute_mu")
    work = lambda: kernel((-(-count // 256),), (256,), (*on_gpu, mu, np.int32(count)), stream=runner.stream)
    milliseconds = session.gpu_ms(work)
    require(relative(mu.get(), phi.conj() * data), 1e-6, "compute_mu")
    return milliseconds


def tuned(session, runner, points, voxels, out):
    """Returns the last step with the best of some settings."""
    step = replace(STEPS[-1][0], name="tuned: threads, samples per launch, unrolling, voxels a thread")
    settings = fhd.configurations(step, (64, 128, 256, 512), (256, 1024, 3072), (1, 2, 4, 8), (1, 2, 4))
    some = [axis[: len(axis) // 4] for axis in voxels]
    part = points.part(min(4096, points.values.size))
    return min(settings, key=lambda s: session.gpu_ms(runner.work(s, part, some, out), runs=1))


def main():
    session = Session(__doc__)
    page = Page(
        session, "book_chapter", "The book chapter: a case study of MRI reconstruction",
        "Kirk and Hwu, \"Programming Massively Parallel Processors\", chapter 7: \"Application case study: quantitative MRI "
        "reconstruction\", after Stone et al. 2008. The chapter turns the loops of F^H d into a kernel step by step. The "
        "scan and the later steps are those of [stone.md](stone.md).",
    )  # fmt: skip
    problem = Problem.of_paper(session)
    cpu = cpu_seconds(session, problem, "f32")
    rows = []
    if cpu:
        rows.append(("-", "the loop on the CPU, single precision", f"~{seconds_text(cpu)}", "1", "-", "timed on a part, scaled"))
    if session.cupy:
        rows += gpu_rows(session, problem, cpu)
    else:
        session.leave_out("the steps of the chapter on a GPU")
    page.section(
        "F^H d by step",
        f"{problem.samples:,} samples to {problem.n}^3 voxels, random data, single precision. The chapter prints no times for "
        "single steps. Its figure 7.20 compares whole versions with the CPU in single precision. The naive kernel is 8 "
        "times as fast for an image, and constant memory brings a factor of 4. Hardware sines with tuning reach 108, and "
        "228 for F^H d alone. Rows marked ~ are timed on a part of the voxels and scaled.",
    )
    page.table(("figure", "step", "time", "speed-up over the CPU", "error", "remark"), rows)
    page.text(
        "Differences from the chapter: the conflicting kernel of figure 7.5 is not run, because it is wrong; its version "
        "with atomic additions is. One thread for each pair of sample and voxel (its second option) has the same atomic "
        "additions and more threads. In the chapter, an array of structures helps, since the cache of constants of its "
        "GPU had few lines. [stone.md](stone.md) has the time against the samples of a tile, and why constant memory "
        "is slow on a GPU of today."
    )
    page.write()


def gpu_rows(session, problem, cpu):
    cupy = session.cupy
    runner = fhd.Runner(session)
    data = random_complex(session.random, (problem.samples,))
    points = fhd.Points(cupy, problem.k, data)
    voxels = [cupy.asarray(p, cupy.float32) for p in voxel_positions(problem.dims, np.arange(problem.size))]
    exact = np.full(problem.dims[::-1], np.nan, np.complex128)
    problem.exact_plan().adjoint(data.astype(np.complex128), exact)
    mu_ms = mu_kernel_ms(session, runner, problem.samples)
    out = cupy.zeros(problem.size, cupy.complex64)
    last = tuned(session, runner, points, voxels, out)
    rows = []
    for step, figure, remark in (*STEPS, (last, "7.3 to 7.4", last.settings())):
        progress(step.name)
        scattered = step.kernel == "fhd_scatter"
        # A box in the middle of the image, so that no voxel is special.
        part = problem.size // SCATTER_PART if scattered else problem.size
        first = (problem.size - part) // 2
        own = [axis[first : first + part] for axis in voxels]
        sums = cupy.zeros(part, cupy.complex64)
        work = runner.work(step, points, own, sums)
        milliseconds = session.gpu_ms(work, before=lambda sums=sums: sums.fill(0), runs=3)
        error = relative(sums.get(), exact.ravel()[first : first + part])
        require(error, KERNEL_ERROR, step.name)
        seconds = 1e-3 * milliseconds * problem.size / part
        if "fission" in step.name:
            seconds += 1e-3 * mu_ms
            remark = f"{remark}: {mu_ms:.3f} ms"
        time = ("~" if scattered else "") + seconds_text(seconds)
        rows.append((figure, step.name, time, f"{cpu / seconds:.3g}" if cpu else "-", f"{error:.1e}", remark or "-"))
    return rows


if __name__ == "__main__":
    main()
