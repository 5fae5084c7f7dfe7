//! The program `recon`: reconstructs MR images from files, simulates scans, compares images, measures speed.

mod bench;
mod cg;
mod compare;
mod defaults;
mod fhd;
mod grid;
mod info;
mod input;
mod interrupt;
mod io;
mod options;
mod output;
mod precompile;
mod progress;
mod reconstruct;
mod resize;
mod simulate;

use clap::{Parser, Subcommand};
use recon::{Error, ErrorKind};
use std::io::Write;
use std::process::ExitCode;

/// Reconstructs MR images from k-space samples taken along any trajectory
///
/// Coordinates of k-space are in cycles per voxel, [-0.5, 0.5) on each axis. Files are recognised by their endings:
/// .h5 and .mrd (ISMRMRD), .cfl (BART, with its .hdr), .nii and .nii.gz (NIfTI), .png, .npy (NumPy).
///
/// Pictures show x to the right and y upwards, as the Shepp-Logan phantom is drawn, or, where the file says how the image
/// lies in the patient, as radiologists have it: front (or head) on top, the patient's left on the right.
///
/// On any error the exit status is not zero, one line on the standard error stream says why, and no output file is
/// left behind.
#[derive(Parser)]
#[command(name = "recon", version, propagate_version = true, max_term_width = 110, subcommand_required = true)]
#[command(arg_required_else_help = true)]
struct Program {
    #[command(subcommand)]
    command: Command,

    /// Say more: -v the plans and a line an image, -vv everything (the environment variable RUST_LOG overrides)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,

    /// Say nothing but errors: no warnings (RUST_LOG or not), no progress bar
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
}

#[derive(Subcommand)]
enum Command {
    Info(info::InfoArgs),
    Simulate(Box<simulate::SimulateArgs>),
    Grid(Box<grid::GridArgs>),
    Fhd(Box<fhd::FhdArgs>),
    Cg(Box<cg::CgArgs>),
    Compare(compare::CompareArgs),
    Bench(bench::BenchArgs),
    Precompile(precompile::PrecompileArgs),
}

fn main() -> ExitCode {
    let program = match Program::try_parse() {
        Ok(program) => program,
        Err(e) => return usage(&e),
    };
    progress::start_log(program.verbose, program.quiet);
    interrupt::install();
    let result = match program.command {
        Command::Info(args) => info::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Grid(args) => grid::run(&args),
        Command::Fhd(args) => fhd::run(&args),
        Command::Cg(args) => cg::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Precompile(args) => precompile::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read the output has seen enough.
        Err(e) if output::reader_left(&e) => ExitCode::SUCCESS,
        Err(e) => {
            complain(&e);
            ExitCode::FAILURE
        }
    }
}

/// One line for an error.
fn complain(error: &Error) {
    let text = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
    let text = match error.kind() {
        ErrorKind::Internal => format!("{text} (a defect of this program: please report it)"),
        _ => text,
    };
    let _ = writeln!(std::io::stderr(), "recon: error: {text}");
}

/// Help and version go out as they are; of an error in the arguments, the line that says what is wrong.
fn usage(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind as Kind;
    match error.kind() {
        Kind::DisplayHelp | Kind::DisplayVersion => {
            let _ = error.print();
            ExitCode::SUCCESS
        }
        Kind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            ExitCode::from(2)
        }
        _ => {
            let text = error.render().to_string();
            let lines = text.lines().map(str::trim).filter(|l| !l.is_empty());
            let kept: Vec<_> =
                lines.take_while(|l| !l.starts_with("Usage:") && !l.starts_with("For more information")).collect();
            let text = kept.join(" ");
            let text = text.strip_prefix("error: ").unwrap_or(&text);
            let _ = writeln!(std::io::stderr(), "recon: error: {text} (see recon --help)");
            ExitCode::from(2)
        }
    }
}
