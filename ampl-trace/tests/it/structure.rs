//! The structure of all ranks: it comes back, from few bytes, and any bytes are read without harm.

use ampl_core::mpi::Function;
use ampl_core::value::{ANY_SOURCE, ANY_TAG, ObjectKind, PROC_NULL};
use ampl_trace::args::status_word;
use ampl_trace::grammar::Builder;
use ampl_trace::structure::{Comm, JobStructure, RankStructure, Signature, ThreadStructure};
use proptest::prelude::*;

use crate::recorder::*;

/// Joins in the order of a binary tree.
fn tree(mut parts: Vec<JobStructure>) -> JobStructure {
    while parts.len() > 1 {
        let mut parents = Vec::new();
        let mut parts_left = parts.into_iter();
        while let Some(mut one) = parts_left.next() {
            parts_left.next().into_iter().for_each(|other| one.join(other));
            parents.push(one);
        }
        parts = parents;
    }
    parts.pop().unwrap()
}

fn merged(ranks: u32, make: impl Fn(u32) -> RankStructure) -> JobStructure {
    tree((0..ranks).map(|rank| JobStructure::of(make(rank))).collect())
}

/// The encoded bytes, once every rank has come back from them.
fn checked(ranks: u32, make: impl Fn(u32) -> RankStructure) -> Vec<u8> {
    let merged = merged(ranks, &make);
    let bytes = merged.encode();
    let decoded = JobStructure::decode(&bytes).unwrap();
    let quick = JobStructure::decode(&merged.encode_fast()).unwrap();
    for rank in 0..ranks {
        let made = make(rank);
        assert_eq!(merged.rank(rank).as_ref(), Some(&made), "rank {rank}");
        assert_eq!(decoded.rank(rank).as_ref(), Some(&made), "rank {rank}, decoded");
        assert_eq!(quick.rank(rank).as_ref(), Some(&made), "rank {rank}, packed");
    }
    assert_eq!(decoded.encode(), bytes);
    [&merged, &decoded, &quick].into_iter().for_each(groups_are_their_ranks);
    bytes
}

/// Compares every group with its ranks, each on its own: its calls, the values of its words, its sequences.
fn groups_are_their_ranks(merged: &JobStructure) {
    let mut ranks = Vec::new();
    for group in merged.groups() {
        let spans: Vec<_> = group.threads().map(|thread| thread.grammars()).collect();
        for (position, rank) in (0u32..).zip(group.ranks()) {
            ranks.push(rank);
            let structure = merged.rank(rank).unwrap();
            let alone = JobStructure::of(structure.clone());
            let alone = alone.groups().next().unwrap();
            assert_eq!((group.modules(), group.sites()), (&structure.modules[..], &structure.sites[..]));
            for ((thread, own), spans) in group.threads().zip(alone.threads()).zip(&spans) {
                let stored =
                    structure.threads.iter().find(|stored| stored.thread == thread.number()).unwrap();
                let (_, grammar) = spans.iter().find(|(span, _)| span.contains(&position)).unwrap();
                assert_eq!(grammar, &stored.grammar);
                assert_eq!(thread.len(), stored.signatures.len());
                for (call, own) in thread.terminals().zip(own.terminals()) {
                    assert_eq!((call.function, call.flags, call.site), (own.function, own.flags, own.site));
                    let values = call.words.iter().map(|word| word.argument.of(rank));
                    assert!(values.eq(own.words.iter().map(|word| word.argument.same())));
                }
            }
        }
    }
    let mut all: Vec<u32> = merged.ranks().collect();
    all.sort_unstable();
    ranks.sort_unstable();
    assert_eq!(ranks, all);
}

#[test]
fn stencils_are_small_whatever_their_size() {
    let size = |dims: &[u32], periodic| {
        let ranks = dims.iter().product();
        let bytes = checked(ranks, |rank| stencil(dims, periodic, 100, rank)).len();
        println!("{dims:?} periodic {periodic}: {bytes} B");
        bytes
    };
    let (few, many) = (size(&[4, 4], false), size(&[8, 8], false));
    assert!(many <= 700 && many * 20 <= few * 21 && few * 20 <= many * 21, "{few} {many}");
    let (few, many) = (size(&[3, 3, 3], true), size(&[4, 4, 4], true));
    assert!(few <= 900 && many <= 900, "{few} {many}");
    for (dims, periodic) in
        [(&[16][..], true), (&[16], false), (&[4, 4], true), (&[3, 3, 3], false), (&[3, 5], true)]
    {
        assert!(size(dims, periodic) <= 900);
    }
}

/// A message from `MPI_PROC_NULL` is from rank 0, with tag 0, by MPICH 4.0; here in a communicator without other
/// facts, so that neighbours have no distance.
#[test]
fn what_depends_on_there_being_a_neighbour_costs_no_more_where_more_have_none() {
    let size = |side: u32| {
        let make = |rank| stencil_under(0, &[side, side], false, 10, rank);
        checked(side * side, |rank| RankStructure { comms: Vec::new(), ..make(rank) }).len()
    };
    let sizes = [4, 8, 16].map(size);
    assert!(sizes.into_iter().all(|size| size <= sizes[0] + 4), "{sizes:?}");
}

#[test]
fn iterations_cost_nothing() {
    let size = |iterations| checked(16, |rank| stencil(&[4, 4], false, iterations, rank)).len();
    let (few, many) = (size(100), size(10_000));
    assert!(many <= few + 4, "{few} {many}");
}

/// A ring that passes a token on, one rank beginning.
fn ring(ranks: u32, rank: u32) -> RankStructure {
    let mut recorder = Recorder::new(rank, ranks);
    recorder.begin();
    let (before, next) = (u64::from((rank + ranks - 1) % ranks), u64::from((rank + 1) % ranks));
    for _ in 0..30 {
        let send = |recorder: &mut Recorder, line| {
            recorder.call("MPI_Send", line, vec![heap(0), 1, double(), next, 3, world()]);
        };
        if rank == 0 {
            send(&mut recorder, 10);
        }
        let status = status_word(before as i32, 3);
        recorder.call("MPI_Recv", 12, vec![heap(1), 1, double(), before, 3, world(), status]);
        if rank != 0 {
            send(&mut recorder, 14);
        }
    }
    recorder.finish()
}

/// Rank 0 hands out work to the rank that asks; the others ask.
fn master(ranks: u32, rank: u32) -> RankStructure {
    let mut recorder = Recorder::new(rank, ranks);
    recorder.begin();
    let mut random = 12345u32;
    for _ in 0..40 {
        random = random.wrapping_mul(1_103_515_245).wrapping_add(12345);
        let worker = 1 + (random >> 16) % (ranks - 1);
        if rank == 0 {
            let status = status_word(worker as i32, 1);
            let words = vec![heap(0), 1, double(), word(ANY_SOURCE), 1, world(), status];
            recorder.call("MPI_Recv", 10, words);
            recorder.call("MPI_Send", 11, vec![heap(1), 4, double(), worker.into(), 2, world()]);
        } else if rank == worker {
            recorder.call("MPI_Send", 20, vec![heap(0), 1, double(), 0, 1, world()]);
            let words = vec![heap(1), 4, double(), 0, 2, world(), status_word(0, 2)];
            recorder.call("MPI_Recv", 21, words);
        }
    }
    recorder.finish()
}

/// Communicators of the rows and columns of a square: a broadcast along each row, a ring along each column.
fn rows_and_columns(side: u32, rank: u32) -> RankStructure {
    let mut recorder = Recorder::new(rank, side * side);
    recorder.begin();
    let (row, column) = (u64::from(rank / side), u64::from(rank % side));
    recorder.call("MPI_Comm_split", 10, vec![world(), row, column, 1 + row]);
    recorder.call("MPI_Comm_split", 11, vec![world(), column, row, 1 + u64::from(side) + column]);
    recorder.rank.comms.push(Comm { word: 1 + row, size: side.into(), rank: column });
    recorder.rank.comms.push(Comm { word: 1 + u64::from(side) + column, size: side.into(), rank: row });
    for step in 0..u64::from(side) {
        recorder.call("MPI_Bcast", 20, vec![heap(step), 64, double(), step, 1 + row]);
        let comm = 1 + u64::from(side) + column;
        let (up, down) = ((row + 1) % u64::from(side), (row + u64::from(side) - 1) % u64::from(side));
        let words = vec![heap(40), 64, double(), down, 5, up, 5, comm, status_word(up as i32, 5)];
        recorder.call("MPI_Sendrecv_replace", 21, words);
    }
    recorder.finish()
}

/// All ranks exchange counts that change a little from one iteration to the next.
fn exchange(ranks: u32, rank: u32) -> RankStructure {
    let mut recorder = Recorder::new(rank, ranks);
    recorder.begin();
    let int = named(ObjectKind::Type, "MPI_INT");
    let count = |from: u32, to: u32, step: u32| {
        let base = 200 + from.wrapping_mul(7919).wrapping_add(to * 104_729) % 97;
        u64::from(base + u32::from((from * 31 + to * 17 + step * 7).is_multiple_of(23)))
    };
    for step in 0..10 {
        let mut words = vec![heap(1)];
        for sent in [true, false] {
            let counts: Vec<u64> = (0..ranks)
                .map(|other| if sent { count(rank, other, step) } else { count(other, rank, step) })
                .collect();
            let mut before = 0;
            words.push(ranks.into());
            words.extend(&counts);
            words.push(ranks.into());
            words.extend(counts.iter().map(|count| {
                before += count;
                before - count
            }));
            words.push(int);
            if sent {
                words.push(heap(2));
            }
        }
        words.push(world());
        recorder.call("MPI_Alltoallv", 30, words);
    }
    recorder.finish()
}

/// Different calls on every rank, and calls whose words do not fit the table.
fn random(rank: u32) -> RankStructure {
    let mut recorder = Recorder::new(rank, 8);
    recorder.begin();
    let mut state = u64::from(rank) + 1;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for _ in 0..200 {
        match next(4) {
            0 => drop(recorder.receive(10 + next(3), next(4), next(10) as i64 - 3, next(9))),
            1 => drop(recorder.send(20 + next(3), next(4), next(10) as i64 - 3, next(9))),
            2 => {
                let words = (0..next(9)).map(|_| next(1 << 30) << next(40)).collect();
                recorder.call("MPI_Waitsome", 30, words);
            }
            _ => {
                let words = vec![u64::MAX, 0, u64::MAX >> 1, 1 << 63, u64::MAX - 1, world(), next(1 << 20)];
                recorder.call("MPI_Allreduce", 40, words);
            }
        }
    }
    recorder.finish()
}

/// A stencil that uses one buffer and line for all neighbours: calls at the edges become one signature.
fn careless_stencil(dims: &[u32], rank: u32) -> RankStructure {
    let mut recorder = Recorder::new(rank, dims.iter().product());
    recorder.begin();
    for _ in 0..50 {
        let (mut requests, mut statuses) = (Vec::new(), Vec::new());
        for along in 0..dims.len() {
            for by in [-1, 1] {
                let other = neighbour(dims, false, rank, along, by);
                let slots = |request: u64, requests: &[u64]| {
                    request + requests.iter().filter(|&&known| known >> 20 == request >> 20).count() as u64
                };
                let request = recorder.receive(20, 1, other, 7);
                requests.push(slots(request, &requests));
                let tag = if other == PROC_NULL { ANY_TAG } else { 7 };
                statuses.push(status_word(other as i32, tag as i32));
                let request = recorder.send(22, 2, other, 7);
                requests.push(slots(request, &requests));
                statuses.push(status_word(ANY_SOURCE as i32, ANY_TAG as i32));
            }
        }
        recorder.wait(30, &requests, &statuses);
    }
    recorder.finish()
}

#[test]
fn programs_of_many_kinds_come_back() {
    let print = |name: &str, bytes: Vec<u8>| println!("{name}: {} B", bytes.len());
    for ranks in [2, 5, 16, 64] {
        print(&format!("ring of {ranks}"), checked(ranks, |rank| ring(ranks, rank)));
        print(&format!("master of {ranks}"), checked(ranks, |rank| master(ranks, rank)));
    }
    for side in [2, 4, 8] {
        print(&format!("{side} rows"), checked(side * side, |rank| rows_and_columns(side, rank)));
        let dims = [side, side];
        print(&format!("careless {side}"), checked(side * side, |rank| careless_stencil(&dims, rank)));
    }
    print("exchange", checked(16, |rank| exchange(16, rank)));
    print("random", checked(8, random));
}

#[test]
fn no_ranks_and_nothing_called() {
    for empty in [JobStructure::new(0), JobStructure::new(5)] {
        let decoded = JobStructure::decode(&empty.encode()).unwrap();
        assert_eq!((decoded.ranks().count(), decoded.rank_count()), (0, empty.rank_count()));
    }
    let rank = RankStructure { rank: 3, ..RankStructure::default() };
    let mut merged = JobStructure::new(9);
    merged.join(JobStructure::of(rank.clone()));
    let decoded = JobStructure::decode(&merged.encode()).unwrap();
    assert_eq!(decoded.rank(3), Some(rank));
    assert_eq!((decoded.rank(2), decoded.grammars(), decoded.signatures()), (None, 1, 0));
}

#[test]
fn ten_thousand_ranks_are_joined_quickly_and_stay_small() {
    let begun = std::time::Instant::now();
    let dims = [100, 100];
    let merged = merged(10_000, |rank| stencil(&dims, false, 3, rank));
    let joined = begun.elapsed();
    let bytes = merged.encode();
    println!("10^4 ranks: {} B, joined in {joined:?}, all in {:?}", bytes.len(), begun.elapsed());
    let decoded = JobStructure::decode(&bytes).unwrap();
    for rank in (0..10_000).step_by(99) {
        assert_eq!(decoded.rank(rank).unwrap(), stencil(&dims, false, 3, rank));
    }
    assert!(bytes.len() <= 250);
}

/// A few ranks of a job, some of them alike.
fn some_ranks() -> impl Strategy<Value = Vec<RankStructure>> {
    let one = |rank: u32, sort: u32| {
        let mut made = match sort {
            0 => stencil(&[3, 4], false, 2, rank),
            1 => ring(12, rank),
            2 => master(12, rank),
            3 => careless_stencil(&[4, 3], rank),
            4 => random(rank % 3),
            _ => exchange(12, rank),
        };
        made.rank = rank;
        made
    };
    let sorts = prop::collection::vec((0..4u32, any::<bool>()), 12);
    (sorts, 0..6u32).prop_map(move |(sorts, usual)| {
        let sorts = (0..).zip(sorts);
        let here = sorts.filter(|&(_, (sort, _))| sort > 0 || usual % 2 == 0);
        here.map(|(rank, (sort, odd))| one(rank, if odd { sort } else { usual })).collect()
    })
}

/// Joins adjacent parts in the order of `choices`, some of them after encoding and decoding.
fn join_all(mut parts: Vec<JobStructure>, choices: &[u8]) -> JobStructure {
    let mut choices = choices.iter().cycle();
    while parts.len() > 1 {
        let choice = usize::from(*choices.next().unwrap());
        let at = choice / 2 % (parts.len() - 1);
        let other = parts.remove(at + 1);
        parts[at].join(other);
        if choice % 2 == 1 {
            let bytes = if choice % 4 == 1 { parts[at].encode_fast() } else { parts[at].encode() };
            parts[at] = JobStructure::decode(&bytes).unwrap();
        }
    }
    parts.pop().unwrap_or_default()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_joins_keeps_every_rank(
        ranks in some_ranks(),
        choices in prop::collection::vec(any::<u8>(), 20),
    ) {
        let mut merged = JobStructure::new(12);
        merged.join(join_all(ranks.iter().cloned().map(JobStructure::of).collect(), &choices));
        let decoded = JobStructure::decode(&merged.encode()).unwrap();
        for merged in [&merged, &decoded] {
            prop_assert_eq!(merged.ranks().count(), ranks.len());
            groups_are_their_ranks(merged);
            for rank in &ranks {
                prop_assert_eq!(merged.rank(rank.rank), Some(rank.clone()));
            }
        }
    }

    #[test]
    fn any_words_come_back(
        words in prop::collection::vec(prop::collection::vec((any::<u64>(), 0..64u32), 0..14), 1..6),
        functions in prop::collection::vec((any::<u16>(), any::<u8>(), 0..3u32), 6),
        comms in prop::collection::vec((0..3u64, 0..6u64, 0..6u64), 0..3),
    ) {
        let known = [Function::by_name("MPI_Irecv").unwrap().0, Function::by_name("MPI_Wait").unwrap().0];
        let comm = |(word, size, rank)| Comm { word, size, rank };
        let comms: Vec<Comm> = comms.into_iter().map(comm).collect();
        let make = |rank: u32| {
            let turn = |(word, shift): (u64, u32)| (word >> shift).wrapping_add((rank * (shift % 3)).into());
            type Given<'a> = (&'a Vec<(u64, u32)>, &'a (u16, u8, u32));
            let signature = |(words, &(function, flags, sort)): Given| Signature {
                function: *known.get(sort as usize).unwrap_or(&function),
                flags: if sort < 2 { 0 } else { flags },
                site: 0,
                path: 0,
                words: words.iter().map(|&word| turn(word)).collect(),
            };
            let signatures: Vec<Signature> = words.iter().zip(&functions).map(signature).collect();
            let mut calls = Builder::new();
            (0..signatures.len()).for_each(|terminal| calls.push(terminal as u32, 1 + u64::from(rank)));
            let thread = ThreadStructure { thread: 7, signatures, grammar: calls.grammar() };
            RankStructure { rank, threads: vec![thread], comms: comms.clone(), ..RankStructure::default() }
        };
        checked(3, make);
    }

    #[test]
    fn any_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..200), way in 0..3u8) {
        let mut bytes = bytes;
        if let Some(first) = bytes.first_mut() {
            *first = way;
        }
        read_all(&bytes);
    }
}

/// Reads whatever can be read; it must not panic, nor run for ever.
fn read_all(bytes: &[u8]) {
    if let Ok(merged) = JobStructure::decode(bytes) {
        for rank in merged.ranks().take(50) {
            merged.rank(rank);
        }
    }
}

/// Sends in an order of its own, and a loop in between whose trips grow with the rank.
fn disordered(rank: u32, order: u32, calls: u32) -> RankStructure {
    let mut recorder = Recorder::new(rank, 8);
    let mut state = u64::from(order) << 32 | 1;
    let mut send = |tag| {
        recorder.call("MPI_Send", 1, vec![heap(0), 1, double(), PROC_NULL as u64, tag, world()]);
    };
    for _ in 0..calls {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        send(state >> 33 & 63);
    }
    (0..2 + rank).for_each(|_| [64, 65].into_iter().for_each(&mut send));
    recorder.finish()
}

#[test]
fn ranks_that_differ_take_together_what_they_take_alone() {
    // Too many bytes to be mixed, and few enough: both methods are used.
    for calls in [500, 20_000] {
        let alone = checked(1, |rank| disordered(rank, 1, calls)).len();
        let all_differ = checked(8, |rank| disordered(rank, rank, calls)).len();
        assert!(all_differ <= 10 * alone, "{calls}: {all_differ}, {alone} alone");
        let by_twos = checked(8, |rank| disordered(rank, rank / 2, calls)).len();
        assert!(2 * by_twos <= all_differ + all_differ / 8, "{calls}: {by_twos}, {all_differ}");
    }
}

#[test]
fn changed_bytes_are_refused_or_read() {
    let packed = merged(16, |rank| stencil(&[4, 4], false, 5, rank)).encode_fast();
    let encoded = merged(12, |rank| if rank == 5 { random(5) } else { ring(12, rank) }).encode();
    let compressed = with_zstd(&packed);
    assert_eq!(JobStructure::decode(&compressed).unwrap().encode_fast(), packed);
    for original in [&encoded, &packed, &compressed] {
        for length in (0..original.len()).step_by(1 + original.len() / 60) {
            read_all(&original[..length]);
        }
        for at in (0..original.len()).step_by(1 + original.len() / 60) {
            for flip in [1, 0x10, 0xff] {
                let mut changed = original.clone();
                changed[at] ^= flip;
                read_all(&changed);
            }
        }
    }
    assert!(JobStructure::decode(&[]).is_err());
}

/// The same structure, compressed as large files are.
fn with_zstd(packed: &[u8]) -> Vec<u8> {
    let (way, plain) = packed.split_first().unwrap();
    assert_eq!(*way, 0);
    let mut compressed = vec![1];
    ampl_trace::varint::put(&mut compressed, plain.len() as u64);
    compressed.extend(zstd::bulk::compress(plain, 1).unwrap());
    compressed
}
