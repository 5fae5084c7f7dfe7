//! Tests of trajectories.

use super::*;
use crate::base::error::ErrorKind;

/// Returns the kind of an error.
fn kind(result: Result<Trajectory>) -> ErrorKind {
    result.unwrap_err().kind()
}

/// Returns trajectories of all kinds: name, trajectory, axes, shots, samples per shot.
fn all() -> Vec<(&'static str, Trajectory, usize, usize, usize)> {
    use SpokeOrder::{GoldenAngle, Linear};
    vec![
        ("cartesian 1D", Trajectory::cartesian(&[7]).unwrap(), 1, 1, 7),
        ("cartesian 2D", Trajectory::cartesian(&[6, 5]).unwrap(), 2, 5, 6),
        ("cartesian 3D", Trajectory::cartesian(&[4, 3, 2]).unwrap(), 3, 6, 4),
        ("radial2d linear", Trajectory::radial2d(31, 64, Linear).unwrap(), 2, 31, 64),
        ("radial2d golden", Trajectory::radial2d(500, 33, GoldenAngle).unwrap(), 2, 500, 33),
        ("radial3d", Trajectory::radial3d(555, 32).unwrap(), 3, 555, 32),
        ("stack of stars", Trajectory::stack_of_stars(5, 32, 7, GoldenAngle).unwrap(), 3, 35, 32),
        ("spiral", Trajectory::spiral(16, 500, 8.5, 1.0).unwrap(), 2, 16, 500),
        ("variable spiral", Trajectory::spiral(3, 500, 20.0, 1.7).unwrap(), 2, 3, 500),
        ("step spiral", Trajectory::spiral(4, 9, 1.0, 1e-300).unwrap(), 2, 4, 9),
        ("rosette", Trajectory::rosette(7, 4000, 20.0, 13.0).unwrap(), 2, 7, 4000),
        ("lissajous", Trajectory::lissajous(7, 500, 30, 31).unwrap(), 2, 7, 500),
        ("propeller", Trajectory::propeller(17, 24, 96).unwrap(), 2, 17 * 24, 96),
        ("wide propeller", Trajectory::propeller(4, 32, 64).unwrap(), 2, 4 * 32, 64),
        ("oversampled propeller", Trajectory::propeller_scan(17, 24, 960, 256).unwrap(), 2, 17 * 24, 960),
    ]
}

#[test]
fn counts_and_ranges_hold_in_both_precisions() {
    for (name, t, ndim, shots, per_shot) in all() {
        assert_eq!((t.ndim(), t.shots(), t.samples_per_shot()), (ndim, shots, per_shot), "{name}");
        assert_eq!(t.samples(), shots * per_shot, "{name}");
        for axis in 0..ndim {
            assert_eq!(t.axis(axis).len(), t.samples(), "{name}");
            assert!(t.axis(axis).iter().all(|k| (-0.5..0.5).contains(k)), "{name}");
            assert!(t.axis_as::<f32>(axis).iter().all(|k| (-0.5..0.5).contains(k)), "{name} in f32");
            assert_eq!(t.axis_as::<f64>(axis), t.axis(axis), "{name}");
        }
        // The checking constructor accepts the results of generators.
        let axes = t.axes().iter().map(|k| k.to_vec()).collect();
        assert_eq!(Trajectory::new(axes, per_shot).unwrap(), t, "{name}");
    }
}

#[test]
fn cartesian_is_the_centred_grid_with_x_fastest() {
    let t = Trajectory::cartesian(&[4, 3, 2]).unwrap();
    assert_eq!(t.axis(0)[..5], [-0.5, -0.25, 0.0, 0.25, -0.5]);
    assert_eq!(t.axis(1)[3..9], [-1.0 / 3.0, 0.0, 0.0, 0.0, 0.0, 1.0 / 3.0]);
    assert_eq!(t.axis(2)[11..13], [-0.5, 0.0]);
}

#[test]
fn spokes_pass_the_centre_and_have_the_angles_of_their_order() {
    for samples in [8, 9] {
        for order in [SpokeOrder::Linear, SpokeOrder::GoldenAngle] {
            let t = Trajectory::radial2d(20, samples, order).unwrap();
            let step = match order {
                SpokeOrder::Linear => PI / 20.0,
                SpokeOrder::GoldenAngle => 111.246_117_975_f64.to_radians(),
            };
            for p in 0..20 {
                let centre = p * samples + samples / 2;
                assert_eq!((t.axis(0)[centre], t.axis(1)[centre]), (0.0, 0.0));
                let (kx, ky) = (t.axis(0)[centre + 1], t.axis(1)[centre + 1]);
                let (sin, cos) = (step * p as f64).sin_cos();
                assert!((kx - cos / samples as f64).abs() < 1e-10, "{order:?} {p}");
                assert!((ky - sin / samples as f64).abs() < 1e-10, "{order:?} {p}");
            }
        }
    }
    let t = Trajectory::radial2d(1, 8, SpokeOrder::Linear).unwrap();
    assert_eq!(t.axis(0), [-0.5, -0.375, -0.25, -0.125, 0.0, 0.125, 0.25, 0.375]);
}

#[test]
fn a_stack_has_the_same_star_in_each_partition() {
    let (spokes, samples) = (6, 10);
    for order in [SpokeOrder::Linear, SpokeOrder::GoldenAngle] {
        for partitions in [1, 4, 5] {
            let star = Trajectory::radial2d(spokes, samples, order).unwrap();
            let stack = Trajectory::stack_of_stars(spokes, samples, partitions, order).unwrap();
            assert_eq!((stack.ndim(), stack.shots()), (3, spokes * partitions));
            for q in 0..partitions {
                let shots = q * spokes * samples..(q + 1) * spokes * samples;
                for axis in 0..2 {
                    assert_eq!(stack.axis(axis)[shots.clone()], *star.axis(axis), "{order:?} {partitions}");
                }
                let kz = (q as f64 - (partitions / 2) as f64) / partitions as f64;
                assert!(stack.axis(2)[shots].iter().all(|&k| k == kz), "{order:?} {partitions}");
            }
        }
    }
}

#[test]
fn kooshball_is_even() {
    for spokes in [50, 555, 2000] {
        let t = Trajectory::radial3d(spokes, 2).unwrap();
        // Sample 0 of each spoke is at radius -0.5.
        let directions: Vec<[f64; 3]> =
            (0..spokes).map(|p| std::array::from_fn(|axis| -2.0 * t.axis(axis)[2 * p])).collect();
        for a in 0..3 {
            for b in 0..3 {
                let moment = directions.iter().map(|d| d[a] * d[b]).sum::<f64>() / spokes as f64;
                let isotropic = if a == b { 1.0 / 3.0 } else { 0.0 };
                assert!((moment - isotropic).abs() < 1.0 / spokes as f64, "{spokes}: {a} {b} {moment}");
            }
        }
        // No two spokes, as lines, are closer than a fraction of the even spacing.
        let mut nearest = f64::INFINITY;
        for (p, d) in directions.iter().enumerate() {
            assert!((d.iter().map(|x| x * x).sum::<f64>() - 1.0).abs() < 1e-12);
            for e in &directions[..p] {
                let cos = (d[0] * e[0] + d[1] * e[1] + d[2] * e[2]).abs().min(1.0);
                nearest = nearest.min(cos.acos());
            }
        }
        assert!(nearest > 0.4 * (TAU / spokes as f64).sqrt(), "{spokes}: {nearest}");
    }
}

#[test]
fn spirals_follow_their_formula() {
    let (interleaves, samples, turns, density) = (5, 200, 6.25, 1.4);
    let t = Trajectory::spiral(interleaves, samples, turns, density).unwrap();
    for m in 0..t.samples() {
        let (p, u) = (m / samples, (m % samples) as f64 / samples as f64);
        let (kx, ky) = (t.axis(0)[m], t.axis(1)[m]);
        assert!((kx.hypot(ky) - 0.5 * u.powf(density)).abs() < 1e-12);
        let turn = (ky.atan2(kx) / TAU - turns * u - p as f64 / interleaves as f64).rem_euclid(1.0);
        assert!(u == 0.0 || turn.min(1.0 - turn) < 1e-9, "{m}");
    }
    let last = t.axis(0)[samples - 1].hypot(t.axis(1)[samples - 1]);
    assert!(last < 0.5 && last > 0.49);
}

#[test]
fn rosette_shots_are_turned_copies_that_reach_the_edge() {
    let t = Trajectory::rosette(3, 1000, 5.0, 3.0).unwrap();
    let radius = |m: usize| t.axis(0)[m].hypot(t.axis(1)[m]);
    for j in 0..1000 {
        assert!((radius(j) - radius(j + 1000)).abs() < 1e-12);
        assert!((radius(j) - 0.5 * (TAU * 5.0 * j as f64 / 1000.0).sin().abs()).abs() < 1e-12);
    }
    // Sample 50 is the first lobe's tip: sin(2 pi 5 / 20) = 1.
    assert!((radius(50) - 0.5).abs() < 1e-12);
    let tip = |p: usize| t.axis(1)[p * 1000 + 50].atan2(t.axis(0)[p * 1000 + 50]);
    let turned = (tip(1) - tip(0) - PI * GOLDEN).rem_euclid(TAU);
    assert!(turned.min(TAU - turned) < 1e-9);
}

#[test]
fn a_lissajous_curve_is_closed_and_traced_once() {
    let (shots, samples, x, y) = (5, 2000, 18, 25);
    let t = Trajectory::lissajous(shots, samples, x, y).unwrap();
    let total = shots * samples;
    for m in 0..total {
        let u = m as f64 / total as f64;
        assert!((t.axis(0)[m] - 0.5 * (TAU * x as f64 * u).sin()).abs() < 1e-12);
        assert!((t.axis(1)[m] - 0.5 * (TAU * y as f64 * u).sin()).abs() < 1e-12);
    }
    let at = |m: usize| [t.axis(0)[m % total], t.axis(1)[m % total]];
    let distance = |a: [f64; 2], b: [f64; 2]| (a[0] - b[0]).hypot(a[1] - b[1]);
    // The step from the last sample to the first is as long as the next one.
    let step = distance(at(0), at(1));
    assert!((distance(at(total - 1), at(0)) - step).abs() < 1e-12);
    // Not traced back: no other part of the curve follows 40 samples of it in either direction.
    let follows = |m: usize, other: usize, forth: bool| {
        (0..40).all(|i| {
            let j = if forth { other + i } else { other + total - i };
            distance(at(m + i), at(j)) < 0.5 * step
        })
    };
    for m in [13, 777, 4321] {
        let twins = (0..total).filter(|&other| other != m && (follows(m, other, true) || follows(m, other, false)));
        assert_eq!(twins.collect::<Vec<_>>(), Vec::<usize>::new(), "{m}");
    }
    // Lines of a family cross the diagonal in the middle at the documented distance.
    let spacing = 0.25 * TAU / (x as f64).hypot(y as f64);
    let crossings: Vec<f64> = (0..total)
        .filter_map(|m| {
            let ([x0, y0], [x1, y1]) = (at(m), at(m + 1));
            let along = [x1 - x0, y1 - y0];
            // Lines along (x, y), at their distance from the centre.
            let near = x0.hypot(y0) < 0.1 && along[0] * along[1] > 0.0;
            let across = [-(y as f64), x as f64].map(|d| d / (x as f64).hypot(y as f64));
            let own = [x as f64, y as f64].map(|d| d / (x as f64).hypot(y as f64));
            let (before, after) = (x0 * own[0] + y0 * own[1], x1 * own[0] + y1 * own[1]);
            (near && before.signum() != after.signum()).then(|| x0 * across[0] + y0 * across[1])
        })
        .collect();
    let mut sorted = crossings.clone();
    sorted.sort_by(f64::total_cmp);
    assert!(sorted.len() >= 3, "{sorted:?}");
    for pair in sorted.windows(2) {
        assert!((pair[1] - pair[0] - spacing).abs() < 0.05 * spacing, "{sorted:?} and {spacing}");
    }
}

#[test]
fn lissajous_curves_that_repeat_are_errors_with_a_remedy() {
    for (x, y, words) in [
        (12, 18, ["common factor 6", "12 and 13"]),
        (9, 9, ["common factor 9", "9 and 10"]),
        (3, 5, ["both odd", "3 and 4"]),
        (1, 1, ["both odd", "1 and 2"]),
        (0, 5, ["0 and 5", "1 or more"]),
        (30, 101, ["400 samples", "frequency 101"]),
    ] {
        let error = Trajectory::lissajous(4, 100, x, y).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(words.iter().all(|word| error.message().contains(word)), "{error}");
    }
    // The remedies are accepted.
    for (x, y) in [(12, 13), (9, 10), (3, 4), (1, 2), (99, 100)] {
        assert!(Trajectory::lissajous(4, 100, x, y).is_ok());
    }
}

#[test]
fn blades_are_strips_within_the_disc() {
    for (blades, lines, samples, matrix) in [(6, 10, 64, 64), (17, 24, 960, 256), (5, 9, 100, 70), (3, 32, 128, 64)] {
        let t = Trajectory::propeller_scan(blades, lines, samples, matrix).unwrap();
        let (mut widest, mut first) = (0.0_f64, 0.0_f64);
        for m in 0..t.samples() {
            let (kx, ky) = (t.axis(0)[m], t.axis(1)[m]);
            widest = widest.max(kx.hypot(ky));
            let (sin, cos) = (PI * (m / (lines * samples)) as f64 / blades as f64).sin_cos();
            let (along, across) = (kx * cos + ky * sin, (ky * cos - kx * sin) * matrix as f64);
            assert!((across - ((m / samples % lines) as f64 - (lines / 2) as f64)).abs() < 1e-9, "{m}");
            // Samples of a line are evenly spaced.
            let from_centre = (m % samples) as f64 - (samples / 2) as f64;
            let half = (0.25 - ((lines / 2) as f64 / matrix as f64).powi(2)).sqrt();
            assert!((along - 2.0 * half * from_centre / samples as f64).abs() < 1e-12, "{m}");
            first = first.min(along);
        }
        assert!((widest - 0.5).abs() < 1e-12);
        assert!(first < -0.43, "{first}");
        for p in 0..blades {
            let centre = (p * lines + lines / 2) * samples + samples / 2;
            assert_eq!((t.axis(0)[centre], t.axis(1)[centre]), (0.0, 0.0));
        }
    }
    // Without oversampling both generators have the same bits.
    assert_eq!(Trajectory::propeller(6, 10, 64).unwrap(), Trajectory::propeller_scan(6, 10, 64, 64).unwrap());
}

/// Returns the part of the circle of radius `r` at which a blade of the scan has a line within half a line distance.
fn covered(t: &Trajectory, [blades, lines, matrix]: [usize; 3], r: f64) -> f64 {
    let samples = t.samples_per_shot();
    let line = |b: usize, l: usize, j: usize| {
        let m = (b * lines + l) * samples + j;
        [t.axis(0)[m], t.axis(1)[m]]
    };
    let points = 7000;
    let within = |i: &usize| {
        let (sin, cos) = (TAU * *i as f64 / points as f64).sin_cos();
        let k = [r * cos, r * sin];
        (0..blades).any(|b| {
            let (first, last) = (line(b, 0, 0), line(b, lines - 1, 0));
            let across = [last[0] - first[0], last[1] - first[1]].map(|d| d / (lines - 1) as f64);
            let square = across[0] * across[0] + across[1] * across[1];
            assert!((square.sqrt() * matrix as f64 - 1.0).abs() < 1e-9);
            let position = ((k[0] - first[0]) * across[0] + (k[1] - first[1]) * across[1]) / square;
            (-0.5..lines as f64 - 0.5).contains(&position)
        })
    };
    (0..points).filter(within).count() as f64 / points as f64
}

#[test]
fn the_papers_scan_covers_the_outer_circle() {
    // Yang et al. 2013: scan matrix 256, 960 samples, 24 lines, 17 blades.
    let (blades, lines, samples, matrix) = (17, 24, 960, 256);
    let t = Trajectory::propeller_scan(blades, lines, samples, matrix).unwrap();
    let width = |t: &Trajectory| {
        let [x, y] = [0, 1].map(|a| t.axis(a)[samples] - t.axis(a)[0]);
        blades as f64 * lines as f64 * x.hypot(y) / (0.5 * PI)
    };
    assert!((width(&t) - 1.0146).abs() < 1e-4, "{}", width(&t));
    let part = covered(&t, [blades, lines, matrix], 0.5);
    // Strips of equal width leave thin gaps between neighbours, because their edges are straight and off centre.
    assert!(part > 0.98, "{part}");
    // Without the scan matrix, lines are 1 / 960 apart, and the same number of blades leaves three quarters empty.
    let narrow = Trajectory::propeller(blades, lines, samples).unwrap();
    assert!((width(&narrow) - 0.2706).abs() < 1e-4, "{}", width(&narrow));
    assert!(covered(&narrow, [blades, lines, samples], 0.5) < 0.28);
}

#[test]
fn the_papers_scan_has_the_papers_coordinates() {
    // Equations 1 and 2 of Yang et al. 2013, without the rotation, in units of the whole width.
    let (lines, samples, matrix) = (24, 960, 256);
    let t = Trajectory::propeller_scan(17, lines, samples, matrix).unwrap();
    let mut beyond = 0;
    for v in 0..lines {
        let y = -0.5 + ((matrix - lines) as f64 / 2.0 + v as f64) / matrix as f64;
        for u in 0..samples {
            let x = -0.5 + u as f64 / samples as f64;
            let m = v * samples + u;
            assert!((t.axis(1)[m] - y).abs() < 1e-12);
            // The readout is shorter by half a percent, so that no sample is beyond 0.5 at any angle.
            assert!((t.axis(0)[m] - x).abs() < 0.0023, "{m}");
            assert!((t.axis(0)[m] / x - 0.99559).abs() < 1e-5 || x == 0.0, "{m}");
            for b in 0..17 {
                let (sin, cos) = (PI * b as f64 / 17.0).sin_cos();
                beyond += usize::from((x * cos - y * sin).abs().max((x * sin + y * cos).abs()) > 0.5);
            }
        }
    }
    // The samples of the paper that have no place in k-space.
    assert_eq!(beyond, 30);
}

#[test]
fn selected_shots_equal_shots_of_the_whole() {
    let t = Trajectory::radial3d(11, 6).unwrap();
    let part = t.select_shots(1, 4).unwrap();
    assert_eq!((part.shots(), part.samples(), part.ndim()), (3, 18, 3));
    for axis in 0..3 {
        for (i, shot) in [1, 5, 9].into_iter().enumerate() {
            assert_eq!(part.axis(axis)[i * 6..][..6], t.axis(axis)[shot * 6..][..6]);
        }
    }
    assert_eq!(t.select_shots(0, 1).unwrap(), t);
    assert_eq!(t.select_shots(10, usize::MAX).unwrap().shots(), 1);
    assert_eq!(kind(t.select_shots(11, 1)), ErrorKind::InvalidArgument);
    assert_eq!(kind(t.select_shots(0, 0)), ErrorKind::InvalidArgument);
}

#[test]
fn times_restart_with_each_shot() {
    let t = Trajectory::radial2d(3, 4, SpokeOrder::Linear).unwrap();
    let times = t.times(8e-3).unwrap();
    for (m, time) in times.iter().enumerate() {
        assert!((time - 2e-3 * (m % 4) as f64).abs() < 1e-15);
    }
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(t.times(bad).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
}

#[test]
fn bad_sizes_and_arguments_are_named() {
    use ErrorKind::{CoordinateOutOfRange, InvalidArgument, InvalidSize, NotFinite, SizeMismatch, SizeOverflow};
    let big = usize::MAX;
    let linear = SpokeOrder::Linear;
    for (result, expected) in [
        (Trajectory::cartesian(&[]), InvalidSize),
        (Trajectory::cartesian(&[2, 2, 2, 2]), InvalidSize),
        (Trajectory::cartesian(&[4, 0]), InvalidSize),
        (Trajectory::cartesian(&[2, big]), SizeOverflow),
        (Trajectory::radial2d(0, 8, linear), InvalidSize),
        (Trajectory::radial2d(8, 0, linear), InvalidSize),
        (Trajectory::radial2d(big, 8, linear), SizeOverflow),
        (Trajectory::radial3d(0, 8), InvalidSize),
        (Trajectory::radial3d(8, big), SizeOverflow),
        (Trajectory::stack_of_stars(0, 8, 4, linear), InvalidSize),
        (Trajectory::stack_of_stars(8, 0, 4, linear), InvalidSize),
        (Trajectory::stack_of_stars(8, 8, 0, linear), InvalidSize),
        (Trajectory::stack_of_stars(big, 8, 2, linear), SizeOverflow),
        (Trajectory::stack_of_stars(2, big, 2, linear), SizeOverflow),
        (Trajectory::spiral(0, 8, 1.0, 1.0), InvalidSize),
        (Trajectory::spiral(big, big, 1.0, 1.0), SizeOverflow),
        (Trajectory::spiral(1, 8, 0.0, 1.0), InvalidArgument),
        (Trajectory::spiral(1, 8, 1.0, f64::NAN), InvalidArgument),
        (Trajectory::rosette(1, 0, 1.0, 1.0), InvalidSize),
        (Trajectory::rosette(1, big, 1.0, 1.0), SizeOverflow),
        (Trajectory::rosette(1, 8, f64::INFINITY, 1.0), InvalidArgument),
        (Trajectory::rosette(1, 8, 1.0, -2.0), InvalidArgument),
        (Trajectory::lissajous(0, 8, 1, 2), InvalidSize),
        (Trajectory::lissajous(8, 0, 1, 2), InvalidSize),
        (Trajectory::lissajous(2, big, 1, 2), SizeOverflow),
        (Trajectory::lissajous(1, 100, big, 2), InvalidArgument),
        (Trajectory::propeller(0, 4, 16), InvalidSize),
        (Trajectory::propeller(4, 0, 16), InvalidSize),
        (Trajectory::propeller(4, 4, 0), InvalidSize),
        (Trajectory::propeller(4, 9, 16), InvalidArgument),
        (Trajectory::propeller_scan(0, 4, 32, 16), InvalidSize),
        (Trajectory::propeller_scan(4, 0, 32, 16), InvalidSize),
        (Trajectory::propeller_scan(4, 4, 0, 16), InvalidSize),
        (Trajectory::propeller_scan(4, 4, 32, 0), InvalidSize),
        (Trajectory::propeller_scan(4, 9, 32, 16), InvalidArgument),
        (Trajectory::propeller_scan(4, 4, 16, 32), InvalidArgument),
        (Trajectory::propeller_scan(2, 4, big, 16), SizeOverflow),
        (Trajectory::propeller(big, 4, 16), SizeOverflow),
        (Trajectory::new(vec![], 1), InvalidSize),
        (Trajectory::new(vec![vec![]], 1), InvalidSize),
        (Trajectory::new(vec![vec![0.0; 5]], 2), InvalidSize),
        (Trajectory::new(vec![vec![0.0; 5], vec![0.0; 4]], 5), SizeMismatch),
        (Trajectory::new(vec![vec![0.0, 0.500002]], 1), CoordinateOutOfRange),
        (Trajectory::new(vec![vec![0.0, f64::NAN]], 1), NotFinite),
    ] {
        assert_eq!(kind(result), expected);
    }
    let message = Trajectory::propeller(4, 9, 16).unwrap_err().message().to_owned();
    assert!(message.contains('9') && message.contains("at most 8 lines"), "{message}");
    let message = Trajectory::propeller_scan(17, 24, 256, 960).unwrap_err().message().to_owned();
    assert!(message.contains("256 samples") && message.contains("at least 960"), "{message}");
}
