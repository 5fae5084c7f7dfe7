"""Results as JSON in a form that can be compared by eye."""

import json


def as_json(results):
    """One row on each line, so that two files can be compared by eye."""
    texts = {}
    for name, value in results.items():
        rows = isinstance(value, list) and value and isinstance(value[0], dict)
        texts[name] = "[\n" + ",\n".join(json.dumps(row) for row in value) + "\n]" if rows else json.dumps(value)
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {text}" for name, text in texts.items()) + "\n}\n"
