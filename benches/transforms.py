"""NUFFTs at equal measured error, and whether FINUFFT's threads disturb the side that runs next."""

from dataclasses import replace

import cases
import measure
import peers

OPERATIONS = ("adjoint", "forward")


def measure_case(session, case):
    """Yields a list of rows of all sides and settings, for each operation and number of threads."""
    k = case.trajectory(session.library)
    for operation in OPERATIONS:
        transform = session.transform(case.dims, k, operation, session.threads[0])
        reference = measure.Reference(transform, session.checked, session.random)
        for threads in session.threads:
            measure.progress(f"{case.name}, {operation}, threads: {threads}")
            candidates = peers.sweep(session.library, case, replace(transform, threads=threads), session.quick)
            yield session.rows(candidates, reference.error, case=case.name, operation=operation, threads=threads)


def measure_waiting(session):
    """recon's time alone, and right after each peer. The times are alike if the threads of no peer keep spinning."""
    measure.progress("whether peers disturb recon")
    case, threads = cases.RADIAL2D, max(session.threads)
    transform = session.transform(case.dims, case.trajectory(session.library), "adjoint", threads)
    recon, ducc, finufft = (side(session.library, transform, "f32", 1e-4).run for side in peers.SIDES.values())

    def last(*turns):
        return measure.milliseconds(measure.alternate(5 * session.runs, turns)[0][-1])

    return {
        "case": case.name,
        "threads": threads,
        "alone_ms": last(recon),
        "after_ducc0_ms": last(ducc, recon),
        "after_finufft_ms": last(finufft, recon),
    }
