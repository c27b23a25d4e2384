//! Made-up calls, and what they move.

use super::*;
use crate::mpi::{Function, ids};

/// Four ranks, of which the caller is 1 (communicator 0), or two of them facing four others
/// (1); datatype words are their sizes; -1 is PROC_NULL, -9 ROOT, IN_PLACE is 7.
struct Four;

/// A datatype that must not be looked at.
const GARBAGE: usize = 0xbad;

impl Facts for Four {
    fn type_bytes(&mut self, datatype: usize) -> u64 {
        assert_ne!(datatype, GARBAGE, "asked about an argument without meaning");
        datatype as u64
    }
    fn comm(&mut self, comm: usize) -> Members {
        match comm {
            0 => Members { peers: 4, local: 4, rank: Some(1) },
            _ => Members { peers: 4, local: 2, rank: None },
        }
    }
    fn comm_now(&mut self, comm: usize) -> Members {
        self.comm(comm)
    }
    fn degrees(&mut self, _: usize) -> (u64, u64) {
        (2, 3)
    }
    fn count_at(&self, base: usize, index: usize, _: bool) -> u64 {
        (base + index) as u64
    }
    fn type_at(&self, base: usize, index: usize) -> usize {
        base + index
    }
    fn is_in_place(&self, buffer: usize) -> bool {
        buffer == 7
    }
    fn is_proc_null(&self, rank: usize) -> bool {
        rank as i32 == -1
    }
    fn is_root(&self, rank: usize) -> bool {
        rank as i32 == -9
    }
    fn is_no_op(&self, op: usize) -> bool {
        op == 77
    }
}

fn bytes(function: Function, words: &[usize]) -> (u64, u64) {
    Operands::of(function.spec()).bytes(words, &mut Four)
}

#[test]
fn point_to_point_calls_name_their_ends() {
    let named = |function: Function, words: &[usize]| {
        let Named { dest, source, comm } = Ends::of(function.spec()).expect("point to point").named(words);
        (dest, source, comm)
    };
    assert_eq!(named(ids::MPI_SEND, &[0, 1, 8, 2, 0, 9]), (2, NOBODY, 9));
    assert_eq!(named(ids::MPI_IRECV, &[0, 1, 8, usize::MAX - 1, 0, 9, 0]), (NOBODY, -2, 9));
    assert_eq!(named(ids::MPI_SENDRECV, &[0, 3, 8, 1, 0, 0, 5, 4, 6, 0, 9, 0]), (1, 6, 9));
    assert_eq!(named(ids::MPI_RECV_INIT, &[0, 1, 8, 3, 0, 9, 0]), (NOBODY, 3, 9));
    assert_eq!(named(ids::MPI_IMPROBE, &[3, 0, 9, 0, 0, 0]), (NOBODY, 3, 9));
    let any = Ends::of(ids::MPI_RECV.spec()).unwrap();
    assert!(any.is_open(&[0, 1, 8, usize::MAX - 1, 0, 9, 0], -2) && !any.is_open(&[0, 1, 8, 3, 0, 9, 0], -2));
    for other in [ids::MPI_BCAST, ids::MPI_PROBE, ids::MPI_MRECV, ids::MPI_PUT, ids::MPI_WAIT] {
        assert_eq!(Ends::of(other.spec()), None, "{}", other.name());
    }
    let all = crate::mpi::FUNCTIONS.iter();
    // 19 that send, receive or both, and each again for large counts; two probes that match.
    assert_eq!(all.filter(|spec| Ends::of(spec).is_some()).count(), 40);
}

#[test]
fn point_to_point() {
    assert_eq!(bytes(ids::MPI_SEND, &[0, 10, 8, 2, 0, 0]), (80, 0));
    // The upper half of an int's register may hold anything.
    assert_eq!(bytes(ids::MPI_SEND, &[0, 0xffff_0000_000a, 8, 0xffff_ffff, 0, 0]), (0, 0));
    assert_eq!(bytes(ids::MPI_IRECV, &[0, 10, 8, 2, 0, 0, 0]), (0, 80));
    assert_eq!(bytes(ids::MPI_SENDRECV, &[0, 3, 8, 1, 0, 0, 5, 4, usize::MAX, 0, 0, 0]), (24, 0));
    assert_eq!(bytes(ids::MPI_SENDRECV_REPLACE, &[0, 3, 8, usize::MAX, 0, 2, 0, 0, 0]), (0, 24));
    assert_eq!(bytes(ids::MPI_PROBE, &[0, 0, 0, 0]), (0, 0));
}

#[test]
fn files_and_windows() {
    assert_eq!(bytes(ids::MPI_FILE_READ, &[0, 0, 10, 8, 0]), (0, 80));
    assert_eq!(bytes(ids::MPI_FILE_IWRITE_AT_ALL, &[0, 5, 0, 10, 8, 0]), (80, 0));
    assert_eq!(bytes(ids::MPI_FILE_WRITE_ORDERED_BEGIN, &[0, 0, 3, 4]), (12, 0));
    assert_eq!(bytes(ids::MPI_FILE_WRITE_ORDERED_END, &[0, 0, 0]), (0, 0));
    assert_eq!(bytes(ids::MPI_PUT, &[0, 3, 8, 1, 0, 6, 4, 0]), (24, 0));
    assert_eq!(bytes(ids::MPI_PUT, &[0, 3, GARBAGE, usize::MAX, 0, 6, 4, 0]), (0, 0));
    assert_eq!(bytes(ids::MPI_RGET, &[0, 3, 8, 1, 0, 6, 4, 0, 0]), (0, 24));
    assert_eq!(bytes(ids::MPI_ACCUMULATE, &[0, 3, 8, 1, 0, 3, 8, 1, 0]), (24, 0));
    assert_eq!(bytes(ids::MPI_GET_ACCUMULATE, &[0, 3, 8, 0, 2, 4, 1, 0, 2, 4, 1, 0]), (24, 8));
    assert_eq!(bytes(ids::MPI_GET_ACCUMULATE, &[0, 3, GARBAGE, 0, 2, 4, 1, 0, 2, 4, 77, 0]), (0, 8));
    assert_eq!(bytes(ids::MPI_FETCH_AND_OP, &[0, 0, 8, 1, 0, 1, 0]), (8, 8));
    assert_eq!(bytes(ids::MPI_FETCH_AND_OP, &[0, 0, 8, 1, 0, 77, 0]), (0, 8));
    assert_eq!(bytes(ids::MPI_COMPARE_AND_SWAP, &[0, 0, 0, 4, 1, 0, 0]), (4, 4));
    // Every one of them counts something, and no message does.
    for spec in crate::mpi::FUNCTIONS {
        let moves =
            spec.name.starts_with("MPI_File_") && spec.params.iter().any(|param| param.name == "count");
        assert_eq!(spec.traffic.is_file(), moves, "{}", spec.name);
        let reaches = spec.params.iter().any(|param| param.name == "target_rank");
        assert_eq!(spec.traffic.is_window(), reaches, "{}", spec.name);
    }
}

#[test]
fn collectives_by_role() {
    assert_eq!(bytes(ids::MPI_BCAST, &[0, 10, 8, 1, 0]), (80, 0));
    assert_eq!(bytes(ids::MPI_BCAST, &[0, 10, 8, 0, 0]), (0, 80));
    assert_eq!(bytes(ids::MPI_REDUCE, &[0, 0, 10, 8, 0, 1, 0]), (80, 80));
    assert_eq!(bytes(ids::MPI_REDUCE, &[0, 0, 10, 8, 0, 2, 0]), (80, 0));
    assert_eq!(bytes(ids::MPI_ALLREDUCE, &[7, 0, 10, 8, 0, 0]), (80, 80));
    assert_eq!(bytes(ids::MPI_GATHER, &[0, 2, 8, 0, 3, 8, 1, 0]), (16, 96));
    assert_eq!(bytes(ids::MPI_GATHER, &[7, 0, 0, 0, 3, 8, 1, 0]), (24, 96));
    assert_eq!(bytes(ids::MPI_SCATTER, &[0, 2, 8, 0, 2, 8, 0, 0]), (0, 16));
    assert_eq!(bytes(ids::MPI_SCATTER, &[0, 2, 8, 7, 0, 0, 1, 0]), (64, 16));
    assert_eq!(bytes(ids::MPI_ALLGATHER, &[7, 0, 0, 0, 3, 8, 0]), (24, 96));
    assert_eq!(bytes(ids::MPI_ALLTOALL, &[0, 2, 8, 0, 3, 8, 0]), (64, 96));
    // Counts 10, 11, 12, 13; the caller's own is 11.
    assert_eq!(bytes(ids::MPI_REDUCE_SCATTER, &[0, 0, 10, 8, 0, 0]), (46 * 8, 88));
    assert_eq!(bytes(ids::MPI_ALLGATHERV, &[7, 0, 0, 0, 10, 0, 8, 0]), (88, 46 * 8));
    assert_eq!(bytes(ids::MPI_ALLTOALLV, &[0, 20, 0, 8, 0, 10, 0, 8, 0]), (86 * 8, 46 * 8));
    let each = |base: usize| (0..4).map(|i| (base + i) * (8 + i)).sum::<usize>() as u64;
    assert_eq!(bytes(ids::MPI_ALLTOALLW, &[0, 20, 0, 8, 0, 10, 0, 8, 0]), (each(20), each(10)));
    assert_eq!(bytes(ids::MPI_NEIGHBOR_ALLTOALL, &[0, 2, 8, 0, 3, 8, 0]), (48, 48));
}

#[test]
fn arguments_without_meaning_are_not_looked_at() {
    let none = GARBAGE;
    assert_eq!(bytes(ids::MPI_GATHER, &[0, 2, 8, 0, 3, none, 2, 0]), (16, 0));
    assert_eq!(bytes(ids::MPI_GATHERV, &[0, 2, 8, 0, none, none, none, 2, 0]), (16, 0));
    assert_eq!(bytes(ids::MPI_SCATTER, &[0, 3, none, 0, 2, 8, 2, 0]), (0, 16));
    assert_eq!(bytes(ids::MPI_SCATTERV, &[0, none, none, none, 0, 2, 8, 2, 0]), (0, 16));
    assert_eq!(bytes(ids::MPI_SCATTER, &[0, 2, 8, 7, 5, none, 1, 0]), (64, 16));
    assert_eq!(bytes(ids::MPI_ALLGATHER, &[7, 5, none, 0, 3, 8, 0]), (24, 96));
    assert_eq!(bytes(ids::MPI_ALLTOALLV, &[7, none, none, none, 0, 10, 0, 8, 0]), (46 * 8, 46 * 8));
    let no_dest = [0, 3, none, usize::MAX, 0, 5, 4, 8, 2, 0, 0, 0];
    assert_eq!(bytes(ids::MPI_SENDRECV, &no_dest), (0, 32));
    assert_eq!(bytes(ids::MPI_SEND, &[0, 0, none, 2, 0, 0]), (0, 0));
}

#[test]
fn between_two_groups_only_one_side_counts() {
    let (root, null) = (-9i32 as u32 as usize, usize::MAX);
    assert_eq!(bytes(ids::MPI_GATHER, &[0, 2, GARBAGE, 0, 3, 8, root, 1]), (0, 96));
    assert_eq!(bytes(ids::MPI_GATHER, &[0, 2, 8, 0, 3, GARBAGE, null, 1]), (0, 0));
    // Rank 1 of the other group is the root: the caller, whatever its own number, is not.
    assert_eq!(bytes(ids::MPI_GATHER, &[0, 2, 8, 0, 3, GARBAGE, 1, 1]), (16, 0));
    assert_eq!(bytes(ids::MPI_REDUCE, &[0, 0, 10, 8, 0, root, 1]), (0, 80));
    // Counts 10 and 11: one per rank of the caller's own group.
    assert_eq!(bytes(ids::MPI_REDUCE_SCATTER, &[0, 0, 10, 8, 0, 1]).0, 21 * 8);
}
