//! Ranks that receive late, and those that their receives name.

use std::collections::BTreeSet;

use ampl_core::mpi::traffic::{Ends, NOBODY};
use ampl_core::mpi::{FUNCTION_COUNT, Function, PREDEFINED};
use ampl_core::units::RankSet;
use ampl_trace::Trace;
use ampl_trace::args::index_of_predefined;
use ampl_trace::record::GAP;
use ampl_trace::structure::Signature;

use crate::calls::{Arguments, is_whole};

/// Share of the longest time in messages from which on a rank waits as the longest does, in (0, 1).
const WAITS: f64 = 0.5;
/// Most waiting ranks whose receives are read.
const MOST: usize = 64;
/// Most words and positions of a rank's structure.
const MOST_EXTENT: u64 = 1 << 22;

/// Ranks that wait for messages, and the senders of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Senders {
    /// The ranks that wait.
    pub waiting: RankSet,
    /// The ranks that their receives name, none of which waits as long.
    pub senders: RankSet,
}

/// The senders that ranks wait for, by the `ranks`' time in messages, nanoseconds; `None` where all ranks wait, or a
/// receive of one that does names another such rank, any rank, or a rank of another communicator than the world.
pub fn of(trace: &Trace, ranks: &[(u32, f64)]) -> Option<Senders> {
    let longest = ranks.iter().map(|rank| rank.1).fold(0.0, f64::max);
    let long = ranks.iter().filter(|rank| rank.1 >= WAITS * longest);
    let waiting: BTreeSet<u32> = long.map(|rank| rank.0).collect();
    if longest <= 0.0 || waiting.len() > MOST || waiting.len() as u64 >= u64::from(trace.run.ranks) {
        return None;
    }
    let (mut senders, mut read) = (BTreeSet::new(), 0);
    for selected in trace.structure.select(|_| true).filter(|of| waiting.contains(&of.rank)) {
        let structure = selected.structure().filter(|_| selected.extent <= MOST_EXTENT)?;
        let signatures = structure.threads.iter().flat_map(|thread| &thread.signatures);
        let mut own = BTreeSet::new();
        for signature in signatures {
            own.extend(source(signature)?);
        }
        if own.is_empty() || own.iter().any(|rank| waiting.contains(rank)) {
            return None;
        }
        senders.extend(own);
        read += 1;
    }
    let all = read == waiting.len();
    all.then(|| Senders { waiting: RankSet::from_iter(waiting), senders: RankSet::from_iter(senders) })
}

/// The rank of the world that a receive names, if `signature` is one; `None` where it names something else.
fn source(signature: &Signature) -> Option<Option<u32>> {
    match signature.function {
        GAP => return None,
        // An edge of a region.
        function if usize::from(function) >= FUNCTION_COUNT => return Some(None),
        _ => {}
    }
    let Some(ends) = Ends::of(Function(signature.function).spec()) else { return Some(None) };
    let call = Arguments::of(signature).filter(|_| is_whole(signature))?;
    let named = ends.named(&call.words);
    if named.source == NOBODY {
        return Some(None);
    }
    let comm = index_of_predefined(named.comm as u64).and_then(|index| PREDEFINED.get(index))?;
    (comm.1 == "MPI_COMM_WORLD").then_some(())?;
    u32::try_from(named.source).ok().map(Some)
}

#[cfg(test)]
mod tests {
    use ampl_testkit::runs::{Caller, structure, world};

    use super::*;

    fn job(program: impl Fn(&mut Caller)) -> Trace {
        let mut trace = Trace { structure: structure(4, program), ..Trace::default() };
        trace.run.ranks = 4;
        trace
    }

    #[test]
    fn receives_that_name_ranks_which_do_not_wait_are_for_late_senders() {
        let times = [(0, 1.0), (1, 9.0), (2, 2.0), (3, 10.0)];
        let pairs = job(|rank| match rank.rank() {
            own if own % 2 == 0 => rank.send(10, i64::from(own) + 1, 1, world()),
            own => rank.receive(11, i64::from(own) - 1, i64::from(own) - 1, 1, world()),
        });
        let set = |text: &str| RankSet::parse(text).unwrap();
        assert_eq!(of(&pairs, &times), Some(Senders { waiting: set("1,3"), senders: set("0,2") }));
        // All wait alike; nobody waits.
        assert_eq!(of(&pairs, &times.map(|(rank, _)| (rank, 5.0))), None);
        assert_eq!((of(&pairs, &times.map(|(rank, _)| (rank, 0.0))), of(&pairs, &[])), (None, None));
        // Each waits for another that waits.
        assert_eq!(of(&pairs, &[(0, 10.0), (1, 9.0), (2, 2.0), (3, 1.0)]), None);
        // From any source, on another communicator, or not recorded: it is not known for whom.
        let any = job(|rank| rank.receive(11, -1, 0, 1, world()));
        let other = job(|rank| {
            rank.split(0, 0, 77, (4, 0));
            rank.receive(11, 0, 0, 1, 77);
        });
        let gap = job(|rank| {
            rank.receive(11, 0, 0, 1, world());
            rank.gap();
        });
        for unknown in [any, other, gap] {
            assert_eq!(of(&unknown, &times), None);
        }
    }
}
