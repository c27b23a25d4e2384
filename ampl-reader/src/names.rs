//! Names of files.

/// The trace file in a run directory.
pub const TRACE: &str = "trace.ampl";

/// Name of the index of times beside a trace file, behind the name of that.
pub const INDEX: &str = ".index";
