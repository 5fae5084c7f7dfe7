"""The operator, compared with dense algebra."""

import warnings

import librecon
import numpy as np
import pytest
from conftest import complex_array, dense, error, random_trajectory

PRECISIONS = [(np.float32, np.complex64, 2e-5), (np.float64, np.complex128, 2e-5)]


@pytest.mark.parametrize("real, kind, bound", PRECISIONS)
@pytest.mark.parametrize("shape", [(12, 17), (9, 8, 14)])
def test_transforms_are_the_direct_sums(rng, real, kind, bound, shape):
    k = random_trajectory(rng, (7, 43), len(shape), real)
    E = librecon.Encoding(k, shape)
    A = dense(k, shape)
    x, y = complex_array(rng, shape, kind), complex_array(rng, (7, 43), kind)
    forward, adjoint = E @ x, E.H @ y
    assert (forward.shape, forward.dtype) == ((7, 43), kind)
    assert (adjoint.shape, adjoint.dtype) == (shape, kind)
    assert error(forward, A @ x.ravel()) < bound
    assert error(adjoint, A.conj().T @ y.ravel()) < bound
    assert error(E.normal(x), A.conj().T @ (A @ x.ravel())) < 2 * bound
    assert E.shape == A.shape and E.H.shape == A.shape[::-1] and E.H.H is E


def test_exact_sums_have_rounding_errors_only(rng):
    k = random_trajectory(rng, 50, 2)
    E = librecon.Encoding(k, (10, 6), method="exact")
    x = complex_array(rng, (10, 6))
    assert error(E @ x, dense(k, (10, 6)) @ x.ravel()) < 1e-13


def test_a_box_voxel_multiplies_the_samples_by_sincs(rng):
    k = random_trajectory(rng, 50, 2)
    x = complex_array(rng, (10, 6))
    E = librecon.Encoding(k, (10, 6), method="exact", basis="box")
    assert error(E @ x, np.prod(np.sinc(k), axis=-1) * (dense(k, (10, 6)) @ x.ravel())) < 1e-13


def test_coils_frames_and_leading_axes(rng):
    k = random_trajectory(rng, 60, 2)
    A = dense(k, (8, 11))
    for coils, frames, lead in [(3, None, ()), (None, 2, ()), (3, 2, ()), (3, None, (2, 2)), (None, None, (4,)), (1, None, ())]:
        E = librecon.Encoding(k, (8, 11), coils=coils, frames=frames)
        axes = lead + tuple(n for n in (frames, coils) if n is not None)
        x = complex_array(rng, (*axes, 8, 11))
        y = E @ x
        assert y.shape == (*axes, 60)
        assert error(y, x.reshape(*axes, -1) @ A.T) < 2e-5
        assert error(E.H @ y, y @ A.conj()) < 2e-5


def test_coil_maps_combine_the_coils(rng):
    k = random_trajectory(rng, (5, 20), 2)
    maps, x, weights = complex_array(rng, (4, 9, 7)), complex_array(rng, (9, 7)), rng.uniform(0.5, 2, (5, 20))
    E = librecon.Encoding(k, coil_maps=maps, weights=weights)
    A = np.concatenate([dense(k, (9, 7)) * s.ravel() for s in maps])
    W = np.tile(weights.ravel(), 4)
    y = complex_array(rng, (4, 5, 20))
    assert error(E @ x, A @ x.ravel()) < 2e-5
    assert error(E.H @ y, A.conj().T @ y.ravel()) < 2e-5
    assert error(E.weighted_adjoint(y), A.conj().T @ (W * y.ravel())) < 2e-5
    assert error(E.normal(x), A.conj().T @ (W * (A @ x.ravel()))) < 2e-5


def test_voxel_lists_off_resonance_and_decay(rng):
    k = random_trajectory(rng, 80, 3)
    voxels = rng.uniform(-8, 8, (33, 3))
    x = complex_array(rng, 33)
    E = librecon.Encoding(k, (16, 16, 16), voxels=voxels)
    assert error(E @ x, dense(k, voxels=voxels) @ x) < 1e-12
    k = random_trajectory(rng, (4, 50), 2)
    field, decay = rng.uniform(-80, 80, (10, 12)), rng.uniform(0, 30, (10, 12))
    times = np.broadcast_to(np.linspace(0, 0.02, 50), (4, 50)).copy()
    E = librecon.Encoding(k, (10, 12), field_map=field, decay_map=decay, times=times)
    x = complex_array(rng, (10, 12))
    assert error(E @ x, dense(k, (10, 12), field=field, decay=decay, times=times) @ x.ravel()) < 2e-5


def test_conjugate_gradients_solve_the_normal_equations(rng):
    k = random_trajectory(rng, 300, 2)
    E = librecon.Encoding(k, (8, 9), tolerance=1e-10)
    A = dense(k, (8, 9))
    y = complex_array(rng, 300)
    x, report = E.cg(y, iterations=200, tolerance=1e-9, lambda_=0.5, lambda_unit="absolute")
    expected = np.linalg.solve(A.conj().T @ A + 0.5 * np.eye(72), A.conj().T @ y)
    assert error(x, expected) < 1e-7
    assert report.stop == "tolerance" and report.residuals.shape == (1, 201)
    assert report.residuals[0, report.iterations] == report.residual < 1e-9
    assert np.isnan(report.residuals[0, report.iterations + 1:]).all() and report.lambda_ == 0.5
    again, _ = E.cg(y, iterations=1, initial=x)
    assert error(again, np.linalg.lstsq(A, y, rcond=None)[0]) < error(x, np.linalg.lstsq(A, y, rcond=None)[0])


def test_a_sparse_matrix_is_a_prior(rng):
    sparse = pytest.importorskip("scipy.sparse", reason="no scipy")
    k = random_trajectory(rng, 200, 2)
    E = librecon.Encoding(k, (6, 7), tolerance=1e-10)
    A, R = dense(k, (6, 7)), sparse.random(50, 42, 0.2, random_state=3) * (1 + 2j)
    y = complex_array(rng, 200)
    x, _ = E.cg(y, iterations=200, tolerance=1e-10, lambda_=3, lambda_unit="absolute", prior=R)
    D = R.toarray()
    assert error(x, np.linalg.solve(A.conj().T @ A + 3 * D.conj().T @ D, A.conj().T @ y)) < 1e-7


def test_scipy_solves_with_the_operator(rng):
    linalg = pytest.importorskip("scipy.sparse.linalg", reason="no scipy")
    k = random_trajectory(rng, 300, 2)
    E = librecon.Encoding(k, (6, 7), tolerance=1e-10)
    y = complex_array(rng, 300)
    x = linalg.lsqr(linalg.aslinearoperator(E), y, atol=1e-10, btol=1e-10)[0]
    assert error(x, np.linalg.lstsq(dense(k, (6, 7)), y, rcond=None)[0]) < 1e-6


def test_progress_reports_each_iteration_and_ends_the_call(rng):
    k = random_trajectory(rng, 200, 2)
    E = librecon.Encoding(k, (8, 8))
    y, seen = complex_array(rng, 200), []
    _, report = E.cg(y, iterations=4, progress=lambda p: seen.append((p.image, p.iteration, p.residual)))
    assert [s[:2] for s in seen] == [(0, i) for i in range(5)]
    assert [s[2] for s in seen] == list(report.residuals[0])
    with pytest.raises(librecon.CancelledError):
        E.cg(y, progress=lambda p: p.iteration == 2)

    def stop(p):
        raise LookupError("enough")
    out = np.zeros((8, 8), complex)
    with pytest.raises(LookupError, match="enough"):
        E.cg(y, progress=stop, out=out)
    assert not out.any()


def test_an_interrupt_function_ends_a_call(rng):
    k = random_trajectory(rng, 200, 2)
    stop = []
    E = librecon.Encoding(k, (8, 8), interrupt=lambda: bool(stop))
    y = complex_array(rng, 200)
    E.cg(y)
    stop.append(1)
    # The function is called about fifty times a second.
    with pytest.raises(librecon.CancelledError):
        E.cg(y, iterations=10**7)
    with pytest.raises(ZeroDivisionError):
        librecon.Encoding(k, (8, 8), interrupt=lambda: 1 / 0).cg(y, iterations=10**7)


def test_results_are_written_in_place_with_the_same_bits(rng):
    k = random_trajectory(rng, 200, 2)
    E = librecon.Encoding(k, (8, 8), coils=2)
    x = complex_array(rng, (2, 8, 8))
    y = np.full((2, 200), np.nan + 0j)
    assert E.forward(x, out=y) is y
    assert (y == E @ x).all()
    one = librecon.Encoding(k, (8, 8), coils=2, threads=1)
    assert (one @ x == y).all() and (one.H @ y == E.H @ y).all()


def test_changes_give_the_bits_of_a_new_operator(rng):
    k, other = random_trajectory(rng, (4, 30), 2), random_trajectory(rng, 90, 2)
    maps, weights = complex_array(rng, (3, 8, 9)), rng.uniform(0, 1, 90)
    E = librecon.Encoding(k, coil_maps=maps)
    E.set_trajectory(other)
    x = complex_array(rng, (8, 9))
    assert (E @ x == librecon.Encoding(other, coil_maps=maps) @ x).all() and E.kspace_shape == (3, 90)
    E.set_weights(weights)
    assert (E.normal(x) == librecon.Encoding(other, coil_maps=maps, weights=weights).normal(x)).all()
    E.set_coil_maps(2 * maps)
    assert (E.normal(x) == librecon.Encoding(other, coil_maps=2 * maps, weights=weights).normal(x)).all()
    with pytest.raises(librecon.InvalidArgumentError, match="weights"):
        E.set_trajectory(k)
    E.set_weights(None)
    E.set_trajectory(k)
    assert (E @ x == librecon.Encoding(k, coil_maps=2 * maps) @ x).all()


def test_q_is_the_kernel_of_the_normal_operator(rng, tmp_path):
    k, weights = random_trajectory(rng, 70, 2), rng.uniform(0, 1, 70)
    E = librecon.Encoding(k, (6, 8), weights=weights, method="exact", normal="toeplitz")
    delta = np.stack(np.meshgrid(np.arange(12) - 6, np.arange(16) - 8, indexing="ij"), -1).reshape(-1, 2)
    assert error(E.q(), np.exp(2j * np.pi * delta @ k.T) @ weights) < 1e-12
    E.save_q(tmp_path / "kernel")
    x = complex_array(rng, (6, 8))
    other = librecon.Encoding(k, (6, 8), weights=weights, method="exact", normal="toeplitz")
    other.load_q(tmp_path / "kernel")
    assert (other.normal(x) == E.normal(x)).all()
    with pytest.raises(OSError, match="missing"):
        other.load_q(tmp_path / "missing")


def test_gridding_keeps_the_scale_of_the_object():
    k = librecon.trajectory.radial2d(100, 128)
    y, truth = librecon.phantom.kspace(k, (64, 48)), librecon.phantom.image((64, 48))
    E = librecon.Encoding(k, (64, 48))
    for image in (E.grid(y), E.fbp(y), E.fbp(y, "shepp-logan")):
        quality = librecon.metrics(image, truth, scale="best")
        assert quality.percent_error < 30 and abs(quality.scale_re - 1) < 0.1
    for method in ("pipe-menon", "ramp", "jackson"):
        weights = E.density(method)
        assert weights.shape == (100, 128) and (weights >= 0).all()
        weighted = librecon.Encoding(k, (64, 48), weights=method)
        assert (weighted.grid(y) == librecon.Encoding(k, (64, 48), weights=weights).grid(y)).all()
    # The image is the transform of the gridded k-space, times the factors along each axis.
    grid = E.grid_kspace(y)
    image = grid
    for axis, n in enumerate((64, 48)):
        u, r = np.arange(grid.shape[axis]) - grid.shape[axis] // 2, np.arange(n) - n // 2
        kernel = np.exp(2j * np.pi * np.outer(r, u) / grid.shape[axis]) * E.window_correction(axis)[:, None]
        image = np.moveaxis(np.tensordot(kernel, image, (1, axis)), 0, axis)
    assert error(image, E.grid(y)) < 1e-10


def test_coil_maps_come_from_the_data():
    k = librecon.trajectory.radial2d(64, 128, "golden", np.float32)
    y = librecon.phantom.kspace(k, (48, 64), coils=4)
    maps = librecon.Encoding(k, (48, 64), coils=4).coil_maps(y)
    truth = librecon.phantom.coil_maps((48, 64), 4, np.complex64)
    assert maps.shape == (4, 48, 64) and maps.dtype == np.complex64
    inside = np.abs(librecon.phantom.image((48, 64))) > 0.1
    # The phase of maps is arbitrary, but equal for all coils.
    match = np.abs((maps.conj() * truth).sum(0)) / np.linalg.norm(truth, axis=0)
    assert np.allclose(np.linalg.norm(maps, axis=0)[inside], 1, atol=1e-4) and match[inside].mean() > 0.98


def test_errors_state_cause_value_and_remedy(rng):
    k = random_trajectory(rng, (4, 30), 2)
    E = librecon.Encoding(k, (8, 9))
    x = complex_array(rng, (8, 9))
    for call, kind, texts in [
        (lambda: E @ x.astype(np.complex64), ValueError, ["complex64", "x.astype(numpy.complex128)"]),
        (lambda: E @ np.ones((8, 9)), ValueError, ["float64", "complex128"]),
        (lambda: E @ x[:, ::-1], ValueError, ["not contiguous", "ascontiguousarray(x)"]),
        (lambda: E @ np.ascontiguousarray(x.T), ValueError, ["(9, 8)", "(8, 9)", "transpose"]),
        (lambda: E.H @ x, ValueError, ["(8, 9)", "(4, 30)"]),
        (lambda: E @ [[1, 2]], TypeError, ["list", "NumPy"]),
        (lambda: x @ E, TypeError, ["on its right"]),
        (lambda: E.forward(x, out=np.empty((4, 30), np.complex64)), ValueError, ["out", "complex128"]),
        (lambda: E.forward(x, out=np.broadcast_to(np.zeros(30, complex), (4, 30))), ValueError, ["out"]),
        (lambda: E.grid(np.full((4, 30), np.nan + 0j)), ValueError, ["0"]),
        (lambda: librecon.Encoding(k * 30, (8, 9)), ValueError, ["cycles per voxel"]),
        (lambda: librecon.Encoding(np.zeros((4, 30, 1)), (8,)), ValueError, ["(4, 30, 1)"]),
        (lambda: librecon.Encoding(k.astype(np.float16), (8, 9)), ValueError, ["float16"]),
        (lambda: librecon.Encoding(k, (8, 9, 10)), ValueError, ["(8, 9, 10)"]),
        (lambda: librecon.Encoding(k, (8, 0)), ValueError, ["0"]),
        (lambda: librecon.Encoding(k, (8, -1)), ValueError, ["-1"]),
        (lambda: librecon.Encoding(k), TypeError, ["shape is missing"]),
        (lambda: librecon.Encoding(k, (8, 9), tolerence=1e-3), TypeError, ["'tolerence'", "tolerance"]),
        (lambda: librecon.Encoding(k, (8, 9), tolerance="high"), TypeError, ["tolerance", "'high'"]),
        (lambda: librecon.Encoding(k, (8, 9), window="hamming"), ValueError, ["window", "'hamming'", "gaussian"]),
        (lambda: librecon.Encoding(k, (8, 9), tolerance=2.0), ValueError, ["2"]),
        (lambda: librecon.Encoding(k, (8, 9), threads=-1), ValueError, ["threads", "-1"]),
        (lambda: librecon.Encoding(k, (8, 9), coils=-2), ValueError, ["coils", "-2"]),
        (lambda: librecon.Encoding(k, (8, 9), coils=0), ValueError, ["coils"]),
        (lambda: librecon.Encoding(k, (8, 9), weights=np.ones(4)), ValueError, ["weights", "(4,)", "(4, 30)"]),
        (lambda: librecon.Encoding(k, (8, 9), weights="sqrt"), ValueError, ["sqrt", "pipe-menon"]),
        (lambda: librecon.Encoding(k, coil_maps=complex_array(rng, (2, 8, 9), np.complex64)), ValueError, ["coil_maps"]),
        (lambda: librecon.Encoding(k, (8, 9), coils=3, coil_maps=complex_array(rng, (2, 8, 9))), ValueError, ["coils is 3"]),
        (lambda: librecon.Encoding(k, (8, 9), memory_limit=100), MemoryError, ["bytes"]),
        (lambda: E.cg(E @ x, iteration=3), TypeError, ["'iteration'", "iterations"]),
        (lambda: E.cg(E @ x, prior="smooth"), ValueError, ["prior", "differences"]),
        (lambda: E.cg(E @ x, prior="anatomical", reference=np.ones((9, 8))), ValueError, ["reference", "(9, 8)"]),
        (lambda: E.fbp(E @ x), ValueError, ["spoke"]),
        (lambda: E.window_correction(2), ValueError, ["axis", "2"]),
        (lambda: E.set_coil_maps(complex_array(rng, (2, 8, 9))), ValueError, ["maps"]),
        (lambda: librecon.Encoding(k, (8, 9), voxels=np.ones((5, 2)), method="nufft"), NotImplementedError, []),
    ]:
        with pytest.raises(kind) as caught:
            call()
        for text in texts:
            assert text in str(caught.value), str(caught.value)
    assert (E @ x == librecon.Encoding(k, (8, 9)) @ x).all()


def test_every_status_has_a_class():
    for status, kind in librecon.ERRORS_BY_STATUS.items():
        assert issubclass(kind, librecon.LibreconError) and kind.status == status and getattr(librecon, kind.__name__) is kind
    assert issubclass(librecon.NotFiniteError, ValueError) and issubclass(librecon.IOError, OSError)
    assert issubclass(librecon.OutOfDeviceMemoryError, MemoryError)


def test_a_gpu_that_is_missing_is_an_error(rng):
    if librecon.devices():
        pytest.skip("this machine has a GPU")
    k = random_trajectory(rng, 30, 2)
    with pytest.raises(librecon.NoDeviceError):
        librecon.Encoding(k, (8, 9), device="cuda")
    with pytest.raises(librecon.NoDeviceError):
        librecon.Encoding(k, (8, 9), pointers_on_device=True)


def test_warnings_are_issued_where_the_caller_is(rng):
    k = 0.05 * random_trajectory(rng, 300, 2)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        librecon.Encoding(k, (16, 16))
    assert [w.category for w in found] == [librecon.ExtentWarning] and found[0].filename == __file__
    assert "k" in str(found[0].message)


def test_the_end_of_an_operator(rng):
    k = random_trajectory(rng, 30, 2)
    x = complex_array(rng, (8, 9))
    with librecon.Encoding(k, (8, 9)) as E:
        assert "complex128" in repr(E) and "nufft" in repr(E)
        assert E.info().kspace_elements == 30
    for call in (lambda: E @ x, lambda: E.info(), lambda: E.cg(np.ones(30, complex)), lambda: E.q()):
        with pytest.raises(librecon.InvalidArgumentError, match="closed"):
            call()
    E.close()
    assert "closed" in repr(E)
    import pickle
    with pytest.raises(TypeError, match="process"):
        pickle.dumps(E)
