//! Constant tables of a program: each content is there once.

use std::fmt::Write as _;

/// Longest line of a table.
const WIDTH: usize = 110;

/// Tables that the calls of a program name.
#[derive(Debug, Default)]
pub struct Tables {
    /// Type and dimensions, initialiser.
    all: Vec<(String, String, String)>,
}

impl Tables {
    /// Name of the table of these values, `kind` by its use: `count_1`.
    pub fn name(&mut self, kind: &str, c_type: &str, values: &[String]) -> String {
        self.intern(kind, c_type, &format!("[{}]", values.len()), &wrapped(values, 1))
    }

    /// Name of the table that has a row for each rank.
    pub fn of_rows(&mut self, kind: &str, c_type: &str, rows: &[Vec<String>]) -> String {
        let width = rows.iter().map(Vec::len).max().unwrap_or(0).max(1);
        let mut text = String::new();
        for row in rows {
            let row = if row.is_empty() { "0".to_owned() } else { wrapped(row, 2) };
            let _ = write!(text, "\n    {{{row}}},");
        }
        self.intern(kind, c_type, &format!("[][{width}]"), &text)
    }

    fn intern(&mut self, kind: &str, c_type: &str, size: &str, text: &str) -> String {
        let known = self
            .all
            .iter()
            .find(|(_, _, known)| known == text)
            .filter(|(own, name, _)| own == c_type && name.ends_with(size));
        if let Some((_, name, _)) = known {
            return name[..name.find('[').unwrap_or(name.len())].to_owned();
        }
        let name = format!("{kind}_{}", self.all.len() + 1);
        self.all.push((c_type.to_owned(), format!("{name}{size}"), text.to_owned()));
        name
    }

    /// Their definitions.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (c_type, name, values) in &self.all {
            let close = if values.contains('\n') { "\n}" } else { "}" };
            let _ = writeln!(text, "static const {c_type} {name} = {{{values}{close};");
        }
        text
    }
}

/// Values with commas, in lines.
fn wrapped(values: &[String], depth: usize) -> String {
    let one = values.join(", ");
    if one.len() <= WIDTH - 30 {
        return one;
    }
    let indent = "    ".repeat(depth);
    let (mut text, mut length) = (String::new(), WIDTH);
    for value in values {
        if length + value.len() + 2 > WIDTH {
            let _ = write!(text, "\n{indent}{value},");
            length = indent.len() + value.len() + 1;
        } else {
            let _ = write!(text, " {value},");
            length += value.len() + 2;
        }
    }
    text
}
