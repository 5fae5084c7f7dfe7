//! The command `compare`: magnitudes, the order of axes, scale, series.

use crate::common::Random;
use crate::io::{Image, Placement};
use crate::{noise, read_images, with_lock, TempDir};
use num_complex::Complex;
use std::path::PathBuf;

fn write_images(path: PathBuf, images: &[Image]) {
    with_lock(|| crate::io::tests::write_images(path, images)).unwrap();
}

fn image(dims: [usize; 3], data: Vec<Complex<f32>>) -> Image {
    Image::new(dims, 1, data).unwrap()
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn complex_images_are_compared_with_magnitudes() {
    let random = Random::fresh();
    println!("seed {}", random.seed);
    let dir = TempDir::new();
    let data = noise(20 * 16, random.seed);
    let magnitudes: Vec<_> = data.iter().map(|z| Complex::new(z.norm(), 0.0)).collect();
    let negated: Vec<_> = magnitudes.iter().map(|z| -z).collect();
    for (name, data) in [("z", data), ("m", magnitudes), ("n", negated)] {
        write_images(dir.path(&format!("{name}.h5")), &[image([20, 16, 1], data)]);
    }
    for (files, names, compared) in [
        ("z.h5 m.h5", ["truth is a magnitude", "image is complex"], "image complex, truth magnitude"),
        ("m.h5 z.h5", ["image is a magnitude", "truth is complex"], "image magnitude, truth complex"),
    ] {
        let out = dir.run(&format!("compare {files}"));
        assert!(out.status == Some(0) && out.stdout.starts_with("error 0.0000 %"), "{out:?}");
        assert!(out.stdout.contains(&format!("magnitudes ({compared}), no scale")), "{out:?}");
        assert!(out.stderr.matches('\n').count() == 1 && names.iter().all(|n| out.stderr.contains(n)), "{out:?}");
        let object = json(&dir.ok(&format!("compare {files} --json")));
        assert!(object["magnitude"] == true && object["notes"].as_array().unwrap().len() == 1, "{object}");
        // With --magnitude there is no warning.
        assert!(dir.ok(&format!("compare {files} --magnitude")).starts_with("error 0.0000 %"));
        let complex = dir.run(&format!("compare {files} --complex --json"));
        assert!(json(&complex.stdout)["percent_error"].as_f64().unwrap() > 50.0, "{complex:?}");
    }
    // Signs count: they are lost only on request.
    for (files, names) in [
        ("n.h5 m.h5", ["image is real with negative numbers", "truth is a magnitude"]),
        ("m.h5 n.h5", ["image is a magnitude", "truth is real with negative numbers"]),
        ("n.h5 z.h5", ["image is real with negative numbers", "truth is complex"]),
        ("z.h5 n.h5", ["image is complex", "truth is real with negative numbers"]),
    ] {
        let out = dir.run(&format!("compare {files}"));
        assert!(out.status == Some(0) && !out.stdout.starts_with("error 0.0000 %"), "{out:?}");
        let note = out.stderr.lines().next().unwrap();
        assert!(names.iter().all(|n| note.contains(n)) && note.contains("with phase and sign"), "{out:?}");
        assert!(out.stdout.contains("values (image "), "{out:?}");
        assert!(dir.ok(&format!("compare {files} --magnitude")).starts_with("error 0.0000 %"));
        assert!(!dir.run(&format!("compare {files} --complex")).stderr.contains("is real"));
    }
    assert!(dir.run("compare n.h5 m.h5").stdout.starts_with("error 200.0000 %"));
    for (files, compared) in [
        ("z.h5 z.h5", ", complex values, no scale\n"),
        ("n.h5 n.h5", ", real values, no scale\n"),
        ("m.h5 m.h5 --magnitude", ", magnitudes, no scale\n"),
        ("z.h5 z.h5 --magnitude --scale best", ", magnitudes of complex values, scale 1.000000e0\n"),
    ] {
        assert!(dir.ok(&format!("compare {files}")).ends_with(compared), "{files}: {compared}");
    }
    let object = json(&dir.ok("compare z.h5 z.h5 --json"));
    assert_eq!(
        (&object["magnitude"], &object["image_values"], &object["truth_values"]),
        (&false.into(), &"complex".into(), &"complex".into())
    );
    assert_eq!(dir.ok("compare z.h5 z.h5"), dir.ok("compare z.h5 z.h5 --complex"));
    dir.fails(2, "compare z.h5 m.h5 --magnitude --complex", &["--complex"]);
}

#[test]
fn reversed_axes_are_reported() {
    let random = Random::fresh();
    println!("seed {}", random.seed);
    let dir = TempDir::new();
    let turned = |a: &Image| {
        let [nx, ny, _] = a.dims;
        image([ny, nx, 1], (0..nx * ny).map(|i| a.data[i / ny + i % ny * nx]).collect())
    };
    let oblong = image([24, 16, 1], noise(24 * 16, random.seed));
    let square = image([20, 20, 1], noise(400, random.seed));
    write_images(dir.path("a.h5"), std::slice::from_ref(&oblong));
    write_images(dir.path("b.h5"), &[turned(&oblong)]);
    dir.fails(1, "compare a.h5 b.h5", &["[24, 16, 1]", "[16, 24, 1]", "--transpose"]);
    dir.fails(1, "compare a.h5 a.h5 --transpose", &["[24, 16, 1]", "[16, 24, 1]", "leave out --transpose"]);
    assert!(dir.ok("compare a.h5 b.h5 --transpose").starts_with("error 0.0000 %"));
    write_images(dir.path("v.h5"), &[image([8, 24, 16], noise(8 * 24 * 16, 1))]);
    write_images(dir.path("w.h5"), &[image([24, 16, 8], noise(8 * 24 * 16, 1))]);
    dir.fails(1, "compare v.h5 w.h5", &["[8, 24, 16]", "[24, 16, 8]", "another order"]);
    dir.fails(1, "compare a.h5 w.h5", &["[24, 16, 1]", "[24, 16, 8]", "slice"]);
    // The sizes of a square image do not show the order: the errors do.
    write_images(dir.path("c.h5"), std::slice::from_ref(&square));
    write_images(dir.path("d.h5"), &[turned(&square)]);
    let out = dir.run("compare c.h5 d.h5");
    assert!(out.status == Some(0) && out.stderr.contains("give --transpose"), "{out:?}");
    let out = dir.run("compare c.h5 c.h5 --transpose");
    assert!(out.status == Some(0) && out.stderr.contains("leave out --transpose"), "{out:?}");
    assert!(dir.ok("compare c.h5 d.h5 --transpose").starts_with("error 0.0000 %"));

    // Files whose images have different orientations in the patient.
    let place =
        |read_dir, phase_dir| Placement { read_dir, phase_dir, slice_dir: [0.0, 0.0, 1.0], ..Default::default() };
    let (left, back) = ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]);
    for (name, placement) in [("e.h5", place(left, back)), ("f.h5", place(back, left))] {
        write_images(dir.path(name), &[Image { placement, ..square.clone() }]);
    }
    let out = dir.run("compare e.h5 f.h5");
    assert!(out.status == Some(0) && out.stderr.contains("different orientations in the patient"), "{out:?}");
    dir.ok("compare e.h5 c.h5");
}

#[test]
fn a_better_scale_is_reported() {
    let random = Random::fresh();
    println!("seed {}", random.seed);
    let dir = TempDir::new();
    let truth = noise(400, random.seed);
    let near: Vec<_> = truth.iter().zip(noise(400, random.seed ^ 1)).map(|(t, n)| t + n * 0.1).collect();
    let of = |factor: Complex<f32>| near.iter().map(|z| z * factor).collect();
    let scales = [("a", Complex::new(1.0, 0.0)), ("b", Complex::new(4.0, 0.0)), ("c", Complex::new(0.0, 1.0))];
    write_images(dir.path("truth.h5"), &[image([20, 20, 1], truth)]);
    for (name, factor) in scales {
        write_images(dir.path(&format!("{name}.h5")), &[image([20, 20, 1], of(factor))]);
    }
    dir.ok("compare a.h5 truth.h5");
    for (name, words) in [("b", "the image times 2."), ("c", "--scale best")] {
        let out = dir.run(&format!("compare {name}.h5 truth.h5"));
        assert!(out.status == Some(0) && out.stderr.contains(words), "{out:?}");
        dir.ok(&format!("compare {name}.h5 truth.h5 --scale best"));
    }
}

#[test]
fn all_series_of_a_file_are_read() {
    let random = Random::fresh();
    println!("seed {}", random.seed);
    let dir = TempDir::new();
    // Frames of one size are one series, in their order, even if one of them is real.
    let mut frames: Vec<_> = (0..3).map(|i| image([8, 6, 1], noise(48, random.seed ^ i))).collect();
    frames[1].data.iter_mut().for_each(|z| z.im = 0.0);
    write_images(dir.path("frames.h5"), &frames);
    let back = read_images(dir.path("frames.h5"));
    assert!(back.iter().zip(&frames).all(|(a, b)| a.data == b.data), "frames in another order");
    assert_eq!(dir.ok("compare frames.h5 frames.h5").matches("error 0.0000 %").count(), 3);
    // Images of twelve sizes are twelve series.
    let sizes: Vec<_> = (0..12).map(|i| image([8 + i, 6, 1], noise((8 + i) * 6, random.seed ^ i as u64))).collect();
    write_images(dir.path("sizes.h5"), &sizes);
    let out = dir.run("compare sizes.h5 sizes.h5");
    assert_eq!(out.stdout.matches("error 0.0000 %").count(), 12, "{out:?}");
    assert!(
        out.stderr.matches("12 series of images").count() == 1 && out.stderr.contains("dataset/image_11"),
        "{out:?}"
    );
    assert_eq!(
        read_images(dir.path("sizes.h5")).iter().map(|i| i.dims[0]).collect::<Vec<_>>(),
        (8..20).collect::<Vec<_>>()
    );
    let info = dir.run("info sizes.h5").stdout;
    assert!(info.contains("12 images") && info.contains("19 x 6 x 1"), "{info}");
    write_images(dir.path("two.h5"), &frames[..2]);
    dir.fails(1, "compare frames.h5 two.h5", &["frames.h5 has 3 images", "two.h5 has 2"]);
}

#[test]
fn picture_of_several_images() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 32,24 --trajectory radial --truth truth.h5 -o scan.h5");
    dir.ok("grid scan.h5 -o a.h5");
    dir.ok("cg scan.h5 -o b.h5");
    let lines = dir.ok("compare a.h5 b.h5 truth.h5 --complex --scale best --picture row.png");
    assert!(lines.lines().count() == 2 && lines.contains("a.h5: error ") && lines.contains("b.h5: error "), "{lines}");
    let picture = std::fs::read(dir.path("row.png")).unwrap();
    let side = |at: usize| u32::from_be_bytes(picture[at..at + 4].try_into().unwrap());
    assert_eq!((side(16), side(20)), (3 * 32, 24));
}

/// The files say where the images are: disagreements are warnings, and so are images in different orders.
#[test]
fn disagreements_of_geometry_and_order_are_warnings() {
    let dir = TempDir::new();
    let [x, y, z] = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    let placement = Placement { read_dir: x, phase_dir: y, slice_dir: z, ..Default::default() };
    let base = Image { placement, fov_mm: [160.0, 160.0, 5.0], ..image([16, 16, 1], noise(256, 1)) };
    let moved = |position| Image { placement: Placement { position, ..placement }, ..base.clone() };
    let sized = |fov_mm| Image { fov_mm, ..base.clone() };
    for (name, other) in [
        ("base", base.clone()),
        // A tenth of a voxel, or 1 % of the voxel size, is rounding.
        ("near", moved([0.5, 0.0, 0.0])),
        ("far", moved([3.0, 0.0, 40.0])),
        ("rounded", sized([160.5, 160.0, 5.0])),
        ("large", sized([200.0, 160.0, 5.0])),
        // The thickness of a slice is not compared.
        ("thick", sized([160.0, 160.0, 8.0])),
        ("unknown", sized([0.0; 3])),
        ("nowhere", Image { placement: Placement::default(), ..base.clone() }),
    ] {
        write_images(dir.path(&format!("{name}.h5")), &[other]);
    }
    for name in ["base", "near", "rounded", "thick", "unknown", "nowhere"] {
        dir.ok(&format!("compare {name}.h5 base.h5"));
    }
    for (name, words) in [
        ("far", "the image is at 3, 0, 40 mm and the truth at 0, 0, 0 mm in the patient"),
        ("large", "voxels of the image have 12.5000 x 10.0000 x 5.0000 mm and those of the truth 10.0000 x"),
    ] {
        let out = dir.run(&format!("compare {name}.h5 base.h5"));
        assert!(out.status == Some(0) && out.stderr.contains(words) && out.stderr.contains("by index"), "{out:?}");
        let object = json(&dir.ok(&format!("compare {name}.h5 base.h5 --json")));
        assert!(object["notes"][0].as_str().unwrap().contains(words), "{object}");
    }
    // Three slices at their positions, and the same in reversed order.
    let slice = |slice: u16| {
        let mut one = moved([0.0, 0.0, 5.0 * f32::from(slice)]);
        one.index.slice = slice;
        one
    };
    write_images(dir.path("up.h5"), &[slice(0), slice(1), slice(2)]);
    write_images(dir.path("down.h5"), &[slice(2), slice(1), slice(0)]);
    let same = dir.ok("compare up.h5 up.h5");
    assert!(same.contains("image 0: error 0") && same.contains("image 2, slice 2: error 0"), "{same}");
    let out = dir.run("compare down.h5 up.h5");
    for words in ["image 0 is slice 2, but that of the truth is slice 0", "at 0, 0, 10 mm and the truth at 0, 0, 0 mm"]
    {
        assert!(out.stderr.contains(words), "{words}: {out:?}");
    }
    // One true image for all: only one of the slices is at its position.
    let out = dir.run("compare up.h5 base.h5");
    assert_eq!(out.stderr.matches("in the patient").count(), 2, "{out:?}");
    let objects = dir.ok("compare up.h5 base.h5 --json");
    let last = json(objects.lines().last().unwrap());
    assert_eq!((&last["image"], &last["slice"], &last["channel"]), (&2.into(), &2.into(), &serde_json::Value::Null));
}

/// Volumes of different numbers of slices.
#[test]
fn different_numbers_of_slices_are_a_warning() {
    let dir = TempDir::new();
    write_images(dir.path("five.h5"), &[image([8, 8, 5], noise(320, 1))]);
    write_images(dir.path("four.h5"), &[image([8, 8, 4], noise(256, 1))]);
    let out = dir.run("compare four.h5 five.h5");
    assert!(out.stderr.contains("the image of [8, 8, 4] voxels is placed in the middle of [8, 8, 5]"), "{out:?}");
}
