"""Shared parts of the papers' experiments: arguments, machine, timing, checks and the pages in docs/papers.

Each experiment is a script with a `Session`, which fills a `Page`. Without a GPU (or without CuPy) the parts that need
one are left out, each with a line on the page and on stderr.
"""

import argparse
import datetime
import statistics
import sys
import time
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parent
BENCHES = FOLDER.parent
ROOT = BENCHES.parent
sys.path.insert(0, str(BENCHES))

import machine  # noqa: E402
import recon_library  # noqa: E402


def load_cupy():
    """Returns CuPy and None, or None and the reason why no GPU can be used."""
    try:
        import cupy

        cupy.cuda.runtime.getDeviceCount()
        cupy.zeros(1)
    except ImportError as error:
        return None, f"CuPy is not installed ({error})"
    except Exception as error:  # CuPy has several kinds of error for a missing driver or GPU.
        return None, f"no GPU: {error}"
    return cupy, None


class Session:
    """The arguments of a run, the library, the machine, random numbers, and a GPU if there is one."""

    def __init__(self, description):
        parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("--quick", action="store_true", help="three runs of each measurement, and smaller sizes")
        parser.add_argument("--no-gpu", action="store_true", help="leave out what needs a GPU")
        parser.add_argument("--build", type=Path, default=ROOT / "target", help="cargo's target folder [target]")
        parser.add_argument("--output", type=Path, default=ROOT / "docs" / "papers", help="[docs/papers]")
        self.arguments = parser.parse_args()
        self.quick = self.arguments.quick
        self.runs = 3 if self.quick else 9
        self.programs = self.arguments.build / "release"
        self.library = recon_library.Library(self.programs / "librecon.so", ROOT / "include" / "recon.h")
        seed = int(np.random.SeedSequence().entropy % 2**32)
        self.random = np.random.default_rng(seed)
        self.cupy, self.no_gpu = (None, "--no-gpu was given") if self.arguments.no_gpu else load_cupy()
        self.stream = self.cupy.cuda.Stream(non_blocking=True) if self.cupy else None
        self.threads = machine.cores()
        self.left_out = []
        print(f"random seed {seed}", file=sys.stderr)

    def leave_out(self, what, reason=None):
        """Records that a part is not measured here, and why. Without a reason it is the missing GPU."""
        line = f"left out: {what} ({reason or self.no_gpu})"
        self.left_out.append(line)
        progress(line)

    def machine_lines(self):
        """Returns (name, value) pairs that state the card, the processor and the commit."""
        about = machine.describe()
        built = machine.built_from(ROOT)
        lines = [
            ("date", datetime.date.today().isoformat()),
            ("commit", built["commit"]),
            ("processor", f"{about['cpu']}, {self.threads} cores used"),
        ]
        if self.cupy:
            runtime = self.cupy.cuda.runtime
            properties = runtime.getDeviceProperties(0)
            driver = runtime.driverGetVersion()
            lines += [
                ("GPU", f"{properties['name'].decode()}, {properties['multiProcessorCount']} multiprocessors"),
                ("GPUs", runtime.getDeviceCount()),
                ("CUDA of the driver", f"{driver // 1000}.{driver % 1000 // 10}"),
            ]
        else:
            lines.append(("GPU", f"none used ({self.no_gpu})"))
        return lines

    def module(self, file, options=()):
        """Compiles a CUDA file of this folder behind the kernels' common header, in single precision."""
        source = (ROOT / "kernels" / "common.cuh").read_text() + (FOLDER / file).read_text()
        return self.cupy.RawModule(code=source, options=("-DREAL=float", "-DDOUBLE=0", *options))

    def gpu_ms(self, work, before=None, runs=None):
        """Returns the median milliseconds between CUDA events around `work`, which launches on `stream`.

        `before` runs before each measurement and is not counted. The first run is not counted either, unless it takes
        more than a second: then it is the only one.
        """
        cuda, times = self.cupy.cuda, []
        # The stream does not wait for copies of the input on other streams.
        cuda.Device().synchronize()
        with self.stream:
            for _ in range((runs or self.runs) + 1):
                if before:
                    before()
                start, end = cuda.Event(), cuda.Event()
                start.record(self.stream)
                work()
                end.record(self.stream)
                end.synchronize()
                times.append(cuda.get_elapsed_time(start, end))
                if times[0] > 1000:
                    return times[0]
        return statistics.median(times[1:])

    def wall_ms(self, work, runs=None):
        """Returns the median milliseconds of `work` by the wall clock. The first run is not counted."""
        times = []
        for _ in range((runs or self.runs) + 1):
            started = time.perf_counter()
            work()
            times.append(1e3 * (time.perf_counter() - started))
        return statistics.median(times[1:])

    def poisoned(self, shape, dtype=np.complex64, gpu=True):
        """Returns an array of NaN, on the GPU by default."""
        numbers = self.cupy if gpu else np
        return numbers.full(shape, np.nan, dtype)

    def draw_curves(self, page, name, x, curves, x_label, y_label):
        """Draws curves with a logarithmic x axis to NAME.svg beside the page, if matplotlib is installed."""
        try:
            from matplotlib.figure import Figure
        except ImportError:
            self.leave_out(f"the picture {name}.svg", "matplotlib is not installed")
            return
        figure = Figure((6, 4), layout="constrained")
        axes = figure.subplots()
        for label, y in curves.items():
            axes.semilogx(x, y, "o-", label=label, markersize=3)
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        axes.legend()
        self.arguments.output.mkdir(parents=True, exist_ok=True)
        # Without a date and with fixed names, equal curves give equal files.
        figure.savefig(self.arguments.output / f"{name}.svg", metadata={"Date": None})
        page.body += ["", f"![{y_label} against {x_label}]({name}.svg)"]


def progress(text):
    print(text, file=sys.stderr, flush=True)


def relative(found, exact):
    """Returns the relative l2 error. NaN stays NaN, which no bound accepts."""
    return float(np.linalg.norm(np.asarray(found) - exact) / np.linalg.norm(exact))


def scaled(found, exact):
    """Returns `found` times the best complex factor."""
    return found * (np.vdot(found, exact) / np.vdot(found, found))


def percent_and_psnr(found, truth):
    """Returns the percent error and the PSNR in dB of Stone et al. 2008, after scaling by the best complex factor."""
    difference = np.abs(scaled(found.ravel(), truth.ravel()) - truth.ravel())
    rms = float(np.sqrt(np.mean(difference**2)))
    return 100 * rms / float(np.sqrt(np.mean(np.abs(truth) ** 2))), 20 * np.log10(float(np.abs(truth).max()) / rms)


def require(error, bound, what):
    """Ends the run unless an error meets its bound. Kernels are checked before they are timed."""
    if not error <= bound:
        sys.exit(f"{what}: the error is {error:.1e}, above {bound:.0e}; its time would mean nothing")


class Page:
    """A page of docs/papers: text, tables, what was left out, and the machine."""

    def __init__(self, session, name, title, intro):
        self.session, self.path = session, session.arguments.output / f"{name}.md"
        self.head = [f"# {title}", "", f"Written by `make papers PAPER={name}`.", "", *paragraph(intro)]
        self.body = []

    def section(self, title, text=""):
        self.body += ["", f"## {title}"]
        if text:
            self.text(text)

    def text(self, text):
        self.body += ["", *paragraph(text)]

    def table(self, header, rows):
        lines = ["| " + " | ".join(map(str, row)) + " |" for row in (header, ["---"] * len(header), *rows)]
        self.body += ["", *lines]
        print("\n".join(lines), "\n", flush=True)

    def write(self):
        lines = [*self.head, "", *(f"- {name}: {value}" for name, value in self.session.machine_lines())]
        lines += [f"- {line}" for line in self.session.left_out]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("\n".join([*lines, *self.body]) + "\n")
        progress(f"wrote {self.path}")


def paragraph(text, width=120):
    """Returns the lines of a text whose paragraphs are separated by blank lines. Lists keep their lines."""
    import textwrap

    lines = []
    for part in text.strip().split("\n\n"):
        items = [" ".join(item.split()) for item in part.split("\n- ")]
        for i, item in enumerate(items):
            bullet = i > 0 or item.startswith("- ")
            item = item.removeprefix("- ")
            indent = "  " if bullet else ""
            lines += textwrap.wrap(
                ("- " if bullet else "") + item, width, subsequent_indent=indent, break_long_words=False,
                break_on_hyphens=False,
            )  # fmt: skip
        lines.append("")
    return lines[:-1]
