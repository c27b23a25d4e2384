//! The trees of a graph as a person reads them: what repeats is one item, with the number of times.
//!
//! Iterations are alike here if their calls have the same names in the same order; numbers of times inside them, bytes and
//! durations may differ, and are summed. Ranks whose trees are alike in that sense share one.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::bound::Span;
use super::dag::NodeId;
use super::frames::{Around, Chain, Chains};
use super::graph::{CallGraph, Sums};
use super::names::{Name, NameId};
use super::shapes::{NOTHING, Shape, Shapes};

/// Most items that one holds in the order of time: the ones with the most calls stay, others are summed.
pub const MOST_ITEMS: usize = 16;
/// Deepest nesting of items.
pub const DEEPEST: usize = 48;
/// Most references that are followed to make all items.
const MOST_WORK: u64 = 1 << 25;

/// Trees of ranks, those of most ranks first.
#[derive(Clone, Debug)]
pub struct View {
    /// The trees.
    pub trees: Vec<Tree>,
}

/// One tree for ranks whose calls are alike.
#[derive(Clone, Debug)]
pub struct Tree {
    /// The ranks, ascending.
    pub ranks: Vec<u32>,
    /// All of their calls.
    pub root: Item,
}

/// Meaning of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A node of that name.
    Named(NameId),
    /// A function of the program that calls are in, by the places where they are made: module, an index into
    /// [`Names::modules`](super::Names::modules), and a return address in it.
    Function(u32, u64),
    /// Items that are repeated together.
    Loop,
    /// Several items that come one after the other, summed by name.
    Several,
}

/// Times in a row that an item comes in one of the items around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeats {
    /// Least.
    pub least: u64,
    /// Most.
    pub most: u64,
    /// Number of all items around it.
    pub around: u64,
}

/// Part of a tree: a function of MPI, a region, a loop, or what holds some of these.
#[derive(Clone, Debug)]
pub struct Item {
    /// Its meaning.
    pub what: What,
    /// Number of calls, visits or iterations, over all ranks; `None` of functions of the program, which are known by
    /// what they call only.
    pub number: Option<u64>,
    /// Times in a row; `None` where items were summed by name.
    pub repeats: Option<Repeats>,
    /// Sums over all that it holds.
    pub sums: Sums,
    /// Known time in it that is in none of the items that it holds; `None` where these are not given.
    pub exclusive: Option<Span>,
    /// Its parts, in the order of time but in [`What::Several`]; none where they nest too deeply.
    pub items: Vec<Item>,
    /// Functions that all of its calls are in, from the outermost.
    pub(super) chain: Chain,
}

/// Nodes of one place in a tree, each with the number of times that it comes there.
type Instances = Vec<(NodeId, u64)>;

/// Nodes of one shape that follow each other.
#[derive(Default)]
struct Run {
    shape: Shape,
    nodes: Instances,
    least: u64,
    most: u64,
}

/// Parts of an item.
#[derive(Default)]
struct Held {
    items: Vec<Item>,
    /// Sums of what is in none of them.
    own: Sums,
    /// True where all parts are given.
    is_whole: bool,
}

struct Maker<'a> {
    graph: &'a CallGraph,
    shapes: Shapes,
    chains: Chains,
    work: u64,
}

impl View {
    /// Trees of `graph`; `around` gives the function around an address of a module.
    pub fn of(graph: &CallGraph, around: &mut dyn FnMut(&str, u64) -> Around) -> Self {
        let chains = Chains::of(graph.dag().names(), around);
        let mut maker = Maker { graph, shapes: Shapes::of(graph.dag()), chains, work: MOST_WORK };
        let mut groups: BTreeMap<Shape, (Vec<u32>, BTreeMap<NodeId, u64>)> = BTreeMap::new();
        for rank in graph.ranks() {
            let (ranks, nodes) = groups.entry(maker.shapes.get(rank.node)).or_default();
            ranks.push(rank.rank);
            *nodes.entry(rank.node).or_default() += 1;
        }
        let mut tree = |(ranks, nodes): (Vec<u32>, BTreeMap<NodeId, u64>)| {
            let root = maker.named(&nodes.into_iter().collect::<Instances>(), 0);
            Tree { ranks, root }
        };
        let mut trees: Vec<Tree> = groups.into_values().map(&mut tree).collect();
        trees.sort_by_key(|tree| (std::cmp::Reverse(tree.ranks.len()), tree.ranks.first().copied()));
        Self { trees }
    }
}

impl Maker<'_> {
    /// The item of nodes of one name that are more than parts of another.
    fn named(&mut self, nodes: &Instances, depth: usize) -> Item {
        let (dag, first) = (self.graph.dag(), nodes.first().map_or(0, |&(node, _)| node));
        let what = What::Named(dag.name_id(first));
        if dag.leaf(first).is_some() {
            let mut held = Held { is_whole: true, ..Held::default() };
            nodes.iter().for_each(|&(node, times)| held.own.add_leaf(dag, node, times));
            let (calls, missing) = (held.own.calls, held.own.missing);
            let mut item = held.into_item(what, Some(if missing > 0 { missing } else { calls }));
            item.exclusive = Some(item.sums.time());
            item.chain = self.chains.of_name(dag.name_id(first));
            return item;
        }
        let number = match dag.name(first) {
            Name::Region(region) if !region.begins => None,
            _ => Some(total(nodes)),
        };
        let held = self.items(nodes, depth);
        let mut item = held.into_item(what, number);
        item.chain = Chain::new();
        item
    }

    /// Parts of `nodes`, in the order of time where they are alike.
    fn items(&mut self, nodes: &Instances, depth: usize) -> Held {
        let first = nodes.first().map(|&(node, _)| self.shapes.get(node));
        let are_alike = nodes.iter().all(|&(node, _)| Some(self.shapes.get(node)) == first);
        if depth >= DEEPEST || self.work == 0 {
            return Held { own: self.graph.sums(nodes.iter().copied()), ..Held::default() };
        }
        match are_alike {
            true => {
                let mut held = self.in_order(nodes, depth);
                // Functions around all of a region say nothing about it.
                let base = if depth == 0 { 0 } else { Chains::common(&held.items).len() };
                held.items = fewer(Chains::group(held.items, base));
                held
            }
            false => self.by_name(nodes, depth),
        }
    }

    /// Parts of nodes of one shape, in the order of time.
    fn in_order(&mut self, nodes: &Instances, depth: usize) -> Held {
        let (runs, own) = self.runs(nodes);
        let around = total(nodes);
        let mut held = Held { items: Vec::new(), own, is_whole: true };
        let mut runs = runs.into_iter();
        while let Some(run) = runs.next() {
            if self.work == 0 {
                let rest = runs.flat_map(|run| run.nodes);
                held.items.push(self.several(&run.nodes.iter().copied().chain(rest).collect(), DEEPEST));
                break;
            }
            let (units, between) = self.units(&run.nodes);
            held.own.add(&between);
            let repeats = Repeats { least: run.least, most: run.most, around };
            if !self.shapes.is_sequence(run.shape) {
                let item = self.named(&units, depth + 1);
                held.items.push(Item { repeats: Some(repeats), ..item });
                continue;
            }
            if depth + 1 >= DEEPEST {
                held.items.push(self.several(&units, depth + 1));
                continue;
            }
            let inner = self.in_order(&units, depth + 1);
            if (run.least, run.most) == (1, 1) {
                // Once is no loop.
                held.items.extend(inner.items);
                held.own.add(&inner.own);
                continue;
            }
            let common = Chains::common(&inner.items);
            let items = fewer(Chains::group(inner.items, common.len()));
            let item = Held { items, ..inner }.into_item(What::Loop, Some(total(&units)));
            held.items.push(Item { repeats: Some(repeats), chain: common, ..item });
        }
        held
    }

    /// Nodes of equal shapes in nodes of one shape, in their order.
    fn runs(&mut self, nodes: &Instances) -> (Vec<Run>, Sums) {
        let (mut runs, mut outside): (Vec<Run>, Sums) = Default::default();
        let only = nodes.iter().find_map(|&(node, _)| self.shapes.only(self.graph.dag(), node));
        let repeated = only.filter(|&shape| self.shapes.is_sequence(shape));
        for &(node, times) in nodes {
            if let Some(shape) = repeated.filter(|_| self.shapes.only(self.graph.dag(), node).is_none()) {
                // It holds itself what others hold as parts: that is one of them.
                if runs.is_empty() {
                    runs.push(Run { shape, least: u64::MAX, ..Run::default() });
                }
                if let Some(run) = runs.first_mut() {
                    (run.least, run.most) = (run.least.min(1), run.most.max(1));
                    run.nodes.push((node, times));
                }
                continue;
            }
            let (mut at, mut before, mut own) = (0usize, NOTHING, 0u64);
            let close = |runs: &mut Vec<Run>, at: usize, own: u64| {
                if let Some(run) = at.checked_sub(1).and_then(|at| runs.get_mut(at)) {
                    run.least = run.least.min(own);
                    run.most = run.most.max(own);
                }
            };
            let parts = self.graph.dag().parts(node);
            self.work = self.work.saturating_sub(parts.len() as u64);
            for edge in parts {
                let shape = self.shapes.get(edge.node);
                let several = u64::from(edge.times).saturating_mul(times);
                if shape == NOTHING {
                    self.outside_of(edge.node, several, &mut outside);
                    continue;
                }
                if shape != before {
                    close(&mut runs, at, own);
                    (at, before, own) = (at + 1, shape, 0);
                    if runs.len() < at {
                        runs.push(Run { shape, least: u64::MAX, ..Run::default() });
                    }
                }
                own = own.saturating_add(self.shapes.units(edge.node).saturating_mul(edge.times.into()));
                if let Some(run) = runs.get_mut(at - 1) {
                    run.nodes.push((edge.node, several));
                }
            }
            close(&mut runs, at, own);
        }
        (runs, outside)
    }

    /// Time between calls in a node that holds nothing else.
    fn outside_of(&self, node: NodeId, times: u64, outside: &mut Sums) {
        match self.graph.dag().leaf(node) {
            Some(_) => outside.add_leaf(self.graph.dag(), node, times),
            None => outside.add(&self.graph.sums([(node, times)])),
        }
    }

    /// The nodes that `nodes` stand for, without such as only hold more of their own shape.
    fn units(&mut self, nodes: &Instances) -> (Instances, Sums) {
        let (mut open, mut outside): (BTreeMap<NodeId, u64>, Sums) = Default::default();
        nodes.iter().for_each(|&(node, times)| put(&mut open, node, times));
        let mut units = Instances::new();
        while let Some((node, times)) = open.pop_last() {
            let dag = self.graph.dag();
            if self.shapes.get(node) == NOTHING {
                self.outside_of(node, times, &mut outside);
            } else if self.shapes.is_transparent(dag, node) {
                self.work = self.work.saturating_sub(dag.parts(node).len() as u64);
                for edge in dag.parts(node) {
                    put(&mut open, edge.node, times.saturating_mul(edge.times.into()));
                }
            } else {
                units.push((node, times));
            }
        }
        (units, outside)
    }

    /// Parts of `nodes`, summed by name.
    fn by_name(&mut self, nodes: &Instances, depth: usize) -> Held {
        let dag = self.graph.dag();
        let mut open: BTreeMap<NodeId, u64> = BTreeMap::new();
        let mut held = Held { is_whole: true, ..Held::default() };
        let mut work = self.work;
        let mut below = |open: &mut BTreeMap<NodeId, u64>, node: NodeId, times: u64| {
            work = work.saturating_sub(dag.parts(node).len() as u64);
            for edge in dag.parts(node) {
                put(open, edge.node, times.saturating_mul(edge.times.into()));
            }
        };
        nodes.iter().for_each(|&(node, times)| below(&mut open, node, times));
        let mut of_names: BTreeMap<NameId, Instances> = BTreeMap::new();
        while let Some((node, times)) = open.pop_last() {
            if self.shapes.get(node) == NOTHING {
                self.outside_of(node, times, &mut held.own);
            } else if dag.name(node).is_part() {
                below(&mut open, node, times);
            } else {
                of_names.entry(dag.name_id(node)).or_default().push((node, times));
            }
        }
        self.work = work;
        held.items = of_names.values().map(|nodes| self.named(nodes, depth + 1)).collect();
        // The longest first: of equal ones, that with the lower name.
        held.items.sort_by_key(|item| std::cmp::Reverse(weight(item)));
        held
    }

    /// One item for all that `nodes` hold.
    fn several(&mut self, nodes: &Instances, depth: usize) -> Item {
        let held = match depth >= DEEPEST {
            true => Held { own: self.graph.sums(nodes.iter().copied()), ..Held::default() },
            false => self.by_name(nodes, depth),
        };
        held.into_item(What::Several, None)
    }
}

/// Order of items: known time, calls, missing calls.
fn weight(item: &Item) -> (u64, u64, u64) {
    (item.sums.time().value_ns(), item.sums.calls, item.sums.missing)
}

impl Held {
    /// The item that holds it.
    fn into_item(self, what: What, number: Option<u64>) -> Item {
        let chain = Chains::common(&self.items);
        let exclusive = self.is_whole.then_some(self.own.outside);
        let mut sums = self.own;
        self.items.iter().for_each(|item| sums.add(&item.sums));
        Item { what, number, repeats: None, sums, exclusive, items: self.items, chain }
    }
}

/// At most about twice [`MOST_ITEMS`]: those of the most time, and sums of the others between them.
pub(super) fn fewer(items: Vec<Item>) -> Vec<Item> {
    if items.len() <= 2 * MOST_ITEMS {
        return items;
    }
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|&index| (std::cmp::Reverse(weight(&items[index])), index));
    let mut stays = vec![false; items.len()];
    order.iter().take(MOST_ITEMS).for_each(|&index| stays[index] = true);
    let (mut fewer, mut open): (Vec<Item>, Vec<Item>) = Default::default();
    for (item, stays) in items.into_iter().zip(stays) {
        if stays {
            fewer.extend(summed(&mut open));
            fewer.push(item);
        } else {
            open.push(item);
        }
    }
    fewer.extend(summed(&mut open));
    fewer
}

/// One item for `items`, which are taken; the same where there is only one.
fn summed(items: &mut Vec<Item>) -> Option<Item> {
    let mut items = std::mem::take(items);
    if items.len() <= 1 {
        return items.pop();
    }
    let mut held = Held { is_whole: true, ..Held::default() };
    let mut known: FxHashMap<NameId, usize> = FxHashMap::default();
    // Loops are taken apart.
    let mut stack: Vec<Item> = items.into_iter().rev().collect();
    while let Some(item) = stack.pop() {
        let name = match item.what {
            What::Loop | What::Several | What::Function(..) if !item.items.is_empty() => {
                let between = item.exclusive.unwrap_or_default();
                held.own.outside += between;
                held.own.outside_estimate_ns += item.sums.outside_estimate_ns
                    - item.items.iter().map(|item| item.sums.outside_estimate_ns).sum::<f64>();
                stack.extend(item.items.into_iter().rev());
                continue;
            }
            What::Named(name) if item.items.is_empty() => name,
            _ => {
                held.items.push(item);
                continue;
            }
        };
        match known.get(&name).and_then(|&at| held.items.get_mut(at)) {
            Some(own) => {
                own.number = own.number.zip(item.number).map(|(one, other)| one.saturating_add(other));
                own.sums.add(&item.sums);
                own.exclusive = own.exclusive.zip(item.exclusive).map(|(mut one, other)| {
                    one += other;
                    one
                });
            }
            None => {
                known.insert(name, held.items.len());
                held.items.push(Item { repeats: None, ..item });
            }
        }
    }
    Some(held.into_item(What::Several, None))
}

fn put(open: &mut BTreeMap<NodeId, u64>, node: NodeId, times: u64) {
    let sum = open.entry(node).or_default();
    *sum = sum.saturating_add(times);
}

fn total(nodes: &Instances) -> u64 {
    nodes.iter().fold(0, |sum, &(_, times)| sum.saturating_add(times))
}
