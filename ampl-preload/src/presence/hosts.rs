//! Reports of a job's hosts to each other, with the ranks that have the library, in a directory that all of them see:
//! that of the run directories.

use std::fs::{self, File};
use std::path::PathBuf;

use ampl_core::units::RankSet;

use super::launch::hashed;
use super::marks::{Decision, Marks};
use super::processes::Stamp;
use crate::environment;

/// Bytes of ranks in the name of a report.
const MOST: usize = 120;

/// The reports of all hosts, and this one's.
#[derive(Debug)]
pub struct Hosts {
    marks: Marks,
    own: String,
    reported: Option<String>,
    by: String,
}

impl Hosts {
    /// Reports of the launch `job`; `node` names this node's part of it.
    pub fn new(job: &str, node: &str) -> Option<Self> {
        let run = environment::named_directory();
        let above = match run.and_then(|run| std::path::absolute(run).ok()) {
            Some(run) => run.parent()?.to_owned(),
            None => std::env::current_dir().ok()?,
        };
        Some(Self::at(above.join(format!(".ampl-ranks-{}", hashed(job))), &environment::host(), node))
    }

    fn at(place: PathBuf, host: &str, node: &str) -> Self {
        let own = format!("{host}-{}", hashed(&format!("{node} {}", environment::pid_namespace())));
        let by = format!("{host} {}", Stamp::own());
        Self { marks: Marks::new(place), own, reported: None, by }
    }

    /// Where they are.
    pub fn place(&self) -> PathBuf {
        self.marks.directory().to_owned()
    }

    /// Reports that `present` have the library here; returns whether that could be done.
    pub fn report(&mut self, present: &RankSet) -> bool {
        let text = present.to_string();
        // Of a longer one only the number counts.
        let text = if text.len() > MOST { "+" } else { &text };
        let name = format!("{}.{}.{text}", self.own, present.len());
        let done = match &self.reported {
            Some(before) if *before == name => return true,
            Some(before) => self.marks.rename(before, &name),
            None => self.marks.add(&name),
        };
        if done.is_ok() {
            self.reported = Some(name);
        }
        done.is_ok()
    }

    /// Ranks that have been reported: how many, and which, as far as reports list them.
    pub fn present(&self) -> (u64, RankSet) {
        let (mut count, mut ranks) = (0, String::new());
        for name in self.marks.names() {
            let mut words = name.rsplitn(3, '.');
            if let (Some(text), Some(Ok(number))) = (words.next(), words.next().map(str::parse::<u64>)) {
                count += number;
                ranks += text;
                ranks.push(',');
            }
        }
        (count, RankSet::parse(&ranks.replace('+', "")).unwrap_or_default())
    }

    /// The decision for all hosts.
    pub fn decision(&self) -> Option<Decision> {
        self.marks.decision().map(|(decision, _)| decision)
    }

    /// Decides for all hosts, unless there is a decision; returns whether this one holds.
    pub fn decide(&self, decision: &Decision) -> bool {
        let made = self.marks.decide(decision, &self.by);
        made.or_else(|_| {
            // No host has reported yet.
            self.marks.add(&format!("{}.0.", self.own))?;
            self.marks.decide(decision, &self.by)
        })
        .unwrap_or(false)
    }

    /// Makes network file systems reread the directory: they cache it until it changes.
    pub fn refresh(&self) {
        let probe = self.marks.directory().join(format!("{}.look", self.own));
        if File::create(&probe).is_ok() {
            let _ = fs::remove_file(probe);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_add_up_to_the_job() {
        let scratch = tempfile::tempdir().unwrap();
        let place = scratch.path().join(".ampl-ranks-x");
        let mut hosts = ["a.b.c", "a.b.d"].map(|host| Hosts::at(place.clone(), host, "node"));
        let ranks = |text: &str| RankSet::parse(text).unwrap();
        assert_eq!(hosts[0].present(), (0, RankSet::default()));
        assert!(hosts[0].report(&ranks("0")) && hosts[0].report(&ranks("0-1,4")));
        assert!(hosts[1].report(&ranks("2-3")));
        assert_eq!(hosts[1].present(), (5, ranks("0-4")));
        assert_eq!(hosts[1].decision(), None);
        hosts[0].refresh();
        assert!(hosts[0].decide(&Decision::Begin) && !hosts[1].decide(&Decision::Stop));
        assert_eq!(hosts[1].decision(), Some(Decision::Begin));
    }

    #[test]
    fn a_host_without_reports_decides() {
        let scratch = tempfile::tempdir().unwrap();
        let hosts = Hosts::at(scratch.path().join("x"), "a", "node");
        assert!(hosts.decide(&Decision::Stop));
        assert_eq!((hosts.decision(), hosts.present().0), (Some(Decision::Stop), 0));
    }

    #[test]
    fn of_many_ranks_the_number_is_reported() {
        let scratch = tempfile::tempdir().unwrap();
        let mut hosts = Hosts::at(scratch.path().join("x"), "a", "node");
        assert!(hosts.report(&(0..200u32).map(|rank| 2 * rank).collect()));
        assert_eq!(hosts.present(), (200, RankSet::default()));
    }
}
