//! Facts about the objects that calls name.

use ampl_agent::handles::Object;
use ampl_core::mpi::Kind;
use ampl_core::value::ObjectKind;

use crate::hot_state;
use crate::inquiry::INTER;
use crate::process::UNKNOWN;
use crate::thread_state::ThreadState;
use ampl_core::mpi::traffic::{Facts, Members};

/// The object behind `handle`: from the thread's cache, the process's table, or new.
#[inline]
pub fn object(state: &mut ThreadState, kind: ObjectKind, handle: u64) -> Object {
    let generation = hot_state::generation();
    match state.thread.handles.get(kind, handle, generation) {
        Some(&object) => object,
        None => met(state, kind, handle),
    }
}

/// The record word of the object behind `handle`.
#[inline(always)]
pub fn object_word(state: &mut ThreadState, kind: ObjectKind, handle: u64) -> u64 {
    let generation = hot_state::generation();
    match state.thread.handles.get(kind, handle, generation) {
        Some(object) => object.word,
        None => met(state, kind, handle).word,
    }
}

/// As [`object`], for one that is not in the thread's cache.
#[cold]
fn met(state: &mut ThreadState, kind: ObjectKind, handle: u64) -> Object {
    let object = state.process.object(kind, handle);
    state.thread.handles.put(kind, handle, object);
    object
}

fn members([peers, second]: [u64; 2]) -> Members {
    if second & INTER == 0 {
        Members { peers, local: peers, rank: Some(second) }
    } else {
        Members { peers, local: second & !INTER, rank: None }
    }
}

/// Known facts of a communicator that a failed call has named. MPI must not be asked about an invalid handle: it would
/// call the application's error handler.
pub fn known(state: &ThreadState, comm: usize) -> Option<Members> {
    let process = state.process;
    let handle = process.abi.handle_word(Kind::Comm, comm);
    let object = process.with_handles(|handles| handles.get(ObjectKind::Comm, handle))?;
    // One without a process is the null handle.
    (object.facts[0] != UNKNOWN && object.facts[0] != 0).then(|| members(object.facts))
}

/// Answers questions about handles, asking MPI once per object. Only for calls that succeeded:
/// asking about a handle that is no object would call the application's error handler.
pub struct Ask<'a> {
    /// The thread that asks.
    pub state: &'a mut ThreadState,
}

impl Ask<'_> {
    #[cold]
    fn learn(&mut self, kind: ObjectKind, handle: u64, word: u64, facts: [u64; 2]) -> Object {
        let object = self.state.process.learn(kind, handle, facts);
        self.state.thread.handles.put(kind, handle, object);
        self.state.thread.object(&[kind as u64, word, facts[0], facts[1]]);
        object
    }
}

impl Facts for Ask<'_> {
    #[inline]
    fn type_bytes(&mut self, datatype: usize) -> u64 {
        let handle = self.state.process.abi.handle_word(Kind::Datatype, datatype);
        let object = object(self.state, ObjectKind::Type, handle);
        if object.facts[0] != UNKNOWN {
            return object.facts[0];
        }
        let bytes = self.state.process.type_bytes(datatype);
        self.learn(ObjectKind::Type, handle, object.word, [bytes, 0]).facts[0]
    }

    #[inline]
    fn comm(&mut self, comm: usize) -> Members {
        let handle = self.state.process.abi.handle_word(Kind::Comm, comm);
        let object = object(self.state, ObjectKind::Comm, handle);
        if object.facts[0] != UNKNOWN {
            return members(object.facts);
        }
        let facts = self.state.process.comm_facts(comm);
        members(self.learn(ObjectKind::Comm, handle, object.word, facts).facts)
    }

    fn comm_now(&mut self, comm: usize) -> Members {
        members(self.state.process.comm_facts(comm))
    }

    fn degrees(&mut self, comm: usize) -> (u64, u64) {
        self.state.process.degrees(comm)
    }

    fn count_at(&self, base: usize, index: usize, large: bool) -> u64 {
        let kind = if large { Kind::Count } else { Kind::Int };
        // SAFETY: the call succeeded, so MPI has read this array of counts itself.
        let count = unsafe { self.state.reader.load(kind, base, index) };
        (count.unwrap_or(0) as i64).max(0) as u64
    }

    fn type_at(&self, base: usize, index: usize) -> usize {
        // SAFETY: the call succeeded, so MPI has read this array of datatypes itself.
        unsafe { self.state.reader.load(Kind::Datatype, base, index) }.unwrap_or(0) as usize
    }

    fn is_in_place(&self, buffer: usize) -> bool {
        buffer == self.state.process.abi.in_place
    }

    fn is_no_op(&self, op: usize) -> bool {
        let process = self.state.process;
        process.no_op == Some(process.abi.handle_word(Kind::Op, op))
    }

    fn is_proc_null(&self, rank: usize) -> bool {
        rank as i32 == self.state.process.abi.proc_null
    }

    fn is_root(&self, rank: usize) -> bool {
        rank as i32 == self.state.process.abi.root
    }
}
