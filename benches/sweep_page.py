"""Tables of `make bench-sweep`: ratios of recon's time to a peer's over all cases, and the worst cases with commands.

Only Python's standard library is needed.
"""

import math
import statistics

from rows import groups
from sweep_names import CALL, OURS, PLAN, TRANSFORM

# Times of recon up to this many milliseconds do not count on a CPU: the Python layers of the sides differ by as much.
SHORT_MS = {"cpu": 0.02, "gpu": 0.0}
WORST = 8


def line(*cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def times(row, what):
    """Returns recon's milliseconds and those of its peers, or None for recon if it does not meet the error."""
    found = dict(row["ms"].get(what, {}))
    return found.pop(OURS, None), found


def ratio(row, what, peer=None):
    """Returns recon's time over that of a peer, or of the fastest peer; None if a side is missing, inf if recon is."""
    ours, theirs = times(row, what)
    against = theirs.get(peer) if peer else min(theirs.values(), default=None)
    if against is None or (ours is None and OURS in row["settings"]):
        return None
    return math.inf if ours is None else ours / against


def quantile(values, share):
    """Returns the smallest value that at least this share of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def shown(value):
    return "not reached" if math.isinf(value) else f"{value:.2f}"


def counts(row, what, device):
    """Returns whether recon's time of a row is long enough to count."""
    ours = times(row, what)[0]
    return ours is None or ours > SHORT_MS[device]


def measured(rows):
    """Returns what was measured, transforms first."""
    found = dict.fromkeys(what for row in rows for what in row["ms"])
    order = (TRANSFORM, PLAN, CALL)
    return sorted(found, key=lambda what: order.index(what.split(",")[0]))


def peers_of(rows):
    return sorted({name for row in rows for name in row["ms"].get(TRANSFORM, {}) if name != OURS})


def summary(rows, device):
    names = peers_of(rows)
    against = [*names, None] if len(names) > 1 else names
    lines = [
        line("what", "operation", "peer", "cases", "median", "nine in ten at most", "worst", "above 1.0", "that count"),
        line(*["---"] * 9),
    ]
    for what in measured(rows):
        for operation in dict.fromkeys(row["operation"] for row in rows):
            for peer in against:
                of_operation = [row for row in rows if row["operation"] == operation]
                pairs = [(row, ratio(row, what, peer)) for row in of_operation]
                values = [value for _, value in pairs if value is not None]
                if not values:
                    continue
                above = [row for row, value in pairs if value is not None and value > 1]
                long = [row for row in above if counts(row, what, device)]
                middle = [statistics.median(values), quantile(values, 0.9), max(values)]
                name = peer or "the fastest peer"
                lines.append(line(what, operation, name, len(values), *map(shown, middle), len(above), len(long)))
    return lines


def command(device, row, runs=3):
    """Returns the command that measures a case alone."""
    threads = f" --threads {row['threads']}" if row["threads"] else ""
    chosen = " DEVICE=gpu" if device == "gpu" else ""
    flags = f"--seed {row['seed']} --case {row['case']} --runs {runs}{threads}"
    return f'make bench-sweep{chosen} BENCH_FLAGS="{flags}"'


def described(row):
    dims = " x ".join(map(str, row["dims"]))
    coils = f" x {row['coils']} coils" if row["coils"] > 1 else ""
    return f"{dims}, {row['samples']} samples{coils}, {row['precision']}, {row['error']:.1e}, {row['points']}"


def milliseconds(value):
    return "not reached" if value is None else f"{value:.4f}" if value < 1 else f"{value:.2f}"


def worst(rows, what, device, most=WORST):
    """Returns the rows with the largest ratios that count, the largest first."""
    pairs = [(row, ratio(row, what)) for row in rows if counts(row, what, device)]
    pairs = [(row, value) for row, value in pairs if value is not None]
    return sorted(pairs, key=lambda pair: -pair[1])[:most]


def worst_lines(rows, what, device):
    lines = [
        line("case", "operation", "ratio", "recon", "fastest peer", "what is transformed", "again"),
        line(*["---"] * 7),
    ]
    for row, value in worst(rows, what, device):
        ours, theirs = times(row, what)
        name = min(theirs, key=theirs.get)
        again = ", ".join(shown(each) for each in row.get("again", {}).get(what, [])) or "-"
        cells = (f"{milliseconds(ours)} ms", f"{milliseconds(theirs[name])} ms ({name})", described(row), again)
        lines.append(line(row["case"], row["operation"], shown(value), *cells))
    return lines


def staying(rows, what):
    """Returns the rows that were above 1.0 each time that they were measured again."""
    return [row for row in rows if row.get("again", {}).get(what) and min(row["again"][what]) > 1]


def verdict(rows, what, device):
    """Returns a sentence on the cases in which recon is slower."""
    above = [row for row, value in worst(rows, what, device, len(rows)) if value > 1]
    again = [row for row in above if row.get("again", {}).get(what)]
    return (
        f"- {what}, above 1.0 that count: {len(above)}. Of these, {len(again)} were measured again three times at the"
        f"\n  end, and {len(staying(above, what))} were above 1.0 each time."
    )


def section(device, rows):
    """Returns the tables of one seed and number of threads."""
    transforms = [what for what in measured(rows) if what.split(",")[0] == TRANSFORM]
    parts = [summary(rows, device), [verdict(rows, what, device) for what in transforms]]
    for what in measured(rows):
        if worst(rows, what, device):
            parts.append([f"Worst cases, {what}:"])
            parts.append(worst_lines(rows, what, device))
    found = worst(rows, TRANSFORM, device, 1)
    if found:
        parts.append([f"A case alone, for example: `{command(device, found[0][0])}`"])
    return "\n\n".join("\n".join(lines) for lines in parts)


HEAD = {
    "cpu": "recon beside DUCC0 and FINUFFT on random shapes",
    "gpu": "recon on a GPU beside cuFINUFFT on random shapes",
}
TEXT = {
    "cpu": """\
- transform: a call with an existing plan.
- plan: its creation from coordinates in the format of the side.
- call: plan, transform and destruction. For one array DUCC0 is called without a plan.
- Times include the Python layer of each side. Cases in which recon takes 20 us or less do not count.""",
    "gpu": """\
- transform: a call with an existing plan, arrays on the GPU, between two events, as a C program calls it.
- transform, Python: the same through the Python layer of each side. cuFINUFFT's layer takes
  20 us.
- plan: its creation until the GPU has finished, from coordinates of the host or on the GPU. cuFINUFFT's plan includes
  setting its points, which are on the GPU in both cases.
- call: plan, transform and destruction, with all arrays in the host's pageable memory or all on the GPU. For
  cuFINUFFT, CuPy copies.
- cuFINUFFT's settings are its tolerances, methods 1 to 3, and oversampling 1.25 and 2.""",
}


def page(results):
    device = results["device"]
    about = {**results["machine"], **results["versions"], "date": results["date"]}
    parts = [
        f"# {HEAD[device]}",
        "`make bench-sweep` writes this page (benches/sweep.py). Ratios are recon's time over that of a peer, each at\n"
        "its fastest setting that meets the error of the case. Errors are measured at a few hundred outputs against\n"
        "direct sums in double precision. Times are medians; the sides take turns. shapes.py draws the cases.",
        TEXT[device],
        "\n".join(f"- {name}: {value}" for name, value in about.items()),
    ]
    for (seed, threads), rows in groups(results["rows"], "seed", "threads").items():
        on = f", {threads} thread{'s' * (threads > 1)}" if threads else ""
        cases = len({row["case"] for row in rows})
        parts += [f"## Seed {seed}{on}: {cases} cases", section(device, rows)]
    return "\n\n".join(parts) + "\n"
