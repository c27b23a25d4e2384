use ampl_core::mpi::ObjectKind;
use ampl_testkit::runs::{predefined, world};
use ampl_testkit::timed::{Timed, trace};
use ampl_trace::args::status_word;
use ampl_trace::request::unseen;

use super::*;

const MS: u64 = 1_000_000;
const RANKS: u32 = 4;
const STEPS: u64 = 30;

fn double() -> u64 {
    predefined(ObjectKind::Type, "MPI_DOUBLE")
}

/// Hosts `even` and `odd`, or two ranks on each.
fn ranks(host: fn(u32) -> &'static str) -> Vec<Timed> {
    (0..RANKS).map(|rank| Timed::new(rank, RANKS, host(rank))).collect()
}

fn halves(rank: u32) -> &'static str {
    if rank < 2 { "one" } else { "two" }
}

/// A little more or less by rank and step, as nothing takes equally long twice.
fn noise(rank: u32, step: u64) -> u64 {
    (u64::from(rank) * 7919 + step * 104_729) % 97 * 1000
}

/// All meet in a collective that takes 10 us.
fn meet(all: &mut [Timed], function: &str, line: u64, words: &[u64]) {
    let end = all.iter().map(Timed::now).max().unwrap_or(0) + 10_000;
    all.iter_mut().for_each(|own| own.until(function, line, words, end));
}

fn allreduce(all: &mut [Timed], line: u64) {
    let sum = predefined(ObjectKind::Op, "MPI_SUM");
    meet(all, "MPI_Allreduce", line, &[0, 64, 1, double(), sum, world()]);
}

/// Rank 2 sends to rank 0, which waits for it.
fn message(all: &mut [Timed]) {
    let sent = all[2].now() + 1000;
    all[2].until("MPI_Send", 20, &[0, 1, double(), 0, 5, world()], sent);
    let arrival = sent + 5_000;
    let told = status_word(2, 5);
    all[0].until("MPI_Recv", 21, &[0, 1, double(), 2, 5, world(), told], arrival);
}

/// Rank 2 broadcasts; it does not wait.
fn broadcast(all: &mut [Timed]) {
    let sent = all[2].now() + 1000;
    all[2].until("MPI_Bcast", 30, &[0, 1, double(), 2, world()], sent);
    let arrival = sent + 5_000;
    for rank in [0, 1, 3] {
        all[rank].until("MPI_Bcast", 30, &[0, 1, double(), 2, world()], arrival);
    }
}

fn compute(all: &mut [Timed], step: u64, slow: &[u32]) {
    for (rank, own) in (0..).zip(all) {
        own.compute(2 * MS + noise(rank, step) + if slow.contains(&rank) { 5 * MS } else { 0 });
    }
}

fn finish(mut all: Vec<Timed>, keeps: impl Fn(u32) -> bool) -> Waits {
    meet(&mut all, "MPI_Finalize", 99, &[]);
    let part = Selection::new(None, None, None).unwrap();
    waits(&trace(all, keeps), &part, &mut Symbols::default())
}

fn run(slow: &[u32], keeps: impl Fn(u32) -> bool, step: fn(&mut [Timed])) -> Waits {
    let mut all = ranks(halves);
    for number in 0..STEPS {
        compute(&mut all, number, slow);
        step(&mut all);
    }
    finish(all, keeps)
}

/// Kind, function, causing ranks and host, and waiting ranks of the first row.
fn first(waits: &Waits) -> (Kind, &'static str, String, Option<String>, String) {
    let text = |party: &Party| party.ranks.as_ref().map_or(String::new(), ToString::to_string);
    let row = waits.rows.first().unwrap_or_else(|| panic!("{waits:#?}"));
    (row.kind, row.function, text(&row.causing), row.causing.host.clone(), text(&row.waiting))
}

fn two() -> Option<String> {
    Some("two".into())
}

#[test]
fn the_last_to_arrive_is_named_with_times_and_without() {
    for (keeps, basis) in [(true, Basis::Trace), (false, Basis::Census)] {
        let found = run(&[3], |_| keeps, |all| allreduce(all, 40));
        let expected = (Kind::LastToArrive, "MPI_Allreduce", "3".into(), two(), "0-2".into());
        assert_eq!(first(&found), expected, "{found:#?}");
        let row = &found.rows[0];
        assert_eq!((row.basis, row.bound), (basis, Bound::AtLeast));
        // Three ranks wait five milliseconds in each step, but for noise.
        let planted = (3 * 5 * MS * STEPS) as f64;
        assert!((row.ns as f64 / planted - 1.0).abs() < 0.1, "{row:?}");
        assert!(row.ns <= found.mpi_ns && found.waiting_ns <= found.mpi_ns);
    }
}

/// A rank that polls for a message waits for its sender, and those that it meets then wait for the sender, too.
#[test]
fn a_late_sender_is_named_where_the_receiver_polls() {
    let found = run(
        &[2],
        |_| true,
        |all| {
            let sent = all[2].now();
            all[0].polls_until("MPI_Iprobe", 18, &[], sent + 1000);
            message(all);
            allreduce(all, 40);
        },
    );
    assert_eq!(first(&found).2, "2", "{found:#?}");
    let late = found.rows.iter().find(|row| row.kind == Kind::LateSender);
    let late = late.unwrap_or_else(|| panic!("{found:#?}"));
    assert_eq!(late.causing.ranks.as_ref().map(ToString::to_string).as_deref(), Some("2"), "{found:#?}");
    let planted = (5 * MS * STEPS) as f64;
    assert!((late.ns as f64 / planted - 1.0).abs() < 0.1, "{late:?}");
}

/// Ranks make the same call at two places, as in the branches for the root and the others.
#[test]
fn a_rank_that_is_late_at_a_place_of_its_own_is_named() {
    let mut all = ranks(halves);
    for number in 0..STEPS {
        compute(&mut all, number, &[0]);
        let end = all.iter().map(Timed::now).max().unwrap_or(0) + 10_000;
        for (rank, own) in (0..).zip(&mut all) {
            own.until("MPI_Barrier", if rank == 0 { 41 } else { 42 }, &[world()], end);
        }
    }
    let found = finish(all, |_| true);
    let [row] = &found.rows[..] else { panic!("{found:#?}") };
    assert_eq!(
        (row.causing.ranks.clone(), row.instances),
        (Some([0].into_iter().collect()), STEPS),
        "{row:#?}"
    );
}

fn request() -> u64 {
    unseen(0, 7)
}

fn null() -> u64 {
    predefined(ObjectKind::Request, "MPI_REQUEST_NULL")
}

/// A collective that does not block: ranks begin it, compute, and wait for its end in another call, or poll for it.
fn begin_and_end(all: &mut [Timed], polls: bool) {
    let sum = predefined(ObjectKind::Op, "MPI_SUM");
    let begun: Vec<u64> = all.iter().map(|own| own.now() + 1000).collect();
    for (own, &begun) in all.iter_mut().zip(&begun) {
        own.until("MPI_Iallreduce", 50, &[0, 64, 1, double(), sum, world(), request()], begun);
        own.compute(MS);
    }
    let end = begun.iter().max().map_or(0, |latest| latest + 10_000);
    for own in all {
        let now = own.now();
        if polls && now < end {
            own.polls_until("MPI_Test", 51, &[request()], end);
        }
        let end = end.max(own.now()) + 1000;
        match polls {
            true => own.until("MPI_Test", 51, &[request(), null(), 1, status_word(0, 0)], end),
            false => own.until("MPI_Wait", 51, &[request(), null(), status_word(0, 0)], end),
        }
    }
}

#[test]
fn who_begins_a_collective_late_that_does_not_block_is_named() {
    for (polls, function) in [(false, "MPI_Wait"), (true, "MPI_Test")] {
        let found = match polls {
            true => run(&[3], |_| true, |all| begin_and_end(all, true)),
            false => run(&[3], |_| true, |all| begin_and_end(all, false)),
        };
        let expected = (Kind::LastToArrive, function, "3".into(), two(), "0-2".into());
        assert_eq!(first(&found), expected, "{found:#?}");
        assert_eq!(found.rows[0].instances, STEPS, "{found:#?}");
        // Three ranks come to the end five milliseconds before the other begins, in each step.
        let planted = (3 * 5 * MS * STEPS) as f64;
        assert!((found.rows[0].ns as f64 / planted - 1.0).abs() < 0.1, "{found:#?}");
        assert!(found.unexamined.is_empty(), "{found:#?}");
        let balanced = run(&[], |_| true, |all| begin_and_end(all, false));
        assert!(balanced.rows.is_empty(), "{balanced:#?}");
    }
}

/// Where the times of those who begin it are not kept, the end of a collective that does not block tells nothing.
#[test]
fn ends_of_collectives_whose_beginning_is_not_known_are_not_examined() {
    let run = |begins: &str, keeps: fn(u32) -> bool| {
        let mut all = ranks(halves);
        for own in &mut all {
            let now = own.now();
            own.until(begins, 50, &[world(), request()], now + 1000);
            own.until("MPI_Wait", 51, &[request(), null(), status_word(0, 0)], now + 5 * MS);
        }
        finish(all, keeps).unexamined.into_iter().map(|(function, _)| function).collect::<Vec<_>>()
    };
    assert_eq!(run("MPI_Ibarrier", |rank| rank > 0), ["MPI_Wait"]);
    assert!(run("MPI_Ibarrier", |_| true).is_empty() && run("MPI_Comm_test_inter", |_| true).is_empty());
}

/// Once in fifty steps a rank comes very late; in the others any rank is the last.
#[test]
fn a_rank_that_is_late_once_and_costs_much_is_named() {
    for late in [true, false] {
        let mut all = ranks(halves);
        for number in 0..STEPS {
            compute(&mut all, number, &[]);
            if late && number == STEPS / 2 {
                all[1].compute(STEPS * 2 * MS);
            }
            allreduce(&mut all, 40);
        }
        let found = finish(all, |_| true);
        let named: Vec<_> = found.rows.iter().filter_map(|row| row.causing.ranks.clone()).collect();
        let expected: Vec<RankSet> = if late { vec![[1].into_iter().collect()] } else { Vec::new() };
        assert_eq!(named, expected, "{found:#?}");
    }
}

/// All leave a collective together: who kept them waiting there has made none of them later than the others.
#[test]
fn ranks_that_are_late_in_turn_are_named_where_they_are_late() {
    for (kind, function, second) in [
        (Kind::LastToArrive, "MPI_Allreduce", (|all| allreduce(all, 40)) as fn(&mut [Timed])),
        (Kind::LateSender, "MPI_Recv", message),
        (Kind::LateRoot, "MPI_Bcast", broadcast),
    ] {
        let mut all = ranks(halves);
        for number in 0..STEPS {
            compute(&mut all, number, &[1]);
            meet(&mut all, "MPI_Barrier", 41, &[world()]);
            compute(&mut all, number + 1, &[2]);
            second(&mut all);
        }
        let found = finish(all, |_| true);
        let barrier = (Kind::LastToArrive, "MPI_Barrier", 1);
        let planted = [barrier, (kind, function, 2)];
        // Otherwise rank 3, which has not met rank 2, waits for both in the next barrier.
        let first = if kind == Kind::LastToArrive { 0 } else { 1 };
        for (kind, function, late) in planted.into_iter().skip(first) {
            let rows: Vec<&Row> =
                found.rows.iter().filter(|row| (row.kind, row.function) == (kind, function)).collect();
            let [row] = rows[..] else { panic!("{found:#?}") };
            assert_eq!(row.causing.ranks, Some([late].into_iter().collect()), "{found:#?}");
        }
    }
}

#[test]
fn a_slow_host_is_named_as_a_host() {
    for keeps in [true, false] {
        let found = run(&[2, 3], |_| keeps, |all| allreduce(all, 40));
        let expected = (Kind::LastToArrive, "MPI_Allreduce", "2-3".into(), two(), "0-1".into());
        assert_eq!(first(&found), expected, "{found:#?}");
    }
}

#[test]
fn a_slow_host_is_one_although_the_same_rank_of_it_is_last() {
    let mut all = ranks(halves);
    for number in 0..STEPS {
        compute(&mut all, number, &[2, 3]);
        all[3].compute(MS / 5);
        allreduce(&mut all, 40);
    }
    let found = finish(all, |_| true);
    let (_, _, causing, host, _) = first(&found);
    assert_eq!((causing, host), ("2-3".into(), two()), "{found:#?}");
}

#[test]
fn a_late_sender_is_the_cause_of_what_follows_too() {
    for keeps in [true, false] {
        let found = run(
            &[2],
            |_| keeps,
            |all| {
                message(all);
                meet(all, "MPI_Barrier", 41, &[world()]);
            },
        );
        // Two ranks wait in the barrier, one in the receive: the sender is the cause of both.
        let causes: Vec<(Kind, String)> = found
            .rows
            .iter()
            .filter_map(|row| Some((row.kind, row.causing.ranks.as_ref()?.to_string())))
            .collect();
        let both = [(Kind::LastToArrive, "2".to_owned()), (Kind::LateSender, "2".to_owned())];
        assert_eq!(causes, both, "{found:#?}");
        let sender = &found.rows[1];
        assert_eq!(sender.function, "MPI_Recv");
        assert!((sender.ns as f64 / (5 * MS * STEPS) as f64 - 1.0).abs() < 0.1, "{sender:?}");
        assert!(!keeps || sender.bound == Bound::Exact);
    }
}

#[test]
fn a_late_root_is_named() {
    for keeps in [true, false] {
        let found = run(&[2], |_| keeps, broadcast);
        let expected = (Kind::LateRoot, "MPI_Bcast", "2".into(), two(), "0-1,3".into());
        assert_eq!(first(&found), expected, "{found:#?}");
    }
}

/// Rank 0 gathers, which the others do not wait for; then all meet.
fn gather(all: &mut [Timed]) {
    let words = |own| [0, 1, double(), own, 1, double(), 0, world()];
    let sent = all.iter().map(|own| own.now() + 1000).max().unwrap_or(0);
    for leaf in all.iter_mut().skip(1) {
        let now = leaf.now() + 1000;
        leaf.until("MPI_Gather", 50, &words(0), now);
    }
    all[0].until("MPI_Gather", 50, &words(1), sent + 5_000);
    meet(all, "MPI_Barrier", 51, &[world()]);
}

#[test]
fn a_late_leaf_is_the_cause_of_what_follows_the_root_too() {
    let found = run(&[2], |_| true, gather);
    // The root arrives last where all meet, because it has waited for the leaf.
    let causes: Vec<(Kind, &str, String)> = found
        .rows
        .iter()
        .filter_map(|row| Some((row.kind, row.function, row.causing.ranks.as_ref()?.to_string())))
        .collect();
    let both = [
        (Kind::LastToArrive, "MPI_Barrier", "2".to_owned()),
        (Kind::EarlyRoot, "MPI_Gather", "2".to_owned()),
    ];
    assert_eq!(causes, both, "{found:#?}");
    // A late root of a gather makes nobody wait there.
    let found = run(&[0], |_| true, gather);
    assert!(found.rows.iter().all(|row| row.kind == Kind::LastToArrive), "{found:#?}");
    assert_eq!(found.rows[0].causing.ranks, RankSet::parse("0").ok());
}

/// Each half meets for itself, on a communicator of its own or in the windows of it.
fn halves_meet(all: &mut [Timed]) {
    let sum = predefined(ObjectKind::Op, "MPI_SUM");
    for half in all.chunks_mut(2) {
        meet(half, "MPI_Allreduce", 60, &[0, 64, 1, double(), sum, HALF]);
    }
}

const HALF: u64 = 4;

#[test]
fn who_is_late_on_a_communicator_of_some_ranks_is_named() {
    for (keeps, basis) in [(true, Basis::Trace), (false, Basis::Census)] {
        // Rank 0 waits for nobody, though the rank beside it waits less than those of the other half.
        for (slow, waiting) in [(3, "2"), (0, "1")] {
            let mut all = ranks(halves);
            for (rank, own) in (0..).zip(&mut all) {
                let (color, now) = (u64::from(rank >= RANKS / 2), own.now() + 1000);
                own.caller.comm(HALF, 2, rank % 2);
                own.until("MPI_Comm_split", 59, &[world(), color, rank.into(), HALF], now);
            }
            for number in 0..2 * STEPS {
                compute(&mut all, number, &[slow]);
                halves_meet(&mut all);
            }
            let found = finish(all, |_| keeps);
            let (kind, function, causing, _, waits) = first(&found);
            let expected = (Kind::LastToArrive, "MPI_Allreduce", slow.to_string(), waiting.to_owned());
            assert_eq!((kind, function, causing, waits), expected, "{found:#?}");
            let row = &found.rows[0];
            assert_eq!(row.basis, basis);
            assert!((row.ns as f64 / (5 * MS * 2 * STEPS) as f64 - 1.0).abs() < 0.1, "{row:?}");
        }
    }
}

#[test]
fn where_all_are_alike_none_is_named() {
    let steps: [fn(&mut [Timed]); 3] = [|all| allreduce(all, 40), message, broadcast];
    for step in steps {
        for keeps in [true, false] {
            let found = run(&[], |_| keeps, step);
            let named =
                found.rows.iter().find(|row| row.causing.ranks.is_some() || row.causing.host.is_some());
            assert_eq!(named, None);
        }
    }
}

#[test]
fn a_slow_rank_whose_times_are_not_kept_is_not_mistaken() {
    // Of the kept ranks another one arrives last.
    let found = run(&[3], |rank| rank < 2, |all| allreduce(all, 40));
    let (_, _, causing, _, _) = first(&found);
    assert_eq!(causing, "3", "{found:#?}");
    assert_eq!(found.rows[0].basis, Basis::Census);
}

#[test]
fn a_part_of_the_run_has_its_own_waits() {
    let mut all = ranks(halves);
    for number in 0..STEPS {
        compute(&mut all, number, if number < STEPS / 2 { &[0] } else { &[] });
        allreduce(&mut all, 40);
    }
    let half = all[0].now() as i64;
    meet(&mut all, "MPI_Finalize", 99, &[]);
    let run = trace(all, |_| true);
    let of = |from: Option<i64>, until: Option<i64>| {
        waits(&run, &Selection::new(from, until, None).unwrap(), &mut Symbols::default()).rows
    };
    let middle = half * 7 / 9;
    assert_eq!(of(None, Some(middle))[0].causing.ranks, RankSet::parse("0").ok());
    assert!(of(Some(middle), None).iter().all(|row| row.causing.ranks.is_none()));
}
