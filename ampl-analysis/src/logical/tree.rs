//! Loops and calls of a grammar.

use ampl_trace::grammar::{Counts, Grammar, Position};

/// Most parts of a class's program.
const MOST_NODES: usize = 2_000_000;

/// Repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// So many each time.
    Always(u64),
    /// As the class's list of that number has them, one after the other.
    Listed(u32),
}

/// A class that a part of the program is for, and how often it is repeated there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// The class.
    pub class: u32,
    /// Repetitions.
    pub count: Count,
}

/// Part of a program. Uses are by class, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A call.
    Call {
        /// Its label.
        label: u32,
        /// Classes.
        uses: Vec<Use>,
    },
    /// A loop.
    Loop {
        /// Parts of it, in order.
        body: Vec<Node>,
        /// Classes.
        uses: Vec<Use>,
    },
}

impl Node {
    /// Classes that it is for.
    pub fn uses(&self) -> &[Use] {
        match self {
            Self::Call { uses, .. } | Self::Loop { uses, .. } => uses,
        }
    }
}

/// Counts that differ from one time to the next.
#[derive(Clone, Debug)]
pub struct Stream(Counts);

/// Progress in a [`Stream`].
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    counts: &'a [(u64, u64)],
    run: usize,
    taken: u64,
}

impl Stream {
    /// Counts: each, and how often it comes in a row.
    pub fn counts(&self) -> &[(u64, u64)] {
        &self.0
    }

    /// Its beginning.
    pub fn start(&self) -> Cursor<'_> {
        Cursor { counts: &self.0, run: 0, taken: 0 }
    }
}

impl Cursor<'_> {
    fn next(&mut self) -> u64 {
        while let Some(&(times, expansions)) = self.counts.get(self.run) {
            if self.taken < expansions {
                self.taken += 1;
                return times;
            }
            (self.run, self.taken) = (self.run + 1, 0);
        }
        0
    }
}

/// Loops and calls of `grammar`, whose terminals have these labels, and the counts that differ; `None` where they are too
/// many.
pub fn of(grammar: &Grammar, labels: &[u32]) -> Option<(Vec<Node>, Vec<Stream>)> {
    let mut built = Built { grammar, labels, streams: Vec::new(), numbers: Vec::new(), nodes: 0 };
    built.numbers = grammar.rules.iter().map(|rule| vec![None; rule.len()]).collect();
    let body = built.rule(0, 0)?;
    Some((body, built.streams))
}

struct Built<'a> {
    grammar: &'a Grammar,
    labels: &'a [u32],
    streams: Vec<Stream>,
    /// Number of the stream of each position.
    numbers: Vec<Vec<Option<u32>>>,
    nodes: usize,
}

impl Built<'_> {
    fn rule(&mut self, rule: usize, depth: usize) -> Option<Vec<Node>> {
        let grammar = self.grammar;
        if depth > grammar.rules.len() {
            return None;
        }
        let mut nodes: Vec<Node> = Vec::new();
        for (at, item) in grammar.rules.get(rule)?.iter().enumerate() {
            let count = self.count(rule, at, item);
            match item.symbol.as_rule() {
                None => {
                    let label = *self.labels.get(item.symbol.as_terminal()? as usize)?;
                    self.nodes += 1;
                    push(&mut nodes, Node::Call { label, uses: vec![Use { class: 0, count }] });
                }
                Some(inner) => {
                    let body = self.rule(inner, depth + 1)?;
                    if count == Count::Always(1) {
                        body.into_iter().for_each(|node| push(&mut nodes, node));
                    } else {
                        self.nodes += 1;
                        push(&mut nodes, Node::Loop { body, uses: vec![Use { class: 0, count }] });
                    }
                }
            }
            if self.nodes > MOST_NODES {
                return None;
            }
        }
        Some(nodes)
    }

    fn count(&mut self, rule: usize, at: usize, item: Position<'_>) -> Count {
        if let [(times, _)] = item.counts[..] {
            return Count::Always(times);
        }
        let streams = &mut self.streams;
        let number = self.numbers[rule][at].get_or_insert_with(|| {
            streams.push(Stream(Counts::from(&item.counts[..])));
            streams.len() as u32 - 1
        });
        Count::Listed(*number)
    }
}

/// Appends a part; what repeats the part before it becomes one with it.
fn push(nodes: &mut Vec<Node>, node: Node) {
    if let (Some(Node::Call { label, uses }), Node::Call { label: next, uses: more }) =
        (nodes.last_mut(), &node)
        && label == next
        && let (Count::Always(before), Count::Always(times)) = (uses[0].count, more[0].count)
    {
        uses[0].count = Count::Always(before.saturating_add(times));
        return;
    }
    nodes.push(node);
}

/// The same for the class of that number.
pub fn for_class(mut nodes: Vec<Node>, class: u32) -> Vec<Node> {
    fn set(nodes: &mut [Node], class: u32) {
        for node in nodes {
            match node {
                Node::Call { uses, .. } => uses[0].class = class,
                Node::Loop { body, uses } => {
                    uses[0].class = class;
                    set(body, class);
                }
            }
        }
    }
    set(&mut nodes, class);
    nodes
}

/// Calls `each` with every call that `class` makes, and its repetitions.
pub fn walk(nodes: &[Node], class: u32, streams: &mut [Cursor<'_>], each: &mut impl FnMut(u32, u64)) {
    for node in nodes {
        let Ok(at) = node.uses().binary_search_by_key(&class, |used| used.class) else { continue };
        let times = match node.uses()[at].count {
            Count::Always(times) => times,
            Count::Listed(number) => streams.get_mut(number as usize).map_or(0, Cursor::next),
        };
        match node {
            Node::Call { label, .. } => each(*label, times),
            Node::Loop { body, .. } => (0..times).for_each(|_| walk(body, class, streams, each)),
        }
    }
}
