//! `recon precompile`.

use crate::run::output::say;
use recon::backend::cuda::{compile::precompile, usual_kernels};
use recon::Result;
use std::path::PathBuf;

/// Compiles the GPU kernels into a folder
///
/// Plans compile the kernels that they need with NVRTC and store them in the user's cache folder. This command fills
/// such a folder in advance, for any architecture and without a GPU. Copy the folder to other machines, which then do
/// not need NVRTC, and set the environment variable RECON_CACHE_DIR to its path there. Kernels for unusual sizes are
/// still compiled on first use.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  recon precompile --arch sm_90 --dir kernels")]
pub struct PrecompileArgs {
    /// Architecture of the GPU: sm_75, sm_80, sm_86, sm_89, sm_90, sm_100 or sm_120; several are separated by commas
    #[arg(long, value_name = "ARCH", required = true, value_delimiter = ',')]
    arch: Vec<String>,

    /// Folder to fill; it is created if it does not exist
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
}

pub fn run(args: &PrecompileArgs) -> Result<()> {
    let kernels = usual_kernels();
    for arch in &args.arch {
        precompile(&kernels, arch, &args.dir, |done| log::info!("{arch}: {done} of {}", kernels.len()))?;
        say(&format!("{arch}: {} files in {}", kernels.len(), args.dir.display()))?;
    }
    Ok(())
}
