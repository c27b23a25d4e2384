//! Messages of ampl on standard error.

use std::io::Write as _;

use ampl_agent::uncancelled::Uncancelled;
use ampl_core::plain::plain;

/// Writes a message to standard error; standard output belongs to the application.
pub fn message(text: &str) {
    let _whole = Uncancelled::begin();
    // One write: ranks share the place. Write errors are ignored.
    let _ = std::io::stderr().write_all(format!("ampl: {}\n", plain(text)).as_bytes());
}
