//! Open descriptors of this process, by their names in `/dev` and `/proc`.
//!
//! They are duplicated instead of opened by name: a container may not have these names, and a socket cannot be opened.
//! A file that the standard output was redirected to keeps its contents and its position.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{FromRawFd, RawFd};
use std::path::{Path, PathBuf};

/// Returns the descriptor that a name denotes, open or not.
pub fn named_by(path: &Path) -> Option<RawFd> {
    // Without repeated separators and dots.
    match path.components().collect::<PathBuf>().to_str()? {
        "/dev/stdout" => Some(libc::STDOUT_FILENO),
        "/dev/stderr" => Some(libc::STDERR_FILENO),
        name => name.strip_prefix("/dev/fd/").or(name.strip_prefix("/proc/self/fd/"))?.parse().ok(),
    }
}

/// Checks that a descriptor is open for writing.
pub fn check_writable(number: RawFd) -> io::Result<()> {
    // SAFETY: the call reads the flags of a descriptor, and fails for one that is not open.
    match unsafe { libc::fcntl(number, libc::F_GETFL) } {
        -1 => Err(io::Error::last_os_error()),
        flags if flags & libc::O_ACCMODE == libc::O_RDONLY => Err(io::Error::other("it is open for reading only")),
        _ => Ok(()),
    }
}

/// Opens a descriptor once more. Writes buffered text to the standard output first.
pub fn duplicate(number: RawFd) -> io::Result<File> {
    if number == libc::STDOUT_FILENO {
        io::stdout().flush()?;
    }
    // SAFETY: the call fails for a descriptor that is not open.
    match unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 0) } {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: the duplicate is open, and has no other owner.
        duplicate => Ok(unsafe { File::from_raw_fd(duplicate) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name that is not recognised would replace the file that the standard output was redirected to.
    #[test]
    fn names_of_descriptors() {
        for (name, number) in [
            ("/dev/stdout", Some(1)),
            ("/dev/stderr", Some(2)),
            ("/dev//./stdout", Some(1)),
            ("/dev/fd/7", Some(7)),
            ("/proc/self//fd/12", Some(12)),
            ("/dev/fd", None),
            ("/dev/fd/a", None),
            ("/dev/stdout2", None),
            ("dev/stdout", None),
        ] {
            assert_eq!(named_by(Path::new(name)), number, "{name}");
        }
    }
}
