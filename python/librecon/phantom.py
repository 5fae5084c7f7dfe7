"""Simulated scans: analytic phantoms of ellipses and ellipsoids, coils on a ring, and noise.

`shapes` is double [count, 10]: density, centre x y z, semi-axes, and three Euler angles, see recon_phantom_kspace. x is
the last axis of an image. None is the head phantom of Shepp and Logan.
"""

from __future__ import annotations

import math

import numpy as np

from ._arrays import View
from ._capi import Structure, call, ffi
from ._encoding import columns, precision_of


def _shapes(shapes):
    if shapes is None:
        return None, 0
    shapes = np.ascontiguousarray(shapes, dtype=np.float64)
    if shapes.ndim != 2 or shapes.shape[1] != 10:
        raise ValueError(f"shapes has the shape {shapes.shape}, and (count, 10) is needed")
    return shapes, shapes.shape[0]


def _image_geometry(shape, dtype, coils=1):
    precision = {np.dtype(np.complex64): "single", np.dtype(np.complex128): "double"}.get(np.dtype(dtype))
    if precision is None:
        raise ValueError(f"dtype is {np.dtype(dtype)}: pass numpy.complex64 or numpy.complex128")
    shape = tuple(shape)
    return Structure("recon_geometry", precision=precision, ndim=len(shape), dims=shape[::-1], coils=coils)


def kspace(trajectory, shape, coils=None, shapes=None, field_map=None, decay_map=None, times=None, threads=0):
    """Returns the k-space data of a phantom, complex [coils, *samples], in units of density times voxels.

    coils is the number of coils on a ring. None: one coil with the same sensitivity everywhere, without an axis.
    Off-resonance in Hz, decay in 1/s and times in seconds are as for librecon.Encoding.
    """
    view = View(trajectory, "trajectory")
    precision, real, dtype = precision_of(view, "trajectory")
    samples, shape = view.shape[:-1], tuple(shape)
    geometry = Structure("recon_geometry", precision=precision, ndim=len(shape), dims=shape[::-1], coils=coils or 1,
                         samples=math.prod(samples), coordinate_stride=view.shape[-1],
                         coordinates=columns(view.need("trajectory", real, samples + (len(shape),), None), real, len(shape)))
    for name, value, size in (("field_map", field_map, shape), ("decay_map", decay_map, shape), ("times", times, samples)):
        if value is not None:
            geometry.set(name, ffi.cast("void *", View(value, name).need(name, real, size, None).address))
            geometry.keep.append(value)
    data = np.empty((() if coils is None else (coils,)) + samples, dtype)
    call("recon_phantom_kspace", geometry, *_shapes(shapes), "uniform" if coils is None else "ring", threads, data)
    return data


def image(shape, shapes=None, supersample=4, dtype=np.complex128):
    """Returns the image of a phantom, complex [*shape], each voxel the mean of supersample^ndim points."""
    result = np.empty(tuple(shape), dtype)
    call("recon_phantom_image", _image_geometry(shape, dtype), *_shapes(shapes), supersample, result)
    return result


def coil_maps(shape, coils, dtype=np.complex128):
    """Returns the sensitivities of coils on a ring, complex [coils, *shape]."""
    maps = np.empty((coils, *shape), dtype)
    call("recon_phantom_coil_maps", _image_geometry(shape, dtype, coils), maps)
    return maps


def add_noise(data, snr, seed=1):
    """Adds complex white noise to data in place, and returns its root mean square magnitude.

    snr is the root mean square magnitude of the data, divided by that of the noise. A seed gives the same noise on
    every platform.
    """
    data = View(data, "data", writable=True)
    geometry = _image_geometry((1, 1), data.dtype)
    geometry.set("samples", math.prod(data.shape))
    data.need("data", data.dtype, device=None)
    deviation = ffi.new("double *")
    call("recon_add_noise", geometry, snr, seed, ffi.cast("void *", data.address), deviation)
    return deviation[0]
