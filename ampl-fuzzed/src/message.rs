//! Bytes as messages of the tree: refused or taken, and what is taken comes back when it is written again, in no more
//! bytes; what lies behind a message is none of its.

use ampl_core::message::{DownMessage, MessageLayout, RetrospectiveShape, UpMessage};

/// Flags of an up message: whether it carries census and interval sums.
const CENSUS: u8 = 1;
const INTERVAL: u8 = 2;
/// Flag of an up message: whether it names calls of steps.
const STEPS: u8 = 32;

/// Reads `bytes`.
///
/// # Panics
/// Where the property does not hold.
pub fn check(bytes: &[u8]) {
    if let Ok(message) = UpMessage::decode(bytes)
        && let Some(window) = &message.window
        // What strata are for is in the shape, not in the bytes.
        && window.partial.divided.is_empty()
    {
        let [rows, columns, bins] = [4, 6, 12].map(|at| u16::from_le_bytes([bytes[at], bytes[at + 1]]));
        let retrospective = RetrospectiveShape {
            bins,
            guides: vec![0; columns.into()],
            groups: vec![0; rows.into()],
            until: None,
        };
        let shape = MessageLayout {
            cells: window.partial.cells.iter().map(|cell| cell.key).collect(),
            asked: vec![true; columns.into()],
            census: bytes[3] & CENSUS != 0,
            interval: bytes[3] & INTERVAL != 0,
            retrospective: Some(retrospective),
            divisions: None,
            steps: bytes[3] & STEPS != 0,
        };
        let mut again = Vec::new();
        message.encode(&shape, &mut again);
        assert!(again.len() <= bytes.len());
        assert_eq!(UpMessage::decode(&again), Ok(message));
    }
    if let Ok(message) = DownMessage::decode(bytes) {
        drop(message);
    }
}
