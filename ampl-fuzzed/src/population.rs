//! Bytes as a population in CSV or Parquet: refused with a reason, or windows whose numbers are finite and hold together.

use std::io::Write;

use ampl_client::simulate::Window;
use ampl_core::message::MetricSummary;
use ampl_export::population::{Extent, Fault, Population, Windows};

/// Most rows that are read: a few bytes may stand for 2^31 equal ones.
const MOST_ROWS: u64 = 1 << 16;
/// Most ranks of which windows are read.
const MOST_RANKS: u32 = 1 << 12;
/// Most windows that are read.
const MOST_WINDOWS: u64 = 64;
/// Most metrics that are read.
const MOST_METRICS: usize = 3;

/// Reads `bytes`.
///
/// # Panics
/// Where the property does not hold, or there is no place for a file.
pub fn check(bytes: &[u8]) {
    let mut file = tempfile::NamedTempFile::new().expect("a place for a file");
    file.write_all(bytes).expect("a place for its bytes");
    let population = Population::open(file.path()).expect("it was written");
    if population.row_count().is_some_and(|rows| rows > MOST_ROWS) {
        return;
    }
    if let Err(Fault { what, fix, .. }) = read(&population) {
        assert!(!what.is_empty() && !fix.is_empty());
    }
}

fn read(population: &Population) -> Result<(), Fault> {
    let extent = Extent::of(population, |_| ())?;
    let (first, last) = extent.windows;
    assert!(extent.rows > 0 && extent.ranks > 0 && first <= last, "{extent:?}");
    let known = extent.known();
    assert!(!known.is_empty() && known.iter().all(|(metric, event)| !metric.is_empty() && !event.is_empty()));
    for (metric, event) in &known {
        assert!(extent.find(metric, event).is_some(), "{extent:?}");
    }
    if extent.ranks > MOST_RANKS {
        return Ok(());
    }
    let guides: Vec<(u16, u16)> = extent.metrics.iter().copied().take(MOST_METRICS).collect();
    let metrics = guides.len();
    let mut windows = Windows::new(population, &extent, guides, extent.ranks, |_| ())?;
    let mut window = Window::default();
    for number in first..=last.min(first.saturating_add(MOST_WINDOWS)) {
        windows.fill(number, &mut window)?;
        assert_eq!((window.number, window.guides.len()), (number, metrics));
        for summaries in &window.guides {
            assert_eq!(summaries.len(), extent.ranks as usize);
            summaries.iter().for_each(holds);
        }
    }
    Ok(())
}

fn holds(summary: &MetricSummary) {
    let MetricSummary { n, sum, sum_sq, min, max } = *summary;
    if n == 0 {
        assert_eq!(*summary, MetricSummary::default());
        return;
    }
    // Sums of fourth powers over ranks have their place among numbers.
    let is_sound = [sum, min, max].iter().all(|value| value.abs() <= 1e60) && sum_sq <= 1e120;
    assert!(is_sound && min <= max && sum_sq >= 0.0, "{summary:?}");
}
