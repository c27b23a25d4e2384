//! Functions that only forward calls of MPI, by the structure of calls.
//!
//! A wrapper says little about a call: its callers do. Its name need not have a word of MPI.

use std::collections::{BTreeMap, BTreeSet};

/// Share of a module's calls that go through wrappers, if it has any.
const NEARLY_ALL: f64 = 0.9;
/// Most frames of a wrapper's own module between it and its callers.
const INNER: usize = 2;
/// Beginnings of names of modules whose functions start programs and threads.
const STARTS: [&str; 4] = ["libc.so", "libc-", "libpthread", "ld-linux"];

/// Calls of one MPI function in a function of the program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Site<'a> {
    /// The module.
    pub module: &'a str,
    /// The function that the calls are in.
    pub function: String,
    /// The MPI function.
    pub mpi: u16,
    /// Number of calls.
    pub calls: u64,
    /// Callers that all calls have in common, outwards: module and function.
    pub outward: Vec<(&'a str, String)>,
    /// True where calls differ beyond these.
    pub several: bool,
}

impl Site<'_> {
    /// Number of callers in the site's own module, outwards from it.
    fn inner(&self) -> usize {
        self.outward.iter().take_while(|(module, _)| *module == self.module).count()
    }

    /// True where its callers differ, or are in another module, behind few frames of its own.
    fn is_thin(&self) -> bool {
        let inner = self.inner();
        match self.outward.get(inner) {
            _ if self.function == "main" || inner > INNER => false,
            Some((module, _)) => !starts_programs(module),
            None => self.several,
        }
    }
}

/// True for modules of the C library, whose functions start programs and threads.
pub fn starts_programs(module: &str) -> bool {
    let name = module.rsplit('/').next().unwrap_or(module);
    STARTS.iter().any(|start| name.starts_with(start))
}

/// For each of `sites` the number of outward frames that belong to a wrapper, 0 for the wrapper alone; `None` of sites
/// that are in no wrapper.
///
/// Nearly all calls of the module are in functions that call one function of MPI each, or in one function. These have
/// different callers, or callers in another module.
pub fn of(sites: &[Site<'_>]) -> Vec<Option<usize>> {
    let mut functions: BTreeMap<(&str, &str), Vec<&Site<'_>>> = BTreeMap::new();
    let mut modules: BTreeMap<&str, u64> = BTreeMap::new();
    for site in sites {
        functions.entry((site.module, &site.function)).or_default().push(site);
        let calls = modules.entry(site.module).or_default();
        *calls = calls.saturating_add(site.calls);
    }
    let calls = |sites: &[&Site<'_>]| sites.iter().map(|site| site.calls as f64).sum::<f64>();
    let is_nearly_all = |part: f64, module: &str| part > 0.0 && part >= NEARLY_ALL * modules[module] as f64;
    let forwards = |sites: &[&Site<'_>]| {
        let one = sites.iter().map(|site| site.mpi).collect::<BTreeSet<_>>().len() == 1;
        one && sites.iter().all(|site| site.is_thin())
    };
    let mut forwarded: BTreeMap<&str, f64> = BTreeMap::new();
    for (&(module, _), sites) in functions.iter().filter(|(_, sites)| forwards(sites)) {
        *forwarded.entry(module).or_default() += calls(sites);
    }
    let wrappers: BTreeSet<(&str, &str)> = functions
        .iter()
        .filter(|&(&(module, _), sites)| {
            let forwarded = forwarded.get(module).copied().unwrap_or(0.0);
            forwards(sites) && is_nearly_all(forwarded, module)
                || has_several_callers(sites) && is_nearly_all(calls(sites), module)
        })
        .map(|(&key, _)| key)
        .collect();
    let frames = |site: &Site<'_>| match site.is_thin() {
        true => site.inner(),
        false => 0,
    };
    sites.iter().map(|site| wrappers.contains(&(site.module, &site.function)).then(|| frames(site))).collect()
}

/// True where the sites of one function are called by several functions.
fn has_several_callers(sites: &[&Site<'_>]) -> bool {
    let callers: BTreeSet<&(&str, String)> = sites.iter().filter_map(|site| site.outward.first()).collect();
    let differ = sites.iter().any(|site| site.several && site.is_thin());
    sites.iter().all(|site| site.function != "main") && (differ || callers.len() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const APP: &str = "/bin/app";
    const LIBRARY: &str = "/lib/libxx.so";

    fn site<'a>(
        module: &'a str,
        function: &str,
        mpi: u16,
        outward: &[(&'a str, &str)],
        several: bool,
    ) -> Site<'a> {
        let outward = outward.iter().map(|&(module, name)| (module, name.to_owned())).collect();
        Site { module, function: function.into(), mpi, calls: 100, outward, several }
    }

    #[test]
    fn a_library_of_forwarding_functions_is_a_wrapper() {
        let sites = [
            site(LIBRARY, "in2", 1, &[(LIBRARY, "xx_sum")], true),
            site(LIBRARY, "xx_ring", 2, &[(APP, "halo"), (APP, "main")], false),
            site(APP, "main", 3, &[("/lib/libc.so.6", "__libc_start_call_main")], false),
            site(APP, "setup", 4, &[(APP, "main"), ("/lib/libc.so.6", "start")], false),
        ];
        assert_eq!(of(&sites), [Some(1), Some(0), None, None]);
        // Most of another library is no wrapper: it has its own levels.
        let deep = [
            site(
                LIBRARY,
                "dot",
                1,
                &[(LIBRARY, "cg"), (LIBRARY, "solve"), (LIBRARY, "api"), (APP, "main")],
                false,
            ),
            site(LIBRARY, "gather", 2, &[(LIBRARY, "a"), (LIBRARY, "b"), (LIBRARY, "c")], true),
            site(LIBRARY, "xx_free", 5, &[(APP, "main")], false),
        ];
        assert_eq!(of(&deep), [None, None, None]);
    }

    #[test]
    fn one_function_that_all_go_through_is_a_wrapper() {
        let dispatcher = [
            site(APP, "transfer", 1, &[(APP, "solver"), (APP, "main")], false),
            site(APP, "transfer", 2, &[(APP, "halo"), (APP, "main")], false),
            site(APP, "transfer", 3, &[], true),
        ];
        assert_eq!(of(&dispatcher), [Some(0), Some(0), Some(0)]);
        // An exchange of messages with one caller is none.
        let exchange =
            [1, 2, 3].map(|mpi| site(APP, "exchange", mpi, &[(APP, "step"), (APP, "main")], false));
        assert_eq!(of(&exchange), [None, None, None]);
        // Much else is called elsewhere.
        let mut some = dispatcher.to_vec();
        some.push(Site { calls: 200, ..site(APP, "step", 1, &[(APP, "main")], false) });
        assert_eq!(of(&some), [None; 4]);
    }

    #[test]
    fn main_and_threads_are_no_wrappers() {
        let sites = [
            site(APP, "main", 1, &[("/lib/libc.so.6", "__libc_start_call_main")], false),
            site(APP, "worker", 1, &[("/lib/libc.so.6", "start_thread")], false),
        ];
        assert_eq!(of(&sites), [None, None]);
        assert_eq!(of(&[]), []);
    }
}
