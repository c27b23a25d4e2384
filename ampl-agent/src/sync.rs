//! Atomics of data that threads share. `tests/handed.rs` replaces them by loom's, which try every order of steps.

pub use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
pub use std::thread::yield_now;

/// Nodes of a table's first block, a power of two.
pub const FIRST: usize = 256;
/// Lists of a table's first table, a power of two.
pub const LISTS: usize = 1024;
