//! Ranks that call the same functions in the same order become one group, and make the same calls as before.

use ampl_core::value::{ANY_SOURCE, ANY_TAG};
use ampl_trace::args::status_word;
use ampl_trace::decode::{Call, Calls};
use ampl_trace::grammar::Builder;
use ampl_trace::model::RankTrace;
use ampl_trace::record::CALL_MISS;
use ampl_trace::structure::{JobStructure, RankStructure, Signature, ThreadStructure};
use ampl_trace::timed::for_each_at;
use ampl_trace::timing::{Decoder, Encoder, Settings, Terminal, Time, Window};
use proptest::prelude::*;

use crate::recorder::{Recorder, double, heap, named, word, world};

/// A number without order for each of these.
fn drawn(of: [u64; 4]) -> u64 {
    let mix = |all: u64, word: u64| (all ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    of.into_iter().fold(0x243f_6a88_85a3_08d3, mix).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33
}

/// A rank that goes through `steps` so many times: at each step a call whose words are among `values`, by rank, step and
/// the iteration modulo `period`.
fn program(rank: u32, ranks: u32, steps: &[u8], times: u32, (values, period): (u64, u32)) -> RankStructure {
    let mut recorder = Recorder::new(rank, ranks);
    recorder.begin();
    let (right, left) = (i64::from((rank + 1) % ranks), i64::from((rank + ranks - 1) % ranks));
    let none = status_word(ANY_SOURCE as i32, ANY_TAG as i32);
    for iteration in 0..times {
        for (at, &step) in (0u64..).zip(steps) {
            let value = drawn([rank.into(), at, (iteration % period).into(), 7]) % values;
            match step % 4 {
                0 => {
                    let words = vec![heap(0), 8 * value, double(), word(right), value % 3, world()];
                    recorder.call("MPI_Send", 10 + u64::from(step), words);
                }
                1 => {
                    let request = recorder.receive(20, value, left, value % 2);
                    recorder.wait(30, &[request], &[status_word(left as i32, (value % 2) as i32)]);
                }
                2 => {
                    let requests = [recorder.send(40, 1, right, value), recorder.receive(41, value, left, 9)];
                    recorder.wait(42, &requests, &[none, status_word(left as i32, 9)]);
                }
                _ => {
                    let operation = named(ampl_core::value::ObjectKind::Op, "MPI_SUM");
                    let words =
                        vec![heap(2), heap(3), value, double(), operation, value % u64::from(ranks), world()];
                    recorder.call("MPI_Reduce", 50, words);
                }
            }
        }
    }
    recorder.finish()
}

/// The calls of a rank but for the numbers of their signatures.
fn calls(structure: &RankStructure) -> Vec<Call> {
    let trace = RankTrace::default();
    let calls = Calls::new(structure, &trace).map(|call| Call { terminal: 0, ..call.unwrap() });
    calls.collect()
}

fn joined(made: &[RankStructure]) -> JobStructure {
    let mut all = JobStructure::new(made.len() as u32);
    made.iter().cloned().for_each(|rank| all.join(JobStructure::of(rank)));
    all
}

/// Joins pairs as ranks do at the job's end.
fn joined_in_pairs(made: &[RankStructure]) -> JobStructure {
    let mut parts: Vec<JobStructure> = made.iter().cloned().map(JobStructure::of).collect();
    while parts.len() > 1 {
        let pairs = parts.chunks(2).map(|pair| {
            let mut one = JobStructure::decode(&pair[0].encode_fast()).unwrap();
            if let Some(other) = pair.get(1) {
                one.join(JobStructure::decode(&other.encode_fast()).unwrap());
                one.unify();
            }
            one
        });
        parts = pairs.collect();
    }
    parts.pop().unwrap()
}

fn assert_calls(unified: &JobStructure, made: &[RankStructure]) {
    let decoded = JobStructure::decode(&unified.encode()).unwrap();
    let mut ranks: Vec<u32> = unified.ranks().collect();
    ranks.sort_unstable();
    assert!(ranks.iter().copied().eq(0..made.len() as u32));
    for own in made {
        let (found, stored) = (unified.rank(own.rank).unwrap(), decoded.rank(own.rank).unwrap());
        assert_eq!(found, stored);
        assert_eq!(calls(&found), calls(own), "rank {}", own.rank);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever words vary, and however ranks are joined, every rank makes the calls that it made.
    #[test]
    fn ranks_make_the_calls_that_they_made(
        steps in prop::collection::vec(0..8u8, 1..12),
        ranks in 2..9u32,
        times in 1..20u32,
        values in 1..6u64,
        period in 1..4u32,
        pairs: bool,
    ) {
        let made: Vec<_> =
            (0..ranks).map(|rank| program(rank, ranks, &steps, times, (values, period))).collect();
        let mut whole = joined(&made);
        whole.unify();
        let unified = if pairs { joined_in_pairs(&made) } else { whole };
        assert_calls(&unified, &made);
        let most = 64 * (u64::from(ranks) - 1);
        prop_assert!(unified.signatures() <= most + made.iter().map(|own| own.threads[0].signatures.len() as u64).sum::<u64>());
    }

    /// Ranks that call other functions somewhere stay apart, those that do not are joined.
    #[test]
    fn other_sequences_stay_apart(steps in prop::collection::vec(0..4u8, 2..12), odd in 0..7u32, ranks in 3..9u32) {
        let other: Vec<u8> = steps.iter().rev().copied().collect();
        // Ranks that make the same calls in the same order, each as often as it likes, are joined.
        let runs = |steps: &[u8]| {
            let mut all = steps.repeat(3);
            all.dedup();
            all
        };
        let turned = |by: usize| [&steps[by..], &steps[..by]].concat();
        prop_assume!(runs(&other) != runs(&steps) && (0..steps.len()).all(|by| turned(by) != other));
        let is_odd = |rank: u32| rank % 7 == odd;
        let made: Vec<_> = (0..ranks)
            .map(|rank| program(rank, ranks, if is_odd(rank) { &other } else { &steps }, 3, (4, 1)))
            .collect();
        let mut unified = joined(&made);
        unified.unify();
        assert_calls(&unified, &made);
        let together = unified.groups().all(|group| {
            let mut kinds: Vec<bool> = group.ranks().map(is_odd).collect();
            kinds.dedup();
            kinds.len() == 1
        });
        prop_assert!(together);
    }

    /// Times were stored by the signatures of each rank alone.
    #[test]
    fn times_stay_those_of_their_calls(
        steps in prop::collection::vec(0..8u8, 1..8), ranks in 2..6u32, times in 2..12u32, values in 1..5u64,
    ) {
        let made: Vec<_> = (0..ranks).map(|rank| program(rank, ranks, &steps, times, (values, 2))).collect();
        let mut unified = joined(&made);
        unified.unify();
        for own in &made {
            let mut encoder = Encoder::new(Settings { error: 0.0, floor_ns: 0 });
            encoder.window(Window { thread: 0, window: 0, first_seq: 0, start_ns: 0 });
            let thread = &own.threads[0];
            let mut expected = Vec::new();
            for (at, number) in thread.grammar.runs().flat_map(|(one, count)| (0..count).map(move |_| one)).enumerate() {
                let like = thread.signatures[number as usize].function;
                let duration_ns = 100 * u64::from(number) + drawn([at as u64, 1, 2, 3]) % 50;
                let time = Time { start_ns: 1000 * at as i64, duration_ns, count: 1 };
                encoder.call(Terminal { number, like, folds: false }, time);
                expected.push((at as u64, like, time));
            }
            let bytes = encoder.finish();
            let structure = unified.rank(own.rank).unwrap();
            let mut found = Vec::new();
            for_each_at(&structure, &mut Decoder::new(&bytes).unwrap(), |_, terminal, seq, time| {
                found.push((seq, terminal.like, time));
            }).unwrap();
            prop_assert_eq!(&found, &expected);
            let trace = RankTrace { times: bytes.clone(), ..RankTrace::default() };
            let timed: Vec<_> = Calls::new(&structure, &trace).map(|call| call.unwrap().timed.unwrap().start_ns).collect();
            prop_assert!(timed.iter().copied().eq(expected.iter().map(|(.., time)| time.start_ns)));
        }
    }
}

/// One place sends twelve messages a step, whose lengths follow from the rank: each rank has other ones that are equal.
#[test]
fn lengths_that_depend_on_the_rank_leave_one_body() {
    let ranks = 64;
    for distinct in [false, true] {
        let length = |rank: u32, at: u64| {
            let drawn = drawn([rank.into(), at, 0, 0]);
            if distinct { 100 * at + drawn % 100 } else { 10 * (1 + drawn % 4) }
        };
        let rank = |rank: u32| {
            let mut recorder = Recorder::new(rank, ranks);
            recorder.begin();
            for _ in 0..50 {
                for at in 0..12 {
                    let to = word(i64::from((rank + 1) % ranks));
                    recorder.call("MPI_Send", 10, vec![heap(0), length(rank, at), double(), to, 7, world()]);
                }
            }
            recorder.finish()
        };
        let made: Vec<_> = (0..ranks).map(rank).collect();
        assert_eq!(joined(&made).grammars() > 50, !distinct);
        let unified = joined_in_pairs(&made);
        assert_eq!((unified.grammars(), unified.signatures()), (1, 16));
        assert_calls(&unified, &made);
        let mut whole = joined(&made);
        whole.unify();
        assert_calls(&whole, &made);
        assert_eq!((whole.grammars(), whole.signatures()), (1, 16));
        // Twelve lengths a rank, of which each is one of four, or of a hundred.
        let least = 64 * 12 * if distinct { 7 } else { 2 } / 8;
        let bytes = whole.encode().len();
        assert!(bytes < 2 * least + 300, "{bytes} of at least {least}");
    }
}

/// Failed polls of one kind in a row are one entry, on every rank.
#[test]
fn runs_of_failed_polls_are_not_cut() {
    let made: Vec<RankStructure> = (0..2)
        .map(|rank: u32| {
            // Rank 0 polls for one message twice, rank 1 for two messages.
            let tags = if rank == 0 { vec![3] } else { vec![3, 4] };
            let signature = |&tag: &u64| Signature {
                function: ampl_core::mpi::Function::by_name("MPI_Iprobe").unwrap().0,
                flags: CALL_MISS,
                site: 0,
                path: 0,
                words: vec![0, tag, world()],
            };
            let mut builder = Builder::new();
            (0..2).for_each(|at: u32| builder.push(at.min(rank), 1));
            let signatures = tags.iter().map(signature).collect();
            let thread = ThreadStructure { thread: 0, signatures, grammar: builder.into_grammar() };
            RankStructure { rank, threads: vec![thread], ..RankStructure::default() }
        })
        .collect();
    let mut all = joined(&made);
    all.unify();
    assert_eq!(all.grammars(), 2);
    assert_calls(&all, &made);
}

/// Sequences without order have no common terminals that are worth it.
#[test]
fn random_sequences_stay_as_they_are() {
    let made: Vec<_> = (0..12)
        .map(|rank: u32| {
            let mut recorder = Recorder::new(rank, 12);
            for at in 0..2000 {
                let length = drawn([rank.into(), at, 5, 6]) % 40;
                recorder.call("MPI_Send", 10, vec![heap(0), length, double(), word(0), 7, world()]);
            }
            recorder.finish()
        })
        .collect();
    let mut all = joined(&made);
    let before = all.encode();
    all.unify();
    assert_eq!((all.grammars(), all.encode() == before), (12, true));
}
