//! `cargo xtask bench history`: lists of an archive of many records, the first one, and from the index that it leaves.
//!
//! Records are made up: 50 programs of 300 users. Nothing is asserted: a table is printed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use crate::dist;
use crate::shell::target;

const USAGE: &str = "\
options of history (all optional):
  --records N  records of the archive (100000)
  --dist DIR   an installation to measure instead of building one";

const USERS: usize = 300;
const PROGRAMS: usize = 50;
/// Lists of each kind, of which the shortest counts.
const ROUNDS: usize = 5;

/// Prints the time of each kind of list.
///
/// # Errors
/// For unknown options, when the archive cannot be written or a list fails.
pub fn run(arguments: &[&str]) -> Result<()> {
    let (mut records, mut installation) = (100_000, None);
    for pair in arguments.chunks(2) {
        match pair {
            ["--records", number] => records = number.parse().with_context(|| USAGE)?,
            ["--dist", place] => installation = Some(std::path::absolute(place)?),
            _ => bail!("no such option: {}\n{USAGE}", pair.join(" ")),
        }
    }
    let ampl = match installation {
        Some(installation) => installation,
        None => dist::run()?,
    };
    let ampl = ampl.join("bin/ampl");
    let archive = target().join("bench-history");
    _ = fs::remove_dir_all(&archive);
    for user in 0..USERS {
        fs::create_dir_all(archive.join(format!("user{user}")))?;
    }
    for number in 0..records {
        fs::write(file(&archive, number), record(number))?;
    }
    let like = file(&archive, 0).display().to_string();
    println!("| {records} records | time |\n|---|---|");
    println!("| first list | {:.2} s |", list(&ampl, &archive, &[])?);
    for (what, words) in [("list", &[][..]), ("of one kind", &["--like", &like]), ("as JSON", &["--json"])] {
        let times = (0..ROUNDS).map(|_| list(&ampl, &archive, words)).collect::<Result<Vec<f64>>>()?;
        println!("| {what} | {:.2} s |", times.into_iter().fold(f64::INFINITY, f64::min));
    }
    fs::remove_dir_all(&archive)?;
    Ok(())
}

/// Seconds that a list takes.
fn list(ampl: &Path, archive: &Path, words: &[&str]) -> Result<f64> {
    let begun = Instant::now();
    let mut command = Command::new(ampl);
    let status = command.arg("history").arg(archive).args(words).stdout(Stdio::null()).status()?;
    if !status.success() {
        bail!("ampl history ended with {status}");
    }
    Ok(begun.elapsed().as_secs_f64())
}

fn file(archive: &Path, number: usize) -> PathBuf {
    archive.join(format!("user{}/{number}.json", number % USERS))
}

/// A record of about 3 kB.
fn record(number: usize) -> String {
    let (program, user) = (number % PROGRAMS, number % USERS);
    let started_ns = 1_700_000_000_000_000_000 + number as u64 * 300_000_000_000;
    let elapsed_ns = 100_000_000_000 + (number as u64 * 7919 % 5003) * 1_000_000;
    let site = r#"{"function":"MPI_Allreduce","site":"solver.c:120","calls":5000,"ns":1000000000,"share":0.05,"coverage":1.0}"#;
    let fact = r#"{"kind":"module","name":"library","value":"a version of it, and how it was built"}"#;
    format!(
        r#"{{"schema":1,"key":"{program}-{user}","started_ns":{started_ns},"user":"user{user}","app":"app{program}",
"job":"{number}","run":"/scratch/run-{number}","ranks":64,"hosts":["node1","node2"],"host_count":2,
"elapsed_ns":{elapsed_ns},"calls":5000,"efficiency":{{"parallel":0.8,"load_balance":0.9,"communication":0.89,
"coverage":1.0,"basis":"census"}},"sites":[{}],"cost":{{"agent_ns":5,"share":0.01,"processor_share":0.01,
"trace_bytes":100}},"completeness":{{"complete":true,"reported":64,"agent_failures":0,"damaged":0}},"metadata":[{}]}}"#,
        [site; 10].join(","),
        [fact; 20].join(","),
    )
}
