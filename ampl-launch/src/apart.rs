//! A process of ampl's own that may take longer than the one that starts it.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
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
    let mut child = command.process_group(0).spawn()?;
    // An archive that is slow must not hold the job.
    Ok(wait(&mut child, Instant::now() + WITHIN)?.is_none_or(|status| status.success()))
}

/// Waits for `child`, up to `end`; `None` where it has not ended by then.
///
/// # Errors
/// Errors of waiting.
pub fn wait(child: &mut Child, end: Instant) -> io::Result<Option<ExitStatus>> {
    loop {
        match child.try_wait()? {
            None if Instant::now() < end => sleep(Duration::from_millis(5)),
            status => return Ok(status),
        }
    }
}
