//! The calls that are asked for.

use ampl_core::config::keys::nearest;
use ampl_core::mpi::{FUNCTIONS, Function};
use ampl_reader::RegionEvent;
use ampl_reader::selection::Selection;
use ampl_trace::decode::Call;
use ampl_trace::gaps::{Gap, Part};

use super::Args;
use crate::failure::{Failure, USAGE};
use crate::selection;

/// Ranks, a stretch of time, and functions.
#[derive(Debug)]
pub struct Wanted {
    pub selection: Selection,
    /// Ascending; all where there are none.
    functions: Vec<u16>,
}

impl Wanted {
    /// The calls that `args` ask for.
    ///
    /// # Errors
    /// A [`Failure`] of status 2 for what cannot be read, and for a function that MPI does not have.
    pub fn of(args: &Args) -> anyhow::Result<Self> {
        let selection = selection::parse(args.from.as_deref(), args.until.as_deref(), args.ranks.as_deref())?;
        let mut functions =
            args.functions.iter().map(|name| function(name)).collect::<Result<Vec<_>, _>>()?;
        functions.sort_unstable();
        Ok(Self { selection, functions })
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

/// The function of that name, in whichever case.
fn function(name: &str) -> anyhow::Result<u16> {
    let folded = || FUNCTIONS.iter().position(|spec| spec.name.eq_ignore_ascii_case(name));
    let found = Function::by_name(name).map(|function| function.0).or_else(|| folded().map(|at| at as u16));
    found.ok_or_else(|| {
        let names = || FUNCTIONS.iter().map(|spec| spec.name);
        let prefixed = format!("MPI_{name}");
        let fix = match nearest(name, names()).or_else(|| nearest(&prefixed, names())) {
            Some(near) => format!("did you mean {near}?"),
            None => "name a function of MPI, as in MPI_Send".into(),
        };
        Failure::message(USAGE, format!("'{name}' is no function of MPI"), "--fn", fix)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_and_slips_are_told() {
        let send = Function::by_name("MPI_Send").unwrap().0;
        assert_eq!(function("MPI_Send").unwrap(), send);
        assert_eq!(function("mpi_send").unwrap(), send);
        for (slip, near) in [("MPI_Alreduce", "MPI_Allreduce?"), ("Isend", "MPI_Isend?"), ("qqqq", "as in")] {
            let error = function(slip).unwrap_err();
            assert!(Failure::has(&error, USAGE) && error.to_string().contains(near), "{error}");
        }
    }
}
