//! Runs of the simulator, window by window.

use ampl_client::simulate::{Census, Job, Run, Score, Window};
use ampl_core::message::{Decision, MetricSummary};
use ampl_core::plan::Plan;

/// One run of `plan` in the simulator over `windows`, each by guide and rank: the scores of every group and guide, and
/// the decisions.
pub fn simulated(
    plan: &Plan,
    windows: impl IntoIterator<Item = Vec<Vec<MetricSummary>>>,
    seed: u64,
) -> (Vec<Score>, Vec<Decision>) {
    let job = Job::new(plan.clone());
    let (mut run, mut decisions) = Run::new(&job, seed);
    let mut scores = Score::of_all(&job);
    for (number, guides) in (0..).zip(windows) {
        let window = Window { number, guides };
        let census = Census::of_all(&job, &window);
        let (draws, about) = run.draw_all(&job, &window, &census);
        decisions.extend(about);
        scores.iter_mut().for_each(|score| score.window(&job, number, &census, &draws));
        decisions.extend(run.end_window(&job, &window, &census, &draws));
    }
    scores.iter_mut().for_each(|score| score.end(&job));
    (scores, decisions)
}

/// Mean size and coverage of the windows that were scored from `first` on.
pub fn from(score: &Score, first: u64) -> (f64, f64) {
    let own: Vec<_> = score.windows.iter().filter(|scored| scored.window >= first).collect();
    let covered = own.iter().filter(|scored| scored.covered == Some(true)).count() as f64;
    let size: u64 = own.iter().map(|scored| scored.size).sum();
    (size as f64 / own.len() as f64, covered / own.len() as f64)
}
