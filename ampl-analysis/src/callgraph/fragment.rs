//! Parts of a sequence in which regions need not begin where they end.

use std::fmt;

use serde::{Serialize, Serializer};

use super::dag::{Dag, List, extend, push};
use super::names::{Name, NameId, Region};

/// Deepest nesting of regions.
pub const DEEPEST: u64 = 10_000;

/// Reason for which a sequence is no tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Regions are nested too deeply.
    TooDeep,
    /// It is too irregular for the work allowed.
    TooIrregular,
    /// The stored bytes contradict themselves.
    Malformed,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooDeep => "regions are nested too deeply",
            Self::TooIrregular => "its calls are too irregular, or too many, to be examined",
            Self::Malformed => "its calls are damaged",
        })
    }
}

impl Serialize for Fault {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Part of a sequence: ends of regions that begin before it, nodes, and begins of regions that end behind it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fragment {
    /// Nodes before each end of a region, and the region.
    ends: Vec<(List, NameId)>,
    /// Nodes at the outermost level.
    base: List,
    /// Regions that begin, and the nodes behind that.
    begins: Vec<(NameId, List)>,
}

impl Fragment {
    /// The begin of a region.
    pub fn begin(region: NameId) -> Self {
        Self { begins: vec![(region, List::new())], ..Self::default() }
    }

    /// The end of a region.
    pub fn end(region: NameId) -> Self {
        Self { ends: vec![(List::new(), region)], ..Self::default() }
    }

    /// True where all regions begin and end in it.
    pub fn is_balanced(&self) -> bool {
        self.ends.is_empty() && self.begins.is_empty()
    }

    /// The nodes at its end.
    fn top(&mut self) -> &mut List {
        match self.begins.last_mut() {
            Some((_, list)) => list,
            None => &mut self.base,
        }
    }

    /// Appends `node`, `times` in a row.
    pub fn push(&mut self, node: u32, times: u64) {
        push(self.top(), node, times);
    }

    /// Appends another.
    ///
    /// # Errors
    /// [`Fault::TooDeep`].
    pub fn append(&mut self, other: &Self, dag: &mut Dag) -> Result<(), Fault> {
        for (list, region) in &other.ends {
            extend(self.top(), list);
            // What it has begun and not ended ends with it.
            let own = self.begins.iter().rposition(|(begun, _)| begun == region);
            while self.begins.len() > own.map_or(0, |own| own + 1) {
                let Some((begun, list)) = self.begins.pop() else { break };
                let node = part(dag, begun, true, false, &list);
                self.push(node, 1);
            }
            match self.begins.pop() {
                Some((_, list)) if list.is_empty() && dag.leaves_out_empty() => {}
                Some((begun, list)) => {
                    let node = dag.put(begun, &list);
                    self.push(node, 1);
                }
                None => self.ends.push((std::mem::take(&mut self.base), *region)),
            }
        }
        extend(self.top(), &other.base);
        self.begins.extend(other.begins.iter().cloned());
        match (self.ends.len().max(self.begins.len())) as u64 > DEEPEST {
            true => Err(Fault::TooDeep),
            false => Ok(()),
        }
    }

    /// It so often in a row, from once.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub fn repeated(&self, times: u64, dag: &mut Dag) -> Result<Self, Fault> {
        if times <= 1 {
            return Ok(self.clone());
        }
        if self.is_balanced() {
            let mut repeated = Self::default();
            for (node, own) in dag.put_body(self.base.clone()) {
                repeated.push(node, own.saturating_mul(times));
            }
            return Ok(repeated);
        }
        // Between one and the next, what begins in the one ends in the next.
        let mut between = Self { begins: self.begins.clone(), ..Self::default() };
        between.append(&Self { begins: Vec::new(), ..self.clone() }, dag)?;
        if between.is_balanced() {
            let mut repeated = Self { begins: Vec::new(), ..self.clone() };
            repeated.append(&between.repeated(times - 1, dag)?, dag)?;
            repeated.begins.clone_from(&self.begins);
            return Ok(repeated);
        }
        if times > DEEPEST {
            return Err(Fault::TooDeep);
        }
        let mut repeated = self.clone();
        for _ in 1..times {
            repeated.append(self, dag)?;
        }
        Ok(repeated)
    }

    /// Its nodes as one where they stand at one level, and are several.
    #[must_use]
    pub fn into_body(mut self, dag: &mut Dag) -> Self {
        if self.is_balanced() {
            self.base = dag.put_body(self.base);
        }
        self
    }

    /// Its nodes in lists of bounded length.
    #[must_use]
    pub fn in_parts(mut self, dag: &mut Dag) -> Self {
        if self.is_balanced() {
            self.base = dag.put_parts(self.base);
        }
        self
    }

    /// The nodes of the whole sequence; regions of which one end is missing are marked so.
    pub fn finish(mut self, dag: &mut Dag) -> List {
        let mut behind = List::new();
        for (region, list) in self.begins.into_iter().rev() {
            let mut list = list;
            extend(&mut list, &behind);
            let node = part(dag, region, true, false, &list);
            behind = vec![(node, 1)];
        }
        let mut before = List::new();
        for (list, region) in std::mem::take(&mut self.ends) {
            extend(&mut before, &list);
            let node = part(dag, region, false, true, &before);
            before = vec![(node, 1)];
        }
        extend(&mut before, &self.base);
        extend(&mut before, &behind);
        before
    }
}

/// A region of which one end is missing.
fn part(dag: &mut Dag, region: NameId, begins: bool, ends: bool, list: &List) -> u32 {
    let name = match dag.names().get(region) {
        Name::Region(region) => Name::Region(Region { begins, ends, ..region.clone() }),
        other => other.clone(),
    };
    let name = dag.names_mut().id(name);
    dag.put(name, list)
}
