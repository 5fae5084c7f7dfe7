//! Writing and reading whole datasets, and selecting shots.

use super::*;

#[test]
fn round_trip() {
    let dir = TempDir::new();
    let (path, mut wanted) = (dir.path("raw.h5"), dataset());
    wanted.noise = vec![Noise { coils: 3, dwell: 2e-6, data: ramp(3 * 1100) }];
    wanted.calibration = vec![wanted.scans[0].shots(1..4)];
    wanted.uses = vec![(AcquisitionUse::Image, 205), (AcquisitionUse::Calibration, 3), (AcquisitionUse::Noise, 3)];
    wanted.header.noise_bandwidth = Some(0.793);
    write_dataset(&path, &wanted).unwrap();
    assert_eq!(dir.count(), 1);
    let mut found = read_dataset(&path).unwrap();
    let scans = found.scans.iter_mut().chain(&mut found.calibration);
    for (a, b) in scans.zip(wanted.scans.iter_mut().chain(&mut wanted.calibration)) {
        assert!(a.times.iter().zip(&b.times).all(|(a, b)| (a - b).abs() < 1e-9));
        a.times.clear();
        b.times.clear();
    }
    assert_eq!(found, wanted);
    let e = super::super::read_dataset(&path, "other", AssemblyOptions::default()).unwrap_err();
    assert!(e.message().ends_with("no group \"other\"; the file has: dataset"), "{e}");
}

#[test]
fn invalid_datasets_are_not_written() {
    let dir = TempDir::new();
    let path = dir.path("raw.h5");
    let attempt = |change: &dyn Fn(&mut Dataset)| {
        let mut d = dataset();
        change(&mut d);
        write_dataset(&path, &d).unwrap_err().kind()
    };
    assert_eq!(attempt(&|d| d.scans.clear()), ErrorKind::InvalidArgument);
    assert_eq!(attempt(&|d| d.scans[0].data.truncate(5)), ErrorKind::SizeMismatch);
    assert_eq!(attempt(&|d| d.scans[1].coordinates[1].truncate(5)), ErrorKind::SizeMismatch);
    assert_eq!(attempt(&|d| d.scans[1].times.truncate(5)), ErrorKind::SizeMismatch);
    assert_eq!(attempt(&|d| d.scans[0].samples_per_shot.push(0)), ErrorKind::InvalidSize);
    assert_eq!(attempt(&|d| d.scans[0].index.encoding = 1), ErrorKind::SizeMismatch);
    assert_eq!(attempt(&|d| d.scans[0].encoded_matrix[1] = 8), ErrorKind::SizeMismatch);
    assert_eq!(attempt(&|d| d.header.encodings[0].encoded.matrix[2] = 4), ErrorKind::SizeMismatch);
    assert_eq!(attempt(&|d| d.scans[0].coordinates[1][3] = 0.6), ErrorKind::CoordinateOutOfRange);
    assert_eq!(attempt(&|d| d.scans[0].coordinates[1][3] = f32::NAN), ErrorKind::CoordinateOutOfRange);
    assert_eq!(attempt(&|d| d.scans[0].data[3].im = f32::NAN), ErrorKind::NotFinite);
    assert_eq!(
        attempt(&|d| {
            let n = 70_000;
            let s = &mut d.scans[0];
            (s.samples_per_shot, s.skipped_per_shot) = (vec![n], vec![0]);
            s.coordinates = vec![vec![0.0; n]; 2];
            (s.data, s.times) = (ramp(3 * n), vec![0.0; n]);
        }),
        ErrorKind::Unsupported
    );
    assert_eq!(dir.count(), 0);
}

#[test]
fn shot_selection() {
    let scan = &dataset().scans[0];
    let some = scan.every_nth_shot(2);
    assert_eq!(some.samples_per_shot, [5, 6, 7]);
    let kept: Vec<usize> = (0..5).chain(9..15).chain(16..23).collect();
    assert_eq!(some.coordinates[1], kept.iter().map(|&i| scan.coordinates[1][i]).collect::<Vec<_>>());
    let coil = |c: usize| kept.iter().map(move |&i| scan.data[c * 23 + i]);
    assert_eq!(some.data, (0..3).flat_map(coil).collect::<Vec<_>>());
    assert!(some.check().is_ok());
    assert_eq!(scan.every_nth_shot(1), *scan);
    assert_eq!(scan.every_nth_shot(0), *scan);
    assert_eq!(scan.every_nth_shot(100).samples_per_shot, [5]);
    assert_eq!(scan.shots(0..scan.samples_per_shot.len()), *scan);
    let middle = scan.shots(1..3);
    assert_eq!(middle.samples_per_shot, [4, 6]);
    assert_eq!(middle.data[..10], scan.data[5..15]);
    assert_eq!((&middle.data[10..20], &middle.times[..]), (&scan.data[23 + 5..23 + 15], &scan.times[5..15]));
}

#[test]
fn images_are_distinguished_and_ordered() {
    let at = |slice, repetition, average, contrast| {
        with_header(acquisition(4, 2, 1), |h| {
            (h.idx.slice, h.idx.repetition, h.idx.average, h.idx.contrast) = (slice, repetition, average, contrast);
        })
    };
    let all = vec![at(1, 0, 0, 0), at(0, 1, 0, 0), at(0, 0, 0, 1), at(0, 0, 1, 0), at(1, 0, 2, 0), at(0, 0, 3, 0)];
    let scans = read_back(&header([8, 8, 1], TrajectoryKind::Other), all).unwrap().scans;
    let found: Vec<_> = scans
        .iter()
        .map(|s| (s.index.slice, s.index.repetition, s.index.contrast, s.index.average, s.samples()))
        .collect();
    assert_eq!(found, [(0, 0, 0, 1, 8), (0, 0, 1, 0, 4), (0, 1, 0, 0, 4), (1, 0, 0, 0, 8)]);
}

#[test]
fn real_radial_data() {
    let Some(path) = test_data("brain_8ch_radial96.h5") else { return };
    let data = read_dataset(path).unwrap();
    assert_eq!(data.header.encodings[0].trajectory, TrajectoryKind::Radial);
    let [scan] = data.scans.as_slice() else { panic!("{} scans", data.scans.len()) };
    assert_eq!((scan.ndim, scan.coils, scan.encoded_matrix), (2, 8, [256, 256, 1]));
    assert_eq!(scan.samples_per_shot, [512; 96]);
    assert_eq!(scan.data.len(), 96 * 512 * 8);
    assert!(scan.coordinates.iter().flatten().all(|k| (-0.5..0.5).contains(k)));
    // The energy is at the centre of every spoke.
    let energy = |i: usize| (0..8).map(|c| scan.data[c * 96 * 512 + i].norm_sqr()).sum::<f32>();
    assert!((0..96).all(|s| energy(s * 512 + 256) > 100.0 * energy(s * 512)));
}

#[test]
fn real_cartesian_data_and_the_computed_trajectory() {
    let Some(path) = test_data("brain_8ch_cartesian.h5") else { return };
    let stored = read_dataset(&path).unwrap();
    let scan = &stored.scans[0];
    assert_eq!((scan.samples_per_shot.len(), scan.samples_per_shot[0], scan.coils), (180, 230, 8));
    // The same scan without its trajectory.
    let mut steps: Vec<u16> = Vec::new();
    let mut lines = Vec::new();
    for shot in 0..180 {
        let ky = scan.coordinates[1][shot * 230] as f64;
        steps.push((ky * 180.0 + 90.0).round() as u16);
        let mut a = acquisition(230, 0, 1);
        a.header.center_sample = 115;
        a.header.idx.kspace_encode_step_1 = steps[shot];
        a.data = vec![Complex::default(); 230];
        lines.push(a);
    }
    let computed = &read_back(&stored.header, lines).unwrap().scans[0];
    for axis in 0..2 {
        let pairs = computed.coordinates[axis].iter().zip(&scan.coordinates[axis]);
        assert!(pairs.clone().all(|(a, b)| (a - b).abs() < 1e-6), "axis {axis}");
    }
}
