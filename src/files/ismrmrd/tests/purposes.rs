//! Image, calibration and noise acquisitions.

use super::*;

/// Flags of acquisitions that are not used, counted from 1 as in ISMRMRD: navigation, phase correction, feedback,
/// dummy, real-time feedback, surface coil correction.
const UNUSED: [u32; 6] = [23, 24, 26, 27, 28, 29];
const CALIBRATION_AND_IMAGING: u32 = 21;

#[test]
fn unused_acquisitions_are_ignored() {
    for flag in UNUSED.into_iter().chain([flag::NOISE]) {
        // The counts of an unused acquisition need not agree with the other acquisitions.
        let unused = with_header(acquisition(9, 1, 5), |h| h.flags = flag::bit(flag));
        let h = header([8, 8, 1], TrajectoryKind::Other);
        let found = read_back(&h, vec![unused, acquisition(4, 2, 2)]).unwrap();
        let scans = &found.scans;
        assert_eq!((scans.len(), scans[0].samples(), scans[0].coils), (1, 4, 2));
        assert_eq!((found.calibration.len(), found.uses.len()), (0, 2));
        if flag != flag::NOISE {
            let only = with_header(acquisition(4, 2, 2), |h| h.flags = flag::bit(flag));
            expect_error(vec![only], [8, 8, 1], ErrorKind::BadFile, &["none of the 1 acquisitions is image data"]);
        }
    }
    let only = with_header(acquisition(4, 2, 2), |h| h.flags = flag::bit(flag::CALIBRATION));
    expect_error(
        vec![only],
        [8, 8, 1],
        ErrorKind::BadFile,
        &["none of the 1 acquisitions is image data: 1 calibration"],
    );
}

/// Reads a Cartesian scan of 8 x 8 with the calibration mode `mode`. `all` has encoding step and flags of each line.
fn lines(mode: Option<CalibrationMode>, all: &[(u16, &[u32])]) -> Dataset {
    let mut h = header([8, 8, 1], TrajectoryKind::Cartesian);
    h.encodings[0].parallel = Some(ParallelImaging { acceleration: [2, 1], calibration: mode });
    let line = |&(step, flags): &(u16, &[u32])| {
        with_header(acquisition(8, 0, 2), |h| {
            h.idx.kspace_encode_step_1 = step;
            h.flags = flags.iter().map(|&f| flag::bit(f)).sum();
        })
    };
    read_back(&h, all.iter().map(line).collect()).unwrap()
}

/// Returns the encoding steps of the lines of a scan.
fn steps(scan: &Scan) -> Vec<i32> {
    scan.coordinates[1].iter().step_by(8).map(|k| (k * 8.0) as i32 + 4).collect()
}

#[test]
fn calibration_lines_are_separate_scans() {
    use AcquisitionUse::*;
    const C: &[u32] = &[flag::CALIBRATION];
    const B: &[u32] = &[CALIBRATION_AND_IMAGING];
    // Embedded: calibration lines between image lines are also image lines. Line 4, which is measured twice, counts
    // once. Image line 2, between calibration lines, is used for both.
    let all: &[(u16, &[u32])] = &[(0, &[]), (2, &[]), (4, B), (6, &[]), (1, C), (3, C), (4, C), (5, C)];
    let found = lines(Some(CalibrationMode::Embedded), all);
    assert_eq!(steps(&found.scans[0]), [0, 2, 4, 6, 1, 3, 5]);
    assert_eq!(steps(&found.calibration[0]), [2, 4, 1, 3, 4, 5]);
    assert_eq!(found.uses, [(Image, 2), (Calibration, 1), (ImageAndCalibration, 5)]);
    // In the other modes only the flags decide.
    for mode in [None, Some(CalibrationMode::Separate), Some(CalibrationMode::External)] {
        let found = lines(mode, all);
        assert_eq!(steps(&found.scans[0]), [0, 2, 4, 6], "{mode:?}");
        assert_eq!(steps(&found.calibration[0]), [4, 1, 3, 4, 5], "{mode:?}");
        assert_eq!(found.uses, [(Image, 3), (Calibration, 4), (ImageAndCalibration, 1)], "{mode:?}");
        assert_eq!(found.header.encodings[0].parallel.unwrap().calibration, mode);
    }
}

#[test]
fn noise_is_read_separately() {
    let noise = |samples, coils, us| {
        with_header(acquisition(samples, 0, coils), |h| (h.flags, h.sample_time_us) = (flag::bit(flag::NOISE), us))
    };
    let h = header([8, 8, 1], TrajectoryKind::Other);
    let all = vec![noise(4, 2, 5.0), acquisition(4, 2, 2), noise(3, 2, 5.0), noise(2, 3, 5.0), noise(1, 2, 2.5)];
    let numbers = |i: usize| all[i].data.clone();
    let (first, second) = (numbers(0), numbers(2));
    let (coils, times) = (numbers(3), numbers(4));
    let found = read_back(&h, all).unwrap();
    assert_eq!((found.scans.len(), found.uses), (1, vec![(AcquisitionUse::Image, 1), (AcquisitionUse::Noise, 4)]));
    let of = |coils: usize, dwell: f32| found.noise.iter().find(|n| (n.coils, n.dwell) == (coils, dwell)).unwrap();
    assert_eq!(found.noise.len(), 3);
    assert_eq!(of(2, 5e-6).data, [&first[..4], &second[..3], &first[4..], &second[3..]].concat());
    assert_eq!((&of(3, 5e-6).data, &of(2, 2.5e-6).data), (&coils, &times));
    // A file with noise only has no image.
    let only = read_back(&h, vec![noise(4, 0, 5.0), noise(4, 2, 5.0)]).unwrap();
    assert_eq!((only.scans.len(), only.noise.len()), (0, 1));
    let mut short = noise(4, 2, 5.0);
    short.data.pop();
    expect_error(vec![short], [8, 8, 1], ErrorKind::BadFile, &["acquisition 0", "14 numbers", "16"]);
    expect_error(vec![noise(4, 2, -1.0)], [8, 8, 1], ErrorKind::BadFile, &["sample time is -1"]);
}
