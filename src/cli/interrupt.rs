//! Ctrl-C and similar signals end the program at once, except while its files are renamed: then after the last one.

/// Starts a thread that takes the signals that ask the program to end. Must be called before any other thread is
/// started: threads inherit the mask that blocks these signals.
#[cfg(unix)]
pub fn install() {
    use std::io::Write;

    // SAFETY: the calls only read and write the signal set and the action passed to them, which live on this stack and
    // are initialised by sigemptyset and sigaction before they are read.
    let (set, any) = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        let mut any = false;
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            // A signal that is ignored (by nohup, say) stays ignored.
            let mut now: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, std::ptr::null(), &mut now) == 0 && now.sa_sigaction != libc::SIG_IGN {
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
        // SAFETY: the set is initialised, and `signal` is where the number goes.
        if unsafe { libc::sigwait(&set, &mut signal) } != 0 {
            return;
        }
        let _no_more_files = recon::atomic_file::remove_temporary_files();
        let _ = writeln!(std::io::stderr(), "\nrecon: error: interrupted");
        // SAFETY: the call takes no address, and runs no destructors that other threads could interfere with.
        unsafe { libc::_exit(128 + signal) }
    };
    if std::thread::Builder::new().name("signals".into()).spawn(wait).is_err() {
        // SAFETY: the set is initialised. Without the thread, signals act as they did.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut()) };
    }
}

#[cfg(not(unix))]
pub fn install() {}
