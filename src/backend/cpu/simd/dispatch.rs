//! Calls the copy of a kernel that is compiled for a level.

use super::level::Unit;
#[cfg(not(target_arch = "x86_64"))]
use super::portable;
#[cfg(target_arch = "x86_64")]
use super::x86;
use super::{Arith, Kernel, Level};
use crate::base::real::Real;

macro_rules! arith {
    ($(#[$doc:meta])* $name:ident, $f32:ty, $f64:ty, |$a:ident, $b:ident, $c:ident| $fma:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        struct $name;
        impl Arith for $name {
            type F32 = $f32;
            type F64 = $f64;
            #[inline(always)]
            fn fma<T: Real>($a: T, $b: T, $c: T) -> T {
                $fma
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
arith! {
    /// SSE2: multiply, then add.
    Sse, x86::F32x4, x86::F64x2, |a, b, c| a * b + c
}
#[cfg(target_arch = "x86_64")]
arith! {
    /// AVX2 with fused multiply-add.
    Avx2, x86::F32x8, x86::F64x4, |a, b, c| a.fma(b, c)
}
#[cfg(target_arch = "x86_64")]
arith! {
    /// AVX-512.
    Avx512, x86::F32x16, x86::F64x8, |a, b, c| a.fma(b, c)
}
#[cfg(target_arch = "x86_64")]
arith! {
    /// AVX-512 in vectors of 256 bits: twice as many registers as AVX2 has.
    Avx512Short, x86::F32x8, x86::F64x4, |a, b, c| a.fma(b, c)
}
#[cfg(target_arch = "aarch64")]
arith! {
    /// Vectors of 128 bits that the compiler makes, fused multiply-add.
    Portable, portable::Fused<f32, 4>, portable::Fused<f64, 2>, |a, b, c| a.fma(b, c)
}
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
arith! {
    /// Vectors of 128 bits that the compiler makes: multiply, then add.
    Portable, portable::Separate<f32, 4>, portable::Separate<f64, 2>, |a, b, c| a * b + c
}

impl Level {
    /// Runs a kernel as compiled for this level.
    #[inline]
    pub fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Unit::Baseline => kernel.run::<Sse>(),
            #[cfg(not(target_arch = "x86_64"))]
            Unit::Baseline => kernel.run::<Portable>(),
            // SAFETY: `detect` found the features of this level on this processor, and `choose_from` gives no other.
            #[cfg(target_arch = "x86_64")]
            Unit::Avx2 => unsafe { run_avx2(kernel) },
            // SAFETY: `detect` found the features of this level on this processor, and `choose_from` gives no other.
            #[cfg(target_arch = "x86_64")]
            Unit::Avx512 | Unit::Avx512Halved => unsafe { run_avx512(kernel) },
        }
    }

    /// Runs a kernel that adds to rows of cells, or sums them up, as compiled for this level. Rows begin at whole
    /// vectors, of which a window fills a part: where half a vector is half the work, short vectors are less of it.
    #[inline]
    pub fn run_rows<K: Kernel>(self, kernel: K) -> K::Output {
        match self.0 {
            // SAFETY: `detect` found AVX-512 on this processor.
            #[cfg(target_arch = "x86_64")]
            Unit::Avx512Halved => unsafe { run_avx512_short(kernel) },
            _ => self.run(kernel),
        }
    }
}

/// # Safety
/// The processor must have AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn run_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Avx2>()
}

/// # Safety
/// The processor must have AVX2, FMA and AVX-512 F, VL, DQ, BW.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,avx512f,avx512vl,avx512dq,avx512bw")]
unsafe fn run_avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Avx512>()
}

/// # Safety
/// The processor must have AVX2, FMA and AVX-512 F, VL, DQ, BW.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,avx512f,avx512vl,avx512dq,avx512bw")]
unsafe fn run_avx512_short<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Avx512Short>()
}
