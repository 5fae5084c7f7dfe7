"""All blocks of Python in docs/python.md run, in their order, and so do the examples of both READMEs."""

import importlib.util
import pathlib
import re
import runpy

import librecon
import pytest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
PAGE = PROJECT / "docs" / "python.md"
OTHERS = ["torch", "cupy", "mrinufft", "ismrmrd", "scipy"]


def test_the_examples_of_the_readmes(capsys):
    runpy.run_path(str(PROJECT / "python" / "tests" / "first_example.py"))
    assert "README.md" in capsys.readouterr().out


def test_the_blocks_of_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M)
    names, missing = {}, set()
    for block in blocks:
        needed = {name for name in OTHERS if re.search(rf"\b{name}\b", block)}
        absent = {name for name in needed if importlib.util.find_spec(name) is None}
        if ("cuda" in block or "cupy" in block) and not librecon.devices():
            absent.add("a GPU")
        code = compile(block, str(PAGE), "exec")
        if absent:
            missing |= absent
        else:
            exec(code, names)
    assert len(blocks) > 5
    if missing:
        pytest.skip(f"blocks that need {', '.join(sorted(missing))} were compiled only; all others ran")
