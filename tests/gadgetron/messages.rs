//! Warnings and errors in the log.

use std::fs;

use super::common::say;
use super::harness::{comma_locale, errors, warnings, Gadgetron};

/// Checks that the log contains the cause of a problem.
pub fn causes(g: &Gadgetron) {
    // N_dimension = slice gives frames without shots.
    g.alter("radial.h5", "three-slices.h5", "slices 3");
    let text = fs::read_to_string(g.chain("recon_grid.xml", &[])).unwrap();
    let text = text.replace("\"N_dimension\" value=\"contrast\"", "\"N_dimension\" value=\"slice\"");
    let unsorted = text.replace("\"sorting_dimension\" value=\"slice\"", "\"sorting_dimension\" value=\"none\"");
    fs::write(g.file("slices.xml"), unsorted).unwrap();
    let log = g.stream("three-slices.h5", &g.file("slices.xml"), "slices-images.h5");
    assert!(g.count("slices-images.h5") == 3 && errors(&log).is_empty(), "{log}");
    assert!(
        log.contains("Is property N_dimension of BucketToBufferGadget slice? It contradicts split_slices"),
        "{log}"
    );
    // A frame with a missing coil restarts a sliding window.
    g.alter("radial.h5", "series-of-5.h5", "repetitions 5");
    g.alter("series-of-5.h5", "coil.h5", "missing-coil");
    let log = g.stream("coil.h5", &g.chain("recon_grid.xml", &[("window", "3")]), "coil-images.h5");
    assert!(g.count("coil-images.h5") == 5 && errors(&log).is_empty(), "{log}");
    assert!(log.contains("the sliding window starts again: slice 0, repetition 1 has 2 coils"), "{log}");
    // Impossible sizes in the XML header.
    for (what, expected) in [
        ("negative-matrix", "matrixSize of <encodedSpace> along y is 65440: it must be from 1 to 32767"),
        ("field-of-view -96", "fieldOfView_mm of <encodedSpace> along x is -96"),
        ("field-of-view nan", "fieldOfView_mm of <encodedSpace> along x is NaN"),
    ] {
        g.alter("radial.h5", "space.h5", what);
        for chain in ["recon_grid.xml", "recon_3d.xml"] {
            let log = g.stream("space.h5", &g.chain(chain, &[]), "none.h5");
            assert!(errors(&log).len() == 1 && log.contains(expected), "{what}: {log}");
            assert_eq!(g.count("none.h5"), 0, "{log}");
        }
    }
}

/// Checks that measurements that were cut short, invalid counters, and shots of zeros give images and one warning.
pub fn incomplete_measurements(g: &Gadgetron) {
    let shots = 60;
    g.recon(&format!("simulate --matrix 64,64 --trajectory spiral --shots {shots} --coils 2 --snr 100 -o whole.h5"));
    g.alter("whole.h5", "series.h5", "repetitions 3");
    for (what, chain, images, expected) in [
        // The second repetition is cut short, in a buffer and in buckets.
        ("missing 41", "recon_grid.xml", 3, &["41 of the 60 shots", "step 1 goes from 0 to 40", "cut short"][..]),
        ("missing 41", "recon_3d.xml", 3, &["41 of the 60 shots", "cut short"]),
        ("lost 30", "recon_grid.xml", 3, &["59 of the 60 shots", "were lost"]),
        ("same-counter 30", "recon_grid.xml", 3, &["59 of the 60 shots", "counters of other images"]),
        ("counters", "recon_grid.xml", 3, &["1 of the 60 shots", "check kspace_encode_step_1"]),
        ("zeros 50", "recon_grid.xml", 3, &["10 of the 60 acquisitions of an image are zero", "count as measured"]),
        ("divided 16", "recon_grid.xml", 3, &["|k| on axis 0 is at most 0.03", "divided by the image's size twice"]),
    ] {
        g.alter("series.h5", "incomplete.h5", what);
        let log = g.stream("incomplete.h5", &g.chain_of(chain, "ReconGridGadget", &[]), "incomplete-images.h5");
        let lines = warnings(&log);
        assert!(lines.len() == 1 && lines[0].contains("ReconGridGadget: slice 0"), "{what}:\n{log}");
        expected.iter().for_each(|part| assert!(lines[0].contains(part), "{what}: no {part:?} in {}", lines[0]));
        assert!(errors(&log).is_empty() && g.count("incomplete-images.h5") == images, "{what}:\n{log}");
    }
    // Without limits in the header, an image is compared with the previous images.
    g.alter("series.h5", "short.h5", "missing 41");
    g.alter("short.h5", "unlimited.h5", "no-limits");
    for chain in ["recon_grid.xml", "recon_3d.xml"] {
        let log = g.stream("unlimited.h5", &g.chain_of(chain, "ReconGridGadget", &[]), "incomplete-images.h5");
        let lines = warnings(&log);
        assert!(lines.len() == 1 && lines[0].contains("41 shots, but a previous image had 60"), "{chain}:\n{log}");
        assert!(errors(&log).is_empty() && g.count("incomplete-images.h5") == 3, "{chain}:\n{log}");
    }
    // In buckets, counters do not matter. Shots that are missing by design cause no warning.
    for (what, chain) in
        [("counters", "recon_3d.xml"), ("same-counter 30", "recon_3d.xml"), ("every 3", "recon_grid.xml")]
    {
        g.alter("series.h5", "fine.h5", what);
        let log = g.stream("fine.h5", &g.chain_of(chain, "ReconGridGadget", &[]), "fine-images.h5");
        assert!(warnings(&log).is_empty() && errors(&log).is_empty(), "{what}:\n{log}");
        g.recon("grid fine.h5 -o truth.h5");
        g.assert_same("fine-images.h5", "truth.h5", 3, &log);
    }
    // The warning is logged once, and the count at the end.
    g.alter("whole.h5", "short.h5", "missing 20");
    g.alter("short.h5", "short-series.h5", "repetitions 4");
    let log = g.stream("short-series.h5", &g.chain("recon_grid.xml", &[]), "incomplete-images.h5");
    let lines = warnings(&log);
    assert!(lines.len() == 2 && lines[0].contains("20 of the 60 shots"), "{log}");
    assert!(lines[1].contains("4 times in all on this connection, but logged only once"), "{log}");
}

/// Checks that data that do not show the object give one warning: a single spoke, a trajectory of zeros.
pub fn useless_samples(g: &Gadgetron) {
    g.alter("flat.h5", "series.h5", "repetitions 3");
    for (what, expected) in
        [("counters", "lie on one line of k-space"), ("no-trajectory", "lie at one point of k-space")]
    {
        g.alter("series.h5", "useless.h5", what);
        let log = g.stream("useless.h5", &g.chain("recon_grid.xml", &[]), "useless-images.h5");
        assert!(
            warnings(&log).iter().any(|line| line.contains("slice 0, repetition 1: ") && line.contains(expected)),
            "{what}:\n{log}"
        );
        assert!(errors(&log).is_empty() && g.count("useless-images.h5") == 3, "{what}:\n{log}");
    }
}

/// Checks that invalid and unknown properties are reported as errors.
pub fn properties(g: &Gadgetron) {
    let log = g.stream("radial.h5", &g.chain("recon_cg.xml", &[("iteratons", "5")]), "none.h5");
    let lines = errors(&log);
    assert!(lines.len() == 1 && lines[0].contains("ReconCGGadget") && lines[0].contains("iteratons"), "{log}");
    assert!(log.contains("iterations=12 (default)") && log.contains("threads=0 (default)"), "{log}");
    for (key, value, expected) in [
        ("output", "magnitud", "magnitude, complex or coils"),
        ("iterations", "12x", "whole number"),
        ("tolerance", "-1", "from 0 to 1"),
        ("device", "gpu", "auto, cpu, cuda"),
        ("lambda", "1", "set it to identity or differences"),
        ("image_series", "65536", "from 0 to 65535"),
        // Properties that make all images impossible are refused once, before any data arrive.
        ("device", "cuda:99", "device cpu"),
        ("tolerance", "1e-12", "window"),
        ("width", "17", "2 to 16"),
        ("width", "4.5", "whole number"),
        ("oversampling", "1.1", "1.25 to 2.5"),
        ("threads", "5000", "at most 4096"),
    ] {
        let log = g.stream("radial.h5", &g.chain("recon_cg.xml", &[(key, value)]), "none.h5");
        assert!(log.contains(&format!("property {key} is ")) && log.contains(expected), "{key}: {log}");
        assert_eq!(g.count("none.h5"), 0, "{log}");
        assert_eq!(log.matches(&format!("property {key} is ")).count(), 1, "{key}: {log}");
    }
}

/// Damages the second of three repetitions, which gives one line of the log. The others are reconstructed.
pub fn damaged_files(g: &Gadgetron) {
    g.alter("radial.h5", "three.h5", "repetitions 3");
    g.recon("grid three.h5 -o three-truth.h5");
    for (what, expected) in [
        ("components 0", "no trajectory"),
        ("components 1", "trajectory of 1 dimensions"),
        ("components 5", "trajectory of 5 dimensions"),
        ("one-component-less", "2 trajectory "),
        ("nan", "sample 5: number 0 of its trajectory is nan"),
        ("nan-data", "sample 5: the data are nan"),
        ("outside", "sample 5: coordinate 1 is 3, outside"),
    ] {
        g.alter("three.h5", "lie.h5", what);
        for chain in ["recon_grid.xml", "recon_3d.xml"] {
            let log = g.stream("lie.h5", &g.chain_of(chain, "ReconGridGadget", &[]), "lie-images.h5");
            let lines = errors(&log);
            assert_eq!(lines.len(), 1, "{what}, {chain}:\n{log}");
            let line = lines[0].to_ascii_lowercase();
            assert!(line.contains("recongridgadget: slice 0, repetition 1: "), "{what}: {line}");
            assert!(line.contains(&expected.to_ascii_lowercase()), "{what}: {line}");
            assert_eq!(g.count("lie-images.h5"), 2, "{what}, {chain}");
        }
    }
    g.alter("radial.h5", "lie.h5", "zero-matrix");
    let log = g.stream("lie.h5", &g.chain("recon_grid.xml", &[]), "lie-images.h5");
    assert!(errors(&log).len() == 1 && log.contains("matrixSize of <encodedSpace> along x is 0"), "{log}");
    g.alter("radial.h5", "lie.h5", "huge-matrix");
    let log = g.stream("lie.h5", &g.chain("recon_grid.xml", &[]), "lie-images.h5");
    assert!(errors(&log).len() == 1 && log.contains("Correct the matrices in the XML header"), "{log}");
    g.alter("radial.h5", "lie.h5", "missing 0");
    let log = g.stream("lie.h5", &g.chain("recon_grid.xml", &[]), "lie-images.h5");
    assert!(warnings(&log).iter().any(|l| l.contains("no acquisition, bucket or buffer came")), "{log}");
    // An earlier gadget fails, because a shot is longer than the rows of the buffer. Our gadgets add no error.
    g.alter("radial.h5", "lie.h5", "samples 300");
    let log = g.stream("lie.h5", &g.chain("recon_grid.xml", &[]), "lie-images.h5");
    assert!(errors(&log).iter().any(|l| !l.contains("Recon")), "{log}");
    assert!(!errors(&log).iter().any(|l| l.contains("Recon")), "{log}");
    let lines = warnings(&log);
    assert!(lines.iter().all(|l| l.contains("If the log has an error of another gadget, that is why")), "{log}");
}

/// Checks that a server in a locale with decimal commas makes the same image with the same attributes, and warns.
pub fn locales(g: &Gadgetron) {
    let Some(locales) = comma_locale(&g.folder) else {
        return say("skipped: a real Gadgetron in a locale with decimal commas (install locales)");
    };
    let variables = [("LOCPATH", locales.to_str().unwrap()), ("LC_ALL", "de_DE.UTF-8")];
    let chain = g.chain("recon_grid.xml", &[("tolerance", "0.001"), ("integers", "true")]);
    let log = g.stream("radial.h5", &chain, "truth.h5");
    assert!(errors(&log).is_empty() && warnings(&log).is_empty(), "{log}");
    let log = g.stream_in(&variables, "radial.h5", &chain, "comma.h5");
    g.assert_same("comma.h5", "truth.h5", 1, &log);
    assert!(errors(&log).is_empty(), "{log}");
    assert!(!warnings(&log).is_empty() && warnings(&log).iter().all(|w| w.contains("LC_ALL=C")), "{log}");
    let attributes = |file: &str| {
        let bytes = fs::read(g.file(file)).unwrap();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let start = text.find("<ismrmrdMeta>").unwrap_or_else(|| panic!("no attributes in {file}"));
        text[start..start + text[start..].find("</ismrmrdMeta>").unwrap()].to_owned()
    };
    assert!(attributes("truth.h5").contains("recon_scale"), "{}", attributes("truth.h5"));
    assert_eq!(attributes("comma.h5"), attributes("truth.h5"));
}
