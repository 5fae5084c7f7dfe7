use super::layout::element;
use super::*;
use crate::tests::{ramp, TempDir};
use crate::{read_images, Image, Placement, ScanIndex};
use flate2::{write::ZlibEncoder, Compression};
use num_complex::Complex;
use recon::atomic_file::write_atomically;
use recon::error::{ErrorKind, Result};
use std::io::Write;
use std::path::Path;

fn write(path: &Path, variables: &[MatVariable]) -> Result<()> {
    write_atomically(|files| write_mat(files, path, variables))
}

/// Returns an element with its padding, in either byte order.
fn element(big: bool, kind: u32, data: &[u8]) -> Vec<u8> {
    let number = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let mut bytes = [number(kind), number(data.len() as u32)].concat();
    bytes.extend(data);
    bytes.resize(bytes.len().div_ceil(8) * 8, 0);
    bytes
}

fn file(big: bool, elements: &[u8]) -> Vec<u8> {
    let mut bytes = vec![b' '; 124];
    bytes.extend(if big { [1, 0, b'M', b'I'] } else { [0, 1, b'I', b'M'] });
    bytes.extend(elements);
    bytes
}

/// Returns the body of an array `a` of class double, [2, 3], whose numbers 0 to 5 are stored as bytes.
fn small_array(big: bool) -> Vec<u8> {
    let number = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let mut body = element(big, element::UINT32, &[number(6), [0; 4]].concat());
    body.extend(element(big, element::INT32, &[number(2), number(3)].concat()));
    // A small element: four bytes of tag, and the name.
    body.extend(number(1 << 16 | element::INT8));
    body.extend(*b"a\0\0\0");
    body.extend(element(big, element::UINT8, &[0, 1, 2, 3, 4, 5]));
    body
}

#[test]
fn arrays_of_either_order_and_compressed() {
    let dir = TempDir::new();
    let path = dir.path("a.mat");
    let data: Vec<_> = (0..6).map(|i| Complex::new(i as f32, 0.0)).collect();
    let expected = MatArray { name: "a".into(), dims: vec![2, 3], data: Ok(data) };
    for big in [false, true] {
        let matrix = element(big, element::MATRIX, &small_array(big));
        std::fs::write(&path, file(big, &matrix)).unwrap();
        assert_eq!(read_mat(&path).unwrap(), std::slice::from_ref(&expected));
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&matrix).unwrap();
        let packed = encoder.finish().unwrap();
        let length = packed.len() as u32;
        let tag = [element::COMPRESSED, length].map(|n| if big { n.to_be_bytes() } else { n.to_le_bytes() });
        let twice = [tag.concat(), packed.clone(), tag.concat(), packed].concat();
        std::fs::write(&path, file(big, &twice)).unwrap();
        assert_eq!(read_mat(&path).unwrap(), [expected.clone(), expected.clone()]);
        // A checksum that does not fit.
        let mut damaged = file(big, &twice[..twice.len() / 2]);
        *damaged.last_mut().unwrap() ^= 1;
        std::fs::write(&path, damaged).unwrap();
        assert_eq!(read_mat(&path).unwrap_err().kind(), ErrorKind::BadFile);
    }
}

#[test]
fn damaged_files_are_errors() {
    let dir = TempDir::new();
    let path = dir.path("bad.mat");
    assert_eq!(read_mat(&path).unwrap_err().kind(), ErrorKind::IO);
    let good = file(false, &element(false, element::MATRIX, &small_array(false)));
    for length in (0..128).chain(129..good.len()) {
        std::fs::write(&path, &good[..length]).unwrap();
        let e = read_mat(&path).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::BadFile | ErrorKind::Unsupported), "{length}: {e}");
    }
    // No flipped bit crashes, and none allocates the memory that a damaged size announces.
    for bit in 0..8 * good.len() {
        let mut damaged = good.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&path, damaged).unwrap();
        if let Err(e) = read_mat(&path) {
            assert!(e.message().contains("bad.mat"), "{e}");
        }
    }
    for (bytes, words) in [
        (&b"\x89HDF\r\n\x1a\n"[..], "version 7.3: save it by save('-v7'"),
        (b"# Created by Octave 7", "Octave's own format"),
        (&[&[0u8; 16][..], &[1; 200]].concat(), "level 4"),
        (&[255; 200], "not a .mat file"),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let e = read_mat(&path).unwrap_err();
        assert!(e.message().contains(words), "{e}");
    }
}

#[test]
fn variables_are_read_back() {
    let dir = TempDir::new();
    let path = dir.path("a.mat");
    let (complex, real) = (ramp(24), ramp(3).iter().map(|z| Complex::new(z.re, 0.0)).collect::<Vec<_>>());
    let variables = [
        MatVariable { name: "z", dims: vec![2, 3, 4], values: MatValues::Single(vec![&complex[..7], &complex[7..]]) },
        MatVariable { name: "real_row", dims: vec![3], values: MatValues::Single(vec![&real]) },
        MatVariable { name: "d", dims: vec![1, 2], values: MatValues::Double(vec![0.5, f64::NAN]) },
    ];
    write(&path, &variables).unwrap();
    let back = read_mat(&path).unwrap();
    assert_eq!(back[0], MatArray { name: "z".into(), dims: vec![2, 3, 4], data: Ok(complex.clone()) });
    assert_eq!(back[1], MatArray { name: "real_row".into(), dims: vec![3, 1], data: Ok(real) });
    let d = back[2].data.as_ref().unwrap();
    assert!(d[0].re == 0.5 && d[1].re.is_nan());
    let wrong = MatVariable { name: "z", dims: vec![5], values: MatValues::Single(vec![&complex]) };
    assert_eq!(write(&path, &[wrong]).unwrap_err().kind(), ErrorKind::SizeMismatch);
}

/// A variable of 2 GiB or more is an error before a byte is written. Its parts share their memory.
#[test]
fn large_variables_are_errors() {
    let dir = TempDir::new();
    let part = vec![Complex::new(1.0, 2.0); 1 << 20];
    let sized = |parts: usize| MatVariable {
        name: "image",
        dims: vec![1 << 10, 1 << 10, parts],
        values: MatValues::Single(vec![&part; parts]),
    };
    let e = write(&dir.path("large.mat"), &[sized(256)]).unwrap_err();
    assert!(e.kind() == ErrorKind::Unsupported && e.message().contains("write a .h5 or .npy file"), "{e}");
    assert_eq!(dir.count(), 0);
}

#[test]
fn images_keep_positions_and_counters() {
    let dir = TempDir::new();
    let mut image = Image::new([4, 3, 2], 2, ramp(48)).unwrap();
    image.fov_mm = [8.0, 9.0, 10.0];
    image.placement = Placement {
        position: [1.0, -2.0, 3.0],
        read_dir: [0.0, 1.0, 0.0],
        phase_dir: [0.0, 0.0, -1.0],
        slice_dir: [1.0, 0.0, 0.0],
        ..Placement::default()
    };
    let mut second = image.clone();
    second.index = ScanIndex { slice: 3, repetition: 2, contrast: 1, ..ScanIndex::default() };
    second.placement.position[0] = -7.5;
    let images = [image, second];
    let path = dir.path("a.mat");
    write_atomically(|files| crate::write_images(files, &path, &images)).unwrap();
    assert_eq!(read_images(&path).unwrap(), images);
    // Unknown positions stay unknown.
    let unknown = Image::new([4, 3, 1], 1, ramp(12)).unwrap();
    write_atomically(|files| crate::write_images(files, &path, std::slice::from_ref(&unknown))).unwrap();
    assert_eq!(read_images(&path).unwrap(), [unknown]);
}

#[test]
fn the_array_of_an_image_is_unambiguous() {
    let dir = TempDir::new();
    let path = dir.path("a.mat");
    let data = ramp(60);
    let variable = |name, dims: &[usize]| MatVariable {
        name,
        dims: dims.to_vec(),
        values: MatValues::Single(vec![&data[..dims.iter().product()]]),
    };
    write(&path, &[variable("maps", &[3, 4, 1, 5])]).unwrap();
    let image = &read_images(&path).unwrap()[0];
    assert_eq!((image.dims, image.channels), ([3, 4, 1], 5));
    write(&path, &[variable("maps", &[3, 4]), variable("other", &[2, 2])]).unwrap();
    let e = read_images(&path).unwrap_err();
    assert!(e.message().contains("maps [3, 4], other [2, 2]: name one of them image"), "{e}");
    write(&path, &[variable("maps", &[3, 4]), variable("image", &[2, 2])]).unwrap();
    assert_eq!(read_images(&path).unwrap()[0].dims, [2, 2, 1]);
    write(&path, &[]).unwrap();
    assert_eq!(read_images(&path).unwrap_err().kind(), ErrorKind::BadFile);
}
