//! Tests that failed, once more and by themselves.
//!
//! End-to-end tests judge real jobs. While something else keeps the machine busy a job may be another one than its test takes it
//! for. A test that fails by itself, too, fails.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context as _, Result, bail};

/// Most tests that are run again: more have another cause than the machine.
const MOST: usize = 4;

/// Runs the command that `tests` makes of options for the test programs, at first with `options`. Of its tests those that
/// failed are run again, one after the other, and named.
///
/// # Errors
/// When the command does not start, one of the tests fails again or is not found, more than four failed, or something else
/// than a test did: a test program that does not come to its end.
pub fn run(tests: impl Fn(&[&str]) -> Command, options: &[&str]) -> Result<()> {
    let first = Outcome::of(&mut tests(options))?;
    if first.status.success() {
        return Ok(());
    }
    let failed = first.failed;
    if failed.is_empty() || failed.len() > MOST || first.begun != first.ended {
        bail!("the tests failed ({})", first.status);
    }
    println!("== again, by themselves: {}", failed.join(", "));
    let names = failed.iter().map(String::as_str);
    let alone: Vec<&str> = ["--test-threads=1", "--exact"].into_iter().chain(names).collect();
    let again = Outcome::of(&mut tests(&alone))?;
    if !again.status.success() || again.passed < failed.len() {
        bail!("failed by themselves, too, or were not found ({}): {}", again.status, failed.join(", "));
    }
    println!("== failed beside others, passed by themselves: {}", failed.join(", "));
    Ok(())
}

/// Output of test programs as far as it tells of tests.
struct Outcome {
    status: ExitStatus,
    failed: Vec<String>,
    passed: usize,
    /// Test programs that began, and those that came to their end.
    begun: usize,
    ended: usize,
}

impl Outcome {
    /// Runs `command` with its output on the terminal.
    fn of(command: &mut Command) -> Result<Self> {
        let mut running = command.stdout(Stdio::piped()).spawn().context("cannot start the tests")?;
        let (mut failed, mut passed, mut begun, mut ended) = (Vec::new(), 0, 0, 0);
        for line in BufReader::new(running.stdout.take().expect("it is a pipe")).lines() {
            let line = line.context("output of the tests")?;
            println!("{line}");
            begun += usize::from(line.starts_with("running "));
            ended += usize::from(line.starts_with("test result: "));
            let Some(test) = line.strip_prefix("test ") else { continue };
            failed.extend(test.strip_suffix(" ... FAILED").map(str::to_owned));
            passed += usize::from(test.ends_with(" ... ok"));
        }
        Ok(Self { status: running.wait()?, failed, passed, begun, ended })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a script as the tests, whose arguments are the options.
    fn tried(script: &str) -> Result<()> {
        let tests = |options: &[&str]| {
            let mut command = Command::new("sh");
            command.args(["-c", script, "tests"]).args(options);
            command
        };
        run(tests, &["--test-threads=3"])
    }

    /// A script that prints what test programs do: `first`, or `alone` where tests are named.
    fn script(first: &str, alone: &str) -> String {
        format!("case \"$*\" in *--exact*) {alone};; *) echo 'running 9 tests'; {first};; esac")
    }

    const END: &str = "echo 'test result: FAILED. 7 passed'; exit 101";

    #[test]
    fn what_fails_once_is_run_by_itself() {
        let two = "echo 'test one::a ... FAILED'; echo 'test two ... ok'; echo 'test three ... FAILED'";
        let first = format!("{two}; {END}");
        let named = |end: &str| {
            let words = "--test-threads=1 --exact one::a three";
            format!("test \"$*\" = '{words}' || exit 9; {end}")
        };
        let passed = "echo 'test one::a ... ok'; echo 'test three ... ok'";
        tried(&script(&first, &named(passed))).unwrap();
        assert!(tried(&script(&first, &named("exit 101"))).is_err());
        assert!(tried(&script(&first, &named("echo 'test one::a ... ok'"))).is_err(), "one is not found");
        tried(&script("exit 0", "exit 9")).unwrap();
    }

    #[test]
    fn many_failures_and_others_are_no_accident() {
        let failures = |number: usize, end: &str| {
            // A second run would pass.
            let alone = "for i in 1 2 3 4 5; do echo 'test 1 ... ok'; done";
            script(&format!("for i in $(seq {number}); do echo \"test $i ... FAILED\"; done; {end}"), alone)
        };
        tried(&failures(MOST, END)).unwrap();
        let crashed = format!("echo 'running 2 tests'; {END}");
        for (number, end) in [(MOST + 1, END), (0, END), (0, "kill -9 $$"), (1, "exit 101"), (1, &*crashed)] {
            assert!(tried(&failures(number, end)).is_err(), "{number}: {end}");
        }
    }
}
