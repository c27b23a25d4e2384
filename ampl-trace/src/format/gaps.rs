//! Gaps of ranks, one rank after the other: what ranks have in common once, and in columns how often each call was made
//! and when gaps began and ended.

use ampl_core::plan::Plan;
use rustc_hash::FxHashMap;

use super::common::{self, Texts};
use super::succession::Succession;
use crate::bits::{Bits, Reader, Writer};
use crate::column::Column;
use crate::gaps::{Gaps, Span};
use crate::model::RankTrace;
use crate::rounded::digits;

/// Calls of a process by function, ascending by function.
pub type Counted = Vec<(u16, u64)>;

/// Bytes that the processes' calls must save, lest gaps cannot be read without them.
const WORTH: usize = 256;

/// Share of the time that a rank ran within which moments of its gaps are rounded.
const MOMENTS: f64 = 0.001;

/// Rounds the moments of the gaps of `rank` outwards where `plan` has neither calls recorded nor summaries of windows: to
/// multiples of a power of two that is at most a thousandth of the time that it ran.
pub fn round_gaps(plan: &Plan, rank: &mut RankTrace) {
    let output = &plan.config.output;
    let is_whole = plan.config.trace.structure == ampl_core::config::Keep::Off && plan.leaves_out_summaries();
    if digits(output.summary_error) == 0 || output.verify || !is_whole {
        return;
    }
    let most = (rank.process.elapsed_ns as f64 * MOMENTS) as u64;
    let Some(step) = most.checked_ilog2().map(|power| (1i64 << power.min(60)) - 1) else { return };
    for span in
        rank.gaps.threads.iter_mut().flat_map(|thread| thread.spans.iter_mut().chain(&mut thread.rest))
    {
        (span.from_ns, span.until_ns) = (span.from_ns & !step, span.until_ns.saturating_add(step) & !step);
    }
}

/// Common part of ranks' gaps: all but the numbers, which are 0 or 1.
#[derive(Debug)]
struct Shape {
    gaps: Gaps,
    /// Bytes that store it.
    length: usize,
    columns: Vec<Column>,
    /// Numbers of calls and moments of the latest rank of this shape.
    calls: Vec<u64>,
    spans: Vec<Span>,
}

impl Shape {
    fn new(gaps: Gaps, length: usize) -> Self {
        Self { gaps, length, columns: Vec::new(), calls: Vec::new(), spans: Vec::new() }
    }
}

/// Columns of moments, of the first gap of a thread and of those behind.
#[derive(Debug)]
struct Moments {
    seq: Column,
    from: Column,
    until: Column,
    reasons: Column,
}

impl Moments {
    const NEW: Self = Self { seq: Column::NEW, from: Column::NEW, until: Column::NEW, reasons: Column::NEW };

    /// Codes a gap behind `last`; `old` is the same gap of another rank.
    fn code<B: Bits>(&mut self, bits: &mut B, span: &mut Span, last: Span, old: Span) -> Option<()> {
        span.seq = self.seq.code(bits, span.seq, &[old.seq, last.seq]);
        let from = |guess: i64| guess as u64;
        let guesses = [from(old.from_ns), from(last.until_ns)];
        span.from_ns = self.from.code(bits, span.from_ns as u64, &guesses) as i64;
        let as_long = span.from_ns.wrapping_add(old.until_ns.wrapping_sub(old.from_ns));
        let guesses = [from(old.until_ns), from(as_long), from(span.from_ns)];
        span.until_ns = self.until.code(bits, span.until_ns as u64, &guesses) as i64;
        let reasons = self.reasons.code(bits, span.reasons.into(), &[old.reasons.into()]);
        span.reasons = u16::try_from(reasons).ok()?;
        Some(())
    }
}

/// Codes gaps of ranks: a writer passes them in, and both sides return them.
#[derive(Debug)]
struct Coder<B> {
    bits: B,
    order: Succession,
    shapes: Vec<Shape>,
    moments: [Moments; 2],
}

impl<B: Bits> Coder<B> {
    fn new(bits: B, shapes: Vec<Shape>) -> Self {
        Self { bits, order: Succession::default(), shapes, moments: [Moments::NEW, Moments::NEW] }
    }

    /// Codes the numbers of `gaps`, which have the shape of that number; `calls` are the process's by function.
    fn code(&mut self, gaps: &mut Gaps, shape: usize, calls: Option<&Counted>) -> Option<()> {
        let Self { bits, shapes, moments, .. } = self;
        let shape = shapes.get_mut(shape)?;
        let mut left: FxHashMap<u16, u64> = calls.into_iter().flatten().copied().collect();
        let (mut number, mut span_number) = (0, 0);
        for thread in &mut gaps.threads {
            let kinds = &thread.kinds;
            let of = |terminal: Option<u32>| kinds.get(terminal.unwrap_or(u32::MAX) as usize);
            let mut rules = thread.sequence.rules.to_items();
            for (function, times) in counts(&mut rules[0], |item| of(item).map(|kind| kind.function)) {
                if number == shape.columns.len() {
                    shape.columns.push(Column::NEW);
                    shape.calls.push(1);
                }
                let left = function.and_then(|function| left.get_mut(&function));
                let old = shape.calls[number];
                let guesses = [left.as_ref().map_or(old, |left| **left), old];
                *times = shape.columns[number].code(bits, *times, &guesses[usize::from(left.is_none())..]);
                if *times == 0 {
                    return None;
                }
                if let Some(left) = left {
                    *left = left.saturating_sub(*times);
                }
                shape.calls[number] = *times;
                number += 1;
            }
            thread.sequence.rules = rules.into_iter().collect();
            let mut last = NONE;
            for span in thread.spans.iter_mut().chain(&mut thread.rest) {
                if span_number == shape.spans.len() {
                    shape.spans.push(last);
                }
                let of_kind = &mut moments[usize::from(last != NONE)];
                of_kind.code(bits, span, last, shape.spans[span_number])?;
                (last, shape.spans[span_number]) = (*span, *span);
                span_number += 1;
            }
        }
        Some(())
    }
}

/// The span before the first.
const NONE: Span = Span { seq: 0, from_ns: 0, until_ns: 0, reasons: 0 };

/// Numbers of calls in the outermost rule, where these do not tell how often another rule is expanded.
fn counts(
    items: &mut [crate::grammar::Item],
    function: impl Fn(Option<u32>) -> Option<u16>,
) -> impl Iterator<Item = (Option<u16>, &mut u64)> {
    items.iter_mut().filter_map(move |item| {
        let terminal = item.symbol.as_terminal()?;
        match &mut item.counts[..] {
            [(times, 1)] => Some((function(Some(terminal)), times)),
            _ => None,
        }
    })
}

/// `gaps` without their numbers.
fn shape(gaps: &Gaps) -> Gaps {
    let mut shape = gaps.clone();
    for thread in &mut shape.threads {
        let mut rules = thread.sequence.rules.to_items();
        counts(&mut rules[0], |_| None).for_each(|(_, times)| *times = 1);
        thread.sequence.rules = rules.into_iter().collect();
        thread.spans.iter_mut().chain(&mut thread.rest).for_each(|span| *span = NONE);
    }
    shape
}

/// The gaps of some ranks as bytes, each with the calls of its process, where they are known.
pub fn encode(all: &[(Gaps, Option<Counted>)]) -> Vec<u8> {
    let (mut texts, mut shapes) = (Texts::default(), Vec::new());
    let of_ranks: Vec<usize> = all
        .iter()
        .map(|(gaps, _)| {
            let shape = shape(gaps);
            let (number, is_new) = texts.add(shape.write());
            if is_new {
                shapes.push(shape);
            }
            number
        })
        .collect();
    let coded = |by_calls: bool| {
        let shapes = shapes.iter().map(|shape| Shape::new(shape.clone(), 0)).collect();
        let mut coder = Coder::new(Writer::default(), shapes);
        for ((gaps, calls), &shape) in all.iter().zip(&of_ranks) {
            coder.order.code(&mut coder.bits, shape);
            let coded = coder.code(&mut gaps.clone(), shape, calls.as_ref().filter(|_| by_calls));
            debug_assert!(coded.is_some(), "numbers that were counted");
        }
        coder.bits.into_bytes()
    };
    let mut payload = Vec::new();
    let (alone, knows) = (coded(false), all.iter().all(|(_, calls)| calls.is_some()));
    let by_calls = (knows && alone.len() > WORTH).then(|| coded(true));
    let shorter = by_calls.filter(|by_calls| by_calls.len() + WORTH < alone.len());
    payload.push(shorter.is_some().into());
    texts.put(&mut payload);
    payload.extend(shorter.unwrap_or(alone));
    payload
}

/// The gaps of these `ranks`; `None` where the payload makes no sense, or needs `calls` that are not known.
pub fn decode(ranks: &[u32], payload: &[u8], calls: impl Fn(u32) -> Option<Counted>) -> Option<Vec<Gaps>> {
    let (&way, rest) = payload.split_first()?;
    let (shapes, rest) = common::read(rest, Gaps::read)?;
    let shapes = shapes.into_iter().map(|(gaps, length)| Shape::new(gaps, length)).collect();
    let mut left = common::most(payload);
    let mut coder = Coder::new(Reader::new(rest), shapes);
    let mut found = Vec::with_capacity(ranks.len());
    for &rank in ranks {
        let (number, _) = coder.order.code(&mut coder.bits, 0)?;
        let shape = coder.shapes.get(number)?;
        left = left.checked_sub(shape.length as u64)?;
        let mut gaps = shape.gaps.clone();
        let own = if way == 0 { None } else { Some(calls(rank)?) };
        coder.code(&mut gaps, number, own.as_ref())?;
        coder.bits.is_sound().then_some(())?;
        found.push(gaps);
    }
    (coder.order.known() == coder.shapes.len()).then_some(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::gaps::{Reason, ThreadGaps, Unrecorded};
    use crate::grammar::Builder;

    /// Gaps of a thread that made these calls: function, number.
    fn gaps(thread: u32, calls: &[(u16, u64)], moments: &[(i64, i64)]) -> Gaps {
        let (mut kinds, mut builder, mut seq) = (Vec::new(), Builder::new(), 0);
        for &(function, number) in calls {
            let kind = Unrecorded { function, site: u32::from(function % 3), reason: Reason::Structure };
            let known = kinds.iter().position(|known| *known == kind).unwrap_or_else(|| {
                kinds.push(kind);
                kinds.len() - 1
            });
            builder.push(known as u32, number);
        }
        let mut spans: Vec<Span> = Vec::new();
        for &(from_ns, until_ns) in moments {
            spans.push(Span { seq, from_ns, until_ns, reasons: 1 << 4 });
            seq += 3;
        }
        let rest = spans.pop_if(|_| seq % 2 == 0);
        Gaps { threads: vec![ThreadGaps { thread, kinds, sequence: builder.grammar(), spans, rest }] }
    }

    type Drawn = (Vec<(u16, u64)>, Vec<(i64, i64)>);

    fn drawn() -> impl Strategy<Value = Vec<Drawn>> {
        let calls = prop::collection::vec((0..5u16, 1..9u64), 1..12);
        let of_rank = (calls, prop::collection::vec(any::<(i64, i64)>(), 0..4));
        prop::collection::vec((of_rank, any::<bool>()), 1..20).prop_map(|drawn| {
            let mut all: Vec<Drawn> = Vec::new();
            for (own, as_before) in drawn {
                // Ranks that differ in numbers only.
                let like = all.last().filter(|_| as_before).map(|(calls, moments)| {
                    (calls.iter().map(|&(function, calls)| (function, calls + 3)).collect(), moments.clone())
                });
                all.push(like.unwrap_or(own));
            }
            all
        })
    }

    proptest! {
        #[test]
        fn gaps_come_back(drawn in drawn(), knows: bool) {
            let all: Vec<(Gaps, Option<Counted>)> = drawn.iter().map(|(calls, moments)| {
                let mut counted: Counted = (0..5u16).map(|function| (function, 0)).collect();
                calls.iter().for_each(|&(function, calls)| counted[usize::from(function)].1 += calls);
                (gaps(2, calls, moments), knows.then_some(counted))
            }).collect();
            let ranks: Vec<u32> = (0..all.len() as u32).collect();
            let found = decode(&ranks, &encode(&all), |rank| all[rank as usize].1.clone());
            prop_assert_eq!(found, Some(all.into_iter().map(|(gaps, _)| gaps).collect::<Vec<_>>()));
        }

        #[test]
        fn any_bytes_end(bytes: Vec<u8>, cut in 0..60usize) {
            let ranks: Vec<u32> = (0..9).collect();
            let _ = decode(&ranks, &bytes, |_| None);
            let all: Vec<_> = (0..9).map(|rank| (gaps(0, &[(1, rank + 1), (2, 5)], &[(0, 9)]), None)).collect();
            let mut coded = encode(&all);
            coded.truncate(coded.len().saturating_sub(cut));
            coded.extend(bytes);
            let _ = decode(&ranks, &coded, |_| Some(vec![(1, 3)]));
        }
    }

    /// Calls that the processes have, too, take nothing of their own; gaps then cannot be read without these.
    #[test]
    fn calls_of_processes_are_not_stored_twice() {
        let noise = |rank: u64| rank.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
        let all: Vec<(Gaps, Option<Counted>)> = (1..=256)
            .map(|rank| {
                let calls = [(1, 1000 + noise(rank)), (2, 2000 + noise(rank + 900)), (4, 7)];
                (gaps(0, &calls, &[(0, 1 << 30)]), Some(calls.to_vec()))
            })
            .collect();
        let (coded, ranks) = (encode(&all), (0..256).collect::<Vec<_>>());
        assert!(coded.len() < 256, "{}", coded.len());
        let calls = |rank: u32| all[rank as usize].1.clone();
        assert_eq!(decode(&ranks, &coded, calls).map(|found| found[7] == all[7].0), Some(true));
        assert_eq!(decode(&ranks, &coded, |_| None), None);
    }

    #[test]
    fn moments_are_rounded_outwards_where_nothing_else_is_stored() {
        let plan = |text: &str| {
            let (config, _) = ampl_core::config::Config::parse(text).expect("sound");
            Plan::new(config, 4).expect("sound")
        };
        let rounded = |text: &str| {
            let mut rank = RankTrace { gaps: gaps(0, &[(1, 2)], &[(-5, 999_999)]), ..RankTrace::default() };
            rank.process.elapsed_ns = 1_000_000;
            round_gaps(&plan(text), &mut rank);
            let span = rank.gaps.threads[0].spans[0];
            (span.from_ns, span.until_ns)
        };
        let off =
            "[trace]\nstructure = 'off'\ntiming = 'off'\n[output]\nrank_summaries = 'off'\nsummary_error = ";
        assert_eq!(rounded(&format!("{off}0.03")), (-512, 1954 << 9));
        assert_eq!(rounded(&format!("{off}0")), (-5, 999_999));
        assert_eq!(rounded(""), (-5, 999_999));
    }
}
