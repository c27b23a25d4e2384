use ampl_testkit::runs::{Caller, info, processes, structure, world};
use ampl_trace::{RankTrace, Trace};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

fn normal(random: &mut ChaCha8Rng) -> f64 {
    (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0
}

/// A run of four ranks whose ranks 2 and 3 compute `factor` times as long, and for which the others wait.
fn timed(random: &mut ChaCha8Rng, factor: f64) -> Profile {
    let identity = Identity { ranks: 4, complete: true, ..Identity::default() };
    let mut run = Profile { identity, ..Profile::default() };
    let mut noise = |scale: f64, value: f64| value * (scale * normal(random)).exp();
    let drift = noise(0.02, 1.0);
    let compute: Vec<f64> =
        (0..4).map(|rank| noise(0.002, drift * 1e9 * if rank < 2 { 0.9 } else { factor })).collect();
    let elapsed = compute.iter().copied().fold(0.0, f64::max) + noise(0.1, 2e7);
    for (rank, &compute) in compute.iter().enumerate() {
        run.ranks.push(profile::RankTimes { rank: rank as u32, mpi: elapsed - compute, compute });
    }
    let mean = compute.iter().sum::<f64>() / 4.0;
    run.times.insert(Key::run(RunQuantity::Elapsed), elapsed);
    run.times.insert(Key::run(RunQuantity::ComputeTime), mean);
    run.times.insert(Key::run(RunQuantity::MpiTime), elapsed - mean);
    let barrier = Key { scope: Scope::Function("MPI_Barrier".into()), what: RunQuantity::MpiTime };
    run.times.insert(barrier, elapsed - mean);
    run
}

fn options(rules: &[&str]) -> Options {
    let rules = rules.iter().map(|rule| Rule::parse(rule).unwrap()).collect();
    Options { rules, strata: vec!["0-1".into(), "2-3".into()], ..Options::default() }
}

#[test]
fn equal_runs_fail_no_more_often_than_stated() {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let gates: [&[&str]; 3] =
        [&["elapsed>0%"], &["elapsed>0%", "mpi.time>0%"], &["compute.time@*>0%", "mpi.time@*>0%"]];
    for (rules, runs) in gates.into_iter().zip([(4, 4), (5, 5), (6, 6)]) {
        let mut failures = 0;
        for _ in 0..1000 {
            let mut side =
                |runs: usize| -> Vec<Profile> { (0..runs).map(|_| timed(&mut random, 1.0)).collect() };
            let (base, new) = (side(runs.0), side(runs.1));
            let found = compare(&base, &new, &options(rules)).unwrap();
            failures += usize::from(found.verdict == Verdict::Fail);
        }
        assert!(failures <= 70, "{rules:?}: {failures} of 1000");
    }
}

#[test]
fn a_slower_stratum_is_named_first_with_its_change() {
    let mut random = ChaCha8Rng::seed_from_u64(2);
    let (mut first, mut covered, mut failed) = (0, 0, 0);
    for _ in 0..200 {
        let base: Vec<Profile> = (0..5).map(|_| timed(&mut random, 1.0)).collect();
        let new: Vec<Profile> = (0..5).map(|_| timed(&mut random, 1.1)).collect();
        let found = compare(&base, &new, &options(&["compute.time@stratum:2-3>5%"])).unwrap();
        let slow = Key { scope: Scope::Stratum("2-3".into()), what: RunQuantity::ComputeTime };
        first += usize::from(found.rows[0].key == slow);
        let row = found.rows.iter().find(|row| row.key == slow).unwrap();
        let (low, high) = row.interval.unwrap();
        covered += usize::from(low <= 0.1 && 0.1 <= high);
        failed += usize::from(found.verdict == Verdict::Fail);
        assert_eq!(row.method, Method::Bootstrap);
    }
    assert!(first >= 196 && covered >= 180 && failed >= 190, "{first} {covered} {failed}");
}

#[test]
fn strata_are_found_by_compute_time_where_none_are_given() {
    let mut random = ChaCha8Rng::seed_from_u64(8);
    let base: Vec<Profile> = (0..5).map(|_| timed(&mut random, 1.0)).collect();
    let new: Vec<Profile> = (0..5).map(|_| timed(&mut random, 1.1)).collect();
    let asked = Options { strata: Vec::new(), ..options(&["compute.time@stratum:2-3>5%"]) };
    let found = compare(&base, &new, &asked).unwrap();
    assert_eq!((found.verdict, found.rows[0].key.scope.to_string()), (Verdict::Fail, "stratum:2-3".into()));
}

/// Strata of the base would thin out what slows down only some of their ranks.
#[test]
fn a_part_of_a_stratum_that_slows_down_is_named() {
    let mut random = ChaCha8Rng::seed_from_u64(9);
    let base: Vec<Profile> = (0..5).map(|_| timed(&mut random, 1.0)).collect();
    let mut new: Vec<Profile> = (0..5).map(|_| timed(&mut random, 1.0)).collect();
    new.iter_mut().for_each(|run| run.ranks[1].compute *= 1.1);
    let asked = options(&["compute.time@stratum:*>5%", "compute.time@stratum:0-1>8%"]);
    let found = compare(&base, &new, &asked).unwrap();
    let slow = Key { scope: Scope::Stratum("1".into()), what: RunQuantity::ComputeTime };
    assert_eq!((&found.rows[0].key, found.verdict), (&slow, Verdict::Fail));
    let answers: Vec<Verdict> = found.judged.iter().map(|judged| judged.verdict).collect();
    assert_eq!(answers, [Verdict::Fail, Verdict::Pass], "the set that a rule names changed by 5 %");
}

#[test]
fn one_run_a_side_tells_nothing_of_time_unless_noise_is_given() {
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let (base, new) = ([timed(&mut random, 1.0)], [timed(&mut random, 1.5)]);
    let mut asked = options(&["elapsed>5%", "calls!=0"]);
    let found = compare(&base, &new, &asked).unwrap();
    // Neither run has counted calls.
    assert_eq!((found.verdict, &found.judged[0].reason), (Verdict::Inconclusive, &Some(Reason::OneRun(3))));
    asked.inconclusive = Some(Settled::Fail);
    assert_eq!(compare(&base, &new, &asked).unwrap().verdict, Verdict::Fail);
    asked.inconclusive = Some(Settled::Pass);
    assert_eq!(compare(&base, &new, &asked).unwrap().verdict, Verdict::Pass);
    (asked.inconclusive, asked.noise) = (None, Some(0.03));
    asked.rules.truncate(1);
    assert_eq!(compare(&base, &new, &asked).unwrap().verdict, Verdict::Fail);
    asked.noise = Some(0.5);
    assert_eq!(compare(&base, &new, &asked).unwrap().verdict, Verdict::Inconclusive);
    // Learned from equal runs instead.
    let known: Vec<Profile> = (0..10).map(|_| timed(&mut random, 1.0)).collect();
    (asked.noise, asked.spread) = (None, Spread::learn(&known));
    assert_eq!(compare(&base, &new, &asked).unwrap().verdict, Verdict::Fail);
    assert_eq!(compare(&base, &base, &asked).unwrap().verdict, Verdict::Pass);
}

#[test]
fn rules_without_a_chance_are_refused() {
    let mut random = ChaCha8Rng::seed_from_u64(4);
    let runs: Vec<Profile> = (0..9).map(|_| timed(&mut random, 1.0)).collect();
    let refused = |n: usize, m: usize, rules: &[&str]| {
        compare(&runs[..n], &runs[..m], &options(rules)).err().map(|error| (error.tests, error.needed))
    };
    assert_eq!(refused(2, 2, &["elapsed>5%"]), Some((1, 3)));
    assert_eq!(refused(3, 3, &["elapsed>5%"]), None);
    assert_eq!(refused(3, 3, &["elapsed>5%", "mpi.time>5%"]), Some((2, 4)));
    assert_eq!(refused(1, 4, &["elapsed>5%"]), Some((1, 3)));
    assert_eq!(refused(1, 5, &["elapsed>5%", "mpi.time>5%"]), None);
    assert_eq!(refused(1, 1, &["elapsed>5%"]), None);
    assert_eq!(refused(2, 2, &["calls>5%"]), None);
}

/// A ring of four ranks that goes `steps` times through a loop, with `more` messages in each step.
fn ring(steps: u64, more: u64, polls: u64) -> Trace {
    let structure = structure(4, |rank: &mut Caller| {
        let (left, right) = (i64::from((rank.rank() + 3) % 4), i64::from((rank.rank() + 1) % 4));
        for _ in 0..steps {
            rank.send(10, right, 100, world());
            rank.receive(11, left, left, 100, world());
            if rank.rank() == 1 {
                (0..more).for_each(|_| rank.send(20, 2, 5, world()));
            }
            if rank.rank() == 2 {
                (0..more).for_each(|_| rank.receive(21, 1, 1, 5, world()));
            }
            for _ in 0..polls {
                rank.call("MPI_Iprobe", 30, &[0, 0, world(), 0]);
            }
        }
    });
    let of = |process| RankTrace { process, ..RankTrace::default() };
    let ranks = processes(&structure, |_| "node".into()).into_iter().map(of).collect();
    Trace { run: info(4), ranks, structure, complete: true, ..Trace::default() }
}

#[test]
fn one_more_message_a_step_is_found_from_one_run_each() {
    let (base, same, new) =
        (Profile::of(&ring(50, 0, 0)), Profile::of(&ring(50, 0, 3)), Profile::of(&ring(50, 1, 2)));
    let asked = options(&["calls!=0", "messages!=0", "sequence!=0"]);
    // Polls are no difference, and are said.
    let found = compare(std::slice::from_ref(&base), &[same], &asked).unwrap();
    assert_eq!(found.verdict, Verdict::Pass, "{found:?}");
    assert!(found.left_out.iter().any(|left| matches!(left, LeftOut::Polls(600))), "{:?}", found.left_out);
    let found = compare(&[base], &[new], &asked).unwrap();
    assert_eq!(found.verdict, Verdict::Fail);
    let row = |scope: Scope, what: RunQuantity| {
        let key = Key { scope, what };
        found.rows.iter().find(|row| row.key == key).unwrap_or_else(|| panic!("{key:?} in {:?}", found.rows))
    };
    let values = |scope, what| {
        let row = row(scope, what);
        (row.base.unwrap(), row.new.unwrap())
    };
    assert_eq!(values(Scope::Run, RunQuantity::Messages), (200.0, 250.0));
    assert_eq!(values(Scope::Run, RunQuantity::MessageBytes), (160_000.0, 162_000.0));
    assert_eq!(values(Scope::Function("MPI_Send".into()), RunQuantity::Calls), (200.0, 250.0));
    assert_eq!(values(Scope::Run, RunQuantity::Sequence), (0.0, 2.0));
    assert_eq!(values(Scope::Run, RunQuantity::Partners), (4.0, 4.0));
    assert!(found.judged.iter().all(|judged| judged.verdict == Verdict::Fail));
    assert!(
        row(Scope::Run, RunQuantity::Messages).significant
            && !row(Scope::Run, RunQuantity::Partners).significant
    );
    assert!((row(Scope::Run, RunQuantity::Messages).change.unwrap() - 0.25).abs() < 1e-12);
}

#[test]
fn runs_of_other_jobs_are_not_compared_unless_allowed() {
    let base = Profile::of(&ring(5, 0, 0));
    let mut other = base.clone();
    other.identity.arguments = vec!["-n".into(), "9".into()];
    let found = compare(std::slice::from_ref(&base), &[other.clone()], &options(&["calls!=0"])).unwrap();
    assert_eq!((found.verdict, found.rows.len(), found.mismatches.len()), (Verdict::Incomparable, 0, 1));
    let allowed = Options { allow: true, ..options(&["calls!=0"]) };
    assert_eq!(compare(std::slice::from_ref(&base), &[other], &allowed).unwrap().verdict, Verdict::Pass);
    // Another MPI calls as often, and takes other times.
    let mut mpi = base.clone();
    mpi.identity.mpi = "another".into();
    let calls = compare(std::slice::from_ref(&base), &[mpi.clone()], &options(&["calls!=0"])).unwrap();
    assert_eq!((calls.verdict, calls.no_times), (Verdict::Pass, true));
    let times = compare(&[base], &[mpi], &options(&["calls!=0", "elapsed>5%"])).unwrap();
    assert_eq!(times.verdict, Verdict::Incomparable);
}

#[test]
fn numbers_that_vary_between_equal_runs_are_no_failure() {
    let run = |calls: u64| {
        let mut run = Profile::of(&ring(5, 0, 0));
        run.counts.insert(Key::run(RunQuantity::Calls), calls);
        run
    };
    let asked = options(&["calls@run!=0"]);
    let verdict = |base: &[u64], new: &[u64]| {
        let runs = |values: &[u64]| values.iter().map(|&calls| run(calls)).collect::<Vec<_>>();
        compare(&runs(base), &runs(new), &asked).unwrap().verdict
    };
    assert_eq!(verdict(&[10, 10], &[10, 10]), Verdict::Pass);
    assert_eq!(verdict(&[10, 12], &[11, 10]), Verdict::Inconclusive);
    assert_eq!(verdict(&[10, 12], &[20, 22]), Verdict::Fail);
    assert_eq!(verdict(&[10, 10], &[11]), Verdict::Fail);
    let learned =
        Options { spread: Spread::learn(&[run(10), run(12), run(10)]), ..options(&["calls@run!=0"]) };
    assert_eq!(compare(&[run(10)], &[run(11)], &learned).unwrap().verdict, Verdict::Inconclusive);
}
