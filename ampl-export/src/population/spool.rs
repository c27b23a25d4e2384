//! Rows sorted by window in a temporary file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use ampl_core::message::MetricSummary;

/// Bytes buffered in memory.
const HELD: usize = 64 << 20;
const RECORD: usize = 8 + 4 + 4 + 5 * 8;

/// A row of a guide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// Its number in the file.
    pub row: u64,
    pub rank: u32,
    /// Number of the guide.
    pub guide: u32,
    pub summary: MetricSummary,
}

/// Entries by window: most of them in a file without a name, which ends with the process.
pub struct Spool {
    file: File,
    end: u64,
    held: BTreeMap<u64, Vec<u8>>,
    bytes: usize,
    /// Places of each window's entries in the file, and their bytes.
    chunks: BTreeMap<u64, Vec<(u64, usize)>>,
    most: usize,
}

impl Spool {
    /// An empty one.
    ///
    /// # Errors
    /// Where no temporary file can be made.
    pub fn new() -> io::Result<Self> {
        Self::holding(HELD)
    }

    fn holding(most: usize) -> io::Result<Self> {
        let file = tempfile::tempfile()?;
        Ok(Self { file, end: 0, held: BTreeMap::new(), bytes: 0, chunks: BTreeMap::new(), most })
    }

    /// Takes an entry of `window`.
    ///
    /// # Errors
    /// Errors of the temporary file, a full disk above all.
    pub fn push(&mut self, window: u64, entry: &Entry) -> io::Result<()> {
        let to = self.held.entry(window).or_default();
        to.extend(entry.row.to_le_bytes());
        to.extend(entry.rank.to_le_bytes());
        to.extend(entry.guide.to_le_bytes());
        let MetricSummary { n, sum, sum_sq, min, max } = entry.summary;
        to.extend(n.to_le_bytes());
        [sum, sum_sq, min, max].iter().for_each(|value| to.extend(value.to_le_bytes()));
        self.bytes += RECORD;
        if self.bytes >= self.most { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        for (window, bytes) in std::mem::take(&mut self.held) {
            self.file.write_all_at(&bytes, self.end)?;
            self.chunks.entry(window).or_default().push((self.end, bytes.len()));
            self.end += bytes.len() as u64;
        }
        self.bytes = 0;
        Ok(())
    }

    /// Passes on the entries of `window` in the order in which they were pushed.
    ///
    /// # Errors
    /// Errors of the temporary file, and of `take`.
    pub fn each<E: From<io::Error>>(
        &self,
        window: u64,
        mut take: impl FnMut(Entry) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut bytes = Vec::new();
        for &(at, length) in self.chunks.get(&window).into_iter().flatten() {
            bytes.resize(length, 0);
            self.file.read_exact_at(&mut bytes, at)?;
            bytes.chunks_exact(RECORD).try_for_each(|record| take(entry(record)))?;
        }
        let held = self.held.get(&window).map_or(&[][..], |bytes| bytes);
        held.chunks_exact(RECORD).try_for_each(|record| take(entry(record)))
    }
}

fn entry(record: &[u8]) -> Entry {
    let word = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().expect("eight bytes"));
    let half = |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().expect("four bytes"));
    let [sum, sum_sq, min, max] = [24, 32, 40, 48].map(|at| f64::from_bits(word(at)));
    let summary = MetricSummary { n: word(16), sum, sum_sq, min, max };
    Entry { row: word(0), rank: half(8), guide: half(12), summary }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_by_window_in_their_order() {
        let mut spool = Spool::holding(10 * RECORD).unwrap();
        let entry = |row: u64| Entry {
            row,
            rank: row as u32 * 3,
            guide: (row % 2) as u32,
            summary: MetricSummary { n: row, sum: 0.1 * row as f64, sum_sq: 2.0, min: -1.0, max: f64::MAX },
        };
        let window = |row: u64| row * 7 % 5;
        (0..93).for_each(|row| spool.push(window(row), &entry(row)).unwrap());
        assert!(spool.end > 0 && !spool.held.is_empty(), "in the file and in memory");
        for wanted in 0..6 {
            let mut found = Vec::new();
            let take = |entry| {
                found.push(entry);
                Ok::<(), io::Error>(())
            };
            spool.each(wanted, take).unwrap();
            let expected: Vec<Entry> = (0..93).filter(|&row| window(row) == wanted).map(entry).collect();
            assert_eq!(found, expected, "{wanted}");
        }
    }
}
