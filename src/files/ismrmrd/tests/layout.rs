//! The layout of files, and files that do not have it.

use super::*;

#[test]
fn acquisition_header_has_the_layout_of_ismrmrd() {
    let packed = |d: TypeDescriptor| match d.to_packed_repr() {
        TypeDescriptor::Compound(c) => c,
        other => panic!("{other:?}"),
    };
    let acquisition = packed(<Acquisition as hdf5::H5Type>::type_descriptor());
    let offsets: Vec<_> = acquisition.fields.iter().map(|f| f.offset).collect();
    assert_eq!((acquisition.size, offsets), (372, vec![0, 340, 356]));
    let head = packed(<StoredHeader as hdf5::H5Type>::type_descriptor());
    let offset = |name: &str| head.fields.iter().find(|f| f.name == name).unwrap().offset;
    assert_eq!(
        ["number_of_samples", "channel_mask", "sample_time_us", "idx", "user_float"].map(offset),
        [34, 40, 178, 242, 308]
    );
}

#[test]
fn damaged_and_foreign_files_are_errors() {
    let dir = TempDir::new();
    let path = dir.path("bad.h5");
    assert!(assert_unreadable(&path).contains("No such file"));
    std::fs::write(&path, b"").unwrap();
    assert!(assert_unreadable(&path).contains("empty"));
    let mut seed = 1u32;
    let noise: Vec<u8> = (0..5000)
        .map(|_| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 24) as u8
        })
        .collect();
    std::fs::write(&path, &noise).unwrap();
    assert!(assert_unreadable(&path).contains("not an HDF5 file"));
    assert!(assert_unreadable(dir.root()).contains("folder"));

    // Truncated at many positions, in HDF5's structures and in the data.
    write_dataset(&path, &dataset()).unwrap();
    let good = std::fs::read(&path).unwrap();
    let lengths = (1..64).chain((64..good.len()).step_by(good.len() / 60)).chain([good.len() - 1]);
    for length in lengths {
        std::fs::write(&path, &good[..length]).unwrap();
        assert_unreadable(&path);
    }
    let mut signature = good[..8].to_vec();
    signature.extend(&noise);
    std::fs::write(&path, signature).unwrap();
    assert_unreadable(&path);

    hdf5::File::create(&path).unwrap().close().unwrap();
    assert!(assert_unreadable(&path).contains("no group \"dataset\"; the file has: nothing"));
    let file = hdf5::File::create(&path).unwrap();
    file.create_group("scan_2").unwrap();
    file.create_group("scan_1").unwrap();
    file.close().unwrap();
    assert!(assert_unreadable(&path).ends_with("no group \"dataset\"; the file has: scan_1, scan_2"));
}

#[test]
fn unexpected_layouts_are_errors() {
    let dir = TempDir::new();
    let path = dir.path("bad.h5");
    let xml = header([8, 8, 1], TrajectoryKind::Spiral).to_xml();
    let make = |fill: &dyn Fn(&hdf5::Group)| {
        write_acquisitions(&path, Some(&xml), 0, &mut std::iter::empty()).unwrap();
        let file = hdf5::File::open_rw(&path).unwrap();
        let group = file.group("dataset").unwrap();
        group.unlink("data").unwrap();
        fill(&group);
        drop(group);
        file.close().unwrap();
        assert_unreadable(&path)
    };
    assert!(make(&|_| ()).contains("no dataset/data"));
    assert!(make(&|g| drop(g.new_dataset::<f32>().shape(3).create("data"))).contains("data has no fields"));
    assert!(make(&|g| drop(g.new_dataset::<Acquisition>().shape((2, 2)).create("data"))).contains("2 dimensions"));
    assert!(make(&|g| drop(g.new_dataset::<StoredCounters>().shape(2).create("data"))).contains("no field data.head"));
    // More acquisitions than the file can contain, none of which is stored.
    let huge = make(&|g| drop(g.new_dataset::<Acquisition>().shape(1 << 40..).chunk(64).create("data")));
    assert!(huge.contains("but 0 are stored"), "{huge}");

    #[derive(hdf5::H5Type, Clone, Copy)]
    #[repr(C)]
    struct ShortHeader {
        number_of_samples: u16,
    }
    #[derive(hdf5::H5Type)]
    #[repr(C)]
    struct ShortAcquisition {
        head: ShortHeader,
        traj: VarLenArray<f32>,
        data: VarLenArray<f32>,
    }
    let short = make(&|g| drop(g.new_dataset::<ShortAcquisition>().shape(2).create("data")));
    assert!(short.contains("there is no field data.head."), "{short}");
}

#[test]
fn fields_outside_their_record_are_errors() {
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

/// An acquisition with padding, and with fields in a different order and of different widths.
#[derive(hdf5::H5Type)]
#[repr(C)]
struct PaddedAcquisition {
    data: VarLenArray<f64>,
    extra: u64,
    traj: VarLenArray<f32>,
    head: StoredHeader,
}

#[test]
fn fields_are_found_by_name() {
    let dir = TempDir::new();
    let path = dir.path("a.h5");
    let xml = header([8, 8, 1], TrajectoryKind::Spiral).to_xml();
    write_acquisitions(&path, Some(&xml), 0, &mut std::iter::empty()).unwrap();
    let a = acquisition(4, 2, 1);
    let wide: Vec<f64> = a.data.iter().map(|&v| v as f64).collect();
    let (traj, data) = (a.traj.to_vec(), a.data.to_vec());
    let padded = PaddedAcquisition { data: VarLenArray::from_slice(&wide), extra: 9, traj: a.traj, head: a.head };
    let file = hdf5::File::open_rw(&path).unwrap();
    file.unlink("dataset/data").unwrap();
    file.new_dataset::<PaddedAcquisition>().shape(1).create("dataset/data").unwrap().write_raw(&[padded]).unwrap();
    file.close().unwrap();
    let scan = &read_dataset(&path, None).unwrap().scans[0];
    assert_eq!(scan.data[3], Complex::new(data[6], data[7]));
    assert_eq!(scan.coordinates[1][1], traj[3]);
}
