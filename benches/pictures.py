"""Plots of the measurements: time against error, and growth of cost."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

import cases
from rows import groups

COLOURS = {"recon": "tab:red", "DUCC0": "tab:blue", "FINUFFT": "tab:green"}
OPERATIONS = ("adjoint", "forward")


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
        for error in cases.transform_named(name).errors:
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
