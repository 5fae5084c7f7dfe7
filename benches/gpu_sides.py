"""The sides of a comparison on a GPU: plans of recon and of cuFINUFFT, their bare calls, and clocks.

Calls skip the Python layers of both sides, so that times are those of a C program: a transform of a small image takes
40 microseconds, and the checks of cuFINUFFT's Python layer alone 10.
"""

import sys
import time

import cupy as cp
import numpy as np

import recon_library
from sweep_search import Unsupported

try:
    import cufinufft
except (ImportError, OSError) as error:
    print(f"no cuFINUFFT here, its columns stay empty: {error}", file=sys.stderr)
    cufinufft = None

COMPLEX = {"f32": np.complex64, "f64": np.complex128}
FLOAT = {"f32": np.float32, "f64": np.float64}
# cuFINUFFT's method 1: points one by one; 2: tiles in shared memory; 3: tiles that own their output, adjoint only. Its
# oversampling is 2 unless 1.25 is requested, which is faster in many cases.
METHODS = {"adjoint": (2, 1, 3), "forward": (2, 1)}
OVERSAMPLINGS = (1.25, 2.0)


def event_ms(stream, work):
    """Returns the milliseconds between two events of the stream around `work`."""
    start, end = cp.cuda.Event(), cp.cuda.Event()
    start.record(stream)
    work()
    end.record(stream)
    end.synchronize()
    return cp.cuda.get_elapsed_time(start, end)


def wall_ms(stream, work):
    """Returns the milliseconds by the wall clock until the results of `work` are complete."""
    stream.synchronize()
    started = time.perf_counter()
    made = work()
    stream.synchronize()
    milliseconds = 1e3 * (time.perf_counter() - started)
    # A plan that was made is freed here, when the clock has stopped.
    del made
    return milliseconds


def radians(k, precision):
    """Returns coordinates on the GPU as cuFINUFFT requires them. `k` is in cycles per voxel, on either side."""
    return [(2 * np.pi * cp.asarray(axis, cp.float64)).astype(FLOAT[precision]) for axis in k[::-1]]


def takes_device_geometry(library):
    """Returns whether this library makes plans from coordinates on the GPU."""
    return library.has_field("recon_options", "geometry_on_device")


def recon_plan(library, dims, k, stream, tolerance, **others):
    """Returns recon's plan on the stream. `k` are numpy's arrays or, with `geometry_on_device`, CuPy's."""
    return recon_library.Plan(library, dims, k, tolerance=tolerance, gpus=[0], stream=stream.ptr, **others)


def recon_call(plan, operation, data, output):
    """Returns a function that calls the transform with arrays on the GPU."""
    library = plan.library
    function = {"adjoint": "recon_fhd", "forward": "recon_forward", "grid": "recon_grid"}[operation]
    function = getattr(library.functions, function)
    arguments = plan.handle, library.address(data), library.address(output)
    # The arrays stay alive with the function.
    held = data, output

    def call():
        if function(*arguments) != 0:
            library.fail("transform")
        return held

    return call


def cufinufft_plan(dims, points, operation, stream, precision, tolerance, method=0, oversampling=0.0, coils=1):
    """Returns cuFINUFFT's plan with its points set. 0: cuFINUFFT chooses the method or the oversampling."""
    kind = 1 if operation == "adjoint" else 2
    try:
        plan = cufinufft.Plan(
            kind, dims[::-1], coils, eps=tolerance, isign=1 if kind == 1 else -1, dtype=COMPLEX[precision],
            gpu_method=method, upsampfac=oversampling, gpu_stream=stream.ptr,
        )  # fmt: skip
    except RuntimeError as error:
        raise Unsupported(str(error)) from error
    try:
        if points is not None:
            plan.setpts(*points)
    except RuntimeError as error:
        raise Unsupported(str(error)) from error
    return plan


def cufinufft_call(plan, operation, data, output):
    """Returns a function that executes the plan."""
    execute = plan._exec_plan
    arrays = (data, output) if operation == "adjoint" else (output, data)
    arguments = plan._plan, *(array.data.ptr for array in arrays)
    held = plan, data, output

    def call():
        if execute(*arguments) != 0:
            raise Unsupported("Error executing plan.")
        return held

    return call
