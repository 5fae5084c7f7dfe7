"""The GPU and the software versions with which the numbers of a GPU were measured."""

import datetime
import statistics

import cupy as cp

import gpu_sides
import machine


def version(number):
    return f"{number // 1000}.{number % 1000 // 10}"


def describe(root, library):
    gpu = cp.cuda.runtime.getDeviceProperties(0)
    size = 1 << 28
    a, b = cp.ones(size, cp.float32), cp.empty(size, cp.float32)
    stream = cp.cuda.get_current_stream()
    copy = statistics.median(gpu_sides.event_ms(stream, lambda: cp.copyto(b, a)) for _ in range(5))
    return {
        "date": datetime.date.today().isoformat(),
        "commit": machine.built_from(root)["commit"],
        "processor": machine.describe()["cpu"],
        "GPU": gpu["name"].decode(),
        "GPUs": cp.cuda.runtime.getDeviceCount(),
        "CUDA of the driver": version(cp.cuda.runtime.driverGetVersion()),
        "CUDA of CuPy": version(cp.cuda.runtime.runtimeGetVersion()),
        "copy, TB/s read and written": round(2 * a.nbytes / copy * 1e-9, 2),
        "recon": library.version(),
        "cuFINUFFT": gpu_sides.cufinufft.__version__ if gpu_sides.cufinufft else "none",
    }
