//! Sizes and numbers as text.

use std::collections::BTreeSet;
use std::fmt::Display;

/// Formats sizes: `128 x 128 x 1`.
pub fn sizes<N: Display>(values: &[N]) -> String {
    joined(values, " x ")
}

/// Formats a list: `1, 2.5, 4`.
pub fn list<N: Display>(values: &[N]) -> String {
    joined(values, ", ")
}

fn joined<N: Display>(values: &[N], separator: &str) -> String {
    values.iter().map(|v| v.to_string()).collect::<Vec<_>>().join(separator)
}

/// Returns the smallest and the largest of some numbers; `None` without numbers.
pub fn range(values: impl Iterator<Item = usize>) -> Option<[usize; 2]> {
    values.fold(None, |range, v| Some(range.map_or([v, v], |[low, high]: [usize; 2]| [low.min(v), high.max(v)])))
}

/// Formats a range: `0 to 9`, `3`, or `none`.
pub fn span(range: Option<[usize; 2]>) -> String {
    match range {
        None => "none".into(),
        Some([low, high]) if low == high => low.to_string(),
        Some([low, high]) => format!("{low} to {high}"),
    }
}

/// Formats the number of values of a counter and their range: `3 (0 to 2)`; up to 12 values with gaps are listed:
/// `3 (0, 2, 7)`.
pub fn counted(numbers: &BTreeSet<u16>) -> String {
    let ends = range(numbers.iter().map(|&n| usize::from(n)));
    let has_gaps = ends.is_some_and(|[low, high]| high - low >= numbers.len());
    let is_short = numbers.len() <= 12;
    let text = if has_gaps && is_short { list(&numbers.iter().collect::<Vec<_>>()) } else { span(ends) };
    format!("{} ({text})", numbers.len())
}
