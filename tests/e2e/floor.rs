//! `trace.time_floor`: short durations are not distinguished, and long ones keep their precision.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::ampl;
use ampl_tests::process;
use ampl_tests::run::{Form, Monitored, monitor};

const RANKS: u32 = 2;
const TURNS: u64 = 400;
const TIME_ERROR: f64 = 0.1;
const FUNCTIONS: [&str; 2] = ["MPI_Sendrecv", "MPI_Barrier"];

/// Rank, function and window of a call: there is one of each.
type Key = (u32, String, u64);

fn run(floor: &str) -> Monitored {
    let metric = |function| format!("[[metric]]\nname = \"mpi.time\"\nevent = \"{function}\"\n");
    let config = format!(
        "[window]\nmarker = \"mpi:MPI_Barrier\"\n{}[trace]\ntiming = \"all\"\ntime_error = {TIME_ERROR}\n\
         time_floor = \"{floor}\"\n",
        FUNCTIONS.map(metric).concat()
    );
    let job = Job::of(Mpi::OpenMpi, RANKS, "steady", &[&TURNS.to_string()]);
    monitor(&job, &config, Form::Run).success()
}

/// Durations that the agent has measured, nanoseconds: exact, for window summaries have no error.
fn measured(run: &Monitored) -> BTreeMap<Key, f64> {
    let mut export = Command::new(ampl());
    export.arg("export").arg(&run.run).args(["--to", "csv"]);
    process::run(&mut export, Duration::from_secs(60)).success();
    let text = std::fs::read_to_string(run.run.join("csv/summaries.csv")).expect("it was just written");
    let rows = text.lines().map(|line| line.split(',').collect::<Vec<&str>>());
    // window, rank, metric, count, sum, sum_sq, min, max, event
    let of_call = rows.filter(|row| row[2] == "mpi.time" && FUNCTIONS.contains(&row[8]));
    let number = |text: &str| text.parse::<f64>().expect("a number");
    of_call
        .map(|row| {
            assert_eq!(row[3], "1", "one call a window: {row:?}");
            ((number(row[1]) as u32, row[8].to_owned(), number(row[0]) as u64), number(row[4]))
        })
        .collect()
}

/// Durations of the same calls by `ampl decode`, beside the measured ones.
fn told(run: &Monitored) -> Vec<(Key, f64, f64)> {
    let measured = measured(run);
    let mut told = Vec::new();
    for rank in 0..RANKS {
        for call in run.decode(rank) {
            let function = call["fn"].as_str().expect("a name");
            if FUNCTIONS.contains(&function) {
                let window = call["window"].as_u64().expect("times of all windows are stored");
                let key = (rank, function.to_owned(), window);
                let exact = measured[&key];
                told.push((key, exact, call["duration_ns"].as_f64().expect("a time")));
            }
        }
    }
    assert_eq!(told.len() as u64, 2 * TURNS * u64::from(RANKS));
    told
}

/// Number of values of durations up to `floor_ns`, of the rank and function with most.
fn values(told: &[(Key, f64, f64)], floor_ns: f64) -> usize {
    let mut values: BTreeMap<(u32, &str), BTreeSet<u64>> = BTreeMap::new();
    for ((rank, function, _), exact, duration) in told {
        if *exact <= floor_ns {
            values.entry((*rank, function)).or_default().insert(*duration as u64);
        }
    }
    values.values().map(BTreeSet::len).max().unwrap_or(0)
}

/// Number of calls of a run up to the floor, and above it.
fn parts(told: &[(Key, f64, f64)], floor_ns: f64) -> (usize, usize) {
    let short = told.iter().filter(|(_, exact, _)| *exact <= floor_ns).count();
    (short, told.len() - short)
}

#[test]
fn short_durations_share_a_bin_and_long_ones_keep_their_bound() {
    let without = told(&run("0us"));
    // The floor is the median duration of this run.
    let mut all: Vec<f64> = without.iter().map(|&(_, exact, _)| exact).collect();
    all.sort_by(f64::total_cmp);
    let floor_ns = all[all.len() / 2].round();
    // The machine's speed may change between two runs: both kinds of calls are needed.
    let of_both_kinds = |told: &[(Key, f64, f64)]| {
        let (short, long) = parts(told, floor_ns);
        short >= 40 && long >= 40
    };
    let with = (0..8).map(|_| told(&run(&format!("{floor_ns}ns")))).find(|told| of_both_kinds(told));
    let with = with.expect("a run has short and long calls");
    // A nanosecond more: decoded durations are whole numbers.
    let within = |exact: f64, duration: f64| (duration - exact).abs() <= TIME_ERROR * exact + 1.0;
    for (key, exact, duration) in &without {
        assert!(within(*exact, *duration), "{key:?}: {duration} of {exact} ns");
    }
    for (key, exact, duration) in &with {
        // Both ends of a call are stored as whole nanoseconds: beside the floor it may be on either side.
        let short = *exact <= floor_ns + 2.0 && *duration <= floor_ns;
        let long = *exact > floor_ns - 2.0 && within(*exact, *duration);
        assert!(short || long, "{key:?}: {duration} of {exact} ns, floor {floor_ns} ns");
    }
    // One bin, whose mean is stored again at the 4th and the 256th.
    let (apart, together) = (values(&without, floor_ns), values(&with, floor_ns - 2.0));
    assert!(apart > 3 && together <= 3, "{apart} values without a floor, {together} with one");
}
