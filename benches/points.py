"""Coordinates of the cases of shapes.py in cycles per voxel, in [-0.5, 0.5): random, or along a trajectory."""

import numpy as np

# The largest coordinate. In single precision 0.5 - 1e-7 would be rounded to 0.5, which is outside.
MOST = 0.49999
GOLDEN_ANGLE = np.pi * (3 - 5**0.5)


def random(source, ndim, samples):
    return source.uniform(-0.5, MOST, (ndim, samples))


def radial(source, ndim, samples):
    """Spokes through the centre: at golden angles in 2D, on a spiral over the sphere in 3D."""
    readout = min(samples, int(source.integers(64, 640)))
    spokes = -(-samples // readout)
    turns = GOLDEN_ANGLE * np.arange(spokes)
    if ndim == 2:
        directions = [np.cos(turns), np.sin(turns)]
    else:
        z = 1 - 2 * (np.arange(spokes) + 0.5) / spokes
        across = np.sqrt(1 - z * z)
        directions = [across * np.cos(turns), across * np.sin(turns), z]
    along = np.linspace(-0.5, MOST, readout)
    return np.stack([np.outer(d, along).ravel()[:samples] for d in directions])


def spiral(source, ndim, samples):
    """Interleaved Archimedean spirals from the centre outwards; in 3D each interleaf has its own plane."""
    interleaves = int(min(samples, source.integers(1, 64)))
    readout = -(-samples // interleaves)
    along = np.linspace(0.0, 1.0, readout, endpoint=False)
    turns = 2 * np.pi * source.uniform(4.0, 40.0) * along
    starts = GOLDEN_ANGLE * np.arange(interleaves)[:, None]
    radii = np.minimum(0.5 * along, MOST)
    axes = [radii * np.cos(turns + starts), radii * np.sin(turns + starts)]
    if ndim == 3:
        planes = source.uniform(-0.5, MOST, interleaves)
        axes.append(np.repeat(planes[:, None], readout, axis=1))
    return np.stack([axis.ravel()[:samples] for axis in axes])


def clustered(source, ndim, samples):
    """Most samples are near one to five points, one in ten anywhere."""
    centres = source.uniform(-0.5, MOST, (int(source.integers(1, 6)), ndim))
    width = 10.0 ** source.uniform(-3.0, -1.0)
    k = centres[source.integers(0, len(centres), samples)].T + width * source.standard_normal((ndim, samples))
    k -= np.floor(k + 0.5)
    anywhere = source.random(samples) < 0.1
    k[:, anywhere] = source.uniform(-0.5, MOST, (ndim, int(anywhere.sum())))
    return k


MAKERS = {function.__name__: function for function in (random, radial, spiral, clustered)}


def coordinates(shape, source):
    """Returns one array for each axis, in the precision of the case."""
    real = np.float32 if shape.precision == "f32" else np.float64
    k = np.clip(MAKERS[shape.points](source, shape.ndim, shape.samples), -0.5, MOST)
    return [np.ascontiguousarray(axis, real) for axis in k]
