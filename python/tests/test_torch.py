"""Tensors of PyTorch: in place, and with gradients."""

import librecon
import numpy as np
import pytest
from conftest import complex_array, dense, error, random_trajectory

torch = pytest.importorskip("torch", reason="no torch")


@pytest.fixture
def scan(rng):
    k = random_trajectory(rng, (3, 13), 2)
    maps, weights = complex_array(rng, (2, 4, 5)), rng.uniform(0.5, 2, (3, 13))
    return k, maps, librecon.Encoding(torch.from_numpy(k), coil_maps=torch.from_numpy(maps), weights=torch.from_numpy(weights))


def tensor(rng, *shape):
    return torch.from_numpy(complex_array(rng, shape)).requires_grad_()


def test_tensors_are_used_in_place(scan, rng):
    k, maps, E = scan
    x = torch.from_numpy(complex_array(rng, (4, 5)))
    y = E @ x
    assert isinstance(y, torch.Tensor) and y.dtype == torch.complex128 and y.device.type == "cpu"
    same = librecon.Encoding(k, coil_maps=maps)
    assert (y.numpy() == same @ x.numpy()).all()
    out = torch.empty(2, 3, 13, dtype=torch.complex128)
    assert E.forward(x, out=out) is out and (out == y).all()
    image, _ = E.cg(y)
    assert isinstance(image, torch.Tensor)
    assert error(image.numpy(), E.cg(y.numpy())[0]) == 0


@pytest.mark.parametrize("which", ["forward", "adjoint", "normal"])
def test_gradients(scan, rng, which):
    _, _, E = scan
    shape = (2, 3, 13) if which == "adjoint" else (4, 5)
    # Windows make derivatives of rounding only: differences of a linear map have no other error.
    for lead in ((), (3,)):
        x = tensor(rng, *lead, *shape)
        assert torch.autograd.gradcheck(getattr(E, which), [x], eps=1e-3, atol=1e-3)
        assert torch.autograd.gradgradcheck(getattr(E, which), [x], eps=1e-3, atol=1e-3)


def test_gradients_of_exact_sums_for_several_coils_and_frames(rng):
    k = random_trajectory(rng, 17, 2)
    E = librecon.Encoding(k, (4, 3), coils=2, frames=2, method="exact", normal="transforms")
    assert torch.autograd.gradcheck(lambda x: E @ x, [tensor(rng, 2, 2, 4, 3)], eps=1e-4)
    assert torch.autograd.gradcheck(lambda y: E.H @ y, [tensor(rng, 2, 2, 17)], eps=1e-4)
    assert torch.autograd.gradcheck(E.normal, [tensor(rng, 3, 2, 2, 4, 3)], eps=1e-4)


def test_the_gradient_of_a_loss_is_that_of_dense_algebra(scan, rng):
    k, maps, E = scan
    A = torch.from_numpy(np.concatenate([dense(k, (4, 5)) * s.ravel() for s in maps]))
    x, y = tensor(rng, 4, 5), torch.from_numpy(complex_array(rng, (2, 3, 13)))
    ((E @ x - y).abs() ** 2).sum().backward()
    other = x.detach().clone().requires_grad_()
    ((A @ other.reshape(-1) - y.reshape(-1)).abs() ** 2).sum().backward()
    assert error(x.grad.numpy(), other.grad.numpy()) < 2e-5


def test_without_gradients_nothing_is_recorded(scan, rng):
    _, _, E = scan
    x = tensor(rng, 4, 5)
    with torch.no_grad():
        pass
    assert (E @ x).requires_grad and not (E @ x.detach()).requires_grad


def test_errors_name_the_remedy(scan, rng):
    _, _, E = scan
    x = torch.from_numpy(complex_array(rng, (4, 5)))
    y = tensor(rng, 2, 3, 13)
    for call, text in [(lambda: E.grid(y), "y.detach()"), (lambda: E.cg(y), "y.detach()"),
                       (lambda: E @ x.to(torch.complex64), "x.to(torch.complex128)"),
                       (lambda: E @ x.conj(), "resolve_conj"), (lambda: E @ x.T, "x.contiguous()"),
                       (lambda: E @ x[:3], "(3, 5)"), (lambda: E @ x.to(torch.complex32), "complex32")]:
        with pytest.raises(ValueError) as caught:
            call()
        assert text in str(caught.value), str(caught.value)
