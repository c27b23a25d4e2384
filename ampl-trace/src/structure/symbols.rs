//! Symbols of a grammar, without counts: like numbers for like shapes, wherever in the numbering they are.
//!
//! Rules are written inside each other, each where it appears first. Codes: 0 the next terminal, 1 the next
//! rule, then those that have appeared by their distance from the newest: `2 + 2 * distance` a terminal, `3 +
//! 2 * distance` a rule. Rules numbered otherwise are listed as they are.

use super::body::is_sound;
use super::stream::{Broken, Field, In, Out};

const NESTED: u64 = 0;
const LISTED: u64 = 1;
const NEXT_TERMINAL: u64 = 0;
const NEXT_RULE: u64 = 1;
const KNOWN: u64 = 2;
/// Symbols that most rules have at most.
const USUAL: usize = 8;

/// Numbers given so far.
struct Numbers {
    terminals: u32,
    rules: u32,
}

/// Writes `rules`.
pub fn write(out: &mut Out, rules: &[Vec<u32>]) {
    let before = out.len();
    out.put(Field::Length, 40, NESTED);
    if write_nested(out, rules).is_some() {
        return;
    }
    out.truncate(before);
    out.put(Field::Length, 40, LISTED);
    out.put(Field::Length, 41, rules.len() as u64);
    for rule in rules {
        out.put(Field::Length, 42, rule.len() as u64);
        rule.iter().for_each(|&symbol| out.put(Field::Symbol, 9, u64::from(symbol)));
    }
}

/// Lengths and codes in the order of the walk; `None`, and some of them written, if the numbering is another.
fn write_nested(out: &mut Out, rules: &[Vec<u32>]) -> Option<()> {
    let mut numbers = Numbers { terminals: 0, rules: 1 };
    out.put(Field::Length, 43, rules.first()?.len() as u64);
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
            let code = KNOWN + u64::from(is_rule) + 2 * u64::from(*next - 1 - number);
            out.put(Field::Symbol, 43, code);
            continue;
        }
        *next += 1;
        out.put(Field::Symbol, 43, if is_rule { NEXT_RULE } else { NEXT_TERMINAL });
        if is_rule {
            let inner = rules.get(number as usize)?;
            out.put(Field::Length, 43, inner.len() as u64);
            walk.push(inner.iter());
        }
    }
    (numbers.rules as usize == rules.len()).then_some(())
}

/// Reads what [`write`] wrote: rules that end, exist, are all used, and name terminals below `signatures` only.
pub fn read(stream: &mut In, signatures: usize) -> Result<Vec<Vec<u32>>, Broken> {
    stream.reading("grammar");
    if stream.get_most(Field::Length, 40, LISTED)? == NESTED {
        return read_nested(stream, signatures);
    }
    let length = stream.get_length(Field::Length, 41)?;
    let mut rules = Vec::new();
    for _ in 0..length {
        let length = stream.get_length(Field::Length, 42)?;
        let mut rule = Vec::new();
        for _ in 0..length {
            rule.push(stream.get_most(Field::Symbol, 9, u32::MAX.into())? as u32);
        }
        rules.push(rule);
    }
    if is_sound(&rules, signatures) { Ok(rules) } else { Err(stream.broken()) }
}

/// Rules inside each other: every one is used and exists by being read, and ends if it names none that is still open.
fn read_nested(stream: &mut In, signatures: usize) -> Result<Vec<Vec<u32>>, Broken> {
    let mut numbers = Numbers { terminals: 0, rules: 1 };
    let mut rules = vec![Vec::new()];
    let mut is_open = vec![true];
    let mut walk = vec![(0, stream.get_length(Field::Length, 43)?)];
    while let Some((rule, left)) = walk.last_mut() {
        let rule = *rule;
        if *left == 0 {
            is_open[rule] = false;
            walk.pop();
            continue;
        }
        *left -= 1;
        let number = |number: u64| u32::try_from(number).ok().filter(|&number| number < 1 << 31);
        let symbol = match stream.get(Field::Symbol, 43)? {
            NEXT_TERMINAL => {
                numbers.terminals += 1;
                number((numbers.terminals - 1).into()).map(|number| number << 1)
            }
            NEXT_RULE => {
                let length = stream.get_length(Field::Length, 43)?;
                walk.push((rules.len(), length));
                // What a file claims is not believed further than most rules are long.
                rules.push(Vec::with_capacity(length.min(USUAL)));
                is_open.push(true);
                numbers.rules += 1;
                number((numbers.rules - 1).into()).map(|number| number << 1 | 1)
            }
            code => {
                let is_rule = code & 1;
                let newest = if is_rule != 0 { numbers.rules } else { numbers.terminals };
                let distance = (code - KNOWN) / 2 + 1;
                let known = u64::from(newest).checked_sub(distance).and_then(number);
                known
                    .filter(|&known| is_rule == 0 || !is_open[known as usize])
                    .map(|known| known << 1 | is_rule as u32)
            }
        };
        rules[rule].push(symbol.ok_or_else(|| stream.broken())?);
    }
    if numbers.terminals as usize <= signatures { Ok(rules) } else { Err(stream.broken()) }
}

#[cfg(test)]
mod tests {
    use super::super::stream::Effort;
    use super::*;

    fn read_back(out: &Out, signatures: usize) -> Option<Vec<Vec<u32>>> {
        let mut stream = In::new(&out.pack(Effort::Quick)).unwrap();
        read(&mut stream, signatures).ok().filter(|_| stream.is_empty())
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
            let mut out = Out::default();
            write(&mut out, &rules);
            assert_eq!(read_back(&out, 4).as_ref(), Some(&rules));
            assert_eq!(read_back(&out, 2), None, "a terminal that is not there");
        }
    }

    #[test]
    fn rules_that_never_end_are_refused() {
        let (open, outer) = (KNOWN + 1, KNOWN + 3);
        for symbol in [open, outer] {
            let mut out = Out::default();
            out.put(Field::Length, 40, NESTED);
            for value in [2, NEXT_TERMINAL, NEXT_RULE, 2, NEXT_TERMINAL, symbol] {
                out.put(Field::Symbol, 43, value);
            }
            assert_eq!(read_back(&out, 2), None);
        }
        let mut out = Out::default();
        write(&mut out, &[vec![3], vec![5], vec![3]]);
        assert_eq!(read_back(&out, 0), None);
    }
}
