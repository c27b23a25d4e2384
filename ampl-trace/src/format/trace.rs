//! A whole trace file: its sections, and the trace that they make.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Write};

use ampl_core::message::Decision;

use super::bundle::{Bundler, most_bytes};
use super::file::TraceFile;
use super::gaps::Counted;
use super::kind::Kind;
use super::processes;
use super::sections::{Part, Unsqueezed, run_parts, squeezed, unsqueezed};
use super::v1;
use crate::census::Census;
use crate::error::ReadError;
use crate::model::{Process, RunInfo, Sizes, Trace};
use crate::structure::{CallSites, JobStructure};
use crate::totals::Totals;

/// Writes a trace file front to back; memory grows with the number of ranks, by the facts about a process.
#[derive(Debug)]
pub struct Writer<W> {
    file: v1::Writer<W>,
    processes: Vec<u8>,
    /// The section of the totals.
    totals: Vec<u8>,
    /// Sections of the latest ranks that are small, by their kind.
    bundles: BTreeMap<Kind, Bundler>,
}

impl<W: Write> Writer<W> {
    /// A writer that has written the header.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn new(out: W) -> io::Result<Self> {
        Ok(Self {
            file: v1::Writer::new(out)?,
            processes: Vec::new(),
            totals: Vec::new(),
            bundles: BTreeMap::new(),
        })
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
        self.totals = squeezed(&totals.encode());
        self.file.section(Kind::Aggregates, None, &self.totals)
    }

    /// Appends what the ranks' rounded summaries lack.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn census(&mut self, census: &Census) -> io::Result<()> {
        if census.is_empty() { Ok(()) } else { self.file.section(Kind::Census, None, &census.encode()) }
    }

    /// Appends the parts of one rank. Facts about its process wait for those of all others, small parts for those of the
    /// next ranks: ranks in ascending order take the fewest bytes.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn rank(&mut self, parts: &[Part<'_>]) -> io::Result<()> {
        let calls = || {
            let facts = parts.iter().find(|part| part.kind == Kind::Processes)?;
            Some(serde_json::from_slice::<Process>(&facts.payload).ok()?.calls)
        };
        for part in parts {
            if part.kind == Kind::Processes {
                self.processes.extend_from_slice(&part.payload);
                self.processes.push(b'\n');
            } else if let Some(rank) = part.rank.filter(|_| part.payload.len() <= most_bytes(part.kind)) {
                self.bundle(part.kind, rank, &part.payload, calls)?;
            } else {
                self.file.section(part.kind, part.rank, &part.payload)?;
            }
        }
        Ok(())
    }

    /// Adds a section of a rank to the bundle of its kind, or to a new one where it does not fit in.
    /// `calls` are those of the rank's process by function, where they are known.
    fn bundle(
        &mut self,
        kind: Kind,
        rank: u32,
        payload: &[u8],
        calls: impl Fn() -> Option<Counted>,
    ) -> io::Result<()> {
        if self.bundles.get_mut(&kind).is_some_and(|bundle| bundle.add(rank, payload, &calls)) {
            return Ok(());
        }
        if let Some(full) = self.bundles.remove(&kind) {
            self.put_bundle(full)?;
        }
        if let Some(mut bundle) = Bundler::new(kind, payload)
            && bundle.add(rank, payload, &calls)
        {
            self.bundles.insert(kind, bundle);
            return Ok(());
        }
        self.file.section(kind, Some(rank), payload)
    }

    fn put_bundle(&mut self, bundle: Bundler) -> io::Result<()> {
        match bundle.finish() {
            Some((kind, first, payload)) => self.file.section(kind, Some(first), &payload),
            None => Ok(()),
        }
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
        for bundle in std::mem::take(&mut self.bundles).into_values() {
            self.put_bundle(bundle)?;
        }
        let documents = self.processes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        let facts: Result<Vec<Process>, _> = documents.map(serde_json::from_slice).collect();
        // Lines that came from elsewhere and are no facts stay as they are.
        let payload = match facts {
            Ok(facts) => {
                let totals = || Totals::decode(&unsqueezed(&self.totals)?);
                processes::encode(&facts, || totals().filter(|_| !self.totals.is_empty()))
            }
            Err(_) => squeezed(&self.processes),
        };
        self.file.section(Kind::Processes, None, &payload)?;
        self.file.finish()
    }
}

/// The trace in `bytes`, with what could not be read listed in [`Trace::damage`].
///
/// # Errors
/// [`ReadError`] when it is not a trace file, has another version, or names functions that this ampl has otherwise.
pub fn read(bytes: &[u8]) -> Result<Trace, ReadError> {
    TraceFile::new(bytes)?.into_trace()
}

/// Gives every rank the call sites and modules that the structure has for it.
pub fn place_sites(trace: &mut Trace) {
    let Trace { ranks, structure, .. } = trace;
    for group in structure.groups() {
        let CallSites { modules, sites } = group.table();
        for number in group.ranks() {
            if let Ok(index) = ranks.binary_search_by_key(&number, |rank| rank.process.rank) {
                (ranks[index].modules, ranks[index].sites) = (modules.clone(), sites.clone());
            }
        }
    }
}

/// Sets completeness, and the number of ranks where the run has none.
pub fn finish(trace: &mut Trace) {
    let present = trace.ranks.len() as u32;
    if trace.run.ranks == 0 {
        trace.run.ranks = present.max(trace.structure.rank_count());
    }
    // A trace without ranks is not complete: their number is not known.
    let all =
        present > 0 && present == trace.run.ranks && trace.ranks.iter().all(|rank| rank.process.finalized);
    trace.complete &= all;
}

/// Passes the JSON documents in `payload`, one a line, to `take`; `None` if it is malformed.
pub(super) fn lines<T: serde::de::DeserializeOwned>(payload: &[u8], mut take: impl FnMut(T)) -> Option<()> {
    // Line by line: the lines of 100,000 processes are 30 MB.
    let mut text = BufReader::with_capacity(1 << 16, Unsqueezed::new(payload)?);
    let mut line = Vec::new();
    while text.read_until(b'\n', &mut line).ok()? > 0 {
        let document = line.strip_suffix(b"\n").unwrap_or(&line);
        if !document.is_empty() {
            take(serde_json::from_slice(document).ok()?);
        }
        line.clear();
    }
    Some(())
}

pub(super) fn account(sizes: &mut Sizes, kind: Kind, bytes: u64) {
    let of_kind = match kind {
        Kind::Structure => &mut sizes.structure,
        Kind::Times | Kind::Weights | Kind::WeightsOfRanks => &mut sizes.timing,
        Kind::Aggregates => &mut sizes.aggregates,
        Kind::Addresses | Kind::AddressesOfRanks | Kind::Buffers | Kind::BuffersOfRanks => {
            &mut sizes.addresses
        }
        Kind::Gaps | Kind::GapsOfRanks => &mut sizes.gaps,
        Kind::Windows | Kind::WindowsOfRanks | Kind::Census => &mut sizes.summaries,
        Kind::Metadata => &mut sizes.metadata,
        Kind::Run | Kind::Processes | Kind::Decisions | Kind::Contents => &mut sizes.other,
    };
    *of_kind += bytes;
}
