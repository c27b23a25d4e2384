//! Buffers as bytes: integers of variable length, places as differences, moves to new sets as such.

use super::{Buffers, Move, ThreadBuffers, Varying};
use crate::grammar::Grammar;
use crate::varint::{Reader, put, put_signed};

/// Bits of a place that tell its kind: lowest in what is stored, so that places of one kind are near each other.
const KIND_BITS: u32 = 4;

/// Place at each position of the latest set that had one there: the next is near it, for numbered places are new mostly.
#[derive(Debug, Default)]
struct Last(Vec<u64>);

impl Last {
    /// The place at `index`, which is at most one behind the last; where there is none the one before it, 0 at first.
    fn at(&mut self, index: usize) -> u64 {
        if index == self.0.len() {
            self.0.push(self.0.last().copied().unwrap_or(0));
        }
        self.0[index]
    }
}

impl Buffers {
    /// Bytes that [`Buffers::read`] reads; none where nothing has moved.
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if self.is_empty() {
            return out;
        }
        put(&mut out, self.threads.len() as u64);
        self.threads.iter().for_each(|thread| thread.write(&mut out));
        out
    }

    /// The buffers in `bytes`; `None` if they are none.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() {
            return Some(Self::default());
        }
        let reader = &mut Reader::new(bytes);
        let mut threads = Vec::new();
        for _ in 0..reader.get()? {
            threads.push(ThreadBuffers::read(reader)?);
        }
        reader.is_empty().then_some(Self { threads })
    }
}

impl ThreadBuffers {
    fn write(&self, out: &mut Vec<u8>) {
        put(out, self.thread.into());
        put(out, self.signatures.len() as u64);
        let (mut position, mut last) = (0u64, Last::default());
        for varying in &self.signatures {
            put(out, varying.first_move.wrapping_sub(position));
            position = varying.first_move;
            put(out, varying.sets.len() as u64);
            for set in &varying.sets {
                put(out, set.len() as u64);
                for (index, word) in set.iter().enumerate() {
                    let turned = word.rotate_left(KIND_BITS);
                    put_signed(out, turned.wrapping_sub(last.at(index)) as i64);
                    last.0[index] = turned;
                }
            }
        }
        put(out, self.moves.len() as u64);
        let (mut most, mut before) = (vec![0; self.signatures.len()], 0);
        for kind in &self.moves {
            put_signed(out, i64::from(kind.signature) - i64::from(before));
            put(out, kind.since);
            before = kind.signature;
            if let Some(most) = most.get_mut(kind.signature as usize) {
                // Most of them lead to a new set.
                let next = *most + 1;
                put(out, u64::from(next).wrapping_sub(kind.to.into()));
                *most = kind.to.max(*most);
            }
        }
        self.sequence.write(out);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let thread = u32::try_from(reader.get()?).ok()?;
        let (mut signatures, mut position, mut last) = (Vec::new(), 0u64, Last::default());
        for _ in 0..reader.get()? {
            position = position.wrapping_add(reader.get()?);
            let mut varying = Varying { first_move: position, sets: Vec::new() };
            for _ in 0..reader.get()? {
                let mut set = Vec::new();
                for index in 0..reader.get()? as usize {
                    let word = last.at(index).wrapping_add(reader.get_signed()? as u64);
                    last.0[index] = word;
                    set.push(word.rotate_right(KIND_BITS));
                }
                varying.sets.push(set);
            }
            signatures.push(varying);
        }
        let mut moves = Vec::new();
        let (mut most, mut before) = (vec![0u32; signatures.len()], 0i64);
        for _ in 0..reader.get()? {
            before = before.checked_add(reader.get_signed()?)?;
            let (signature, since) = (u32::try_from(before).ok()?, reader.get()?);
            let (of, most) = (signatures.get(signature as usize)?, most.get_mut(signature as usize)?);
            let to = u64::from(*most + 1).checked_sub(reader.get()?)? as u32;
            if to as usize > of.sets.len() {
                return None;
            }
            *most = to.max(*most);
            moves.push(Move { signature, since, to });
        }
        Some(Self { thread, signatures, moves, sequence: Grammar::read(reader)? })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rustc_hash::FxHashMap;

    use super::super::{Cursor, Followers, Turn};
    use super::*;
    use crate::grammar::Builder;
    use crate::places::{other, stack};

    /// The set of each call, by its signature: the first is that of the signature.
    type Drawn = Vec<(u32, u8)>;

    fn words(set: u8) -> Vec<u64> {
        vec![other(None, set.into()), stack(1 << 40, (1 << 40) - u64::from(set) * 16)]
    }

    /// Moves of a thread that made these calls, as an agent finds them.
    pub(super) fn thread(calls: &[(u32, u8)]) -> ThreadBuffers {
        let mut own = ThreadBuffers { thread: 3, ..ThreadBuffers::default() };
        let (mut followers, mut builder) = (Followers::default(), Builder::new());
        let mut turns: FxHashMap<u32, (Turn, Option<u32>)> = FxHashMap::default();
        let mut numbers: FxHashMap<(u32, u8), u32> = FxHashMap::default();
        let mut places: FxHashMap<u32, Vec<u8>> = FxHashMap::default();
        for (position, &(signature, set)) in (0..).zip(calls) {
            let number = *numbers.entry((signature, set)).or_insert_with(|| followers.add());
            let own_places = places.entry(signature).or_default();
            let to = own_places.iter().position(|&known| known == set).unwrap_or_else(|| {
                own_places.push(set);
                own_places.len() - 1
            });
            let (turn, index) = turns.entry(signature).or_insert((Turn::new(number), None));
            if turn.expected == number {
                turn.pass(&followers);
                continue;
            }
            let since = if index.is_some() { turn.since } else { 0 };
            let index = *index.get_or_insert_with(|| {
                own.signatures.push(Varying { first_move: position, sets: Vec::new() });
                own.signatures.len() as u32 - 1
            });
            let stored = &mut own.signatures[index as usize].sets;
            if to > stored.len() {
                stored.push(words(set));
            }
            let kind = Move { signature: index, since, to: to as u32 };
            let known = own.moves.iter().position(|known| *known == kind).unwrap_or_else(|| {
                own.moves.push(kind);
                own.moves.len() - 1
            });
            builder.push(known as u32, 1);
            turn.take(&mut followers, number);
        }
        own.sequence = builder.into_grammar();
        own
    }

    fn drawn() -> impl Strategy<Value = Drawn> {
        let some = prop::collection::vec((0..4u32, 0..5u8), 0..60);
        (some, 1..4usize).prop_map(|(some, times)| some.repeat(times))
    }

    proptest! {
        #[test]
        fn each_call_has_its_own_places(calls in drawn()) {
            let own = thread(&calls);
            let mut cursor = Cursor::new(&own);
            let mut first = FxHashMap::default();
            for (position, &(signature, set)) in (0..).zip(&calls) {
                let own = *first.entry(signature).or_insert(set);
                let found = cursor.call(position, signature);
                prop_assert_eq!(found.map_or(words(own), <[u64]>::to_vec), words(set));
            }
        }

        #[test]
        fn buffers_come_back(calls in prop::collection::vec(drawn(), 0..3)) {
            let threads = calls.iter().map(|calls| thread(calls)).collect();
            let buffers = Buffers { threads };
            prop_assert_eq!(Buffers::read(&buffers.write()), Some(buffers));
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>, calls: Drawn) {
            if let Some(buffers) = Buffers::read(&bytes) {
                for thread in &buffers.threads {
                    let mut cursor = Cursor::new(thread);
                    for (position, &(signature, _)) in (0..).zip(&calls) {
                        let _ = cursor.call(position, signature);
                    }
                }
            }
        }
    }

    #[test]
    fn buffers_in_turns_take_as_little_for_many_calls_as_for_few() {
        let turns = |rounds: usize| {
            let calls = (0..rounds).flat_map(|round| {
                [(0, (round % 7) as u8), (1, (round % 2) as u8), (2, 0), (0, (round % 3) as u8)]
            });
            Buffers { threads: vec![thread(&calls.collect::<Vec<_>>())] }.write().len()
        };
        assert!(turns(50_000) < turns(5_000) + 8);
        assert!(Buffers::default().write().is_empty());
    }
}
