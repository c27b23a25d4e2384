//! A check for better strata, window by window.

use std::collections::VecDeque;
use std::task::Poll;

use ampl_core::cluster::{Aim, Effort, Metric, Proposal, Proposing, Rule, Strata, Vectors, Work};
use ampl_core::message::Sampled;

/// Work that is done at once, in one window, units of [`Work`]: 60 to 140 µs of the application's time, depending on
/// the processor. Less would put strata off for longer.
pub const AT_ONCE: u64 = 60_000;

/// Observations of the sampled ranks in some windows, and the progress of the search for strata in them.
#[derive(Clone, Debug)]
pub struct Look {
    /// The ranks, by their places in the seeded order.
    pub ranks: Vec<u32>,
    /// The windows that strata are found on, ascending.
    pub found_on: Vec<u64>,
    search: Search,
}

#[derive(Clone, Debug)]
enum Search {
    GoesOn(Box<Proposing>),
    /// Better strata were found.
    Found(Box<Proposal>),
    InVain,
}

/// Windows seen of the sampled ranks: number, by which division they were summed, ranks.
pub type Seen = VecDeque<(u64, u32, Vec<Sampled>)>;

/// Strata to search for.
#[derive(Clone, Debug)]
pub struct Wish {
    pub aims: Vec<Aim>,
    pub rule: Rule,
    pub seed: u64,
    /// Numbers of a medoid per guide, at most.
    pub columns: usize,
    /// Ranks that those seen stand for.
    pub population: u64,
}

impl Look {
    /// Begins a check in what was `seen` of `ranks`, which are in every window and in `current` strata.
    pub fn begin(wish: &Wish, seen: &Seen, ranks: Vec<u32>, current: Strata) -> Self {
        let guides = wish.aims.len();
        let mut vectors = Vectors::new(ranks.len(), guides).sampled(wish.population, wish.columns);
        let mut windows = Vec::with_capacity(seen.len());
        for (number, _, sample) in seen {
            let own: Vec<&Sampled> = of_ranks(sample, &ranks).collect();
            let before = vectors.windows();
            vectors.push((0..guides).flat_map(|guide| {
                own.iter().map(move |sampled| {
                    sampled.seen.get(guide).map_or((0.0, 0.0), |&[n, y]| (f64::from(n), f64::from(y)))
                })
            }));
            if vectors.windows() > before {
                windows.push(*number);
            }
        }
        let (found_on, _) = vectors.halves();
        let found_on = found_on.into_iter().map(|window| windows[window]).collect();
        let effort = Effort { seed: wish.seed, ..Effort::default() };
        let aims = wish.aims.clone();
        let search = match Proposing::new(vectors, current, aims, wish.rule, Metric::Euclidean, effort) {
            Some(proposing) => Search::GoesOn(Box::new(proposing)),
            None => Search::InVain,
        };
        Self { ranks, found_on, search }
    }

    /// Goes on, as far as `work` goes.
    pub fn go_on(&mut self, work: &mut Work) {
        let Search::GoesOn(proposing) = &mut self.search else { return };
        match proposing.step(work) {
            Poll::Pending => {}
            Poll::Ready(None) => self.search = Search::InVain,
            Poll::Ready(Some(proposal)) => self.search = Search::Found(Box::new(proposal)),
        }
    }

    /// `true` if it has come to an end.
    pub fn is_over(&self) -> bool {
        !matches!(self.search, Search::GoesOn(_))
    }

    /// The better strata that it has found.
    pub fn found(&self) -> Option<&Proposal> {
        match &self.search {
            Search::Found(proposal) => Some(proposal),
            Search::GoesOn(_) | Search::InVain => None,
        }
    }
}

/// Members of `sample` that are in `ranks`, both ascending by place.
pub fn of_ranks<'s>(sample: &'s [Sampled], ranks: &'s [u32]) -> impl Iterator<Item = &'s Sampled> {
    let mut ranks = ranks.iter().peekable();
    sample.iter().filter(move |sampled| {
        while ranks.next_if(|&&rank| rank < sampled.place).is_some() {}
        ranks.next_if(|&&rank| rank == sampled.place).is_some()
    })
}

#[cfg(test)]
mod tests {
    use ampl_core::cluster::propose;
    use ampl_core::config::ErrorBound;
    use ampl_testkit::population::Total;
    use ampl_testkit::{Classes, Kind, Population};

    use super::*;

    /// Windows with as many ranks as ever go up, of a group of `ranks` with that many guides.
    fn seen(ranks: u32, guides: usize, mut next: impl FnMut() -> Vec<Total>) -> Seen {
        let window = |number| {
            let totals: Vec<Vec<Total>> = (0..guides).map(|_| next()).collect();
            let of = |rank: u32| Sampled {
                place: 7 * rank + 3,
                stratum: None,
                seen: totals.iter().map(|totals| totals[rank as usize]).map(pair).collect(),
            };
            (number, 0, (0..ranks).map(of).collect())
        };
        (0..16).map(window).collect()
    }

    fn pair(total: Total) -> [f32; 2] {
        [total.n as f32, total.y as f32]
    }

    fn wish(guides: usize, population: u64, rule: Rule) -> Wish {
        let aim = |guide| Aim { guide, confidence: 0.90, error: ErrorBound::Relative(0.08) };
        Wish { aims: (0..guides).map(aim).collect(), rule, seed: 42, columns: 8, population }
    }

    fn begin(wish: &Wish, seen: &Seen) -> Look {
        let ranks: Vec<u32> = seen[0].2.iter().map(|sampled| sampled.place).collect();
        let current = Strata::single(ranks.len());
        Look::begin(wish, seen, ranks, current)
    }

    /// Result of a check in steps, the most work of a step, and the number of steps.
    fn bit_by_bit(wish: &Wish, seen: &Seen, at_once: u64) -> (Look, u64, usize) {
        let (mut look, mut most, mut times) = (begin(wish, seen), 0, 0);
        while !look.is_over() {
            let mut work = Work::new(at_once);
            look.go_on(&mut work);
            (most, times) = (most.max(work.done()), times + 1);
        }
        (look, most, times)
    }

    fn jobs(ranks: usize, guides: usize) -> Vec<Seen> {
        let mut classes = Classes::wait_times().job(ranks, 1);
        let mut jobs = vec![seen(ranks as u32, guides, || classes.next_window())];
        for kind in Kind::ALL {
            let mut population = Population::new(kind, ranks, 1);
            jobs.push(seen(ranks as u32, guides, || population.next_window()));
        }
        jobs
    }

    #[test]
    fn bits_of_any_size_find_what_is_found_at_once() {
        let mut found = 0;
        for (ranks, guides) in [(96, 1), (48, 3)] {
            for seen in jobs(ranks, guides) {
                for rule in [Rule::Pays(8), Rule::Exactly(3)] {
                    let wish = wish(guides, 1000, rule);
                    let mut vectors = Vectors::new(ranks, guides).sampled(1000, 8);
                    for (_, _, sample) in &seen {
                        let of = |guide: usize| {
                            let pair = move |sampled: &Sampled| sampled.seen[guide].map(f64::from).into();
                            sample.iter().map(pair)
                        };
                        vectors.push((0..guides).flat_map(of));
                    }
                    let effort = Effort { seed: 42, ..Effort::default() };
                    let current = Strata::single(ranks);
                    let at_once = propose(&vectors, &current, &wish.aims, rule, Metric::Euclidean, effort);
                    found += usize::from(at_once.is_some());
                    for units in [1, 5_000, AT_ONCE] {
                        let (look, ..) = bit_by_bit(&wish, &seen, units);
                        assert_eq!(look.found(), at_once.as_ref());
                        assert_eq!(look.found_on, [1, 3, 5, 7, 9, 11, 13, 15]);
                    }
                }
            }
        }
        assert!(found > 24, "all that are asked for, and some that pay: {found}");
    }

    #[test]
    fn no_bit_is_larger_than_what_is_done_at_once() {
        // At least as many ranks as there is room for with so many guides.
        for (ranks, guides) in [(96, 1), (96, 2), (60, 4)] {
            let mut longest = 0;
            for population in [1_000, 1_000_000] {
                for seen in jobs(ranks, guides) {
                    let (_, most, times) =
                        bit_by_bit(&wish(guides, population, Rule::Pays(8)), &seen, AT_ONCE);
                    assert!(most <= AT_ONCE, "{ranks} ranks, {guides} guides: {most}");
                    longest = longest.max(times);
                }
            }
            println!("{ranks} ranks, {guides} guides: {longest} windows");
            assert!(longest <= 40, "{ranks} ranks, {guides} guides: {longest} windows");
        }
    }
}
