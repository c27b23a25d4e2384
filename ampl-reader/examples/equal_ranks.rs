//! Writes a synthetic run of equal ranks, to measure what opening a large run costs: `equal_ranks RANKS DIRECTORY`.

use std::error::Error;
use std::path::Path;

use ampl_testkit::equal_ranks::write_run;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(ranks), Some(directory)) = (words.next(), words.next()) else {
        return Err("usage: equal_ranks RANKS DIRECTORY".into());
    };
    write_run(ranks.parse()?, Path::new(&directory));
    Ok(())
}
