//! Answers to questions about the calls of a run, as text.

pub mod durations;
pub mod extent;
pub mod matrix;
pub mod ranks;
pub mod summary;
pub mod timeline;
pub mod volume;
