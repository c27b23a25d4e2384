//! Identity of a run: what must be equal before two runs are compared.

use ampl_core::program::program_of;
use ampl_trace::Trace;

use crate::programs;

/// Directories for files that belong to one job.
const SCRATCH: [&str; 6] = ["/tmp/", "/var/tmp/", "/dev/shm/", "/scratch", "/run/", "/local"];
/// Digits in a row that make a name in such a directory one of a job, not of an input.
const JOB_DIGITS: usize = 4;

/// Facts that must be equal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Ranks of the job.
    pub ranks: u32,
    /// Programs and their ranks.
    pub programs: Vec<String>,
    /// Arguments, without the directories of files.
    pub arguments: Vec<String>,
    /// Name of the MPI library, without its version.
    pub mpi: String,
    /// True where all ranks came to the end.
    pub complete: bool,
}

/// Reason why runs cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// Numbers of ranks.
    Ranks(u32, u32),
    /// Programs.
    Programs(String, String),
    /// Arguments.
    Arguments(String, String),
    /// MPI libraries: times cannot be compared, calls can.
    Mpi(String, String),
    /// The run of that number on that side did not come to its end.
    Unfinished(Side, usize),
}

/// Side of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The runs that are compared with.
    Base,
    /// The runs that are judged.
    New,
}

impl Mismatch {
    /// True where only times cannot be compared.
    pub fn is_of_time(&self) -> bool {
        matches!(self, Self::Mpi(..))
    }
}

impl Identity {
    /// The identity of a run.
    pub fn of(trace: &Trace) -> Self {
        let job = trace.run.metadata.job.as_ref().map(|job| job.id.as_str()).unwrap_or_default();
        let programs = programs::of(trace);
        let programs = match &programs[..] {
            [] => vec![file_name(&program_of(&trace.run.command)).to_owned()],
            [one] => vec![one.program.clone()],
            several => {
                several.iter().map(|of| format!("{} on {}", file_name(&of.program), of.ranks)).collect()
            }
        };
        Self {
            ranks: trace.run.ranks,
            programs,
            arguments: trace.run.command.iter().skip(1).map(|word| normalised(word, job)).collect(),
            mpi: library(&trace.run.mpi_library),
            complete: trace.complete,
        }
    }

    /// Differences of `other` from this run.
    pub fn mismatches(&self, other: &Self) -> Vec<Mismatch> {
        let mut found = Vec::new();
        if self.ranks != other.ranks {
            found.push(Mismatch::Ranks(self.ranks, other.ranks));
        }
        if self.programs != other.programs {
            found.push(Mismatch::Programs(self.programs.join(", "), other.programs.join(", ")));
        }
        if self.arguments != other.arguments {
            found.push(Mismatch::Arguments(self.arguments.join(" "), other.arguments.join(" ")));
        }
        if self.mpi != other.mpi {
            found.push(Mismatch::Mpi(self.mpi.clone(), other.mpi.clone()));
        }
        found
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(path)
}

/// Name of the library from its own description: `Open MPI v4.1.4, package …` is `Open MPI`.
fn library(description: &str) -> String {
    let first = description.lines().next().unwrap_or_default();
    let name =
        first.split(|letter: char| letter.is_ascii_digit() || letter == ',').next().unwrap_or_default();
    let name = name.trim().trim_end_matches(" v").trim_end_matches(':').trim();
    name.strip_suffix("Version").or_else(|| name.strip_suffix("Library")).unwrap_or(name).trim().to_owned()
}

/// `word` without the directories of the paths in it, the number of its job and names that only one job has.
fn normalised(word: &str, job: &str) -> String {
    let mut text = String::new();
    let mut part = String::new();
    for letter in word.chars() {
        if matches!(letter, '=' | ',' | ':' | ';') {
            text += &of_path(&part, job);
            part.clear();
            text.push(letter);
        } else {
            part.push(letter);
        }
    }
    text + &of_path(&part, job)
}

fn of_path(path: &str, job: &str) -> String {
    if !path.contains('/') {
        return without_job(path, job);
    }
    let own = without_job(file_name(path), job);
    if SCRATCH.iter().any(|place| path.starts_with(place)) { without_numbers(&own) } else { own }
}

fn without_job(text: &str, job: &str) -> String {
    if job.len() < 2 { text.to_owned() } else { text.replace(job, "{job}") }
}

/// `name` with long numbers and random endings replaced.
fn without_numbers(name: &str) -> String {
    if let Some(start) =
        ["tmp.", "tmp"].iter().find(|start| name.starts_with(**start) && name.len() > start.len())
        && !name[start.len()..].contains('.')
    {
        return format!("{start}{{}}");
    }
    let mut text = String::new();
    let mut digits = String::new();
    for letter in name.chars().chain(['\0']) {
        if letter.is_ascii_digit() {
            digits.push(letter);
            continue;
        }
        text += if digits.len() >= JOB_DIGITS { "{}" } else { &digits };
        digits.clear();
        if letter != '\0' {
            text.push(letter);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_builds_and_jobs_are_no_difference() {
        for (one, other) in [
            ("/opt/a/build-1/in.lj", "/opt/b/build-2/in.lj"),
            ("--out=/scratch/u/4711/x.dat", "--out=/scratch/u/4812/x.dat"),
            ("/tmp/tmp.AbCdEf", "/tmp/tmp.ZyXwVu"),
            ("/scratch/u/run-20260101", "/scratch/u/run-20260102"),
            ("a=1,/x/in:b", "a=1,/y/in:b"),
        ] {
            assert_eq!(normalised(one, ""), normalised(other, ""), "{one}");
        }
        assert_eq!(normalised("out-81.txt", "81"), normalised("out-92.txt", "92"));
    }

    #[test]
    fn numbers_and_inputs_are_differences() {
        for (one, other) in [
            ("100", "200"),
            ("-n=100", "-n=101"),
            ("/opt/a/small.in", "/opt/a/large.in"),
            ("/tmp/in.1", "/tmp/in.2"),
            ("in.20000", "in.30000"),
            ("/scratch/u/grid-64", "/scratch/u/grid-128"),
        ] {
            assert_ne!(normalised(one, ""), normalised(other, ""), "{one}");
        }
    }

    #[test]
    fn libraries_have_names_without_versions() {
        for (description, name) in [
            ("Open MPI v4.1.4, package: Debian\nmore", "Open MPI"),
            ("Open MPI v5.0.1", "Open MPI"),
            ("MPICH Version:      4.0.2\nMPICH Release date: x", "MPICH"),
            ("Intel(R) MPI Library 2021.5 for Linux", "Intel(R) MPI"),
            ("synthetic", "synthetic"),
            ("", ""),
        ] {
            assert_eq!(library(description), name);
        }
    }

    #[test]
    fn every_mismatch_is_named() {
        let one = Identity {
            ranks: 4,
            programs: vec!["a".into()],
            arguments: vec!["-n".into()],
            mpi: "MPICH".into(),
            complete: true,
        };
        assert_eq!(one.mismatches(&one), []);
        let mpi = Identity { mpi: "Open MPI".into(), ..one.clone() };
        assert!(one.mismatches(&mpi).iter().all(Mismatch::is_of_time));
        let other = Identity { ranks: 8, programs: vec!["b".into()], arguments: Vec::new(), ..one.clone() };
        let found = one.mismatches(&other);
        assert_eq!(found[0], Mismatch::Ranks(4, 8));
        assert!(found.len() == 3 && !found.iter().any(Mismatch::is_of_time));
    }
}
