"""Growth of the cost with samples, matrix and coils, for recon and DUCC0 at one setting each."""

from dataclasses import replace

import cases
import measure
import peers
from rows import fastest

SIDES = ("recon", "DUCC0")
CHECKED = 64


def settings(session, case):
    """Returns the fastest setting of each side for a case at its loosest error."""
    threads = max(session.threads)
    transform = session.transform(case.dims, case.trajectory(session.library), "adjoint", threads)
    reference = measure.Reference(transform, session.checked, session.random)
    rows = session.rows(peers.sweep(session.library, case, transform, session.quick, SIDES), reference.error)
    best = [fastest(rows, side, max(case.errors)) for side in SIDES]
    return {row["side"]: (row["precision"], row["tolerance"]) for row in best if row}


def points(session):
    """Yields (series, value, settings, case, coils) of every point. Within a series one quantity varies."""
    flat, deep = settings(session, cases.RADIAL2D), settings(session, cases.STONE)
    for name, chosen, case in (("samples, 2D", flat, cases.RADIAL2D), ("samples, 3D", deep, cases.STONE)):
        for factor in cases.GROWTH_FACTORS:
            more = replace(case, sizes=(factor * case.sizes[0], *case.sizes[1:]))
            yield name, factor, chosen, more, 1
    for size in cases.GROWTH_MATRICES:
        yield "matrix, 3D", size, deep, replace(cases.STONE, dims=(size,) * 3), 1
    for coils in cases.GROWTH_COILS:
        yield "coils, 2D", coils, flat, cases.RADIAL2D, coils


def measure_all(session):
    """Yields ("growth", rows) for each point."""
    threads = max(session.threads)
    for series, value, chosen, case, coils in points(session):
        measure.progress(f"growth, {series}: {value}")
        transform = session.transform(case.dims, case.trajectory(session.library), "adjoint", threads, coils)
        reference = measure.Reference(transform, CHECKED, session.random)
        candidates = [peers.SIDES[side](session.library, transform, *setting) for side, setting in chosen.items()]
        yield "growth", session.rows(candidates, reference.error, series=series, value=value, threads=threads)
