//! Facts about the process that a journal is of.

use std::collections::BTreeMap;

use ampl_core::mpi::FUNCTIONS;

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
    let threads = Threads::of(journal);
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
        polling_ns: clock.duration(header[word::POLLING_TICKS]) as u64,
        begin_ns: header[word::BEGIN_NS],
        end_ns: 0,
        end_wait_ns: 0,
        processor_ns: header[word::PROCESSOR_NS],
        processors: header[word::PROCESSORS],
        quota: header[word::QUOTA],
        switches: (header[word::PROCESSOR_NS] > 0).then_some(header[word::SWITCHES]),
        elapsed_ns: header[word::NANOS_LAST].wrapping_sub(header[word::NANOS_FIRST]),
        mpi_threads: threads.in_mpi(),
        main_share: threads.main_share(header[word::TICKS_LAST].saturating_sub(header[word::TICKS_FIRST])),
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

/// One part in so many of the longest time in MPI of a thread is the least with which a thread counts as in MPI.
const IN_MPI: u64 = 100;
/// The same of the calls, for the main thread, whatever their time.
const CALLS: u64 = 10;
/// Part of the run that a thread is in MPI from which on it does nothing else: it is there for the main thread.
const ALWAYS: f64 = 0.95;

/// Steps in which the share of a thread is stored.
const MILLION: f64 = 1e6;

/// True of calls that are made for more than an answer: a thread that leaves MPI to others asks for its rank, too.
fn may_take_time(function: u16) -> bool {
    FUNCTIONS.get(usize::from(function)).is_some_and(|spec| spec.class.is_work())
}

/// Calls that may take time, and ticks in MPI, of a process by thread. A thread takes the place of one that has ended.
struct Threads(BTreeMap<u32, (u64, u64)>);

impl Threads {
    fn of(journal: &Journal<'_>) -> Self {
        let mut threads: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for block in journal.blocks.iter().filter(|block| block.kind == BlockKind::Sites) {
            let (calls, ticks) = threads.entry(block.thread).or_default();
            for (index, entry) in block.words.as_chunks::<SITE_WORDS>().0.iter().enumerate() {
                // The first entry is of several functions.
                let counts = index == 0 || may_take_time(u64::from_le_bytes(entry[1]) as u16);
                let own = if counts { u64::from_le_bytes(entry[2]) } else { 0 };
                *calls = calls.saturating_add(own);
                *ticks = ticks.saturating_add(u64::from_le_bytes(entry[3]));
            }
        }
        Self(threads)
    }

    /// Number of threads in MPI, 0 unless several: each for at least a hundredth of the longest one's time. So a helper
    /// that makes a few calls does not halve the share of the others.
    fn in_mpi(&self) -> u32 {
        let least = self.0.values().map(|own| own.1).max().map_or(1, |most| most / IN_MPI).max(1);
        match self.0.values().filter(|own| own.1 >= least).count() as u32 {
            0 | 1 => 0,
            several => several,
        }
    }

    /// The part of the time in MPI that the thread that called `MPI_Init` has, where others have a part, too; `None`
    /// where it leaves MPI to them, with less than a tenth of the calls and a hundredth of the time, unless another is in MPI
    /// for all of the `run`, ticks.
    fn main_share(&self, run: u64) -> Option<f64> {
        let sum = |of: fn(&(u64, u64)) -> u64| self.0.values().map(of).fold(0, u64::saturating_add);
        let (all_calls, all_ticks) = (sum(|own| own.0), sum(|own| own.1));
        let &(calls, ticks) = self.0.get(&0).filter(|own| 0 < own.1 && own.1 < all_ticks)?;
        let others = self.0.iter().filter(|(thread, _)| **thread > 0).map(|(_, own)| own.1);
        let always = others.max().unwrap_or(0) as f64 >= ALWAYS * run as f64;
        let is_calling = always || calls >= all_calls / CALLS || ticks >= all_ticks / IN_MPI;
        is_calling.then(|| (MILLION * ticks as f64 / all_ticks as f64).ceil() / MILLION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads(all: &[(u64, u64)]) -> (u32, Option<f64>) {
        let threads = Threads((0..).zip(all.iter().copied()).collect());
        (threads.in_mpi(), threads.main_share(100_000))
    }

    #[test]
    fn calls_that_only_ask_are_none_of_a_thread_in_mpi() {
        let takes = ["MPI_Init_thread", "MPI_Comm_rank", "MPI_Finalize", "MPI_Barrier", "MPI_Isend"]
            .map(|name| may_take_time(ampl_core::mpi::Function::by_name(name).unwrap().0));
        assert_eq!(takes, [false, false, false, true, true]);
        assert!(!may_take_time(u16::MAX));
    }

    #[test]
    fn the_main_thread_counts_where_it_calls_mpi() {
        assert_eq!(threads(&[(1000, 7000)]), (0, None));
        // A helper that waits for requests all the time.
        assert_eq!(threads(&[(1000, 7000), (10, 93_000)]), (2, Some(0.07)));
        assert_eq!(threads(&[(1000, 500), (10, 99_500)]), (0, Some(0.005)));
        // One that polls all the time.
        assert_eq!(threads(&[(10, 500), (90_000, 99_500)]), (0, Some(0.005)));
        // It leaves MPI to others, and meets them now and then.
        assert_eq!(threads(&[(2, 30), (1000, 90_000), (1000, 80_000)]), (2, None));
        assert_eq!(threads(&[(9, 200), (200, 30_000), (200, 30_000)]), (2, None));
        assert_eq!(threads(&[(0, 0), (1000, 90_000)]), (0, None));
        assert_eq!(threads(&[(1000, 50), (1000, 50), (1000, 100)]), (3, Some(0.25)));
    }
}
