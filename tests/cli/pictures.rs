//! The orientation of pictures.

use crate::io::{write_images, Image, Placement};
use crate::{with_lock, TempDir};
use recon::phantom::Phantom;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Returns width, height and grey levels from the top, 0 to 1.
fn read(path: &Path) -> (usize, usize, Vec<f64>) {
    let mut reader = png::Decoder::new(BufReader::new(File::open(path).unwrap())).read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut bytes).unwrap();
    assert_eq!((info.color_type, info.bit_depth), (png::ColorType::Grayscale, png::BitDepth::Eight));
    (info.width as usize, info.height as usize, bytes.iter().map(|&b| b as f64 / 255.0).collect())
}

/// Returns the correlation of a picture with a slice [x, y] of the phantom in the orientation of the literature: x to
/// the right, y upwards.
fn likeness(picture: &[f64], slice: &[f64], [nx, ny]: [usize; 2]) -> f64 {
    let drawn: Vec<f64> = (0..nx * ny).map(|i| slice[(ny - 1 - i / nx) * nx + i % nx]).collect();
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let (a, b) = (mean(picture), mean(&drawn));
    let product = |f: &dyn Fn(usize) -> f64| (0..nx * ny).map(f).sum::<f64>();
    product(&|i| (picture[i] - a) * (drawn[i] - b))
        / (product(&|i| (picture[i] - a).powi(2)) * product(&|i| (drawn[i] - b).powi(2))).sqrt()
}

#[test]
fn images_are_drawn_upright() {
    let dir = TempDir::new();
    let dims = [96, 128];
    let head = Phantom::shepp_logan_2d().image(&dims, 4).unwrap();
    dir.ok("simulate --matrix 96,128 --truth truth.png -o scan.h5");
    dir.ok("simulate --matrix 96,128 --truth truth.h5 -o k.cfl");
    for (line, bound) in [
        ("grid scan.h5 -o image.png", 0.97),
        ("cg scan.h5 -o image.png", 0.97),
        ("grid k.cfl --trajectory k_traj.cfl --matrix 96,128 -o image.png", 0.97),
    ] {
        dir.ok(line);
        let (width, height, picture) = read(&dir.path("image.png"));
        assert_eq!([width, height], dims, "{line}");
        let alike = likeness(&picture, &head, dims);
        assert!(alike > bound, "{line}: {alike}");
    }
    let (_, _, truth) = read(&dir.path("truth.png"));
    assert!(likeness(&truth, &head, dims) > 0.999);
    // The correlation of a picture upside down is lower.
    let turned: Vec<f64> = truth.chunks_exact(96).rev().flatten().copied().collect();
    assert!(likeness(&turned, &head, dims) < 0.96);

    // A comparison shows both images side by side.
    dir.ok("grid scan.h5 -o a.h5");
    dir.ok("compare a.h5 truth.h5 --magnitude --picture row.png");
    let (width, height, row) = read(&dir.path("row.png"));
    assert_eq!([width, height], [192, 128]);
    for half in 0..2 {
        let panel: Vec<f64> = row.chunks_exact(192).flat_map(|line| line[96 * half..][..96].to_vec()).collect();
        assert!(likeness(&panel, &head, dims) > 0.97, "panel {half}");
    }
}

/// A volume is a mosaic of its slices: eight of 40 x 48 pixels in four columns.
#[test]
fn volumes_are_drawn_upright() {
    let dir = TempDir::new();
    let volume = Phantom::shepp_logan_3d().image(&[40, 48, 8], 2).unwrap();
    dir.ok("simulate --matrix 40,48,8 --trajectory cartesian --truth truth.png -o scan.h5");
    let (width, height, picture) = read(&dir.path("truth.png"));
    assert_eq!([width, height], [160, 96]);
    for z in 0..8 {
        let (left, top) = (z % 4 * 40, z / 4 * 48);
        let tile: Vec<f64> =
            picture.chunks_exact(160).skip(top).take(48).flat_map(|line| line[left..][..40].to_vec()).collect();
        let slice = &volume[z * 40 * 48..][..40 * 48];
        if slice.iter().all(|&v| v == slice[0]) {
            assert!(tile.iter().all(|&v| v == 0.0), "slice {z}");
            continue;
        }
        let alike = likeness(&tile, slice, [40, 48]);
        assert!(alike > 0.9, "slice {z}: {alike}");
        let turned: Vec<f64> = tile.chunks_exact(40).rev().flatten().copied().collect();
        // The slices at the ends are almost symmetric.
        assert!(z != 4 || likeness(&turned, slice, [40, 48]) < alike - 0.01, "slice {z}");
    }
}

/// Slices, coils and repetitions of a scan have their place in the picture. A picture that would be too large is an
/// error before the computation.
#[test]
fn scans_are_drawn_as_mosaics() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 24,16,5 --trajectory cartesian --coils 3 -o volume.h5");
    dir.ok("grid volume.h5 --combine none -o coils.h5");
    dir.ok("grid volume.h5 --combine none -o coils.png");
    let (width, height, picture) = read(&dir.path("coils.png"));
    // A row for each coil.
    assert_eq!([width, height], [24 * 5, 16 * 3]);
    let image = crate::only_image(&dir.path("coils.h5"));
    // One grey scale for all: white is a percentile of all voxels.
    let mut all: Vec<f32> = image.data.iter().map(|z| z.norm()).collect();
    all.sort_by(f32::total_cmp);
    let white = all[(all.len() - 1) - all.len() / 1000];
    for (i, &grey) in picture.iter().enumerate() {
        let (column, row) = (i % width, i / width);
        let (x, y, z, coil) = (column % 24, 15 - row % 16, column / 24, row / 16);
        let voxel = image.data[((coil * 5 + z) * 16 + y) * 24 + x].norm();
        assert!((grey - f64::from((voxel / white).min(1.0))).abs() < 0.6 / 255.0, "{x} {y} {z} {coil}");
    }
    dir.ok("simulate --matrix 16,16 --trajectory golden-angle --shots 3000 --samples 32 -o series.h5");
    dir.ok("--quiet grid series.h5 --frame-shots 20 --frame-step 150 --density ramp -o frames.png");
    let (width, height, _) = read(&dir.path("frames.png"));
    // 20 frames.
    assert_eq!([width, height], [16 * 5, 16 * 4]);
    dir.ok("simulate --matrix 8,8,5000 --trajectory cartesian --coils 2 -o long.h5");
    dir.fails(1, "grid long.h5 --combine none -o long.png", &["long.png", "40000 x 16 pixels", "recon view"]);
}

/// Checks that neither the format nor the order of images changes their orientation in a picture.
#[test]
fn formats_have_the_same_orientation() {
    let dims = [12, 16, 1];
    // An image without symmetry: each orientation has a different picture.
    let data: Vec<_> = (0..192).map(|i| num_complex::Complex::new(1.0 + (i % 12 + i * i / 40) as f32, 0.0)).collect();
    let (left, back, head) = ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]);
    let minus = |v: [f32; 3]| v.map(|v| -v);
    for (read_dir, phase_dir, slice_dir) in
        [(left, back, head), (left, minus(back), head), (back, minus(left), minus(head)), (left, minus(head), back)]
    {
        let dir = TempDir::new();
        let mut image = Image::new(dims, 1, data.clone()).unwrap();
        image.fov_mm = [24.0, 32.0, 2.0];
        image.placement =
            Placement { read_dir, phase_dir, slice_dir, position: [3.0, -5.0, 7.0], ..Default::default() };
        for name in ["a.h5", "a.nii", "a.nii.gz", "a.png"] {
            with_lock(|| {
                recon::atomic_file::write_atomically(|f| write_images(f, &dir.path(name), std::slice::from_ref(&image)))
            })
            .unwrap();
        }
        // A file without an orientation.
        image.placement = Placement::default();
        with_lock(|| {
            recon::atomic_file::write_atomically(|f| write_images(f, &dir.path("u.cfl"), std::slice::from_ref(&image)))
        })
        .unwrap();
        let picture = |files: &str| {
            dir.ok(&format!("compare {files} --picture row.png"));
            read(&dir.path("row.png"))
        };
        let wanted = picture("a.h5 a.h5");
        for files in ["a.nii a.nii", "a.nii.gz a.nii", "a.h5 a.nii", "a.nii a.h5", "u.cfl a.nii", "a.nii u.cfl"] {
            assert_eq!(picture(files), wanted, "{files}, {read_dir:?} {phase_dir:?}");
        }
        // The orientation does not depend on the order of the images.
        let (width, height, row) = picture("u.cfl a.h5 u.cfl");
        assert_eq!((width / 3 * 2, height), (wanted.0, wanted.1));
        let own = wanted.0 / 2;
        let panel = |pixels: &[f64], width: usize, at: usize| -> Vec<f64> {
            pixels.chunks_exact(width).flat_map(|line| line[at * own..][..own].to_vec()).collect()
        };
        for at in 0..3 {
            assert_eq!(panel(&row, width, at), panel(&wanted.2, wanted.0, 0), "panel {at}");
        }
        // A reconstruction writes a picture of the same orientation.
        let (width, _, single) = read(&dir.path("a.png"));
        assert_eq!(width, wanted.0 / 2);
        // White is the maximum in one picture, and a percentile in the other.
        let difference: f64 = single.iter().zip(panel(&wanted.2, wanted.0, 0)).map(|(a, b)| (a - b).abs()).sum();
        assert!(difference / (single.len() as f64) < 0.02, "{difference}");
    }
}
