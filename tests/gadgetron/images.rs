//! Images of the gadgets compared with those of the program.

use std::fs;
use std::path::PathBuf;

use super::common::{root, run, say};
use super::harness::{errors, warnings, Gadgetron};

/// Compares images with those of the program, for all methods.
pub fn images_equal_the_programs(g: &Gadgetron) {
    g.recon("simulate --matrix 96,96 --trajectory radial --coils 3 --snr 100 --weights -o radial.h5");
    g.recon("simulate --matrix 96,80 --trajectory spiral --coils 4 --snr 100 -o spiral.h5");
    let data = std::env::var_os("RECON_DATA_DIR").map_or(root().join("../shared/data"), PathBuf::from);
    let mut files = vec!["radial", "spiral"];
    match fs::copy(data.join("brain_8ch_radial96.h5"), g.file("brain.h5")) {
        Ok(_) => files.push("brain"),
        Err(_) => say("skipped: the in-vivo brain in a real Gadgetron (set RECON_DATA_DIR)"),
    }
    for file in files {
        let input = format!("{file}.h5");
        let log = g.stream(&input, &g.chain("recon_grid.xml", &[]), "grid.h5");
        g.recon(&format!("grid {input} -o truth.h5"));
        g.assert_same("grid.h5", "truth.h5", 1, &log);
        let log = g.stream(&input, &g.chain("recon_cg.xml", &[]), "cg.h5");
        g.recon(&format!("cg {input} -o truth.h5"));
        g.assert_same("cg.h5", "truth.h5", 1, &log);
        let log = g.stream(&input, &g.chain("recon_fbp.xml", &[]), "fbp.h5");
        match file {
            "spiral" => assert!(errors(&log).len() == 1 && log.contains("2D radial data"), "{log}"),
            _ => {
                g.recon(&format!("fbp {input} --filter shepp-logan -o truth.h5"));
                g.assert_same("fbp.h5", "truth.h5", 1, &log);
            }
        }
        let log = g.stream(&input, &g.chain_of("recon_grid.xml", "ReconFHdGadget", &[]), "fhd.h5");
        g.recon(&format!("fhd {input} -o truth.h5"));
        g.assert_same("fhd.h5", "truth.h5", 1, &log);
    }
    // Coil maps from calibration acquisitions. Here all acquisitions are flagged as such.
    g.alter("radial.h5", "calibrated.h5", "calibration");
    g.recon("cg radial.h5 -o truth.h5");
    for chain in ["recon_cg.xml", "recon_3d.xml"] {
        let log = g.stream("calibrated.h5", &g.chain(chain, &[("coil_maps", "reference")]), "cg.h5");
        g.assert_same("cg.h5", "truth.h5", 1, &log);
        let log = g.stream("radial.h5", &g.chain(chain, &[("coil_maps", "reference")]), "cg.h5");
        assert!(
            errors(&log).len() == 1
                && log.contains("coil_maps is reference, but the data have no calibration acquisitions"),
            "{log}"
        );
    }
    // A prior, weights in the data term, and one image per coil.
    let chain = g.chain(
        "recon_cg.xml",
        &[("prior", "differences"), ("lambda", "0.01"), ("iterations", "5"), ("weighted", "true")],
    );
    let log = g.stream("radial.h5", &chain, "cg.h5");
    g.recon("cg radial.h5 --prior differences --lambda 0.01 --iterations 5 --weighted -o truth.h5");
    g.assert_same("cg.h5", "truth.h5", 1, &log);
    let log = g.stream("radial.h5", &g.chain("recon_grid.xml", &[("output", "coils")]), "coils.h5");
    g.recon("grid radial.h5 --combine none -o truth.h5");
    g.assert_same("coils.h5", "truth.h5", 3, &log);
}

/// Compares whitening by noise acquisitions with the program.
pub fn noise(g: &Gadgetron) {
    g.alter("spiral.h5", "noisy.h5", "noise 20");
    for (chain, program) in [("recon_grid.xml", "grid"), ("recon_cg.xml", "cg"), ("recon_3d.xml", "cg")] {
        let log = g.stream("noisy.h5", &g.chain(chain, &[]), "white.h5");
        g.recon(&format!("{program} noisy.h5 -o truth.h5"));
        // Rounding of whitened data is amplified in coil maps in regions of noise only.
        let max_error = if program == "grid" { 2e-5 } else { 5e-2 };
        let percent = g.errors("white.h5", "truth.h5", "");
        assert!(percent.len() == 1 && percent[0] < max_error, "{program}: {percent:?} percent\n{log}");
        assert!(log.contains("whitened by 5120 samples of noise of 4 coils; variance scaled by 0.6250"), "{log}");
        assert!(
            log.contains("images are in units of the noise's standard deviation") && errors(&log).is_empty(),
            "{log}"
        );
        assert_eq!(warnings(&log).len(), 1, "{log}");
        // Whitening changes the image, and can be switched off.
        let plain = fs::read_to_string(g.chain(chain, &[])).unwrap();
        fs::write(g.file("plain.xml"), plain.replace("\"whiten\" value=\"auto\"", "\"whiten\" value=\"none\""))
            .unwrap();
        let log = g.stream("noisy.h5", &g.file("plain.xml"), "plain.h5");
        g.recon(&format!("{program} noisy.h5 --whiten none -o truth.h5"));
        g.assert_same("plain.h5", "truth.h5", 1, &log);
        assert!(log.contains("property whiten is none: 20 noise acquisitions have no effect"), "{log}");
        assert!(g.errors("white.h5", "plain.h5", "")[0] > 50.0, "{log}");
    }
    // Noise that the header names and that is missing: one warning, of the first gadget only.
    g.alter("spiral.h5", "named.h5", "names-noise");
    for (chain, gadget) in [("recon_grid.xml", "ReconNoiseGadget"), ("recon_scanner.xml", "ReconGridGadget")] {
        let log = g.stream("named.h5", &g.chain(chain, &[]), "named-images.h5");
        let lines = warnings(&log);
        assert!(lines.len() == 1 && lines[0].contains(gadget) && lines[0].contains("45_6"), "{log}");
        assert_eq!(g.count("named-images.h5"), 1, "{log}");
    }
    // Noise after the data has no effect, with a warning.
    g.alter("spiral.h5", "late.h5", "late-noise 20");
    let log = g.stream("late.h5", &g.chain("recon_grid.xml", &[]), "late-images.h5");
    g.recon("grid late.h5 --whiten none -o truth.h5");
    g.assert_same("late-images.h5", "truth.h5", 1, &log);
    let lines = warnings(&log);
    assert!(lines.len() == 1 && lines[0].contains("20 noise acquisitions came after the first data"), "{log}");
}

/// Sends a scanner's stream directly to a gadget: without stored trajectories, with noise, repetitions and slices.
/// Images have the same bytes as those of the program.
pub fn scanner_streams(g: &Gadgetron) {
    // Chains of the same name share a file.
    let float = || g.chain("recon_scanner.xml", &[("integers", "false")]);
    for (scan, change) in [
        ("--matrix 96,80 --trajectory cartesian", "noise 20"),
        ("--matrix 96,96 --trajectory golden-angle --shots 89", "noise 20"),
        ("--matrix 64,64 --trajectory radial", "repetitions 3"),
        ("--matrix 64,64,8 --trajectory stack-of-stars", "slices 2"),
        ("--matrix 32,32 --trajectory spiral --shots 4 --samples 1200", "spiral-header"),
    ] {
        let without = if change == "spiral-header" { "" } else { "--no-trajectory" };
        g.recon(&format!("simulate {scan} --coils 3 --snr 50 {without} -o plain.h5"));
        g.alter("plain.h5", "raw.h5", change);
        g.recon("grid raw.h5 -o truth.h5");
        let log = g.stream("raw.h5", &float(), "float.h5");
        let found = g.errors("float.h5", "truth.h5", "");
        assert!(!found.is_empty() && found.iter().all(|&e| e == 0.0), "{scan}: {found:?} percent\n{log}");
        assert!(errors(&log).is_empty(), "{scan}: {log}");
        assert!(scan.contains("cartesian") || log.contains("trajectory from the header"), "{scan}: {log}");
        // 16 bits, with one factor for all images of an encoding.
        let log = g.stream("raw.h5", &g.chain("recon_scanner.xml", &[]), "integers.h5");
        let rounded = g.errors("integers.h5", "truth.h5", "--scale best");
        assert!(rounded.len() == found.len() && rounded.iter().all(|&e| e < 0.1), "{scan}: {rounded:?}\n{log}");
        let stream = fs::read(g.file("integers.h5.mrd")).unwrap();
        let has = |text: &[u8]| stream.windows(text.len()).any(|bytes| bytes == text);
        assert!(has(b"recon_scale") && has(b"GADGETRON_ScaleRatio"), "{scan}: {log}");
    }
    // An option that the header leaves open is an error that names it.
    g.recon("simulate --matrix 64,64 --trajectory radial --no-trajectory -o plain.h5");
    g.alter("plain.h5", "open.h5", "no-limits");
    let log = g.stream("open.h5", &float(), "none.h5");
    assert!(errors(&log).len() == 1 && log.contains("spoke_count") && g.count("none.h5") == 0, "{log}");
    // Acquisitions of an image that was sent are refused.
    g.recon("simulate --matrix 64,64 --trajectory golden-angle --shots 40 --no-trajectory -o plain.h5");
    g.alter("plain.h5", "interleaved.h5", "interleaved 2");
    let log = g.stream("interleaved.h5", &g.chain("recon_scanner.xml", &[("complete", "slice")]), "none.h5");
    assert!(errors(&log).iter().any(|l| l.contains("image that is already complete")), "{log}");
}

/// Reconstructs volumes from a bucket and from a buffer.
pub fn volumes(g: &Gadgetron) {
    g.recon("simulate --matrix 32,32,32 --trajectory kooshball --shots 800 --coils 2 -o koosh.h5");
    let log = g.stream("koosh.h5", &g.chain("recon_3d.xml", &[]), "volume.h5");
    g.recon("cg koosh.h5 -o truth.h5");
    g.assert_same("volume.h5", "truth.h5", 1, &log);
    // From a buffer.
    let log = g.stream("koosh.h5", &g.chain("recon_grid.xml", &[]), "volume.h5");
    g.recon("grid koosh.h5 -o truth.h5");
    g.assert_same("volume.h5", "truth.h5", 1, &log);
}

/// Compares images whose reconSpace differs from encodedSpace with the program: they are cropped, padded with zeros, or
/// oversampled. They have the same bits as those of the program. For CG the program writes complex voxels and the
/// gadget magnitudes, which are rounded.
pub fn matrices(g: &Gadgetron) {
    let mut files = vec![
        ("flat", "cropped", "60x96x1"),
        ("flat", "cropped", "48x60x1"),
        ("flat", "filled", "192x160x1"),
        ("flat", "filled", "64x48x1"),
        ("flat", "oversampled", ""),
        ("deep", "cropped", "20x32x32"),
        ("deep", "cropped", "16x20x24"),
        ("deep", "filled", "40x48x32"),
        ("deep", "oversampled", ""),
    ];
    g.recon("simulate --matrix 96,96 --trajectory radial --shots 60 --coils 3 --snr 100 -o flat.h5");
    g.recon("simulate --matrix 32,32,32 --trajectory kooshball --shots 800 --coils 2 -o deep.h5");
    if g.file("brain.h5").exists() {
        files.push(("brain", "cropped", "128x160x1"));
    }
    for (file, what, size) in files {
        g.alter(&format!("{file}.h5"), "matrix.h5", &format!("{what} {size}"));
        for (gadget, program, max_error) in
            [("ReconGridGadget", "grid", 0.0), ("ReconFHdGadget", "fhd", 0.0), ("ReconCGGadget", "cg", 2e-5)]
        {
            let log = g.stream("matrix.h5", &g.chain_of("recon_grid.xml", gadget, &[]), "images.h5");
            g.recon(&format!("{program} matrix.h5 -o truth.h5"));
            let found = g.errors("images.h5", "truth.h5", "");
            assert!(
                found.len() == 1 && found[0] <= max_error,
                "{file} {what} {size}, {program}: {found:?} percent\n{log}"
            );
            assert!(warnings(&log).is_empty() && errors(&log).is_empty(), "{log}");
        }
    }
}

/// Checks that headers of images have the position and orientation of the acquisitions, bit for bit, as with
/// Gadgetron's own gadget. Viewers rotate images by them.
pub fn orientation(g: &Gadgetron) {
    g.alter("flat.h5", "slices.h5", "slices 3");
    g.alter("slices.h5", "oblique.h5", "oblique");
    let headers = |images: &str, series: &str| run(g.command(g.build.join("headers")).args([images, series]));
    let chain = g.chain("recon_grid.xml", &[]);
    let log = g.stream("oblique.h5", &chain, "ours.h5");
    assert_eq!(g.count("ours.h5"), 3, "{log}");
    let text = fs::read_to_string(g.chain_of("recon_grid.xml", "SimpleReconGadget", &[])).unwrap();
    let ours = g.build.join("recon_gadgetron");
    // The gadget that reconstructs is replaced by Gadgetron's, which sends arrays of images.
    let (head, tail) = text.split_once("<name>Recon</name>").unwrap();
    let tail = tail.replacen(&format!("<dll>{}</dll>", ours.display()), "<dll>gadgetron_mricore</dll>", 1);
    let split = "</gadget>\n<gadget><name>Split</name><dll>gadgetron_mricore</dll>\
                 <classname>ImageArraySplitGadget</classname></gadget>";
    let text = format!("{head}<name>Recon</name>{}", tail.replacen("</gadget>", split, 1));
    fs::write(&chain, text).unwrap();
    let log = g.stream("oblique.h5", &chain, "theirs.h5");
    assert_eq!(g.count("theirs.h5"), 3, "{log}");
    let (ours, theirs) = (headers("ours.h5", "1"), headers("theirs.h5", "0"));
    assert_eq!(ours, theirs);
    assert!(ours.lines().count() == 3 && ours.contains("read_dir 0x1.6a09e6p-1 -0x1.6a09e6p-1 0x0p+0"), "{ours}");
}

/// Compares images of several repetitions and slices with the program, also with missing shots.
pub fn repetitions_and_missing_shots(g: &Gadgetron) {
    g.alter("radial.h5", "many.h5", "repetitions 5");
    let log = g.stream("many.h5", &g.chain("recon_cg.xml", &[]), "cg.h5");
    // The gadget uses the maps of the first repetition for all. Repetitions differ by a factor, which changes maps only
    // by rounding. Maps amplify rounding in regions of noise only: 0.001 to 0.015 % on a Zen 5.
    g.recon("cg many.h5 -o truth.h5");
    let percent = g.errors("cg.h5", "truth.h5", "");
    assert!(percent.len() == 5 && percent.iter().all(|&e| e < 5e-2), "{percent:?}\n{log}");
    let log = g.stream("many.h5", &g.chain("recon_grid.xml", &[]), "grid.h5");
    g.recon("grid many.h5 -o truth.h5");
    g.assert_same("grid.h5", "truth.h5", 5, &log);

    // A repetition ended early. The empty rows of the buffer do not count as measured zeros.
    g.alter("many.h5", "short.h5", "missing 61");
    for chain in ["recon_grid.xml", "recon_cg.xml"] {
        let log = g.stream("short.h5", &g.chain(chain, &[("coil_maps", "none")]), "short-images.h5");
        let program = if chain == "recon_grid.xml" { "grid" } else { "cg --no-maps" };
        g.recon(&format!("{program} short.h5 -o truth.h5"));
        g.assert_same("short-images.h5", "truth.h5", 5, &log);
        assert!(log.contains("61 shots"), "{log}");
    }
    // All slices in one buffer, then one slice without shots.
    g.alter("spiral.h5", "slices.h5", "slices 3");
    g.alter("slices.h5", "gap.h5", "without-slice 1");
    let chain = g.chain("recon_cg.xml", &[]);
    let text = fs::read_to_string(&chain).unwrap();
    let text = text.replace("\"split_slices\" value=\"true\"", "\"split_slices\" value=\"false\"");
    fs::write(&chain, text.replace("\"sorting_dimension\" value=\"slice\"", "\"sorting_dimension\" value=\"none\""))
        .unwrap();
    for (input, count) in [("slices.h5", 3), ("gap.h5", 2)] {
        let log = g.stream(input, &chain, "cg.h5");
        g.recon(&format!("cg {input} -o truth.h5"));
        g.assert_same("cg.h5", "truth.h5", count, &log);
        assert!(errors(&log).is_empty(), "{log}");
    }
    // Without a buffer, shots may have any length.
    for samples in [40, 300] {
        g.alter("many.h5", "lengths.h5", &format!("samples {samples}"));
        let log = g.stream("lengths.h5", &g.chain_of("recon_3d.xml", "ReconGridGadget", &[]), "lengths-images.h5");
        let found = g.errors("lengths-images.h5", "grid.h5", "");
        assert!(found.len() == 5 && found[0] == 0.0 && found[1] > 0.0 && found[1] < 20.0, "{found:?}\n{log}");
    }
    g.alter("many.h5", "lengths.h5", "samples 40");
    let log = g.stream("lengths.h5", &g.chain("recon_grid.xml", &[]), "lengths-images.h5");
    let found = g.errors("lengths-images.h5", "grid.h5", "");
    assert!(found.len() == 5 && found[0] == 0.0 && found[1] > 0.0 && found[1] < 20.0, "{found:?}\n{log}");
}

/// Reconstructs a golden-angle series with a sliding window, with and without warm start.
pub fn windows(g: &Gadgetron) {
    g.recon("simulate --matrix 64,64 --trajectory golden-angle --shots 210 --coils 4 -o golden.h5");
    let log = g.stream("golden.h5", &g.chain("recon_realtime.xml", &[]), "frames.h5");
    g.recon("cg golden.h5 -o truth.h5");
    let percent = g.errors("frames.h5", "truth.h5", "--scale best");
    // Ten images: the first has 21 spokes, the second 42, the others 63.
    assert!(percent.len() == 10 && percent[2..].iter().all(|&e| e < percent[0] && e < 25.0), "{percent:?}\n{log}");
    assert!(log.contains(" 63 shots") && log.contains("warm_start=true"), "{log}");
    // With few iterations, images are better if they start from the previous image.
    let [warm, cold] = ["true", "false"].map(|start| {
        let chain = g.chain("recon_realtime.xml", &[("iterations", "2"), ("warm_start", start)]);
        let log = g.stream("golden.h5", &chain, "frames.h5");
        let percent = g.errors("frames.h5", "truth.h5", "--scale best");
        assert!(percent.len() == 10, "{percent:?}\n{log}");
        percent
    });
    assert!((3..10).all(|i| warm[i] < cold[i]), "{warm:?} {cold:?}");
}

/// Runs gridding and CG-SENSE of the same data at the same time in one process.
pub fn branches(g: &Gadgetron) {
    let stream_of = |name: &str, properties: &[(&str, &str)]| {
        let text = fs::read_to_string(g.chain(name, properties)).unwrap();
        text.split_once("<stream>").unwrap().1.split_once("</stream>").unwrap().0.to_owned()
    };
    let readers = fs::read_to_string(g.chain("recon_cg.xml", &[])).unwrap();
    let readers = readers.split_once("<stream>").unwrap().0.to_owned();
    let chain = format!(
        "{readers}<stream><parallel>\n<branch><dll>gadgetron_core_parallel</dll>\
         <classname>AcquisitionFanout</classname></branch>\n\
         <stream key=\"gridding\">{}</stream>\n<stream key=\"cg\">{}</stream>\n\
         <merge><dll>gadgetron_core_parallel</dll><classname>UnorderedMerge</classname></merge>\n</parallel></stream>\n\
         </configuration>\n",
        stream_of("recon_grid.xml", &[]),
        stream_of("recon_cg.xml", &[])
    );
    fs::write(g.file("parallel.xml"), chain).unwrap();
    let log = g.stream("many.h5", &g.file("parallel.xml"), "both.h5");
    assert_eq!(g.count("both.h5"), 10, "{log}");
    for program in ["grid", "cg"] {
        // The truth is the first repetition, which equals one of the images.
        g.recon(&format!("{program} radial.h5 -o truth.h5"));
        let found = g.errors("both.h5", "truth.h5", "");
        assert_eq!(found.iter().filter(|&&e| e < 2e-5).count(), 1, "{found:?}\n{log}");
    }
}
