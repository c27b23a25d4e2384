//! The programs of the job, from every rank to rank 0 up a tree, before rank 0 announces the run.

use ampl_client::Topology;
use ampl_core::units::{Rank, RankSet};

use crate::environment;
use crate::transport::Channel;

/// Children of a rank.
const CHILDREN: u32 = 4;
/// Bytes of a message that are still read: names of more programs than have groups.
const MOST: u64 = 1 << 24;

/// Programs and their ranks.
pub type Programs = Vec<(String, RankSet)>;

/// On rank 0 the job's programs, by their first ranks; on the others those of the ranks below them. `None` where MPI
/// refuses, or a message is none.
pub fn gather(channel: &Channel, ranks: u32, rank: u32) -> Option<Programs> {
    let tree = Topology::new(ranks, Rank(0), CHILDREN);
    let mut found = Some(vec![(environment::program(), RankSet::range(rank, rank))]);
    for child in tree.children(Rank(rank)) {
        let told = receive(channel, child);
        found = found.zip(told).map(|(found, told)| joined(found, told));
    }
    if let Some(parent) = tree.parent(Rank(rank)) {
        // An empty message is none: the parent waits for one.
        let bytes = found.as_ref().map(encoded).unwrap_or_default();
        channel.send(parent, &(bytes.len() as u64).to_le_bytes()).ok()?;
        channel.send(parent, &bytes).ok()?;
    }
    let mut found = found?;
    found.sort_by_key(|(_, ranks)| ranks.iter().next());
    Some(found)
}

fn receive(channel: &Channel, child: Rank) -> Option<Programs> {
    let length = channel.receive_soon(child, 8).ok()?;
    let length = u64::from_le_bytes(length.try_into().ok()?);
    let bytes = channel.receive_soon(child, usize::try_from(length.min(MOST)).ok()?).ok()?;
    decoded(&bytes)
}

fn encoded(programs: &Programs) -> Vec<u8> {
    let rows: Vec<(&str, String)> =
        programs.iter().map(|(program, ranks)| (program.as_str(), ranks.to_string())).collect();
    let bytes = serde_json::to_vec(&rows).unwrap_or_default();
    if bytes.len() as u64 > MOST { Vec::new() } else { bytes }
}

fn decoded(bytes: &[u8]) -> Option<Programs> {
    let rows: Vec<(String, String)> = serde_json::from_slice(bytes).ok()?;
    rows.into_iter().map(|(program, ranks)| Some((program, RankSet::parse(&ranks).ok()?))).collect()
}

fn joined(mut found: Programs, told: Programs) -> Programs {
    for (program, ranks) in told {
        match found.iter_mut().find(|(known, _)| *known == program) {
            Some((_, own)) => *own = [std::mem::take(own), ranks].into_iter().collect(),
            None => found.push((program, ranks)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn programs(rows: &[(&str, &str)]) -> Programs {
        rows.iter().map(|&(program, ranks)| (program.to_owned(), RankSet::parse(ranks).unwrap())).collect()
    }

    #[test]
    fn programs_of_subtrees_are_joined_by_name() {
        let whole =
            joined(programs(&[("a", "0"), ("b", "4-5")]), programs(&[("b", "6,9"), ("", "7"), ("a", "1-3")]));
        assert_eq!(whole, programs(&[("a", "0-3"), ("b", "4-6,9"), ("", "7")]));
        assert_eq!(decoded(&encoded(&whole)), Some(whole));
        assert_eq!((decoded(b""), decoded(b"[[\"a\",\"x\"]]")), (None, None));
    }
}
