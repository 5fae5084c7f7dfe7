"""Plans on a GPU: from host and device coordinates beside cuFINUFFT's, new trajectories, field maps, single calls."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import cupy as cp
import numpy as np

import cases
import gpu_sides
import points
from measure import random_complex

REALTIME = cases.REALTIME
# Both sides make plans for about this error.
TOLERANCE = {"f32": 1e-3, "f64": 1e-6}
FIELD_MATRIX = (128, 128)
FIELD_SPOKES, FIELD_READOUT = 202, 256
# Range of the field map in Hz, and the duration of the readout in seconds.
FIELD_HERTZ, FIELD_SECONDS = 100.0, 0.01


@dataclass(frozen=True)
class PlanCase:
    what: str
    dims: tuple
    samples: int
    precision: str = "f32"
    coils: int = 1
    # Whether quick runs leave it out.
    large: bool = False


PLANS = (
    PlanCase("34 spokes x 512, 8 coils, to 192^2", REALTIME.dims, REALTIME.spokes * REALTIME.readout, coils=8),
    PlanCase("284,160 samples to 128^3", cases.STONE.dims, 284_160),
    PlanCase("1 M samples to 128^3, f64", cases.STONE.dims, 1_000_000, "f64"),
    PlanCase("8.4 M samples to 256^3", (256,) * 3, 8_400_000),
    PlanCase("10 M samples to 1024^2", (1024, 1024), 10_000_000),
    PlanCase("19.7 M samples to 256^3", (256,) * 3, 19_700_000),
    PlanCase("168 M samples to 256^3", (256,) * 3, 168_000_000, large=True),
    PlanCase("168 M samples to 256^3, f64", (256,) * 3, 168_000_000, "f64", large=True),
)


def realtime_spokes(library, frame=0):
    """Returns the coordinates of a frame of the case realtime."""
    sizes = REALTIME.spokes * (frame + 1), REALTIME.readout, cases.SPOKES_GOLDEN
    samples = REALTIME.spokes * REALTIME.readout
    return [np.ascontiguousarray(axis[-samples:]) for axis in library.trajectory("radial2d", 2, *sizes)]


def measure_plans(session):
    """Returns a row for each plan: milliseconds from host and device coordinates, of cuFINUFFT, and of the copy."""
    return [measure_plan(session, case) for case in PLANS if not (case.large and session.quick)]


def measure_plan(session, case):
    if case.coils > 1:
        k = realtime_spokes(session.library)
    else:
        real = gpu_sides.FLOAT[case.precision]
        k = [axis.astype(real) for axis in points.random(session.random, len(case.dims), case.samples)]
    tolerance, stream = TOLERANCE[case.precision], session.stream
    on_device = [cp.asarray(axis) for axis in k]

    def plan(k, **others):
        return gpu_sides.recon_plan(session.library, case.dims, k, stream, tolerance, coils=case.coils, **others)

    functions = {
        "host": lambda: plan(k),
        "copy": lambda: [cp.asarray(axis) for axis in k],
    }
    if gpu_sides.takes_device_geometry(session.library):
        functions["device"] = lambda: plan(on_device, geometry_on_device=True)
    if gpu_sides.cufinufft:
        radians = gpu_sides.radians(k, case.precision)
        settings = (stream, case.precision, tolerance)
        functions["cuFINUFFT"] = lambda: gpu_sides.cufinufft_plan(
            case.dims, radians, "adjoint", *settings, coils=case.coils
        )
    kept = plan([axis[:100] for axis in k])
    runs = 3 if case.samples > 100_000_000 else 7 if case.samples > 1_000_000 else session.runs
    medians = session.wall_ms(list(functions.values()), min(runs, session.runs))
    del kept
    session.sweep.free()
    return {"what": case.what, "samples": case.samples, "ms": dict(zip(functions, medians))}


def measure_changes(session):
    """Returns rows of new trajectories, of plans with a field map, and of a plan with its gridding."""
    library, stream, rows = session.library, session.stream, []

    def row(what, work, asked=None, clock=None):
        median = session.wall_ms([work])[0] if clock is None else clock(work)
        rows.append({"what": what, "median_ms": median, "asked_ms": asked})

    k = realtime_spokes(library)
    changed = realtime_spokes(library, 1)
    coils = REALTIME.coils
    planar = gpu_sides.recon_plan(library, REALTIME.dims, k, stream, 1e-3, coils=coils)
    row("new trajectory, 34 spokes x 512", lambda: planar.set_trajectory(changed))
    stone = cases.STONE.trajectory(library)
    spatial = gpu_sides.recon_plan(library, cases.STONE.dims, stone, stream, 1e-3)
    row("new trajectory, stone", lambda: spatial.set_trajectory(stone[::-1]))
    data = cp.asarray(random_complex(session.random, (coils, k[0].size)))
    image = cp.empty((coils, *REALTIME.dims), cp.complex64)
    weights = np.hypot(*k).astype(np.float32) + np.float32(1e-4)

    def gridded(k, weights, **others):
        plan = gpu_sides.recon_plan(library, REALTIME.dims, k, stream, 1e-3, coils=coils, weights=weights, **others)
        plan.grid(data, image)
        return plan

    row("plan and gridding, 34 x 512 x 8 coils, geometry on the host", lambda: gridded(k, weights), 0.5)
    if gpu_sides.takes_device_geometry(library):
        on_device, weights_there = [cp.asarray(axis) for axis in k], cp.asarray(weights)
        row(
            "plan and gridding, 34 x 512 x 8 coils, geometry on the GPU",
            lambda: gridded(on_device, weights_there, geometry_on_device=True),
            0.5,
        )
    gridding = gpu_sides.recon_plan(library, REALTIME.dims, k, stream, 1e-3, coils=coils, weights=weights)
    row("gridding, 34 x 512 x 8 coils", lambda: gridding.grid(data, image), clock=session.event_ms)
    rows += field_rows(session)
    return rows


def field_rows(session):
    """Returns rows of a plan with a field map of 128^2, a new trajectory for it, and its transform."""
    library, stream = session.library, session.stream
    k = library.trajectory("radial2d", 2, FIELD_SPOKES, FIELD_READOUT, cases.SPOKES_GOLDEN)
    x = np.linspace(-1.0, 1.0, FIELD_MATRIX[0], dtype=np.float32)
    field_map = np.ascontiguousarray(FIELD_HERTZ * np.outer(np.cos(2 * x), x), np.float32)
    times = np.tile(np.linspace(0.0, FIELD_SECONDS, FIELD_READOUT, dtype=np.float32), FIELD_SPOKES)
    maps = {"field_map": field_map, "times": times}
    make = lambda: gpu_sides.recon_plan(library, FIELD_MATRIX, k, stream, 1e-3, **maps)
    plan = make()
    data = cp.asarray(random_complex(session.random, (1, k[0].size)))
    image = cp.empty((1, *FIELD_MATRIX), cp.complex64)
    what = f"{FIELD_SPOKES} x {FIELD_READOUT} to 128^2"
    new, changed = session.wall_ms([make, lambda: plan.set_trajectory(k[::-1], **maps)])
    transform = session.event_ms(lambda: plan.adjoint(data, image))
    return [
        {"what": f"plan with a field map, {what}", "median_ms": new, "asked_ms": 5.0},
        {"what": "new trajectory for it", "median_ms": changed, "asked_ms": 1.0},
        {"what": "adjoint with it", "median_ms": transform, "asked_ms": None},
    ]


# A process that uses CUDA through recon alone: CuPy would hold the GPU's context.
ONE_BY_ONE = """
import json, statistics, sys, time
sys.path.insert(0, sys.argv[1])
import numpy as np, recon_library
from pathlib import Path
library = recon_library.Library(Path(sys.argv[2]), Path(sys.argv[3]))
runs = int(sys.argv[4])
k = library.trajectory("radial2d", 2, 34, 512, 1)
stone = library.trajectory("radial3d", 3, 555, 512)
weights = np.hypot(*k).astype(np.float32) + np.float32(1e-4)
data = np.ones((8, k[0].size), np.complex64)
image = np.zeros((8, 192, 192), np.complex64)
clock = time.perf_counter

def planar(**others):
    return recon_library.Plan(library, (192, 192), k, tolerance=1e-3, coils=8, weights=weights, gpus=[0], **others)

def spatial():
    return recon_library.Plan(library, (128, 128, 128), stone, tolerance=1e-3, gpus=[0])

def call():
    plan = planar()
    plan.grid(data, image)
    plan.destroy()

def create_and_destroy(make):
    made, freed = [], []
    for _ in range(runs + 1):
        started = clock()
        plan = make()
        between = clock()
        plan.destroy()
        made.append(between - started)
        freed.append(clock() - between)
    return [1e3 * statistics.median(times[1:]) for times in (made, freed)]

started = clock()
call()
found = {"first": 1e3 * (clock() - started)}
spatial().destroy()
found["alone"] = create_and_destroy(planar), create_and_destroy(spatial)
started = clock()
for _ in range(100):
    call()
found["loop"] = 1e3 * (clock() - started) / 100
kept = planar()
found["beside another"] = create_and_destroy(planar), create_and_destroy(spatial)
started = clock()
for _ in range(100):
    call()
found["loop beside another"] = 1e3 * (clock() - started) / 100
print(json.dumps(found))
"""


def measure_one_by_one(session):
    """Returns rows of plans that are created and destroyed with and without another plan alive."""
    arguments = [str(Path(__file__).parent), str(session.path), str(session.header), str(session.runs)]
    command = [sys.executable, "-c", ONE_BY_ONE, *arguments]
    done = subprocess.run(command, env=os.environ, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the process of plans one by one failed: {done.stderr.strip()}")
    found = json.loads(done.stdout)
    rows = []
    for index, what in enumerate(("34 spokes x 512, 8 coils, to 192^2", "stone")):
        alone, beside = found["alone"][index], found["beside another"][index]
        rows.append({"what": what, "alone_ms": alone, "beside_ms": beside, "asked": "1.2 times"})
    loop = {"what": "call of recon_grid: plan, copies, gridding, destruction; one of 100", "asked": "2 ms"}
    rows.append(loop | {"alone_ms": [found["loop"]], "beside_ms": [found["loop beside another"]]})
    first = {"what": "the first call of the process", "alone_ms": [found["first"]], "beside_ms": [], "asked": "-"}
    return [*rows, first]
