//! Positions and rules by number, so that they can be linked to each other, moved and used again.

use smallvec::smallvec;

use super::Counts;
use super::closed::Closed;
use crate::varint;

/// No position.
pub(super) const NIL: u32 = u32::MAX;

/// The number of the rule that `symbol` is.
#[inline]
pub(super) fn rule_of(symbol: u32) -> Option<usize> {
    (symbol & 1 == 1).then_some((symbol >> 1) as usize)
}

/// One position of a rule. Its counts are the closed runs, then `value` for each expansion from `since` on.
#[derive(Clone, Debug)]
pub(super) struct Position {
    pub symbol: u32,
    pub prev: u32,
    pub next: u32,
    body: u32,
    closed: u32,
    /// The latest count.
    pub value: u64,
    since: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub first: u32,
    pub last: u32,
    body: u32,
    size: u32,
    /// Positions that hold this rule, and symbols that are about to become one.
    pub uses: u32,
    /// The terminal that every expansion begins with.
    pub head: u32,
    /// The clock up to which some of the expansions are not in the sequence yet.
    pub ahead: u64,
    pub expansions: u64,
}

/// All positions and rules. Rule 0 is the sequence, expanded once.
#[derive(Clone, Debug)]
pub(super) struct Arena {
    pub positions: Vec<Position>,
    free_positions: Vec<u32>,
    pub rules: Vec<Rule>,
    free_rules: Vec<u32>,
    // Which rule a body belongs to: bodies are exchanged where moving their positions would take long.
    owners: Vec<u32>,
    closed: Vec<Closed>,
    free_closed: Vec<u32>,
}

impl Arena {
    pub fn new() -> Self {
        let mut arena = Self {
            positions: Vec::new(),
            free_positions: Vec::new(),
            rules: Vec::new(),
            free_rules: Vec::new(),
            owners: Vec::new(),
            closed: Vec::new(),
            free_closed: Vec::new(),
        };
        arena.new_rule(1, 0);
        arena
    }

    /// Positions in all rules.
    pub fn live(&self) -> usize {
        self.positions.len() - self.free_positions.len()
    }

    #[inline]
    pub fn at(&self, at: u32) -> &Position {
        &self.positions[at as usize]
    }

    #[inline]
    pub fn owner(&self, at: u32) -> usize {
        self.owners[self.at(at).body as usize] as usize
    }

    /// An empty rule without uses.
    pub fn new_rule(&mut self, expansions: u64, head: u32) -> usize {
        let fresh = |body| Rule { first: NIL, last: NIL, body, size: 0, uses: 0, head, ahead: 0, expansions };
        if let Some(rule) = self.free_rules.pop() {
            let rule = rule as usize;
            self.rules[rule] = fresh(self.rules[rule].body);
            return rule;
        }
        let number = self.rules.len() as u32;
        self.rules.push(fresh(number));
        self.owners.push(number);
        number as usize
    }

    /// Appends a position to the end of `rule` that counts `value` each time.
    pub fn push(&mut self, rule: usize, symbol: u32, value: u64) -> u32 {
        let Rule { last, body, .. } = self.rules[rule];
        let position = Position { symbol, prev: last, next: NIL, body, closed: NIL, value, since: 0 };
        let at = self.allot(position);
        match last {
            NIL => self.rules[rule].first = at,
            last => self.positions[last as usize].next = at,
        }
        self.rules[rule].last = at;
        self.rules[rule].size += 1;
        at
    }

    fn allot(&mut self, position: Position) -> u32 {
        if let Some(at) = self.free_positions.pop() {
            self.positions[at as usize] = position;
            return at;
        }
        self.positions.push(position);
        self.positions.len() as u32 - 1
    }

    /// Takes away the last position of rule 0.
    pub fn pop(&mut self) {
        let last = self.rules[0].last;
        let prev = self.at(last).prev;
        match prev {
            NIL => self.rules[0].first = NIL,
            prev => self.positions[prev as usize].next = NIL,
        }
        self.rules[0].last = prev;
        self.rules[0].size -= 1;
        self.free(last);
    }

    fn free(&mut self, at: u32) {
        let closed = self.at(at).closed;
        if closed != NIL {
            self.closed[closed as usize].clear();
            self.free_closed.push(closed);
        }
        self.free_positions.push(at);
    }

    /// Makes `prev` and `next` neighbours in `rule`; each may be its end.
    fn join(&mut self, rule: usize, prev: u32, next: u32) {
        match prev {
            NIL => self.rules[rule].first = next,
            prev => self.positions[prev as usize].next = next,
        }
        match next {
            NIL => self.rules[rule].last = prev,
            next => self.positions[next as usize].prev = prev,
        }
    }

    /// Moves `p` and the position behind it from `from` into the empty `rule`, which takes their place there;
    /// returns the position that it takes.
    pub fn lift(&mut self, p: u32, from: usize, rule: usize) -> u32 {
        let q = self.at(p).next;
        let (before, behind) = (self.at(p).prev, self.at(q).next);
        let Rule { body, .. } = self.rules[from];
        let symbol = (rule as u32) << 1 | 1;
        let place =
            self.allot(Position { symbol, prev: NIL, next: NIL, body, closed: NIL, value: 1, since: 0 });
        self.join(from, before, place);
        self.join(from, place, behind);
        self.rules[from].size -= 1;
        self.join(rule, NIL, p);
        self.join(rule, q, NIL);
        self.rules[rule].size = 2;
        let body = self.rules[rule].body;
        self.positions[p as usize].body = body;
        self.positions[q as usize].body = body;
        place
    }

    /// Puts the body of the rule at `place` there instead, and forgets that rule.
    ///
    /// The position counts 1 at each expansion and is the only one of that rule.
    pub fn splice(&mut self, place: u32) {
        let outer = self.owner(place);
        let inner = rule_of(self.at(place).symbol).expect("a rule stands there");
        debug_assert_eq!(self.rules[outer].expansions, self.rules[inner].expansions);
        let (before, behind) = (self.at(place).prev, self.at(place).next);
        let Rule { first, last, size, body: inner_body, .. } = self.rules[inner];
        let outer_body = self.rules[outer].body;
        // The smaller part moves: a position moves at most as often as its body doubles.
        if size < self.rules[outer].size {
            self.relabel(first, NIL, outer_body);
        } else {
            self.relabel(self.rules[outer].first, place, inner_body);
            self.relabel(behind, NIL, inner_body);
            (self.rules[outer].body, self.rules[inner].body) = (inner_body, outer_body);
            self.owners[inner_body as usize] = outer as u32;
            self.owners[outer_body as usize] = inner as u32;
        }
        self.join(outer, before, first);
        self.join(outer, last, behind);
        self.rules[outer].size += size - 1;
        self.free(place);
        (self.rules[inner].first, self.rules[inner].uses) = (NIL, 0);
        self.free_rules.push(inner as u32);
    }

    fn relabel(&mut self, mut at: u32, end: u32, body: u32) {
        while at != end {
            self.positions[at as usize].body = body;
            at = self.at(at).next;
        }
    }

    /// True where the position counts once at each expansion.
    pub fn is_single(&self, at: u32) -> bool {
        let &Position { value, since, .. } = self.at(at);
        value == 1 && since == 0
    }

    /// Appends a count to a position of a rule that had so many expansions before.
    #[inline]
    pub fn record(&mut self, at: u32, value: u64, expansions: u64) {
        if self.at(at).value != value {
            self.close(at, expansions);
            self.positions[at as usize].value = value;
        }
    }

    /// Ends the run of the latest count before the expansion of this number.
    #[cold]
    fn close(&mut self, at: u32, end: u64) {
        let position = &mut self.positions[at as usize];
        if position.closed == NIL {
            position.closed = self.free_closed.pop().unwrap_or_else(|| {
                self.closed.push(Closed::default());
                self.closed.len() as u32 - 1
            });
        }
        self.closed[position.closed as usize].push(position.value, end - position.since);
        position.since = end;
    }

    /// Makes the latest count of a position higher.
    pub fn grow(&mut self, at: u32, by: u64) {
        let latest = self.rules[self.owner(at)].expansions - 1;
        if self.at(at).since < latest {
            self.close(at, latest);
        }
        let position = &mut self.positions[at as usize];
        position.value = position.value.saturating_add(by);
        if position.closed != NIL {
            let equal = self.closed[position.closed as usize].pop(position.value);
            position.since -= equal.unwrap_or(0);
        }
    }

    /// The counts of a position, as an item has them.
    pub fn counts(&self, at: u32) -> Counts {
        let &Position { closed, value, since, .. } = self.at(at);
        let open = (value, self.rules[self.owner(at)].expansions - since);
        match closed {
            NIL => smallvec![open],
            closed => self.closed[closed as usize].runs().chain([open]).collect(),
        }
    }

    /// Appends a position's counts but the latest: the expansion since which that one holds, and the runs before it.
    pub fn dump_counts(&self, at: u32, out: &mut Vec<u8>) {
        let &Position { closed, since, .. } = self.at(at);
        varint::put(out, since);
        let runs = || (closed != NIL).then(|| self.closed[closed as usize].runs()).into_iter().flatten();
        varint::put(out, runs().count() as u64);
        for (times, expansions) in runs() {
            varint::put(out, times);
            varint::put(out, expansions);
        }
    }

    /// Sets the counts of a position, for all expansions of its rule.
    pub fn set_counts(&mut self, at: u32, counts: &[(u64, u64)]) {
        let mut expansions = 0;
        for &(value, length) in counts {
            if expansions > 0 {
                self.record(at, value, expansions);
            } else {
                self.positions[at as usize].value = value;
            }
            expansions += length;
        }
    }
}
