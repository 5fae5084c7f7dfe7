//! Kernels, without a GPU: all kernels compile to machine code for all architectures. Damaged files in the folder of
//! compiled kernels, and several processes that fill it at once, do no harm. Needs NVRTC, which `make test` gets from
//! PyPI.

use recon::backend::cuda::compile::{code, compile, precompile, Kernels};
use recon::backend::cuda::{kernels_of_width, nvrtc, usual_kernels};
use recon::backend::{MAX_DEGREE, MAX_WIDTH};
use recon::{Error, ErrorKind};
use std::path::{Path, PathBuf};

mod common;
use common::{root, say};

const ARCHITECTURES: [&str; 7] = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"];

/// Returns whether NVRTC is available. If not, prints one line per test.
fn compiler() -> bool {
    let there = nvrtc::version();
    if let Err(e) = &there {
        say(&format!("skipped: compiling the GPU's kernels: {e}"));
    }
    there.is_ok()
}

/// Returns a folder for one test.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("recon-kernels-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

/// Returns the source of kernels, and the part of it that is compiled.
fn program(kernels: &Kernels) -> (&'static str, Option<String>) {
    (kernels.name, kernels.options().into_iter().find(|option| option.starts_with("-DPROGRAM=")))
}

/// Returns some of the usual kernels: up to four of each program, from the narrowest to the widest.
fn some_of_each() -> Vec<Kernels> {
    let all = usual_kernels();
    let mut programs: Vec<_> = all.iter().map(program).collect();
    programs.sort_unstable();
    programs.dedup();
    let some = |kind| {
        let of: Vec<&Kernels> = all.iter().filter(|k| program(k) == kind).collect();
        let mut at = vec![0, of.len() / 3, 2 * of.len() / 3, of.len() - 1];
        at.dedup();
        at.into_iter().map(|i| of[i].clone()).collect::<Vec<_>>()
    };
    programs.into_iter().flat_map(some).collect()
}

/// A plan compiles only what it needs: each program of a transform has the kernels of one step.
#[test]
fn a_program_of_a_transform_has_the_kernels_of_one_step() {
    if !compiler() {
        return;
    }
    const STEPS: [(&str, &[&str]); 6] = [
        ("-DPROGRAM=1", &["fft_up", "fft_down"]),
        ("-DPROGRAM=2", &["fft_whole"]),
        ("-DPROGRAM=3", &["fft_kernel"]),
        ("-DPROGRAM=4", &["fft_convolve"]),
        ("-DPROGRAM=5", &["fft_up_maps"]),
        ("-DPROGRAM=6", &["fft_down_maps"]),
    ];
    let all = usual_kernels();
    for (option, expected) in STEPS {
        let is_step = |k: &&Kernels| k.name == "fft" && program(k).1.as_deref() == Some(option);
        let code = compile(all.iter().find(is_step).unwrap(), "sm_90").unwrap();
        let has = |name: &str| code.windows(name.len() + 2).any(|at| at == format!("\0{name}\0").as_bytes());
        for (_, names) in STEPS {
            for name in names {
                assert_eq!(has(name), expected.contains(name), "{option}: {name}");
            }
        }
    }
}

/// Launches let a kernel start before earlier ones have ended, so that each must wait for them first.
#[test]
fn every_kernel_waits_for_the_earlier_ones() {
    let mut kernels = 0;
    for file in std::fs::read_dir(root().join("kernels")).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        for kernel in text.split("extern \"C\" __global__").skip(1) {
            let body = kernel.split_once('{').unwrap().1.trim_start_matches(['\\', '\n', ' ']);
            assert!(body.starts_with("begin_kernel();"), "{path:?}: {}", kernel.split_once('{').unwrap().0);
            kernels += 1;
        }
    }
    assert!(kernels > 50, "{kernels} kernels");
}

/// Checks that keys are unique. Two kernels with the same key would be confused, in the folder and in the memory of the
/// GPU.
#[test]
fn keys_tell_kernels_apart() {
    let all = usual_kernels();
    for (i, kernels) in all.iter().enumerate() {
        for other in &all[..i] {
            assert_eq!(kernels.key() == other.key(), kernels == other, "{kernels:?} and {other:?}");
        }
        let changed = kernels.clone().with("SOMETHING", "else".to_owned());
        assert_ne!(kernels.key(), changed.key(), "a macro that {} was given later", kernels.name);
    }
    assert!(all.len() > 100, "{} kernels", all.len());
}

#[test]
fn kernels_compile_for_every_architecture() {
    if !compiler() {
        return;
    }
    let kernels = some_of_each();
    for architecture in ARCHITECTURES {
        let folder = folder(architecture);
        precompile(&kernels, architecture, &folder, |_| ()).unwrap();
        let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|f| f.unwrap()).collect();
        assert_eq!(files.len(), kernels.len(), "{architecture}");
        for file in files {
            let bytes = std::fs::read(file.path()).unwrap();
            // A file consists of our header and a cubin, which is an ELF file.
            assert_eq!(&bytes[24..28], b"\x7fELF", "{:?}", file.path());
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

/// Checks all widths in both precisions, including one that no tolerance of single precision selects.
#[test]
fn kernels_compile_for_every_width() {
    if !compiler() {
        return;
    }
    for width in 2..=MAX_WIDTH {
        // The highest degree of all windows if the widest has it; otherwise one of many.
        let degree = if width == MAX_WIDTH { MAX_DEGREE } else { width };
        for bytes in [4, 8] {
            for kernels in kernels_of_width(width, degree, bytes) {
                let code = compile(&kernels, "sm_90").unwrap();
                assert!(code.starts_with(b"\x7fELF"), "width {width}, {bytes} bytes: {kernels:?}");
            }
        }
    }
}

#[test]
fn what_does_not_compile_is_an_error_with_the_compilers_words() {
    if !compiler() {
        return;
    }
    let broken = Kernels::new("broken", "extern \"C\" __global__ void k() { undeclared = 1; }", 4, &[]);
    let e = compile(&broken, "sm_90").unwrap_err();
    assert_eq!(e.kind(), ErrorKind::DriverIncomplete);
    assert!(e.message().contains("undeclared") && e.message().contains("broken"), "{e}");
    let e = compile(&usual_kernels()[0], "sm_10").unwrap_err();
    assert!(e.message().contains("sm_10"), "{e}");
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error_that_names_it() {
    if !compiler() {
        return;
    }
    let file = folder("file");
    std::fs::write(&file, b"not a folder").unwrap();
    let e = precompile(&usual_kernels()[..1], "sm_90", &file, |_| ()).unwrap_err();
    assert!(e.kind() == ErrorKind::IO && e.message().contains(file.to_str().unwrap()), "{e}");
    std::fs::remove_file(&file).unwrap();
}

/// Acts as the driver: accepts an ELF file that is long enough for its section headers.
fn load(code: &[u8]) -> recon::Result<Vec<u8>> {
    let number = |at: usize, bytes: usize| code[at..at + bytes].iter().rev().fold(0, |n, &b| n << 8 | b as usize);
    match code.starts_with(b"\x7fELF") && number(0x28, 8) + number(0x3a, 2) * number(0x3c, 2) <= code.len() {
        true => Ok(code.to_vec()),
        false => Err(Error::new(ErrorKind::DriverIncomplete, "not a cubin")),
    }
}

/// Returns the only file of a folder.
fn only_file(folder: &Path) -> PathBuf {
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

#[test]
fn files_that_are_damaged_or_of_another_version_are_made_anew() {
    if !compiler() {
        return;
    }
    let folder = folder("damage");
    let kernels = &usual_kernels()[0];
    let good = code(kernels, "sm_90", Some(&folder), load).unwrap();
    let path = only_file(&folder);
    let kept = std::fs::read(&path).unwrap();
    let mut flipped = kept.clone();
    flipped[kept.len() / 2] ^= 1;
    let mut older = kept.clone();
    older[8] = 1;
    let mut other = kept.clone();
    other[7] = b'9';
    for (bad, what) in [
        (&kept[..kept.len() / 2], "cut in half"),
        (&kept[..10], "cut in its head"),
        (&[][..], "empty"),
        (&flipped, "damaged"),
        (&older, "of another NVRTC"),
        (&other, "of another layout"),
    ] {
        std::fs::write(&path, bad).unwrap();
        assert_eq!(code(kernels, "sm_90", Some(&folder), load).unwrap(), good, "{what}");
        assert!(std::fs::read(&path).unwrap() == kept, "a file {what} was left");
    }
    // A complete file is used: the returned code is not what the compiler would produce.
    let marked = |code: &[u8]| [code, b"marked"].concat();
    recon::backend::cuda::compile::write(&folder, kernels, "sm_90", &marked(&good)).unwrap();
    assert_eq!(code(kernels, "sm_90", Some(&folder), load).unwrap(), marked(&good));
    // Code that the driver rejects is compiled again.
    let picky = |code: &[u8]| match code.ends_with(b"marked") {
        true => Err(Error::new(ErrorKind::DriverIncomplete, "refused")),
        false => load(code),
    };
    assert_eq!(code(kernels, "sm_90", Some(&folder), picky).unwrap(), good);
    assert!(std::fs::read(&path).unwrap() == kept);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_folder_that_cannot_be_used_costs_time_only() {
    if !compiler() {
        return;
    }
    let file = folder("nofolder");
    std::fs::write(&file, b"not a folder").unwrap();
    let kernels = &usual_kernels()[0];
    let code_there = code(kernels, "sm_90", Some(&file), load).unwrap();
    assert_eq!(code_there, code(kernels, "sm_90", None, load).unwrap());
    assert_eq!(std::fs::read(&file).unwrap(), b"not a folder");
    std::fs::remove_file(&file).unwrap();
}

/// Code of each process of the next test.
#[test]
#[ignore = "a part of several_processes_may_fill_one_folder_at_once"]
fn a_process_of_the_crowd() {
    let Some(folder) = std::env::var_os("RECON_TEST_CROWD") else { return };
    for k in &usual_kernels()[..2] {
        assert_eq!(code(k, "sm_89", Some(Path::new(&folder)), load).unwrap(), compile(k, "sm_89").unwrap());
    }
}

#[test]
fn several_processes_may_fill_one_folder_at_once() {
    if !compiler() {
        return;
    }
    let folder = folder("processes");
    let process = || {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "a_process_of_the_crowd", "--ignored"]).env("RECON_TEST_CROWD", &folder);
        command.stdout(std::process::Stdio::null()).spawn().unwrap()
    };
    let crowd: Vec<_> = (0..4).map(|_| process()).collect();
    for mut process in crowd {
        assert!(process.wait().unwrap().success());
    }
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|f| f.unwrap().file_name()).collect();
    assert_eq!(files.len(), 2, "{files:?}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn many_may_fill_one_folder_at_once() {
    if !compiler() {
        return;
    }
    let folder = folder("crowd");
    let all = usual_kernels();
    let kernels = &all[..all.len().min(2)];
    let expected: Vec<_> = kernels.iter().map(|k| compile(k, "sm_86").unwrap()).collect();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..3 {
                    for (k, expected) in kernels.iter().zip(&expected) {
                        assert_eq!(&code(k, "sm_86", Some(&folder), load).unwrap(), expected);
                    }
                }
            });
        }
    });
    let names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|f| f.unwrap().file_name()).collect();
    assert_eq!(names.len(), kernels.len(), "{names:?}");
    std::fs::remove_dir_all(&folder).unwrap();
}
