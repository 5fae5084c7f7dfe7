//! Outputs: no file of the user is lost, and a command writes either all of its outputs or none of them.
#![cfg(unix)]

use crate::{noise, scan, space, with_lock, write_dataset, TempDir};
use recon::trajectory::SpokeOrder;
use recon::{Geometry, Normal, Options, Plan, Trajectory};
use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{symlink, FileTypeExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;

const CG: &str = "cg scan.h5 --iterations 2";

fn with_scan() -> TempDir {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 16,16 --coils 2 --maps maps.cfl --truth truth.h5 -o scan.h5");
    dir
}

fn fifo(path: &Path) {
    let name = std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: the name ends in 0.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
}

#[test]
fn devices_fifos_and_links_are_kept() {
    let dir = with_scan();
    dir.ok(&format!("{CG} -o right.h5 --report right.json --save-q right.q"));
    dir.ok(&format!("{CG} -o a.h5 --report /dev/null --save-q /dev/null"));
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());

    // A FIFO transports the bytes that a file would contain.
    fifo(&dir.path("fifo.h5"));
    fifo(&dir.path("fifo.q"));
    let readers = ["fifo.h5", "fifo.q"].map(|name| {
        let path = dir.path(name);
        std::thread::spawn(move || fs::read(path).unwrap())
    });
    dir.ok(&format!("{CG} -o fifo.h5 --save-q fifo.q"));
    let [image, q] = readers.map(|r| r.join().unwrap());
    fs::write(dir.path("through.h5"), image).unwrap();
    assert_eq!(dir.error("through.h5 right.h5"), 0.0);
    assert_eq!(q, fs::read(dir.path("right.q")).unwrap());
    assert!(fs::metadata(dir.path("fifo.h5")).unwrap().file_type().is_fifo());

    // The target of a link is replaced, or created if it does not exist. The link stays.
    fs::create_dir(dir.path("folder")).unwrap();
    for (name, to) in [("link.h5", "folder/a.h5"), ("link.json", "link2.json"), ("link2.json", "folder/r.json")] {
        symlink(to, dir.path(name)).unwrap();
    }
    for _ in 0..2 {
        dir.ok(&format!("{CG} -o link.h5 --report link.json"));
        assert_eq!(dir.error("folder/a.h5 right.h5"), 0.0);
        assert!(fs::read_to_string(dir.path("folder/r.json")).unwrap().starts_with('['));
        assert!(["link.h5", "link.json", "link2.json"].iter().all(|l| dir.path(l).is_symlink()));
    }

    // The standard output as `-` and under the names of its descriptor.
    let line = format!("{CG} -o b.h5 --report");
    for name in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        assert!(dir.ok(&format!("{line} {name}")).contains("\"residuals\""), "{name}");
        assert!(!dir.path("-").exists() && dir.error("b.h5 right.h5") == 0.0);
    }
    // A file that the standard output was redirected to keeps its contents, whether it was opened to be appended to
    // or at a position. A socket, which cannot be opened by name, receives the bytes as well.
    for append in [true, false] {
        fs::write(dir.path("out"), "before\n").unwrap();
        let mut out = fs::File::options().write(true).append(append).open(dir.path("out")).unwrap();
        out.seek(SeekFrom::End(0)).unwrap();
        assert!(with_lock(|| dir.command(&format!("{line} /dev/stdout")).stdout(out).status()).unwrap().success());
        let text = fs::read_to_string(dir.path("out")).unwrap();
        assert!(text.starts_with("before\n[") && text.ends_with("]\n"), "{text}");
    }
    let (mut reader, socket) = UnixStream::pair().unwrap();
    let socket = OwnedFd::from(socket);
    assert!(with_lock(|| dir.command(&format!("{line} /dev/stdout")).stdout(socket).status()).unwrap().success());
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert!(text.contains("\"residuals\""), "{text}");
    for (name, words) in [("/dev/fd/99", "Bad file descriptor"), ("/dev/fd/0", "for reading only")] {
        dir.fails(1, &format!("{line} {name}"), &[name, words, "use a file"]);
    }
    dir.fails(1, &format!("{CG} -o b.h5 --save-q -"), &["--save-q -", "./-"]);
    // The bytes for a stream need a folder for temporary files.
    let mut command = dir.command(&format!("{line} /dev/null"));
    let out = with_lock(|| command.env("TMPDIR", dir.path("none")).output()).unwrap();
    let text = String::from_utf8_lossy(&out.stderr);
    assert!(!out.status.success() && text.contains("/dev/null: ") && text.contains("set TMPDIR"), "{text}");
    // The image is written even if the reader of the report ends.
    let mut command = dir.command(&format!("{CG} -o left.h5 --report -"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = with_lock(|| command.spawn()).unwrap();
    drop(child.stdout.take());
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success() && out.stderr.is_empty() && dir.path("left.h5").exists(), "{out:?}");
    assert!(!dir.names().iter().any(|n| n.contains(".part")));
}

#[test]
fn outputs_in_one_file_are_errors() {
    let dir = with_scan();
    dir.ok(&format!("{CG} -o there.h5"));
    fs::hard_link(dir.path("there.h5"), dir.path("second.h5")).unwrap();
    symlink("a.h5", dir.path("link.h5")).unwrap();
    symlink(".", dir.path("here")).unwrap();
    fifo(&dir.path("fifo"));
    let twice = "two outputs go to this file";
    for (outputs, words) in [
        ("-o a.h5 --report a.h5", [twice, "a.h5"]),
        ("-o a.h5 --save-q a.h5", [twice, "a.h5"]),
        ("-o a.h5 --save-q q --report q", [twice, "q"]),
        ("-o a.h5 --report ./a.h5", ["./a.h5, which is a.h5 as well", twice]),
        ("-o a.h5 --report here/./here/a.h5", ["which is a.h5 as well", twice]),
        ("-o a.h5 --report link.h5", ["link.h5", twice]),
        ("-o there.h5 --report second.h5", ["second.h5", twice]),
        ("-o t.cfl --report t.hdr", ["t.hdr", twice]),
        ("-o t.hdr --save-q t.cfl", ["t.cfl", twice]),
        ("-o a.h5 --save-q fifo --report fifo", ["fifo", twice]),
        // An output that is also an input, or one file of an input pair.
        ("-o a.h5 --report here/scan.h5", ["a file to be read", "scan.h5"]),
        ("-o a.h5 --maps maps.cfl --report maps.hdr", ["a file to be read", "maps.hdr"]),
        ("-o maps.hdr --maps maps.cfl", ["a file to be read", "maps"]),
        ("-o a.h5 --report folder/", ["folder/", "not a file name"]),
        ("-o a.h5 --report .", [".", "not a file name"]),
        ("-o a.h5 --report here", ["here", "this is a folder"]),
    ] {
        dir.fails(1, &format!("{CG} {outputs}"), &words);
    }
    let simulate = "simulate --matrix 16,16 --coils 2";
    for outputs in [
        "--truth a.h5 -o ./a.h5",
        "--truth k_traj.cfl -o k.cfl",
        "--truth a.h5 --maps here/a.h5 -o b.h5",
        "--maps k.hdr -o k.cfl",
    ] {
        dir.fails(1, &format!("{simulate} {outputs}"), &[twice]);
    }
    symlink("truth.h5", dir.path("truth.png")).unwrap();
    dir.fails(1, "compare there.h5 truth.h5 --picture truth.png", &["a file to be read"]);
    dir.fails(1, "compare there.h5 truth.h5 --picture nowhere/a.png", &["nowhere", "does not exist"]);
}

/// Errors of a full device, and of a limit on the length of files, which has the effect of a full disk.
#[test]
#[cfg(target_os = "linux")]
fn all_outputs_or_none() {
    let dir = with_scan();
    for outputs in
        ["-o a.h5 --report /dev/full", "-o a.cfl --save-q /dev/full", "-o a.h5 --save-q q --report /dev/full"]
    {
        dir.fails(1, &format!("{CG} {outputs}"), &["/dev/full", "No space left"]);
    }
    dir.ok(&format!("{CG} -o old.h5 --report old.json"));
    let before = fs::read(dir.path("old.h5")).unwrap();
    dir.fails(1, &format!("{CG} -o old.h5 --report /dev/full --lambda 0.1"), &["/dev/full"]);
    assert_eq!(fs::read(dir.path("old.h5")).unwrap(), before);

    use std::os::unix::process::CommandExt;
    for (length, outputs) in
        [(100, "-o a.h5 --report r.json"), (2000, "-o a.cfl --save-q q"), (400, "-o a.png --report r.json")]
    {
        let names = dir.names();
        let mut command = dir.command(&format!("{CG} {outputs}"));
        command.stderr(Stdio::piped());
        // SAFETY: both calls may be made between fork and exec.
        unsafe {
            command.pre_exec(move || {
                libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
                let limit = libc::rlimit { rlim_cur: length, rlim_max: length };
                libc::setrlimit(libc::RLIMIT_FSIZE, &limit);
                Ok(())
            })
        };
        let out = with_lock(|| command.spawn()).unwrap().wait_with_output().unwrap();
        let text = String::from_utf8(out.stderr).unwrap();
        assert!(out.status.code() == Some(1) && text.starts_with("recon: error: "), "{outputs}: {text}");
        assert!(text.matches('\n').count() == 1 && dir.names() == names, "{outputs}: {text} {:?}", dir.names());
    }
    for line in ["--version", "--help", "cg --help", "info"] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = dir.command(line);
        let out =
            with_lock(|| command.stdout(full).stderr(Stdio::piped()).spawn()).unwrap().wait_with_output().unwrap();
        let text = String::from_utf8(out.stderr).unwrap();
        assert!(out.status.code() == Some(1), "{line}: {:?}", out.status);
        assert!(text.starts_with("recon: error: the standard output cannot be written: No space"), "{line}: {text}");
    }
}

#[test]
fn unusual_file_names() {
    let dir = with_scan();
    let odd = OsStr::from_bytes(b"o\xffdd");
    fs::create_dir(dir.path("plain")).unwrap();
    fs::rename(dir.path("plain"), dir.0.join(odd)).unwrap();
    let run = |line: &str, more: &[&Path]| {
        let mut command = dir.command(line);
        let out = with_lock(|| command.args(more).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()).unwrap();
        let out = out.wait_with_output().unwrap();
        assert!(out.status.success() && out.stderr.is_empty(), "{line}: {out:?}");
    };
    let file = |name: &[u8]| Path::new(odd).join(OsStr::from_bytes(name));
    for name in [&b"\xfe.h5"[..], b"\xfe.cfl", b"\xfe.nii", b"\xfe.png"] {
        run("grid scan.h5 -o", &[&file(name)]);
        assert!(dir.0.join(file(name)).exists());
    }
    for name in [&b"\xfe.h5"[..], b"\xfe.cfl", b"\xfe.nii"] {
        run("info", &[&file(name)]);
    }
    run("simulate --matrix 16,16 -o", &[&file(b"\xfe.cfl")]);
    run("grid --matrix 16,16 -o a.h5", &[&file(b"\xfe.cfl"), Path::new("--trajectory"), &file(b"\xfe_traj.cfl")]);
    // Names that are only an extension, and names of the maximum length.
    dir.ok("grid scan.h5 -o .cfl");
    dir.ok("info .cfl");
    assert!(dir.path(".hdr").exists() && !dir.path(".cfl.cfl").exists());
    dir.ok("grid scan.h5 -o .h5");
    let long = format!("{}.h5", "x".repeat(252));
    dir.ok(&format!("grid scan.h5 -o {long}"));
    dir.fails(1, &format!("grid scan.h5 -o x{long}"), &["too long"]);
}

#[test]
fn q_is_saved_from_many_threads() {
    let dir = TempDir::new();
    let k = Trajectory::radial2d(20, 32, SpokeOrder::Linear).unwrap();
    let (kx, ky) = (k.axis_as::<f32>(0), k.axis_as::<f32>(1));
    let options = Options { normal: Normal::Toeplitz, threads: 1, ..Options::default() };
    let new = || Plan::new(&Geometry::new(&[24, 24], &[&kx, &ky]), &options).unwrap();
    let (plan, path) = (new(), dir.path("q"));
    plan.save_q(&path).unwrap();
    let whole = fs::read(&path).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..25 {
                    plan.save_q(&path).unwrap();
                    assert!(fs::read(&path).unwrap() == whole, "a file half written");
                }
            });
        }
    });
    assert_eq!(dir.names(), ["q"]);
    // A byte after the end of Q is an error.
    fs::write(&path, [&whole[..], b"\0"].concat()).unwrap();
    let e = new().load_q(&path).unwrap_err();
    assert!(e.kind() == recon::ErrorKind::BadFile && e.message().contains("goes on after the end"), "{e}");
}

#[test]
fn contents_of_a_scan_are_counted() {
    let dir = TempDir::new();
    let k = Trajectory::radial2d(12, 16, SpokeOrder::Linear).unwrap();
    let matrix = space([16, 16, 1], [16.0, 16.0, 5.0]);
    let mut all = scan(&k, matrix, matrix, 1, noise(192, 1));
    for slice in [1, 2, 7] {
        let mut one = all.scans[0].clone();
        one.index.slice = slice;
        all.scans.push(one);
    }
    write_dataset(dir.path("a.h5"), &all);
    let info = dir.ok("info a.h5");
    for words in ["slices                4 (0, 1, 2, 7)", "repetitions           1 (0)"] {
        assert!(info.contains(words), "{words}: {info}");
    }
    assert!(!info.contains("whitening"), "{info}");
    // The first two acquisitions become noise: bit 19 of the flags, which are the 8 bytes after the version.
    let mut bytes = fs::read(dir.path("a.h5")).unwrap();
    let head = |bytes: &[u8], at: usize| bytes[at..at + 2] == [1, 0] && bytes[at + 34..at + 36] == [16, 0];
    let (mut done, mut at) = (0, 0);
    while done < 2 {
        if head(&bytes, at) && bytes[at + 36..at + 40] == [1, 0, 1, 0] {
            bytes[at + 2 + 2] |= 1 << 2;
            done += 1;
            at += 372;
        } else {
            at += 1;
        }
    }
    fs::write(dir.path("noise.h5"), bytes).unwrap();
    let info = dir.ok("info noise.h5");
    assert!(info.contains("used for whitening    2 noise\n"), "{info}");
}

/// docs/program.md lists the libraries that the program needs at run time.
#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn needed_libraries_are_documented() {
    let program = env!("CARGO_BIN_EXE_recon");
    let text = crate::common::run(std::process::Command::new("readelf").args(["-d", program]));
    let needed = text.lines().filter(|l| l.contains("(NEEDED)")).map(|l| l.split(['[', ']']).nth(1).unwrap());
    // Names without versions.
    let plain = |name: &str| name.split(['.', '-']).next().unwrap().to_owned();
    let mut needed: Vec<_> = needed.map(plain).collect();
    needed.retain(|name| name != "ld");
    needed.sort();
    let page = fs::read_to_string(crate::common::root().join("docs/program.md")).unwrap();
    let sentence = page.split("At run time it needs").nth(1).unwrap().split(". ").next().unwrap();
    let mut documented: Vec<_> = sentence.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    documented.sort();
    assert_eq!(needed, documented);
}

/// A static program needs none, and `info` says that it has no GPU.
#[test]
#[cfg(all(target_env = "musl", target_feature = "crt-static"))]
fn static_program_needs_no_libraries_and_has_no_gpu() {
    let text = crate::common::run(std::process::Command::new("readelf").args(["-d", env!("CARGO_BIN_EXE_recon")]));
    assert!(!text.contains("(NEEDED)"), "{text}");
    let dir = TempDir::new();
    let info = dir.ok("info");
    assert!(info.contains("driver       none: this static build cannot load the NVIDIA driver"), "{info}");
    dir.ok("simulate --matrix 16,16 --trajectory radial --shots 25 --samples 32 -o scan.h5");
    dir.fails(1, "grid scan.h5 --device cuda -o image.h5", &["this static build cannot load the NVIDIA driver"]);
}

/// Ctrl-C while the program waits for another process to open the other end of a FIFO.
#[test]
fn interrupts_remove_temporary_files() {
    use std::os::unix::process::CommandExt;
    let dir = with_scan();
    fs::create_dir(dir.path("temporary")).unwrap();
    fifo(&dir.path("fifo.h5"));
    let begun = |folder: &str| {
        let mut names = fs::read_dir(dir.path(folder)).unwrap().map(|e| e.unwrap().file_name());
        names.any(|name| name.to_string_lossy().starts_with(".recon-"))
    };
    for (line, folder) in
        [("cg scan.h5 --iterations 2 --save-q fifo.h5 -o a.h5", "."), ("grid scan.h5 -o fifo.h5", "temporary")]
    {
        let names = dir.names();
        let mut command = dir.command(line);
        command.env("TMPDIR", dir.path("temporary")).stderr(Stdio::piped());
        // SAFETY: signal() is safe to call between fork and exec.
        unsafe {
            command.pre_exec(|| {
                libc::signal(libc::SIGINT, libc::SIG_DFL);
                Ok(())
            })
        };
        let child = with_lock(|| command.spawn()).unwrap();
        let start = std::time::Instant::now();
        while !begun(folder) {
            assert!(start.elapsed().as_secs() < 60, "{line}: no temporary file");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        // Time for the program to reach the FIFO.
        std::thread::sleep(std::time::Duration::from_millis(200));
        // SAFETY: a signal to a process that this test started and has not waited for.
        assert_eq!(unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) }, 0);
        let out = child.wait_with_output().unwrap();
        assert!(out.status.code() == Some(130), "{line}: {out:?}");
        assert!(String::from_utf8_lossy(&out.stderr).contains("recon: error: interrupted"), "{line}: {out:?}");
        assert!(dir.names() == names && !begun("temporary"), "{line}: {:?}", dir.names());
    }
}

#[test]
fn interrupts_leave_nothing() {
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    let dir = TempDir::new();
    dir.ok("simulate --matrix 128,128 --shots 8000 --samples 256 -o k.cfl");
    // Exact sums take half a minute or more on two fast cores.
    let mut command =
        dir.command("fhd k.cfl --trajectory k_traj.cfl --matrix 1000,1000 --method exact --precision f64 -o image.h5");
    command.stderr(Stdio::piped());
    // A shell ignores interrupts in background jobs. If the tests are such a job, the program would inherit this.
    // SAFETY: signal() is safe to call between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            Ok(())
        })
    };
    let child = with_lock(|| command.spawn()).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(700));
    // SAFETY: a signal to a process that this test started and has not waited for.
    assert_eq!(unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) }, 0);
    let out = child.wait_with_output().unwrap();
    assert!(out.status.code() == Some(130) && out.status.signal().is_none(), "{out:?}");
    assert!(String::from_utf8_lossy(&out.stderr).contains("recon: error: interrupted"));
    assert_eq!(dir.names(), ["k.cfl", "k.hdr", "k_traj.cfl", "k_traj.hdr"]);
}

#[test]
fn closed_standard_output_is_not_an_error() {
    let dir = TempDir::new();
    let mut command = dir.command("info");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = with_lock(|| command.spawn()).unwrap();
    drop(child.stdout.take());
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success() && out.stderr.is_empty(), "{out:?}");
}
