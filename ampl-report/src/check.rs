//! Faults of a program's communication as sentences.

use ampl_analysis::check::{Checked, Envelope, Finding, Kind, Object, Problem};
use ampl_analysis::matching::{Element, Lost, Number};
use ampl_analysis::messages::Comm;
use ampl_core::units::RankSet;
use ampl_reader::sites::Symbols;

use crate::human::{count, duration, plural, wrap};

/// Findings that are printed of one kind.
const MOST: usize = 20;

/// Word for a kind.
pub fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Hang => "hang",
        Kind::UnmatchedSend => "unmatched send",
        Kind::UnmatchedReceive => "unmatched receive",
        Kind::Truncation => "truncation",
        Kind::Type => "type",
        Kind::Order => "order",
        Kind::Root => "root",
        Kind::Operation => "operation",
        Kind::Count => "count",
        Kind::Leak => "leak",
        Kind::End => "end",
    }
}

/// Name of a communicator.
fn comm(comm: Option<Comm>) -> String {
    match comm {
        Some(Comm::World) => "world".into(),
        Some(Comm::Itself) => "self".into(),
        Some(Comm::Made(name)) => name.to_string(),
        None => "a communicator".into(),
    }
}

fn envelope(envelope: &Envelope) -> String {
    format!("tag {} on {}", envelope.tag, comm(envelope.comm))
}

/// `0, 1, 2 and 7 more`
fn ranks(ranks: &[u32]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> = ranks.iter().take(SHOWN).map(u32::to_string).collect();
    let noun = if ranks.len() == 1 { "rank" } else { "ranks" };
    match ranks.len().saturating_sub(SHOWN) {
        0 => format!("{noun} {}", shown.join(", ")),
        more => format!("{noun} {} and {more} more", shown.join(", ")),
    }
}

/// `ranks 0-2,5`
fn set(ranks: &RankSet) -> String {
    let noun = if ranks.len() == 1 { "rank" } else { "ranks" };
    format!("{noun} {ranks}")
}

/// `4-byte whole numbers`
fn element(element: Element) -> String {
    let noun = match element.number {
        Number::Whole => "whole numbers",
        Number::Floating => "floating-point numbers",
        Number::Complex => "complex numbers",
        Number::Other => "elements",
    };
    format!("{}-byte {noun}", element.bytes)
}

/// Sentence about a fault, without its place.
pub fn sentence(problem: &Problem) -> String {
    match problem {
        Problem::WaitsForMessage { envelope: own, receives: true } => format!(
            "would never return: rank {} sends no such message to rank {} ({})",
            own.from,
            own.to,
            envelope(own)
        ),
        Problem::WaitsForMessage { envelope: own, receives: false } => format!(
            "would never return: rank {} does not receive the message of rank {} ({})",
            own.to,
            own.from,
            envelope(own)
        ),
        Problem::WaitsForRanks { comm: own, missing } if missing.is_empty() => {
            format!("would never return: not all ranks of {} join it", comm(*own))
        }
        Problem::WaitsForRanks { comm: own, missing } => {
            let verb = if missing.len() == 1 { "does" } else { "do" };
            format!("would never return: {} {verb} not join it on {}", ranks(missing), comm(*own))
        }
        Problem::WaitsInCircle(own) => format!("did not return: ranks {own} waited for each other"),
        Problem::WaitsInVain { on, ended } if ended.is_empty() => {
            format!("did not return: it waited for {}, which could not go on either", set(on))
        }
        Problem::WaitsInVain { ended, .. } => {
            format!("did not return: it waited for {}, which had come to MPI_Finalize", set(ended))
        }
        Problem::Aborted => "ended the job by MPI_Abort".into(),
        Problem::Ended { inside: true, for_ns } => {
            format!("the job ended in this call, which had lasted {}", duration(*for_ns as f64))
        }
        Problem::Ended { inside: false, for_ns } => format!(
            "the job ended {} behind this call, the rank's last; it had not come to MPI_Finalize",
            duration(*for_ns as f64)
        ),
        Problem::NeverReceived(own) => {
            format!("the message to rank {} is never received ({})", own.to, envelope(own))
        }
        Problem::NeverSent(own) => {
            format!("rank {} sends no message for this receive ({})", own.from, envelope(own))
        }
        Problem::Truncated { envelope: own, bytes: Some((sent, room)) } => format!(
            "the message from rank {} is longer than the buffer: {} sent, room for {} ({})",
            own.from,
            plural(*sent, "byte"),
            plural(*room, "byte"),
            envelope(own)
        ),
        Problem::Truncated { bytes: None, .. } => {
            "a message was longer than its buffer (MPI_ERR_TRUNCATE)".into()
        }
        Problem::Elements { envelope: own, of: (sent, received) } => format!(
            "elements of the message from rank {} are {}, and are received as {} ({})",
            own.from,
            element(*sent),
            element(*received),
            envelope(own)
        ),
        Problem::Types(against) => format!(
            "elements are {} here and {} on rank {}",
            element(against.own),
            element(against.other),
            against.rank
        ),
        Problem::Order(against) => format!(
            "rank {} calls {} at this place in the order of the communicator's collectives",
            against.rank,
            against.other.name()
        ),
        Problem::Root(against) => {
            format!(
                "the root is rank {} here and rank {} on rank {}",
                against.own, against.other, against.rank
            )
        }
        Problem::Operation(against) => {
            format!("the operation is {} here and {} on rank {}", against.own, against.other, against.rank)
        }
        Problem::Count(against) => format!(
            "the block has {} here and {} on rank {}",
            plural(against.own, "byte"),
            plural(against.other, "byte"),
            against.rank
        ),
        Problem::LeakedRequests { number, inactive } => {
            let done = if *inactive { "freed" } else { "completed" };
            let verb = if *number == 1 { "is" } else { "are" };
            format!("{} {verb} never {done}", plural(*number, "request"))
        }
        Problem::Leaked { object, number, frees } => {
            let noun = match object {
                Object::Communicator => "communicator",
                Object::Datatype => "datatype",
                Object::Window => "window",
                Object::File => "file",
                Object::Group => "group",
                Object::Operation => "operation",
                Object::ErrorHandler => "error handler",
                Object::Info => "info object",
            };
            let verb = if *number == 1 { "is" } else { "are" };
            let habit = if *frees || *number > 1 || object.must_be_freed() {
                ""
            } else {
                "; the program frees none, and leaves them to MPI_Finalize"
            };
            format!("{} {verb} never freed{habit}", plural(*number, noun))
        }
    }
}

/// `rank 3, call 17: MPI_Recv @ solver.c:42`
fn place(finding: &Finding, symbols: &mut Symbols) -> String {
    let thread = if finding.thread > 0 { format!(", thread {}", finding.thread) } else { String::new() };
    let site = site(finding, symbols).map_or(String::new(), |site| format!(" @ {site}"));
    format!("rank {}{thread}, call {}: {}{site}", finding.rank, count(finding.seq), finding.function.name())
}

/// Call site of a finding, where it is known.
pub fn site(finding: &Finding, symbols: &mut Symbols) -> Option<String> {
    let (module, offset) = finding.site.as_ref()?;
    (!module.is_empty() || *offset > 0)
        .then(|| symbols.name(if module.is_empty() { "?" } else { module }, *offset))
}

/// All faults in lines of at most `width` characters.
pub fn text(checked: &Checked, symbols: &mut Symbols, width: usize) -> String {
    let mut lines = Vec::new();
    let faults = checked.findings.iter().filter(|one| one.problem.is_fault()).count() as u64;
    let compared =
        format!("{} and {}", plural(checked.messages, "message"), plural(checked.collectives, "collective"));
    lines.extend(wrap(
        &match faults {
            0 => format!("No fault found: {compared} of {} match.", plural(checked.ranks.into(), "rank")),
            _ => format!("{} found; {compared} match.", plural(faults, "fault")),
        },
        width,
        "  ",
    ));
    let mut shown: Vec<(Kind, bool, usize)> = Vec::new();
    for finding in &checked.findings {
        let key = (finding.problem.kind(), finding.problem.is_fault());
        let at = shown.iter().position(|own| (own.0, own.1) == key).unwrap_or_else(|| {
            shown.push((key.0, key.1, 0));
            shown.len() - 1
        });
        shown[at].2 += 1;
        if shown[at].2 <= MOST {
            let word = if key.1 { kind(key.0) } else { "note" };
            let text = format!("{word}: {}: {}", place(finding, symbols), sentence(&finding.problem));
            lines.extend(wrap(&text, width, "    "));
        }
    }
    for (own, _, number) in shown.iter().filter(|own| own.2 > MOST) {
        lines.push(format!("{}: {} more", kind(*own), count((number - MOST) as u64)));
    }
    for &(rank, seq, reason) in checked.lost.iter().take(MOST) {
        let why = match reason {
            Lost::Gap => format!("not judged from call {} on, where calls are not recorded", count(seq)),
            Lost::Arguments => {
                format!("not judged from call {} on, whose arguments are not recorded", count(seq))
            }
            Lost::End => format!("judged up to call {}, its last: it did not reach MPI_Finalize", count(seq)),
            Lost::Missing => "not judged: it left no record".into(),
        };
        lines.extend(wrap(&format!("rank {rank} is {why}."), width, "  "));
    }
    if checked.lost.len() > MOST {
        lines.push(format!(
            "{} more are not judged to their end.",
            plural((checked.lost.len() - MOST) as u64, "rank")
        ));
    }
    let stopped: u64 = checked.stopped.iter().map(|(_, operations)| operations).sum();
    if stopped > 0 {
        lines.extend(wrap(
            &match stopped {
                1 => "1 operation is not judged: its counterpart is not known.".to_owned(),
                _ => {
                    format!("{} operations are not judged: their counterparts are not known.", count(stopped))
                }
            },
            width,
            "  ",
        ));
    }
    lines.join("\n") + "\n"
}
