//! Visits of regions by an index of times, which has those before each of its chunks.

use ampl_reader::selection::Selection;
use ampl_trace::structure::ThreadStructure;
use ampl_trace::time_index::{CallReader, Chunk, Ended, Regions, Visits};

use super::stored::Stored;

impl Stored<'_> {
    /// Visits of regions in the part of `selection`, each region by a thread, by index, and one of its terminals; visits
    /// that the record's end cuts off end with the last window. `None` without an index, and where calls have no times.
    pub fn visits(&self, selection: &Selection) -> Option<Vec<(usize, u32, Ended)>> {
        let index = self.index.as_ref()?;
        let last_ns = self.windows().last()?.end_ns;
        let mut reader = self.reader(index);
        let mut found = Vec::new();
        for (number, thread) in self.rank.structure.threads.iter().enumerate() {
            let regions = Regions::of(&thread.signatures);
            if regions.terminals().is_empty() {
                continue;
            }
            let own = |chunk: &&Chunk<'_>| chunk.thread == thread.thread;
            let chunks: Vec<&Chunk<'_>> = index.chunks().iter().filter(own).collect();
            if chunks.windows(2).any(|two| two[1].low_ns < two[0].high_ns) {
                return None;
            }
            let whole = before(&mut reader, &chunks, &regions, i64::MAX)?;
            if !ends_as(thread, &chunks, &regions, &whole) {
                return None;
            }
            let mut ended_by = |until_ns| {
                let mut visits = match until_ns {
                    i64::MAX => whole.clone(),
                    _ => before(&mut reader, &chunks, &regions, until_ns)?,
                };
                visits.end_all(until_ns.min(last_ns), last_ns < until_ns);
                Some(visits)
            };
            let [from_ns, until_ns] = selection.limits_ns();
            let (from, until) = (ended_by(from_ns)?, ended_by(until_ns)?);
            let sums = from.ended().iter().zip(until.ended());
            for (&terminal, (from, until)) in regions.terminals().iter().zip(sums) {
                let ended = Ended {
                    visits: until.visits.saturating_sub(from.visits),
                    inclusive_ns: until.inclusive_ns.saturating_sub(from.inclusive_ns),
                    exclusive_ns: until.exclusive_ns.saturating_sub(from.exclusive_ns),
                };
                found.push((number, terminal, ended));
            }
        }
        Some(found)
    }
}

/// True where `visits`, those up to the last of `chunks`, are those of all calls of the thread.
fn ends_as(thread: &ThreadStructure, chunks: &[&Chunk<'_>], regions: &Regions, visits: &Visits) -> bool {
    let all = thread.grammar.totals().map(|(_, count)| count).fold(0, u64::saturating_add);
    let seq = chunks.last().map_or(0, |chunk| chunk.calls.end);
    visits.may_pass(regions, &thread.grammar, seq..all)
}

/// Visits of a thread's regions before a moment, by its chunks; `None` where they cannot be read.
fn before(
    reader: &mut CallReader<'_>,
    chunks: &[&Chunk<'_>],
    regions: &Regions,
    until_ns: i64,
) -> Option<Visits> {
    let begun = chunks.partition_point(|chunk| chunk.low_ns < until_ns);
    let Some(chunk) = begun.checked_sub(1).map(|at| chunks[at]) else { return Some(Visits::none(regions)) };
    if !chunk.is_dense()? {
        return None;
    }
    let mut visits = chunk.visits().filter(|visits| visits.ended().len() == regions.terminals().len())?;
    let (mut whole, mut is_known) = (Some(()), true);
    chunk.blocks(|block, _| {
        if block.low_ns >= until_ns {
            return;
        }
        let read = reader.block(block, |call| {
            if call.start_ns < until_ns {
                let end_ns = call.start_ns.saturating_add_unsigned(call.duration_ns);
                is_known &= visits.step(regions, call.terminal, call.start_ns, end_ns, until_ns);
            }
        });
        whole = whole.and(read);
    })?;
    whole.filter(|()| is_known).map(|()| visits)
}
