//! `partners = "keep"`: message partners of drawn ranks are kept too, for every way of exchange
//! (`programs/partners.c`), and with the probability that the trace states.

use std::collections::{BTreeMap, BTreeSet};

use ampl_tests::job::{Job, Mpi};
use ampl_tests::run::{Form, Monitored, monitor, number, window};
use serde_json::Value;

const STEPS: u32 = 60;
const PER_UPDATE: u64 = 10;
const DRAWN: u32 = 2;

fn configuration(ranks: u32, mechanism: &str, partners: &str) -> String {
    format!(
        r#"[sampling]
windows_per_update = {PER_UPDATE}
update_mechanism = "{mechanism}"
partners = "{partners}"
seed = 5

[window]
marker = "mpi:MPI_Allreduce"

# A busy machine must not make a rank keep less.
[agent]
max_overhead = 0.5

[[group]]
name = "pairs"
members = "0-{}"
sample_size = {DRAWN}
"#,
        ranks - 1
    )
}

/// A way to exchange messages, the bit in which the partners' numbers differ, and whether in the shuffled
/// communicator.
type Way = (&'static str, u32, bool);

fn job(mpi: Mpi, ranks: u32, mechanism: &str, partners: &str, ways: &[Way]) -> Monitored {
    let (steps, millis) = (STEPS.to_string(), "4");
    let bits: Vec<String> = ways.iter().map(|(_, bit, _)| bit.to_string()).collect();
    let ways = ways.iter().zip(&bits).flat_map(|((way, ..), bit)| [*way, bit.as_str()]);
    let arguments: Vec<&str> = [&steps[..], millis].into_iter().chain(ways).collect();
    let job = Job::of(mpi, ranks, "partners", &arguments);
    monitor(&job, &configuration(ranks, mechanism, partners), Form::Run).success()
}

/// Partner of `rank` in the world.
fn partner(rank: u32, ranks: u32, &(_, bit, shuffled): &Way) -> u32 {
    if !shuffled {
        return rank ^ bit;
    }
    let there = (3 * rank % ranks) ^ bit;
    (0..ranks)
        .find(|world| 3 * world % ranks == there)
        .expect("3 and the number of ranks have no common divisor")
}

/// Draw of one of a rank's windows, from its decoded calls.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Kept {
    drawn: bool,
    inclusion: Option<f64>,
}

/// Kept windows of all ranks: by window, then by rank.
fn kept(run: &Monitored, ranks: u32) -> BTreeMap<u64, BTreeMap<u32, Kept>> {
    let mut windows: BTreeMap<u64, BTreeMap<u32, Kept>> = BTreeMap::new();
    for rank in 0..ranks {
        for call in run.decode(rank) {
            let inclusion = call.get("inclusion").map(number);
            let drawn = call.get("partner").is_none();
            let is = Kept { drawn, inclusion };
            let Some(at) = window(&call) else { continue };
            let window = windows.entry(at).or_default();
            assert_eq!(*window.entry(rank).or_insert(is), is, "one window is kept for one reason: {call}");
        }
    }
    windows
}

/// C(n, k)
fn choose(n: u32, k: u32) -> f64 {
    (0..k).map(|i| f64::from(n - i) / f64::from(k - i)).product()
}

fn both_ends_are_kept(mpi: Mpi, ranks: u32, mechanism: &str, ways: &[Way]) {
    let run = job(mpi, ranks, mechanism, "keep", ways);
    let windows = kept(&run, ranks);
    let partners = |rank: u32| -> BTreeSet<u32> {
        let with_messages = ways.iter().filter(|(way, ..)| *way != "collective");
        with_messages.map(|way| partner(rank, ranks, way)).collect()
    };
    let drawn = |window: u64| -> BTreeSet<u32> {
        let of = windows.get(&window).into_iter().flatten();
        of.filter(|(_, kept)| kept.drawn).map(|(&rank, _)| rank).collect()
    };
    let (mut checked, mut different, mut for_partners) = (0, BTreeSet::new(), 0);
    for window in PER_UPDATE..u64::from(STEPS) {
        let now = drawn(window);
        if mechanism == "subset" {
            // A rank that a directive reaches late keeps to the one before, which may draw others.
            let settled = [window - 1, window + 1].iter().all(|&near| drawn(near) == now);
            if now.len() as u32 != DRAWN || !settled {
                continue;
            }
        } else if window % PER_UPDATE < PER_UPDATE / 2 {
            continue;
        }
        let expected: BTreeSet<u32> =
            now.iter().flat_map(|&rank| partners(rank).into_iter().chain([rank])).collect();
        let empty = BTreeMap::new();
        let here = windows.get(&window).unwrap_or(&empty);
        assert_eq!(here.keys().copied().collect::<BTreeSet<_>>(), expected, "window {window}, drawn {now:?}");
        for (&rank, is) in here {
            let several = 1 + partners(rank).len() as u32;
            let p = f64::from(DRAWN) / f64::from(ranks);
            let pi = match mechanism {
                "subset" => 1.0 - choose(ranks - several, DRAWN) / choose(ranks, DRAWN),
                _ => 1.0 - (1.0 - p).powi(several as i32),
            };
            assert!(
                (is.inclusion.unwrap() - pi).abs() < 1e-9,
                "window {window} of rank {rank}: {is:?}, π {pi}"
            );
        }
        checked += 1;
        for_partners += here.values().filter(|is| !is.drawn).count() as u64;
        different.insert(now);
    }
    assert!(checked >= 20 && different.len() >= 4, "{checked} windows, {} samples", different.len());
    let info = run.info();
    assert_eq!((&info["complete"], &info["agent_failures"]), (&Value::Bool(true), &0.into()), "{info}");
    let said = info["partner_windows"].as_u64().unwrap();
    let of_all = windows.values().flat_map(BTreeMap::values).filter(|is| !is.drawn).count() as u64;
    assert!(said == of_all && said >= for_partners, "{said} {of_all} {for_partners}");
    // Estimates rest on the drawn alone.
    let sizes = run.estimate().into_iter().filter(|row| row["basis"] == "trace" && row["scope"] == "window");
    for row in sizes.filter(|row| row["window"].as_u64() > Some(PER_UPDATE + 2)) {
        let window = row["window"].as_u64().unwrap();
        assert_eq!(number(&row["kept"]), drawn(window).len() as f64, "{row}");
    }
    let line = run.finished.stderr.lines().find(|line| line.contains("that drawn ones talk to"));
    assert!(line.is_some_and(|line| line.contains(&format!("{said} of "))), "{}", run.finished.stderr);
}

const BLOCKING: &[Way] =
    &[("sendrecv", 1, false), ("any", 2, true), ("mprobe", 4, false), ("collective", 8, false)];
const REQUESTS: &[Way] =
    &[("waitall", 1, true), ("persistent", 2, true), ("waitsome", 4, true), ("persist-any", 8, true)];

#[test]
fn however_messages_go() {
    both_ends_are_kept(Mpi::OpenMpi, 16, "subset", BLOCKING);
    both_ends_are_kept(Mpi::OpenMpi, 16, "subset", REQUESTS);
}

#[test]
fn however_messages_go_mpich() {
    for mpi in [Mpi::Mpich, Mpi::Abi] {
        both_ends_are_kept(mpi, 8, "subset", &[("any", 1, true), ("mprobe", 2, false)]);
        both_ends_are_kept(mpi, 8, "subset", &[("persist-any", 1, true), ("testany", 2, true)]);
    }
}

#[test]
fn coins_of_partners_are_known_too() {
    both_ends_are_kept(Mpi::OpenMpi, 16, "global", &[("waitall", 1, true), ("sendrecv", 2, false)]);
}

#[test]
fn without_the_key_nothing_is_kept_for_others() {
    let run = job(Mpi::OpenMpi, 8, "subset", "off", &[("sendrecv", 1, false)]);
    assert_eq!(run.info()["partner_windows"], 0);
    let windows = kept(&run, 8);
    assert!(windows.values().flat_map(BTreeMap::values).all(|is| is.drawn && is.inclusion.is_none()));
    assert!(!run.finished.stderr.contains("that drawn ones talk to"), "{}", run.finished.stderr);
}
