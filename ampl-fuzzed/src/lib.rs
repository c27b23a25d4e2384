//! Readers of bytes that others wrote, each with its property: it returns, whatever the bytes are, and what it returns
//! holds together.
//!
//! A fuzz target in `fuzz/` calls one function of these; a test calls the same one with the inputs in `fuzz/corpus/` and
//! with changes of them.
#![forbid(unsafe_code)]

pub mod config;
pub mod edges;
pub mod journal;
pub mod message;
pub mod node;
pub mod pattern;
pub mod population;
pub mod record;
pub mod rules;
pub mod time_index;
pub mod timing;
pub mod trace;

/// A check of some bytes; it panics where its property does not hold.
pub type Check = fn(&[u8]);

/// Every target's name, which its directory of inputs has, too, and its check.
pub const TARGETS: [(&str, Check); 12] = [
    ("config", config::check),
    ("edges", edges::check),
    ("journal", journal::check),
    ("message", message::check),
    ("node", node::check),
    ("pattern", pattern::check),
    ("population", population::check),
    ("record", record::check),
    ("rules", rules::check),
    ("time_index", time_index::check),
    ("timing", timing::check),
    ("trace", trace::check),
];
