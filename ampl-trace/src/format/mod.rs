//! The trace file: one self-describing file of checksummed sections.
//!
//! Version 0 may still change; a reader refuses a version it does not know.

mod sections;
pub mod v0;

pub use sections::{Section, SectionKind, rank_sections};
pub use v0::{Writer, read};

/// First bytes of a trace file.
pub const MAGIC: [u8; 8] = *b"AMPLTRC0";
/// Last bytes of a trace file that was written to its end.
pub const END_MAGIC: [u8; 8] = *b"AMPLEND0";
/// Version in the header.
pub const VERSION: u32 = 0;
