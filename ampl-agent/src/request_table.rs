//! The live requests that one thread has made, where other threads find those that it hands them.
//!
//! Only the owner puts requests in and takes them out, and does so by plain stores. Another thread finds one by its
//! handle, *claims* it while a call may complete it, and leaves it *dead* when it has; the owner takes it out at its
//! next call. The owner claims its own requests too, again by plain stores. So no thread waits for another.
//!
//! What is claimed is passed over: its call may be over inside of MPI, and its handle another request's already. What
//! one thread stores before it enters MPI is seen by those who get the handle afterwards: MPI itself must order its
//! giving up and its giving out.

use std::sync::{Arc, OnceLock};

use Ordering::{AcqRel, Acquire, Relaxed, Release};

use super::node::{CLAIMED, DEAD, FACTS, FREE, LIVE, NOWHERE, Node, STAGE};
use super::sync::{AtomicU32, AtomicU64, FIRST, LISTS, Ordering};

/// Blocks of nodes, each as large as all before it; and tables of lists, each twice as large as the one before.
const BLOCKS: usize = 24;
/// Most nodes that a visitor reads: among lists that are made anew it must not walk for ever.
const MOST_STEPS: u32 = 1 << 24;

/// Result of a visitor's search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    /// A request: its node, and which of that node's requests it is.
    Found(u32, u16),
    /// No request.
    None,
    /// No request found while the owner changed the lists: search again.
    Unsure,
}

#[derive(Debug)]
struct Block {
    nodes: Box<[Node]>,
    /// Nodes that visitors have left dead, one bit each.
    dead: Box<[AtomicU64]>,
}

impl Block {
    fn new(nodes: usize) -> Self {
        Self {
            nodes: (0..nodes).map(|_| Node::new()).collect(),
            dead: (0..nodes.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

/// The part of a table that other threads see.
#[derive(Debug)]
pub struct RequestTable {
    first: Block,
    more: [OnceLock<Block>; BLOCKS],
    /// Heads of lists, by handle; only one table is in use.
    tables: [OnceLock<Box<[AtomicU32]>>; BLOCKS],
    in_use: AtomicU32,
    /// Grows with whatever may lead a visitor astray, and is odd while lists are made anew.
    changes: AtomicU64,
    /// Blocks with dead nodes, one bit each.
    dead: AtomicU64,
    /// Number noted by the owner: see [`Owner::set_noted`].
    noted: AtomicU64,
}

#[inline(always)]
fn list(handle: u64, lists: usize) -> usize {
    // Handles are addresses or small numbers: the product's upper half mixes both.
    (handle.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & (lists - 1)
}

/// Block and place in it of a node behind the first block.
fn place(at: usize) -> (usize, usize) {
    let block = (at / FIRST).ilog2() as usize;
    (block, at - (FIRST << block))
}

impl RequestTable {
    fn new() -> Self {
        let table = Self {
            first: Block::new(FIRST),
            more: Default::default(),
            tables: Default::default(),
            in_use: AtomicU32::new(0),
            changes: AtomicU64::new(0),
            dead: AtomicU64::new(0),
            noted: AtomicU64::new(0),
        };
        table.make_table(0);
        table
    }

    fn make_table(&self, number: usize) {
        let _ = self.tables[number].set((0..LISTS << number).map(|_| AtomicU32::new(0)).collect());
    }

    /// The heads of the lists.
    #[inline(always)]
    fn heads(&self) -> &[AtomicU32] {
        let table = self.tables.get(self.in_use.load(Acquire) as usize).and_then(OnceLock::get);
        table.map_or(&[], |table| table)
    }

    #[inline(always)]
    fn head(&self, heads: &[AtomicU32], handle: u64) -> u32 {
        heads.get(list(handle, heads.len())).map_or(NOWHERE, |head| head.load(Acquire))
    }

    /// The node of that number.
    #[inline(always)]
    pub fn node(&self, at: u32) -> &Node {
        match self.first.nodes.get(at as usize) {
            Some(node) => node,
            None => self.later(at),
        }
    }

    #[cold]
    fn later(&self, at: u32) -> &Node {
        let (block, at) = place(at as usize);
        let block = self.more[block].get().expect("a block as soon as one of its nodes has a number");
        &block.nodes[at]
    }

    /// The first request behind `handle` that may be taken, from the node `at` of its list on.
    #[inline(always)]
    fn walk(&self, mut at: u32, handle: u64, takes: impl Fn(u64) -> bool) -> u32 {
        while at != NOWHERE {
            let node = self.node(at);
            if node.handle.load(Acquire) == handle && takes(node.stage()) {
                break;
            }
            at = node.next.load(Acquire);
        }
        at
    }

    /// Searches for a request behind `handle` as a visitor. Claims it if it `completes`; otherwise claims of others do
    /// not matter.
    pub fn visit(&self, handle: u64, completes: bool) -> Visit {
        match self.look(handle, completes, |stage| stage == LIVE) {
            Visit::None if !completes => self.look(handle, false, |stage| stage & LIVE != 0),
            visit => visit,
        }
    }

    fn look(&self, handle: u64, claims: bool, takes: impl Fn(u64) -> bool) -> Visit {
        let before = self.changes.load(Acquire);
        let (mut at, mut steps) = (self.head(self.heads(), handle), 0);
        while at != NOWHERE && steps < MOST_STEPS {
            let node = self.node(at);
            let state = node.state.load(Acquire);
            if takes(state & STAGE) && node.handle.load(Acquire) == handle {
                let times = Node::times(state);
                // Where the node has become another request since, its new handle may be seen, but not with its old
                // state.
                let to = if claims { CLAIMED } else { state & STAGE };
                if node.moves(times, state & STAGE, to) {
                    return Visit::Found(at, times);
                }
            }
            at = node.next.load(Acquire);
            steps += 1;
        }
        let steady = before & 1 == 0 && self.changes.load(Acquire) == before;
        if steady { Visit::None } else { Visit::Unsure }
    }

    /// A visitor gives its claim back.
    pub fn leave(&self, at: u32, times: u16) {
        self.node(at).moves(times, CLAIMED, LIVE);
    }

    /// Marks the claimed request dead, as a visitor that has completed it. Returns whether it was still the same
    /// request: threads that share a handle may complete the same one.
    pub fn complete(&self, at: u32, times: u16) -> bool {
        if !self.node(at).moves(times, CLAIMED, DEAD) {
            return false;
        }
        let (number, (block, at)) = match (at as usize) < FIRST {
            true => (0, (&self.first, at as usize)),
            false => {
                let (number, at) = place(at as usize);
                (number + 1, (self.more[number].get().expect("the block of a node"), at))
            }
        };
        block.dead[at / 64].fetch_or(1 << (at % 64), AcqRel);
        self.dead.fetch_or(1 << number, AcqRel);
        true
    }

    /// The number that the owner has [noted](Owner::set_noted).
    pub fn noted(&self) -> u64 {
        self.noted.load(Acquire)
    }
}

/// The owner's side of a table.
#[derive(Debug)]
pub struct Owner {
    table: Arc<RequestTable>,
    /// The last node that is free again, and the first that has never been used.
    free: u32,
    unused: u32,
    /// Ends of the lists.
    tails: Vec<u32>,
    live: usize,
    /// The owner's copy of the table's `changes`.
    changes: u64,
}

impl Default for Owner {
    fn default() -> Self {
        let table = Arc::new(RequestTable::new());
        let tails = vec![NOWHERE; table.heads().len()];
        Self { table, free: NOWHERE, unused: NOWHERE + 1, tails, live: 0, changes: 0 }
    }
}

impl Owner {
    /// The part that other threads see.
    #[inline(always)]
    pub fn table(&self) -> &Arc<RequestTable> {
        &self.table
    }

    /// How many requests are on it.
    pub fn len(&self) -> usize {
        self.live
    }

    /// Puts a request there, behind all that share its handle. Returns its node, and whether one shares it.
    #[inline]
    pub fn put(&mut self, handle: u64, facts: [u64; FACTS]) -> (u32, bool) {
        let at = if self.free == NOWHERE { self.fresh() } else { self.free };
        let table = &*self.table;
        let node = table.node(at);
        self.free = node.before.load(Relaxed);
        let times = node.state.load(Relaxed) | STAGE;
        node.handle.store(handle, Release);
        for (fact, value) in node.facts.iter().zip(facts) {
            fact.store(value, Relaxed);
        }
        node.next.store(NOWHERE, Release);
        node.state.store(times + 1 + LIVE, Release);
        let heads = table.heads();
        let list = list(handle, heads.len());
        let tail = std::mem::replace(&mut self.tails[list], at);
        node.before.store(tail, Relaxed);
        let mut shares = false;
        if tail == NOWHERE {
            heads[list].store(at, Release);
        } else {
            shares = table.walk(heads[list].load(Relaxed), handle, |_| true) != NOWHERE;
            table.node(tail).next.store(at, Release);
        }
        self.live += 1;
        if self.live > heads.len() {
            self.grow();
        }
        (at, shares)
    }

    #[cold]
    fn fresh(&mut self) -> u32 {
        let at = self.unused;
        self.unused += 1;
        if at as usize >= FIRST {
            let (block, _) = place(at as usize);
            self.table.more[block].get_or_init(|| Block::new(FIRST << block));
        }
        at
    }

    /// Twice as many lists.
    #[cold]
    fn grow(&mut self) {
        let table = &*self.table;
        let number = table.in_use.load(Relaxed) as usize + 1;
        if number == BLOCKS {
            return;
        }
        let old = table.heads();
        table.make_table(number);
        let Some(heads) = table.tables[number].get() else { return };
        self.tails = vec![NOWHERE; heads.len()];
        self.changes += 1;
        table.changes.store(self.changes, Release);
        for head in old {
            let mut at = head.load(Relaxed);
            while at != NOWHERE {
                let node = table.node(at);
                let next = node.next.load(Relaxed);
                let list = list(node.handle.load(Relaxed), heads.len());
                let tail = std::mem::replace(&mut self.tails[list], at);
                node.next.store(NOWHERE, Release);
                node.before.store(tail, Relaxed);
                if tail == NOWHERE {
                    heads[list].store(at, Release);
                } else {
                    table.node(tail).next.store(at, Release);
                }
                at = next;
            }
        }
        table.in_use.store(number as u32, Release);
        self.changes += 1;
        table.changes.store(self.changes, Release);
    }

    /// Finds requests.
    #[inline(always)]
    pub fn finder(&self) -> Finder<'_> {
        Finder { table: &self.table, nodes: &self.table.first.nodes, heads: self.table.heads() }
    }

    /// A claim is given back.
    #[inline(always)]
    pub fn release(&self, at: u32) {
        let node = self.table.node(at);
        if node.stage() == CLAIMED {
            node.state.store(node.state.load(Relaxed) & !STAGE | LIVE, Release);
        }
    }

    /// Takes out a request. Returns one of its facts if it still was there: a visitor may have completed it too.
    #[inline(always)]
    pub fn take(&mut self, at: u32, fact: usize) -> Option<u64> {
        let node = self.table.node(at);
        let told = (node.stage() & LIVE != 0).then(|| node.fact(fact));
        if told.is_some() {
            self.remove(at);
        }
        told
    }

    #[inline(always)]
    fn remove(&mut self, at: u32) {
        let table = &*self.table;
        let node = table.node(at);
        node.state.store(node.state.load(Relaxed) & !STAGE | FREE, Release);
        let (next, before) = (node.next.load(Relaxed), node.before.load(Relaxed));
        let heads = table.heads();
        let list = list(node.handle.load(Relaxed), heads.len());
        if before == NOWHERE {
            heads[list].store(next, Release);
        } else {
            table.node(before).next.store(next, Release);
        }
        if next == NOWHERE {
            self.tails[list] = before;
        } else {
            table.node(next).before.store(before, Relaxed);
        }
        // A visitor on the node will see its next request, and follow another list. Before that it leads where it did.
        self.changes += 2;
        table.changes.store(self.changes, Release);
        node.before.store(self.free, Relaxed);
        self.free = at;
        self.live -= 1;
    }

    /// True where visitors have left requests dead.
    #[inline(always)]
    pub fn has_dead(&self) -> bool {
        self.table.dead.load(Acquire) != 0
    }

    /// Takes out what visitors have left dead; passes one fact of each to `gone`.
    #[cold]
    pub fn bury(&mut self, fact: usize, mut gone: impl FnMut(u64)) {
        let table = self.table.clone();
        let blocks = table.dead.swap(0, AcqRel);
        for number in (0..=BLOCKS).filter(|number| blocks >> number & 1 != 0) {
            let (block, first) = match number.checked_sub(1) {
                None => (&table.first, 0),
                Some(more) => (table.more[more].get().expect("the block of a node"), FIRST << more),
            };
            for (word, from) in block.dead.iter().zip((first..).step_by(64)) {
                let mut left = if word.load(Relaxed) == 0 { 0 } else { word.swap(0, AcqRel) };
                while left != 0 {
                    let at = from as u32 + left.trailing_zeros();
                    left &= left - 1;
                    let node = table.node(at);
                    if node.stage() == DEAD {
                        gone(node.fact(fact));
                        self.remove(at);
                    }
                }
            }
        }
    }

    /// Takes out requests for which `stays` is false, except those that a visitor may be completing.
    pub fn retain(&mut self, mut stays: impl FnMut(&Node) -> bool) {
        let table = self.table.clone();
        for at in NOWHERE + 1..self.unused {
            let node = table.node(at);
            if node.stage() == LIVE && !stays(node) {
                self.remove(at);
            }
        }
    }

    /// Publishes a number to visitors.
    pub fn set_noted(&self, number: u64) {
        self.table.noted.store(number, Release);
    }
}

/// Finds requests while none is put there or taken out.
#[derive(Clone, Copy, Debug)]
pub struct Finder<'a> {
    table: &'a RequestTable,
    /// Nodes of the first block.
    nodes: &'a [Node],
    heads: &'a [AtomicU32],
}

impl<'a> Finder<'a> {
    /// A request behind `handle` that no call may be completing, if it is the first in its list and of the first
    /// block, as most are. Claims it if `CLAIMS`.
    #[inline(always)]
    pub fn at_home<const CLAIMS: bool>(self, handle: u64) -> Option<(u32, &'a Node)> {
        let at = self.heads.get(list(handle, self.heads.len()))?.load(Relaxed);
        let node = self.nodes.get(at as usize)?;
        let state = node.state.load(Relaxed);
        if node.handle.load(Relaxed) != handle || state & STAGE != LIVE {
            return None;
        }
        if CLAIMS {
            node.state.store(state | CLAIMED, Release);
        }
        Some((at, node))
    }

    /// The eldest request behind `handle` that no call may be completing, wherever it is.
    #[inline(never)]
    pub fn find(self, handle: u64) -> Option<(u32, &'a Node)> {
        self.found(self.table.walk(self.table.head(self.heads, handle), handle, |stage| stage == LIVE))
    }

    /// As [`Finder::find`], and claims it. `passed` is for the calls of one caller: the handle that was found last, and
    /// where.
    #[inline(never)]
    pub fn claim(self, handle: u64, passed: &mut (u64, u32)) -> Option<(u32, &'a Node)> {
        // Many sends that are done at once share a handle: not all of them are passed by for each.
        let behind = if handle == passed.0 {
            self.table.walk(passed.1, handle, |stage| stage == LIVE)
        } else {
            NOWHERE
        };
        let (at, node) = if behind == NOWHERE { self.find(handle) } else { self.found(behind) }?;
        *passed = (handle, at);
        node.state.store(node.state.load(Relaxed) | CLAIMED, Release);
        Some((at, node))
    }

    /// A request behind `handle` that a call may be completing.
    pub fn claimed(self, handle: u64) -> Option<(u32, &'a Node)> {
        self.found(self.table.walk(self.table.head(self.heads, handle), handle, |stage| stage == CLAIMED))
    }

    fn found(self, at: u32) -> Option<(u32, &'a Node)> {
        (at != NOWHERE).then(|| (at, self.table.node(at)))
    }
}
