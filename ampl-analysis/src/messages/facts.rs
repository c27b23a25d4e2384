//! Facts of a signature about messages: its communicator, bytes and starts.

use ampl_core::mpi::{Class, FUNCTION_COUNT, Function, Kind, Param, Traffic};
use ampl_trace::args::is_input;
use ampl_trace::structure::{RankStructure, Signature};
use rustc_hash::FxHashMap;

use super::sources::{Parts, all, maker, one, parts};
use crate::calls::{Arguments, Objects, is_whole};

/// True where calls of such a function name partners.
pub fn matters(traffic: Traffic, name: &str) -> bool {
    use Traffic::{Recv, RecvInit, Send, SendInit, Sendrecv, SendrecvReplace};
    matches!(traffic, Send | SendInit | Recv | RecvInit | Sendrecv | SendrecvReplace)
        || traffic.is_window()
        || is_neighbour(traffic)
        || name.starts_with("MPI_Psend_init")
}

/// True where calls send to the neighbours of their communicator.
pub fn is_neighbour(traffic: Traffic) -> bool {
    use Traffic::{
        NeighborAllgather, NeighborAllgatherv, NeighborAlltoall, NeighborAlltoallv, NeighborAlltoallw,
    };
    matches!(
        traffic,
        NeighborAllgather | NeighborAllgatherv | NeighborAlltoall | NeighborAlltoallv | NeighborAlltoallw
    )
}

/// Communicator that a call is made on.
pub fn comm_word(parts: &Parts<'_>) -> Option<u64> {
    let comm = |&&(param, _): &&(&Param, &[u64])| param.kind == Kind::Comm && is_input(param);
    parts.iter().find(comm)?.1.first().copied()
}

/// The window that a call has made, and the word of the communicator it was made on.
pub fn made_window(signature: &Signature) -> Option<(u64, u64)> {
    if !is_whole(signature) || usize::from(signature.function) >= FUNCTION_COUNT {
        return None;
    }
    let name = Function(signature.function).name();
    if !name.starts_with("MPI_Win_create") && !name.starts_with("MPI_Win_allocate") {
        return None;
    }
    let parts = parts(signature)?;
    Some((one(&parts, "win")?, comm_word(&parts)?))
}

/// Word of the communicator that the window `win` was made on; `None` where several windows had that number.
pub fn window_comm(structure: &RankStructure, win: u64) -> Option<u64> {
    let signatures = structure.threads.iter().flat_map(|thread| &thread.signatures);
    let mut made = signatures.filter_map(made_window).filter(|made| made.0 == win).map(|made| made.1);
    let first = made.next()?;
    made.all(|other| other == first).then_some(first)
}

/// Bytes that a call sends and receives.
pub fn bytes(signature: &Signature, objects: &mut Objects<'_>) -> (Option<u64>, Option<u64>) {
    if Function(signature.function).name().starts_with("MPI_Psend_init") {
        let size = parts(signature).and_then(|parts| {
            let elements = one(&parts, "partitions")?.checked_mul(one(&parts, "count")?)?;
            elements.checked_mul(objects.type_bytes(one(&parts, "datatype")?)?)
        });
        return (size, None);
    }
    let bytes = Arguments::of(signature).and_then(|arguments| arguments.bytes(objects));
    (bytes.map(|bytes| bytes.0), bytes.map(|bytes| bytes.1))
}

/// Bytes that a collective of neighbours sends to the neighbour at that place.
pub fn neighbour_bytes(parts: &Parts<'_>, at: usize, objects: &mut Objects<'_>) -> Option<u64> {
    let count = one(parts, "sendcount").or_else(|| all(parts, "sendcounts")?.get(at).copied())?;
    let datatype = one(parts, "sendtype").or_else(|| all(parts, "sendtypes")?.get(at).copied())?;
    if count == 0 { Some(0) } else { count.checked_mul(objects.type_bytes(datatype)?) }
}

/// Starts of persistent requests, by thread and terminal of the calls that made them.
pub fn starts(structure: &RankStructure) -> FxHashMap<(u32, u32), u64> {
    let mut starts: FxHashMap<(u32, u32), u64> = FxHashMap::default();
    for thread in &structure.threads {
        for (terminal, count) in thread.grammar.totals() {
            let Some(signature) = thread.signatures.get(terminal as usize) else { continue };
            if usize::from(signature.function) >= FUNCTION_COUNT || !is_whole(signature) {
                continue;
            }
            if Function(signature.function).spec().class != Class::Start {
                continue;
            }
            let Some(parts) = parts(signature) else { continue };
            let requests = all(&parts, "request").or_else(|| all(&parts, "array_of_requests"));
            for &request in requests.unwrap_or_default() {
                if let Some(maker) = maker(request) {
                    let sum = starts.entry(maker).or_default();
                    *sum = sum.saturating_add(count);
                }
            }
        }
    }
    starts
}
