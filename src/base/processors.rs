//! The number of processors.

use super::per_process::PerProcess;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;
use std::time::Instant;

/// Milliseconds after which the system is asked again. The number may change while a process runs, but on Linux the
/// answer takes 25 microseconds: it reads several files of control groups. A small plan takes 20.
const KNOWN_FOR: u64 = 1000;
/// Bits of the number in a word that also has the time of the answer.
const NUMBER_BITS: u32 = 16;

/// Returns the number of threads that the machine runs at once in this process, as of at most a second ago.
pub(crate) fn processors() -> usize {
    static BEGINNING: PerProcess<OnceLock<Instant>> = PerProcess::new(OnceLock::new(), |_| OnceLock::new());
    /// Milliseconds after `BEGINNING` and the number; 0 at first.
    static KNOWN: AtomicU64 = AtomicU64::new(0);
    let now = BEGINNING.get().get_or_init(Instant::now).elapsed().as_millis() as u64;
    let known = KNOWN.load(Ordering::Relaxed);
    let (asked, number) = (known >> NUMBER_BITS, known & ((1 << NUMBER_BITS) - 1));
    // In a forked process, the answer may be later than now.
    if number > 0 && (asked..asked + KNOWN_FOR).contains(&now) {
        return number as usize;
    }
    let number = std::thread::available_parallelism().map_or(1, usize::from).min((1 << NUMBER_BITS) - 1);
    KNOWN.store(now << NUMBER_BITS | number as u64, Ordering::Relaxed);
    number
}

/// Returns the number of threads for a request of `count`; 0 requests as many as the machine runs at once.
pub(crate) fn requested_threads(count: usize) -> usize {
    Some(count).filter(|&count| count > 0).unwrap_or_else(processors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_that_of_the_system() {
        let expected = std::thread::available_parallelism().unwrap().get();
        assert_eq!([(); 3].map(|()| processors()), [expected; 3]);
        assert_eq!([0, 1, 5].map(requested_threads), [expected, 1, 5]);
    }
}
