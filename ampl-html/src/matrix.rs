//! Messages between pairs of ranks.

use std::collections::BTreeMap;

use ampl_analysis::messages::Messages;
use serde::Serialize;

use crate::pooling::parts;

/// Most rows and columns of the matrix.
const SIDE: usize = 128;

/// Point-to-point messages by sender and receiver.
#[derive(Debug, Serialize)]
pub struct Matrix {
    /// First and last rank of each row, and of each column.
    pub rows: Vec<[u32; 2]>,
    /// Row of the sender, column of the receiver, messages, bytes.
    pub cells: Vec<(usize, usize, u64, u64)>,
    /// Messages of all cells.
    pub messages: u64,
    /// Bytes of all cells.
    pub bytes: u64,
    /// True where the calls of all ranks are recorded and all partners are known.
    pub complete: bool,
}

impl Matrix {
    /// `messages` of a job of `ranks`; `None` where no message between two of them is recorded.
    pub fn of(messages: &Messages, ranks: u32) -> Option<Self> {
        let parts = parts(ranks as usize, SIDE);
        let row_of = |rank: u32| parts.partition_point(|part| part.end as u32 <= rank);
        let mut cells: BTreeMap<(usize, usize), (u64, u64)> = BTreeMap::new();
        for edge in messages.matrix().iter().filter(|edge| edge.from < ranks && edge.to < ranks) {
            let cell = cells.entry((row_of(edge.from), row_of(edge.to))).or_default();
            *cell = (cell.0.saturating_add(edge.messages), cell.1.saturating_add(edge.bytes));
        }
        let sum = |of: fn(&(u64, u64)) -> u64| cells.values().map(of).fold(0, u64::saturating_add);
        (!cells.is_empty()).then(|| Self {
            rows: parts.iter().map(|part| [part.start as u32, part.end as u32 - 1]).collect(),
            messages: sum(|cell| cell.0),
            bytes: sum(|cell| cell.1),
            complete: messages.is_complete(),
            cells: cells
                .iter()
                .map(|(&(from, to), &(messages, bytes))| (from, to, messages, bytes))
                .collect(),
        })
    }
}
