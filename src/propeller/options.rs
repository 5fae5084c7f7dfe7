//! What is corrected of PROPELLER blades.

/// What is done about the phase of blades.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum BladePhase {
    /// The phase of a smooth image of each blade, coil by coil, is taken from the blade (Pipe 1999). The smooth phase
    /// of the object, and of the coils, goes with it.
    #[default]
    Smooth,
    /// One phase for each blade, the same in all coils.
    Constant,
    /// Blades are as they were measured.
    None,
}

/// What is found and corrected.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PropellerOptions {
    /// Lines of a blade; 0: as many as are parallel and evenly spaced.
    pub lines: usize,
    /// The phase of blades.
    pub phase: BladePhase,
    /// Whether rotations are found and corrected.
    pub rotation: bool,
    /// Whether translations are.
    pub translation: bool,
    /// Whether blades that disagree with the others, as after motion through the plane, count less in the image.
    pub weighting: bool,
}

impl PropellerOptions {
    /// The defaults, also those of C and the program.
    pub const DEFAULT: Self =
        PropellerOptions { lines: 0, phase: BladePhase::Smooth, rotation: true, translation: true, weighting: true };

    /// Whether a phase is found along with the motion.
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
