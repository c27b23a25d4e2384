//! `ampl strata` as a user meets it.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ampl_core::config::{Config, Target};
use ampl_core::units::{Rank, RankSet};
use ampl_testkit::medoids::adjusted_rand;
use ampl_testkit::population::Total;
use ampl_testkit::synthetic::Synthetic;
use ampl_testkit::{Classes, Kind, Population};
use serde_json::Value;

struct Said {
    status: i32,
    out: String,
    err: String,
}

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        fs::write(self.at(name), text).unwrap();
        self.at(name)
    }

    /// A population of windows that `next` gives.
    fn population(&self, name: &str, windows: usize, mut next: impl FnMut() -> Vec<Total>) -> PathBuf {
        let mut text = "window,rank,metric,count,sum,sum_sq,min,max\n".to_owned();
        for window in 0..windows {
            for (rank, Total { n, y }) in next().into_iter().enumerate() {
                writeln!(text, "{window},{rank},mpi.time,{n},{y},{},{y},{y}", y * y).unwrap();
            }
        }
        self.file(name, &text)
    }

    fn ampl(&self, run: &Path, args: &[&str]) -> Said {
        self.command("strata", &[&[run.to_str().unwrap()], args].concat())
    }

    fn command(&self, name: &str, args: &[&str]) -> Said {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ampl"));
        command.arg(name).args(args).current_dir(self.0.path());
        let output = command.stdin(Stdio::null()).env_remove("AMPL_CONFIG").output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Said { status: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
    }

    #[track_caller]
    fn json(&self, run: &Path, args: &[&str]) -> Value {
        let said = self.ampl(run, &[args, &["--json"]].concat());
        assert_eq!(said.status, 0, "{}", said.err);
        serde_json::from_str(&said.out).unwrap()
    }

    #[track_caller]
    fn refused(&self, run: &Path, args: &[&str], status: i32, words: &[&str]) {
        let said = self.ampl(run, args);
        assert_eq!((said.status, said.out.as_str()), (status, ""), "{}", said.err);
        assert!(said.err.starts_with("ampl: ") && said.err.lines().count() == 1, "{}", said.err);
        words.iter().for_each(|word| assert!(said.err.contains(word), "{word}: {}", said.err));
    }
}

/// The stratum of every rank.
fn labels(found: &Value, ranks: u32) -> Vec<usize> {
    let strata = found["strata"].as_array().unwrap();
    let sets: Vec<RankSet> =
        strata.iter().map(|stratum| RankSet::parse(stratum["ranks"].as_str().unwrap()).unwrap()).collect();
    assert_eq!(sets.iter().map(RankSet::len).sum::<u64>(), u64::from(ranks), "every rank is in one stratum");
    let of = |rank| sets.iter().position(|set| set.contains(Rank(rank))).expect("every rank is in a stratum");
    for (stratum, set) in strata.iter().zip(&sets) {
        assert!(
            set.contains(Rank(stratum["medoid"].as_u64().unwrap() as u32)),
            "medoids are members: {stratum}"
        );
    }
    (0..ranks).map(of).collect()
}

#[test]
fn planted_classes_are_found_in_a_population() {
    let place = Place::new();
    for ranks in [64, 400] {
        let mut job = Classes::equal(&[1.0, 2.0, 4.0], 0.1).job(ranks, 1);
        let csv = place.population("three.csv", 12, || job.next_window());
        for more in [&[][..], &["--distance", "manhattan"], &["--method", "k-means"]] {
            let found = place.json(&csv, more);
            assert_eq!(found["k"], 3, "{found}");
            assert!(found["gain"].as_f64().unwrap() > 0.8, "{found}");
            assert_eq!(adjusted_rand(&labels(&found, ranks as u32), &job.labels), 1.0);
            let tried = found["tried"].as_array().unwrap();
            assert_eq!((tried.len(), &tried[0]["k"], &tried[0]["silhouette"]), (8, &1.into(), &Value::Null));
            let best = tried[2]["silhouette"].as_f64().unwrap();
            assert!(tried.iter().all(|tried| tried["silhouette"].as_f64().is_none_or(|score| score <= best)));
        }
        for method in ["dbscan", "gaussian-mixture"] {
            let found = place.json(&csv, &["--method", method]);
            assert_eq!(adjusted_rand(&labels(&found, ranks as u32), &job.labels), 1.0, "{method}");
        }
    }
}

#[test]
fn methods_are_compared_on_the_same_windows() {
    let place = Place::new();
    let mut job = Classes::equal(&[1.0, 3.0], 0.1).job(48, 2);
    let csv = place.population("two.csv", 12, || job.next_window());
    let found = place.json(&csv, &["--compare"]);
    let compared = found["compare"].as_array().unwrap();
    let names: Vec<&str> = compared.iter().map(|row| row["method"].as_str().unwrap()).collect();
    assert_eq!(names, ["k-medoids", "k-means", "dbscan", "gaussian-mixture"]);
    let ranks: Vec<&Value> =
        found["strata"].as_array().unwrap().iter().map(|stratum| &stratum["ranks"]).collect();
    for row in compared {
        assert_eq!(row["strata"].as_array().unwrap().iter().collect::<Vec<_>>(), ranks, "{row}");
        // Equal strata have equal prices, whoever found them.
        for name in ["k", "gain", "size", "f"] {
            assert_eq!(row[name], found[name], "{name} of {row}");
        }
        assert_eq!((&row["agreement"], &row["clustered"]), (&1.0.into(), &48.into()), "{row}");
    }
    assert!(place.json(&csv, &[]).get("compare").is_none(), "only where it is asked for");
    let said = place.ampl(&csv, &["--compare"]);
    let row = said.out.lines().find(|line| line.starts_with("gaussian-mixture ")).expect("a row");
    let saved = format!("{:.1} %", 100.0 * found["gain"].as_f64().unwrap());
    assert!(row.contains(&saved), "{saved}: {row}");
    assert!(said.out.contains("found on 6 windows and priced on 6 windows between them"), "{}", said.out);
    // What a method cannot do is in its row, and the others have theirs.
    let mut few = Classes::equal(&[1.0, 3.0], 0.1).job(4, 2);
    let csv = place.population("few.csv", 12, || few.next_window());
    let found = place.json(&csv, &["--compare"]);
    let dbscan = &found["compare"][2];
    assert_eq!((&dbscan["k"], &dbscan["gain"]), (&1.into(), &0.0.into()));
    assert_eq!(dbscan["failed"][0]["why"], "all-noise");
    let said = place.ampl(&csv, &["--compare"]);
    let row = said.out.lines().find(|line| line.starts_with("dbscan ")).expect("a row");
    assert!(row.ends_with("every rank is noise"), "{row}");
}

#[test]
fn noise_is_one_class_and_says_what_more_would_cost() {
    let place = Place::new();
    let mut noise = Population::new(Kind::Normal, 64, 1);
    let csv = place.population("noise.csv", 16, || noise.next_window());
    let found = place.json(&csv, &[]);
    assert_eq!((&found["k"], &found["gain"]), (&1.into(), &0.0.into()));
    assert_eq!((&found["strata"][0]["name"], &found["strata"][0]["ranks"]), (&"all".into(), &"0-63".into()));
    assert!(found["strata"][0]["medoid"].is_u64(), "{found}");
    let said = place.ampl(&csv, &["-o", "one.toml"]).out;
    assert!(
        said.starts_with("one class: stratifying would not pay (") && said.contains(" strata take "),
        "{said}"
    );
    let text = fs::read_to_string(place.at("one.toml")).unwrap();
    let (config, notices) = Config::parse(&text).unwrap();
    assert!(text.starts_with("# Strata of 64 ranks") && text.contains("One class"), "{text}");
    assert_eq!((config.groups.len(), config.sampling.floor, notices), (1, None, vec![]));
    // The name of ranks in no group is no group's.
    assert_eq!(config.groups[0].name, "all-1");
    // Fractions may be percentages.
    let percent = place.json(&csv, &["--error", "4%", "--confidence", "99%"]);
    let numbers = place.json(&csv, &["--error", "0.04", "--confidence", "0.99"]);
    assert_eq!(percent, numbers);
    assert_ne!(percent, found, "the bound matters");
    // As many as are asked for.
    let found = place.json(&csv, &["--k", "3"]);
    assert_eq!((&found["k"], found["strata"].as_array().unwrap().len()), (&3.into(), 3));
}

/// Coverage of the mean of all ranks at 8 %, and ranks kept of a window, by 'ampl simulate'.
fn simulated(place: &Place, job: &str, csv: &Path) -> (f64, f64) {
    let args = ["-c", job, "--population", csv.to_str().unwrap(), "--seeds", "10", "--json"];
    let said = place.command("simulate", &args);
    assert_eq!(said.status, 0, "{}", said.err);
    let groups: Value = serde_json::from_str(&said.out).unwrap();
    let groups = groups.as_array().unwrap();
    let size = groups.iter().map(|group| group["mean_size"].as_f64().unwrap()).sum();
    let windows = groups[0]["windows"].as_array().unwrap().len();
    // One observation a rank: a mean of all is that of the groups, weighted with their numbers of ranks.
    let mean = |window: usize, field: &str| -> f64 {
        let part = |group: &Value| {
            group["population"].as_f64().unwrap() * group["windows"][window][field].as_f64().unwrap()
        };
        groups.iter().map(part).sum()
    };
    let covered = |&window: &usize| (mean(window, "estimate") / mean(window, "truth") - 1.0).abs() <= 0.08;
    ((0..windows).filter(covered).count() as f64 / windows as f64, size)
}

#[test]
fn the_job_file_keeps_the_bound_of_the_whole_with_far_fewer_ranks() {
    let place = Place::new();
    let mut job = Classes::wait_times().job(1024, 1);
    let csv = place.population("waits.csv", 56, || job.next_window());
    place.file(
        "one.toml",
        "[sampling]\nselection = \"predictive\"\n[[metric]]\nname = \"mpi.time\"\nrole = \"guide\"\n\
         [[group]]\nname = \"one\"\nmembers = \"0-1023\"\nstratify = \"off\"\n",
    );
    let said = place.ampl(&csv, &["-c", "one.toml", "--k", "2", "-o", "two.toml"]);
    assert_eq!(said.status, 0, "{}", said.err);
    assert!(said.out.starts_with("2 strata: ") && said.out.contains("% less"), "{}", said.out);
    let text = fs::read_to_string(place.at("two.toml")).unwrap();
    assert!(text.starts_with("# Strata of 1,024 ranks"), "{text}");
    let (config, notices) = Config::parse(&text).unwrap();
    assert_eq!((config.groups.len(), config.sampling.floor, notices), (2, Some(8), vec![]));
    let name = |index: usize| config.groups[index].name.as_str();
    assert_eq!((name(0), name(1)), ("one-1", "one-2"));
    let (one, two) = (simulated(&place, "one.toml", &csv), simulated(&place, "two.toml", &csv));
    println!("one stratum: {one:?}; two: {two:?}");
    assert!(two.1 <= 0.35 * one.1, "{two:?} {one:?}");
    assert!(two.0 >= 0.90 && one.0 >= 0.88, "{two:?} {one:?}");
}

#[test]
fn a_recorded_run_is_divided() {
    let place = Place::new();
    // Ranks differ by their number modulo 5.
    let run = Synthetic { ranks: 40, windows: 16, ..Synthetic::default() };
    run.write_run(&place.at("run"));
    let found = place.json(&place.at("run"), &["--metric", "mpi.time", "--error", "0.01"]);
    let classes: Vec<usize> = (0..40).map(|rank| rank % 5).collect();
    assert_eq!(adjusted_rand(&labels(&found, 40), &classes), 1.0, "{found}");
    assert_eq!((&found["error"], &found["metrics"][0]), (&0.01.into(), &"mpi.time".into()));
    let said = place.ampl(&place.at("run"), &["--error", "0.01", "-o", "strata.toml"]);
    assert_eq!(said.status, 0, "{}", said.err);
    let text = fs::read_to_string(place.at("strata.toml")).unwrap();
    let (config, _) = Config::parse(&text).unwrap();
    assert!(config.groups.len() > 1 && text.contains("\n# 8 ranks, rank "), "{text}");
    // The run's settings are still there.
    let (was, _) = Config::parse(&run.config).unwrap();
    assert_eq!((config.metrics, config.window), (was.metrics, was.window));
    place.refused(&place.at("run"), &["-o", "strata.toml"], 2, &["exists", "strata.toml"]);
    let off = Synthetic { config: "[output]\nrank_summaries = \"off\"\n".into(), ..Synthetic::default() };
    off.write_run(&place.at("off"));
    place.refused(&place.at("off"), &[], 4, &["not all ranks", "rank_summaries"]);
    place.refused(&place.at("nowhere"), &[], 4, &["no such run"]);
}

const JOB: &str = "[[metric]]\nname = \"mpi.time\"\nrole = \"guide\"\n[[group]]\nname = \"front\"\nmembers = \"0-9\"\n\
                   sample_size = 4\n[[group]]\nname = \"back\"\nmembers = \"10-39\"\nerror = 0.02\npinned = \"11\"\n";

#[test]
fn a_group_is_divided_where_the_job_file_says_so() {
    let place = Place::new();
    let mut job = Classes::equal(&[1.0, 4.0], 0.05).job(40, 3);
    let csv = place.population("two.csv", 12, || job.next_window());
    place.file("job.toml", &format!("{JOB}stratify = \"k-medoids\"\nk = 2\n"));
    let found = place.json(&csv, &["-c", "job.toml", "-o", "new.toml"]);
    assert_eq!((&found["group"], &found["population"], &found["k"]), (&"back".into(), &30.into(), &2.into()));
    assert_eq!(found["error"], 0.02);
    let text = fs::read_to_string(place.at("new.toml")).unwrap();
    let (config, _) = Config::parse(&text).unwrap();
    let names: Vec<&str> = config.groups.iter().map(|group| group.name.as_str()).collect();
    assert_eq!(names, ["front", "back-1", "back-2"]);
    assert_eq!(config.groups[0].target, Target::Static { ranks: 4 });
    let pinned = config.groups.iter().map(|group| group.pinned.len()).sum::<u64>();
    assert_eq!(pinned, 1);
    // Arguments on the command line come first.
    let found = place.json(&csv, &["-c", "job.toml", "--k", "3", "--group", "front", "--confidence", "0.99"]);
    assert_eq!(
        (&found["group"], &found["k"], &found["confidence"]),
        (&"front".into(), &3.into(), &0.99.into())
    );
    // Without either, all ranks are clustered together.
    place.file("plain.toml", JOB);
    let found = place.json(&csv, &["-c", "plain.toml"]);
    assert_eq!((&found["group"], &found["population"]), (&"all".into(), &40.into()));
    place.refused(&csv, &["-c", "plain.toml", "--group", "fornt"], 2, &["fornt", "front, back"]);
    place.file("small.toml", &JOB.replace("10-39", "10-90"));
    let named = JOB.replace("10-39", "10-90");
    let line = 1 + named.lines().position(|line| line.contains("10-90")).unwrap();
    // Ranks that the job has not are left out, with one message.
    let said = place.ampl(&csv, &["-c", "small.toml"]);
    assert_eq!((said.status, said.err.lines().count()), (0, 1), "{}", said.err);
    assert!(
        said.err.contains("10-39 of its 10-90") && said.err.contains(&format!("small.toml:{line}:")),
        "{}",
        said.err
    );
    // More strata than ranks, as both can ask for.
    place.refused(
        &csv,
        &["-c", "plain.toml", "--group", "front", "--k", "11"],
        2,
        &["10 ranks cannot be 11 strata", "--k"],
    );
    place.file("few.toml", &format!("{}stratify = \"k-medoids\"\nk = 8\n", JOB.replace("10-39", "10-16")));
    place.refused(&csv, &["-c", "few.toml"], 2, &["few.toml:14:", "to as many strata as members"]);
}

#[test]
fn what_cannot_be_divided_is_told() {
    let place = Place::new();
    let mut job = Classes::equal(&[1.0, 4.0], 0.05).job(20, 3);
    let csv = place.population("two.csv", 6, || job.next_window());
    place.refused(&csv, &["--metric", "wall"], 2, &["no metric wall", "mpi.time"]);
    place.refused(&csv, &["--k", "0"], 2, &["'auto' or a number"]);
    place.refused(&csv, &["--k", "99"], 2, &["20 ranks cannot be 99 strata (--k)", "20 at most"]);
    assert_eq!(place.json(&csv, &["--k", "20"])["k"], 20);
    place.refused(&csv, &["--method", "kmeans"], 2, &["k-means"]);
    place.refused(&csv, &["--error", "2"], 2, &["between 0 and 1"]);
    let job = place.file("job.toml", "[[metric]]\nname = \"calls\"\nrole = \"guide\"\n");
    place.refused(&csv, &["-c", job.to_str().unwrap()], 2, &["none of the guides", "mpi.time"]);
    place.refused(&place.file("bad.csv", "window,rank\n0,0\n"), &[], 3, &["bad.csv"]);
    // A single window, or a single rank, is a class.
    let mut job = Classes::equal(&[1.0, 4.0], 0.05).job(20, 3);
    let short = place.population("short.csv", 1, || job.next_window());
    let said = place.ampl(&short, &[]);
    assert!(said.out.starts_with("one class: it takes two windows"), "{}", said.out);
    assert_eq!(place.json(&short, &[])["strata"][0]["medoid"], Value::Null);
    let alone = place.population("alone.csv", 4, || vec![Total { n: 1, y: 2.0 }]);
    assert_eq!(place.json(&alone, &[])["k"], 1);
    place.refused(&alone, &["--k", "5"], 2, &["1 rank cannot be 5 strata"]);
    // The only metric of a file is its guide, and wall needs windows that a period does not close.
    let text = fs::read_to_string(&csv).unwrap().replace("mpi.time", "wall");
    let wall = place.file("wall.csv", &text);
    let found = place.json(&wall, &["-o", "wall.toml"]);
    assert_eq!((&found["k"], &found["metrics"][0]), (&2.into(), &"wall".into()));
    Config::parse(&fs::read_to_string(place.at("wall.toml")).unwrap()).unwrap();
}
