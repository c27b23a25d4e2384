//! The configuration of the AMPL paper's Figure 4, on as many ranks as fit here: time steps that the program
//! names itself, one half of the ranks sized by a guide, the other with a size of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::Extent;
use ampl_tests::run::{Form, Monitored, monitor, number, window};
use serde_json::Value;

const STEPS: u64 = 24;
const PER_UPDATE: u64 = 4;

fn ranks() -> u32 {
    Extent::get().of([32, 64, 128])
}

/// Ranks of the static half that are kept, and ranks of it that are always kept: the paper's numbers, where there is
/// room.
fn fixed() -> (u64, u64) {
    Extent::get().of([(4, 2), (15, 5), (30, 10)])
}

fn configuration(ranks: u32) -> String {
    let half = ranks / 2;
    let (size, always) = fixed();
    let pinned = u64::from(half) + always - 1;
    format!(
        r#"[window]
marker = "region:TIMESTEP"

[sampling]
windows_per_update = {PER_UPDATE}
update_mechanism = "subset"
# As the paper does it: what is drawn follows from earlier windows.
selection = "predictive"
seed = 2008
# Half of a quick run's ranks are no more than the usual floor.
floor = 8

# A busy machine must not make a rank report less.
[agent]
max_overhead = 0.5

[[metric]]
name = "wall"

[[metric]]
name = "papi.PAPI_FP_INS"
role = "guide"
optional = true

[[metric]]
name = "work"
role = "guide"

[[group]]
name = "Adaptive"
members = "0-{}"
confidence = 0.90
error = 0.005
stratify = "off"

[[group]]
name = "Static"
members = "{half}-{}"
sample_size = {size}
pinned = "{half}-{pinned}"
"#,
        half - 1,
        ranks - 1,
    )
}

fn job(ranks: u32) -> Monitored {
    let job = Job::of(Mpi::OpenMpi, ranks, "figure4", &[&STEPS.to_string()]);
    // So many ranks take from 10 to 50 seconds to begin and end on two processors, without ampl.
    let job = Job { limit: Duration::from_secs(400), ..job };
    monitor(&job, &configuration(ranks), Form::Run).success()
}

/// True for a retrospective decision.
fn is_after(decision: &Value) -> bool {
    decision["selection"] == "retrospective"
}

/// Sizes and probabilities by group and first window, as drawn beforehand.
fn sizes(decisions: &[Value]) -> BTreeMap<(String, u64), (u64, f64)> {
    let key = |decision: &Value| {
        (decision["group"].as_str().unwrap().to_owned(), decision["window"].as_u64().unwrap())
    };
    let size = |decision: &Value| (decision["size"].as_u64().unwrap(), number(&decision["probability"]));
    decisions
        .iter()
        .filter(|decision| !is_after(decision))
        .map(|decision| (key(decision), size(decision)))
        .collect()
}

#[test]
fn half_by_its_guide_and_half_by_number() {
    let (ranks, half) = (ranks(), u64::from(ranks()) / 2);
    let run = job(ranks);
    let info = run.info();
    assert_eq!((&info["complete"], &info["agent_failures"]), (&Value::Bool(true), &0.into()), "{info}");
    // Every step is a window, and what follows the last is one more.
    assert_eq!(info["windows"], STEPS + 1);
    let decisions = run.decisions();
    let sizes = sizes(&decisions);
    for update in 0..STEPS / PER_UPDATE {
        let of = |group: &str| sizes[&(group.to_owned(), update * PER_UPDATE)];
        let (size, always) = fixed();
        let (fixed, drawn_with) = of("Static");
        assert_eq!(fixed, size, "{update}");
        let share = (size - always) as f64 / (half - always) as f64;
        assert!((drawn_with - share).abs() < 1e-12, "{update}: {drawn_with} {share}");
        if update > 0 {
            let (size, probability) = of("Adaptive");
            assert!(size < half, "{update}: {size}");
            assert_eq!(probability, size as f64 / half as f64);
        }
    }
    // The guided group's first windows are drawn without any values.
    let mut first: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for decision in decisions.iter().filter(|decision| is_after(decision)) {
        let of = |name: &str| decision[name].as_u64().expect("a number");
        assert!(of("update") == 0 && decision["group"] == "Adaptive", "{decision}");
        let window = first.entry(of("window")).or_default();
        *window = (window.0 + of("reported"), window.1 + of("size"));
    }
    assert!(
        first.keys().copied().eq(0..PER_UPDATE) && first.values().all(|&(all, _)| all == half),
        "{first:?}"
    );
    let told: BTreeSet<u64> = sizes.keys().map(|&(_, window)| window).collect();
    for decision in &decisions {
        assert_eq!(decision["mechanism"], "subset");
        if is_after(decision) {
            continue;
        }
        // What an interval begins with, and within it what has changed by much.
        let window = decision["window"].as_u64().unwrap();
        assert_eq!(decision["update"], window / PER_UPDATE);
        assert_eq!(decision["policy"], told.range(..window).count());
        assert_eq!(decision["reported"], half, "{decision}");
        let guided = decision["group"] == "Adaptive";
        assert_eq!(decision["guide"], if guided { "work".into() } else { Value::Null });
    }
    // Pinned ranks have the calls of every step; of the others, only drawn ranks.
    let mut stored: BTreeMap<(bool, u64), BTreeSet<u32>> = BTreeMap::new();
    for rank in 0..ranks {
        for call in run.decode(rank).iter().filter(|call| call["fn"] == "MPI_Allreduce") {
            let Some(window) = window(call) else { continue };
            let new = stored.entry((u64::from(rank) >= half, window)).or_default().insert(rank);
            assert!(new, "each step has one: {call}");
        }
    }
    let pinned = half as u32..(half + fixed().1) as u32;
    let rows = run.estimate();
    for step in 0..STEPS {
        for (in_second, group) in [(false, "Adaptive"), (true, "Static")] {
            let there = &stored[&(in_second, step)];
            if let Some((_, size)) = first.get(&step).filter(|_| !in_second) {
                assert_eq!(there.len() as u64, *size, "step {step}");
                continue;
            }
            let drawn = rows.iter().find(|row| {
                row["scope"] == "window"
                    && (&row["window"], &row["group"]) == (&step.into(), &group.into())
                    && (&row["basis"], &row["metric"]) == (&"trace".into(), &"work".into())
            });
            assert_eq!(drawn.expect("a row")["kept"], there.len(), "{group}, step {step}");
            // A rank that a directive reaches late keeps to the one before until then, in the same order.
            let since = (step / PER_UPDATE).saturating_sub(2).max(u64::from(!in_second)) * PER_UPDATE;
            let recent = sizes.range((group.to_owned(), since)..=(group.to_owned(), step));
            let recent = recent.map(|(_, &(size, _))| size);
            let (least, most) = (recent.clone().min().unwrap(), recent.max().unwrap());
            assert!((least..=most).contains(&(there.len() as u64)), "{group}, step {step}: {}", there.len());
            assert!(!in_second || there.len() as u64 == fixed().0, "step {step}: {}", there.len());
            assert!(!in_second || pinned.clone().all(|rank| there.contains(&rank)), "step {step}: {there:?}");
        }
    }
    // The guide's exact mean is that which the program prints.
    let said: f64 = run.finished.stdout.trim().strip_prefix("work ").unwrap().parse().unwrap();
    let work = rows.iter().filter(|row| row["metric"] == "work" && row["scope"] == "window");
    let exact = work.filter(|row| row["basis"] == "census");
    let sum: f64 = exact.map(|row| number(&row["mean"]) * half as f64).sum();
    assert!((sum - said).abs() < 1e-6 * said, "{sum} {said}");
    // Another run has the same decisions: only the windows and the seed matter.
    let again = job(ranks);
    assert_eq!(again.decisions(), decisions);
}
