"""`make bench-sweep`: recon beside its peers on random shapes, at equal measured error: where is the next cliff?

    sweep.py [--device cpu|gpu] [--seed N] [--first N] [--cases N] [--threads LIST] [--add] [--output DIR]
    sweep.py --seed N --case N [--runs N]
    sweep.py --set "dims=74x74 samples=1493 coils=1 precision=f32 error=1e-3 points=random"

The seed and the number of a case determine it on every machine (shapes.py). Each side tries settings from loose to
tight; the fastest whose measured error is at most that of the case counts. Transforms above 1.0 are measured three more
times at the end. Tables and JSON go to --output. With --add, the table
keeps other cases and seeds of the same machine and commit. --case and --set measure one case and write nothing.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

# This is set before any OpenMP library is loaded, as in run.py. OpenBLAS computes the reference sums only.
os.environ.update(OMP_WAIT_POLICY="passive", GOMP_SPINCOUNT="0", OPENBLAS_NUM_THREADS="1")

import index
import machine
import recon_library
import shapes
import sweep_case
import sweep_page
from rows import as_json
from sweep_names import TRANSFORM

ROOT = Path(__file__).resolve().parent.parent
REPEATED = 3
# Transforms above 1.0 that are repeated, at most.
MOST_REPEATED = 12


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=tuple(shapes.LIMITS), default="cpu")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first case [0]")
    parser.add_argument("--cases", type=int, default=200, metavar="N", help="number of cases [200]")
    parser.add_argument("--case", type=int, metavar="N", help="measure one case and show all its times")
    parser.add_argument("--set", metavar="TEXT", help="the properties of one case, as --case shows them")
    parser.add_argument("--runs", type=int, default=1, metavar="N", help="how often to measure --case or --set [1]")
    parser.add_argument("--threads", metavar="LIST", help="numbers of threads [the machine's]; one for --case")
    parser.add_argument("--minutes", type=float, default=1e9, help="start no new case later; repetitions take one more")
    parser.add_argument("--add", action="store_true", help="keep other cases that are in the table at --output")
    parser.add_argument("--output", metavar="DIR", type=Path, help="[docs/benchmarks for 200 cases or more]")
    parser.add_argument("--build", metavar="DIR", type=Path, default=ROOT / "target", help="cargo's target folder")
    parser.add_argument("--profile", default="release", help="folder of librecon.so in --build [release]")
    chosen = parser.parse_args()
    chosen.threads = [int(n) for n in chosen.threads.split(",")] if chosen.threads else [machine.cores()]
    if chosen.device == "gpu":
        chosen.threads = [0]
    if chosen.output is None:
        whole = chosen.cases >= 200
        chosen.output = ROOT / "docs" / "benchmarks" if whole else chosen.build / "bench" / "output"
    return chosen


def device(chosen, library, threads):
    # Each device needs other packages.
    if chosen.device == "cpu":
        from sweep_cpu import CpuSweep

        return CpuSweep(library, threads)
    from sweep_gpu import GpuSweep

    return GpuSweep(library)


def alone(chosen, library):
    """Measures one case, several times, and prints all times."""
    shape = shapes.draw(chosen.device, chosen.seed, chosen.case or 0)
    if chosen.set:
        shape = shapes.changed(shape, chosen.set)
    bench = device(chosen, library, chosen.threads[0])
    print(f"{shape.text()}, threads: {chosen.threads[0] or 'GPU'}", flush=True)
    for run in range(chosen.runs):
        for row in sweep_case.measure(bench, shape, (chosen.seed, chosen.case or 0)):
            for name in row["settings"]:
                found = f"{row['settings'][name]}, error {row['errors'][name]}"
                print(f"run {run + 1}, {row['operation']}, {name}: {found}")
            for what, sides in row["ms"].items():
                value = sweep_page.ratio(row, what)
                found = ", ".join(f"{name} {milliseconds:.4f} ms" for name, milliseconds in sides.items())
                ratio = "-" if value is None else sweep_page.shown(value)
                print(f"run {run + 1}, {row['operation']}, {what}: {found}, ratio {ratio}", flush=True)


def measured_before(path, results):
    """Returns the rows of the table at `path`, if it was measured on the same machine with the same versions."""
    if not path.exists():
        return []
    old = json.loads(path.read_text())
    if differing := [name for name in ("machine", "versions") if old[name] != results[name]]:
        sys.exit(f"--add: {path} has another {', '.join(differing)}: remove it, or choose another --output")
    return old["rows"]


def key(row):
    return row["seed"], row["threads"], row["case"], row["operation"]


def repeat(bench, chosen, rows, started):
    """Measures again the cases whose transforms are above 1.0, and adds their ratios to their rows."""
    rows = [row for row in rows if row["threads"] == bench.threads]
    pairs = sweep_page.worst(rows, TRANSFORM, chosen.device, len(rows))
    above = [row for row, value in pairs if value > 1][:MOST_REPEATED]
    for number in dict.fromkeys(row["case"] for row in above):
        shape = shapes.draw(chosen.device, chosen.seed, number)
        if time.perf_counter() - started > 60 * (chosen.minutes + 1):
            print("--minutes: the other cases above 1.0 are not repeated", flush=True)
            return
        for _ in range(REPEATED):
            for again in sweep_case.measure(bench, shape, (chosen.seed, number)):
                for row in above:
                    if (row["case"], row["operation"]) != (number, again["operation"]):
                        continue
                    for what in again["ms"]:
                        value = sweep_page.ratio(again, what)
                        if value is not None:
                            row.setdefault("again", {}).setdefault(what, []).append(round(value, 3))


def sweep(chosen, library, started):
    benches = [device(chosen, library, threads) for threads in chosen.threads]
    rows = []
    for number in range(chosen.first, chosen.first + chosen.cases):
        if time.perf_counter() - started > 60 * chosen.minutes:
            print(f"--minutes: {chosen.first + chosen.cases - number} cases from {number} on are left out", flush=True)
            break
        shape = shapes.draw(chosen.device, chosen.seed, number)
        print(f"{number}: {shape.text()}", flush=True)
        for bench in benches:
            begun = time.perf_counter()
            common = {"seed": chosen.seed, "case": number, "threads": bench.threads, **shape.row()}
            for row in sweep_case.measure(bench, shape, (chosen.seed, number)):
                rows.append({**common, **row})
                values = {what: sweep_page.ratio(row, what) for what in row["ms"]}
                texts = [f"{what} {sweep_page.shown(v)}" for what, v in values.items() if v is not None]
                on = f"{bench.threads} threads, " if bench.threads else ""
                print(f"{number}: {on}{row['operation']}: {'; '.join(texts)}", flush=True)
            print(f"{number}: {time.perf_counter() - begun:.1f} s", flush=True)
    for bench in benches:
        repeat(bench, chosen, rows, started)
    return rows


def main():
    chosen = options()
    started = time.perf_counter()
    library = recon_library.Library(chosen.build / chosen.profile / "librecon.so", ROOT / "include" / "recon.h")
    if chosen.case is not None or chosen.set:
        return alone(chosen, library)
    about = device(chosen, library, chosen.threads[0]).describe(ROOT, library)
    results = {
        "date": machine.today(),
        "device": chosen.device,
        "machine": about.machine,
        "versions": about.versions,
    }
    path = chosen.output / f"{about.stem}.json"
    kept = measured_before(path, results) if chosen.add else []
    rows = sweep(chosen, library, started)
    new = {key(row) for row in rows}
    results["rows"] = sorted([row for row in kept if key(row) not in new] + rows, key=key)
    chosen.output.mkdir(parents=True, exist_ok=True)
    path.write_text(as_json(results))
    text = sweep_page.page(results)
    path.with_suffix(".md").write_text(text)
    print(text[text.index("## Seed") :])
    print(f"{time.perf_counter() - started:.0f} s; {path.with_suffix('.md')}")
    if chosen.output.resolve() == ROOT / "docs" / "benchmarks":
        index.write(ROOT)


if __name__ == "__main__":
    main()
