"""Transforms, plans and whole calls beside cuFINUFFT, and recon on the CPU, for the cases of gpu_cases.py."""

import time

import numpy as np

import gpu_cases
import recon_library
import sweep_case
from measure import milliseconds


def measure_suite(session, name):
    """Returns a row for each case, error and operation."""
    rows = []
    for case in gpu_cases.SUITES[name]:
        if case.large and session.quick:
            continue
        k = case.coordinates(session.library, session.random)
        for error in case.errors:
            shape = case.shape(k, error)
            for operation in sweep_case.OPERATIONS:
                measure = sweep_case.measure_apart if case.large else sweep_case.measure_operation
                row = measure(session.sweep, shape, k, operation, session.random)
                row |= {"case": case.name, "what": case.what, "error": error, "precision": case.precision}
                row["asked"] = asked(case, operation)
                if ours := row["facts"].get("recon"):
                    row["limit_ms"] = 1e3 * least_bytes(shape, ours["grid"], operation) / session.bandwidth
                if case.on_cpu:
                    row["cpu_ms"], row["cpu_threads"] = on_cpu(session, shape, k, operation)
                rows.append(row)
                session.sweep.free()
    return rows


def asked(case, operation):
    """Returns pairs of a measurement and its limit in words."""
    found = []
    if (most := case.ratios.get(operation)) is not None:
        found.append(f"{most:.2f} of cuFINUFFT")
    if (most := case.milliseconds.get(operation)) is not None:
        found.append(f"{most:.1f} ms")
    for what, limits in case.milliseconds.items():
        if isinstance(limits, dict):
            found.append(f"{what}: {limits[operation]:.0f} ms")
    return "; ".join(found)


def least_bytes(shape, grid, operation):
    """Returns the least number of bytes that a transform moves if each stage reads and writes its arrays once.

    The stages are those of samples and grid, and one FFT for each axis, which leaves out lines of zeros.
    """
    size = 8 if shape.precision == "f32" else 16
    cells = float(np.prod(grid))
    moved = size * (cells + shape.samples * (1 + shape.ndim / 2))
    before = cells
    for axis in reversed(range(shape.ndim)):
        after = before / grid[axis] * shape.dims[axis]
        moved += size * (before + after)
        before = after
    # The coordinates are read once for all coils, but they are few bytes.
    return moved * shape.coils


def on_cpu(session, shape, k, operation):
    """Returns the median milliseconds of recon on this machine's CPU by the wall clock, and its number of threads."""
    plan = recon_library.Plan(session.library, shape.dims, k, tolerance=shape.error, coils=shape.coils)
    image = np.ones((shape.coils, *shape.dims[::-1]), np.complex64)
    kspace = np.ones((shape.coils, shape.samples), np.complex64)
    arguments = (kspace, image) if operation == "adjoint" else (image, kspace)
    times = []
    for _ in range(min(session.runs, 5) + 1):
        started = time.perf_counter()
        getattr(plan, operation)(*arguments)
        times.append(time.perf_counter() - started)
    return milliseconds(times[1:]), plan.info().threads
