"""The machine and the software versions with which the numbers were measured."""

import datetime
import os
import platform
import re
import subprocess
from pathlib import Path

import ducc0
import finufft

VECTOR_UNITS = ("sse2", "sse4_2", "avx", "avx2", "fma", "avx512f")


def said(*command, folder=None):
    """What a command prints, or "unknown" if it fails."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def cpu_field(name):
    found = re.search(rf"^{name}\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found.group(1) if found else "unknown"


def describe():
    flags = cpu_field("flags").split()
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": f"{cpu_field('model name')} (family {cpu_field('cpu family')}, model {cpu_field('model')})",
        "cores": os.cpu_count(),
        "vector_units": [unit for unit in VECTOR_UNITS if unit in flags],
        "memory_bytes": pages,
        "system": f"{platform.system()} {platform.machine()}",
    }


def versions(root, library):
    commit = said("git", "describe", "--always", "--dirty", "--abbrev=12", folder=root)
    return {
        "recon": f"{library.version()}, commit {commit}",
        "rustc": said("rustc", "--version").removeprefix("rustc "),
        "DUCC0": ducc0.__version__,
        "FINUFFT": finufft.__version__,
        "BART": said("bart", "version"),
        "gcc": said("gcc", "-dumpfullversion"),
    }


def today():
    return datetime.date.today().isoformat()
