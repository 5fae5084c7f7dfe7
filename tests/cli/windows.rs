//! The program on Windows: names of files, devices, and Ctrl-C.

use crate::{with_lock, TempDir};
use std::fs;
use std::os::windows::process::CommandExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Arguments and files have names of any script, also in a folder with a long name.
#[test]
fn names_of_any_script() {
    let dir = TempDir::new();
    let folder = format!("Sch\u{e4}del\u{2013}\u{6838}\u{78c1}\u{5171}\u{632f}-{}", "x".repeat(100));
    fs::create_dir(dir.path(&folder)).unwrap();
    for name in ["K\u{f6}rper", "\u{6838}\u{78c1}", "\u{1f9e0}"] {
        let scan = format!("{folder}/{name}.h5");
        dir.ok(&format!("simulate --matrix 16,16 --coils 2 -o {scan}"));
        assert!(dir.ok(&format!("info {scan}")).contains("ISMRMRD raw data of 1 image"));
        for extension in ["h5", "cfl", "nii", "npy", "mat", "png", "dcm"] {
            let image = format!("{folder}\\{name}-image.{extension}");
            // Twice, so that an existing file is replaced.
            for _ in 0..2 {
                let out = dir.run(&format!("grid {scan} -o {image}"));
                assert_eq!(out.status, Some(0), "{out:?}");
            }
            assert!(dir.path(&image).exists(), "{image}");
        }
        assert_eq!(dir.error(&format!("{folder}/{name}-image.nii {folder}/{name}-image.npy --magnitude")), 0.0);
        dir.fails(1, &format!("info {folder}/{name}-absent.h5"), &[name, "absent"]);
    }
    // Upper and lower case denote the same file.
    dir.ok("simulate --matrix 16,16 --coils 2 -o scan.h5");
    dir.fails(1, "cg scan.h5 -o a.h5 --report A.H5", &["two outputs go to this file"]);
    dir.fails(1, "cg scan.h5 -o SCAN.H5", &["a file to be read"]);
    // Names that Windows does not allow, and a folder that it does not open.
    dir.fails(1, "cg scan.h5 -o a?.h5", &["a?.h5", "give a different name"]);
    dir.fails(1, "cg scan.h5 -o absent\\a.h5", &["the folder absent does not exist"]);
    for input in [".", &folder] {
        dir.fails(1, &format!("cg {input} -o a.h5"), &[input, "this is a folder"]);
    }
}

#[test]
fn devices_are_no_files() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 16,16 --coils 2 -o scan.h5");
    dir.ok("cg scan.h5 --iterations 2 -o a.h5 --report NUL --save-q nul");
    assert_eq!(dir.names(), ["a.h5", "scan.h5"]);
}

/// Ctrl-Break ends a reconstruction, and no temporary file remains. Windows cannot send Ctrl-C to one process only.
#[test]
fn interrupts_remove_temporary_files() {
    use windows_sys::Win32::System::Console::{AllocConsole, GenerateConsoleCtrlEvent, CTRL_BREAK_EVENT};
    use windows_sys::Win32::System::Threading::CREATE_NEW_PROCESS_GROUP;
    let dir = TempDir::new();
    dir.ok("simulate --matrix 128,128 --coils 2 -o scan.h5");
    // SAFETY: the call takes no address. It fails if this process already has a console.
    unsafe { AllocConsole() };
    let mut command = dir.command("cg - --iterations 1000000 --threads 1 -o a.h5");
    command.env("TMP", dir.path("temporary")).creation_flags(CREATE_NEW_PROCESS_GROUP);
    fs::create_dir(dir.path("temporary")).unwrap();
    command.stdin(fs::File::open(dir.path("scan.h5")).unwrap()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = with_lock(|| command.spawn()).unwrap();
    let start = Instant::now();
    while fs::read_dir(dir.path("temporary")).unwrap().count() == 0 {
        assert!(start.elapsed().as_secs() < 60 && child.try_wait().unwrap().is_none(), "no copy of the stream");
        std::thread::sleep(Duration::from_millis(20));
    }
    // Time for the iterations to begin.
    std::thread::sleep(Duration::from_secs(2));
    // SAFETY: the call takes no address. The process belongs to this test and was not waited for.
    if unsafe { GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, child.id()) } == 0 {
        child.kill().unwrap();
        child.wait().unwrap();
        return crate::common::say("skipped: Ctrl-Break, because this process has no console");
    }
    let out = child.wait_with_output().unwrap();
    assert!(out.status.code() == Some(130), "{out:?}");
    assert!(String::from_utf8_lossy(&out.stderr).contains("recon: error: interrupted"), "{out:?}");
    assert_eq!(fs::read_dir(dir.path("temporary")).unwrap().count(), 0);
    assert_eq!(dir.names(), ["scan.h5", "temporary"]);
}
