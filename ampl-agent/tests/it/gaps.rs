//! Whatever is recorded, paused, left out or only counted: decoded calls and those in gaps are the ones that were made,
//! at any moment.

use std::collections::BTreeMap;

use ampl_agent::thread::{CHECK_EVERY, NamedRegion};
use ampl_agent::{CallEnd, Thread};
use ampl_core::mpi::{Function, ids};
use ampl_trace::decode::{Call, Event, Events};
use ampl_trace::format::{Writer, rank_parts, read};
use ampl_trace::from_journal::Compacted;
use ampl_trace::gaps::{Gap, Reason};
use ampl_trace::record::CALL_NO_ARGS;
use ampl_trace::regions::{Edge, Region, RegionEvent};
use ampl_trace::structure::{JobStructure, RankStructure};
use ampl_trace::{RankTrace, RunInfo};
use proptest::prelude::*;

use crate::common::Job;

const THREADS: usize = 2;
/// Regions of the program.
const REGIONS: [&str; 3] = ["STEP", "solve", "solve the rest"];
/// Functions of the program's calls.
const FUNCTIONS: [Function; 4] = [ids::MPI_SEND, ids::MPI_RECV, ids::MPI_IPROBE, ids::MPI_ALLREDUCE];
/// Calls of one function are left out, and the times of another; a third ends windows.
const CONFIG: &str = "[window]\nmarker = \"mpi:MPI_Barrier\"\n\
                      [[site]]\nmatch = \"MPI_Recv\"\ntrace = \"off\"\n\
                      [[site]]\nmatch = \"MPI_Iprobe\"\ntrace = \"aggregate\"\n\
                      [agent]\nmax_overhead = 0.01\nmax_structure_overhead = 0.01\n";
/// Sites in a gap from which on some have no place in the table.
const MANY_SITES: usize = 90;

#[derive(Clone, Copy, Debug)]
enum Step {
    Call {
        function: usize,
        site: u64,
    },
    /// The same, and the process is read while it is in the call.
    Inside {
        function: usize,
        site: u64,
    },
    /// A region is entered, or left.
    Region {
        edge: Edge,
        number: u32,
    },
    /// A call within the next one.
    Nested,
    /// A query.
    Local,
    /// A window ends.
    Barrier,
    Pause,
    Resume,
    /// The agent has taken that percentage of the time.
    Busy(u64),
    /// It has taken nothing for long.
    Quiet,
    /// A call that is counted only.
    Clock,
    /// The process is read.
    Read,
}

fn program() -> impl Strategy<Value = Vec<(usize, Step)>> {
    let site = prop_oneof![8 => 0..3u64, 1 => 0..200u64];
    let call = (0..FUNCTIONS.len(), site);
    let step = prop_oneof![
        12 => call.clone().prop_map(|(function, site)| Step::Call { function, site }),
        1 => call.prop_map(|(function, site)| Step::Inside { function, site }),
        8 => (any::<bool>(), 0..REGIONS.len() as u32).prop_map(|(exits, number)| Step::Region {
            edge: if exits { Edge::Exit } else { Edge::Enter },
            number,
        }),
        1 => Just(Step::Nested),
        2 => Just(Step::Local),
        2 => Just(Step::Barrier),
        1 => Just(Step::Pause),
        2 => Just(Step::Resume),
        // Times go, or calls, or all but counts.
        1 => prop::sample::select(vec![2, 6, 66]).prop_map(Step::Busy),
        2 => Just(Step::Quiet),
        1 => Just(Step::Clock),
        1 => Just(Step::Read),
    ];
    let leaf = (0..THREADS, step).prop_map(|step| vec![step]);
    let nested = leaf.prop_recursive(4, 64, 8, |inner| {
        let body = prop::collection::vec(inner, 1..8).prop_map(|parts| parts.concat());
        (body, 1..40usize).prop_map(|(body, times)| body.repeat(times))
    });
    prop::collection::vec(nested, 0..12).prop_map(|parts| {
        let mut steps = parts.concat();
        steps.truncate(1500);
        steps
    })
}

/// An edge of a region that is recorded.
#[derive(Clone, Debug)]
struct Passed {
    /// Calls before it.
    seq: usize,
    edge: Edge,
    number: u32,
    at: u64,
    /// Regions that the thread was in before.
    inside: Vec<u32>,
}

/// Passes an edge: what is entered in a region ends with it.
fn pass(inside: &mut Vec<u32>, edge: Edge, number: u32) {
    match edge {
        Edge::Enter => inside.push(number),
        Edge::Exit => {
            let at = inside.iter().rposition(|&own| own == number);
            inside.truncate(at.unwrap_or(inside.len()));
        }
    }
}

/// A call that was made.
#[derive(Clone, Copy, Debug)]
struct Made {
    function: Function,
    /// 0 where its site is not known.
    address: u64,
    /// Reason for which it is not recorded, if it is not.
    reason: Option<Reason>,
    start: u64,
    end: u64,
}

struct Program {
    job: Job,
    threads: Vec<Thread>,
    now: u64,
    made: [Vec<Made>; THREADS],
    passed: [Vec<Passed>; THREADS],
    inside: [Vec<u32>; THREADS],
    clocks: u64,
}

impl Program {
    fn new() -> Self {
        let job = Job::new(CONFIG, 4);
        let threads = (0..THREADS as u32).map(|number| job.thread(number)).collect();
        let (made, passed, inside) = Default::default();
        Self { job, threads, now: 1000, made, passed, inside, clocks: 0 }
    }

    fn note(&mut self, thread: usize, made: Made) {
        self.made[thread].push(made);
    }

    fn call(&mut self, thread: usize, function: Function, site: u64, while_inside: bool) {
        let address = 0x1000 + 7 * site;
        self.now += 3;
        let start = self.now;
        let paused = self.job.shared.is_paused();
        let state = &mut self.threads[thread];
        if state.is_off() {
            // As the wrappers do it.
            state.pass(function, address);
            if function == ids::MPI_BARRIER {
                state.end_windows(function, address, start);
            }
            let reason = Some(Reason::Overhead);
            self.note(thread, Made { function, address, reason, start, end: start });
            if while_inside {
                self.check();
            }
            self.threads[thread].current.passed();
            if (self.made[thread].len() as u64).is_multiple_of(CHECK_EVERY) {
                self.threads[thread].catch_up(self.now);
            }
            return;
        }
        state.enter(function, address, start);
        state.current.enter(function, address, start);
        if while_inside {
            self.check_inside(thread, function);
        }
        self.now += 5;
        let (state, end) = (&mut self.threads[thread], self.now);
        let records = state.records();
        let (sent, received, flags) = (0, 0, CALL_NO_ARGS);
        let terminal = if records { state.terminal(function, address, flags, &[], &[]) } else { None };
        let (timed, apart) = (true, false);
        state.current.leave(end);
        state.leave(&CallEnd {
            function,
            address,
            start,
            end,
            sent,
            received,
            flags,
            terminal,
            timed,
            apart,
        });
        let reason = match terminal {
            Some(_) => None,
            None if paused => Some(Reason::Paused),
            None if !records => Some(Reason::Overhead),
            None => Some(Reason::Site),
        };
        self.note(thread, Made { function, address, reason, start, end });
    }

    fn region(&mut self, thread: usize, edge: Edge, number: u32) {
        self.now += 1;
        let (state, at) = (&mut self.threads[thread], self.now);
        state.catch_up(at);
        if state.records() {
            let (seq, inside) = (self.made[thread].len(), self.inside[thread].clone());
            self.passed[thread].push(Passed { seq, edge, number, at, inside });
        }
        let region = NamedRegion { number: 5 * number, name: REGIONS[number as usize], declared: None };
        match edge {
            Edge::Enter => drop(state.enter_region(region, at)),
            Edge::Exit => drop(state.exit_region(region, at)),
        }
        pass(&mut self.inside[thread], edge, number);
    }

    fn step(&mut self, thread: usize, step: Step) {
        match step {
            Step::Region { edge, number } => self.region(thread, edge, number),
            Step::Call { function, site } => self.call(thread, FUNCTIONS[function], site, false),
            Step::Inside { function, site } => self.call(thread, FUNCTIONS[function], site, true),
            Step::Barrier => self.call(thread, ids::MPI_BARRIER, 300, false),
            Step::Nested => {
                self.now += 1;
                self.threads[thread].nested(ids::MPI_ATTR_GET, self.now);
                let (reason, at) = (Some(Reason::Nested), self.now);
                self.note(
                    thread,
                    Made { function: ids::MPI_ATTR_GET, address: 0, reason, start: at, end: at },
                );
            }
            Step::Local => {
                self.now += 1;
                let (function, address, at) = (ids::MPI_COMM_RANK, 0x9000, self.now);
                let state = &mut self.threads[thread];
                if state.records() || state.is_off() {
                    return self.call(thread, function, 0x9000, false);
                }
                state.local(function, address, at);
                let paused = self.job.shared.is_paused();
                let reason = Some(if paused { Reason::Paused } else { Reason::Overhead });
                self.note(thread, Made { function, address, reason, start: at, end: at });
            }
            Step::Pause | Step::Resume => {
                self.now += 1;
                self.threads[thread].control(i32::from(matches!(step, Step::Resume)), self.now);
            }
            Step::Busy(percent) => {
                self.threads[thread].add_own(percent * 6_000_000);
                self.now += 600_000_000;
                self.look(thread);
            }
            Step::Quiet => {
                self.now += 20_000_000_000;
                self.look(thread);
            }
            Step::Clock => {
                self.threads[thread].count(ids::MPI_AINT_ADD, 1);
                self.clocks += 1;
            }
            Step::Read => self.check(),
        }
    }

    fn look(&mut self, thread: usize) {
        self.threads[thread].catch_up(self.now);
        self.threads[thread].check_overhead(self.now);
    }

    /// Checks the process as it is now.
    fn check(&self) {
        let read = self.job.read();
        check(&read.structure, &read.rank, (&self.made, &self.passed), self.clocks);
    }

    /// Checks the process while `thread` is in a call of `function`.
    fn check_inside(&mut self, thread: usize, function: Function) {
        let (reason, at) = (Some(Reason::Unfinished), self.now);
        self.note(thread, Made { function, address: 0, reason, start: at, end: at });
        self.check();
        self.made[thread].pop();
    }

    fn finish(&mut self) -> Compacted {
        self.now += 5;
        self.threads[1].hand_over();
        self.threads[0].finish(self.now);
        self.threads.iter_mut().for_each(Thread::finish_structure);
        self.job.shared.journal.mark_finalized();
        self.job.read()
    }
}

/// Checks that what is read is what was `made`. All sites are known of a process that has come to its end.
fn check(
    structure: &RankStructure,
    rank: &RankTrace,
    (made, passed): (&[Vec<Made>; THREADS], &[Vec<Passed>; THREADS]),
    clocks: u64,
) {
    let ended = rank.process.finalized;
    let mut counted: BTreeMap<u16, u64> = BTreeMap::new();
    made.iter().flatten().for_each(|made| *counted.entry(made.function.0).or_default() += 1);
    if clocks > 0 {
        counted.insert(ids::MPI_AINT_ADD.0, clocks);
    }
    assert_eq!(rank.process.calls, counted.into_iter().collect::<Vec<_>>());
    let mut next = [0usize; THREADS];
    let mut run: Vec<Gap> = Vec::new();
    let mut inside: [Vec<u32>; THREADS] = Default::default();
    let mut edges = passed.each_ref().map(|passed| passed.iter());
    let mut edge = |edge: Edge, found: RegionEvent, next: &[usize; THREADS]| {
        let thread = found.thread as usize;
        let Region::Named(name) = &found.region else { panic!("it has a name") };
        let number = REGIONS.iter().position(|own| **own == **name).expect("one of the program's") as u32;
        if !found.unseen {
            let own = edges[thread].next().expect("no more than were passed");
            assert_eq!((own.seq, own.edge, own.number), (next[thread], edge, number));
            assert_eq!((found.seq as usize, &own.inside), (next[thread], &inside[thread]));
            assert!(found.timed.is_none_or(|moment| moment.at_ns == own.at as i64), "{found:?} {own:?}");
        }
        pass(&mut inside[thread], edge, number);
    };
    for event in Events::new(structure, rank) {
        match event.expect("decodable") {
            Event::Call(call) => {
                let thread = call.thread as usize;
                gap(&mut run, made, &mut next, structure, ended);
                is_made(&call, &made[thread][next[thread]], structure);
                assert_eq!((call.seq as usize, call.count), (next[thread], 1));
                next[thread] += 1;
            }
            Event::Gap(found) => {
                if run.first().is_some_and(|first| first.thread != found.thread) {
                    gap(&mut run, made, &mut next, structure, ended);
                }
                run.push(found);
            }
            Event::Enter(found) => {
                gap(&mut run, made, &mut next, structure, ended);
                edge(Edge::Enter, found, &next);
            }
            Event::Exit(found) => {
                gap(&mut run, made, &mut next, structure, ended);
                edge(Edge::Exit, found, &next);
            }
        }
    }
    gap(&mut run, made, &mut next, structure, ended);
    assert_eq!(next, made.each_ref().map(Vec::len), "nothing is missing at the end");
    assert!(edges.iter_mut().all(|edges| edges.next().is_none()), "no edge is missing");
}

fn is_made(call: &Call, made: &Made, structure: &RankStructure) {
    let offset = call.site.map(|site| structure.sites[site as usize].offset);
    assert_eq!((call.function, offset, made.reason), (made.function, Some(made.address), None), "{call:?}");
    let timed = call.timed.map(|timed| (timed.start_ns, timed.duration_ns));
    let expected = (made.start as i64, Some(made.end - made.start));
    assert!(timed.is_none_or(|timed| timed == expected), "{call:?} {made:?}");
    if call.function == ids::MPI_IPROBE {
        assert_eq!(timed, None, "its times are left out");
    }
}

/// Checks the gaps in a row that have been found, and passes them.
fn gap(
    found: &mut Vec<Gap>,
    made: &[Vec<Made>; THREADS],
    next: &mut [usize; THREADS],
    structure: &RankStructure,
    ended: bool,
) {
    let Some(first) = found.first() else { return };
    let thread = first.thread as usize;
    let calls = found.iter().map(|gap| gap.calls).sum::<u64>() as usize;
    let from = next[thread];
    let own = &made[thread][from..from + calls];
    let mut seq = from as u64;
    let mut left: BTreeMap<(Reason, u16), i64> = BTreeMap::new();
    let mut sites: BTreeMap<(Reason, u16, u64), i64> = BTreeMap::new();
    for made in own {
        let reason = made.reason.unwrap_or_else(|| panic!("was recorded: {made:?}"));
        *left.entry((reason, made.function.0)).or_default() += 1;
        *sites.entry((reason, made.function.0, made.address)).or_default() += 1;
    }
    let all_known = ended && sites.len() <= MANY_SITES;
    for gap in found.drain(..) {
        assert_eq!(gap.seq, seq);
        seq += gap.calls;
        assert_eq!(gap.parts.iter().map(|part| part.calls).sum::<u64>(), gap.calls);
        for part in &gap.parts {
            *left.get_mut(&(gap.reason, part.function)).unwrap_or_else(|| panic!("not made: {gap:?}")) -=
                part.calls as i64;
            let address = part.site.map_or(0, |site| structure.sites[site as usize].offset);
            // Sites without a place in the table are not known, nor new ones until the gap ends.
            if part.site.is_some() || all_known {
                let site = sites.get_mut(&(gap.reason, part.function, address));
                let site = site.unwrap_or_else(|| panic!("no such site: {part:?} {own:?}"));
                *site -= part.calls as i64;
                assert!(*site >= 0);
            }
        }
        if let Some((from_ns, until_ns)) = gap.span_ns {
            let start = own.iter().map(|made| made.start).min().expect("a call") as i64;
            let end = own.iter().map(|made| made.end).max().expect("a call") as i64;
            assert!(from_ns <= start && until_ns >= from_ns, "{gap:?}");
            if own.iter().all(|made| matches!(made.reason, Some(Reason::Paused | Reason::Site))) {
                assert_eq!((from_ns, until_ns), (start, end), "{gap:?}");
            }
        }
    }
    assert!(left.values().all(|&left| left == 0), "{left:?}");
    assert!(!all_known || sites.values().all(|&left| left == 0), "{sites:?}");
    next[thread] = from + calls;
}

/// Writes what was read, and reads it back.
fn stored(read_back: &Compacted) -> (RankStructure, RankTrace) {
    let mut writer = Writer::new(Vec::new()).expect("memory takes everything");
    writer.run(&RunInfo { ranks: 1, ..RunInfo::default() }, &[]).expect("memory takes everything");
    writer.structure(&JobStructure::of(read_back.structure.clone())).expect("memory takes everything");
    writer.rank(&rank_parts(&read_back.rank)).expect("memory takes everything");
    let trace = read(&writer.finish().expect("memory takes everything")).expect("a trace");
    assert_eq!(trace.damage, []);
    (trace.structure.rank(0).expect("its calls"), trace.ranks[0].clone())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn decoded_calls_and_gaps_are_those_that_were_counted(steps in program()) {
        let mut program = Program::new();
        for (thread, step) in steps {
            program.step(thread, step);
        }
        program.check();
        let read = program.finish();
        check(&read.structure, &read.rank, (&program.made, &program.passed), program.clocks);
        let (structure, rank) = stored(&read);
        check(&structure, &rank, (&program.made, &program.passed), program.clocks);
    }
}

#[test]
fn a_process_that_only_counts_leaves_what_it_has_counted() {
    let mut program = Program::new();
    program.step(0, Step::Call { function: 0, site: 1 });
    while !program.threads[0].is_off() {
        program.step(0, Step::Busy(66));
    }
    for call in 0..10_000 {
        program.step(0, Step::Call { function: call % 4, site: (call % 3) as u64 });
    }
    let read = program.job.read();
    check(&read.structure, &read.rank, (&program.made, &program.passed), 0);
    let [missing] = &read.rank.gaps.missing()[..] else { panic!("{:?}", read.rank.gaps) };
    assert_eq!((missing.reason, missing.calls), (Reason::Overhead, 10_000));
    // Those of the first site of each function that had been called before are known; others were never resolved.
    assert!(missing.parts.iter().any(|part| part.site.is_some()));
    let read = program.finish();
    check(&read.structure, &read.rank, (&program.made, &program.passed), 0);
    let [missing] = &read.rank.gaps.missing()[..] else { panic!("{:?}", read.rank.gaps) };
    assert!(missing.parts.len() == 12 && missing.parts.iter().all(|part| part.site.is_some()));
    // 24 bytes for the names of functions and sites, some for the sequence: not one for each call.
    assert!(read.rank.gaps.write().len() < 200, "{}", read.rank.gaps.write().len());
}

#[test]
fn gaps_in_a_loop_take_constant_space() {
    let bytes = |times: usize| {
        let mut program = Program::new();
        for _ in 0..times {
            // Sent, left out twice, sent.
            for (function, site) in [(0, 1), (1, 2), (1, 2), (0, 3), (1, 1)] {
                program.step(0, Step::Call { function, site });
            }
        }
        let read = program.finish();
        check(&read.structure, &read.rank, (&program.made, &program.passed), 0);
        let mut gaps = read.rank.gaps;
        // First and last moments are of the first gaps only.
        gaps.threads.iter_mut().for_each(|thread| thread.spans.clear());
        gaps.write().len()
    };
    assert!(bytes(3000) <= bytes(1000) + 4);
}
