//! Bytes that kept calls take in the trace, known while the program runs.
//!
//! A thread codes what it keeps as the trace will have it, without writing it. The number of coded calls per elapsed
//! time is bounded; calls beyond cost as much per call as the coded ones. Calls of an undecided window cost as much per
//! call as the latest that was kept. A thread that has kept nothing has untrained models: one of its windows is coded
//! for a trial.

use ampl_core::units::WindowId;
use ampl_trace::record::{CALL_MISS, Kind};
use ampl_trace::timing::{Encoder, Length, Settings, Terminal, Time, Window};

/// Bits of a call while nothing is known.
const PRIOR: Rate = Rate { bits: 32, calls: 1 };
/// Calls that the rate remembers.
const MEMORY: u64 = 512;
/// Nanoseconds that earn the coding of one call: that takes about 400, a five-hundredth of them.
const EARNED_NS: u64 = 200_000;
/// So many at once at most: about a millisecond.
const MOST: u64 = 2048;
/// Calls of a trial at most: about half a millisecond.
const TRIAL: u64 = 1024;

/// Bits that calls took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Rate {
    bits: u64,
    calls: u64,
}

impl Rate {
    /// Bits of `calls` calls.
    fn of(self, calls: u64) -> u64 {
        (u128::from(calls) * u128::from(self.bits) / u128::from(self.calls.max(1))) as u64
    }

    /// Takes `calls` more, which took `bits`, and forgets as many.
    fn learn(&mut self, bits: u64, calls: u64) {
        let keep = MEMORY.saturating_sub(calls);
        let kept = |of: u64| of * keep / MEMORY;
        *self = Self { bits: kept(self.bits) + bits, calls: kept(self.calls) + calls };
    }
}

/// Cost of the first calls of a window, for a thread that has kept nothing.
#[derive(Clone, Copy, Debug)]
struct Trial {
    all: Rate,
    /// The later half of them, by which models have learnt something.
    later: Rate,
}

impl Trial {
    /// Bits of `calls` calls, the first that are kept.
    fn of(self, calls: u64) -> u64 {
        self.all.of(calls.min(self.all.calls)) + self.later.of(calls.saturating_sub(self.all.calls))
    }
}

/// Prices of a thread's calls.
#[derive(Debug)]
pub(crate) struct Pricing {
    settings: Settings,
    thread: u32,
    /// Nanoseconds per tick, in units of 2⁻³².
    nanos: u64,
    /// Functions of the thread's terminals.
    functions: Vec<u16>,
    coder: Option<Box<Encoder<Length>>>,
    rate: Option<Rate>,
    tried: Option<Trial>,
    /// Calls that may be coded, and until when they were earned, ticks.
    credit: u64,
    earned: u64,
    /// The window that has begun and has no call yet; whether calls of the one before were left out.
    opened: Option<Window>,
    cut: bool,
    /// Bits kept since the last [`Pricing::take_spent`].
    spent: u64,
    /// Bits of the last price that made no byte.
    rest: u64,
}

impl Pricing {
    /// Prices without any data.
    pub fn new(settings: Settings, thread: u32, nanos_per_tick: f64) -> Self {
        Self {
            settings,
            thread,
            nanos: (nanos_per_tick * (1u64 << 32) as f64) as u64,
            functions: Vec::new(),
            coder: None,
            rate: None,
            tried: None,
            credit: MOST,
            earned: 0,
            opened: None,
            cut: true,
            spent: 0,
            rest: 0,
        }
    }

    /// The thread's next terminal is of that function.
    pub fn signature(&mut self, function: u16) {
        self.functions.push(function);
    }

    /// Takes records that are kept; each window's begin with its [`Kind::Open`].
    pub fn take(&mut self, words: &[u64]) {
        if words.is_empty() {
            return;
        }
        let mut coder = self.coder.take().unwrap_or_else(|| Box::new(Encoder::measuring(self.settings)));
        let (before, mut coded, mut rest) = (coder.bits(), 0, 0);
        for record in records(words) {
            match record {
                Record::OpenWindow(window, start, first_seq) => {
                    self.earn(start);
                    self.cut = false;
                    self.opened = Some(self.window(window, start, first_seq));
                }
                Record::Call(..) if self.cut || self.credit == 0 => {
                    self.cut = true;
                    rest += 1;
                }
                Record::Call(flags, call) => {
                    self.credit -= 1;
                    coded += 1;
                    if let Some(window) = self.opened.take() {
                        coder.window(window);
                    }
                    self.code(&mut coder, flags, call);
                }
            }
        }
        let bits = coder.bits() - before;
        self.coder = Some(coder);
        if coded > 0 {
            self.rate.get_or_insert_default().learn(bits, coded);
        }
        self.spent += bits + self.rate.unwrap_or(PRIOR).of(rest);
    }

    /// Bytes that `calls` calls of an undecided window would take; `words` have some of them, as a rule the first.
    pub fn price(&mut self, words: &[u64], calls: u64) -> u64 {
        let tried = self.tried.map_or(0, |tried| tried.all.calls);
        if self.rate.is_none() && calls.min(TRIAL) > 2 * tried {
            self.tried = self.trial(words).or(self.tried);
        }
        let bits = match (self.rate, self.tried) {
            (Some(rate), _) => rate.of(calls),
            (None, Some(tried)) => tried.of(calls),
            (None, None) => PRIOR.of(calls),
        } + self.rest;
        self.rest = bits % 8;
        bits / 8
    }

    /// Bytes kept since this was asked for last.
    pub fn take_spent(&mut self) -> u64 {
        let bytes = self.spent / 8;
        self.spent %= 8;
        bytes
    }

    /// Cost of the calls at the beginning of `words` where nothing came before; `None` if there are none.
    fn trial(&self, words: &[u64]) -> Option<Trial> {
        let mut coder = Encoder::measuring(self.settings);
        let (mut calls, mut begin) = (0, None);
        // Bits of 1, 2, 4, … calls.
        let (mut half, mut doubled) = (Rate::default(), Rate::default());
        for record in records(words) {
            match record {
                Record::OpenWindow(_, start, _) if calls == 0 => begin = Some(start),
                Record::Call(flags, call) if calls < TRIAL => {
                    if calls == 0 {
                        coder.window(self.window(WindowId(0), begin.unwrap_or(call[0]), 0));
                    }
                    self.code(&mut coder, flags, call);
                    calls += 1;
                    if calls.is_power_of_two() {
                        half = std::mem::replace(&mut doubled, Rate { bits: coder.bits(), calls });
                    }
                }
                _ => break,
            }
        }
        let later = Rate { bits: coder.bits() - half.bits, calls: calls - half.calls };
        coder.end_window();
        (calls > 0).then(|| Trial { all: Rate { bits: coder.bits(), calls }, later })
    }

    /// Time has passed until `now`.
    fn earn(&mut self, now: u64) {
        let passed = self.nanoseconds(now.saturating_sub(self.earned)) / EARNED_NS;
        if passed > 0 {
            self.credit = (self.credit + passed).min(MOST);
            self.earned = now;
        }
    }

    fn nanoseconds(&self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.nanos)) >> 32) as u64
    }

    fn window(&self, window: WindowId, start: u64, first_seq: u64) -> Window {
        let start_ns = self.nanoseconds(start) as i64;
        Window { thread: self.thread, window: window.0, first_seq, start_ns }
    }

    fn code(&self, coder: &mut Encoder<Length>, flags: u8, [start, duration, which]: [u64; 3]) {
        let number = which as u32;
        let like = self.functions.get(number as usize).copied().unwrap_or(0);
        let terminal = Terminal { number, like, folds: flags & CALL_MISS != 0 };
        let [begin, end] = [start, start.wrapping_add(duration)].map(|at| self.nanoseconds(at));
        let duration_ns = end.saturating_sub(begin);
        coder.call(terminal, Time { start_ns: begin as i64, duration_ns, count: which >> 32 });
    }
}

/// Records of a stream that matter for prices.
enum Record {
    /// A window begins: its number, when, and the thread's calls before it.
    OpenWindow(WindowId, u64, u64),
    /// Flags, start, duration, terminal and count.
    Call(u8, [u64; 3]),
}

fn records(mut words: &[u64]) -> impl Iterator<Item = Record> {
    std::iter::from_fn(move || {
        loop {
            let head = *words.first()?;
            let (record, rest) = words.split_at_checked((head >> 32).max(1) as usize)?;
            words = rest;
            match record {
                [_, window, start, _, _, first_seq] if head as u8 == Kind::Open as u8 => {
                    return Some(Record::OpenWindow(WindowId(*window), *start, *first_seq));
                }
                [_, call @ ..] if head as u8 == Kind::Call as u8 => {
                    return Some(Record::Call((head >> 8) as u8, *call.first_chunk()?));
                }
                _ => {}
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use ampl_trace::record::{CALL_WORDS, header};

    use super::*;

    const SETTINGS: Settings = Settings { error: 0.1, floor_ns: 0 };
    /// Calls of a window, and its length in nanoseconds.
    const CALLS: u64 = 100;
    const LENGTH: u64 = 100_000_000;

    /// A window's records; durations by number of the call.
    fn window(number: u64, duration: &mut impl FnMut(u64) -> u64) -> Vec<u64> {
        let start = number * LENGTH;
        let mut words = vec![header(Kind::Open, 0, 0, 6), number, start, 0, 0, number * CALLS];
        for call in 0..CALLS {
            let head = header(Kind::Call, 0, 0, CALL_WORDS);
            words.extend([
                head,
                start + call * (LENGTH / CALLS),
                duration(number * CALLS + call),
                (call % 4) | (1 << 32),
            ]);
        }
        words
    }

    /// Bytes of keeping every `every`-th of 40 windows: as priced, as spent, and in truth.
    fn kept(every: u64, mut duration: impl FnMut(u64) -> u64) -> [u64; 3] {
        let mut pricing = Pricing::new(SETTINGS, 0, 1.0);
        (0..4).for_each(|function| pricing.signature(function));
        let mut truth = Encoder::new(SETTINGS);
        let (mut priced, mut spent) = (0, 0);
        for number in 0..40 {
            let words = window(number, &mut duration);
            let price = pricing.price(&words, CALLS);
            if number % every == 0 {
                priced += price;
                pricing.take(&words);
                spent += pricing.take_spent();
                let start_ns = (number * LENGTH) as i64;
                truth.window(Window { thread: 0, window: number, first_seq: number * CALLS, start_ns });
                for call in words[6..].chunks(CALL_WORDS) {
                    let terminal = Terminal { number: call[3] as u32, like: call[3] as u16, folds: false };
                    let (start_ns, duration_ns) = (call[1] as i64, call[2]);
                    truth.call(terminal, Time { start_ns, duration_ns, count: 1 });
                }
            }
        }
        [priced, spent, truth.finish().len() as u64]
    }

    #[test]
    fn what_is_kept_costs_what_the_trace_takes() {
        let mut seed = 1u64;
        let mut noise = move |_: u64| {
            seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            1000 + (seed >> 40) % 500_000
        };
        for every in [1, 5, 20] {
            for [priced, spent, truth] in [kept(every, |call| 1000 + call % 4), kept(every, &mut noise)] {
                assert!(spent.abs_diff(truth) <= 32, "{every}: {spent} of {truth}");
                // The first windows train the models, which makes the next ones cheaper.
                assert!(priced as f64 >= 0.8 * truth as f64, "{every}: {priced} of {truth}");
                assert!(priced as f64 <= 2.5 * truth as f64, "{every}: {priced} of {truth}");
            }
        }
    }

    #[test]
    fn coding_is_bounded() {
        let mut pricing = Pricing::new(SETTINGS, 0, 1.0);
        let words = |number| window(number, &mut |call| 1000 + call * 7919 % 5000);
        // Windows follow each other in no time: the first calls are coded, the others cost as much.
        let at = |number: u64| {
            let mut words = words(0);
            (words[1], words[5]) = (number, number * CALLS);
            words
        };
        (0..20).for_each(|number| pricing.take(&at(number)));
        let coded = pricing.take_spent();
        (20..40).for_each(|number| pricing.take(&at(number)));
        assert_eq!(pricing.credit, 0);
        let all = coded + pricing.take_spent();
        assert!(all as f64 > 1.5 * coded as f64 && (all as f64) < 2.5 * coded as f64, "{coded} and {all}");
    }

    #[test]
    fn a_long_window_costs_less_per_call_than_its_beginning() {
        let mut pricing = Pricing::new(SETTINGS, 0, 1.0);
        let words = window(0, &mut |call| 1000 + call % 4);
        let short = pricing.price(&words, CALLS);
        let long = pricing.price(&words, 100 * CALLS);
        assert!(short > 0 && long > short && long < 80 * short, "{short} and {long}");
    }

    #[test]
    fn nothing_is_free_before_anything_is_known() {
        let mut pricing = Pricing::new(SETTINGS, 0, 1.0);
        assert_eq!(pricing.price(&[], 10), 40);
        assert_eq!(pricing.take_spent(), 0);
    }
}
