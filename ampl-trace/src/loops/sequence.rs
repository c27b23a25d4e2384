//! A sequence of shapes as a graph of parts: each part is stored once, wherever it is repeated.
//!
//! Built from a grammar in time of the order of its size and of its lists of counts. What is asked of a sequence is
//! computed once for each part.

use ampl_core::mpi::FUNCTION_COUNT;
use rustc_hash::{FxHashMap, FxHashSet};

use super::build::Build;
use crate::grammar::Grammar;
use crate::record::{CALL_MISS, GAP};

/// Deepest nesting of parts, and of rules whose expansions differ.
pub(super) const DEEPEST: u32 = 400;

/// Positions of a grammar that may be visited where nothing waits for the answer.
pub const MOST_WORK: u64 = 1 << 25;

/// Meaning of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// Calls that are left out: polls that found nothing.
    Left,
    /// Calls that were counted and not recorded.
    Gap,
    /// Calls of that shape.
    Shape(u32),
}

impl Token {
    /// The meaning of calls of `function` with call flags `flags` that are of no shape.
    pub fn of_no_shape(function: u16, flags: u8) -> Option<Self> {
        match function {
            GAP => Some(Self::Gap),
            _ if flags & CALL_MISS != 0 || usize::from(function) >= FUNCTION_COUNT => Some(Self::Left),
            _ => None,
        }
    }
}

/// Number of a part.
pub type Part = u32;

/// Parts in their order, each with the number of times in a row.
pub type Slice = Vec<(Part, u64)>;

/// A part.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) content: Content,
    pub(super) depth: u32,
    /// Calls, without those of gaps.
    pub(super) calls: u64,
    /// Calls of gaps.
    pub(super) missing: u64,
    /// Shape of the first call; none behind a gap.
    pub(super) first: Option<u32>,
    /// Shape of the last call; none before a gap.
    pub(super) last: Option<u32>,
}

#[derive(Clone, Debug)]
pub(super) enum Content {
    Shape(u32),
    Gap,
    Parts(Box<[(Part, u64)]>),
}

/// A sequence of shapes.
#[derive(Clone, Debug, Default)]
pub struct Sequence {
    pub(super) nodes: Vec<Node>,
    known: FxHashMap<Box<[(Part, u64)]>, Part>,
    shapes: FxHashMap<u32, Part>,
    gap: Option<Part>,
}

/// Calls of each shape of a slice, and how often one shape follows another.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// Calls by shape.
    pub calls: FxHashMap<u32, u64>,
    /// Calls of the second shape right behind one of the first.
    pub edges: FxHashMap<(u32, u32), u64>,
}

impl Flow {
    /// Number of calls of `shape`.
    pub fn of(&self, shape: u32) -> u64 {
        self.calls.get(&shape).copied().unwrap_or(0)
    }

    /// Number of calls of all `shapes`.
    pub fn sum<'a>(&self, shapes: impl IntoIterator<Item = &'a u32>) -> u64 {
        shapes.into_iter().fold(0, |sum, &shape| sum.saturating_add(self.of(shape)))
    }

    /// All shapes but `shape`.
    pub fn others(&self, shape: u32) -> FxHashSet<u32> {
        self.calls.keys().copied().filter(|&other| other != shape).collect()
    }
}

/// Calls that make up one iteration: those of one shape, or of a set of shapes as long as they follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// The shapes.
    pub shapes: FxHashSet<u32>,
    /// True where neighbours are one.
    pub merges: bool,
}

impl Anchor {
    /// Each call of `shape`.
    pub fn call(shape: u32) -> Self {
        Self { shapes: FxHashSet::from_iter([shape]), merges: false }
    }

    /// Each run of calls of `shape`.
    pub fn run(shape: u32) -> Self {
        Self { merges: true, ..Self::call(shape) }
    }

    /// Number of iterations in a slice of that flow.
    pub fn count(&self, flow: &Flow) -> u64 {
        let calls = flow.sum(&self.shapes);
        let inner = flow.edges.iter().filter(|((one, other), _)| {
            self.merges && self.shapes.contains(one) && self.shapes.contains(other)
        });
        inner.fold(calls, |count, (_, &edges)| count.saturating_sub(edges))
    }
}

impl Sequence {
    /// The sequence of `grammar`, whose terminals mean `tokens`, and the whole of it; `None` where the grammar is not
    /// sound, or so irregular that more than `work` positions would be visited.
    pub fn within(grammar: &Grammar, tokens: &[Token], work: u64) -> Option<(Self, Slice)> {
        if !grammar.is_sound() {
            return None;
        }
        let mut build = Build::new(grammar, tokens, work)?;
        let slice = build.expand(0, 0)?;
        Some((build.sequence, slice))
    }

    /// Number of parts.
    pub fn parts_in_all(&self) -> usize {
        self.nodes.len()
    }

    /// Number of calls of `slice`, without those of gaps.
    pub fn calls(&self, slice: &[(Part, u64)]) -> u64 {
        self.total(slice, |node| node.calls)
    }

    /// Number of calls of `slice` that were counted and not recorded.
    pub fn missing(&self, slice: &[(Part, u64)]) -> u64 {
        self.total(slice, |node| node.missing)
    }

    fn total(&self, slice: &[(Part, u64)], of: impl Fn(&Node) -> u64) -> u64 {
        slice.iter().fold(0, |sum: u64, &(part, times)| {
            sum.saturating_add(of(&self.nodes[part as usize]).saturating_mul(times))
        })
    }

    pub(super) fn parts(&self, part: Part) -> &[(Part, u64)] {
        match &self.nodes[part as usize].content {
            Content::Parts(parts) => parts,
            _ => &[],
        }
    }

    /// Calls and neighbours in `slice`.
    pub fn flow(&self, slice: &[(Part, u64)]) -> Flow {
        let mut flow = Flow::default();
        let mut times = vec![0u64; self.nodes.len()];
        self.follow(slice, 1, &mut times, &mut flow);
        // Parts come behind those that they consist of.
        for part in (0..self.nodes.len()).rev() {
            let own = times[part];
            if own == 0 {
                continue;
            }
            match &self.nodes[part].content {
                Content::Gap => {}
                Content::Shape(shape) => {
                    let calls = flow.calls.entry(*shape).or_default();
                    *calls = calls.saturating_add(own);
                }
                Content::Parts(parts) => self.follow(parts, own, &mut times, &mut flow),
            }
        }
        flow
    }

    fn follow(&self, slice: &[(Part, u64)], own: u64, times: &mut [u64], flow: &mut Flow) {
        let mut before: Option<u32> = None;
        for &(part, count) in slice {
            let node = &self.nodes[part as usize];
            let sum = &mut times[part as usize];
            *sum = sum.saturating_add(own.saturating_mul(count));
            let mut edge = |from: Option<u32>, to: Option<u32>, number: u64| {
                if let (Some(from), Some(to), true) = (from, to, number > 0) {
                    let edges = flow.edges.entry((from, to)).or_default();
                    *edges = edges.saturating_add(number);
                }
            };
            edge(before, node.first, own);
            edge(node.last, node.first, own.saturating_mul(count - 1));
            before = node.last;
        }
    }

    /// True for each part that has a call of a shape in `shapes`.
    fn having(&self, shapes: &FxHashSet<u32>) -> Vec<bool> {
        let mut having = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            having.push(match &node.content {
                Content::Shape(shape) => shapes.contains(shape),
                Content::Gap => false,
                Content::Parts(parts) => parts.iter().any(|&(part, _)| having[part as usize]),
            });
        }
        having
    }

    /// `slice` in three: before the first call of one of `shapes`, from there to the last, and behind it.
    pub fn trim(&self, slice: &[(Part, u64)], shapes: &FxHashSet<u32>) -> [Slice; 3] {
        let having = self.having(shapes);
        let (mut before, mut rest) = (Slice::new(), Slice::new());
        self.split(slice, &having, false, &mut before, &mut rest);
        let (mut after, mut inside) = (Slice::new(), Slice::new());
        self.split(&rest, &having, true, &mut after, &mut inside);
        after.reverse();
        inside.reverse();
        [before, inside, after]
    }

    /// Splits before the first part that has one of the shapes; from the end with `backwards`, the results reversed.
    fn split(
        &self,
        slice: &[(Part, u64)],
        having: &[bool],
        backwards: bool,
        before: &mut Slice,
        rest: &mut Slice,
    ) {
        let order = |index: usize| if backwards { slice.len() - 1 - index } else { index };
        let mut items = (0..slice.len()).map(|index| slice[order(index)]);
        for (part, times) in items.by_ref() {
            if !having[part as usize] {
                before.push((part, times));
                continue;
            }
            match self.parts(part) {
                [] => rest.push((part, times)),
                parts => {
                    self.split(parts, having, backwards, before, rest);
                    if times > 1 {
                        rest.push((part, times - 1));
                    }
                }
            }
            break;
        }
        rest.extend(items);
    }

    /// Shape of the first call of `slice` that is recorded.
    pub fn first(&self, slice: &[(Part, u64)]) -> Option<u32> {
        for &(part, _) in slice {
            let found = match &self.nodes[part as usize].content {
                Content::Shape(shape) => Some(*shape),
                Content::Gap => None,
                Content::Parts(parts) => self.first(parts),
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// `slice` cut at calls of `shapes`: the pieces between, and those calls; false and true in turns, a false one first
    /// and last. Time is proportional to the number of such calls.
    pub fn cut(&self, slice: &[(Part, u64)], shapes: &FxHashSet<u32>) -> Vec<Slice> {
        let having = self.having(shapes);
        let mut pieces = vec![Slice::new()];
        self.cut_into(slice, &having, &mut pieces);
        if pieces.len().is_multiple_of(2) {
            pieces.push(Slice::new());
        }
        pieces
    }

    fn cut_into(&self, slice: &[(Part, u64)], having: &[bool], pieces: &mut Vec<Slice>) {
        for &(part, times) in slice {
            let at_cut = having[part as usize];
            match self.parts(part) {
                [] => {
                    if pieces.len().is_multiple_of(2) != at_cut {
                        pieces.push(Slice::new());
                    }
                    pieces.last_mut().expect("one at least").push((part, times));
                }
                parts if at_cut => (0..times).for_each(|_| self.cut_into(parts, having, pieces)),
                _ => {
                    if pieces.len().is_multiple_of(2) {
                        pieces.push(Slice::new());
                    }
                    pieces.last_mut().expect("one at least").push((part, times));
                }
            }
        }
    }

    pub(super) fn intern(&mut self, parts: Slice) -> Option<Option<Part>> {
        match parts[..] {
            [] => return Some(None),
            [(part, 1)] => return Some(Some(part)),
            _ => {}
        }
        let parts = parts.into_boxed_slice();
        if let Some(&known) = self.known.get(&parts) {
            return Some(Some(known));
        }
        let depth = 1 + parts.iter().map(|&(part, _)| self.nodes[part as usize].depth).max()?;
        if depth > DEEPEST {
            return None;
        }
        let (first, last) = (parts.first()?.0 as usize, parts.last()?.0 as usize);
        let node = Node {
            depth,
            calls: self.calls(&parts),
            missing: self.missing(&parts),
            first: self.nodes[first].first,
            last: self.nodes[last].last,
            content: Content::Parts(parts.clone()),
        };
        let register = |all: &mut Self, part| _ = all.known.insert(parts, part);
        Some(Some(self.add(node, register)))
    }

    fn add(&mut self, node: Node, register: impl FnOnce(&mut Self, Part)) -> Part {
        let part = self.nodes.len() as Part;
        self.nodes.push(node);
        register(self, part);
        part
    }

    /// The part of a token.
    pub(super) fn token(&mut self, token: Token) -> Option<Part> {
        let node = |content, shape: Option<u32>| Node {
            content,
            depth: 0,
            calls: shape.is_some().into(),
            missing: shape.is_none().into(),
            first: shape,
            last: shape,
        };
        match token {
            Token::Left => None,
            Token::Gap => Some(
                self.gap
                    .unwrap_or_else(|| self.add(node(Content::Gap, None), |all, part| all.gap = Some(part))),
            ),
            Token::Shape(shape) => Some(self.shapes.get(&shape).copied().unwrap_or_else(|| {
                self.add(node(Content::Shape(shape), Some(shape)), |all, part| {
                    all.shapes.insert(shape, part);
                })
            })),
        }
    }

    /// Appends a part, `times` in a row.
    pub(super) fn push(&self, parts: &mut Slice, part: Part, times: u64) {
        // A part that repeats one other is not kept apart from more of that.
        let (part, times) = match self.parts(part) {
            &[(inner, inner_times)] => (inner, inner_times.saturating_mul(times)),
            _ => (part, times),
        };
        match parts.last_mut() {
            Some((last, sum)) if *last == part => *sum = sum.saturating_add(times),
            _ => parts.push((part, times)),
        }
    }
}

impl Sequence {
    /// The parts of a part.
    ///
    /// # Errors
    /// Its shape, `None` for a gap, where it has no parts.
    pub fn inner(&self, part: Part) -> Result<&[(Part, u64)], Option<u32>> {
        match &self.nodes[part as usize].content {
            Content::Parts(parts) => Ok(parts),
            Content::Shape(shape) => Err(Some(*shape)),
            Content::Gap => Err(None),
        }
    }
}
