//! Decisions of rank 0 alone in `MPI_Init`: the configuration, the run directory, the start of time.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use ampl_core::config::Config;
use ampl_core::mpi::constants::AbiFamily;
use ampl_core::naming::candidates;
use ampl_core::plan::{Clipping, Plan, with_programs};
use ampl_core::units::RankSet;
use ampl_trace::model::Alone;
use ampl_trace::permissions::DIRECTORY;

use super::programs::Programs;
use crate::abi::Abi;
use crate::align;
use crate::awaited::take_away;
use crate::clock;
use crate::decision;
use crate::environment;
use crate::pmpi::Pmpi;
use crate::report::message;

/// Rank 0's message to the other ranks.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Announcement {
    /// Run directory, absolute.
    pub directory: PathBuf,
    /// T0, nanoseconds since the Unix epoch.
    pub started_ns: i64,
    /// T0 on rank 0's monotonic clock.
    pub epoch: i64,
    /// Identity of that clock.
    pub clock: u64,
    /// The configuration's text.
    pub config: String,
    /// Rank 0's program.
    #[serde(default)]
    pub program: String,
    /// The job's programs, and the ranks of each as text, by their first ranks.
    #[serde(default)]
    programs: Vec<(String, String)>,
    /// True where `ampl run` prints a summary when the job is over.
    pub awaited: bool,
    /// Where the launcher started several worlds of one rank.
    pub alone: Option<Alone>,
}

impl Announcement {
    /// The job's programs and their ranks; none where they are not known.
    pub fn programs(&self) -> Programs {
        let known = self.programs.iter();
        known.map(|(program, ranks)| (program.clone(), RankSet::parse(ranks).unwrap_or_default())).collect()
    }
}

/// On rank 0 of a job of `programs`: makes the run directory; `None` with a message where that cannot be.
pub fn announce(abi: &Abi, pmpi: &Pmpi, ranks: u32, programs: Programs) -> Option<Announcement> {
    let awaited = environment::named_directory().is_some_and(|run| take_away(&run));
    if environment::is_refused() {
        return None;
    }
    let alone = environment::alone(abi.family == AbiFamily::OpenMpi, ranks);
    // Each of several worlds is a rank 0: one reports for all.
    let message = |text: &str| {
        if alone.as_ref().is_none_or(|alone| alone.number == 0) {
            message(text);
        }
    };
    let source = environment::config_text().inspect_err(|error| message(error)).ok()?;
    let mut parsed = match Config::parse(&source.text) {
        Ok((parsed, _)) => parsed,
        Err(errors) => {
            let lines = errors.0.iter().map(|error| error.render_at(&source.place(error.line, error.column)));
            message(lines.collect::<Vec<_>>().join("\n").trim_start_matches("ampl: "));
            return None;
        }
    };
    let follows = decision::decides_before(&mut parsed);
    if follows {
        message(
            "the program follows ampl's decisions (ampl_on_decision), so they come before each window: \
             sampling.selection = \"predictive\"",
        );
    }
    if let Err(error) = Plan::new(parsed.clone(), ranks) {
        let (line, column) = error.place(&source.text).unwrap_or((1, 1));
        let place = source.place(line, column);
        message(&format!("{error} ({place}): the job goes on without ampl"));
        return None;
    }
    if let Some(clipping) = Clipping::of(&with_programs(parsed.clone(), &programs), ranks) {
        let (line, column) = clipping.place(&source.text).unwrap_or((1, 1));
        message(clipping.render(&source.place(line, column)).trim_start_matches("ampl: "));
    }
    let named = environment::run_directory(&parsed.output.dir);
    let number = alone.as_ref().map_or(0, |alone| alone.number);
    let wanted = candidates(&named).nth(number as usize).unwrap_or_default();
    match make_directory(&wanted, parsed.output.mode) {
        Ok(directory) => {
            if let Some(alone) = &alone {
                message(&said_alone(alone, pmpi, &directory));
            }
            // The second program under one `ampl exec`, or another name that was given twice.
            if environment::named_directory().is_some() && directory != wanted && alone.is_none() {
                let (taken, run) = (wanted.display(), directory.display());
                message(&format!("{taken} is taken, this run is in {run}: see it with 'ampl info {run}'"));
            }
            Some(Announcement {
                directory,
                started_ns: clock::epoch_ns(),
                epoch: clock::monotonic_ns(),
                clock: align::identity(),
                config: if follows { parsed.to_toml() } else { source.text },
                program: environment::program(),
                programs: programs.into_iter().map(|(program, ranks)| (program, ranks.to_string())).collect(),
                awaited,
                alone,
            })
        }
        Err(error) => {
            message(&format!(
                "cannot make the run directory ({}): {error}; choose another with -o, the job goes on without ampl",
                wanted.display()
            ));
            None
        }
    }
}

/// Text that reports that the program's MPI and its launcher do not know each other.
fn said_alone(alone: &Alone, pmpi: &Pmpi, directory: &Path) -> String {
    let version = pmpi.library_version();
    let version = version.split([',', '\n']).next().unwrap_or_default();
    let version: Vec<&str> = version.split_whitespace().collect();
    let (library, _) = crate::resolve::module(pmpi.comm_size as usize as u64);
    let (processes, variable) = (alone.processes, &alone.variable);
    let mpi = format!("the program's MPI, {} ({library})", version.join(" "));
    let why = match alone.lost {
        true => format!(
            "the launcher's variables, {variable}={processes} among them, did not reach {mpi}; let what stands between, \
             as 'env -i' does, leave them"
        ),
        false => format!(
            "the launcher says {variable}={processes}, which {mpi}, does not hear; start the program with that MPI's own \
             launcher"
        ),
    };
    let second = candidates(directory).nth(1).unwrap_or_default();
    format!(
        "{processes} processes each run alone, as a world of one rank: {why}. Each has a run of its own: {}, {}{}",
        directory.display(),
        second.display(),
        if processes > 2 { ", and so on" } else { "" }
    )
}

/// A directory that did not exist, with the permissions `mode`: `wanted`, or with `-2`, `-3`, … behind it.
fn make_directory(wanted: &Path, mode: u32) -> io::Result<PathBuf> {
    if let Some(parent) = wanted.parent() {
        DirBuilder::new().recursive(true).mode(DIRECTORY).create(parent)?;
    }
    for name in candidates(wanted).take(1000) {
        match DirBuilder::new().mode(0o700).create(&name) {
            Ok(()) => {
                // Whatever the process's mask is. A file system without permissions has the directory all the same.
                _ = fs::set_permissions(&name, Permissions::from_mode(mode));
                return Ok(name);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("a thousand runs of that name exist"))
}
