//! Matrix of waits: the parties that wait, and those that they wait for.

use ampl_analysis::waits::{Party, Waits};
use ampl_report::human::{duration, percent};
use serde::Serialize;

/// Most rows and columns.
const SIDE: usize = 12;

/// Time that parties wait for each other.
#[derive(Debug, Serialize)]
pub struct Waiting {
    /// The parties that are waited for, by columns.
    pub causing: Vec<String>,
    /// The parties that wait, with the time of each column.
    pub rows: Vec<Row>,
    /// Waits that are not in it.
    pub more: usize,
}

/// A party that waits.
#[derive(Debug, Serialize)]
pub struct Row {
    /// Its ranks.
    pub waiting: String,
    /// Time for each column.
    pub cells: Vec<Cell>,
}

/// Time that a party waits for another.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Cell {
    /// The time; empty where there is none.
    pub time: String,
    /// Share of all ranks' time in MPI, in percent.
    pub share: f64,
    /// The same as text.
    pub percent: String,
}

impl Waiting {
    /// The matrix of `waits`; `None` where no wait is known.
    pub fn of(waits: &Waits) -> Option<Self> {
        let (mut waiting, mut causing): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        let mut times: Vec<(usize, usize, u64)> = Vec::new();
        let mut more = 0;
        for row in &waits.rows {
            let ends =
                [(&mut waiting, &row.waiting, "some ranks"), (&mut causing, &row.causing, "cannot be told")];
            let [from, to] = ends.map(|(known, party, other)| place(known, name(party, other)));
            let (Some(from), Some(to)) = (from, to) else {
                more += 1;
                continue;
            };
            match times.iter_mut().find(|of| (of.0, of.1) == (from, to)) {
                Some(of) => of.2 = of.2.saturating_add(row.ns),
                None => times.push((from, to, row.ns)),
            }
        }
        let cell = |from: usize, to: usize| {
            let ns = times.iter().find(|of| (of.0, of.1) == (from, to)).map_or(0, |of| of.2);
            let share = ns as f64 / waits.mpi_ns.max(1) as f64;
            match ns {
                0 => Cell::default(),
                _ => Cell {
                    time: duration(ns as f64),
                    share: (1e3 * share.min(1.0)).round() / 10.0,
                    percent: percent(share),
                },
            }
        };
        let rows = waiting.iter().enumerate().map(|(from, name)| Row {
            waiting: name.clone(),
            cells: (0..causing.len()).map(|to| cell(from, to)).collect(),
        });
        let rows: Vec<Row> = rows.collect();
        (!times.is_empty()).then_some(Self { rows, causing, more })
    }
}

/// Number of the party of that name; `None` where there are too many.
fn place(known: &mut Vec<String>, name: String) -> Option<usize> {
    let found = known.iter().position(|of| *of == name);
    if found.is_none() && known.len() < SIDE {
        known.push(name);
        return Some(known.len() - 1);
    }
    found
}

fn name(party: &Party, unknown: &str) -> String {
    let Some(ranks) = &party.ranks else { return unknown.to_owned() };
    let noun = if ranks.len() == 1 { "rank" } else { "ranks" };
    match &party.host {
        Some(host) => format!("{noun} {ranks} on {host}"),
        None => format!("{noun} {ranks}"),
    }
}

#[cfg(test)]
mod tests {
    use ampl_analysis::waits::{Basis, Bound, Kind, Row as Wait};
    use ampl_core::units::RankSet;

    use super::*;

    fn wait(waiting: &str, causing: Option<&str>, ns: u64) -> Wait {
        let party = |ranks: &str| Party { ranks: RankSet::parse(ranks).ok(), host: None };
        Wait {
            site: None,
            kind: Kind::LastToArrive,
            waiting: party(waiting),
            causing: causing.map(party).unwrap_or_default(),
            instances: 1,
            ns,
            bound: Bound::AtLeast,
            basis: Basis::Trace,
            function: "MPI_Barrier",
            share: 0.1,
            clock_error_ns: None,
            needed: None,
        }
    }

    #[test]
    fn times_of_equal_parties_add_up() {
        let rows = vec![
            wait("0-2", Some("3"), 4_000_000),
            wait("0-2", None, 1_000_000),
            wait("0-2", Some("3"), 2_000_000),
            wait("3", Some("0"), 3_000_000),
        ];
        let found = Waiting::of(&Waits { rows, mpi_ns: 10_000_000, ..Waits::default() }).unwrap();
        assert_eq!(found.causing, ["rank 3", "cannot be told", "rank 0"]);
        let times =
            |row: usize| found.rows[row].cells.iter().map(|cell| cell.time.as_str()).collect::<Vec<_>>();
        assert_eq!((times(0), times(1)), (vec!["6 ms", "1 ms", ""], vec!["", "", "3 ms"]));
        assert_eq!(found.rows[0].cells[0].share, 60.0);
        assert!(Waiting::of(&Waits::default()).is_none());
        let many: Vec<Wait> = (0..20).map(|rank| wait(&rank.to_string(), Some("99"), 1)).collect();
        let found = Waiting::of(&Waits { rows: many, mpi_ns: 20, ..Waits::default() }).unwrap();
        assert_eq!((found.rows.len(), found.more), (SIDE, 20 - SIDE));
    }
}
