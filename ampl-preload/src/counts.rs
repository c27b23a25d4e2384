//! Counts of calls made before the agent existed.

use std::sync::atomic::{AtomicU64, Ordering};

use ampl_core::mpi::{FUNCTION_COUNT, FUNCTIONS, Function};

static EARLY: [AtomicU64; FUNCTION_COUNT] = [const { AtomicU64::new(0) }; FUNCTION_COUNT];

/// Counts a call of `function`.
pub fn count(function: Function) {
    EARLY[usize::from(function.0)].fetch_add(1, Ordering::Relaxed);
}

/// Number of calls so far that would have had a place in the sequence, questions such as `MPI_Initialized` apart.
pub fn sequenced() -> u64 {
    let counts = FUNCTIONS.iter().zip(&EARLY);
    let sequenced = counts.filter(|(spec, _)| !spec.class.only_asks());
    sequenced.map(|(_, early)| early.load(Ordering::Relaxed)).sum()
}

/// Passes each function and its count to `with`, and sets the counts to 0.
pub fn take(mut with: impl FnMut(Function, u64)) {
    for (index, early) in EARLY.iter().enumerate() {
        with(Function(index as u16), early.swap(0, Ordering::Relaxed));
    }
}
