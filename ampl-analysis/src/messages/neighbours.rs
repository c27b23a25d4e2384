//! Neighbours that a communicator's topology gives its ranks: MPI-4.1 chapter 8.

use ampl_core::mpi::{Function, Kind};
use ampl_core::value::PROC_NULL;
use ampl_trace::args::{is_output, is_predefined};
use ampl_trace::communicators::{Communicators, Name};
use ampl_trace::structure::{JobStructure, RankStructure, Signature};
use rustc_hash::FxHashMap;

use super::sources::{Parts, all, one, parts};
use crate::calls::is_whole;

/// Deepest chain of communicators made from each other that is followed.
const MOST_NESTING: u32 = 16;

/// Edges of graphs that several ranks gave together by `MPI_Dist_graph_create`, as ranks of the graph's communicator.
#[derive(Debug, Default)]
pub struct Graphs {
    edges: FxHashMap<Name, Vec<(i64, i64)>>,
}

impl Graphs {
    /// The graphs of a job.
    pub fn of(structure: &JobStructure, comms: &Communicators) -> Self {
        let mut graphs = Self::default();
        let Some(create) = Function::by_name("MPI_Dist_graph_create") else { return graphs };
        for selected in structure.select(|function| function == create.0) {
            let Some(structure) = selected.structure() else { continue };
            let signatures = structure.threads.iter().flat_map(|thread| &thread.signatures);
            for signature in signatures.filter(|call| call.function == create.0 && is_whole(call)) {
                let Some(parts) = parts(signature) else { continue };
                let name = one(&parts, "comm_dist_graph").and_then(|word| comms.only(structure.rank, word));
                let Some(name) = name.map(|comm| comm.name) else { continue };
                graphs.edges.entry(name).or_default().extend(given(&parts).unwrap_or_default());
            }
        }
        graphs
    }
}

/// Edges that one rank gives to `MPI_Dist_graph_create`.
fn given(parts: &Parts<'_>) -> Option<Vec<(i64, i64)>> {
    let mut destinations = all(parts, "destinations")?.iter();
    let mut edges = Vec::new();
    for (&source, &degree) in all(parts, "sources")?.iter().zip(all(parts, "degrees")?) {
        for _ in 0..degree {
            edges.push((source as i64, *destinations.next()? as i64));
        }
    }
    Some(edges)
}

/// Topologies of one rank's communicators.
#[derive(Debug)]
pub struct Topologies<'a> {
    structure: &'a RankStructure,
    made: FxHashMap<u64, Vec<(Function, Parts<'a>)>>,
}

impl<'a> Topologies<'a> {
    /// Topologies of the communicators that the calls of `structure` make.
    pub fn of(structure: &'a RankStructure) -> Self {
        let mut made: FxHashMap<u64, Vec<(Function, Parts<'a>)>> = FxHashMap::default();
        for signature in structure.threads.iter().flat_map(|thread| &thread.signatures) {
            if let Some((word, function, parts)) = maker(signature) {
                made.entry(word).or_default().push((function, parts));
            }
        }
        Self { structure, made }
    }

    fn maker(&self, word: u64) -> Option<&(Function, Parts<'a>)> {
        match &self.made.get(&word)?[..] {
            [first, others @ ..] if others.iter().all(|(function, _)| *function == first.0) => {
                let same = |(_, parts): &(Function, Parts<'a>)| {
                    parts.iter().zip(&first.1).all(|((_, one), (_, other))| one == other)
                };
                others.iter().all(same).then_some(first)
            }
            _ => None,
        }
    }

    /// Ranks of the communicator `word` that this rank sends to as neighbours, in their order; `None` where they are
    /// not known.
    pub fn destinations(&self, word: u64, name: Option<Name>, graphs: &Graphs) -> Option<Vec<i64>> {
        let own = self.structure.comms.iter().find(|comm| comm.word == word)?.rank as i64;
        let (function, parts) = self.original(word, 0)?;
        match function.name() {
            "MPI_Cart_create" | "MPI_Cart_sub" => {
                let (sizes, periodic) = self.box_of(word, 0)?;
                Some(around(own, &sizes, &periodic))
            }
            "MPI_Dist_graph_create_adjacent" => {
                Some(all(parts, "destinations")?.iter().map(|&rank| rank as i64).collect())
            }
            "MPI_Dist_graph_create" => {
                let edges = graphs.edges.get(&name?)?;
                Some(edges.iter().filter(|edge| edge.0 == own).map(|edge| edge.1).collect())
            }
            "MPI_Graph_create" => {
                let ends = all(parts, "index")?;
                let own = usize::try_from(own).ok()?;
                let from = own.checked_sub(1).map_or(Some(0), |before| ends.get(before).copied())?;
                let row = all(parts, "edges")?.get(from as usize..*ends.get(own)? as usize)?;
                Some(row.iter().map(|&rank| rank as i64).collect())
            }
            _ => None,
        }
    }

    /// The call that gave the topology of `word`, through duplicates.
    fn original(&self, word: u64, depth: u32) -> Option<&(Function, Parts<'a>)> {
        let made = self.maker(word)?;
        if !made.0.name().starts_with("MPI_Comm_") || !made.0.name().contains("dup") {
            return Some(made);
        }
        let of = one(&made.1, "comm").filter(|&of| of != word && depth < MOST_NESTING)?;
        self.original(of, depth + 1)
    }

    /// Sizes of the axes of a Cartesian communicator, and which are periodic.
    fn box_of(&self, word: u64, depth: u32) -> Option<(Vec<u64>, Vec<bool>)> {
        let (function, parts) = self.original(word, 0)?;
        let truths =
            |name: &str| Some(all(parts, name)?.iter().map(|&word| word != 0).collect::<Vec<bool>>());
        match function.name() {
            "MPI_Cart_create" => Some((all(parts, "dims")?.to_vec(), truths("periods")?)),
            "MPI_Cart_sub" if depth < MOST_NESTING => {
                let (sizes, periodic) = self.box_of(one(parts, "comm")?, depth + 1)?;
                let kept = truths("remain_dims")?;
                let keep = |at: &usize| kept.get(*at) == Some(&true);
                let left: Vec<usize> = (0..sizes.len()).filter(keep).collect();
                Some((
                    left.iter().map(|&at| sizes[at]).collect(),
                    left.iter().map(|&at| periodic[at]).collect(),
                ))
            }
            _ => None,
        }
    }
}

/// The communicator that a call has made, if it is one.
fn maker(signature: &Signature) -> Option<(u64, Function, Parts<'_>)> {
    if !is_whole(signature) {
        return None;
    }
    let function = Function(signature.function);
    let spec = function.spec();
    let gives = spec.params.iter().any(|param| param.kind == Kind::Comm && is_output(param));
    if !gives || matches!(spec.name, "MPI_Comm_free" | "MPI_Comm_disconnect") {
        return None;
    }
    let parts = parts(signature)?;
    let made = parts.iter().find(|(param, _)| param.kind == Kind::Comm && is_output(param))?;
    let word = *made.1.first()?;
    (!is_predefined(word)).then_some((word, function, parts))
}

/// Neighbours of `own` in a box of `sizes`: along each axis the one before and the one behind.
fn around(own: i64, sizes: &[u64], periodic: &[bool]) -> Vec<i64> {
    let mut found = Vec::new();
    let mut strides = vec![1_i64; sizes.len()];
    for axis in (1..sizes.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(sizes[axis] as i64);
    }
    for ((&size, &stride), &closes) in sizes.iter().zip(&strides).zip(periodic) {
        let size = (size as i64).max(1);
        let place = own / stride.max(1) % size;
        for step in [-1, 1] {
            let next = place + step;
            let to = if closes { next.rem_euclid(size) } else { next };
            let inside = (0..size).contains(&to);
            found.push(if inside { own + (to - place) * stride } else { PROC_NULL });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_in_a_box_come_in_mpi_s_order() {
        assert_eq!(around(5, &[3, 4], &[false, false]), [1, 9, 4, 6]);
        assert_eq!(around(0, &[3, 4], &[true, false]), [8, 4, PROC_NULL, 1]);
        assert_eq!(around(0, &[1, 2], &[true, true]), [0, 0, 1, 1]);
        assert!(around(0, &[], &[]).is_empty());
    }
}
