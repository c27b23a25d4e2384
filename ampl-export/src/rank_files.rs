//! Files from which launchers take the node of each rank: Open MPI, Slurm, Cray MPICH.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

/// Longest line of a list of ranks.
const LINE: usize = 100;

/// Writes the files into `directory`, which is made where it is missing; returns their paths. `nodes` has the node of each
/// rank, `names` those of the nodes.
///
/// # Errors
/// A file that cannot be written, and why.
pub fn write(
    directory: &Path,
    nodes: &[u32],
    names: &[String],
) -> Result<Vec<PathBuf>, (PathBuf, io::Error)> {
    let hosts = nodes.iter().fold(String::new(), |text, &node| text + &names[node as usize] + "\n");
    let files = [
        ("rankfile.openmpi", rankfile(nodes, names)),
        ("hosts.slurm", hosts),
        ("MPICH_RANK_ORDER", rank_order(nodes, names.len())),
    ];
    let one = |(name, text): (&str, String)| {
        let path = directory.join(name);
        let written = std::fs::create_dir_all(directory).and_then(|()| std::fs::write(&path, text));
        written.map(|()| path.clone()).map_err(|error| (path, error))
    };
    files.into_iter().map(one).collect()
}

/// A rank file of Open MPI.
fn rankfile(nodes: &[u32], names: &[String]) -> String {
    let mut next = vec![0_u32; names.len()];
    let mut text = String::new();
    for (rank, &node) in nodes.iter().enumerate() {
        let host = &names[node as usize];
        let slot = &mut next[node as usize];
        _ = writeln!(text, "rank {rank}={host} slot={slot}");
        *slot += 1;
    }
    text
}

/// Ranks in the order in which they fill the nodes, as Cray MPICH reads them.
fn rank_order(nodes: &[u32], count: usize) -> String {
    let mut members: Vec<Vec<String>> = vec![Vec::new(); count];
    for (rank, &node) in nodes.iter().enumerate() {
        members[node as usize].push(rank.to_string());
    }
    let mut text =
        String::from("# Ranks in the order in which they fill the nodes: MPICH_RANK_REORDER_METHOD=3\n");
    let lines = members.iter().filter(|members| !members.is_empty());
    // A line for each node; long ones are continued by another, as the order is that of all lines.
    for members in lines {
        let mut line = String::new();
        for rank in members {
            if line.len() + rank.len() + 1 > LINE {
                _ = writeln!(text, "{line}");
                line.clear();
            }
            if !line.is_empty() {
                line.push(',');
            }
            line.push_str(rank);
        }
        _ = writeln!(text, "{line}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_name_every_rank_once_in_the_forms_of_their_readers() {
        let names = ["alpha".to_owned(), "beta".into()];
        let text = rankfile(&[1, 0, 1, 0], &names);
        assert_eq!(
            text,
            "rank 0=beta slot=0\nrank 1=alpha slot=0\nrank 2=beta slot=1\nrank 3=alpha slot=1\n"
        );
        let order = rank_order(&[1, 0, 1, 0], 2);
        assert_eq!(order.lines().skip(1).collect::<Vec<_>>(), ["1,3", "0,2"]);
        let long = rank_order(&vec![0; 500], 1);
        let ranks: Vec<usize> =
            long.lines().skip(1).flat_map(|line| line.split(',')).map(|rank| rank.parse().unwrap()).collect();
        assert_eq!(ranks, (0..500).collect::<Vec<_>>());
        assert!(long.lines().all(|line| line.len() <= LINE));
    }
}
