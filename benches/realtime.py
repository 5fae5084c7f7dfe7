"""Real time: each frame has its own trajectory. A frame is its plan, or a new trajectory for a plan, and gridding.

Gridding is the adjoint of all coils, with density weights that are given (a ramp; all frames have the same, because
spokes are turned only). recon takes the weights with the plan. The others get weighted samples: numpy multiplies, which
is timed. All sides transform the coils in one call.
"""

import numpy as np

import cases
import measure
import peers
import plans
import recon_library
from cases import PLAN, TRAJECTORY


def gridding_with_new_plans(session, frame, weights, threads, precision, tolerance):
    def run(k, data, image):
        plan = recon_library.Plan(
            session.library, frame.dims, k, threads, tolerance, coils=frame.coils, weights=weights
        )
        weighted_adjoint(session.library, plan, data, image)

    return run


def gridding_with_new_trajectories(session, frame, weights, threads, precision, tolerance):
    plan = None

    def run(k, data, image):
        nonlocal plan
        if plan is None:
            plan = recon_library.Plan(
                session.library, frame.dims, k, threads, tolerance, coils=frame.coils, weights=weights
            )
        else:
            plan.set_trajectory(k, weights)
        weighted_adjoint(session.library, plan, data, image)

    return run


def weighted_adjoint(library, plan, data, image):
    library.call("recon_weighted_fhd", plan.handle, library.address(data), library.address(image))


def ducc_with_new_plans(session, frame, weights, threads, precision, tolerance):
    weighted = np.zeros((frame.coils, weights.size), peers.COMPLEX[precision])

    def run(k, data, image):
        plan = peers.ducc_plan(frame.dims, k, True, tolerance, threads)
        np.multiply(data, weights, out=weighted)
        plan.nu2u(forward=False, points=weighted, out=image)

    return run


def fin_with_new_plans(session, frame, weights, threads, precision, tolerance, oversampling=0.0):
    weighted = np.zeros((frame.coils, weights.size), peers.COMPLEX[precision])

    def run(k, data, image):
        plan = peers.fin_plan(frame.dims, k, True, precision, tolerance, threads, oversampling, frame.coils)
        np.multiply(data, weights, out=weighted)
        plan.execute(weighted, out=image)

    return run


def fin_with_new_points(session, frame, weights, threads, precision, tolerance, oversampling=0.0):
    weighted = np.zeros((frame.coils, weights.size), peers.COMPLEX[precision])
    plan = peers.fin_plan(frame.dims, None, True, precision, tolerance, threads, oversampling, frame.coils)

    def run(k, data, image):
        plan.setpts(*k)
        np.multiply(data, weights, out=weighted)
        plan.execute(weighted, out=image)

    return run


# For each side: how a frame begins, and what makes the function of a frame.
WAYS = {
    "recon": ((PLAN, gridding_with_new_plans), (TRAJECTORY, gridding_with_new_trajectories)),
    "DUCC0": ((PLAN, ducc_with_new_plans),),
    "FINUFFT": ((PLAN, fin_with_new_plans), (TRAJECTORY, fin_with_new_points)),
}
# The coordinates of a frame in the format of each side. Conversions are not timed.
COORDINATES = {"recon": list, "DUCC0": peers.ducc_coordinates, "FINUFFT": peers.fin_coordinates}


def measure_all(session):
    """Yields ("realtime", rows) for each number of threads."""
    frame = cases.REALTIME
    shape = (frame.spokes * frame.frames, frame.readout, cases.SPOKES_GOLDEN)
    spokes = session.library.trajectory("radial2d", 2, *shape)
    samples = frame.spokes * frame.readout
    k = [[np.ascontiguousarray(axis.reshape(frame.frames, samples)[f]) for axis in spokes] for f in range(frame.frames)]
    weights = np.hypot(*k[0]).astype(np.float32)
    data = measure.random_complex(session.random, (frame.frames, frame.coils, samples))
    # The error is that of the last frame, which is what the output holds after a turn.
    last = peers.Transform(frame.dims, k[-1], "adjoint", data[-1] * weights, session.threads[0])
    reference = measure.Reference(last, session.checked, session.random)
    for threads in session.threads:
        measure.progress(f"{frame.name}, threads: {threads}")
        candidates = list(sweep(session, frame, k, data, weights, threads))
        rows = session.rows([c for _, c in candidates], reference.error, case=frame.name, threads=threads)
        yield "realtime", [
            {**row, "way": way, "frames_per_s": 1e3 * frame.frames / row["median_ms"]}
            for (way, _), row in zip(candidates, rows)
        ]


def sweep(session, frame, k, data, weights, threads):
    """Yields (way, candidate) for every side, way and setting. A run of a candidate is all frames."""
    for side, ways in WAYS.items():
        coordinates = [COORDINATES[side](axes) for axes in k]
        for way, make in ways:
            if side == "recon" and way == TRAJECTORY and not plans.takes_trajectories(session.library):
                plans.leave_out_trajectories(session)
                continue
            for setting in frame.settings(side, session.quick):
                image = np.zeros((frame.coils, *frame.dims[::-1]), np.complex64)
                grid = make(session, frame, weights, threads, *setting)
                text = peers.setting_text(*setting)
                run = frames(grid, coordinates, data, image)
                yield way, peers.Candidate(side, text, *setting[:2], run, image, 0.0, *setting[2:])


def frames(grid, coordinates, data, image):
    """Returns a function that grids all frames, one after the other."""

    def run():
        for of_frame, samples in zip(coordinates, data):
            grid(of_frame, samples, image)

    return run
