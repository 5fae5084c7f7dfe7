"""Arrays on a GPU, as far as that is possible without one: descriptions by DLPack, placement and streams."""

import sys
import types

import librecon
import numpy as np
import pytest
from conftest import complex_array, random_trajectory
from librecon import _arrays


class FakeArray:
    """An array of CuPy whose memory is the host's, and which states that it is on GPU 3."""

    device = (2, 3)

    def __init__(self, array):
        self.array, self.dtype, self.streams = array, array.dtype, []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        return self.array.__dlpack__()


class FakeStream:
    def __init__(self, ptr, log):
        self.ptr, self.log = ptr, log

    def record(self):
        return f"event of {self.ptr}"

    def wait_event(self, event):
        self.log.append(f"{self.ptr} waits for the {event}")

    def synchronize(self):
        self.log.append(f"synchronise {self.ptr}")


class FakeDevice:
    def __init__(self, index):
        assert index == 3

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass


@pytest.fixture
def cupy(monkeypatch):
    FakeArray.__module__ = "cupy"
    module, log = types.ModuleType("cupy"), []
    current = [FakeStream(7, log)]
    module.cuda = types.SimpleNamespace(Device=FakeDevice, Stream=FakeStream, get_current_stream=lambda: current[0],
                                        ExternalStream=lambda ptr, device: FakeStream(ptr, log))
    module.empty = lambda shape, dtype: FakeArray(np.empty(shape, dtype))
    module.log, module.current = log, current
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


def test_an_array_is_described_in_place(cupy, rng):
    array = complex_array(rng, (3, 4, 5), np.complex64)
    x = FakeArray(array)
    view = _arrays.View(x, "x")
    assert (view.shape, view.dtype, view.device, view.library.name) == ((3, 4, 5), np.complex64, 3, "cupy")
    assert int(librecon.capi.ffi.cast("uintptr_t", view.address)) == array.ctypes.data
    # Streams are ordered by the package, once per call.
    assert x.streams == [-1]
    with pytest.raises(librecon.InvalidArgumentError, match="cupy.ascontiguousarray"):
        _arrays.View(FakeArray(array.transpose(1, 0, 2)), "x")
    with pytest.raises(librecon.InvalidArgumentError, match="on GPU 3.*host's memory"):
        view.need("x", np.complex64, device=None)
    FakeArray.device = (10, 0)
    try:
        with pytest.raises(librecon.InvalidArgumentError, match="type 10"):
            _arrays.View(x, "x")
    finally:
        FakeArray.device = (2, 3)


@pytest.mark.parametrize("version", [13, 14])
def test_streams_are_ordered_before_and_after_a_call(cupy, version, monkeypatch):
    if version == 14:
        # ExternalStream is deprecated.
        monkeypatch.delattr(cupy.cuda, "ExternalStream")
        from_external = lambda stream: FakeStream(stream.__cuda_stream__()[1], cupy.log)  # noqa: E731
        monkeypatch.setattr(FakeStream, "from_external", from_external, raising=False)
    library = _arrays.CuPy()
    library.before(9, 3)
    library.after(9, 3)
    assert cupy.log == ["9 waits for the event of 7", "7 waits for the event of 9"]
    cupy.log.clear()
    library.before(7, 3)
    library.after(7, 3)
    assert cupy.log == []
    # Without your own stream, the work of CuPy is complete before the call, and that of the plan after it.
    library.before(None, 3)
    library.after(None, 3)
    assert cupy.log == ["synchronise 7"]


def test_operators_and_arrays_are_in_one_memory(cupy, rng):
    k = random_trajectory(rng, 30, 2)
    x = complex_array(rng, (8, 9))
    E = librecon.Encoding(k, (8, 9))
    with pytest.raises(librecon.InvalidArgumentError, match="x is on GPU 3"):
        E @ FakeArray(x)
    with pytest.raises(librecon.InvalidArgumentError, match="weights is in the host's memory"):
        librecon.Encoding(FakeArray(k), (8, 9), weights=np.ones(30))
    if not librecon.devices():
        with pytest.raises(librecon.NoDeviceError):
            librecon.Encoding(FakeArray(k), (8, 9))
    with pytest.raises(librecon.InvalidArgumentError, match="pointers_on_device"):
        librecon.Encoding(FakeArray(k), (8, 9), pointers_on_device=False)
    with pytest.raises(TypeError, match="NumPy, CuPy or PyTorch"):
        E @ object()
