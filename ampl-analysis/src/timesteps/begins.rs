//! Calls that begin the steps of a rank.

use ampl_trace::loops::Iterations;
use ampl_trace::steps::{Step, Steps};
use ampl_trace::structure::RankStructure;

/// Steps of ranks with one grammar, by the calls that begin them.
#[derive(Clone, Debug)]
pub struct Begins {
    ranks: Vec<u32>,
    thread: u32,
    iterations: Iterations,
    steps: u64,
}

impl Begins {
    pub(super) fn new(ranks: &[u32], thread: u32, iterations: Iterations, steps: u64) -> Self {
        Self { ranks: ranks.to_vec(), thread, iterations, steps }
    }

    pub(super) fn has(&self, rank: u32) -> bool {
        self.ranks.contains(&rank)
    }

    /// Numbers of the calls of `structure`, one of its ranks, that begin steps, ascending; `None` where these are not as
    /// many as the steps.
    pub fn calls(&self, structure: &RankStructure) -> Option<Vec<u64>> {
        let index = structure.threads.iter().position(|thread| thread.thread == self.thread)?;
        let mut walk = self.iterations.walk();
        let mut found = Vec::new();
        for step in Steps::untimed(structure, index)? {
            match step {
                Step::Calls { seq, terminal, count, .. } => {
                    found.extend((seq..seq.saturating_add(count)).filter(|_| walk.begins(terminal)));
                }
                Step::Gap(_) => walk.pass_gap(),
            }
        }
        (found.len() as u64 == self.steps).then_some(found)
    }
}
