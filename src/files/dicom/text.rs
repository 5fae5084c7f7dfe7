//! Texts and numbers of DICOM elements.

/// Returns a text from a header without the characters that DICOM does not allow, at most 64 characters.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || c == '\\' { ' ' } else { c }).take(64).collect::<String>().trim().into()
}

/// Returns a number as a decimal string, rounded to six digits after the point, so that rounding errors of single
/// precision do not appear. Numbers below 1 keep six digits.
pub fn millionths(value: f64) -> String {
    let rounded = (value * 1e6).round() / 1e6;
    decimal(if value.abs() < 1.0 && (rounded - value).abs() > 1e-6 * value.abs() { value } else { rounded })
}

/// Returns a number as DICOM's decimal string, at most 16 characters.
pub fn decimal(value: f64) -> String {
    const LENGTH: usize = 16;
    let shortest = format!("{value}");
    if shortest.len() <= LENGTH {
        return shortest;
    }
    let fixed = (1e-3..1e9).contains(&value.abs());
    let text = |digits: usize| if fixed { format!("{value:.digits$}") } else { format!("{value:.digits$e}") };
    (0..LENGTH).rev().map(text).find(|text| text.len() <= LENGTH).unwrap_or_else(|| format!("{value:.0e}"))
}
