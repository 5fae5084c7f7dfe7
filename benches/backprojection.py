"""Filtered backprojection beside gridding, both recon's, with the scan of Schiwietz et al. 2006.

The weights of gridding are given, so that both only transform. The error is that of the image from the phantom's own
image, which neither can reach: k-space ends.
"""

import numpy as np

import cases
import measure
import peers
import recon_library
from cases import BACKPROJECTION

GRIDDING, FILTERED = "gridding", "backprojection"


def measure_all(session):
    """Yields ("backprojection", rows) for each number of threads."""
    case, library = BACKPROJECTION, session.library
    k = library.trajectory("radial2d", 2, case.spokes, case.readout, cases.SPOKES_LINEAR)
    kspace, _ = library.phantom(case.dims, k, 1)
    kspace = np.repeat(kspace, case.coils, axis=0)
    truth = library.phantom_image(case.dims)
    weights = np.hypot(*k).astype(np.float32)
    for threads in session.threads:
        measure.progress(f"{case.name}, threads: {threads}")
        candidates = list(both(library, k, kspace, weights, threads))
        error = lambda image: measure.relative(image[0], truth)
        yield "backprojection", session.rows(candidates, error, case=case.name, threads=threads)


def both(library, k, kspace, weights, threads):
    case = BACKPROJECTION
    plan = recon_library.Plan(library, case.dims, k, threads, case.tolerance, coils=case.coils, weights=weights)
    for side, run in ((GRIDDING, plan.grid), (FILTERED, plan.fbp)):
        image = np.zeros((case.coils, *case.dims[::-1]), np.complex64)
        yield peers.Candidate(
            side, "Ram-Lak" if run == plan.fbp else "ramp weights", "f32", case.tolerance, bound(run, kspace, image),
            image, 0.0
        )  # fmt: skip


def bound(run, kspace, image):
    return lambda: run(kspace, image)
