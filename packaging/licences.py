#!/usr/bin/env python3
"""Checks that crates linked into recon have licences that packaging/licences.toml accepts, on every system.

    licences.py     prints each crate whose licence is not accepted, and fails if there is one
"""

import json
import os
import re
import subprocess
import sys

PROJECT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OPERATORS = ("AND", "OR", "WITH", "(", ")")


def is_accepted(expression, accepted):
    """Returns whether an SPDX expression can be met with accepted licences. `A/B` is an old form of `A OR B`."""
    words = re.findall(r"[()]|[^\s()]+", expression.replace("/", " OR "))

    def term():
        word = words.pop(0)
        if word == "(":
            value = alternatives()
            if not words or words.pop(0) != ")":
                raise ValueError("a bracket is not closed")
            return value
        if word in OPERATORS:
            raise ValueError(f"{word} where a licence is expected")
        if words[:1] == ["WITH"]:
            if len(words) < 2:
                raise ValueError("no exception after WITH")
            word = f"{word} WITH {words[1]}"
            del words[:2]
        return word in accepted

    def both():
        value = term()
        while words[:1] == ["AND"]:
            del words[0]
            value = term() and value
        return value

    def alternatives():
        value = both()
        while words[:1] == ["OR"]:
            del words[0]
            value = both() or value
        return value

    try:
        value = alternatives()
    except IndexError:
        raise ValueError("the expression is not complete") from None
    if words:
        raise ValueError(f"{words[0]} where the expression should end")
    return value


def linked_packages(target=None, root=None):
    """Returns packages that code of the workspace is linked with, without tests and build scripts.

    `target` is a target of rustc, and None stands for all. With `root`, only packages that this package of the
    workspace is linked with are returned.
    """
    command = [os.environ.get("CARGO", "cargo"), "metadata", "--locked", "--format-version", "1"]
    command += ["--filter-platform", target] if target else []
    output = subprocess.run(command, cwd=PROJECT, check=True, stdout=subprocess.PIPE).stdout
    metadata = json.loads(output)
    packages = {package["id"]: package for package in metadata["packages"]}
    edges = {
        node["id"]: [d["pkg"] for d in node["deps"] if any(kind["kind"] is None for kind in d["dep_kinds"])]
        for node in metadata["resolve"]["nodes"]
    }
    members = metadata["workspace_members"]
    found, open_ids = set(), [one for one in members if root in (None, packages[one]["name"])]
    while open_ids:
        one = open_ids.pop()
        if one not in found:
            found.add(one)
            open_ids += edges[one]
    return [packages[one] for one in sorted(found)]


def main():
    if sys.argv[1:]:
        sys.exit(__doc__)
    try:
        import tomllib
    except ImportError:
        print("skipped: licences of crates (Python 3.11 or newer reads packaging/licences.toml)")
        return
    with open(os.path.join(PROJECT, "packaging", "licences.toml"), "rb") as file:
        accepted = set(tomllib.load(file)["accepted"])
    refused = 0
    packages = linked_packages()
    for package in packages:
        licence, name = package["license"], f"{package['name']} {package['version']}"
        try:
            problem = "" if licence and is_accepted(licence, accepted) else licence or "no licence is stated"
        except ValueError as error:
            problem = f"{licence}: {error}"
        if problem:
            print(f"{name}: {problem}")
            refused += 1
    if refused:
        sys.exit(
            f"licences.py: {refused} crates have a licence that packaging/licences.toml does not accept: replace the "
            "crate, or add the licence there if its terms permit it"
        )
    print(f"licences of {len(packages)} crates: accepted")


if __name__ == "__main__":
    main()
