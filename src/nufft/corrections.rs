//! Corrections of recent windows. A host that creates a plan for each call mostly needs the same ones again, and
//! computing them takes a third of the time of a small plan.

use super::window::Shape;
use crate::base::error::{try_collect, Result};
use crate::base::per_process::PerProcess;
use std::sync::{Mutex, MutexGuard};

/// Maximum number of corrections that are kept.
const COUNT: usize = 8;
/// Maximum number of voxels of a correction that is kept: 8 KiB. Plans of larger images take longer than it does.
const MAX_VOXELS: usize = 1024;

/// A correction, and the window, voxels and grid cells of its axis.
struct Correction {
    axis: (Shape, usize, usize),
    factors: Vec<f64>,
}

/// The corrections of this process, the least recently used first.
static RECENT: PerProcess<Mutex<Vec<Correction>>> = PerProcess::new(Mutex::new(Vec::new()), |_| Mutex::default());

fn recent() -> MutexGuard<'static, Vec<Correction>> {
    RECENT.get().lock().unwrap_or_else(|e| e.into_inner())
}

/// Returns [`Shape::correction`] for `n` voxels of a grid of `grid` cells.
///
/// # Errors
/// `OutOfHostMemory`.
pub(super) fn correction(shape: &Shape, n: usize, grid: usize) -> Result<Vec<f64>> {
    if n > MAX_VOXELS {
        return shape.correction(n, grid);
    }
    let axis = (*shape, n, grid);
    let copy = |factors: &[f64]| try_collect(n, "the correction of the window", factors.iter().copied());
    {
        let mut recent = recent();
        if let Some(index) = recent.iter().rposition(|correction| correction.axis == axis) {
            recent[index..].rotate_left(1);
            return copy(&recent[recent.len() - 1].factors);
        }
    }
    // The lock is not held during the computation. Two threads may compute the same.
    let factors = shape.correction(n, grid)?;
    let correction = Correction { axis, factors: copy(&factors)? };
    let mut recent = recent();
    if recent.len() == COUNT {
        recent.rotate_left(1);
        recent[COUNT - 1] = correction;
    } else {
        recent.push(correction);
    }
    Ok(factors)
}

/// Frees all corrections that are kept.
pub(crate) fn release() {
    *recent() = Vec::new();
}

/// Frees the corrections when the library is unloaded, since they could not be found afterwards.
#[cfg(all(target_os = "linux", not(test)))]
#[used]
#[link_section = ".fini_array"]
static AT_UNLOADING: extern "C" fn() = {
    extern "C" fn free_all() {
        // Other threads may still run while a process ends, so no lock is waited for.
        if let Ok(mut recent) = RECENT.get().try_lock() {
            *recent = Vec::new();
        }
    }
    free_all
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::options::Window;

    /// Kept factors are those that are computed, also after others have replaced them.
    #[test]
    fn kept_corrections_are_those_of_the_window() {
        for round in 0..3 {
            for n in (1..40).chain([MAX_VOXELS, MAX_VOXELS + 1]) {
                for (width, sigma) in [(4, 2.0), (7, 1.5)] {
                    let shape = Shape::best(Window::Minimax, width, sigma);
                    let grid = (2 * n).max(2 * width);
                    for _ in 0..2 {
                        let bits = |factors: Vec<f64>| factors.into_iter().map(f64::to_bits).collect::<Vec<_>>();
                        let expected = bits(shape.correction(n, grid).unwrap());
                        assert_eq!(bits(correction(&shape, n, grid).unwrap()), expected, "{n} voxels, round {round}");
                    }
                }
            }
            assert!(recent().len() <= COUNT);
            release();
        }
    }
}
