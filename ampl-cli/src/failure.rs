//! Failures with the exit status that the contract gives them.

use std::fmt::Display;
use std::process::ExitCode;

use ampl_launch::failure::{self, Kind};
use ampl_launch::{launcher, once};

/// Wrong usage or configuration.
pub const USAGE: u8 = 2;
/// Damaged input.
pub const DAMAGED: u8 = 3;
/// Something named does not exist.
pub const NOT_FOUND: u8 = 4;
/// A change that a rule of `diff` fails, or another condition that was asked for.
pub const CONDITION: u8 = 5;
/// A comparison without a clear answer.
pub const INCONCLUSIVE: u8 = 6;
/// Runs that cannot be compared.
pub const INCOMPARABLE: u8 = 7;
/// Anything without a status of its own.
pub const OTHER: u8 = 1;

/// A failure whose message is complete and whose exit status is known.
#[derive(Debug)]
pub struct Failure {
    status: u8,
    message: String,
}

impl Failure {
    /// `ampl: <what> (<place>): <fix>` and exit status `status`.
    pub fn message(status: u8, what: impl Display, place: impl Display, fix: impl Display) -> anyhow::Error {
        Self::printed(status, format!("ampl: {what} ({place}): {fix}"))
    }

    /// True where `error` is a failure with that status.
    #[cfg(test)]
    pub fn has(error: &anyhow::Error, status: u8) -> bool {
        known(error).is_some_and(|(known, _)| known == status)
    }

    /// Lines that are already in the form of messages.
    pub fn printed(status: u8, message: String) -> anyhow::Error {
        anyhow::Error::new(Self { status, message })
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// Exit status and message of an error whose message is complete.
fn known(error: &anyhow::Error) -> Option<(u8, String)> {
    if let Some(failure) = error.downcast_ref::<Failure>() {
        return Some((failure.status, failure.message.clone()));
    }
    let failure = error.downcast_ref::<failure::Failure>()?;
    let status = match failure.kind() {
        Kind::Usage => USAGE,
        Kind::Damaged => DAMAGED,
        Kind::NotFound => NOT_FOUND,
        Kind::Other => OTHER,
    };
    Some((status, failure.to_string()))
}

/// Reports a failure that every rank of the job may have: the message is printed once, and the job ends.
///
/// # Errors
/// Never; the type is that of a command's outcome.
pub fn once(error: &anyhow::Error) -> anyhow::Result<ExitCode> {
    let (status, message) = known(error).unwrap_or_else(|| (OTHER, format!("{error:#}")));
    if once::is_first(&message) {
        report(error);
        launcher::end_job(status);
    } else {
        launcher::wait_for_report();
    }
    Ok(ExitCode::from(status))
}

/// Prints `error` to stderr and returns its exit status.
pub fn report(error: &anyhow::Error) -> ExitCode {
    match known(error) {
        Some((status, message)) => {
            notice!("{message}");
            ExitCode::from(status)
        }
        None => {
            notice!("ampl: {error:#} (unexpected): please report it");
            ExitCode::from(OTHER)
        }
    }
}
