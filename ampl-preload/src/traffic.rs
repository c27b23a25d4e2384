//! Bytes that a call sends and receives, from its arguments.
//!
//! A side's bytes are count × type size of its buffer; `MPI_IN_PLACE` takes the other side's
//! counts; `MPI_PROC_NULL` moves nothing. What each collective's buffers hold is in MPI-4.1 chapter 6.

use ampl_core::mpi::{FunctionSpec, Traffic};

/// Positions of the parameters that traffic depends on; 255 for none.
#[derive(Clone, Copy, Debug)]
pub struct Operands {
    /// The rule.
    pub traffic: Traffic,
    send: Side,
    receive: Side,
    peer: u8,
    source: u8,
    comm: u8,
    root: u8,
    /// Whether counts are 64 bits wide (the `_c` functions).
    large: bool,
}

#[derive(Clone, Copy, Debug)]
struct Side {
    buffer: u8,
    count: u8,
    datatype: u8,
}

const NONE: u8 = 255;

/// What traffic rules must ask about handles and memory.
pub trait Facts {
    /// Bytes of one element of the datatype.
    fn type_bytes(&mut self, datatype: usize) -> u64;
    /// Ranks in the communicator (remote ones of an intercommunicator), and the caller's rank.
    fn comm(&mut self, comm: usize) -> (u64, u64);
    /// Neighbours that the caller receives from and sends to.
    fn degrees(&mut self, comm: usize) -> (u64, u64);
    /// Element `index` of an array of counts.
    fn count_at(&self, base: usize, index: usize, large: bool) -> u64;
    /// Element `index` of an array of datatypes.
    fn type_at(&self, base: usize, index: usize) -> usize;
    /// Whether the buffer is `MPI_IN_PLACE`.
    fn is_in_place(&self, buffer: usize) -> bool;
    /// Whether the rank is `MPI_PROC_NULL`.
    fn is_proc_null(&self, rank: usize) -> bool;
    /// Whether the rank is `MPI_ROOT`.
    fn is_root(&self, rank: usize) -> bool;
}

impl Operands {
    /// The operands of `spec`, by the standard's names.
    pub fn of(spec: &FunctionSpec) -> Self {
        let at = |names: &[&str]| {
            let found =
                names.iter().find_map(|name| spec.params.iter().position(|param| param.name == *name));
            found.map_or(NONE, |index| index as u8)
        };
        Self {
            traffic: spec.traffic,
            send: Side {
                buffer: at(&["sendbuf", "buf", "buffer", "inbuf"]),
                count: at(&["sendcount", "sendcounts", "count", "recvcounts", "recvcount"]),
                datatype: at(&["sendtype", "sendtypes", "datatype"]),
            },
            receive: Side {
                buffer: at(&["recvbuf", "buf", "buffer"]),
                count: at(&["recvcount", "recvcounts", "count"]),
                datatype: at(&["recvtype", "recvtypes", "datatype"]),
            },
            peer: at(&["dest", "source"]),
            source: at(&["source"]),
            comm: at(&["comm"]),
            root: at(&["root"]),
            large: spec.name.ends_with("_c"),
        }
    }

    /// Bytes sent and received by a call with these words.
    #[inline]
    pub fn bytes(&self, words: &[usize], facts: &mut impl Facts) -> (u64, u64) {
        match self.traffic {
            Traffic::None => (0, 0),
            Traffic::Send | Traffic::SendInit if facts.is_proc_null(word(words, self.peer)) => (0, 0),
            Traffic::Send | Traffic::SendInit => (self.side(self.send, words, facts), 0),
            Traffic::Recv | Traffic::RecvInit if facts.is_proc_null(word(words, self.source)) => (0, 0),
            Traffic::Recv | Traffic::RecvInit => (0, self.side(self.receive, words, facts)),
            Traffic::Sendrecv | Traffic::SendrecvReplace => {
                let sent = self.side(self.send, words, facts);
                let received = self.side(self.receive, words, facts);
                let no_dest = facts.is_proc_null(word(words, self.peer));
                let no_source = facts.is_proc_null(word(words, self.source));
                (if no_dest { 0 } else { sent }, if no_source { 0 } else { received })
            }
            _ => self.collective(words, facts),
        }
    }

    fn side(&self, side: Side, words: &[usize], facts: &mut impl Facts) -> u64 {
        count(word(words, side.count), self.large)
            .saturating_mul(facts.type_bytes(word(words, side.datatype)))
    }

    fn collective(&self, words: &[usize], facts: &mut impl Facts) -> (u64, u64) {
        let (ranks, own) = facts.comm(word(words, self.comm));
        let root = word(words, self.root);
        let at_root = self.root != NONE && (facts.is_root(root) || root as u32 as u64 == own);
        let outside = self.root != NONE && facts.is_proc_null(root);
        if outside {
            return (0, 0); // in a root's group, but not the root
        }
        let in_place = facts.is_in_place(word(words, self.send.buffer));
        let own = own as usize;
        // One block each way; IN_PLACE sends what it would have received as its own.
        let receive_block = self.side(self.receive, words, facts);
        let send_block = if in_place && self.receive.count != NONE {
            receive_block
        } else {
            self.side(self.send, words, facts)
        };
        match self.traffic {
            Traffic::Bcast if at_root => (send_block, 0),
            Traffic::Bcast => (0, receive_block),
            Traffic::Reduce => (send_block, if at_root { send_block } else { 0 }),
            Traffic::Allreduce => (send_block, send_block),
            Traffic::ReduceScatterBlock => (send_block.saturating_mul(ranks), send_block),
            Traffic::ReduceScatter => {
                let bytes = facts.type_bytes(word(words, self.send.datatype));
                let counts = word(words, self.receive.count);
                let total: u64 = (0..ranks as usize).map(|i| facts.count_at(counts, i, self.large)).sum();
                (total * bytes, facts.count_at(counts, own, self.large) * bytes)
            }
            Traffic::Gather => (send_block, if at_root { receive_block.saturating_mul(ranks) } else { 0 }),
            Traffic::Allgather => (send_block, receive_block.saturating_mul(ranks)),
            Traffic::Alltoall => (send_block.saturating_mul(ranks), receive_block.saturating_mul(ranks)),
            Traffic::Scatter => {
                let receives = !facts.is_in_place(word(words, self.receive.buffer));
                let sent = if at_root { self.side(self.send, words, facts).saturating_mul(ranks) } else { 0 };
                let received = if receives { receive_block } else { self.side(self.send, words, facts) };
                (sent, received)
            }
            Traffic::Gatherv | Traffic::Allgatherv => {
                let all = self.traffic == Traffic::Allgatherv;
                let received =
                    if at_root || all { self.vector(self.receive, words, ranks, facts) } else { 0 };
                let sent = if in_place {
                    self.element(self.receive, words, own, facts)
                } else {
                    self.side(self.send, words, facts)
                };
                (sent, received)
            }
            Traffic::Scatterv => {
                let receives = !facts.is_in_place(word(words, self.receive.buffer));
                let sent = if at_root { self.vector(self.send, words, ranks, facts) } else { 0 };
                let received =
                    if receives { receive_block } else { self.element(self.send, words, own, facts) };
                (sent, received)
            }
            Traffic::Alltoallv | Traffic::Alltoallw => {
                let received = self.vector(self.receive, words, ranks, facts);
                let sent = if in_place { received } else { self.vector(self.send, words, ranks, facts) };
                (sent, received)
            }
            _ => self.neighbor(words, facts),
        }
    }

    fn neighbor(&self, words: &[usize], facts: &mut impl Facts) -> (u64, u64) {
        let (sources, targets) = facts.degrees(word(words, self.comm));
        match self.traffic {
            Traffic::NeighborAllgather => (
                self.side(self.send, words, facts),
                self.side(self.receive, words, facts).saturating_mul(sources),
            ),
            Traffic::NeighborAlltoall => (
                self.side(self.send, words, facts).saturating_mul(targets),
                self.side(self.receive, words, facts).saturating_mul(sources),
            ),
            Traffic::NeighborAllgatherv => {
                (self.side(self.send, words, facts), self.vector(self.receive, words, sources, facts))
            }
            Traffic::NeighborAlltoallv | Traffic::NeighborAlltoallw => (
                self.vector(self.send, words, targets, facts),
                self.vector(self.receive, words, sources, facts),
            ),
            _ => (0, 0),
        }
    }

    fn typed_per_element(&self) -> bool {
        matches!(self.traffic, Traffic::Alltoallw | Traffic::NeighborAlltoallw)
    }

    fn element(&self, side: Side, words: &[usize], index: usize, facts: &mut impl Facts) -> u64 {
        let elements = facts.count_at(word(words, side.count), index, self.large);
        let datatype = word(words, side.datatype);
        let datatype = if self.typed_per_element() { facts.type_at(datatype, index) } else { datatype };
        elements.saturating_mul(facts.type_bytes(datatype))
    }

    fn vector(&self, side: Side, words: &[usize], elements: u64, facts: &mut impl Facts) -> u64 {
        if self.typed_per_element() {
            return (0..elements as usize).map(|index| self.element(side, words, index, facts)).sum();
        }
        let counts = word(words, side.count);
        let total: u64 = (0..elements as usize).map(|index| facts.count_at(counts, index, self.large)).sum();
        total.saturating_mul(facts.type_bytes(word(words, side.datatype)))
    }
}

fn word(words: &[usize], index: u8) -> usize {
    words.get(usize::from(index)).copied().unwrap_or(0)
}

fn count(word: usize, large: bool) -> u64 {
    if large { word as i64 } else { i64::from(word as i32) }.max(0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use ampl_core::mpi::{Function, ids};

    /// Four ranks, of which the caller is 1; datatype words are their sizes; -1 is PROC_NULL, IN_PLACE is 7.
    struct Four;

    impl Facts for Four {
        fn type_bytes(&mut self, datatype: usize) -> u64 {
            datatype as u64
        }
        fn comm(&mut self, _: usize) -> (u64, u64) {
            (4, 1)
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
        fn is_root(&self, _: usize) -> bool {
            false
        }
    }

    fn bytes(function: Function, words: &[usize]) -> (u64, u64) {
        Operands::of(function.spec()).bytes(words, &mut Four)
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
}
