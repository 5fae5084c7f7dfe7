//! Options that select scans or images of a file by their counters.

use clap::Args;
use recon::bail;
use recon::Result;
use recon_files::ScanIndex;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Selection of parts of a file by the counters of ISMRMRD, or by the dimensions of BART's arrays.
#[derive(Args, Clone, Default)]
pub struct SelectionArgs {
    /// Use only these slices: numbers and ranges such as 0,3-5 [default: all]
    #[arg(long, value_name = "LIST", help_heading = "Input")]
    slice: Option<NumberList>,

    /// Use only these repetitions, or time frames [default: all]
    #[arg(long, value_name = "LIST", help_heading = "Input")]
    repetition: Option<NumberList>,

    /// Use only these contrasts, or echoes [default: all]
    #[arg(long, value_name = "LIST", help_heading = "Input")]
    contrast: Option<NumberList>,

    /// Use only these phases of the heart or of breathing [default: all]
    #[arg(long, value_name = "LIST", help_heading = "Input")]
    cardiac_phase: Option<NumberList>,

    /// Use only these sets, such as velocity encodings [default: all]
    #[arg(long, value_name = "LIST", help_heading = "Input")]
    set: Option<NumberList>,
}

/// A counter that an option selects.
struct SelectedCounter<'a> {
    option: &'static str,
    plural: &'static str,
    list: &'a Option<NumberList>,
    value: fn(&ScanIndex) -> u16,
}

impl SelectionArgs {
    fn counters(&self) -> [SelectedCounter<'_>; 5] {
        let counter = |option, plural, list, value| SelectedCounter { option, plural, list, value };
        [
            counter("--slice", "slices", &self.slice, |i| i.slice),
            counter("--repetition", "repetitions", &self.repetition, |i| i.repetition),
            counter("--contrast", "contrasts", &self.contrast, |i| i.contrast),
            counter("--cardiac-phase", "cardiac phases", &self.cardiac_phase, |i| i.phase),
            counter("--set", "sets", &self.set, |i| i.set),
        ]
    }

    /// Keeps the items that the options select.
    ///
    /// # Errors
    /// `InvalidArgument`, with the numbers in the file, if it does not have a number of a list, or no selected item.
    pub fn select<T>(&self, items: Vec<T>, index: impl Fn(&T) -> ScanIndex) -> Result<Vec<T>> {
        for SelectedCounter { option, plural, list, value } in self.counters() {
            let Some(list) = list else { continue };
            let present: BTreeSet<u16> = items.iter().map(|item| value(&index(item))).collect();
            if let Some(missing) = list.ends().find(|number| !present.contains(number)) {
                bail!(
                    InvalidArgument,
                    "{option}: there is no such number, {missing}: the file has {plural} {}",
                    list_numbers(&present)
                );
            }
        }
        let selects = |index: &ScanIndex| {
            let includes = |c: &SelectedCounter| c.list.as_ref().is_none_or(|list| list.contains((c.value)(index)));
            self.counters().iter().all(includes)
        };
        let indices: Vec<ScanIndex> = items.iter().map(&index).collect();
        let selected: Vec<T> = items.into_iter().filter(|item| selects(&index(item))).collect();
        if selected.is_empty() {
            let numbers = |c: &SelectedCounter| {
                format!("{} {}", c.plural, list_numbers(&indices.iter().map(|index| (c.value)(index)).collect()))
            };
            let all: Vec<String> = self.counters().iter().map(numbers).collect();
            bail!(
                InvalidArgument,
                "the options select numbers that the file does not have together; it has {}",
                all.join("; ")
            );
        }
        Ok(selected)
    }
}

/// Lists numbers for a message.
fn list_numbers(numbers: &BTreeSet<u16>) -> String {
    match (numbers.len(), numbers.first(), numbers.last()) {
        (13.., Some(first), Some(last)) => format!("{first} to {last} ({} of them)", numbers.len()),
        _ => numbers.iter().map(|n| n.to_string()).collect::<Vec<_>>().join(", "),
    }
}

/// Numbers and ranges of numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberList(Vec<RangeInclusive<u16>>);

impl NumberList {
    fn contains(&self, number: u16) -> bool {
        self.0.iter().any(|range| range.contains(&number))
    }

    /// Returns the numbers, and both ends of each range.
    fn ends(&self) -> impl Iterator<Item = u16> + '_ {
        self.0.iter().flat_map(|range| [*range.start(), *range.end()])
    }
}

impl FromStr for NumberList {
    type Err = String;
    fn from_str(text: &str) -> std::result::Result<NumberList, String> {
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            (first <= last).then_some(first..=last)
        };
        let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
        ranges.map(NumberList).ok_or_else(|| {
            "numbers from 0 to 65535 and ascending ranges, separated by commas, are expected, such as 0,3-5".into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_numbers() {
        let parse = |text: &str| text.parse::<NumberList>();
        let list = parse("0, 3-5").unwrap();
        let found: Vec<u16> = (0..10).filter(|&n| list.contains(n)).collect();
        assert_eq!(found, [0, 3, 4, 5]);
        assert_eq!(parse("65535").unwrap(), NumberList(vec![65535..=65535]));
        for text in ["", "-1", "5-3", "1,", "1-", "a", "70000", "1-2-3", "1.5"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
