//! Messages and options of the program.

use crate::{read_images, TempDir};

#[test]
fn numbers_of_images_are_printed() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 16,16 --shots 4 -o one.h5");
    assert_eq!(dir.ok("info one.h5").lines().next(), Some("ISMRMRD raw data of 1 image"));
    dir.ok("simulate --matrix 16,16 --shots 4 --off-resonance 10 --dwell 4 --echo-times 0.001,0.002,0.004 -o three.h5");
    let text = dir.ok("info three.h5");
    assert_eq!(text.lines().next(), Some("ISMRMRD raw data of 3 images"));
    assert!(text.contains("echo times              1, 2, 4 ms"), "{text}");
}

#[test]
fn backprojection_of_a_spiral_is_an_error() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 64,64 --trajectory spiral -o spiral.h5");
    dir.fails(1, "fbp spiral.h5 -o no.png", &["the trajectory is not radial: sample ", "use gridding"]);
    dir.ok("simulate --matrix 64,64 --trajectory rosette -o rosette.h5");
    dir.fails(1, "fbp rosette.h5 -o no.png", &["the trajectory is not radial: "]);
}

#[test]
fn tolerance_out_of_reach_has_a_remedy_that_works() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 32,32 -o scan.h5");
    let line = "grid scan.h5 --tolerance 1e-12 -o x.h5";
    let text = dir.run(line).stderr;
    assert!(text.contains("double precision would meet it") && !text.contains("use the minimax"), "{text}");
    dir.fails(1, line, &["1e-12"]);
    dir.ok(&format!("{line} --precision f64"));
    let smallest = text.split("a tolerance of ").nth(1).unwrap().split(' ').next().unwrap();
    dir.ok(&format!("grid scan.h5 --tolerance {smallest} -o x.h5"));
}

/// By default the adjoints of several coils are combined to one magnitude, and the help describes this.
#[test]
fn adjoints_of_coils_are_combined() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 20,24 --coils 3 --maps maps.cfl -o scan.h5");
    dir.ok("fhd scan.h5 -o combined.h5");
    dir.ok("fhd scan.h5 --combine none -o coils.h5");
    let (combined, coils) =
        (read_images(dir.path("combined.h5")).remove(0), read_images(dir.path("coils.h5")).remove(0));
    assert_eq!((combined.channels, coils.channels), (1, 3));
    assert!(coils.data.iter().any(|z| z.im.abs() > 1e-3 * z.norm()));
    let largest = combined.data.iter().map(|z| z.re).fold(0.0, f32::max);
    for (i, z) in combined.data.iter().enumerate() {
        let root = (0..3).map(|c| coils.channel(c)[i].norm_sqr()).sum::<f32>().sqrt();
        assert!((z.re - root).abs() < 1e-5 * largest && z.im == 0.0, "voxel {i}: {z}, {root}");
    }
    let help = dir.ok("fhd --help");
    for words in ["root of their sum of squares", "--combine none"] {
        assert!(help.split_whitespace().collect::<Vec<_>>().join(" ").contains(words), "{help}");
    }
}

#[test]
fn repeated_options_are_errors() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 16,16 --shots 4 -o scan.h5");
    for line in [
        "grid scan.h5 --tolerance 1e-3 --tolerance 1e-4 -o x.h5",
        "grid scan.h5 -o x.h5 -o x.h5",
        "cg scan.h5 --no-maps --no-maps -o x.h5",
        "compare scan.h5 scan.h5 --scale best --scale none",
        "simulate --matrix 16,16 --matrix 8,8 -o x.h5",
    ] {
        dir.fails(2, line, &["cannot be used multiple times"]);
    }
}

/// The field map of a simulated scan is written, from --off-resonance and from --field-map.
#[test]
fn field_map_of_a_simulated_scan_is_written() {
    let dir = TempDir::new();
    let simulate = "simulate --matrix 24,20 --shots 8 --dwell 5";
    dir.ok(&format!("{simulate} --off-resonance 40 --write-field-map first.h5 -o scan.h5"));
    dir.ok(&format!("{simulate} --field-map first.h5 --write-field-map again.cfl -o scan.h5"));
    let (first, again) = (read_images(dir.path("first.h5")).remove(0), read_images(dir.path("again.cfl")).remove(0));
    assert_eq!((first.dims, &first.data), (again.dims, &again.data));
    assert!(first.data.iter().any(|z| z.re.abs() > 10.0));
    let words = &["--write-field-map", "give --off-resonance or --field-map"];
    dir.fails(1, "simulate --matrix 24,20 --write-field-map x2.h5 -o s2.h5", words);
}

/// The phase between the echoes of a simulated scan is that of the field map, 2 pi f dt.
#[test]
fn echoes_have_the_phase_of_the_field() {
    let dir = TempDir::new();
    let simulate = "simulate --matrix 32,32 --off-resonance 60 --dwell 1 --write-field-map field.h5";
    dir.ok(&format!("{simulate} --echo-times 0.00492,0.00738 -o echoes.h5"));
    dir.ok("grid echoes.h5 --combine none -o images.h5");
    let (images, field) = (read_images(dir.path("images.h5")), read_images(dir.path("field.h5")).remove(0));
    assert_eq!(images.len(), 2);
    assert_eq!(images.iter().map(|i| i.index.contrast).collect::<Vec<_>>(), [0, 1]);
    let largest = images[0].data.iter().map(|z| z.norm()).fold(0.0, f32::max);
    let mut errors = Vec::new();
    for ((a, b), f) in images[0].data.iter().zip(&images[1].data).zip(&field.data) {
        if a.norm() > 0.3 * largest {
            let turn = (a.conj() * b).arg() / std::f32::consts::TAU;
            errors.push((turn + f.re * 0.00246).abs());
        }
    }
    errors.sort_by(f32::total_cmp);
    // Voxels at the edges of the object mix different fields.
    let [median, most] = [errors.len() / 2, errors.len() * 9 / 10].map(|i| errors[i]);
    assert!(errors.len() > 50 && median < 0.01 && most < 0.05, "{} voxels: {median} {most} turns", errors.len());
    dir.ok("fieldmap echoes.h5 -o found.h5");
    for (options, words) in [
        ("--echo-times 0.001,0.002", "goes with a map"),
        ("--off-resonance 50 --dwell 5 --echo-times nan", "not a number of seconds"),
    ] {
        dir.fails(1, &format!("simulate --matrix 16,16 {options} -o no.h5"), &[words]);
    }
    let bart = "simulate --matrix 16,16 --off-resonance 50 --dwell 5 --echo-times 0.001,0.002 -o no.cfl";
    dir.fails(1, bart, &["--echo-times", "BART"]);
}
