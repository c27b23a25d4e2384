//! Messages up the tree.

use super::moments;
use super::partial::{MessageLayout, PartialSums};
use super::stratification::{Stratifications, StratifiedSums};
use super::wire::{Reader, Writer};
use super::{KIND_UP, MessageError, OwnSteps, VERSION, expect_kind};
use crate::units::WindowId;

const CENSUS: u8 = 1;
const INTERVAL: u8 = 1 << 1;
const LATE: u8 = 1 << 2;
const WINDOW: u8 = 1 << 3;
const DIVIDED: u8 = 1 << 4;
const STEPS: u8 = 1 << 5;

/// Sums of one window, or of a range of windows that were merged because they had to wait too long.
#[derive(Clone, Debug, PartialEq)]
pub struct CensusWindow {
    /// First window.
    pub first_window: WindowId,
    /// Last window, at least the first.
    pub last_window: WindowId,
    /// Rank-windows in it: ranks for a single window.
    pub reported: u64,
    /// `true` if it was passed on while a rank that has not finished was missing.
    pub late: bool,
    /// The sums.
    pub partial: PartialSums,
}

impl CensusWindow {
    /// A window range that no rank has reported yet.
    pub fn new(shape: &MessageLayout, first: WindowId, last: WindowId) -> Self {
        Self { partial: shape.partial(), ..Self::of(first, last) }
    }

    /// The same, where this rank, which has been added, names `own` by now: windows take time to come up.
    #[must_use]
    pub fn reached(mut self, own: Option<&OwnSteps>) -> Self {
        own.into_iter().for_each(|own| self.partial.steps.reach(own));
        self
    }

    /// The same for the retrospective pass.
    pub fn binned(shape: &MessageLayout, first: WindowId, last: WindowId) -> Self {
        Self { partial: shape.binned(), ..Self::of(first, last) }
    }

    /// The same without any sums.
    pub fn of(first_window: WindowId, last_window: WindowId) -> Self {
        Self { first_window, last_window, reported: 0, late: false, partial: PartialSums::default() }
    }

    /// Number of windows of the range, at least 1.
    pub fn windows(&self) -> u64 {
        self.last_window.0.saturating_sub(self.first_window.0).saturating_add(1)
    }

    /// Windows of the range that are merged: all of several, 0 of one.
    pub fn merged(&self) -> u64 {
        if self.windows() > 1 { self.windows() } else { 0 }
    }

    /// Merges other ranks' sums of these windows, or sums of the windows next to them.
    ///
    /// The result spans both; windows of a range are pooled as rank-windows.
    pub fn merge(&mut self, other: &Self) {
        self.first_window = self.first_window.min(other.first_window);
        self.last_window = self.last_window.max(other.last_window);
        // Counts from hostile bytes may be anything; they must not overflow.
        self.reported = self.reported.saturating_add(other.reported);
        self.late |= other.late;
        self.partial.merge(&other.partial);
        if self.windows() > 1 {
            self.partial.divided.iter_mut().for_each(StratifiedSums::pool);
        }
    }
}

/// Message from a node of the tree to its parent.
#[derive(Clone, Debug, PartialEq)]
pub struct UpMessage {
    /// 0, or 1 for the retrospective pass over the window.
    pub pass: u8,
    /// Ranks of the sender's subtree that have finished; all of them only in the last message.
    pub finished: u32,
    /// The windows; `None` when only finished ranks are left to report.
    pub window: Option<CensusWindow>,
}

impl UpMessage {
    pub(super) const HEADER: usize = 8 + 4 + 4 + 3 * 8;

    /// Bytes that an up message between nodes of that shape has at most.
    pub fn encoded_len(shape: &MessageLayout) -> usize {
        Self::HEADER + shape.encoded_len()
    }

    /// The pass of a message, as its bytes say.
    pub fn pass(bytes: &[u8]) -> Option<u8> {
        bytes.get(2).copied()
    }

    /// `true` if the sums in `bytes` are of the same kinds as those of `shape`, and as many.
    pub fn fits(bytes: &[u8], shape: &MessageLayout) -> bool {
        let Some(&[_, _, pass, flags, a, b, c, d, _, _, _, _, bins @ ..]) = bytes.first_chunk::<16>() else {
            return false;
        };
        let counts = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]), u32::from_le_bytes(bins));
        flags & (CENSUS | INTERVAL | DIVIDED | STEPS) == Self::kinds(shape)
            && counts == Self::counts(shape, pass)
    }

    /// Flags of the kinds of sums that `shape` has besides those of kept windows.
    fn kinds(shape: &MessageLayout) -> u8 {
        (if shape.census { CENSUS } else { 0 })
            | (if shape.interval { INTERVAL } else { 0 })
            | (if shape.divisions.is_some() { DIVIDED } else { 0 })
            | (if shape.steps { STEPS } else { 0 })
    }

    /// Rows and columns of a pass, then its bins in the retrospective pass, or the groups and guides that are divided in the
    /// first.
    fn counts(shape: &MessageLayout, pass: u8) -> (u16, u16, u32) {
        match shape.retrospective.as_ref().filter(|_| pass == 1) {
            Some(retrospective) => (
                retrospective.groups.len() as u16,
                retrospective.guides.len() as u16,
                retrospective.bins.into(),
            ),
            None => {
                let divided = |divided: &Stratifications| {
                    (divided.groups.len() as u32) << 16 | divided.guides.len() as u32
                };
                (
                    shape.cells.len() as u16,
                    shape.asked.len() as u16,
                    shape.divisions.as_ref().map_or(0, divided),
                )
            }
        }
    }

    /// Appends the message, at most [`UpMessage::encoded_len`] bytes, little-endian.
    pub fn encode(&self, shape: &MessageLayout, buffer: &mut Vec<u8>) {
        let mut flags = Self::kinds(shape);
        let window = self.window.as_ref();
        flags |= if window.is_some() { WINDOW } else { 0 };
        flags |= if window.is_some_and(|window| window.late) { LATE } else { 0 };
        let mut to = Writer(buffer);
        to.bytes(&[VERSION, KIND_UP, self.pass, flags]);
        let (rows, columns, bins) = Self::counts(shape, self.pass);
        to.u16(rows);
        to.u16(columns);
        to.u32(self.finished);
        to.u32(bins);
        to.u64(window.map_or(0, |window| window.first_window.0));
        to.u64(window.map_or(0, |window| window.last_window.0));
        to.u64(window.map_or(0, |window| window.reported));
        match (window, self.pass) {
            (Some(window), 1) => window.partial.encode_binned(&mut to),
            (Some(window), _) => window.partial.encode(shape, &mut to),
            (None, _) => {}
        }
    }

    /// The message that `bytes` begin with, which may be hostile.
    ///
    /// # Errors
    /// [`MessageError`] naming the first thing wrong.
    pub fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        Self::decode_into(bytes, PartialSums::default())
    }

    /// The same, with its sums in the memory of `partial`, whatever that holds.
    ///
    /// # Errors
    /// As [`UpMessage::decode`].
    pub fn decode_into(bytes: &[u8], mut partial: PartialSums) -> Result<Self, MessageError> {
        let mut from = Reader::new(bytes, Self::HEADER)?;
        expect_kind(&mut from, &[KIND_UP])?;
        let (pass, flags) = (from.u8(), from.u8());
        if flags & !(CENSUS | INTERVAL | LATE | WINDOW | DIVIDED | STEPS) != 0 {
            return Err(MessageError::Value { field: "flags" });
        }
        let (rows, columns) = (from.u16(), from.u16());
        let (census, interval) = (flags & CENSUS != 0, flags & INTERVAL != 0);
        let (finished, bins) = (from.u32(), from.u32());
        let (first, last, reported) = (from.u64(), from.u64(), from.u64());
        if flags & WINDOW == 0 {
            return Ok(Self { pass, finished, window: None });
        }
        // What is allocated is bounded by the bytes there are.
        partial.divided.clear();
        partial.steps.clear();
        match pass {
            0 => {
                partial.binned.clear();
                from.expect_some(MessageLayout::payload(
                    (rows, columns),
                    (census, interval),
                    moments::LEAST,
                ))?;
                partial.decode(&mut from, rows, columns, census, interval)?;
                let groups = if flags & DIVIDED != 0 { bins >> 16 } else { 0 };
                for _ in 0..groups {
                    partial.divided.push(StratifiedSums::decode(&mut from, bins as u16)?);
                }
                if flags & STEPS != 0 {
                    partial.steps.decode(&mut from)?;
                }
            }
            1 => {
                partial.cells.clear();
                let bins = u16::try_from(bins).map_err(|_| MessageError::Value { field: "bins" })?;
                partial.decode_binned(&mut from, rows, bins, columns)?;
            }
            _ => return Err(MessageError::Value { field: "pass" }),
        }
        if first > last {
            return Err(MessageError::Value { field: "last_window" });
        }
        let (first_window, last_window) = (WindowId(first), WindowId(last));
        let late = flags & LATE != 0;
        let window = CensusWindow { first_window, last_window, reported, late, partial };
        Ok(Self { pass, finished, window: Some(window) })
    }
}
