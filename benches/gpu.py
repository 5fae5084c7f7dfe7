"""`make bench-gpu`: recon on a GPU beside cuFINUFFT and beside recon on the CPU, at equal measured error.

    gpu.py [--quick] [--only SUITES] [--add] [--build DIR] [--output DIR]

recon and cuFINUFFT run on the same stream of this process and take turns. Times of transforms are those between CUDA
events, medians of the runs. Every side tries its own settings; errors are measured against direct sums in double
precision, and the fastest setting that meets an error counts. Plans, whole calls and reconstructions are timed by the
wall clock. Tables go to stdout as they are measured, and gpu.md and gpu.json to --output. With --add, the suites that
the same GPU has measured at the same commit remain, so that a run can be divided. Needs CuPy; without cuFINUFFT its
columns stay empty.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import cupy as cp
import numpy as np

import gpu_cases
import gpu_exact
import gpu_machine
import gpu_page
import gpu_plans
import gpu_processes
import gpu_solutions
import gpu_transforms
import recon_library
import sweep_gpu
from gpu_session import Session
from rows import as_json

ROOT = Path(__file__).resolve().parent.parent
# Properties that two runs must have in common, so that their suites can be in one table.
CONDITIONS = ("commit", "GPU", "GPUs", "processor", "recon", "cuFINUFFT", "quick")


def suites():
    """Returns, for each suite, the function that measures it and the one that makes its table."""
    found = {
        name: (lambda session, name=name: gpu_transforms.measure_suite(session, name), gpu_page.transform_tables)
        for name in gpu_cases.SUITES
    }
    return {
        "plans": (gpu_plans.measure_plans, gpu_page.plan_table),
        "single": (gpu_plans.measure_one_by_one, gpu_page.one_by_one_table),
        "changes": (gpu_plans.measure_changes, gpu_page.change_table),
        **found,
        "exact": (gpu_exact.measure_exact, gpu_page.exact_table),
        "solutions": (gpu_solutions.measure_solutions, gpu_page.solution_table),
        "several": (gpu_exact.measure_several, gpu_page.several_table),
        "first": (gpu_processes.measure_first, gpu_page.first_table),
        "memory": (gpu_processes.measure_memory, gpu_page.memory_table),
    }


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few runs, without 168 million samples")
    parser.add_argument("--only", metavar="SUITES", help=f"some of {','.join(suites())}, with commas")
    parser.add_argument("--add", action="store_true", help="keep the other suites that are in the table at --output")
    parser.add_argument("--build", type=Path, default=ROOT / "target", help="cargo's target folder [target]")
    parser.add_argument("--profile", default="release", help="folder of librecon.so in --build [release]")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "benchmarks")
    chosen = parser.parse_args()
    chosen.only = chosen.only.split(",") if chosen.only else list(suites())
    if unknown := set(chosen.only) - set(suites()):
        parser.error(f"--only: no suite is called {', '.join(sorted(unknown))}; there are {', '.join(suites())}")
    return chosen


def measured_before(path, machine):
    """Returns the suites of the table at `path`, if it has the same conditions."""
    if not path.exists():
        return {}
    old = json.loads(path.read_text())
    if differing := [name for name in CONDITIONS if old["machine"].get(name) != machine[name]]:
        sys.exit(f"--add: {path} has another {', '.join(differing)}: remove it, or choose another --output")
    return {name: rows for name, rows in old.items() if name != "machine"}


def main():
    try:
        cp.cuda.runtime.getDeviceCount()
    except cp.cuda.runtime.CUDARuntimeError as error:
        sys.exit(f"there is no GPU to measure: {error}")
    chosen = options()
    path, header = chosen.build / chosen.profile / "librecon.so", ROOT / "include" / "recon.h"
    library = recon_library.Library(path, header)
    found = gpu_machine.describe(ROOT, library) | {"quick": chosen.quick}
    results = {"machine": found}
    json_path = chosen.output / "gpu.json"
    if chosen.add:
        results |= measured_before(json_path, found)
    session = Session(
        library=library,
        path=path.resolve(),
        header=header,
        sweep=sweep_gpu.GpuSweep(library),
        random=np.random.default_rng(1),
        quick=chosen.quick,
        bandwidth=1e12 * found["copy, TB/s read and written"],
    )
    tables = {name: make for name, (_, make) in suites().items()}
    chosen.output.mkdir(parents=True, exist_ok=True)
    for name in chosen.only:
        started = time.perf_counter()
        results[name] = suites()[name][0](session)
        print("\n".join(["", f"## {name}", "", *tables[name](results[name])]))
        print(f"({time.perf_counter() - started:.0f} s)", flush=True)
        # After each suite, because the time on a machine may end before the last.
        json_path.write_text(as_json(results))
        json_path.with_suffix(".md").write_text(gpu_page.page(results, tables))


if __name__ == "__main__":
    main()
