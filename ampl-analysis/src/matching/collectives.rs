//! Collectives of a communicator: their roots, operations and blocks, and the ranks that each rank needs.

use std::sync::Arc;

use ampl_core::mpi::{Function, Kind, Traffic};
use ampl_core::value::Value;
use ampl_trace::args::{index_of_predefined, parts};
use ampl_trace::structure::Signature;

use super::call::{Call, Element};
use crate::calls::{Objects, is_whole};

/// Ranks without whose call a rank cannot leave its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// All ranks.
    All,
    /// The root; the root itself needs no other.
    Root,
    /// The root needs all, others need no other.
    RootNeedsAll,
    /// Lower ranks.
    Lower,
    /// Ranks that are not known here: neighbours, or those of another group.
    Others,
}

/// Root of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// A rank of the communicator.
    Rank(i64),
    /// The caller, or a rank of its group, between two groups.
    Group,
}

/// Bytes of the blocks of one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// Not known, or of no meaning.
    Unknown,
    /// The same for every rank.
    Each(u64),
    /// One for each rank.
    Of(Arc<[u64]>),
}

/// Way in which blocks of ranks correspond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// Every rank passes as much.
    Same,
    /// The root sends to each.
    FromRoot,
    /// Each sends to the root.
    ToRoot,
    /// Each sends to each.
    Between,
    /// They are not compared.
    Free,
}

/// A collective, as one rank calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collective {
    /// Function.
    pub function: Function,
    /// Word of its communicator.
    pub comm: u64,
    /// Root, where it has one.
    pub root: Option<Root>,
    /// Operation of MPI's own, where it has one.
    pub op: Option<String>,
    /// Ranks that its end depends on.
    pub needs: Needs,
    /// Way in which blocks correspond.
    pub pairing: Pairing,
    /// Element that it passes on, where its type is a predefined one and must be the same for all ranks.
    pub element: Option<Element>,
    /// Blocks that it sends.
    pub sends: Blocks,
    /// Blocks that it receives.
    pub receives: Blocks,
}

/// Name of the communicator that a collective `function` is called on; `None` for other functions.
fn comm_parameter(function: Function) -> Option<&'static str> {
    use Traffic::{
        Allgather, Allgatherv, Allreduce, Alltoall, Alltoallv, Alltoallw, Bcast, Gather, Gatherv,
        NeighborAllgather, NeighborAllgatherv, NeighborAlltoall, NeighborAlltoallv, NeighborAlltoallw,
        Reduce, ReduceScatter, ReduceScatterBlock, Scatter, Scatterv,
    };
    let spec = function.spec();
    match spec.traffic {
        Bcast | Gather | Gatherv | Scatter | Scatterv | Allgather | Allgatherv | Alltoall | Alltoallv
        | Alltoallw | Reduce | Allreduce | ReduceScatter | ReduceScatterBlock | NeighborAllgather
        | NeighborAllgatherv | NeighborAlltoall | NeighborAlltoallv | NeighborAlltoallw => {
            return Some("comm");
        }
        Traffic::None => {}
        _ => return None,
    }
    Some(match function.base_name() {
        "MPI_Barrier" | "MPI_Ibarrier" | "MPI_Barrier_init" => "comm",
        "MPI_Comm_dup" | "MPI_Comm_dup_with_info" | "MPI_Comm_idup" | "MPI_Comm_idup_with_info" => "comm",
        "MPI_Comm_create" | "MPI_Comm_split" | "MPI_Comm_split_type" | "MPI_Cart_sub" => "comm",
        "MPI_Cart_create" | "MPI_Graph_create" => "comm_old",
        "MPI_Dist_graph_create" | "MPI_Dist_graph_create_adjacent" => "comm_old",
        "MPI_Intercomm_merge" => "intercomm",
        "MPI_Intercomm_create" => "local_comm",
        "MPI_Win_create" | "MPI_Win_allocate" | "MPI_Win_allocate_shared" | "MPI_Win_create_dynamic" => {
            "comm"
        }
        "MPI_File_open" => "comm",
        _ => return None,
    })
}

/// True where all ranks of a communicator call `function` together.
pub fn is_collective(function: Function) -> bool {
    comm_parameter(function).is_some()
}

/// The collective of a call; `None` where it names no communicator.
pub fn collective(call: &Call, signature: &Signature, objects: &mut Objects<'_>) -> Option<Collective> {
    let function = call.function;
    let spec = function.spec();
    let comm = call.comm(comm_parameter(function)?)?;
    let root = call.input("root").map(|root| match root {
        Value::Int(root) => Root::Rank(*root),
        _ => Root::Group,
    });
    let op = match call.input("op") {
        Some(Value::Name(name)) => Some(name.clone()),
        _ => None,
    };
    let scan = spec.name.contains("can");
    let (needs, pairing) = match spec.traffic {
        Traffic::Bcast | Traffic::Scatter | Traffic::Scatterv => (Needs::Root, Pairing::FromRoot),
        Traffic::Gather | Traffic::Gatherv => (Needs::RootNeedsAll, Pairing::ToRoot),
        Traffic::Reduce => (Needs::RootNeedsAll, Pairing::Same),
        Traffic::Allreduce if scan => (Needs::Lower, Pairing::Same),
        Traffic::Allreduce | Traffic::ReduceScatter | Traffic::ReduceScatterBlock => {
            (Needs::All, Pairing::Same)
        }
        Traffic::None => (Needs::All, Pairing::Free),
        traffic if crate::messages::facts::is_neighbour(traffic) => (Needs::Others, Pairing::Free),
        _ => (Needs::All, Pairing::Between),
    };
    let between_groups = root == Some(Root::Group) || call.input("intercomm").is_some();
    let (needs, pairing) = if between_groups { (Needs::Others, Pairing::Free) } else { (needs, pairing) };
    let (sends, receives) = match is_whole(signature) && pairing != Pairing::Free {
        true => blocks(signature, objects).unwrap_or((Blocks::Unknown, Blocks::Unknown)),
        false => (Blocks::Unknown, Blocks::Unknown),
    };
    let is_empty = sends == Blocks::Each(0);
    let element = ["datatype", "sendtype"].into_iter().find_map(|name| call.element(name));
    let element = element.filter(|_| sends != Blocks::Unknown && !is_empty && pairing != Pairing::Free);
    Some(Collective { function, comm, root, op, needs, pairing, element, sends, receives })
}

/// Blocks that a call sends and receives.
fn blocks(signature: &Signature, objects: &mut Objects<'_>) -> Option<(Blocks, Blocks)> {
    let spec = Function(signature.function).spec();
    let parts = parts(spec, &signature.words)?;
    let words = |names: &[&str]| {
        names
            .iter()
            .find_map(|name| parts.iter().find(|(param, _)| param.name == *name).map(|(_, words)| *words))
    };
    let in_place = |names: &[&str]| {
        let is = |words: &[u64]| words.first() == Some(&ampl_trace::args::IN_PLACE);
        words(names).is_some_and(is)
    };
    let mut side = |buffers: &[&str], counts: &[&str], types: &[&str]| -> Blocks {
        if in_place(buffers) {
            return Blocks::Unknown;
        }
        let (Some(counts), Some(types)) = (words(counts), words(types)) else { return Blocks::Unknown };
        let mut bytes = |(at, &count): (usize, &u64)| {
            let datatype = *if types.len() > 1 { types.get(at)? } else { types.first()? };
            let count = u64::try_from(count as i64).ok()?;
            // A null handle has no size, and need not have any.
            let mut is_known =
                |word: u64| index_of_predefined(word).is_some() || objects.type_bytes(word).is_some();
            if count == 0 && !is_known(datatype) {
                Some(0)
            } else {
                objects.type_bytes(datatype)?.checked_mul(count)
            }
        };
        let each: Option<Vec<u64>> = counts.iter().enumerate().map(&mut bytes).collect();
        let list = parts.iter().any(|(param, words)| {
            words.as_ptr() == counts.as_ptr()
                && ampl_trace::args::shape(param) == ampl_trace::args::Shape::Array
        });
        match each {
            Some(each) if list => Blocks::Of(each.into()),
            Some(each) => each.first().map_or(Blocks::Unknown, |&bytes| Blocks::Each(bytes)),
            None => Blocks::Unknown,
        }
    };
    let has = |name: &str| spec.params.iter().any(|param| param.name == name && param.kind != Kind::Address);
    if has("sendtype") || has("sendtypes") {
        let sends = side(&["sendbuf"], &["sendcount", "sendcounts"], &["sendtype", "sendtypes"]);
        let receives = side(&["recvbuf"], &["recvcount", "recvcounts"], &["recvtype", "recvtypes"]);
        return Some((sends, receives));
    }
    let both = side(&[], &["count", "recvcount", "recvcounts"], &["datatype"]);
    Some((both.clone(), both))
}

impl Blocks {
    /// Bytes of the block of the rank at that place.
    pub fn at(&self, place: usize) -> Option<u64> {
        match self {
            Self::Unknown => None,
            Self::Each(bytes) => Some(*bytes),
            Self::Of(list) => list.get(place).copied(),
        }
    }
}
