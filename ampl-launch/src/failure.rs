//! Faults as messages for the user.

use std::fmt::{Display, Formatter};
use std::io;

use ampl_reader::OpenError;
use ampl_report::opening;

/// Kind of a fault, from which the command takes its exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Wrong usage or configuration.
    Usage,
    /// Damaged input.
    Damaged,
    /// Something named does not exist.
    NotFound,
    /// Any other.
    Other,
}

/// A fault whose message is complete.
#[derive(Debug)]
pub struct Failure {
    kind: Kind,
    message: String,
}

impl Failure {
    /// `ampl: <what> (<place>): <fix>`
    pub fn message(kind: Kind, what: impl Display, place: impl Display, fix: impl Display) -> Self {
        Self::printed(kind, format!("ampl: {what} ({place}): {fix}"))
    }

    /// Lines that are already in the form of messages.
    pub fn printed(kind: Kind, message: String) -> Self {
        Self { kind, message }
    }

    /// An error that no user is known to cause.
    pub fn unexpected(error: impl Display) -> Self {
        Self::message(Kind::Other, error, "unexpected", "please report it")
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::unexpected(error)
    }
}

/// The message about a run that cannot be opened.
impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let kind = match &error {
            OpenError::Denied { .. } => Kind::Other,
            error if error.is_absent() => Kind::NotFound,
            _ => Kind::Damaged,
        };
        Self::message(kind, &error, error.path().display(), opening::remedy(&error))
    }
}
