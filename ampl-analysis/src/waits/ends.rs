//! Waits for the end of collectives that do not block.

use super::Kind;
use super::blame::History;
use super::kept::Observer;
use crate::matching::{Arrival, At, Instance, Needs};

impl Observer<'_> {
    /// The call `at` has ended its rank's part of a collective that does not block: it has waited for the one that began it
    /// last, of those that the rank needs.
    pub(super) fn end(&mut self, actor: u32, at: &At, instance: &Instance<History>, needs: Needs) {
        let own = at.rank;
        let others = || instance.arrivals.iter().filter(|arrival| arrival.at.rank != own);
        let start = |arrival: &&Arrival<History>| arrival.at.timed.map(|timed| timed.start_ns);
        let latest = || {
            let all =
                instance.arrivals.len() as u32 == instance.size && others().all(|one| start(&one).is_some());
            if all { others().max_by_key(start) } else { None }
        };
        let (late, kind) = match (needs, instance.root) {
            (Needs::All, _) => (latest(), Kind::LastToArrive),
            (Needs::RootNeedsAll, Some(root)) if root == own => (latest(), Kind::EarlyRoot),
            (Needs::Root, Some(root)) if root != own => {
                (others().find(|arrival| arrival.at.rank == root), Kind::LateRoot)
            }
            _ => return,
        };
        let known = late.and_then(|late| Some((late, late.at.timed?.start_ns))).zip(at.timed);
        let Some(((late, began_ns), timed)) = known else {
            self.found.unknown_ends += u64::from(instance.size > 1);
            return;
        };
        let error = self.error((actor, own), (late.actor, late.at.rank));
        let (whole, in_calls_ns) = self.state(actor).polls.and(timed);
        let signed = began_ns.saturating_sub(whole.start_ns);
        let ns = u64::try_from(signed).unwrap_or(0).min(in_calls_ns).saturating_sub(error);
        let mut cause = late.at.rank;
        if ns > 0 {
            let culprit = (cause, &late.stamp, self.since(cause, own, None));
            let charged = self.charge((actor, &At { timed: Some(whole), ..*at }), kind, ns, error, culprit);
            cause = charged.map_or(cause, |(main, _)| main);
        }
        // The first of those that wait stands for all.
        let waits = others().filter(|arrival| arrival.at.rank != late.at.rank);
        let counts =
            kind != Kind::LastToArrive || waits.map(|arrival| arrival.at.rank).all(|rank| own < rank);
        if counts && self.takes(own, &whole) {
            self.count(at, kind, cause, ns > 0, signed);
        }
    }
}
