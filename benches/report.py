"""Tables and pictures of what was measured: cpu.md, cpu.png, growth.png.

`LINES[kind](rows)` are the lines of a Markdown table below `HEADS[kind]`. The terminal shows the same lines. This
module also computes whether each figure of the design is reached.
"""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

import cases
from measure import DISTURBED, MORE
from session import fastest

COLOURS = {"recon": "tab:red", "DUCC0": "tab:blue", "FINUFFT": "tab:green"}
OPERATIONS = ("adjoint", "forward")


def head(*columns):
    return ["| " + " | ".join(columns) + " |", "| " + " | ".join("---" for _ in columns) + " |"]


def line(*cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def case_named(name):
    return next(case for case in cases.TRANSFORMS if case.name == name)


def best_cell(row):
    return f"{row['median_ms']:.2f} ms ({row['setting']}: {row['error']:.1e})" if row else "not reached"


def ratio_cell(ours, theirs):
    return f"{ours['median_ms'] / theirs['median_ms']:.2f}" if ours and theirs else "-"


def others_cell(rows):
    return f"{max(row['others'] for row in rows):.2f}"


def transform_lines(rows):
    """For rows of one operation and number of threads: a line for each error of the case."""
    case = case_named(rows[0]["case"])
    lines = []
    for error in case.errors:
        recon, ducc, fin = (fastest(rows, side, error) for side in COLOURS)
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
    "exact": head("side", "voxels or build", "precision", "threads", "G pairs/s", "error", "ms", "others"),
    "solutions": head("case", "side", "setting", "threads", "runs", "seconds", "peak GB", "error", "others"),
    "growth": head("series", "value", "recon", "DUCC0", "others"),
}
LINES = {
    "transforms": transform_lines,
    "exact": exact_lines,
    "solutions": solution_lines,
    "growth": growth_lines,
}


def groups(rows, *keys):
    """Rows that agree in `keys`, in the order in which they were measured."""
    grouped = {}
    for row in rows:
        grouped.setdefault(tuple(row[key] for key in keys), []).append(row)
    return grouped


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


def solution_figures(rows, threads):
    """Figures for each setting of recon, because the image of BART has an error too."""
    for solution in cases.SOLUTIONS:
        found = [row for row in rows if (row["case"], row["threads"]) == (solution.name, threads)]
        bart = next((row for row in found if row["side"] == "BART"), None)
        for row in found:
            if row["side"] == "recon":
                yield from solution_figure(solution, row, bart)


def solution_figure(solution, recon, bart):
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
        f" over {results['checked']} outputs drawn at random.",
        "OpenMP's threads are told to sleep when they have nothing to do, so that FINUFFT's do not disturb the next:"
        f" recon ({waiting['case']}, {waiting['threads']} threads) takes {waiting['alone_ms']:.2f} ms alone,"
        f" {waiting['after_ducc0_ms']:.2f} ms right after DUCC0,"
        f" {waiting['after_finufft_ms']:.2f} ms right after FINUFFT.",
    )
    return "\n".join(f"- {item}" for item in items)


def transform_section(results):
    return [
        "## Transforms at equal error",
        "Of each side the fastest setting whose measured error is small enough: time of a repeated transform (setting:"
        " measured error). Settings are precision and tolerance asked for, of recon the window's width and the"
        " oversampling that it chose, of FINUFFT the oversampling if it was told one. "
        + " ".join(f"{case.name}: {case.what}." for case in cases.TRANSFORMS),
        table("transforms", results["transforms"], "case", "operation", "threads"),
        f"Every setting, with {max(results['threads'])} threads; the dashed lines are the errors of the table:",
        "![time against measured error](cpu.png)",
    ]


def exact_section(results):
    return [
        "## Exact sums",
        f"F^H d. Cartesian: {cases.EXACT_CARTESIAN_SAMPLES} samples of stone, its whole grid."
        " List, and the loop of Stone et al. 2008:"
        f" {cases.EXACT_LIST_SAMPLES} samples, {cases.EXACT_LIST_VOXELS} voxels at random places. That loop is"
        " benches/stone_loop.c by GCC with its vector mathematics, for this machine (native) and for SSE3, theirs"
        " choice (sse3).",
        table("exact", results["exact"], "precision", "threads"),
    ]


def solution_section(results):
    commands = dict.fromkeys(row["command"] for row in results["solutions"] if row["side"] == "BART")
    return [
        "## Conjugate gradients",
        "Whole processes that read and write .cfl files: reading, plan, F^H d, Q where it is used, iterations, writing."
        " The error is relative l2, from the image of the same iterations by recon in double precision at a tolerance"
        " of 1e-9, after the one complex factor that makes it least (BART scales its transforms differently). "
        + " ".join(f"{solution.name}: {solution.what}." for solution in cases.SOLUTIONS),
        table("solutions", results["solutions"], "case", "threads"),
        "\n".join(f"    {command}" for command in commands),
    ]


def growth_section(results):
    return [
        "## Growth",
        f"Adjoint, {max(results['threads'])} threads, one setting a side for each series: the fastest that has the"
        " loosest error above in radial2d or stone; its error at each point is over fewer outputs. samples: times those"
        " of radial2d (2D) and stone (3D). matrix: voxels an axis, samples of stone. coils: radial2d, without maps, all"
        " in one call.",
        table("growth", results["growth"], "series", "value"),
        "![growth of cost](growth.png)",
    ]


SECTIONS = {
    "transforms": transform_section,
    "exact": exact_section,
    "solutions": solution_section,
    "growth": growth_section,
}


def markdown(results):
    parts = [
        "# Benchmarks: CPU",
        "Generated by `make bench`; edit benches/ instead. What there is to say on misses: [notes.md](notes.md).",
        "**A quick run, to see whether the harness works: few settings, few runs.**" if results["quick"] else "",
        environment(results),
        "## Figures to reach",
        f"{max(results['threads'])} threads. Peers as measured in the same run.",
        "\n".join(head("case", "peer", "to reach", "recon", "verdict") + list(figures(results))),
    ]
    for kind, section in SECTIONS.items():
        if results[kind]:
            parts += section(results)
    return "\n\n".join(part for part in parts if part) + "\n"


def label_decades(axis):
    """Labels a logarithmic axis that spans too little for labels at powers of ten alone."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=20))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def draw_errors(results, path):
    """Draws time against measured error, with a column for each case and a row for each operation."""
    threads = max(results["threads"])
    measured = groups([row for row in results["transforms"] if row["threads"] == threads], "operation", "case")
    names = list(dict.fromkeys(case for _, case in measured))
    if not names:
        return
    figure, panels = plt.subplots(2, len(names), figsize=(4 * len(names), 6.4), squeeze=False, layout="constrained")
    for (operation, name), rows in measured.items():
        panel = panels[OPERATIONS.index(operation)][names.index(name)]
        for side, colour in COLOURS.items():
            for precision, style in (("f32", "o-"), ("f64", "s:")):
                points = sorted(
                    (row["error"], row["median_ms"])
                    for row in rows
                    if (row["side"], row["precision"]) == (side, precision)
                )
                if points:
                    label = side if precision == "f32" else f"{side}, f64"
                    panel.loglog(*zip(*points), style, color=colour, markersize=4, linewidth=1, label=label)
        for error in case_named(name).errors:
            panel.axvline(error, color="grey", linewidth=0.6, linestyle="--")
        label_decades(panel.yaxis)
        panel.set(title=f"{name}, {operation}", xlabel="measured relative error", ylabel="ms")
        panel.grid(alpha=0.25)
    panels[0][0].legend(fontsize=8)
    figure.savefig(path, dpi=90)
    plt.close(figure)


def draw_growth(results, path):
    series = groups(results["growth"], "series")
    if not series:
        return
    figure, panels = plt.subplots(1, len(series), figsize=(3.4 * len(series), 3.2), squeeze=False, layout="constrained")
    for panel, ((name,), rows) in zip(panels[0], series.items()):
        for (side,), points in groups(rows, "side").items():
            values = [row["value"] for row in points]
            panel.loglog(
                values, [row["median_ms"] for row in points], "o-", color=COLOURS[side], markersize=4, label=side
            )
        panel.set_xticks(values, [str(value) for value in values])
        panel.xaxis.set_minor_locator(NullLocator())
        label_decades(panel.yaxis)
        panel.set(
            title=name, xlabel={"matrix, 3D": "voxels an axis", "coils, 2D": "coils"}.get(name, "times the samples")
        )
        panel.set_ylabel("ms")
        panel.grid(alpha=0.25, which="both")
    panels[0][0].legend(fontsize=8)
    figure.savefig(path, dpi=90)
    plt.close(figure)


def write(results, folder):
    (folder / "cpu.md").write_text(markdown(results))
    draw_errors(results, folder / "cpu.png")
    draw_growth(results, folder / "growth.png")
