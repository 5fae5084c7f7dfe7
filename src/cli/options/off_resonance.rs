//! Options for off-resonance and decay.

use clap::Args;
use recon::bail;
use recon::Result;
use recon_files::FileUse;
use std::path::PathBuf;

/// Options for the times of samples.
#[derive(Args, Clone, Copy, Default)]
pub struct TimeArgs {
    /// Time between the samples of a shot in microseconds. If a file is read, it overrides the sample time of the file
    #[arg(long, value_name = "US", allow_negative_numbers = true, help_heading = "Off-resonance")]
    pub dwell: Option<f64>,

    /// Time from the moment that the image shows (excitation or echo) to the first sample of each shot, in
    /// milliseconds; negative if that moment is later [default: 0]
    #[arg(long, value_name = "MS", allow_negative_numbers = true, help_heading = "Off-resonance")]
    pub readout_start: Option<f64>,
}

impl TimeArgs {
    /// Checks that the times are valid.
    pub fn check(&self) -> Result<()> {
        if let Some(dwell) = self.dwell.filter(|dwell| !(*dwell > 0.0 && dwell.is_finite())) {
            bail!(InvalidArgument, "--dwell is {dwell}: it must be above 0, in microseconds");
        }
        if let Some(start) = self.readout_start.filter(|start| !start.is_finite()) {
            bail!(InvalidArgument, "--readout-start is {start}: it must be a number of milliseconds");
        }
        Ok(())
    }

    /// Returns the time of the first sample of each shot in seconds.
    pub fn start(&self) -> f64 {
        1e-3 * self.readout_start.unwrap_or(0.0)
    }

    /// Returns the time between samples in seconds; `None` without --dwell.
    pub fn dwell(&self) -> Option<f64> {
        self.dwell.map(|us| 1e-6 * us)
    }
}

const FIELD_MAP: &str =
    "Map of off-resonance in Hz on the encoded matrix, which corrects blurring and distortion. One \
                         map for all scans, one per slice or one per scan";

/// Options for maps of off-resonance and decay.
#[derive(Args, Default)]
pub struct OffResonanceArgs {
    #[arg(long, value_name = "FILE", help = FileUse::ReadImages.help(FIELD_MAP), help_heading = "Off-resonance")]
    pub field_map: Option<PathBuf>,

    /// Map of decay rates R2* in 1/s, non-negative, in the same form as --field-map
    #[arg(long, value_name = "FILE", help_heading = "Off-resonance")]
    pub decay_map: Option<PathBuf>,

    #[command(flatten)]
    pub times: TimeArgs,
}

impl OffResonanceArgs {
    /// Returns the files that are read.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.field_map.iter().chain(&self.decay_map)
    }

    /// Checks the options before a file is read.
    pub fn check(&self) -> Result<()> {
        self.times.check()?;
        if self.files().next().is_some() {
            return Ok(());
        }
        let times = [("--dwell", self.times.dwell.is_some()), ("--readout-start", self.times.readout_start.is_some())];
        if let Some((option, _)) = times.into_iter().find(|(_, is_given)| *is_given) {
            bail!(InvalidArgument, "{option} goes with a map: give --field-map or --decay-map, or leave it out");
        }
        Ok(())
    }
}
