//! The same job without ampl and under it: its output, files and status are the same.

mod seen;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::job::{Job, Mpi};
use crate::place::Scratch;
use crate::process::Finished;
use crate::run::{Form, Monitored, counts, monitor};
use seen::{Seen, files, program_lines};

/// Every call of every rank is stored with its times.
const EVERYTHING: &str = "[trace]\ntiming = \"all\"\n";
/// Calls are counted and summed up, none is stored.
const SUMMARIES: &str = "[trace]\ntiming = \"off\"\n";

/// Comparison of a job with and without ampl; of everything unless told otherwise.
#[derive(Clone, Debug)]
pub struct Comparison<'a> {
    job: &'a Job,
    form: Form,
    stderr: bool,
    files: bool,
    summaries: bool,
    launcher_fails: bool,
}

/// A job that did the same without ampl, with everything kept, and with summaries only.
#[derive(Debug)]
pub struct Same {
    /// Without ampl.
    pub plain: Finished,
    /// Everything kept.
    pub kept: Monitored,
    /// Summaries only; `None` where that was not asked for.
    pub summarised: Option<Monitored>,
}

/// Compares `job` with itself under ampl.
pub fn compare(job: &Job) -> Comparison<'_> {
    Comparison { job, form: Form::Run, stderr: true, files: true, summaries: true, launcher_fails: false }
}

impl Comparison<'_> {
    /// Standard error differs from run to run anyway (back traces, which rank a launcher reports).
    pub fn without_stderr(mut self) -> Self {
        self.stderr = false;
        self
    }

    /// Files differ from run to run anyway (counts of polls).
    pub fn without_files(mut self) -> Self {
        self.files = false;
        self
    }

    /// Runs with everything kept only: where the second state has nothing to add, and time is short.
    pub fn kept_only(mut self) -> Self {
        self.summaries = false;
        self
    }

    /// Ignores the launcher's status: MPICH's may return 1 for a job without `MPI_Finalize`, whatever its ranks
    /// returned, or 9 where it ended the others fast. Open MPI's returns a rank's status.
    ///
    /// This is a race in Hydra: the connection to a rank closes before there is a status. 4.0.2, without ampl: 3 of
    /// 200 jobs of one rank that called `MPI_Abort(MPI_COMM_SELF, 13)`, 1 of 150 with two ranks that called
    /// `exit(6)`.
    pub fn launcher_may_fail(mut self) -> Self {
        self.launcher_fails = true;
        self
    }

    /// Under `ampl exec` instead of `ampl run`.
    pub fn under_exec(mut self) -> Self {
        self.form = Form::Exec;
        self
    }

    /// Runs the job in each state, each time in an empty directory of its own.
    ///
    /// # Panics
    /// When the program's standard output (its lines in any order), its exit status, what is not
    /// ampl's on its standard error, or a file it left in its directory differs.
    pub fn run(self) -> Same {
        let place = Scratch::new("plain");
        let plain = self.job_in(place.path()).plain();
        let expected = self.seen(&plain, place.path());
        let under = |config: &str| {
            let place = Scratch::new("watched");
            let run = monitor(&self.job_in(place.path()), config, self.form);
            let seen = self.seen(&run.finished, place.path());
            if let Some(difference) = expected.difference(&seen) {
                panic!(
                    "{:?}\nwith {config}{difference}\n--- standard error without ampl\n{}\n--- with it\n{}",
                    self.job, plain.stderr, run.finished.stderr
                );
            }
            run
        };
        let kept = under(EVERYTHING);
        let summarised = self.summaries.then(|| under(SUMMARIES));
        Same { plain, kept, summarised }
    }

    fn job_in(&self, directory: &Path) -> Job {
        Job { directory: Some(directory.to_owned()), ..self.job.clone() }
    }

    fn seen(&self, finished: &Finished, directory: &Path) -> Seen {
        let says_little = self.launcher_fails && self.job.mpi != Mpi::OpenMpi;
        let known = !says_little || !matches!(finished.status.code(), Some(1 | 9));
        Seen {
            status: known.then(|| finished.status.to_string()),
            stdout: program_lines(&finished.stdout),
            stderr: if self.stderr { program_lines(&finished.stderr) } else { Vec::new() },
            files: if self.files { files(directory) } else { BTreeMap::new() },
        }
    }
}

impl Same {
    /// The calls per function, the same in both states.
    ///
    /// # Panics
    /// When they differ.
    pub fn functions(&self) -> BTreeMap<String, u64> {
        let functions = self.kept.functions();
        if let Some(summarised) = &self.summarised {
            assert_eq!(summarised.functions(), functions, "summaries only, and everything kept");
        }
        functions
    }

    /// The same, where every rank's record reaches to the end and ampl never failed.
    ///
    /// # Panics
    /// When one does not.
    pub fn complete(self) -> Self {
        for run in std::iter::once(&self.kept).chain(&self.summarised) {
            let info = run.info();
            assert_eq!(info["complete"], Value::Bool(true), "{info}");
            assert!(no_failures(&info), "{info}");
        }
        self
    }

    /// Checks the calls per function, summed over `ranks` that make the same calls each, but for the
    /// `uncertain` ones (`MPI_Get_*` are all that start so).
    ///
    /// # Panics
    /// When a function is missing, has another number, or was not expected.
    pub fn expect(self, ranks: u32, each: &[(&str, u64)], uncertain: &[&str]) -> Self {
        let mut functions = if uncertain.is_empty() { self.functions() } else { self.kept.functions() };
        functions.retain(|name, _| {
            !uncertain.iter().any(|given| match given.strip_suffix('*') {
                Some(start) => name.starts_with(start),
                None => name == given,
            })
        });
        let expected: BTreeMap<String, u64> =
            each.iter().map(|(name, calls)| (format!("MPI_{name}"), calls * u64::from(ranks))).collect();
        assert_eq!(functions, expected);
        self
    }

    /// Checks that the kept calls of every rank are as many as were counted, function by function.
    ///
    /// # Panics
    /// When they are not.
    pub fn stored(self) -> Self {
        let info = self.kept.info();
        let mut stored: BTreeMap<String, u64> = BTreeMap::new();
        for rank in 0..info["ranks"].as_u64().expect("a number") as u32 {
            for line in self.kept.decode(rank) {
                let name = line["fn"].as_str().expect("a name").to_owned();
                *stored.entry(name).or_default() += line["count"].as_u64().unwrap_or(1);
            }
        }
        assert_eq!(stored, counts(&info["functions"]));
        self
    }

    /// Standard error of the job with everything kept, which has the messages of `ampl run`.
    pub fn said(&self) -> &str {
        &self.kept.finished.stderr
    }
}

/// True where ampl never failed: `agent_failures` is an object of counters by cause, or their sum.
fn no_failures(info: &Value) -> bool {
    let failures = &info["agent_failures"];
    failures.as_u64() == Some(0)
        || failures.as_object().is_some_and(|causes| causes.values().all(|count| count.as_u64() == Some(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Mpi;

    #[test]
    fn another_answer_of_the_program_is_noticed() {
        // A program that prints its own process number never prints the same twice.
        let job = Job::new(Mpi::OpenMpi, 1, "sh", &["-c", "echo mine is $$"]);
        let error = std::panic::catch_unwind(|| compare(&job).run()).expect_err("the numbers differ");
        let text = error.downcast_ref::<String>().expect("a message");
        assert!(text.contains("standard output: these lines are gone"), "{text}");
    }
}
