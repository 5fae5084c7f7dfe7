"""The package as a guest: forks, Ctrl-C, other threads, and other libraries in one process."""

import os
import pathlib
import subprocess
import sys
import textwrap
import threading
import time

import librecon
import numpy as np
import pytest
from conftest import complex_array, random_trajectory


def run(code, *arguments, timeout=300):
    """Runs a program in a new process, and returns its output."""
    process = subprocess.run([sys.executable, "-c", textwrap.dedent(code), *arguments], capture_output=True, text=True,
                             timeout=timeout)
    assert process.returncode == 0, f"exit {process.returncode}:\n{process.stdout}\n{process.stderr}"
    return process.stdout


def test_children_of_a_hundred_forks_compute():
    output = run("""
        import os, sys
        import numpy as np, librecon
        k = librecon.trajectory.radial2d(16, 32)
        y = librecon.phantom.kspace(k, (24, 24))
        E = librecon.Encoding(k, (24, 24), threads=4)
        expected = E.cg(y)[0]
        for i in range(100):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    try:
                        E @ expected
                    except librecon.InvalidArgumentError as error:
                        code = 0 if "before a fork" in str(error) else 2
                    E.close()
                    own = librecon.Encoding(k, (24, 24), threads=4)
                    code = code if (own.cg(y)[0] == expected).all() else 3
                finally:
                    os._exit(code)
            assert os.waitpid(child, 0)[1] == 0, i
        assert (E.cg(y)[0] == expected).all()
        print("forks", i + 1)
    """)
    assert output == "forks 100\n"


def test_multiprocessing_by_fork_ends_cleanly():
    assert run("""
        import multiprocessing
        import numpy as np, librecon
        k = librecon.trajectory.radial2d(16, 32)
        E = librecon.Encoding(k, (24, 24))
        def work(i):
            return float(abs(librecon.Encoding(k, (24, 24), threads=1) @ np.full((24, 24), i + 0j)).sum())
        with multiprocessing.get_context("fork").Pool(2) as pool:
            found = pool.map(work, range(6))
        assert np.allclose(found, found[1] * np.arange(6))
    """) == ""


INTERRUPTED = """
    import os, signal, sys, threading
    import numpy as np, librecon
    # Shells start programs in the background with Ctrl-C ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    k = librecon.trajectory.radial2d(200, 256)
    y = librecon.phantom.kspace(k, (128, 128))
    E = librecon.Encoding(k, (128, 128), method=sys.argv[1])
    out = np.zeros((128, 128), complex)
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        E.cg(y, iterations=10**7, out=out)
    except KeyboardInterrupt:
        print("interrupted", bool(out.any()))
    # The operator is valid.
    E.cg(y, iterations=1)
"""


@pytest.mark.parametrize("method", ["nufft", "exact"])
def test_ctrl_c_ends_a_reconstruction(method):
    assert run(INTERRUPTED, method) == "interrupted False\n"


def test_other_threads_run_meanwhile(rng):
    k = random_trajectory(rng, 20000, 2)
    E = librecon.Encoding(k, (64, 64), threads=1, interrupt=False)
    y = complex_array(rng, 20000)
    steps, done = [0], threading.Event()

    def count():
        while not done.is_set():
            steps[0] += 1
            time.sleep(0.001)
    thread = threading.Thread(target=count)
    thread.start()
    E.cg(y, iterations=300)
    done.set()
    thread.join()
    assert steps[0] > 5


def test_one_operator_in_several_threads_and_closed_meanwhile(rng):
    k = random_trajectory(rng, 3000, 2)
    E = librecon.Encoding(k, (32, 32))
    y = complex_array(rng, 3000)
    expected, found = E.cg(y)[0], []

    def work():
        try:
            for _ in range(200):
                found.append((E.cg(y)[0] == expected).all())
        except librecon.InvalidArgumentError:
            pass
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    E.close()
    for thread in threads:
        thread.join()
    assert found and all(found)


def test_the_log_goes_to_logging(caplog, rng):
    k = random_trajectory(rng, 30, 2)
    with caplog.at_level("INFO", logger="librecon"):
        librecon.log_to_logging("info")
        librecon.Encoding(k, (8, 9))
        librecon.log_to_logging("off")
        librecon.Encoding(k, (8, 9))
    assert len(caplog.records) == 1 and caplog.records[0].message.startswith("plan: nufft on cpu")
    with pytest.raises(librecon.UnknownValueError, match="debug"):
        librecon.log_to_logging("loud")


OTHERS = ["torch", "cupy", "finufft"]


@pytest.mark.parametrize("first", [False, True], ids=["librecon last", "librecon first"])
@pytest.mark.parametrize("other", [*OTHERS, " ".join(OTHERS)])
def test_other_libraries_in_one_process(other, first):
    for name in other.split():
        pytest.importorskip(name, reason=f"no {name}")
    names = other.split()
    order = ["librecon", *names] if first else [*names, "librecon"]
    assert run("""
        import sys
        for name in sys.argv[1].split():
            __import__(name)
        import numpy as np, librecon
        k = librecon.trajectory.radial2d(32, 64)
        x = librecon.phantom.image((32, 32))
        y = librecon.Encoding(k, (32, 32)) @ x
        if "finufft" in sys.modules:
            import finufft
            c = finufft.nufft2d2(*(2 * np.pi * k.reshape(-1, 2).T), x, eps=1e-8, isign=-1)
            assert np.linalg.norm(y.ravel() - c) < 2e-5 * np.linalg.norm(c)
        if "torch" in sys.modules:
            import torch
            a = torch.randn(200, 200, dtype=torch.complex128)
            assert torch.linalg.norm(torch.fft.ifft2(torch.fft.fft2(a)) - a) < 1e-9
        z, _ = librecon.Encoding(k, (32, 32)).cg(y)
        print("ok")
    """, " ".join(order)) == "ok\n"


def test_nothing_is_printed_and_no_thread_starts_at_import():
    if not pathlib.Path("/proc/self/task").exists():
        pytest.skip("no /proc")
    assert run("""
        import os, numpy
        before = len(os.listdir("/proc/self/task"))
        import librecon
        assert len(os.listdir("/proc/self/task")) == before
    """) == ""


def test_a_missing_library_is_an_error_that_names_it():
    environment = dict(os.environ, LIBRECON="/nowhere/librecon.so")
    process = subprocess.run([sys.executable, "-c", "import librecon"], capture_output=True, text=True, env=environment)
    assert process.returncode == 1 and "/nowhere/librecon.so does not exist" in process.stderr


def test_memory_does_not_grow(rng):
    if not pathlib.Path("/proc/self/statm").exists():
        pytest.skip("no /proc")
    k = random_trajectory(rng, 2000, 2)
    y = complex_array(rng, 2000)

    def resident():
        return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def work(n):
        for _ in range(n):
            E = librecon.Encoding(k, (64, 64), interrupt=lambda: False)
            E.cg(y, iterations=1, progress=lambda p: False)
            librecon.phantom.coil_maps((64, 64), 2)
    work(30)
    before = resident()
    work(300)
    # A plan holds about a megabyte.
    assert resident() - before < 32e6
    assert np.isfinite(y).all()
