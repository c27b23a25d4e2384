//! One stream of times, as it is written or read: what both sides know is the same.

use super::Settings;
use super::bits::Bits;
use super::models::{Kind, Models, Signature, Symbol};
use super::reference::Reference;
use super::scale::Scale;

/// Codes calls: a writer gives their times, and both sides get what a reader has.
#[derive(Debug)]
pub struct Stream<B> {
    /// Where bits go to or come from.
    pub bits: B,
    /// Counts what is coded, if wanted.
    pub reference: Option<Reference>,
    scale: Scale,
    floor: i128,
    models: Models,
    /// What short gaps and durations are decoded as, by signature.
    levels: Vec<[Level; 2]>,
    thread: u32,
    /// The end of the call before, as the reader has it.
    end: i64,
    /// The end of the call before as it was, were its duration what the reader has. Known to writers.
    true_end: i64,
}

/// What a signature's short gaps or durations are decoded as.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    value: i64,
    /// Short values so far.
    count: u64,
    /// Their sum; known to writers.
    sum: i128,
}

impl Level {
    /// Whether the mean is told now: at 4, 256, 16384, …
    fn is_due(&self) -> bool {
        self.count.is_power_of_two() && self.count.ilog2() % 6 == 2
    }
}

/// Start and duration of a call, as one side has them.
pub type Call = (i64, u64);

impl<B: Bits> Stream<B> {
    /// A stream at its beginning.
    pub fn new(settings: Settings, bits: B, reference: Option<Reference>) -> Self {
        Self {
            bits,
            reference,
            scale: Scale::new(settings),
            floor: settings.floor_ns.into(),
            models: Models::new(),
            levels: Vec::new(),
            thread: 0,
            end: 0,
            true_end: 0,
        }
    }

    /// Begins a window: the next call's gap is from `start`.
    pub fn window(&mut self, thread: u32, start: i64) {
        (self.thread, self.end, self.true_end) = (thread, start, start);
    }

    /// Codes a call's time, and returns what the reader has of it; `None` when there is no such value.
    #[inline]
    pub fn call(&mut self, terminal: u32, time: Option<Call>) -> Option<Call> {
        let of = self.signature(terminal);
        let gap = time.map(|(start, _)| i128::from(start) - i128::from(self.end));
        let even = time.map_or(0, |(start, _)| i128::from(start) - i128::from(self.true_end));
        let gap = self.value(of, Kind::Gap, gap, even)?;
        let duration = time.map(|(_, duration)| i128::from(duration));
        let duration = self.value(of, Kind::Duration, duration, duration.unwrap_or(0))?;
        // Never farther from what is in range than without.
        let at = |time: i128| time.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        let start = at(i128::from(self.end) + gap);
        self.end = at(i128::from(start) + duration);
        self.true_end = time.map_or(0, |(start, _)| at(i128::from(start) + duration));
        Some((start, duration as u64))
    }

    /// Codes how many polls the entry of the last call stands for.
    pub fn polls(&mut self, terminal: u32, count: u64) -> Option<u64> {
        let of = self.signature(terminal);
        let more = Scale::Exact.bin(count.saturating_sub(1));
        let more = self.models.magnitude(&mut self.bits, (of, Kind::Polls, false), &Scale::Exact, more);
        Scale::Exact.value(more)?.checked_add(1)
    }

    fn signature(&mut self, terminal: u32) -> Signature {
        let of = self.models.signature(u64::from(self.thread) << 32 | u64::from(terminal));
        if of.number() >= self.levels.len() {
            self.levels.resize(of.number() + 1, Default::default());
        }
        of
    }

    /// Codes one value, which is `even` where errors of the call before are not made up for.
    #[inline]
    fn value(&mut self, of: Signature, kind: Kind, value: Option<i128>, even: i128) -> Option<i128> {
        let mut symbol = Symbol::default();
        if self.floor > 0 {
            let expected = i128::from(self.levels[of.number()][kind as usize].value);
            let short = match (value, kind) {
                (None, _) => false,
                (Some(value), Kind::Gap) => (value - expected).abs() <= self.floor,
                (Some(value), _) => value <= self.floor,
            };
            symbol.short = self.models.short(&mut self.bits, of, kind, short);
        }
        let coded = if symbol.short {
            self.short(of, kind, even)?
        } else {
            let (coded, known) = self.signed(of, kind, value)?;
            symbol = known;
            coded
        };
        if let Some(reference) = &mut self.reference {
            reference.count(of, kind, symbol);
        }
        Some(coded)
    }

    /// Codes a value that is not short: sign and bin.
    #[inline]
    fn signed(&mut self, of: Signature, kind: Kind, value: Option<i128>) -> Option<(i128, Symbol)> {
        let value = value.unwrap_or(0);
        let negative = kind != Kind::Duration && self.models.sign(&mut self.bits, of, kind, value < 0);
        // Differences of two times, and durations, have 64 bits beside the sign.
        let bin = self.scale.bin(value.unsigned_abs() as u64);
        let bin = self.models.magnitude(&mut self.bits, (of, kind, negative), &self.scale, bin);
        let magnitude = i128::from(self.scale.value(bin)?);
        Some((if negative { -magnitude } else { magnitude }, Symbol { short: false, negative, bin }))
    }

    /// What a short value is decoded as; from time to time, their mean is coded.
    fn short(&mut self, of: Signature, kind: Kind, even: i128) -> Option<i128> {
        let level = &mut self.levels[of.number()][kind as usize];
        level.count += 1;
        level.sum += even.clamp(-self.floor, self.floor);
        let (before, count, sum) = (level.value, level.count, level.sum);
        if level.is_due() {
            let (mean, _) = self.signed(Signature::RANK, Kind::Short, Some(sum / i128::from(count)))?;
            let mean = mean.clamp(-self.floor, self.floor).clamp(i64::MIN.into(), i64::MAX.into());
            self.levels[of.number()][kind as usize].value = mean as i64;
        }
        match kind {
            // It is near to what was expected.
            Kind::Gap => Some(before.into()),
            // Between 0 and the floor, as the mean is.
            _ => Some(self.levels[of.number()][kind as usize].value.into()),
        }
    }
}
