//! Output of callgrind: instructions by function, and by caller and callee.

use std::collections::HashMap;

use anyhow::{Context as _, Result};

/// A function: the object it is in, and its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Path of the program or library.
    pub object: String,
    /// Name of the function.
    pub function: String,
}

/// Calls of one function by another.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Edge {
    /// Number of calls.
    pub calls: u64,
    /// Instructions in them, whatever they called in turn included.
    pub instructions: u64,
}

/// A whole profile.
#[derive(Debug, Default)]
pub struct Profile {
    /// Instructions of each function itself.
    pub own: HashMap<Place, u64>,
    /// Callers and callees.
    pub edges: HashMap<(Place, Place), Edge>,
}

impl Profile {
    /// The profile in `text`, written with `--compress-strings=no --compress-pos=no`.
    ///
    /// # Errors
    /// For a line of costs that has none.
    pub fn parse(text: &str) -> Result<Self> {
        let mut profile = Self::default();
        let mut here = Place { object: String::new(), function: String::new() };
        let mut callee = here.clone();
        let mut callee_object = None;
        let mut calls = None;
        for line in text.lines() {
            if let Some((key, value)) = line.split_once('=') {
                match key {
                    "ob" => here.object = value.to_owned(),
                    "fn" => here.function = value.to_owned(),
                    "cob" => callee_object = Some(value.to_owned()),
                    "cfn" => {
                        // Without a line of its own the callee is in the caller's object.
                        let object = callee_object.take().unwrap_or_else(|| here.object.clone());
                        callee = Place { object, function: value.to_owned() };
                    }
                    "calls" => {
                        let count = value.split(' ').next().and_then(|word| word.parse::<u64>().ok());
                        calls = Some(count.with_context(|| line.to_owned())?);
                    }
                    _ => {}
                }
            } else if line.starts_with(|first: char| first.is_ascii_digit()) {
                let cost = line.split(' ').nth(1).and_then(|word| word.parse::<u64>().ok());
                let cost = cost.with_context(|| line.to_owned())?;
                match calls.take() {
                    None => *profile.own.entry(here.clone()).or_default() += cost,
                    Some(calls) => {
                        let edge = profile.edges.entry((here.clone(), callee.clone())).or_default();
                        edge.calls += calls;
                        edge.instructions += cost;
                    }
                }
            }
        }
        Ok(profile)
    }

    /// Instructions of all functions.
    pub fn total(&self) -> u64 {
        self.own.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_and_inclusive_costs_are_told_apart() {
        let text = "version: 1\npositions: line\nevents: Ir\n\nob=/bin/app\nfl=a.c\nfn=main\n3 10\n\
                    cob=/lib/x.so\ncfi=x.c\ncfn=MPI_Send\ncalls=2 0\n4 70\ncfn=local\ncalls=1 9\n5 8\n4 5\n\n\
                    fn=local\n9 8\ntotals: 93\n";
        let profile = Profile::parse(text).unwrap();
        let place = |object: &str, function: &str| Place { object: object.into(), function: function.into() };
        assert_eq!(profile.own[&place("/bin/app", "main")], 15);
        let edge = |to: Place| profile.edges[&(place("/bin/app", "main"), to)];
        assert_eq!(edge(place("/lib/x.so", "MPI_Send")), Edge { calls: 2, instructions: 70 });
        assert_eq!(edge(place("/bin/app", "local")), Edge { calls: 1, instructions: 8 });
        assert_eq!(profile.total(), 23);
    }
}
