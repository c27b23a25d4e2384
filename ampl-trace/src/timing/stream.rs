//! One stream of times, as it is written or read, with the same state on both sides.

use rustc_hash::FxHashMap;

use super::gap_choice::Aim;
use super::models::{Kind, Models, Seldom, Signature};
use super::scale::Scale;
use super::{MILLION, Settings, Terminal};
use crate::bits::Bits;

/// Codes calls: a writer passes their times, and both sides return the reader's.
#[derive(Debug)]
pub struct Stream<B> {
    /// Destination or source of bits.
    pub bits: B,
    scale: Scale,
    floor: i128,
    models: Models,
    /// Values that short gaps and durations are decoded as, of signatures that are alike.
    levels: FxHashMap<u16, [Level; 2]>,
    thread: u32,
    /// The end of the call before, as the reader has it.
    end: i64,
    /// True where the next call is the first of a window that does not follow the one before.
    first: bool,
    /// Part that is left of a duration that is stored as less, millionths.
    less: i128,
    /// Gaps that a writer aims at.
    aim: Aim,
}

/// Value that the short gaps or durations of signatures that are alike are decoded as.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    value: i64,
    /// Short values so far.
    count: u64,
    /// Sum of short values; known to writers.
    sum: i128,
}

impl Level {
    /// True where the mean is coded with the value of that count: at 4, 256, 16384, …
    fn is_coded_at(count: u64) -> bool {
        count.is_power_of_two() && count.ilog2() % 6 == 2
    }
}

/// Start and duration of a call, as one side has them.
pub type Call = (i64, u64);

/// A value that a writer codes.
#[derive(Clone, Copy, Debug)]
struct Value {
    value: i128,
    /// Value without a correction.
    plain: i128,
    /// True where it may be coded as short where it is.
    may_be_short: bool,
}

impl<B: Bits> Stream<B> {
    /// A stream at its beginning.
    pub fn new(settings: Settings, bits: B) -> Self {
        Self {
            bits,
            scale: Scale::new(settings),
            floor: settings.floor_ns.into(),
            models: Models::new(),
            levels: FxHashMap::default(),
            thread: 0,
            end: 0,
            first: false,
            less: i128::from(MILLION - settings.millionths()),
            aim: Aim::new(settings),
        }
    }

    /// Begins a window: the next call's gap is from `start`, which is returned; without one it follows the
    /// window before, and the gap is from the end of its last call.
    pub fn window(&mut self, thread: u32, start: Option<i64>) -> i64 {
        self.aim.window(start);
        (self.thread, self.end, self.first) = (thread, start.unwrap_or(self.end), start.is_some());
        self.end
    }

    /// Codes a call's time, and returns the reader's; `None` when there is no such value.
    #[inline]
    pub fn call(&mut self, terminal: Terminal, time: Option<Call>) -> Option<Call> {
        let of = self.signature(terminal);
        // Clamping never takes it farther from a time in range.
        let at = |time: i128| time.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        if std::mem::take(&mut self.first) {
            let ends = time.map_or(0, |(start, duration)| i128::from(start) + i128::from(duration));
            let begin = i128::from(self.end);
            let crosses = time.is_some_and(|(start, _)| start < self.end) && ends <= i64::MAX.into();
            if self.models.seldom(&mut self.bits, Seldom::Crosses, crosses) {
                // A call that began before the window, even long before, is stored by its end.
                let after = self.signed(of, Kind::Gap, ends - begin)?;
                let end = at(begin + after);
                self.aim.crosses(time);
                let duration = self.duration(of, terminal.like, time, None)?;
                self.end = end;
                return Some((at(i128::from(end) - duration), duration as u64));
            }
        }
        let gap = time.map(|(start, _)| {
            let (value, plain) = self.aim.gap(start, self.end);
            Value { value, plain, may_be_short: true }
        });
        let gap = self.value(of, terminal.like, Kind::Gap, gap, None)?;
        let start = at(i128::from(self.end) + gap);
        if let Some((start, duration)) = time {
            self.aim.call(start, duration);
        }
        let duration = self.duration(of, terminal.like, time, Some(start))?;
        self.end = at(i128::from(start) + duration);
        Some((start, duration as u64))
    }

    /// Codes a duration, of a call that the reader has begin at `start`.
    #[inline]
    fn duration(&mut self, of: Signature, like: u16, time: Option<Call>, start: Option<i64>) -> Option<i128> {
        let duration = time.map(|(_, duration)| {
            let value = i128::from(duration);
            let may_be_short = self.floor == 0 || {
                let level = *self.level(like, Kind::Duration);
                let coded = Level::is_coded_at(level.count + 1);
                let level = if coded { self.floor } else { level.value.into() };
                start.is_none_or(|start| self.aim.allows(i128::from(start) + level))
            };
            Value { value, plain: value, may_be_short }
        });
        self.value(of, like, Kind::Duration, duration, start)
    }

    /// Codes the number of polls that the entry of the last call stands for.
    pub fn polls(&mut self, terminal: Terminal, count: u64) -> Option<u64> {
        let of = self.signature(terminal);
        let more = Scale::Exact.bin(count.saturating_sub(1));
        let which = (of, Kind::Polls, false);
        let more = self.models.magnitude(&mut self.bits, which, &Scale::Exact, more);
        Scale::Exact.value(more)?.checked_add(1)
    }

    fn signature(&mut self, terminal: Terminal) -> Signature {
        self.models.signature(u64::from(self.thread) << 32 | u64::from(terminal.number), terminal.like)
    }

    fn level(&mut self, like: u16, kind: Kind) -> &mut Level {
        &mut self.levels.entry(like).or_default()[kind as usize]
    }

    /// Codes one value; of a duration, `start` is when the reader has the call begin.
    #[inline]
    fn value(
        &mut self,
        of: Signature,
        like: u16,
        kind: Kind,
        value: Option<Value>,
        start: Option<i64>,
    ) -> Option<i128> {
        if self.floor > 0 {
            let expected = i128::from(self.level(like, kind).value);
            let short = match (value, kind) {
                (None, _) => false,
                (Some(value), Kind::Gap) => (value.value - expected).abs() <= self.floor,
                (Some(value), _) => value.value <= self.floor && value.may_be_short,
            };
            if self.models.short(&mut self.bits, of, like, kind, short) {
                return self.short(like, kind, value.map_or(0, |value| value.plain));
            }
        }
        let value = value.map_or(0, |value| if value.plain < 0 { value.value } else { value.value.max(0) });
        if kind == Kind::Gap {
            return self.signed(of, kind, value);
        }
        // A value that may not be short corrects one that was too long: it is 0, which is near enough.
        let value = if value <= self.floor { 0 } else { value };
        let more = start.and_then(|start| self.more(value, start));
        let stored = self.bin(of, kind, false, more.unwrap_or(value))?;
        // A value less than its bin's is still as near to it.
        let less = self.less < i128::from(MILLION) && stored > 0 && {
            let late = || start.is_some_and(|start| self.aim.is_late(i128::from(start) + stored));
            let less = more.is_some() || value <= stored && late();
            self.models.seldom(&mut self.bits, Seldom::Less, less)
        };
        let million = i128::from(MILLION);
        Some(if less { (stored * self.less + million - 1) / million } else { stored })
    }

    /// Value to code, and to store as less than its bin's value, where a duration had better be more than its own
    /// bin's value and the reader has the call begin at `start`: it is in the next bin.
    fn more(&self, value: i128, start: i64) -> Option<i128> {
        let million = i128::from(MILLION);
        // A 0 is stored so; readers have nothing else to code.
        if value == 0 || self.less == million {
            return None;
        }
        let stored = i128::from(self.scale.value(self.scale.bin(u64::try_from(value).ok()?))?);
        if value < stored || !self.aim.is_early(i128::from(start) + stored) {
            return None;
        }
        let next = stored * million / self.less + 1;
        let then = i128::from(self.scale.value(self.scale.bin(u64::try_from(next).ok()?))?);
        let then = (then * self.less + million - 1) / million;
        let error = (then - value).abs() * million;
        (error <= value * (million - self.less)).then_some(next)
    }

    /// Codes sign and bin; returns the value that these are decoded as.
    #[inline]
    fn signed(&mut self, of: Signature, kind: Kind, value: i128) -> Option<i128> {
        let negative = self.models.seldom(&mut self.bits, Seldom::Negative, value < 0);
        let magnitude = self.bin(of, kind, negative, value.abs())?;
        Some(if negative { -magnitude } else { magnitude })
    }

    /// Codes a magnitude's bin; returns the value that this is decoded as.
    #[inline]
    fn bin(&mut self, of: Signature, kind: Kind, negative: bool, magnitude: i128) -> Option<i128> {
        // Differences of two times, and durations, have 64 bits beside the sign.
        let bin = self.scale.bin(magnitude as u64);
        let bin = self.models.magnitude(&mut self.bits, (of, kind, negative), &self.scale, bin);
        Some(self.scale.value(bin)?.into())
    }

    /// Value that a short value is decoded as; from time to time, their mean is coded.
    fn short(&mut self, like: u16, kind: Kind, plain: i128) -> Option<i128> {
        let floor = self.floor;
        let level = self.level(like, kind);
        level.count += 1;
        level.sum += plain.clamp(-floor, floor);
        let (before, count, sum) = (level.value, level.count, level.sum);
        if !Level::is_coded_at(count) {
            return Some(before.into());
        }
        let mean = self.signed(Signature::RANK, Kind::Short, sum / i128::from(count))?;
        let mean = mean.clamp(-floor, floor).clamp(i64::MIN.into(), i64::MAX.into());
        self.level(like, kind).value = mean as i64;
        // A gap is near to what was expected; a duration is between 0 and the floor, as the mean is.
        Some(if kind == Kind::Gap { before.into() } else { mean })
    }
}
