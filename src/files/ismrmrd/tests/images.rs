//! Images.

use super::*;

#[test]
fn images_round_trip() {
    let dir = TempDir::new();
    let path = dir.path("images.h5");
    let scan = &dataset().scans[1];
    let complex = Image::of_scan(scan, [8, 6, 1], 2, ramp(96)).unwrap();
    assert_eq!((complex.fov_mm, complex.placement), (scan.encoded_fov_mm, scan.placement));
    let mut later = complex.clone();
    later.index.repetition = 4;
    later.data.reverse();
    let real = Image::new([3, 2, 2], 1, (0..12).map(|i| Complex::new(i as f32, 0.0)).collect()).unwrap();
    write_series(&path, &[complex.clone(), real.clone(), later.clone()]).unwrap();
    assert_eq!(dir.count(), 1);
    assert_eq!(read_images(&path, None).unwrap(), [complex, later, real.clone()]);
    assert_eq!(read_images(&path, Some("dataset/image_1")).unwrap(), [real]);
    let e = read_images(&path, Some("dataset")).unwrap_err();
    assert!(e.kind() == ErrorKind::BadFile && e.message().contains("no images in dataset"), "{e}");
    let e = read_dataset(&path).unwrap_err();
    assert!(e.message().contains("no dataset/xml"), "{e}");
    let wide = Image::of_scan(scan, [16, 12, 1], 1, ramp(192)).unwrap();
    assert_eq!(wide.fov_mm, [40.0, 30.0, 2.5]);

    let good = std::fs::read(&path).unwrap();
    for length in (1..good.len()).step_by(good.len() / 60) {
        std::fs::write(&path, &good[..length]).unwrap();
        assert_unreadable(&path);
    }
    let huge = Image::new([70_000, 1, 1], 1, ramp(70_000)).unwrap();
    assert_eq!(write_series(dir.path("huge.h5"), &[huge]).unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(dir.count(), 1);
}

#[test]
fn image_header_has_the_layout_of_ismrmrd() {
    let dir = TempDir::new();
    let path = dir.path("a.h5");
    write_series(&path, &[Image::new([2, 3, 4], 5, ramp(120)).unwrap()]).unwrap();
    let file = hdf5_pure::File::open(&path).unwrap();
    let set = file.dataset("dataset/image_0/header").unwrap();
    assert_eq!(set.element_size().unwrap(), 198);
    let Datatype::Compound { members, .. } = set.datatype().unwrap() else { panic!() };
    let offset = |name: &str| members.iter().find(|m| m.name == name).unwrap().byte_offset;
    assert_eq!(
        ["matrix_size", "channels", "average", "user_int", "attribute_string_len"].map(offset),
        [16, 34, 96, 130, 194]
    );
    let shape = file.dataset("dataset/image_0/data").unwrap().shape().unwrap();
    assert_eq!(shape, [1, 5, 4, 3, 2]);
}
