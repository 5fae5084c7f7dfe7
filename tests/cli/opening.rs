//! Files that cannot be opened, and why.

use crate::TempDir;
use std::fs;

#[test]
#[cfg(target_os = "linux")]
fn reasons_why_a_file_is_not_opened() {
    use crate::with_lock;
    use std::os::fd::AsRawFd;
    use std::process::Stdio;
    let dir = TempDir::new();
    dir.ok("simulate --matrix 16,16 --shots 4 -o scan.h5");
    let message = |line: &str, locking: Option<&str>| {
        let mut command = dir.command(line);
        command.env_remove("HDF5_USE_FILE_LOCKING");
        if let Some(value) = locking {
            command.env("HDF5_USE_FILE_LOCKING", value);
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let out = with_lock(|| command.spawn()).unwrap().wait_with_output().unwrap();
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
    let mut builder = hdf5_pure::FileBuilder::new();
    builder.create_dataset("data").with_f32_data(&[0.0]);
    builder.write(dir.path("open.h5")).unwrap();
    let writer = hdf5_pure::File::open_swmr_writer(dir.path("open.h5")).unwrap();
    fs::copy(dir.path("open.h5"), dir.path("copy.h5")).unwrap();
    drop(writer);
    let (status, text) = message("info copy.h5", None);
    assert!(status == Some(1) && text.contains("marked as open for writing") && text.contains("h5clear"), "{text}");
    fs::write(dir.path("cut.h5"), &fs::read(dir.path("scan.h5")).unwrap()[..3000]).unwrap();
    let (status, text) = message("info cut.h5", None);
    assert!(status == Some(1) && text.contains("truncated or damaged") && !text.contains("locked"), "{text}");
}

#[test]
fn a_folder_is_not_a_file() {
    let dir = TempDir::new();
    for name in ["folder.h5", "folder.npy", "folder.nii", "folder.mat", "folder.dcm", "folder"] {
        fs::create_dir(dir.path(name)).unwrap();
        dir.fails(1, &format!("info {name}"), &[name, "this is a folder"]);
    }
    fs::create_dir(dir.path("folder.cfl")).unwrap();
    fs::write(dir.path("folder.hdr"), "# Dimensions\n2 2\n").unwrap();
    dir.fails(1, "info folder.cfl", &["folder.cfl", "this is a folder"]);
}
