"""The machine and the software versions with which the numbers were measured."""

import datetime
import json
import os
import platform
import re
import subprocess
from pathlib import Path

import processor

VECTOR_UNITS = ("sse2", "sse4_2", "avx", "avx2", "fma", "avx512f")


def said(*command, folder=None):
    """Returns the output of a command, or "unknown" if it fails."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def cpu_field(name):
    found = re.search(rf"^{name}\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found.group(1) if found else "unknown"


def memory_bytes():
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def cores():
    """Returns the processors that this process may use. On a shared machine these can be fewer than the machine has."""
    return len(os.sched_getaffinity(0))


def thread_counts():
    """Returns 1, 2, 4 and so on, up to the number of processors."""
    most = cores()
    return sorted({1 << power for power in range(most.bit_length())} | {most})


def lacks(needed_cores, gibibytes):
    """Returns the requirement that this machine does not meet, in words, or None."""
    if cores() < needed_cores:
        return f"wants {needed_cores} cores, here are {cores()}"
    if memory_bytes() < gibibytes * 2**30:
        return f"wants {gibibytes:.0f} GiB of memory, here are {memory_bytes() / 2**30:.0f}"
    return None


def table_name():
    """Returns the stem of the table's files: the processor, and the level of the vector unit if one is requested."""
    name = f"cpu-{processor.name(Path('/proc/cpuinfo').read_text())}"
    level = os.environ.get("RECON_SIMD")
    return f"{name}-recon-{processor.slug(level)}" if level else name


def describe():
    flags = cpu_field("flags").split()
    return {
        "cpu": f"{cpu_field('model name')} (family {cpu_field('cpu family')}, model {cpu_field('model')})",
        "cores": cores(),
        "vector_units": [unit for unit in VECTOR_UNITS if unit in flags],
        "memory_bytes": memory_bytes(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def built_from(root):
    """Returns the commit and the compiler of the library. A bundle has them in a file: it has neither git nor cargo."""
    noted = root / "built_from.json"
    if noted.exists():
        return json.loads(noted.read_text())
    return {
        "commit": said("git", "describe", "--always", "--dirty", "--abbrev=12", folder=root),
        "rustc": said("rustc", "--version").removeprefix("rustc "),
    }


def versions(root, library):
    # Only this function needs the peers.
    import ducc0
    import finufft

    built = built_from(root)
    return {
        "recon": f"{library.version()}, commit {built['commit']}",
        "rustc": built["rustc"],
        "DUCC0": ducc0.__version__,
        "FINUFFT": finufft.__version__,
        "BART": said("bart", "version"),
        "gcc": said("gcc", "-dumpfullversion"),
    }


def today():
    return datetime.date.today().isoformat()
