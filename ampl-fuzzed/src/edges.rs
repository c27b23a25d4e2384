//! Bytes as a file of edges: refused with a line that the file has, or edges in order between vertices that there are.

use ampl_export::edges::parse;

/// Reads `bytes`.
///
/// # Panics
/// Where the property does not hold.
pub fn check(bytes: &[u8]) {
    let lines = bytes.split(|&byte| byte == b'\n').count() as u64;
    match parse(bytes) {
        Err(fault) => assert!((1..=lines).contains(&fault.line) && !fault.what.is_empty(), "{fault:?}"),
        Ok(edges) => {
            assert!(edges.edges.is_sorted_by(|one, next| (one.0, one.1) < (next.0, next.1)));
            for &(low, high, volume) in &edges.edges {
                assert!(low < high && high < edges.vertices, "{low} {high}");
                assert!(volume.is_finite() && volume >= 0.0, "{volume}");
            }
        }
    }
}
