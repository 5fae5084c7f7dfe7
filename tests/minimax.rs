//! The table of minimax windows, compared with the program that writes it.

#[allow(dead_code)]
#[path = "../examples/windows.rs"]
mod windows;

const TABLE: &str = include_str!("../src/nufft/minimax_table.rs");

/// Compares the families of some widths, byte for byte. The whole table takes `cargo run --release --example windows`.
#[test]
fn the_table_is_what_its_program_writes() {
    let quick = |&&(width, ..): &&(usize, usize, f64, f64)| matches!(width, 2..=7 | 12);
    for &family in windows::FAMILIES.iter().filter(quick) {
        let text = windows::of_family(family);
        assert!(
            TABLE.contains(&text),
            "width {}, degree {}: run `cargo run --release --example windows`, and see why numbers differ",
            family.0,
            family.1
        );
    }
    assert!(TABLE.starts_with(&windows::header()), "run `cargo run --release --example windows`");
    assert_eq!(TABLE.matches("Family {").count(), windows::FAMILIES.len() + 1, "families, and their definition");
}
