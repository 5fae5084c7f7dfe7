//! Pictures stand upright.

use crate::TempDir;
use recon::phantom::Phantom;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Width, height and grey levels from the top, from 0 to 1.
fn read(path: &Path) -> (usize, usize, Vec<f64>) {
    let mut reader = png::Decoder::new(BufReader::new(File::open(path).unwrap())).read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut bytes).unwrap();
    assert_eq!((info.color_type, info.bit_depth), (png::ColorType::Grayscale, png::BitDepth::Eight));
    (info.width as usize, info.height as usize, bytes.iter().map(|&b| b as f64 / 255.0).collect())
}

/// The correlation of a picture with a slice [x, y] of the phantom, drawn as in the literature: x to the right, y
/// upwards.
fn likeness(picture: &[f64], slice: &[f64], [nx, ny]: [usize; 2]) -> f64 {
    let drawn: Vec<f64> = (0..nx * ny).map(|i| slice[(ny - 1 - i / nx) * nx + i % nx]).collect();
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let (a, b) = (mean(picture), mean(&drawn));
    let product = |f: &dyn Fn(usize) -> f64| (0..nx * ny).map(f).sum::<f64>();
    product(&|i| (picture[i] - a) * (drawn[i] - b))
        / (product(&|i| (picture[i] - a).powi(2)) * product(&|i| (drawn[i] - b).powi(2))).sqrt()
}

#[test]
fn the_first_head_stands_upright() {
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
    // A picture upside down is less alike.
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

#[test]
fn the_middle_of_a_volume_stands_upright() {
    let dir = TempDir::new();
    let volume = Phantom::shepp_logan_3d().image(&[40, 48, 8], 2).unwrap();
    dir.ok("simulate --matrix 40,48,8 --trajectory cartesian --truth truth.png -o scan.h5");
    let (width, height, picture) = read(&dir.path("truth.png"));
    assert_eq!([width, height], [40, 48]);
    let slice = &volume[4 * 40 * 48..5 * 40 * 48];
    assert!(likeness(&picture, slice, [40, 48]) > 0.99);
    let turned: Vec<f64> = picture.chunks_exact(40).rev().flatten().copied().collect();
    assert!(likeness(&turned, slice, [40, 48]) < likeness(&picture, slice, [40, 48]) - 0.01);
}
