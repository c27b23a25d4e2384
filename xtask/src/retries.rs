//! Tests that failed, once more and by themselves.
//!
//! End-to-end tests judge real jobs. While something else keeps the machine busy a job may be another one than its test takes it
//! for. A test that fails by itself, too, fails.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::shell;

/// Most tests that are run again: more have another cause than the machine.
const MOST: usize = 4;

/// Runs the command that `tests` makes of options for the test programs, at first with `options`. Of its tests those that
/// failed are run again, one after the other, and named.
///
/// # Errors
/// When the command does not start, one of the tests fails again, more than four failed, or something else than a test did.
pub fn run(tests: impl Fn(&[&str]) -> Command, options: &[&str]) -> Result<()> {
    let mut first = tests(options);
    let mut running = first.stdout(Stdio::piped()).spawn().context("cannot start the tests")?;
    let mut failed = Vec::new();
    for line in BufReader::new(running.stdout.take().expect("it is a pipe")).lines() {
        let line = line.context("output of the tests")?;
        println!("{line}");
        failed.extend(failure(&line).map(str::to_owned));
    }
    let status = running.wait()?;
    if status.success() {
        return Ok(());
    }
    if failed.is_empty() || failed.len() > MOST {
        bail!("the tests failed ({status})");
    }
    println!("== again, by themselves: {}", failed.join(", "));
    let names = failed.iter().map(String::as_str);
    let alone: Vec<&str> = ["--test-threads=1", "--exact"].into_iter().chain(names).collect();
    shell::run(&mut tests(&alone))?;
    println!("== failed beside others, passed by themselves: {}", failed.join(", "));
    Ok(())
}

/// The test that failed, where `line` of a test program's output tells of one.
fn failure(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
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

    #[test]
    fn what_fails_once_is_run_by_itself() {
        let two =
            "echo 'test one::a ... FAILED'; echo 'test two ... ok'; echo 'test three ... FAILED'; exit 101";
        let alone = "--test-threads=1 --exact one::a three";
        let script = |again: &str| format!("case \"$*\" in '{alone}') {again};; *) {two};; esac");
        tried(&script("exit 0")).unwrap();
        assert!(tried(&script("exit 101")).is_err());
        tried("exit 0").unwrap();
    }

    #[test]
    fn many_failures_and_others_are_no_accident() {
        // A second run would pass.
        let script = |failures: usize, end: &str| {
            format!(
                "case \"$*\" in *exact*) exit 0;; esac; for i in $(seq {failures}); do echo \"test $i ... FAILED\"; done; {end}"
            )
        };
        tried(&script(MOST, "exit 101")).unwrap();
        for script in [script(MOST + 1, "exit 101"), script(0, "exit 101"), script(0, "kill -9 $$")] {
            assert!(tried(&script).is_err(), "{script}");
        }
    }
}
