//! Tables of options, with the number of words that belong to each.

use std::ffi::OsStr;
use std::fmt;

/// Syntax of a launcher's options, and their names without dashes, separated by spaces.
#[derive(Debug)]
pub struct Options {
    /// Syntax of the options.
    pub syntax: Syntax,
    /// Options without a value.
    pub flags: &'static str,
    /// Options with one value.
    pub one: &'static str,
    /// Options with two values.
    pub two: &'static str,
    /// Options that name a file with the programs.
    pub files: &'static str,
}

/// Syntax of options on a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// `-name` and `--name` are the same; a value follows, or is attached as `--name=value`.
    Words,
    /// getopt_long: `--name value`, `--name=value`, and clusters of letters, `-n4`, `-lu`.
    Getopt {
        /// Letters whose value may only be attached.
        attached: &'static str,
    },
}

/// Reason why `ampl exec` cannot be put into a launcher's command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LauncherError {
    /// An option that is not in our table: it is not known whether a value follows.
    UnknownOption(String),
    /// The option's value is missing.
    NoValue(String),
    /// The option names a file with the programs.
    ProgramsInFile(String),
    /// The file of programs cannot be read.
    Unreadable {
        /// The file.
        file: String,
        /// The system's reason.
        why: String,
    },
    /// No program stands in that app context (from 1).
    NoProgram(usize),
}

impl fmt::Display for LauncherError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownOption(option) => write!(f, "unknown launcher option '{option}'"),
            Self::NoValue(option) => write!(f, "launcher option '{option}' lacks its value"),
            Self::ProgramsInFile(option) => write!(f, "'{option}' keeps the programs in a file"),
            Self::Unreadable { file, why } => write!(f, "cannot read the programs in '{file}': {why}"),
            Self::NoProgram(1) => write!(f, "the launcher's command line names no program"),
            Self::NoProgram(context) => {
                write!(f, "part {context} of the launcher's command line names no program")
            }
        }
    }
}

impl std::error::Error for LauncherError {}

/// Kind of a word on a launcher's command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The program.
    Program,
    /// `--`: the program follows.
    End,
    /// An option, with so many words after it.
    Option {
        /// Words after it that are its values.
        values: usize,
    },
}

impl Options {
    /// Kind of `word`, where an option or the program may stand.
    ///
    /// # Errors
    /// Options that are not in the table, or keep the programs in a file.
    pub fn step(&self, word: &OsStr) -> Result<Step, LauncherError> {
        let Some(text) = word.to_str() else {
            let dash = word.as_encoded_bytes().first() == Some(&b'-');
            return if dash { Err(LauncherError::UnknownOption(lossy(word))) } else { Ok(Step::Program) };
        };
        if text == "--" {
            return Ok(Step::End);
        }
        let Some(rest) = text.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
            return Ok(Step::Program);
        };
        match (self.syntax, rest.strip_prefix('-')) {
            (Syntax::Getopt { attached }, None) => self.cluster(rest, attached, text),
            (_, long) => self.named(long.unwrap_or(rest), text),
        }
    }

    fn named(&self, name: &str, word: &str) -> Result<Step, LauncherError> {
        let (name, attached) = name.split_once('=').map_or((name, false), |(name, _)| (name, true));
        let values = match self.values(name) {
            Some(Ok(values)) => values,
            Some(Err(())) => return Err(LauncherError::ProgramsInFile(word.to_owned())),
            None => return Err(LauncherError::UnknownOption(word.to_owned())),
        };
        // "--genv=A B": only one value can be attached.
        Ok(Step::Option { values: values.saturating_sub(usize::from(attached)) })
    }

    fn cluster(&self, letters: &str, attached: &str, word: &str) -> Result<Step, LauncherError> {
        for (at, letter) in letters.char_indices() {
            if attached.contains(letter) {
                break;
            }
            match self.values(&letters[at..at + letter.len_utf8()]) {
                Some(Ok(0)) => {}
                Some(Ok(values)) => {
                    let ends = at + letter.len_utf8() == letters.len();
                    return Ok(Step::Option { values: if ends { values } else { 0 } });
                }
                _ => return Err(LauncherError::UnknownOption(word.to_owned())),
            }
        }
        Ok(Step::Option { values: 0 })
    }

    /// Number of values of the option `name`; `Err` if it keeps the programs in a file.
    fn values(&self, name: &str) -> Option<Result<usize, ()>> {
        let lists = |names: &str| names.split_ascii_whitespace().any(|listed| listed == name);
        match () {
            () if lists(self.flags) => Some(Ok(0)),
            () if lists(self.one) => Some(Ok(1)),
            () if lists(self.two) => Some(Ok(2)),
            () if lists(self.files) => Some(Err(())),
            () => None,
        }
    }
}

/// The word as text for messages.
pub fn lossy(word: &OsStr) -> String {
    word.to_string_lossy().into_owned()
}
