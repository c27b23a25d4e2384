//! The communication of a rank, compressed anew: equal for a run and for the recorded replay of it.
//!
//! Buffers and call sites are erased, constants have their names, and objects are named in the order of their making.
//! Polls that found nothing are dropped. Receives from any source have the source that they got.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hasher as _};

use ampl_core::mpi::constants::{AbiFamily, Set};
use ampl_core::mpi::{Class, Function};
use ampl_core::value::{ObjectKind, Value};
use ampl_reader::grammar::Builder;
use ampl_reader::{Call, Rank};

use crate::completions::{completed, is_failed_poll, output};
use crate::wildcards::{Sources, is_wildcard};

/// Arguments that are places in memory or on disk, or numbers that a library makes up.
const PLACES: [&str; 21] = [
    "argc",
    "argv",
    "attribute_val",
    "base",
    "baseptr",
    "buf",
    "buffer",
    "buffer_addr",
    "compare_addr",
    "errorcode",
    "extra_state",
    "filename",
    "inbuf",
    "inoutbuf",
    "location",
    "origin_addr",
    "outbuf",
    "recvbuf",
    "result_addr",
    "sendbuf",
    "status",
];

/// Outputs that say which communication has ended.
const TOLD: [&str; 6] = ["status", "array_of_statuses", "index", "indx", "array_of_indices", "outcount"];

/// True for functions that a replay leaves out: they move no data, and their arguments mean nothing there.
pub fn is_left_out(function: Function) -> bool {
    let name = function.name();
    function.spec().class == Class::CountOnly
        || name.starts_with("MPI_T_")
        || name.starts_with("MPI_Abi_")
        || name.starts_with("MPI_Status_c2f")
        || name.starts_with("MPI_Status_f")
        || name.starts_with("MPI_Register_datarep")
}

/// Compressed communication of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    /// Number of calls.
    pub calls: u64,
    /// Hash of the grammar and its terminals.
    pub hash: u64,
}

impl Content {
    /// The content of the calls of `rank`, whose constants are those of `family`.
    ///
    /// # Errors
    /// The calls are damaged.
    pub fn of(rank: &Rank<'_>, family: Option<AbiFamily>) -> Result<Self, String> {
        let sources = Sources::new(rank.calls().map_while(Result::ok));
        let mut names = Names::new(sources, family);
        let mut known: HashMap<String, u32> = HashMap::new();
        let (mut builder, mut hasher, mut calls) = (Builder::new(), DefaultHasher::new(), 0);
        for call in rank.calls() {
            let call = call.map_err(|error| error.to_string())?;
            if is_failed_poll(&call) || is_left_out(call.function) {
                continue;
            }
            let next = known.len() as u32;
            let terminal = *known.entry(names.text(&call)).or_insert_with_key(|text| {
                hasher.write(text.as_bytes());
                hasher.write_u8(0);
                next
            });
            builder.push(terminal, 1);
            calls += 1;
        }
        let mut bytes = Vec::new();
        builder.into_grammar().write(&mut bytes);
        hasher.write(&bytes);
        Ok(Self { calls, hash: hasher.finish() })
    }
}

/// Names of objects in the order of their making: of each kind the lowest number that is free.
struct Names<I> {
    /// Binary interface that gave constants their numbers.
    family: Option<AbiFamily>,
    sources: Sources<I>,
    live: HashMap<(ObjectKind, u64), u64>,
    used: HashMap<ObjectKind, BTreeSet<u64>>,
    /// Requests that live on when they are complete.
    persistent: BTreeSet<u64>,
    /// Requests whose status is left as the memory was (MPICH 4.0).
    unset: BTreeSet<u64>,
}

impl<I: Iterator<Item = Call>> Names<I> {
    /// No names; wildcards have the sources that `sources` tells, constants the numbers of `family`.
    fn new(sources: Sources<I>, family: Option<AbiFamily>) -> Self {
        let (live, used) = (HashMap::new(), HashMap::new());
        Self { family, sources, live, used, persistent: BTreeSet::new(), unset: BTreeSet::new() }
    }

    /// The call as text; objects that it makes are named behind it, and those that it ends have no name any more.
    fn text(&mut self, call: &Call) -> String {
        let function = call.function.name();
        let source = if is_wildcard(call) { self.sources.next_source() } else { None };
        let mut text = format!("{function}(");
        for (name, value) in &call.args {
            let is_place = PLACES.contains(name) || name.ends_with("keyval") || name.ends_with("_fn");
            match (source, value) {
                (_, Value::Name(value)) if value == "MPI_IN_PLACE" => text += value,
                _ if is_place => {}
                (Some(source), _) if *name == "source" => _ = write!(text, "{source}"),
                _ => self.write(&mut text, call.function, name, value),
            }
            text.push(',');
        }
        let done = completed(call);
        let is_unset = done.iter().any(|one| one.request.is_some_and(|own| self.unset.contains(&own)));
        for (name, value) in call.out.iter().filter(|(name, _)| TOLD.contains(name)) {
            if !(is_unset && name.contains("status")) {
                _ = write!(text, "{name}=");
                self.write(&mut text, call.function, name, value);
            }
        }
        for request in done.iter().filter_map(|one| one.request) {
            if !self.persistent.contains(&request) {
                self.end(ObjectKind::Request, request);
            }
        }
        for (name, value) in &call.args {
            let is_null = matches!(output(call, name), Some(Value::Name(null)) if null.ends_with("_NULL"));
            if let (true, Value::Object(kind, number)) = (is_null, value) {
                self.end(*kind, *number);
            }
        }
        for (name, value) in &call.out {
            let made = if let Value::List(all) = value { &all[..] } else { std::slice::from_ref(value) };
            let given = call.args.iter().any(|(of, before)| of == name && before == value);
            for value in made.iter().filter(|_| !given) {
                if let Value::Object(kind, number) = value {
                    self.make(*kind, *number, function);
                }
            }
        }
        text
    }

    /// A number, or the name of the constant that it is: each MPI has its own numbers.
    fn number(&self, function: Function, param: &str, number: i64) -> String {
        let set = Set::of_parameter(function, param);
        let named = set.zip(self.family).and_then(|(set, family)| set.named(param, family, number));
        match set {
            // A class of errors that the program has added.
            Some(Set::ErrorClass) => named.unwrap_or_else(|| "class".to_owned()),
            _ => named.unwrap_or_else(|| number.to_string()),
        }
    }

    fn write(&self, text: &mut String, function: Function, param: &str, value: &Value) {
        match value {
            Value::Int(number) => *text += &self.number(function, param, *number),
            Value::Object(kind, number) => {
                let own = self.live.get(&(*kind, *number));
                _ = write!(text, "{}:{}", kind.name(), own.map_or(-1, |&own| own as i64));
            }
            Value::List(values) => {
                text.push('[');
                for value in values {
                    self.write(text, function, param, value);
                    text.push(' ');
                }
                text.push(']');
            }
            // Codes of errors are the library's own.
            Value::Outcome { told, error } => _ = write!(text, "{told:?} {}", *error != 0),
            other => _ = write!(text, "{other}"),
        }
    }

    fn make(&mut self, kind: ObjectKind, number: u64, function: &str) {
        let used = self.used.entry(kind).or_default();
        // A name is used again after an object's end, of which nothing may be known.
        if let Some(before) = self.live.remove(&(kind, number)) {
            used.remove(&before);
        }
        let own =
            (0..).zip(used.iter()).find(|(free, used)| free != *used).map_or(used.len() as u64, |of| of.0);
        used.insert(own);
        self.live.insert((kind, number), own);
        if kind == ObjectKind::Request {
            let mut set = |all: fn(&mut Self) -> &mut BTreeSet<u64>, is_in: bool| match is_in {
                true => _ = all(self).insert(number),
                false => _ = all(self).remove(&number),
            };
            set(|own| &mut own.persistent, function.contains("_init"));
            set(|own| &mut own.unset, function.contains("Isendrecv_replace"));
        }
    }

    fn end(&mut self, kind: ObjectKind, number: u64) {
        let own = self.live.remove(&(kind, number));
        if let (Some(own), Some(used)) = (own, self.used.get_mut(&kind)) {
            used.remove(&own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::completions::tests::{call, request};

    fn texts(calls: &[Call]) -> Vec<String> {
        let sources = Sources::new(calls.iter().cloned());
        let mut names = Names::new(sources, Some(AbiFamily::Mpich));
        calls.iter().map(|call| names.text(call)).collect()
    }

    /// A receive from `source` into a buffer, waited for.
    fn exchange(source: Value, address: u64, name: u64) -> [Call; 2] {
        let args = vec![("buf", Value::Address(address)), ("source", source)];
        let status = Value::Status { source: 3, tag: 1 };
        [
            call("MPI_Irecv", args, vec![("request", request(name))]),
            call("MPI_Wait", vec![("request", request(name))], vec![("status", status)]),
        ]
    }

    #[test]
    fn buffers_names_and_wildcards_make_no_difference() {
        let any = || Value::Name("MPI_ANY_SOURCE".into());
        let recorded = [exchange(any(), 16, 7), exchange(any(), 32, 8)].concat();
        let replayed = [exchange(Value::Int(3), 64, 1), exchange(Value::Int(3), 64, 2)].concat();
        assert_eq!(texts(&recorded), texts(&replayed));
        assert_eq!(texts(&recorded)[..2], texts(&recorded)[2..], "steps that repeat are equal");
        let others = [exchange(Value::Int(2), 64, 1), exchange(Value::Int(3), 64, 2)].concat();
        assert_ne!(texts(&recorded), texts(&others));
    }

    #[test]
    fn constants_have_their_names_wherever_they_are() {
        let text = |family, calls: &[Call]| {
            let mut names = Names::new(Sources::new(calls.iter().cloned()), Some(family));
            calls.iter().map(|call| names.text(call)).collect::<Vec<_>>()
        };
        let list = |numbers: [i64; 2]| Value::List(numbers.map(Value::Int).to_vec());
        let of = |[block, cyclic, none, reason]: [i64; 4]| {
            let sizes = [("array_of_gsizes", list([16, 16])), ("array_of_distribs", list([block, cyclic]))];
            let sizes = [&sizes[..], &[("array_of_dargs", list([none, 2]))]].concat();
            let failed = Value::List(vec![Value::Outcome { told: None, error: reason }]);
            [
                call("MPI_Type_create_darray", sizes, vec![]),
                call("MPI_Error_string", vec![("errorcode", Value::Int(reason))], vec![]),
                call("MPI_Waitall", vec![], vec![("array_of_statuses", failed)]),
            ]
        };
        let (recorded, replayed) = (of([0, 1, -1, 13]), of([121, 122, -49767, 469_872_902]));
        let names = text(AbiFamily::OpenMpi, &recorded);
        assert_eq!(names, text(AbiFamily::Mpich, &replayed));
        assert!(names[0].contains("[MPI_DISTRIBUTE_BLOCK MPI_DISTRIBUTE_CYCLIC ]"), "{names:?}");
        assert_ne!(names[0], text(AbiFamily::OpenMpi, &of([1, 1, -1, 13]))[0]);
        assert_ne!(names[2], text(AbiFamily::OpenMpi, &of([0, 1, -1, 0]))[2]);
    }

    #[test]
    fn persistent_requests_keep_their_names() {
        let made =
            |name| call("MPI_Recv_init", vec![("source", Value::Int(1))], vec![("request", request(name))]);
        let waited = call("MPI_Wait", vec![("request", request(4))], vec![("status", Value::Absent)]);
        let found = texts(&[made(4), waited.clone(), made(5), waited]);
        assert_eq!(found[1], found[3]);
        assert_eq!(found[1], "MPI_Wait(request:0,status=-");
    }
}
