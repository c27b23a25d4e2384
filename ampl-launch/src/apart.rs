//! A process of ampl's own that may take longer than the one that starts it.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::inherited::leave_processor;

/// Time that the end of a job waits for its record.
const WITHIN: Duration = Duration::from_secs(10);

/// Starts this command with `words`, and waits for it, ten seconds at most; false where it has failed by then.
///
/// # Errors
/// Errors of starting a process.
pub fn run(words: &[OsString]) -> io::Result<bool> {
    leave_processor();
    let mut command = Command::new(std::env::current_exe()?);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let (mut child, end) = (command.process_group(0).spawn()?, Instant::now() + WITHIN);
    loop {
        match child.try_wait()? {
            Some(status) => return Ok(status.success()),
            // An archive that is slow must not hold the job.
            None if Instant::now() >= end => return Ok(true),
            None => sleep(Duration::from_millis(5)),
        }
    }
}
