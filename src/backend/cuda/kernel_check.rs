//! Checks of the caller's input by the kernels of a transform: `input_check` in kernels/common.cuh.

use super::gpu::Gpu;
use super::memory::DeviceArray;
use super::pending_word::PendingWord;
use crate::backend::{DevicePointer, Span};
use crate::base::error::Result;
use crate::base::input_check::{self, KernelCheck, PendingCheck};
use crate::base::real::Real;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

/// Maximum number of checks of a plan at the same time, at most 32.
const SLOTS: usize = 16;

/// Value of the host's word if all numbers are below the limit.
const PASSED: u64 = 0;

/// Same layout as in the kernels.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CheckArguments<T> {
    limit: T,
    state: DevicePointer<u64>,
    word: u64,
}

impl<T: Real> CheckArguments<T> {
    /// No check.
    pub const NONE: Self = CheckArguments { limit: T::ZERO, state: DevicePointer::NULL, word: 0 };

    /// Returns the arguments of kernels that write the caller's output, from this thread's check.
    pub fn of_output() -> Self {
        input_check::in_kernels().map_or(Self::NONE, Self::of)
    }

    /// Returns the arguments of kernels that read the caller's input, from this thread's check.
    pub fn of_input() -> Self {
        input_check::in_kernels().filter(|check| check.is_merged).map_or(Self::NONE, Self::of)
    }

    /// Returns the arguments of a check.
    pub fn of(check: KernelCheck) -> Self {
        CheckArguments { limit: T::of(check.limit), state: DevicePointer::new(check.state), word: check.word }
    }

    /// Returns whether there is a check.
    pub fn exists(&self) -> bool {
        self.state.address() != 0
    }
}

/// States of checks, of which several threads can have one each.
pub struct CheckSlots {
    /// 0 before and after a check that has passed.
    states: DeviceArray<u64>,
    slots: Arc<SlotSets>,
}

/// Sets of slots, a bit for each slot.
#[derive(Default)]
struct SlotSets {
    used: AtomicU32,
    /// Slots of checks that have failed, whose state is not 0.
    failed: AtomicU32,
}

impl CheckSlots {
    /// Allocates the states.
    pub fn new(gpu: &Gpu) -> Result<Self> {
        Ok(CheckSlots { states: gpu.zeros(SLOTS, "checks of input")?, slots: Arc::default() })
    }

    /// Begins a check, before its kernels are queued; `None` if there are as many as possible.
    pub fn begin(&self, gpu: &Gpu, limit: f64, is_merged: bool) -> Result<Option<SlotCheck>> {
        let Some(slot) = self.slots.take() else { return Ok(None) };
        let (bit, slots) = (1 << slot, self.slots.clone());
        let word = PendingWord::new(gpu.stream()).inspect_err(|_| slots.release(bit))?;
        let state = self.states.view().part(slot..slot + 1).pointer();
        if slots.failed.fetch_and(!bit, Ordering::Relaxed) & bit != 0 {
            gpu.clear_word(state);
        }
        Ok(Some(SlotCheck { word, slots, bit, state: state.address(), limit, is_merged, has_passed: false }))
    }
}

impl SlotSets {
    /// Marks an unused slot as used, and returns its number.
    fn take(&self) -> Option<usize> {
        let lowest_unused = |used: u32| Some(used | used.wrapping_add(1)).filter(|used| used >> SLOTS == 0);
        let before = self.used.fetch_update(Ordering::Acquire, Ordering::Relaxed, lowest_unused).ok()?;
        Some(before.trailing_ones() as usize)
    }

    /// Marks the slot of this bit as unused.
    fn release(&self, bit: u32) {
        self.used.fetch_and(!bit, Ordering::Release);
    }
}

/// A check with its slot.
pub struct SlotCheck {
    word: PendingWord,
    slots: Arc<SlotSets>,
    bit: u32,
    state: u64,
    limit: f64,
    is_merged: bool,
    has_passed: bool,
}

impl PendingCheck for SlotCheck {
    fn in_kernels(&self) -> KernelCheck {
        let SlotCheck { limit, state, is_merged, .. } = *self;
        KernelCheck { limit, state, word: self.word.device_address(), is_merged }
    }

    fn wait(&mut self) -> Result<bool> {
        self.has_passed = self.word.read()? == PASSED;
        Ok(self.has_passed)
    }
}

impl Drop for SlotCheck {
    fn drop(&mut self) {
        // A call that ended with an error may have queued kernels that have not run yet. Later checks of this slot are
        // queued behind them.
        if !self.has_passed {
            self.slots.failed.fetch_or(self.bit, Ordering::Relaxed);
        }
        self.slots.release(self.bit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_slot_is_taken_once() {
        let slots = SlotSets::default();
        assert!((0..SLOTS).all(|slot| slots.take() == Some(slot)));
        assert_eq!(slots.take(), None);
        slots.release(0b1000);
        assert_eq!((slots.take(), slots.take()), (Some(3), None));
    }
}
