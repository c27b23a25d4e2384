//! Lines in the run directory with the place and process of each rank's journal: after a death nothing else names this
//! host's journals.

use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use ampl_core::nodes::{NODES, NodeRank};
use ampl_trace::permissions::{DIRECTORY, as_directory, options};

use crate::environment;

/// Appends the line of `rank`, whose journal is in `journals`. Where that cannot be, a death leaves less to find.
pub fn note(directory: &Path, rank: u32, journals: &Path) {
    let _ = append(directory, rank, journals);
}

fn append(directory: &Path, rank: u32, journals: &Path) -> io::Result<()> {
    let nodes = directory.join(NODES);
    // Only in a run directory that is there: not all hosts may share it.
    match DirBuilder::new().mode(DIRECTORY).create(&nodes) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let line = NodeRank {
        rank,
        pid: std::process::id(),
        started: environment::started(),
        pid_namespace: environment::pid_namespace(),
        journals: journals.to_owned(),
    };
    // One write: ranks of the host share the file.
    let path = nodes.join(environment::host());
    let mut file = options().append(true).open(&path)?;
    if file.metadata()?.len() == 0 {
        // The rank that made the directory may not have come here yet.
        as_directory(&nodes);
        as_directory(&path);
    }
    file.write_all(line.to_string().as_bytes())
}

/// Removes the lines: the trace is whole, and journals are not searched any more.
pub fn forget(directory: &Path) {
    let _ = fs::remove_dir_all(directory.join(NODES));
}
