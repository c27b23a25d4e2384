//! Marks of ranks that are present, in a directory where they find each other, and one decision for all.
//!
//! Everything is in the names of empty files and in a symbolic link: those are made whole or not at all, and find room
//! where a file system has none for contents.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::finalize::places;

/// The link that holds the decision.
const DECIDED: &str = "decided";
/// The link that names the deciding rank.
const SPEAKER: &str = "speaker";
/// How often the directory may go before a mark is in it.
const TRIES: usize = 100;

/// A decision for all ranks of the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// All have the library.
    Begin,
    /// Not all have, or that is unknown: no rank begins.
    Stop,
}

/// A directory of marks.
#[derive(Clone, Debug)]
pub struct Marks(PathBuf);

impl Marks {
    /// Marks in `directory`, which need not exist.
    pub fn new(directory: PathBuf) -> Self {
        Self(directory)
    }

    /// The directory of the marks.
    pub fn directory(&self) -> &Path {
        &self.0
    }

    /// Makes the mark `name`.
    ///
    /// # Errors
    /// Errors of mkdir(2) and open(2).
    pub fn add(&self, name: &str) -> io::Result<()> {
        for _ in 1..TRIES {
            places::make(&self.0)?;
            match File::create(self.0.join(name)) {
                // The last of others has left.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                made => return made.map(drop),
            }
        }
        Err(io::ErrorKind::NotFound.into())
    }

    /// Makes the mark `old` the mark `new`.
    ///
    /// # Errors
    /// Errors of rename(2).
    pub fn rename(&self, old: &str, new: &str) -> io::Result<()> {
        fs::rename(self.0.join(old), self.0.join(new))
    }

    /// Names of all marks.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter(|name| name != DECIDED && name != SPEAKER).collect()
    }

    /// The decision, and its maker.
    pub fn decision(&self) -> Option<(Decision, String)> {
        let text = self.link(DECIDED)?;
        let (what, by) = text.split_once(' ').unwrap_or((&text, ""));
        Some((if what == "begin" { Decision::Begin } else { Decision::Stop }, by.to_owned()))
    }

    /// Decides, as `by`, unless there is a decision: returns whether this one holds.
    ///
    /// # Errors
    /// Errors of symlink(2), except that there is a decision.
    pub fn decide(&self, decision: &Decision, by: &str) -> io::Result<bool> {
        let what = if *decision == Decision::Begin { "begin" } else { "stop" };
        self.make_link(DECIDED, &format!("{what} {by}"))
    }

    /// Removes the decision.
    pub fn forget_decision(&self) {
        let _ = fs::remove_file(self.0.join(DECIDED));
    }

    /// True where `by` decides for all of them, because none has, or the one that did is not `there` any more.
    pub fn speaks(&self, by: &str, there: impl Fn(&str) -> bool) -> bool {
        match self.link(SPEAKER) {
            Some(speaker) if speaker == by => true,
            Some(speaker) => {
                if !there(&speaker) {
                    let _ = fs::remove_file(self.0.join(SPEAKER));
                }
                false
            }
            None => self.make_link(SPEAKER, by).unwrap_or(false),
        }
    }

    fn link(&self, name: &str) -> Option<String> {
        fs::read_link(self.0.join(name)).ok()?.into_os_string().into_string().ok()
    }

    fn make_link(&self, name: &str, text: &str) -> io::Result<bool> {
        match symlink(text, self.0.join(name)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Takes the mark `name` away, and everything with the last mark.
    pub fn leave(&self, name: &str) {
        let _ = fs::remove_file(self.0.join(name));
        if self.names().is_empty() {
            self.remove();
        }
    }

    /// Takes everything away.
    pub fn remove(&self) {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        entries.for_each(|entry| _ = fs::remove_file(entry.path()));
        places::leave(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_decision_holds() {
        let scratch = tempfile::tempdir().unwrap();
        let place = scratch.path().join("a/marks");
        let marks = Marks::new(place.clone());
        assert_eq!((marks.decision(), marks.names().len()), (None, 0));
        for name in ["0-x", "1-y", "1-y"] {
            marks.add(name).unwrap();
        }
        let mut names = marks.names();
        names.sort();
        assert_eq!(names, ["0-x", "1-y"]);
        assert!(marks.decide(&Decision::Stop, "x").unwrap());
        assert!(!marks.decide(&Decision::Begin, "y").unwrap());
        assert_eq!(marks.decision(), Some((Decision::Stop, "x".into())));
        assert!(marks.speaks("x", |_| true) && !marks.speaks("y", |_| true) && marks.speaks("x", |_| true));
        // The speaker has gone.
        assert!(!marks.speaks("y", |who| who != "x") && marks.speaks("y", |_| true));
        assert_eq!(marks.names().len(), 2);
        marks.leave("0-x");
        assert_eq!(marks.decision().unwrap().0, Decision::Stop);
        marks.leave("1-y");
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
        assert!(marks.decide(&Decision::Begin, "z").is_err(), "nobody is here");
    }

    #[test]
    fn one_of_many_decides() {
        let scratch = tempfile::tempdir().unwrap();
        let marks = Marks::new(scratch.path().join("marks"));
        marks.add("mark").unwrap();
        let won: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|number| {
                    let marks = &marks;
                    scope.spawn(move || {
                        let decision = if number % 2 == 0 { Decision::Begin } else { Decision::Stop };
                        let won = marks.decide(&decision, &number.to_string()).unwrap();
                        let (holds, by) = marks.decision().unwrap();
                        assert_eq!(won, by == number.to_string());
                        assert_eq!(holds == Decision::Begin, by.parse::<u32>().unwrap() % 2 == 0);
                        usize::from(won)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(won, 1);
    }
}
