"""Random input and slow references, which share no code with the library."""

import os
import random

import numpy as np
import pytest

import librecon

SEED = int(os.environ.get("RECON_TEST_SEED", random.SystemRandom().randrange(2**32)))


def pytest_report_header(config):
    return f"RECON_TEST_SEED={SEED}, library {librecon.capi.path}, version {librecon.version()}"


@pytest.fixture
def rng(request):
    return np.random.default_rng([SEED, len(request.node.name)])


def complex_array(rng, shape, dtype=np.complex128):
    """Returns normally distributed complex numbers."""
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


def random_trajectory(rng, samples, ndim, dtype=np.float64):
    """Returns positions spread over k-space, [*samples, ndim]."""
    return rng.uniform(-0.5, 0.5, (*np.atleast_1d(samples), ndim)).astype(dtype)


def positions(shape):
    """Returns the positions of an image's voxels, [voxels, ndim], with the origin at index floor(n/2)."""
    axes = [np.arange(n) - n // 2 for n in shape]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(shape))


def dense(k, shape=None, voxels=None, field=None, decay=None, times=None):
    """Returns the matrix of E for one coil by direct sums, [samples, voxels], in double precision."""
    k = np.asarray(k, np.float64).reshape(-1, k.shape[-1])
    r = positions(shape) if voxels is None else np.asarray(voxels, np.float64)
    phase = 2j * np.pi * (k @ r.T)
    if times is not None:
        rate = np.zeros(len(r), complex)
        if field is not None:
            rate += 2j * np.pi * np.asarray(field, np.float64).ravel()
        if decay is not None:
            rate += np.asarray(decay, np.float64).ravel()
        phase = phase + np.outer(np.asarray(times, np.float64).ravel(), rate)
    return np.exp(-phase)


def error(x, reference):
    """Returns the relative l2 error."""
    return np.linalg.norm(np.ravel(x) - np.ravel(reference)) / np.linalg.norm(reference)
