//! One rank's calls on communicators and groups, with words replaced by the objects they stand for.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;

use super::calls::{Call, Does, Read, Weight, does, is_undefined, predefined, read, weight};
use super::scope::{Scope, Words};
use super::walk::{Fuel, Paths};
use crate::args::is_predefined;
use crate::model::Process;
use crate::record::GAP;
use crate::structure::{RankStructure, ThreadStructure};

/// No object.
pub const NONE: u32 = u32::MAX;

/// Object that a word stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// The communicator of all ranks.
    World,
    /// The communicator of the caller alone.
    Itself,
    /// The empty group.
    Empty,
    /// A null handle.
    Null,
    /// The rank's communicator or group of that number.
    Made(u32),
    /// An object that calls do not determine.
    Unknown,
}

/// A call of a script.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    /// Index into [`Script::calls`].
    pub call: u32,
    /// The communicator or group that it is given, and another one.
    pub given: [Object; 2],
    /// The number of what it makes, [`NONE`] where that is nothing.
    pub made: u32,
}

/// Facts that MPI returned to a rank about a communicator; [`NONE`] where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Number of ranks; of an intercommunicator, in the caller's group.
    pub size: u32,
    /// The caller's rank there.
    pub number: u32,
    /// Ranks in the other group.
    pub remote: u32,
    /// Rank in the world of its rank 0.
    pub leader: u32,
    /// True where two facts contradict each other.
    pub wrong: bool,
}

impl Facts {
    /// No facts.
    pub const NOTHING: Self = Self { size: NONE, number: NONE, remote: NONE, leader: NONE, wrong: false };

    /// Facts in a call that records the caller's place.
    fn of(call: &Call) -> Self {
        let known = |word: u64| u32::try_from(word).unwrap_or(NONE);
        let [size, number, leader] = call.place.map_or([NONE; 3], |place| place.map(known));
        Self { size, number, leader, ..Self::NOTHING }
    }

    fn tell(&mut self, which: Does, told: u64) {
        let fact = match which {
            Does::TellsSize => &mut self.size,
            Does::TellsNumber => &mut self.number,
            _ => &mut self.remote,
        };
        match u32::try_from(told) {
            Ok(told) if *fact == NONE || *fact == told => *fact = told,
            _ => self.wrong = true,
        }
    }
}

/// A communicator as the rank that makes it knows it.
#[derive(Clone, Copy, Debug)]
pub struct Made {
    /// Index in the function table.
    pub function: u16,
    /// Its parent.
    pub on: Object,
    /// Facts known of it.
    pub facts: Facts,
}

/// Names that decoding needs to follow words.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Threads that make communicators, each with the number of its first and how many it makes.
    pub threads: Vec<(u32, u32, u32)>,
    /// Words of communicators.
    pub words: Words,
    /// True where calls that were only counted may have been about communicators.
    pub gaps_matter: bool,
}

/// Calls of one rank on communicators and groups.
#[derive(Debug)]
pub struct Script {
    /// The rank.
    pub rank: u32,
    /// Distinct calls.
    pub calls: Vec<Call>,
    /// Calls of each thread, in order.
    pub threads: Vec<Vec<Op>>,
    /// The communicators it makes, those of a thread behind those of the one before.
    pub made: Vec<Made>,
    /// Number of groups it makes.
    pub groups: u32,
    /// True where no call is missing, and nothing is unknown.
    pub complete: bool,
    /// True where calls were left out because there are too many.
    pub cut: bool,
    /// Names to find communicators by their words.
    pub names: Names,
}

/// Bit in the rank that marks an intercommunicator; the other bits are then the size of the caller's group.
const BETWEEN: u64 = 1 << 63;

/// One thread on the way to a script.
struct Reading<'a> {
    thread: &'a ThreadStructure,
    /// Indices into the calls, [`NONE`] where something is lost.
    sequence: Vec<u32>,
}

/// Script of at most `most` calls of `structure` on communicators and groups; `process` shows whether all calls are
/// there. Where the agent `keeps` them, no gap hides one, and handles that nested calls have made and freed stand for
/// nothing else. `None` where no call makes or frees one.
pub fn script(
    structure: &RankStructure,
    process: Option<&Process>,
    keeps: bool,
    most: usize,
    fuel: &mut Fuel,
) -> Option<Script> {
    let weights: Vec<Vec<Weight>> = structure.threads.iter().map(weights).collect();
    let mut reader = Reader { calls: Vec::new(), left: most, cut: false, fuel };
    let gap = structure
        .threads
        .iter()
        .any(|thread| thread.signatures.iter().any(|signature| signature.function == GAP));
    let missing = process.map(|process| missing(structure, process));
    // Objects freed elsewhere are not named any more: gaps are harmless where no call that makes one is missing.
    let gaps_matter = !keeps && !matches!(missing, Some(Missing::Nothing | Missing::Ends));
    let mut readings = Vec::new();
    for (thread, weights) in structure.threads.iter().zip(&weights) {
        let paths = Paths::new(&thread.grammar, weights);
        if paths.acts() {
            let sequence = reader.sequence(thread, &paths, gaps_matter);
            readings.push(Reading { thread, sequence });
        }
    }
    if readings.is_empty() {
        return None;
    }
    let Reader { calls, cut, .. } = reader;
    let finalized = process.is_some_and(|process| process.finalized);
    let makes_missing = missing == Some(Missing::Makes);
    // Where the agent did less, or there was no room for more, calls may be missing behind what is there.
    let cut_short = process.is_some_and(|process| !process.steps.is_empty());
    // Calls from within MPI have no place in the sequence: their objects, and their times, are not known. Handles that
    // they make and free are followed, or stand for something else unnoticed.
    let hidden = makes_missing && finalized && !gap && !cut_short && !keeps;
    let lost = readings.iter().any(|reading| reading.sequence.contains(&NONE));
    // The order of threads is not known behind a lost call.
    let nothing = hidden || (lost || cut) && readings.len() > 1;
    let mut writer = Writer::new(structure, calls);
    readings.iter().for_each(|reading| writer.note(reading));
    readings.iter().for_each(|reading| writer.thread(reading));
    // With calls missing, a word may have stood for another object when MPI was asked.
    if !makes_missing {
        writer.told(structure);
    }
    let Writer { calls, mut threads, made, groups, mut names, .. } = writer;
    if nothing {
        threads.clear();
        names.words = Words::default();
    }
    names.gaps_matter = gaps_matter;
    let missed = nothing || lost || makes_missing && cut_short;
    let complete = finalized && !cut && !missed;
    Some(Script { rank: structure.rank, calls, threads, made, groups, complete, cut, names })
}

fn weights(thread: &ThreadStructure) -> Vec<Weight> {
    thread.signatures.iter().map(|signature| weight(signature.function)).collect()
}

/// Calls that were counted, and are not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Missing {
    /// No calls.
    Nothing,
    /// Calls that free communicators and groups.
    Ends,
    /// Calls that make them; or the record contradicts the counts.
    Makes,
}

/// Calls that make or free communicators and groups, and are missing in the sequence.
fn missing(structure: &RankStructure, process: &Process) -> Missing {
    let mut recorded: FxHashMap<u16, u64> = FxHashMap::default();
    for thread in &structure.threads {
        for item in thread.grammar.rules.all() {
            let Some(terminal) = item.symbol.as_terminal() else { continue };
            let Some(signature) = thread.signatures.get(terminal as usize) else { continue };
            if signature.function != GAP && weight(signature.function) == Weight::Acts {
                let times = item.counts.iter().map(|&(times, length)| times.saturating_mul(length));
                *recorded.entry(signature.function).or_default() += times.fold(0, u64::saturating_add);
            }
        }
    }
    let mut missing = Missing::Nothing;
    for &(function, calls) in process.calls.iter().filter(|&&(function, _)| weight(function) == Weight::Acts)
    {
        let ends = matches!(does(function), Some(Does::Frees | Does::FreesGroup));
        match recorded.remove(&function).unwrap_or(0).cmp(&calls) {
            Ordering::Equal => {}
            Ordering::Less if ends => missing = missing.max(Missing::Ends),
            _ => missing = Missing::Makes,
        }
    }
    if recorded.is_empty() { missing } else { Missing::Makes }
}

/// Reads sequences.
struct Reader<'a> {
    calls: Vec<Call>,
    left: usize,
    cut: bool,
    fuel: &'a mut Fuel,
}

impl Reader<'_> {
    fn sequence(&mut self, thread: &ThreadStructure, paths: &Paths<'_>, gaps_matter: bool) -> Vec<u32> {
        const NOTHING: u32 = NONE - 1;
        const UNREAD: u32 = NONE - 2;
        let mut known = vec![UNREAD; thread.signatures.len()];
        let mut sequence = Vec::new();
        let walked = paths.walk(self.fuel, |terminal, fuel| {
            let known = known.get_mut(terminal as usize)?;
            if *known == UNREAD {
                let signature = &thread.signatures[terminal as usize];
                fuel.spend(signature.words.len() as u64)?;
                self.left = self.left.checked_sub(signature.words.len())?;
                *known = match read(signature) {
                    Read::Nothing => NOTHING,
                    Read::Lost if signature.function == GAP && !gaps_matter => NOTHING,
                    Read::Lost => NONE,
                    Read::Known(call) => {
                        self.calls.push(call);
                        self.calls.len() as u32 - 1
                    }
                };
            }
            if *known != NOTHING {
                self.left = self.left.checked_sub(1)?;
                sequence.push(*known);
            }
            Some(())
        });
        self.cut |= walked.is_none();
        sequence
    }
}

/// Writes the script.
struct Writer {
    calls: Vec<Call>,
    threads: Vec<Vec<Op>>,
    made: Vec<Made>,
    groups: u32,
    names: Names,
    group_words: Words,
    /// Words of parents of communicators: the first thread that uses each, and whether others do.
    parents: FxHashMap<u64, (u32, bool)>,
    /// Number of communicators and of groups noted.
    noted: [u32; 2],
}

impl Writer {
    fn new(structure: &RankStructure, calls: Vec<Call>) -> Self {
        Self {
            calls,
            threads: Vec::with_capacity(structure.threads.len()),
            made: Vec::new(),
            groups: 0,
            names: Names::default(),
            group_words: Words::default(),
            parents: FxHashMap::default(),
            noted: [0; 2],
        }
    }

    /// Notes a thread's uses of words, whatever other threads do.
    fn note(&mut self, reading: &Reading<'_>) {
        let thread = reading.thread.thread;
        for &call in &reading.sequence {
            let Some(call) = self.calls.get(call as usize) else { continue };
            match (call.does, call.made()) {
                (Does::Makes(_), made) => {
                    for &word in &call.given {
                        let (first, several) = self.parents.entry(word).or_insert((thread, false));
                        *several |= *first != thread;
                    }
                    if let Some(word) = made {
                        self.names.words.made(thread, word, self.noted[0]);
                        self.noted[0] += 1;
                    }
                }
                (Does::Derives(_), Some(word)) => {
                    self.group_words.made(thread, word, self.noted[1]);
                    self.noted[1] += 1;
                }
                (Does::Frees, Some(word)) => self.names.words.freed(thread, word),
                (Does::FreesGroup, Some(word)) => self.group_words.freed(thread, word),
                _ => {}
            }
        }
    }

    fn thread(&mut self, reading: &Reading<'_>) {
        let thread = reading.thread.thread;
        let (mut comms, mut groups) = (Scope::new(thread, false), Scope::new(thread, true));
        let first = self.made.len() as u32;
        let (mut ops, mut lost) = (Vec::new(), false);
        for &number in &reading.sequence {
            let Some(call) = self.calls.get(number as usize) else {
                comms.lose();
                groups.lose();
                lost = true;
                continue;
            };
            let mut given = [Object::Null; 2];
            let kinds = call.kinds();
            for ((given, &word), is_group) in given.iter_mut().zip(&call.given).zip(kinds) {
                *given = match is_group {
                    false => object(&comms, &self.names.words, word),
                    true => object(&groups, &self.group_words, word),
                };
                // In which order threads use it is not known.
                if matches!(call.does, Does::Makes(_))
                    && self.parents.get(&word).is_some_and(|it| it.1)
                    && !is_group
                {
                    *given = Object::Unknown;
                }
            }
            let made = match (call.does, call.made()) {
                (Does::Makes(_), Some(word)) => {
                    let number = self.made.len() as u32;
                    comms.made(word, number);
                    self.made.push(Made { function: call.function, on: given[0], facts: Facts::of(call) });
                    number
                }
                (Does::Derives(_), Some(word)) => {
                    groups.made(word, self.groups);
                    self.groups += 1;
                    self.groups - 1
                }
                (Does::Frees, Some(word)) => {
                    comms.freed(word);
                    continue;
                }
                (Does::FreesGroup, Some(word)) => {
                    groups.freed(word);
                    continue;
                }
                (Does::Frees | Does::FreesGroup, None) => continue,
                (Does::TellsSize | Does::TellsNumber | Does::TellsRemote, _) => {
                    if let (Object::Made(number), [told]) = (given[0], &call.numbers[..])
                        && let Some(made) = self.made.get_mut(number as usize)
                    {
                        made.facts.tell(call.does, *told as u64);
                    }
                    continue;
                }
                (Does::Makes(_) | Does::Derives(_), None) => NONE,
            };
            if !lost {
                ops.push(Op { call: number, given, made });
            }
        }
        self.threads.push(ops);
        self.names.threads.push((thread, first, self.made.len() as u32 - first));
    }

    /// Adds the facts that the agent asked MPI for.
    fn told(&mut self, structure: &RankStructure) {
        for comm in &structure.comms {
            let Some(number) = self.names.words.only(comm.word) else { continue };
            let Some(made) = self.made.get_mut(number as usize) else { continue };
            match comm.rank & BETWEEN {
                0 => {
                    made.facts.tell(Does::TellsSize, comm.size);
                    made.facts.tell(Does::TellsNumber, comm.rank);
                }
                _ => {
                    made.facts.tell(Does::TellsRemote, comm.size);
                    made.facts.tell(Does::TellsSize, comm.rank & !BETWEEN);
                }
            }
        }
    }
}

impl Call {
    /// True for each given object that is a group, in order.
    fn kinds(&self) -> [bool; 2] {
        use super::calls::{Derive, Way};
        match self.does {
            Does::Makes(Way::Create | Way::CreateGroup) => [false, true],
            Does::Derives(Derive::Of | Derive::Remote) => [false, false],
            Does::Derives(_) => [true, true],
            _ => [false, false],
        }
    }

    /// True where it returned an error.
    pub fn failed(&self) -> bool {
        self.object.is_none()
    }

    /// Its first number where that is a tag.
    pub fn tag(&self) -> i64 {
        self.numbers.first().copied().unwrap_or(0)
    }

    /// True where its first number is `MPI_UNDEFINED`: the caller is in no part.
    pub fn is_left_out(&self) -> bool {
        self.numbers.first().is_some_and(|&number| is_undefined(number))
    }
}

fn object(scope: &Scope, words: &Words, word: u64) -> Object {
    if !is_predefined(word) {
        return scope.get(words, word).map_or(Object::Unknown, Object::Made);
    }
    match predefined(word) {
        Some("MPI_COMM_WORLD") => Object::World,
        Some("MPI_COMM_SELF") => Object::Itself,
        Some("MPI_GROUP_EMPTY") => Object::Empty,
        Some("MPI_COMM_NULL" | "MPI_GROUP_NULL") => Object::Null,
        _ => Object::Unknown,
    }
}
