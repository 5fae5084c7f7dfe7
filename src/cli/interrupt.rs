//! Handling of Ctrl-C and similar signals. They end the program at once, or after the last file if files are being
//! renamed to their final names.

/// Starts a thread that receives SIGINT, SIGTERM and SIGHUP. Must be called before any other thread is started, because
/// threads inherit the mask that blocks these signals.
#[cfg(unix)]
pub fn install() {
    use std::io::Write;

    // SAFETY: the calls only read and write the signal set and the action passed to them. Both are on this stack, and
    // sigemptyset and sigaction initialise them before they are read.
    let (set, any) = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        let mut any = false;
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            // An ignored signal stays ignored, for example SIGHUP under nohup.
            let mut action: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, std::ptr::null(), &mut action) == 0 && action.sa_sigaction != libc::SIG_IGN {
                libc::sigaddset(&mut set, signal);
                any = true;
            }
        }
        (set, any)
    };
    // SAFETY: the set is initialised.
    if !any || unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) } != 0 {
        return;
    }
    let wait = move || {
        let mut signal = 0;
        // SAFETY: the set is initialised, and `signal` receives the number.
        if unsafe { libc::sigwait(&set, &mut signal) } != 0 {
            return;
        }
        let _no_more_files = recon::atomic_file::remove_temporary_files();
        crate::run::streams::remove_folder();
        let _ = writeln!(std::io::stderr(), "\nrecon: error: interrupted");
        // SAFETY: the call takes no address, and runs no destructors that other threads could interfere with.
        unsafe { libc::_exit(128 + signal) }
    };
    if std::thread::Builder::new().name("signals".into()).spawn(wait).is_err() {
        // SAFETY: the set is initialised. Without the thread, the signals have their previous effect.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut()) };
    }
}

/// Handles Ctrl-C, Ctrl-Break, a closed console window, and the end of the session. Windows calls the handler in a
/// thread of its own. If the program was started with Ctrl-C ignored, it stays ignored.
#[cfg(windows)]
pub fn install() {
    use std::io::Write;
    use windows_sys::Win32::System::Console::{
        SetConsoleCtrlHandler, CTRL_BREAK_EVENT, CTRL_CLOSE_EVENT, CTRL_C_EVENT,
    };
    use windows_sys::Win32::System::Threading::{GetCurrentProcess, TerminateProcess};

    unsafe extern "system" fn end(event: u32) -> i32 {
        // The exit status that the signal with the same cause has on Unix.
        let signal = match event {
            CTRL_C_EVENT | CTRL_BREAK_EVENT => libc::SIGINT,
            CTRL_CLOSE_EVENT => SIGHUP,
            _ => libc::SIGTERM,
        };
        let _no_more_files = recon::atomic_file::remove_temporary_files();
        crate::run::streams::remove_folder();
        let _ = writeln!(std::io::stderr(), "\nrecon: error: interrupted");
        // SAFETY: the handle is that of this process. No destructors run that other threads could interfere with.
        unsafe { TerminateProcess(GetCurrentProcess(), (128 + signal) as u32) };
        1
    }
    /// Number of the signal of a closed terminal, which Windows does not have.
    const SIGHUP: i32 = 1;
    // SAFETY: the handler may be called at any time, from a new thread. After a refusal, Ctrl-C has its usual effect.
    unsafe { SetConsoleCtrlHandler(Some(end), 1) };
}

#[cfg(not(any(unix, windows)))]
pub fn install() {}
