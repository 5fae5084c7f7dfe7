"""The cases that are measured: trajectories, matrices, the errors to be met, and the settings that each side sweeps."""

from dataclasses import dataclass

# RECON_SPOKES_LINEAR and RECON_SPOKES_GOLDEN_ANGLE of recon.h.
SPOKES_LINEAR, SPOKES_GOLDEN = 0, 1

# The settings that each side tries, as its arguments: precision, tolerance, and, if given, FINUFFT's oversampling
# (its upsampfac). If it is not given, FINUFFT chooses it. With one thread FINUFFT 2.5 chooses 2, which is many times
# slower in 3D than 1.25. FINUFFT takes any oversampling from 1.15 to 3; larger ones allow narrower windows, which pays
# where samples are dense. The error of every setting is measured, and the fastest setting that meets a bound counts.
# The lists are denser where the errors lie close to the bounds of the cases.
SETTINGS = {
    "recon": [("f32", t) for t in (3e-3, 2e-3, 1e-3, 4e-4, 1e-4, 2e-5, 1e-5, 5e-6, 3e-6, 1.5e-6)],
    "DUCC0": [("f32", t) for t in (2e-2, 8e-3, 3e-3, 2e-3, 1e-3, 9e-4, 5e-4, 1e-4, 3e-5, 1e-5, 5e-6, 2e-6)],
    "FINUFFT": [("f32", t, 1.25) for t in (1e-3, 3e-4, 1e-4, 3e-5)]
    + [("f32", t, 1.5) for t in (1e-3, 5e-4, 3e-4)]
    + [("f32", t, 2.0) for t in (1e-3, 3e-4)]
    + [("f32", t) for t in (1e-3, 3e-4, 1e-4, 1e-5, 1e-6)],
}
# Double precision is tried too where the bounds are near the rounding error of single precision. FINUFFT takes
# coordinates in radians, and their rounding alone causes an error of about 1e-5.
DOUBLE_SETTINGS = {
    "recon": [("f64", 2e-6)],
    "DUCC0": [("f64", t) for t in (1e-4, 1e-5)],
    "FINUFFT": [("f64", t, 1.25) for t in (1e-5, 3e-6, 1e-6)],
}
# The settings for a bound of 4e-4 to 7e-4 alone: those that can win there.
COARSE_SETTINGS = {
    "recon": [("f32", t) for t in (3e-3, 2e-3, 1e-3, 4e-4)],
    "DUCC0": [("f32", t) for t in (8e-3, 3e-3, 2e-3, 9e-4, 5e-4)],
    "FINUFFT": [("f32", t, 1.25) for t in (1e-3, 3e-4, 1e-4)] + [("f32", 5e-4, 1.5), ("f32", 3e-4), ("f32", 1e-4)],
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
    figures_for: tuple = ()
    # Arrays that are transformed at once, each to an image of its own.
    coils: int = 1
    # Of every side only the settings that can win. A plan of a large case takes a gigabyte, and all plans of a case are
    # held at once, so that they can take turns.
    coarse: bool = False
    # Requirements of the machine. On a smaller one the case is left out.
    cores: int = 1
    gibibytes: float = 0.0

    def trajectory(self, library):
        return library.trajectory(self.generator, len(self.dims), *self.sizes)

    def settings(self, side, quick):
        """Returns the settings of a side."""
        if quick:
            return QUICK_SETTINGS[side]
        if self.coarse:
            return COARSE_SETTINGS[side]
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
    sizes=(504, 512, SPOKES_LINEAR),
    errors=(4e-4,),
    double_too=False,
    figures_for=("adjoint", "forward"),
)
PROPELLER = Case(
    name="propeller",
    what="17 blades x 24 lines x 960, scan matrix 256, to 512^2",
    dims=(512, 512),
    generator="propeller_scan",
    # Blades, lines, samples and the scan matrix of Yang et al. 2013, Magn. Reson. Imaging 31.
    sizes=(17, 24, 960, 256),
    errors=(4e-4,),
    double_too=False,
    figures_for=("adjoint", "forward"),
)
DENSE = Case(
    name="radial2d_dense",
    what="4032 spokes x 512 to 256^2",
    dims=(256, 256),
    generator="radial2d",
    sizes=(4032, 512, SPOKES_LINEAR),
    errors=(6e-4,),
    double_too=False,
)
COILS16 = Case(
    name="radial2d_coils16",
    what="radial2d, 16 arrays in one call of each side",
    dims=RADIAL2D.dims,
    generator=RADIAL2D.generator,
    sizes=RADIAL2D.sizes,
    errors=RADIAL2D.errors,
    double_too=False,
    coils=16,
    coarse=True,
)
LARGE3D = Case(
    name="large3d",
    what="3D, 16384 spokes x 512 to 256^3",
    dims=(256, 256, 256),
    generator="radial3d",
    sizes=(16384, 512),
    errors=(7e-4,),
    double_too=False,
    coarse=True,
    cores=8,
    # A machine of 16 GiB shows a little less, because its system keeps some.
    gibibytes=15.0,
)
TRANSFORMS = (STONE, RADIAL2D, DENSE, COILS16, PROPELLER, LARGE3D)


def transform_named(name):
    """Returns the case of the transforms that has this name."""
    return next(case for case in TRANSFORMS if case.name == name)



# Measured quantities of plans: creation of one, and a new trajectory for one.
PLAN, TRAJECTORY = "new plan", "new trajectory"


@dataclass(frozen=True)
class RealTime:
    """Frames of a scan, each with its own trajectory: a new plan or a new trajectory, and gridding."""

    name: str = "realtime"
    what: str = "34 golden-angle spokes x 512, 8 coils, to 192^2"
    dims: tuple = (192, 192)
    spokes: int = 34
    readout: int = 512
    coils: int = 8
    # The frames of one turn. Fewer would measure the clock.
    frames: int = 20
    error: float = 4e-4

    def settings(self, side, quick):
        return (QUICK_SETTINGS if quick else COARSE_SETTINGS)[side]


REALTIME = RealTime()



@dataclass(frozen=True)
class Backprojection:
    """The radial scan of Schiwietz et al. 2006: their CPU took 16.7 s, their GPU 0.13 s."""

    name: str = "backprojection"
    what: str = "504 spokes x 512, 3 coils, to 256^2"
    dims: tuple = (256, 256)
    spokes: int = 504
    readout: int = 512
    coils: int = 3
    tolerance: float = 1e-3
    # Milliseconds that two cores may take.
    milliseconds: float = 20.0


BACKPROJECTION = Backprojection()

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
    # 0: BART is not run.
    bart_runs: int
    # Limits of the design: wall time and peak memory. None: no limit.
    seconds: float | None
    gigabytes: float | None


CG3D = Solution("cg3d", "stone, one coil, 60 iterations", STONE, 1, 60, (1e-4, 1e-6), 3, 1, 4.0, 0.6)
CG2D = Solution("cg2d", "radial2d, 8 coils with maps, 30 iterations", RADIAL2D, 8, 30, (1e-4, 1e-6), 7, 3, 0.5, None)
# BART would take minutes a run here, and more memory than most machines have.
CG3D_COILS = Solution(
    "cg3d_coils", "stone, 8 coils with maps, 30 iterations, without BART", STONE, 8, 30, (1e-4,), 3, 0, None, None
)
SOLUTIONS = (CG3D, CG2D, CG3D_COILS)

# How cost grows: factors that multiply the number of spokes, sizes of a cubic matrix, numbers of coils.
GROWTH_FACTORS = (1, 2, 4, 8)
GROWTH_MATRICES = (64, 96, 128, 192, 256)
GROWTH_COILS = (1, 2, 4, 8, 16)
