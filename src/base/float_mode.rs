//! The processor's floating-point mode: the standard mode while the library computes, the caller's mode afterwards.

/// Guard of the standard mode: round to nearest, denormal numbers supported. Results must not depend on the mode of the
/// calling thread. Dropping the guard restores the previous mode.
pub struct FloatMode {
    #[cfg(target_arch = "x86_64")]
    saved: u32,
}

impl FloatMode {
    /// Sets the standard mode for the current thread.
    pub fn standard() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let mut saved = 0u32;
            let standard = 0x1f80u32;
            // SAFETY: MXCSR is stored to and loaded from valid memory; 0x1f80 is the mode that Rust code assumes.
            unsafe {
                std::arch::asm!("stmxcsr [{}]", in(reg) &mut saved, options(nostack, preserves_flags));
                std::arch::asm!("ldmxcsr [{}]", in(reg) &standard, options(nostack, preserves_flags, readonly));
            }
            FloatMode { saved }
        }
        #[cfg(not(target_arch = "x86_64"))]
        FloatMode {}
    }
}

impl Drop for FloatMode {
    fn drop(&mut self) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: MXCSR is loaded from valid memory, with the value that was stored from it.
        unsafe {
            std::arch::asm!("ldmxcsr [{}]", in(reg) &self.saved, options(nostack, preserves_flags, readonly));
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn dropping_the_guard_restores_the_mode() {
        let read = || {
            let mut mode = 0u32;
            // SAFETY: MXCSR is stored to valid memory.
            unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &mut mode) };
            mode & !0x3f
        };
        let flush = 0x9fc0u32;
        let saved = read();
        // SAFETY: a valid mode: flush to zero, denormals are zero, exceptions masked.
        unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &flush) };
        let guard = FloatMode::standard();
        assert_eq!(read(), 0x1f80);
        drop(guard);
        assert_eq!(read(), flush & !0x3f);
        // SAFETY: the mode that was read above.
        unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &saved) };
    }
}
