use super::super::tests::{ramp, test_data, write_dataset, write_series as write_images, TempDir};
use super::header::*;
use super::storage::*;
use super::*;
use crate::io::{Image, Placement, ScanIndex};
use hdf5::types::{TypeDescriptor, VarLenArray};
use num_complex::Complex;
use recon::acquisition::AcquisitionUse;
use recon::atomic_file::write_atomically;
use recon::error::{ErrorKind, Result};
use std::path::{Path, PathBuf};

/// A header of one encoding.
fn header(matrix: [usize; 3], trajectory: TrajectoryKind) -> Header {
    let space = Space { matrix, fov_mm: matrix.map(|n| 2.5 * n as f32) };
    let encoding = Encoding { encoded: space, recon: space, trajectory, ..Default::default() };
    let h1_resonance_hz = Some(127_740_000);
    Header {
        encodings: vec![encoding],
        receiver_channels: Some(2),
        noise_bandwidth: None,
        h1_resonance_hz,
        echo_times_ms: vec![4.92, 7.38],
    }
}

/// An acquisition of `samples` samples, `dimensions` trajectory dimensions and `coils` coils.
fn acquisition(samples: usize, dimensions: usize, coils: usize) -> Acquisition {
    let head = AcquisitionHead {
        version: 1,
        number_of_samples: samples as u16,
        available_channels: coils as u16,
        active_channels: coils as u16,
        trajectory_dimensions: dimensions as u16,
        center_sample: (samples / 2) as u16,
        sample_time_us: 5.0,
        ..Default::default()
    };
    let traj: Vec<f32> = (0..samples * dimensions).map(|i| (i % 7) as f32 / 14.0).collect();
    let data: Vec<f32> = (0..2 * samples * coils).map(|i| i as f32).collect();
    Acquisition { head, traj: VarLenArray::from_slice(&traj), data: VarLenArray::from_slice(&data) }
}

fn write_raw(
    path: &Path,
    xml: Option<&str>,
    total: usize,
    acquisitions: &mut dyn Iterator<Item = Acquisition>,
) -> Result<()> {
    write_atomically(|files| super::write::write_raw(files, path, xml, total, acquisitions))
}

/// A file with these acquisitions, read again.
fn read_back(header: &Header, acquisitions: Vec<Acquisition>) -> Result<Dataset> {
    let dir = TempDir::new();
    let path = dir.path("test.h5");
    write_raw(&path, Some(&header.to_xml()), acquisitions.len(), &mut acquisitions.into_iter())?;
    let result = read_dataset(&path, None);
    if let Err(e) = &result {
        assert!(e.message().starts_with(path.to_str().unwrap()), "no file name: {e}");
        assert!(!e.message().contains('\n'), "several lines: {e}");
    }
    result
}

/// The error of reading these acquisitions has this kind, and these parts in its message.
#[track_caller]
fn expect(acquisitions: Vec<Acquisition>, matrix: [usize; 3], kind: ErrorKind, parts: &[&str]) {
    let e = read_back(&header(matrix, TrajectoryKind::Radial), acquisitions).unwrap_err();
    assert_eq!(e.kind(), kind, "{e}");
    for part in parts {
        assert!(e.message().contains(part), "{part:?} is not in: {e}");
    }
}

fn with(mut a: Acquisition, change: impl FnOnce(&mut AcquisitionHead)) -> Acquisition {
    change(&mut a.head);
    a
}

fn put(array: &mut VarLenArray<f32>, at: usize, value: f32) {
    let mut v = array.to_vec();
    v[at] = value;
    *array = VarLenArray::from_slice(&v);
}

fn dataset() -> Dataset {
    let header = header([8, 6, 1], TrajectoryKind::Spiral);
    let scan = |slice, shots: &[usize], weights: bool| {
        let samples: usize = shots.iter().sum();
        let axis = |a: usize| (0..samples).map(|i| ((i * (a + 3)) % 17) as f32 / 17.0 - 0.5).collect::<Vec<_>>();
        Scan {
            index: ScanIndex { slice, ..Default::default() },
            encoded_matrix: [8, 6, 1],
            recon_matrix: [8, 6, 1],
            encoded_fov_mm: [20.0, 15.0, 2.5],
            recon_fov_mm: [20.0, 15.0, 2.5],
            trajectory: header.encodings[0].trajectory,
            ndim: 2,
            coordinates: vec![axis(0), axis(1)],
            weights: weights.then(|| axis(2).iter().map(|w| w + 0.5).collect()),
            samples_per_shot: shots.to_vec(),
            skipped_per_shot: vec![0; shots.len()],
            coils: 3,
            data: ramp(3 * samples),
            times: shots.iter().flat_map(|&n| (0..n).map(|i| (i as f64 * 4e-6) as f32)).collect(),
            placement: Placement {
                position: [1.0, 2.0, 3.0 + slice as f32],
                read_dir: [1.0, 0.0, 0.0],
                phase_dir: [0.0, 1.0, 0.0],
                slice_dir: [0.0, 0.0, 1.0],
                table_position: [0.0, 0.0, -4.0],
                measurement_uid: 77,
                acquisition_time_stamp: 123,
                physiology_time_stamp: [4, 5, 6],
            },
            coil_matrix: None,
            noise_level: None,
        }
    };
    let scans = vec![scan(0, &[5, 4, 6, 1, 7], false), scan(1, &[3; 200], true)];
    Dataset { header, scans, noise: Vec::new(), calibration: Vec::new(), uses: vec![(AcquisitionUse::Image, 205)] }
}

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
    let mut found = read_dataset(&path, None).unwrap();
    let scans = found.scans.iter_mut().chain(&mut found.calibration);
    for (a, b) in scans.zip(wanted.scans.iter_mut().chain(&mut wanted.calibration)) {
        assert!(a.times.iter().zip(&b.times).all(|(a, b)| (a - b).abs() < 1e-9));
        a.times.clear();
        b.times.clear();
    }
    assert_eq!(found, wanted);
    assert_eq!(read_dataset(&path, Some("dataset")).unwrap().scans.len(), 2);
}

#[test]
fn the_heads_are_laid_out_as_in_ismrmrd() {
    let packed = |d: TypeDescriptor| match d.to_packed_repr() {
        TypeDescriptor::Compound(c) => c,
        other => panic!("{other:?}"),
    };
    let acquisition = packed(<Acquisition as hdf5::H5Type>::type_descriptor());
    let offsets: Vec<_> = acquisition.fields.iter().map(|f| f.offset).collect();
    assert_eq!((acquisition.size, offsets), (372, vec![0, 340, 356]));
    let head = packed(<AcquisitionHead as hdf5::H5Type>::type_descriptor());
    let offset = |name: &str| head.fields.iter().find(|f| f.name == name).unwrap().offset;
    assert_eq!(
        ["number_of_samples", "channel_mask", "sample_time_us", "idx", "user_float"].map(offset),
        [34, 40, 178, 242, 308]
    );
}

#[test]
fn wrong_datasets_are_not_written() {
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
fn fewer_shots() {
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
fn discarded_samples_and_times() {
    let a = with(acquisition(8, 2, 2), |h| (h.discard_pre, h.discard_post) = (2, 1));
    let (traj, data) = (a.traj.to_vec(), a.data.to_vec());
    let scan = &read_back(&header([8, 8, 1], TrajectoryKind::Other), vec![a, acquisition(3, 2, 2)]).unwrap().scans[0];
    assert_eq!((&scan.samples_per_shot[..], &scan.skipped_per_shot[..]), (&[5, 3][..], &[2, 0][..]));
    assert_eq!(scan.coordinates[0][0], traj[4]);
    assert_eq!(scan.data[8 + 4], Complex::new(data[2 * (8 + 6)], data[2 * (8 + 6) + 1]));
    assert_eq!(scan.times[0], 1e-5);
    assert_eq!(scan.times[5], 0.0);
}

/// Flags of ISMRMRD, counted from 1, of acquisitions that are not used: navigation, phase correction, feedback, dummy,
/// real-time feedback, surface coil correction.
const UNUSED: [u32; 6] = [23, 24, 26, 27, 28, 29];
const CALIBRATION_AND_IMAGING: u32 = 21;

#[test]
fn acquisitions_that_are_not_images() {
    for flag in UNUSED.into_iter().chain([flag::NOISE]) {
        // Their counts need not agree with the rest.
        let odd = with(acquisition(9, 1, 5), |h| h.flags = flag::bit(flag));
        let h = header([8, 8, 1], TrajectoryKind::Other);
        let found = read_back(&h, vec![odd, acquisition(4, 2, 2)]).unwrap();
        let scans = &found.scans;
        assert_eq!((scans.len(), scans[0].samples(), scans[0].coils), (1, 4, 2));
        assert_eq!((found.calibration.len(), found.uses.len()), (0, 2));
        if flag != flag::NOISE {
            let only = with(acquisition(4, 2, 2), |h| h.flags = flag::bit(flag));
            expect(vec![only], [8, 8, 1], ErrorKind::BadFile, &["none of the 1 acquisitions is image data"]);
        }
    }
    let only = with(acquisition(4, 2, 2), |h| h.flags = flag::bit(flag::CALIBRATION));
    expect(vec![only], [8, 8, 1], ErrorKind::BadFile, &["none of the 1 acquisitions is image data: 1 calibration"]);
}

/// Lines of a Cartesian scan of 8 x 8 with these flags at these encoding steps, in the mode `mode`.
fn lines(mode: Option<CalibrationMode>, all: &[(u16, &[u32])]) -> Dataset {
    let mut h = header([8, 8, 1], TrajectoryKind::Cartesian);
    h.encodings[0].parallel = Some(ParallelImaging { acceleration: [2, 1], calibration: mode });
    let line = |&(step, flags): &(u16, &[u32])| {
        with(acquisition(8, 0, 2), |h| {
            h.idx.kspace_encode_step_1 = step;
            h.flags = flags.iter().map(|&f| flag::bit(f)).sum();
        })
    };
    read_back(&h, all.iter().map(line).collect()).unwrap()
}

/// The encoding steps of the lines of a scan.
fn steps(scan: &Scan) -> Vec<i32> {
    scan.coordinates[1].iter().step_by(8).map(|k| (k * 8.0) as i32 + 4).collect()
}

#[test]
fn calibration_lines_are_read_apart() {
    use AcquisitionUse::*;
    const C: &[u32] = &[flag::CALIBRATION];
    const B: &[u32] = &[CALIBRATION_AND_IMAGING];
    // In the header's words embedded: the line between two image lines is an image line as well. The line 4 that is
    // measured twice counts once, and the image line 2 within the calibration lines is used for both.
    let all: &[(u16, &[u32])] = &[(0, &[]), (2, &[]), (4, B), (6, &[]), (1, C), (3, C), (4, C), (5, C)];
    let found = lines(Some(CalibrationMode::Embedded), all);
    assert_eq!(steps(&found.scans[0]), [0, 2, 4, 6, 1, 3, 5]);
    assert_eq!(steps(&found.calibration[0]), [2, 4, 1, 3, 4, 5]);
    assert_eq!(found.uses, [(Image, 2), (Calibration, 1), (ImageAndCalibration, 5)]);
    // Otherwise flags alone decide.
    for mode in [None, Some(CalibrationMode::Separate), Some(CalibrationMode::External)] {
        let found = lines(mode, all);
        assert_eq!(steps(&found.scans[0]), [0, 2, 4, 6], "{mode:?}");
        assert_eq!(steps(&found.calibration[0]), [4, 1, 3, 4, 5], "{mode:?}");
        assert_eq!(found.uses, [(Image, 3), (Calibration, 4), (ImageAndCalibration, 1)], "{mode:?}");
        assert_eq!(found.header.encodings[0].parallel.unwrap().calibration, mode);
    }
}

#[test]
fn noise_is_read_apart() {
    let noise = |samples, coils, us| {
        with(acquisition(samples, 0, coils), |h| (h.flags, h.sample_time_us) = (flag::bit(flag::NOISE), us))
    };
    let h = header([8, 8, 1], TrajectoryKind::Other);
    let all = vec![noise(4, 2, 5.0), acquisition(4, 2, 2), noise(3, 2, 5.0), noise(2, 3, 5.0), noise(1, 2, 2.5)];
    let numbers = |i: usize| all[i].data.chunks_exact(2).map(|p| Complex::new(p[0], p[1])).collect::<Vec<_>>();
    let (first, second) = (numbers(0), numbers(2));
    let (coils, times) = (numbers(3), numbers(4));
    let found = read_back(&h, all).unwrap();
    assert_eq!((found.scans.len(), found.uses), (1, vec![(AcquisitionUse::Image, 1), (AcquisitionUse::Noise, 4)]));
    let of = |coils: usize, dwell: f32| found.noise.iter().find(|n| (n.coils, n.dwell) == (coils, dwell)).unwrap();
    assert_eq!(found.noise.len(), 3);
    assert_eq!(of(2, 5e-6).data, [&first[..4], &second[..3], &first[4..], &second[3..]].concat());
    assert_eq!((&of(3, 5e-6).data, &of(2, 2.5e-6).data), (&coils, &times));
    // A file of noise alone has no image.
    let only = read_back(&h, vec![noise(4, 0, 5.0), noise(4, 2, 5.0)]).unwrap();
    assert_eq!((only.scans.len(), only.noise.len()), (0, 1));
    let mut short = noise(4, 2, 5.0);
    short.data = VarLenArray::from_slice(&[1.0; 15]);
    expect(vec![short], [8, 8, 1], ErrorKind::BadFile, &["acquisition 0", "15 numbers", "16"]);
    expect(vec![noise(4, 2, -1.0)], [8, 8, 1], ErrorKind::BadFile, &["sample time is -1"]);
}

#[test]
fn images_are_told_apart_and_ordered() {
    let at = |slice, repetition, average, contrast| {
        with(acquisition(4, 2, 1), |h| {
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
fn trajectory_dimensions() {
    let h2 = header([8, 8, 1], TrajectoryKind::Other);
    let h3 = header([8, 8, 8], TrajectoryKind::Other);
    let scan = |h: &Header, d| read_back(h, vec![acquisition(4, d, 1)]).map(|mut d| d.scans.remove(0));
    assert_eq!(scan(&h2, 2).unwrap().weights, None);
    assert_eq!(scan(&h2, 3).unwrap().weights.unwrap(), [2.0 / 14.0, 5.0 / 14.0, 1.0 / 14.0, 4.0 / 14.0]);
    assert_eq!(scan(&h3, 3).unwrap().coordinates.len(), 3);
    assert_eq!(scan(&h3, 4).unwrap().weights.unwrap().len(), 4);
    let stack = with(acquisition(4, 2, 1), |h| h.idx.kspace_encode_step_2 = 1);
    let stack = &read_back(&h3, vec![stack]).unwrap().scans[0];
    assert_eq!(stack.coordinates[2], [-0.375; 4]);

    // Three dimensions of which the last is zero throughout: kz.
    let mut flat = acquisition(2, 3, 1);
    flat.traj = VarLenArray::from_slice(&[0.1, 0.2, 0.0, 0.3, 0.4, 0.0]);
    let flat = &read_back(&h2, vec![flat]).unwrap().scans[0];
    assert_eq!((flat.weights.as_ref(), &flat.coordinates[1]), (None, &vec![0.2, 0.4]));

    expect(vec![acquisition(4, 1, 1)], [8, 8, 1], ErrorKind::BadFile, &["1 dimensions for a 2D image"]);
    expect(vec![acquisition(4, 4, 1)], [8, 8, 1], ErrorKind::BadFile, &["4 dimensions for a 2D image"]);
    expect(vec![acquisition(4, 5, 1)], [8, 8, 8], ErrorKind::BadFile, &["5 dimensions for a 3D image"]);
    let parts = ["acquisition 0", "a radial one cannot be computed"];
    expect(vec![acquisition(4, 0, 1)], [8, 8, 1], ErrorKind::Unsupported, &parts);
    expect(vec![acquisition(4, 2, 1), acquisition(4, 3, 1)], [8, 8, 1], ErrorKind::BadFile, &["3 trajectory dim"]);
}

#[test]
fn cartesian_trajectories() {
    let mut h = header([8, 6, 1], TrajectoryKind::Cartesian);
    let line = |step, reverse, centre| {
        with(acquisition(8, 0, 1), |h| {
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

    h.encodings[0].steps[0] = Some(Limits { minimum: 0, maximum: 4, center: 1 });
    assert_eq!(axes(&h, line(1, false, 4)).unwrap()[1], [0.0; 8]);
    // Of an asymmetric echo, the samples from the third on, with the centre at the third.
    let echo = with(acquisition(6, 0, 1), |h| (h.center_sample, h.discard_pre) = (2, 1));
    assert_eq!(axes(&h, echo).unwrap()[0], [-0.125, 0.0, 0.125, 0.25, 0.375]);

    let volume = with(line(3, false, 4), |h| h.idx.kspace_encode_step_2 = 1);
    let k = axes(&header([8, 6, 4], TrajectoryKind::Cartesian), volume).unwrap();
    assert_eq!((k.len(), k[2][0]), (3, -0.25));
}

#[test]
fn numbers_that_are_wrong() {
    let (m, good) = ([8, 8, 1], || acquisition(4, 2, 2));
    let mut a = good();
    put(&mut a.traj, 3, 0.5);
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
        put(&mut a.traj, 5, value);
        expect(vec![good(), a], m, kind, &["acquisition 1: sample 2: ", " 1 ", &value.to_string()]);
        let mut a = good();
        put(&mut a.data, 2 * (4 + 3) + 1, value);
        match value.is_finite() {
            true => assert!(read_back(&header(m, TrajectoryKind::Other), vec![a]).is_ok()),
            false => expect(vec![good(), a], m, kind, &["acquisition 1: coil 1, sample 3"]),
        }
    }
    let mut a = acquisition(4, 3, 1);
    put(&mut a.traj, 5, -1.0);
    expect(vec![a], m, ErrorKind::BadFile, &["sample 1", "weight is -1"]);
    let a = with(good(), |h| h.sample_time_us = f32::NAN);
    expect(vec![a], m, ErrorKind::BadFile, &["the sample time is NaN"]);
}

#[test]
fn counts_that_disagree() {
    let m = [8, 8, 1];
    let mut a = acquisition(4, 2, 2);
    a.traj = VarLenArray::from_slice(&[0.0; 7]);
    expect(vec![a], m, ErrorKind::BadFile, &["acquisition 0", "7 numbers", "4 samples of 2 dimensions need 8"]);
    let mut a = acquisition(4, 2, 2);
    a.traj = VarLenArray::from_slice(&[]);
    expect(vec![a], m, ErrorKind::BadFile, &["0 numbers"]);
    let mut a = acquisition(4, 2, 2);
    a.data = VarLenArray::from_slice(&[0.0; 15]);
    expect(vec![a], m, ErrorKind::BadFile, &["15 numbers", "4 complex samples of 2 coils need 16"]);
    let different = vec![acquisition(4, 2, 2), acquisition(4, 2, 3)];
    expect(different, m, ErrorKind::BadFile, &["acquisition 1 has 3 coils", "has 2"]);
    expect(vec![acquisition(4, 2, 0)], m, ErrorKind::BadFile, &["0 coils"]);
    expect(vec![acquisition(0, 2, 1)], m, ErrorKind::BadFile, &["keeps no samples"]);
    let a = with(acquisition(4, 2, 1), |h| (h.discard_pre, h.discard_post) = (3, 2));
    expect(vec![a], m, ErrorKind::BadFile, &["keeps no samples", "discards 3 before and 2 after"]);
    let a = with(acquisition(4, 2, 1), |h| h.encoding_space_ref = 1);
    expect(vec![a], m, ErrorKind::BadFile, &["refers to encoding 1, but the header has 1"]);
    // Counts that ask for far more memory than the file has bytes.
    let a = with(acquisition(4, 2, 1), |h| (h.number_of_samples, h.active_channels) = (65535, 65535));
    expect(vec![a], m, ErrorKind::BadFile, &["announce 34358689800 bytes"]);
    expect(vec![], m, ErrorKind::BadFile, &["no acquisitions"]);
}

#[test]
fn headers() {
    let good = header([8, 6, 1], TrajectoryKind::GoldenAngle);
    let xml = good.to_xml();
    assert_eq!(Header::from_xml(&xml).unwrap(), good);
    let prefixed = xml.replace("<", "<m:").replace("<m:/", "</m:").replace("<m:?", "<?").replace("xmlns=", "xmlns:m=");
    assert_eq!(Header::from_xml(&prefixed).unwrap(), good);
    assert!(
        Header::from_xml(&xml.replace("goldenangle", "rosette")).unwrap().encodings[0].trajectory == Default::default()
    );
    for (from, to, part) in [
        ("<x>8</x>", "<x>0</x>", "along x is 0"),
        ("<y>6</y>", "<y>-6</y>", "<y> cannot be \"-6\""),
        ("<y>6</y>", "<y>70000</y>", "<y> cannot be \"70000\""),
        ("<z>1</z>", "", "no <z> in <matrixSize>"),
        ("<z>2.5</z>", "<z>NaN</z>", "field of view"),
        ("</ismrmrdHeader>", "", "malformed"),
        ("ismrmrdHeader", "html", "is a <html>"),
        ("<trajectory>goldenangle</trajectory>", "", "no <trajectory>"),
        ("encoding>", "noencoding>", "no <encoding>"),
        ("reconSpace", "space", "no <reconSpace>"),
    ] {
        let e = Header::from_xml(&xml.replace(from, to)).unwrap_err();
        assert!(e.kind() == ErrorKind::BadFile && e.message().contains(part), "{from} -> {to}: {e}");
    }
    let bomb = "<!DOCTYPE a [<!ENTITY b \"x\">]><ismrmrdHeader>&b;</ismrmrdHeader>";
    assert_eq!(Header::from_xml(bomb).unwrap_err().kind(), ErrorKind::BadFile);
    assert!(Header::from_xml("").is_err());
}

#[test]
fn header_texts_in_the_file() {
    let dir = TempDir::new();
    let path = dir.path("a.h5");
    let attempt = |xml: Option<&str>| {
        write_raw(&path, xml, 1, &mut std::iter::once(acquisition(4, 2, 1))).unwrap();
        read_dataset(&path, None)
    };
    let good = header([8, 8, 1], TrajectoryKind::Spiral).to_xml();
    for (xml, part) in [(None, "no dataset/xml"), (Some(""), "header is empty"), (Some("<a"), "malformed")] {
        let e = attempt(xml).unwrap_err();
        assert!(e.kind() == ErrorKind::BadFile && e.message().contains(part), "{e}");
    }
    // The ISMRMRD library reads no other type of text.
    attempt(Some(&good)).unwrap();
    let kind = hdf5::File::open(&path).unwrap().dataset("dataset/xml").unwrap().dtype().unwrap();
    assert_eq!(kind.to_descriptor().unwrap(), TypeDescriptor::VarLenAscii);
    drop(kind);
    // Texts of fixed length, as some other writers make them.
    attempt(None).unwrap_err();
    let file = hdf5::File::open_rw(&path).unwrap();
    let text = hdf5::types::FixedAscii::<4096>::from_ascii(&good).unwrap();
    file.new_dataset::<hdf5::types::FixedAscii<4096>>().create("dataset/xml").unwrap().write_scalar(&text).unwrap();
    file.close().unwrap();
    assert_eq!(read_dataset(&path, None).unwrap().header, Header::from_xml(&good).unwrap());
}

/// Reading any of this fails with one line, the file's name, and one of the two kinds.
#[track_caller]
fn fails(path: &Path) -> String {
    for e in [read_dataset(path, None).unwrap_err(), read_images(path, None).unwrap_err()] {
        assert!(matches!(e.kind(), ErrorKind::IO | ErrorKind::BadFile), "{:?}: {e}", e.kind());
        assert!(e.message().starts_with(path.to_str().unwrap()) && !e.message().contains('\n'), "{e}");
    }
    read_dataset(path, None).unwrap_err().message().to_owned()
}

#[test]
fn files_that_are_no_datasets() {
    let dir = TempDir::new();
    let path = dir.path("bad.h5");
    assert!(fails(&path).contains("No such file"));
    std::fs::write(&path, b"").unwrap();
    assert!(fails(&path).contains("empty"));
    let mut seed = 1u32;
    let noise: Vec<u8> = (0..5000)
        .map(|_| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 24) as u8
        })
        .collect();
    std::fs::write(&path, &noise).unwrap();
    assert!(fails(&path).contains("not an HDF5 file"));
    assert!(fails(dir.root()).contains("folder"));

    // Truncated at many places, within and after the structures of HDF5.
    write_dataset(&path, &dataset()).unwrap();
    let good = std::fs::read(&path).unwrap();
    let lengths = (1..64).chain((64..good.len()).step_by(good.len() / 60)).chain([good.len() - 1]);
    for length in lengths {
        std::fs::write(&path, &good[..length]).unwrap();
        fails(&path);
    }
    let mut signature = good[..8].to_vec();
    signature.extend(&noise);
    std::fs::write(&path, signature).unwrap();
    fails(&path);

    hdf5::File::create(&path).unwrap().close().unwrap();
    assert!(fails(&path).contains("no group \"dataset\"; the file has: nothing"));
    let file = hdf5::File::create(&path).unwrap();
    file.create_group("scan_2").unwrap();
    file.create_group("scan_1").unwrap();
    file.close().unwrap();
    assert!(fails(&path).ends_with("no group \"dataset\"; the file has: scan_1, scan_2"));
}

#[test]
fn datasets_of_another_layout() {
    let dir = TempDir::new();
    let path = dir.path("bad.h5");
    let xml = header([8, 8, 1], TrajectoryKind::Spiral).to_xml();
    let make = |fill: &dyn Fn(&hdf5::Group)| {
        write_raw(&path, Some(&xml), 0, &mut std::iter::empty()).unwrap();
        let file = hdf5::File::open_rw(&path).unwrap();
        let group = file.group("dataset").unwrap();
        group.unlink("data").unwrap();
        fill(&group);
        drop(group);
        file.close().unwrap();
        fails(&path)
    };
    assert!(make(&|_| ()).contains("no dataset/data"));
    assert!(make(&|g| drop(g.new_dataset::<f32>().shape(3).create("data"))).contains("data has no fields"));
    assert!(make(&|g| drop(g.new_dataset::<Acquisition>().shape((2, 2)).create("data"))).contains("2 dimensions"));
    assert!(make(&|g| drop(g.new_dataset::<Counters>().shape(2).create("data"))).contains("no field data.head"));
    // More acquisitions than the file has bytes for: none of them was ever stored.
    let huge = make(&|g| drop(g.new_dataset::<Acquisition>().shape(1 << 40..).chunk(64).create("data")));
    assert!(huge.contains("but 0 are stored"), "{huge}");

    #[derive(hdf5::H5Type, Clone, Copy)]
    #[repr(C)]
    struct Short {
        number_of_samples: u16,
    }
    #[derive(hdf5::H5Type)]
    #[repr(C)]
    struct ShortAcquisition {
        head: Short,
        traj: VarLenArray<f32>,
        data: VarLenArray<f32>,
    }
    let short = make(&|g| drop(g.new_dataset::<ShortAcquisition>().shape(2).create("data")));
    assert!(short.contains("there is no field data.head."), "{short}");
}

#[test]
fn fields_beyond_their_record() {
    use hdf5::types::{CompoundField, CompoundType, FloatSize, IntSize};
    let field = |name: &str, ty, offset| CompoundField { name: name.to_owned(), ty, offset, index: 0 };
    let record = |offset, size| {
        let fields = vec![
            field("r", TypeDescriptor::Float(FloatSize::U4), 0),
            field("i", TypeDescriptor::Unsigned(IntSize::U4), offset),
        ];
        TypeDescriptor::Compound(CompoundType { fields, size })
    };
    let check = |found| require_fields(&found, &record(4, 8), "data");
    assert!(check(record(4, 8)).is_ok() && check(record(16, 32)).is_ok());
    for bad in [record(2, 8), record(5, 8), record(100, 8), record(usize::MAX, 8), record(0, 8)] {
        assert!(check(bad).unwrap_err().message().contains("the fields of data overlap or reach"));
    }
}

/// An acquisition of a layout with padding, and with fields in another order and of other widths.
#[derive(hdf5::H5Type)]
#[repr(C)]
struct Padded {
    data: VarLenArray<f64>,
    extra: u64,
    traj: VarLenArray<f32>,
    head: AcquisitionHead,
}

#[test]
fn fields_are_found_by_name() {
    let dir = TempDir::new();
    let path = dir.path("a.h5");
    let xml = header([8, 8, 1], TrajectoryKind::Spiral).to_xml();
    write_raw(&path, Some(&xml), 0, &mut std::iter::empty()).unwrap();
    let a = acquisition(4, 2, 1);
    let wide: Vec<f64> = a.data.iter().map(|&v| v as f64).collect();
    let (traj, data) = (a.traj.to_vec(), a.data.to_vec());
    let padded = Padded { data: VarLenArray::from_slice(&wide), extra: 9, traj: a.traj, head: a.head };
    let file = hdf5::File::open_rw(&path).unwrap();
    file.unlink("dataset/data").unwrap();
    file.new_dataset::<Padded>().shape(1).create("dataset/data").unwrap().write_raw(&[padded]).unwrap();
    file.close().unwrap();
    let scan = &read_dataset(&path, None).unwrap().scans[0];
    assert_eq!(scan.data[3], Complex::new(data[6], data[7]));
    assert_eq!(scan.coordinates[1][1], traj[3]);
}

#[test]
fn images_round_trip() {
    let dir = TempDir::new();
    let path = dir.path("images.h5");
    let scan = &dataset().scans[1];
    let complex = scan.image([8, 6, 1], 2, ramp(96)).unwrap();
    assert_eq!((complex.fov_mm, complex.placement), (scan.encoded_fov_mm, scan.placement));
    let mut later = complex.clone();
    later.index.repetition = 4;
    later.data.reverse();
    let real = Image::new([3, 2, 2], 1, (0..12).map(|i| Complex::new(i as f32, 0.0)).collect()).unwrap();
    write_images(&path, &[complex.clone(), real.clone(), later.clone()]).unwrap();
    assert_eq!(dir.count(), 1);
    assert_eq!(read_images(&path, None).unwrap(), [complex, later, real.clone()]);
    assert_eq!(read_images(&path, Some("dataset/image_1")).unwrap(), [real]);
    let e = read_images(&path, Some("dataset")).unwrap_err();
    assert!(e.kind() == ErrorKind::BadFile && e.message().contains("no images in dataset"), "{e}");
    let e = read_dataset(&path, None).unwrap_err();
    assert!(e.message().contains("no dataset/xml"), "{e}");
    let wide = scan.image([16, 12, 1], 1, ramp(192)).unwrap();
    assert_eq!(wide.fov_mm, [40.0, 30.0, 2.5]);

    let good = std::fs::read(&path).unwrap();
    for length in (1..good.len()).step_by(good.len() / 60) {
        std::fs::write(&path, &good[..length]).unwrap();
        fails(&path);
    }
    let huge = Image::new([70_000, 1, 1], 1, ramp(70_000)).unwrap();
    assert_eq!(write_images(dir.path("huge.h5"), &[huge]).unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(dir.count(), 1);
}

#[test]
fn the_head_of_images_is_laid_out_as_in_ismrmrd() {
    let TempDirFile(_dir, path) = image_file();
    let file = hdf5::File::open(&path).unwrap();
    let set = file.dataset("dataset/image_0/header").unwrap();
    assert_eq!(set.dtype().unwrap().size(), 198);
    let TypeDescriptor::Compound(c) = set.dtype().unwrap().to_descriptor().unwrap() else { panic!() };
    let offset = |name: &str| c.fields.iter().find(|f| f.name == name).unwrap().offset;
    assert_eq!(
        ["matrix_size", "channels", "average", "user_int", "attribute_string_len"].map(offset),
        [16, 34, 96, 130, 194]
    );
    let shape = file.dataset("dataset/image_0/data").unwrap().shape();
    assert_eq!(shape, [1, 5, 4, 3, 2]);
}

struct TempDirFile(#[allow(dead_code)] TempDir, PathBuf);

fn image_file() -> TempDirFile {
    let dir = TempDir::new();
    let path = dir.path("a.h5");
    write_images(&path, &[Image::new([2, 3, 4], 5, ramp(120)).unwrap()]).unwrap();
    TempDirFile(dir, path)
}

#[test]
fn real_radial_data() {
    let Some(path) = test_data("brain_8ch_radial96.h5") else { return };
    let data = read_dataset(path, None).unwrap();
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
    let stored = read_dataset(&path, None).unwrap();
    let scan = &stored.scans[0];
    assert_eq!((scan.samples_per_shot.len(), scan.samples_per_shot[0], scan.coils), (180, 230, 8));
    // The same file without its trajectories.
    let mut steps: Vec<u16> = Vec::new();
    let mut lines = Vec::new();
    for shot in 0..180 {
        let ky = scan.coordinates[1][shot * 230] as f64;
        steps.push((ky * 180.0 + 90.0).round() as u16);
        let mut a = acquisition(230, 0, 1);
        a.head.center_sample = 115;
        a.head.idx.kspace_encode_step_1 = steps[shot];
        a.data = VarLenArray::from_slice(&[0.0; 460]);
        lines.push(a);
    }
    let computed = &read_back(&stored.header, lines).unwrap().scans[0];
    for axis in 0..2 {
        let pairs = computed.coordinates[axis].iter().zip(&scan.coordinates[axis]);
        assert!(pairs.clone().all(|(a, b)| (a - b).abs() < 1e-6), "axis {axis}");
    }
}
