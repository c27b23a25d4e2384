//! The index of a run's times is made.

use std::io::{self, Write};

use ampl_reader::Run;
use ampl_trace::structure::RankStructure;
use ampl_trace::time_index::{Classes, Header, RANK_HEAD_BYTES, encode, put_header, put_rank};
use rayon::prelude::*;

use super::bytes::bytes;

/// Signatures and positions in rules of a rank, from which on its index has classes of calls: reading the structure takes
/// longer than reading these.
const MANY: usize = 4096;

/// True where the index of a rank has classes of its calls.
fn wants_classes(structure: &RankStructure) -> bool {
    let threads = structure.threads.iter();
    let of = threads.map(|own| own.signatures.len() + own.grammar.size());
    of.sum::<usize>() >= MANY
}

/// Writes the index of the times of `run`, which has that identity, to `out`; `rank_done` is called behind each rank.
/// Ranks without times, and those whose times are damaged, are left out; so are ranks that would take more than their
/// part of `most_bytes`, by the sizes of their times.
///
/// # Errors
/// Errors of `out`.
pub fn write(
    run: &Run,
    identity: u64,
    most_bytes: u64,
    out: &mut impl Write,
    rank_done: impl FnMut(),
) -> io::Result<()> {
    write_with(run, identity, most_bytes, wants_classes, out, rank_done)
}

/// The same, with classes of the calls of ranks for which `wants_classes` is true.
pub(super) fn write_with(
    run: &Run,
    identity: u64,
    most_bytes: u64,
    wants_classes: fn(&RankStructure) -> bool,
    out: &mut impl Write,
    mut rank_done: impl FnMut(),
) -> io::Result<()> {
    let mut written = Header::BYTES as u64;
    let all_times = u128::from(run.sizes().timing.max(1));
    put_header(out, identity)?;
    // As many ranks as there are threads are in memory.
    for numbers in run.ranks().chunks(rayon::current_num_threads()) {
        let ranks: Vec<_> = numbers.iter().filter_map(|&number| run.rank(number)).collect();
        let ranks: Vec<_> = ranks.into_iter().map(|rank| (rank.structure, rank.trace.times)).collect();
        let encoded: Vec<_> = ranks
            .into_par_iter()
            .map(|(structure, times)| {
                let part = u128::from(most_bytes) * times.len() as u128 / all_times;
                let part = usize::try_from(part).unwrap_or(usize::MAX).checked_sub(RANK_HEAD_BYTES);
                let part = part.filter(|_| !times.is_empty());
                let ranks = run.info().ranks;
                let classes = || Classes::of(&structure, &bytes(&structure, ranks));
                let classes = wants_classes(&structure).then(classes).flatten();
                let coded = |part| encode(&structure, &times, classes.as_ref(), part).ok().flatten();
                (structure.rank, part.and_then(coded))
            })
            .collect();
        for (rank, bytes) in encoded {
            let more = bytes.as_ref().map_or(0, |bytes| (bytes.len() + RANK_HEAD_BYTES) as u64);
            if let Some(bytes) = bytes.filter(|_| written.saturating_add(more) <= most_bytes) {
                put_rank(out, rank, &bytes)?;
                written += more;
            }
            rank_done();
        }
    }
    Ok(())
}
