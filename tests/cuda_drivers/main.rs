//! Old drivers, without a GPU: the library needs no function that the driver of CUDA 11.4 does not have, and finds
//! NVRTC under the name of each version. A driver in C takes the place of NVIDIA's (driver.c).
#![cfg(any(target_os = "linux", windows))]

#[path = "../common/mod.rs"]
mod common;

use common::{root, run, say};
use recon::backend::cuda::{gpu::Gpu, library, nvrtc, release_unused, runtime, usual_kernels};
use recon::ErrorKind;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The driver's file.
const DRIVER: &str = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" };
/// NVRTC's file of CUDA 11.2 to 11.8, 12 and 13.
const NVRTC: [&str; 3] = if cfg!(windows) {
    ["nvrtc64_112_0.dll", "nvrtc64_120_0.dll", "nvrtc64_130_0.dll"]
} else {
    ["libnvrtc.so.11.2", "libnvrtc.so.12", "libnvrtc.so.13"]
};

/// Returns the names of the driver's functions after a prefix in a text.
fn functions_after(prefix: &str, text: &str) -> BTreeSet<String> {
    let name = |rest: &str| rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect::<String>();
    let names = text.match_indices(prefix).map(|(at, _)| name(&text[at + prefix.len()..]));
    names.filter(|name| name.starts_with("cu") && name[2..].starts_with(|c: char| c.is_ascii_uppercase())).collect()
}

fn sources(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { sources(&path) } else { std::fs::read_to_string(path).unwrap() }).collect()
}

#[test]
fn the_library_calls_only_functions_of_cuda_11_4() {
    let driver = std::fs::read_to_string(root().join("tests/cuda_drivers/driver.c")).unwrap();
    let (old, new) = driver.split_once("#if VERSION >= 12000").unwrap();
    let (new, rest) = new.split_once("#endif").unwrap();
    let known = functions_after("status ", &format!("{old}{rest}"));
    let called = functions_after("cu::", &sources(&root().join("src")));
    assert!(called.len() > 40, "{called:?}");
    // A function that is missing in driver.c: look up its version in cuda.h first.
    assert_eq!(called, known);
    assert_eq!(functions_after("status ", new).into_iter().collect::<Vec<_>>(), ["cuCtxGetId"]);
}

/// Builds the driver of a version of CUDA, and NVRTC. `None` without a C compiler. On Windows, tests/windows/run.sh has
/// compiled them.
fn build(version: i32) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("driver-{}-{version}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    if cfg!(windows) {
        let Some(drivers) = std::env::var_os("RECON_TEST_CUDA_DRIVERS") else {
            say("skipped: old drivers, because RECON_TEST_CUDA_DRIVERS names no folder with driver-<version>.dll");
            return None;
        };
        std::fs::copy(Path::new(&drivers).join(format!("driver-{version}.dll")), folder.join(DRIVER)).unwrap();
        return Some(folder);
    }
    if Command::new("cc").arg("--version").output().is_err() {
        say("skipped: old drivers, because there is no C compiler here");
        return None;
    }
    let mut command = Command::new("cc");
    command.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]).arg(format!("-DVERSION={version}"));
    run(command.arg("-o").arg(folder.join(DRIVER)).arg(root().join("tests/cuda_drivers/driver.c")));
    // The first name is searched first. An empty file hides NVRTC of this machine, whose name has no version.
    std::fs::copy(folder.join(DRIVER), folder.join("libcuda.so")).unwrap();
    std::fs::write(folder.join("libnvrtc.so"), "").unwrap();
    Some(folder)
}

/// Runs a part of this program in a process with the driver. Returns its output.
fn run_part(part: &str, folder: &Path, nvrtc: &str) -> String {
    std::fs::copy(folder.join(DRIVER), folder.join(nvrtc)).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    let search_path = if cfg!(windows) { "PATH" } else { "LD_LIBRARY_PATH" };
    command.args(["--exact", part, "--ignored", "--nocapture"]).env(search_path, folder);
    command.env("RECON_CACHE_DIR", folder.join("kernels")).env_remove("RECON_NVRTC");
    // Toolkits of this machine are not searched.
    command.env_remove("CUDA_HOME").env_remove("CUDA_PATH");
    run(&mut command)
}

#[test]
#[ignore = "a part of old_drivers_work"]
fn a_process_with_an_old_driver() {
    /// Asks the driver for one of its counters.
    fn count(name: &[u8]) -> i32 {
        // SAFETY: the file is loaded already, and its functions of these names have this type.
        unsafe {
            let driver = libloading::Library::new(if cfg!(windows) { DRIVER } else { "libcuda.so" }).unwrap();
            driver.get::<unsafe extern "C" fn() -> i32>(name).unwrap()()
        }
    }
    let version = library::driver_version().unwrap();
    assert_eq!(nvrtc::version().unwrap(), version);
    assert_eq!((runtime::count(), runtime::properties(0).unwrap().name), (1, "stub".to_owned()));
    assert_eq!(runtime::first_usable(), Some(0));
    {
        // SAFETY: without a caller's stream.
        let gpu = unsafe { Gpu::new(0, None, 0) }.unwrap();
        let kernels = usual_kernels();
        for kernels in &kernels[..4] {
            gpu.function(kernels, "any_name", 50_000).unwrap();
        }
        let array = gpu.array::<f32>(1 << 20, "an array").unwrap();
        assert_eq!((array.len(), count(b"stub_retained"), count(b"stub_modules")), (1 << 20, 1, 4));
    }
    // Drivers before CUDA 12 do not report whether the GPU was reset, so contexts end with the last plan.
    let kept = i32::from(version.0 >= 12);
    assert_eq!(count(b"stub_retained"), kept);
    release_unused();
    for name in ["stub_retained", "stub_modules", "stub_streams", "stub_allocations"] {
        assert_eq!(count(name.as_bytes()), 0, "{name}");
    }
    println!("driver {version:?}");
}

#[test]
#[ignore = "a part of old_drivers_work"]
fn a_process_with_a_driver_that_is_too_old() {
    let e = library::driver_version().unwrap_err();
    assert!(e.kind() == ErrorKind::NoDevice && e.message().contains("only CUDA 11.1, but 11.4 is required"), "{e}");
    assert_eq!(runtime::first_usable(), None);
}

/// Two versions of NVRTC, of which the driver takes code of the older one only.
#[test]
#[ignore = "a part of old_drivers_work"]
fn a_process_with_two_compilers() {
    assert_eq!((library::driver_version().unwrap(), nvrtc::version().unwrap()), ((11, 4), (11, 4)));
}

#[test]
fn old_drivers_work() {
    let part = "a_process_with_an_old_driver";
    for (version, nvrtc) in [(11040, NVRTC[0]), (11080, NVRTC[0]), (12000, NVRTC[1])] {
        let Some(folder) = build(version) else { return };
        let text = run_part(part, &folder, nvrtc);
        assert!(text.contains(&format!("driver ({}, {})", version / 1000, version % 1000 / 10)), "{text}");
        std::fs::remove_dir_all(folder).unwrap();
    }
    let (too_old, old, new) = (build(11010).unwrap(), build(11040).unwrap(), build(13000).unwrap());
    run_part("a_process_with_a_driver_that_is_too_old", &too_old, NVRTC[0]);
    std::fs::copy(new.join(DRIVER), old.join(NVRTC[2])).unwrap();
    run_part("a_process_with_two_compilers", &old, NVRTC[0]);
    for folder in [too_old, old, new] {
        std::fs::remove_dir_all(folder).unwrap();
    }
}
