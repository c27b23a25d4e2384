//! The tree of a thread from its grammar: rules are expanded where times are stored, and nowhere else.

use ampl_trace::grammar::{Expansions, Grammar};
use ampl_trace::record::{REGION_ENTER, REGION_EXIT};
use ampl_trace::timing::Terminal;

use super::dag::{Dag, Facts, NodeId};
use super::fragment::{Fault, Fragment};
use super::names::NameId;
use super::times::{Entry, Times};

/// Most positions of a grammar that are visited where no times are stored.
const MOST_WORK: u64 = 1 << 26;
/// Positions that each stored time may add: rules nest within each other.
const WORK_PER_TIME: u64 = 64;

/// Meaning of a terminal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Token {
    /// A call.
    Call(Call),
    /// Calls that were counted and not recorded, as that node; without one they are left out.
    Gap(Option<NodeId>),
    /// The begin of a region.
    Begin(NameId),
    /// The end of a region.
    End(NameId),
}

/// A call, for which a terminal stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// Its name.
    pub name: NameId,
    /// Bytes that it sends and receives, where they can be computed.
    pub bytes: Option<(u64, u64)>,
    /// The node of a call whose time is not stored; without one it is left out.
    pub untimed: Option<NodeId>,
    /// Its number and function, for the decoder of times.
    pub like: u16,
    /// True where several may share an entry: failed polls.
    pub folds: bool,
    /// True where it returned.
    pub returns: bool,
}

/// Expansions of a rule that follow each other.
struct Frame {
    rule: usize,
    item: usize,
    /// Expansions from this one on.
    left: u64,
    /// Expansions that this one stands for.
    alike: u64,
    /// Calls of this one, where it stands for several.
    length: u64,
    own: Fragment,
    /// Expansions before this one.
    before: Fragment,
}

impl Frame {
    fn new(rule: usize, times: u64) -> Self {
        let (own, before) = Default::default();
        Self { rule, item: 0, left: times, alike: 1, length: 0, own, before }
    }
}

/// Walk through a grammar.
pub struct Walk<'a, 't, T> {
    dag: &'a mut Dag,
    grammar: &'a Grammar,
    tokens: &'a [Token],
    times: &'t mut T,
    counts: Expansions<'a>,
    /// Expansion of each rule whose expansions are all alike.
    fixed: Vec<Option<Fragment>>,
    /// Calls of each such rule; the least number of calls of others.
    lengths: Vec<u64>,
    /// Position of the next call, or begin or end of a region, as times have it.
    seq: u64,
    /// Facts with a weight that were used last, by terminal: calls, weight, number.
    facts: Vec<(u64, u64, u32)>,
}

impl<'a, 't, T: Times> Walk<'a, 't, T> {
    /// A walk through `grammar`, which is sound, whose terminals mean `tokens`.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn new(
        dag: &'a mut Dag,
        grammar: &'a Grammar,
        tokens: &'a [Token],
        times: &'t mut T,
    ) -> Result<Self, Fault> {
        let counts = Expansions::new(grammar, MOST_WORK);
        let (fixed, lengths) = (vec![None; grammar.rules.len()], vec![0; grammar.rules.len()]);
        let facts = vec![(0, 0, u32::MAX); tokens.len()];
        let mut walk = Self { dag, grammar, tokens, times, counts, fixed, lengths, seq: 0, facts };
        walk.fix()?;
        Ok(walk)
    }

    /// Expands the rules whose expansions are all alike.
    fn fix(&mut self) -> Result<(), Fault> {
        for rule in self.counts.rules() {
            let is_fixed = self.counts.is_fixed(rule) && rule > 0;
            let (mut length, mut fragment) = (0u64, Fragment::default());
            for item in self.grammar.rules.at(rule).iter() {
                self.counts.visit().ok_or(Fault::TooIrregular)?;
                let count = item.counts.iter().map(|&(count, _)| count).min().ok_or(Fault::Malformed)?;
                let own = match (item.symbol.as_rule(), item.symbol.as_terminal()) {
                    (Some(inner), _) => self.lengths[inner],
                    (None, Some(terminal)) => {
                        self.tokens.get(terminal as usize).ok_or(Fault::Malformed)?;
                        1
                    }
                    (None, None) => return Err(Fault::Malformed),
                };
                length = length.saturating_add(own.saturating_mul(count));
                if is_fixed {
                    let own = match item.symbol.as_rule() {
                        Some(inner) => self.fixed[inner].clone().ok_or(Fault::Malformed)?,
                        None => self.untimed(item.symbol.0 >> 1, 1)?,
                    };
                    fragment.append(&own.repeated(count, self.dag)?, self.dag)?;
                }
            }
            self.lengths[rule] = length;
            if is_fixed {
                self.fixed[rule] = Some(fragment.into_body(self.dag));
            }
        }
        Ok(())
    }

    /// The tree of the whole grammar.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn whole(mut self) -> Result<Fragment, Fault> {
        let grammar = self.grammar;
        let mut frames = vec![Frame::new(0, 1)];
        loop {
            let is_root = frames.len() == 1;
            let Some(frame) = frames.last_mut() else { return Err(Fault::Malformed) };
            let Some(item) = grammar.rules.at(frame.rule).get(frame.item) else {
                let own = std::mem::take(&mut frame.own);
                if is_root {
                    return Ok(own);
                }
                self.end_expansion(frame, own)?;
                if frame.left == 0 {
                    self.pop(&mut frames)?;
                }
                continue;
            };
            let index = frame.item;
            frame.item += 1;
            let count = self.counts.next(frame.rule, index).ok_or(Fault::TooIrregular)?;
            match item.symbol.as_rule() {
                None => self.calls(item.symbol.0 >> 1, count, &mut frame.own)?,
                Some(inner) => {
                    let mut frame = Frame::new(inner, count);
                    self.begin(&mut frame)?;
                    let is_over = frame.left == 0;
                    frames.push(frame);
                    if is_over {
                        self.pop(&mut frames)?;
                    }
                }
            }
        }
    }

    /// Ends the expansions of the last frame.
    fn pop(&mut self, frames: &mut Vec<Frame>) -> Result<(), Fault> {
        let Some(frame) = frames.pop() else { return Err(Fault::Malformed) };
        let Some(outer) = frames.last_mut() else { return Err(Fault::Malformed) };
        outer.own.append(&frame.before.in_parts(self.dag), self.dag)
    }

    /// Calls before the next whose time is stored.
    fn free(&self) -> u64 {
        match self.times.next() {
            Some(seq) => seq.saturating_sub(self.seq),
            None => u64::MAX,
        }
    }

    /// Begins an expansion, or passes over those that need not be walked.
    fn begin(&mut self, frame: &mut Frame) -> Result<(), Fault> {
        let free = self.free();
        let least = self.lengths[frame.rule];
        let fits = free.checked_div(least).unwrap_or(u64::MAX).min(frame.left);
        if let Some(fixed) = &self.fixed[frame.rule] {
            if fits > 0 {
                let repeated = fixed.repeated(fits, self.dag)?;
                frame.before.append(&repeated, self.dag)?;
                frame.left -= fits;
                self.seq = self.seq.saturating_add(fits.saturating_mul(least));
            }
            return Ok(());
        }
        frame.alike = 1;
        if fits < 2 {
            return Ok(());
        }
        let alike = self.counts.alike(frame.rule).ok_or(Fault::TooIrregular)?;
        let length = self.counts.length(frame.rule, &self.lengths).ok_or(Fault::TooIrregular)?;
        let fits = free.checked_div(length).unwrap_or(u64::MAX);
        frame.alike = alike.min(fits).min(frame.left).max(1);
        frame.length = length;
        Ok(())
    }

    /// Ends an expansion, and begins the next where there is one.
    fn end_expansion(&mut self, frame: &mut Frame, own: Fragment) -> Result<(), Fault> {
        let own = own.into_body(self.dag);
        let more = frame.alike - 1;
        if more > 0 {
            self.seq = self.seq.saturating_add(more.saturating_mul(frame.length));
            self.counts.skip(frame.rule, more).ok_or(Fault::TooIrregular)?;
        }
        frame.before.append(&own.repeated(frame.alike, self.dag)?, self.dag)?;
        frame.left -= frame.alike;
        frame.item = 0;
        match frame.left {
            0 => Ok(()),
            _ => self.begin(frame),
        }
    }

    /// Calls whose times are not stored.
    fn untimed(&self, terminal: u32, count: u64) -> Result<Fragment, Fault> {
        let mut fragment = Fragment::default();
        match self.tokens.get(terminal as usize).ok_or(Fault::Malformed)? {
            Token::Call(Call { untimed: node, .. }) | Token::Gap(node) => {
                node.iter().for_each(|&node| fragment.push(node, count));
            }
            &Token::Begin(region) => fragment = Fragment::begin(region),
            &Token::End(region) => fragment = Fragment::end(region),
        }
        Ok(fragment)
    }

    /// A run of a terminal.
    fn calls(&mut self, terminal: u32, count: u64, own: &mut Fragment) -> Result<(), Fault> {
        let tokens = self.tokens;
        let token = tokens.get(terminal as usize).ok_or(Fault::Malformed)?;
        let call = match token {
            Token::Call(call) => call,
            Token::Begin(_) => return self.edges(terminal, REGION_ENTER, count, own),
            Token::End(_) => return self.edges(terminal, REGION_EXIT, count, own),
            Token::Gap(_) => {
                let one = self.untimed(terminal, 1)?;
                own.append(&one.repeated(count, self.dag)?, self.dag)?;
                self.seq = self.seq.saturating_add(count);
                return Ok(());
            }
        };
        let mut left = count;
        while left > 0 {
            let free = self.free();
            let mut taken = left.min(free);
            if free == 0 {
                let number = Terminal { number: terminal, like: call.like, folds: call.folds };
                let entry = self.times.take(number);
                taken = entry.as_ref().map_or(1, |entry| entry.calls.clamp(1, left));
                self.counts.allow(WORK_PER_TIME);
                match entry {
                    Some(entry) => self.timed(terminal, call, &entry, own),
                    None => call.untimed.iter().for_each(|&node| own.push(node, taken)),
                }
            } else {
                call.untimed.iter().for_each(|&node| own.push(node, taken));
            }
            self.seq = self.seq.saturating_add(taken);
            left -= taken;
        }
        Ok(())
    }

    /// Begins or ends of a region. They have times as calls have, which last no time.
    fn edges(&mut self, terminal: u32, like: u16, count: u64, own: &mut Fragment) -> Result<(), Fault> {
        let mut left = count;
        while left > 0 {
            let free = self.free();
            let taken = left.min(free.max(1));
            if free == 0 {
                self.counts.allow(WORK_PER_TIME);
                let entry = self.times.take(Terminal { number: terminal, like, folds: false });
                if let Some(entry) = entry.filter(|entry| entry.before_ns > 0) {
                    let node = self.times.outside(self.dag, &entry);
                    own.push(node, 1);
                }
            }
            let one = self.untimed(terminal, 1)?;
            own.append(&one.repeated(taken, self.dag)?, self.dag)?;
            self.seq = self.seq.saturating_add(taken);
            left -= taken;
        }
        Ok(())
    }

    /// A call whose time is stored.
    fn timed(&mut self, terminal: u32, call: &Call, entry: &Entry, own: &mut Fragment) {
        if entry.before_ns > 0 {
            let node = self.times.outside(self.dag, entry);
            own.push(node, 1);
        }
        let calls = if entry.counts { entry.calls } else { 0 };
        if !call.returns {
            if entry.counts {
                own.push(self.dag.put_leaf(call.name, Facts::untimed(calls, call.bytes), 0), 1);
            }
            return;
        }
        if !entry.counts && entry.duration_ns == 0 {
            return;
        }
        let key = (calls, entry.weight.to_bits());
        let last = &mut self.facts[terminal as usize];
        if (last.0, last.1) != key || last.2 == u32::MAX {
            let facts = Facts::timed(calls, call.bytes, entry.weight);
            *last = (key.0, key.1, self.dag.facts_id(call.name, facts));
        }
        own.push(self.dag.put_leaf_of(call.name, last.2, entry.duration_ns), 1);
    }
}
