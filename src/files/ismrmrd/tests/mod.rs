//! Tests of ISMRMRD files, by subject, and the helpers that they share.

mod header;
mod images;
mod layout;
mod purposes;
mod raw_data;
mod samples;

use super::layout::ACQUISITION_HEADER;
use super::{read_images, Acquisition, RawFile, GROUP};
use crate::hdf5::{array_type, record_type};
use crate::image::{Image, Placement, ScanIndex};
use crate::tests::{ramp, read_dataset, test_data, write_acquisitions, write_dataset, write_series, TempDir};
use hdf5_pure::{CompoundTypeBuilder, Datatype, FileBuilder, GroupBuilder};
use num_complex::Complex;
use recon::acquisition::AcquisitionUse;
use recon::error::{ErrorKind, Result};
use recon::scan::*;
use std::path::Path;

/// Returns a header with one encoding.
fn header(matrix: [usize; 3], trajectory: TrajectoryKind) -> Header {
    let space = EncodingSpace { matrix, fov_mm: matrix.map(|n| 2.5 * n as f32) };
    let encoding = HeaderEncoding { encoded: space, recon: space, trajectory, ..Default::default() };
    let h1_resonance_hz = Some(127_740_000);
    Header {
        encodings: vec![encoding],
        receiver_channels: Some(2),
        h1_resonance_hz,
        echo_times_ms: vec![4.92, 7.38],
        ..Default::default()
    }
}

/// Returns an acquisition of `samples` samples, `dimensions` trajectory dimensions and `coils` coils.
fn acquisition(samples: usize, dimensions: usize, coils: usize) -> Acquisition {
    let header = AcquisitionHeader {
        version: 1,
        number_of_samples: samples as u16,
        available_channels: coils as u16,
        active_channels: coils as u16,
        trajectory_dimensions: dimensions as u16,
        center_sample: (samples / 2) as u16,
        sample_time_us: 5.0,
        ..Default::default()
    };
    let trajectory = (0..samples * dimensions).map(|i| (i % 7) as f32 / 14.0).collect();
    let data = (0..samples * coils).map(|i| Complex::new(2.0 * i as f32, 2.0 * i as f32 + 1.0)).collect();
    Acquisition { header, trajectory, data }
}

/// Writes a file whose group `dataset` is made by `fill`.
fn write_group(path: &Path, fill: &dyn Fn(&mut GroupBuilder)) {
    let mut builder = FileBuilder::new();
    let mut group = builder.create_group("dataset");
    fill(&mut group);
    builder.add_group(group.finish());
    builder.write(path).unwrap();
}

/// Adds acquisitions, of which `records` has the bytes.
fn add_table(group: &mut GroupBuilder, shape: &[u64], records: Vec<u8>) {
    let array = array_type(hdf5_pure::make_f32_type());
    let fields = CompoundTypeBuilder::new().field("head", record_type(&ACQUISITION_HEADER).unwrap());
    let kind = fields.field("traj", array.clone()).field("data", array).build().unwrap();
    group.create_dataset("data").with_raw_data(kind, records, shape.iter().product()).with_shape(shape);
}

/// Writes a file with these acquisitions, and reads it.
fn read_back(header: &Header, acquisitions: Vec<Acquisition>) -> Result<Dataset> {
    let dir = TempDir::new();
    let path = dir.path("test.h5");
    write_acquisitions(&path, Some(&header.to_xml()), acquisitions.len(), &mut acquisitions.into_iter())?;
    let result = read_dataset(&path);
    if let Err(e) = &result {
        assert!(e.message().starts_with(path.to_str().unwrap()), "no file name: {e}");
        assert!(!e.message().contains('\n'), "several lines: {e}");
    }
    result
}

/// Checks that reading these acquisitions fails with this kind of error and these parts of its message.
#[track_caller]
fn expect_error(acquisitions: Vec<Acquisition>, matrix: [usize; 3], kind: ErrorKind, parts: &[&str]) {
    let e = read_back(&header(matrix, TrajectoryKind::Radial), acquisitions).unwrap_err();
    assert_eq!(e.kind(), kind, "{e}");
    for part in parts {
        assert!(e.message().contains(part), "{part:?} is not in: {e}");
    }
}

fn with_header(mut a: Acquisition, change: impl FnOnce(&mut AcquisitionHeader)) -> Acquisition {
    change(&mut a.header);
    a
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
                repetition_time_ms: None,
            },
            coil_matrix: None,
            noise_level: None,
        }
    };
    let scans = vec![scan(0, &[5, 4, 6, 1, 7], false), scan(1, &[3; 200], true)];
    Dataset { header, scans, noise: Vec::new(), calibration: Vec::new(), uses: vec![(AcquisitionUse::Image, 205)] }
}

/// Checks that reading raw data and images fails with `IO` or `BadFile` and one line that begins with the file's name.
/// Returns the message for raw data.
#[track_caller]
fn assert_unreadable(path: &Path) -> String {
    for e in [read_dataset(path).unwrap_err(), read_images(path, None).unwrap_err()] {
        assert!(matches!(e.kind(), ErrorKind::IO | ErrorKind::BadFile), "{:?}: {e}", e.kind());
        assert!(e.message().starts_with(path.to_str().unwrap()) && !e.message().contains('\n'), "{e}");
    }
    read_dataset(path).unwrap_err().message().to_owned()
}
