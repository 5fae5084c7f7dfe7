"""Random cases of `make bench-sweep`: what is transformed, drawn from a seed and the number of the case.

Only Python's standard library draws, and each property of a case has its own generator. So a seed gives the same cases
on every machine, one case can be drawn without the others, and a new property leaves the others as they are. To add a
property, append it to `Shape` and its function to `DIMENSIONS`, and use it in sweep_case.py.
"""

import math
import random
from dataclasses import dataclass, fields, replace

# Distributions of the samples. points.py has a function for each.
POINTS = ("random", "radial", "spiral", "clustered")
SAMPLE_BYTES = {"f32": 8, "f64": 16}


@dataclass(frozen=True)
class Limits:
    """Ranges of the cases of one kind of device, and the largest work of one case."""

    # Smallest and largest number of voxels along an axis, in 2D and in 3D.
    sides: dict
    samples: tuple
    # Estimated seconds of one transform by a peer, on one thread or on a GPU.
    seconds: float
    # Estimated nanoseconds for each sample and cell of its window, and for each cell of the grid.
    sample_ns: float
    cell_ns: float
    # Largest number of bytes of the samples of all coils, and of their images.
    data_bytes: int


LIMITS = {
    "cpu": Limits({2: (8, 512), 3: (8, 512)}, (256, 12_000_000), 0.06, 0.3, 12.0, 1 << 27),
    "gpu": Limits({2: (16, 2048), 3: (16, 512)}, (256, 12_000_000), 0.03, 0.003, 0.05, 1 << 28),
}


@dataclass(frozen=True)
class Shape:
    """One case: a geometry, the precision of its arrays, and the relative l2 error to be met."""

    ndim: int
    dims: tuple
    samples: int
    coils: int
    precision: str
    error: float
    points: str

    @property
    def voxels(self):
        return math.prod(self.dims)

    def text(self):
        """Returns the case in the words that `--set` takes."""
        dims = "x".join(map(str, self.dims))
        return (
            f"dims={dims} samples={self.samples} coils={self.coils} precision={self.precision}"
            f" error={self.error:.1e} points={self.points}"
        )

    def row(self):
        return {**{field.name: getattr(self, field.name) for field in fields(self)}, "dims": list(self.dims)}


def log_uniform(source, least, most):
    return math.exp(source.uniform(math.log(least), math.log(most)))


def draw_ndim(source, drawn, limits):
    return source.choice((2, 2, 3))


def draw_dims(source, drawn, limits):
    """Draws the sides: usually within a factor of 2, three times in ten independent of each other."""
    least, most = limits.sides[drawn["ndim"]]
    base = log_uniform(source, least, most)
    independent = source.random() < 0.3
    cubic = source.random() < 0.3
    rounded = source.random() < 0.3
    sides = []
    for _ in range(drawn["ndim"]):
        factor = 1.0 if cubic else 2.0 ** source.uniform(-0.5, 0.5)
        side = log_uniform(source, least, most) if independent else base * factor
        step = 16 if rounded else 1
        sides.append(min(most, max(least, step * max(1, round(side / step)))))
    return tuple(sides)


def draw_samples(source, drawn, limits):
    return round(log_uniform(source, *limits.samples))


def draw_coils(source, drawn, limits):
    return source.choice((1, 1, 1, 2, 3, 4, 6, 8, 12, 16))


def draw_precision(source, drawn, limits):
    return source.choice(("f32", "f32", "f64"))


def draw_error(source, drawn, limits):
    """Draws a bound that transforms in this precision can meet, with two digits."""
    least = 2e-5 if drawn["precision"] == "f32" else 1e-10
    return float(f"{log_uniform(source, least, 1e-2):.1e}")


def draw_points(source, drawn, limits):
    return source.choice(POINTS)


DIMENSIONS = {
    "ndim": draw_ndim,
    "dims": draw_dims,
    "samples": draw_samples,
    "coils": draw_coils,
    "precision": draw_precision,
    "error": draw_error,
    "points": draw_points,
}


def seconds(shape, limits):
    """Returns a rough estimate of the seconds of one transform."""
    width = 1 + math.ceil(-math.log10(shape.error))
    per_sample = limits.sample_ns * width**shape.ndim + 20 * limits.sample_ns
    per_voxel = limits.cell_ns * 2**shape.ndim
    double = 2 if shape.precision == "f64" else 1
    return 1e-9 * double * shape.coils * (shape.samples * per_sample + shape.voxels * per_voxel)


def within(shape, limits):
    data = SAMPLE_BYTES[shape.precision] * shape.coils * max(shape.samples, shape.voxels)
    return seconds(shape, limits) <= limits.seconds and data <= limits.data_bytes


def bounded(shape, limits):
    """Returns the shape itself, or one with less work: in turn fewer coils, and a smaller image or fewer samples."""
    turn = 0
    while not within(shape, limits):
        turn += 1
        if turn % 2 and shape.coils > 1:
            shape = replace(shape, coils=shape.coils // 2)
        elif seconds(replace(shape, samples=0), limits) > seconds(shape, limits) / 2:
            longest = shape.dims.index(max(shape.dims))
            dims = tuple(side * 3 // 4 if axis == longest else side for axis, side in enumerate(shape.dims))
            shape = replace(shape, dims=dims)
        else:
            shape = replace(shape, samples=shape.samples * 3 // 4)
    return shape


def draw(device, seed, number):
    """Returns the case with this number."""
    drawn, limits = {}, LIMITS[device]
    for name, function in DIMENSIONS.items():
        drawn[name] = function(random.Random(f"{seed}/{number}/{name}"), drawn, limits)
    return bounded(Shape(**drawn), limits)


def changed(shape, text):
    """Returns a shape with the properties in a text such as "dims=74x74 samples=1493"."""
    values = {}
    for word in text.split():
        name, _, value = word.partition("=")
        if name not in DIMENSIONS or name == "ndim" or not value:
            known = ", ".join(f"{known}=" for known in DIMENSIONS if known != "ndim")
            raise ValueError(f"{word!r}: no property of a case is set so; there are {known}")
        values[name] = value
    if "dims" in values:
        values["dims"] = tuple(int(side) for side in values["dims"].split("x"))
        values["ndim"] = len(values["dims"])
    for name, kind in (("samples", int), ("coils", int), ("error", float)):
        if name in values:
            values[name] = kind(values[name])
    for name, known in (("points", POINTS), ("precision", tuple(SAMPLE_BYTES)), ("ndim", (2, 3))):
        if values.get(name, known[0]) not in known:
            raise ValueError(f"{name}={values[name]}: there are {', '.join(map(str, known))}")
    return replace(shape, **values)
