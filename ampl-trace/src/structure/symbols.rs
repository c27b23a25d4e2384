//! Symbols of a grammar, without counts: like numbers for like shapes, wherever in the numbering they are.
//!
//! Rules are written inside each other, each where it appears first. Codes: 0 the next terminal, 1 the next
//! rule, then those that have appeared by their distance from the newest: `2 + 2 * distance` a terminal, `3 +
//! 2 * distance` a rule. Rules numbered otherwise are listed as they are.

use super::stream::{Broken, Field, In, Out};

const NESTED: u64 = 0;
const LISTED: u64 = 1;
const NEXT_TERMINAL: u64 = 0;
const NEXT_RULE: u64 = 1;
const KNOWN: u64 = 2;

/// Numbers given so far.
struct Numbers {
    terminals: u32,
    rules: u32,
}

/// Writes `rules`.
pub fn write(out: &mut Out, rules: &[Vec<u32>]) {
    let Some(codes) = nested(rules) else {
        out.put(Field::Length, 40, LISTED);
        out.put(Field::Length, 41, rules.len() as u64);
        for rule in rules {
            out.put(Field::Length, 42, rule.len() as u64);
            rule.iter().for_each(|&symbol| out.put(Field::Symbol, 9, u64::from(symbol)));
        }
        return;
    };
    out.put(Field::Length, 40, NESTED);
    for (is_length, code) in codes {
        let field = if is_length { Field::Length } else { Field::Symbol };
        out.put(field, 43, code);
    }
}

/// Lengths (true) and codes in the order of the walk; `None` if the numbering is another.
fn nested(rules: &[Vec<u32>]) -> Option<Vec<(bool, u64)>> {
    let mut numbers = Numbers { terminals: 0, rules: 1 };
    let mut codes = vec![(true, rules.first()?.len() as u64)];
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
            codes.push((false, KNOWN + u64::from(is_rule) + 2 * u64::from(*next - 1 - number)));
            continue;
        }
        *next += 1;
        codes.push((false, if is_rule { NEXT_RULE } else { NEXT_TERMINAL }));
        if is_rule {
            let inner = rules.get(number as usize)?;
            codes.push((true, inner.len() as u64));
            walk.push(inner.iter());
        }
    }
    (numbers.rules as usize == rules.len()).then_some(codes)
}

/// Reads what [`write`] wrote.
pub fn read(stream: &mut In) -> Result<Vec<Vec<u32>>, Broken> {
    stream.reading("grammar");
    if stream.get_most(Field::Length, 40, LISTED)? == LISTED {
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
        return Ok(rules);
    }
    let mut numbers = Numbers { terminals: 0, rules: 1 };
    let mut rules = vec![Vec::new()];
    let mut walk = vec![(0, stream.get_length(Field::Length, 43)?)];
    while let Some((rule, left)) = walk.last_mut() {
        let rule = *rule;
        if *left == 0 {
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
                walk.push((rules.len(), stream.get_length(Field::Length, 43)?));
                rules.push(Vec::new());
                numbers.rules += 1;
                number((numbers.rules - 1).into()).map(|number| number << 1 | 1)
            }
            code => {
                let is_rule = code & 1;
                let newest = if is_rule != 0 { numbers.rules } else { numbers.terminals };
                let distance = (code - KNOWN) / 2 + 1;
                u64::from(newest).checked_sub(distance).and_then(number).map(|n| n << 1 | is_rule as u32)
            }
        };
        rules[rule].push(symbol.ok_or_else(|| stream.broken())?);
    }
    Ok(rules)
}
