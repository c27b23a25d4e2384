//! Programs with times, what a reader decodes of them, and the leaves of graphs in their order.

use ampl_core::mpi::{Function, ObjectKind};
use ampl_testkit::runs::{predefined, world};
use ampl_trace::RankTrace;
use ampl_trace::decode::{Event, Events};
use ampl_trace::gaps::{Gaps, Reason, ThreadGaps, Unrecorded};
use ampl_trace::grammar::Builder as Sequence;
use ampl_trace::model::Process;
use ampl_trace::record::{CALL_MISS, CALL_NO_ARGS, GAP};
use ampl_trace::regions::{Edge as RegionEdge, name_words};
use ampl_trace::structure::{RankStructure, Signature, ThreadStructure};
use ampl_trace::timed;
use ampl_trace::timing::{Decoder, Encoder, Settings, Terminal, Time, Window};
use proptest::prelude::*;
use rustc_hash::FxHashMap;

use crate::random_loops::loops;

use super::super::dag::Edge;
use super::super::{Builder, CallGraph, Name, NodeId, Options, RegionName, Span};
use ampl_reader::selection::Selection;

/// Terminals: functions, polls that found nothing, and gaps.
pub const POLL: u32 = 5;
pub const MISSING: u32 = 6;
/// Terminals of the begin and the end of a region.
pub const BEGIN: u32 = 7;
pub const END: u32 = 8;

/// One thread's calls, and the windows of which times are stored.
#[derive(Clone, Debug)]
pub struct Program {
    pub calls: Vec<u32>,
    /// Calls in each window, and true where its times are stored.
    pub windows: Vec<(usize, bool)>,
    /// Durations, which calls and gaps take in turn.
    pub durations: Vec<u64>,
}

/// A leaf as a naive reader has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaf {
    /// Function; [`GAP`] for a gap, `None` for time between calls.
    pub function: Option<u16>,
    pub calls: u64,
    pub duration_ns: Option<u64>,
    pub start_ns: i64,
}

pub fn programs() -> impl Strategy<Value = Program> {
    let calls = loops(0..END + 1, 1..14, 0..END + 1);
    let windows = prop::collection::vec((1usize..40, any::<bool>()), 0..8);
    let durations = prop::collection::vec(prop_oneof![0u64..5, 990u64..1010, 1_000_000u64..1_200_000], 1..6);
    (calls, windows, durations).prop_map(|(calls, windows, durations)| Program { calls, windows, durations })
}

/// Doubles that `MPI_Send` sends.
pub const DOUBLES: u64 = 3;

fn signatures() -> Vec<Signature> {
    let function = |name: &str| Function::by_name(name).unwrap().0;
    let names = ["MPI_Allreduce", "MPI_Send", "MPI_Recv", "MPI_Barrier", "MPI_Bcast", "MPI_Iprobe"];
    let mut signatures: Vec<Signature> = names
        .iter()
        .map(|name| Signature { function: function(name), flags: CALL_NO_ARGS, ..Signature::default() })
        .collect();
    let double = predefined(ObjectKind::Type, "MPI_DOUBLE");
    signatures[1].words = vec![0, DOUBLES, double, 1, 7, world()];
    signatures[1].flags = 0;
    signatures[POLL as usize].flags |= CALL_MISS;
    signatures.push(Signature { function: GAP, ..Signature::default() });
    for edge in [RegionEdge::Enter, RegionEdge::Exit] {
        let mut words = Vec::new();
        name_words(&mut words, "region");
        signatures.push(Signature { function: edge.function(), words, ..Signature::default() });
    }
    signatures
}

impl Program {
    /// Its record, as that of `rank`.
    pub fn recorded(&self, rank: u32) -> (RankTrace, RankStructure) {
        let signatures = signatures();
        let mut sequence = Sequence::new();
        self.calls.iter().for_each(|&call| sequence.push(call, 1));
        let mut encoder = Encoder::new(Settings { error: 0.0, floor_ns: 0 });
        let mut durations = self.durations.iter().cycle().copied();
        let (mut seq, mut clock) = (0usize, 100i64);
        for (window, &(length, is_timed)) in self.windows.iter().enumerate() {
            let calls = &self.calls[seq.min(self.calls.len())..(seq + length).min(self.calls.len())];
            clock += 7;
            if is_timed && !calls.is_empty() {
                let window = window as u64;
                encoder.window(Window { thread: 0, window, first_seq: seq as u64, start_ns: clock });
                for same in calls.chunk_by(|one, other| one == other && *one == POLL) {
                    if same[0] == MISSING {
                        continue;
                    }
                    let like = signatures[same[0] as usize].function;
                    let of = Terminal { number: same[0], like, folds: same[0] == POLL };
                    let start_ns = clock + durations.next().unwrap() as i64;
                    let is_edge = same[0] == BEGIN || same[0] == END;
                    let duration_ns = if is_edge { 0 } else { durations.next().unwrap() };
                    encoder.call(of, Time { start_ns, duration_ns, count: same.len() as u64 });
                    clock = start_ns + duration_ns as i64;
                }
            }
            seq += length;
        }
        let missing = self.calls.iter().filter(|&&call| call == MISSING).count() as u64;
        let mut gaps = Sequence::new();
        // Two behind the last call.
        gaps.push(0, missing + 2);
        let kinds = vec![Unrecorded { function: 1, site: 0, reason: Reason::Overhead }];
        let gaps = ThreadGaps { kinds, sequence: gaps.into_grammar(), ..ThreadGaps::default() };
        let trace = RankTrace {
            process: Process { rank, ..Process::default() },
            times: encoder.finish(),
            gaps: Gaps { threads: vec![gaps] },
            ..RankTrace::default()
        };
        let thread = ThreadStructure { thread: 0, signatures, grammar: sequence.into_grammar() };
        (trace, RankStructure { rank, threads: vec![thread], ..RankStructure::default() })
    }
}

/// The leaves of a rank by the reader of its calls.
pub fn naive(trace: &RankTrace, structure: &RankStructure) -> Vec<Leaf> {
    let mut starts: Vec<Window> = Vec::new();
    let mut decoder = Decoder::new(&trace.times).unwrap();
    timed::for_each(structure, &mut decoder, |window, _, _| starts.push(window)).unwrap();
    let mut starts = starts.into_iter();
    let (mut leaves, mut open, mut end_ns) = (Vec::new(), None, 0);
    for event in Events::new(structure, trace) {
        let call = match event.unwrap() {
            Event::Gap(gap) => {
                let leaf = Leaf { function: Some(GAP), calls: 1, duration_ns: None, start_ns: 0 };
                leaves.extend((0..gap.calls).map(|_| leaf.clone()));
                continue;
            }
            Event::Call(call) => call,
            Event::Enter(event) | Event::Exit(event) => {
                let Some(moment) = event.timed else { continue };
                let window = starts.next().unwrap();
                if open != Some(window.window) {
                    (open, end_ns) = (Some(window.window), window.start_ns);
                }
                if moment.at_ns > end_ns {
                    let before = Some((moment.at_ns - end_ns) as u64);
                    leaves.push(Leaf { function: None, calls: 0, duration_ns: before, start_ns: end_ns });
                }
                end_ns = moment.at_ns;
                continue;
            }
        };
        let function = Some(call.function.0);
        let Some(timed) = call.timed else {
            let leaf = Leaf { function, calls: 1, duration_ns: None, start_ns: 0 };
            leaves.extend((0..call.count).map(|_| leaf.clone()));
            continue;
        };
        let window = starts.next().unwrap();
        if open != Some(window.window) {
            (open, end_ns) = (Some(window.window), window.start_ns);
        }
        let duration_ns = timed.duration_ns.unwrap();
        if timed.start_ns > end_ns {
            let before = Some((timed.start_ns - end_ns) as u64);
            leaves.push(Leaf { function: None, calls: 0, duration_ns: before, start_ns: end_ns });
        }
        let duration = Some(duration_ns);
        leaves.push(Leaf { function, calls: call.count, duration_ns: duration, start_ns: timed.start_ns });
        end_ns = timed.start_ns + duration_ns as i64;
    }
    leaves
}

/// The graph of some programs, one for each rank.
pub fn graph(programs: &[Program], options: Options, selection: &Selection) -> CallGraph {
    let mut builder = Builder::new(options, selection.clone());
    for (rank, program) in (0..).zip(programs) {
        let (trace, structure) = program.recorded(rank);
        let weights: FxHashMap<u64, f64> = (0..10).map(|window| (window, 1.0 + window as f64)).collect();
        builder.rank(&trace, &structure, &weights, programs.len() as u32);
    }
    builder.finish()
}

/// All of `trace`.
pub fn everything() -> Selection {
    Selection::new(None, None, None).unwrap()
}

/// A leaf of a graph: name, calls, duration.
pub type Found = (Name, u64, Option<Span>);

/// Leaves below `node` in their order, and the begins and ends of regions: `Err` with true for a begin.
pub fn expand(graph: &CallGraph, node: NodeId) -> Vec<Result<Found, (String, bool)>> {
    enum Step {
        Node(Edge),
        End(NodeId),
    }
    let dag = graph.dag();
    let (mut found, mut stack) = (Vec::new(), vec![Step::Node(Edge { node, times: 1 })]);
    while let Some(step) = stack.pop() {
        let edge = match step {
            Step::Node(edge) => edge,
            Step::End(node) => {
                if let Name::Region(region) = dag.name(node) {
                    found.extend(region.ends.then(|| Err((given(&region.name), false))));
                }
                continue;
            }
        };
        if edge.times > 1 {
            stack.push(Step::Node(Edge { times: edge.times - 1, ..edge }));
        }
        if let Some((facts, span)) = dag.leaf(edge.node) {
            let span = facts.weight().map(|_| span);
            found.push(Ok((dag.name(edge.node).clone(), facts.calls + facts.missing, span)));
            continue;
        }
        if let Name::Region(region) = dag.name(edge.node) {
            found.extend(region.begins.then(|| Err((given(&region.name), true))));
        }
        stack.push(Step::End(edge.node));
        stack.extend(dag.parts(edge.node).iter().rev().map(|&edge| Step::Node(edge)));
    }
    found
}

/// A name that the program gives.
fn given(name: &RegionName) -> String {
    match name {
        RegionName::Given(name) => name.clone(),
        RegionName::Function(..) => unreachable!("it has none"),
    }
}

/// The leaves below `node`.
pub fn leaves(graph: &CallGraph, node: NodeId) -> Vec<Found> {
    expand(graph, node).into_iter().filter_map(Result::ok).collect()
}

/// The function that a name stands for, as in [`Leaf`].
pub fn function(name: &Name) -> Option<u16> {
    match name {
        Name::Call(place) => Some(place.function),
        Name::Gap => Some(GAP),
        _ => None,
    }
}
