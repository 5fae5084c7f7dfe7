//! The use of an acquisition, decided from its ISMRMRD flags. Every host asks here, so that all use the same
//! acquisitions for images, for coil maps and for whitening.

/// A purpose that acquisitions are used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AcquisitionPurpose {
    /// Samples of an image.
    Image,
    /// Samples from which coil maps are estimated.
    Calibration,
    /// Noise without signal, which whitens the coils.
    Noise,
}

/// The use of an acquisition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AcquisitionUse {
    /// Image data.
    Image,
    /// Coil calibration only, not image data.
    Calibration,
    /// Image data that is also used for coil calibration.
    ImageAndCalibration,
    /// Noise without signal.
    Noise,
    /// Not used, for this reason.
    Unused(UnusedReason),
}

/// The reason why an acquisition is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UnusedReason {
    /// A navigator.
    Navigation,
    /// Lines for the correction of phases, as in EPI.
    PhaseCorrection,
    /// Feedback for high-performance imaging.
    HpFeedback,
    /// Real-time feedback to the sequence.
    RtFeedback,
    /// A dummy scan.
    Dummy,
    /// A scan for the correction of surface coils.
    SurfaceCoilCorrection,
    /// The reference of a phase stabilisation.
    PhaseStabilisationReference,
    /// A phase stabilisation.
    PhaseStabilisation,
}

// Bits of the flags, counted from 1 as in ismrmrd.h.
const NOISE_MEASUREMENT: u32 = 19;
const PARALLEL_CALIBRATION: u32 = 20;
const PARALLEL_CALIBRATION_AND_IMAGING: u32 = 21;
const UNUSED: [(u32, UnusedReason); 8] = [
    (23, UnusedReason::Navigation),
    (24, UnusedReason::PhaseCorrection),
    (26, UnusedReason::HpFeedback),
    (27, UnusedReason::Dummy),
    (28, UnusedReason::RtFeedback),
    (29, UnusedReason::SurfaceCoilCorrection),
    (30, UnusedReason::PhaseStabilisationReference),
    (31, UnusedReason::PhaseStabilisation),
];

impl AcquisitionUse {
    /// Returns the use of an acquisition with these ISMRMRD flags.
    ///
    /// Noise comes first: a noise acquisition has no signal, so that it is nothing else. Next come the flags of data
    /// that are neither image nor calibration: phase correction lines of a calibration scan have both flags and are
    /// not used. All other flags (positions in the measurement, reversed readouts, the user's) do not matter.
    pub fn of_flags(flags: u64) -> AcquisitionUse {
        let has = |bit: u32| flags >> (bit - 1) & 1 == 1;
        if has(NOISE_MEASUREMENT) {
            AcquisitionUse::Noise
        } else if let Some((_, reason)) = UNUSED.iter().find(|(bit, _)| has(*bit)) {
            AcquisitionUse::Unused(*reason)
        } else if has(PARALLEL_CALIBRATION_AND_IMAGING) {
            AcquisitionUse::ImageAndCalibration
        } else if has(PARALLEL_CALIBRATION) {
            AcquisitionUse::Calibration
        } else {
            AcquisitionUse::Image
        }
    }

    /// Returns the purposes that the acquisition is used for; empty if it is not used.
    pub fn purposes(self) -> &'static [AcquisitionPurpose] {
        match self {
            AcquisitionUse::Image => &[AcquisitionPurpose::Image],
            AcquisitionUse::Calibration => &[AcquisitionPurpose::Calibration],
            AcquisitionUse::ImageAndCalibration => &[AcquisitionPurpose::Image, AcquisitionPurpose::Calibration],
            AcquisitionUse::Noise => &[AcquisitionPurpose::Noise],
            AcquisitionUse::Unused(_) => &[],
        }
    }

    /// Returns whether the acquisition is used for this purpose.
    pub fn has(self, purpose: AcquisitionPurpose) -> bool {
        self.purposes().contains(&purpose)
    }

    /// Returns the use in words, for reports: "image", "calibration", or the kind of data that is not used. Ends with
    /// a zero for C; see [`AcquisitionUse::name`].
    pub(crate) fn c_name(self) -> &'static str {
        match self {
            AcquisitionUse::Image => "image\0",
            AcquisitionUse::Calibration => "calibration\0",
            AcquisitionUse::ImageAndCalibration => "image and calibration\0",
            AcquisitionUse::Noise => "noise\0",
            AcquisitionUse::Unused(reason) => match reason {
                UnusedReason::Navigation => "navigation\0",
                UnusedReason::PhaseCorrection => "phase correction\0",
                UnusedReason::HpFeedback => "feedback\0",
                UnusedReason::RtFeedback => "real-time feedback\0",
                UnusedReason::Dummy => "dummy\0",
                UnusedReason::SurfaceCoilCorrection => "surface coil correction\0",
                UnusedReason::PhaseStabilisationReference => "phase stabilisation reference\0",
                UnusedReason::PhaseStabilisation => "phase stabilisation\0",
            },
        }
    }

    /// Returns the use in words, for reports: "image", "calibration", or the kind of data that is not used.
    pub fn name(self) -> &'static str {
        self.c_name().trim_end_matches('\0')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bits: &[u32]) -> AcquisitionUse {
        AcquisitionUse::of_flags(bits.iter().fold(0, |flags, bit| flags | 1 << (bit - 1)))
    }

    #[test]
    fn flags_decide_the_use() {
        let unused = |bits: &[u32]| match of(bits) {
            AcquisitionUse::Unused(reason) => reason,
            other => panic!("{bits:?} is {other:?}"),
        };
        assert_eq!(of(&[]), AcquisitionUse::Image);
        assert_eq!(of(&[20]), AcquisitionUse::Calibration);
        assert_eq!(of(&[21]), AcquisitionUse::ImageAndCalibration);
        assert_eq!(of(&[20, 21]), AcquisitionUse::ImageAndCalibration);
        assert_eq!(of(&[19]), AcquisitionUse::Noise);
        assert_eq!(of(&[19, 20, 21, 24]), AcquisitionUse::Noise);
        for (bit, reason) in UNUSED {
            assert_eq!([unused(&[bit]), unused(&[bit, 20]), unused(&[bit, 21, 22])], [reason; 3]);
            assert!(of(&[bit]).purposes().is_empty());
        }
    }

    #[test]
    fn other_flags_do_not_matter() {
        let known: Vec<u32> = UNUSED.iter().map(|u| u.0).chain([19, 20, 21]).collect();
        for bit in (1..=64).filter(|bit| !known.contains(bit)) {
            assert_eq!(of(&[bit]), AcquisitionUse::Image, "bit {bit}");
            assert_eq!(of(&[bit, 20]), AcquisitionUse::Calibration, "bit {bit}");
        }
    }

    #[test]
    fn names_differ() {
        let mut names: Vec<&str> = UNUSED.iter().map(|u| of(&[u.0]).name()).collect();
        names.extend([of(&[]), of(&[19]), of(&[20]), of(&[21])].map(AcquisitionUse::name));
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        assert!(names.iter().all(|name| !name.is_empty() && !name.contains('\0')));
    }
}
