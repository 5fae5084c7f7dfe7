//! NVRTC, NVIDIA's compiler of kernels, loaded on first use.
//!
//! Its functions are found in the loaded file itself, since each version of CUDA has a different file name. cudarc only
//! knows the names of one version.

use super::library::{driver_version, HAS_CUDA, IS_STATIC};
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::per_process::PerProcess;
use libloading::Library;
use std::ffi::{c_char, c_int, c_void, CStr};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A program of NVRTC (nvrtcProgram).
pub(super) type KernelProgram = *mut c_void;
/// A status of NVRTC (nvrtcResult); 0 after success.
pub(super) type Status = c_int;

/// The functions of NVRTC, named as in nvrtc.h without the prefix. All versions since CUDA 11.1 have them.
pub(super) struct Nvrtc {
    /// Major and minor version.
    pub(super) version: (u32, u32),
    pub(super) create_program: unsafe extern "C" fn(
        *mut KernelProgram,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> Status,
    pub(super) compile_program: unsafe extern "C" fn(KernelProgram, c_int, *const *const c_char) -> Status,
    pub(super) destroy_program: unsafe extern "C" fn(*mut KernelProgram) -> Status,
    pub(super) get_cubin_size: unsafe extern "C" fn(KernelProgram, *mut usize) -> Status,
    pub(super) get_cubin: unsafe extern "C" fn(KernelProgram, *mut c_char) -> Status,
    pub(super) get_program_log_size: unsafe extern "C" fn(KernelProgram, *mut usize) -> Status,
    pub(super) get_program_log: unsafe extern "C" fn(KernelProgram, *mut c_char) -> Status,
    get_error_string: unsafe extern "C" fn(Status) -> *const c_char,
    /// Keeps the functions valid.
    _library: Library,
}

impl Nvrtc {
    /// Loads a file. The error is a text that follows the name of the file.
    fn open(path: &Path) -> std::result::Result<Nvrtc, String> {
        let library = open_library(path).map_err(|e| {
            // The system's text, such as "file too short".
            let reason = std::error::Error::source(&e).map_or(e.to_string(), |reason| reason.to_string());
            format!("cannot be loaded ({reason})")
        })?;
        /// Finds the function of a name.
        macro_rules! function {
            ($name:literal) => {
                // SAFETY: NVRTC's function of this name has the type of the field, and the library outlives it.
                match unsafe { library.get(concat!($name, "\0").as_bytes()) } {
                    Ok(function) => *function,
                    Err(_) => return Err(format!("has no function {}", $name)),
                }
            };
        }
        let version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> Status = function!("nvrtcVersion");
        let (mut major, mut minor) = (0, 0);
        // SAFETY: two numbers to write.
        let status = unsafe { version(&mut major, &mut minor) };
        if status != 0 {
            return Err(format!("does not report its version (status {status})"));
        }
        Ok(Nvrtc {
            version: (major as u32, minor as u32),
            create_program: function!("nvrtcCreateProgram"),
            compile_program: function!("nvrtcCompileProgram"),
            destroy_program: function!("nvrtcDestroyProgram"),
            get_cubin_size: function!("nvrtcGetCUBINSize"),
            get_cubin: function!("nvrtcGetCUBIN"),
            get_program_log_size: function!("nvrtcGetProgramLogSize"),
            get_program_log: function!("nvrtcGetProgramLog"),
            get_error_string: function!("nvrtcGetErrorString"),
            _library: library,
        })
    }

    /// Returns the name of a status, for example NVRTC_ERROR_COMPILATION.
    pub(super) fn name_of(&self, status: Status) -> String {
        // SAFETY: the function returns a constant text for every number, or null.
        unsafe {
            match (self.get_error_string)(status) {
                text if text.is_null() => format!("status {status}"),
                text => CStr::from_ptr(text).to_string_lossy().into_owned(),
            }
        }
    }
}

/// Loads NVRTC once. The error `DriverIncomplete` says what to install.
pub(super) fn nvrtc() -> Result<&'static Nvrtc> {
    static NVRTC: PerProcess<OnceLock<Result<Nvrtc>>> = PerProcess::new(OnceLock::new(), |_| OnceLock::new());
    NVRTC.get().get_or_init(load).as_ref().map_err(Error::clone)
}

/// Returns the version of NVRTC, as major and minor. The error `DriverIncomplete` says what to install.
pub fn version() -> Result<(u32, u32)> {
    nvrtc().map(|nvrtc| nvrtc.version)
}

fn load() -> Result<Nvrtc> {
    if !HAS_CUDA {
        return Err(Error::new(ErrorKind::DriverIncomplete, "NVIDIA has no CUDA for this system: use device cpu"));
    }
    if IS_STATIC {
        let message = "this static build cannot load NVRTC: use a build for glibc, or device cpu";
        return Err(Error::new(ErrorKind::DriverIncomplete, message));
    }
    let named = std::env::var_os("RECON_NVRTC").filter(|name| !name.is_empty()).map(PathBuf::from);
    if let Some(path) = named {
        return Nvrtc::open(&path).map_err(|why| {
            let message = format!(
                "the file that the environment variable RECON_NVRTC names, {}, {why}: set it to NVRTC's file {FILE}, \
                 or unset it",
                path.display()
            );
            Error::new(ErrorKind::DriverIncomplete, message)
        });
    }
    // Code of a newer major version is refused by the driver.
    let newest = driver_version().map_or(u32::MAX, |(major, _)| major);
    let mut refused = None;
    for path in files() {
        match Nvrtc::open(&path) {
            Ok(nvrtc) if nvrtc.version.0 <= newest => {
                log::debug!("NVRTC: {}", path.display());
                return Ok(nvrtc);
            }
            Ok(nvrtc) => refused = refused.or(Some(nvrtc)),
            Err(why) => log::trace!("NVRTC: {} {why}", path.display()),
        }
    }
    refused.ok_or_else(|| {
        let message = format!(
            "NVRTC, which compiles the GPU's kernels, was not found: install it (the CUDA toolkit, or the package \
             nvidia-cuda-nvrtc of PyPI) where the system finds it, or set the environment variable RECON_NVRTC to its \
             file {FILE}"
        );
        Error::new(ErrorKind::DriverIncomplete, message)
    })
}

/// Loads a library.
fn open_library(path: &Path) -> std::result::Result<Library, libloading::Error> {
    #[cfg(windows)]
    if path.is_absolute() {
        use libloading::os::windows::{Library as WindowsLibrary, LOAD_WITH_ALTERED_SEARCH_PATH};
        // NVRTC loads its built-in functions by their name, which Windows does not search in NVRTC's folder. It finds a
        // library that is loaded already. Without them the compilation fails with a message.
        let names = path.parent().and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
        for builtins in names.filter(|name| name.file_name().to_string_lossy().starts_with("nvrtc-builtins")) {
            // SAFETY: loading the library runs its initialisers only.
            if let Ok(library) = unsafe { Library::new(builtins.path()) } {
                std::mem::forget(library);
            }
        }
        // SAFETY: loading NVRTC runs its initialisers only.
        return unsafe { WindowsLibrary::load_with_flags(path, LOAD_WITH_ALTERED_SEARCH_PATH) }.map(Into::into);
    }
    // SAFETY: loading NVRTC runs its initialisers only.
    unsafe { Library::new(path) }
}

/// Name of the file, for messages.
const FILE: &str = if cfg!(windows) { "nvrtc64_<version>.dll" } else { "libnvrtc.so.<version>" };
/// Names of the file in the order of the search, of CUDA 13, 12, and 11.2 to 11.8.
const NAMES: &[&str] = if cfg!(windows) {
    &["nvrtc64_130_0.dll", "nvrtc64_120_0.dll", "nvrtc64_112_0.dll"]
} else {
    &["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"]
};
/// Folders of a CUDA toolkit that contain the file. On Windows, CUDA 13 has its libraries in `bin\x64`.
const FOLDERS: &[&str] = if cfg!(windows) {
    &["bin", r"bin\x64"]
} else if cfg!(target_arch = "aarch64") {
    &["lib64", "targets/sbsa-linux/lib", "targets/aarch64-linux/lib"]
} else {
    &["lib64", "targets/x86_64-linux/lib"]
};

/// Returns files to try: first by the system's own search, which also finds an NVRTC that another part of the process
/// has loaded, then in the folders of toolkits.
fn files() -> Vec<PathBuf> {
    let variables = ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(std::env::var_os).filter(|v| !v.is_empty());
    let usual: &[&str] = if cfg!(windows) { &[] } else { &["/usr/local/cuda", "/opt/cuda"] };
    let toolkits = variables.map(PathBuf::from).chain(usual.iter().map(PathBuf::from));
    let folders = toolkits.flat_map(|toolkit| FOLDERS.iter().map(move |folder| toolkit.join(folder)));
    let in_folders = folders.flat_map(|folder| NAMES.iter().map(move |name| folder.join(name)));
    NAMES.iter().map(PathBuf::from).chain(in_folders).collect()
}
