//! The words of options with a fixed list of values, and the library's values for them.

use clap::ValueEnum;
use recon::{BladePhase, Combine, Density, Filter, LambdaUnit, Method, PartialFourierMethod, Simd, VoxelBasis, Window};

/// Defines an enumeration of option words.
macro_rules! choices {
    ($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $case:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
        pub enum $name { $($(#[$about])* $case),+ }
    };
    ($(#[$doc:meta])* $name:ident for $library:ident { $($(#[$about:meta])* $case:ident),+ $(,)? }) => {
        choices!($(#[$doc])* $name { $($(#[$about])* $case),+ });

        impl From<$name> for $library {
            fn from(kind: $name) -> $library {
                match kind {
                    $($name::$case => $library::$case),+
                }
            }
        }
    };
}

choices!(
    /// A method of computing sums over samples.
    MethodKind for Method {
        /// Same as nufft
        Auto,
        /// Direct summation: slow, to full precision
        Exact,
        /// Gridding and FFT, to the tolerance
        Nufft
    }
);
choices!(
    /// The scale of images that are written.
    ImageScale {
        /// The scale of this program: transforms have no factor
        Recon,
        /// The scale of BART, whose Fourier transform is unitary. With N voxels of the encoded matrix, images are
        /// multiplied by sqrt(N), and the adjoint by 1 / sqrt(N)
        Bart
    }
);
choices!(
    /// A gridding window.
    WindowKind for Window {
        /// Smallest maximum error: the best window at every tolerance
        Minimax,
        /// Kaiser-Bessel: one to two cells wider than minimax at the same error
        KaiserBessel,
        /// Gaussian: about half the digits of minimax at the same width
        Gaussian,
        /// Linear interpolation: errors of about 0.2
        Bilinear
    }
);
choices!(
    /// A precision of computation.
    PrecisionKind {
        /// Single precision
        F32,
        /// Double precision
        F64
    }
);
choices!(
    /// A vector unit.
    SimdKind for Simd {
        /// The level in RECON_SIMD, or else the best level of the processor
        Auto,
        /// The level that every processor has: SSE2 on x86-64, NEON on 64-bit ARM
        #[cfg_attr(target_arch = "x86_64", value(alias = "sse"))]
        Baseline,
        /// AVX2 with fused multiply-add
        Avx2,
        /// AVX-512
        Avx512,
        /// NEON of 64-bit ARM
        Neon
    }
);
choices!(
    /// A voxel shape.
    BasisKind for VoxelBasis {
        /// A point
        Point,
        /// A box
        Box
    }
);
choices!(
    /// A method of density compensation.
    DensityKind {
        /// Fixed point of Pipe and Menon 1999: for any trajectory; 0.4 to 3 % error if sampling is full
        PipeMenon,
        /// Reciprocal of the sample density (Jackson et al. 1991): for any trajectory, in one step; 5 to 15 % error
        Jackson,
        /// |k|^(d-1), with 0 to 3 % error: for even spokes through the centre, even (Archimedean) spirals, and stacks
        /// of either along an axis. An error for other trajectories
        Ramp
    }
);
choices!(
    /// A filter of backprojection. Each filter reduces noise and detail more than the previous one.
    FilterKind for Filter {
        /// The ramp |k| alone
        RamLak,
        /// The ramp times sin(a) / a, where a = pi |k| / (2 kmax)
        SheppLogan,
        /// The ramp times cos(a)
        Cosine,
        /// The ramp times 0.54 + 0.46 cos(2a)
        Hamming,
        /// The ramp times (1 + cos(2a)) / 2
        Hann
    }
);
choices!(
    /// A correction of the phase of blades.
    BladePhaseKind for BladePhase {
        /// Remove the phase of a smooth image of each blade and coil. This includes the phase of the object and the
        /// coils
        Smooth,
        /// Remove one phase per blade, the same in all coils
        Constant,
        /// Leave the phase unchanged
        None
    }
);
choices!(
    /// A method for k-space with a missing side.
    PartialFourierKind {
        /// Zeros for the missing side, which blur the image
        None,
        /// Homodyne detection (Noll et al. 1991), in one step
        Homodyne,
        /// Projection onto convex sets (Haacke et al. 1991): iterations, with a smaller error
        Pocs
    }
);

impl PartialFourierKind {
    /// Returns the library's method; `None` if the missing side is not filled.
    pub fn method(self) -> Option<PartialFourierMethod> {
        match self {
            PartialFourierKind::None => None,
            PartialFourierKind::Homodyne => Some(PartialFourierMethod::Homodyne),
            PartialFourierKind::Pocs => Some(PartialFourierMethod::Pocs),
        }
    }
}
choices!(
    /// A combination of coil images.
    Combination {
        /// Root of the sum of squares: a magnitude
        Rss,
        /// Weighted by sensitivities that are estimated from the coil images: keeps the phase
        Adaptive,
        /// No combination: one image per coil
        None
    }
);
choices!(
    /// A prior of conjugate gradients.
    PriorKind {
        /// Prefer small values
        Identity,
        /// Prefer small differences between neighbouring voxels
        Differences,
        /// Prefer small differences between neighbouring voxels, except across edges of --reference
        Anatomical
    }
);
choices!(
    /// A unit of --lambda.
    LambdaUnitKind for LambdaUnit {
        /// The mean of the diagonal of E^H W E over the voxels that the coils see. With coil maps of unit norm this is
        /// the sum of the weights of the samples. One value of lambda suits scans of any length
        Relative,
        /// 1: the equation uses lambda unchanged
        Absolute,
    }
);

impl From<DensityKind> for Density {
    fn from(kind: DensityKind) -> Density {
        match kind {
            DensityKind::PipeMenon => Density::default(),
            DensityKind::Jackson => Density::Jackson,
            DensityKind::Ramp => Density::Ramp,
        }
    }
}

impl Combination {
    /// Returns the library's method; `None` if images are not combined.
    pub fn method(self) -> Option<Combine> {
        match self {
            Combination::Rss => Some(Combine::RootSumOfSquares),
            Combination::Adaptive => Some(Combine::Adaptive),
            Combination::None => None,
        }
    }

    /// Returns the number of channels of an image that is made of `images` coil images.
    pub fn channels(self, images: usize) -> usize {
        match self {
            Combination::None => images,
            Combination::Rss | Combination::Adaptive => 1,
        }
    }
}
