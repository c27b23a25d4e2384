//! Retrospective decisions: windows that were decided after their end, and their calls that were not in the stream yet
//! when the journal ended.

use std::collections::{BTreeMap, BTreeSet};

use crate::journal::{Block, BlockKind};
use crate::model::WindowSummary;
use crate::record::{DECISION_KEPT, Kind, NO_STRATUM, Record, Records, Word};

/// Retrospective decisions in a journal.
#[derive(Debug)]
pub struct LateDecisions {
    /// True where the run came to its end. A dead run's undecided windows are kept: they are all there is to explain
    /// it.
    ended: bool,
    buffered: BTreeSet<u64>,
    decisions: BTreeMap<u64, RetrospectiveDecision>,
}

#[derive(Clone, Copy, Debug)]
struct RetrospectiveDecision {
    kept: bool,
    probability: f64,
    stratum: Option<u16>,
    /// Update of the directive that it was drawn by, if another than the one in force when it began.
    update: Option<u64>,
}

impl LateDecisions {
    /// No decisions; `ended` is true for a run that came to its end.
    pub fn new(ended: bool) -> Self {
        Self { ended, buffered: BTreeSet::new(), decisions: BTreeMap::new() }
    }

    /// Takes the record of a decision; `None` if it is too short.
    pub fn take(&mut self, record: Record<'_>) -> Option<()> {
        let (fixed, more) = record.body.split_first_chunk()?;
        let [window, probability, stratum] = fixed.map(u64::from_le_bytes);
        let kept = record.flags & DECISION_KEPT != 0;
        let decision = RetrospectiveDecision {
            kept,
            probability: f64::from_bits(probability),
            stratum: (stratum != NO_STRATUM).then_some(stratum.min(u16::MAX.into()) as u16),
            update: more.first().map(|&update| u64::from_le_bytes(update)),
        };
        self.decisions.insert(window, decision);
        Some(())
    }

    /// Notes that the window's calls were buffered.
    pub fn buffered(&mut self, window: u64) {
        self.buffered.insert(window);
    }

    /// Applies the decisions to `windows`. A window that is kept without having been buffered stays so, whatever was
    /// decided (`output.verify`).
    pub fn decide(&self, windows: &mut [WindowSummary]) {
        for window in windows {
            let (single, buffered) = (window.repeat <= 1, self.buffered.contains(&window.window));
            match self.decisions.get(&window.window).filter(|_| single && (buffered || window.kept)) {
                Some(&RetrospectiveDecision { kept, probability, stratum, update }) => {
                    (window.kept, window.drawn) = (kept || !buffered, kept);
                    (window.probability, window.stratum) = (probability, stratum);
                    window.update = update.unwrap_or(window.update);
                }
                None if buffered => window.kept = window.drawn || !self.ended,
                None => {}
            }
        }
    }

    /// Words of a thread's pending blocks that are wanted, in the order of their records: calls of kept `windows`, and
    /// of windows without a summary.
    pub fn pending<'a>(&self, blocks: &[Block<'a>], windows: &[WindowSummary]) -> Vec<&'a [Word]> {
        let known: BTreeMap<u64, bool> = windows.iter().map(|window| (window.window, window.kept)).collect();
        let mut pending: Vec<&Block<'a>> = blocks
            .iter()
            .filter(|block| block.kind == BlockKind::Pending && !block.words.is_empty())
            .collect();
        if pending.is_empty() {
            return Vec::new();
        }
        pending.sort_by_key(|block| block.order);
        // Records that have been copied into the stream may still stand here, too.
        let copied = opened(blocks.iter().filter(|block| block.kind == BlockKind::Stream));
        let mut wanted = Vec::new();
        let mut wants = false;
        for block in pending {
            let mut from = 0;
            let mut at = 0;
            for record in Records::new(block.words) {
                if let (Kind::Open, Some(&window)) = (record.kind, record.body.first()) {
                    let window = u64::from_le_bytes(window);
                    let wants_next = !copied.contains(&window) && known.get(&window).copied().unwrap_or(true);
                    if wants && from < at {
                        wanted.push(&block.words[from..at]);
                    }
                    (wants, from) = (wants_next, at);
                }
                at += 1 + record.body.len();
            }
            if wants && from < at {
                wanted.push(&block.words[from..at]);
            }
        }
        wanted
    }
}

/// Windows of which a stream has calls. Some may be later than pending ones.
fn opened<'a>(stream: impl Iterator<Item = &'a Block<'a>>) -> BTreeSet<u64> {
    let opened =
        stream.flat_map(|block| Records::new(block.words)).filter(|record| record.kind == Kind::Open);
    opened.filter_map(|record| record.body.first().map(|&window| u64::from_le_bytes(window))).collect()
}
