//! Executions of a loop in a sequence: the pieces that have its calls only.

use super::flow_graph::Set;
use super::sequence::{Anchor, Content, Part, Sequence, Slice};

/// Most runs of a list of [`Sequence::executions`].
const MOST_RUNS: usize = 1 << 16;

/// Longest pieces of a slice that have shapes of a set only, in their order.
#[derive(Clone, Debug, Default)]
struct Executions {
    /// True of gaps alone.
    is_neutral: bool,
    /// True where the first call is in the first piece.
    open_start: bool,
    /// True where the last call is in the last piece.
    open_end: bool,
    first: Option<u32>,
    last: Option<u32>,
    /// Iterations, and number of pieces in a row that have so many.
    list: Vec<(u64, u64)>,
}

impl Executions {
    fn push(&mut self, iterations: u64, pieces: u64) {
        match self.list.last_mut() {
            Some((same, sum)) if *same == iterations => *sum += pieces,
            _ if pieces > 0 => self.list.push((iterations, pieces)),
            _ => {}
        }
    }

    fn pop(&mut self) -> u64 {
        let Some((iterations, pieces)) = self.list.last_mut() else { return 0 };
        let iterations = *iterations;
        *pieces -= 1;
        if *pieces == 0 {
            self.list.pop();
        }
        iterations
    }

    /// Appends `other`; `None` where the list becomes too long.
    fn append(&mut self, other: &Self, anchor: &Anchor) -> Option<()> {
        if other.is_neutral {
            self.last = None;
            return Some(());
        }
        if self.is_neutral {
            *self = Self { first: None, ..other.clone() };
            return Some(());
        }
        let mut rest = other.list.iter().copied();
        if self.open_end && other.open_start {
            let before = self.pop();
            let (after, pieces) = rest.next()?;
            let is_in = |shape: Option<u32>| shape.is_some_and(|shape| anchor.shapes.contains(&shape));
            let joined = anchor.merges && is_in(self.last) && is_in(other.first);
            self.push((before + after).saturating_sub(joined.into()), 1);
            self.push(after, pieces - 1);
        }
        rest.for_each(|(iterations, pieces)| self.push(iterations, pieces));
        (self.open_end, self.last) = (other.open_end, other.last);
        (self.list.len() <= MOST_RUNS).then_some(())
    }

    /// Itself `times` in a row.
    fn repeat(&self, mut times: u64, anchor: &Anchor) -> Option<Self> {
        let (mut power, mut sum) = (self.clone(), None::<Self>);
        loop {
            if times & 1 == 1 {
                match &mut sum {
                    Some(sum) => sum.append(&power, anchor)?,
                    none => *none = Some(power.clone()),
                }
            }
            times >>= 1;
            if times == 0 {
                return sum;
            }
            let again = power.clone();
            power.append(&again, anchor)?;
        }
    }
}

impl Sequence {
    fn executions_of_parts(&self, set: &Set, anchor: &Anchor) -> Option<Vec<Executions>> {
        let mut all: Vec<Executions> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let own = match &node.content {
                Content::Gap => Executions { is_neutral: true, ..Executions::default() },
                Content::Shape(shape) => {
                    let is_in = set.contains(shape);
                    let list = match is_in {
                        true => vec![(u64::from(anchor.shapes.contains(shape)), 1)],
                        false => Vec::new(),
                    };
                    let (first, last) = (Some(*shape), Some(*shape));
                    Executions { is_neutral: false, open_start: is_in, open_end: is_in, first, last, list }
                }
                Content::Parts(parts) => joined(&all, parts, anchor)?,
            };
            all.push(own);
        }
        Some(all)
    }

    /// The longest pieces of `slice` that have calls of `set` only, in their order: iterations by `anchor`, and the
    /// number of pieces in a row that have so many. Gaps end none. `None` where there are too many different ones.
    pub fn executions(&self, slice: &[(Part, u64)], set: &Set, anchor: &Anchor) -> Option<Vec<(u64, u64)>> {
        let all = self.executions_of_parts(set, anchor)?;
        Some(joined(&all, slice, anchor)?.list)
    }

    /// `slice` before piece `index` of [`Sequence::executions`], that piece, and what follows.
    pub fn execution(&self, slice: &[(Part, u64)], set: &Set, index: u64) -> Option<[Slice; 3]> {
        let anchor = Anchor { shapes: Set::default(), merges: false };
        let all = self.executions_of_parts(set, &anchor)?;
        let mut search = Search {
            sequence: self,
            all,
            target: index,
            begun: 0,
            is_open: false,
            found: Default::default(),
        };
        search.visit(slice);
        Some(search.found)
    }
}

fn joined(all: &[Executions], parts: &[(Part, u64)], anchor: &Anchor) -> Option<Executions> {
    let mut sum = Executions { is_neutral: true, ..Executions::default() };
    let mut is_first = true;
    for &(part, times) in parts {
        let own = all[part as usize].repeat(times, anchor)?;
        match is_first {
            true => sum = own,
            false => sum.append(&own, anchor)?,
        }
        is_first = false;
    }
    Some(sum)
}

const BEFORE: usize = 0;
const INSIDE: usize = 1;
const AFTER: usize = 2;

/// Looks for one of the pieces of a slice.
struct Search<'a> {
    sequence: &'a Sequence,
    all: Vec<Executions>,
    target: u64,
    /// Pieces begun so far.
    begun: u64,
    /// True inside a piece.
    is_open: bool,
    found: [Slice; 3],
}

impl Search<'_> {
    fn visit(&mut self, slice: &[(Part, u64)]) {
        for &(part, times) in slice {
            self.visit_part(part, times);
        }
    }

    fn visit_part(&mut self, part: Part, mut times: u64) {
        let own = &self.all[part as usize];
        let is_leaf = self.sequence.parts(part).is_empty();
        if self.place() == AFTER || own.is_neutral || is_leaf {
            if !own.is_neutral && is_leaf {
                self.begun += u64::from(own.open_start && !self.is_open);
                self.is_open = own.open_start;
            }
            self.found[self.place()].push((part, times));
            return;
        }
        let pieces: u64 = own.list.iter().map(|&(_, pieces)| pieces).sum();
        let (open_start, open_end) = (own.open_start, own.open_end);
        let begins = |is_open: bool| pieces - u64::from(open_start && is_open);
        while times > 0 {
            let first = begins(self.is_open);
            match self.place() {
                // Copies that begin no piece beyond those before the one looked for.
                BEFORE if self.begun + first <= self.target => {
                    let room = self.target - self.begun - first;
                    let more = room.checked_div(begins(open_end)).unwrap_or(u64::MAX);
                    let copies = more.saturating_add(1).min(times);
                    self.found[BEFORE].push((part, copies));
                    self.begun += first + (copies - 1) * begins(open_end);
                    self.is_open = open_end;
                    times -= copies;
                }
                // Nothing but calls of the piece.
                INSIDE if open_start && open_end && pieces == 1 => {
                    self.found[INSIDE].push((part, times));
                    return;
                }
                AFTER => {
                    self.found[AFTER].push((part, times));
                    return;
                }
                _ => {
                    let parts = self.sequence.parts(part).to_vec();
                    self.visit(&parts);
                    times -= 1;
                }
            }
        }
    }

    /// Before the piece that is looked for, in it, or behind it.
    fn place(&self) -> usize {
        match self.begun {
            begun if begun <= self.target => BEFORE,
            begun if begun == self.target + 1 && self.is_open => INSIDE,
            _ => AFTER,
        }
    }
}
