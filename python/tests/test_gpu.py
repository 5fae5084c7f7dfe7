"""Arrays of CuPy and PyTorch on a GPU, used there in place: values, streams, gradients."""

import librecon
import numpy as np
import pytest
from conftest import complex_array, dense, error, random_trajectory

if not librecon.devices():
    pytest.skip("no NVIDIA GPU", allow_module_level=True)


class Torch:
    """Operations of PyTorch that the tests use."""

    def __init__(self):
        self.module = pytest.importorskip("torch", reason="no torch")
        if not self.module.cuda.is_available():
            pytest.skip("PyTorch was built without CUDA")

    def send(self, array):
        return self.module.from_numpy(np.ascontiguousarray(array)).cuda()

    def fetch(self, array):
        assert isinstance(array, self.module.Tensor) and array.is_cuda
        return array.detach().cpu().numpy()

    def address(self, array):
        return array.data_ptr()

    def new_stream(self):
        stream = self.module.cuda.Stream()
        return self.module.cuda.stream(stream), stream, stream.cuda_stream


class CuPy:
    """Operations of CuPy that the tests use."""

    def __init__(self):
        self.module = pytest.importorskip("cupy", reason="no cupy")

    def send(self, array):
        return self.module.asarray(array)

    def fetch(self, array):
        assert isinstance(array, self.module.ndarray)
        return self.module.asnumpy(array)

    def address(self, array):
        return array.data.ptr

    def new_stream(self):
        stream = self.module.cuda.Stream(non_blocking=True)
        return stream, stream, stream.ptr


@pytest.fixture(params=[Torch, CuPy], ids=["torch", "cupy"])
def gpu(request):
    return request.param()


@pytest.fixture
def scan(rng):
    """Returns a trajectory, coil maps, weights, and the matrix of E by direct sums."""
    k, maps = random_trajectory(rng, (3, 40), 2), complex_array(rng, (2, 8, 7))
    weights = rng.uniform(0.5, 2, (3, 40))
    return k, maps, weights, np.concatenate([dense(k, (8, 7)) * one.ravel() for one in maps])


def test_transforms_have_the_values_of_direct_sums(gpu, scan, rng):
    k, maps, weights, A = scan
    E = librecon.Encoding(gpu.send(k), coil_maps=gpu.send(maps), weights=gpu.send(weights), tolerance=1e-9)
    assert E.device == 0 and E.info().device.startswith("cuda 0")
    x, y = complex_array(rng, (4, 8, 7)), complex_array(rng, (2, 3, 40))
    found = gpu.fetch(E @ gpu.send(x))
    assert found.shape == (4, 2, 3, 40)
    assert error(found, x.reshape(4, -1) @ A.T) < 1e-8
    assert error(gpu.fetch(E.H @ gpu.send(y)), A.conj().T @ y.ravel()) < 1e-8
    every = np.tile(weights.ravel(), 2)
    assert error(gpu.fetch(E.normal(gpu.send(x[0]))), A.conj().T @ (every * (A @ x[0].ravel()))) < 1e-8
    assert error(gpu.fetch(E.weighted_adjoint(gpu.send(y))), A.conj().T @ (every * y.ravel())) < 1e-8


def test_outputs_are_written_in_place(gpu, scan, rng):
    k, maps, _, A = scan
    E = librecon.Encoding(gpu.send(k), coil_maps=gpu.send(maps))
    y = gpu.send(complex_array(rng, (2, 3, 40)))
    out = gpu.send(np.full((8, 7), np.nan, np.complex128))
    address = gpu.address(out)
    assert E.adjoint(y, out=out) is out and gpu.address(out) == address
    assert error(gpu.fetch(out), A.conj().T @ gpu.fetch(y).ravel()) < 1e-4
    for wrong, text in [(np.zeros((2, 3, 40), np.complex128), "host's memory"), (gpu.send(np.zeros((8, 7))), "float64")]:
        with pytest.raises(librecon.InvalidArgumentError, match=text):
            E.H @ wrong


def test_conjugate_gradients_and_changes(gpu, scan, rng):
    k, maps, weights, A = scan
    other = random_trajectory(rng, (3, 40), 2)
    E = librecon.Encoding(gpu.send(other), coil_maps=gpu.send(maps), tolerance=1e-9)
    E.set_trajectory(gpu.send(k))
    E.set_weights(gpu.send(weights))
    x = complex_array(rng, (8, 7))
    image, report = E.cg(gpu.send((A @ x.ravel()).reshape(2, 3, 40)), iterations=300)
    assert error(gpu.fetch(image), x) < 1e-6 and report.iterations <= 300


def test_a_trajectory_of_numpy_with_arrays_on_the_gpu(gpu, scan, rng):
    k, maps, _, A = scan
    E = librecon.Encoding(k, coil_maps=maps, pointers_on_device=True, tolerance=1e-9)
    x = complex_array(rng, (8, 7))
    assert error(gpu.fetch(E @ gpu.send(x)), A @ x.ravel()) < 1e-8


def test_work_of_other_streams_is_ordered(gpu, rng):
    # The transforms are long enough to overlap, if nothing orders them.
    k = random_trajectory(rng, 400_000, 2, np.float32)
    E = librecon.Encoding(gpu.send(k), (256, 256))
    zeros, x = gpu.send(np.zeros((256, 256), np.complex64)), gpu.send(complex_array(rng, (256, 256), np.complex64))
    expected = gpu.fetch(E @ x)
    for turn in range(20):
        enter, stream, number = gpu.new_stream()
        assert number != E._stream
        stream.synchronize()
        with enter:
            image = zeros + 0
            for _ in range(10):
                image = image * 0.5 + x * 0.5
            image = image * 0 + x
            y = E @ image
            # The plan's stream must have finished with the image, and y must be complete, in this stream.
            image *= 0
            copy = y + 0
        stream.synchronize()
        assert (gpu.fetch(copy) == expected).all(), f"turn {turn}"


def test_gradients_on_a_gpu(scan, rng):
    gpu = Torch()
    k, maps, weights, _ = scan
    E = librecon.Encoding(gpu.send(k), coil_maps=gpu.send(maps), weights=gpu.send(weights))
    for which, shape in [("forward", (8, 7)), ("adjoint", (2, 3, 40)), ("normal", (8, 7))]:
        x = gpu.send(complex_array(rng, shape)).requires_grad_()
        assert gpu.module.autograd.gradcheck(getattr(E, which), [x], eps=1e-3, atol=1e-3)


def test_the_process_has_one_context_beside_the_others(scan, rng):
    # Arrays of both libraries, in turn, with plans that begin and end between them.
    one, two = Torch(), CuPy()
    k, maps, _, A = scan
    x = complex_array(rng, (8, 7))
    for _ in range(3):
        for gpu in (one, two):
            with librecon.Encoding(gpu.send(k), coil_maps=gpu.send(maps), tolerance=1e-9) as E:
                assert error(gpu.fetch(E @ gpu.send(x)), A @ x.ravel()) < 1e-8
