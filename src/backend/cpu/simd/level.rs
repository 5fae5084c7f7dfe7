//! The vector unit that a plan computes with: detection and choice.

use super::{Arith, Kernel, SimdReal, Vector};
use crate::base::error::{bail, Result};
use crate::base::options::Simd;
#[cfg(target_arch = "x86_64")]
use crate::base::per_process::PerProcess;
use std::marker::PhantomData;
#[cfg(target_arch = "x86_64")]
use std::sync::OnceLock;

/// A vector unit that this processor has. Only the search for units makes one, so that [`Level::run`] is safe.
///
/// ```compile_fail
/// let level = recon::backend::cpu::simd::Level(recon::backend::cpu::simd::Unit::Avx512);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(pub(super) Unit);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unit {
    /// The unit of every processor of the target: SSE2 on x86-64.
    Baseline,
    /// AVX2 with fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 F, VL, DQ and BW.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// The same on a processor that does an operation of 512 bits in two halves: rows in vectors of 256.
    #[cfg(target_arch = "x86_64")]
    Avx512Halved,
}

impl Level {
    /// The level that the caller asks for; with `Simd::Auto` the level that the environment variable `RECON_SIMD`
    /// names; without either the best of this processor, as suits it.
    ///
    /// # Errors
    /// `Unsupported` for a level that the processor lacks, `UnknownValue` for a variable that names none.
    pub fn choose(simd: Simd) -> Result<Level> {
        let variable = match simd {
            Simd::Auto => std::env::var_os("RECON_SIMD"),
            _ => None,
        };
        Self::choose_from(&Self::all(), simd, variable.as_deref().map(|name| name.to_string_lossy()).as_deref())
    }

    /// [`Level::choose`] on a processor that has these levels, the lowest first.
    fn choose_from(has: &[Level], simd: Simd, variable: Option<&str>) -> Result<Level> {
        let (simd, source) = match (simd, variable) {
            // An empty variable is how a shell leaves one unset for a command.
            (Simd::Auto, None | Some("")) => (Simd::Auto, ""),
            (Simd::Auto, Some(name)) => match name.parse() {
                Ok(simd) => (simd, " by the environment variable RECON_SIMD"),
                Err(()) => bail!(
                    UnknownValue,
                    "the environment variable RECON_SIMD is '{name}': it must be one of auto, baseline, sse, avx2 and \
                     avx512, or unset"
                ),
            },
            _ => (simd, ""),
        };
        let requested = match simd {
            Simd::Auto => has.last().map(|level| level.suited_to_processor()),
            Simd::Baseline => has.first().copied(),
            #[cfg(target_arch = "x86_64")]
            Simd::Avx2 => has.iter().copied().find(|&level| level == Level(Unit::Avx2)),
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512 => has.iter().copied().find(|&level| level == Level(Unit::Avx512)),
            #[cfg(not(target_arch = "x86_64"))]
            Simd::Avx2 | Simd::Avx512 => None,
        };
        match requested {
            Some(level) => Ok(level),
            None => {
                let names: Vec<&str> = has.iter().map(|level| level.name()).collect();
                bail!(
                    Unsupported,
                    "vector level {simd} was asked for{source}, but this processor has {} only: ask for one of these, \
                     or for auto",
                    names.join(" and ")
                )
            }
        }
    }

    /// The levels of this processor, the lowest first.
    pub fn all() -> Vec<Level> {
        #[cfg(target_arch = "x86_64")]
        let levels = [Unit::Baseline, Unit::Avx2, Unit::Avx512];
        #[cfg(not(target_arch = "x86_64"))]
        let levels = [Unit::Baseline];
        levels.into_iter().map(Level).filter(|&level| level <= Self::detect()).collect()
    }

    fn detect() -> Level {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512bw");
            if avx2 && avx512 {
                return Level(Unit::Avx512);
            }
            if avx2 {
                return Level(Unit::Avx2);
            }
        }
        Level(Unit::Baseline)
    }

    /// AVX-512 on Zen 4 has units of 256 bits. What the processor is decides, and no measurement: bits must not depend
    /// on one.
    fn suited_to_processor(self) -> Level {
        #[cfg(target_arch = "x86_64")]
        if self == Level(Unit::Avx512) {
            // Asked once: in a virtual machine the question leaves it.
            static IS_HALVED: PerProcess<OnceLock<bool>> = PerProcess::new(OnceLock::new(), |_| OnceLock::new());
            if *IS_HALVED.get().get_or_init(is_zen_3_or_4) {
                return Level(Unit::Avx512Halved);
            }
        }
        self
    }

    /// The numbers in a vector.
    pub fn lanes<T: SimdReal>(self) -> usize {
        self.run(LaneCount(PhantomData::<T>))
    }

    /// The numbers in a vector of a kernel that [`Level::run_rows`] runs.
    pub fn row_lanes<T: SimdReal>(self) -> usize {
        self.run_rows(LaneCount(PhantomData::<T>))
    }

    /// The level's name.
    pub fn name(self) -> &'static str {
        match self.0 {
            Unit::Baseline if cfg!(target_arch = "x86_64") => "sse",
            Unit::Baseline => "portable",
            #[cfg(target_arch = "x86_64")]
            Unit::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Unit::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            Unit::Avx512Halved => "avx512-256",
        }
    }
}

/// Whether this is an AMD processor of the family of Zen 3 and 4, of which Zen 4 has AVX-512.
#[cfg(target_arch = "x86_64")]
fn is_zen_3_or_4() -> bool {
    use std::arch::x86_64::__cpuid;
    const FAMILY: u32 = 0x19;
    let (vendor, version) = (__cpuid(0), __cpuid(1).eax);
    let name = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).concat();
    name == b"AuthenticAMD" && (version >> 8 & 0xf) + (version >> 20 & 0xff) == FAMILY
}

/// The lanes of a level's vectors.
struct LaneCount<T>(PhantomData<T>);

impl<T: SimdReal> Kernel for LaneCount<T> {
    type Output = usize;
    #[inline(always)]
    fn run<A: Arith>(self) -> usize {
        T::V::<A>::LANES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;

    /// A level that is asked for is used, or refused where the processor lacks it; never replaced by another.
    #[test]
    fn levels_are_chosen_by_option_then_variable_then_processor() {
        let has = Level::all();
        let of = |has: &[Level], simd, variable| Level::choose_from(has, simd, variable);
        let detect = has.last().unwrap().suited_to_processor();
        assert_eq!(of(&has, Simd::Auto, None).unwrap(), detect);
        assert_eq!(of(&has, Simd::Auto, Some("")).unwrap(), detect);
        assert_eq!(of(&has, Simd::Auto, Some("auto")).unwrap(), detect);
        for name in ["sse", "baseline"] {
            assert_eq!(of(&has, Simd::Auto, Some(name)).unwrap(), Level(Unit::Baseline));
        }
        assert_eq!(of(&has, Simd::Baseline, Some("avx512")).unwrap(), Level(Unit::Baseline));
        let e = of(&has, Simd::Auto, Some("mmx")).unwrap_err();
        assert!(e.kind() == ErrorKind::UnknownValue && e.message().contains("RECON_SIMD is 'mmx'"), "{e}");
        let old = [Level(Unit::Baseline)];
        for (simd, variable, words) in [
            (Simd::Avx512, None, "level avx512 was asked for, but"),
            (Simd::Auto, Some("avx2"), "level avx2 was asked for by the environment variable RECON_SIMD, but"),
        ] {
            let e = of(&old, simd, variable).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Unsupported);
            assert!(e.message().contains(words) && e.message().contains(old[0].name()), "{e}");
        }
        #[cfg(target_arch = "x86_64")]
        assert_eq!(
            of(&[Level(Unit::Baseline), Level(Unit::Avx2)], Simd::Avx2, Some("sse")).unwrap(),
            Level(Unit::Avx2)
        );
    }
}
