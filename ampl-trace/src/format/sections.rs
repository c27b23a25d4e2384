//! What the sections of a trace file hold, and how a rank's part turns into them and back.

use std::borrow::Cow;

use crate::model::{Aggregate, Cell, Process, RankTrace, Site, WindowSummary};
use crate::varint::{self, Reader};

/// What a section holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum SectionKind {
    /// [`crate::RunInfo`] as JSON.
    Run = 1,
    /// Names and parameters of the functions called, as JSON, checked on reading.
    Table = 2,
    /// [`Process`] of one rank as JSON.
    Process = 3,
    /// Modules and call sites of one rank.
    Sites = 4,
    /// Calls of one rank's kept windows, without times.
    Calls = 5,
    /// Their times.
    Times = 6,
    /// Window summaries of one rank.
    Windows = 7,
    /// Totals per call site of one rank.
    Aggregates = 8,
    /// Decisions, one JSON document a line.
    Decisions = 9,
    /// Offsets of all other sections; the last one.
    Contents = 10,
}

impl SectionKind {
    /// The kind of that number.
    pub fn from_number(number: u32) -> Option<Self> {
        use SectionKind::*;
        [Run, Table, Process, Sites, Calls, Times, Windows, Aggregates, Decisions, Contents]
            .into_iter()
            .find(|&kind| kind as u32 == number)
    }
}

/// A section before it is placed in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Section<'a> {
    /// What it holds.
    pub kind: SectionKind,
    /// Of which rank; `None` for the whole run.
    pub rank: Option<u32>,
    /// Its bytes: those that are many stay where they are.
    pub payload: Cow<'a, [u8]>,
}

/// Bytes before the payload of a packed section: kind, rank, length.
const PACKED_HEAD: usize = 16;

impl<'a> Section<'a> {
    /// Bytes of all `sections`, packed.
    pub fn packed_bytes(sections: &[Self]) -> u64 {
        sections.iter().map(|section| (PACKED_HEAD + section.payload.len()) as u64).sum()
    }

    /// Hands the packed `sections` to `send`, in order and in chunks of `chunk_bytes`, the last one of what
    /// is left: how they travel to the client without a copy of the whole.
    ///
    /// # Errors
    /// The first of `send`.
    pub fn pack<E>(
        sections: &[Self],
        chunk_bytes: usize,
        mut send: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let all = usize::try_from(Self::packed_bytes(sections)).unwrap_or(usize::MAX);
        let mut chunk = Vec::with_capacity(chunk_bytes.min(all));
        for section in sections {
            for mut rest in [&section.packed_head()[..], &section.payload] {
                while !rest.is_empty() {
                    let (some, others) = rest.split_at(rest.len().min(chunk_bytes - chunk.len()));
                    chunk.extend_from_slice(some);
                    rest = others;
                    if chunk.len() == chunk_bytes {
                        send(&chunk)?;
                        chunk.clear();
                    }
                }
            }
        }
        if chunk.is_empty() { Ok(()) } else { send(&chunk) }
    }

    fn packed_head(&self) -> [u8; PACKED_HEAD] {
        let mut head = [0; PACKED_HEAD];
        head[..4].copy_from_slice(&(self.kind as u32).to_le_bytes());
        head[4..8].copy_from_slice(&self.rank.unwrap_or(u32::MAX).to_le_bytes());
        head[8..].copy_from_slice(&(self.payload.len() as u64).to_le_bytes());
        head
    }

    /// The sections packed in `bytes`; `None` if they are cut off.
    pub fn unpack(mut bytes: &'a [u8]) -> Option<Vec<Self>> {
        let mut sections = Vec::new();
        while let Some((head, rest)) = bytes.split_first_chunk::<PACKED_HEAD>() {
            let number = u32::from_le_bytes(head[..4].try_into().ok()?);
            let rank = u32::from_le_bytes(head[4..8].try_into().ok()?);
            let len = usize::try_from(u64::from_le_bytes(head[8..].try_into().ok()?)).ok()?;
            let (payload, rest) = rest.split_at_checked(len)?;
            sections.push(Self {
                kind: SectionKind::from_number(number)?,
                rank: (rank != u32::MAX).then_some(rank),
                payload: payload.into(),
            });
            bytes = rest;
        }
        bytes.is_empty().then_some(sections)
    }
}

/// The sections that store `rank`; calls and times are borrowed.
pub fn rank_sections(rank: &RankTrace) -> Vec<Section<'_>> {
    let number = Some(rank.process.rank);
    let section = |kind, payload| Section { kind, rank: number, payload };
    vec![
        section(SectionKind::Process, serde_json::to_vec(&rank.process).expect("plain data").into()),
        section(SectionKind::Sites, sites(rank).into()),
        section(SectionKind::Calls, Cow::from(&rank.calls)),
        section(SectionKind::Times, Cow::from(&rank.times)),
        section(SectionKind::Windows, windows(&rank.windows).into()),
        section(SectionKind::Aggregates, aggregates(&rank.aggregates).into()),
    ]
}

/// Puts one section of a rank back; `None` if its bytes do not make sense.
pub fn restore(rank: &mut RankTrace, kind: SectionKind, payload: &[u8]) -> Option<()> {
    match kind {
        SectionKind::Process => rank.process = serde_json::from_slice::<Process>(payload).ok()?,
        SectionKind::Sites => (rank.modules, rank.sites) = read_sites(payload)?,
        SectionKind::Calls => rank.calls = payload.to_vec(),
        SectionKind::Times => rank.times = payload.to_vec(),
        SectionKind::Windows => rank.windows = read_all(payload, read_window)?,
        SectionKind::Aggregates => rank.aggregates = read_all(payload, read_aggregate)?,
        _ => return None,
    }
    Some(())
}

fn sites(rank: &RankTrace) -> Vec<u8> {
    let mut out = Vec::new();
    varint::put(&mut out, rank.modules.len() as u64);
    for module in &rank.modules {
        varint::put(&mut out, module.len() as u64);
        out.extend_from_slice(module.as_bytes());
    }
    for site in &rank.sites {
        varint::put(&mut out, u64::from(site.module));
        varint::put(&mut out, site.offset);
    }
    out
}

fn read_sites(payload: &[u8]) -> Option<(Vec<String>, Vec<Site>)> {
    let mut reader = Reader::new(payload);
    let mut modules = Vec::new();
    for _ in 0..reader.get()? {
        let len = usize::try_from(reader.get()?).ok()?;
        modules.push(String::from_utf8_lossy(reader.take(len)?).into_owned());
    }
    let mut sites = Vec::new();
    while !reader.is_empty() {
        sites.push(Site { module: u32::try_from(reader.get()?).ok()?, offset: reader.get()? });
    }
    Some((modules, sites))
}

fn read_all<T>(payload: &[u8], mut one: impl FnMut(&mut Reader<'_>) -> Option<T>) -> Option<Vec<T>> {
    let mut reader = Reader::new(payload);
    let mut all = Vec::new();
    while !reader.is_empty() {
        all.push(one(&mut reader)?);
    }
    Some(all)
}

fn put_float(out: &mut Vec<u8>, value: f64) {
    // Byte-swapped: whole numbers of moderate size end in zero bytes, which LEB128 then drops.
    varint::put(out, value.to_bits().swap_bytes());
}

fn get_float(reader: &mut Reader<'_>) -> Option<f64> {
    Some(f64::from_bits(reader.get()?.swap_bytes()))
}

fn windows(windows: &[WindowSummary]) -> Vec<u8> {
    let mut out = Vec::new();
    for window in windows {
        varint::put(&mut out, window.window);
        varint::put_signed(&mut out, window.start_ns);
        varint::put_signed(&mut out, window.end_ns);
        varint::put(&mut out, window.own_ns);
        let flags = u8::from(window.kept) | u8::from(window.partial) << 1 | u8::from(window.drawn) << 2;
        let run = window.repeat > 1;
        let others = u8::from(window.partner) << 4 | u8::from(window.inclusion.is_some()) << 5;
        out.push(flags | u8::from(run) << 3 | others | u8::from(window.stratum.is_some()) << 6);
        if run {
            varint::put(&mut out, window.repeat);
        }
        put_float(&mut out, window.probability);
        if let Some(inclusion) = window.inclusion {
            put_float(&mut out, inclusion);
        }
        if let Some(stratum) = window.stratum {
            varint::put(&mut out, stratum.into());
        }
        varint::put(&mut out, window.update);
        varint::put(&mut out, window.cells.len() as u64);
        for cell in &window.cells {
            [cell.n, cell.sum, cell.sum_sq, cell.min, cell.max]
                .iter()
                .for_each(|&value| put_float(&mut out, value));
        }
    }
    out
}

fn read_window(reader: &mut Reader<'_>) -> Option<WindowSummary> {
    let window = reader.get()?;
    let (start_ns, end_ns) = (reader.get_signed()?, reader.get_signed()?);
    let own_ns = reader.get()?;
    let flags = reader.take(1)?[0];
    let repeat = if flags & 8 != 0 { reader.get()? } else { 1 };
    let probability = get_float(reader)?;
    let inclusion = if flags & 32 != 0 { Some(get_float(reader)?) } else { None };
    let stratum = if flags & 64 != 0 { Some(u16::try_from(reader.get()?).ok()?) } else { None };
    let update = reader.get()?;
    let mut cells = Vec::new();
    for _ in 0..reader.get()? {
        let mut value = || get_float(reader);
        cells.push(Cell { n: value()?, sum: value()?, sum_sq: value()?, min: value()?, max: value()? });
    }
    let (kept, partial, drawn) = (flags & 1 != 0, flags & 2 != 0, flags & 4 != 0);
    Some(WindowSummary {
        window,
        start_ns,
        end_ns,
        own_ns,
        kept,
        drawn,
        partner: flags & 16 != 0,
        partial,
        probability,
        inclusion,
        stratum,
        update,
        cells,
        repeat,
    })
}

fn aggregates(aggregates: &[Aggregate]) -> Vec<u8> {
    let mut out = Vec::new();
    for entry in aggregates {
        varint::put(&mut out, entry.site.map_or(0, |site| u64::from(site) + 1));
        varint::put(&mut out, u64::from(entry.function));
        varint::put(&mut out, entry.calls);
        [entry.time_ns, entry.time_sq, entry.min_ns, entry.max_ns]
            .iter()
            .for_each(|&value| put_float(&mut out, value));
        varint::put(&mut out, entry.sent);
        varint::put(&mut out, entry.received);
    }
    out
}

fn read_aggregate(reader: &mut Reader<'_>) -> Option<Aggregate> {
    Some(Aggregate {
        site: reader.get()?.checked_sub(1).map(|site| site as u32),
        function: u16::try_from(reader.get()?).ok()?,
        calls: reader.get()?,
        time_ns: get_float(reader)?,
        time_sq: get_float(reader)?,
        min_ns: get_float(reader)?,
        max_ns: get_float(reader)?,
        sent: reader.get()?,
        received: reader.get()?,
    })
}
