//! Files that appear whole or not at all, and several of them all or none.
//!
//! Everything is written to temporary files first, which are renamed when the last of them is complete: an error, a
//! panic or the end of the process leaves the old files. A link stands for the file it leads to. A device, a fifo or an
//! open descriptor (`/dev/null`, `/dev/stdout`) cannot be replaced: it is written into, once all files are complete and
//! before the first is renamed.
//!
//! Why not the crate tempfile: it replaces one file at a time, and does not remove files at a signal.

use crate::base::error::{bail, Result};
use crate::base::per_process::PerProcess;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The temporary files of this process. A thread that creates, renames or removes one of them holds the lock. A
/// parent process removes its own files.
static TEMPORARY: PerProcess<Mutex<Vec<PathBuf>>> = PerProcess::new(Mutex::new(Vec::new()), |_| Mutex::new(Vec::new()));

fn temporary_files() -> MutexGuard<'static, Vec<PathBuf>> {
    TEMPORARY.get().lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the temporary files of a process that is about to end at a signal. While the result lives, none is created
/// and no file is replaced.
pub fn give_up() -> MutexGuard<'static, impl Sized> {
    let mut files = temporary_files();
    // The process ends: a file that cannot be removed is not reported.
    files.drain(..).for_each(|path| drop(fs::remove_file(path)));
    files
}

/// The destination of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Destination {
    /// A file, existing or not, at the end of all links: it is replaced.
    File(PathBuf),
    /// A device, a fifo, or an open descriptor of this process: it is written into.
    Stream,
}

impl Destination {
    fn of(path: &Path) -> Result<Destination> {
        let shown = path.display();
        let ends_as_folder =
            path.as_os_str().as_encoded_bytes().last().is_some_and(|&b| std::path::is_separator(b.into()));
        if path.file_name().is_none() || ends_as_folder {
            bail!(IO, "{shown}: this is no name of a file: give one");
        }
        let descriptors = ["/dev/stdout", "/dev/stderr", "/dev/fd", "/proc/self/fd"];
        if descriptors.iter().any(|d| path.starts_with(d)) {
            return Ok(Destination::Stream);
        }
        match fs::metadata(path) {
            Ok(about) if about.is_dir() => bail!(IO, "{shown}: this is a folder: give the name of a file"),
            Ok(about) if !about.is_file() => return Ok(Destination::Stream),
            Ok(_) => match path.canonicalize() {
                // A rename needs no right to write to the file, but a file without that right is to stay.
                Ok(file) => match OpenOptions::new().append(true).open(&file) {
                    Ok(_) => return Ok(Destination::File(file)),
                    Err(e) => bail!(IO, "{shown}: the file may not be written: {e}: give another name, or free it"),
                },
                Err(e) => bail!(IO, "{shown}: {e}"),
            },
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => bail!(IO, "{shown}: {e}"),
        }
        // The file does not exist: links may lead to its name.
        let mut file = path.to_owned();
        while let Ok(to) = fs::read_link(&file) {
            file = folder_of(&file).join(to);
        }
        let (folder, Some(name)) = (folder_of(&file), file.file_name()) else {
            bail!(IO, "{shown}: this link leads to {}, which is no name of a file", file.display());
        };
        match folder.canonicalize() {
            Ok(folder) => Ok(Destination::File(folder.join(name))),
            Err(_) if !folder.exists() => {
                bail!(IO, "{shown}: the folder {} does not exist: create it first", folder.display())
            }
            Err(e) => bail!(IO, "{shown}: the folder {}: {e}", folder.display()),
        }
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The identity of a file, the same under all its names.
#[derive(Debug, PartialEq, Eq)]
pub enum Identity {
    /// The device and the inode of an existing file.
    There(u64, u64),
    /// The full name of a file that does not exist.
    Name(PathBuf),
}

/// The identity of a file that is written or read; none for a device, and for what cannot be the name of a file.
pub fn identity(path: &Path) -> Option<Identity> {
    #[cfg(unix)]
    if let Ok(about) = fs::metadata(path) {
        use std::os::unix::fs::{FileTypeExt, MetadataExt};
        return (!about.file_type().is_char_device()).then(|| Identity::There(about.dev(), about.ino()));
    }
    match Destination::of(path) {
        Ok(Destination::File(file)) => Some(Identity::Name(file)),
        _ => None,
    }
}

/// Checks that a file can be written at a name, without writing it.
pub fn check(target: &Path) -> Result<()> {
    AtomicFiles::new().add(target).map(drop)
}

/// Calls `write`, whose files appear together when it has succeeded.
pub fn whole<T>(write: impl FnOnce(&mut AtomicFiles) -> Result<T>) -> Result<T> {
    let mut files = AtomicFiles::new();
    let result = write(&mut files)?;
    files.commit()?;
    Ok(result)
}

/// Files being written, none of which is under its name before [`AtomicFiles::commit`].
#[derive(Debug, Default)]
pub struct AtomicFiles {
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    /// The name that was asked for.
    target: PathBuf,
    place: Destination,
    /// Holds the bytes until [`AtomicFiles::commit`].
    temporary: PathBuf,
}

impl AtomicFiles {
    /// No files.
    pub fn new() -> AtomicFiles {
        AtomicFiles::default()
    }

    /// The name of an empty file, to be written in place of `target`.
    ///
    /// # Errors
    /// `IO` when there can be no file `target`.
    pub fn add(&mut self, target: &Path) -> Result<PathBuf> {
        let place = Destination::of(target)?;
        let (temporary, folder) = match &place {
            Destination::File(file) => (create(folder_of(file), fs::metadata(file).ok()), folder_of(file).to_owned()),
            Destination::Stream => (create(&std::env::temp_dir(), None), std::env::temp_dir()),
        };
        match temporary {
            Ok(temporary) => {
                self.parts.push(Part { target: target.to_owned(), place, temporary: temporary.clone() });
                Ok(temporary)
            }
            Err(e) => {
                let (shown, folder) = (target.display(), folder.display());
                bail!(IO, "{shown}: no file can be created in the folder {folder}: {e}: give a name in another one")
            }
        }
    }

    /// Gives all files their names. After an error each name has what it had before.
    ///
    /// # Errors
    /// `IO`, with the name that could not be written.
    pub fn commit(self) -> Result<()> {
        self.sync()?;
        self.write_streams()?;
        let mut listed = temporary_files();
        let mut files: Vec<Replacement> = self
            .parts
            .iter()
            .filter_map(|part| match &part.place {
                Destination::File(file) => Some(Replacement { part, file, old: None }),
                Destination::Stream => None,
            })
            .collect();
        let (done, mut failed) = match keep_old_files(&mut files) {
            Ok(()) => rename_all(&files, &mut listed),
            Err(text) => (0, Some(text)),
        };
        if let Some(text) = &mut failed {
            *text += &restore(&mut files[..done]);
        }
        for old in files.into_iter().filter_map(|file| file.old) {
            if let Err(e) = fs::remove_file(&old) {
                log::warn!("{}: an old file, kept meanwhile, could not be removed: {e}", old.display());
            }
        }
        drop(listed);
        match failed {
            Some(text) => bail!(IO, "{text}"),
            None => Ok(()),
        }
    }

    /// Brings all bytes to the disk before any name is changed: else a power cut could leave a name without its bytes.
    fn sync(&self) -> Result<()> {
        for part in &self.parts {
            if let Err(e) = OpenOptions::new().append(true).open(&part.temporary).and_then(|f| f.sync_all()) {
                bail!(IO, "{}: {e}", part.target.display());
            }
        }
        Ok(())
    }

    fn write_streams(&self) -> Result<()> {
        for part in self.parts.iter().filter(|part| part.place == Destination::Stream) {
            // Appended, or a file that standard output was redirected to would lose its contents.
            let mut into = OpenOptions::new();
            let copied = into
                .append(true)
                .open(&part.target)
                .and_then(|mut into| io::copy(&mut File::open(&part.temporary)?, &mut into));
            if let Err(e) = copied {
                bail!(IO, "{}: could not be written: {e}", part.target.display());
            }
        }
        Ok(())
    }
}

/// A file about to be replaced, and the name under which its old contents are kept meanwhile.
struct Replacement<'a> {
    part: &'a Part,
    file: &'a Path,
    old: Option<PathBuf>,
}

/// Keeps the old files under other names, until the last of several new ones is in place. Fails with a text for a
/// message.
fn keep_old_files(files: &mut [Replacement<'_>]) -> std::result::Result<(), String> {
    let several = files.len() > 1;
    for Replacement { part, file, old } in files.iter_mut().filter(|f| several && f.file.exists()) {
        let backup = fresh_name(folder_of(file));
        match fs::hard_link(*file, &backup).or_else(|_| fs::copy(*file, &backup).map(drop)) {
            Ok(()) => *old = Some(backup),
            Err(e) => {
                // A copy may have begun.
                drop(fs::remove_file(&backup));
                return Err(format!("{}: the old file cannot be kept meanwhile: {e}", part.target.display()));
            }
        }
    }
    Ok(())
}

/// Renames the temporary files. Returns how many are in place, and the text of the first failure.
fn rename_all(files: &[Replacement<'_>], listed: &mut Vec<PathBuf>) -> (usize, Option<String>) {
    for (done, Replacement { part, file, .. }) in files.iter().enumerate() {
        match fs::rename(&part.temporary, file) {
            Ok(()) => listed.retain(|path| *path != part.temporary),
            Err(e) => return (done, Some(format!("{}: {e}", part.target.display()))),
        }
    }
    (files.len(), None)
}

/// Undoes renames. Returns the text of failures.
fn restore(files: &mut [Replacement<'_>]) -> String {
    let mut text = String::new();
    for Replacement { part, file, old } in files {
        let undone = match old.take() {
            Some(old) => fs::rename(&old, *file).map_err(|e| format!("{e}: it is in {}", old.display())),
            None => fs::remove_file(*file).map_err(|e| e.to_string()),
        };
        if let Err(e) = undone {
            text += &format!("; {} is written, and what it was could not be restored: {e}", part.target.display());
        }
    }
    text
}

impl Drop for AtomicFiles {
    fn drop(&mut self) {
        let mut listed = temporary_files();
        for part in &self.parts {
            // Renamed files are not listed any more.
            if let Some(at) = listed.iter().position(|path| *path == part.temporary) {
                if let Err(e) = fs::remove_file(listed.swap_remove(at)) {
                    log::warn!("{}: a temporary file could not be removed: {e}", part.temporary.display());
                }
            }
        }
    }
}

/// A name in a folder that this process gives to no other file, in any thread.
fn fresh_name(folder: &Path) -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    folder.join(format!(".recon-{}-{number}.part", std::process::id()))
}

/// Creates a temporary file, with the permissions of the file that it will replace, if there is one.
fn create(folder: &Path, replaced: Option<fs::Metadata>) -> io::Result<PathBuf> {
    let mut listed = temporary_files();
    loop {
        let path = fresh_name(folder);
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => {
                listed.push(path.clone());
                if let Some(about) = replaced {
                    file.set_permissions(about.permissions())?;
                }
                return Ok(path);
            }
            // A process of the same number, in another container or on another machine, uses that name.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;

    /// A folder that is removed with this value.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("recon-atomic-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Folder(path)
        }
        fn path(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }
        fn put(&self, name: &str, text: &str) -> PathBuf {
            fs::write(self.path(name), text).unwrap();
            self.path(name)
        }
        fn names(&self) -> Vec<String> {
            let name = |e: io::Result<fs::DirEntry>| e.unwrap().file_name().to_string_lossy().into_owned();
            let mut names: Vec<_> = fs::read_dir(&self.0).unwrap().map(name).collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn write(targets: &[&Path], text: &str) -> Result<()> {
        whole(|files| targets.iter().try_for_each(|t| files.add(t).map(|part| fs::write(part, text).unwrap())))
    }

    #[test]
    fn failing_writers_leave_nothing() {
        let dir = Folder::new("failing");
        let target = dir.put("a.bin", "old");
        let r: Result<()> = whole(|files| {
            fs::write(files.add(&target)?, "half").unwrap();
            bail!(IO, "disk full")
        });
        assert_eq!(r.unwrap_err().message(), "disk full");
        let panicking = || whole(|files| -> Result<()> { panic!("{:?}", fs::write(files.add(&target)?, "half")) });
        assert!(std::panic::catch_unwind(panicking).is_err());
        assert_eq!((fs::read_to_string(&target).unwrap(), dir.names()), ("old".into(), vec!["a.bin".into()]));
    }

    #[test]
    fn several_are_replaced_together_or_not_at_all() {
        let dir = Folder::new("several");
        let (a, b) = (dir.path("x.cfl"), dir.path("x.hdr"));
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        for text in ["1", "2"] {
            write(&[&a, &b], text).unwrap();
            assert_eq!(
                (read(&a), read(&b), dir.names()),
                (text.into(), text.into(), vec!["x.cfl".into(), "x.hdr".into()])
            );
        }
        // The second target turns into a folder while the writer works: the first must come back.
        let r = whole(|files| {
            fs::write(files.add(&a)?, "3").unwrap();
            fs::write(files.add(&b)?, "3").unwrap();
            fs::remove_file(&b).unwrap();
            fs::create_dir(&b).unwrap();
            Ok(())
        });
        assert_eq!(r.unwrap_err().kind(), ErrorKind::IO);
        assert_eq!((read(&a), dir.names()), ("2".into(), vec!["x.cfl".into(), "x.hdr".into()]));
        // A new file is removed again.
        let c = dir.path("c");
        let r = whole(|files| {
            fs::write(files.add(&c)?, "3").unwrap();
            fs::write(files.add(&dir.path("d"))?, "3").unwrap();
            fs::create_dir(dir.path("d")).unwrap();
            Ok(())
        });
        assert!(r.is_err() && !c.exists());
    }

    #[test]
    fn names_that_are_none_are_refused() {
        let dir = Folder::new("none");
        for (path, words) in [
            (dir.path("nowhere/a.bin"), "nowhere does not exist: create it first"),
            (dir.0.clone(), "this is a folder"),
            (dir.path("a/"), "no name of a file"),
            (PathBuf::new(), "no name of a file"),
            (dir.path("a/.."), "no name of a file"),
            (dir.put("file", "").join("a"), "Not a directory"),
        ] {
            let e = check(&path).unwrap_err();
            assert!(e.kind() == ErrorKind::IO && e.message().contains(words), "{path:?}: {e}");
        }
        assert_eq!(dir.names(), ["file"]);
    }

    #[test]
    #[cfg(unix)]
    fn links_devices_and_fifos_stay_what_they_are() {
        use std::os::unix::fs::{symlink, FileTypeExt, PermissionsExt};
        let dir = Folder::new("links");
        let (file, link, dangling, fifo) =
            (dir.put("file", "old"), dir.path("link"), dir.path("dangling"), dir.path("fifo"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        fs::create_dir(dir.path("folder")).unwrap();
        symlink("file", dir.path("other")).unwrap();
        symlink("other", &link).unwrap();
        symlink("folder/new", &dangling).unwrap();
        write(&[&link, &dangling, Path::new("/dev/null")], "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(dir.path("folder/new")).unwrap(), "new");
        assert!([&link, &dangling].iter().all(|l| l.is_symlink()));
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());

        let name = std::ffi::CString::new(fifo.as_os_str().as_encoded_bytes()).unwrap();
        // SAFETY: a name that ends in 0.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let reader = std::thread::spawn({
            let fifo = fifo.clone();
            move || fs::read_to_string(fifo).unwrap()
        });
        write(&[&fifo], "through").unwrap();
        assert_eq!(reader.join().unwrap(), "through");
        assert!(fs::metadata(&fifo).unwrap().file_type().is_fifo());
        // A full device: no file appears then.
        #[cfg(target_os = "linux")]
        {
            let e = write(&[&file, Path::new("/dev/full")], "newer").unwrap_err();
            assert!(e.message().starts_with("/dev/full: "), "{e}");
            assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        }
        assert_eq!(dir.names(), ["dangling", "fifo", "file", "folder", "link", "other"]);
    }

    #[test]
    #[cfg(unix)]
    fn files_are_known_by_all_their_names() {
        let dir = Folder::new("names");
        let file = dir.put("file", "");
        fs::hard_link(&file, dir.path("second")).unwrap();
        std::os::unix::fs::symlink("absent", dir.path("link")).unwrap();
        let same = |a: &str, b: &str| identity(&dir.path(a)).unwrap() == identity(&dir.path(b)).unwrap();
        assert!(same("file", "./file") && same("file", "second") && same("link", "absent") && !same("file", "absent"));
        assert_eq!(identity(Path::new("/dev/null")), None);
    }

    #[test]
    fn threads_write_one_file_at_once() {
        let dir = Folder::new("threads");
        let target = dir.path("file");
        std::thread::scope(|scope| {
            for thread in 0..8u8 {
                let target = &target;
                scope.spawn(move || {
                    for _ in 0..20 {
                        write(&[target], &char::from(b'a' + thread).to_string().repeat(5000)).unwrap();
                        let found = fs::read(target).unwrap();
                        assert!(found.len() == 5000 && found.iter().all(|&b| b == found[0]));
                    }
                });
            }
        });
        assert_eq!(dir.names(), ["file"]);
    }
}
