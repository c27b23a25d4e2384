//! Answers to questions about the calls of a run, as text.

pub mod extent;
pub mod matrix;
pub mod summary;
