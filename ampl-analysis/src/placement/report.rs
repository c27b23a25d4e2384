//! A placement for a run, and what it saves.

use ampl_reader::Run;
use serde::Serialize;

use super::{Crossing, Method, crossing, place};
use crate::messages::Messages;
use crate::topology::{Found, all_edges};

/// Least share of the crossing bytes that must be saved for a placement to be worth it.
pub const LEAST_SAVING: f64 = 0.05;

/// Most nodes that ranks are divided into.
const MOST_NODES: usize = 1 << 20;

/// Traffic between nodes.
#[derive(Clone, Debug, Serialize)]
pub struct Traffic {
    /// Bytes that cross.
    pub bytes: u64,
    /// Messages that cross.
    pub messages: u64,
    /// Name of the node that most bytes enter or leave.
    pub busiest_node: String,
    /// Its bytes.
    pub busiest_bytes: u64,
    /// Its messages.
    pub busiest_messages: u64,
}

/// A placement, and what it saves; the order of fields is part of the format.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Number of nodes.
    pub nodes: usize,
    /// Source of the given placement.
    pub basis: Basis,
    /// Traffic of the given placement.
    pub before: Traffic,
    /// Traffic of the new one.
    pub after: Traffic,
    /// Share of the crossing bytes that are saved; of the messages where there are no bytes.
    pub saving: f64,
    method: Method,
    /// Node of each rank, by name.
    pub hosts: Vec<String>,
    /// True where the names of hosts are not known.
    pub placeholders: bool,
    /// Files that have been written.
    pub files: Vec<String>,
}

/// Source of the given placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// The run's hosts.
    Recorded,
    /// So many ranks on each node, in their order.
    Assumed,
}

/// Reason why ranks cannot be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unplaceable {
    /// Hosts of some ranks are not known, and no number of ranks on a node is given.
    UnknownHosts,
    /// There would be too many nodes.
    TooManyNodes,
}

/// Nodes of the ranks.
#[derive(Clone, Debug)]
pub struct Nodes {
    /// Node of each rank.
    pub nodes: Vec<u32>,
    /// Names of the nodes.
    pub names: Vec<String>,
}

/// Nodes of the ranks before.
struct Given {
    nodes: Vec<u32>,
    names: Vec<String>,
    basis: Basis,
    placeholders: bool,
}

impl Report {
    /// A placement for `run`, whose `messages` make the patterns `found`, with `ranks_per_node` instead of the recorded
    /// hosts where that is given; and the nodes themselves.
    ///
    /// # Errors
    /// Hosts that are not known, or too many nodes.
    pub fn of(
        run: &Run,
        messages: &Messages,
        found: &[Found],
        ranks_per_node: Option<u32>,
    ) -> Result<(Self, Nodes), Unplaceable> {
        let given = given(run, messages.ranks, ranks_per_node)?;
        let edges = all_edges(messages);
        let before = crossing(&edges, &given.nodes);
        let placement = place(&edges, &given.nodes, found);
        let after = placement.crossing;
        let share = |before: f64, after: f64| if before > 0.0 { 1.0 - after / before } else { 0.0 };
        let saving = match before.bytes > 0.0 {
            true => share(before.bytes, after.bytes),
            false => share(before.messages, after.messages),
        };
        let name = |node: &u32| given.names[*node as usize].clone();
        let report = Self {
            nodes: given.names.len(),
            basis: given.basis,
            before: Traffic::of(&before, &given.names),
            after: Traffic::of(&after, &given.names),
            saving,
            method: placement.method,
            hosts: placement.nodes.iter().map(name).collect(),
            placeholders: given.placeholders,
            files: Vec::new(),
        };
        Ok((report, Nodes { nodes: placement.nodes, names: given.names }))
    }
}

fn given(run: &Run, ranks: u32, ranks_per_node: Option<u32>) -> Result<Given, Unplaceable> {
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
    let Some(each) = ranks_per_node else {
        if !known {
            return Err(Unplaceable::UnknownHosts);
        }
        return Ok(Given { nodes, names, basis: Basis::Recorded, placeholders: false });
    };
    let count = ranks.div_ceil(each) as usize;
    let mut sizes = vec![0; names.len()];
    nodes.iter().for_each(|&node| sizes[node as usize] += 1);
    let full = sizes.iter().filter(|&&size| size == each).count();
    if known && names.len() == count && full + 1 >= count && sizes.iter().all(|&size| size <= each) {
        return Ok(Given { nodes, names, basis: Basis::Recorded, placeholders: false });
    }
    if count > MOST_NODES {
        return Err(Unplaceable::TooManyNodes);
    }
    let placeholders = names.len() < count;
    if placeholders {
        names = (0..count).map(|node| format!("node{node}")).collect();
    }
    names.truncate(count);
    let nodes = (0..ranks).map(|rank| rank / each).collect();
    Ok(Given { nodes, names, basis: Basis::Assumed, placeholders })
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
