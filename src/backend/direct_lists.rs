//! Samples and voxels of direct sums as lists of numbers, including off-resonance and decay.

use crate::base::error::{try_collect, Result};
use crate::base::off_resonance::OffResonance;
use crate::base::real::Real;
use std::borrow::Cow;
use std::f64::consts::LOG2_E;

/// The maps of off-resonance and decay that a scan has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MapPresence {
    /// Whether there is a map of f in Hz.
    pub field: bool,
    /// Whether there is a map of R in 1/s.
    pub decay: bool,
}

impl MapPresence {
    /// Returns the maps that are present.
    pub fn of<T>(off_resonance: &Option<OffResonance<'_, T>>) -> Self {
        let given = off_resonance.as_ref();
        MapPresence {
            field: given.is_some_and(|o| o.field_map.is_some()),
            decay: given.is_some_and(|o| o.decay_map.is_some()),
        }
    }

    /// Returns whether any map is present.
    pub fn any(self) -> bool {
        self.field || self.decay
    }

    /// Returns the number of lists of samples and of voxels, for an image of `ndim` axes.
    pub(crate) fn lists(self, ndim: usize) -> [usize; 2] {
        let count = |maps: &[bool]| ndim + maps.iter().filter(|m| **m).count();
        [count(&[self.any()]), count(&[self.field, self.decay])]
    }
}

/// Lists of samples and of voxels. The phase of a pair in turns is the sum of products of their coordinates.
pub(crate) struct PointLists<L> {
    /// k, followed by times if any map is given.
    pub samples: Vec<L>,
    /// r, followed by f if given, followed by the exponents of decay if given. The decay of a pair is 2^(exponent
    /// time).
    pub voxels: Vec<L>,
    /// Number of lists of each that are coordinates. f counts as one, together with the samples' times.
    pub axes: usize,
    /// Whether the last list of each describes decay.
    pub decays: bool,
}

impl<'a, T: Real> PointLists<Cow<'a, [T]>> {
    /// Creates the lists for samples at `k` and voxels at `voxels`; `None` means the voxels of the grid of `dims`.
    pub fn new(
        k: &[&'a [T]],
        dims: &[usize],
        voxels: Option<&[&'a [T]]>,
        off_resonance: Option<OffResonance<'a, T>>,
    ) -> Result<Self> {
        let borrowed = |lists: &[&'a [T]]| -> Vec<Cow<'a, [T]>> { lists.iter().map(|l| Cow::Borrowed(*l)).collect() };
        let mut samples = borrowed(k);
        let mut voxels = match voxels {
            Some(lists) => borrowed(lists),
            None => grid_positions(dims)?.into_iter().map(Cow::Owned).collect(),
        };
        let mut axes = k.len();
        let mut decays = false;
        if let Some(OffResonance { field_map, decay_map, times }) = off_resonance {
            if let Some(f) = field_map {
                voxels.push(Cow::Borrowed(f));
                axes += 1;
            }
            if let Some(r) = decay_map {
                // The exponents are finite even for extreme R, so that no product with a time of 0 is NaN.
                let exponents = r.iter().map(|r| T::of((-LOG2_E * r.wide()).max(-T::LARGEST)));
                voxels.push(Cow::Owned(try_collect(r.len(), "decay", exponents)?));
                decays = true;
            }
            if field_map.is_some() || decay_map.is_some() {
                samples.push(Cow::Borrowed(times));
            }
        }
        for lists in [&samples, &voxels] {
            assert!(lists.iter().all(|l| l.len() == lists[0].len()), "lists of different lengths");
        }
        Ok(PointLists { samples, voxels, axes, decays })
    }
}

/// Returns the positions of the voxels of a grid, one list per axis.
fn grid_positions<T: Real>(dims: &[usize]) -> Result<Vec<Vec<T>>> {
    let total = dims.iter().product();
    let mut stride = 1;
    let mut all = Vec::new();
    for &n in dims {
        let position = |voxel: usize| T::of((voxel / stride % n) as f64 - (n / 2) as f64);
        all.push(try_collect(total, "positions of voxels", (0..total).map(position))?);
        stride *= n;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_a_grid_with_maps() {
        let k = [&[0.25f32, -0.5][..], &[0.0, 0.125]];
        let (f, r, times) = ([10.0, 20.0, 30.0, 40.0, 50.0, 60.0], [0.0, 1.0, 2.0, 3.0, 4.0, f32::MAX], [0.1, 0.2]);
        for (field, decay) in [(false, false), (true, false), (false, true), (true, true)] {
            let off =
                OffResonance { field_map: field.then_some(&f[..]), decay_map: decay.then_some(&r), times: &times };
            let lists = PointLists::new(&k, &[3, 2], None, Some(off)).unwrap();
            assert_eq!(MapPresence::of(&Some(off)), MapPresence { field, decay });
            assert_eq!(MapPresence { field, decay }.lists(2), [lists.samples.len(), lists.voxels.len()]);
            assert_eq!((lists.axes, lists.decays), (2 + usize::from(field), decay));
            assert_eq!(lists.voxels[0][..], [-1.0, 0.0, 1.0, -1.0, 0.0, 1.0]);
            assert_eq!(lists.voxels[1][..], [-1.0, -1.0, -1.0, 0.0, 0.0, 0.0]);
            assert_eq!(lists.samples.len(), 2 + usize::from(field || decay));
            if field {
                assert_eq!((&lists.voxels[2][..], &lists.samples[2][..]), (&f[..], &times[..]));
            }
            if decay {
                assert_eq!(lists.samples.last().unwrap()[..], times);
                let exponents = lists.voxels.last().unwrap();
                assert!(exponents.iter().all(|e| e.is_finite()));
                assert_eq!(exponents[..3], [0.0, -std::f32::consts::LOG2_E, -2.0 * std::f32::consts::LOG2_E]);
            }
        }
        assert_eq!(MapPresence::of::<f32>(&None), MapPresence::default());
    }
}
