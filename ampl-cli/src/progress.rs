//! Progress bars for long work.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shortest work that shows a bar.
const SOON: Duration = Duration::from_secs(1);

/// A bar on stderr, if that is a terminal and the work takes longer than a second.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    since: Instant,
    shown: bool,
}

impl Progress {
    /// Empty bar for `all` things called `unit`.
    pub fn of(all: u64, unit: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(all), ProgressDrawTarget::hidden());
        let form = format!("{{bar:40}} {{pos}} of {{len}} {unit}, {{eta}} left");
        bar.set_style(ProgressStyle::with_template(&form).unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { bar, since: Instant::now(), shown: false }
    }

    /// Empty bar for an unknown number of things called `unit`.
    pub fn endless(unit: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let form = format!("{{spinner}} {{pos}} {unit}");
        bar.set_style(
            ProgressStyle::with_template(&form).unwrap_or_else(|_| ProgressStyle::default_spinner()),
        );
        Self { bar, since: Instant::now(), shown: false }
    }

    /// Counts one more.
    pub fn one_more(&mut self) {
        self.add(1);
    }

    /// Counts `more` things more.
    pub fn add(&mut self, more: u64) {
        if !self.shown && self.since.elapsed() > SOON {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.shown = true;
        }
        self.bar.inc(more);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
