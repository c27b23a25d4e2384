//! Waits between the programs of a job: which waits for which, and how long.

use std::collections::BTreeMap;

use ampl_core::units::{Rank, RankSet};
use ampl_trace::Trace;
use serde::Serialize;

use super::kept::Observed;
use super::{Basis, Bound, Party, Row};
use crate::programs;

/// Waits of the ranks of one program for those of a program, this one or another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Between {
    /// The program whose ranks wait.
    pub waiting: String,
    /// The program that they wait for.
    pub causing: String,
    /// Time that is waited, nanoseconds, of all waiting ranks together.
    pub ns: u64,
    /// Share of the time of all ranks of the waiting program.
    pub share: f64,
    /// Meaning of `ns`.
    pub bound: Bound,
    /// Data that it rests on: the census, where any of it does.
    pub basis: Basis,
}

/// Waits between the programs of `trace`, by the numbers of both; none where there is one program.
///
/// Of sites whose rows are made of the census the ranks of these count, where each side is of one program. Elsewhere all waits
/// between kept calls do, whether a rank stands out or not.
pub fn between(trace: &Trace, observed: &Observed, rows: &[Row], elapsed: f64) -> Vec<Between> {
    let programs: Vec<(String, RankSet)> = programs::of(trace)
        .into_iter()
        .filter_map(|of| Some((of.program, RankSet::parse(&of.ranks).ok()?)))
        .collect();
    if programs.len() < 2 {
        return Vec::new();
    }
    let of_rank = |rank: u32| programs.iter().position(|(_, ranks)| ranks.contains(Rank(rank)));
    let mut sums: BTreeMap<(usize, usize), (u64, Basis)> = BTreeMap::new();
    let mut add = |pair: Option<(usize, usize)>, ns: u64, basis: Basis| {
        if let Some(pair) = pair.filter(|_| ns > 0) {
            let sum = sums.entry(pair).or_insert((0, basis));
            sum.0 = sum.0.saturating_add(ns);
            if basis == Basis::Census {
                sum.1 = basis;
            }
        }
    };
    let census = || rows.iter().filter(|row| row.basis == Basis::Census && row.causing.ranks.is_some());
    for (&(place, kind), group) in &observed.groups {
        let function = observed.places[place].0.name();
        if census().any(|row| row.kind == kind && row.function == function) {
            continue;
        }
        for (&causing, cause) in &group.causes {
            for (&waiting, &ns) in &cause.waiting {
                add(of_rank(waiting).zip(of_rank(causing)), ns, Basis::Trace);
            }
        }
    }
    let of_party = |party: &Party| {
        let mut own = party.ranks.as_ref()?.iter().map(|rank| of_rank(rank.0));
        let first = own.next()??;
        own.all(|other| other == Some(first)).then_some(first)
    };
    for row in census() {
        add(of_party(&row.waiting).zip(of_party(&row.causing)), row.ns, Basis::Census);
    }
    let cell = |((waiting, causing), (ns, basis)): ((usize, usize), (u64, Basis))| {
        let (name, ranks) = &programs[waiting];
        Between {
            waiting: name.clone(),
            causing: programs[causing].0.clone(),
            ns,
            share: (ns as f64 / (elapsed * ranks.len().max(1) as f64)).min(1.0),
            bound: Bound::AtLeast,
            basis,
        }
    };
    sums.into_iter().map(cell).collect()
}

#[cfg(test)]
mod tests {
    use ampl_core::mpi::Function;
    use ampl_trace::model::RankTrace;

    use super::*;
    use crate::waits::Kind;
    use crate::waits::kept::{Cause, Group};

    fn job(programs: &[&str]) -> Trace {
        let mut trace = Trace::default();
        for (rank, program) in programs.iter().enumerate() {
            let mut of = RankTrace::default();
            of.process.rank = rank as u32;
            of.process.program = (*program).to_owned();
            trace.ranks.push(of);
        }
        trace
    }

    fn observed(function: &str, kind: Kind, waits: &[(u32, u32, u64)]) -> Observed {
        let mut group = Group::default();
        for &(waiting, causing, ns) in waits {
            let cause: &mut Cause = group.causes.entry(causing).or_default();
            *cause.waiting.entry(waiting).or_default() += ns;
        }
        let place = (Function::by_name(function).unwrap(), "app".to_owned(), 1);
        Observed { groups: [((0, kind), group)].into(), places: vec![place], ..Observed::default() }
    }

    fn cells(found: &[Between]) -> Vec<(&str, &str, u64)> {
        found.iter().map(|cell| (&cell.waiting[..], &cell.causing[..], cell.ns)).collect()
    }

    #[test]
    fn waits_of_ranks_add_up_by_their_programs() {
        let trace = job(&["ocean", "ocean", "air", "server"]);
        let waits = [(2, 0, 40), (2, 1, 2), (3, 0, 100), (0, 1, 5), (1, 0, 7), (3, 2, 0)];
        let observed = observed("MPI_Recv", Kind::LateSender, &waits);
        let found = between(&trace, &observed, &[], 200.0);
        assert_eq!(cells(&found), [("ocean", "ocean", 12), ("air", "ocean", 42), ("server", "ocean", 100)]);
        assert_eq!((found[0].share, found[1].share, found[1].basis), (0.03, 0.21, Basis::Trace));
        assert_eq!(between(&job(&["a", "a", "a", "a"]), &observed, &[], 200.0), []);
    }

    #[test]
    fn rows_of_the_census_stand_for_their_sites() {
        let trace = job(&["ocean", "ocean", "air", "server"]);
        let observed = observed("MPI_Recv", Kind::LateSender, &[(2, 0, 40)]);
        let side = |ranks: &str| Party { ranks: RankSet::parse(ranks).ok(), host: None };
        let row = |function, waiting, causing, ns| Row {
            site: None,
            kind: Kind::LateSender,
            waiting: side(waiting),
            causing,
            instances: 1,
            ns,
            bound: Bound::AtLeast,
            basis: Basis::Census,
            function,
            share: 0.5,
            clock_error_ns: None,
            needed: None,
        };
        let of = |rows: &[Row]| between(&trace, &observed, rows, 200.0);
        let found = of(&[row("MPI_Recv", "2", side("0-1"), 90)]);
        assert_eq!((cells(&found), found[0].basis), (vec![("air", "ocean", 90)], Basis::Census));
        // Without a cause, or with one of several programs, it says nothing of programs.
        assert_eq!(cells(&of(&[row("MPI_Recv", "2", Party::default(), 90)])), [("air", "ocean", 40)]);
        assert_eq!(cells(&of(&[row("MPI_Wait", "2-3", side("0"), 90)])), [("air", "ocean", 40)]);
    }
}
