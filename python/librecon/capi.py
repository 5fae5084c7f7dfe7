"""All functions of the C API by their names.

librecon.capi.recon_density(plan, "ramp", 0, 0.0, weights) calls the function with NumPy arrays in place of addresses,
words in place of enumerations, and `Structure("recon_options", tolerance=1e-3)` in place of structures; outputs of one
number are ffi.new("uint64_t *"). Errors are exceptions, and warnings are issued. help(librecon.capi.recon_density) is
the documentation of recon.h.
"""

from __future__ import annotations

import functools

from ._capi import Structure, call, ffi, lib, path, words
from ._header import FUNCTIONS, STRUCTURES

__all__ = ["Structure", "ffi", "lib", "path", "words", *FUNCTIONS]


@functools.cache
def __getattr__(name: str):
    if name not in FUNCTIONS:
        raise AttributeError(f"the C API has no {name!r}")
    description = FUNCTIONS[name]

    def function(*arguments):
        return call(name, *arguments)
    function.__name__ = function.__qualname__ = name
    parameters = ", ".join(parameter for parameter, _ in description["parameters"])
    function.__doc__ = f"{name}({parameters})\n\n{description['doc']}"
    return function


def __dir__():
    return __all__


def fields(structure: str) -> dict[str, str]:
    """Returns the documentation of the fields of a structure, for example of "recon_cg_options"."""
    return {name: field["doc"] for name, field in STRUCTURES[structure].items()}
