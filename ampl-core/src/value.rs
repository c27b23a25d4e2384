//! Location-independent values: what is left of a call's arguments once addresses, handles and
//! an implementation's own constants are taken out.
//!
//! Decoding, the trace, topology and replay share this one representation.

use serde::{Serialize, Serializer};

pub use crate::mpi::ObjectKind;

/// `MPI_ANY_SOURCE`, as every implementation's constant is recorded (the MPI-5 ABI's number).
pub const ANY_SOURCE: i64 = -1;
/// `MPI_ANY_TAG`.
pub const ANY_TAG: i64 = -2;
/// `MPI_PROC_NULL`.
pub const PROC_NULL: i64 = -3;
/// `MPI_ROOT`.
pub const ROOT: i64 = -4;
/// `MPI_UNDEFINED`.
pub const UNDEFINED: i64 = -32766;

/// One decoded argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number.
    Int(i64),
    /// A truth value.
    Bool(bool),
    /// A floating-point number.
    Double(f64),
    /// A name of MPI: `world`, `MPI_DOUBLE`, `MPI_ANY_SOURCE`, `MPI_IN_PLACE`.
    Name(String),
    /// An object the program made: `comm:3`, `request:17`.
    Object(ObjectKind, u64),
    /// An address without further meaning.
    Address(u64),
    /// Text.
    Text(String),
    /// A status.
    Status {
        /// Rank in the communicator; `MPI_ANY_SOURCE` in an empty status.
        source: i64,
        /// Tag; `MPI_ANY_TAG` in an empty status.
        tag: i64,
    },
    /// One of several statuses, some of them with errors: source and tag of its message, if any, and its error.
    Outcome {
        /// Source and tag, as in [`Value::Status`].
        told: Option<(i64, i64)>,
        /// The implementation's error code; 0 is `MPI_SUCCESS`.
        error: i64,
    },
    /// Several values.
    List(Vec<Value>),
    /// Several numbers of which only this is stored.
    Spread(Spread),
    /// The program passed no object (`MPI_STATUS_IGNORE`, a null pointer).
    Absent,
}

/// Mean and ends of several numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Number of numbers, at least 1.
    pub count: u64,
    /// Their sum.
    pub sum: i64,
    /// The least of them.
    pub min: i64,
    /// The largest of them.
    pub max: i64,
}

impl Spread {
    /// Mean of the numbers.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.count as f64
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Int(value) => write!(f, "{value}"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Double(value) => write!(f, "{value}"),
            Self::Name(name) => f.write_str(name),
            Self::Object(kind, number) => write!(f, "{}:{number}", kind.name()),
            Self::Address(address) => write!(f, "{address:#x}"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Status { source, tag } => {
                write!(f, "{{source: {}, tag: {}}}", rank_value(*source), tag_value(*tag))
            }
            Self::Outcome { told: Some((source, tag)), error } => {
                write!(f, "{{source: {}, tag: {}, error: {error}}}", rank_value(*source), tag_value(*tag))
            }
            Self::Outcome { told: None, error } => write!(f, "{{error: {error}}}"),
            Self::List(values) => {
                f.write_str("[")?;
                for (index, value) in values.iter().enumerate() {
                    if index > 0 {
                        f.write_str(", ")?;
                    }
                    value.fmt(f)?;
                }
                f.write_str("]")
            }
            Self::Spread(spread) => {
                let Spread { min, max, .. } = spread;
                write!(f, "{{mean: {}, min: {min}, max: {max}}}", spread.mean())
            }
            Self::Absent => f.write_str("-"),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        match self {
            Self::Int(value) => serializer.serialize_i64(*value),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Double(value) => serializer.serialize_f64(*value),
            Self::Name(_) | Self::Object(..) | Self::Address(_) => serializer.collect_str(self),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Status { source, tag } => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("source", &rank_value(*source))?;
                map.serialize_entry("tag", &tag_value(*tag))?;
                map.end()
            }
            Self::Outcome { told, error } => {
                let mut map = serializer.serialize_map(None)?;
                if let Some((source, tag)) = told {
                    map.serialize_entry("source", &rank_value(*source))?;
                    map.serialize_entry("tag", &tag_value(*tag))?;
                }
                map.serialize_entry("error", error)?;
                map.end()
            }
            Self::List(values) => serializer.collect_seq(values),
            Self::Spread(spread) => {
                let mut map = serializer.serialize_map(Some(3))?;
                map.serialize_entry("mean", &spread.mean())?;
                map.serialize_entry("min", &spread.min)?;
                map.serialize_entry("max", &spread.max)?;
                map.end()
            }
            Self::Absent => serializer.serialize_none(),
        }
    }
}

/// A recorded rank: its number, or the name of the wildcard.
pub fn rank_value(rank: i64) -> Value {
    match rank {
        ANY_SOURCE => Value::Name("MPI_ANY_SOURCE".into()),
        PROC_NULL => Value::Name("MPI_PROC_NULL".into()),
        ROOT => Value::Name("MPI_ROOT".into()),
        UNDEFINED => Value::Name("MPI_UNDEFINED".into()),
        rank => Value::Int(rank),
    }
}

/// A recorded tag: its number, or `MPI_ANY_TAG`.
pub fn tag_value(tag: i64) -> Value {
    match tag {
        ANY_TAG => Value::Name("MPI_ANY_TAG".into()),
        tag => Value::Int(tag),
    }
}
