"""Plans: the cost of creating one, and of setting a new trajectory.

Each side creates the plan of its fastest setting at an error, for this number of threads. A plan of recon is used for
the adjoint and the forward transform. By its documentation, a plan of DUCC0 can be used for both, but it is optimised
for the one given at its creation. The transforms were measured like that, so both of its plans are timed. A plan of
FINUFFT has a type: the one for the adjoint (type 1) is timed, with its points set.

A new trajectory has as many samples as the old one. DUCC0 needs a new plan for it.

Each side makes its plan twice in a turn, and the second time counts (`measure.alternate` says why).
"""

import itertools

import measure
import peers
import recon_library
from cases import PLAN, TRAJECTORY
from rows import fastest


def takes_trajectories(library):
    """Returns whether a plan of this library accepts a new trajectory."""
    known = hasattr(library.functions, "recon_plan_set_trajectory")
    return known and hasattr(recon_library.Plan, "set_trajectory")


def leave_out_trajectories(session):
    session.leave_out("a new trajectory for a plan (this library has no recon_plan_set_trajectory)")


def measure_plans(session, case, k, threads, transforms):
    """Yields ("plans", rows) for each error of a case. `transforms` are the rows of its transforms."""
    at = [row for row in transforms if row["threads"] == threads]
    adjoint = [row for row in at if row["operation"] == "adjoint"]
    forward = [row for row in at if row["operation"] == "forward"]
    for error in case.errors:
        # The setting of recon's one plan is the adjoint's.
        winners = {side: fastest(adjoint, side, error) for side in peers.SIDES}
        chosen = [("adjoint", row) for row in winners.values() if row]
        if backward := fastest(forward, "DUCC0", error):
            chosen.append(("forward", backward))
        makers = [maker(session, case, k, threads, operation, row) for operation, row in chosen]
        common = {"case": case.name, "threads": threads, "bound": error}
        yield "plans", timed(session, [(PLAN, *pair) for pair in chosen], makers, common)
        if not takes_trajectories(session.library):
            leave_out_trajectories(session)
        elif winners["recon"]:
            chosen = [("adjoint", row) for row in winners.values() if row]
            setters = [setter(session, case, k, threads, row) for _, row in chosen]
            yield "plans", timed(session, [(TRAJECTORY, *pair) for pair in chosen], setters, common)


def timed(session, chosen, functions, common):
    """Returns one row per function. `chosen` has the task, the operation, and the row of the fastest transform."""
    seconds, others = measure.alternate(session.runs, functions, again=True)
    return [
        {
            **common,
            "what": what,
            "side": won["side"],
            "operation": operation,
            "setting": won["setting"],
            "median_ms": measure.milliseconds(times),
            "transform_ms": won["median_ms"],
            "runs_ms": [round(1e3 * t, 4) for t in times],
            "others": others,
        }
        for (what, operation, won), times in zip(chosen, seconds)
    ]


def maker(session, case, k, threads, operation, won):
    """Returns a function that creates the plan of the row `won`. Coordinates are already in the format of its side."""
    precision, tolerance = won["precision"], won["tolerance"]
    k = [axis.astype(peers.FLOAT[precision], copy=False) for axis in k]
    if won["side"] == "recon":
        return lambda: recon_library.Plan(session.library, case.dims, k, threads, tolerance, coils=case.coils)
    if won["side"] == "DUCC0":
        coordinates = peers.ducc_coordinates(k)
        return lambda: peers.ducc_plan(case.dims, coordinates, operation == "adjoint", tolerance, threads)
    coordinates, settings = peers.fin_coordinates(k), (precision, tolerance, threads, won["oversampling"], case.coils)
    return lambda: peers.fin_plan(case.dims, coordinates, operation == "adjoint", *settings)


def setter(session, case, k, threads, won):
    """Returns a function that sets a different trajectory in the plan of the row `won`: its axes exchanged, or back."""
    precision, tolerance = won["precision"], won["tolerance"]
    k = [axis.astype(peers.FLOAT[precision], copy=False) for axis in k]
    both = [k[::-1], k]
    if won["side"] == "recon":
        plan = recon_library.Plan(session.library, case.dims, k, threads, tolerance, coils=case.coils)
        turns = itertools.cycle(both)
        return lambda: plan.set_trajectory(next(turns))
    if won["side"] == "DUCC0":
        turns = itertools.cycle([peers.ducc_coordinates(axes) for axes in both])
        return lambda: peers.ducc_plan(case.dims, next(turns), True, tolerance, threads)
    settings = (precision, tolerance, threads, won["oversampling"], case.coils)
    turns = itertools.cycle([peers.fin_coordinates(axes) for axes in both])
    plan = peers.fin_plan(case.dims, None, True, *settings)
    return lambda: plan.setpts(*next(turns))
