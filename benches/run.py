"""`make bench`: recon beside its peers on this machine's CPU, at equal measured error.

    run.py [--quick] [--only CASES] [--add] [--threads LIST] [--output DIR]

recon, DUCC0 and FINUFFT run in this one process and take turns, one transform each; what counts is the median of seven
rounds, after one that does not. While other processes disturb them up to three more are made, and the seven least
disturbed count. Every side sweeps its own tolerance; errors are measured against direct sums in double precision, and
the fastest setting that meets an error stands for its side. At fewer threads than the most, settings that a first run
shows to be more than twice as slow as the side's fastest are not measured further. BART, and what is compared with it,
are whole processes. Tables go to stdout as they are measured, progress to stderr. Names of files contain the processor,
for example cpu-amd-epyc-zen5.md, .json, .png and -growth.png, and go to --output, which is docs/benchmarks for a whole
run, and otherwise target/bench/output. A table of another machine is never overwritten. Where a run may not take as
long as all cases do, `--only` with `--add` measures some, and keeps the others that the same machine has measured
before.
"""

import argparse
import json
import os
import sys
from pathlib import Path

# This is set before any OpenMP library is loaded. Otherwise the threads of FINUFFT and of Stone's loop would spin for a
# while after a transform, and take the cores from the side that has the next turn. With these settings they sleep at
# once. OpenBLAS computes the reference sums only.
os.environ.update(OMP_WAIT_POLICY="passive", GOMP_SPINCOUNT="0", OPENBLAS_NUM_THREADS="1")

import numpy as np

import backprojection
import cases
import exact
import growth
import index
import machine
import realtime
import recon_library
import report
import solutions
import transforms
from rows import as_json, stem_in
from session import Session

ROOT = Path(__file__).resolve().parent.parent
SEED = 1


def suites():
    """For each case the function that yields pairs (kind, rows), parts of the table of that kind, and its arguments."""
    named = {case.name: (transforms.measure_case, case) for case in cases.TRANSFORMS}
    named |= {module.__name__: (module.measure_all,) for module in (realtime, backprojection, exact)}
    named |= {solution.name: (solutions.measure_solution, solution) for solution in cases.SOLUTIONS}
    return named | {"growth": (growth.measure_all,)}


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few settings, three runs, no BART: does it work at all?")
    parser.add_argument("--only", metavar="CASES", help=f"some of {','.join(suites())}, with commas")
    parser.add_argument("--add", action="store_true", help="keep the other cases that are in the table at --output")
    parser.add_argument("--threads", metavar="LIST", help="numbers of threads [1,2,4 and so on to the machine's]")
    parser.add_argument("--output", metavar="DIR", type=Path, help="where tables and pictures go")
    parser.add_argument(
        "--build", metavar="DIR", type=Path, default=ROOT / "target", help="cargo's target folder [target]"
    )
    parsed = parser.parse_args()
    parsed.threads = (
        sorted({int(count) for count in parsed.threads.split(",")}) if parsed.threads else machine.thread_counts()
    )
    partial = parsed.quick or parsed.only
    parsed.only = parsed.only.split(",") if parsed.only else list(suites())
    if unknown := set(parsed.only) - set(suites()):
        parser.error(f"--only: no case is called {', '.join(sorted(unknown))}; there are {', '.join(suites())}")
    if parsed.output is None:
        parsed.output = parsed.build / "bench" / "output" if partial else ROOT / "docs" / "benchmarks"
    return parsed


# Properties that two runs must have in common, so that their rows can be in one table.
CONDITIONS = ("machine", "versions", "threads", "quick", "runs", "checked")


def measured_before(path, results, chosen):
    """The kinds and rows of the table at `path` that are not measured now, and what was left out there."""
    if not path.exists():
        return {}, []
    old = json.loads(path.read_text())
    if differing := [name for name in CONDITIONS if old.get(name) != results[name]]:
        sys.exit(f"--add: {path} has another {', '.join(differing)}: remove it, or choose another --output")
    kept = {kind: [row for row in old.get(kind, []) if row.get("case", kind) not in chosen] for kind in report.KINDS}
    return kept, old["left_out"]


def main():
    chosen = options()
    library = recon_library.Library(chosen.build / "release" / "librecon.so", ROOT / "include" / "recon.h")
    session = Session(
        library=library,
        archive=chosen.build / "release" / "librecon.a",
        include=ROOT / "include",
        bundled_solver=ROOT / "bin" / "solve",
        work=chosen.build / "bench",
        threads=chosen.threads,
        quick=chosen.quick,
        random=np.random.default_rng(SEED),
    )
    session.work.mkdir(parents=True, exist_ok=True)
    results = {
        "date": machine.today(),
        "machine": machine.describe(),
        "versions": machine.versions(ROOT, library),
        "threads": chosen.threads,
        "quick": chosen.quick,
        "runs": session.runs,
        "checked": session.checked,
    }
    chosen.output.mkdir(parents=True, exist_ok=True)
    stem = stem_in(chosen.output, machine.table_name(), results)
    kept, left_out = {}, []
    if chosen.add:
        kept, left_out = measured_before(chosen.output / f"{stem}.json", results, chosen.only)
    results["waiting"] = transforms.measure_waiting(session)
    measured = {kind: [] for kind in report.KINDS}
    for name in chosen.only:
        print(f"\n{name}", flush=True)
        measure_some, *arguments = suites()[name]
        before = None
        for kind, some in measure_some(session, *arguments):
            measured[kind] += some
            heads = report.HEADS[kind] if kind != before else []
            print("\n".join(heads + report.LINES[kind](some)), flush=True)
            before = kind
    order = list(suites())
    for kind, rows in measured.items():
        results[kind] = sorted(kept.get(kind, []) + rows, key=lambda row: order.index(row.get("case", kind)))
    results["left_out"] = list(dict.fromkeys(left_out + session.left_out))
    (chosen.output / f"{stem}.json").write_text(as_json(results))
    report.write(results, chosen.output, stem)
    print(f"\n{chosen.output / stem}.md")
    if chosen.output.resolve() == ROOT / "docs" / "benchmarks":
        index.write(ROOT)


if __name__ == "__main__":
    main()
