//! Forms of values that several tables have.

use crate::config::form::Text;
use crate::config::write::quoted;
use crate::config::{RegionFilter, marker};

pub(super) const DURATION: Text<u64> =
    Text { read: marker::time_floor, write: |floor_ns| Some(format!("\"{floor_ns}ns\"")) };

pub(super) const REGIONS: Text<RegionFilter> =
    Text { read: RegionFilter::parse, write: |filter| Some(quoted(&filter.to_string())) };

pub(super) const PATTERNS: &str =
    "names with commas between them, `*` in place of any characters; `!` before a name leaves it out";
