//! Fingerprints of sequences of calls, computed on grammars.
//!
//! Equal sequences have equal fingerprints, however their grammars divide them. Calls whose number depends on load have
//! no part in it. Work is of the order of the grammar where loops repeat alike.

use ampl_core::mpi::{Class, FUNCTION_COUNT, Function};
use ampl_trace::grammar::{Grammar, Position};
use ampl_trace::record::GAP;
use ampl_trace::structure::RankStructure;

/// Modulus of the polynomial: 2^61 − 1.
const MODULUS: u128 = (1 << 61) - 1;
/// Its point.
const POINT: u64 = 0x1d2b_47c9_66f1_0a35 % MODULUS as u64;
/// Most positions of one rank's grammar that are walked.
const MOST_STEPS: u64 = 4_000_000;
/// Deepest nesting of rules.
const DEEPEST: u32 = 10_000;

/// True where the number of calls of `function` depends on load, not on the program alone.
pub fn depends_on_load(function: u16) -> bool {
    if usize::from(function) >= FUNCTION_COUNT {
        return false;
    }
    let spec = Function(function).spec();
    matches!(spec.class, Class::Poll | Class::CountOnly) || spec.name == "MPI_Waitsome"
}

/// The value of a polynomial, and the power of its point beyond its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hash {
    value: u64,
    power: u64,
}

fn product(a: u64, b: u64) -> u64 {
    (u128::from(a) * u128::from(b) % MODULUS) as u64
}

impl Hash {
    const EMPTY: Self = Self { value: 0, power: 1 };

    fn of(symbol: u64) -> Self {
        // Mixed, so that neighbouring numbers are far apart.
        let mixed = (symbol + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 4;
        Self { value: mixed % MODULUS as u64, power: POINT }
    }

    fn then(self, next: Self) -> Self {
        let sum = u128::from(product(self.value, next.power)) + u128::from(next.value);
        Self { value: (sum % MODULUS) as u64, power: product(self.power, next.power) }
    }

    fn times(self, mut times: u64) -> Self {
        let (mut all, mut square) = (Self::EMPTY, self);
        while times > 0 {
            if times & 1 == 1 {
                all = all.then(square);
            }
            square = square.then(square);
            times >>= 1;
        }
        all
    }
}

/// The fingerprint of the calls of a rank; `None` where calls are missing, or their sequence is too irregular.
pub fn fingerprint(rank: &RankStructure) -> Option<u64> {
    let mut all = Hash::EMPTY;
    for thread in &rank.threads {
        let mut terminals = Vec::with_capacity(thread.signatures.len());
        for signature in &thread.signatures {
            terminals.push(match signature.function {
                GAP => return None,
                function if depends_on_load(function) => Hash::EMPTY,
                function => Hash::of(function.into()),
            });
        }
        let own = Walk::new(&thread.grammar, &terminals).hash()?;
        all = all.then(Hash::of(u64::from(thread.thread) << 32)).then(own);
    }
    Some(all.value)
}

/// A walk through a grammar.
struct Walk<'a> {
    grammar: &'a Grammar,
    terminals: &'a [Hash],
    /// Hashes of rules that expand alike each time.
    alike: Vec<Option<Hash>>,
    /// True for rules with repetitions that vary below them.
    varies: Vec<bool>,
    /// Next run of each position's counts, and how often it was used.
    cursors: Vec<Vec<(usize, u64)>>,
    steps: u64,
}

impl<'a> Walk<'a> {
    fn new(grammar: &'a Grammar, terminals: &'a [Hash]) -> Self {
        let rules = &grammar.rules;
        let cursors = rules.iter().map(|rule| vec![(0, 0); rule.len()]).collect();
        let mut varies: Vec<bool> =
            rules.iter().map(|rule| rule.iter().any(|item| item.counts.len() > 1)).collect();
        loop {
            let below = |item: Position<'_>| {
                item.symbol.as_rule().is_some_and(|rule| varies.get(rule) == Some(&true))
            };
            let next: Vec<bool> =
                rules.iter().zip(&varies).map(|(rule, own)| *own || rule.iter().any(below)).collect();
            if next == varies {
                break;
            }
            varies = next;
        }
        Self { grammar, terminals, alike: vec![None; rules.len()], varies, cursors, steps: 0 }
    }

    fn hash(mut self) -> Option<Hash> {
        self.rule(0, 0)
    }

    fn rule(&mut self, rule: usize, depth: u32) -> Option<Hash> {
        if let Some(known) = *self.alike.get(rule)? {
            return Some(known);
        }
        if depth > DEEPEST {
            return None;
        }
        let grammar = self.grammar;
        let mut all = Hash::EMPTY;
        for (at, item) in grammar.rules.at(rule).iter().enumerate() {
            self.steps += 1;
            if self.steps > MOST_STEPS {
                return None;
            }
            let times = self.next_count(rule, at, item)?;
            let part = match (item.symbol.as_terminal(), item.symbol.as_rule()) {
                (Some(terminal), _) => self.terminals.get(terminal as usize)?.times(times),
                (_, Some(below)) if self.varies[below] => {
                    let mut part = Hash::EMPTY;
                    for _ in 0..times {
                        part = part.then(self.rule(below, depth + 1)?);
                    }
                    part
                }
                (_, Some(below)) => self.rule(below, depth + 1)?.times(times),
                _ => return None,
            };
            all = all.then(part);
        }
        if !self.varies[rule] {
            self.alike[rule] = Some(all);
        }
        Some(all)
    }

    /// Repetitions at that position in the next expansion of its rule.
    fn next_count(&mut self, rule: usize, at: usize, item: Position<'_>) -> Option<u64> {
        if item.counts.len() == 1 {
            return Some(item.counts[0].0);
        }
        let (run, used) = &mut self.cursors[rule][at];
        let &(times, expansions) = item.counts.get(*run)?;
        *used += 1;
        if *used >= expansions {
            (*run, *used) = (*run + 1, 0);
        }
        Some(times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ampl_trace::grammar::Builder;
    use proptest::prelude::*;

    fn by_grammar(sequence: &[(u32, u64)], terminals: &[Hash]) -> Hash {
        let mut builder = Builder::new();
        sequence.iter().for_each(|&(terminal, times)| builder.push(terminal, times));
        Walk::new(&builder.into_grammar(), terminals).hash().unwrap()
    }

    fn one_by_one(sequence: &[(u32, u64)], terminals: &[Hash]) -> Hash {
        let each = sequence.iter().flat_map(|&(terminal, times)| (0..times).map(move |_| terminal));
        each.fold(Hash::EMPTY, |all, terminal| all.then(terminals[terminal as usize]))
    }

    proptest! {
        #[test]
        fn the_grammar_gives_the_hash_of_the_sequence(
            steps in prop::collection::vec((0u32..4, 1u64..4), 0..30),
            outer in 1usize..20,
        ) {
            let terminals: Vec<Hash> = (0..4).map(Hash::of).collect();
            // Inner trip counts vary from step to step.
            let mut sequence = Vec::new();
            for turn in 0..outer {
                sequence.extend(steps.iter().map(|&(terminal, times)| (terminal, times + turn as u64 % 3)));
            }
            prop_assert_eq!(by_grammar(&sequence, &terminals), one_by_one(&sequence, &terminals));
        }

        #[test]
        fn other_sequences_have_other_hashes(
            mut sequence in prop::collection::vec(0u32..4, 1..40), at in 0usize..40, other in 0u32..4,
        ) {
            let terminals: Vec<Hash> = (0..4).map(Hash::of).collect();
            let single = |sequence: &[u32]| -> Vec<(u32, u64)> { sequence.iter().map(|&own| (own, 1)).collect() };
            let before = by_grammar(&single(&sequence), &terminals);
            let at = at % sequence.len();
            let changed = sequence[at] != other;
            sequence[at] = other;
            prop_assert_eq!(by_grammar(&single(&sequence), &terminals) != before, changed);
        }
    }

    #[test]
    fn calls_that_depend_on_load_have_no_part() {
        let number = |name: &str| Function::by_name(name).unwrap().0;
        for name in ["MPI_Test", "MPI_Iprobe", "MPI_Testsome", "MPI_Waitsome", "MPI_Wtime"] {
            assert!(depends_on_load(number(name)), "{name}");
        }
        for name in ["MPI_Wait", "MPI_Probe", "MPI_Send", "MPI_Waitany", "MPI_Comm_rank"] {
            assert!(!depends_on_load(number(name)), "{name}");
        }
        let structure = |polls: u64, sends: u64| {
            let mut caller = ampl_testkit::runs::Caller::new(0, 2);
            for _ in 0..sends {
                caller.send(3, 1, 8, ampl_testkit::runs::world());
                for _ in 0..polls {
                    caller.call("MPI_Iprobe", 4, &[1, 2, ampl_testkit::runs::world()]);
                }
            }
            fingerprint(&caller.finish()).unwrap()
        };
        assert_eq!(structure(0, 5), structure(3, 5));
        assert_ne!(structure(0, 5), structure(0, 6));
    }
}
