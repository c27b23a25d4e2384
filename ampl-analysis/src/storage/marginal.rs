//! Bytes that the times of more calls would take.
//!
//! Models of a rank's times adapt: the first calls take more bytes than later ones. The first half of a rank's stored
//! windows is coded again; the difference to all of them is the cost of more windows of the same kind.

use ampl_trace::timing::{Decoder, Encoder, Window};
use ampl_trace::{RankTrace, Trace, timed};

/// Ranks whose times are coded again.
const RANKS: usize = 4;
/// Most bytes of times that are coded again: the summary must take almost no time.
const BYTES: usize = 1 << 16;
/// Fewest windows of a rank that give an estimate.
const WINDOWS: u64 = 4;

/// Bytes per call of more windows over bytes per call of the stored ones, in (0, 1]; 1 where it is not known.
pub fn ratio(trace: &Trace) -> f64 {
    let stored: Vec<&RankTrace> = trace.ranks.iter().filter(|rank| !rank.times.is_empty()).collect();
    let step = stored.len().div_ceil(RANKS).max(1);
    let (mut all, mut half, mut bytes) = ((0u64, 0), (0u64, 0), 0);
    for rank in stored.into_iter().step_by(step) {
        bytes += rank.times.len();
        if bytes > BYTES {
            break;
        }
        if let Some([own, of_half]) = coded_again(trace, rank) {
            all = (all.0 + own.0, all.1 + own.1);
            half = (half.0 + of_half.0, half.1 + of_half.1);
        }
    }
    let (calls, bytes) = (all.0 as f64 - half.0 as f64, all.1 as f64 - half.1 as f64);
    let found = bytes / calls / (all.1 as f64 / all.0 as f64);
    if found.is_finite() && found > 0.0 { found.min(1.0) } else { 1.0 }
}

/// Calls and bytes of the stored windows of `rank`, and of the first half of them, coded again.
fn coded_again(trace: &Trace, rank: &RankTrace) -> Option<[(u64, usize); 2]> {
    let structure = trace.structure.rank(rank.process.rank)?;
    let mut decoder = Decoder::new(&rank.times).ok()?;
    let settings = decoder.settings();
    let (mut all, mut half) = (Encoder::new(settings), Encoder::new(settings));
    let (mut calls, mut of_half) = (0u64, 0u64);
    let kept: Vec<u64> =
        rank.windows.iter_known().filter(|window| window.kept).map(|window| window.window).collect();
    let middle = *kept.get(kept.len() / 2)?;
    let mut last: Option<Window> = None;
    let mut windows = 0u64;
    timed::for_each(&structure, &mut decoder, |window, terminal, time| {
        if last != Some(window) {
            last = Some(window);
            windows += 1;
            all.window(window);
            if window.window < middle {
                half.window(window);
            }
        }
        all.call(terminal, time);
        calls += time.count.max(1);
        if window.window < middle {
            half.call(terminal, time);
            of_half += time.count.max(1);
        }
    })
    .ok()?;
    (windows >= WINDOWS).then(|| [(calls, all.finish().len()), (of_half, half.finish().len())])
}
