//! The program `recon`, which reconstructs MR images from files, simulates scans, compares images and measures speed.

mod commands;
mod interrupt;
mod options;
mod progress;
mod remaining_time;
mod run;

use clap::{CommandFactory, Parser, Subcommand};
use commands::{
    bench, cg, coilmaps, compare, convert, density, fbp, fhd, fieldmap, forward, grid, info, manual, precompile,
    propeller, simulate, view,
};
use recon::{Error, ErrorKind};
use recon_files::formats;
use run::{output, streams};
use std::io::Write;
use std::panic;
use std::process::ExitCode;

/// Reconstructs MR images from k-space samples on any trajectory
///
/// Coordinates of k-space are in cycles per voxel, from -0.5 to 0.5 on each axis.
///
/// Pictures show x to the right and y upwards, as the Shepp-Logan phantom is usually drawn. If the file contains the
/// orientation in the patient, pictures follow the radiological convention: front (or head) on top, the patient's left
/// on the right.
///
/// Results go to the standard output, warnings and errors to the standard error stream. After an error, one line gives
/// the cause and the remedy, and no output file is written.
///
/// Exit status: 0 after success, 1 after an error, 2 if the command line is invalid, and 128 + n if signal n ended the
/// program (130: Ctrl-C).
#[derive(Parser)]
#[command(name = "recon", version, propagate_version = true, max_term_width = 110, subcommand_required = true)]
#[command(arg_required_else_help = true, after_long_help = formats::help())]
struct Program {
    #[command(subcommand)]
    command: Command,

    /// Print more on the standard error stream: -v also the plans and one line per image, -vv everything (the
    /// environment variable RUST_LOG overrides this)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,

    /// Print errors only: no warnings (with any RUST_LOG), no progress bar
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
}

#[derive(Subcommand)]
enum Command {
    Info(Box<info::InfoArgs>),
    Simulate(Box<simulate::SimulateArgs>),
    Grid(Box<grid::GridArgs>),
    Fbp(Box<fbp::FbpArgs>),
    Propeller(Box<propeller::PropellerArgs>),
    Fhd(Box<fhd::FhdArgs>),
    Cg(Box<cg::CgArgs>),
    Fieldmap(Box<fieldmap::FieldMapArgs>),
    Coilmaps(Box<coilmaps::CoilMapsArgs>),
    Density(Box<density::DensityFileArgs>),
    Forward(Box<forward::ForwardArgs>),
    Compare(compare::CompareArgs),
    View(view::ViewArgs),
    Convert(Box<convert::ConvertArgs>),
    Bench(bench::BenchArgs),
    Precompile(precompile::PrecompileArgs),
    Completions(manual::CompletionsArgs),
    Manual(manual::ManualArgs),
}

/// Smallest size of arrays that come from the system, in bytes. Smaller arrays come from the heap, which keeps its
/// pages.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MMAP_THRESHOLD: i32 = 32 << 20;

/// Makes the heap keep freed pages. The arrays of one slice have the same size as those of the next, and new pages
/// would take 6 % of the time of a small image. The library must not do this in a host's process.
fn keep_freed_pages() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: no other thread runs yet. A refusal leaves the thresholds as they are.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 2 * MMAP_THRESHOLD);
    }
}

fn main() -> ExitCode {
    let program = match Program::try_parse() {
        Ok(program) => program,
        Err(e) => return report_usage(&e),
    };
    keep_freed_pages();
    panic::set_hook(Box::new(report_panic));
    progress::start_log(program.verbose, program.quiet);
    interrupt::install();
    let _folder = streams::FolderGuard;
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
        Command::View(args) => view::run(&args),
        Command::Coilmaps(args) => coilmaps::run(&args),
        Command::Density(args) => density::run(&args),
        Command::Forward(args) => forward::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Precompile(args) => precompile::run(&args),
        Command::Completions(args) => manual::run_completions(&args, Program::command()),
        Command::Manual(args) => manual::run_manual(&args, Program::command()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // A reader that closes the output early, such as `head`, is not an error.
        Err(e) if output::is_closed_by_reader(&e) => ExitCode::SUCCESS,
        // Part of a file is not a result.
        Err(e) if streams::is_closed_early(&e) => ExitCode::FAILURE,
        Err(e) => {
            report_error(&e);
            ExitCode::FAILURE
        }
    }
}

/// Prints one line for an error.
fn report_error(error: &Error) {
    let defect = if error.kind() == ErrorKind::Internal { DEFECT } else { "" };
    print_error(&format!("{}{defect}", error.message()));
}

fn print_error(text: &str) {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // Without an error stream only the exit status reports the error.
    let _ = writeln!(std::io::stderr(), "recon: error: {line}");
}

const DEFECT: &str = " (a defect of this program: please report it)";

/// Prints one line for a panic.
fn report_panic(panic: &panic::PanicHookInfo) {
    let text = panic.payload().downcast_ref::<&str>().copied();
    let text = text.or(panic.payload().downcast_ref::<String>().map(|s| &**s)).unwrap_or("no message");
    let place = panic.location().map_or(String::new(), |place| format!(" at {place}"));
    print_error(&format!("{text}{place}{DEFECT}"));
}

/// Prints help and version unchanged, and one line for an error in the arguments. Returns the exit status.
fn report_usage(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind as Kind;
    match error.kind() {
        Kind::DisplayHelp | Kind::DisplayVersion => match error.print().and_then(|()| std::io::stdout().flush()) {
            Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
                print_error(&format!("the standard output cannot be written: {e}"));
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
            let is_hint = |l: &&str| l.starts_with("Usage:") || l.starts_with("For more information");
            let text = lines.take_while(|l| !is_hint(l)).collect::<Vec<_>>().join(" ");
            let text = text.strip_prefix("error: ").unwrap_or(&text);
            print_error(&format!("{text} (see recon --help)"));
            ExitCode::from(2)
        }
    }
}
