//! Jobs under ampl, and ampl's output about them afterwards.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::job::Job;
use crate::place::{Scratch, ampl};
use crate::process::{self, Finished};

/// Way to start a program under ampl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `ampl run -- mpirun … program`
    Run,
    /// `mpirun … ampl exec -- program`
    Exec,
}

/// A job that ran under ampl.
#[derive(Debug)]
pub struct Monitored {
    /// Output and exit status of the launcher.
    pub finished: Finished,
    /// The run directory.
    pub run: PathBuf,
    /// Directory of all files.
    pub scratch: Scratch,
}

/// Runs `job` under ampl with `config` as its configuration.
pub fn monitor(job: &Job, config: &str, form: Form) -> Monitored {
    let scratch = Scratch::new("run");
    let file = scratch.write("job.toml", config);
    let run = scratch.path().join("result");
    let options = |subcommand: &str| -> Vec<OsString> {
        vec![
            ampl().into(),
            subcommand.into(),
            "-c".into(),
            (&file).into(),
            "-o".into(),
            (&run).into(),
            "--".into(),
        ]
    };
    let words: Vec<OsString> = match form {
        Form::Run => [options("run"), job.launch(), job.words.clone()].concat(),
        Form::Exec => [job.launch(), options("exec"), job.words.clone()].concat(),
    };
    let finished = job.run(&words, scratch.path());
    Monitored { finished, run, scratch }
}

impl Monitored {
    /// The same, if the job succeeded.
    pub fn success(mut self) -> Self {
        self.finished = self.finished.success();
        self
    }

    /// `ampl info RUN --json`
    pub fn info(&self) -> Value {
        self.json(&["info"], &[])
    }

    /// `ampl estimate RUN --json`, its rows.
    pub fn estimate(&self) -> Vec<Value> {
        rows(self.json(&["estimate"], &[]))
    }

    /// `ampl efficiency RUN --json`, its rows.
    pub fn efficiency(&self) -> Vec<Value> {
        rows(self.json(&["efficiency"], &[]))
    }

    /// `ampl decisions RUN --json`, its rows.
    pub fn decisions(&self) -> Vec<Value> {
        rows(self.json(&["decisions"], &[]))
    }

    /// The same with `--all`: also the earlier draws of windows with retrospective decisions.
    pub fn all_decisions(&self) -> Vec<Value> {
        rows(self.json(&["decisions"], &["--all"]))
    }

    /// `ampl plan RUN --json`, its rows.
    pub fn plan(&self) -> Vec<Value> {
        rows(self.json(&["plan"], &[]))
    }

    /// `ampl timesteps RUN --json`
    pub fn timesteps(&self) -> Value {
        self.json(&["timesteps"], &[])
    }

    /// `ampl query RUN QUESTION … --json`
    pub fn query(&self, words: &[&str]) -> Value {
        self.json(&["query"], words)
    }

    /// `ampl decode RUN --rank N --json`, its lines about calls.
    pub fn decode(&self, rank: u32) -> Vec<Value> {
        self.events(rank).into_iter().filter(|line| line["fn"].is_string()).collect()
    }

    /// The same with the lines about gaps and regions.
    pub fn events(&self, rank: u32) -> Vec<Value> {
        let text = self.ask(&["decode"], &["--rank", &rank.to_string()]);
        text.lines().map(parse).collect()
    }

    /// Entries and exits of each region of `rank` that are decoded.
    pub fn passed(&self, rank: u32) -> BTreeMap<String, [usize; 2]> {
        let mut passed: BTreeMap<String, [usize; 2]> = BTreeMap::new();
        for line in self.events(rank).iter().filter(|line| line["unseen"].is_null()) {
            if let Some(name) = line["region"].as_str() {
                passed.entry(name.to_owned()).or_default()[usize::from(line["exit"] == true)] += 1;
            }
        }
        passed
    }

    /// Calls per function over all ranks, from `info`.
    pub fn functions(&self) -> BTreeMap<String, u64> {
        counts(&self.info()["functions"])
    }

    /// Checks that decoded calls and those in gaps are the counted ones, function by function, and that the numbers of
    /// calls go through the gaps. Returns the calls of gaps by reason.
    ///
    /// # Panics
    /// When they are not.
    pub fn adds_up(&self) -> BTreeMap<String, u64> {
        let info = self.info();
        let (mut found, mut reasons) = (BTreeMap::new(), BTreeMap::new());
        let mut add = |function: &str, calls: u64| *found.entry(function.to_owned()).or_default() += calls;
        let mut decoded = 0;
        for rank in 0..info["ranks"].as_u64().expect("a number") as u32 {
            let mut next = BTreeMap::<u64, u64>::new();
            for line in self.events(rank) {
                let next = next.entry(line["thread"].as_u64().unwrap_or(0)).or_default();
                assert_eq!(line["seq"].as_u64(), Some(*next), "rank {rank}: {line}");
                if line["region"].is_string() {
                    continue;
                }
                let gap = &line["gap"];
                let calls = if gap.is_null() {
                    line["count"].as_u64().unwrap_or(1)
                } else {
                    number(&gap["calls"]) as u64
                };
                *next += calls;
                if let Some(function) = line["fn"].as_str() {
                    decoded += calls;
                    add(function, calls);
                } else {
                    let each = counts(&gap["functions"]);
                    assert_eq!(each.values().sum::<u64>(), calls, "rank {rank}: {line}");
                    each.iter().for_each(|(function, &calls)| add(function, calls));
                    let reason = gap["reason"].as_str().expect("a reason").to_owned();
                    *reasons.entry(reason).or_default() += calls;
                }
            }
        }
        let counted_only = info.get("counted_only").map(counts).unwrap_or_default();
        let mut counted = counts(&info["functions"]);
        counted.retain(|function, _| !counted_only.contains_key(function));
        assert_eq!(found, counted, "decoded and in gaps");
        assert_eq!(info["recorded_calls"].as_u64(), Some(decoded), "{info}");
        let gaps = info["gaps"].as_array().expect("an array");
        let (mut by_reason, mut sites) = (BTreeMap::new(), 0);
        for gap in gaps {
            let each: u64 = counts(&gap["functions"]).values().sum();
            assert_eq!(Some(each), gap["calls"].as_u64(), "{gap}");
            *by_reason.entry(gap["reason"].as_str().expect("a reason").to_owned()).or_default() += each;
            sites += gap["sites"]
                .as_array()
                .expect("an array")
                .iter()
                .map(|site| number(&site["calls"]) as u64)
                .sum::<u64>();
        }
        assert_eq!((&by_reason, sites), (&reasons, reasons.values().sum()), "{info}");
        assert_eq!(info["structure_complete"], Value::Bool(gaps.is_empty()));
        reasons
    }

    fn json(&self, before: &[&str], after: &[&str]) -> Value {
        parse(&self.ask(before, after))
    }

    fn ask(&self, before: &[&str], after: &[&str]) -> String {
        let mut command = Command::new(ampl());
        command.args(before).arg(&self.run).args(after).arg("--json");
        process::run(&mut command, Duration::from_secs(120)).success().stdout
    }
}

/// Passes of each region as rank 0 counts them in what the program prints.
///
/// # Panics
/// When a line is something else.
pub fn called(stdout: &str) -> BTreeMap<String, usize> {
    let lines = stdout.lines().filter_map(|line| line.strip_prefix("called "));
    let words = lines.map(|line| line.rsplit_once(' ').expect("a name and a number"));
    words.map(|(name, times)| (name.to_owned(), times.parse().expect("a number"))).collect()
}

/// `{name: calls}` as a map.
///
/// # Panics
/// When it is something else.
pub fn counts(value: &Value) -> BTreeMap<String, u64> {
    let entries = value.as_object().unwrap_or_else(|| panic!("not an object: {value}"));
    entries.iter().map(|(name, calls)| (name.clone(), number(calls) as u64)).collect()
}

/// The window of a decoded call whose times are stored.
pub fn window(call: &Value) -> Option<u64> {
    call["window"].as_u64()
}

/// Adds the calls of `more` to those of `sum`.
pub fn add_counts(sum: &mut BTreeMap<String, u64>, more: &BTreeMap<String, u64>) {
    for (name, calls) in more {
        *sum.entry(name.clone()).or_default() += calls;
    }
}

/// The value as a number.
///
/// # Panics
/// When it is none.
pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("not a number: {value}"))
}

/// The JSON document that `text` is.
///
/// # Panics
/// With the text when it is none.
pub fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

fn rows(value: Value) -> Vec<Value> {
    match value {
        Value::Array(rows) => rows,
        other => panic!("not an array: {other}"),
    }
}

/// The text of a file.
///
/// # Panics
/// With the path when it cannot be read.
pub fn text_of(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
