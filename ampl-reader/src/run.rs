//! A run that is read on demand.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use ampl_core::message::Decision;
use ampl_core::mpi::{FUNCTION_COUNT, Function};
use ampl_core::plan::Plan;
use ampl_trace::communicators::Communicators;
use ampl_trace::decode::{Calls, Events};
use ampl_trace::format::TraceFile;
use ampl_trace::model::{Process, Sizes};
use ampl_trace::structure::{JobStructure, RankStructure};
use ampl_trace::time_index::RankIndex;
use ampl_trace::totals::Totals;
use ampl_trace::{Damage, RankTrace, RunInfo, Trace};
use memmap2::Mmap;

use crate::directory;
use crate::error::OpenError;
use crate::gaps::Recorded;
use crate::sites::Symbols;
use crate::time_index::{self, TimeIndex};

/// A run of a job that has ended, is under way, or has died.
#[derive(Debug)]
pub struct Run {
    source: Source,
    info: RunInfo,
    comms: OnceLock<Communicators>,
    index: Option<TimeIndex>,
    /// Damage of ranks' own sections that have been read.
    of_ranks: Mutex<Vec<Damage>>,
}

#[derive(Debug)]
enum Source {
    /// A trace file whose list of sections is whole.
    File(Box<TraceFile<Mmap>>),
    /// Journals, or a file that was searched for sections: all of it has been read.
    Read(Box<Trace>),
}

/// One rank of a run: facts, windows, times and calls.
#[derive(Debug)]
pub struct Rank<'a> {
    /// Facts, windows, call sites, times.
    pub trace: RankTrace,
    /// Signatures and grammar of each thread.
    pub structure: RankStructure,
    run: &'a Run,
}

impl Rank<'_> {
    /// Iterator over the calls, thread by thread in program order, with constant memory. Communicators have the names
    /// that all ranks agree on.
    pub fn calls(&self) -> Calls<'_> {
        Calls::naming(&self.structure, &self.trace, self.run.communicators())
    }

    /// As [`calls`](Self::calls), with what stands between them: gaps, which are calls that were counted and not
    /// recorded, and entries and exits of regions. [`Symbols::region`] names regions.
    pub fn events(&self) -> Events<'_> {
        Events::naming(&self.structure, &self.trace, self.run.communicators())
    }
}

impl From<Trace> for Run {
    /// A run that has been read whole.
    fn from(trace: Trace) -> Self {
        Self::of(Source::Read(trace.into()))
    }
}

impl Run {
    /// All of the run; `None` where it is a file that is read as it is asked for.
    pub fn whole(&self) -> Option<&Trace> {
        match &self.source {
            Source::Read(trace) => Some(trace),
            Source::File(_) => None,
        }
    }

    /// Opens the run at `path`: a run directory, its trace file, or a directory of journals.
    ///
    /// # Errors
    /// [`OpenError`] when nothing of a run is there, or none of it can be read.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let source = match directory::trace_file(path)?.map(|file| directory::open_file(&file)) {
            Some(Ok(file)) if is_readable(&file, path) && file.damage().is_empty() => {
                Source::File(file.into())
            }
            _ => Source::Read(directory::read(path)?.into()),
        };
        Ok(Self::of(source))
    }

    /// Place of the index of the times of the run at `path`, and the identity that it must have; `None` where the run
    /// has no trace file that is whole.
    pub fn index_place(&self, path: &Path) -> Option<(PathBuf, u64)> {
        let Source::File(file) = &self.source else { return None };
        Some((time_index::place(&directory::trace_file(path).ok()??), time_index::identity(file)))
    }

    /// Takes the index of the times of the run at `path`, where it has none yet and there is one; true where it has one then.
    pub fn take_index(&mut self, path: &Path) -> bool {
        if self.index.is_some() {
            return true;
        }
        let place = self.index_place(path);
        self.index = place.and_then(|(place, identity)| TimeIndex::open(&place, identity));
        self.index.is_some()
    }

    /// Takes `index`, of this run.
    pub fn set_index(&mut self, index: TimeIndex) {
        self.index = Some(index);
    }

    /// Facts, windows and calls of `rank`, with the index of its times in their place where there is one.
    pub fn indexed_rank(&self, rank: u32) -> Option<(Rank<'_>, Option<RankIndex<'_>>)> {
        let index = self.index.as_ref().and_then(|index| index.rank(rank));
        let trace = self.rank_trace_with(rank, index.is_none(), true)?;
        let structure = self.structure().rank(rank).unwrap_or_default();
        Some((Rank { trace, structure, run: self }, index))
    }

    /// True where the index of the times of `rank` has classes of its calls. None of these is an edge of a region.
    pub fn has_classes(&self, rank: u32) -> bool {
        self.index.as_ref().is_some_and(|index| index.has_classes(rank))
    }

    /// As [`indexed_rank`](Self::indexed_rank) where [the index has classes](Self::has_classes): these stand for the
    /// signatures, which have no sequence. Nothing is read of the structure of all ranks.
    pub fn class_rank(&self, rank: u32) -> Option<(Rank<'_>, RankIndex<'_>)> {
        let index = self.index.as_ref()?.rank(rank)?;
        let classes = index.classes()?;
        let mut trace = self.rank_trace_with(rank, false, false)?;
        (trace.modules, trace.sites) = (classes.modules.clone(), classes.sites.clone());
        let structure = classes.structure(rank);
        Some((Rank { trace, structure, run: self }, index))
    }

    fn of(source: Source) -> Self {
        let info = match &source {
            Source::Read(trace) => trace.run.clone(),
            Source::File(file) => {
                let mut info = file.run().clone();
                if info.ranks == 0 {
                    let present = file.ranks().len() as u32;
                    info.ranks = present.max(file.structure().map_or(0, JobStructure::rank_count));
                }
                info
            }
        };
        Self { source, info, comms: OnceLock::new(), index: None, of_ranks: Mutex::default() }
    }

    /// Facts about the run.
    pub fn info(&self) -> &RunInfo {
        &self.info
    }

    /// The plan that the job agreed on; `None` where its configuration cannot be read.
    pub fn plan(&self) -> Option<Plan> {
        directory::plan(&self.info)
    }

    /// Functions that the run calls and of whose counts it has means only: see `trace.values`.
    pub fn aggregated(&self) -> Vec<Function> {
        if self.plan().is_none_or(|plan| plan.config.trace.exact_values) {
            return Vec::new();
        }
        let processes = self.ranks().into_iter().filter_map(|rank| self.process(rank));
        let called = processes.flat_map(|process| process.calls.iter().filter(|(_, calls)| *calls > 0));
        let known = called.filter(|(function, _)| usize::from(*function) < FUNCTION_COUNT);
        let functions: BTreeSet<Function> = known.map(|(function, _)| Function(*function)).collect();
        functions.into_iter().filter(|function| function.counts_ranks()).collect()
    }

    /// The calls of all ranks.
    pub fn structure(&self) -> &JobStructure {
        static NONE: OnceLock<JobStructure> = OnceLock::new();
        match &self.source {
            // Where there is an index it is read as late as here, and may be damaged.
            Source::File(file) => file.structure().unwrap_or(NONE.get_or_init(JobStructure::default)),
            Source::Read(trace) => &trace.structure,
        }
    }

    /// Exact totals over all ranks.
    pub fn totals(&self) -> &Totals {
        match &self.source {
            Source::File(file) => file.totals(),
            Source::Read(trace) => &trace.totals,
        }
    }

    /// The client's decisions, in order.
    pub fn decisions(&self) -> &[Decision] {
        match &self.source {
            Source::File(file) => file.decisions(),
            Source::Read(trace) => &trace.decisions,
        }
    }

    /// Bytes of the trace file by what they hold.
    pub fn sizes(&self) -> Sizes {
        match &self.source {
            Source::File(file) => file.sizes(),
            Source::Read(trace) => trace.sizes,
        }
    }

    /// The ranks that left something, ascending.
    pub fn ranks(&self) -> Vec<u32> {
        match &self.source {
            Source::File(file) => file.ranks(),
            Source::Read(trace) => trace.ranks.iter().map(|rank| rank.process.rank).collect(),
        }
    }

    /// Facts about the process of `rank`.
    pub fn process(&self, rank: u32) -> Option<&Process> {
        match &self.source {
            Source::File(file) => file.process(rank),
            Source::Read(trace) => trace.rank(rank).map(|rank| &rank.process),
        }
    }

    /// Windows, times and places of `rank`; `None` where it left nothing. Reads no section of another rank.
    pub fn rank_trace(&self, rank: u32) -> Option<RankTrace> {
        self.rank_trace_with(rank, true, true)
    }

    /// As [`rank_trace`](Self::rank_trace), without times and call sites where these can be left out.
    pub fn rank_windows(&self, rank: u32) -> Option<RankTrace> {
        self.rank_trace_with(rank, false, false)
    }

    fn rank_trace_with(&self, rank: u32, times: bool, sites: bool) -> Option<RankTrace> {
        match &self.source {
            Source::File(file) => {
                let (found, damage) = file.rank_with(rank, times, sites)?;
                self.of_ranks.lock().unwrap_or_else(PoisonError::into_inner).extend(damage);
                Some(found)
            }
            Source::Read(trace) => trace.rank(rank).cloned(),
        }
    }

    /// Facts, windows, times and calls of `rank`; `None` where it left nothing. Reads no section of another rank.
    pub fn rank(&self, rank: u32) -> Option<Rank<'_>> {
        let trace = self.rank_trace(rank)?;
        let structure = self.structure().rank(rank).unwrap_or_default();
        Some(Rank { trace, structure, run: self })
    }

    /// The communicators that the program made; computed once.
    pub fn communicators(&self) -> &Communicators {
        let process = |rank: u32| self.process(rank);
        self.comms.get_or_init(|| Communicators::of_job(&self.info, self.structure(), &process))
    }

    /// Recorded calls of all ranks, and what is missing, by reason; call sites are named by `symbols`.
    pub fn recorded(&self, symbols: &mut Symbols) -> Recorded {
        let mut found = Recorded::default();
        let calls = (!self.info.has_gaps).then(|| self.structure().function_calls());
        for rank in self.ranks().into_iter().filter_map(|rank| self.rank_trace(rank)) {
            found.add(&rank, calls.as_ref(), Some(symbols));
        }
        found
    }

    /// Damage of what has been read so far.
    pub fn damage(&self) -> Vec<Damage> {
        match &self.source {
            Source::File(file) => {
                let mut damage = file.damage();
                for found in self.of_ranks.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                    if !damage.contains(found) {
                        damage.push(found.clone());
                    }
                }
                damage
            }
            Source::Read(trace) => trace.damage.clone(),
        }
    }
}

/// True where this version can read the structure of `file`, of the run at `path`. An index was made from it by this
/// version: where there is one, nothing is read.
fn is_readable(file: &TraceFile<Mmap>, path: &Path) -> bool {
    let place = directory::trace_file(path).ok().flatten().map(|file| time_index::place(&file));
    let index = place.and_then(|place| TimeIndex::open(&place, time_index::identity(file)));
    index.is_some() || file.structure().is_ok()
}
