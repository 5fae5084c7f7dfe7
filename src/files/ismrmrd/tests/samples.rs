//! Trajectories, times, and invalid numbers and counts.

use super::*;

#[test]
fn discarded_samples_and_times() {
    let a = with_header(acquisition(8, 2, 2), |h| (h.discard_pre, h.discard_post) = (2, 1));
    let (trajectory, data) = (a.trajectory.clone(), a.data.clone());
    let scan = &read_back(&header([8, 8, 1], TrajectoryKind::Other), vec![a, acquisition(3, 2, 2)]).unwrap().scans[0];
    assert_eq!((&scan.samples_per_shot[..], &scan.skipped_per_shot[..]), (&[5, 3][..], &[2, 0][..]));
    assert_eq!(scan.coordinates[0][0], trajectory[4]);
    assert_eq!(scan.data[8 + 4], data[8 + 6]);
    assert_eq!(scan.times[0], 1e-5);
    assert_eq!(scan.times[5], 0.0);
}

#[test]
fn trajectory_dimensions() {
    let h2 = header([8, 8, 1], TrajectoryKind::Other);
    let h3 = header([8, 8, 8], TrajectoryKind::Other);
    let scan = |h: &Header, d| read_back(h, vec![acquisition(4, d, 1)]).map(|mut d| d.scans.remove(0));
    assert_eq!(scan(&h2, 2).unwrap().weights, None);
    assert_eq!(scan(&h2, 3).unwrap().weights.unwrap(), [2.0 / 14.0, 5.0 / 14.0, 1.0 / 14.0, 4.0 / 14.0]);
    assert_eq!(scan(&h3, 3).unwrap().coordinates.len(), 3);
    assert_eq!(scan(&h3, 4).unwrap().weights.unwrap().len(), 4);
    let stack = with_header(acquisition(4, 2, 1), |h| h.idx.kspace_encode_step_2 = 1);
    let stack = &read_back(&h3, vec![stack]).unwrap().scans[0];
    assert_eq!(stack.coordinates[2], [-0.375; 4]);

    // Three dimensions, with 0 in the third one in all samples: kz.
    let mut flat = acquisition(2, 3, 1);
    flat.trajectory = vec![0.1, 0.2, 0.0, 0.3, 0.4, 0.0];
    let flat = &read_back(&h2, vec![flat]).unwrap().scans[0];
    assert_eq!((flat.weights.as_ref(), &flat.coordinates[1]), (None, &vec![0.2, 0.4]));

    expect_error(vec![acquisition(4, 1, 1)], [8, 8, 1], ErrorKind::BadFile, &["1 dimensions for a 2D image"]);
    expect_error(vec![acquisition(4, 4, 1)], [8, 8, 1], ErrorKind::BadFile, &["4 dimensions for a 2D image"]);
    expect_error(vec![acquisition(4, 5, 1)], [8, 8, 8], ErrorKind::BadFile, &["5 dimensions for a 3D image"]);
    let parts = ["no trajectory is stored", "angle_range_degrees"];
    expect_error(vec![acquisition(4, 0, 1)], [8, 8, 1], ErrorKind::Unsupported, &parts);
    expect_error(
        vec![acquisition(4, 2, 1), acquisition(4, 3, 1)],
        [8, 8, 1],
        ErrorKind::BadFile,
        &["3 trajectory dim"],
    );
}

#[test]
fn cartesian_trajectories() {
    let mut h = header([8, 6, 1], TrajectoryKind::Cartesian);
    let line = |step, reverse, centre| {
        with_header(acquisition(8, 0, 1), |h| {
            h.idx.kspace_encode_step_1 = step;
            h.center_sample = centre;
            h.flags = if reverse { flag::bit(flag::REVERSE) } else { 0 };
        })
    };
    let axes = |h: &Header, a| read_back(h, vec![a]).map(|mut d| d.scans.remove(0).coordinates);
    let rising: Vec<f32> = (0..8).map(|i| i as f32 / 8.0 - 0.5).collect();
    let mut falling = rising.clone();
    falling.reverse();
    assert_eq!(axes(&h, line(0, false, 4)).unwrap(), [rising.clone(), vec![-0.5; 8]]);
    assert_eq!(axes(&h, line(3, true, 4)).unwrap(), [falling, vec![0.0; 8]]);
    assert_eq!(axes(&h, line(3, false, 0)).unwrap()[0], rising);
    assert_eq!(axes(&h, line(6, false, 4)).unwrap()[1], [-0.5; 8]);
    let e = axes(&h, line(7, false, 4)).unwrap_err();
    assert!(e.kind() == ErrorKind::CoordinateOutOfRange && e.message().contains("encoding step 1 is 7"), "{e}");
    let e = axes(&h, line(3, false, 1)).unwrap_err();
    assert!(e.kind() == ErrorKind::CoordinateOutOfRange && e.message().contains("center_sample"), "{e}");

    h.encodings[0].steps[0] = Some(EncodingLimits { minimum: 0, maximum: 4, center: 1 });
    assert_eq!(axes(&h, line(1, false, 4)).unwrap()[1], [0.0; 8]);
    // An asymmetric echo: the centre is the third sample, and the first sample is discarded.
    let echo = with_header(acquisition(6, 0, 1), |h| (h.center_sample, h.discard_pre) = (2, 1));
    assert_eq!(axes(&h, echo).unwrap()[0], [-0.125, 0.0, 0.125, 0.25, 0.375]);

    let volume = with_header(line(3, false, 4), |h| h.idx.kspace_encode_step_2 = 1);
    let k = axes(&header([8, 6, 4], TrajectoryKind::Cartesian), volume).unwrap();
    assert_eq!((k.len(), k[2][0]), (3, -0.25));
}

#[test]
fn invalid_numbers_are_errors() {
    let (m, good) = ([8, 8, 1], || acquisition(4, 2, 2));
    let mut a = good();
    a.trajectory[3] = 0.5;
    let scan = &read_back(&header(m, TrajectoryKind::Other), vec![a]).unwrap().scans[0];
    assert_eq!(scan.coordinates[1][1], -0.5);
    for (value, kind) in [
        (0.500_001, ErrorKind::CoordinateOutOfRange),
        (-0.51, ErrorKind::CoordinateOutOfRange),
        (128.0, ErrorKind::CoordinateOutOfRange),
        (f32::NAN, ErrorKind::NotFinite),
        (f32::INFINITY, ErrorKind::NotFinite),
    ] {
        let mut a = good();
        a.trajectory[5] = value;
        expect_error(vec![good(), a], m, kind, &["acquisition 1: sample 2: ", " 1 ", &value.to_string()]);
        let mut a = good();
        a.data[4 + 3].im = value;
        match value.is_finite() {
            true => assert!(read_back(&header(m, TrajectoryKind::Other), vec![a]).is_ok()),
            false => expect_error(vec![good(), a], m, kind, &["acquisition 1: coil 1, sample 3"]),
        }
    }
    let mut a = acquisition(4, 3, 1);
    a.trajectory[5] = -1.0;
    expect_error(vec![a], m, ErrorKind::BadFile, &["sample 1", "weight is -1"]);
    let a = with_header(good(), |h| h.sample_time_us = f32::NAN);
    expect_error(vec![a], m, ErrorKind::BadFile, &["the sample time is NaN"]);
}

#[test]
fn inconsistent_counts_are_errors() {
    let m = [8, 8, 1];
    let mut a = acquisition(4, 2, 2);
    a.trajectory = vec![0.0; 7];
    expect_error(vec![a], m, ErrorKind::BadFile, &["acquisition 0", "7 numbers", "4 samples of 2 dimensions need 8"]);
    let mut a = acquisition(4, 2, 2);
    a.trajectory = Vec::new();
    expect_error(vec![a], m, ErrorKind::BadFile, &["0 numbers"]);
    let mut a = acquisition(4, 2, 2);
    a.data.pop();
    expect_error(
        vec![a],
        m,
        ErrorKind::BadFile,
        &["acquisition 0", "14 numbers", "4 complex samples of 2 coils need 16"],
    );
    let different = vec![acquisition(4, 2, 2), acquisition(4, 2, 3)];
    expect_error(different, m, ErrorKind::BadFile, &["acquisition 1 has 3 coils", "has 2"]);
    expect_error(vec![acquisition(4, 2, 0)], m, ErrorKind::BadFile, &["0 coils"]);
    expect_error(vec![acquisition(0, 2, 1)], m, ErrorKind::BadFile, &["keeps no samples"]);
    let a = with_header(acquisition(4, 2, 1), |h| (h.discard_pre, h.discard_post) = (3, 2));
    expect_error(vec![a], m, ErrorKind::BadFile, &["keeps no samples", "discards 3 before and 2 after"]);
    let a = with_header(acquisition(4, 2, 1), |h| h.encoding_space_ref = 1);
    expect_error(vec![a], m, ErrorKind::BadFile, &["refers to encoding 1, but the header has 1"]);
    // Counts that need far more memory than the file has bytes.
    let a = with_header(acquisition(4, 2, 1), |h| (h.number_of_samples, h.active_channels) = (65535, 65535));
    expect_error(vec![a], m, ErrorKind::BadFile, &["announce 34358689800 bytes"]);
    expect_error(vec![], m, ErrorKind::BadFile, &["no acquisitions"]);
}
