//! Sizes of arrays, and numbers of bytes.

/// Returns the size of an image or grid along three axes; missing axes have size 1.
pub(crate) fn three_axes(sizes: &[usize]) -> [usize; 3] {
    [0, 1, 2].map(|a| *sizes.get(a).unwrap_or(&1))
}

/// Returns the saturating sum.
pub(crate) fn sum(bytes: &[usize]) -> usize {
    bytes.iter().fold(0, |sum, &b| sum.saturating_add(b))
}
/// Returns the saturating product.
pub(crate) fn product(factors: &[usize]) -> usize {
    factors.iter().fold(1, |product, &f| product.saturating_mul(f))
}

/// Bytes that a step of a computation takes in device memory and in host memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepBytes {
    pub device: usize,
    pub host: usize,
}

impl StepBytes {
    /// Returns the peak memory of steps that run one after another. If the device has no memory of its own, the sum of
    /// both numbers counts, rather than the maximum of each.
    pub fn peak(steps: &[StepBytes], own_memory: bool) -> StepBytes {
        let most = |of: &dyn Fn(&StepBytes) -> usize| steps.iter().map(of).max().unwrap_or(0);
        if own_memory {
            // Blocks freed by one step may not fit the next step: up to 13 % more memory was measured.
            let device = most(&|step| step.device);
            return StepBytes { device: sum(&[device, device / 6]), host: most(&|step| step.host) };
        }
        let largest = steps.iter().copied().max_by_key(|step| sum(&[step.device, step.host]));
        largest.unwrap_or(StepBytes { device: 0, host: 0 })
    }
}
