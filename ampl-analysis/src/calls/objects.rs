//! Sizes of the datatypes, communicators and windows that a rank's calls name, from the calls that made them.

use std::collections::HashMap;

use ampl_core::mpi::traffic::Members;
use ampl_core::mpi::{Function, Kind, Length, PREDEFINED};
use ampl_trace::args::{self, index_of_predefined, is_output, is_predefined};
use ampl_trace::record::{CALL_ERROR, CALL_MISS, CALL_NO_ARGS, CALL_UNFINISHED, GAP};
use ampl_trace::structure::{Comm, RankStructure, Signature};

/// Deepest nesting of types that is resolved.
const MOST_NESTING: u32 = 16;
/// Bit of a communicator's second fact: it joins two groups.
const INTER: u64 = 1 << 63;

/// Communicators, windows and datatypes of one rank. A number that several objects had in turn stands for what they have in
/// common.
pub struct Objects<'a> {
    ranks: u32,
    rank: u32,
    comms: Vec<Comm>,
    made_comms: HashMap<u64, Vec<&'a Signature>>,
    made_windows: HashMap<u64, Vec<&'a Signature>>,
    made_types: HashMap<u64, Vec<&'a Signature>>,
    types: HashMap<u64, Option<u64>>,
}

/// The parts of a call that succeeded, by name.
struct Call<'a> {
    function: Function,
    parts: Vec<(&'static str, &'a [u64])>,
}

impl<'a> Call<'a> {
    fn of(signature: &'a Signature) -> Option<Self> {
        let function = Function(signature.function);
        let parts = args::parts(function.spec(), &signature.words)?;
        Some(Self { function, parts: parts.into_iter().map(|(param, words)| (param.name, words)).collect() })
    }

    fn all(&self, name: &str) -> Option<&'a [u64]> {
        self.parts.iter().find(|(own, _)| *own == name).map(|&(_, words)| words)
    }

    fn one(&self, names: &[&str]) -> Option<u64> {
        names.iter().find_map(|name| self.all(name)?.first().copied())
    }
}

/// True where a call of that signature succeeded and all of its arguments are recorded.
pub fn is_whole(signature: &Signature) -> bool {
    let none = CALL_ERROR | CALL_MISS | CALL_NO_ARGS | CALL_UNFINISHED;
    signature.function != GAP
        && usize::from(signature.function) < ampl_core::mpi::FUNCTION_COUNT
        && signature.flags & none == 0
}

impl<'a> Objects<'a> {
    /// The objects of `structure`, in a job of `ranks` ranks.
    pub fn of(structure: &'a RankStructure, ranks: u32) -> Self {
        let threads = structure.threads.iter().map(|thread| &thread.signatures[..]);
        Self::of_signatures(structure.rank, structure.comms.clone(), threads, ranks)
    }

    /// The objects of `rank`, which names `comms`, whose `threads` have these signatures.
    pub fn of_signatures(
        rank: u32,
        comms: Vec<Comm>,
        threads: impl Iterator<Item = &'a [Signature]>,
        ranks: u32,
    ) -> Self {
        let (mut made_comms, mut made_windows, mut made_types) = Default::default();
        for signature in threads.flatten() {
            if !is_whole(signature) {
                continue;
            }
            let spec = Function(signature.function).spec();
            let gives = spec.params.iter().any(|param| {
                matches!(param.kind, Kind::Comm | Kind::Win | Kind::Datatype)
                    && is_output(param)
                    && param.length == Length::One
            });
            // In-out parameters appear twice, and these functions make no object.
            let frees = matches!(
                spec.name,
                "MPI_Comm_free"
                    | "MPI_Win_free"
                    | "MPI_Type_free"
                    | "MPI_Type_commit"
                    | "MPI_Comm_disconnect"
            );
            let Some(parts) = args::parts(spec, &signature.words).filter(|_| gives && !frees) else {
                continue;
            };
            for (param, words) in parts {
                let into: &mut HashMap<u64, Vec<&Signature>> = match param.kind {
                    Kind::Comm if is_output(param) => &mut made_comms,
                    Kind::Win if is_output(param) => &mut made_windows,
                    Kind::Datatype if is_output(param) => &mut made_types,
                    _ => continue,
                };
                words.iter().filter(|&&word| !is_predefined(word)).for_each(|&word| {
                    into.entry(word).or_default().push(signature);
                });
            }
        }
        Self { ranks, rank, comms, made_comms, made_windows, made_types, types: HashMap::new() }
    }

    /// Turns them into those of `rank`, which makes equal calls, and names `comms`.
    pub fn turn_to(&mut self, rank: u32, comms: Vec<Comm>) {
        (self.rank, self.comms) = (rank, comms);
    }

    /// Members of the communicator `word`; `None` where they are not known, or differed.
    pub fn comm(&self, word: u64) -> Option<Members> {
        self.nested_comm(word, 0)
    }

    fn nested_comm(&self, word: u64, depth: u32) -> Option<Members> {
        let whole = |peers, rank| Some(Members { peers, local: peers, rank: Some(rank) });
        if let Some(index) = index_of_predefined(word) {
            return match PREDEFINED.get(index)?.1 {
                "MPI_COMM_WORLD" => whole(u64::from(self.ranks), u64::from(self.rank)),
                "MPI_COMM_SELF" => whole(1, 0),
                _ => None,
            };
        }
        let made = self.made_comms.get(&word).map_or(&[][..], Vec::as_slice);
        let copy = |signature: &&Signature| {
            let call = Call::of(signature)?;
            let copies = call.function.name().starts_with("MPI_Comm_dup")
                || call.function.name().starts_with("MPI_Comm_idup");
            let of = call.one(&["comm"]).filter(|&of| copies && of != word && depth < MOST_NESTING)?;
            self.nested_comm(of, depth + 1)
        };
        let copies: Option<Vec<Members>> = made.iter().map(copy).collect();
        match copies.as_deref() {
            Some([first, others @ ..]) if others.iter().all(|other| other == first) => return Some(*first),
            Some([_, ..]) => return None,
            _ => {}
        }
        let told = self.comms.iter().find(|comm| comm.word == word && comm.size > 0 && comm.size < u64::MAX);
        let told = told.filter(|_| made.len() <= 1)?;
        let inter = told.rank & INTER != 0 || told.rank == u64::MAX;
        (!inter).then_some(Members { peers: told.size, local: told.size, rank: Some(told.rank) })
    }

    /// Word of the communicator of the window `word`; `None` where it is not known, or differed.
    pub fn window_comm(&self, word: u64) -> Option<u64> {
        let comm = |signature: &&Signature| Call::of(signature)?.one(&["comm"]);
        let mut made = self.made_windows.get(&word)?.iter().map(comm);
        let first = made.next()?;
        first.filter(|_| made.all(|other| other == first))
    }

    /// Members of the communicator of the window `word`; `None` where they are not known, or differed.
    pub fn window(&self, word: u64) -> Option<Members> {
        let comm = |signature: &&Signature| self.comm(Call::of(signature)?.one(&["comm"])?);
        let mut made = self.made_windows.get(&word)?.iter().map(comm);
        let first = made.next()?;
        first.filter(|_| made.all(|other| other == first))
    }

    /// Bytes of an element of the datatype of that word; `None` where that is not known, or differed.
    pub fn type_bytes(&mut self, word: u64) -> Option<u64> {
        self.nested_type(word, 0)
    }

    fn nested_type(&mut self, word: u64, depth: u32) -> Option<u64> {
        if let Some(index) = index_of_predefined(word) {
            return predefined_bytes(PREDEFINED.get(index)?.1);
        }
        if let Some(&known) = self.types.get(&word) {
            return known;
        }
        let made = self.made_types.get(&word).cloned().unwrap_or_default();
        let mut sizes = made.iter().map(|signature| {
            if depth < MOST_NESTING { self.made_bytes(&Call::of(signature)?, depth + 1) } else { None }
        });
        let first = sizes.next().flatten();
        let same = sizes.all(|size| size == first);
        let size = first.filter(|_| same);
        self.types.insert(word, size);
        size
    }

    /// Bytes of the type that a constructor has made (MPI-4.1 §5.1.2).
    fn made_bytes(&mut self, call: &Call<'_>, depth: u32) -> Option<u64> {
        let old = call.one(&["oldtype"]);
        let name = call.function.base_name();
        let sum = |words: &[u64]| words.iter().fold(0u64, |sum, &word| sum.saturating_add(word));
        let elements = match name {
            "MPI_Type_contiguous" => call.one(&["count"])?,
            "MPI_Type_vector" | "MPI_Type_hvector" | "MPI_Type_create_hvector" => {
                call.one(&["count"])?.checked_mul(call.one(&["blocklength"])?)?
            }
            "MPI_Type_create_indexed_block" | "MPI_Type_create_hindexed_block" => {
                call.one(&["count"])?.checked_mul(call.one(&["blocklength"])?)?
            }
            "MPI_Type_indexed" | "MPI_Type_hindexed" | "MPI_Type_create_hindexed" => {
                sum(call.all("array_of_blocklengths")?)
            }
            "MPI_Type_create_subarray" => {
                call.all("array_of_subsizes")?.iter().try_fold(1u64, |all, &size| all.checked_mul(size))?
            }
            "MPI_Type_create_resized" | "MPI_Type_dup" => 1,
            "MPI_Type_create_struct" | "MPI_Type_struct" => {
                let blocks = call.all("array_of_blocklengths")?;
                let types = call.all("array_of_types")?;
                let mut bytes = 0u64;
                for (&block, &of) in blocks.iter().zip(types) {
                    bytes = bytes.checked_add(block.checked_mul(self.nested_type(of, depth)?)?)?;
                }
                return (blocks.len() == types.len()).then_some(bytes);
            }
            _ => return None,
        };
        elements.checked_mul(self.nested_type(old?, depth)?)
    }
}

/// Bytes of a datatype of MPI's own; `None` where machines or compilers differ.
pub fn predefined_bytes(name: &str) -> Option<u64> {
    Some(match name.strip_prefix("MPI_")? {
        "BYTE" | "CHAR" | "CHARACTER" | "CXX_BOOL" | "C_BOOL" | "INT8_T" | "INTEGER1" | "LOGICAL1"
        | "PACKED" | "SIGNED_CHAR" | "UINT8_T" | "UNSIGNED_CHAR" => 1,
        "INT16_T" | "INTEGER2" | "LOGICAL2" | "REAL2" | "SHORT" | "UINT16_T" | "UNSIGNED_SHORT" => 2,
        "COMPLEX4" | "FLOAT" | "INT" | "INT32_T" | "INTEGER" | "INTEGER4" | "LOGICAL" | "LOGICAL4"
        | "REAL" | "REAL4" | "UINT32_T" | "UNSIGNED" | "WCHAR" => 4,
        "SHORT_INT" => 6,
        "2INT" | "2INTEGER" | "2REAL" | "AINT" | "COMPLEX" | "COMPLEX8" | "COUNT" | "CXX_FLOAT_COMPLEX"
        | "C_FLOAT_COMPLEX" | "DOUBLE" | "DOUBLE_PRECISION" | "FLOAT_INT" | "INT64_T" | "INTEGER8"
        | "LOGICAL8" | "LONG" | "LONG_LONG" | "OFFSET" | "REAL8" | "UINT64_T" | "UNSIGNED_LONG"
        | "UNSIGNED_LONG_LONG" => 8,
        "DOUBLE_INT" | "LONG_INT" => 12,
        "2COMPLEX" | "2DOUBLE_PRECISION" | "COMPLEX16" | "CXX_DOUBLE_COMPLEX" | "C_DOUBLE_COMPLEX"
        | "DOUBLE_COMPLEX" | "INTEGER16" | "LOGICAL16" | "LONG_DOUBLE" | "REAL16" => 16,
        "LONG_DOUBLE_INT" => 20,
        "2DOUBLE_COMPLEX" | "COMPLEX32" | "CXX_LONG_DOUBLE_COMPLEX" | "C_LONG_DOUBLE_COMPLEX" => 32,
        "LB" | "UB" => 0,
        _ => return None,
    })
}
