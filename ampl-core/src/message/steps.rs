//! Time steps that windows may follow: ranks name the calls of each of their steps, and the client announces one that
//! all ranks name.

use super::MessageError;
use super::wire::{Reader, Writer};
use crate::mpi::FUNCTION_COUNT;
use crate::units::WindowId;

/// Most calls that a message names.
pub const MOST_NAMED: usize = 8;

/// A call at one place: the same value on every rank that makes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepCall {
    /// Index in the function table.
    pub function: u16,
    /// Hash of its call path.
    pub path: u64,
}

/// Calls that one rank makes once in each step, as it saw them at a window's end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnSteps {
    /// The calls and their visits so far, in the order in which the rank met them first; at most [`MOST_NAMED`].
    pub calls: Vec<(StepCall, u64)>,
    /// Steps in a window, at most; above 0.
    pub rate: f32,
}

/// A call that some ranks name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamedCall {
    /// The call.
    pub call: StepCall,
    /// Its place among the calls that a rank names, the latest of all ranks.
    pub order: u16,
    /// Rank-windows that name it.
    pub reports: u64,
    /// Visits so far on the rank that is furthest.
    pub visits: u64,
}

/// Calls that ranks make once in each step; the size does not depend on how many ranks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepSums {
    /// Rank-windows that name any call.
    pub naming: u64,
    /// Steps in a window on the fastest rank.
    pub rate: f32,
    /// The calls that most rank-windows name, at most [`MOST_NAMED`], in the order of [`best_first`].
    pub named: Vec<NamedCall>,
}

/// Order of calls: named by most first, and of these met first.
fn best_first(one: &NamedCall, other: &NamedCall) -> std::cmp::Ordering {
    let key = |named: &NamedCall| (std::cmp::Reverse(named.reports), named.order, named.call);
    key(one).cmp(&key(other))
}

impl StepSums {
    const HEADER: usize = 8 + 4 + 2 + 2;
    const CALL: usize = 2 + 2 + 8 + 8 + 8;

    /// Most bytes of it in a message.
    pub(super) const MOST_BYTES: usize = Self::HEADER + MOST_NAMED * Self::CALL;

    /// Sums of no rank.
    pub fn clear(&mut self) {
        (self.naming, self.rate) = (0, 0.0);
        self.named.clear();
    }

    /// Adds what one rank names in `windows` windows.
    pub fn add(&mut self, own: &OwnSteps, windows: u64) {
        let named = |(order, &(call, visits)): (usize, &(StepCall, u64))| NamedCall {
            call,
            order: order as u16,
            reports: windows,
            visits,
        };
        let named = own.calls.iter().take(MOST_NAMED).enumerate().map(named).collect();
        self.merge(&Self { naming: windows, rate: own.rate, named });
    }

    /// Adds the sums of other ranks, or of other windows.
    pub fn merge(&mut self, other: &Self) {
        self.naming = self.naming.saturating_add(other.naming);
        self.rate = self.rate.max(other.rate);
        for more in &other.named {
            match self.named.iter_mut().find(|known| known.call == more.call) {
                Some(known) => {
                    known.order = known.order.max(more.order);
                    known.reports = known.reports.saturating_add(more.reports);
                    known.visits = known.visits.max(more.visits);
                }
                None => self.named.push(*more),
            }
        }
        self.named.sort_by(best_first);
        self.named.truncate(MOST_NAMED);
    }

    pub(super) fn encode(&self, to: &mut Writer) {
        to.u64(self.naming);
        to.u32(self.rate.to_bits());
        to.u16(self.named.len() as u16);
        to.u16(0);
        for named in &self.named {
            to.u16(named.call.function);
            to.u16(named.order);
            to.u64(named.call.path);
            to.u64(named.reports);
            to.u64(named.visits);
        }
    }

    pub(super) fn decode(&mut self, from: &mut Reader) -> Result<(), MessageError> {
        from.expect_some(Self::HEADER)?;
        let (naming, rate, number, _) = (from.u64(), from.f32(), from.u16(), from.u16());
        if !(rate.is_finite() && rate >= 0.0) {
            return Err(MessageError::Value { field: "rate" });
        }
        if usize::from(number) > MOST_NAMED {
            return Err(MessageError::Value { field: "named" });
        }
        from.expect_some(usize::from(number) * Self::CALL)?;
        (self.naming, self.rate) = (naming, rate);
        self.named.clear();
        for _ in 0..number {
            let (function, order, path) = (from.u16(), from.u16(), from.u64());
            if usize::from(function) >= FUNCTION_COUNT {
                return Err(MessageError::Value { field: "function" });
            }
            let call = StepCall { function, path };
            self.named.push(NamedCall { call, order, reports: from.u64(), visits: from.u64() });
        }
        Ok(())
    }
}

/// Windows follow the program's steps from a visit of a call on.
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
    /// let marker = StepMarker { call, visit: 40, window: WindowId(9), every: 2, timeout_s: 10 };
    /// assert_eq!(marker.begun_by(44), Some(WindowId(11)));
    /// assert_eq!([39, 41].map(|visit| marker.begun_by(visit)), [None, None]);
    /// ```
    pub fn begun_by(&self, visit: u64) -> Option<WindowId> {
        let (past, every) = (visit.checked_sub(self.visit)?, u64::from(self.every.max(1)));
        past.is_multiple_of(every).then(|| WindowId(self.window.0.saturating_add(past / every)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn own() -> impl Strategy<Value = OwnSteps> {
        let call = (0u16..3, 0u64..3).prop_map(|(function, path)| StepCall { function, path });
        let calls = prop::collection::btree_map(call, 1u64..100, 0..6);
        (calls.prop_map(|calls| calls.into_iter().collect()), 0.01f32..9.0)
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
            let naive = |call: StepCall| ranks.iter().all(|own| own.calls.iter().any(|of| of.0 == call));
            for named in &all.named {
                prop_assert_eq!(naive(named.call), named.reports == ranks.len() as u64);
                // Others may have been left out and named again.
                if !naive(named.call) {
                    continue;
                }
                let visits = ranks.iter().flat_map(|own| &own.calls).filter(|of| of.0 == named.call).map(|of| of.1);
                prop_assert_eq!(visits.max(), Some(named.visits));
            }
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
