//! Effects of calls on messages, requests and collectives, decoded once for each signature of a thread.

use ampl_core::mpi::{Class, FUNCTION_COUNT, Function, Traffic};
use ampl_core::value::Value;
use ampl_trace::args::{Names, decode};
use ampl_trace::communicators::acts;
use ampl_trace::decode::origins;
use ampl_trace::gaps::Gap;
use ampl_trace::record::{CALL_ERROR, CALL_MISS, CALL_NO_ARGS, GAP};
use ampl_trace::request;
use ampl_trace::structure::{Signature, ThreadStructure};

use super::call::{Call, Element, Peer, find, list, request_of, told_of};
use super::collectives::{Collective, collective, is_collective};
use crate::calls::{Objects, is_whole};
use crate::messages::facts::bytes;

/// Mode of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Standard: it may be buffered.
    Standard,
    /// Synchronous: it ends when the receive has begun.
    Synchronous,
    /// Buffered by the program.
    Buffered,
    /// Ready: the receive has been posted.
    Ready,
}

/// Content of a message, or room for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    /// Bytes, where they are known.
    pub bytes: Option<u64>,
    /// Element of a predefined type that is neither bytes nor packed.
    pub element: Option<Element>,
}

/// A send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Send {
    /// Receiver.
    pub to: Peer,
    /// Tag.
    pub tag: i64,
    /// Word of the communicator.
    pub comm: u64,
    /// Content.
    pub payload: Payload,
    /// Mode.
    pub mode: Mode,
}

/// A receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receive {
    /// Sender that is asked for.
    pub from: Peer,
    /// Tag that is asked for; `None` for any.
    pub tag: Option<i64>,
    /// Word of the communicator.
    pub comm: u64,
    /// Room.
    pub payload: Payload,
    /// Source and tag of the message, by the status.
    pub told: Option<(i64, i64)>,
}

impl Receive {
    /// True where the message's source or tag is not known from the arguments.
    pub fn is_open(&self) -> bool {
        self.from == Peer::Any || (self.tag.is_none() && self.from != Peer::Nobody)
    }
}

/// A request that a call has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// Its number.
    pub request: u64,
    /// Source and tag, by the status.
    pub told: Option<(i64, i64)>,
}

/// Communication that a call begins or prepares.
#[derive(Clone, Debug, PartialEq)]
pub enum Begin {
    /// A send.
    Send(Send),
    /// A receive.
    Receive(Receive),
    /// Both.
    Both(Send, Receive),
    /// A partitioned send.
    PartSend(Send),
    /// A partitioned receive.
    PartReceive(Receive),
    /// A collective.
    Collective(Box<Collective>),
    /// A transfer of another kind: of a file or a window, or the program's own.
    Other,
}

/// Effect of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// No effect on messages.
    Nothing,
    /// Not known: what follows on its rank cannot be matched.
    Unknown,
    /// Begins communication that is complete when the call returns.
    Blocking(Begin),
    /// Begins communication and makes a request.
    Immediate(Begin, u64),
    /// Makes a persistent request.
    Prepare(Begin, u64),
    /// Starts persistent requests.
    Start(Box<[u64]>),
    /// Completes requests; others that it names are still active.
    Complete(Box<[Completed]>),
    /// Takes a message off the queue, by a matched probe.
    Take(Receive),
    /// Makes a request that receives a message taken before.
    TakeInto(u64),
    /// Frees a request.
    Free(u64),
    /// Cancels a request.
    Cancel(u64),
    /// The program ends MPI.
    Finalize,
}

/// A signature as the matching reads it.
#[derive(Clone, Debug)]
pub struct Terminal {
    /// Function.
    pub function: Function,
    /// Effect.
    pub act: Act,
    /// True where it may make or free communicators.
    pub names: bool,
    /// True for polls that fail.
    pub misses: bool,
    /// Index of its site, from 0.
    pub site: Option<u32>,
    /// Error code that it returned; 0 for none.
    pub code: i64,
    /// Errors of the requests that it completed.
    pub errors: Box<[i64]>,
}

/// Every word is its own name.
struct Words;

impl Names for Words {
    fn place(&self, word: u64) -> Value {
        Value::Address(word)
    }

    fn request(&mut self, word: u64) -> u64 {
        word
    }
}

/// The signatures of `thread`.
pub fn terminals(thread: &ThreadStructure, objects: &mut Objects<'_>) -> Vec<Terminal> {
    let origins = origins(&thread.signatures);
    let read = |(terminal, signature): (usize, &Signature)| {
        let origin = origins.get(terminal).copied().flatten();
        of(thread.thread, signature, origin, objects)
    };
    thread.signatures.iter().enumerate().map(read).collect()
}

fn of(thread: u32, signature: &Signature, origin: Option<u32>, objects: &mut Objects<'_>) -> Terminal {
    let none = Terminal {
        function: Function(0),
        act: Act::Nothing,
        names: acts(signature.function),
        misses: signature.flags & CALL_MISS != 0,
        site: signature.site.checked_sub(1),
        code: 0,
        errors: Box::default(),
    };
    if usize::from(signature.function) >= FUNCTION_COUNT {
        return Terminal { names: signature.function == GAP, ..none };
    }
    let function = Function(signature.function);
    let mut terminal = Terminal { function, ..none };
    let spec = function.spec();
    if spec.name == "MPI_Finalize" {
        terminal.act = Act::Finalize;
        return terminal;
    }
    if signature.flags & CALL_MISS != 0 || !matters(function) {
        return terminal;
    }
    if signature.flags & CALL_NO_ARGS != 0 {
        terminal.act = Act::Unknown;
        return terminal;
    }
    let mut words = &signature.words[..];
    if signature.flags & CALL_ERROR != 0
        && let Some((&code, rest)) = words.split_first()
    {
        (terminal.code, words) = (code as i64, rest);
    }
    let made;
    if let (Some((&slot, others)), Some(origin)) = (words.split_last(), origin) {
        made = [others, &[request::made(thread, origin, slot)]].concat();
        words = &made;
    }
    let Some((args, out)) = decode(spec, signature.flags, words, &mut Words) else {
        terminal.act = Act::Unknown;
        return terminal;
    };
    let call = Call { function, args, out, failed: terminal.code != 0 };
    terminal.errors = call.errors();
    terminal.act = call.act(signature, objects);
    terminal
}

/// True where calls of `function` may have an effect.
pub fn matters(function: Function) -> bool {
    let spec = function.spec();
    match spec.class {
        Class::Local | Class::CountOnly => false,
        Class::Completion | Class::Start | Class::Nonblocking | Class::PersistentCollective => true,
        Class::Lifecycle => spec.name == "MPI_Finalize",
        Class::Poll => !matches!(function.base_name(), "MPI_Iprobe" | "MPI_Parrived" | "MPI_Win_test"),
        Class::Ordinary => {
            spec.traffic.is_message()
                || matches!(
                    function.base_name(),
                    "MPI_Mprobe" | "MPI_Psend_init" | "MPI_Precv_init" | "MPI_Request_free" | "MPI_Cancel"
                )
                || is_collective(function)
        }
    }
}

impl Call {
    fn send(&self, names: [&str; 3], payload: Option<u64>) -> Option<Send> {
        let [dest, tag, datatype] = names;
        let name = self.function.name();
        let mode = match name {
            _ if name.contains("ssend") || name.contains("Ssend") => Mode::Synchronous,
            _ if name.contains("bsend") || name.contains("Bsend") => Mode::Buffered,
            _ if name.contains("rsend") || name.contains("Rsend") => Mode::Ready,
            _ => Mode::Standard,
        };
        Some(Send {
            to: self.peer(dest)?,
            tag: self.tag(tag)?,
            comm: self.comm("comm")?,
            payload: Payload { bytes: payload, element: self.element(datatype) },
            mode,
        })
    }

    fn receive(&self, names: [&str; 3], payload: Option<u64>) -> Option<Receive> {
        let [source, tag, datatype] = names;
        Some(Receive {
            from: self.peer(source)?,
            tag: self.tag(tag),
            comm: self.comm("comm")?,
            payload: Payload { bytes: payload, element: self.element(datatype) },
            told: self.status(),
        })
    }

    fn begin(&self, signature: &Signature, objects: &mut Objects<'_>) -> Option<Begin> {
        let spec = self.function.spec();
        let (sent, received) = if is_whole(signature) { bytes(signature, objects) } else { (None, None) };
        Some(match spec.traffic {
            Traffic::Send | Traffic::SendInit => Begin::Send(self.send(["dest", "tag", "datatype"], sent)?),
            Traffic::Recv | Traffic::RecvInit if self.input("source").is_some() => {
                Begin::Receive(self.receive(["source", "tag", "datatype"], received)?)
            }
            Traffic::Sendrecv => Begin::Both(
                self.send(["dest", "sendtag", "sendtype"], sent)?,
                self.receive(["source", "recvtag", "recvtype"], received)?,
            ),
            Traffic::SendrecvReplace => Begin::Both(
                self.send(["dest", "sendtag", "datatype"], sent)?,
                self.receive(["source", "recvtag", "datatype"], received)?,
            ),
            _ if self.function.base_name() == "MPI_Psend_init" => {
                Begin::PartSend(self.send(["dest", "tag", "datatype"], sent)?)
            }
            _ if self.function.base_name() == "MPI_Precv_init" => {
                let receive = self.receive(["source", "tag", "datatype"], None)?;
                Begin::PartReceive(receive)
            }
            _ if is_collective(self.function) => {
                Begin::Collective(Box::new(collective(self, signature, objects)?))
            }
            _ => Begin::Other,
        })
    }

    /// Requests that the call has completed.
    fn completed(&self) -> Option<Box<[Completed]>> {
        let name = self.function.name();
        if find(&self.out, "flag") == Some(&Value::Bool(false)) || name.starts_with("MPI_Request_get") {
            return Some(Box::default());
        }
        let mut requests = list(&self.args, "array_of_requests");
        if requests.is_empty() {
            requests = list(&self.args, "request");
        }
        let statuses = match list(&self.out, "array_of_statuses") {
            [] => list(&self.out, "status"),
            some => some,
        };
        let told = |place: usize| statuses.get(place).and_then(told_of);
        let at = |place: usize, index: &Value| match index {
            Value::Int(index) => {
                let request = request_of(requests.get(usize::try_from(*index).ok()?)?)?;
                Some(Completed { request, told: told(place) })
            }
            _ => None,
        };
        Some(match name {
            "MPI_Waitany" | "MPI_Testany" => {
                list(&self.out, "index").iter().filter_map(|index| at(0, index)).collect()
            }
            "MPI_Waitsome" | "MPI_Testsome" => {
                let indices = list(&self.out, "array_of_indices").iter().enumerate();
                indices.filter_map(|(place, index)| at(place, index)).collect()
            }
            _ if self.failed && self.out.is_empty() => return None,
            _ => {
                let each = requests.iter().enumerate();
                let each = each.filter_map(|(place, request)| Some((place, request_of(request)?)));
                each.map(|(place, request)| Completed { request, told: told(place) }).collect()
            }
        })
    }

    fn act(&self, signature: &Signature, objects: &mut Objects<'_>) -> Act {
        let spec = self.function.spec();
        let name = self.function.base_name();
        let one = || request_of(self.input("request")?);
        match spec.class {
            Class::Completion => return self.completed().map_or(Act::Unknown, Act::Complete),
            Class::Poll if name.starts_with("MPI_Test") => {
                return self.completed().map_or(Act::Unknown, Act::Complete);
            }
            Class::Start => {
                let mut requests = list(&self.args, "array_of_requests");
                if requests.is_empty() {
                    requests = list(&self.args, "request");
                }
                return Act::Start(requests.iter().filter_map(request_of).collect());
            }
            _ => {}
        }
        if self.failed && self.status().is_none() {
            // A call that fails moves nothing.
            return Act::Nothing;
        }
        match name {
            "MPI_Request_free" => return one().map_or(Act::Nothing, Act::Free),
            "MPI_Cancel" => return one().map_or(Act::Nothing, Act::Cancel),
            "MPI_Mprobe" | "MPI_Improbe" => {
                if find(&self.out, "flag") == Some(&Value::Bool(false)) {
                    return Act::Nothing;
                }
                let taken = self.receive(["source", "tag", "datatype"], None);
                return taken.map_or(Act::Unknown, Act::Take);
            }
            "MPI_Mrecv" => return Act::Nothing,
            "MPI_Imrecv" => return self.made_request().map_or(Act::Nothing, Act::TakeInto),
            _ if spec.class == Class::Poll => return Act::Nothing,
            _ => {}
        }
        let Some(begin) = self.begin(signature, objects) else { return Act::Unknown };
        let persistent = matches!(spec.traffic, Traffic::SendInit | Traffic::RecvInit)
            || spec.class == Class::PersistentCollective
            || matches!(begin, Begin::PartSend(_) | Begin::PartReceive(_));
        match (self.made_request(), persistent) {
            (Some(request), true) => Act::Prepare(begin, request),
            (Some(request), false) => Act::Immediate(begin, request),
            // It made MPI_REQUEST_NULL.
            (None, true) => Act::Nothing,
            (None, false) if spec.class == Class::Nonblocking => Act::Nothing,
            (None, false) => Act::Blocking(begin),
        }
    }
}

/// True where calls of `gap` may have had an effect.
pub fn gap_matters(gap: &Gap) -> bool {
    let known: u64 = gap.parts.iter().map(|part| part.calls).sum();
    let has = |function: u16| usize::from(function) >= FUNCTION_COUNT || matters(Function(function));
    let makes = |function: u16| acts(function);
    known < gap.calls || gap.parts.iter().any(|part| has(part.function) || makes(part.function))
}
