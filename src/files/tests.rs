//! Helpers for the tests of all formats, and tests of the recognition of formats.

pub(super) use super::whole_files::{
    read_dataset, test_data, write_acquisitions, write_cfl, write_dataset, write_images, write_nifti, write_png,
    write_png_row, write_series,
};

use super::{read_cfl, read_images, the_only_image, FileUse, Image};
use num_complex::Complex;
use recon::error::{ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

fn write_image(path: impl AsRef<Path>, image: &Image) -> Result<()> {
    write_images(path, std::slice::from_ref(image))
}

fn read_image(path: impl AsRef<Path>) -> Result<Image> {
    the_only_image(path.as_ref(), read_images(path.as_ref())?)
}

/// A temporary folder, which is removed when the value is dropped.
pub(super) struct TempDir(PathBuf);

impl TempDir {
    pub(super) fn new() -> TempDir {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let name = format!("recon-io-{}-{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        TempDir(path)
    }

    pub(super) fn root(&self) -> &Path {
        &self.0
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Returns the number of files in the folder.
    pub(super) fn count(&self) -> usize {
        std::fs::read_dir(&self.0).unwrap().count()
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns `n` complex numbers, all different.
pub(super) fn ramp(n: usize) -> Vec<Complex<f32>> {
    (0..n).map(|i| Complex::new(i as f32 + 0.25, -0.5 * i as f32)).collect()
}

#[test]
fn formats_are_recognised_by_extension() {
    let dir = TempDir::new();
    let mut image = Image::new([4, 3, 2], 2, ramp(48)).unwrap();
    image.fov_mm = [8.0, 9.0, 10.0];
    for name in ["a.h5", "a.MRD", "a.cfl", "b.hdr", "a.npy", "a.mat"] {
        let path = dir.path(name);
        FileUse::WriteImages.format(&path).unwrap();
        write_image(&path, &image).unwrap();
        let back = read_image(&path).unwrap();
        assert_eq!((back.dims, back.channels, &back.data), (image.dims, 2, &image.data), "{name}");
    }
    for name in ["a.nii", "a.nii.gz"] {
        write_image(dir.path(name), &image).unwrap();
        let back = read_image(dir.path(name)).unwrap();
        assert_eq!((back.dims, back.channels, back.fov_mm), (image.dims, 2, image.fov_mm), "{name}");
        assert!(back.data.iter().zip(&image.data).all(|(a, b)| a.re == b.norm() && a.im == 0.0));
    }
    write_image(dir.path("a.png"), &image).unwrap();
    assert_eq!(dir.count(), 11);
    let e = write_image(dir.path("a.tiff"), &image).unwrap_err();
    assert!(e.message().ends_with("one of .h5, .mrd, .cfl, .hdr, .nii, .nii.gz, .dcm, .npy, .mat, .png"), "{e}");
    assert_eq!(read_image(dir.path("a.png")).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(FileUse::WriteImages.format(Path::new("image")).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn several_images_in_one_file() {
    let dir = TempDir::new();
    let mut images: Vec<_> = (0..3).map(|i| Image::new([4, 3, 1], 1, ramp(12 + i)[i..].to_vec()).unwrap()).collect();
    let e = write_images(dir.path("same.nii"), &images).unwrap_err();
    assert!(e.message().contains("same.nii: two images have the numbers slice 0 and repetition 0"), "{e}");
    images.iter_mut().enumerate().for_each(|(i, image)| image.index.repetition = i as u16);
    for name in ["a.h5", "a.cfl", "a.nii", "a.png"] {
        write_images(dir.path(name), &images).unwrap();
    }
    assert_eq!(read_images(dir.path("a.h5")).unwrap().len(), 3);
    assert!(read_image(dir.path("a.h5")).unwrap_err().message().contains("holds 3 images"));
    let cfl = read_cfl(dir.path("a.cfl")).unwrap();
    assert_eq!(cfl.dims, [4, 3, 1, 1, 1, 1, 1, 1, 1, 1, 3]);
    assert_eq!(cfl.data[12..24], images[1].data);
    assert_eq!(read_image(dir.path("a.nii")).unwrap().channels, 3);

    let other = [images[0].clone(), Image::new([3, 3, 1], 1, ramp(9)).unwrap()];
    for name in ["b.cfl", "b.nii", "b.npy", "b.mat", "b.png"] {
        assert_eq!(write_images(dir.path(name), &other).unwrap_err().kind(), ErrorKind::SizeMismatch);
        assert_eq!(write_images(dir.path(name), &[]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
    assert_eq!(dir.count(), 5);
}

#[test]
fn writers_refuse_malformed_images() {
    let dir = TempDir::new();
    assert_eq!(Image::new([2, 0, 1], 1, vec![]).unwrap_err().kind(), ErrorKind::InvalidSize);
    assert_eq!(Image::new([2, 2, 1], 1, ramp(3)).unwrap_err().kind(), ErrorKind::SizeMismatch);
    assert_eq!(Image::new([usize::MAX, 2, 2], 1, ramp(3)).unwrap_err().kind(), ErrorKind::SizeOverflow);
    let mut image = Image::new([2, 2, 1], 1, ramp(4)).unwrap();
    image.data.pop();
    for name in ["a.h5", "a.cfl", "a.nii", "a.nii.gz", "a.npy", "a.mat", "a.png"] {
        let e = write_image(dir.path(name), &image).unwrap_err();
        assert!(e.kind() == ErrorKind::SizeMismatch && e.message().contains(name), "{e}");
        let e = write_image(dir.path(&format!("nowhere/{name}")), &Image::new([1, 1, 1], 1, ramp(1)).unwrap());
        assert_eq!(e.unwrap_err().kind(), ErrorKind::IO);
    }
    assert_eq!(dir.count(), 0);
}

#[test]
fn numpy_reference() {
    let Some(path) = test_data("brain_rss_230x180.npy") else { return };
    let image = read_image(path).unwrap();
    assert_eq!(image.channels, 1);
    assert_eq!(image.data.len(), 230 * 180);
    assert!(image.data.iter().all(|z| z.re >= 0.0 && z.im == 0.0));
}
