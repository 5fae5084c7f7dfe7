"""The page of one processor, from what was measured there.

    report.py FILE.json...                  # writes the pages and pictures beside these files again
    report.py --into FOLDER FILE.json...    # takes tables from elsewhere into a folder; overwrites no other machine's

`LINES[kind](rows)` are the lines of a Markdown table below `HEADS[kind]`. The terminal shows the same lines. This
module also computes whether each figure of the design is reached.
"""

import argparse
import json
from pathlib import Path

import cases
import measure
from cases import PLAN, TRAJECTORY
from index import absent
from measure import DISTURBED, MORE
from rows import add_speed_ups, as_json, fastest, groups, stem_in

SIDES = ("recon", "DUCC0", "FINUFFT")


def head(*columns):
    return ["| " + " | ".join(columns) + " |", "| " + " | ".join("---" for _ in columns) + " |"]


def line(*cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def best_cell(row):
    return f"{row['median_ms']:.2f} ms ({row['setting']}: {row['error']:.1e})" if row else "not reached"


def ratio_cell(ours, theirs):
    return f"{ours['median_ms'] / theirs['median_ms']:.2f}" if ours and theirs else "-"


def others_cell(rows):
    return f"{max(row['others'] for row in rows):.2f}"


def transform_lines(rows):
    """For rows of one operation and number of threads: a line for each error of the case."""
    case = cases.transform_named(rows[0]["case"])
    lines = []
    for error in case.errors:
        recon, ducc, fin = (fastest(rows, side, error) for side in SIDES)
        lines.append(
            line(
                *(rows[0][key] for key in ("case", "operation", "threads")),
                f"{error:.0e}",
                *(best_cell(row) for row in (recon, ducc, fin)),
                ratio_cell(recon, ducc),
                ratio_cell(recon, fin),
                others_cell(rows),
            )
        )
    return lines


def milliseconds_cell(row):
    return f"{row['median_ms']:.2f} ms" if row else "-"


def plan_lines(rows):
    """For rows of one case and number of threads at one error: a line for plans, and one for new trajectories."""
    lines = []
    for (what,), done in groups(rows, "what").items():
        found = {(row["side"], row["operation"]): row for row in done}
        recon, ducc, fin = (found.get((side, "adjoint")) for side in SIDES)
        other = found.get(("DUCC0", "forward"))
        both = {"median_ms": ducc["median_ms"] + other["median_ms"]} if ducc and other else None
        lines.append(
            line(
                *(rows[0][key] for key in ("case", "threads")),
                f"{rows[0]['bound']:.0e}",
                what,
                *(milliseconds_cell(row) for row in (recon, ducc, other, fin)),
                *(ratio_cell(recon, row) for row in (ducc, both, fin)),
                f"{recon['median_ms'] / recon['transform_ms']:.1f}" if recon else "-",
                others_cell(rows),
            )
        )
    return lines


def frames_cell(row):
    return f"{row['frames_per_s']:.0f} ({row['setting']}: {row['error']:.1e})" if row else "-"


def realtime_lines(rows):
    """For rows of one number of threads: one line."""
    error = cases.REALTIME.error
    ways = [("recon", PLAN), ("recon", TRAJECTORY), ("DUCC0", PLAN), ("FINUFFT", PLAN), ("FINUFFT", TRAJECTORY)]
    cells = [fastest([row for row in rows if row["way"] == way], side, error) for side, way in ways]
    recon, ducc, fin = (fastest(rows, side, error) for side in SIDES)
    ratios = (ratio_cell(recon, row) for row in (ducc, fin))
    return [line(rows[0]["threads"], f"{error:.0e}", *map(frames_cell, cells), *ratios, others_cell(rows))]


def exact_lines(rows):
    return [
        line(
            *(row[key] for key in ("side", "setting", "precision", "threads")),
            f"{row['gpairs_per_s']:.2f}",
            f"{row['error']:.1e}",
            f"{row['median_ms']:.1f}",
            others_cell([row]),
        )
        for row in rows
    ]


def solution_lines(rows):
    return [
        line(
            *(row[key] for key in ("case", "side", "setting", "threads", "runs")),
            f"{row['seconds']:.2f}",
            f"{row['speed_up']:.2f}" if row["speed_up"] else "-",
            f"{row['peak_bytes'] / 1e9:.2f}",
            f"{row['error']:.1e}",
            others_cell([row]),
        )
        for row in rows
    ]


def growth_lines(rows):
    """For rows of one point: one line."""
    cells = {row["side"]: f"{row['median_ms']:.2f} ms ({row['setting']}: {row['error']:.1e})" for row in rows}
    sides = (cells.get(side, "-") for side in ("recon", "DUCC0"))
    return [line(rows[0]["series"], rows[0]["value"], *sides, others_cell(rows))]


def backprojection_lines(rows):
    """For rows of one number of threads: one line."""
    gridding, filtered = ({row["side"]: row for row in rows}[side] for side in ("gridding", "backprojection"))
    cells = [f"{row['median_ms']:.2f} ms ({row['setting']}: {row['error']:.3f})" for row in (filtered, gridding)]
    return [line(rows[0]["threads"], *cells, f"{filtered['median_ms'] / gridding['median_ms']:.2f}", others_cell(rows))]


HEADS = {
    "transforms": head(
        "case",
        "operation",
        "threads",
        "error <=",
        "recon",
        "DUCC0",
        "FINUFFT",
        "recon / DUCC0",
        "recon / FINUFFT",
        "others",
    ),
    "plans": head(
        "case",
        "threads",
        "error <=",
        "what",
        "recon",
        "DUCC0, adjoint",
        "DUCC0, forward",
        "FINUFFT, type 1",
        "recon / DUCC0",
        "recon / both of DUCC0",
        "recon / FINUFFT",
        "recon's, in its transforms",
        "others",
    ),
    "realtime": head(
        "threads",
        "error <=",
        "recon, new plan",
        "recon, new trajectory",
        "DUCC0, new plan",
        "FINUFFT, new plan",
        "FINUFFT, new trajectory",
        "recon / DUCC0, time",
        "recon / FINUFFT, time",
        "others",
    ),
    "backprojection": head("threads", "backprojection", "gridding", "backprojection / gridding", "others"),
    "exact": head("side", "voxels or build", "precision", "threads", "G pairs/s", "error", "ms", "others"),
    "solutions": head(
        "case",
        "side",
        "setting",
        "threads",
        "runs",
        "seconds",
        "speed-up",
        "peak GB",
        "error",
        "others",
    ),
    "growth": head("series", "value", "recon", "DUCC0", "others"),
}
LINES = {
    "transforms": transform_lines,
    "plans": plan_lines,
    "realtime": realtime_lines,
    "backprojection": backprojection_lines,
    "exact": exact_lines,
    "solutions": solution_lines,
    "growth": growth_lines,
}


KINDS = tuple(HEADS)


def table(kind, rows, *keys):
    return "\n".join(HEADS[kind] + [text for group in groups(rows, *keys).values() for text in LINES[kind](group)])


def verdict(measured, limit, rows, at_least=False):
    """Whether a limit is kept, or by how much it is missed; and whether other processes disturbed the measurement."""
    kept = measured >= limit if at_least else measured <= limit
    missed = f"{100 * (1 - measured / limit):.1f} % short" if at_least else f"{100 * (measured / limit - 1):.1f} % over"
    disturbed = max((row["others"] for row in rows), default=0.0)
    note = f" (disturbed: others took {disturbed:.1f} cores)" if disturbed > DISTURBED else ""
    return ("met" if kept else f"missed: {missed}") + note


def transform_figures(rows, threads):
    for case in cases.TRANSFORMS:
        for operation in case.figures_for:
            key = (case.name, operation, threads)
            measured = [row for row in rows if (row["case"], row["operation"], row["threads"]) == key]
            if measured:
                yield from (transform_figure(case, operation, error, measured) for error in case.errors)


def transform_figure(case, operation, error, rows):
    name = f"{case.name}, {operation}, error <= {error:.0e}"
    recon, ducc = (fastest(rows, side, error) for side in ("recon", "DUCC0"))
    wanted = f"<= {cases.SHARE_OF_DUCC0} x DUCC0"
    if not recon:
        return line(name, best_cell(ducc), wanted, "not reached", "missed: no setting has this error")
    if not ducc:
        return line(name, best_cell(ducc), wanted, f"{recon['median_ms']:.2f} ms", "met: DUCC0 has no such setting")
    limit = cases.SHARE_OF_DUCC0 * ducc["median_ms"]
    return line(
        name,
        f"DUCC0 {ducc['median_ms']:.2f} ms",
        f"{wanted} = {limit:.2f} ms",
        f"{recon['median_ms']:.2f} ms, {ratio_cell(recon, ducc)} x DUCC0",
        verdict(recon["median_ms"], limit, [recon, ducc]),
    )


def exact_figures(rows, threads):
    rows = [row for row in rows if row["threads"] == threads]
    for figure in cases.EXACT_FIGURES:
        found = {(row["side"], row["setting"]): row for row in rows if row["precision"] == figure.precision}
        recon = found.get(("recon", figure.voxels))
        if recon:
            loop = [f"{row['gpairs_per_s']:.2f} ({build})" for (side, build), row in found.items() if side != "recon"]
            kept = verdict(recon["gpairs_per_s"], figure.gpairs, [recon], at_least=True)
            if recon["error"] > figure.error:
                kept = f"missed: the error is {recon['error'] / figure.error:.1f} times too large; speed {kept}"
            yield line(
                f"exact, {figure.voxels} voxels, {figure.precision}, error <= {figure.error:.0e}",
                f"Stone's loop {', '.join(loop)} G pairs/s",
                f">= {figure.gpairs:.0f} G pairs/s",
                f"{recon['gpairs_per_s']:.2f} G pairs/s, error {recon['error']:.1e}",
                kept,
            )


def backprojection_figures(rows):
    case = cases.BACKPROJECTION
    for row in rows:
        if (row["side"], row["threads"]) == ("backprojection", 2):
            yield line(
                f"{case.name}, 2 threads",
                "Schiwietz et al. 2006: 16.7 s, on their GPU 0.13 s",
                f"<= {case.milliseconds:.0f} ms",
                f"{row['median_ms']:.2f} ms",
                verdict(row["median_ms"], case.milliseconds, [row]),
            )


def solution_figures(rows, threads):
    """Figures for each setting of recon, because the image of BART has an error too."""
    for solution in cases.SOLUTIONS:
        found = [row for row in rows if (row["case"], row["threads"]) == (solution.name, threads)]
        bart = next((row for row in found if row["side"] == "BART"), None)
        for row in found:
            if row["side"] == "recon":
                yield from solution_figure(solution, row, bart)


def solution_figure(solution, recon, bart):
    if not solution.seconds:
        return
    name = f"{solution.name}, {recon['setting']}"
    yield line(
        f"{name}, time",
        f"BART {bart['seconds']:.2f} s, error {bart['error']:.1e}" if bart else "not run",
        f"<= {solution.seconds} s",
        f"{recon['seconds']:.2f} s, error {recon['error']:.1e}",
        verdict(recon["seconds"], solution.seconds, [recon]),
    )
    if solution.gigabytes:
        yield line(
            f"{name}, peak memory",
            f"BART {bart['peak_bytes'] / 1e9:.2f} GB" if bart else "not run",
            f"<= {solution.gigabytes} GB",
            f"{recon['peak_bytes'] / 1e9:.2f} GB",
            verdict(recon["peak_bytes"] / 1e9, solution.gigabytes, []),
        )


def figures(results):
    threads = max(results["threads"])
    yield from transform_figures(results["transforms"], threads)
    yield from exact_figures(results["exact"], threads)
    yield from backprojection_figures(results.get("backprojection", []))
    yield from solution_figures(results["solutions"], threads)


def environment(results):
    """The machine, the versions and the conditions of the measurements."""
    machine, waiting = results["machine"], results["waiting"]
    items = (
        f"Measured on {results['date']}; {machine['cpu']}, {machine['cores']} cores,"
        f" {', '.join(machine['vector_units'])};"
        f" {machine['memory_bytes'] / 2**30:.0f} GiB memory; {machine['system']}.",
        "; ".join(f"{name} {version}" for name, version in results["versions"].items()) + ".",
        f"Threads: {', '.join(map(str, results['threads']))}. Medians of {results['runs']} runs after one that is not"
        " counted, of whole processes as many as the table says.",
        f"While other processes took more than {DISTURBED} cores up to {MORE} more runs were made, and those least"
        " disturbed kept. The column others says how many cores, on average, others took even so.",
        "Errors: relative l2 against direct sums in double precision of the same single-precision coordinates and data,"
        f" over {results['checked']} outputs drawn at random (fewer, but at least 64, for trajectories with many"
        " samples).",
        "OpenMP's threads are told to sleep when they have nothing to do, so that FINUFFT's do not disturb the next:"
        f" recon ({waiting['case']}, {waiting['threads']} threads) takes {waiting['alone_ms']:.2f} ms alone,"
        f" {waiting['after_ducc0_ms']:.2f} ms right after DUCC0,"
        f" {waiting['after_finufft_ms']:.2f} ms right after FINUFFT.",
        *(f"Left out: {what}." for what in absent(results)),
    )
    return "\n".join(f"- {item}" for item in items)


TITLES = {
    "transforms": "transforms at equal error",
    "plans": "plans, and new trajectories for them",
    "realtime": "real time",
    "backprojection": "filtered backprojection",
    "exact": "exact sums",
    "solutions": "conjugate gradients",
    "growth": "growth",
}


def described(known, rows):
    """Describes the cases that have rows."""
    names = {row["case"] for row in rows}
    return " ".join(f"{case.name}: {case.what}." for case in known if case.name in names)


def transform_section(results, stem):
    return [
        "Of each side the fastest setting whose measured error is small enough: time of a repeated transform (setting:"
        " measured error). Settings are precision and tolerance asked for, of recon the window's width and the"
        " oversampling that it chose, of FINUFFT the oversampling if it was told one. "
        + described(cases.TRANSFORMS, results["transforms"]),
        table("transforms", results["transforms"], "case", "operation", "threads"),
        f"Every setting, with {max(results['threads'])} threads; the dashed lines are the errors of the table:",
        f"![time against measured error]({stem}.png)",
    ]


def plan_section(results, _):
    return [
        "Each side's plan at the setting that won the adjoint above, with coordinates in its own format beforehand."
        " One plan of recon serves both directions. DUCC0's is made for one of them: its documentation says that it can"
        " be used for both, but is optimised for the one that was named, and so were the transforms measured; both"
        " plans are timed, the other at the setting that won the forward transform. FINUFFT's is the plan of type 1"
        " with its points set. A new trajectory has as many samples: recon_plan_set_trajectory, FINUFFT's setpts, and a"
        " new plan of DUCC0. Each is made twice in its turn, and the second time counts, so that no side pays for the"
        " memory that the one before has given back to the system. The last column but one: recon's"
        " time in times of its own adjoint.",
        table("plans", results["plans"], "case", "threads", "bound"),
    ]


def realtime_section(results, _):
    frame = cases.REALTIME
    return [
        f"Frames per second: {frame.what}. Every frame has a trajectory of its own. Timed are the plan, or the new"
        " trajectory for a plan, and the adjoint of all coils in one call, of data that are weighted by a given density"
        f" (recon is given the weights, numpy multiplies for the others). Medians of turns of {frame.frames} frames."
        " The fastest setting of each side whose measured error is small enough; the ratios are of the better way of"
        " each side.",
        table("realtime", results["realtime"], "threads"),
    ]


def backprojection_section(results, _):
    case = cases.BACKPROJECTION
    return [
        f"{case.what}, of the Shepp-Logan phantom: recon_fbp beside recon_grid with ramp weights and a tolerance of"
        f" {case.tolerance:.0e}, both with a plan that is there. In brackets the relative l2 error from the phantom's"
        " own image, which k-space ends too early to reach. Schiwietz et al. 2006: 16.7 s on their CPU, 0.13 s on"
        " their GPU.",
        table("backprojection", results["backprojection"], "threads"),
    ]


def exact_section(results, _):
    return [
        f"F^H d. Cartesian: {cases.EXACT_CARTESIAN_SAMPLES} samples of stone, its whole grid."
        " List, and the loop of Stone et al. 2008:"
        f" {cases.EXACT_LIST_SAMPLES} samples, {cases.EXACT_LIST_VOXELS} voxels at random places. That loop is"
        " benches/stone_loop.c by GCC with its vector mathematics, for this machine (native) and for SSE3, theirs"
        " choice (sse3).",
        table("exact", results["exact"], "precision", "threads"),
    ]


def solution_section(results, _):
    commands = dict.fromkeys(row["command"] for row in results["solutions"] if row["side"] == "BART")
    return [
        "Whole processes that read and write .cfl files: reading, plan, F^H d, Q where it is used, iterations, writing."
        " The error is relative l2, from the image of the same iterations by recon in double precision at a tolerance"
        " of 1e-9, after the one complex factor that makes it least (BART scales its transforms differently). "
        + described(cases.SOLUTIONS, results["solutions"])
        + " speed-up: over one thread.",
        table("solutions", results["solutions"], "case", "threads"),
        "\n".join(f"    {command}" for command in commands),
    ]


def growth_section(results, stem):
    return [
        f"Adjoint, {max(results['threads'])} threads, one setting a side for each series: the fastest that has the"
        " loosest error above in radial2d or stone; its error at each point is over fewer outputs. samples: times those"
        " of radial2d (2D) and stone (3D). matrix: voxels an axis, samples of stone. coils: radial2d, without maps, all"
        " in one call.",
        table("growth", results["growth"], "series", "value"),
        f"![growth of cost]({stem}-growth.png)",
    ]


SECTIONS = {
    "transforms": transform_section,
    "plans": plan_section,
    "realtime": realtime_section,
    "backprojection": backprojection_section,
    "exact": exact_section,
    "solutions": solution_section,
    "growth": growth_section,
}


def markdown(results, stem):
    add_speed_ups(results["solutions"])
    figure_lines = list(figures(results))
    parts = [
        f"# Benchmarks: {stem}",
        "Generated by `make bench`; edit benches/ instead. Tables of other processors: [README.md](README.md). What"
        " there is to say on misses: [notes.md](notes.md).",
        "**A quick run, to see whether the harness works: few settings, few runs.**" if results["quick"] else "",
        environment(results),
    ]
    if figure_lines:
        parts += [
            "## Figures to reach",
            f"{max(results['threads'])} threads. Peers as measured in the same run.",
            "\n".join(head("case", "peer", "to reach", "recon", "verdict") + figure_lines),
        ]
    for kind, section in SECTIONS.items():
        if results.get(kind):
            parts += [f"## {TITLES[kind].capitalize()}", *section(results, stem)]
    return "\n\n".join(part for part in parts if part) + "\n"


def write(results, folder, stem):
    (folder / f"{stem}.md").write_text(markdown(results, stem))
    try:
        import pictures
    except ImportError:
        command = f"python3 benches/report.py {stem}.json"
        measure.progress(f"left out: pictures (no matplotlib); where there is one, this draws them: {command}")
        return
    pictures.draw_errors(results, folder / f"{stem}.png")
    pictures.draw_growth(results, folder / f"{stem}-growth.png")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", metavar="FOLDER", type=Path)
    parser.add_argument("tables", metavar="FILE.json", type=Path, nargs="+")
    chosen = parser.parse_args()
    for path in chosen.tables:
        results, folder, stem = json.loads(path.read_text()), path.parent, path.stem
        if chosen.into:
            folder, stem = chosen.into, stem_in(chosen.into, stem, results)
            (folder / f"{stem}.json").write_text(as_json(results))
        write(results, folder, stem)
        print(folder / f"{stem}.md")


if __name__ == "__main__":
    main()
