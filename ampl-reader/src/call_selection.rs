//! Calls of a run: those of some ranks, functions and a stretch of time.

use ampl_trace::decode::Call;
use ampl_trace::gaps::{Gap, Part};
use ampl_trace::regions::RegionEvent;

use crate::selection::Selection;

/// Ranks, a stretch of time, and functions.
#[derive(Clone, Debug)]
pub struct CallSelection {
    /// Ranks and time.
    pub selection: Selection,
    /// Ascending; all where there are none.
    functions: Vec<u16>,
}

impl CallSelection {
    /// Calls of `functions` in `selection`; all calls without functions.
    pub fn new(selection: Selection, mut functions: Vec<u16>) -> Self {
        functions.sort_unstable();
        Self { selection, functions }
    }

    /// True where `call` is asked for.
    pub fn takes(&self, call: &Call) -> bool {
        self.takes_function(call)
            && match call.timed {
                Some(timed) => self.selection.takes_time(timed.start_ns, timed.duration_ns),
                None => !self.selection.cuts_time(),
            }
    }

    /// True where `call` might be asked for, but its time is not stored.
    pub fn lacks_time(&self, call: &Call) -> bool {
        self.takes_function(call) && self.selection.cuts_time() && call.timed.is_none()
    }

    /// True where `gap` may hold calls that are asked for.
    pub fn takes_gap(&self, gap: &Gap) -> bool {
        let has = |part: &Part| self.functions.binary_search(&part.function).is_ok();
        let known = gap.parts.iter().map(|part| part.calls).sum::<u64>() == gap.calls;
        let function = self.functions.is_empty() || !known || gap.parts.iter().any(has);
        let time = gap.span_ns.is_none_or(|(from, until)| {
            self.selection.takes_time(from, Some(until.saturating_sub(from).max(0) as u64))
        });
        function && time
    }

    /// True where `event` is asked for.
    pub fn takes_region(&self, event: &RegionEvent) -> bool {
        self.functions.is_empty()
            && match event.timed {
                Some(moment) => self.selection.takes_time(moment.at_ns, Some(0)),
                None => !self.selection.cuts_time(),
            }
    }

    /// True where not every call of a rank is asked for.
    pub fn is_part(&self) -> bool {
        !self.functions.is_empty() || self.selection.cuts_time()
    }

    fn takes_function(&self, call: &Call) -> bool {
        self.functions.is_empty() || self.functions.binary_search(&call.function.0).is_ok()
    }
}
