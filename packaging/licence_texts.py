#!/usr/bin/env python3
"""Writes the licences of the crates that the library is linked with, and of Rust's standard library, to a folder.

    licence_texts.py TARGET FOLDER      the crates for one target of rustc
"""

import pathlib
import re
import shutil
import subprocess
import sys

import licences


def crates(target):
    """Returns the crates of others that the crate recon is linked with, by name."""
    linked = licences.linked_packages(target, root="recon")
    return sorted((package for package in linked if package["source"]), key=lambda package: package["name"])


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
