//! Numbers in place of names.

use std::collections::BTreeMap;

/// Kind of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A program.
    Program,
    /// An argument of a program.
    Argument,
    /// A host.
    Host,
    /// A module, by its path.
    Module,
    /// A file.
    File,
    /// A region of a program.
    Region,
    /// A group of ranks.
    Group,
    /// A metric of the program's own.
    Metric,
    /// Text in an argument of an MPI function.
    Text,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Program => "program",
            Self::Argument => "argument",
            Self::Host => "host",
            Self::Module => "module",
            Self::File => "file",
            Self::Region => "region",
            Self::Group => "group",
            Self::Metric => "metric",
            Self::Text => "text",
        }
    }
}

/// Names that have been given, by what they stand for.
#[derive(Debug, Default)]
pub struct Names {
    given: BTreeMap<Kind, BTreeMap<String, usize>>,
}

impl Names {
    /// The name that stands for `original`: `host1` for the first host that is asked for. No name stays none.
    pub fn of(&mut self, kind: Kind, original: &str) -> String {
        if original.is_empty() {
            return String::new();
        }
        let of_kind = self.given.entry(kind).or_default();
        let next = of_kind.len() + 1;
        let number = match of_kind.get(original) {
            Some(&number) => number,
            None => *of_kind.entry(original.to_owned()).or_insert(next),
        };
        format!("{}{number}", kind.word())
    }

    /// The name of a module: of its file, so that the same library elsewhere is the same.
    pub fn module(&mut self, path: &str) -> String {
        self.of(Kind::Module, path.rsplit('/').next().unwrap_or(path))
    }
}
