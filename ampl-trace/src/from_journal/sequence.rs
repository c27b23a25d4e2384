//! A thread's calls in its journal: signatures, and the grammar of their sequence.

use crate::grammar::{Builder, Grammar};
use crate::journal::{Block, BlockKind, snapshot as kind};
use crate::record::{Kind, Record, SIGNATURE_WAY, Word};
use crate::structure::Signature;
use crate::varint::Reader;

/// The signature in `record`; its site is still the index in the thread's table, and its path the number of the way there. `None` if it is too short.
pub fn signature(record: Record<'_>) -> Option<Signature> {
    debug_assert_eq!(record.kind, Kind::Signature);
    let (site, words) = record.body.split_first()?;
    let site = u64::from_le_bytes(*site);
    Some(Signature {
        function: record.function,
        flags: record.flags,
        site: site as u32,
        path: (site >> SIGNATURE_WAY) as u32,
        words: words.iter().map(|&word| u64::from_le_bytes(word)).collect(),
    })
}

/// The sequence in a thread's snapshots and logs, which are the `kinds` of its blocks, over so many `signatures`; and
/// its damage. In a `cut` journal signatures may be missing from one on: calls up to the first of these are there.
pub fn grammar(
    blocks: &[Block<'_>],
    [snapshots, logs]: [BlockKind; 2],
    signatures: usize,
    cut: bool,
) -> (Grammar, Option<&'static str>) {
    let snapshots = blocks.iter().filter(|block| block.kind == snapshots && block.order > 0);
    let latest = snapshots.max_by_key(|block| block.order);
    let (mut grammar, mut is_finished) = (Grammar::default(), false);
    if let Some(block) = latest {
        match snapshot(block.words) {
            Some(found) => (grammar, is_finished) = found,
            // The log's place in the sequence is not known.
            None => return (grammar, Some("its calls up to the last snapshot cannot be read")),
        }
    }
    let epoch = latest.map_or(0, |block| block.order);
    let logs = blocks.iter().filter(|block| block.kind == logs && block.order == epoch);
    let is_known = |&run: &u64| !cut || (run as u32 as usize) < signatures;
    let runs = logs.flat_map(|block| block.words).map(|&run| u64::from_le_bytes(run));
    let mut runs = runs.take_while(is_known).peekable();
    if runs.peek().is_some() {
        let mut builder = Builder::restore(&grammar);
        for run in runs {
            builder.push(run as u32, run >> 32);
        }
        grammar = builder.grammar();
    }
    let most = grammar.rules.all().filter_map(|item| item.symbol.as_terminal()).max();
    if most.is_some_and(|most| most as usize >= signatures) {
        return (Grammar::default(), Some("its calls name signatures that are not there"));
    }
    // A thread that came to its end has shortened it.
    (if is_finished { grammar } else { grammar.shorter() }, None)
}

/// The grammar in a snapshot, and whether it is the last one.
fn snapshot(words: &[Word]) -> Option<(Grammar, bool)> {
    let (length, bytes) = words.split_first()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (kind, bytes) = bytes.as_flattened().get(..length)?.split_first()?;
    let mut reader = Reader::new(bytes);
    match *kind {
        kind::GRAMMAR => Some((Grammar::read(&mut reader)?, true)),
        kind::BUILDER => Some((Grammar::undump(&mut reader)?, false)),
        _ => None,
    }
}
