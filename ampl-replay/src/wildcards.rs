//! Sources of receives from any source, as they were recorded.
//!
//! A receive that returns with its status tells its source itself. That of a nonblocking one is known where it is
//! completed: a second walk over the rank's calls goes ahead as far as that.

use std::collections::{HashMap, VecDeque};

use ampl_core::value::Value;
use ampl_reader::Call;

use crate::completions::{completed, input, output, source_of};

/// Sources of a rank's wildcard receives, in the order of the calls that post them.
#[derive(Debug)]
pub struct Sources<I> {
    calls: I,
    /// Receives that were not asked for.
    known: VecDeque<Found>,
    /// Number of the first in `known`.
    first: u64,
    /// Receives that are posted and not completed, by request.
    open: HashMap<u64, u64>,
    ended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Open,
    Source(Option<i64>),
}

/// True for a call that receives from, or probes for, any source.
pub fn is_wildcard(call: &Call) -> bool {
    matches!(input(call, "source"), Some(Value::Name(name)) if name == "MPI_ANY_SOURCE")
}

/// True where every start of what the call makes may find another source.
fn is_persistent(call: &Call) -> bool {
    call.function.name().ends_with("_init")
}

impl<I: Iterator<Item = Call>> Sources<I> {
    /// The sources in `calls`, which are all of the rank's, from the first.
    pub fn new(calls: I) -> Self {
        let (known, open) = (VecDeque::new(), HashMap::new());
        Self { calls, known, first: 0, open, ended: false }
    }

    /// Source of the next wildcard receive; `None` where it is not recorded.
    pub fn next_source(&mut self) -> Option<i64> {
        while !self.ended && matches!(self.known.front(), None | Some(Found::Open)) {
            match self.calls.next() {
                Some(call) => self.take(&call),
                None => self.ended = true,
            }
        }
        let found = self.known.pop_front()?;
        self.first += 1;
        match found {
            Found::Source(source) => source,
            Found::Open => None,
        }
    }

    fn take(&mut self, call: &Call) {
        if is_wildcard(call) && !crate::completions::is_failed_poll(call) {
            let number = self.first + self.known.len() as u64;
            let found = match (output(call, "status"), output(call, "request")) {
                (Some(status), _) => Found::Source(source_of(status)),
                (None, Some(Value::Object(_, request))) if !is_persistent(call) => {
                    self.open.insert(*request, number);
                    Found::Open
                }
                _ => Found::Source(None),
            };
            self.known.push_back(found);
        }
        for one in completed(call) {
            let number = one.request.and_then(|request| self.open.remove(&request));
            self.resolve(number, one.source);
        }
        // Its source will never be known.
        if call.function.name() == "MPI_Request_free"
            && let Some(Value::Object(_, request)) = input(call, "request")
        {
            let number = self.open.remove(request);
            self.resolve(number, None);
        }
    }

    fn resolve(&mut self, number: Option<u64>, source: Option<i64>) {
        let index = number.and_then(|number| number.checked_sub(self.first));
        if let Some(found) = index.and_then(|index| self.known.get_mut(index as usize)) {
            // A cancelled receive has no source.
            *found = Found::Source(source.filter(|&source| source >= 0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::completions::tests::{call, request};

    fn any() -> (&'static str, Value) {
        ("source", Value::Name("MPI_ANY_SOURCE".into()))
    }

    fn status(source: i64) -> Value {
        Value::Status { source, tag: 3 }
    }

    fn posted(name: u64) -> Call {
        call("MPI_Irecv", vec![any()], vec![("request", request(name))])
    }

    fn waited(name: u64, source: i64) -> Call {
        call("MPI_Wait", vec![("request", request(name))], vec![("status", status(source))])
    }

    #[test]
    fn sources_come_in_the_order_of_posting() {
        let named = vec![("source", Value::Int(4))];
        let calls = vec![
            posted(1),
            posted(2),
            call("MPI_Recv", vec![any()], vec![("status", status(9))]),
            call("MPI_Irecv", named, vec![("request", request(3))]),
            waited(2, 5),
            waited(3, 4),
            // The name is used again.
            posted(2),
            waited(1, 6),
            waited(2, 8),
        ];
        let mut sources = Sources::new(calls.into_iter());
        let found: Vec<_> = std::iter::repeat_with(|| sources.next_source()).take(5).collect();
        assert_eq!(found, [Some(6), Some(5), Some(9), Some(8), None]);
    }

    #[test]
    fn what_is_freed_or_never_completed_has_no_source() {
        let freed = call("MPI_Request_free", vec![("request", request(1))], Vec::new());
        let calls = vec![posted(1), posted(2), freed, waited(2, -1), posted(3)];
        let mut sources = Sources::new(calls.into_iter());
        let found: Vec<_> = std::iter::repeat_with(|| sources.next_source()).take(3).collect();
        assert_eq!(found, [None; 3]);
    }

    #[test]
    fn the_second_walk_goes_no_further_than_it_must() {
        let calls = vec![posted(1), waited(1, 2), posted(3), waited(3, 4)];
        let mut sources = Sources::new(calls.into_iter());
        assert_eq!(sources.next_source(), Some(2));
        assert_eq!(sources.calls.len(), 2);
    }
}
