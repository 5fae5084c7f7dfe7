"""Functions that need no operator: images, coils, field maps, whole reconstructions, and the library itself."""

from __future__ import annotations

import atexit
import logging
import math
from types import SimpleNamespace

import numpy as np

from . import _capi
from ._arrays import View
from ._capi import SizeMismatchError, Structure, call, ffi, lib
from ._encoding import Encoding, columns, interruption, precision_of

_REALS = {np.dtype(np.complex64): (lib.RECON_F32, np.dtype(np.float32)),
          np.dtype(np.complex128): (lib.RECON_F64, np.dtype(np.float64))}


def _complex(value, name, writable=False):
    """Returns a complex array in the host's memory, its recon_precision and its real dtype."""
    view = View(value, name, writable)
    if view.dtype not in _REALS:
        raise _capi.InvalidArgumentError(f"{name} has the dtype {view.dtype}: pass complex64 or complex128")
    view.need(name, view.dtype, device=None)
    return view, *_REALS[view.dtype]


def _void(view):
    return ffi.NULL if view is None else ffi.cast("void *", view.address)


def _images(images, ndim, name="images"):
    """Returns images [frames, coils, *shape], [coils, *shape] or [*shape], and their geometry."""
    view, precision, real = _complex(images, name)
    if not 0 <= len(view.shape) - ndim <= 2:
        raise SizeMismatchError(f"{name} has the shape {view.shape}: with {ndim} dimensions of an image, up to two axes of "
                                "frames and coils may precede them")
    lead, shape = view.shape[:len(view.shape) - ndim], view.shape[len(view.shape) - ndim:]
    frames, coils = (1,) * (2 - len(lead)) + lead
    return view, real, lead, shape, Structure("recon_geometry", precision=precision, ndim=ndim, dims=shape[::-1],
                                              coils=coils, frames=frames)


def combine(images, method="adaptive", ndim=None):
    """Combines coil images [frames, coils, *shape] or [coils, *shape] into [frames, *shape] or [*shape].

    `method` is "adaptive", with sensitivities estimated from the images, or "rss", the root of the sum of squares. ndim
    is the number of axes of an image; None: all except the first.
    """
    ndim = View(images, "images").shape.__len__() - 1 if ndim is None else ndim
    view, _, lead, shape, geometry = _images(images, ndim)
    if not lead:
        raise SizeMismatchError(f"images has the shape {view.shape}: the axis of coils is missing")
    result = view.library.empty(lead[:-1] + shape, view.dtype, None)
    call("recon_combine", geometry, method, _void(view), _void(View(result, "result")))
    return result


def resize(images, shape, fov=None, shape_fov=None, ndim=None):
    """Resizes images [..., *old] to [..., *shape]. Up to two axes may precede the image, see ndim in `combine`.

    fov and shape_fov are the fields of view before and after along the axes, in the same unit. They determine the voxel
    sizes. None: voxels keep their size, so images are cut, or surrounded by zeros. See recon_resize.
    """
    shape = tuple(int(n) for n in shape)
    ndim = len(shape) if ndim is None else ndim
    view, _, lead, _, geometry = _images(images, ndim)
    if len(shape) != ndim:
        raise SizeMismatchError(f"shape is {shape}, and the image has {ndim} axes")
    sizes = [None if f is None else [float(x) for x in tuple(f)[::-1]] for f in (fov, shape_fov)]
    result = view.library.empty(lead + shape, view.dtype, None)
    call("recon_resize", geometry, sizes[0], list(shape[::-1]), sizes[1], _void(view), _void(View(result, "result")))
    return result


def phase_difference(images, reference, venc=0.0, maxwell=None, origin=None, steps=None, ndim=None):
    """Returns the phase of images minus that of a reference, or a velocity, [frames, *shape] or [*shape].

    Both are [frames, coils, *shape] or [coils, *shape], see ndim in `combine`. venc, maxwell, origin and steps [3, 3]
    are those of recon_phase_difference, for the axes x, y, z; x is the last axis of the image.
    """
    ndim = View(images, "images").shape.__len__() - 1 if ndim is None else ndim
    view, real, lead, shape, geometry = _images(images, ndim)
    other = View(reference, "reference").need("reference", view.dtype, view.shape, None)
    result = view.library.empty(lead[:-1] + shape, real, None)
    vectors = [None if v is None else np.ascontiguousarray(v, np.float64) for v in (maxwell, origin, steps)]
    for name, vector, size in zip(("maxwell", "origin", "steps"), vectors, (4, 3, 9)):
        if vector is not None and vector.size != size:
            raise SizeMismatchError(f"{name} has {vector.size} numbers, and {size} are needed")
    call("recon_phase_difference", geometry, _void(view), _void(other), venc, *vectors, _void(View(result, "result")))
    return result


def metrics(image, truth, mask=None, part="complex", scale="none") -> SimpleNamespace:
    """Returns percent_error, mse, psnr_db, snr_db and the scale of an image, compared with the truth.

    mask is an array of the image's shape; voxels with 0 are ignored. `part` and `scale` are words of recon_part and
    recon_scale.
    """
    view, precision, _ = _complex(image, "image")
    other = View(truth, "truth").need("truth", view.dtype, view.shape, None)
    geometry = Structure("recon_geometry", precision=precision, ndim=2, dims=(math.prod(view.shape), 1))
    if mask is not None:
        mask = np.ascontiguousarray(mask, bool).view(np.uint8)
        if mask.shape != view.shape:
            raise SizeMismatchError(f"mask has the shape {mask.shape}, and the image {view.shape}")
    quality = Structure("recon_quality")
    call("recon_metrics", geometry, _void(view), _void(other), mask, part, scale, quality)
    return quality.values()


def field_map(images, echo_times, decay=False, interrupt=True, ndim=None, **options):
    """Returns (map, report), or (map, decay map, report) with `decay`, of gradient-echo images.

    images are complex [echoes, coils, *shape] or [echoes, *shape] with ndim 3 or 2 axes of an image (ndim None: all
    except the first), echo_times in seconds. The map is in Hz, the decay map in 1/s. Options are unwrap, smoothing,
    threshold and threads, see recon_field_map.
    """
    ndim = View(images, "images").shape.__len__() - 1 if ndim is None else ndim
    view, real, lead, shape, geometry = _images(images, ndim)
    times = np.array(echo_times, dtype=np.float64)
    if not lead or times.shape != lead[:1]:
        raise SizeMismatchError(f"images has the shape {view.shape}, and echo_times {times.shape}: the first axis of images "
                                "is that of the echoes")
    settings, report = Structure("recon_field_map_options", **options), Structure("recon_field_map_report")
    interruption(settings, interrupt)
    results = [np.empty(shape, real) for _ in range(1 + bool(decay))]
    call("recon_field_map", geometry.pointer.precision, ndim, list(shape[::-1]), math.prod(lead[1:]), lead[0], times,
         _void(view), settings, results[0], results[1] if decay else None, report)
    return (*results, report.values())


# Coils.


def noise_covariance(noise, noise_dwell=0.0, dwell=0.0, receiver_bandwidth=0.0) -> np.ndarray:
    """Returns the covariance of the coils' noise, complex128 [coils, coils], the mean of n_a conj(n_b).

    noise is complex [coils, samples]. Dwell times and bandwidth are those of recon_noise_covariance.
    """
    view, precision, _ = _complex(noise, "noise")
    if len(view.shape) != 2:
        raise SizeMismatchError(f"noise has the shape {view.shape}, and (coils, samples) is needed")
    coils, samples = view.shape
    covariance = np.empty((coils, coils), np.complex128)
    call("recon_noise_covariance", precision, _void(view), samples, coils, noise_dwell, dwell, receiver_bandwidth, covariance)
    return covariance.T


def whitening(covariance) -> np.ndarray:
    """Returns the matrix M [virtual coils, coils] with M covariance M^H = 1, for `virtual_coils`."""
    covariance = np.ascontiguousarray(np.asarray(covariance, np.complex128).T)
    if covariance.ndim != 2 or covariance.shape[0] != covariance.shape[1]:
        raise SizeMismatchError(f"covariance has the shape {covariance.shape}: it is a square matrix")
    matrix = np.empty_like(covariance)
    call("recon_whitening", covariance, covariance.shape[0], matrix)
    return matrix.T


def compression(data, keep=0, energy=0.0, frames=False):
    """Returns (matrix [kept, coils], energies [coils]) of the virtual coils that contain most of the data's energy.

    data is complex [coils, ...], or [frames, coils, ...] with `frames`. Give either keep, a number of coils, or energy,
    a fraction in (0, 1].
    """
    view, precision, _ = _complex(data, "data")
    count, coils, samples = _coil_sizes(view, frames, "data")
    matrix, energies, kept = np.empty(coils * coils, np.complex128), np.empty(coils), ffi.new("uint64_t *")
    call("recon_compression", precision, _void(view), samples, coils, count, keep, energy, matrix, kept, energies)
    return matrix[:kept[0] * coils].reshape(coils, kept[0]).T, energies


def virtual_coils(matrix, data, frames=False):
    """Returns the virtual coils of data: k-space, images or maps, [coils, ...], or [frames, coils, ...] with `frames`.

    matrix is [virtual coils, coils], from `whitening` or `compression`. It is converted if necessary.
    """
    view, precision, _ = _complex(data, "data")
    count, coils, samples = _coil_sizes(view, frames, "data")
    matrix = np.ascontiguousarray(np.asarray(matrix, np.complex128).T)
    if matrix.ndim != 2 or matrix.shape[0] != coils:
        raise SizeMismatchError(f"matrix has the shape {matrix.T.shape}, and data {coils} coils: its second axis is theirs")
    at = int(frames)
    result = view.library.empty(view.shape[:at] + matrix.shape[1:] + view.shape[at + 1:], view.dtype, None)
    call("recon_virtual_coils", matrix, matrix.shape[1], coils, precision, _void(view), samples, count,
         _void(View(result, "result")))
    return result


def _coil_sizes(view, frames, name):
    at = int(frames)
    if len(view.shape) < at + 1:
        raise SizeMismatchError(f"{name} has the shape {view.shape}: the axis of coils is missing")
    return math.prod(view.shape[:at]), view.shape[at], math.prod(view.shape[at + 1:])


# Whole reconstructions, which create their plans themselves.


def _reconstruction(trajectory, data, shape, coil_maps, weights, interrupt, options):
    """Returns trajectory and data as arrays, the geometry and the options of a whole reconstruction."""
    view = View(trajectory, "trajectory")
    precision, real, dtype = precision_of(view, "trajectory")
    samples, shape = view.shape[:-1], tuple(int(n) for n in shape)
    view.need("trajectory", real, samples + (len(shape),), None)
    if data is None:
        lead = ()
    else:
        data = View(data, "data").need("data", dtype, device=None)
        lead = data.shape[:len(data.shape) - len(samples)]
        if len(lead) > 2 or data.shape[len(lead):] != samples:
            raise SizeMismatchError(f"data has the shape {data.shape}: the samples {samples} are the last axes, and up to two "
                                    "axes of frames and coils precede them")
    frames, coils = (1,) * (2 - len(lead)) + lead
    geometry = Structure("recon_geometry", precision=precision, ndim=len(shape), dims=shape[::-1], samples=math.prod(samples),
                         coordinate_stride=len(shape), coordinates=columns(view, real, len(shape)), coils=coils, frames=frames)
    for name, value, kind, size in (("coil_maps", coil_maps, dtype, (coils, *shape)), ("weights", weights, real, samples)):
        if value is not None:
            geometry.set(name, _void(View(value, name).need(name, kind, size, None)))
            geometry.keep.append(value)
    geometry.keep.append(view)
    settings = Structure("recon_options", **options)
    interruption(settings, interrupt)
    images = lead[:-1] if coil_maps is not None else lead
    return view, data, geometry, settings, images + shape


def partial_fourier(trajectory, data, shape, *, coil_maps=None, weights=None, interrupt=True, plan=None, **options):
    """Returns (images, report) of partial Fourier data [frames, coils, *samples], by POCS or homodyne detection.

    Options are method, iterations and tolerance of recon_partial_fourier_options; `plan` is a dict of recon_options.
    """
    view, data, geometry, settings, size = _reconstruction(trajectory, data, shape, coil_maps, weights, interrupt, plan or {})
    own, report = Structure("recon_partial_fourier_options", **options), Structure("recon_partial_fourier_report")
    result = data.library.empty(size, data.dtype, None)
    call("recon_partial_fourier", geometry, settings, own, _void(data), _void(View(result, "result")), report)
    return result, report.values()


def propeller(trajectory, data, shape, *, coil_maps=None, interrupt=True, plan=None, corrected=False, **options):
    """Returns (images, report) of 2D PROPELLER data [frames, coils, *samples] without the motion between blades.

    Options are phase, lines, rotation, translation and weighting of recon_propeller_options; `plan` is a dict of
    recon_options. The report has motion [frames, blades, 6]: rotation in degrees, translation along x and y (the last
    and the first axis of the image), phase, correlation and weight. With `corrected` it also has trajectory, weights
    and kspace without motion, for librecon.Encoding; with several frames, each has its own.
    """
    view, data, geometry, settings, size = _reconstruction(trajectory, data, shape, coil_maps, None, interrupt, plan or {})
    own, report = Structure("recon_propeller_options", **options), Structure("recon_propeller_report")
    samples, frames = view.shape[:-1], geometry.pointer.frames
    lead = data.shape[:len(data.shape) - len(samples)]
    # The number of blades is known afterwards. Each has at least two samples.
    motion = np.zeros(6 * frames * max(1, math.prod(samples)))
    report.set("motion", motion)
    report.set("motion_capacity", motion.size)
    outputs = {}
    if corrected:
        several = lead[:1] if len(lead) == 2 else ()
        outputs = {"x": np.empty(several + samples, view.dtype), "y": np.empty(several + samples, view.dtype),
                   "weights": np.empty(several + samples, view.dtype), "kspace": np.empty(data.shape, data.dtype)}
        report.set("coordinates", [ffi.from_buffer(outputs["x"]), ffi.from_buffer(outputs["y"])])
        report.set("weights", outputs["weights"])
        report.set("kspace", outputs["kspace"])
    result = data.library.empty(size, data.dtype, None)
    call("recon_propeller", geometry, settings, own, _void(data), _void(View(result, "result")), report)
    found = report.values()
    del found.motion_capacity
    found.motion = motion[:6 * found.blades * frames].reshape(frames, found.blades, 6).copy()
    if corrected:
        found.trajectory = np.stack([outputs["y"], outputs["x"]], axis=-1)
        found.weights, found.kspace = outputs["weights"], outputs["kspace"]
    return result, found


def propeller_memory(trajectory, shape, *, coils=1, coil_maps=None, plan=None, **options) -> int:
    """Returns the estimated bytes of host memory that `propeller` takes at its peak."""
    _, _, geometry, settings, _ = _reconstruction(trajectory, None, shape, coil_maps, None, False, plan or {})
    geometry.set("coils", coils)
    host_bytes = ffi.new("uint64_t *")
    call("recon_propeller_memory", geometry, settings, Structure("recon_propeller_options", **options), host_bytes)
    return host_bytes[0]


def plan_memory(trajectory, shape, *, coils=1, coil_maps=None, weights=None, calibration=0, **options) -> SimpleNamespace:
    """Returns the estimated bytes of an operator and its operations before it exists (recon_memory)."""
    _, _, geometry, settings, _ = _reconstruction(trajectory, None, shape, None, weights, False, options)
    geometry.set("coils", coils)
    if coil_maps is not None:
        geometry.set("coil_maps", coil_maps)
        geometry.set("coils", coil_maps.shape[0])
    memory = Structure("recon_memory", calibration=calibration)
    call("recon_plan_memory", geometry, settings, memory)
    return memory.values()


# The library.


def devices() -> list[SimpleNamespace]:
    """Returns the properties of the NVIDIA GPUs, [] without a driver."""
    found = []
    for index in range(lib.recon_device_count()):
        properties = Structure("recon_device_properties")
        call("recon_device_info", index, properties)
        found.append(properties.values())
    return found


def release_memory() -> None:
    """Returns to the system what the library keeps for the next operator: memory, and the contexts of GPUs."""
    lib.recon_release_memory()


def check_free_memory(count: int) -> None:
    """Raises OutOfHostMemoryError unless `count` bytes are free on this machine and in its control groups."""
    call("recon_check_free_memory", count)


_LOGGING = {lib.RECON_LOG_ERROR: logging.ERROR, lib.RECON_LOG_WARNING: logging.WARNING, lib.RECON_LOG_INFO: logging.INFO,
            lib.RECON_LOG_DEBUG: logging.DEBUG, lib.RECON_LOG_TRACE: logging.DEBUG}
_logger = logging.getLogger("librecon")


@ffi.callback("recon_log_callback")
def _log_line(message, data):
    _logger.log(_LOGGING.get(message.level, logging.INFO), "%s", _capi._text(message.text))


def log_to_logging(level: str = "info") -> None:
    """Sends log messages of `level` and above to logging.getLogger("librecon"). "off" ends it; the default is off.

    Levels are "error", "warning", "info", "debug" and "trace". Warnings about results are also Python warnings.
    """
    number = _capi.choice("recon_log_level", level, "level")
    call("recon_set_log_callback", _log_line if number else ffi.NULL, ffi.NULL, number)


# Threads of the library must not call Python after its end.
atexit.register(log_to_logging, "off")


__all__ = ["Encoding", "check_free_memory", "combine", "compression", "devices", "field_map", "log_to_logging", "metrics",
           "noise_covariance", "partial_fourier", "phase_difference", "plan_memory", "propeller", "propeller_memory",
           "release_memory", "resize", "virtual_coils", "whitening"]
