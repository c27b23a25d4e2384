//! Values of two recorders, equal up to the names of objects.

use std::collections::{HashMap, HashSet};

use ampl_core::mpi::constants::{AbiFamily, value};
use serde_json::Value;

use super::told;

/// Names that the program logs itself.
const WILDCARDS: [&str; 5] = ["MPI_ANY_SOURCE", "MPI_ANY_TAG", "MPI_PROC_NULL", "MPI_ROOT", "MPI_UNDEFINED"];

/// Names of the other recorder for each of ours, at one point of the log.
#[derive(Clone, Debug)]
pub struct Renaming {
    theirs: HashMap<String, String>,
    ours: HashMap<String, String>,
    /// Last step of the log that names the object; afterwards the other recorder may reuse its name.
    last_use: HashMap<String, usize>,
    /// Objects that share their handle with another one.
    shared: HashSet<String>,
    /// Source and tag of the messages that the rank was sent, if they are known.
    sent: Option<HashSet<(i64, i64)>>,
    /// Interfaces under which all constants met so far have the numbers that the program logged.
    families: Vec<AbiFamily>,
}

impl Renaming {
    /// Renaming without any names; the objects in `shared` may be taken for each other, and statuses are of
    /// messages in `sent`.
    pub fn new(shared: &[(String, String)], sent: Option<&HashSet<(i64, i64)>>) -> Self {
        let shared = shared.iter().flat_map(|(one, other)| [one.clone(), other.clone()]).collect();
        Self {
            theirs: HashMap::new(),
            ours: HashMap::new(),
            last_use: HashMap::new(),
            shared,
            sent: sent.cloned(),
            families: AbiFamily::ALL.to_vec(),
        }
    }

    /// Notes that step `index` of our log names the objects in `values`.
    pub fn note_use<'a>(&mut self, index: usize, values: impl Iterator<Item = &'a Value>) {
        for value in values {
            match value {
                Value::String(name) if kind(name).is_some() => {
                    self.last_use.insert(name.clone(), index);
                }
                Value::Array(items) => self.note_use(index, items.iter()),
                _ => {}
            }
        }
    }

    /// Compares `theirs` with step `index` of our log, and names new objects on the way.
    ///
    /// # Errors
    /// The difference.
    pub fn same(&mut self, ours: &Value, theirs: Option<&Value>, index: usize) -> Result<(), String> {
        if ours.get("any").is_some() {
            return Ok(());
        }
        if ours.get("ignored").is_some() {
            return theirs.is_none_or(may_be_ignored).then_some(()).ok_or_else(|| differ(ours, theirs));
        }
        if ours.get("matched").or(ours.get("fared")).is_some() {
            let sent = |source, tag| self.sent.as_ref().is_none_or(|sent| sent.contains(&(source, tag)));
            let fits = theirs.is_some_and(|theirs| told::fits(ours, theirs, &sent));
            return fits.then_some(()).ok_or_else(|| differ(ours, theirs));
        }
        if let (Some(ours), Some(Value::String(names))) = (number(ours), theirs)
            && names.starts_with("MPI_")
            && !WILDCARDS.contains(&names.as_str())
        {
            return self.same_constant(ours, names);
        }
        match (ours, theirs) {
            (Value::String(ours), Some(Value::String(theirs))) if kind(ours).is_some() => {
                self.same_object(ours, theirs, index)
            }
            (Value::Array(ours), Some(Value::Array(theirs))) if ours.len() == theirs.len() => {
                ours.iter().zip(theirs).try_for_each(|(ours, theirs)| self.same(ours, Some(theirs), index))
            }
            (ours, Some(theirs)) if ours == theirs => Ok(()),
            _ => Err(differ(ours, theirs)),
        }
    }

    /// The program logs a constant as its number under the interface that it was compiled for.
    fn same_constant(&mut self, ours: i64, names: &str) -> Result<(), String> {
        let means = |family: &AbiFamily| {
            let bits = names.split('|').map(|name| value(*family, name).map(i64::from));
            bits.sum::<Option<i64>>() == Some(ours)
        };
        self.families.retain(means);
        if self.families.is_empty() { Err(format!("{names} is not {ours}")) } else { Ok(()) }
    }

    fn same_object(&mut self, ours: &str, theirs: &str, index: usize) -> Result<(), String> {
        if kind(ours) != kind(theirs) {
            return Err(format!("{theirs} is not of the kind of {ours}"));
        }
        if self.shared.contains(ours) {
            return Ok(());
        }
        if let Some(known) = self.theirs.get(ours) {
            return if known == theirs {
                Ok(())
            } else {
                Err(format!("{theirs}, but {ours} was {known} before"))
            };
        }
        if let Some(other) = self.ours.get(theirs)
            && self.last_use.get(other).is_some_and(|last| *last >= index)
        {
            return Err(format!("{theirs} for {ours}, but {other}, which lives, has that name"));
        }
        self.theirs.insert(ours.to_owned(), theirs.to_owned());
        self.ours.insert(theirs.to_owned(), ours.to_owned());
        Ok(())
    }
}

/// The number that the program logged: attributes as addresses.
fn number(value: &Value) -> Option<i64> {
    let address = |text: &str| i64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    value.as_i64().or_else(|| address(value.as_str()?))
}

fn differ(ours: &Value, theirs: Option<&Value>) -> String {
    match theirs {
        Some(theirs) => format!("{theirs} instead of {ours}"),
        None => format!("missing, should be {ours}"),
    }
}

/// The kind of a made object's name, `comm` of `comm:3`, and of `comm:0.3` and `comm:0.w3`, a rank's own names.
fn kind(name: &str) -> Option<&str> {
    let (kind, number) = name.split_once(':')?;
    let (rank, own) = number.split_once('.').unwrap_or(("0", number));
    let own = if number.contains('.') { own.strip_prefix('w').unwrap_or(own) } else { own };
    rank.parse::<u64>().ok().and(own.parse::<u64>().ok()).map(|_| kind)
}

/// True where this may stand for an ignored status of a request that is not known: any status, or none. Statuses of
/// known requests are filled in before (`told.rs`).
fn may_be_ignored(theirs: &Value) -> bool {
    match theirs {
        Value::Null => true,
        Value::Object(status) => {
            status.contains_key("error") || (status.contains_key("source") && status.contains_key("tag"))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_name_means_one_object_while_it_lives() {
        let mut renaming = Renaming::new(&[], None);
        let log = [json!("comm:1"), json!("comm:2"), json!("comm:1"), json!("comm:3")];
        for (index, value) in log.iter().enumerate() {
            renaming.note_use(index, std::iter::once(value));
        }
        renaming.same(&log[0], Some(&json!("comm:9")), 0).unwrap();
        assert!(
            renaming.clone().same(&log[1], Some(&json!("comm:9")), 1).is_err(),
            "comm:1 lives until step 2"
        );
        assert!(renaming.clone().same(&log[1], Some(&json!("type:4")), 1).is_err());
        renaming.same(&log[1], Some(&json!("comm:4")), 1).unwrap();
        assert!(renaming.clone().same(&log[2], Some(&json!("comm:4")), 2).is_err());
        renaming.same(&log[2], Some(&json!("comm:9")), 2).unwrap();
        renaming.same(&log[3], Some(&json!("comm:9")), 3).unwrap();
        for (name, expected) in [("comm:0.3", Some("comm")), ("comm:0.w3", Some("comm")), ("comm:w3", None)] {
            assert_eq!(kind(name), expected);
        }
    }

    #[test]
    fn constants_are_those_of_one_interface() {
        let mut renaming = Renaming::new(&[], None);
        let mut same = |ours: Value, theirs: &str| renaming.same(&ours, Some(&json!(theirs)), 0);
        same(json!(5), "MPI_MODE_CREATE|MPI_MODE_WRONLY").unwrap();
        same(json!("0x0"), "MPI_WIN_UNIFIED").unwrap();
        // Only Open MPI is left: a number of MPICH's is none.
        assert!(same(json!(235), "MPI_LOCK_SHARED").is_err());
        let mut renaming = Renaming::new(&[], None);
        assert!(renaming.same(&json!(4), Some(&json!("MPI_THREAD_MULTIPLE")), 0).is_err());
    }

    #[test]
    fn requests_of_one_handle_may_be_taken_for_each_other() {
        let mut renaming = Renaming::new(&[("request:1".into(), "request:2".into())], None);
        renaming
            .same(&json!(["request:1", "request:2"]), Some(&json!(["request:5", "request:5"])), 0)
            .unwrap();
        assert!(renaming.same(&json!(["request:1"]), Some(&json!(["MPI_REQUEST_NULL"])), 0).is_err());
        assert!(renaming.same(&json!([1, 2]), Some(&json!([1])), 0).is_err());
    }
}
