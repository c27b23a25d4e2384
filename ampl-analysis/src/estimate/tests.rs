use ampl_core::stats::Basis;
use ampl_testkit::synthetic::{Synthetic, WINDOW_NS, put_cell};
use ampl_trace::cells::{Cell, Cells};
use ampl_trace::model::{FollowedSteps, Level, Step};

use super::rows::{Row, Scope, rows};
use super::windows_lacking;

fn all(job: &Synthetic) -> Vec<Row> {
    rows(&job.trace(), &job.plan())
}

fn only<'a>(rows: &'a [Row], metric: &str, scope: Scope, window: Option<u64>, basis: Basis) -> &'a Row {
    let wanted = |row: &&Row| {
        (row.metric.as_str(), row.scope, row.window, row.basis) == (metric, scope, window, basis)
    };
    let found: Vec<&Row> = rows.iter().filter(wanted).collect();
    assert_eq!(found.len(), 1, "{metric} {scope:?} {window:?} {basis:?}");
    found[0]
}

/// The mean of all summaries: a census where every rank's are there, and nowhere else.
fn reported(rows: &[Row], scope: Scope, window: Option<u64>) -> &Row {
    let whole = |row: &Row| (row.kept, row.half_width) == (row.population, Some(0.0));
    let census = rows.iter().filter(|row| row.basis == Basis::Census);
    census.for_each(|row| assert!(row.mean.is_none() || whole(row), "{row:?}"));
    let exact = |row: &&Row| (row.scope, row.window, row.basis) == (scope, window, Basis::Census);
    let basis = if rows.iter().any(|row| exact(&row)) { Basis::Census } else { Basis::Sampled };
    let row = only(rows, "mpi.time", scope, window, basis);
    assert!(basis == Basis::Census || (row.half_width, row.guaranteed) == (None, false), "{row:?}");
    row
}

fn job() -> Synthetic {
    Synthetic { ranks: 20, size: 8, ..Synthetic::default() }
}

#[test]
fn census_rows_are_the_exact_means() {
    let job = job();
    let rows = all(&job);
    let mean = |windows: std::ops::Range<u64>| {
        let count = (windows.end - windows.start) as f64 * 20.0;
        windows
            .flat_map(|w| (0..20).map(move |rank| (rank, w)))
            .map(|(r, w)| job.mpi_ns(r, w) as f64)
            .sum::<f64>()
            / count
    };
    for (scope, window, windows) in
        [(Scope::Window, Some(5), 5..6), (Scope::Update, Some(4), 4..8), (Scope::Run, None, 0..12)]
    {
        let row = only(&rows, "mpi.time", scope, window, Basis::Census);
        assert!((row.mean.unwrap() / mean(windows) - 1.0).abs() < 1e-12, "{row:?}");
        assert_eq!((row.half_width, row.error, row.confidence), (Some(0.0), Some(0.0), 0.9));
        assert_eq!((row.population, row.kept, row.guaranteed), (20, 20, true));
        // Not a guide: exact, but without a bound.
        let sent = only(&rows, "bytes.sent", scope, window, Basis::Census);
        assert_eq!((sent.mean, sent.guaranteed), (Some(40.0), false));
    }
    // Two bases and six metrics over 12 windows, 3 intervals and the run.
    assert_eq!(rows.len(), 2 * 6 * (12 + 3 + 1));
    assert_eq!(only(&rows, "wall", Scope::Window, Some(11), Basis::Census).mean, Some(WINDOW_NS as f64));
}

#[test]
fn trace_rows_are_weighted_and_bounded() {
    let rows = all(&job());
    // Everyone is kept in the first interval.
    let first = only(&rows, "mpi.time", Scope::Window, Some(0), Basis::Trace);
    assert_eq!((first.kept, first.half_width, first.guaranteed), (20, Some(0.0), true));
    for window in 4..12 {
        let truth = only(&rows, "mpi.time", Scope::Window, Some(window), Basis::Census).mean.unwrap();
        let row = only(&rows, "mpi.time", Scope::Window, Some(window), Basis::Trace);
        let (mean, half_width) = (row.mean.unwrap(), row.half_width.unwrap());
        assert_eq!((row.population, row.kept), (20, 8));
        assert!(half_width > 0.0 && (mean - truth).abs() < 3.0 * half_width, "{row:?} {truth}");
        assert!((row.error.unwrap() - half_width / mean).abs() < 1e-12);
        assert_eq!(row.guaranteed, half_width <= 0.08 * mean, "{row:?}");
    }
    let run = only(&rows, "mpi.time", Scope::Run, None, Basis::Trace);
    let window = only(&rows, "mpi.time", Scope::Window, Some(4), Basis::Trace);
    assert!(run.half_width.unwrap() < window.half_width.unwrap());
}

#[test]
fn a_window_that_not_all_reported_promises_nothing() {
    let rows = all(&Synthetic { killed: vec![3], ..job() });
    let row = reported(&rows, Scope::Window, Some(11));
    assert_eq!((row.population, row.kept, row.guaranteed), (20, 19, false));
    assert!(only(&rows, "mpi.time", Scope::Window, Some(10), Basis::Census).guaranteed);
    assert!(!reported(&rows, Scope::Update, Some(8)).guaranteed);
    let run = reported(&rows, Scope::Run, None);
    assert!(!run.guaranteed && run.mean.is_some());
    assert_eq!((run.kept, run.missing_windows, run.half_width, run.error), (19, 1, None, None));
}

#[test]
fn windows_that_end_otherwise_on_some_ranks_promise_nothing() {
    let job = job();
    let mut trace = job.trace();
    let clock = Step { window: 5, level: Level::Clock, ..Step::default() };
    trace.ranks[..7].iter_mut().for_each(|rank| rank.process.steps = vec![clock.clone()]);
    let census = |trace: &ampl_trace::Trace, scope, window| {
        let rows = super::rows(trace, &job.plan());
        let row = reported(&rows, scope, window);
        assert!(row.mean.is_some());
        (row.guaranteed, row.half_width)
    };
    let exact = (true, Some(0.0));
    assert_eq!(census(&trace, Scope::Window, Some(3)), exact);
    // It was the clock that ended window 4.
    for window in [4, 5] {
        assert_eq!(census(&trace, Scope::Window, Some(window)), (false, None));
    }
    assert_eq!(census(&trace, Scope::Update, Some(4)), (false, None));
    assert_eq!(census(&trace, Scope::Run, None), (false, None));
    trace.ranks.iter_mut().for_each(|rank| rank.process.steps = vec![clock.clone()]);
    assert_eq!(census(&trace, Scope::Run, None), exact);
    // The others have ended before it.
    for rank in &mut trace.ranks[7..] {
        rank.process.steps.clear();
        rank.windows.entries_mut().truncate(4);
    }
    assert_eq!(census(&trace, Scope::Window, Some(3)), exact);
}

#[test]
fn windows_that_are_steps_on_some_ranks_only_promise_nothing() {
    let job = Synthetic { config: format!("[window]\nmarker = 'auto'\n{}", job().config), ..job() };
    let mut trace = job.trace();
    for rank in &mut trace.ranks {
        let late = if rank.process.rank == 4 { 3 } else { 0 };
        let steps = FollowedSteps { every: 1, window: 4, first_window: 4 + late, ..FollowedSteps::default() };
        rank.process.followed = Some(Box::new(steps));
    }
    let rows = super::rows(&trace, &job.plan());
    for window in 0..12 {
        let row = reported(&rows, Scope::Window, Some(window));
        assert_eq!(row.guaranteed, !(4..7).contains(&window), "{window}");
    }
}

#[test]
fn a_window_that_ends_with_the_run_on_some_ranks_promises_nothing() {
    let config = "[window]\nmarker = 'pcontrol'\n[[metric]]\nname = 'mpi.time'\nrole = 'guide'\n".to_owned();
    let job = Synthetic { config, ..job() };
    let mut trace = job.trace();
    trace.ranks[3].windows.entries_mut().truncate(6);
    trace.ranks[3].windows.entries_mut()[5].partial = true;
    let rows = super::rows(&trace, &job.plan());
    let at = |window| reported(&rows, Scope::Window, Some(window));
    assert!(at(4).guaranteed && !at(5).guaranteed && at(5).kept == 20);
}

/// From window 6 on calls are only counted on ranks 0 to 4, and on all in window 11.
#[test]
fn windows_without_a_summary_are_nowhere_claimed() {
    let job = job();
    let mut trace = job.trace();
    for rank in &mut trace.ranks {
        let first = if rank.process.rank < 5 { 6 } else { 11 };
        rank.windows
            .entries_mut()
            .iter_mut()
            .filter(|w| w.window >= first)
            .for_each(|w| w.cells = Cells::default());
    }
    let rows = super::rows(&trace, &job.plan());
    for basis in [Basis::Sampled, Basis::Trace] {
        let run = only(&rows, "mpi.time", Scope::Run, None, basis);
        assert_eq!(
            (run.mean, run.half_width, run.guaranteed),
            (None, None, false),
            "81 % of the time: {run:?}"
        );
        assert!((run.coverage - (1.0 - 45.0 / 240.0)).abs() < 1e-9, "{run:?}");
        assert_eq!(run.missing_windows, 5 * 6 + 15);
    }
    let run = reported(&rows, Scope::Run, None);
    assert_eq!((run.kept, run.half_width, run.error), (0, None, None), "nobody reported all it did");
    let at = |scope, window| reported(&rows, scope, Some(window));
    assert_eq!((at(Scope::Window, 6).kept, at(Scope::Window, 6).missing_windows), (15, 5));
    assert_eq!((at(Scope::Update, 4).kept, at(Scope::Update, 4).missing_windows), (15, 10));
    let whole = at(Scope::Window, 5);
    assert_eq!((whole.kept, whole.half_width, whole.guaranteed), (20, Some(0.0), true));
    // Of window 11 there is nothing at all; it is missing in its interval and counted among windows.
    assert!(rows.iter().all(|row| row.window != Some(11)));
    let lacking = |trace: &ampl_trace::Trace| windows_lacking(trace, &job.plan());
    assert_eq!(lacking(&trace), 6);
    // A rank that ends early lacks nothing after; one that left nothing lacks everything.
    trace.ranks[19].windows.entries_mut().truncate(2);
    assert_eq!(lacking(&trace), 6);
    trace.ranks.pop();
    assert_eq!(lacking(&trace), 12);
}

#[test]
fn values_without_a_mean_have_no_guarantee() {
    let job = Synthetic { config: "[[metric]]\nname = 'mpi.time'\nrole = 'guide'\n".into(), ..job() };
    let mut trace = job.trace();
    for (window, sum) in [(5, f64::INFINITY), (6, f64::NAN)] {
        let window = &mut trace.ranks[0].windows.entries_mut()[window];
        let cell = window.cells.get(1).unwrap();
        put_cell(window, 1, Cell { sum, ..cell });
    }
    let rows = super::rows(&trace, &job.plan());
    for row in rows.iter().filter(|row| row.mean.is_none()) {
        assert!(!row.guaranteed && row.half_width.is_none() && row.error.is_none(), "{row:?}");
    }
    assert_eq!(only(&rows, "mpi.time", Scope::Window, Some(5), Basis::Census).mean, None);
    assert!(only(&rows, "mpi.time", Scope::Window, Some(4), Basis::Census).guaranteed);
}

#[test]
fn what_was_drawn_is_held_against_everything() {
    let guided = "[[metric]]\nname = 'mpi.time'\nrole = 'guide'\n\
                  [[group]]\nname = 'A'\nmembers = '0-19'\nerror = 0.02\n";
    let verify =
        |extra: &str| Synthetic { config: format!("[output]\nverify = true\n{extra}{guided}"), ..job() };
    let sampled = "[sampling]\nsummaries = 'sampled'\nselection = 'predictive'\n";
    for (extra, basis) in [("", Basis::Trace), (sampled, Basis::Sampled)] {
        let job = verify(extra);
        let rows = all(&job);
        let (mut inside, mut sampled, mut of) = (0, 0, 0);
        for window in 0..12 {
            let row = only(&rows, "mpi.time", Scope::Window, Some(window), basis);
            let check = row.check.clone().unwrap();
            let truth = (0..20).map(|rank| job.mpi_ns(rank, window) as f64).sum::<f64>() / 20.0;
            assert!((check.truth.unwrap() / truth - 1.0).abs() < 1e-12);
            let is = (row.mean.unwrap() - truth).abs() <= 0.02 * truth * (1.0 + 1e-9);
            assert_eq!(check.inside, Some(is), "{row:?}");
            inside += u64::from(is);
            (sampled, of) = match row.kept < row.population {
                true => (sampled + u64::from(is), of + 1),
                false => (sampled, of),
            };
        }
        assert!(of == 8 && inside > 4 && inside < 12, "some are outside: {inside}");
        let run = only(&rows, "mpi.time", Scope::Run, None, basis).check.clone().unwrap();
        // Every window is as long as any other here.
        assert!((run.c_trace.unwrap() - inside as f64 / 12.0).abs() < 1e-12, "{run:?}");
        assert!((run.c_trace_sampled.unwrap() - sampled as f64 / 8.0).abs() < 1e-12, "{run:?}");
        assert_eq!((run.windows_inside, run.windows_checked), (Some(inside), Some(12)));
        // A metric that is no guide has a truth and no bound.
        let sent = only(&rows, "bytes.sent", Scope::Run, None, basis).check.clone().unwrap();
        assert_eq!((sent.truth, sent.inside, sent.c_trace), (Some(40.0), None, None));
    }
    assert!(all(&job()).iter().all(|row| row.check.is_none()));
    // The rest of a census is no truth, and no sample.
    let died = all(&Synthetic { killed: vec![3], ..verify(sampled) });
    let last = died.iter().filter(|row| (row.scope, row.window) == (Scope::Window, Some(11)));
    let [rest, drawn] = last.filter(|row| row.metric == "mpi.time").collect::<Vec<_>>()[..] else { panic!() };
    assert_eq!((rest.basis, drawn.basis, &rest.check), (Basis::Sampled, Basis::Sampled, &None));
    assert_eq!(drawn.check.as_ref().map(|check| check.truth), Some(None));
    let run = died.iter().filter(|row| row.scope == Scope::Run && row.metric == "mpi.time");
    let checked: Vec<Option<u64>> = run.filter_map(|row| Some(row.check.as_ref()?.windows_checked)).collect();
    assert_eq!(checked, [Some(11)]);
}

#[test]
fn a_job_that_died_promises_nothing_of_the_run() {
    let rows = all(&Synthetic { killed: (0..20).collect(), ..job() });
    assert!(only(&rows, "mpi.time", Scope::Update, Some(8), Basis::Census).guaranteed);
    let run = reported(&rows, Scope::Run, None);
    assert_eq!((run.guaranteed, run.kept, run.half_width), (false, 0, None));
}

#[test]
fn sampled_rows_come_from_the_sample_only() {
    let config = "[sampling]\nsummaries = 'sampled'\nselection = 'predictive'\n";
    let sampled = |extra: &str| all(&Synthetic { config: format!("{config}{extra}"), ..job() });
    let rows = sampled("");
    assert!(rows.iter().all(|row| row.basis == Basis::Sampled));
    let row = only(&rows, "mpi.time", Scope::Window, Some(4), Basis::Sampled);
    assert_eq!((row.population, row.kept), (20, 8));
    assert_eq!(row.guaranteed, row.error.unwrap() <= 0.08);
    // Sized for interval means, which do not bound a window.
    let rows = sampled("sizing = 'ampl-2008'\n");
    assert!(!only(&rows, "mpi.time", Scope::Window, Some(4), Basis::Sampled).guaranteed);
    assert!(only(&rows, "mpi.time", Scope::Window, Some(0), Basis::Sampled).guaranteed, "everyone is kept");
}

#[test]
fn groups_and_events_have_rows_of_their_own() {
    let config = "[[metric]]\nname = 'mpi.time'\nrole = 'guide'\n\
                  [[group]]\nname = 'few'\nmembers = '0-3'\nsample_size = 4\n";
    let rows = all(&Synthetic { config: config.into(), size: 5, ..job() });
    let of = |group: &str, basis| {
        let wanted = |row: &&Row| {
            row.group == group && row.metric == "mpi.time" && row.window == Some(4) && row.basis == basis
        };
        rows.iter().find(wanted).unwrap()
    };
    assert_eq!((of("few", Basis::Trace).population, of("few", Basis::Trace).kept), (4, 4));
    assert!(!of("few", Basis::Trace).guaranteed, "a fixed size is sized for no bound");
    assert!(of("few", Basis::Census).guaranteed);
    assert_eq!((of("all", Basis::Trace).population, of("all", Basis::Trace).kept), (16, 5));
}

#[test]
fn json_has_the_contract_s_fields() {
    let rows = all(&job());
    let row = only(&rows, "mpi.time", Scope::Run, None, Basis::Census);
    let json = serde_json::to_value(row).unwrap();
    let fields: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    let mut expected = [
        "window",
        "group",
        "stratum",
        "metric",
        "event",
        "population",
        "kept",
        "mean",
        "half_width",
        "confidence",
        "error",
        "scope",
        "basis",
        "guaranteed",
        "missing_windows",
        "coverage",
    ];
    expected.sort_unstable();
    assert_eq!(fields, expected);
    assert_eq!(
        (&json["scope"], &json["basis"], &json["window"]),
        (&"run".into(), &"census".into(), &().into())
    );
    let without = Row { mean: None, half_width: None, error: None, ..row.clone() };
    assert!(serde_json::to_value(without).unwrap()["mean"].is_null());
}

#[test]
fn a_window_that_the_run_s_end_cut_off_is_flagged() {
    let job = job();
    let partial = |trace: &ampl_trace::Trace, scope, window| {
        let row = super::rows(trace, &job.plan());
        let row = row.iter().find(|row| (row.scope, row.window) == (scope, window)).unwrap();
        serde_json::to_value(row).unwrap().get("partial").cloned()
    };
    let mut trace = job.trace();
    assert_eq!(partial(&trace, Scope::Window, Some(10)), Some(false.into()));
    assert_eq!(partial(&trace, Scope::Window, Some(11)), Some(true.into()));
    assert_eq!(partial(&trace, Scope::Update, Some(8)), None);
    assert_eq!(partial(&trace, Scope::Run, None), None);
    // It is enough that one rank came to its end.
    trace.ranks[7].windows.entries_mut().truncate(11);
    trace.ranks[7].windows.entries_mut()[10].partial = true;
    assert_eq!(partial(&trace, Scope::Window, Some(10)), Some(true.into()));
    trace
        .ranks
        .iter_mut()
        .flat_map(|rank| rank.windows.entries_mut())
        .for_each(|window| window.partial = false);
    assert_eq!(partial(&trace, Scope::Window, Some(11)), Some(false.into()));
}

#[test]
fn what_was_not_stored_is_not_estimated_from() {
    let of =
        |what: &str| all(&Synthetic { config: format!("[output]\nrank_summaries = '{what}'\n"), ..job() });
    let rows = of("sample");
    assert!(!rows.is_empty() && rows.iter().all(|row| row.basis == Basis::Sampled));
    let row = only(&rows, "mpi.time", Scope::Window, Some(4), Basis::Sampled);
    assert!(row.half_width.unwrap() > 0.0 && row.kept == 8, "{row:?}");
    assert_eq!(of("off"), []);
}

/// Windows are dropped by their ranks' waiting, the least first: numbers printed of the run are true of all of it.
#[test]
fn what_is_dropped_by_load_leaves_no_wrong_number() {
    let job = Synthetic { windows: 24, ..job() };
    let (mut unknown, mut part) = (0, 0);
    for seed in 0..40u64 {
        let mut trace = job.trace();
        let noise = |rank: u64, window: u64| {
            let mixed =
                (seed << 40 | rank << 20 | window).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            ((mixed ^ mixed >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) as f64 / f64::from(1 << 24)
        };
        // The busy ranks and the busy phase go by the seed, and so does from which load on nothing is measured.
        let threshold = 0.05 + 0.45 * noise(99, 99);
        let (mut all, mut compute) = ([0.0; 3], vec![0.0; 20]);
        for rank in &mut trace.ranks {
            let number = u64::from(rank.process.rank);
            for window in rank.windows.entries_mut() {
                let busy = window.window % 6 > seed % 6 || number % 5 == seed % 5;
                let share = if busy {
                    noise(number, window.window)
                } else {
                    0.5 + 0.5 * noise(number, window.window)
                };
                let wall = WINDOW_NS as f64 - 1000.0;
                let mpi = (wall * share).floor();
                for (slot, time) in [WINDOW_NS as f64, mpi, wall - mpi].into_iter().enumerate() {
                    put_cell(window, slot, Cell::one(time));
                    all[slot] += time;
                }
                compute[number as usize] += wall - mpi;
                if share < threshold {
                    window.cells = Cells::default();
                }
            }
            rank.process.steps = vec![Step { level: Level::Off, ..Step::default() }];
        }
        let count = 20.0 * 24.0;
        for row in super::rows(&trace, &job.plan()).iter().filter(|row| row.scope == Scope::Run) {
            let slot = ["wall", "mpi.time", "compute.time"].iter().position(|name| *name == row.metric);
            let Some(truth) = slot.map(|slot| all[slot] / count) else { continue };
            let holds = |low: f64, high: f64| low <= truth * (1.0 + 1e-9) && truth <= high * (1.0 + 1e-9);
            if let (Some(low), Some(high)) = (row.low, row.high) {
                assert!(holds(low, high), "{seed}: {truth} {row:?}");
            }
            if let (Some(mean), Some(half)) = (row.mean, row.half_width) {
                assert!(row.drawn || holds(mean - half, mean + half), "{seed}: {truth} {row:?}");
                assert!(row.coverage >= 0.999, "{row:?}");
            }
            // Nine tenths of the time need not hold nine tenths of what was measured in it.
            let narrow = row.low.zip(row.high).is_some_and(|(low, high)| low >= 0.9 * high);
            let shown = row.coverage >= 0.999 || row.coverage >= 0.9 && (narrow || row.low.is_none());
            assert_eq!(row.mean.is_some(), shown, "{row:?}");
        }
        let run = crate::efficiency::run_times(&trace);
        let share = run.coverage.share;
        unknown += u32::from(share < 0.9);
        part += u32::from((0.9..0.999).contains(&share));
        let Some(bounds) = run.bounds else { continue };
        let most = compute.iter().copied().fold(0.0, f64::max);
        let mean = compute.iter().sum::<f64>() / 20.0;
        let length = 24.0 * (WINDOW_NS as f64 - 1000.0);
        for ([low, high], truth) in [
            (bounds.parallel, mean / length),
            (bounds.load_balance, mean / most),
            (bounds.communication, most / length),
            (bounds.mpi, all[1] / (all[1] + all[2])),
        ] {
            assert!(low - 1e-9 <= truth && truth <= high + 1e-9, "{seed}: {truth} {bounds:?}");
        }
    }
    assert!(unknown > 10 && unknown + part > 30, "{unknown} {part}");
}
