//! Bytes that a call sends and receives, from its arguments.
//!
//! A side's bytes are count × type size of its buffer; `MPI_IN_PLACE` takes the other side's
//! counts; `MPI_PROC_NULL` moves nothing. What each collective's buffers hold is in MPI-4.1 chapter 6.

use super::{FunctionSpec, Traffic};

/// Positions of the parameters that traffic depends on; 255 for none.
#[derive(Clone, Copy, Debug)]
pub struct Operands {
    /// The rule.
    pub traffic: Traffic,
    send: Side,
    receive: Side,
    peer: u8,
    /// Position of the source, or of the operation where there is no source.
    source: u8,
    comm: u8,
    root: u8,
    /// `true` if counts are 64 bits wide (the `_c` functions).
    large: bool,
}

#[derive(Clone, Copy, Debug)]
struct Side {
    buffer: u8,
    count: u8,
    datatype: u8,
}

const NONE: u8 = 255;

/// Positions of the parameters by which a call names the other ends of its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    dest: u8,
    source: u8,
    comm: u8,
}

/// The other ends of a call's messages: ranks, or constants of the MPI, or [`NOBODY`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// The rank it sends to.
    pub dest: i32,
    /// The rank it receives from.
    pub source: i32,
    /// The communicator that both are ranks of.
    pub comm: usize,
}

/// Value of an end where a call does not send, or does not receive; no MPI has a constant of that value.
pub const NOBODY: i32 = i32::MIN;

impl Ends {
    /// Positions of the ends in `spec`; `None` unless its calls are point to point and name a rank. A matching probe
    /// stands for the receive that must follow it, which names no rank.
    pub fn of(spec: &FunctionSpec) -> Option<Self> {
        let at = |name: &str| spec.params.iter().position(|param| param.name == name).map(|at| at as u8);
        let takes = matches!(spec.name, "MPI_Mprobe" | "MPI_Improbe");
        let (sends, receives) = match spec.traffic {
            Traffic::Send | Traffic::SendInit => (true, false),
            Traffic::Recv | Traffic::RecvInit => (false, true),
            Traffic::Sendrecv | Traffic::SendrecvReplace => (true, true),
            _ => (false, takes),
        };
        let (dest, source) = (at("dest").filter(|_| sends), at("source").filter(|_| receives));
        let named = dest.is_some() || source.is_some();
        let (dest, source) = (dest.unwrap_or(NONE), source.unwrap_or(NONE));
        Some(Self { dest, source, comm: at("comm").filter(|_| named)? })
    }

    /// Other ends of a call with these words.
    #[inline]
    pub fn named(&self, words: &[usize]) -> Named {
        let rank = |index: u8| if index == NONE { NOBODY } else { word(words, index) as i32 };
        Named { dest: rank(self.dest), source: rank(self.source), comm: word(words, self.comm) }
    }

    /// `true` if a call with these words receives from any source, which is the rank `any`.
    #[inline]
    pub fn is_open(&self, words: &[usize], any: i32) -> bool {
        self.source != NONE && word(words, self.source) as i32 == any
    }
}

/// Sizes of a communicator's groups, and the caller's rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Members {
    /// Ranks that a collective deals with: the other group's of an intercommunicator.
    pub peers: u64,
    /// Ranks of the caller's own group.
    pub local: u64,
    /// The caller's rank among `peers`; none in an intercommunicator.
    pub rank: Option<u64>,
}

/// Queries about handles and memory that the traffic rules make.
pub trait Facts {
    /// Bytes of one element of the datatype.
    fn type_bytes(&mut self, datatype: usize) -> u64;
    /// Sizes of the communicator's groups, and the caller's rank.
    fn comm(&mut self, comm: usize) -> Members;
    /// The same, queried anew: as many elements of the program's arrays are about to be read.
    fn comm_now(&mut self, comm: usize) -> Members;
    /// Neighbours that the caller receives from and sends to.
    fn degrees(&mut self, comm: usize) -> (u64, u64);
    /// Element `index` of an array of counts.
    fn count_at(&self, base: usize, index: usize, large: bool) -> u64;
    /// Element `index` of an array of datatypes.
    fn type_at(&self, base: usize, index: usize) -> usize;
    /// `true` if the buffer is `MPI_IN_PLACE`.
    fn is_in_place(&self, buffer: usize) -> bool;
    /// `true` if the rank is `MPI_PROC_NULL`.
    fn is_proc_null(&self, rank: usize) -> bool;
    /// `true` if the rank is `MPI_ROOT`.
    fn is_root(&self, rank: usize) -> bool;
    /// `true` if the operation is `MPI_NO_OP`.
    fn is_no_op(&self, op: usize) -> bool;
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
                buffer: at(&["sendbuf", "buf", "buffer", "inbuf", "origin_addr"]),
                count: at(&["sendcount", "sendcounts", "count", "recvcounts", "recvcount", "origin_count"]),
                datatype: at(&["sendtype", "sendtypes", "datatype", "origin_datatype"]),
            },
            receive: Side {
                buffer: at(&["recvbuf", "buf", "buffer", "result_addr", "origin_addr"]),
                count: at(&["recvcount", "recvcounts", "count", "result_count", "origin_count"]),
                datatype: at(&["recvtype", "recvtypes", "datatype", "result_datatype", "origin_datatype"]),
            },
            peer: at(&["dest", "source", "target_rank"]),
            source: at(&[if spec.traffic == Traffic::GetAccumulate { "op" } else { "source" }]),
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
                let (dest, source) = (word(words, self.peer), word(words, self.source));
                let sent = if facts.is_proc_null(dest) { 0 } else { self.side(self.send, words, facts) };
                let received =
                    if facts.is_proc_null(source) { 0 } else { self.side(self.receive, words, facts) };
                (sent, received)
            }
            Traffic::FileRead => (0, self.side(self.receive, words, facts)),
            Traffic::FileWrite => (self.side(self.send, words, facts), 0),
            traffic if traffic.is_window() => self.window(words, facts),
            _ => self.collective(words, facts),
        }
    }

    /// `true` if the bytes may depend on the caller's rank in its communicator, whatever the words are.
    pub fn depends_on_rank(&self) -> bool {
        let vector = matches!(
            self.traffic,
            Traffic::ReduceScatter | Traffic::Gatherv | Traffic::Scatterv | Traffic::Allgatherv
        );
        vector || self.root != NONE
    }

    /// Bytes of a call on a window; an origin without meaning is not read.
    fn window(&self, words: &[usize], facts: &mut impl Facts) -> (u64, u64) {
        if facts.is_proc_null(word(words, self.peer)) {
            return (0, 0);
        }
        match self.traffic {
            Traffic::Put => (self.side(self.send, words, facts), 0),
            Traffic::Get => (0, self.side(self.receive, words, facts)),
            Traffic::GetAccumulate if facts.is_no_op(word(words, self.source)) => {
                (0, self.side(self.receive, words, facts))
            }
            _ => (self.side(self.send, words, facts), self.side(self.receive, words, facts)),
        }
    }

    fn side(&self, side: Side, words: &[usize], facts: &mut impl Facts) -> u64 {
        // Calls that name a type and no count are of one element.
        let elements = if side.count == NONE { 1 } else { count(word(words, side.count), self.large) };
        // Nothing is asked about a datatype without elements: it need not be one.
        if elements == 0 { 0 } else { elements.saturating_mul(facts.type_bytes(word(words, side.datatype))) }
    }

    /// Only sides that are significant for the caller are looked at: what a program passes for the
    /// others may be anything, and MPI does not check it either.
    fn collective(&self, words: &[usize], facts: &mut impl Facts) -> (u64, u64) {
        let comm = match self.traffic {
            Traffic::ReduceScatter
            | Traffic::Gatherv
            | Traffic::Scatterv
            | Traffic::Allgatherv
            | Traffic::Alltoallv
            | Traffic::Alltoallw => facts.comm_now(word(words, self.comm)),
            _ => facts.comm(word(words, self.comm)),
        };
        let root = word(words, self.root);
        let rooted = self.root != NONE;
        if rooted && facts.is_proc_null(root) {
            return (0, 0); // of the root's group between two groups, but not the root
        }
        let beside = rooted && facts.is_root(root); // the root between two groups: one side only
        let at_root = beside || (rooted && comm.rank == Some(u64::from(root as u32)));
        let ranks = comm.peers;
        match self.traffic {
            Traffic::Bcast if at_root => (self.side(self.send, words, facts), 0),
            Traffic::Bcast => (0, self.side(self.receive, words, facts)),
            Traffic::Reduce => {
                let block = self.side(self.send, words, facts);
                (if beside { 0 } else { block }, if at_root { block } else { 0 })
            }
            Traffic::Allreduce => {
                let block = self.side(self.send, words, facts);
                (block, block)
            }
            Traffic::ReduceScatterBlock => {
                let block = self.side(self.send, words, facts);
                (block.saturating_mul(comm.local), block)
            }
            Traffic::ReduceScatter => {
                let counts = Side { count: self.receive.count, ..self.send };
                let own = comm.rank.map_or(0, |own| self.element(counts, words, own as usize, facts));
                (self.vector(counts, words, comm.local, facts), own)
            }
            Traffic::Gather | Traffic::Gatherv => {
                let vector = self.traffic == Traffic::Gatherv;
                let sent = match comm.rank {
                    _ if beside => 0,
                    Some(own) if at_root && takes_in_place(self.send, words, facts) => {
                        self.block(self.receive, words, vector.then_some(own), facts)
                    }
                    _ => self.side(self.send, words, facts),
                };
                (sent, if at_root { self.blocks(self.receive, words, vector, ranks, facts) } else { 0 })
            }
            Traffic::Scatter | Traffic::Scatterv => {
                let vector = self.traffic == Traffic::Scatterv;
                let received = match comm.rank {
                    _ if beside => 0,
                    Some(own) if at_root && takes_in_place(self.receive, words, facts) => {
                        self.block(self.send, words, vector.then_some(own), facts)
                    }
                    _ => self.side(self.receive, words, facts),
                };
                (if at_root { self.blocks(self.send, words, vector, ranks, facts) } else { 0 }, received)
            }
            Traffic::Allgather | Traffic::Allgatherv => {
                let vector = self.traffic == Traffic::Allgatherv;
                let sent = match comm.rank {
                    Some(own) if takes_in_place(self.send, words, facts) => {
                        self.block(self.receive, words, vector.then_some(own), facts)
                    }
                    _ => self.side(self.send, words, facts),
                };
                (sent, self.blocks(self.receive, words, vector, ranks, facts))
            }
            Traffic::Alltoall | Traffic::Alltoallv | Traffic::Alltoallw => {
                let vector = self.traffic != Traffic::Alltoall;
                let received = self.blocks(self.receive, words, vector, ranks, facts);
                let in_place = takes_in_place(self.send, words, facts);
                (
                    if in_place { received } else { self.blocks(self.send, words, vector, ranks, facts) },
                    received,
                )
            }
            _ => self.neighbor(words, facts),
        }
    }

    /// Bytes of one rank's block: of `own` in a vector, otherwise the block that all have.
    fn block(&self, side: Side, words: &[usize], own: Option<u64>, facts: &mut impl Facts) -> u64 {
        match own {
            Some(own) => self.element(side, words, own as usize, facts),
            None => self.side(side, words, facts),
        }
    }

    /// All ranks' blocks.
    fn blocks(&self, side: Side, words: &[usize], vector: bool, ranks: u64, facts: &mut impl Facts) -> u64 {
        if vector {
            self.vector(side, words, ranks, facts)
        } else {
            self.side(side, words, facts).saturating_mul(ranks)
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
        if elements == 0 {
            return 0;
        }
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
        if total == 0 { 0 } else { total.saturating_mul(facts.type_bytes(word(words, side.datatype))) }
    }
}

fn takes_in_place(side: Side, words: &[usize], facts: &impl Facts) -> bool {
    facts.is_in_place(word(words, side.buffer))
}

fn word(words: &[usize], index: u8) -> usize {
    words.get(usize::from(index)).copied().unwrap_or(0)
}

fn count(word: usize, large: bool) -> u64 {
    if large { word as i64 } else { i64::from(word as i32) }.max(0) as u64
}

#[cfg(test)]
mod tests;
