//! `ampl-replay`: starts the replayer of the launcher's MPI, `libexec/ampl-replay-openmpi` or `-mpich`.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use ampl_replay::launcher::{Launched, Mpi};
use ampl_replay::say;

/// Library beside the replayers: see `masks.c`.
const MASKS: &str = "libampl-replay-masks.so";

/// Options of the replayer whose value is the next argument.
const WITH_VALUE: [&str; 6] =
    ["--scale-compute", "--scratch", "--stall", "--steps", "--timing", "--wildcards"];

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let Err(error) = start(arguments);
    say(&error);
    ExitCode::from(2)
}

/// Becomes the replayer; returns only with an error.
fn start(arguments: Vec<OsString>) -> Result<std::convert::Infallible, String> {
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
    if let Some(marker) = marker(&arguments)? {
        command.args(["--step-marker", &marker]);
    }
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

/// The call that begins each step, by `ampl timesteps`, where `--steps` asks for it.
fn marker(arguments: &[OsString]) -> Result<Option<String>, String> {
    let asks = |argument: &OsString| {
        let text = argument.to_string_lossy();
        text == "--steps" || text.starts_with("--steps=")
    };
    if !arguments.iter().any(asks) {
        return Ok(None);
    }
    let Some(run) = run_of(arguments) else { return Ok(None) };
    let own = std::env::current_exe().map_err(|error| format!("its own path is not known: {error}"))?;
    let mut ask = Command::new(own.with_file_name("ampl"));
    // Not under the tool that records the replay.
    ask.arg("timesteps").arg(run).arg("--json").env_remove("LD_PRELOAD");
    let output =
        ask.output().map_err(|error| format!("--steps asks 'ampl timesteps', which failed: {error}"))?;
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let reason = found["reason"].as_str().map(str::to_owned);
    let marker = found["marker"].as_str().map(str::to_owned);
    let agreed = found["confidence"].as_f64() == Some(1.0);
    match marker {
        Some(marker) if agreed => Ok(Some(marker)),
        Some(_) => Err("--steps: ranks show different numbers of steps".to_owned()),
        None => Err(format!("--steps: no loop over time with a call in each step was found: {}", {
            reason.unwrap_or_else(|| "no place in the loop is called once in each step".to_owned())
        })),
    }
}

/// The argument that is neither an option nor the value of one.
fn run_of(arguments: &[OsString]) -> Option<&OsString> {
    let mut is_value = false;
    arguments.iter().find(|argument| {
        let text = argument.to_string_lossy();
        let is_run = !is_value && !text.starts_with('-');
        is_value = WITH_VALUE.contains(&&*text);
        is_run
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_is_no_value_of_an_option() {
        let of = |text: &str| {
            let all: Vec<OsString> = text.split(' ').map(OsString::from).collect();
            run_of(&all).map(|run| run.to_string_lossy().into_owned())
        };
        assert_eq!(of("--scratch /tmp --steps 20 RUN --json").as_deref(), Some("RUN"));
        assert_eq!(of("--steps=20 RUN").as_deref(), Some("RUN"));
        assert_eq!(of("--steps 20"), None);
    }
}
