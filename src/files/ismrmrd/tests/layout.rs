//! The layout of files, and files that do not have it.

use super::*;
use crate::hdf5::HeapFile;

#[test]
fn acquisition_header_has_the_layout_of_ismrmrd() {
    let Datatype::Compound { size, members } = record_type(&ACQUISITION_HEADER).unwrap() else { panic!() };
    let offset = |name: &str| members.iter().find(|m| m.name == name).unwrap().byte_offset;
    assert_eq!(size as usize, AcquisitionHeader::BYTES);
    assert_eq!(
        ["number_of_samples", "channel_mask", "sample_time_us", "idx", "user_float"].map(offset),
        [34, 40, 178, 242, 308]
    );
}

#[test]
fn damaged_and_foreign_files_are_errors() {
    let dir = TempDir::new();
    let path = dir.path("bad.h5");
    // In the words of the system.
    let missing = std::fs::File::open(&path).unwrap_err().to_string();
    let words = missing.split(" (os error").next().unwrap();
    assert!(assert_unreadable(&path).contains(words), "{missing}");
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

    FileBuilder::new().write(&path).unwrap();
    assert!(assert_unreadable(&path).contains("no group \"dataset\"; the file has: nothing"));
    let mut builder = FileBuilder::new();
    for name in ["scan_2", "scan_1"] {
        let group = builder.create_group(name);
        builder.add_group(group.finish());
    }
    builder.write(&path).unwrap();
    assert!(assert_unreadable(&path).ends_with("no group \"dataset\"; the file has: scan_1, scan_2"));
}

/// Adds an XML header of fixed length.
fn add_xml(group: &mut GroupBuilder) {
    let xml = header([8, 8, 1], TrajectoryKind::Spiral).to_xml();
    group.create_dataset("xml").with_ascii_strings(&[&xml]).unwrap();
}

#[test]
fn unexpected_layouts_are_errors() {
    let dir = TempDir::new();
    let path = dir.path("bad.h5");
    let make = |fill: &dyn Fn(&mut GroupBuilder)| {
        write_group(&path, &|group| {
            add_xml(group);
            fill(group);
        });
        assert_unreadable(&path)
    };
    assert!(make(&|_| ()).contains("no dataset/data"));
    let numbers = |g: &mut GroupBuilder| {
        g.create_dataset("data").with_f32_data(&[0.0; 3]);
    };
    assert!(make(&numbers).contains("data has no fields"));
    assert!(make(&|g| add_table(g, &[2, 2], vec![0; 4 * 372])).contains("2 dimensions"));
    let counters = |g: &mut GroupBuilder| {
        let kind = CompoundTypeBuilder::new().field("slice", hdf5_pure::make_u16_type()).build().unwrap();
        g.create_dataset("data").with_raw_data(kind, vec![0; 4], 2);
    };
    assert!(make(&counters).contains("no field data.head"));
    let short = |g: &mut GroupBuilder| {
        let head = CompoundTypeBuilder::new().field("number_of_samples", hdf5_pure::make_u16_type()).build().unwrap();
        let array = array_type(hdf5_pure::make_f32_type());
        let kind = CompoundTypeBuilder::new().field("head", head).field("traj", array.clone()).field("data", array);
        g.create_dataset("data").with_raw_data(kind.build().unwrap(), vec![0; 68], 2);
    };
    assert!(make(&short).contains("there is no field data.head.version"));
}

/// Writes an acquisition with padding, and with fields in a different order, of different widths and byte order. The
/// data are `numbers`.
fn write_padded(path: &Path, a: &Acquisition, numbers: &[f32]) {
    let head = record_type(&ACQUISITION_HEADER).unwrap();
    let wide = Datatype::FloatingPoint {
        size: 8,
        byte_order: hdf5_pure::DatatypeByteOrder::BigEndian,
        layout: hdf5_pure::FloatingPointLayout::IEEE754_BINARY64,
    };
    let kind = CompoundTypeBuilder::with_size(16 + 8 + 16 + 340 + 4)
        .field("data", 0, array_type(wide))
        .u64_field("extra", 16)
        .field("traj", 24, array_type(hdf5_pure::make_f32_type()))
        .field("head", 40, head)
        .build()
        .unwrap();
    let structure = |record: Vec<u8>| {
        let mut builder = FileBuilder::new();
        let mut group = builder.create_group("dataset");
        add_xml(&mut group);
        group.create_dataset("data").with_raw_data(kind.clone(), record, 1);
        builder.add_group(group.finish());
        builder
    };
    std::fs::write(path, []).unwrap();
    let mut heap = HeapFile::new(path, structure(vec![0; 384])).unwrap();
    let data: Vec<u8> = numbers.iter().flat_map(|&v| (v as f64).to_be_bytes()).collect();
    let trajectory: Vec<u8> = a.trajectory.iter().flat_map(|k| k.to_le_bytes()).collect();
    let mut record = heap.add(numbers.len(), &data).unwrap().to_vec();
    record.extend([9; 8]);
    record.extend(heap.add(8, &trajectory).unwrap());
    record.extend(a.header.to_bytes());
    record.extend([7; 4]);
    heap.finish(structure(record)).unwrap();
}

#[test]
fn fields_are_found_by_name() {
    let dir = TempDir::new();
    let path = dir.path("a.h5");
    let a = acquisition(4, 2, 1);
    let numbers: Vec<f32> = a.data.iter().flat_map(|z| [z.re, z.im]).collect();
    write_padded(&path, &a, &numbers);
    let scan = &read_dataset(&path).unwrap().scans[0];
    assert_eq!(scan.data, a.data);
    assert_eq!(scan.coordinates[1][1], a.trajectory[3]);
    // Half a complex number.
    write_padded(&path, &a, &numbers[..7]);
    let e = read_dataset(&path).unwrap_err();
    assert!(e.message().ends_with("the data have 7 numbers, but 4 complex samples of 1 coils need 8"), "{e}");
}

/// Small and large acquisitions, none, and more than a collection of the heap can have.
#[test]
fn acquisitions_of_all_sizes() {
    let dir = TempDir::new();
    let path = dir.path("a.h5");
    let xml = header([8, 8, 1], TrajectoryKind::Spiral).to_xml();
    for sizes in [vec![(1, 1); 70_000], vec![(1, 1), (40_000, 3), (5, 64), (2000, 4), (2033, 2)], vec![]] {
        let all: Vec<_> = sizes.iter().map(|&(samples, coils)| acquisition(samples, 2, coils)).collect();
        write_acquisitions(&path, Some(&xml), all.len(), &mut all.iter().cloned()).unwrap();
        let Ok(mut file) = RawFile::open(&path, GROUP) else {
            assert!(all.is_empty());
            continue;
        };
        let mut found = Vec::new();
        file.for_each(
            |_| true,
            |_, a| {
                found.push(a.clone());
                Ok(())
            },
        )
        .unwrap();
        assert!(found == all, "{}", all.len());
    }
    let e = write_acquisitions(&path, Some(&xml), 3, &mut std::iter::once(acquisition(4, 2, 1))).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::SizeMismatch);
}
