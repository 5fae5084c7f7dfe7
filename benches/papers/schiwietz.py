"""The experiments of Schiwietz et al. 2006: FFTs, and gridding and backprojection of radial data on CPU and GPU.

    schiwietz.py [--quick] [--no-gpu] [--build DIR] [--output DIR]

The page has the paper's tables 2 and 3, the times of transfers, the quality of the images (figure 6), and the energy of
some images. The FFTs are measured by examples/paper_ffts.rs, because the C API has no FFT.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

# harness makes the modules of the folder above importable.
from harness import Page, Session, percent_and_psnr, progress, relative, require, scaled

import power
import recon_library
from cases import SPOKES_LINEAR
from measure import direct_adjoint, random_complex, voxel_positions

N, DIMS, READOUT = 256, (256, 256), 512
TOLERANCE = 1e-3
# RMS of the samples over RMS of the noise, as in docs/method.md.
SNR = 100.0
# Voxels at which images are compared with sums in double precision.
CHECKED = 60
# Bounds for the relative errors. Gridding has the tolerance as its error. Backprojection has rounding errors only, also
# of the coordinates in single precision, which define the directions of the spokes.
BOUNDS = {"gridding": 2 * TOLERANCE, "backprojection": 1e-4}
METHODS = {"backprojection": recon_library.Plan.fbp, "gridding": recon_library.Plan.grid}
# Semi-axis and the positions of the holes in a phantom of water.
WATER, HOLES = 0.85, ((0.16, -0.5), (0.12, -0.2), (0.08, 0.05), (0.05, 0.25), (0.03, 0.4), (0.02, 0.52))
# Table 2: milliseconds of FFTW and of the paper's GPU.
PAPER_FFTS = {256: (2, 2), 512: (15, 8), 1024: (66, 38)}
# Milliseconds of the download of one image.
PAPER_DOWNLOAD = 0.4
STONE = (128, 1176, 242)
STONE_ITERATIONS, STONE_TOLERANCE = 60, 1e-4


def water_phantom():
    """Returns the shapes of a disc of water with rows of holes, [shape, 10] as in recon_phantom_kspace."""
    shapes = [(1.0, 0.0, 0.0, WATER)]
    for y, density in ((0.35, -1.0), (0.0, -0.5), (-0.35, 0.5)):
        shapes += [(density, x, y, radius) for radius, x in HOLES]
    return np.array([(density, x, y, 0, radius, radius, 1, 0, 0, 0) for density, x, y, radius in shapes], np.float64)


@dataclass
class Scan:
    """One of the paper's two scans, with the paper's milliseconds by method on (CPU, GPU), and of the upload."""

    name: str
    spokes: int
    coils: int
    shapes: np.ndarray | None
    noisy: bool
    paper: dict
    paper_upload: float
    k: list = field(init=False)

    def make(self, session):
        """Computes trajectory, density weights, k-space, and the true root of the sum of squares."""
        library = self.library = session.library
        self.k = library.trajectory("radial2d", 2, self.spokes, READOUT, SPOKES_LINEAR)
        # The area of a sample. The sample at the centre stands for the integral of |k| near it (Euler and Maclaurin).
        radius = np.hypot(*(axis.astype(np.float64) for axis in self.k))
        radius.reshape(self.spokes, READOUT)[:, READOUT // 2] = 1 / (6 * READOUT)
        self.weights = radius.astype(np.float32)
        geometry = self.geometry()
        shapes, count = library.ffi.NULL, 0
        if self.shapes is not None:
            shapes, count = library.address(self.shapes), len(self.shapes)
        self.kspace = np.full((self.coils, self.k[0].size), np.nan, np.complex64)
        library.call("recon_phantom_kspace", geometry, shapes, count, recon_library.COILS_RING, 0,
                     library.address(self.kspace))  # fmt: skip
        if self.noisy:
            noise = random_complex(session.random, self.kspace.shape)
            noise *= np.linalg.norm(self.kspace) / np.linalg.norm(noise) / SNR
            self.kspace = (self.kspace + noise).astype(np.complex64)
        maps = np.full((self.coils, N, N), np.nan, np.complex64)
        library.call("recon_phantom_coil_maps", geometry, library.address(maps))
        truth = np.full((N, N), np.nan, np.complex64)
        library.call("recon_phantom_image", geometry, shapes, count, 4, library.address(truth))
        self.truth = np.abs(truth) * np.sqrt((np.abs(maps) ** 2).sum(axis=0))
        return self

    def geometry(self):
        return self.library.geometry(DIMS, self.k, self.coils)

    def plan(self, **arguments):
        """Returns a plan that makes one image per coil."""
        return recon_library.Plan(
            self.library, DIMS, self.k, tolerance=TOLERANCE, coils=self.coils, weights=self.weights, **arguments
        )

    def spoke_areas(self):
        """Returns the areas in double precision, [spoke, sample]."""
        return self.weights.reshape(self.spokes, READOUT).astype(np.float64)


def scans():
    return [
        Scan("phantom", 504, 3, water_phantom(), False, {"backprojection": (16700, 130), "gridding": (730, 200)}, 6.2),
        Scan("head", 248, 4, None, True, {"backprojection": (8400, 60), "gridding": (600, 170)}, 4.4),
    ]


class HostArrays:
    """Reconstruction by calls of the C API for arrays in the host's memory, on a CPU or on a GPU."""

    def __init__(self, scan, **arguments):
        self.scan, self.library, self.plan = scan, scan.library, scan.plan(**arguments)
        self.geometry = scan.geometry()
        self.coil_images = np.full((scan.coils, N, N), np.nan, np.complex64)
        self.image = np.full((N, N), np.nan, np.complex64)

    def coil_images_of(self, method, kspace):
        """Returns the images of the coils, from an array that was poisoned."""
        self.coil_images.fill(np.nan)
        METHODS[method](self.plan, kspace, self.coil_images)
        return self.coil_images.copy()

    def combine(self):
        address = self.library.address
        self.library.call("recon_combine", self.geometry, 0, address(self.coil_images), address(self.image))

    def reconstruct(self, method):
        METHODS[method](self.plan, self.scan.kspace, self.coil_images)
        self.combine()

    def result(self, method):
        """Returns the combined image, in an array that was poisoned."""
        self.image.fill(np.nan)
        self.reconstruct(method)
        return self.image.real.copy()

    def combined(self):
        """Returns the root of the sum of squares of the present images of the coils."""
        self.combine()
        return self.image.real


class DeviceArrays:
    """Reconstruction with arrays in the GPU's memory. Only k-space is uploaded, and only one image is downloaded."""

    def __init__(self, session, scan):
        import cupyx

        self.scan, self.session, self.stream = scan, session, session.stream
        self.plan = scan.plan(gpus=[0], stream=self.stream.ptr)
        with self.stream:
            self.kspace = session.cupy.asarray(scan.kspace)
            self.coil_images = session.poisoned((scan.coils, N, N))
            self.image = session.poisoned((N, N), np.float32)
        # The driver copies from and to pinned memory without an intermediate copy.
        self.pinned_kspace = cupyx.empty_pinned(scan.kspace.shape, np.complex64)
        self.pinned_kspace[...] = scan.kspace
        self.pinned_image = cupyx.empty_pinned((N, N), np.float32)
        self.root_sum_of_squares = session.module("schiwietz.cu").get_function("root_sum_of_squares")
        self.stream.synchronize()

    def coil_images_of(self, method, kspace):
        """Returns the images of the coils, from an array that was poisoned."""
        with self.stream:
            data = self.session.cupy.asarray(kspace)
            self.coil_images.fill(np.nan)
            METHODS[method](self.plan, data, self.coil_images)
            return self.session.cupy.asnumpy(self.coil_images)

    def combine(self):
        with self.stream:
            self.root_sum_of_squares(
                (N * N // 256,), (256,), (self.coil_images, self.image, np.uint32(N * N), np.uint32(self.scan.coils))
            )

    def compute(self, method):
        """Queues the reconstruction of data on the GPU."""
        METHODS[method](self.plan, self.kspace, self.coil_images)
        self.combine()

    def upload(self, source=None):
        self.kspace.set(self.pinned_kspace if source is None else source, stream=self.stream)
        self.stream.synchronize()

    def download(self, target=None):
        self.image.get(stream=self.stream, out=self.pinned_image if target is None else target)
        self.stream.synchronize()

    def reconstruct(self, method):
        """Uploads k-space, reconstructs, and downloads the image."""
        self.kspace.set(self.pinned_kspace, stream=self.stream)
        self.compute(method)
        self.download()

    def result(self, method):
        """Returns the combined image, in an array that was poisoned."""
        with self.stream:
            self.image.fill(np.nan)
        self.reconstruct(method)
        return np.array(self.pinned_image)

    def combined(self):
        """Returns the root of the sum of squares of the present images of the coils."""
        self.combine()
        with self.stream:
            return self.session.cupy.asnumpy(self.image)


def exact_coil_images(scan, method, kspace, voxels):
    """Returns the images of the coils at some voxels, [coils, voxels], in double precision and without the library.

    Gridding is the weighted sum over all samples. Backprojection is the sum over spokes of the filtered projection by
    linear interpolation between its knots, as docs/method.md defines them. The scale is not that of the library.
    """
    places = voxel_positions(DIMS, voxels)
    areas = scan.spoke_areas()
    if method == "gridding":
        k = [axis.astype(np.float64) for axis in scan.k]
        return np.array([direct_adjoint(k, places, areas.ravel() * values.astype(np.complex128)) for values in kspace])
    x, y = (axis.astype(np.float64) for axis in places)
    coordinates = np.stack(scan.k, axis=1).astype(np.float64).reshape(scan.spokes, READOUT, 2)
    found = np.zeros((scan.coils, len(voxels)), np.complex128)
    for spoke in range(scan.spokes):
        start, end = coordinates[spoke, 0], coordinates[spoke, -1]
        step = np.linalg.norm(end - start) / (READOUT - 1)
        direction = (end - start) / np.linalg.norm(end - start)
        k = start @ direction + step * np.arange(READOUT)
        spacing = np.abs(direction).max() / 2
        place = (x * direction[0] + y * direction[1]) / spacing
        left = np.floor(place)
        data = kspace[:, spoke * READOUT : (spoke + 1) * READOUT] * (areas[spoke] / np.sinc(k * spacing) ** 2)
        knots = [data @ np.exp(2j * np.pi * spacing * np.outer(k, left + side)) for side in (0, 1)]
        found += knots[0] + (place - left) * (knots[1] - knots[0])
    return found


def check(session, scan, sides):
    """Ends the run unless the images of fresh random data by each side agree with sums in double precision.

    Returns the largest error of each method.
    """
    voxels = session.random.choice(N * N, CHECKED // 3 if session.quick else CHECKED, replace=False)
    kspace = random_complex(session.random, scan.kspace.shape)
    largest = dict.fromkeys(METHODS, 0.0)
    for method in METHODS:
        exact = exact_coil_images(scan, method, kspace, voxels)
        for name, side in sides.items():
            images = side.coil_images_of(method, kspace)
            found = images.reshape(scan.coils, -1)[:, voxels].astype(np.complex128)
            error = relative(scaled(found, exact), exact)
            require(error, BOUNDS[method], f"{method} of the {scan.name}, {name}")
            largest[method] = max(largest[method], error)
            squares = np.sqrt((np.abs(images.astype(np.complex128)) ** 2).sum(axis=0))
            require(relative(side.combined(), squares), 1e-6, f"root of the sum of squares, {name}")
            again = side.coil_images_of(method, kspace)
            require(float((images != again).mean()), 0.0, f"{method} of the {scan.name}, {name}, a second run")
    return largest


def ffts(session, page):
    """Writes the section of table 2, by the example paper_ffts."""
    program = session.programs / "examples" / "paper_ffts"
    if not program.exists():
        session.leave_out(
            "the FFTs of table 2", f"{program.name} is not built: cargo build --release --example {program.name}"
        )
        return
    arguments = [str(session.threads), *(["--quick"] if session.quick else []), *([] if session.cupy else ["--no-gpu"])]
    # NVRTC and cuFFT may be in CuPy's packages, which the loader does not search.
    folders = [str(path) for entry in sys.path for path in Path(entry or ".").glob("nvidia/*/lib")]
    found = [*folders, *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    environment = dict(os.environ, LD_LIBRARY_PATH=":".join(found))
    done = subprocess.run([program, *arguments], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    rows = []
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    for line in lines:
        n, signals = line["size"], line["signals"]
        paper = PAPER_FFTS[n] if signals == 1 else ("-", f"{PAPER_FFTS[n][1] / 2:g} (by the text)")
        cell = lambda key: "-" if line[key] is None else f"{line[key]:.3g}"
        rows.append(
            (f"{n}^2", "one" if signals == 1 else "two at once", paper[0], cell("rustfft_ms"),
             f"{numpy_fft_ms(session, n):.3g}" if signals == 1 else "-", cell("recon_one_ms"), cell("recon_all_ms"),
             paper[1], cell("recon_gpu_ms"), cell("cufft_ms"))
        )  # fmt: skip
    if session.cupy:
        for reason in sorted({line[key] for line in lines for key in ("no_gpu", "no_cufft")} - {""}):
            session.leave_out("some FFTs of table 2 on the GPU", reason)
    page.section(
        "FFTs (table 2)",
        "Milliseconds of the FFT of a complex 2D signal in single precision. Data are in the memory of the device, "
        "and plans exist. If two signals are transformed at once, the time is that of one of them. All results are "
        "compared with an FFT in double precision before they are timed.\n\n"
        "Differences from the paper:\n"
        "- The paper's CPU is a Pentium 4 of 3 GHz with FFTW, and its GPU a Radeon X1800 XT, programmed by pixel "
        "shaders. Each of the log2 N steps of an axis renders the whole image, with factors and positions from a "
        "table, and a last step sorts.\n"
        "- On a CPU, this library transforms one line per lane of a vector. On a GPU, a block keeps whole lines in "
        "shared memory, with radices up to 16. An axis is one pass over the image. The same pass also moves the "
        "origin from the middle of the image and multiplies by the correction of the window. rustfft and cuFFT leave "
        "both to their callers.\n"
        "- rustfft and numpy use one thread. rustfft transforms contiguous lines only, so the signal is transposed "
        "for the second axis and back.",
    )
    threads = lines[0]["threads"]
    page.table(
        ("size", "signals", "paper, FFTW", "rustfft", "numpy", "recon, 1 thread", f"recon, {threads} threads",
         "paper, GPU", "recon, GPU", "cuFFT"), rows,
    )  # fmt: skip


def numpy_fft_ms(session, n):
    signal = random_complex(session.random, (n, n)).astype(np.complex64)
    require(relative(np.fft.fft2(signal), np.fft.fft2(signal.astype(np.complex128))), 2e-6, "numpy's FFT")
    return session.wall_ms(lambda: np.fft.fft2(signal))


def reconstructions(session, page, all_scans):
    """Writes the sections of table 3, of transfers, and of figure 6."""
    rows, quality, transfers, info, largest = [], [], [], None, dict.fromkeys(METHODS, 0.0)
    for scan in all_scans:
        progress(f"reconstructions: {scan.name}")
        counts = sorted({1, session.threads})
        sides = {f"CPU, {threads} threads": HostArrays(scan, threads=threads) for threads in counts}
        on_cpu = list(sides.values())
        if session.cupy:
            sides["GPU, host arrays"] = HostArrays(scan, gpus=[0])
            sides["GPU, device arrays"] = DeviceArrays(session, scan)
        for method, error in check(session, scan, sides).items():
            largest[method] = max(largest[method], error)
        info = info or on_cpu[0].plan.info()
        for method in METHODS:
            paper = scan.paper[method]
            cpu = [session.wall_ms(lambda side=side: side.reconstruct(method)) for side in on_cpu]
            gpu, ratio = ["-"] * 3, "-"
            image = on_cpu[-1].result(method)
            found = [percent_and_psnr(image, scan.truth)]
            if session.cupy:
                hosts, devices = sides["GPU, host arrays"], sides["GPU, device arrays"]
                with_copies = session.wall_ms(lambda: devices.reconstruct(method))
                without = session.gpu_ms(lambda: devices.compute(method))
                milliseconds = (without, with_copies, session.wall_ms(lambda: hosts.reconstruct(method)))
                gpu = [f"{ms:.3g}" for ms in milliseconds]
                ratio = f"{cpu[-1] / without:.1f}, {cpu[-1] / with_copies:.1f}"
                on_gpu = devices.result(method)
                found += [percent_and_psnr(on_gpu, scan.truth), relative(on_gpu, image)]
            rows.append((scan.name, method, paper[0], *(f"{ms:.3g}" for ms in cpu), paper[1], *gpu,
                         f"{paper[0] / paper[1]:.1f}", ratio))  # fmt: skip
            cells = [f"{q[0]:.1f} %, {q[1]:.1f} dB" for q in found[:2]] + ["-"] * (2 - len(found[:2]))
            quality.append((scan.name, method, *cells, f"{found[2]:.1e}" if len(found) > 2 else "-"))
        combine_ms = session.wall_ms(on_cpu[0].combine)
        transfers += transfer_rows(session, scan, sides.get("GPU, device arrays"), combine_ms)
    write_times(page, rows, counts, info, largest)
    page.section(
        "Transfers and combination",
        "Milliseconds of the steps around a reconstruction. The paper uploads k-space and downloads one image, and "
        "states both apart from table 3. Pinned memory is locked by the driver, which copies it directly. Other "
        "memory is copied through a buffer. recon_combine computes the root of the sum of squares on one thread of "
        "the CPU, in double precision. On the GPU it is a kernel of this experiment in single precision. `recon grid "
        "--combine rss` and `recon fbp --combine rss` call the same function as recon_combine.",
    )
    page.table(("step", "paper", "GPU, pinned memory", "GPU, other memory", "on the CPU"), transfers)
    page.section(
        "Images (figure 6)",
        "Errors of the combined image from the truth: the phantom's own image times the root of the sum of squares "
        "of the coil sensitivities. The error is the percent error of Stone et al. 2008 at the best scale. No method "
        "can reach the truth, because k-space ends. The paper shows images and states that backprojection is "
        "identical on CPU and GPU, while gridding is slightly different. A likely reason is that its GPU gathers "
        "three samples per cell, whereas the usual method on a CPU distributes them. Here, both devices compute the "
        "same sums in both methods, and only the order of operations differs. The last column is the relative l2 "
        "difference of both images. Images of one device have the same bits in each run. "
        "[method.md](../method.md#filtered-backprojection) compares the filters of backprojection, even and golden "
        "angles, on the same head (`cargo run --release --example schiwietz_table`).",
    )
    page.table(("scan", "method", "CPU", "GPU", "difference of CPU and GPU"), quality)


def transfer_rows(session, scan, devices, combine_ms):
    """Returns the rows of a scan: upload, download and combination."""
    pinned, other = {}, {}
    if devices:
        pageable = np.empty((N, N), np.float32)
        pinned = {"upload": session.wall_ms(devices.upload), "download": session.wall_ms(devices.download),
                  "combine": session.gpu_ms(devices.combine)}  # fmt: skip
        other = {"upload": session.wall_ms(lambda: devices.upload(scan.kspace)),
                 "download": session.wall_ms(lambda: devices.download(pageable))}  # fmt: skip
    cell = lambda times, step: f"{times[step]:.2g}" if step in times else "-"
    size = f"{scan.kspace.nbytes / 2**20:.1f} MiB"
    rows = [
        (f"{scan.name}: upload of k-space, {size}", scan.paper_upload, cell(pinned, "upload"), cell(other, "upload"),
         "-"),
        (f"{scan.name}: root of the sum of squares, {scan.coils} coils", "not stated", cell(pinned, "combine"), "-",
         f"{combine_ms:.2g}"),
    ]  # fmt: skip
    download = (f"download of one image, {N}^2", PAPER_DOWNLOAD, cell(pinned, "download"), cell(other, "download"), "-")
    return rows if scan.name == "phantom" else [*rows, download]


def write_times(page, rows, counts, info, largest):
    """Writes the section of table 3."""
    page.section(
        "Reconstructions (table 3)",
        f"Milliseconds from k-space to one image of {N}^2 voxels: density compensation, transform, and root of the "
        "sum of squares of the coils. Plans exist, so that the creation of tables is not counted. The times of the "
        "GPU:\n"
        "- *data on it*: k-space and image are in its memory; by CUDA events.\n"
        "- *with transfers*: k-space is uploaded from pinned memory and one image is downloaded; by the wall clock.\n"
        "- *by the C API alone*: arrays are in the host's memory. recon_fbp or recon_grid downloads the images of "
        "all coils, and recon_combine combines them on the CPU; by the wall clock.\n\n"
        "Differences from the paper:\n"
        "- The paper's processor is a Pentium 4 of 3 GHz, its GPU a Radeon X1800 XT programmed by pixel shaders.\n"
        "- The paper measured a phantom and a head with a 1.5 T scanner. Here the phantom is a simulated disc of "
        "water with three rows of holes and inserts, without noise. The head is the Shepp-Logan phantom with "
        f"white noise of a {SNR:.0f}th of the samples' RMS. The coils of both are simulated, around the field of "
        "view. Times do not depend on the values.\n"
        "- The scans have the paper's numbers of spokes (504 and 248), samples and coils. The caption of figure 6 "
        "says 511 spokes for the phantom.\n"
        "- The paper's gridding on a GPU draws each spoke three cells wide. Each cell in this strip gathers the "
        "three nearest samples of the spoke, weighted by a table of the Kaiser-Bessel window over the distance. The "
        "usual method on a CPU, which it cites, distributes each sample to 3 x 3 cells. Here, both devices add each "
        f"sample to all cells of a separable window, a polynomial along each axis, {info.width} cells wide on a grid "
        f"{info.oversampling:.2f} times as large as the image. The error compared with exact sums is below "
        f"{TOLERANCE:.0e}, and the density weights are areas of k-space, |k|.\n"
        "- The paper's backprojection interpolates between the points of an FFT of each spoke. Here the projections "
        "have knots at most half a voxel apart, along the axis that is nearer to the spoke: on the CPU by the chirp "
        "z-transform, on the GPU by direct sums. The filter is corrected for the interpolation.\n"
        "- Before they are timed, both methods on all devices are compared with sums in double precision by numpy, "
        f"of random data. The largest relative error of gridding is {largest['gridding']:.1e}, and of backprojection "
        f"{largest['backprojection']:.1e}. A second run must give the same bits.",
    )  # fmt: skip
    name = lambda threads: f"CPU: recon, {threads} thread{'s' if threads > 1 else ''}"
    page.table(
        ("scan", "method", "CPU: paper", *(name(threads) for threads in counts), "GPU: paper",
         "GPU: recon, data on it", "with transfers", "by the C API alone", "CPU / GPU: paper",
         "recon, without and with transfers"), rows,
    )  # fmt: skip


def stone_case(session, **arguments):
    """Returns a function that reconstructs the scan of Stone et al. 2008, with its plan, from and to the host."""
    n, spokes, readout = (size // 2 for size in STONE) if session.quick else STONE
    dims, library = (n, n, n), session.library
    k = library.trajectory("radial3d", 3, spokes, readout)
    kspace, _ = library.phantom(dims, k, 1)
    image = np.full(dims, np.nan, np.complex64)

    def work():
        plan = recon_library.Plan(library, dims, k, tolerance=STONE_TOLERANCE, **arguments)
        plan.cg(kspace, image, STONE_ITERATIONS)

    return f"CG, {k[0].size:,} samples to {n}^3, {STONE_ITERATIONS} iterations", work


def energy(session, page, scan):
    """Writes the section of power: gridding, backprojection and conjugate gradients on CPU and GPU."""
    progress("energy")
    cpu = HostArrays(scan)
    gpu = DeviceArrays(session, scan) if session.cupy else None
    nothing = lambda: None
    cases = []
    for method in METHODS:
        cases.append((f"{method}, {scan.name}", "CPU", lambda method=method: cpu.reconstruct(method), nothing))
        if gpu:
            cases.append((f"{method}, {scan.name}", "GPU", lambda method=method: gpu.reconstruct(method), nothing))
    name, work = stone_case(session)
    cases.append((name, "CPU", work, nothing))
    if gpu:
        # Keeps the context of the GPU and the threads between plans, as a program with several plans does.
        cases.append((name, "GPU", stone_case(session, gpus=[0])[1], nothing))
    power.section(
        page, cases,
        "The paper does not measure power. The same images as above are computed with all threads of the CPU, and on "
        "the GPU with upload and download. In addition, the scan of Stone et al. 2008 is reconstructed by conjugate "
        "gradients, including plan and Q, with arrays in the host's memory.",
    )  # fmt: skip


def main():
    session = Session(__doc__)
    page = Page(
        session, "schiwietz", "Schiwietz et al. 2006: gridding and backprojection on a GPU",
        "Schiwietz, Chang, Speier and Westermann, \"MR image reconstruction using the GPU\", Proc. SPIE 6142:61423T, "
        "2006. Radial data of several coils are reconstructed by gridding and by filtered backprojection, on a CPU "
        "and on a GPU that is programmed by a graphics interface. Medians of several runs; the first run of each is "
        "not counted.",
    )  # fmt: skip
    all_scans = [scan.make(session) for scan in scans()]
    if not session.cupy:
        session.leave_out("FFTs, reconstructions, transfers and energy on a GPU")
    ffts(session, page)
    reconstructions(session, page, all_scans)
    energy(session, page, all_scans[0])
    page.write()


main()
