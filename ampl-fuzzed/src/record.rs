//! Bytes as a record of an archive: refused with a reason, or a record.

use ampl_export::archive::parse;

/// Reads `bytes`.
///
/// # Panics
/// Where the property does not hold.
pub fn check(bytes: &[u8]) {
    match parse(bytes) {
        Ok(record) => assert!(record.schema > 0),
        Err(why) => assert!(!why.is_empty()),
    }
}
