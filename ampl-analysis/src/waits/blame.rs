//! Causes of a rank's recent waits: what delays it delays those that wait for it.

use std::collections::VecDeque;
use std::rc::Rc;

/// Waits that are remembered.
const MOST: usize = 32;

/// A wait of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Past {
    cause: u32,
    ns: u64,
    /// End, nanoseconds since T0.
    end_ns: i64,
}

/// Recent waits of a rank, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History(Rc<VecDeque<Past>>);

impl History {
    /// Adds a wait for `cause` that ended at `end_ns`.
    pub fn add(&mut self, cause: u32, ns: u64, end_ns: i64) {
        let waits = Rc::make_mut(&mut self.0);
        if waits.len() == MOST {
            waits.pop_front();
        }
        waits.push_back(Past { cause, ns, end_ns });
    }

    /// The causes of a delay of `ns`: those of the waits that ended behind `since_ns`, and for the rest `own`, the rank
    /// whose waits these are.
    pub fn causes(&self, ns: u64, own: u32, since_ns: i64) -> Vec<(u32, u64)> {
        let recent = || self.0.iter().filter(|past| past.end_ns > since_ns);
        let waited: u64 = recent().map(|past| past.ns).sum();
        if waited == 0 || ns == 0 {
            return vec![(own, ns)];
        }
        let part = ns.min(waited);
        let mut causes: Vec<(u32, u64)> = Vec::new();
        let mut put = |cause: u32, ns: u64| match causes.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, sum)) => *sum += ns,
            None => causes.push((cause, ns)),
        };
        let mut left = part;
        for past in recent() {
            let share = ((u128::from(part) * u128::from(past.ns)) / u128::from(waited)) as u64;
            put(past.cause, share.min(left));
            left -= share.min(left);
        }
        // What rounding leaves, and the rank's own delay.
        put(own, ns - part + left);
        causes.retain(|&(_, ns)| ns > 0);
        causes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_charged_to_what_delayed_the_rank() {
        let mut history = History::default();
        assert_eq!(history.causes(50, 3, 0), [(3, 50)]);
        history.add(7, 30, 100);
        history.add(8, 10, 200);
        assert_eq!(history.causes(60, 3, 0), [(7, 30), (8, 10), (3, 20)]);
        assert_eq!(history.causes(20, 3, 0), [(7, 15), (8, 5)]);
        assert_eq!(history.causes(60, 3, 100), [(8, 10), (3, 50)], "older waits are made up for");
        let sum: u64 = history.causes(41, 3, 0).iter().map(|(_, ns)| ns).sum();
        assert_eq!(sum, 41);
        (0..100).for_each(|at| history.add(1, 1, 300 + at));
        assert_eq!(history.causes(100, 3, 0), [(1, 32), (3, 68)]);
    }
}
