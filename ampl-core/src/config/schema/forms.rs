//! Forms of values that several tables have.

use crate::config::error::Cause;
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

/// An interval, or `off`.
pub(super) const COPY: Text<Option<u64>> = Text { read: interval, write: |interval| Some(shown(*interval)) };

const SECOND_NS: u64 = 1_000_000_000;

fn interval(text: &str) -> Result<Option<u64>, Cause> {
    if text == "off" {
        return Ok(None);
    }
    let known = marker::nanoseconds(text).filter(|ns| (SECOND_NS..=1_000_000 * SECOND_NS).contains(ns));
    known.map(Some).ok_or_else(|| Cause::Invalid {
        found: format!("{text:?}"),
        expected: "\"off\", or an interval from 1 s, such as \"60s\"".into(),
    })
}

fn shown(interval: Option<u64>) -> String {
    quoted(&interval.map_or_else(|| "off".to_owned(), |ns| format!("{ns}ns")))
}
