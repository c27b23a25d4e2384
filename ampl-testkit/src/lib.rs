//! Seeded synthetic jobs and naive oracles; never part of what is installed.
#![forbid(unsafe_code)]

pub mod population;
#[cfg(feature = "table")]
pub mod table;

pub use population::{Kind, Population};
