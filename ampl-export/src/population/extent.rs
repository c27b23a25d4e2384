//! Extent of a population, read before any of its rows is used.

use std::collections::BTreeSet;

use ampl_client::simulate::Job;
use ampl_core::config::Config;

use super::rows::{Fault, MOST_WINDOWS, Names};
use super::{Columns, Population};

/// Extent of a population: its rows, ranks, windows and metrics.
#[derive(Clone, Debug)]
pub struct Extent {
    /// Rows, including those of metrics that are not asked for.
    pub rows: u64,
    /// One more than the largest rank.
    pub ranks: u32,
    /// The first window and the last.
    pub windows: (u64, u64),
    /// True where no row is of an earlier window than the row before it.
    pub ascending: bool,
    /// True where the file says that it holds a sample's windows only.
    pub sampled: bool,
    /// Metrics and events, as numbers of `names`.
    pub metrics: BTreeSet<(u16, u16)>,
    /// Names of metrics and events.
    pub names: Names,
}

impl Extent {
    /// The extent of `population`; `batch_done` is called with the number of rows read, now and then.
    ///
    /// # Errors
    /// A [`Fault`] in the first row that is wrong, or where there is no row.
    pub fn of(population: &Population, mut batch_done: impl FnMut(u64)) -> Result<Self, Fault> {
        let mut rows = population.rows(Columns::Places, Names::default())?;
        let mut extent = Self {
            rows: 0,
            ranks: 0,
            windows: (u64::MAX, 0),
            ascending: true,
            sampled: false,
            metrics: BTreeSet::new(),
            names: Names::default(),
        };
        let mut batch = Vec::new();
        let (mut last_window, mut last_metric) = (0, None);
        loop {
            rows.next(&mut batch)?;
            if batch.is_empty() {
                break;
            }
            for row in &batch {
                extent.ranks = extent.ranks.max(row.rank + 1);
                extent.windows = (extent.windows.0.min(row.window), extent.windows.1.max(row.window));
                extent.ascending &= row.window >= last_window;
                last_window = row.window;
                if last_metric != Some((row.metric, row.event)) {
                    last_metric = Some((row.metric, row.event));
                    extent.metrics.insert((row.metric, row.event));
                }
                if extent.windows.1 - extent.windows.0 >= MOST_WINDOWS {
                    let (first, last) = extent.windows;
                    let what = format!("windows from {first} to {last}");
                    let fix = format!("number windows one after the other, at most {MOST_WINDOWS} of them");
                    return Err(Fault::at(row.row, what, fix));
                }
            }
            extent.rows += batch.len() as u64;
            batch_done(batch.len() as u64);
        }
        if extent.rows == 0 {
            return Err(Fault::new("the population has no rows", "write a row per window, rank and metric"));
        }
        extent.names = rows.names().clone();
        extent.sampled = rows.sampled();
        Ok(extent)
    }

    /// The numbers of a metric and event, if it has rows of it.
    pub fn find(&self, metric: &str, event: &str) -> Option<(u16, u16)> {
        let is = |&&(m, e): &&(u16, u16)| self.names.name(m) == metric && self.names.name(e) == event;
        self.metrics.iter().find(is).copied()
    }

    /// `config` without the optional metrics that the population does not have, as on a machine that cannot measure
    /// them.
    pub fn measurable(&self, mut config: Config) -> Config {
        config
            .metrics
            .retain(|metric| !metric.optional || self.find(&metric.name(), &metric.event.name()).is_some());
        config
    }

    /// Metrics that the population has: name and event.
    pub fn known(&self) -> Vec<(String, String)> {
        let name = |number: u16| self.names.name(number).to_owned();
        self.metrics.iter().map(|&(metric, event)| (name(metric), name(event))).collect()
    }

    /// Every guide of `job` as the population numbers it.
    ///
    /// # Errors
    /// Metric and event of one that it does not have.
    pub fn guides(&self, job: &Job) -> Result<Vec<(u16, u16)>, (String, String)> {
        let number = |&guide: &usize| {
            let metric = &job.plan.metrics[guide];
            let (name, event) = (metric.name(), metric.event.name());
            self.find(&name, &event).ok_or_else(|| (name.into_owned(), event.into_owned()))
        };
        job.guides.iter().map(number).collect()
    }

    /// Its metrics as a text for people.
    pub fn list(&self) -> String {
        let name = |&(metric, event): &(u16, u16)| match event == self.names.window {
            true => self.names.name(metric).to_owned(),
            false => format!("{} of {}", self.names.name(metric), self.names.name(event)),
        };
        self.metrics.iter().map(name).collect::<Vec<_>>().join(", ")
    }
}
