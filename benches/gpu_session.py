"""Common parts of the suites of `make bench-gpu`."""

import statistics
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import gpu_sides
import recon_library
import sweep_gpu

QUICK_RUNS, RUNS = 3, 15


@dataclass
class Session:
    library: recon_library.Library
    # The library's file and its header, for processes of their own.
    path: Path
    header: Path
    sweep: sweep_gpu.GpuSweep
    random: np.random.Generator
    quick: bool
    # Bytes that a copy on the GPU reads and writes, per second.
    bandwidth: float

    @property
    def stream(self):
        return self.sweep.stream

    @property
    def runs(self):
        return QUICK_RUNS if self.quick else RUNS

    def event_ms(self, work, runs=None):
        """Returns the median milliseconds of `work` on the GPU, after a run that is not counted."""
        times = [gpu_sides.event_ms(self.stream, work) for _ in range((runs or self.runs) + 1)]
        return statistics.median(times[1:])

    def wall_ms(self, functions, runs=None):
        """Returns the median milliseconds of each function by the wall clock; they take turns."""
        times = [[] for _ in functions]
        for turn in range((runs or self.runs) + 1):
            for function, own in zip(functions, times):
                milliseconds = gpu_sides.wall_ms(self.stream, function)
                if turn:
                    own.append(milliseconds)
        return [statistics.median(own) for own in times]
