//! The place that a trace was read from.

use std::path::Path;

/// The place that a trace was read from.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The run as the user named it.
    pub run: &'a Path,
    /// True where there is a trace file; false where there are journals only.
    pub has_file: bool,
}
