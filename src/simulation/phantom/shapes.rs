//! Ellipses, ellipsoids, and phantoms as their sums.

use crate::base::error::{bail, try_reserve, Result};
use crate::base::rigid_motion::RigidMotion;

/// An ellipsoid of uniform density in phantom coordinates; in 2D, an ellipse.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ellipsoid {
    /// Value added to the image inside the surface.
    pub density: f64,
    /// Centre: x, y and z. z is 0 in 2D.
    pub centre: [f64; 3],
    /// Semi-axes along the ellipsoid's own x, y and z, all positive. The third has no effect in 2D.
    pub semi_axes: [f64; 3],
    /// Euler angles (phi, theta, psi) in radians. They turn the ellipsoid's own axes by Rz(phi) Ry(theta) Rz(psi), as
    /// in Koay et al. 2007. In 2D theta and psi are 0, and phi turns from x towards y.
    pub angles: [f64; 3],
}

/// A sum of ellipses (2D) or ellipsoids (3D).
#[derive(Debug, Clone, PartialEq)]
pub struct Phantom {
    pub(super) ndim: usize,
    pub(super) shapes: Vec<Ellipsoid>,
}

impl Phantom {
    /// Creates a phantom of `ndim` 2 or 3 from its shapes. Shapes may overlap and may extend beyond the field of view.
    ///
    /// # Errors
    /// - `InvalidSize` for a different `ndim` or no shapes.
    /// - `NotFinite`.
    /// - `InvalidArgument` for a semi-axis that is not positive, and for an ellipse that is moved or turned out of the
    ///   plane.
    pub fn new(ndim: usize, shapes: Vec<Ellipsoid>) -> Result<Self> {
        if ndim != 2 && ndim != 3 {
            bail!(InvalidSize, "the phantom has {ndim} dimensions: give 2 or 3");
        }
        if shapes.is_empty() {
            bail!(InvalidSize, "the phantom has no shapes: give at least one");
        }
        for (i, s) in shapes.iter().enumerate() {
            let numbers = [s.centre, s.semi_axes, s.angles].concat();
            if let Some(bad) = numbers.iter().chain([&s.density]).find(|v| !v.is_finite()) {
                bail!(NotFinite, "shape {i} has a parameter of {bad}: give finite numbers");
            }
            if let Some(bad) = s.semi_axes[..ndim].iter().find(|&&a| a <= 0.0) {
                bail!(InvalidArgument, "shape {i} has a semi-axis of {bad}: give positive lengths");
            }
            if ndim == 2 && [s.centre[2], s.angles[1], s.angles[2]] != [0.0; 3] {
                bail!(InvalidArgument, "ellipse {i} leaves the plane: set its centre z, theta and psi to 0");
            }
        }
        Ok(Phantom { ndim, shapes })
    }

    /// Returns the number of dimensions, 2 or 3.
    pub fn ndim(&self) -> usize {
        self.ndim
    }

    /// Returns the shapes, in the order of the sum.
    pub fn shapes(&self) -> &[Ellipsoid] {
        &self.shapes
    }

    /// Returns the phantom after a motion, in an image of n x n voxels.
    ///
    /// # Errors
    /// `Unsupported` in 3D; `InvalidSize` for an image of 0 voxels; `NotFinite`.
    pub fn moved(&self, n: usize, motion: &RigidMotion) -> Result<Self> {
        if self.ndim != 2 {
            bail!(Unsupported, "a phantom of {} dimensions cannot be moved in the plane: use a 2D phantom", self.ndim);
        }
        self.check_dims(&[n, n])?;
        let mut shapes = try_reserve(self.shapes.len(), "the phantom")?;
        for shape in &self.shapes {
            let [x, y] = motion.turned([shape.centre[0], shape.centre[1]]);
            let [dx, dy] = motion.translation.map(|voxels| 2.0 * voxels / n as f64);
            let angles = [shape.angles[0] + motion.angle, 0.0, 0.0];
            shapes.push(Ellipsoid { centre: [x + dx, y + dy, 0.0], angles, ..*shape });
        }
        Phantom::new(2, shapes)
    }

    pub(super) fn check_dims(&self, dims: &[usize]) -> Result<()> {
        check_dims("phantom", self.ndim, dims)
    }
}

/// Returns the matrix Rz(phi) Ry(theta) Rz(psi).
pub(super) fn rotation([phi, theta, psi]: [f64; 3]) -> [[f64; 3]; 3] {
    let ((s1, c1), (s2, c2), (s3, c3)) = (phi.sin_cos(), theta.sin_cos(), psi.sin_cos());
    [
        [c1 * c2 * c3 - s1 * s3, -c1 * c2 * s3 - s1 * c3, c1 * s2],
        [s1 * c2 * c3 + c1 * s3, -s1 * c2 * s3 + c1 * c3, s1 * s2],
        [-s2 * c3, s2 * s3, c2],
    ]
}

/// Returns the matrix that maps a shape, relative to its centre, to the unit sphere (in 2D, circle).
pub(super) fn to_unit_sphere(shape: &Ellipsoid, ndim: usize) -> [[f64; 3]; 3] {
    let r = rotation(shape.angles);
    std::array::from_fn(|i| std::array::from_fn(|j| if i < ndim { r[j][i] / shape.semi_axes[i] } else { 0.0 }))
}

/// Returns the interval of x in which the line at (y, z) lies inside a shape, whose [`to_unit_sphere`] is `m`.
pub(super) fn interval(shape: &Ellipsoid, m: &[[f64; 3]; 3], y: f64, z: f64) -> Option<[f64; 2]> {
    // The ends solve |v + x d|^2 = 1 on the unit sphere.
    let v = apply(m, &[-shape.centre[0], y - shape.centre[1], z - shape.centre[2]]);
    let d = [m[0][0], m[1][0], m[2][0]];
    let (dd, dv) = (dot(&d, &d), dot(&d, &v));
    let discriminant = dv * dv - dd * (dot(&v, &v) - 1.0);
    let half = discriminant.max(0.0).sqrt() / dd;
    (discriminant >= 0.0).then_some([-dv / dd - half, -dv / dd + half])
}

pub(super) fn dot(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(super) fn apply(m: &[[f64; 3]; 3], v: &[f64; 3]) -> [f64; 3] {
    [dot(&m[0], v), dot(&m[1], v), dot(&m[2], v)]
}

pub(super) fn check_dims(what: &str, ndim: usize, dims: &[usize]) -> Result<()> {
    if dims.len() != ndim {
        bail!(SizeMismatch, "{} sizes were given for a {what} of {ndim} dimensions: give one each", dims.len());
    }
    if let Some(axis) = dims.iter().position(|&n| n == 0) {
        bail!(InvalidSize, "the size of axis {axis} is 0: give 1 or more");
    }
    Ok(())
}
