"""Rows of results: as JSON in a form that can be compared by eye, in groups, and the fastest of a side.

The rows of one machine are a table; this module also says how its files are called.
"""

import json


def as_json(results):
    """One row on each line, so that two files can be compared by eye."""
    texts = {}
    for name, value in results.items():
        rows = isinstance(value, list) and value and isinstance(value[0], dict)
        texts[name] = "[\n" + ",\n".join(json.dumps(row) for row in value) + "\n]" if rows else json.dumps(value)
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {text}" for name, text in texts.items()) + "\n}\n"

def fastest(rows, side, error):
    """The fastest row of a side that meets an error, or None."""
    fitting = [row for row in rows if row["side"] == side and row["error"] <= error]
    return min(fitting, key=lambda row: row["median_ms"], default=None)


def groups(rows, *keys):
    """Rows that agree in `keys`, in the order in which they were measured."""
    grouped = {}
    for row in rows:
        grouped.setdefault(tuple(row[key] for key in keys), []).append(row)
    return grouped


def add_speed_ups(rows):
    """Adds to rows of whole processes how much faster they are than with one thread, or None."""
    alone = {(row["case"], row["side"], row["setting"]): row["seconds"] for row in rows if row["threads"] == 1}
    for row in rows:
        one = alone.get((row["case"], row["side"], row["setting"]))
        row["speed_up"] = one / row["seconds"] if one else None


def stem_in(folder, stem, results):
    """The name of a table's files in a folder that may have the table of another machine with the same processor.

    There the number of cores is part of the name, so that neither is overwritten.
    """
    path = folder / f"{stem}.json"
    if path.exists():
        there, here = json.loads(path.read_text())["machine"], results["machine"]
        if any(there[key] != here[key] for key in ("cpu", "cores")):
            return f"{stem}-{here['cores']}-cores"
    return stem
