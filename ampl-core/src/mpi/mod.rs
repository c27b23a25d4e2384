//! Table of every MPI function: its name, its parameters and what it does to traffic.
//!
//! The table itself is generated from `ampl-preload/spec/mpi.toml` by `cargo xtask codegen`;
//! interception, decoding, trace, topology and replay all read the same one.

#[rustfmt::skip] // Written by the generator, compared byte by byte.
mod functions;
pub mod constants;
mod object;
mod predefined;
pub mod traffic;

pub use functions::{FUNCTION_COUNT, FUNCTIONS, ids};
pub use object::ObjectKind;
pub use predefined::{PREDEFINED, predefined_index};

/// An MPI function: index into [`FUNCTIONS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Function(pub u16);

impl Function {
    /// The function's description.
    pub fn spec(self) -> &'static FunctionSpec {
        &FUNCTIONS[usize::from(self.0)]
    }

    /// The function's C-cased name without the suffix of large counts (MPI-4.1 §2.5.8).
    pub fn base_name(self) -> &'static str {
        let name = self.name();
        name.strip_suffix("_c").unwrap_or(name)
    }

    /// The function's C-cased name, `MPI_Send`.
    pub fn name(self) -> &'static str {
        self.spec().name
    }

    /// The name of the function of that number; `?` where there is none, as numbers of a damaged file may be.
    pub fn name_of(number: u16) -> &'static str {
        FUNCTIONS.get(usize::from(number)).map_or("?", |spec| spec.name)
    }

    /// `true` if the function takes a count for each rank of a communicator, of which `trace.values = "aggregate"` stores
    /// the mean. Calls that only begin something and those of neighbours are none of these: no rank can ask the others
    /// there how much they send.
    pub fn counts_ranks(self) -> bool {
        let names = ["MPI_Allgatherv", "MPI_Alltoallv", "MPI_Alltoallw", "MPI_Gatherv", "MPI_Scatterv"];
        names.contains(&self.base_name())
    }

    /// `true` if no rank of the communicator can leave a call before all have entered it: each rank's result depends on
    /// all ranks' input. `false` for calls with a root, of neighbours, of prefixes, and those that only begin
    /// something.
    pub fn synchronises(self) -> bool {
        let spec = self.spec();
        let all_to_all = match spec.traffic {
            Traffic::Allgather | Traffic::Allgatherv => true,
            Traffic::Alltoall | Traffic::Alltoallv | Traffic::Alltoallw => true,
            Traffic::ReduceScatter | Traffic::ReduceScatterBlock => true,
            // Prefix reductions depend on lower ranks only.
            Traffic::Allreduce => spec.name.starts_with("MPI_Allreduce"),
            // A new communicator's context is agreed upon by all.
            _ => {
                ["MPI_Barrier", "MPI_Comm_create"].contains(&spec.name)
                    || ["MPI_Comm_dup", "MPI_Comm_split"].iter().any(|begin| spec.name.starts_with(begin))
            }
        };
        all_to_all && spec.class == Class::Ordinary
    }

    /// `true` if ranks usually leave a call only after all have entered it: those that [synchronise](Self::synchronises),
    /// and calls of all ranks of a window that make it, free it or separate its epochs. A fence need not wait where its
    /// assertion says that nothing comes before it (MPI-4.1 §12.5.1).
    pub fn waits_for_all(self) -> bool {
        let windows = [
            "MPI_Win_fence",
            "MPI_Win_free",
            "MPI_Win_create",
            "MPI_Win_create_dynamic",
            "MPI_Win_allocate",
            "MPI_Win_allocate_shared",
        ];
        self.synchronises() || windows.contains(&self.base_name())
    }

    /// The function of that C-cased name.
    pub fn by_name(name: &str) -> Option<Self> {
        // FUNCTIONS is sorted by name; the generator guarantees it and a test checks it.
        FUNCTIONS.binary_search_by(|spec| spec.name.cmp(name)).ok().map(|index| Self(index as u16))
    }
}

/// One MPI function as the standard describes it.
#[derive(Debug)]
pub struct FunctionSpec {
    /// C-cased name, `MPI_Send`, `MPI_Send_c`.
    pub name: &'static str,
    /// Parameters in C order, without the Fortran `ierror`.
    pub params: &'static [Param],
    /// Return value of the C function.
    pub returns: Returns,
    /// Rule by which bytes sent and received follow from the arguments.
    pub traffic: Traffic,
    /// Recording of the call, and its effect on objects.
    pub class: Class,
}

/// One parameter of an MPI function.
#[derive(Debug)]
pub struct Param {
    /// Name in the standard's C binding.
    pub name: &'static str,
    /// Meaning of the parameter.
    pub kind: Kind,
    /// Access of MPI: read, written or both.
    pub direction: Direction,
    /// Number of values.
    pub length: Length,
}

/// Return value of a C function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    /// An MPI error code.
    ErrorCode,
    /// Another word: a handle, an address, an integer.
    Word,
    /// A double (`MPI_Wtime`, `MPI_Wtick`).
    Double,
}

/// Access of MPI to a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Read by MPI. A scalar is passed by value.
    In,
    /// Written by MPI through a pointer.
    Out,
    /// Read and written through a pointer.
    InOut,
}

/// Number of values that a parameter carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// One value.
    One,
    /// As many as the parameter of that index says (dereferenced after the call if it is an output).
    Param(u8),
    /// Twice or thrice the parameter of that index (`MPI_Group_range_incl`: triplets).
    Times(u8, u8),
    /// The sum of the array in the parameter of that index. (`MPI_Dist_graph_create`: degrees.)
    Sum(u8),
    /// The last element of the array in the parameter of that index. (`MPI_Graph_create`: where each node's edges end.)
    Last(u8),
    /// One per process of the communicator in the parameter of that index: the remote group's of an intercommunicator.
    CommSize(u8),
    /// As [`Length::CommSize`], but only meaningful at the root (index of the communicator, index of the root).
    CommSizeAtRoot(u8, u8),
    /// Number of neighbours that the process of the communicator in that parameter receives from.
    InDegree(u8),
    /// Number of neighbours that the process of the communicator in that parameter sends to.
    OutDegree(u8),
    /// Number of dimensions of the Cartesian communicator in that parameter.
    CartDims(u8),
    /// As [`Length::Param`], but `MPI_UNDEFINED` or a zero flag means none. (`MPI_Waitsome`, `MPI_Testsome`: index of
    /// outcount.)
    OutCount(u8),
    /// As many as the parameter of the first index says, valid only if the flag in the parameter of the second index is
    /// set. (`MPI_Testall`.)
    IfFlag(u8, u8),
    /// Not known from the arguments: only the address is recorded. Of an input string: only the root passes it.
    Unknown,
}

/// Meaning of a parameter. Widths are those of the C binding in memory and registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// `int` without a special meaning.
    Int,
    /// `int` used as a truth value.
    Logical,
    /// `MPI_Count`, 64 bits.
    Count,
    /// `MPI_Aint`, 64 bits.
    Aint,
    /// `MPI_Offset`, 64 bits.
    Offset,
    /// `double`.
    Double,
    /// `int`, a rank in a communicator or group; may be a wildcard, `MPI_PROC_NULL` or `MPI_ROOT`.
    Rank,
    /// `int`, a message tag; may be `MPI_ANY_TAG`.
    Tag,
    /// `int` that may be `MPI_UNDEFINED` (colours, indices, results of translation).
    IntOrUndefined,
    /// `MPI_Comm`.
    Comm,
    /// `MPI_Datatype`.
    Datatype,
    /// `MPI_Op`.
    Op,
    /// `MPI_Group`.
    Group,
    /// `MPI_Info`.
    Info,
    /// `MPI_Errhandler`.
    Errhandler,
    /// `MPI_File`.
    File,
    /// `MPI_Win`.
    Win,
    /// `MPI_Message`.
    Message,
    /// `MPI_Session`.
    Session,
    /// `MPI_Request`.
    Request,
    /// `MPI_Status *`.
    Status,
    /// A choice buffer; may be `MPI_IN_PLACE` or `MPI_BOTTOM`.
    Buffer,
    /// A NUL-terminated string (in), or one of the length in a `resultlen` parameter (out).
    String,
    /// An address of no further meaning to ampl: user functions and their extra state, `argv`, tool objects.
    Address,
    /// A word that the program keeps with an object; a number, and `out` in C its address, under MPI's own keys.
    Attribute,
}

impl Kind {
    /// Number of kinds.
    pub const COUNT: usize = Self::Attribute as usize + 1;
}

/// Rule by which bytes follow from a call's arguments; the parameters are found by their standard names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// The call moves no counted bytes.
    None,
    /// `buf, count, datatype, dest`: sends, also nonblocking.
    Send,
    /// As [`Traffic::Send`], but counted at each start (`MPI_Send_init`).
    SendInit,
    /// `buf, count, datatype, source`: receives, also nonblocking; `MPI_Mrecv` too.
    Recv,
    /// As [`Traffic::Recv`], but counted at each start.
    RecvInit,
    /// `MPI_Sendrecv`: send and receive parts.
    Sendrecv,
    /// `MPI_Sendrecv_replace`: one buffer, both directions.
    SendrecvReplace,
    /// `MPI_Bcast`: sent by the root, received by the others.
    Bcast,
    /// `MPI_Gather`.
    Gather,
    /// `MPI_Gatherv`.
    Gatherv,
    /// `MPI_Scatter`.
    Scatter,
    /// `MPI_Scatterv`.
    Scatterv,
    /// `MPI_Allgather`.
    Allgather,
    /// `MPI_Allgatherv`.
    Allgatherv,
    /// `MPI_Alltoall`.
    Alltoall,
    /// `MPI_Alltoallv`.
    Alltoallv,
    /// `MPI_Alltoallw`.
    Alltoallw,
    /// `MPI_Reduce`: sent by all, received by the root.
    Reduce,
    /// `MPI_Allreduce`, `MPI_Scan`, `MPI_Exscan`: `count` both ways.
    Allreduce,
    /// `MPI_Reduce_scatter`: sum of `recvcounts` out, own count in.
    ReduceScatter,
    /// `MPI_Reduce_scatter_block`.
    ReduceScatterBlock,
    /// `MPI_Neighbor_allgather`.
    NeighborAllgather,
    /// `MPI_Neighbor_allgatherv`.
    NeighborAllgatherv,
    /// `MPI_Neighbor_alltoall`.
    NeighborAlltoall,
    /// `MPI_Neighbor_alltoallv`.
    NeighborAlltoallv,
    /// `MPI_Neighbor_alltoallw`.
    NeighborAlltoallw,
    /// Reads of a file, also nonblocking and the first half of a split one: as many bytes as are asked for.
    FileRead,
    /// The same for writes.
    FileWrite,
    /// `MPI_Put`, `MPI_Accumulate`: the origin's bytes go to a window.
    Put,
    /// `MPI_Get`: bytes of a window come to the origin.
    Get,
    /// `MPI_Get_accumulate`, `MPI_Fetch_and_op`: both, but that nothing goes there with `MPI_NO_OP`.
    GetAccumulate,
    /// `MPI_Compare_and_swap`: one element each way.
    CompareAndSwap,
}

impl Traffic {
    /// `true` if the bytes are those of a file: written where messages are sent, read where they are received.
    pub fn is_file(self) -> bool {
        matches!(self, Self::FileRead | Self::FileWrite)
    }

    /// `true` if the bytes are those of a window: put where messages are sent, got where they are received.
    pub fn is_window(self) -> bool {
        matches!(self, Self::Put | Self::Get | Self::GetAccumulate | Self::CompareAndSwap)
    }

    /// `true` if the bytes are those of files or windows: no message's.
    pub fn is_apart(self) -> bool {
        self.is_file() || self.is_window()
    }

    /// `true` if the bytes are those of messages, in `bytes.sent` and `bytes.received`.
    pub fn is_message(self) -> bool {
        self != Self::None && !self.is_apart()
    }
}

/// Recording of a call, and its effects besides moving bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Recorded in full.
    Ordinary,
    /// A query of some nanoseconds that neither waits nor communicates (`MPI_Comm_rank`, `MPI_Get_count`):
    /// counted and in the sequence, but its time is not part of the time in MPI.
    Local,
    /// A persistent collective's constructor: its traffic counts at each start.
    PersistentCollective,
    /// Makes a request through its `request` parameter that completion frees (`MPI_Isend`).
    Nonblocking,
    /// Waits or tests: completes requests (`MPI_Wait` … `MPI_Testsome`).
    Completion,
    /// A poll that may fail and is then only counted (`MPI_Iprobe`, `MPI_Test*`); completes requests if it has any.
    Poll,
    /// `MPI_Start`, `MPI_Startall`.
    Start,
    /// Counted, never in the sequence: `MPI_Wtime`, `MPI_Wtick`, `MPI_Aint_*`, the f2c/c2f/toint/fromint family.
    CountOnly,
    /// Begins or ends MPI: `MPI_Init`, `MPI_Init_thread`, `MPI_Finalize`, `MPI_Abort`.
    Lifecycle,
}

impl Class {
    /// `true` if its calls only query, so that a sequence is complete without them.
    pub fn only_asks(self) -> bool {
        matches!(self, Self::Local | Self::CountOnly)
    }

    /// `true` if its calls do more than query, and neither begin nor end MPI: what the program does in MPI.
    pub fn is_work(self) -> bool {
        !self.only_asks() && self != Self::Lifecycle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_found() {
        assert!(FUNCTIONS.windows(2).all(|pair| pair[0].name < pair[1].name));
        for (index, spec) in FUNCTIONS.iter().enumerate() {
            assert_eq!(Function::by_name(spec.name), Some(Function(index as u16)));
        }
        assert_eq!(Function::by_name("MPI_Nothing"), None);
    }

    #[test]
    fn calls_that_wait_for_everybody_are_known() {
        let all: Vec<&str> = (0..FUNCTION_COUNT as u16)
            .map(Function)
            .filter(|function| function.synchronises() && !function.name().ends_with("_c"))
            .map(Function::name)
            .collect();
        let expected = [
            "MPI_Allgather",
            "MPI_Allgatherv",
            "MPI_Allreduce",
            "MPI_Alltoall",
            "MPI_Alltoallv",
            "MPI_Alltoallw",
            "MPI_Barrier",
            "MPI_Comm_create",
            "MPI_Comm_dup",
            "MPI_Comm_dup_with_info",
            "MPI_Comm_split",
            "MPI_Comm_split_type",
            "MPI_Reduce_scatter",
            "MPI_Reduce_scatter_block",
        ];
        assert_eq!(all, expected);
        for other in [
            "MPI_Ibarrier",
            "MPI_Allreduce_init",
            "MPI_Scan",
            "MPI_Bcast",
            "MPI_Comm_idup",
            "MPI_Neighbor_alltoall",
        ] {
            assert!(!Function::by_name(other).unwrap().synchronises(), "{other}");
        }
        assert!(Function::by_name("MPI_Allreduce_c").unwrap().synchronises());
    }

    #[test]
    fn calls_of_all_ranks_of_a_window_wait_for_all() {
        for name in ["MPI_Win_fence", "MPI_Win_free", "MPI_Win_allocate_c", "MPI_Barrier"] {
            assert!(Function::by_name(name).unwrap().waits_for_all(), "{name}");
        }
        for name in ["MPI_Win_post", "MPI_Win_complete", "MPI_Win_lock_all", "MPI_Win_flush", "MPI_Put"] {
            assert!(!Function::by_name(name).unwrap().waits_for_all(), "{name}");
        }
        assert!(!Function::by_name("MPI_Win_fence").unwrap().synchronises());
    }

    #[test]
    fn length_indices_stay_inside_the_parameter_list() {
        for spec in FUNCTIONS {
            for param in spec.params {
                let indices = match param.length {
                    Length::One | Length::Unknown => vec![],
                    Length::Param(i)
                    | Length::Sum(i)
                    | Length::Last(i)
                    | Length::CommSize(i)
                    | Length::InDegree(i)
                    | Length::OutDegree(i)
                    | Length::CartDims(i)
                    | Length::OutCount(i)
                    | Length::Times(i, _) => vec![i],
                    Length::CommSizeAtRoot(a, b) | Length::IfFlag(a, b) => vec![a, b],
                };
                for index in indices {
                    assert!(usize::from(index) < spec.params.len(), "{} {}", spec.name, param.name);
                }
            }
        }
    }
}
