//! Tests of names, numbers and UIDs. tests/cli/dicom.rs has those with other readers and writers.

use super::read::parse;
use super::series::divide_into_series;
use super::text::decimal;
use super::{file_names, read_dicom, write_dicom};
use crate::stacks::ImageGeometry;
use crate::tests::{ramp, TempDir};
use crate::{DicomFields, Image, Placement, ScanIndex};
use dicom_core::value::DataSetSequence;
use dicom_core::{DataElement, PrimitiveValue, Tag, VR};
use dicom_dictionary_std::{tags, uids};
use dicom_object::{FileMetaTableBuilder, InMemDicomObject};
use num_complex::Complex;
use recon::atomic_file::write_atomically;
use recon::error::{ErrorKind, Result};
use std::path::{Path, PathBuf};

fn write(path: PathBuf, images: &[Image]) -> Result<()> {
    write_atomically(|files| write_dicom(files, &path, images, &DicomFields::default()))
}

fn placed(position: [f32; 3], slice_dir: [f32; 3]) -> Placement {
    let read_dir = [slice_dir[2], slice_dir[0], slice_dir[1]];
    let phase_dir = [slice_dir[1], slice_dir[2], slice_dir[0]];
    Placement { position, read_dir, phase_dir, slice_dir, ..Placement::default() }
}

fn geometry(slice: u16, repetition: u16, contrast: u16, position: [f32; 3]) -> ImageGeometry {
    ImageGeometry {
        index: ScanIndex { slice, repetition, contrast, ..ScanIndex::default() },
        dims: [4, 4, 1],
        fov_mm: [8.0, 8.0, 3.0],
        placement: placed(position, [0.0, 0.0, 1.0]),
    }
}

#[test]
fn decimal_strings() {
    for (value, text) in [
        (0.0, "0"),
        (-1.5, "-1.5"),
        (1.0 / 3.0, "0.33333333333333"),
        (-1.0 / 3.0, "-0.3333333333333"),
        (2.0e-7 / 3.0, "6.66666666667e-8"),
        (-2.0e-17 / 3.0, "-6.666666667e-18"),
        (1e300 / 3.0, "3.3333333333e299"),
        (123_456_789.123_456_79, "123456789.123457"),
    ] {
        assert_eq!(decimal(value), text);
        assert!(text.len() <= 16 && (text.parse::<f64>().unwrap() - value).abs() <= 1e-9 * value.abs());
    }
    // All sizes of numbers.
    for exponent in -45..39 {
        for factor in [1.0, -1.0 / 3.0, 9.999_999_999_99, -std::f64::consts::PI] {
            let value = factor * 10f64.powi(exponent);
            let text = decimal(value);
            assert!(text.len() <= 16, "{text}");
            assert!((text.parse::<f64>().unwrap() - value).abs() <= 1e-8 * value.abs(), "{value} {text}");
        }
    }
}

#[test]
fn names_of_files() {
    let names = |path: &str, images: &[ImageGeometry]| -> Vec<String> {
        file_names(Path::new(path), images).unwrap().iter().map(|path| path.display().to_string()).collect()
    };
    let one = geometry(3, 1, 2, [0.0; 3]);
    assert_eq!(names("folder.dcm/a.b.DCM", &[one]), ["folder.dcm/a.b.DCM"]);
    // In the order of positions, with the numbers of the slices; repetitions first.
    let slice = |slice: u16, repetition| geometry(slice, repetition, 0, [0.0, 0.0, -6.0 * f32::from(slice)]);
    let slices: Vec<ImageGeometry> = (0..12).map(|i| slice(i, 0)).collect();
    let found = names("a.b.DCM", &slices);
    assert_eq!((found[0].as_str(), found[11].as_str()), ("a.b_slice11.DCM", "a.b_slice00.DCM"));
    let found = names(".dcm", &[slice(0, 0), slice(1, 0), slice(0, 7), slice(1, 7)]);
    let expected = ["_repetition0_slice1", "_repetition0_slice0", "_repetition7_slice1", "_repetition7_slice0"];
    assert_eq!(found, expected.map(|name| format!("{name}.dcm")));
    // Slabs are series.
    let slab = |slice: u16| ImageGeometry { dims: [4, 4, 2], ..geometry(slice, 0, 0, [0.0; 3]) };
    let found = names("x.dcm", &[slab(0), slab(1)]);
    assert_eq!(found, ["x_slice0_z0.dcm", "x_slice0_z1.dcm", "x_slice1_z0.dcm", "x_slice1_z1.dcm"]);
    let e = file_names(Path::new("x.dcm"), &[one, one]).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.message().contains("slice 3, repetition 1, contrast 2"), "{e}");
}

/// Slices that are not a volume, such as a localizer in three directions, are a series, each with its own position.
#[test]
fn slices_in_any_position() {
    let dir = TempDir::new();
    let directions = [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]];
    let images: Vec<Image> = (0..3u16)
        .map(|slice| {
            let mut image = Image::new([3, 2, 1], 1, ramp(6)).unwrap();
            (image.fov_mm, image.index.slice) = ([6.0, 6.0, 4.0], slice);
            image.placement = placed([1.0, 2.0, 3.0 * f32::from(slice)], directions[usize::from(slice)]);
            image
        })
        .collect();
    let geometries: Vec<ImageGeometry> = images.iter().map(ImageGeometry::new).collect();
    let series = divide_into_series(Path::new("a.dcm"), &geometries).unwrap();
    assert_eq!((series.len(), series[0].spacing_mm, series[0].files.len()), (1, None, 3));
    write(dir.path("a.dcm"), &images).unwrap();
    for (slice, image) in images.iter().enumerate() {
        let read = read_dicom(dir.path(&format!("a_slice{slice}.dcm"))).unwrap().remove(0);
        assert_eq!((read.placement, read.fov_mm), (image.placement, image.fov_mm));
    }
    // A slice without a position among others is an error.
    let mut mixed = images;
    mixed[1].placement = Placement::default();
    let e = write(dir.path("b.dcm"), &mixed).unwrap_err();
    assert!(e.message().contains("slice 1") && e.message().contains("b.dcm"), "{e}");
    assert_eq!(dir.count(), 3);
}

/// Images without a position: slices at the distance of their thickness, around the origin.
#[test]
fn slices_without_positions() {
    let dir = TempDir::new();
    let images: Vec<Image> = (0..3u16)
        .map(|slice| {
            let mut image = Image::new([1, 1, 1], 1, vec![Complex::from(1.0)]).unwrap();
            (image.fov_mm, image.index.slice) = ([6.0, 6.0, 4.0], slice);
            image
        })
        .collect();
    write(dir.path("a.dcm"), &images).unwrap();
    for slice in 0..3 {
        let read = read_dicom(dir.path(&format!("a_slice{slice}.dcm"))).unwrap().remove(0);
        assert_eq!(read.placement.position, [0.0, 0.0, 4.0 * (slice as f32 - 1.0)]);
        assert_eq!(read.data, [Complex::from(1.0)]);
    }
}

/// Values: zero and the largest value are exact, tiny and huge values have their own step, NaN is an error.
#[test]
fn values() {
    let dir = TempDir::new();
    let path = dir.path("a.dcm");
    for (data, expected) in [
        (vec![Complex::new(3.0, 4.0), Complex::from(0.0)], [5.0f32, 0.0]),
        (vec![Complex::from(-2.0), Complex::from(1.0)], [-2.0, 1.0]),
        (vec![Complex::from(0.0), Complex::from(0.0)], [0.0, 0.0]),
        (vec![Complex::from(1e-40), Complex::from(5e-41)], [1e-40, 5e-41]),
        (vec![Complex::from(3e38), Complex::from(-1e38)], [3e38, -1e38]),
    ] {
        write(path.clone(), &[Image::new([2, 1, 1], 1, data).unwrap()]).unwrap();
        let read = read_dicom(&path).unwrap().remove(0);
        let step = expected.iter().fold(0.0, |m: f32, v| m.max(v.abs())) / 32767.0;
        for (z, value) in read.data.iter().zip(expected) {
            assert!((z.re - value).abs() <= 0.51 * step && z.im == 0.0, "{z} {value}");
        }
        assert_eq!(read.data.iter().filter(|z| z.re == 0.0).count(), expected.iter().filter(|v| **v == 0.0).count());
    }
    let e = write(dir.path("b.dcm"), &[Image::new([1, 1, 1], 1, vec![Complex::from(f32::NAN)]).unwrap()]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotFinite);
    let e = write(dir.path("b.dcm"), &[Image::new([1, 1, 1], 2, ramp(2)).unwrap()]).unwrap_err();
    assert!(e.kind() == ErrorKind::Unsupported && e.message().contains("2 channels"), "{e}");
    let e = write(dir.path("b.dcm"), &[Image::new([70000, 1, 1], 1, ramp(70000)).unwrap()]).unwrap_err();
    assert!(e.kind() == ErrorKind::Unsupported && e.message().contains("65535"), "{e}");
    assert_eq!(dir.count(), 1);
}

fn text(tag: Tag, vr: VR, text: &str) -> DataElement<InMemDicomObject> {
    DataElement::new(tag, vr, PrimitiveValue::from(text))
}

fn object(elements: impl IntoIterator<Item = DataElement<InMemDicomObject>>) -> InMemDicomObject {
    let mut object = InMemDicomObject::new_empty();
    elements.into_iter().for_each(|element| drop(object.put(element)));
    object
}

fn sequence(tag: Tag, items: Vec<InMemDicomObject>) -> DataElement<InMemDicomObject> {
    DataElement::new(tag, VR::SQ, DataSetSequence::from(items))
}

/// Returns an enhanced file of two frames of 2 x 1 pixels, in this transfer syntax.
fn enhanced(syntax: &str) -> Vec<u8> {
    let group = |tag, element| sequence(tag, vec![object([element])]);
    let frame = |z: &str| {
        let position = text(tags::IMAGE_POSITION_PATIENT, VR::DS, &format!("1\\2\\{z}"));
        object([group(tags::PLANE_POSITION_SEQUENCE, position)])
    };
    let orientation = text(tags::IMAGE_ORIENTATION_PATIENT, VR::DS, "1\\0\\0\\0\\1\\0");
    let shared = object([
        group(tags::PLANE_ORIENTATION_SEQUENCE, orientation),
        group(tags::PIXEL_MEASURES_SEQUENCE, text(tags::PIXEL_SPACING, VR::DS, "2\\3")),
    ]);
    let numbers = [(tags::ROWS, 1), (tags::COLUMNS, 2), (tags::BITS_ALLOCATED, 16), (tags::BITS_STORED, 12)];
    let file = object(
        [
            text(tags::SOP_CLASS_UID, VR::UI, uids::ENHANCED_MR_IMAGE_STORAGE),
            text(tags::SOP_INSTANCE_UID, VR::UI, "1.2.3"),
            text(tags::NUMBER_OF_FRAMES, VR::IS, "2"),
            sequence(tags::SHARED_FUNCTIONAL_GROUPS_SEQUENCE, vec![shared]),
            sequence(tags::PER_FRAME_FUNCTIONAL_GROUPS_SEQUENCE, vec![frame("3"), frame("7")]),
            DataElement::new(tags::PIXEL_DATA, VR::OW, PrimitiveValue::U16([5, 6, 7, 0x1008].as_slice().into())),
        ]
        .into_iter()
        .chain(numbers.map(|(tag, n)| DataElement::new(tag, VR::US, PrimitiveValue::from(n as u16)))),
    );
    let meta = FileMetaTableBuilder::new().transfer_syntax(syntax);
    let mut bytes = Vec::new();
    file.with_meta(meta).unwrap().write_all(&mut bytes).unwrap();
    bytes
}

/// Random changes of small files are errors or images. No file makes the reader panic or allocate more than a multiple
/// of its size.
fn check_random_damage(count: usize) {
    let dir = TempDir::new();
    write(dir.path("a.dcm"), &[Image::new([2, 1, 1], 1, ramp(2)).unwrap()]).unwrap();
    let syntaxes = ["1.2.840.10008.1.2", "1.2.840.10008.1.2.1", "1.2.840.10008.1.2.2"];
    let mut files: Vec<Vec<u8>> = syntaxes.iter().map(|syntax| enhanced(syntax)).collect();
    files.push(std::fs::read(dir.path("a.dcm")).unwrap());
    for file in &files[..3] {
        let images = parse(file).unwrap();
        assert_eq!(images.iter().map(|image| image.data[1].re).collect::<Vec<_>>(), [6.0, 8.0]);
        assert_eq!(images[1].placement.position, [1.0 + 3.0, 2.0, 7.0]);
    }
    let mut state = 1u64;
    let mut random = |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n
    };
    let mut readable = 0;
    for _ in 0..count {
        let mut bytes = files[random(files.len())].clone();
        for _ in 0..1 + random(4) {
            let at = 128 + random(bytes.len() - 128);
            match random(6) {
                0 => bytes.truncate(at.max(129)),
                1 => bytes[at] = random(256) as u8,
                2 => bytes[at] ^= 1 << random(8),
                3 => bytes[at] = [0, 0x7f, 0x80, 0xff][random(4)],
                4 => {
                    let part = bytes[at..bytes.len().min(at + 1 + random(40))].to_vec();
                    let to = 128 + random(bytes.len() - 128);
                    bytes.splice(to..to, part);
                }
                _ => drop(bytes.drain(at..(at + random(20)).min(at.max(bytes.len() - 1)))),
            }
        }
        if let Ok(images) = parse(&bytes) {
            readable += 1;
            assert!(images.iter().map(|image| image.data.len()).sum::<usize>() <= bytes.len());
        }
    }
    assert!(readable > count / 20 && readable < count * 19 / 20, "{readable} of {count} files are readable");
}

#[test]
fn random_damage() {
    check_random_damage(20_000);
}

#[test]
#[ignore = "minutes"]
fn a_million_random_damages() {
    check_random_damage(1_000_000);
}
