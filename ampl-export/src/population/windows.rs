//! A population's windows, one after the other.

use std::io;

use ampl_client::simulate::{Job, Window};
use ampl_core::config::Event;
use ampl_core::message::MetricSummary;

use super::rows::{Fault, Row, Rows};
use super::spool::{Entry, Spool};
use super::{Columns, Extent, Population};

/// The rows of some metrics, the guides, window by window.
pub struct Windows {
    source: Source,
    ranks: usize,
    /// Numbers of every guide's metric and event.
    guides: Vec<(u16, u16)>,
    /// Bits by guide and rank: set where its row was seen in this window.
    seen: Vec<Vec<u64>>,
    /// Per guide: rank-windows that have a row of it, and windows in which any rank has.
    rows: Vec<(u64, u64)>,
}

enum Source {
    /// Windows ascend in the file: rows are read when they are needed.
    Stream {
        rows: Box<dyn Rows + Send>,
        batch: Vec<Row>,
        next: usize,
    },
    Spool(Spool),
}

impl Windows {
    /// The windows of `population`, whose extent is known. `ranks` is the number of ranks in a window. `batch_done`
    /// is called now and then with the number of rows read, while they are sorted.
    ///
    /// # Errors
    /// A [`Fault`] in the first row that is wrong, or where windows do not ascend and cannot be sorted.
    pub fn new(
        population: &Population,
        extent: &Extent,
        guides: Vec<(u16, u16)>,
        ranks: u32,
        mut batch_done: impl FnMut(u64),
    ) -> Result<Self, Fault> {
        let mut rows = population.rows(Columns::All, extent.names.clone())?;
        let ranks = ranks as usize;
        let seen = vec![vec![0; ranks.div_ceil(64)]; guides.len()];
        if extent.ascending {
            return Ok(Self {
                source: Source::Stream { rows, batch: Vec::new(), next: 0 },
                ranks,
                rows: vec![(0, 0); guides.len()],
                guides,
                seen,
            });
        }
        let mut spool = Spool::new().map_err(unsorted)?;
        let mut batch = Vec::new();
        loop {
            rows.next(&mut batch)?;
            if batch.is_empty() {
                break;
            }
            for row in &batch {
                if let Some(entry) = entry(&guides, row) {
                    spool.push(row.window, &entry).map_err(unsorted)?;
                }
            }
            batch_done(batch.len() as u64);
        }
        let counts = vec![(0, 0); guides.len()];
        Ok(Self { source: Source::Spool(spool), ranks, guides, seen, rows: counts })
    }

    /// Puts the observations in window `number` into `window`. Numbers ascend.
    ///
    /// # Errors
    /// A [`Fault`] in the first row that is wrong.
    pub fn fill(&mut self, number: u64, window: &mut Window) -> Result<(), Fault> {
        self.read(number, window)?;
        for (seen, (rows, windows)) in self.seen.iter().zip(&mut self.rows) {
            let ranks: u64 = seen.iter().map(|bits| u64::from(bits.count_ones())).sum();
            *rows += ranks;
            *windows += u64::from(ranks > 0);
        }
        Ok(())
    }

    /// Guide of whole windows, with one observation per rank and window, that lacks the most rows; how many, of how many.
    /// `None` where all rows are there.
    pub fn lacking(&self, job: &Job) -> Option<(String, u64, u64)> {
        let metric = |guide: usize| &job.plan.metrics[guide];
        let whole = job.guides.iter().enumerate().filter(|&(_, &guide)| metric(guide).event == Event::Window);
        let (place, &guide) = whole.max_by_key(|&(place, _)| self.missing(place).0)?;
        let (missing, all) = self.missing(place);
        (missing > 0).then(|| (metric(guide).name().into_owned(), missing, all))
    }

    /// Rank-windows without a row of the guide at that place so far, and all; windows in which no rank has one are
    /// left out.
    pub fn missing(&self, guide: usize) -> (u64, u64) {
        let (rows, windows) = self.rows[guide];
        let all = windows * self.ranks as u64;
        (all - rows, all)
    }

    fn read(&mut self, number: u64, window: &mut Window) -> Result<(), Fault> {
        window.number = number;
        window.guides.resize(self.guides.len(), Vec::new());
        for summaries in &mut window.guides {
            summaries.clear();
            summaries.resize(self.ranks, MetricSummary::default());
        }
        self.seen.iter_mut().for_each(|seen| seen.fill(0));
        let Self { source, guides, seen, .. } = self;
        let mut put = |entry: Entry| put(window, seen, &entry);
        match source {
            Source::Spool(spool) => {
                let put = |entry| put(entry).map_err(Stop::Fault);
                spool.each(number, put).map_err(|stop| match stop {
                    Stop::Fault(fault) => fault,
                    Stop::Io(error) => unsorted(error),
                })
            }
            Source::Stream { rows, batch, next } => loop {
                if *next == batch.len() {
                    *next = 0;
                    rows.next(batch)?;
                    if batch.is_empty() {
                        return Ok(());
                    }
                }
                let row = &batch[*next];
                if row.window > number {
                    return Ok(());
                }
                *next += 1;
                if row.window == number
                    && let Some(entry) = entry(guides, row)
                {
                    put(entry)?;
                }
            },
        }
    }
}

enum Stop {
    Fault(Fault),
    Io(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The row as one of a guide, if it is.
fn entry(guides: &[(u16, u16)], row: &Row) -> Option<Entry> {
    let guide = guides.iter().position(|&guide| guide == (row.metric, row.event))?;
    Some(Entry { row: row.row, rank: row.rank, guide: guide as u32, summary: row.summary })
}

fn put(window: &mut Window, seen: &mut [Vec<u64>], entry: &Entry) -> Result<(), Fault> {
    let (rank, guide) = (entry.rank as usize, entry.guide as usize);
    let bits = &mut seen[guide][rank / 64];
    let bit = 1 << (rank % 64);
    if *bits & bit != 0 {
        let what = format!("a second row of rank {rank} in window {} for the same metric", window.number);
        return Err(Fault::at(entry.row, what, "write one row per window, rank, metric and event"));
    }
    *bits |= bit;
    window.guides[guide][rank] = entry.summary;
    Ok(())
}

fn unsorted(error: io::Error) -> Fault {
    let fix = "sort its rows by window, or have TMPDIR name a directory with more space";
    Fault::new(format!("windows do not ascend, and its rows cannot be sorted: {error}"), fix)
}
