"""The encoding operator of an MR scan, over a plan of the C API."""

from __future__ import annotations

import math
import os
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np

from . import _capi
from ._arrays import View, place
from ._capi import InvalidArgumentError, SizeMismatchError, Structure, ffi, lib

# Names of this module are found faster than attributes of others.
_ndarray, _empty, _from_buffer = np.ndarray, np.empty, ffi.from_buffer

_PLAN_OPTIONS = dict(ffi.typeof("recon_options").fields)
_OWN_OPTIONS = {"struct_size", "device_count", "use_stream", "interrupt_data", "geometry_on_device"}


def precision_of(view: View, name: str):
    """Returns the recon_precision, the real dtype and the complex dtype of a real array."""
    if view.dtype == np.float32:
        return lib.RECON_F32, np.dtype(np.float32), np.dtype(np.complex64)
    if view.dtype == np.float64:
        return lib.RECON_F64, np.dtype(np.float64), np.dtype(np.complex128)
    raise InvalidArgumentError(f"{name} has the dtype {view.dtype}: pass float32 for single precision, or float64 for "
                               "double precision")


def columns(view: View, real, ndim: int):
    """Returns the addresses of the last axis' elements, the C API's x first, which is the last axis of an image."""
    base = ffi.cast("char *", view.address)
    return [ffi.cast("void *", base + (ndim - 1 - axis) * real.itemsize) for axis in range(ndim)]


def interruption(options: Structure, interrupt) -> None:
    """Sets the interrupt callback of options: True handles Ctrl-C, a function stops the call when it returns True."""
    if interrupt is True:
        options.pointer.interrupt = _capi.poll_signals
    elif callable(interrupt):
        def poll(data):
            return 1 if interrupt() else 0
        callback = ffi.callback("recon_interrupt_callback", poll, error=1, onerror=_capi.callback_failed)
        options.pointer.interrupt = callback
        options.keep.append(callback)
    elif interrupt not in (False, None):
        raise TypeError(f"interrupt is {interrupt!r}: pass True, False, or a function without arguments")


class Encoding:
    """The encoding operator E of an MR scan: coil sensitivities and the Fourier transform at a trajectory.

    Parameters
    ----------
    trajectory
        Real array [..., ndim], ndim 2 or 3, in cycles per voxel, from -0.5 to 0.5. Element i of the last axis belongs
        to axis i of the image. float32 selects single precision (complex64), float64 double precision (complex128).
    shape
        Voxels of the image along its axes. With coil_maps it may be left out.
    coils, frames
        Number of coils and of frames that are transformed together. None: arrays have no such axis.
    coil_maps
        Complex [coils, *shape]: all coils have one image. Without maps, each coil has its own image.
    weights
        Density weights: real, of the samples' shape, or "pipe-menon", "ramp" or "jackson", which computes them.
    field_map, decay_map, times
        Off-resonance in Hz and decay rates in 1/s, real [*shape]; times of the samples in seconds, of the samples' shape.
    voxels
        Real [count, ndim]: positions of voxels instead of a grid, in voxels from its origin. Images are then [count].
    basis
        "point" or "box", the shape of a voxel.
    stream
        Stream of the GPU for the plan's work (torch.cuda.Stream, cupy.cuda.Stream, or its address). Default: the current
        stream of the trajectory's library, if the trajectory is on a GPU.
    interrupt
        True (default): Ctrl-C ends a running call with KeyboardInterrupt. False: it does not. A function: the call ends
        with CancelledError when it returns True, or with its exception.
    options
        Fields of recon_options by name: method, normal, window, device, device_indices, threads, pointers_on_device,
        tolerance, memory_limit, simd, oversampling, width.

    Images are [frames, coils, *shape] and k-space data [frames, coils, *samples], in C order; axes that were not asked
    for are left out, and leading axes are transformed one by one. Arrays are used in place, and results have the kind
    of the argument: NumPy, CuPy or PyTorch.

    Example:

        E = librecon.Encoding(k, (192, 192))
        y = E @ x               # k-space data of the image x
        x = E.H @ y             # the adjoint, without weights and without scaling
        z = E.normal(x)         # E^H W E x
    """

    # NumPy's arrays leave E.__rmatmul__ to us: x @ E is an error instead of an object array.
    __array_ufunc__ = None

    def __init__(self, trajectory: Any, shape=None, *, coils: int | None = None, frames: int | None = None,
                 coil_maps: Any = None, weights: Any = None, field_map: Any = None, decay_map: Any = None, times: Any = None,
                 voxels: Any = None, basis: str = "point", stream: Any = None, interrupt: Any = True, **options):
        view = View(trajectory, "trajectory")
        self._precision, self.real_dtype, self.dtype = precision_of(view, "trajectory")
        self.ndim = view.shape[-1] if view.shape else 0
        if self.ndim not in (2, 3) or len(view.shape) < 2:
            raise SizeMismatchError(f"trajectory has the shape {view.shape}: its last axis has 2 or 3 coordinates, and the "
                                    "others are the samples")
        maps = None if coil_maps is None else View(coil_maps, "coil_maps")
        if shape is None:
            if maps is None:
                raise TypeError("shape is missing: pass the voxels of the image along its axes, or coil_maps")
            shape = maps.shape[1:]
        self._dims = tuple(int(n) for n in shape)
        if len(self._dims) != self.ndim:
            raise SizeMismatchError(f"shape is {self._dims}, and the trajectory has {self.ndim} coordinates: they belong to "
                                    "the axes of the image")
        if voxels is not None:
            voxels = View(voxels, "voxels").need("voxels", self.real_dtype, device=None)
            if len(voxels.shape) != 2 or voxels.shape[1] != self.ndim:
                raise SizeMismatchError(f"voxels has the shape {voxels.shape}, and (count, {self.ndim}) is needed")
        self.image_shape = self._dims if voxels is None else (voxels.shape[0],)
        if maps is not None:
            if coils is not None and maps.shape[:1] != (coils,):
                raise SizeMismatchError(f"coil_maps has the shape {maps.shape}, and coils is {coils}: leave coils out")
            coils = maps.shape[0] if maps.shape else 0
        self.coils, self.frames, self.combines = coils, frames, maps is not None
        self.sample_shape: tuple = ()
        self._forks = _capi.forks

        self.device = self._gpu_of(view, options)
        self._geometry_device = view.device
        self._arrays = SimpleNamespace(field_map=field_map, decay_map=decay_map, voxels=voxels, basis=basis)
        geometry, computed = self._geometry(view, maps, weights, field_map, decay_map, times)
        settings = self._settings(view, stream, interrupt, options)
        view.library.before(self._stream, self._geometry_device)
        plan = ffi.new("recon_plan **")
        status = lib.recon_plan_create(geometry.pointer, settings.pointer, plan)
        if status:
            _capi.fail(status)
        # The plan outlives every running call: a call holds a reference. Callbacks must outlive the plan.
        self._plan = ffi.gc(plan[0], lambda plan, keep=(settings.keep, self._stream_object): lib.recon_plan_destroy(plan))
        self._set_shapes(view.shape[:-1])
        if computed:
            self.set_weights(computed)
        _capi.warn_plan(self._plan)

    # Construction.

    def _gpu_of(self, view, options):
        """Returns the GPU whose memory has the images and data, or None for the host."""
        asked = options.get("pointers_on_device")
        if view.device is not None:
            if asked is not None and not asked:
                raise InvalidArgumentError("pointers_on_device is False, and trajectory is on a GPU: leave it out, or pass "
                                           "the trajectory in the host's memory")
            options["pointers_on_device"] = True
            options.setdefault("device_indices", [view.device])
            return view.device
        return (options.get("device_indices") or [0])[0] if asked else None

    def _settings(self, view, stream, interrupt, options) -> Structure:
        settings = Structure("recon_options")
        for name, value in options.items():
            if name not in _PLAN_OPTIONS or name in _OWN_OPTIONS:
                known = ", ".join(n for n in _PLAN_OPTIONS if n not in _OWN_OPTIONS | {"stream", "interrupt"})
                raise TypeError(f"unknown option {name!r}: Encoding has coils, frames, coil_maps, weights, field_map, "
                                f"decay_map, times, voxels, basis, stream, interrupt, {known}")
            if name == "device_indices":
                settings.set("device_count", len(value))
            settings.set(name, list(value) if name == "device_indices" else value)
        settings.pointer.geometry_on_device = view.device is not None
        if self.device is not None and "device" not in options:
            settings.set("device", "cuda")
        interruption(settings, interrupt)
        self._stream, self._stream_object = None, stream
        if stream is None and view.device is not None:
            self._stream_object, self._stream = view.library.current_stream(view.device)
        elif stream is not None:
            self._stream = int(getattr(stream, "cuda_stream", getattr(stream, "ptr", stream)))
        if self._stream is not None:
            settings.pointer.use_stream = 1
            settings.pointer.stream = ffi.cast("void *", self._stream)
        return settings

    def _geometry(self, view, maps, weights, field_map, decay_map, times):
        """Returns the geometry, and the method of density weights that are to be computed."""
        samples = view.shape[:-1]
        geometry = Structure("recon_geometry", precision=self._precision, ndim=self.ndim, basis=self._arrays.basis,
                             dims=self._dims[::-1], samples=math.prod(samples), coordinate_stride=self.ndim,
                             coordinates=columns(view, self.real_dtype, self.ndim))
        # None is one coil or frame, without an axis. 0 is an error of the library.
        geometry.pointer.coils = _count(self.coils, "coils")
        geometry.pointer.frames = _count(self.frames, "frames")
        geometry.keep.append(view)
        if self._arrays.voxels is not None:
            voxels = self._arrays.voxels
            geometry.set("voxels", columns(voxels, self.real_dtype, self.ndim))
            geometry.set("voxel_stride", self.ndim)
            geometry.set("voxel_count", voxels.shape[0])
        if maps is not None:
            shape = (self.coils, *self.image_shape)
            self._use(geometry, "coil_maps", maps.need("coil_maps", self.dtype, shape, self._geometry_device))
        computed = weights if isinstance(weights, str) else None
        if weights is not None and not computed:
            found = View(weights, "weights").need("weights", self.real_dtype, samples, self._geometry_device)
            self._use(geometry, "weights", found)
        for name, value, shape in (("field_map", field_map, self.image_shape), ("decay_map", decay_map, self.image_shape),
                                   ("times", times, samples)):
            if value is not None:
                self._use(geometry, name, View(value, name).need(name, self.real_dtype, shape, None))
        return geometry, computed

    @staticmethod
    def _use(geometry, field, view):
        setattr(geometry.pointer, field, view.address)
        geometry.keep.append(view)

    def _set_shapes(self, samples) -> None:
        self.sample_shape = tuple(samples)
        frames = () if self.frames is None else (self.frames,)
        coils = () if self.coils is None else (self.coils,)
        self.kspace_shape = frames + coils + self.sample_shape
        self.full_image_shape = frames + (() if self.combines else coils) + self.image_shape
        self.shape = (math.prod(self.kspace_shape), math.prod(self.full_image_shape))

    # Transforms.

    def _alive(self):
        """Returns the plan, which no other thread destroys while the caller has it."""
        plan = self._plan
        if plan is None:
            raise InvalidArgumentError("the operator is closed: make a new one")
        if self._forks != _capi.forks:
            raise InvalidArgumentError("the operator was made before a fork, and its threads are in the parent process: make a "
                                       "new one in this process")
        return plan

    def _apply(self, function, x, source, target, name, out=None):
        plan = self._plan
        if plan is None or self._forks != _capi.forks:
            self._alive()
        # A small call takes 10 us, in which each step is noticed: arrays of NumPy as they should be have a short way.
        dtype = self.dtype
        if type(x) is _ndarray and x.dtype == dtype and x.shape == source and x.flags.carray and self.device is None:
            if out is None:
                out = _empty(target, dtype)
            elif not (type(out) is _ndarray and out.dtype == dtype and out.shape == target and out.flags.carray):
                return self._apply_any(function, plan, x, source, target, name, out)
            status = function(plan, _from_buffer(x), _from_buffer(out))
            if status:
                _capi.fail(status)
            return out
        return self._apply_any(function, plan, x, source, target, name, out)

    def _apply_any(self, function, plan, x, source, target, name, out):
        """Transforms any kind of array, with leading axes one by one."""
        x = View(x, name).need(name, self.dtype, device=self.device)
        lead = x.shape[:len(x.shape) - len(source)]
        if len(x.shape) < len(source) or x.shape[len(lead):] != source:
            x.need(name, self.dtype, source)
        if out is None:
            out = x.library.empty(lead + target, self.dtype, x.device)
        y = View(out, "out", writable=True).need("out", self.dtype, lead + target, self.device)
        x.library.before(self._stream, self.device)
        steps = [math.prod(shape) * self.dtype.itemsize for shape in (source, target)]
        start, end = ffi.cast("char *", x.address), ffi.cast("char *", y.address)
        try:
            for i in range(math.prod(lead)):
                status = function(plan, start + i * steps[0], end + i * steps[1])
                if status:
                    _capi.fail(status)
        finally:
            x.library.after(self._stream, self.device)
        return out

    def _differentiable(self, which: str, x):
        """Returns the result for a tensor of PyTorch with a gradient, otherwise NotImplemented."""
        torch = sys.modules.get("torch")
        if torch is None or not isinstance(x, torch.Tensor) or not (x.requires_grad and torch.is_grad_enabled()):
            return NotImplemented
        from . import _torch

        return _torch.apply(self, which, x)

    def forward(self, x, out=None):
        """Returns E x: k-space data of the images x. With `out`, writes them there. E @ x is the same."""
        if type(x) is not _ndarray and out is None and (y := self._differentiable("forward", x)) is not NotImplemented:
            return y
        return self._apply(lib.recon_forward, x, self.full_image_shape, self.kspace_shape, "x", out)

    def adjoint(self, y, out=None):
        """Returns E^H y, without weights and without scaling. With `out`, writes it there. E.H @ y is the same."""
        if type(y) is not _ndarray and out is None and (x := self._differentiable("adjoint", y)) is not NotImplemented:
            return x
        return self._apply(lib.recon_fhd, y, self.kspace_shape, self.full_image_shape, "y", out)

    def normal(self, x, out=None):
        """Returns E^H W E x, by a convolution if that is faster than two transforms."""
        if type(x) is not _ndarray and out is None and (y := self._differentiable("normal", x)) is not NotImplemented:
            return y
        return self._apply(lib.recon_normal, x, self.full_image_shape, self.full_image_shape, "x", out)

    def weighted_adjoint(self, y, out=None):
        """Returns E^H W y, the right-hand side of the system that `cg` solves."""
        return self._apply(lib.recon_weighted_fhd, y, self.kspace_shape, self.full_image_shape, "y", out)

    def grid(self, y, out=None):
        """Returns the gridding reconstruction: the adjoint of density-compensated data, at the scale of the object."""
        return self._apply(lib.recon_grid, y, self.kspace_shape, self.full_image_shape, "y", out)

    def fbp(self, y, filter="ram-lak", out=None):
        """Returns the filtered backprojection of 2D radial data. `filter` is a word of recon_filter."""
        number = _capi.choice("recon_filter", filter, "filter")

        def backproject(plan, kspace, image):
            return lib.recon_fbp(plan, number, kspace, image)
        return self._apply(backproject, y, self.kspace_shape, self.full_image_shape, "y", out)

    def __matmul__(self, x):
        return self.forward(x)

    def __rmatmul__(self, x):
        raise TypeError("an operator is applied to an array on its right: E @ x, or E.H @ y")

    @property
    def H(self) -> Adjoint:
        """The adjoint operator: E.H @ y is E^H y."""
        return Adjoint(self)

    # SciPy's solvers take the operator as a matrix: scipy.sparse.linalg.aslinearoperator(E), lsqr(E, y.ravel()).

    def matvec(self, x):
        """Returns E x as a vector, for a vector x."""
        return self.forward(np.reshape(x, self.full_image_shape)).reshape(-1)

    def rmatvec(self, y):
        """Returns E^H y as a vector, for a vector y."""
        return self.adjoint(np.reshape(y, self.kspace_shape)).reshape(-1)

    # Reconstruction.

    def cg(self, y, *, progress=None, out=None, **options):
        """Solves (E^H W E + lambda R^H R) x = E^H W y by conjugate gradients, and returns (x, report).

        Options are the fields of recon_cg_options: iterations (12), tolerance, lambda_, lambda_unit, prior, reference,
        edge, initial, noise_level. prior may be a sparse matrix of SciPy, whose indices are converted. `progress` is a
        function of one argument with the fields of recon_progress; it ends the call by an exception, or by returning
        True. The report has the fields of recon_cg_report, and residuals [images, iterations + 1].
        """
        plan = self._alive()
        data = View(y, "y").need("y", self.dtype, self.kspace_shape, self.device)
        settings, report = self._cg_options(options), Structure("recon_cg_report")
        if progress is not None:
            settings.set("progress", _progress_callback(progress))
        images = math.prod(self.full_image_shape) // math.prod(self.image_shape)
        residuals = np.full((images, settings.pointer.iterations + 1), np.nan)
        report.set("residuals", residuals)
        report.set("residual_capacity", residuals.size)
        if out is None:
            out = data.library.empty(self.full_image_shape, self.dtype, data.device)
        image = View(out, "out", writable=True).need("out", self.dtype, self.full_image_shape, self.device)
        data.library.before(self._stream, self.device)
        status = lib.recon_cg(plan, data.address, image.address, settings.pointer, report.pointer)
        data.library.after(self._stream, self.device)
        if status:
            _capi.fail(status)
        _capi.warn_last()
        found = report.values()
        found.residuals = residuals
        del found.residual_capacity
        return out, found

    def _cg_options(self, options) -> Structure:
        settings = Structure("recon_cg_options")
        for name, value in options.items():
            if name == "prior" and hasattr(value, "tocsr"):
                matrix = value.tocsr()
                settings.set("prior", "matrix")
                settings.set("matrix_rows", matrix.shape[0])
                settings.set("matrix_starts", matrix.indptr.astype(np.uint64))
                settings.set("matrix_columns", matrix.indices.astype(np.uint64))
                settings.set("matrix_values", np.ascontiguousarray(matrix.data, dtype=self.dtype))
                if matrix.shape[1] != math.prod(self.image_shape):
                    raise SizeMismatchError(f"prior has {matrix.shape[1]} columns, and the image {math.prod(self.image_shape)} "
                                            "voxels: a row has one column per voxel, in C order")
            elif name == "reference":
                settings.set(name, View(value, name).need(name, self.real_dtype, self.image_shape, None).address)
                settings.keep.append(value)
            elif name == "initial":
                initial = View(value, name).need(name, self.dtype, self.full_image_shape, self.device)
                settings.set(name, ffi.cast("void *", initial.address))
                settings.keep.append(initial)
            elif name in ("progress", "user_data"):
                raise TypeError(f"unknown option {name!r}")
            else:
                settings.set(name, value)
        return settings

    def density(self, method="pipe-menon", iterations=0, tolerance=0.0) -> np.ndarray:
        """Returns density weights of the samples in the host's memory. `method` is a word of recon_density_method."""
        weights = np.empty(self.sample_shape, self.real_dtype)
        _capi.call("recon_density", self._alive(), method, iterations, tolerance, weights)
        return weights

    def coil_maps(self, y, calibration=0):
        """Estimates coil maps [coils, *shape] from the centre of the data y, in the host's memory."""
        data = View(y, "y").need("y", self.dtype, self.kspace_shape, None)
        maps = data.library.empty((self.coils or 1, *self.image_shape), self.dtype, None)
        view = View(maps, "maps")
        _capi.call("recon_coil_maps", self._alive(), _void(data), calibration, _void(view))
        return maps

    def grid_kspace(self, y) -> np.ndarray:
        """Returns the gridded k-space of the data y, [frames, coils, *grid], see recon_grid_kspace."""
        data = View(y, "y").need("y", self.dtype, self.kspace_shape, None)
        grid = self.info().grid[:self.ndim][::-1]
        lead = self.kspace_shape[:len(self.kspace_shape) - len(self.sample_shape)]
        result = np.empty(lead + tuple(grid), self.dtype)
        _capi.call("recon_grid_kspace", self._alive(), _void(data), result)
        return result

    def window_correction(self, axis: int) -> np.ndarray:
        """Returns the factors along an axis by which an image is multiplied after the FFT of gridded k-space."""
        if not 0 <= axis < self.ndim:
            raise InvalidArgumentError(f"axis is {axis}: the image has the axes 0 to {self.ndim - 1}")
        factors = np.empty(self._dims[axis], np.float64)
        _capi.call("recon_window_correction", self._alive(), self.ndim - 1 - axis, factors)
        return factors

    # Q.

    def q(self) -> np.ndarray:
        """Returns Q, the kernel of E^H W E, on the doubled grid, with displacement 0 at index n of each axis."""
        grid = self._arrays.voxels is None
        kernel = np.empty([2 * n for n in self.image_shape] if grid else self.image_shape, self.dtype)
        _capi.call("recon_q", self._alive(), kernel)
        return kernel

    def save_q(self, path) -> None:
        """Saves Q in a file, for operators of the same geometry in other processes."""
        _capi.call("recon_plan_save_q", self._alive(), os.fspath(path))

    def load_q(self, path) -> None:
        """Loads Q from a file instead of computing it."""
        _capi.call("recon_plan_load_q", self._alive(), os.fspath(path))

    # Changes.

    def set_trajectory(self, trajectory, *, weights=None, coil_maps=None, field_map=None, decay_map=None, times=None) -> None:
        """Replaces the trajectory. Coil maps and field maps stay; an operator with weights needs new weights."""
        plan = self._alive()
        view = View(trajectory, "trajectory").need("trajectory", self.real_dtype, device=self._geometry_device)
        if len(view.shape) < 2 or view.shape[-1] != self.ndim:
            raise SizeMismatchError(f"trajectory has the shape {view.shape}, and the operator {self.ndim} coordinates per "
                                    "sample, which are the last axis")
        maps = None if coil_maps is None else View(coil_maps, "coil_maps")
        kept = self._arrays
        field_map = kept.field_map if field_map is None else field_map
        decay_map = kept.decay_map if decay_map is None else decay_map
        geometry, computed = self._geometry(view, maps, weights, field_map, decay_map, times)
        if computed:
            raise InvalidArgumentError(f"weights is {computed!r}: set the trajectory without weights, then call "
                                       f"E.set_weights({computed!r})")
        view.library.before(self._stream, self._geometry_device)
        status = lib.recon_plan_set_trajectory(plan, geometry.pointer)
        if status:
            _capi.fail(status)
        kept.field_map, kept.decay_map = field_map, decay_map
        self._set_shapes(view.shape[:-1])
        _capi.warn_plan(plan)

    def set_weights(self, weights) -> None:
        """Replaces the density weights: an array, "pipe-menon", "ramp" or "jackson", or None for 1."""
        plan = self._alive()
        if weights is None:
            return _capi.call("recon_plan_set_weights", plan, ffi.NULL, 0)
        if isinstance(weights, str):
            weights = self.density(weights)
            if self._geometry_device is not None:
                raise InvalidArgumentError("weights are computed in the host's memory, and the trajectory is on a GPU: copy "
                                           "the result of E.density there, and pass that to E.set_weights")
        view = View(weights, "weights").need("weights", self.real_dtype, self.sample_shape, self._geometry_device)
        view.library.before(self._stream, self._geometry_device)
        return _capi.call("recon_plan_set_weights", plan, _void(view), math.prod(view.shape))

    def set_coil_maps(self, coil_maps) -> None:
        """Replaces the coil maps of an operator that was made with coil maps."""
        view = View(coil_maps, "coil_maps")
        if self.combines:
            view.need("coil_maps", self.dtype, (self.coils, *self.image_shape), self._geometry_device)
        view.library.before(self._stream, self._geometry_device)
        _capi.call("recon_plan_set_coil_maps", self._alive(), _void(view), math.prod(view.shape))

    # Description and end.

    def info(self) -> SimpleNamespace:
        """Returns the properties of the plan: device, method, width, grid, error (recon_plan_properties)."""
        properties = Structure("recon_plan_properties")
        status = lib.recon_plan_info(self._alive(), properties.pointer)
        if status:
            _capi.fail(status)
        return properties.values()

    def close(self) -> None:
        """Frees the plan, when running calls have ended. The operator cannot be used any more."""
        self._plan = None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __reduce__(self):
        raise TypeError("an operator belongs to its process: make one in each process, from its trajectory and shape")

    def __repr__(self):
        if self._plan is None or self._forks != _capi.forks:
            return "<librecon.Encoding, closed>"
        info = self.info()
        return (f"<librecon.Encoding: image {self.full_image_shape}, k-space {self.kspace_shape}, {self.dtype}, {info.method} "
                f"(error {info.error:.1g}), on {info.device}, arrays {place(self.device)}>")


class Adjoint:
    """The adjoint of an Encoding: E.H @ y is E^H y, and E.H.H is E."""

    __array_ufunc__ = None

    def __init__(self, encoding: Encoding):
        self.H = encoding

    @property
    def shape(self):
        """Size of the operator as a matrix."""
        return self.H.shape[::-1]

    @property
    def dtype(self):
        """The complex dtype of the operator."""
        return self.H.dtype

    def __matmul__(self, y):
        return self.H.adjoint(y)

    def matvec(self, y):
        """Returns E^H y as a vector, for a vector y."""
        return self.H.rmatvec(y)

    def rmatvec(self, x):
        """Returns E x as a vector, for a vector x."""
        return self.H.matvec(x)

    def __repr__(self):
        return f"{self.H!r}.H"


def _void(view: View):
    return ffi.cast("void *", view.address)


def _count(value, name: str) -> int:
    if value is None:
        return 1
    if not isinstance(value, (int, np.integer)) or value < 0:
        raise InvalidArgumentError(f"{name} is {value!r}: pass a positive integer, or leave it out")
    return int(value)


def _progress_callback(progress):
    fields = [name for name in dict(ffi.typeof("recon_progress").fields) if name not in ("struct_size", "reserved")]

    def report(state, data):
        return 1 if progress(SimpleNamespace(**{name: getattr(state, name) for name in fields})) else 0
    return ffi.callback("recon_progress_callback", report, error=1, onerror=_capi.callback_failed)
