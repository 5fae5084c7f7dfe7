"""Magnetic resonance images from k-space samples on any trajectory, on CPUs and NVIDIA GPUs.

A thin layer over the C API of librecon. Coordinates are in cycles per voxel, from -0.5 to 0.5; element i of the last
axis of a trajectory belongs to axis i of the image. Arrays are in C order: images [coils, *shape], k-space data
[coils, *samples].

    import librecon

    k = librecon.trajectory.radial2d(48, 384, "golden")
    y = librecon.phantom.kspace(k, (192, 192), coils=8)
    E = librecon.Encoding(k, (192, 192), coils=8)
    E = librecon.Encoding(k, coil_maps=E.coil_maps(y))
    x, report = E.cg(y)
"""

from . import capi, phantom, trajectory
from ._capi import ERRORS, WARNINGS, LibreconError, LibreconWarning, version
from ._encoding import Adjoint, Encoding
from ._functions import (check_free_memory, combine, compression, devices, field_map, log_to_logging, metrics,
                         noise_covariance, partial_fourier, phase_difference, plan_memory, propeller, propeller_memory,
                         release_memory, resize, virtual_coils, whitening)
from ._scan import Scan, ScanImage, acquisition_use

__version__ = version()
# One class per status and warning of recon.h: InvalidArgumentError, NotFiniteError, ..., ExtentWarning, ...
ERRORS_BY_STATUS = dict(ERRORS)
_CLASSES = {kind.__name__: kind for kind in [*ERRORS.values(), *WARNINGS.values()]}
globals().update(_CLASSES)

__all__ = ["Adjoint", "Encoding", "ERRORS_BY_STATUS", "LibreconError", "LibreconWarning", "Scan", "ScanImage", "acquisition_use", "capi",
           "check_free_memory", "combine", "compression", "devices", "field_map", "log_to_logging", "metrics",
           "noise_covariance", "partial_fourier", "phantom", "phase_difference", "plan_memory", "propeller",
           "propeller_memory", "release_memory", "resize", "trajectory", "version", "virtual_coils", "whitening", *_CLASSES]
