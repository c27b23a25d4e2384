mod naive;

use ampl_core::mpi::{ObjectKind, predefined_index};
use ampl_testkit::runs::{Caller, info, predefined, processes, world};
use ampl_trace::RankTrace;
use ampl_trace::args::{predefined_word, status_word};
use ampl_trace::communicators::Communicators;
use ampl_trace::model::Process;
use ampl_trace::request::{origin, told};
use ampl_trace::structure::{JobStructure, RankStructure};
use rustc_hash::FxHashMap;

use super::*;

/// Calls of a rank: number of the thread's call.
type Place = (u32, u64);

/// Collects what is matched.
#[derive(Debug, Default)]
struct Seen {
    messages: Vec<(Place, Place)>,
    /// Communicator's size, then function and places of the ranks' calls.
    collectives: Vec<(u32, &'static str, Vec<Place>)>,
    /// True where calls of different functions end a communicator's matching.
    strict: bool,
}

impl Visitor for Seen {
    type Stamp = ();

    fn enter(&mut self, _: u32, _: &At, _: u64, _: &Terminal) {}

    fn message(&mut self, send: &Half<()>, receive: &Half<()>) {
        let place = |half: &Half<()>| (half.posted.rank, half.posted.seq);
        self.messages.push((place(send), place(receive)));
    }

    fn collective(&mut self, instance: &Instance<()>, calls: &[&Collective], _: &Joined<'_>) -> bool {
        let mut places: Vec<Place> =
            instance.arrivals.iter().map(|arrival| (arrival.at.rank, arrival.at.seq)).collect();
        places.sort_unstable();
        self.collectives.push((instance.size, calls[0].function.name(), places));
        !self.strict || calls.iter().all(|call| call.function == calls[0].function)
    }
}

/// Passes the calls and communicators of a job on one host to `each`, without times.
pub(crate) fn with_sources<T>(
    ranks: u32,
    structure: &JobStructure,
    each: impl FnOnce(&[Source<'_>], &Communicators) -> T,
) -> T {
    let processes: Vec<Process> = processes(structure, |_| "host".into());
    let process = |rank: u32| processes.iter().find(|process| process.rank == rank);
    let comms = Communicators::of_job(&info(ranks), structure, &process);
    let structures: Vec<RankStructure> = (0..ranks).filter_map(|rank| structure.rank(rank)).collect();
    let none = RankTrace::default();
    let sources: Vec<Source<'_>> =
        structures.iter().map(|structure| Source { structure, trace: &none }).collect();
    each(&sources, &comms)
}

fn play_all(ranks: u32, all: Vec<RankStructure>, seen: &mut Seen) -> Outcome<()> {
    let mut structure = JobStructure::new(ranks);
    all.into_iter().for_each(|rank| structure.join(JobStructure::of(rank)));
    with_sources(ranks, &structure, |sources, comms| play(ranks, sources, comms, seen))
}

/// A kind of call that makes requests: function, and words without the slot.
type Maker = (&'static str, Vec<u64>);
/// The number of its first request, and the slots in use.
type Slots = (u64, Vec<bool>);

/// A rank that counts its calls and names its requests as an agent does.
struct Program {
    caller: Caller,
    calls: u64,
    /// Number and free slots of the requests of each kind of call.
    makers: FxHashMap<Maker, Slots>,
}

const NULL: &str = "MPI_REQUEST_NULL";

fn null() -> u64 {
    predefined_word(predefined_index(ObjectKind::Request, NULL).expect("predefined"))
}

fn double() -> u64 {
    predefined(ObjectKind::Type, "MPI_DOUBLE")
}

impl Program {
    fn new(rank: u32, ranks: u32) -> Self {
        Self { caller: Caller::new(rank, ranks), calls: 0, makers: FxHashMap::default() }
    }

    /// Number of the call.
    fn call(&mut self, function: &str, words: &[u64]) -> u64 {
        self.caller.call(function, 1, words);
        self.calls += 1;
        self.calls - 1
    }

    /// Number of the call, and the request that it makes.
    fn make(&mut self, function: &'static str, words: &[u64]) -> (u64, u64) {
        let key = (function, words.to_vec());
        let slot = match self.makers.get(&key) {
            Some((_, used)) => used.iter().position(|used| !used).unwrap_or(used.len()),
            None => 0,
        };
        let terminal = self.caller.call(function, 1, &[words, &[slot as u64]].concat());
        self.calls += 1;
        let first = origin(0, terminal).expect("few terminals");
        let (number, used) = self.makers.entry(key).or_insert((first, Vec::new()));
        used.resize(used.len().max(slot + 1), false);
        used[slot] = true;
        (self.calls - 1, *number | slot as u64)
    }

    fn free(&mut self, request: u64) {
        let slot = told(request) as usize;
        for (number, used) in self.makers.values_mut() {
            if *number | slot as u64 == request {
                used[slot] = false;
            }
        }
    }

    fn send(&mut self, function: &str, to: u32, tag: u64, comm: u64) -> u64 {
        self.call(function, &[0, 4, double(), to.into(), tag, comm])
    }

    fn receive(&mut self, from: i64, tag: i64, comm: u64, told: (u32, u64)) -> u64 {
        let status = status_word(told.0 as i32, told.1 as i32);
        self.call("MPI_Recv", &[0, 4, double(), from as u64, tag as u64, comm, status])
    }

    fn wait(&mut self, request: u64, told: (i32, i32)) -> u64 {
        self.call("MPI_Wait", &[request, null(), status_word(told.0, told.1)])
    }

    fn allreduce(&mut self, comm: u64) -> u64 {
        let sum = predefined(ObjectKind::Op, "MPI_SUM");
        self.call("MPI_Allreduce", &[0, 0, 1, double(), sum, comm])
    }

    fn finish(mut self) -> RankStructure {
        self.caller.call("MPI_Finalize", 1, &[]);
        self.caller.finish()
    }
}

fn job(ranks: u32, program: impl Fn(&mut Program)) -> Vec<RankStructure> {
    let rank = |rank: u32| {
        let mut own = Program::new(rank, ranks);
        program(&mut own);
        own.finish()
    };
    (0..ranks).map(rank).collect()
}

#[test]
fn a_gap_ends_the_matching_of_its_rank_alone() {
    let all = job(3, |own| {
        let rank = own.caller.rank();
        let (to, from) = ((rank + 1) % 3, (rank + 2) % 3);
        for step in 0..10 {
            if (rank, step) == (1, 6) {
                own.caller.gap();
                own.calls += 1;
            }
            own.send("MPI_Send", to, 0, world());
            own.receive(from.into(), 0, world(), (from, 0));
            own.allreduce(world());
        }
    });
    let mut seen = Seen::default();
    let outcome = play_all(3, all, &mut seen);
    let of = |from: u32, to: u32| {
        seen.messages.iter().filter(|(send, receive)| (send.0, receive.0) == (from, to)).count()
    };
    assert_eq!((of(0, 1), of(1, 2), of(2, 0)), (6, 6, 10));
    let with = |ranks: usize| seen.collectives.iter().filter(|(.., places)| places.len() == ranks).count();
    assert_eq!((with(3), with(2)), (6, 4), "the others' collectives are known by their ordinals");
    assert_eq!(outcome.lost, [(1, 18, Lost::Gap)]);
    assert!(outcome.stuck.is_empty() && outcome.unmatched.is_empty(), "{outcome:?}");
}

#[test]
fn a_send_too_few_is_found() {
    let all = job(2, |own| match own.caller.rank() {
        0 => (0..4).for_each(|_| {
            own.send("MPI_Send", 1, 3, world());
        }),
        _ => (0..5).for_each(|_| {
            own.receive(0, 3, world(), (0, 3));
        }),
    });
    let mut seen = Seen::default();
    let outcome = play_all(2, all, &mut seen);
    let [stuck] = &outcome.stuck[..] else { panic!("{outcome:?}") };
    assert_eq!((stuck.at.rank, stuck.at.seq, seen.messages.len()), (1, 4, 4));
}

#[test]
fn who_does_not_join_a_collective_is_named() {
    let all = job(3, |own| {
        own.allreduce(world());
        if own.caller.rank() != 2 {
            own.allreduce(world());
        }
    });
    let outcome = play_all(3, all, &mut Seen::default());
    let missing = |stuck: &Stuck| matches!(&stuck.on, Waiting::Collective { missing, .. } if *missing == [2]);
    assert!(outcome.stuck.len() == 2 && outcome.stuck.iter().all(missing), "{outcome:?}");
}

#[test]
fn a_cancel_stops_its_channel() {
    let all = job(2, |own| {
        let irecv = [0, 4, double(), 0, 5, world()];
        match own.caller.rank() {
            0 => {
                (0..3).for_each(|_| {
                    own.send("MPI_Send", 1, 5, world());
                });
                own.send("MPI_Send", 1, 6, world());
            }
            _ => {
                own.receive(0, 5, world(), (0, 5));
                let (_, request) = own.make("MPI_Irecv", &irecv);
                own.call("MPI_Cancel", &[request, request]);
                own.wait(request, (-1, -1));
                own.receive(0, 5, world(), (0, 5));
                own.receive(0, 6, world(), (0, 6));
            }
        }
    });
    let mut seen = Seen::default();
    let outcome = play_all(2, all, &mut seen);
    assert_eq!(seen.messages, [((0, 0), (1, 0)), ((0, 3), (1, 5))]);
    assert!(outcome.stuck.is_empty() && outcome.unmatched.is_empty(), "{outcome:?}");
}

#[test]
fn a_channel_of_several_threads_is_not_matched() {
    let mut all = job(2, |own| match own.caller.rank() {
        0 => (0..3).for_each(|tag| {
            own.send("MPI_Send", 1, tag, world());
        }),
        _ => (0..3).for_each(|tag| {
            own.receive(0, tag, world(), (0, tag as u64));
        }),
    });
    let mut second = Program::new(0, 2);
    second.send("MPI_Send", 1, 1, world());
    let mut thread = second.caller.finish().threads.remove(0);
    thread.thread = 1;
    all[0].threads.push(thread);
    let mut seen = Seen::default();
    let outcome = play_all(2, all, &mut seen);
    seen.messages.sort_unstable();
    assert_eq!(seen.messages, [((0, 0), (1, 0)), ((0, 2), (1, 2))]);
    assert!(outcome.stopped.iter().any(|(reason, _)| *reason == Stop::Threads), "{outcome:?}");
}

#[test]
fn persistent_and_partitioned_messages_are_matched_by_their_starts() {
    let all = job(2, |own| {
        let rank = own.caller.rank();
        let other = u64::from(1 - rank);
        let info = predefined(ObjectKind::Info, "MPI_INFO_NULL");
        let mut requests = Vec::new();
        for _ in 0..2 {
            let words = [0, 2, 4, double(), other, 3, world(), info];
            requests.push(own.make(if rank == 0 { "MPI_Psend_init" } else { "MPI_Precv_init" }, &words).1);
        }
        let words = [0, 4, double(), other, 3, world()];
        requests.push(own.make(if rank == 0 { "MPI_Send_init" } else { "MPI_Recv_init" }, &words).1);
        for _ in 0..3 {
            // Each side has an order of its own: partitioned messages are told apart by their constructors.
            let order = if rank == 0 { [0, 1, 2] } else { [1, 2, 0] };
            for at in order {
                own.call("MPI_Start", &[requests[at], requests[at]]);
            }
            for (at, &request) in requests.iter().enumerate() {
                let told = if (rank, at) == (1, 2) { (0, 3) } else { (-1, -1) };
                own.call("MPI_Wait", &[request, request, status_word(told.0, told.1)]);
            }
        }
    });
    let mut seen = Seen::default();
    let outcome = play_all(2, all, &mut seen);
    seen.messages.sort_unstable();
    let of = |step: u64| {
        [(3, 5), (4, 3), (5, 4)].map(|(send, receive)| ((0, send + 6 * step), (1, receive + 6 * step)))
    };
    assert_eq!(seen.messages, [of(0), of(1), of(2)].concat(), "{outcome:?}");
    assert_eq!(outcome.leaks.len(), 6);
    assert!(outcome.leaks.iter().all(|leak| leak.inactive));
}

#[test]
fn calls_that_do_not_fit_end_their_communicator() {
    let all = job(2, |own| {
        own.allreduce(world());
        match own.caller.rank() {
            0 => own.call("MPI_Barrier", &[world()]),
            _ => own.allreduce(world()),
        };
        own.allreduce(world());
    });
    let mut seen = Seen { strict: true, ..Seen::default() };
    let outcome = play_all(2, all, &mut seen);
    assert_eq!(seen.collectives.len(), 2, "{outcome:?}");
    assert!(outcome.stuck.is_empty());
}

#[test]
fn steps_are_those_of_decoded_calls() {
    use ampl_trace::decode::Calls;
    use ampl_trace::steps::{Step, Steps};
    let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../ampl-trace/tests/golden/v1");
    let (mut compared, mut timed) = (0, 0);
    for entry in std::fs::read_dir(golden).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "ampl") {
            continue;
        }
        let run = ampl_reader::Run::open(&path).unwrap();
        for rank in run.ranks().into_iter().filter_map(|rank| run.rank(rank)) {
            for (index, thread) in rank.structure.threads.iter().enumerate() {
                let calls = Calls::new(&rank.structure, &rank.trace).map_while(Result::ok);
                let mut calls = calls.filter(|call| call.thread == thread.thread);
                for step in Steps::new(&rank.structure, index, &rank.trace, true).unwrap() {
                    let Step::Calls { seq, terminal, mut count, time } = step else { continue };
                    let mut next = seq;
                    while count > 0 {
                        let Some(call) = calls.next() else { break };
                        assert_eq!((call.seq, call.terminal), (next, terminal), "{}", path.display());
                        let start = time.map(|(window, time)| (window, time.start_ns));
                        assert_eq!(call.timed.map(|timed| (timed.window, timed.start_ns)), start);
                        next += call.count;
                        count -= call.count;
                        compared += 1;
                        timed += u32::from(time.is_some());
                    }
                }
            }
        }
    }
    assert!(compared > 300 && timed > 300, "{compared} {timed}");
}
