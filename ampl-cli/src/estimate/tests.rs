use ampl_core::stats::Basis;

use super::rows::{Row, Scope, rows};
use crate::synthetic::{Synthetic, WINDOW_NS};

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
        // Not a guide: exact, but nothing was promised.
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
    let row = only(&rows, "mpi.time", Scope::Window, Some(11), Basis::Census);
    assert_eq!((row.population, row.kept, row.guaranteed), (20, 19, false));
    assert!(only(&rows, "mpi.time", Scope::Window, Some(10), Basis::Census).guaranteed);
    assert!(!only(&rows, "mpi.time", Scope::Update, Some(8), Basis::Census).guaranteed);
    assert!(!only(&rows, "mpi.time", Scope::Run, None, Basis::Census).guaranteed);
}

#[test]
fn a_job_that_died_promises_nothing_of_the_run() {
    let rows = all(&Synthetic { killed: (0..20).collect(), ..job() });
    assert!(only(&rows, "mpi.time", Scope::Update, Some(8), Basis::Census).guaranteed);
    assert!(!only(&rows, "mpi.time", Scope::Run, None, Basis::Census).guaranteed);
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
fn what_was_not_stored_is_not_estimated_from() {
    let of =
        |what: &str| all(&Synthetic { config: format!("[output]\nrank_summaries = '{what}'\n"), ..job() });
    let rows = of("sample");
    assert!(!rows.is_empty() && rows.iter().all(|row| row.basis == Basis::Sampled));
    let row = only(&rows, "mpi.time", Scope::Window, Some(4), Basis::Sampled);
    assert!(row.half_width.unwrap() > 0.0 && row.kept == 8, "{row:?}");
    assert_eq!(of("off"), []);
}
