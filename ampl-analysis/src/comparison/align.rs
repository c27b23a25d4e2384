//! Call sites of two builds: lines that moved are the same place.

use std::collections::{BTreeMap, BTreeSet};

use super::profile::Profile;
use super::quantity::Scope;

/// Call sites that both sides have under different names: new name to that of the base.
///
/// Sites that only one side has are put together where the function around them has as many of the same MPI function on
/// either side, in the order of their lines.
pub fn moved(base: &[Profile], new: &[Profile]) -> BTreeMap<Scope, Scope> {
    let sites = |runs: &[Profile]| -> BTreeMap<Scope, Option<String>> {
        runs.iter().flat_map(|run| run.sites.clone()).collect()
    };
    let (old, fresh) = (sites(base), sites(new));
    let names: BTreeSet<&Scope> = old.keys().collect();
    let others: BTreeSet<&Scope> = fresh.keys().collect();
    let (old_only, fresh_only) = (by_caller(&old, &others), by_caller(&fresh, &names));
    let mut moved = BTreeMap::new();
    for (around, old) in old_only {
        let Some(fresh) = fresh_only.get(&around).filter(|fresh| fresh.len() == old.len()) else { continue };
        moved.extend(fresh.iter().cloned().zip(old));
    }
    moved
}

/// Sites that are not in `known`, by MPI function and the function around them, in the order of their lines.
fn by_caller(
    sites: &BTreeMap<Scope, Option<String>>,
    known: &BTreeSet<&Scope>,
) -> BTreeMap<(String, String), Vec<Scope>> {
    let mut found: BTreeMap<(String, String), Vec<Scope>> = BTreeMap::new();
    for (site, around) in sites.iter().filter(|(site, _)| !known.contains(site)) {
        let (Scope::Site { function, .. }, Some(around)) = (site, around) else { continue };
        found.entry((function.clone(), around.clone())).or_default().push(site.clone());
    }
    for sites in found.values_mut() {
        sites.sort_by_cached_key(|site| match site {
            Scope::Site { place, .. } => position(place),
            _ => Vec::new(),
        });
    }
    found
}

/// Position of a place in its file: `a.c:9` is before `a.c:10`.
fn position(place: &str) -> Vec<(String, u64)> {
    let part = |part: &str| match part.rsplit_once(':') {
        Some((file, line)) => (file.to_owned(), line.parse().unwrap_or(0)),
        None => match part.rsplit_once("+0x") {
            Some((module, offset)) => (module.to_owned(), u64::from_str_radix(offset, 16).unwrap_or(0)),
            None => (part.to_owned(), 0),
        },
    };
    place.split(" < ").map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(sites: &[(&str, &str, &str)]) -> Profile {
        let site = |&(function, place, around): &(&str, &str, &str)| {
            (Scope::Site { function: function.into(), place: place.into() }, Some(around.to_owned()))
        };
        Profile { sites: sites.iter().map(site).collect(), ..Profile::default() }
    }

    #[test]
    fn lines_that_moved_are_the_same_place() {
        let base = run(&[
            ("MPI_Send", "a.c:9", "step"),
            ("MPI_Send", "a.c:10", "step"),
            ("MPI_Recv", "a.c:11", "step"),
            ("MPI_Bcast", "b.c:1", "main"),
        ]);
        let new = run(&[
            ("MPI_Send", "a.c:99", "step"),
            ("MPI_Send", "a.c:100", "step"),
            ("MPI_Recv", "a.c:101", "step"),
            ("MPI_Recv", "a.c:102", "step"),
            ("MPI_Bcast", "b.c:1", "main"),
        ]);
        let found = moved(&[base], &[new]);
        let pairs: Vec<(String, String)> =
            found.iter().map(|(new, old)| (new.to_string(), old.to_string())).collect();
        let pair = |new: &str, old: &str| (format!("MPI_Send@{new}"), format!("MPI_Send@{old}"));
        // There is a second receive now: which is the new one cannot be told.
        assert_eq!(pairs, [pair("a.c:100", "a.c:10"), pair("a.c:99", "a.c:9")]);
    }
}
