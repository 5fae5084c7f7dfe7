//! Options of the motion correction.

/// Treatment of the phase of blades.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum BladePhase {
    /// Removes the phase of a smooth image of each blade, coil by coil (Pipe 1999). This also removes the smooth phase
    /// of the object and of the coils.
    #[default]
    Smooth,
    /// Removes one phase per blade, the same in all coils.
    Constant,
    /// Leaves the phase unchanged.
    None,
}

/// Options of the motion correction of PROPELLER blades.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PropellerOptions {
    /// Number of lines per blade; 0: the number of parallel, evenly spaced lines.
    pub lines: usize,
    /// Treatment of the phase of blades.
    pub phase: BladePhase,
    /// Whether rotations are estimated and corrected.
    pub rotation: bool,
    /// Whether translations are estimated and corrected.
    pub translation: bool,
    /// Whether blades that disagree with the others, such as after motion through the plane, get less weight in the
    /// image.
    pub weighting: bool,
}

impl PropellerOptions {
    /// The defaults, which are also those of C and the program.
    pub const DEFAULT: Self =
        PropellerOptions { lines: 0, phase: BladePhase::Smooth, rotation: true, translation: true, weighting: true };

    /// Returns whether a phase is estimated together with the motion.
    pub(super) fn finds_phase(&self) -> bool {
        self.phase == BladePhase::Constant
    }

    /// Returns whether any motion or phase is estimated.
    pub(super) fn finds_motion(&self) -> bool {
        self.rotation || self.translation || self.finds_phase()
    }
}

impl Default for PropellerOptions {
    fn default() -> Self {
        Self::DEFAULT
    }
}
