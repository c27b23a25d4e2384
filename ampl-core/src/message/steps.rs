//! Time steps that windows may follow: ranks name the calls of each of their steps, and the client announces one that
//! all ranks name, or several that shared calls join.

use super::MessageError;
use super::wire::{Reader, Writer};
use crate::mpi::FUNCTION_COUNT;
use crate::units::WindowId;

/// Most calls that a message names: three for each of the six directions of a grid have room.
pub const MOST_NAMED: usize = 24;

/// A call at one place: the same value on every rank that makes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepCall {
    /// Index in the function table.
    pub function: u16,
    /// Hash of its call path.
    pub path: u64,
}

/// A call that one rank makes equally often in each step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnCall {
    /// The call.
    pub call: StepCall,
    /// Its visits so far.
    pub visits: u64,
    /// Visits of them before the first step.
    pub before: u64,
    /// Visits in each step, at least 1.
    pub per_step: u16,
}

/// Calls that one rank makes equally often in each step, as it saw them at a window's end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnSteps {
    /// The calls, in the order in which the rank met them first; at most [`MOST_NAMED`].
    pub calls: Vec<OwnCall>,
    /// Steps in [`Marker::AUTO_PERIOD_NS`](crate::config::Marker::AUTO_PERIOD_NS), at most; above 0.
    pub rate: f32,
}

/// A call that some ranks name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamedCall {
    /// The call.
    pub call: StepCall,
    /// Its place among the calls that a rank names, the latest of all ranks.
    pub order: u16,
    /// Number of the set that it belongs to: calls that one rank names share a set, and sets that share a call are one.
    pub set: u16,
    /// Rank-windows that name it.
    pub reports: u64,
    /// Visits so far on the rank that is furthest.
    pub visits: u64,
    /// Visits before the first step, less those of the set's first call.
    pub lead: i64,
    /// Visits in each step; 0 where ranks differ in them, or in `phase`.
    pub per_step: u16,
    /// Visits before a step, less those of whole steps.
    pub phase: u16,
}

/// Calls that ranks make equally often in each step; the size does not depend on how many ranks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepSums {
    /// Rank-windows that name any call.
    pub naming: u64,
    /// Steps in [`Marker::AUTO_PERIOD_NS`](crate::config::Marker::AUTO_PERIOD_NS) on the fastest rank.
    pub rate: f32,
    /// The calls that most rank-windows name, at most [`MOST_NAMED`], in the order of [`best_first`].
    pub named: Vec<NamedCall>,
    /// True where there were more.
    pub is_cut: bool,
    /// True where ranks that share calls put them into different steps.
    pub disagree: bool,
}

/// Order of calls: named by most first, and of these met first.
fn best_first(one: &NamedCall, other: &NamedCall) -> std::cmp::Ordering {
    let key = |named: &NamedCall| (std::cmp::Reverse(named.reports), named.order, named.call);
    key(one).cmp(&key(other))
}

impl StepSums {
    const HEADER: usize = 8 + 4 + 2 + 2;
    const CALL: usize = 5 * 2 + 4 * 8;
    const CUT: u16 = 1;
    const DISAGREE: u16 = 1 << 1;

    /// Most bytes of it in a message.
    pub(super) const MOST_BYTES: usize = Self::HEADER + MOST_NAMED * Self::CALL;

    /// Sums of no rank.
    pub fn clear(&mut self) {
        (self.naming, self.rate) = (0, 0.0);
        (self.is_cut, self.disagree) = (false, false);
        self.named.clear();
    }

    /// Adds what one rank names in `windows` windows.
    pub fn add(&mut self, own: &OwnSteps, windows: u64) {
        let first = own.calls.first().map_or(0, |first| first.before);
        let named = |(order, own): (usize, &OwnCall)| NamedCall {
            call: own.call,
            order: order as u16,
            set: 0,
            reports: windows,
            visits: own.visits,
            lead: own.before.wrapping_sub(first) as i64,
            per_step: own.per_step,
            phase: own.before.checked_rem(own.per_step.into()).unwrap_or(0) as u16,
        };
        let named = own.calls.iter().take(MOST_NAMED).enumerate().map(named).collect();
        self.merge(&Self { naming: windows, rate: own.rate, named, ..Self::default() });
    }

    /// A rank that has been added has made as many visits by now.
    pub fn reach(&mut self, own: &OwnSteps) {
        for own in &own.calls {
            let known = self.named.iter_mut().find(|named| named.call == own.call);
            known.into_iter().for_each(|named| named.visits = named.visits.max(own.visits));
        }
    }

    /// Adds the sums of other ranks, or of other windows.
    pub fn merge(&mut self, other: &Self) {
        self.naming = self.naming.saturating_add(other.naming);
        self.rate = self.rate.max(other.rate);
        self.is_cut |= other.is_cut;
        self.disagree |= other.disagree;
        let (own, sets) = (self.named.len(), self.sets());
        let apart = |more: &NamedCall| NamedCall { set: more.set + sets, ..*more };
        self.named.extend(other.named.iter().map(apart));
        for at in (own..self.named.len()).rev() {
            let more = self.named[at];
            if let Some(known) = self.named[..own].iter().position(|known| known.call == more.call) {
                self.named.swap_remove(at);
                self.join(known, &more);
            }
        }
        self.named.sort_by(best_first);
        self.is_cut |= self.named.len() > MOST_NAMED;
        self.named.truncate(MOST_NAMED);
        self.number();
    }

    /// Adds `more` to the call of that index, which is the same, and makes one set of theirs.
    fn join(&mut self, known: usize, more: &NamedCall) {
        let known = &mut self.named[known];
        known.order = known.order.max(more.order);
        known.reports = known.reports.saturating_add(more.reports);
        known.visits = known.visits.max(more.visits);
        if (known.per_step, known.phase) != (more.per_step, more.phase) {
            (known.per_step, known.phase) = (0, 0);
        }
        let (set, shift) = (known.set, known.lead.wrapping_sub(more.lead));
        if set == more.set {
            self.disagree |= shift != 0;
            return;
        }
        for other in self.named.iter_mut().filter(|other| other.set == more.set) {
            other.set = set;
            other.lead = other.lead.wrapping_add(shift);
        }
    }

    /// Numbers sets in the order of their first calls, and takes leads from these.
    fn number(&mut self) {
        let mut numbers: [Option<(u16, i64)>; 2 * MOST_NAMED] = [None; 2 * MOST_NAMED];
        let mut next = 0;
        for named in &mut self.named {
            let (number, first) = *numbers[usize::from(named.set)].get_or_insert_with(|| {
                next += 1;
                (next - 1, named.lead)
            });
            (named.set, named.lead) = (number, named.lead.wrapping_sub(first));
        }
    }

    /// Sets that share no call.
    pub fn sets(&self) -> u16 {
        self.named.iter().map(|named| named.set + 1).max().unwrap_or(0)
    }

    pub(super) fn encode(&self, to: &mut Writer) {
        to.u64(self.naming);
        to.u32(self.rate.to_bits());
        to.u16(self.named.len() as u16);
        to.u16(if self.is_cut { Self::CUT } else { 0 } | if self.disagree { Self::DISAGREE } else { 0 });
        for named in &self.named {
            to.u16(named.call.function);
            to.u16(named.order);
            to.u16(named.set);
            to.u16(named.per_step);
            to.u16(named.phase);
            to.u64(named.call.path);
            to.u64(named.reports);
            to.u64(named.visits);
            to.u64(named.lead as u64);
        }
    }

    pub(super) fn decode(&mut self, from: &mut Reader) -> Result<(), MessageError> {
        from.expect_some(Self::HEADER)?;
        let (naming, rate, number, flags) = (from.u64(), from.f32(), from.u16(), from.u16());
        if !(rate.is_finite() && rate >= 0.0) {
            return Err(MessageError::Value { field: "rate" });
        }
        if usize::from(number) > MOST_NAMED {
            return Err(MessageError::Value { field: "named" });
        }
        from.expect_some(usize::from(number) * Self::CALL)?;
        (self.naming, self.rate) = (naming, rate);
        (self.is_cut, self.disagree) = (flags & Self::CUT != 0, flags & Self::DISAGREE != 0);
        self.named.clear();
        for _ in 0..number {
            let (function, order, set) = (from.u16(), from.u16(), from.u16());
            let (per_step, phase, path) = (from.u16(), from.u16(), from.u64());
            if usize::from(function) >= FUNCTION_COUNT {
                return Err(MessageError::Value { field: "function" });
            }
            if usize::from(set) >= MOST_NAMED {
                return Err(MessageError::Value { field: "set" });
            }
            let call = StepCall { function, path };
            let (reports, visits, lead) = (from.u64(), from.u64(), from.u64() as i64);
            self.named.push(NamedCall { call, order, set, reports, visits, lead, per_step, phase });
        }
        Ok(())
    }
}

/// Windows of a rank follow the program's steps from a visit of a call on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepMarker {
    /// The call.
    pub call: StepCall,
    /// Number of the visit that begins `window`, counted from 1.
    pub visit: u64,
    /// The first window that follows steps.
    pub window: WindowId,
    /// Visits per window, at least 1.
    pub every: u16,
    /// Visits per step, at least 1.
    pub per_step: u16,
    /// Seconds without a visit after which the clock ends windows again, at most twice as many.
    pub timeout_s: u16,
}

impl StepMarker {
    /// The window that the visit of that number begins; `None` where it begins none.
    ///
    /// ```
    /// use ampl_core::{message::{StepCall, StepMarker}, units::WindowId};
    ///
    /// let call = StepCall::default();
    /// let marker = StepMarker { call, visit: 40, window: WindowId(9), every: 2, per_step: 1, timeout_s: 10 };
    /// assert_eq!(marker.begun_by(44), Some(WindowId(11)));
    /// assert_eq!([39, 41].map(|visit| marker.begun_by(visit)), [None, None]);
    /// ```
    pub fn begun_by(&self, visit: u64) -> Option<WindowId> {
        let (past, every) = (visit.checked_sub(self.visit)?, u64::from(self.every.max(1)));
        past.is_multiple_of(every).then(|| WindowId(self.window.0.saturating_add(past / every)))
    }
}

/// Windows follow the program's steps: each rank takes the first of `calls` that it makes equally often in each step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepAnnouncement {
    /// Calls, and the number of the visit of each that begins `window`; at most [`MOST_NAMED`].
    pub calls: Vec<(StepCall, u64)>,
    /// The first window that follows steps.
    pub window: WindowId,
    /// Visits per window, at least 1.
    pub every: u16,
    /// Visits per step, at least 1.
    pub per_step: u16,
    /// As in [`StepMarker::timeout_s`].
    pub timeout_s: u16,
}

impl StepAnnouncement {
    /// Markers of its calls.
    pub fn markers(&self) -> impl Iterator<Item = StepMarker> {
        let &Self { window, every, per_step, timeout_s, .. } = self;
        let marker = move |&(call, visit)| StepMarker { call, visit, window, every, per_step, timeout_s };
        self.calls.iter().map(marker)
    }
}

impl From<StepMarker> for StepAnnouncement {
    fn from(marker: StepMarker) -> Self {
        let StepMarker { call, visit, window, every, per_step, timeout_s } = marker;
        Self { calls: vec![(call, visit)], window, every, per_step, timeout_s }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn own() -> impl Strategy<Value = OwnSteps> {
        let call = (0u16..3, 0u64..3).prop_map(|(function, path)| StepCall { function, path });
        let calls = prop::collection::btree_map(call, (1u64..100, 0u64..9, 1u16..3), 0..6);
        let own = |(call, (visits, before, per_step))| OwnCall { call, visits, before, per_step };
        (calls.prop_map(move |calls| calls.into_iter().map(own).collect()), 0.01f32..9.0)
            .prop_map(|(calls, rate)| OwnSteps { calls, rate })
    }

    proptest! {
        #[test]
        fn calls_that_all_ranks_name_come_first_whatever_the_tree(ranks in prop::collection::vec(own(), 1..20), cut in 0usize..20) {
            let sums = |ranks: &[OwnSteps]| {
                let mut sums = StepSums::default();
                ranks.iter().for_each(|own| sums.add(own, 1));
                sums
            };
            let all = sums(&ranks);
            let (left, right) = ranks.split_at(cut.min(ranks.len()));
            let (mut one, other) = (sums(left), sums(right));
            one.merge(&other);
            let common = |sums: &StepSums| -> Vec<NamedCall> {
                sums.named.iter().copied().filter(|named| named.reports == ranks.len() as u64).collect()
            };
            prop_assert_eq!(common(&one), common(&all));
            let naive = |call: StepCall| ranks.iter().all(|own| own.calls.iter().any(|of| of.call == call));
            for named in &all.named {
                prop_assert_eq!(naive(named.call), named.reports == ranks.len() as u64);
                // Others may have been left out and named again.
                if !naive(named.call) {
                    continue;
                }
                let visits = ranks.iter().flat_map(|own| &own.calls).filter(|of| of.call == named.call).map(|of| of.visits);
                prop_assert_eq!(visits.max(), Some(named.visits));
                let all = ranks.iter().flat_map(|own| &own.calls).filter(|of| of.call == named.call);
                let steps: BTreeSet<(u16, u16)> = all.map(|of| (of.per_step, (of.before % u64::from(of.per_step)) as u16)).collect();
                let expected = if steps.len() == 1 { steps.first().copied() } else { Some((0, 0)) };
                prop_assert_eq!(Some((named.per_step, named.phase)), expected);
            }
        }

        #[test]
        fn sets_and_leads_are_the_same_whatever_the_tree(ranks in prop::collection::vec(own(), 1..12), cut in 0usize..12) {
            let sums = |ranks: &[OwnSteps]| {
                let mut sums = StepSums::default();
                ranks.iter().for_each(|own| sums.add(own, 1));
                sums
            };
            let (left, right) = ranks.split_at(cut.min(ranks.len()));
            let (all, mut one) = (sums(&ranks), sums(right));
            one.merge(&sums(left));
            prop_assert!(!all.is_cut);
            prop_assert_eq!(all.disagree, one.disagree);
            if !all.disagree {
                prop_assert_eq!(&all, &one);
            }
            // Visits before the first step differ between two calls of a set by the same number on all ranks.
            let lead = |call: StepCall| all.named.iter().find(|named| named.call == call).map(|named| (named.set, named.lead)).unwrap();
            let agrees = |pair: &[OwnCall]| {
                let [one, other] = [pair[0], pair[1]].map(|own| lead(own.call));
                let own = pair[1].before as i64 - pair[0].before as i64;
                (one.0 == other.0, other.1 - one.1 == own)
            };
            let pairs: Vec<(bool, bool)> = ranks.iter().flat_map(|own| own.calls.windows(2).map(agrees)).collect();
            prop_assert!(pairs.iter().all(|pair| pair.0));
            prop_assert_eq!(all.disagree, pairs.iter().any(|pair| !pair.1));
        }

        #[test]
        fn sums_come_back_from_their_bytes(ranks in prop::collection::vec(own(), 0..20)) {
            let mut sums = StepSums::default();
            ranks.iter().for_each(|own| sums.add(own, 2));
            let mut bytes = Vec::new();
            sums.encode(&mut Writer(&mut bytes));
            prop_assert!(bytes.len() <= StepSums::MOST_BYTES);
            let mut back = StepSums::default();
            back.decode(&mut Reader::new(&bytes, 0).unwrap()).unwrap();
            prop_assert_eq!(back, sums);
            for len in 0..bytes.len() {
                prop_assert!(StepSums::default().decode(&mut Reader::new(&bytes[..len], 0).unwrap()).is_err());
            }
        }
    }
}
