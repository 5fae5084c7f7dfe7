//! When a transform can be interrupted, without a change of the caller's output.

use super::device_selection::cpu_cost;
use crate::backend::call_size::CallSize;
use crate::base::interrupt;
use crate::base::options::Options;
use crate::base::scan_size::ScanSize;

/// The points at which the interrupt callback can end a transform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interruption {
    /// At every check: all of them are before the first part of the output is written.
    BeforeOutput,
    /// Before the transform only. Afterwards it is estimated to take less than the time between two polls.
    BeforeTransform,
    /// At every check. The output is computed in a temporary array because it is written in several parts.
    WithTemporary,
}

impl Interruption {
    /// Determines when transforms of a plan can be interrupted. `has_maps` says whether there is a field map or a decay
    /// map, `real` is the number of bytes of a real number.
    pub fn new(size: &ScanSize, options: &Options, exact: bool, has_maps: bool, real: usize) -> Interruption {
        let has_parts = exact || size.coil_maps || has_maps || size.coils.max(size.frames) > 1;
        if options.interrupt.is_none() || !has_parts {
            return Interruption::BeforeOutput;
        }
        let nanoseconds = cpu_cost(&CallSize::new(size, options, exact, has_maps, real), options);
        if nanoseconds < interrupt::PERIOD.as_nanos() as f64 {
            Interruption::BeforeTransform
        } else {
            Interruption::WithTemporary
        }
    }
}
