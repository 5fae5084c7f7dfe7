//! Options for raw data that stay as they are: neither whitened nor compressed.

use super::{AcquisitionArgs, InputArgs, MatrixChoice, WhiteningChoice};
use clap::Args;
use std::path::{Path, PathBuf};

/// Options that select and interpret the raw data of a file.
#[derive(Args)]
pub struct RawDataArgs {
    /// Group of the HDF5 file that contains the raw data
    #[arg(long, value_name = "NAME", default_value = "dataset", help_heading = "Input")]
    pub group: String,

    /// Use only this slice [default: all]
    #[arg(long, value_name = "N", help_heading = "Input")]
    pub slice: Option<u16>,

    /// Use only this repetition [default: all]
    #[arg(long, value_name = "N", help_heading = "Input")]
    pub repetition: Option<u16>,

    #[command(flatten)]
    pub acquisitions: AcquisitionArgs,
}

impl RawDataArgs {
    /// Returns the options of an input that is read without whitening and compression. `trajectory` and `matrix` are
    /// for k-space of BART.
    pub fn input(&self, path: &Path, trajectory: Option<&PathBuf>, matrix: Option<&MatrixChoice>) -> InputArgs {
        InputArgs {
            input: path.to_owned(),
            trajectory: trajectory.cloned(),
            matrix: matrix.cloned(),
            group: self.group.clone(),
            slice: self.slice,
            repetition: self.repetition,
            every: 1,
            frame_shots: None,
            frame_step: None,
            acquisitions: self.acquisitions.clone(),
            whiten: WhiteningChoice::None,
            compress: None,
        }
    }
}
