//! `recon precompile`.

use crate::run::output::say;
use recon::backend::cuda::{compile::precompile, usual_kernels};
use recon::Result;
use std::path::PathBuf;

/// Compiles the GPU's kernels into a folder
///
/// Plans compile the kernels they need with NVRTC and keep them in the user's cache folder. This makes such a folder
/// beforehand, for any architecture and without a GPU: give it to other machines, which need no NVRTC then, and name it
/// in the environment variable RECON_CACHE_DIR there. Unusual sizes are still compiled when they are wanted.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  recon precompile --arch sm_90 --dir kernels")]
pub struct PrecompileArgs {
    /// Architectures: sm_75, sm_80, sm_86, sm_89, sm_90, sm_100, sm_120
    #[arg(long, value_name = "ARCH", required = true, value_delimiter = ',')]
    arch: Vec<String>,

    /// The folder to fill
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
