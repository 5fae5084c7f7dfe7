//! The structure of the source: imports go down the layers and never in a circle, files and functions stay short, type
//! names are unique, and docs/ARCHITECTURE.md describes the tree as it is.
//!
//! `cargo test --test layers -- --nocapture` prints the import graph, one line per folder.

mod graph;
mod limits;
mod page;
mod source;

use std::collections::BTreeSet;

use graph::Graph;
use source::{root, Tree};

/// The folders of src (and plan.rs) from the lowest layer to the highest. Folders of one row may not import from each
/// other. c_api is src/files/c_api, through which the MEX file uses the readers: it is above the library's C API.
const LAYERS: [&[&str]; 10] = [
    &["base"],
    &["backend", "simulation"],
    &["nufft"],
    &["reconstruction"],
    &["engine"],
    &["plan"],
    &["partial_fourier", "propeller", "scan", "simulated_scan"],
    &["files"],
    &["ffi", "cli"],
    &["c_api"],
];

/// Limits for the program's folder: the longest chain of imports between its direct entries, and their number.
const CLI_LAYERS: usize = 5;
const CLI_IMPORTS: usize = 70;

/// Returns the layer of a file, or `None` if its folder is not in the table.
fn layer(file: &str) -> Option<usize> {
    let entry = entry(file);
    LAYERS.iter().position(|layer| layer.contains(&entry))
}

/// Returns the direct entry of src that contains a file, without the ending, or `c_api`.
fn entry(file: &str) -> &str {
    let path = file.strip_prefix("src/").unwrap_or(file);
    let path = if path.starts_with("files/c_api/") { &path["files/".len()..] } else { path };
    path.split('/').next().unwrap().trim_end_matches(".rs")
}

#[test]
fn modules_import_from_lower_layers() {
    let imports = Tree::read("src").imports();
    assert!(imports.len() > 60, "only {} files were found", imports.len());
    let arrows: usize = imports.values().map(BTreeSet::len).sum();
    assert!(arrows > 150, "only {arrows} imports were found");
    let mut wrong = Vec::new();
    for (file, from) in &imports {
        let Some(own) = layer(file) else {
            wrong.push(format!("{file} is not in the table of layers (tests/layers/main.rs)"));
            continue;
        };
        for other in from {
            let theirs = layer(other).unwrap_or(usize::MAX);
            if theirs > own || theirs == own && entry(file) != entry(other) {
                wrong.push(format!("{file} imports from {other}, which is not in a lower layer"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Prints the measures of each folder, and refuses circles between files or between the direct entries of a folder.
#[test]
fn no_imports_in_a_circle() {
    let imports = Tree::read("src").imports();
    let mut circles = Vec::new();
    for folder in source::folders(imports.keys()) {
        let (files, entries) = (graph::inside(&imports, &folder), graph::entries(&imports, &folder));
        let found = [graph::circles(&files), graph::circles(&entries)].concat();
        println!(
            "{folder}: {} files, {} imports between files; {} direct entries, {} imports between them, longest chain \
             {}; {} circles",
            files.len(),
            graph::arrows(&files),
            entries.len(),
            graph::arrows(&entries),
            graph::longest_chain(&entries),
            found.len()
        );
        circles.extend(found.iter().map(|circle| format!("{folder}: {circle:?}")));
    }
    assert!(circles.is_empty(), "imports in a circle:\n{}", circles.join("\n"));
}

#[test]
fn the_program_has_few_layers_and_imports() {
    let entries = graph::entries(&Tree::read("src").imports(), "src/cli");
    let (layers, imports) = (graph::longest_chain(&entries), graph::arrows(&entries));
    assert!(layers <= CLI_LAYERS, "src/cli has {layers} layers, limit {CLI_LAYERS}: {}", graph::text(&entries));
    assert!(imports <= CLI_IMPORTS, "src/cli has {imports} imports, limit {CLI_IMPORTS}: {}", graph::text(&entries));
}

/// The import graph of benches/*.py, from lines such as `import rows` and `from rows import groups`.
#[test]
fn benchmarks_do_not_import_in_a_circle() {
    let files = source::files(&root().join("benches"), &["py"]);
    let modules: BTreeSet<String> = files.iter().map(|(path, _)| source::stem(path).to_owned()).collect();
    assert!(modules.len() > 10, "only {} modules were found in benches", modules.len());
    let imported = |text: &str| -> BTreeSet<String> {
        let lines = text.lines().map(str::trim).filter(|line| line.starts_with("import ") || line.starts_with("from "));
        let words = lines.flat_map(|line| {
            let list = line.strip_prefix("import ");
            list.unwrap_or(line.split(' ').nth(1).unwrap()).split(',').map(|name| name.trim().to_owned())
        });
        words.filter(|name| modules.contains(name)).collect()
    };
    let graph: Graph = files.iter().map(|(path, text)| (source::stem(path).to_owned(), imported(text))).collect();
    assert!(graph::arrows(&graph) > 20, "only {} imports were found in benches", graph::arrows(&graph));
    let circles = graph::circles(&graph);
    assert!(circles.is_empty(), "imports in a circle in benches: {circles:?}");
}

#[test]
fn a_circle_and_the_longest_chain_are_found() {
    let graph = graph::of(&[("a/x.rs", "b.rs"), ("b.rs", "c.rs"), ("a/y.rs", "a/x.rs"), ("c.rs", "d.rs")]);
    assert_eq!(graph::circles(&graph), Vec::<BTreeSet<String>>::new());
    assert_eq!((graph::longest_chain(&graph), graph::arrows(&graph)), (5, 4));
    let entries = graph::entries(&graph, "");
    assert_eq!((graph::longest_chain(&entries), graph::arrows(&entries)), (4, 3));
    let circle = graph::of(&[("a/x.rs", "b.rs"), ("b.rs", "a/y.rs"), ("c.rs", "b.rs")]);
    assert!(graph::circles(&circle).is_empty());
    let folders = graph::circles(&graph::entries(&circle, ""));
    assert_eq!(folders, [BTreeSet::from(["a".to_owned(), "b.rs".to_owned()])]);
}
