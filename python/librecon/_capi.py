"""The C API: loading, structures, enumerations, errors, warnings. Everything here follows from include/recon.h."""

from __future__ import annotations

import keyword
import os
import pathlib
import sys
import threading
import types
import warnings

import numpy as np

from ._cdef import ffi
from ._header import FUNCTIONS, STRUCTURES

_NAMES = {"win32": "recon.dll", "darwin": "librecon.dylib"}


def _library_path() -> str:
    """Returns the library of this package, or the one that the environment variable LIBRECON names."""
    own = pathlib.Path(__file__).with_name(_NAMES.get(sys.platform, "librecon.so"))
    path = os.environ.get("LIBRECON") or str(own)
    if not os.path.exists(path):
        raise ImportError(f"{path} does not exist: install librecon from its wheel, or set LIBRECON to the path of the "
                          "shared library")
    return path


path = _library_path()
lib = ffi.dlopen(path)

# Number of forks between the process that imported the package and this one. A call of os.getpid takes 0.3 us.
forks = 0


def _count_fork():
    global forks
    forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


def _text(address) -> str:
    return ffi.string(address).decode("utf-8", "replace")


def version() -> str:
    """Returns the version of the library, for example "0.1.0"."""
    return _text(lib.recon_version())


# Errors: one class per status, named as MATLAB's identifiers.


class LibreconError(Exception):
    """An error of the library. The message has the cause, the value and the remedy; `status` is the recon_status."""

    status = -1


_BASES = {
    ValueError: ("NULL_POINTER", "INVALID_SIZE", "SIZE_OVERFLOW", "SIZE_MISMATCH", "NOT_FINITE", "COORDINATE_OUT_OF_RANGE",
                 "TOLERANCE_OUT_OF_RANGE", "UNKNOWN_VALUE", "UNKNOWN_STRUCT_SIZE", "INVALID_ARGUMENT", "BAD_FILE"),
    MemoryError: ("MEMORY_LIMIT", "OUT_OF_HOST_MEMORY", "OUT_OF_DEVICE_MEMORY"),
    NotImplementedError: ("UNSUPPORTED",),
    OSError: ("IO",),
}


def _error_classes() -> dict[int, type[LibreconError]]:
    classes = {}
    for constant, status in ffi.typeof("recon_status").relements.items():
        if status:
            base = next((b for b, names in _BASES.items() if constant.removeprefix("RECON_") in names), RuntimeError)
            name = _text(lib.recon_status_name(status)) + "Error"
            meaning = _text(lib.recon_status_string(status))
            classes[status] = type(name, (LibreconError, base), {"status": status, "__doc__": meaning + ".",
                                                                 "__module__": "librecon"})
    return classes


ERRORS = _error_classes()
InvalidArgumentError = ERRORS[lib.RECON_INVALID_ARGUMENT]
SizeMismatchError = ERRORS[lib.RECON_SIZE_MISMATCH]
UnknownValueError = ERRORS[lib.RECON_UNKNOWN_VALUE]


class LibreconWarning(UserWarning):
    """A result that may not be the intended one. The text has the finding and the remedy."""


def _warning_classes() -> dict[int, type[LibreconWarning]]:
    classes = {}
    for constant, kind in ffi.typeof("recon_warning").relements.items():
        if kind:
            words = constant.removeprefix("RECON_WARNING_").split("_")
            name = "".join(word.capitalize() for word in words) + "Warning"
            classes[kind] = type(name, (LibreconWarning,), {"__module__": "librecon", "__doc__": "See recon_warning."})
    return classes


WARNINGS = _warning_classes()

# Exceptions of callbacks, which end the call that they belong to. A callback runs in the thread of its call.
_raised = threading.local()


def callback_failed(kind, value, traceback):
    """Keeps the exception of a callback, for cffi's `onerror`. The library then ends the call."""
    _raised.value = value


@ffi.callback("recon_interrupt_callback", error=1, onerror=callback_failed)
def poll_signals(data):
    """Lets Python handle signals: Ctrl-C raises KeyboardInterrupt here, in the main thread."""
    return 0


def _level() -> int:
    """Returns the stack level of the first caller outside this package, for warnings."""
    frame, level = sys._getframe(1), 1
    folder = os.path.dirname(__file__)
    while frame is not None and os.path.dirname(frame.f_code.co_filename) == folder:
        frame, level = frame.f_back, level + 1
    return level


def warn_last() -> None:
    """Issues the warnings of this thread's last call."""
    _issue(lambda index, kind, text: lib.recon_last_warning(index, kind, text))


def warn_plan(plan) -> None:
    """Issues the warnings of a plan."""
    _issue(lambda index, kind, text: lib.recon_plan_warning(plan, index, kind, text))


def _issue(read) -> None:
    kind, text, found = ffi.new("uint32_t *"), ffi.new("char **"), []
    while read(len(found), kind, text) == 0 and kind[0]:
        found.append(WARNINGS.get(kind[0], LibreconWarning)(_text(text[0])))
    for warning in found:
        warnings.warn(warning, stacklevel=_level())


def fail(status: int):
    """Raises the exception of a status other than 0."""
    raised, _raised.value = getattr(_raised, "value", None), None
    if status == lib.RECON_CANCELLED and raised is not None:
        raise raised
    raise ERRORS.get(status, LibreconError)(_text(lib.recon_last_error_message()))


# Enumerations. Words are those of MATLAB and the program.

_OPTIONS = {"recon_normal_operator": "normal", "recon_density_method": "density", "recon_combine_method": "combine",
            "recon_spoke_order": "order", "recon_blade_phase": "phase", "recon_acquisition_purpose": "purpose",
            "recon_log_level": "level"}


def _words(enum: str) -> dict[str, int]:
    """Returns the words of an enumeration: those of recon_choice, or the ends of its constants."""
    numbers = ffi.typeof(enum).relements
    prefix = os.path.commonprefix(list(numbers)).rpartition("_")[0] + "_"
    option = _OPTIONS.get(enum, enum.removeprefix("recon_")).encode()
    words = {}
    for constant, number in numbers.items():
        word = _text(lib.recon_choice_word(option, number))
        words[word or constant.removeprefix(prefix).lower().replace("_", "-")] = number
    return words


_known_words: dict[str, dict[str, int]] = {}


def words(enum: str) -> dict[str, int]:
    """Returns the words of an enumeration of the header and their numbers."""
    if enum not in _known_words:
        _known_words[enum] = _words(enum)
    return _known_words[enum]


def choice(enum: str, value, name: str) -> int:
    """Returns the number of a word of an enumeration. Numbers are not changed."""
    if not isinstance(value, str):
        return int(value)
    if value not in words(enum):
        raise UnknownValueError(f"{name} is {value!r}, which is unknown: use one of {', '.join(words(enum))}")
    return words(enum)[value]


def word(enum: str, number: int):
    """Returns the word of a number, or the number if it has none."""
    return next((word for word, n in words(enum).items() if n == number), number)


# Arrays and structures.

_DTYPES = {"float": np.float32, "double": np.float64, "uint64_t": np.uint64, "uint32_t": np.uint32, "uint8_t": np.uint8}


def address(value, ctype, name: str):
    """Returns the address of a NumPy array, a list of numbers, bytes, text or None for a C parameter or field."""
    if value is None:
        return ffi.NULL
    if isinstance(value, ffi.CData):
        return value
    item = ctype.item.cname.removeprefix("const ").removesuffix(" const")
    if isinstance(value, (str, bytes, os.PathLike)):
        return ffi.new("char[]", os.fsencode(value) if not isinstance(value, bytes) else value)
    dtype = _DTYPES.get(item)
    if not isinstance(value, np.ndarray) and isinstance(value, (list, tuple)) and dtype:
        value = np.array(value, dtype=dtype)
    if isinstance(value, (bytearray, memoryview)):
        value = np.frombuffer(value, dtype=np.uint8)
    if not isinstance(value, np.ndarray):
        raise TypeError(f"{name} is a {type(value).__name__}: pass a NumPy array")
    if dtype and value.dtype != dtype:
        raise InvalidArgumentError(f"{name} has the dtype {value.dtype}: convert it with "
                                   f"{name}.astype(numpy.{np.dtype(dtype)})")
    if not value.flags.c_contiguous:
        raise InvalidArgumentError(f"{name} is not contiguous (strides {value.strides}): pass "
                                   f"numpy.ascontiguousarray({name})")
    # The result keeps the array, which a cast would not: it may be a temporary one.
    return ffi.from_buffer("char[]" if item == "void" else item + "[]", value)


class Structure:
    """A structure of the C API: `pointer` is its address, and `keep` the arrays that it refers to."""

    def __init__(self, name: str, **fields):
        self.name = name
        self.pointer = ffi.new(name + " *")
        self.keep: list = []
        self.types = dict(ffi.typeof(name).fields)
        status = getattr(lib, name + "_init")(self.pointer, ffi.sizeof(name))
        if status:
            fail(status)
        for field, value in fields.items():
            self.set(field, value)

    def set(self, field: str, value) -> None:
        """Sets a field: a number, a word, a text, an array, or a list."""
        # `lambda` is a reserved word of Python, so it is written lambda_.
        field = field.rstrip("_")
        if field not in self.types or field in ("struct_size", "reserved"):
            known = ", ".join(f for f in self.types if f not in ("struct_size", "reserved"))
            raise TypeError(f"unknown option {field!r}: {self.name} has {known}")
        ctype, enum = self.types[field].type, STRUCTURES[self.name][field]["enum"]
        if enum:
            value = choice(enum, value, field)
        elif ctype.kind == "pointer":
            value = address(value, ctype, field)
            self.keep.append(value)
        elif ctype.kind == "function":
            self.keep.append(value)
        elif ctype.kind == "array":
            value = list(value) + [ffi.NULL if ctype.item.kind == "pointer" else 0] * (ctype.length - len(value))
        elif ctype.kind == "primitive" and not isinstance(value, (bool, int, float, np.number, np.bool_)):
            raise TypeError(f"{field} is {value!r}: pass a number")
        try:
            setattr(self.pointer, field, value)
        except TypeError as error:
            raise TypeError(f"{field} is {value!r}: {error}") from None
        except OverflowError:
            raise InvalidArgumentError(f"{field} is {value!r}, which does not fit the type {ctype.cname}") from None

    def values(self) -> types.SimpleNamespace:
        """Returns the numbers and words of the structure."""
        found = {}
        for field, kind in self.types.items():
            value = getattr(self.pointer, field)
            enum = STRUCTURES[self.name][field]["enum"]
            if field in ("struct_size", "reserved") or kind.type.kind in ("pointer", "function"):
                continue
            if kind.type.kind == "array":
                if kind.type.item.kind == "pointer":
                    continue
                value = _text(value) if kind.type.item.cname == "char" else tuple(value)
            elif enum:
                value = word(enum, value)
            found[field + "_" * keyword.iskeyword(field)] = value
        return types.SimpleNamespace(**found)


def call(name: str, *arguments):
    """Calls a function of the C API, raises its error, and issues its warnings.

    Arrays are NumPy arrays, which are passed by their addresses. Enumerations are words or numbers, structures are
    `Structure`, and outputs of one number are made by ffi.new.
    """
    function = getattr(lib, name)
    kinds, parameters = ffi.typeof(function).args, FUNCTIONS[name]["parameters"]
    if len(arguments) != len(parameters):
        names = ", ".join(parameter for parameter, _ in parameters)
        raise TypeError(f"{name} takes {len(parameters)} arguments ({names}), not {len(arguments)}")
    converted = []
    for value, ctype, (parameter, enum) in zip(arguments, kinds, parameters):
        if isinstance(value, Structure):
            value = value.pointer
        elif enum:
            value = choice(enum, value, parameter)
        elif ctype.kind == "pointer" and not isinstance(value, ffi.CData):
            value = address(value, ctype, parameter)
        converted.append(value)
    result = function(*converted)
    if ffi.typeof(function).result.kind == "enum":
        if result:
            fail(result)
        warn_last()
        return None
    return _text(result) if ffi.typeof(function).result.kind == "pointer" else result
