//! Contents of a trace file's sections, and how a rank's part turns into them and back.

use std::borrow::Cow;
use std::io::Read;

use ampl_core::message::Decision;

use super::kind::Kind;
use super::{weights, windows};
use crate::buffers::Buffers;
use crate::gaps::Gaps;
use crate::model::{RankTrace, RunInfo};
use crate::places::Places;
use crate::timing::Decoder;

/// A section on its way to the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Part<'a> {
    /// Kind of its contents.
    pub kind: Kind,
    /// Its rank; `None` for the whole run.
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

    /// Passes the packed `parts` to `send`, in order and in chunks of `chunk_bytes`, the last one with the rest: so
    /// they are sent to the client without a copy of the whole.
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

/// Compression level of tables and texts: it takes a rank's own time in `MPI_Finalize`.
const LEVEL: i32 = 6;

/// `bytes` compressed by zstd; nothing for nothing.
pub fn squeezed(bytes: &[u8]) -> Vec<u8> {
    if bytes.is_empty() {
        return Vec::new();
    }
    zstd::bulk::compress(bytes, LEVEL).expect("memory has room for as much again")
}

/// Text that JSON about runs has in common: never changed, for readers of files need it.
const TEXTS: &[u8] = include_bytes!("texts.v1");
/// First byte of what is compressed beside these texts. No zstd frame begins so, and no JSON.
const WITH_TEXTS: u8 = 1;

/// JSON about a run compressed by zstd, beside [texts](TEXTS) that much of it is in; nothing for nothing.
fn squeezed_text(bytes: &[u8]) -> Vec<u8> {
    if bytes.is_empty() {
        return Vec::new();
    }
    let mut coder = zstd::bulk::Compressor::with_dictionary(LEVEL, TEXTS).expect("any bytes will do");
    let mut payload = vec![WITH_TEXTS];
    payload.extend(coder.compress(bytes).expect("memory has room for as much again"));
    payload
}

/// The bytes that [`squeezed`] compressed; `None` for other bytes, and for more than a table has.
pub fn unsqueezed(payload: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut reader = Unsqueezed::new(payload)?;
    reader.read_to_end(&mut bytes).ok()?;
    (reader.left > 0).then_some(bytes)
}

/// Reads what [`squeezed`] or [`squeezed_text`] compressed, without memory for the whole.
pub struct Unsqueezed<'a> {
    /// Absent where nothing was compressed.
    decoder: Option<zstd::stream::read::Decoder<'a, &'a [u8]>>,
    /// Bytes until it is more than a table has: a few bytes may claim to be many.
    left: u64,
}

impl<'a> Unsqueezed<'a> {
    /// A reader of `payload`; `None` where that does not begin as compressed bytes do.
    pub fn new(payload: &'a [u8]) -> Option<Self> {
        let left = (payload.len() as u64).saturating_mul(1 << 10).saturating_add(1 << 20) + 1;
        let decoder = match payload {
            [] => None,
            [WITH_TEXTS, rest @ ..] => Some(zstd::stream::read::Decoder::with_dictionary(rest, TEXTS).ok()?),
            _ => Some(zstd::stream::read::Decoder::with_buffer(payload).ok()?),
        };
        Some(Self { decoder, left })
    }
}

impl Read for Unsqueezed<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let Some(decoder) = &mut self.decoder else { return Ok(0) };
        let most = into.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        if most == 0 && !into.is_empty() {
            return Err(std::io::Error::other("more than a table has"));
        }
        let read = decoder.read(&mut into[..most])?;
        self.left -= read as u64;
        Ok(read)
    }
}

/// The sections that store `rank`, but for what it called: each where there is something to store. Times are borrowed.
pub fn rank_parts(rank: &RankTrace) -> Vec<Part<'_>> {
    let number = Some(rank.process.rank);
    let mut places = Vec::new();
    if rank.places != Places::default() {
        rank.places.write(&mut places);
    }
    let (of_windows, windows) = match rank.process.windows {
        0 => (Kind::Windows, windows::encode(rank.windows.entries(), rank.digits)),
        _ => (Kind::Weights, weights::encode(rank)),
    };
    let parts = [
        (Kind::Buffers, squeezed(&rank.buffers.write()).into()),
        (Kind::Addresses, places.into()),
        (Kind::Gaps, rank.gaps.write().into()),
        (Kind::Times, Cow::from(&rank.times)),
        (of_windows, windows.into()),
        (Kind::Processes, serde_json::to_vec(&rank.process).expect("plain data").into()),
    ];
    let stored = parts.into_iter().filter(|(_, payload)| !payload.is_empty());
    stored.map(|(kind, payload)| Part { kind, rank: number, payload }).collect()
}

/// The parts that store the run as a whole: each where there is something to store.
pub fn run_parts(run: Option<&RunInfo>, decisions: &[Decision]) -> Vec<Part<'static>> {
    let mut parts = Vec::new();
    if let Some(run) = run {
        let payload = squeezed_text(&serde_json::to_vec(run).expect("plain data")).into();
        parts.push(Part { kind: Kind::Run, rank: None, payload });
        if !run.metadata.is_empty() {
            let text = run.metadata.clone().to_bounded_json();
            parts.push(Part {
                kind: Kind::Metadata,
                rank: None,
                payload: squeezed_text(text.as_bytes()).into(),
            });
        }
    }
    if !decisions.is_empty() {
        let lines = decisions.iter().map(|decision| serde_json::to_string(decision).expect("plain data"));
        let lines: Vec<String> = lines.collect();
        let payload = squeezed_text(lines.join("\n").as_bytes()).into();
        parts.push(Part { kind: Kind::Decisions, rank: None, payload });
    }
    parts
}

/// Puts one section of a rank back, but for its windows; `None` if its bytes do not make sense.
pub fn restore(rank: &mut RankTrace, kind: Kind, payload: &[u8]) -> Option<()> {
    match kind {
        Kind::Addresses => rank.places = Places::read(payload)?,
        Kind::Buffers => rank.buffers = Buffers::read(&unsqueezed(payload)?)?,
        Kind::Gaps => rank.gaps = Gaps::read(payload)?,
        Kind::Times => {
            if !payload.is_empty() {
                Decoder::new(payload).ok()?;
            }
            rank.times = payload.to_vec();
        }
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files that are written need the texts as they are.
    #[test]
    fn texts_stay_as_they_are() {
        assert_eq!((TEXTS.len(), crc32fast::hash(TEXTS)), (4166, 0x786cdc76));
        let run = b"{\"ampl_version\":\"9.9.9\",\"groups\":[{\"name\":\"all\",\"members\":\"0-7\"}]}";
        assert!(squeezed_text(run).len() < squeezed(run).len() / 2);
    }

    #[test]
    fn what_was_squeezed_comes_back_unless_it_is_too_much() {
        let text = (0..100).map(|rank| format!("{{\"rank\":{rank},\"host\":\"n1\"}}\n")).collect::<String>();
        for packed in [squeezed(text.as_bytes()), squeezed_text(text.as_bytes())] {
            assert_eq!(unsqueezed(&packed).as_deref(), Some(text.as_bytes()));
            assert_eq!(unsqueezed(&packed[..packed.len() / 2]), None);
        }
        assert_eq!(unsqueezed(&squeezed(&[])), Some(Vec::new()));
        assert_eq!(unsqueezed(&squeezed_text(&[])), Some(Vec::new()));
        assert_eq!(unsqueezed(&squeezed(&vec![0; 1 << 26])), None, "a few bytes that claim to be many");
    }
}
