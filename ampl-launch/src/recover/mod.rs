//! The trace of a job that did not finalize, from its ranks' journals.

mod age;
mod alive;
mod collect;
mod elsewhere;
pub mod free;
mod home;

pub use collect::read;
pub use home::node;

use std::collections::BTreeMap;
use std::fs;
use std::io::BufWriter;
use std::io::ErrorKind::NotFound;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ampl_core::nodes::NODES;
use ampl_core::units::RankSet;
use ampl_report::summary::done_less;
use ampl_trace::Trace;
use ampl_trace::permissions::{as_directory, create_directory, create_file};

use crate::failure::{Failure, Kind};
use crate::launcher::Flavour;
use ampl_reader::directory::nodes::{self, Home};
use ampl_reader::directory::{self, Holder, TRACE, host};
use ampl_report::human::{bytes, count, plural};
use collect::Silent;

/// Time for processes to end after their launcher has killed them.
const ENDING: Duration = Duration::from_secs(3);

/// Writes the trace of `run` to `output`, else into the run directory, from its journals and those in `others`; reports
/// what it lacks, and removes the journals unless they are to be `kept`. Without `others`, the journals in the memory of
/// other hosts come home first, by the command `via` where one is given.
///
/// # Errors
/// No journal is there, none can be read, the job still runs, or the file cannot be written.
pub fn recover(
    run: &Path,
    others: &[PathBuf],
    output: Option<&Path>,
    kept: bool,
    via: Option<&str>,
) -> Result<(), Failure> {
    let file = output.map_or_else(|| run.join(TRACE), Path::to_owned);
    if output.is_none() && file.exists() && directory::read(&file).is_ok_and(|trace| trace.complete) {
        notice!("ampl: {} is whole: there is nothing to recover", file.display());
        return Ok(());
    }
    let here = alive::have_ended(run)?;
    // Of a run directory that was removed, or could not be made, journals in this node's memory may be left.
    if output.is_none() && !run.exists() && !directory::own_journals(run).is_empty() {
        create_directory(run)?;
    }
    // Those who name journals have fetched them.
    let mut silent = match others.is_empty() {
        true => collect::bring(run, via, kept || output.is_some())?,
        false => collect::unasked(run, "journals were named instead"),
    };
    if !here {
        silent.push(Silent {
            host: host(),
            ranks: nodes::of(run).remove(&host()).into_iter().flatten().map(|rank| rank.rank).collect(),
            why: "its processes have numbers of another namespace".into(),
        });
    }
    collect::refuse_fresh(run, &silent)?;
    let there = run.join(TRACE).exists();
    let mut trace = directory::from_journals(run, others).map_err(|error| {
        if !(there && error.is_absent()) {
            return Failure::from(error);
        }
        let fix = format!("see what there is in its {TRACE} with 'ampl info'");
        Failure::message(Kind::NotFound, "no journals are left to recover it from", run.display(), fix)
    })?;
    let lacking = elsewhere_of(run, &trace);
    store(&mut trace, &file)?;
    let less = done_less(&trace, directory::plan(&trace.run).as_ref());
    trace.run.recovered.iter().chain(&less).for_each(|what| notice!("ampl: {what}"));
    let rest = match kept || output.is_some() {
        true => "the journals are still there".into(),
        false => release(run, &trace, &file, &lacking, &silent)?,
    };
    elsewhere::said(&lacking, run, None).iter().for_each(|line| notice!("{line}"));
    notice!("ampl: {rest}; see what there is with 'ampl info {}'", file.display());
    Ok(())
}

/// Recovers `run`, unless it is whole, after its launcher has ended: writes the trace from its journals, frees the memory,
/// and reports all of it.
pub fn after_launch(run: &Path, launcher: Option<Flavour>) {
    if !run.join(TRACE).exists() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        directory::note_end(run, now.map_or(0, |since| since.as_nanos() as u64));
    }
    if directory::is_whole(run) {
        return;
    }
    let files = directory::original_journals(run);
    if files.is_empty() {
        let others = nodes::elsewhere(run, &host(), |_| false);
        elsewhere::said(&others, run, launcher).iter().for_each(|line| notice!("{line}"));
        return;
    }
    if let Some(Holder { rank, pid, .. }) = alive::wait(&files, ENDING) {
        notice!(
            "ampl: the launcher is back, and rank {rank} still runs (process {pid}): 'ampl recover {}' when it has ended",
            run.display()
        );
        return;
    }
    let silent = collect::unasked(run, "not asked");
    wait_for_copies(run, &silent);
    let recovered = directory::from_journals(run, &[]).map_err(Failure::from).and_then(|mut trace| {
        let lacking = elsewhere_of(run, &trace);
        let file = run.join(TRACE);
        store(&mut trace, &file)?;
        let rest = release(run, &trace, &file, &lacking, &silent)?;
        notice!("ampl: the job did not come to its end: {rest}");
        elsewhere::said(&lacking, run, launcher).iter().for_each(|line| notice!("{line}"));
        Ok(())
    });
    if let Err(error) = recovered {
        notice!("{error}");
    }
}

/// Waits until the last copies of `hosts` that are copied are there, a moment at most.
fn wait_for_copies(run: &Path, hosts: &[Silent]) {
    let copied = |silent: &&Silent| nodes::home(run, &silent.host).is_dir();
    let mut hosts = hosts.iter().filter(copied).peekable();
    let end = Instant::now() + ENDING;
    while let Some(next) = hosts.peek() {
        if nodes::state(run, &next.host) != Home::Copies {
            hosts.next();
        } else if Instant::now() >= end {
            return;
        } else {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Other hosts whose ranks are not in `trace`.
fn elsewhere_of(run: &Path, trace: &Trace) -> BTreeMap<String, RankSet> {
    nodes::elsewhere(run, &host(), |rank| trace.rank(rank).is_some())
}

/// Writes `trace` to `file`, and reports it.
fn store(trace: &mut Trace, file: &Path) -> Result<(), Failure> {
    trace.run.recovered = lacking(trace);
    write(trace, file).map_err(|error| {
        let fix = "name another file with -o";
        Failure::message(Kind::Other, format!("cannot write the trace: {error}"), file.display(), fix)
    })?;
    let size = fs::metadata(file).map_or(0, |metadata| metadata.len());
    let calls: u64 = trace.ranks.iter().flat_map(|rank| &rank.process.calls).map(|&(_, calls)| calls).sum();
    notice!(
        "ampl: {} of {}, which made {}, recovered into {} ({})",
        count(trace.ranks.len() as u64),
        plural(trace.run.ranks.into(), "rank"),
        plural(calls, "call"),
        file.display(),
        bytes(size as f64)
    );
    Ok(())
}

/// Removes the run's journals once `file` reads as `trace`. Where ranks of other hosts are `lacking`, or hosts are
/// `silent` whose processes may run, the journals in this node's memory are moved to the run directory. Returns a
/// message on it.
fn release(
    run: &Path,
    trace: &Trace,
    file: &Path,
    lacking: &BTreeMap<String, RankSet>,
    silent: &[Silent],
) -> Result<String, Failure> {
    let again = directory::read(file)?;
    let same = again.ranks.len() == trace.ranks.len() && again.function_calls() == trace.function_calls();
    if !same || !again.damage.is_empty() || !trace.damage.is_empty() {
        return Ok("the journals are still there, as not all of them could be read".into());
    }
    let is_open = |silent: &&Silent| nodes::state(run, &silent.host) == Home::Copies;
    let open: Vec<&Silent> = silent.iter().filter(is_open).collect();
    if lacking.is_empty() && open.is_empty() {
        free::journals(&directory::own_journals(run));
        let gone = fs::remove_dir_all(run.join(NODES));
        if !directory::own_journals(run).is_empty() || gone.is_err_and(|error| error.kind() != NotFound) {
            return Ok("not all of its journals could be removed".into());
        }
        let hosts: Vec<&str> = silent.iter().map(|silent| &*silent.host).collect();
        return Ok(match &hosts[..] {
            [] => "its journals have been removed".into(),
            hosts => format!(
                "its journals here have been removed, those in the memory of {} have not: free it there with \
                 'ampl doctor --clean'",
                hosts.join(", ")
            ),
        });
    }
    if open.iter().all(|silent| silent.host != host()) {
        home::bring(run, &directory::node_journals(run), false)?;
    }
    let until = match &open[..] {
        [] => "those of the other hosts are".into(),
        open => {
            let hosts: Vec<&str> = open.iter().map(|silent| &*silent.host).collect();
            format!("{} answers 'ampl recover'", hosts.join(", "))
        }
    };
    Ok(format!("its journals are in the run directory until {until}, and take no memory of this node"))
}

/// Gaps in a trace of journals, a sentence each.
fn lacking(trace: &Trace) -> Vec<String> {
    let mut lacking = Vec::new();
    let present = trace.ranks.len() as u64;
    let missing = u64::from(trace.run.ranks).saturating_sub(present);
    if missing > 0 {
        let here = |rank: u32| trace.rank(rank).is_some();
        let names = (0..trace.run.ranks).filter(|&rank| !here(rank)).take(8).map(|rank| rank.to_string());
        let names: Vec<String> = names.collect();
        let more = if missing > names.len() as u64 { ", …" } else { "" };
        lacking.push(format!(
            "{} left no journal here ({}{more}): journals of other nodes can be named behind the run",
            plural(missing, "rank"),
            names.join(", ")
        ));
    }
    let ended = trace.ranks.iter().filter(|rank| rank.process.finalized).count() as u64;
    if ended < present {
        lacking.push(format!(
            "{} did not reach MPI_Finalize: of each, the summaries of its last windows are missing, and the call it was in is \
             not among its calls ('ampl info' names it)",
            plural(present - ended, "rank")
        ));
    }
    lacking.extend(trace.damage.iter().map(|damage| match damage.rank {
        Some(rank) => format!("rank {rank}: {}", damage.what),
        None => damage.what.clone(),
    }));
    lacking
}

/// Writes `trace` to `file`, which appears only when it is whole.
fn write(trace: &Trace, file: &Path) -> Result<(), Box<dyn std::error::Error>> {
    if file.parent().is_some_and(|parent| !parent.as_os_str().is_empty() && !parent.is_dir()) {
        let fix = "make it, or name another file with -o";
        return Err(Failure::message(Kind::NotFound, "no such directory", file.display(), fix).into());
    }
    let part = file.with_extension("ampl.part");
    directory::write(trace, BufWriter::new(create_file(&part)?))?;
    fs::rename(&part, file)?;
    as_directory(file);
    Ok(())
}
