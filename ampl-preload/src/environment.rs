//! Inputs from the process's surroundings: three variables of ampl's own, names and places.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ampl_core::config;
use ampl_core::hook_source;
use ampl_core::naming::{
    JOB_VARIABLES, LAUNCHED_VARIABLE, Names, REFUSED_VARIABLE, STARTED_VARIABLE, WORLD_VARIABLES,
    node_directory_name,
};
use ampl_core::process_stat::ProcessStat;
use ampl_core::program::program_of;
use ampl_trace::model::Alone;

/// True where there is to be no agent: disabled, or running with another user's privileges.
pub fn is_disabled() -> bool {
    // SAFETY: only reads the auxiliary vector.
    let privileged = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    privileged || env::var_os("AMPL_DISABLE").is_some_and(|value| value == "1")
}

/// True where all calls are to take the whole way, for tests that compare it with the
/// [short one](crate::intercept).
pub fn takes_whole_way() -> bool {
    env::var_os("AMPL_WHOLE_WAY").is_some()
}

/// Sources of regions that the job asks for, as [bits](hook_source::HookSource::bit).
pub fn hook_sources() -> u32 {
    if is_disabled() {
        return 0;
    }
    env::var(hook_source::HOOKS_VARIABLE).map_or(0, |names| hook_source::parse(&names))
}

/// True where `ampl exec` has reported why there is to be no run.
pub fn is_refused() -> bool {
    env::var_os(REFUSED_VARIABLE).is_some()
}

/// True where this process reports for the job before MPI has ranks: its launcher calls it rank 0, or there is no
/// launcher.
pub fn is_first_rank() -> bool {
    let names = [
        "PMI_RANK",
        "PMIX_RANK",
        "OMPI_COMM_WORLD_RANK",
        "MV2_COMM_WORLD_RANK",
        "PALS_RANKID",
        "FLUX_TASK_RANK",
        "SLURM_PROCID",
    ];
    names.iter().find_map(|name| env::var(name).ok()).is_none_or(|rank| rank == "0")
}

/// Number of processes and this one's number by its launcher, where this process is a world of its own among several.
/// With `open_mpi`, the launcher of the program's own MPI goes before all others.
pub fn alone(open_mpi: bool, ranks: u32) -> Option<Alone> {
    alone_by(&|name| env::var(name).ok(), open_mpi, ranks)
}

fn alone_by(variable: &dyn Fn(&str) -> Option<String>, open_mpi: bool, ranks: u32) -> Option<Alone> {
    let number = |name| variable(name)?.parse::<u32>().ok();
    let own = if open_mpi { "OMPI_COMM_WORLD_SIZE" } else { "PMI_SIZE" };
    if ranks != 1 || number(own) == Some(1) {
        return None;
    }
    let there = WORLD_VARIABLES.into_iter().find_map(|(size, rank)| {
        let processes = number(size).filter(|&processes| processes > 1)?;
        Some(Alone { processes, number: number(rank).unwrap_or(0), variable: size.to_owned(), lost: false })
    });
    // Taken away between `ampl exec` and the program.
    let lost = || {
        let handed = variable(LAUNCHED_VARIABLE)?;
        let mut words = handed.split(' ');
        let (name, processes, number) = (words.next()?, words.next()?, words.next()?);
        let processes = processes.parse().ok().filter(|&processes| processes > 1)?;
        let gone = variable(name).is_none();
        gone.then(|| Alone {
            processes,
            number: number.parse().unwrap_or(0),
            variable: name.into(),
            lost: true,
        })
    };
    there.or_else(lost)
}

/// The configuration and its origin.
#[derive(Debug)]
pub struct ConfigText {
    /// The text.
    pub text: String,
    /// Name of its origin: a file, the variable, or what the user has changed it with.
    name: String,
    /// True where lines of the text are those of the origin.
    is_verbatim: bool,
}

impl ConfigText {
    /// Place of a line and column in messages.
    pub fn place(&self, line: usize, column: usize) -> String {
        match self.is_verbatim {
            true => format!("{}:{line}:{column}", self.name),
            false => self.name.clone(),
        }
    }
}

/// The configuration: `AMPL_CONFIG` names a file, or is the text itself if it has several lines.
///
/// # Errors
/// A message for people where the file cannot be read.
pub fn config_text() -> Result<ConfigText, String> {
    const NAME: &str = "AMPL_CONFIG";
    let named = env::var_os(NAME).unwrap_or_default().into_encoded_bytes();
    let (text, place) = match named.is_empty() || named.contains(&b'\n') {
        true => (config::text(named), NAME.into()),
        false => {
            let path = PathBuf::from(OsString::from_vec(named));
            (config_file(&path), path.display().to_string())
        }
    };
    let named = |text: String| match config::split_origin(&text) {
        (Some(origin), own) => {
            ConfigText { text: own.to_owned(), name: origin.to_owned(), is_verbatim: false }
        }
        (None, _) => ConfigText { text, name: place.clone(), is_verbatim: true },
    };
    text.map(named).map_err(|why| {
        format!("cannot read the configuration ({place}): {why}; the job goes on without ampl")
    })
}

/// The text in `path`, of which not more is read than a job file has: a device has no end.
fn config_file(path: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path);
    let read = file.and_then(|file| file.take(config::LONGEST + 1).read_to_end(&mut bytes));
    read.map_err(|error| error.to_string())?;
    config::text(bytes)
}

/// The run directory, if the job's starter has named it.
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

/// The launch that this process is of: one name in all processes that a launcher has started on this node.
pub fn launch() -> String {
    env::var("PMIX_NAMESPACE").ok().filter(|name| !name.is_empty()).unwrap_or_else(job_id)
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
    words.map(escaped).collect()
}

/// A name as text: bytes that are no UTF-8 become `\xNN`, so that names that differ in them stay different.
pub fn escaped(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        text.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| text += &format!("\\x{byte:02x}"));
    }
    text
}

/// The program that this process runs, of bounded length.
pub fn program() -> String {
    let mut program = program_of(&command());
    while program.len() > MOST_PROGRAM {
        program.pop();
    }
    program
}

/// Bytes of a program's name.
const MOST_PROGRAM: usize = 512;

/// The host's name.
pub fn host() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").map_or("?".into(), |name| name.trim().to_owned())
}

/// Start of the process, clock ticks since the boot; 0 where unknown.
pub fn started() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    ProcessStat::parse(&stat).map_or(0, |stat| stat.started)
}

/// Inode of the namespace of process numbers; 0 where unknown.
pub fn pid_namespace() -> u64 {
    fs::metadata("/proc/self/ns/pid").map_or(0, |found| found.ino())
}

/// Processors that the process may run on, `0-3`.
pub fn cpus() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let list = line.unwrap_or("?").trim();
    match list.get(..MOST_CPUS) {
        // A list that is cut in the middle of a number names another processor.
        Some(cut) => cut.rfind(',').map_or("?", |end| &cut[..end]).into(),
        None => list.into(),
    }
}

/// Bytes of a list of processors.
const MOST_CPUS: usize = 1024;

/// Processors of the node that are in use.
pub fn processors() -> u64 {
    // SAFETY: only asks.
    unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }.max(0) as u64
}

/// Nanoseconds of processor time that `ampl exec` took to start the program.
pub fn started_ns() -> u64 {
    env::var(STARTED_VARIABLE).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_are_escaped_and_names_stay_different() {
        assert_eq!(escaped("Zürich".as_bytes()), "Zürich");
        assert_eq!(escaped(b"pr\xffog\xc3"), "pr\\xffog\\xc3");
        assert_ne!(escaped(b"a\xfe"), escaped(b"a\xff"));
    }

    #[test]
    fn what_is_no_job_file_is_an_error_and_a_device_has_an_end() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            fs::write(&path, bytes).unwrap();
            config_file(&path)
        };
        assert_eq!(file("job.toml", b"[sampling]\nseed = 7\n").as_deref(), Ok("[sampling]\nseed = 7\n"));
        for (name, bytes, why) in [
            ("program", &b"\x7fELF"[..], "it is a program"),
            ("latin.toml", b"# gr\xf6\xdfe\n", "it is not UTF-8 on line 1"),
            ("binary", b"seed = \0", "it is a binary file"),
        ] {
            assert_eq!(file(name, bytes), Err(why.to_owned()), "{name}");
        }
        assert!(config_file(Path::new("/dev/zero")).is_err_and(|why| why.contains("binary")));
        assert!(config_file(dir.path()).is_err() && config_file(&dir.path().join("none")).is_err());
    }

    #[test]
    fn worlds_of_one_rank_are_told_from_jobs_of_one_process() {
        let of = |pairs: &'static [(&str, &str)], open_mpi, ranks| {
            let variable =
                move |name: &str| pairs.iter().find(|pair| pair.0 == name).map(|pair| pair.1.to_owned());
            alone_by(&variable, open_mpi, ranks)
                .map(|alone| (alone.processes, alone.number, alone.variable, alone.lost))
        };
        let foreign: &[_] = &[("OMPI_COMM_WORLD_SIZE", "3"), ("OMPI_COMM_WORLD_RANK", "2")];
        assert_eq!(of(foreign, false, 1), Some((3, 2, "OMPI_COMM_WORLD_SIZE".into(), false)));
        assert_eq!(of(foreign, false, 3), None);
        let lost: &[_] = &[("AMPL_EXEC_LAUNCHED", "PMI_SIZE 4 1")];
        assert_eq!(of(lost, true, 1), Some((4, 1, "PMI_SIZE".into(), true)));
        assert_eq!(of(&[("AMPL_EXEC_LAUNCHED", "PMI_SIZE 1 0")], true, 1), None);
        assert_eq!(of(&[("AMPL_EXEC_LAUNCHED", "PMI_SIZE")], true, 1), None);
        // A job of one process that a process of the first job has started.
        assert_eq!(of(&[("AMPL_EXEC_LAUNCHED", "PMI_SIZE 4 1"), ("PMI_SIZE", "1")], false, 1), None);
        assert_eq!(of(&[], true, 1), None);
    }
}
