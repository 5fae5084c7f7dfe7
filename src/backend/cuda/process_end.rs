//! The distinction between the end of the process and the unloading of the library. Both run the library's destructors.

use crate::base::per_process::PerProcess;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;

extern "C" {
    /// Registers a function for the unloading of an object, or with a null object for the end of the process (Itanium
    /// C++ ABI).
    fn __cxa_atexit(
        function: unsafe extern "C" fn(*mut libc::sem_t) -> c_int,
        argument: *mut libc::sem_t,
        object: *mut c_void,
    ) -> c_int;
}

/// A semaphore that the C library increases when the process ends. A function of this library cannot be registered for
/// the end of the process only, because the library may be unloaded before.
struct EndSignal(*mut libc::sem_t);
// SAFETY: semaphores are made for several threads.
unsafe impl Send for EndSignal {}
// SAFETY: as above.
unsafe impl Sync for EndSignal {}

/// `None` inside if the signal could not be registered.
static SIGNAL: PerProcess<OnceLock<Option<EndSignal>>> = PerProcess::new(OnceLock::new(), |_| OnceLock::new());

/// Prepares [`is_ending`]. Later calls do nothing.
pub fn watch() {
    SIGNAL.get().get_or_init(|| {
        // SAFETY: the memory is large enough, and never freed because the C library uses it when the process ends.
        let signal = unsafe {
            let signal: *mut libc::sem_t = libc::malloc(size_of::<libc::sem_t>()).cast();
            if signal.is_null() || libc::sem_init(signal, 0, 0) != 0 {
                return None;
            }
            signal
        };
        // SAFETY: a function of the C library, which is never unloaded. It is called with a pointer, as the ABI
        // expects, and its result is ignored.
        let status = unsafe { __cxa_atexit(libc::sem_post, signal, null_mut()) };
        (status == 0).then_some(EndSignal(signal))
    });
}

/// Returns whether the process is ending; `None` if this is unknown.
pub fn is_ending() -> Option<bool> {
    let signal = SIGNAL.get().get()?.as_ref()?;
    let mut count = 0;
    // SAFETY: the semaphore is never freed.
    let status = unsafe { libc::sem_getvalue(signal.0, &mut count) };
    (status == 0).then_some(count > 0)
}
