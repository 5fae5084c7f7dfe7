"""Common parts of the suites of the benchmark: library, options, random data, and timing of candidates in turns."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import measure
import peers
import recon_library

RUNS, QUICK_RUNS = 7, 3
CHECKED, QUICK_CHECKED = 500, 100
# Direct sums of an adjoint take one exponential for each sample and output. Where samples are many, fewer outputs are
# checked, so that these sums take seconds, but never fewer than LEAST_CHECKED.
MOST_EXPONENTIALS = 1 << 28
LEAST_CHECKED = 64
# A setting that is slower by this factor in one run will not be faster in the median of several.
SLOWER = 2.0


@dataclass
class Session:
    library: recon_library.Library
    # The static library and the folder of the header, for programs that are compiled against them.
    archive: Path
    include: Path
    # benches/solve.c as a program, where a bundle for another machine brought it.
    bundled_solver: Path
    # The folder for compiled programs and data.
    work: Path
    threads: list
    quick: bool
    random: np.random.Generator
    # Measurements that this machine cannot make, and why: a line each.
    left_out: list = field(default_factory=list)

    def leave_out(self, what):
        """Says once, on the terminal and in the table, that something is not measured."""
        if what not in self.left_out:
            self.left_out.append(what)
            measure.progress(f"left out: {what}")

    @property
    def runs(self):
        return QUICK_RUNS if self.quick else RUNS

    @property
    def checked(self):
        """The number of outputs whose error is measured, where samples are not many."""
        return QUICK_CHECKED if self.quick else CHECKED

    def checked_of(self, samples):
        """The number of outputs whose error is measured, for a trajectory."""
        return min(self.checked, max(LEAST_CHECKED, MOST_EXPONENTIALS // samples))

    def transform(self, dims, k, operation, threads, coils=1):
        """A transform of random data."""
        shape = (k[0].size,) if operation == "adjoint" else dims[::-1]
        return peers.Transform(dims, k, operation, measure.random_complex(self.random, (coils, *shape)), threads)

    def contenders(self, candidates, error, bounds):
        """The candidates that can win at one of the bounds of the error.

        Each runs once. One that takes more than SLOWER times as long as the fastest of its side that meets a bound
        cannot win there.
        """
        first = [(candidate, peers.timed(candidate.run)[1], error(candidate.output)) for candidate in candidates]

        def can_win(candidate, seconds, found, bound):
            rivals = [s for other, s, e in first if other.side == candidate.side and e <= bound]
            return found <= bound and seconds <= SLOWER * min(rivals)

        return [row[0] for row in first if any(can_win(*row, bound) for bound in bounds)]

    def rows(self, candidates, error, **common):
        """A row for each candidate: its times, when all candidates take turns, and `error(output)`."""
        seconds, others = measure.alternate(self.runs, [candidate.run for candidate in candidates])
        return [
            {
                **common,
                "side": candidate.side,
                "setting": candidate.setting,
                "precision": candidate.precision,
                "tolerance": candidate.tolerance,
                "oversampling": candidate.oversampling,
                "error": error(candidate.output),
                "plan_ms": 1e3 * candidate.plan_seconds,
                "median_ms": measure.milliseconds(times),
                "runs_ms": [round(1e3 * t, 4) for t in times],
                "others": others,
            }
            for candidate, times in zip(candidates, seconds)
        ]
