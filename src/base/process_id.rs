//! The id of this process, without a system call where the system tells a forked child from its parent by memory. The
//! creation of a plan on a GPU asks for it a hundred times, which took 12 us (17,408 samples, H200).

/// Returns the id of this process.
#[cfg(not(target_os = "linux"))]
pub fn current() -> u32 {
    std::process::id()
}

/// Returns the id of this process.
#[cfg(target_os = "linux")]
pub fn current() -> u32 {
    match remembered::id().load(std::sync::atomic::Ordering::Relaxed) {
        0 => remembered::ask(),
        id => id,
    }
}

/// An id in memory that Linux fills with zeros in a forked child (`MADV_WIPEONFORK`, since Linux 4.14).
#[cfg(target_os = "linux")]
mod remembered {
    use std::sync::atomic::{AtomicU32, AtomicU8, Ordering};

    /// At least the size of a page on all processors, in words.
    const PAGE: usize = (1 << 16) / size_of::<AtomicU32>();

    /// Contains a whole page, wherever it begins. (Older loaders do not align a library to more than a page.)
    static WORDS: [AtomicU32; 2 * PAGE] = [const { AtomicU32::new(0) }; 2 * PAGE];

    /// Returns the page of the id.
    fn page() -> &'static [AtomicU32] {
        let before = WORDS.as_ptr().addr() / size_of::<AtomicU32>() % PAGE;
        &WORDS[PAGE - before..][..PAGE]
    }

    /// Returns the id of this process, or 0.
    pub fn id() -> &'static AtomicU32 {
        &page()[0]
    }

    /// Whether the system wipes the page in a child.
    static WIPES: AtomicU8 = AtomicU8::new(UNKNOWN);
    const UNKNOWN: u8 = 0;
    const YES: u8 = 1;
    const NO: u8 = 2;

    /// Asks the system for the id, and remembers it if children forget it.
    #[cold]
    pub fn ask() -> u32 {
        if WIPES.load(Ordering::Acquire) == UNKNOWN {
            let found = if is_wiped() { YES } else { NO };
            WIPES.store(found, Ordering::Release);
        }
        let id = std::process::id();
        if WIPES.load(Ordering::Acquire) == YES {
            self::id().store(id, Ordering::Relaxed);
        }
        id
    }

    /// Asks the system to wipe the page in a child. Emulators accept all advice and follow none; they also accept
    /// advice that does not exist.
    fn is_wiped() -> bool {
        const NO_ADVICE: i32 = -1;
        let page = page();
        // SAFETY: nothing else is on this page. Its words are atomic, so they may become zero in a child.
        let advise = |advice| unsafe { libc::madvise(page.as_ptr().cast_mut().cast(), size_of_val(page), advice) };
        advise(NO_ADVICE) != 0 && advise(libc::MADV_WIPEONFORK) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_the_system_says() {
        assert_eq!(current(), std::process::id());
        assert_eq!(current(), std::process::id());
    }

    /// A child, and its child.
    #[test]
    #[cfg(target_os = "linux")]
    fn forked_processes_have_their_own() {
        /// Returns whether `check` holds in a forked child.
        fn holds_in_child(check: impl FnOnce() -> bool) -> bool {
            // SAFETY: the child only calls functions that need no locks, and ends.
            match unsafe { libc::fork() } {
                0 => {
                    let status = i32::from(!check());
                    // SAFETY: ends the child without destructors.
                    unsafe { libc::_exit(status) }
                }
                child => {
                    let mut status = 0;
                    // SAFETY: waits for the child.
                    let waited = unsafe { libc::waitpid(child, &mut status, 0) };
                    waited == child && status == 0
                }
            }
        }
        let parent = current();
        let is_own = |other: u32| current() == std::process::id() && current() != other;
        assert!(holds_in_child(|| {
            let child = std::process::id();
            is_own(parent) && holds_in_child(|| is_own(parent) && is_own(child))
        }));
        assert_eq!(current(), parent);
    }
}
