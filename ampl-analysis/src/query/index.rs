//! The index of a run's times is made.

use std::io::{self, Write};

use ampl_reader::Run;
use ampl_trace::time_index::{encode, put_header, put_rank};
use rayon::prelude::*;

/// Writes the index of the times of `run`, which has that identity, to `out`; `rank_done` is called behind each rank.
/// Ranks without times, and those whose times are damaged, are left out.
///
/// # Errors
/// Errors of `out`.
pub fn write(run: &Run, identity: u64, out: &mut impl Write, mut rank_done: impl FnMut()) -> io::Result<()> {
    put_header(out, identity)?;
    // As many ranks as there are threads are in memory.
    for numbers in run.ranks().chunks(rayon::current_num_threads()) {
        let ranks: Vec<_> = numbers.iter().filter_map(|&number| run.rank(number)).collect();
        let ranks: Vec<_> = ranks.into_iter().map(|rank| (rank.structure, rank.trace.times)).collect();
        let encoded: Vec<_> = ranks
            .into_par_iter()
            .map(|(structure, times)| {
                let bytes = if times.is_empty() { None } else { encode(&structure, &times).ok() };
                (structure.rank, bytes)
            })
            .collect();
        for (rank, bytes) in encoded {
            if let Some(bytes) = bytes {
                put_rank(out, rank, &bytes)?;
            }
            rank_done();
        }
    }
    Ok(())
}
