//! Rigid motion in the plane.

/// A rotation about voxel floor(n/2) of the image, followed by a translation.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RigidMotion {
    /// Rotation angle in radians, from x to y.
    pub angle: f64,
    /// Translation in voxels along x and y.
    pub translation: [f64; 2],
}

impl RigidMotion {
    /// Rotates a vector by minus the angle: returns its coordinates along axes that rotate with the object.
    ///
    /// If S is the signal of the object at rest, the object after the motion has the signal S(back(k)) exp(-i 2 pi
    /// k.translation).
    pub fn back(&self, v: [f64; 2]) -> [f64; 2] {
        let (sin, cos) = self.angle.sin_cos();
        [cos * v[0] + sin * v[1], cos * v[1] - sin * v[0]]
    }

    /// Rotates a vector by the angle, together with the object.
    pub fn turned(&self, v: [f64; 2]) -> [f64; 2] {
        RigidMotion { angle: -self.angle, ..*self }.back(v)
    }

    /// Subtracts the mean motion from several motions, as if the object at rest had been in a different position.
    /// Afterwards the angles have mean 0, and so do the translations along axes that rotate with the object.
    pub fn centre(motions: &mut [RigidMotion]) {
        let count = motions.len() as f64;
        let angle = motions.iter().map(|m| m.angle).sum::<f64>() / count;
        let mean = motions.iter().fold([0.0; 2], |sum, motion| {
            let rotated = motion.back(motion.translation);
            [sum[0] + rotated[0] / count, sum[1] + rotated[1] / count]
        });
        for motion in motions {
            let rotated = motion.turned(mean);
            motion.translation = [motion.translation[0] - rotated[0], motion.translation[1] - rotated[1]];
            motion.angle -= angle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn centring_removes_the_mean_and_preserves_differences() {
        let of =
            |i: f64| RigidMotion { angle: 0.3 * (1.7 * i).sin() + 0.2, translation: [3.0 + i.cos(), i.sin() - 7.0] };
        let original: Vec<RigidMotion> = (0..9).map(|i| of(i as f64)).collect();
        let mut motions = original.clone();
        RigidMotion::centre(&mut motions);
        let mean = motions.iter().fold([0.0; 3], |sum, m| {
            let [x, y] = m.back(m.translation);
            [sum[0] + m.angle, sum[1] + x, sum[2] + y]
        });
        assert!(mean.iter().all(|m| m.abs() < 1e-12), "{mean:?}");
        // The map from the object in one motion state to the object in another must not change.
        let moved = |m: &RigidMotion, p: [f64; 2]| {
            let [x, y] = m.turned(p);
            [x + m.translation[0], y + m.translation[1]]
        };
        let at_rest = |m: &RigidMotion, q: [f64; 2]| m.back([q[0] - m.translation[0], q[1] - m.translation[1]]);
        for i in 1..9 {
            let positions = [&original, &motions].map(|all| moved(&all[0], at_rest(&all[i], [4.0, -2.5])));
            assert!((0..2).all(|a| (positions[0][a] - positions[1][a]).abs() < 1e-12), "{i}: {positions:?}");
        }
    }
}
