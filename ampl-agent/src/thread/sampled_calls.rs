//! Sampled calls of a site: the functions that they have in common on their way, and how the first of them came.

use ampl_trace::loops::fold;
use ampl_trace::record::{WAY_LEAST, WAY_MOST, WAY_NUMBER};
use ampl_trace::totals::{FirstCalls, Turns};

use crate::shared::SampledCall;

/// Frames that recursion may add to twice the others of a way.
const DEEP: usize = 8;

/// The sampled calls of one site.
#[derive(Clone, Debug)]
pub(super) struct SampledCalls {
    /// Functions that they have in common, from the caller of the site's own outwards.
    pub functions: Box<[u64]>,
    /// True where they differ beyond.
    pub differ: bool,
    origins: Origins,
    /// Different ways that calls came by, without the repetitions of recursion, in the order in which they came.
    paths: Vec<Box<[u64]>>,
    /// The way of each call.
    pub turns: Turns,
    /// The way of the last one.
    last: Option<usize>,
}

/// Return addresses that sampled calls came by.
#[derive(Clone, Debug)]
enum Origins {
    /// The same for all; and the number of the last.
    One(Box<[u64]>, u64),
    /// Addresses of the first calls, and others that are the same for all behind them.
    Two([Box<[u64]>; 2], FirstCalls),
    /// Any.
    Several,
}

impl SampledCalls {
    /// The first sampled call of a site, which is its call of that number.
    pub(super) fn new(call: SampledCall, number: u64) -> Self {
        let mut paths = Vec::new();
        let last = label(&mut paths, &call);
        let origins = match call.is_whole {
            true => Origins::One(call.addresses.into(), number),
            false => Origins::Several,
        };
        let turns = Turns::default().with(number, last);
        Self { functions: call.functions.into(), differ: false, origins, paths, turns, last }
    }

    /// Adds a call; returns whether anything is known otherwise now.
    pub(super) fn add(&mut self, call: &SampledCall, number: u64) -> bool {
        let before = self.first();
        self.origins.add(call, number);
        let label = label(&mut self.paths, call);
        let in_turn = self.note(number, label);
        let (known, own) = (&self.functions, &call.functions);
        let same = known.iter().zip(own).take_while(|(known, own)| known == own).count();
        let differs = same < known.len().max(own.len());
        let is_news = differs && !(self.differ && same == known.len());
        if is_news {
            (self.functions, self.differ) = (known[..same].into(), true);
        }
        is_news || in_turn || before != self.first()
    }

    /// Adds a call whose way is not known; returns whether that is news.
    pub(super) fn miss(&mut self, number: u64) -> bool {
        self.note(number, None)
    }

    /// Notes the way of a call; returns whether it is another one than that of the call before.
    fn note(&mut self, number: u64, label: Option<usize>) -> bool {
        self.turns = self.turns.with(number, label);
        std::mem::replace(&mut self.last, label) != label
    }

    /// Its first calls, where they came from elsewhere than the others.
    pub(super) fn first(&self) -> Option<FirstCalls> {
        match self.origins {
            Origins::Two(_, first) => Some(first),
            _ => None,
        }
    }

    /// Second word of the record.
    pub(super) fn head(&self) -> u64 {
        let first = self.first().map_or(0, |FirstCalls { least, most }| {
            least.min(WAY_NUMBER) << WAY_LEAST | most.min(WAY_NUMBER) << WAY_MOST
        });
        u64::from(self.differ) | first
    }
}

/// Number of the way of `call` among `paths`, where it is added if it is new; `None` where it is not known, or grows with
/// each call because recursion goes through steps.
fn label(paths: &mut Vec<Box<[u64]>>, call: &SampledCall) -> Option<usize> {
    let mut own = call.addresses.clone();
    fold(&mut own);
    if !call.is_whole || call.addresses.len() > DEEP + 2 * own.len() {
        return None;
    }
    Some(paths.iter().position(|path| **path == *own).unwrap_or_else(|| {
        paths.push(own.into());
        paths.len() - 1
    }))
}

impl Origins {
    fn add(&mut self, call: &SampledCall, number: u64) {
        let own = &call.addresses[..];
        *self = match std::mem::replace(self, Self::Several) {
            Self::One(one, _) if call.is_whole && *one == *own => Self::One(one, number),
            Self::One(one, last) if call.is_whole && are_apart(&one, own) => {
                Self::Two([one, own.into()], FirstCalls { least: last, most: number - 1 })
            }
            Self::Two(two, first) if call.is_whole && *two[1] == *own => Self::Two(two, first),
            _ => Self::Several,
        };
    }
}

/// True where each of two paths has a frame that the other has not. Recursion only adds frames.
fn are_apart(one: &[u64], other: &[u64]) -> bool {
    let has_more = |one: &[u64], other: &[u64]| one.iter().any(|frame| !other.contains(frame));
    has_more(one, other) && has_more(other, one)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SITE: u64 = 100;
    const STEP: u64 = 50;

    fn call(addresses: &[u64]) -> SampledCall {
        SampledCall { functions: vec![7], addresses: addresses.to_vec(), is_whole: true }
    }

    fn first(calls: &[(u64, &[u64])]) -> Option<(u64, u64)> {
        let (&(number, addresses), rest) = calls.split_first().unwrap();
        let mut all = SampledCalls::new(call(addresses), number);
        for &(number, addresses) in rest {
            all.add(&call(addresses), number);
        }
        all.first().map(|first| (first.least, first.most))
    }

    #[test]
    fn first_calls_come_from_elsewhere() {
        let (warm_up, own): (&[u64], &[u64]) = (&[SITE, 10], &[SITE, 20]);
        assert_eq!(first(&[(1, warm_up), (2, own), (3, own), (4, own), (8, own)]), Some((1, 1)));
        assert_eq!(first(&[(1, warm_up), (2, warm_up), (3, own)]), Some((2, 2)));
        assert_eq!(first(&[(3, warm_up), (4, warm_up), (8, own), (16, own)]), Some((4, 7)));
        assert_eq!(first(&[(1, own), (2, own)]), None);
        assert_eq!(first(&[(1, warm_up), (2, own), (3, warm_up)]), None, "in turns");
        assert_eq!(first(&[(1, warm_up), (2, own), (3, &[SITE, 30])]), None, "by a third way");
    }

    #[test]
    fn recursion_comes_from_where_it_began() {
        // Of two functions that call each other the second is on the way from the second call on.
        assert_eq!(first(&[(1, &[SITE, 10]), (2, &[SITE, STEP, 10]), (3, &[SITE, STEP, 10])]), None);
    }

    #[test]
    fn a_path_that_is_cut_shows_nothing() {
        let cut = |addresses: &[u64]| SampledCall { is_whole: false, ..call(addresses) };
        let mut all = SampledCalls::new(cut(&[SITE, 10]), 1);
        all.add(&call(&[SITE, 20]), 2);
        assert_eq!(all.first(), None);
    }

    #[test]
    fn functions_are_those_in_common() {
        let by = |functions: &[u64]| SampledCall { functions: functions.to_vec(), ..call(&[SITE, 10]) };
        let mut all = SampledCalls::new(by(&[1, 2, 3]), 1);
        assert!(!all.add(&by(&[1, 2, 3]), 2) && all.head() == 0);
        assert!(all.add(&by(&[1, 4, 3]), 3) && all.head() == 1);
        assert!(!all.add(&by(&[1, 2, 3]), 4) && *all.functions == [1]);
        assert!(all.add(&by(&[5]), 8) && all.functions.is_empty());
    }

    #[test]
    fn ways_that_come_in_turns_have_labels() {
        let labels = |calls: &[&[u64]]| {
            let mut all = SampledCalls::new(call(calls[0]), 1);
            (2..).zip(&calls[1..]).for_each(|(number, addresses)| _ = all.add(&call(addresses), number));
            let labels = all.turns.labels(calls.len() as u64);
            labels.map(|labels| labels.iter().map(|of| of.1).collect::<Vec<_>>())
        };
        let (one, other): (&[u64], &[u64]) = (&[SITE, 10], &[SITE, 20]);
        assert_eq!(labels(&[one, other, one, other]), Some(vec![1, 2, 1, 2]));
        assert_eq!(labels(&[one, &[SITE, STEP, 10], &[SITE, STEP, STEP, 10], one]), Some(vec![1, 2, 2, 1]));
        let deep = [&[SITE][..], &[STEP; 20], &[10]].concat();
        assert_eq!(labels(&[one, &deep, one]), None, "recursion goes through steps");
        let mut all = SampledCalls::new(call(one), 1);
        assert!(!all.add(&call(one), 2) && all.add(&call(other), 3) && all.miss(4) && !all.miss(5));
        assert_eq!((all.turns.labels(5), all.turns.labels(3).map(|all| all.len())), (None, Some(3)));
    }

    #[test]
    fn the_record_has_both_numbers() {
        let mut all = SampledCalls::new(call(&[SITE, 10]), 4);
        assert!(all.add(&call(&[SITE, 20]), 8));
        let head = all.head();
        assert_eq!((head & 1, head >> WAY_LEAST & WAY_NUMBER, head >> WAY_MOST & WAY_NUMBER), (0, 4, 7));
    }
}
