//! Words of signatures turned so that more of them are equal on all ranks, and back.
//!
//! Ranks become distances from the caller in the communicator of the call (but `root`, which is equal on all);
//! requests, the number of signatures since they were made; statuses, the difference from what the request asked for;
//! displacements, the difference from the sum of the counts before them. Each can be undone with the words restored
//! before it. Wildcards and predefined handles stay.

use ampl_core::mpi::{FUNCTION_COUNT, Function, Kind, Param, predefined_index};
use ampl_core::value::{ANY_TAG, ObjectKind, PROC_NULL};

use super::{Comm, Signature};
use crate::args::{
    NO_ARRAY, NO_STATUS, Shape, is_input, is_output, is_several_statuses, predefined_word, shape,
};
use crate::record::{
    CALL_ERROR, CALL_MISS, CALL_NO_ARGS, CALL_OUTCOME, CALL_PLACE, CALL_UNFINISHED, PLACE_WORDS,
    REGION_ENTER, REGION_EXIT,
};
use crate::request::{SLOT_BITS, UNSEEN};
use crate::spread::{SPREAD, SPREAD_WORDS};

/// Meaning of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Role {
    /// Stays as it is.
    Plain,
    /// Length of an array or text.
    Length,
    /// Bytes.
    Text,
    /// Rank in the call's communicator.
    Rank,
    /// Rank that is the same for all.
    Root,
    /// Message tag.
    Tag,
    /// Source and tag.
    Status,
    /// A request that was made before.
    Request,
    /// A request made now.
    Made,
    /// Buffer.
    Buffer,
    /// Datatype.
    Datatype,
    /// Communicator.
    Comm,
    /// Displacement of an array element.
    Displacement,
    /// Number of something.
    Number,
    /// Any other handle.
    Handle,
}

impl Role {
    /// Number of roles.
    pub const COUNT: usize = Self::Handle as usize + 1;
}

/// Position and meaning of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Its meaning.
    pub role: Role,
    /// Index of the parameter, from 0; in the exit part from 64.
    pub param: u8,
    /// Index of the element of an array.
    pub element: u32,
}

const PLAIN: Slot = Slot { role: Role::Plain, param: 127, element: 0 };

/// Slots of all words of a signature; all plain if they do not fit the function table. Depends on lengths only, which
/// are never changed.
pub fn layout(function: u16, flags: u8, words: &[u64]) -> Vec<Slot> {
    let mut layout = Layout::new(function, flags);
    let mut before = None;
    let mut slots: Vec<Slot> = Vec::with_capacity(words.len());
    for &word in words {
        slots.push(layout.next(before));
        before = Some(word);
    }
    if !layout.is_complete(before) {
        slots.fill(PLAIN);
    }
    slots
}

/// Finds the slot of each word of a signature, from the words before it.
pub struct Layout {
    params: &'static [Param],
    /// True where the next word is an error code.
    error: bool,
    exit: bool,
    outcomes: bool,
    /// True in the exit part.
    out: bool,
    index: usize,
    /// The array whose length was the last word; whether it is text.
    length: Option<(Slot, bool, u64)>,
    /// The array that the next words belong to, how many more, and words of an element.
    array: Option<(Slot, u64, u64)>,
    /// Number of words of the caller's place in a communicator that are still to come, behind all others.
    place: u32,
    /// True where the next word is the length of a region's name.
    name: bool,
    overrun: bool,
}

impl Layout {
    /// Layout of a signature of `function` with `flags`.
    pub fn new(function: u16, flags: u8) -> Self {
        let known = usize::from(function) < FUNCTION_COUNT && flags & CALL_NO_ARGS == 0;
        let returned = flags & (CALL_ERROR | CALL_UNFINISHED) == 0;
        Self {
            params: if known { Function(function).spec().params } else { &[] },
            error: known && flags & CALL_ERROR != 0,
            exit: flags & CALL_MISS == 0 && (flags & CALL_OUTCOME != 0 || returned),
            outcomes: flags & CALL_OUTCOME != 0,
            out: false,
            index: 0,
            length: None,
            array: None,
            place: if known && flags & CALL_PLACE != 0 { PLACE_WORDS as u32 } else { 0 },
            name: matches!(function, REGION_ENTER | REGION_EXIT),
            overrun: false,
        }
    }

    /// The next parameter recorded, and whether in the exit part.
    fn param(&mut self) -> Option<(usize, bool)> {
        loop {
            let Some(param) = self.params.get(self.index) else {
                if self.out || !self.exit {
                    return None;
                }
                (self.out, self.index) = (true, 0);
                continue;
            };
            self.index += 1;
            if if self.out { is_output(param) } else { is_input(param) } {
                return Some((self.index - 1, self.out));
            }
        }
    }

    fn enter(&mut self, before: Option<u64>) {
        let (Some((slot, text, each)), Some(length)) = (self.length.take(), before) else { return };
        if length == SPREAD && !text {
            self.array = Some((Slot { role: Role::Plain, ..slot }, SPREAD_WORDS as u64, 1));
        } else if length != NO_ARRAY {
            let words = if text { length.div_ceil(8) } else { length.saturating_mul(each) };
            self.array = Some((slot, words, each));
        }
    }

    /// Slot of the next word, behind the word `before`.
    pub fn next(&mut self, before: Option<u64>) -> Slot {
        self.enter(before);
        if std::mem::take(&mut self.error) {
            return Slot { param: 126, ..PLAIN };
        }
        if let Some((slot, left, each)) = &mut self.array
            && *left > 0
        {
            *left -= 1;
            let (now, second) = (*slot, *each == 2 && left.is_multiple_of(2));
            if *each == 1 || second {
                slot.element = slot.element.wrapping_add(1);
            }
            return if second { Slot { role: Role::Plain, ..now } } else { now };
        }
        let Some((index, out)) = self.param() else {
            if std::mem::take(&mut self.name) {
                self.length = Some((Slot { role: Role::Text, param: 120, element: 0 }, true, 1));
                return Slot { role: Role::Length, param: 120, element: 0 };
            }
            let Some(left) = self.place.checked_sub(1) else {
                self.overrun = true;
                return PLAIN;
            };
            self.place = left;
            return Slot { param: 123 + left as u8, ..PLAIN };
        };
        let param = &self.params[index];
        let slot = Slot {
            role: role(param.kind, param.name, out),
            param: index.min(60) as u8 + if out { 64 } else { 0 },
            element: 0,
        };
        match shape(param) {
            Shape::Scalar => slot,
            shape => {
                let text = shape == Shape::Text;
                let each = if self.outcomes && is_several_statuses(param) { 2 } else { 1 };
                let slot = if text { Slot { role: Role::Text, ..slot } } else { slot };
                self.length = Some((slot, text, each));
                Slot { role: Role::Length, ..slot }
            }
        }
    }

    /// True where the words so far make a whole signature, of which `last` is the last.
    fn is_complete(&mut self, last: Option<u64>) -> bool {
        self.enter(last);
        let in_array = self.array.is_some_and(|(_, left, _)| left > 0);
        !self.overrun && !in_array && !self.error && self.param().is_none() && self.place == 0
    }
}

fn role(kind: Kind, name: &str, out: bool) -> Role {
    match kind {
        Kind::Rank if name == "root" => Role::Root,
        Kind::Rank => Role::Rank,
        Kind::Tag => Role::Tag,
        Kind::Status => Role::Status,
        Kind::Request if out => Role::Made,
        Kind::Request => Role::Request,
        Kind::Buffer => Role::Buffer,
        Kind::Datatype => Role::Datatype,
        Kind::Comm => Role::Comm,
        Kind::Int | Kind::Aint | Kind::Count if matches!(name, "displs" | "sdispls" | "rdispls") => {
            Role::Displacement
        }
        Kind::Int | Kind::Count => Role::Number,
        _ if ObjectKind::of(kind).is_some() => Role::Handle,
        _ => Role::Plain,
    }
}

/// Request of a call, which later signatures refer to.
#[derive(Clone, Copy)]
struct RequestArgs {
    comm: Option<u64>,
    source: Option<i64>,
    tag: Option<i64>,
}

/// Turns the signatures of one thread of a rank, in order, or turns them back.
pub struct RelativeArgs<'a> {
    comms: &'a [Comm],
    world: u64,
    asked: Vec<RequestArgs>,
    back: bool,
}

impl<'a> RelativeArgs<'a> {
    /// Arguments of a rank with those communicators; `back` restores them.
    pub fn new(comms: &'a [Comm], back: bool) -> Self {
        let world = predefined_index(ObjectKind::Comm, "MPI_COMM_WORLD").expect("MPI has a world");
        Self { comms, world: predefined_word(world), asked: Vec::new(), back }
    }

    /// Turns the next signature.
    pub fn turn(&mut self, signature: &mut Signature) {
        let Signature { function, flags, words, .. } = signature;
        let slots = layout(*function, *flags, words);
        let comm = slots.iter().position(|slot| slot.role == Role::Comm && slot.param < 64);
        let comm = comm.map(|index| words[index]);
        let mut requests = Vec::new();
        for index in 0..words.len() {
            match slots[index].role {
                Role::Request => {
                    let turned = self.request(words[index]);
                    requests.push(if self.back { turned } else { words[index] });
                    words[index] = turned;
                }
                Role::Rank => words[index] = self.relative(comm, words[index]),
                Role::Buffer => words[index] = buffer(words[index], self.back),
                _ => {}
            }
        }
        self.displacements(&slots, words);
        if slots.iter().any(|slot| slot.role == Role::Status) {
            let indices = indices(*function, &slots);
            let own = self.own_receive(*function, &slots, words);
            for index in 0..words.len() {
                if slots[index].role != Role::Status {
                    continue;
                }
                let element = slots[index].element as usize;
                let which = match indices.map(|first| words.get(first + element)) {
                    Some(told) => told.map_or(usize::MAX, |&told| told as usize),
                    None => element,
                };
                let asked = requests.get(which).and_then(|&request| self.made_by(request));
                words[index] = self.status(asked.or(own), words[index]);
            }
        }
        let asked = self.ask(*function, &slots, words, comm);
        self.asked.push(asked);
    }

    /// Request of a call; words are turned, or restored on the way back.
    fn ask(&self, function: u16, slots: &[Slot], words: &[u64], comm: Option<u64>) -> RequestArgs {
        let mut asked = RequestArgs { comm, source: None, tag: None };
        if usize::from(function) >= FUNCTION_COUNT {
            return asked;
        }
        let params = Function(function).spec().params;
        for (slot, &word) in slots.iter().zip(words) {
            match params.get(usize::from(slot.param)).map(|param| param.name) {
                Some("source") if slot.role == Role::Rank => {
                    let source = if self.back { word } else { self.turned_back(comm, word) };
                    asked.source = Some(source as i64);
                }
                Some("tag" | "recvtag") => asked.tag = Some(word as i64),
                _ => {}
            }
        }
        asked
    }

    /// Request of a blocking receive.
    fn own_receive(&self, function: u16, slots: &[Slot], words: &[u64]) -> Option<RequestArgs> {
        let comm = slots.iter().position(|slot| slot.role == Role::Comm && slot.param < 64);
        let asked = self.ask(function, slots, words, comm.map(|index| words[index]));
        asked.source.is_some().then_some(asked)
    }

    fn made_by(&self, request: u64) -> Option<RequestArgs> {
        let terminal = (request >> SLOT_BITS).checked_sub(1)?;
        self.asked.get(usize::try_from(terminal).ok()?).copied()
    }

    /// A request's number, `terminal + 1 << SLOT_BITS | slot`, as the number of signatures since, or back.
    fn request(&self, word: u64) -> u64 {
        const TERMINAL: u64 = (1 << (UNSEEN.trailing_zeros() - SLOT_BITS)) - 1;
        if word >= UNSEEN {
            return word;
        }
        let now = self.asked.len() as u64 + 1;
        if self.back {
            let (high, ago, low) = (word >> 46, word >> 4 & TERMINAL, word & 15);
            (now.wrapping_sub(ago) & TERMINAL) << SLOT_BITS | high << 4 | low
        } else {
            let (high, ago, low) =
                (word >> 4 & 0xffff, now.wrapping_sub(word >> SLOT_BITS) & TERMINAL, word & 15);
            high << 46 | ago << 4 | low
        }
    }

    fn comm(&self, comm: Option<u64>) -> (u64, u64) {
        let known = |word| self.comms.iter().find(|known| known.word == word);
        let comm = comm.map_or_else(|| known(self.world), known);
        comm.map_or((0, 0), |comm| {
            let sensible = comm.rank < comm.size && comm.size <= i32::MAX as u64;
            if sensible { (comm.rank, comm.size) } else { (0, 0) }
        })
    }

    fn relative(&self, comm: Option<u64>, word: u64) -> u64 {
        if self.back { self.turned_back(comm, word) } else { self.turned(comm, word) }
    }

    fn turned(&self, comm: Option<u64>, word: u64) -> u64 {
        let (own, size) = self.comm(comm);
        match word {
            _ if word >= size => word,
            _ if word >= own => word - own,
            _ => size - own + word,
        }
    }

    fn turned_back(&self, comm: Option<u64>, word: u64) -> u64 {
        let (own, size) = self.comm(comm);
        match word {
            _ if word >= size => word,
            _ if word < size - own => word + own,
            _ => word - (size - own),
        }
    }

    fn displacements(&self, slots: &[Slot], words: &mut [u64]) {
        for from in 0..slots.len() {
            let Slot { param, element: 0, role: Role::Displacement } = slots[from] else { continue };
            let counts = slots.iter().position(|slot| (slot.role, slot.param + 1) == (Role::Number, param));
            let Some(counts) = counts.filter(|&counts| counts > 0 && slots[counts - 1].role == Role::Length)
            else {
                continue;
            };
            let mut before = 0u64;
            let array = slots[from..].iter().take_while(|slot| slot.param == param).count();
            for element in 0..array {
                let word = &mut words[from + element];
                *word = if self.back { word.wrapping_add(before) } else { word.wrapping_sub(before) };
                match slots.get(counts + element) {
                    Some(slot) if slot.param + 1 == param => {
                        before = before.wrapping_add(words[counts + element])
                    }
                    _ => {}
                }
            }
        }
    }

    fn status(&self, asked: Option<RequestArgs>, word: u64) -> u64 {
        // `NO_STATUS` stays apart from statuses: it trades places with the word that it would become.
        const NONE: u64 = 0xffff;
        let none = |word| self.tell(asked, word);
        if self.back {
            match word {
                NONE => NO_STATUS,
                _ => match self.tell_back(asked, word) {
                    NO_STATUS => self.tell_back(asked, NONE),
                    status => status,
                },
            }
        } else {
            match word {
                NO_STATUS => NONE,
                _ => match none(word) {
                    NONE => none(NO_STATUS),
                    told => told,
                },
            }
        }
    }

    /// Expected source and tag, which are subtracted.
    fn expected(asked: Option<RequestArgs>) -> (i32, i32) {
        let Some(RequestArgs { source: Some(source), tag, .. }) = asked else { return (0, 0) };
        if source == PROC_NULL {
            return (PROC_NULL as i32, ANY_TAG as i32);
        }
        let known = |value: Option<i64>| value.filter(|&value| value >= 0).map_or(0, |value| value as i32);
        (known(Some(source)), known(tag))
    }

    /// Communicator whose ranks the source is relative to, where any source would do.
    fn any_source(asked: Option<RequestArgs>) -> Option<Option<u64>> {
        match asked {
            Some(RequestArgs { source: Some(source), comm, .. }) => {
                (source < 0 && source != PROC_NULL).then_some(comm)
            }
            _ => None,
        }
    }

    fn tell(&self, asked: Option<RequestArgs>, word: u64) -> u64 {
        let (mut source, tag) = ((word >> 32) as u32 as i32, word as u32 as i32);
        if let Some(comm) = Self::any_source(asked) {
            source = self.narrow(source, |word| self.turned(comm, word));
        }
        let (expected, expected_tag) = Self::expected(asked);
        let zigzag = |value: i32| u64::from(((value << 1) ^ (value >> 31)) as u32);
        let (source, tag) = (zigzag(source.wrapping_sub(expected)), zigzag(tag.wrapping_sub(expected_tag)));
        source & 255 | (tag & 255) << 8 | (source >> 8) << 16 | (tag >> 8) << 40
    }

    fn tell_back(&self, asked: Option<RequestArgs>, word: u64) -> u64 {
        let source = word & 255 | (word >> 16 & 0xff_ffff) << 8;
        let tag = word >> 8 & 255 | (word >> 40) << 8;
        let unzigzag = |value: u64| (value as u32 >> 1) as i32 ^ -((value & 1) as i32);
        let (expected, expected_tag) = Self::expected(asked);
        let mut source = unzigzag(source).wrapping_add(expected);
        let tag = unzigzag(tag).wrapping_add(expected_tag);
        if let Some(comm) = Self::any_source(asked) {
            source = self.narrow(source, |word| self.turned_back(comm, word));
        }
        u64::from(source as u32) << 32 | u64::from(tag as u32)
    }

    /// `turn` of a rank that fits 31 bits; communicators are not larger.
    fn narrow(&self, value: i32, turn: impl Fn(u64) -> u64) -> i32 {
        u64::try_from(value).ok().and_then(|word| turn(word).try_into().ok()).unwrap_or(value)
    }
}

/// Index of the first word that selects the requests of the statuses, if the call has any.
fn indices(function: u16, slots: &[Slot]) -> Option<usize> {
    let params = if usize::from(function) < FUNCTION_COUNT { Function(function).spec().params } else { &[] };
    let told = |slot: &Slot| {
        let name = slot.param.checked_sub(64).and_then(|index| params.get(usize::from(index)));
        slot.role == Role::Plain
            && name.is_some_and(|param| matches!(param.name, "index" | "array_of_indices"))
    };
    slots.iter().position(told)
}

/// A buffer's class to the low end, so that numbers stay small; of a static one the module before the offset.
fn buffer(word: u64, back: bool) -> u64 {
    const STATIC: u64 = 3;
    if back {
        if word & 15 != STATIC {
            return word.rotate_right(4);
        }
        let (low, offset, high) = (word >> 4 & 15, word >> 8 & ((1 << 40) - 1), word >> 48);
        return STATIC << 60 | (high << 4 | low) << 40 | offset;
    }
    if word >> 60 != STATIC {
        return word.rotate_left(4);
    }
    let (module, offset) = (word >> 40 & 0xf_ffff, word & ((1 << 40) - 1));
    STATIC | (module & 15) << 4 | offset << 8 | (module >> 4) << 48
}
