//! Loops that ranks have in common.

use ampl_core::mpi::{Function, ids};
use ampl_trace::record::{CALL_MISS, GAP};
use ampl_trace::structure::{JobStructure, RankStructure, Signature, ThreadStructure};

use super::super::{Absence, Count, Timesteps, timesteps};
use super::grammar;
use ampl_trace::site::Site;

/// A call at a place of its own: its function, and the rank it names.
type Call = (Function, Option<u64>);

const INIT: Call = (ids::MPI_INIT, None);
const SUM: Call = (ids::MPI_ALLREDUCE, None);
const END: Call = (ids::MPI_FINALIZE, None);

fn rank(number: u32, calls: &[Call], order: &[u32], flags: u8) -> RankStructure {
    let signature = |(index, &(function, partner)): (usize, &Call)| {
        let words = match partner {
            // Buffer, count, type, destination, tag, communicator.
            Some(partner) => vec![0, 8, 0, partner << 1, 0, 0],
            None => Vec::new(),
        };
        let flags = if function.0 == GAP { 0 } else { flags * u8::from(index == 1) };
        Signature { function: function.0, flags, site: index as u32 + 1, path: 0, words }
    };
    let thread = ThreadStructure {
        thread: 0,
        signatures: calls.iter().enumerate().map(signature).collect(),
        grammar: grammar(order),
    };
    let sites = (0..calls.len() as u64).map(|offset| Site { module: 0, offset: 16 * offset, caller: 0 });
    RankStructure {
        rank: number,
        threads: vec![thread],
        modules: vec!["/bin/program".into()],
        sites: sites.collect(),
        comms: Vec::new(),
    }
}

/// A rank that makes so many steps.
fn stepping(number: u32, steps: usize) -> RankStructure {
    let order = [vec![0], [1, 2].repeat(steps), vec![3]].concat();
    rank(number, &[INIT, (ids::MPI_BARRIER, None), SUM, END], &order, 0)
}

fn job(ranks: impl IntoIterator<Item = RankStructure>) -> JobStructure {
    let mut ranks = ranks.into_iter();
    let mut job = JobStructure::of(ranks.next().unwrap());
    ranks.for_each(|rank| job.join(JobStructure::of(rank)));
    job
}

fn of(job: &JobStructure) -> Timesteps<'_> {
    timesteps(job, &mut |_, _| None)
}

#[test]
fn ranks_agree_or_are_named() {
    let all = job((0..4).map(|rank| stepping(rank, 20)));
    let found = of(&all);
    let own = found.outcome.unwrap();
    assert_eq!((own.steps, own.confidence, own.calls_per_step), (20, 1.0, 2.0));
    assert_eq!(own.functions, [(ids::MPI_ALLREDUCE.0, 1.0), (ids::MPI_BARRIER.0, 1.0)]);
    assert_eq!((own.start_up, own.warm_up, own.wind_down, own.missing), (1.0, 0, 1.0, 0.0));
    assert_eq!((own.place.function, &own.place.path[..]), (ids::MPI_BARRIER.0, &[("/bin/program", 16)][..]));
    assert!(own.place.is_marker && !own.by_arguments);

    let one_less = job((0..4).map(|rank| stepping(rank, if rank == 2 { 19 } else { 20 })));
    let found = of(&one_less);
    assert_eq!(found.outcome.map(|own| (own.steps, own.confidence)), Ok((20, 0.75)));
    let count = |steps, ranks| Count { steps: Some(steps), ranks, has_gaps: false };
    let counts = [count(20, vec![0, 1, 3]), count(19, vec![2])];
    assert_eq!(found.counts, counts);

    let halves = job((0..4).map(|rank| stepping(rank, if rank < 2 { 19 } else { 20 })));
    assert_eq!(of(&halves).outcome.unwrap_err(), Absence::Disagreement);
}

#[test]
fn each_rank_has_calls_that_begin_its_steps() {
    // The first rank sends before it receives; the other one receives first, behind polls that find nothing. Sends begin
    // the steps of both.
    let calls = [INIT, (ids::MPI_TEST, None), (ids::MPI_SEND, Some(1)), (ids::MPI_RECV, Some(1)), END];
    let order = |number: u32| match number {
        0 => [vec![0], [2, 3].repeat(5), vec![4]].concat(),
        _ => [vec![0, 1, 1], [3, 2].repeat(5), vec![4]].concat(),
    };
    let all = job((0..2).map(|number| rank(number, &calls, &order(number), CALL_MISS)));
    let found = of(&all);
    let begins = |rank: u32| found.begins(rank)?.calls(&all.rank(rank)?);
    assert_eq!(begins(0), Some(vec![1, 3, 5, 7, 9]));
    assert_eq!(begins(1), Some(vec![4, 6, 8, 10, 12]));
    assert_eq!(begins(2), None);
}

#[test]
fn ranks_with_gaps_do_not_contradict_others() {
    let cut_off = |number: u32, steps: usize| {
        let calls = [INIT, (ids::MPI_BARRIER, None), SUM, (Function(GAP), None), END];
        rank(number, &calls, &[vec![0], [1, 2].repeat(steps), vec![3; 9], vec![4]].concat(), 0)
    };
    let all =
        job((0..4).map(|rank| if rank == 2 { stepping(rank, 20) } else { cut_off(rank, 9 + rank as usize) }));
    let found = of(&all);
    assert_eq!(found.outcome.map(|own| (own.steps, own.confidence)), Ok((20, 0.25)));
    let counted: Vec<_> = found.counts.iter().map(|of| (of.steps, of.has_gaps)).collect();
    assert_eq!(counted, [(Some(20), false), (Some(12), true), (Some(10), true), (Some(9), true)]);
    // Without any other their own numbers count.
    let all = job((0..4).map(|rank| cut_off(rank, if rank == 0 { 9 } else { 12 })));
    assert_eq!(of(&all).outcome.map(|own| own.steps), Ok(12));
}

#[test]
fn there_is_a_reason_for_no_loop() {
    assert_eq!(of(&JobStructure::new(2)).outcome.unwrap_err(), Absence::NoCalls);
    let without = job((0..2).map(|number| rank(number, &[INIT, SUM, END], &[0, 1, 2], 0)));
    assert_eq!(of(&without).outcome.unwrap_err(), Absence::NoLoop);
    // Queries communicate nothing.
    let queries = [INIT, (ids::MPI_COMM_RANK, None), (ids::MPI_COMM_SIZE, None), END];
    let order = [vec![0], [1, 2].repeat(20), vec![3]].concat();
    let asking = job([rank(0, &queries, &order, 0)]);
    assert_eq!(of(&asking).outcome.unwrap_err(), Absence::NoLoop);
    // Of one rank that does the same as a step loop would.
    let most_without = job((0..3).map(|number| match number {
        0 => stepping(0, 20),
        _ => rank(number, &[INIT, SUM, END], &[0, 1, 2], 0),
    }));
    assert_eq!(of(&most_without).outcome.unwrap_err(), Absence::NoLoop);
}

#[test]
fn a_loop_over_ranks_is_none_over_time() {
    let send = |partner: u64| (ids::MPI_SEND, Some(partner));
    // One place: the site is the same.
    let distribute = |number: u32, partners: &[u64]| {
        let calls: Vec<Call> = partners.iter().map(|&partner| send(partner)).collect();
        let order: Vec<u32> = (0..calls.len() as u32).collect();
        let mut rank = rank(number, &calls, &order, 0);
        rank.threads[0].signatures.iter_mut().for_each(|signature| signature.site = 1);
        rank
    };
    let once = job([distribute(0, &[1, 2, 3, 4, 5, 6, 7])]);
    assert_eq!(of(&once).outcome.unwrap_err(), Absence::NoLoop);
    let again = job([distribute(0, &[1, 2, 1, 2, 1, 2, 1, 2])]);
    assert!(of(&again).outcome.is_ok());
}

#[test]
fn polls_do_not_count_and_gaps_are_told() {
    let calls = [INIT, (ids::MPI_TEST, None), SUM, (Function(GAP), None), END];
    let polls: Vec<u32> = (0..20).flat_map(|step| [vec![1; step * 7 % 5], vec![2]].concat()).collect();
    let order = [vec![0], polls.clone(), vec![3; 6], polls, vec![4]].concat();
    let paused = job([rank(0, &calls, &order, CALL_MISS)]);
    let own = of(&paused).outcome.unwrap();
    assert_eq!((own.steps, own.calls_per_step, own.missing), (40, 1.0, 6.0));
}

#[test]
fn a_step_to_warm_up_is_told_by_where_it_comes_from() {
    let of = |warm_up: &[u32]| {
        let ranks = (0..4).map(|number| {
            let mut rank = rank(number, &[INIT, (ids::MPI_BARRIER, None), SUM, END], &[], 0);
            let caller = |offset| Site { module: 0, offset, caller: 0 };
            rank.sites.extend([caller(1000), caller(2000)]);
            let thread = &mut rank.threads[0];
            // Barriers and sums come to their places from elsewhere in the first step.
            for (caller, terminal) in [(5, 1), (5, 2), (6, 1), (6, 2)] {
                let mut signature = thread.signatures[terminal].clone();
                let site = rank.sites[terminal];
                rank.sites.push(Site { caller, ..site });
                signature.path = rank.sites.len() as u32;
                thread.signatures.push(signature);
            }
            thread.grammar = grammar(&[&[0], warm_up, &[6, 7].repeat(10), &[3]].concat());
            rank
        });
        let own = job(ranks);
        let own = timesteps(&own, &mut |_, _| None).outcome.unwrap();
        (own.steps, own.warm_up, own.start_up, own.calls_per_step, own.place.is_marker)
    };
    assert_eq!(of(&[4, 5]), (10, 1, 3.0, 2.0, true));
    assert_eq!(of(&[6, 7]), (11, 0, 1.0, 2.0, true));
}
