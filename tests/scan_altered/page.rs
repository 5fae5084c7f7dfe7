//! The tables of docs/raw-data.md: each row of recon has a test that exists.

use crate::common::root;
use std::fs;

#[test]
fn each_row_of_the_page_names_a_test() {
    let page = fs::read_to_string(root().join("docs/raw-data.md")).unwrap();
    let mut rows = 0;
    let mut is_table = false;
    for line in page.lines() {
        is_table = line.starts_with('|') && (is_table || line.ends_with("| recon | test |"));
        if !is_table || line.ends_with("| recon | test |") || line.starts_with("| ---") {
            continue;
        }
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        assert!(cells.len() == 5 && cells.iter().all(|cell| !cell.is_empty()), "{line}");
        let (place, test) = cells[4].trim_matches('`').rsplit_once("::").unwrap_or_else(|| panic!("{line}"));
        let file = match place.strip_suffix(".rs") {
            Some(_) => place.to_owned(),
            None => format!("tests/scan_altered/{place}.rs"),
        };
        let text = fs::read_to_string(root().join(&file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        assert!(text.contains(&format!("#[test]\nfn {test}()")), "{file} has no test {test}");
        rows += 1;
    }
    assert!(rows > 40, "{rows} rows");
}
