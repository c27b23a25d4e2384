//! Messages between ranks as a table, or as a picture where there are many ranks.

use std::fmt::{Display, Write};

use ampl_analysis::query::matrix::{CommRow, Matrix, Row, SizeRow};

use crate::human::{bytes, count, digits, plural};

/// Columns of an entry of the table.
const CELL: usize = 9;
/// Most blocks of ranks on a side of a picture.
const MOST_BLOCKS: usize = 64;
/// Marks of a picture, from nothing to most; each stands for four times the one before.
const MARKS: [char; 8] = [' ', '.', ':', '-', '=', '+', '*', '#'];

/// The messages of `matrix`, between `ranks` ranks, in lines of `width` columns.
pub fn text(matrix: &Matrix, ranks: u32, width: usize) -> String {
    let mut out = String::new();
    let (calls, sum) = matrix.rows.iter().fold((0u64, 0u64), |(calls, sum), row| {
        (calls.saturating_add(row.calls), sum.saturating_add(row.bytes))
    });
    let pairs = plural(matrix.rows.len() as u64, "pair");
    let _ = writeln!(out, "{} of {} between {pairs} of ranks", plural(calls, "message"), bytes(sum as f64));
    if matrix.rows.is_empty() {
        return out;
    }
    let by_bytes = sum > 0;
    let volume = |row: &Row<u32>| if by_bytes { row.bytes } else { row.calls };
    if ranks as usize <= width.saturating_sub(CELL) / CELL {
        table(&mut out, matrix, ranks, by_bytes);
    } else {
        picture(&mut out, matrix, ranks, by_bytes, &volume);
    }
    out
}

fn table(out: &mut String, matrix: &Matrix, ranks: u32, by_bytes: bool) {
    let unit = if by_bytes { "bytes" } else { "messages" };
    let _ = writeln!(out, "\n{unit} from the rank of a line to the rank of a column");
    let _ = write!(out, "{:>CELL$}", "");
    for rank in 0..ranks {
        let _ = write!(out, "{rank:>CELL$}");
    }
    for source in 0..ranks {
        let mut line = format!("{source:>CELL$}");
        for dest in 0..ranks {
            let found = matrix.rows.binary_search_by_key(&(source, dest), |row| (row.source, row.dest));
            let entry = match found.map(|at| &matrix.rows[at]) {
                Ok(row) if by_bytes => bytes(row.bytes as f64),
                Ok(row) => digits(row.calls as f64),
                Err(_) => ".".into(),
            };
            let _ = write!(line, "{entry:>CELL$}");
        }
        let _ = write!(out, "\n{line}");
    }
    out.push('\n');
}

/// A mark for each block of ranks, by its volume.
fn picture(out: &mut String, matrix: &Matrix, ranks: u32, by_bytes: bool, volume: &dyn Fn(&Row<u32>) -> u64) {
    let each = (ranks as usize).div_ceil(MOST_BLOCKS).max(1);
    let blocks = (ranks as usize).div_ceil(each);
    let mut sums = vec![0u64; blocks * blocks];
    for row in &matrix.rows {
        let at = row.source as usize / each * blocks + row.dest as usize / each;
        if let Some(sum) = sums.get_mut(at) {
            *sum = sum.saturating_add(volume(row));
        }
    }
    let most = sums.iter().copied().max().unwrap_or(0);
    let size = if by_bytes { bytes(most as f64) } else { plural(most, "message") };
    let block = plural(each as u64, "rank");
    let _ = writeln!(
        out,
        "\nlines: senders, columns: receivers; a mark is {block}, # the most ({size}), each mark 4 times the one before: {}",
        MARKS[1..].iter().collect::<String>()
    );
    let _ = writeln!(out, "{:>CELL$}+{}+", "", "-".repeat(blocks));
    for (number, line) in sums.chunks(blocks).enumerate() {
        let marks: String = line.iter().map(|&sum| mark(sum, most)).collect();
        let _ = writeln!(out, "{:>CELL$}|{marks}|", number * each);
    }
    let _ = writeln!(out, "{:>CELL$}+{}+", "", "-".repeat(blocks));
}

fn mark(sum: u64, most: u64) -> char {
    if sum == 0 {
        return MARKS[0];
    }
    let below = ((most as f64 / sum as f64).log2() / 2.0) as usize;
    MARKS[(MARKS.len() - 1).saturating_sub(below).max(1)]
}

/// Rows of messages between hosts, most bytes first.
pub fn hosts(rows: &[Row<String>]) -> String {
    let mut rows: Vec<&Row<String>> = rows.iter().collect();
    rows.sort_by_key(|row| std::cmp::Reverse((row.bytes, row.calls)));
    let mut out = format!("{:<24}{:<24}{:>16}{:>12}\n", "from host", "to host", "messages", "bytes");
    for row in rows {
        line(&mut out, &format!("{:<24}{:<24}", row.source, row.dest), row.calls, row.bytes);
    }
    out
}

/// Rows of messages by communicator.
pub fn communicators(rows: &[CommRow]) -> String {
    let mut out = format!("{:<48}{:>16}{:>12}\n", "communicator", "messages", "bytes");
    rows.iter().for_each(|row| line(&mut out, &format!("{:<48}", row.communicator), row.calls, row.bytes));
    out
}

/// Rows of messages by size.
pub fn sizes(rows: &[SizeRow]) -> String {
    let mut out = format!("{:<48}{:>16}{:>12}\n", "size of a message", "messages", "bytes");
    for row in rows {
        let size = match row.least == row.most {
            true => bytes(row.least as f64),
            false => format!("{} to {}", bytes(row.least as f64), bytes(row.most as f64)),
        };
        line(&mut out, &format!("{size:<48}"), row.calls, row.bytes);
    }
    out
}

fn line(out: &mut String, name: &dyn Display, calls: u64, sum: u64) {
    let _ = writeln!(out, "{name}{:>16}{:>12}", count(calls), bytes(sum as f64));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rows: &[(u32, u32, u64)]) -> Matrix {
        let row = |&(source, dest, bytes): &(u32, u32, u64)| Row { source, dest, calls: 1, bytes };
        Matrix {
            rows: rows.iter().map(row).collect(),
            communicators: Vec::new(),
            sizes: Vec::new(),
            extent: ampl_analysis::query::Extent::default(),
            unplaced: ampl_analysis::messages::Volume::default(),
            unsized_messages: 0,
            received_only: 0,
        }
    }

    #[test]
    fn few_ranks_are_a_table_and_many_a_picture() {
        let text = text(&of(&[(0, 1, 800), (1, 0, 5000)]), 2, 100);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "2 messages of 5.80 kB between 2 pairs of ranks");
        assert_eq!(lines[3].split_whitespace().collect::<Vec<_>>(), ["0", "1"]);
        assert_eq!(lines[4].split_whitespace().collect::<Vec<_>>(), ["0", ".", "800", "B"]);
        assert_eq!(lines[5].split_whitespace().collect::<Vec<_>>(), ["1", "5", "kB", "."]);

        let ring: Vec<_> = (0..1000).map(|rank| (rank, (rank + 1) % 1000, 100)).collect();
        let text = super::text(&of(&ring), 1000, 100);
        let marks: Vec<&str> = text.lines().filter(|line| line.ends_with('|')).collect();
        assert_eq!(marks.len(), 63, "blocks of 16 ranks");
        assert!(text.lines().all(|line| line.chars().count() <= 160), "{text}");
        for (number, line) in marks.iter().enumerate() {
            let (first, rest) = line.trim_start().split_once('|').unwrap();
            assert_eq!(first, (16 * number).to_string());
            assert_eq!(rest.chars().nth(number), Some('#'), "the diagonal has most: {line}");
        }
    }

    #[test]
    fn marks_are_a_factor_of_four_apart() {
        let marks: String =
            [4096, 4095, 1024, 256, 64, 16, 4, 1, 0].map(|sum| mark(sum, 4096)).iter().collect();
        assert_eq!(marks, "##*+=-:. ");
    }
}
