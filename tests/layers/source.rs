//! Files of the source, and the imports between them, read from the `use` lines and the paths in the text.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::graph::Graph;

/// Returns the folder of the project.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the files of a folder and its folders with one of these endings, as (path in the project, text).
pub fn files(folder: &Path, endings: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, endings));
        } else if path.extension().is_some_and(|e| endings.iter().any(|ending| e == *ending)) {
            let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
            found.push((name, std::fs::read_to_string(&path).unwrap()));
        }
    }
    found.sort();
    found
}

/// Returns the name of a file without folder and ending.
pub fn stem(path: &str) -> &str {
    Path::new(path).file_stem().unwrap().to_str().unwrap()
}

/// Returns the folders of these files, including the folders that contain folders only.
pub fn folders<'a>(files: impl Iterator<Item = &'a String>) -> BTreeSet<String> {
    let above =
        |file: &'a String| Path::new(file).ancestors().skip(1).map(|folder| folder.to_str().unwrap().to_owned());
    files.flat_map(above).filter(|folder| !folder.is_empty()).collect()
}

/// The Rust files of a folder.
pub struct Tree {
    /// The code of each file, without comments and tests.
    code: BTreeMap<String, String>,
    /// The file of each module: `backend::cpu` is src/backend/cpu/mod.rs, `cli` is src/cli/main.rs, and the library's
    /// own module is the empty text.
    modules: BTreeMap<String, String>,
}

impl Tree {
    /// Reads all Rust files of a folder of the project. Files and folders of tests are left out.
    pub fn read(folder: &str) -> Self {
        let files = files(&root().join(folder), &["rs"]);
        let is_test = |path: &str| Path::new(path).with_extension("").iter().any(|part| part == "tests");
        let files: Vec<_> = files.into_iter().filter(|(path, _)| !is_test(path)).collect();
        let modules = files.iter().map(|(path, _)| (module_of(path), path.clone())).collect();
        Self { code: files.into_iter().map(|(path, text)| (path, code(&text))).collect(), modules }
    }

    /// Returns the files from which each file imports. lib.rs is left out, because it only re-exports; an import of a
    /// re-exported name counts as an import from the file of that name.
    pub fn imports(&self) -> Graph {
        let library = "src/lib.rs";
        let exports: BTreeMap<String, String> = paths(self.code.get(library).map_or("", String::as_str))
            .iter()
            .filter_map(|path| Some((path.rsplit("::").next()?.to_owned(), self.module_in(path)?.to_owned())))
            .collect();
        let known = self.code.iter().filter(|(path, _)| *path != library);
        known.map(|(path, code)| (path.clone(), self.imports_of(path, code, &exports))).collect()
    }

    fn imports_of(&self, file: &str, code: &str, exports: &BTreeMap<String, String>) -> BTreeSet<String> {
        let module = module_of(file);
        let module: Vec<&str> = module.split("::").filter(|part| !part.is_empty()).collect();
        let mut found = BTreeSet::new();
        for path in paths(code) {
            let mut parts = path.split("::").peekable();
            let mut whole: Vec<&str> = match parts.next().unwrap() {
                // The program and the readers and writers of files are crates of their own.
                "crate" if matches!(module.first(), Some(&"cli" | &"files")) => vec![module[0]],
                "recon_files" => vec!["files"],
                "crate" | "recon" => Vec::new(),
                "super" => {
                    let up = 1 + std::iter::from_fn(|| parts.next_if_eq(&"super")).count();
                    module[..module.len().saturating_sub(up)].to_vec()
                }
                child => [&module[..], &[child]].concat(),
            };
            whole.extend(parts);
            let target = self.module_in(&whole.join("::")).or_else(|| exports.get(*whole.first()?).map(String::as_str));
            found.extend(target.map(|module| self.modules[module].clone()).filter(|other| other != file));
        }
        found
    }

    /// Returns the longest beginning of a path that is a module.
    fn module_in(&self, path: &str) -> Option<&str> {
        let ends = path.match_indices("::").map(|(at, _)| at).chain([path.len()]);
        ends.filter_map(|end| self.modules.get_key_value(&path[..end])).last().map(|(module, _)| module.as_str())
    }
}

/// Returns the module of a file: src/backend/cpu/mod.rs is `backend::cpu`, src/cli/main.rs is `cli`.
fn module_of(path: &str) -> String {
    let path = path.strip_prefix("src/").unwrap_or(path).trim_end_matches(".rs");
    let parts = path.split('/').filter(|part| !["mod", "main", "lib"].contains(part));
    parts.collect::<Vec<_>>().join("::")
}

/// Removes comments and the test module, which is last in a file.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    text.lines().map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>().join("\n")
}

/// Returns all paths that begin with `crate` or `super` (in other crates also `recon` and `recon_files`), or with a
/// module that is declared in the text. Paths of `use` trees are written out.
fn paths(code: &str) -> Vec<String> {
    let declared = code.lines().filter_map(|line| {
        let line = line.trim();
        let (visibility, name) = line.strip_suffix(';')?.rsplit_once("mod ")?;
        (visibility.is_empty() || visibility.starts_with("pub")).then(|| format!("{name}::"))
    });
    let roots: Vec<String> =
        ["crate::", "super::", "recon::", "recon_files::"].map(String::from).into_iter().chain(declared).collect();
    let mut found = Vec::new();
    for root in &roots {
        for (at, _) in code.match_indices(root.as_str()) {
            let previous = code[..at].chars().next_back();
            if !previous.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '$')) {
                expand("", &code[at..], &mut found);
            }
        }
    }
    found
}

/// Adds the paths that begin here, after `prefix`; returns the rest of the text.
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
                // Skips `as name`, and text that is not a path.
                rest = after.trim_start_matches(|c: char| !matches!(c, ',' | '}' | ';'));
            }
        }
    }
}

#[test]
fn paths_are_read_as_the_compiler_does() {
    let text = "pub(crate) mod inner;\nuse crate::base::{error::{bail, Result}, real as r};\n\
                fn f() { super::g::<crate::x::Y>(); inner::h() } // crate::no\n";
    let mut found = paths(&code(text));
    found.sort();
    let expected = [
        "crate::base::error::Result",
        "crate::base::error::bail",
        "crate::base::real",
        "crate::x::Y",
        "inner::h",
        "super::g",
    ];
    assert_eq!(found, expected);
    assert_eq!(module_of("src/backend/cpu/mod.rs"), "backend::cpu");
    assert_eq!(module_of("src/cli/main.rs"), "cli");
}

#[test]
fn imports_of_all_kinds_are_found() {
    let files = [
        ("src/lib.rs", "mod base;\npub use base::error::Error;"),
        ("src/base/error.rs", ""),
        ("src/base/mod.rs", "mod error;\npub use error::Error;"),
        ("src/plan.rs", "use crate::Error;"),
        ("src/cli/main.rs", "mod commands;\nfn main() { commands::run() }"),
        ("src/cli/commands/mod.rs", "pub mod cg;"),
        ("src/cli/commands/cg.rs", "use crate::commands;\nuse recon::base::X;\nuse super::super::help;"),
    ];
    let code = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
    let modules = files.map(|(path, _)| (module_of(path), path.to_owned()));
    let imports = Tree { code: code.into(), modules: modules.into() }.imports();
    let of = |file: &str| imports[file].iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(of("src/base/mod.rs"), ["src/base/error.rs"]);
    assert_eq!(of("src/plan.rs"), ["src/base/error.rs"]);
    assert_eq!(of("src/cli/main.rs"), ["src/cli/commands/mod.rs"]);
    assert_eq!(of("src/cli/commands/cg.rs"), ["src/base/mod.rs", "src/cli/commands/mod.rs", "src/cli/main.rs"]);
    assert!(!imports.contains_key("src/lib.rs"));
}
