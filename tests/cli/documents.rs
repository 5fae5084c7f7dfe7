//! Runs the commands in README and docs in their order, each document in an empty folder.

use crate::bart::has_bart;
use crate::common::documents::{blocks, documents, Block};
use crate::common::say;
use crate::{with_lock, ProgramOutput, TempDir};
use std::process::Command;

/// Other commands of shell blocks, by their first words, and the place where they are run.
const ELSEWHERE: [(&str, &str); 24] = [
    ("make demo", "by hand: it builds the release profile; its commands run in the tests of the program"),
    ("make test", "this test is part of it"),
    ("make matlab", "tests/matlab/octave.rs builds the MEX file by the same function, recon.build"),
    ("make bench", "by hand, as it measures; benches/test_benches.py in make check"),
    ("make && sudo make install", "tests/install.rs, without root"),
    ("make && make install PREFIX=", "tests/install.rs"),
    ("make install PREFIX=", "tests/install.rs"),
    ("cargo build --release", "make demo; tests build the same packages in their own profile"),
    ("RECON_UPDATE_HEADER=1 cargo test", "tests/header.rs, without the variable"),
    ("cc scan.c $(pkg-config", "tests/install.rs"),
    ("cc -static scan.c $(pkg-config", "tests/install.rs"),
    ("cmake -S gadgetron", "tests/gadgetron/server.rs, where Gadgetron is installed"),
    ("cmake --build build", "tests/gadgetron/server.rs, where Gadgetron is installed"),
    ("cmake --install build", "tests/gadgetron/server.rs, where Gadgetron is installed"),
    ("ismrmrd_hdf5_to_stream", "tests/gadgetron/server.rs, where Gadgetron is installed"),
    ("ismrmrd_stream_to_hdf5", "tests/gadgetron/server.rs, where Gadgetron is installed"),
    ("gadgetron --disable_storage 1", "tests/gadgetron/server.rs, where Gadgetron is installed"),
    ("gadgetron_ismrmrd_client", "tests/gadgetron/server.rs, where Gadgetron is installed"),
    ("until grep -q 'Running on port'", "by hand, with Gadgetron's server"),
    ("timeout 600 gadgetron_ismrmrd_client", "tests/gadgetron/server.rs, where Gadgetron is installed"),
    ("export GADGETRON_REMOTE_WORKER_COMMAND=", "tests/gadgetron/server.rs, where Gadgetron is installed"),
    ("recon grid flow.h5 --phase-difference", "tests/cli/velocity.rs, which writes such files"),
    ("recon cg flow.h5 --phase-difference", "tests/cli/velocity.rs, which writes such files"),
    ("python3 - <<'END'\nimport librecon\n", "python/tests/test_documents.py, by make test-python-quick"),
];

/// Languages of blocks that are not commands, and the place where they are run.
const OTHER_LANGUAGES: [(&str, &str); 7] = [
    ("matlab", "tests/matlab/octave.rs"),
    ("c", "tests/header.rs"),
    ("cpp", "tests/header.rs"),
    ("rust", "the example at the head of src/lib.rs, by cargo test --doc"),
    ("cmake", "tests/install.rs"),
    ("text", "nothing: formulas, output and drawings"),
    ("xml", "tests/gadgetron/server.rs, where Gadgetron is installed"),
];

/// Expected warnings of examples: part of the command and part of the warning.
const WARNINGS: [(&str, &str); 4] = [
    ("scan.h5 --compress 8", "whiten the data"),
    ("scan.h5", "trajectory from the header"),
    ("-o stack.dcm", "each slice and repetition is in a separate file"),
    ("-o stack.dcm", "the position in the patient is unknown"),
];

/// A command and its output in the document.
struct DocumentedCommand {
    place: String,
    command: String,
    output: Vec<String>,
}

/// Returns the command without the comment at its end.
fn without_comment(line: &str) -> &str {
    let comment = line.find(" #").unwrap_or(line.len());
    if line.starts_with('#') {
        return "";
    }
    line[..comment].trim_end()
}

/// Start of the commands of this program.
const PROGRAM: &str = "recon ";
/// Start of the commands of BART, with which a document compares.
const BART: &str = "bart ";
/// Start of the command that runs a block of Python.
const PYTHON: &str = "python3 - <<'END'\n";

/// Returns whether a block has commands that this file runs.
fn is_command(block: &Block) -> bool {
    ["sh", "console", "python"].contains(&&*block.language)
}

/// Returns the commands of a block. In a console block they begin with `$ `, and other lines are output. A block of
/// Python is one command.
fn commands(block: &Block) -> Vec<DocumentedCommand> {
    let mut all: Vec<DocumentedCommand> = Vec::new();
    if block.language == "python" {
        let command = format!("{PYTHON}{}END\n", block.text());
        return vec![DocumentedCommand { place: block.place.clone(), command, output: Vec::new() }];
    }
    let mut continues = false;
    for line in &block.lines {
        let command = match block.language.as_str() {
            "console" => match line.strip_prefix("$ ") {
                Some(command) => command,
                None => {
                    all.last_mut()
                        .unwrap_or_else(|| panic!("{}: output before a command", block.place))
                        .output
                        .push(line.clone());
                    continue;
                }
            },
            _ => without_comment(line),
        };
        let (command, more) = match command.strip_suffix('\\') {
            Some(command) => (command.trim(), true),
            None => (command.trim(), false),
        };
        if continues {
            let last = all.last_mut().unwrap();
            last.command = format!("{} {command}", last.command);
        } else if !command.is_empty() {
            all.push(DocumentedCommand { place: block.place.clone(), command: command.to_owned(), output: Vec::new() });
        }
        continues = more;
    }
    all
}

/// Replaces each word that contains a digit, because numbers depend on the machine.
fn without_figures(line: &str) -> String {
    let words = line.split_whitespace().map(|w| if w.contains(|c: char| c.is_ascii_digit()) { "#" } else { w });
    words.collect::<Vec<_>>().join(" ")
}

/// Checks that the output contains the lines of the document in this order; `...` means omitted lines.
fn check_output(shown: &DocumentedCommand, printed: &str) {
    let mut lines = printed.lines().map(without_figures);
    for wanted in shown.output.iter().filter(|line| line.trim() != "...") {
        let wanted = without_figures(wanted);
        assert!(lines.any(|line| line == wanted), "{}: {:?} is not in:\n{printed}", shown.place, wanted);
    }
}

/// Returns the percent errors of the lines of `recon compare`, with the text before each.
fn percent_errors<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<(&'a str, f64)> {
    let error = |line: &'a str| {
        let (name, rest) = line.split_once("error ")?;
        Some((name, rest.split_once(" %")?.0.parse().ok()?))
    };
    lines.filter_map(error).collect()
}

/// Checks that the errors between images of BART and of recon are at most twice those of the document, and small.
fn check_errors(shown: &DocumentedCommand, printed: &str) {
    let found = percent_errors(printed.lines());
    let documented = percent_errors(shown.output.iter().map(String::as_str));
    assert!(!documented.is_empty(), "{}: no errors in the document", shown.place);
    for (name, percent) in documented {
        let (_, now) = found.iter().find(|(other, _)| *other == name).unwrap_or_else(|| panic!("{name}: {printed}"));
        assert!(*now <= 2.0 * percent + 1e-3 && percent < 6.0, "{}: {name}{now} %, not {percent} %", shown.place);
    }
}

fn run(dir: &TempDir, command: &str) -> ProgramOutput {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_recon")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(&dir.0).env("PATH", path).env_remove("RUST_LOG").env_remove("RECON_SIMD");
    let output = with_lock(|| shell.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn());
    let output = output.unwrap().wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    ProgramOutput { line: command.to_owned(), status: output.status.code(), stdout, stderr }
}

fn run_document(document: &str) {
    let dir = TempDir::new();
    let mut count = 0;
    let shown_commands: Vec<_> = blocks(document).iter().filter(|b| is_command(b)).flat_map(commands).collect();
    let uses_bart = shown_commands.iter().any(|shown| shown.command.starts_with(BART));
    if uses_bart && !has_bart() {
        return;
    }
    for shown in shown_commands {
        let command = &shown.command;
        if ELSEWHERE.iter().any(|(start, _)| command.starts_with(start)) {
            continue;
        }
        let place = &shown.place;
        if command.starts_with("recon precompile ") && run(&dir, "recon info").stdout.contains("NVRTC        none") {
            say(&format!("skipped: {command} of {document}, because there is no NVRTC here"));
            continue;
        }
        assert!(
            [PROGRAM, PYTHON, BART].iter().any(|start| command.starts_with(start)),
            "{place}: nothing runs this line, and no list says what does: {command}"
        );
        let out = run(&dir, command);
        assert_eq!(out.status, Some(0), "{place}: {out:?}");
        let meant = |line: &str| WARNINGS.iter().any(|(of, words)| command.contains(of) && line.contains(words));
        let is_ours = !command.starts_with(BART);
        let unexpected: Vec<&str> = out.stderr.lines().filter(|line| is_ours && !meant(line)).collect();
        assert!(unexpected.is_empty(), "{place}: an example that warns: {out:?}");
        check_output(&shown, &out.stdout);
        if uses_bart && command.starts_with("recon compare ") {
            check_errors(&shown, &out.stdout);
        }
        count += 1;
    }
    println!("{document}: {count} commands");
}

#[test]
fn commands_of_readme_run() {
    run_document("README.md");
}

#[test]
fn commands_of_the_page_on_the_program_run() {
    run_document("docs/program.md");
}

#[test]
fn commands_of_other_documents_run() {
    // python/tests/test_documents.py runs docs/python.md, whose package is not installed here.
    let others = ["README.md", "docs/program.md", "docs/python.md"];
    for document in documents().iter().filter(|d| !others.contains(&d.as_str())) {
        run_document(document);
    }
}

#[test]
fn every_block_has_a_language_that_something_runs() {
    for block in documents().iter().flat_map(|document| blocks(document)) {
        let known = is_command(&block) || OTHER_LANGUAGES.iter().any(|(language, _)| *language == block.language);
        assert!(known, "{}: nothing runs blocks in {}", block.place, block.language);
        assert!(!block.first_line().is_empty(), "{}: the block is empty", block.place);
    }
}
