//! The simulation over several seeds, on all processors.

use std::sync::mpsc::sync_channel;
use std::thread;

use ampl_client::simulate::{Census, Draws, Job, Run, Score, Window};
use rayon::prelude::*;

/// Windows read ahead of those that are simulated.
const AHEAD: usize = 1;

/// One seed's scores, of every group and guide.
pub struct Seeded {
    /// The seed of the draws.
    pub seed: u64,
    /// Scores of every group and guide, groups outermost.
    pub scores: Vec<Score>,
    /// Rank-windows kept of every group, scored or not.
    pub kept: Vec<u64>,
}

/// Scores every seed over the windows from `extent.0` to `extent.1`. `fill` puts one after the other into a
/// [`Window`], ahead of the scoring. `window_done` is called behind each.
///
/// # Errors
/// The first one of `fill`.
pub fn drive<E: Send>(
    job: &Job,
    mut fill: impl FnMut(u64, &mut Window) -> Result<(), E> + Send,
    extent: (u64, u64),
    seeds: &[u64],
    mut window_done: impl FnMut(),
) -> Result<Vec<Seeded>, E> {
    let groups = job.plan.groups.len();
    let begin = |&seed: &u64| {
        let empty = Seeded { seed, scores: Score::of_all(job), kept: vec![0; groups] };
        (Run::new(job, seed).0, empty)
    };
    let mut runs: Vec<(Run, Seeded)> = seeds.iter().map(begin).collect();
    thread::scope(|scope| {
        // Buffers are reused after their window was simulated.
        let (emptied, to_fill) = sync_channel::<Window>(AHEAD + 1);
        let (filled, read) = sync_channel::<Result<Window, E>>(AHEAD);
        (0..=AHEAD).for_each(|_| drop(emptied.send(Window::default())));
        scope.spawn(move || {
            for (number, mut window) in (extent.0..=extent.1).zip(to_fill) {
                let outcome = fill(number, &mut window).map(|()| window);
                let over = outcome.is_err();
                // The other side ends once it has seen an error.
                if filled.send(outcome).is_err() || over {
                    return;
                }
            }
        });
        for window in read {
            let window = window?;
            simulate(job, &window, &mut runs);
            window_done();
            let _ = emptied.send(window);
        }
        Ok(())
    })?;
    let ended = runs.into_iter().map(|(_, mut seeded)| {
        seeded.scores.iter_mut().for_each(|score| score.end(job));
        seeded
    });
    Ok(ended.collect())
}

fn simulate(job: &Job, window: &Window, runs: &mut [(Run, Seeded)]) {
    let chunks: Vec<_> = job.chunks().collect();
    let parts: Vec<Census> = chunks.par_iter().map(|ranks| Census::of(job, window, ranks.clone())).collect();
    // Merged in the order of ranks, not of completion.
    let mut census = Census::empty(job);
    parts.iter().for_each(|part| census.merge(part));
    runs.par_iter_mut().for_each(|(run, seeded)| {
        run.begin_window(job, window, &census);
        let bin = |ranks: &std::ops::Range<u32>| run.bin(job, window, ranks.clone());
        let binned: Option<Vec<_>> = chunks.par_iter().map(bin).collect();
        if let Some(binned) = binned {
            run.judge(job, window, binned);
        }
        let draw = |ranks: &std::ops::Range<u32>| run.draw(job, window, ranks.clone());
        let parts: Vec<Draws> = match &chunks[..] {
            [ranks] => vec![draw(ranks)],
            _ => chunks.par_iter().map(draw).collect(),
        };
        let mut draws = Draws::none(job);
        parts.into_iter().for_each(|part| draws.merge(part));
        seeded.scores.iter_mut().for_each(|score| score.window(job, window.number, &census, &draws));
        seeded.kept.iter_mut().enumerate().for_each(|(group, kept)| *kept += draws.size(group));
        run.end_window(job, window, &census, &draws);
    });
}
