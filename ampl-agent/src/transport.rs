//! How messages of the tree travel: MPI in a job, memory in tests and the simulator.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

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
    /// Whether the edge to `peer` would take a message now.
    ///
    /// # Errors
    /// [`TransportError`] when the transport is broken.
    fn is_free(&mut self, peer: Rank) -> Result<bool, TransportError>;

    /// Starts to send `message` to `peer`, at once or with others; only after [`Transport::is_free`] said so.
    ///
    /// # Errors
    /// [`TransportError`] when the transport is broken.
    fn send(&mut self, peer: Rank, message: &[u8]) -> Result<(), TransportError>;

    /// Passes what has arrived to `take`; says whether anything was on its way.
    ///
    /// # Errors
    /// [`TransportError`] when the transport is broken.
    fn receive(&mut self, take: &mut dyn FnMut(Rank, &[u8])) -> Result<bool, TransportError>;
}

type Slot = Rc<RefCell<VecDeque<Vec<u8>>>>;

/// The end of in-memory edges that one node holds.
#[derive(Debug)]
pub struct InProcess {
    edges: Vec<(Rank, Slot, Slot)>,
}

impl InProcess {
    /// Transports for all `nodes`, joined as `parent_of` says.
    pub fn tree(nodes: u32, parent_of: impl Fn(Rank) -> Option<Rank>) -> Vec<Self> {
        let mut ends: Vec<Self> = (0..nodes).map(|_| Self { edges: Vec::new() }).collect();
        for node in (0..nodes).map(Rank) {
            let Some(parent) = parent_of(node) else { continue };
            let (up, down) = (Slot::default(), Slot::default());
            ends[parent.0 as usize].edges.push((node, down.clone(), up.clone()));
            ends[node.0 as usize].edges.push((parent, up, down));
        }
        ends
    }

    fn outgoing(&self, peer: Rank) -> Result<&Slot, TransportError> {
        let found = self.edges.iter().find(|(to, ..)| *to == peer);
        found.map(|(_, out, _)| out).ok_or_else(|| TransportError(format!("no edge to rank {}", peer.0)))
    }
}

impl Transport for InProcess {
    fn is_free(&mut self, peer: Rank) -> Result<bool, TransportError> {
        Ok(self.outgoing(peer)?.borrow().is_empty())
    }

    fn send(&mut self, peer: Rank, message: &[u8]) -> Result<(), TransportError> {
        self.outgoing(peer)?.borrow_mut().push_back(message.to_vec());
        Ok(())
    }

    fn receive(&mut self, take: &mut dyn FnMut(Rank, &[u8])) -> Result<bool, TransportError> {
        for (peer, _, incoming) in &self.edges {
            let message = incoming.borrow_mut().pop_front();
            if let Some(message) = message {
                take(*peer, &message);
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_takes_one_message_at_a_time() {
        let mut nodes = InProcess::tree(3, |node| (node.0 > 0).then_some(Rank(0)));
        assert!(nodes[2].is_free(Rank(0)).unwrap());
        nodes[2].send(Rank(0), b"up").unwrap();
        assert!(!nodes[2].is_free(Rank(0)).unwrap());
        let mut seen = Vec::new();
        assert!(nodes[0].receive(&mut |peer, bytes| seen.push((peer, bytes.to_vec()))).unwrap());
        assert_eq!(seen, [(Rank(2), b"up".to_vec())]);
        assert!(nodes[2].is_free(Rank(0)).unwrap());
        assert!(nodes[1].is_free(Rank(2)).is_err());
    }
}
