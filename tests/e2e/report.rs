//! The report of a run, as a browser without a network shows it.

use std::fs;
use std::path::{Path, PathBuf};

use ampl_tests::browser::Browser;
use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::ampl;
use ampl_tests::run::{Form, Monitored, monitor};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

const RANKS: u32 = 64;

/// Most bytes of a report without the times of calls.
const MOST: usize = 2_000_000;

/// A name that would run, if it were taken for part of the page.
const HOSTILE: &str =
    "</script><script>document.title='ran'</script><img src=x onerror=\"document.title='ran'\">";

/// The report of `run`, in a file of its own.
fn report(run: &Monitored) -> PathBuf {
    let file = run.scratch.path().join("report.html");
    let mut command = std::process::Command::new(ampl());
    command.arg("report").arg(&run.run).arg("-o").arg(&file);
    ampl_tests::process::run(&mut command, std::time::Duration::from_secs(120)).success();
    file
}

/// Three strata of ranks, for about three seconds.
fn three_strata() -> Monitored {
    let job = Job::of(Mpi::OpenMpi, RANKS, "planted", &["strata", "40", HOSTILE]);
    monitor(&job, "", Form::Run).success()
}

/// Expression that is true of a canvas with something on it: some points differ from the one in the corner.
pub fn is_drawn(canvas: &str) -> String {
    format!(
        "(() => {{ const of = {canvas}; if (!of || !of.width || !of.height) return false; \
         const all = new Uint32Array(of.getContext('2d').getImageData(0, 0, of.width, of.height).data.buffer); \
         return all.some(point => point !== all[0]); }})()"
    )
}

/// Points of the window a quarter and three quarters along the element's plot.
fn along(browser: &mut Browser, selector: &str) -> [[f64; 2]; 2] {
    browser.value(&format!("document.querySelector('{selector}').scrollIntoView({{block: 'center'}})"));
    let corner = browser.value(&format!(
        "(() => {{ const box = document.querySelector('{selector}').getBoundingClientRect(); \
         return [box.left, box.top, box.width, box.height]; }})()"
    ));
    let of = |index: usize| corner[index].as_f64().expect("a number");
    let point = |share: f64| [of(0) + share * of(2), of(1) + 0.4 * of(3)];
    [point(0.25), point(0.75)]
}

fn text(browser: &mut Browser, selector: &str) -> String {
    let value = browser.value(&format!("document.querySelector('{selector}').textContent"));
    value.as_str().unwrap_or_default().to_owned()
}

fn shows_everything(browser: &mut Browser) {
    for canvas in [
        "#heat-map",
        "#heat-scale",
        "#rank-map",
        "#matrix-map",
        "#timeline-map",
        "#topology canvas",
        "[data-chart=strip] canvas",
        "[data-chart=estimates] canvas",
        "[data-chart=sizes] canvas",
    ] {
        browser.wait(&is_drawn(&format!("document.querySelector('{canvas}')")));
    }
    let empty = browser.value(
        "[...document.querySelectorAll('main section')].filter(of => of.getBoundingClientRect().height < 40).map(of => of.id)",
    );
    assert_eq!(empty, Value::Array(Vec::new()), "sections without content");
    // Nothing is wider than the window.
    let wide = browser.value("document.documentElement.scrollWidth - window.innerWidth");
    assert!(wide.as_f64().is_some_and(|wide| wide <= 0.0), "{wide} pixels too wide");
}

#[test]
fn a_browser_draws_every_panel_and_follows_the_range() {
    let run = three_strata();
    let file = report(&run);
    let page = fs::read_to_string(&file).expect("a page");
    assert!(page.len() < MOST, "{} bytes", page.len());
    assert!(page.contains("default-src 'none'") && !page.contains("style=\""), "policy");
    let mut browser = Browser::start();
    browser.open(&file, [1400, 900]);
    shows_everything(&mut browser);

    // The verdict is that of the command: who is named on two processors is the machine's choice.
    let verdict = text(&mut browser, "#verdict");
    let findings = run.info()["verdict"].as_array().cloned().unwrap_or_default();
    assert!(!findings.is_empty());
    for finding in &findings {
        assert!(verdict.contains(finding["text"].as_str().expect("a sentence")), "{finding}: {verdict}");
    }
    let rows = browser.value("document.querySelectorAll('#site-table tbody tr').length");
    assert!(rows.as_u64().is_some_and(|rows| rows >= 2), "{rows}");

    // A range that is dragged recomputes numbers, bars and table; zoom and the whole run follow.
    let whole = browser.value("JSON.stringify(state.view)");
    let before = browser.value("document.querySelector('#rank-map').toDataURL()");
    let [from, to] = along(&mut browser, "[data-chart=strip] .u-over");
    browser.drag(from, to);
    browser.wait("state.selection !== null && !document.querySelector('#factor-parallel .selected').hidden");
    assert!(text(&mut browser, "#factor-parallel").contains("in the range: "));
    assert!(text(&mut browser, "#ranks h2").contains("in windows "));
    assert_ne!(browser.value("document.querySelector('#rank-map').toDataURL()"), before);
    let selected = browser.value("JSON.stringify(state.selection)");
    let timeline = "document.querySelector('#timeline-map').toDataURL()";
    let before = browser.value(timeline);
    browser.key("z", false);
    browser.wait("state.selection === null");
    assert_eq!(browser.value("JSON.stringify(state.view)"), selected);
    assert_ne!(browser.value(timeline), before, "the timeline zooms, too");
    // Time that was not sampled is time of its own: hatched, in no function's place.
    assert!(text(&mut browser, "#timeline-key").contains("not sampled"));
    let shares =
        browser.value("[...timeIn(0, grid.edges[0], grid.edges[columns]).values()].reduce((a, b) => a + b)");
    let length = browser.value("grid.edges[columns] - grid.edges[0]");
    let of_all = shares.as_f64().expect("seconds") / length.as_f64().expect("seconds");
    assert!((0.9..1.02).contains(&of_all), "{of_all} of the time is shown");
    browser.key("Escape", false);
    assert_eq!(browser.value("JSON.stringify(state.view)"), whole);
    assert_eq!(text(&mut browser, "#range"), "whole run");

    // Loops and waits are there as text.
    assert!(text(&mut browser, "#loops").contains(" × {"), "{}", text(&mut browser, "#loops"));
    // Which waits are known is the machine's choice, too: the first is that of the query.
    let waits = text(&mut browser, "#waits");
    match crate::waits::waits(&run).first() {
        Some(first) => {
            assert!(waits.contains(first["function"].as_str().expect("a name")), "{first}: {waits}")
        }
        None => assert!(waits.contains("No waiting is known of"), "{waits}"),
    }

    // The same on the map, and by keys.
    let [from, to] = along(&mut browser, "#heat-map");
    browser.drag(from, to);
    browser.wait("state.selection !== null");
    browser.key("Escape", false);
    browser.value("setCursor(null)");
    browser.key("ArrowRight", false);
    browser.key("ArrowRight", false);
    assert_eq!(browser.value("state.cursor"), 1);
    assert!(text(&mut browser, "#readout").starts_with("window"), "the cursor is read out");
    browser.key("ArrowRight", true);
    assert_eq!(browser.value("JSON.stringify(state.selection)"), "[1,2]");
    let range = text(&mut browser, "#range");
    assert!(range.starts_with("window"), "{range}");

    // Both themes, and narrow windows.
    for size in [[1400, 900], [820, 900], [390, 800]] {
        browser.resize(size);
        for theme in ["dark", "light"] {
            browser.value(&format!("setTheme('{theme}')"));
            shows_everything(&mut browser);
        }
    }

    // On paper; the dark theme is there again afterwards.
    browser.value("setTheme('dark')");
    let printed = browser.call("Page.printToPDF", json!({"printBackground": true}));
    let printed = STANDARD.decode(printed["data"].as_str().expect("a document")).expect("base64");
    let pages = printed.windows(12).filter(|part| part.starts_with(b"/Type /Page") && part[11] != b's');
    assert!(printed.starts_with(b"%PDF") && pages.count() > 1, "{} bytes", printed.len());
    browser.wait("document.documentElement.dataset.theme === 'dark'");

    // Names of the program are shown, not run; nothing was asked of a network.
    assert!(text(&mut browser, "h1").contains(HOSTILE));
    let title = browser.value("document.title");
    assert!(title.as_str().is_some_and(|title| title.ends_with("ampl report")), "{title}");
    let asked = browser.requested();
    assert!(asked.len() == 1 && asked[0].starts_with("file://"), "{asked:?}");
    assert!(browser.complaints().is_empty(), "{:?}", browser.complaints());

    // Without scripts there are tables, and no empty charts.
    browser.call("Emulation.setScriptExecutionDisabled", json!({"value": true}));
    browser.open(&file, [1400, 900]);
    browser.wait("typeof state === 'undefined' && document.readyState === 'complete'");
    let tables = browser.value("[...document.querySelectorAll('noscript table')].map(of => of.rows.length)");
    let tables: Vec<u64> = serde_json::from_value(tables).expect("numbers");
    assert!(tables.len() == 2 && tables[1] == u64::from(RANKS) + 1, "{tables:?}");
    assert_eq!(browser.value("document.getElementById('heat').getBoundingClientRect().height"), 0);
}

#[test]
fn a_report_goes_where_it_is_asked_for() {
    let job = Job::of(Mpi::OpenMpi, 4, "stencil2", &["20"]);
    let recorded = monitor(&job, "", Form::Run).success();
    let scratch = ampl_tests::place::Scratch::new("report");
    let run = scratch.path().join("run");
    fs::create_dir(&run).expect("a directory");
    fs::copy(recorded.run.join("trace.ampl"), run.join("trace.ampl")).expect("a run");
    let written = |arguments: &[&Path]| {
        let mut command = std::process::Command::new(ampl());
        command.arg("report").args(arguments).current_dir(scratch.path());
        ampl_tests::process::run(&mut command, std::time::Duration::from_secs(60))
    };
    for (arguments, file) in [
        (vec![Path::new("run")], "run/report.html"),
        (vec![Path::new("run/trace.ampl")], "run/report.html"),
        (vec![Path::new("run"), Path::new("-o"), Path::new("own.html")], "own.html"),
    ] {
        let _ = fs::remove_file(scratch.path().join(file));
        let done = written(&arguments).success();
        assert_eq!(done.stdout.trim(), file);
        let page = fs::read_to_string(scratch.path().join(file)).expect("a page");
        assert!(page.contains("4 ranks"), "{file}");
    }
    let missing = written(&[Path::new("nowhere")]);
    assert_eq!(missing.status.code(), Some(4), "{}", missing.stderr);
    let place = written(&[&run, Path::new("-o"), Path::new("no/such/place.html")]);
    assert_eq!(place.status.code(), Some(1), "{}", place.stderr);
    assert!(place.stderr.contains("no/such/place.html"), "{}", place.stderr);
}
