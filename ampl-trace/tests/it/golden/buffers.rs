//! Sends from two buffers in turns.

use ampl_trace::buffers::{Buffers, Move, ThreadBuffers, Varying};
use ampl_trace::places;

use super::{grammar, runs};

/// The second and the last send of a rank are from another buffer than the others.
pub fn of(number: u32) -> Buffers {
    let (sends, mut at) = (3, 0);
    let mut positions = runs(number).into_iter().filter_map(|(terminal, count)| {
        at += count;
        (terminal == sends).then_some(at - count)
    });
    let second = positions.nth(1).expect("a ring of some turns");
    let other = vec![places::module(0, 0x5050)];
    let moves = [Move { signature: 0, since: 0, to: 1 }, Move { signature: 0, since: 0, to: 0 }];
    let thread = ThreadBuffers {
        thread: 0,
        signatures: vec![Varying { first_move: second, sets: vec![other] }],
        moves: moves.to_vec(),
        sequence: grammar(&[(0, 1), (1, 1)]),
    };
    Buffers { threads: vec![thread] }
}
