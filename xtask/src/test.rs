//! `cargo xtask test`: every check, cheapest first.

use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::shell::{cargo, run as run_command};
use crate::{codegen, dist, retries, setup, tidy};

/// Tests at once: jobs wait more than they compute, and tests by the clock take the machine alone.
const JOBS_AT_ONCE: &str = "--test-threads=3";

/// Test programs of `ampl-tests`.
const END_TO_END: [&str; 5] = ["api", "control", "e2e", "loop", "mpi"];

/// Length of the end-to-end runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Long ones are left out or short.
    Quick,
    /// As continuous integration has the time for them.
    Usual,
    /// As long as they prove more.
    All,
}

impl Extent {
    /// The variable that tests read it from.
    fn variable(self) -> Option<(&'static str, &'static str)> {
        let word = match self {
            Self::Quick => "quick",
            Self::Usual => return None,
            Self::All => "all",
        };
        Some(("AMPL_TEST_EXTENT", word))
    }
}

/// Runs every check and stops at the first that fails.
///
/// # Errors
/// The failed step's own, under the step's name.
pub fn run(extent: Extent) -> Result<()> {
    let started = Instant::now();
    step("setup", || setup::run().map(|_| ()))?;
    step("codegen --check", || codegen::run(true))?;
    step("tidy", tidy::run)?;
    step("format", || run_command(cargo().args(["fmt", "--all", "--check"])))?;
    if lints_while_it_builds() {
        println!("== clippy: lints are looked for while the tests are built");
    } else {
        step("clippy", || {
            run_command(cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
            dist::clippy_of_replayer()
        })?;
    }
    // Of the whole workspace: fewer packages would have shared ones built again with fewer features.
    let unit = ["test", "--workspace", "--exclude", "ampl-tests"];
    // The library's last crate takes one processor for long: it is built beside the tests.
    let library = std::thread::spawn(|| step("the library as it is released", dist::build_library));
    let tested = step("unit and property tests", || run_command(cargo().args(unit).envs(extent.variable())));
    library.join().expect("a step returns its error")?;
    tested?;
    let dist = step("the command and what else is installed", dist::checked)?;
    step("end to end over MPI", || {
        let tests = |options: &[&str]| {
            let mut tests = cargo();
            // Beside the command, which has no tests of these kinds, for the same features of what both need.
            tests.args(["test", "-p", "ampl-tests", "-p", "ampl-cli", "--no-fail-fast", "--lib"]);
            tests.args(END_TO_END.iter().flat_map(|name| ["--test", name])).arg("--").args(options);
            tests.env("AMPL_TEST_DIST", &dist);
            tests.envs(extent.variable());
            tests
        };
        retries::run(tests, &[JOBS_AT_ONCE])
    })?;
    println!("== every check passed in {:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}

/// True where cargo compiles the workspace by clippy's driver, as `.ci/run` asks it to.
fn lints_while_it_builds() -> bool {
    std::env::var("RUSTC_WORKSPACE_WRAPPER").is_ok_and(|wrapper| wrapper.ends_with("clippy-driver"))
}

fn step<T>(name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    println!("== {name}");
    let started = Instant::now();
    let value = work().with_context(|| format!("step \"{name}\""))?;
    println!("== {name}: {:.1} s", started.elapsed().as_secs_f64());
    Ok(value)
}
