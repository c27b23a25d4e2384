//! Entries and exits of regions in a trace file: between calls and gaps, with times, of ranks that differ.

use ampl_core::mpi::Function;
use ampl_trace::RankTrace;
use ampl_trace::decode::{Calls, Event, Events};
use ampl_trace::grammar::Builder;
use ampl_trace::model::Site;
use ampl_trace::record::{CALL_NO_ARGS, GAP, REGION_UNSEEN};
use ampl_trace::regions::{Edge, Region, RegionEvent, name_words};
use ampl_trace::structure::{JobStructure, RankStructure, Signature, ThreadStructure};
use ampl_trace::timing::{Encoder, Settings, Terminal, Time, Window};
use proptest::prelude::*;

const RANKS: u32 = 3;
const NAMES: [&str; 4] = ["TIMESTEP", "solve", "a name of more than one word, and more than that", ""];

/// A step of the program.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Call(usize),
    Gap(u64),
    Region { edge: Edge, name: usize, unseen: bool },
    Function { edge: Edge, site: u32 },
}

fn step() -> impl Strategy<Value = Step> {
    let edge = || any::<bool>().prop_map(|exits| if exits { Edge::Exit } else { Edge::Enter });
    prop_oneof![
        4 => (0..3usize).prop_map(Step::Call),
        1 => (1..4u64).prop_map(Step::Gap),
        4 => (edge(), 0..=NAMES.len(), prop::bool::weighted(0.2))
            .prop_map(|(edge, name, unseen)| Step::Region { edge, name, unseen }),
        2 => (edge(), 0..2u32).prop_map(|(edge, site)| Step::Function { edge, site }),
    ]
}

/// The last name is another on each rank.
fn name(number: usize, rank: u32) -> String {
    NAMES.get(number).map_or_else(|| format!("rank {rank}"), |name| (*name).to_owned())
}

fn signature(step: Step, rank: u32) -> Signature {
    match step {
        Step::Call(number) => {
            let function = ["MPI_Send", "MPI_Recv", "MPI_Barrier"][number];
            let function = Function::by_name(function).expect("MPI has it").0;
            Signature { function, flags: CALL_NO_ARGS, site: number as u32, path: 0, words: Vec::new() }
        }
        Step::Gap(_) => Signature { function: GAP, ..Signature::default() },
        Step::Region { edge, name: number, unseen } => {
            let mut words = Vec::new();
            name_words(&mut words, &name(number, rank));
            let flags = if unseen { REGION_UNSEEN } else { 0 };
            Signature { function: edge.function(), flags, site: 0, path: 0, words }
        }
        Step::Function { edge, site } => {
            Signature { function: edge.function(), flags: 0, site: site + 1, path: 0, words: Vec::new() }
        }
    }
}

fn thread(number: u32, steps: &[Step], rank: u32) -> (ThreadStructure, Vec<u32>) {
    let (mut signatures, mut builder, mut terminals) = (Vec::new(), Builder::new(), Vec::new());
    for &step in steps {
        let own = signature(step, rank);
        let known = signatures.iter().position(|known| *known == own).unwrap_or_else(|| {
            signatures.push(own);
            signatures.len() - 1
        });
        let calls = if let Step::Gap(calls) = step { calls } else { 1 };
        builder.push(known as u32, calls);
        terminals.push(known as u32);
    }
    (ThreadStructure { thread: number, signatures, grammar: builder.into_grammar() }, terminals)
}

/// Times of all steps up to the first gap, in one window.
fn times(number: u32, steps: &[Step], (thread, terminals): &(ThreadStructure, Vec<u32>)) -> Vec<u8> {
    let mut encoder = Encoder::new(Settings { error: 0.0, floor_ns: 0 });
    encoder.window(Window { thread: number, window: 5, first_seq: 0, start_ns: 0 });
    let timed = steps.iter().zip(terminals).take_while(|(step, _)| !matches!(step, Step::Gap(_)));
    for (at, (step, &terminal)) in timed.enumerate() {
        let like = thread.signatures[terminal as usize].function;
        let duration_ns = if matches!(step, Step::Call(_)) { 3 } else { 0 };
        let time = Time { start_ns: 10 * at as i64, duration_ns, count: 1 };
        encoder.call(Terminal { number: terminal, like, folds: false }, time);
    }
    if encoder.is_empty() { Vec::new() } else { encoder.finish() }
}

/// Step with number, thread and time.
type Seen = (Step, u64, u32, Option<i64>);

fn expected(threads: &[Vec<Step>]) -> Vec<Seen> {
    let mut seen: Vec<Seen> = Vec::new();
    for (number, steps) in (0..).zip(threads) {
        let (mut seq, mut timed) = (0, number == 0);
        let begin = seen.len();
        for (at, &step) in steps.iter().enumerate() {
            timed &= !matches!(step, Step::Gap(_));
            let time = timed.then_some(10 * at as i64);
            // Gaps in a row are one.
            if let (Step::Gap(more), Some((Step::Gap(calls), ..))) = (step, seen[begin..].last_mut()) {
                *calls += more;
            } else {
                seen.push((step, seq, number, time));
            }
            seq += match step {
                Step::Call(_) => 1,
                Step::Gap(calls) => calls,
                _ => 0,
            };
        }
    }
    seen
}

fn number_of(region: &Region, rank: u32) -> Option<usize> {
    let Region::Named(own) = region else { return None };
    (0..=NAMES.len()).find(|&number| *name(number, rank) == **own)
}

fn seen(structure: &RankStructure, trace: &RankTrace) -> Vec<Seen> {
    let edge = |edge: Edge, event: RegionEvent| {
        let RegionEvent { seq, thread, ref region, timed, unseen, .. } = event;
        let step = match region {
            Region::Function(site) => Step::Function { edge, site: *site },
            Region::Named(_) => {
                let name = number_of(region, structure.rank).expect("a name of the program");
                Step::Region { edge, name, unseen }
            }
        };
        (step, seq, thread, timed.map(|moment| moment.at_ns))
    };
    let events = Events::new(structure, trace).map(|event| match event.expect("decodable") {
        Event::Call(call) => {
            let names = ["MPI_Send", "MPI_Recv", "MPI_Barrier"];
            let number = names.iter().position(|name| *name == call.function.name()).expect("one of them");
            let time = call.timed.map(|timed| timed.start_ns);
            (Step::Call(number), call.seq, call.thread, time)
        }
        Event::Gap(gap) => (Step::Gap(gap.calls), gap.seq, gap.thread, None),
        Event::Enter(event) => edge(Edge::Enter, event),
        Event::Exit(event) => edge(Edge::Exit, event),
    });
    events.collect()
}

proptest! {
    /// Regions nest or not, recur, or come in a row; the ranks of a job differ in a name.
    #[test]
    fn regions_come_back_where_they_were(
        parts in prop::collection::vec((prop::collection::vec(step(), 1..8), 1usize..4), 0..6),
        second in prop::collection::vec(step(), 0..8),
    ) {
        let first: Vec<Step> = parts.iter().flat_map(|(steps, times)| steps.repeat(*times)).collect();
        let threads = [first, second];
        let mut merged = JobStructure::new(RANKS);
        let site = |offset| Site { module: 0, offset, caller: 0 };
        for rank in 0..RANKS {
            let built = [0, 1].map(|number| thread(number as u32, &threads[number], rank).0);
            let (modules, sites) = (vec!["/opt/app".into()], (1..4).map(site).collect());
            merged.join(JobStructure::of(RankStructure {
                rank,
                threads: built.into(),
                modules,
                sites,
                comms: Vec::new(),
            }));
        }
        let read = JobStructure::decode(&merged.encode()).expect("what was written");
        prop_assert_eq!(read.grammars(), 1, "a name that differs parts no ranks");
        for rank in 0..RANKS {
            let structure = read.rank(rank).expect("it is there");
            prop_assert_eq!(Some(structure.clone()), merged.rank(rank));
            let times = times(0, &threads[0], &thread(0, &threads[0], rank));
            let trace = RankTrace { times, ..RankTrace::default() };
            prop_assert_eq!(seen(&structure, &trace), expected(&threads));
            let calls = expected(&threads).iter().filter(|own| matches!(own.0, Step::Call(_))).count();
            prop_assert_eq!(Calls::new(&structure, &trace).count(), calls);
        }
    }
}
