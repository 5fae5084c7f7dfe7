"""Fills the wheel: the shared library, the files that follow from recon.h, and the licences. For hatchling.

The environment names what is packed: LIBRECON, the shared library, and LIBRECON_LICENCES, a folder with the licences of
everything that is linked in. packaging/release.sh sets both, and LIBRECON_PLATFORM, the platform in the wheel's name.
"""

import os
import pathlib
import re
import sys
import sysconfig
import tempfile

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

HERE = pathlib.Path(__file__).resolve().parent
PROJECT = HERE.parent
NAMES = {".so": "librecon.so", ".dylib": "librecon.dylib", ".dll": "recon.dll"}


def library():
    """Returns the path of the shared library that is packed."""
    path = pathlib.Path(os.environ.get("LIBRECON", ""))
    if not path.is_file():
        sys.exit("the wheel carries a shared library: set LIBRECON to its path, or call make wheel")
    return path


class MetadataHook(MetadataHookInterface):
    """The version is that of the crate, and the licences are those of the project."""

    def update(self, metadata):
        manifest = (PROJECT / "Cargo.toml").read_text(encoding="utf-8")
        metadata["version"] = re.search(r'^version = "(.+)"', manifest, re.M).group(1)
        metadata["license-files"] = []


class BuildHook(BuildHookInterface):
    """Generates the files that are not in the source tree, and names the platform."""

    def initialize(self, version, build_data):
        sys.path.insert(0, str(HERE))
        import bindings

        source = library()
        self.folder = tempfile.TemporaryDirectory()
        bindings.write(PROJECT / "include" / "recon.h", self.folder.name)
        include = build_data["force_include"]
        for name in ("_cdef.py", "_header.py"):
            include[os.path.join(self.folder.name, name)] = f"librecon/{name}"
        # The installed library is librecon.so.VERSION.
        include[str(source)] = "librecon/" + next(NAMES[suffix] for suffix in source.suffixes if suffix in NAMES)
        licences = [PROJECT / "LICENSE-MIT", PROJECT / "LICENSE-APACHE"]
        if folder := os.environ.get("LIBRECON_LICENCES"):
            licences += sorted(path for path in pathlib.Path(folder).iterdir() if path.suffix in (".txt", ".html"))
        for path in licences:
            include[str(path)] = f"librecon/licences/{path.name}"
        build_data["pure_python"] = False
        platform = os.environ.get("LIBRECON_PLATFORM") or re.sub(r"[-.]", "_", sysconfig.get_platform())
        build_data["tag"] = f"py3-none-{platform}"

    def finalize(self, version, build_data, artifact):
        self.folder.cleanup()
