"""Runs the examples of README.md and of python/README.md, in an environment with the package and nothing else."""

import pathlib
import re

PROJECT = pathlib.Path(__file__).resolve().parents[2]

for name in ("README.md", "python/README.md"):
    blocks = re.findall(r"^```python\n(.*?)^```", (PROJECT / name).read_text(encoding="utf-8"), re.S | re.M)
    found = [block for block in blocks if block.startswith("import librecon\n")]
    assert found, f"{name} has no example of the Python package"
    for block in found:
        exec(compile(block, name, "exec"), {})
    print(f"{name}: {len(found)} example of the Python package")
