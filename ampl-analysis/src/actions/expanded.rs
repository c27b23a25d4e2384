//! Collectives as messages: every rank waits for the same ranks as in the collective.

use crate::matching::{Collective, Needs, Pairing, Root};

/// A message between members, by their places in the communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Sender.
    pub from: usize,
    /// Receiver.
    pub to: usize,
    /// Bytes.
    pub bytes: u64,
}

/// Rounds of messages for the calls of all members in their order; `None` where bytes are not known.
pub fn messages(calls: &[&Collective]) -> Option<Vec<Vec<Message>>> {
    let first = calls.first()?;
    let size = calls.len();
    let root = match first.root {
        Some(Root::Rank(root)) => usize::try_from(root).ok().filter(|&root| root < size)?,
        Some(Root::Group) => return None,
        None => 0,
    };
    let others = || (0..size).filter(move |&member| member != root);
    let one = |from: usize, to: usize, bytes: Option<u64>| Some(Message { from, to, bytes: bytes? });
    let own = |member: usize| calls[member].sends.at(0).or_else(|| calls[member].receives.at(0));
    Some(match (first.needs, first.pairing) {
        (Needs::Others, _) => return None,
        (Needs::Root, _) => {
            let to =
                others().map(|to| one(root, to, calls[to].receives.at(0).or_else(|| calls[to].sends.at(0))));
            vec![to.collect::<Option<_>>()?]
        }
        (Needs::RootNeedsAll, _) => {
            vec![others().map(|from| one(from, root, own(from))).collect::<Option<_>>()?]
        }
        (Needs::Lower, _) => {
            (1..size).map(|to| Some(vec![one(to - 1, to, own(to - 1))?])).collect::<Option<_>>()?
        }
        (Needs::All, Pairing::Between) => {
            let pairs = (0..size).flat_map(|from| (0..size).map(move |to| (from, to)));
            let between = |(from, to): (usize, usize)| {
                one(from, to, calls[from].sends.at(to).or_else(|| calls[to].receives.at(from)))
            };
            vec![pairs.filter(|(from, to)| from != to).map(between).collect::<Option<_>>()?]
        }
        // Each round the ranks that a rank knows of double.
        (Needs::All, pairing) => {
            let bytes = |member| if pairing == Pairing::Free { Some(0) } else { own(member) };
            let distances = std::iter::successors(Some(1), |distance| Some(distance * 2));
            distances
                .take_while(|&distance| distance < size)
                .map(|distance| {
                    (0..size).map(|from| one(from, (from + distance) % size, bytes(from))).collect()
                })
                .collect::<Option<_>>()?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::Blocks;
    use ampl_core::mpi::Function;

    fn call(name: &str, needs: Needs, pairing: Pairing, root: Option<Root>) -> Collective {
        let function = Function::by_name(name).unwrap();
        let (sends, receives) = (Blocks::Each(8), Blocks::Each(8));
        Collective { function, comm: 0, root, op: None, needs, pairing, element: None, sends, receives }
    }

    /// Members whose begin a member's end depends on, after all rounds.
    fn known(size: usize, rounds: &[Vec<Message>]) -> Vec<Vec<bool>> {
        let mut known: Vec<Vec<bool>> =
            (0..size).map(|own| (0..size).map(|other| own == other).collect()).collect();
        for round in rounds {
            let before = known.clone();
            for message in round {
                for (own, other) in known[message.to].iter_mut().zip(&before[message.from]) {
                    *own |= other;
                }
            }
        }
        known
    }

    #[test]
    fn members_wait_for_those_that_the_collective_waits_for() {
        for size in 1..20 {
            let root = Some(Root::Rank(size as i64 / 2));
            let of = |name: &str, needs, pairing, root| {
                let one = call(name, needs, pairing, root);
                known(size, &messages(&vec![&one; size]).unwrap())
            };
            let all = [
                of("MPI_Barrier", Needs::All, Pairing::Free, None),
                of("MPI_Allreduce", Needs::All, Pairing::Same, None),
                of("MPI_Alltoall", Needs::All, Pairing::Between, None),
            ];
            assert!(all.iter().flatten().flatten().all(|&known| known), "{size}");
            let down = of("MPI_Bcast", Needs::Root, Pairing::FromRoot, root);
            let up = of("MPI_Reduce", Needs::RootNeedsAll, Pairing::Same, root);
            let scan = of("MPI_Scan", Needs::Lower, Pairing::Same, None);
            let at = |all: &[Vec<bool>], own: usize, other: usize| all[own][other];
            for (own, other) in (0..size).flat_map(|own| (0..size).map(move |other| (own, other))) {
                assert_eq!(at(&down, own, other), own == other || other == size / 2);
                assert_eq!(at(&up, own, other), own == other || own == size / 2);
                assert_eq!(at(&scan, own, other), other <= own);
            }
        }
    }

    #[test]
    fn bytes_that_are_not_known_are_not_made_up() {
        let mut one = call("MPI_Allreduce", Needs::All, Pairing::Same, None);
        (one.sends, one.receives) = (Blocks::Unknown, Blocks::Unknown);
        assert_eq!(messages(&[&one, &one]), None);
    }
}
