//! Parts of a run of which there is nothing, for people.

use ampl_reader::selection::Absent;

use crate::human::{duration, plural};

/// Fault of a selection of which a run of `ranks` has nothing, and its remedy.
pub fn lacking(absent: &Absent, ranks: u32) -> (String, String) {
    match absent {
        Absent::NoRank => {
            let fix = format!("name ranks from 0 to {}", ranks.saturating_sub(1));
            (format!("the job has {}", plural(ranks.into(), "rank")), fix)
        }
        Absent::NothingLeft(asked) => (
            format!("ranks {asked} left nothing that can be read"),
            "see 'ampl info' for what there is".into(),
        ),
    }
}

/// Fault of a stretch of time in which no window is, and its remedy; the last window ended at `end_ns`.
pub fn missed(end_ns: i64) -> (String, String) {
    let fix = "ask for an earlier --from or a later --until, or leave them out".into();
    (format!("nothing was recorded then: the last window ended at {}", duration(end_ns as f64)), fix)
}
