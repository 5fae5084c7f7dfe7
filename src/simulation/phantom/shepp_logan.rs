//! The Shepp-Logan heads in 2D and 3D.

use super::shapes::{Ellipsoid, Phantom};

impl Phantom {
    /// Creates the head of Shepp and Logan (1974, IEEE Trans. Nucl. Sci. 21:21): ten ellipses.
    ///
    /// The densities, from 0 to 1, are those of Toft (1996, PhD thesis, Technical University of Denmark), which raise
    /// the contrast within the brain. MATLAB calls this phantom "Modified Shepp-Logan". Here y grows with the index; in
    /// MATLAB it falls.
    pub fn shepp_logan_2d() -> Self {
        // Density, semi-axes, centre, phi in degrees.
        const TABLE: [[f64; 6]; 10] = [
            [1.0, 0.69, 0.92, 0.0, 0.0, 0.0],
            [-0.8, 0.6624, 0.874, 0.0, -0.0184, 0.0],
            [-0.2, 0.11, 0.31, 0.22, 0.0, -18.0],
            [-0.2, 0.16, 0.41, -0.22, 0.0, 18.0],
            [0.1, 0.21, 0.25, 0.0, 0.35, 0.0],
            [0.1, 0.046, 0.046, 0.0, 0.1, 0.0],
            [0.1, 0.046, 0.046, 0.0, -0.1, 0.0],
            [0.1, 0.046, 0.023, -0.08, -0.605, 0.0],
            [0.1, 0.023, 0.023, 0.0, -0.606, 0.0],
            [0.1, 0.023, 0.046, 0.06, -0.605, 0.0],
        ];
        let shape = |[density, a, b, x, y, phi]: [f64; 6]| Ellipsoid {
            density,
            centre: [x, y, 0.0],
            semi_axes: [a, b, 1.0],
            angles: [phi.to_radians(), 0.0, 0.0],
        };
        Phantom { ndim: 2, shapes: TABLE.map(shape).to_vec() }
    }

    /// Creates the 3D head of Koay, Sarlls and Ozarslan (2007, MRM 58:430): ten ellipsoids turned about z.
    ///
    /// The parameters are those of the authors' program. Densities range from 0 to 2.
    pub fn shepp_logan_3d() -> Self {
        // Density, semi-axes, centre, phi in degrees.
        const TABLE: [[f64; 8]; 10] = [
            [2.0, 0.69, 0.92, 0.9, 0.0, 0.0, 0.0, 0.0],
            [-0.8, 0.6624, 0.874, 0.88, 0.0, 0.0, 0.0, 0.0],
            [-0.2, 0.41, 0.16, 0.21, -0.22, 0.0, -0.25, 108.0],
            [-0.2, 0.31, 0.11, 0.22, 0.22, 0.0, -0.25, 72.0],
            [0.2, 0.21, 0.25, 0.5, 0.0, 0.35, -0.25, 0.0],
            [0.2, 0.046, 0.046, 0.046, 0.0, 0.1, -0.25, 0.0],
            [0.1, 0.046, 0.023, 0.02, -0.08, -0.65, -0.25, 0.0],
            [0.1, 0.046, 0.023, 0.02, 0.06, -0.65, -0.25, 0.0],
            [0.2, 0.056, 0.04, 0.1, 0.06, -0.105, 0.625, 90.0],
            [-0.2, 0.056, 0.056, 0.1, 0.0, 0.1, 0.625, 90.0],
        ];
        let shape = |[density, a, b, c, x, y, z, phi]: [f64; 8]| Ellipsoid {
            density,
            centre: [x, y, z],
            semi_axes: [a, b, c],
            angles: [phi.to_radians(), 0.0, 0.0],
        };
        Phantom { ndim: 3, shapes: TABLE.map(shape).to_vec() }
    }
}
