//! The direct sums of Stone et al. 2008: F^H d and its transpose, to full precision.

mod grid;
mod list;
pub mod phase;
pub mod power;

use super::simd::Level;
use crate::backend::cpu::simd::SimdReal;
use crate::backend::direct_lists::{MapPresence, PointLists};
use crate::backend::threads::Threads;
use crate::backend::Sign;
use crate::base::buffer_pool::Pool;
use crate::base::error::{try_collect, Result};
use crate::base::interrupt::StopSignal;
use crate::base::off_resonance::OffResonance;
use crate::base::sizes::{product, sum, three_axes};
use list::PointSet;
use num_complex::Complex;
use std::borrow::Cow;

/// Direct sums between samples and voxels.
pub struct DirectSum<T> {
    level: Level,
    sums: Sums<T>,
    scratch: Pool<Vec<T>>,
}

/// The voxels of direct sums, which decide the algorithm.
enum Sums<T> {
    /// Sums between samples at k and the voxels of a grid, axis by axis.
    Grid { k: Vec<Vec<T>>, dims: [usize; 3] },
    /// Sums between two lists of points; also for the voxels of a grid with a map.
    PointLists(PointLists<Vec<T>>),
}

impl<T: SimdReal> DirectSum<T> {
    /// Implements [`crate::backend::Backend::direct_sum`].
    pub fn new(
        threads: &Threads,
        level: Level,
        k: &[&[T]],
        dims: &[usize],
        voxels: Option<&[&[T]]>,
        off_resonance: Option<OffResonance<'_, T>>,
    ) -> Result<Self> {
        let to_owned_lists = |lists: Vec<Cow<[T]>>| -> Result<Vec<Vec<T>>> {
            let owned = |list: Cow<[T]>| match list {
                Cow::Owned(list) => Ok(list),
                Cow::Borrowed(list) => try_collect(list.len(), "coordinates", list.iter().copied()),
            };
            lists.into_iter().map(owned).collect()
        };
        if voxels.is_some() || MapPresence::of(&off_resonance).any() {
            let PointLists { samples, voxels, axes, decays } = PointLists::new(k, dims, voxels, off_resonance)?;
            let lists = PointLists { samples: to_owned_lists(samples)?, voxels: to_owned_lists(voxels)?, axes, decays };
            return Ok(DirectSum { level, sums: Sums::PointLists(lists), scratch: Pool::new() });
        }
        let k = to_owned_lists(k.iter().map(|k| Cow::Borrowed(*k)).collect())?;
        let dims = three_axes(dims);
        // The scratch is allocated here, so that no sum fails for lack of memory.
        let scratch = Pool::filled(1, || grid::scratch(threads, level, k[0].len(), dims))?;
        Ok(DirectSum { level, sums: Sums::Grid { k, dims }, scratch })
    }

    /// Returns the bytes held: coordinates, maps and times, and the scratch of sums.
    pub fn bytes(
        threads: usize,
        level: Level,
        samples: usize,
        dims: &[usize],
        listed: Option<usize>,
        maps: MapPresence,
    ) -> usize {
        let [sample_lists, voxel_lists] = maps.lists(dims.len());
        let samples_bytes = product(&[samples, sample_lists, size_of::<T>()]);
        if listed.is_some() || maps.any() {
            let voxels = listed.unwrap_or_else(|| product(dims));
            return sum(&[samples_bytes, product(&[voxels, voxel_lists, size_of::<T>()])]);
        }
        let scratch = grid::scratch_len::<T>(threads, level, samples, three_axes(dims));
        sum(&[samples_bytes, product(&[scratch, size_of::<T>()])])
    }

    /// Implements [`crate::backend::Backend::sum_to_image`].
    pub fn to_image(&self, threads: &Threads, values: &[Complex<T>], image: &mut [Complex<T>]) -> Result<()> {
        let (level, stop) = (self.level, StopSignal::new());
        match &self.sums {
            Sums::Grid { k, dims } => {
                let mut scratch = self.scratch.take_or_wait(|| grid::scratch(threads, level, k[0].len(), *dims));
                grid::to_image(threads, level, &stop, &mut scratch, k, *dims, values, image);
            }
            Sums::PointLists(lists) => {
                let [samples, voxels] = point_sets(lists);
                list::sum(threads, level, &stop, Sign::Plus, samples, values, voxels, image);
            }
        }
        stop.check("exact sums")
    }

    /// Implements [`crate::backend::Backend::sum_to_samples`].
    pub fn to_samples(&self, threads: &Threads, image: &[Complex<T>], values: &mut [Complex<T>]) -> Result<()> {
        let (level, stop) = (self.level, StopSignal::new());
        match &self.sums {
            Sums::Grid { k, dims } => {
                let mut scratch = self.scratch.take_or_wait(|| grid::scratch(threads, level, k[0].len(), *dims));
                grid::to_samples(threads, level, &stop, &mut scratch, k, *dims, image, values);
            }
            Sums::PointLists(lists) => {
                let [samples, voxels] = point_sets(lists);
                list::sum(threads, level, &stop, Sign::Minus, voxels, image, samples, values);
            }
        }
        stop.check("exact sums")
    }
}

/// Returns the samples and the voxels.
fn point_sets<T>(lists: &PointLists<Vec<T>>) -> [PointSet<'_, T>; 2] {
    [&lists.samples, &lists.voxels].map(|all| PointSet {
        coordinates: &all[..lists.axes],
        decay: all.last().filter(|_| lists.decays).map(|last| &last[..]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a number that is uniform in [-0.5, 0.5).
    fn uniform(state: &mut u64) -> f64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    }

    fn point_sets<T: SimdReal>(state: &mut u64, ndim: usize, count: usize, scale: f64) -> Vec<Vec<T>> {
        (0..ndim).map(|_| (0..count).map(|_| T::of(scale * uniform(state))).collect()).collect()
    }

    fn slices<T>(lists: &[Vec<T>]) -> Vec<&[T]> {
        lists.iter().map(|l| &l[..]).collect()
    }

    /// Returns the l2 error of out(a) = sum_b values(b) exp(sign i 2 pi a.b - d_a d_b), relative to the expected norm
    /// of these sums. The first `axes` lists of both are a and b; if `decays` is set, the last lists are d.
    fn compare<T: SimdReal>(
        out: &[Complex<T>],
        sign: f64,
        (axes, decays): (usize, bool),
        from: &[Vec<T>],
        values: &[Complex<T>],
        to: &[Vec<T>],
    ) -> f64 {
        let (mut error, mut norm) = (0.0, 0.0);
        for (a, out) in out.iter().enumerate() {
            let mut sum = Complex::new(0.0, 0.0);
            for (b, value) in values.iter().enumerate() {
                let turns: f64 = from[..axes]
                    .iter()
                    .zip(to)
                    .map(|(from, to)| {
                        let (q, p) = (from[b].wide(), to[a].wide());
                        (q * p - (q * p).round()) + q.mul_add(p, -(q * p))
                    })
                    .sum();
                let decay = match decays {
                    true => (-from[from.len() - 1][b].wide() * to[to.len() - 1][a].wide()).exp(),
                    false => 1.0,
                };
                let wave = Complex::from_polar(decay, sign * std::f64::consts::TAU * (turns - turns.round()));
                let value = Complex::new(value.re.wide(), value.im.wide());
                sum += wave * value;
                norm += value.norm_sqr() * decay * decay;
            }
            error += (Complex::new(out.re.wide(), out.im.wide()) - sum).norm_sqr();
        }
        (error / norm).sqrt()
    }

    fn complexes<T: SimdReal>(state: &mut u64, count: usize) -> Vec<Complex<T>> {
        (0..count).map(|_| Complex::new(T::of(uniform(state)), T::of(uniform(state)))).collect()
    }

    /// Checks both directions at every level: their errors, that the whole output is written, and that bits depend
    /// neither on the number of threads nor on an earlier call.
    fn check<T: SimdReal>(dims: &[usize], samples: usize, list: Option<usize>, bound: f64) {
        check_with_maps::<T>(dims, samples, list, MapPresence::default(), 0.0, bound);
    }

    /// Checks the same as [`check`], with maps of off-resonance, of 400 Hz, and of decay. The product of decay and
    /// times of either sign is at most `decay`.
    fn check_with_maps<T: SimdReal>(
        dims: &[usize],
        samples: usize,
        list: Option<usize>,
        maps: MapPresence,
        decay: f64,
        bound: f64,
    ) {
        let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let mut state = clock.as_nanos() as u64;
        let what = format!("{} {dims:?} {samples} {list:?} {maps:?} {decay}, seed {state}", T::NAME);
        let mut k = point_sets::<T>(&mut state, dims.len(), samples, 0.999);
        let mut voxels = match list {
            Some(count) => point_sets::<T>(&mut state, dims.len(), count, 200.0),
            None => {
                let total: usize = dims.iter().product();
                let mut stride = 1;
                dims.iter()
                    .map(|&n| {
                        let r = (0..total).map(|i| T::of((i / stride % n) as f64 - (n / 2) as f64)).collect();
                        stride *= n;
                        r
                    })
                    .collect()
            }
        };
        let (d, x) = (complexes::<T>(&mut state, samples), complexes::<T>(&mut state, voxels[0].len()));
        let times = point_sets::<T>(&mut state, 1, samples, 0.1).remove(0);
        let f = point_sets::<T>(&mut state, 1, x.len(), 400.0).remove(0);
        let rate = |r: &T| T::of(2.0 * r.magnitude().wide() * decay / 0.05);
        let r: Vec<T> = point_sets::<T>(&mut state, 1, x.len(), 1.0)[0].iter().map(rate).collect();
        let off_resonance = OffResonance {
            field_map: maps.field.then_some(&f[..]),
            decay_map: maps.decay.then_some(&r[..]),
            times: &times,
        };
        let off_resonance = Some(off_resonance).filter(|_| maps.any());
        let kinds = (dims.len() + usize::from(maps.field), maps.decay);
        let list = list.map(|_| voxels.clone());
        let list = list.as_deref().map(slices);
        let given = k.clone();
        if maps.field {
            k.push(times.clone());
            voxels.push(f.clone());
        }
        if maps.decay {
            k.push(times.clone());
            voxels.push(r.clone());
        }
        for level in Level::all() {
            let mut expected: Option<[Vec<Complex<T>>; 2]> = None;
            for count in [1, 2, 2, 5] {
                let threads = Threads::new(count).unwrap();
                let sum = DirectSum::new(&threads, level, &slices(&given), dims, list.as_deref(), off_resonance);
                let sum = sum.unwrap();
                let nan = Complex::new(T::of(f64::NAN), T::of(f64::NAN));
                let (mut image, mut values) = (vec![nan; x.len()], vec![nan; d.len()]);
                sum.to_image(&threads, &d, &mut image).unwrap();
                sum.to_samples(&threads, &x, &mut values).unwrap();
                match &expected {
                    None => {
                        let errors = [
                            compare(&image, 1.0, kinds, &k, &d, &voxels),
                            compare(&values, -1.0, kinds, &voxels, &x, &k),
                        ];
                        assert!(errors.iter().all(|e| *e < bound), "{errors:?} {} {what}", level.name());
                        expected = Some([image, values]);
                    }
                    Some(expected) => assert!(expected[0] == image && expected[1] == values, "{} {what}", level.name()),
                }
            }
        }
    }

    // Bounds are about forty roundings: sums of a thousand numbers lose a dozen, and in double precision the reference
    // loses the same.
    #[test]
    fn sums_on_grids_of_all_shapes() {
        for dims in [
            &[1, 1][..],
            &[1, 9],
            &[40, 1],
            &[33, 1, 1],
            &[1, 1, 70],
            &[2, 2],
            &[3, 2, 1],
            &[31, 17],
            &[16, 33],
            &[24, 1, 10],
            &[1, 5, 37],
            &[7, 15, 10],
            &[8, 20, 3],
            &[9, 3, 32],
        ] {
            // A single sample, and more samples than a run of the inner product or a block contains.
            for samples in [1, 3, 300, 1100] {
                check::<f32>(dims, samples, None, 5e-6);
                check::<f64>(dims, samples, None, 1e-14);
            }
        }
        // More lines than are folded at a time. The values of three samples, each a sum over half a million voxels,
        // have an error of 8e-7 in the median of all draws, and of 2.2e-6 in one draw of four hundred.
        check::<f32>(&[512, 1100], 3, None, 5e-6);
    }

    #[test]
    fn sums_over_lists() {
        for ndim in 1..=3 {
            for (samples, voxels) in [(1, 1), (1, 50), (700, 1), (333, 411)] {
                check::<f32>(&vec![200; ndim], samples, Some(voxels), 5e-6);
                check::<f64>(&vec![200; ndim], samples, Some(voxels), 2e-14);
            }
        }
    }

    // Times are up to 0.05 s in either direction, so that factors range from exp(-decay) to its inverse. A decay of 60
    // is the maximum that a plan accepts. Its products and exponents are rounded twice, which is an error of at most 60
    // roundings.
    #[test]
    fn sums_with_off_resonance_and_decay() {
        let [field, decay] = [true, false].map(|field| MapPresence { field, decay: !field });
        let both = MapPresence { field: true, decay: true };
        for (dims, list) in [
            (&[1, 1][..], None),
            (&[31, 17], None),
            (&[16, 33], Some(411)),
            (&[7, 15, 10], None),
            (&[1, 5, 37], Some(50)),
            (&[200, 200, 200], Some(1)),
        ] {
            // More samples than a block or a task contains. Every further one costs seconds in an emulator.
            for samples in [1, 3, 300] {
                for (maps, reach) in [(field, 0.0), (decay, 3.0), (decay, 60.0), (both, 3.0), (both, 60.0)] {
                    let scale = if reach > 10.0 { 4.0 } else { 1.0 };
                    check_with_maps::<f32>(dims, samples, list, maps, reach, 5e-6 * scale);
                    check_with_maps::<f64>(dims, samples, list, maps, reach, 2e-14 * scale);
                }
            }
        }
    }

    /// The decay of a voxel that no coil sees may have any value: no factor is NaN or infinite.
    #[test]
    fn extreme_decay_gives_finite_results() {
        let threads = Threads::new(1).unwrap();
        let (rates, times) = ([0.0, 20.0, 1e9, f32::MAX], [0.0, -0.3, 0.3, 1e-30]);
        let maps = OffResonance { field_map: None, decay_map: Some(&rates[..]), times: &times[..] };
        for level in Level::all() {
            let sum = DirectSum::new(&threads, level, &[&[0.0f32; 4], &[0.0; 4]], &[2, 2], None, Some(maps)).unwrap();
            let mut values = [Complex::new(f32::NAN, f32::NAN); 4];
            sum.to_samples(&threads, &[Complex::new(1.0, -1.0); 4], &mut values).unwrap();
            assert!(values.iter().all(|z| z.re.is_finite() && z.im.is_finite()), "{values:?}");
            // At time 0 there is no decay; after 0.3 s only the first two voxels contribute.
            assert_eq!(values[0], Complex::new(4.0, -4.0));
            assert!((values[2].re - (1.0 + (-6.0f32).exp())).abs() < 1e-6, "{values:?}");
        }
    }

    #[test]
    fn without_samples_the_image_is_zero() {
        let threads = Threads::new(2).unwrap();
        let map = [1.0f32, 2.0, 3.0, 4.0];
        let maps = OffResonance { field_map: Some(&map[..]), decay_map: Some(&map[..]), times: &[] };
        for (list, maps) in [(None, None), (Some(vec![&map[..]; 2]), None), (None, Some(maps))] {
            let sum = DirectSum::<f32>::new(
                &threads,
                Level::choose(Default::default()).unwrap(),
                &[&[], &[]],
                &[2, 2],
                list.as_deref(),
                maps,
            )
            .unwrap();
            let mut image = vec![Complex::new(f32::NAN, f32::NAN); 4];
            sum.to_image(&threads, &[], &mut image).unwrap();
            assert!(image.iter().all(|z| *z == Complex::default()));
            sum.to_samples(&threads, &image, &mut []).unwrap();
        }
    }
}
