//! `ampl diff`: two sides of runs compared, and rules that changes may fail.

mod arguments;
mod calibrate;
mod files;
mod html;
mod view;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ampl_analysis::comparison::{
    Comparison, Options, Powerless, Profile, Rule, RuleFile, Settled, Spread, Verdict, compare,
};
use ampl_export::benchmarks;
use ampl_report::comparison as report;

pub use arguments::rewritten;

use crate::failure::{CONDITION, Failure, INCOMPARABLE, INCONCLUSIVE, NOT_FOUND, USAGE};
use crate::output;
use crate::rundir::RunArg;
use crate::{fraction, strata};

/// Most strata that are compared one by one.
const MOST_STRATA: usize = 16;

/// Compare runs: structure exactly, times with their noise; let changes fail a pipeline.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Calls, bytes, messages, partners, communicators, steps and sequences are exact in each run. Polls and the order of
receives from any source are left out. Times take several runs a side: three for one rule, more for several.

Rules are WHAT[@PART]>VALUE, with > >= < <= or != and a value in percent or in the quantity's unit. PART is a function,
FUNCTION@SITE, stratum:RANKS, group:NAME or region:NAME, with * for any letters.
Exit status: 0 pass, 5 fail, 6 inconclusive, 7 incomparable.

Examples:
  ampl diff ampl-app-1 ampl-app-2
  ampl diff base-* -- new-* --fail-if 'elapsed>5% and 50ms' --fail-if 'calls!=0' --junit diff.xml
  ampl diff base-* -- new-* --html diff.html
  ampl diff base-* -- new-1 --fail-if 'compute.time@stratum:*>5%'
  ampl diff --calibrate run-* -o spread.toml")]
pub struct Args {
    /// A run and another; or the runs of the base, -- and the new runs
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
    /// The new runs: the same as --
    #[arg(long, value_name = "RUN", num_args = 1.., hide = true)]
    new: Vec<PathBuf>,
    /// Fail on a change: 'mpi.time>5%', 'calls!=0', 'elapsed>5% and 50ms'
    #[arg(long = "fail-if", value_name = "RULE", value_parser = rule)]
    fail_if: Vec<Rule>,
    /// File of rules, in TOML: [[rule]] with fail_if and floor; confidence; inconclusive
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// Standard deviation of the times of equal runs, in percent; without it, the runs show it
    #[arg(long, value_name = "PCT", value_parser = percentage, conflicts_with = "spread")]
    noise: Option<f64>,
    /// Spreads of equal runs, as --calibrate writes them
    #[arg(long, value_name = "FILE")]
    spread: Option<PathBuf>,
    /// Learn how much equal runs differ from the runs that are named, and write that
    #[arg(long, conflicts_with_all = ["new", "fail_if", "rules", "noise", "spread", "html"])]
    calibrate: bool,
    /// File for --calibrate; without it, standard output
    #[arg(short = 'o', long = "output", value_name = "FILE", requires = "calibrate")]
    output: Option<PathBuf>,
    /// Confidence of intervals and of all rules together; without it 0.95
    #[arg(long, value_name = "P", value_parser = fraction::inside)]
    confidence: Option<f64>,
    /// Compare runs of other ranks, programs or arguments, unfinished ones, and times under another MPI
    #[arg(long)]
    allow: bool,
    /// Answer that an inconclusive comparison counts as: pass or fail
    #[arg(long, value_name = "pass|fail", value_parser = settled)]
    inconclusive: Option<Settled>,
    /// Print every row and every fact
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long, group = "form")]
    json: bool,
    /// Print Markdown, for a merge request
    #[arg(long, group = "form")]
    markdown: bool,
    /// Print JSON for Bencher: the new runs' values
    #[arg(long, group = "form")]
    bencher: bool,
    /// Print JSON for github-action-benchmark, customSmallerIsBetter: the new runs' times
    #[arg(long, group = "form")]
    github_benchmark: bool,
    /// Write JUnit XML, a test case for each rule
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write a page for a browser: the changes, and a run of each side next to the other
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

fn rule(text: &str) -> Result<Rule, String> {
    Rule::parse(text).map_err(|error| error.to_string())
}

/// `3`, `3%` and `0.03` are three percent.
fn percentage(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.trim().strip_suffix('%') {
        Some(number) => (number.trim().parse::<f64>(), 0.01),
        None => (text.trim().parse::<f64>(), 1.0),
    };
    let value =
        number.map(|number| if scale == 1.0 && number >= 1.0 { number / 100.0 } else { number * scale });
    let known = value.ok().filter(|value| (0.0..1.0).contains(value) && *value > 0.0);
    known.ok_or_else(|| "a part of the time is needed, such as 3%".into())
}

fn settled(text: &str) -> Result<Settled, String> {
    match text {
        "pass" => Ok(Settled::Pass),
        "fail" => Ok(Settled::Fail),
        _ => Err("pass or fail is needed".into()),
    }
}

/// Compares the runs that `args` name, prints what differs, and returns the answer as the exit status.
///
/// # Errors
/// A [`Failure`] for arguments and files that cannot be read, and for rules that could never fail.
pub fn diff(args: &Args) -> anyhow::Result<ExitCode> {
    if args.calibrate {
        return calibrate::calibrate(args);
    }
    let (base_runs, new_runs) = sides(args)?;
    let options = options(args, base_runs, new_runs)?;
    let (base, new) = (profiles(base_runs)?, profiles(new_runs)?);
    known_quantities(&options.rules, base.iter().chain(&new))?;
    let found = compare(&base, &new, &options).map_err(powerless)?;
    if let Some(path) = &args.junit {
        files::junit(path, &found)?;
    }
    if let Some(path) = &args.html {
        html::write(path, &found, [(base_runs, &base), (new_runs, &new)])?;
    }
    match () {
        () if args.json => output::json(&view::document(&found))?,
        () if args.markdown => output::print(|out| report::markdown(out, &found))?,
        () if args.bencher => output::json(&benchmarks::bencher(&found))?,
        () if args.github_benchmark => {
            output::json(&benchmarks::github_benchmark(&found, report::words::name))?
        }
        () => output::print(|out| report::write(out, &found, args.all))?,
    }
    Ok(status(&found))
}

fn status(found: &Comparison) -> ExitCode {
    ExitCode::from(match found.verdict {
        Verdict::Pass => 0,
        Verdict::Fail => CONDITION,
        Verdict::Inconclusive => INCONCLUSIVE,
        Verdict::Incomparable => INCOMPARABLE,
    })
}

/// Runs of the base, and the new ones.
fn sides(args: &Args) -> anyhow::Result<(&[PathBuf], &[PathBuf])> {
    match (&args.runs[..], &args.new[..]) {
        ([base, new], []) => Ok((std::slice::from_ref(base), std::slice::from_ref(new))),
        ([_], []) => Err(Failure::message(USAGE, "there is one run only", "command line", "name two runs")),
        (_, []) => {
            let what = format!("it is not clear which of {} runs are new", args.runs.len());
            Err(Failure::message(
                USAGE,
                what,
                "command line",
                "write -- between the base's runs and the new ones",
            ))
        }
        (base, new) => Ok((base, new)),
    }
}

fn options(args: &Args, base: &[PathBuf], new: &[PathBuf]) -> anyhow::Result<Options> {
    let file = match &args.rules {
        Some(path) => RuleFile::parse(&text(path)?).map_err(|what| {
            Failure::message(USAGE, what, path.display(), "write [[rule]] with fail_if = \"mpi.time>5%\"")
        })?,
        None => RuleFile::default(),
    };
    let spread = match &args.spread {
        Some(path) => Spread::parse(&text(path)?).map_err(|what| {
            Failure::message(USAGE, what, path.display(), "write it with 'ampl diff --calibrate'")
        })?,
        None => Spread::default(),
    };
    let found = [&base[0], &new[0]].into_iter().find_map(|run| strata_of(run));
    Ok(Options {
        confidence: args.confidence.or(file.confidence).unwrap_or(0.95),
        noise: args.noise,
        spread,
        strata: found.unwrap_or_default(),
        rules: [&file.rules[..], &args.fail_if].concat(),
        inconclusive: args.inconclusive.or(file.inconclusive),
        allow: args.allow,
    })
}

/// Strata of the run, `0-3,8` each, if there are several.
fn strata_of(run: &Path) -> Option<Vec<String>> {
    let found = strata::of_run(run).ok()?;
    let several = (2..=MOST_STRATA).contains(&found.strata.len());
    several.then(|| found.strata.into_iter().map(|stratum| stratum.ranks).collect())
}

fn text(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).map_err(|error| {
        Failure::message(
            NOT_FOUND,
            format!("cannot read it: {error}"),
            path.display(),
            "name a file that is there",
        )
    })
}

/// The quantities of each run; damage is reported on stderr.
fn profiles(runs: &[PathBuf]) -> anyhow::Result<Vec<Profile>> {
    runs.iter().map(|run| Ok(Profile::of(&RunArg { run: run.clone() }.read()?))).collect()
}

/// Refuses rules about quantities that there are not.
fn known_quantities<'a>(rules: &[Rule], runs: impl Iterator<Item = &'a Profile>) -> anyhow::Result<()> {
    let runs: Vec<&Profile> = runs.collect();
    let is_known = |rule: &Rule| {
        let named = ampl_analysis::comparison::RunQuantity::NAMED.contains(&rule.what);
        named || runs.iter().any(|run| run.times.keys().any(|key| key.what == rule.what))
    };
    match rules.iter().find(|rule| !is_known(rule)) {
        None => Ok(()),
        Some(rule) => {
            let names: Vec<&str> = ampl_analysis::comparison::RunQuantity::NAMED
                .iter()
                .map(|quantity| quantity.name())
                .collect();
            let fix = format!("name one of {}, or a metric of the runs", names.join(", "));
            let what = format!("there is no quantity '{}'", rule.what.name());
            Err(Failure::message(USAGE, what, format!("rule '{}'", rule.text), fix))
        }
    }
}

fn powerless(error: Powerless) -> anyhow::Error {
    let (what, fix) = report::words::powerless(&error);
    Failure::message(USAGE, what, format!("rule '{}'", error.rule), fix)
}

/// Standard name of the option that `--` stands for.
fn new_option() -> OsString {
    "--new".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_a_share() {
        for text in ["3", "3%", "0.03", " 3 % "] {
            assert!((percentage(text).unwrap() - 0.03).abs() < 1e-12, "{text}");
        }
        assert!((percentage("0.5%").unwrap() - 0.005).abs() < 1e-12);
        for text in ["", "0", "-1", "100", "x", "nan"] {
            assert!(percentage(text).is_err(), "{text}");
        }
    }
}
