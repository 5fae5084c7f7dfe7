"""The sides of `make bench-sweep` on a CPU: recon, DUCC0 and FINUFFT."""

import time
from dataclasses import dataclass
from types import SimpleNamespace

import ducc0
import numpy as np

import machine
import peers
import recon_library
from sweep_search import Side, Unsupported, ladder


@dataclass
class Problem:
    """Input of a transform in the formats of all sides."""

    transform: peers.Transform
    precision: str
    coordinates: dict

    @property
    def on_device(self):
        return self.transform.k

    @property
    def data(self):
        return self.transform.data

    def checked_coil(self, values):
        """Returns the values of the coil whose errors are measured."""
        return values[-1]


def wall_seconds(function):
    started = time.perf_counter()
    made = function()
    seconds = time.perf_counter() - started
    # A plan that was made is freed here, when the clock has stopped.
    del made
    return seconds


class Recon(Side):
    def __init__(self, library):
        self.library = library

    def make(self, problem, tolerance, variant):
        try:
            return peers.recon(self.library, problem.transform, problem.precision, tolerance)
        except RuntimeError as error:
            raise Unsupported(str(error)) from error

    def plan(self, problem, made):
        given = problem.transform
        tolerance = made.candidate.tolerance
        return recon_library.Plan(self.library, given.dims, given.k, given.threads, tolerance, coils=given.coils)

    def plans(self, problem, made):
        return {"plan": lambda: self.plan(problem, made)}

    def calls(self, problem, made):
        def call():
            output = problem.transform.output(problem.precision)
            plan = self.plan(problem, made)
            getattr(plan, problem.transform.operation)(problem.data, output)
            plan.destroy()

        return {"call": call}


class Ducc(Side):
    # In 3D its error is up to 20 times below its epsilon.
    ladder = ladder(5, -1)

    def make(self, problem, tolerance, variant):
        try:
            return peers.ducc(None, problem.transform, problem.precision, tolerance)
        except RuntimeError as error:
            raise Unsupported(str(error)) from error

    def plan(self, problem, made):
        given = problem.transform
        adjoint = given.operation == "adjoint"
        tolerance = made.candidate.tolerance
        return peers.ducc_plan(given.dims, problem.coordinates["DUCC0"], adjoint, tolerance, given.threads)

    def plans(self, problem, made):
        return {"plan": lambda: self.plan(problem, made)}

    def calls(self, problem, made):
        """A call of one array has no plan: DUCC0 has functions for that."""
        given = problem.transform
        adjoint = given.operation == "adjoint"
        common = {
            "coord": problem.coordinates["DUCC0"], "forward": not adjoint, "epsilon": made.candidate.tolerance,
            "nthreads": given.threads, "periodicity": 1.0,
        }  # fmt: skip

        def one():
            output = given.output(problem.precision)
            if adjoint:
                ducc0.nufft.nu2u(points=given.data[0], out=output[0], **common)
            else:
                ducc0.nufft.u2nu(grid=given.data[0], out=output[0], **common)

        def several():
            output = given.output(problem.precision)
            plan = self.plan(problem, made)
            if adjoint:
                plan.nu2u(forward=False, points=given.data, out=output)
            else:
                plan.u2nu(forward=True, grid=given.data, out=output)

        return {"call": one if given.coils == 1 else several}


class Fin(Side):
    ladder = ladder(2, -4)
    far_behind = 3.0

    def variants(self, problem):
        """Its oversampling. 1.25 is the faster one for most cases and single precision; it allows 1e-9 at best."""
        return (1.25, 2.0)

    def make(self, problem, tolerance, variant):
        try:
            return peers.fin(None, problem.transform, problem.precision, tolerance, variant)
        except RuntimeError as error:
            raise Unsupported(str(error)) from error

    def plan(self, problem, made):
        given = problem.transform
        settings = (problem.precision, made.candidate.tolerance, given.threads, made.variant, given.coils)
        return peers.fin_plan(given.dims, problem.coordinates["FINUFFT"], given.operation == "adjoint", *settings)

    def plans(self, problem, made):
        return {"plan": lambda: self.plan(problem, made)}

    def calls(self, problem, made):
        def call():
            output = problem.transform.output(problem.precision)
            several = problem.transform.coils > 1
            given, taken = (problem.data, output) if several else (problem.data[0], output[0])
            self.plan(problem, made).execute(given, out=taken)

        return {"call": call}


class CpuSweep:
    """recon, DUCC0 and FINUFFT with a number of threads."""

    xp = np
    runs = 15
    budget = 0.2
    transform_seconds = staticmethod(wall_seconds)
    wall_seconds = staticmethod(wall_seconds)

    def __init__(self, library, threads):
        self.threads = threads
        self.sides = {"recon": Recon(library), "DUCC0": Ducc(), "FINUFFT": Fin()}

    def problem(self, shape, k, operation, random):
        real = peers.FLOAT[shape.precision]
        size = (shape.coils, shape.samples) if operation == "adjoint" else (shape.coils, *shape.dims[::-1])
        data = np.empty(size, peers.COMPLEX[shape.precision])
        data.real, data.imag = (random.random(size, real) - real(0.5) for _ in range(2))
        transform = peers.Transform(shape.dims, k, operation, data, self.threads)
        coordinates = {"DUCC0": peers.ducc_coordinates(k), "FINUFFT": peers.fin_coordinates(k)}
        return Problem(transform, shape.precision, coordinates)

    def describe(self, root, library):
        versions = machine.versions(root, library)
        named = {name: versions[name] for name in ("recon", "rustc", "DUCC0", "FINUFFT")}
        return SimpleNamespace(stem=f"sweep-{machine.table_name()}", machine=machine.describe(), versions=named)
