//! Time-independent traces for SimGrid's replay: a file of actions for each rank, and a platform that costs nothing.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use ampl_analysis::actions::{Action, Actions, Function, Together};

use crate::place::Place;

/// Number of SimGrid's datatype of one byte.
const BYTE: u32 = 6;

/// Writes the files of all ranks, their list, hosts and a platform into the directory `target`, whole or not at all.
///
/// # Errors
/// Failures to write.
pub fn write(actions: &Actions, target: &Path) -> io::Result<()> {
    let place = Place::new(target, Vec::new())?;
    let ranks = actions.ranks.len() as u32;
    let mut list = String::new();
    for (number, own) in (0..).zip(&actions.ranks) {
        let name = format!("rank-{number}.txt");
        let mut out = BufWriter::new(File::create(place.path(&name))?);
        rank(number, own, &mut out)?;
        out.flush()?;
        list += &format!("{name}\n");
    }
    let hosts: String = (0..ranks).map(|rank| format!("rank-{rank}\n")).collect();
    for (name, text) in [("ranks", list), ("hosts", hosts), ("platform.xml", platform(ranks))] {
        fs::write(place.path(name), text)?;
    }
    place.finish()
}

/// Writes the actions of a rank. Computing is in floating-point operations, one for each nanosecond.
///
/// # Errors
/// Failures to write.
fn rank(rank: u32, actions: &[Action], out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{rank} init")?;
    let mut skip = false;
    for (at, action) in actions.iter().enumerate() {
        if std::mem::take(&mut skip) {
            continue;
        }
        match (*action, actions.get(at + 1)) {
            (Action::BeginSend(end), Some(Action::EndSend(next))) if end == *next => {
                writeln!(out, "{rank} send {} {} {} {BYTE}", end.peer, end.tag, end.bytes)?;
                skip = true;
            }
            (Action::BeginReceive(end), Some(Action::EndReceive(next))) if end == *next => {
                writeln!(out, "{rank} recv {} {} {} {BYTE}", end.peer, end.tag, end.bytes)?;
                skip = true;
            }
            (Action::Compute(ns), _) => writeln!(out, "{rank} compute {ns}")?,
            (Action::BeginSend(end), _) => {
                writeln!(out, "{rank} isend {} {} {} {BYTE}", end.peer, end.tag, end.bytes)?;
            }
            (Action::BeginReceive(end), _) => {
                writeln!(out, "{rank} irecv {} {} {} {BYTE}", end.peer, end.tag, end.bytes)?;
            }
            (Action::EndSend(end), _) => writeln!(out, "{rank} wait {rank} {} {}", end.peer, end.tag)?,
            (Action::EndReceive(end), _) => writeln!(out, "{rank} wait {} {rank} {}", end.peer, end.tag)?,
            (Action::Together(together), _) => writeln!(out, "{rank} {}", line(together))?,
        }
    }
    writeln!(out, "{rank} finalize")
}

fn line(together: Together) -> String {
    let Together { function, root, sends, receives } = together;
    match function {
        Function::Barrier => "barrier".into(),
        Function::Bcast => format!("bcast {sends} {root} {BYTE}"),
        Function::Reduce => format!("reduce {sends} 0 {root} {BYTE}"),
        Function::Allreduce => format!("allreduce {sends} 0 {BYTE}"),
        Function::Alltoall => format!("alltoall {sends} {receives} {BYTE} {BYTE}"),
        Function::Allgather => format!("allgather {sends} {receives} {BYTE} {BYTE}"),
        Function::Gather => format!("gather {sends} {receives} {root} {BYTE} {BYTE}"),
        Function::Scatter => format!("scatter {sends} {receives} {root} {BYTE} {BYTE}"),
    }
}

/// A cluster of so many hosts, each of one operation a nanosecond, on a network without latency.
fn platform(ranks: u32) -> String {
    let last = ranks.saturating_sub(1);
    format!(
        "<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">
<platform version=\"4.1\">
  <cluster id=\"ideal\" prefix=\"rank-\" suffix=\"\" radical=\"0-{last}\" speed=\"1Gf\" bw=\"1000000000000GBps\" lat=\"0s\"/>
</platform>
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use ampl_analysis::actions::End;

    #[test]
    fn a_message_that_is_waited_for_at_once_is_one_action() {
        let (one, two) = (End { peer: 1, tag: 1, bytes: 8 }, End { peer: 2, tag: 4, bytes: 16 });
        let bcast = Together { function: Function::Bcast, root: 2, sends: 40, receives: 40 };
        let own = [
            Action::Compute(5),
            Action::BeginSend(one),
            Action::EndSend(one),
            Action::BeginReceive(two),
            Action::BeginSend(two),
            Action::EndReceive(two),
            Action::EndSend(two),
            Action::Together(bcast),
        ];
        let mut text = Vec::new();
        rank(0, &own, &mut text).unwrap();
        let expected = "0 init\n0 compute 5\n0 send 1 1 8 6\n0 irecv 2 4 16 6\n0 isend 2 4 16 6\n0 wait 2 0 4\n\
                        0 wait 0 2 4\n0 bcast 40 2 6\n0 finalize\n";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }
}
