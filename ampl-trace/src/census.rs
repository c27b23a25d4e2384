//! Differences that rounding makes in the sums of summaries over all ranks: with them a census stays exact.

use std::collections::BTreeMap;

use crate::bits::{Bits, Reader, Writer};
use crate::column::Column;
use crate::varint;

/// Windows and what their sums over ranks lack, ascending.
type Series = BTreeMap<u64, i64>;

/// Differences by group, metric and window: the exact sum over the ranks less the sum of the rounded values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    series: BTreeMap<(u32, u32), Series>,
}

impl Census {
    /// Adds that the sum of a metric over a group lacks so much in a window.
    pub(crate) fn add(&mut self, group: u32, metric: u32, window: u64, lacks: i64) {
        let sum = self.series.entry((group, metric)).or_default().entry(window).or_default();
        *sum = sum.saturating_add(lacks);
    }

    /// Adds what summaries of other ranks lack.
    pub fn join(&mut self, other: Self) {
        if self.series.is_empty() {
            *self = other;
            return;
        }
        for ((group, metric), series) in other.series {
            series.into_iter().for_each(|(window, lacks)| self.add(group, metric, window, lacks));
        }
    }

    /// True where nothing was rounded.
    pub fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// Sum that the values of a metric lack in a group's `windows`, all ranks together.
    pub fn lacks(&self, group: usize, metric: usize, windows: std::ops::RangeInclusive<u64>) -> f64 {
        let series = self.series.get(&(group as u32, metric as u32)).filter(|_| !windows.is_empty());
        series.map_or(0.0, |series| series.range(windows).map(|(_, &lacks)| lacks as f64).sum())
    }

    /// Bytes of the section that stores it; none where nothing was rounded.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if self.is_empty() {
            return out;
        }
        varint::put(&mut out, self.series.len() as u64);
        for (&(group, metric), series) in &self.series {
            [u64::from(group), metric.into(), series.len() as u64]
                .into_iter()
                .for_each(|value| varint::put(&mut out, value));
        }
        let mut bits = Writer::default();
        for series in self.series.values() {
            let mut coder = Coder::default();
            for (&window, &lacks) in series {
                coder.code(&mut bits, window, lacks);
            }
        }
        out.extend(bits.into_bytes());
        out
    }

    /// The census that was [encoded](Self::encode); `None` where `bytes` make no sense.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut census = Self::default();
        if bytes.is_empty() {
            return Some(census);
        }
        let mut reader = varint::Reader::new(bytes);
        let mut lengths = Vec::new();
        for _ in 0..reader.get()? {
            let [group, metric] = [reader.get()?, reader.get()?];
            lengths.push(((u32::try_from(group).ok()?, u32::try_from(metric).ok()?), reader.get()?));
        }
        let mut bits = Reader::new(&bytes[reader.position()..]);
        for (key, length) in lengths {
            let mut coder = Coder::default();
            let series = census.series.entry(key).or_default();
            for _ in 0..length {
                let (window, lacks) = coder.code(&mut bits, 0, 0);
                if !bits.is_sound() {
                    return None;
                }
                series.insert(window, lacks);
            }
        }
        Some(census)
    }
}

/// Columns of a series.
struct Coder {
    windows: Column,
    lacks: Column,
    before: u64,
}

impl Default for Coder {
    fn default() -> Self {
        Self { windows: Column::NEW, lacks: Column::NEW, before: u64::MAX }
    }
}

impl Coder {
    /// Codes a window. It takes a whole bit at least, so that few bytes do not hold very many.
    fn code<B: Bits>(&mut self, bits: &mut B, window: u64, lacks: i64) -> (u64, i64) {
        let less = bits.plain(1, (lacks < 0).into()) != 0;
        self.before = self.windows.code(bits, window, &[self.before.wrapping_add(1)]);
        let magnitude = self.lacks.code(bits, lacks.unsigned_abs(), &[0]) as i64;
        (self.before, if less { magnitude.wrapping_neg() } else { magnitude })
    }
}
