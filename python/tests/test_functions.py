"""Functions without an operator, compared with NumPy."""

import librecon
import numpy as np
import pytest
from conftest import complex_array, error


def test_trajectories_follow_their_formulas():
    t = librecon.trajectory
    k = t.cartesian((4, 5, 6))
    axes = [(np.arange(n) - n // 2) / n for n in (4, 5, 6)]
    assert k.shape == (4, 5, 6, 3) and np.allclose(k, np.stack(np.meshgrid(*axes, indexing="ij"), -1))
    radius, angle = (np.arange(8) - 4) / 8, np.arange(5) * np.deg2rad(111.24611797)
    k = t.radial2d(5, 8, "golden", np.float32)
    assert k.dtype == np.float32 and k.shape == (5, 8, 2)
    # The last coordinate is x, along the last axis of an image.
    assert np.allclose(k[..., 1], np.outer(np.cos(angle), radius), atol=1e-6)
    assert np.allclose(k[..., 0], np.outer(np.sin(angle), radius), atol=1e-6)
    stack = t.stack_of_stars(5, 8, 3, "golden")
    assert stack.shape == (3, 5, 8, 3) and np.allclose(stack[..., 0], (np.arange(3) - 1)[:, None, None] / 3)
    assert np.allclose(stack[1][..., 1:], k, atol=1e-6)
    assert np.allclose(np.linalg.norm(t.radial3d(20, 8), axis=-1), np.abs(radius))
    assert np.allclose(np.linalg.norm(t.spiral(3, 50, 6.5), axis=-1), 0.5 * np.arange(50) / 50)
    assert t.rosette(3, 50, 5, 4).shape == (3, 50, 2) and t.lissajous(3, 500, 30, 31).shape == (3, 500, 2)
    assert t.propeller(4, 3, 16).shape == t.propeller(4, 3, 16, 8).shape == (4, 3, 16, 2)
    with pytest.raises(librecon.InvalidSizeError):
        t.radial2d(0, 8)
    with pytest.raises(ValueError, match="float16"):
        t.radial2d(5, 8, dtype=np.float16)


def test_phantoms_are_those_of_their_ellipses():
    # One ellipse of density 2, wide along x, the last axis, and its transform at the centre: the area in voxels.
    shapes = [[2, 0.25, 0, 0, 0.5, 0.25, 1, 0, 0, 0]]
    image = librecon.phantom.image((32, 64), shapes)
    assert abs(image.real.sum() - 2 * np.pi * (0.5 * 32) * (0.25 * 16)) < 2
    rows, columns = np.nonzero(image.real)
    assert abs((np.ptp(columns) + 1) - 32) <= 2 and abs((np.ptp(rows) + 1) - 8) <= 2
    assert abs(columns.mean() - (32 + 0.25 * 32)) < 1
    k = librecon.trajectory.cartesian((32, 64))
    y = librecon.phantom.kspace(k, (32, 64), shapes=shapes)
    assert abs(y[16, 32] - 2 * np.pi * 16 * 4) < 1e-9
    # The exact transform of an image of fine voxels.
    assert error(librecon.Encoding(k, (32, 64)) @ image, y) < 0.1
    coils = librecon.phantom.kspace(k, (32, 64), coils=3, shapes=shapes)
    assert coils.shape == (3, 32, 64)
    noisy = y.copy()
    deviation = librecon.phantom.add_noise(noisy, 10, seed=5)
    assert abs(np.sqrt(np.mean(np.abs(noisy - y) ** 2)) / deviation - 1) < 0.05
    assert abs(np.sqrt(np.mean(np.abs(y) ** 2)) / deviation - 10) < 1e-6
    with pytest.raises(ValueError, match="(2, 3)"):
        librecon.phantom.image((8, 8), np.ones((2, 3)))


def test_images_are_combined_resized_and_compared(rng):
    images = complex_array(rng, (2, 3, 6, 8))
    expected = np.sqrt((np.abs(images) ** 2).sum(1))
    assert error(librecon.combine(images, "rss", ndim=2), expected) < 1e-12
    assert librecon.combine(images[0], "adaptive").shape == (6, 8)
    larger = librecon.resize(images, (8, 8))
    assert larger.shape == (2, 3, 8, 8) and (larger[:, :, 1:7] == images).all() and not larger[:, :, 0].any()
    truth = complex_array(rng, (6, 8))
    mask = rng.uniform(size=(6, 8)) > 0.3
    quality = librecon.metrics(images[0, 0], truth, mask)
    difference = (images[0, 0] - truth)[mask]
    assert abs(quality.percent_error - 100 * np.linalg.norm(difference) / np.linalg.norm(truth[mask])) < 1e-9
    reference = complex_array(rng, (3, 6, 8))
    with pytest.warns(librecon.WrapsWarning):
        phase = librecon.phase_difference(images[0], reference, venc=100)
    assert error(phase, np.angle((images[0] * reference.conj()).sum(0)) * 100 / np.pi) < 1e-9
    for call in (lambda: librecon.combine(images[0, 0], ndim=2), lambda: librecon.resize(images, (8,), ndim=2),
                 lambda: librecon.metrics(images[0, 0], truth.T.copy()), lambda: librecon.combine(images.real)):
        with pytest.raises(ValueError):
            call()


def test_coils_are_whitened_and_compressed(rng):
    mixing = complex_array(rng, (4, 4))
    noise = mixing @ complex_array(rng, (4, 20000)) / np.sqrt(2)
    covariance = librecon.noise_covariance(noise)
    assert error(covariance, noise @ noise.conj().T / 20000) < 1e-12
    matrix = librecon.whitening(covariance)
    assert error(matrix @ covariance @ matrix.conj().T, np.eye(4)) < 1e-10
    data = complex_array(rng, (4, 7, 5))
    assert error(librecon.virtual_coils(matrix, data), np.tensordot(matrix, data, 1)) < 1e-12
    assert error(librecon.virtual_coils(matrix, data[None], frames=True)[0], np.tensordot(matrix, data, 1)) < 1e-12
    data = (complex_array(rng, (4, 2)) @ complex_array(rng, (2, 500))).astype(np.complex64)
    matrix, energies = librecon.compression(data, keep=2)
    assert matrix.shape == (2, 4) and abs(energies[:2].sum() - 1) < 1e-6
    assert abs(np.linalg.norm(librecon.virtual_coils(matrix, data)) / np.linalg.norm(data) - 1) < 1e-5
    matrix, _ = librecon.compression(data, energy=0.99)
    assert matrix.shape[1] == 4 and matrix.shape[0] <= 2
    with pytest.raises(ValueError):
        librecon.compression(data)
    with pytest.raises(ValueError, match="4 coils"):
        librecon.virtual_coils(np.eye(3), data)


def test_a_field_map_is_that_of_its_images():
    y, x = np.mgrid[:24, :32]
    field, decay = 30 * np.sin(y / 8) + x, np.full((24, 32), 20.0)
    times = [0.002, 0.004, 0.007]
    magnitude = ((y - 12) ** 2 + (x - 16) ** 2 < 100) * 1.0
    images = np.stack([magnitude * np.exp((-2j * np.pi * field - decay) * t) for t in times])
    found, rates, report = librecon.field_map(images, times, decay=True, smoothing=0)
    inside = magnitude > 0
    assert np.abs(found - field)[inside].max() < 1e-6 and np.abs(rates - decay)[inside].max() < 1e-6
    assert report.pieces == 1 and report.unresolved == 0
    with pytest.raises(ValueError, match="echoes"):
        librecon.field_map(images, times[:2])


def test_partial_fourier_and_propeller():
    k = librecon.trajectory.cartesian((32, 48))[8:]
    shapes = [[1, 0, 0, 0, 0.6, 0.7, 1, 0, 0, 0]]
    whole = librecon.trajectory.cartesian((32, 48))
    # The image of the complete k-space, by NumPy's sums.
    phases = [np.exp(2j * np.pi * np.outer(np.arange(n) - n // 2, np.arange(n) - n // 2) / n) for n in (32, 48)]
    truth = phases[0] @ librecon.phantom.kspace(whole, (32, 48), shapes=shapes) @ phases[1].T / (32 * 48)
    y = librecon.phantom.kspace(k, (32, 48), shapes=shapes)
    image, report = librecon.partial_fourier(k, y, (32, 48))
    # The library numbers axes as x, y, z: y is the first axis of this image.
    assert report.axis == 1 and report.extent[1] > report.extent[0]
    zero_filled = librecon.Encoding(k, (32, 48)).adjoint(y) / (32 * 48)
    assert error(image, truth) < 0.9 * error(zero_filled, truth)
    k = librecon.trajectory.propeller(8, 12, 48)
    y = librecon.phantom.kspace(k, (48, 48))
    image, report = librecon.propeller(k, y, (48, 48), corrected=True)
    assert report.motion.shape == (1, 8, 6) and np.abs(report.motion[0, :, :3]).max() < 0.5
    assert report.trajectory.shape == k.shape and report.kspace.shape == y.shape
    assert librecon.metrics(image, librecon.phantom.image((48, 48)), part="magnitude", scale="best").percent_error < 40
    assert librecon.propeller_memory(k, (48, 48)) > 1000
    with pytest.raises(ValueError, match="blade|line"):
        librecon.propeller(librecon.trajectory.spiral(3, 64, 7.3), np.ones((3, 64), complex), (48, 48))


def test_the_library_describes_itself():
    assert librecon.version() == librecon.__version__ and librecon.version().count(".") == 2
    assert all(device.memory_bytes > 0 for device in librecon.devices())
    k = librecon.trajectory.radial2d(20, 64)
    few, many = (librecon.plan_memory(k, shape, coils=coils, device="cpu") for shape, coils in [((32, 32), 1), ((512, 512), 8)])
    assert 0 < few.host_cg < many.host_cg and few.device_cg == 0
    librecon.check_free_memory(1)
    with pytest.raises(MemoryError):
        librecon.check_free_memory(1 << 60)
    librecon.release_memory()
