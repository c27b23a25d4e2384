//! Numbers of partly measured runs, compared with the program's own clock in the same run.

use ampl_tests::job::{Job, Mpi};
use ampl_tests::process::{alone, undisturbed};
use ampl_tests::run::{Form, Monitored, monitor, number};
use serde_json::Value;

/// Difference allowed for the clocks of program and ampl, and for ampl's time within the program's.
const SLACK: f64 = 0.02;

/// Time in MPI and total time of each rank, nanoseconds, from lines `rank R: MPI_NS of WALL_NS`.
fn clocked(run: &Monitored) -> Vec<[f64; 2]> {
    let lines = run.finished.stdout.lines().filter_map(|line| line.strip_prefix("rank ")?.split_once(": "));
    let times = lines.map(|(_, times)| times.split_once(" of ").expect("two times"));
    times.map(|(mpi, wall)| [mpi, wall].map(|text| text.trim().parse().expect("a number"))).collect()
}

/// The line of the summary that begins with `label`, and those that continue it.
fn line(run: &Monitored, label: &str) -> String {
    let mut lines = run.finished.stderr.lines().skip_while(|line| !line.trim_start().starts_with(label));
    let first = lines.next().unwrap_or_else(|| panic!("no {label}: {}", run.finished.stderr));
    let more = lines.take_while(|line| line.starts_with("                      "));
    std::iter::once(first).chain(more).map(str::trim).collect::<Vec<_>>().join(" ")
}

/// Title of the table of call sites, and what its column of MPI time has.
fn table(summary: &str) -> (String, Vec<String>) {
    let lines: Vec<&str> = summary.lines().collect();
    let head = lines.iter().position(|line| line.contains(" MPI time per call")).expect("a table");
    let end = lines[head].find(" MPI time per call").expect("it has one") + " MPI time".len();
    let rows = lines[head + 1..].iter().take_while(|line| line.starts_with("  MPI_"));
    let cells = rows.map(|row| row[end - 9..end].trim().to_owned());
    // A long title has a line of its own.
    (lines[head - 1..=head].join(" "), cells.collect())
}

/// The percentages in `text`, as shares.
fn percentages(text: &str) -> Vec<f64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let of = words.windows(2).filter(|pair| pair[1].starts_with('%'));
    of.filter_map(|pair| pair[0].parse::<f64>().ok()).map(|percent| percent / 100.0).collect()
}

#[track_caller]
fn contains(bounds: &Value, truth: f64, what: &str) {
    let [low, high] = [0, 1].map(|end| number(&bounds[end]));
    assert!(low - SLACK <= truth && truth <= high + SLACK, "{what}: {truth} is not in {bounds}");
}

/// A run in which calls of some rank were only counted: a busy machine may leave a rank too few of them.
fn stepped_down(job: &Job) -> Monitored {
    let config = "[window]\nmarker = \"period:100ms\"\n[agent]\nmax_overhead = \"0.1%\"\n\
                  max_structure_overhead = \"0.1%\"\n";
    let run = || monitor(job, config, Form::Run).success();
    let has_stepped = |run: &Monitored| {
        let steps = &run.info()["overhead"]["steps"];
        steps.as_array().expect("an array").iter().any(|step| step["level"] == "off")
    };
    let _machine = alone();
    (0..4).map(|_| run()).find(has_stepped).expect("it calls too often to be measured throughout")
}

/// Every interval of the run contains what the program clocked, or there is none.
fn what_is_said_is_true(mpi: Mpi, ranks: u32, seed: u32, who: &str) {
    let run = stepped_down(&Job::of(mpi, ranks, "halves", &["60", "1200", &seed.to_string(), who]));
    let (info, stderr) = (run.info(), &run.finished.stderr);
    let share = number(&info["coverage"]);
    let clocks = clocked(&run);
    let sum = |of: usize| clocks.iter().map(|times| times[of]).sum::<f64>();
    let in_mpi = sum(0) / sum(1);
    let longest = clocks.iter().map(|times| times[1]).fold(0.0, f64::max);
    let most = clocks.iter().map(|times| times[1] - times[0]).fold(0.0, f64::max);
    let mean = (sum(1) - sum(0)) / f64::from(ranks);

    let efficiency = run.efficiency();
    let of_run = &efficiency[0];
    assert_eq!(of_run["coverage"], info["coverage"]);
    assert!(share < 0.999, "some windows were not measured: {info}");
    for (name, truth) in [
        ("parallel", mean / longest),
        ("load_balance", mean / most),
        ("communication", most / longest),
        ("mpi", in_mpi),
    ] {
        assert!(name == "mpi" || of_run[name].is_null() == (share < 0.9), "{name}: {of_run}");
        contains(&of_run["bounds"][name], truth, name);
    }
    let said = line(&run, "time in MPI");
    assert!(said.contains(&format!("of {} windows", info["windows"])) && !said.contains('±'), "{said}");
    if share < 0.9 {
        let told = percentages(&said);
        assert!(said.contains("not known (") && said.contains(": between"), "{said}");
        assert!(told[0] - SLACK <= in_mpi && in_mpi <= told[1] + SLACK, "{in_mpi}: {said}");
        // At the mean cost of other calls it is between them, too.
        assert!(told.get(2).is_none_or(|share| (told[0] - 1e-3..=told[1] + 1e-3).contains(share)), "{said}");
    }
    assert!(stderr.contains("% of the time)") && !stderr.contains("(exact: all ranks)"), "{stderr}");
    // Where much was only counted, another place may have most of the time: no place has a share.
    let (title, shares) = table(stderr);
    let measured = percentages(&title.replace('(', ""))[0];
    assert!(measured >= share - 0.01 && !shares.is_empty(), "{share}: {stderr}");
    assert_eq!(
        title.contains("Where MPI time goes (in "),
        shares.iter().all(|share| share != "-"),
        "{stderr}"
    );
    assert_eq!(title.contains("Calls while measured ("), shares.iter().all(|share| share == "-"), "{stderr}");
    assert!(title.contains("Calls while measured (") || measured >= 0.9, "{stderr}");
    assert!(line(&run, "run time").contains(" MPI calls, all counted"), "{stderr}");
    assert!(line(&run, "only counted").contains("MPI_Iprobe"), "{stderr}");

    // Means of the run: none has an interval; means with bounds have the truth between them.
    let rows = run.estimate();
    let of = |metric: &str| {
        rows.iter().find(|row| row["scope"] == "run" && row["metric"] == metric).expect(metric)
    };
    for row in rows.iter().filter(|row| row["scope"] == "run") {
        assert!(
            row["half_width"].is_null() && row["guaranteed"] == false && row["basis"] != "census",
            "{row}"
        );
        assert!(row["mean"].is_null() || number(&row["coverage"]) >= 0.9, "{row}");
    }
    let (wall, time) = (number(&of("wall")["low"]), of("mpi.time"));
    let bounds = Value::from(["low", "high"].map(|end| number(&time[end]) / wall).to_vec());
    contains(&bounds, in_mpi, "mpi.time / wall");
    // A window or interval that not all ranks measured has no exact number.
    for row in rows.iter().filter(|row| number(&row["coverage"]) < 0.999) {
        assert!(row["half_width"].is_null() && row["basis"] != "census", "{row}");
    }
    for row in efficiency[1..].iter().filter(|row| number(&row["coverage"]) < 0.999) {
        assert!(row["parallel"].is_null() && row["load_balance"].is_null(), "{row}");
    }
}

#[test]
fn a_busy_half_that_was_not_measured_is_not_known() {
    for (mpi, seed) in [(Mpi::OpenMpi, 1), (Mpi::Mpich, 2), (Mpi::OpenMpi, 3), (Mpi::Mpich, 4), (Mpi::Abi, 5)]
    {
        what_is_said_is_true(mpi, 3, seed, "all");
    }
}

#[test]
fn ranks_that_were_not_measured_are_not_taken_for_the_others() {
    what_is_said_is_true(Mpi::OpenMpi, 4, 6, "some");
    what_is_said_is_true(Mpi::Mpich, 4, 7, "some");
}

/// The run's row of `ampl efficiency`, for steps of which some ranks have more.
fn course(mpi: Mpi, kind: &str, marker: &str) -> Value {
    let config = format!("[window]\nmarker = \"{marker}\"\n");
    let run = monitor(&Job::of(mpi, 6, "lopsided", &["48", kind, "3"]), &config, Form::Run).success();
    run.efficiency().swap_remove(0)
}

#[test]
fn imbalance_costs_no_more_than_the_run_and_has_its_course() {
    let set = |mpi, marker| {
        let row = course(mpi, "set", marker);
        // Computing, imbalance and MPI add up to the run, and imbalance is at least that of the totals.
        let [run_ns, imbalance, mpi] =
            ["run_ns", "imbalance_ns", "mpi_ns"].map(|name| number(&row["lost"][name]));
        let [parallel, most] = ["parallel", "communication"].map(|name| number(&row[name]));
        assert!((parallel + (imbalance + mpi) / run_ns - 1.0).abs() < 1e-6 && mpi >= 0.0, "{row}");
        assert!(imbalance >= (most - parallel) * run_ns - 1.0, "{row}");
        assert_eq!(
            (&row["imbalance"]["course"], &row["imbalance"]["ranks"]),
            (&"persistent".into(), &"1,5".into())
        );
        let windows = ["windows", "of_windows"].map(|name| number(&row["imbalance"][name]));
        assert!(windows[0] > 0.5 * windows[1], "{row}");
    };
    for (mpi, marker) in [(Mpi::OpenMpi, "mpi:MPI_Allreduce"), (Mpi::Mpich, "period:100ms")] {
        undisturbed(|| set(mpi, marker));
    }
    for (mpi, kind, marker) in [
        (Mpi::OpenMpi, "turns", "mpi:MPI_Allreduce"),
        (Mpi::Mpich, "turns", "mpi:MPI_Allreduce"),
        (Mpi::OpenMpi, "drift", "mpi:MPI_Allreduce"),
        // A rank is slow for three windows and a half.
        (Mpi::Mpich, "drift", "period:50ms"),
    ] {
        undisturbed(|| {
            let row = course(mpi, kind, marker);
            assert_eq!(row["imbalance"]["course"], kind, "{mpi:?}, {marker}: {row}");
        });
    }
}

fn threads_share_the_time(mpi: Mpi) {
    let run = monitor(&Job::of(mpi, 2, "crowd", &["3", "60"]), "", Form::Run).success();
    let clocks = clocked(&run);
    let sum = |of: usize| clocks.iter().map(|times| times[of]).sum::<f64>();
    let truth = sum(0) / (3.0 * sum(1));
    let said = line(&run, "time in MPI");
    let share = percentages(&said)[0];
    assert!(said.contains("of up to 3 threads a rank") && (share - truth).abs() < 0.1, "{truth}: {said}");
    assert!(run.efficiency().iter().all(|row| (0.0..=1.0).contains(&number(&row["parallel"]))));
    assert!(!run.finished.stderr.contains("no time was measured"), "{}", run.finished.stderr);
}

/// A helper waits in MPI all the time, which is no time of the rank.
#[test]
fn a_helper_that_waits_is_not_the_rank() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let run = monitor(&Job::of(mpi, 2, "crowd", &["helper", "120"]), "", Form::Run).success();
        let clocks = clocked(&run);
        let sum = |of: usize| clocks.iter().map(|times| times[of]).sum::<f64>();
        let truth = sum(0) / sum(1);
        let said = line(&run, "time in MPI");
        let share = percentages(&said)[0];
        assert!(
            said.contains("of the ranks' main threads") && (share - truth).abs() < 0.1,
            "{truth}: {said}"
        );
        let verdict = run.info()["verdict"].clone();
        let findings = verdict.as_array().expect("findings");
        assert!(findings.iter().all(|found| found["function"] != "MPI_Recv"), "{verdict}");
    }
}

#[test]
fn threads_in_mpi_at_once_share_the_time_under_open_mpi() {
    threads_share_the_time(Mpi::OpenMpi);
}

#[test]
fn threads_in_mpi_at_once_share_the_time_under_mpich() {
    threads_share_the_time(Mpi::Mpich);
}
