//! Limits for files and functions of src, and unique names of types.

use std::collections::BTreeMap;

use crate::source::{self, root};

/// The maximum number of lines of a file and of a function, with their tests.
const FILE_LINES: usize = 700;
const FUNCTION_LINES: usize = 80;
/// Files that programs write.
const GENERATED: [&str; 1] = ["src/nufft/minimax_table.rs"];

fn hand_written() -> Vec<(String, String)> {
    let mut files = source::files(&root().join("src"), &["rs"]);
    files.retain(|(path, _)| !GENERATED.contains(&path.as_str()));
    files
}

#[test]
fn files_and_functions_are_short() {
    let mut long = Vec::new();
    for (path, text) in hand_written() {
        let lines = text.lines().count();
        if lines > FILE_LINES {
            long.push(format!("{path} has {lines} lines, limit {FILE_LINES}"));
        }
        for (name, line, lines) in functions(&text).into_iter().filter(|(_, _, lines)| *lines > FUNCTION_LINES) {
            long.push(format!("{path}:{line}: {name} has {lines} lines, limit {FUNCTION_LINES}"));
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

/// Returns (name, first line, number of lines) of each function. rustfmt puts the closing brace below the first letter.
fn functions(text: &str) -> Vec<(String, usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = declared(line, &["fn"]) else { continue };
        let indent = line.len() - line.trim_start().len();
        let closes = |line: &&str| **line == format!("{}}}", " ".repeat(indent));
        let header = lines[at..].iter().position(|line| line.ends_with(['{', ';', '}'])).unwrap_or(0);
        let last = &lines[at + header];
        let body = if last.ends_with('{') { lines[at..].iter().position(closes).unwrap_or(header) } else { header };
        found.push((name.to_owned(), at + 1, body + 1));
    }
    found
}

/// Returns the name that a line declares with one of these keywords.
fn declared<'a>(line: &'a str, keywords: &[&str]) -> Option<&'a str> {
    let mut words = line.trim_start().split(' ');
    let modifier =
        |word: &str| word.starts_with("pub") || ["const", "unsafe", "async", "extern", "\"C\""].contains(&word);
    let keyword = words.by_ref().find(|word| !modifier(word))?;
    let rest = keywords.contains(&keyword).then(|| words.next())??;
    let name = rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next()?;
    (!name.is_empty()).then_some(name)
}

/// A name that is defined twice says less than it could. Modules of the two backends may use the same name for the same
/// thing.
#[test]
fn type_names_are_unique() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, text) in hand_written() {
        for line in text.lines() {
            // Indented `type` lines are associated types.
            let keywords: &[&str] = &["struct", "enum", "union", "trait", "type"];
            let keywords = if line.starts_with(' ') { &keywords[..4] } else { keywords };
            if let Some(name) = declared(line, keywords) {
                places.entry(name.to_owned()).or_default().push(path.clone());
            }
        }
        for name in declared_by_macros(&text) {
            places.entry(name.to_owned()).or_default().push(path.clone());
        }
    }
    assert!(places.len() > 200, "only {} types were found", places.len());
    let twice = places.iter().filter(|(_, files)| files.len() > 1 && !siblings(files));
    let twice: Vec<String> = twice.map(|(name, files)| format!("{name}: {}", files.join(" "))).collect();
    assert!(twice.is_empty(), "{} type names are defined twice:\n{}", twice.len(), twice.join("\n"));
}

/// Returns the types that `choices!` defines, and those of `c_enum!` after "as".
fn declared_by_macros(text: &str) -> Vec<&str> {
    let capitalised = |word: &&str| word.starts_with(|c: char| c.is_ascii_uppercase());
    let choices = text.split("\nchoices!(\n").skip(1);
    let choices = choices.filter_map(|body| body.lines().find(|line| line.ends_with('{')));
    let choices = choices.filter_map(|line| line.split_whitespace().next());
    let enums = text.lines().filter(|line| line.trim_start().starts_with("pub enum recon_"));
    let enums = enums.filter_map(|line| line.strip_suffix(" {")?.split(" as ").nth(1));
    choices.chain(enums).filter(capitalised).collect()
}

/// Checks whether there is one definition in each of two backends, and nowhere else.
fn siblings(files: &[String]) -> bool {
    let in_backend = |backend: &str| files.iter().filter(|file| file.starts_with(backend)).count() == 1;
    files.len() == 2 && in_backend("src/backend/cpu/") && in_backend("src/backend/cuda/")
}

#[test]
fn functions_are_measured() {
    let text = "impl A {\n    pub(crate) const unsafe fn f<T>(\n        a: T,\n    ) -> B {\n        a\n    }\n\n    fn g();\n}\n\
                fn h() {}\npub unsafe extern \"C\" fn i() {\n    let fn_pointer = 1;\n}\n";
    let expected = [("f", 2, 5), ("g", 8, 1), ("h", 10, 1), ("i", 11, 3)];
    assert_eq!(functions(text), expected.map(|(name, line, lines)| (name.to_owned(), line, lines)));
    assert_eq!(declared("pub(super) struct Plan<T> {", &["struct"]), Some("Plan"));
    assert_eq!(declared("    structure", &["struct"]), None);
    let macros = "\nchoices!(\n    /// A kind.\n    Kind for Library {\n    Case\n    }\n);\n    pub enum recon_a \"a\" as A {\n";
    assert_eq!(declared_by_macros(macros), ["Kind", "A"]);
    assert!(siblings(&["src/backend/cpu/fft/mod.rs".to_owned(), "src/backend/cuda/fft/mod.rs".to_owned()]));
    assert!(!siblings(&["src/backend/cpu/a.rs".to_owned(), "src/backend/cpu/b.rs".to_owned()]));
}
