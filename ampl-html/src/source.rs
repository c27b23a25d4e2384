//! The place that a trace was read from.

use std::path::Path;

use ampl_reader::Run;

/// The place that a trace was read from.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The run as the user named it.
    pub run: &'a Path,
    /// True where there is a trace file; false where there are journals only.
    pub has_file: bool,
    /// The same run, to read its calls; without it there is no timeline, and no tree of loops.
    pub calls: Option<&'a Run>,
}
