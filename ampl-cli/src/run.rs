//! `ampl run`: starts a launcher with `ampl exec` put before every program.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::time::{SystemTime, UNIX_EPOCH};

use ampl_core::naming::{Names, awaited, untaken};
use signal_hook::consts::{SIGINT, SIGQUIT, SIGTERM};

use crate::environment;
use crate::failure::{Failure, NOT_FOUND, USAGE};
use crate::job::{self, Job, JobArgs, Site};
use crate::launcher::{self, Detected, Flavour, Inserted, LauncherError, hint};
use crate::{
    archive, counting, inherited, leftovers, library, marker_site, prefix, recover, rundir, summary,
};
use ampl_reader::{Trace, directory};

/// Run an MPI program under ampl; returns the launcher's exit status.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  ampl run -c job.toml -- mpirun -n 8 ./app input.txt")]
pub struct Args {
    #[command(flatten)]
    job: JobArgs,
    /// The launcher's command line, after --
    #[arg(trailing_var_arg = true, required = true, value_name = "LAUNCHER")]
    command: Vec<OsString>,
}

/// Runs the launcher and returns its status, after the summary.
///
/// # Errors
/// Nothing was started: configuration, run directory, library or command line are at fault.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if environment::disabled() {
        // The variable may not reach other hosts; leaving the command line alone does.
        return Ok(exit_code(wait(&mut spawn(&args.command)?)?));
    }
    let mut job = Job::load(&args.job, true, Site::Checked)?;
    refuse_named_directory(&job)?;
    let Inserted { programs, .. } = insert(&args.command, &[])?;
    if starts_here(&args.command) {
        let files = if sets_libraries(&args.command) { Vec::new() } else { files(&programs) };
        counting::check(&job.config, &files)?;
    }
    library::find()?;
    if let Some(said) = leftovers::said() {
        tell!("{said}");
    }
    let dir = run_directory(&args.job, &job, &programs)?;
    let resolved = resolve_sites(&mut job, &programs)?;
    let exec = exec_argv(&args.job, &job, &dir, resolved)?;
    let Inserted { argv, .. } = insert(&args.command, &exec)?;
    let flavour = flavour(&args.command);
    let awaited = Awaited::begin(&dir);
    let mut child = spawn(&argv)?;
    let status = wait(&mut child)?;
    let trace = after_run(&dir, awaited.is_over(), flavour);
    if let Some(template) = job.config.output.record.as_ref().filter(|_| dir.is_dir()) {
        keep_record(trace.as_ref(), &dir, template);
    }
    Ok(exit_code(status))
}

/// Refuses `AMPL_DIR` where the site locks the name of run directories.
fn refuse_named_directory(job: &Job) -> anyhow::Result<()> {
    match job.site().filter(|site| site.locks("output.dir") && environment::dir().is_some()) {
        Some(site) => {
            let (what, fix) = ("'output.dir' is locked by the site", format!("unset {}", environment::DIR));
            Err(Failure::message(USAGE, what, site.path.display(), fix))
        }
        None => Ok(()),
    }
}

/// True where the launcher's command line names no other nodes, which may have what this one lacks.
fn starts_here(command: &[OsString]) -> bool {
    const ELSEWHERE: [&str; 13] = [
        "-H",
        "-f",
        "-host",
        "-hosts",
        "-hostfile",
        "-machinefile",
        "-hostlist",
        "--host",
        "--hosts",
        "--hostfile",
        "--machinefile",
        "--hostlist",
        "--default-hostfile",
    ];
    let mut words = command[prefix::behind(command)..].iter().map(|word| word.to_string_lossy());
    let is_srun = |word: &str| Path::new(word).file_name().is_some_and(|name| name == "srun");
    !words.next().is_some_and(|first| is_srun(&first))
        && !words.any(|word| ELSEWHERE.contains(&word.split('=').next().unwrap_or_default()))
}

/// True where the launcher sets the dynamic linker's search path: ranks may find what is not found here.
fn sets_libraries(command: &[OsString]) -> bool {
    command.iter().any(|word| word.to_string_lossy().starts_with("LD_LIBRARY_PATH"))
}

/// The files of `programs`; none unless all are found.
fn files(programs: &[OsString]) -> Vec<PathBuf> {
    let files: Option<Vec<PathBuf>> =
        programs.iter().map(|program| environment::which(Path::new(program))).collect();
    files.unwrap_or_default()
}

/// File that the library removes when it has been there; it then reports itself why it records nothing.
struct Awaited(Option<PathBuf>);

impl Awaited {
    /// Creates the file beside `dir`; there is none where its parent directory is missing or takes no files.
    fn begin(dir: &Path) -> Self {
        let path = awaited(dir);
        let made = File::create_new(&path).is_ok();
        Self(made.then_some(path))
    }

    fn is_over(&self) -> bool {
        self.0.as_ref().is_some_and(|path| !path.exists())
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Nanoseconds since the Unix epoch.
fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// Prints the result of the run to stderr; nothing where the library has `said` why nothing was recorded. Returns the run.
fn after_run(dir: &Path, said: bool, launcher: Option<Flavour>) -> Option<Trace> {
    if dir.is_dir() {
        if !dir.join(rundir::TRACE).exists() {
            directory::note_end(dir, now_ns());
        }
        if !directory::is_whole(dir) {
            recover::after_launch(dir, launcher);
        }
        tell!("ampl: run directory {}", dir.display());
        return summary::print(dir);
    }
    if !said {
        tell!(
            "ampl: no run was recorded ({} does not exist): a message above says why, or the program made no \
             MPI_Init that ampl saw, as it has no MPI, a script set LD_PRELOAD anew, or a tool calls MPI past ampl; \
             'ampl doctor ./app' says what ampl sees of it",
            dir.display()
        );
    }
    None
}

/// Writes the record of the run in `dir`, which is `trace`.
fn keep_record(trace: Option<&Trace>, dir: &Path, template: &str) {
    let written = match trace {
        Some(trace) => archive::write(trace, dir, template, &job_id()),
        None => Err((PathBuf::from(template), "the run cannot be read".into())),
    };
    if let Err((path, why)) = written {
        archive::report(&path, &why);
    }
}

/// The scheduler's name of this job, or the number of this process.
fn job_id() -> String {
    environment::job_name().unwrap_or_else(|| std::process::id().to_string())
}

/// The launcher that `command` starts.
fn flavour(command: &[OsString]) -> Option<Flavour> {
    match launcher::detect(command.get(prefix::behind(command))?) {
        Detected::Launcher(flavour) => Some(flavour),
        _ => None,
    }
}

fn insert(command: &[OsString], exec: &[OsString]) -> anyhow::Result<Inserted> {
    let (before, command) = command.split_at(prefix::behind(command));
    let Some(word) = command.first() else { return Err(hint::unknown(command)) };
    let flavour = match launcher::detect(word) {
        Detected::Launcher(flavour) => flavour,
        Detected::Missing => {
            let what = format!("there is no '{}'", word.to_string_lossy());
            let fix = "install an MPI, or give the launcher's full path";
            return Err(Failure::message(NOT_FOUND, what, "PATH", fix));
        }
        Detected::Unknown => return Err(hint::unknown(command)),
    };
    let mut inserted = launcher::insert_exec(flavour, command, exec).map_err(|error| {
        let fix = match error {
            LauncherError::NoProgram(_) => "write: ampl run -- LAUNCHER OPTIONS ./app ARGS",
            _ => hint::BY_HAND,
        };
        Failure::message(USAGE, error, format!("command line of {}", word.to_string_lossy()), fix)
    })?;
    inserted.argv.splice(..0, before.iter().cloned());
    Ok(inserted)
}

/// The run directory: `-o`, `AMPL_DIR`, or a name from the template that is not taken.
fn run_directory(args: &JobArgs, job: &Job, programs: &[OsString]) -> anyhow::Result<PathBuf> {
    if let Some(dir) = args.output.clone().or_else(environment::dir) {
        return job::new_directory(&dir);
    }
    let jobid = job_id();
    let program = programs.first().cloned().unwrap_or_default();
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let name = Names::new(&program, &jobid, seconds).fill(&job.config.output.dir);
    let path = std::path::absolute(name)?;
    Ok(untaken(&path, |path| path.symlink_metadata().is_ok()))
}

/// Settings that give call sites as code ranges, where sites need resolving and the programs can be read here;
/// otherwise each rank's `exec` resolves them.
fn resolve_sites(job: &mut Job, programs: &[OsString]) -> anyhow::Result<Vec<String>> {
    match &files(programs)[..] {
        [] => Ok(Vec::new()),
        files => marker_site::resolve(job, files),
    }
}

/// `ampl exec …` as it stands before every program.
fn exec_argv(args: &JobArgs, job: &Job, dir: &Path, sites: Vec<String>) -> anyhow::Result<Vec<OsString>> {
    let mut argv = vec![std::env::current_exe()?.into_os_string(), "exec".into()];
    // Launchers need not carry AMPL_CONFIG to other hosts; the command line always gets there.
    if let Some(config) = job.file()? {
        argv.extend(["-c".into(), config]);
    }
    argv.extend(["-o".into(), dir.into()]);
    let settings = args.settings().into_iter().chain(sites);
    argv.extend(settings.flat_map(|setting| ["--set".into(), OsString::from(setting)]));
    argv.extend(["--checked".into(), "--".into()]);
    Ok(argv)
}

fn spawn(argv: &[OsString]) -> anyhow::Result<Child> {
    let mut launcher = Command::new(&argv[0]);
    inherited::hand_on(launcher.args(&argv[1..])).spawn().map_err(|error| {
        let place = argv[0].to_string_lossy();
        Failure::message(NOT_FOUND, format!("cannot start the launcher: {error}"), place, "check its path")
    })
}

/// Waits for the launcher. Ctrl-C and Ctrl-\ reach it from the terminal by themselves and must not end us before
/// the summary; a SIGTERM sent to us is passed on.
fn wait(child: &mut Child) -> anyhow::Result<ExitStatus> {
    // Only now, so that the launcher starts with the signal dispositions of this process.
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGQUIT, SIGTERM])?;
    let handle = signals.handle();
    let launcher = rustix::process::Pid::from_child(child);
    let forwarder = std::thread::spawn(move || {
        for _ in signals.forever().filter(|&signal| signal == SIGTERM) {
            let _ = rustix::process::kill_process(launcher, rustix::process::Signal::TERM);
        }
    });
    let status = child.wait();
    handle.close();
    let _ = forwarder.join();
    Ok(status?)
}

/// The launcher's own status; 128 + n when signal n ended it, as shells say it.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_nodes_are_not_judged_from_here() {
        let here = |words: &str| starts_here(&words.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert!(here("mpirun -n 8 ./app"));
        assert!(!here("mpirun -n 8 --host=a,b ./app"));
        assert!(!here("mpiexec -f nodes ./app"));
        assert!(!here("/usr/bin/srun ./app"));
        assert!(!here("timeout 9 srun ./app") && !here("nice mpirun -H a ./app"));
        let sets = |words: &str| sets_libraries(&words.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert!(sets("mpirun -x LD_LIBRARY_PATH=lib -n 8 ./app") && !sets("mpirun -x LIBRARY -n 8 ./app"));
    }
}
