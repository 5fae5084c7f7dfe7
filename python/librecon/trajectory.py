"""Generated trajectories: real [..., ndim] in cycles per voxel. The last coordinate is the C API's x.

Errors and formulas are those of recon_trajectory_* in recon.h: help(librecon.capi.recon_trajectory_radial2d).
"""

from __future__ import annotations

import numpy as np

from ._capi import call, choice


def _generate(name, shape, ndim, dtype, *arguments, pad=0):
    precision = {np.dtype(np.float32): "single", np.dtype(np.float64): "double"}.get(np.dtype(dtype))
    if precision is None:
        raise ValueError(f"dtype is {np.dtype(dtype)}: pass numpy.float32 or numpy.float64")
    # Sizes are checked by the library, which is asked before arrays are made of them.
    axes = [np.empty([max(int(n), 0) for n in shape], dtype) for _ in range(ndim)]
    call("recon_trajectory_" + name, choice("recon_precision", precision, "precision"), *arguments, *axes, *[None] * pad)
    return np.stack(axes[::-1], axis=-1)


def cartesian(shape, dtype=np.float64):
    """Returns the fully sampled grid of an image of `shape`: [*shape, ndim], with ndim 1 to 3."""
    shape = tuple(shape)
    return _generate("cartesian", shape, len(shape), dtype, len(shape), list(shape[::-1]), pad=3 - len(shape))


def radial2d(spokes, samples, order="linear", dtype=np.float64):
    """Returns 2D spokes through the centre, [spokes, samples, 2]. `order` is "linear" or "golden"."""
    return _generate("radial2d", (spokes, samples), 2, dtype, spokes, samples, order)


def stack_of_stars(spokes, samples, partitions, order="linear", dtype=np.float64):
    """Returns the same spokes in each partition, [partitions, spokes, samples, 3]. Coordinate 0 is along partitions."""
    return _generate("stack_of_stars", (partitions, spokes, samples), 3, dtype, spokes, samples, partitions, order)


def radial3d(spokes, samples, dtype=np.float64):
    """Returns 3D spokes through the centre, spread evenly over the sphere, [spokes, samples, 3]."""
    return _generate("radial3d", (spokes, samples), 3, dtype, spokes, samples)


def spiral(interleaves, samples, turns, density=1.0, dtype=np.float64):
    """Returns spirals from the centre outwards, [interleaves, samples, 2]."""
    return _generate("spiral", (interleaves, samples), 2, dtype, interleaves, samples, turns, density)


def rosette(shots, samples, radial, angular, dtype=np.float64):
    """Returns rosettes, [shots, samples, 2], with `radial` oscillations and `angular` turns per shot."""
    return _generate("rosette", (shots, samples), 2, dtype, shots, samples, radial, angular)


def lissajous(shots, samples, x_frequency, y_frequency, dtype=np.float64):
    """Returns a closed Lissajous curve, cut into shots, [shots, samples, 2]. x is the last coordinate."""
    return _generate("lissajous", (shots, samples), 2, dtype, shots, samples, x_frequency, y_frequency)


def propeller(blades, lines, samples, scan_matrix=None, dtype=np.float64):
    """Returns PROPELLER blades, [blades, lines, samples, 2]. With `scan_matrix` the readout may be oversampled."""
    shape = (blades, lines, samples)
    if scan_matrix is None:
        return _generate("propeller", shape, 2, dtype, *shape)
    return _generate("propeller_scan", shape, 2, dtype, *shape, scan_matrix)
