//! docs/ARCHITECTURE.md describes the source as it is: its walks follow calls, and each row names files that exist and
//! names that are in them.

use std::path::Path;

use crate::source::{self, root};

const PAGE: &str = "docs/ARCHITECTURE.md";
/// Endings of files that the page names, and of files that are searched for names.
const ENDINGS: [&str; 12] = ["rs", "cu", "cuh", "c", "h", "cpp", "py", "m", "md", "txt", "xml", "toml"];
/// Folders that are searched for a name if its item does not name a file.
const SOURCES: [&str; 7] = ["src", "kernels", "matlab", "gadgetron", "include", "tests", "examples"];
const SEPARATORS: [char; 10] = [' ', '|', '`', ',', ';', ':', '(', ')', '[', ']'];

/// Checks whether a text has this name as a whole word.
fn contains_word(text: &str, name: &str) -> bool {
    let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(name)
        .any(|(at, _)| !part(text[..at].chars().next_back()) && !part(text[at + name.len()..].chars().next()))
}

/// Returns the text of every function of this name in a file: from its `fn` line to the line that closes it.
fn bodies(text: &str, name: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let starts = |line: &str| {
        line.match_indices(name).any(|(at, _)| {
            let after = line[at + name.len()..].chars().next();
            let is_rust = line[..at].trim_end().ends_with("fn") && matches!(after, Some('(' | '<'));
            // A function of C or C++ is defined in an unindented line, after its type or class.
            let is_unindented = !line.starts_with(' ') && !line.ends_with(';');
            let is_c = is_unindented && after == Some('(') && (at == 0 || line[..at].ends_with([' ', ':']));
            is_rust || is_c
        })
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

/// Every row `| file | function | ...` names a function of that file, and the function of the row above calls it.
#[test]
fn walks_are_those_of_the_source() {
    let page = std::fs::read_to_string(root().join(PAGE)).unwrap();
    let (mut rows, mut above): (usize, Option<(String, Vec<String>)>) = (0, None);
    let mut wrong = Vec::new();
    for line in page.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let walk = match cells[..] {
            ["", file, function, _, ""] if is_file(file) => unquoted(function).map(|name| (file, name)),
            _ => None,
        };
        let Some((file, name)) = walk else {
            above = None;
            continue;
        };
        let own = bodies(&std::fs::read_to_string(root().join(file)).unwrap_or_default(), name);
        if own.is_empty() {
            wrong.push(format!("{file} has no function {name}"));
        }
        if let Some((caller, texts)) = above {
            if !texts.iter().any(|text| contains_word(text, name)) {
                wrong.push(format!("{caller} does not call {name} of {file}"));
            }
        }
        above = Some((format!("{name} of {file}"), own));
        rows += 1;
    }
    assert!(wrong.is_empty(), "{PAGE}:\n{}", wrong.join("\n"));
    assert!(rows >= 15, "only {rows} rows were found");
}

/// Every file that the page names exists. Every name in backticks is in the file after it ("`name` in FILE" or "`name`
/// of FILE"). Without such a file it is in one of the files of its row, list item or paragraph, or anywhere in the
/// source if these have no file.
#[test]
fn files_and_names_of_the_page_exist() {
    let page = std::fs::read_to_string(root().join(PAGE)).unwrap();
    let everything: Vec<String> = SOURCES.iter().flat_map(|folder| texts_of(&root().join(folder))).collect();
    let (mut wrong, mut names) = (Vec::new(), 0);
    for item in items(&page) {
        let files = files_of(&item);
        let missing = files.iter().filter(|file| !root().join(file).exists());
        wrong.extend(missing.map(|file| format!("{file} does not exist")));
        for (name, rest) in quoted(&item) {
            names += 1;
            let own: Vec<&String> = match file_after(rest) {
                Some(file) => files.iter().filter(|other| *other == file).collect(),
                None => files.iter().collect(),
            };
            // The titles of sections are folders.
            let found = if root().join(name).is_dir() {
                true
            } else if has_ending(name) {
                own.iter().any(|folder| root().join(folder).join(name).exists())
            } else {
                let last = name.rsplit([':', '.']).next().unwrap();
                let texts: Vec<String> = own.iter().flat_map(|file| texts_of(&root().join(file))).collect();
                let texts = if texts.is_empty() { &everything } else { &texts };
                texts.iter().any(|text| contains_word(text, last))
            };
            if !found {
                wrong.push(format!("`{name}` is not in {own:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{PAGE}:\n{}", wrong.join("\n"));
    assert!(names > 60, "only {names} names were found");
}

/// Returns the names in backticks, each with the text after it. Commands and options are left out.
fn quoted(item: &str) -> Vec<(&str, &str)> {
    let parts: Vec<&str> = item.split('`').collect();
    let pairs = parts.windows(2).skip(1).step_by(2).map(|pair| (pair[0], pair[1]));
    pairs.filter(|(name, _)| is_identifier(name)).collect()
}

/// Returns the file of "`name` in FILE" or "`name` of FILE".
fn file_after(rest: &str) -> Option<&str> {
    let rest = rest.strip_prefix(" in ").or_else(|| rest.strip_prefix(" of "))?;
    let word = rest.split(SEPARATORS).next()?.trim_end_matches('.');
    is_file(word).then_some(word)
}

/// Splits the page into table rows, list items and paragraphs. Code blocks are left out.
fn items(page: &str) -> Vec<String> {
    let (mut items, mut fenced) = (vec![String::new()], false);
    for line in page.lines() {
        fenced ^= line.starts_with("```");
        if fenced || line.starts_with("```") {
            continue;
        }
        let text = line.trim_start();
        if text.is_empty() || text.starts_with(['|', '#']) || text.starts_with("- ") {
            items.push(String::new());
        }
        let item = items.last_mut().unwrap();
        item.push_str(text);
        item.push(' ');
    }
    items
}

/// Returns the files and folders that a text names by their paths.
fn files_of(item: &str) -> Vec<String> {
    let words =
        item.split(SEPARATORS).map(|word| word.trim_end_matches('.')).filter(|word| is_file(word) || is_folder(word));
    words.map(str::to_owned).collect()
}

fn is_file(word: &str) -> bool {
    word.contains('/') && !word.starts_with("..") && has_ending(word)
}

fn has_ending(word: &str) -> bool {
    word.rsplit_once('.').is_some_and(|(_, ending)| ENDINGS.contains(&ending))
}

fn is_folder(word: &str) -> bool {
    let top = ["src", "tests", "kernels", "docs", "matlab", "gadgetron", "examples", "benches", "include", "fuzz"];
    word.contains('/') && top.contains(&word.split('/').next().unwrap()) && !word.contains(['<', '*'])
}

/// Returns the text of a file, or the texts of all files in a folder.
fn texts_of(path: &Path) -> Vec<String> {
    if path.is_dir() {
        return source::files(path, &ENDINGS).into_iter().map(|(_, text)| text).collect();
    }
    std::fs::read_to_string(path).into_iter().collect()
}

/// Returns the name in a cell that has nothing but a name in backticks.
fn unquoted(cell: &str) -> Option<&str> {
    cell.strip_prefix('`')?.strip_suffix('`').filter(|name| is_identifier(name))
}

fn is_identifier(name: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || "_:.".contains(c);
    name.chars().all(part) && name.starts_with(char::is_alphabetic)
}

#[test]
fn rows_are_read() {
    let page =
        "# Title\n\nText with src/a.rs and\n`name`.\n\n| `f` | src/b.rs, src/c/ |\n- item\n  `g::h` of\n  docs/x.md.\n\
                ```\n| `no` |\n```\n";
    let items: Vec<String> = items(page).into_iter().filter(|item| item.contains('`')).collect();
    assert_eq!(
        items,
        [" Text with src/a.rs and `name`. ", "| `f` | src/b.rs, src/c/ | ", "- item `g::h` of docs/x.md. "]
    );
    assert_eq!(files_of(&items[1]), ["src/b.rs", "src/c/"]);
    assert_eq!(files_of(&items[2]), ["docs/x.md"]);
    assert_eq!(quoted(&items[2]), [("g::h", " of docs/x.md. ")]);
    assert_eq!(file_after(" of docs/x.md. "), Some("docs/x.md"));
    assert!(is_identifier("Plan::new") && !is_identifier("make check") && !is_identifier("--device"));
    assert!(contains_word("fn apply(", "apply") && !contains_word("apply_normal", "apply"));
}
