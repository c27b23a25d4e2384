//! Names of nodes: what is never merged with anything else.

use rustc_hash::FxHashMap;

/// Number of a name in [`Names`].
pub type NameId = u32;

/// Meaning of a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Name {
    /// The threads of a rank.
    Rank,
    /// A thread, by its number.
    Thread(u32),
    /// A function of MPI at a place.
    Call(Place),
    /// A named stretch of code.
    Region(Region),
    /// Calls that were counted and not recorded.
    Gap,
    /// Time between calls.
    Outside,
    /// Parts of the node above it, which has too many to hold itself.
    Split,
    /// One expansion of a rule of a grammar: parts of the node above it that come together elsewhere, too.
    Body,
}

/// A function of MPI where it is called.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Index in the function table.
    pub function: u16,
    /// Return addresses from the call outwards: module, an index into [`Names::modules`], and offset. None where calls
    /// are not told apart by place.
    pub path: Vec<(u32, u64)>,
}

/// A region, or the part of one of which the trace has not both ends.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Region {
    /// Its name.
    pub name: RegionName,
    /// False where its begin was not seen.
    pub begins: bool,
    /// False where its end was not seen.
    pub ends: bool,
}

/// Name of a region.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RegionName {
    /// The program's own.
    Given(String),
    /// A function: module, an index into [`Names::modules`], and the first byte of its code.
    Function(u32, u64),
}

impl Name {
    /// True for nodes that only hold parts of the node above them.
    pub fn is_part(&self) -> bool {
        matches!(self, Self::Split | Self::Body)
    }
}

/// Names by number.
#[derive(Clone, Debug, Default)]
pub struct Names {
    names: Vec<Name>,
    known: FxHashMap<Name, NameId>,
    modules: Vec<String>,
    of_modules: FxHashMap<String, u32>,
}

impl Names {
    /// The name of that number.
    pub fn get(&self, id: NameId) -> &Name {
        &self.names[id as usize]
    }

    /// All names, by number.
    pub fn all(&self) -> &[Name] {
        &self.names
    }

    /// Paths of the modules that places lie in.
    pub fn modules(&self) -> &[String] {
        &self.modules
    }

    pub(super) fn id(&mut self, name: Name) -> NameId {
        let next = self.names.len() as NameId;
        match self.known.get(&name) {
            Some(&known) => known,
            None => {
                self.names.push(name.clone());
                self.known.insert(name, next);
                next
            }
        }
    }

    pub(super) fn module(&mut self, path: &str) -> u32 {
        if let Some(&known) = self.of_modules.get(path) {
            return known;
        }
        let next = self.modules.len() as u32;
        self.modules.push(path.to_owned());
        self.of_modules.insert(path.to_owned(), next);
        next
    }
}
