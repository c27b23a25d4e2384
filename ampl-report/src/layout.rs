//! Lines with labels, paragraphs and titles within the columns of a page.

use std::fmt::{self, Write as _};

use crate::human::wrap;

/// Columns of text where the terminal's are not known.
pub const WIDTH: usize = 100;
/// Limits of the columns of text.
const WIDTHS: std::ops::RangeInclusive<usize> = 60..=240;
/// Columns of labels.
const LABEL: usize = 22;

/// Columns of text for a terminal of `columns`; the widest line.
pub fn width(columns: Option<usize>) -> usize {
    columns.unwrap_or(WIDTH).clamp(*WIDTHS.start(), *WIDTHS.end())
}

/// Text of a given width that grows line by line.
#[derive(Clone, Debug)]
pub struct Page {
    text: String,
    /// Columns of text.
    pub width: usize,
}

impl Page {
    /// An empty page of `width` columns.
    pub fn new(width: usize) -> Self {
        Self { text: String::new(), width }
    }

    /// Number of lines.
    pub fn lines(&self) -> usize {
        self.text.lines().count()
    }

    /// Appends a character.
    pub fn push(&mut self, character: char) {
        self.text.push(character);
    }

    /// The text.
    pub fn into_text(self) -> String {
        self.text
    }
}

impl fmt::Write for Page {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.text.push_str(text);
        Ok(())
    }
}

/// Writes a line with its label; a line that is too long continues in others, which have none.
pub fn field(out: &mut Page, label: &str, value: &str) {
    paragraph(out, label, value);
}

/// Writes a text that may take several lines, with its label.
pub fn paragraph(out: &mut Page, label: &str, value: &str) {
    for (number, line) in wrap(value, out.width - LABEL, "  ").iter().enumerate() {
        let label = if number == 0 { label } else { "" };
        let _ = writeln!(out, "{}", format!("  {label:<20}{line}").trim_end());
    }
}

/// Writes a line that begins a part; a line that is too long continues in others, as with the numbers of windows that
/// lack a summary.
pub fn title(out: &mut Page, text: &str) {
    let _ = writeln!(out, "\n{}", wrap(text, out.width, "  ").join("\n"));
}
