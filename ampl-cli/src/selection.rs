//! Ranks and times on the command line: `--ranks`, `--from`, `--until`.

use ampl_core::config::nanoseconds;
use ampl_core::units::RankSet;
use ampl_reader::selection::Selection;

use crate::failure::{Failure, USAGE};

/// The part of a run that `--from`, `--until` and `--ranks` ask for; everything without them.
///
/// # Errors
/// A [`Failure`] of status 2 for what cannot be read, and for a stretch of no length.
pub fn parse(from: Option<&str>, until: Option<&str>, ranks: Option<&str>) -> anyhow::Result<Selection> {
    let from_ns = from.map(|text| time("--from", text)).transpose()?;
    let until_ns = until.map(|text| time("--until", text)).transpose()?;
    let backwards =
        || Failure::message(USAGE, "--from is not before --until", "command line", "exchange them");
    if from_ns.unwrap_or(i64::MIN) >= until_ns.unwrap_or(i64::MAX) {
        return Err(backwards());
    }
    let ranks = ranks.map(|text| {
        RankSet::parse(text)
            .map_err(|error| Failure::message(USAGE, error, "--ranks", "write ranks as in 0-127,200"))
    });
    Selection::new(from_ns, until_ns, ranks.transpose()?).ok_or_else(backwards)
}

/// Nanoseconds since the start of window 0.
fn time(option: &str, text: &str) -> anyhow::Result<i64> {
    // The start needs no unit.
    let nanos = if text.trim() == "0" { Some(0) } else { nanoseconds(text) };
    nanos.and_then(|nanos| i64::try_from(nanos).ok()).ok_or_else(|| {
        Failure::message(USAGE, format!("'{text}' is not a time"), option, "write it as in 1.5s or 250ms")
    })
}
