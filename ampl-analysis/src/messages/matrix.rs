//! Entries of the matrix of messages, and those that matter.

use serde::Serialize;

use super::{Edge, Messages};

/// Pairs with less than this share of the largest volume are marked as little.
///
/// # Source
/// Q. Xu, J. Subhlok, R. Zheng, S. Voss, *Logicalization of communication traces from parallel execution* (2009).
const FILTER: f64 = 0.05;

/// An entry of the matrix.
#[derive(Debug, Serialize)]
pub struct Entry {
    /// Rank that sends.
    pub source: u32,
    /// Rank that receives.
    pub dest: u32,
    /// Messages.
    pub calls: u64,
    /// Their bytes.
    pub bytes: u64,
    /// True where the filter leaves the entry in.
    pub kept: bool,
}

/// The entries of the matrix of `messages` that are not 0.
pub fn entries(messages: &Messages) -> Vec<Entry> {
    let matrix = messages.matrix();
    let by_bytes = matrix.iter().any(|edge| edge.bytes > 0);
    let volume = |edge: &Edge| if by_bytes { edge.bytes } else { edge.messages } as f64;
    let most = matrix.iter().filter(|edge| edge.from != edge.to).map(volume).fold(0.0, f64::max);
    let entry = |edge: &Edge| Entry {
        source: edge.from,
        dest: edge.to,
        calls: edge.messages,
        bytes: edge.bytes,
        kept: edge.from != edge.to && volume(edge) >= FILTER * most,
    };
    matrix.iter().map(entry).collect()
}
