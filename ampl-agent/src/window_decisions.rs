//! Decisions about windows whose calls are buffered until then.

use std::collections::VecDeque;

use ampl_core::config::Keep as Timing;
use ampl_core::draw::Keep;
use ampl_core::message::RetrospectiveShape;
use ampl_core::plan::Plan;
use ampl_core::units::{Rank, WindowId};

/// Windows that get a retrospective decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DecisionTiming {
    None,
    /// Windows that begin before the client's first directive has come.
    First,
    All,
}

impl DecisionTiming {
    /// Timing for `rank`, by `second`, the plan's retrospective decision.
    pub fn of(plan: &Plan, rank: Rank, second: Option<&RetrospectiveShape>) -> Self {
        let group = plan.group_of(rank);
        let second = second.filter(|second| second.group(group).is_some());
        let chosen = plan.config.trace.stored() != Timing::Off && !plan.groups[group].pinned.contains(rank);
        match second.filter(|_| chosen) {
            None => Self::None,
            Some(second) if second.until.is_some() => Self::First,
            Some(_) => Self::All,
        }
    }

    /// True where a window under the directive of that update is decided retrospectively.
    pub fn decides(self, update: u64) -> bool {
        match self {
            Self::None => false,
            Self::First => update == 0,
            Self::All => true,
        }
    }
}

/// The draw of a window that began before the directive that draws it had come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LateDraw {
    pub keep: Keep,
    /// The stratum, where the rank's group is divided.
    pub stratum: Option<u16>,
    /// The directive's.
    pub update: u64,
}

/// Closed windows that are not decided yet, and which of the others are kept.
///
/// A decision may also never come, or too late: the draw at the window's beginning holds then.
#[derive(Debug, Default)]
pub(crate) struct WindowDecisions {
    undecided: VecDeque<Undecided>,
    /// Every window below is decided.
    through: u64,
    /// Windows below `through` that were buffered and are kept, ascending; the first of several that were closed
    /// together.
    kept: Vec<u64>,
}

/// A window that is over, or several that were closed together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Undecided {
    /// The first.
    pub window: WindowId,
    /// The last.
    pub last: WindowId,
    /// True where all of its calls are buffered.
    pub whole: bool,
    /// Draw at its beginning.
    pub drawn: bool,
}

impl WindowDecisions {
    /// Takes windows that are to be decided.
    pub fn close(&mut self, windows: Undecided) {
        self.undecided.push_back(windows);
    }

    /// The oldest that is undecided: the first and the last of the windows closed together.
    pub fn oldest(&self) -> Option<(WindowId, WindowId)> {
        self.undecided.front().map(|windows| (windows.window, windows.last))
    }

    /// Takes the decision about `window`; `None` where the draw at its beginning holds, as for every older one. Returns
    /// it, unless it comes too late.
    pub fn judge(&mut self, window: WindowId, keep: Option<Keep>) -> Option<Keep> {
        if window.0 < self.through {
            return None;
        }
        let mut taken = None;
        while self.undecided.front().is_some_and(|next| next.window <= window) {
            let Some(next) = self.undecided.pop_front() else { break };
            // Where several were closed together, no decision is about them all.
            let decided = keep.filter(|_| next.window == window && next.last == window);
            taken = taken.or(decided);
            if next.whole && decided.map_or(next.drawn, |keep| keep.kept) {
                self.kept.push(next.window.0);
            }
        }
        self.through = self.through.max(window.next().0);
        taken
    }

    /// Decides by their draws the windows up to `window`, for which there is no more room.
    pub fn force(&mut self, window: WindowId) {
        self.judge(window, None);
    }

    /// The open window is decided before it is over, and may be forced anew.
    pub fn force_open(&mut self, window: WindowId, drawn: bool) {
        self.judge(window, None);
        if drawn && self.kept.last() != Some(&window.0) {
            self.kept.push(window.0);
        }
    }

    /// True where `window` is kept; `None` while it is undecided.
    pub fn of(&self, window: WindowId) -> Option<bool> {
        (window.0 < self.through).then(|| self.kept.binary_search(&window.0).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(kept: bool) -> Option<Keep> {
        Some(Keep { kept, probability: 0.5 })
    }

    #[test]
    fn decisions_come_in_order_and_what_they_pass_over_falls_back() {
        let mut decisions = WindowDecisions::default();
        for (window, drawn) in [(0, true), (1, false), (2, true), (3, false), (4, true)] {
            let window = WindowId(window);
            decisions.close(Undecided { window, last: window, whole: window.0 != 4, drawn });
        }
        assert_eq!(decisions.of(WindowId(0)), None);
        assert_eq!(decisions.judge(WindowId(1), keep(true)), keep(true));
        let of =
            |decisions: &WindowDecisions| [0, 1, 2, 3, 4, 5].map(|window| decisions.of(WindowId(window)));
        assert_eq!(of(&decisions), [Some(true), Some(true), None, None, None, None]);
        assert_eq!(decisions.judge(WindowId(0), keep(false)), None, "too late");
        decisions.force(WindowId(2));
        assert_eq!(decisions.judge(WindowId(2), keep(false)), None);
        assert_eq!(decisions.judge(WindowId(4), keep(true)), keep(true), "and yet it is not whole");
        assert_eq!(of(&decisions), [Some(true), Some(true), Some(true), Some(false), Some(false), None]);
        decisions.force_open(WindowId(5), true);
        assert_eq!(decisions.of(WindowId(5)), Some(true));
        decisions.close(Undecided { window: WindowId(6), last: WindowId(9), whole: true, drawn: true });
        assert_eq!(decisions.judge(WindowId(9), keep(false)), None, "of several no decision is made");
        assert_eq!(decisions.of(WindowId(6)), Some(true));
    }
}
