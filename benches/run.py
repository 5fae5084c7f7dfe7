"""`make bench`: recon beside its peers on this machine's CPU, at equal measured error.

    run.py [--quick] [--only CASE] [--threads LIST] [--output DIR]

recon, DUCC0 and FINUFFT run in this one process and take turns, one transform each; what counts is the median of seven
rounds, after one that does not. While other processes disturb them up to three more are made, and the seven least
disturbed count. Every side sweeps its own tolerance; errors are measured against direct sums in double precision, and
the fastest setting that meets an error stands for its side. BART, and what is compared with it, are whole processes.
Tables go to stdout as they are measured, progress to stderr; cpu.md, cpu.json, cpu.png and growth.png to --output,
which is docs/benchmarks for a whole run, and otherwise target/bench/output.
"""

import argparse
import os
from pathlib import Path

# This is set before any OpenMP library is loaded. Otherwise the threads of FINUFFT and of Stone's loop would spin for a
# while after a transform, and take the cores from the side that has the next turn. With these settings they sleep at
# once. OpenBLAS computes the reference sums only.
os.environ.update(OMP_WAIT_POLICY="passive", GOMP_SPINCOUNT="0", OPENBLAS_NUM_THREADS="1")

import numpy as np

import cases
import exact
import growth
import machine
import recon_library
import report
import solutions
import transforms
from rows import as_json
from session import Session

ROOT = Path(__file__).resolve().parent.parent
SEED = 1


def suites():
    """For each case: the kind of its rows, the function that yields the rows in parts, and its arguments."""
    named = {case.name: ("transforms", transforms.measure_case, case) for case in cases.TRANSFORMS}
    named["exact"] = ("exact", exact.measure_all)
    named |= {solution.name: ("solutions", solutions.measure_solution, solution) for solution in cases.SOLUTIONS}
    return named | {"growth": ("growth", growth.measure_all)}


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few settings, three runs, no BART: does it work at all?")
    parser.add_argument("--only", metavar="CASE", choices=list(suites()), help=f"one of {', '.join(suites())}")
    parser.add_argument("--threads", metavar="LIST", default="1,2", help="numbers of threads [1,2]")
    parser.add_argument("--output", metavar="DIR", type=Path, help="where tables and pictures go")
    parser.add_argument(
        "--build", metavar="DIR", type=Path, default=ROOT / "target", help="cargo's target folder [target]"
    )
    parsed = parser.parse_args()
    parsed.threads = sorted({int(count) for count in parsed.threads.split(",")})
    if parsed.output is None:
        partial = parsed.quick or parsed.only
        parsed.output = parsed.build / "bench" / "output" if partial else ROOT / "docs" / "benchmarks"
    return parsed


def main():
    chosen = options()
    library = recon_library.Library(chosen.build / "release" / "librecon.so", ROOT / "include" / "recon.h")
    session = Session(
        library=library,
        archive=chosen.build / "release" / "librecon.a",
        include=ROOT / "include",
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
        "waiting": transforms.measure_waiting(session),
    }
    for name, (kind, measure_some, *arguments) in suites().items():
        rows = results.setdefault(kind, [])
        if chosen.only in (None, name):
            print(f"\n{name}\n" + "\n".join(report.HEADS[kind]), flush=True)
            for some in measure_some(session, *arguments):
                rows += some
                print("\n".join(report.LINES[kind](some)), flush=True)
    chosen.output.mkdir(parents=True, exist_ok=True)
    (chosen.output / "cpu.json").write_text(as_json(results))
    report.write(results, chosen.output)


main()
