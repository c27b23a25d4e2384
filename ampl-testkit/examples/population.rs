//! Writes a synthetic population for `ampl simulate`:
//!
//! ```text
//! cargo run --release -p ampl-testkit --features table --example population -- \
//!     spikes 2048 48 1 target/spikes.parquet
//! ```
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::BufWriter;
use std::process::ExitCode;

use ampl_testkit::{Kind, table};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match write(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("{what}");
            ExitCode::FAILURE
        }
    }
}

fn write(words: &[String]) -> Result<(), String> {
    let names = Kind::ALL.map(Kind::name).join(", ");
    let usage = format!("population KIND RANKS WINDOWS SEED FILE.{{csv,parquet}} [METRIC]\nkinds: {names}");
    let [kind, ranks, windows, seed, file, metric @ ..] = words else { return Err(usage) };
    let kind = Kind::by_name(kind).ok_or(&usage)?;
    let [ranks, windows, seed] = [ranks, windows, seed].map(|word| word.parse::<u64>());
    let (Ok(ranks), Ok(windows), Ok(seed)) = (ranks, windows, seed) else { return Err(usage) };
    let ranks = u32::try_from(ranks).map_err(|_| usage.clone())?;
    let metric = metric.first().map_or("wall", String::as_str);
    let rows = table::rows(kind, ranks, windows, seed);
    let out = File::create(file).map(BufWriter::new).map_err(|error| format!("{file}: {error}"))?;
    if file.ends_with(".csv") {
        table::write_csv(out, metric, rows).map_err(|error| format!("{file}: {error}"))
    } else if file.ends_with(".parquet") {
        table::write_parquet(out, metric, rows).map_err(|error| format!("{file}: {error}"))
    } else {
        Err(usage)
    }
}
