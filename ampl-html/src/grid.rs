//! Times of ranks by window, for the heat map and everything that a range of time recomputes.

use std::collections::BTreeMap;
use std::ops::Range;

use ampl_analysis::window_times::{Columns, Observed};
use ampl_reader::Trace;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use crate::pooling::parts;

/// Most rows and columns of the map.
const ROWS: usize = 200;
const COLUMNS: usize = 300;
/// Share in [`Grid::mpi`] of cells without a measurement.
const UNKNOWN: u16 = u16::MAX;
/// The number of a whole.
const WHOLE: f64 = 65534.0;

/// Cells of ranks by windows. Arrays are row by row, numbers in little-endian order, in base64.
#[derive(Debug, Serialize)]
pub struct Grid {
    /// First and last rank of each row.
    pub rows: Vec<[u32; 2]>,
    /// Ranks of each row: where they are more than rows, those of one stratum, some of them not between first and last.
    pub sizes: Vec<usize>,
    /// True where all ranks of a row are of one stratum.
    pub by_strata: bool,
    /// First and last window of each column.
    pub columns: Vec<[u64; 2]>,
    /// Beginning of each column, and the end of the last, seconds since the start.
    pub edges: Vec<f64>,
    /// Share of MPI in each cell's time, the greatest of its rank-windows, in 65534ths; 65535 where nothing was
    /// measured.
    mpi: String,
    /// Compute time of each cell, nanoseconds: the sum over its windows, of several ranks the mean.
    compute: String,
    /// Time of each cell in the program, likewise.
    time: String,
    /// 0: not measured; 1: measured; 2: times of calls are kept, too. One byte a cell.
    state: String,
    /// For each column, mean and greatest compute time of its ranks and the longest time in the program, nanoseconds.
    /// Null where not all ranks were measured.
    pub totals: Vec<Option<[f64; 3]>>,
}

#[derive(Clone, Copy, Default)]
struct Cell {
    compute: f64,
    time: f64,
    most_mpi: f64,
    measured: u32,
    kept: bool,
}

/// Times of one rank in one column.
#[derive(Clone, Copy, Default)]
struct Own {
    compute: f64,
    time: f64,
    is_measured: bool,
    lacks: bool,
}

impl Grid {
    /// The cells of `trace`, whose ranks are of the strata of these numbers; `None` where it has no window.
    pub fn of(trace: &Trace, stratum_of: &[usize]) -> Option<Self> {
        Self::within(trace, stratum_of, ROWS, COLUMNS)
    }

    /// As [`of`](Self::of), with at most so many rows and columns.
    pub fn within(
        trace: &Trace,
        stratum_of: &[usize],
        most_rows: usize,
        most_columns: usize,
    ) -> Option<Self> {
        let numbers = trace.ranks.iter().flat_map(|rank| &rank.windows).map(|window| window.window);
        // No more than what their parts can be computed of.
        let windows = numbers.max().map_or(0, |last| last.saturating_add(1).min(1 << 40)) as usize;
        if windows == 0 || trace.ranks.is_empty() {
            return None;
        }
        let columns = parts(windows, most_columns);
        let number = |rank: usize| trace.ranks[rank].process.rank;
        let stratum = |rank: usize| stratum_of.get(number(rank) as usize).copied().unwrap_or(0);
        let (rows, by_strata) = rows(trace.ranks.len(), most_rows, stratum);
        let column_of = |window: u64| columns.partition_point(|part| part.end as u64 <= window);
        let places = Columns::of(trace);
        let mut cells = vec![Cell::default(); rows.len() * columns.len()];
        let mut totals = vec![(0.0, 0.0, 0.0f64, false); columns.len()];
        for (row, ranks) in rows.iter().enumerate() {
            for rank in ranks.iter().map(|&rank| &trace.ranks[rank]) {
                let own_places = places.of_rank(rank);
                let mut own = vec![Own::default(); columns.len()];
                for window in &rank.windows {
                    let column = column_of(window.window);
                    if column >= columns.len() {
                        continue;
                    }
                    let cell = &mut cells[row * columns.len() + column];
                    cell.kept |= window.kept;
                    let Observed::Measured(times, _) = own_places.observed(&window) else {
                        own[column].lacks = true;
                        continue;
                    };
                    let (times, many) = (times.settled(), window.repeat.max(1) as f64);
                    let time = times.of_program() * many;
                    own[column].is_measured = true;
                    own[column].compute += times.compute * many;
                    own[column].time += time;
                    cell.measured += 1;
                    let share = if time > 0.0 { times.mpi * many / time } else { 0.0 };
                    cell.most_mpi = cell.most_mpi.max(share.min(1.0));
                }
                for (column, own) in own.iter().enumerate() {
                    let cell = &mut cells[row * columns.len() + column];
                    cell.compute += own.compute / ranks.len() as f64;
                    cell.time += own.time / ranks.len() as f64;
                    let total = &mut totals[column];
                    total.0 += own.compute / trace.run.ranks.max(1) as f64;
                    total.1 = own.compute.max(total.1);
                    total.2 = own.time.max(total.2);
                    total.3 |= own.lacks || !own.is_measured;
                }
            }
        }
        let complete = trace.ranks.len() == trace.run.ranks as usize;
        let total = |&(mean, most, time, lacks): &(f64, f64, f64, bool)| {
            (complete && !lacks && time > 0.0).then(|| [mean.round(), most.round(), time.round()])
        };
        let share = |cell: &Cell| match cell.measured {
            0 => UNKNOWN,
            _ => (cell.most_mpi * WHOLE).round() as u16,
        };
        Some(Self {
            rows: rows.iter().map(|of| [number(of[0]), number(of[of.len() - 1])]).collect(),
            sizes: rows.iter().map(Vec::len).collect(),
            by_strata,
            edges: edges(trace, &columns),
            columns: columns.iter().map(|of| [of.start as u64, of.end as u64 - 1]).collect(),
            mpi: packed(cells.iter().flat_map(|cell| share(cell).to_le_bytes())),
            compute: packed(cells.iter().flat_map(|cell| (cell.compute as f32).to_le_bytes())),
            time: packed(cells.iter().flat_map(|cell| (cell.time as f32).to_le_bytes())),
            state: packed(cells.iter().map(|cell| u8::from(cell.measured > 0) * (1 + u8::from(cell.kept)))),
            totals: totals.iter().map(total).collect(),
        })
    }
}

/// Ranks of each row, and true where those of a row are of one stratum: one each, or as many rows for each stratum as it
/// has ranks for.
fn rows(count: usize, most: usize, stratum: impl Fn(usize) -> usize) -> (Vec<Vec<usize>>, bool) {
    let mut strata: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    (0..count).for_each(|rank| strata.entry(stratum(rank)).or_default().push(rank));
    if count <= most || strata.len() > most {
        return (parts(count, most).into_iter().map(Iterator::collect).collect(), count <= most);
    }
    let free = most - strata.len();
    let of_stratum = |ranks: Vec<usize>| {
        let own = parts(ranks.len(), 1 + free * ranks.len() / count);
        own.into_iter().map(|part| ranks[part].to_vec()).collect::<Vec<_>>()
    };
    (strata.into_values().flat_map(of_stratum).collect(), true)
}

fn packed(bytes: impl Iterator<Item = u8>) -> String {
    STANDARD.encode(bytes.collect::<Vec<u8>>())
}

/// Beginnings of the columns, and the end of the last, in seconds.
fn edges(trace: &Trace, columns: &[Range<usize>]) -> Vec<f64> {
    let mut starts: BTreeMap<u64, i64> = BTreeMap::new();
    let mut end = 0;
    for window in trace.ranks.iter().flat_map(|rank| &rank.windows) {
        let start = starts.entry(window.window).or_insert(window.start_ns);
        *start = window.start_ns.min(*start);
        end = window.end_ns.max(end);
    }
    let seconds = |ns: i64| (ns as f64 / 1e3).round() / 1e6;
    let mut last = 0;
    let first = |of: &Range<usize>| {
        let start = starts.range(of.start as u64..).next().map_or(end, |(_, &start)| start);
        // Clocks of ranks that had no window there must not turn time back.
        last = start.max(last);
        seconds(last)
    };
    let mut edges: Vec<f64> = columns.iter().map(first).collect();
    edges.push(seconds(end.max(last)));
    edges
}

#[cfg(test)]
mod tests {
    use ampl_testkit::times::run;

    use super::*;

    fn numbers(text: &str) -> Vec<f32> {
        let bytes = STANDARD.decode(text).unwrap();
        bytes.chunks(4).map(|of| f32::from_le_bytes(of.try_into().unwrap())).collect()
    }

    #[test]
    fn cells_add_up_to_the_run() {
        for (ranks, windows) in [(3usize, 5usize), (450, 700)] {
            let compute = |window: usize, rank: usize| Some(((window * 7 + rank * 3) % 90) as f64);
            let all: Vec<Vec<Option<f64>>> =
                (0..windows).map(|window| (0..ranks).map(|rank| compute(window, rank)).collect()).collect();
            let strata: Vec<usize> = (0..ranks).map(|rank| rank % 3).collect();
            let grid = Grid::of(&run(&vec!["a"; ranks], 100.0, &all), &strata).unwrap();
            assert!(grid.rows.len() <= ROWS && grid.columns.len() <= COLUMNS);
            assert_eq!(grid.edges.len(), grid.columns.len() + 1);
            assert!(grid.by_strata && grid.sizes.iter().sum::<usize>() == ranks);
            let sizes: Vec<f64> = grid.sizes.iter().map(|&size| size as f64).collect();
            let cells = numbers(&grid.compute);
            let of_row = |row: usize| cells[row * grid.columns.len()..][..grid.columns.len()].iter();
            let sum: f64 = (0..sizes.len())
                .map(|row| sizes[row] * of_row(row).map(|&cell| f64::from(cell)).sum::<f64>())
                .sum();
            let truth: f64 = all.iter().flatten().flatten().sum();
            assert!((sum - truth).abs() < 1e-4 * truth, "{sum} {truth}");
            let means: f64 = grid.totals.iter().map(|total| total.unwrap()[0]).sum();
            assert!((means * ranks as f64 / truth - 1.0).abs() < 0.02, "{means}");
            // The greatest share of a cell is that of some rank-window in it.
            let shares = STANDARD.decode(&grid.mpi).unwrap();
            let first = f64::from(u16::from_le_bytes([shares[0], shares[1]])) / WHOLE;
            let (last, columns) = (grid.rows[0][1] as usize, grid.columns[0][1] as usize + 1);
            let apart = if grid.sizes[0] > 1 { 3 } else { 1 };
            let least = (0..columns).flat_map(|w| (0..=last).step_by(apart).map(move |r| (w, r)));
            let least = least.filter_map(|(w, r)| compute(w, r)).fold(100.0, f64::min);
            assert!((first - (1.0 - least / 100.0)).abs() < 1e-4, "{first} {least}");
        }
    }

    #[test]
    fn ranks_of_a_row_are_of_one_stratum_where_strata_are_few() {
        let (few, by_strata) = rows(1000, 50, |rank| usize::from(rank % 10 == 0));
        assert!(by_strata && few.len() <= 50 && few.len() > 40, "{}", few.len());
        assert!(few.iter().all(|row| row.iter().all(|rank| (rank % 10 == 0) == (row[0] % 10 == 0))));
        let mut all: Vec<usize> = few.concat();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..1000));
        let (many, by_strata) = rows(1000, 50, |rank| rank / 2);
        assert!(!by_strata && many.len() == 50 && many.concat().into_iter().eq(0..1000));
    }

    #[test]
    fn cells_without_a_measurement_are_marked() {
        let grid =
            Grid::of(&run(&["a", "a"], 100.0, &[vec![Some(1.0), Some(2.0)], vec![Some(1.0), None]]), &[]);
        let grid = grid.unwrap();
        assert_eq!(STANDARD.decode(&grid.state).unwrap(), [1, 1, 1, 0]);
        assert_eq!(STANDARD.decode(&grid.mpi).unwrap()[6..], UNKNOWN.to_le_bytes());
        assert!(grid.totals[0].is_some() && grid.totals[1].is_none());
        assert!(Grid::of(&Trace::default(), &[]).is_none());
    }
}
