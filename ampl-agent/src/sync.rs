//! The atomics of what threads share. `tests/handed.rs` puts others in their place, which try every order of their
//! steps.

pub use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
pub use std::thread::yield_now;

/// Nodes of a table's first block, and lists of its first table: powers of two.
pub const FIRST: usize = 256;
/// See [`FIRST`].
pub const LISTS: usize = 1024;
