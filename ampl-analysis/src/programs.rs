//! The programs of a job, and which ranks run them.

use ampl_core::program::{names, program_of};
use ampl_core::units::RankSet;
use ampl_trace::Trace;
use serde::Serialize;

/// A program and its ranks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Program {
    /// The file's name or, where several programs share it, what the command line has.
    pub program: String,
    /// The ranks that run it, `0-3,8`.
    pub ranks: String,
}

/// The programs of the ranks that left anything, by their first rank; none where no program is known.
pub fn of(trace: &Trace) -> Vec<Program> {
    let first = program_of(&trace.run.command);
    let mut found: Vec<(&str, Vec<u32>)> = Vec::new();
    for process in trace.ranks.iter().map(|rank| &rank.process) {
        let program = if process.program.is_empty() { first.as_str() } else { &process.program };
        match found.iter_mut().find(|(known, _)| *known == program) {
            Some((_, ranks)) => ranks.push(process.rank),
            None => found.push((program, vec![process.rank])),
        }
    }
    found.retain(|(program, _)| !program.is_empty());
    let called = names(&found.iter().map(|&(program, _)| program).collect::<Vec<_>>());
    let rows = called.into_iter().zip(&found);
    rows.map(|(name, (_, ranks))| Program { program: name.to_owned(), ranks: ranks_of(ranks) }).collect()
}

fn ranks_of(ranks: &[u32]) -> String {
    ranks.iter().copied().collect::<RankSet>().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(programs: &[&str]) -> Trace {
        let mut trace = Trace::default();
        trace.run.command = ["./lead", "-v"].map(str::to_owned).to_vec();
        for (rank, program) in programs.iter().enumerate() {
            let mut of = ampl_trace::model::RankTrace::default();
            of.process.rank = rank as u32;
            of.process.program = (*program).to_owned();
            trace.ranks.push(of);
        }
        trace
    }

    #[test]
    fn every_program_is_named_with_its_ranks() {
        let found = |programs: &[&str]| -> Vec<(String, String)> {
            of(&job(programs)).into_iter().map(|of| (of.program, of.ranks)).collect()
        };
        let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|&(program, ranks)| (program.into(), ranks.into())).collect()
        };
        assert_eq!(found(&["", "", "/opt/b", "/opt/b", "/opt/b"]), pairs(&[("lead", "0-1"), ("b", "2-4")]));
        assert_eq!(found(&["", "b", "", "b"]), pairs(&[("lead", "0,2"), ("b", "1,3")]));
        assert_eq!(found(&["", "old/lead"]), pairs(&[("./lead", "0"), ("old/lead", "1")]));
        assert_eq!(of(&job(&["", "", ""])), [Program { program: "lead".into(), ranks: "0-2".into() }]);
        let mut nameless = job(&[""]);
        nameless.run.command.clear();
        assert_eq!(of(&nameless), []);
    }
}
