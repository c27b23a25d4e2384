//! A trace file whose sections are read when they are asked for.

use std::sync::OnceLock;

use ampl_core::message::Decision;

use super::bundle::{self, Content};
use super::kind::Kind;
use super::processes;
use super::sections::{restore, unsqueezed};
use super::trace::{account, finish, lines, place_sites};
use super::v1::{Entry, Index};
use super::weights::Decoded;
use crate::census::Census;
use crate::error::{Damage, ReadError};
use crate::metadata::Metadata;
use crate::model::{Process, RankTrace, RunInfo, Sizes, Trace};
use crate::structure::{CallSites, JobStructure};
use crate::totals::Totals;

/// A trace file's bytes with an index of its sections.
///
/// Each section is read and checked when it is asked for, the sections of the whole run once. Damage of a section is
/// known from then on.
#[derive(Debug)]
pub struct TraceFile<B> {
    bytes: B,
    entries: Vec<Entry>,
    /// Rank and index of each section of a rank, ascending.
    of_ranks: Vec<(u32, u32)>,
    /// Sections of several ranks, ascending by kind and first rank.
    of_many: Vec<Many>,
    damage: Vec<Damage>,
    run: Once<RunInfo>,
    metadata: Once<Metadata>,
    structure: Once<JobStructure>,
    mismatch: OnceLock<ReadError>,
    totals: Once<Totals>,
    census: Once<Census>,
    processes: Once<Vec<Process>>,
    decisions: Once<Vec<Decision>>,
}

/// A section of several ranks, read once.
#[derive(Debug)]
struct Many {
    kind: Kind,
    first: u32,
    index: u32,
    contents: OnceLock<Result<Vec<(u32, Content)>, Damage>>,
}

/// Contents of a section of the whole run, once it has been read, and the damage found then.
type Once<T> = OnceLock<(T, Vec<Damage>)>;

impl<B: AsRef<[u8]>> TraceFile<B> {
    /// Reads the list of sections of the file in `bytes`, and which functions its structure names.
    ///
    /// # Errors
    /// [`ReadError`] when it is not a trace file or has another version.
    pub fn new(bytes: B) -> Result<Self, ReadError> {
        let Index { entries, mut damage, .. } = Index::read(bytes.as_ref())?;
        let (mut of_ranks, mut of_many) = (Vec::new(), Vec::new());
        for (number, entry) in (0..).zip(&entries) {
            match (entry.kind(), entry.rank) {
                (None, _) => damage.extend(entry.unknown()),
                (Some(kind), Some(first)) if kind.is_of_many() => {
                    of_many.push(Many { kind, first, index: number, contents: OnceLock::new() });
                }
                (Some(_), Some(rank)) => of_ranks.push((rank, number)),
                (Some(kind), None) if kind.is_of_ranks() => damage.push(malformed(kind, None)),
                _ => {}
            }
        }
        of_ranks.sort_unstable();
        of_many.sort_by_key(|many| (many.kind, many.first));
        let (run, metadata, structure, mismatch) = Default::default();
        let (totals, census, processes, decisions) = Default::default();
        Ok(Self {
            bytes,
            entries,
            of_ranks,
            of_many,
            damage,
            run,
            metadata,
            structure,
            mismatch,
            totals,
            census,
            processes,
            decisions,
        })
    }

    /// Bytes of the file.
    fn bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// Value of all sections of that `kind` of the whole run, read once into `cell`.
    fn once<'a, T: Default>(
        &'a self,
        cell: &'a Once<T>,
        kind: Kind,
        mut take: impl FnMut(&mut T, &[u8]) -> Option<()>,
    ) -> &'a T {
        let (value, _) = cell.get_or_init(|| {
            let (mut value, mut damage) = (T::default(), Vec::new());
            for entry in &self.entries {
                if entry.kind() != Some(kind) || entry.rank.is_some() {
                    continue;
                }
                match entry.payload(self.bytes()).map(|payload| take(&mut value, payload)) {
                    Ok(Some(())) => {}
                    Ok(None) => damage.push(malformed(kind, None)),
                    Err(found) => damage.push(found),
                }
            }
            (value, damage)
        });
        value
    }

    /// Facts about the run; the default where they cannot be read.
    pub fn run(&self) -> &RunInfo {
        self.once(&self.run, Kind::Run, |run, payload| {
            *run = match payload.first() {
                Some(b'{') => serde_json::from_slice(payload).ok()?,
                _ => serde_json::from_slice(&unsqueezed(payload)?).ok()?,
            };
            run.metadata = self.metadata().clone();
            Some(())
        })
    }

    /// Facts about what ran and where; none where they cannot be read.
    fn metadata(&self) -> &Metadata {
        self.once(&self.metadata, Kind::Metadata, |metadata: &mut Metadata, payload| {
            metadata.update(serde_json::from_slice(&unsqueezed(payload)?).ok()?);
            Some(())
        })
    }

    /// The calls of all ranks; none where they cannot be read.
    ///
    /// # Errors
    /// [`ReadError::TableMismatch`] when the file describes a function otherwise than this version.
    pub fn structure(&self) -> Result<&JobStructure, ReadError> {
        let structure = self.once(&self.structure, Kind::Structure, |structure, payload| {
            match JobStructure::decode(payload) {
                Ok(read) => *structure = read,
                Err(error @ ReadError::TableMismatch { .. }) => drop(self.mismatch.set(error)),
                Err(_) => return None,
            }
            Some(())
        });
        self.mismatch.get().map_or(Ok(structure), |error| Err(error.clone()))
    }

    /// Exact totals over all ranks; none where they cannot be read.
    pub fn totals(&self) -> &Totals {
        self.once(&self.totals, Kind::Aggregates, |totals, payload| {
            *totals = Totals::decode(&unsqueezed(payload)?)?;
            Some(())
        })
    }

    /// Exact totals, where the file has some that can be read.
    fn known_totals(&self) -> Option<&Totals> {
        let totals = self.totals();
        let is_whole = self.totals.get().is_some_and(|(_, damage)| damage.is_empty());
        let has_any = self.entries.iter().any(|entry| entry.kind() == Some(Kind::Aggregates));
        (is_whole && has_any).then_some(totals)
    }

    /// Differences of sums over ranks from those of their rounded summaries; none where they cannot be read.
    pub fn census(&self) -> &Census {
        self.once(&self.census, Kind::Census, |census: &mut Census, payload| {
            census.join(Census::decode(payload)?);
            Some(())
        })
    }

    /// Facts about the processes, by rank; those that can be read.
    pub fn processes(&self) -> &[Process] {
        let all: &Vec<Process> =
            self.once(&self.processes, Kind::Processes, |all: &mut Vec<Process>, payload| {
                let read = facts(payload, || self.known_totals(), |process| all.push(process));
                last_by_rank(all, |process| process.rank);
                read
            });
        all
    }

    /// The client's decisions, in order.
    pub fn decisions(&self) -> &[Decision] {
        let all: &Vec<Decision> =
            self.once(&self.decisions, Kind::Decisions, |all: &mut Vec<Decision>, payload| {
                lines(payload, |decision| all.push(decision))
            });
        all
    }

    /// Facts about the process of `rank`.
    pub fn process(&self, rank: u32) -> Option<&Process> {
        let processes = self.processes();
        let found = processes.binary_search_by_key(&rank, |process| process.rank);
        found.ok().map(|index| &processes[index])
    }

    /// The ranks that left something, ascending.
    pub fn ranks(&self) -> Vec<u32> {
        // Where all processes are known, no rank is known by its calls alone.
        let lacks = self.lacks_processes();
        let structure = lacks.then(|| self.structure().ok()).flatten();
        let called = structure.into_iter().flat_map(JobStructure::ranks);
        let processes = self.processes().iter().map(|process| process.rank);
        let own = self.own_ranks();
        let mut ranks: Vec<u32> = own.chain(processes).chain(called).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }

    /// Ranks of which there is something besides calls and facts about the process.
    fn own_ranks(&self) -> impl Iterator<Item = u32> {
        // Of files without damage the others say which ranks there are.
        let lacks = self.lacks_processes();
        let of_many = self.of_many.iter().filter(move |_| lacks).filter_map(|many| self.contents(many).ok());
        let of_many = of_many.flatten().map(|&(rank, _)| rank);
        self.of_ranks.iter().map(|&(rank, _)| rank).chain(of_many)
    }

    /// True where facts about some of the job's processes are not there.
    fn lacks_processes(&self) -> bool {
        self.processes().len() < self.run().ranks.max(1) as usize
    }

    /// Contents of a section of several ranks, ascending by rank.
    fn contents<'a>(&'a self, many: &'a Many) -> Result<&'a [(u32, Content)], &'a Damage> {
        self.contents_with(many, |rank| self.process(rank))
    }

    /// As [`contents`](Self::contents), by the facts about the process of each rank.
    fn contents_with<'a, 'b>(
        &'a self,
        many: &'a Many,
        process: impl Fn(u32) -> Option<&'b Process>,
    ) -> Result<&'a [(u32, Content)], &'a Damage> {
        let read = || {
            let of_all = |damage: Damage| Damage { rank: None, ..damage };
            let payload = self.entries[many.index as usize].payload(self.bytes()).map_err(of_all)?;
            let calls = |rank| process(rank).map(|process| process.calls.clone());
            let decoded = bundle::decode(many.kind, many.first, payload, calls);
            decoded.ok_or_else(|| malformed(many.kind, None))
        };
        many.contents.get_or_init(read).as_deref()
    }

    /// Sections of several ranks that may have something of `rank`: of each kind those that begin with the nearest rank
    /// below it, or with itself.
    fn many_of(&self, rank: u32) -> impl Iterator<Item = &Many> {
        self.of_many.chunk_by(|one, next| one.kind == next.kind).flat_map(move |of_kind| {
            let end = of_kind.partition_point(|many| many.first <= rank);
            let first = of_kind[..end].last().map(|many| many.first);
            of_kind[..end].iter().rev().take_while(move |many| Some(many.first) == first)
        })
    }

    /// Facts, windows, times and places of `rank`, and the damage of its sections; `None` where it left nothing. Reads
    /// no section of another rank.
    pub fn rank(&self, rank: u32) -> Option<(RankTrace, Vec<Damage>)> {
        self.rank_with(rank, true, true)
    }

    /// As [`rank`](Self::rank), without the times, and the sites that the structure has, unless they are wanted.
    pub fn rank_with(&self, rank: u32, times: bool, sites: bool) -> Option<(RankTrace, Vec<Damage>)> {
        let structure = sites.then(|| self.structure().ok()).flatten();
        let sites = structure.and_then(|structure| structure.sites(rank));
        let process = self.process(rank);
        let nothing = self.sections_of(rank).is_empty() && sites.is_none() && process.is_none();
        if nothing && !self.own_ranks().any(|own| own == rank) {
            return None;
        }
        let (mut found, mut damage) = (RankTrace::default(), Vec::new());
        found.process = process.cloned().unwrap_or_default();
        found.process.rank = rank;
        self.restore(&mut found, times, &mut Decoded::default(), &mut damage);
        if let Some(CallSites { modules, sites }) = sites {
            (found.modules, found.sites) = (modules.clone(), sites.clone());
        }
        Some((found, damage))
    }

    /// Rank and index of each section of `rank`.
    fn sections_of(&self, rank: u32) -> &[(u32, u32)] {
        let begin = self.of_ranks.partition_point(|&(of, _)| of < rank);
        let end = self.of_ranks.partition_point(|&(of, _)| of <= rank);
        &self.of_ranks[begin..end]
    }

    /// Adds what the sections of the rank hold to `found`, which has the facts about its process.
    /// Times are left out unless they are wanted.
    fn restore<'a>(
        &'a self,
        found: &mut RankTrace,
        times: bool,
        decoded: &mut Decoded<'a>,
        damage: &mut Vec<Damage>,
    ) {
        let rank = found.process.rank;
        let mut windows = None;
        for &(_, number) in self.sections_of(rank) {
            let entry = &self.entries[number as usize];
            // An unknown kind is damage of the file.
            let Some(kind) = entry.kind().filter(|&kind| times || kind != Kind::Times) else { continue };
            let restored = match (kind, entry.payload(self.bytes())) {
                (_, Err(other)) => {
                    damage.push(other);
                    continue;
                }
                (Kind::Windows | Kind::Weights, Ok(payload)) => {
                    decoded.windows(payload, &found.process).map(|found| windows = Some(found))
                }
                (_, Ok(payload)) => restore(found, kind, payload),
            };
            if restored.is_none() {
                damage.push(malformed(kind, Some(rank)));
            }
        }
        for many in self.many_of(rank) {
            let contents = match self.contents(many) {
                Ok(contents) => contents,
                Err(of_all) => {
                    if !damage.contains(of_all) {
                        damage.push(of_all.clone());
                    }
                    continue;
                }
            };
            let Ok(index) = contents.binary_search_by_key(&rank, |&(rank, _)| rank) else { continue };
            match &contents[index].1 {
                Content::Places(places) => found.places = places.clone(),
                Content::Buffers(buffers) => found.buffers = buffers.clone(),
                Content::Gaps(gaps) => found.gaps = gaps.clone(),
                Content::Windows(stored) => windows = Some(decoded.shared(stored, &found.process)),
            }
        }
        found.windows = windows.or_else(|| decoded.windows(&[], &found.process)).unwrap_or_default();
    }

    /// Everything in the file. Ranks that store equal windows share them.
    ///
    /// # Errors
    /// [`ReadError::TableMismatch`] when the file describes a function otherwise than this version.
    pub fn into_trace(self) -> Result<Trace, ReadError> {
        self.structure()?;
        self.run();
        self.metadata();
        self.totals();
        self.census();
        self.decisions();
        // Facts about 100,000 processes are not held twice.
        let mut ranks: Vec<RankTrace> = Vec::new();
        let expected = self.structure()?.rank_count() as usize;
        self.once(&self.processes, Kind::Processes, |_: &mut Vec<Process>, payload| {
            // Each process takes a bit or more. A damaged count may still ask for more than there is.
            let _ = ranks.try_reserve_exact(expected.min(8 * payload.len()));
            let add = |process| ranks.push(RankTrace { process, ..RankTrace::default() });
            facts(payload, || self.known_totals(), add)
        });
        let known = self.processes.get().map_or(&[][..], |(processes, _)| processes);
        if ranks.is_empty() {
            ranks.extend(
                known.iter().map(|process| RankTrace { process: process.clone(), ..RankTrace::default() }),
            );
        }
        last_by_rank(&mut ranks, |rank| rank.process.rank);
        let has = |ranks: &[RankTrace], number: u32| {
            ranks.binary_search_by_key(&number, |rank| rank.process.rank).is_ok()
        };
        for many in &self.of_many {
            let process = |number| {
                let found = ranks.binary_search_by_key(&number, |rank: &RankTrace| rank.process.rank);
                found.ok().map(|index| &ranks[index].process)
            };
            let _ = self.contents_with(many, process);
        }
        // A rank without facts about its process still has its number; its calls may be all that is stored of it.
        let own = self.own_ranks();
        let others: Vec<u32> =
            own.chain(self.structure()?.ranks()).filter(|&number| !has(&ranks, number)).collect();
        ranks.extend(others.into_iter().map(|number| {
            let mut rank = RankTrace::default();
            rank.process.rank = number;
            rank
        }));
        last_by_rank(&mut ranks, |rank| rank.process.rank);
        let (mut damage, mut decoded) = (self.damage(), Decoded::default());
        ranks.iter_mut().for_each(|rank| self.restore(rank, true, &mut decoded, &mut damage));
        let sizes = self.sizes();
        drop(decoded);
        let Self { run, metadata, structure, totals, census, decisions, .. } = self;
        let mut trace = Trace {
            run: RunInfo { metadata: value(metadata), ..value(run) },
            ranks,
            structure: value(structure),
            totals: value(totals),
            census: value(census),
            decisions: value(decisions),
            complete: damage.is_empty(),
            sizes,
            damage,
        };
        place_sites(&mut trace);
        finish(&mut trace);
        Ok(trace)
    }

    /// Damage found so far: of the list of sections, and of the sections of the whole run that have been read.
    pub fn damage(&self) -> Vec<Damage> {
        let of = |found: Option<&Vec<Damage>>| found.cloned().unwrap_or_default();
        let parts = [
            of(self.run.get().map(|(_, damage)| damage)),
            of(self.metadata.get().map(|(_, damage)| damage)),
            of(self.structure.get().map(|(_, damage)| damage)),
            of(self.totals.get().map(|(_, damage)| damage)),
            of(self.census.get().map(|(_, damage)| damage)),
            of(self.processes.get().map(|(_, damage)| damage)),
            of(self.decisions.get().map(|(_, damage)| damage)),
        ];
        self.damage.iter().cloned().chain(parts.into_iter().flatten()).collect()
    }

    /// Number that two files share only where they have the same bytes, but for chance: of its length, and of the heads
    /// of its sections, which have the checksums of what they hold. Reads nothing else.
    pub fn identity(&self) -> u64 {
        let bytes = self.bytes();
        let mut heads = crc32fast::Hasher::new();
        for entry in &self.entries {
            heads.update(entry.head(bytes));
        }
        u64::from(heads.finalize()) << 32 | bytes.len() as u64 & 0xffff_ffff
    }

    /// Bytes of the file by their contents, according to its list of sections.
    pub fn sizes(&self) -> Sizes {
        let mut sizes = Sizes { total: self.bytes().len() as u64, ..Sizes::default() };
        let listed: u64 = self.entries.iter().map(Entry::bytes).sum();
        sizes.other = sizes.total.saturating_sub(listed);
        for entry in &self.entries {
            if let Some(kind) = entry.kind() {
                account(&mut sizes, kind, entry.bytes());
            }
        }
        sizes
    }
}

/// Passes the facts about processes in `payload` to `take`; `None` where it makes no sense.
fn facts<'a>(
    payload: &[u8],
    totals: impl FnOnce() -> Option<&'a Totals>,
    take: impl FnMut(Process),
) -> Option<()> {
    if processes::is_coded(payload) { processes::decode(payload, totals, take) } else { lines(payload, take) }
}

/// Sorts by rank, and leaves the last one of each.
fn last_by_rank<T>(all: &mut Vec<T>, rank: impl Fn(&T) -> u32) {
    // A sort would take half as much memory again.
    if all.is_sorted_by(|one, next| rank(one) < rank(next)) {
        return;
    }
    all.reverse();
    all.sort_by_key(&rank);
    all.dedup_by_key(|one| rank(one));
}

/// Contents of `cell`; the default where they were not read.
fn value<T: Default>(cell: Once<T>) -> T {
    cell.into_inner().map_or_else(T::default, |(value, _)| value)
}

fn malformed(kind: Kind, rank: Option<u32>) -> Damage {
    Damage { rank, what: format!("section {kind:?} is malformed") }
}
