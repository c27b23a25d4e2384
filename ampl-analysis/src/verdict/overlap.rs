//! Ranks that compute at the same time, by kept times.

use std::collections::BTreeMap;

use ampl_trace::Trace;
use ampl_trace::timed::for_each_at;
use ampl_trace::timing::Decoder;

use super::steps::each_rank;

/// Least time during which two ranks or more are known, in the sum over these, nanoseconds.
const LEAST_NS: f64 = 5e7;
/// Computing between two calls that is not looked at, nanoseconds.
const SHORT_NS: i64 = 10_000;
/// Most stretches of one rank.
const MOST: usize = 1 << 18;

/// A stretch of a rank's time whose calls are known one after another.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    start_ns: i64,
    end_ns: i64,
    computes: bool,
}

/// Pairs of ranks that compute at the same time over the pairs that would if each rank computed as often at any other
/// time: 0 where they compute one after another, 1 where they are independent, more where they compute in step.
///
/// `None` where hardly any times of two ranks at once are kept.
pub fn overlap(trace: &Trace) -> Option<f64> {
    let mut ranks = Vec::new();
    each_rank(trace, |structure, times| {
        let (Some(thread), Ok(mut decoder)) = (structure.threads.first(), Decoder::new(times)) else {
            return;
        };
        let mut own: Vec<Stretch> = Vec::new();
        // The number of the next call, and the end of the last.
        let mut last: Option<(u64, i64)> = None;
        let read = for_each_at(structure, &mut decoder, |window, _, seq, time| {
            if window.thread != thread.thread || own.len() >= MOST {
                return;
            }
            let end_ns = time.start_ns.saturating_add_unsigned(time.duration_ns);
            let before = last.filter(|(next, _)| *next == seq).map(|(_, end_ns)| end_ns);
            match before {
                Some(before) if time.start_ns.saturating_sub(before) > SHORT_NS => {
                    own.push(Stretch { start_ns: before, end_ns: time.start_ns, computes: true });
                    own.push(Stretch { start_ns: time.start_ns, end_ns, computes: false });
                }
                Some(_) => match own.last_mut() {
                    Some(call) => call.end_ns = call.end_ns.max(end_ns),
                    None => own.push(Stretch { start_ns: time.start_ns, end_ns, computes: false }),
                },
                None => own.push(Stretch { start_ns: time.start_ns, end_ns, computes: false }),
            }
            last = Some((seq.saturating_add(time.count.max(1)), end_ns));
        });
        if read.is_ok() {
            ranks.push(own);
        }
    });
    of(&ranks)
}

/// The same of the stretches of each rank.
fn of(ranks: &[Vec<Stretch>]) -> Option<f64> {
    // Known and computing ranks, more or less, at each time.
    let mut changes: BTreeMap<i64, [i64; 2]> = BTreeMap::new();
    for stretch in ranks.iter().flatten().filter(|stretch| stretch.end_ns > stretch.start_ns) {
        for (at, sign) in [(stretch.start_ns, 1), (stretch.end_ns, -1)] {
            let change = changes.entry(at).or_default();
            change[0] += sign;
            change[1] += sign * i64::from(stretch.computes);
        }
    }
    let (mut known, mut computing, mut since) = (0, 0, None);
    let (mut all, mut busy, mut pairs, mut both) = (0.0, 0.0, 0.0, 0.0);
    for (at, [more_known, more_computing]) in changes {
        if let Some(since) = since.filter(|_| known > 1) {
            let (ns, known, computing) = ((at - since) as f64, known as f64, computing as f64);
            all += ns * known;
            busy += ns * computing;
            pairs += ns * known * (known - 1.0);
            both += ns * computing * (computing - 1.0);
        }
        (known, computing, since) = (known + more_known, computing + more_computing, Some(at));
    }
    let expected = pairs * (busy / f64::max(all, 1.0)).powi(2);
    (all >= LEAST_NS && expected > 0.0).then(|| both / expected)
}

#[cfg(test)]
mod tests {
    use ampl_testkit::runs::world;
    use ampl_testkit::timed::{Timed, trace};

    use super::*;

    /// Ranks that compute for a tenth of each of 50 turns, rank r from `begin(r)` tenths on.
    fn ranks(count: i64, begin: impl Fn(i64) -> i64) -> Option<f64> {
        let turn = |rank: i64, turn: i64| {
            let [from, part] = [turn * 10_000_000, 1_000_000];
            let computes = from + begin(rank) * part;
            let of = |start_ns, end_ns, computes| Stretch { start_ns, end_ns, computes };
            [
                of(from, computes, false),
                of(computes, computes + part, true),
                of(computes + part, from + 10 * part, false),
            ]
        };
        let own = |rank| (0..50).flat_map(|of| turn(rank, of)).collect::<Vec<_>>();
        of(&(0..count).map(own).collect::<Vec<_>>())
    }

    #[test]
    fn ranks_in_step_overlap_and_ranks_in_turn_do_not() {
        assert_eq!(ranks(4, |rank| 2 * rank), Some(0.0));
        let together = ranks(4, |_| 3).unwrap();
        assert!((together - 10.0).abs() < 1e-6, "{together}");
        assert_eq!(ranks(1, |_| 3), None);
        assert_eq!(of(&[]), None);
    }

    /// Ranks that compute for a millisecond of each of 40 steps, each behind `begin(rank)` of waiting, and meet.
    fn run(begin: impl Fn(u64) -> u64) -> Option<f64> {
        let mut all: Vec<Timed> = (0..4).map(|rank| Timed::new(rank, 4, "node")).collect();
        for _ in 0..40 {
            for (rank, own) in (0..).zip(&mut all) {
                let now = own.now();
                own.until("MPI_Recv", 30, &[0, 0, 0, 0, 0, world()], now + begin(rank));
                own.compute(1_000_000);
            }
            let end = all.iter().map(Timed::now).max().unwrap_or(0) + 4_000_000;
            all.iter_mut().for_each(|own| own.until("MPI_Barrier", 40, &[world()], end));
        }
        overlap(&trace(all, |_| true))
    }

    #[test]
    fn kept_times_tell_steps_from_turns() {
        assert_eq!(run(|rank| rank * 1_000_000), Some(0.0));
        assert!(run(|_| 1_000).is_some_and(|found| found > 3.0), "{:?}", run(|_| 1_000));
    }
}
