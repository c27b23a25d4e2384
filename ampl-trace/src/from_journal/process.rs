//! Facts about the process that a journal is of.

use std::collections::BTreeMap;

use super::clock::Clock;
use crate::journal::{BlockKind, Journal, SITE_WORDS, flag, word};
use crate::model::{ClockFit, GaveUp, Liveness, Process};
use crate::record::get_text;

fn gave_up(flags: u64) -> Option<GaveUp> {
    let why = if flags & flag::NO_ROOM != 0 { GaveUp::NoRoom } else { GaveUp::Failed };
    (flags & flag::DISABLED != 0).then_some(why)
}

/// Facts in the header of `journal`, and the number of threads in MPI.
pub fn process(journal: &Journal<'_>, clock: Clock) -> Process {
    let header = &journal.header;
    let mut texts = &header[word::TEXTS..word::TEXTS_END];
    let mut text = || {
        let (text, used) = get_text(texts).unwrap_or_default();
        texts = &texts[used.min(texts.len())..];
        text
    };
    let (host, cpus, _run, program) = (text(), text(), text(), text());
    Process {
        rank: header[word::RANK] as u32,
        host,
        cpus,
        program,
        pid: header[word::PID] as u32,
        finalized: header[word::FLAGS] & flag::FINALIZED != 0,
        agent_failures: header[word::FAILURES],
        gave_up: gave_up(header[word::FLAGS]),
        own_ns: (clock.duration(header[word::OWN_TICKS]) as u64)
            .saturating_add(header[word::RARE_NS])
            .saturating_add(header[word::COPY_NS]),
        begin_ns: header[word::BEGIN_NS],
        end_ns: 0,
        end_wait_ns: 0,
        processor_ns: header[word::PROCESSOR_NS],
        processors: header[word::PROCESSORS],
        quota: header[word::QUOTA],
        switches: (header[word::PROCESSOR_NS] > 0).then_some(header[word::SWITCHES]),
        elapsed_ns: header[word::NANOS_LAST].wrapping_sub(header[word::NANOS_FIRST]),
        mpi_threads: mpi_threads(journal),
        windows: 0,
        calls: Vec::new(),
        clock: (header[word::CLOCK_ERROR] > 0).then(|| ClockFit {
            offset_ns: header[word::CLOCK_OFFSET] as i64,
            error_ns: header[word::CLOCK_ERROR],
            drift_ppm: Some(f64::from_bits(header[word::CLOCK_DRIFT])).filter(|drift| drift.is_finite()),
        }),
        steps: Vec::new(),
        threads: Vec::new(),
        followed: None,
        unannounced: None,
        regions_left_out: Vec::new(),
        liveness: Liveness::Unknown,
    }
}

/// Number of threads in MPI, 0 unless several: each for at least a hundredth of the longest one's time. So a helper
/// that makes a few calls does not halve the share of the others. A thread takes the place of one that has ended.
fn mpi_threads(journal: &Journal<'_>) -> u32 {
    let mut ticks: BTreeMap<u32, u64> = BTreeMap::new();
    for block in journal.blocks.iter().filter(|block| block.kind == BlockKind::Sites) {
        let entries = block.words.as_chunks::<SITE_WORDS>().0.iter();
        let own = entries.map(|entry| u64::from_le_bytes(entry[3])).fold(0, u64::saturating_add);
        let total = ticks.entry(block.thread).or_default();
        *total = total.saturating_add(own);
    }
    let least = ticks.values().max().map_or(1, |most| most / 100).max(1);
    match ticks.values().filter(|&&own| own >= least).count() as u32 {
        0 | 1 => 0,
        several => several,
    }
}
