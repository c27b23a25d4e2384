//! Names of files.

/// The trace file in a run directory.
pub const TRACE: &str = "trace.ampl";
