"""One case of `make bench-sweep`: the settings of each side that meet the error, and the times of the fastest.

The sides and clocks of a device are in sweep_cpu.py and sweep_gpu.py. A device has:

- `xp`: numpy or CuPy, `runs`: the largest number of rounds, `budget`: about the seconds for one kind of measurement
- `sides`: for each name a `sweep_search.Side`
- `problem(shape, k, operation, random)`: the input in the formats of all sides
- `transform_seconds(function)` and `wall_seconds(function)`
"""

import math
import statistics

import numpy as np

import points
from sums import Reference
from sweep_names import TRANSFORM
from sweep_search import finalists, rounds, search

OPERATIONS = ("adjoint", "forward")


def in_turns(functions, clock, count):
    """Returns the median seconds of each function; all of them take turns. Each has run before."""
    times = [[] for _ in functions]
    for _ in range(count):
        for function, own in zip(functions, times):
            own.append(clock(function))
    return [statistics.median(own) for own in times]


def measure(device, shape, seed):
    """Returns a row for each operation: milliseconds by measurement and side, and settings and errors by side."""
    k = points.coordinates(shape, np.random.default_rng([*seed, len(OPERATIONS)]))
    randoms = [np.random.default_rng([*seed, index]) for index in range(len(OPERATIONS))]
    return [measure_operation(device, shape, k, *pair) for pair in zip(OPERATIONS, randoms)]


def first_milliseconds(side, found):
    """Returns the fastest first run among the settings of each error class."""
    fastest = {}
    for made in found:
        name = str(side.error_class(made.variant))
        fastest[name] = min(fastest.get(name, math.inf), round(1e3 * made.first, 5))
    return fastest


def empty_row(operation):
    return {"operation": operation, "ms": {}, "settings": {}, "errors": {}, "facts": {}, "first_ms": {}}


def add_winner(row, name, side, made, seconds):
    """Adds the fastest setting of a side to a row."""
    row["ms"].setdefault(TRANSFORM, {})[name] = round(1e3 * seconds, 5)
    row["settings"][name] = made.candidate.setting
    row["errors"][name] = float(f"{made.error:.2g}")
    row["facts"][name] = side.facts(made)


def measure_operation(device, shape, k, operation, random):
    problem = device.problem(shape, k, operation, random)
    reference = Reference(device.xp, shape, problem.on_device, operation, problem.checked_coil(problem.data), random)
    contenders, winners, rival = [], {}, math.inf
    row = empty_row(operation)
    for name, side in device.sides.items():
        found = search(device, side, problem, reference, shape.error, rival)
        rival = min([rival, *(made.first for made in found)])
        contenders += [(name, made) for made in finalists(found)]
        row["first_ms"][name] = first_milliseconds(side, found)
    if not contenders:
        return row
    runs = [made.candidate.run for _, made in contenders]
    count = rounds(device, sum(made.first for _, made in contenders))
    medians = in_turns(runs, device.transform_seconds, count)
    for seconds, (name, made) in sorted(zip(medians, contenders), key=lambda pair: pair[0]):
        if name not in winners:
            winners[name] = made
            add_winner(row, name, device.sides[name], made, seconds)
    del runs, contenders
    for kind in ("transforms", "plans", "calls"):
        measure_others(device, problem, winners, kind, row)
    return row


def measure_others(device, problem, winners, kind, row):
    """Adds the times of other transforms, plans or calls of the winners to a row; they take turns."""
    clock = device.transform_seconds if kind == "transforms" else device.wall_seconds
    tasks = []
    for name, made in winners.items():
        for what, function in getattr(device.sides[name], kind)(problem, made).items():
            tasks.append((what, name, function))
    functions = [function for _, _, function in tasks]
    first = sum(clock(function) for function in functions)
    medians = in_turns(functions, clock, rounds(device, first))
    for (what, name, _), seconds in zip(tasks, medians):
        row["ms"].setdefault(what, {})[name] = round(1e3 * seconds, 5)


def measure_apart(device, shape, k, operation, random):
    """Returns the row of `measure_operation` for a case whose plans do not fit in memory together.

    The sides do not take turns, and a plan is freed before the next one is made.
    """
    problem = device.problem(shape, k, operation, random)
    reference = Reference(device.xp, shape, problem.on_device, operation, problem.checked_coil(problem.data), random)
    row = empty_row(operation)
    device.free()
    for name, side in device.sides.items():
        found = search(device, side, problem, reference, shape.error, math.inf, keep=False)
        row["first_ms"][name] = first_milliseconds(side, found)
        if not found:
            continue
        made = min(found, key=lambda made: made.first)
        made.candidate = side.make(problem, made.tolerance, made.variant)
        made.candidate.run()
        seconds = in_turns([made.candidate.run], device.transform_seconds, rounds(device, made.first))[0]
        add_winner(row, name, side, made, seconds)
        measure_others(device, problem, {name: made}, "transforms", row)
        made.candidate.free()
        device.free()
        for kind in ("plans", "calls"):
            measure_others(device, problem, {name: made}, kind, row)
            device.free()
    return row
