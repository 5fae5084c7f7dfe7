"""The transforms that `make bench-gpu` measures, and the figures that are asked of them."""

from dataclasses import dataclass, field

import numpy as np

import cases
import points
from shapes import Shape


@dataclass(frozen=True)
class GpuCase:
    """A geometry, the errors at which sides are compared, and limits for adjoint and forward, or None."""

    name: str
    what: str
    dims: tuple
    # A function of a library and a random generator that returns coordinates in single or double precision.
    trajectory: object
    errors: tuple
    coils: int = 1
    precision: str = "f32"
    # Limits by measurement: recon's time over cuFINUFFT's, and milliseconds.
    ratios: dict = field(default_factory=dict)
    milliseconds: dict = field(default_factory=dict)
    # Whether recon is measured on the CPU too.
    on_cpu: bool = False
    # Whether quick runs leave the case out, and the plans of the sides are made one after the other.
    large: bool = False

    def shape(self, k, error):
        return Shape(len(self.dims), self.dims, k[0].size, self.coils, self.precision, error, self.name)

    def coordinates(self, library, random):
        real = np.float32 if self.precision == "f32" else np.float64
        return [np.ascontiguousarray(axis, real) for axis in self.trajectory(library, random)]


def uniform(ndim, samples):
    return lambda library, random: points.random(random, ndim, samples)


def generated(name, ndim, *sizes):
    return lambda library, random: library.trajectory(name, ndim, *sizes)


def spiral(library, random):
    """16 interleaves of 16,384 samples and 20 turns each."""
    along = np.linspace(0.0, 1.0, 16_384, endpoint=False)
    turns = 2 * np.pi * (20 * along + np.arange(16)[:, None] / 16)
    return [np.clip(0.5 * along * wave, -0.5, points.MOST).ravel() for wave in (np.cos(turns), np.sin(turns))]


def stack_of_stars(library, random):
    """400 spokes of 512 samples in each of 64 planes."""
    x, y = library.trajectory("radial2d", 2, 400, 512, cases.SPOKES_GOLDEN)
    planes = (np.arange(64) / 64 - 0.5).astype(np.float32)
    return [np.tile(x, 64), np.tile(y, 64), np.repeat(planes, x.size)]


RADIAL2D = generated("radial2d", 2, *cases.RADIAL2D.sizes)
STONE = generated("radial3d", 3, *cases.STONE.sizes)


def both(adjoint, forward):
    return {"adjoint": adjoint, "forward": forward}


def radial2d(coils, ratios):
    name = "radial2d" if coils == 1 else f"radial2d, {coils} coils"
    dims = cases.RADIAL2D.dims
    return GpuCase(name, cases.RADIAL2D.what, dims, RADIAL2D, (4e-4,), coils, ratios=ratios, on_cpu=coils == 1)


# Suites of cases, which can be run one by one.
SUITES = {
    "stone": (
        GpuCase("stone", cases.STONE.what, cases.STONE.dims, STONE, (1e-3, 1e-5), ratios=both(0.18, 0.18), on_cpu=True),
    ),
    "large3d": (
        GpuCase("large3d", "8.4 M random points to 256^3", (256,) * 3, uniform(3, 8_400_000), (1e-3,),
                milliseconds=both(1.2, 0.9), on_cpu=True),
    ),
    "planar": (
        radial2d(1, both(0.6, 0.6)),
        radial2d(8, both(0.35, 0.5)),
        radial2d(32, both(0.35, 0.5)),
        GpuCase("dense radial2d", cases.DENSE.what, cases.DENSE.dims,
                generated("radial2d", 2, *cases.DENSE.sizes), (6e-4,), ratios=both(0.6, 0.6)),
        GpuCase("10 M", "10 M random points to 1024^2", (1024, 1024), uniform(2, 10_000_000), (1e-3,),
                ratios=both(0.6, 0.6)),
        GpuCase("2,048", "2,048 random points to 64^2", (64, 64), uniform(2, 2048), (1e-3,), ratios=both(0.8, 0.8)),
        GpuCase("spiral", "16 interleaves x 16,384 to 256^2", (256, 256), spiral, (1e-3,)),
    ),
    "double": (
        GpuCase("radial2d", cases.RADIAL2D.what, cases.RADIAL2D.dims, RADIAL2D, (1e-9,), precision="f64",
                ratios=both(None, 0.5)),
        GpuCase("stone", cases.STONE.what, cases.STONE.dims, STONE, (1e-9,), precision="f64", ratios=both(None, 0.5)),
    ),
    "spatial": (
        GpuCase("stone, 8 coils", cases.STONE.what, cases.STONE.dims, STONE, (1e-3,), 8),
        GpuCase("stone, 32 coils", cases.STONE.what, cases.STONE.dims, STONE, (1e-3,), 32),
        GpuCase("kooshball", cases.LARGE3D.what, cases.LARGE3D.dims,
                generated("radial3d", 3, *cases.LARGE3D.sizes), (1e-3,)),
        GpuCase("stack of stars", "400 spokes x 512 x 64 planes to 256 x 256 x 64", (256, 256, 64), stack_of_stars,
                (1e-3,)),
    ),
    "points": (
        GpuCase("168 M", "168 M random points to 256^3, setup included", (256,) * 3, uniform(3, 168_000_000),
                (1e-6,), precision="f64", milliseconds={"call, device": both(150.0, 100.0)}, large=True),
    ),
}  # fmt: skip
