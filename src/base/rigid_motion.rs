//! The motion of a rigid object in the plane.

/// An object is turned about voxel floor(n/2) of the image, then moved.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RigidMotion {
    /// Radians, from x to y.
    pub angle: f64,
    /// Voxels along x and y.
    pub translation: [f64; 2],
}

impl RigidMotion {
    /// A point's or a vector's coordinates along axes that turn with the object. Of k: where S of the object at rest
    /// is measured, as the object after the motion has S(back(k)) exp(-i 2 pi k.translation).
    pub fn back(&self, v: [f64; 2]) -> [f64; 2] {
        let (sin, cos) = self.angle.sin_cos();
        [cos * v[0] + sin * v[1], cos * v[1] - sin * v[0]]
    }

    /// The other way: a vector turned with the object.
    pub fn turned(&self, v: [f64; 2]) -> [f64; 2] {
        RigidMotion { angle: -self.angle, ..*self }.back(v)
    }

    /// Takes the mean of several motions from each, as if the object at rest had been elsewhere: then their angles have
    /// the mean 0, and so have their translations along axes that turn with the object.
    pub fn centre(motions: &mut [RigidMotion]) {
        let count = motions.len() as f64;
        let angle = motions.iter().map(|m| m.angle).sum::<f64>() / count;
        let mean = motions.iter().fold([0.0; 2], |sum, motion| {
            let own = motion.back(motion.translation);
            [sum[0] + own[0] / count, sum[1] + own[1] / count]
        });
        for motion in motions {
            let own = motion.turned(mean);
            motion.translation = [motion.translation[0] - own[0], motion.translation[1] - own[1]];
            motion.angle -= angle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_taken_and_differences_stay() {
        let of =
            |i: f64| RigidMotion { angle: 0.3 * (1.7 * i).sin() + 0.2, translation: [3.0 + i.cos(), i.sin() - 7.0] };
        let before: Vec<RigidMotion> = (0..9).map(|i| of(i as f64)).collect();
        let mut motions = before.clone();
        RigidMotion::centre(&mut motions);
        let mean = motions.iter().fold([0.0; 3], |sum, m| {
            let [x, y] = m.back(m.translation);
            [sum[0] + m.angle, sum[1] + x, sum[2] + y]
        });
        assert!(mean.iter().all(|m| m.abs() < 1e-12), "{mean:?}");
        // Where a point of the object is moved to, from where another motion has it, is the same.
        let place = |m: &RigidMotion, p: [f64; 2]| {
            let [x, y] = m.turned(p);
            [x + m.translation[0], y + m.translation[1]]
        };
        let undone = |m: &RigidMotion, q: [f64; 2]| m.back([q[0] - m.translation[0], q[1] - m.translation[1]]);
        for i in 1..9 {
            let both = [&before, &motions].map(|all| place(&all[0], undone(&all[i], [4.0, -2.5])));
            assert!((0..2).all(|a| (both[0][a] - both[1][a]).abs() < 1e-12), "{i}: {both:?}");
        }
    }
}
