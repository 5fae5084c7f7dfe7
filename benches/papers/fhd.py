"""The steps of F^H d and Q of Stone et al. 2008 and of the book chapter on one or several GPUs: kernels of fhd.cu."""

from dataclasses import dataclass, replace

import numpy as np

from harness import ROOT, relative
from measure import voxel_positions

GLOBAL_STRUCTURES, GLOBAL_ARRAYS, CONSTANT_STRUCTURES, CONSTANT_K, CONSTANT_K_ARRAYS, SHARED_STRUCTURES = range(6)
SOFTWARE, HARDWARE, MIXED = range(3)
# Floating-point operations of a pair of voxel and sample, as the paper counts them. The phase and the sums take 13, a
# sine and a cosine in software 13 and 12, in hardware 1 each.
OPERATIONS = {SOFTWARE: 38, HARDWARE: 15, MIXED: 15}
# Samples in 64 KB of constant memory, rounded down to a multiple of 32.
CAPACITY = 3264
# Samples in the 48 KB of shared memory that a block may have without asking for more.
SHARED_CAPACITY = 2400
# Samples are padded with zeros to a multiple of a warp.
WARP = 32


@dataclass(frozen=True)
class Step:
    """A step of the optimisation: a kernel and its settings."""

    name: str
    kernel: str = "fhd"
    layout: int = GLOBAL_STRUCTURES
    trig: int = SOFTWARE
    voxels: int = 1
    unroll: int = 1
    threads: int = 256
    # Samples per launch, as in the paper.
    tile: int = 256

    @property
    def in_constant_memory(self):
        return self.layout in (CONSTANT_STRUCTURES, CONSTANT_K, CONSTANT_K_ARRAYS)

    def macros(self):
        return (
            f"-DLAYOUT={self.layout}", f"-DTRIG={self.trig}", f"-DV={self.voxels}", f"-DUNROLL={self.unroll}",
            f"-DCAPACITY={CAPACITY}",
        )  # fmt: skip

    def settings(self):
        return f"{self.threads} threads, tile {self.tile}, unroll {self.unroll}, {self.voxels} voxels a thread"


BASE = Step("Base", "fhd_base")
REGISTERS = Step("RegAlloc")
COALESCED = Step("Coalesce", layout=GLOBAL_ARRAYS)
CONSTANT = Step("ConstMem", layout=CONSTANT_STRUCTURES)
FAST = Step("FastTrig", layout=CONSTANT_STRUCTURES, trig=HARDWARE)
# Their settings are those of the search.
TUNE = Step("Tune", layout=CONSTANT_STRUCTURES, trig=HARDWARE, voxels=4, unroll=4)
MIXED_TUNE = Step("Tune, polar form, a quarter by polynomials", layout=SHARED_STRUCTURES, trig=MIXED, voxels=4)
STEPS = (BASE, REGISTERS, COALESCED, CONSTANT, FAST)


class Points:
    """Samples on a GPU, as structures and as arrays."""

    def __init__(self, cupy, k, values):
        self.cupy, self.k, self.values = cupy, k, values
        self.count = -(-k[0].size // WARP) * WARP
        self.arrays = self.columns(values.real, values.imag)
        self.structures = cupy.ascontiguousarray(self.arrays.T)
        self.positions = cupy.ascontiguousarray(self.arrays[:3].T)
        self.polar_structures = cupy.ascontiguousarray(self.columns(np.abs(values), np.angle(values)).T)

    def columns(self, *members):
        columns = np.zeros((5, self.count), np.float32)
        for column, member in zip(columns, (*self.k, *members)):
            column[: member.size] = member
        return self.cupy.asarray(columns)

    def part(self, count):
        """Returns the first `count` samples."""
        return Points(self.cupy, [axis[:count] for axis in self.k], self.values[:count])


class Runner:
    """Runs steps on one GPU. Compiled modules are kept."""

    def __init__(self, session, device=0):
        self.session, self.cupy, self.device, self.modules = session, session.cupy, device, {}
        with self.cupy.cuda.Device(device):
            self.stream = session.stream if device == 0 else self.cupy.cuda.Stream(non_blocking=True)

    def kernel(self, step):
        macros = step.macros()
        if macros not in self.modules:
            self.modules[macros] = self.session.module("fhd.cu", macros)
        return self.modules[macros], self.modules[macros].get_function(step.kernel)

    def work(self, step, samples, voxels, out):
        """Returns a function that adds the sums over all samples to `out` at all voxels, on this GPU's stream."""
        module, kernel = self.kernel(step)
        size = voxels[0].size
        structures = samples.polar_structures if step.trig == MIXED else samples.structures
        constant = module.get_global("tile") if step.in_constant_memory else None
        threads_needed = samples.count if step.kernel == "fhd_scatter" else -(-size // step.voxels)

        def fill(first, count):
            async_copy = constant.copy_from_device_async
            if step.layout == CONSTANT_STRUCTURES:
                async_copy(structures[first:].data, 20 * count, self.stream)
            elif step.layout == CONSTANT_K:
                async_copy(samples.positions[first:].data, 12 * count, self.stream)
            else:
                for axis in range(3):
                    (constant + 4 * CAPACITY * axis).copy_from_device_async(
                        samples.arrays[axis, first:].data, 4 * count, self.stream
                    )

        def run():
            tile = samples.count if step.kernel == "fhd_scatter" else step.tile
            for first in range(0, samples.count, tile):
                count = min(tile, samples.count - first)
                if constant is not None:
                    fill(first, count)
                arguments = (
                    *voxels, structures[first:], *(column[first:] for column in samples.arrays),
                    np.int32(count), out, np.int64(size),
                )  # fmt: skip
                shared = 20 * count if step.layout == SHARED_STRUCTURES else 0
                kernel(
                    (-(-threads_needed // step.threads),), (step.threads,), arguments, shared_mem=shared,
                    stream=self.stream,
                )  # fmt: skip

        return run


def configurations(step, threads, tiles, unrolls, voxels):
    """Returns all settings of a step that fit the memory of its layout."""
    limit = CAPACITY if step.in_constant_memory else SHARED_CAPACITY
    return [
        replace(step, threads=t, tile=tile, unroll=u, voxels=v)
        for v in voxels for u in unrolls for t in threads for tile in tiles if tile <= limit
    ]  # fmt: skip


@dataclass(frozen=True)
class ListSetting:
    """Settings of the library's kernel for lists. The defaults are those of src/backend/cuda/direct/list.rs."""

    threads: int = 128
    voxels: int = 4
    # The number of a thread's voxels whose sines are polynomials.
    polynomials: int = 1
    unroll: int = 2

    def settings(self):
        return (
            f"{self.threads} threads, unroll {self.unroll}, {self.voxels} voxels a thread, {self.polynomials} of them by"
            " polynomials"
        )


class ListKernel:
    """The library's kernel for lists of voxels (kernels/exact_list.cu), launched with any settings.

    The first `size` voxels of the grid are ordered in boxes of 8^3, as the library sorts a list.
    """

    RUN = 256

    def __init__(self, session, k, data, dims, size):
        self.session, self.cupy = session, session.cupy
        cupy = self.cupy
        places = voxel_positions(dims, np.arange(size))
        boxes = [(p // 8).astype(np.int64) for p in places]
        order = np.lexsort((*(p for p in places), *boxes))
        self.voxels = [cupy.asarray(p[order], cupy.float32) for p in places]
        self.size, self.padded = size, -(-data.size // self.RUN) * self.RUN
        self.samples = [cupy.asarray(axis, cupy.float32) for axis in k]
        self.data = cupy.asarray(data, cupy.complex64)
        self.out = session.poisoned(size)
        self.sources = cupy.zeros((self.padded, 8), cupy.float32)
        chosen = session.random.choice(size, 100)
        self.chosen = cupy.asarray(chosen)
        phases = sum(np.outer(p[order][chosen], axis.astype(np.float64)) for p, axis in zip(places, k))
        self.exact = np.exp(2j * np.pi * phases) @ data.astype(np.complex128)
        self.modules = {}

    def module(self, setting):
        macros = (
            "-DAXES=3", "-DDECAY=0", f"-DV={setting.voxels}", f"-DPOLY={setting.polynomials}",
            f"-DUNROLL={setting.unroll}", "-DACCURATE=0", f"-DTHREADS={setting.threads}",
        )  # fmt: skip
        if macros not in self.modules:
            folder = ROOT / "kernels"
            names = ("common.cuh", "exact_wave.cuh", "exact_list.cu")
            source = "".join((folder / name).read_text() for name in names)
            options = ("-DREAL=float", "-DDOUBLE=0", *macros)
            self.modules[macros] = self.cupy.RawModule(code=source, options=options)
        return self.modules[macros]

    def work(self, setting):
        """Returns a function that prepares the samples and computes all sums."""
        module, stream = self.module(setting), self.session.stream
        ready, list_sum = module.get_function("ready_sources"), module.get_function("list_sum")
        none, zero = np.uint64(0), np.int64(0)
        prepare = (*self.samples, none, none, self.data, none, np.int64(self.data.size), np.int64(self.padded),
                   np.float32(1), self.sources)  # fmt: skip
        add = (self.sources, np.int64(self.padded // self.RUN), *self.voxels, none, none, none, np.int64(self.size),
               self.out, zero)  # fmt: skip
        blocks = -(-self.size // (setting.threads * setting.voxels))

        def run():
            ready((-(-self.padded // 256),), (256,), prepare, stream=stream)
            list_sum((blocks, 1), (setting.threads,), add, stream=stream)

        return run

    def error(self, setting):
        """Returns the error of some sums, relative to double precision."""
        self.out.fill(np.nan)
        self.cupy.cuda.Device().synchronize()
        self.work(setting)()
        self.session.stream.synchronize()
        return relative(self.out[self.chosen].get(), self.exact)
