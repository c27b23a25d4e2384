//! The loop that the ranks of a run have in common.

use std::collections::BTreeMap;

use ampl_trace::grammar::Grammar;
use ampl_trace::loops::{Calls, MOST_WORK, Set, Steps, Token};
use ampl_trace::structure::{GroupThread, JobStructure, RankGroup};

use super::shapes::{Around, Frame, Shapes, arguments};
use super::{Absence, Begins, Count, Loop, Place, Timesteps};

/// Most grammars that are examined.
const MOST_GRAMMARS: usize = 4096;

/// The loop of a rank.
struct RankLoop<'a> {
    steps: Steps,
    place: Place<'a>,
    common: Vec<Frame<'a>>,
}

/// Ranks with one grammar, and their loop.
struct Same<'a> {
    ranks: Vec<u32>,
    found: Option<RankLoop<'a>>,
    /// True where calls were counted and not recorded: there may be more steps.
    has_gaps: bool,
}

/// The timestep loop of the calls of `structure`; `around` knows the functions of the program, as far as it can.
pub fn timesteps<'a>(structure: &'a JobStructure, around: &mut Around<'_>) -> Timesteps<'a> {
    let (mut all, mut begins): (Vec<Same<'a>>, Vec<Begins>) = Default::default();
    let (mut is_irregular, mut has_calls) = (false, false);
    for group in structure.groups() {
        let Some(thread) = busiest(&group) else { continue };
        has_calls = true;
        let shapes = Shapes::of(&group, &thread);
        let ways = shapes.ways(around);
        let functions: Vec<u16> = shapes.shapes.iter().map(|shape| shape.function).collect();
        let encloses = |inner: &Set, rest: &Set| ways.encloses(inner, rest);
        let ranks: Vec<u32> = group.ranks().collect();
        for (span, grammar) in thread.grammars() {
            if all.len() == MOST_GRAMMARS {
                is_irregular = true;
                break;
            }
            let Some(own) = ranks.get(span.start as usize..span.end as usize) else { continue };
            let Some(&rank) = own.first() else { continue };
            let arguments = arguments(&thread, rank);
            let calls = Calls {
                tokens: &shapes.tokens,
                functions: &functions,
                places: &shapes.place_of,
                arguments: &arguments,
                encloses: &encloses,
                is_placed: &|shape| ways.is_known(shape),
                work: MOST_WORK,
                goes_on: false,
            };
            let described = |steps: Steps| {
                let shape = &shapes.places[steps.place as usize];
                let place =
                    Place { function: shape.function, path: shape.path.clone(), is_marker: steps.is_marker };
                RankLoop { common: ways.common(&steps.body), steps, place }
            };
            match calls.find(&grammar) {
                Ok(found) => {
                    let iterations = found.as_ref().map(|steps| (steps.iterations.clone(), steps.steps));
                    begins.extend(
                        iterations
                            .map(|(iterations, steps)| Begins::new(own, thread.number(), iterations, steps)),
                    );
                    all.push(Same {
                        ranks: own.to_vec(),
                        found: found.map(described),
                        has_gaps: has_gaps(&grammar, &shapes.tokens),
                    });
                }
                Err(_) => is_irregular = true,
            }
        }
    }
    let ranks = structure.rank_count();
    let number = |all: &[Same<'_>]| all.iter().map(|same| same.ranks.len() as u32).sum();
    let (examined, counted) = (number(&all), counts(&all));
    // Ranks with gaps do not contradict those that are recorded as a whole.
    if all.iter().any(|same| !same.has_gaps) {
        all.retain(|same| !same.has_gaps);
    }
    let counts = counts(&all);
    let outcome = match counts.first() {
        None if is_irregular => Err(Absence::TooIrregular),
        None if has_calls => Err(Absence::NoLoop),
        None => Err(Absence::NoCalls),
        Some(first) => agreed(&all, first, &counts, number(&all), ranks),
    };
    Timesteps { ranks, examined, outcome, counts: counted, begins }
}

/// True where calls of `grammar` were counted and not recorded.
fn has_gaps(grammar: &Grammar, tokens: &[Token]) -> bool {
    grammar.totals().into_iter().any(|(terminal, _)| tokens.get(terminal as usize) == Some(&Token::Gap))
}

/// The thread with the most calls.
fn busiest<'a>(group: &RankGroup<'a>) -> Option<GroupThread<'a>> {
    let mut threads: Vec<GroupThread<'a>> = group.threads().filter(|thread| !thread.is_empty()).collect();
    if threads.len() > 1 {
        let calls =
            |thread: &GroupThread<'a>| thread.grammars().first().map_or(0, |(_, grammar)| grammar.len());
        threads.sort_by_cached_key(|thread| (std::cmp::Reverse(calls(thread)), thread.number()));
    }
    threads.first().copied()
}

/// Numbers of steps, most ranks first.
fn counts(all: &[Same<'_>]) -> Vec<Count> {
    let mut counts: BTreeMap<(Option<u64>, bool), Vec<u32>> = BTreeMap::new();
    for same in all {
        let steps = same.found.as_ref().map(|found| found.steps.steps);
        counts.entry((steps, same.has_gaps)).or_default().extend(&same.ranks);
    }
    let mut counts: Vec<Count> = counts
        .into_iter()
        .map(|((steps, has_gaps), mut ranks)| {
            ranks.sort_unstable();
            Count { steps, ranks, has_gaps }
        })
        .collect();
    counts.sort_by_key(|count| (std::cmp::Reverse(count.ranks.len()), std::cmp::Reverse(count.steps)));
    counts
}

/// The loop of the ranks of `first`, if they are most of those examined.
fn agreed<'a>(
    all: &[Same<'a>],
    first: &Count,
    counts: &[Count],
    examined: u32,
    job: u32,
) -> Result<Loop<'a>, Absence> {
    let Some(steps) = first.steps else { return Err(Absence::NoLoop) };
    let agreeing = first.ranks.len() as u32;
    if agreeing.saturating_mul(2) <= examined && counts.len() > 1 {
        return Err(Absence::Disagreement);
    }
    let loops = || {
        let same = all.iter().filter_map(|same| Some((same.ranks.len() as f64, same.found.as_ref()?)));
        same.filter(|(_, found)| found.steps.steps == steps)
    };
    let ranks = f64::from(agreeing);
    let mean = |of: fn(&Steps) -> u64| {
        loops().map(|(ranks, found)| ranks * of(&found.steps) as f64).sum::<f64>() / ranks
    };
    let mut functions: BTreeMap<u16, f64> = BTreeMap::new();
    for (own, found) in loops() {
        for (&function, &calls) in &found.steps.functions {
            *functions.entry(function).or_default() += own * calls as f64 / ranks / steps as f64;
        }
    }
    let mut functions: Vec<(u16, f64)> = functions.into_iter().collect();
    functions.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    // Of ranks that agree the most frequent kind stands for the place; the first of several.
    let largest = loops().reduce(|best, next| if next.0 > best.0 { next } else { best });
    let Some((_, largest)) = largest else { return Err(Absence::NoLoop) };
    Ok(Loop {
        steps,
        confidence: ranks / f64::from(job.max(agreeing)),
        calls_per_step: mean(|found| found.calls) / steps as f64,
        functions,
        start_up: mean(|found| found.start_up),
        may_hold: largest.steps.may_hold,
        others: largest.steps.others.clone(),
        warm_up: largest.steps.warm_up,
        wind_down: mean(|found| found.wind_down),
        missing: mean(|found| found.missing),
        by_arguments: loops().any(|(_, found)| found.steps.by_arguments),
        place: largest.place.clone(),
        common: largest.common.clone(),
    })
}
