use std::path::Path;

use ampl_analysis::comparison::{Options, Profile, Rule, Spread, compare};
use ampl_reader::model::{End, EndBasis};
use ampl_reader::{Run, Trace};
use ampl_testkit::synthetic::Synthetic;

use crate::{Side, Source, write, write_comparison};

fn page(trace: &Trace) -> String {
    let mut page = Vec::new();
    write(&mut page, trace, &Source { run: Path::new("a run"), has_file: true, calls: None }).unwrap();
    String::from_utf8(page).unwrap()
}

/// The page of `job` with what its calls show.
fn whole_page(job: &Synthetic) -> String {
    let (mut page, run) = (Vec::new(), Run::from(job.trace()));
    let source = Source { run: Path::new("a run"), has_file: true, calls: Some(&run) };
    write(&mut page, &job.trace(), &source).unwrap();
    String::from_utf8(page).unwrap()
}

#[test]
fn every_panel_of_a_whole_run_is_there() {
    let page = whole_page(&Synthetic { ranks: 20, windows: 24, ..Synthetic::default() });
    for panel in [
        "verdict",
        "efficiency",
        "missing",
        "strip",
        "heat",
        "ranks",
        "strata",
        "sites",
        "estimates",
        "sizes",
        "matrix",
        "timeline",
        "waits",
        "loops",
        "topology",
        "own",
        "settings",
    ] {
        assert!(page.contains(&format!("<section id=\"{panel}\"")), "{panel}");
    }
    assert!(page.len() < 1_000_000, "{}", page.len());
    assert!(page.contains("20 ranks on 5 hosts") && page.contains("Permission is hereby granted"));
    assert!(page.contains("&#x27;a run&#x27;"), "commands name the run");
}

#[test]
fn panels_without_data_are_left_out() {
    let page = page(&Trace::default());
    for panel in
        ["strip", "heat", "ranks", "estimates", "sizes", "matrix", "timeline", "waits", "loops", "topology"]
    {
        assert!(!page.contains(&format!("<section id=\"{panel}\"")), "{panel}");
    }
    assert!(page.contains("INCOMPLETE") && page.contains("No window was closed"));
}

#[test]
fn nothing_of_the_program_becomes_part_of_the_page() {
    let mut trace = Synthetic::default().trace();
    let hostile = "</script><script>alert(1)</script><img src=x onerror=alert(2)>{{ policy }}";
    trace.run.command = vec![hostile.into()];
    trace.run.mpi_library = hostile.into();
    trace.ranks.iter_mut().for_each(|rank| rank.process.host = hostile.into());
    let page = page(&trace);
    assert!(!page.contains("<script>alert") && !page.contains("<img"), "a name became a tag");
    // The page's own: data and script.
    assert_eq!((page.matches("<script").count(), page.matches("</script>").count()), (2, 2));
    assert!(page.contains("alert(1)") && page.contains("{{ policy }}"), "it is shown");
    assert!(!page.contains("style=\"") && !page.contains("onclick"), "the policy forbids these");
}

#[test]
fn a_large_job_is_a_small_page() {
    let page = whole_page(&Synthetic { ranks: 210, windows: 40, ..Synthetic::default() });
    assert!(page.len() < 2_000_000, "{}", page.len());
}

/// Rows of a large job have ranks of one stratum, so that its strata do not blur.
#[test]
fn a_job_of_many_ranks_is_shown_by_its_strata() {
    let page = whole_page(&Synthetic { ranks: 300, windows: 12, size: 40, ..Synthetic::default() });
    assert!(page.len() < 2_000_000, "{}", page.len());
    let data = data(&page);
    let list = |of: &serde_json::Value| of.as_array().unwrap().clone();
    let number = |of: &serde_json::Value| of.as_u64().unwrap() as usize;
    let [rows, sizes, stratum_of] =
        [&data["grid"]["rows"], &data["grid"]["sizes"], &data["stratum_of"]].map(list);
    assert!(list(&data["strata"]).len() > 1 && data["grid"]["by_strata"] == true, "{}", data["strata"]);
    assert!(rows.len() <= 200 && sizes.iter().map(number).sum::<usize>() == 300, "{}", rows.len());
    for [first, last] in rows.iter().map(|row| [number(&row[0]), number(&row[1])]) {
        assert_eq!(stratum_of[first], stratum_of[last], "{first} {last}");
    }
}

#[test]
fn a_run_that_went_on_behind_its_last_window_is_no_whole_run() {
    let mut trace = Synthetic::default().trace();
    let said = "The charts end at 120 ms, with the last window that was closed. The run went on until 20 s";
    assert!(!page(&trace).contains("The charts end at"));
    trace.run.end = Some(End { at_ns: 20_000_000_000, basis: EndBasis::Now });
    assert!(page(&trace).contains(said));
}

#[test]
fn a_command_is_named_for_one_finding() {
    let mut trace = Synthetic::default().trace();
    // A device, and too few ranks: the same command tells more of both.
    trace.run.ranks = 80;
    trace.run.metadata.libraries = Some(vec![Default::default()]);
    trace.run.metadata.libraries.as_mut().unwrap()[0].path = "/lib/libcuda.so.1".into();
    let findings = ampl_analysis::verdict::of(&trace);
    assert!(findings.len() == 2 && findings[0].next == findings[1].next, "{findings:?}");
    let page = page(&trace);
    let (_, verdict) = page.split_once("<section id=\"verdict\"").unwrap();
    let verdict = verdict.split_once("</section>").unwrap().0;
    assert_eq!((verdict.matches("Rests on").count(), verdict.matches("More: ").count()), (2, 1));
}

/// The values that the page's script reads.
fn data(page: &str) -> serde_json::Value {
    let (_, rest) = page.split_once("id=\"data\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn charts_have_the_values_of_the_analyses() {
    let job = Synthetic { ranks: 20, windows: 24, size: 8, ..Synthetic::default() };
    let trace = job.trace();
    let page = whole_page(&job);
    let data = data(&page);
    let length = |of: &serde_json::Value| of.as_array().map_or(0, Vec::len);
    assert_eq!((&data["ranks"], &data["windows"]), (&20.into(), &24.into()));
    assert_eq!((length(&data["grid"]["rows"]), length(&data["grid"]["columns"])), (20, 24));
    let rows = ampl_analysis::efficiency::rows(&trace);
    let parallel = data["strip"]["parallel"].as_array().unwrap();
    assert_eq!(parallel.len(), 24);
    for (row, value) in rows[1..].iter().zip(parallel) {
        assert!((row.parallel.unwrap() - value.as_f64().unwrap()).abs() < 1e-4);
    }
    // A ring: every rank sends to the next.
    let cells = data["matrix"]["cells"].as_array().unwrap();
    let next: Vec<u64> = cells.iter().map(|cell| (cell[0].as_u64().unwrap() + 1) % 20).collect();
    assert!(cells.iter().zip(next).all(|(cell, next)| cell[1] == next && cell[2] == 24), "{cells:?}");
    assert!(data["drawings"][0]["name"].as_str().unwrap().contains("ring of 20"), "{}", data["drawings"]);
    let shape = &data["drawings"][0];
    assert_eq!((length(&shape["places"]), length(&shape["pairs"])), (20, 20));
    assert_eq!(length(&data["timeline"]["ranks"]), 20);
    assert!(page.contains("24 × {"), "the loop of 24 turns");
    // All of the first update, then eight.
    assert_eq!([&data["sizes"][0]["sizes"][0], &data["sizes"][0]["sizes"][1]], [20, 8]);
    let estimates = data["estimates"].as_array().unwrap();
    assert!(estimates.iter().any(|of| of["name"] == "mpi.time of group all" && of["unit"] == "ns"));
    let points =
        |of: &serde_json::Value| [&of["windows"], &of["mean"], &of["half"], &of["bound"]].map(length);
    assert!(
        estimates.iter().all(|of| points(of)[0] > 20 && points(of) == [points(of)[0]; 4]),
        "{estimates:?}"
    );
    assert_eq!((length(&data["stratum_of"]), length(&data["host_of"]), length(&data["hosts"])), (20, 20, 5));
}

/// The page of two runs, which a rule gates.
fn difference(base: &Trace, new: &Trace) -> String {
    let options = Options {
        confidence: 0.95,
        noise: Some(0.01),
        spread: Spread::default(),
        strata: Vec::new(),
        rules: vec![Rule::parse("mpi.time>5%").unwrap()],
        inconclusive: None,
        allow: false,
    };
    let found = compare(&[Profile::of(base)], &[Profile::of(new)], &options).unwrap();
    let side = |trace, run| Side { trace, run: Path::new(run), runs: 1 };
    let mut page = Vec::new();
    write_comparison(&mut page, &found, [side(base, "old run"), side(new, "new run")]).unwrap();
    String::from_utf8(page).unwrap()
}

#[test]
fn both_sides_and_what_changed_are_on_one_page() {
    let base = Synthetic { ranks: 20, windows: 24, ..Synthetic::default() };
    let page = difference(&base.trace(), &Synthetic { slowdown: 0.5, ..base.clone() }.trace());
    for part in ["rules", "facts", "whole", "times", "course", "side-0", "side-1", "scale", "method"] {
        assert!(page.contains(&format!("<section id=\"{part}\"")), "{part}");
    }
    assert!(page.contains("<title>fail: 1 rule, 1 new run against 1 of the base - ampl diff</title>"));
    assert!(page.contains("default-src 'none'") && !page.contains("style=\""), "policy");
    assert!(
        page.contains("&#x27;old run&#x27;") && page.contains("&#x27;new run&#x27;"),
        "commands name the runs"
    );
    assert!(page.len() < 1_000_000, "{}", page.len());
}

#[test]
fn sides_that_cannot_be_compared_are_shown_nevertheless() {
    let small = Synthetic { ranks: 4, ..Synthetic::default() };
    let page = difference(&Synthetic::default().trace(), &small.trace());
    assert!(page.contains("other ranks: 8 in the base, 4 in the new runs"));
    assert!(page.contains("id=\"side-1\"") && page.contains("<h2>No quantities</h2>"), "sides");
    // Runs in which nothing was measured.
    let page = difference(&Trace::default(), &Trace::default());
    assert!(!page.contains("id=\"course\"") && page.contains("id=\"side-0\""));
}

#[test]
fn names_of_compared_programs_are_shown_and_not_run() {
    let hostile = "</script><script>alert(1)</script>";
    let named = |mut trace: Trace| {
        trace.run.command = vec![hostile.into()];
        trace.ranks.iter_mut().for_each(|rank| rank.process.host = hostile.into());
        trace
    };
    let page = difference(&named(Synthetic::default().trace()), &Synthetic::default().trace());
    assert!(!page.contains("<script>alert") && page.contains("alert(1)"));
    assert_eq!((page.matches("<script").count(), page.matches("</script>").count()), (2, 2));
}
