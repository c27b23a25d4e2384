//! Makes sure that all ranks of the job have the library, before anything is sent to them.
//!
//! A collective that has begun cannot be taken back, and a rank without the library would take it for one of its own.
//! So nothing of MPI is used: each rank leaves a mark in its node's memory before it calls the next `MPI_Init`, which
//! on most systems returns nowhere before all ranks are in it. The launcher's variables give the node's number of
//! ranks. Hosts report to each other in files.

mod hosts;
mod launch;
mod marks;
mod neighbours;
mod processes;

use std::env;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ampl_core::mpi::constants::AbiFamily;
use ampl_core::naming::RANKS;
use ampl_core::units::RankSet;

use crate::abi;
use crate::awaited::take_away;
use crate::environment;
use crate::once;
use crate::report::message;
use hosts::Hosts;
use launch::OnNode;
use marks::{Decision, Marks};
use neighbours::Sight;
use processes::Stamp;

/// Longest wait for a rank without any sight: `MPI_Init` need not wait for it.
const UNSEEN: Duration = Duration::from_secs(3);
/// Longest wait for a rank that has the library, and for a host.
const LATE: Duration = Duration::from_secs(20);
/// Wait after which a rank decides by itself, because the one that should does not.
const ABANDONED: Duration = Duration::from_secs(60);
/// Time between two scans of processes.
const LOOK: Duration = Duration::from_millis(200);
/// Time after which the directory of hosts is first refreshed.
const STALE: Duration = Duration::from_secs(1);
/// Longest pause between two scans of marks.
const LONGEST: Duration = Duration::from_millis(50);

static MADE: Mutex<Option<Mark>> = Mutex::new(None);

/// This rank's mark.
#[derive(Debug)]
struct Mark {
    marks: Marks,
    name: String,
    by: Stamp,
    rank: u32,
    here: OnNode,
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}

/// Number of ranks of a world of `ranks` on the node of `rank`, which is this one, by the launcher.
pub fn ranks_on_node(ranks: u32, rank: u32) -> Option<u32> {
    [true, false].into_iter().find_map(|open_mpi| launch::on_node(&variable, open_mpi, ranks, rank))
}

impl Mark {
    fn make(rank: u32, open_mpi: bool) -> std::io::Result<Self> {
        let here = launch::here(&variable, open_mpi);
        let by = Stamp::own();
        let name = format!("{rank}-{by}");
        let at = |node: std::path::PathBuf| {
            let marks = Marks::new(node.join(format!("{RANKS}{}", here.key())));
            marks.add(&name).map(|()| marks)
        };
        let node = environment::node_directory();
        let second = env::temp_dir().join(node.file_name().unwrap_or_default());
        let marks = at(node).or_else(|_| at(second))?;
        Ok(Self { marks, name, by, rank, here })
    }

    fn leave(&self) {
        self.marks.leave(&self.name);
    }

    /// Ranks of this node that have made a mark, and are there if they are to be `checked`.
    fn present(&self, checked: bool) -> RankSet {
        let ranks = self.marks.names().into_iter().filter_map(|name| {
            let (rank, by) = name.split_once('-')?;
            let rank = rank.parse::<u32>().ok()?;
            (!checked || Stamp::parse(by)?.may_run()).then_some(rank)
        });
        ranks.collect()
    }

    /// The decision for this node, if the process that has made it is there.
    fn decision(&self) -> Option<Decision> {
        let (decision, by) = self.marks.decision()?;
        if Stamp::parse(&by).is_none_or(|by| by.may_run()) {
            return Some(decision);
        }
        // A decision of an earlier job of that name, which was killed.
        self.marks.forget_decision();
        None
    }
}

/// The process is about to call the next `MPI_Init`: it has the library, and will begin.
pub fn mark() {
    if environment::is_disabled() {
        return;
    }
    let Some(abi) = abi::detect() else { return };
    let open_mpi = abi.family == AbiFamily::OpenMpi;
    // A rank whose number is not known yet makes its mark when MPI has returned it.
    if let Some((rank, size)) = launch::rank_of(&variable, open_mpi)
        && size != Some(1)
    {
        *made() = Mark::make(rank, open_mpi).ok();
    }
}

fn made() -> std::sync::MutexGuard<'static, Option<Mark>> {
    MADE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `MPI_Init` has failed.
pub fn unmark() {
    if let Some(mark) = made().take() {
        mark.leave();
    }
}

/// All ranks have the library; while this lives others may still ask for it.
#[derive(Debug)]
pub struct Agreed {
    mark: Option<Mark>,
    hosts: Option<Marks>,
}

impl Drop for Agreed {
    fn drop(&mut self) {
        if let Some(mark) = &self.mark {
            mark.leave();
        }
        if let Some(hosts) = &self.hosts {
            hosts.remove();
        }
    }
}

/// Waits until it is known whether all `ranks` have the library, on the one called `rank`; `None`, which one of them
/// reports, where some lack it or that is unknown. The caller drops the result once all others have theirs.
pub fn agree(open_mpi: bool, ranks: u32, rank: u32) -> Option<Agreed> {
    let mark = made().take();
    if ranks <= 1 {
        if let Some(mark) = mark {
            mark.leave();
        }
        return Some(Agreed { mark: None, hosts: None });
    }
    let mark = match mark {
        Some(mark) if mark.rank == rank => mark,
        other => {
            if let Some(other) = other {
                other.leave();
            }
            match Mark::make(rank, open_mpi) {
                Ok(mark) => mark,
                Err(error) => {
                    if once::is_first("marks") {
                        message(&format!(
                            "rank {rank} cannot make files of this node's ranks ({}): {error}; {GOES_ON}",
                            environment::node_directory().display()
                        ));
                    }
                    return None;
                }
            }
        }
    };
    Roll::new(mark, open_mpi, ranks, rank).call()
}

const GOES_ON: &str = "no rank is recorded, and the job goes on without ampl";
const WAY_OUT: &str = "put 'ampl exec' before every program of the job, leave LD_PRELOAD as it sets it, link MPI as a \
                       shared library, and set AMPL_DISABLE for all ranks or for none";

/// The search for ranks with the library.
#[derive(Debug)]
struct Roll {
    mark: Mark,
    open_mpi: bool,
    ranks: u32,
    on_node: Option<u32>,
    hosts: Option<Hosts>,
    since: Instant,
    looked: Option<(Instant, RankSet, Duration)>,
    refreshed: Duration,
}

impl Roll {
    fn new(mark: Mark, open_mpi: bool, ranks: u32, rank: u32) -> Self {
        let on_node = launch::on_node(&variable, open_mpi, ranks, rank);
        let hosts = (on_node != Some(ranks))
            .then(|| Hosts::new(&launch::over_nodes(&variable, &mark.here)?, &mark.here.key()))
            .flatten();
        let (since, refreshed) = (Instant::now(), STALE);
        Self { mark, open_mpi, ranks, on_node, hosts, since, looked: None, refreshed }
    }

    fn call(mut self) -> Option<Agreed> {
        let mut pause = Duration::from_micros(50);
        let decision = loop {
            if let Some(decision) = self.mark.decision() {
                break decision;
            }
            let elapsed = self.since.elapsed();
            if elapsed > ABANDONED + LATE {
                // Nothing can be decided here. No rank counts on this one any more.
                self.mark.leave();
                break self.mark.decision().unwrap_or(Decision::Stop);
            }
            if let Some((decision, said)) = self.step(elapsed) {
                let decided = self.mark.marks.decide(&decision, &self.mark.by.to_string());
                if let (Ok(true), Some(said)) = (&decided, said) {
                    if let Some(run) = environment::named_directory() {
                        take_away(&run);
                    }
                    message(&said);
                }
                if decided.is_ok() {
                    continue;
                }
            }
            std::thread::sleep(pause);
            pause = (2 * pause).min(LONGEST);
        };
        if decision == Decision::Begin {
            // Where hosts have reported, one rank is enough to remove everything.
            let first = self.mark.rank == 0;
            let hosts = self.hosts.filter(|_| first).map(|hosts| Marks::new(hosts.place()));
            return Some(Agreed { mark: Some(self.mark), hosts });
        }
        self.mark.leave();
        None
    }

    /// Decision for this node's ranks and its message, once either is known.
    fn step(&mut self, elapsed: Duration) -> Option<(Decision, Option<String>)> {
        let all = u64::from(self.ranks);
        let mut present = self.mark.present(false);
        if present.len() == all {
            present = self.mark.present(true);
            if present.len() == all {
                return Some((Decision::Begin, None));
            }
        }
        let by = self.mark.by.to_string();
        let there = |who: &str| Stamp::parse(who).is_none_or(|who| who.may_run());
        if !self.mark.marks.speaks(&by, there) {
            let why = || {
                format!(
                    "nothing was heard of other ranks of this node for {} s; {GOES_ON}",
                    elapsed.as_secs()
                )
            };
            return (elapsed > ABANDONED).then(|| (Decision::Stop, Some(why())));
        }
        let on_node = self.on_node;
        let is_whole = |present: &RankSet| on_node.is_some_and(|number| present.len() >= u64::from(number));
        if is_whole(&present) {
            present = self.mark.present(true);
        }
        if !is_whole(&present)
            && let Some(stop) = self.missing_here(&present, elapsed)
        {
            return Some(stop);
        }
        let may_report = self.on_node.is_none() || is_whole(&present);
        if self.on_node == Some(self.ranks) || !may_report {
            return None;
        }
        self.meet(&present, elapsed)
    }

    /// Stops where a rank of this node is missing and not awaited any more.
    fn missing_here(&mut self, present: &RankSet, elapsed: Duration) -> Option<(Decision, Option<String>)> {
        if self.looked.as_ref().is_none_or(|looked| looked.0.elapsed() > LOOK) {
            let seen = neighbours::look(&self.mark.here, self.open_mpi);
            let missing: Vec<(u32, Sight)> = seen
                .into_iter()
                .filter(|&(rank, _)| !present.contains(ampl_core::units::Rank(rank)))
                .collect();
            let has = |wanted: Sight| missing.iter().any(|&(_, sight)| sight == wanted);
            let limit = if has(Sight::Lacks) {
                Duration::ZERO
            } else if has(Sight::WillCome) || has(Sight::MayCome) {
                LATE
            } else if self.on_node.is_some() {
                UNSEEN
            } else {
                Duration::MAX
            };
            let missing = match self.on_node == Some(self.ranks) {
                true => present.complement(self.ranks),
                false => missing.iter().map(|&(rank, _)| rank).collect(),
            };
            self.looked = Some((Instant::now(), missing, limit));
        }
        let (_, missing, limit) = self.looked.as_ref()?;
        if elapsed < *limit {
            return None;
        }
        // Another host may have reported before.
        let is_first = self.hosts.as_ref().is_none_or(stop_all);
        let who = match (missing.is_empty(), self.on_node) {
            (true, Some(number)) => {
                let lacking = u64::from(number).saturating_sub(present.len());
                format!("{lacking} of {number} ranks on {} run", environment::host())
            }
            _ => named(missing, self.ranks, "runs", "run"),
        };
        Some((Decision::Stop, is_first.then(|| format!("{who} without ampl: {GOES_ON}; {WAY_OUT}"))))
    }

    /// Reads the other hosts' reports, and reports that `present` are here.
    fn meet(&mut self, present: &RankSet, elapsed: Duration) -> Option<(Decision, Option<String>)> {
        let Some(hosts) = &mut self.hosts else {
            let others = present.complement(self.ranks);
            return (elapsed > UNSEEN).then(|| {
                let who = named(&others, self.ranks, "runs", "run");
                let why = format!(
                    "it cannot be known whether {who} under ampl, as the launcher does not name its job: {GOES_ON}; name a \
                     run directory with -o"
                );
                (Decision::Stop, Some(why))
            });
        };
        if let Some(decision) = hosts.decision() {
            return Some((decision, None));
        }
        let reported = hosts.report(present);
        if elapsed > self.refreshed {
            hosts.refresh();
            self.refreshed = elapsed + STALE;
        }
        let (count, ranks) = hosts.present();
        if reported && count == u64::from(self.ranks) {
            hosts.decide(&Decision::Begin);
            return hosts.decision().map(|decision| (decision, None));
        }
        if elapsed < LATE {
            return None;
        }
        let is_first = stop_all(hosts) || hosts.decision().is_none();
        let decision = hosts.decision().unwrap_or(Decision::Stop);
        let missing = ranks.complement(self.ranks);
        let who = match missing.len() + count == u64::from(self.ranks) {
            true => named(&missing, self.ranks, "runs", "run"),
            false => format!("{} of {} ranks run", u64::from(self.ranks).saturating_sub(count), self.ranks),
        };
        let place = hosts.place();
        let above = place.parent().unwrap_or(&place).display().to_string();
        let said = is_first.then(|| {
            format!(
                "after {} s nothing says that {who} under ampl: {GOES_ON}; {WAY_OUT}, and name a run directory with -o that \
                 all hosts share ({above} may not be)",
                LATE.as_secs()
            )
        });
        Some((decision, said))
    }
}

/// Reports of hosts that are to be removed when this process ends.
static LEFT: Mutex<Option<Marks>> = Mutex::new(None);

/// Stops the ranks of all hosts, unless there is another decision; returns whether this one holds. Hosts that report
/// later find it as long as this process runs.
fn stop_all(hosts: &Hosts) -> bool {
    let stopped = hosts.decide(&Decision::Stop);
    if stopped {
        *LEFT.lock().unwrap_or_else(PoisonError::into_inner) = Some(Marks::new(hosts.place()));
        // SAFETY: a function without arguments.
        unsafe { libc::atexit(at_exit) };
    }
    stopped
}

extern "C" fn at_exit() {
    if let Some(hosts) = LEFT.lock().ok().and_then(|mut left| left.take()) {
        hosts.remove();
    }
}

/// Text of `ranks`, of a job of `all`, with their verb.
fn named(ranks: &RankSet, all: u32, one: &str, several: &str) -> String {
    match ranks.len() {
        1 => format!("rank {ranks} of {all} {one}"),
        _ => format!("ranks {ranks} of {all} {several}"),
    }
}
