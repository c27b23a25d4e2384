//! Ranks of the job on this node without a mark, by their processes.

use std::collections::BTreeMap;

use super::launch::{self, OnNode};
use super::processes;
use crate::libraries::is_library_of_mpi;

/// Sight of the processes of a rank, the stronger last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sight {
    /// Neither an MPI nor the library is loaded, or the program is linked statically.
    Unclear,
    /// The library is loaded.
    MayCome,
    /// An MPI is loaded, and the library is not, or is disabled.
    Lacks,
    /// Both are loaded.
    WillCome,
}

/// Ranks of the launch on this node, those of processes that may be read.
pub fn look(here: &OnNode, open_mpi: bool) -> BTreeMap<u32, Sight> {
    let own = crate::resolve::module(look as *const () as u64).0;
    let own = own.rsplit('/').next().unwrap_or_default().to_owned();
    let mut ranks = BTreeMap::new();
    for pid in processes::all() {
        let Some(environment) = processes::variables(pid) else { continue };
        let variables = |name: &str| {
            environment.iter().find(|variable| variable.0 == name).map(|variable| variable.1.clone())
        };
        let Some((rank, _)) = launch::rank_of(&variables, open_mpi) else { continue };
        if !here.holds(pid, &variables, open_mpi) {
            continue;
        }
        let disabled = variables("AMPL_DISABLE").is_some_and(|value| value == "1");
        let sight = sight(&processes::files(pid), &own, disabled);
        let seen = ranks.entry(rank).or_insert(sight);
        *seen = sight.max(*seen);
    }
    ranks
}

fn sight(files: &[String], own: &str, disabled: bool) -> Sight {
    let has_mpi = files.iter().any(|file| is_library_of_mpi(file));
    let has_library = !disabled && files.iter().any(|file| file.rsplit('/').next() == Some(own));
    match (has_mpi, has_library) {
        (false, false) => Sight::Unclear,
        (false, true) => Sight::MayCome,
        (true, false) => Sight::Lacks,
        (true, true) => Sight::WillCome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_show_what_a_process_lacks() {
        let files = |names: &[&str]| names.iter().map(|name| format!("/usr/lib/{name}")).collect::<Vec<_>>();
        let of = |names: &[&str], disabled| sight(&files(names), "libampl.so", disabled);
        assert_eq!(of(&["libc.so.6"], false), Sight::Unclear);
        assert_eq!(of(&["libc.so.6", "libampl.so"], false), Sight::MayCome);
        assert_eq!(of(&["libmpi.so.40.30.4"], false), Sight::Lacks);
        assert_eq!(of(&["libampl.so", "libmpich.so.12"], false), Sight::WillCome);
        assert_eq!(of(&["libampl.so", "libmpich.so.12"], true), Sight::Lacks);
        assert!(Sight::Lacks > Sight::MayCome && Sight::WillCome > Sight::Lacks);
    }
}
