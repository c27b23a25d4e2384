//! Commands on the other hosts of a run, which bring what their memory holds.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use ampl_core::units::RankSet;
use ampl_reader::directory::nodes::{self, Home};
use ampl_reader::directory::{self, host};
use ampl_trace::Trace;

use super::{age, alive};
use crate::apart;
use crate::environment;
use crate::failure::{Failure, Kind};

/// Hosts that are asked at once.
const AT_ONCE: usize = 16;
/// Rounds of hosts that are asked where none answers.
const TRIES: usize = 2;
/// Time for a host's answer.
const ANSWER: Duration = Duration::from_secs(30);
/// Time for the errors of a command that has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Letters of a reason, at most.
const REASON: usize = 160;

/// Way to start a command on another host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Via {
    /// A step of the Slurm job of that number.
    Slurm(String),
    /// A remote shell, which is given one text.
    Shell(Vec<String>),
    /// A command line before the command.
    Given(Vec<String>),
}

/// Name of a host in a command line of [`Via`].
const HOST: &str = "{host}";

impl Via {
    /// `given` where that is there; else a step of the job that `run` is of; else ssh.
    pub fn of(run: &Path, given: Option<&str>) -> Self {
        if let Some(given) = given {
            let words: Vec<String> = given.split_whitespace().map(str::to_owned).collect();
            let first = words.first().and_then(|word| Path::new(word).file_name()).and_then(OsStr::to_str);
            return match first {
                Some("ssh" | "rsh") => Self::Shell(words),
                _ => Self::Given(words),
            };
        }
        let job = directory::scheduled(run).filter(|(scheduler, _)| scheduler == "slurm");
        match job.filter(|_| environment::which(Path::new("srun")).is_some()) {
            Some((_, job)) => Self::Slurm(job),
            None => Self::Shell(
                ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", HOST].map(str::to_owned).to_vec(),
            ),
        }
    }

    /// Command line that starts `words` on `host`.
    fn on(&self, host: &str, words: &[OsString]) -> Vec<OsString> {
        let before = |given: &[String]| -> Vec<OsString> {
            given.iter().map(|word| word.replace(HOST, host).into()).collect()
        };
        match self {
            Self::Slurm(job) => {
                let step = ["srun", "--overlap", "--quiet", "--nodes=1", "--ntasks=1"].map(OsString::from);
                let where_to = [format!("--jobid={job}"), format!("--nodelist={host}")].map(OsString::from);
                [&step[..], &where_to, words].concat()
            }
            Self::Shell(given) => [before(given), vec![quoted(words)]].concat(),
            Self::Given(given) => [before(given), words.to_vec()].concat(),
        }
    }
}

/// `words` as a shell takes them from one text.
fn quoted(words: &[OsString]) -> OsString {
    let word = |word: &OsString| format!("'{}'", word.to_string_lossy().replace('\'', "'\\''"));
    words.iter().map(word).collect::<Vec<_>>().join(" ").into()
}

/// Hosts of `run` other than this one, whose journals have not come home, with their ranks. Copies are no journals.
pub fn asked(run: &Path) -> BTreeMap<String, RankSet> {
    let is_name = |host: &str| {
        let letter = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        !host.starts_with('-') && host.chars().all(letter)
    };
    let mut hosts = nodes::elsewhere(run, &host(), |_| false);
    // A name that is none could be an option of the command.
    hosts.retain(|host, _| is_name(host) && nodes::state(run, host) != Home::Journals);
    hosts
}

/// A host of a run that has not given its journals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silent {
    /// Its name.
    pub host: String,
    /// Its ranks.
    pub ranks: RankSet,
    /// Reason, in words of the command that failed.
    pub why: String,
}

/// The hosts of `run` that [`asked`] has, none of which is asked, and the reason.
pub fn unasked(run: &Path, why: &str) -> Vec<Silent> {
    let silent = |(host, ranks)| Silent { host, ranks, why: why.into() };
    asked(run).into_iter().map(silent).collect()
}

/// Brings the journals of the other hosts of `run`, whose ranks have ended, into the run directory, and removes the
/// originals unless they are to be `kept`. Reports and returns the hosts that do not answer.
///
/// # Errors
/// A process of the job still runs on a host, or the path of this program is not known.
pub fn bring(run: &Path, via: Option<&str>, kept: bool) -> Result<Vec<Silent>, Failure> {
    let hosts = asked(run);
    if hosts.is_empty() {
        return Ok(Vec::new());
    }
    let (ampl, run) = (std::env::current_exe()?, std::path::absolute(run)?);
    let words = |_: &str| -> Vec<OsString> {
        let keep = kept.then(|| "--keep-journals".into());
        let words = [ampl.clone().into(), "recover".into(), "--node".into()];
        words.into_iter().chain(keep).chain([run.clone().into()]).collect()
    };
    let silent = silent(&Via::of(&run, via), &hosts, words);
    if let Some((host, why)) = silent.iter().find_map(|silent| {
        let said = silent.why.split_once(alive::STILL_RUNS)?.1;
        Some((&silent.host, said.trim_start_matches([':', ' ']).split(" (").next()?.to_owned()))
    }) {
        return Err(alive::refusal(&run, &format!("{why} of {host}")));
    }
    report(&run, &silent, via);
    Ok(silent)
}

/// Refuses a run of which one of the `silent` hosts has written into its directory a moment ago.
///
/// # Errors
/// A [`Failure`] that names the host, and the time after which it counts as ended.
pub fn refuse_fresh(run: &Path, silent: &[Silent]) -> Result<(), Failure> {
    for Silent { host, ranks, .. } in silent {
        if nodes::state(run, host) != Home::Copies {
            continue;
        }
        let Some(age) = age::of(run, host, ranks) else { continue };
        let Some(left) = age::left(run, age) else { continue };
        let what =
            format!("the job may still run: {host} does not answer, and wrote here {} s ago", age.as_secs());
        let fix =
            format!("name a way to the host with --via, or try again in {} s", left.as_secs_f64().ceil());
        return Err(Failure::message(Kind::Other, what, run.display(), fix));
    }
    Ok(())
}

/// The trace of `run`; of one that has none yet, with what other hosts hold now. The way to them is `via`, where one is
/// given.
///
/// # Errors
/// Errors of opening it.
pub fn read(run: &Path, via: Option<&str>) -> Result<Trace, Failure> {
    let copies = match directory::has_no_trace(run) {
        true => Copies::take(run, via)?,
        false => Copies::default(),
    };
    Ok(match &copies.0[..] {
        [] => directory::read(run)?,
        places => directory::from_journals(run, places)?,
    })
}

/// Copies of the journals of other hosts, which go when this is dropped.
#[derive(Debug, Default)]
struct Copies(Vec<PathBuf>);

impl Copies {
    /// Copies what the other hosts of `run` hold now, whether its ranks run or not, and reports each host that does not
    /// answer.
    ///
    /// # Errors
    /// The path of this program is not known.
    fn take(run: &Path, via: Option<&str>) -> Result<Self, Failure> {
        let hosts = asked(run);
        if hosts.is_empty() {
            return Ok(Self::default());
        }
        let (ampl, run) = (std::env::current_exe()?, std::path::absolute(run)?);
        let noted = nodes::of(&run);
        let place = |host: &str| noted.get(host).and_then(|ranks| Some(ranks.first()?.journals.clone()));
        let to = |host: &str| nodes::home(&run, host).with_extension(format!("seen-{}", std::process::id()));
        let words = |host: &str| -> Vec<OsString> {
            let from = place(host).unwrap_or_default();
            let words = ["copy-journals".into(), (&run).into(), from.into(), "0".into(), "--once".into()];
            [vec![ampl.clone().into()], words.to_vec(), vec![to(host).into()]].concat()
        };
        let copies = Self(hosts.keys().map(|host| to(host)).collect());
        report(&run, &silent(&Via::of(&run, via), &hosts, words), via);
        Ok(copies)
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        for place in &self.0 {
            let _ = fs::remove_dir_all(place);
        }
    }
}

/// Reports hosts of `run` that did not answer, and the age of the copies that stand in for them.
fn report(run: &Path, silent: &[Silent], via: Option<&str>) {
    for Silent { host, ranks, why } in silent {
        let there = !directory::journals_in(&nodes::home(run, host)).is_empty();
        let copy = match age::of(run, host, ranks).filter(|_| there) {
            _ if nodes::state(run, host) == Home::Last => ": its last copies are used".to_owned(),
            Some(age) => format!(": its copies of {} s ago are used", age.as_secs()),
            None => String::new(),
        };
        notice!("ampl: {host} does not answer ({why}){copy}");
    }
    if !silent.is_empty() && via.is_none() {
        notice!("ampl: name a command that starts programs there, as in --via 'ssh -p 2222 {HOST}'");
    }
}

/// Starts the command that `words` gives for each of `hosts`; returns the hosts on which it failed, with the reason.
fn silent(
    via: &Via,
    hosts: &BTreeMap<String, RankSet>,
    words: impl Fn(&str) -> Vec<OsString>,
) -> Vec<Silent> {
    let all: Vec<&String> = hosts.keys().collect();
    let silent = |host: &str, why: String| Silent { host: host.to_owned(), ranks: hosts[host].clone(), why };
    let mut failed = Vec::new();
    for (number, some) in all.chunks(AT_ONCE).enumerate() {
        // There is no way to a whole cluster, and each try takes its time.
        if number >= TRIES && failed.len() == number * AT_ONCE {
            let why = || format!("not asked, as none of {} others answers", TRIES * AT_ONCE);
            failed.extend(some.iter().map(|host| silent(host, why())));
            continue;
        }
        let started: Vec<_> = some
            .iter()
            .map(|host| {
                let line = via.on(host, &words(host));
                let mut command = Command::new(&line[0]);
                command.args(&line[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
                (host, command.spawn())
            })
            .collect();
        let end = Instant::now() + ANSWER;
        for (host, child) in started {
            let answered = child.map_err(|error| error.to_string()).and_then(|child| answer(child, end));
            failed.extend(answered.err().map(|why| silent(host, why)));
        }
    }
    failed
}

/// Waits for `child`, up to `end`.
///
/// # Errors
/// The reason why it failed, in its own words where it has some.
fn answer(mut child: Child, end: Instant) -> Result<(), String> {
    let mut errors = child.stderr.take();
    let (sender, said) = mpsc::channel();
    thread::spawn(move || {
        let mut text = Vec::new();
        let _ = errors.as_mut().map(|errors| errors.take(1 << 16).read_to_end(&mut text));
        let _ = sender.send(String::from_utf8_lossy(&text).into_owned());
    });
    let Some(status) = apart::wait(&mut child, end).map_err(|error| error.to_string())? else {
        let _ = child.kill();
        let _ = child.wait();
        return Err(format!("no answer in {} s", ANSWER.as_secs()));
    };
    if status.success() {
        return Ok(());
    }
    // A process that it leaves behind may keep the pipe.
    let said = said.recv_timeout(LAST_WORDS).unwrap_or_default();
    let last = said.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned);
    Err(last.map_or_else(|| status.to_string(), |line| line.chars().take(REASON).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ampl_core::nodes::NodeRank;

    fn hosts(names: &[&str]) -> BTreeMap<String, RankSet> {
        names.iter().map(|name| ((*name).to_owned(), [1].into_iter().collect())).collect()
    }

    #[test]
    fn a_command_that_leaves_a_child_behind_does_not_keep_the_reader() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo refused >&2; sleep 20 & exit 3"]);
        let child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        // Its errors are not read to their end.
        assert_eq!(answer(child, Instant::now() + ANSWER), Err("exit status: 3".into()));
        let mut command = Command::new("sh");
        command.args(["-c", "echo refused >&2; exit 3"]);
        let child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        assert_eq!(answer(child, Instant::now() + ANSWER), Err("refused".into()));
    }

    #[test]
    fn command_lines_start_on_the_host() {
        let line = |via: &Via| {
            let words = ["ampl", "it's"].map(OsString::from);
            via.on("n7", &words).iter().map(|word| word.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let slurm = line(&Via::Slurm("4711".into()));
        assert_eq!(slurm[5..], ["--jobid=4711", "--nodelist=n7", "ampl", "it's"]);
        let run = tempfile::tempdir().unwrap();
        assert_eq!(line(&Via::of(run.path(), Some("rsh -l me {host}")))[3..], ["n7", "'ampl' 'it'\\''s'"]);
        assert_eq!(line(&Via::of(run.path(), Some("on {host}"))), ["on", "n7", "ampl", "it's"]);
        assert_eq!(line(&Via::of(run.path(), None))[0], "ssh");
    }

    #[test]
    fn hosts_that_do_not_answer_are_named() {
        let via =
            Via::Given(vec!["sh".into(), "-c".into(), "echo no way to {host} >&2; [ {host} = a ]".into()]);
        let failed = silent(&via, &hosts(&["a", "b"]), |_| Vec::new());
        assert_eq!(failed.len(), 1);
        assert_eq!((&*failed[0].host, &*failed[0].why), ("b", "no way to b"));
        let missing = silent(&Via::Given(vec!["/none/on".into()]), &hosts(&["a"]), |_| Vec::new());
        assert_eq!(missing.len(), 1);
        let many: Vec<String> = (0..100).map(|number| format!("n{number:03}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let missing = silent(&Via::Given(vec!["false".into()]), &hosts(&many), |_| Vec::new());
        let asked = missing.iter().filter(|silent| !silent.why.contains("not asked")).count();
        assert_eq!((missing.len(), asked), (100, TRIES * AT_ONCE));
    }

    #[test]
    fn names_that_could_be_options_are_passed_over() {
        let run = tempfile::tempdir().unwrap();
        fs::create_dir(run.path().join("nodes")).unwrap();
        let rank = |rank| {
            NodeRank { rank, pid: 1, started: 2, pid_namespace: 3, journals: "/none".into() }.to_string()
        };
        for (number, name) in (0..).zip(["-oProxyCommand=x", "good-1.b", "a b", "a;b"]) {
            fs::write(run.path().join("nodes").join(name), rank(number)).unwrap();
        }
        assert_eq!(asked(run.path()).keys().collect::<Vec<_>>(), ["good-1.b"]);
    }
}
