//! Vectors: one source for the arithmetic, compiled for several vector units; the best of the processor runs.
//!
//! A [`Kernel`] is written with the [`Vector`]s of a level, or in plain arrays of fixed size which the compiler turns
//! into vector code; [`Level::run`] calls the copy of it compiled for that level. [`Level::choose`] picks the level.

use crate::base::error::{bail, Result};
use crate::base::options::Simd;
#[cfg(target_arch = "x86_64")]
use crate::base::per_process::PerProcess;
use crate::base::real::Real;
use num_complex::Complex;
use std::marker::PhantomData;
#[cfg(target_arch = "x86_64")]
use std::sync::OnceLock;

/// The differences between levels: the vectors, and how a b + c is rounded.
///
/// Only [`Level::run`] names the types that implement it, so that no code uses vectors that the processor lacks.
pub trait Arith: Copy {
    /// The level's vector of `f32`.
    type F32: Vector<f32>;
    /// The level's vector of `f64`.
    type F64: Vector<f64>;
    /// a b + c, in one rounding where the level has fused multiply-add.
    fn fma<T: Real>(a: T, b: T, c: T) -> T;
}

/// A precision that vector units compute in.
pub trait SimdReal: Real {
    /// The vector of a level.
    type V<A: Arith>: Vector<Self>;
}

impl SimdReal for f32 {
    type V<A: Arith> = A::F32;
}

impl SimdReal for f64 {
    type V<A: Arith> = A::F64;
}

/// A vector of reals in a register.
pub trait Vector<T>: Copy {
    /// Its number of elements, a power of two.
    const LANES: usize;
    /// All elements `x`.
    fn splat(x: T) -> Self;
    /// # Safety
    /// `LANES` elements must be readable at `p`, at any alignment.
    unsafe fn load(p: *const T) -> Self;
    /// # Safety
    /// `LANES` elements must be writable at `p`, at any alignment.
    unsafe fn store(self, p: *mut T);
    /// self + b.
    fn add(self, b: Self) -> Self;
    /// self - b.
    fn sub(self, b: Self) -> Self;
    /// self b.
    fn mul(self, b: Self) -> Self;
    /// The larger of self and b, neither being NaN.
    fn max(self, b: Self) -> Self;
    /// The smaller of self and b, neither being NaN.
    fn min(self, b: Self) -> Self;
    /// self b + c, rounded as the level does.
    fn fma(self, b: Self, c: Self) -> Self;
    /// c - self b, rounded as the level does.
    fn fnma(self, b: Self, c: Self) -> Self;
    /// self b - c where c is near self b: accurate to about the last bit of the difference at every level.
    fn product_less(self, b: Self, c: Self) -> Self;
    /// Negated where the last bit of q's significand is one.
    fn negate_where_odd(self, q: Self) -> Self;
    /// self 2^n, where q is the whole number n plus 1.5 / epsilon: the last bits of its significand are n. Self and the
    /// result must be normal numbers.
    fn times_power_of_two(self, q: Self) -> Self;
    /// The elements of self and b in turn: the first half of them, and the second.
    fn zip(self, b: Self) -> (Self, Self);
    /// The even elements of self and then of b, and the odd ones: [`Vector::zip`] undone.
    fn unzip(self, b: Self) -> (Self, Self);
    /// The sums of the even and of the odd elements.
    fn sum_pairs(self) -> Complex<T>;
}

/// The most lanes that a vector has.
pub const MOST_LANES: usize = 16;

/// Transposes a square of the first `LANES` vectors: each round of zips rotates the bits of (row, column) by one.
#[inline(always)]
pub fn transpose<T, V: Vector<T>>(v: &mut [V; MOST_LANES]) {
    let half = V::LANES / 2;
    let mut round = 1;
    while round < V::LANES {
        let before = *v;
        for i in 0..half {
            (v[2 * i], v[2 * i + 1]) = before[i].zip(before[i + half]);
        }
        round *= 2;
    }
}

/// Prefetches the cache line at `p` into the second cache; any address is allowed.
#[inline(always)]
pub fn prefetch<E>(p: *const E) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing and faults nowhere.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(p.cast())
    };
    #[cfg(not(target_arch = "x86_64"))]
    let _ = p;
}

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

/// Code to be compiled for each level. `run` must be `#[inline(always)]`, and all it calls.
pub trait Kernel {
    /// What it returns.
    type Output;
    /// The code.
    fn run<A: Arith>(self) -> Self::Output;
}

/// A vector unit that this processor has. Only the search for units makes one, so that [`Level::run`] is safe.
///
/// ```compile_fail
/// let level = recon::backend::cpu::simd::Level(recon::backend::cpu::simd::Unit::Avx512);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(Unit);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Unit {
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
        Self::among(&Self::all(), simd, variable.as_deref().map(|name| name.to_string_lossy()).as_deref())
    }

    /// [`Level::choose`] on a processor that has these levels, the lowest first.
    fn among(has: &[Level], simd: Simd, variable: Option<&str>) -> Result<Level> {
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
        let wanted = match simd {
            Simd::Auto => has.last().map(|level| level.as_suits_the_processor()),
            Simd::Baseline => has.first().copied(),
            #[cfg(target_arch = "x86_64")]
            Simd::Avx2 => has.iter().copied().find(|&level| level == Level(Unit::Avx2)),
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512 => has.iter().copied().find(|&level| level == Level(Unit::Avx512)),
            #[cfg(not(target_arch = "x86_64"))]
            Simd::Avx2 | Simd::Avx512 => None,
        };
        match wanted {
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
        levels.into_iter().map(Level).filter(|&level| level <= Self::best()).collect()
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
    fn as_suits_the_processor(self) -> Level {
        #[cfg(target_arch = "x86_64")]
        if self == Level(Unit::Avx512) {
            // Asked once: in a virtual machine the question leaves it.
            static IS_HALVED: PerProcess<OnceLock<bool>> = PerProcess::new(OnceLock::new(), |_| OnceLock::new());
            if *IS_HALVED.get().get_or_init(is_of_zen_3_and_4) {
                return Level(Unit::Avx512Halved);
            }
        }
        self
    }

    /// The numbers in a vector.
    pub fn lanes<T: SimdReal>(self) -> usize {
        self.run(Lanes(PhantomData::<T>))
    }

    /// The numbers in a vector of a kernel that [`Level::run_rows`] runs.
    pub fn row_lanes<T: SimdReal>(self) -> usize {
        self.run_rows(Lanes(PhantomData::<T>))
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

    /// Runs a kernel as compiled for this level.
    #[inline]
    pub fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Unit::Baseline => kernel.run::<Sse>(),
            #[cfg(not(target_arch = "x86_64"))]
            Unit::Baseline => kernel.run::<Portable>(),
            // SAFETY: `best` found the features of this level on this processor, and `among` gives no other.
            #[cfg(target_arch = "x86_64")]
            Unit::Avx2 => unsafe { run_avx2(kernel) },
            // SAFETY: `best` found the features of this level on this processor, and `among` gives no other.
            #[cfg(target_arch = "x86_64")]
            Unit::Avx512 | Unit::Avx512Halved => unsafe { run_avx512(kernel) },
        }
    }

    /// Runs a kernel that adds to rows of cells, or sums them up, as compiled for this level. Rows begin at whole
    /// vectors, of which a window fills a part: where half a vector is half the work, short vectors are less of it.
    #[inline]
    pub fn run_rows<K: Kernel>(self, kernel: K) -> K::Output {
        match self.0 {
            // SAFETY: `best` found AVX-512 on this processor.
            #[cfg(target_arch = "x86_64")]
            Unit::Avx512Halved => unsafe { run_avx512_short(kernel) },
            _ => self.run(kernel),
        }
    }
}

/// Whether this is an AMD processor of the family of Zen 3 and 4, of which Zen 4 has AVX-512.
#[cfg(target_arch = "x86_64")]
fn is_of_zen_3_and_4() -> bool {
    use std::arch::x86_64::__cpuid;
    const FAMILY: u32 = 0x19;
    let (vendor, version) = (__cpuid(0), __cpuid(1).eax);
    let name = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).concat();
    name == b"AuthenticAMD" && (version >> 8 & 0xf) + (version >> 20 & 0xff) == FAMILY
}

/// The lanes of a level's vectors.
struct Lanes<T>(PhantomData<T>);

impl<T: SimdReal> Kernel for Lanes<T> {
    type Output = usize;
    #[inline(always)]
    fn run<A: Arith>(self) -> usize {
        T::V::<A>::LANES
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

/// The vectors of x86-64. Their functions are sound only where the processor has the unit, which [`Arith`] sees to.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use crate::backend::cpu::simd::Vector;
    use num_complex::Complex;
    use std::arch::x86_64::*;

    macro_rules! vector {
        ($name:ident, $inner:ty, $t:ty, $lanes:literal, $splat:ident, $load:ident, $store:ident, $add:ident, $sub:ident,
         $mul:ident, $max:ident, $min:ident, |$a:ident, $b:ident, $c:ident| $fma:expr, $fnma:expr, $less:expr,
         $negate:expr, $power:expr, $zip:expr, $unzip:expr, $sum:expr) => {
            #[derive(Clone, Copy)]
            pub struct $name($inner);
            impl Vector<$t> for $name {
                const LANES: usize = $lanes;
                #[inline(always)]
                fn splat(x: $t) -> Self {
                    // SAFETY: `Level::run` calls this only where `Level::best` found the unit.
                    unsafe { $name($splat(x)) }
                }
                #[inline(always)]
                unsafe fn load(p: *const $t) -> Self {
                    // SAFETY: the caller promises readable elements; the instruction takes any alignment.
                    unsafe { $name($load(p)) }
                }
                #[inline(always)]
                unsafe fn store(self, p: *mut $t) {
                    // SAFETY: the caller promises writable elements; the instruction takes any alignment.
                    unsafe { $store(p, self.0) }
                }
                #[inline(always)]
                fn add(self, b: Self) -> Self {
                    // SAFETY: `Level::run` calls this only where `Level::best` found the unit.
                    unsafe { $name($add(self.0, b.0)) }
                }
                #[inline(always)]
                fn sub(self, b: Self) -> Self {
                    // SAFETY: `Level::run` calls this only where `Level::best` found the unit.
                    unsafe { $name($sub(self.0, b.0)) }
                }
                #[inline(always)]
                fn mul(self, b: Self) -> Self {
                    // SAFETY: `Level::run` calls this only where `Level::best` found the unit.
                    unsafe { $name($mul(self.0, b.0)) }
                }
                #[inline(always)]
                fn max(self, b: Self) -> Self {
                    // SAFETY: `Level::run` calls this only where `Level::best` found the unit.
                    unsafe { $name($max(self.0, b.0)) }
                }
                #[inline(always)]
                fn min(self, b: Self) -> Self {
                    // SAFETY: `Level::run` calls this only where `Level::best` found the unit.
                    unsafe { $name($min(self.0, b.0)) }
                }
                #[inline(always)]
                fn fma(self, b: Self, c: Self) -> Self {
                    let ($a, $b, $c) = (self.0, b.0, c.0);
                    // SAFETY: `Level::run` calls this only where `Level::best` found the unit.
                    unsafe { $name($fma) }
                }
                #[inline(always)]
                fn fnma(self, b: Self, c: Self) -> Self {
                    let ($a, $b, $c) = (self.0, b.0, c.0);
                    // SAFETY: `Level::run` calls this only where `Level::best` found the unit.
                    unsafe { $name($fnma) }
                }
                #[inline(always)]
                fn product_less(self, b: Self, c: Self) -> Self {
                    let ($a, $b, $c) = (self.0, b.0, c.0);
                    // SAFETY: `Level::run` calls this only where `Level::best` found the unit.
                    unsafe { $name($less) }
                }
                #[inline(always)]
                fn negate_where_odd(self, q: Self) -> Self {
                    let ($a, $b) = (self.0, q.0);
                    // SAFETY: `Level::run` calls this only where `Level::best` found the unit.
                    unsafe { $name($negate) }
                }
                #[inline(always)]
                fn times_power_of_two(self, q: Self) -> Self {
                    let ($a, $b) = (self.0, q.0);
                    // SAFETY: `Level::run` calls this only where `Level::best` found the unit.
                    unsafe { $name($power) }
                }
                #[inline(always)]
                fn zip(self, b: Self) -> (Self, Self) {
                    let ($a, $b) = (self.0, b.0);
                    // SAFETY: `Level::run` calls this only where `Level::best` found the unit.
                    let (first, second) = unsafe { $zip };
                    ($name(first), $name(second))
                }
                #[inline(always)]
                fn unzip(self, b: Self) -> (Self, Self) {
                    let ($a, $b) = (self.0, b.0);
                    // SAFETY: `Level::run` calls this only where `Level::best` found the unit.
                    let (even, odd) = unsafe { $unzip };
                    ($name(even), $name(odd))
                }
                #[inline(always)]
                fn sum_pairs(self) -> Complex<$t> {
                    let $a = self.0;
                    // SAFETY: `Level::run` calls this only where `Level::best` found the unit.
                    unsafe { $sum }
                }
            }
        };
    }

    vector!(
        F32x4,
        __m128,
        f32,
        4,
        _mm_set1_ps,
        _mm_loadu_ps,
        _mm_storeu_ps,
        _mm_add_ps,
        _mm_sub_ps,
        _mm_mul_ps,
        _mm_max_ps,
        _mm_min_ps,
        |a, b, c| _mm_add_ps(_mm_mul_ps(a, b), c),
        _mm_sub_ps(c, _mm_mul_ps(a, b)),
        {
            // Both factors split in halves whose products are exact.
            let half = |x| {
                let y = _mm_mul_ps(x, _mm_set1_ps(4097.0));
                let high = _mm_sub_ps(y, _mm_sub_ps(y, x));
                (high, _mm_sub_ps(x, high))
            };
            let ((ah, al), (bh, bl)) = (half(a), half(b));
            let rest = _mm_sub_ps(_mm_mul_ps(ah, bh), c);
            let rest = _mm_add_ps(_mm_add_ps(rest, _mm_mul_ps(ah, bl)), _mm_mul_ps(al, bh));
            _mm_add_ps(rest, _mm_mul_ps(al, bl))
        },
        _mm_xor_ps(a, _mm_castsi128_ps(_mm_slli_epi32(_mm_castps_si128(b), 31))),
        {
            let power = _mm_slli_epi32(_mm_castps_si128(b), 23);
            _mm_castsi128_ps(_mm_add_epi32(_mm_castps_si128(a), power))
        },
        (_mm_unpacklo_ps(a, b), _mm_unpackhi_ps(a, b)),
        (_mm_shuffle_ps(a, b, 0x88), _mm_shuffle_ps(a, b, 0xdd)),
        pairs_f32x4(a)
    );
    vector!(
        F64x2,
        __m128d,
        f64,
        2,
        _mm_set1_pd,
        _mm_loadu_pd,
        _mm_storeu_pd,
        _mm_add_pd,
        _mm_sub_pd,
        _mm_mul_pd,
        _mm_max_pd,
        _mm_min_pd,
        |a, b, c| _mm_add_pd(_mm_mul_pd(a, b), c),
        _mm_sub_pd(c, _mm_mul_pd(a, b)),
        {
            // Both factors split in halves whose products are exact.
            let half = |x| {
                let y = _mm_mul_pd(x, _mm_set1_pd(134217729.0));
                let high = _mm_sub_pd(y, _mm_sub_pd(y, x));
                (high, _mm_sub_pd(x, high))
            };
            let ((ah, al), (bh, bl)) = (half(a), half(b));
            let rest = _mm_sub_pd(_mm_mul_pd(ah, bh), c);
            let rest = _mm_add_pd(_mm_add_pd(rest, _mm_mul_pd(ah, bl)), _mm_mul_pd(al, bh));
            _mm_add_pd(rest, _mm_mul_pd(al, bl))
        },
        _mm_xor_pd(a, _mm_castsi128_pd(_mm_slli_epi64(_mm_castpd_si128(b), 63))),
        {
            let power = _mm_slli_epi64(_mm_castpd_si128(b), 52);
            _mm_castsi128_pd(_mm_add_epi64(_mm_castpd_si128(a), power))
        },
        (_mm_unpacklo_pd(a, b), _mm_unpackhi_pd(a, b)),
        (_mm_unpacklo_pd(a, b), _mm_unpackhi_pd(a, b)),
        pairs_f64x2(a)
    );
    vector!(
        F32x8,
        __m256,
        f32,
        8,
        _mm256_set1_ps,
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        _mm256_add_ps,
        _mm256_sub_ps,
        _mm256_mul_ps,
        _mm256_max_ps,
        _mm256_min_ps,
        |a, b, c| _mm256_fmadd_ps(a, b, c),
        _mm256_fnmadd_ps(a, b, c),
        _mm256_fmsub_ps(a, b, c),
        _mm256_xor_ps(a, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(b), 31))),
        {
            let power = _mm256_slli_epi32(_mm256_castps_si256(b), 23);
            _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), power))
        },
        {
            let (low, high) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
            (_mm256_permute2f128_ps(low, high, 0x20), _mm256_permute2f128_ps(low, high, 0x31))
        },
        {
            let even = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0x88));
            let odd = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0xdd));
            let (even, odd) = (_mm256_permute4x64_pd(even, 0xd8), _mm256_permute4x64_pd(odd, 0xd8));
            (_mm256_castpd_ps(even), _mm256_castpd_ps(odd))
        },
        pairs_f32x4(_mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1)))
    );
    vector!(
        F64x4,
        __m256d,
        f64,
        4,
        _mm256_set1_pd,
        _mm256_loadu_pd,
        _mm256_storeu_pd,
        _mm256_add_pd,
        _mm256_sub_pd,
        _mm256_mul_pd,
        _mm256_max_pd,
        _mm256_min_pd,
        |a, b, c| _mm256_fmadd_pd(a, b, c),
        _mm256_fnmadd_pd(a, b, c),
        _mm256_fmsub_pd(a, b, c),
        _mm256_xor_pd(a, _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_castpd_si256(b), 63))),
        {
            let power = _mm256_slli_epi64(_mm256_castpd_si256(b), 52);
            _mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(a), power))
        },
        {
            let (low, high) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
            (_mm256_permute2f128_pd(low, high, 0x20), _mm256_permute2f128_pd(low, high, 0x31))
        },
        {
            let (low, high) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
            (_mm256_permute4x64_pd(low, 0xd8), _mm256_permute4x64_pd(high, 0xd8))
        },
        pairs_f64x2(_mm_add_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1)))
    );
    vector!(
        F32x16,
        __m512,
        f32,
        16,
        _mm512_set1_ps,
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        _mm512_add_ps,
        _mm512_sub_ps,
        _mm512_mul_ps,
        _mm512_max_ps,
        _mm512_min_ps,
        |a, b, c| _mm512_fmadd_ps(a, b, c),
        _mm512_fnmadd_ps(a, b, c),
        _mm512_fmsub_ps(a, b, c),
        _mm512_xor_ps(a, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(b), 31))),
        {
            let power = _mm512_slli_epi32(_mm512_castps_si512(b), 23);
            _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a), power))
        },
        {
            let first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            let second = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
            (_mm512_permutex2var_ps(a, first, b), _mm512_permutex2var_ps(a, second, b))
        },
        {
            let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
            let odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
            (_mm512_permutex2var_ps(a, even, b), _mm512_permutex2var_ps(a, odd, b))
        },
        {
            let high = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(a), 1));
            let sum = _mm256_add_ps(_mm512_castps512_ps256(a), high);
            pairs_f32x4(_mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps(sum, 1)))
        }
    );
    vector!(
        F64x8,
        __m512d,
        f64,
        8,
        _mm512_set1_pd,
        _mm512_loadu_pd,
        _mm512_storeu_pd,
        _mm512_add_pd,
        _mm512_sub_pd,
        _mm512_mul_pd,
        _mm512_max_pd,
        _mm512_min_pd,
        |a, b, c| _mm512_fmadd_pd(a, b, c),
        _mm512_fnmadd_pd(a, b, c),
        _mm512_fmsub_pd(a, b, c),
        _mm512_xor_pd(a, _mm512_castsi512_pd(_mm512_slli_epi64(_mm512_castpd_si512(b), 63))),
        {
            let power = _mm512_slli_epi64(_mm512_castpd_si512(b), 52);
            _mm512_castsi512_pd(_mm512_add_epi64(_mm512_castpd_si512(a), power))
        },
        {
            let first = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
            let second = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
            (_mm512_permutex2var_pd(a, first, b), _mm512_permutex2var_pd(a, second, b))
        },
        {
            let even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
            let odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
            (_mm512_permutex2var_pd(a, even, b), _mm512_permutex2var_pd(a, odd, b))
        },
        {
            let sum = _mm256_add_pd(_mm512_castpd512_pd256(a), _mm512_extractf64x4_pd(a, 1));
            pairs_f64x2(_mm_add_pd(_mm256_castpd256_pd128(sum), _mm256_extractf128_pd(sum, 1)))
        }
    );

    /// # Safety
    /// None: SSE2 is part of x86-64.
    #[inline(always)]
    unsafe fn pairs_f32x4(a: __m128) -> Complex<f32> {
        // SAFETY: SSE2 is part of x86-64.
        unsafe {
            let sum = _mm_add_ps(a, _mm_movehl_ps(a, a));
            Complex::new(_mm_cvtss_f32(sum), _mm_cvtss_f32(_mm_shuffle_ps(sum, sum, 1)))
        }
    }
    /// # Safety
    /// None: SSE2 is part of x86-64.
    #[inline(always)]
    unsafe fn pairs_f64x2(a: __m128d) -> Complex<f64> {
        // SAFETY: SSE2 is part of x86-64.
        unsafe { Complex::new(_mm_cvtsd_f64(a), _mm_cvtsd_f64(_mm_unpackhi_pd(a, a))) }
    }
}

/// Vectors for other processors: arrays that the compiler is left to vectorise.
#[cfg(any(test, not(target_arch = "x86_64")))]
// Each target uses one of the two kinds, the tests both.
#[allow(dead_code)]
mod portable {
    use crate::backend::cpu::simd::Vector;
    use crate::base::real::Real;
    use num_complex::Complex;
    use std::array::from_fn;

    macro_rules! vector {
        ($name:ident, |$a:ident, $b:ident, $c:ident| $fma:expr, $fnma:expr, $less:expr) => {
            #[derive(Clone, Copy)]
            pub struct $name<T, const N: usize>([T; N]);
            impl<T: Real, const N: usize> Vector<T> for $name<T, N> {
                const LANES: usize = N;
                #[inline(always)]
                fn splat(x: T) -> Self {
                    $name([x; N])
                }
                #[inline(always)]
                unsafe fn load(p: *const T) -> Self {
                    // SAFETY: the caller promises N readable elements.
                    $name(unsafe { p.cast::<[T; N]>().read_unaligned() })
                }
                #[inline(always)]
                unsafe fn store(self, p: *mut T) {
                    // SAFETY: the caller promises N writable elements.
                    unsafe { p.cast::<[T; N]>().write_unaligned(self.0) }
                }
                #[inline(always)]
                fn add(self, b: Self) -> Self {
                    $name(from_fn(|i| self.0[i] + b.0[i]))
                }
                #[inline(always)]
                fn sub(self, b: Self) -> Self {
                    $name(from_fn(|i| self.0[i] - b.0[i]))
                }
                #[inline(always)]
                fn mul(self, b: Self) -> Self {
                    $name(from_fn(|i| self.0[i] * b.0[i]))
                }
                #[inline(always)]
                fn max(self, b: Self) -> Self {
                    $name(from_fn(|i| if self.0[i] > b.0[i] { self.0[i] } else { b.0[i] }))
                }
                #[inline(always)]
                fn min(self, b: Self) -> Self {
                    $name(from_fn(|i| if self.0[i] < b.0[i] { self.0[i] } else { b.0[i] }))
                }
                #[inline(always)]
                fn fma(self, b: Self, c: Self) -> Self {
                    $name(from_fn(|i| {
                        let ($a, $b, $c) = (self.0[i], b.0[i], c.0[i]);
                        $fma
                    }))
                }
                #[inline(always)]
                fn fnma(self, b: Self, c: Self) -> Self {
                    $name(from_fn(|i| {
                        let ($a, $b, $c) = (self.0[i], b.0[i], c.0[i]);
                        $fnma
                    }))
                }
                #[inline(always)]
                fn product_less(self, b: Self, c: Self) -> Self {
                    $name(from_fn(|i| {
                        let ($a, $b, $c) = (self.0[i], b.0[i], c.0[i]);
                        $less
                    }))
                }
                #[inline(always)]
                fn negate_where_odd(self, q: Self) -> Self {
                    // The last bit of an f32 is bit 29 of the f64 of its value.
                    let last = if T::EPSILON > f64::EPSILON { 29 } else { 0 };
                    let odd = |i: usize| q.0[i].wide().to_bits() >> last & 1 == 1;
                    $name(from_fn(|i| if odd(i) { -self.0[i] } else { self.0[i] }))
                }
                #[inline(always)]
                fn times_power_of_two(self, q: Self) -> Self {
                    // An f64's exponent is in its bits 52 and higher, and 1023 for 1.
                    let power = |i: usize| f64::from_bits(((q.0[i].wide() - 1.5 / T::EPSILON + 1023.0) as u64) << 52);
                    $name(from_fn(|i| T::of(self.0[i].wide() * power(i))))
                }
                #[inline(always)]
                fn zip(self, b: Self) -> (Self, Self) {
                    let at = |i: usize| if i % 2 == 0 { self.0[i / 2] } else { b.0[i / 2] };
                    ($name(from_fn(at)), $name(from_fn(|i| at(i + N))))
                }
                #[inline(always)]
                fn unzip(self, b: Self) -> (Self, Self) {
                    let at = |i: usize| if i < N { self.0[i] } else { b.0[i - N] };
                    ($name(from_fn(|i| at(2 * i))), $name(from_fn(|i| at(2 * i + 1))))
                }
                #[inline(always)]
                fn sum_pairs(self) -> Complex<T> {
                    let sum = |first| self.0.iter().skip(first).step_by(2).copied().sum();
                    Complex::new(sum(0), sum(1))
                }
            }
        };
    }
    vector!(Fused, |a, b, c| a.fma(b, c), (-a).fma(b, c), a.fma(b, -c));
    // fma in software: slow, and correct.
    vector!(Separate, |a, b, c| a * b + c, c - a * b, a.fma(b, -c));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;

    /// Every function of a vector against scalar arithmetic.
    fn check<T: Real, V: Vector<T>>() {
        let n = V::LANES;
        let lists: Vec<Vec<T>> =
            (0..3).map(|l| (0..n).map(|i| T::of((l * 7 + i) as f64 * 0.37 - 1.1)).collect()).collect();
        // SAFETY: the lists have LANES elements.
        let [a, b, c] = [0, 1, 2].map(|l| unsafe { V::load(lists[l].as_ptr()) });
        let read = |v: V| {
            let mut out = vec![T::of(f64::NAN); n];
            // SAFETY: LANES elements.
            unsafe { v.store(out.as_mut_ptr()) };
            out
        };
        let (la, lb, lc) = (&lists[0], &lists[1], &lists[2]);
        let each = |f: &dyn Fn(T, T, T) -> f64, v: V| {
            for (i, got) in read(v).into_iter().enumerate() {
                let want = f(la[i], lb[i], lc[i]);
                assert!((got.wide() - want).abs() <= 4.0 * T::EPSILON * (1.0 + want.abs()), "{i}: {got} {want}");
            }
        };
        each(&|_, _, _| 2.5, V::splat(T::of(2.5)));
        each(&|a, b, _| a.wide() + b.wide(), a.add(b));
        each(&|a, b, _| a.wide() - b.wide(), a.sub(b));
        each(&|a, b, _| a.wide() * b.wide(), a.mul(b));
        each(&|a, b, c| a.wide() * b.wide() + c.wide(), a.fma(b, c));
        each(&|a, b, c| c.wide() - a.wide() * b.wide(), a.fnma(b, c));
        let product: Vec<T> = la.iter().zip(lb).map(|(a, b)| *a * *b).collect();
        // SAFETY: LANES elements.
        let error = read(a.product_less(b, unsafe { V::load(product.as_ptr()) }));
        for i in 0..n {
            assert_eq!(error[i], la[i].fma(lb[i], -product[i]), "{i}");
        }
        // One and the number after it, in turn.
        let steps: Vec<T> = (0..n).map(|i| T::ONE + T::of((i % 2) as f64 * T::EPSILON)).collect();
        // SAFETY: LANES elements.
        let flipped = read(a.negate_where_odd(unsafe { V::load(steps.as_ptr()) }));
        for i in 0..n {
            assert_eq!(flipped[i], if i % 2 == 1 { -la[i] } else { la[i] }, "{i}");
        }
        each(&|a, b, _| a.wide().max(b.wide()), a.max(b));
        each(&|a, b, _| a.wide().min(b.wide()), a.min(b));
        let exponent = |i: usize| [0.0, 1.0, -1.0, 9.0, -9.0, 90.0, -100.0][i % 7];
        let shifted: Vec<T> = (0..n).map(|i| T::of(1.5 / T::EPSILON + exponent(i))).collect();
        // SAFETY: LANES elements.
        let scaled = read(a.times_power_of_two(unsafe { V::load(shifted.as_ptr()) }));
        for i in 0..n {
            assert_eq!(scaled[i].wide(), la[i].wide() * exponent(i).exp2(), "{i}");
        }
        let (first, second) = a.zip(b);
        let zipped: Vec<T> = read(first).into_iter().chain(read(second)).collect();
        let pairs: Vec<T> = la.iter().zip(lb).flat_map(|(a, b)| [*a, *b]).collect();
        assert_eq!(zipped, pairs);
        let (even, odd) = first.unzip(second);
        assert_eq!((&read(even), &read(odd)), (la, lb));
        let sum = a.sum_pairs();
        for (first, got) in [(0, sum.re), (1, sum.im)] {
            let want: f64 = la.iter().skip(first).step_by(2).map(|x| x.wide()).sum();
            assert!((got.wide() - want).abs() < 8.0 * T::EPSILON * n as f64, "{got} {want}");
        }
    }

    /// A level that is asked for is used, or refused where the processor lacks it; never replaced by another.
    #[test]
    fn levels_are_chosen_by_option_then_variable_then_processor() {
        let has = Level::all();
        let of = |has: &[Level], simd, variable| Level::among(has, simd, variable);
        let best = has.last().unwrap().as_suits_the_processor();
        assert_eq!(of(&has, Simd::Auto, None).unwrap(), best);
        assert_eq!(of(&has, Simd::Auto, Some("")).unwrap(), best);
        assert_eq!(of(&has, Simd::Auto, Some("auto")).unwrap(), best);
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

    struct Check;
    impl Kernel for Check {
        type Output = ();
        fn run<A: Arith>(self) {
            check::<f32, A::F32>();
            check::<f64, A::F64>();
        }
    }

    #[test]
    fn vectors_of_every_level_compute() {
        for level in Level::all() {
            level.run(Check);
        }
        check::<f32, portable::Fused<f32, 4>>();
        check::<f64, portable::Separate<f64, 2>>();
    }
}
