//! FNV-1a, 64 bits: enough to detect damage and to distinguish inputs, not against an adversary. Saved files of Q hold
//! these sums, so the function must stay as it is.

/// A checksum of bytes.
#[derive(Clone, Copy)]
pub(crate) struct Checksum(pub u64);

impl Checksum {
    pub fn new() -> Self {
        Checksum(0xcbf2_9ce4_8422_2325)
    }

    pub fn add(&mut self, bytes: &[u8]) {
        for &b in bytes {
            self.0 = (self.0 ^ b as u64).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// The checksum of these bytes.
    pub fn of(bytes: &[u8]) -> u64 {
        let mut sum = Checksum::new();
        sum.add(bytes);
        sum.0
    }
}
