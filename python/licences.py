#!/usr/bin/env python3
"""Writes the licences of the crates that the library is linked with, and of Rust's standard library, to a folder.

    licences.py TARGET FOLDER      the crates for one target of rustc
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

PROJECT = pathlib.Path(__file__).resolve().parent.parent


def crates(target):
    """Returns the packages that the crate recon is linked with, without those of tests and build scripts."""
    command = [os.environ.get("CARGO", "cargo"), "metadata", "--locked", "--format-version", "1", "--filter-platform", target]
    metadata = json.loads(subprocess.run(command, cwd=PROJECT, check=True, stdout=subprocess.PIPE).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node["deps"] for node in metadata["resolve"]["nodes"]}
    todo = [package["id"] for package in packages.values() if package["name"] == "recon" and package["source"] is None]
    found = set(todo)
    while todo:
        for dependency in nodes[todo.pop()]:
            normal = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            if normal and dependency["pkg"] not in found:
                found.add(dependency["pkg"])
                todo.append(dependency["pkg"])
    return sorted((packages[one] for one in found if packages[one]["source"]), key=lambda package: package["name"])


def main():
    target, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    parts = []
    for package in crates(target):
        root = pathlib.Path(package["manifest_path"]).parent
        texts = sorted(path for path in root.iterdir() if re.match(r"(?i)licen[cs]e|copying|unlicense", path.name))
        if not texts:
            sys.exit(f"{package['name']} {package['version']} ({package['license']}) has no file with its licence")
        parts.append(f"{'=' * 80}\n{package['name']} {package['version']}: {package['license']}\n{'=' * 80}\n")
        parts += [f"--- {path.name}\n\n{path.read_text(encoding='utf-8')}\n" for path in texts]
    (folder / "THIRD-PARTY-LICENCES.txt").write_text("\n".join(parts), encoding="utf-8")
    sysroot = subprocess.run(["rustc", "--print", "sysroot"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    standard = pathlib.Path(sysroot, "share", "doc", "rust", "COPYRIGHT-library.html")
    if not standard.exists():
        sys.exit(f"{standard} does not exist: install Rust with rustup, whose toolchains have the licences of the standard "
                 "library")
    shutil.copy(standard, folder)


main()
