//! Failed polls in a row: a rank that asks again and again for a message waits for it.

use ampl_core::mpi::Function;
use ampl_trace::decode::Timed;

use crate::matching::{At, Terminal};

/// Failed polls of a function, with no other call between them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Row {
    /// Polls up to here, where the latest call is one.
    latest: Option<Polls>,
    /// Polls before the call under way that belong to it.
    of_call: Option<Polls>,
}

#[derive(Clone, Copy, Debug)]
struct Polls {
    function: Function,
    start_ns: i64,
    /// Time in the polls.
    in_calls_ns: u64,
}

/// True for polls that find a message and do not receive it.
fn probes(function: Function) -> bool {
    matches!(function.name(), "MPI_Iprobe" | "MPI_Improbe")
}

impl Row {
    /// Takes up the call `at`. Polls are before a call of their function, which is the one that succeeds; and where this has
    /// found a message, before the next call.
    pub fn pass(&mut self, at: &At, terminal: &Terminal) {
        let function = terminal.function;
        let before = self.latest.take();
        let same = before.filter(|polls| polls.function == function);
        self.of_call = same.or(before.filter(|polls| probes(polls.function)));
        let goes_on = terminal.misses || probes(function) && same.is_some();
        let Some(timed) = at.timed.filter(|_| goes_on) else { return };
        let mut polls = same.unwrap_or(Polls { function, start_ns: timed.start_ns, in_calls_ns: 0 });
        polls.in_calls_ns = polls.in_calls_ns.saturating_add(timed.duration_ns.unwrap_or(0));
        self.latest = Some(polls);
    }

    /// Times of the polls and the call behind them as of one call, and the time in them all.
    pub fn and(&self, call: Timed) -> (Timed, u64) {
        let duration = call.duration_ns.unwrap_or(0);
        let Some(Polls { start_ns, in_calls_ns, .. }) = self.of_call else { return (call, duration) };
        let end_ns = call.start_ns.saturating_add_unsigned(duration);
        let whole = Timed { start_ns, duration_ns: Some(end_ns.abs_diff(start_ns)), ..call };
        (whole, in_calls_ns.saturating_add(duration))
    }
}
