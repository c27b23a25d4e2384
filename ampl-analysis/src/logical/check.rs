//! The program compared with the ranks' own calls.

use ampl_trace::communicators::Communicators;
use ampl_trace::structure::JobStructure;
use rustc_hash::FxHashMap;

use super::Program;
use super::calls::{Detail, Plain, Plainly};
use super::labels::Values;
use super::space::Partner;
use crate::calls::{Objects, message_bytes};
use crate::messages::Scopes;

/// Most runs of all ranks' sequences that are compared.
const MOST_RUNS: u64 = 2_000_000_000;

/// Calls of ranks against those of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Losses {
    /// Ranks whose sequence is the same.
    pub ranks_exact: u32,
    /// Calls of the ranks that the program lacks.
    pub calls_lost: u64,
    /// Their bytes.
    pub bytes_lost: u64,
    /// Calls of the program that no rank has made.
    pub calls_extra: u64,
}

/// Outcome of the comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Check {
    /// Ranks with recorded calls.
    pub ranks: u32,
    /// Calls of all ranks.
    pub calls: u64,
    /// Bytes that they send, or receive where they send none.
    pub bytes: u64,
    /// Most calls of a rank.
    pub longest: u64,
    /// By functions, partners and communicators.
    pub outline: Losses,
    /// With counts, tags, roots and datatypes.
    pub values: Losses,
    /// Calls with a partner that is no neighbour in the topology.
    pub calls_outside: u64,
    /// Their bytes.
    pub bytes_outside: u64,
    /// Calls with a partner at all.
    pub calls_with_partner: u64,
    /// Their bytes.
    pub bytes_with_partner: u64,
    /// True where sequences were too long to be compared to their ends.
    pub cut: bool,
}

/// Numbers of calls that are equal.
type Numbers = FxHashMap<Plain, u32>;

fn number(numbers: &mut Numbers, call: Plain) -> u32 {
    let next = numbers.len() as u32;
    *numbers.entry(call).or_insert(next)
}

/// Compares the calls of every rank of `structure` with those that `program` has for it.
pub fn check(program: &Program, structure: &JobStructure, comms: &Communicators) -> Check {
    let mut sum = Check::default();
    let mut left = MOST_RUNS;
    for selected in structure.select(|_| true) {
        let Some(rank) = selected.structure() else { continue };
        let scopes = Scopes::new(comms);
        let mut plainly = Plainly::new(&scopes, rank.rank, program.ranks, Detail::Message);
        let mut objects = Objects::of(&rank, program.ranks);
        let mut numbers = Numbers::default();
        let mut outlines = Numbers::default();
        // For each number: that of its outline, and the bytes of a call.
        let mut facts: Vec<(u32, u64)> = Vec::new();
        let mut fact = |call: Plain, bytes: u64, facts: &mut Vec<(u32, u64)>| {
            let outline = number(&mut outlines, call.outline());
            let own = number(&mut numbers, call);
            if own as usize == facts.len() {
                facts.push((outline, bytes));
            }
            own
        };
        let mut own: Vec<(u32, u32, u64)> = Vec::new();
        for thread in &rank.threads {
            let calls = plainly.thread(thread);
            let of: Vec<u32> = calls
                .into_iter()
                .zip(&thread.signatures)
                .map(|(call, signature)| {
                    let bytes = message_bytes(signature, &mut objects).unwrap_or(0);
                    fact(call, bytes, &mut facts)
                })
                .collect();
            for (terminal, count) in thread.grammar.runs() {
                if left == 0 {
                    sum.cut = true;
                    break;
                }
                left -= 1;
                let Some(&number) = of.get(terminal as usize) else { break };
                if thread.signatures[terminal as usize].is_region() {
                    continue;
                }
                own.push((thread.thread, number, count));
            }
        }
        let mut by_label: FxHashMap<u32, Option<u32>> = FxHashMap::default();
        let mut unknown = 0;
        let mut made: Vec<(u32, u32, u64)> = Vec::new();
        for (thread, label, count) in program.runs(rank.rank) {
            let known = *by_label
                .entry(label)
                .or_insert_with(|| program.call(label, rank.rank).map(|call| fact(call, 0, &mut facts)));
            match known {
                Some(number) => made.push((thread, number, count)),
                None => unknown += count,
            }
            let bytes = known.map_or(0, |number| facts[number as usize].1);
            let (with, outside) = partners(program, label);
            let volume = bytes.saturating_mul(count);
            if with {
                sum.calls_with_partner += count;
                sum.bytes_with_partner = sum.bytes_with_partner.saturating_add(volume);
            }
            if outside {
                sum.calls_outside += count;
                sum.bytes_outside = sum.bytes_outside.saturating_add(volume);
            }
        }
        let calls = own.iter().fold(0_u64, |calls, run| calls.saturating_add(run.2));
        sum.ranks += 1;
        sum.calls = sum.calls.saturating_add(calls);
        sum.longest = sum.longest.max(calls);
        let bytes = own.iter().map(|run| facts[run.1 as usize].1.saturating_mul(run.2));
        sum.bytes = bytes.fold(sum.bytes, u64::saturating_add);
        let outline = |runs: &[(u32, u32, u64)]| -> Vec<(u32, u32, u64)> {
            runs.iter().map(|&(thread, number, count)| (thread, facts[number as usize].0, count)).collect()
        };
        let mut of_outline = vec![0; facts.len()];
        facts.iter().for_each(|&(outline, bytes)| of_outline[outline as usize] = bytes);
        let of_value: Vec<u64> = facts.iter().map(|&(_, bytes)| bytes).collect();
        sum.values.add(&own, &made, &of_value, unknown);
        sum.outline.add(&outline(&own), &outline(&made), &of_outline, unknown);
    }
    sum
}

impl Losses {
    fn add(&mut self, own: &[(u32, u32, u64)], made: &[(u32, u32, u64)], bytes: &[u64], unknown: u64) {
        if unknown == 0 && joined(own) == joined(made) {
            self.ranks_exact += 1;
            return;
        }
        self.calls_extra = self.calls_extra.saturating_add(unknown);
        let mut balance: FxHashMap<u32, i128> = FxHashMap::default();
        own.iter().for_each(|run| *balance.entry(run.1).or_default() += i128::from(run.2));
        made.iter().for_each(|run| *balance.entry(run.1).or_default() -= i128::from(run.2));
        for (number, count) in balance {
            let calls = u64::try_from(count.unsigned_abs()).unwrap_or(u64::MAX);
            if count > 0 {
                self.calls_lost = self.calls_lost.saturating_add(calls);
                let lost = calls.saturating_mul(bytes[number as usize]);
                self.bytes_lost = self.bytes_lost.saturating_add(lost);
            } else {
                self.calls_extra = self.calls_extra.saturating_add(calls);
            }
        }
    }
}

/// Runs with neighbours of equal calls in one.
fn joined(runs: &[(u32, u32, u64)]) -> Vec<(u32, u32, u64)> {
    let mut joined: Vec<(u32, u32, u64)> = Vec::with_capacity(runs.len());
    for &(thread, number, count) in runs.iter().filter(|run| run.2 > 0) {
        match joined.last_mut() {
            Some(last) if (last.0, last.1) == (thread, number) => last.2 = last.2.saturating_add(count),
            _ => joined.push((thread, number, count)),
        }
    }
    joined
}

/// True where a call has a partner, and true where one of them is no neighbour in the topology.
fn partners(program: &Program, label: u32) -> (bool, bool) {
    let (mut with, mut outside) = (false, false);
    for values in program.calls[label as usize].partners() {
        match values {
            // No rank, or any.
            Values::Rule(Partner::Special(_)) => {}
            Values::Rule(rule) => {
                with = true;
                outside |= !program.space.is_inside(rule);
            }
            Values::Same(_) | Values::Each(_) => {
                with = true;
                outside = true;
            }
        }
    }
    (with, outside)
}
