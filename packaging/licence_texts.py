#!/usr/bin/env python3
"""Writes the licences of everything that a package of the workspace is linked with, to THIRD-PARTY-LICENCES.txt.

    licence_texts.py PACKAGE TARGET FOLDER      the package `recon` or `recon-program`, for one target of rustc

The texts are the files of the crates, the list of Rust's standard library (COPYRIGHT-library.html, which is copied),
and the licences of the C libraries that are linked in. Run it by the Python of target/zig-venv, which has Zig's files.
"""

import pathlib
import re
import shutil
import subprocess
import sys

import licences

# Texts for crates that do not contain their licence, in order of preference.
TEXTS = {
    "Apache-2.0": pathlib.Path(licences.PROJECT, "LICENSE-APACHE"),
    "CC0-1.0": pathlib.Path("/usr/share/common-licenses/CC0-1.0"),
}
RULE = "=" * 80
HEAD = """Licences of the code that is linked into recon's files for {target}.

recon itself is licensed under MIT or Apache-2.0, at your option (LICENSE-MIT, LICENSE-APACHE). The licences of Rust's
standard library are in COPYRIGHT-library.html. A text that several crates have is written once.
"""


def system_texts(target):
    """Returns the files with the licences of code that the linker adds, each after its name."""
    if "windows" in target:
        return [("mingw-w64", pathlib.Path("/usr/share/doc/mingw-w64-common/copyright")),
                ("libgcc", pathlib.Path("/usr/share/doc/gcc-mingw-w64-base/copyright"))]
    import ziglang

    zig = pathlib.Path(ziglang.__file__).parent
    if "musl" in target:
        return [("musl", zig / "lib/libc/musl/COPYRIGHT")]
    return [("Zig's compiler_rt", zig / "LICENSE"), ("LLVM's libunwind", zig / "lib/libunwind/LICENSE.TXT")]


def crate_texts(package):
    """Returns the files with the licences of a crate."""
    root = pathlib.Path(package["manifest_path"]).parent
    texts = sorted(path for path in root.iterdir() if re.match(r"(?i)licen[cs]e|copying|unlicense", path.name))
    if not texts:
        words = re.findall(r"[\w.-]+", package["license"] or "")
        texts = [path for licence, path in TEXTS.items() if licence in words][:1]
    if not texts:
        sys.exit(f"{package['name']} {package['version']} ({package['license']}) has no file with its licence: add the text "
                 "to TEXTS in packaging/licence_texts.py")
    return texts


def report(target, components):
    """Returns the whole text: the list of components, then each text after the names of its components."""
    users = {}
    for name, _, paths in components:
        for path in paths:
            if not path.exists():
                sys.exit(f"{path} does not exist: `make release` installs the Debian packages that have it")
            users.setdefault(path.read_text(encoding="utf-8").strip(), []).append(name)
    lines = [HEAD.format(target=target)] + [f"  {name}: {licence}" for name, licence, _ in components]
    for text, names in users.items():
        lines += ["", RULE, *names, RULE, "", text]
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    root, target, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    crates = sorted((package for package in licences.linked_packages(target, root) if package["source"]),
                    key=lambda package: (package["name"], package["version"]))
    if not crates:
        sys.exit(f"{root} is not linked with any crate: PACKAGE is recon or recon-program")
    components = [(f"{package['name']} {package['version']}", package["license"], crate_texts(package)) for package in crates]
    components += [(name, "see below", [path]) for name, path in system_texts(target)]
    (folder / "THIRD-PARTY-LICENCES.txt").write_text(report(target, components), encoding="utf-8")
    sysroot = subprocess.run(["rustc", "--print", "sysroot"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    standard = pathlib.Path(sysroot, "share", "doc", "rust", "COPYRIGHT-library.html")
    if not standard.exists():
        sys.exit(f"{standard} does not exist: install Rust with rustup, whose toolchains have the licences of the standard "
                 "library")
    shutil.copy(standard, folder)


if __name__ == "__main__":
    main()
