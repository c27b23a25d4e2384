//! Programs of a job, by their names.

use std::fmt;

use super::error::Cause;
use super::region_filter::matches;
use crate::program::file_name;

/// Pattern of a program's name, in which `*` stands for any characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramPattern(String);

impl ProgramPattern {
    /// The pattern in `text`.
    pub(super) fn parse(text: &str) -> Result<Self, Cause> {
        if text.trim().is_empty() || text.contains(char::is_control) {
            return Err(Cause::Invalid {
                found: format!("{text:?}"),
                expected: "a program's name, such as \"ocean*\"".to_owned(),
            });
        }
        Ok(Self(text.trim().to_owned()))
    }

    /// True where `program`, as its command line has it, has such a name: its file's, or all of it where the pattern has
    /// a `/`.
    pub fn takes(&self, program: &str) -> bool {
        matches(&self.0, if self.0.contains('/') { program } else { file_name(program) })
    }
}

impl fmt::Display for ProgramPattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_of_the_files_name() {
        let takes = |pattern: &str, program: &str| ProgramPattern::parse(pattern).unwrap().takes(program);
        assert!(takes("ocean*", "./ocean.x") && takes("ocean*", "/opt/bin/ocean") && takes("*", "a"));
        assert!(!takes("ocean", "./ocean.x") && !takes("ocean*", "/opt/ocean/air"));
        assert!(takes("*/old/air", "/opt/old/air") && !takes("*/old/air", "/opt/new/air"));
        assert!(takes(" ring.py ", "dir/ring.py"));
        for text in ["", " ", "a\nb"] {
            assert!(ProgramPattern::parse(text).is_err(), "{text:?}");
        }
    }
}
