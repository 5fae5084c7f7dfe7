//! Options for velocity images.

use clap::{Args, ValueEnum};
use recon::bail;
use recon::Result;
use recon_files::FileUse;
use std::path::Path;

/// Options for the phase difference of velocity encodings.
#[derive(Args)]
pub struct PhaseDifferenceArgs {
    /// Write the phase differences of velocity encodings in place of images: the phase of each set (of ISMRMRD) minus
    /// the phase of the reference set, in radians, [-pi, pi). The phases of coils cancel. With cg, all sets have the
    /// coil maps of the reference set
    #[arg(long, help_heading = "Velocity", conflicts_with = "combine")]
    phase_difference: bool,

    /// Velocity in cm/s that causes a phase difference of pi; velocities in cm/s are written, in place of radians
    #[arg(long, value_name = "CM_PER_S", allow_negative_numbers = true, help_heading = "Velocity")]
    #[arg(requires = "phase_difference")]
    pub venc: Option<f64>,

    /// Set whose phase is subtracted [default: 0, if there are two sets]
    #[arg(long, value_name = "N", help_heading = "Velocity", requires = "phase_difference")]
    pub reference_set: Option<u16>,

    /// Phase of concomitant fields (Maxwell terms), from MaxwellCoefficient_0 to MaxwellCoefficient_3 of the header
    /// [default: auto]
    #[arg(long, value_enum, help_heading = "Velocity", requires = "phase_difference")]
    maxwell: Option<MaxwellChoice>,
}

/// The use of the header's coefficients of concomitant fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum MaxwellChoice {
    /// Add the phase if the header has the coefficients; a line reports what was done
    Auto,
    /// Add the phase; a header without coefficients is an error
    Header,
    /// Subtract the phase; a header without coefficients is an error
    Negated,
    /// No correction
    None,
}

impl PhaseDifferenceArgs {
    /// Returns whether phase differences are requested.
    pub fn is_enabled(&self) -> bool {
        self.phase_difference
    }

    /// Returns the use of the header's coefficients.
    pub fn maxwell(&self) -> MaxwellChoice {
        self.maxwell.unwrap_or(MaxwellChoice::Auto)
    }

    /// Checks the options and the format of the image before a file is read.
    pub fn check(&self, image: &Path) -> Result<()> {
        if !self.phase_difference {
            return Ok(());
        }
        if let Some(venc) = self.venc.filter(|venc| !venc.is_finite() || *venc <= 0.0) {
            bail!(InvalidArgument, "--venc is {venc}: it must be a positive velocity in cm/s");
        }
        FileUse::WriteSignedImages.format(image).map_err(|e| e.within("a phase difference has a sign"))?;
        Ok(())
    }
}
