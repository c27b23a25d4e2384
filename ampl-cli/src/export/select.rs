//! Which ranks and windows are asked for.

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
    to_ns: i64,
}

impl Selection {
    /// What `--from`, `--to` and `--ranks` ask for; everything without them.
    ///
    /// # Errors
    /// A [`Failure`] of status 2 for what cannot be read, and for a stretch of no length.
    pub fn new(from: Option<&str>, to: Option<&str>, ranks: Option<&str>) -> anyhow::Result<Self> {
        let from_ns = from.map(|text| time("--from", text)).transpose()?.unwrap_or(i64::MIN);
        let to_ns = to.map(|text| time("--to", text)).transpose()?.unwrap_or(i64::MAX);
        if from_ns >= to_ns {
            return Err(Failure::message(
                USAGE,
                "--from is not before --to",
                "command line",
                "exchange them",
            ));
        }
        let ranks = ranks.map(|text| {
            RankSet::parse(text)
                .map_err(|error| Failure::message(USAGE, error, "--ranks", "write ranks as in 0-127,200"))
        });
        Ok(Self { ranks: ranks.transpose()?, from_ns, to_ns })
    }

    /// What is wrong with the ranks asked for in a run of `ranks`, and what to do, unless some of them are among those
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

    /// What is wrong with the time asked for, and what to do, unless one of `windows` is in it; nothing is where there
    /// are no windows at all.
    pub fn misses<'a>(&self, windows: impl Iterator<Item = &'a WindowSummary>) -> Option<(String, String)> {
        let mut last = None;
        for window in windows {
            if self.takes_window(window) {
                return None;
            }
            last = last.max(Some(window.end_ns));
        }
        let fix = "ask for an earlier --from or a later --to, or leave them out".into();
        last.map(|end| {
            (format!("nothing was recorded then: the last window ended at {}", duration(end as f64)), fix)
        })
    }

    /// Whether `rank` is asked for.
    pub fn takes_rank(&self, rank: u32) -> bool {
        self.ranks.as_ref().is_none_or(|ranks| ranks.contains(Rank(rank)))
    }

    /// Whether any part of `window` is asked for.
    pub fn takes_window(&self, window: &WindowSummary) -> bool {
        window.start_ns < self.to_ns && window.end_ns > self.from_ns
    }
}

/// Nanoseconds since the start of window 0.
fn time(option: &str, text: &str) -> anyhow::Result<i64> {
    let nanos = nanoseconds(text).and_then(|nanos| i64::try_from(nanos).ok());
    nanos.ok_or_else(|| {
        Failure::message(USAGE, format!("'{text}' is not a time"), option, "write it as in 1.5s or 250ms")
    })
}
