//! The page of a comparison, as a browser without a network shows it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use ampl_tests::browser::Browser;
use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::ampl;
use ampl_tests::process::{self, Finished};
use ampl_tests::run::{Form, Monitored, monitor};

use crate::report::is_drawn;

fn run(job: &Job) -> Monitored {
    monitor(job, "", Form::Run).success()
}

/// `ampl diff` of the runs with a page in a file of its own.
fn page(base: &Monitored, new: &[&Monitored], options: &[&str]) -> (PathBuf, Finished) {
    let file = base.scratch.path().join("diff.html");
    let mut command = Command::new(ampl());
    command.arg("diff").arg(&base.run).arg("--").args(new.iter().map(|run| &run.run));
    let done = process::run(command.arg("--html").arg(&file).args(options), Duration::from_secs(120));
    (file, done)
}

#[test]
fn a_browser_shows_what_changed_and_both_runs() {
    let job = Job::of(Mpi::OpenMpi, 4, "compared", &["20", "20000"]);
    let base = run(&job);
    let new = run(&job.clone().with("COMPARED_MORE", "1"));
    let (file, done) = page(&base, &[&new], &["--fail-if", "messages!=0"]);
    assert_eq!(done.status.code(), Some(5), "{}", done.stderr);
    let text = fs::read_to_string(&file).expect("a page");
    assert!(text.len() < 2_000_000 && text.contains("default-src 'none'"), "{} bytes", text.len());
    let mut browser = Browser::start();
    browser.open(&file, [1400, 900]);
    let drawn = [
        "#course-map",
        "#side-0 [data-heat]",
        "#side-1 [data-heat]",
        "#side-0 [data-ranks]",
        "#side-1 [data-ranks]",
        "#side-scale",
    ];
    let shows_all = |browser: &mut Browser| {
        for canvas in drawn {
            browser.wait(&is_drawn(&format!("document.querySelector('{canvas}')")));
        }
        let wide = browser.value("document.documentElement.scrollWidth - window.innerWidth");
        assert!(wide.as_f64().is_some_and(|wide| wide <= 0.0), "{wide} pixels too wide");
    };
    shows_all(&mut browser);
    let shown = |browser: &mut Browser, selector: &str| {
        let found = browser.value(&format!("document.querySelector('{selector}').textContent"));
        found.as_str().unwrap_or_default().to_owned()
    };
    // The one message more of each step is among what changed.
    assert!(shown(&mut browser, "h1").contains("fail: 1 rule"));
    assert!(shown(&mut browser, "#rules").contains("+25 %"), "{}", shown(&mut browser, "#rules"));
    let changed = shown(&mut browser, "#structure tbody");
    assert!(changed.contains("calls of MPI_Send") && changed.contains("only in new"), "{changed}");
    assert!(shown(&mut browser, "#structure tbody tr.changed").contains("exact"), "{changed}");

    // A range that is dragged over one run's map holds for both.
    let before = ["#side-0 [data-ranks]", "#side-1 [data-ranks]"]
        .map(|canvas| browser.value(&format!("document.querySelector('{canvas}').toDataURL()")));
    browser.value("document.querySelector('#side-1 [data-heat]').scrollIntoView({block: 'center'})");
    let corner = browser.value(
        "(() => { const box = document.querySelector('#side-1 [data-heat]').getBoundingClientRect(); \
         return [box.left, box.top, box.width, box.height]; })()",
    );
    let of = |index: usize| corner[index].as_f64().expect("a number");
    let point = |share: f64| [of(0) + 60.0 + share * (of(2) - 70.0), of(1) + 0.2 * of(3)];
    browser.drag(point(0.2), point(0.6));
    browser
        .wait("time.selection !== null && !document.querySelector('#side-0 [data-factor=parallel]').hidden");
    for (side, before) in before.iter().enumerate() {
        let now = browser.value(&format!("document.querySelector('#side-{side} [data-ranks]').toDataURL()"));
        assert_ne!(now, *before, "side {side}");
        assert!(
            shown(&mut browser, &format!("#side-{side} [data-factor=parallel]")).contains("in the range: ")
        );
    }
    assert_ne!(shown(&mut browser, "#range"), "whole runs");
    let selected = browser.value("JSON.stringify(time.selection)");
    browser.key("z", false);
    browser.wait("time.selection === null");
    assert_eq!(browser.value("JSON.stringify(time.view)"), selected);
    browser.key("Escape", false);
    assert_eq!(shown(&mut browser, "#range"), "whole runs");
    browser.key("ArrowRight", false);
    assert!(
        shown(&mut browser, "#readout").contains("base ") && shown(&mut browser, "#readout").contains("new ")
    );
    browser.key("ArrowRight", true);
    browser.wait("time.selection !== null");

    for size in [[1400, 900], [820, 900], [390, 800]] {
        browser.resize(size);
        for theme in ["dark", "light"] {
            browser.value(&format!("setTheme('{theme}')"));
            shows_all(&mut browser);
        }
    }
    let asked = browser.requested();
    assert!(asked.len() == 1 && asked[0].starts_with("file://"), "{asked:?}");
    assert!(browser.complaints().is_empty(), "{:?}", browser.complaints());

    // Several runs a side: one is shown, and named. Runs that cannot be compared have a page, too.
    let (file, done) = page(&base, &[&new, &base, &new], &[]);
    assert_eq!(done.status.code(), Some(0), "{}", done.stderr);
    assert!(fs::read_to_string(&file).expect("a page").contains("the run of median length of 3 runs"));
    let other = run(&Job::of(Mpi::OpenMpi, 2, "compared", &["5", "1000"]));
    let (file, done) = page(&base, &[&other], &[]);
    assert_eq!(done.status.code(), Some(7), "{}", done.stderr);
    assert!(
        fs::read_to_string(&file).expect("a page").contains("other ranks: 4 in the base, 2 in the new runs")
    );
}

#[test]
fn a_page_that_cannot_be_written_is_an_error() {
    let base = run(&Job::of(Mpi::OpenMpi, 2, "compared", &["3", "1000"]));
    let mut command = Command::new(ampl());
    command.arg("diff").args([&base.run, &base.run]).args(["--html", "/no/such/place.html"]);
    let done = process::run(&mut command, Duration::from_secs(60));
    assert_eq!(done.status.code(), Some(1), "{}", done.stderr);
    assert!(done.stderr.contains("/no/such/place.html"), "{}", done.stderr);
}
