//! What ampl takes from the process's surroundings: three variables of its own, names and places.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use ampl_core::naming::{JOB_VARIABLES, Names, node_directory_name};
use ampl_trace::model::Alone;

/// Whether there is to be no agent: asked so, or running with another user's privileges.
pub fn is_disabled() -> bool {
    // SAFETY: only reads the auxiliary vector.
    let privileged = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    privileged || env::var_os("AMPL_DISABLE").is_some_and(|value| value == "1")
}

/// Whether this process speaks for the job before MPI can say who is who: its launcher calls it rank 0,
/// or there is no launcher.
pub fn is_first_rank() -> bool {
    let names = ["PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"];
    names.iter().find_map(|name| env::var(name).ok()).is_none_or(|rank| rank == "0")
}

/// Variables in which launchers say how many processes they have started, and which of them this is. Those of Slurm's
/// steps last: launchers inside pass them on.
const LAUNCHED: [(&str, &str); 4] = [
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    ("PMI_SIZE", "PMI_RANK"),
    ("MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"),
    ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),
];

/// What the launcher says, where this process is a world of its own and was started as one of several. A launcher of the
/// program's own MPI, of which `open_mpi` tells, is believed before all others.
pub fn alone(open_mpi: bool, ranks: u32) -> Option<Alone> {
    let number = |name| env::var(name).ok()?.parse::<u32>().ok();
    let own = if open_mpi { "OMPI_COMM_WORLD_SIZE" } else { "PMI_SIZE" };
    if ranks != 1 || number(own) == Some(1) {
        return None;
    }
    LAUNCHED.into_iter().find_map(|(size, rank)| {
        let processes = number(size).filter(|&processes| processes > 1)?;
        Some(Alone { processes, number: number(rank).unwrap_or(0), variable: size.to_owned() })
    })
}

/// The configuration, and what to call it: `AMPL_CONFIG` names a file, or is the text itself if it has several lines.
///
/// # Errors
/// A message for people where the file cannot be read.
pub fn config_text() -> Result<(String, String), String> {
    match env::var("AMPL_CONFIG") {
        Ok(path) if !path.is_empty() && !path.contains('\n') => match fs::read_to_string(&path) {
            Ok(text) => Ok((text, path)),
            Err(error) => {
                Err(format!("cannot read the configuration ({path}): {error}; the job goes on without ampl"))
            }
        },
        text => Ok((text.unwrap_or_default(), "AMPL_CONFIG".into())),
    }
}

/// The run directory if whoever started the job has named it, and so knows it.
pub fn named_directory() -> Option<PathBuf> {
    env::var_os("AMPL_DIR").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// The run directory: `AMPL_DIR`, or the configured template filled in; absolute.
pub fn run_directory(template: &str) -> PathBuf {
    let path = match named_directory() {
        Some(path) => path,
        None => {
            let program = command().into_iter().next().unwrap_or("app".into());
            let seconds = (crate::clock::epoch_ns() / 1_000_000_000).max(0) as u64;
            PathBuf::from(Names::new(program.as_ref(), &job_id(), seconds).fill(template))
        }
    };
    env::current_dir().map_or(path.clone(), |here| here.join(&path))
}

fn job_id() -> String {
    // Without a scheduler the launcher names the job.
    let variables = JOB_VARIABLES.into_iter().chain(["OMPI_MCA_ess_base_jobid"]);
    let set = variables.filter_map(|name| env::var(name).ok()).find(|value| !value.is_empty());
    // SAFETY: never fails.
    set.unwrap_or_else(|| unsafe { libc::getppid() }.to_string())
}

/// A directory of this user's on the node's memory-backed file system, or the next best.
pub fn node_directory() -> PathBuf {
    // SAFETY: never fails.
    let name = node_directory_name(unsafe { libc::getuid() });
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() {
        return memory.join(name);
    }
    env::temp_dir().join(name)
}

/// The program's command line.
pub fn command() -> Vec<String> {
    let bytes = fs::read("/proc/self/cmdline").unwrap_or_default();
    let words = bytes.split(|&byte| byte == 0).filter(|word| !word.is_empty());
    words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// The host's name.
pub fn host() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").map_or("?".into(), |name| name.trim().to_owned())
}

/// When the process started, clock ticks since the boot; 0 where that is not told.
pub fn started() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The program's name, in brackets, may hold anything.
    let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
    behind.split_ascii_whitespace().nth(19).and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// The namespace of process numbers, as its inode says; 0 where that is not told.
pub fn pid_namespace() -> u64 {
    fs::metadata("/proc/self/ns/pid").map_or(0, |found| found.ino())
}

/// Processors that the process may run on, `0-3`.
pub fn cpus() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.unwrap_or("?").trim().chars().take(64).collect()
}
