"""Energy of some work in joules: of GPUs by their driver (NVML), of the processors by Linux' powercap counters (RAPL).

`section` writes the section "Power" of a page. Only Python's standard library is needed. examples/common/energy.rs
reads the same counters in Rust.
"""

import ctypes
import math
import time
from dataclasses import dataclass
from pathlib import Path

POWERCAP = Path("/sys/class/powercap")
# Counters are updated in steps of up to a tenth of a second, so work is repeated for this many seconds.
ENERGY_SECONDS = 3.0
GPUS, PROCESSORS = "GPUs", "processors"


@dataclass(frozen=True)
class Measurement:
    """Result of repeated work.

    `joules` has the total of each kind of counter, or None if it cannot be read.
    """

    times: int
    seconds: float
    joules: dict

    def text(self, kind, reason=None):
        """Returns the joules of one run and the mean watts, or that they cannot be read here."""
        joules = self.joules[kind]
        if joules is None:
            return f"not readable here ({reason})" if reason else "not readable here"
        return f"{joules / self.times:.3g} J ({self.watts(kind)})"

    def watts(self, kind):
        """Returns the mean power."""
        joules = self.joules[kind]
        return "-" if joules is None else f"{joules / self.seconds:.0f} W"


class EnergyMeter:
    """The counters of some GPUs and of all processors. `reasons` says for each kind why it cannot be read, or None."""

    def __init__(self, session, devices=(0,), folder=POWERCAP):
        self.zones, no_zones = processor_zones(folder)
        self.gpus, no_gpus = [], session.no_gpu
        if session.cupy:
            self.gpus, no_gpus = gpu_counters([session.cupy.cuda.Device(i).pci_bus_id for i in devices])
        self.reasons = {GPUS: no_gpus, PROCESSORS: no_zones}

    def measure(self, work, finish=lambda: None, seconds=ENERGY_SECONDS):
        """Runs `work` for some seconds, at least once, and measures it. `finish` waits for work that is queued."""
        finish()
        times, before, started = 0, self.read(), time.perf_counter()
        while not times or time.perf_counter() - started < seconds:
            work()
            times += 1
        finish()
        passed, after = time.perf_counter() - started, self.read()
        return Measurement(times, passed, {kind: spent(before[kind], after[kind]) for kind in before})

    def joules(self, work, finish=lambda: None):
        """Returns {kind: text}: the joules of one run and the mean watts, or why they cannot be read here."""
        measured = self.measure(work, finish)
        return {kind: measured.text(kind, reason) for kind, reason in self.reasons.items()}

    def read(self):
        """Returns (joules, range) of each counter of a kind. A counter begins again at 0 after its range."""
        return {
            GPUS: [(gpu(), math.inf) for gpu in self.gpus],
            PROCESSORS: [(microjoules(zone / "energy_uj"), zone_range) for zone, zone_range in self.zones],
        }


def spent(before, after):
    """Returns the joules between two readings of the counters of a kind, or None if one of them is missing."""
    if not before or any(value is None for value, _ in before + after):
        return None
    total = sum(b - a if b >= a else b - a + most for (a, most), (b, _) in zip(before, after))
    # A counter without a range began again, as after a reset of the device.
    return total if math.isfinite(total) else None


def processor_zones(folder=POWERCAP):
    """Returns [(zone, range in joules)], or an empty list and the reason.

    The zones are packages, which include their cores, and memory, which packages do not include.
    """
    zones, unreadable = [], None
    for zone in sorted(folder.glob("intel-rapl:*")):
        try:
            name = (zone / "name").read_text().strip()
            # psys has the whole machine, the packages again among others.
            if not name.startswith("package") and name != "dram":
                continue
            microjoules(zone / "energy_uj", strict=True)
            zones.append((zone, microjoules(zone / "max_energy_range_uj", strict=True)))
        except (OSError, ValueError) as error:
            unreadable = error
    if unreadable:
        # A part of the packages would look like little energy.
        return [], f"a counter of the processors cannot be read: {unreadable}; usually only root may"
    return zones, None if zones else f"{folder} has no counters of processors, as in most virtual machines"


def microjoules(path, strict=False):
    """Returns a file's microjoules in joules. If it cannot be read, returns None or, if strict, raises the error."""
    try:
        return 1e-6 * int(path.read_text())
    except (OSError, ValueError):
        if strict:
            raise
        return None


def gpu_counters(addresses):
    """Returns for each PCI address a function that reads the joules since the driver started, or [] and the reason.

    NVML counts GPUs differently from CUDA, so they are identified by their PCI addresses.
    """
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError as error:
        return [], f"the driver's library NVML is missing: {error}"
    status = nvml.nvmlInit_v2()
    if status != 0:
        return [], f"NVML does not start: error {status} of nvmlInit"
    counters = []
    for address in addresses:
        device = ctypes.c_void_p()
        status = nvml.nvmlDeviceGetHandleByPciBusId_v2(address.encode(), ctypes.byref(device))
        if status != 0:
            return [], f"NVML does not know the GPU at {address}: error {status}"
        counters.append(gpu_counter(nvml, device))
        if counters[-1]() is None:
            return [], f"the GPU at {address} has no energy counter for this user"
    return counters, None


def gpu_counter(nvml, device):
    """Returns a function that reads the joules of a GPU, or None if the driver refuses."""
    energy = ctypes.c_ulonglong()

    def read():
        status = nvml.nvmlDeviceGetTotalEnergyConsumption(device, ctypes.byref(energy))
        return 1e-3 * energy.value if status == 0 else None

    return read


def section(page, cases, text="", devices=(0,)):
    """Measures each case and writes the section "Power" of a page.

    `cases` are (image, device, work, finish). `finish` waits for work that is queued. `devices` are the GPUs whose
    joules are added up.
    """
    session = page.session
    meter = EnergyMeter(session, devices)
    seconds = ENERGY_SECONDS / 6 if session.quick else ENERGY_SECONDS
    idle = meter.measure(lambda: time.sleep(0.02), seconds=seconds)
    shown = [kind for kind in (GPUS, PROCESSORS) if not meter.reasons[kind]]
    rows = []
    for image, device, work, finish in cases:
        # The first run allocates, compiles and fills caches.
        work()
        measured = meter.measure(work, finish, seconds)
        milliseconds = 1e3 * measured.seconds / measured.times
        each = f"{milliseconds:,.0f} ms" if milliseconds >= 100 else f"{milliseconds:.3g} ms"
        rows.append((image, device, each, *(measured.text(kind) for kind in shown)))
    if shown:
        rows.append(("none, for comparison", "-", "-", *(idle.watts(kind) for kind in shown)))
    page.section("Power", text)
    page.text(
        "Joules of one image, and the mean power in brackets. Images are computed again and again for some seconds. "
        "The counters belong to the whole device: they include its idle power and the work of other programs. While a "
        "GPU computes, a thread of the processor waits for it."
    )
    notes = [f"{kind}: not readable here ({reason})." for kind, reason in meter.reasons.items() if reason]
    if notes:
        page.text("- " + "\n- ".join(notes))
    page.table(("image", "computed on", "time of an image", *(f"energy of the {kind}" for kind in shown)), rows)
