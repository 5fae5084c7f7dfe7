//! Writes files atomically: a file appears complete or not at all, and several files appear together or not at all.
//!
//! All output goes to temporary files, which are renamed when the last of them is complete: after an error, a panic or
//! the end of the process the old files remain. A link stands for its target. A device, a fifo or an open descriptor
//! (`/dev/null`, `/dev/stdout`) cannot be replaced: its bytes are written after all files are complete and before the
//! first is renamed.
//!
//! The crate tempfile is not used because it replaces one file at a time and does not remove files after a signal.

#[cfg(unix)]
use crate::base::descriptor;
use crate::base::error::{bail, Result};
use crate::base::per_process::PerProcess;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Environment variable of the folder for temporary files.
pub const TEMPORARY_FOLDER: &str = if cfg!(windows) { "TMP" } else { "TMPDIR" };

/// The temporary files of this process. A thread holds the lock while it creates, renames or removes one of them. A
/// forked child has an empty list: the parent removes its own files.
static TEMPORARY: PerProcess<Mutex<Vec<PathBuf>>> = PerProcess::new(Mutex::new(Vec::new()), |_| Mutex::new(Vec::new()));

fn temporary_files() -> MutexGuard<'static, Vec<PathBuf>> {
    TEMPORARY.get().lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the temporary files of a process that is about to end after a signal. While the returned guard lives, no
/// temporary file is created and no file is replaced.
pub fn remove_temporary_files() -> MutexGuard<'static, impl Sized> {
    let mut files = temporary_files();
    // Errors are ignored because the process ends.
    files.drain(..).for_each(|path| drop(fs::remove_file(path)));
    files
}

/// The object that a name denotes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Destination {
    /// A file, existing or not, after all links are resolved. It is replaced.
    File(PathBuf),
    /// A device or a fifo. Bytes are written to it.
    Stream,
    /// An open descriptor of this process. Bytes are written to it.
    #[cfg(unix)]
    Descriptor(std::os::fd::RawFd),
}

impl Destination {
    /// Resolves a name, and checks that it can be written.
    fn resolve(path: &Path) -> Result<Destination> {
        let shown = path.display();
        if is_windows_device(path) {
            return Ok(Destination::Stream);
        }
        let ends_as_folder =
            path.as_os_str().as_encoded_bytes().last().is_some_and(|&b| std::path::is_separator(b.into()));
        if path.file_name().is_none() || ends_as_folder {
            bail!(IO, "{shown}: this is not a file name: give the name of a file");
        }
        #[cfg(unix)]
        if let Some(number) = descriptor::named_by(path) {
            return match descriptor::check_writable(number) {
                Ok(()) => Ok(Destination::Descriptor(number)),
                Err(e) => bail!(IO, "{shown}: descriptor {number} of this process cannot be written: {e}: use a file"),
            };
        }
        match fs::metadata(path) {
            Ok(about) if about.is_dir() => bail!(IO, "{shown}: this is a folder: give the name of a file"),
            Ok(about) if !about.is_file() => return Ok(Destination::Stream),
            Ok(_) => match resolve_links(path) {
                // A rename does not need permission to write the file. The check protects files without that
                // permission.
                Ok(file) => match OpenOptions::new().append(true).open(&file) {
                    Ok(_) => return Ok(Destination::File(file)),
                    Err(e) => {
                        bail!(IO, "{shown}: the file cannot be written: {e}: give a different name, or allow writing")
                    }
                },
                Err(e) => bail!(IO, "{shown}: {e}: give a different name"),
            },
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            // For example, Windows does not allow all characters in names.
            Err(e) => bail!(IO, "{shown}: {e}: give a different name"),
        }
        // The file does not exist, but links may lead to its name.
        let mut file = path.to_owned();
        while let Ok(to) = fs::read_link(&file) {
            file = folder_of(&file).join(to);
        }
        let (folder, Some(name)) = (folder_of(&file), file.file_name()) else {
            bail!(IO, "{shown}: this link leads to {}, which is not a file name", file.display());
        };
        match resolve_links(folder) {
            Ok(folder) if !folder.is_dir() => bail!(IO, "{shown}: {} is not a folder", folder_of(&file).display()),
            Ok(folder) => Ok(Destination::File(folder.join(name))),
            Err(_) if !folder.exists() => {
                bail!(IO, "{shown}: the folder {} does not exist: create it first", folder.display())
            }
            Err(e) => bail!(IO, "{shown}: the folder {}: {e}", folder.display()),
        }
    }
}

/// Returns the full name of an existing file or folder, with all links resolved. Some file systems of Windows, such as
/// RAM disks, cannot resolve links. There a link is replaced instead of its target.
fn resolve_links(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Err(_) if cfg!(windows) && path.exists() => std::path::absolute(path),
        resolved => resolved,
    }
}

/// Returns whether a name denotes a device of Windows (NUL, the console) or a named pipe. Every folder of Windows has
/// these devices.
fn is_windows_device(path: &Path) -> bool {
    use std::path::{Component, Prefix};
    let in_devices = match path.components().next() {
        Some(Component::Prefix(prefix)) => matches!(prefix.kind(), Prefix::DeviceNS(_)),
        _ => false,
    };
    let is_device = |name: &std::ffi::OsStr| ["NUL", "CON", "CONOUT$"].iter().any(|d| name.eq_ignore_ascii_case(d));
    in_devices || cfg!(windows) && path.file_name().is_some_and(is_device)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The identity of a file, equal for all of its names.
#[derive(Debug, PartialEq, Eq)]
pub enum Identity {
    /// Device and inode of an existing file.
    Existing(u64, u64),
    /// Full name of a file that does not exist.
    Missing(PathBuf),
}

/// Returns the identity of a file; `None` for a device, or if `path` cannot be a file name.
pub fn identity(path: &Path) -> Option<Identity> {
    #[cfg(unix)]
    if let Ok(about) = fs::metadata(path) {
        use std::os::unix::fs::{FileTypeExt, MetadataExt};
        return (!about.file_type().is_char_device()).then(|| Identity::Existing(about.dev(), about.ino()));
    }
    #[cfg(windows)]
    if let Some(identity) = identity_on_windows(path) {
        return Some(identity);
    }
    match Destination::resolve(path) {
        // Windows does not distinguish upper and lower case.
        Ok(Destination::File(file)) if cfg!(windows) => {
            Some(Identity::Missing(file.to_string_lossy().to_lowercase().into()))
        }
        Ok(Destination::File(file)) => Some(Identity::Missing(file)),
        _ => None,
    }
}

/// Returns the identity of an existing file; `None` for a device, or if there is no file.
#[cfg(windows)]
fn identity_on_windows(path: &Path) -> Option<Identity> {
    use std::os::windows::io::AsRawHandle;
    use windows_sys::Win32::Storage::FileSystem::{GetFileInformationByHandle, BY_HANDLE_FILE_INFORMATION};
    let file = File::open(path).ok().filter(|_| !is_windows_device(path))?;
    let mut about = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: the handle is open, and the structure is written.
    let status = unsafe { GetFileInformationByHandle(file.as_raw_handle(), &mut about) };
    let index = (about.nFileIndexHigh as u64) << 32 | about.nFileIndexLow as u64;
    (status != 0).then_some(Identity::Existing(about.dwVolumeSerialNumber as u64, index))
}

/// Checks that a file can be written under a name, without writing it.
pub fn check_writable(target: &Path) -> Result<()> {
    AtomicFiles::new().add(target).map(drop)
}

/// Calls `write`. All files that it adds appear together if it succeeds.
pub fn write_atomically<T>(write: impl FnOnce(&mut AtomicFiles) -> Result<T>) -> Result<T> {
    let mut files = AtomicFiles::new();
    let result = write(&mut files)?;
    files.commit()?;
    Ok(result)
}

/// Files under construction. Their names appear with [`AtomicFiles::commit`].
#[derive(Debug, Default)]
pub struct AtomicFiles {
    files: Vec<PendingFile>,
}

/// A file that is being written.
#[derive(Debug)]
struct PendingFile {
    /// The requested name.
    target: PathBuf,
    destination: Destination,
    /// Contains the bytes until [`AtomicFiles::commit`].
    temporary: PathBuf,
}

impl AtomicFiles {
    /// Creates an empty set of files.
    pub fn new() -> AtomicFiles {
        AtomicFiles::default()
    }

    /// Creates an empty temporary file to be written in place of `target`, and returns its name.
    ///
    /// # Errors
    /// `IO` if `target` cannot be a file.
    pub fn add(&mut self, target: &Path) -> Result<PathBuf> {
        let destination = Destination::resolve(target)?;
        let (temporary, folder) = match &destination {
            Destination::File(file) => (create(folder_of(file), fs::metadata(file).ok()), folder_of(file).to_owned()),
            _ => (create(&std::env::temp_dir(), None), std::env::temp_dir()),
        };
        match temporary {
            Ok(temporary) => {
                self.files.push(PendingFile { target: target.to_owned(), destination, temporary: temporary.clone() });
                Ok(temporary)
            }
            Err(e) => {
                let remedy = match destination {
                    Destination::File(_) => "give a name in a different folder".into(),
                    _ => format!("set {TEMPORARY_FOLDER} to a folder for temporary files"),
                };
                let (shown, folder) = (target.display(), folder.display());
                bail!(IO, "{shown}: no file can be created in the folder {folder}: {e}: {remedy}")
            }
        }
    }

    /// Gives all files their names. After an error, each name has its previous contents.
    ///
    /// # Errors
    /// `IO` with the name that could not be written.
    pub fn commit(self) -> Result<()> {
        self.sync()?;
        self.write_streams()?;
        let mut temporaries = temporary_files();
        let mut files: Vec<Replacement> = self
            .files
            .iter()
            .filter_map(|pending| match &pending.destination {
                Destination::File(file) => Some(Replacement { pending, file, old: None }),
                _ => None,
            })
            .collect();
        let (done, mut failed) = match back_up(&mut files) {
            Ok(()) => rename_all(&files, &mut temporaries),
            Err(text) => (0, Some(text)),
        };
        if let Some(text) = &mut failed {
            *text += &restore(&mut files[..done]);
        }
        for old in files.into_iter().filter_map(|file| file.old) {
            if let Err(e) = fs::remove_file(&old) {
                log::warn!("{}: the backup of a replaced file could not be removed: {e}", old.display());
            }
        }
        drop(temporaries);
        match failed {
            Some(text) => bail!(IO, "{text}"),
            None => Ok(()),
        }
    }

    /// Writes all bytes to the disk before a name changes. Otherwise a power cut could leave a name without its
    /// contents.
    fn sync(&self) -> Result<()> {
        for file in &self.files {
            if let Err(e) = OpenOptions::new().append(true).open(&file.temporary).and_then(|f| f.sync_all()) {
                bail!(IO, "{}: {e}", file.target.display());
            }
        }
        Ok(())
    }

    /// Copies the bytes for devices, fifos and descriptors to their destinations.
    fn write_streams(&self) -> Result<()> {
        for file in &self.files {
            let opened = match file.destination {
                Destination::File(_) => continue,
                Destination::Stream => OpenOptions::new().append(true).open(&file.target),
                #[cfg(unix)]
                Destination::Descriptor(number) => descriptor::duplicate(number),
            };
            let mut from = match File::open(&file.temporary) {
                Ok(from) => from,
                Err(e) => {
                    bail!(
                        IO,
                        "{}: its bytes in the temporary file {} could not be read: {e}: run it again",
                        file.target.display(),
                        file.temporary.display()
                    )
                }
            };
            if let Err(e) = opened.and_then(|mut into| io::copy(&mut from, &mut into)) {
                bail!(IO, "{}: could not be written: {e}", file.target.display());
            }
        }
        Ok(())
    }
}

/// A file about to be replaced, and the backup of its old contents; `None` without a backup.
struct Replacement<'a> {
    pending: &'a PendingFile,
    file: &'a Path,
    old: Option<PathBuf>,
}

/// Creates backups of the old files, if several files are replaced. Returns a text for a message on failure.
fn back_up(files: &mut [Replacement<'_>]) -> std::result::Result<(), String> {
    let several = files.len() > 1;
    for Replacement { pending, file, old } in files.iter_mut().filter(|f| several && f.file.exists()) {
        let backup = fresh_name(folder_of(file));
        match fs::hard_link(*file, &backup).or_else(|_| fs::copy(*file, &backup).map(drop)) {
            Ok(()) => *old = Some(backup),
            Err(e) => {
                // An incomplete copy may exist.
                drop(fs::remove_file(&backup));
                return Err(format!("{}: no backup of the old file can be created: {e}", pending.target.display()));
            }
        }
    }
    Ok(())
}

/// Renames a file. On Windows this fails while another program has one of the files open, as virus scanners have for a
/// moment after a file was written. Therefore it is tried again for a second.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    /// The error of Windows for a file that another program has open (ERROR_SHARING_VIOLATION).
    const SHARING_VIOLATION: i32 = 32;
    let is_open =
        |e: &io::Error| e.kind() == io::ErrorKind::PermissionDenied || e.raw_os_error() == Some(SHARING_VIOLATION);
    let mut remaining_tries = if cfg!(windows) { 50 } else { 0 };
    let mut result = fs::rename(from, to);
    while remaining_tries > 0 && result.as_ref().is_err_and(is_open) {
        remaining_tries -= 1;
        std::thread::sleep(std::time::Duration::from_millis(20));
        result = fs::rename(from, to);
    }
    result
}

/// Renames the temporary files. Returns the number of renamed files and the text of the first failure.
fn rename_all(files: &[Replacement<'_>], temporaries: &mut Vec<PathBuf>) -> (usize, Option<String>) {
    for (done, Replacement { pending, file, .. }) in files.iter().enumerate() {
        match rename(&pending.temporary, file) {
            Ok(()) => temporaries.retain(|path| *path != pending.temporary),
            Err(e) => return (done, Some(format!("{}: {e}", pending.target.display()))),
        }
    }
    (files.len(), None)
}

/// Undoes renames. Returns the text of all failures.
fn restore(files: &mut [Replacement<'_>]) -> String {
    let mut text = String::new();
    for Replacement { pending, file, old } in files {
        let undone = match old.take() {
            Some(old) => rename(&old, file).map_err(|e| format!("{e}: they are in {}", old.display())),
            None => fs::remove_file(*file).map_err(|e| e.to_string()),
        };
        if let Err(e) = undone {
            text += &format!(
                "; {} has its new contents, and the old ones could not be restored: {e}",
                pending.target.display()
            );
        }
    }
    text
}

impl Drop for AtomicFiles {
    fn drop(&mut self) {
        let mut temporaries = temporary_files();
        for file in &self.files {
            // Renamed files are no longer in the list.
            if let Some(at) = temporaries.iter().position(|path| *path == file.temporary) {
                if let Err(e) = fs::remove_file(temporaries.swap_remove(at)) {
                    log::warn!("{}: a temporary file could not be removed: {e}", file.temporary.display());
                }
            }
        }
    }
}

/// Returns a name in a folder that this process uses for no other file, in any thread.
fn fresh_name(folder: &Path) -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    folder.join(format!(".recon-{}-{number}.part", std::process::id()))
}

/// Creates a temporary file with the permissions of the file that it will replace, if that exists.
fn create(folder: &Path, replaced: Option<fs::Metadata>) -> io::Result<PathBuf> {
    let mut temporaries = temporary_files();
    loop {
        let path = fresh_name(folder);
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => {
                temporaries.push(path.clone());
                // Windows has a mark of read-only files instead of permissions. These are not replaced, and a temporary
                // file with the mark could not be removed.
                if let Some(about) = replaced.filter(|_| cfg!(unix)) {
                    file.set_permissions(about.permissions())?;
                }
                return Ok(path);
            }
            // A process with the same id, in a different container or on a different machine, uses that name.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;

    /// A test folder that is removed when dropped.
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
        fn create(&self, name: &str, text: &str) -> PathBuf {
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
        write_atomically(|files| {
            targets.iter().try_for_each(|t| files.add(t).map(|part| fs::write(part, text).unwrap()))
        })
    }

    #[test]
    fn failing_writers_leave_nothing() {
        let dir = Folder::new("failing");
        let target = dir.create("a.bin", "old");
        let r: Result<()> = write_atomically(|files| {
            fs::write(files.add(&target)?, "half").unwrap();
            bail!(IO, "disk full")
        });
        assert_eq!(r.unwrap_err().message(), "disk full");
        let panicking =
            || write_atomically(|files| -> Result<()> { panic!("{:?}", fs::write(files.add(&target)?, "half")) });
        assert!(std::panic::catch_unwind(panicking).is_err());
        assert_eq!((fs::read_to_string(&target).unwrap(), dir.names()), ("old".into(), vec!["a.bin".into()]));
    }

    #[test]
    fn several_files_are_replaced_together_or_not_at_all() {
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
        // The second target becomes a folder during the write: the first must be restored.
        let r = write_atomically(|files| {
            fs::write(files.add(&a)?, "3").unwrap();
            fs::write(files.add(&b)?, "3").unwrap();
            fs::remove_file(&b).unwrap();
            fs::create_dir(&b).unwrap();
            Ok(())
        });
        assert_eq!(r.unwrap_err().kind(), ErrorKind::IO);
        assert_eq!((read(&a), dir.names()), ("2".into(), vec!["x.cfl".into(), "x.hdr".into()]));
        // A new file is removed after a failure.
        let c = dir.path("c");
        let r = write_atomically(|files| {
            fs::write(files.add(&c)?, "3").unwrap();
            fs::write(files.add(&dir.path("d"))?, "3").unwrap();
            fs::create_dir(dir.path("d")).unwrap();
            Ok(())
        });
        assert!(r.is_err() && !c.exists());
    }

    #[test]
    fn invalid_names_are_errors() {
        let dir = Folder::new("none");
        for (path, words) in [
            (dir.path("nowhere/a.bin"), "nowhere does not exist: create it first"),
            (dir.0.clone(), "this is a folder"),
            (dir.path("a/"), "not a file name"),
            (PathBuf::new(), "not a file name"),
            (dir.path("a/.."), "not a file name"),
            (dir.create("file", "").join("a"), if cfg!(windows) { "is not a folder" } else { "Not a directory" }),
        ] {
            let e = check_writable(&path).unwrap_err();
            assert!(e.kind() == ErrorKind::IO && e.message().contains(words), "{path:?}: {e}");
        }
        assert_eq!(dir.names(), ["file"]);
    }

    #[test]
    #[cfg(unix)]
    fn links_devices_and_fifos_are_preserved() {
        use std::os::unix::fs::{symlink, FileTypeExt, PermissionsExt};
        let dir = Folder::new("links");
        let (file, link, dangling, fifo) =
            (dir.create("file", "old"), dir.path("link"), dir.path("dangling"), dir.path("fifo"));
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
        // SAFETY: the name ends in 0.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let reader = std::thread::spawn({
            let fifo = fifo.clone();
            move || fs::read_to_string(fifo).unwrap()
        });
        write(&[&fifo], "through").unwrap();
        assert_eq!(reader.join().unwrap(), "through");
        assert!(fs::metadata(&fifo).unwrap().file_type().is_fifo());
        // If a device is full, no file appears.
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
    fn all_names_of_a_file_have_one_identity() {
        let dir = Folder::new("names");
        let file = dir.create("file", "");
        fs::hard_link(&file, dir.path("second")).unwrap();
        std::os::unix::fs::symlink("absent", dir.path("link")).unwrap();
        let same = |a: &str, b: &str| identity(&dir.path(a)).unwrap() == identity(&dir.path(b)).unwrap();
        assert!(same("file", "./file") && same("file", "second") && same("link", "absent") && !same("file", "absent"));
        assert_eq!(identity(Path::new("/dev/null")), None);
    }

    #[test]
    #[cfg(windows)]
    fn names_and_devices_of_windows() {
        let dir = Folder::new("windows");
        let file = dir.create("K\u{f6}rper \u{6838}\u{78c1}.h5", "old");
        fs::hard_link(&file, dir.path("second")).unwrap();
        let same = |a: &str, b: &str| identity(&dir.path(a)).unwrap() == identity(&dir.path(b)).unwrap();
        assert!(
            same("K\u{f6}rper \u{6838}\u{78c1}.h5", "second") && same("absent", "ABSENT") && !same("absent", "second")
        );
        for device in ["NUL", "nul", r"\\.\NUL", "folder/NUL"] {
            assert_eq!(
                (Destination::resolve(Path::new(device)).unwrap(), identity(Path::new(device))),
                (Destination::Stream, None)
            );
        }
        write(&[&file, Path::new("NUL")], "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        // A file that another program uses, and a name that is longer than 260 characters.
        let open =
            std::os::windows::fs::OpenOptionsExt::share_mode(OpenOptions::new().read(true), 0).open(&file).unwrap();
        let e = write(&[&file], "newer").unwrap_err();
        assert!(e.kind() == ErrorKind::IO && e.message().contains("cannot be written"), "{e}");
        drop(open);
        let long = fs::canonicalize(&dir.0).unwrap().join("x".repeat(150)).join("y".repeat(150));
        fs::create_dir_all(&long).unwrap();
        write(&[&long.join("file")], "long").unwrap();
        assert_eq!(fs::read_to_string(long.join("file")).unwrap(), "long");
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
