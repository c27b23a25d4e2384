//! Buffers of a thread's calls in its journal.

use ampl_core::mpi::FUNCTIONS;

use super::sequence;
use crate::args::with_places;
use crate::buffers::{Move, ThreadBuffers, Varying};
use crate::grammar::Grammar;
use crate::journal::{Block, BlockKind};
use crate::places::LEFT_OUT;
use crate::record::{CALL_ERROR, MOVE_FIRST, Record};
use crate::structure::Signature;

/// Records about a thread's buffers.
#[derive(Debug, Default)]
pub struct Records {
    signatures: Vec<Varying>,
    /// Index there by terminal; none before its first move.
    of_terminals: Vec<Option<u32>>,
    /// Places of each set.
    sets: Vec<Vec<u64>>,
    /// Index of each in its signature, once a move leads there.
    indices: Vec<Option<u32>>,
    moves: Vec<Move>,
}

impl Records {
    /// Takes a set of buffers of a terminal's calls; `None` if it is too short.
    pub fn set(&mut self, record: Record<'_>) -> Option<()> {
        let body = record.words();
        let (_, places) = body.split_first()?;
        self.sets.push(places.to_vec());
        self.indices.push(None);
        Some(())
    }

    /// Takes a kind of moves; `None` if it is too short, or names what is not there.
    pub fn kind(&mut self, record: Record<'_>) -> Option<()> {
        let &[terminal, since, to] = record.words().first_chunk()?;
        let terminal = usize::try_from(terminal).ok().filter(|&terminal| terminal < 1 << 27)?;
        if self.of_terminals.len() <= terminal {
            self.of_terminals.resize(terminal + 1, None);
        }
        let is_first = record.flags & MOVE_FIRST != 0;
        let next = self.signatures.len() as u32;
        let signature = match self.of_terminals[terminal] {
            Some(known) if !is_first => known,
            None if is_first => {
                self.signatures.push(Varying { first_move: since, sets: Vec::new() });
                self.of_terminals[terminal] = Some(next);
                next
            }
            _ => return None,
        };
        let to = match usize::try_from(to).ok()?.checked_sub(1) {
            None => 0,
            Some(number) => {
                let (places, index) = (self.sets.get_mut(number)?, self.indices.get_mut(number)?);
                let own = &mut self.signatures[signature as usize].sets;
                *index.get_or_insert_with(|| {
                    own.push(std::mem::take(places));
                    own.len() as u32
                })
            }
        };
        self.moves.push(Move { signature, since: if is_first { 0 } else { since }, to });
        Some(())
    }
}

impl Records {
    /// Leaves out all moves: the places of calls whose signatures have several sets are unknown then.
    pub fn forget(&mut self, signatures: &mut [Signature]) {
        let moved = self.of_terminals.iter().zip(signatures).filter(|(moved, _)| moved.is_some());
        for (_, signature) in moved {
            let Some(spec) = FUNCTIONS.get(usize::from(signature.function)) else { continue };
            let code = usize::from(signature.flags & CALL_ERROR != 0).min(signature.words.len());
            if let Some(words) = with_places(spec, signature.flags, &signature.words[code..], LEFT_OUT) {
                signature.words.truncate(code);
                signature.words.extend(words);
            }
        }
        *self = Self::default();
    }
}

/// The moves of a thread with these `records`, and the damage found. In a `cut` journal the last ones may be missing.
pub fn read(
    records: Records,
    thread: u32,
    blocks: &[Block<'_>],
    cut: bool,
) -> (ThreadBuffers, Option<&'static str>) {
    let Records { signatures, moves, .. } = records;
    if moves.is_empty() {
        return (ThreadBuffers { thread, ..ThreadBuffers::default() }, None);
    }
    let kinds = [BlockKind::MoveSnapshot, BlockKind::MoveLog];
    let (sequence, wrong): (Grammar, _) = sequence::grammar(blocks, kinds, moves.len(), cut);
    (ThreadBuffers { thread, signatures, moves, sequence }, wrong)
}
