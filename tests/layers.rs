//! The layers of src: a module imports only from its own layer and those below it, and no two modules import one
//! another, directly or in a circle. Read from the `use` lines and the paths in the text; test modules may import from
//! anywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The layers from the lowest to the highest, by folders or files of src. Modules of different folders in one layer must
/// not import from one another.
const LAYERS: [&[&str]; 8] = [
    &["base"],
    &["backend", "simulation"],
    &["nufft"],
    &["reconstruction"],
    &["engine"],
    &["plan"],
    &["propeller", "simulated_scan"],
    &["ffi", "cli"],
];

/// The layer of a module, by the first part of its path.
fn layer(module: &str) -> Option<usize> {
    let first = module.split("::").next().unwrap();
    LAYERS.iter().position(|layer| layer.contains(&first))
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// `src/backend/cpu/mod.rs` is `backend::cpu`, `src/cli/io/cfl.rs` is `cli::io::cfl`.
fn module_of(path: &Path) -> String {
    let path = path.with_extension("");
    let parts: Vec<&str> = path.iter().map(|part| part.to_str().unwrap()).filter(|&part| part != "mod").collect();
    parts.join("::")
}

/// Source without comments and without its test module, which is the last thing in a file.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    text.lines().map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>().join("\n")
}

/// All paths that begin with `crate` or `super` (or, in the program, `recon`), or with a module that is declared here,
/// those of `use` trees written out.
fn paths(code: &str) -> Vec<String> {
    let declared = code.lines().filter_map(|line| line.trim().trim_start_matches("pub ").strip_prefix("mod "));
    let children = declared.filter_map(|line| line.strip_suffix(';')).map(|name| format!("{name}::"));
    let roots: Vec<String> = ["crate::", "super::", "recon::"].map(String::from).into_iter().chain(children).collect();
    let mut found = Vec::new();
    for root in &roots {
        for (at, _) in code.match_indices(root.as_str()) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '$')) {
                continue;
            }
            expand("", &code[at..], &mut found);
        }
    }
    found
}

/// Adds the paths that begin here, after `prefix`; returns what comes after them.
fn expand<'a>(prefix: &str, text: &'a str, found: &mut Vec<String>) -> &'a str {
    let end = text.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | ':'))).unwrap_or(text.len());
    let path = format!("{prefix}{}", &text[..end]);
    let mut rest = &text[end..];
    if !(path.ends_with("::") && rest.starts_with('{')) {
        found.push(path.trim_end_matches(':').to_owned());
        return rest;
    }
    rest = &rest[1..];
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        match rest.chars().next() {
            None | Some(';') => return rest,
            Some('}') => return &rest[1..],
            Some(_) => {
                let after = expand(&path, rest, found);
                // `as name`, or something that is no path.
                rest = after.trim_start_matches(|c: char| !matches!(c, ',' | '}' | ';'));
            }
        }
    }
}

/// Which modules each module imports from, by the names of both.
fn imports(root: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut files = Vec::new();
    rust_files(root, &mut files);
    let modules: BTreeMap<String, String> = files
        .iter()
        .map(|path| (module_of(path.strip_prefix(root).unwrap()), std::fs::read_to_string(path).unwrap()))
        .collect();
    let of = |module: &str, text: &str| -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for path in paths(&code(text)) {
            let mut parts: Vec<&str> = path.split("::").collect();
            let mut whole: Vec<&str> = Vec::new();
            match parts.remove(0) {
                // The program is a crate of its own: its `crate` is src/cli.
                "crate" if module.starts_with("cli") => whole.push("cli"),
                "super" => {
                    whole = module.split("::").collect();
                    whole.pop();
                    while parts.first() == Some(&"super") {
                        parts.remove(0);
                        whole.pop();
                    }
                }
                "crate" | "recon" => {}
                child => whole = module.split("::").chain([child]).collect(),
            }
            whole.extend(parts);
            let known = (1..=whole.len()).rev().map(|n| whole[..n].join("::")).find(|m| modules.contains_key(m));
            found.extend(known.filter(|known| known != module));
        }
        found
    };
    // lib.rs names all modules to re-export from them, and main.rs all commands.
    let roots = ["lib", "cli::main"];
    let own = |module: &String| !roots.contains(&module.as_str());
    modules.iter().filter(|(m, _)| own(m)).map(|(m, text)| (m.clone(), of(m, text))).collect()
}

#[test]
fn modules_import_from_below() {
    let imports = imports(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(imports.len() > 60, "only {} modules were found", imports.len());
    let arrows: usize = imports.values().map(BTreeSet::len).sum();
    assert!(arrows > 150, "only {arrows} imports were found");
    let mut wrong = Vec::new();
    for (module, from) in &imports {
        let Some(own) = layer(module) else {
            wrong.push(format!("{module} is in none of the layers"));
            continue;
        };
        let first = |m: &str| m.split("::").next().unwrap().to_owned();
        for other in from {
            let theirs = layer(other).unwrap_or(usize::MAX);
            if theirs > own || theirs == own && first(module) != first(other) {
                wrong.push(format!("{module} imports from {other}, which does not lie below it"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_module_imports_from_itself_in_a_circle() {
    let mut left = imports(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    // Modules that import from none of those left are in no circle.
    loop {
        let names: BTreeSet<String> = left.keys().cloned().collect();
        let before = left.len();
        left.retain(|_, from| from.iter().any(|m| names.contains(m)));
        if left.len() == before {
            break;
        }
    }
    // Nor are those that none of the rest imports from.
    loop {
        let wanted: BTreeSet<String> = left.values().flatten().cloned().collect();
        let before = left.len();
        left.retain(|module, _| wanted.contains(module));
        if left.len() == before {
            break;
        }
    }
    assert!(left.is_empty(), "a circle among {:?}", left.keys().collect::<Vec<_>>());
}

#[test]
fn paths_are_read_as_the_compiler_does() {
    let text =
        "use crate::base::{error::{bail, Result}, real as r};\nfn f() { super::g::<crate::x::Y>() } // crate::no\n";
    let mut found = paths(&code(text));
    found.sort();
    assert_eq!(
        found,
        ["crate::base::error::Result", "crate::base::error::bail", "crate::base::real", "crate::x::Y", "super::g"]
    );
    assert_eq!(module_of(Path::new("backend/cpu/mod.rs")), "backend::cpu");
    assert_eq!(layer("plan"), Some(5));
}

/// The text of every function of this name in a file: from its `fn` line to the line that closes it.
fn bodies(text: &str, name: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let starts = |line: &str| {
        line.match_indices(name).any(|(at, _)| {
            let after = line[at + name.len()..].chars().next();
            let before = line[..at].trim_end();
            (before.ends_with("fn") || before.ends_with("void")) && matches!(after, Some('(' | '<'))
        }) || line.starts_with(&format!("{name}("))
    };
    let mut found = Vec::new();
    for (first, line) in lines.iter().enumerate().filter(|(_, line)| starts(line)) {
        let indent = line.len() - line.trim_start().len();
        let closes =
            |line: &&str| line.starts_with('}') && indent == 0 || **line == format!("{}}}", " ".repeat(indent));
        let end = lines[first..].iter().position(closes).map_or(lines.len(), |n| first + n);
        found.push(lines[first..end].join("\n"));
    }
    found
}

/// Every row `| file | function |` of docs/ARCHITECTURE.md names a function that is there, and that the row above
/// calls.
#[test]
fn walks_in_the_documentation_are_those_of_the_source() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/ARCHITECTURE.md")).unwrap();
    let word = |text: &str, name: &str| {
        text.match_indices(name).any(|(at, _)| {
            let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
            !part(text[..at].chars().next_back()) && !part(text[at + name.len()..].chars().next())
        })
    };
    let (mut rows, mut above): (usize, Option<(String, Vec<String>)>) = (0, None);
    for line in page.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let (Some(&file), Some(function)) = (cells.get(1), cells.get(2)) else {
            above = None;
            continue;
        };
        let name = function.trim_matches('`');
        if !(file.ends_with(".rs") || file.ends_with(".cu")) || name == *function {
            continue;
        }
        let text = std::fs::read_to_string(root.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        let own = bodies(&text, name);
        assert!(!own.is_empty(), "{file} has no function {name}");
        if let Some((caller, texts)) = above {
            assert!(texts.iter().any(|text| word(text, name)), "{caller} does not call {name} of {file}");
        }
        above = Some((format!("{name} of {file}"), own));
        rows += 1;
    }
    assert!(rows >= 15, "only {rows} rows were found");
    // Files that the page names elsewhere.
    for file in page.split(|c: char| c.is_whitespace() || "|`,;:()".contains(c)) {
        let file = file.trim_end_matches('.');
        if ["src/", "tests/", "kernels/", "docs/"].iter().any(|folder| file.starts_with(folder)) {
            assert!(root.join(file).exists(), "docs/ARCHITECTURE.md names {file}, which is not there");
        }
    }
}
