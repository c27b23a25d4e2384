//! Version 0 of the trace file.
//!
//! Header: magic (8 bytes), version (u32), zero (u32). Then sections, each with a 24-byte head:
//! `SECT`, kind (u32), rank (u32, all ones for the run), CRC-32 of the payload (u32), length
//! (u64). The last section lists all others: kind (u32), rank (u32), offset (u64), length (u64).
//! Footer: offset of that last section (u64), end magic (8 bytes). All little-endian.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use ampl_core::mpi::{FUNCTION_COUNT, Function, PREDEFINED, Param};
use serde::{Deserialize, Serialize};

use super::sections::{Section, SectionKind, restore};
use super::{END_MAGIC, MAGIC, VERSION};
use crate::error::{Damage, ReadError};
use crate::model::{Process, RankTrace, Sizes, Trace};

const SECTION_MAGIC: [u8; 4] = *b"SECT";
const HEAD_BYTES: usize = 24;
const NO_RANK: u32 = u32::MAX;

/// Writes a trace file front to back; memory does not grow with its size.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    at: u64,
    contents: Vec<u8>,
    functions: BTreeSet<u16>,
}

impl<W: Write> Writer<W> {
    /// A writer that has written the header.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(out: W) -> io::Result<Self> {
        let mut writer = Self { out, at: 0, contents: Vec::new(), functions: BTreeSet::new() };
        writer.put(&MAGIC)?;
        writer.put(&VERSION.to_le_bytes())?;
        writer.put(&[0; 4])?;
        Ok(writer)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.at += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    /// Appends the sections of one rank.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn rank(&mut self, sections: &[Section<'_>]) -> io::Result<()> {
        for section in sections {
            if section.kind == SectionKind::Process {
                let process: Process = serde_json::from_slice(&section.payload).map_err(io::Error::other)?;
                self.functions.extend(process.calls.iter().map(|&(function, _)| function));
            }
            self.section(section)?;
        }
        Ok(())
    }

    /// Appends one section.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn section(&mut self, section: &Section<'_>) -> io::Result<()> {
        let (kind, rank) = (section.kind as u32, section.rank.unwrap_or(NO_RANK));
        let length = section.payload.len() as u64;
        if section.kind != SectionKind::Contents {
            self.contents.extend_from_slice(&kind.to_le_bytes());
            self.contents.extend_from_slice(&rank.to_le_bytes());
            self.contents.extend_from_slice(&self.at.to_le_bytes());
            self.contents.extend_from_slice(&length.to_le_bytes());
        }
        self.put(&SECTION_MAGIC)?;
        self.put(&kind.to_le_bytes())?;
        self.put(&rank.to_le_bytes())?;
        self.put(&crc32fast::hash(&section.payload).to_le_bytes())?;
        self.put(&length.to_le_bytes())?;
        self.put(&section.payload)
    }

    /// Appends the table of the functions that were called, the list of sections and the footer, and gives
    /// `out` back.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn finish(mut self) -> io::Result<W> {
        let functions = std::mem::take(&mut self.functions);
        let known = functions.into_iter().filter(|&number| usize::from(number) < FUNCTION_COUNT);
        let table = Table { predefined: predefined_checksum(), functions: known.map(entry).collect() };
        let payload = serde_json::to_vec(&table).map_err(io::Error::other)?;
        self.section(&Section { kind: SectionKind::Table, rank: None, payload: payload.into() })?;
        let offset = self.at;
        let payload = std::mem::take(&mut self.contents);
        self.section(&Section { kind: SectionKind::Contents, rank: None, payload: payload.into() })?;
        self.put(&offset.to_le_bytes())?;
        self.put(&END_MAGIC)?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// What function numbers and predefined handles in the file mean.
#[derive(Serialize, Deserialize)]
struct Table {
    /// CRC-32 of the list of predefined handles, whose indices stand in arguments.
    predefined: u32,
    functions: Vec<TableEntry>,
}

#[derive(Serialize, Deserialize)]
struct TableEntry {
    number: u16,
    name: String,
    params: Vec<String>,
}

fn entry(number: u16) -> TableEntry {
    let spec = Function(number).spec();
    let param = |p: &Param| format!("{}:{:?}:{:?}:{:?}", p.name, p.kind, p.direction, p.length);
    TableEntry { number, name: spec.name.into(), params: spec.params.iter().map(param).collect() }
}

fn predefined_checksum() -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for (kind, name) in PREDEFINED {
        hasher.update(format!("{} {name};", kind.name()).as_bytes());
    }
    hasher.finalize()
}

/// Numbers in the file are positions in the writer's tables: ours must agree where they are used.
fn check_table(payload: &[u8]) -> Result<(), ReadError> {
    let malformed = ReadError::Malformed { what: "function table", at: 0 };
    let stored: Table = serde_json::from_slice(payload).map_err(|_| malformed)?;
    if stored.predefined != predefined_checksum() {
        return Err(ReadError::TableMismatch { function: "the list of predefined handles".into() });
    }
    for stored in stored.functions {
        let ours = usize::from(stored.number) < FUNCTION_COUNT;
        let same = ours && {
            let ours = entry(stored.number);
            ours.name == stored.name && ours.params == stored.params
        };
        if !same {
            return Err(ReadError::TableMismatch { function: stored.name });
        }
    }
    Ok(())
}

/// The trace in `bytes`, with what could not be read listed in [`Trace::damage`].
///
/// # Errors
/// [`ReadError`] when it is not a trace file, has another version or another function table.
pub fn read(bytes: &[u8]) -> Result<Trace, ReadError> {
    let head = bytes.first_chunk::<16>().ok_or(ReadError::TooShort { len: bytes.len() })?;
    if head[..8] != MAGIC {
        return Err(ReadError::BadMagic { found: head[..8].try_into().expect("eight bytes") });
    }
    let version = u32::from_le_bytes(head[8..12].try_into().expect("four bytes"));
    if version != VERSION {
        return Err(ReadError::UnknownVersion { found: u64::from(version) });
    }
    let mut trace = Trace { complete: true, ..Trace::default() };
    trace.sizes.total = bytes.len() as u64;
    trace.sizes.other = 16 + 16;
    let mut ranks: BTreeMap<u32, RankTrace> = BTreeMap::new();
    let mut at = 16;
    let mut ended = false;
    let mut contents = Vec::new();
    let mut offset = 0u64;
    if bytes[12..16] != [0; 4] {
        note(&mut trace, None, "the header's last word is not zero".into());
    }
    while !ended {
        let Some(found) = section_at(bytes, at) else {
            note(&mut trace, None, format!("the file ends or is damaged at byte {at}"));
            break;
        };
        let payload = &bytes[at + HEAD_BYTES..found.end];
        account(&mut trace.sizes, found.kind, (found.end - at) as u64);
        ended = found.kind == Some(SectionKind::Contents);
        if !ended {
            // The number as it stands, so that a kind unknown here still agrees.
            contents.extend_from_slice(&bytes[at + 4..at + 12]);
            contents.extend_from_slice(&(at as u64).to_le_bytes());
            contents.extend_from_slice(&(payload.len() as u64).to_le_bytes());
        }
        offset = at as u64;
        at = found.end;
        if crc32fast::hash(payload) != found.crc {
            note(&mut trace, found.rank, format!("section {:?} fails its checksum", found.kind));
            continue;
        }
        let understood = match (found.kind, found.rank) {
            (Some(SectionKind::Run), _) => serde_json::from_slice(payload).map(|run| trace.run = run).ok(),
            (Some(SectionKind::Table), _) => Some(check_table(payload)?),
            (Some(SectionKind::Decisions), _) => read_decisions(payload, &mut trace),
            // Checksums do not cover the sections' heads: this list does.
            (Some(SectionKind::Contents), rank) => (rank.is_none() && payload == contents).then_some(()),
            (Some(kind), Some(rank)) => restore(ranks.entry(rank).or_default(), kind, payload),
            _ => None,
        };
        if understood.is_none() {
            note(&mut trace, found.rank, format!("section {:?} is malformed", found.kind));
        }
    }
    if ended && bytes[at..] != [&offset.to_le_bytes()[..], &END_MAGIC].concat() {
        note(&mut trace, None, "the file's last bytes are not its footer".into());
    }
    trace.ranks = ranks.into_values().collect();
    finish(&mut trace);
    Ok(trace)
}

/// Sets what follows from the ranks: completeness, and the number of ranks where nothing else tells.
pub fn finish(trace: &mut Trace) {
    let present = trace.ranks.len() as u32;
    if trace.run.ranks == 0 {
        trace.run.ranks = present;
    }
    let all = present == trace.run.ranks && trace.ranks.iter().all(|rank| rank.process.finalized);
    trace.complete &= all;
}

fn read_decisions(payload: &[u8], trace: &mut Trace) -> Option<()> {
    for line in payload.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        trace.decisions.push(serde_json::from_slice(line).ok()?);
    }
    Some(())
}

fn note(trace: &mut Trace, rank: Option<u32>, what: String) {
    trace.complete = false;
    trace.damage.push(Damage { rank, what });
}

struct Found {
    kind: Option<SectionKind>,
    rank: Option<u32>,
    crc: u32,
    end: usize,
}

fn section_at(bytes: &[u8], at: usize) -> Option<Found> {
    let head = bytes.get(at..)?.first_chunk::<HEAD_BYTES>()?;
    let word = |from: usize| u32::from_le_bytes(head[from..from + 4].try_into().expect("four bytes"));
    let length = u64::from_le_bytes(head[16..].try_into().expect("eight bytes"));
    let end = (at + HEAD_BYTES).checked_add(usize::try_from(length).ok()?)?;
    (head[..4] == SECTION_MAGIC && end <= bytes.len()).then(|| Found {
        kind: SectionKind::from_number(word(4)),
        rank: (word(8) != NO_RANK).then(|| word(8)),
        crc: word(12),
        end,
    })
}

fn account(sizes: &mut Sizes, kind: Option<SectionKind>, bytes: u64) {
    use SectionKind::*;
    match kind {
        Some(Table | Process | Sites | Calls) => sizes.structure += bytes,
        Some(Times) => sizes.timing += bytes,
        Some(Windows | Aggregates) => sizes.aggregates += bytes,
        Some(Run | Decisions | Contents) | None => sizes.other += bytes,
    }
}
