"""The backend for mri-nufft, compared with its backend for FINUFFT. Its own tests are run by mri_nufft_suite.py."""

import warnings

import numpy as np
import pytest
from conftest import complex_array, dense, error, positions, random_trajectory

mrinufft = pytest.importorskip("mrinufft", reason="no mri-nufft")
pytest.importorskip("finufft", reason="no finufft")


@pytest.mark.parametrize("shape", [(16, 22), (8, 9, 14)])
@pytest.mark.parametrize("options", [{}, {"n_coils": 4, "n_trans": 2}, {"n_coils": 3, "n_batchs": 2}])
def test_the_backend_is_registered_and_agrees(rng, shape, options):
    import librecon.mri_nufft  # noqa: F401

    assert "librecon" in mrinufft.operators.list_backends(available_only=True)
    k = random_trajectory(rng, (5, 60), len(shape), np.float32)
    ours, theirs = (mrinufft.get_operator(name)(k, shape, **options) for name in ("librecon", "finufft"))
    x = complex_array(rng, ours.img_full_shape, np.complex64)
    y = complex_array(rng, ours.ksp_full_shape, np.complex64)
    assert error(ours.op(x), theirs.op(x)) < 1e-5 and error(ours.adj_op(y), theirs.adj_op(y)) < 1e-5
    other = random_trajectory(rng, (5, 60), len(shape), np.float32)
    for operator in (ours, theirs):
        operator.update_samples(other)
    assert error(ours.op(x), theirs.op(x)) < 1e-5


@pytest.mark.parametrize("n_trans", [1, 2])
def test_the_lipschitz_constant_of_operators_that_transform_several_coils_together(rng, n_trans):
    import librecon.mri_nufft  # noqa: F401

    k = random_trajectory(rng, 300, 2, np.float32)
    maps = complex_array(rng, (4, 8, 9), np.complex64)
    operator = mrinufft.get_operator("librecon")(k, (8, 9), n_coils=4, n_batchs=3, n_trans=n_trans, smaps=maps, squeeze_dims=False)
    expected = np.linalg.norm(dense(k, (8, 9)), 2) ** 2 / operator.norm_factor**2
    assert abs(operator.get_lipschitz_cst(500) / expected - 1) < 0.01
    assert (operator.n_coils, operator.n_batchs, operator.squeeze_dims) == (4, 3, False) and (operator.smaps == maps).all()


def test_gradients_with_respect_to_the_samples(rng):
    import librecon.mri_nufft  # noqa: F401

    pytest.importorskip("deepinv", reason="no deepinv, which mri-nufft's gradients need")
    import torch

    k = random_trajectory(rng, 40, 2)
    maps, x = complex_array(rng, (2, 6, 7)), torch.from_numpy(complex_array(rng, (1, 1, 6, 7)))
    operator = mrinufft.get_operator("librecon")(k, (6, 7), n_coils=2, smaps=maps, squeeze_dims=False, eps=1e-9)
    differentiable = operator.make_autograd(wrt_data=True, wrt_traj=True)
    (differentiable.op(x).abs() ** 2).sum().backward()
    # The derivative of exp(-i k r) x along each axis, by direct sums. k is in radians.
    images = (maps * x.numpy()[0]).reshape(2, -1).T
    A = dense(k, (6, 7)) / operator.norm_factor
    expected = [2 * np.real(np.sum(np.conj(A @ images) * (A @ (-1j * r[:, None] * images)), axis=1)) for r in positions((6, 7)).T]
    assert error(differentiable.samples.grad.numpy(), np.transpose(expected)) < 1e-6


def test_density_weights():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import librecon
        from librecon.mri_nufft import MRILibrecon
    k = librecon.trajectory.radial2d(48, 64, dtype=np.float32).reshape(-1, 2)
    weights = MRILibrecon.pipe(k, (32, 32))
    operator = mrinufft.get_operator("librecon")(k, (32, 32), density=weights)
    ones = np.ones((32, 32), np.complex64)
    assert weights.shape == (48 * 64,) and abs(np.mean(np.abs(operator.adj_op(operator.op(ones)))) - 1) < 1e-3
