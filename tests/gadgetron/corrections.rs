//! Corrections of motion and off-resonance.

use std::fs;

use super::common::run;
use super::harness::{errors, warnings, Gadgetron};

/// Checks that the motion of PROPELLER blades is estimated, logged and corrected.
pub fn moved_blades(g: &Gadgetron) {
    let scan = "--trajectory propeller --shots 16 --lines 20 --samples 120 --coils 3 --snr 100";
    g.recon(&format!("simulate --matrix 96,96 {scan} -o still.h5"));
    g.alter("still.h5", "moved.h5", "moved-blades 20");
    let chain = g.chain("recon_propeller.xml", &[]);
    let log = g.stream("still.h5", &chain, "truth.h5");
    assert!(errors(&log).is_empty() && warnings(&log).is_empty(), "{log}");
    // The blades move by 2 and 1 voxels, with a mean of 0.
    let log = g.stream("moved.h5", &chain, "corrected.h5");
    assert!(errors(&log).is_empty() && warnings(&log).is_empty(), "{log}");
    assert!(log.contains("16 blades of 20 lines: turned by up to 0.0"), "{log}");
    assert!(log.contains("moved by up to 2.2") && log.contains("blade 15: turned by"), "{log}");
    let corrected = g.errors("corrected.h5", "truth.h5", "");
    g.recon("grid moved.h5 -o gridded.h5");
    let gridded = g.errors("gridded.h5", "truth.h5", "");
    assert!(corrected.len() == 1 && corrected[0] < 2.0 && gridded[0] > 20.0, "{corrected:?}, {gridded:?}\n{log}");

    let log = g.stream("radial.h5", &chain, "none.h5");
    assert!(errors(&log).len() == 1 && log.contains("PROPELLER blades are"), "{log}");
    let log = g.stream("moved.h5", &g.chain("recon_propeller.xml", &[("coil_maps", "data")]), "none.h5");
    assert!(!errors(&log).is_empty() && log.contains("coil_maps is set, but phase is smooth"), "{log}");
    let constant =
        g.chain("recon_propeller.xml", &[("coil_maps", "data"), ("phase", "constant"), ("rotation", "false")]);
    let log = g.stream("moved.h5", &constant, "constant.h5");
    assert!(errors(&log).is_empty() && log.contains("turned by up to 0.00 degrees"), "{log}");
    assert_eq!(g.count("constant.h5"), 1, "{log}");
}

/// Reconstructs an object with one off-resonance frequency, with a map from a file.
pub fn off_resonance(g: &Gadgetron) {
    g.recon("simulate --matrix 96,96 --trajectory spiral --coils 4 --snr 1000 -o on.h5");
    g.alter("on.h5", "off.h5", "off-resonance 90");
    g.alter("on.h5", "map.h5", "field-map 90");
    let map = g.file("map.h5");
    let map = map.to_str().unwrap();
    // Coil maps from the data are estimated without the field map, and differ slightly between the two files.
    let no_maps = ("coil_maps", "none");
    for (program, gadget) in [("grid", "ReconGridGadget"), ("cg --no-maps", "ReconCGGadget")] {
        g.recon(&format!("{program} on.h5 -o truth.h5"));
        let log = g.stream("off.h5", &g.chain_of("recon_grid.xml", gadget, &[no_maps]), "without.h5");
        let without = g.errors("without.h5", "truth.h5", "");
        let log_with =
            g.stream("off.h5", &g.chain_of("recon_grid.xml", gadget, &[no_maps, ("field_map", map)]), "with.h5");
        let with = g.errors("with.h5", "truth.h5", "");
        assert!(without.len() == 1 && without[0] > 10.0, "{program}: {without:?} percent\n{log}");
        assert!(with.len() == 1 && with[0] < 0.5, "{program}: {with:?} percent\n{log_with}");
    }
    // The chain of gadgetron/config, and two slices with one map each.
    g.alter("off.h5", "two.h5", "slices 2");
    g.alter("two.h5", "two-maps.h5", "field-map 90");
    let two_maps = g.file("two-maps.h5");
    let two_maps = ("field_map", two_maps.to_str().unwrap());
    let log = g.stream("two.h5", &g.chain("recon_off_resonance.xml", &[no_maps, two_maps]), "with.h5");
    let found = g.errors("with.h5", "truth.h5", "--scale best");
    assert!(found.len() == 2 && found.iter().all(|&e| e < 0.5), "{found:?} percent\n{log}");
    // With coil maps from the data, the error is still much smaller than without the map.
    g.recon("cg on.h5 -o truth-maps.h5");
    let log = g.stream("two.h5", &g.chain("recon_off_resonance.xml", &[two_maps]), "with.h5");
    let found = g.errors("with.h5", "truth-maps.h5", "--scale best");
    assert!(found.len() == 2 && found.iter().all(|&e| e < 10.0), "{found:?} percent\n{log}");
    // A single map is used for both slices. A slice without a map gives an error, and the other images are made.
    let log = g.stream("two.h5", &g.chain("recon_off_resonance.xml", &[("field_map", map)]), "with.h5");
    assert_eq!((g.count("with.h5"), errors(&log).len()), (2, 0), "{log}");
    g.alter("off.h5", "three.h5", "slices 3");
    let maps_of_two = g.chain("recon_off_resonance.xml", &[two_maps]);
    let log = g.stream("three.h5", &maps_of_two, "with.h5");
    assert!(errors(&log).len() == 1 && log.contains("maps of 2 slices, but no map of slice 2"), "{log}");
    assert_eq!(g.count("with.h5"), 2, "{log}");
    for (file, properties, expected) in [
        ("off.h5", [("field_map", "not.h5")], "no such file"),
        ("off.h5", [("field_map", "off.h5")], "map_series"),
        ("off.h5", [("decay_map", "images")], "recon_map = decay_map came for slice 0"),
        ("untimed.h5", [("field_map", map)], "sample_time_us is 0"),
    ] {
        g.alter("off.h5", "untimed.h5", "no-sample-time");
        let log = g.stream(file, &g.chain("recon_cg.xml", &properties), "none.h5");
        assert!(errors(&log).len() == 1 && log.contains(expected), "{properties:?}: {log}");
        assert_eq!(g.count("none.h5"), 0, "{log}");
    }
    let log = g.stream("off.h5", &g.chain("recon_fbp.xml", &[("field_map", map)]), "none.h5");
    assert!(errors(&log).len() == 1 && log.contains("property field_map is set"), "{log}");
    off_resonance_from_the_chain(g, no_maps);
}

/// Sends the map as a message between the header and the acquisitions.
fn off_resonance_from_the_chain(g: &Gadgetron, no_maps: (&str, &str)) {
    let chain = g.chain("recon_off_resonance.xml", &[no_maps, ("field_map", "images")]);
    let text = fs::read_to_string(&chain).unwrap();
    let reader = "<reader><slot>1022</slot><dll>gadgetron_mricore</dll><classname>MRIImageReader</classname></reader>";
    fs::write(&chain, text.replace("</readers>", &format!("{reader}</readers>"))).unwrap();
    run(g.command("ismrmrd_hdf5_to_stream").args(["-i", "map.h5", "-o", "map.mrd", "-s", "image_0"]));
    run(g.command("ismrmrd_hdf5_to_stream").args(["-i", "off.h5", "-o", "off.mrd"]));
    let (map, data) = (fs::read(g.file("map.mrd")).unwrap(), fs::read(g.file("off.mrd")).unwrap());
    // A message begins with its number (2 bytes, 3 for the header) and its length (4 bytes). The stream ends with a
    // different number.
    let header = |stream: &[u8]| {
        assert_eq!(stream[..2], 3u16.to_le_bytes());
        6 + u32::from_le_bytes(stream[2..6].try_into().unwrap()) as usize
    };
    let image = &map[header(&map)..map.len() - 2];
    assert_eq!(image[..2], 1022u16.to_le_bytes());
    let (head, tail) = data.split_at(header(&data));
    fs::write(g.file("both.mrd"), [head, image, tail].concat()).unwrap();
    let log = g.stream_of(&g.file("both.mrd"), &chain, "with.h5");
    let found = g.errors("with.h5", "truth.h5", "");
    // The map is also sent to the client.
    assert_eq!(found.len(), 2, "{found:?} percent\n{log}");
    assert!(found.iter().filter(|&&e| e < 0.5).count() == 1, "{found:?} percent\n{log}");
}
