//! A decoded call, whose arguments are asked for by name.

use ampl_core::mpi::{Function, predefined_index};
use ampl_core::value::{ANY_TAG, ObjectKind, Value, tag_value};
use ampl_trace::args::{Named, predefined_word};

use crate::calls::predefined_bytes;

/// The other end of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A rank of the communicator.
    Rank(i64),
    /// Any rank.
    Any,
    /// No rank.
    Nobody,
}

/// A decoded call.
pub struct Call {
    /// Function.
    pub function: Function,
    /// Inputs.
    pub args: Named,
    /// Outputs.
    pub out: Named,
    /// True where it returned an error.
    pub failed: bool,
}

/// Value of that name.
pub fn find<'a>(named: &'a Named, name: &str) -> Option<&'a Value> {
    named.iter().find(|(own, _)| *own == name).map(|(_, value)| value)
}

/// Number of a request; `None` where it is none.
pub fn request_of(value: &Value) -> Option<u64> {
    match value {
        Value::Object(ObjectKind::Request, word) => Some(*word),
        _ => None,
    }
}

/// Source and tag of a status, where it has them.
pub fn told_of(value: &Value) -> Option<(i64, i64)> {
    match value {
        Value::Status { source, tag } => Some((*source, *tag)),
        Value::Outcome { told, .. } => *told,
        _ => None,
    }
    .filter(|told| told.0 >= 0)
}

/// Values of a list, or the one value, of that name; none where there is none.
pub fn list<'a>(named: &'a Named, name: &str) -> &'a [Value] {
    match find(named, name) {
        Some(Value::List(values)) => values,
        Some(value) => std::slice::from_ref(value),
        None => &[],
    }
}

impl Call {
    /// Value of an input.
    pub fn input(&self, name: &str) -> Option<&Value> {
        find(&self.args, name)
    }

    /// The other end that an input names.
    pub fn peer(&self, name: &str) -> Option<Peer> {
        Some(match self.input(name)? {
            Value::Int(rank) => Peer::Rank(*rank),
            Value::Name(name) if name == "MPI_ANY_SOURCE" => Peer::Any,
            _ => Peer::Nobody,
        })
    }

    /// Tag that an input names; `None` for any.
    pub fn tag(&self, name: &str) -> Option<i64> {
        match self.input(name)? {
            Value::Int(tag) => Some(*tag),
            other => (*other != tag_value(ANY_TAG)).then_some(i64::MIN),
        }
    }

    /// Word of the communicator of that name.
    pub fn comm(&self, name: &str) -> Option<u64> {
        let known = |name: &str| predefined_index(ObjectKind::Comm, name).map(predefined_word);
        match self.input(name)? {
            Value::Object(_, word) => Some(*word),
            Value::Name(name) if name == "world" => known("MPI_COMM_WORLD"),
            Value::Name(name) if name == "self" => known("MPI_COMM_SELF"),
            _ => None,
        }
    }

    /// Request that it has made.
    pub fn made_request(&self) -> Option<u64> {
        request_of(find(&self.out, "request")?)
    }

    /// Source and tag by its status.
    pub fn status(&self) -> Option<(i64, i64)> {
        told_of(find(&self.out, "status")?)
    }

    /// Error codes of completed requests.
    pub fn errors(&self) -> Box<[i64]> {
        let error = |value: &Value| match value {
            Value::Outcome { error, .. } if *error != 0 => Some(*error),
            _ => None,
        };
        list(&self.out, "array_of_statuses").iter().filter_map(error).collect()
    }

    /// Element of the predefined type that an input names.
    pub fn element(&self, name: &str) -> Option<Element> {
        match self.input(name)? {
            Value::Name(name) => Element::of(name),
            _ => None,
        }
    }
}

/// Element of a predefined type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    /// Its size.
    pub bytes: u64,
    /// Its meaning.
    pub number: Number,
}

/// Meaning of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// A whole number, signed or not.
    Whole,
    /// A floating-point number.
    Floating,
    /// A complex number.
    Complex,
    /// A truth value, a pair, or something else.
    Other,
}

impl Element {
    /// The element of the type of that name, unless it is bytes or packed: these match all.
    pub fn of(name: &str) -> Option<Self> {
        let any = matches!(name, "MPI_BYTE" | "MPI_PACKED" | "MPI_CHAR" | "MPI_CHARACTER");
        let bytes = (!any).then(|| predefined_bytes(name)).flatten()?;
        let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
        let number = if has(&["BOOL", "LOGICAL", "MPI_2", "_INT_", "WCHAR"])
            || name.ends_with("_INT") && name != "MPI_INT"
        {
            Number::Other
        } else if has(&["COMPLEX"]) {
            Number::Complex
        } else if has(&["FLOAT", "DOUBLE", "REAL"]) {
            Number::Floating
        } else {
            Number::Whole
        };
        Some(Self { bytes, number })
    }

    /// True where elements of both match: languages have names of their own for one type.
    pub fn matches(self, other: Self) -> bool {
        let is_open = [self, other].iter().any(|of| of.number == Number::Other);
        self.bytes == other.bytes && (is_open || self.number == other.number)
    }
}
