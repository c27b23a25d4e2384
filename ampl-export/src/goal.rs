//! GOAL, the text that LogGOPSim and htsim compile: operations of each rank, and the order that they depend on.

use std::collections::BTreeMap;
use std::io::{self, Write};

use ampl_analysis::actions::{Action, Actions, End};

/// An operation that only waits for others.
const JOIN: &str = "calc 0";

/// Writes the actions of all ranks, which have no collectives.
///
/// # Errors
/// Failures to write.
pub fn write(actions: &Actions, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "num_ranks {}", actions.ranks.len())?;
    for (rank, own) in actions.ranks.iter().enumerate() {
        writeln!(out, "\nrank {rank} {{")?;
        let mut rank = Rank::default();
        own.iter().try_for_each(|action| rank.action(action, out))?;
        writeln!(out, "}}")?;
    }
    Ok(())
}

/// Operations of a rank so far.
#[derive(Default)]
struct Rank {
    operations: u64,
    /// Operations that the next one begins after.
    before: Vec<u64>,
    /// Sends and receives under way: true of sends.
    open: BTreeMap<(bool, u32, u32), u64>,
}

impl Rank {
    fn action(&mut self, action: &Action, out: &mut impl Write) -> io::Result<()> {
        let open = |end: &End, sends: bool| (sends, end.peer, end.tag);
        match action {
            Action::Compute(ns) => {
                let label = self.operation(&format!("calc {ns}"), out)?;
                self.before = vec![label];
            }
            Action::BeginSend(end) => {
                let text = format!("send {}b to {} tag {}", end.bytes, end.peer, end.tag);
                let label = self.operation(&text, out)?;
                self.open.insert(open(end, true), label);
            }
            Action::BeginReceive(end) => {
                let text = format!("recv {}b from {} tag {}", end.bytes, end.peer, end.tag);
                let label = self.operation(&text, out)?;
                self.open.insert(open(end, false), label);
            }
            Action::EndSend(end) => self.before.extend(self.open.remove(&open(end, true))),
            Action::EndReceive(end) => self.before.extend(self.open.remove(&open(end, false))),
            // Expanded before.
            Action::Together(_) => {}
        }
        Ok(())
    }

    fn operation(&mut self, text: &str, out: &mut impl Write) -> io::Result<u64> {
        // One operation stands for all that were waited for: else each later one would name them all.
        if self.before.len() > 1 && text != JOIN {
            let label = self.operation(JOIN, out)?;
            self.before = vec![label];
        }
        self.operations += 1;
        let label = self.operations;
        writeln!(out, "l{label}: {text}")?;
        self.before.iter().try_for_each(|before| writeln!(out, "l{label} requires l{before}"))?;
        Ok(label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_wait_for_what_the_rank_has_waited_for() {
        let (one, two) = (End { peer: 1, tag: 1, bytes: 8 }, End { peer: 1, tag: 2, bytes: 16 });
        let own = vec![
            Action::Compute(5),
            Action::BeginReceive(two),
            Action::BeginSend(one),
            Action::EndReceive(two),
            Action::Compute(7),
            Action::EndSend(one),
            Action::Compute(9),
        ];
        let actions = Actions { ranks: vec![own], ..Actions::default() };
        let mut text = Vec::new();
        write(&actions, &mut text).unwrap();
        let expected = "num_ranks 1

rank 0 {
l1: calc 5
l2: recv 16b from 1 tag 2
l2 requires l1
l3: send 8b to 1 tag 1
l3 requires l1
l4: calc 0
l4 requires l1
l4 requires l2
l5: calc 7
l5 requires l4
l6: calc 0
l6 requires l5
l6 requires l3
l7: calc 9
l7 requires l6
}
";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }
}
