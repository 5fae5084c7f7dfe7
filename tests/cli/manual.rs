//! Completions and manual pages, and their installation.

use crate::common::say;
use crate::{with_lock, TempDir};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const COMMANDS: [&str; 11] =
    ["info", "simulate", "grid", "fbp", "propeller", "fhd", "cg", "fieldmap", "compare", "bench", "precompile"];

/// Runs a command; `None` and a line if it is not installed.
fn run(what: &str, command: &mut Command) -> Option<Output> {
    let child = with_lock(|| command.stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null()).spawn());
    match child {
        Ok(child) => Some(child.wait_with_output().unwrap()),
        Err(e) => {
            say(&format!("skipped: {what}, because {} cannot be started: {e}", command.get_program().display()));
            None
        }
    }
}

/// Returns all files below a folder, relative to it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path).into_iter().map(|file| Path::new(path.file_name().unwrap()).join(file))),
            false => found.push(path.file_name().unwrap().into()),
        }
    }
    found.sort();
    found
}

/// The reply of bash to a tab after these words.
const BASH: &str = r#"
source "$1"; shift
function=$(complete -p recon | sed 's/.*-F \([^ ]*\).*/\1/')
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
"$function" recon "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\n' "${COMPREPLY[@]}"
"#;

#[test]
fn bash_completes_commands_options_and_values() {
    let dir = TempDir::new();
    std::fs::write(dir.path("recon.bash"), dir.ok("completions bash")).unwrap();
    std::fs::write(dir.path("scan.h5"), "").unwrap();
    let complete = |words: &[&str]| -> Option<Vec<String>> {
        let mut bash = Command::new("bash");
        bash.args(["--norc", "-c", BASH, "bash", "recon.bash", "recon"]).args(words).current_dir(&dir.0);
        let out = run("completions in bash", &mut bash)?;
        assert!(out.status.success() && out.stderr.is_empty(), "{out:?}");
        Some(String::from_utf8(out.stdout).unwrap().lines().map(str::to_owned).collect())
    };
    let Some(commands) = complete(&[""]) else { return };
    for command in COMMANDS {
        assert!(commands.iter().any(|word| word == command), "{command}: {commands:?}");
        let options = complete(&[command, "--"]).unwrap();
        let help = dir.ok(&format!("{command} --help"));
        // Options are indented by 2 or 6, their texts by 10.
        let is_option =
            |line: &&str| line.starts_with("  ") && line.trim().starts_with('-') && !line.starts_with("       ");
        let names = help.split("Example").next().unwrap().lines().filter(is_option);
        let names: Vec<&str> = names.map(|line| line.split("--").nth(1).unwrap()).collect();
        assert!(names.len() > 3, "{help}");
        for option in names.iter().map(|rest| rest.split([' ', '.', ',']).next().unwrap()) {
            assert!(options.contains(&format!("--{option}")), "{command} --{option}: {options:?}");
        }
    }
    assert_eq!(complete(&["si"]).unwrap(), ["simulate"]);
    assert_eq!(complete(&["grid", "--dens"]).unwrap(), ["--density"]);
    assert_eq!(complete(&["grid", "--density", "r"]).unwrap(), ["ramp"]);
    // Without a reply, bash completes file names.
    assert_eq!(complete(&["grid", "sc"]).unwrap(), [""]);
    assert!(std::fs::read_to_string(dir.path("recon.bash")).unwrap().contains("-o default"));
    assert_eq!(complete(&["grid", "scan.h5", "-o", "sc"]).unwrap(), ["scan.h5"]);
}

#[test]
fn completions_are_valid_scripts() {
    let dir = TempDir::new();
    for (shell, check) in [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")] {
        std::fs::write(dir.path(shell), dir.ok(&format!("completions {shell}"))).unwrap();
        let what = format!("the syntax of completions for {shell}");
        if let Some(out) = run(&what, Command::new(shell).args([check, shell]).current_dir(&dir.0)) {
            assert!(out.status.success() && out.stderr.is_empty(), "{out:?}");
        }
    }
    dir.fails(2, "completions tcsh", &["tcsh", "bash"]);
    dir.fails(2, "completions", &["<SHELL>"]);
}

/// Returns the words of a text without roff's escapes and without white space. In a manual page, `\-` is a hyphen.
fn squeezed(text: &str) -> String {
    text.replace("\\-", "-").replace("\\&", "").replace("\\*(Aq", "'").chars().filter(|c| !c.is_whitespace()).collect()
}

#[test]
fn manual_pages_have_all_options_and_no_warnings() {
    let dir = TempDir::new();
    std::fs::create_dir(dir.path("man1")).unwrap();
    dir.fails(1, "manual -o missing", &["missing", "create it"]);
    dir.fails(2, "manual", &["--output"]);
    let printed = dir.ok("manual -o man1");
    let names = files(&dir.path("man1"));
    assert!(printed.contains(&format!("{} pages", names.len())), "{printed}");
    for page in &names {
        let text = std::fs::read_to_string(dir.path("man1").join(page)).unwrap();
        let head = text.lines().find(|line| line.starts_with(".TH ")).unwrap();
        let version = env!("CARGO_PKG_VERSION");
        let name = page.file_stem().unwrap().to_str().unwrap();
        assert_eq!(head, format!(".TH {name} 1 \"\" \"recon {version}\" \"recon manual\""));
        let file = format!("man1/{}", page.display());
        let mut man = Command::new("man");
        man.args(["--warnings", "-E", "UTF-8", "-l", "-Tutf8", &file]).env("MANWIDTH", "80").current_dir(&dir.0);
        // Some minimal systems replace man by a text for the user.
        if let Some(out) = run("warnings of man", &mut man) {
            assert!(out.status.success() && out.stderr.is_empty(), "{file}: {out:?}");
            assert!(out.stdout.len() > 500, "{file}: {}", String::from_utf8_lossy(&out.stdout));
        }
        if let Some(out) =
            run("mandoc", Command::new("mandoc").args(["-T", "lint", "-W", "error", &file]).current_dir(&dir.0))
        {
            assert!(out.status.success() && out.stdout.is_empty() && out.stderr.is_empty(), "{file}: {out:?}");
        }
    }
    // Every line of the help of every option is in the page of its command.
    for command in COMMANDS {
        let page = std::fs::read_to_string(dir.path(&format!("man1/recon-{command}.1"))).unwrap();
        let page = squeezed(&page);
        let help = dir.ok(&format!("{command} --help"));
        let options = help.split("Options:\n").nth(1).unwrap().split("Example").next().unwrap();
        let (mut count, mut in_values) = (0, false);
        // Headings are not indented, options by less than 10, their texts by 10.
        for line in options.lines().filter(|line| line.starts_with("          ") && !line.contains("[default:")) {
            let words = line.trim().trim_start_matches("- ");
            if words.is_empty() || words == "Possible values:" {
                continue;
            }
            in_values |= words.starts_with("[possible values:");
            // In the page, each value has its own line, and the text of a value is separate.
            let text = words.split_once(":  ").map_or(words, |(_, text)| text);
            let text = text.split_once(": ").filter(|(head, _)| !head.contains(' ')).map_or(text, |(_, text)| text);
            let texts: Vec<&str> = match in_values {
                true => words.trim_start_matches("[possible values:").trim_end_matches(']').split(',').collect(),
                false => vec![text],
            };
            in_values &= !words.ends_with(']');
            for text in texts {
                assert!(page.contains(&squeezed(text)), "{command}: the page lacks {text:?}");
                count += 1;
            }
        }
        assert!(count > 3, "{command}: {count} lines");
    }
}

/// `make install` installs the program, its pages and its completions, and `make uninstall` removes them, but not the
/// pages of others.
#[test]
fn make_installs_and_removes_the_program() {
    let dir = TempDir::new();
    let built = dir.path("built");
    std::fs::create_dir(&built).unwrap();
    for name in ["librecon.so", "librecon.a"] {
        std::fs::write(built.join(name), "").unwrap();
    }
    let make = |target: &str| -> Option<String> {
        let mut make = Command::new("make");
        make.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).args([target, "PREFIX=/opt/recon"]);
        make.arg(format!("DESTDIR={}", dir.path("stage").display())).arg(format!("BUILT={}", built.display()));
        let out = run("make install", &mut make)?;
        assert!(out.status.success(), "{out:?}");
        Some(String::from_utf8(out.stdout).unwrap())
    };
    // Only the library was built.
    let Some(printed) = make("install") else { return };
    assert!(printed.contains("not installed") && printed.contains("make program"), "{printed}");
    let prefix = dir.path("stage/opt/recon");
    assert!(!prefix.join("share").exists() && prefix.join("lib/librecon.a").exists());
    std::fs::copy(env!("CARGO_BIN_EXE_recon"), built.join("recon")).unwrap();
    make("install").unwrap();
    for name in [
        "bin/recon",
        "share/man/man1/recon.1",
        "share/man/man1/recon-cg.1",
        "share/bash-completion/completions/recon",
        "share/zsh/site-functions/_recon",
        "share/fish/vendor_completions.d/recon.fish",
    ] {
        assert!(std::fs::metadata(prefix.join(name)).unwrap().len() > 1000, "{name}");
    }
    let version = run("--version", Command::new(prefix.join("bin/recon")).arg("--version")).unwrap();
    assert!(version.stdout.starts_with(b"recon "), "{version:?}");
    std::fs::write(prefix.join("share/man/man1/recon-ng.1"), ".TH recon-ng 1 \"\" \"recon-ng\" \"\"\n").unwrap();
    make("uninstall").unwrap();
    assert_eq!(files(&dir.path("stage")), [PathBuf::from("opt/recon/share/man/man1/recon-ng.1")]);
    make("uninstall").unwrap();
}
