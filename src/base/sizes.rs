//! Sizes of arrays, and numbers of bytes.

/// The size of an image or a grid as three axes, 1 on missing axes.
pub(crate) fn three_axes(sizes: &[usize]) -> [usize; 3] {
    [0, 1, 2].map(|a| *sizes.get(a).unwrap_or(&1))
}

/// A saturating sum, and a saturating product.
pub(crate) fn sum(bytes: &[usize]) -> usize {
    bytes.iter().fold(0, |sum, &b| sum.saturating_add(b))
}
pub(crate) fn product(factors: &[usize]) -> usize {
    factors.iter().fold(1, |product, &f| product.saturating_mul(f))
}

/// Bytes of a step, in the memory of its device and in host memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bytes {
    pub device: usize,
    pub host: usize,
}
