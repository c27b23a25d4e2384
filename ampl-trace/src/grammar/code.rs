//! A grammar as bytes: small, and alike for grammars that are.
//!
//! The rules are written inside each other: a rule's positions follow where it appears first. Then the
//! terminals, which are numbered by their first appearance in the sequence, also appear in that order.
//!
//! A body is its number of positions, less 2 for all rules but the whole. A position that does not always
//! count once begins with 3, 4 or 5, its form, and its counts, see [`lists`](super::lists). Then comes its
//! symbol: 0 the next terminal, 1 the next rule, 2 a terminal that follows by its number, and from 6 on those
//! that have appeared, the newest first, terminals and rules by turns while there are both.

use crate::varint::{self, Reader};

use super::check::order;
use super::lists::{FORMS, Lists};
use super::{Grammar, Item, Symbol};

const NEXT_TERMINAL: u64 = 0;
const NEXT_RULE: u64 = 1;
const OTHER_TERMINAL: u64 = 2;
/// Less 1, as form 0 is not written.
const FORM: u64 = 2;
const KNOWN: u64 = FORM + 1 + FORMS;

/// The number of terminal or rule `back` below the newest, of so many.
fn known(rule: bool, back: u64, terminals: u64, rules: u64) -> u64 {
    let both = terminals.min(rules);
    KNOWN + if back < both { 2 * back + u64::from(rule) } else { both + back }
}

/// True where `code` is a rule, and its distance below the newest, of so many.
fn recall(code: u64, terminals: u64, rules: u64) -> (bool, u64) {
    let (place, both) = (code - KNOWN, terminals.min(rules));
    if place < 2 * both { (place % 2 == 1, place / 2) } else { (rules > terminals, place - both) }
}

impl Grammar {
    /// Appends the grammar to `out`. It must be sound.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.write_with(&mut Lists::new(), out);
    }

    pub(super) fn write_with(&self, lists: &mut Lists, out: &mut Vec<u8>) {
        let (mut numbers, mut terminals, mut rules) = (vec![0u64; self.rules.len()], 0u64, 0u64);
        varint::put(out, self.rules.at(0).len() as u64);
        let (mut walk, mut counts) = (vec![self.rules.at(0).iter()], Vec::new());
        while let Some(items) = walk.last_mut() {
            let Some(item) = items.next() else {
                walk.pop();
                continue;
            };
            counts.clear();
            let form = lists.write(&item.counts, &mut counts);
            if form > 0 {
                varint::put(out, FORM + form);
                out.extend_from_slice(&counts);
            }
            if let Some(rule) = item.symbol.as_rule() {
                if numbers[rule] == 0 {
                    rules += 1;
                    numbers[rule] = rules;
                    varint::put(out, NEXT_RULE);
                    varint::put(out, self.rules.at(rule).len() as u64 - 2);
                    walk.push(self.rules.at(rule).iter());
                } else {
                    varint::put(out, known(true, rules - numbers[rule], terminals, rules));
                }
            } else {
                let terminal = u64::from(item.symbol.0 >> 1);
                if terminal == terminals {
                    varint::put(out, NEXT_TERMINAL);
                } else if terminal < terminals {
                    varint::put(out, known(false, terminals - 1 - terminal, terminals, rules));
                } else {
                    varint::put(out, OTHER_TERMINAL);
                    varint::put(out, terminal);
                }
                terminals = terminals.max(terminal + 1);
            }
        }
    }

    /// The grammar that [`Grammar::write`] put there; `None` where the bytes are none or not a sound one.
    ///
    /// Time and memory are at most proportional to the bytes, plus 4 MiB.
    pub fn read(bytes: &mut Reader) -> Option<Self> {
        Self::read_with(&mut Lists::new(), bytes)
    }

    pub(super) fn read_with(lists: &mut Lists, bytes: &mut Reader) -> Option<Self> {
        let mut rules: Vec<Vec<Item>> = vec![Vec::new()];
        let mut terminals = 0u64;
        // Rules whose body has begun, and how many positions are missing.
        let mut open = vec![(0, bytes.get()?)];
        while let Some((rule, missing)) = open.last_mut() {
            if *missing == 0 {
                open.pop();
                continue;
            }
            *missing -= 1;
            let rule = *rule;
            let mut code = bytes.get()?;
            let form = if (FORM + 1..KNOWN).contains(&code) { code - FORM } else { 0 };
            let counts = lists.read(form, bytes)?;
            if form > 0 {
                code = bytes.get()?;
            }
            let older = rules.len() as u64 - 1;
            let symbol = match code {
                NEXT_RULE => (older + 1) << 1 | 1,
                NEXT_TERMINAL => terminals << 1,
                OTHER_TERMINAL => bytes.get().filter(|&terminal| terminal < 1 << 31)? << 1,
                KNOWN.. => match recall(code, terminals, older) {
                    (true, back) => older.checked_sub(back)? << 1 | 1,
                    (false, back) => terminals.checked_sub(back + 1)? << 1,
                },
                _ => return None, // a form twice
            };
            let symbol = u32::try_from(symbol).ok()?;
            if symbol & 1 == 0 {
                terminals = terminals.max(u64::from(symbol >> 1) + 1);
            }
            rules[rule].push(Item { symbol: Symbol(symbol), counts });
            if code == NEXT_RULE {
                open.push((rules.len(), bytes.get()?.checked_add(2)?));
                rules.push(Vec::new());
            }
        }
        let order = order(rules.len(), |rule| rules[rule].iter().map(|item| item.symbol))?;
        complete(&mut rules, &order)?;
        let grammar = Self { rules: rules.into_iter().collect() };
        grammar.checked_len(&order)?;
        Some(grammar)
    }
}

/// Fills in how many expansions the last run of each position has.
fn complete(rules: &mut [Vec<Item>], order: &[usize]) -> Option<()> {
    let mut expansions = vec![0u64; rules.len()];
    expansions[0] = 1;
    for &rule in order {
        for item in &mut rules[rule] {
            let (last, closed) = item.counts.split_last_mut()?;
            let before = closed.iter().try_fold(0u64, |sum, &(_, length)| sum.checked_add(length))?;
            last.1 = expansions[rule].checked_sub(before)?;
            if let Some(inner) = item.symbol.as_rule() {
                for &(times, length) in &item.counts {
                    expansions[inner] = expansions[inner].checked_add(times.checked_mul(length)?)?;
                }
            }
        }
    }
    Some(())
}
