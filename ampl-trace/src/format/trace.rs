//! A whole trace file: its sections, and the trace that they make.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Write};

use ampl_core::message::Decision;

use super::sections::{Part, Unsqueezed, restore, run_parts, squeezed, unsqueezed};
use super::v1::{self, Kind};
use super::weights;
use crate::error::{Damage, ReadError};
use crate::model::{Process, RankTrace, RunInfo, Sizes, Trace};
use crate::structure::{CallSites, JobStructure};
use crate::totals::Totals;

/// Writes a trace file front to back; memory grows with the number of ranks, by the facts about a process.
#[derive(Debug)]
pub struct Writer<W> {
    file: v1::Writer<W>,
    processes: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// A writer that has written the header.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn new(out: W) -> io::Result<Self> {
        Ok(Self { file: v1::Writer::new(out)?, processes: Vec::new() })
    }

    /// Appends the calls of the ranks.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn structure(&mut self, structure: &JobStructure) -> io::Result<()> {
        self.file.section(Kind::Structure, None, &structure.encode())
    }

    /// Appends the totals of the calls.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn totals(&mut self, totals: &Totals) -> io::Result<()> {
        self.file.section(Kind::Aggregates, None, &squeezed(&totals.encode()))
    }

    /// Appends the parts of one rank; facts about its process wait for those of all others.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn rank(&mut self, parts: &[Part<'_>]) -> io::Result<()> {
        for part in parts {
            if part.kind == Kind::Processes {
                self.processes.extend_from_slice(&part.payload);
                self.processes.push(b'\n');
            } else {
                self.file.section(part.kind, part.rank, &part.payload)?;
            }
        }
        Ok(())
    }

    /// Appends facts about the whole run, and `decisions`.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn run(&mut self, run: &RunInfo, decisions: &[Decision]) -> io::Result<()> {
        self.rank(&run_parts(Some(run), decisions))
    }

    /// Replaces the facts about the process of the same rank.
    pub fn amend(&mut self, process: &Process) {
        let Ok(line) = serde_json::to_vec(process) else { return };
        // The first field of each.
        let own = format!("{{\"rank\":{},", process.rank);
        let mut amended = Vec::with_capacity(self.processes.len() + line.len());
        for old in self.processes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            amended.extend_from_slice(if old.starts_with(own.as_bytes()) { &line } else { old });
            amended.push(b'\n');
        }
        self.processes = amended;
    }

    /// Writes the rest, and returns `out`.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn finish(mut self) -> io::Result<W> {
        self.file.section(Kind::Processes, None, &squeezed(&self.processes))?;
        self.file.finish()
    }
}

/// The trace in `bytes`, with what could not be read listed in [`Trace::damage`].
///
/// # Errors
/// [`ReadError`] when it is not a trace file, has another version, or names functions that this ampl has otherwise.
pub fn read(bytes: &[u8]) -> Result<Trace, ReadError> {
    let (sections, damage) = v1::read(bytes)?;
    let mut trace = Trace { complete: damage.is_empty(), damage, ..Trace::default() };
    trace.sizes.total = bytes.len() as u64;
    trace.sizes.other = v1::overhead(&sections, trace.sizes.total);
    let mut ranks: BTreeMap<u32, RankTrace> = BTreeMap::new();
    for section in sections {
        account(&mut trace.sizes, section.kind, section.bytes);
        let payload = section.payload;
        let understood = match (section.kind, section.rank) {
            (Kind::Run, _) => read_run(&mut trace.run, payload),
            (Kind::Metadata, None) => read_metadata(&mut trace.run, payload),
            (Kind::Structure, None) => match JobStructure::decode(payload) {
                Ok(structure) => {
                    trace.structure = structure;
                    Some(())
                }
                Err(error @ ReadError::TableMismatch { .. }) => return Err(error),
                Err(_) => None,
            },
            (Kind::Aggregates, None) => {
                let totals = unsqueezed(payload).and_then(|bytes| Totals::decode(&bytes));
                totals.map(|totals| trace.totals = totals)
            }
            (Kind::Processes, None) => processes(payload).map(|processes| {
                for process in processes {
                    let rank = process.rank;
                    ranks.entry(rank).or_default().process = process;
                }
            }),
            (Kind::Decisions, _) => decisions(payload).map(|decisions| trace.decisions.extend(decisions)),
            (kind, Some(rank)) => restore(ranks.entry(rank).or_default(), kind, payload),
            _ => None,
        };
        if understood.is_none() {
            trace.complete = false;
            let what = format!("section {:?} is malformed", section.kind);
            trace.damage.push(Damage { rank: section.rank, what });
        }
    }
    // A rank's calls may be stored without anything else of it.
    trace.structure.ranks().for_each(|rank| _ = ranks.entry(rank).or_default());
    // A rank without facts about its process still has its number.
    ranks.iter_mut().for_each(|(&number, rank)| {
        rank.process.rank = number;
        weights::fill(rank);
    });
    trace.ranks = ranks.into_values().collect();
    place_sites(&mut trace);
    finish(&mut trace);
    Ok(trace)
}

/// Gives every rank the call sites and modules that the structure has for it.
pub fn place_sites(trace: &mut Trace) {
    for rank in &mut trace.ranks {
        if let Some(CallSites { modules, sites }) = trace.structure.sites(rank.process.rank) {
            (rank.modules, rank.sites) = (modules.clone(), sites.clone());
        }
    }
}

/// Sets completeness, and the number of ranks where the run has none.
pub fn finish(trace: &mut Trace) {
    let present = trace.ranks.len() as u32;
    if trace.run.ranks == 0 {
        trace.run.ranks = present.max(trace.structure.job());
    }
    // A trace without ranks is not complete: their number is not known.
    let all =
        present > 0 && present == trace.run.ranks && trace.ranks.iter().all(|rank| rank.process.finalized);
    trace.complete &= all;
}

/// Replaces the facts in `run`, but for its metadata, by those in `payload`; `None` if it is malformed.
pub(super) fn read_run(run: &mut RunInfo, payload: &[u8]) -> Option<()> {
    let metadata = std::mem::take(&mut run.metadata);
    let read = serde_json::from_slice(payload);
    *run = RunInfo { metadata, ..read.ok()? };
    Some(())
}

/// Adds the metadata in `payload` to `run`; `None` if it is malformed.
pub(super) fn read_metadata(run: &mut RunInfo, payload: &[u8]) -> Option<()> {
    run.metadata.update(serde_json::from_slice(&unsqueezed(payload)?).ok()?);
    Some(())
}

/// The processes in `payload`; `None` if it is malformed.
pub(super) fn processes(payload: &[u8]) -> Option<Vec<Process>> {
    lines(payload)
}

/// The decisions in `payload`; `None` if it is malformed.
pub(super) fn decisions(payload: &[u8]) -> Option<Vec<Decision>> {
    lines(payload)
}

/// The JSON documents in `payload`, one a line; `None` if it is malformed.
fn lines<T: serde::de::DeserializeOwned>(payload: &[u8]) -> Option<Vec<T>> {
    // Line by line: the lines of 100,000 processes are 30 MB.
    let mut text = BufReader::new(Unsqueezed::new(payload)?);
    let (mut all, mut line) = (Vec::new(), Vec::new());
    while text.read_until(b'\n', &mut line).ok()? > 0 {
        let document = line.strip_suffix(b"\n").unwrap_or(&line);
        if !document.is_empty() {
            all.push(serde_json::from_slice(document).ok()?);
        }
        line.clear();
    }
    Some(all)
}

pub(super) fn account(sizes: &mut Sizes, kind: Kind, bytes: u64) {
    match kind {
        Kind::Structure => sizes.structure += bytes,
        Kind::Times | Kind::Weights => sizes.timing += bytes,
        Kind::Aggregates => sizes.aggregates += bytes,
        Kind::Addresses => {
            sizes.addresses += bytes;
            sizes.other += bytes;
        }
        Kind::Gaps => {
            sizes.gaps += bytes;
            sizes.other += bytes;
        }
        Kind::Windows => {
            sizes.summaries += bytes;
            sizes.other += bytes;
        }
        Kind::Metadata => {
            sizes.metadata += bytes;
            sizes.other += bytes;
        }
        Kind::Run | Kind::Processes | Kind::Decisions | Kind::Contents => {
            sizes.other += bytes;
        }
    }
}
