//! Calls as the logical program has them: partners as ranks of the world, and of other arguments those that say what
//! is sent.

use ampl_core::mpi::{Direction, FUNCTION_COUNT, Function, Kind, ObjectKind, PREDEFINED};
use ampl_trace::args::{self, IN_PLACE, index_of_predefined, is_input, is_opaque, is_predefined};
use ampl_trace::communicators::Communicators;
use ampl_trace::decode::origins;
use ampl_trace::record::{CALL_ERROR, CALL_MISS, CALL_NO_ARGS, CALL_UNFINISHED};
use ampl_trace::request;
use ampl_trace::structure::{Role, Signature, ThreadStructure, layout};
use rustc_hash::FxHashMap;

use crate::messages::{Scope, Scopes};

/// Meaning of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Meaning {
    /// Another rank: one of the world where the communicator is known, else as the program has it.
    Partner,
    /// A communicator's word.
    Comm,
    /// Root, count, tag, or datatype.
    Value,
    /// A request; only in [`Detail::Whole`].
    Request,
    /// A handle, a buffer ([`BUFFER_IN_PLACE`]) or a word of text; only in [`Detail::Whole`].
    Other,
}

/// Arguments that a program's calls have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Partners, communicators, and what is sent.
    #[default]
    Message,
    /// All from which the call can be made again.
    Whole,
}

/// Flags of calls whose arguments are not all there.
const NOT_WHOLE: u8 = CALL_ERROR | CALL_MISS | CALL_NO_ARGS | CALL_UNFINISHED;

/// Number of a parameter behind which MPI puts a value: its index and this.
pub const OUTPUT: u8 = 64;
/// Value of a buffer that is `MPI_IN_PLACE`; that of others is 0.
pub const BUFFER_IN_PLACE: i64 = 1;
/// Value of `MPI_REQUEST_NULL`.
pub const NO_REQUEST: i64 = -1;
/// Value of a request whose making was not recorded.
pub const UNSEEN_REQUEST: i64 = -2;

/// Way in which a call did not go as calls do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oddity {
    /// A poll that found nothing.
    FoundNothing,
    /// A call that has not returned.
    Unfinished,
    /// A call that returned an error.
    Failed,
    /// A call whose arguments are not recorded.
    WithoutArguments,
}

/// Oddity of a call with those flags.
pub fn oddity(flags: u8) -> Option<Oddity> {
    match flags {
        _ if flags & CALL_MISS != 0 => Some(Oddity::FoundNothing),
        _ if flags & CALL_UNFINISHED != 0 => Some(Oddity::Unfinished),
        _ if flags & CALL_ERROR != 0 => Some(Oddity::Failed),
        _ if flags & CALL_NO_ARGS != 0 => Some(Oddity::WithoutArguments),
        _ => None,
    }
}

/// Name of the object of MPI's own that a word means.
pub fn predefined(word: u64) -> Option<&'static str> {
    Some(PREDEFINED.get(index_of_predefined(word)?)?.1)
}

/// An argument of one rank's call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Argument {
    /// Meaning.
    pub meaning: Meaning,
    /// Index of the parameter.
    pub param: u8,
    /// Index of the array element.
    pub element: u32,
    /// Its value.
    pub value: i64,
}

/// One rank's call without times, addresses and requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Plain {
    /// Index in the function table; [`GAP`](ampl_trace::record::GAP) for calls that were only counted.
    pub function: u16,
    /// Flags of [`ampl_trace::record`].
    pub flags: u8,
    /// One more than the index of its call site; 0 for none.
    pub site: u32,
    /// Arguments, in order.
    pub arguments: Vec<Argument>,
}

impl Plain {
    /// The call without counts, tags, datatypes and roots.
    pub fn outline(&self) -> Self {
        let arguments = self.arguments.iter().filter(|argument| argument.meaning != Meaning::Value);
        Self { arguments: arguments.copied().collect(), ..self.clone() }
    }
}

/// Calls of one rank as they are without times, addresses and requests.
#[derive(Debug)]
pub struct Plainly<'a> {
    scopes: &'a Scopes<'a>,
    comms: &'a Communicators,
    rank: u32,
    ranks: u32,
    detail: Detail,
    known: FxHashMap<u64, Option<Scope<'a>>>,
}

impl<'a> Plainly<'a> {
    /// The calls of `rank`, in a job of so many ranks.
    pub fn new(scopes: &'a Scopes<'a>, rank: u32, ranks: u32, detail: Detail) -> Self {
        Self { scopes, comms: scopes.comms(), rank, ranks, detail, known: FxHashMap::default() }
    }

    /// Calls of a thread by terminal. A request's value is its number in the trace.
    pub fn thread(&mut self, thread: &ThreadStructure) -> Vec<Plain> {
        match self.detail {
            Detail::Message => thread.signatures.iter().map(|signature| self.call(signature)).collect(),
            Detail::Whole => {
                let calls = thread.signatures.iter().zip(origins(&thread.signatures));
                calls.map(|(signature, origin)| self.whole(thread.thread, signature, origin)).collect()
            }
        }
    }

    fn scope(&mut self, word: u64) -> Option<Scope<'a>> {
        let (scopes, comms, rank) = (self.scopes, self.comms, self.rank);
        *self.known.entry(word).or_insert_with(|| {
            Scopes::predefined(rank, word)
                .or_else(|| comms.only(rank, word).and_then(|comm| scopes.named(rank, comm.name)))
        })
    }

    fn call(&mut self, signature: &Signature) -> Plain {
        let Signature { function, flags, site, words, .. } = signature;
        let mut call = Plain { function: *function, flags: *flags, site: *site, arguments: Vec::new() };
        if usize::from(*function) >= FUNCTION_COUNT {
            return call;
        }
        let slots = layout(*function, *flags, words);
        let comm = slots.iter().position(|slot| slot.role == Role::Comm && slot.param < 64);
        let scope = comm.and_then(|at| self.scope(words[at]));
        // Ranks of a window's group are not looked up.
        let params = Function(*function).spec().params;
        for (slot, &word) in slots.iter().zip(words) {
            let value = word as i64;
            let (meaning, value) = match slot.role {
                Role::Rank if slot.param < 64 => {
                    let is_partner = params
                        .get(usize::from(slot.param))
                        .is_some_and(|param| matches!(param.name, "dest" | "source" | "target_rank"));
                    let world = scope.filter(|_| is_partner).and_then(|scope| scope.world(value, self.ranks));
                    let meaning = if is_partner { Meaning::Partner } else { Meaning::Value };
                    (meaning, world.map_or(value, i64::from))
                }
                Role::Comm if slot.param < 64 => (Meaning::Comm, value),
                Role::Root | Role::Tag | Role::Number | Role::Datatype if slot.param < 64 => {
                    (Meaning::Value, value)
                }
                _ => continue,
            };
            call.arguments.push(Argument { meaning, param: slot.param, element: slot.element, value });
        }
        call
    }

    fn whole(&mut self, thread: u32, signature: &Signature, origin: Option<u32>) -> Plain {
        let Signature { function, flags, site, words, .. } = signature;
        let mut call = Plain { function: *function, flags: *flags, site: *site, arguments: Vec::new() };
        if usize::from(*function) >= FUNCTION_COUNT || *flags & NOT_WHOLE != 0 {
            return call;
        }
        let spec = Function(*function).spec();
        let Some(parts) = args::parts(spec, args::own_words(*flags, words).unwrap_or_default()) else {
            return call;
        };
        let inputs = spec.params.iter().filter(|param| is_input(param)).count();
        let comm = parts.iter().take(inputs).find(|(param, _)| param.kind == Kind::Comm);
        let scope = comm.and_then(|(_, words)| self.scope(*words.first()?));
        for (place, (param, words)) in parts.into_iter().enumerate() {
            let is_output = place >= inputs;
            let index = spec.params.iter().position(|other| other.name == param.name).unwrap_or_default();
            let number = index as u8 | if is_output { OUTPUT } else { 0 };
            let is_handle = ObjectKind::of(param.kind).is_some();
            if is_output && !(is_handle && param.direction == Direction::Out) {
                continue;
            }
            for (element, &word) in (0..).zip(words) {
                let value = word as i64;
                let partner = matches!(param.name, "dest" | "source" | "target_rank");
                let (meaning, value) = match param.kind {
                    Kind::Buffer => (Meaning::Other, i64::from(word == IN_PLACE) * BUFFER_IN_PLACE),
                    _ if is_opaque(param) || param.kind == Kind::Status => continue,
                    Kind::Rank if partner && value < 0 => (Meaning::Partner, value),
                    Kind::Rank if partner => match scope.and_then(|scope| scope.world(value, self.ranks)) {
                        Some(world) => (Meaning::Partner, i64::from(world)),
                        None => (Meaning::Value, value),
                    },
                    Kind::Request if is_predefined(word) => (Meaning::Request, NO_REQUEST),
                    Kind::Request if is_output => match origin {
                        Some(origin) => (Meaning::Request, request::made(thread, origin, word) as i64),
                        None => (Meaning::Request, UNSEEN_REQUEST),
                    },
                    Kind::Request => (Meaning::Request, value),
                    Kind::String => (Meaning::Other, value),
                    _ if is_handle => (Meaning::Other, value),
                    _ => (Meaning::Value, value),
                };
                call.arguments.push(Argument { meaning, param: number, element, value });
            }
        }
        call
    }
}
