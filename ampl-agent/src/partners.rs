//! Message partners of this rank, for whose sake it keeps windows ([`ampl_core::draw::partners`]).

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use ampl_core::config::Mechanism;
use ampl_core::draw::Keep;
use ampl_core::draw::partners::{self, MOST};
use ampl_core::message::Directive;
use ampl_core::plan::Plan;
use ampl_core::units::{Rank, WindowId};

/// The most recent partners of a process, at most [`MOST`], for all its threads and without a lock.
///
/// Threads that note at once may lose a note or leave one twice; the next note mends it. Draws follow from the list as
/// it is read.
#[derive(Debug)]
pub struct Partners {
    /// Rank + 1 in the upper half, when it was noted last in the lower; 0 while free.
    places: [AtomicU64; MOST],
    notes: AtomicU32,
    /// Changes whenever another rank gets a place.
    version: AtomicU64,
}

impl Default for Partners {
    fn default() -> Self {
        Self {
            places: [const { AtomicU64::new(0) }; MOST],
            notes: AtomicU32::new(0),
            version: AtomicU64::new(0),
        }
    }
}

/// Draw for a rank and its partners: valid for other windows of the interval, as long as nothing has changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawn {
    version: u64,
    update: u64,
    union: Keep,
}

impl Partners {
    /// Notes a message to or from `rank` of the world. The partner that was not noted for longest makes room.
    ///
    /// To be called once per window and partner, or a little more often; it reads all places.
    pub fn note(&self, rank: u32) {
        let now = self.notes.fetch_add(1, Ordering::Relaxed);
        let (mut oldest, mut age) = (0, 0);
        for (index, place) in self.places.iter().enumerate() {
            let have = place.load(Ordering::Relaxed);
            if have >> 32 == u64::from(rank) + 1 {
                place.store(have & !u64::from(u32::MAX) | u64::from(now), Ordering::Relaxed);
                return;
            }
            let since = if have == 0 { u64::MAX } else { u64::from(now.wrapping_sub(have as u32)) + 1 };
            if since > age {
                (oldest, age) = (index, since);
            }
        }
        let new = (u64::from(rank) + 1) << 32 | u64::from(now);
        self.places[oldest].store(new, Ordering::Relaxed);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// The partners, ascending, each once; `into` has room for all of them.
    fn list<'a>(&self, into: &'a mut [Rank; MOST]) -> &'a [Rank] {
        let mut count = 0;
        for place in &self.places {
            if let Some(rank) = (place.load(Ordering::Relaxed) >> 32).checked_sub(1) {
                into[count] = Rank(rank as u32);
                count += 1;
            }
        }
        into[..count].sort_unstable();
        let mut distinct = 0;
        for index in 0..count {
            if index == 0 || into[index] != into[distinct - 1] {
                into[distinct] = into[index];
                distinct += 1;
            }
        }
        &into[..distinct]
    }

    /// Draw of `window` under `directive`, kept if `rank` or any current partner is drawn, with its probability.
    ///
    /// `held` is the draw under the same directive before: `subset` draws anew only in a new interval or where partners
    /// have changed.
    pub(crate) fn draw(
        &self,
        plan: &Plan,
        rank: Rank,
        window: WindowId,
        directive: &Directive,
        held: &mut Option<Drawn>,
    ) -> Keep {
        let version = self.version.load(Ordering::Acquire);
        let update = plan.update_of(window);
        let same = |held: &&Drawn| {
            directive.mechanism == Mechanism::Subset && (held.version, held.update) == (version, update)
        };
        if let Some(held) = held.as_ref().filter(same) {
            return held.union;
        }
        let mut ranks = [Rank(0); MOST];
        let union = partners::kept(plan, rank, self.list(&mut ranks), window, directive);
        *held = Some(Drawn { version, update, union });
        union
    }
}

/// Ranks that a thread has met in communicators, directly mapped: most calls meet one that was met in the same window,
/// and have no more to do.
#[derive(Debug)]
pub struct Recent {
    met: Box<[Met; WAYS]>,
}

/// A rank of a communicator.
#[derive(Clone, Copy, Debug)]
struct Met {
    comm: u64,
    rank: u32,
    /// Its rank in the world; `None` in another world.
    world: Option<u32>,
    /// When it was noted last.
    window: WindowId,
}

const WAYS: usize = 128;

/// Not a word that stands for any communicator.
const NO_COMM: u64 = u64::MAX;

impl Default for Recent {
    fn default() -> Self {
        let free = Met { comm: NO_COMM, rank: 0, world: None, window: WindowId(0) };
        Self { met: Box::new([free; WAYS]) }
    }
}

impl Recent {
    #[inline]
    fn slot(comm: u64, rank: u32) -> usize {
        // Neighbours differ by little, or by powers of two.
        let mixed = (u64::from(rank) ^ comm << 7).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 57) as usize % WAYS
    }

    /// Notes a message in `window` with `rank` of the communicator of the word `comm`; `translate` returns its rank in
    /// the world. Returns that rank where it is to be noted.
    #[inline]
    pub fn meet(
        &mut self,
        comm: u64,
        rank: u32,
        window: WindowId,
        translate: impl FnOnce() -> Option<u32>,
    ) -> Option<u32> {
        let met = &mut self.met[Self::slot(comm, rank)];
        if (met.comm, met.rank) != (comm, rank) {
            *met = Met { comm, rank, world: translate(), window };
        } else if met.window == window {
            return None;
        }
        met.window = window;
        met.world
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ampl_core::config::Config;
    use ampl_core::draw::kept;
    use ampl_core::message::StratumDirective;

    fn list(partners: &Partners) -> Vec<u32> {
        partners.list(&mut [Rank(0); MOST]).iter().map(|rank| rank.0).collect()
    }

    #[test]
    fn the_most_recent_have_a_place() {
        let partners = Partners::default();
        for rank in [9, 4, 9, 0, u32::MAX - 1] {
            partners.note(rank);
        }
        assert_eq!(list(&partners), [0, 4, 9, u32::MAX - 1]);
        (100..160).for_each(|rank| partners.note(rank));
        assert_eq!(list(&partners).len(), MOST);
        // 9 was noted again after 4, and makes room after it.
        partners.note(200);
        assert!(!list(&partners).contains(&4) && list(&partners).contains(&9));
        partners.note(9);
        partners.note(201);
        assert!(!list(&partners).contains(&0) && list(&partners).contains(&9));
    }

    #[test]
    fn ages_survive_the_counter_s_turn() {
        let partners = Partners::default();
        partners.notes.store(u32::MAX - 30, Ordering::Relaxed);
        (0..64).for_each(|rank| partners.note(rank));
        partners.note(64);
        assert_eq!(list(&partners), (1..65).collect::<Vec<_>>());
    }

    #[test]
    fn one_rank_is_there_once_whatever_threads_left() {
        let partners = Partners::default();
        partners.places[3].store(8 << 32, Ordering::Relaxed);
        partners.places[5].store(8 << 32 | 1, Ordering::Relaxed);
        partners.note(2);
        assert_eq!(list(&partners), [2, 7]);
    }

    #[test]
    fn a_draw_is_held_until_a_partner_comes() {
        let plan = Plan::new(Config::default(), 40).unwrap();
        let directive = |mechanism| Directive {
            update: 1,
            first_window: WindowId(4),
            seed: 1,
            mechanism,
            strata: vec![StratumDirective { group: 0, stratum: 0, size: 8, probability: 0.2, policy: 1 }],
            divided: Vec::new(),
        };
        let subset = directive(Mechanism::Subset);
        let own = |rank| kept(&plan, Rank(rank), WindowId(5), &subset).kept;
        let drawn = (1..40).find(|&rank| own(rank)).unwrap();
        let me = (1..40).find(|&rank| !own(rank)).unwrap();
        let other = (me + 1..40).find(|&rank| !own(rank)).unwrap();
        let partners = Partners::default();
        let mut held = None;
        let mut draw = |directive: &Directive, window| {
            partners.draw(&plan, Rank(me), WindowId(window), directive, &mut held)
        };
        assert_eq!(draw(&subset, 5), Keep { kept: false, probability: 0.2 });
        partners.note(other);
        let two = draw(&subset, 6);
        assert!(
            !two.kept && (two.probability - (1.0 - 32.0 / 40.0 * (31.0 / 39.0))).abs() < 1e-12,
            "{two:?}"
        );
        partners.note(drawn);
        assert!(draw(&subset, 7).kept);
        // Coins fall anew in every window.
        let global = directive(Mechanism::Global);
        let kept = (0..4000).filter(|&window| draw(&global, window).kept).count() as f64;
        let p = 1.0 - 0.8f64.powi(3);
        assert!((kept - 4000.0 * p).abs() < 5.0 * (4000.0 * p * (1.0 - p)).sqrt(), "{kept}");
    }

    #[test]
    fn a_rank_is_translated_once_and_noted_once_a_window() {
        let mut recent = Recent::default();
        let mut asked = 0;
        let mut meet = |comm, rank, window| {
            recent.meet(comm, rank, WindowId(window), || {
                asked += 1;
                (rank != 3).then_some(rank + 100)
            })
        };
        assert_eq!(meet(1, 2, 0), Some(102));
        assert_eq!(meet(1, 2, 0), None);
        assert_eq!(meet(1, 2, 1), Some(102));
        assert_eq!((meet(1, 3, 1), meet(1, 3, 2)), (None, None), "of another world");
        assert_eq!(meet(2, 2, 2), Some(102), "another communicator");
        assert_eq!(asked, 3);
        let slots: std::collections::BTreeSet<usize> = (0..64).map(|rank| Recent::slot(5, rank)).collect();
        assert!(slots.len() > 40, "{}", slots.len());
    }
}
