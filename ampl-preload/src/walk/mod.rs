//! The way up the stack from a call, where call paths tell call sites apart.
//!
//! Most calls are made where one has been made before, with the same functions on the way: a few words of the stack
//! prove it (`Memo`). Others are followed frame by frame with the rules of [`frames`](crate::frames), which are looked
//! up once per return address. Deep stacks of programs that call themselves are not followed to their end each time:
//! the path beyond some frames is remembered (`Mark`), so that a call costs about as much as its new frames.
//! All reads are of the thread's own stack, above the call.

#[cfg(test)]
mod tests;
mod track;

use std::ops::Range;

use ampl_agent::Thread;
use ampl_core::mpi::Function;
use ampl_trace::record::MANY_WAYS;
use rustc_hash::FxHashMap;

use crate::entry::Origin;
use crate::frames::{self, Code, Saved, Step, Top};
use crate::stack;
use track::{Bp, Reads, Track};

/// Calls that are recognised at once, of paths and of ways.
const MEMOS: usize = 256;
const MEMOS_OF_WAYS: usize = 128;
/// Frames that tell ways to a site apart: its own, and those that called it.
const FRAMES_OF_WAYS: usize = 9;
/// Sites whose ways are told apart.
const MOST_SITES: usize = 1 << 12;
/// Frames that are remembered on deep stacks.
const MARKS: usize = 1024;
/// Frames before the first that is.
const UNMARKED: usize = 8;
/// No stack is followed farther.
const MOST_STEPS: usize = 1 << 16;
/// A program with more return addresses makes its code while it runs.
const MOST_CODES: usize = 1 << 16;

/// A call whose path is known: the path is the same if all words that it depended on are.
#[derive(Clone, Copy, Debug, Default)]
struct Memo {
    stack: u64,
    address: u64,
    bp: u64,
    /// True where `bp` matters.
    needs_bp: bool,
    words: u32,
    number: u64,
}

/// A frame on the way.
#[derive(Clone, Copy, Debug)]
struct Frame {
    /// The address that is returned to.
    address: u64,
    /// The stack pointer then; the address is just below.
    stack: u64,
    bp: Bp,
}

/// Memory of the path beyond a frame, as it was when the stack was last followed past it.
///
/// It is trusted where all frames of that path are in their places. Frames between them could differ only if the
/// program had returned beyond this one and come to the very same place by another way.
#[derive(Clone, Debug)]
struct Mark {
    address: u64,
    stack: u64,
    /// Value of rbp there, if that matters beyond.
    bp: Option<u64>,
    beyond: Track,
}

/// Finds the paths of one thread's calls.
#[derive(Debug)]
pub struct Walker {
    /// The thread's stack.
    bounds: Range<u64>,
    codes: FxHashMap<u64, Option<Code>>,
    /// Modules that had been unloaded when these were looked up.
    unloaded: u64,
    track: Track,
    reads: Reads,
    memos: Box<[Memo]>,
    /// Which of two memos the next call gets.
    turn: usize,
    /// The words of each.
    words: Box<[(u64, u64)]>,
    /// Marks by hash of the stack pointer; empty before the first deep stack.
    marks: Vec<Option<Mark>>,
    /// The path from the mark to be made.
    beyond: Track,
    /// Ways to each site in the order in which they came first, as return addresses.
    ways: FxHashMap<u64, Vec<Box<[u64]>>>,
}

/// The memo that a call has.
#[inline]
fn memo(origin: Origin) -> usize {
    let mixed = (origin.address ^ origin.stack.rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 48) as usize
}

impl Walker {
    /// For the calling thread, and paths of at most so many frames; `None` where one frame is enough.
    pub fn new(frames: usize) -> Option<Box<Self>> {
        Self::with(frames, MEMOS)
    }

    /// For the calling thread, and the [ways](Self::way) of its calls.
    pub fn of_ways() -> Option<Box<Self>> {
        Self::with(FRAMES_OF_WAYS, MEMOS_OF_WAYS)
    }

    fn with(frames: usize, memos: usize) -> Option<Box<Self>> {
        if frames < 2 {
            return None;
        }
        // One word a frame, two where it is found by rbp; some more where functions repeat, or a mark is used.
        let room = 3 * frames + 16;
        Some(Box::new(Self {
            bounds: stack::own().unwrap_or_default(),
            codes: FxHashMap::default(),
            unloaded: frames::unloaded(),
            track: Track::new(frames),
            reads: Reads { words: Vec::with_capacity(room), room, ..Reads::default() },
            memos: vec![Memo::default(); memos].into(),
            turn: 0,
            words: vec![(0, 0); memos * room].into(),
            marks: Vec::new(),
            beyond: Track::new(frames),
            ways: FxHashMap::default(),
        }))
    }

    /// Serves the calling thread from here on.
    pub fn move_to_this_thread(&mut self) {
        self.bounds = stack::own().unwrap_or_default();
        self.forget();
    }

    /// Number of the path of the call made at `origin` ([`Thread::path`]).
    #[inline]
    pub fn path(&mut self, thread: &mut Thread, origin: Origin) -> u64 {
        let memo = memo(origin);
        if let Some(number) = self.recall(memo, origin) {
            return number;
        }
        self.follow(origin);
        let number = thread.path(self.track.path.frames());
        self.remember(memo, origin, number);
        number
    }

    /// Way by which the call made at `origin` has come to its site, where it came so before; it is a number by site.
    #[inline(always)]
    pub fn known_way(&self, origin: Origin) -> Option<u8> {
        self.recall(memo(origin), origin).map(|way| way as u8)
    }

    /// As [`known_way`](Self::known_way), of any call: ways that are new to the site are numbered from 0 as they come;
    /// those beyond all numbers are [`MANY_WAYS`]. `thread` is told what is new of a call of `function`.
    pub fn way(&mut self, thread: &mut Thread, function: Function, origin: Origin) -> u8 {
        self.follow(origin);
        let own = self.track.path.frames().get(1..).unwrap_or_default();
        let is_full = self.ways.len() >= MOST_SITES && !self.ways.contains_key(&origin.address);
        let (way, is_new) = match is_full {
            true => (MANY_WAYS, false),
            false => number(self.ways.entry(origin.address).or_default(), own),
        };
        if is_new {
            // The first is the function that makes the call.
            let functions = self.track.path.functions().get(1..).unwrap_or_default();
            thread.new_way(function, origin.address, way, own, functions);
        }
        self.remember(memo(origin), origin, way.into());
        way
    }

    fn forget(&mut self) {
        self.memos.fill(Memo::default());
        self.marks.clear();
    }

    #[inline]
    fn recall(&self, at: usize, origin: Origin) -> Option<u64> {
        self.recall_at(at, origin).or_else(|| self.recall_at(at ^ 1, origin))
    }

    #[inline]
    fn recall_at(&self, at: usize, origin: Origin) -> Option<u64> {
        let at = at & (self.memos.len() - 1);
        let memo = &self.memos[at];
        let same = memo.stack == origin.stack
            && memo.address == origin.address
            && (memo.bp == origin.bp || !memo.needs_bp);
        let words = &self.words[at * self.reads.room..][..memo.words as usize];
        // SAFETY: words of the calling thread's stack above the call, as they were when the memo was made there.
        let holds = |&(place, word): &(u64, u64)| unsafe { (place as *const u64).read_volatile() } == word;
        (same && words.iter().all(holds)).then_some(memo.number)
    }

    fn remember(&mut self, at: usize, origin: Origin, number: u64) {
        let Origin { address, stack, bp } = origin;
        // Two calls that would have the same memo take turns in two.
        let at = at & (self.memos.len() - 1);
        self.turn ^= usize::from(self.memos[at].stack != 0);
        let at = at ^ self.turn;
        let &Reads { ref words, room, needs_bp, .. } = &self.reads;
        // Full: there may have been more.
        if words.len() < room {
            self.words[at * room..][..words.len()].copy_from_slice(words);
            self.memos[at] = Memo { stack, address, bp, needs_bp, words: words.len() as u32, number };
        }
    }

    /// Finds the path of the call made at `origin`.
    fn follow(&mut self, origin: Origin) {
        self.track.clear();
        self.reads.words.clear();
        self.reads.needs_bp = false;
        let Origin { address, stack, bp } = origin;
        // On another stack, of a signal handler or a coroutine, nothing may be read.
        let own = self.bounds.contains(&stack);
        self.reads.within = if own { stack..self.bounds.end } else { 0..0 };
        let mut frame = Frame { address, stack: stack.saturating_add(8), bp: Bp::Live };
        let mut mark: Option<Frame> = None;
        let mut needs_bp = false;
        for steps in 0..MOST_STEPS {
            let code = self.code(frame.address);
            let function = code.map_or(frame.address, |code| code.function);
            if steps >= UNMARKED && is_marked(frame.stack) {
                if let Some(matters) = self.passes_mark(frame, bp) {
                    needs_bp |= matters && mark.is_some_and(|mark| mark.bp == frame.bp);
                    break;
                }
                if mark.is_none() {
                    mark = Some(frame);
                    self.beyond.clear();
                }
            }
            let place = frame.stack - 8;
            self.track.push(function, frame.address, place);
            if mark.is_some() {
                self.beyond.push(function, frame.address, place);
            }
            // The path beyond a mark must be known as far as any path may need it.
            if self.track.path.is_full() && (mark.is_none() || self.beyond.path.is_full()) {
                break;
            }
            let Some(step) = code.and_then(|code| code.step) else { break };
            needs_bp |= step.needs_bp() && mark.is_some_and(|mark| mark.bp == frame.bp);
            let Some(next) = self.step(frame, step, bp) else { break };
            frame = next;
        }
        if let Some(frame) = mark {
            let bp = if needs_bp { self.reads.bp(frame.bp, bp) } else { None };
            self.make_mark(frame, bp);
        }
    }

    fn step(&mut self, frame: Frame, step: Step, live: u64) -> Option<Frame> {
        let stack = match step.top {
            Top::Sp(offset) => frame.stack.checked_add_signed(offset)?,
            Top::Bp(offset) => self.reads.bp(frame.bp, live)?.checked_add_signed(offset)?,
            Top::AtBp(offset) => {
                let bp = self.reads.bp(frame.bp, live)?;
                self.reads.read(bp.checked_add_signed(offset)?)?
            }
        };
        // Every frame lies above the last: no way is endless.
        if stack <= frame.stack {
            return None;
        }
        let bp = match step.bp {
            Saved::Same => frame.bp,
            Saved::FromTop(offset) => Bp::At(stack.checked_add_signed(offset)?),
            Saved::FromBp(offset) => Bp::At(self.reads.bp(frame.bp, live)?.checked_add_signed(offset)?),
        };
        let address = self.reads.read(stack - 8)?;
        (address != 0).then_some(Frame { address, stack, bp })
    }

    fn code(&mut self, address: u64) -> Option<Code> {
        if let Some(&code) = self.codes.get(&address) {
            return code;
        }
        self.learn(address)
    }

    #[cold]
    fn learn(&mut self, address: u64) -> Option<Code> {
        let unloaded = frames::unloaded();
        if unloaded != self.unloaded || self.codes.len() == MOST_CODES {
            // Other code may be where known code was.
            self.unloaded = unloaded;
            self.codes.clear();
            self.forget();
        }
        let code = frames::code(address);
        self.codes.insert(address, code);
        code
    }

    /// Takes over the path beyond `frame`, if that is known; returns whether rbp matters there.
    fn passes_mark(&mut self, frame: Frame, live: u64) -> Option<bool> {
        let Self { marks, track, reads, beyond, .. } = self;
        let mark = marks.get(mark_of(frame.stack))?.as_ref()?;
        let same = (mark.stack, mark.address) == (frame.stack, frame.address)
            && (mark.bp.is_none() || mark.bp == reads.bp(frame.bp, live))
            && mark.beyond.frames().all(|(_, address, place)| reads.read(place) == Some(address));
        same.then(|| {
            for (function, address, place) in mark.beyond.frames() {
                track.push(function, address, place);
                beyond.push(function, address, place);
            }
            mark.bp.is_some()
        })
    }

    fn make_mark(&mut self, frame: Frame, bp: Option<u64>) {
        if self.marks.is_empty() {
            self.marks.resize(MARKS, None);
        }
        let Frame { address, stack, .. } = frame;
        let mark = &mut self.marks[mark_of(stack)];
        match mark {
            Some(mark) => {
                (mark.address, mark.stack, mark.bp) = (address, stack, bp);
                mark.beyond.take_over(&self.beyond);
            }
            None => *mark = Some(Mark { address, stack, bp, beyond: self.beyond.clone() }),
        }
    }
}

/// Number of the way `own` among those `known`, where it is added if it is new; and whether it is.
fn number(known: &mut Vec<Box<[u64]>>, own: &[u64]) -> (u8, bool) {
    let at = known.iter().position(|way| **way == *own).unwrap_or(known.len());
    let is_new = at == known.len() && at < MANY_WAYS.into();
    if is_new {
        known.push(own.into());
    }
    (at as u8, is_new)
}

/// True where frames there are remembered: about one of 8, the same ones whatever is called from them.
fn is_marked(stack: u64) -> bool {
    mix(stack) >> 61 == 0
}

fn mark_of(stack: u64) -> usize {
    (mix(stack) >> 30) as usize % MARKS
}

fn mix(stack: u64) -> u64 {
    (stack >> 3).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
