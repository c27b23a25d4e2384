//! Bytes as messages of the tree: refused or taken, and what is taken is written back the same.
#![no_main]

use ampl_core::message::{DownMessage, Shape, UpMessage};
use libfuzzer_sys::fuzz_target;

/// Flags of an up message: whether it carries census and interval sums.
const CENSUS: u8 = 1;
const INTERVAL: u8 = 2;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(message) = UpMessage::decode(bytes)
        && let Some(window) = &message.window
        // What bins and strata are for is in the shape, not in the bytes.
        && window.partial.binned.is_empty()
        && window.partial.divided.is_empty()
    {
        let cells = &window.partial.cells;
        let shape = Shape {
            cells: cells.iter().map(|cell| cell.key).collect(),
            metrics: u16::from_le_bytes([bytes[6], bytes[7]]),
            census: bytes[3] & CENSUS != 0,
            interval: bytes[3] & INTERVAL != 0,
            second: None,
            divisions: None,
        };
        let mut again = Vec::new();
        message.encode(&shape, &mut again);
        assert_eq!(again, bytes);
    }
    if let Ok(message) = DownMessage::decode(bytes) {
        assert!(bytes.len() >= 32 && (bytes.len() - 32) % 20 == 0);
        drop(message);
    }
});
