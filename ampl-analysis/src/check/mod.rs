//! Correctness of a program's communication, from its recorded calls: sends and receives that do not match, collectives
//! on which ranks disagree, calls that would never return, objects that are never freed.
//!
//! Only what is known is judged: ranks whose calls are not all recorded are left out from the first gap on.

mod agreement;
mod checker;
mod objects;
mod unfinished;

use ampl_core::mpi::Function;
use ampl_core::units::RankSet;
use ampl_trace::Trace;
use ampl_trace::communicators::Communicators;

pub use objects::Object;

use crate::matching::{At, Element, Job, Lost, Outcome, Source, Stop, Waiting, play};
use crate::messages::Comm;

/// The other end of a message, and where it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Sender, a rank of the world.
    pub from: u32,
    /// Receiver.
    pub to: u32,
    /// Tag.
    pub tag: i64,
    /// Communicator, where it is known.
    pub comm: Option<Comm>,
}

/// A value of the call, and that of another rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Against<T> {
    /// Value of the call.
    pub own: T,
    /// The other rank.
    pub rank: u32,
    /// Its value.
    pub other: T,
}

/// A fault.
#[derive(Clone, Debug, PartialEq)]
pub enum Problem {
    /// The call would never return: it waits for a message, or for the receive of one.
    WaitsForMessage {
        /// The message.
        envelope: Envelope,
        /// True where it receives.
        receives: bool,
    },
    /// The call would never return: these ranks do not join it.
    WaitsForRanks {
        /// Communicator.
        comm: Option<Comm>,
        /// Ranks.
        missing: Vec<u32>,
    },
    /// The job ended in this call: these ranks waited for each other.
    WaitsInCircle(RankSet),
    /// The job ended in this call: it waited for these ranks, which had come to `MPI_Finalize`, or waited in vain
    /// themselves.
    WaitsInVain {
        /// The ranks.
        on: RankSet,
        /// Ranks of them that had come to `MPI_Finalize`.
        ended: RankSet,
    },
    /// The rank ended the job by `MPI_Abort`.
    Aborted,
    /// The job ended before `MPI_Finalize`.
    Ended {
        /// True where the rank was in this call; otherwise it was in none, and this was its last.
        inside: bool,
        /// Time from the call's begin, or its return, to the end of the job, nanoseconds.
        for_ns: i64,
    },
    /// The message is never received.
    NeverReceived(Envelope),
    /// The receive never gets a message.
    NeverSent(Envelope),
    /// The message is longer than the room of its receive, bytes.
    Truncated {
        /// The message.
        envelope: Envelope,
        /// Sent, and room; none where only the error is known.
        bytes: Option<(u64, u64)>,
    },
    /// Elements of the two sides do not match.
    Elements {
        /// The message.
        envelope: Envelope,
        /// Sent, and received.
        of: (Element, Element),
    },
    /// Another rank passes elements of another type.
    Types(Against<Element>),
    /// Another rank calls another function at that place in the order of the communicator's collectives.
    Order(Against<Function>),
    /// Another rank names another root.
    Root(Against<i64>),
    /// Another rank names another operation.
    Operation(Against<String>),
    /// Another rank passes another number of bytes.
    Count(Against<u64>),
    /// Requests that are never completed, or persistent ones that are never freed.
    LeakedRequests {
        /// Number.
        number: u64,
        /// True where they are persistent and complete.
        inactive: bool,
    },
    /// Objects that are never freed.
    Leaked {
        /// Kind.
        object: Object,
        /// Number.
        number: u64,
        /// True where the program frees others of the kind; otherwise it leaves all to `MPI_Finalize`.
        frees: bool,
    },
}

/// Kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A call would never return.
    Hang,
    /// A message is never received.
    UnmatchedSend,
    /// A receive never gets a message.
    UnmatchedReceive,
    /// A message does not fit.
    Truncation,
    /// Types of two sides differ.
    Type,
    /// Collectives are called in different orders.
    Order,
    /// Roots differ.
    Root,
    /// Operations differ.
    Operation,
    /// Counts differ.
    Count,
    /// Something is never freed.
    Leak,
    /// The job did not come to its end.
    End,
}

impl Problem {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Self::WaitsForMessage { .. }
            | Self::WaitsForRanks { .. }
            | Self::WaitsInCircle(_)
            | Self::WaitsInVain { .. } => Kind::Hang,
            Self::Aborted | Self::Ended { .. } => Kind::End,
            Self::NeverReceived(_) => Kind::UnmatchedSend,
            Self::NeverSent(_) => Kind::UnmatchedReceive,
            Self::Truncated { .. } => Kind::Truncation,
            Self::Elements { .. } | Self::Types(_) => Kind::Type,
            Self::Order(_) => Kind::Order,
            Self::Root(_) => Kind::Root,
            Self::Operation(_) => Kind::Operation,
            Self::Count(_) => Kind::Count,
            Self::LeakedRequests { .. } | Self::Leaked { .. } => Kind::Leak,
        }
    }

    /// True unless it is a habit without harm: objects that are used to the end, in a program that frees none.
    pub fn is_fault(&self) -> bool {
        !matches!(self, Self::Leaked { object, frees: false, number: 1 } if !object.must_be_freed())
    }
}

/// A fault and its call.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Rank.
    pub rank: u32,
    /// Thread.
    pub thread: u32,
    /// Number of the call in the thread's sequence.
    pub seq: u64,
    /// Function.
    pub function: Function,
    /// Module and offset of the call site, where it is known.
    pub site: Option<(String, u64)>,
    /// The fault.
    pub problem: Problem,
}

/// Faults of a run, and the parts of it that were not judged.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// Faults by rank and call.
    pub findings: Vec<Finding>,
    /// Messages that match.
    pub messages: u64,
    /// Collectives that were compared.
    pub collectives: u64,
    /// Ranks of the job.
    pub ranks: u32,
    /// Ranks that are not judged from some call on.
    pub lost: Vec<(u32, u64, Lost)>,
    /// Operations that are not judged, by reason.
    pub stopped: Vec<(Stop, u64)>,
}

/// Faults of the calls of `trace`.
pub fn check(trace: &Trace) -> Checked {
    let process = |rank: u32| trace.rank(rank).map(|found| &found.process);
    let comms = Communicators::in_order(&trace.run, &trace.structure, &process);
    let job = Job::of(trace);
    check_calls(job.ranks, &job.sources(), &comms, trace)
}

fn check_calls(ranks: u32, sources: &[Source<'_>], comms: &Communicators, trace: &Trace) -> Checked {
    let mut checker = checker::Checker::new(sources, trace.run.abi_family());
    let outcome = play(ranks, sources, comms, &mut checker);
    let number = |comm: u32| outcome.comms.get(comm as usize).map(|&(comm, _)| comm);
    let envelope = |channel: crate::matching::Channel| Envelope {
        from: channel.from,
        to: channel.to,
        tag: channel.tag,
        comm: number(channel.comm),
    };
    let mut found: Vec<(At, Problem)> = Vec::new();
    for stuck in &outcome.stuck {
        let problem = match &stuck.on {
            Waiting::Message { channel, receives, .. } => {
                Problem::WaitsForMessage { envelope: envelope(*channel), receives: *receives }
            }
            Waiting::Collective { comm, missing } => {
                Problem::WaitsForRanks { comm: number(*comm), missing: missing.clone() }
            }
        };
        found.push((stuck.at, problem));
    }
    for half in &outcome.unmatched {
        let envelope = envelope(half.channel);
        let problem =
            if half.receives { Problem::NeverSent(envelope) } else { Problem::NeverReceived(envelope) };
        found.push((half.posted, problem));
    }
    found.extend(leaks(&outcome));
    let Outcome { messages, collectives, lost, stopped, .. } = &outcome;
    let is_lost = |rank: u32| lost.iter().any(|&(lost, ..)| lost == rank);
    found.extend(checker.finish(number, is_lost));
    let finding = |(at, problem): (At, Problem)| {
        let source = sources.iter().find(|source| source.structure.rank == at.rank)?;
        let structure = source.structure;
        let thread = structure.threads.iter().find(|thread| thread.thread == at.thread)?;
        let signature = thread.signatures.get(at.terminal as usize)?;
        let site = signature.site.checked_sub(1).and_then(|site| structure.sites.get(site as usize));
        let site = site.map(|site| {
            let module = structure.modules.get(site.module as usize).cloned().unwrap_or_default();
            (module, site.offset)
        });
        let function = Function(signature.function);
        Some(Finding { rank: at.rank, thread: at.thread, seq: at.seq, function, site, problem })
    };
    let mut findings: Vec<Finding> = found.into_iter().filter_map(finding).collect();
    findings.extend(unfinished::findings(trace, comms, lost));
    findings.sort_by_key(|one| (!one.problem.is_fault(), one.problem.kind(), one.rank, one.thread, one.seq));
    Checked {
        findings,
        messages: *messages,
        collectives: *collectives,
        ranks,
        lost: lost.clone(),
        stopped: stopped.clone(),
    }
}

/// Leaked requests, those of one terminal together.
fn leaks(outcome: &Outcome<()>) -> Vec<(At, Problem)> {
    let mut all: Vec<(At, u64, bool)> = Vec::new();
    for leak in &outcome.leaks {
        let made = leak.made;
        let same = |(at, _, inactive): &&mut (At, u64, bool)| {
            (at.rank, at.thread, at.terminal) == (made.rank, made.thread, made.terminal)
                && *inactive == leak.inactive
        };
        match all.iter_mut().find(same) {
            Some((_, number, _)) => *number += 1,
            None => all.push((made, 1, leak.inactive)),
        }
    }
    all.into_iter().map(|(at, number, inactive)| (at, Problem::LeakedRequests { number, inactive })).collect()
}

#[cfg(test)]
mod tests;
