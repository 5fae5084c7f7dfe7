//! Numbers of bytes.

/// A sum, and a product, that no size overflows.
pub(crate) fn sum(bytes: &[usize]) -> usize {
    bytes.iter().fold(0, |sum, &b| sum.saturating_add(b))
}
pub(crate) fn product(factors: &[usize]) -> usize {
    factors.iter().fold(1, |product, &f| product.saturating_mul(f))
}

/// Bytes of a step, in the memory where it computes and in the host's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bytes {
    pub device: usize,
    pub host: usize,
}
