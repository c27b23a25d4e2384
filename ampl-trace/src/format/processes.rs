//! Facts about processes: what is equal on all of them once, and the numbers in which they differ in columns.
//!
//! The first part is lines of JSON, compressed: a process without its numbers, where that differs from the one before.

use ampl_core::plan::Plan;
use rustc_hash::FxHashMap;

use super::sections::{squeezed, unsqueezed};
use crate::bits::{Bits, Reader, Writer};
use crate::column::{Column, LIMIT};
use crate::model::Process;
use crate::rounded::{Rounded, digits, nearest};
use crate::timing::Node;
use crate::varint;

/// First byte of this encoding. Lines of JSON, compressed, begin otherwise.
const CODED: u8 = 1;
/// Significant bits by which durations are coded; what they have beyond is stored besides.
pub const DIGITS: u32 = 10;
/// Durations of a process that differ from rank to rank.
const DURATIONS: usize = 5;
/// Bytes from which a line stands for one process only: few bytes of a damaged file must not stand for many.
const LONG: usize = 2048;

/// Rounds the processor times of `process`, and other measured numbers, as `output.summary_error` of `plan` asks.
pub fn round_facts(plan: &Plan, process: &mut Process) {
    let digits = digits(plan.config.output.summary_error);
    if digits > 0 && !plan.config.output.verify {
        durations(process).into_iter().for_each(|duration| *duration = nearest(*duration, digits));
        process.switches = process.switches.map(|switches| nearest(switches, digits));
    }
}

/// The payload of the facts about `processes`.
pub fn encode(processes: &[Process]) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = Vec::new();
    let mut coder = Coder::new(Writer::default());
    for process in processes {
        let rest = serde_json::to_vec(&without_numbers(process)).expect("plain data");
        let is_new = rest.len() >= LONG || lines.last() != Some(&rest);
        coder.goes_on(true);
        coder.is_new.code(&mut coder.bits, LIMIT, is_new);
        if is_new {
            lines.push(rest);
        }
        coder.numbers(process.clone());
    }
    coder.goes_on(false);
    let lines = squeezed(&lines.join(&b'\n'));
    let mut payload = vec![CODED];
    varint::put(&mut payload, lines.len() as u64);
    payload.extend(lines);
    payload.extend(coder.bits.into_bytes());
    payload
}

/// Passes the processes in `payload` to `take`; `None` where it makes no sense, or where it is lines of JSON.
pub fn decode(payload: &[u8], mut take: impl FnMut(Process)) -> Option<()> {
    let mut reader = varint::Reader::new(payload.strip_prefix(&[CODED])?);
    let length = usize::try_from(reader.get()?).ok()?;
    let lines = unsqueezed(reader.take(length)?)?;
    let mut lines = lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let rest = &payload[1 + reader.position()..];
    let mut coder = Coder::new(Reader::new(rest));
    let (mut before, mut is_long) = (None, false);
    while coder.goes_on(false) {
        if coder.is_new.code(&mut coder.bits, LIMIT, false) {
            let line = lines.next()?;
            (before, is_long) = (Some(serde_json::from_slice(line).ok()?), line.len() >= LONG);
        } else if is_long {
            return None;
        }
        let process: &Process = before.as_ref()?;
        let process = coder.numbers(process.clone());
        if !coder.bits.is_sound() {
            return None;
        }
        take(process?);
    }
    (coder.bits.is_sound() && lines.next().is_none()).then_some(())
}

/// True for a payload of this encoding.
pub fn is_coded(payload: &[u8]) -> bool {
    payload.first() == Some(&CODED)
}

/// `process` with 0 for each number that columns have.
fn without_numbers(process: &Process) -> Process {
    let mut rest = process.clone();
    (rest.rank, rest.pid, rest.elapsed_ns) = (0, 0, 0);
    durations(&mut rest).into_iter().for_each(|duration| *duration = 0);
    rest.switches = rest.switches.map(|_| 0);
    rest.calls.iter_mut().for_each(|(_, calls)| *calls = 0);
    rest
}

fn durations(process: &mut Process) -> [&mut u64; DURATIONS] {
    let Process { own_ns, begin_ns, end_ns, end_wait_ns, processor_ns, .. } = process;
    [own_ns, begin_ns, end_ns, end_wait_ns, processor_ns]
}

/// Codes the numbers of processes: a writer passes them in, and both sides return them.
struct Coder<B> {
    bits: B,
    is_new: Node,
    ranks: Column,
    pids: Column,
    elapsed: Column,
    durations: [Rounded; DURATIONS],
    switches: Rounded,
    calls: FxHashMap<u16, (Column, u64)>,
    /// Numbers of the process before.
    before: Process,
}

impl<B: Bits> Coder<B> {
    fn new(bits: B) -> Self {
        Self {
            bits,
            is_new: Node::NEW,
            ranks: Column::NEW,
            pids: Column::NEW,
            elapsed: Column::NEW,
            durations: [const { Rounded::NEW }; DURATIONS],
            switches: Rounded::NEW,
            calls: FxHashMap::default(),
            before: Process { rank: u32::MAX, ..Process::default() },
        }
    }

    /// Codes the flag that another process follows. It takes a whole bit, so that few bytes do not hold very many.
    fn goes_on(&mut self, does: bool) -> bool {
        self.bits.plain(1, does.into()) != 0
    }

    /// Codes the numbers of `is`, which has all else; `None` where they are out of range.
    fn numbers(&mut self, mut is: Process) -> Option<Process> {
        let (bits, before) = (&mut self.bits, &mut self.before);
        let next = |number: u32| u64::from(number.wrapping_add(1));
        let rank = self.ranks.code(bits, is.rank.into(), &[next(before.rank)]);
        let pid = self.pids.code(bits, is.pid.into(), &[next(before.pid), before.pid.into()]);
        (is.rank, is.pid) = (u32::try_from(rank).ok()?, u32::try_from(pid).ok()?);
        is.elapsed_ns = self.elapsed.code(bits, is.elapsed_ns, &[before.elapsed_ns, 0]);
        let mut columns = self.durations.iter_mut();
        for (duration, before) in durations(&mut is).into_iter().zip(durations(before)) {
            *duration = columns.next()?.code(bits, DIGITS, *duration, &[*before, 0]);
        }
        if let Some(switches) = &mut is.switches {
            let guess = before.switches.unwrap_or(0);
            *switches = self.switches.code(bits, DIGITS, *switches, &[guess]);
        }
        for (function, calls) in &mut is.calls {
            let (column, before) = self.calls.entry(*function).or_insert((Column::NEW, 0));
            *calls = column.code(bits, *calls, &[*before]);
            *before = *calls;
        }
        *before = Process { host: String::new(), cpus: String::new(), calls: Vec::new(), ..is.clone() };
        Some(is)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(payload: &[u8]) -> Option<Vec<Process>> {
        let mut found = Vec::new();
        decode(payload, |process| found.push(process)).map(|()| found)
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
            prop_assert_eq!(decoded(&encode(&facts)), Some(facts));
        }

        #[test]
        fn any_bytes_end(mut bytes: Vec<u8>, cut in 0..40usize) {
            bytes.insert(0, CODED);
            let _ = decoded(&bytes);
            let mut coded = encode(&[process(1, [9; 8], vec![3]), process(2, [8; 8], vec![4])]);
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
            let mut about = |base: u64| nearest(base + base / 10 * noise(10) / 1024, DIGITS);
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
        let size = |ranks: usize| encode(&facts[..ranks]).len();
        assert!(size(256) - size(64) < 192 * 9, "{}", size(256) - size(64));
    }
}
