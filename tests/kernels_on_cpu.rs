//! The GPU's kernels that check, sort, spread and interpolate samples, run on the CPU. Their sources are compiled as
//! C++, with coroutines as threads (tests/kernels_on_cpu/device.hpp). So their logic is tested on machines without a
//! GPU. Copies and instructions of the hardware, and races between threads, are not.
#![cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]

use recon::backend::cuda::compile::Kernels;
use recon::backend::cuda::{kernels_of_width, usual_kernels};
use std::path::{Path, PathBuf};
use std::process::Command;

mod common;
use common::{root, Random};

/// Returns the text with a different statement in place of the only one that begins like this.
fn with_statement(text: &str, beginning: &str, other: &str) -> String {
    let (before, rest) = text.split_once(beginning).unwrap();
    let (_, after) = rest.split_once(";\n").unwrap();
    assert!(!after.contains(beginning), "{beginning}");
    format!("{before}{other};\n{after}")
}

/// Returns the text of kernels in which the statements that only a compiler of CUDA takes are those of C++.
fn as_cpp(kernels: &Kernels) -> String {
    let text = with_statement(&kernels.text(), r#"asm volatile("ld.global"#, "failed = *check.state");
    let text = match kernels.name {
        "spreading" => with_statement(&text, r#"asm volatile("mma.sync"#, "device::multiply_add(d, a, b)"),
        _ => text,
    };
    text.replace("extern __shared__", "extern").replace("extern \"C\"", "")
}

/// Compiles kernels with the program of their name, with these further options, and runs it. Returns what it prints if
/// a result is wrong.
fn run(folder: &Path, kernels: &Kernels, options: &[&str], seed: u64) -> Option<String> {
    let sources = root().join("tests/kernels_on_cpu");
    std::fs::write(folder.join("kernels.h"), as_cpp(kernels)).unwrap();
    let program = folder.join("program");
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++17", "-O1", "-w", "-U_FORTIFY_SOURCE", "-I"]).arg(folder).arg("-I").arg(&sources);
    compiler.args(kernels.options()).args(options).arg(sources.join(kernels.name).with_extension("cpp"));
    let compiled = compiler.arg("-o").arg(&program).output().unwrap();
    let errors = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{} {:?}: {errors}", kernels.name, kernels.options());
    let ran = Command::new(program).arg(seed.to_string()).output().unwrap();
    (!ran.status.success()).then(|| format!("{:?}, {}", ran.status, String::from_utf8_lossy(&ran.stdout)))
}

/// Returns a new folder for one test.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("recon-kernels-on-cpu-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Returns the usual variants of the kernels of this name, which are `count`.
fn usual(name: &str, count: usize) -> Vec<Kernels> {
    let all: Vec<Kernels> = usual_kernels().into_iter().filter(|kernels| kernels.name == name).collect();
    assert_eq!(all.len(), count);
    all
}

/// Checks arrays in both precisions.
#[test]
fn arrays_are_checked() {
    let (folder, seed) = (folder("vector"), Random::fresh().seed);
    for kernels in &usual("vector", 2) {
        let wrong = run(&folder, kernels, &[], seed);
        assert!(wrong.is_none(), "seed {seed}: {:?}: {}", kernels.options(), wrong.unwrap());
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// Sorts by passes and by buckets in all precisions and dimensions; buckets both from shared memory and without it.
#[test]
fn samples_are_sorted() {
    let (folder, seed) = (folder("samples"), Random::fresh().seed);
    for kernels in &usual("samples", 10) {
        let options = kernels.options();
        let is_staged = ["-DBUCKETS=1", "-DSTAGED_BUCKETS=1"].iter().all(|o| options.iter().any(|other| other == o));
        let kinds: &[&[&str]] = if is_staged { &[&[], &["-DSTAGED_BUCKETS=0"]] } else { &[&[]] };
        for kind in kinds {
            let wrong = run(&folder, kernels, kind, seed);
            assert!(wrong.is_none(), "seed {seed}: {:?} {kind:?}: {}", kernels.options(), wrong.unwrap());
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// Runs the kernels of this name without this macro, for some widths, among them the narrowest and wide ones.
fn run_widths(name: &str, left_out: Option<&str>) {
    let (folder, seed) = (folder(name), Random::fresh().seed);
    for (width, bytes) in [(2, 4), (5, 4), (6, 4), (9, 4), (4, 8), (7, 8), (11, 8)] {
        for kernels in kernels_of_width(width, 6, bytes).iter().filter(|kernels| kernels.name == name) {
            let options = kernels.options();
            if options.iter().any(|option| Some(&option[..]) == left_out) {
                continue;
            }
            // The compute capability from which tensor cores take TF32.
            let further: &[&str] =
                if options.iter().any(|o| o == "-DTENSOR=1") { &["-D__CUDA_ARCH__=800"] } else { &[] };
            let wrong = run(&folder, kernels, further, seed);
            assert!(wrong.is_none(), "seed {seed}: {options:?}: {}", wrong.unwrap());
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn samples_are_interpolated() {
    run_widths("interpolation", None);
}

/// Spreads a segment per warp, with tensor cores and without.
#[test]
fn samples_are_spread() {
    run_widths("spreading", Some("-DTOGETHER=1"));
}
