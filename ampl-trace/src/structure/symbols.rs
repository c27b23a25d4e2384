//! Symbols of a grammar, without counts: equal numbers for equal shapes, wherever in the numbering they are.
//!
//! Rules are written inside each other, each where it appears first. Codes: 0 the next terminal, 1 the next
//! rule, then those that have appeared by their distance from the newest: `2 + 2 * distance` a terminal, `3 +
//! 2 * distance` a rule. Rules numbered otherwise are listed as they are.
//!
//! In memory they are the same string of bytes: joining structures passes it on unread.

use super::shared_part::is_sound;
use super::stream::{Broken, Field, In, Out};
use crate::varint::{self, Reader};

const NESTED: u64 = 0;
const LISTED: u64 = 1;
const NEXT_TERMINAL: u64 = 0;
const NEXT_RULE: u64 = 1;
const KNOWN: u64 = 2;

/// Symbols of a thread's rules as they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rules {
    bytes: Vec<u8>,
    positions: usize,
}

impl Rules {
    /// The symbols of `rules`.
    pub fn of(rules: &[Vec<u32>]) -> Self {
        let positions = rules.iter().map(Vec::len).sum();
        let mut bytes = Vec::with_capacity(2 * positions);
        if put_nested(&mut bytes, rules).is_none() {
            bytes.clear();
            varint::put(&mut bytes, LISTED);
            varint::put(&mut bytes, rules.len() as u64);
            for rule in rules {
                varint::put(&mut bytes, rule.len() as u64);
                rule.iter().for_each(|&symbol| varint::put(&mut bytes, symbol.into()));
            }
        }
        Self { bytes, positions }
    }

    /// Number of symbols of all rules.
    pub fn positions(&self) -> usize {
        self.positions
    }

    /// Each rule's symbols.
    pub fn unpacked(&self) -> Vec<Vec<u32>> {
        let (mut values, mut rules) = (Reader::new(&self.bytes), Vec::<Vec<u32>>::new());
        let take = |rule: usize, symbol| {
            rules.resize(rules.len().max(rule + 1), Vec::new());
            rules[rule].push(symbol);
        };
        let count = visit(usize::MAX, |_, _| values.get(), take).expect("what was written");
        rules.resize(count, Vec::new());
        rules
    }

    /// Writes the rules.
    pub fn write(&self, out: &mut Out) {
        if out.put_unmarked(&self.bytes) {
            return;
        }
        let mut values = Reader::new(&self.bytes);
        let mut put = |field, context| {
            let value = values.get()?;
            out.put(field, context, value);
            Some(value)
        };
        if put(Field::Length, 40) == Some(NESTED) {
            put(Field::Length, 43);
            while let Some(code) = put(Field::Symbol, 43) {
                if code == NEXT_RULE {
                    put(Field::Length, 43);
                }
            }
            return;
        }
        put(Field::Length, 41);
        while let Some(length) = put(Field::Length, 42) {
            for _ in 0..length {
                put(Field::Symbol, 9);
            }
        }
    }

    /// Reads what [`Rules::write`] wrote: rules that end, exist, are all used, and name terminals below `signatures`
    /// only.
    pub fn read(stream: &mut In, signatures: usize) -> Result<Self, Broken> {
        stream.reading("grammar");
        let mut rules = Self::default();
        let get = |field, context| {
            let value = stream.get(field, context).ok()?;
            varint::put(&mut rules.bytes, value);
            Some(value)
        };
        let read = visit(signatures, get, |_, _| rules.positions += 1);
        if read.is_some() { Ok(rules) } else { Err(stream.broken()) }
    }
}

/// Numbers given so far.
struct Numbers {
    terminals: u32,
    rules: u32,
}

/// Appends lengths and codes in the order of the walk; `None`, and some of them, if the numbering differs from the
/// walk's.
fn put_nested(out: &mut Vec<u8>, rules: &[Vec<u32>]) -> Option<()> {
    let mut numbers = Numbers { terminals: 0, rules: 1 };
    varint::put(out, NESTED);
    varint::put(out, rules.first()?.len() as u64);
    let mut walk = vec![rules[0].iter()];
    while let Some(symbols) = walk.last_mut() {
        let Some(&symbol) = symbols.next() else {
            walk.pop();
            continue;
        };
        let number = symbol >> 1;
        let is_rule = symbol & 1 != 0;
        let next = if is_rule { &mut numbers.rules } else { &mut numbers.terminals };
        if number > *next || is_rule && number == 0 {
            return None;
        }
        if number < *next {
            varint::put(out, KNOWN + u64::from(is_rule) + 2 * u64::from(*next - 1 - number));
            continue;
        }
        *next += 1;
        varint::put(out, if is_rule { NEXT_RULE } else { NEXT_TERMINAL });
        if is_rule {
            let inner = rules.get(number as usize)?;
            varint::put(out, inner.len() as u64);
            walk.push(inner.iter());
        }
    }
    (numbers.rules as usize == rules.len()).then_some(())
}

/// Passes the rule's number and the symbol of every position to `take`; `get` reads values by field and context.
/// Returns the number of rules; `None` unless these end, exist, are all used, and name terminals below `signatures`
/// only.
fn visit(
    signatures: usize,
    mut get: impl FnMut(Field, u32) -> Option<u64>,
    mut take: impl FnMut(usize, u32),
) -> Option<usize> {
    match get(Field::Length, 40)? {
        NESTED => visit_nested(signatures, get, take),
        LISTED => {
            let mut rules = Vec::new();
            for _ in 0..get(Field::Length, 41)? {
                let mut rule = Vec::new();
                for _ in 0..get(Field::Length, 42)? {
                    rule.push(u32::try_from(get(Field::Symbol, 9)?).ok()?);
                }
                rules.push(rule);
            }
            for (rule, symbols) in rules.iter().enumerate() {
                symbols.iter().for_each(|&symbol| take(rule, symbol));
            }
            is_sound(&rules, signatures).then_some(rules.len())
        }
        _ => None,
    }
}

/// Rules inside each other: every one is used and exists by being read, and ends if it names none that is still open.
fn visit_nested(
    signatures: usize,
    mut get: impl FnMut(Field, u32) -> Option<u64>,
    mut take: impl FnMut(usize, u32),
) -> Option<usize> {
    let mut terminals = 0u32;
    let mut is_open = vec![true];
    let mut walk = vec![(0, get(Field::Length, 43)?)];
    while let Some((rule, left)) = walk.last_mut() {
        let rule = *rule;
        if *left == 0 {
            is_open[rule] = false;
            walk.pop();
            continue;
        }
        *left -= 1;
        let number = |number: u64| u32::try_from(number).ok().filter(|&number| number < 1 << 31);
        let symbol = match get(Field::Symbol, 43)? {
            NEXT_TERMINAL => {
                terminals += 1;
                number((terminals - 1).into())? << 1
            }
            NEXT_RULE => {
                let number = number(is_open.len() as u64)?;
                walk.push((is_open.len(), get(Field::Length, 43)?));
                is_open.push(true);
                number << 1 | 1
            }
            code => {
                let is_rule = code & 1;
                let newest = if is_rule != 0 { is_open.len() as u64 } else { terminals.into() };
                let known = newest.checked_sub((code - KNOWN) / 2 + 1).and_then(number)?;
                if is_rule != 0 && is_open[known as usize] {
                    return None;
                }
                known << 1 | is_rule as u32
            }
        };
        take(rule, symbol);
    }
    (terminals as usize <= signatures).then_some(is_open.len())
}

#[cfg(test)]
mod tests {
    use super::super::stream::Effort;
    use super::*;

    fn read_back(out: &Out, signatures: usize) -> Option<Vec<Vec<u32>>> {
        let mut stream = In::new(&out.encode_fast()).unwrap();
        let rules = Rules::read(&mut stream, signatures).ok().filter(|_| stream.is_empty())?;
        assert_eq!(rules.positions(), rules.unpacked().iter().map(Vec::len).sum::<usize>());
        Some(rules.unpacked())
    }

    #[test]
    fn rules_come_back_however_they_are_numbered() {
        let (terminal, rule) = (|number: u32| number << 1, |number: u32| number << 1 | 1);
        let nested = vec![
            vec![terminal(0), rule(1), rule(1), terminal(1)],
            vec![rule(2), terminal(2), rule(2)],
            vec![terminal(0), terminal(3)],
        ];
        let listed =
            vec![vec![rule(2), rule(1), rule(2)], vec![terminal(1), terminal(0)], vec![terminal(3), rule(1)]];
        for rules in [nested, listed] {
            for effort in [Effort::Quick, Effort::Best] {
                let mut out = Out::new(effort);
                Rules::of(&rules).write(&mut out);
                assert_eq!(read_back(&out, 4).as_ref(), Some(&rules));
                assert_eq!(read_back(&out, 2), None, "a terminal that is not there");
            }
        }
    }

    #[test]
    fn rules_that_never_end_are_refused() {
        let (open, outer) = (KNOWN + 1, KNOWN + 3);
        for symbol in [open, outer] {
            let mut out = Out::new(Effort::Quick);
            out.put(Field::Length, 40, NESTED);
            for value in [2, NEXT_TERMINAL, NEXT_RULE, 2, NEXT_TERMINAL, symbol] {
                out.put(Field::Symbol, 43, value);
            }
            assert_eq!(read_back(&out, 2), None);
        }
        let mut out = Out::new(Effort::Quick);
        Rules::of(&[vec![3], vec![5], vec![3]]).write(&mut out);
        assert_eq!(read_back(&out, 0), None);
    }
}
