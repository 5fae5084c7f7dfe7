//! How much memory a plan on one backend and its operations take, told before there is one.

use super::chosen::Chosen;
use super::coil_maps;
use super::encoding::{Encoding, MemoryLimit};
use super::memory::{Memory, Needs};
use crate::backend::Backend;
use crate::base::error::Result;
use crate::base::options::Options;
use crate::base::real::Real;
use crate::base::scan_size::ScanSize;

/// Bytes that a plan and its operations take, before it is made.
pub(crate) fn memory<T: Real, B: Backend<T>>(
    b: &B,
    size: &ScanSize,
    options: &Options,
    chosen: &Chosen,
) -> Result<Memory> {
    let batch = Encoding::<T, B>::batch(b, size, options, chosen)?;
    let needs = Needs::new(b, size, options, chosen, batch)?;
    let limit = MemoryLimit { bytes: options.memory_limit, held: Encoding::<T, B>::bytes(&needs) };
    let q = Encoding::<T, B>::goes_through_q(b, options.normal, size, &limit, chosen);
    // As Plan::whole decides.
    let several = chosen.window.is_none() || size.coil_maps || size.band.is_some() || size.coils.max(size.frames) > 1;
    let maps = coil_maps::bytes::<T, B>(b, size)?;
    needs.peaks::<T, B>(b, q, options.interrupt.is_some() && several, maps)
}
