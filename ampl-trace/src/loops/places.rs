//! Loops by the places of their calls: calls of a function around MPI have one place, and a shape for each way they come by.

use std::collections::BTreeMap;

use super::calls::Steps;
use super::regular::Regular;

impl Steps {
    /// The same with places instead of shapes, of which `places` has the place of each.
    pub(super) fn by_places(mut self, places: &[u32]) -> Self {
        let place = |shape: u32| places.get(shape as usize).copied().unwrap_or(shape);
        let mut regular: BTreeMap<u32, (Regular, usize)> = BTreeMap::new();
        for of in &self.regular {
            let shape = place(of.shape);
            let (own, shapes) = regular.entry(shape).or_insert((Regular { shape, per_step: 0, calls: 0 }, 0));
            (own.per_step, own.calls) = (own.per_step + of.per_step, own.calls + of.calls);
            *shapes += 1;
        }
        // Of a place that has more shapes in the loop a step may call some more often than others.
        let shapes: Vec<u32> = self.by_place.keys().map(|&shape| place(shape)).collect();
        let inside_of = |own: u32| shapes.iter().filter(|&&other| other == own).count();
        let whole = regular.into_values().filter(|&(own, shapes)| shapes == inside_of(own.shape));
        let mut regular: Vec<Regular> = whole.map(|(own, _)| own).collect();
        regular.sort_by_key(|of| (of.per_step, of.shape));
        let mut by_place: BTreeMap<u32, u64> = BTreeMap::new();
        self.by_place.iter().for_each(|(&shape, calls)| *by_place.entry(place(shape)).or_default() += calls);
        let own = place(self.place);
        self.is_marker &= inside_of(own) == 1;
        (self.regular, self.by_place, self.place) = (regular, by_place, own);
        self
    }
}

#[cfg(test)]
mod tests;
