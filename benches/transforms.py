"""NUFFTs at equal measured error, the plans for them, and whether FINUFFT's threads disturb the next side."""

from dataclasses import replace

import cases
import machine
import measure
import peers
import plans

OPERATIONS = ("adjoint", "forward")


def measure_case(session, case):
    """Yields parts of the tables of transforms and plans, as pairs (kind, rows).

    The rows of transforms are those of all sides and settings, for each operation and number of threads.
    """
    if lacking := machine.lacks(case.cores, case.gibibytes):
        session.leave_out(f"{case.name} ({lacking})")
        return
    k = case.trajectory(session.library)
    measured = []
    for operation in OPERATIONS:
        transform = session.transform(case.dims, k, operation, session.threads[0], case.coils)
        reference = measure.Reference(transform, session.checked_of(k[0].size), session.random)
        for threads in session.threads:
            measure.progress(f"{case.name}, {operation}, threads: {threads}")
            rows = measure_transform(session, case, replace(transform, threads=threads), reference)
            measured += rows
            yield "transforms", rows
    for threads in session.threads:
        measure.progress(f"{case.name}, plans, threads: {threads}")
        yield from plans.measure_plans(session, case, k, threads, measured)


def measure_transform(session, case, transform, reference):
    # When this function returns the plans are freed, before those of the next number of threads are made.
    candidates = peers.sweep(session.library, case, transform, session.quick)
    if transform.threads != max(session.threads):
        # Pictures show all settings, at the largest number of threads. At others only those count that can win.
        candidates = session.contenders(candidates, reference.error, case.errors)
    return session.rows(
        candidates, reference.error, case=case.name, operation=transform.operation, threads=transform.threads
    )


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
