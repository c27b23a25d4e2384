//! Lines with labels, paragraphs and titles within the columns of the terminal.

use std::fmt::Write as _;

use crate::human::wrap;

/// Columns of text without `COLUMNS`.
pub const WIDTH: usize = 100;
/// Limits of the columns of text.
const WIDTHS: std::ops::RangeInclusive<usize> = 60..=240;
/// Columns of labels.
const LABEL: usize = 22;
/// Columns of text; the widest line.
pub fn width() -> usize {
    // Tests print what they expect on any terminal.
    let asked = if cfg!(test) { None } else { crate::environment::columns() };
    asked.unwrap_or(WIDTH).clamp(*WIDTHS.start(), *WIDTHS.end())
}

/// Writes a line with its label; a line that is too long continues in others, which have none.
pub fn field(out: &mut String, label: &str, value: &str) {
    paragraph(out, label, value);
}

/// Writes a text that may take several lines, with its label.
pub fn paragraph(out: &mut String, label: &str, value: &str) {
    for (number, line) in wrap(value, width() - LABEL, "  ").iter().enumerate() {
        let label = if number == 0 { label } else { "" };
        let _ = writeln!(out, "{}", format!("  {label:<20}{line}").trim_end());
    }
}

/// Writes a line that begins a part; a line that is too long continues in others, as with the numbers of windows that
/// lack a summary.
pub fn title(out: &mut String, text: &str) {
    let _ = writeln!(out, "\n{}", wrap(text, width(), "  ").join("\n"));
}
