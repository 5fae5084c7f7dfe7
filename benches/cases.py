"""What is measured: trajectories, matrices, the errors to be met, and the settings that each side sweeps."""

from dataclasses import dataclass

import recon_library

# The settings that each side tries, as its arguments: precision, tolerance, and, if given, FINUFFT's oversampling.
# If it is not given, FINUFFT chooses it. With one thread FINUFFT chooses 2, which is many times slower in 3D than 1.25.
# The error of every setting is measured, and the fastest setting that meets a bound counts. The lists are denser where
# the errors lie close to the bounds of the cases.
SETTINGS = {
    "recon": [("f32", t) for t in (3e-3, 2e-3, 1e-3, 4e-4, 1e-4, 2e-5, 1e-5, 5e-6, 3e-6, 1.5e-6)],
    "DUCC0": [("f32", t) for t in (2e-2, 8e-3, 3e-3, 2e-3, 1e-3, 9e-4, 5e-4, 1e-4, 3e-5, 1e-5, 5e-6, 2e-6)],
    "FINUFFT": [("f32", t, 1.25) for t in (1e-3, 3e-4, 1e-4, 3e-5)] + [("f32", t) for t in (1e-4, 1e-5, 1e-6)],
}
# Double precision is tried too where the bounds are near the rounding error of single precision. FINUFFT takes
# coordinates in radians, and their rounding alone causes an error of about 1e-5.
DOUBLE_SETTINGS = {
    "recon": [("f64", 2e-6)],
    "DUCC0": [("f64", t) for t in (1e-4, 1e-5)],
    "FINUFFT": [("f64", t, 1.25) for t in (1e-5, 3e-6, 1e-6)],
}
QUICK_SETTINGS = {
    "recon": [("f32", t) for t in (1e-3, 1e-5, 1.5e-6)],
    "DUCC0": [("f32", t) for t in (8e-3, 5e-4, 1e-4, 1e-5)],
    "FINUFFT": [("f32", 3e-4, 1.25)],
}

# Section 6 of the design allows recon this fraction of DUCC0's time.
SHARE_OF_DUCC0 = 0.7


@dataclass(frozen=True)
class Case:
    """A transform, adjoint and forward: a trajectory, a matrix, and the relative l2 errors at which to compare."""

    name: str
    what: str
    dims: tuple
    generator: str
    sizes: tuple
    errors: tuple
    double_too: bool
    # The operations for which the design gives a figure to reach.
    figures_for: tuple

    def trajectory(self, library):
        return library.trajectory(self.generator, len(self.dims), *self.sizes)

    def settings(self, side, quick):
        """The settings that a side tries."""
        if quick:
            return QUICK_SETTINGS[side]
        return SETTINGS[side] + (DOUBLE_SETTINGS[side] if self.double_too else [])


STONE = Case(
    name="stone",
    what="3D, 555 spokes x 512 to 128^3",
    dims=(128, 128, 128),
    generator="radial3d",
    sizes=(555, 512),
    errors=(7e-4, 8e-6, 2e-6),
    double_too=True,
    figures_for=("adjoint",),
)
RADIAL2D = Case(
    name="radial2d",
    what="504 spokes x 512 to 256^2",
    dims=(256, 256),
    generator="radial2d",
    sizes=(504, 512, recon_library.SPOKES_LINEAR),
    errors=(4e-4,),
    double_too=False,
    figures_for=("adjoint", "forward"),
)
PROPELLER = Case(
    name="propeller",
    what="17 blades x 24 lines x 960 to 512^2",
    dims=(512, 512),
    generator="propeller",
    sizes=(17, 24, 960),
    errors=(4e-4,),
    double_too=False,
    figures_for=("adjoint", "forward"),
)
TRANSFORMS = (STONE, RADIAL2D, PROPELLER)

# Exact sums. On a Cartesian grid the exponentials factor, so this case has many more pairs of a sample and a voxel. The
# voxel list has as many voxels and samples as the test of Stone et al. 2008, and their loop computes the same list.
EXACT_CARTESIAN_SAMPLES = 4096
EXACT_LIST_SAMPLES = 8192
EXACT_LIST_VOXELS = 1 << 15


@dataclass(frozen=True)
class ExactFigure:
    voxels: str
    precision: str
    error: float
    gpairs: float


EXACT_FIGURES = (ExactFigure("Cartesian", "f32", 5e-6, 40.0), ExactFigure("list", "f32", 5e-5, 8.0))


@dataclass(frozen=True)
class Solution:
    """A reconstruction by conjugate gradients in its own process, and how often it is timed."""

    name: str
    what: str
    scan: Case
    coils: int
    iterations: int
    # Tolerances of recon's transforms: the default, and one at which recon's image is about as near as BART's to the
    # image of the same iterations with exact transforms.
    tolerances: tuple
    runs: int
    bart_runs: int
    # Limits of the design: wall time and peak memory.
    seconds: float
    gigabytes: float | None


CG3D = Solution("cg3d", "stone, one coil, 60 iterations", STONE, 1, 60, (1e-4, 1e-6), 3, 1, 4.0, 0.6)
CG2D = Solution("cg2d", "radial2d, 8 coils with maps, 30 iterations", RADIAL2D, 8, 30, (1e-4, 1e-6), 7, 3, 0.5, None)
SOLUTIONS = (CG3D, CG2D)

# How cost grows: factors that multiply the number of spokes, sizes of a cubic matrix, numbers of coils.
GROWTH_FACTORS = (1, 2, 4, 8)
GROWTH_MATRICES = (64, 96, 128, 192, 256)
GROWTH_COILS = (1, 2, 4, 8, 16)
