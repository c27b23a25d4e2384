//! Rules one behind the other in flat arrays: 8 bytes a position, as long as its count is always the same.

use std::ops::Deref;

use super::{Counts, Item, Symbol};

/// Mark of a position whose counts are in a list of their own.
const LISTED: u32 = 1 << 31;

/// Rules of a grammar. Equal rules are stored alike.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Rules {
    symbols: Vec<Symbol>,
    /// Of each position: repetitions at each expansion of its rule, or [`LISTED`] and the number of its list.
    counts: Vec<u32>,
    lists: Vec<Counts>,
    /// Of each rule: the end of its positions, and its expansions by the counts of its first position.
    rules: Vec<(usize, u64)>,
}

/// Positions of a rule.
#[derive(Clone, Copy, Debug)]
pub struct Rule<'a> {
    of: &'a Rules,
    begin: usize,
    end: usize,
    expansions: u64,
}

/// A position as it is read.
#[derive(Clone, Copy, Debug)]
pub struct Position<'a> {
    /// The terminal or rule at the position.
    pub symbol: Symbol,
    /// As [`Item::counts`].
    pub counts: Repeats<'a>,
}

/// Counts of a position.
#[derive(Clone, Copy, Debug)]
pub struct Repeats<'a> {
    always: [(u64, u64); 1],
    /// Number and content of its list.
    listed: Option<(usize, &'a [(u64, u64)])>,
}

impl Repeats<'_> {
    /// Number of the list that has them, below [`Rules::lists`]; `None` where they are always the same.
    pub(super) fn list(&self) -> Option<usize> {
        self.listed.map(|(number, _)| number)
    }
}

impl Deref for Repeats<'_> {
    type Target = [(u64, u64)];

    fn deref(&self) -> &[(u64, u64)] {
        self.listed.map_or(&self.always, |(_, counts)| counts)
    }
}

impl From<Position<'_>> for Item {
    fn from(position: Position<'_>) -> Self {
        Self { symbol: position.symbol, counts: Counts::from(&position.counts[..]) }
    }
}

impl<'a> Rule<'a> {
    /// Number of positions.
    pub fn len(self) -> usize {
        self.end - self.begin
    }

    /// True where it has no positions.
    pub fn is_empty(self) -> bool {
        self.begin == self.end
    }

    /// Place of its first position among those of all rules.
    pub fn begin(self) -> usize {
        self.begin
    }

    /// The position of that index.
    pub fn get(self, index: usize) -> Option<Position<'a>> {
        (index < self.len()).then(|| self.of.position(self.begin + index, self.expansions))
    }

    /// The last position.
    pub fn last(self) -> Option<Position<'a>> {
        self.get(self.len().checked_sub(1)?)
    }

    /// All positions.
    pub fn iter(self) -> impl Iterator<Item = Position<'a>> + Clone {
        (self.begin..self.end).map(move |at| self.of.position(at, self.expansions))
    }
}

impl Rules {
    fn position(&self, at: usize, expansions: u64) -> Position<'_> {
        let count = self.counts[at];
        let number = (count & !LISTED) as usize;
        Position {
            symbol: self.symbols[at],
            counts: Repeats {
                always: [(count.into(), expansions)],
                listed: (count & LISTED != 0).then(|| (number, &self.lists[number][..])),
            },
        }
    }

    /// Number of rules.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// True where there are no rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Positions in all rules.
    pub fn positions(&self) -> usize {
        self.symbols.len()
    }

    /// Number of lists of counts.
    pub(super) fn lists(&self) -> usize {
        self.lists.len()
    }

    /// The rule of that number.
    pub fn get(&self, rule: usize) -> Option<Rule<'_>> {
        let &(end, expansions) = self.rules.get(rule)?;
        let begin = if rule == 0 { 0 } else { self.rules[rule - 1].0 };
        Some(Rule { of: self, begin, end, expansions })
    }

    /// The rule of that number.
    ///
    /// # Panics
    /// Where there is none.
    pub fn at(&self, rule: usize) -> Rule<'_> {
        self.get(rule).expect("a rule of the grammar")
    }

    /// All rules.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Rule<'_>> + ExactSizeIterator + Clone {
        (0..self.len()).map(|rule| self.at(rule))
    }

    /// All positions, rule by rule.
    pub fn all(&self) -> impl Iterator<Item = Position<'_>> + Clone {
        self.iter().flat_map(Rule::iter)
    }

    /// The rules apart, to be changed.
    pub fn to_items(&self) -> Vec<Vec<Item>> {
        self.iter().map(|rule| rule.iter().map(Item::from).collect()).collect()
    }

    /// Appends a rule.
    pub fn push(&mut self, items: impl IntoIterator<Item = Item>) {
        let mut expansions = None;
        for Item { symbol, counts } in items {
            let all = || counts.iter().fold(0u64, |sum, &(_, expansions)| sum.wrapping_add(expansions));
            let of_rule = *expansions.get_or_insert_with(all);
            self.symbols.push(symbol);
            self.counts.push(match counts[..] {
                [(times, expansions)] if expansions == of_rule && times < LISTED.into() => times as u32,
                _ => {
                    self.lists.push(counts);
                    LISTED | (self.lists.len() - 1) as u32
                }
            });
        }
        self.rules.push((self.symbols.len(), expansions.unwrap_or(0)));
    }
}

impl<Items: IntoIterator<Item = Item>> FromIterator<Items> for Rules {
    fn from_iter<T: IntoIterator<Item = Items>>(rules: T) -> Self {
        let mut all = Self::default();
        rules.into_iter().for_each(|rule| all.push(rule));
        all
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rules_come_back_as_they_were(
            rules in prop::collection::vec(
                prop::collection::vec((any::<u32>(), prop::collection::vec((any::<u64>(), 0u64..3), 0..3)), 0..5),
                0..5,
            ),
        ) {
            let item = |(symbol, counts): (u32, Vec<(u64, u64)>)| {
                // Small and large ones.
                let counts = counts.into_iter().map(|(times, often)| (times >> (times % 64), often)).collect();
                Item { symbol: Symbol(symbol), counts }
            };
            let rules: Vec<Vec<Item>> =
                rules.into_iter().map(|rule| rule.into_iter().map(item).collect()).collect();
            let stored: Rules = rules.iter().cloned().collect();
            prop_assert_eq!(stored.to_items(), rules.clone());
            prop_assert_eq!(stored.positions(), rules.iter().map(Vec::len).sum::<usize>());
            for (rule, items) in stored.iter().zip(&rules) {
                prop_assert_eq!(rule.last().map(Item::from), items.last().cloned());
                prop_assert_eq!(rule.get(items.len()).map(Item::from), None);
            }
        }
    }

    #[test]
    fn counts_that_stay_the_same_take_no_list() {
        let item = |times| Item { symbol: Symbol::terminal(3), counts: Counts::from([(times, 7)]) };
        let rules: Rules = [vec![item(1), item(9)], vec![item(2)]].into_iter().collect();
        assert_eq!((rules.positions(), rules.lists()), (3, 0));
        assert_eq!(size_of_val(&rules.symbols[0]) + size_of_val(&rules.counts[0]), 8);
    }
}
