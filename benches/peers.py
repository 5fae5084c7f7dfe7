"""The sides of a comparison (recon, DUCC0, FINUFFT and the loop of Stone et al. 2008) behind one small interface.

A `Candidate` is one side at one setting, with its plan made: `run()` does the transform, `output` holds the result. The
inputs are converted to the format of each side before anything is timed.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

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
    # FINUFFT's; 0: it chooses.
    oversampling: float = 0.0


@dataclass(frozen=True)
class Transform:
    """Input of a transform: coordinates in cycles per voxel and values, both in single precision."""

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
        """Returns coordinates and input in a precision, without a copy if they already have it."""
        k = [axis.astype(FLOAT[precision], copy=False) for axis in self.k]
        return k, self.data.astype(COMPLEX[precision], copy=False)


def ducc_coordinates(k):
    return np.stack(k[::-1], axis=1)


def ducc_plan(dims, coordinates, adjoint, tolerance, threads):
    # With a period of 1, DUCC0 takes cycles per voxel: there is no rounding by a conversion to radians.
    return ducc0.nufft.plan(
        nu2u=adjoint,
        coord=coordinates,
        grid_shape=dims[::-1],
        epsilon=tolerance,
        nthreads=threads,
        periodicity=1.0,
    )


def fin_coordinates(k):
    """Returns the coordinates in radians, as FINUFFT requires."""
    return [(2 * np.pi * axis.astype(np.float64)).astype(axis.dtype) for axis in k[::-1]]


def fin_plan(dims, coordinates, adjoint, precision, tolerance, threads, oversampling=0.0, coils=1):
    """Returns FINUFFT's plan with its points set, or without points if `coordinates` is None."""
    plan = finufft.Plan(
        1 if adjoint else 2,
        dims[::-1],
        coils,
        eps=tolerance,
        isign=1 if adjoint else -1,
        dtype=COMPLEX[precision],
        nthreads=threads,
        upsampfac=oversampling,
    )
    if coordinates is not None:
        plan.setpts(*coordinates)
    return plan


def setting_text(precision, tolerance, oversampling=0.0):
    return f"{precision} {tolerance:.1e}" + (f", x{oversampling:.2f}" if oversampling else "")


def timed(make):
    """Returns the result of `make` and its seconds."""
    started = time.perf_counter()
    made = make()
    return made, time.perf_counter() - started


def recon(library, transform, precision, tolerance):
    k, data = transform.widened(precision)
    plan = recon_library.Plan(library, transform.dims, k, transform.threads, tolerance, coils=transform.coils)
    output = transform.output(precision)
    operation = getattr(plan, transform.operation)
    info = plan.info()
    setting = f"{setting_text(precision, tolerance)}, W {info.width}, x{info.oversampling:.2f}"
    return Candidate("recon", setting, precision, tolerance, lambda: operation(data, output), output, plan.seconds)


def ducc(_, transform, precision, tolerance):
    k, data = transform.widened(precision)
    adjoint = transform.operation == "adjoint"
    coordinates = ducc_coordinates(k)
    plan, seconds = timed(lambda: ducc_plan(transform.dims, coordinates, adjoint, tolerance, transform.threads))
    output = transform.output(precision)
    if adjoint:
        run = lambda: plan.nu2u(forward=False, points=data, out=output)
    else:
        run = lambda: plan.u2nu(forward=True, grid=data, out=output)
    return Candidate("DUCC0", setting_text(precision, tolerance), precision, tolerance, run, output, seconds)


def fin(_, transform, precision, tolerance, oversampling=0.0):
    k, data = transform.widened(precision)
    coordinates = fin_coordinates(k)
    settings = (precision, tolerance, transform.threads, oversampling, transform.coils)
    adjoint = transform.operation == "adjoint"
    plan, seconds = timed(lambda: fin_plan(transform.dims, coordinates, adjoint, *settings))
    output = transform.output(precision)
    # A plan for one array takes it without the axis that counts arrays.
    given, taken = (data, output) if transform.coils > 1 else (data[0], output[0])
    setting = setting_text(precision, tolerance, oversampling)
    run = lambda: plan.execute(given, out=taken)
    return Candidate("FINUFFT", setting, precision, tolerance, run, output, seconds, oversampling)


SIDES = {"recon": recon, "DUCC0": ducc, "FINUFFT": fin}


def sweep(library, case, transform, quick, sides=tuple(SIDES)):
    """Returns each side at each of its settings for a case."""
    return [SIDES[side](library, transform, *setting) for side in sides for setting in case.settings(side, quick)]


def exact(library, dims, inputs, threads):
    """Returns recon's exact sums for inputs (k, data, voxels), in their precision; the whole grid if voxels is None."""
    k, data, voxels = inputs
    plan = recon_library.Plan(library, dims, k, threads, exact=True, voxels=voxels)
    output = np.zeros(dims[::-1] if voxels is None else voxels[0].size, data.dtype)
    kind = "Cartesian" if voxels is None else "list"
    return Candidate(
        "recon", kind, PRECISION[data.dtype], 0.0, lambda: plan.adjoint(data, output), output, plan.seconds
    )


def stone(loop, inputs, threads):
    """Returns a StoneLoop for inputs (k, data, voxels)."""
    run, output = loop.sums(*inputs, threads)
    return Candidate("Stone's loop", loop.build, loop.precision, 0.0, run, output, 0.0)
