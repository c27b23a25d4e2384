//! What the sections of a trace file hold, and how a rank's part turns into them and back.

use std::borrow::Cow;
use std::io::Read as _;

use ampl_core::message::Decision;

use super::v1::Kind;
use crate::cells::{Cell, Shape};
use crate::model::{RankTrace, RunInfo, WindowSummary};
use crate::places::Places;
use crate::timing::Decoder;
use crate::varint::{self, Reader};

/// A section on its way to the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Part<'a> {
    /// What it holds.
    pub kind: Kind,
    /// Of which rank; `None` for the whole run.
    pub rank: Option<u32>,
    /// Its bytes: those that are many stay where they are.
    pub payload: Cow<'a, [u8]>,
}

/// Bytes before the payload of a packed part: kind, rank, length.
const PACKED_HEAD: usize = 16;

impl<'a> Part<'a> {
    /// Bytes of all `sections`, packed.
    pub fn packed_bytes(sections: &[Self]) -> u64 {
        sections.iter().map(|section| (PACKED_HEAD + section.payload.len()) as u64).sum()
    }

    /// Hands the packed `parts` to `send`, in order and in chunks of `chunk_bytes`, the last one of what
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
                kind: u8::try_from(number).ok().and_then(Kind::from_number)?,
                rank: (rank != u32::MAX).then_some(rank),
                payload: payload.into(),
            });
            bytes = rest;
        }
        bytes.is_empty().then_some(sections)
    }
}

/// How hard tables and texts are compressed: on a rank's own way through MPI_Finalize.
const LEVEL: i32 = 6;

/// `bytes` compressed by zstd; nothing for nothing.
pub fn squeezed(bytes: &[u8]) -> Vec<u8> {
    if bytes.is_empty() {
        return Vec::new();
    }
    zstd::bulk::compress(bytes, LEVEL).expect("memory has room for as much again")
}

/// What was [`squeezed`]; `None` where it was not, or claims to be what no table is.
pub fn unsqueezed(payload: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    if payload.is_empty() {
        return Some(bytes);
    }
    // A few bytes may claim to be many.
    let most = (payload.len() as u64).saturating_mul(1 << 10).saturating_add(1 << 20);
    let decoder = zstd::stream::read::Decoder::new(payload).ok()?;
    let read = decoder.take(most + 1).read_to_end(&mut bytes).ok()?;
    (read as u64 <= most).then_some(bytes)
}

/// The sections that store `rank`, but for what it called; times are borrowed.
pub fn rank_parts(rank: &RankTrace) -> Vec<Part<'_>> {
    let number = Some(rank.process.rank);
    let mut places = Vec::new();
    rank.places.write(&mut places);
    let parts = [
        (Kind::Addresses, places.into()),
        (Kind::Times, Cow::from(&rank.times)),
        (Kind::Windows, squeezed(&windows(&rank.windows)).into()),
        (Kind::Processes, serde_json::to_vec(&rank.process).expect("plain data").into()),
    ];
    parts.into_iter().map(|(kind, payload)| Part { kind, rank: number, payload }).collect()
}

/// The parts that store the run as a whole: each where there is something to store.
pub fn run_parts(run: Option<&RunInfo>, decisions: &[Decision]) -> Vec<Part<'static>> {
    let mut parts = Vec::new();
    if let Some(run) = run {
        let payload = serde_json::to_vec(run).expect("plain data").into();
        parts.push(Part { kind: Kind::Run, rank: None, payload });
    }
    if !decisions.is_empty() {
        let lines = decisions.iter().map(|decision| serde_json::to_string(decision).expect("plain data"));
        let lines: Vec<String> = lines.collect();
        let payload = squeezed(lines.join("\n").as_bytes()).into();
        parts.push(Part { kind: Kind::Decisions, rank: None, payload });
    }
    parts
}

/// Puts one section of a rank back; `None` if its bytes do not make sense.
pub fn restore(rank: &mut RankTrace, kind: Kind, payload: &[u8]) -> Option<()> {
    match kind {
        Kind::Addresses => rank.places = Places::read(payload)?,
        Kind::Times => {
            if !payload.is_empty() {
                Decoder::new(payload).ok()?;
            }
            rank.times = payload.to_vec();
        }
        Kind::Windows => rank.windows = read_windows(&unsqueezed(payload)?)?,
        _ => return None,
    }
    Some(())
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

/// A byte for its shape, then its values.
fn put_cell(out: &mut Vec<u8>, cell: Cell) {
    let shape = out.len();
    out.push(0);
    out[shape] = cell.put(|value| put_float(out, value)) as u8;
}

fn get_cell(reader: &mut Reader<'_>) -> Option<Cell> {
    let shape = Shape::of(reader.take(1)?[0].into())?;
    Cell::get(shape, || get_float(reader))
}

fn windows(windows: &[WindowSummary]) -> Vec<u8> {
    let mut out = Vec::new();
    // Windows follow each other, and are often alike in what they were drawn with.
    let (mut number, mut end, mut chance) = (0u64, 0i64, 0.0f64);
    for window in windows {
        varint::put(&mut out, window.window.wrapping_sub(number));
        varint::put_signed(&mut out, window.start_ns.wrapping_sub(end));
        varint::put_signed(&mut out, window.end_ns.wrapping_sub(window.start_ns));
        varint::put(&mut out, window.own_ns);
        let (run, same) = (window.repeat > 1, window.probability.to_bits() == chance.to_bits());
        let flags = [
            window.kept,
            window.partial,
            window.drawn,
            run,
            window.partner,
            window.inclusion.is_some(),
            window.stratum.is_some(),
            same,
        ];
        out.push((0..).zip(flags).fold(0, |all, (bit, set)| all | u8::from(set) << bit));
        if run {
            varint::put(&mut out, window.repeat);
        }
        if !same {
            put_float(&mut out, window.probability);
        }
        if let Some(inclusion) = window.inclusion {
            put_float(&mut out, inclusion);
        }
        if let Some(stratum) = window.stratum {
            varint::put(&mut out, stratum.into());
        }
        varint::put(&mut out, window.update);
        varint::put(&mut out, window.cells.len() as u64);
        window.cells.iter().for_each(|cell| put_cell(&mut out, cell));
        (number, end, chance) = (window.window, window.end_ns, window.probability);
    }
    out
}

fn read_windows(payload: &[u8]) -> Option<Vec<WindowSummary>> {
    let mut before = WindowSummary::default();
    read_all(payload, |reader| {
        let window = read_window(reader, &before)?;
        (before.window, before.end_ns, before.probability) =
            (window.window, window.end_ns, window.probability);
        Some(window)
    })
}

fn read_window(reader: &mut Reader<'_>, before: &WindowSummary) -> Option<WindowSummary> {
    let window = before.window.wrapping_add(reader.get()?);
    let start_ns = before.end_ns.wrapping_add(reader.get_signed()?);
    let end_ns = start_ns.wrapping_add(reader.get_signed()?);
    let own_ns = reader.get()?;
    let flags = reader.take(1)?[0];
    let is = |bit: u32| flags >> bit & 1 != 0;
    let repeat = if is(3) { reader.get()? } else { 1 };
    let probability = if is(7) { before.probability } else { get_float(reader)? };
    let inclusion = if is(5) { Some(get_float(reader)?) } else { None };
    let stratum = if is(6) { Some(u16::try_from(reader.get()?).ok()?) } else { None };
    let update = reader.get()?;
    let cells = (0..reader.get()?).map(|_| get_cell(reader)).collect::<Option<_>>()?;
    Some(WindowSummary {
        window,
        start_ns,
        end_ns,
        own_ns,
        kept: is(0),
        drawn: is(2),
        partner: is(4),
        partial: is(1),
        probability,
        inclusion,
        stratum,
        update,
        cells,
        repeat,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_squeezed_comes_back_unless_it_is_too_much() {
        let text = (0..100).map(|rank| format!("{{\"rank\":{rank},\"host\":\"n1\"}}\n")).collect::<String>();
        let packed = squeezed(text.as_bytes());
        assert_eq!(unsqueezed(&packed), Some(text.into_bytes()));
        assert_eq!(unsqueezed(&packed[..packed.len() / 2]), None);
        assert_eq!(unsqueezed(&squeezed(&[])), Some(Vec::new()));
        assert_eq!(unsqueezed(&squeezed(&vec![0; 1 << 26])), None, "a few bytes that claim to be many");
    }
}
