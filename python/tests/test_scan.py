"""Raw data in ISMRMRD's format: acquisitions become the data of images."""

import struct

import librecon
import numpy as np
import pytest

XML = """<?xml version="1.0"?>
<ismrmrdHeader xmlns="http://www.ismrm.org/ISMRMRD"><experimentalConditions><H1resonanceFrequency_Hz>63500000
</H1resonanceFrequency_Hz></experimentalConditions><encoding><encodedSpace><matrixSize><x>32</x><y>24</y><z>1</z></matrixSize>
<fieldOfView_mm><x>320</x><y>240</y><z>5</z></fieldOfView_mm></encodedSpace><reconSpace><matrixSize><x>32</x><y>24</y><z>1</z>
</matrixSize><fieldOfView_mm><x>320</x><y>240</y><z>5</z></fieldOfView_mm></reconSpace><encodingLimits/>
<trajectory>radial</trajectory></encoding></ismrmrdHeader>"""


def header(number, samples, coils, dimensions=2):
    """Returns an acquisition header of ISMRMRD, 340 bytes."""
    head = bytearray(340)
    struct.pack_into("<H", head, 0, 1)
    struct.pack_into("<I", head, 14, number)
    struct.pack_into("<HHH", head, 34, samples, coils, coils)
    struct.pack_into("<H", head, 176, dimensions)
    struct.pack_into("<H", head, 172, samples // 2)
    struct.pack_into("<9f", head, 194, 1, 0, 0, 0, 1, 0, 0, 0, 1)
    return bytes(head)


def test_acquisitions_become_images():
    k = librecon.trajectory.radial2d(40, 64, dtype=np.float32)
    y = librecon.phantom.kspace(k, (24, 32), coils=3)
    scan = librecon.Scan(XML)
    for i in range(40):
        # A trajectory in ISMRMRD is [samples, (x, y)].
        scan.add(header(i, 64, 3), np.ascontiguousarray(k[i, :, ::-1]), np.ascontiguousarray(y[:, i]))
    scan.end()
    images = list(scan.images())
    assert len(images) == 1 and scan.acquisitions().image == 40
    image = images[0]
    assert image.shape == (24, 32) and image.properties.shots == 40 and image.calibration() is None
    assert image.kspace.shape == (3, 40 * 64) and (image.kspace == y.reshape(3, -1)).all()
    assert np.allclose(image.trajectory, k.reshape(-1, 2), atol=1e-7)
    E = image.encoding()
    kspace = image.kspace
    del image, images, scan
    assert (E.grid(kspace) == librecon.Encoding(k.reshape(-1, 2), (24, 32), coils=3).grid(y.reshape(3, -1))).all()


def test_sizes_that_differ_from_the_header_are_errors():
    scan = librecon.Scan(XML)
    k, y = np.zeros((64, 2), np.float32), np.zeros((3, 64), np.complex64)
    for call, text in [(lambda: scan.add(header(0, 64, 3), k, y[:2]), "(2, 64)"), (lambda: scan.add(b"0", k, y), "1 bytes"),
                       (lambda: scan.add(header(0, 64, 3), k[:5], y), "(5, 2)"),
                       (lambda: scan.add(header(0, 64, 3), None, y), "trajectory"),
                       (lambda: scan.add(header(0, 64, 3), k, y.astype(complex)), "complex128"),
                       (lambda: librecon.Scan("<nothing/>"), ""), (lambda: librecon.Scan(XML, window="x"), "window")]:
        with pytest.raises((ValueError, TypeError)) as caught:
            call()
        assert text in str(caught.value), str(caught.value)
    assert librecon.acquisition_use(1 << 18) == "noise"


def test_acquisitions_of_the_package_ismrmrd():
    ismrmrd = pytest.importorskip("ismrmrd", reason="no ismrmrd")
    scan = librecon.Scan(XML)
    acquisition = ismrmrd.Acquisition.from_array(np.ones((3, 64), np.complex64), np.zeros((64, 2), np.float32))
    scan.add(acquisition)
    assert scan.acquisitions().image == 1
