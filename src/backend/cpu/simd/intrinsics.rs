//! The implementation of a vector type by the intrinsics of a vector unit.

/// Implements `Vector` for a type of the intrinsics. The operations are given as intrinsics, or as expressions of the
/// arguments a, b and c.
macro_rules! vector {
    ($name:ident, $inner:ty, $t:ty, $lanes:literal, $splat:ident, $load:ident, $store:ident,
     [$($simple:ident = $intrinsic:ident),*], |$a:ident, $b:ident, $c:ident|
     [$($ternary:ident = $abc:expr),*], [$($binary:ident = $ab:expr),*], [$($pair:ident = $two:expr),*], $sum:expr) => {
        #[derive(Clone, Copy)]
        pub struct $name($inner);
        impl Vector<$t> for $name {
            const LANES: usize = $lanes;
            #[inline(always)]
            fn splat(x: $t) -> Self {
                // SAFETY: the processor has the unit, by its target (NEON) or because `Level::run` has checked it.
                unsafe { $name($splat(x)) }
            }
            #[inline(always)]
            unsafe fn load(p: *const $t) -> Self {
                // SAFETY: the caller promises readable elements; the instruction accepts any alignment.
                unsafe { $name($load(p)) }
            }
            #[inline(always)]
            unsafe fn store(self, p: *mut $t) {
                // SAFETY: the caller promises writable elements; the instruction accepts any alignment.
                unsafe { $store(p, self.0) }
            }
            $(#[inline(always)]
            fn $simple(self, b: Self) -> Self {
                // SAFETY: the processor has the unit, by its target (NEON) or because `Level::run` has checked it.
                unsafe { $name($intrinsic(self.0, b.0)) }
            })*
            $(#[inline(always)]
            fn $ternary(self, b: Self, c: Self) -> Self {
                let ($a, $b, $c) = (self.0, b.0, c.0);
                // SAFETY: the processor has the unit, by its target (NEON) or because `Level::run` has checked it.
                unsafe { $name($abc) }
            })*
            $(#[inline(always)]
            fn $binary(self, b: Self) -> Self {
                let ($a, $b) = (self.0, b.0);
                // SAFETY: the processor has the unit, by its target (NEON) or because `Level::run` has checked it.
                unsafe { $name($ab) }
            })*
            $(#[inline(always)]
            fn $pair(self, b: Self) -> (Self, Self) {
                let ($a, $b) = (self.0, b.0);
                // SAFETY: the processor has the unit, by its target (NEON) or because `Level::run` has checked it.
                let (first, second) = unsafe { $two };
                ($name(first), $name(second))
            })*
            #[inline(always)]
            fn sum_pairs(self) -> Complex<$t> {
                let $a = self.0;
                // SAFETY: the processor has the unit, by its target (NEON) or because `Level::run` has checked it.
                unsafe { $sum }
            }
        }
    };
}
pub(super) use vector;
