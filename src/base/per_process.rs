//! Global values that each process has of its own: a forked child never waits for a lock of its parent.
//!
//! A child has its parent's memory but only the thread that forked. If another thread of the parent holds a lock at
//! that moment, the child's copy stays locked. Every global lock and one-time initialisation of the library is
//! therefore a [`PerProcess`]. A child recognises by the process id that a value belongs to its parent, and creates its
//! own.

use super::process_id;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// A global value that each process has of its own.
pub struct PerProcess<T: 'static> {
    /// The value of the first process that uses it. It needs no allocation.
    first: T,
    /// Process id of the owner of `first`; 0 before the first use.
    owner: AtomicU32,
    /// The value of the most recent forked process that uses it; null before the first.
    forked: AtomicPtr<Slot<T>>,
    /// Creates the value of a forked process from its parent's. A lock in the parent's value may be locked for ever.
    inherit: fn(&'static T) -> T,
}

struct Slot<T> {
    process: u32,
    value: T,
}

impl<T: Send + Sync> PerProcess<T> {
    /// Creates a global from the value of the first process and the function that creates the value of a forked
    /// process.
    pub const fn new(first: T, inherit: fn(&'static T) -> T) -> Self {
        PerProcess { first, owner: AtomicU32::new(0), forked: AtomicPtr::new(null_mut()), inherit }
    }

    /// Returns the value of this process.
    pub fn get(&'static self) -> &'static T {
        self.get_as(process_id::current())
    }

    /// Returns the value of the calling process, whose id is `process`.
    fn get_as(&'static self, process: u32) -> &'static T {
        let owner = match self.owner.compare_exchange(0, process, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => process,
            Err(owner) => owner,
        };
        if owner == process {
            return &self.first;
        }
        let mut latest = self.forked.load(Ordering::Acquire);
        loop {
            // SAFETY: null, or a slot that was published below; slots are never freed.
            let parent = match unsafe { latest.as_ref() } {
                Some(slot) if slot.process == process => return &slot.value,
                Some(slot) => &slot.value,
                None => &self.first,
            };
            let new = Box::into_raw(Box::new(Slot { process, value: (self.inherit)(parent) }));
            match self.forked.compare_exchange(latest, new, Ordering::AcqRel, Ordering::Acquire) {
                // SAFETY: published, and never freed.
                Ok(_) => return unsafe { &(*new).value },
                Err(now) => {
                    // Another thread of this process was faster.
                    // SAFETY: created above and not published.
                    drop(unsafe { Box::from_raw(new) });
                    latest = now;
                }
            }
        }
    }
}

/// Returns whether this process is ending, so that its other threads no longer exist. Windows stops them before it
/// calls the destructors of libraries; other systems do not.
pub fn is_ending() -> bool {
    #[cfg(windows)]
    {
        #[link(name = "ntdll", kind = "raw-dylib")]
        extern "system" {
            fn RtlDllShutdownInProgress() -> u8;
        }
        // SAFETY: the function only reads a flag.
        unsafe { RtlDllShutdownInProgress() != 0 }
    }
    #[cfg(not(windows))]
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn a_forked_process_has_its_own_value() {
        static VALUE: PerProcess<Mutex<Vec<u32>>> = PerProcess::new(Mutex::new(Vec::new()), |parent| {
            // The parent's lock may be locked for ever.
            let count = parent.try_lock().map(|values| values.len() as u32).unwrap_or(u32::MAX);
            Mutex::new(vec![count])
        });
        VALUE.get_as(7).lock().unwrap().extend([1, 2, 3]);
        assert_eq!(*VALUE.get_as(7).lock().unwrap(), [1, 2, 3]);
        let locked = VALUE.get_as(7).lock().unwrap();
        assert_eq!(*VALUE.get_as(8).lock().unwrap(), [u32::MAX]);
        drop(locked);
        VALUE.get_as(8).lock().unwrap().push(5);
        assert_eq!(*VALUE.get_as(8).lock().unwrap(), [u32::MAX, 5]);
        // A child of the child.
        assert_eq!(*VALUE.get_as(9).lock().unwrap(), [2]);
        assert!(std::ptr::eq(VALUE.get_as(9), VALUE.get_as(9)));
    }

    #[test]
    fn threads_of_one_process_agree() {
        static VALUE: PerProcess<Mutex<u32>> = PerProcess::new(Mutex::new(0), |_| Mutex::new(0));
        VALUE.get_as(1);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..100).for_each(|_| *VALUE.get_as(2).lock().unwrap() += 1));
            }
        });
        assert_eq!(*VALUE.get_as(2).lock().unwrap(), 800);
        assert_eq!(*VALUE.get_as(1).lock().unwrap(), 0);
    }
}
