#!/usr/bin/env python3
"""Runs mri-nufft's own tests of interfaces with the backend librecon.

    mri_nufft_suite.py CHECKOUT        CHECKOUT is a folder with mri-nufft's repository, or its sdist

The tests are copied to a temporary folder, and "librecon" is added to their lists of backends.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TESTS = ["test_interfaces.py", "test_update.py", "test_batch.py", "test_autodiff.py", "test_density_for_op.py",
         "test_optim.py", "test_orc.py", "test_stacked.py", "test_subspace.py"]


def main():
    source = pathlib.Path(sys.argv[1]) / "tests"
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "tests"
        shutil.copytree(source, copy)
        conftest = copy / "conftest.py"
        conftest.write_text(conftest.read_text().replace("import pytest\n", "import pytest\nimport librecon.mri_nufft\n", 1))
        added = 0
        for name in TESTS:
            path = copy / "operators" / name
            text, count = re.subn(r'^(\s*)"finufft",$', r'\1"librecon",\n\1"finufft",', path.read_text(), flags=re.M)
            text, more = re.subn(r'(backend(?:"?,\s*|=)\[)(?="\w)', r'\1"librecon", ', text)
            # Both are backends for the CPU: tests of arrays on a GPU are skipped.
            text = text.replace('operator.backend == "finufft" and "gpu"', 'operator.backend in ("finufft", "librecon") and "gpu"')
            path.write_text(text)
            added += count + more
            print(f"{name}: librecon added to {count + more} lists of backends", flush=True)
        if not added:
            sys.exit("no list of backends was found: mri-nufft's tests have changed, change this script")
        # Test names contain the backend. Without -k, thousands of tests of other backends are set up to be skipped.
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--backend", "librecon", "--ref", "finufft",
                   "-k", "librecon", *[str(copy / "operators" / name) for name in TESTS], *sys.argv[2:]]
        paths = os.pathsep.join(filter(None, [str(copy), os.environ.get("PYTHONPATH")]))
        sys.exit(subprocess.run(command, cwd=copy.parent, env={**os.environ, "PYTHONPATH": paths}).returncode)


main()
