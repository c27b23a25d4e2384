//! One job, bare or watched, and its cost.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use ampl_core::process_stat::ProcessStat;
use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::options::Options;
use crate::bench::setting::{Setting, settle};
use crate::shell::{root, run as run_command};

/// State of ampl in a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Without ampl.
    Bare,
    /// `AMPL_DISABLE=1`: the difference of two equal jobs, that is, the noise.
    Disabled,
    /// Summaries of every window, whatever they cost; no calls are recorded.
    Summaries,
    /// Every call is recorded without its times, whatever that costs.
    Structure,
    /// Every call is recorded with its times, whatever that costs.
    Kept,
    /// The default configuration: with so few ranks everything is kept, unless that costs more than
    /// `agent.max_overhead`.
    Default,
}

impl State {
    /// States that are compared with bare jobs.
    pub const WATCHED: [Self; 5] =
        [Self::Disabled, Self::Summaries, Self::Structure, Self::Kept, Self::Default];

    /// States whose instructions are counted: a job that is not watched has none of the library's.
    pub const COUNTED: [Self; 4] = [Self::Summaries, Self::Structure, Self::Kept, Self::Default];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Disabled => "disabled",
            Self::Summaries => "summaries",
            Self::Structure => "structure",
            Self::Kept => "all kept",
            Self::Default => "default",
        }
    }

    /// True where the job leaves a run directory.
    pub fn records(self) -> bool {
        Self::COUNTED.contains(&self)
    }
}

/// Cost of one rank; nanoseconds, of processor time if not said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RankCost {
    /// From the return of `MPI_Init` to the entry of `MPI_Finalize`.
    pub inside: f64,
    /// From the return of `MPI_Init` to the entry of `MPI_Finalize`, on the clock.
    pub inside_wall: f64,
    /// From the process's beginning to its end.
    pub whole: f64,
}

/// The agents' report of their own time, summed over the ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SelfTime {
    /// Their own time, nanoseconds.
    pub agent_ns: f64,
    /// Calls of the application.
    pub calls: f64,
}

/// A finished job.
#[derive(Debug)]
pub struct Finished {
    /// One entry per rank, in no order.
    pub ranks: Vec<RankCost>,
    /// From the launcher's start to its end, seconds.
    pub wall: f64,
    /// Standard output of the program.
    pub stdout: String,
    /// Report of `ampl info` afterwards; `None` for states that leave no run.
    pub own: Option<SelfTime>,
}

/// Paths of the benchmark.
#[derive(Debug)]
pub struct Bench {
    launcher: PathBuf,
    ampl: PathBuf,
    stopwatch: PathBuf,
    /// The benchmark's own directory.
    pub scratch: PathBuf,
    /// The compiled synthetic program.
    pub synthetic: PathBuf,
    /// The compiled `steps.c`.
    pub steps: PathBuf,
    /// The compiled `alternate.c`.
    pub alternate: PathBuf,
    max_overhead: Option<String>,
    marker: Option<String>,
    ranks: usize,
}

impl Bench {
    /// Builds the measured programs and the tools.
    ///
    /// # Errors
    /// When Open MPI is missing or something does not compile.
    pub fn prepare(options: &Options) -> Result<Self> {
        let setting = Setting::prepare("overhead", options.dist.as_deref())?;
        let sources = root().join("ampl-preload/benches");
        let synthetic = setting.compile(&sources.join("overhead.c"))?;
        let steps = setting.compile(&sources.join("steps.c"))?;
        let library = |name: &str| -> Result<PathBuf> {
            let output = setting.scratch.join(name).with_extension("so");
            // It is loaded into shells and launchers, too, where MPI's functions are never found.
            let mut compile = Command::new("cc");
            compile.args(["-O2", "-fPIC", "-shared", "-Wl,-z,lazy", "-o"]);
            run_command(compile.arg(&output).arg(sources.join(name).with_extension("c")))?;
            Ok(output)
        };
        let (stopwatch, alternate) = (library("stopwatch")?, library("alternate")?);
        Ok(Self {
            launcher: setting.launcher,
            ampl: setting.ampl,
            stopwatch,
            alternate,
            scratch: setting.scratch,
            synthetic,
            steps,
            max_overhead: options.max_overhead.clone(),
            marker: options.marker.clone(),
            ranks: options.ranks,
        })
    }

    /// The launcher with as many ranks as chosen, each on a processor of its own; `politely` for ranks that share them.
    pub fn launch(&self, politely: bool) -> Command {
        let mut job = Command::new(&self.launcher);
        job.args(["-n", &self.ranks.to_string(), "--bind-to", if politely { "none" } else { "core" }]);
        if politely {
            job.args(["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]);
        }
        settle(&mut job);
        job.current_dir(&self.scratch);
        job
    }

    /// Runs `words` on `ranks` ranks that share two processors, under `ampl exec` with `settings`, or bare. Returns
    /// the processor time of all processes, user's and system's, and the agents' report of theirs; nanoseconds.
    ///
    /// # Errors
    /// When the job fails, or its run has no report.
    pub fn on_two(
        &self,
        ranks: usize,
        words: &[String],
        settings: Option<&[&str]>,
    ) -> Result<(f64, Option<SelfTime>)> {
        let directory = self.scratch.join("own");
        let mut job = Command::new("taskset");
        job.args(["-c", "0,1"]).arg(&self.launcher).args(["-n", &ranks.to_string(), "--bind-to", "none"]);
        job.args(["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]);
        settle(&mut job);
        job.current_dir(&self.scratch);
        if let Some(settings) = settings {
            job.arg(&self.ampl).args(["exec", "-o"]).arg(&directory);
            settings.iter().for_each(|setting| {
                job.args(["--set", setting]);
            });
            job.arg("--");
        }
        let before = children_ns()?;
        let output = job.args(words).output().context("taskset does not start")?;
        let took = children_ns()? - before;
        if !output.status.success() {
            bail!("{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
        let own = settings.map(|_| self.info(&directory)).transpose()?;
        Ok((took, own))
    }

    /// Adds the words before the program that watch it in `state`.
    pub fn watch(&self, job: &mut Command, state: State, directory: &Path) {
        if state == State::Bare {
            return;
        }
        if state == State::Disabled {
            job.env("AMPL_DISABLE", "1");
        }
        job.arg(&self.ampl).args(["exec", "-o"]).arg(directory);
        if state == State::Summaries {
            job.args(["--set", "trace.structure=\"off\"", "--set", "agent.max_overhead=0.99"]);
        }
        if state == State::Structure {
            job.args(["--set", "trace.timing=\"off\"", "--set", "agent.max_overhead=0.99"]);
        }
        let chosen = [("agent.max_overhead", &self.max_overhead), ("window.marker", &self.marker)];
        for (key, value) in chosen {
            if let (State::Default, Some(value)) = (state, value) {
                job.arg("--set").arg(format!("{key}={value}"));
            }
        }
        if state == State::Kept {
            job.args(["--set", "trace.timing=\"all\""]);
        }
        job.arg("--");
    }

    /// Runs `words` on all ranks.
    ///
    /// # Errors
    /// When the job fails, or was not watched as meant, which would make the number meaningless.
    pub fn run(&self, words: &[String], state: State) -> Result<Finished> {
        let (times, directory) = (self.scratch.join("times"), self.scratch.join("run"));
        let _ = std::fs::remove_file(&times);
        let mut job = self.launch(false);
        job.env("STOPWATCH", &times).arg("env");
        job.arg(format!("LD_PRELOAD={}", self.stopwatch.display()));
        self.watch(&mut job, state, &directory);
        let started = Instant::now();
        let output = job.args(words).output().context("the launcher does not start")?;
        let wall = started.elapsed().as_secs_f64();
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            bail!("{words:?}, {}: {stdout}{}", state.name(), String::from_utf8_lossy(&output.stderr));
        }
        let own = if state.records() { Some(self.info(&directory)?) } else { None };
        let text = std::fs::read_to_string(&times).context("no rank has left its times")?;
        let ranks: Vec<RankCost> = text.lines().filter_map(cost).collect();
        if ranks.len() != self.ranks {
            bail!("{words:?}, {}: times of {} ranks: {text}", state.name(), ranks.len());
        }
        Ok(Finished { ranks, wall, stdout, own })
    }

    /// Reads the report of `ampl info` on the run, and removes the run.
    ///
    /// # Errors
    /// When there is no report, or the run is not complete.
    pub fn info(&self, directory: &Path) -> Result<SelfTime> {
        let output = Command::new(&self.ampl).arg("info").arg(directory).arg("--json").output()?;
        let info: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("ampl info: {}", String::from_utf8_lossy(&output.stderr)))?;
        std::fs::remove_dir_all(directory)?;
        if info["complete"] != true || info["agent_failures"] != 0 {
            bail!("the run is not complete: {info}");
        }
        let number = |value: &Value| value.as_f64().with_context(|| format!("no number: {info}"));
        Ok(SelfTime { agent_ns: number(&info["overhead"]["agent_ns"])?, calls: number(&info["calls"])? })
    }
}

/// Processor time of this process's children that have ended, and of theirs, nanoseconds.
fn children_ns() -> Result<f64> {
    const TICK_NS: f64 = 1e7;
    let text = std::fs::read_to_string("/proc/self/stat")?;
    let stat = ProcessStat::parse(&text).context("/proc/self/stat is not whole")?;
    Ok(stat.children_ticks as f64 * TICK_NS)
}

/// A rank's line of the stopwatch.
fn cost(line: &str) -> Option<RankCost> {
    let numbers: Vec<f64> = line.split_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let &[initialised, finalizing, end, inside_wall] = &numbers[..] else { return None };
    Some(RankCost { inside: finalizing - initialised, inside_wall, whole: end })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_stopwatch_is_three_spans() {
        let expected = RankCost { inside: 90.0, inside_wall: 95.0, whole: 120.0 };
        assert_eq!(cost("10 100 120 95"), Some(expected));
        assert_eq!(cost("10 100 120"), None);
    }
}
