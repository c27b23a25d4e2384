//! Messages, patterns and logical programs of synthetic runs.

mod common;
mod logical;
mod messages;
mod rounded;
