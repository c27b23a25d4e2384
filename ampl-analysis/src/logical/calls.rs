//! Calls as the logical program has them: partners as ranks of the world, and of other arguments those that say what
//! is sent.

use ampl_core::mpi::{FUNCTION_COUNT, Function};
use ampl_trace::communicators::Communicators;
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
    known: FxHashMap<u64, Option<Scope<'a>>>,
}

impl<'a> Plainly<'a> {
    /// The calls of `rank`, in a job of so many ranks.
    pub fn new(scopes: &'a Scopes<'a>, rank: u32, ranks: u32) -> Self {
        Self { scopes, comms: scopes.comms(), rank, ranks, known: FxHashMap::default() }
    }

    /// Calls of a thread by terminal.
    pub fn thread(&mut self, thread: &ThreadStructure) -> Vec<Plain> {
        thread.signatures.iter().map(|signature| self.call(signature)).collect()
    }

    fn scope(&mut self, word: u64) -> Option<Scope<'a>> {
        let (scopes, comms, rank) = (self.scopes, self.comms, self.rank);
        *self.known.entry(word).or_insert_with(|| {
            Scopes::predefined(rank, word)
                .or_else(|| comms.only(rank, word).and_then(|comm| scopes.named(rank, comm.name)))
        })
    }

    fn call(&mut self, signature: &Signature) -> Plain {
        let Signature { function, flags, site, words } = signature;
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
}
