//! The two precisions, `f32` and `f64`, as one trait.

use num_complex::Complex;
use std::fmt::{Debug, Display};

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// A number in an array. Every bit pattern is valid, and zero bits are the number 0.
pub trait Element: Copy + Default + Send + Sync + 'static {}
impl Element for f32 {}
impl Element for f64 {}
impl Element for u16 {}
impl Element for u32 {}
impl Element for u64 {}
impl<T: Real> Element for Complex<T> {}

/// A real or complex number of a result.
pub trait ResultNumber: Copy {
    /// The precision, for messages.
    const PRECISION_NAME: &'static str;
    /// Returns whether no part is NaN or infinite.
    fn is_finite_number(&self) -> bool;
    /// Returns the number as text.
    fn text(&self) -> String;
}

macro_rules! real_results {
    ($($t:ty)+) => {$(
        impl ResultNumber for $t {
            const PRECISION_NAME: &'static str = <$t as Real>::NAME;
            #[inline(always)]
            fn is_finite_number(&self) -> bool {
                self.is_finite()
            }
            fn text(&self) -> String {
                self.to_string()
            }
        }
    )+};
}
real_results!(f32 f64);

impl<T: Real> ResultNumber for Complex<T> {
    const PRECISION_NAME: &'static str = T::NAME;
    #[inline(always)]
    fn is_finite_number(&self) -> bool {
        self.re.finite() & self.im.finite()
    }
    fn text(&self) -> String {
        format!("{} + {}i", self.re, self.im)
    }
}

/// A computation in either precision that is compiled once, in this crate, rather than in each crate that uses it.
#[doc(hidden)]
pub trait PerPrecision {
    /// The input.
    type Input<'a, T: Real>;
    /// The result.
    type Output<T: Real>;
    /// Computes in f32.
    fn single(input: Self::Input<'_, f32>) -> Self::Output<f32>;
    /// Computes in f64.
    fn double(input: Self::Input<'_, f64>) -> Self::Output<f64>;
}

/// A precision of image reconstruction: `f32` or `f64`.
pub trait Real:
    sealed::Sealed
    + Debug
    + Display
    + PartialOrd
    + num_traits::NumAssign
    + std::ops::Neg<Output = Self>
    + Element
    + ResultNumber
    + std::iter::Sum
{
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// The largest number, as f64.
    const LARGEST: f64;
    /// The distance from one to the next larger number, as f64.
    const EPSILON: f64;
    /// `f32` or `f64`, for messages.
    const NAME: &'static str;

    /// Converts to this precision, with rounding.
    fn of(value: f64) -> Self;
    /// Converts to f64, exactly.
    fn wide(self) -> f64;
    /// Returns `self * a + b` with a single rounding. Slow if the processor lacks this instruction.
    fn fma(self, a: Self, b: Self) -> Self;
    /// The same in code for processors without this instruction.
    #[doc(hidden)]
    fn fma_in_software(self, a: Self, b: Self) -> Self;
    /// Returns whether the number is neither NaN nor infinite.
    fn finite(self) -> bool;
    /// Returns the magnitude.
    fn magnitude(self) -> Self;
    /// Returns the nearest integer; halves are rounded to even.
    fn round_even(self) -> Self;
    /// Returns the largest number below 0.5, the upper end of the range of k-space coordinates.
    fn below_half() -> Self;
    /// Runs the computation for this precision.
    #[doc(hidden)]
    fn per_precision<W: PerPrecision>(input: W::Input<'_, Self>) -> W::Output<Self>;

    /// Rounds a k-space coordinate in [-0.5, 0.5) to this precision without leaving that range.
    fn coordinate(k: f64) -> Self {
        let k = Self::of(k);
        if k.wide() >= 0.5 {
            Self::below_half()
        } else {
            k
        }
    }
}

macro_rules! real {
    ($t:ty, $name:literal, $work:ident, $fma:path) => {
        impl Real for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const LARGEST: f64 = <$t>::MAX as f64;
            const EPSILON: f64 = <$t>::EPSILON as f64;
            const NAME: &'static str = $name;

            #[inline(always)]
            fn of(value: f64) -> Self {
                value as $t
            }
            #[inline(always)]
            fn wide(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn fma(self, a: Self, b: Self) -> Self {
                self.mul_add(a, b)
            }
            #[inline(always)]
            fn fma_in_software(self, a: Self, b: Self) -> Self {
                // The C library of MinGW rounds the product to 64 bits first.
                if cfg!(all(windows, target_env = "gnu")) {
                    $fma(self, a, b)
                } else {
                    self.mul_add(a, b)
                }
            }
            #[inline(always)]
            fn finite(self) -> bool {
                self.is_finite()
            }
            #[inline(always)]
            fn magnitude(self) -> Self {
                self.abs()
            }
            #[inline(always)]
            fn round_even(self) -> Self {
                self.round_ties_even()
            }
            fn below_half() -> Self {
                <$t>::from_bits((0.5 as $t).to_bits() - 1)
            }
            fn per_precision<W: PerPrecision>(input: W::Input<'_, Self>) -> W::Output<Self> {
                W::$work(input)
            }
        }
    };
}
real!(f32, "f32", single, libm::fmaf);
real!(f64, "f64", double, libm::fma);

/// Converts a complex number to f64, exactly.
pub(crate) fn wide<T: Real>(z: Complex<T>) -> Complex<f64> {
    Complex::new(z.re.wide(), z.im.wide())
}

/// Converts a complex number to this precision, with rounding.
pub(crate) fn narrow<T: Real>(z: Complex<f64>) -> Complex<T> {
    Complex::new(T::of(z.re), T::of(z.im))
}
