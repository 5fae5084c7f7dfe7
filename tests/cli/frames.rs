//! Frames: sliding windows over the shots of a scan.

use crate::{read_images, with_lock, write_dataset, TempDir};
use std::fs;

fn read_dataset(dir: &TempDir, name: &str) -> crate::io::Dataset {
    with_lock(|| crate::io::tests::read_dataset(dir.path(name))).unwrap()
}

/// Frames have the same bits as images of files with only their shots, for all commands and weights.
#[test]
fn frames_are_images_of_their_shots() {
    let dir = TempDir::new();
    let simulate = "simulate --matrix 32,32 --trajectory golden-angle --shots 40 --samples 64 --coils 3";
    dir.ok(&format!("{simulate} --maps maps.h5 -o plain.h5"));
    dir.ok(&format!("{simulate} --weights -o weighted.h5"));
    for file in ["plain.h5", "weighted.h5"] {
        let whole = read_dataset(&dir, file);
        // The last four shots are not part of any frame.
        for frame in 0..4 {
            let mut part = whole.clone();
            part.scans[0] = whole.scans[0].shots(5 * frame..5 * frame + 21);
            write_dataset(dir.path(&format!("{frame}-{file}")), &part);
        }
    }
    for line in [
        "grid plain.h5",
        "grid plain.h5 --density ramp",
        "grid plain.h5 --density jackson --combine none",
        "grid plain.h5 --density ramp --memory-limit 1G",
        "grid plain.h5 --precision f64 --kspace",
        "grid weighted.h5",
        "grid weighted.h5 --ignore-weights",
        "fbp plain.h5",
        "fhd plain.h5",
        "fhd plain.h5 --maps maps.h5",
        "cg plain.h5 --iterations 3 --maps maps.h5",
        "cg plain.h5 --iterations 3 --maps maps.h5 --weighted",
        "cg weighted.h5 --iterations 3 --no-maps --weighted",
    ] {
        dir.ok(&format!("{line} --frame-shots 21 --frame-step 5 -o frames.h5"));
        let frames = read_images(dir.path("frames.h5"));
        assert_eq!(frames.len(), 4, "{line}");
        for (i, frame) in frames.iter().enumerate() {
            assert_eq!(frame.index.repetition, i as u16, "{line}");
            let of_part = line.replace("plain.h5", &format!("{i}-plain.h5"));
            dir.ok(&format!("--quiet {} -o part.h5", of_part.replace("weighted.h5", &format!("{i}-weighted.h5"))));
            let part = read_images(dir.path("part.h5"));
            assert!(part.len() == 1 && part[0].data == frame.data, "{line}, frame {i}");
        }
        assert_ne!(frames[0].data, frames[1].data, "{line}");
    }
    // Frames are written to all formats. Without a step, frames do not share shots.
    dir.ok("grid plain.h5 --frame-shots 20 -o next.nii");
    dir.ok("grid plain.h5 --frame-shots 20 --frame-step 20 -o same.nii");
    assert_eq!(fs::read(dir.path("next.nii")).unwrap(), fs::read(dir.path("same.nii")).unwrap());
    let volumes: usize = read_images(dir.path("next.nii")).iter().map(|i| i.data.len() / (32 * 32)).sum();
    assert_eq!(volumes, 2);
    dir.ok("--quiet grid plain.h5 --frame-shots 10 --frame-step 15 -o frames.png");
}

/// Each slice has its own frames, and coil maps from all of its shots.
#[test]
fn slices_and_coil_maps() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 32,32 --trajectory golden-angle --shots 60 --coils 4 -o scan.h5");
    let mut dataset = read_dataset(&dir, "scan.h5");
    let mut second = dataset.scans[0].clone();
    second.index.slice = 1;
    second.data.iter_mut().for_each(|z| *z *= 2.0);
    dataset.scans.push(second);
    write_dataset(dir.path("slices.h5"), &dataset);
    dir.ok("cg slices.h5 --frame-shots 30 --frame-step 15 --iterations 12 --report report.json -o frames.h5");
    let frames = read_images(dir.path("frames.h5"));
    let index: Vec<_> = frames.iter().map(|i| (i.index.slice, i.index.repetition)).collect();
    assert_eq!(index, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]);
    let report: serde_json::Value = serde_json::from_slice(&fs::read(dir.path("report.json")).unwrap()).unwrap();
    let reported: Vec<_> = report.as_array().unwrap().iter().map(|r| (&r["slice"], &r["repetition"])).collect();
    assert_eq!(reported.len(), 6);
    assert!(reported.iter().zip(&index).all(|((s, r), i)| **s == i.0 && **r == i.1), "{reported:?}");
    // Twice the signal, the same maps.
    let worst = frames[0].data.iter().zip(&frames[3].data).map(|(a, b)| (a * 2.0 - b).norm()).fold(0.0, f32::max);
    let largest = frames[3].data.iter().map(|z| z.norm()).fold(0.0, f32::max);
    assert!(worst < 1e-3 * largest, "{worst} of {largest}");
    dir.ok("cg scan.h5 --frame-shots 60 --iterations 12 -o all.h5");
    dir.ok("cg scan.h5 --iterations 12 -o whole.h5");
    assert_eq!(read_images(dir.path("all.h5"))[0].data, read_images(dir.path("whole.h5"))[0].data);
}

#[test]
fn a_warm_start_takes_fewer_iterations() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 48,48 --trajectory golden-angle --shots 50 --coils 4 --maps maps.h5 -o scan.h5");
    let line = "cg scan.h5 --maps maps.h5 --frame-shots 34 --frame-step 5 --residual 1e-3 --iterations 100";
    let iterations = |more: &str| -> Vec<u64> {
        dir.ok(&format!("{line} --report report.json -o frames.h5 {more}"));
        let report: serde_json::Value = serde_json::from_slice(&fs::read(dir.path("report.json")).unwrap()).unwrap();
        let images = report.as_array().unwrap().iter().map(|r| &r["images"][0]);
        images
            .map(|image| {
                assert_eq!(image["stop"], "residual");
                image["iterations"].as_u64().unwrap()
            })
            .collect()
    };
    let cold = iterations("");
    let first = read_images(dir.path("frames.h5"));
    let warm = iterations("--warm-start");
    let second = read_images(dir.path("frames.h5"));
    assert_eq!((cold.len(), warm.len()), (4, 4));
    assert!(cold[0] == warm[0] && first[0].data == second[0].data);
    assert!((1..4).all(|i| 2 * warm[i] <= cold[i]), "{cold:?} {warm:?}");
    // The first frame starts from the image of --initial.
    dir.ok("grid scan.h5 -o start.h5");
    let given = iterations("--warm-start --initial start.h5");
    assert!(given[1..] != cold[1..] && given.len() == 4, "{given:?}");
}

#[test]
fn invalid_frames_are_errors() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 16,16 --trajectory golden-angle --shots 20 --coils 2 -o scan.h5");
    dir.ok("simulate --matrix 16,16 --trajectory cartesian -o cartesian.h5");
    dir.ok("simulate --matrix 16,16,4 --trajectory stack-of-stars --shots 6 -o stack.h5");
    let mut dataset = read_dataset(&dir, "scan.h5");
    let mut second = dataset.scans[0].clone();
    second.index.repetition = 1;
    dataset.scans.push(second);
    write_dataset(dir.path("two.h5"), &dataset);
    for command in ["grid", "fbp", "fhd", "cg"] {
        for (line, words) in [
            ("scan.h5 --frame-shots 21", ["--frame-shots is 21", "20 shots"]),
            ("scan.h5 --every 2 --frame-shots 11", ["--frame-shots is 11", "10 shots"]),
            ("scan.h5 --frame-shots 0", ["--frame-shots is 0", "1 shot"]),
            ("scan.h5 --frame-shots 5 --frame-step 0", ["--frame-step is 0", "1 shot"]),
            ("scan.h5 --frame-shots 1", ["the samples of frame 0 lie on one line", "more than 1"]),
            ("two.h5 --frame-shots 5", ["2 repetitions", "--repetition"]),
            ("cartesian.h5 --frame-shots 8", ["ky is constant along each shot", "8 of its 16 values"]),
            ("stack.h5 --frame-shots 6", ["kz is constant along each shot", "of its 4 values"]),
        ] {
            dir.fails(1, &format!("{command} {line} -o x.h5"), &words);
        }
        dir.fails(2, &format!("{command} scan.h5 --frame-step 5 -o x.h5"), &["--frame-shots"]);
    }
    dir.fails(2, "cg scan.h5 --warm-start -o x.h5", &["--frame-shots"]);
    for option in ["--save-q", "--load-q"] {
        dir.fails(1, &format!("cg scan.h5 --frame-shots 10 {option} q.bin -o x.h5"), &[option, "own"]);
    }
    // One repetition is a series of shots. A frame with all partitions is an image.
    dir.ok("--quiet grid two.h5 --repetition 1 --frame-shots 10 -o frames.h5");
    assert_eq!(read_images(dir.path("frames.h5")).len(), 2);
    dir.ok("grid stack.h5 --frame-shots 24 -o frames.h5");
    dir.ok("grid cartesian.h5 --frame-shots 16 -o frames.h5");
    dir.ok("grid cartesian.h5 -o whole.h5");
    assert_eq!(read_images(dir.path("frames.h5"))[0].data, read_images(dir.path("whole.h5"))[0].data);
}
