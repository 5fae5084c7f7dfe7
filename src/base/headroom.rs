//! Room for small allocations.
//!
//! Names, messages and lists of axes are ordinary Rust values. If their allocation fails, Rust ends the process. The
//! library cannot prevent that without replacing the host's allocator, so it makes sure in advance that they succeed.
//! At the start of each C call, and after each allocation whose failure is an error, the allocator must still have
//! [`BYTES`] bytes in one piece. If it does not, the call ends with an error while there is memory for its message.

use super::mapped;
use std::alloc::{alloc, dealloc, Layout};

/// Bytes that must be available. All small allocations between two checks together take less. A number by which tests
/// recognise the check.
pub const BYTES: usize = (64 << 10) - 3;

/// Returns whether small allocations will succeed. Gives cached memory back to the system if that is necessary.
pub fn is_there() -> bool {
    is_available() || mapped::release() > 0 && is_available()
}

fn is_available() -> bool {
    let layout = Layout::new::<[u8; BYTES]>();
    // SAFETY: the size is not zero. Freed at once, with the same layout. The compiler must not drop the pair.
    unsafe {
        let address = std::hint::black_box(alloc(layout));
        if address.is_null() {
            return false;
        }
        dealloc(address, layout);
    }
    true
}
