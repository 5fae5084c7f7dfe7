"""Tables of `make bench-gpu`. Only Python's standard library is needed."""

from sweep_page import line, milliseconds


def table(head, rows):
    return [line(*head), line(*["---"] * len(head)), *(line(*row) for row in rows)]


def ms(value):
    return "-" if value is None else f"{milliseconds(value)} ms"


def quotient(ours, theirs):
    return f"{ours / theirs:.2f}" if ours is not None and theirs else "-"


def sides(row, what):
    """Returns the milliseconds of recon and cuFINUFFT."""
    found = row["ms"].get(what, {})
    return found.get("recon"), found.get("cuFINUFFT")


def setting(row, side, value):
    if value is None:
        return "-"
    return f"{ms(value)} ({row['settings'][side]}: {row['errors'][side]:.1e})"


def pair(row, what):
    ours, theirs = sides(row, what)
    return f"{ms(ours)} / {ms(theirs)}"


def transform_tables(rows):
    """Returns the table of transforms, and that of plans and whole calls with the same settings."""
    first, second = [], []
    for row in rows:
        ours, theirs = sides(row, "transform")
        python = quotient(*sides(row, "transform, Python"))
        standard = row["first_ms"].get("cuFINUFFT", {}).get("2.0")
        name = row["case"] + (", f64" if row["precision"] == "f64" else "")
        common = (name, row["operation"], f"{row['error']:.0e}")
        cpu = f"{ms(row['cpu_ms'])} ({row['cpu_threads']} threads)" if "cpu_ms" in row else "-"
        first.append(
            (*common, setting(row, "recon", ours), setting(row, "cuFINUFFT", theirs), quotient(ours, theirs), python,
             quotient(ours, standard), row["asked"] or "-", ms(row.get("limit_ms")), cpu)
        )  # fmt: skip
        from_host, from_device = (pair(row, f"plan, {place}") for place in ("host", "device"))
        calls = (pair(row, f"call, {place}") for place in ("host", "device"))
        second.append((*common, from_host, from_device, *calls))
    head = ("case", "operation", "error at most")
    transforms = (*head, "recon", "cuFINUFFT", "ratio", "ratio, Python", "ratio, x2.0", "asked", "memory limit", "CPU")
    whole = (*head, "plan, host", "plan, device", "call, host", "call, device")
    return [*table(transforms, first), "", *table(whole, second)]


def plan_table(rows):
    lines = []
    for row in rows:
        host, device, theirs, copy = (row["ms"].get(name) for name in ("host", "device", "cuFINUFFT", "copy"))
        most = ms(theirs + 1.3 * copy) if theirs is not None else "-"
        lines.append((row["what"], ms(device), ms(host), ms(theirs), quotient(device, theirs), ms(copy), most))
    head = ("plan", "recon, device", "recon, host", "cuFINUFFT", "ratio, device (asked: 1)", "copy", "asked, host")
    return table(head, lines)


def change_table(rows):
    return table(
        ("what", "time", "asked"), [(row["what"], ms(row["median_ms"]), ms(row["asked_ms"])) for row in rows]
    )


def one_by_one_table(rows):
    def shown(times):
        return " + ".join(ms(value) for value in times) or "-"

    lines = []
    for row in rows:
        ratio = quotient(sum(row["alone_ms"]), sum(row["beside_ms"]))
        lines.append((row["what"], shown(row["alone_ms"]), shown(row["beside_ms"]), ratio, row["asked"]))
    return table(("create + destroy", "no other plan", "another plan", "ratio", "asked"), lines)


def exact_table(rows):
    lines = []
    for row in rows:
        asked = f"{row['asked_ms']:.0f} ms" if row["asked_ms"] else "-"
        rate = f"{row['tpairs_per_s']:.2f} T/s"
        lines.append(
            (row["voxels"], row["operation"], f"{row['error']:.1e}", f"{row['median_ms']:.1f} ms", rate, asked)
        )
    return table(("exact sums, f32", "operation", "error", "time", "pairs", "asked"), lines)


def several_table(rows):
    lines = [
        (row["what"], row["gpus"], f"{row['median_ms']:.1f} ms", f"{row['efficiency']:.2f}", "0.85") for row in rows
    ]
    return table(("what", "GPUs", "time", "efficiency", "asked"), lines)


def solution_table(rows):
    lines = [(row["case"], row["what"], ms(row["plan_ms"]), ms(row["median_ms"]), row["asked"]) for row in rows]
    return table(("case", "what", "plan", "time", "asked"), lines)


def first_table(rows):
    lines = [
        (row["case"], f"{row['plan_s']:.2f} s", f"{row['seconds']:.2f} s", f"{row['asked_s']} s") for row in rows
    ]
    return table(("stone, a new process", "first plan", "first image", "asked for the image"), lines)


def memory_table(rows):
    def mega(value):
        return "-" if value is None else f"{value / 1e6:.0f} MB"

    lines = []
    for row in rows:
        ours, theirs = row["recon_bytes"], row["cufinufft_bytes"]
        lines.append((row["what"], mega(ours), mega(row["reported_bytes"]), mega(theirs), quotient(ours, theirs)))
    return table(("plan and adjoint", "recon", "recon_plan_info", "cuFINUFFT", "ratio"), lines)


INTRODUCTION = """\
`make bench-gpu` writes this page. Limits and experiments are described in [notes-gpu.md](notes-gpu.md), and random
shapes in sweep-gpu.md.

- Each side has its fastest setting whose measured error is at most the given one: recon's tolerance, and cuFINUFFT's
  tolerance, method (1 to 3) and oversampling (1.25 or 2).
- Transforms are bare calls between two events, arrays on the GPU. "ratio, Python": through the Python layer of each
  side. "ratio, x2.0": to cuFINUFFT with its default oversampling, from a first run.
- Plans and whole calls: recon / cuFINUFFT, by the wall clock until the GPU has finished. "host" and "device": where the
  arrays of the caller are. cuFINUFFT's plan includes setting its points, which are on the GPU in both cases.
- memory limit: the time to move the least number of bytes at the bandwidth of a copy. The level-2 cache can be faster.
- asked: the figures of the design, and of the plan for these measurements."""


def page(results, tables):
    about = [f"- {name}: {value}" for name, value in results["machine"].items()]
    text = ["# recon on a GPU", "", INTRODUCTION, "", *about]
    for name, lines in tables.items():
        if name in results:
            text += ["", f"## {name}", "", *lines(results[name])]
    return "\n".join(text) + "\n"
