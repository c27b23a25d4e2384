//! Stored times with their terminals: for readers that want neither arguments nor calls without times.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::record::{CALL_MISS, GAP};
use crate::structure::{RankStructure, Signature, ThreadStructure};
use crate::timing::{Decoder, Malformed, Terminal, Time, Window};

/// Names of a thread's terminals in its times: those of one signature have one.
#[derive(Clone, Debug, Default)]
pub struct Numbers(Vec<u32>);

impl Numbers {
    /// Names of the terminals with these signatures.
    pub fn of(signatures: &[Signature]) -> Self {
        let mut first = FxHashMap::default();
        Self((0..).zip(signatures).map(|(terminal, own)| *first.entry(own).or_insert(terminal)).collect())
    }

    /// The name of the terminal `number`.
    pub fn name(&self, number: u32) -> u32 {
        self.0.get(number as usize).copied().unwrap_or(number)
    }

    /// The terminal `number`, which has that signature, as times name it.
    pub fn terminal(&self, number: u32, signature: &Signature) -> Terminal {
        let number = self.name(number);
        Terminal { number, like: signature.function, folds: signature.flags & CALL_MISS != 0 }
    }
}

/// Position in a thread's sequence.
#[derive(Debug)]
pub(crate) struct Position<'a> {
    pub(crate) thread: &'a ThreadStructure,
    numbers: Rc<Numbers>,
    runs: crate::grammar::Runs<'a>,
    run: (u32, u64),
    /// Number of the call at the position.
    pub(crate) seq: u64,
}

impl<'a> Position<'a> {
    pub(crate) fn new(thread: &'a ThreadStructure, numbers: Rc<Numbers>) -> Self {
        Self { thread, numbers, runs: thread.grammar.runs(), run: (0, 0), seq: 0 }
    }

    /// Goes to the beginning of the sequence.
    pub(crate) fn rewind(&mut self) {
        (self.runs, self.run, self.seq) = (self.thread.grammar.runs(), (0, 0), 0);
    }

    /// Goes to the call with that number, or behind it where a gap has it; returns its terminal.
    #[inline]
    pub(crate) fn seek(&mut self, seq: u64) -> Option<Terminal> {
        loop {
            let number = self.run.0;
            let skipped = seq.saturating_sub(self.seq).min(self.run.1);
            self.run.1 -= skipped;
            self.seq += skipped;
            if self.run.1 == 0 {
                if let Some(far @ FAR..) = seq.checked_sub(self.seq) {
                    self.seq += self.runs.pass_over(far);
                }
                self.run = self.runs.next()?;
                continue;
            }
            let signature = self.thread.signatures.get(number as usize)?;
            if signature.function == GAP {
                self.seq += self.run.1;
                self.run.1 = 0;
                continue;
            }
            return Some(self.numbers.terminal(number, signature));
        }
    }
}

/// Calls that are passed one by one rather than rule by rule.
const FAR: u64 = 64;

/// Passes all times that `decoder` reads, of the rank with this structure, to `each`, in the order in which they are
/// stored.
///
/// # Errors
/// Where the times are not those of these calls.
pub fn for_each(
    structure: &RankStructure,
    decoder: &mut Decoder<'_>,
    mut each: impl FnMut(Window, Terminal, Time),
) -> Result<(), Malformed> {
    for_each_at(structure, decoder, |window, terminal, _, time| each(window, terminal, time))
}

/// As [`for_each`], with the number of each call, or of the first of folded polls, in its thread's sequence.
///
/// # Errors
/// As [`for_each`].
pub fn for_each_at(
    structure: &RankStructure,
    decoder: &mut Decoder<'_>,
    mut each: impl FnMut(Window, Terminal, u64, Time),
) -> Result<(), Malformed> {
    let mut position: Option<Position<'_>> = None;
    let mut numbers: FxHashMap<u32, Rc<Numbers>> = FxHashMap::default();
    while let Some((window, entries)) = decoder.window() {
        if position.as_ref().is_none_or(|at| at.thread.thread != window.thread || at.seq > window.first_seq) {
            let thread = structure.threads.iter().find(|thread| thread.thread == window.thread);
            let thread = thread.ok_or(Malformed)?;
            let own =
                numbers.entry(thread.thread).or_insert_with(|| Rc::new(Numbers::of(&thread.signatures)));
            position = Some(Position::new(thread, own.clone()));
        }
        let Some(at) = &mut position else { return Err(Malformed) };
        let mut seq = window.first_seq;
        for _ in 0..entries {
            let terminal = at.seek(seq).ok_or(Malformed)?;
            let time = decoder.call(terminal)?;
            let number = at.seq;
            seq = number.saturating_add(time.count.max(1));
            each(window, terminal, number, time);
        }
    }
    Ok(())
}
