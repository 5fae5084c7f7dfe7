//! `recon completions` and `recon manual`: what shells and `man` need, made from the definitions of the commands.

use crate::run::output::{check_outputs, print, say};
use clap_complete::{generate, Shell};
use clap_mangen::Man;
use recon::atomic_file::write_atomically;
use recon::{bail, Result};
use std::path::PathBuf;

/// Name of the manual of all pages, by which `make uninstall` recognises them.
const MANUAL: &str = "recon manual";

/// Prints the completions of commands and options for a shell
///
/// `make install` installs them for bash, zsh and fish. Without it, load them for the running shell, or write them to
/// the folder in which the shell searches completions.
#[derive(clap::Args)]
#[command(after_help = "Example: completions in the running bash:\n  source <(recon completions bash)\n\
    Example: for all later ones:\n  \
    recon completions bash > ~/.local/share/bash-completion/completions/recon")]
pub struct CompletionsArgs {
    /// Shell that completes
    #[arg(value_enum)]
    shell: Shell,
}

/// Writes manual pages for `man`, one per command
///
/// The pages are recon.1 and recon-COMMAND.1, with the texts of --help. `make install` installs them. Existing pages
/// of these names are replaced.
#[derive(clap::Args)]
#[command(after_help = "Example: pages of the program for one user, then one of them:\n  \
    recon manual -o ~/.local/share/man/man1\n  man recon-cg")]
pub struct ManualArgs {
    /// Folder of the pages, which must exist
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,
}

/// Prints the completions of `program`.
pub fn run_completions(args: &CompletionsArgs, mut program: clap::Command) -> Result<()> {
    let name = program.get_name().to_owned();
    let mut script = Vec::new();
    generate(args.shell, &mut program, name, &mut script);
    match String::from_utf8(script) {
        Ok(script) => print(&script),
        Err(e) => bail!(Internal, "the completions are not text: {e}"),
    }
}

/// Writes the pages of `program` and of its commands.
pub fn run_manual(args: &ManualArgs, program: clap::Command) -> Result<()> {
    let mut program = program.disable_help_subcommand(true);
    program.build();
    let shown = program.get_subcommands().filter(|command| !command.is_hide_set());
    let pages: Vec<(PathBuf, String)> =
        std::iter::once(&program).chain(shown).map(|command| page(args, command)).collect::<Result<_>>()?;
    let files: Vec<PathBuf> = pages.iter().map(|(path, _)| path.clone()).collect();
    check_outputs(&files, [])?;
    write_atomically(|files| {
        for (path, text) in &pages {
            if let Err(e) = std::fs::write(files.add(path)?, text) {
                bail!(IO, "{}: {e}", path.display());
            }
        }
        Ok(())
    })?;
    say(&format!("{}: {} pages", args.output.display(), pages.len()))
}

/// Returns the file and the text of the page of a command.
fn page(args: &ManualArgs, command: &clap::Command) -> Result<(PathBuf, String)> {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let mut rendered = Vec::new();
    if let Err(e) = Man::new(command.clone()).render(&mut rendered) {
        bail!(Internal, "the page {name} cannot be made: {e}");
    }
    // clap_mangen leaves the date out, and not empty: the text after it would take its place.
    let head = format!(".TH {name} 1 \"\" \"recon {}\" \"{MANUAL}\"", env!("CARGO_PKG_VERSION"));
    let rendered = String::from_utf8_lossy(&rendered);
    let lines = rendered.lines().map(|line| if line.starts_with(".TH ") { &head } else { line });
    let text = lines.collect::<Vec<_>>().join("\n") + "\n";
    Ok((args.output.join(format!("{name}.1")), text))
}
