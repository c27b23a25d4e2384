//! `ampl topology --place`: an order of ranks that sends less between nodes, and its files.

use std::fmt::Write as _;
use std::io;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use ampl_analysis::messages::Messages;
use ampl_analysis::placement::{self, Crossing, Method};
use ampl_analysis::topology::{Found, all_edges};
use ampl_reader::Run;
use serde::Serialize;

use crate::failure::{Failure, NOT_FOUND, OTHER, USAGE};
use crate::output::Stdout;
use ampl_report::human::{bytes, count, percent, plural};

/// Least share of the crossing bytes that must be saved for files to be written.
const LEAST_SAVING: f64 = 0.05;

/// Longest line of a list of ranks.
const LINE: usize = 100;

/// Options of a placement.
#[derive(clap::Args, Debug)]
#[group(id = "placement")]
pub struct Args {
    /// Compute an order of ranks that sends fewer bytes and messages between nodes, and write it for Open MPI, Slurm and
    /// Cray MPICH
    #[arg(long, conflicts_with = "edges")]
    place: bool,
    /// Ranks on a node, instead of those of the recorded hosts
    #[arg(long, value_name = "N", requires = "place", value_parser = clap::value_parser!(u32).range(1..))]
    ranks_per_node: Option<u32>,
    /// Directory of the files; the current one if it is left out
    #[arg(short, long, value_name = "DIR", requires = "place")]
    output: Option<PathBuf>,
}

/// Traffic between nodes.
#[derive(Clone, Debug, Serialize)]
struct Traffic {
    bytes: u64,
    messages: u64,
    busiest_node: String,
    busiest_bytes: u64,
    busiest_messages: u64,
}

/// A placement, and what it saves.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    nodes: usize,
    /// Where the given placement is from: `recorded`, or `assumed` of `--ranks-per-node`.
    basis: &'static str,
    before: Traffic,
    after: Traffic,
    /// Share of the crossing bytes that are saved; of the messages where there are no bytes.
    saving: f64,
    method: &'static str,
    /// Node of each rank, by name.
    hosts: Vec<String>,
    /// True where the names of hosts are not known.
    placeholders: bool,
    files: Vec<String>,
}

/// Nodes of the ranks before.
struct Given {
    nodes: Vec<u32>,
    names: Vec<String>,
    recorded: bool,
    placeholders: bool,
}

impl Args {
    /// The placement that was asked for, with its files written; `None` where none was.
    ///
    /// # Errors
    /// A [`Failure`] where hosts are not known, or a file cannot be written.
    pub fn placement(
        &self,
        run: &Run,
        messages: &Messages,
        found: &[Found],
    ) -> anyhow::Result<Option<Report>> {
        if !self.place {
            return Ok(None);
        }
        let given = self.given(run, messages.ranks)?;
        let edges = all_edges(messages);
        let before = placement::crossing(&edges, &given.nodes);
        let placement = placement::place(&edges, &given.nodes, found);
        let after = placement.crossing;
        let share = |before: f64, after: f64| if before > 0.0 { 1.0 - after / before } else { 0.0 };
        let saving = match before.bytes > 0.0 {
            true => share(before.bytes, after.bytes),
            false => share(before.messages, after.messages),
        };
        let name = |node: &u32| given.names[*node as usize].clone();
        let mut report = Report {
            nodes: given.names.len(),
            basis: if given.recorded { "recorded" } else { "assumed" },
            before: Traffic::of(&before, &given.names),
            after: Traffic::of(&after, &given.names),
            saving,
            method: match placement.method {
                Method::Given => "given",
                Method::Order => "order",
                Method::Blocks => "blocks",
                Method::Halves => "halves",
                Method::Greedy => "greedy",
            },
            hosts: placement.nodes.iter().map(name).collect(),
            placeholders: given.placeholders,
            files: Vec::new(),
        };
        if saving >= LEAST_SAVING {
            let directory = self.output.clone().unwrap_or_else(|| ".".into());
            let files = [
                ("rankfile.openmpi", rankfile(&placement.nodes, &given)),
                ("hosts.slurm", report.hosts.iter().fold(String::new(), |text, host| text + host + "\n")),
                ("MPICH_RANK_ORDER", rank_order(&placement.nodes, given.names.len())),
            ];
            for (name, text) in files {
                report.files.push(write(&directory, name, &text)?);
            }
        }
        Ok(Some(report))
    }

    fn given(&self, run: &Run, ranks: u32) -> anyhow::Result<Given> {
        let mut names: Vec<String> = Vec::new();
        let mut nodes = Vec::new();
        for rank in 0..ranks {
            let host = run.process(rank).map(|process| process.host.clone());
            let Some(host) = host.filter(|host| !host.is_empty()) else {
                nodes.clear();
                break;
            };
            let node = names.iter().position(|name| *name == host).unwrap_or_else(|| {
                names.push(host);
                names.len() - 1
            });
            nodes.push(node as u32);
        }
        let known = nodes.len() == ranks as usize;
        let Some(each) = self.ranks_per_node else {
            if !known {
                let fix = "give --ranks-per-node";
                return Err(Failure::message(NOT_FOUND, "hosts of some ranks are not known", "--place", fix));
            }
            return Ok(Given { nodes, names, recorded: true, placeholders: false });
        };
        let count = ranks.div_ceil(each) as usize;
        let mut sizes = vec![0; names.len()];
        nodes.iter().for_each(|&node| sizes[node as usize] += 1);
        let full = sizes.iter().filter(|&&size| size == each).count();
        if known && names.len() == count && full + 1 >= count && sizes.iter().all(|&size| size <= each) {
            return Ok(Given { nodes, names, recorded: true, placeholders: false });
        }
        if count > 1 << 20 {
            return Err(Failure::message(
                USAGE,
                "too many nodes",
                "--ranks-per-node",
                "give a larger number",
            ));
        }
        let placeholders = names.len() < count;
        if placeholders {
            names = (0..count).map(|node| format!("node{node}")).collect();
        }
        names.truncate(count);
        Ok(Given {
            nodes: (0..ranks).map(|rank| rank / each).collect(),
            names,
            recorded: false,
            placeholders,
        })
    }
}

impl Traffic {
    fn of(crossing: &Crossing, names: &[String]) -> Self {
        Self {
            bytes: crossing.bytes as u64,
            messages: crossing.messages as u64,
            busiest_node: names.get(crossing.busiest as usize).cloned().unwrap_or_default(),
            busiest_bytes: crossing.busiest_bytes as u64,
            busiest_messages: crossing.busiest_messages as u64,
        }
    }
}

/// A rank file of Open MPI.
fn rankfile(nodes: &[u32], given: &Given) -> String {
    let mut next = vec![0_u32; given.names.len()];
    let mut text = String::new();
    for (rank, &node) in nodes.iter().enumerate() {
        let host = &given.names[node as usize];
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

fn write(directory: &Path, name: &str, text: &str) -> anyhow::Result<String> {
    let path = directory.join(name);
    let written = std::fs::create_dir_all(directory).and_then(|()| std::fs::write(&path, text));
    written.map_err(|error| {
        Failure::message(
            OTHER,
            format!("cannot write: {error}"),
            path.display(),
            "name another directory by -o",
        )
    })?;
    Ok(path.display().to_string())
}

impl Report {
    /// Prints the crossing traffic before and after.
    pub fn print(&self, out: &mut Stdout) -> io::Result<()> {
        let basis = match self.basis {
            "recorded" => "as recorded",
            _ => "in the order of ranks, by --ranks-per-node",
        };
        writeln!(out, "\nplacement on {}", plural(self.nodes as u64, "node"))?;
        if self.nodes < 2 {
            return writeln!(
                out,
                "  nothing crosses between nodes; --ranks-per-node N divides the ranks differently"
            );
        }
        writeln!(out, "  before is {basis}; messages of two ranks only, exact; no collectives")?;
        writeln!(out, "  {:<22}{:>14}{:>14}", "", "before", "after")?;
        let mut row =
            |what: &str, before: String, after: String| writeln!(out, "  {what:<22}{before:>14}{after:>14}");
        let (before, after) = (&self.before, &self.after);
        row("crossing bytes", bytes(before.bytes as f64), bytes(after.bytes as f64))?;
        row("crossing messages", count(before.messages), count(after.messages))?;
        row("busiest node's bytes", bytes(before.busiest_bytes as f64), bytes(after.busiest_bytes as f64))?;
        row("busiest node's messages", count(before.busiest_messages), count(after.busiest_messages))?;
        if self.files.is_empty() {
            let least = percent(LEAST_SAVING);
            return writeln!(
                out,
                "  it saves {}, less than {least}: no files are written, keep the ranks as they are",
                percent(self.saving.max(0.0))
            );
        }
        writeln!(out, "  it saves {} of the crossing bytes", percent(self.saving))?;
        for (file, what) in self.files.iter().zip([
            "Open MPI: mpirun --rankfile FILE (from 5: --map-by rankfile:file=FILE)",
            "Slurm: SLURM_HOSTFILE=FILE srun -m arbitrary",
            "Cray MPICH: MPICH_RANK_REORDER_METHOD=3 MPICH_RANK_REORDER_FILE=FILE",
        ]) {
            writeln!(out, "  {file}\n      {what}")?;
        }
        if self.placeholders {
            writeln!(out, "  hosts are not known: replace node0, node1, … in both files by yours")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_name_every_rank_once_in_the_forms_of_their_readers() {
        let given = Given {
            nodes: Vec::new(),
            names: vec!["alpha".into(), "beta".into()],
            recorded: true,
            placeholders: false,
        };
        let text = rankfile(&[1, 0, 1, 0], &given);
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
