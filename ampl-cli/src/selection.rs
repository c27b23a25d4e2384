//! Ranks, windows and calls that are asked for: `--ranks`, `--from`, `--until`.

use ampl_core::config::nanoseconds;
use ampl_core::units::{Rank, RankSet};
use ampl_trace::model::WindowSummary;

use crate::failure::{Failure, USAGE};
use crate::human::{duration, plural};

/// Ranks and a stretch of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    ranks: Option<RankSet>,
    /// Nanoseconds since T0.
    from_ns: i64,
    until_ns: i64,
}

impl Selection {
    /// The part of a run that `--from`, `--until` and `--ranks` ask for; everything without them.
    ///
    /// # Errors
    /// A [`Failure`] of status 2 for what cannot be read, and for a stretch of no length.
    pub fn new(from: Option<&str>, until: Option<&str>, ranks: Option<&str>) -> anyhow::Result<Self> {
        let from_ns = from.map(|text| time("--from", text)).transpose()?.unwrap_or(i64::MIN);
        let until_ns = until.map(|text| time("--until", text)).transpose()?.unwrap_or(i64::MAX);
        if from_ns >= until_ns {
            return Err(Failure::message(
                USAGE,
                "--from is not before --until",
                "command line",
                "exchange them",
            ));
        }
        let ranks = ranks.map(|text| {
            RankSet::parse(text)
                .map_err(|error| Failure::message(USAGE, error, "--ranks", "write ranks as in 0-127,200"))
        });
        Ok(Self { ranks: ranks.transpose()?, from_ns, until_ns })
    }

    /// Fault in the ranks asked for in a run of `ranks`, and its remedy; `None` where some of them are among those
    /// `present` and all in the job.
    pub fn lacks(&self, ranks: u32, present: impl IntoIterator<Item = u32>) -> Option<(String, String)> {
        let asked = self.ranks.as_ref()?;
        if asked.max().is_some_and(|rank| rank.0 >= ranks) {
            let fix = format!("name ranks from 0 to {}", ranks.saturating_sub(1));
            return Some((format!("the job has {}", plural(ranks.into(), "rank")), fix));
        }
        let none = !present.into_iter().any(|rank| self.takes_rank(rank));
        none.then(|| {
            (
                format!("ranks {asked} left nothing that can be read"),
                "see 'ampl info' for what there is".into(),
            )
        })
    }

    /// Fault in the time asked for, and its remedy; `None` where one of `windows` is in it, or there are no windows
    /// at all.
    pub fn misses<'a>(&self, windows: impl Iterator<Item = &'a WindowSummary>) -> Option<(String, String)> {
        let mut last = None;
        for window in windows {
            if self.takes_window(window) {
                return None;
            }
            last = last.max(Some(window.end_ns));
        }
        let fix = "ask for an earlier --from or a later --until, or leave them out".into();
        last.map(|end| {
            (format!("nothing was recorded then: the last window ended at {}", duration(end as f64)), fix)
        })
    }

    /// True where `rank` is asked for.
    pub fn takes_rank(&self, rank: u32) -> bool {
        self.ranks.as_ref().is_none_or(|ranks| ranks.contains(Rank(rank)))
    }

    /// True where a stretch of time is asked for.
    pub fn cuts_time(&self) -> bool {
        (self.from_ns, self.until_ns) != (i64::MIN, i64::MAX)
    }

    /// True where any part of a span with that start and length is asked for; without a duration it never ended.
    pub fn takes_time(&self, start_ns: i64, duration_ns: Option<u64>) -> bool {
        let end_ns = duration_ns.map_or(i64::MAX, |nanos| start_ns.saturating_add_unsigned(nanos));
        start_ns < self.until_ns && (end_ns > self.from_ns || start_ns == self.from_ns)
    }

    /// True where any part of `window` is asked for.
    pub fn takes_window(&self, window: &WindowSummary) -> bool {
        window.start_ns < self.until_ns && window.end_ns > self.from_ns
    }
}

/// Nanoseconds since the start of window 0.
fn time(option: &str, text: &str) -> anyhow::Result<i64> {
    let nanos = nanoseconds(text).and_then(|nanos| i64::try_from(nanos).ok());
    nanos.ok_or_else(|| {
        Failure::message(USAGE, format!("'{text}' is not a time"), option, "write it as in 1.5s or 250ms")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_taken_with_any_part_of_them() {
        let of = |from, until| Selection::new(from, until, None).unwrap();
        let some = of(Some("1us"), Some("2us"));
        for (start, duration, taken) in [
            (0, Some(1000), false),
            (0, Some(1001), true),
            (1000, Some(0), true),
            (1999, Some(5), true),
            (2000, Some(5), false),
            (-5, None, true),
        ] {
            assert_eq!(some.takes_time(start, duration), taken, "{start} {duration:?}");
        }
        assert!(some.cuts_time() && !of(None, None).cuts_time());
        assert!(of(None, None).takes_time(i64::MIN, Some(0)));
    }
}
