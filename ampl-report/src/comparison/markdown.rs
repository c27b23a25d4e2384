//! Comparisons as Markdown, for merge requests.

use std::io::{self, Write};

use ampl_analysis::comparison::{Comparison, Row};

use super::{left_out, words};

/// Rows outside of the part that is folded away.
const SHOWN: usize = 20;

/// Writes `comparison` as Markdown: the answer first, the whole table folded away.
///
/// # Errors
/// Errors of `out`.
pub fn markdown(out: &mut impl Write, comparison: &Comparison) -> io::Result<()> {
    writeln!(out, "**ampl diff: {}**", escaped(&words::headline(comparison)))?;
    if !comparison.mismatches.is_empty() {
        writeln!(out)?;
    }
    for mismatch in &comparison.mismatches {
        writeln!(out, "- {}", escaped(&words::mismatch(mismatch)))?;
    }
    if !comparison.differences.is_empty() {
        writeln!(out, "\n| Other than in the base | |\n|---|---|")?;
    }
    for difference in &comparison.differences {
        let (name, values) = words::difference(difference);
        writeln!(out, "| {} | {} |", escaped(&name), escaped(&values))?;
    }
    if !comparison.judged.is_empty() {
        writeln!(out, "\n| Rule | Answer | Reason |\n|---|---|---|")?;
    }
    for judged in &comparison.judged {
        let reason = escaped(&words::judged(judged, &comparison.rows));
        writeln!(out, "| {} | {} | {reason} |", escaped(&judged.rule.text), judged.verdict.name())?;
    }
    let (shown, folded) = comparison.rows.split_at(comparison.rows.len().min(SHOWN));
    if !shown.is_empty() {
        writeln!(out)?;
        table(out, shown)?;
    }
    if !folded.is_empty() {
        writeln!(out, "\n<details><summary>{} more</summary>\n", folded.len())?;
        table(out, folded)?;
        writeln!(out, "\n</details>")?;
    }
    let notes = left_out(comparison).into_iter().map(|line| format!("Not compared: {line}."));
    let notes: Vec<String> = notes.chain(words::method(comparison)).collect();
    if !notes.is_empty() {
        writeln!(out)?;
    }
    notes.iter().try_for_each(|line| writeln!(out, "- {}", escaped(line)))
}

fn table(out: &mut impl Write, rows: &[Row]) -> io::Result<()> {
    writeln!(out, "| | Quantity | Base | New | Change | Interval |\n|---|---|---:|---:|---:|---|")?;
    for row in rows {
        let cells = [
            words::name(row),
            words::value(row, row.base),
            words::value(row, row.new),
            words::change(row),
            words::interval(row),
        ];
        let mark = if row.significant { "●" } else { "" };
        writeln!(out, "| {mark} | {} |", cells.map(|cell| escaped(&cell)).join(" | "))?;
    }
    Ok(())
}

/// `text` without effect on the Markdown around it.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '|' | '*' | '_' | '`' | '\\' | '[' | ']' | '#' => out.extend(['\\', letter]),
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_programs_are_shown_and_not_run() {
        assert_eq!(escaped("a|b<script>\n`x`&"), "a\\|b&lt;script&gt; \\`x\\`&amp;");
    }
}
