//! Checks that small allocations will succeed.
//!
//! Names, messages and lists of axes are ordinary Rust values. If their allocation fails, Rust ends the process. The
//! library cannot prevent that without replacing the host's allocator, so it checks in advance. At the start of each C
//! call, and after each allocation whose failure is an error, the allocator must still have [`BYTES`] contiguous bytes.
//! Otherwise the call returns an error while there is memory for its message.

use super::mapped;
use std::alloc::{alloc, dealloc, Layout};

/// Bytes that must be available. All small allocations between two checks take less in total. The value is unusual so
/// that tests recognise the check.
pub const BYTES: usize = (64 << 10) - 3;

/// Returns whether small allocations will succeed. Releases cached memory to the system if necessary.
pub fn has_room() -> bool {
    is_available() || mapped::release() > 0 && is_available()
}

fn is_available() -> bool {
    let layout = Layout::new::<[u8; BYTES]>();
    // SAFETY: the size is not zero, and the memory is freed at once with the same layout. `black_box` prevents the
    // compiler from removing the pair.
    unsafe {
        let address = std::hint::black_box(alloc(layout));
        if address.is_null() {
            return false;
        }
        dealloc(address, layout);
    }
    true
}
