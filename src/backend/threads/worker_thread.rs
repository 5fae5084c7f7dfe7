//! The operating system's thread of a worker.
//!
//! On Unix it is not a thread of Rust's standard library. Such a thread allocates memory when it starts, to register a
//! destructor, and glibc ends a process that has no memory at that moment. It also takes a lock if `main` is Rust's, so
//! that a child that is forked meanwhile could not start threads.

use std::io;

/// A thread that was started and not joined yet.
pub struct WorkerThread(#[cfg(unix)] libc::pthread_t, #[cfg(not(unix))] std::thread::JoinHandle<()>);

// SAFETY: any thread may join another one. With musl the system's type is a pointer, which nothing here dereferences.
#[cfg(unix)]
unsafe impl Send for WorkerThread {}
// SAFETY: as above; a shared reference allows nothing.
#[cfg(unix)]
unsafe impl Sync for WorkerThread {}

impl WorkerThread {
    /// Starts worker `number`, which calls `work`.
    ///
    /// # Errors
    /// The system refused the thread, or there is no memory for `work`.
    #[cfg(unix)]
    pub fn start<F: FnOnce() + Send + 'static>(number: usize, work: F) -> io::Result<WorkerThread> {
        /// Bytes of a thread's stack, as in Rust's standard library.
        const STACK: usize = 2 << 20;
        let error = io::Error::from_raw_os_error;
        let start = crate::base::error::try_box((number, work), "a thread").map_err(|_| error(libc::ENOMEM))?;
        let argument = Box::into_raw(start);
        let mut attributes = std::mem::MaybeUninit::uninit();
        let mut thread = std::mem::MaybeUninit::uninit();
        // SAFETY: the attributes are initialised before use, and destroyed. The new thread alone uses the argument, whose
        // type `body` knows.
        let status = unsafe {
            match libc::pthread_attr_init(attributes.as_mut_ptr()) {
                0 => {
                    // This size is valid on every system.
                    libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), STACK);
                    let status =
                        libc::pthread_create(thread.as_mut_ptr(), attributes.as_ptr(), body::<F>, argument.cast());
                    libc::pthread_attr_destroy(attributes.as_mut_ptr());
                    status
                }
                status => status,
            }
        };
        if status != 0 {
            // SAFETY: no thread was started, so that the argument is still owned here.
            drop(unsafe { Box::from_raw(argument) });
            return Err(error(status));
        }
        // SAFETY: written by the successful call.
        Ok(WorkerThread(unsafe { thread.assume_init() }))
    }

    /// Waits for the end of the thread.
    #[cfg(unix)]
    pub fn join(self) {
        // SAFETY: the thread was not joined before, since that takes the value. There is no error: the thread exists, and
        // a worker does not join itself.
        unsafe { libc::pthread_join(self.0, std::ptr::null_mut()) };
    }

    /// Starts worker `number`, which calls `work`.
    ///
    /// # Errors
    /// The system refused the thread.
    #[cfg(not(unix))]
    pub fn start<F: FnOnce() + Send + 'static>(number: usize, work: F) -> io::Result<WorkerThread> {
        std::thread::Builder::new().name(format!("recon {number}")).spawn(work).map(WorkerThread)
    }

    /// Waits for the end of the thread.
    #[cfg(not(unix))]
    pub fn join(self) {
        // Workers catch the panics of their tasks, so that the result contains no panic.
        let _ = self.0.join();
    }
}

/// The body of a thread. `argument` is the box of [`WorkerThread::start`].
#[cfg(unix)]
extern "C" fn body<F: FnOnce()>(argument: *mut std::ffi::c_void) -> *mut std::ffi::c_void {
    // SAFETY: from `start`, which gave the box to this thread alone.
    let (number, work) = *unsafe { Box::from_raw(argument.cast::<(usize, F)>()) };
    set_name(number);
    // Workers catch the panics of their tasks. No panic may unwind into C.
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    std::ptr::null_mut()
}

/// Names the calling thread for debuggers.
#[cfg(unix)]
fn set_name(number: usize) {
    // Linux supports 15 bytes and a zero byte. A longer name is shortened.
    let mut name = [0u8; 16];
    let _ = io::Write::write_fmt(&mut &mut name[..15], format_args!("recon {number}"));
    #[cfg(any(target_os = "linux", target_os = "android"))]
    // SAFETY: the name ends with a zero byte.
    unsafe {
        libc::pthread_setname_np(libc::pthread_self(), name.as_ptr().cast());
    }
    #[cfg(target_vendor = "apple")]
    // SAFETY: the name ends with a zero byte.
    unsafe {
        libc::pthread_setname_np(name.as_ptr().cast());
    }
}
