//! Directed graphs of imports between files, or between the direct entries of a folder.

use std::collections::{BTreeMap, BTreeSet};

/// The names from which each name imports. Every name is a key.
pub type Graph = BTreeMap<String, BTreeSet<String>>;

/// Builds a graph from its arrows (importing name, imported name).
pub fn of(arrows: &[(&str, &str)]) -> Graph {
    let mut graph = Graph::new();
    for (from, to) in arrows {
        graph.entry((*to).to_owned()).or_default();
        graph.entry((*from).to_owned()).or_default().insert((*to).to_owned());
    }
    graph
}

/// Returns the part of a graph of files that is in a folder or below it.
pub fn inside(files: &Graph, folder: &str) -> Graph {
    let within = |file: &String| entry_in(file, folder).is_some();
    let part = files.iter().filter(|(file, _)| within(file));
    part.map(|(file, from)| (file.clone(), from.iter().filter(|other| within(other)).cloned().collect())).collect()
}

/// Returns the graph of the direct entries of a folder: its files, and each of its folders as one name.
pub fn entries(files: &Graph, folder: &str) -> Graph {
    let mut graph = Graph::new();
    for (file, from) in inside(files, folder) {
        let own = entry_in(&file, folder).unwrap();
        let others = from.iter().filter_map(|other| entry_in(other, folder)).filter(|other| *other != own);
        graph.entry(own.to_owned()).or_default().extend(others.map(str::to_owned));
    }
    graph
}

/// Returns the direct entry of a folder that is a file or contains it, and `None` if the file is elsewhere.
fn entry_in<'a>(file: &'a str, folder: &str) -> Option<&'a str> {
    let rest = if folder.is_empty() { file } else { file.strip_prefix(folder)?.strip_prefix('/')? };
    rest.split('/').next()
}

/// Counts the imports.
pub fn arrows(graph: &Graph) -> usize {
    graph.values().map(BTreeSet::len).sum()
}

/// Returns the sets of names that import from each other, directly or through others.
pub fn circles(graph: &Graph) -> Vec<BTreeSet<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        graph.keys().map(|name| (name, reachable(graph, name))).collect();
    let mut found: Vec<BTreeSet<String>> = Vec::new();
    for (name, others) in &reached {
        let circle: BTreeSet<String> =
            others.iter().filter(|other| reached[*other].contains(name)).map(|other| (*other).clone()).collect();
        if !circle.is_empty() && !found.contains(&circle) {
            found.push(circle);
        }
    }
    found
}

/// Returns all names that can be reached from a name by one import or more.
fn reachable<'a>(graph: &'a Graph, name: &str) -> BTreeSet<&'a String> {
    let (mut found, mut open) = (BTreeSet::new(), vec![name]);
    while let Some(name) = open.pop() {
        for other in &graph[name] {
            if found.insert(other) {
                open.push(other);
            }
        }
    }
    found
}

/// Returns the number of names in the longest chain of imports: the number of layers. The graph must have no circle;
/// if it has one, a chain ends where it would come back.
pub fn longest_chain(graph: &Graph) -> usize {
    fn chain<'a>(graph: &'a Graph, name: &'a str, lengths: &mut BTreeMap<&'a str, usize>) -> usize {
        if let Some(&length) = lengths.get(name) {
            return length;
        }
        lengths.insert(name, 0);
        let longest = graph[name].iter().map(|other| chain(graph, other, lengths)).max().unwrap_or(0);
        lengths.insert(name, longest + 1);
        longest + 1
    }
    let mut lengths = BTreeMap::new();
    graph.keys().map(|name| chain(graph, name, &mut lengths)).max().unwrap_or(0)
}

/// Writes a graph as text, one line per name.
pub fn text(graph: &Graph) -> String {
    let line = |(name, from): (&String, &BTreeSet<String>)| {
        format!("\n  {name}: {}", from.iter().cloned().collect::<Vec<_>>().join(" "))
    };
    graph.iter().map(line).collect()
}
