"""The sides of a comparison (recon, DUCC0, FINUFFT and the loop of Stone et al. 2008) behind one small interface.

A `Candidate` is one side at one setting, with its plan made: `run()` does the transform, `output` holds the result. The
inputs are converted to the format of each side before anything is timed.
"""

import ctypes
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import ducc0
import finufft
import numpy as np

import recon_library

COMPLEX = {"f32": np.complex64, "f64": np.complex128}
FLOAT = {"f32": np.float32, "f64": np.float64}
PRECISION = {np.dtype(COMPLEX[name]): name for name in COMPLEX}


@dataclass
class Candidate:
    side: str
    # The setting in words, then the precision and tolerance that give the same setting again.
    setting: str
    precision: str
    tolerance: float
    run: Callable[[], object]
    output: np.ndarray
    plan_seconds: float


@dataclass(frozen=True)
class Transform:
    """What to transform: coordinates in cycles per voxel and the input, both in single precision."""

    dims: tuple
    k: list
    operation: str
    data: np.ndarray
    threads: int

    @property
    def coils(self):
        return self.data.shape[0]

    def output(self, precision):
        shape = self.dims[::-1] if self.operation == "adjoint" else (self.k[0].size,)
        return np.zeros((self.coils, *shape), COMPLEX[precision])

    def widened(self, precision):
        return [axis.astype(FLOAT[precision]) for axis in self.k], self.data.astype(COMPLEX[precision])


def recon(library, transform, precision, tolerance):
    k, data = transform.widened(precision)
    plan = recon_library.Plan(library, transform.dims, k, transform.threads, tolerance, coils=transform.coils)
    output = transform.output(precision)
    operation = getattr(plan, transform.operation)
    info = plan.info()
    setting = f"{precision} {tolerance:.1e}, W {info.width}, x{info.oversampling:.2f}"
    return Candidate("recon", setting, precision, tolerance, lambda: operation(data, output), output, plan.seconds)


def ducc(_, transform, precision, tolerance):
    k, data = transform.widened(precision)
    adjoint = transform.operation == "adjoint"
    # With a period of 1, DUCC0 takes cycles per voxel: there is no rounding by a conversion to radians.
    started = time.perf_counter()
    plan = ducc0.nufft.plan(
        nu2u=adjoint,
        coord=np.stack(k[::-1], axis=1),
        grid_shape=transform.dims[::-1],
        epsilon=tolerance,
        nthreads=transform.threads,
        periodicity=1.0,
    )
    seconds = time.perf_counter() - started
    output = transform.output(precision)
    if adjoint:
        run = lambda: plan.nu2u(forward=False, points=data, out=output)
    else:
        run = lambda: plan.u2nu(forward=True, grid=data, out=output)
    return Candidate("DUCC0", f"{precision} {tolerance:.1e}", precision, tolerance, run, output, seconds)


def fin(_, transform, precision, tolerance, oversampling=0.0):
    _, data = transform.widened(precision)
    # FINUFFT takes coordinates in radians only.
    radians = [(2 * np.pi * axis.astype(np.float64)).astype(FLOAT[precision]) for axis in transform.k]
    kind, sign = (1, 1) if transform.operation == "adjoint" else (2, -1)
    started = time.perf_counter()
    plan = finufft.Plan(
        kind,
        transform.dims[::-1],
        eps=tolerance,
        isign=sign,
        dtype=COMPLEX[precision],
        nthreads=transform.threads,
        upsampfac=oversampling,
    )
    plan.setpts(*radians[::-1])
    seconds = time.perf_counter() - started
    output = transform.output(precision)
    run = lambda: plan.execute(data[0], out=output[0])
    setting = f"{precision} {tolerance:.1e}" + (f", x{oversampling:.2f}" if oversampling else "")
    return Candidate("FINUFFT", setting, precision, tolerance, run, output, seconds)


SIDES = {"recon": recon, "DUCC0": ducc, "FINUFFT": fin}


def sweep(library, case, transform, quick, sides=tuple(SIDES)):
    """Every side at every setting that it tries for a case."""
    return [SIDES[side](library, transform, *setting) for side in sides for setting in case.settings(side, quick)]


def exact(library, dims, inputs, threads):
    """recon's exact sums for inputs (k, data, voxels), in their precision. If voxels is None: on the whole grid."""
    k, data, voxels = inputs
    plan = recon_library.Plan(library, dims, k, threads, exact=True, voxels=voxels)
    output = np.zeros(dims[::-1] if voxels is None else voxels[0].size, data.dtype)
    kind = "Cartesian" if voxels is None else "list"
    return Candidate(
        "recon", kind, PRECISION[data.dtype], 0.0, lambda: plan.adjoint(data, output), output, plan.seconds
    )


# Stone et al. built their loop by icpc -msse3. Here GCC's libmvec replaces the vector mathematics of icpc. Machines of
# today have wider vector units.
SEED_BUILDS = {"native": ["-march=native"], "sse3": ["-msse3"]}
SEED_TYPES = {"f32": "float", "f64": "double"}


class SeedLoop:
    """stone_loop.c, compiled for a vector unit and a precision."""

    def __init__(self, folder, build, precision):
        source = Path(__file__).parent / "stone_loop.c"
        stem = folder / f"stone_loop_{build}_{precision}"
        subprocess.run(
            ["gcc", "-O3", "-ffast-math", "-fopenmp", "-fPIC", f"-DREAL={SEED_TYPES[precision]}", *SEED_BUILDS[build]]
            + ["-c", source, "-o", f"{stem}.o"],
            check=True,
        )
        # The link is without -ffast-math. With it, loading the library would make the whole process flush subnormals
        # to 0.
        subprocess.run(["gcc", "-shared", "-fopenmp", f"{stem}.o", "-o", f"{stem}.so", "-lmvec", "-lm"], check=True)
        self.function = ctypes.CDLL(f"{stem}.so").seed_fhd
        self.build, self.precision = build, precision

    def candidate(self, k, data, voxels, threads):
        inputs = [np.ascontiguousarray(a) for a in (*k, *voxels, data.real, data.imag)]
        parts = [np.zeros(voxels[0].size, FLOAT[self.precision]) for _ in range(2)]
        output = np.zeros(voxels[0].size, COMPLEX[self.precision])
        sizes = [ctypes.c_long(k[0].size), ctypes.c_long(voxels[0].size), ctypes.c_int(threads)]

        def run():
            self.function(*sizes, *(ctypes.c_void_p(a.ctypes.data) for a in (*inputs, *parts)))
            output.real, output.imag = parts

        return Candidate("Stone's loop", self.build, self.precision, 0.0, run, output, 0.0)
