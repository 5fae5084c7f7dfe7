"""The package is in step with include/recon.h, and reads headers in the forms that C allows."""

import ctypes
import os
import pathlib
import re
import sys

import librecon
import numpy as np
import pytest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
HEADER = PROJECT / "include" / "recon.h"
sys.path.insert(0, str(PROJECT / "python"))
import bindings  # noqa: E402


def test_the_package_is_in_step_with_the_header(tmp_path):
    bindings.write(HEADER, tmp_path)
    package = pathlib.Path(librecon.__file__).parent
    for name in ("_cdef.py", "_header.py"):
        assert (tmp_path / name).read_text() == (package / name).read_text(), f"{name} is out of date: make wheel"


@pytest.mark.skipif("LIBRECON" in os.environ or sys.platform != "linux",
                    reason="the library of the wheel for Linux, which LIBRECON replaces, has a version node")
def test_functions_of_the_wheel_have_the_version_node():
    abi = re.search(r"^abi = (\d+)", (PROJECT / "Cargo.toml").read_text(), re.M).group(1)
    find = ctypes.CDLL(None).dlvsym
    find.restype, find.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
    handle = ctypes.CDLL(librecon.capi.path)._handle
    for name in librecon.capi.FUNCTIONS:
        assert find(handle, name.encode(), f"RECON_{abi}".encode()), name
    assert not find(handle, b"recon_version", b"RECON_0")


def test_every_function_and_structure_of_the_header_is_known():
    code = bindings.COMMENT.sub("", HEADER.read_text())
    declared = set(re.findall(r"\b(recon_\w+)\s*\([^)]*\)\s*;", code))
    assert declared == set(librecon.capi.FUNCTIONS) and len(declared) >= 90
    structures = {name[:-5] for name in declared if name.endswith("_init")}
    # The library fills these for callbacks.
    assert set(librecon.capi.STRUCTURES) - structures <= {"recon_progress", "recon_log_message"}
    assert structures < set(librecon.capi.STRUCTURES)
    for name, function in librecon.capi.FUNCTIONS.items():
        getattr(librecon.capi.lib, name)
        arguments = librecon.capi.ffi.typeof(getattr(librecon.capi.lib, name)).args
        assert len(arguments) == len(function["parameters"]), name
        assert function["doc"], name
    for name, fields in librecon.capi.STRUCTURES.items():
        assert list(fields) == [field for field, _ in librecon.capi.ffi.typeof(name).fields], name
    # Every field and parameter that the header describes as an enumeration has words.
    text = HEADER.read_text()
    fields = re.findall(r"\n    // (?:A|The requested) (recon_(?!scan\b)\w+)\b", text)
    assert len(fields) == sum(bool(f["enum"]) for s in librecon.capi.STRUCTURES.values() for f in s.values())


@pytest.mark.parametrize("change", [
    lambda text: re.sub(r"typedef (struct|enum) \w* ?\{(.*?)\n\} (\w+);", r"typedef \1 {\2\n} \3;", text, flags=re.S),
    lambda text: re.sub(r"typedef (struct|enum) \w* ?\{(.*?)\n\} (\w+);", r"typedef \1 \3 {\2\n} \3;", text, flags=re.S),
    lambda text: re.sub(r"typedef struct \w* ?\{(.*?)\n\} (\w+);", r"typedef struct \2 \2;\nstruct \2 {\1\n};", text, flags=re.S),
    lambda text: text.replace("#include <stdint.h>", "#include <stdint.h>\n\n#define RECON_OTHER_MAJOR 0\n"
                              "#define RECON_OTHER_MINOR 1\n#define RECON_OTHER \"0.1.0\"\n"
                              "#if defined(__GNUC__)\n#  define RECON_NODISCARD __attribute__((warn_unused_result))\n"
                              "#else\n#  define RECON_NODISCARD\n#endif\n#define RECON_SINCE(a, b) \\\n    /* none */\n"
                              ).replace("\nrecon_status recon_", "\nRECON_NODISCARD RECON_SINCE(0, 1)\nrecon_status recon_"),
    lambda text: re.sub(r"\n(recon_status recon_\w+\([^;]*\));", r"\nextern __attribute__((warn_unused_result)) \1;", text),
])
def test_other_forms_of_the_header_give_the_same_package(change, tmp_path):
    text = change(HEADER.read_text())
    (tmp_path / "recon.h").write_text(text)
    bindings.write(tmp_path / "recon.h", tmp_path)
    expected = bindings.describe(HEADER.read_text())
    found = bindings.describe(text)
    for part in ("FUNCTIONS", "STRUCTURES"):
        assert found[part] == expected[part]
    names = {}
    exec((tmp_path / "_cdef.py").read_text(), names)
    ffi = names["ffi"]
    for name in expected["STRUCTURES"]:
        assert ffi.sizeof(name) == librecon.capi.ffi.sizeof(name), name


def test_the_c_api_is_called_with_arrays_and_words():
    capi = librecon.capi
    assert "cycles per voxel" in capi.fields("recon_geometry")["coordinates"]
    kx, ky = np.empty((3, 8), np.float32), np.empty((3, 8), np.float32)
    capi.recon_trajectory_radial2d("single", 3, 8, "linear", kx, ky)
    assert (kx[0] == (np.arange(8) - 4) / 8).all() and not ky[0].any()
    use = capi.ffi.new("uint32_t *")
    capi.recon_acquisition_use(1 << 18, use)
    assert use[0] == capi.lib.RECON_PURPOSE_NOISE == 4
    assert "kx" in capi.recon_trajectory_radial2d.__doc__
    with pytest.raises(TypeError, match="precision, spokes"):
        capi.recon_trajectory_radial2d("single", 3)
    with pytest.raises(AttributeError):
        capi.recon_nothing
    with pytest.raises(librecon.InvalidSizeError):
        capi.recon_trajectory_radial2d("single", 0, 8, "linear", kx, ky)
