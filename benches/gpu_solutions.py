"""Whole reconstructions on a GPU: conjugate gradients from and to the host's memory, and gridding on the GPU."""

import statistics
import time

import cupy as cp
import numpy as np

import cases
import recon_library
from measure import random_complex

DIMS = cases.STONE.dims
COILS, ITERATIONS = 8, 30


def measure_solutions(session):
    return [*cg3d_rows(session), *coil_rows(session), gridding_row(session)]


def cg3d_rows(session):
    """Measures plan, F^H d, Q, 60 iterations, and the copies from and to the host's memory."""
    library = session.library
    k = cases.STONE.trajectory(library)
    kspace, _ = library.phantom(DIMS, k, 1)
    rows = []
    for tolerance in (1e-4, 1e-5):
        whole, plans = [], []
        image = np.full(DIMS, complex(np.nan, np.nan), np.complex64)
        for _ in range(session.runs + 1):
            started = time.perf_counter()
            plan = recon_library.Plan(library, DIMS, k, gpus=[0], tolerance=tolerance)
            plan.cg(kspace, image, 60)
            whole.append(1e3 * (time.perf_counter() - started))
            plans.append(1e3 * plan.seconds)
            plan.destroy()
        assert np.isfinite(image).all()
        rows.append(
            {"case": f"cg3d, tolerance {tolerance:.0e}", "what": "plan, F^H d, Q, 60 iterations, copies",
             "plan_ms": statistics.median(plans[1:]), "median_ms": statistics.median(whole[1:]), "asked": "18 ms"}
        )  # fmt: skip
    return rows


def coil_rows(session):
    """Measures the plan and the iterations of 8 coils with maps."""
    library = session.library
    k = cases.STONE.trajectory(library)
    kspace, maps = library.phantom(DIMS, k, COILS)
    image = np.full(DIMS, complex(np.nan, np.nan), np.complex64)
    plans, iterations, whole = [], [], []
    for _ in range(min(session.runs, 7) + 1):
        started = time.perf_counter()
        plan = recon_library.Plan(library, DIMS, k, gpus=[0], tolerance=1e-4, coils=COILS, maps=maps)
        iterations.append(1e3 * plan.cg(kspace, image, ITERATIONS)["iteration"])
        whole.append(1e3 * (time.perf_counter() - started))
        plans.append(1e3 * plan.seconds)
        plan.destroy()
    assert np.isfinite(image).all()
    plan_ms, iteration_ms, whole_ms = (statistics.median(times[1:]) for times in (plans, iterations, whole))
    case = f"stone, {COILS} coils with maps"
    return [
        {"case": case, "what": f"{ITERATIONS} iterations", "plan_ms": plan_ms, "median_ms": iteration_ms,
         "asked": "plan 20 ms, iterations 45 ms"},
        {"case": case, "what": f"plan, adjoint, Q, {ITERATIONS} iterations, copies", "plan_ms": plan_ms,
         "median_ms": whole_ms, "asked": "-"},
    ]  # fmt: skip


def gridding_row(session):
    dims = cases.RADIAL2D.dims
    k = cases.RADIAL2D.trajectory(session.library)
    weights = np.hypot(*k).astype(np.float32) + np.float32(1e-4)
    plan = recon_library.Plan(
        session.library, dims, k, tolerance=1e-3, coils=3, weights=weights, gpus=[0], stream=session.stream.ptr
    )
    data = cp.asarray(random_complex(session.random, (3, k[0].size)))
    image = cp.full((3, *dims), complex(np.nan, np.nan), cp.complex64)
    milliseconds = session.event_ms(lambda: plan.grid(data, image))
    assert bool(cp.isfinite(image).all())
    return {"case": "gridding, 2D", "what": "504 x 512 x 3 coils to 256^2, data on the GPU",
            "plan_ms": 1e3 * plan.seconds, "median_ms": milliseconds, "asked": "0.3 ms"}  # fmt: skip
