//! The use of an acquisition, determined by its ISMRMRD flags. Every host uses this table, so that all hosts use the
//! same acquisitions for images, coil maps and whitening.

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
    /// All uses, in their order of declaration.
    pub const ALL: [AcquisitionUse; 12] = [
        AcquisitionUse::Image,
        AcquisitionUse::Calibration,
        AcquisitionUse::ImageAndCalibration,
        AcquisitionUse::Noise,
        AcquisitionUse::Unused(UnusedReason::Navigation),
        AcquisitionUse::Unused(UnusedReason::PhaseCorrection),
        AcquisitionUse::Unused(UnusedReason::HpFeedback),
        AcquisitionUse::Unused(UnusedReason::RtFeedback),
        AcquisitionUse::Unused(UnusedReason::Dummy),
        AcquisitionUse::Unused(UnusedReason::SurfaceCoilCorrection),
        AcquisitionUse::Unused(UnusedReason::PhaseStabilisationReference),
        AcquisitionUse::Unused(UnusedReason::PhaseStabilisation),
    ];

    /// Returns the use of an acquisition with these ISMRMRD flags.
    ///
    /// Noise takes precedence: a noise acquisition contains no signal. Flags of data that are neither image nor
    /// calibration come next: a phase correction line of a calibration scan has both flags and is not used. All other
    /// flags (positions in the measurement, reversed readouts, user flags) are ignored.
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

    /// Returns whether the acquisition is used for any purpose.
    pub fn is_used(self) -> bool {
        !self.purposes().is_empty()
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

    fn use_of_bits(bits: &[u32]) -> AcquisitionUse {
        AcquisitionUse::of_flags(bits.iter().fold(0, |flags, bit| flags | 1 << (bit - 1)))
    }

    #[test]
    fn flags_decide_the_use() {
        let unused = |bits: &[u32]| match use_of_bits(bits) {
            AcquisitionUse::Unused(reason) => reason,
            other => panic!("{bits:?} is {other:?}"),
        };
        assert_eq!(use_of_bits(&[]), AcquisitionUse::Image);
        assert_eq!(use_of_bits(&[20]), AcquisitionUse::Calibration);
        assert_eq!(use_of_bits(&[21]), AcquisitionUse::ImageAndCalibration);
        assert_eq!(use_of_bits(&[20, 21]), AcquisitionUse::ImageAndCalibration);
        assert_eq!(use_of_bits(&[19]), AcquisitionUse::Noise);
        assert_eq!(use_of_bits(&[19, 20, 21, 24]), AcquisitionUse::Noise);
        for (bit, reason) in UNUSED {
            assert_eq!([unused(&[bit]), unused(&[bit, 20]), unused(&[bit, 21, 22])], [reason; 3]);
            assert!(use_of_bits(&[bit]).purposes().is_empty());
        }
    }

    #[test]
    fn other_flags_do_not_matter() {
        let used_bits: Vec<u32> = UNUSED.iter().map(|u| u.0).chain([19, 20, 21]).collect();
        for bit in (1..=64).filter(|bit| !used_bits.contains(bit)) {
            assert_eq!(use_of_bits(&[bit]), AcquisitionUse::Image, "bit {bit}");
            assert_eq!(use_of_bits(&[bit, 20]), AcquisitionUse::Calibration, "bit {bit}");
        }
    }

    #[test]
    fn names_differ() {
        let mut names: Vec<&str> = UNUSED.iter().map(|u| use_of_bits(&[u.0]).name()).collect();
        names.extend([&[][..], &[19], &[20], &[21]].map(use_of_bits).map(AcquisitionUse::name));
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!((names.len(), AcquisitionUse::ALL.len()), (all, all));
        assert!(AcquisitionUse::ALL.is_sorted());
        assert!(names.iter().all(|name| !name.is_empty() && !name.contains('\0')));
    }
}
