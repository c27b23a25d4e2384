//! The interface of transports of the tree's messages.

use ampl_core::units::Rank;

/// A transport that failed for good; the agent goes on without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportError(pub String);

impl std::fmt::Display for TransportError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the tree's transport failed: {}", self.0)
    }
}

impl std::error::Error for TransportError {}

/// Moves whole messages along the edges of a tree without ever waiting.
///
/// An edge carries one message per direction at a time: the next is taken only when the other
/// side has begun to receive the one before. That bounds what a busy parent must buffer.
pub trait Transport {
    /// Returns true where the edge to `peer` would take a message now.
    ///
    /// # Errors
    /// [`TransportError`] when the transport is broken.
    fn is_free(&mut self, peer: Rank) -> Result<bool, TransportError>;

    /// Starts to send `message` to `peer`, at once or with others; only after [`Transport::is_free`] returned true.
    ///
    /// # Errors
    /// [`TransportError`] when the transport is broken.
    fn send(&mut self, peer: Rank, message: &[u8]) -> Result<(), TransportError>;

    /// Passes messages that have arrived to `take`; returns true if anything was on its way.
    ///
    /// # Errors
    /// [`TransportError`] when the transport is broken.
    fn receive(&mut self, take: &mut dyn FnMut(Rank, &[u8])) -> Result<bool, TransportError>;
}
