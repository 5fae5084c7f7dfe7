//! The process that reads HDF5 files: ways to start it, and messages if a file cannot be opened.

use crate::{with_lock, TempDir};
use std::fs;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Prints a line that the test harness does not hide.
fn skip(why: &str) {
    crate::common::say(&format!("skipped: {why}"));
}

fn scan() -> TempDir {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 16,16 --shots 4 -o scan.h5");
    dir
}

fn output(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).env_remove("RUST_LOG");
    with_lock(|| command.spawn()).unwrap().wait_with_output().unwrap()
}

#[track_caller]
fn reads(command: &mut Command) {
    let out = output(command);
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success() && text.starts_with("ISMRMRD raw data of 1 image\n"), "{command:?}: {out:?}");
    assert!(out.stderr.is_empty(), "{command:?}: {out:?}");
}

/// Returns the dynamic loader of the program, by its name in the program's file.
#[cfg(target_os = "linux")]
fn loader() -> Option<PathBuf> {
    let program = fs::read(env!("CARGO_BIN_EXE_recon")).unwrap();
    let start = program.windows(4).position(|w| w == b"/lib")?;
    let name = program[start..].split(|&b| b == 0).next()?;
    let path = PathBuf::from(String::from_utf8(name.to_vec()).ok()?);
    path.exists().then_some(path)
}

#[test]
#[cfg(target_os = "linux")]
fn started_through_the_loader() {
    let Some(loader) = loader() else { return skip("the program through its loader, because none is found") };
    let dir = scan();
    let program = Path::new(env!("CARGO_BIN_EXE_recon"));
    fs::copy(program, dir.path("own-recon")).unwrap();
    for options in [&[][..], &["--argv0", "another"], &["--library-path", "/nowhere", "--argv0", "x"]] {
        if options.contains(&"--argv0")
            && !output(Command::new(&loader).args(options).arg(program).arg("--version")).status.success()
        {
            skip("a loader without the option --argv0");
            continue;
        }
        reads(Command::new(&loader).args(options).arg(program).args(["info", "scan.h5"]).current_dir(&dir.0));
        reads(Command::new(&loader).args(options).args(["./own-recon", "info", "scan.h5"]).current_dir(&dir.0));
    }
    // Commands succeed, and damaged files are recognised.
    let run = |line: &str| {
        let mut command = Command::new(&loader);
        output(command.arg(program).args(line.split(' ')).current_dir(&dir.0))
    };
    assert!(run("grid scan.h5 -o image.h5").status.success());
    fs::write(dir.path("cut.h5"), &fs::read(dir.path("scan.h5")).unwrap()[..3000]).unwrap();
    let text = String::from_utf8(run("info cut.h5").stderr).unwrap();
    assert!(text.contains("cut.h5: the file is truncated or damaged"), "{text}");
}

/// The reader is this program even if its file was removed meanwhile.
#[test]
#[cfg(target_os = "linux")]
fn program_without_a_name() {
    let dir = scan();
    fs::copy(env!("CARGO_BIN_EXE_recon"), dir.path("own-recon")).unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "exec 9<own-recon; rm own-recon; exec /proc/self/fd/9 info scan.h5"]).current_dir(&dir.0);
    reads(&mut command);
}

#[test]
#[cfg(target_os = "linux")]
fn without_proc() {
    let dir = scan();
    fs::copy(env!("CARGO_BIN_EXE_recon"), dir.path("own-recon")).unwrap();
    let hide = "mount -t tmpfs none /proc && exec \"$@\"";
    let hidden = || {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", hide, "sh"]).current_dir(&dir.0);
        command
    };
    match with_lock(|| hidden().arg("true").stderr(Stdio::null()).status()) {
        Ok(status) if status.success() => {}
        _ => return skip("the program without /proc, because /proc cannot be hidden here"),
    }
    let name = env!("CARGO_BIN_EXE_recon");
    reads(hidden().args([name, "info", "scan.h5"]));
    reads(hidden().args(["./own-recon", "info", "scan.h5"]));
    if let Some(loader) = loader() {
        reads(hidden().arg(loader).args(["./own-recon", "info", "scan.h5"]));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn reasons_why_a_file_is_not_opened() {
    let dir = scan();
    let message = |line: &str, locking: Option<&str>| {
        let mut command = dir.command(line);
        command.env_remove("HDF5_USE_FILE_LOCKING");
        if let Some(value) = locking {
            command.env("HDF5_USE_FILE_LOCKING", value);
        }
        let out = output(&mut command);
        (out.status.code(), String::from_utf8(out.stderr).unwrap())
    };
    // This process has the file open for writing.
    let file = fs::OpenOptions::new().write(true).open(dir.path("scan.h5")).unwrap();
    // SAFETY: the call takes no address, and the descriptor is open.
    assert_eq!(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }, 0);
    let (status, text) = message("info scan.h5", None);
    assert_eq!(status, Some(1), "{text}");
    for part in ["has locked the file", "HDF5_USE_FILE_LOCKING=FALSE"] {
        assert!(text.contains(part) && !text.contains("damaged"), "{text}");
    }
    // If the kernel lists its locks, the message contains the process.
    let list = fs::read_to_string("/proc/locks").unwrap_or_default();
    let own = format!(" {} ", std::process::id());
    if list.lines().any(|line| line.contains("FLOCK") && line.contains(&own)) {
        assert!(text.contains(&format!("process {} has locked", std::process::id())), "{text}");
    }
    assert_eq!(message("info scan.h5", Some("FALSE")).0, Some(0));
    drop(file);
    assert_eq!(message("info scan.h5", None), (Some(0), String::new()));

    // A copy of a file that is open for writing has the mark in its superblock.
    with_lock(|| {
        let open = hdf5::FileBuilder::new().with_fapl(|p| p.libver_latest()).create(dir.path("open.h5")).unwrap();
        open.create_group("dataset").unwrap();
        open.flush().unwrap();
        fs::copy(dir.path("open.h5"), dir.path("copy.h5")).unwrap();
    });
    let (status, text) = message("info copy.h5", None);
    assert!(status == Some(1) && text.contains("marked as open for writing") && text.contains("h5clear"), "{text}");
    fs::write(dir.path("cut.h5"), &fs::read(dir.path("scan.h5")).unwrap()[..3000]).unwrap();
    let (status, text) = message("info cut.h5", None);
    assert!(status == Some(1) && text.contains("truncated or damaged") && !text.contains("locked"), "{text}");
}
