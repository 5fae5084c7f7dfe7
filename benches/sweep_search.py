"""The settings of a side that meet an error, and which of them are measured further. Python's standard library only."""

import math
from dataclasses import dataclass

LARGEST_TOLERANCE = 0.3
# A setting is measured further if its first run takes at most CLOSE times the side's fastest. FINALISTS: at most this
# number of settings of a side.
CLOSE, FINALISTS = 1.3, 3
LEAST_RUNS = 3
# Runs of more seconds are slow: they are measured less often.
SLOW = 0.02


def ladder(loosest, tightest):
    """Returns multiples of the error from the loosest to the tightest power of 2: tolerances that a side may try."""
    return tuple(2.0**power for power in range(loosest, tightest - 1, -1))


class Unsupported(Exception):
    """A side cannot do a transform at a setting."""


class Side:
    """A library that transforms."""

    # Multiples of the error that are tried as tolerances, loosest first.
    ladder = ladder(2, -2)
    # A variant is not tried if the best so far is slower by this factor than the fastest side: it would not come close.
    far_behind = math.inf

    def variants(self, problem):
        """Returns the variants of a transform that differ in more than the tolerance."""
        return (None,)

    def error_class(self, variant):
        """Returns the same value for variants that have the same error at the same tolerance."""
        return variant

    def facts(self, made):
        """Returns properties of a plan for the tables."""
        return {}

    def make(self, problem, tolerance, variant):
        """Returns a candidate with `run`, `output`, `setting` and `tolerance`, or raises Unsupported."""
        raise NotImplementedError

    def transforms(self, problem, made):
        """Returns other ways of calling the same transform, by the name of the measurement."""
        return {}

    def plans(self, problem, made):
        """Returns functions that make a plan, by the name of the measurement."""
        raise NotImplementedError

    def calls(self, problem, made):
        """Returns functions for a plan, a transform and the plan's destruction, by the name of the measurement."""
        raise NotImplementedError


@dataclass
class Made:
    """A candidate that meets the error, and its first time in seconds."""

    # None if it is too slow to be measured further: large plans do not fit in memory together.
    candidate: object
    tolerance: float
    variant: object
    error: float
    first: float


def search(device, side, problem, reference, bound, rival, keep=True):
    """Returns all settings of a side that meet the error, among those that a bisection of each variant tries.

    Errors fall with the tolerance, and times rise. So the loosest tolerance that meets the error is fast. `rival`: the
    seconds of the fastest side so far. Without `keep` the candidates are freed.
    """
    found = []
    for variant in side.variants(problem):
        if found and min(made.first for made in found) > side.far_behind * rival:
            break
        alike = [made for made in found if side.error_class(made.variant) == side.error_class(variant)]
        if alike:
            tolerances = [max(made.tolerance for made in alike)]
        else:
            tolerances = [bound * multiple for multiple in side.ladder if bound * multiple <= LARGEST_TOLERANCE]
        loose, tight = -1, len(tolerances)
        while tight - loose > 1:
            middle = (loose + tight) // 2
            # The previous plan is freed first.
            candidate = None
            try:
                candidate = side.make(problem, tolerances[middle], variant)
                candidate.run()
                error = reference.error(problem.checked_coil(candidate.output))
            except Unsupported:
                # Narrower windows need less memory.
                tight = middle
                continue
            if not error <= bound:
                loose = middle
                continue
            tight = middle
            first = first_seconds(device, candidate.run)
            found.append(Made(candidate, tolerances[middle], variant, error, first))
            if keep:
                drop_slow(found)
            else:
                found[-1].candidate = None
    return found


def drop_slow(found):
    """Frees the candidates that cannot be the fastest of their side."""
    fastest = min((made.first for made in found), default=0.0)
    for made in found:
        if made.first > CLOSE * fastest:
            made.candidate = None


def finalists(found):
    """Returns the settings of a side that can be its fastest."""
    fastest = min((made.first for made in found), default=0.0)
    close = [made for made in found if made.candidate]
    return sorted(close, key=lambda made: made.first)[: FINALISTS if fastest <= SLOW else 2]


def first_seconds(device, run):
    first = device.transform_seconds(run)
    return first if first > SLOW else min(first, *(device.transform_seconds(run) for _ in range(3)))


def rounds(device, seconds):
    return max(LEAST_RUNS, min(device.runs, int(device.budget / max(seconds, 1e-6))))
