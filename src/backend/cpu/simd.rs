//! One source for the arithmetic, compiled for several vector units, the best of which is picked at run time.
//!
//! A [`Kernel`] is written in plain arrays of fixed size, which the compiler turns into vector code; [`Level::run`]
//! calls the copy of it compiled for that level. `RECON_SIMD` (sse, avx2, avx512) lowers the level, for tests.

use crate::real::Real;

/// What may differ between levels besides the width of vectors.
pub trait Arith: Copy {
    /// a b + c, in one rounding where the level has fused multiply-add.
    fn fma<T: Real>(a: T, b: T, c: T) -> T;
    /// a b less its rounded value `product`; without fused multiply-add, in f64, zero.
    fn product_error<T: Real>(a: T, b: T, product: T) -> T;
}

/// Multiply, then add.
#[derive(Clone, Copy)]
pub struct Separate;
impl Arith for Separate {
    #[inline(always)]
    fn fma<T: Real>(a: T, b: T, c: T) -> T {
        a * b + c
    }
    #[inline(always)]
    fn product_error<T: Real>(a: T, b: T, product: T) -> T {
        T::of(a.wide() * b.wide() - product.wide())
    }
}

/// Fused multiply-add.
#[derive(Clone, Copy)]
pub struct Fused;
impl Arith for Fused {
    #[inline(always)]
    fn fma<T: Real>(a: T, b: T, c: T) -> T {
        a.fma(b, c)
    }
    #[inline(always)]
    fn product_error<T: Real>(a: T, b: T, product: T) -> T {
        a.fma(b, -product)
    }
}

/// Code to be compiled for each level. `run` must be `#[inline(always)]`, and all it calls.
pub trait Kernel {
    /// What it returns.
    type Output;
    /// The code.
    fn run<A: Arith>(self) -> Self::Output;
}

/// A vector unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What every processor of the target has: SSE2 on x86-64.
    Baseline,
    /// AVX2 with fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 F, VL, DQ and BW.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// The best level of this processor, or the one that `RECON_SIMD` names when that is lower.
    pub fn detect() -> Level {
        let best = Self::best();
        match std::env::var("RECON_SIMD").as_deref() {
            Ok("sse") => Level::Baseline,
            #[cfg(target_arch = "x86_64")]
            Ok("avx2") => best.min(Level::Avx2),
            #[cfg(target_arch = "x86_64")]
            Ok("avx512") => best,
            Ok(other) => {
                log::warn!("RECON_SIMD is '{other}', which is none of sse, avx2, avx512: ignored");
                best
            }
            Err(_) => best,
        }
    }

    fn best() -> Level {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512bw");
            if avx2 && avx512 {
                return Level::Avx512;
            }
            if avx2 {
                return Level::Avx2;
            }
        }
        Level::Baseline
    }

    /// The level's name.
    pub fn name(self) -> &'static str {
        match self {
            Level::Baseline if cfg!(target_arch = "x86_64") => "sse",
            Level::Baseline => "portable",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => "avx512",
        }
    }

    /// Runs a kernel as compiled for this level.
    #[inline]
    pub fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self {
            #[cfg(target_arch = "aarch64")]
            Level::Baseline => kernel.run::<Fused>(),
            #[cfg(not(target_arch = "aarch64"))]
            Level::Baseline => kernel.run::<Separate>(),
            // SAFETY: `detect` found the features of this level on this processor.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { run_avx2(kernel) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { run_avx512(kernel) },
        }
    }
}

/// # Safety
/// The processor must have AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn run_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Fused>()
}

/// # Safety
/// The processor must have AVX2, FMA and AVX-512 F, VL, DQ, BW.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,avx512f,avx512vl,avx512dq,avx512bw")]
unsafe fn run_avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Fused>()
}
