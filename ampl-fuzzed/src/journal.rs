//! Bytes as a journal: read to an end, as they are, with the header put right, and as blocks that are all whole. What is
//! read can be stored as a trace, which is read again.

use std::io;

use ampl_trace::format::{self, Writer, rank_parts};
use ampl_trace::from_journal::{Compacted, compact};
use ampl_trace::journal::{
    BLOCK_HEADER_WORDS, BLOCK_MAGIC, HEADER_WORDS, MAGIC, VERSION, read, table_checksum, word,
};
use ampl_trace::structure::JobStructure;
use ampl_trace::timing::Settings;

/// Words of the header that [`assembled`] takes from its input.
const TAKEN: [usize; 4] = [word::FLAGS, word::TICKS_LAST, word::NANOS_LAST, word::FULL];
/// Kinds of blocks, and one that is none.
const KINDS: u8 = 11;

/// Reads `bytes`.
///
/// # Panics
/// Where the property does not hold.
pub fn check(bytes: &[u8]) {
    whole(bytes);
    let mut right = bytes.to_vec();
    for (at, value) in fixed() {
        if let Some(place) = right.get_mut(8 * at..8 * at + 8) {
            place.copy_from_slice(&value.to_le_bytes());
        }
    }
    whole(&right);
    whole(&assembled(bytes));
}

/// Words without which nothing is read.
fn fixed() -> [(usize, u64); 3] {
    [(word::MAGIC, MAGIC), (word::VERSION, VERSION), (word::TABLE, table_checksum().into())]
}

/// A journal of the blocks in `bytes`: four words of the header; then kind, thread, words (2 bytes, the lower first) and
/// words of each block.
pub fn assembled(bytes: &[u8]) -> Vec<u8> {
    let (head, mut rest) = bytes.split_at(bytes.len().min(8 * TAKEN.len()));
    let mut words = vec![0; HEADER_WORDS];
    words[word::RANKS] = 4;
    fixed().into_iter().for_each(|(at, value)| words[at] = value);
    TAKEN.into_iter().zip(numbers(head)).for_each(|(at, value)| words[at] = value);
    let mut order = 0;
    while let Some((&[kind, thread, low, high], behind)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes([low, high])).min(behind.len() / 8);
        let (payload, behind) = behind.split_at(8 * length);
        let (length, thread) = (length as u64, u64::from(thread % 4));
        order += 1;
        words.extend([BLOCK_MAGIC, u64::from(kind % KINDS), thread, length, length, order, 0, 0]);
        words.extend(numbers(payload));
        rest = behind;
    }
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The input of [`assembled`] that gives the blocks of `journal`.
///
/// # Panics
/// Where it is no journal, or one with larger blocks.
pub fn input(journal: &[u8]) -> Vec<u8> {
    let journal = read(journal).expect("a journal");
    let mut bytes: Vec<u8> = TAKEN.iter().flat_map(|&at| journal.header[at].to_le_bytes()).collect();
    for block in journal.blocks {
        let length = u16::try_from(block.words.len()).expect("a small block");
        bytes.extend([block.kind.number() as u8, block.thread as u8]);
        bytes.extend(length.to_le_bytes());
        bytes.extend(block.words.as_flattened());
    }
    bytes
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks::<8>().0.iter().map(|&word| u64::from_le_bytes(word))
}

fn whole(bytes: &[u8]) {
    let Ok(journal) = read(bytes) else { return };
    let inside: usize = journal.blocks.iter().map(|block| BLOCK_HEADER_WORDS + block.words.len()).sum();
    assert!(8 * (HEADER_WORDS + inside) <= bytes.len());
    assert!(journal.cut_at.is_none_or(|at| 8 * at <= bytes.len()));
    let compacted = compact(bytes, Settings { error: 0.0, floor_ns: 0 }).expect("its header is read");
    if let Ok(stored) = stored(compacted) {
        let trace = format::read(&stored).expect("what is stored is read");
        assert_eq!(trace.ranks.len(), 1);
    }
}

fn stored(compacted: Compacted) -> io::Result<Vec<u8>> {
    let mut writer = Writer::new(Vec::new())?;
    if let Some(run) = &compacted.run {
        writer.run(run, &compacted.decisions)?;
    }
    writer.rank(&rank_parts(&compacted.rank))?;
    writer.totals(&compacted.totals())?;
    writer.structure(&JobStructure::of(compacted.structure))?;
    writer.finish()
}
