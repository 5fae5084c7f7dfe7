"""stone_loop.c, the CPU loop of Stone et al. 2008 in our own version, compiled by GCC."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np

# Stone et al. built their loop by icpc -msse3. Here GCC's libmvec replaces the vector mathematics of icpc. Machines of
# today have wider vector units.
BUILDS = {"native": ["-march=native"], "sse3": ["-msse3"]}
TYPES = {"f32": ("float", np.float32, np.complex64), "f64": ("double", np.float64, np.complex128)}


class StoneLoop:
    """The loop for a vector unit and a precision."""

    def __init__(self, folder, build, precision):
        source = Path(__file__).parent / "stone_loop.c"
        stem = Path(folder) / f"stone_loop_{build}_{precision}"
        subprocess.run(
            ["gcc", "-O3", "-ffast-math", "-fopenmp", "-fPIC", f"-DREAL={TYPES[precision][0]}", *BUILDS[build]]
            + ["-c", source, "-o", f"{stem}.o"],
            check=True,
        )
        # The link is without -ffast-math. With it, loading the library would make the whole process flush subnormals
        # to 0.
        subprocess.run(["gcc", "-shared", "-fopenmp", f"{stem}.o", "-o", f"{stem}.so", "-lmvec", "-lm"], check=True)
        self.function = ctypes.CDLL(f"{stem}.so").seed_fhd
        self.build, self.precision = build, precision

    def sums(self, k, data, voxels, threads):
        """Returns a function that computes the sums at all voxels, and the array that it fills."""
        _, real, complex_ = TYPES[self.precision]
        inputs = [np.ascontiguousarray(a, real) for a in (*k, *voxels, data.real, data.imag)]
        parts = [np.zeros(voxels[0].size, real) for _ in range(2)]
        output = np.zeros(voxels[0].size, complex_)
        sizes = [ctypes.c_long(k[0].size), ctypes.c_long(voxels[0].size), ctypes.c_int(threads)]

        def run():
            self.function(*sizes, *(ctypes.c_void_p(a.ctypes.data) for a in (*inputs, *parts)))
            output.real, output.imag = parts

        return run, output
