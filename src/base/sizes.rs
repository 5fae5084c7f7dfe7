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

impl Bytes {
    /// Returns the most that steps take one after the other. Where a device has no memory of its own, the sum of both
    /// counts, and not the most of each.
    pub fn peak(steps: &[Bytes], own_memory: bool) -> Bytes {
        let most = |of: &dyn Fn(&Bytes) -> usize| steps.iter().map(of).max().unwrap_or(0);
        if own_memory {
            // Blocks that one step leaves do not fit all of the next one's: up to 13 % more were found.
            let device = most(&|step| step.device);
            return Bytes { device: sum(&[device, device / 6]), host: most(&|step| step.host) };
        }
        let largest = steps.iter().copied().max_by_key(|step| sum(&[step.device, step.host]));
        largest.unwrap_or(Bytes { device: 0, host: 0 })
    }
}
