//! Many runs of an archive: rows of its list, and changes between runs of one kind.

mod changes;

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

pub use changes::{Change, FEWEST, SIGNIFICANCE, changes};

use crate::record::Record;

/// A run in a list of runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Row {
    /// File of the record, in the archive.
    pub record: String,
    /// Equal in runs of one kind.
    pub key: String,
    /// Start, nanoseconds since the Unix epoch.
    pub started_ns: u64,
    /// Name of the user.
    pub user: String,
    /// The first rank's program.
    pub app: String,
    /// The scheduler's job, or the launcher's process.
    pub job: String,
    /// Ranks of the job.
    pub ranks: u32,
    /// Number of hosts.
    pub hosts: u64,
    /// Time of the longest rank.
    pub elapsed_ns: u64,
    /// Calls of all ranks.
    pub calls: u64,
    /// Share of the ranks' time that computes.
    pub parallel: Option<f64>,
    /// Mean over greatest compute time.
    pub load_balance: Option<f64>,
    /// Greatest compute time over elapsed time.
    pub communication: Option<f64>,
    /// Share of the ranks' time that the efficiencies rest on.
    pub coverage: f64,
    /// ampl's share of the ranks' run time.
    pub cost: Option<f64>,
    /// True where every rank came to the end.
    pub complete: bool,
    /// The dearest call site, as `function @ site`.
    pub dearest: Option<String>,
    /// The run directory.
    pub run: String,
}

impl Row {
    /// The row of `record`, which is in the file of that name.
    pub fn of(record: Record, file: String) -> Self {
        let dearest = record.sites.first().and_then(|site| {
            let function = site.function.as_deref()?;
            Some(
                site.site.as_ref().map_or_else(|| function.to_owned(), |site| format!("{function} @ {site}")),
            )
        });
        Self {
            record: file,
            key: record.key,
            started_ns: record.started_ns,
            user: record.user,
            app: record.app,
            job: record.job,
            ranks: record.ranks,
            hosts: record.host_count,
            elapsed_ns: record.elapsed_ns,
            calls: record.calls,
            parallel: record.efficiency.parallel,
            load_balance: record.efficiency.load_balance,
            communication: record.efficiency.communication,
            coverage: record.efficiency.coverage,
            cost: record.cost.share,
            complete: record.completeness.complete,
            dearest,
            run: record.run,
        }
    }
}

/// Changes of the elapsed time of `rows`, which are of one kind and in the order of their starts: index of the first row
/// after each change, and the change. Runs that did not come to their end have no part in it, and a run of several records
/// has one.
pub fn changes_of<'a>(rows: &'a [Row]) -> Vec<(usize, Change)> {
    let mut seen = HashSet::new();
    let mut counts = |row: &'a Row| {
        row.complete && row.elapsed_ns > 0 && seen.insert((row.started_ns, &row.job, &row.run))
    };
    let whole: Vec<usize> = (0..rows.len()).filter(|&at| counts(&rows[at])).collect();
    let times: Vec<f64> = whole.iter().map(|&at| rows[at].elapsed_ns as f64).collect();
    changes(&times).into_iter().map(|change| (whole[change.at], change)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_several_records_counts_once() {
        let row = |at: u64, elapsed_ns: u64| Row {
            started_ns: at,
            job: at.to_string(),
            complete: true,
            elapsed_ns,
            ..Row::default()
        };
        let usual: Vec<Row> = (0..20).map(|at| row(at, 100_000 + at * 7 % 11)).collect();
        let slow = row(20, 200_000);
        let copies = [usual.clone(), vec![slow; 20]].concat();
        assert_eq!(changes_of(&copies), []);
        let runs: Vec<Row> = (20..40).map(|at| row(at, 200_000 + at * 7 % 11)).collect();
        assert_eq!(changes_of(&[usual, runs].concat()).len(), 1);
    }
}
