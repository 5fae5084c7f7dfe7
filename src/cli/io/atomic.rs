//! Files that appear whole or not at all.

use recon::error::{bail, Result};
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Files to be removed when this goes out of scope, after an error and after a panic too.
struct Leftovers(Vec<PathBuf>);

impl Drop for Leftovers {
    fn drop(&mut self) {
        for path in &self.0 {
            // Renamed or never created, most often.
            let _ = fs::remove_file(path);
        }
    }
}

/// A name beside `target` that nobody else uses.
fn name_beside(target: &Path) -> Result<PathBuf> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    if target.file_name().is_none() || target.is_dir() {
        bail!(Io, "{}: is a folder, not a file: give a file name", target.display());
    }
    let folder = match target.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        bail!(Io, "{}: the folder {} does not exist: create it first", target.display(), folder.display());
    }
    let mut name = OsString::from(".recon-");
    name.push(format!("{}-{}.part", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed)));
    Ok(folder.join(name))
}

/// Lets `write` write temporary files beside the `targets`, one for each and in their order, then renames them all
/// into place. When `write` fails, or a rename does, the targets are as they were and nothing else is left behind.
///
/// # Errors
/// Those of `write`; `Io` when a target cannot be created or replaced.
pub(crate) fn write_files<T>(targets: &[&Path], write: impl FnOnce(&[PathBuf]) -> Result<T>) -> Result<T> {
    let parts = targets.iter().map(|t| name_beside(t)).collect::<Result<Vec<_>>>()?;
    let mut leftovers = Leftovers(parts.clone());
    let result = write(&parts)?;
    for (part, target) in parts.iter().zip(targets) {
        // The bytes must be on the disk before the name is, or a power cut could leave the name alone.
        if let Err(e) = File::options().write(true).open(part).and_then(|f| f.sync_all()) {
            bail!(Io, "{}: {e}", target.display());
        }
    }
    // With several targets, the old files are kept under other names until the last of the new ones is in place.
    let mut backups = Vec::new();
    for target in targets.iter().filter(|t| targets.len() > 1 && t.exists()) {
        let backup = name_beside(target)?;
        leftovers.0.push(backup.clone());
        if let Err(e) = fs::hard_link(target, &backup).or_else(|_| fs::copy(target, &backup).map(drop)) {
            bail!(Io, "{}: {e}", target.display());
        }
        backups.push((*target, backup));
    }
    for (done, (part, target)) in parts.iter().zip(targets).enumerate() {
        if let Err(e) = fs::rename(part, target) {
            for &new in &targets[..done] {
                let _ = match backups.iter().find(|(old, _)| *old == new) {
                    Some((_, backup)) => fs::rename(backup, new),
                    None => fs::remove_file(new),
                };
            }
            bail!(Io, "{}: {e}", target.display());
        }
    }
    Ok(result)
}

/// [`write_files`] for a single file.
///
/// # Errors
/// As [`write_files`].
pub(crate) fn write_file<T>(target: &Path, write: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
    write_files(&[target], |parts| write(&parts[0]))
}

#[cfg(test)]
mod tests {
    use super::super::tests::TempDir;
    use super::*;
    use recon::error::ErrorKind;

    fn names(dir: &Path) -> Vec<String> {
        let mut n: Vec<_> =
            fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
        n.sort();
        n
    }

    #[test]
    fn failing_writers_leave_nothing() {
        let dir = TempDir::new();
        let target = dir.path("a.bin");
        fs::write(&target, b"old").unwrap();
        let r: Result<()> = write_file(&target, |p| {
            fs::write(p, b"half").unwrap();
            bail!(Io, "disk full")
        });
        assert_eq!(r.unwrap_err().message(), "disk full");
        assert_eq!(fs::read(&target).unwrap(), b"old");
        let panicking = || write_file(&target, |p| -> Result<()> { panic!("{:?}", fs::write(p, b"half")) });
        assert!(std::panic::catch_unwind(panicking).is_err());
        assert_eq!(names(dir.root()), ["a.bin"]);
    }

    #[test]
    fn pairs_are_replaced_together_or_not_at_all() {
        let dir = TempDir::new();
        let (a, b) = (dir.path("x.cfl"), dir.path("x.hdr"));
        let put = |text: &'static [u8]| {
            write_files(&[&a, &b], |p| {
                fs::write(&p[0], text).unwrap();
                fs::write(&p[1], text).unwrap();
                Ok(())
            })
        };
        put(b"1").unwrap();
        put(b"2").unwrap();
        assert_eq!((fs::read(&a).unwrap(), fs::read(&b).unwrap()), (b"2".to_vec(), b"2".to_vec()));
        assert_eq!(names(dir.root()), ["x.cfl", "x.hdr"]);

        // The second target turns into a folder while the writer works: the first must come back.
        let r = write_files(&[&a, &b], |p| {
            fs::write(&p[0], b"3").unwrap();
            fs::write(&p[1], b"3").unwrap();
            fs::remove_file(&b).unwrap();
            fs::create_dir(&b).unwrap();
            Ok(())
        });
        assert_eq!(r.unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(fs::read(&a).unwrap(), b"2");
        assert_eq!(names(dir.root()), ["x.cfl", "x.hdr"]);
    }

    #[test]
    fn folders_that_do_not_exist_are_named() {
        let dir = TempDir::new();
        let e = write_file(&dir.path("nowhere/a.bin"), |_| Ok(())).unwrap_err();
        assert!(e.message().contains("nowhere does not exist"), "{e}");
        let e = write_file(dir.root(), |_| Ok(())).unwrap_err();
        assert!(e.message().contains("is a folder"), "{e}");
    }
}
