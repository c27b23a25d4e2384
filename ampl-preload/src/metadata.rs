//! Facts about the run for its trace, found out on rank 0: once when MPI begins, once when it ends.

mod adiak;
mod inputs;
mod libraries;
mod machine;
mod scheduler;

use std::env;

use ampl_core::config::Arguments;
use ampl_trace::metadata::{Metadata, cut};

use crate::environment;
use crate::tools;
pub use scheduler::job;

/// Variables whose names begin so set up MPI, its networks and threads.
const PREFIXES: [&str; 15] = [
    "OMPI_MCA_",
    "PMIX_MCA_",
    "MPICH_",
    "MPIR_CVAR_",
    "I_MPI_",
    "MV2_",
    "UCX_",
    "FI_",
    "PSM2_",
    "NCCL_",
    "OMP_",
    "GOMP_",
    "KMP_",
    "MKL_",
    "OPENBLAS_",
];

/// Variables whose names begin so are the launcher's own words to its processes: addresses and numbers of one launch.
const OF_LAUNCHERS: [&str; 4] = ["OMPI_MCA_orte_", "OMPI_MCA_prte_", "OMPI_MCA_ess", "OMPI_MCA_initial_wdir"];

/// Facts that are known when MPI has begun; files that the command line names where `arguments` are stored.
pub fn at_init(arguments: Arguments) -> Metadata {
    let (inputs, left_out) = match arguments {
        Arguments::All => {
            let (named, left_out) = inputs::named_in(environment::command().get(1..).unwrap_or_default());
            (Some(named), left_out)
        }
        Arguments::Program | Arguments::Off => (None, 0),
    };
    Metadata {
        executable: inputs::executable(),
        libraries: Some(libraries::mapped()),
        inputs,
        modules: environment_modules(),
        variables: Some(variables()),
        machine: Some(machine::machine()),
        limits: Some(machine::limits()),
        job: scheduler::job(),
        adiak: None,
        device_calls: None,
        left_out,
    }
}

/// Facts that may have changed, or come to be known, until the end.
pub fn at_finalize() -> Metadata {
    let (adiak, left_out) = adiak::pairs().map_or((None, 0), |(pairs, left_out)| (Some(pairs), left_out));
    let device_calls = tools::device_calls();
    Metadata { libraries: Some(libraries::mapped()), adiak, device_calls, left_out, ..Metadata::default() }
}

/// Environment modules that are loaded, by the variable that Lmod and Environment Modules keep.
fn environment_modules() -> Option<Vec<String>> {
    let list = env::var("LOADEDMODULES").ok()?;
    Some(list.split(':').filter(|module| !module.is_empty()).map(|module| cut(module.into())).collect())
}

/// Variables with one of [`PREFIXES`] and none of [`OF_LAUNCHERS`], by name.
fn variables() -> Vec<(String, String)> {
    let set = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let begins = |name: &str, with: &[&str]| with.iter().any(|prefix| name.starts_with(prefix));
    let chosen = set.filter(|(name, _)| begins(name, &PREFIXES) && !begins(name, &OF_LAUNCHERS));
    let mut chosen: Vec<(String, String)> = chosen.map(|(name, value)| (name, cut(value))).collect();
    chosen.sort();
    chosen
}
