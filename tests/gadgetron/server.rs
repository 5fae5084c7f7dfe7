//! Tests of the gadgets of gadgetron/. Messages and engine require only the ISMRMRD library. The gadgets are tested
//! in a real Gadgetron if one is installed: in GADGETRON_HOME, or on the PATH.
#![cfg(target_os = "linux")]

use std::fs;
use std::process::Command;

#[path = "../common/mod.rs"]
mod common;
mod corrections;
mod harness;
mod images;
mod memory;
mod messages;
mod servers;

use common::{run, say};
use harness::{build, empty_folder, home, install, is_installed, Gadgetron};

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
    let text = run(Command::new("ctest").arg("--test-dir").arg(&build).arg("--output-on-failure"));
    assert!(text.contains("100% tests passed"), "{text}");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn in_a_real_gadgetron() {
    let Some(home) = home() else {
        return say("skipped: the gadgets in a real Gadgetron (no installation found: set GADGETRON_HOME)");
    };
    let folder = empty_folder("gadgetron-real");
    let prefix = install(&folder);
    let build = build(&folder, &[&home, &prefix], true);
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
    messages::damaged_files(&g);
    memory::memory_of_a_long_series(&g);
    memory::memory_counted(&g);
    servers::servers(&g);
    fs::remove_dir_all(&g.folder).unwrap();
}
