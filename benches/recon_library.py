"""librecon in this process: cffi reads its header, so that recon can take turns with the Python peers.

Arrays are numpy's, in C order with x last: an image of dims (nx, ny, nz) has shape (nz, ny, nx). So x is fastest in
memory, as recon expects.
"""

import re
import time

import cffi
import numpy as np

REAL = {np.dtype(np.float32): 0, np.dtype(np.float64): 1}
EXACT, NUFFT = 1, 2
CPU, CUDA = 1, 2
COILS_UNIFORM, COILS_RING = 0, 1
KAISER_BESSEL, MINIMAX = 0, 3
RAM_LAK = 0
PRIOR_IDENTITY, PRIOR_DIFFERENCES, PRIOR_ANATOMICAL = 0, 1, 2


def declarations(header):
    """Returns the header without comments, preprocessor lines and the parts for C++ only, because cffi reads C only."""
    text = re.sub(r"//.*", "", header).replace("RECON_MUST_USE\n", "\n")
    text = re.sub(r"#ifdef __cplusplus.*?#endif", "", text, flags=re.DOTALL)
    return re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)


class Library:
    """The functions of recon.h. Every status other than RECON_OK becomes an exception."""

    def __init__(self, path, header):
        self.ffi = cffi.FFI()
        self.ffi.cdef(declarations(header.read_text()))
        self.functions = self.ffi.dlopen(str(path))

    def call(self, function, *arguments):
        if getattr(self.functions, function)(*arguments) != 0:
            self.fail(function)

    def fail(self, function):
        """Raises the last error of this thread."""
        message = self.ffi.string(self.functions.recon_last_error_message())
        raise RuntimeError(f"{function}: {message.decode()}")

    def has_field(self, structure, name):
        """Returns whether a structure of the header has a field."""
        return any(field == name for field, _ in self.ffi.typeof(structure).fields)

    def version(self):
        return self.ffi.string(self.functions.recon_version()).decode()

    def address(self, array):
        """Returns the address of a numpy array, or of a CuPy array on the GPU."""
        assert array.flags.c_contiguous
        data = array.data.ptr if hasattr(array.data, "ptr") else array.ctypes.data
        return self.ffi.cast("void *", data)

    def structure(self, name):
        """Returns a structure with its defaults."""
        made = self.ffi.new(f"{name} *")
        self.call(f"{name}_init", made, self.ffi.sizeof(name))
        return made

    def geometry(self, dims, k, coils=1):
        geometry = self.structure("recon_geometry")
        geometry.precision = REAL[k[0].dtype]
        geometry.ndim = len(dims)
        geometry.samples = k[0].size
        geometry.coils = coils
        for axis, size in enumerate(dims):
            geometry.dims[axis] = size
            geometry.coordinates[axis] = self.address(k[axis])
        return geometry

    def set_voxels(self, geometry, voxels):
        """Sets a list of voxels instead of the grid."""
        geometry.voxel_count = voxels[0].size
        for axis, positions in enumerate(voxels):
            geometry.voxels[axis] = self.address(positions)

    def trajectory(self, name, ndim, *sizes):
        """Sets coordinates in cycles per voxel, one float32 array for each axis.

        The last of `sizes` may be options of the generator.
        """
        counted = sizes[: {"radial2d": 2, "radial3d": 2, "propeller_scan": 3}.get(name)]
        k = [np.zeros(int(np.prod(counted)), np.float32) for _ in range(ndim)]
        self.call(f"recon_trajectory_{name}", REAL[k[0].dtype], *sizes, *map(self.address, k))
        return k

    def phantom(self, dims, k, coils):
        """Returns k-space of the Shepp-Logan phantom, measured by coils around it, and the coil sensitivity maps.

        For one coil the sensitivity is uniform, and the maps are None.
        """
        geometry = self.geometry(dims, k, coils)
        kspace = np.zeros((coils, k[0].size), np.complex64)
        model = COILS_RING if coils > 1 else COILS_UNIFORM
        self.call("recon_phantom_kspace", geometry, self.ffi.NULL, 0, model, 0, self.address(kspace))
        if coils == 1:
            return kspace, None
        maps = np.zeros((coils, *dims[::-1]), np.complex64)
        self.call("recon_phantom_coil_maps", geometry, self.address(maps))
        return kspace, maps

    def phantom_image(self, dims):
        """Returns the Shepp-Logan phantom, each voxel the mean of 4 points along each axis."""
        geometry = self.structure("recon_geometry")
        geometry.ndim = len(dims)
        for axis, size in enumerate(dims):
            geometry.dims[axis] = size
        image = np.zeros(dims[::-1], np.complex64)
        self.call("recon_phantom_image", geometry, self.ffi.NULL, 0, 4, self.address(image))
        return image


class Plan:
    """A plan for one geometry. It is freed together with this object."""

    def __init__(self, library, dims, k, threads=0, tolerance=0.0, exact=False, coils=1, maps=None, voxels=None,
                 weights=None, gpus=None, stream=None, oversampling=0.0, window=MINIMAX, width=0,
                 geometry_on_device=False, field_map=None, times=None):  # fmt: skip
        """`gpus`: indices of the GPUs for a plan on GPUs. `stream`: the address of a stream of the GPU.

        With a `stream` the arrays of transforms are on the GPU too, and with `geometry_on_device` those of the geometry
        also. A `width` or an `oversampling` of 0 is chosen by the library. `field_map`: Hz, and `times` of the samples.
        """
        self.library = library
        geometry = library.geometry(dims, k, coils)
        if maps is not None:
            geometry.coil_maps = library.address(maps)
        if voxels is not None:
            library.set_voxels(geometry, voxels)
        if weights is not None:
            geometry.weights = library.address(weights)
        if field_map is not None:
            geometry.field_map = library.address(field_map)
            geometry.times = library.address(times)
        options = library.structure("recon_options")
        options.device = CPU
        if gpus is not None:
            indices = library.ffi.new("uint32_t[]", gpus)
            options.device, options.device_count, options.device_indices = CUDA, len(gpus), indices
        if stream is not None:
            options.pointers_on_device = options.use_stream = 1
            options.stream = library.ffi.cast("void *", stream)
        if geometry_on_device:
            options.geometry_on_device = 1
        options.method = EXACT if exact else NUFFT
        options.tolerance = tolerance
        options.threads = threads
        options.oversampling = oversampling
        options.window, options.width = window, width
        handle = library.ffi.new("recon_plan **")
        started = time.perf_counter()
        library.call("recon_plan_create", geometry, options, handle)
        self.seconds = time.perf_counter() - started
        self.handle = library.ffi.gc(handle[0], library.functions.recon_plan_destroy)
        # Properties that a geometry for set_trajectory must have again.
        self.made_of = dict(dims=dims, coils=coils, voxels=voxels)

    def destroy(self):
        """Frees the plan now."""
        self.library.ffi.release(self.handle)

    def set_trajectory(self, k, weights=None, field_map=None, times=None):
        """Sets a different trajectory, without weights unless they are given. Coil maps remain.

        A plan with a field map requires it again, with the times of the samples.
        """
        geometry = self.library.geometry(self.made_of["dims"], k, self.made_of["coils"])
        if self.made_of["voxels"] is not None:
            self.library.set_voxels(geometry, self.made_of["voxels"])
        if weights is not None:
            geometry.weights = self.library.address(weights)
        if field_map is not None:
            geometry.field_map, geometry.times = self.library.address(field_map), self.library.address(times)
        self.library.call("recon_plan_set_trajectory", self.handle, geometry)

    def info(self):
        properties = self.library.structure("recon_plan_properties")
        self.library.call("recon_plan_info", self.handle, properties)
        return properties

    def simd(self):
        return self.library.ffi.string(self.info().simd).decode()

    def adjoint(self, kspace, image):
        self.library.call("recon_fhd", self.handle, self.library.address(kspace), self.library.address(image))

    def forward(self, image, kspace):
        self.library.call("recon_forward", self.handle, self.library.address(image), self.library.address(kspace))

    def grid(self, kspace, image):
        self.library.call("recon_grid", self.handle, self.library.address(kspace), self.library.address(image))

    def grid_kspace(self, kspace, grid):
        """Fills gridded k-space. Both arrays are in the host's memory."""
        address = self.library.address
        self.library.call("recon_grid_kspace", self.handle, address(kspace), address(grid))

    def window_correction(self, axis, size):
        """Returns the factors by which an image of `size` voxels is multiplied along an axis after the FFT."""
        factors = np.full(size, np.nan)
        doubles = self.library.ffi.cast("double *", self.library.address(factors))
        self.library.call("recon_window_correction", self.handle, axis, doubles)
        return factors

    def fbp(self, kspace, image, filter=RAM_LAK):
        address = self.library.address
        self.library.call("recon_fbp", self.handle, filter, address(kspace), address(image))

    def normal(self, x, y):
        self.library.call("recon_normal", self.handle, self.library.address(x), self.library.address(y))

    def cg(self, kspace, image, iterations, reference=None, **others):
        """Solves by conjugate gradients. `others` are members of recon_cg_options (lambda_ is lambda).

        `reference` is an array in the host's memory.
        """
        options = self.library.structure("recon_cg_options")
        options.iterations = iterations
        for name, value in others.items():
            setattr(options, name.rstrip("_"), value)
        if reference is not None:
            options.reference = self.library.address(reference)
        report = self.library.structure("recon_cg_report")
        address = self.library.address
        self.library.call("recon_cg", self.handle, address(kspace), address(image), options, report)
        return {stage: getattr(report, f"{stage}_seconds") for stage in ("q", "adjoint", "iteration")}
