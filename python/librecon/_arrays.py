"""Arrays of NumPy, CuPy and PyTorch, used in place: their addresses, shapes and devices, and the streams of GPUs."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np

from ._capi import InvalidArgumentError, SizeMismatchError, ffi

# Numbers of dlpack.h.
_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED = 1, 2, 3, 13
_KINDS = {(0, 64): "int64", (0, 32): "int32", (1, 8): "uint8", (1, 64): "uint64", (2, 32): "float32", (2, 64): "float64",
          (5, 64): "complex64", (5, 128): "complex128"}

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class NumPy:
    """Arrays in the host's memory, as NumPy makes them."""

    name = "numpy"

    def empty(self, shape, dtype, device):
        """Returns an array that is not initialised."""
        return np.empty(shape, dtype)

    def before(self, stream, device) -> None:
        """Makes the plan's stream wait for the work that the arrays' library has queued."""

    def after(self, stream, device) -> None:
        """Makes the arrays' library wait for the work on the plan's stream."""


class Torch(NumPy):
    """Tensors of PyTorch. Work of the current stream is ordered before and after that of the plan's stream."""

    name = "torch"

    def __init__(self):
        self.torch = sys.modules["torch"]

    def empty(self, shape, dtype, device):
        place = "cpu" if device is None else f"cuda:{device}"
        return self.torch.empty(shape, dtype=getattr(self.torch, np.dtype(dtype).name), device=place)

    def current_stream(self, device):
        """Returns the current stream and its address."""
        stream = self.torch.cuda.current_stream(device)
        return stream, stream.cuda_stream

    def before(self, stream, device):
        if device is None:
            return
        current, number = self.current_stream(device)
        if stream is None:
            current.synchronize()
        elif stream != number:
            self.torch.cuda.ExternalStream(stream, device=device).wait_stream(current)

    def after(self, stream, device):
        if device is None or stream is None:
            return
        current, number = self.current_stream(device)
        if stream != number:
            current.wait_stream(self.torch.cuda.ExternalStream(stream, device=device))


class ExternalStream:
    """A stream by its address, in the form of the CUDA stream protocol."""

    def __init__(self, address: int):
        self.address = address

    def __cuda_stream__(self):
        return 0, self.address


class CuPy(NumPy):
    """Arrays of CuPy. Work of the current stream is ordered before and after that of the plan's stream."""

    name = "cupy"

    def __init__(self):
        self.cupy = sys.modules["cupy"]

    def empty(self, shape, dtype, device):
        with self.cupy.cuda.Device(device):
            return self.cupy.empty(shape, dtype)

    def current_stream(self, device):
        """Returns the current stream and its address."""
        with self.cupy.cuda.Device(device):
            stream = self.cupy.cuda.get_current_stream()
        return stream, stream.ptr

    def external_stream(self, address, device):
        """Returns the stream of an address as an object of CuPy."""
        from_external = getattr(self.cupy.cuda.Stream, "from_external", None)
        if from_external is None:
            # CuPy before version 14.
            return self.cupy.cuda.ExternalStream(address, device)
        return from_external(ExternalStream(address))

    def before(self, stream, device):
        current, number = self.current_stream(device)
        if stream is None:
            current.synchronize()
        elif stream != number:
            with self.cupy.cuda.Device(device):
                self.external_stream(stream, device).wait_event(current.record())

    def after(self, stream, device):
        if stream is None:
            return
        current, number = self.current_stream(device)
        if stream != number:
            with self.cupy.cuda.Device(device):
                current.wait_event(self.external_stream(stream, device).record())


_NUMPY = NumPy()


def _library(value, name: str):
    """Returns the library that an array belongs to."""
    for kind in type(value).__mro__:
        root = kind.__module__.partition(".")[0]
        if root == "torch":
            return Torch()
        if root == "cupy":
            return CuPy()
    raise TypeError(f"{name} is a {type(value).__module__}.{type(value).__name__}: pass an array of NumPy, CuPy or PyTorch")


class View:
    """An array in place: address, shape, dtype, and `device`, the index of its GPU, or None in the host's memory."""

    __slots__ = ("value", "address", "shape", "dtype", "device", "library", "keep")

    def __init__(self, value: Any, name: str, writable: bool = False):
        self.value = value
        if isinstance(value, np.ndarray):
            self.library, self.device, self.shape, self.dtype = _NUMPY, None, value.shape, value.dtype
            if not value.flags.c_contiguous:
                _not_contiguous(name, "numpy")
            if writable and not value.flags.writeable:
                raise InvalidArgumentError(f"{name} is read-only: pass a writable array")
            self.keep = self.address = ffi.from_buffer(value)
            return
        self.library = _library(value, name)
        self._read_dlpack(value, name)

    def _read_dlpack(self, value, name):
        torch = self.library.name == "torch"
        if torch and value.requires_grad:
            raise InvalidArgumentError(f"{name} requires a gradient, which only E @ x, E.H @ y and E.normal have: pass "
                                       f"{name}.detach()")
        if torch and (value.is_conj() or value.is_neg()):
            raise InvalidArgumentError(f"{name} is a conjugate that was not computed: pass {name}.resolve_conj()"
                                       ".resolve_neg()")
        kind, index = value.__dlpack_device__()
        if kind not in (_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED):
            raise InvalidArgumentError(f"{name} is on a device of DLPack's type {int(kind)}: librecon uses the host's "
                                       "memory and NVIDIA GPUs")
        self.device = index if kind in (_CUDA, _CUDA_MANAGED) else None
        # Streams are ordered once per call, by `before` and `after`: -1 asks for no order.
        capsule = value.__dlpack__() if self.device is None else value.__dlpack__(stream=-1)
        # The capsule stays, and frees the description when it is deleted.
        tensor = ffi.cast("DLManagedTensor *", _capsule_pointer(capsule, b"dltensor")).dl_tensor
        self.shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
        number = (tensor.dtype.code, tensor.dtype.bits)
        if number not in _KINDS or tensor.dtype.lanes != 1:
            raise InvalidArgumentError(f"{name} has the dtype {value.dtype}, which librecon does not use")
        self.dtype = np.dtype(_KINDS[number])
        if tensor.strides != ffi.NULL:
            step = 1
            for axis in reversed(range(tensor.ndim)):
                if self.shape[axis] > 1 and tensor.strides[axis] != step:
                    _not_contiguous(name, self.library.name)
                step *= self.shape[axis]
        self.address = ffi.cast("char *", tensor.data) + tensor.byte_offset
        self.keep = capsule

    def need(self, name: str, dtype, shape=None, device: Any = False) -> View:
        """Checks dtype, shape and device, and returns self. A `device` of False is not checked."""
        if self.dtype != dtype:
            dtype = np.dtype(dtype)
            convert = f"{name}.to(torch.{dtype})" if self.library.name == "torch" else f"{name}.astype(numpy.{dtype})"
            raise InvalidArgumentError(f"{name} has the dtype {self.dtype}, and {dtype} is needed: pass {convert}")
        if shape is not None and self.shape != tuple(shape):
            raise SizeMismatchError(f"{name} has the shape {self.shape}, and {tuple(shape)} is needed"
                                    + _permutation(self.shape, tuple(shape)))
        if device is not False and self.device != device:
            raise InvalidArgumentError(f"{name} is {place(self.device)}, and the operator's arrays are {place(device)}: "
                                       f"move {name} there, or make the operator with arrays {place(self.device)}")
        return self


def place(device) -> str:
    """Returns the memory of a device in words."""
    return "in the host's memory" if device is None else f"on GPU {device}"


def _not_contiguous(name: str, library: str):
    remedy = f"{name}.contiguous()" if library == "torch" else f"{library}.ascontiguousarray({name})"
    raise InvalidArgumentError(f"{name} is not contiguous in C order: pass {remedy}, which copies it")


def _permutation(have: tuple, want: tuple) -> str:
    """Returns the transposition that gives the needed shape, as a hint."""
    if len(have) != len(want) or sorted(have) != sorted(want):
        return ""
    if have == want[::-1]:
        return ": transpose it"
    return ": its axes may have a different order"
