"""Raw data: the acquisitions of a scanner in ISMRMRD's format, sorted into the data of images."""

from __future__ import annotations

import ctypes
import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from ._capi import SizeMismatchError, Structure, call, ffi, lib
from ._encoding import Encoding

HEADER_BYTES = 340
# Offsets in ISMRMRD's acquisition header: number_of_samples, active_channels, trajectory_dimensions.
_SIZES = {"samples": 34, "channels": 38, "trajectory_dimensions": 176}


class Scan:
    """The acquisitions of a measurement, which become the data of images.

    Parameters
    ----------
    xml
        The XML header of ISMRMRD, text or bytes.
    options
        Fields of recon_scan_options: complete, conjugate, whiten, header_trajectory, window and others.

    Example:

        data = ismrmrd.Dataset("scan.h5", create_if_needed=False)
        scan = librecon.Scan(data.read_xml_header())
        for i in range(data.number_of_acquisitions()):
            scan.add(data.read_acquisition(i))
        scan.end()
        for image in scan.images():
            x, report = image.encoding().cg(image.kspace)
    """

    def __init__(self, xml, **options):
        xml = xml.encode() if isinstance(xml, str) else bytes(xml)
        scan = ffi.new("recon_scan **")
        call("recon_scan_create", ffi.from_buffer(xml), len(xml), Structure("recon_scan_options", **options), scan)
        self._scan = ffi.gc(scan[0], lib.recon_scan_destroy)

    def add(self, acquisition: Any, trajectory=None, data=None) -> None:
        """Adds an acquisition: one of the package ismrmrd, or a header of 340 bytes with trajectory and data.

        trajectory is float32 [samples, dimensions] or None, data complex64 [coils, samples].
        """
        call("recon_scan_add", self._scan, *_parts(acquisition, trajectory, data))

    def whiten(self, acquisition: Any, data=None) -> None:
        """Whitens the data of an acquisition in place, with the noise that was added before."""
        header, _, data = _parts(acquisition, None, data, need_trajectory=False)
        call("recon_scan_whiten", self._scan, header, data)

    def complete(self) -> None:
        """Completes the images of the acquisitions so far. For real-time scans."""
        call("recon_scan_complete", self._scan)

    def end(self) -> None:
        """Ends the measurement: all images are complete."""
        call("recon_scan_end", self._scan)

    def images(self):
        """Yields the data of the images that are complete."""
        while True:
            image = ffi.new("recon_scan_image **")
            call("recon_scan_next", self._scan, image)
            if image[0] == ffi.NULL:
                return
            yield ScanImage(image[0])

    def acquisitions(self) -> SimpleNamespace:
        """Returns the numbers of acquisitions by their use."""
        counts = Structure("recon_scan_counts")
        call("recon_scan_acquisitions", self._scan, counts)
        return counts.values()


class ScanImage:
    """The data of one image, or of its calibration: kspace [coils, samples], trajectory [samples, ndim], properties.

    kspace, weights and times are arrays in the library's memory, which exists as long as they do.
    """

    def __init__(self, image):
        self._image = ffi.gc(image, lib.recon_scan_image_destroy)
        properties = Structure("recon_scan_properties")
        call("recon_scan_image_properties", self._image, properties)
        self.properties = properties.values()
        p, samples = properties.pointer, properties.pointer.samples
        self.shape = tuple(p.encoded_matrix)[:p.ndim][::-1]
        self.trajectory = np.stack([self._array(p.coordinates[i], np.float32, (samples,)) for i in reversed(range(p.ndim))],
                                   axis=-1)
        self.kspace = self._array(p.kspace, np.complex64, (p.coils, samples))
        self.weights = self._array(p.weights, np.float32, (samples,))
        self.times = self._array(p.times, np.float32, (samples,))
        self.samples_per_shot = self._array(p.samples_per_shot, np.uint64, (p.shots,))
        self.skipped_per_shot = self._array(p.skipped_per_shot, np.uint64, (p.shots,))
        self.first_acquisition = bytes(ffi.buffer(ffi.cast("char *", p.first_acquisition), HEADER_BYTES))
        self.last_acquisition = bytes(ffi.buffer(ffi.cast("char *", p.last_acquisition), HEADER_BYTES))

    def _array(self, address, dtype, shape):
        """Returns an array in the memory of the image, which stays until the array is deleted."""
        if address == ffi.NULL:
            return None
        owned = ffi.gc(ffi.cast("char *", address), lambda _, image=self._image: None)
        return np.frombuffer(ffi.buffer(owned, math.prod(shape) * np.dtype(dtype).itemsize), dtype).reshape(shape)

    def calibration(self) -> ScanImage | None:
        """Returns the calibration data of the image, or None if its slice has none."""
        image = ffi.new("recon_scan_image **")
        call("recon_scan_image_calibration", self._image, image)
        return None if image[0] == ffi.NULL else ScanImage(image[0])

    def encoding(self, **options) -> Encoding:
        """Returns the operator of the image, for kspace. Options are those of librecon.Encoding."""
        if options.get("coil_maps") is None:
            options.setdefault("coils", self.properties.coils)
        if self.weights is not None:
            options.setdefault("weights", self.weights)
        return Encoding(self.trajectory, self.shape, **options)


def _parts(acquisition, trajectory, data, need_trajectory=True):
    """Returns header, trajectory and data of an acquisition, whose sizes are those that the header states."""
    if hasattr(acquisition, "getHead"):
        header = bytes(acquisition.getHead())
        trajectory = acquisition.traj if trajectory is None else trajectory
        data = acquisition.data if data is None else data
    else:
        header = bytes(acquisition) if not isinstance(acquisition, ctypes.Structure) else bytes(memoryview(acquisition))
    if len(header) != HEADER_BYTES:
        raise SizeMismatchError(f"the header of the acquisition has {len(header)} bytes, and {HEADER_BYTES} are needed: it is "
                                "ISMRMRD's structure without padding")
    size = {name: int.from_bytes(header[at:at + 2], "little") for name, at in _SIZES.items()}
    data = np.asarray(data) if data is not None else np.empty((size["channels"], 0), np.complex64)
    wanted = (size["channels"], size["samples"])
    if data.shape != wanted or data.dtype != np.complex64:
        raise SizeMismatchError(f"the data of the acquisition are {data.dtype} {data.shape}, and its header states complex64 "
                                f"{wanted}: [coils, samples]")
    if not size["trajectory_dimensions"] or not need_trajectory:
        return header, None, data
    wanted = (size["samples"], size["trajectory_dimensions"])
    trajectory = np.asarray(trajectory if trajectory is not None else np.empty(0, np.float32))
    if trajectory.shape != wanted or trajectory.dtype != np.float32:
        raise SizeMismatchError(f"the trajectory of the acquisition is {trajectory.dtype} {trajectory.shape}, and its header "
                                f"states float32 {wanted}: [samples, dimensions]")
    return header, trajectory, data


def acquisition_use(flags: int) -> str:
    """Returns the use of an acquisition in words, from its ISMRMRD flags: "image", "noise", "navigation", ..."""
    return call("recon_acquisition_use_name", flags)
