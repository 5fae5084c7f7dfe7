"""Exact sums on a GPU, and work that several GPUs share."""

import statistics
import time

import cupy as cp
import numpy as np

import cases
import gpu_sides
import recon_library
from measure import random_complex, voxel_positions
from shapes import Shape
from sums import Reference

EXACT_SAMPLES = 284_592
DIMS = (128, 128, 128)
COILS = 32


def all_voxels():
    return [axis.astype(np.float32) for axis in voxel_positions(DIMS, np.arange(int(np.prod(DIMS))))]


def measure_exact(session):
    k = [axis[:EXACT_SAMPLES] for axis in session.library.trajectory("radial3d", 3, 1176, 242)]
    on_device = [cp.asarray(axis) for axis in k]
    shape = Shape(3, DIMS, EXACT_SAMPLES, 1, "f32", 0.0, "radial")
    voxels = all_voxels()
    rows = []
    for name, operation, arguments, asked in (
        ("Cartesian", "adjoint", {}, 15.0),
        ("Cartesian", "forward", {}, 0.0),
        ("list", "adjoint", {"voxels": voxels}, 250.0),
        ("list, tolerance 1e-6", "adjoint", {"voxels": voxels, "tolerance": 1e-6}, 0.0),
    ):
        size = (EXACT_SAMPLES,) if operation == "adjoint" else DIMS
        data = cp.asarray(random_complex(session.random, size))
        reference = Reference(cp, shape, on_device, operation, data, session.random)
        output = cp.full(DIMS if operation == "adjoint" else EXACT_SAMPLES, complex(np.nan, np.nan), cp.complex64)
        plan = recon_library.Plan(
            session.library, DIMS, k, exact=True, gpus=[0], stream=session.stream.ptr, **arguments
        )
        milliseconds = session.event_ms(gpu_sides.recon_call(plan, operation, data, output), min(session.runs, 5))
        pairs = EXACT_SAMPLES * int(np.prod(DIMS))
        rows.append(
            {
                "voxels": name, "operation": operation, "error": reference.error(output), "median_ms": milliseconds,
                "tpairs_per_s": pairs / milliseconds * 1e-9, "asked_ms": asked,
            }
        )  # fmt: skip
    return rows


def measure_several(session):
    """Measures 1, 2, 4 and 8 GPUs: exact sums with the voxels divided among the GPUs, and CG with the coils divided.

    Data come from the host's memory, and results go back to it.
    """
    k = cases.STONE.trajectory(session.library)
    samples, random = k[0].size, session.random
    data = random_complex(random, (samples,))
    kspace, maps = random_complex(random, (COILS, samples)), random_complex(random, (COILS, *DIMS))
    image = np.full(DIMS, complex(np.nan, np.nan), np.complex64)
    rows = []
    for name, arguments, work in (
        ("exact sums, Cartesian", {"exact": True}, lambda plan: plan.adjoint(data, image)),
        ("exact sums, list", {"exact": True, "voxels": all_voxels()}, lambda plan: plan.adjoint(data, image)),
        (f"CG, {COILS} coils, 30 iterations", {"tolerance": 1e-4, "coils": COILS, "maps": maps},
         lambda plan: plan.cg(kspace, image, 30)["iteration"]),
    ):  # fmt: skip
        first = None
        for count in (1, 2, 4, 8):
            if count > cp.cuda.runtime.getDeviceCount():
                break
            plan = recon_library.Plan(session.library, DIMS, k, gpus=list(range(count)), **arguments)
            times = []
            for _ in range(min(session.runs, 5) + 1):
                started = time.perf_counter()
                iterations = work(plan)
                times.append(iterations or time.perf_counter() - started)
            milliseconds = 1e3 * statistics.median(times[1:])
            first = first or milliseconds
            efficiency = first / count / milliseconds
            rows.append({"what": name, "gpus": count, "median_ms": milliseconds, "efficiency": efficiency})
            plan.destroy()
    return rows
