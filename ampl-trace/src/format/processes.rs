//! Facts about processes: what is equal on several of them once, and the numbers in which they differ in columns.
//!
//! The first parts are lines of JSON, compressed: host names, and processes without host and numbers. Calls come last:
//! where ranks differ in them, and the run's totals have them, only the difference from these is stored.

use ampl_core::plan::Plan;
use rustc_hash::FxHashMap;

use super::sections::{squeezed, unsqueezed};
use super::succession::Succession;
use crate::bits::{Bits, Reader, Writer};
use crate::column::{Column, Mean};
use crate::model::{ClockFit, Process};
use crate::rounded::{MOST_DIGITS, Rounded, digits, fits, nearest};
use crate::totals::Totals;
use crate::varint;

/// First byte of this encoding. Lines of JSON, compressed, begin otherwise.
const CODED: u8 = 1;
/// Significant bits of the time that a rank ran, where that is rounded; and most of those by which other measured
/// numbers are coded, where what they have beyond is stored besides.
const DIGITS: u32 = 12;
/// Most significant bits of the agent's time in polls where it is rounded: it is part of a line.
const POLLING_DIGITS: u32 = 5;
/// Measured numbers of a process: each has a column of rounded ones.
const MEASURED: usize = 7;
/// Bytes from which a line stands for one process only: few bytes of a damaged file must not stand for many.
const LONG: usize = 2048;
/// Bytes that the run's totals must save, lest facts cannot be read without them.
const WORTH: usize = 4096;
/// Steps in 10^-6 of a clock's rounded drift.
const DRIFT_STEPS: f64 = 8.0;

/// Rounds the processor times of `process`, and other measured numbers, as `output.summary_error` of `plan` asks. Where
/// windows have no summaries the time that it ran and the fit of its clock are rounded, too.
pub fn round_facts(plan: &Plan, process: &mut Process) {
    let digits = digits(plan.config.output.summary_error);
    if digits == 0 || plan.config.output.verify {
        return;
    }
    process.polling_ns = nearest(process.polling_ns, digits.min(POLLING_DIGITS));
    let round = |number: &mut u64| *number = nearest(*number, digits);
    let [elapsed, others @ ..] = measured(process);
    others.into_iter().flatten().for_each(round);
    if plan.leaves_out_summaries() {
        elapsed.into_iter().for_each(|elapsed| *elapsed = nearest(*elapsed, digits.max(DIGITS)));
        process.clock.iter_mut().for_each(round_clock);
    }
}

/// Rounds the error of a clock up to a power of two, its offset to multiples of that, and its drift.
fn round_clock(clock: &mut ClockFit) {
    let error = clock.error_ns.clamp(1, 1 << 40).next_power_of_two() as i64;
    clock.error_ns = clock.error_ns.max(error as u64);
    clock.offset_ns = clock.offset_ns.saturating_add(error / 2) & !(error - 1);
    clock.drift_ppm = clock.drift_ppm.map(|drift| (drift * DRIFT_STEPS).round() / DRIFT_STEPS);
}

/// The payload of the facts about `processes`. `totals` are those of the run, where it has any.
pub fn encode(processes: &[Process], totals: impl FnOnce() -> Option<Totals>) -> Vec<u8> {
    let mut digits = [1; MEASURED];
    let (mut hosts, mut lines) = (Texts::default(), Texts::default());
    let mut numbers = Vec::with_capacity(processes.len());
    for process in processes {
        let mut rest = process.clone();
        let most = [MOST_DIGITS, DIGITS, DIGITS, DIGITS, DIGITS, DIGITS, DIGITS];
        for ((digits, most), number) in digits.iter_mut().zip(most).zip(measured(&mut rest)) {
            while *digits < most && number.as_ref().is_some_and(|number| !fits(**number, *digits)) {
                *digits += 1;
            }
        }
        let host = hosts.number(serde_json::to_vec(&std::mem::take(&mut rest.host)).expect("plain data"));
        clear(&mut rest);
        numbers.push((host, lines.number(serde_json::to_vec(&rest).expect("plain data"))));
    }
    let mut coder = Coder::new(Writer::default(), digits);
    for (process, (host, line)) in processes.iter().zip(numbers) {
        coder.goes_on(true);
        coder.hosts.code(&mut coder.bits, host);
        coder.lines.code(&mut coder.bits, line);
        coder.numbers(process.clone());
    }
    coder.goes_on(false);
    let mut payload = vec![CODED];
    payload.extend(digits.map(|digits| digits as u8));
    for part in [squeezed(&hosts.bytes), squeezed(&lines.bytes), coder.bits.into_bytes()] {
        varint::put(&mut payload, part.len() as u64);
        payload.extend(part);
    }
    let alone = counts(processes, None);
    let totals = if alone.len() > WORTH { totals() } else { None };
    let by_totals = totals.map(|totals| counts(processes, Some(&totals)));
    let shorter = by_totals.filter(|by_totals| by_totals.len() + WORTH < alone.len());
    payload.push(shorter.is_some().into());
    payload.extend(shorter.unwrap_or(alone));
    payload
}

/// Calls of `processes`, coded by those that the totals have.
fn counts(processes: &[Process], totals: Option<&Totals>) -> Vec<u8> {
    let mut counts = Counts::new(Writer::default(), totals);
    processes.iter().for_each(|process| counts.code(&mut process.clone()));
    counts.bits.into_bytes()
}

/// Passes the processes in `payload` to `take`; `None` where it makes no sense, or where it is lines of JSON. Where
/// calls can be read by totals only, and there are none, processes have no calls, and `None` is returned.
pub fn decode<'a>(
    payload: &[u8],
    totals: impl FnOnce() -> Option<&'a Totals>,
    mut take: impl FnMut(Process),
) -> Option<()> {
    let (digits, rest) = payload.strip_prefix(&[CODED])?.split_first_chunk::<MEASURED>()?;
    let digits = digits.map(u32::from);
    digits.iter().all(|digits| (1..=MOST_DIGITS).contains(digits)).then_some(())?;
    let mut reader = varint::Reader::new(rest);
    let mut part = || {
        let length = usize::try_from(reader.get()?).ok()?;
        reader.take(length)
    };
    let hosts: Vec<(String, bool)> = texts(part()?)?;
    let lines: Vec<(Process, bool)> = texts(part()?)?;
    let mut coder = Coder::new(Reader::new(part()?), digits);
    let (&way, of_counts) = rest[reader.position()..].split_first()?;
    let totals = if way == 0 { None } else { totals() };
    let has_counts = way == 0 || totals.is_some();
    let mut counts = Counts::new(Reader::new(of_counts), totals);
    while coder.goes_on(false) {
        let host = text(&hosts, coder.hosts.code(&mut coder.bits, 0)?)?;
        let line = text(&lines, coder.lines.code(&mut coder.bits, 0)?)?;
        let mut process = coder.numbers(Process { host: host.clone(), ..line.clone() })?;
        match has_counts {
            true => counts.code(&mut process),
            false => process.calls.clear(),
        }
        if !coder.bits.is_sound() || has_counts && !counts.bits.is_sound() {
            return None;
        }
        take(process);
    }
    let all = coder.hosts.known() == hosts.len() && coder.lines.known() == lines.len();
    (has_counts && all && coder.bits.is_sound()).then_some(())
}

/// Documents that occurred, one a line.
#[derive(Default)]
struct Texts {
    bytes: Vec<u8>,
    numbers: FxHashMap<Vec<u8>, usize>,
    count: usize,
}

impl Texts {
    /// Number of a document: that of an equal one, unless it is long.
    fn number(&mut self, text: Vec<u8>) -> usize {
        if let Some(&number) = self.numbers.get(&text).filter(|_| text.len() < LONG) {
            return number;
        }
        self.bytes.extend(&text);
        self.bytes.push(b'\n');
        self.numbers.insert(text, self.count);
        self.count += 1;
        self.count - 1
    }
}

/// Documents of [`Texts`], each with whether it is long.
fn texts<T: serde::de::DeserializeOwned>(payload: &[u8]) -> Option<Vec<(T, bool)>> {
    let text = unsqueezed(payload)?;
    let lines = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| Some((serde_json::from_slice(line).ok()?, line.len() >= LONG))).collect()
}

/// The document of that number, which is new or has occurred before; `None` where there is none, or where it is long and
/// has occurred.
fn text<T>(texts: &[(T, bool)], (number, is_new): (usize, bool)) -> Option<&T> {
    let (text, is_long) = texts.get(number)?;
    (is_new || !is_long).then_some(text)
}

/// True for a payload of this encoding.
pub fn is_coded(payload: &[u8]) -> bool {
    payload.first() == Some(&CODED)
}

/// Sets to 0 each number that columns have.
fn clear(process: &mut Process) {
    (process.rank, process.pid) = (0, 0);
    measured(process).into_iter().flatten().for_each(|number| *number = 0);
    if let Some(clock) = &mut process.clock {
        *clock = ClockFit { drift_ppm: clock.drift_ppm.map(|_| 0.0), ..ClockFit::default() };
    }
    process.calls.iter_mut().for_each(|(_, calls)| *calls = 0);
}

/// Measured numbers of a process, as far as it has them.
fn measured(process: &mut Process) -> [Option<&mut u64>; MEASURED] {
    let Process { elapsed_ns, own_ns, begin_ns, end_ns, end_wait_ns, processor_ns, switches, .. } = process;
    let [elapsed, own, begin, end, wait, processor] =
        [elapsed_ns, own_ns, begin_ns, end_ns, end_wait_ns, processor_ns].map(Some);
    [elapsed, own, begin, end, wait, processor, switches.as_mut()]
}

/// Codes the numbers of processes: a writer passes them in, and both sides return them.
struct Coder<B> {
    bits: B,
    hosts: Succession,
    lines: Succession,
    ranks: Column,
    pids: Column,
    measured: [(Rounded, u64, Mean); MEASURED],
    digits: [u32; MEASURED],
    clock: [Column; 3],
    /// Numbers of the process before.
    before: Process,
}

impl<B: Bits> Coder<B> {
    fn new(bits: B, digits: [u32; MEASURED]) -> Self {
        Self {
            bits,
            hosts: Succession::default(),
            lines: Succession::default(),
            ranks: Column::NEW,
            pids: Column::NEW,
            measured: [const { (Rounded::NEW, 0, Mean::NEW) }; MEASURED],
            digits,
            clock: [const { Column::NEW }; 3],
            before: Process { rank: u32::MAX, ..Process::default() },
        }
    }

    /// Codes the flag that another process follows. It takes a whole bit, so that few bytes do not hold very many.
    fn goes_on(&mut self, does: bool) -> bool {
        self.bits.plain(1, does.into()) != 0
    }

    /// Codes the numbers of `is`, which has all else but its calls; `None` where they are out of range.
    fn numbers(&mut self, mut is: Process) -> Option<Process> {
        let (bits, before) = (&mut self.bits, &mut self.before);
        let next = |number: u32| u64::from(number.wrapping_add(1));
        let rank = self.ranks.code(bits, is.rank.into(), &[next(before.rank)]);
        let pid = self.pids.code(bits, is.pid.into(), &[next(before.pid), before.pid.into()]);
        (is.rank, is.pid) = (u32::try_from(rank).ok()?, u32::try_from(pid).ok()?);
        let columns = self.measured.iter_mut().zip(self.digits);
        for (number, ((column, before, mean), digits)) in measured(&mut is).into_iter().zip(columns) {
            let Some(number) = number else { continue };
            *number = column.code(bits, digits, *number, &[mean.value(), *before, 0]);
            *before = *number;
            mean.add(*number);
        }
        if let Some(clock) = &mut is.clock {
            let drift = &mut clock.drift_ppm;
            let old = before.clock.unwrap_or_default();
            let [offsets, errors, drifts] = &mut self.clock;
            clock.error_ns = errors.code(bits, clock.error_ns, &[old.error_ns]);
            clock.offset_ns = offsets.code(bits, clock.offset_ns as u64, &[old.offset_ns as u64]) as i64;
            if let Some(drift) = drift {
                let guess = old.drift_ppm.unwrap_or(0.0).to_bits().swap_bytes();
                *drift =
                    f64::from_bits(drifts.code(bits, drift.to_bits().swap_bytes(), &[guess, 0]).swap_bytes());
            }
            before.clock = Some(*clock);
        }
        (before.rank, before.pid) = (is.rank, is.pid);
        Some(is)
    }
}

/// Codes calls of processes by function.
struct Counts<'a, B> {
    bits: B,
    totals: Option<&'a Totals>,
    columns: FxHashMap<u16, (Column, u64)>,
}

impl<'a, B: Bits> Counts<'a, B> {
    fn new(bits: B, totals: Option<&'a Totals>) -> Self {
        Self { bits, totals, columns: FxHashMap::default() }
    }

    fn code(&mut self, process: &mut Process) {
        for (function, calls) in &mut process.calls {
            let (column, before) = self.columns.entry(*function).or_insert((Column::NEW, 0));
            let total = self.totals.map(|totals| totals.calls(*function, process.rank));
            let guesses = [total.unwrap_or(*before), *before];
            *calls = column.code(&mut self.bits, *calls, &guesses[usize::from(total.is_none())..]);
            *before = *calls;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(payload: &[u8]) -> Option<Vec<Process>> {
        let mut found = Vec::new();
        decode(payload, || None, |process| found.push(process)).map(|()| found)
    }

    fn process(rank: u32, numbers: [u64; 8], calls: Vec<u64>) -> Process {
        let [pid, own_ns, begin_ns, end_ns, end_wait_ns, processor_ns, switches, elapsed_ns] = numbers;
        Process {
            rank,
            host: format!("node{}", rank / 4),
            cpus: "0-3".into(),
            pid: pid as u32,
            finalized: pid % 7 != 0,
            own_ns,
            begin_ns,
            end_ns,
            end_wait_ns,
            processor_ns,
            switches: (pid % 3 != 0).then_some(switches),
            elapsed_ns,
            calls: (10..).zip(calls).collect(),
            ..Process::default()
        }
    }

    proptest! {
        #[test]
        fn facts_come_back(facts: Vec<(u32, [u64; 8], Vec<u64>)>) {
            let facts = facts.into_iter().map(|(rank, numbers, mut calls)| {
                calls.truncate(9);
                process(rank, numbers, calls)
            });
            let facts: Vec<Process> = facts.collect();
            prop_assert_eq!(decoded(&encode(&facts, || None)), Some(facts));
        }

        #[test]
        fn any_bytes_end(mut bytes: Vec<u8>, cut in 0..40usize) {
            bytes.insert(0, CODED);
            let _ = decoded(&bytes);
            let mut coded = encode(&[process(1, [9; 8], vec![3]), process(2, [8; 8], vec![4])], || None);
            coded.truncate(coded.len().saturating_sub(cut));
            coded.extend(bytes);
            let _ = decoded(&coded);
        }
    }

    /// Ranks that differ by noise of a tenth in rounded durations, and by milliseconds in how long they ran.
    #[test]
    fn a_rank_takes_some_bytes() {
        let mut state = 1u64;
        let mut noise = |bits: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> (64 - bits)
        };
        let mut rank = |rank: u32| {
            let mut about = |base: u64| nearest(base + base / 10 * noise(10) / 1024, 10);
            let durations =
                [about(80 << 20), about(13 << 20), about(2 << 20), about(300 << 20), about(400 << 20)];
            let [own, begin, end, wait, processor] = durations;
            let numbers = [
                u64::from(1000 + rank),
                own,
                begin,
                end,
                wait,
                processor,
                about(40_000),
                34_000_000_000 + noise(20),
            ];
            Process {
                host: "n".into(),
                finalized: true,
                switches: Some(numbers[6]),
                ..process(rank, numbers, vec![2, 2, 400])
            }
        };
        let facts: Vec<Process> = (0..256).map(&mut rank).collect();
        let size = |ranks: usize| encode(&facts[..ranks], || None).len();
        assert!(size(256) - size(64) < 192 * 8, "{}", size(256) - size(64));
    }
}
