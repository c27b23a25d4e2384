//! Both formats have the same rows, and a population has them again.

use std::fs::File;
use std::path::Path;

use ampl_export::population::{Extent, Population};
use ampl_export::{Format, Selection, summaries};
use ampl_testkit::synthetic::Synthetic;
use csv::Reader;
use parquet::file::reader::{FileReader, SerializedFileReader};

/// The contract's columns for `ampl simulate`, and the event.
const COLUMN_NAMES: &str = "window, rank, metric, count, sum, sum_sq, min, max, event";

/// Fields of every line behind the names.
fn lines(file: &Path) -> Vec<Vec<String>> {
    let mut reader = Reader::from_path(file).unwrap();
    assert_eq!(reader.headers().unwrap(), COLUMN_NAMES.split(", ").collect::<Vec<_>>());
    reader.records().map(|record| record.unwrap().iter().map(str::to_owned).collect()).collect()
}

#[test]
fn parquet_holds_the_rows_of_the_csv() {
    let dir = tempfile::tempdir().unwrap();
    let trace = Synthetic { ranks: 6, windows: 5, size: 3, ..Synthetic::default() }.trace();
    let all = Selection::new(None, None, None).unwrap();
    let (text, columns) = (dir.path().join("a.csv"), dir.path().join("a.parquet"));
    let write = |format, file: &Path| {
        summaries::write(&trace, &all, false, format, File::create(file).unwrap(), || ()).unwrap()
    };
    let written = write(Format::Csv, &text);
    assert_eq!(written, write(Format::Parquet, &columns));
    let reader = SerializedFileReader::new(File::open(&columns).unwrap()).unwrap();
    let shown = |row: parquet::record::Row| {
        let field = |(_, field): (&String, &parquet::record::Field)| match field {
            parquet::record::Field::Double(value) => value.to_string(),
            parquet::record::Field::Str(text) => text.clone(),
            other => other.to_string(),
        };
        row.get_column_iter().map(field).collect::<Vec<_>>()
    };
    let names: Vec<String> = reader
        .metadata()
        .file_metadata()
        .schema_descr()
        .columns()
        .iter()
        .map(|c| c.name().to_owned())
        .collect();
    assert_eq!(names.join(", "), COLUMN_NAMES);
    let rows: Vec<Vec<String>> = reader.get_row_iter(None).unwrap().map(|row| shown(row.unwrap())).collect();
    assert_eq!(rows, lines(&text));
    assert_eq!(rows.len() as u64, written);
    for file in [&text, &columns] {
        let extent = Extent::of(&Population::open(file).unwrap(), |_| ()).unwrap();
        assert_eq!((extent.rows, extent.ranks, extent.windows), (written, 6, (0, 4)));
        assert!(extent.ascending || !extent.sampled);
    }
}
