//! Recorded against replayed time, by function.

use std::time::Duration;

use ampl_core::mpi::{Class, FUNCTION_COUNT, Function};
use ampl_reader::Run;
use serde_json::{Value, json};

use super::ffi::Private;

/// Calls and their time by function: of a rank, then of all.
#[derive(Debug)]
pub struct Measured {
    calls: Vec<u64>,
    time_ns: Vec<u64>,
}

impl Default for Measured {
    fn default() -> Self {
        Self { calls: vec![0; FUNCTION_COUNT], time_ns: vec![0; FUNCTION_COUNT] }
    }
}

/// A function's line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Row {
    calls: u64,
    time_ns: u64,
}

impl Measured {
    /// Adds a call.
    pub fn add(&mut self, function: Function, time: Duration) {
        self.calls[usize::from(function.0)] += 1;
        self.time_ns[usize::from(function.0)] += time.as_nanos() as u64;
    }

    /// Sums over all ranks, on rank 0.
    pub fn gather(&mut self, private: Private, rank: u32) {
        private.sum(&mut self.calls, rank);
        private.sum(&mut self.time_ns, rank);
    }
}

/// Times of a replay, beside those of the run.
#[derive(Debug)]
pub struct Report<'a> {
    pub run: &'a Run,
    pub measured: &'a Measured,
    /// From the return of `MPI_Init` to the entry of `MPI_Finalize`, of the slowest rank.
    pub replayed_ns: u64,
    /// Time that all steps would take, where some were left out.
    pub predicted_ns: Option<u64>,
    /// Remarks on how it was done.
    pub notes: Vec<String>,
}

fn is_shown(function: u16) -> bool {
    // Begins and ends MPI, and ampl with it.
    Function(function).spec().class != Class::Lifecycle
}

impl Report<'_> {
    fn recorded_ns(&self) -> u64 {
        let elapsed = |rank: u32| self.run.process(rank).map_or(0, |process| process.elapsed_ns);
        self.run.ranks().into_iter().map(elapsed).max().unwrap_or(0)
    }

    /// Function, recorded and replayed, most recorded time first.
    fn rows(&self) -> Vec<(u16, Row, Row)> {
        let mut recorded = vec![Row::default(); FUNCTION_COUNT];
        for (function, _, share) in self.run.totals().shares() {
            if let Some(row) = recorded.get_mut(usize::from(function)) {
                row.calls += share.calls;
                row.time_ns += share.time_ns;
            }
        }
        let replayed = self.measured.calls.iter().zip(&self.measured.time_ns);
        let both = recorded.into_iter().zip(replayed).zip(0..).filter(|((recorded, replayed), function)| {
            is_shown(*function) && (recorded.calls > 0 || *replayed.0 > 0)
        });
        let row = |((recorded, (&calls, &time_ns)), function)| (function, recorded, Row { calls, time_ns });
        let mut rows: Vec<_> = both.map(row).collect();
        rows.sort_by_key(|(function, recorded, _)| (std::cmp::Reverse(recorded.time_ns), *function));
        rows
    }

    /// One document.
    pub fn json(&self) -> Value {
        let rows = self.rows().into_iter().map(|(function, recorded, replayed)| {
            json!({
                "function": Function(function).name(),
                "recorded": {"calls": recorded.calls, "ns": recorded.time_ns},
                "replayed": {"calls": replayed.calls, "ns": replayed.time_ns},
            })
        });
        json!({
            "schema": 1,
            "ranks": self.run.info().ranks,
            "recorded_ns": self.recorded_ns(),
            "replayed_ns": self.replayed_ns,
            "predicted_ns": self.predicted_ns,
            "functions": rows.collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }

    /// Text for people.
    pub fn text(&self) -> String {
        let mut lines = vec![format!(
            "replayed {} ranks: {} (recorded: {})",
            self.run.info().ranks,
            seconds(self.replayed_ns),
            seconds(self.recorded_ns())
        )];
        lines.extend(self.notes.iter().map(|note| format!("  {note}")));
        lines.push(format!(
            "  {:<28} {:>10} {:>12} {:>12}",
            "time of all ranks in", "calls", "recorded", "replayed"
        ));
        for (function, recorded, replayed) in self.rows() {
            let (before, now) = (seconds(recorded.time_ns), seconds(replayed.time_ns));
            let name = Function(function).name();
            lines.push(format!("  {name:<28} {:>10} {before:>12} {now:>12}", replayed.calls));
        }
        lines.join("\n") + "\n"
    }
}

/// Nanoseconds as text with three digits.
pub fn seconds(time_ns: u64) -> String {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "us")];
    let (unit, name) = units.into_iter().find(|(unit, _)| time_ns as f64 >= *unit).unwrap_or((1.0, "ns"));
    let value = time_ns as f64 / unit;
    let decimals = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.decimals$} {name}")
}
