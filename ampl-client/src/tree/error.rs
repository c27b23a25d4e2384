//! Reasons why a node refuses a message.

use ampl_core::message::MessageError;
use ampl_core::units::Rank;

/// Reason why a message was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TreeError {
    /// The bytes are no message.
    Message(MessageError),
    /// The message was made for another plan.
    MessageLayout,
    /// The sender is not a child of this node.
    NotAChild(Rank),
}

impl std::fmt::Display for TreeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Message(error) => error.fmt(f),
            Self::MessageLayout => f.write_str("message made for another plan"),
            Self::NotAChild(rank) => write!(f, "message from rank {}, not a child", rank.0),
        }
    }
}

impl std::error::Error for TreeError {}

impl From<MessageError> for TreeError {
    fn from(error: MessageError) -> Self {
        Self::Message(error)
    }
}
