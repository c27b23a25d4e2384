//! Stored times with their terminals: for readers that want neither arguments nor calls without times.

use crate::record::{CALL_MISS, GAP};
use crate::structure::{RankStructure, ThreadStructure};
use crate::timing::{Decoder, Malformed, Terminal, Time, Window};

/// Position in a thread's sequence.
struct Position<'a> {
    thread: &'a ThreadStructure,
    runs: crate::grammar::Runs<'a>,
    run: (u32, u64),
    seq: u64,
}

impl<'a> Position<'a> {
    fn new(thread: &'a ThreadStructure) -> Self {
        Self { thread, runs: thread.grammar.runs(), run: (0, 0), seq: 0 }
    }

    /// Goes to the call with that number, or behind it where a gap has it; returns its terminal.
    fn seek(&mut self, seq: u64) -> Option<Terminal> {
        loop {
            let number = self.run.0;
            let skipped = seq.saturating_sub(self.seq).min(self.run.1);
            self.run.1 -= skipped;
            self.seq += skipped;
            if self.run.1 == 0 {
                self.run = self.runs.next()?;
                continue;
            }
            let signature = self.thread.signatures.get(number as usize)?;
            if signature.function == GAP {
                self.seq += self.run.1;
                self.run.1 = 0;
                continue;
            }
            let folds = signature.flags & CALL_MISS != 0;
            return Some(Terminal { number, like: signature.function, folds });
        }
    }
}

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
    while let Some((window, entries)) = decoder.window() {
        if position.as_ref().is_none_or(|at| at.thread.thread != window.thread || at.seq > window.first_seq) {
            let thread = structure.threads.iter().find(|thread| thread.thread == window.thread);
            position = Some(Position::new(thread.ok_or(Malformed)?));
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
