"""Conjugate gradients by recon and by BART, each in its own process. Both use the same .cfl files."""

import shutil
import statistics
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np

import measure
import recon_library
from rows import add_speed_ups

# The tolerance for the reference image. The errors of all images are measured against it.
EXACT_TOLERANCE = 1e-9
QUICK_ITERATIONS = 5


def exact_image(session, solution, k, kspace, maps):
    """The image of the same iterations by recon in double precision, with next to no error in the transforms."""
    wide_k = [axis.astype(np.float64) for axis in k]
    wide_maps = None if maps is None else maps.astype(np.complex128)
    dims, threads = solution.scan.dims, max(session.threads)
    plan = recon_library.Plan(
        session.library, dims, wide_k, threads, EXACT_TOLERANCE, coils=solution.coils, maps=wide_maps
    )
    image = np.zeros(dims[::-1], np.complex128)
    plan.cg(kspace.astype(np.complex128), image, solution.iterations)
    return image.ravel()


def write_scan(session, solution, k, kspace, maps):
    """Writes k-space, BART's trajectory (in cycles per field of view) and the coil sensitivity maps.

    Returns the three dimensions of the image, and the stems of the files by name.
    """
    case = solution.scan
    spokes, readout = case.sizes[:2]
    trajectory = np.zeros((k[0].size, 3), np.complex64)
    for axis, (size, values) in enumerate(zip(case.dims, k)):
        trajectory[:, axis] = size * values
    dims = list(case.dims) + [1] * (3 - len(case.dims))
    if maps is None:
        maps = np.ones(dims[::-1], np.complex64)
    names = ("trajectory", "kspace", "maps", "recon", "bart")
    stems = {name: session.work / f"{solution.name}_{name}" for name in names}
    measure.write_cfl(stems["trajectory"], [3, readout, spokes], trajectory)
    measure.write_cfl(stems["kspace"], [1, readout, spokes, solution.coils], kspace)
    measure.write_cfl(stems["maps"], [*dims, solution.coils], maps)
    return dims, stems


def solver(session):
    """solve.c with the static library in it, so that librecon need not be found at run time; None where it is missing.

    It is compiled here, except in a bundle for another machine, which has the program.
    """
    program = session.work / "solve"
    if session.bundled_solver.exists():
        return session.bundled_solver
    if not shutil.which("gcc"):
        return None
    source = Path(__file__).parent / "solve.c"
    system = ["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl", "-lc"]
    command = ["gcc", "-O2", f"-I{session.include}", source, session.archive, *system, "-o", program]
    subprocess.run(command, check=True)
    return program


def recon_command(program, solution, dims, stems, threads, tolerance):
    files = [f"{stems[name]}.cfl" for name in ("trajectory", "kspace", "maps", "recon")]
    if solution.coils == 1:
        files[2] = "-"
    return [program, *dims, solution.coils, solution.iterations, threads, tolerance, *files]


def bart_command(solution, stems):
    """Least squares without a prior. BART solves it by default by conjugate gradients with its own Toeplitz kernel."""
    files = [stems[name] for name in ("kspace", "maps", "bart")]
    return ["bart", "pics", "-l2", "-r", "0", "-i", solution.iterations, "-t", stems["trajectory"], *files]


def timed(solution, side, setting, threads, runs, command, image, exact):
    """A row: time and peak memory of whole processes, and the error of the image that the last process wrote."""
    environment = measure.process_environment(threads)
    done, others = measure.quietest(runs, lambda: measure.process(command, environment))
    return {
        "case": solution.name,
        "side": side,
        "setting": setting,
        "threads": threads,
        "runs": runs,
        "seconds": statistics.median(run["seconds"] for run in done),
        "peak_bytes": max(run["peak_bytes"] for run in done),
        "error": measure.scaled_error(np.fromfile(f"{image}.cfl", np.complex64), exact),
        "others": others,
        "runs_s": [run["seconds"] for run in done],
        "command": " ".join(Path(str(part)).name for part in command),
    }


def measure_solution(session, solution):
    """Yields ("solutions", rows) for each number of threads: recon's and, except in a quick run, BART's."""
    program = solver(session)
    if program is None:
        session.leave_out(f"{solution.name} (no gcc to compile benches/solve.c)")
        return
    if solution.bart_runs and not shutil.which("bart"):
        session.leave_out("BART (it is not installed)")
        solution = replace(solution, bart_runs=0)
    if session.quick:
        solution = replace(solution, iterations=QUICK_ITERATIONS)
    k = solution.scan.trajectory(session.library)
    kspace, maps = session.library.phantom(solution.scan.dims, k, solution.coils)
    measure.progress(f"{solution.name}, the image in double precision")
    exact = exact_image(session, solution, k, kspace, maps)
    dims, stems = write_scan(session, solution, k, kspace, maps)
    measured = []
    for threads in session.threads:
        measure.progress(f"{solution.name}, threads: {threads}")
        runs = 1 if session.quick else solution.runs
        rows = []
        for tolerance in solution.tolerances:
            command = recon_command(program, solution, dims, stems, threads, tolerance)
            setting = f"tolerance {tolerance:.0e}"
            rows.append(timed(solution, "recon", setting, threads, runs, command, stems["recon"], exact))
        if solution.bart_runs and not session.quick:
            command = bart_command(solution, stems)
            rows.append(timed(solution, "BART", "", threads, solution.bart_runs, command, stems["bart"], exact))
        measured += rows
        add_speed_ups(measured)
        yield "solutions", rows
