"""`make bench-gpu`: recon on a GPU beside cuFINUFFT and beside recon on the CPU, at equal measured error.

    gpu.py [--quick] [--only CASE] [--build DIR] [--output DIR]

Data lie on the GPU. recon and cuFINUFFT run on the same stream of this process and take turns; times are those between
CUDA events around one transform, medians of the runs, after one that is not counted. Every side sweeps its own
tolerance; errors are measured against direct sums in double precision, and the fastest setting that meets an error
stands for its side. Whole reconstructions and first images are timed by the wall clock, data coming from and going to
the host's memory. Tables go to stdout as they are measured, and gpu.md and gpu.json to --output. Needs CuPy; without
cuFINUFFT its columns stay empty.
"""

import argparse
import datetime
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cupy as cp
import numpy as np

import cases
import machine
import recon_library
from measure import random_complex, voxel_positions
from rows import as_json

try:
    import cufinufft
except (ImportError, OSError) as error:
    print(f"no cuFINUFFT here, its columns stay empty: {error}", file=sys.stderr)
    cufinufft = None

ROOT = Path(__file__).resolve().parent.parent
CHECKED = 400

RECON = (2e-3, 1e-3, 7e-4, 3e-4, 1e-4, 3e-5, 1e-5, 7e-6, 4e-6, 2e-6)
# cuFINUFFT's tolerances and methods: 1, points one by one; 2, tiles in shared memory; 3, tiles that own their output.
CUFINUFFT = [(eps, method) for eps in (3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6) for method in (1, 2, 3)]

# For each case: dims, the errors at which sides are compared, and for each error the milliseconds in which the design
# asks for an adjoint and for a forward transform.
TRANSFORMS = {
    "stone": (cases.STONE.dims, {1e-3: 0.25, 1e-5: 0.4}),
    "large3d": ((256, 256, 256), {1e-3: 3.0}),
}
EXACT_SAMPLES = 284_592


def trajectory(library, case, random):
    if case == "large3d":
        return [random.uniform(-0.5, 0.4999, 8_400_000).astype(np.float32) for _ in range(3)]
    return cases.STONE.trajectory(library)


def direct(sign, sources, values, targets):
    """Returns the sum over sources of values exp(sign i 2 pi source.target), in double precision on the GPU."""
    result = cp.zeros(targets[0].size, cp.complex128)
    sources = [cp.asarray(s, cp.float64) for s in sources]
    values = cp.asarray(values, cp.complex128)
    for i in range(targets[0].size):
        turns = sum(s * float(t[i]) for s, t in zip(sources, targets))
        result[i] = cp.sum(values * cp.exp(2j * np.pi * sign * (turns - cp.rint(turns))))
    return cp.asnumpy(result)


class Transform:
    """Random data of one operation, and the exact values of some of its outputs."""

    def __init__(self, dims, k, operation, random):
        voxels, samples = int(np.prod(dims)), k[0].size
        self.dims, self.k, self.operation = dims, k, operation
        shape, self.size = (samples, voxels) if operation == "adjoint" else (voxels, samples)
        data = random_complex(random, (shape,))
        self.data = cp.asarray(data)
        chosen = random.choice(self.size, CHECKED, replace=False)
        self.chosen = cp.asarray(chosen)
        if operation == "adjoint":
            self.exact = direct(1, k, data, voxel_positions(dims, chosen))
        else:
            places = voxel_positions(dims, np.arange(voxels))
            self.exact = direct(-1, places, data, [axis[chosen].astype(np.float64) for axis in k])

    def error(self, output):
        found = cp.asnumpy(output.ravel()[self.chosen]).astype(np.complex128)
        return float(np.linalg.norm(found - self.exact) / np.linalg.norm(self.exact))

    def poisoned(self):
        return cp.full(self.size, complex(np.nan, np.nan), cp.complex64)


def event_ms(stream, work):
    start, end = cp.cuda.Event(), cp.cuda.Event()
    start.record(stream)
    work()
    end.record(stream)
    end.synchronize()
    return cp.cuda.get_elapsed_time(start, end)


def recon_sides(library, transform, stream):
    for tolerance in RECON:
        plan = recon_library.Plan(
            library, transform.dims, transform.k, tolerance=tolerance, gpus=[0], stream=stream.ptr
        )
        work = plan.adjoint if transform.operation == "adjoint" else plan.forward
        output = transform.poisoned()
        info = plan.info()
        setting = f"{tolerance:.0e}, W {info.width}, {info.oversampling:.2f}"
        limits = traffic(transform.dims, list(info.grid), transform.k[0].size, info.width)
        yield "recon", setting, (lambda w=work, o=output: w(transform.data, o)), output, 1e3 * plan.seconds, limits


def cpu_ms(library, transform, tolerance, runs):
    """Returns the median milliseconds of recon on this machine's CPU by the wall clock, and its number of threads."""
    plan = recon_library.Plan(library, transform.dims, transform.k, tolerance=tolerance)
    data, output = cp.asnumpy(transform.data), cp.asnumpy(transform.poisoned())
    times = []
    for _ in range(runs + 1):
        started = time.perf_counter()
        (plan.adjoint if transform.operation == "adjoint" else plan.forward)(data, output)
        times.append(1e3 * (time.perf_counter() - started))
    return statistics.median(times[1:]), plan.info().threads


def cufinufft_sides(transform, stream):
    kind = 1 if transform.operation == "adjoint" else 2
    shape = transform.dims[::-1]
    radians = [cp.asarray(2 * np.pi * axis, cp.float32) for axis in transform.k[::-1]]
    for eps, method in CUFINUFFT:
        started = time.perf_counter()
        try:
            plan = cufinufft.Plan(
                kind, shape, eps=eps, isign=1 if kind == 1 else -1, dtype=np.complex64, gpu_method=method,
                gpu_stream=stream.ptr,
            )  # fmt: skip
            plan.setpts(*radians)
            output = transform.poisoned()
            data = transform.data if kind == 1 else transform.data.reshape(shape)
            out = output.reshape(shape) if kind == 1 else output
            plan.execute(data, out=out)
            stream.synchronize()
        except Exception as error:  # a method that cannot do this case gets no row; the reason goes to stderr
            print(f"cuFINUFFT {eps:.0e}, method {method}: {error}", file=sys.stderr)
            continue
        seconds = time.perf_counter() - started
        setting = f"{eps:.0e}, method {method}"
        yield "cuFINUFFT", setting, (lambda p=plan, d=data, o=out: p.execute(d, out=o)), output, 1e3 * seconds, None


def measure_transforms(library, case, runs, random, stream):
    dims, errors = TRANSFORMS[case]
    k = trajectory(library, case, random)
    rows = []
    for operation in ("adjoint", "forward"):
        transform = Transform(dims, k, operation, random)
        # All sides of one operation take turns. Plans are made for one operation at a time, since the plans of both
        # operations would not fit in memory in large cases.
        sides = list(recon_sides(library, transform, stream))
        if cufinufft:
            sides += list(cufinufft_sides(transform, stream))
        times = [[] for _ in sides]
        for turn in range(runs + 1):
            for (_, _, work, _, _, _), own in zip(sides, times):
                milliseconds = event_ms(stream, work)
                if turn:
                    own.append(milliseconds)
        for (side, setting, _, output, plan_ms, limits), own in zip(sides, times):
            rows.append(
                {
                    "case": case, "operation": operation, "side": side, "setting": setting,
                    "error": transform.error(output), "median_ms": statistics.median(own), "plan_ms": plan_ms,
                    "asked": list(errors.items()), "bytes_and_operations": limits,
                }
            )  # fmt: skip
        for error in errors:
            milliseconds, threads = cpu_ms(library, transform, error, min(runs, 5))
            rows.append(
                {
                    "case": case, "operation": operation, "side": f"CPU, {threads} threads", "setting": f"{error:.0e}",
                    "error": error, "median_ms": milliseconds, "plan_ms": 0.0, "asked": list(errors.items()),
                }
            )  # fmt: skip
    return rows


def transform_table(rows):
    lines = [
        "| case | operation | error at most | recon | cuFINUFFT | ratio | recon, CPU | asked"
        " | least bytes / time | operations / time |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]

    def fastest(operation, side, error):
        fitting = [r for r in rows if r["side"] == side and r["operation"] == operation and r["error"] <= error]
        return min(fitting, key=lambda r: r["median_ms"], default=None)

    def cell(row):
        return f"{row['median_ms']:.3f} ms ({row['setting']}: {row['error']:.1e})" if row else "-"

    on_cpus = [r for r in rows if r["side"].startswith("CPU")]
    for operation in ("adjoint", "forward"):
        for error, asked in rows[0]["asked"]:
            ours, theirs = fastest(operation, "recon", error), fastest(operation, "cuFINUFFT", error)
            ratio = f"{ours['median_ms'] / theirs['median_ms']:.2f}" if ours and theirs else "-"
            rates = "- | -"
            if ours:
                moved, operations = (amount / ours["median_ms"] * 1e-9 for amount in ours["bytes_and_operations"])
                rates = f"{moved:.2f} TB/s | {operations:.2f} TFLOP/s"
            cpu = next(r for r in on_cpus if r["operation"] == operation and r["error"] == error)
            on_cpu = f"{cpu['median_ms']:.1f} ms ({cpu['side'].split(', ')[1]})"
            sides = (cell(ours), cell(theirs), ratio, on_cpu)
            cells = (rows[0]["case"], operation, f"{error:.0e}", *sides, f"{asked} ms", rates)
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def traffic(dims, grid, samples, width):
    """Returns the least number of bytes that an adjoint must move, and the number of its operations.

    Each stage reads or writes each of its arrays once. Operations are counted for the spreading of samples and for the
    passes of the pruned FFT (5 N log2 N for each line).
    """
    cells, voxels = np.prod(grid), np.prod(dims)
    moved, operations = 8.0 * cells + 20.0 * samples, 0.0
    operations += samples * 4.0 * width ** len(dims)
    before = cells
    for axis in reversed(range(len(dims))):
        after = before // grid[axis] * dims[axis]
        moved += 8.0 * (before + after)
        operations += before // grid[axis] * 5.0 * grid[axis] * np.log2(grid[axis])
        before = after
    assert before == voxels
    return float(moved), float(operations)


def measure_exact(library, runs, random, stream):
    dims = (128, 128, 128)
    k = [axis[:EXACT_SAMPLES] for axis in library.trajectory("radial3d", 3, 1176, 242)]
    voxels = [p.astype(np.float32) for p in voxel_positions(dims, np.arange(int(np.prod(dims))))]
    rows = []
    for name, operation, arguments, asked in (
        ("Cartesian", "adjoint", {}, 40.0),
        ("Cartesian", "forward", {}, 0.0),
        ("list", "adjoint", {"voxels": voxels}, 290.0),
        ("list, tolerance 1e-6", "adjoint", {"voxels": voxels, "tolerance": 1e-6}, 0.0),
    ):
        transform = Transform(dims, k, operation, random)
        plan = recon_library.Plan(library, dims, k, exact=True, gpus=[0], stream=stream.ptr, **arguments)
        output = transform.poisoned()
        work = plan.adjoint if operation == "adjoint" else plan.forward
        times = [event_ms(stream, lambda: work(transform.data, output)) for _ in range(runs + 1)][1:]
        pairs = k[0].size * int(np.prod(dims))
        milliseconds = statistics.median(times)
        rows.append(
            {
                "voxels": name, "operation": operation, "error": transform.error(output), "median_ms": milliseconds,
                "tpairs_per_s": pairs / milliseconds * 1e-9, "asked_ms": asked,
            }
        )  # fmt: skip
    return rows


def exact_table(rows):
    lines = ["| exact sums, f32 | operation | error | time | pairs | asked |", "| --- | --- | --- | --- | --- | --- |"]
    for r in rows:
        asked = f"{r['asked_ms']:.0f} ms" if r["asked_ms"] else "-"
        lines.append(
            f"| {r['voxels']} | {r['operation']} | {r['error']:.1e} | {r['median_ms']:.1f} ms"
            f" | {r['tpairs_per_s']:.2f} T/s | {asked} |"
        )
    return lines


def measure_solutions(library, runs, random, stream):
    """Measures a whole reconstruction by conjugate gradients, and of gridding three coils of radial data.

    The reconstruction comprises plan, F^H d, Q, 60 iterations, and the copies from and to the host's memory.
    """
    rows = []
    dims = (128, 128, 128)
    k = cases.STONE.trajectory(library)
    kspace, _ = library.phantom(dims, k, 1)
    kept = recon_library.Plan(library, (16, 16), [axis[:100] for axis in k[:2]], gpus=[0])
    for tolerance in (1e-4, 1e-5):
        times = []
        image = np.full((128, 128, 128), complex(np.nan, np.nan), np.complex64)
        for _ in range(runs + 1):
            started = time.perf_counter()
            plan = recon_library.Plan(library, dims, k, gpus=[0], tolerance=tolerance)
            plan.cg(kspace, image, 60)
            times.append(1e3 * (time.perf_counter() - started))
            plan_ms = 1e3 * plan.seconds
            del plan
        assert np.isfinite(image).all()
        rows.append(
            {"case": f"cg3d, tolerance {tolerance:.0e}", "what": "plan, F^H d, Q, 60 iterations, copies",
             "plan_ms": plan_ms, "median_ms": statistics.median(times[1:]), "asked_ms": 30.0}
        )  # fmt: skip
    del kept
    dims = (256, 256)
    k = cases.RADIAL2D.trajectory(library)
    weights = np.hypot(*k).astype(np.float32) + np.float32(1e-4)
    plan = recon_library.Plan(library, dims, k, tolerance=1e-3, coils=3, weights=weights, gpus=[0], stream=stream.ptr)
    data = cp.asarray(random_complex(random, (3, k[0].size)))
    image = cp.full((3, 256, 256), complex(np.nan, np.nan), cp.complex64)
    times = [event_ms(stream, lambda: plan.grid(data, image)) for _ in range(runs + 1)][1:]
    assert bool(cp.isfinite(image).all())
    rows.append(
        {"case": "grid 2D", "what": "504 x 512 x 3 coils to 256^2, data on the GPU", "plan_ms": 1e3 * plan.seconds,
         "median_ms": statistics.median(times), "asked_ms": 0.3}
    )  # fmt: skip
    return rows


def solution_table(rows):
    lines = ["| case | what | plan | time | asked |", "| --- | --- | --- | --- | --- |"]
    return lines + [
        f"| {r['case']} | {r['what']} | {r['plan_ms']:.1f} ms | {r['median_ms']:.2f} ms | {r['asked_ms']} ms |"
        for r in rows
    ]


FIRST = """
import sys, time
started = time.perf_counter()
sys.path.insert(0, sys.argv[1])
import numpy as np, recon_library
from pathlib import Path
library = recon_library.Library(Path(sys.argv[2]), Path(sys.argv[3]))
k = library.trajectory("radial3d", 3, 555, 512)
data = np.ones(k[0].size, np.complex64)
image = np.zeros((128, 128, 128), np.complex64)
started = time.perf_counter()
plan = recon_library.Plan(library, (128, 128, 128), k, gpus=[0], tolerance=1e-3)
plan.adjoint(data, image)
print(time.perf_counter() - started)
"""


def measure_first(library_path, header, runs):
    """Measures the seconds to the first image of a new process, with an empty and with a filled cache folder.

    No kernel is in memory. With an empty cache folder no kernel is on disk either.
    """
    rows = []
    with tempfile.TemporaryDirectory() as folder:

        def seconds(cache):
            # NVRTC keeps compiled programs in its own folder.
            environment = dict(os.environ, RECON_CACHE_DIR=cache, CUDA_CACHE_PATH=f"{cache}/driver")
            command = [sys.executable, "-c", FIRST, str(Path(__file__).parent), str(library_path), str(header)]
            return float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)

        empty = [seconds(f"{folder}/{run}") for run in range(min(runs, 3))]
        filled = [seconds(f"{folder}/0") for _ in range(runs)]
    rows.append({"case": "first image, empty cache", "seconds": statistics.median(empty), "asked_s": 2.0})
    rows.append({"case": "first image, filled cache", "seconds": statistics.median(filled), "asked_s": 0.3})
    return rows


def first_table(rows):
    lines = ["| stone, NUFFT, a new process | seconds | asked |", "| --- | --- | --- |"]
    return lines + [f"| {r['case']} | {r['seconds']:.2f} | {r['asked_s']} |" for r in rows]


def measure_several(library, runs, random):
    """Measures 1, 2, 4 and 8 GPUs: exact sums with the voxels divided among the GPUs, and CG with the coils divided.

    Data come from the host's memory, and results go back to it.
    """
    dims = (128, 128, 128)
    k = cases.STONE.trajectory(library)
    samples, coils = k[0].size, 32
    data = random_complex(random, (samples,))
    kspace, maps = random_complex(random, (coils, samples)), random_complex(random, (coils, *dims))
    image = np.full(dims, complex(np.nan, np.nan), np.complex64)
    voxels = [p.astype(np.float32) for p in voxel_positions(dims, np.arange(int(np.prod(dims))))]
    rows = []
    for name, arguments, work in (
        ("exact sums, Cartesian", {"exact": True}, lambda plan: plan.adjoint(data, image)),
        ("exact sums, list", {"exact": True, "voxels": voxels}, lambda plan: plan.adjoint(data, image)),
        (f"CG, {coils} coils, 30 iterations", {"tolerance": 1e-4, "coils": coils, "maps": maps},
         lambda plan: plan.cg(kspace, image, 30)["iteration"]),
    ):  # fmt: skip
        first = None
        for count in (1, 2, 4, 8):
            if count > cp.cuda.runtime.getDeviceCount():
                break
            plan = recon_library.Plan(library, dims, k, gpus=list(range(count)), **arguments)
            times = []
            for _ in range(runs + 1):
                started = time.perf_counter()
                iterations = work(plan)
                times.append(iterations or time.perf_counter() - started)
            milliseconds = 1e3 * statistics.median(times[1:])
            first = first or milliseconds
            efficiency = first / count / milliseconds
            rows.append({"what": name, "gpus": count, "median_ms": milliseconds, "efficiency": efficiency})
            del plan
    return rows


def several_table(rows):
    lines = ["| what | GPUs | time | efficiency | asked |", "| --- | --- | --- | --- | --- |"]
    return lines + [
        f"| {r['what']} | {r['gpus']} | {r['median_ms']:.1f} ms | {r['efficiency']:.2f} | 0.85 |" for r in rows
    ]


def version(number):
    return f"{number // 1000}.{number % 1000 // 10}"


def describe(library):
    gpu = cp.cuda.runtime.getDeviceProperties(0)
    size = 1 << 28
    a, b = cp.ones(size, cp.float32), cp.empty(size, cp.float32)
    copy = statistics.median(event_ms(cp.cuda.get_current_stream(), lambda: cp.copyto(b, a)) for _ in range(5))
    return {
        "date": datetime.date.today().isoformat(),
        "commit": machine.built_from(ROOT)["commit"],
        "processor": machine.describe()["cpu"],
        "GPU": gpu["name"].decode(),
        "GPUs": cp.cuda.runtime.getDeviceCount(),
        "CUDA of the driver": version(cp.cuda.runtime.driverGetVersion()),
        "CUDA of CuPy": version(cp.cuda.runtime.runtimeGetVersion()),
        "copy, TB/s read and written": round(2 * a.nbytes / copy * 1e-9, 2),
        "recon": library.version(),
        "cuFINUFFT": cufinufft.__version__ if cufinufft else "none",
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    try:
        cp.cuda.runtime.getDeviceCount()
    except cp.cuda.runtime.CUDARuntimeError as error:
        sys.exit(f"there is no GPU to measure: {error}")
    parser.add_argument("--quick", action="store_true", help="three runs")
    parser.add_argument("--only", help="stone, large3d, exact, solutions, several, first")
    parser.add_argument("--build", type=Path, default=ROOT / "target", help="cargo's target folder [target]")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "benchmarks")
    chosen = parser.parse_args()
    path, header = chosen.build / "release" / "librecon.so", ROOT / "include" / "recon.h"
    library = recon_library.Library(path, header)
    random, runs = np.random.default_rng(1), 3 if chosen.quick else 15
    stream = cp.cuda.Stream(non_blocking=True)
    results = {"machine": describe(library)}
    text = ["`make bench-gpu` writes this page. Limits and experiments are described in [notes-gpu.md](notes-gpu.md).", ""]
    text += [f"- {name}: {value}" for name, value in results["machine"].items()]
    suites = {
        "stone": (lambda: measure_transforms(library, "stone", runs, random, stream), transform_table),
        "large3d": (lambda: measure_transforms(library, "large3d", runs, random, stream), transform_table),
        "exact": (lambda: measure_exact(library, min(runs, 5), random, stream), exact_table),
        "solutions": (lambda: measure_solutions(library, runs, random, stream), solution_table),
        "several": (lambda: measure_several(library, min(runs, 5), random), several_table),
        "first": (lambda: measure_first(path, header, runs), first_table),
    }
    for name, (measure, table) in suites.items():
        if chosen.only in (None, name):
            with stream:
                results[name] = measure()
            lines = table(results[name])
            text += ["", f"## {name}", "", *lines]
            print("\n".join(lines), flush=True)
    chosen.output.mkdir(parents=True, exist_ok=True)
    (chosen.output / "gpu.json").write_text(as_json(results))
    (chosen.output / "gpu.md").write_text("\n".join(["# recon on a GPU", "", *text]) + "\n")


main()
