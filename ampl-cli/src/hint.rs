//! Suggestions for arguments that are a launcher's.

use std::ffi::OsString;

use ampl_launch::hint::{joined, line};
use ampl_launch::launcher::Flavour;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::failure::{Failure, USAGE};

/// The message for `words`, the arguments of ampl, where an option of a launcher's stands among those of `ampl run`
/// or `ampl exec`; `None` where `error` is about something else.
pub fn misplaced(error: &clap::Error, words: &[OsString]) -> Option<anyhow::Error> {
    let (command, words) = words.split_first()?;
    if error.kind() != ErrorKind::UnknownArgument || !["run", "exec"].iter().any(|name| command == name) {
        return None;
    }
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return None };
    // clap names "-n" where "-np" or "-n4" is written.
    let at = words.iter().position(|word| word.to_string_lossy().starts_with(option.as_str()))?;
    let (before, behind) = words.split_at(at);
    if !Flavour::any_has(behind[0].as_os_str()) {
        return None;
    }
    let (ours, behind) = (joined(before), line(behind));
    let fix = match command == "run" {
        true => format!("write: ampl run{ours} -- mpirun {behind}"),
        false => format!("write: mpirun {behind} with 'ampl exec{ours} --' before the program"),
    };
    let what = format!("'{option}' is an option of launchers, not of 'ampl {}'", command.to_string_lossy());
    Some(Failure::message(USAGE, what, "command line", fix))
}
