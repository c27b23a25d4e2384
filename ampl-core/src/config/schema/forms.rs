//! Forms of values that several tables have.

use crate::config::form::{Maybe, Text};
use crate::config::write::quoted;
use crate::config::{Members, ProgramPattern, RegionFilter, marker, rules};

pub(super) const DURATION: Text<u64> =
    Text { read: marker::time_floor, write: |floor_ns| Some(format!("\"{floor_ns}ns\"")) };

pub(super) const REGIONS: Text<RegionFilter> =
    Text { read: RegionFilter::parse, write: |filter| Some(quoted(&filter.to_string())) };

pub(super) const PATTERNS: &str =
    "names with commas between them, `*` in place of any characters; `!` before a name leaves it out";

pub(super) const MEMBERS: Text<Members> = Text {
    read: rules::members,
    write: |members| match members {
        // The other key has it.
        Members::Program(_) => None,
        members => Some(quoted(&members.to_string())),
    },
};

pub(super) const PROGRAM: Maybe<Text<ProgramPattern>> = Maybe(Text {
    read: ProgramPattern::parse,
    write: |pattern: &ProgramPattern| Some(quoted(&pattern.to_string())),
});
