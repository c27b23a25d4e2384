//! Runs of an archive as Parquet, in partitions by month that DuckDB, Dask and Spark know by their names.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use ampl_analysis::history::Row;
use ampl_core::naming::utc;

use crate::columns::{Cell, Column, RowWriter, Type};
use crate::place::Place;

const COLUMNS: [Column; 18] = [
    Column::every("record", Type::Text),
    Column::every("key", Type::Text),
    Column::every("started_ns", Type::Int64),
    Column::every("user", Type::Text),
    Column::every("app", Type::Text),
    Column::every("job", Type::Text),
    Column::every("ranks", Type::Int64),
    Column::every("hosts", Type::Int64),
    Column::every("elapsed_ns", Type::Int64),
    Column::every("calls", Type::Int64),
    Column::some("parallel", Type::Double),
    Column::some("load_balance", Type::Double),
    Column::some("communication", Type::Double),
    Column::every("coverage", Type::Double),
    Column::some("cost", Type::Double),
    Column::every("complete", Type::Bool),
    Column::some("dearest", Type::Text),
    Column::every("run", Type::Text),
];

/// `rows` by the month of their start, each month under the name of its directory: `month=2026-11`.
pub fn partitions(rows: &[Row]) -> BTreeMap<String, Vec<&Row>> {
    let mut months = BTreeMap::<String, Vec<&Row>>::new();
    for row in rows {
        let day = utc(row.started_ns / 1_000_000_000);
        let name =
            format!("month={}-{}", day.get(..4).unwrap_or_default(), day.get(4..6).unwrap_or_default());
        months.entry(name).or_default().push(row);
    }
    months
}

/// Writes a directory for each month into `target`, all or none.
///
/// # Errors
/// Failures to write.
pub fn write_months(rows: &[Row], target: &Path) -> io::Result<()> {
    let months = partitions(rows);
    let place = Place::new(target, months.keys().cloned().collect())?;
    for (month, rows) in &months {
        fs::create_dir_all(place.path(month))?;
        let file = File::create(place.path(month).join("part-0.parquet"))?;
        write(rows, BufWriter::new(file))?;
    }
    place.finish()
}

/// Writes the rows of a partition.
///
/// # Errors
/// Errors of `out`.
pub fn write(rows: &[&Row], out: impl Write + Send) -> io::Result<()> {
    let mut table = RowWriter::new(out, "runs", &COLUMNS)?;
    // Parquet's numbers have a sign.
    let int = |value: u64| Cell::Int(i64::try_from(value).unwrap_or(i64::MAX));
    for row in rows {
        table.push(&[
            Cell::Text(&row.record),
            Cell::Text(&row.key),
            int(row.started_ns),
            Cell::Text(&row.user),
            Cell::Text(&row.app),
            Cell::Text(&row.job),
            int(row.ranks.into()),
            int(row.hosts),
            int(row.elapsed_ns),
            int(row.calls),
            Cell::double(row.parallel),
            Cell::double(row.load_balance),
            Cell::double(row.communication),
            Cell::Double(row.coverage),
            Cell::double(row.cost),
            Cell::Bool(row.complete),
            Cell::text(row.dearest.as_deref()),
            Cell::Text(&row.run),
        ])?;
    }
    table.close()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_go_by_the_month_of_their_start() {
        let row = |started: u64| Row { started_ns: started * 1_000_000_000, ..Row::default() };
        // The last second of 2025, the first of 2026, and one of February.
        let rows = [row(1_767_225_599), row(1_767_225_600), row(1_770_000_000), row(1_767_225_601)];
        let months = partitions(&rows);
        let sizes: Vec<(&str, usize)> =
            months.iter().map(|(name, rows)| (name.as_str(), rows.len())).collect();
        assert_eq!(sizes, [("month=2025-12", 1), ("month=2026-01", 2), ("month=2026-02", 1)]);
        let mut out = Vec::new();
        write(&months["month=2026-01"], &mut out).unwrap();
        assert!(out.starts_with(b"PAR1") && out.ends_with(b"PAR1"));
    }
}
