//! Data that a setting leaves out takes no bytes, however many ranks there are.

use std::collections::BTreeSet;

use ampl_trace::cells::{Cell, Cells};
use ampl_trace::format::{Kind, v1};
use ampl_trace::format::{Writer, rank_parts, read};
use ampl_trace::model::{LASTING_STRATA, Process, RankTrace, RunInfo, WindowSummary};
use ampl_trace::places::{self, Places};
use ampl_trace::structure::JobStructure;
use ampl_trace::timing::{Encoder, Settings, Terminal, Time, Window};
use ampl_trace::{Trace, totals::Totals};
use proptest::prelude::*;

const WINDOWS: u64 = 40;

/// Data that a rank stores.
#[derive(Clone, Copy, Debug)]
struct Stores {
    summaries: bool,
    times: bool,
    places: bool,
}

const ALL: Stores = Stores { summaries: true, times: true, places: true };

fn window(rank: u32, number: u64, kept: bool) -> WindowSummary {
    let start_ns = number as i64 * 5_000_000 + i64::from(rank);
    WindowSummary {
        window: number,
        start_ns,
        end_ns: start_ns + 5_000_000,
        own_ns: 3000 + number,
        kept,
        drawn: kept || number % 3 == 1,
        partial: number + 1 == WINDOWS,
        probability: 0.25,
        stratum: Some(LASTING_STRATA + 1),
        update: number / 4,
        cells: [Cell::one(4e6 + number as f64), Cell::one(1e6 * f64::from(rank))].into_iter().collect(),
        repeat: 1,
        ..WindowSummary::default()
    }
}

fn rank(number: u32, stores: Stores) -> RankTrace {
    let kept = |window: u64| stores.times && (window + u64::from(number)).is_multiple_of(5);
    let windows: Vec<WindowSummary> = (0..WINDOWS).map(|at| window(number, at, kept(at))).collect();
    let mut encoder = Encoder::new(Settings { error: 0.1, floor_ns: 0 });
    for (seq, window) in (0..).zip(windows.iter().filter(|window| window.kept)) {
        let start_ns = window.start_ns;
        encoder.window(Window { thread: 0, window: window.window, first_seq: seq, start_ns });
        encoder.call(Terminal::from(0), Time { start_ns: start_ns + 700, duration_ns: 900, count: 1 });
    }
    let mut found = Places::default();
    if stores.places {
        found.take(0, places::module(1, 0), 0x5555_0000_0000 + u64::from(number));
    }
    let process = Process { rank: number, finalized: true, ..Process::default() };
    let times = if encoder.is_empty() { Vec::new() } else { encoder.finish() };
    let mut rank =
        RankTrace { process, windows: windows.into(), times, places: found, ..RankTrace::default() };
    if !stores.summaries {
        rank.leave_out_summaries();
    }
    rank
}

fn file(ranks: u32, stores: Stores) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new()).unwrap();
    writer.run(&RunInfo { ranks, ..RunInfo::default() }, &[]).unwrap();
    writer.structure(&JobStructure::new(ranks)).unwrap();
    writer.totals(&Totals::default()).unwrap();
    (0..ranks).for_each(|number| writer.rank(&rank_parts(&rank(number, stores))).unwrap());
    writer.finish().unwrap()
}

/// The trace in `bytes`, nothing of which is damaged, and the kinds of its sections.
fn whole(bytes: &[u8]) -> (Trace, BTreeSet<Kind>) {
    let (sections, damage) = v1::read(bytes).unwrap();
    assert_eq!(damage, []);
    let trace = read(bytes).unwrap();
    assert!(trace.complete, "{:?}", trace.damage);
    let sizes = trace.sizes;
    assert_eq!(sizes.total, sizes.parts().iter().sum::<u64>());
    (trace, sections.iter().map(|section| section.kind).collect())
}

#[test]
fn what_is_left_out_takes_no_bytes_of_any_rank() {
    for ranks in [1, 2, 8, 33] {
        let of = |stores| whole(&file(ranks, stores));
        let (all, kinds) = of(ALL);
        let of_ranks = [Kind::WindowsOfRanks, Kind::Times, Kind::AddressesOfRanks];
        assert!(of_ranks.iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
        assert!(all.sizes.summaries > 0 && all.sizes.timing > 0 && all.sizes.addresses > 0);

        let (found, kinds) = of(Stores { summaries: false, ..ALL });
        assert_eq!(found.sizes.summaries, 0);
        assert!(!kinds.contains(&Kind::WindowsOfRanks) && kinds.contains(&Kind::WeightsOfRanks), "{kinds:?}");
        assert!(found.sizes.total < all.sizes.total);

        let (found, kinds) = of(Stores { times: false, ..ALL });
        assert_eq!(found.sizes.timing, 0);
        assert!(!kinds.contains(&Kind::Times) && found.sizes.summaries > 0, "{kinds:?}");
        assert!(found.ranks.iter().all(|rank| rank.times.is_empty()));

        let (found, kinds) = of(Stores { places: false, ..ALL });
        assert_eq!(found.sizes.addresses, 0);
        assert!(!kinds.contains(&Kind::AddressesOfRanks), "{kinds:?}");

        let (found, kinds) = of(Stores { summaries: false, times: false, places: false });
        assert_eq!((found.sizes.summaries, found.sizes.timing, found.sizes.addresses), (0, 0, 0));
        let [run, structure, totals] = [Kind::Run, Kind::Structure, Kind::Aggregates];
        assert_eq!(kinds, BTreeSet::from([run, structure, totals, Kind::Processes]));
    }
}

#[test]
fn all_windows_are_counted_without_their_summaries() {
    for times in [false, true] {
        let (trace, _) = whole(&file(7, Stores { summaries: false, times, places: true }));
        assert_eq!(trace.windows(), WINDOWS);
        for found in &trace.ranks {
            let number = found.process.rank;
            assert_eq!(found.windows.count(), WINDOWS);
            for (at, found) in (0..).zip(&found.windows) {
                let kept = times && (at + u64::from(number)).is_multiple_of(5);
                assert_eq!((found.window, found.kept, found.partial), (at, kept, at + 1 == WINDOWS));
                assert!(found.cells.is_empty() && found.start_ns == 0 && found.end_ns == 0);
                if kept {
                    // The weight of its times comes back to the bit.
                    let mut written = window(number, at, true);
                    (written.start_ns, written.end_ns, written.own_ns) = (0, 0, 0);
                    written.cells = Cells::default();
                    assert_eq!(*found, written);
                }
            }
        }
    }
}

#[test]
fn totals_can_be_dropped() {
    let bytes = file(3, ALL);
    let (sections, _) = v1::read(&bytes).unwrap();
    let mut writer = v1::Writer::new(Vec::new()).unwrap();
    for section in sections.iter().filter(|section| section.kind != Kind::Aggregates) {
        writer.section(section.kind, section.rank, section.payload).unwrap();
    }
    let (trace, _) = whole(&writer.finish().unwrap());
    assert_eq!((trace.sizes.aggregates, trace.ranks.len()), (0, 3));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A file that is read is written as it was.
    #[test]
    fn a_trace_without_summaries_is_written_as_it_was_read(
        kept in prop::collection::vec(any::<bool>(), 0..30),
        finalized: bool,
    ) {
        let windows = (0..).zip(&kept).map(|(at, &kept)| window(0, at, kept)).collect();
        let process = Process { finalized, ..Process::default() };
        let mut rank = RankTrace { process, windows, ..RankTrace::default() };
        rank.leave_out_summaries();
        let write = |rank: &RankTrace| {
            let mut writer = Writer::new(Vec::new()).unwrap();
            writer.rank(&rank_parts(rank)).unwrap();
            writer.finish().unwrap()
        };
        let bytes = write(&rank);
        let trace = read(&bytes).unwrap();
        prop_assert_eq!(&trace.damage, &[]);
        prop_assert_eq!(trace.windows(), kept.len() as u64);
        prop_assert_eq!(trace.kept_windows(), kept.iter().filter(|&&kept| kept).count() as u64);
        prop_assert_eq!(write(&trace.ranks[0]), bytes);
    }
}
