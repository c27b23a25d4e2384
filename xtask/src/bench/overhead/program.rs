//! The programs that are measured.

use anyhow::{Context as _, Result, bail};

use super::job::{Bench, State};
use super::options::Options;
use crate::shell::{find, root};

/// Calls of one step of `overhead.c`: 16, and every fourth step one more.
const CALLS_PER_STEP: f64 = 16.25;

/// A program and how to run it.
#[derive(Debug)]
pub struct Program {
    /// Its name in tables.
    pub name: &'static str,
    /// Its command line.
    pub words: Vec<String>,
    /// A shorter one, for callgrind.
    pub short: Vec<String>,
    /// End of blocks: a function that finds no live request, and the number of its calls per block.
    pub block: (&'static str, u32),
    about: String,
}

impl Program {
    /// Line that describes it.
    pub fn describe(&self) -> String {
        format!("{}: {}", self.name, self.about)
    }
}

/// The programs that `options` choose.
///
/// # Errors
/// When the synthetic program does not run, or LAMMPS was asked for and is not there.
pub fn choose(bench: &Bench, options: &Options) -> Result<Vec<Program>> {
    let wanted = |name: &str| options.program.as_deref().is_none_or(|chosen| chosen == name);
    let mut programs = Vec::new();
    if wanted("synthetic") {
        programs.push(synthetic(bench, options)?);
    }
    if wanted("lammps") {
        match find(&["lmp"]) {
            Some(lammps) => programs.push(self::lammps(&lammps.display().to_string(), options)),
            None if options.program.is_some() => bail!("LAMMPS is missing: run `cargo xtask setup`"),
            None => println!("LAMMPS is missing: run `cargo xtask setup`"),
        }
    }
    Ok(programs)
}

fn lammps(command: &str, options: &Options) -> Program {
    let input = root().join("tests/lammps/in.melt").display().to_string();
    let words = |steps: u32| {
        let steps = steps.to_string();
        let words = [command, "-log", "none", "-in", &input, "-var", "steps", &steps];
        words.map(str::to_owned).to_vec()
    };
    Program {
        name: "LAMMPS",
        words: words(options.lammps_steps),
        short: words(options.lammps_steps.min(50)),
        // A timestep exchanges borders with either neighbour, there and back.
        block: ("MPI_Irecv", 4),
        about: format!(
            "a melt of 32,000 atoms, {} timesteps; ranks: {}",
            options.lammps_steps, options.ranks
        ),
    }
}

/// The synthetic program with as much work between its calls as makes the wanted rate.
fn synthetic(bench: &Bench, options: &Options) -> Result<Program> {
    let words = |steps: f64, work: f64| {
        vec![bench.synthetic.display().to_string(), format!("{steps:.0}"), format!("{work:.0}")]
    };
    // A step takes a + b × work: two amounts of work give a and b. The best of three, of the
    // slower rank's processor time, because other tenants only ever add.
    let step_ns = |work: f64| -> Result<f64> {
        let mut best = f64::INFINITY;
        for _ in 0..3 {
            let finished = bench.run(&words(4000.0, work), State::Bare)?;
            let (slowest, _) = slowest_loop(&finished.stdout).context("no loop was reported")?;
            best = best.min(slowest / 4000.0);
        }
        Ok(best)
    };
    let wanted = 1e9 * CALLS_PER_STEP / options.rate;
    let work = match options.work {
        Some(work) => work,
        None => {
            let (few, many) = (step_ns(500.0)?, step_ns(1500.0)?);
            let work = (500.0 + 1000.0 * (wanted - few) / (many - few)).max(0.0);
            if !work.is_finite() {
                bail!("work takes no time: {few} ns a step with 500 rows, {many} ns with 1500");
            }
            work
        }
    };
    let steps = options.seconds * 1e9 / wanted;
    Ok(Program {
        name: "synthetic",
        words: words(steps, work),
        short: words(options.counted_steps, work),
        block: ("MPI_Allreduce", 1),
        about: format!(
            "a step relaxes {work:.0} grid rows, makes 16 or 17 calls and is to take {:.0} us; ranks: {}",
            wanted / 1e3,
            options.ranks
        ),
    })
}

/// Processor time and clock time of the loop on the slowest rank, nanoseconds.
fn slowest_loop(stdout: &str) -> Option<(f64, f64)> {
    let loops = stdout.lines().filter(|line| line.starts_with("loop "));
    loops
        .filter_map(|line| {
            let words: Vec<f64> = line.split_whitespace().skip(2).flat_map(str::parse).collect();
            Some((*words.get(1)?, *words.get(2)?))
        })
        .max_by(|a, b| a.0.total_cmp(&b.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_rank_counts() {
        let text = "loop 0 100 50 60\nloop 1 100 70 72\n";
        assert_eq!(slowest_loop(text), Some((70.0, 72.0)));
        assert_eq!(slowest_loop("no loops"), None);
    }
}
