//! The graph of a job, rank by rank.

use ampl_core::mpi::{FUNCTION_COUNT, Function, Traffic};
use ampl_core::plan::Plan;
use ampl_reader::Run;
use ampl_reader::selection::Selection;
use ampl_trace::RankTrace;
use ampl_trace::grammar::Grammar;
use ampl_trace::model::call_path;
use ampl_trace::record::{CALL_MISS, CALL_UNFINISHED, GAP};
use ampl_trace::regions::Edge;
use ampl_trace::structure::{RankStructure, Signature, ThreadStructure};
use rustc_hash::FxHashMap;

use super::bound::Bound;
use super::dag::{Dag, Facts, List, NodeId, push};
use super::fragment::Fault;
use super::graph::{CallGraph, RankTree};
use super::names::{Name, Place, Region, RegionName};
use super::times::{Stored, Times};
use super::walk::{Call, Token, Walk};
use crate::calls::{Arguments, Objects, is_whole};

/// Most nodes that a node holds, where nothing else is asked for.
pub const BRANCHING: usize = 16;
/// Threads without times whose trees are remembered: the next rank may make the same calls.
const REMEMBERED: usize = 16;

/// Settings of a graph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Bound of deviations.
    pub bound: Bound,
    /// Most nodes that a node holds, from 2.
    pub branching: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { bound: Bound::default(), branching: BRANCHING }
    }
}

/// Builds a [`CallGraph`] from ranks.
#[derive(Debug)]
pub struct Builder {
    dag: Dag,
    options: Options,
    selection: Selection,
    ranks: Vec<RankTree>,
    faults: Vec<(u32, Fault)>,
    damaged: Vec<u32>,
    remembered: Vec<Remembered>,
    next: usize,
}

/// A thread without times.
#[derive(Debug)]
struct Remembered {
    grammar: Grammar,
    tokens: Vec<Token>,
    list: List,
}

impl CallGraph {
    /// The graph of the ranks and the time of `selection`. Ranks come one after the other: `each` is told of every one.
    /// Where a stretch of time is asked for, it has the calls
    /// whose times are stored: time counts as far as it lies inside, and a call where it ends.
    pub fn of(run: &Run, selection: &Selection, options: Options, mut each: impl FnMut(u32)) -> Self {
        let plan = run.plan();
        let mut builder = Builder::new(options, selection.clone());
        for number in run.ranks().into_iter().filter(|&rank| selection.takes_rank(rank)) {
            each(number);
            if let Some(rank) = run.rank(number) {
                let weights = calibrated(&rank.trace, weights(&rank.trace, plan.as_ref()), selection);
                builder.rank(&rank.trace, &rank.structure, &weights, run.info().ranks);
            }
        }
        builder.finish()
    }
}

/// Design weight of the times of each window: 1 where everything is stored.
pub fn weights(rank: &RankTrace, plan: Option<&Plan>) -> FxHashMap<u64, f64> {
    if plan.is_some_and(|plan| plan.config.stores_everything()) {
        return FxHashMap::default();
    }
    let kept = rank.windows.iter().filter(|window| window.kept && window.inclusion() > 0.0);
    kept.map(|window| (window.window, 1.0 / window.inclusion())).collect()
}

/// `weights` of a rank's windows, scaled so that the kept ones stand for as much time as the rank has in `selection`. Over
/// all ranks they do so on average; a single rank is kept more often than that, or less.
///
/// # Source
/// Ratio estimator by the windows' lengths, which are known of all: Cochran, *Sampling Techniques* (1977), equation 6.1.
fn calibrated(
    rank: &RankTrace,
    mut weights: FxHashMap<u64, f64>,
    selection: &Selection,
) -> FxHashMap<u64, f64> {
    let (mut all, mut weighted) = (0.0, 0.0);
    for window in rank.windows.iter_known() {
        let length = selection.overlap_ns(window.start_ns, window.end_ns) as f64;
        all += length;
        weighted += weights.get(&window.window).map_or(0.0, |weight| weight * length);
    }
    if all > 0.0 && weighted > 0.0 {
        weights.values_mut().for_each(|weight| *weight *= all / weighted);
    }
    weights
}

impl Builder {
    /// A graph without ranks.
    pub fn new(options: Options, selection: Selection) -> Self {
        let (ranks, faults, damaged, remembered) = Default::default();
        let mut dag = Dag::new(options.bound, options.branching);
        if selection.cuts_time() {
            // They lie outside of the time asked for.
            dag.leave_out_empty();
        }
        Self { dag, options, selection, ranks, faults, damaged, remembered, next: 0 }
    }

    /// Adds the calls of a rank of a job of `ranks`; windows without a weight have the weight 1.
    pub fn rank(
        &mut self,
        rank: &RankTrace,
        structure: &RankStructure,
        weights: &FxHashMap<u64, f64>,
        ranks: u32,
    ) {
        let number = rank.process.rank;
        let selection = self.selection.clone();
        let mut times = Stored::new(&rank.times, weights, &selection, &mut self.dag);
        let mut objects = Objects::of(structure, ranks);
        let mut threads: List = List::default();
        for thread in &structure.threads {
            times.thread(thread);
            let tokens = self.tokens(structure, thread, &mut objects);
            let list = match self.thread(thread, tokens, &mut times) {
                Ok(list) => list,
                Err(fault) => {
                    self.faults.push((number, fault));
                    return;
                }
            };
            let list = self.with_last_gap(rank, thread, list);
            let name = self.dag.names_mut().id(Name::Thread(thread.thread));
            threads.push((self.dag.put(name, &list), 1));
        }
        if times.is_damaged {
            self.damaged.push(number);
        }
        let name = self.dag.names_mut().id(Name::Rank);
        let node = self.dag.put(name, &threads);
        self.ranks.push(RankTree { rank: number, node });
    }

    /// The graph.
    pub fn finish(self) -> CallGraph {
        CallGraph::new(self.dag, self.options.bound, self.ranks, self.faults, self.damaged)
    }

    /// Meaning of the terminals of a thread.
    fn tokens(
        &mut self,
        structure: &RankStructure,
        thread: &ThreadStructure,
        objects: &mut Objects<'_>,
    ) -> Vec<Token> {
        let modules: Vec<u32> =
            structure.modules.iter().map(|path| self.dag.names_mut().module(path)).collect();
        let nowhere = self.dag.names_mut().module("");
        let is_cut = self.selection.cuts_time();
        let gap = self.dag.names_mut().id(Name::Gap);
        let mut token = |signature: &Signature| {
            if signature.function == GAP {
                return Token::Gap((!is_cut).then(|| self.dag.put_leaf(gap, Facts::gap(), 0)));
            }
            if let Some((edge, region)) = signature.region() {
                let of = match region {
                    ampl_trace::regions::Region::Named(name) => RegionName::Given(name.to_string()),
                    ampl_trace::regions::Region::Function(site) => {
                        let site = structure.sites.get(site as usize).copied().unwrap_or_default();
                        let module = modules.get(site.module as usize).copied().unwrap_or(nowhere);
                        RegionName::Function(module, site.offset)
                    }
                };
                let region = Region { name: of, begins: true, ends: true };
                let region = self.dag.names_mut().id(Name::Region(region));
                return match edge {
                    Edge::Enter => Token::Begin(region),
                    Edge::Exit => Token::End(region),
                };
            }
            let frames = signature.way().into_iter().flat_map(|way| call_path(&structure.sites, way));
            let module = |module: u32| modules.get(module as usize).copied().unwrap_or(nowhere);
            let path = frames.map(|frame| (module(frame.module), frame.offset)).collect();
            let place = Place { function: signature.function, path };
            let name = self.dag.names_mut().id(Name::Call(place));
            let bytes = bytes(signature, objects);
            let untimed = (!is_cut).then(|| self.dag.put_leaf(name, Facts::untimed(1, bytes), 0));
            Token::Call(Call {
                name,
                bytes,
                untimed,
                like: signature.function,
                folds: signature.flags & CALL_MISS != 0,
                returns: signature.flags & CALL_UNFINISHED == 0,
            })
        };
        thread.signatures.iter().map(&mut token).collect()
    }

    /// The nodes of a thread.
    fn thread(
        &mut self,
        thread: &ThreadStructure,
        tokens: Vec<Token>,
        times: &mut Stored<'_>,
    ) -> Result<List, Fault> {
        if !thread.grammar.is_sound() {
            return Err(Fault::Malformed);
        }
        let is_timed = times.next().is_some();
        let known = |known: &&Remembered| known.tokens == tokens && known.grammar == thread.grammar;
        if let Some(known) = self.remembered.iter().find(known).filter(|_| !is_timed) {
            return Ok(known.list.clone());
        }
        let walk = Walk::new(&mut self.dag, &thread.grammar, &tokens, times)?;
        let list = walk.whole()?.finish(&mut self.dag);
        if !is_timed {
            let new = Remembered { grammar: thread.grammar.clone(), tokens, list: list.clone() };
            match self.remembered.get_mut(self.next) {
                Some(old) => *old = new,
                None => self.remembered.push(new),
            }
            self.next = (self.next + 1) % REMEMBERED;
        }
        Ok(list)
    }

    /// `list` and the calls behind the last of the thread that were counted and not recorded.
    fn with_last_gap(&mut self, rank: &RankTrace, thread: &ThreadStructure, mut list: List) -> List {
        let Some(gaps) = rank.gaps.thread(thread.thread).filter(|_| !self.selection.cuts_time()) else {
            return list;
        };
        let is_gap =
            |terminal: u32| thread.signatures.get(terminal as usize).is_some_and(|own| own.function == GAP);
        let inside = thread.grammar.totals().filter(|&(terminal, _)| is_gap(terminal));
        let inside = inside.fold(0u64, |sum, (_, calls)| sum.saturating_add(calls));
        let behind = gaps.sequence.len().saturating_sub(inside);
        if behind > 0 {
            let name = self.dag.names_mut().id(Name::Gap);
            let node: NodeId = self.dag.put_leaf(name, Facts::gap(), 0);
            push(&mut list, node, behind);
        }
        list
    }
}

/// Bytes that a call sends and receives; nothing of failed polls.
fn bytes(signature: &Signature, objects: &mut Objects<'_>) -> Option<(u64, u64)> {
    if usize::from(signature.function) >= FUNCTION_COUNT {
        return None;
    }
    if signature.flags & CALL_MISS != 0 || Function(signature.function).spec().traffic == Traffic::None {
        return Some((0, 0));
    }
    Arguments::of(signature).filter(|_| is_whole(signature))?.bytes(objects)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ampl_trace::model::WindowSummary;

    #[test]
    fn kept_windows_stand_for_the_time_of_their_rank() {
        let window = |window, start_ns, end_ns| WindowSummary {
            window,
            start_ns,
            end_ns,
            kept: window % 2 == 1,
            probability: 0.5,
            ..WindowSummary::default()
        };
        let windows = vec![window(0, 0, 10), window(1, 10, 20), window(2, 20, 30), window(3, 30, 100)];
        let rank = RankTrace { windows: windows.into(), ..RankTrace::default() };
        let of = |from, until| Selection::new(from, until, None).unwrap();
        let weights = || weights(&rank, None);
        assert_eq!((weights()[&1], weights()[&3]), (2.0, 2.0));
        let all = calibrated(&rank, weights(), &of(None, None));
        assert!((all[&1] * 10.0 + all[&3] * 70.0 - 100.0).abs() < 1e-9 && all[&1] == all[&3], "{all:?}");
        // A part of the run has its own time: 15 of its 25 nanoseconds are in kept windows.
        let part = calibrated(&rank, weights(), &of(Some(15), Some(40)));
        assert!((part[&1] * 5.0 + part[&3] * 10.0 - 25.0).abs() < 1e-9, "{part:?}");
        // Without a kept window there is nothing to scale.
        assert!(calibrated(&rank, FxHashMap::default(), &of(None, None)).is_empty());
    }
}
