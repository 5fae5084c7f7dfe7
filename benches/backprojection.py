"""Filtered backprojection beside gridding, both recon's, with the scan of Schiwietz et al. 2006.

The weights of gridding are given, so that both only transform. The error is that of the image from the phantom's own
image, which neither can reach: k-space ends.
"""

from functools import partial

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
    for side, setting, reconstruct in ((GRIDDING, "ramp weights", plan.grid), (FILTERED, "Ram-Lak", plan.fbp)):
        image = np.zeros((case.coils, *case.dims[::-1]), np.complex64)
        run = partial(reconstruct, kspace, image)
        yield peers.Candidate(side, setting, "f32", case.tolerance, run, image, 0.0)
