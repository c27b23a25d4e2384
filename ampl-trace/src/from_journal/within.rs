//! Part of a journal that a trace is to have, where it must not be larger than `output.max_bytes`.

use crate::grammar::{Builder, Grammar};
use crate::model::{Level, Limit, RankTrace, Step, WindowSummary};

/// Part of a journal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Within {
    /// Times of calls are stored of windows before this one.
    pub times_before: u64,
    /// True where it is stored which buffers calls have, of those that have several.
    pub buffers: bool,
    /// Share of the calls of each thread that are recorded, from the first on.
    pub calls: f64,
}

/// Everything.
impl Default for Within {
    fn default() -> Self {
        Self { times_before: u64::MAX, buffers: true, calls: 1.0 }
    }
}

impl Within {
    /// True where some calls are left out.
    pub fn cuts_calls(&self) -> bool {
        self.calls < 1.0
    }

    /// The first part of a thread's calls; `signatures` keeps what these need.
    pub(super) fn first<T>(&self, grammar: Grammar, signatures: &mut Vec<T>) -> Grammar {
        if !self.cuts_calls() {
            return grammar;
        }
        let mut left = (grammar.len() as f64 * self.calls.max(0.0)) as u64;
        let (mut builder, mut needed) = (Builder::new(), 0);
        for (terminal, count) in grammar.runs() {
            let taken = count.min(left);
            if taken == 0 {
                break;
            }
            builder.push(terminal, taken);
            // Requests name signatures of earlier calls.
            needed = needed.max(terminal as usize + 1);
            left -= taken;
        }
        signatures.truncate(needed);
        builder.into_grammar().shorter()
    }

    /// Marks windows whose times are left out, and says from when on that is so.
    pub(super) fn apply(&self, calls_slot: Option<usize>, rank: &mut RankTrace) {
        let mut first = None;
        for window in rank.windows.entries_mut() {
            if window.window >= self.times_before && window.kept {
                window.kept = false;
                first = first.or(Some((window.window, window.start_ns)));
            }
        }
        let calls = self.cuts_calls().then(|| self.calls_end(calls_slot, rank.windows.entries()));
        for (level, at) in [(Level::Structure, first), (Level::Summaries, calls)] {
            let Some((window, at)) = at else { continue };
            let at = at.max(0) as u64;
            // Nothing comes back behind it.
            let steps = &mut rank.process.steps;
            steps.retain(|step| {
                let has_calls = matches!(step.level, Level::Kept | Level::Drawn | Level::Structure);
                step.at <= at || !has_calls
            });
            steps.push(Step { window, at, level, share: 0.0, limit: Some(Limit::MaxBytes) });
            steps.sort_by_key(|step| step.at);
        }
    }

    /// The window in which the last call that is recorded lies, and its start. Threads are taken to call alike.
    fn calls_end(&self, calls_slot: Option<usize>, windows: &[WindowSummary]) -> (u64, i64) {
        let calls = |window: &WindowSummary| {
            let cell = calls_slot.and_then(|slot| window.cells.get(slot));
            cell.map_or(0.0, |cell| cell.sum) * window.count() as f64
        };
        let mut left = self.calls * windows.iter().map(calls).sum::<f64>();
        let reached = windows.iter().find(|window| {
            left -= calls(window);
            left < 0.0
        });
        reached.or(windows.first()).map_or((0, 0), |window| (window.window, window.start_ns))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cells::{Cell, Cells};

    fn terminals(grammar: &Grammar) -> Vec<u32> {
        grammar.runs().flat_map(|(terminal, count)| (0..count).map(move |_| terminal)).collect()
    }

    proptest! {
        #[test]
        fn the_first_calls_are_those_of_the_whole(calls in prop::collection::vec(0..4u32, 0..200), share in 0.0..=1.0f64) {
            let mut builder = Builder::new();
            calls.iter().for_each(|&call| builder.push(call, 1));
            let within = Within { calls: share, ..Within::default() };
            let mut signatures = vec![0, 1, 2, 3];
            let first = terminals(&within.first(builder.into_grammar(), &mut signatures));
            prop_assert_eq!(&first[..], &calls[..(calls.len() as f64 * share) as usize]);
            let needed = if share < 1.0 { first.iter().max().map_or(0, |most| most + 1) } else { 4 };
            prop_assert_eq!(signatures.len(), needed as usize);
        }
    }

    /// Windows of 10 ns with ten calls each.
    fn rank() -> RankTrace {
        let window = |window: u64| {
            let cells: Cells = std::iter::once(Cell::one(10.0)).collect();
            let start_ns = 10 * window as i64;
            WindowSummary { window, start_ns, end_ns: start_ns + 10, kept: true, cells, ..Default::default() }
        };
        RankTrace { windows: (0..8).map(window).collect(), ..RankTrace::default() }
    }

    fn steps(rank: &RankTrace) -> Vec<(Level, u64, u64)> {
        rank.process.steps.iter().map(|step| (step.level, step.window, step.at)).collect()
    }

    #[test]
    fn what_is_left_out_is_marked_and_told() {
        let mut whole = rank();
        Within::default().apply(Some(0), &mut whole);
        assert_eq!(whole, rank());
        let mut some = rank();
        some.process.steps = vec![
            Step { level: Level::Structure, at: 20, share: 0.5, ..Step::default() },
            Step { level: Level::Kept, at: 60, share: 0.1, ..Step::default() },
        ];
        Within { times_before: 5, ..Within::default() }.apply(Some(0), &mut some);
        let kept: Vec<bool> = some.windows.entries().iter().map(|window| window.kept).collect();
        assert_eq!(kept, [true, true, true, true, true, false, false, false]);
        assert_eq!(steps(&some), [(Level::Structure, 0, 20), (Level::Structure, 5, 50)]);
        let mut less = rank();
        Within { times_before: 0, buffers: true, calls: 0.5 }.apply(Some(0), &mut less);
        assert!(less.windows.entries().iter().all(|window| !window.kept));
        assert_eq!(steps(&less), [(Level::Structure, 0, 0), (Level::Summaries, 4, 40)]);
        assert!(less.process.steps.iter().all(|step| step.limit == Some(Limit::MaxBytes)));
    }
}
