//! Synthetic programs, and what is computed of them.

use ampl_analysis::logical::{Check, Program, check};
use ampl_analysis::messages::Messages;
use ampl_analysis::topology::{Found, Options, patterns, printed};
use ampl_testkit::runs::{Caller, info, processes, structure};
use ampl_trace::communicators::Communicators;
use ampl_trace::model::Process;
use ampl_trace::structure::JobStructure;

/// `MPI_PROC_NULL`.
pub const NOBODY: i64 = -3;

/// A job of ranks that make the calls of a program.
pub struct Job {
    pub structure: JobStructure,
    pub comms: Communicators,
    pub ranks: u32,
}

impl Job {
    pub fn of(ranks: u32, program: impl Fn(&mut Caller)) -> Self {
        Self::with(ranks, structure(ranks, program))
    }

    pub fn with(ranks: u32, structure: JobStructure) -> Self {
        let all: Vec<Process> = processes(&structure, |_| "host".into());
        let process = |rank: u32| all.iter().find(|process| process.rank == rank);
        let comms = Communicators::of_job(&info(ranks), &structure, &process);
        Self { structure, comms, ranks }
    }

    pub fn messages(&self) -> Messages {
        Messages::of(&self.structure, &self.comms, self.ranks)
    }

    pub fn found(&self) -> Vec<Found> {
        patterns(&self.messages(), &Options::default()).unwrap()
    }

    pub fn program(&self) -> Program {
        Program::of(&self.structure, &self.comms, self.ranks, &self.found()).unwrap()
    }

    pub fn check(&self) -> Check {
        check(&self.program(), &self.structure, &self.comms)
    }
}

/// Names of the patterns: copies, name, sizes; `none` for what has no name.
pub fn names(found: &[Found]) -> Vec<String> {
    let mut names = Vec::new();
    for found in found {
        for pattern in found.topology.patterns.iter().map(printed) {
            let sizes: Vec<String> = pattern.shape.axes().iter().map(|axis| axis.size.to_string()).collect();
            names.push(format!("{} {} {}", pattern.copies.len(), pattern.shape.name(), sizes.join("x")));
        }
        names.extend(found.topology.unknown.iter().map(|_| "none".to_owned()));
    }
    names
}

/// Neighbours of `rank` in a grid of `size` x `size` whose places are numbered by `number`: before and behind along
/// each axis, `NOBODY` at the edge.
pub fn around(rank: u32, size: u32, number: impl Fn(u32) -> u32) -> [i64; 4] {
    let place = (0..size * size).find(|&place| number(place) == rank).unwrap();
    let (x, y) = (place / size, place % size);
    let to = |x: Option<u32>, y: Option<u32>| match (x, y) {
        (Some(x), Some(y)) if x < size && y < size => i64::from(number(x * size + y)),
        _ => NOBODY,
    };
    [
        to(x.checked_sub(1), Some(y)),
        to(Some(x + 1), Some(y)),
        to(Some(x), y.checked_sub(1)),
        to(Some(x), Some(y + 1)),
    ]
}
