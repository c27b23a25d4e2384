//! Results of analyses as text for people: numbers with units, tables, the summary of a run.
//!
//! Reports return text or write to a [`Write`](std::io::Write). They open no files, and know no arguments and no JSON.
//!
//! ```
//! use std::path::Path;
//!
//! use ampl_report::human::{duration, percent};
//! use ampl_report::summary::{Source, text};
//!
//! assert_eq!((duration(1.25e6), percent(0.412)), ("1.25 ms".into(), "41.2 %".into()));
//! let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ampl-trace/tests/golden/v1/four-ranks.ampl");
//! let trace = ampl_reader::directory::read(&golden)?;
//! let summary = text(&trace, &Source { run: Path::new("four-ranks"), has_file: true, width: 80 });
//! assert!(summary.contains("4 ranks") && summary.lines().all(|line| line.chars().count() <= 80));
//! # Ok::<(), ampl_reader::OpenError>(())
//! ```
#![forbid(unsafe_code)]

pub mod actions;
pub mod callgraph;
pub mod calls;
pub mod check;
pub mod communicators;
pub mod comparison;
pub mod coverage;
pub mod decisions;
pub mod decode;
pub mod efficiency;
pub mod estimate;
pub mod gaps;
pub mod history;
pub mod human;
pub mod ideal_network;
pub mod layout;
pub mod live;
pub mod logical;
pub mod opening;
pub mod phases;
pub mod plan;
pub mod processors;
pub mod programs;
pub mod query;
pub mod scaling;
pub mod selection;
pub mod simulate;
pub mod strata;
mod strata_comparison;
pub mod strata_file;
pub mod summary;
pub mod terminal;
pub mod timesteps;
pub mod topology;
pub mod unstored;
pub mod verdict;
pub mod waits;
