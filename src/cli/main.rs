//! The program `recon`: reconstructs MR images from files, simulates scans, compares images, measures speed.

mod commands;
mod defaults;
mod interrupt;
mod io;
mod options;
mod progress;
mod reader;
mod run;

use clap::{Parser, Subcommand};
use commands::{bench, cg, compare, fbp, fhd, fieldmap, grid, info, precompile, propeller, simulate};
use recon::{Error, ErrorKind};
use run::output;
use std::io::Write;
use std::panic;
use std::process::ExitCode;

/// Reconstructs MR images from k-space samples taken along any trajectory
///
/// Coordinates of k-space are in cycles per voxel, [-0.5, 0.5) on each axis. Files are recognised by their endings:
/// .h5 and .mrd (ISMRMRD), .cfl (BART, with its .hdr), .nii and .nii.gz (NIfTI), .png, .npy (NumPy).
///
/// Pictures show x to the right and y upwards, as the Shepp-Logan phantom is drawn, or, where the file says how the
/// image lies in the patient, as radiologists have it: front (or head) on top, the patient's left on the right.
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
    Fbp(Box<fbp::FbpArgs>),
    Propeller(Box<propeller::PropellerArgs>),
    Fhd(Box<fhd::FhdArgs>),
    Cg(Box<cg::CgArgs>),
    Fieldmap(Box<fieldmap::FieldMapArgs>),
    Compare(compare::CompareArgs),
    Bench(bench::BenchArgs),
    Precompile(precompile::PrecompileArgs),
    #[command(name = reader::COMMAND, hide = true)]
    Reader(reader::ReaderArgs),
}

/// Arrays of at least this size come from the system, and smaller ones from the heap, which keeps its pages.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGEST_OF_THE_HEAP: i32 = 32 << 20;

/// Lets the heap keep what is freed there. The arrays of one slice are as large as those of the next, and fresh pages
/// would take 6 % of the time of a small image. The library must not do this in a host's process.
fn keep_freed_pages() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: no other thread runs yet. A refusal leaves the thresholds as they are.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGEST_OF_THE_HEAP);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 2 * LARGEST_OF_THE_HEAP);
    }
}

fn main() -> ExitCode {
    let program = match Program::try_parse() {
        Ok(program) => program,
        Err(e) => return usage(&e),
    };
    if let Command::Reader(args) = &program.command {
        return reader::run(args);
    }
    keep_freed_pages();
    panic::set_hook(Box::new(defect));
    progress::start_log(program.verbose, program.quiet);
    interrupt::install();
    let result = match program.command {
        Command::Info(args) => info::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Grid(args) => grid::run(&args),
        Command::Fbp(args) => fbp::run(&args),
        Command::Propeller(args) => propeller::run(&args),
        Command::Fhd(args) => fhd::run(&args),
        Command::Cg(args) => cg::run(&args),
        Command::Fieldmap(args) => fieldmap::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Precompile(args) => precompile::run(&args),
        Command::Reader(args) => return reader::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of the output has closed it: no error.
        Err(e) if output::reader_left(&e) => ExitCode::SUCCESS,
        Err(e) => {
            complain(&e);
            ExitCode::FAILURE
        }
    }
}

/// One line for an error.
fn complain(error: &Error) {
    let defect = if error.kind() == ErrorKind::Internal { DEFECT } else { "" };
    complain_of(&format!("{}{defect}", error.message()));
}

fn complain_of(text: &str) {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // Without an error stream only the exit status reports the error.
    let _ = writeln!(std::io::stderr(), "recon: error: {line}");
}

const DEFECT: &str = " (a defect of this program: please report it)";

/// One line for a panic.
fn defect(panic: &panic::PanicHookInfo) {
    let text = panic.payload().downcast_ref::<&str>().copied();
    let text = text.or(panic.payload().downcast_ref::<String>().map(|s| &**s)).unwrap_or("no message");
    let place = panic.location().map_or(String::new(), |place| format!(" at {place}"));
    complain_of(&format!("{text}{place}{DEFECT}"));
}

/// Prints help and version as they are; of an error in the arguments, one line.
fn usage(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind as Kind;
    match error.kind() {
        Kind::DisplayHelp | Kind::DisplayVersion => match error.print().and_then(|()| std::io::stdout().flush()) {
            Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
                complain_of(&format!("the standard output cannot be written: {e}"));
                ExitCode::FAILURE
            }
            _ => ExitCode::SUCCESS,
        },
        Kind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // Without an error stream only the exit status reports the error.
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
            complain_of(&format!("{text} (see recon --help)"));
            ExitCode::from(2)
        }
    }
}
