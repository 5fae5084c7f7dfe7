//! The vector unit that a plan computes with: detection and choice.

use super::vector::{Arith, Kernel, SimdReal, Vector};
use crate::base::error::{bail, Result};
use crate::base::options::Simd;
#[cfg(target_arch = "x86_64")]
use crate::base::per_process::PerProcess;
use std::marker::PhantomData;
#[cfg(target_arch = "x86_64")]
use std::sync::OnceLock;

/// The values of RECON_SIMD for processors of this architecture.
const LEVEL_NAMES: &str = if cfg!(target_arch = "x86_64") {
    "auto, baseline, sse, avx2 or avx512"
} else if cfg!(target_arch = "aarch64") {
    "auto, baseline or neon"
} else {
    "auto or baseline"
};

/// A vector unit of this processor. Only the detection creates levels, so that [`Level::run`] is safe.
///
/// ```compile_fail
/// let level = recon::backend::cpu::simd::Level(recon::backend::cpu::simd::Unit::Avx512);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(pub(super) Unit);

/// A vector unit, and how it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unit {
    /// The unit of every processor of the target: SSE2 on x86-64, NEON on 64-bit ARM.
    Baseline,
    /// AVX2 with fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 F, VL, DQ and BW.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// AVX-512 on a processor that splits operations of 512 bits into two halves: rows use vectors of 256 bits.
    #[cfg(target_arch = "x86_64")]
    Avx512Halved,
}

impl Level {
    /// Returns the requested level; with `Simd::Auto`, the level in the environment variable `RECON_SIMD`. Without
    /// either, returns the best level of this processor.
    ///
    /// # Errors
    /// `Unsupported` if the processor lacks the level, `UnknownValue` if the variable has an unknown value.
    pub fn choose(simd: Simd) -> Result<Level> {
        let variable = match simd {
            Simd::Auto => std::env::var_os("RECON_SIMD"),
            _ => None,
        };
        Self::choose_from(&Self::all(), simd, variable.as_deref().map(|name| name.to_string_lossy()).as_deref())
    }

    /// Implements [`Level::choose`] for a processor with these levels, the lowest first.
    fn choose_from(available: &[Level], simd: Simd, variable: Option<&str>) -> Result<Level> {
        let (simd, source) = match (simd, variable) {
            // A shell sets an empty variable to unset it for one command.
            (Simd::Auto, None | Some("")) => (Simd::Auto, ""),
            (Simd::Auto, Some(name)) => match name.parse() {
                Ok(simd) => (simd, " by the environment variable RECON_SIMD"),
                Err(()) => bail!(
                    UnknownValue,
                    "the environment variable RECON_SIMD is '{name}': set it to {LEVEL_NAMES}, or unset it"
                ),
            },
            _ => (simd, ""),
        };
        let requested = match simd {
            Simd::Auto => available.last().map(|level| level.suited_to_processor()),
            Simd::Baseline => available.first().copied(),
            Simd::Neon => available.first().copied().filter(|_| cfg!(target_arch = "aarch64")),
            #[cfg(target_arch = "x86_64")]
            Simd::Avx2 => available.iter().copied().find(|&level| level == Level(Unit::Avx2)),
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512 => available.iter().copied().find(|&level| level == Level(Unit::Avx512)),
            #[cfg(not(target_arch = "x86_64"))]
            Simd::Avx2 | Simd::Avx512 => None,
        };
        match requested {
            Some(level) => Ok(level),
            None => {
                let names: Vec<&str> = available.iter().map(|level| level.name()).collect();
                bail!(
                    Unsupported,
                    "vector level {simd} was requested{source}, but this processor has {} only: request one of these, \
                     or auto",
                    names.join(" and ")
                )
            }
        }
    }

    /// Returns the levels of this processor, the lowest first.
    pub fn all() -> Vec<Level> {
        #[cfg(target_arch = "x86_64")]
        let levels = [Unit::Baseline, Unit::Avx2, Unit::Avx512];
        #[cfg(not(target_arch = "x86_64"))]
        let levels = [Unit::Baseline];
        levels.into_iter().map(Level).filter(|&level| level <= Self::detect()).collect()
    }

    /// Returns the highest level of this processor.
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

    /// Returns the level as it suits the processor: AVX-512 on Zen 4 has units of 256 bits. The processor's model
    /// decides, rather than a measurement, because bits must not depend on a measurement.
    fn suited_to_processor(self) -> Level {
        #[cfg(target_arch = "x86_64")]
        if self == Level(Unit::Avx512) {
            // The instruction runs once, because it leaves a virtual machine.
            static IS_HALVED: PerProcess<OnceLock<bool>> = PerProcess::new(OnceLock::new(), |_| OnceLock::new());
            if *IS_HALVED.get().get_or_init(is_zen_3_or_4) {
                return Level(Unit::Avx512Halved);
            }
        }
        self
    }

    /// Returns the number of lanes of a vector.
    pub fn lanes<T: SimdReal>(self) -> usize {
        self.run(LaneCount(PhantomData::<T>))
    }

    /// Returns the number of lanes of a vector in kernels that [`Level::run_rows`] runs.
    pub fn row_lanes<T: SimdReal>(self) -> usize {
        self.run_rows(LaneCount(PhantomData::<T>))
    }

    /// Returns the level's name.
    pub fn name(self) -> &'static str {
        match self.0 {
            Unit::Baseline if cfg!(target_arch = "x86_64") => "sse",
            Unit::Baseline if cfg!(target_arch = "aarch64") => "neon",
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

/// Returns whether the processor is from AMD's family of Zen 3 and 4, of which Zen 4 has AVX-512.
#[cfg(target_arch = "x86_64")]
fn is_zen_3_or_4() -> bool {
    use std::arch::x86_64::__cpuid;
    const FAMILY: u32 = 0x19;
    let (vendor, version) = (__cpuid(0), __cpuid(1).eax);
    let name = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).concat();
    name == b"AuthenticAMD" && (version >> 8 & 0xf) + (version >> 20 & 0xff) == FAMILY
}

/// Number of lanes of a level's vectors.
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

    /// A requested level is used, or is an error if the processor lacks it; no other level replaces it.
    #[test]
    fn option_variable_and_processor_determine_the_level() {
        let available = Level::all();
        let choose = |levels: &[Level], simd, variable| Level::choose_from(levels, simd, variable);
        let best = available.last().unwrap().suited_to_processor();
        assert_eq!(choose(&available, Simd::Auto, None).unwrap(), best);
        assert_eq!(choose(&available, Simd::Auto, Some("")).unwrap(), best);
        assert_eq!(choose(&available, Simd::Auto, Some("auto")).unwrap(), best);
        for name in [available[0].name(), "baseline"].into_iter().filter(|&name| name != "portable") {
            assert_eq!(choose(&available, Simd::Auto, Some(name)).unwrap(), Level(Unit::Baseline));
        }
        assert_eq!(choose(&available, Simd::Baseline, Some("avx512")).unwrap(), Level(Unit::Baseline));
        let e = choose(&available, Simd::Auto, Some("mmx")).unwrap_err();
        assert!(e.kind() == ErrorKind::UnknownValue && e.message().contains("RECON_SIMD is 'mmx'"), "{e}");
        let old = [Level(Unit::Baseline)];
        let (foreign, foreign_baseline) = if cfg!(target_arch = "aarch64") { ("avx2", "sse") } else { ("neon", "") };
        let by_variable = format!("level {foreign} was requested by the environment variable RECON_SIMD, but");
        for (simd, variable, words) in [
            (Simd::Avx512, None, "level avx512 was requested, but"),
            (Simd::Auto, Some("avx2"), "level avx2 was requested by the environment variable RECON_SIMD, but"),
            (Simd::Auto, Some(foreign), &*by_variable),
        ] {
            let e = choose(&old, simd, variable).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Unsupported);
            assert!(e.message().contains(words) && e.message().contains(old[0].name()), "{e}");
        }
        // The baseline of a different architecture is not taken for this one's.
        if !foreign_baseline.is_empty() {
            let e = choose(&available, Simd::Auto, Some(foreign_baseline)).unwrap_err();
            assert!(e.kind() == ErrorKind::UnknownValue && e.message().contains("baseline or neon"), "{e}");
            assert_eq!(choose(&available, Simd::Neon, Some(foreign_baseline)).unwrap(), Level(Unit::Baseline));
        }
        #[cfg(target_arch = "x86_64")]
        assert_eq!(
            choose(&[Level(Unit::Baseline), Level(Unit::Avx2)], Simd::Avx2, Some("sse")).unwrap(),
            Level(Unit::Avx2)
        );
    }
}
