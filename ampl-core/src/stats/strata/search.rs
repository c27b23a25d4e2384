//! The search for the cheapest way to keep a window.

use super::outline::Outline;
use super::{COUNTS, Candidate, FEWEST_PLACES, KnownLimits, MOST_FAILURES, MOVES, PLACES, Pricing};

impl Pricing<'_> {
    /// The cheapest of the ways along `outline` that are tried, with strata in the run `within`.
    pub(super) fn cheapest(&self, outline: &Outline, within: (usize, usize)) -> Candidate {
        let Self { before, terms, .. } = *self;
        let all = before[before.len() - 1];
        let full_of = |(low, high): (usize, usize)| all - (before[high] - before[low]);
        // What is known of the strata that are looked at, and of those that they come from.
        let (mut looked, mut known) = (KnownLimits::default(), KnownLimits::default());
        let mut best = Candidate { total: f64::INFINITY, ..Candidate::default() };
        // A client that decides several groups shall not be busy for much longer than with one. The best ways are
        // tried first: what is left out costs a few ranks in a hundred.
        let share = terms.groups.clamp(1, MOVES).pow(2);
        let most_failures = (MOST_FAILURES / share).max(1);
        for both in [true, false] {
            let mut since = 0;
            for (low, high) in outline.nested(within, both) {
                let full = full_of((low, high));
                if full >= best.total || since > most_failures {
                    break;
                }
                since += 1;
                let mut tried = 0;
                for count in COUNTS.into_iter().take_while(|&count| count <= terms.strata.max(1)) {
                    let Some(cuts) = outline.cuts(low, high, count) else { break };
                    // Bins that hold many ranks make strata coincide.
                    if cuts.count == tried && count > 1 {
                        continue;
                    }
                    tried = cuts.count;
                    let candidate = self.price(Candidate::new(cuts, full), best.total, &known, &mut looked);
                    if candidate.total < best.total {
                        best = candidate;
                        since = 0;
                    }
                }
            }
        }
        let most = PLACES / terms.groups.max(1);
        if most >= FEWEST_PLACES {
            best = self.programmed(best, outline, within, most);
        }
        let mut tries = MOVES / share;
        while best.cuts.count > 0 && tries > 0 && !self.at_floor(&best) {
            let mut cheaper = best;
            self.price(
                Candidate::new(best.cuts, best.full),
                f64::INFINITY,
                &KnownLimits::default(),
                &mut known,
            );
            for cuts in best.cuts.moved(within).take(tries) {
                tries -= 1;
                let full = full_of((cuts.at[0], cuts.at[cuts.count]));
                let candidate = self.price(Candidate::new(cuts, full), cheaper.total, &known, &mut looked);
                if candidate.total < cheaper.total {
                    cheaper = candidate;
                }
            }
            if cheaper.total >= best.total {
                break;
            }
            best = cheaper;
        }
        best
    }
}
