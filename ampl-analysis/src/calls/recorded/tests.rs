//! Ranks read together, held against each rank by itself.

use ampl_core::mpi::predefined_index;
use ampl_core::value::ObjectKind;
use ampl_trace::args::{IN_PLACE, predefined_word};
use ampl_trace::grammar::Builder;
use ampl_trace::model::Site;
use ampl_trace::structure::{Comm, JobStructure, RankStructure, ThreadStructure};
use proptest::prelude::*;

use super::*;

/// A communicator of every other rank.
const HALF: u64 = 5;

/// A call that all ranks make.
#[derive(Clone, Copy, Debug)]
struct Made {
    function: &'static str,
    /// Distance of the peer, or the root.
    rank: u32,
    /// True where it is on a communicator of half the ranks.
    half: bool,
    site: u32,
    /// True where ranks make it once more each.
    grows: bool,
    count: u64,
    in_place: bool,
}

fn made() -> impl Strategy<Value = Made> {
    const FUNCTIONS: [&str; 7] = [
        "MPI_Send",
        "MPI_Ssend",
        "MPI_Bcast",
        "MPI_Reduce",
        "MPI_Allreduce",
        "MPI_Gatherv",
        "MPI_Allgatherv",
    ];
    let flags = any::<[bool; 3]>();
    (prop::sample::select(&FUNCTIONS[..]), 0..9u32, 0..3u32, 0..5u64, flags).prop_map(
        |(function, rank, site, count, [half, grows, in_place])| Made {
            function,
            rank,
            half,
            site,
            grows,
            count,
            in_place,
        },
    )
}

fn of_rank(number: u32, ranks: u32, calls: &[Made]) -> RankStructure {
    let named = |kind, name| predefined_word(predefined_index(kind, name).unwrap());
    let (world, double) = (named(ObjectKind::Comm, "MPI_COMM_WORLD"), named(ObjectKind::Type, "MPI_DOUBLE"));
    let half = (ranks - number % 2).div_ceil(2);
    let (mut builder, mut signatures) = (Builder::new(), Vec::new());
    for (terminal, call) in (0..).zip(calls) {
        let (comm, size, own) = if call.half { (HALF, half, number / 2) } else { (world, ranks, number) };
        let (root, peer) = (u64::from(call.rank % size), u64::from((own + call.rank) % size));
        let buffer = if call.in_place { IN_PLACE } else { 1 << 60 };
        let counts =
            [&[u64::from(size)][..], &(0..u64::from(size)).map(|at| at * call.count).collect::<Vec<_>>()]
                .concat();
        let words = match call.function {
            "MPI_Send" | "MPI_Ssend" => vec![1 << 60, call.count, double, peer, 7, comm],
            "MPI_Bcast" => vec![1 << 60, call.count, double, root, comm],
            "MPI_Reduce" => {
                vec![1 << 60, 1 << 60, call.count, double, named(ObjectKind::Op, "MPI_SUM"), root, comm]
            }
            "MPI_Allreduce" => {
                vec![1 << 60, 1 << 60, call.count, double, named(ObjectKind::Op, "MPI_SUM"), comm]
            }
            "MPI_Gatherv" => {
                [&[buffer, call.count, double, 1 << 60][..], &counts, &counts, &[double, root, comm]].concat()
            }
            _ => [&[buffer, call.count, double, 1 << 60][..], &counts, &counts, &[double, comm]].concat(),
        };
        let function = Function::by_name(call.function).unwrap().0;
        signatures.push(Signature { function, flags: 0, site: call.site, path: 0, words });
        builder.push(terminal, 3 + if call.grows { u64::from(number) } else { 0 });
    }
    let comm = |word, size: u32, rank: u32| Comm { word, size: size.into(), rank: rank.into() };
    let sites = (0..2).map(|offset| Site { offset: 0x1000 + offset, ..Site::default() }).collect();
    RankStructure {
        rank: number,
        threads: vec![ThreadStructure { thread: 0, signatures, grammar: builder.into_grammar() }],
        modules: vec!["/usr/bin/sum".into()],
        sites,
        comms: vec![comm(world, ranks, number), comm(HALF, half, number / 2)],
    }
}

fn trace(ranks: u32, structures: impl Iterator<Item = RankStructure>) -> Trace {
    let mut trace = Trace::default();
    trace.run.ranks = ranks;
    trace.structure = JobStructure::new(ranks);
    structures.for_each(|structure| trace.structure.join(JobStructure::of(structure)));
    trace
}

proptest! {
    #[test]
    fn ranks_together_have_the_sums_of_each(ranks in 1..9u32, calls in prop::collection::vec(made(), 1..7)) {
        let together = of(&trace(ranks, (0..ranks).map(|rank| of_rank(rank, ranks, &calls))), |_| true).unwrap();
        let mut each: HashMap<Key, Recorded> = HashMap::new();
        for rank in 0..ranks {
            let alone = trace(ranks, std::iter::once(of_rank(rank, ranks, &calls)));
            for (key, recorded) in of(&alone, |_| true).unwrap() {
                each.entry(key).or_default().add(&recorded);
            }
        }
        prop_assert_eq!(together, each);
    }
}

#[test]
fn bytes_of_a_rank_are_its_own() {
    let call = |function, site| Made {
        function,
        rank: 1,
        half: false,
        site,
        grows: false,
        count: 3,
        in_place: false,
    };
    let calls = [call("MPI_Send", 1), call("MPI_Bcast", 1), call("MPI_Gatherv", 2)];
    let found = of(&trace(4, (0..4).map(|rank| of_rank(rank, 4, &calls))), |_| true).unwrap();
    let at = |function, offset: u64| {
        let function = Function::by_name(function).unwrap().0;
        &found[&(function, vec![("/usr/bin/sum".to_owned(), 0x1000 + offset)])]
    };
    let send = at("MPI_Send", 0);
    assert_eq!((send.calls, send.bytes, send.peers), (12, Some((12 * 24, 0)), Some((1, 1))));
    assert_eq!(at("MPI_Bcast", 0).bytes, Some((3 * 24, 9 * 24)), "one of four is the root");
    assert_eq!(at("MPI_Gatherv", 1).bytes, Some((12 * 24, 3 * (3 + 6 + 9) * 8)));
}

#[test]
fn rules_are_read_once_however_many_ranks_there_are() {
    let call =
        |function| Made { function, rank: 1, half: true, site: 1, grows: false, count: 3, in_place: false };
    let calls = [call("MPI_Send"), call("MPI_Bcast"), call("MPI_Allreduce")];
    let read = |ranks: u32| {
        let trace = trace(ranks, (0..ranks).map(|rank| of_rank(rank, ranks, &calls)));
        let before = trace.structure.rules_read();
        of(&trace, |_| true).unwrap();
        trace.structure.rules_read() - before
    };
    let few = read(4);
    assert!(few > 0);
    assert_eq!(read(400), few);
}
