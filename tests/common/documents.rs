//! Code blocks of README and docs, for the tests that run them.

use super::root;
use std::path::Path;

/// A fenced block of a document.
pub struct Block {
    /// The document and the line of the fence, for messages.
    pub place: String,
    /// Language: the word after the fence.
    pub language: String,
    pub lines: Vec<String>,
}

impl Block {
    /// Returns the first line that is not empty.
    pub fn first_line(&self) -> &str {
        self.lines.iter().map(|line| line.trim()).find(|line| !line.is_empty()).unwrap_or_default()
    }

    pub fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// Returns the names of all documents with blocks that a reader may run. The pages of docs/benchmarks are written by
/// benches/run.py and benches/gpu.py.
pub fn documents() -> Vec<String> {
    let mut names = vec!["README.md".to_owned(), "CONTRIBUTING.md".to_owned()];
    for entry in std::fs::read_dir(root().join("docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if Path::new(&name).extension().is_some_and(|e| e == "md") {
            names.push(format!("docs/{name}"));
        }
    }
    names.sort();
    names
}

/// Returns the blocks of a document in order. An indented block without a fence has no language, so no test could run
/// it: it is an error.
pub fn blocks(document: &str) -> Vec<Block> {
    let text = std::fs::read_to_string(root().join(document)).unwrap();
    let mut blocks: Vec<Block> = Vec::new();
    let (mut fence, mut before) = (None, "");
    for (i, line) in text.lines().enumerate() {
        let place = format!("{document}:{}", i + 1);
        let indent = line.len() - line.trim_start().len();
        match (fence, line.trim_start().strip_prefix("```")) {
            (None, Some(language)) => {
                assert!(!language.trim().is_empty(), "{place}: name the language of the block behind its fence");
                blocks.push(Block { place, language: language.trim().to_owned(), lines: Vec::new() });
                fence = Some(indent);
            }
            (Some(_), Some(_)) => fence = None,
            (Some(indent), None) => {
                let line = if line.len() >= indent { &line[indent..] } else { line };
                blocks.last_mut().unwrap().lines.push(line.to_owned());
            }
            (None, None) => {
                let is_block = line.starts_with("    ") && before.trim().is_empty();
                assert!(!is_block, "{place}: fence this block, and name its language: {line}");
            }
        }
        before = line;
    }
    assert!(fence.is_none(), "{document}: the last fence is not closed");
    blocks
}

/// Returns the blocks in one language of a document.
pub fn blocks_in(document: &str, language: &str) -> Vec<Block> {
    blocks(document).into_iter().filter(|block| block.language == language).collect()
}
