//! Tests of the gadgets of gadgetron/. Messages and engine require only the ISMRMRD library. The gadgets are tested
//! in a real Gadgetron if one is installed: in GADGETRON_HOME, or on the PATH.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::process::Command;

#[path = "../common/mod.rs"]
mod common;
mod corrections;
mod harness;
mod images;
mod memory;
mod messages;
mod servers;

use common::{printed, run, say};
use harness::{build, comma_locale, configure, empty_folder, home, install, is_installed, Gadgetron};

#[test]
fn messages_and_engine() {
    if !is_installed("cmake") {
        return say("skipped: the gadgets' code without Gadgetron (no cmake)");
    }
    let folder = empty_folder("gadgetron-messages");
    let ismrmrd = folder.join("look");
    fs::create_dir_all(&ismrmrd).unwrap();
    let list = "cmake_minimum_required(VERSION 3.10)\nproject(look C CXX)\nfind_package(ISMRMRD REQUIRED)\n";
    fs::write(ismrmrd.join("CMakeLists.txt"), list).unwrap();
    let look = Command::new("cmake").arg("-S").arg(&ismrmrd).arg("-B").arg(ismrmrd.join("build")).output().unwrap();
    if !look.status.success() {
        return say("skipped: the gadgets' code without Gadgetron (no ISMRMRD library: install libismrmrd-dev)");
    }
    let prefix = install(&folder);
    let build = build(&folder, &[&prefix], false);
    let mut tests = Command::new("ctest");
    match comma_locale(&folder) {
        Some(locales) => _ = tests.env("LOCPATH", locales),
        None => say("skipped: the gadgets' numbers in a locale of C with decimal commas (install locales)"),
    }
    let text = run(tests.arg("--test-dir").arg(&build).arg("--output-on-failure"));
    assert!(text.contains("100% tests passed"), "{text}");
    versions(&folder, &prefix);
    fs::remove_dir_all(folder).unwrap();
}

/// Returns the error of CMake for the gadgets, or for their tests alone, with an empty package of this version. No
/// version: an empty text.
fn refusal(folder: &Path, prefixes: &[&Path], gadgets: bool, package: &str, version: &str) -> String {
    let package_folder = folder.join(format!("{package}-{version}"));
    fs::create_dir_all(&package_folder).unwrap();
    fs::write(package_folder.join(format!("{package}Config.cmake")), "").unwrap();
    if !version.is_empty() {
        let text = format!("set(PACKAGE_VERSION {version})\nset(PACKAGE_VERSION_COMPATIBLE TRUE)\n");
        fs::write(package_folder.join(format!("{package}ConfigVersion.cmake")), text).unwrap();
    }
    let mut configure = configure(&package_folder.join("build"), prefixes, gadgets);
    let done = configure.arg(format!("-D{package}_DIR={}", package_folder.display())).output().unwrap();
    assert!(!done.status.success(), "{package} {version}: {}", printed(&done));
    // CMake wraps lines.
    printed(&done).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Checks that versions that are not supported are refused with the supported ones.
fn versions(folder: &Path, prefix: &Path) {
    for (package, version, expected) in [
        ("Gadgetron", "4.5.0", "the gadgets require Gadgetron 4.6 or newer, before 5"),
        ("Gadgetron", "5.0.0", "the gadgets require Gadgetron 4.6 or newer, before 5"),
        ("Gadgetron", "", "has no version: set Gadgetron_DIR"),
        ("ISMRMRD", "1.7.2", "the gadgets require ISMRMRD 1.8 or newer, before 2"),
        ("ISMRMRD", "2.0.0", "the gadgets require ISMRMRD 1.8 or newer, before 2"),
    ] {
        let text = refusal(folder, &[prefix], package == "Gadgetron", package, version);
        assert!(text.contains(expected), "{package} {version}: {text}");
    }
}

#[test]
fn in_a_real_gadgetron() {
    let Some(home) = home() else {
        return say("skipped: the gadgets in a real Gadgetron (no installation found: set GADGETRON_HOME)");
    };
    let folder = empty_folder("gadgetron-real");
    let prefix = install(&folder);
    let build = build(&folder, &[&home, &prefix], true);
    let text = refusal(&folder, &[&home, &prefix], true, "ISMRMRD", "1.8.999");
    assert!(text.contains("two versions in one process crash"), "{text}");
    let g = Gadgetron { home, build, folder };
    if g.command("ismrmrd_hdf5_to_stream").arg("--help").output().is_err() {
        return say("skipped: the gadgets in a real Gadgetron (ismrmrd_hdf5_to_stream is not installed)");
    }
    images::images_equal_the_programs(&g);
    images::noise(&g);
    images::scanner_streams(&g);
    messages::causes(&g);
    memory::images_one_at_a_time(&g);
    corrections::moved_blades(&g);
    corrections::off_resonance(&g);
    images::volumes(&g);
    images::matrices(&g);
    images::orientation(&g);
    messages::incomplete_measurements(&g);
    messages::useless_samples(&g);
    images::repetitions_and_missing_shots(&g);
    images::windows(&g);
    images::branches(&g);
    messages::properties(&g);
    messages::locales(&g);
    messages::damaged_files(&g);
    memory::memory_of_a_long_series(&g);
    memory::memory_counted(&g);
    servers::servers(&g);
    fs::remove_dir_all(&g.folder).unwrap();
}
