//! Errors of a configuration: what is wrong, where, and what to do about it.

use std::fmt;

/// Everything found wrong, in the order of the text; never empty.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigErrors(pub Vec<ConfigError>);

/// One thing wrong with a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Dotted path of the key, `sampling.seed`, without the index of repeated tables; empty for the text as a whole.
    pub key: String,
    /// Cause of the error.
    pub cause: Cause,
}

/// Cause of a configuration error, with its evidence.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Cause {
    /// The text is not TOML.
    Syntax {
        /// The parser's words.
        message: String,
    },
    /// No such key or table.
    UnknownKey {
        /// The valid key that was probably meant.
        nearest: Option<String>,
        /// Valid keys at that place.
        known: Vec<&'static str>,
    },
    /// A value of another TOML type than the key takes, or a table written as the wrong kind.
    WrongType {
        /// Type that the key takes, in words.
        expected: String,
        /// Type that was found, in words.
        found: String,
    },
    /// A word the key does not know.
    UnknownWord {
        /// The word.
        word: String,
        /// Words it knows.
        allowed: Vec<&'static str>,
        /// The one that was probably meant.
        nearest: Option<&'static str>,
    },
    /// A value outside its range, or text that cannot be read.
    Invalid {
        /// The value.
        found: String,
        /// Description of a valid value.
        expected: String,
    },
    /// No MPI function of that name.
    UnknownFunction {
        /// The name.
        name: String,
        /// The function that was probably meant.
        nearest: Option<&'static str>,
    },
    /// A required key is absent.
    Missing {
        /// Text to add, as an example.
        example: &'static str,
    },
    /// A group of that name stands earlier.
    Duplicate {
        /// The name.
        name: String,
        /// Line of the first.
        first_line: usize,
    },
    /// Two groups share ranks.
    Overlap {
        /// The earlier group.
        other: String,
        /// The first rank in both.
        rank: u32,
    },
    /// A second group of every rank in no other group.
    SecondRest {
        /// The first.
        first: String,
    },
    /// A pinned rank is no member.
    PinnedOutside {
        /// The pinned ranks, or the first range of them that is not among the members.
        ranks: String,
    },
    /// Two keys exclude each other.
    Conflict {
        /// The other key.
        with: &'static str,
    },
    /// Settings that do not go together (STATISTICS §2, "Legal combinations").
    Combination {
        /// Settings that do not go together, in words.
        settings: &'static str,
        /// Action to take.
        instead: &'static str,
    },
    /// `sites` names a file that was not put in its place ([`super::Config::inline_sites`]).
    FileNotRead,
    /// `sites` names a file that cannot be read.
    Unreadable {
        /// The file, as written.
        file: String,
        /// Reason, in the system's words.
        error: String,
    },
    /// `--set` addresses an entry of a repeated table that the text does not have.
    NoSuchEntry {
        /// Name of the entry, as written.
        entry: String,
        /// The entries there are.
        have: Vec<String>,
    },
}

impl ConfigError {
    /// Description of the error, without its place.
    pub fn what(&self) -> String {
        let key = shortened(&self.key);
        match &self.cause {
            Cause::Syntax { message } => format!("not valid TOML: {message}"),
            Cause::UnknownKey { .. } => format!("unknown key '{key}'"),
            Cause::WrongType { found, .. } => format!("'{key}' is {found}"),
            Cause::UnknownWord { word, .. } => format!("'{key}' does not know {}", quoted(word)),
            Cause::Invalid { found, .. } => format!("'{key}' cannot be {}", shortened(found)),
            Cause::UnknownFunction { name, .. } => format!("'{key}' names no MPI function: {}", quoted(name)),
            Cause::Missing { .. } => format!("'{key}' is missing"),
            Cause::Duplicate { name, .. } => format!("'{key}': group {} is declared twice", quoted(name)),
            Cause::Overlap { other, rank } => {
                format!("'{key}': rank {rank} is already in group {}", quoted(other))
            }
            Cause::SecondRest { first } => {
                format!("'{key}': every rank in no other group is in group {}", quoted(first))
            }
            Cause::PinnedOutside { ranks } => {
                format!("'{key}': ranks {ranks} are not members of their group")
            }
            Cause::Conflict { with } => format!("'{key}' and '{with}' exclude each other"),
            Cause::Combination { settings, .. } => format!("'{key}': {settings} do not go together"),
            Cause::FileNotRead => format!("'{key}' names a file, which the library does not read"),
            Cause::Unreadable { file, error } => {
                format!("'{key}': cannot read {}: {}", quoted(file), shortened(error))
            }
            Cause::NoSuchEntry { entry, .. } => format!("'{key}' has no entry {}", quoted(entry)),
        }
    }

    /// Action that corrects the error.
    pub fn fix(&self) -> String {
        match &self.cause {
            Cause::Syntax { .. } => "correct the line; text values need quotes".into(),
            Cause::UnknownKey { nearest: Some(nearest), .. } => format!("did you mean '{nearest}'?"),
            Cause::UnknownKey { known, .. } => format!("valid here: {}", known.join(", ")),
            Cause::WrongType { expected, .. } => format!("write {expected}"),
            Cause::UnknownWord { nearest: Some(nearest), .. } => format!("did you mean \"{nearest}\"?"),
            Cause::UnknownWord { allowed, .. } => format!("use {}", allowed.join(" or ")),
            Cause::Invalid { expected, .. } => format!("write {expected}"),
            Cause::UnknownFunction { nearest: Some(nearest), .. } => format!("did you mean \"{nearest}\"?"),
            Cause::UnknownFunction { .. } => "use the function's C name, such as \"MPI_Allreduce\"".into(),
            Cause::Missing { example } => format!("add {example}"),
            Cause::Duplicate { first_line, .. } => format!("rename it; the first is on line {first_line}"),
            Cause::Overlap { .. } => "give every rank to one group".into(),
            Cause::SecondRest { .. } => "add members = \"0-127\", or set the keys of that group".into(),
            Cause::PinnedOutside { .. } => "add them to 'members' or take them out of 'pinned'".into(),
            Cause::Conflict { with } => format!("keep one of them, here or '{with}'"),
            Cause::Combination { instead, .. } => (*instead).into(),
            Cause::FileNotRead => {
                "start the job with `ampl run` or `ampl exec`, or write the [[site]] tables here".into()
            }
            Cause::Unreadable { .. } => "name a readable file with [[site]] tables".into(),
            Cause::NoSuchEntry { have, .. } if have.is_empty() => "add it to the job file first".into(),
            Cause::NoSuchEntry { have, .. } => format!("entries there: {}", have.join(", ")),
        }
    }

    /// The valid key or word that was probably meant.
    pub fn nearest(&self) -> Option<&str> {
        match &self.cause {
            Cause::UnknownKey { nearest, .. } => nearest.as_deref(),
            Cause::UnknownWord { nearest, .. } | Cause::UnknownFunction { nearest, .. } => *nearest,
            _ => None,
        }
    }

    /// The line to print: `ampl: <what> (FILE:LINE:COL): <what to do>`.
    pub fn render(&self, file: &str) -> String {
        self.render_at(&format!("{file}:{}:{}", self.line, self.column))
    }

    /// The line to print when the place is not one in a file: `ampl: <what> (<place>): <what to do>`.
    pub fn render_at(&self, place: &str) -> String {
        format!("ampl: {} ({place}): {}", self.what(), self.fix())
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (line {}, column {}): {}", self.what(), self.line, self.column, self.fix())
    }
}

impl std::error::Error for ConfigError {}

impl ConfigErrors {
    /// The lines to print, one per error, without a final newline.
    pub fn render(&self, file: &str) -> String {
        self.0.iter().map(|error| error.render(file)).collect::<Vec<_>>().join("\n")
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            error.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

/// Setting that is accepted but does not do quite what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Dotted path of the key.
    pub key: String,
    /// Description of what does not hold.
    pub what: String,
    /// Effect that it has instead.
    pub instead: String,
}

impl Notice {
    /// The line to print: `ampl: <what> (FILE:LINE:COL): <what happens instead>`.
    pub fn render(&self, file: &str) -> String {
        format!("ampl: {} ({file}:{}:{}): {}", self.what, self.line, self.column, self.instead)
    }
}

fn quoted(word: &str) -> String {
    format!("{:?}", shortened(word))
}

// A message stays one readable line whatever stands in the file.
fn shortened(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(61).collect();
    match line.char_indices().nth(60) {
        Some((cut, _)) => format!("{}...", &line[..cut]),
        None => line,
    }
}
