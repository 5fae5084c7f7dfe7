//! Files on the standard input and the standard output.

use crate::{only_image, with_lock, TempDir};
use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};

/// Environment variable of the folder for temporary files.
const TEMPORARY: &str = if cfg!(windows) { "TMP" } else { "TMPDIR" };

/// Returns the command of the program, whose temporary folder is `tmp` of the test folder.
fn command(dir: &TempDir, line: &str) -> Command {
    fs::create_dir_all(dir.path("tmp")).unwrap();
    let mut command = dir.command(line);
    command.env(TEMPORARY, dir.path("tmp")).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the program with these bytes on its standard input. It must leave no temporary file.
fn pipe(dir: &TempDir, line: &str, input: &[u8]) -> Output {
    let mut child = with_lock(|| command(dir, line).spawn()).unwrap();
    let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_vec());
    // A program that does not read its input closes the pipe.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let out = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert_eq!(fs::read_dir(dir.path("tmp")).unwrap().count(), 0, "{line}");
    out
}

fn ok(dir: &TempDir, line: &str, input: &[u8]) -> Vec<u8> {
    let out = pipe(dir, line, input);
    assert!(out.status.success() && out.stderr.is_empty(), "{line}: {}", String::from_utf8_lossy(&out.stderr));
    out.stdout
}

fn fails(dir: &TempDir, status: i32, line: &str, input: &[u8], words: &[&str]) {
    let out = pipe(dir, line, input);
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.code() == Some(status) && out.stdout.is_empty(), "{line}: {:?} {text}", out.status);
    assert!(text.starts_with("recon: error: ") && text.matches('\n').count() == 1, "{line}: {text}");
    words.iter().for_each(|word| assert!(text.contains(word), "{line}: no {word:?} in {text}"));
}

#[test]
fn every_format_passes_through_pipes() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 16,16 --coils 2 -o scan.h5");
    let scan = ok(&dir, "simulate --matrix 16,16 --coils 2 -o - --format h5", b"");
    assert!(scan == fs::read(dir.path("scan.h5")).unwrap());
    dir.ok("grid scan.h5 -o image.h5");
    for format in ["h5", "mrd", "nii", "nii.gz", "npy", "mat", "png"] {
        dir.ok(&format!("grid scan.h5 -o file.{format}"));
        let streamed = ok(&dir, &format!("grid - -o - --format {format}"), &scan);
        assert!(streamed == fs::read(dir.path(&format!("file.{format}"))).unwrap(), "{format}");
        if format == "png" {
            continue;
        }
        let image = ok(&dir, "convert - -o - --format mat", &streamed);
        fs::write(dir.path("again.mat"), image).unwrap();
        assert_eq!(only_image(&dir.path("again.mat")).data, only_image(&dir.path("image.h5")).data, "{format}");
        assert!(!ok(&dir, "info -", &streamed).is_empty());
        let compared = String::from_utf8(ok(&dir, "compare - image.h5", &streamed)).unwrap();
        assert!(compared.starts_with("error 0"), "{compared}");
    }
    // The other commands.
    let maps = ok(&dir, "coilmaps - -o - --format mat", &scan);
    fs::write(dir.path("maps.mat"), maps).unwrap();
    let samples =
        ok(&dir, "forward - --like scan.h5 --maps maps.mat -o - --format h5", &fs::read(dir.path("image.h5")).unwrap());
    assert!(!ok(&dir, "density - --density ramp -o - --format npy", &samples).is_empty());
    // Lines of the log go to the error stream.
    let out = pipe(&dir, "-v grid - -o - --format npy", &scan);
    assert!(out.stdout.starts_with(b"\x93NUMPY") && !out.stderr.is_empty());
}

#[test]
fn streams_that_cannot_be_are_errors() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 16,16 --coils 2 -o scan.h5");
    let scan = fs::read(dir.path("scan.h5")).unwrap();
    for (status, line, words) in [
        (2, "grid scan.h5 -o -", ["--format", ".npy"]),
        (2, "grid scan.h5 -o - --format cfl", ["pairs", "h5, mrd, nii, nii.gz, dcm, npy, mat, png"]),
        (2, "grid scan.h5 -o - --format jpg", ["jpg", "nii.gz"]),
        (2, "grid scan.h5 -o x.h5 --format npy", ["x.h5", "-o -"]),
        (1, "coilmaps scan.h5 -o - --format nii", ["complex", ".h5"]),
        (1, "cg scan.h5 -o - --format h5 --report -", ["--report -", "report to a file"]),
        (1, "forward scan.h5 --like scan.h5 -o - --format npy", ["-.npy", ".cfl"]),
    ] {
        fails(&dir, status, line, &scan, &words);
    }
    fails(&dir, 1, "grid - -o x.h5", b"", &["standard input is empty"]);
    fails(&dir, 1, "grid - -o x.h5", b"text", &["standard input", ".h5, .mrd, .nii, .nii.gz, .dcm, .npy, .mat"]);
    fails(&dir, 1, "grid - -o x.h5", &scan[..scan.len() / 2], &["standard_input.h5"]);
    assert_eq!(dir.names(), ["scan.h5", "tmp"]);
    // A file whose name looks like a stream.
    for output in ["-o ./-.npy", "--output=-.mat"] {
        assert_eq!(dir.ok(&format!("grid scan.h5 {output}")), "");
    }
    assert!(dir.path("-.npy").exists() && dir.path("-.mat").exists());
}

/// A reader that closes the stream ends the program without a message. The other outputs do not appear.
#[test]
fn a_broken_pipe_is_a_silent_failure() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 192,192 --shots 8 -o scan.h5");
    for other in ["", "--report report.json --save-q q"] {
        let line = format!("cg scan.h5 --iterations 1 -o - --format npy {other}");
        let mut child = with_lock(|| command(&dir, &line).spawn()).unwrap();
        let mut start = [0; 6];
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut start).unwrap();
        assert_eq!(&start, b"\x93NUMPY");
        // The rest is larger than the pipe.
        drop(stdout);
        let out = child.wait_with_output().unwrap();
        assert!(out.status.code() == Some(1) && out.stderr.is_empty(), "{out:?}");
        assert_eq!(dir.names(), ["scan.h5", "tmp"]);
        assert_eq!(fs::read_dir(dir.path("tmp")).unwrap().count(), 0);
    }
}

#[test]
#[cfg(unix)]
fn terminals_are_not_streams() {
    use std::os::fd::{FromRawFd, OwnedFd};
    let dir = TempDir::new();
    dir.ok("simulate --matrix 16,16 -o scan.h5");
    let (mut main, mut terminal) = (0, 0);
    let null = std::ptr::null_mut();
    // SAFETY: the call writes two descriptors; the other pointers may be null.
    assert_eq!(unsafe { libc::openpty(&mut main, &mut terminal, null, null.cast(), null.cast()) }, 0);
    // SAFETY: the descriptors are open, and nothing else owns them.
    let (_main, terminal) = unsafe { (OwnedFd::from_raw_fd(main), OwnedFd::from_raw_fd(terminal)) };
    let mut output = command(&dir, "grid scan.h5 -o - --format npy");
    output.stdout(terminal.try_clone().unwrap());
    let mut input = command(&dir, "grid - -o x.h5");
    input.stdin(terminal);
    for (mut command, words) in
        [(output, "the standard output is a terminal"), (input, "the standard input is a terminal")]
    {
        let out = with_lock(|| command.spawn()).unwrap().wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.code() == Some(1) && text.contains(words), "{out:?}");
    }
}
