//! Communicators whose ranks a trace does not determine, and a reader does not guess.

use ampl_core::mpi::Function;
use ampl_core::mpi::constants::AbiFamily;
use ampl_core::mpi::predefined_index;
use ampl_core::value::ObjectKind;
use ampl_trace::RankTrace;
use ampl_trace::args::predefined_word;
use ampl_trace::communicators::{Communicators, Name};
use ampl_trace::decode::Calls;
use ampl_trace::grammar::Builder;
use ampl_trace::model::{Process, Trace};
use ampl_trace::record::{CALL_ERROR, CALL_NO_ARGS, CALL_PLACE, CALL_UNFINISHED, GAP, NOWHERE};
use ampl_trace::structure::{Comm, JobStructure, RankStructure, Signature, ThreadStructure};
use proptest::prelude::*;

/// A call: its function, flags and words.
type Call = (&'static str, u8, Vec<u64>);

fn call(function: &'static str, words: &[u64]) -> Call {
    (function, 0, words.to_vec())
}

fn named(kind: ObjectKind, name: &str) -> u64 {
    predefined_word(predefined_index(kind, name).unwrap())
}

fn world() -> u64 {
    named(ObjectKind::Comm, "MPI_COMM_WORLD")
}

fn null() -> u64 {
    named(ObjectKind::Comm, "MPI_COMM_NULL")
}

fn thread(thread: u32, calls: &[Call]) -> ThreadStructure {
    let mut builder = Builder::new();
    let signatures = calls.iter().map(|(function, flags, words)| {
        let function = Function::by_name(function).map_or(GAP, |function| function.0);
        Signature { function, flags: *flags, site: 0, path: 0, words: words.clone() }
    });
    (0..calls.len()).for_each(|terminal| builder.push(terminal as u32, 1));
    ThreadStructure { thread, signatures: signatures.collect(), grammar: builder.grammar() }
}

/// A job in which each rank has the calls of these threads, all of them counted.
fn trace(ranks: &[Vec<Vec<Call>>]) -> Trace {
    let mut trace = Trace { structure: JobStructure::new(ranks.len() as u32), ..Trace::default() };
    trace.run.ranks = ranks.len() as u32;
    trace.run.mpi_library = "Open MPI v4.1.4".into();
    for (rank, threads) in (0..).zip(ranks) {
        let mut calls = std::collections::BTreeMap::new();
        for (function, ..) in threads.iter().flatten() {
            if let Some(function) = Function::by_name(function) {
                *calls.entry(function.0).or_default() += 1;
            }
        }
        let threads = (0..).zip(threads).map(|(number, calls)| thread(number, calls)).collect();
        trace.structure.join(JobStructure::of(RankStructure { rank, threads, ..RankStructure::default() }));
        let (calls, host) = (calls.into_iter().collect(), "node".into());
        let process = Process { rank, host, finalized: true, calls, ..Process::default() };
        trace.ranks.push(RankTrace { process, ..RankTrace::default() });
    }
    trace
}

/// Equal calls on each of so many ranks, in one thread.
fn alike(ranks: u32, calls: impl Fn(u32) -> Vec<Call>) -> Trace {
    trace(&(0..ranks).map(|rank| vec![calls(rank)]).collect::<Vec<_>>())
}

/// Name and ranks of every communicator.
fn listed(trace: &Trace) -> Vec<(String, Option<String>)> {
    let comms = Communicators::of(trace);
    comms.iter().map(|comm| (comm.name.to_string(), comm.ranks.as_ref().map(|it| it.to_string()))).collect()
}

fn of(name: &str, ranks: Option<&str>) -> (String, Option<String>) {
    (name.into(), ranks.map(str::to_owned))
}

/// Names of the communicators of a rank's barriers.
fn barriers(trace: &Trace, rank: u32) -> Vec<String> {
    let (structure, comms) = (trace.structure.rank(rank).unwrap(), Communicators::of(trace));
    let nothing = RankTrace::default();
    let calls = Calls::naming(&structure, &nothing, &comms).map(Result::unwrap);
    let barriers = calls.filter(|call| call.function.name() == "MPI_Barrier");
    barriers.map(|call| call.args[0].1.to_string()).collect()
}

fn dup(word: u64) -> Call {
    call("MPI_Comm_dup", &[world(), word])
}

fn barrier(word: u64) -> Call {
    call("MPI_Barrier", &[word])
}

fn free(word: u64) -> Call {
    call("MPI_Comm_free", &[word, null()])
}

#[test]
fn calls_that_failed_everywhere_made_nothing() {
    let failed = ("MPI_Comm_dup", CALL_ERROR, vec![13, world()]);
    let good = alike(3, |_| vec![failed.clone(), dup(1), barrier(1)]);
    assert_eq!(listed(&good), [of("comm:1", Some("0-2"))]);
    assert_eq!(barriers(&good, 2), ["comm:1"]);
    // On one rank only: whether the others' calls match it is not known.
    let bad = alike(3, |rank| if rank == 1 { vec![failed.clone(), dup(1)] } else { vec![dup(1), dup(2)] });
    let names: Vec<String> = listed(&bad).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["comm:0.1", "comm:0.2", "comm:1.1", "comm:2.1", "comm:2.2"]);
}

#[test]
fn a_rank_that_stops_leaves_what_was_before() {
    let mut trace = alike(3, |rank| {
        let mut calls = vec![dup(1), dup(2), barrier(2)];
        calls.truncate(if rank == 2 { 1 } else { 3 });
        calls
    });
    // It should have made the second one, too: perhaps it is the first that it did not make.
    assert!(listed(&trace).iter().all(|(name, _)| name.contains('.')));
    trace.ranks[2].process.finalized = false;
    let expected = [of("comm:1", Some("0-2")), of("comm:0.2", None), of("comm:1.2", None)];
    assert_eq!(listed(&trace), expected);
    assert_eq!(barriers(&trace, 1), ["comm:1.2"]);
    // A rank of which nothing is left.
    trace.structure = (0..2).map(|rank| JobStructure::of(trace.structure.rank(rank).unwrap())).fold(
        JobStructure::new(3),
        |mut all, one| {
            all.join(one);
            all
        },
    );
    assert!(listed(&trace).iter().all(|(name, _)| name.contains('.')));
}

#[test]
fn what_was_only_counted_may_have_been_about_communicators() {
    let gap = ("", 0, vec![]);
    let calls = |_| vec![dup(1), gap.clone(), dup(2), barrier(1), barrier(2)];
    let mut trace = alike(2, calls);
    // Every call that makes or frees one is recorded: the gap was about something else.
    assert_eq!(listed(&trace), [of("comm:1", Some("0-1")), of("comm:2", Some("0-1"))]);
    assert_eq!(barriers(&trace, 0), ["comm:1", "comm:2"]);
    // One free more was counted than recorded: of what is named later nothing has been freed.
    let frees = Function::by_name("MPI_Comm_free").unwrap().0;
    for rank in &mut trace.ranks {
        rank.process.calls.push((frees, 1));
        rank.process.calls.sort_unstable();
    }
    assert_eq!(listed(&trace), [of("comm:1", Some("0-1")), of("comm:2", Some("0-1"))]);
    assert_eq!(barriers(&trace, 0), ["comm:1", "comm:2"]);
    // One more was made than recorded: what was made before the gap is known.
    let dups = Function::by_name("MPI_Comm_dup").unwrap().0;
    for rank in &mut trace.ranks {
        rank.process
            .calls
            .iter_mut()
            .filter(|(function, _)| *function == dups)
            .for_each(|(_, calls)| *calls += 1);
    }
    let expected = [of("comm:1", Some("0-1")), of("comm:0.2", None), of("comm:1.2", None)];
    assert_eq!(listed(&trace), expected);
    assert_eq!(barriers(&trace, 0), ["comm:0.w1", "comm:0.2"]);
    // Without the ranks' counts of calls.
    trace.ranks.clear();
    assert_eq!(listed(&trace), expected);
    assert_eq!(barriers(&trace, 0), ["comm:0.w1", "comm:0.2"]);
}

#[test]
fn a_call_that_was_left_has_made_nobody_knows_what() {
    let left = ("MPI_Comm_dup", CALL_NO_ARGS | CALL_UNFINISHED, vec![]);
    let trace = alike(2, |_| vec![dup(1), left.clone(), barrier(1), dup(2), barrier(2)]);
    let expected = [of("comm:1", Some("0-1")), of("comm:0.2", None), of("comm:1.2", None)];
    assert_eq!(listed(&trace), expected);
    // Freed, perhaps, and made again, unseen: only with calls that are counted.
    let mut uncounted = trace;
    uncounted.ranks.clear();
    assert_eq!(barriers(&uncounted, 1), ["comm:1.w1", "comm:1.2"]);
}

#[test]
fn words_that_several_threads_reuse_are_not_named() {
    // The second thread makes one from a communicator that the first has made, and both reuse number 2.
    let first = vec![dup(1), dup(3), call("MPI_Comm_dup", &[1, 2]), barrier(2), free(2)];
    let second = vec![call("MPI_Comm_dup", &[3, 4]), barrier(4), call("MPI_Comm_dup", &[3, 2]), barrier(2)];
    let both = trace(&vec![vec![first.clone(), second.clone()]; 2]);
    let names: Vec<(String, Option<String>)> = listed(&both);
    assert_eq!(names.len(), 5);
    assert!(names.iter().all(|(name, ranks)| !name.contains('.') && ranks.as_deref() == Some("0-1")));
    assert_eq!(barriers(&both, 0), ["comm:0.w2", "comm:4", "comm:0.w2"]);
    // Both make of the world: in which order is not known.
    let both = trace(&vec![vec![vec![dup(1), barrier(1)], vec![dup(2), barrier(2)]]; 2]);
    assert!(listed(&both).iter().all(|(name, _)| name.contains('.')));
    assert_eq!(barriers(&both, 1), ["comm:1.1", "comm:1.2"]);
}

#[test]
fn hosts_are_believed_if_ranks_were_told_that_they_are_whole() {
    let info = named(ObjectKind::Info, "MPI_INFO_NULL");
    let split = |kind: u64| call("MPI_Comm_split_type", &[world(), kind, 0, info, 1]);
    let size = |size: u64| call("MPI_Comm_size", &[1, size]);
    let known = |calls: fn(u32, Call, Call, Call) -> Vec<Call>, hosts: [&str; 4]| {
        let mut trace = alike(4, |rank| calls(rank, split(0), size(2), size(4)));
        for (rank, host) in trace.ranks.iter_mut().zip(hosts) {
            rank.process.host = host.into();
        }
        listed(&trace).iter().filter(|(name, _)| !name.contains('.')).count()
    };
    let two = ["a", "b", "b", "a"];
    // One rank of each host has a size.
    assert_eq!(known(|rank, split, two, _| if rank < 2 { vec![split, two] } else { vec![split] }, two), 2);
    assert_eq!(known(|rank, split, two, _| if rank < 1 { vec![split, two] } else { vec![split] }, two), 0);
    assert_eq!(known(|_, split, _, four| vec![split, four], two), 0);
    // By their own numbers: the highest implies the size.
    let number = |number: u64| call("MPI_Comm_rank", &[1, number]);
    let numbered = |numbers: [u64; 4]| {
        let trace = alike(4, |rank| vec![split(0), number(numbers[rank as usize])]);
        listed(&trace).iter().filter(|(name, _)| !name.contains('.')).count()
    };
    assert_eq!((numbered([0, 1, 2, 3]), numbered([0, 1, 0, 1])), (1, 0));
    // One alone is all of its host.
    assert_eq!(known(|_, split, _, _| vec![split], ["a", "b", "c", "d"]), 4);
    assert_eq!(known(|_, split, _, four| vec![split, four], ["a"; 4]), 1);
    assert_eq!(known(|_, split, two, _| vec![split, two], ["", "b", "b", ""]), 0);
    // By another shared resource.
    let cores = alike(4, |_| vec![split(2), size(4)]);
    assert_eq!(listed(&cores).iter().filter(|(name, _)| !name.contains('.')).count(), 0);
}

#[test]
fn an_order_that_is_the_library_s_is_told_by_ranks_own_numbers() {
    let cart = |reorder: u64| call("MPI_Cart_create", &[world(), 1, 1, 3, 1, 0, reorder, 1]);
    let number = |rank: u32| call("MPI_Comm_rank", &[1, u64::from(2 - rank)]);
    let sub = call("MPI_Cart_sub", &[1, 1, 1, 2]);
    let told = alike(3, |rank| vec![cart(1), number(rank), sub.clone()]);
    assert_eq!(listed(&told), [of("comm:1", Some("2,1,0")), of("comm:2", Some("2,1,0"))]);
    // One rank was not: it is known who is in it, and not in which order.
    let some = alike(3, |rank| if rank == 1 { vec![cart(1)] } else { vec![cart(1), number(rank)] });
    assert_eq!(listed(&some), [of("comm:1", None)]);
    assert_eq!(Communicators::of(&some).iter().next().unwrap().size, Some(3));
    let none = alike(3, |_| vec![cart(1), sub.clone()]);
    let names: Vec<String> = listed(&none).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["comm:1", "comm:0.2", "comm:1.2", "comm:2.2"]);
    // The program says that nothing is reordered, a rank that it was.
    let wrong = alike(3, |rank| vec![cart(0), number(rank)]);
    assert!(listed(&wrong).iter().all(|(name, _)| name.contains('.')));
}

#[test]
fn what_ranks_were_told_is_compared() {
    let split = |colour: u64, word: u64| call("MPI_Comm_split", &[world(), colour, 0, word]);
    // The agent asked for size and number.
    let asked = |size: u64, rank: u64| {
        let mut trace = alike(2, |_| vec![split(0, 1)]);
        let mut last = trace.structure.rank(1).unwrap();
        last.comms = vec![Comm { word: 1, size, rank }];
        let mut all = JobStructure::of(trace.structure.rank(0).unwrap());
        all.join(JobStructure::of(last));
        trace.structure = all;
        listed(&trace).len()
    };
    assert_eq!((asked(2, 1), asked(3, 1), asked(2, 0)), (1, 2, 2));
    // A null handle in spite of a colour, and another call than the others'.
    let null = alike(2, |rank| vec![split(0, if rank == 0 { 1 } else { null() })]);
    assert!(listed(&null).iter().all(|(name, _)| name.contains('.')));
    let other = alike(2, |rank| if rank == 0 { vec![split(0, 1)] } else { vec![dup(1)] });
    assert!(listed(&other).iter().all(|(name, _)| name.contains('.')));
    // Earlier calls on the same communicator are distrusted, too, and calls on the communicators they made.
    let later = alike(2, |rank| {
        let inner = call("MPI_Comm_dup", &[1, 2]);
        vec![dup(1), inner, if rank == 0 { split(0, 3) } else { dup(3) }]
    });
    assert_eq!(listed(&later).len(), 6);
}

#[test]
fn other_jobs_are_not_known() {
    let trace = alike(2, |_| {
        let spawn = call("MPI_Comm_get_parent", &[1]);
        vec![spawn, call("MPI_Intercomm_merge", &[1, 0, 2]), barrier(2), barrier(7)]
    });
    let names: Vec<String> = listed(&trace).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["comm:0.1", "comm:0.2", "comm:1.1", "comm:1.2"]);
    assert_eq!(barriers(&trace, 1), ["comm:1.2", "comm:1.w7"]);
    assert_eq!(Name::Own { rank: 1, number: 2 }.to_string(), "comm:1.2");
}

#[test]
fn points_of_a_grid_may_be_made_for_the_first_rank_only() {
    let calls = |rank, point| {
        let grid = call("MPI_Cart_create", &[world(), 1, 1, 2, 1, 0, 0, 1]);
        vec![grid, call("MPI_Cart_sub", &[1, 1, 0, if rank == 0 { 2 } else { point }])]
    };
    let (all, first) = (alike(2, |rank| calls(rank, 2)), alike(2, |rank| calls(rank, null())));
    let grid = of("comm:1", Some("0-1"));
    assert_eq!(listed(&all), [grid.clone(), of("comm:2", Some("0")), of("comm:3", Some("1"))]);
    assert_eq!(listed(&first), [grid, of("comm:2", Some("0"))]);
}

/// The body that ranks share is read once, and ranks that make nothing are not read one by one.
#[test]
fn ranks_without_communicators_cost_nothing() {
    const RANKS: u32 = 10_000;
    let calls: Vec<Call> = (0..7).map(|number| call("MPI_Comm_rank", &[world(), number])).collect();
    let mut structure = JobStructure::new(RANKS);
    for rank in 0..RANKS {
        let threads = vec![thread(0, &calls)];
        structure.join(JobStructure::of(RankStructure { rank, threads, ..RankStructure::default() }));
    }
    let mut trace = Trace { structure, ..Trace::default() };
    let comms = Communicators::within(&trace, 1);
    assert_eq!((comms.iter().len(), comms.is_complete()), (0, true));
    // It is not enough to read even a few that do.
    trace.structure.join(JobStructure::of(RankStructure {
        rank: RANKS,
        threads: vec![thread(0, &(0..50).map(dup).collect::<Vec<_>>())],
        ..RankStructure::default()
    }));
    let comms = Communicators::within(&trace, 1);
    assert_eq!((comms.iter().len(), comms.is_complete()), (0, false));
}

/// A few bytes may claim any number of calls, communicators and ranks.
#[test]
fn reading_ends_whatever_is_claimed() {
    let (mut many, mut trace) = (Builder::new(), alike(1, |_| vec![dup(1), free(1)]));
    (0..10).for_each(|_| [0, 1].iter().for_each(|&terminal| many.push(terminal, 1 << 40)));
    let mut structure = trace.structure.rank(0).unwrap();
    structure.threads[0].grammar = many.grammar();
    trace.structure = JobStructure::of(structure);
    let comms = Communicators::within(&trace, 1000);
    assert!(!comms.is_complete() && comms.iter().len() <= 1000);
    let mut large = alike(1, |_| vec![dup(1)]);
    large.run.ranks = u32::MAX;
    assert_eq!(listed(&large), [of("comm:0.1", None)]);
}

/// A call of a function that matters with words of any kind, mostly such as there may be.
fn any_call() -> impl Strategy<Value = Call> {
    let functions = ampl_core::mpi::FUNCTIONS.iter().map(|spec| spec.name).filter(|name| {
        let about = ["Comm_", "Group_", "Cart_", "graph_create", "Graph_create", "Intercomm_"];
        about.iter().any(|part| name.contains(part)) && !name.contains("attr") && !name.contains("name")
    });
    let functions: Vec<&str> = functions.chain(["gap"]).collect();
    let special =
        [world(), null(), named(ObjectKind::Group, "MPI_GROUP_EMPTY"), u64::MAX, u64::MAX - 1, 1 << 31];
    let word = prop_oneof![8 => 0u64..4, 1 => prop::sample::select(special.to_vec()), 1 => any::<u64>()];
    let flags = prop_oneof![9 => Just(0u8), 1 => 0u8..32];
    let words = prop::collection::vec(word, 0..9);
    (prop::sample::select(functions), flags, words).prop_map(|(function, flags, mut words)| {
        let fits = Function::by_name(function).map(|function| function.spec().params.len());
        // Scalars only, mostly: a function's own number of words.
        words.resize(fits.unwrap_or(0).max(words.len() % 4), 1);
        (function, flags, words)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn anything_may_have_been_called(
        ranks in prop::collection::vec(
            prop::collection::vec(prop::collection::vec(any_call(), 0..8), 1..3),
            1..4,
        ),
        same: bool,
        few in 0usize..200,
    ) {
        let mut ranks = ranks;
        if same {
            let first = ranks[0].clone();
            ranks.iter_mut().for_each(|rank| rank.clone_from(&first));
        }
        let trace = trace(&ranks);
        for comms in [Communicators::of(&trace), Communicators::within(&trace, few)] {
            for comm in comms.iter() {
                let ranks = comm.ranks.iter().chain(&comm.remote);
                let sizes: u32 = ranks.clone().map(|list| list.len()).sum();
                prop_assert!(comm.ranks.is_none() || comm.size == Some(sizes));
                prop_assert!(ranks.clone().all(|list| !list.is_empty()));
                prop_assert!(comm.is_agreed() || comm.ranks.is_none());
            }
            for rank in 0..ranks.len() as u32 {
                let structure = trace.structure.rank(rank).unwrap();
                let nothing = RankTrace::default();
                let calls = Calls::naming(&structure, &nothing, &comms).take_while(Result::is_ok).count();
                prop_assert!(calls <= ranks[rank as usize].iter().map(Vec::len).sum());
            }
        }
    }
}

/// As [`call`], with the caller's place in what it makes: size, rank there, and the world's rank of its rank 0.
fn placed(name: &'static str, words: &[u64], place: [u64; 3]) -> Call {
    (name, CALL_PLACE, [words, &place].concat())
}

#[test]
fn a_place_that_the_call_says_orders_what_the_library_chose() {
    let cart =
        |rank: u32| placed("MPI_Cart_create", &[world(), 1, 1, 3, 1, 0, 1, 1], [3, u64::from(2 - rank), 2]);
    let sub = call("MPI_Cart_sub", &[1, 1, 1, 2]);
    // Made, freed and made again by the same word: each has its own place.
    let again = alike(3, |rank| vec![cart(rank), sub.clone(), free(1), cart(rank), barrier(1)]);
    let expected = ["comm:1", "comm:2", "comm:3"].map(|name| of(name, Some("2,1,0")));
    assert_eq!(listed(&again), expected);
    assert_eq!(barriers(&again, 0), ["comm:3"]);
    // Two in one place cannot be.
    let wrong = alike(3, |rank| vec![if rank == 0 { cart(1) } else { cart(rank) }]);
    assert_eq!(listed(&wrong), [of("comm:1", None)]);
    // Leaders determine the parts of a split, whatever its type means; a rank without a communicator is in none.
    let info = named(ObjectKind::Info, "MPI_INFO_NULL");
    let null = named(ObjectKind::Comm, "MPI_COMM_NULL");
    let split = |made: u64, place| placed("MPI_Comm_split_type", &[world(), 224, 0, info, made], place);
    let parts = alike(5, |rank| {
        vec![match rank {
            0 | 2 => split(1, [2, u64::from(rank / 2), 0]),
            1 | 3 => split(1, [2, u64::from(rank == 1), 3]),
            _ => split(null, [NOWHERE; 3]),
        }]
    });
    assert_eq!(listed(&parts), [of("comm:1", Some("0,2")), of("comm:2", Some("3,1"))]);
    let alone = alike(2, |rank| vec![split(1, [2, u64::from(rank), 1])]);
    assert!(listed(&alone).iter().all(|(name, _)| name.contains('.')), "{:?}", listed(&alone));
}

#[test]
fn hosts_are_known_under_every_interface() {
    let info = named(ObjectKind::Info, "MPI_INFO_NULL");
    for (family, shared) in [(AbiFamily::OpenMpi, 0), (AbiFamily::Mpich, 1), (AbiFamily::Standard, 221)] {
        for kind in [0, 1, 221] {
            let split = call("MPI_Comm_split_type", &[world(), kind, 0, info, 1]);
            let mut trace = alike(3, |_| vec![split.clone(), call("MPI_Comm_size", &[1, 3])]);
            trace.run.mpi_library = "MPICH Version: 5.0.2".into();
            trace.run.abi = Some(family);
            let agreed = listed(&trace).iter().filter(|(name, _)| !name.contains('.')).count();
            assert_eq!(agreed, usize::from(kind == shared), "{family:?} {kind}");
        }
    }
}
