//! Errors in bytes that should be a journal or a trace.

/// Reason for which bytes cannot be read as a journal or a trace at all.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// The first bytes are not ours.
    BadMagic {
        /// The first eight bytes.
        found: [u8; 8],
    },
    /// Written by a version this reader does not know.
    UnknownVersion {
        /// The version it names.
        found: u64,
    },
    /// The bytes end before the header does.
    TooShort {
        /// Bytes there are.
        len: usize,
    },
    /// The file describes a function otherwise than this version's table.
    TableMismatch {
        /// The function.
        function: String,
    },
    /// A record or section contradicts itself.
    Malformed {
        /// Part that was being read.
        what: &'static str,
        /// Where, in bytes or words from its beginning.
        at: usize,
    },
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::BadMagic { found } => write!(f, "not an ampl file: it begins with {found:02x?}"),
            Self::UnknownVersion { found } => write!(f, "format version {found} is not known to this ampl"),
            Self::TooShort { len } => write!(f, "only {len} bytes, shorter than a header"),
            Self::TableMismatch { function } => {
                write!(f, "{function} is described otherwise than in this version's table")
            }
            Self::Malformed { what, at } => write!(f, "malformed {what} at {at}"),
        }
    }
}

impl std::error::Error for ReadError {}

/// Something missing or wrong in a trace that could be read all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The rank it concerns, if one.
    pub rank: Option<u32>,
    /// Description of the damage, for people.
    pub what: String,
}
