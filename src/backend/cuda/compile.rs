//! Kernel sources, compiled for a GPU by NVRTC on first use, and the cache folder of compiled kernels.
//!
//! The folder is the environment variable RECON_CACHE_DIR, or `recon` in the user's cache folder. A file contains the
//! machine code of one source with one set of options for one architecture, and the version of NVRTC. Files are written
//! atomically, so several processes may fill the folder at once. Damaged or truncated files and files of a different
//! version are compiled again. A folder that cannot be written is only read.

use super::nvrtc::{self, nvrtc, KernelProgram, Status};
use crate::base::atomic_file::write_atomically;
use crate::base::checksum::Checksum;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::processors::processors;
use std::borrow::Cow;
use std::ffi::{c_char, CStr, CString};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// First bytes of a cache file; the number is that of the layout.
const MAGIC: &[u8; 8] = b"reconK01";

/// A source with its options.
#[derive(Debug, Clone)]
pub struct Kernels {
    /// Name, for files and messages.
    pub name: &'static str,
    /// Text, without the common header that precedes all sources.
    source: &'static str,
    macros: Vec<(&'static str, MacroValue)>,
    /// Checksum of the text and of the macros so far.
    sum: Checksum,
}

/// Value of a macro. It is made into text when kernels are compiled, because most plans only look them up.
#[derive(Debug, Clone, PartialEq)]
enum MacroValue {
    Number(usize),
    Text(Cow<'static, str>),
}

/// Compares the contents instead of the keys, so that tests can check that keys distinguish them.
impl PartialEq for Kernels {
    fn eq(&self, other: &Self) -> bool {
        (self.name, self.source, &self.macros) == (other.name, other.source, &other.macros)
    }
}

impl Kernels {
    /// Returns the kernels of a source in a precision of `bytes` bytes.
    pub fn new(name: &'static str, source: &'static str, bytes: usize, macros: &[(&'static str, usize)]) -> Self {
        let (real, double) = if bytes == 4 { ("float", 0) } else { ("double", 1) };
        let empty = Kernels { name, source, macros: Vec::with_capacity(macros.len() + 3), sum: sum_of_text(source) };
        let precise = empty.with_value("REAL", MacroValue::Text(real.into()));
        let numbers = [("DOUBLE", double)].into_iter().chain(macros.iter().copied());
        numbers.fold(precise, |kernels, (name, value)| kernels.with_value(name, MacroValue::Number(value)))
    }

    /// Returns the same kernels with one more macro.
    pub fn with(self, name: &'static str, value: String) -> Self {
        self.with_value(name, MacroValue::Text(value.into()))
    }

    fn with_value(mut self, name: &'static str, value: MacroValue) -> Self {
        self.sum.add(name.as_bytes());
        match &value {
            MacroValue::Number(number) => self.sum.add(&number.to_le_bytes()),
            MacroValue::Text(text) => self.sum.add(text.as_bytes()),
        }
        self.macros.push((name, value));
        self
    }

    /// Returns the macros as options of a compiler.
    pub fn options(&self) -> Vec<String> {
        let option = |(name, value): &(&str, MacroValue)| match value {
            MacroValue::Number(number) => format!("-D{name}={number}"),
            MacroValue::Text(text) => format!("-D{name}={text}"),
        };
        self.macros.iter().map(option).collect()
    }

    /// Returns the whole text.
    pub fn text(&self) -> String {
        text_of(self.source)
    }

    /// Returns a key that is different for different sources or options.
    pub fn key(&self) -> u64 {
        self.sum.0
    }

    fn file(&self, architecture: &str) -> String {
        format!("{}-{architecture}-{:016x}.cubin", self.name, self.key())
    }
}

/// Returns the whole text of a source.
fn text_of(source: &str) -> String {
    format!("{}\n{source}", include_str!("../../../kernels/common.cuh"))
}

/// Returns the checksum of the text of a source. It is computed once, because it takes longer than setting a new
/// trajectory should.
fn sum_of_text(source: &'static str) -> Checksum {
    static KNOWN: Mutex<Vec<(&'static str, Checksum)>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().unwrap_or_else(|e| e.into_inner());
    if let Some((_, sum)) = known.iter().find(|(other, _)| std::ptr::eq(*other, source)) {
        return *sum;
    }
    let mut sum = Checksum::new();
    sum.add(text_of(source).as_bytes());
    known.push((source, sum));
    sum
}

/// Returns the folder of compiled kernels, or `None` if the user has no home folder.
pub fn cache_folder() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    if cfg!(windows) {
        return set("RECON_CACHE_DIR").or_else(|| set("LOCALAPPDATA").map(|f| f.join("recon").join("cache")));
    }
    set("RECON_CACHE_DIR")
        .or_else(|| set("XDG_CACHE_HOME").map(|f| f.join("recon")))
        .or_else(|| set("HOME").map(|f| f.join(".cache").join("recon")))
}

/// Returns machine code loaded by `load`, from a valid file of the folder or from the compiler.
pub fn code<M>(
    kernels: &Kernels,
    architecture: &str,
    folder: Option<&Path>,
    load: impl Fn(&[u8]) -> Result<M>,
) -> Result<M> {
    let compiler = nvrtc::version();
    let path = folder.map(|f| f.join(kernels.file(architecture)));
    if let Some(path) = &path {
        match read(path, compiler.as_ref().ok()) {
            // Without a compiler any version is used.
            Ok(code) => match load(&code) {
                Ok(module) => return Ok(module),
                Err(e) if compiler.is_err() => return Err(e.within(path.display())),
                Err(e) => log::warn!("{}: {e}: compiling these kernels again", path.display()),
            },
            Err(CacheMiss::Absent) => {}
            Err(CacheMiss::Bad(why)) => log::warn!("{}: {why}: compiling these kernels again", path.display()),
        }
    }
    compiler?;
    let started = std::time::Instant::now();
    let code = compile(kernels, architecture)?;
    log::info!("compiled {} for {architecture} in {:.0} ms", kernels.name, 1e3 * started.elapsed().as_secs_f64());
    let module = load(&code)?;
    if let Some(folder) = folder {
        if let Err(e) = write(folder, kernels, architecture, &code) {
            log::info!("compiled kernels cannot be stored, so the next process compiles them again: {e}");
        }
    }
    Ok(module)
}

/// Fills a folder with these kernels for an architecture such as `sm_90`, for use as RECON_CACHE_DIR on other machines.
/// No GPU is needed. Calls `done` with the number of finished kernels after each.
pub fn precompile(all: &[Kernels], architecture: &str, folder: &Path, done: impl Fn(usize) + Sync) -> Result<()> {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    let (next, ready) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || -> Result<()> {
        while let Some(kernels) = all.get(next.fetch_add(1, Relaxed)) {
            write(folder, kernels, architecture, &compile(kernels, architecture)?)?;
            done(ready.fetch_add(1, Relaxed) + 1);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..processors()).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|w| w.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Compiles kernels to machine code with NVRTC.
pub fn compile(kernels: &Kernels, architecture: &str) -> Result<Vec<u8>> {
    let nvrtc = nvrtc()?;
    let failed = |what: &str, status: Status, log: &str| {
        let first = log.lines().find(|l| l.contains("error")).unwrap_or("no message");
        let (major, minor) = nvrtc.version;
        Error::new(
            ErrorKind::DriverIncomplete,
            format!(
                "NVRTC {major}.{minor} could not {what} the kernels {} for {architecture} ({}: {first}): use an NVRTC \
                 that supports this architecture, or device cpu",
                kernels.name,
                nvrtc.name_of(status)
            ),
        )
    };
    let text = |s: String| CString::new(s).expect("sources and options have no zeros");
    let source = text(kernels.text());
    let name = text(format!("{}.cu", kernels.name));
    let mut options = kernels.options();
    options.push(format!("--gpu-architecture={architecture}"));
    // The default since CUDA 12. CUDA 11 has an older default.
    options.push("--std=c++17".to_owned());
    let options: Vec<CString> = options.into_iter().map(text).collect();
    let pointers: Vec<_> = options.iter().map(|o| o.as_ptr()).collect();

    let (mut program, none) = (std::ptr::null_mut(), std::ptr::null());
    // SAFETY: texts end in 0 and outlive the program, which is destroyed once, below.
    unsafe {
        let status = (nvrtc.create_program)(&mut program, source.as_ptr(), name.as_ptr(), 0, none, none);
        if status != 0 {
            return Err(failed("read", status, ""));
        }
        let status = (nvrtc.compile_program)(program, pointers.len() as i32, pointers.as_ptr());
        let result = if status == 0 {
            match output(program, nvrtc.get_cubin_size, nvrtc.get_cubin) {
                Ok(code) if !code.is_empty() => Ok(code),
                Ok(_) => Err(failed("write", status, "")),
                Err(status) => Err(failed("write", status, "")),
            }
        } else {
            let log = output(program, nvrtc.get_program_log_size, nvrtc.get_program_log).unwrap_or_default();
            let log = CStr::from_bytes_until_nul(&log).unwrap_or_default().to_string_lossy().into_owned();
            log::debug!("{log}");
            Err(failed("compile", status, &log))
        };
        (nvrtc.destroy_program)(&mut program);
        result
    }
}

/// Returns the bytes of a program that `get` writes and `size` counts, or the status of a failure.
///
/// # Safety
/// `program` is a program of NVRTC, and the functions are NVRTC's for one of its outputs.
unsafe fn output(
    program: KernelProgram,
    size: unsafe extern "C" fn(KernelProgram, *mut usize) -> Status,
    get: unsafe extern "C" fn(KernelProgram, *mut c_char) -> Status,
) -> std::result::Result<Vec<u8>, Status> {
    let mut count = 0;
    // SAFETY: by the caller's promise, the first function writes a number, and the second one as many bytes.
    unsafe {
        let mut status = size(program, &mut count);
        let mut bytes = vec![0u8; count];
        if status == 0 && count > 0 {
            status = get(program, bytes.as_mut_ptr().cast());
        }
        if status == 0 {
            Ok(bytes)
        } else {
            Err(status)
        }
    }
}

enum CacheMiss {
    Absent,
    Bad(String),
}

/// Reads the machine code of a file, if it is complete and, with a compiler, of that compiler's version.
fn read(path: &Path, compiler: Option<&(u32, u32)>) -> std::result::Result<Vec<u8>, CacheMiss> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Err(CacheMiss::Absent),
        Err(e) => return Err(CacheMiss::Bad(e.to_string())),
    };
    let bad = |why: &str| Err(CacheMiss::Bad(why.to_owned()));
    // Layout: magic, two version numbers, checksum of the code, code.
    let Some((head, code)) = bytes.split_at_checked(24) else { return bad("the file is cut short") };
    if &head[..8] != MAGIC {
        return bad("this is not a file of compiled kernels of this version");
    }
    let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let version = (number(8), number(12));
    if compiler.is_some_and(|c| *c != version) {
        return bad(&format!("it was compiled by NVRTC {}.{}", version.0, version.1));
    }
    if Checksum::of(code).to_le_bytes() != head[16..] {
        return bad("the file is damaged or cut short");
    }
    Ok(code.to_vec())
}

/// Writes machine code to the folder atomically.
pub fn write(folder: &Path, kernels: &Kernels, architecture: &str, code: &[u8]) -> Result<PathBuf> {
    let (major, minor) = nvrtc::version()?;
    let path = folder.join(kernels.file(architecture));
    let mut bytes = MAGIC.to_vec();
    bytes.extend(major.to_le_bytes());
    bytes.extend(minor.to_le_bytes());
    bytes.extend(Checksum::of(code).to_le_bytes());
    bytes.extend(code);
    let failed = |e: std::io::Error| {
        Error::new(ErrorKind::IO, format!("{}: could not write compiled kernels: {e}", path.display()))
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    write_atomically(|files| std::fs::write(files.add(&path)?, &bytes).map_err(failed))?;
    Ok(path)
}
