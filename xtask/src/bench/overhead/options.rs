//! Options of the command line.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use super::job::State;

/// Usage, printed when an option is wrong.
const USAGE: &str = "\
options of overhead (all optional):
  --pairs N           rounds of whole jobs (15)
  --runs N            times four runs of the jobs that alternate (3)
  --ranks N           ranks of a job, each on a processor of its own (2); alone, none waits for another
  --seconds S         length of a run of the synthetic program (5; of own and levels 4)
  --rate R            its MPI calls per second and rank (70000)
  --max-overhead S    agent.max_overhead of the default configuration, such as 0.5%
  --marker M          its window.marker, such as mpi:MPI_Allreduce
  --work ROWS         its work between calls, instead of finding out which makes that rate
  --lammps-steps N    timesteps of a run of LAMMPS (1000; of own and levels 300)
  --counted-steps N   steps of the synthetic program where instructions are counted (800)
  --state NAME        the one state to measure beside none, such as default
  --program NAME      synthetic or lammps; both without. Of levels also steps and hpcc
  --part NAME         alternating, pairs, own, levels or instructions; all but own and levels without
  --dist DIR          an installation to measure instead of building one";

/// A way to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Public and profiling names in turns, in one program.
    Alternating,
    /// Whole jobs in turns.
    Pairs,
    /// Whole jobs in turns beside the agent's own report.
    Own,
    /// Whole jobs in turns at each level of what is stored.
    Levels,
    /// Counted instructions.
    Instructions,
}

/// The command line.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Rounds of whole jobs, at least 1.
    pub pairs: usize,
    /// Runs of four alternating jobs, at least 1; states take turns.
    pub runs: usize,
    /// Ranks of a job, at least 1.
    pub ranks: usize,
    /// Length of a run of the synthetic program, seconds.
    pub seconds: f64,
    /// Its MPI calls per second and rank.
    pub rate: f64,
    /// Value of `agent.max_overhead` in the default configuration.
    pub max_overhead: Option<String>,
    /// Value of `window.marker` in the default configuration.
    pub marker: Option<String>,
    /// Its work per step, grid rows; found out without.
    pub work: Option<f64>,
    /// Timesteps of a run of LAMMPS.
    pub lammps_steps: u32,
    /// Steps of the synthetic program where instructions are counted.
    pub counted_steps: f64,
    /// The one state to measure beside none; all of them without.
    pub state: Option<State>,
    /// The one program to measure; all of them without.
    pub program: Option<String>,
    /// Parts to measure.
    pub parts: Vec<Part>,
    /// The installation to measure; one is built without.
    pub dist: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            pairs: 15,
            runs: 3,
            ranks: 2,
            seconds: 5.0,
            rate: 70_000.0,
            max_overhead: None,
            marker: None,
            work: None,
            lammps_steps: 1000,
            counted_steps: 800.0,
            state: None,
            program: None,
            parts: vec![Part::Alternating, Part::Pairs, Part::Instructions],
            dist: None,
        }
    }
}

impl Options {
    /// Options from `arguments`.
    ///
    /// # Errors
    /// For a word that is no option, with the list of all options.
    pub fn parse(arguments: &[&str]) -> Result<Self> {
        let mut options = Self::default();
        let mut words = arguments.iter();
        while let Some(&name) = words.next() {
            let Some(&value) = words.next() else { bail!("{name} needs a value\n{USAGE}") };
            let wrong = || format!("{name} {value}\n{USAGE}");
            let above_zero = || {
                let number: f64 = value.parse().ok()?;
                (number.is_finite() && number > 0.0).then_some(number)
            };
            match name {
                "--pairs" => options.pairs = above_zero().with_context(wrong)?.ceil() as usize,
                "--runs" => options.runs = above_zero().with_context(wrong)?.ceil() as usize,
                "--ranks" => options.ranks = above_zero().with_context(wrong)?.ceil() as usize,
                "--seconds" => options.seconds = above_zero().with_context(wrong)?,
                "--rate" => options.rate = above_zero().with_context(wrong)?,
                "--max-overhead" => options.max_overhead = Some(value.to_owned()),
                "--marker" => options.marker = Some(value.to_owned()),
                "--work" => options.work = Some(above_zero().with_context(wrong)?),
                "--lammps-steps" => options.lammps_steps = above_zero().with_context(wrong)?.ceil() as u32,
                "--counted-steps" => options.counted_steps = above_zero().with_context(wrong)?.ceil(),
                "--state" => {
                    let named = State::COUNTED.into_iter().find(|state| state.name() == value);
                    options.state = Some(named.with_context(wrong)?);
                }
                "--program" if ["synthetic", "lammps", "steps", "hpcc"].contains(&value) => {
                    options.program = Some(value.to_owned());
                }
                "--part" => {
                    options.parts = vec![match value {
                        "alternating" => Part::Alternating,
                        "pairs" => Part::Pairs,
                        "own" => Part::Own,
                        "levels" => Part::Levels,
                        "instructions" => Part::Instructions,
                        _ => bail!(wrong()),
                    }];
                }
                "--dist" => options.dist = Some(std::path::absolute(value)?),
                _ => bail!("no such option: {}", wrong()),
            }
        }
        if options.parts != [Part::Levels]
            && let Some(name) = options.program.as_deref().filter(|name| ["steps", "hpcc"].contains(name))
        {
            bail!("--program {name} is of --part levels\n{USAGE}");
        }
        // Their 240 and 480 jobs are to be done within an hour.
        if [Part::Own, Part::Levels].iter().any(|part| options.parts == [*part]) {
            let is_given = |name: &str| arguments.contains(&name);
            if !is_given("--seconds") {
                options.seconds = 4.0;
            }
            if !is_given("--lammps-steps") {
                options.lammps_steps = 300;
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_mistakes_named() {
        assert_eq!(Options::parse(&[]).unwrap(), Options::default());
        let options = Options::parse(&["--pairs", "3", "--part", "pairs", "--program", "lammps"]).unwrap();
        assert_eq!((options.pairs, options.parts), (3, vec![Part::Pairs]));
        assert_eq!(options.program.as_deref(), Some("lammps"));
        let own = Options::parse(&["--seconds", "2", "--part", "own"]).unwrap();
        assert_eq!((own.seconds, own.lammps_steps), (2.0, 300));
        let levels = Options::parse(&["--program", "hpcc", "--part", "levels"]).unwrap();
        assert_eq!((levels.seconds, levels.parts), (4.0, vec![Part::Levels]));
        for wrong in [
            &["--pairs"][..],
            &["--pairs", "0"],
            &["--part", "all"],
            &["--state", "disabled"],
            &["--loud", "1"],
            &["--program", "hpcc"],
        ] {
            let error = Options::parse(wrong).unwrap_err().to_string();
            assert!(error.contains(wrong[0]) && error.contains("--seconds"), "{error}");
        }
    }
}
