//! The launcher's process: its start, its signals and its end.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ampl_core::naming::awaited;
use signal_hook::consts::{SIGINT, SIGQUIT, SIGTERM};
use tempfile::NamedTempFile;

use crate::failure::{Failure, Kind};
use crate::job::{Job, Request};
use crate::launcher::{self, Detected, Flavour, Inserted, LauncherError};
use crate::{environment, hint, inherited, marker_site, prefix};

/// True where the launcher's command line names no other nodes, which may have what this one lacks.
pub fn starts_here(command: &[OsString]) -> bool {
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
pub fn sets_libraries(command: &[OsString]) -> bool {
    command.iter().any(|word| word.to_string_lossy().starts_with("LD_LIBRARY_PATH"))
}

/// The files of `programs`; none unless all are found.
pub fn files(programs: &[OsString]) -> Vec<PathBuf> {
    let files: Option<Vec<PathBuf>> =
        programs.iter().map(|program| environment::which(Path::new(program))).collect();
    files.unwrap_or_default()
}

/// The launcher that `command` starts.
pub fn flavour(command: &[OsString]) -> Option<Flavour> {
    match launcher::detect(command.get(prefix::behind(command))?) {
        Detected::Launcher(flavour) => Some(flavour),
        _ => None,
    }
}

/// The launcher's command line `command` with `exec` before every program.
///
/// # Errors
/// A [`Failure`] where it is not certain where a program stands.
pub fn insert(command: &[OsString], exec: &[OsString]) -> Result<Inserted, Failure> {
    let (before, command) = command.split_at(prefix::behind(command));
    let Some(word) = command.first() else { return Err(hint::unknown(command)) };
    let flavour = match launcher::detect(word) {
        Detected::Launcher(flavour) => flavour,
        Detected::Missing => {
            let what = format!("there is no '{}'", word.to_string_lossy());
            let fix = "install an MPI, or give the launcher's full path";
            return Err(Failure::message(Kind::NotFound, what, "PATH", fix));
        }
        Detected::Unknown => return Err(hint::unknown(command)),
    };
    let mut inserted = launcher::insert_exec(flavour, command, exec).map_err(|error| {
        let fix = match error {
            LauncherError::NoProgram(_) => "write: ampl run -- LAUNCHER OPTIONS ./app ARGS",
            LauncherError::Unreadable { .. } => "name a file that can be read here",
            _ => hint::BY_HAND,
        };
        Failure::message(Kind::Usage, error, format!("command line of {}", word.to_string_lossy()), fix)
    })?;
    inserted.argv.splice(..0, before.iter().cloned());
    inserted.files.iter_mut().for_each(|(at, _)| *at += before.len());
    Ok(inserted)
}

/// The command line of `inserted`, in which files of programs are named by copies; these go when they are dropped.
///
/// # Errors
/// A copy that cannot be written.
pub fn written(inserted: Inserted) -> Result<(Vec<OsString>, Vec<NamedTempFile>), Failure> {
    let Inserted { mut argv, files, .. } = inserted;
    let mut copies = Vec::new();
    for (at, text) in files {
        let copy = NamedTempFile::with_prefix("ampl-programs-").and_then(|mut copy| {
            copy.write_all(text.as_bytes())?;
            Ok(copy)
        });
        let copy = copy.map_err(|error| {
            let what = format!("cannot copy the file of programs: {error}");
            let place = std::env::temp_dir();
            Failure::message(Kind::Other, what, place.display(), "let TMPDIR name a directory with room")
        })?;
        argv[at] = copy.path().into();
        copies.push(copy);
    }
    Ok((argv, copies))
}

/// Settings that give call sites as code ranges, where sites need resolving and the programs can be read here;
/// otherwise each rank's `exec` resolves them.
///
/// # Errors
/// Sites that cannot be resolved.
pub fn resolve_sites(job: &mut Job, programs: &[OsString]) -> Result<Vec<String>, Failure> {
    match &files(programs)[..] {
        [] => Ok(Vec::new()),
        files => marker_site::resolve(job, files),
    }
}

/// `ampl exec …` as it stands before every program.
///
/// # Errors
/// Errors of the system.
pub fn exec_argv(
    request: &Request,
    job: &Job,
    dir: &Path,
    sites: Vec<String>,
) -> Result<Vec<OsString>, Failure> {
    let mut argv = vec![std::env::current_exe()?.into_os_string(), "exec".into()];
    // Launchers need not carry AMPL_CONFIG to other hosts; the command line always gets there.
    if let Some(config) = job.file()? {
        argv.extend(["-c".into(), config]);
    }
    argv.extend(["-o".into(), dir.into()]);
    let settings = request.settings.iter().cloned().chain(sites);
    argv.extend(settings.flat_map(|setting| ["--set".into(), OsString::from(setting)]));
    argv.extend(["--checked".into(), "--".into()]);
    Ok(argv)
}

/// File that the library removes when it has been there; it then reports itself why it records nothing.
#[derive(Debug)]
pub struct Awaited(Option<PathBuf>);

impl Awaited {
    /// Creates the file beside `dir`; there is none where its parent directory is missing or takes no files.
    pub fn begin(dir: &Path) -> Self {
        let path = awaited(dir);
        let made = File::create_new(&path).is_ok();
        Self(made.then_some(path))
    }

    /// True where the library has been there.
    pub fn is_over(&self) -> bool {
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

/// Starts the launcher.
///
/// # Errors
/// A [`Failure`] where there is none.
pub fn spawn(argv: &[OsString]) -> Result<Child, Failure> {
    let mut launcher = Command::new(&argv[0]);
    inherited::hand_on(launcher.args(&argv[1..])).spawn().map_err(|error| {
        let place = argv[0].to_string_lossy();
        Failure::message(
            Kind::NotFound,
            format!("cannot start the launcher: {error}"),
            place,
            "check its path",
        )
    })
}

/// Waits for the launcher. Ctrl-C and Ctrl-\ reach it from the terminal by themselves and must not end us before
/// it; a SIGTERM sent to us is passed on. Once it has ended, they end us as they end others.
///
/// # Errors
/// Errors of the system.
pub fn wait(child: &mut Child) -> Result<ExitStatus, Failure> {
    const ENDS: [i32; 3] = [SIGINT, SIGQUIT, SIGTERM];
    // Only now, so that the launcher starts with the signal dispositions of this process.
    let mut signals = signal_hook::iterator::Signals::new(ENDS)?;
    // A handler stays when it is closed: without this the summary of a long run could not be stopped.
    let is_over = Arc::new(AtomicBool::new(false));
    for signal in ENDS {
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&is_over))?;
    }
    let handle = signals.handle();
    let launcher = rustix::process::Pid::from_child(child);
    let forwarder = std::thread::spawn(move || {
        for _ in signals.forever().filter(|&signal| signal == SIGTERM) {
            let _ = rustix::process::kill_process(launcher, rustix::process::Signal::TERM);
        }
    });
    let status = child.wait();
    is_over.store(true, Ordering::SeqCst);
    handle.close();
    let _ = forwarder.join();
    Ok(status?)
}

/// The launcher's own status; 128 + n when signal n ended it, as shells say it.
pub fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(u8::MAX)
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
