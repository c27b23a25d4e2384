//! Coverage and sample size of every method on the eleven populations of ampl-testkit, through the policy and the draws
//! of a live run.
//!
//! A window is covered when the weighted estimate from the kept ranks lies within the error bound of its true
//! mean. Sizes are compared with the smallest simple random sample for the window's true variance, averaged
//! over windows, at least 16: the geometric mean over populations is `gm`. The first update interval is not
//! scored. Nothing is asserted: lines say whether a method does what it is meant to.

#[path = "coverage/measure.rs"]
mod measure;
#[path = "coverage/options.rs"]
mod options;
#[path = "coverage/table.rs"]
mod table;
#[path = "coverage/undeclared.rs"]
mod undeclared;

use std::process::ExitCode;

use options::Options;

fn main() -> ExitCode {
    // `cargo bench` adds a word of its own.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let options = match Options::parse(&words) {
        Ok(options) => options,
        Err(wrong) => {
            eprintln!("{wrong}");
            return ExitCode::from(2);
        }
    };
    println!(
        "{} windows, {} per update interval; seeds {}-{}; {} draws",
        options.windows,
        options.interval,
        options.first_seed,
        options.first_seed + options.seeds - 1,
        options.mechanism_name()
    );
    for &ranks in &options.ranks {
        let cells = measure::measure(&options, ranks);
        table::print(&options, ranks, &cells);
    }
    ExitCode::SUCCESS
}
