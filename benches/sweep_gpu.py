"""The sides of `make bench-sweep` on a GPU: recon and cuFINUFFT, on one stream."""

from dataclasses import dataclass
from types import SimpleNamespace

import cupy as cp
import numpy as np

import gpu_machine
import gpu_sides
import recon_library
from gpu_sides import COMPLEX, FLOAT
from sweep_search import Side, Unsupported, ladder


@dataclass
class Problem:
    """Input of a transform: arrays of the host, and the same on the GPU in the formats of both sides."""

    shape: object
    operation: str
    k: list
    on_device: list
    radians: list
    data: cp.ndarray
    host_data: np.ndarray
    host_radians: list

    def checked_coil(self, values):
        """Returns the values of the coil whose errors are measured."""
        return values[-1]

    @property
    def output_shape(self):
        coils, shape = self.shape.coils, self.shape
        return (coils, *shape.dims[::-1]) if self.operation == "adjoint" else (coils, shape.samples)

    def poisoned(self):
        return cp.full(self.output_shape, complex(np.nan, np.nan), COMPLEX[self.shape.precision])


@dataclass
class Candidate:
    setting: str
    tolerance: float
    plan: object
    run: object
    output: cp.ndarray

    def free(self):
        """Frees the plan; the setting remains."""
        self.plan = self.run = self.output = None


class Recon(Side):
    def __init__(self, library, stream):
        self.library, self.stream = library, stream
        self.from_device = gpu_sides.takes_device_geometry(library)

    def facts(self, made):
        info = made.candidate.plan.info()
        grid = list(info.grid)[: info.ndim]
        return {"width": info.width, "grid": grid, "device_bytes": info.device_bytes}

    def make(self, problem, tolerance, variant):
        try:
            plan = self.plan(problem, problem.k, tolerance)
        except RuntimeError as error:
            raise Unsupported(str(error)) from error
        output, info = problem.poisoned(), plan.info()
        run = gpu_sides.recon_call(plan, problem.operation, problem.data, output)
        setting = f"{tolerance:.1e}, W {info.width}, x{info.oversampling:.2f}"
        return Candidate(setting, tolerance, plan, run, output)

    def plan(self, problem, k, tolerance, **others):
        shape = problem.shape
        return gpu_sides.recon_plan(
            self.library, shape.dims, k, self.stream, tolerance, coils=shape.coils, **others
        )

    def transforms(self, problem, made):
        call = getattr(made.candidate.plan, problem.operation)
        return {"transform, Python": lambda: call(problem.data, made.candidate.output)}

    def plans(self, problem, made):
        tolerance = made.candidate.tolerance
        functions = {"plan, host": lambda: self.plan(problem, problem.k, tolerance)}
        if self.from_device:
            functions["plan, device"] = lambda: self.plan(
                problem, problem.on_device, tolerance, geometry_on_device=True
            )
        return functions

    def calls(self, problem, made):
        shape, tolerance = problem.shape, made.candidate.tolerance

        def host():
            output = np.empty(problem.output_shape, COMPLEX[shape.precision])
            plan = recon_library.Plan(
                self.library, shape.dims, problem.k, tolerance=tolerance, coils=shape.coils, gpus=[0]
            )
            getattr(plan, problem.operation)(problem.host_data, output)
            plan.destroy()

        def device():
            output = cp.empty(problem.output_shape, COMPLEX[shape.precision])
            plan = self.plan(problem, problem.on_device, tolerance, geometry_on_device=True)
            getattr(plan, problem.operation)(problem.data, output)
            plan.destroy()

        return {"call, host": host, "call, device": device} if self.from_device else {"call, host": host}


class CuFinufft(Side):
    ladder = ladder(2, -4)

    def __init__(self, stream):
        self.stream = stream

    def variants(self, problem):
        return [(m, o) for o in gpu_sides.OVERSAMPLINGS for m in gpu_sides.METHODS[problem.operation]]

    def error_class(self, variant):
        return variant[1]

    def plan(self, problem, points, tolerance, variant):
        shape = problem.shape
        return gpu_sides.cufinufft_plan(
            shape.dims, points, problem.operation, self.stream, shape.precision, tolerance, *variant, shape.coils
        )

    def make(self, problem, tolerance, variant):
        plan, output = self.plan(problem, problem.radians, tolerance, variant), problem.poisoned()
        run = gpu_sides.cufinufft_call(plan, problem.operation, problem.data, output)
        method, oversampling = variant
        setting = f"{tolerance:.1e}, method {method}, x{oversampling:.2f}"
        return Candidate(setting, tolerance, plan, run, output)

    def transforms(self, problem, made):
        output = made.candidate.output
        given, taken = (problem.data, output) if problem.shape.coils > 1 else (problem.data[0], output[0])
        return {"transform, Python": lambda: made.candidate.plan.execute(given, out=taken)}

    def plans(self, problem, made):
        """Sets the points from the GPU in both cases: cuFINUFFT takes no others."""
        make = lambda: self.plan(problem, problem.radians, made.candidate.tolerance, made.variant)
        return {"plan, host": make, "plan, device": make}

    def calls(self, problem, made):
        def transform(points, data):
            plan = self.plan(problem, points, made.candidate.tolerance, made.variant)
            output = cp.empty(problem.output_shape, COMPLEX[problem.shape.precision])
            gpu_sides.cufinufft_call(plan, problem.operation, data, output)()
            return output

        def host():
            copied = [cp.asarray(axis) for axis in problem.host_radians]
            cp.asnumpy(transform(copied, cp.asarray(problem.host_data)))

        return {"call, host": host, "call, device": lambda: transform(problem.radians, problem.data)}


class GpuSweep:
    """recon and cuFINUFFT on one stream of the first GPU."""

    xp = cp
    runs = 31
    budget = 0.06
    threads = 0

    def __init__(self, library):
        self.stream = cp.cuda.Stream(non_blocking=True)
        self.sides = {"recon": Recon(library, self.stream)}
        if gpu_sides.cufinufft:
            self.sides["cuFINUFFT"] = CuFinufft(self.stream)
        self.random = cp.random.RandomState(1)
        self.stream.use()

    def free(self):
        """Returns memory that CuPy holds for later arrays."""
        cp.get_default_memory_pool().free_all_blocks()

    def transform_seconds(self, run):
        return 1e-3 * gpu_sides.event_ms(self.stream, run)

    def wall_seconds(self, function):
        return 1e-3 * gpu_sides.wall_ms(self.stream, function)

    def problem(self, shape, k, operation, random):
        on_device = [cp.asarray(axis) for axis in k]
        radians = gpu_sides.radians(k, shape.precision)
        size = (shape.coils, shape.samples) if operation == "adjoint" else (shape.coils, *shape.dims[::-1])
        real = FLOAT[shape.precision]
        self.random.seed(int(random.integers(1 << 30)))
        data = cp.empty(size, COMPLEX[shape.precision])
        data.real, data.imag = (self.random.random_sample(size, dtype=real) - real(0.5) for _ in range(2))
        host_radians = [cp.asnumpy(axis) for axis in radians]
        return Problem(shape, operation, k, on_device, radians, data, cp.asnumpy(data), host_radians)

    def describe(self, root, library):
        found = gpu_machine.describe(root, library)
        versions = {name: found.pop(name) for name in ("recon", "commit", "cuFINUFFT")}
        found.pop("date")
        # A measured speed is not the same in two runs.
        found.pop("copy, TB/s read and written")
        return SimpleNamespace(stem="sweep-gpu", machine=found, versions=versions)
