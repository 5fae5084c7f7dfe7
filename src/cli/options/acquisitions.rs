//! Options for the interpretation of a scanner's acquisitions.

use clap::Args;
use recon::scan::AssemblyOptions;

/// How acquisitions of an ISMRMRD file become k-space.
#[derive(Args, Clone)]
pub struct AcquisitionArgs {
    /// Conjugate the samples: k-space of the file has the other sign, exp(+i 2 pi k.r), and the image would be turned
    /// by 180 degrees. Some vendors' data have this sign after conversion; `recon info` shows the vendor
    #[arg(long, help_heading = "Input")]
    conjugate: bool,
}

impl AcquisitionArgs {
    /// Returns the options of the library.
    pub fn options(&self) -> AssemblyOptions {
        AssemblyOptions { conjugate: self.conjugate, ..AssemblyOptions::default() }
    }
}
