"""Results as JSON that two people, or two runs, can compare by eye."""

import json


def as_json(results):
    """A row a line, so that two files can be compared by eye."""
    texts = {}
    for name, value in results.items():
        rows = isinstance(value, list) and value and isinstance(value[0], dict)
        texts[name] = "[\n" + ",\n".join(json.dumps(row) for row in value) + "\n]" if rows else json.dumps(value)
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {text}" for name, text in texts.items()) + "\n}\n"
