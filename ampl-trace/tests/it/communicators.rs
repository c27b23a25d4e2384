//! Communicators of jobs that a naive model of MPI plays: the reader finds the same ones, with the same ranks, from
//! the ranks' traces.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ampl_core::mpi::Function;
use ampl_core::value::{UNDEFINED, Value};
use ampl_trace::RankTrace;
use ampl_trace::communicators::{Communicators, Name};
use ampl_trace::decode::Calls;
use ampl_trace::grammar::Builder;
use ampl_trace::model::{Process, Trace};
use ampl_trace::structure::{JobStructure, RankStructure, Signature, ThreadStructure};
use proptest::prelude::*;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

mod naive;
use naive::{Model, Truth, UNTOLD};

/// Communicator as a reader finds it: the function that made it, and its two groups.
type Found = (&'static str, Vec<u32>, Option<Vec<u32>>);

fn found(comms: &Communicators) -> BTreeMap<Name, Found> {
    let ranks = |members: &ampl_trace::communicators::Members| members.iter().collect::<Vec<u32>>();
    let each = comms.iter().filter(|comm| comm.is_agreed()).map(|comm| {
        let first = comm.ranks.as_ref().map(ranks).unwrap_or_default();
        let sizes = first.len() + comm.remote.as_ref().map_or(0, |remote| remote.len() as usize);
        assert!(first.is_empty() || comm.size == Some(sizes as u32));
        (comm.name, (Function(comm.function).name(), first, comm.remote.as_ref().map(ranks)))
    });
    each.collect()
}

/// Names that decoding gives to the communicators that calls make, and to those of barriers.
fn decoded(trace: &Trace, comms: &Communicators, rank: u32) -> Vec<(&'static str, String)> {
    let structure = trace.structure.rank(rank).unwrap();
    let nothing = RankTrace::default();
    let mut out = Vec::new();
    for call in Calls::naming(&structure, &nothing, comms) {
        let call = call.unwrap();
        let given = call.out.iter().find(|(name, _)| name.contains("comm") && *name != "comm");
        let barrier = call.args.iter().find(|_| call.function.name() == "MPI_Barrier");
        if let Some((_, value)) = given.or(barrier) {
            let null = *value == Value::Name("MPI_COMM_NULL".into());
            if !null && call.function.name() != "MPI_Comm_free" {
                out.push((call.function.name(), value.to_string()));
            }
        }
    }
    out
}

fn played(seed: u64, ranks: u32, steps: usize) -> Model {
    let mut model = Model::new(seed, ranks);
    (0..steps).for_each(|_| model.step());
    model
}

/// Communicators by number from 1: in the order of the lowest ranks, then of the calls of these.
fn numbered(truth: &Truth) -> BTreeMap<Name, Found> {
    let mut order: Vec<usize> = (0..truth.comms.len()).collect();
    order.sort_by_key(|&comm| {
        let lowest = truth.comms[comm].all().min().unwrap();
        (lowest, truth.made[lowest as usize].iter().position(|&made| made == comm))
    });
    let each = (1..).zip(order).map(|(number, comm)| {
        let comm = &truth.comms[comm];
        let mut sides = vec![comm.first.clone()];
        sides.extend(comm.second.clone());
        sides.sort_by_key(|side| side.iter().min().copied());
        let remote = sides.get(1).cloned();
        (Name::Agreed(number), (comm.function, sides.swap_remove(0), remote))
    });
    each.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_same_communicators_are_found_as_a_naive_model_made(
        seed: u64,
        ranks in 1u32..10,
        steps in 0usize..40,
    ) {
        let model = played(seed, ranks, steps);
        let (trace, truth) = (model.trace(None), model.truth(None));
        let comms = Communicators::of(&trace);
        prop_assert!(comms.is_complete());
        prop_assert_eq!(comms.iter().filter(|comm| !comm.is_agreed()).collect::<Vec<_>>(), Vec::<&_>::new());
        let (found, expected) = (found(&comms), numbered(&truth));
        prop_assert_eq!(&found, &expected);
        // The number of each as the model has it, by its names on all ranks.
        let mut numbers: HashMap<usize, String> = HashMap::new();
        for rank in 0..ranks {
            let decoded = decoded(&trace, &comms, rank);
            let expected = &truth.named[rank as usize];
            prop_assert_eq!(decoded.len(), expected.len());
            for ((function, name), &comm) in decoded.iter().zip(expected) {
                let Some(comm) = comm else {
                    prop_assert_eq!(name, "world");
                    continue;
                };
                let known = numbers.entry(comm).or_insert_with(|| name.clone());
                prop_assert_eq!(&*known, name, "{} of rank {}", function, rank);
            }
        }
        let names: BTreeSet<&String> = numbers.values().collect();
        prop_assert_eq!(names.len(), numbers.len());
    }

    /// A call is missing on one rank, or was that rank's last: agreed names are true all the same.
    #[test]
    fn what_is_not_recorded_makes_nothing_wrong(
        seed: u64,
        ranks in 2u32..8,
        steps in 1usize..30,
        at: prop::sample::Index,
        counted: bool,
        finalized: bool,
    ) {
        let model = played(seed, ranks, steps);
        let dropped = model.droppable();
        prop_assume!(!dropped.is_empty());
        let mut dropped = *at.get(&dropped);
        // A rank that died has everything up to a call.
        dropped.all_behind = !finalized;
        let mut trace = model.trace(Some(dropped));
        let process = &mut trace.ranks[dropped.rank as usize].process;
        process.finalized = finalized;
        if counted {
            model.count(dropped, process);
        }
        let truth = model.truth(Some(dropped));
        nothing_is_wrong(&trace, &truth)?;
    }
}

/// Checks that agreed names are true: one name stands for one communicator, with those ranks.
fn nothing_is_wrong(trace: &Trace, truth: &Truth) -> Result<(), TestCaseError> {
    let comms = Communicators::of(trace);
    let found = found(&comms);
    let mut names: HashMap<String, usize> = HashMap::new();
    for rank in 0..trace.run.ranks {
        let decoded = decoded(trace, &comms, rank);
        let expected = &truth.named[rank as usize];
        prop_assert_eq!(decoded.len(), expected.len());
        for ((function, name), &comm) in decoded.iter().zip(expected) {
            let agreed = name.strip_prefix("comm:").and_then(|number| number.parse().ok());
            let Some(number) = agreed else { continue };
            let Some(comm) = comm else { panic!("{name} is the world") };
            prop_assert_eq!(*names.entry(name.clone()).or_insert(comm), comm, "{} {}", function, name);
            let true_one = &truth.comms[comm];
            let (made_by, first, second) = &found[&Name::Agreed(number)];
            prop_assert_eq!(*made_by, true_one.function);
            if !first.is_empty() {
                let mut all = vec![first.clone()];
                all.extend(second.clone());
                let mut expected = vec![true_one.first.clone()];
                expected.extend(true_one.second.clone());
                expected.sort_by_key(|side| side.iter().min().copied());
                prop_assert_eq!(all, expected);
            }
        }
    }
    let distinct: BTreeSet<usize> = names.values().copied().collect();
    prop_assert_eq!(distinct.len(), names.len(), "two names of one communicator");
    Ok(())
}

/// A call that may or may not be counted with the others makes their count distrusted.
#[test]
fn a_group_that_nobody_knows_may_be_any() {
    let mut model = Model::new(1, 3);
    model.create_group_of(None, &[0, 1], 5, |rank| if rank == 1 { UNTOLD } else { 0 });
    model.create_group_of(None, &[0, 1], 5, |_| 0);
    model.create_group_of(None, &[0, 1], 5, |rank| if rank == 0 { UNTOLD } else { 0 });
    model.create_group_of(None, &[0, 1], 6, |_| 0);
    let trace = model.trace(None);
    nothing_is_wrong(&trace, &model.truth(None)).unwrap();
    // Calls with another tag are known all the same.
    assert_eq!(Communicators::of(&trace).iter().filter(|comm| comm.is_agreed()).count(), 1);
}

/// As above, with leaders that meet in the world: any rank may lead a communicator that is not known.
#[test]
fn whoever_is_in_an_unknown_communicator_may_lead_it() {
    let mut model = Model::new(1, 2);
    let alone = [0, 1].map(|rank| model.create_group_of(None, &[rank], 5, |_| 0));
    let unknown = [0, 1].map(|rank| model.create_group_of(None, &[rank], 6, |_| UNTOLD));
    model.between_of([alone[0], unknown[1]], [0, 0], 1);
    model.between_of([unknown[0], alone[1]], [0, 0], 1);
    model.between_of(alone, [0, 0], 2);
    let trace = model.trace(None);
    nothing_is_wrong(&trace, &model.truth(None)).unwrap();
    assert_eq!(Communicators::of(&trace).iter().filter(|comm| comm.is_agreed()).count(), 3);
}

/// A loop that makes and frees on all ranks: each pass makes another.
#[test]
fn every_turn_of_a_loop_makes_another() {
    let mut model = Model::new(1, 4);
    for _ in 0..1000 {
        let dup = model.dup(None);
        model.use_it(dup);
        model.free(dup);
    }
    let trace = model.trace(None);
    let comms = Communicators::of(&trace);
    assert_eq!(comms.iter().len(), 1000);
    let expected: Vec<String> = (2..2002).map(|turn| format!("comm:{}", turn / 2)).collect();
    for rank in 0..4 {
        let names: Vec<String> = decoded(&trace, &comms, rank).into_iter().map(|(_, name)| name).collect();
        assert_eq!(names, expected);
    }
    // The limit is below the number of calls: communicators that are left out have no names.
    let some = Communicators::within(&trace, 400);
    assert!(!some.is_complete() && some.iter().len() < 100, "{}", some.iter().len());
    let names = decoded(&trace, &some, 2);
    assert!(names.last().unwrap().1.starts_with("comm:2.w"), "{:?}", names.last());
}
