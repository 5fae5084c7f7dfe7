"""Exact sums F^H d: recon's on the Cartesian grid and at listed voxels, beside the loop of Stone et al. 2008."""

import shutil
from dataclasses import dataclass

import numpy as np

import cases
import measure
import peers
import stone_loop


@dataclass
class Part:
    """Samples of the stone case, the voxels at which their sums are computed, and reference values of some sums."""

    k: list
    data: np.ndarray
    # None: the whole grid.
    voxels: list | None
    checked: np.ndarray
    sums: np.ndarray

    def at(self, precision):
        real, complex_ = peers.FLOAT[precision], peers.COMPLEX[precision]
        voxels = None if self.voxels is None else [axis.astype(real) for axis in self.voxels]
        return [axis.astype(real) for axis in self.k], self.data.astype(complex_), voxels

    def error(self, output):
        return measure.relative(output.ravel()[self.checked], self.sums)


def part(session, samples, voxels, voxel_count):
    k = cases.STONE.trajectory(session.library)
    kept = np.sort(session.random.choice(k[0].size, samples, replace=False))
    k = [axis[kept] for axis in k]
    data = measure.random_complex(session.random, samples)
    checked = session.random.integers(0, voxel_count, session.checked)
    if voxels is None:
        positions = measure.voxel_positions(cases.STONE.dims, checked)
    else:
        positions = [axis[checked].astype(np.float64) for axis in voxels]
    return Part(k, data, voxels, checked, measure.direct_adjoint(k, positions, data))


def row(candidate, part, times, threads, others):
    samples, voxels = part.data.size, candidate.output.size
    median = measure.milliseconds(times)
    return {
        "side": candidate.side,
        "setting": candidate.setting,
        "precision": candidate.precision,
        "threads": threads,
        "samples": samples,
        "voxels": voxels,
        "error": part.error(candidate.output),
        "median_ms": median,
        "gpairs_per_s": samples * voxels / (1e6 * median),
        "runs_ms": [round(1e3 * t, 4) for t in times],
        "others": others,
    }


def measure_all(session):
    """Yields ("exact", rows) for each precision and number of threads."""
    compiled = shutil.which("gcc")
    if not compiled:
        session.leave_out("the loop of Stone et al. 2008 (no gcc to compile it)")
    dims, listed = cases.STONE.dims, cases.EXACT_LIST_VOXELS
    voxels = [session.random.uniform(-n / 2, n / 2, listed).astype(np.float32) for n in dims]
    grid = part(session, cases.EXACT_CARTESIAN_SAMPLES, None, int(np.prod(dims)))
    some = part(session, cases.EXACT_LIST_SAMPLES, voxels, listed)
    for precision in peers.FLOAT:
        builds = stone_loop.BUILDS if compiled else ()
        loops = [stone_loop.StoneLoop(session.work, build, precision) for build in builds]
        for threads in session.threads:
            measure.progress(f"exact, {precision}, threads: {threads}")
            parts = [grid, some, *(some for _ in loops)]
            candidates = [peers.exact(session.library, dims, p.at(precision), threads) for p in (grid, some)]
            candidates += [peers.stone(loop, some.at(precision), threads) for loop in loops]
            seconds, others = measure.alternate(session.runs, [candidate.run for candidate in candidates])
            yield "exact", [row(c, p, times, threads, others) for c, p, times in zip(candidates, parts, seconds)]
