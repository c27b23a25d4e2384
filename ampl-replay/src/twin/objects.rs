//! Handles of this run by the recorded objects' names.

use ampl_core::mpi::{ObjectKind, PREDEFINED, predefined_index};
use ampl_core::value::Value;
use rustc_hash::FxHashMap;

use super::ffi;
use super::problem::Problem;

/// The datatype that is none.
const NULL_TYPE: &str = "MPI_DATATYPE_NULL";

/// Handles by name.
#[derive(Debug)]
pub struct Objects {
    made: FxHashMap<(ObjectKind, u64), usize>,
    predefined: FxHashMap<(ObjectKind, &'static str), usize>,
}

impl Objects {
    /// MPI's own objects.
    pub fn new() -> Self {
        let of = |(index, &(kind, name)): (usize, &(ObjectKind, &'static str))| {
            Some(((kind, name), ffi::predefined(index)?))
        };
        let predefined = PREDEFINED.iter().enumerate().filter_map(of).collect();
        Self { made: FxHashMap::default(), predefined }
    }

    /// The handle that stands for `value`.
    pub fn handle(&self, kind: ObjectKind, value: &Value) -> Result<usize, Problem> {
        match value {
            Value::Object(kind, number) => {
                let found = self.made.get(&(*kind, *number)).copied();
                found.ok_or_else(|| Problem::Unknown(value.to_string()))
            }
            Value::Name(name) => self.named(kind, name),
            // No object was passed.
            Value::Absent => self.null(kind),
            _ => Err(Problem::Unknown(value.to_string())),
        }
    }

    /// The handle of the datatype that `value` names; `None` of what has no size: the null type, as it is passed where MPI
    /// does not read it, and other values.
    pub fn datatype(&self, value: &Value) -> Result<Option<usize>, Problem> {
        match value {
            Value::Name(name) if name == NULL_TYPE => Ok(None),
            Value::Object(..) | Value::Name(_) => self.handle(ObjectKind::Type, value).map(Some),
            _ => Ok(None),
        }
    }

    fn named(&self, kind: ObjectKind, name: &str) -> Result<usize, Problem> {
        let name = match name {
            "world" => "MPI_COMM_WORLD",
            "self" => "MPI_COMM_SELF",
            name => name,
        };
        let index = predefined_index(kind, name).ok_or_else(|| Problem::Unknown(name.to_owned()))?;
        let found = self.predefined.get(&(kind, PREDEFINED[usize::from(index)].1)).copied();
        found.ok_or_else(|| Problem::NoConstant(name.to_owned()))
    }

    /// The null handle of a kind.
    pub fn null(&self, kind: ObjectKind) -> Result<usize, Problem> {
        let null = match kind {
            ObjectKind::Comm => "MPI_COMM_NULL",
            ObjectKind::Type => NULL_TYPE,
            ObjectKind::Op => "MPI_OP_NULL",
            ObjectKind::Group => "MPI_GROUP_NULL",
            ObjectKind::Info => "MPI_INFO_NULL",
            ObjectKind::Errhandler => "MPI_ERRHANDLER_NULL",
            ObjectKind::File => "MPI_FILE_NULL",
            ObjectKind::Win => "MPI_WIN_NULL",
            ObjectKind::Message => "MPI_MESSAGE_NULL",
            ObjectKind::Session => "MPI_SESSION_NULL",
            ObjectKind::Request => "MPI_REQUEST_NULL",
        };
        self.named(kind, null)
    }

    /// Notes the handle of an object that was made or has changed.
    pub fn put(&mut self, kind: ObjectKind, number: u64, handle: usize) {
        self.made.insert((kind, number), handle);
    }

    /// Forgets an object that is gone.
    pub fn forget(&mut self, kind: ObjectKind, number: u64) {
        self.made.remove(&(kind, number));
    }
}
