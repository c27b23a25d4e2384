//! Calls of a run as rows: plain numbers and names, one rank after the other.

use std::collections::HashMap;
use std::io;

use ampl_analysis::calls::{Objects, moved_bytes};
use ampl_core::plan::Plan;
use ampl_core::value::Value;
use ampl_reader::selection::Selection;
use ampl_reader::sites::Symbols;
use ampl_trace::communicators::Communicators;
use ampl_trace::decode::{Call, Calls};
use ampl_trace::model::WindowSummary;
use ampl_trace::{RankTrace, Trace};

/// Calls that were written, and calls that were not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Rows.
    pub rows: u64,
    /// Calls left out because their times are not stored, where a time is needed.
    pub untimed: u64,
    /// Ranks with a call that cannot be read.
    pub damaged: u64,
}

/// A call of a rank.
#[derive(Debug)]
pub struct CallRow<'a> {
    /// The rank in `MPI_COMM_WORLD`.
    pub rank: u32,
    /// The call.
    pub call: &'a Call,
    /// Its place in the program, where that is known.
    pub site: Option<&'a str>,
    /// Number of calls that it stands for in a total over all ranks and windows; `None` where its time is not stored.
    pub weight: Option<f64>,
    /// Bytes that it sends and receives; `None` where these are not known.
    pub moved: Option<(u64, u64)>,
    /// Its communicator.
    pub comm: Option<String>,
}

/// Calls of a run that are asked for.
pub struct CallRows<'a> {
    trace: &'a Trace,
    plan: &'a Plan,
    selection: &'a Selection,
    /// True where calls without a stored time are of no use.
    needs_times: bool,
    comms: &'a Communicators,
    symbols: Symbols,
    /// Calls that were given out, and those that were not.
    pub written: Written,
}

impl<'a> CallRows<'a> {
    /// The calls of `trace` in `selection`; calls without a stored time only where those are of use.
    pub fn new(
        trace: &'a Trace,
        comms: &'a Communicators,
        plan: &'a Plan,
        selection: &'a Selection,
        needs_times: bool,
    ) -> Self {
        Self {
            trace,
            plan,
            selection,
            needs_times: needs_times || selection.cuts_time(),
            comms,
            symbols: Symbols::default(),
            written: Written::default(),
        }
    }

    /// The ranks that are asked for.
    pub fn ranks(&self) -> impl Iterator<Item = &'a RankTrace> + use<'a> {
        let selection = self.selection;
        self.trace.ranks.iter().filter(|rank| selection.takes_rank(rank.process.rank))
    }

    /// Start of the earliest call, nanoseconds since T0, where that is before T0; 0 otherwise. `MPI_Init` begins before
    /// the clock's zero.
    pub fn zero_ns(&self) -> i64 {
        let first = |rank: &RankTrace| {
            let structure = self.trace.structure.rank(rank.process.rank)?;
            let call = Calls::naming(&structure, rank, self.comms).next()?.ok()?;
            Some(call.timed?.start_ns)
        };
        self.ranks().filter_map(first).fold(0, i64::min)
    }

    /// Gives the calls of `rank` to `each`, thread by thread in program order.
    ///
    /// # Errors
    /// The first error of `each`.
    pub fn of_rank(
        &mut self,
        rank: &RankTrace,
        mut each: impl FnMut(&CallRow<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.symbols.next_rank();
        let structure = self.trace.structure.rank(rank.process.rank).unwrap_or_default();
        let weights = weights(rank, self.plan);
        let mut objects = Objects::of(&structure, self.trace.run.ranks);
        // By thread and signature: calls are many, signatures few.
        let mut moved: HashMap<(u32, u32), Option<(u64, u64)>> = HashMap::new();
        for call in Calls::naming(&structure, rank, self.comms) {
            let Ok(call) = call else {
                self.written.damaged += 1;
                break;
            };
            if self.needs_times {
                let Some(timed) = call.timed else {
                    self.written.untimed += call.count;
                    continue;
                };
                if !self.selection.takes_time(timed.start_ns, timed.duration_ns) {
                    continue;
                }
            }
            let moved = *moved.entry((call.thread, call.terminal)).or_insert_with(|| {
                let thread = structure.threads.iter().find(|thread| thread.thread == call.thread)?;
                moved_bytes(thread.signatures.get(call.terminal as usize)?, &mut objects)
            });
            each(&CallRow {
                rank: rank.process.rank,
                call: &call,
                site: call.site.and_then(|site| self.symbols.site(rank, site)).as_deref(),
                weight: call.timed.and_then(|timed| weights.get(&timed.window).copied()),
                moved,
                comm: argument(&call, &["comm"]).map(ToString::to_string),
            })?;
            self.written.rows += 1;
        }
        Ok(())
    }
}

impl CallRow<'_> {
    /// The rank in the communicator that the message goes to or comes from; for a wildcard the actual source.
    pub fn peer(&self) -> Option<i64> {
        peer(self.call)
    }

    /// Bytes that it sends, or receives where it sends none; `None` where these are not known.
    pub fn bytes(&self) -> Option<u64> {
        self.moved.map(|(sent, received)| if sent > 0 { sent } else { received })
    }

    /// Root of a rooted collective, in its communicator.
    pub fn root(&self) -> Option<u32> {
        argument(self.call, &["root"]).and_then(number).and_then(|root| u32::try_from(root).ok())
    }

    /// The message's tag; for a wildcard that of the message that came.
    pub fn tag(&self) -> Option<i64> {
        tag(self.call)
    }
}

/// Design weight of the calls in each window.
fn weights(rank: &RankTrace, plan: &Plan) -> HashMap<u64, f64> {
    let weight = |window: &WindowSummary| match window.inclusion() {
        _ if plan.config.stores_everything() => Some(1.0),
        probability if probability > 0.0 => Some(1.0 / probability),
        _ => None,
    };
    let kept = rank.windows.iter().filter(|window| window.kept);
    kept.filter_map(|window| Some((window.window, weight(&window)?))).collect()
}

fn argument<'a>(call: &'a Call, names: &[&str]) -> Option<&'a Value> {
    let value = |name: &&str| call.args.iter().find(|(own, _)| own == name).map(|(_, value)| value);
    names.iter().find_map(value)
}

/// Source and tag of the message that a call received, from its one status.
fn status(call: &Call) -> Option<(i64, i64)> {
    call.out.iter().find_map(|(name, value)| match value {
        Value::Status { source, tag } if *name == "status" => Some((*source, *tag)),
        _ => None,
    })
}

fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        _ => None,
    }
}

/// The rank in the communicator that the message goes to or comes from; for a wildcard the actual source.
fn peer(call: &Call) -> Option<i64> {
    let named = argument(call, &["dest", "target_rank", "source"])?;
    let got = || status(call).map(|(source, _)| source).filter(|&source| source >= 0);
    number(named).or_else(|| is_wildcard(named).then(got).flatten())
}

fn tag(call: &Call) -> Option<i64> {
    let named = argument(call, &["tag", "sendtag"])?;
    let got = || status(call).map(|(_, tag)| tag).filter(|&tag| tag >= 0);
    number(named).or_else(|| is_wildcard(named).then(got).flatten())
}

fn is_wildcard(value: &Value) -> bool {
    matches!(value, Value::Name(name) if name == "MPI_ANY_SOURCE" || name == "MPI_ANY_TAG")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ampl_testkit::runs::decoded;

    #[test]
    fn peers_are_numbers_or_the_message_s() {
        let call = |source: Value, out: Vec<(&'static str, Value)>| {
            let tag = Value::Name("MPI_ANY_TAG".into());
            decoded("MPI_Recv", vec![("source", source), ("tag", tag)], out)
        };
        let any = || Value::Name("MPI_ANY_SOURCE".into());
        let told = || vec![("status", Value::Status { source: 3, tag: 9 })];
        assert_eq!((peer(&call(any(), told())), tag(&call(any(), told()))), (Some(3), Some(9)));
        assert_eq!((peer(&call(any(), Vec::new())), tag(&call(any(), Vec::new()))), (None, None));
        assert_eq!(peer(&call(Value::Int(5), told())), Some(5));
        assert_eq!(peer(&call(Value::Name("MPI_PROC_NULL".into()), told())), None);
    }
}
