//! The gadgets of gadgetron/. Their conversion and engine need the ISMRMRD library only. The gadgets themselves are
//! tested in a real Gadgetron, if one is installed: GADGETRON_HOME names it, or it is on the PATH.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[path = "../common/mod.rs"]
mod common;
use common::{printed, root, run, say};

fn there(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

fn fresh(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Installs the library that this test was built with.
fn install(folder: &Path) -> PathBuf {
    let prefix = folder.join("prefix");
    let built = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    run(Command::new("make")
        .current_dir(root())
        .arg("install")
        .arg(format!("PREFIX={}", prefix.display()))
        .arg(format!("BUILT={}", built.display())));
    prefix
}

/// Configures and builds gadgetron/ into `folder`/build.
fn build(folder: &Path, prefixes: &[&Path], gadgets: bool) -> PathBuf {
    let build = folder.join("build");
    let list: Vec<_> = prefixes.iter().map(|p| p.display().to_string()).collect();
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(root().join("gadgetron")).arg("-B").arg(&build);
    configure.arg(format!("-DCMAKE_PREFIX_PATH={}", list.join(";")));
    run(configure.arg(format!("-DRECON_GADGETS={}", if gadgets { "ON" } else { "OFF" })));
    run(Command::new("cmake").arg("--build").arg(&build));
    build
}

#[test]
fn conversion_and_engine() {
    if !there("cmake") {
        return say("skipped: the conversion code of the gadgets (no cmake)");
    }
    let folder = fresh("gadgetron-conversion");
    let ismrmrd = folder.join("look");
    fs::create_dir_all(&ismrmrd).unwrap();
    let list = "cmake_minimum_required(VERSION 3.10)\nproject(look C CXX)\nfind_package(ISMRMRD REQUIRED)\n";
    fs::write(ismrmrd.join("CMakeLists.txt"), list).unwrap();
    let look = Command::new("cmake").arg("-S").arg(&ismrmrd).arg("-B").arg(ismrmrd.join("build")).output().unwrap();
    if !look.status.success() {
        return say("skipped: the conversion code of the gadgets (no ISMRMRD library: install libismrmrd-dev)");
    }
    let prefix = install(&folder);
    let build = build(&folder, &[&prefix], false);
    let text = run(Command::new("ctest").arg("--test-dir").arg(&build).arg("--output-on-failure"));
    assert!(text.contains("100% tests passed"), "{text}");
    fs::remove_dir_all(folder).unwrap();
}

/// A Gadgetron, and the gadgets built for it.
struct Gadgetron {
    home: PathBuf,
    build: PathBuf,
    folder: PathBuf,
}

/// The prefix of an installed Gadgetron.
fn home() -> Option<PathBuf> {
    let named = std::env::var_os("GADGETRON_HOME").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).filter_map(|bin| bin.parent().map(Path::to_owned));
    named.into_iter().chain(on_path).find(|home| home.join("bin/gadgetron").exists())
}

impl Gadgetron {
    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var("PATH").unwrap_or_default();
        command.current_dir(&self.folder).env("PATH", format!("{}/bin:{path}", self.home.display()));
        command.env("LD_LIBRARY_PATH", self.home.join("lib")).env("OMP_WAIT_POLICY", "PASSIVE");
        command
    }

    fn recon(&self, line: &str) -> String {
        run(self.command(env!("CARGO_BIN_EXE_recon")).args(line.split_whitespace()))
    }

    fn alter(&self, from: &str, to: &str, what: &str) {
        let _ = fs::remove_file(self.file(to));
        run(self.command(self.build.join("alter")).args([from, to]).args(what.split_whitespace()));
    }

    /// A chain of gadgetron/config with the gadgets built here. The properties given replace those of the gadget that
    /// reconstructs.
    fn chain(&self, name: &str, properties: &[(&str, &str)]) -> PathBuf {
        let text = fs::read_to_string(root().join("gadgetron/config").join(name)).unwrap();
        let dll = self.build.join("recon_gadgetron");
        let text = text.replace("<dll>recon_gadgetron</dll>", &format!("<dll>{}</dll>", dll.display()));
        let (before, after) = text.split_once("<name>Recon</name>").unwrap();
        let (own, rest) = after.split_once("</gadget>").unwrap();
        let mut own = own.to_owned();
        for (key, value) in properties {
            let start = format!("<property name=\"{key}\"");
            own = own.lines().filter(|line| !line.contains(&start)).collect::<Vec<_>>().join("\n");
            own += &format!("\n{start} value=\"{value}\"/>\n");
        }
        let path = self.file(&format!("chain-{name}"));
        fs::write(&path, format!("{before}<name>Recon</name>{own}</gadget>{rest}")).unwrap();
        path
    }

    /// A chain with another gadget, by class. The properties of the gadget that it replaces are left out.
    fn chain_of(&self, name: &str, class: &str, properties: &[(&str, &str)]) -> PathBuf {
        let path = self.chain(name, &[]);
        let text = fs::read_to_string(&path).unwrap();
        let (before, after) = ["ReconCGGadget", "ReconGridGadget"]
            .map(|own| format!("<classname>{own}</classname>"))
            .iter()
            .find_map(|own| text.split_once(&own[..]))
            .unwrap();
        let rest = after.split_once("</gadget>").unwrap().1;
        let all: Vec<_> = properties.iter().chain(&[("timing", "true")]).collect();
        let own: String = all.iter().map(|(k, v)| format!("<property name=\"{k}\" value=\"{v}\"/>\n")).collect();
        fs::write(&path, format!("{before}<classname>{class}</classname>\n{own}</gadget>{rest}")).unwrap();
        path
    }

    /// Sends a file through a chain, without sockets. Returns the log.
    fn stream(&self, input: &str, chain: &Path, output: &str) -> String {
        let from = self.file(&format!("{input}.mrd"));
        run(self.command("ismrmrd_hdf5_to_stream").arg("-i").arg(input).arg("-o").arg(&from));
        self.stream_of(&from, chain, output)
    }

    /// The same of a file of messages.
    fn stream_of(&self, from: &Path, chain: &Path, output: &str) -> String {
        let to = self.file(&format!("{output}.mrd"));
        let mut server = self.command("gadgetron");
        server.args(["--disable_storage", "1", "--from_stream", "-W"]).arg(&self.folder).arg("-c").arg(chain);
        let done = server.arg("-i").arg(from).arg("-o").arg(&to).output().unwrap();
        let log = printed(&done);
        let _ = fs::remove_file(self.file(output));
        if fs::metadata(&to).is_ok_and(|m| m.len() > 0) {
            let _ = self.command("ismrmrd_stream_to_hdf5").arg("-i").arg(&to).arg("-o").arg(output).output();
        }
        log
    }

    /// The errors in percent of the images of a file. The truth has one image for each, or one for all.
    fn errors(&self, images: &str, truth: &str, more: &str) -> Vec<f64> {
        let text = self.recon(&format!("compare --json --magnitude {more} {images} {truth}"));
        let error = |line: &str| -> f64 {
            let rest = line.split("\"percent_error\":").nth(1).unwrap_or_else(|| panic!("{line}"));
            rest.split([',', '}']).next().unwrap().trim().parse().unwrap()
        };
        text.lines().filter(|l| l.starts_with('{')).map(error).collect()
    }

    /// How many images a file has.
    fn count(&self, images: &str) -> usize {
        let text = self.command(env!("CARGO_BIN_EXE_recon")).args(["info", images]).output().unwrap().stdout;
        let first = String::from_utf8_lossy(&text).lines().next().unwrap_or_default().to_owned();
        match first.split_once(' ') {
            Some((count, "image" | "images")) => count.parse().unwrap(),
            _ => 0,
        }
    }

    /// Asserts that there are `count` images, which are equal to the truth except for rounding.
    #[track_caller]
    fn assert_same(&self, images: &str, truth: &str, count: usize, log: &str) {
        assert!(self.file(images).exists(), "no images:\n{log}");
        let errors = self.errors(images, truth, "");
        assert!(errors.len() == count && errors.iter().all(|&e| e < 2e-5), "{errors:?} percent\n{log}");
    }
}

/// The lines of the log that tell of an error.
fn errors(log: &str) -> Vec<&str> {
    log.lines().filter(|l| l.contains("ERROR")).collect()
}

/// The lines of the log in which our gadgets warn.
fn warnings(log: &str) -> Vec<&str> {
    log.lines().filter(|l| l.contains("WARNING") && l.contains("Recon")).collect()
}

#[test]
fn in_a_real_gadgetron() {
    let Some(home) = home() else {
        return say("skipped: the gadgets in a real Gadgetron (none here: set GADGETRON_HOME)");
    };
    let folder = fresh("gadgetron-real");
    let prefix = install(&folder);
    let build = build(&folder, &[&home, &prefix], true);
    let g = Gadgetron { home, build, folder };
    if g.command("ismrmrd_hdf5_to_stream").arg("--help").output().is_err() {
        return say("skipped: the gadgets in a real Gadgetron (no ismrmrd_hdf5_to_stream beside it)");
    }
    images_equal_the_programs(&g);
    noise(&g);
    messages(&g);
    images_one_at_a_time(&g);
    moved_blades(&g);
    off_resonance(&g);
    volumes(&g);
    matrices(&g);
    orientation(&g);
    incomplete_measurements(&g);
    repetitions_and_missing_shots(&g);
    windows(&g);
    branches(&g);
    properties(&g);
    lying_files(&g);
    memory(&g);
    memory_counted(&g);
    servers(&g);
    fs::remove_dir_all(&g.folder).unwrap();
}

fn images_equal_the_programs(g: &Gadgetron) {
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
    // Coil maps from calibration acquisitions. Here all acquisitions are.
    g.alter("radial.h5", "calibrated.h5", "calibration");
    g.recon("cg radial.h5 -o truth.h5");
    for chain in ["recon_cg.xml", "recon_3d.xml"] {
        let log = g.stream("calibrated.h5", &g.chain(chain, &[("coil_maps", "reference")]), "cg.h5");
        g.assert_same("cg.h5", "truth.h5", 1, &log);
        let log = g.stream("radial.h5", &g.chain(chain, &[("coil_maps", "reference")]), "cg.h5");
        assert!(errors(&log).len() == 1 && log.contains("coil_maps is reference, but the data have none"), "{log}");
    }
    // A prior, weights in the data term, and one image for each coil.
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

/// Noise acquisitions whiten the data in the gadgets as in the program.
fn noise(g: &Gadgetron) {
    g.alter("spiral.h5", "noisy.h5", "noise 20");
    for (chain, program) in [("recon_grid.xml", "grid"), ("recon_cg.xml", "cg"), ("recon_3d.xml", "cg")] {
        let log = g.stream("noisy.h5", &g.chain(chain, &[]), "white.h5");
        g.recon(&format!("{program} noisy.h5 -o truth.h5"));
        // Rounding of whitened data grows in coil maps where there is only noise.
        let most = if program == "grid" { 2e-5 } else { 5e-2 };
        let off = g.errors("white.h5", "truth.h5", "");
        assert!(off.len() == 1 && off[0] < most, "{program}: {off:?} percent\n{log}");
        assert!(log.contains("whitened by 5120 samples of noise of 4 coils, of variance times 0.6250"), "{log}");
        assert!(
            log.contains("images are in units of the noise's standard deviation") && errors(&log).is_empty(),
            "{log}"
        );
        // Whitening changes the image, and is left out on request.
        let plain = fs::read_to_string(g.chain(chain, &[])).unwrap();
        fs::write(g.file("plain.xml"), plain.replace("\"whiten\" value=\"auto\"", "\"whiten\" value=\"none\""))
            .unwrap();
        let log = g.stream("noisy.h5", &g.file("plain.xml"), "plain.h5");
        g.recon(&format!("{program} noisy.h5 --whiten none -o truth.h5"));
        g.assert_same("plain.h5", "truth.h5", 1, &log);
        assert!(log.contains("property whiten is none: 20 noise acquisitions have no effect"), "{log}");
        assert!(g.errors("white.h5", "plain.h5", "")[0] > 50.0, "{log}");
    }
    // Noise after the data has no effect, with a warning.
    g.alter("spiral.h5", "late.h5", "late-noise 20");
    let log = g.stream("late.h5", &g.chain("recon_grid.xml", &[]), "late-images.h5");
    g.recon("grid late.h5 --whiten none -o truth.h5");
    g.assert_same("late-images.h5", "truth.h5", 1, &log);
    let lines = warnings(&log);
    assert!(lines.len() == 1 && lines[0].contains("20 noise acquisitions came after the first data"), "{log}");
}

/// Causes that the log names.
fn messages(g: &Gadgetron) {
    // N_dimension = slice, which makes frames without shots.
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
    assert!(log.contains("the sliding window starts again: this frame has 2 coils"), "{log}");
    // Impossible sizes in the XML header.
    for (what, wanted) in [
        ("negative-matrix", "matrixSize.y of encodedSpace is 65440 (or -96)"),
        ("field-of-view 0", "fieldOfView_mm.x of encodedSpace is 0"),
        ("field-of-view -96", "fieldOfView_mm.x of encodedSpace is -96"),
        ("field-of-view nan", "fieldOfView_mm.x of encodedSpace is nan"),
    ] {
        g.alter("radial.h5", "space.h5", what);
        for chain in ["recon_grid.xml", "recon_3d.xml"] {
            let log = g.stream("space.h5", &g.chain(chain, &[]), "none.h5");
            assert!(errors(&log).len() == 1 && log.contains(wanted), "{what}: {log}");
            assert_eq!(g.count("none.h5"), 0, "{log}");
        }
    }
}

/// A buffer of ten large images, under limits of memory: either all images are made, or the log has an error. The
/// process is never killed.
fn images_one_at_a_time(g: &Gadgetron) {
    g.recon("simulate --matrix 1000,1000 --trajectory radial --shots 30 --samples 200 --coils 1 -o large.h5");
    g.alter("large.h5", "ten.h5", "contrasts 10");
    let chain = g.chain("recon_grid.xml", &[]);
    let (all, log, _) = peak(g, "ten.h5", &chain, "");
    run(g.command("ismrmrd_stream_to_hdf5").args(["-i", "peak-out.mrd", "-o", "ten-images.h5"]));
    assert!(g.count("ten-images.h5") == 10 && errors(&log).is_empty(), "{log}");
    let arrays = g.chain("recon_grid.xml", &[("send", "arrays")]);
    let (in_arrays, _, _) = peak(g, "ten.h5", &arrays, "");
    // It is written to the same file.
    let chain = g.chain("recon_grid.xml", &[]);
    let mib = |bytes: u64| bytes >> 20;
    say(&format!("ten images of 1000 x 1000: a peak of {} MiB, in an array {} MiB", mib(all), mib(in_arrays)));
    for limit in (120..=400).step_by(20) {
        let Some(group) = control_group(limit << 20) else {
            return say("skipped: ten images in control groups of little memory (none can be made here)");
        };
        let before = format!("echo $$ > {}/cgroup.procs &&", group.display());
        let (_, log, status) = peak(g, "ten.h5", &chain, &before);
        fs::remove_dir(&group).unwrap();
        assert!(status.success(), "{limit} MiB: {status}\n{log}");
        let _ = fs::remove_file(g.file("ten-images.h5"));
        let images = match fs::metadata(g.file("peak-out.mrd")).map(|m| m.len()) {
            Ok(1..) => {
                let _ =
                    g.command("ismrmrd_stream_to_hdf5").args(["-i", "peak-out.mrd", "-o", "ten-images.h5"]).output();
                g.count("ten-images.h5")
            }
            _ => 0,
        };
        assert!(images == 10 || !errors(&log).is_empty(), "{limit} MiB: {images} images\n{log}");
    }
}

/// The motion of PROPELLER blades, found, told and corrected.
fn moved_blades(g: &Gadgetron) {
    let scan = "--trajectory propeller --shots 16 --lines 20 --samples 120 --coils 3 --snr 100";
    g.recon(&format!("simulate --matrix 96,96 {scan} -o still.h5"));
    g.alter("still.h5", "moved.h5", "moved-blades 20");
    let chain = g.chain("recon_propeller.xml", &[]);
    let log = g.stream("still.h5", &chain, "truth.h5");
    assert!(errors(&log).is_empty() && warnings(&log).is_empty(), "{log}");
    // By 2 and 1 voxels, from a mean of 0.
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
    assert!(!errors(&log).is_empty() && log.contains("coil_maps is set where phase is smooth"), "{log}");
    let constant =
        g.chain("recon_propeller.xml", &[("coil_maps", "data"), ("phase", "constant"), ("rotation", "false")]);
    let log = g.stream("moved.h5", &constant, "constant.h5");
    assert!(errors(&log).is_empty() && log.contains("turned by up to 0.00 degrees"), "{log}");
    assert_eq!(g.count("constant.h5"), 1, "{log}");
}

/// An object that is off resonance by one frequency, and a map of it: from a file, and from an image that comes before
/// the data.
fn off_resonance(g: &Gadgetron) {
    g.recon("simulate --matrix 96,96 --trajectory spiral --coils 4 --snr 1000 -o on.h5");
    g.alter("on.h5", "off.h5", "off-resonance 90");
    g.alter("on.h5", "map.h5", "field-map 90");
    let map = g.file("map.h5");
    let map = map.to_str().unwrap();
    // Coil maps from the data are estimated without the field map, and those of the two files differ a little.
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
    // The chain of gadgetron/config, and two slices of which each has its map.
    g.alter("off.h5", "two.h5", "slices 2");
    g.alter("two.h5", "two-maps.h5", "field-map 90");
    let two_maps = g.file("two-maps.h5");
    let two_maps = ("field_map", two_maps.to_str().unwrap());
    let log = g.stream("two.h5", &g.chain("recon_off_resonance.xml", &[no_maps, two_maps]), "with.h5");
    let found = g.errors("with.h5", "truth.h5", "--scale best");
    assert!(found.len() == 2 && found.iter().all(|&e| e < 0.5), "{found:?} percent\n{log}");
    // With coil maps from the data too it is far better than without the map.
    g.recon("cg on.h5 -o truth-maps.h5");
    let log = g.stream("two.h5", &g.chain("recon_off_resonance.xml", &[two_maps]), "with.h5");
    let found = g.errors("with.h5", "truth-maps.h5", "--scale best");
    assert!(found.len() == 2 && found.iter().all(|&e| e < 10.0), "{found:?} percent\n{log}");
    // One map serves both. A slice without a map makes no image, the other is made.
    let log = g.stream("two.h5", &g.chain("recon_off_resonance.xml", &[("field_map", map)]), "with.h5");
    assert_eq!((g.count("with.h5"), errors(&log).len()), (2, 0), "{log}");
    g.alter("off.h5", "three.h5", "slices 3");
    let maps_of_two = g.chain("recon_off_resonance.xml", &[two_maps]);
    let log = g.stream("three.h5", &maps_of_two, "with.h5");
    assert!(errors(&log).len() == 1 && log.contains("maps of 2 slices, and none of slice 2"), "{log}");
    assert_eq!(g.count("with.h5"), 2, "{log}");
    for (file, properties, wanted) in [
        ("off.h5", [("field_map", "not.h5")], "no such file"),
        ("off.h5", [("field_map", "off.h5")], "map_series"),
        ("off.h5", [("decay_map", "images")], "recon_map = decay_map came for slice 0"),
        ("untimed.h5", [("field_map", map)], "sample_time_us is 0 in shot 0"),
    ] {
        g.alter("off.h5", "untimed.h5", "no-sample-time");
        let log = g.stream(file, &g.chain("recon_cg.xml", &properties), "none.h5");
        assert!(errors(&log).len() == 1 && log.contains(wanted), "{properties:?}: {log}");
        assert_eq!(g.count("none.h5"), 0, "{log}");
    }
    let log = g.stream("off.h5", &g.chain("recon_fbp.xml", &[("field_map", map)]), "none.h5");
    assert!(errors(&log).len() == 1 && log.contains("property field_map is set"), "{log}");

    // The map as a message of its own, between the header and the acquisitions.
    let chain = g.chain("recon_off_resonance.xml", &[no_maps, ("field_map", "images")]);
    let text = fs::read_to_string(&chain).unwrap();
    let reader = "<reader><slot>1022</slot><dll>gadgetron_mricore</dll><classname>MRIImageReader</classname></reader>";
    fs::write(&chain, text.replace("</readers>", &format!("{reader}</readers>"))).unwrap();
    run(g.command("ismrmrd_hdf5_to_stream").args(["-i", "map.h5", "-o", "map.mrd", "-s", "image_0"]));
    run(g.command("ismrmrd_hdf5_to_stream").args(["-i", "off.h5", "-o", "off.mrd"]));
    let (map, data) = (fs::read(g.file("map.mrd")).unwrap(), fs::read(g.file("off.mrd")).unwrap());
    // A message: its number in two bytes, 3 of the header; then its length in four. The stream's end is another number.
    let header = |stream: &[u8]| {
        assert_eq!(stream[..2], 3u16.to_le_bytes());
        6 + u32::from_le_bytes(stream[2..6].try_into().unwrap()) as usize
    };
    let image = &map[header(&map)..map.len() - 2];
    assert_eq!(image[..2], 1022u16.to_le_bytes());
    let (before, after) = data.split_at(header(&data));
    fs::write(g.file("both.mrd"), [before, image, after].concat()).unwrap();
    let log = g.stream_of(&g.file("both.mrd"), &chain, "with.h5");
    let found = g.errors("with.h5", "truth.h5", "");
    // The map goes on to the client.
    assert_eq!(found.len(), 2, "{found:?} percent\n{log}");
    assert!(found.iter().filter(|&&e| e < 0.5).count() == 1, "{found:?} percent\n{log}");
}

fn volumes(g: &Gadgetron) {
    g.recon("simulate --matrix 32,32,32 --trajectory kooshball --shots 800 --coils 2 -o koosh.h5");
    let log = g.stream("koosh.h5", &g.chain("recon_3d.xml", &[]), "volume.h5");
    g.recon("cg koosh.h5 -o truth.h5");
    g.assert_same("volume.h5", "truth.h5", 1, &log);
    // The same from a buffer.
    let log = g.stream("koosh.h5", &g.chain("recon_grid.xml", &[]), "volume.h5");
    g.recon("grid koosh.h5 -o truth.h5");
    g.assert_same("volume.h5", "truth.h5", 1, &log);
}

/// reconSpace differs from encodedSpace: images are cut, filled with zeros, or oversampled. Matrix, weights, cut and
/// scale are as in the program, bit for bit. For CG the program writes complex voxels and the gadget magnitudes, which
/// are rounded.
fn matrices(g: &Gadgetron) {
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
        for (gadget, program, most) in
            [("ReconGridGadget", "grid", 0.0), ("ReconFHdGadget", "fhd", 0.0), ("ReconCGGadget", "cg", 2e-5)]
        {
            let log = g.stream("matrix.h5", &g.chain_of("recon_grid.xml", gadget, &[]), "images.h5");
            g.recon(&format!("{program} matrix.h5 -o truth.h5"));
            let found = g.errors("images.h5", "truth.h5", "");
            assert!(found.len() == 1 && found[0] <= most, "{file} {what} {size}, {program}: {found:?} percent\n{log}");
            assert!(warnings(&log).is_empty() && errors(&log).is_empty(), "{log}");
        }
    }
}

/// The acquisitions say how images lie in the patient. Our gadgets hand this on to the bit, as Gadgetron's own gadget
/// does: viewers turn images by it.
fn orientation(g: &Gadgetron) {
    g.alter("flat.h5", "slices.h5", "slices 3");
    g.alter("slices.h5", "oblique.h5", "oblique");
    let headers = |images: &str, series: &str| run(g.command(g.build.join("headers")).args([images, series]));
    let chain = g.chain("recon_grid.xml", &[]);
    let log = g.stream("oblique.h5", &chain, "ours.h5");
    assert_eq!(g.count("ours.h5"), 3, "{log}");
    let text = fs::read_to_string(g.chain_of("recon_grid.xml", "SimpleReconGadget", &[])).unwrap();
    let ours = g.build.join("recon_gadgetron");
    // Only the gadget that reconstructs is Gadgetron's. It sends arrays of images.
    let (before, after) = text.split_once("<name>Recon</name>").unwrap();
    let after = after.replacen(&format!("<dll>{}</dll>", ours.display()), "<dll>gadgetron_mricore</dll>", 1);
    let split = "</gadget>\n<gadget><name>Split</name><dll>gadgetron_mricore</dll>\
                 <classname>ImageArraySplitGadget</classname></gadget>";
    let text = format!("{before}<name>Recon</name>{}", after.replacen("</gadget>", split, 1));
    fs::write(&chain, text).unwrap();
    let log = g.stream("oblique.h5", &chain, "theirs.h5");
    assert_eq!(g.count("theirs.h5"), 3, "{log}");
    let (ours, theirs) = (headers("ours.h5", "1"), headers("theirs.h5", "0"));
    assert_eq!(ours, theirs);
    assert!(ours.lines().count() == 3 && ours.contains("read_dir 0x1.6a09e6p-1 -0x1.6a09e6p-1 0x0p+0"), "{ours}");
}

/// Measurements that were cut short, counters without meaning, and shots of zeros: there are images, and one warning
/// with the numbers. Data that make no image are an error, and the other images are made.
fn incomplete_measurements(g: &Gadgetron) {
    let shots = 60;
    g.recon(&format!("simulate --matrix 64,64 --trajectory spiral --shots {shots} --coils 2 --snr 100 -o whole.h5"));
    g.alter("whole.h5", "series.h5", "repetitions 3");
    for (what, chain, images, wanted) in [
        // The second repetition is cut short. It comes in a buffer, then in buckets.
        ("missing 41", "recon_grid.xml", 3, &["41 of 60 shots", "19 of these are empty", "cut short"][..]),
        ("missing 41", "recon_3d.xml", 3, &["41 of 60 shots", "cut short"]),
        ("lost 30", "recon_grid.xml", 3, &["59 of 60 shots", "were lost"]),
        ("same-counter 30", "recon_grid.xml", 3, &["59 of 60 shots", "counters of others"]),
        ("counters", "recon_grid.xml", 3, &["1 of 60 shots", "59 of these are empty", "check kspace_encode_step_1"]),
        ("zeros 50", "recon_grid.xml", 3, &["10 of 60 shots are zero", "count as measured"]),
        ("divided 16", "recon_grid.xml", 3, &["|k| on axis 0 is at most 0.03", "size twice"]),
    ] {
        g.alter("series.h5", "incomplete.h5", what);
        let log = g.stream("incomplete.h5", &g.chain_of(chain, "ReconGridGadget", &[]), "incomplete-images.h5");
        let lines = warnings(&log);
        assert!(
            lines.len() == 1 && lines[0].contains("ReconGridGadget: encoding 0, slice 0, repetition "),
            "{what}:\n{log}"
        );
        wanted.iter().for_each(|part| assert!(lines[0].contains(part), "{what}: no {part:?} in {}", lines[0]));
        assert!(errors(&log).is_empty() && g.count("incomplete-images.h5") == images, "{what}:\n{log}");
    }
    // Without limits in the header, an image is compared with the images before it.
    g.alter("series.h5", "short.h5", "missing 41");
    g.alter("short.h5", "unlimited.h5", "no-limits");
    for chain in ["recon_grid.xml", "recon_3d.xml"] {
        let log = g.stream("unlimited.h5", &g.chain_of(chain, "ReconGridGadget", &[]), "incomplete-images.h5");
        let lines = warnings(&log);
        assert!(lines.len() == 1 && lines[0].contains("41 shots, where an image before had 60"), "{chain}:\n{log}");
        assert!(errors(&log).is_empty() && g.count("incomplete-images.h5") == 3, "{chain}:\n{log}");
    }
    // In buckets counters do not matter. Shots that were left out by design need no warning.
    for (what, chain) in
        [("counters", "recon_3d.xml"), ("same-counter 30", "recon_3d.xml"), ("every 3", "recon_grid.xml")]
    {
        g.alter("series.h5", "fine.h5", what);
        let log = g.stream("fine.h5", &g.chain_of(chain, "ReconGridGadget", &[]), "fine-images.h5");
        assert!(warnings(&log).is_empty() && errors(&log).is_empty(), "{what}:\n{log}");
        g.recon("grid fine.h5 -o truth.h5");
        g.assert_same("fine-images.h5", "truth.h5", 3, &log);
    }
    // The warning comes once, and at the end a count.
    g.alter("whole.h5", "short.h5", "missing 20");
    g.alter("short.h5", "short-series.h5", "repetitions 4");
    let log = g.stream("short-series.h5", &g.chain("recon_grid.xml", &[]), "incomplete-images.h5");
    let lines = warnings(&log);
    assert!(lines.len() == 2 && lines[0].contains("20 of 60 shots"), "{log}");
    assert!(lines[1].contains("4 times in all on this connection, images with shots missing"), "{log}");

    // A single spoke makes no image, and a trajectory of zeros makes none. The other repetitions do.
    g.alter("flat.h5", "series.h5", "repetitions 3");
    for (what, wanted) in [("counters", "lie on one line of k-space"), ("no-trajectory", "lie at one point of k-space")]
    {
        g.alter("series.h5", "none.h5", what);
        let log = g.stream("none.h5", &g.chain("recon_grid.xml", &[]), "none-images.h5");
        let lines = errors(&log);
        assert!(
            lines.len() == 1 && lines[0].contains("slice 0, repetition 1: ") && lines[0].contains(wanted),
            "{what}:\n{log}"
        );
        assert_eq!(g.count("none-images.h5"), 2, "{what}:\n{log}");
    }
}

fn repetitions_and_missing_shots(g: &Gadgetron) {
    g.alter("radial.h5", "many.h5", "repetitions 5");
    let log = g.stream("many.h5", &g.chain("recon_cg.xml", &[]), "cg.h5");
    // The gadget uses the maps of the first repetition for all. Repetitions differ by a factor, which maps do not
    // depend on but for rounding, which maps amplify where there is only noise: 0.001 to 0.015 % on a Zen 5.
    g.recon("cg many.h5 -o truth.h5");
    let off = g.errors("cg.h5", "truth.h5", "");
    assert!(off.len() == 5 && off.iter().all(|&e| e < 5e-2), "{off:?}\n{log}");
    let log = g.stream("many.h5", &g.chain("recon_grid.xml", &[]), "grid.h5");
    g.recon("grid many.h5 -o truth.h5");
    g.assert_same("grid.h5", "truth.h5", 5, &log);

    // A repetition ended early. The empty rows of the buffer are not taken for measured zeros.
    g.alter("many.h5", "short.h5", "missing 61");
    for chain in ["recon_grid.xml", "recon_cg.xml"] {
        let log = g.stream("short.h5", &g.chain(chain, &[("coil_maps", "none")]), "short-images.h5");
        let program = if chain == "recon_grid.xml" { "grid" } else { "cg --no-maps" };
        g.recon(&format!("{program} short.h5 -o truth.h5"));
        g.assert_same("short-images.h5", "truth.h5", 5, &log);
        assert!(log.contains("61 shots"), "{log}");
    }
    // All slices in one buffer, then one slice without any shot.
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

fn windows(g: &Gadgetron) {
    g.recon("simulate --matrix 64,64 --trajectory golden-angle --shots 210 --coils 4 -o golden.h5");
    let log = g.stream("golden.h5", &g.chain("recon_realtime.xml", &[]), "frames.h5");
    g.recon("cg golden.h5 -o truth.h5");
    let off = g.errors("frames.h5", "truth.h5", "--scale best");
    // Ten images: the first has 21 spokes, the second 42, the others 63.
    assert!(off.len() == 10 && off[2..].iter().all(|&e| e < off[0] && e < 25.0), "{off:?}\n{log}");
    assert!(log.contains(" 63 shots") && log.contains("warm_start=true"), "{log}");
    // With few iterations an image is the better for the one before.
    let [warm, cold] = ["true", "false"].map(|start| {
        let chain = g.chain("recon_realtime.xml", &[("iterations", "2"), ("warm_start", start)]);
        let log = g.stream("golden.h5", &chain, "frames.h5");
        let off = g.errors("frames.h5", "truth.h5", "--scale best");
        assert!(off.len() == 10, "{off:?}\n{log}");
        off
    });
    assert!((3..10).all(|i| warm[i] < cold[i]), "{warm:?} {cold:?}");
}

/// Gridding and CG-SENSE of the same data at the same time, in one process.
fn branches(g: &Gadgetron) {
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
        // The truth is the first repetition, which one of the images equals.
        g.recon(&format!("{program} radial.h5 -o truth.h5"));
        let found = g.errors("both.h5", "truth.h5", "");
        assert_eq!(found.iter().filter(|&&e| e < 2e-5).count(), 1, "{found:?}\n{log}");
    }
}

fn properties(g: &Gadgetron) {
    let log = g.stream("radial.h5", &g.chain("recon_cg.xml", &[("iteratons", "5")]), "none.h5");
    let lines = errors(&log);
    assert!(lines.len() == 1 && lines[0].contains("ReconCGGadget") && lines[0].contains("iteratons"), "{log}");
    assert!(log.contains("iterations=12 (default)") && log.contains("threads=0 (default)"), "{log}");
    for (key, value, wanted) in [
        ("output", "magnitud", "magnitude, complex or coils"),
        ("iterations", "12x", "whole number"),
        ("tolerance", "-1", "from 0 to 1"),
        ("device", "gpu", "auto, cpu, cuda"),
        ("lambda", "1", "set it to identity or differences"),
        ("image_series", "65536", "from 0 to 65535"),
        // Properties with which no image can be made are refused before there are data, once.
        ("device", "cuda:99", "device cpu"),
        ("tolerance", "1e-12", "window"),
        ("width", "17", "2 to 16"),
        ("width", "4.5", "whole number"),
        ("oversampling", "1.1", "1.25 to 2.5"),
        ("threads", "5000", "at most 4096"),
    ] {
        let log = g.stream("radial.h5", &g.chain("recon_cg.xml", &[(key, value)]), "none.h5");
        assert!(log.contains(&format!("property {key} is ")) && log.contains(wanted), "{key}: {log}");
        assert_eq!(g.count("none.h5"), 0, "{log}");
        assert_eq!(log.matches(&format!("property {key} is ")).count(), 1, "{key}: {log}");
    }
}

/// The second of three repetitions has wrong contents: there is one line about it, and the others are reconstructed.
fn lying_files(g: &Gadgetron) {
    g.alter("radial.h5", "three.h5", "repetitions 3");
    g.recon("grid three.h5 -o three-truth.h5");
    for (what, wanted) in [
        ("components 0", "no trajectory"),
        ("components 1", "trajectory of 1 components"),
        ("components 5", "trajectory of 5 components"),
        ("one-component-less", "trajectory components"),
        ("nan", "nan in sample 5 of shot 3"),
        ("nan-data", "in sample 5 of shot 3, coil "),
        ("outside", "ky is 3 in sample 5 of shot 3"),
    ] {
        g.alter("three.h5", "lie.h5", what);
        for chain in ["recon_grid.xml", "recon_3d.xml"] {
            let log = g.stream("lie.h5", &g.chain_of(chain, "ReconGridGadget", &[]), "lie-images.h5");
            let lines = errors(&log);
            assert_eq!(lines.len(), 1, "{what}, {chain}:\n{log}");
            let line = lines[0].to_ascii_lowercase();
            assert!(line.contains("recongridgadget: encoding 0, slice 0, repetition 1: "), "{what}: {line}");
            assert!(line.contains(&wanted.to_ascii_lowercase()), "{what}: {line}");
            assert_eq!(g.count("lie-images.h5"), 2, "{what}, {chain}");
        }
    }
    g.alter("radial.h5", "lie.h5", "zero-matrix");
    let log = g.stream("lie.h5", &g.chain("recon_grid.xml", &[]), "lie-images.h5");
    assert!(errors(&log).len() == 1 && log.contains("matrixSize.x of encodedSpace is 0"), "{log}");
    g.alter("radial.h5", "lie.h5", "huge-matrix");
    let log = g.stream("lie.h5", &g.chain("recon_grid.xml", &[]), "lie-images.h5");
    assert!(errors(&log).len() == 1 && log.contains("correct the matrices in the XML header"), "{log}");
    g.alter("radial.h5", "lie.h5", "missing 0");
    let log = g.stream("lie.h5", &g.chain("recon_grid.xml", &[]), "lie-images.h5");
    assert!(warnings(&log).iter().any(|l| l.contains("no buffer or bucket came")), "{log}");
    // A gadget before ours fails, because a shot is longer than the rows of the buffer. Ours add no error.
    g.alter("radial.h5", "lie.h5", "samples 300");
    let log = g.stream("lie.h5", &g.chain("recon_grid.xml", &[]), "lie-images.h5");
    assert!(errors(&log).iter().any(|l| !l.contains("Recon")), "{log}");
    assert!(!errors(&log).iter().any(|l| l.contains("Recon")), "{log}");
    let lines = warnings(&log);
    assert!(lines.iter().all(|l| l.contains("If the log has an error of another gadget, that is why")), "{log}");
}

/// Runs the server. Returns its peak of memory in bytes, and its log. `before` is a shell command, run in the process
/// that becomes the server.
fn peak(g: &Gadgetron, input: &str, chain: &Path, before: &str) -> (u64, String, std::process::ExitStatus) {
    run(g.command("ismrmrd_hdf5_to_stream").args(["-i", input, "-o", "peak.mrd"]));
    let mut server = g.command("sh");
    server.arg("-c").arg(format!("{before} exec gadgetron \"$@\"")).arg("sh");
    server.args(["--disable_storage", "1", "--from_stream", "-W"]).arg(&g.folder).arg("-c").arg(chain);
    server.args(["-i", "peak.mrd", "-o", "peak-out.mrd"]);
    let log = fs::File::create(g.file("peak.log")).unwrap();
    // wait4 below waits for it and also tells its memory.
    #[allow(clippy::zombie_processes)]
    let child = server.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
    let mut status = 0;
    // SAFETY: a structure of plain numbers, which may all be zero.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: this process started the child, and nobody else waits for it.
    let waited = unsafe { libc::wait4(child.id() as i32, &raw mut status, 0, &raw mut usage) };
    assert_eq!(waited, child.id() as i32);
    let status = std::os::unix::process::ExitStatusExt::from_raw(status);
    (
        usage.ru_maxrss as u64 * 1024,
        String::from_utf8_lossy(&fs::read(g.file("peak.log")).unwrap()).into_owned(),
        status,
    )
}

/// The memory counted before an image is made is compared with the memory found: the peak of the server, less its peak
/// for the same data without an image. In a control group with too little memory the gadget gives an error. Without it
/// the system would end the process without a line.
fn memory_counted(g: &Gadgetron) {
    g.recon("simulate --matrix 256,256 --trajectory radial --shots 402 --coils 8 --snr 100 -o flat8.h5");
    // With 32 coils most memory is for images at low resolution, for coil maps and adaptive combination.
    g.recon("simulate --matrix 64,64,64 --trajectory kooshball --shots 1500 --coils 32 -o many32.h5");
    g.recon("simulate --matrix 96,96,96 --trajectory kooshball --shots 4000 --coils 4 -o deep4.h5");
    let mib = |bytes: u64| bytes as f64 / (1 << 20) as f64;
    let mut needed = 0;
    for (input, name) in [("flat8.h5", "2D, 8 coils"), ("many32.h5", "3D, 32 coils"), ("deep4.h5", "3D, 4 coils")] {
        // The trajectory of this file is refused before anything is made.
        g.alter(input, "idle.h5", "nan");
        for (gadget, properties) in [
            ("ReconGridGadget", &[][..]),
            ("ReconGridGadget", &[("output", "complex")]),
            ("ReconFHdGadget", &[]),
            ("ReconCGGadget", &[("iterations", "2")]),
            ("ReconCGGadget", &[("iterations", "2"), ("calibration", "64")]),
            ("ReconCGGadget", &[("iterations", "2"), ("coil_maps", "none")]),
        ] {
            let chain = g.chain_of("recon_3d.xml", gadget, properties);
            // The peak of the server itself depends on how much of what came in still waits: of two runs the least
            // without an image and the most with one.
            let twice = |file: &str| [(); 2].map(|()| peak(g, file, &chain, ""));
            let idle = twice("idle.h5").map(|(bytes, log, _)| {
                assert_eq!(errors(&log).len(), 1, "{log}");
                bytes
            });
            let [(first, log, _), (second, second_log, _)] = twice(input);
            assert!(errors(&log).is_empty() && errors(&second_log).is_empty(), "{log}{second_log}");
            let (idle, all) = (idle[0].min(idle[1]), first.max(second));
            let counted = log.split(", counted ").nth(1).unwrap_or_else(|| panic!("{log}"));
            let counted: f64 = counted.split(' ').next().unwrap().parse().unwrap();
            let found = mib(all - idle);
            let properties: Vec<String> = properties.iter().map(|(k, v)| format!("{k}={v}")).collect();
            say(&format!(
                "memory of {gadget} {}, {name}: counted {counted:.0} MiB, found {found:.0} (the server without \
                 {:.0}): {:.2}",
                properties.join(" "),
                mib(idle),
                counted / found
            ));
            let room = 0.2 * found + 16.0;
            assert!((counted - found).abs() < room, "counted {counted} MiB, found {found}");
            needed = all;
        }
    }
    let Some(group) = control_group(needed - (100 << 20)) else {
        return say("skipped: a gadget in a control group of little memory (none can be made here)");
    };
    let chain = g.chain_of("recon_3d.xml", "ReconCGGadget", &[("iterations", "2")]);
    let before = format!("echo $$ > {}/cgroup.procs &&", group.display());
    let (_, log, status) = peak(g, "deep4.h5", &chain, &before);
    fs::remove_dir(&group).unwrap();
    let lines = errors(&log);
    assert!(lines.len() == 1 && lines[0].contains("the image needs ") && lines[0].contains("control group"), "{log}");
    assert!(lines[0].contains("are left: raise the limit"), "{log}");
    assert!(status.success(), "{status}\n{log}");
}

/// Makes a control group within the group of this process, with this limit of memory. None: it cannot be made.
fn control_group(bytes: u64) -> Option<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    own.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let (mount, limit) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|c| c == "memory") => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => return None,
        };
        let group = Path::new(mount).join(path.trim_start_matches('/')).join(format!("recon-{}", std::process::id()));
        fs::create_dir(&group).ok()?;
        if fs::write(group.join(limit), bytes.to_string()).is_err() {
            // If the folder stays, it does no harm: it is empty.
            let _ = fs::remove_dir(&group);
            return None;
        }
        Some(group)
    })
}

/// 1,000 repetitions come through one connection, no faster than they are reconstructed. Memory does not grow after the
/// first of them.
fn memory(g: &Gadgetron) {
    g.recon("simulate --matrix 48,48 --trajectory radial --shots 30 --coils 2 --weights -o small.h5");
    g.alter("small.h5", "thousand.h5", "repetitions 1000");
    run(g.command("ismrmrd_hdf5_to_stream").args(["-i", "thousand.h5", "-o", "thousand.mrd"]));
    // Data that wait to be reconstructed would count as memory, so the test waits for images. An image is written with
    // its header and attributes.
    let chain = g.chain("recon_cg.xml", &[("timing", "false")]);
    g.alter("small.h5", "two-small.h5", "repetitions 2");
    let [one, two] = ["small.h5", "two-small.h5"].map(|input| {
        g.stream(input, &chain, "small-out.h5");
        fs::metadata(g.file("small-out.h5.mrd")).unwrap().len()
    });
    let image = two - one;
    assert!(image > 48 * 48 * size_of::<f32>() as u64, "{image} bytes");
    let pipe = g.file("pipe");
    run(Command::new("mkfifo").arg(&pipe));
    let mut server = g.command("gadgetron");
    server.args(["--disable_storage", "1", "--from_stream", "-W"]).arg(&g.folder);
    server.arg("-c").arg(&chain);
    server.arg("-i").arg(&pipe).args(["-o", "thousand-out.mrd"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = server.spawn().unwrap();
    let resident = || -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
        let line = status.lines().find(|l| l.starts_with("VmRSS")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let bytes = fs::read(g.file("thousand.mrd")).unwrap();
    let (mut feed, mut held) = (fs::OpenOptions::new().write(true).open(&pipe).unwrap(), Vec::new());
    let mut parts: Vec<_> = bytes.chunks(bytes.len().div_ceil(1000)).collect();
    // The server ends after the last part.
    let last = parts.pop().unwrap();
    let written = || fs::metadata(g.file("thousand-out.mrd")).map_or(0, |m| m.len());
    let started = Instant::now();
    for (i, part) in parts.into_iter().enumerate() {
        feed.write_all(part).unwrap();
        while written() < (i as u64).saturating_sub(30) * image {
            assert!(started.elapsed().as_secs() < 600, "{} images of {i} after ten minutes", written() / image);
            std::thread::sleep(Duration::from_millis(1));
        }
        held.push(resident());
    }
    std::thread::sleep(Duration::from_millis(500));
    let (early, late) = (*held[100..200].iter().max().unwrap(), resident());
    feed.write_all(last).unwrap();
    drop(feed);
    assert!(server.wait().unwrap().success());
    run(g.command("ismrmrd_stream_to_hdf5").args(["-i", "thousand-out.mrd", "-o", "thousand-out.h5"]));
    assert_eq!(g.count("thousand-out.h5"), 1000);
    say(&format!("Gadgetron, 1,000 repetitions: {early} KiB held up to the 200th, {late} KiB after the last"));
    assert!(late < early + 8 * 1024, "{early} KiB, then {late} KiB");
}

/// Starts servers in a network of their own, because Gadgetron listens on all networks.
const SERVERS: &str = r#"
ip link set lo up || exit 9
for port in 9101 9102; do
    gadgetron -p $port --disable_storage 1 -W w$port > server-$port.log 2>&1 &
    eval "server$port=$!"
done
export GADGETRON_REMOTE_WORKER_COMMAND='echo ["localhost:9101", "localhost:9102"]'
gadgetron -p 9100 --disable_storage 1 -W w9100 > server-9100.log 2>&1 &
server9100=$!
trap 'kill $server9100 $server9101 $server9102' EXIT
# The client loses a race for a fast connection now and then, and gives up: once more, then.
send() {
    for attempt in 1 2 3 4 5; do
        rm -f $4
        timeout 60 gadgetron_ismrmrd_client -a 127.0.0.1 -p $1 -f $2 -C $3 -o $4 -G dataset \
            > client-$4.log 2>&1 && return
        sleep 0.5
    done
}
sleep 1
send 9101 one.h5 $CG first.h5 &
first=$!
send 9101 two.h5 $CG second.h5
wait $first
send 9101 lie.h5 $CG lied.h5
send 9101 one.h5 $CG after.h5
send 9100 slices.h5 $DISTRIBUTED distributed.h5
send 9102 slices.h5 $CG local.h5
kill -0 $server9100 && kill -0 $server9101 && kill -0 $server9102 && echo all alive
"#;

fn servers(g: &Gadgetron) {
    let alone =
        |c: &mut Command| c.args(["-rn", "sh", "-c", "ip link set lo up"]).output().is_ok_and(|o| o.status.success());
    if !alone(&mut Command::new("unshare")) {
        return say("skipped: connections to a real Gadgetron (no network namespaces: unshare -rn)");
    }
    g.alter("radial.h5", "one.h5", "repetitions 10");
    g.alter("spiral.h5", "two.h5", "repetitions 10");
    g.alter("spiral.h5", "slices.h5", "slices 6");
    g.alter("radial.h5", "lie.h5", "nan");
    let cg = g.chain("recon_cg.xml", &[]);
    let mut script = g.command("unshare");
    script.args(["-rn", "sh", "-c", SERVERS]).env("CG", &cg).env("DISTRIBUTED", g.chain("recon_distributed.xml", &[]));
    let text = run(&mut script);
    let log = |port: u32| fs::read_to_string(g.file(&format!("server-{port}.log"))).unwrap_or_default();
    assert!(text.contains("all alive"), "{text}\n{}", log(9101));
    for (input, images) in [("one.h5", "first.h5"), ("two.h5", "second.h5"), ("one.h5", "after.h5")] {
        let alone = g.stream(input, &cg, "alone.h5");
        g.assert_same(images, "alone.h5", 10, &(log(9101) + &alone));
    }
    assert!(log(9101).contains("nan in sample 5 of shot 3"), "{}", log(9101));
    // Both workers reconstructed some slices, and the images are equal to the images of one server.
    g.assert_same("distributed.h5", "local.h5", 6, &(log(9100) + &log(9101) + &log(9102)));
    for port in [9101, 9102] {
        assert!(log(port).contains("slice 5") || log(port).contains("slice 4"), "{}", log(port));
    }
}
