//! The GPU's kernels that check, sort, spread and interpolate samples, run on the CPU. Their sources are compiled as
//! C++, with coroutines as threads (tests/kernels_on_cpu/device.hpp). So their logic is tested on machines without a
//! GPU. Copies and instructions of the hardware, and races between threads, are not.
#![cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]

use recon::backend::cuda::compile::Kernels;
use recon::backend::cuda::{kernels_of_width, usual_kernels};
use std::path::Path;
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
        "spreading" => {
            let text =
                with_statement(&text, r#"asm("mma.sync.aligned.m16n8k16"#, "device::multiply_add(c, a, {b0, b1})");
            let text = with_statement(&text, r#"asm("cvt.rn.f16x2"#, "d = device::pack(low, high)");
            with_statement(&text, r#"asm("{.reg .f16 a, b; mov"#, "device::unpack(parts.x, high_a, high_b)")
        }
        _ => text,
    };
    text.replace("extern __shared__", "extern").replace("extern \"C\"", "")
}

/// Compiles kernels with the program of their name, with these further options, and runs it. The program fails and
/// prints what is wrong if a result is.
fn run(folder: &Path, kernels: &Kernels, further: &[&str], seed: u64) {
    let sources = root().join("tests/kernels_on_cpu");
    std::fs::write(folder.join("kernels.h"), as_cpp(kernels)).unwrap();
    let program = folder.join("program");
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++17", "-O1", "-w", "-U_FORTIFY_SOURCE", "-I"]).arg(folder).arg("-I").arg(&sources);
    compiler.args(kernels.options()).args(further).arg(sources.join(kernels.name).with_extension("cpp"));
    let compiled = compiler.arg("-o").arg(&program).output().unwrap();
    let errors = String::from_utf8_lossy(&compiled.stderr);
    let what = format!("{} {:?} {further:?}", kernels.name, kernels.options());
    assert!(compiled.status.success(), "{what}: {errors}");
    let ran = Command::new(program).arg(seed.to_string()).output().unwrap();
    let wrong = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "seed {seed}: {what}: {:?}, {wrong}", ran.status);
}

/// Runs variants of the kernels of one file, with further options of each.
fn run_all(variants: &[(Kernels, &[&str])]) {
    let (name, seed) = (variants[0].0.name, Random::fresh().seed);
    let folder = std::env::temp_dir().join(format!("recon-kernels-on-cpu-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (kernels, further) in variants {
        run(&folder, kernels, further, seed);
    }
    std::fs::remove_dir_all(folder).unwrap();
}

fn has_option(kernels: &Kernels, option: &str) -> bool {
    kernels.options().iter().any(|other| other == option)
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
    run_all(&usual("vector", 2).into_iter().map(|kernels| (kernels, &[][..])).collect::<Vec<_>>());
}

/// Sorts by passes and by buckets in all precisions and dimensions; buckets both from shared memory and without it.
#[test]
fn samples_are_sorted() {
    let mut variants: Vec<(Kernels, &[&str])> = Vec::new();
    // The test's program has the kernels of both programs.
    for kernels in usual("samples", 20).into_iter().filter(|kernels| has_option(kernels, "-DPROGRAM=1")) {
        if has_option(&kernels, "-DBUCKETS=1") && has_option(&kernels, "-DSTAGED_BUCKETS=1") {
            variants.push((kernels.clone(), &["-DPROGRAM=0", "-DSTAGED_BUCKETS=0"]));
        }
        variants.push((kernels, &["-DPROGRAM=0"]));
    }
    run_all(&variants);
}

/// Returns the kernels of this name for some widths, among them the narrowest and wide ones.
fn of_widths(name: &str) -> impl Iterator<Item = Kernels> + '_ {
    let widths = [(2, 4), (5, 4), (6, 4), (9, 4), (10, 4), (4, 8), (7, 8), (11, 8)];
    let all = widths.into_iter().flat_map(|(width, bytes)| kernels_of_width(width, 6, bytes));
    all.filter(move |kernels| kernels.name == name)
}

#[test]
fn samples_are_interpolated() {
    run_all(&of_widths("interpolation").map(|kernels| (kernels, &[][..])).collect::<Vec<_>>());
}

/// Spreads a segment per warp, with tensor cores and without.
#[test]
fn samples_are_spread() {
    let variant = |kernels: Kernels| {
        // The compute capability from which tensor cores take TF32.
        let further: &[&str] = if has_option(&kernels, "-DTENSOR=1") { &["-D__CUDA_ARCH__=800"] } else { &[] };
        (kernels, further)
    };
    let of_segments = of_widths("spreading").filter(|kernels| !has_option(kernels, "-DTOGETHER=1"));
    run_all(&of_segments.map(variant).collect::<Vec<_>>());
}
