//! Positions of threads when a journal was read: each has a line with its current call.

use ampl_core::mpi::predefined_index;
use ampl_core::mpi::{FUNCTIONS, Function};
use ampl_core::value::{ANY_SOURCE, ANY_TAG, ObjectKind, PROC_NULL, ROOT};

use super::clock::Clock;
use super::{Compacted, pending};
use crate::args::{self, predefined_word};
use crate::current::{COUNTED, LINE_WORDS, Operands, RETURNED, Role, at, both_ends, function_and_address};
use crate::journal::{Block, BlockKind, SITE_WORDS, word};
use crate::model::{Peer, Place, ThreadPlace, call_path};
use crate::request;
use crate::structure::{RankStructure, Signature};

/// Communicators that the program was given: their handles and words, in the order of the journal.
pub type Handles = Vec<(u64, u64)>;

/// A thread's line as it is in its journal.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    thread: u32,
    words: [u64; LINE_WORDS],
    /// Index of its call's site in the thread's table, plus 1 as calls store it; 0 where it is not known.
    site: u32,
}

impl Line {
    /// Line of `thread`, whose `blocks` these are; `None` where it has made no call, or has ended. `stored` is the
    /// number of a site by its index in the thread's table.
    pub fn of(thread: u32, blocks: &[Block<'_>], stored: impl Fn(u32) -> u32) -> Option<Self> {
        let of = |kind| blocks.iter().filter(move |block| block.kind == kind);
        let counters = of(BlockKind::Counters).next()?.words;
        let (calls, line) = counters.split_last_chunk::<LINE_WORDS>()?;
        // Journals of before have counters alone.
        if calls.len() < FUNCTIONS.len() {
            return None;
        }
        let words = line.map(u64::from_le_bytes);
        let (function, address) = function_and_address(words[at::CALL]);
        if words[at::CALL] == 0 || usize::from(function) >= FUNCTIONS.len() {
            return None;
        }
        let entries = of(BlockKind::Sites).flat_map(|block| block.words.as_chunks::<SITE_WORDS>().0);
        let is_it = |entry: &[[u8; 8]; SITE_WORDS]| {
            u64::from_le_bytes(entry[0]) == address && u64::from_le_bytes(entry[1]) as u16 == function
        };
        // The first entry is shared by sites beyond the table.
        let index = entries.skip(1).position(is_it).map(|index| index as u32 + 1);
        Some(Self { thread, words, site: index.map_or(0, stored) })
    }

    /// The function that the thread is in; `None` where it is in none.
    pub fn inside(&self) -> Option<u16> {
        let [call, since, left, ..] = self.words;
        let inside = call & RETURNED == 0 && (call & COUNTED != 0 || left < since);
        inside.then(|| function_and_address(call).0)
    }

    /// Position in the line, of a process whose journal has that `header`.
    pub fn read(&self, out: &Compacted, handles: &Handles, header: &[u64], clock: Clock) -> ThreadPlace {
        let [call, since, left, _, _, polling, ..] = self.words;
        let (function, _) = function_and_address(call);
        let counted = call & COUNTED != 0;
        let inside = call & RETURNED == 0 && (counted || left < since);
        let instant = |ticks: u64| if ticks == 0 { 0 } else { clock.instant(ticks) };
        ThreadPlace {
            thread: self.thread,
            function: Function(function).name().into(),
            inside,
            since_ns: instant(if inside && !counted { since } else { since.max(left) }),
            at_most: counted,
            polling_ns: (polling != 0 && !counted).then(|| instant(polling)),
            site: self.site(out),
            peer: if counted { Peer::default() } else { self.peer(function, out, handles, header) },
        }
    }

    fn site(&self, out: &Compacted) -> Vec<Place> {
        let structure = &out.structure;
        let Some(site) = self.site.checked_sub(1) else { return Vec::new() };
        let module = |number: u32| structure.modules.get(number as usize).cloned().unwrap_or_default();
        let path = call_path(&structure.sites, site);
        path.map(|site| Place { module: module(site.module), offset: site.offset }).collect()
    }

    fn peer(&self, function: u16, out: &Compacted, handles: &Handles, header: &[u64]) -> Peer {
        let spec = Function(function).spec();
        let operands = Operands::of(spec);
        let (ends, object) = (self.words[at::ENDS], self.words[at::OBJECT]);
        if operands.peer.is_none() && operands.comm.is_none() {
            let names = spec.params.iter().any(|param| param.name.contains("request"));
            return if names { self.of_request(ends, object, out) } else { Peer::default() };
        }
        let (first, second) = both_ends(ends);
        let [(any_source, any_tag), (nobody, root)] =
            [word::ANY, word::NOBODY].map(|at| both_ends(header[at]));
        let rank = |rank: i32| match rank {
            rank if rank == any_source => ANY_SOURCE,
            rank if rank == nobody => PROC_NULL,
            rank if rank == root => ROOT,
            rank => i64::from(rank),
        };
        let tag = |tag: i32| if tag == any_tag { ANY_TAG } else { i64::from(tag) };
        let same =
            |handle: u64| handle == object || (handle >> 32 == 0 && handle == u64::from(object as u32));
        let predefined = |name| predefined_index(ObjectKind::Comm, name).map(predefined_word);
        let comm = match operands.comm {
            Some(_) if same(header[word::WORLD]) => predefined("MPI_COMM_WORLD"),
            Some(_) if same(header[word::ITSELF]) => predefined("MPI_COMM_SELF"),
            Some(_) => handles.iter().rev().find(|&&(handle, _)| same(handle)).map(|&(_, word)| word),
            None => None,
        };
        let ranks = [(operands.peer, first), (operands.second, second)];
        Peer {
            ranks: ranks.iter().filter_map(|&(end, value)| Some((end?.1, rank(value)))).collect(),
            tag: operands.tag.map(|_| tag(second)),
            comm,
            ..Peer::default()
        }
    }

    /// Peers of a call that names requests: those of the calls that made them, if it is known which ones.
    fn of_request(&self, request: u64, count: u64, out: &Compacted) -> Peer {
        if count == 1 && !args::is_predefined(request) {
            let one = maker(&out.structure, request).and_then(peer_of_maker);
            return one.unwrap_or(Peer { requests: count, ..Peer::default() });
        }
        let pending = pending::of(&out.structure).unwrap_or_default();
        // The call may name some of all that are pending.
        let is_all = pending.iter().map(|one| one.count).sum::<u64>() == count;
        Peer { requests: count, pending: if is_all { pending } else { Vec::new() }, ..Peer::default() }
    }
}

/// The call that has made `request`.
pub fn maker(structure: &RankStructure, request: u64) -> Option<&Signature> {
    let terminal = request::terminal(request).filter(|_| request & request::UNSEEN == 0)?;
    let thread = (request >> request::THREAD_AT) as u32;
    let structure = structure.threads.iter().find(|structure| structure.thread == thread)?;
    structure.signatures.get(terminal as usize)
}

/// Peers of a call that makes one request.
pub fn peer_of_maker(maker: &Signature) -> Option<Peer> {
    let spec = FUNCTIONS.get(usize::from(maker.function))?;
    let parts = args::inputs(spec, &mut &maker.words[..])?;
    let of = |name: &str| {
        let part = parts.iter().find(|(param, _)| param.name == name);
        part.and_then(|(_, words)| words.first()).copied()
    };
    let ranks = [("source", Role::Source), ("dest", Role::Dest), ("root", Role::Root)];
    Some(Peer {
        ranks: ranks.iter().filter_map(|&(name, role)| Some((role, of(name)? as i64))).collect(),
        tag: of("tag").map(|tag| tag as i64),
        comm: of("comm"),
        requests: 1,
        made_by: Some(spec.name.into()),
        pending: Vec::new(),
    })
}
