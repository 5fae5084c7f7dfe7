"""What all suites of the benchmark share: the library, the options, random data, and timing of candidates in turns."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

import measure
import peers
import recon_library

RUNS, QUICK_RUNS = 7, 3
CHECKED, QUICK_CHECKED = 500, 100


@dataclass
class Session:
    library: recon_library.Library
    # The static library and the folder of the header, for programs that are compiled against them.
    archive: Path
    include: Path
    # The folder for compiled programs and data.
    work: Path
    threads: list
    quick: bool
    random: np.random.Generator

    @property
    def runs(self):
        return QUICK_RUNS if self.quick else RUNS

    @property
    def checked(self):
        """The number of outputs whose error is measured."""
        return QUICK_CHECKED if self.quick else CHECKED

    def transform(self, dims, k, operation, threads, coils=1):
        """A transform of random data."""
        shape = (k[0].size,) if operation == "adjoint" else dims[::-1]
        return peers.Transform(dims, k, operation, measure.random_complex(self.random, (coils, *shape)), threads)

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
                "error": error(candidate.output),
                "plan_ms": 1e3 * candidate.plan_seconds,
                "median_ms": measure.milliseconds(times),
                "runs_ms": [round(1e3 * t, 4) for t in times],
                "others": others,
            }
            for candidate, times in zip(candidates, seconds)
        ]


def fastest(rows, side, error):
    """The fastest row of a side that meets an error, or None."""
    fitting = [row for row in rows if row["side"] == side and row["error"] <= error]
    return min(fitting, key=lambda row: row["median_ms"], default=None)
