//! Sequitur on the end of the sequence.

use rustc_hash::FxHashMap;

use super::arena::{Arena, NIL, rule_of};

/// The rules so far, and the position of each pair of neighbours.
///
/// Everything in the rules precedes the end of rule 0, so a new count always comes behind those that a
/// position already has. The exception are rules that are `ahead`, see [`Engine::append_all`].
#[derive(Clone, Debug)]
pub(super) struct Engine {
    pub arena: Arena,
    /// The first of two neighbouring positions with different symbols, by these symbols; not every pair is here.
    digrams: FxHashMap<u64, u32>,
    /// Advances with each symbol of [`Engine::append_all`].
    clock: u64,
}

fn key(first: u32, second: u32) -> u64 {
    u64::from(first) << 32 | u64::from(second)
}

impl Engine {
    pub fn new() -> Self {
        Self { arena: Arena::new(), digrams: FxHashMap::default(), clock: 0 }
    }

    /// Appends `count` times `symbol` to the sequence. The expansions of a rule are in its counts already.
    pub fn append(&mut self, mut symbol: u32, mut count: u64) {
        loop {
            if let Some(at) = self.growing(symbol) {
                return self.arena.grow(at, count);
            }
            let last = self.arena.rules[0].last;
            let twin = match last {
                NIL => None,
                last => self.digrams.get(&key(self.arena.at(last).symbol, symbol)).copied(),
            };
            match twin.filter(|&twin| !self.is_ahead(self.arena.owner(twin))) {
                Some(twin) => (symbol, count) = (self.reduce(twin, count), 1),
                None => {
                    self.arena.push(0, symbol, count);
                    if let Some(rule) = rule_of(symbol) {
                        self.arena.rules[rule].uses += 1;
                    }
                    return self.enter(last);
                }
            }
        }
    }

    /// The position at the end of the sequence that holds `symbol`: more of it raises its latest count.
    #[inline]
    fn growing(&self, symbol: u32) -> Option<u32> {
        let mut at = self.arena.rules[0].last;
        while at != NIL {
            let end = self.arena.at(at).symbol;
            if end == symbol {
                return Some(at);
            }
            let rule = rule_of(end).filter(|&rule| !self.is_ahead(rule))?;
            at = self.arena.rules[rule].last;
        }
        None
    }

    #[inline]
    fn is_ahead(&self, rule: usize) -> bool {
        self.arena.rules[rule].ahead > self.clock
    }

    /// Appends symbols with their counts, the expansions of whose rules have all been counted before.
    ///
    /// Until a rule's last such expansion is in the sequence, its latest counts are not those of the end of
    /// the sequence, and nothing that comes before may be added to them.
    pub fn append_all(&mut self, symbols: &[(u32, u64)]) {
        let mut inside = Vec::new();
        for (&(symbol, _), clock) in symbols.iter().zip(self.clock + 1..) {
            if let Some(rule) = rule_of(symbol) {
                // No rule is dissolved while this is to be a use of it.
                self.arena.rules[rule].uses += 1;
                inside.push(rule);
            }
            while let Some(rule) = inside.pop() {
                let rule = &mut self.arena.rules[rule];
                if rule.ahead < clock {
                    rule.ahead = clock;
                    let mut at = rule.first;
                    while at != NIL {
                        inside.extend(rule_of(self.arena.at(at).symbol));
                        at = self.arena.at(at).next;
                    }
                }
            }
        }
        for &(symbol, count) in symbols {
            self.clock += 1;
            if let Some(rule) = rule_of(symbol) {
                self.arena.rules[rule].uses -= 1;
            }
            self.append(symbol, count);
        }
    }

    /// Removes the last symbol of the sequence, behind which the symbol behind `p` would come, `count` times; returns
    /// the rule that stands for both, expanded once more.
    fn reduce(&mut self, p: u32, count: u64) -> u32 {
        let last = self.arena.rules[0].last;
        let value = self.arena.at(last).value;
        self.leave(self.arena.at(last).prev);
        if let Some(rule) = rule_of(self.arena.at(last).symbol) {
            self.arena.rules[rule].uses -= 1;
        }
        self.arena.pop();

        let q = self.arena.at(p).next;
        let mut rule = self.arena.owner(p);
        let whole = self.arena.at(p).prev == NIL && self.arena.at(q).next == NIL;
        if rule == 0 || !whole {
            rule = self.lift(p, rule);
        }
        let expansions = self.arena.rules[rule].expansions;
        self.arena.record(p, value, expansions);
        self.arena.record(q, count, expansions);
        self.arena.rules[rule].expansions += 1;
        self.dissolve(p);
        self.dissolve(q);
        (rule as u32) << 1 | 1
    }

    /// Makes a rule of `p` and the position behind it, which are in the middle of `from`.
    fn lift(&mut self, p: u32, from: usize) -> usize {
        let q = self.arena.at(p).next;
        self.leave(self.arena.at(p).prev);
        self.leave(q);
        let symbol = self.arena.at(p).symbol;
        let head = rule_of(symbol).map_or(symbol >> 1, |first| self.arena.rules[first].head);
        let rule = self.arena.new_rule(self.arena.rules[from].expansions, head);
        let place = self.arena.lift(p, from, rule);
        self.arena.rules[rule].uses = 1;
        self.enter(self.arena.at(place).prev);
        self.enter(place);
        rule
    }

    /// Replaces a rule that stands only at `place`, once at each expansion, by its body.
    fn dissolve(&mut self, place: u32) {
        let Some(rule) = rule_of(self.arena.at(place).symbol) else { return };
        if self.arena.rules[rule].uses > 1 || !self.arena.is_single(place) {
            return;
        }
        let (before, behind) = (self.arena.at(place).prev, self.arena.at(place).next);
        let (first, last) = (self.arena.rules[rule].first, self.arena.rules[rule].last);
        let equal =
            |a: u32, b: u32| a != NIL && b != NIL && self.arena.at(a).symbol == self.arena.at(b).symbol;
        if equal(before, first) || equal(last, behind) {
            return;
        }
        self.leave(before);
        self.leave(place);
        self.arena.splice(place);
        self.enter(before);
        self.enter(last);
    }

    /// Remembers the pair that begins at `at`, unless the same stands elsewhere.
    pub fn enter(&mut self, at: u32) {
        if let Some(key) = self.pair(at) {
            self.digrams.entry(key).or_insert(at);
        }
    }

    /// Forgets the pair that begins at `at`.
    fn leave(&mut self, at: u32) {
        if let Some(key) = self.pair(at)
            && self.digrams.get(&key) == Some(&at)
        {
            self.digrams.remove(&key);
        }
    }

    fn pair(&self, at: u32) -> Option<u64> {
        if at == NIL || self.arena.at(at).next == NIL {
            return None;
        }
        let (first, second) = (self.arena.at(at).symbol, self.arena.at(self.arena.at(at).next).symbol);
        // Equal neighbours would overlap with themselves.
        (first != second).then(|| key(first, second))
    }
}
