//! The processor's floating-point mode: the standard mode while the library computes, the caller's mode afterwards.

/// Guard of the standard mode: round to nearest, denormal numbers supported. Results must not depend on the mode of the
/// calling thread. Dropping the guard restores the previous mode.
pub struct FloatMode {
    saved: unit::Mode,
}

/// The control register MXCSR of x86-64.
#[cfg(target_arch = "x86_64")]
mod unit {
    pub type Mode = u32;
    /// The mode that Rust code assumes: exceptions are masked, no flag is raised.
    pub const STANDARD: Mode = 0x1f80;
    /// Denormals are zero, and results are flushed to zero.
    #[cfg(test)]
    pub const FLUSH: Mode = 0x9fc0;
    /// Returns the mode without the flags of past exceptions.
    #[cfg(test)]
    pub fn control_bits(mode: Mode) -> Mode {
        mode & !0x3f
    }

    pub fn read() -> Mode {
        let mut mode = 0u32;
        // SAFETY: MXCSR is stored to valid memory.
        unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &mut mode, options(nostack, preserves_flags)) };
        mode
    }

    /// Sets a mode.
    ///
    /// # Safety
    /// The mode must be standard, or be restored before Rust code computes with floating-point numbers.
    pub unsafe fn set(mode: Mode) {
        // SAFETY: MXCSR is loaded from valid memory; the mode is the caller's responsibility.
        unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &mode, options(nostack, preserves_flags, readonly)) };
    }
}

/// The control register FPCR of 64-bit ARM, which is also that of NEON.
#[cfg(target_arch = "aarch64")]
mod unit {
    pub type Mode = u64;
    /// The mode that Rust code assumes: no bit is set.
    pub const STANDARD: Mode = 0;
    /// Denormal arguments and results are replaced by zero.
    #[cfg(test)]
    pub const FLUSH: Mode = 1 << 24;
    /// Returns the mode: flags of past exceptions are in a different register.
    #[cfg(test)]
    pub fn control_bits(mode: Mode) -> Mode {
        mode
    }

    pub fn read() -> Mode {
        let mode;
        // SAFETY: every program may read the register.
        unsafe { std::arch::asm!("mrs {}, fpcr", out(reg) mode, options(nomem, nostack, preserves_flags)) };
        mode
    }

    /// Sets a mode.
    ///
    /// # Safety
    /// The mode must be standard, or be restored before Rust code computes with floating-point numbers.
    pub unsafe fn set(mode: Mode) {
        // SAFETY: every program may write the register; the mode is the caller's responsibility. The compiler must not
        // move accesses to memory across the change, which stands for the arithmetic between them.
        unsafe { std::arch::asm!("msr fpcr, {}", in(reg) mode, options(nostack, preserves_flags)) };
    }
}

/// Other processors: the mode is left as it is.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod unit {
    pub type Mode = u32;
    pub const STANDARD: Mode = 0;

    /// Returns the mode without flags.
    #[cfg(test)]
    pub fn control_bits(mode: Mode) -> Mode {
        mode
    }

    pub fn read() -> Mode {
        STANDARD
    }

    /// Does nothing.
    ///
    /// # Safety
    /// Always safe.
    pub unsafe fn set(_mode: Mode) {}
}

impl FloatMode {
    /// Sets the standard mode for the current thread.
    pub fn standard() -> Self {
        let saved = unit::read();
        // SAFETY: the mode that Rust code assumes.
        unsafe { unit::set(unit::STANDARD) };
        FloatMode { saved }
    }
}

impl Drop for FloatMode {
    fn drop(&mut self) {
        // SAFETY: the caller's mode, in which the library no longer computes.
        unsafe { unit::set(self.saved) };
    }
}

/// Returns whether the current thread is in the standard mode, for tests.
#[cfg(test)]
pub fn is_standard() -> bool {
    unit::control_bits(unit::read()) == unit::STANDARD
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use super::*;

    #[test]
    fn dropping_the_guard_restores_the_mode() {
        let saved = unit::read();
        // SAFETY: the saved mode is restored below, before anything is computed.
        unsafe { unit::set(unit::FLUSH) };
        let guard = FloatMode::standard();
        let inside = is_standard();
        drop(guard);
        let after = unit::control_bits(unit::read());
        // SAFETY: the mode that was read above.
        unsafe { unit::set(saved) };
        assert!(inside);
        assert_eq!(after, unit::FLUSH);
    }
}
