//! Steps of single ranks by kept times: what neither totals nor windows show.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use ampl_core::config::Quantity;
use ampl_trace::Trace;
use ampl_trace::grammar::Runs;
use ampl_trace::record::{CALL_MISS, CALL_UNFINISHED};
use ampl_trace::structure::{RankStructure, Signature};
use ampl_trace::timed::for_each_at;
use ampl_trace::timing::Decoder;

use crate::calls::{NOWHERE, Place};

/// Most ranks whose times are read; most kept calls of one, and bytes of their times. Failed polls in a row are one entry.
const MOST_RANKS: usize = 16;
const MOST_CALLS: f64 = 2e8;
const MOST_BYTES: usize = 1 << 20;
/// Most words and positions of a rank's structure.
const MOST_EXTENT: u64 = 1 << 22;
/// Fewest steps that show how a rank's compute time varies, or how a call's duration grows.
const FEWEST: usize = 20;
/// Correlation of compute time and time in MPI, over the steps of a rank, up to which it waits less where it computed
/// longer.
const AGAINST: f64 = -0.7;
/// The same over the ranks in a step: the length of steps, which the machine changes, is no part of it.
const AGAINST_OTHERS: f64 = -0.5;
/// Part of the time in MPI that differences of compute time explain, at least.
const EXPLAINED: f64 = 0.3;
/// Least difference of the longest compute time of a step and the mean, over the mean.
const DIFFERS: f64 = 0.25;
/// Part of the time by which ranks compute longest in steps that one of them may have, where they do so in turn.
const LEADS: f64 = 0.7;
/// The mean duration of a call in the last quarter over that in the first, from which on it grows.
const GROWS: f64 = 2.0;

/// The same over that in the quarter before, at least.
const HOLDS: f64 = 0.8;

/// A step: from the end of a call at a place to the end of the next one there, nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// Number of the call that ends it, among the rank's at the place.
    number: u64,
    /// The window in which it ends.
    window: u64,
    compute: f64,
    mpi: f64,
    /// The call that ends it.
    call: f64,
    end_ns: i64,
}

/// Steps with kept times.
#[derive(Debug, Default)]
pub struct Steps {
    ranks: Vec<Vec<Step>>,
}

/// Steps in which another rank computes longest each time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InTurn {
    /// Number of steps that it rests on.
    pub steps: u64,
    /// Correlation of a rank's compute time and time in MPI, in [-1, 1].
    pub correlation: f64,
    /// Compute time of a step, nanoseconds: the mean, and the longest that is expected among so many ranks.
    pub compute_ns: [f64; 2],
}

impl Steps {
    /// Steps of `trace` that end with calls at `place`, of the ranks with the most kept calls.
    pub fn of(trace: &Trace, place: &Place<'_>) -> Self {
        let mut steps = Self::default();
        each_rank(trace, |structure, times| {
            let Some(thread) = structure.threads.first() else { return };
            let ends: Vec<bool> = thread.signatures.iter().map(|of| is_at(structure, of, place)).collect();
            if let Some(own) = of_rank(structure, times, &ends) {
                steps.ranks.push(own);
            }
        });
        steps
    }

    /// Evidence that ranks compute longest in turn; `None` where compute times differ little, or do not explain the time
    /// in MPI.
    ///
    /// Of what a rank computes in a step its own mean in the window is taken off: a rank that computes more for some time
    /// takes no turns within it. Where several ranks have the times of a step, they are compared with each other. Else each
    /// is compared with itself.
    pub fn in_turn(&self, ranks: u32) -> Option<InTurn> {
        let (mut by_number, mut alone) = (BTreeMap::<u64, Vec<[f64; 2]>>::new(), Vec::new());
        let (mut compute, mut mpi) = (0.0, 0.0);
        if self.led() > LEADS {
            return None;
        }
        let windows = self.ranks.iter().flat_map(|own| own.chunk_by(|one, next| one.window == next.window));
        for own in windows.filter(|own| own.len() > 1) {
            let sum = |of: fn(&Step) -> f64| own.iter().map(of).sum::<f64>();
            let sums = [sum(|step| step.compute), sum(|step| step.mpi)];
            (compute, mpi) = (compute + sums[0], mpi + sums[1]);
            let count = own.len() as f64;
            for step in own {
                let beyond = [step.compute - sums[0] / count, step.mpi - sums[1] / count];
                by_number.entry(step.number).or_default().push(beyond);
                alone.push(beyond);
            }
        }
        let steps = alone.len().max(1) as f64;
        let [compute, mpi] = [compute / steps, mpi / steps];
        let found = |pairs: &[[f64; 2]], most: f64, against: f64| {
            let correlation = correlation(pairs);
            let explains = correlation <= against && most >= EXPLAINED * mpi && most >= DIFFERS * compute;
            let compute_ns = [compute, compute + most];
            let found = InTurn { steps: pairs.len() as u64, correlation, compute_ns };
            (pairs.len() >= FEWEST && explains).then_some(found)
        };
        let together: Vec<Vec<[f64; 2]>> = by_number.into_values().filter(|step| step.len() > 1).collect();
        let mean =
            |step: &[[f64; 2]], at: usize| step.iter().map(|own| own[at]).sum::<f64>() / step.len() as f64;
        let most =
            |step: &Vec<[f64; 2]>| step.iter().map(|own| own[0]).fold(f64::MIN, f64::max) - mean(step, 0);
        let among = together.iter().map(most).sum::<f64>() / together.len().max(1) as f64;
        let less = |step: &Vec<[f64; 2]>| -> Vec<[f64; 2]> {
            let means = [mean(step, 0), mean(step, 1)];
            step.iter().map(|own| [own[0] - means[0], own[1] - means[1]]).collect()
        };
        let pairs: Vec<[f64; 2]> = together.iter().flat_map(less).collect();
        let of_others = found(&pairs, among, AGAINST_OTHERS);
        of_others.or_else(|| found(&alone, expected_most(&alone, ranks), AGAINST))
    }

    /// Part of the time by which the rank that computes longest in a step exceeds the others that one rank has, in [0, 1]; 0
    /// where few steps have times of several ranks.
    fn led(&self) -> f64 {
        let mut steps: BTreeMap<u64, Vec<(f64, usize)>> = BTreeMap::new();
        for (rank, own) in self.ranks.iter().enumerate().filter(|(_, own)| own.len() > 1) {
            own.iter().for_each(|step| steps.entry(step.number).or_default().push((step.compute, rank)));
        }
        let (mut leads, mut count) = (vec![0.0; self.ranks.len()], 0);
        for step in steps.values().filter(|step| step.len() > 1) {
            let mean = step.iter().map(|own| own.0).sum::<f64>() / step.len() as f64;
            let Some(&(most, rank)) = step.iter().max_by(|a, b| a.0.total_cmp(&b.0)) else { continue };
            (leads[rank], count) = (leads[rank] + most - mean, count + 1);
        }
        let all: f64 = leads.iter().sum();
        let most = leads.into_iter().fold(0.0, f64::max);
        if count >= FEWEST && all > 0.0 { most / all } else { 0.0 }
    }

    /// Mean duration of a call in the first and in the last quarter of the steps, nanoseconds, where it grows throughout.
    pub fn growth(&self) -> Option<[f64; 2]> {
        let mut calls: Vec<(i64, f64)> =
            self.ranks.iter().flatten().map(|step| (step.end_ns, step.call)).collect();
        if calls.len() < FEWEST {
            return None;
        }
        calls.sort_by_key(|call| call.0);
        let quarters: Vec<f64> = calls
            .chunks(calls.len().div_ceil(4))
            .map(|part| part.iter().map(|call| call.1).sum::<f64>() / part.len() as f64)
            .collect();
        let grows = quarters.windows(2).all(|pair| pair[1] >= HOLDS * pair[0]);
        match quarters[..] {
            [first, _, third, last] if grows && third > first && last >= GROWS * first => Some([first, last]),
            _ => None,
        }
    }
}

/// Correlation of pairs with means of 0; 0 where either does not vary.
fn correlation(pairs: &[[f64; 2]]) -> f64 {
    let sum = |of: fn(&[f64; 2]) -> f64| pairs.iter().map(of).sum::<f64>();
    let (both, first, second) =
        (sum(|own| own[0] * own[1]), sum(|own| own[0].powi(2)), sum(|own| own[1].powi(2)));
    if first > 0.0 && second > 0.0 { both / (first * second).sqrt() } else { 0.0 }
}

/// The greatest first number that is expected of so many draws.
fn expected_most(pairs: &[[f64; 2]], draws: u32) -> f64 {
    let mut sorted: Vec<f64> = pairs.iter().map(|own| own[0]).collect();
    sorted.sort_by(f64::total_cmp);
    // The greatest is at most value i of n with probability (i / n)^draws.
    let at_most = |count: usize| (count as f64 / sorted.len() as f64).powi(draws.min(1 << 20) as i32);
    sorted.iter().enumerate().map(|(at, value)| value * (at_most(at + 1) - at_most(at))).sum()
}

/// Mean time from a failed poll's end to the next poll's start, where they follow each other, nanoseconds; `None` where
/// no times of such are kept.
pub fn between_polls(trace: &Trace) -> Option<f64> {
    let (mut polls, mut between) = (0u64, 0.0);
    each_rank(trace, |structure, times| {
        let Ok(mut decoder) = Decoder::new(times) else { return };
        // The polls before: their thread, the next call's number, start and time in them.
        let mut before: Option<(u32, u64, i64, u64, u64)> = None;
        let read = for_each_at(structure, &mut decoder, |window, terminal, seq, time| {
            if let Some((thread, next, start_ns, inside, count)) = before.take()
                && (thread, next) == (window.thread, seq)
            {
                let span = time.start_ns.saturating_sub(start_ns).max(0) as u64;
                between += span.saturating_sub(inside) as f64;
                polls += count;
            }
            let thread = structure.threads.iter().find(|own| own.thread == window.thread);
            let signature = thread.and_then(|own| own.signatures.get(terminal.number as usize));
            if signature.is_some_and(|own| own.flags & CALL_MISS != 0) {
                let count = time.count.max(1);
                let next = seq.saturating_add(count);
                before = Some((window.thread, next, time.start_ns, time.duration_ns, count));
            }
        });
        let _ = read;
    });
    (polls > 0).then(|| between / polls as f64)
}

/// Passes the structure and the kept times of a few ranks to `each`: of those that have the most kept calls.
pub(super) fn each_rank(trace: &Trace, mut each: impl FnMut(&RankStructure, &[u8])) {
    let calls = Quantity::Calls.name();
    let slot = trace.run.metrics.iter().position(|metric| metric.name == calls && metric.event == "*");
    let Some(slot) = slot else { return };
    let kept = |rank: &ampl_trace::RankTrace| -> f64 {
        let windows = rank.windows.iter().filter(|window| window.kept);
        windows.filter_map(|window| window.cells.get(slot).map(|cell| cell.sum)).sum()
    };
    let with_times = trace.ranks.iter().filter(|rank| (1..=MOST_BYTES).contains(&rank.times.len()));
    let counted = with_times.map(|rank| (kept(rank), rank));
    let mut few: Vec<_> = counted.filter(|(calls, _)| *calls <= MOST_CALLS).collect();
    few.sort_by_key(|(calls, rank)| (Reverse(*calls as u64), rank.process.rank));
    few.truncate(MOST_RANKS);
    for selected in trace.structure.select(|_| true).filter(|of| of.extent <= MOST_EXTENT) {
        let own = few.iter().find(|(_, rank)| rank.process.rank == selected.rank);
        if let Some((own, structure)) = own.and_then(|(_, own)| Some((own, selected.structure()?))) {
            each(&structure, &own.times);
        }
    }
}

/// True for calls at `place`.
fn is_at(structure: &RankStructure, signature: &Signature, place: &Place<'_>) -> bool {
    if signature.function != place.function || signature.flags & CALL_UNFINISHED != 0 {
        return false;
    }
    let site = signature.site.checked_sub(1).and_then(|site| structure.sites.get(site as usize));
    let module = site.and_then(|site| structure.modules.get(site.module as usize));
    let module = module.map_or(NOWHERE.0, |module| if module.is_empty() { NOWHERE.0 } else { module });
    let address = (module, site.map_or(NOWHERE.1, |site| site.offset));
    place.addresses.contains(&address)
}

/// Counts the calls at a place along a thread's sequence.
struct Ordinals<'a> {
    runs: Runs<'a>,
    /// True of terminals at the place.
    ends: &'a [bool],
    /// Terminal and rest of the run.
    run: (u32, u64),
    at: u64,
    count: u64,
}

impl Ordinals<'_> {
    /// Number of calls at the place before call `seq`, which is behind those asked for before.
    fn before(&mut self, seq: u64) -> u64 {
        while self.at < seq {
            if self.run.1 == 0 {
                let Some(run) = self.runs.next() else { break };
                self.run = run;
            }
            let passed = self.run.1.min(seq - self.at);
            self.run.1 -= passed;
            self.at += passed;
            if self.ends.get(self.run.0 as usize) == Some(&true) {
                self.count += passed;
            }
        }
        self.count
    }
}

/// The steps of a rank's main thread; `ends` is true of terminals that end one. `None` where the bytes make no sense.
fn of_rank(structure: &RankStructure, times: &[u8], ends: &[bool]) -> Option<Vec<Step>> {
    let thread = structure.threads.first()?;
    let mut decoder = Decoder::new(times).ok()?;
    let mut ordinals = Ordinals { runs: thread.grammar.runs(), ends, run: (0, 0), at: 0, count: 0 };
    let mut steps = Vec::new();
    // The end of the last call at the place, and time in MPI since; none where calls between are not known.
    let mut since: Option<(i64, u64)> = None;
    let mut expected = 0;
    let read = for_each_at(structure, &mut decoder, |window, terminal, seq, time| {
        if window.thread != thread.thread {
            return;
        }
        if expected != seq {
            since = None;
        }
        expected = seq.saturating_add(time.count.max(1));
        let end_ns = time.start_ns.saturating_add_unsigned(time.duration_ns);
        if let Some((_, mpi)) = &mut since {
            *mpi = mpi.saturating_add(time.duration_ns);
        }
        if ends.get(terminal.number as usize) == Some(&true) {
            if let Some((begin_ns, mpi)) = since {
                let length = end_ns.saturating_sub(begin_ns).max(0) as u64;
                let (compute, call) = (length.saturating_sub(mpi), time.duration_ns);
                let [compute, mpi, call] = [compute, mpi, call].map(|ns| ns as f64);
                let number = ordinals.before(seq);
                steps.push(Step { number, window: window.window, compute, mpi, call, end_ns });
            }
            since = Some((end_ns, 0));
        }
    });
    read.ok().map(|()| steps)
}

#[cfg(test)]
mod tests {
    use ampl_core::mpi::Function;
    use ampl_testkit::runs::world;
    use ampl_testkit::timed::{Timed, trace};

    use super::*;

    const MS: u64 = 1_000_000;

    /// Steps of four ranks that compute `compute(step, rank)` and meet in a barrier, which takes `bare(step)` beside the
    /// wait; the times of the first `kept` ranks are kept.
    fn steps(kept: u32, compute: impl Fn(u64, u32) -> u64, bare: impl Fn(u64) -> u64) -> Steps {
        let mut all: Vec<Timed> = (0..4).map(|rank| Timed::new(rank, 4, "node")).collect();
        for step in 0..40 {
            for (rank, own) in (0..).zip(&mut all) {
                let noise = (u64::from(rank) * 7919 + step * 104_729) % 97 * 1000;
                own.compute(compute(step, rank) + noise);
                // A call elsewhere belongs to the step.
                let now = own.now();
                own.until("MPI_Send", 30, &[0, 0, 0, 0, 0, world()], now + 1000);
            }
            let end = all.iter().map(Timed::now).max().unwrap_or(0) + bare(step);
            all.iter_mut().for_each(|own| own.until("MPI_Barrier", 40, &[world()], end));
        }
        let barrier = Function::by_name("MPI_Barrier").expect("a function").0;
        let place = Place {
            function: barrier,
            line: None,
            addresses: vec![("/synthetic/app", 40)],
            callers: Vec::new(),
            common_callers: None,
            wrapper: None,
        };
        Steps::of(&trace(all, |rank| rank < kept), &place)
    }

    #[test]
    fn ranks_that_compute_longest_in_turn_are_seen_from_one_of_them() {
        let turn = |step: u64, rank: u32| if step % 4 == u64::from(rank) { 24 * MS } else { 6 * MS };
        for kept in [1, 2, 4] {
            let found = steps(kept, turn, |_| 10_000).in_turn(4).expect("turns");
            let [mean, most] = found.compute_ns;
            assert!(found.correlation < -0.95 && found.steps >= 39 * u64::from(kept), "{found:?}");
            // Of two ranks the longer is often not the longest of four.
            assert!((10.0e6..11.5e6).contains(&mean) && (13.0e6..25.0e6).contains(&most), "{found:?}");
        }
        assert_eq!(steps(0, turn, |_| 10_000).in_turn(4), None);
    }

    #[test]
    fn other_waits_are_no_turns() {
        for compute in [
            // One rank throughout.
            (|_, rank| if rank == 2 { 24 * MS } else { 6 * MS }) as fn(u64, u32) -> u64,
            // One rank now and then.
            |step, rank| if rank == 1 && step % 4 == 0 { 40 * MS } else { 2 * MS },
            // All at once.
            |step, _| if step % 4 == 0 { 24 * MS } else { 6 * MS },
            |_, _| 6 * MS,
        ] {
            assert_eq!(steps(4, compute, |_| 12 * MS).in_turn(4), None);
        }
        // Calls that are slow now and then.
        assert_eq!(steps(4, |_, _| 6 * MS, |step| step % 4 * 8 * MS).in_turn(4), None);
    }

    /// A rank that computes longest in all steps of a window is seen over windows.
    #[test]
    fn ranks_that_compute_longest_for_some_windows_take_no_turns_in_steps() {
        let in_turn = |longest: fn(u64) -> u64| {
            let step = |rank: u64| {
                move |number: u64| {
                    let compute = if longest(number) == rank { 20e6 } else { 6e6 } + (number % 7) as f64;
                    let (mpi, end_ns) = (22e6 - compute, number as i64);
                    Step { number, window: number / 10, compute, mpi, call: mpi, end_ns }
                }
            };
            Steps { ranks: (0..4).map(|rank| (0..80).map(step(rank)).collect()).collect() }.in_turn(4)
        };
        assert!(in_turn(|number| number % 4).is_some());
        assert_eq!(in_turn(|number| number / 20), None);
    }

    #[test]
    fn calls_that_take_longer_and_longer_are_seen() {
        let found = steps(2, |_, _| MS, |step| (1 + step) * MS / 4).growth().expect("growth");
        assert!(found[0] < 2e6 && found[1] > 8e6, "{found:?}");
        assert_eq!(steps(2, |_, _| MS, |_| 5 * MS).growth(), None);
        assert_eq!(steps(2, |_, _| MS, |step| if step == 30 { 50 * MS } else { 5 * MS }).growth(), None);
    }
}
