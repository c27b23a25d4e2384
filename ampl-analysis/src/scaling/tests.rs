use ampl_core::mpi::ObjectKind;
use ampl_testkit::runs::{Caller, info, predefined, processes, structure, world};
use ampl_trace::{RankTrace, Trace};

use super::*;
use crate::comparison::{Key, Profile, RunQuantity};

/// Five steps of a ring on `ranks` ranks, with a reduction; planted are an array of all ranks and a gathering.
fn job(ranks: u32, planted: bool) -> Trace {
    let structure = structure(ranks, |rank: &mut Caller| {
        let (left, right) =
            (i64::from((rank.rank() + ranks - 1) % ranks), i64::from((rank.rank() + 1) % ranks));
        let double = predefined(ObjectKind::Type, "MPI_DOUBLE");
        let sum = predefined(ObjectKind::Op, "MPI_SUM");
        for _ in 0..5 {
            rank.send(10, right, 800 / u64::from(ranks), world());
            rank.receive(11, left, left, 800 / u64::from(ranks), world());
            rank.call("MPI_Allreduce", 12, &[0, 0, 1, double, sum, world()]);
            if planted {
                let length = u64::from(ranks);
                let counts: Vec<u64> =
                    std::iter::once(length).chain(std::iter::repeat_n(1, ranks as usize)).collect();
                let words =
                    [&[0][..], &counts, &counts, &[double, 0], &counts, &counts, &[double, world()]].concat();
                rank.call("MPI_Alltoallv", 13, &words);
                rank.call("MPI_Gather", 14, &[0, 2, double, 0, 2, double, 0, world()]);
            }
        }
    });
    let of = |process| RankTrace { process, ..RankTrace::default() };
    let traces = processes(&structure, |rank| format!("node{}", rank / 8)).into_iter().map(of).collect();
    Trace { run: info(ranks), ranks: traces, structure, complete: true, ..Trace::default() }
}

#[test]
fn what_is_planted_is_flagged_and_nothing_else() {
    let study =
        |planted: bool| scaling([16, 4, 32, 8].map(|ranks| Point::of(&job(ranks, planted))).into(), None);
    assert_eq!(study(false).flags, []);
    let found = study(true);
    let flags: Vec<(String, Law)> =
        found.flags.iter().map(|flag| (flag.site.to_string(), flag.law)).collect();
    let flag = |site: &str| (site.to_owned(), Law::Linear);
    assert_eq!(flags, [flag("MPI_Alltoallv@app+0xd"), flag("MPI_Gather@app+0xe")]);
    assert!(matches!(&found.flags[0].what[0], Size::Array(_)), "{:?}", found.flags[0]);
    assert_eq!(found.flags[0].values, [(4, 4.0), (8, 8.0), (16, 16.0), (32, 32.0)]);
    assert_eq!(found.flags[1].what, [Size::Received]);
    assert_eq!(found.flags[1].values[3], (32, 32.0 * 16.0));
    let rows: Vec<(u32, u32, Option<f64>)> =
        found.rows.iter().map(|row| (row.ranks, row.nodes, row.messages_per_rank)).collect();
    assert_eq!(rows, [(4, 1, Some(5.0)), (8, 1, Some(5.0)), (16, 2, Some(5.0)), (32, 4, Some(5.0))]);
    assert_eq!(found.basis, ModeBasis::Nothing);
}

/// A run of that many ranks whose ranks compute for `compute` and are in a barrier for `mpi`.
fn timed(ranks: u32, compute: f64, mpi: f64) -> Point {
    let mut profile = Profile::default();
    let site = Scope::Site { function: "MPI_Barrier".into(), place: "a.c:3".into() };
    for (what, value) in [
        (RunQuantity::Elapsed, compute + mpi),
        (RunQuantity::ComputeTime, compute),
        (RunQuantity::MpiTime, mpi),
        (RunQuantity::Parallel, compute / (compute + mpi)),
        (RunQuantity::LoadBalance, 1.0),
        (RunQuantity::Communication, compute / (compute + mpi)),
    ] {
        profile.times.insert(Key::run(what), value);
    }
    profile.times.insert(Key { scope: site, what: RunQuantity::MpiTime }, mpi);
    Point { profile, ranks, compute_ns: Some(compute * f64::from(ranks)), ..Point::default() }
}

#[test]
fn factors_follow_their_definitions() {
    let strong = vec![timed(4, 8e9, 1e9), timed(8, 4e9, 1e9), timed(16, 2.5e9, 1e9)];
    let found = scaling(strong, None);
    assert_eq!((found.mode, found.basis), (Mode::Strong, ModeBasis::ComputeTime));
    let factor = |row: usize, factor| found.rows[row].factor(factor).unwrap();
    assert!((factor(1, Factor::ComputationScalability) - 1.0).abs() < 1e-12);
    assert!((factor(2, Factor::ComputationScalability) - 0.8).abs() < 1e-12);
    assert!((factor(2, Factor::Global) - 0.8 * 2.5 / 3.5).abs() < 1e-12);
    assert!((found.rows[2].speedup.unwrap() - 9.0 / 3.5).abs() < 1e-12);
    let falls: Vec<(Factor, u32)> = found.falls.iter().map(|fall| (fall.factor, fall.ranks)).collect();
    assert_eq!(falls, [(Factor::Global, 16), (Factor::Parallel, 16), (Factor::Communication, 16)]);
    let (site, grown) = found.falls[1].site.clone().unwrap();
    assert_eq!(site.to_string(), "MPI_Barrier@a.c:3");
    assert!((grown - (1.0 / 3.5 - 1.0 / 9.0)).abs() < 1e-12);
    // Nothing was counted.
    assert_eq!((found.rows[0].ipc, found.rows[0].factor(Factor::IpcScalability)), (None, None));
}

#[test]
fn a_problem_that_grows_is_told_from_one_that_stays() {
    let weak = scaling(vec![timed(8, 4.2e9, 1e9), timed(4, 4e9, 1e9)], None);
    assert_eq!((weak.mode, weak.rows[0].ranks), (Mode::Weak, 4));
    assert!((weak.rows[1].factor(Factor::ComputationScalability).unwrap() - 4.0 / 4.2).abs() < 1e-12);
    let given = scaling(vec![timed(4, 4e9, 1e9), timed(8, 4e9, 1e9)], Some(Mode::Strong));
    assert_eq!(given.basis, ModeBasis::Given);
    assert!((given.rows[1].factor(Factor::ComputationScalability).unwrap() - 0.5).abs() < 1e-12);
    assert_eq!(scaling(vec![timed(4, 4e9, 1e9)], None).basis, ModeBasis::Nothing);
}

#[test]
fn counters_are_factors() {
    let counted = |ranks: u32, compute: f64, instructions: f64, cycles: f64| {
        let mut point = timed(ranks, compute, 1e9);
        point.counters = Counters { instructions: Some(instructions), cycles: Some(cycles) };
        point
    };
    let found = scaling(vec![counted(4, 8e9, 4e10, 4e10), counted(8, 4e9, 5e10, 6.4e10)], None);
    let row = &found.rows[1];
    assert!((row.factor(Factor::InstructionScalability).unwrap() - 0.8).abs() < 1e-12);
    assert!((row.factor(Factor::IpcScalability).unwrap() - 50.0 / 64.0).abs() < 1e-12);
    assert!((row.factor(Factor::FrequencyScalability).unwrap() - 1.6).abs() < 1e-12);
    // Together they are the computation's.
    let product: f64 = [Factor::InstructionScalability, Factor::IpcScalability, Factor::FrequencyScalability]
        .into_iter()
        .map(|factor| row.factor(factor).unwrap())
        .product();
    assert!((product - row.factor(Factor::ComputationScalability).unwrap()).abs() < 1e-12);
    assert_eq!(found.basis, ModeBasis::Instructions);
}
