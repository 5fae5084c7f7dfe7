"""docs/benchmarks/README.md, which lists the tables of all processors, and README.md's tables of the weakest figures
and of random shapes.

    python3 benches/index.py             # writes both; `make bench` does the same
    python3 benches/index.py --check     # says whether both are what the tables say, and changes nothing

A claim on speed holds as far as its weakest figure: of all processors, thread counts, cases, directions and errors that
were measured. Only Python's standard library is needed.
"""

import json
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

import cases
import sweep_page
from cases import PLAN, TRAJECTORY
from rows import fastest, groups

# Lines of README.md. This module writes the text from each of the first two to the next END.
WEAKEST = "<!-- Written by benches/index.py: the weakest figures of docs/benchmarks. -->"
RANDOM = "<!-- Written by benches/index.py: the ratios of random shapes. -->"
END = "<!-- The end of what benches/index.py writes. -->"
# Images of conjugate gradients are about as exact as BART's if their errors are at most this many times BART's.
ABOUT = 1.1


@dataclass(frozen=True)
class Figure:
    """Recon's time over a peer's for the same work at an error that both meet, or None if recon did not meet it."""

    claim: str
    case: str
    peer: str
    ratio: float | None
    # recon's own figure in its unit, and where it was measured.
    recon: str
    where: str

    @property
    def badness(self):
        return float("inf") if self.ratio is None else self.ratio


def threads_text(threads):
    return f"{threads} thread" + "s" * (threads > 1)


def times(row, unit="ms"):
    return f"{row['median_ms']:.2f} {unit}" if row else "not reached"


def ratio(ours, theirs, key):
    return ours[key] / theirs[key] if ours else None


def transform_figures(rows):
    for (case, operation, threads), found in groups(rows, "case", "operation", "threads").items():
        for error in cases.transform_named(case).errors:
            recon = fastest(found, "recon", error)
            for peer in ("DUCC0", "FINUFFT"):
                if theirs := fastest(found, peer, error):
                    where = f"{operation}, error {error:.0e}, {threads_text(threads)}"
                    yield "transforms", case, peer, ratio(recon, theirs, "median_ms"), times(recon), where


def plan_figures(rows):
    """Compares recon's plan with one plan of DUCC0, although that is for one direction only."""
    titles = {PLAN: "plans", TRAJECTORY: "new trajectories"}
    for (case, threads, bound, what), found in groups(rows, "case", "threads", "bound", "what").items():
        sides = {row["side"]: row for row in found if row["operation"] == "adjoint"}
        for peer in ("DUCC0", "FINUFFT"):
            if theirs := sides.get(peer):
                ours = sides.get("recon")
                where = f"error {bound:.0e}, {threads_text(threads)}"
                yield titles[what], case, peer, ratio(ours, theirs, "median_ms"), times(ours), where


def realtime_figures(rows):
    for (case, threads), found in groups(rows, "case", "threads").items():
        recon = fastest(found, "recon", cases.REALTIME.error)
        for peer in ("DUCC0", "FINUFFT"):
            if theirs := fastest(found, peer, cases.REALTIME.error):
                rate = f"{recon['frames_per_s']:.0f} frames/s" if recon else "not reached"
                yield "real time", case, peer, ratio(recon, theirs, "median_ms"), rate, threads_text(threads)


def solution_figures(rows):
    """Compares BART with the fastest setting of recon whose image is about as close to the exact one."""
    for (case, threads), found in groups(rows, "case", "threads").items():
        for theirs in (row for row in found if row["side"] == "BART"):
            near = [row for row in found if row["side"] == "recon" and row["error"] <= ABOUT * theirs["error"]]
            recon = min(near, key=lambda row: row["seconds"], default=None)
            took = f"{recon['seconds']:.2f} s" if recon else "not reached"
            yield "conjugate gradients", case, "BART", ratio(recon, theirs, "seconds"), took, threads_text(threads)


def exact_figures(rows):
    """Compares recon with the loop compiled for this machine. The loop's list of voxels is the same as recon's."""
    for (precision, threads), found in groups(rows, "precision", "threads").items():
        loop = next((row for row in found if row["setting"] == "native"), None)
        for recon in (row for row in found if row["side"] == "recon" and loop):
            rate = f"{recon['gpairs_per_s']:.1f} G pairs/s"
            case = "on a grid" if recon["setting"] == "Cartesian" else "on a list"
            where = f"{precision}, {threads_text(threads)}"
            yield "exact sums", case, "Stone's loop", loop["gpairs_per_s"] / recon["gpairs_per_s"], rate, where


KINDS = {
    "transforms": transform_figures,
    "plans": plan_figures,
    "realtime": realtime_figures,
    "solutions": solution_figures,
    "exact": exact_figures,
}


def figures(tables):
    for stem, results in tables.items():
        for kind, of_kind in KINDS.items():
            for claim, case, peer, of_peer, recon, where in of_kind(results.get(kind, [])):
                yield Figure(claim, case, peer, of_peer, recon, f"{where}, {stem.removeprefix('cpu-')}")


def weakest(found, *keys):
    """Returns the weakest of the figures that agree in `keys`, in their original order."""
    worst = {}
    for figure in found:
        key = tuple(getattr(figure, name) for name in keys)
        if key not in worst or figure.badness > worst[key].badness:
            worst[key] = figure
    return list(worst.values())


def line(*cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def weakest_lines(found):
    lines = [line("operation", "case", "peer", "recon's time / peer's", "recon", "setting"), line(*["---"] * 6)]
    for figure in found:
        shown = "not reached" if figure.ratio is None else f"{figure.ratio:.2f}"
        lines.append(line(figure.claim, figure.case, figure.peer, shown, figure.recon, figure.where))
    return "\n".join(lines)


# Kinds of rows that have a case.
CASES = ("transforms", "realtime", "backprojection", "solutions")


def absent(results):
    """Returns the cases that a table lacks: those that its run left out, and those that are newer than the table."""
    known = [*cases.TRANSFORMS, cases.REALTIME, cases.BACKPROJECTION, *cases.SOLUTIONS]
    measured = {row["case"] for kind in CASES for row in results.get(kind, [])}
    left_out = results.get("left_out", [])
    named = {line.split(" ", 1)[0] for line in left_out}
    newer = [case.name for case in known if case.name not in measured | named]
    newer += ["plans"] * (not results.get("plans"))
    return left_out + [f"{name} (not measured in this table)" for name in newer]


def processor_lines(tables):
    lines = [line("table", "processor", "cores", "threads", "measured", "recon", "left out"), line(*["---"] * 7)]
    for stem, results in tables.items():
        machine, counts = results["machine"], results["threads"]
        lines.append(
            line(
                f"[{stem}]({stem}.md)",
                machine["cpu"],
                machine["cores"],
                ", ".join(map(str, counts)),
                results["date"],
                results["versions"]["recon"],
                "; ".join(absent(results)) or "-",
            )
        )
    return "\n".join(lines)


def sweep_lines(folder):
    """Returns a line for each page of `make bench-sweep` in a folder."""
    return "\n".join(f"- [{path.stem}]({path.name})" for path in sorted(folder.glob("sweep-*.md"))) or "No run is published yet."


def random_lines(sweeps):
    """Returns a table of the ratios of all sweeps: each row is a processor, and what was measured there."""
    lines = [line("processor", "what", "median", "nine in ten at most", "worst"), line(*["---"] * 5)]
    for stem, results in sweeps.items():
        rows, machine = results["rows"], results["machine"]
        threads = {row["threads"] for row in rows}
        name = machine.get("GPU") or f"{machine['cpu']}, {'/'.join(map(str, sorted(threads)))} threads"
        for i, what in enumerate(sweep_page.measured(rows)):
            ratios = {
                operation: [value for row in of_operation if (value := sweep_page.ratio(row, what)) is not None]
                for operation, of_operation in groups(rows, "operation").items()
            }
            middle = [
                " / ".join(sweep_page.shown(statistic(values)) for values in ratios.values())
                for statistic in (statistics.median, lambda values: sweep_page.quantile(values, 0.9), max)
            ]
            lines.append(line("" if i else f"[{name}](docs/benchmarks/{stem}.md)", what, *middle))
    return "\n".join(lines)


def page(tables, folder):
    parts = [
        "# Benchmarks",
        "`make bench` writes this page (benches/index.py). Edit benches/ instead.",
        "`make bench` takes 20 minutes or more on an idle machine. It compares recon with DUCC0, FINUFFT, BART and the loop of\n"
        "Stone et al. 2008 on your CPU, at equal measured error, with 1, 2, 4 and so on to all threads. The cases are\n"
        "transforms, plans, new trajectories, frames in real time, conjugate gradients and exact sums. It installs the peers\n"
        "(`apt` as root, and pip in a virtual environment under `target/`) and writes one page named after the processor.\n\n"
        "- `make bench BENCH_FLAGS=--quick` checks in a few minutes whether it works.\n"
        "- `--only CASES`, `--threads 1,4` and `--output DIR` restrict it.\n"
        "- `make bench-bundle` packs the built files for a machine without Rust, compiler or network.\n"
        "- `make bench-gpu` measures a GPU, and `recon bench` recon alone.\n"
        "- `make bench-sweep` compares recon with its peers on random shapes.",
        "## CPUs",
        "One page per processor. Limits and experiments are described in [notes.md](notes.md).",
        processor_lines(tables),
        "## GPUs",
        "[gpu.md](gpu.md), with [notes-gpu.md](notes-gpu.md). `make bench-gpu` takes 8 minutes. Its suites can be run one by\n"
        "one: `make bench-gpu BENCH_FLAGS=\"--only plans,planar --add\"` keeps the others of the same GPU and commit.",
        "## Random shapes",
        "`make bench-sweep` draws shapes from a seed, and compares transforms, plans and whole calls: the ratios of times over\n"
        "all cases, and the worst cases with the command that measures one alone. On a GPU: `make bench-sweep DEVICE=gpu`.\n\n"
        "- `BENCH_FLAGS=\"--seed 7 --cases 200 --threads 1,16\"` selects the cases, and `--add` keeps those of other seeds.\n"
        "- `BENCH_FLAGS=\"--seed 7 --case 31 --runs 3\"` measures one case.\n"
        "- `BENCH_FLAGS='--set \"dims=74x74 samples=1493\"'` measures any other.",
        sweep_lines(folder),
        "## The weakest figures",
        "The table has the largest ratio of recon's time to a peer's time, over all processors, thread counts, directions and\n"
        "errors above.\n\n"
        "- Plans: recon's plan for both directions is compared with one plan of DUCC0, which is for one direction.\n"
        f"- Conjugate gradients: the fastest setting of recon whose error is at most {ABOUT} times that of BART.",
        weakest_lines(weakest(figures(tables), "claim", "case", "peer")),
        "## Defaults",
        "[defaults.md](defaults.md): the measurements behind the defaults of conjugate gradients.",
    ]
    return "\n\n".join(parts) + "\n"


def with_table(readme, begin, table):
    """Returns README.md with an updated table after the line `begin`."""
    before, rest = readme.split(begin)
    _, after = rest.split(END, 1)
    return f"{before}{begin}\n\n{table}\n\n{END}{after}"


def written(root):
    """Returns the expected content of each file."""
    folder, readme = root / "docs" / "benchmarks", root / "README.md"
    found = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("cpu-*.json"))}
    # Quick runs only show whether the benchmark works.
    tables = {stem: results for stem, results in found.items() if not results["quick"]}
    sweeps = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("sweep-*.json"), reverse=True)}
    text = with_table(readme.read_text(), WEAKEST, weakest_lines(weakest(figures(tables), "claim", "peer")))
    return {folder / "README.md": page(tables, folder), readme: with_table(text, RANDOM, random_lines(sweeps))}


def write(root):
    for path, text in written(root).items():
        path.write_text(text)


def stale(root):
    """Returns the files that differ from the tables."""
    return [path for path, text in written(root).items() if not path.exists() or path.read_text() != text]


def main():
    root = Path(__file__).resolve().parent.parent
    if "--check" not in sys.argv[1:]:
        return write(root)
    if found := stale(root):
        names = ", ".join(str(path.relative_to(root)) for path in found)
        sys.exit(f"{names}: not what the tables of docs/benchmarks say: run python3 benches/index.py")


if __name__ == "__main__":
    main()
