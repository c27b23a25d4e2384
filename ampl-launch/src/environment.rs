//! Every environment variable that the command line reads. Only `AMPL_*` configure ampl; the others name things.
#![expect(clippy::disallowed_methods, reason = "this is the one place that reads variables")]

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ampl_core::naming::{JOB_VARIABLES, STARTED_VARIABLE, WORLD_VARIABLES};

/// A job file, or (with a newline in it) its text.
pub const CONFIG: &str = "AMPL_CONFIG";
/// The run directory.
pub const DIR: &str = "AMPL_DIR";
/// `1` turns ampl off.
pub const DISABLE: &str = "AMPL_DISABLE";
/// Variable with the libraries that the dynamic linker loads first.
pub const PRELOAD: &str = "LD_PRELOAD";

/// True where the user turned ampl off.
pub fn disabled() -> bool {
    env::var_os(DISABLE).is_some_and(|value| !value.is_empty() && value != "0")
}

/// `AMPL_CONFIG`, if it is set and not empty.
pub fn config() -> Option<OsString> {
    env::var_os(CONFIG).filter(|value| !value.is_empty())
}

/// `AMPL_DIR`, if it is set and not empty.
pub fn dir() -> Option<PathBuf> {
    env::var_os(DIR).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// True within a program that `ampl exec` became.
pub fn is_within() -> bool {
    env::var_os(STARTED_VARIABLE).is_some()
}

/// True inside a job of Slurm's.
pub fn in_slurm() -> bool {
    env::var_os("SLURM_JOB_ID").is_some()
}

/// Nanoseconds of processor time that this process has had.
pub fn processor_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    (now.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(now.tv_nsec as u64)
}

/// `LD_PRELOAD`, if it is set and not empty.
pub fn preload() -> Option<OsString> {
    env::var_os(PRELOAD).filter(|value| !value.is_empty())
}

/// A variable that names a tool's library, if it is set and not empty.
pub fn tool_library(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// Columns of lines for people: `COLUMNS` where that is sane.
pub fn columns() -> Option<usize> {
    env::var("COLUMNS").ok()?.trim().parse().ok().filter(|&columns| columns > 0)
}

/// True unless `ASAN_OPTIONS` lets the address sanitizer start where its library is not the first.
pub fn checks_asan_order() -> bool {
    env::var_os("ASAN_OPTIONS")
        .is_none_or(|options| !options.to_string_lossy().contains("verify_asan_link_order=0"))
}

/// Variables in which launchers number their processes.
const NUMBERS: [&str; 9] = [
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "MV2_COMM_WORLD_RANK",
    "PALS_RANKID",
    "ALPS_APP_PE",
    "JSM_NAMESPACE_RANK",
    "FLUX_TASK_RANK",
    // Last: a batch script has one of its own, which launchers inside it pass on.
    "SLURM_PROCID",
];

/// True where this process is the one of its job that prints warnings: rank 0, or no launcher said otherwise.
pub fn speaks() -> bool {
    NUMBERS.into_iter().find_map(env::var_os).is_none_or(|rank| rank == "0")
}

/// True where a launcher started this process, and others with it.
pub fn is_launched() -> bool {
    NUMBERS.into_iter().any(|name| env::var_os(name).is_some())
}

/// The launcher's variable for the number of processes, where that is several, its value and this one's number.
pub fn world() -> Option<String> {
    let number = |name| env::var(name).ok()?.parse::<u32>().ok();
    WORLD_VARIABLES.into_iter().find_map(|(size, rank)| {
        let processes = number(size).filter(|&processes| processes > 1)?;
        Some(format!("{size} {processes} {}", number(rank)?))
    })
}

/// Descriptor of this process's connection to a launcher of the Hydra kind.
pub fn hydra() -> Option<i32> {
    // Others that speak a PMI speak another one.
    env::var_os("MPI_LOCALNRANKS")?;
    env::var("PMI_FD").ok()?.parse().ok()
}

/// The launch of this process, as its launcher describes it.
#[derive(Debug)]
pub struct Launch {
    /// The launch, as the launcher calls it, or the process that started this one.
    pub job: String,
    /// Its processes on this node; 0 where the launcher does not set that.
    pub on_node: u64,
}

/// The launch that this process is of; `None` where no launcher started it.
pub fn launch() -> Option<Launch> {
    let names = ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "PALS_RANKID", "SLURM_PROCID"];
    names.into_iter().find_map(env::var_os)?;
    let named = ["PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PALS_APID"]
        .into_iter()
        .find_map(|name| env::var(name).ok());
    let step = || Some(format!("{}.{}", env::var("SLURM_JOB_ID").ok()?, env::var("SLURM_STEP_ID").ok()?));
    let parent = || format!("{:?}", rustix::process::getppid());
    let on_node =
        ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"].into_iter().find_map(|name| env::var(name).ok());
    Some(Launch {
        job: named.or_else(step).unwrap_or_else(parent),
        on_node: on_node.and_then(|text| text.parse().ok()).unwrap_or(0),
    })
}

/// Name of the user: of the system's own table, else as the shell has it, else the number.
pub fn user() -> String {
    let number = rustix::process::getuid().as_raw().to_string();
    let table = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let own = table.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == number).then(|| name.to_owned())
    });
    // Users of a directory service are in no file.
    let set = || ["USER", "LOGNAME"].into_iter().find_map(|name| env::var(name).ok());
    own.or_else(|| set().filter(|name| !name.is_empty())).unwrap_or(number)
}

/// The user's directory for what can be made again.
pub fn cache() -> Option<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let path = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    path.is_absolute().then_some(path)
}

/// The scheduler's name for this job.
pub fn job_name() -> Option<String> {
    JOB_VARIABLES.into_iter().find_map(|name| env::var(name).ok().filter(|value| !value.is_empty()))
}

/// Directories of libraries that the dynamic linker searches first.
pub fn library_path() -> Vec<PathBuf> {
    env::var_os("LD_LIBRARY_PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default()
}

/// The file that running `program` would execute: itself if it has a slash, else the first executable on PATH.
pub fn which(program: &Path) -> Option<PathBuf> {
    if program.as_os_str().is_empty() {
        return None;
    }
    if program.components().count() > 1 || program.has_root() || program.to_string_lossy().contains('/') {
        return program.is_file().then(|| program.to_owned());
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|dir| dir.join(program)).find(|file| executable(file))
}

fn executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}
