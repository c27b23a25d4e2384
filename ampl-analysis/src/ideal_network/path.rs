//! Chains of computing that depend on each other, as sums by rank and site.
//!
//! A chain is a list of pieces that other chains share. Pieces that no other chain needs any more are joined, so that
//! memory depends on what is under way, not on how long the run was.

use std::cell::RefCell;
use std::rc::Rc;

use rustc_hash::FxHashMap;

/// Time by rank and site.
pub type Profile = FxHashMap<(u32, u32), u64>;

/// Pieces behind which a chain is searched for ones that can be joined.
const LONG: u32 = 256;

#[derive(Debug, Default)]
struct Piece {
    profile: Profile,
    before: Option<Rc<RefCell<Piece>>>,
    /// Pieces before it, about.
    depth: u32,
}

/// The longest chain up to a call.
#[derive(Clone, Debug, Default)]
pub struct Path {
    time: u64,
    before: Option<Rc<RefCell<Piece>>>,
    own: Profile,
}

fn add(into: &mut Profile, from: Profile) {
    from.into_iter().for_each(|(key, ns)| *into.entry(key).or_default() += ns);
}

impl Path {
    /// Length, nanoseconds.
    pub fn time(&self) -> u64 {
        self.time
    }

    /// Adds computing.
    pub fn compute(&mut self, of: (u32, u32), ns: u64) {
        if ns > 0 {
            self.time += ns;
            *self.own.entry(of).or_default() += ns;
        }
    }

    /// The chain as others may depend on it.
    pub fn stamp(&mut self) -> Self {
        if !self.own.is_empty() {
            let own = std::mem::take(&mut self.own);
            match &self.before {
                // No other chain has it.
                Some(piece) if Rc::strong_count(piece) == 1 => add(&mut piece.borrow_mut().profile, own),
                _ => {
                    let before = self.before.take();
                    let depth = before.as_ref().map_or(0, |piece| piece.borrow().depth + 1);
                    self.before = Some(Rc::new(RefCell::new(Piece { profile: own, before, depth })));
                    if depth > 0 && depth.is_multiple_of(LONG) {
                        self.join_pieces();
                    }
                }
            }
        }
        Self { time: self.time, before: self.before.clone(), own: Profile::default() }
    }

    /// Goes on from another chain, where that is longer.
    pub fn join(&mut self, other: &Self) {
        if other.time > self.time {
            *self = other.clone();
        }
    }

    /// Joins pieces that only the next one needs.
    fn join_pieces(&mut self) {
        let mut at = self.before.clone();
        let (mut left, mut all) = (0, Vec::new());
        while let Some(piece) = at {
            let mut own = piece.borrow_mut();
            while let Some(before) = own.before.take_if(|before| Rc::strong_count(before) == 1) {
                let Ok(before) = Rc::try_unwrap(before) else { break };
                let mut before = before.into_inner();
                add(&mut own.profile, std::mem::take(&mut before.profile));
                own.before = before.before.take();
            }
            left += 1;
            let next = own.before.clone();
            drop(own);
            all.push(piece);
            at = next;
        }
        for piece in all {
            left -= 1;
            piece.borrow_mut().depth = left;
        }
    }

    /// Time by rank and site.
    pub fn profile(&self) -> Profile {
        let mut sum = self.own.clone();
        let mut at = self.before.clone();
        while let Some(piece) = at {
            let own = piece.borrow();
            add(&mut sum, own.profile.clone());
            let next = own.before.clone();
            drop(own);
            at = next;
        }
        sum
    }
}

impl Drop for Piece {
    /// Frees a long chain without recursion.
    fn drop(&mut self) {
        let mut before = self.before.take();
        while let Some(piece) = before {
            match Rc::try_unwrap(piece) {
                Ok(piece) => {
                    let mut own = piece.into_inner();
                    before = own.before.take();
                }
                Err(_) => break,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_the_sum_of_its_pieces_however_long() {
        let (mut one, mut other) = (Path::default(), Path::default());
        let mut stamps = std::collections::VecDeque::new();
        for step in 0..100_000u64 {
            one.compute((0, (step % 3) as u32), 10);
            stamps.push_back(one.stamp());
            if stamps.len() > 5 {
                other.compute((1, 0), 9);
                other.join(&stamps.pop_front().unwrap());
            }
        }
        assert_eq!(one.time(), 1_000_000);
        let profile = one.profile();
        assert_eq!(profile.values().sum::<u64>(), 1_000_000);
        assert_eq!(profile.len(), 3);
        // The second chain is behind the first by the five stamps, and may have gone on by itself.
        assert_eq!(other.profile().values().sum::<u64>(), other.time());
        let mut pieces = 0;
        let mut at = one.before.clone();
        while let Some(piece) = at {
            pieces += 1;
            at = piece.borrow().before.clone();
        }
        assert!(pieces < 2000, "{pieces}");
    }
}
