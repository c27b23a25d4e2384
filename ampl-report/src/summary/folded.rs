//! Windows that are stored in a row, held against an entry for each window.

use std::borrow::Cow;
use std::path::Path;

use ampl_analysis::{efficiency, estimate, what_if};
use ampl_reader::cells::Cells;
use ampl_reader::model::{Level, Step, WindowSummary};
use ampl_reader::{Trace, directory};
use ampl_testkit::synthetic::Synthetic;
use proptest::prelude::*;

use super::{Source, text};
use crate::layout::WIDTH;

/// Change of a rank's windows from one on.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// Several windows, this one the first, have neither length nor summary.
    Bare(u64),
    /// Several are as this one.
    Alike(u64),
    /// Its summary is missing.
    Unsummarised,
    /// Calls are only counted until the end.
    Counted,
}

fn change() -> impl Strategy<Value = (u32, usize, Change)> {
    let of = prop_oneof![
        (1..9u64).prop_map(Change::Bare),
        (2..5u64).prop_map(Change::Alike),
        Just(Change::Unsummarised),
        Just(Change::Counted),
    ];
    (0..6u32, 0..12usize, of)
}

/// A run with these changes, windows in a row in one entry.
fn folded(config: &str, changes: &[(u32, usize, Change)]) -> Trace {
    let job = Synthetic { config: config.into(), ranks: 6, size: 3, ..Synthetic::default() };
    let mut trace = job.trace();
    for &(rank, window, change) in changes {
        let rank = &mut trace.ranks[rank as usize];
        let elapsed_ns = rank.process.elapsed_ns;
        let windows = rank.windows.entries_mut();
        let Some(index) = windows.len().checked_sub(1).map(|last| window.min(last)) else { continue };
        match change {
            Change::Counted => {
                let (window, at) = (windows[index].window, elapsed_ns / 12 * windows[index].window);
                let step = Step { window, at, level: Level::Off, share: 0.5, limit: None };
                rank.process.steps = vec![step];
                windows[index..].iter_mut().for_each(|window| window.cells = Cells::default());
            }
            Change::Unsummarised => windows[index].cells = Cells::default(),
            Change::Alike(count) | Change::Bare(count) => {
                let count = count.min((windows.len() - index) as u64);
                if windows[index..index + count as usize].iter().any(|window| window.repeat > 1) {
                    continue;
                }
                let last = windows[index + count as usize - 1].clone();
                let mut first = windows[index].clone();
                (first.repeat, first.end_ns, first.own_ns) = (count, last.end_ns, first.own_ns * count);
                if matches!(change, Change::Bare(_)) {
                    let window = first.window;
                    first = WindowSummary { window, repeat: count, ..WindowSummary::default() };
                }
                windows.splice(index..index + count as usize, [first]);
            }
        }
    }
    trace
}

/// Oracle: the same with an entry for each window.
fn spread(config: &str, changes: &[(u32, usize, Change)]) -> Trace {
    let mut trace = folded(config, changes);
    for rank in &mut trace.ranks {
        rank.windows = rank.windows.iter().map(Cow::into_owned).collect();
    }
    trace
}

/// All that commands say of windows.
fn said(trace: &Trace) -> Vec<String> {
    let plan = directory::plan(&trace.run).expect("its configuration is a good one");
    vec![
        text(trace, &Source { run: Path::new("r"), has_file: true, width: WIDTH }),
        format!("{:?}", efficiency::run_times(trace)),
        format!("{:?}", efficiency::rows(trace)),
        format!("{:?}", efficiency::parts(trace, &[0..3, 3..7, 7..20])),
        format!("{:?}", estimate::rows(trace, &plan)),
        format!("{:?}", estimate::windows_lacking(trace, &plan)),
        format!("{:?}", what_if::kept_row(trace, &plan)),
        format!("{:?}", (trace.windows(), trace.rank_windows(), trace.kept_windows())),
    ]
}

#[test]
fn an_entry_may_stand_for_several_windows() {
    let trace = folded("", &[(1, 4, Change::Bare(6))]);
    assert_eq!(trace.ranks[1].windows.entries().len(), 7);
    assert_eq!(trace.ranks[1].windows.count(), 12);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn windows_in_a_row_count_as_each_of_them(
        summaries in prop::sample::select(&["all", "sample", "off"][..]),
        sampled: bool,
        changes in prop::collection::vec(change(), 1..9),
    ) {
        let sampled = if sampled { "summaries = 'sampled'\nselection = 'predictive'\n" } else { "" };
        let config = format!("[sampling]\n{sampled}[output]\nrank_summaries = '{summaries}'\n");
        let (folded, spread) = (folded(&config, &changes), spread(&config, &changes));
        for (one, other) in said(&folded).iter().zip(said(&spread)) {
            prop_assert_eq!(one, &other);
        }
    }
}
