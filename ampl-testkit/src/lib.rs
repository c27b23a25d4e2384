//! Seeded synthetic jobs and naive oracles; never part of what is installed.
#![forbid(unsafe_code)]

pub mod classes;
pub mod medoids;
pub mod population;
#[cfg(feature = "symbols")]
pub mod symbols;
#[cfg(feature = "table")]
pub mod table;
pub mod topology;

pub use classes::{ClassJob, Classes};
pub use population::{Kind, Population};
