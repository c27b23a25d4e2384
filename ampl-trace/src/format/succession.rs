//! Numbers of things that recur, in the order in which they do.

use crate::bits::Bits;
use crate::column::Column;

/// Numbers of things, new ones ascending from 0. Each is expected to be followed by what followed it the last time.
#[derive(Debug)]
pub struct Succession {
    column: Column,
    /// Thing that followed each the last time, or is expected to.
    followers: Vec<usize>,
    before: Option<usize>,
}

impl Default for Succession {
    fn default() -> Self {
        Self { column: Column::NEW, followers: Vec::new(), before: None }
    }
}

impl Succession {
    /// Codes the number of the next thing, and returns it and whether the thing is new; `None` for one that is beyond.
    pub fn code<B: Bits>(&mut self, bits: &mut B, number: usize) -> Option<(usize, bool)> {
        let known = self.followers.len();
        let expected = self.before.map_or(0, |before| self.followers[before]);
        let guesses = [expected, known, self.before.unwrap_or(0)].map(|guess| guess as u64);
        let number = usize::try_from(self.column.code(bits, number as u64, &guesses)).ok()?;
        let is_new = number == known;
        if number > known {
            return None;
        }
        if is_new {
            // The first time one more new thing follows.
            self.followers.push(known + 1);
        }
        if let Some(before) = self.before.replace(number) {
            self.followers[before] = number;
        }
        Some((number, is_new))
    }

    /// Number of things so far.
    pub fn known(&self) -> usize {
        self.followers.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::bits::{Reader, Writer};

    fn coded(numbers: &[usize]) -> Vec<u8> {
        let (mut succession, mut bits) = (Succession::default(), Writer::default());
        for &number in numbers {
            assert_eq!(succession.code(&mut bits, number).map(|(number, _)| number), Some(number));
        }
        bits.into_bytes()
    }

    proptest! {
        #[test]
        fn any_order_comes_back(draws: Vec<u16>) {
            let mut known = 0;
            let numbers: Vec<usize> = draws.iter().map(|&draw| {
                let number = usize::from(draw) % (known + 1);
                known = known.max(number + 1);
                number
            }).collect();
            let (bytes, mut succession) = (coded(&numbers), Succession::default());
            let mut bits = Reader::new(&bytes[..]);
            for &number in &numbers {
                prop_assert_eq!(succession.code(&mut bits, 0).map(|(number, _)| number), Some(number));
            }
            prop_assert!(bits.is_sound() && succession.known() == known);
        }

        #[test]
        fn any_bytes_end(bytes: Vec<u8>) {
            let (mut bits, mut succession) = (Reader::new(&bytes[..]), Succession::default());
            while bits.is_sound() && succession.code(&mut bits, 0).is_some() && succession.known() < 999 {
                bits.plain(1, 0);
            }
        }
    }

    #[test]
    fn what_goes_round_takes_next_to_nothing() {
        let round: Vec<usize> = (0..6400).map(|at| at % 64).collect();
        assert!(coded(&round).len() < 40, "{}", coded(&round).len());
        let stays: Vec<usize> = (0..6400).map(|at| at / 64).collect();
        assert!(coded(&stays).len() < 160, "{}", coded(&stays).len());
    }
}
