//! `ampl-replay`: starts the replayer of the launcher's MPI, `libexec/ampl-replay-openmpi` or `-mpich`.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use ampl_reader::Run;
use ampl_replay::content::Content;
use ampl_replay::launcher::{Launched, Mpi};
use ampl_replay::say;

/// Library beside the replayers: see `masks.c`.
const MASKS: &str = "libampl-replay-masks.so";

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let Err(error) = start(arguments);
    say(&error);
    ExitCode::from(2)
}

/// Becomes the replayer; returns only with an error.
fn start(arguments: Vec<OsString>) -> Result<std::convert::Infallible, String> {
    if let [option, replay, run] = &arguments[..]
        && option == "--compare"
    {
        std::process::exit(i32::from(!compare(Path::new(replay), Path::new(run))?));
    }
    let (asked, arguments) = asked_mpi(arguments)?;
    let launched = Launched::of(&|name| std::env::var(name).ok());
    let directory = libexec()?;
    let path = |mpi: Mpi| directory.join(format!("ampl-replay-{}", mpi.name()));
    let built: Vec<Mpi> = Mpi::ALL.into_iter().filter(|&mpi| path(mpi).is_file()).collect();
    let mpi = match (asked.or(launched.and_then(|process| process.mpi)), &built[..]) {
        (Some(mpi), _) => mpi,
        (None, [only]) => *only,
        // A run by hand, to read the help or the errors.
        (None, [first, ..]) if launched.is_none() => *first,
        (None, []) => return Err(format!("there is no replayer in {}", directory.display())),
        (None, _) => return Err("this launcher starts any MPI: add --mpi openmpi or --mpi mpich".to_owned()),
    };
    if !built.contains(&mpi) {
        let file = path(mpi);
        return Err(format!("the replayer for {mpi} is not installed: {} is missing", file.display()));
    }
    let mut command = Command::new(path(mpi));
    command.args(arguments);
    let masks = directory.join(MASKS);
    if masks.is_file() {
        // Behind the tool that records the replay, if there is one.
        let mut preload = std::env::var_os("LD_PRELOAD").unwrap_or_default();
        if !preload.is_empty() {
            preload.push(":");
        }
        preload.push(masks);
        command.env("LD_PRELOAD", preload);
    }
    Err(format!("{}: {}", path(mpi).display(), command.exec()))
}

/// Prints the contents of all ranks of a run and of its recorded replay; false where they differ.
fn compare(replay: &Path, run: &Path) -> Result<bool, String> {
    let open = |path: &Path| Run::open(path).map_err(|error| error.to_string());
    let (run, replay) = (open(run)?, open(replay)?);
    let content = |of: &Run, rank: u32| -> Result<Content, String> {
        let rank = of.rank(rank).ok_or_else(|| format!("nothing is recorded of rank {rank}"))?;
        Content::of(&rank, of.info().abi_family())
    };
    let mut differ = 0;
    println!("{:>8} {:>12} {:>18} {:>18}", "rank", "calls", "run", "replay");
    for rank in 0..run.info().ranks.max(replay.info().ranks) {
        let (own, other) = (content(&run, rank)?, content(&replay, rank)?);
        let word = if own == other { "equal" } else { "DIFFERENT" };
        differ += u32::from(own != other);
        println!("{rank:>8} {:>12}   {:016x}   {:016x} {word}", own.calls, own.hash, other.hash);
    }
    match differ {
        0 => println!("All ranks have equal contents, up to buffers and call sites."),
        _ => println!("{differ} ranks have different contents."),
    }
    Ok(differ == 0)
}

/// The MPI that `--mpi` names, and the other arguments.
fn asked_mpi(arguments: Vec<OsString>) -> Result<(Option<Mpi>, Vec<OsString>), String> {
    let (mut asked, mut others) = (None, Vec::new());
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let text = argument.to_string_lossy().into_owned();
        let name = match text.strip_prefix("--mpi") {
            Some("") => arguments.next().unwrap_or_default().to_string_lossy().into_owned(),
            Some(value) if value.starts_with('=') => value[1..].to_owned(),
            _ => {
                others.push(argument);
                continue;
            }
        };
        let mpi = Mpi::of_name(&name);
        asked = Some(mpi.ok_or_else(|| format!("--mpi {name}: it is openmpi or mpich"))?);
    }
    Ok((asked, others))
}

/// `libexec` beside the directory of this program.
fn libexec() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| format!("its own path is not known: {error}"))?;
    let prefix = own.parent().and_then(Path::parent);
    Ok(prefix.ok_or("its own path has no directory")?.join("libexec"))
}
