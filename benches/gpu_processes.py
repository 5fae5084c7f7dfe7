"""Measurements of new processes: the first image with an empty and a filled cache, and the GPU memory of a plan."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import gpu_sides

FIRST = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
import numpy as np, recon_library
from pathlib import Path
library = recon_library.Library(Path(sys.argv[2]), Path(sys.argv[3]))
k = library.trajectory("radial3d", 3, 555, 512)
data = np.ones(k[0].size, np.complex64)
image = np.zeros((128, 128, 128), np.complex64)
started = time.perf_counter()
plan = recon_library.Plan(library, (128, 128, 128), k, gpus=[0], tolerance=1e-3)
planned = time.perf_counter()
plan.adjoint(data, image)
print(json.dumps([planned - started, time.perf_counter() - started]))
"""

# The GPU memory that a plan takes with its first transform. Arrays of the caller are allocated before. Memory of CUDA's
# pool (cudaMallocAsync) is reserved in large blocks, so that its use is added, and its blocks are left out.
MEMORY = """
import json, sys
sys.path.insert(0, sys.argv[1])
import cupy as cp, numpy as np
import gpu_sides, points, recon_library
from pathlib import Path
side, dims, samples, coils, precision, tolerance = json.loads(sys.argv[4])
dims = tuple(dims)
k = [axis.astype(gpu_sides.FLOAT[precision]) for axis in points.random(np.random.default_rng(1), len(dims), samples)]
stream = cp.cuda.Stream(non_blocking=True)
stream.use()
kspace = cp.ones((coils, samples), gpu_sides.COMPLEX[precision])
image = cp.ones((coils, *dims[::-1]), gpu_sides.COMPLEX[precision])
radians = gpu_sides.radians(k, precision)
cp.get_default_memory_pool().free_all_blocks()
library = recon_library.Library(Path(sys.argv[2]), Path(sys.argv[3]))
runtime = cp.cuda.runtime
pool = runtime.deviceGetDefaultMemPool(0)

def taken(name):
    free, total = runtime.memGetInfo()
    reserved = runtime.memPoolGetAttribute(pool, runtime.cudaMemPoolAttrReservedMemCurrent)
    return total - free - reserved + runtime.memPoolGetAttribute(pool, name)

before = lambda: taken(runtime.cudaMemPoolAttrUsedMemCurrent)
after = lambda: taken(runtime.cudaMemPoolAttrUsedMemHigh)
reported = 0
if side == "recon":
    # A first plan loads the kernels, whose memory is no part of a plan's.
    gpu_sides.recon_plan(library, dims, [axis[:1000] for axis in k], stream, tolerance).destroy()
    if hasattr(library.functions, "recon_release_memory"):
        library.functions.recon_release_memory()
    held = before()
    plan = gpu_sides.recon_plan(library, dims, k, stream, tolerance, coils=coils)
    call = gpu_sides.recon_call(plan, "adjoint", kspace, image)
    reported = plan.info().device_bytes
else:
    gpu_sides.cufinufft_plan((16, 16), [axis[:100] for axis in radians[:2]], "adjoint", stream, precision, tolerance)
    held = before()
    plan = gpu_sides.cufinufft_plan(dims, radians, "adjoint", stream, precision, tolerance, coils=coils)
    call = gpu_sides.cufinufft_call(plan, "adjoint", kspace, image)
call()
stream.synchronize()
print(json.dumps([after() - held, reported]))
"""

MEMORY_CASES = (
    ("284,160 samples to 128^3", (128,) * 3, 284_160, 1, "f32", 1e-3),
    ("258,048 samples x 32 coils to 256^2", (256, 256), 258_048, 32, "f32", 4e-4),
    ("8.4 M samples to 256^3", (256,) * 3, 8_400_000, 1, "f32", 1e-3),
    ("8.4 M samples to 256^3, f64", (256,) * 3, 8_400_000, 1, "f64", 1e-6),
)


def said(session, program, *arguments, **environment):
    """Returns what a new process prints as JSON."""
    paths = [str(Path(__file__).parent), str(session.path), str(session.header)]
    command = [sys.executable, "-c", program, *paths, *arguments]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"a process of its own failed: {done.stderr.strip()}")
    return json.loads(done.stdout)


def measure_first(session):
    """Measures the seconds to the first plan and image of a new process, with an empty and a filled cache folder.

    No kernel is in memory. With an empty cache folder no kernel is on disk either.
    """
    with tempfile.TemporaryDirectory() as folder:

        def seconds(cache):
            # NVRTC keeps compiled programs in its own folder.
            return said(session, FIRST, RECON_CACHE_DIR=cache, CUDA_CACHE_PATH=f"{cache}/driver")

        empty = [seconds(f"{folder}/{run}") for run in range(min(session.runs, 3))]
        filled = [seconds(f"{folder}/0") for _ in range(min(session.runs, 7))]
    rows = []
    for what, found, asked in (("empty cache", empty, 2.0), ("filled cache", filled, 0.3)):
        plan, image = (statistics.median(times) for times in zip(*found))
        rows.append({"case": what, "plan_s": plan, "seconds": image, "asked_s": asked})
    return rows


def measure_memory(session):
    """Measures the GPU memory that a plan of each side takes, with its first transform."""
    rows = []
    session.sweep.free()
    for what, *case in MEMORY_CASES:
        ours, reported = said(session, MEMORY, json.dumps(["recon", *case]))
        theirs = said(session, MEMORY, json.dumps(["cuFINUFFT", *case]))[0] if gpu_sides.cufinufft else None
        rows.append({"what": what, "recon_bytes": ours, "reported_bytes": reported, "cufinufft_bytes": theirs})
    return rows
