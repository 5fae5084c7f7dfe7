//! 64-bit FNV-1a: sufficient to detect damage and to distinguish inputs, but not against an adversary. Saved files of Q
//! contain these sums, so the function must not change.

/// A running checksum.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Checksum(pub u64);

impl Checksum {
    /// Returns the checksum of no bytes.
    pub fn new() -> Self {
        Checksum(0xcbf2_9ce4_8422_2325)
    }

    /// Adds bytes to the checksum.
    pub fn add(&mut self, bytes: &[u8]) {
        for &b in bytes {
            self.0 = (self.0 ^ b as u64).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Returns the checksum of these bytes.
    pub fn of(bytes: &[u8]) -> u64 {
        let mut sum = Checksum::new();
        sum.add(bytes);
        sum.0
    }
}
