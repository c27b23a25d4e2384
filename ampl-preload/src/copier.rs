//! Start of the process that copies this node's journals to the run directory: `output.copy`.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use crate::environment;
use crate::once;
use crate::own_command;
use crate::report::message;

/// Starts the process for the `journals` of this node, unless another rank has.
pub fn start(run: &Path, journals: &Path, interval_ns: u64) {
    let mut hasher = DefaultHasher::new();
    (environment::host(), journals, run).hash(&mut hasher);
    if !once::is_first(&format!("copy-{:x}", hasher.finish())) {
        return;
    }
    if started(run, journals, interval_ns).is_none() {
        message(&format!(
            "the process for output.copy cannot be started on {}: journals there stay in memory",
            environment::host()
        ));
    }
}

fn started(run: &Path, journals: &Path, interval_ns: u64) -> Option<()> {
    let interval = (interval_ns / 1_000_000).to_string();
    let words = ["copy-journals".as_ref(), "--detached".as_ref(), run.as_os_str()];
    own_command::run(&[&words[..], &[journals.as_os_str(), interval.as_ref()]].concat())
}
